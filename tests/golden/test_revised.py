"""The revised series of a fixed store are those on file."""

from __future__ import annotations

import json

import pytest

from tests.golden.revised import FILE, STREAMS, releases
from tests.support.plans import Kind, Model


@pytest.mark.parametrize(("kind", "model"), STREAMS)
def test_revised_series_are_those_on_file(kind: Kind, model: Model) -> None:
    """If this is meant to change: `python -m tests.golden.regenerate`, and say why."""
    golden = json.loads(FILE.read_text(encoding="utf-8"))[f"{kind}, {model}"]
    assert json.loads(json.dumps(releases(kind, model))) == golden
    assert all(golden.values())
