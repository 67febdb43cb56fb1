"""Releases as parts that each need noise of their own: what one record moves, by which factor.

Promise: data independent, and the same for the same plan. A part knows how to make its noise from
an amount of budget and what that noise costs; how much budget it gets is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from retrodp.clustering import arrivals
from retrodp.engine.amounts import most_moved, planned_bins, protection_of
from retrodp.engine.compile import decided, factor_of, is_sparse, statistic_of
from retrodp.engine.sampled import Sampling
from retrodp.errors import NotInThisVersionError, PlanError
from retrodp.mechanisms.calibrate import (
    MOST_DENSE_ROUNDS,
    choose_any_factor,
    choose_factor,
    gaussian_process,
    laplace_process,
)
from retrodp.mechanisms.calibrated import CalibratedNoise, losses_of
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.dense import DenseFactor
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.processes import AnyFactor, Process
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.norms import Norms
from retrodp.statistics.contract import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One component of a release on its way to calibrated noise.

    Attributes:
        label: Its name, unique in the plan.
        factor: Of the counting matrix of its horizon.
        component: What is measured.
        split: Records of one unit that meet in each of its coordinates, at worst.
        share: Of the plan's budget.
        level: Of its intervals.
        norms: How far one unit moves all coordinates together, where that is known to be less.
        auto: Whether the plan leaves the factor open.
        window: Of the release, in rounds.
    """

    label: str
    factor: AnyFactor
    component: Component
    split: tuple[int, ...]
    share: Fraction
    level: Fraction
    norms: Norms | None
    auto: bool
    window: int | None

    @property
    def alternatives(self) -> list[Part]:
        """The part under each factor that it may have in some epoch of an open horizon."""
        horizon = self.factor.horizon
        factors = [self.factor]
        if self.auto:
            factors.append(choose_factor("auto", horizon=horizon, law="gaussian"))
            if self.window is not None:
                factors.append(FreshFactor(horizon=horizon, window=self.window))
        return [replace(self, factor=factor) for factor in factors]

    @property
    def growing(self) -> arrivals.Part | None:
        """The part as counters that only grow, if it is one."""
        if not self.component.grows:
            return None
        assert self.norms is not None
        return arrivals.Part(
            name=self.label, share=Fraction(1), norms=self.norms, moved=sum(self.split)
        )

    def gaussian(self, rho: Fraction) -> Process:
        """Its noise at its share of rho."""
        if self.growing is not None:
            assert isinstance(self.factor, DenseFactor | BinaryFactor)
            return arrivals.gaussian_part(self.growing, self.factor, rho * self.share)
        if self.norms is not None:
            # As one coordinate that moves by one step, at its part of the budget.
            return gaussian_process(
                self.factor, rho=rho * self.share / self.norms.l2_squared, amount=1
            )
        return gaussian_process(
            self.factor, rho=rho * self.share, amount=self.component.amount, split=self.split
        )

    def laplace(self, epsilon: Fraction) -> Process:
        """Its noise at its share of epsilon."""
        assert not isinstance(self.factor, DenseFactor)
        if self.growing is not None:
            return arrivals.laplace_part(self.growing, self.factor, epsilon * self.share)
        if self.norms is not None:
            return laplace_process(
                self.factor, epsilon=epsilon * self.share / self.norms.l1, amount=1
            )
        return laplace_process(
            self.factor,
            epsilon=epsilon * self.share,
            amount=self.component.amount,
            split=self.split,
        )

    def losses(self, process: Process) -> tuple[PrivacyLoss, ...]:
        """What it costs under some noise."""
        if self.growing is not None:
            return (arrivals.losses_of(self.growing, process),)
        return losses_of(process, amount=self.component.amount, split=self.split, norms=self.norms)

    def noise(self, process: Process) -> CalibratedNoise:
        """Some noise with what it is charged for, as it is stored."""
        return CalibratedNoise.of(
            self.label,
            process,
            step=self.component.step,
            amount=self.component.amount,
            split=self.split,
            level=self.level,
            norms=self.norms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One release: its parts, whether it has a threshold, and its samples if it draws some."""

    release: Release
    parts: tuple[Part, ...]
    sparse: bool
    share: Fraction
    sampling: Sampling | None = None


def items_of(plan: Plan) -> list[Item]:
    """Every release of a plan with its parts, in the order of the plan.

    Args:
        plan: With a known horizon.

    Raises:
        PlanError: A release cannot be made under the plan.
    """
    return [
        _item(plan, decided(plan, release), plan.share_of(release)) for release in plan.releases
    ]


def _item(plan: Plan, release: Release, share: Fraction) -> Item:
    _refuse_open_sums(plan, release)
    components = statistic_of(plan, release).components
    if any(component.amount == 0 for component in components):
        raise PlanError(
            f"release.{release.name} adds up a column that has a single value.",
            do="Widen the column's min and max.",
        )
    factor = _factor(plan, release)
    protection = protection_of(plan)
    parts = tuple(
        Part(
            label=f"{release.name}/{component.name}" if component.name else release.name,
            factor=factor,
            component=component,
            split=tuple(
                records
                for columns in component.partitions
                for records in protection.worst_split(columns)
            ),
            share=share * component.share,
            # Parts that make up one number share the allowed miss of its interval.
            level=1 - (1 - release.level) / (1 if component.separate else len(components)),
            norms=component.norms and component.norms.of_records(protection.max_records),
            auto=release.factor == "auto" and factor_of(plan, release) is None,
            window=release.window,
        )
        for component in components
    )
    return Item(
        release=release,
        parts=parts,
        sparse=is_sparse(plan, release),
        share=share,
        sampling=Sampling.of(plan, release, share),
    )


def _factor(plan: Plan, release: Release) -> AnyFactor:
    horizon, law = plan.stream.horizon, plan.privacy.law
    dictated = factor_of(plan, release)
    if dictated is not None:
        return dictated
    if not plan.privacy.forward_secrecy:
        return choose_any_factor(
            release.factor,
            horizon=horizon,
            law=law,
            window=release.window,
            coordinates=planned_bins(plan, release),
            amount=most_moved(plan, release),
        )
    if release.factor == "dense":
        raise PlanError(
            f'release.{release.name}.factor = "dense" under forward secrecy: all noise of a dense '
            "factor stays derivable from the key until the horizon, that of past rounds too.",
            expected="privacy.forward_secrecy = false",
            do="Set it if whoever holds the key may see past counts, or leave factor out.",
        )
    return choose_factor(release.factor, horizon=horizon, law=law, window=release.window)


def _refuse_open_sums(plan: Plan, release: Release) -> None:
    public_only = kinds.Sum | kinds.Mean | kinds.Quantiles | kinds.Cdf | kinds.Range
    measured = getattr(release.statistic, "inner", release.statistic)
    if isinstance(measured, public_only) and not plan.is_public(release.by):
        raise NotInThisVersionError(
            f"release.{release.name}: {release.kind} by an open-domain column is not in this version.",
            do="Group by category or boolean columns, or publish a histogram.",
        )


def refuse_long_dense(plan: Plan) -> None:
    """A dense factor ends long before the epochs of an open horizon do."""
    series = plan.stream.epochs
    if series is None or series.rounds(series.number) <= MOST_DENSE_ROUNDS:
        return
    for release in plan.releases:
        if release.factor == "dense":
            raise PlanError(
                f'release.{release.name}.factor = "dense" covers {MOST_DENSE_ROUNDS} rounds, but '
                f"the last epoch has {series.rounds(series.number)}.",
                do="Leave factor out: short epochs are dense by themselves where that is best.",
            )
