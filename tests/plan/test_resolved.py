from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import PlanError, StoreCorruptError
from retrodp.plan import Plan, ResolvedPlan
from retrodp.plan.resolved import canonical_json
from tests.plan.examples import RETAIL


def resolved(**changes: Any) -> ResolvedPlan:
    given_: dict[str, Any] = {
        "noise_format": 1,
        "plan": Plan.loads(RETAIL).to_dict(),
        "boundaries": (0, 86_400_000_000),
        "tzdata": "2025.2",
        "unicode": "14.0.0",
        "releases": ({"name": "lines", "scale": "9/2", "thresholds": None, "map": [1, 2, 4]},),
        "budget": {"rho": "1/50"},
    }
    return ResolvedPlan(**given_ | changes)


def test_it_reads_back_as_it_was() -> None:
    before = resolved()
    after = ResolvedPlan.from_json(before.to_json(), fingerprint=before.fingerprint)
    assert after == before
    assert after.to_json() == before.to_json()
    assert Plan.from_dict(after.plan) == Plan.loads(RETAIL)


def test_the_json_is_canonical() -> None:
    data = canonical_json({"b": [1, None, True], "a": "é", "\U0001f600": (), "\uffff": {}})
    assert data == '{"a":"é","b":[1,null,true],"\uffff":{},"\U0001f600":[]}'.encode()


def test_the_fingerprint_is_the_hash_of_the_bytes() -> None:
    assert resolved().fingerprint == hashlib.sha256(resolved().to_json()).hexdigest()


@pytest.mark.parametrize(
    "changes",
    [
        {"noise_format": 2},
        {"boundaries": (0, 86_400_000_001)},
        {"tzdata": "2025.3"},
        {"unicode": "15.0.0"},
        {"releases": ({"name": "lines", "scale": "9/4"},)},
        {"budget": {}},
    ],
    ids=str,
)
def test_everything_that_was_decided_is_in_the_fingerprint(changes: dict[str, Any]) -> None:
    assert resolved(**changes).fingerprint != resolved().fingerprint


def test_the_documents_are_copied() -> None:
    release = {"name": "lines", "map": [1, 2]}
    plan = resolved(releases=(release,))
    before = plan.fingerprint
    release["map"] = [1, 3]
    assert plan.fingerprint == before
    assert plan.release("lines")["map"] == [1, 2]


@pytest.mark.parametrize(
    "value",
    [0.5, float("nan"), {1: 2}, {"a": object()}, b"x", "\ud800", {"\ud800": 1}],
    ids=["float", "nan", "number as key", "object", "bytes", "surrogate", "surrogate as key"],
)
def test_what_is_not_exact_is_refused(value: object) -> None:
    with pytest.raises(PlanError):
        resolved(budget={"x": value})


def damaged(name: str, value: object) -> bytes:
    document = json.loads(resolved().to_json())
    document[name] = value
    return canonical_json(document)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        resolved().to_json() + b"\n",
        resolved().to_json().replace(b":", b": ", 1),
        resolved().to_json()[:-1] + b',"format":1}',
        resolved().to_json().replace(b'"9/2"', b"4.5"),
        resolved().to_json().replace(b'"9/2"', b"NaN"),
        b"[" * 100_000,
        damaged("more", 1),
        damaged("format", 2),
        damaged("format", True),
        damaged("noise_format", "1"),
        damaged("boundaries", [0, "1"]),
        damaged("boundaries", [0, True]),
        damaged("releases", [{"scale": "1"}]),
        damaged("releases", {}),
        damaged("plan", None),
    ],
)
def test_a_damaged_document_is_refused(data: bytes) -> None:
    with pytest.raises(StoreCorruptError, match=r"plan\.resolved\.json"):
        ResolvedPlan.from_json(data)


def test_another_fingerprint_is_refused() -> None:
    with pytest.raises(StoreCorruptError, match="fingerprint"):
        ResolvedPlan.from_json(resolved().to_json(), fingerprint="0" * 64)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(document=st.dictionaries(TEXTS, JSON))
def test_any_exact_document_survives(document: dict[str, Any]) -> None:
    before = resolved(budget=document)
    assert ResolvedPlan.from_json(before.to_json()) == before
