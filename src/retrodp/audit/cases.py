"""What the audit of privacy runs on: one plan a case, with its claim and its worst neighbours.

Promise: the claim is what the plan says and what the accountant reports for it, taken before
anything is tampered with; the neighbours are chosen from the plan and the factor alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from retrodp.audit.estimate import Claim
from retrodp.audit.released import components
from retrodp.audit.structure import Structure, worst_windows
from retrodp.audit.subjects import (
    MODELS,
    STREAMS,
    Filling,
    Model,
    Stream,
    fillings,
    plan_of,
    resolvable,
)
from retrodp.audit.worlds import Worlds, neighbours, unit_contents
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.noise.factors.contract import Factor
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan

EPSILON, DELTA = 3, "1e-6"  # of the audited plans; a larger epsilon is measured more sharply
ENOUGH = 8  # deviations above a threshold at which a bin is always published

Together = Mapping[str, Mapping[str, Any]]
"""Tables of releases that are made under one plan."""

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
        releases = compile_plan(plan, resolved)
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
            mechanisms={release.name: release.mechanism for release in releases},
        )

    @property
    def horizon(self) -> int:
        """Rounds."""
        return self.plan.stream.horizon

    @property
    def factor(self) -> Factor:
        """Of the first release."""
        return self.releases[0].mechanism.factor

    @property
    def sparse(self) -> dict[str, SparseHistogram]:
        """Releases with a threshold, as they are now."""
        return {
            name: mechanism
            for name, mechanism in self.mechanisms.items()
            if isinstance(mechanism, SparseHistogram)
        }

    @property
    def _declared_sparse(self) -> list[SparseHistogram]:
        """Releases with a threshold, as they were planned."""
        mechanisms = [release.mechanism for release in self.releases]
        return [one for one in mechanisms if isinstance(one, SparseHistogram)]

    def tampered(self, tamper: Callable[[Mechanism], Mechanism]) -> Case:
        """The same claim about other mechanisms."""
        return replace(
            self,
            mechanisms={name: tamper(inner) for name, inner in self.mechanisms.items()},
        )

    def structures(self) -> dict[tuple[str, str], Structure]:
        """Of the declared factor of every component: what the adversary believes."""
        return {
            (release.name, component): Structure.of(noise.process.factor)
            for release in self.releases
            for component, noise in (components(release.mechanism) or {"": None}).items()
            if noise is not None
        }

    def neighbours(self, most: int) -> list[Worlds]:
        """Worst neighbours: in sparse releases a bin of its own, then `most` windows in full bins."""
        longest = min(
            (release.window or self.horizon for release in self.releases), default=self.horizon
        )
        law = "gaussian" if self.model == "zcdp" else "laplace"
        chosen = worst_windows(Structure.of(self.factor), law=law, longest=longest, most=most)
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
                for what, records in contents
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A case before its plan is resolved."""

    title: str
    model: Model
    tables: Together
    stream: Stream = "ids"

    def case(self, horizon: int) -> Case:
        """Resolve it."""
        return Case.of(
            self.title, self.tables, model=self.model, horizon=horizon, stream=self.stream
        )


def outlines(*, deep: bool) -> list[Outline]:
    """What the audit runs on: every kind under both models and every unit; plans of several.

    Deep: every release the registry can make. Else every kind and filling as "auto" chooses, with
    a window too, and every factor with a count and with an open histogram.
    """
    tables = [filling for filling in fillings() if resolvable(filling)]
    found = []
    for model in MODELS:
        found += [
            Outline(title=filling.title, model=model, tables={"r": filling.table})
            for filling in tables
            if deep or _in_short(filling)
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
            if stream != "ids"
            and filling.title.endswith(", auto")
            and (deep or filling.table["kind"] != "mean")
        ]
    return found


def _in_short(filling: Filling) -> bool:
    every_factor = filling.title.startswith(("count,", "histogram by product,"))
    return every_factor or filling.title.endswith((", auto", ", window"))
