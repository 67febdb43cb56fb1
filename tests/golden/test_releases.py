"""The published bytes of a fixed store are those on file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.stream import FILE, plans, releases
from tests.support.plans import HORIZON

GOLDEN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("title", plans())
def test_releases_are_those_on_file(title: str) -> None:
    """If this is meant to change: `python -m tests.golden.regenerate`, and say why."""
    made = json.loads(json.dumps(releases(*plans()[title])))
    on_file = GOLDEN[title]
    assert made["last"] == on_file["last"]
    assert made["rounds"] == on_file["rounds"]


def test_the_file_has_every_round_and_release() -> None:
    sizes = {name: (len(one["rounds"]), len(one["last"])) for name, one in GOLDEN.items()}
    assert sizes == {
        title: (HORIZON, len(planned.releases)) for title, (_, planned) in plans().items()
    }


def test_every_kind_that_publishes_linear_statistics_is_on_file() -> None:
    kinds = {release.kind for _, planned in plans().values() for release in planned.releases}
    assert kinds >= {"count", "sum", "mean", "histogram", "query", "cube", "gram"}
    assert kinds >= {"quantiles", "cdf", "range"}


def test_the_golden_stream_exercises_thresholds() -> None:
    """A sparse release with all bins or none would say little about the threshold."""
    last = [one["last"] for one in GOLDEN.values()]
    sparse = [one["by_product"] for one in last if "by_product" in one]
    assert any(sparse)
    products = [
        [key for key in one["open_tables"] if "product" in key]
        for one in last
        if "open_tables" in one
    ]
    assert any(products)
    distinct = [len(set(one["rounds"].values())) for one in GOLDEN.values()]
    assert distinct == [HORIZON] * len(GOLDEN)
