"""The published bytes of a fixed store are those on file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.stream import FILE, STREAMS, releases
from tests.support.plans import HORIZON, Kind, Model, plan

GOLDEN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "model"), STREAMS)
def test_releases_are_those_on_file(kind: Kind, model: Model) -> None:
    """If this is meant to change: `python -m tests.golden.regenerate`, and say why."""
    made = json.loads(json.dumps(releases(kind, model)))
    on_file = GOLDEN[f"{kind}, {model}"]
    assert made["last"] == on_file["last"]
    assert made["rounds"] == on_file["rounds"]


def test_the_file_has_every_round_and_release() -> None:
    sizes = {name: (len(one["rounds"]), len(one["last"])) for name, one in GOLDEN.items()}
    assert set(sizes) == {f"{kind}, {model}" for kind, model in STREAMS}
    assert {rounds for rounds, _ in sizes.values()} == {HORIZON}
    assert {count for _, count in sizes.values()} == {len(plan().releases)}


def test_the_golden_stream_exercises_thresholds() -> None:
    """A sparse release with all bins or none would say little about the threshold."""
    sparse = [one["last"]["by_product"] for one in GOLDEN.values()]
    assert any(sparse)
    distinct = [len(set(one["rounds"].values())) for one in GOLDEN.values()]
    assert distinct == [HORIZON] * len(STREAMS)
