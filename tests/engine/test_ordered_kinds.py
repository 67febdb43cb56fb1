"""Quantiles, cumulative counts and ranges through whole plans and stores."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from retrodp.engine.check import check
from retrodp.engine.resolve import resolve
from retrodp.engine.verify import verify
from retrodp.errors import NotInThisVersionError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from tests.support.plans import MODELS, Kind, Model, plan
from tests.support.rows import Contents, Row, add, delete, ingest
from tests.support.stores import new_store, published
from tests.support.uniting import Forget, Pair, difference, few, pairs

RELEASES = """
[release.spread]
kind = "quantiles"
of = "amount"
at = [0.25, 0.5, "2/3", 0.95]
[release.spread_by_country]
kind = "quantiles"
of = "amount"
at = [0.5]
by = ["country", "gift"]
[release.spread_lately]
kind = "quantiles"
of = "amount"
at = [0.5]
window = "2d"
[release.spread_of_gifts]
kind = "quantiles"
of = "amount"
at = [0.5]
where = "gift and country == 'DE'"
factor = "binary"
[release.below]
kind = "cdf"
of = "amount"
edges = [-5, -1, 0, 1, 1.5, 2, 5, 10, 15, 20]
[release.below_by_gift]
kind = "cdf"
of = "amount"
edges = [0, 10]
by = "gift"
window = "3d"
[release.between]
kind = "range"
of = "amount"
edges = [-5, 0, 1.5, 10, 20.5]
by = "country"
"""
VALUES = [-5.0, -1.0, 0.5, 1.5, 1.5, 1.5, 2.0, 7.5, 20.0, 30.0, None]
"""As files write them; 30 is moved to 20, and None is not counted."""


def exact_enough(kind: Kind = "ids", model: Model = "zcdp") -> Plan:
    """So much budget that noise hardly shows."""
    return plan(kind, model, releases=RELEASES, epsilon=3000)


def many(values: Sequence[float | None], copies: int) -> list[Row]:
    return [
        add(f"{number}-{copy}", 1 + number % 2, amount=value, gift=number % 2 == 0)
        for number, value in enumerate(values)
        for copy in range(copies)
    ]


def answers(path: Path, round_: int) -> dict[str, dict[str, float | None]]:
    found = {}
    for name, data in published(path)[round_].items():
        answer = Answer.from_bytes(data)
        assert answer.keys is not None
        found[name] = {
            key: None if value is None else float(value * answer.step)
            for key, value in zip(answer.keys, answer.values, strict=True)
        }
    return found


@pytest.mark.parametrize("model", MODELS)
def test_with_hardly_any_noise_a_store_publishes_what_a_sort_says(ram: Path, model: Model) -> None:
    with new_store(ram / "store", exact_enough(model=model)) as store:
        ingest(store, many(VALUES, 40))
        store.close_through(3)
        kept = sorted(min(value, 20) for value in VALUES if value is not None)
        three = answers(ram / "store", 3)
    for key, value in three["spread"].items():
        assert value == kept[-(-len(kept) * Fraction(key) // 1) - 1]
    below = {edge: 40 * bisect_right(kept, float(edge)) for edge in three["below"]}
    assert three["below"] == pytest.approx(below, abs=2)
    between = {key: value for key, value in three["between"].items() if key.startswith('["DE"')}
    counts = {"[-5, 0)": 80, "[0, 1.5)": 40, "[1.5, 10)": 200, "[10, 20.5)": 80}
    assert between == pytest.approx(
        {f'["DE","{label}"]': count for label, count in counts.items()}, abs=2
    )
    gifts = sorted(min(v, 20) for n, v in enumerate(VALUES) if v is not None and n % 2 == 0)
    assert three["spread_by_country"]['["DE",true,0.5]'] == gifts[-(-len(gifts) // 2) - 1]
    assert three["spread_by_country"]['["FR",true,0.5]'] is None
    assert three["spread_of_gifts"]["0.5"] == gifts[-(-len(gifts) // 2) - 1]


def test_windows_let_values_go(ram: Path) -> None:
    with new_store(ram / "store", exact_enough()) as store:
        ingest(store, many([5.0], 200))
        store.close_through(4)
    lately = [answers(ram / "store", round_)["spread_lately"]["0.5"] for round_ in (1, 2, 3, 4)]
    assert lately == [5.0, 5.0, None, None]


@pytest.mark.parametrize("kind", ["ids", "persons"])
def test_totals_are_kept_by_cell_and_leave_with_the_last_value(ram: Path, kind: Kind) -> None:
    with new_store(ram / "store", plan(kind, releases=RELEASES)) as store:
        ingest(store, [add("a", 1, amount=2.0), add("b", 1, who="bob", amount=2.0)])
        store.close_round()
        assert store.ledger.read_totals("spread") == {b"14": 2}
        assert store.ledger.read_totals("spread_by_country") == {b'14\n["DE",false]': 2}
        ingest(store, [delete("a", 2), delete("b", 2, who="bob")])
        store.close_round()
        left = [store.ledger.read_totals(name) for name in ANSWERS]
    assert left == [{}] * len(ANSWERS)


ANSWERS = [
    *("spread", "spread_by_country", "spread_lately", "spread_of_gifts"),
    *("below", "below_by_gift", "between"),
]

RUN = few(6)


@pytest.mark.parametrize("model", MODELS)
@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_publish_the_same_bytes(model: Model, pair: Pair) -> None:
    assert difference(plan("ids", model, releases=RELEASES), pair) is None


@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_publish_the_same_bytes(pair: Pair) -> None:
    assert difference(plan("points", releases=RELEASES), pair) is None


# The forgotten record was the greatest value, alone in its cell, and made the upper quantile.
OUTLIER = Pair(
    meet=4,
    one=(
        *(add(f"{n}", 1, amount=1.0) for n in range(30)),
        add("x", 1, who="eve", amount=20.0, country="FR"),
        Forget(3, "person", "eve"),
    ),
    two=tuple(add(f"{n}", 1, amount=1.0) for n in range(30)),
)
# The same values, once there early and replaced, once late.
REPLACED = Pair(
    meet=3,
    one=(
        Row(id="a", round=1, contents=Contents(amount=-5.0)),
        Row(op="replace", id="a", round=3, stamp=2, contents=Contents(amount=9.5)),
    ),
    two=(Row(id="a", round=3, stamp=2, contents=Contents(amount=9.5)),),
)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["ids", "persons"])
@pytest.mark.parametrize("pair", [OUTLIER, REPLACED], ids=["outlier", "replaced"])
def test_chosen_pairs_unite_under_every_unit(kind: Kind, model: Model, pair: Pair) -> None:
    assert difference(plan(kind, model, releases=RELEASES), pair) is None


def test_verify_recomputes_trees_from_the_survivors(ram: Path) -> None:
    with new_store(ram / "store", plan(releases=RELEASES)) as store:
        ingest(store, many(VALUES, 3))
        store.close_through(2)
        outcome = verify(store, [])
    assert outcome.passed
    assert outcome.document["releases_equal"]


@pytest.mark.parametrize("model", MODELS)
def test_check_predicts_rank_errors_and_the_store_keeps_what_was_decided(model: Model) -> None:
    promised = plan(model=model, releases=RELEASES, epsilon=1)
    document = check(promised)
    facts: dict[str, Mapping[str, Any]] = {one["name"]: one for one in document["releases"]}
    resolved = ResolvedPlan.from_json(resolve(promised).to_json())
    for name in ("spread", "below"):
        errors = resolved.release(name)["errors"]
        assert facts[name]["error_max"] == errors["half"] > 0
        assert facts[name]["error_all_max"] == errors["half_all"] > errors["half"]
        assert len(resolved.release(name)["band"]["reach"]) == promised.stream.horizon
    assert facts["spread"]["error_is"] == "of the rank, in records"
    assert document["retroactivity"] == dict.fromkeys(ANSWERS, "exact")


def test_a_plan_survives_its_dictionary() -> None:
    promised = plan(releases=RELEASES)
    assert Plan.from_dict(promised.to_dict()) == promised


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ('kind = "quantiles"\nof = "amount"', "at is missing"),
        ('kind = "quantiles"\nof = "amount"\nat = []', "at is"),
        ('kind = "quantiles"\nof = "amount"\nat = [0]', "between 0 and 1"),
        ('kind = "quantiles"\nof = "amount"\nat = [1.0]', "between 0 and 1"),
        ('kind = "quantiles"\nof = "amount"\nat = [nan]', "at is NaN"),
        ('kind = "quantiles"\nof = "amount"\nat = [0.5, "1/2"]', "different numbers"),
        ('kind = "quantiles"\nof = "amount"\nat = 0.5', "list of numbers"),
        ('kind = "quantiles"\nof = "product"\nat = [0.5]', "number or integer"),
        ('kind = "quantiles"\nof = "amount"\nat = [0.5]\nedges = [1]', "edges is not a key"),
        ('kind = "cdf"\nof = "amount"', "edges is missing"),
        ('kind = "range"\nof = "amount"\nedges = [0]', "at least two"),
        ('kind = "cdf"\nof = "amount"\nedges = [0]\nat = [0.5]', "at is not a key"),
    ],
)
def test_plans_that_make_no_sense_are_refused(release: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(releases=f"[release.r]\n{release}")


@pytest.mark.parametrize("kind", ["quantiles", "cdf", "range"])
def test_groups_of_an_open_column_are_not_in_this_version(kind: str) -> None:
    own = "at = [0.5]" if kind == "quantiles" else "edges = [0, 5]"
    release = f'[release.r]\nkind = "{kind}"\nof = "amount"\nby = "product"\n{own}'
    with pytest.raises(NotInThisVersionError):
        resolve(plan(releases=release))


@pytest.mark.parametrize(
    ("grid", "groups"), [("min = 0, max = 9007199254740992, step = 1", 1 << 12)]
)
def test_grids_too_fine_for_their_groups_are_refused(grid: str, groups: int) -> None:
    values = ", ".join(f'"{n}"' for n in range(groups))
    text = (
        plan(releases='[release.r]\nkind = "count"')
        .text.replace("min = -5, max = 20, step = 0.5", grid)
        .replace('"DE", "FR"', values)
        .replace('kind = "count"', 'kind = "quantiles"\nof = "amount"\nat = [0.5]\nby = "country"')
    )
    with pytest.raises(PlanError, match="too fine a grid"):
        Plan.loads(text)


def test_the_widest_grid_of_a_plan_is_searched(ram: Path) -> None:
    text = plan(releases='[release.r]\nkind = "quantiles"\nof = "amount"\nat = [0.5]').text
    wide = text.replace("min = -5, max = 20, step = 0.5", f"min = 0, max = {2**53}, step = 1")
    with new_store(ram / "store", Plan.loads(wide)) as store:
        ingest(store, [add(str(n), 1, amount=3e15) for n in range(300)])
        store.close_round()
    assert answers(ram / "store", 1)["r"] == {"0.5": 3e15}
