"""The privacy statement: the registry's form, the store's promise, no published number, a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from retrodp.audit.subjects import compiled_fillings, fillings, plan_of
from retrodp.engine.resolve import resolve
from retrodp.errors import UsageError
from retrodp.plan.kinds import KINDS
from retrodp.plan.plan import Plan
from retrodp.store.releases import Releases
from retrodp.views import statement
from retrodp.views.published import PLAN_FILE, RELEASES_FILE, Published
from retrodp.views.registry import TIER_1, About, Record, read_about
from tests.views.stores import opened, store

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "statement.schema.json"
ABOUT = """
name = "Order lines"
curators = ["A shop"]
curator_type = "Company"
description = "Daily numbers of order lines."
intended_use = "Planning"
region = "Europe"
sector = "Retail"
authors = ["Somebody"]
"""
REST = """
trust_assumptions = "The shop is trusted."
actors = "The shop; everybody who reads."
preprocessing = "None."
justification = "Signed off."
utility = "See the errors."
[[sources]]
title = "The plan"
url = "https://example.org/plan"
"""


def about(tmp_path: Path, text: str) -> About:
    path = tmp_path / "about.toml"
    path.write_text(text)
    return read_about(path)


def found(tmp_path: Path, said: About | None = None) -> dict[str, Any]:
    with opened(tmp_path / "s") as published:
        return statement.document(published, said)


def leaves(value: object) -> list[object]:
    match value:
        case dict():
            return [leaf for own in value.values() for leaf in leaves(own)]
        case list():
            return [leaf for own in value for leaf in leaves(own)]
        case _:
            return [value]


def test_the_committed_schema_is_that_of_the_documents() -> None:
    written = json.dumps(statement.schema(), indent=2) + "\n"
    assert SCHEMA.read_text() == written, "run docs/generate.py"


def test_a_statement_is_valid_by_its_schema_and_nothing_else_is(tmp_path: Path) -> None:
    document = found(tmp_path, about(tmp_path, ABOUT + REST))
    assert msgspec.convert(document, statement.Statement) is not None
    document["registry"]["deployment"]["basic"]["data_product_type"] = "Anything"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, statement.Statement)


def test_the_entry_has_the_parts_of_the_registry_in_its_order(tmp_path: Path) -> None:
    deployment = found(tmp_path)["registry"]["deployment"]
    assert list(deployment) == [
        *("basic", "dp_variant", "privacy_loss", "deployment_model", "implementation"),
        "administrative",
    ]


def test_losses_are_those_of_the_plan_and_never_rounded_down(tmp_path: Path) -> None:
    loss = found(tmp_path)["registry"]["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "Record-level"
    assert loss["privacy_parameters"]["epsilon"] == 1.0
    assert loss["privacy_parameters"]["delta"] >= 1e-9
    assert 0.01 < loss["privacy_parameters"]["rho"] < 0.05


def test_a_delta_for_thresholds_is_not_called_zero_concentrated(tmp_path: Path) -> None:
    document = found(tmp_path)
    assert document["retrodp"]["delta_parts"]["thresholds"] != "0"
    assert document["registry"]["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"


def test_every_release_says_what_becomes_of_deleted_records(tmp_path: Path) -> None:
    own = found(tmp_path)["retrodp"]
    assert [one["release"] for one in own["retroactivity"]] == [
        *("lines", "revenue", "by_country", "by_product"),
    ]
    assert {one["retroactive"] for one in own["retroactivity"]} == {"exact"}
    assert own["fingerprint"] in store_fingerprint(tmp_path)


def store_fingerprint(tmp_path: Path) -> str:
    with Published.open(tmp_path / "s") as published:
        return published.fingerprint


def test_no_published_number_or_label_is_in_it(tmp_path: Path) -> None:
    document = found(tmp_path)
    said = json.dumps(document)
    numbers = {leaf for leaf in leaves(document) if isinstance(leaf, int | float)}
    assert not {3007, -12348, 903, 700} & numbers  # of the last round
    assert "Tea" not in said
    assert "France" not in said


def test_a_store_made_for_tests_says_so(tmp_path: Path) -> None:
    with opened(tmp_path / "s", test=True) as published:
        assert statement.document(published)["retrodp"]["test"] is True


def test_late_rounds_are_named_where_the_time_is_given(tmp_path: Path) -> None:
    with opened(tmp_path / "s") as published:
        rounds = statement.document(published, now=published.boundaries[6])["retrodp"]["rounds"]
    assert (rounds["published"], rounds["late"]) == (3, [4, 6])


@pytest.mark.parametrize(
    ("text", "tier", "left"),
    [("", 1, set(TIER_1)), (ABOUT, 2, {"utility", "sources"}), (ABOUT + REST, 3, set())],
)
def test_the_tier_follows_from_what_is_filled_in(
    text: str, tier: int, left: set[str], tmp_path: Path
) -> None:
    said = about(tmp_path, text)
    assert said.tier == tier
    assert left <= set(said.to_fill_in)
    assert left or not said.to_fill_in


def test_what_the_publisher_says_stands_where_the_registry_asks_for_it(tmp_path: Path) -> None:
    record = found(tmp_path, about(tmp_path, ABOUT + REST))["registry"]
    entry = msgspec.convert(record, Record)
    assert entry.url_slug == "order-lines"
    assert entry.deployment.basic.data_curators[0].data_curator_name == "A shop"
    sources = entry.deployment.administrative.evidence_sources
    assert sources["source_1"].article.url == "https://example.org/plan"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not valid TOML"),
        ('nmae = "x"', "nmae"),
        ("name = 3", "Expected `str`"),
        ('publication_date = "soon"', "publication_date"),
        ('[[sources]]\ntitle = "x"\nurl = "ftp://x"', "url"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"about\.toml") as caught:
        about(tmp_path, text)
    assert said in str(caught.value)


def planned(directory: Path, plan: Plan) -> dict[str, Any]:
    """The statement of a store of that plan that has published nothing."""
    directory.mkdir()
    (directory / PLAN_FILE).write_bytes(resolve(plan).to_json())
    Releases.create(directory / RELEASES_FILE, store_id="5" * 32, test=False).close()
    with Published.open(directory) as published:
        return statement.document(published)


def test_every_kind_is_stated(tmp_path: Path) -> None:
    first: dict[str, Any] = {}
    for one in [*fillings(), *compiled_fillings()]:
        first.setdefault(one.table["kind"], one.table)
    tables = {f"r_{kind}": table for kind, table in first.items()}
    plan = plan_of(tables, model="zcdp", horizon=3, epsilon=50)
    document = planned(tmp_path / "s", plan)
    own = document["retrodp"]
    kinds = {one["kind"] for one in own["retroactivity"]}
    assert kinds == {name for name, known in KINDS.items() if known is not None}
    assert {one["release"] for one in own["mechanisms"]} == {
        one["release"] for one in own["retroactivity"]
    }
    assert set(statement.POST_PROCESSING) <= kinds
    assert msgspec.convert(document, statement.Statement) is not None


PURE = """
[stream]
start = 2024-01-01
round = "1d"
horizon = 8
unit = "person"
person = "who"
max_records = 3
max_rounds = 4
[columns]
who = "text"
[privacy]
model = "pure"
epsilon = 1
[release.n]
kind = "count"
"""


def test_persons_under_pure_epsilon_are_protected_day_by_day(tmp_path: Path) -> None:
    deployment = planned(tmp_path / "s", Plan.loads(PURE))["registry"]["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert "declared, not enforced" in deployment["dp_variant"]["unprotected_quantities"]
    assert deployment["privacy_loss"]["privacy_unit"] == "Person-day-level"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}


def test_a_plan_without_thresholds_is_zero_concentrated(tmp_path: Path) -> None:
    text = PURE.replace('model = "pure"', 'model = "zcdp"\ndelta = 1e-9')
    deployment = planned(tmp_path / "s", Plan.loads(text))["registry"]["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Zero-concentrated DP"


def test_a_store_needs_only_its_public_half(tmp_path: Path) -> None:
    directory = store(tmp_path / "s")
    assert {path.name for path in directory.iterdir()} == {"plan.resolved.json", "releases.sqlite"}
    with Published.open(directory) as published:
        assert statement.document(published)["format"] == 1
