r"""What sampling buys: the loss of a one-shot mechanism that runs on a sample of a sliding window.

Promise: every bound is rounded up and holds for any mechanism with the declared guarantee, for
streams that differ in one unit, over all rounds. The paper's bounds stand beside the tightest that
follows from the declaration alone; the latter are what the package charges. Knows no mechanism and
no data.

Source: Kaplan et al. 2026 (arXiv 2609.05329), theorem 5.7, lemma 5.8, theorem C.1, called "the
paper" here. Poisson sampling is not in the paper.

**One round.** A unit of k records changes a round only while one of them is live: W rounds, as all of
them begin in one round. Let the ratios of the mechanism lie in ``[1/r, r]``, r = e^eps0.

- Poisson at rate q: a record joins the sample with probability q whatever else is in it, so adding
  it multiplies the law by a factor in ``[1 - q + q/r, 1 - q + q r]``; k records by its k-th power.
- k points of smallest rank out of n or more, without the record: with probability at most
  q = size/(n + 1) it replaces a random point, else nothing happens; the same with the ratio r of
  *replacing* a record. Without a promise on n: r or the replacement's ratio, whichever is more.
- An approximate guarantee (eps0, delta0) is an exact one up to an event of probability delta0
  (Kairouz, Oh, Viswanath 2015), which a sampled record meets with probability q delta0.

**Persistent ranks.** The record enters a sample only if its rank is below ``tau = max over rounds of
the size-th smallest rank of the others``. The laws A, B (with, without the record, rank below tau)
and C (rank above) of `retrodp.privacy.ratio` are those of theorem C.1 given all other ranks: A and B
differ by a replacement in the rounds of the difference, A and C, B and C in the rounds in which a
copy of that rank is live at all, which are W for one record. Its probability tau is above p with
probability at most W P[Bin(n, p) < size], which is added to delta. Where k > 1 records of one unit
carry stamps of different rounds, copies of their ranks may be live in 2 W - 1 rounds. All of this
asks for one rank a record: copies of a stamped point that take ranks by their number have it only if
no copy arrives late (the coupling of theorem C.1 needs numbers that never rise again).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from scipy.special import bdtr

from retrodp._check import exact, positive, probability, whole
from retrodp.errors import PlanError
from retrodp.privacy.accountant import epsilon_of
from retrodp.privacy.ratio import RatioLoss, odds_above
from retrodp.privacy.round_up import RELATIVE_SLACK, exp_above

ONE = Fraction(1)


class Bound(NamedTuple):
    """Approximate privacy, rounded up.

    Attributes:
        epsilon: In nats.
        delta: At least 0; 1 or more promises nothing.
    """

    epsilon: float
    delta: float


class Charge(NamedTuple):
    """What a compiled mechanism spends over the horizon for one unit.

    Attributes:
        loss: Of all rounds, for the accountant.
        delta: To be added to the plan's delta: failures of the mechanism and of the ranks.
    """

    loss: RatioLoss
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """The declared guarantee of a mechanism that sees one multiset of records once.

    Attributes:
        epsilon: For adding or removing one record.
        delta: Likewise.
        replace_epsilon: For replacing one record by another, where less than twice `epsilon`.
        replace_delta: Likewise; the group bound (1 + e^epsilon) delta if None.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    replace_epsilon: Fraction | None = None
    replace_delta: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "replace_epsilon", "replace_delta"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, exact(name, value))
        positive(epsilon=self.epsilon)
        _require_delta(delta=self.delta)
        if self.replace_epsilon is not None:
            positive(replace_epsilon=self.replace_epsilon)
        if self.replace_delta is not None:
            _require_delta(replace_delta=self.replace_delta)
            if self.replace_epsilon is None:
                raise PlanError("replace_delta needs replace_epsilon.")

    @property
    def added(self) -> tuple[Fraction, Fraction]:
        """(ratio, delta) for adding or removing one record."""
        return odds_above(self.epsilon), self.delta

    @property
    def replaced(self) -> tuple[Fraction, Fraction]:
        """(ratio, delta) for replacing one record: the stated bound, or two steps of the other."""
        if self.replace_epsilon is None:
            ratio = odds_above(self.epsilon)
            return ratio**2, self.delta * (1 + ratio)
        if self.replace_delta is not None:
            return odds_above(self.replace_epsilon), self.replace_delta
        return odds_above(self.replace_epsilon), self.delta * (1 + odds_above(self.epsilon))


def _require_delta(**named: float | Fraction) -> None:
    for name, value in named.items():
        if not 0 <= exact(name, value) < 1:
            raise PlanError(f"{name} must be at least 0 and below 1, got {value!r}.")


# The paper's bounds.


def basic_bound(one: OneShot, window: int) -> Bound:
    """Theorem 5.7, part 2, basic composition: ``(2 W eps0, 2 W e^eps0 delta0)``."""
    whole(least=1, window=window)
    epsilon, delta = _floats(one)
    return _up(2 * window * epsilon, 2 * window * math.exp(epsilon) * delta)


def advanced_bound(one: OneShot, window: int, slack: float) -> Bound:
    """Theorem 5.7, part 2, with delta' = `slack`."""
    whole(least=1, window=window)
    probability(slack=slack)
    epsilon, delta = _floats(one)
    total = 2 * epsilon * math.sqrt(2 * window * math.log(1 / slack))
    total += 2 * window * epsilon * math.expm1(2 * epsilon)
    return _up(total, 2 * window * math.exp(epsilon) * delta + slack)


def amplified_bound(one: OneShot, window: int, slack: float, *, size: int, occupancy: int) -> Bound:
    """Theorem 5.7, part 3: for neighbours of which both have `occupancy` live points or more."""
    whole(least=1, window=window, size=size)
    whole(least=size, occupancy=occupancy)
    probability(slack=slack)
    epsilon, delta = _floats(one)
    if epsilon > 1:
        raise PlanError(
            "Part 3 of theorem 5.7 asks for an epsilon of at most 1 a round.",
            do="Charge `fixed_charge`, which needs no such condition.",
        )
    rate = size / (occupancy + 1)
    round_ = math.log1p(rate * math.expm1(2 * epsilon))
    total = round_ * math.sqrt(2 * window * math.log(1 / slack))
    total += window * round_ * math.expm1(round_)
    return _up(total, 2 * window * rate * math.exp(epsilon) * delta + slack)


def gated_bound(amplified: Bound, gate_epsilon: float, gate_delta: float) -> Bound:
    """Lemma 5.8: a gate of pure loss `gate_epsilon` that fails with probability `gate_delta`."""
    positive(gate_epsilon=gate_epsilon)
    _require_delta(gate_delta=gate_delta)
    return _up(gate_epsilon + amplified.epsilon, amplified.delta + gate_delta)


def persistent_bound(
    one: OneShot, window: int, slack: float, *, size: int, occupancy: int, rank_slack: float
) -> Bound:
    """Theorem C.1: ``(12 p eps_W, 3 p delta_W + beta_r)``.

    Raises:
        PlanError: Its conditions eps_W <= 1 and p <= 1/2 do not hold.
    """
    whole(least=1, window=window, size=size)
    whole(least=size, occupancy=occupancy)
    probability(rank_slack=rank_slack)
    part = min(1.0, (2 * size + 8 * math.log(window / rank_slack)) / occupancy)
    whole_window = advanced_bound(one, window, slack)
    if whole_window.epsilon > 1 or part > 0.5:
        raise PlanError(
            f"Theorem C.1 needs eps_W <= 1 and p <= 1/2, not {whole_window.epsilon:.3g} and "
            f"{part:.3g}.",
            do="Charge `persistent_charge`, which needs neither.",
        )
    return _up(12 * part * whole_window.epsilon, 3 * part * whole_window.delta + rank_slack)


# What the package charges.


def poisson_charge(one: OneShot, window: int, *, rate: Fraction, records: int = 1) -> Charge:
    """Every live point joins the sample of a round with probability `rate`, with fresh coins.

    Needs no promise on the number of live points. Tight for one record and delta0 = 0: a mechanism
    with exactly two answers attains it.

    Args:
        one: Guarantee of the mechanism.
        window: W, rounds in which a record can matter.
        rate: Above 0 and at most 1.
        records: Of one unit.
    """
    whole(least=1, window=window, records=records)
    rate = exact("rate", rate)
    if not 0 < rate <= 1:
        raise PlanError(f"rate must be above 0 and at most 1, got {rate!r}.")
    ratio, delta = one.added
    return _sampled(ratio, rate * delta, window, rate=rate, records=records)


def fixed_charge(
    one: OneShot, window: int, *, size: int, occupancy: int | None, records: int = 1
) -> Charge:
    """`size` live points of smallest rank, ranks fresh in every round; all if there are fewer.

    Args:
        one: Guarantee of the mechanism.
        window: W, rounds in which a record can matter.
        size: Points in a sample.
        occupancy: Live points that both neighbours have in every released round, at least `size`;
            None promises nothing, and then sampling buys nothing.
        records: Of one unit.
    """
    whole(least=1, window=window, size=size, records=records)
    replaced, delta = one.replaced
    if occupancy is None:
        added, added_delta = one.added
        # A record that is added joins, or replaces another: the worse of the two.
        return _sampled(
            max(added, replaced), max(added_delta, delta), window, rate=ONE, records=records
        )
    whole(least=size, occupancy=occupancy)
    rate = Fraction(size, occupancy + 1)
    return _sampled(replaced, rate * delta, window, rate=rate, records=records)


def persistent_charge(
    one: OneShot,
    window: int,
    *,
    size: int,
    occupancy: int | None,
    rank_slack: Fraction,
    records: int = 1,
) -> Charge:
    """`size` live points of smallest rank, one rank for the whole life of a point.

    Args:
        one: Guarantee of the mechanism.
        window: W, rounds in which a record can matter.
        size: Points in a sample.
        occupancy: As for `fixed_charge`.
        rank_slack: beta_r, the probability that the ranks of the others fall badly.
        records: Of one unit.
    """
    charge = fixed_charge(one, window, size=size, occupancy=None, records=records)
    if occupancy is None:
        return charge
    whole(least=size, occupancy=occupancy)
    probability(rank_slack=rank_slack)
    once = chance_of_entry(window, size=size, occupancy=occupancy, rank_slack=rank_slack)
    chance = 1 - (1 - once) ** records
    replaced, delta = one.replaced
    rounds = window if records == 1 else 2 * window - 1
    ratio = replaced**records
    if chance == 1:
        return charge
    loss = RatioLoss(greatest=ratio, least=1 / ratio, count=rounds, chance=chance)
    # Divergences grow by `chance * failures`, and are at most `chance` without: an event that tells
    # all with the probability below adds at least as much.
    failures = rounds * delta * _geometric(replaced, records)
    return Charge(loss=loss, delta=min(ONE, failures * chance / (1 - chance) + rank_slack))


def chance_of_entry(window: int, *, size: int, occupancy: int, rank_slack: Fraction) -> Fraction:
    """Least p, to one part in 10^6, with ``W P[Bin(occupancy, p) < size] <= rank_slack``; 1 if none.

    A rank below p is needed to be among the `size` smallest in any of W rounds, except with
    probability `rank_slack`.
    """
    whole(least=1, window=window, size=size)
    whole(least=size, occupancy=occupancy)
    probability(rank_slack=rank_slack)
    allowed = float(rank_slack) / window * (1 - 1e-9)

    def holds(part: float) -> bool:
        return bool(bdtr(size - 1, occupancy, part) <= allowed)

    fails, found = 0.0, 1.0
    if not holds(1 - 1e-12):
        return ONE
    while found - fails > 1e-6 * found:
        middle = (found + fails) / 2
        if holds(middle):
            found = middle
        else:
            fails = middle
    return min(ONE, Fraction(found))


def bound_of(charge: Charge, delta: float) -> Bound:
    """The tightest epsilon of a charge at a total `delta`.

    Raises:
        PlanError: The charge's own delta leaves nothing.
    """
    left = delta - float(charge.delta) * (1 + 1e-12)
    if not left > 0:
        raise PlanError(
            f"delta {delta:.3g} does not cover the mechanism's own {float(charge.delta):.3g}.",
            do="Allow a larger delta.",
        )
    return Bound(epsilon_of([charge.loss], left), delta)


def _sampled(
    ratio: Fraction, delta: Fraction, window: int, *, rate: Fraction, records: int
) -> Charge:
    """Rounds with a ratio of the mechanism met with probability `rate` by each of the records."""
    greatest = 1 + rate * (ratio - 1)
    least = 1 - rate * (1 - 1 / ratio)
    if delta and records > 1:
        # Group privacy of an approximate guarantee is known for its symmetric form alone.
        least = 1 / greatest
    failed = delta * _geometric(greatest, records)
    return Charge(
        loss=RatioLoss(greatest=greatest**records, least=least**records, count=window),
        delta=min(ONE, window * failed),
    )


def _geometric(ratio: Fraction, terms: int) -> Fraction:
    """``1 + ratio + ratio^2 + ...``, so many terms."""
    return sum((ratio**power for power in range(terms)), Fraction(0))


def _floats(one: OneShot) -> tuple[float, float]:
    return float(one.epsilon) * (1 + 1e-15), float(one.delta) * (1 + 1e-15)


def _up(epsilon: float, delta: float) -> Bound:
    slack = 1 + RELATIVE_SLACK
    return Bound(epsilon * slack, exp_above(math.log(delta)) if delta > 0 else 0.0)
