"""Requests to be forgotten, from the command to the proof."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import PLAN, Desk, set_clock

ROWS = (
    "add,a,2024-01-01T08:00,annabella,DE,1.5",
    "add,b,2024-01-01T09:00,bob-the-tall,FR,2",
    "add,c,2024-01-02T09:00,annabella,FR,2",
    "add,d,2024-01-04T09:00,annabella,FR,2",
)
PERSON_ROUND = PLAN.replace(
    'person = "who"', 'unit = "person_round"\nperson = "who"\nmax_records = 2'
)


def holds(desk: Desk, text: str) -> list[str]:
    """Files of the store in which the text stands."""
    files = [path for path in desk.store.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


def test_an_id_is_forgotten_when_the_open_round_closes(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS[:3])).code == 0
    outcome = desk.on_store("forget", "--id", "b", json=True)
    (receipt,) = outcome.document["receipts"]
    assert (receipt["from_round"], receipt["erased"]) == (4, False)
    assert desk.published() == {1: "2", 2: "3", 3: "3"}
    assert desk.on_store("close", through="2024-01-04").code == 0
    assert desk.published()[4] == "2"
    assert holds(desk, "bob-the-tall") == []


def test_forget_and_close_at_once_erases_the_bytes(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    assert "ledger.sqlite" in holds(desk, "annabella")
    outcome = desk.on_store("forget", "--person", "annabella", "--close")
    assert outcome.code == 0
    assert "From round 4 on" in outcome.out
    assert holds(desk, "annabella") == []
    assert desk.published() == {1: "2", 2: "3", 3: "3", 4: "1"}


def test_what_still_waits_of_a_person_is_forgotten_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    assert desk.on_store("forget", "--person", "annabella").code == 0
    set_clock(monkeypatch, "2024-01-05T12:00")
    assert desk.on_store("close").code == 0
    assert desk.published()[4] == "1"


@pytest.mark.parametrize("plan", [PLAN, PERSON_ROUND])
def test_a_person_is_forgotten_under_either_unit(desk: Desk, plan: str) -> None:
    desk.plan.write_text(plan)
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    assert desk.on_store("forget", "--person", "annabella", "--close").code == 0
    assert desk.published() == {1: "2", 2: "3", 3: "3", 4: "1"}
    assert holds(desk, "annabella") == []
    status = desk.on_store("status", json=True).document
    assert (status["survivors"], status["waiting"]) == (1, 0)


def test_the_answer_is_the_same_for_who_is_not_there(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    answers = [
        desk.on_store("forget", "--id", name, json=True).document["receipts"][0]
        for name in ("b", "nobody")
    ]
    own = {"value", "salt", "hash"}
    known, unknown = ({k: v for k, v in one.items() if k not in own} for one in answers)
    assert known == unknown


def test_requests_come_from_a_file_and_their_receipts_prove_it(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    requests = desk.write("requests.txt", 'b\n{"person": "annabella"}\n')
    outcome = desk.on_store("forget", "--close", file=requests, json=True)
    receipts = desk.write(
        "receipts.jsonl",
        "".join(json.dumps(own) + "\n" for own in outcome.document["receipts"]),
    )
    verified = desk.on_store("verify", forgotten=receipts, json=True)
    assert verified.code == 0
    assert verified.document["releases_equal"] is True
    assert [entry["left_in"] for entry in verified.document["forgotten"]] == [[], []]
    assert [entry["hash"] for entry in verified.document["forgotten"]] == [
        own["hash"] for own in outcome.document["receipts"]
    ]


def test_a_value_that_is_left_fails_the_verification(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    names = desk.write("names.txt", '{"person": "bob-the-tall"}\n')
    outcome = desk.on_store("verify", forgotten=names, json=True)
    assert outcome.code == 1
    assert outcome.document["passed"] is False


def test_after_the_horizon_a_record_is_erased_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-02-01T12:00")
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    outcome = desk.on_store("forget", "--person", "annabella", "--close", json=True)
    (receipt,) = outcome.document["receipts"]
    assert (outcome.code, receipt["from_round"], receipt["erased"]) == (0, None, True)
    assert holds(desk, "annabella") == []
    verified = desk.on_store("verify", json=True)
    assert (verified.code, verified.document["releases_equal"]) == (0, None)
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0


def test_a_stream_without_ids_still_runs_after_everything_is_over(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-02-01T12:00")
    desk.plan.write_text(PLAN.replace('person = "who"', 'ids = false\nperson = "who"'))
    file = desk.rows("1.csv", "add,2024-01-01,ann,DE,1", header="op,at,who,country,amount\n")
    assert desk.run(file).code == 0
    assert desk.on_store("forget", "--person", "ann").code == 0
    assert desk.run(file).code == 0


def test_closing_a_round_that_has_not_begun_forgets_nothing(desk: Desk) -> None:
    """A refusal after the request would keep the receipt from the requester."""
    assert desk.run(desk.rows("1.csv", *ROWS), through="2024-01-04").code == 0
    outcome = desk.on_store("forget", "--id", "a", "--close", json=True)
    assert (outcome.code, outcome.document["code"]) == (4, "future_date")
    assert desk.on_store("status", json=True).document["forgets_waiting"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Nothing to forget"),
        (["--id", ""], "empty"),
        (["--file", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_a_request_that_names_nothing_is_wrong_use(
    desk: Desk, arguments: list[str], said: str
) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    outcome = desk.on_store("forget", *arguments)
    assert outcome.code == 2
    assert said in outcome.said


def test_persons_need_a_column_and_ids_need_ids(desk: Desk) -> None:
    desk.plan.write_text(PLAN.replace('person = "who"', "ids = false"))
    assert desk.run(desk.rows("1.csv", header="op,at,who,country,amount\n")).code == 0
    assert "no person column" in desk.on_store("forget", "--person", "x").said
    assert "no ids" in desk.on_store("forget", "--id", "x").said
