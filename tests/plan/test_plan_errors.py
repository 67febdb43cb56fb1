"""Every wrong plan is refused with its key, what was expected and the accepted values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from retrodp.errors import NotInThisVersionError, PlanError
from retrodp.plan import Plan, releases
from retrodp.plan.kinds import KINDS
from tests.plan.examples import RETAIL, SMALL, changed, changed_tables

PERSON = {"stream__unit": "person_round", "stream__person": "person", "stream__max_records": 5}
NUMBER = {"type": "number", "min": 0, "max": 1, "step": 0.5}


def number(**changes: object) -> dict[str, Any]:
    return {"columns__weight": {k: v for k, v in (NUMBER | changes).items() if v is not None}}


def release(**keys: object) -> dict[str, Any]:
    return {"release__records": {"kind": "count"} | keys}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    # path and value, key in the message, something it must also say
    ({"stream__horizn": 3}, "stream.horizn", "Did you mean 'horizon'"),
    ({"streem": {}}, "streem", "Did you mean 'stream'"),
    ({"stream": None}, "[stream]", "missing"),
    ({"privacy": None}, "[privacy]", "missing"),
    ({"privacy": 3}, "privacy", "a table"),
    ({"release": None}, "no release", "at least one"),
    ({"release": {}}, "no release", "at least one"),
    ({"release": []}, "no release", "at least one"),
    ({"release": 3}, "release", "a table"),
    ({"stream__start": None}, "stream.start", "missing"),
    ({"stream__start": "someday"}, "stream.start", "ISO 8601"),
    ({"stream__start": 2024}, "stream.start", "ISO 8601"),
    ({"stream__start": "2024-01-01T05:00:00"}, "stream.start", "midnight"),
    ({"stream__start": "2024-01-31", "stream__round": "1mo"}, "stream.start", "1 to 28"),
    ({"stream__start": "2024-01-01T05:00Z", "stream__round": "6h"}, "stream.start", "06:00"),
    ({"stream__round": "2h"}, "stream.round", "1h, 6h, 1d, 1w, 1mo"),
    ({"stream__timezone": "Europe/Londn"}, "stream.timezone", "Did you mean 'Europe/London'"),
    ({"stream__timezone": "../../etc/passwd"}, "stream.timezone", "IANA"),
    ({"stream__timezone": 1}, "stream.timezone", "text"),
    ({"stream__horizon": None}, "stream.horizon", "missing"),
    ({"stream__horizon": 0}, "stream.horizon", "at least 1"),
    ({"stream__horizon": True}, "stream.horizon", "at least 1"),
    ({"stream__horizon": 3.5}, "stream.horizon", "at least 1"),
    ({"stream__horizon": "30"}, "stream.horizon", "at least 1"),
    ({"stream__horizon": 10**7}, "stream.horizon", "9999"),
    ({"stream__horizon": 10**30}, "stream.horizon", "9999"),
    ({"stream__unit": "user"}, "stream.unit", "record, operation, person_round, person"),
    ({"stream__unit": "operation"}, "stream.unit", "ids = false"),
    ({"stream__ids": False, "stream__unit": "record"}, "stream.unit", "operation"),
    ({"stream__ids": "no"}, "stream.ids", "true or false"),
    ({"stream__ids": False, "stream__same_time": "add_first"}, "stream.same_time", "ids"),
    ({"stream__same_time": "first"}, "stream.same_time", "delete_first, add_first"),
    ({"stream__out_of_bounds": "drop"}, "stream.out_of_bounds", "clamp, reject"),
    ({"stream__unit": "person_round"}, "stream.person", "missing"),
    ({**PERSON, "stream__max_records": None}, "stream.max_records", "missing"),
    ({**PERSON, "stream__unit": "person"}, "stream.max_rounds", "missing"),
    ({**PERSON, "stream__max_rounds": 3}, "stream.max_rounds", "person"),
    ({**PERSON, "stream__person": "persn"}, "stream.person", "no column"),
    ({**PERSON, "stream__person": "kind"}, "stream.person", "type text"),
    ({"stream__max_records": 3}, "stream.max_records", "unit"),
    ({"stream__max_per_bin": {"by": "place", "max": 1}}, "stream.max_per_bin", "unit"),
    ({**PERSON, "stream__max_per_bin": 3}, "stream.max_per_bin", "a table"),
    ({**PERSON, "stream__max_per_bin": {"max": 3}}, "stream.max_per_bin.by", "missing"),
    ({**PERSON, "stream__max_per_bin": {"by": "x", "max": 1}}, "stream.max_per_bin.by", "'x'"),
    (
        {**PERSON, "stream__max_per_bin": {"by": "place", "max": 6}},
        "stream.max_per_bin.max",
        "at most 5",
    ),
    ({"columns__id": "text"}, "columns.id", "reserved"),
    ({"columns__id": {"type": "text", "from": "x"}}, "columns.id", "reserved"),
    ({"columns__id": {"form": "x"}}, "columns.id.form", "Did you mean 'from'"),
    ({"columns__id": {"from": "op"}}, "id, op, at", "its own"),
    ({"columns__place": "txt"}, "columns.place.type", "Did you mean 'text'"),
    ({"columns__place": 7}, "columns.place", "a table"),
    ({"columns__place": {"type": "text", "min": 3}}, "columns.place.min", "text"),
    ({"columns__place": {"type": "text", "values": ["a"]}}, "columns.place.values", "text"),
    ({"columns__place": {"type": "text", "other": True}}, "columns.place.other", "text"),
    ({"columns__place": {"type": "text", "nullable": 1}}, "columns.place.nullable", "true or"),
    ({"columns__kind": "category"}, "columns.kind.values", "missing"),
    ({"columns__kind": {"type": "category", "values": []}}, "columns.kind.values", "texts"),
    ({"columns__kind": {"type": "category", "values": [1]}}, "columns.kind.values", "texts"),
    (
        {"columns__kind": {"type": "category", "values": ["\u00e9", "e\u0301"]}},
        "columns.kind.values",
        "twice",
    ),
    (
        {"columns__kind": {"type": "category", "values": ["other"], "other": True}},
        "columns.kind.values",
        "other",
    ),
    ({"columns__a`b": "text"}, "columns.a`b", "name"),
    ({"columns__": "text"}, "columns.", "name"),
    ({"columns__weight": "number"}, "columns.weight.min", "missing"),
    (number(max=None), "columns.weight.max", "missing"),
    (number(step=None), "columns.weight.step", "missing"),
    (number(min=math.nan), "columns.weight.min", "finite"),
    (number(max=math.inf), "columns.weight.max", "finite"),
    (number(max=True), "columns.weight.max", "finite"),
    (number(max="1e999999999"), "columns.weight.max", "finite"),
    (number(max=[1]), "columns.weight.max", "finite"),
    (number(step=0), "columns.weight.step", "above 0"),
    (number(step="1/3"), "columns.weight.step", "decimal"),
    (number(min=2), "columns.weight.min", "below max"),
    (number(min=1), "columns.weight.min", "below max"),
    (number(max=1.2), "columns.weight.max", "1 or 1.5"),
    (number(min=-0.3), "columns.weight.min", "-0.5 or 0"),
    (number(max=2.0**60), "columns.weight.max", "2^53"),
    ({"columns__n2": {"type": "integer", "min": 0}}, "columns.n2.max", "missing"),
    (
        {"columns__n2": {"type": "integer", "min": 0, "max": 1, "step": 0.5}},
        "columns.n2.step",
        "whole",
    ),
    ({"privacy__model": "zCDP"}, "privacy.model", "zcdp, pure"),
    ({"privacy__epsilon": None}, "privacy.epsilon", "missing"),
    ({"privacy__epsilon": 0}, "privacy.epsilon", "above 0"),
    ({"privacy__epsilon": -1}, "privacy.epsilon", "above 0"),
    ({"privacy__epsilon": math.nan}, "privacy.epsilon", "finite"),
    ({"privacy__epsilon": math.inf}, "privacy.epsilon", "finite"),
    ({"privacy__epsilon": "1/0"}, "privacy.epsilon", "finite"),
    ({"privacy__epsilon": True}, "privacy.epsilon", "finite"),
    ({"privacy__delta": None}, "privacy.delta", "missing"),
    ({"privacy__delta": 0}, "privacy.delta", "pure"),
    ({"privacy__delta": 1}, "privacy.delta", "excluded"),
    ({"privacy__delta": math.nan}, "privacy.delta", "finite"),
    ({"privacy__forward_secrecy": "yes"}, "privacy.forward_secrecy", "true or false"),
    (
        {
            "privacy": {"model": "pure", "epsilon": 1},
            "release__h": {"kind": "histogram", "by": "place"},
        },
        "privacy.delta",
        "release.h",
    ),
    ({"release__Records": {"kind": "count"}}, "release.Records", "small letters"),
    ({"release__9": {"kind": "count"}}, "release.9", "small letters"),
    ({"release__records": 3}, "release.records", "a table"),
    ({"release__records": {}}, "release.records.kind", "missing"),
    (release(kind="cuont"), "release.records.kind", "Did you mean 'count'"),
    (release(kind=3), "release.records.kind", "count, sum"),
    (release(of="weight"), "release.records.of", "kind, share, where"),
    (release(windw="3d"), "release.records.windw", "Did you mean 'window'"),
    (release(share=0), "release.records.share", "above 0"),
    (release(share=-1), "release.records.share", "above 0"),
    (release(share=math.nan), "release.records.share", "finite"),
    (release(level=1), "release.records.level", "excluded"),
    (release(level="0.95%"), "release.records.level", "finite"),
    (release(factor="harr"), "release.records.factor", "Did you mean 'haar'"),
    (release(where=3), "release.records.where", "text"),
    (release(where="plce == 'x'"), "release.records.where", "Did you mean 'place'"),
    (release(window="36h"), "release.records.window", "such as '7d'"),
    (release(window="1mo"), "release.records.window", "whole number of rounds"),
    (release(window="0d"), "release.records.window", "30d"),
    (release(window="-3d"), "release.records.window", "30d"),
    (release(window=30), "release.records.window", "text"),
    (release(window="31d"), "release.records.window", "at most 30 rounds"),
    (release(kind="sum"), "release.records.of", "missing"),
    (release(kind="sum", of="wieght"), "release.records.of", "Did you mean 'weight'"),
    (release(kind="mean", of="place"), "release.records.of", "number or integer"),
    (release(kind="sum", of="weight", max_bins=3), "release.records.max_bins", "of, by"),
    (release(kind="histogram"), "release.records.by", "missing"),
    (release(kind="histogram", by=[]), "release.records.by", "a column's name"),
    (release(kind="histogram", by="plac"), "release.records.by", "Did you mean 'place'"),
    (release(kind="histogram", by=["kind", "kind"]), "release.records.by", "twice"),
    (release(kind="histogram", by="place", max_bins=0), "release.records.max_bins", "at least 1"),
]


@pytest.mark.parametrize(("changes", "key", "says"), WRONG, ids=[str(case[0]) for case in WRONG])
def test_a_wrong_key_is_named_with_what_was_expected(
    changes: dict[str, Any], key: str, says: str
) -> None:
    with pytest.raises(PlanError) as caught:
        changed(**changes)
    message = str(caught.value)
    assert key in message
    assert says in message
    assert caught.value.exit_code == 2
    assert not isinstance(caught.value, NotInThisVersionError)


def test_the_grammar_has_nineteen_kinds_all_of_which_are_made() -> None:
    assert len(KINDS) == 19
    assert {"cube", "quantiles", "distinct", "kmeans", "online_kmeans", "masked"} < KINDS.keys()
    assert all(KINDS.values())


def test_a_kind_that_a_version_does_not_have_is_recognised_as_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releases, "KINDS", {**KINDS, "planned": None})
    with pytest.raises(NotInThisVersionError, match="not in this version") as caught:
        changed(**release(kind="planned"))
    assert caught.value.exit_code == 2


def test_one_name_for_two_releases_is_refused() -> None:
    twice = RETAIL + '\n[release.lines]\nkind = "count"\n'
    with pytest.raises(PlanError, match="one release only"):
        Plan.loads(twice)
    tables = changed_tables()
    tables["release"] = [{"name": "a", "kind": "count"}, {"name": "a", "kind": "count"}]
    with pytest.raises(PlanError, match=r"release\.a is there twice"):
        Plan.from_dict(tables)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(PlanError, match="not valid TOML"):
        Plan.loads(RETAIL.replace('product = "text"', 'customer = "text"'))


@pytest.mark.parametrize("text", ["[stream", "x = nope", "a = " + "[" * 10_000])
def test_broken_toml_is_a_plan_error(text: str) -> None:
    with pytest.raises(PlanError, match="not valid TOML"):
        Plan.loads(text)


def test_an_astronomical_exponent_is_refused_at_once() -> None:
    with pytest.raises(PlanError, match="finite"):
        Plan.loads(RETAIL.replace("1e-9", "1e-999999999"))


def test_every_key_of_the_small_plan_is_needed_or_has_a_default() -> None:
    with pytest.raises(PlanError, match=r"stream\.round is missing"):
        Plan.from_dict(SMALL | {"stream": {"start": "2024-01-01", "horizon": 3}})


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ('kind = "quantiles"\nof = "amount"\nat = [1.5]', "at is [1.5]"),
        ('kind = "masked"\nalpha = 0.1\ndrift = 1', 'such as { kind = "distinct"'),
    ],
)
def test_what_came_is_shown_as_it_was_written_and_what_was_expected_by_an_example(
    release: str, says: str
) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.loads(f"{RETAIL}\n[release.new]\n{release}\n")
    assert says in str(caught.value)
