from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrodp.views import summary
from retrodp.views.published import Published
from tests.views import stores
from tests.views.screens import screen, widest

CERTIFICATE: dict[str, Any] = {
    "format": 1,
    "round": 3,
    "releases_equal": True,
    "differing_rows": {},
    "changed_rounds": [],
    "forgotten": [
        {
            "kind": "person",
            "hash": "0" * 64,
            "left_in": [],
            "published_in": {},
            "searched": "every byte",
        }
    ],
    "files_scanned": ["ledger.sqlite", "releases.sqlite"],
    "key": {
        "derives_rounds_from": 3,
        "past_rounds_still_open": {"lines": 2, "revenue": 0},
        "decisions_not_counted": [],
    },
    "what_it_means": "",
    "sha256": "a" * 64,
}


def said(**changes: object) -> str:
    return "\n".join(sentence for _, sentence in summary.proof({**CERTIFICATE, **changes}))


def entry(**changes: object) -> list[dict[str, Any]]:
    return [{**CERTIFICATE["forgotten"][0], **changes}]


def summary_of(published: Published, **changes: Any) -> str:
    given: dict[str, Any] = {"certificate": CERTIFICATE, "paths": {"store": "/data/store"}}
    return screen(lambda console: summary.render(console, published, **{**given, **changes}))


def test_equality_is_said_with_its_round() -> None:
    assert "Round 3 was recomputed" in said()


def test_a_difference_is_said_with_its_release() -> None:
    text = said(releases_equal=False, differing_rows={"lines": [1]})
    assert "Round 3 DIFFERS from what the survivors give (lines)." in text


def test_a_round_whose_key_is_gone_gives_the_reason() -> None:
    assert "No key is left." in said(releases_equal=None, what_it_means="No key is left.")


def test_a_clean_search_says_what_was_looked_for() -> None:
    assert "1 person looked for in every byte of 2 files: nothing found." in said()


def test_a_search_claims_no_more_than_the_certificate_says() -> None:
    assert "every byte" not in said(forgotten=entry(searched="live rows"))


def test_what_was_found_is_said_with_its_place() -> None:
    assert "FOUND in ledger.sqlite, records." in said(
        forgotten=entry(left_in=["ledger.sqlite, records"])
    )


def test_published_labels_are_named() -> None:
    assert "some remain in releases.sqlite" in said(
        forgotten=entry(published_in={"releases.sqlite": 4})
    )


def test_changed_rounds_are_said() -> None:
    assert "2 published rounds were changed" in said(changed_rounds=[1, 2])


@pytest.mark.parametrize(
    ("still_open", "sentence"),
    [
        (
            {"lines": 2, "revenue": 0},
            "off the numbers of this round and 2 past rounds (at most, by release), and",
        ),
        ({"lines": 0}, "off the numbers of this round, and off no others."),
    ],
)
def test_what_the_key_can_still_open_is_said(still_open: dict[str, int], sentence: str) -> None:
    key = {
        "derives_rounds_from": 3,
        "past_rounds_still_open": still_open,
        "decisions_not_counted": [],
    }
    assert sentence in said(key=key)
    assert "Not counted" not in said(key=key)


def test_noise_behind_decisions_is_said_not_to_be_counted() -> None:
    key = {
        "derives_rounds_from": 3,
        "past_rounds_still_open": {"places": 1},
        "decisions_not_counted": ["places"],
    }
    assert "Not counted is the noise that decided which places places published" in said(key=key)


def test_a_key_that_is_gone_opens_nothing() -> None:
    key: dict[str, Any] = {
        "derives_rounds_from": None,
        "past_rounds_still_open": {"lines": 0},
        "decisions_not_counted": [],
    }
    assert "take the noise off" not in said(key=key)


def test_a_salt_is_never_shown(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        assert "feedbeef" not in summary_of(published)


def test_the_summary_has_every_part_and_fits_80_columns(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        text = summary_of(
            published,
            forgotten=["1 customer with 12 order lines"],
            try_next=["retrodp show --store /data/store"],
        )
    assert widest(text) <= 80
    parts = [
        "Round 3 of 10",
        "by_product",
        "1 customer with 12",
        "Budget",
        "/data/store",
        "retrodp show",
    ]
    assert [part for part in parts if part not in text] == []


def test_totals_stand_beside_those_of_the_round_before(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        [lines] = [line for line in summary_of(published).splitlines() if line.startswith("lines")]
    assert lines.split()[1:3] == ["2,007", "3,007"]


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_young_store_has_a_summary_too(tmp_path: Path, rounds: int) -> None:
    with stores.opened(tmp_path / "store", rounds) as published:
        text = summary_of(published, certificate=None, paths={})
    assert "Budget" in text


def test_a_long_path_is_not_broken(tmp_path: Path) -> None:
    path = "/" + "x" * 120
    with stores.opened(tmp_path / "store") as published:
        assert path in summary_of(published, paths={"store": path})
