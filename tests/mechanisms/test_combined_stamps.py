"""Least squares between the two shapes: unbiased, and better than either."""

from __future__ import annotations

import numpy as np
import pytest

from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import UsageError
from retrodp.mechanisms.combined_stamps import combined
from retrodp.mechanisms.revised import RevisedSeries
from retrodp.noise.key import KeyTree
from retrodp.statistics.revised import seven_bits
from tests.support.plans import HORIZON, plan

BOTH = """
[release.each]
kind = "count"
revised = true
{last}
[release.up_to]
kind = "count"
revised = true
shape = "cumulative"
{last}
"""
RUNS = 300
COUNTS = [40, 0, 7, 100, 3, 20]


def series(last: str) -> tuple[RevisedSeries, RevisedSeries]:
    made = plan(releases=BOTH.format(last=last), epsilon=1)
    each, up_to = (release.mechanism for release in compile_plan(made, resolve(made)))
    assert isinstance(each, RevisedSeries)
    assert isinstance(up_to, RevisedSeries)
    return each, up_to


@pytest.mark.parametrize("last", ["", 'last = "3d"'])
def test_estimates_are_unbiased_with_the_stated_spread_and_better_than_either(last: str) -> None:
    each, up_to = series(last)
    exact = {seven_bits(s) + seven_bits(0): n for s, n in enumerate(COUNTS, 1) if n}
    round_ = 5
    first = each.series.first_stamp(round_)
    truth = np.array(COUNTS[first - 1 : round_])
    sums = np.cumsum(COUNTS[:round_])[first - 1 :]
    found = []
    for run in range(RUNS):
        keys = KeyTree.from_root(run.to_bytes(32, "big"), b"runs", HORIZON)
        answers = [one.release(round_, exact, keys) for one in (each, up_to)]
        found.append(combined(each, answers[0], up_to, answers[1]))
    for name, wanted, alone in (("by_stamp", truth, answers[0]), ("up_to", sums, answers[1])):
        values = np.array([getattr(one, name) for one in found])
        stated = getattr(found[0], f"stddev_{name}")
        errors = values - wanted
        assert np.abs(errors.mean(axis=0) / stated).max() < 6 / np.sqrt(RUNS)
        assert errors.std(axis=0) == pytest.approx(stated, rel=0.3)
        before = [float(spread.stddev) for spread in alone.spreads or ()]
        assert (stated <= np.array(before) * 1.01).all()  # nothing is known of older records
        assert stated.sum() < 0.95 * sum(before)


def test_other_answers_are_refused() -> None:
    each, up_to = series("")
    keys = KeyTree.from_root(bytes(32), b"x", HORIZON)
    early, late = (each.release(round_, {}, keys) for round_ in (3, 4))
    with pytest.raises(UsageError):
        combined(each, early, up_to, up_to.release(4, {}, keys))
    with pytest.raises(UsageError):
        combined(up_to, late, each, late)
