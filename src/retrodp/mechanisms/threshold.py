"""Threshold of a sparse histogram: the price of not naming the bins that nearly nobody is in."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.noise.processes import Process
from retrodp.noise.tails import half_widths, summed_tail, summed_tail_at
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
    _check.whole(least=1, records=records)
    if per_bin is not None:
        _check.whole(least=1, per_bin=per_bin)

    @cache
    def tail(above: int) -> float:
        return summed_tail(process, above)

    def crossing(threshold: int) -> float:
        return worst_split_tail(
            lambda in_bin: tail(threshold - in_bin), records=records, max_per_bin=per_bin
        )

    return least_threshold(crossing, float(allowed))


IntArray = NDArray[np.int64]

HALVINGS = 20
"""Of the interval that the factor of `thresholds_for` is searched in: to a millionth."""


def thresholds_for(
    process: Process,
    *,
    delta: float | str | Fraction,
    records: int,
    per_bin: int | None = None,
) -> tuple[int, ...]:
    """A threshold for every round, none above `threshold_for`, that together cost at most `delta`.

    When a round has less noise than the worst one, a lower threshold costs it next to nothing of
    delta. So the thresholds follow the tail quantiles of the rounds' noise, times the least factor
    for which the sum over rounds stays within delta, and are cut where one threshold for all rounds
    would lie. Public, and decided by the noise alone.

    Args:
        process: Noise of the release, in records.
        delta: Allowed probability, for all rounds together.
        records: Records a unit may hold at once.
        per_bin: Most of them in one bin; None for no such bound.
    """
    highest = threshold_for(process, delta=delta, records=records, per_bin=per_bin)
    allowed = float(_check.exact("delta", delta))
    horizon, least = process.factor.horizon, per_bin or records
    shape = half_widths(process, allowed / horizon)

    def at(factor: float) -> IntArray:
        found: IntArray = least + np.ceil(factor * shape).astype(np.int64)
        return np.minimum(found, highest)

    def crossing(thresholds: IntArray) -> float:
        tail = cache(lambda in_bin: summed_tail_at(process, thresholds - in_bin))
        return worst_split_tail(tail, records=records, max_per_bin=per_bin)

    fails, holds = 0.0, 2.0
    if not crossing(at(holds)) <= allowed:
        return (highest,) * horizon
    for _ in range(HALVINGS):
        middle = (fails + holds) / 2
        if crossing(at(middle)) <= allowed:
            holds = middle
        else:
            fails = middle
    return tuple(at(holds).tolist())
