"""Who is protected: units, the windows they move, and groups of them.

A life moves one bin's count by one on one window of rounds; everything else is a multiple of that.
Knows no factor: a factor's window sensitivities arrive as numbers. Statements about more lives
than a plan's unit are group privacy and are marked as such.

Source of the units: Kaplan et al. 2026 (arXiv 2609.05329), sections 2 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, assert_never

from retrodp import _check
from retrodp._check import positive, whole
from retrodp.errors import PlanError
from retrodp.privacy.budget import ApproxDP
from retrodp.privacy.loss import GaussianLoss, GaussianNorm, PrivacyLoss, PureLoss
from retrodp.privacy.ratio import RatioLoss
from retrodp.privacy.round_up import RELATIVE_SLACK, exp_above, float_above

Unit = Literal["record", "operation", "person_round", "person"]

LIVES_PER_RAW_UPDATE = 2
"""One inserted update can end one life early and let another begin: at most two windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What a plan protects, and how many windows one unit can move.

    All windows of a `person_round` begin in one round and may end anywhere. A `person` is a
    `person_round` for the noise; its rounds are declared, never enforced, and enter only as a
    group (`group_sizes`).

    Attributes:
        unit: The unit.
        max_records: Records of one person and round that are kept; 1 for the single units.
        max_per_bin: At most so many of them agree in `bin_columns`, or None if not bounded.
        bin_columns: The columns that bound names.
        max_rounds: Declared rounds in which one person adds; for `person` only.
    """

    unit: Unit
    max_records: int = 1
    max_per_bin: int | None = None
    bin_columns: tuple[str, ...] = ()
    max_rounds: int | None = None

    def __post_init__(self) -> None:
        whole(least=1, max_records=self.max_records)
        _check.texts(bin_columns=self.bin_columns, expected="names of columns")
        match self.unit:
            case "record" | "operation":
                if self.max_records != 1 or self.max_per_bin is not None:
                    raise PlanError(
                        f"max_records and max_per_bin bound persons, but the unit is {self.unit}.",
                        do="Remove them, or set unit = 'person_round'.",
                    )
            case "person_round" | "person":
                pass
            case _:
                assert_never(self.unit)
        if self.max_per_bin is not None:
            whole(least=1, max_per_bin=self.max_per_bin)
        if (self.max_per_bin is None) != (not self.bin_columns):
            raise PlanError(
                "max_per_bin needs both its bound and the columns it names.",
                expected="max_per_bin = { by = ['product'], max = 1 }",
            )
        if (self.unit == "person") != (self.max_rounds is not None):
            raise PlanError(
                "max_rounds is the declared number of rounds of the unit person, and only of it.",
                do="Declare max_rounds, or choose unit = 'person_round'.",
            )
        if self.max_rounds is not None:
            whole(least=1, max_rounds=self.max_rounds)

    def worst_split(self, columns: Collection[str]) -> tuple[int, ...]:
        """How many windows one unit moves in each bin of a partition, in the worst case.

        Args:
            columns: Columns whose equal values make a bin: a partition by them refines the
                bound's columns if it has them all. Give none for anything coarser than rows of
                equal values: totals, upper levels of trees, rows of a sketch.

        Returns:
            Bins' windows, largest first; they add up to `max_records`. Without refinement all
            windows fall into one bin.
        """
        columns = _check.texts(columns=columns, expected="names of columns")
        bound = self.max_records
        if self.max_per_bin is not None and set(self.bin_columns) <= set(columns):
            bound = min(bound, self.max_per_bin)
        full, rest = divmod(self.max_records, bound)
        return (bound,) * full + ((rest,) if rest else ())

    def l2_squared(self, columns: Collection[str]) -> int:
        """Factor on a record's squared L2 sensitivity: k^2 in one bin, k over k bins."""
        return sum(windows**2 for windows in self.worst_split(columns))

    @property
    def l1(self) -> int:
        """Factor on a record's L1 sensitivity, in every partition."""
        return self.max_records

    @property
    def group_sizes(self) -> tuple[tuple[str, int], ...]:
        """(what a group is, units in it) for every guarantee that must be printed."""
        match self.unit:
            case "record":
                return (("one life", 1), ("one raw update", LIVES_PER_RAW_UPDATE))
            case "operation":
                return (("one operation", 1),)
            case "person_round":
                return (("one person in one round", 1),)
            case "person":
                rounds = self.max_rounds or 1
                return (
                    ("one round of a person", 1),
                    (f"{rounds} rounds of a person, as declared", rounds),
                    (f"{2 * rounds} rounds of a person, twice as declared", 2 * rounds),
                )
            case _:
                assert_never(self.unit)


def gaussian_losses(
    window_shape: Sequence[tuple[int, int]],
    *,
    variance: Fraction,
    split: Sequence[int] = (1,),
    scale: int = 1,
) -> tuple[PrivacyLoss, ...]:
    """Losses of one Gaussian release whose noise nodes a unit moves through windows.

    Args:
        window_shape: ((shift, count), ...) dominating the node shifts of every window.
        variance: Of each node, in squared steps.
        split: Windows per bin, see `Protection.worst_split`.
        scale: Largest contribution of a record, in steps.

    Returns:
        Bins with one window keep their exact shifts. Several windows in one bin that share their
        start are bounded by their norm alone: k windows have at most k times the norm of one
        (equal ends attain it), but their shifts need not stay below k times the shape.
    """
    whole(least=1, scale=scale)
    shape = [(abs(shift) * scale, count) for shift, count in window_shape]
    single = sum(1 for windows in split if windows == 1)
    several = sum(windows**2 for windows in split if windows > 1)
    losses: list[PrivacyLoss] = [
        GaussianLoss(shift=shift, variance=variance, count=count * single)
        for shift, count in shape
        if single
    ]
    if several:
        norm = Fraction(several * sum(shift**2 * count for shift, count in shape))
        losses.append(GaussianNorm(norm_squared=norm, variance=variance))
    return tuple(losses)


def gaussian_norm(
    window_l2sq: int,
    *,
    nodes: int,
    variance: Fraction,
    split: Sequence[int] = (1,),
    scale: int = 1,
) -> GaussianNorm:
    """Loss of one Gaussian release of which only the norm of a window's shifts is known.

    Args:
        window_l2sq: Most that the squared shifts of one window sum to.
        nodes: Nodes of one bin over the whole horizon; all windows in a bin share them.
        variance: Of each node, in squared steps.
        split: Windows per bin, see `Protection.worst_split`.
        scale: Largest contribution of a record, in steps.

    Returns:
        The norm of k windows in one bin is at most k times that of one.
    """
    whole(least=1, window_l2sq=window_l2sq, nodes=nodes, scale=scale)
    windows = sum(count**2 for count in split)
    return GaussianNorm(
        norm_squared=Fraction(window_l2sq * windows * scale**2),
        variance=variance,
        moved=nodes * sum(split),
    )


def worst_split_tail(
    tail_of_bin: Callable[[int], float], *, records: int, max_per_bin: int | None = None
) -> float:
    """Largest sum of tails over all ways to put a unit's records into bins of a sparse release.

    Args:
        tail_of_bin: m -> sum over rounds of P[noise >= tau - m], m records in one bin.
        records: k, the unit's records.
        max_per_bin: Largest m, or None for k.

    Returns:
        The maximum over m_1 + m_2 + ... = k of the sum of tails: exact, by dynamic programming.
    """
    whole(least=1, records=records)
    most = records if max_per_bin is None else min(records, max_per_bin)
    whole(least=1, max_per_bin=most)
    tails = [0.0, *(tail_of_bin(windows) for windows in range(1, most + 1))]
    best = [0.0]
    for placed in range(1, records + 1):
        best.append(
            max(tails[last] + best[placed - last] for last in range(1, min(most, placed) + 1))
        )
    return best[records] * (1 + RELATIVE_SLACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A group's guarantee, rounded up. A delta of 1 promises nothing.

    Attributes:
        epsilon: In nats.
        delta: At most 1.
    """

    epsilon: float
    delta: float


def group_guarantee(budget: ApproxDP, size: int) -> Guarantee:
    """Approximate privacy of `size` units together, thresholds and all.

    It is ``(q epsilon, delta (e^(q epsilon) - 1) / (e^epsilon - 1))``; holds for any mechanism
    and any q units (Vadhan 2017, lemma 2.2).
    """
    whole(least=1, size=size)
    one, all_ = budget.epsilon, budget.epsilon * size
    log_growth = _log_expm1(float_above(all_)) - _log_expm1(float(one))
    if size == 1:
        log_growth = 0.0
    log_delta = math.log(budget.delta.numerator) - math.log(budget.delta.denominator) + log_growth
    return Guarantee(epsilon=float_above(all_), delta=min(1.0, exp_above(log_delta)))


def group_rho(rho: Fraction, size: int) -> Fraction:
    """Zero-concentrated loss of `size` units together (Bun, Steinke 2016, proposition 1.9)."""
    positive(rho=rho)
    whole(least=1, size=size)
    return rho * size**2


def group_losses(losses: Sequence[PrivacyLoss], size: int) -> tuple[PrivacyLoss, ...]:
    """Losses of `size` units together: norms and pure epsilons grow `size` times.

    The shifts of q units add; their norm is at most q times one unit's, per variance, but no
    multiset of shifts is known to dominate. Says nothing about thresholds: where a plan has
    some, use `group_guarantee`.
    """
    whole(least=1, size=size)
    if size == 1:
        return tuple(losses)
    norms: dict[Fraction, Fraction] = {}
    moved: dict[Fraction, int | None] = {}
    grown: list[PrivacyLoss] = []
    for loss in losses:
        match loss:
            case GaussianLoss():
                norm = Fraction(loss.shift**2 * loss.count)
                norms[loss.variance] = norms.get(loss.variance, Fraction(0)) + norm
                moved[loss.variance] = None
            case GaussianNorm():
                norms[loss.variance] = norms.get(loss.variance, Fraction(0)) + loss.norm_squared
                before, more = moved.get(loss.variance, 0), loss.moved
                moved[loss.variance] = None if before is None or more is None else before + more
            case PureLoss():
                grown.append(PureLoss(epsilon=loss.epsilon * size))
            case RatioLoss():
                grown.append(loss.group(size))
            case _:
                assert_never(loss)
    grown += [
        GaussianNorm(
            norm_squared=norm * size**2,
            variance=variance,
            moved=None if (most := moved[variance]) is None else most * size,
        )
        for variance, norm in norms.items()
        if norm > 0
    ]
    return tuple(grown)


def _log_expm1(value: float) -> float:
    return value + math.log(-math.expm1(-value))
