"""Vintages: first and latest release, the triangle, and the export that shows them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from retrodp.errors import UsageError
from retrodp.views import show, vintages
from retrodp.views.export import (
    ALL,
    COLUMNS,
    Selection,
    columns_of,
    csv_lines,
    jsonl_lines,
    rows,
    write_file,
)
from retrodp.views.published import Published
from tests.support.plans import HORIZON
from tests.support.revised import revised
from tests.support.rows import add, delete, ingest
from tests.support.stores import memory_directory, new_store

ROUNDS = 5


@pytest.fixture(scope="module")
def published() -> Iterator[Published]:
    with memory_directory() as directory:
        with new_store(directory / "store", revised()) as store:
            ingest(store, [add(f"a{r}{n}", r) for r in range(1, ROUNDS + 1) for n in range(9 + r)])
            ingest(store, [delete(f"a{r}0", r + 1) for r in range(1, ROUNDS)])
            store.close_through(ROUNDS)
        with Published.open(directory / "store") as opened:
            yield opened


def test_the_latest_vintage_is_the_last_round_and_the_default(published: Published) -> None:
    found = list(rows(published, Selection(releases=("cases",))))
    assert [(row.round, row.stamp) for row in found] == [(ROUNDS, str(s)) for s in range(1, 6)]
    assert found == list(rows(published, Selection(releases=("cases",), vintage=ROUNDS)))


def test_the_first_vintage_is_each_stamp_in_its_own_round(published: Published) -> None:
    found = list(rows(published, Selection(releases=("cases",), vintage="first")))
    assert [(row.round, row.stamp) for row in found] == [(s, str(s)) for s in range(1, 6)]


def test_all_vintages_are_every_published_pair(published: Published) -> None:
    found = list(rows(published, Selection(releases=("cases",), vintage="all")))
    assert len(found) == ROUNDS * (ROUNDS + 1) // 2
    back = list(rows(published, Selection(releases=("cases_recent",), vintage="all")))
    assert len(back) == 1 + 2 + 3 * (ROUNDS - 2)


def test_what_a_limited_release_publishes_no_longer_is_shown_as_last_published(
    published: Published,
) -> None:
    found = list(rows(published, Selection(releases=("cases_recent",))))
    assert sorted((row.round, int(row.stamp)) for row in found) == [
        (3, 1),
        (4, 2),
        (5, 3),
        (5, 4),
        (5, 5),
    ]
    as_of = list(rows(published, Selection(releases=("cases_recent",), vintage=4)))
    assert sorted((row.round, int(row.stamp)) for row in as_of) == [(3, 1), (4, 2), (4, 3), (4, 4)]


def test_a_vintage_that_is_not_published_is_refused(published: Published) -> None:
    with pytest.raises(UsageError, match="vintage"):
        list(rows(published, Selection(vintage=ROUNDS + 1)))
    with pytest.raises(UsageError, match="vintage"):
        vintages.vintage_of("newest")
    assert [vintages.vintage_of(text) for text in ("first", "all", "7")] == ["first", "all", 7]


def test_the_formats_agree_and_have_a_stamp_after_the_key(
    published: Published, tmp_path: Path
) -> None:
    every = Selection(vintage="all")
    listed = list(rows(published, every))
    table = list(csv.DictReader(io.StringIO("".join(csv_lines(published, every)))))
    head = list(columns_of(published))
    assert head[3:6] == ["key", "stamp", "stamp_start"]
    assert [list(row) for row in table[:1]] == [head]
    lines = [json.loads(line) for line in jsonl_lines(published, every)]
    write_file(published, tmp_path / "all.parquet", format="parquet", selection=every)
    frame = pq.read_table(tmp_path / "all.parquet")
    assert frame.column_names == head
    for found in (
        [int(row["stamp"]) for row in table],
        [line["stamp"] for line in lines],
        frame.column("stamp").to_pylist(),
    ):
        assert found == [int(row.stamp) for row in listed]
    starts = {published.start_text(s) for s in range(1, ROUNDS + 1)}
    assert {row["stamp_start"] for row in table} == starts


def test_a_plan_without_revised_releases_keeps_its_columns(tmp_path: Path) -> None:
    from tests.support.plans import counting  # noqa: PLC0415

    with new_store(tmp_path / "store", counting()) as store:
        store.close_round()
    with Published.open(tmp_path / "store") as opened:
        assert columns_of(opened, ALL) == COLUMNS


def test_the_triangle_holds_what_the_export_holds(published: Published) -> None:
    found = vintages.triangle(published, "cases")
    listed = {
        (int(row.stamp), row.round): float(row.value)
        for row in rows(published, Selection(releases=("cases",), vintage="all"))
    }
    assert {
        (stamp, round_): found.value[stamp - 1, round_ - 1]
        for stamp in range(1, ROUNDS + 1)
        for round_ in range(stamp, ROUNDS + 1)
    } == listed
    assert np.isnan(found.value[np.tril_indices(ROUNDS, -1)]).all()
    assert found.first.tolist() == [listed[s, s] for s in range(1, ROUNDS + 1)]
    assert found.latest.tolist() == [listed[s, ROUNDS] for s in range(1, ROUNDS + 1)]
    assert np.array_equal(found.revision, found.latest - found.first)
    assert (found.noise_of_revision > 0).all()


def test_bins_have_triangles_and_other_names_are_refused(published: Published) -> None:
    bins = vintages.triangle(published, "money", "DE")
    assert not np.isnan(bins.latest).any()
    for release, key in (("lines", None), ("cases", "DE"), ("money", None), ("money", "XX")):
        with pytest.raises(UsageError):
            vintages.triangle(published, release, key)


def test_the_documents_hold_the_newest_stamps(published: Published) -> None:
    document = vintages.document(published, "cases", last=3)
    assert [row["stamp"] for row in document["stamps"]] == [3, 4, 5]
    assert json.loads(json.dumps(document)) == document
    whole = vintages.triangle_document(published, "cases", last=3)
    lines = list(vintages.triangle_lines(whole))
    assert lines[0] == "stamp,stamp_start,round 3,round 4,round 5"
    assert len(lines) == 4


def test_show_lists_the_newest_stamps_of_a_vintage(published: Published) -> None:
    document = show.document(published)
    by_name: dict[str, Any] = {one["release"]: one for one in document["releases"]}
    assert [row["stamp"] for row in by_name["cases"]["rows"]] == [5, 4, 3, 2, 1]
    assert {row["stamp"] for row in by_name["money"]["rows"]} == {5}
    first = show.document(published, vintage="first")
    early = {one["release"]: one for one in first["releases"]}["cases"]["rows"]
    assert [row["round"] for row in early] == [5, 4, 3, 2, 1]
    assert HORIZON > ROUNDS
