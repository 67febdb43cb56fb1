"""Planted faults of privacy: mistakes of real systems, each of which the audit must catch.

For the audit's own control only. A fault keeps the claim of the sound mechanism it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from retrodp.audit.cases import EPSILON, TOGETHER, Case, Together
from retrodp.audit.coins import Seed
from retrodp.audit.privacy import Size, rows_of
from retrodp.audit.released import smaller, with_noise
from retrodp.audit.report import FAILURES, Row
from retrodp.audit.structure import Structure, window
from retrodp.audit.subjects import Model, Stream
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Mechanism, Retroactive
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.noise.factors.contract import Factor, Profile, WeightedNode
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import Node, NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.privacy.loss import PrivacyLoss

Change = Callable[[CalibratedNoise], CalibratedNoise]


@dataclass(frozen=True, slots=True, kw_only=True)
class MisusedFactor:
    """A factor whose rounds use other nodes than it says."""

    inner: Factor
    use: Callable[[Factor, int], tuple[WeightedNode, ...]]

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def horizon(self) -> int:
        return self.inner.horizon

    @property
    def denominator(self) -> int:
        return self.inner.denominator

    @property
    def window_l1(self) -> int:
        return self.inner.window_l1

    @property
    def window_l2sq(self) -> int:
        return self.inner.window_l2sq

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        return self.inner.window_shape

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        return self.use(self.inner, round)

    def last(self, node: Node, /) -> int:
        return self.horizon

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        return self.inner.unit_variance(round)

    def profile(self) -> Profile:
        return self.inner.profile()

    def spec(self) -> dict[str, object]:
        return self.inner.spec()


def _misused(use: Callable[[Factor, int], tuple[WeightedNode, ...]]) -> Change:
    def change(noise: CalibratedNoise) -> CalibratedNoise:
        factor = MisusedFactor(inner=noise.process.factor, use=use)
        return replace(noise, process=replace(noise.process, factor=factor))

    return change


def _without_finest(factor: Factor, round_: int) -> tuple[WeightedNode, ...]:
    nodes = factor.nodes(round_)
    return nodes[:-1] or nodes


def _shared_between_two(factor: Factor, round_: int) -> tuple[WeightedNode, ...]:
    """Round 3 uses the finest node of round 1 instead of its own."""
    nodes = factor.nodes(round_)
    return (*nodes[:-1], factor.nodes(1)[-1]) if round_ == 3 else nodes


def _without_sides(factor: Factor, round_: int) -> tuple[WeightedNode, ...]:
    return tuple((("", *node[1:]), weight) for node, weight in factor.nodes(round_))


def _fresh_charged_once(noise: CalibratedNoise) -> CalibratedNoise:
    """Noise drawn anew every round, each at the scale of a single release."""
    process = noise.process
    charged = (
        process.factor.window_l1 if process.law == "laplace" else process.factor.window_l2sq
    )
    fresh = FreshFactor(horizon=noise.horizon, window=1)
    return replace(noise, process=replace(process, factor=fresh, scale=process.scale / charged))


def _additions_only(noise: CalibratedNoise) -> CalibratedNoise:
    """The scale for records that are never deleted."""
    process, horizon = noise.process, noise.horizon
    structure = Structure.of(process.factor)
    size = structure.l1 if process.law == "laplace" else structure.l2_squared
    needed = max(size(window(horizon, begin, horizon + 1)) for begin in range(1, horizon + 1))
    charged = process.factor.window_l1 if process.law == "laplace" else process.factor.window_l2sq
    scale = process.scale * Fraction(round(needed * 1000), 1000) / charged
    return replace(noise, process=replace(process, scale=scale))


def _one_record(noise: CalibratedNoise) -> CalibratedNoise:
    """Several records of one person charged as one."""
    several = sum(noise.split)
    if noise.process.law == "gaussian":
        several = sum(records**2 for records in noise.split)
    scale = noise.process.scale / several
    return replace(noise, process=replace(noise.process, scale=scale), split=(1,))


def _amount_of_one(noise: CalibratedNoise) -> CalibratedNoise:
    """A sum charged as if a record moved it by one step."""
    return smaller(replace(noise, amount=1), Fraction(noise.amount))


def _of_noise(change: Change) -> Callable[[Mechanism], Mechanism]:
    return lambda mechanism: with_noise(mechanism, change)


def _shared_labels(mechanism: Mechanism) -> Mechanism:
    """Every release draws its noise under one name."""
    return with_noise(mechanism, lambda noise: replace(noise, release="noise"))


def _lower(by: int) -> Callable[[Mechanism], Mechanism]:
    def tamper(mechanism: Mechanism) -> Mechanism:
        assert isinstance(mechanism, SparseHistogram)
        return SparseHistogram.of(
            mechanism.noise, threshold=mechanism.threshold - by, max_bins=mechanism.max_bins
        )

    return tamper


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A mechanism whose release goes wrong; of a kind that the audit does not know."""

    inner: Any

    @property
    def name(self) -> str:
        name: str = self.inner.name
        return name

    @property
    def retroactive(self) -> Retroactive:
        return "exact"

    @property
    def adaptive(self) -> Adaptive:
        return "yes"

    @property
    def step(self) -> Fraction:
        step: Fraction = self.inner.step
        return step

    @property
    def factor(self) -> Factor:
        factor: Factor = self.inner.factor
        return factor

    def cost(self) -> tuple[PrivacyLoss, ...]:
        cost: tuple[PrivacyLoss, ...] = self.inner.cost()
        return cost

    def describe(self) -> dict[str, Any]:
        return {"mechanism": "planted"}

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        answer: Answer = self.inner.release(round_, exact, keys)
        return answer


class EvenNoise(_Wrapped):
    """Noise of even numbers only: the parity of the exact count is published."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        answer: Answer = self.inner.release(round_, exact, keys)
        total = exact.get(b"", 0)
        values = [total + 2 * round(((value or 0) - total) / 2) for value in answer.values]
        return replace(answer, values=tuple(values))


class NoiseOfData(_Wrapped):
    """Noise keyed by the data: each change hands out a fresh draw of the same release."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        total = exact.get(b"", 0)
        noise = replace(self.inner.noise, release=f"noise of {total}")
        (draw,) = noise.draw(round_, keys, Coordinates.of_indices(1)).tolist()
        answer: Answer = noise.answer(round_, None, [total + draw])
        return answer


class FloatNoise(_Wrapped):
    """The count rounded, then a float from a textbook sampler added: low bits tell the count."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        key = keys.fresh_key(release=self.name, purpose="float", round=round_)
        word, sign = BlockPRF(key).blocks(Coordinates.of_indices(1))[0].tolist()
        uniform = ((word >> 11) + 1) * 2.0**-53
        size = float(self.inner.noise.process.scale)
        noise = (1 if sign & 1 else -1) * size * float(np.log(uniform))
        value: Any = float(exact.get(b"", 0)) + noise
        return self.inner.noise.answer(round_, None, [value])  # type: ignore[no-any-return]


class ByPosition(_Wrapped):
    """Noise of a bin keyed by its place in the list: a new bin hands its noise to the next."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        labels = sorted(label for label, total in exact.items() if total >= 1)
        noise = self.inner.noise.draw(round_, keys, Coordinates.of_indices(len(labels))).tolist()
        values = [exact[label] + draw for label, draw in zip(labels, noise, strict=True)]
        kept = [
            (label.decode(), value)
            for label, value in zip(labels, values, strict=True)
            if value >= self.inner.threshold
        ]
        answer: Answer = self.inner.noise.answer(
            round_,
            [label for label, _ in kept],
            [value for _, value in kept],
            threshold=self.inner.threshold,
        )
        return answer


class OneBlock(_Wrapped):
    """All bins of a histogram share one draw: their differences are exact."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        (draw,) = self.inner.noise.draw(round_, keys, Coordinates.of_indices(1)).tolist()
        values = [exact.get(label.encode(), 0) + draw for label in self.inner.bins]
        answer: Answer = self.inner.noise.answer(round_, self.inner.bins, values)
        return answer


COUNT: Together = {"r": {"kind": "count"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault and the smallest plan that has it.

    Attributes:
        title: What is wrong.
        tamper: Puts it into a mechanism.
        tables: Releases of the plan.
        model: Of the plan.
        stream: Of the plan.
        horizon: Rounds; None for the audit's.
        runs: At least so many, where the audit itself draws fewer.
        asked: Runs where the release is asked as it stands; 0 for the audit's number.
        epsilon: Of the plan.
        windows: Tried; None for the audit's number.
    """

    title: str
    tamper: Callable[[Mechanism], Mechanism]
    tables: Together = field(default_factory=lambda: COUNT)
    model: Model = "pure"
    stream: Stream = "ids"
    horizon: int | None = None
    runs: int = 0
    asked: int = 0
    epsilon: int = EPSILON
    windows: int | None = None

    def case(self, horizon: int) -> Case:
        """The sound case; `planted` breaks it."""
        return Case.of(
            self.title,
            self.tables,
            model=self.model,
            stream=self.stream,
            horizon=self.horizon or horizon,
            epsilon=self.epsilon,
        )

    def planted(self, horizon: int) -> Case:
        """The case with the fault; the claim stays."""
        return self.case(horizon).tampered(self.tamper)


def _count(factor: str) -> Together:
    return {"r": {"kind": "count", "factor": factor}}


_SPARSE: Together = {"r": {"kind": "histogram", "by": "product"}}
_SUM: Together = {"r": {"kind": "sum", "of": "amount"}}
_halved = _of_noise(lambda noise: smaller(noise, Fraction(2)))

# Asked once a key, which is slow: little is drawn, and the claim is one that little can break.
_ASKED: Any = {"epsilon": 1, "windows": 1, "asked": 600, "horizon": 5}

FAULTS: tuple[Fault, ...] = (
    Fault(title="scale halved, Laplace", tamper=_halved, tables=_count("binary")),
    Fault(title="scale halved, Gaussian", tamper=_halved, model="zcdp"),
    Fault(
        title="scale too small by 1.5, Gaussian",
        tamper=_of_noise(lambda noise: smaller(noise, Fraction(3, 2))),
        model="zcdp",
    ),
    Fault(
        title="node shared by two rounds, Laplace",
        tamper=_of_noise(_misused(_shared_between_two)),
        tables=_count("binary"),
    ),
    Fault(
        title="node shared by two rounds, Gaussian",
        tamper=_of_noise(_misused(_shared_between_two)),
        tables=_count("binary"),
        model="zcdp",
    ),
    Fault(
        title="finest node left out, haar",
        tamper=_of_noise(_misused(_without_finest)),
        tables=_count("haar"),
        model="zcdp",
    ),
    Fault(
        title="finest node left out, binary",
        tamper=_of_noise(_misused(_without_finest)),
        tables=_count("binary"),
    ),
    Fault(
        title="delannoy without sides",
        tamper=_of_noise(_misused(_without_sides)),
        tables=_count("delannoy"),
    ),
    Fault(
        title="noise drawn anew every round, charged once, Laplace",
        tamper=_of_noise(_fresh_charged_once),
    ),
    Fault(
        title="noise drawn anew every round, charged once, Gaussian",
        tamper=_of_noise(_fresh_charged_once),
        model="zcdp",
    ),
    Fault(
        title="charged for additions only, Laplace",
        tamper=_of_noise(_additions_only),
        tables=_count("binary"),
    ),
    Fault(
        title="charged for additions only, Gaussian",
        tamper=_of_noise(_additions_only),
        tables=_count("binary"),
        model="zcdp",
        horizon=15,
        runs=60_000,
    ),
    Fault(
        title="a person's records charged as one, Laplace",
        tamper=_of_noise(_one_record),
        stream="persons",
    ),
    Fault(
        title="a person's records charged as one, Gaussian",
        tamper=_of_noise(_one_record),
        stream="persons",
        model="zcdp",
    ),
    Fault(title="a sum charged as a count", tamper=_of_noise(_amount_of_one), tables=_SUM),
    Fault(
        title="two releases under one label",
        tamper=_shared_labels,
        tables=TOGETHER["two counts"],
        model="zcdp",
    ),
    Fault(title="threshold one too low, Laplace", tamper=_lower(1), tables=_SPARSE),
    Fault(title="threshold one too low, Gaussian", tamper=_lower(1), tables=_SPARSE, model="zcdp"),
    Fault(title="no threshold", tamper=_lower(10**6), tables=_SPARSE),
    Fault(
        title="all bins share one draw",
        tamper=OneBlock,
        tables={"r": {"kind": "histogram", "by": "country"}},
        **_ASKED,
    ),
    Fault(
        title="noise keyed by the bin's place",
        tamper=ByPosition,
        tables=_SPARSE,
        **_ASKED,
    ),
    Fault(title="noise keyed by the data", tamper=NoiseOfData, **_ASKED),
    Fault(title="even noise shows the parity", tamper=EvenNoise, **_ASKED),
    Fault(
        title="float noise shows its low bits",
        tamper=FloatNoise,
        horizon=3,
        epsilon=1,
        windows=1,
        asked=6_000,
    ),
)


def audit_fault(fault: Fault, seed: Seed, size: Size, *, miss: float) -> list[Row]:
    """All rows that the audit gives for a planted fault."""
    own = replace(
        size,
        runs=max(size.runs, fault.runs),
        asked=fault.asked or size.asked,
        windows=fault.windows or size.windows,
    )
    return list(rows_of(fault.planted(size.horizon), seed, own, miss=miss))


def controls(seed: Seed, size: Size, *, miss: float) -> Iterator[Row]:
    """One row for each fault: caught by the row of the audit that accuses it, or missed.

    Args:
        seed: Of keys.
        size: As the audit itself uses it.
        miss: Of one case, as the audit itself uses it.
    """
    for number, fault in enumerate(FAULTS):
        rows = audit_fault(fault, seed.further("fault", number), size, miss=miss)
        accusing = [row for row in rows if row.verdict in FAILURES]
        shown = accusing[0] if accusing else rows[0]
        yield Row(
            mechanism=fault.title,
            model=fault.model,
            factor=shown.factor,
            test=f"planted fault, {shown.test}",
            claim=shown.claim,
            measured=shown.measured,
            confidence=shown.confidence,
            verdict="caught" if accusing else "missed",
            details=shown.details,
        )
