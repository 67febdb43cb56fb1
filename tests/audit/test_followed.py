"""Kinds that publish what they make of noisy coordinates are followed down to every value."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from retrodp.audit.cases import Case
from retrodp.audit.misuse import too_small
from retrodp.audit.parts import components, coordinates, moved_nodes
from retrodp.audit.privacy import rows_of
from retrodp.audit.report import Row
from retrodp.audit.subjects import MODELS, Model
from retrodp.mechanisms.ordered import Cumulative, cumulative
from retrodp.mechanisms.quantiles import Quantiles
from retrodp.postprocess.halving import Cut
from tests.audit.sizes import MISS, SEED, SIZE

MATRIX = [["country", "coordinate", "weight"], ["DE", "a", 1.5], ["DE", "b", -1], ["FR", "b", 2]]
TABLES: dict[str, dict[str, Any]] = {
    "quantiles": {"kind": "quantiles", "of": "amount", "at": [0.25, 0.5], "by": "country"},
    "tree of counts": {"kind": "cdf", "of": "amount", "edges": [-5, 0, 5, 10, 15, 20]},
    "added counts": {"kind": "cdf", "of": "amount", "edges": [0, 20], "by": "country"},
    "range": {"kind": "range", "of": "amount", "edges": [0, 5, 10, 20]},
    "cube": {"kind": "cube", "by": ["country", "gift"]},
    "open cube": {"kind": "cube", "by": ["product", "country"]},
    "matrix": {"kind": "query", "matrix": MATRIX},
    "expressions": {"kind": "query", "linear": {"net": "2 * amount - 3", "gifts": "[gift]"}},
    "clipped": {"kind": "query", "linear": {"net": "amount", "gifts": "[gift]"}, "norm": 5},
    "gram": {"kind": "gram", "of": ["amount", "weight"], "norm": 25},
}

every = pytest.mark.parametrize("name", TABLES)


def case(name: str, model: Model, horizon: int = SIZE.horizon) -> Case:
    return Case.of(name, {"r": TABLES[name]}, model=model, horizon=horizon)


@cache
def rows(name: str, model: Model) -> tuple[Row, ...]:
    return tuple(rows_of(case(name, model), SEED.further(name), SIZE, miss=MISS))


@every
@pytest.mark.parametrize("model", MODELS)
def test_what_is_published_is_what_is_said_again_and_no_row_accuses(
    name: str, model: Model
) -> None:
    found = {row.test: row for row in rows(name, model)}
    assert {row.verdict for row in found.values()} == {"holds"}
    assert found["declared noise"].details["answers"] > 0
    assert found["neighbouring streams"].details["follows_release"] is True


@every
def test_measures_come_close_to_their_claims(name: str) -> None:
    (row,) = (row for row in rows(name, "zcdp") if row.test == "neighbouring streams")
    assert 0.55 < row.details["loss_measured"] / row.details["loss_claimed"] < 1
    assert row.details["noise_too_small_by_found"] in {1.5, 2.0}


@every
def test_noise_of_half_the_scale_is_accused_by_what_was_seen(name: str) -> None:
    planted = case(name, "zcdp").tampered(too_small(Fraction(2)))
    found = rows_of(planted, SEED.further(name), replace(SIZE, windows=1), miss=MISS)
    (row,) = (row for row in found if row.test == "neighbouring streams")
    assert row.verdict == "accused"


@pytest.mark.parametrize("cells", [1, 2, 3, 37, 64])
def test_a_record_moves_the_number_and_the_nodes_above_it(cells: int) -> None:
    """The same as differences of counts below the cuts, which the release works with."""
    wrong = []
    for cell in range(cells):
        moved = dict(moved_nodes(cell, cells))
        (counts,) = cumulative({b"%d" % cell: 1}, [b""])
        wrong += [cut for cut in _cuts(cells) if counts.difference(cut) != moved.get(cut.number, 0)]
        assert moved[0] == 1
    assert wrong == []


def _cuts(cells: int) -> list[Cut]:
    found, level = [], [Cut(0, 1, 0, cells)]
    while level := [cut for cut in level if cut.high - cut.low > 1]:
        found += level
        level = [
            half
            for cut in level
            for half in (
                Cut(0, 2 * cut.number, cut.low, cut.middle),
                Cut(0, 2 * cut.number + 1, cut.middle, cut.high),
            )
        ]
    return found


def test_coordinates_of_a_tree_are_those_that_the_noise_is_added_to() -> None:
    made = case("quantiles", "zcdp", horizon=3)
    (mechanism,) = made.mechanisms.values()
    assert isinstance(mechanism, Quantiles)
    assert mechanism.groups is not None
    group = mechanism.groups[0].encode()
    totals = {b"7\n" + group: 3, b"50\n" + group: 2, b"9\nelsewhere": 4}
    found = coordinates(mechanism, totals)
    counts = Cumulative([7, 50], [0, 3, 5])
    assert found[b"node 0 of " + group] == 5
    assert found[b"node 1 of " + group] == counts.difference(Cut(0, 1, 0, 51))
    assert not [label for label in found if label.endswith(b"elsewhere")]


def test_every_component_of_the_plan_is_known() -> None:
    found = {
        name: components(one) for name in TABLES for one in case(name, "zcdp").mechanisms.values()
    }
    numbers = {name: len(noises or {}) for name, noises in found.items()}
    assert numbers == dict.fromkeys(TABLES, 1) | {"open cube": 2, "expressions": 2, "gram": 3}
