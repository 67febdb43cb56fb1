"""Whether a value of any length still occurs is told exactly, table by table."""

from __future__ import annotations

from pathlib import Path

from retrodp.stream.update import Op
from tests.store.rows import arrivals, new_ledger, pack, run, update


def test_mentions_finds_a_value_of_any_length_in_every_table(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("7", person="al", value="ü"), update("17", person="all", value="xü")])
    ledger.waiting.enqueue(arrivals(2, [update("7", op=Op.DELETE), update("8", value="ü")]))
    ledger.forgets.add("id", "7")
    ledger.forgets.add("person", "al")
    ledger.add_totals("r", {"ü".encode(): 1, pack(["ü", 3]): 1, pack(["xü"]): 1})
    ledger.add_totals("by_payload", {pack(["ü", "al"]): -1})
    found = ledger.mentions(ids=["7", "1"], persons=["al", "a"], values=["ü", "tea"])
    told = {(one.kind, one.index, one.table, one.count) for one in found}
    assert told == {
        ("id", 0, "queue", 1),
        ("id", 0, "forgets", 1),
        ("id", 0, "records", 1),
        ("person", 0, "forgets", 1),
        ("person", 0, "records", 1),
        ("value", 0, "records", 1),
        ("value", 0, "queue", 1),
        ("value", 0, "totals", 2),
    }


def test_mentions_is_empty_once_all_is_forgotten(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("7", person="al", value="ü")], [update("7", op=Op.DELETE)])
    asked = ledger.mentions(ids=["7"], persons=["al"], values=["ü"])
    assert asked == []
