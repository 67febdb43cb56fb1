"""What one unit moves in a tree or a row of cells, over every window, is what is charged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.engine.compile import CompiledRelease, compile_plan, statistic_of
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.cdf import CumulativeCounts
from retrodp.mechanisms.ordered import NoisyTree, cumulative, group_labels
from retrodp.mechanisms.quantiles import Quantiles
from retrodp.noise.process import NoiseProcess
from retrodp.plan.plan import Plan
from retrodp.postprocess.halving import Cut, counts_below, depth
from retrodp.privacy.loss import PureLoss, total_rho
from retrodp.statistics.contract import Statistic
from retrodp.stream.batch import Batch
from tests.contracts.test_sensitivity import node_shifts, vector

Matrix = NDArray[np.float64]
VALUES = 5  # the grid 0..4: a tree of 3 levels, not an even one

PLAN = """
[stream]
start = 2026-01-01
round = "1d"
horizon = {horizon}
{unit}
[columns]
who = {{ type = "text", nullable = false }}
size = {{ type = "integer", min = 0, max = 4, nullable = true }}
color = {{ type = "category", values = ["red", "blue"], nullable = false }}
[privacy]
model = "{model}"
epsilon = 2
delta = 1e-6
[release.r]
of = "size"
factor = "{factor}"
{release}
"""
UNITS = {
    1: 'unit = "record"',
    2: 'unit = "person_round"\nperson = "who"\nmax_records = 2',
}
RELEASES = {
    "quantiles": 'kind = "quantiles"\nat = [0.5]',
    "quantiles by color": 'kind = "quantiles"\nat = [0.5]\nby = "color"',
    "cdf of a tree": 'kind = "cdf"\nedges = [0, 1, 2, 3]',
    "cdf by color": 'kind = "cdf"\nedges = [1, 3]\nby = "color"',
    "range": 'kind = "range"\nedges = [0, 2, 5]',
}
Record = tuple[int | None, str]
RECORDS: list[Record] = [*product([None, 0, 1, 2, 3, 4], ["red", "blue"])]


def plan_of(release: str, *, records: int, model: str, factor: str, horizon: int = 6) -> Plan:
    return Plan.loads(
        PLAN.format(
            release=RELEASES[release],
            unit=UNITS[records],
            model=model,
            factor=factor,
            horizon=horizon,
        )
    )


def moved(statistic: Statistic, mechanism: Any, record: Record) -> Matrix:
    """What one record adds to the exact coordinates that get noise: by the mechanism's own code."""
    columns: dict[str, list[object]] = {"size": [record[0]], "color": [record[1]], "who": ["x"]}
    totals = statistic.encode(Batch(1, columns, np.array([1])))
    if not isinstance(mechanism, Quantiles | CumulativeCounts):
        return np.array([totals.get(label.encode(), 0) for label in mechanism.bins], dtype=float)
    counts = cumulative(totals, group_labels(mechanism.groups))
    if isinstance(mechanism, CumulativeCounts) and mechanism.flat:
        return np.array(
            [
                count.below(cell + 1) - count.below(cell)
                for count in counts
                for cell in range(len(mechanism.texts))
            ],
            dtype=float,
        )
    cells = mechanism.cells.count if isinstance(mechanism, Quantiles) else len(mechanism.texts)
    tree = NoisyTree(counts, cells, lambda where: np.zeros(len(where), dtype=np.int64))
    cuts: list[Cut] = []

    def asked(found: Sequence[Cut]) -> list[int]:
        cuts.extend(found)
        return tree.differences(found)

    for group, total in enumerate(tree.totals()):
        counts_below(cells, total, asked, group=group)
    return np.array([*tree.totals(), *tree.differences(cuts)], dtype=float)


def units(horizon: int, records: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Starts, and the ends of so many windows that share it."""
    for start in range(1, horizon + 1):
        for ends in product(range(start + 1, horizon + 2), repeat=records):
            yield start, ends


def worst(plan: Plan, *, records: int) -> tuple[float, float]:
    """Largest L1 norm and squared L2 norm of the node shifts of all coordinates, over all units."""
    (release,) = compile_plan(plan, resolve(plan))
    mechanism: Any = release.mechanism
    horizon = plan.stream.horizon
    _, columns = node_shifts(mechanism.factor)
    rows = {record: moved(release.statistic, mechanism, record) for record in RECORDS}
    l1 = l2sq = 0.0
    for start, ends in units(horizon, records):
        windows = np.array([vector(columns, start, [end]) for end in ends])
        for chosen in combinations_with_replacement(RECORDS, records):
            coordinates = np.array([rows[record] for record in chosen])  # records x coordinates
            shifts = coordinates.T @ windows
            l1 = max(l1, float(np.abs(shifts).sum()))
            l2sq = max(l2sq, float((shifts**2).sum()))
    return l1, l2sq


def counter_worst(release: CompiledRelease, horizon: int) -> float:
    """Largest squared L2 norm that one window moves in a single counter."""
    _, columns = node_shifts(release.mechanism.factor)  # type: ignore[arg-type]
    windows = [vector(columns, start, ends) for start, ends in units(horizon, 1)]
    return max(float((window**2).sum()) for window in windows)


@pytest.mark.parametrize(("model", "factor"), [("zcdp", "haar"), ("pure", "delannoy")])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("records", "horizon"), [(1, 8), (2, 3)])
def test_no_unit_moves_more_than_is_charged(
    release: str, records: int, horizon: int, model: str, factor: str
) -> None:
    plan = plan_of(release, records=records, model=model, factor=factor, horizon=horizon)
    (compiled,) = compile_plan(plan, resolve(plan))
    noise = NoiseProcess.from_spec(resolve(plan).release("r")["noise"]["process"])
    losses = compiled.mechanism.cost()
    l1, l2sq = worst(plan, records=records)
    if model == "pure":
        assert l1 > 0
        charged = sum(loss.epsilon for loss in losses if isinstance(loss, PureLoss))
        assert Fraction(l1) / noise.scale <= charged == plan.privacy.epsilon
        assert Fraction(l1) / noise.scale == charged  # and no more than needed
    else:
        assert 0 < Fraction(l2sq) / (2 * noise.scale) <= total_rho(losses)
        # And no more than needed: as many coordinates, each moved like a counter by so many records.
        (component,) = compiled.statistic.components
        assert l2sq == records**2 * len(component.partitions) * counter_worst(compiled, horizon)


@pytest.mark.parametrize("release", RELEASES)
def test_a_record_moves_each_coordinate_by_one_at_most(release: str) -> None:
    plan = plan_of(release, records=1, model="zcdp", factor="haar")
    (compiled,) = compile_plan(plan, resolve(plan))
    (component,) = statistic_of(plan, plan.releases[0]).components
    rows = [moved(compiled.statistic, compiled.mechanism, record) for record in RECORDS]
    assert {abs(step) for row in rows for step in row.tolist()} <= {0.0, 1.0}
    assert max(np.count_nonzero(row) for row in rows) == len(component.partitions)


def test_null_moves_nothing() -> None:
    plan = plan_of("quantiles", records=1, model="zcdp", factor="haar")
    (compiled,) = compile_plan(plan, resolve(plan))
    assert not moved(compiled.statistic, compiled.mechanism, (None, "red")).any()


def test_twin_charging_a_tree_like_a_histogram_is_too_little() -> None:
    """One coordinate a record: the total alone; the levels come for free, and are not."""
    plan = plan_of("quantiles", records=1, model="zcdp", factor="haar", horizon=5)
    (compiled,) = compile_plan(plan, resolve(plan))
    mechanism: Any = compiled.mechanism
    _, l2sq = worst(plan, records=1)
    assert l2sq == (depth(VALUES) + 1) * mechanism.factor.window_l2sq


def test_twin_the_root_of_k_in_a_tree_is_too_little() -> None:
    """Attack 11: two records of a person in the same nodes add up before they are squared."""
    one = plan_of("quantiles", records=1, model="zcdp", factor="haar", horizon=3)
    two = plan_of("quantiles", records=2, model="zcdp", factor="haar", horizon=3)
    assert worst(two, records=2)[1] == 4 * worst(one, records=1)[1]
