"""A peer that is not installed shows as missing; it is never left out or taken for slow."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from benchmarks.page import page
from benchmarks.tables import MISSING, Table, millions

from benchmarks import peers, speed


def test_a_peer_that_is_not_installed_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    makers = (
        lambda: peers.opendp_draws("laplace", 1, 1),
        lambda: peers.opendp_tree(4, 1.0),
        lambda: peers.jax_stream(4, 1),
        lambda: peers.dpcrpy_stream(4),
    )
    table = Table("x", "X", "", ("peer", "million/s", "best"))
    for number, make in enumerate(makers):
        table.add(str(number), *millions(speed.optional(make, 1)))
    assert [row[1:] for row in table.rows] == [[MISSING, MISSING]] * 4
    assert table.markdown().count("| missing | missing |") == 4


def test_every_result_is_on_the_page_and_known_ones_come_first(tmp_path: Path) -> None:
    for name in ("zzz", "samplers", "aaa"):
        document = {
            "machine": {"date": "today"},
            **Table(name, f"About {name}", "A note.", ("what",), [[name]]).document(),
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    text = page(tmp_path)
    places = [text.index(f"## About {name}") for name in ("samplers", "aaa", "zzz")]
    assert places == sorted(places)
    assert "- date: today" in text
