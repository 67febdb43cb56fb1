from __future__ import annotations

import json
from fractions import Fraction

import pytest

from retrodp.engine.resolve import resolve
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.views import budget, words
from tests.views import stores
from tests.views.screens import screen, widest

PURE = """
[stream]
start = 2020-01-01
round = "1d"
horizon = 16

[columns]
shop = { type = "category", values = ["a", "b"] }

[privacy]
model = "pure"
epsilon = "1/3"

[release.visits]
kind = "histogram"
by = "shop"
[release.total]
kind = "count"
"""


@pytest.fixture
def pure() -> ResolvedPlan:
    return resolve(Plan.loads(PURE))


def test_the_document_is_json_with_a_format() -> None:
    document = budget.document(stores.resolved())
    assert json.loads(json.dumps(document)) == document
    assert document["format"] == 1


def test_the_totals_are_those_of_the_plan() -> None:
    document = budget.document(stores.resolved())
    assert (document["epsilon"], document["delta"], document["horizon"]) == ("1", "1e-9", 10)
    assert Fraction(document["exact"]["delta"]) == Fraction(1, 10**9)


def test_the_parts_of_delta_add_up_to_delta() -> None:
    exact = budget.document(stores.resolved())["exact"]
    assert sum(map(Fraction, exact["delta_parts"].values())) == Fraction(exact["delta"])


def test_the_shares_add_up_to_the_whole() -> None:
    releases = budget.document(stores.resolved())["releases"]
    assert sum(Fraction(release["share"]) for release in releases) == 1


def test_what_the_releases_spend_covers_rho() -> None:
    document = budget.document(stores.resolved())
    spent = sum(Fraction(release["spends"]["rho"]) for release in document["releases"])
    assert spent >= Fraction(document["exact"]["rho"])


def test_a_pure_plan_spends_epsilon_and_has_no_rho(pure: ResolvedPlan) -> None:
    document = budget.document(pure)
    assert document["epsilon"] == "0.333334"
    assert document["exact"]["epsilon"] == "1/3"
    assert "rho" not in document
    assert [release["spends"] for release in document["releases"]] == [
        {"epsilon": "0.166667"},
        {"epsilon": "0.166667"},
    ]


def test_errors_and_sensitivity_are_in_units_of_the_statistic() -> None:
    document = budget.document(stores.resolved())
    revenue = {release["release"]: release for release in document["releases"]}["revenue"]
    noise = stores.resolved().release("revenue")["noise"]
    assert (revenue["step"], revenue["sensitivity"]) == ("0.05", "5")
    assert Fraction(revenue["error_max"]) == max(noise["half"]) * Fraction(1, 20)


def test_only_a_sparse_release_has_a_threshold() -> None:
    releases = budget.document(stores.resolved())["releases"]
    found = {release["release"]: release.get("threshold") for release in releases}
    threshold = str(stores.resolved().release("by_product")["threshold"])
    assert found == {"lines": None, "revenue": None, "by_country": None, "by_product": threshold}


def test_every_release_says_whether_it_is_retroactive() -> None:
    releases = budget.document(stores.resolved())["releases"]
    assert {release["retroactive"] for release in releases} == {"exact"}
    assert all("had never been there" in release["retroactive_means"] for release in releases)


def test_the_plan_may_say_that_a_release_is_not_retroactive() -> None:
    word, sentence = words.retroactivity({"kind": "count", "retroactive": "no"})
    assert (word, "keeps the influence of deleted records" in sentence) == ("no", True)


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ({"unit": "record"}, "its addition and its deletion"),
        ({"unit": "operation"}, "one update"),
        (
            {"unit": "person_round", "person": "customer", "max_records": 50},
            "one customer adds in one round, at most 50 records",
        ),
        (
            {"unit": "person", "person": "customer", "max_records": 5, "max_rounds": 7},
            "in one round, at most 5 records (over the declared 7 rounds the guarantee is the weaker",
        ),
    ],
)
def test_the_unit_is_said_in_words(stream: dict[str, object], said: str) -> None:
    assert said in words.unit(stream)


def test_the_screen_fits_80_columns() -> None:
    document = budget.document(stores.resolved())
    text = screen(lambda console: budget.render(console, document))
    assert widest(text) <= 80
    assert "epsilon 1 and delta 1e-9" in text
    assert "haar, Gaussian" in text


def test_a_plan_without_delta_does_not_mention_it(pure: ResolvedPlan) -> None:
    document = budget.document(pure)
    assert "delta" not in screen(lambda console: budget.render(console, document))


def test_errors_of_parts_are_rounded_up_to_six_digits() -> None:
    document = budget.document(stores.resolved())
    entry = document["releases"][0]
    part = {"name": "sum", "error_max": "316.64013671875", "error_all_max": "1329.3798828125"}
    entry["parts"] = [part]
    printed = screen(lambda console: budget.render(console, document), width=100)
    assert "316.641" in printed
    assert "1,329.38" in printed
    assert "316.64013671875" not in printed


def test_without_thresholds_there_is_no_column_for_them(pure: ResolvedPlan) -> None:
    document = budget.document(pure)
    assert "published" not in screen(lambda console: budget.render(console, document))
    other = budget.document(stores.resolved())
    assert "published" in screen(lambda console: budget.render(console, other))


def test_long_names_stand_whole_beside_the_sum_of_a_mean_and_a_threshold() -> None:
    plan = Plan.loads(
        stores.PLAN
        + '[release.mean_amount_of_all]\nkind = "mean"\nof = "amount"\n'
        + '[release.products_sold_today]\nkind = "histogram"\nby = "product"\nwindow = "1d"\n'
    )
    document = budget.document(resolve(plan))
    printed = screen(lambda console: budget.render(console, document))
    assert widest(printed) <= 80
    begins = [line.partition(" ")[0] for line in printed.splitlines()]
    assert {"mean_amount_of_all", "products_sold_today"} <= {*begins}


def test_numbers_are_whole_where_names_must_be_folded() -> None:
    document = budget.document(stores.resolved())
    large = {"error_max": "123456789012.25", "error_all_max": "1234567890123.25"}
    document["releases"][0] |= large | {"release": "a_name_that_is_much_longer_than_the_others"}
    printed = screen(lambda console: budget.render(console, document))
    assert widest(printed) <= 80
    assert "123,456,789,012.25" in printed
    assert "1,234,567,890,123.25" in printed
