"""The kind `sample`: from the plan and its budget to a sampling compiler, all of it decided once.

Promise: what a sampled release spends is what the accountant is told, with the other releases of
the plan and under one budget; nothing here sees data.

How its budget is divided: a gate's noisy count takes `GATE_SHARE` of the release's share, like any
other count. The rest goes to the samples: the mechanism runs at the largest epsilon at which they
are together as private as Gaussian noise of that part of rho is (one delta, one epsilon); under pure
epsilon, at which the losses of all rounds add up to that part. The accountant then composes exactly
what was chosen. A function of the user's own has the guarantee it declares; the rest of the plan
gets what it leaves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

from retrodp.engine.code import own_function, require_source
from retrodp.errors import BudgetError, PlanError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.oneshot.centres import NoisyLloyd
from retrodp.mechanisms.oneshot.contract import OneShotMechanism
from retrodp.mechanisms.oneshot.mean import NoisyMean
from retrodp.mechanisms.oneshot.own import OwnFunction
from retrodp.mechanisms.oneshot.ranks import GridQuantile, InteriorPoint
from retrodp.mechanisms.sampled import Design, Gate, Sampled
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.processes import AnyFactor, Process
from retrodp.noise.tails import summed_tail
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.privacy.calibrate import least_threshold
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.ratio import RatioLoss, own_delta
from retrodp.privacy.sampling import (
    Charge,
    OneShot,
    fixed_charge,
    persistent_charge,
    poisson_charge,
)
from retrodp.statistics.live import LiveRecords

Noises = tuple[CalibratedNoise, ...]

GATE_SHARE = Fraction(1, 5)
"""Of a gated release's share; its noise decides how many records must live, not how good an answer is."""

RESERVED = Fraction(1, 20)
"""Of the plan's delta, for each gate and each set of persistent ranks."""

EPSILON_DIGITS = 4
LEAST_EPSILON, MOST_EPSILON = 1e-9, 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A sampled release on its way to a budget.

    Attributes:
        plan: The plan.
        release: The release.
        share: Of the plan's budget, the gate's part taken off.
        records: Of one unit.
    """

    plan: Plan
    release: Release
    share: Fraction
    records: int

    @classmethod
    def of(cls, plan: Plan, release: Release, share: Fraction) -> Sampling | None:
        """Of a release of this kind, else None."""
        keys = release.statistic
        if not isinstance(keys, kinds.Sample):
            return None
        live_records(plan, release)
        rest = 1 - GATE_SHARE if keys.gate else Fraction(1)
        found = cls(
            plan=plan, release=release, share=share * rest, records=plan.stream.max_records or 1
        )
        if keys.sampling == "persistent" and keys.gate and not plan.stream.ids:
            raise PlanError(
                f"release.{release.name}: persistent ranks buy nothing without ids. Copies of one value "
                "that go and come back late share ranks, so one more or less of them may have "
                "another rank in every round.",
                do='Set gate = false, which charges them in full, or sample with sampling = "fixed".',
            )
        if plan.privacy.delta is None and (keys.gate or found.own_delta):
            raise BudgetError(
                f"release.{release.name} needs a delta: a gate, persistent ranks and functions with "
                "a delta may fail.",
                do='Set privacy.delta, or sample with sampling = "poisson".',
            )
        if found.own_delta and keys.gate and keys.rate is None:
            raise PlanError(
                f"release.{release.name}.rate is missing: how often its function fails in a sample "
                "depends on it.",
                expected="the largest part of the live records that a sample may be, such as 0.05",
            )
        return found

    @property
    def keys(self) -> kinds.Sample:
        """The release's own keys."""
        assert isinstance(self.release.statistic, kinds.Sample)
        return self.release.statistic

    @property
    def scales(self) -> bool:
        """Whether its loss follows the budget; that of a user's function is what it declares."""
        return self.keys.function is None

    @property
    def window(self) -> int:
        """W."""
        assert self.release.window is not None
        return self.release.window

    @property
    def gate_delta(self) -> Fraction:
        """Of the gate; 0 without one."""
        return RESERVED * (self.plan.privacy.delta or 0) if self.keys.gate else Fraction(0)

    @property
    def rank_slack(self) -> Fraction:
        """beta_r; 0 where the ranks are fresh or buy nothing."""
        persistent = self.keys.sampling == "persistent" and self.keys.gate
        return RESERVED * (self.plan.privacy.delta or 0) if persistent else Fraction(0)

    @property
    def own_delta(self) -> Fraction:
        """Of one answer of a function of the user's own; other mechanisms have none."""
        return Fraction(0) if self.keys.function is None else self.own.guarantee.delta

    @property
    def own(self) -> OwnFunction:
        """The function that the plan names."""
        assert self.keys.function is not None
        return own_function(self.keys.function, path=f"release.{self.release.name}.function")

    @property
    def reserve(self) -> Fraction:
        """All that the release adds to delta, whatever the noise of its gate."""
        if not self.own_delta:
            return self.gate_delta + self.rank_slack
        return self.gate_delta + self.charge(self.own.guarantee, self.design({})).delta

    def design(self, made: Mapping[str, Process]) -> Design:
        """How samples are drawn, given the gate's noise."""
        keys = self.keys
        if keys.sampling == "poisson":
            return Design(sampling="poisson", rate=keys.rate)
        assert keys.size is not None
        if not keys.gate:
            return Design(sampling=keys.sampling, size=keys.size)
        least = self.margin(made) if keys.rate is None else math.ceil(keys.size / keys.rate) - 1
        return Design(sampling=keys.sampling, size=keys.size, occupancy=max(keys.size, least))

    def margin(self, made: Mapping[str, Process]) -> int:
        """Least x that the gate's noise reaches in any round with at most `gate_delta`."""
        process = made[gate_label(self.release)]
        return least_threshold(lambda x: summed_tail(process, x), self.gate_delta)

    def charge(self, one: OneShot, design: Design) -> Charge:
        """What a mechanism with this guarantee spends over the horizon."""
        match design.sampling:
            case "poisson":
                assert design.rate is not None
                return poisson_charge(one, self.window, rate=design.rate, records=self.records)
            case "fixed":
                assert design.size is not None
                return fixed_charge(
                    one,
                    self.window,
                    size=design.size,
                    occupancy=design.occupancy,
                    records=self.records,
                )
            case "persistent":
                assert design.size is not None
                return persistent_charge(
                    one,
                    self.window,
                    size=design.size,
                    occupancy=design.occupancy,
                    rank_slack=self.rank_slack,
                    records=self.records,
                )
            case _:
                assert_never(design.sampling)

    def losses(self, total: Fraction, made: Mapping[str, Process]) -> tuple[PrivacyLoss, ...]:
        """Of the samples, at a total budget of the plan (rho, or pure epsilon)."""
        design = self.design(made)
        return (self.charge(self.mechanism(total, design).guarantee, design).loss,)

    def mechanism(self, total: Fraction, design: Design) -> OneShotMechanism:
        """The mechanism at the epsilon that the budget buys."""
        if self.keys.function is not None:
            return self._fitting(total, design)
        return mechanism_at(self.plan, self.release, self._bought(total * self.share, design))

    def _fitting(self, total: Fraction, design: Design) -> OwnFunction:
        """The user's function, if what it declares fits."""
        own, privacy = self.own, self.plan.privacy
        loss = self.charge(own.guarantee, design).loss
        fits = (
            loss.epsilon <= total * self.share
            if privacy.model == "pure"
            else own_delta(loss, float(privacy.epsilon)) <= float(privacy.delta or 0)
        )
        if not fits:
            raise BudgetError(
                f"release.{self.release.name}: {own.name} declares epsilon "
                f"{float(own.guarantee.epsilon):g} an answer, and the samples of {self.window} "
                "rounds together exceed the budget.",
                do="Sample fewer records, declare less, or raise epsilon.",
            )
        return own

    def _bought(self, budget: Fraction, design: Design) -> Fraction:
        """The largest epsilon of one answer, to four digits, that the budget pays for."""
        pure = self.plan.privacy.model == "pure"
        delta = float(self.plan.privacy.delta or 0)
        spread = float(budget)
        together = spread + 2 * math.sqrt(spread * math.log(1 / delta)) if not pure else 0.0

        def fits(epsilon: float) -> bool:
            one = mechanism_at(self.plan, self.release, _decimal(epsilon)).guarantee
            loss = self.charge(one, design).loss
            return loss.epsilon <= budget if pure else own_delta(loss, together) <= delta

        least, most = LEAST_EPSILON, MOST_EPSILON
        if not fits(least):
            raise BudgetError(
                f"release.{self.release.name}: no epsilon above {least:g} fits its share.",
                do="Raise epsilon or its share, or sample fewer records.",
            )
        while most / least > 1.0005:
            middle = math.sqrt(least * most)
            if fits(middle):
                least = middle
            else:
                most = middle
        return _decimal(least)

    def settled(self, total: Fraction, made: Mapping[str, Process]) -> dict[str, Any]:
        """What the resolved plan stores of the samples; JSON values."""
        design = self.design(made)
        mechanism = self.mechanism(total, design)
        charge = self.charge(mechanism.guarantee, design)
        entry: dict[str, Any] = {
            "sampling": design.sampling,
            "rate": None if design.rate is None else str(design.rate),
            "size": design.size,
            "occupancy": design.occupancy,
            "epsilon_once": str(mechanism.guarantee.epsilon),
            "loss": {
                "greatest": str(charge.loss.greatest),
                "least": str(charge.loss.least),
                "count": charge.loss.count,
                "chance": str(charge.loss.chance),
            },
            "sample_delta": str(charge.delta),
        }
        if self.keys.function is not None:
            entry["source_sha256"] = self.own.source
        if self.keys.gate:
            assert design.occupancy is not None
            entry["gate_threshold"] = design.occupancy - 1 + self.records + self.margin(made)
            entry["gate_delta"] = str(self.gate_delta)
        return entry


def require_known_horizon(plan: Plan) -> None:
    """Raise `PlanError` for a sample in a plan of epochs, whose losses are bounded beforehand."""
    for release in plan.releases if plan.stream.epochs is not None else ():
        if isinstance(release.statistic, kinds.Sample):
            raise PlanError(
                f"release.{release.name}: a sample needs a known horizon.",
                do="Give stream.horizon as a number of rounds.",
            )


def mechanism_at(plan: Plan, release: Release, epsilon: Fraction) -> OneShotMechanism:
    """One of the package's mechanisms at an epsilon."""
    keys = release.statistic
    assert isinstance(keys, kinds.Sample)
    columns = [plan.column(name) for name in keys.of]
    step, (low, high) = columns[0].grid
    match keys.mechanism:
        case "quantile" | "median":
            return GridQuantile(
                epsilon=epsilon,
                share=Fraction(1, 2) if keys.at is None else keys.at,
                low=low,
                high=high,
                step=step,
            )
        case "interior_point":
            return InteriorPoint(epsilon=epsilon, low=low, high=high, step=step)
        case "mean":
            return NoisyMean(epsilon=epsilon, low=low, high=high, step=step)
        case "kmeans":
            assert keys.k is not None
            return NoisyLloyd(
                epsilon=epsilon,
                k=keys.k,
                columns=keys.of,
                ranges=tuple(column.grid[1] for column in columns),
                steps_of=tuple(column.grid[0] for column in columns),
            )
        case None:
            raise AssertionError
        case _:
            assert_never(keys.mechanism)


def gate_label(release: Release) -> str:
    """Label of the gate's noise."""
    return f"{release.name}/live"


def live_records(plan: Plan, release: Release) -> LiveRecords:
    """The live records of a `sample`."""
    keys = release.statistic
    assert isinstance(keys, kinds.Sample)
    if release.window is None:
        raise PlanError(
            f"release.{release.name}.window is missing: a sample is of the records of a window, which "
            "bounds the rounds in which one record can matter.",
            expected="a duration such as '30d'",
        )
    return LiveRecords(
        of=tuple(map(plan.column, keys.of)),
        where=release.where,
        gate=GATE_SHARE if keys.gate else None,
    )


def factor(plan: Plan, release: Release) -> AnyFactor | None:
    """Coins are fresh in every round; a gate's count has the factor of any windowed count."""
    keys = release.statistic
    assert isinstance(keys, kinds.Sample)
    if keys.gate:
        return None
    if release.factor != "auto":
        raise PlanError(
            f"release.{release.name}.factor is for noise that rounds share; this release has none.",
            do="Leave factor out.",
        )
    live_records(plan, release)
    return FreshFactor(horizon=plan.stream.horizon, window=release.window or 1)


def sampled(plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]) -> Sampled:
    """The mechanism of a `sample`, from its entry in the resolved plan."""
    keys = release.statistic
    assert isinstance(keys, kinds.Sample)
    assert release.window is not None
    mechanism: OneShotMechanism
    if keys.function is not None:
        own = own_function(keys.function, path=f"release.{release.name}.function")
        require_source(own, stored=entry["source_sha256"])
        mechanism = own
    else:
        mechanism = mechanism_at(plan, release, Fraction(entry["epsilon_once"]))
    loss = entry["loss"]
    charge = Charge(
        loss=RatioLoss(
            greatest=Fraction(loss["greatest"]),
            least=Fraction(loss["least"]),
            count=loss["count"],
            chance=Fraction(loss["chance"]),
        ),
        delta=Fraction(entry["sample_delta"]),
    )
    gate = None
    if keys.gate:
        (noise,) = noises
        gate = Gate(
            noise=noise, threshold=entry["gate_threshold"], delta=Fraction(entry["gate_delta"])
        )
    return Sampled(
        name=release.name,
        mechanism=mechanism,
        design=Design(
            sampling=keys.sampling,
            rate=None if entry["rate"] is None else Fraction(entry["rate"]),
            size=entry["size"],
            occupancy=entry["occupancy"],
        ),
        charge=charge,
        horizon=plan.stream.horizon,
        window=release.window,
        level=release.level,
        gate=gate,
    )


def _decimal(epsilon: float) -> Fraction:
    """A decimal of four digits not above it."""
    digits = EPSILON_DIGITS - 1 - math.floor(math.log10(epsilon))
    return Fraction(math.floor(epsilon * 10**digits), 10**digits)
