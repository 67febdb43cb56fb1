from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrodp.errors import HorizonExceededError, PlanError, StoreCorruptError, UsageError
from retrodp.store.releases import Releases
from retrodp.views.published import PLAN_FILE, RELEASES_FILE, Published
from tests.views import stores

HOUR = 3_600_000_000


def test_a_directory_without_a_store_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no store.*--store"):
        Published.open(tmp_path)


def test_a_missing_directory_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        Published.open(tmp_path / "nowhere")


@pytest.mark.parametrize("lost", [PLAN_FILE, RELEASES_FILE])
def test_a_store_that_lost_a_file_is_corrupt(tmp_path: Path, lost: str) -> None:
    directory = stores.store(tmp_path / "store")
    (directory / lost).unlink()
    with pytest.raises(StoreCorruptError, match=lost):
        Published.open(directory)


def test_rounds_begin_at_local_midnight_with_the_offset_of_the_day(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        texts = [published.start_text(round_) for round_ in (1, 3, 4)]
    assert texts == [
        "2011-03-25T00:00:00+00:00",
        "2011-03-27T00:00:00+00:00",
        "2011-03-28T00:00:00+01:00",
    ]


def test_the_day_on_which_clocks_change_has_23_hours(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        hours = (published.end(3).timestamp() - published.start(3).timestamp()) / 3600
    assert hours == 23


@pytest.mark.parametrize(("round_", "refusal"), [(0, PlanError), (11, HorizonExceededError)])
def test_a_round_outside_the_plan_has_no_start(
    tmp_path: Path, round_: int, refusal: type[Exception]
) -> None:
    with stores.opened(tmp_path / "store") as published, pytest.raises(refusal):
        published.start(round_)


def test_answers_come_back_as_they_were_published(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        assert list(published.answers(2).values()) == stores.usual(2)


def test_a_round_that_is_not_published_has_no_answers(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        assert (published.answers(4), published.answer(4, "lines")) == ({}, None)


def test_each_goes_by_round_and_then_by_release(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 2) as published:
        order = [(answer.round, answer.release) for answer in published.each()]
    names = ["by_country", "by_product", "lines", "revenue"]
    assert order == [(round_, name) for round_ in (1, 2) for name in names]


def test_each_can_be_cut_to_releases_and_rounds(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 4) as published:
        found = list(published.each(releases=["lines"], first=2, last=3))
    assert [(answer.release, answer.round) for answer in found] == [("lines", 2), ("lines", 3)]


def test_each_refuses_a_release_that_the_plan_has_not_at_once(tmp_path: Path) -> None:
    with (
        stores.opened(tmp_path / "store") as published,
        pytest.raises(UsageError, match=r"no release 'line'.*lines"),
    ):
        published.each(releases=["line"])


@pytest.mark.parametrize(("first", "last"), [(0, 2), (3, 2), (1, 11)])
def test_each_refuses_rounds_that_make_no_range(tmp_path: Path, first: int, last: int) -> None:
    with stores.opened(tmp_path / "store") as published, pytest.raises(UsageError):
        published.each(first=first, last=last)


def test_a_store_is_read_while_the_engine_publishes(tmp_path: Path) -> None:
    directory = stores.store(tmp_path / "store", 2)
    writer = Releases(directory / RELEASES_FILE)
    with Published.open(directory) as published:
        before = published.rounds
        with writer._database.transaction():
            during = published.rounds
        stores.publish(writer, stores.usual(3))
        after = published.rounds
    writer.close()
    assert (before, during, after) == ((1, 2), (1, 2), (1, 2, 3))


def test_reading_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    directory = stores.store(tmp_path / "store")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with Published.open(directory) as published:
        list(published.each())
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


@pytest.mark.parametrize("test", [True, False])
def test_a_store_made_for_tests_says_so(tmp_path: Path, *, test: bool) -> None:
    with stores.opened(tmp_path / "store", test=test) as published:
        assert published.is_test is test


def test_a_round_is_late_once_it_has_ended(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        gaps = published.gaps(published.boundaries[6] + HOUR)
    assert (gaps.published, gaps.missing, gaps.late, gaps.open) == (3, (), (4, 6), 7)


def test_nothing_is_late_while_the_next_round_runs(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        gaps = published.gaps(published.boundaries[4] - 1)
        ends = published.boundaries[4]
    assert (gaps.late, gaps.open, gaps.next_end) == (None, 4, ends)


def test_the_end_of_a_round_belongs_to_the_next(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        gaps = published.gaps(published.boundaries[4])
    assert (gaps.late, gaps.open) == ((4, 4), 5)


def test_a_round_that_was_closed_before_its_end_is_not_open(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        gaps = published.gaps(published.boundaries[2] + HOUR)
    assert (gaps.late, gaps.open) == (None, None)


def test_after_the_horizon_nothing_is_open_and_the_rest_is_late(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        gaps = published.gaps(published.boundaries[-1])
    assert (gaps.late, gaps.open) == ((4, 10), None)


def test_a_finished_store_waits_for_nothing(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 10) as published:
        gaps = published.gaps(published.boundaries[-1] + HOUR)
    assert (gaps.late, gaps.open, gaps.next_end) == (None, None, None)


def test_before_the_start_nothing_is_late_or_open(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 0) as published:
        gaps = published.gaps(published.boundaries[0] - 1)
    assert (gaps.published, gaps.late, gaps.open) == (0, None, None)


def test_the_gap_report_is_json_with_local_instants(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        document = published.gaps_document(published.boundaries[5] + HOUR)
    assert json.loads(json.dumps(document)) == {
        "published": 3,
        "horizon": 10,
        "goes_on": False,
        "missing": [],
        "late": [4, 5],
        "open": 6,
        "next_end": "2011-03-29T00:00:00+01:00",
    }
