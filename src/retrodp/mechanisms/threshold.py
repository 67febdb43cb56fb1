"""Threshold of a sparse histogram: the price of not naming the bins that nearly nobody is in."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from retrodp import _check
from retrodp.noise.processes import Process
from retrodp.noise.tails import summed_tail
from retrodp.privacy.calibrate import least_threshold
from retrodp.privacy.neighbours import worst_split_tail


def threshold_for(
    process: Process,
    *,
    delta: float | str | Fraction,
    records: int,
    per_bin: int | None = None,
) -> int:
    """Least threshold whose crossings by one unit's bins cost at most `delta`.

    One unit may put up to `records` records into bins of its own, `per_bin` of them in one bin.
    Neighbouring streams then differ in which bins are non-empty, and they tell themselves apart
    only if such a bin is released: a bin that holds m records crosses in round l with probability
    Pr[noise_l >= threshold - m]. The threshold covers the worst split m_1 + ... = records of the
    sum over bins and rounds; a record's own threshold would be too small by far.

    Args:
        process: Noise of the release, in records.
        delta: Allowed probability, for all rounds together.
        records: Records a unit may hold at once.
        per_bin: Most of them in one bin; None for no such bound.
    """
    allowed = _check.exact("delta", delta)
    _check.probability(delta=allowed)

    @cache
    def tail(above: int) -> float:
        return summed_tail(process, above)

    def crossing(threshold: int) -> float:
        return worst_split_tail(
            lambda in_bin: tail(threshold - in_bin), records=records, max_per_bin=per_bin
        )

    return least_threshold(crossing, float(allowed))
