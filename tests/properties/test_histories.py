"""Any history of a store agrees with the plain model: survivors, totals and published bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import precondition, rule

from retrodp.engine.close import INTAKE
from retrodp.stream import lives
from retrodp.stream.queued import Updates
from retrodp.stream.update import Changes, Op, QueuedUpdate, Record
from tests.properties.machine import HORIZON, Row, StoreMachine, rows
from tests.support.model import Lives, Points
from tests.support.plans import Kind
from tests.support.rows import add, delete

BY_ID = st.lists(rows(["add", "add", "delete", "replace"], by_id=True), min_size=1, max_size=6)
COPIES = st.lists(rows(["add", "add", "delete"], by_id=False), min_size=1, max_size=6)


class HistoriesWithIds(StoreMachine):
    kind: ClassVar[Kind] = "ids"

    def __init__(self) -> None:
        super().__init__()
        self.lives = Lives()
        self.model = self.lives

    @rule(taken=BY_ID)
    def updates_arrive(self, taken: list[Row]) -> None:
        self.deliver(taken)

    @precondition(lambda self: self.delivered)
    @rule(data=st.data())
    def updates_arrive_again_in_another_order(self, data: st.DataObject) -> None:
        again = data.draw(st.lists(st.sampled_from(self.delivered), max_size=5))
        self.deliver(again)

    @precondition(lambda self: self.store.round < HORIZON)
    @rule(id_=st.sampled_from(["a", "b", "unknown"]))
    def an_id_is_forgotten(self, id_: str) -> None:
        self.store.forget([id_])
        self.lives.forget("id", id_)

    @precondition(lambda self: self.store.round < HORIZON)
    @rule(person=st.sampled_from(["ann", "nobody"]))
    def a_person_is_forgotten(self, person: str) -> None:
        self.store.forget(persons=[person])
        self.lives.forget("person", person)

    def model_close(self, round_: int) -> None:
        self.lives.close(round_)


class HistoriesOfPersons(HistoriesWithIds):
    kind: ClassVar[Kind] = "persons"

    def __init__(self) -> None:
        super().__init__()
        self.lives = Lives(by_person=True)
        self.model = self.lives

    def model_close(self, round_: int) -> None:
        key = self.keys.fresh_key(release="", purpose=INTAKE, round=round_)
        self.lives.close(round_, key)


class HistoriesOfPoints(StoreMachine):
    kind: ClassVar[Kind] = "points"

    def __init__(self) -> None:
        super().__init__()
        self.points = Points()
        self.model = self.points

    @rule(taken=COPIES)
    def updates_arrive(self, taken: list[Row]) -> None:
        self.deliver(taken)

    @precondition(lambda self: self.store.round < HORIZON)
    @rule(person=st.sampled_from(["ann", "nobody"]))
    def a_person_is_forgotten(self, person: str) -> None:
        self.store.forget(persons=[person])
        self.points.forget(person)

    def model_close(self, round_: int) -> None:
        self.points.close(round_)


SETTINGS = settings(
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestHistoriesWithIds = HistoriesWithIds.TestCase
TestHistoriesOfPersons = HistoriesOfPersons.TestCase
TestHistoriesOfPoints = HistoriesOfPoints.TestCase
TestHistoriesWithIds.settings = SETTINGS
TestHistoriesOfPersons.settings = SETTINGS
TestHistoriesOfPoints.settings = SETTINGS


def test_twin_a_store_that_remembers_early_deletions_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = lives.apply_round
    early: set[str] = set()

    def remembering(
        running: Mapping[tuple[str, str], Record], updates: Iterable[QueuedUpdate], **rest: Any
    ) -> Changes:
        kept = [one for one in updates if one.op == Op.DELETE or one.id not in early]
        early.update(one.id for one in kept if one.op == Op.DELETE)
        return real(running, kept, **rest)

    real_lone = lives.lone_additions

    def remembering_lone(updates: Updates) -> tuple[Updates, list[QueuedUpdate]]:
        added, others = real_lone(updates)
        kept = np.array([name not in early for name in added.id], np.bool_)
        return added.take(np.flatnonzero(kept)), others

    monkeypatch.setattr(lives, "apply_round", remembering)
    monkeypatch.setattr(lives, "lone_additions", remembering_lone)
    machine = HistoriesWithIds()
    try:
        machine.updates_arrive([delete("a", 1)])
        machine.close()
        machine.updates_arrive([add("a", 2)])
        with pytest.raises(AssertionError):
            machine.close()
    finally:
        machine.teardown()
