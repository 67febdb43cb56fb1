"""What a store has published: the plan's calendar and the answers of all closed rounds.

Promise: it opens the resolved plan and the published releases, both without the right to write,
needs no key and no lock, and works while the engine publishes. It cannot reach anything exact.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retrodp import _check
from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.plan.epochs import FIRST_PLAN, Epoch, known_boundaries, read_epoch, read_plans
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.plan.zone import local_of_instant, zone
from retrodp.store.releases import ReleasesReader

PLAN_FILE = FIRST_PLAN
RELEASES_FILE = "releases.sqlite"
TEST = "TEST: this store was made for tests, under a fixed key; its numbers protect nobody."


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How far publication has come at an instant.

    Attributes:
        published: Last published round; 0 before the first.
        missing: Runs (first, last) of rounds before it that are not published; none in a sound
            store.
        late: First and last round that have ended by the calendar and are not published.
        open: Round that the instant lies in, if it is not published; None outside the plan.
        next_end: When the first unpublished round ends, microseconds UTC; None after the horizon.
    """

    published: int
    missing: tuple[tuple[int, int], ...]
    late: tuple[int, int] | None
    open: int | None
    next_end: int | None


class Published:
    """The published half of a store, for reading; a context manager.

    It belongs to the thread that opened it; another thread opens its own.
    """

    def __init__(
        self,
        directory: Path,
        plans: Sequence[ResolvedPlan],
        reader: ReleasesReader,
        *,
        epoch: Epoch | None = None,
    ) -> None:
        """Join the plans of all epochs, the present one last, and their releases; see `open`."""
        self.directory = directory
        self.resolved = plans[-1]
        self.epoch = epoch or Epoch()
        self._plans = tuple(plans)
        self._reader = reader
        earlier = [instant for plan in plans[:-1] for instant in plan.boundaries[:-1]]
        declared = Plan.from_dict(self.resolved.plan)
        self._boundaries = (*earlier, *known_boundaries(declared, self.resolved))
        ends = accumulate(len(plan.boundaries) - 1 for plan in plans)
        self._ends = tuple(ends)
        self._zone = zone(self.timezone)

    @classmethod
    def open(cls, directory: str | Path) -> Published:
        """Open the published half of a store.

        Raises:
            UsageError: If the directory is not a store.
            StoreCorruptError: If it is one that lacks a file or has a damaged one.
        """
        path = Path(directory)
        plan, releases = path / PLAN_FILE, path / RELEASES_FILE
        if not plan.is_file() and not releases.is_file():
            kind = "holds no store" if path.is_dir() else "is not a directory"
            raise UsageError(
                f"{path} {kind}.",
                expected=f"a directory with {PLAN_FILE} and {RELEASES_FILE}",
                do="Name the store with `--store DIR`, or create one with `retrodp run`.",
            )
        epoch = read_epoch(path)
        return cls(path, read_plans(path, epoch), ReleasesReader(releases), epoch=epoch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Published({str(self.directory)!r})"

    def close(self) -> None:
        """Let go of the files."""
        self._reader.close()

    @property
    def is_test(self) -> bool:
        """Whether the store was made for tests; every view then says TEST."""
        return self._reader.test

    @property
    def store_id(self) -> str:
        """Random name of the store."""
        return self._reader.store_id

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the resolved plan, hex."""
        return self.resolved.fingerprint

    # The calendar.

    @property
    def timezone(self) -> str:
        """IANA name of the plan's zone."""
        return str(self.resolved.plan["stream"]["timezone"])

    @property
    def horizon(self) -> int:
        """Last round of the present epoch."""
        return self._ends[-1]

    @property
    def goes_on(self) -> bool:
        """Whether the horizon is open and another epoch follows by itself."""
        return len(self.boundaries) - 1 > self.horizon

    @property
    def boundaries(self) -> tuple[int, ...]:
        """Microseconds UTC: round l is [boundaries[l - 1], boundaries[l]).

        Of all epochs; if the horizon is open, what is known of those to come stands after them.
        """
        return self._boundaries

    def plan_of(self, round_: int) -> ResolvedPlan:
        """The resolved plan of the epoch that a round belongs to."""
        _check.round_within(round_, self.horizon)
        return self._plans[bisect_left(self._ends, round_)]

    def start(self, round_: int) -> dt.datetime:
        """When a round begins, in the plan's zone."""
        _check.round_within(round_, self.horizon)
        return self.local(self.boundaries[round_ - 1])

    def end(self, round_: int) -> dt.datetime:
        """When a round ends, which is no longer part of it, in the plan's zone."""
        _check.round_within(round_, self.horizon)
        return self.local(self.boundaries[round_])

    def start_text(self, round_: int) -> str:
        """`start` as ISO 8601 with offset."""
        return self.start(round_).isoformat()

    def local(self, instant: int) -> dt.datetime:
        """What the plan's clocks show at an instant in microseconds UTC."""
        return local_of_instant(instant, self._zone)

    # The releases.

    @property
    def last_round(self) -> int:
        """Last published round; 0 before the first."""
        # An epoch that began after this was opened belongs to whoever opens it next.
        return min(self._reader.last_round, self.horizon)

    @property
    def rounds(self) -> tuple[int, ...]:
        """Published rounds in order."""
        return tuple(round_ for round_ in self._reader.rounds() if round_ <= self.horizon)

    @property
    def releases(self) -> tuple[str, ...]:
        """Names of the plan's releases, in the plan's order; then those of earlier epochs alone."""
        plans = reversed(self._plans)
        return tuple(dict.fromkeys(str(own["name"]) for plan in plans for own in plan.releases))

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """What was resolved for each release in the last epoch that has it."""
        return {str(own["name"]): own for plan in self._plans for own in plan.releases}

    @property
    def steps(self) -> list[Fraction]:
        """Sizes of a step of all releases of all epochs, in units of their statistics."""
        return [Fraction(own["step"]) for plan in self._plans for own in plan.releases]

    def answers(self, round_: int) -> dict[str, Answer]:
        """Answers of one round, in the plan's order; empty if it is not published."""
        names = [str(own["name"]) for own in self.plan_of(round_).releases]
        stored = self._reader.answers(round_)
        return {name: Answer.from_bytes(stored[name]) for name in names if name in stored}

    def answer(self, round_: int, release: str) -> Answer | None:
        """One answer; None if the round is not published."""
        _check.round_within(round_, self.horizon)
        self._known([release])
        stored = self._reader.answer(round_, release)
        return None if stored is None else Answer.from_bytes(stored)

    def each(
        self,
        *,
        releases: Sequence[str] = (),
        first: int | None = None,
        last: int | None = None,
        wanted: Callable[[int, str], bool] = lambda *_: True,
    ) -> Iterator[Answer]:
        """Answers sorted by round, then by UTF-8 bytes of release.

        What is published after the call is not among them.

        Args:
            releases: Names; empty for all.
            first: First round; None for 1.
            last: Last round, itself included; None for the last one published now.
            wanted: Of a round and a release: whether to read the answer at all.

        Raises:
            UsageError: If a release is not of this plan or the rounds are not in order; at once,
                not at the first answer.
        """
        names = sorted(self._known(releases) or self.releases, key=str.encode)
        begin = 1 if first is None else self._inside(first)
        end = self.last_round if last is None else last
        if last is not None and self._inside(last) < begin:
            raise UsageError(f"Round {last} comes before round {begin}.", do="Swap the two.")
        rounds = [round_ for round_ in self.rounds if begin <= round_ <= end]
        return self._each(
            [(round_, name) for round_ in rounds for name in names if wanted(round_, name)]
        )

    def _each(self, which: Sequence[tuple[int, str]]) -> Iterator[Answer]:
        for round_, name in which:
            stored = self._reader.answer(round_, name)
            if stored is not None:
                yield Answer.from_bytes(stored)

    def _known(self, releases: Sequence[str]) -> frozenset[str]:
        asked = frozenset(_check.texts(releases=releases, expected="names of releases"))
        if unknown := sorted(asked.difference(self.releases)):
            raise UsageError(
                f"This plan has no release {unknown[0]!r}.", expected=", ".join(self.releases)
            )
        return asked

    def _inside(self, round_: int) -> int:
        if not 1 <= round_ <= self.horizon:
            raise UsageError(
                f"Round {round_} is outside the plan.", expected=f"1 to {self.horizon}"
            )
        return round_

    def round_of(self, instant: int) -> int:
        """Round of an instant in microseconds UTC; 0 before the start, T + 1 from the end on."""
        return bisect_right(self.boundaries, instant)

    def gaps(self, now: int) -> Gaps:
        """What is missing, late or open at `now`, microseconds UTC."""
        rounds = self.rounds
        published = rounds[-1] if rounds else 0
        current = self.round_of(now)
        known = len(self.boundaries) - 1
        waiting = published + 1 <= known
        return Gaps(
            published=published,
            missing=_runs(sorted(set(range(1, published)).difference(rounds))),
            late=(published + 1, current - 1) if current - 1 > published else None,
            open=current if published < current <= known else None,
            next_end=self.boundaries[published + 1] if waiting else None,
        )

    def gaps_document(self, now: int) -> dict[str, Any]:
        """`gaps` as a part of JSON documents, with local instants."""
        gaps = self.gaps(now)
        return {
            "published": gaps.published,
            "horizon": self.horizon,
            "goes_on": self.goes_on,
            "missing": [list(run) for run in gaps.missing],
            "late": None if gaps.late is None else list(gaps.late),
            "open": gaps.open,
            "next_end": None if gaps.next_end is None else self.local(gaps.next_end).isoformat(),
        }


def _runs(rounds: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Runs of successive numbers, as first and last."""
    found: list[tuple[int, int]] = []
    for round_ in rounds:
        if found and found[-1][1] == round_ - 1:
            found[-1] = (found[-1][0], round_)
        else:
            found.append((round_, round_))
    return tuple(found)
