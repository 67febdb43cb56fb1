"""Least squares between a series by stamp and one that is cumulative in stamp, within one round.

Promise: post-processing of two published answers of one round, so it costs no privacy and remembers
nothing. It is no part of a release: it works in floating point, and its last digits may differ from
machine to machine. Knows no data.

With x the records of each stamp, the one answer says y = x + e and the other z = A x + f, A the lower
triangle of ones (stamps older than those published are one more unknown). The noises are independent,
e alike and uncorrelated, f with the covariance of the stamp axis. Least squares weighted by both is
the linear unbiased estimate of least variance (Gauss, Markov, Aitken).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.revised import RevisedSeries
from retrodp.noise.factors.axis import WalkAxis, signs_of
from retrodp.noise.factors.dense import rows_of
from retrodp.noise.product import ProductProcess

Floats = NDArray[np.float64]


class Combined(NamedTuple):
    """Estimates in units of the statistic, each of shape (stamps,), for the stamps of the round.

    Attributes:
        by_stamp: Of each stamp.
        up_to: Up to each stamp.
        stddev_by_stamp: Standard deviations of `by_stamp`.
        stddev_up_to: Of `up_to`.
    """

    by_stamp: Floats
    up_to: Floats
    stddev_by_stamp: Floats
    stddev_up_to: Floats


def combined(
    series: RevisedSeries, answer: Answer, prefix: RevisedSeries, prefix_answer: Answer
) -> Combined:
    """Put both answers of one round together.

    Args:
        series: One number a stamp, of shape "per_stamp".
        answer: What it published.
        prefix: The same statistic of shape "cumulative", with the same `last`.
        prefix_answer: What that published in the same round.

    Raises:
        UsageError: They are not of that kind, or not of one round and the same stamps.
    """
    fits = (
        not series.series.cumulative
        and prefix.series.cumulative
        and series.bins is prefix.bins is None
        and (answer.round, answer.stamps) == (prefix_answer.round, prefix_answer.stamps)
    )
    if not fits:
        raise UsageError(
            "Only two answers of one round and the same stamps can be put together.",
            expected="a scalar series by stamp, and its cumulative twin",
        )
    count = len(answer)
    first = np.array([float(spread.stddev) for spread in answer.spreads or ()]) ** 2
    second = covariance(prefix, answer.round)
    sums = np.tri(count)
    observed = np.vstack([np.eye(count), sums])
    if answer.first_stamp > 1:  # older records: one unknown that only the sums see
        older = np.concatenate([np.zeros(count), np.ones(count)])[:, None]
        observed = np.hstack([observed, older])
        sums = np.hstack([sums, np.ones((count, 1))])
    noise = np.zeros((2 * count, 2 * count))
    noise[:count, :count], noise[count:, count:] = np.diag(first), second
    weighted = cho_solve(cho_factor(noise), observed)
    spread = np.linalg.inv(observed.T @ weighted)
    said = np.array([float(answer.step * (value or 0)) for value in answer.values])
    told = np.array([float(answer.step * (value or 0)) for value in prefix_answer.values])
    found = spread @ (weighted.T @ np.concatenate([said, told]))
    return Combined(
        found[:count],
        sums @ found,
        np.sqrt(spread.diagonal()[:count]),
        np.sqrt((sums @ spread @ sums.T).diagonal()),
    )


def covariance(prefix: RevisedSeries, round_: int) -> Floats:
    """Covariance of the noise at the stamps of a round, in squared units of the statistic."""
    process = prefix.series.noise.process
    assert isinstance(process, ProductProcess)
    axis, first = process.factor.axis, process.factor.first_stamp(round_)
    if isinstance(axis, WalkAxis):
        rows = signs_of(axis, first, round_).toarray().astype(np.float64)
    else:
        rows = rows_of(axis.root).weights[first - 1 : round_, :round_]
    unit = float(process.factor.arrival.unit_variance(round_)) * float(prefix.step) ** 2
    found: Floats = rows @ rows.T * (unit * process.node_law.variance_exactish)
    return found + np.eye(len(found)) * float(prefix.step) ** 2 / 12
