"""`retrodp statement` prints or writes one JSON document and names what is still empty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrodp.cli.app import run
from tests.views.stores import store


def test_it_prints_the_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["statement", "--store", str(store(tmp_path / "s"))]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == 1
    assert set(found) == {"format", "registry", "retrodp", "to_fill_in"}


def test_the_entry_alone_is_what_a_registry_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["statement", "--store", str(store(tmp_path / "s")), "--registry"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"url_slug", "deployment"}


def test_a_file_is_named_with_what_is_still_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, target = store(tmp_path / "s"), tmp_path / "statement.json"
    about = tmp_path / "about.toml"
    about.write_text('name = "Order lines"')
    asked = ["statement", "--store", str(directory), "--about", str(about), "-o", str(target)]
    assert run(asked) == 0
    assert "Still empty, for --about: curators, description" in capsys.readouterr().out
    found = json.loads(target.read_text())
    assert found["registry"]["deployment"]["basic"]["name"] == "Order lines"
    assert run([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["to_fill_in"] == found["to_fill_in"]


def test_no_store_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["statement", "--store", str(tmp_path)]) == 2
    assert "holds no store" in capsys.readouterr().err
