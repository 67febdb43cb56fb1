"""Query, cube and gram from a file to an export: errors, words, figures."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from retrodp.engine.check import check
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.errors import BudgetError, PlanError
from retrodp.plan.plan import Plan
from retrodp.views import budget, show, words
from retrodp.views.export import csv_lines
from retrodp.views.published import Published
from tests.support.vectors import ALL, CUBE, GRAM, LINEAR, MATRIX, OPEN_CUBE, plan
from tests.views.screens import screen, widest

ROWS = [
    {
        "id": str(number),
        "who": "ann",
        "word": "tea",
        "region": ["north", "south"][number % 2],
        "gift": [True, False, None][number % 3],
        "x": 0.5 * (number % 5) - 0.5,
        "y": 0.5 if number % 4 else None,
    }
    for number in range(24)
]


def test_all_kinds_run_show_and_export(ram: Path) -> None:
    with Store.create_for_tests(ram / "store", plan(epsilon=500)) as store:
        store.add(pa.Table.from_pylist(ROWS))
        store.close_round()
        store.delete(["3", "4"])
        store.close_round()
    with Published.open(ram / "store") as published:
        text = "".join(csv_lines(published))
        shown = show.document(published, top=None)
        printed = screen(lambda console: show.render(console, show.document(published)))
    rows = list(csv.DictReader(io.StringIO(text)))
    found = {(row["round"], row["release"], row["key"]): row for row in rows}
    assert len(found) == len(rows)
    north = found["2", "cube", '[["region","north"]]']
    # Twelve in the north, one of which ("4") was deleted; the noise is a fraction at this budget.
    assert abs(Fraction(north["value"]) - 11) <= 3
    assert Fraction(north["low"]) <= 11 <= Fraction(north["high"])
    count = found["2", "gram", '["count"]']
    complete = sum(row["y"] is not None for row in ROWS if row["id"] not in {"3", "4"})
    assert Fraction(count["low"]) <= complete <= Fraction(count["high"])
    assert {release["release"] for release in shown["releases"]} == set(ALL)
    assert '["mean","x"]' in printed
    assert widest(printed) <= 80


def test_the_budget_shows_every_part_with_its_own_error() -> None:
    resolved = resolve(plan())
    document = budget.document(resolved)
    parts = {
        release["release"]: [part["name"] for part in release.get("parts", ())]
        for release in document["releases"]
    }
    assert parts["linear"] == ["gifts", "net", "northern"]
    assert parts["gram"] == ["count", "sum", "product"]
    assert parts["cube"] == ["region", "gift", "region and gift"]
    assert parts["open_cube"][-1] == "region and word"
    assert parts["matrix"] == []
    printed = screen(lambda console: budget.render(console, document))
    assert "  northern" in printed
    assert widest(printed) <= 80


def test_check_says_what_is_measured_and_that_all_of_it_is_retroactive() -> None:
    document = check(plan())
    assert set(document["retroactivity"].values()) == {"exact"}
    json.dumps(document)
    tables = {str(table["name"]): table for table in plan().to_dict()["release"]}
    assert words.meaning(tables["matrix"]) == "weighted sums of surviving records, so far"
    assert words.meaning(tables["gram"]) == "moments of x, y, so far"
    assert words.meaning(tables["cube"]) == "surviving records by region, gift, so far"


def test_the_resolved_plan_holds_the_matrix_and_its_digest() -> None:
    resolved = resolve(plan(MATRIX))
    (entry,) = resolved.releases
    (table,) = resolved.plan["release"]
    assert len(entry["matrix_sha256"]) == 64
    assert table["matrix"][0] == ["region", "gift", "coordinate", "weight"]
    other = resolve(plan(MATRIX.replace("1.5", "1.4")))
    assert other.releases[0]["matrix_sha256"] != entry["matrix_sha256"]
    assert other.fingerprint != resolved.fingerprint


def test_a_store_refuses_the_plan_with_another_matrix(ram: Path) -> None:
    Store.create_for_tests(ram / "store", plan(MATRIX)).close()
    with pytest.raises(Exception, match="release"):
        Store.open(ram / "store", plan=plan(MATRIX.replace("1.5", "1.4")))
    Store.open(ram / "store", plan=plan(MATRIX)).close()


def test_an_open_cube_needs_a_delta_under_pure_epsilon_too() -> None:
    text = plan(OPEN_CUBE, model="pure").text.replace("delta = 1e-6\n", "")
    with pytest.raises(PlanError, match=r"privacy\.delta is missing"):
        Plan.loads(text)
    with pytest.raises(BudgetError, match="max_bins"):
        resolve(
            Plan.loads(
                plan(OPEN_CUBE)
                .text.replace("max_bins = 1000", "max_bins = 10000000000")
                .replace("delta = 1e-6", "delta = 1e-12")
            )
        )


def test_a_public_cube_spends_no_delta_on_thresholds() -> None:
    parts = resolve(plan(CUBE)).budget["delta_parts"]
    assert parts["thresholds"] == parts["collisions"] == "0"
    parts = resolve(plan(OPEN_CUBE)).budget["delta_parts"]
    assert Fraction(parts["thresholds"]) > 0
    assert sum(map(Fraction, parts.values())) == Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("release", "words_"),
    [
        (
            '[release.r]\nkind = "query"\nmatrix = [["gift", "coordinate", "weight"], [true, "a", 0]]',
            "no weight but 0",
        ),
        (LINEAR.replace('[gift]"', '[gift]", z = "x"') + "norm = 0.2\n", "below a step"),
        (GRAM.replace("norm = 2", "norm = 0.25"), "no multiple"),
    ],
)
def test_what_cannot_be_released_is_refused_with_a_reason(release: str, words_: str) -> None:
    with pytest.raises(PlanError, match=words_):
        resolve(plan(release))
