"""Other streams than records with ids, from file to export."""

from __future__ import annotations

import pytest

from tests.cli.running import PLAN, Desk, set_clock

KKMNS = """
[stream]
start = 2024-01-01
round = "1d"
horizon = 6
ids = false

[columns]
value = "text"

[privacy]
epsilon = 1000
delta = 1e-6

[release.points]
kind = "count"
"""

# Example 2.1: {add a}, {add b, add b}, {del (2,b)}, {del (1,b)}, {del (2,b)}, {del (2,b)}.
EXAMPLE = (
    "add,2024-01-01,,a",
    "add,2024-01-02,,b",
    "add,2024-01-02,,b",
    "delete,2024-01-03,2024-01-02,b",
    "delete,2024-01-04,2024-01-01,b",
    "delete,2024-01-05,2024-01-02,b",
    "delete,2024-01-06,2024-01-02,b",
)
COUNTS = {1: "1", 2: "3", 3: "2", 4: "2", 5: "1", 6: "1"}


def test_example_2_1_of_kkmns(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, "2024-01-07T12:00")
    desk.plan.write_text(KKMNS)
    assert desk.run(desk.rows("1.csv", *EXAMPLE, header="op,at,time,value\n")).code == 0
    assert desk.published("points") == COUNTS


def test_example_2_1_of_kkmns_day_by_day(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.plan.write_text(KKMNS)
    survivors = []
    for day in range(1, 7):
        set_clock(monkeypatch, f"2024-01-0{day}T23:59")
        rows = [row for row in EXAMPLE if f"{row},".split(",")[1] == f"2024-01-0{day}"]
        file = desk.rows(f"{day}.csv", *rows, header="op,at,time,value\n")
        assert desk.run(file, through=f"2024-01-0{day}").code == 0
        survivors.append(desk.on_store("status", json=True).document["survivors"])
    assert survivors == [1, 3, 2, 2, 1, 1]
    assert desk.published("points") == COUNTS


def test_a_feed_of_totals_counts_every_row_as_often_as_it_says(desk: Desk) -> None:
    """Page views by day, with a correction of yesterday's number."""
    desk.plan.write_text(KKMNS + '[release.by_value]\nkind = "histogram"\nby = "value"\n')
    file = desk.rows(
        "views.csv",
        "add,2024-01-01,,home,1200",
        "add,2024-01-01,,about,300",
        "add,2024-01-02,,home,1000",
        "delete,2024-01-02,2024-01-01,home,200",
        "delete,2024-01-03,2024-01-01,about,5000",
        header="op,at,time,value,n\n",
    )
    outcome = desk.run(file, json=True)
    assert (outcome.code, outcome.document["ingested"]["refused"]) == (0, 0)
    assert desk.published("points") == {1: "1500", 2: "2300", 3: "2000"}
    assert desk.published("by_value", "home") == {1: "1200", 2: "2000", 3: "2000"}
    assert desk.published("by_value", "about") == {1: "300", 2: "300"}


@pytest.mark.parametrize("n", ["0", "-1", "1.5", "many"])
def test_a_number_of_copies_that_is_none_is_refused(desk: Desk, n: str) -> None:
    desk.plan.write_text(KKMNS)
    assert desk.run(desk.rows("1.csv", f"add,2024-01-01,a,{n}", header="op,at,value,n\n")).code == 3
    assert desk.published("points") == {1: "0", 2: "0", 3: "0"}


SHOP = PLAN.replace(
    'person = "who"', 'unit = "person_round"\nperson = "who"\nmax_records = 3'
).replace('who = "text"', 'who = "text"\nproduct = "text"')
SHOP_HEADER = "op,id,at,who,product,country,amount\n"


def basket(who: str, lines: int, day: int = 1) -> list[str]:
    return [
        f"add,{number},2024-01-0{day}T08:0{number},{who},p{number},DE,10" for number in range(lines)
    ]


def test_a_person_brings_no_more_than_her_bound_in_a_round(desk: Desk) -> None:
    desk.plan.write_text(SHOP)
    rows = [*basket("ann", 9), *basket("bob", 2), *basket("ann", 2, day=2)]
    outcome = desk.run(desk.rows("1.csv", *rows, header=SHOP_HEADER), json=True)
    assert outcome.code == 0
    # Ann's ids of day 2 may be among those that already run; these are ignored as repeated.
    survivors = desk.on_store("status", json=True).document["survivors"]
    assert desk.published() == {1: "5", 2: str(survivors), 3: str(survivors)}
    assert outcome.document["ignored_at_close"] == 13 - survivors


def test_two_persons_may_use_the_same_ids(desk: Desk) -> None:
    desk.plan.write_text(SHOP)
    rows = [*basket("ann", 2), *basket("bob", 2), "delete,0,2024-01-02T08:00,ann,,,"]
    assert desk.run(desk.rows("1.csv", *rows, header=SHOP_HEADER)).code == 0
    assert desk.published() == {1: "4", 2: "3", 3: "3"}


def test_a_row_without_a_person_is_refused_under_a_person_unit(desk: Desk) -> None:
    desk.plan.write_text(SHOP)
    rows = [*basket("ann", 1), "add,7,2024-01-01T08:00,,p,DE,1"]
    assert desk.run(desk.rows("1.csv", *rows, header=SHOP_HEADER)).code == 3
    assert desk.published() == {1: "1", 2: "1", 3: "1"}


MEANS = """
[release.mean]
kind = "mean"
of = "amount"
[release.mean_by_country]
kind = "mean"
of = "amount"
by = "country"
[release.turnover]
kind = "sum"
of = "amount"
"""


def test_means_and_sums_come_out_of_the_export(desk: Desk) -> None:
    desk.plan.write_text(PLAN + MEANS)
    rows = (
        *(f"add,a{number},2024-01-01T08:00,ann,DE,10" for number in range(30)),
        *(f"add,b{number},2024-01-01T08:00,bob,FR,40" for number in range(30)),
        *(f"delete,b{number},2024-01-02T08:00,,," for number in range(30)),
    )
    assert desk.run(desk.rows("1.csv", *rows)).code == 0

    def near(release: str, key: str = "") -> dict[int, int]:
        return {
            round_: round(float(value)) for round_, value in desk.published(release, key).items()
        }

    assert near("mean") == {1: 25, 2: 10, 3: 10}
    assert near("mean_by_country", "DE") == {1: 10, 2: 10, 3: 10}
    assert near("turnover") == pytest.approx({1: 1500, 2: 300, 3: 300}, abs=100)


def test_a_date_alone_needs_the_plan_to_say_what_it_means(desk: Desk) -> None:
    rows = ("add,a,2024-01-01,ann,DE,1", "delete,a,2024-01-01,,,")
    assert desk.run(desk.rows("1.csv", *rows)).code == 3
    other = Desk.in_new(
        desk.directory / "other",
        PLAN.replace('person = "who"', 'person = "who"\nsame_time = "add_first"'),
    )
    outcome = other.run(other.rows("1.csv", *rows), json=True)
    assert outcome.code == 0
    assert outcome.document["same_time_at_close"] == 1
    assert other.published() == {1: "0", 2: "0", 3: "0"}
