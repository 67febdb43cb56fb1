"""The shipped shop's stream, as plans and exact totals that several benchmarks measure against."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from retrodp.demo import data_path, plan_path
from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import RawBatch, read_file

HORIZON = 374

Totals = dict[int, dict[str, dict[bytes, int]]]
"""Exact totals by round and release."""

_BUDGET = """
[privacy]
model = "zcdp"
epsilon = 1.0
delta = 1e-9
"""


def plan_of(releases: str, *, columns: str = "") -> Plan:
    """The demo's stream with other releases, and further columns if they are given."""
    head, _ = plan_path().read_text(encoding="utf-8").split("[privacy]")
    return Plan.loads(head + columns + _BUDGET + releases)


def updates(layout: Any) -> Iterable[RawBatch]:
    """The demo's updates as they are shipped."""
    return read_file(str(data_path()), layout)


def totals(
    plan: Plan, rounds: Collection[int], source: Callable[[Any], Iterable[RawBatch]] = updates
) -> Totals:
    """What a store holds that lives through updates.

    Args:
        plan: Of the store.
        rounds: That are read.
        source: Of a layout: the updates.
    """
    found = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        Store.create_for_tests(Path(directory) / "store", plan) as store,
    ):
        store.ingest(source(store.layout()))
        for round_ in range(1, HORIZON + 1):
            store.close_round()
            if round_ in rounds:
                found[round_] = {
                    release.name: dict(store.ledger.read_totals(release.name))
                    for release in store.releases
                }
    return found
