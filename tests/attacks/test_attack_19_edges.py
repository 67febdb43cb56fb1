"""Attack 19 for ordered kinds: edges beside the grid, and values moved to a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.errors import PlanError
from retrodp.plan.plan import Plan
from tests.support.plans import plan
from tests.support.rows import add, ingest
from tests.support.stores import new_store

KINDS = {
    "cdf": 'kind = "cdf"\nof = "amount"\nedges = {edges}',
    "range": 'kind = "range"\nof = "amount"\nedges = {edges}',
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "edges",
    [
        "[0, 0.3]",
        "[-5.5, 3]",
        "[0, 21]",
        "[3, 0]",
        "[0, 0]",
        "[nan, 1]",
        "[inf, 1]",
        "[]",
        "[true]",
    ],
)
def test_edges_off_the_grid_or_out_of_bounds_are_refused(kind: str, edges: str) -> None:
    with pytest.raises(PlanError, match="edges"):
        plan(releases=f"[release.r]\n{KINDS[kind].format(edges=edges)}")


def test_the_last_edge_of_a_range_may_lie_one_step_above_the_greatest_value() -> None:
    plan(releases=f"[release.r]\n{KINDS['range'].format(edges='[0, 20.5]')}")
    with pytest.raises(PlanError, match="edges"):
        plan(releases=f"[release.r]\n{KINDS['cdf'].format(edges='[0, 20.5]')}")


def test_a_value_on_an_edge_is_at_or_below_it(ram: Path) -> None:
    halves = plan(releases=f"[release.c]\n{KINDS['cdf'].format(edges='[0.5, 1]')}").text
    tenths = halves.replace("step = 0.5", "step = 0.1").replace("[0.5, 1]", "[0.3, 1]")
    with new_store(ram / "store", Plan.loads(tenths)) as store:
        ingest(store, [add("a", 1, amount=0.3), add("b", 1, amount=3 * 0.1)])
        store.close_round()
        assert store.ledger.read_totals("c") == {b"0": 2}


@pytest.mark.parametrize("value", [1e308, 20.0, 20.24, 19.76, -1e308, -5.0, 5e-324, -0.0])
def test_a_record_counts_once_wherever_its_value_is_moved(ram: Path, value: float) -> None:
    releases = (
        '[release.q]\nkind = "quantiles"\nof = "amount"\nat = [0.5]\n'
        f"[release.c]\n{KINDS['cdf'].format(edges='[-5, 0, 20]')}\n"
        f"[release.s]\n{KINDS['range'].format(edges='[-5, 0, 20.5]')}\n"
    )
    with new_store(ram / "store", plan(releases=releases)) as store:
        ingest(store, [add("a", 1, amount=value)])
        store.close_round()
        totals = {name: store.ledger.read_totals(name) for name in ("q", "c", "s")}
    assert [sum(own.values()) for own in totals.values()] == [1, 1, 1]
    least, greatest = value <= -4.75, value >= 19.75
    cell = 0 if least else 50 if greatest else 10
    assert totals["q"] == {b"%d" % cell: 1}
    assert totals["c"] == {b"0" if least else b"2" if greatest else b"1": 1}
    assert totals["s"] == {b"[-5, 0)" if least else b"[0, 20.5)": 1}


def test_twin_float_edges_put_a_value_on_the_wrong_side() -> None:
    """Three steps of 0.1 are 0.30000000000000004: beyond the edge 0.3, which the value is on."""
    assert not 3 * 0.1 <= 0.3
