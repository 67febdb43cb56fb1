"""Mechanisms as plans make them, for kinds of several components; every law and unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from tests.support.vectors import (
    ALL,
    HORIZON,
    MODELS,
    PERSON_ROUND,
    RECORD,
    Model,
    batch,
    plan,
    records,
)

TREE = KeyTree.from_root(bytes(range(32)), b"released", HORIZON)
UNITS = {"record": RECORD, "person_round": PERSON_ROUND}


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One release of a plan that has no other."""

    kind: str
    model: Model
    unit: str
    factor: str = "auto"

    @property
    def plan(self) -> Plan:
        text = ALL[self.kind] + f'factor = "{self.factor}"\n'
        return plan(text, model=self.model, unit=UNITS[self.unit])

    @property
    def resolved(self) -> ResolvedPlan:
        return _resolved(self)

    def make(self) -> CompiledRelease:
        (release,) = compile_plan(self.plan, self.resolved)
        return release

    def exact(self) -> dict[bytes, int]:
        """Totals of every kind of record."""
        return dict(_exact(self))


@cache
def _exact(case: Released) -> dict[bytes, int]:
    return case.make().statistic.encode(batch(list(records()), case.plan))


@cache
def _resolved(case: Released) -> ResolvedPlan:
    return resolve(case.plan)


def all_released() -> Iterator[Released]:
    for kind in ALL:
        for model in MODELS:
            yield Released(kind=kind, model=model, unit="record")
            yield Released(kind=kind, model=model, unit="person_round", factor="binary")


CASES = list(all_released())
IDS = [f"{case.kind}-{case.model}-{case.unit}-{case.factor}" for case in CASES]
