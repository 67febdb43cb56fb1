"""What is audited is derived from the registry: nothing new escapes."""

from __future__ import annotations

import importlib.util
from typing import get_args

import msgspec
import pytest

from retrodp.audit import subjects
from retrodp.audit.cases import outlines
from retrodp.audit.report import document, failed, rows_left_out
from retrodp.audit.revised import REVISED
from retrodp.audit.subjects import (
    MODELS,
    STREAMS,
    compiled_fillings,
    fillings,
    left_out,
    plan_of,
)
from retrodp.engine.compile import statistic_of
from retrodp.errors import UsageError
from retrodp.plan.kinds import KINDS, Kind
from retrodp.plan.releases import FactorChoice


def test_every_kind_of_the_registry_is_audited() -> None:
    audited = {filling.table["kind"] for filling in [*fillings(), *compiled_fillings()]}
    assert audited == {name for name, kind in KINDS.items() if kind is not None}


def test_every_kind_is_audited_under_both_models_also_in_short() -> None:
    outlined = outlines(deep=False)
    for model in MODELS:
        found = {
            table["kind"] for one in outlined if one.model == model for table in one.tables.values()
        }
        assert found >= {filling.table["kind"] for filling in fillings()}


def test_every_factor_window_and_condition_is_audited_for_every_filling() -> None:
    titles = {filling.title for filling in fillings()}
    firsts = {title.rpartition(", ")[0] for title in titles if title.endswith(", auto")}
    wanted = {*get_args(FactorChoice), "window", "window, binary", "where"}
    revised = {title for title in titles if "revised" in title}
    assert {title.partition(", ")[2] for title in revised} == set(REVISED)
    titles -= revised
    dictated = {"distinct fresh", "distinct flippancy", "distinct recompute"}
    endless = {title for title in titles if title.startswith(subjects.ENDLESS)}
    assert endless == {f"{kind}, {last}" for kind in subjects.ENDLESS for last in ("auto", "where")}
    assert titles - endless == {
        f"{first}, {last}"
        for first in firsts - set(subjects.ENDLESS)
        for last in ({"auto", "window", "where"} if first in dictated else wanted)
    }


def test_deep_holds_all_that_is_short() -> None:
    short, deep = ({(o.title, o.model) for o in outlines(deep=deep)} for deep in (False, True))
    assert short < deep


def test_a_kind_with_a_key_that_the_audit_cannot_fill_in_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Keys(msgspec.Struct, frozen=True, kw_only=True):
        secret: str

    registry = {**KINDS, "new": Kind(Keys, lambda keys, _: keys)}
    monkeypatch.setattr(subjects, "KINDS", registry)
    with pytest.raises(UsageError, match="secret of kind 'new'"):
        fillings()


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("model", MODELS)
def test_plans_are_plans(stream: subjects.Stream, model: subjects.Model) -> None:
    plan = plan_of({"r": {"kind": "count"}}, model=model, stream=stream, horizon=5)
    assert statistic_of(plan, plan.releases[0]).components[0].amount == 1
    assert plan.stream.ids == (stream != "points")


@pytest.fixture
def no_scikit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra `cluster`."""
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "sklearn" else real(name)
    )


@pytest.mark.usefixtures("no_scikit")
def test_kinds_without_their_extra_are_left_out_and_said_to_be() -> None:
    audited = {filling.table["kind"] for filling in [*fillings(), *compiled_fillings()]}
    everything = {name for name, kind in KINDS.items() if kind is not None}
    assert everything - audited == {"kmeans"}
    (row,) = rows_left_out()
    assert (row.mechanism, row.verdict) == ("kmeans", "left out")
    assert "pip install scikit-learn threadpoolctl" in row.measured
    assert not failed([row])
    assert document([row], seed="", deep=False)["counts"]["left out"] == 1


def test_with_all_extras_nothing_is_left_out() -> None:
    assert left_out() == {}
