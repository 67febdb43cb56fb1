from __future__ import annotations

import pytest

from retrodp.errors import PlanError
from retrodp.plan.duration import Duration


@pytest.mark.parametrize("text", ["1h", "30d", "2w", "12mo"])
def test_a_duration_reads_as_it_is_written(text: str) -> None:
    assert str(Duration.parse(text, key="x")) == text


@pytest.mark.parametrize(
    "text", ["", "d", "0d", "-1d", "1.5d", "1 d", "1D", "1m", "1y", "01d", "1d "]
)
def test_anything_else_is_refused_with_its_key(text: str) -> None:
    with pytest.raises(PlanError, match=r"release\.x\.window"):
        Duration.parse(text, key="release.x.window")


@pytest.mark.parametrize(
    ("window", "length", "rounds"),
    [
        ("1w", "1d", 7),
        ("48h", "6h", 8),
        ("3mo", "1mo", 3),
        ("30d", "1mo", None),
        ("1mo", "1d", None),
        ("36h", "1d", None),
        ("1h", "6h", None),
        ("10d", "1w", None),
    ],
)
def test_only_whole_numbers_of_rounds_are_windows(
    window: str, length: str, rounds: int | None
) -> None:
    assert Duration.parse(window, key="w").in_rounds_of(Duration.parse(length, key="r")) == rounds
