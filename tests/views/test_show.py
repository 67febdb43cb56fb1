from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrodp.errors import UsageError
from retrodp.views import show
from retrodp.views.published import Published
from tests.views import stores
from tests.views.screens import screen, widest


def release(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {one["release"]: one for one in document["releases"]}
    return found[name]


def test_the_last_round_is_shown_unless_another_is_asked_for(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        last, second = show.document(published), show.document(published, round=2)
    assert (last["round"], second["round"]) == (3, 2)
    assert (second["round_start"], second["round_end"]) == (
        "2011-03-26T00:00:00+00:00",
        "2011-03-27T00:00:00+00:00",
    )


def test_a_document_is_json_with_a_format(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        document = show.document(published, now=published.boundaries[5])
    assert json.loads(json.dumps(document)) == document
    assert document["format"] == 1


def test_a_scalar_is_shown_with_its_intervals(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 1) as published:
        lines = release(show.document(published), "lines")
        noise = published.entries["lines"]["noise"]
    half, half_all = noise["half"][0], noise["half_all"][0]
    assert lines["bins"] is None
    assert lines["rows"] == [
        {
            "key": "",
            "value": "1007",
            "stddev": noise["stddev"][0],
            "low": str(1007 - half),
            "high": str(1007 + half),
            "low_all": str(1007 - half_all),
            "high_all": str(1007 + half_all),
        }
    ]


def test_a_release_says_what_it_counts(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 1) as published:
        document = show.document(published)
    assert {one["release"]: one["means"] for one in document["releases"]} == {
        "lines": "surviving records, the last 7 days",
        "revenue": "sum of amount where country == 'Germany', so far",
        "by_country": "surviving records by country, so far",
        "by_product": "surviving records by product, so far",
    }


def test_the_largest_bins_come_first_and_ties_by_key(tmp_path: Path) -> None:
    day = stores.usual(1, {"d": 500, "c": 800, "b": 800, "a": 300})
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        shown = release(show.document(published, top=3), "by_product")
    assert [row["key"] for row in shown["rows"]] == ["b", "c", "d"]
    assert shown["bins"] == 4


def test_all_bins_can_be_shown_by_key(tmp_path: Path) -> None:
    day = stores.usual(1, {"b": 800, "c": 900, "a": 300})
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        shown = release(show.document(published, top=None), "by_product")
    assert [row["key"] for row in shown["rows"]] == ["a", "b", "c"]


def test_what_is_absent_has_a_bound(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 1) as published:
        document = show.document(published)
        entry = published.entries["by_product"]
    shown, half = release(document, "by_product"), entry["noise"]["half"][0]
    assert shown["absent_below"] == str(entry["threshold"])
    assert shown["absent_high"] == str(entry["threshold"] - 1 + half)
    assert "absent_below" not in release(document, "by_country")


def test_an_empty_sparse_release_still_has_its_bound(tmp_path: Path) -> None:
    with Published.open(stores.store_of(tmp_path / "store", [stores.usual(1, {})])) as published:
        document = show.document(published)
    shown = release(document, "by_product")
    assert (shown["bins"], shown["rows"]) == (0, [])
    text = screen(lambda console: show.render(console, document))
    assert f"below {shown['absent_below']} with its noise" in text


def test_a_round_that_is_not_published_is_wrong_use(tmp_path: Path) -> None:
    with (
        stores.opened(tmp_path / "store", 3) as published,
        pytest.raises(UsageError, match=r"Round 4 is not published.*1 to 3"),
    ):
        show.document(published, round=4)


def test_before_the_first_round_there_is_nothing_to_show(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 0) as published:
        document = show.document(published)
    assert (document["round"], document["releases"]) == (0, [])
    assert "Nothing is published yet" in screen(lambda console: show.render(console, document))


def test_the_tables_fit_80_columns_and_group_thousands(tmp_path: Path) -> None:
    long = "a very long label of a product that nobody would ever read to its very end " * 2
    day = stores.usual(1, {long: 1_234_567, "Tea": 2_000})
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        document = show.document(published, now=published.boundaries[6])
    text = screen(lambda console: show.render(console, document))
    assert widest(text) <= 80
    assert "1,234,567" in text
    assert "-617.30" in text
    assert "± 95%" in text
    assert "Late: rounds 2 to 6 are over by the calendar and not published." in text


def test_values_are_aligned_to_the_right(tmp_path: Path) -> None:
    day = stores.usual(1, {"Tea": 1_234_567, "Jam": 700})
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        document = show.document(published)
    lines = screen(lambda console: show.render(console, document)).splitlines()
    [tea] = [line for line in lines if line.startswith("Tea")]
    [jam] = [line for line in lines if line.startswith("Jam")]
    assert tea.index("1,234,567") + 9 == jam.index("700") + 3


def test_a_label_is_printed_as_text_and_not_obeyed(tmp_path: Path) -> None:
    labels = ["[red]x[/red]", "[null]", ":smile:", "\x1b[2Jboo", "a\nb"]
    day = stores.usual(1, dict.fromkeys(labels, 900))
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        document = show.document(published)
    text = screen(lambda console: show.render(console, document))
    shown = [line.split()[0] for line in text.splitlines() if " 900 " in line]
    assert shown == ["\\x1b[2Jboo", ":smile:", "[null]", "[red]x[/red]", "a\\nb"]


@pytest.mark.parametrize(("test", "times"), [(True, 1), (False, 0)])
def test_a_store_made_for_tests_prints_test(tmp_path: Path, *, test: bool, times: int) -> None:
    with stores.opened(tmp_path / "store", test=test) as published:
        document = show.document(published)
    assert screen(lambda console: show.render(console, document)).count("TEST") == times


@pytest.mark.parametrize(
    ("gaps", "lines"),
    [
        ({"late": None, "open": 4}, ["Open: round 4."]),
        (
            {"late": [4, 4], "open": 5},
            ["Late: round 4 is over by the calendar and not published.", "Open: round 5."],
        ),
        (
            {"missing": [[1, 2]]},
            ["Missing: rounds 1 to 2 are not published although later ones are."],
        ),
        ({"published": 10}, ["The horizon is over: all rounds are published."]),
    ],
)
def test_gaps_are_said_in_words(gaps: dict[str, Any], lines: list[str]) -> None:
    usual = {"published": 3, "horizon": 10, "missing": [], "late": None, "open": None}
    assert show.gap_lines({**usual, **gaps}) == lines
