"""What the audit of privacy runs on: one plan a case, with its claim and its worst neighbours.

Promise: the claim is what the plan says and what the accountant reports for it, taken before
anything is tampered with; the neighbours are chosen from the plan and the factor alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from retrodp.audit.coins import Seed
from retrodp.audit.estimate import Claim
from retrodp.audit.parts import components, thresholded
from retrodp.audit.revised import REVISED
from retrodp.audit.structure import Structure, worst_windows
from retrodp.audit.subjects import (
    MODELS,
    STREAMS,
    Filling,
    Model,
    Stream,
    fillings,
    fits,
    plan_of,
)
from retrodp.audit.worlds import Trajectory, Worlds, neighbours, unit_contents
from retrodp.engine.compile import CompiledRelease, compile_plan, keyed
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.mechanisms.lived import lived
from retrodp.noise.processes import AnyFactor
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan

EPSILON, DELTA = 3, "1e-6"  # of the audited plans; a larger epsilon is measured more sharply
MOST_SEEN = 16  # coordinates of one release that are seen each by itself
ENOUGH = 8  # deviations above a threshold at which a bin is always published

Together = Mapping[str, Mapping[str, Any]]
"""Tables of releases that are made under one plan."""


def kinds_of(tables: Together) -> frozenset[str]:
    """Kinds of these releases."""
    return frozenset(table["kind"] for table in tables.values())


TOGETHER: Mapping[str, Together] = {
    "two counts": {
        "all": {"kind": "count"},
        "some": {"kind": "count", "where": "gift"},
    },
    "count, sum, histogram": {
        "lines": {"kind": "count", "share": "1/2"},
        "money": {"kind": "sum", "of": "amount", "by": "country"},
        "products": {"kind": "histogram", "by": "product"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One plan under audit.

    Attributes:
        title: For people.
        model: "zcdp" or "pure".
        stream: Kind of stream, which decides the unit.
        plan: What is promised.
        resolved: With all numbers.
        mechanisms: By release; replaced where a fault is planted.
        claim: Of all releases together.
        horizon: Rounds.
    """

    title: str
    model: Model
    stream: Stream
    plan: Plan
    resolved: ResolvedPlan
    releases: tuple[CompiledRelease, ...]
    claim: Claim
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)

    @classmethod
    def of(  # noqa: PLR0913  what distinguishes the cases
        cls,
        title: str,
        tables: Together,
        *,
        model: Model,
        horizon: int,
        stream: Stream = "ids",
        epsilon: float | str = EPSILON,
        delta: float | str = DELTA,
    ) -> Case:
        """Resolve the plan and take its claim."""
        plan = plan_of(
            tables, model=model, stream=stream, horizon=horizon, epsilon=epsilon, delta=delta
        )
        resolved = resolve(plan)
        hashing = Seed("0" * 32).keys(horizon, "hash")  # any: the worst are so for each
        releases = keyed(compile_plan(plan, resolved), hashing)
        losses = [loss for release in releases for loss in release.mechanism.cost()]
        parts = {name: Fraction(text) for name, text in resolved.budget["delta_parts"].items()}
        beside = sum(part for name, part in parts.items() if name != "conversion")
        claim = Claim.of_losses(losses, epsilon=plan.privacy.epsilon, beside=Fraction(beside))
        return cls(
            title=title,
            model=model,
            stream=stream,
            plan=plan,
            resolved=resolved,
            releases=releases,
            claim=claim,
            mechanisms={release.name: lived(release.mechanism) for release in releases},
        )

    @property
    def horizon(self) -> int:
        """Rounds."""
        return self.plan.stream.horizon

    @property
    def factor(self) -> AnyFactor:
        """Of the first release."""
        return self.releases[0].mechanism.factor

    @property
    def sparse(self) -> dict[str, SparseHistogram]:
        """Releases with a threshold, as they are now."""
        parts = {name: thresholded(mechanism) for name, mechanism in self.mechanisms.items()}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def _declared(self) -> Mapping[str, Mechanism]:
        if not self.known:
            return self.vector().mechanisms
        return {release.name: lived(release.mechanism) for release in self.releases}

    @property
    def _declared_sparse(self) -> list[SparseHistogram]:
        """Releases with a threshold, as they were planned."""
        parts = [thresholded(release.mechanism) for release in self.releases]
        return [part for part in parts if part is not None]

    def tampered(self, tamper: Callable[[Mechanism], Mechanism]) -> Case:
        """The same claim about other mechanisms."""
        return replace(
            self,
            mechanisms={name: tamper(inner) for name, inner in self.mechanisms.items()},
        )

    @property
    def known(self) -> bool:
        """Whether the audit knows how every release makes its numbers from totals and noise."""
        return all(components(release.mechanism) is not None for release in self.releases)

    def vector(self) -> Case:
        """The noisy coordinates behind the releases, each as a count of its own.

        For kinds whose numbers the audit does not follow: whatever they publish is made of these,
        so that what holds for the coordinates holds for it.
        """
        noises = [
            (f"{entry['name']} {number}", CalibratedNoise.from_spec(spec))
            for entry in self.resolved.releases
            for number, spec in enumerate([entry["noise"], *entry["further"]])
        ]
        return replace(self, mechanisms={name: Counter.of(noise) for name, noise in noises})

    def together(self) -> dict[str, int]:
        """By release of `vector`, how many of its coordinates are seen as one sum.

        Coordinates of which a unit moves every one alike, under independent noise of one law, are
        told from their sum where the noise is Gaussian (it is sufficient), and nearly so where
        they are many; so hundreds of them are seen as a few sums.
        """
        found = {}
        for name, mechanism in self.vector().mechanisms.items():
            assert isinstance(mechanism, Counter)
            moved = _worst_vector(mechanism.noise)
            alike = len(set(moved)) == 1
            found[name] = _part_of(len(moved)) if alike and len(moved) > MOST_SEEN else 1
        return found

    def vector_paths(self, begin: int, end: int) -> list[Trajectory]:
        """The most that one unit moves the coordinates of `vector`, in rounds begin..end - 1."""
        nothing = (0,) * self.horizon
        found = []
        together = self.together()
        for name, mechanism in self.vector().mechanisms.items():
            assert isinstance(mechanism, Counter)
            vector, size = _worst_vector(mechanism.noise), together[name]
            for first in range(0, len(vector), size):
                moved = sum(vector[first : first + size])
                path = tuple(
                    moved if begin <= round_ < end else 0 for round_ in range(1, self.horizon + 1)
                )
                label = f"coordinate {first}".encode()
                found.append(Trajectory(release=name, label=label, zero=path, one=nothing))
        return found

    def structures(self) -> dict[tuple[str, str], Structure]:
        """Of the declared factor of every component: what the adversary believes."""
        return {
            (name, component): Structure.of(noise.process.factor)
            for name, mechanism in self._declared.items()
            for component, noise in (components(mechanism) or {}).items()
        }

    def neighbours(self, most: int) -> list[Worlds]:
        """Worst neighbours: in sparse releases a bin of its own, then `most` windows in full bins."""
        chosen = self.windows(most)
        longest = self._longest
        contents = unit_contents(self.plan, self.releases)
        found = []
        if self._declared_sparse:
            whole = (1, min(self.horizon + 1, 1 + longest))
            found += [
                neighbours(
                    self.plan,
                    records,
                    begin=begin,
                    end=end,
                    base=others,
                    beside=self._crowd,
                    name=f"{what} beside {others} others, added in {begin}, {self._until(end)}",
                )
                for what, records in contents[:2]
                for (begin, end), others in ((chosen[0], 0), (whole, 0), (whole, 1))
            ]
        for number, (begin, end) in enumerate(chosen):
            what, records = contents[number % len(contents)]
            found.append(
                neighbours(
                    self.plan,
                    records,
                    begin=begin,
                    end=end,
                    base=self._crowd,
                    beside=self._crowd,
                    name=f"{what}, added in {begin}, {self._until(end)}",
                )
            )
        return found

    def windows(self, most: int) -> list[tuple[int, int]]:
        """The worst windows of a life, at most so many."""
        law = "gaussian" if self.model == "zcdp" else "laplace"
        structure = Structure.of(self.factor)
        if not self._grows:
            return worst_windows(structure, law=law, longest=self._longest, most=most)
        every = worst_windows(structure, law=law, longest=None, most=self.horizon**2)
        return [pair for pair in every if pair[1] > self.horizon][:most]

    @property
    def _grows(self) -> bool:
        """Whether a unit moves counters of arrivals, which stay moved to the horizon."""
        return any(
            component.grows
            for release in self.releases
            for component in release.statistic.components
        )

    @property
    def _longest(self) -> int:
        """Longest window in which a record counts."""
        return min(release.window or self.horizon for release in self.releases)

    def _until(self, end: int) -> str:
        return "never deleted" if end > self.horizon else f"deleted in {end}"

    @property
    def _crowd(self) -> int:
        """Records of others that keep a bin above its threshold."""
        return max(
            (
                one.threshold + int(ENOUGH * max(map(float, one.noise.stddev)))
                for one in self._declared_sparse
            ),
            default=0,
        )


def _worst_vector(noise: CalibratedNoise) -> list[int]:
    """Steps by which one unit moves each coordinate: as much as its bounds allow, at first."""
    most = [records * noise.amount for records in noise.split]
    if noise.norms is None:
        return most
    laplace = noise.process.law == "laplace"
    left = noise.norms.l1 if laplace else noise.norms.l2_squared
    vector = []
    for bound in most:
        moved = min(bound, left if laplace else math.isqrt(left))
        left -= moved if laplace else moved * moved
        vector.append(moved)
    return vector


def _part_of(length: int) -> int:
    """Least divisor of a length that leaves at most `MOST_SEEN` parts."""
    return next(
        size for size in range(1, length + 1) if length % size == 0 and length // size <= MOST_SEEN
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A case before its plan is resolved."""

    title: str
    model: Model
    tables: Together
    stream: Stream = "ids"

    @property
    def kinds(self) -> frozenset[str]:
        """Of its releases."""
        return kinds_of(self.tables)

    def case(self, horizon: int) -> Case:
        """Resolve it."""
        return Case.of(
            self.title, self.tables, model=self.model, horizon=horizon, stream=self.stream
        )


def outlines(*, deep: bool) -> list[Outline]:
    """What the audit runs on: every kind under both models and every unit; plans of several.

    Deep: every filling as "auto" chooses, with a window, a condition and dense noise, and under the
    other units; every factor with counts, sums and histograms. Else every kind as "auto" chooses;
    every factor, window and condition with a count.
    """
    every = [one for one in fillings() if not one.title.startswith(AT_HEADS)]
    found = []
    for model in MODELS:
        tables = [filling for filling in every if fits(filling, model)]
        found += [
            Outline(title=filling.title, model=model, tables={"r": filling.table})
            for filling in tables
            if (_in_deep(filling) if deep else _in_short(filling))
        ]
        found += [
            Outline(title=title, model=model, tables=together)
            for title, together in TOGETHER.items()
        ]
        found += [
            Outline(
                title=f"{filling.title}, {stream}",
                model=model,
                tables={"r": filling.table},
                stream=stream,
            )
            for stream in STREAMS
            for filling in tables
            if stream != "ids" and filling.title.endswith(", auto")
            if deep or filling.title.startswith(OTHER_UNITS)
        ]
    return found


AT_HEADS = "distinct recompute"
"""Draws its noise at the heads of blocks alone. The audit reads coordinates in every round, which would
accuse it of what it never publishes; that no life meets more heads than are charged is tested."""

OTHER_UNITS = ("count,", "sum by country,", "histogram by product,", "cube by country")
SOME_FACTORS = ("auto", "binary", "dense", "window")  # of an open histogram, in the short audit
MAIN = ("count", "sum", "histogram by country", "histogram by product")


def _in_deep(filling: Filling) -> bool:
    kind, _, rest = filling.title.partition(", ")
    if rest in REVISED:
        return rest == "revised" and "product" not in kind  # see `audit.revised`
    return kind in MAIN or rest in {"auto", "window", "where", "dense"}


def _in_short(filling: Filling) -> bool:
    kind, _, rest = filling.title.partition(", ")
    if rest in REVISED:
        return kind == "count" and _in_deep(filling)
    open_bins = kind == "histogram by product" and rest in SOME_FACTORS
    one_of_kind = kind in {"sum by country", "cube by country and gift"} or " by " not in kind
    histogram = kind.startswith("histogram")
    return kind == "count" or open_bins or (rest == "auto" and (one_of_kind or histogram))
