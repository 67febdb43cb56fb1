"""The price of retroactivity: distinct counts that remember, against those that forget.

Kaplan et al. 2026 (arXiv 2609.05329), theorem 6.4: no private and retroactive count of different
items can be more exact on easy streams, on which every item flips seldom between present and
absent, than on the hardest. The mechanism `flippancy` can, because it keeps books of flips. This
measures both on streams of a given flippancy, of as many items as rounds, and says from which
flippancy on memory buys nothing.

Promise: measured errors are of what is published; predicted ones come from the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from retrodp.audit.coins import Seed
from retrodp.audit.report import Row
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.distinct_memory import windows_of
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import choose_factor, worst_error
from retrodp.mechanisms.contract import Seen, Stateful
from retrodp.mechanisms.flippancy import Flippancy, Flips
from retrodp.mechanisms.recompute import Recompute
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import KeyTree
from retrodp.noise.processes import AnyFactor
from retrodp.plan.plan import Plan
from retrodp.statistics.contract import PURPOSE, Keyed
from retrodp.statistics.flips import WATCH
from retrodp.stream.batch import Batch

FLIPPANCIES = (1, 2, 8, 64)
EPSILON, DELTA = "1", "1e-6"
ALLOWED = 0.4
"""Of the predicted error; how far the measured one may be, its own chance included."""

_RELEASE = "d"
_COVERED = 0.9  # of intervals at level 0.95, their chance included


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured.

    Attributes:
        horizon: T.
        keys: Independent keys for each method and stream; ladders, which are slow, get a tenth.
        rounds: Rounds looked at under each key.
    """

    horizon: int
    keys: int
    rounds: int


SMOKE = Size(horizon=512, keys=40, rounds=4)
DEEP = Size(horizon=4096, keys=300, rounds=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A stream of as many items as rounds, all of which flip equally often.

    All items are added one after another, then all are deleted, then added again. With one flip an
    item it is a stream of additions alone, one a round.

    Attributes:
        horizon: T.
        flips: Flips of each item in the whole stream.
    """

    horizon: int
    flips: int

    @property
    def items(self) -> int:
        """Different items."""
        return self.horizon

    def counts(self, round_: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Flips of each item after a round, shape (items,)."""
        waves, rest = divmod(self.flips * round_, self.items)
        return waves + (np.arange(self.items) < rest)

    def present(self, round_: int) -> list[str]:
        """Items that are there after a round."""
        return [f"item {number}" for number in np.flatnonzero(self.counts(round_) & 1).tolist()]

    def known(self, round_: int) -> Flips:
        """What a mechanism that counts flips knows after a round."""
        counts = self.counts(round_)
        flipped = counts[counts > 0].astype(np.uint16)
        return Flips(np.array([b"%d" % number for number in range(len(flipped))], "S16"), flipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to count, ready to run.

    Attributes:
        title: For people.
        release: Statistic and mechanism.
    """

    title: str
    release: CompiledRelease

    @classmethod
    def of(cls, title: str, horizon: int, **keys: Any) -> Method:
        """Resolve a plan that has this release alone."""
        table = {"kind": "distinct", "of": "item", **keys}
        plan = Plan.from_dict(
            {
                "stream": {
                    "start": "2024-01-01",
                    "round": "1h",
                    "horizon": horizon,
                    "forgetting": "partial",
                },
                "columns": {"item": "text"},
                "privacy": {"model": "zcdp", "epsilon": EPSILON, "delta": DELTA},
                "release": {_RELEASE: table},
            }
        )
        (release,) = compile_plan(plan, resolve(plan))
        return cls(title=title, release=release)

    @property
    def retroactive(self) -> bool:
        """Whether it forgets."""
        return self.release.mechanism.retroactive == "exact"

    def answer(self, stream: Waves, round_: int, keys: KeyTree) -> Answer:
        """What is published of the stream in a round."""
        mechanism = self.release.mechanism
        if isinstance(mechanism, Flippancy):
            return mechanism.answer(round_, stream.known(round_), keys)
        if isinstance(mechanism, Recompute):
            head = round_ - (round_ - 1) % mechanism.block
            seen = Seen(self._totals(stream, head, keys), {})
            answer, state = mechanism.advance(head, seen, keys, mechanism.begin())
            if head < round_:
                answer, _ = mechanism.advance(round_, seen, keys, state)
            return answer
        assert not isinstance(mechanism, Stateful)
        return mechanism.release(round_, self._totals(stream, round_, keys), keys)

    def _totals(self, stream: Waves, round_: int, keys: KeyTree) -> Mapping[bytes, int]:
        statistic, items = self.release.statistic, stream.present(round_)
        if isinstance(statistic, Keyed):
            statistic = statistic.keyed(keys.lasting_key(release=_RELEASE, purpose=PURPOSE))
        return statistic.encode(
            Batch(len(items), {"item": list(items)}, np.ones(len(items), dtype=np.int64))
        )

    def predicted(self, rounds: Sequence[int], flips: int) -> float | None:
        """Root mean squared error of those rounds from the plan alone; None if not known."""
        mechanism = self.release.mechanism
        if isinstance(mechanism, Flippancy):
            if mechanism.limits[-1] < flips or len(mechanism.limits) > 1:
                return None  # what is frozen, or which limit is chosen, depends on the data
            noise = mechanism.counts[0]
        elif isinstance(mechanism, Recompute):
            return None  # the age of the answer depends on the data
        else:
            found = getattr(mechanism, "noise", None)
            if found is None or self.brackets:
                return None
            noise = found
        return math.sqrt(sum(float(noise.stddev[r - 1]) ** 2 for r in rounds) / len(rounds))

    @property
    def brackets(self) -> bool:
        """Whether it publishes intervals alone."""
        return "ladder" in self.title


def known(horizon: int, flips: int) -> Method:
    """Memory, told how often items flip."""
    return Method.of("flippancy, w known", horizon, method="flippancy", flips=flips)


def untold(horizon: int) -> list[Method]:
    """Methods that are not told how often items flip."""
    return [
        Method.of("flippancy, doubling", horizon, method="flippancy"),
        Method.of("recompute", horizon, method="recompute"),
        Method.of("fresh", horizon, method="fresh"),
        Method.of("ladder", horizon, method="ladder", expect=[1, horizon]),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Errors of one method on one stream.

    Attributes:
        method: Title.
        retroactive: Whether it forgets.
        flips: Of every item.
        rmse: Root mean squared error; None for a bracket.
        predicted: The same from the plan alone; None if it depends on the data.
        half: Mean half width of the interval of a round.
        covered: Share of intervals that held the truth.
        answers: Looked at.
    """

    method: str
    retroactive: bool
    flips: int
    rmse: float | None
    predicted: float | None
    half: float
    covered: float
    answers: int


def measure(method: Method, stream: Waves, seed: Seed, size: Size) -> Measured:
    """Publish under many keys and compare with the truth."""
    number = max(8, size.keys // 10) if method.brackets else size.keys
    # From the first wave's end to the last round: where items have flipped as often as they will.
    first = max(2, stream.horizon // 3)
    rounds = [round(one) for one in np.linspace(first, stream.horizon, size.rounds)]
    errors, halves, covered = [], [], 0
    for key in range(number):
        keys = seed.keys(stream.horizon, "price", method.title, stream.flips, key)
        for round_ in rounds:
            (figure,) = method.answer(stream, round_, keys).figures()
            value, bounds = figure.value, figure.bounds
            truth = int((stream.counts(round_) & 1).sum())
            errors += [] if value is None else [value - truth]
            halves.append((bounds.high - bounds.low) / 2)
            covered += bounds.low <= truth <= bounds.high
    return Measured(
        method=method.title,
        retroactive=method.retroactive,
        flips=stream.flips,
        rmse=float(np.sqrt(np.mean(np.square(errors)))) if errors else None,
        predicted=method.predicted(rounds, stream.flips),
        half=float(np.mean(halves)),
        covered=covered / len(halves),
        answers=len(halves),
    )


def compared(
    seed: Seed, size: Size, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Measured]:
    """Every method on a stream of every flippancy."""
    others = untold(size.horizon)
    for flips in FLIPPANCIES:
        stream = Waves(horizon=size.horizon, flips=flips)
        for method in (known(size.horizon, flips), *others):
            progress(f"flippancy {flips}, {method.title}")
            yield measure(method, stream, seed, size)


def predicted_crossing(horizon: int) -> int:
    """Least flippancy at which memory no longer pays.

    There the noise of `flippancy` with w known is as large as that of `fresh`, at one budget.
    """
    low, high = 1, horizon
    while low < high:
        middle = (low + high) // 2
        if predicted_ratio(horizon, middle) >= 1:
            high = middle
        else:
            low = middle + 1
    return low


@cache
def _worst_errors(horizon: int) -> tuple[AnyFactor, float, float]:
    tree = choose_factor("auto", horizon=horizon, law="gaussian")
    fresh = FreshFactor(horizon=horizon, window=horizon)
    return tree, worst_error(tree, "gaussian"), worst_error(fresh, "gaussian")


def predicted_ratio(horizon: int, flips: int) -> float:
    """Worst error of `flippancy` with w known over that of `fresh`, at one budget."""
    tree, one, fresh = _worst_errors(horizon)
    return math.sqrt(windows_of(tree, flips) * one / float(1 - WATCH) / fresh)


def audit(seed: Seed, size: Size, progress: Callable[[str], None] = lambda _: None) -> list[Row]:
    """A row for every method and stream, and one for the crossing."""
    found = [*compared(seed, size, progress)]
    progress("the crossing")
    crossing = predicted_crossing(size.horizon)
    return [*map(_row, found), _crossing_row(found, crossing, size)]


def _row(one: Measured) -> Row:
    near = one.rmse is None or one.predicted is None or abs(one.rmse / one.predicted - 1) <= ALLOWED
    sound = near and (one.covered >= _COVERED or one.method == "recompute")
    error = "" if one.rmse is None else f"error {one.rmse:.1f}, "
    predicted = "interval" if one.predicted is None else f"error {one.predicted:.1f}, interval"
    return Row(
        mechanism=one.method,
        model="zcdp",
        factor="forgets" if one.retroactive else "remembers",
        test=f"items that flip {one.flips} times" if one.flips > 1 else "items that flip once",
        claim=predicted,
        measured=f"{error}half width {one.half:.1f}, covers {one.covered:.0%}",
        confidence=0.999,
        verdict="holds" if sound else "accused",
        details={
            "flips": one.flips,
            "retroactive": one.retroactive,
            "rmse": one.rmse,
            "predicted": one.predicted,
            "half_width": one.half,
            "covered": one.covered,
            "answers": one.answers,
        },
    )


def _crossing_row(found: Sequence[Measured], crossing: int, size: Size) -> Row:
    known = {one.flips: one.rmse for one in found if one.method == "flippancy, w known"}
    fresh = {one.flips: one.rmse for one in found if one.method == "fresh"}
    pays = [
        flips
        for flips in known
        if (remembers := known[flips]) is not None
        and (forgets := fresh[flips]) is not None
        and remembers < forgets
    ]
    # Near the crossing chance decides, so only what is well on one side of it is judged.
    ratios = {flips: predicted_ratio(size.horizon, flips) for flips in known}
    judged = [flips for flips, ratio in ratios.items() if max(ratio, 1 / ratio) > 1 + ALLOWED / 2]
    right = all((flips in pays) == (ratios[flips] < 1) for flips in judged)
    return Row(
        mechanism="flippancy against fresh",
        model="zcdp",
        factor="",
        test="crossing",
        claim=f"memory pays below {crossing} flips",
        measured=f"it pays at {', '.join(map(str, pays)) or 'none'} of {FLIPPANCIES}",
        confidence=0.999,
        verdict="holds" if right else "accused",
        details={"crossing": crossing, "horizon": size.horizon, "pays_at": pays},
    )
