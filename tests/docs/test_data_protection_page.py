"""The page for data-protection officers names what receipts and certificates really hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PLAN, Desk, set_clock
from tests.docs.pages import DOCS, section

PAGE = DOCS / "data-protection.md"
ROWS = ("add,a,2024-01-01T08:00,ann,DE,1", "add,b,2024-01-02T09:00,bob-the-second,FR,2")


def named(heading: str) -> list[str]:
    """What stands in the first cells of a section's table."""
    lines = [line for line in section(PAGE, heading).splitlines() if line.startswith("| `")]
    return [name for line in lines for name in re.findall(r"`([^`]+)`", line.split("|")[1])]


@pytest.fixture
def papers(ram: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """A receipt and a certificate, made by the page's commands."""
    set_clock(monkeypatch, "2024-01-04T12:00")
    desk = Desk(ram, PLAN)
    assert desk.run(desk.rows("1.csv", *ROWS), "--through", "2024-01-02").code == 0
    forget = desk.on_store("forget", person="bob-the-second", json=True)
    receipts = forget.document["receipts"]
    assert desk.on_store("close", "--through", "2024-01-03").code == 0
    lines = "".join(json.dumps(one) + "\n" for one in receipts)  # as jq -c '.receipts[]' does
    kept = desk.write("receipts.jsonl", lines)
    certificate = desk.on_store("verify", forgotten=kept, compact=True, json=True).document
    assert certificate["passed"]
    return receipts[0], certificate


def test_every_field_that_is_explained_is_there(
    papers: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    receipt, certificate = papers
    fields = named("## What a receipt says")
    assert len(fields) == 8
    assert set(fields) == receipt.keys() - {"format", "store", "what_it_means"}
    fields = named("## What a certificate says")
    assert len(fields) == 9
    entry = certificate["forgotten"][0]
    top = {name for name in fields if "[]" not in name and "." not in name}
    assert top <= certificate.keys()
    of_entries = {name.removeprefix("forgotten[].") for name in fields if "[]" in name}
    assert of_entries == {"left_in", "published_in", "searched"} <= entry.keys()


def test_the_requester_finds_her_entry_and_nothing_is_left(
    papers: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    receipt, certificate = papers
    (entry,) = certificate["forgotten"]
    assert entry["hash"] == receipt["hash"]
    assert (entry["left_in"], entry["published_in"]) == ([], {})
    assert receipt["from_round"] == 3 == certificate["round"]
    assert certificate["releases_equal"] is True
    assert "past_rounds_still_open" in certificate["key"]
