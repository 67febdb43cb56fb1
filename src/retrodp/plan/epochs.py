"""The epochs of a store: what ran before the present one, its calendar and its budget.

An epoch is a run of rounds under one key, one resolved plan and one budget, which starts from the
records that survive the epoch before it (KKMNS remark 3.6). There are three ways into one, and one
account of all of them, `epoch.json`:

- a plan with an open horizon goes on by itself, from a budget stated for all of its epochs;
- a successor plan goes on in the same store, with a budget of its own;
- a restored back-up goes on in another store, with a budget of its own.

In the same store rounds are numbered on; in another they begin again with 1, and survivors keep
their stamps (round 0 is the one before the start, then -1, ...). All of it is public.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from retrodp._check import exact
from retrodp.errors import PlanError, StoreCorruptError
from retrodp.plan.calendar import Calendar
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan, canonical_json

FORMAT = 1
NAME = "epoch.json"
FIRST_PLAN = "plan.resolved.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessor:
    """An epoch that ended.

    Attributes:
        store: Public name of its store.
        fingerprint: Of its resolved plan.
        epsilon: Exact text; of the whole series if the plan's horizon was open.
        delta: Exact text; "0" if it had none.
        last_round: Last of its rounds that was published anywhere; None if nobody knows.
        rounds: Of it in this store; 0 if its store was another.
        continued: Whether the next epoch spends from the same budget.
    """

    store: str
    fingerprint: str
    epsilon: str
    delta: str
    last_round: int | None
    rounds: int = 0
    continued: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON; what a first epoch does not need is left out."""
        defaults = {own.name: own.default for own in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What was there before the present epoch of a store.

    Attributes:
        past: Instants at which the rounds before round 1 began, microseconds since 1970 UTC, in
            order; the last of them began round 0.
        predecessors: From the first epoch on; those of this store stand last.
    """

    past: tuple[int, ...] = ()
    predecessors: tuple[Predecessor, ...] = ()

    @property
    def digest(self) -> str | None:
        """SHA-256 of the file, hex; None for a store that goes on from nothing."""
        return hashlib.sha256(self.to_bytes()).hexdigest() if self.predecessors else None

    @property
    def here(self) -> tuple[Predecessor, ...]:
        """Those that ran in this store."""
        return tuple(own for own in self.predecessors if own.rounds)

    @property
    def number(self) -> int:
        """Of the present epoch in this store, from 1."""
        return len(self.here) + 1

    @property
    def rounds_before(self) -> int:
        """Rounds of this store that lie before the present epoch."""
        return sum(own.rounds for own in self.here)

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical_json(
            {
                "format": FORMAT,
                "past": list(self.past),
                "predecessors": [own.to_dict() for own in self.predecessors],
            }
        )

    @classmethod
    def from_bytes(cls, content: bytes) -> Epoch:
        """What `to_bytes` wrote.

        Raises:
            StoreCorruptError: Anything else.
        """
        try:
            document = json.loads(content)
            format_ = document.pop("format")
            epoch = msgspec.convert(document, cls)
            epoch.budget(Fraction(0), Fraction(0))
        except (ValueError, TypeError, AttributeError, KeyError, PlanError):
            format_, epoch = None, cls()
        ordered = all(early < late for early, late in pairwise(epoch.past))
        # What ran here ran last: in another store afterwards it would have ended all the same.
        grouped = epoch.here == epoch.predecessors[len(epoch.predecessors) - len(epoch.here) :]
        if format_ != FORMAT or not ordered or not grouped or epoch.to_bytes() != content:
            raise StoreCorruptError(
                "epoch.json cannot be read.", do="Restore the file from a back-up of this store."
            )
        return epoch

    def budget(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """What all epochs together spend, that of the present one given; by basic composition.

        Holds whatever the plan of a later epoch was chosen after. The epochs of one open horizon
        share a budget, which counts once.
        """
        for own in self.predecessors:
            own_epsilon, own_delta = exact("epsilon", own.epsilon), exact("delta", own.delta)
            if not own.continued:
                epsilon += own_epsilon
                delta += own_delta
        return epsilon, delta

    def runs_under(self, plan: Plan, resolved: ResolvedPlan) -> bool:
        """Whether the present epoch of a store, resolved so, is the one a successor plan began."""
        return bool(self.here) and plan.to_dict() == dict(resolved.plan)

    def statement(self, resolved: ResolvedPlan) -> dict[str, Any]:
        """The same as a part of a JSON document; `resolved` is the plan of the present epoch.

        `total` is what all epochs spend; with an open horizon that is what all of them may spend,
        and `open_horizon` says which of them this is.
        """
        own = exact("epsilon", resolved.budget["epsilon"]), exact("delta", resolved.budget["delta"])
        statement = self._statement(*own)
        if "epoch" in resolved.budget:
            statement["open_horizon"] = resolved.budget["epoch"]
        return statement

    def with_plan(self, plan: Plan) -> dict[str, Any]:
        """The same for a plan that is not resolved yet."""
        return self._statement(plan.privacy.epsilon, plan.privacy.delta or Fraction(0))

    def _statement(self, own_epsilon: Fraction, own_delta: Fraction) -> dict[str, Any]:
        epsilon, delta = self.budget(own_epsilon, own_delta)
        return {
            "own": {"epsilon": float(own_epsilon), "delta": float(own_delta)},
            "earlier_stores": [asdict(predecessor) for predecessor in self.predecessors],
            "total": {"epsilon": float(epsilon), "delta": float(delta)},
            "exact_total": {"epsilon": str(epsilon), "delta": str(delta)},
            "epoch": self.number,
        }

    def ended(self, resolved: ResolvedPlan, *, store: str, continued: bool) -> Epoch:
        """What the next epoch of the same store has before it.

        Args:
            resolved: Plan of the present epoch, all of whose rounds are published.
            store: Public name of the store.
            continued: Whether the next epoch belongs to the same open horizon.
        """
        rounds = len(resolved.boundaries) - 1
        own = Predecessor(
            store=store,
            fingerprint=resolved.fingerprint,
            epsilon=str(resolved.budget["epsilon"]),
            delta=str(resolved.budget["delta"]),
            last_round=self.rounds_before + rounds,
            rounds=rounds,
            continued=continued,
        )
        return Epoch(past=self.past, predecessors=(*self.predecessors, own))


def resolved_name(number: int) -> str:
    """Name of the file with the resolved plan of an epoch of a store."""
    return FIRST_PLAN if number == 1 else f"plan.resolved.{number}.json"


def read_epoch(directory: Path) -> Epoch:
    """What was there before the present epoch of a store."""
    path = directory / NAME
    return Epoch.from_bytes(path.read_bytes()) if path.exists() else Epoch()


def read_plans(directory: Path, epoch: Epoch) -> tuple[ResolvedPlan, ...]:
    """The resolved plans of all epochs of a store, the present one last.

    Raises:
        StoreCorruptError: One of them is missing, or is not the one that the account names.
    """
    expected = [*(own.fingerprint for own in epoch.here), None]
    return tuple(
        _read_plan(directory / resolved_name(number), fingerprint)
        for number, fingerprint in enumerate(expected, start=1)
    )


def _read_plan(path: Path, fingerprint: str | None) -> ResolvedPlan:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreCorruptError(
            f"{path} cannot be read ({error.strerror}).",
            do="Restore it from a back-up, or see that you may read it.",
        ) from None
    return ResolvedPlan.from_json(content, fingerprint=fingerprint)


def epoch_of_series(resolved: ResolvedPlan) -> int:
    """Number of the epoch within its plan: 1 unless the plan's horizon is open."""
    return int(resolved.budget["epoch"]["number"]) if "epoch" in resolved.budget else 1


def known_boundaries(declared: Plan, resolved: ResolvedPlan) -> tuple[int, ...]:
    """Boundaries of an epoch and, if others will follow by themselves, of the rounds after it.

    Those of the epoch are stored. Those after it are stored when their epoch begins; until then
    they follow the installed zone data, like the dates in a file.
    """
    series = declared.stream.epochs
    if series is None:
        return resolved.boundaries
    number = epoch_of_series(resolved)
    done, known = series.before(number + 1), series.rounds_known_at(number)
    if known == done:
        return resolved.boundaries
    stream = declared.stream
    calendar = Calendar.of(start=stream.start, round_=stream.round, timezone=stream.timezone)
    end = resolved.boundaries[-1]
    ahead = (instant for instant in calendar.boundaries(known)[done + 1 :] if instant > end)
    return (*resolved.boundaries, *ahead)
