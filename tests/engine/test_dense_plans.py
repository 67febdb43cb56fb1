"""Plans without forward secrecy: which factor they get, why, and that their stores hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.amounts import planned_bins
from retrodp.engine.check import check
from retrodp.engine.resolve import resolve
from retrodp.engine.verify import openable_rounds, verify
from retrodp.errors import PlanError
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from tests.support.rows import add, delete, ingest
from tests.support.stores import new_store, published

HORIZON = 12
RELEASES = """
[release.lines]
kind = "count"
[release.money]
kind = "mean"
of = "amount"
by = "country"
[release.recent]
kind = "count"
window = "3d"
[release.by_product]
kind = "histogram"
by = "product"
max_bins = 100000
"""


def plan(
    releases: str = RELEASES,
    *,
    secrecy: str = "false",
    model: str = "zcdp",
    horizon: int = HORIZON,
    most: str = "20",
) -> Plan:
    return Plan.loads(f"""
[stream]
start = 2024-01-01
round = "1d"
horizon = {horizon}
person = "who"
[columns]
who = "text"
product = "text"
country = {{ type = "category", values = ["DE", "FR"], other = true }}
amount = {{ type = "number", min = -5, max = {most}, step = 0.5, nullable = true }}
gift = "boolean"
[privacy]
model = "{model}"
epsilon = 1
delta = 1e-6
forward_secrecy = {secrecy}
{releases}
""")


def factors(resolved: ResolvedPlan) -> dict[str, str]:
    return {
        entry["name"]: entry["noise"]["process"]["factor"]["factor"] for entry in resolved.releases
    }


def one(**keys: Any) -> str:
    lines = {"kind": '"count"'} | keys
    return "[release.x]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items())


def facts(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {release["name"]: release for release in document["releases"]}


def test_without_forward_secrecy_every_release_that_fits_gets_the_dense_factor() -> None:
    assert set(factors(resolve(plan())).values()) == {"dense"}
    secret = factors(resolve(plan(secrecy="true")))
    assert secret == {"lines": "haar", "money": "haar", "recent": "fresh", "by_product": "haar"}


@pytest.mark.parametrize(
    ("release", "changes", "factor"),
    [
        (one(), {"model": "pure"}, "delannoy"),
        (one(), {"horizon": 1001}, "haar"),
        (one(kind='"histogram"', by='"product"'), {}, "haar"),
        (one(kind='"histogram"', by='"product"', max_bins=100_001), {}, "haar"),
        (one(kind='"sum"', of='"amount"'), {"most": "1000000"}, "haar"),
        (one(factor='"binary"'), {}, "binary"),
    ],
)
def test_where_it_does_not_fit_auto_takes_another(
    release: str, changes: dict[str, Any], factor: str
) -> None:
    assert factors(resolve(plan(release, **changes))) == {"x": factor}


@pytest.mark.parametrize(
    ("release", "changes", "says"),
    [
        (one(factor='"dense"'), {"secrecy": "true"}, "forward_secrecy = false"),
        (one(factor='"dense"'), {"model": "pure"}, "zcdp"),
        (one(factor='"dense"'), {"model": "pure", "secrecy": "true"}, "forward_secrecy"),
        (one(factor='"dense"'), {"horizon": 1001}, "1000"),
        (one(kind='"histogram"', by='"product"', factor='"dense"'), {}, "100000"),
        (one(kind='"sum"', of='"amount"', factor='"dense"'), {"most": "1000000"}, "1000000"),
    ],
)
def test_naming_it_where_it_does_not_fit_is_an_error_with_the_way_out(
    release: str, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        resolve(plan(release, **changes))
    assert caught.value.exit_code == 2
    assert caught.value.do


@pytest.mark.parametrize(
    ("release", "bins"),
    [
        (one(), 1),
        (one(kind='"histogram"', by='["country", "gift"]'), 4 * 3),
        (one(kind='"histogram"', by='["country", "product"]', max_bins=777), 777),
        (one(kind='"cube"', by='["country", "gift"]'), 4 + 3 + 12),
    ],
)
def test_bins_are_counted_as_they_are_planned(release: str, bins: int) -> None:
    made = plan(release)
    assert planned_bins(made, made.releases[0]) == bins


def test_check_says_which_factor_why_and_what_another_would_give() -> None:
    here, there = facts(check(plan())), facts(check(plan(secrecy="true")))
    assert {name: one["factor"] for name, one in here.items()} == factors(resolve(plan()))
    dense, tree = here["lines"], there["lines"]
    assert dense["alternative"]["factor"] == "haar"
    assert tree["alternative"]["factor"] == "dense"
    assert dense["alternative"]["error"] == pytest.approx(tree["error_max"], rel=0.1)
    assert tree["alternative"]["error"] == pytest.approx(dense["error_max"], rel=0.1)
    assert dense["error_max"] < 0.8 * tree["error_max"]
    assert dense["alternative"]["ratio"] == pytest.approx(
        1 / tree["alternative"]["ratio"], rel=0.01
    )
    assert "forward secrecy" in tree["factor_why"]
    assert here["recent"]["alternative"]["factor"] == "fresh"
    assert there["recent"]["alternative"] is None
    named = facts(check(plan(one(factor='"haar"'))))["x"]
    assert named["factor_why"] == "The plan names it."
    assert named["alternative"]["factor"] == "dense"


def test_check_has_no_alternative_where_there_is_none() -> None:
    for changes in ({"model": "pure"}, {"horizon": 1001}):
        assert facts(check(plan(one(), secrecy="true", **changes)))["x"]["alternative"] is None


def test_the_notes_say_it_in_words() -> None:
    notes = " ".join(check(plan(secrecy="true"))["notes"])
    assert "lines" in notes
    assert "dense noise would err 0.79 times as much as haar" in notes
    assert "forward_secrecy = false" in notes


def test_a_resolved_plan_with_its_roots_survives_its_bytes() -> None:
    resolved = resolve(plan())
    again = ResolvedPlan.from_json(resolved.to_json(), fingerprint=resolved.fingerprint)
    assert again == resolved
    assert len(resolved.to_json()) < 30_000


def test_a_store_of_dense_releases_closes_forgets_and_verifies(ram: Path) -> None:
    """What was added and forgotten before its round leaves the bytes of what never was."""
    releases: dict[str, dict[int, dict[str, bytes]]] = {}
    for name, extra in (("with", True), ("without", False)):
        with new_store(ram / name, plan()) as store:
            rows = [add(f"id{n}", 1 + n % 3, who=f"p{n % 5}") for n in range(30)]
            gone = [add("gone", 1, who="p9"), delete("gone", 2)] if extra else []
            ingest(store, rows + gone)
            store.close_through(4)
            verified = verify(store)
            assert verified.document["releases_equal"] is True
            assert openable_rounds(store)["lines"] == 3
        releases[name] = published(ram / name)
    with_it, without = releases["with"], releases["without"]
    assert sorted(with_it) == [1, 2, 3, 4]
    assert with_it[1] != without[1]
    assert {r: with_it[r] for r in (2, 3, 4)} == {r: without[r] for r in (2, 3, 4)}


def test_a_tree_opens_hardly_any_past_round_where_a_dense_factor_opens_all(ram: Path) -> None:
    opened = {}
    for secrecy in ("true", "false"):
        with new_store(ram / secrecy, plan(one(), secrecy=secrecy)) as store:
            store.close_through(9)
            opened[secrecy] = openable_rounds(store)["x"]
    assert opened["false"] == 8
    assert opened["true"] <= 2
