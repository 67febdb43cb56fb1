"""What goes wrong: exit codes, one JSON document each, sentences that say what to do, no values."""

from __future__ import annotations

import csv
import errno
import os
import shutil
import subprocess
import sys

import pytest

from retrodp.cli import reading
from retrodp.engine.store import Store
from tests.cli.running import HEADER, PLAN, Desk, Outcome, retrodp
from tests.support.plans import counting
from tests.support.stores import fingerprints, new_store

GOOD = ("add,a,2024-01-01T08:00,ann,DE,1.5", "add,b,2024-01-02T09:00,bob,FR,2")
BAD = ("add,zorro-id,2024-01-01T08:00,zorro-name,DE,zorro-money", "steal,x,2024-01-01,ann,DE,1")


def told(outcome: Outcome, code: int, name: str) -> dict[str, str]:
    """The error document, if exit code and name are these."""
    document = outcome.document
    assert document.keys() == {"format", "error", "code", "what", "expected", "do"}
    assert (document["error"], document["code"], outcome.code) == (True, name, code)
    return document


@pytest.mark.parametrize(
    "arguments",
    [["nosuch"], ["run"], ["check", "--bogus", "x"], ["check", "a", "b"], ["show", "--round", "x"]],
)
def test_wrong_use_is_told_and_exit_2(arguments: list[str]) -> None:
    outcome = retrodp(*arguments)
    assert outcome.code == 2
    assert outcome.said.startswith("retrodp: ")
    assert "--help" in outcome.said
    assert told(retrodp(*arguments, "--json"), 2, "usage")["do"]


def test_without_arguments_the_commands_are_listed() -> None:
    assert (retrodp().code, retrodp("--help").code) == (2, 0)
    assert "run" in retrodp("--help").out


def test_every_command_has_help() -> None:
    listed = retrodp("--help").raw.decode().split("Commands:")[1].splitlines()
    commands = [line.split()[0] for line in listed if line.startswith("  ") and line[2] != " "]
    assert {"run", "ingest", "close", "forget", "restore", "retire", "new"} <= {*commands}
    assert {retrodp(command, "--help").code for command in commands} == {0}


def test_the_command_works_as_a_process_of_its_own(desk: Desk) -> None:
    program = [sys.executable, "-c", "from retrodp.cli import main; main()"]
    rows = desk.rows("1.csv", *GOOD)
    arguments = ["run", desk.plan, rows, "--store", desk.store, "--through", "2024-01-02"]
    done = subprocess.run([*program, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    refused = subprocess.run([*program, "run", "--json"], capture_output=True, check=False)
    assert refused.returncode == 2
    told(Outcome(refused.returncode, refused.stdout, ""), 2, "usage")


def test_the_command_line_needs_no_click() -> None:
    """Newer versions of typer come without it."""
    code = (
        "import sys; sys.modules['click'] = None; from retrodp.cli.app import run; run(['nosuch'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr.split()[:1]) == (0, [b"retrodp:"])


def test_refused_rows_are_listed_without_their_values_and_exit_3(desk: Desk) -> None:
    outcome = desk.run(desk.rows("1.csv", *GOOD, *BAD))
    assert outcome.code == 3
    assert "4 rows read: 2 accepted (2 new), 0 ignored, 2 refused." in outcome.out
    rejected = (desk.directory / "store.rejected.csv").read_text()
    header, *rows = csv.reader(rejected.splitlines())
    assert header == ["file", "line", "field", "reason"]
    assert [row[1:] for row in rows] == [
        ["4", "amount", "not a number"],
        ["5", "op", "not add, delete or replace"],
    ]
    everything = rejected + outcome.out + outcome.said
    assert "zorro" not in everything
    assert "steal" not in everything
    assert desk.published() == {1: "1", 2: "2", 3: "2"}


def test_the_list_of_refused_rows_goes_where_it_is_asked(desk: Desk) -> None:
    file = desk.rows("1.csv", *BAD)
    assert desk.run(file, rejected=desk.directory / "mine.csv", json=True).code == 3
    assert (desk.directory / "mine.csv").exists()
    assert not (desk.directory / "store.rejected.csv").exists()


def test_a_list_that_could_not_be_written_is_refused_before_anything_is_taken(desk: Desk) -> None:
    file = desk.rows("1.csv", *GOOD, *BAD)
    told(desk.run(file, rejected=desk.directory / "no" / "mine.csv", json=True), 2, "usage")
    assert not desk.store.exists()


def test_a_missing_column_refuses_the_file_and_makes_no_store(desk: Desk) -> None:
    file = desk.rows("1.csv", "add,a,2024-01-01T08:00,ann,1", header="op,id,at,who,amount\n")
    error = told(desk.run(file, json=True), 2, "source")
    assert "'country' is missing" in error["what"]
    assert "from" in error["do"]
    assert not desk.store.exists()
    # What the message says to do works: the plan is not kept by anything yet.
    fixed = PLAN.replace("other = true }", 'other = true, from = "amount" }')
    desk.plan.write_text(fixed)
    assert desk.run(file).code == 0


def test_a_column_that_disappears_later_refuses_that_file_alone(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD), through="2024-01-01").code == 0
    file = desk.rows("2.csv", "add,c,2024-01-02,ann,1", header="op,id,at,who,amount\n")
    before = fingerprints(desk.store)
    told(desk.run(file, json=True), 2, "source")
    assert fingerprints(desk.store) == before


def test_a_file_that_is_not_there_is_told_before_a_store_is_made(desk: Desk) -> None:
    assert "nowhere.csv" in told(desk.run("nowhere.csv", json=True), 2, "source")["what"]
    assert not desk.store.exists()


def test_a_changed_plan_is_refused_and_named(desk: Desk) -> None:
    file = desk.rows("1.csv", *GOOD)
    assert desk.run(file).code == 0
    desk.plan.write_text(PLAN.replace("epsilon = 1000", "epsilon = 2000"))
    error = told(desk.run(file, json=True), 4, "plan_changed")
    assert "privacy.epsilon" in error["what"]
    assert "plan.toml" in error["expected"]


def test_a_plan_that_cannot_be_is_exit_2(desk: Desk) -> None:
    desk.plan.write_text(PLAN.replace("max = 100, ", ""))
    error = told(retrodp("check", desk.plan, "--json"), 2, "plan")
    assert error["what"].startswith("columns.amount.max is missing")


def test_a_budget_that_does_not_fit_is_exit_2(desk: Desk) -> None:
    desk.plan.write_text(
        PLAN.replace("1e-6", "1e-30") + '[release.by_who]\nkind = "histogram"\nby = "who"\n'
    )
    assert "delta" in told(retrodp("check", desk.plan, "--json"), 2, "budget")["what"]


@pytest.mark.parametrize("command", ["status", "close", "verify", "show", "export", "retire"])
def test_a_directory_without_a_store_is_wrong_use(desk: Desk, command: str) -> None:
    told(desk.on_store(command, json=True), 2, "usage")


# Keys.


def test_a_missing_key_is_exit_4_and_never_a_new_key(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    key = desk.directory / "store.key"
    key.rename(desk.directory / "elsewhere.key")
    told(desk.on_store("status", json=True), 4, "key_missing")
    told(desk.run(desk.rows("1.csv", *GOOD), json=True), 4, "key_missing")
    assert not key.exists()
    assert desk.on_store("status", key=desk.directory / "elsewhere.key").code == 0


def test_a_key_that_others_can_read_is_exit_4(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    (desk.directory / "store.key").chmod(0o640)
    error = told(desk.on_store("close", json=True), 4, "key_permissions")
    assert error["do"].startswith("Run: chmod 600")


def test_published_numbers_need_no_key(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    (desk.directory / "store.key").unlink()
    assert desk.on_store("show").code == 0
    assert desk.on_store("export").code == 0
    assert desk.published() == {1: "1", 2: "2", 3: "2"}


SECRET = "0123456789abcdef" * 4


def test_a_secret_of_the_environment_seals_the_key(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = desk.rows("1.csv", *GOOD)
    monkeypatch.delenv("RETRODP_TEST", raising=False)
    told(desk.run(file, key="env:RETRODP_TEST", json=True), 4, "key_missing")
    monkeypatch.setenv("RETRODP_TEST", "short")
    told(desk.run(file, key="env:RETRODP_TEST", json=True), 2, "usage")
    monkeypatch.setenv("RETRODP_TEST", SECRET)
    assert desk.run(file, key="env:RETRODP_TEST").code == 0
    assert (desk.directory / "store.mark").exists()
    assert not (desk.directory / "store.key").exists()
    assert desk.on_store("verify", key="env:RETRODP_TEST").code == 0
    monkeypatch.setenv("RETRODP_TEST", SECRET[::-1])
    told(desk.on_store("verify", key="env:RETRODP_TEST", json=True), 4, "key_mismatch")


def descriptor(text: str) -> int:
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    return read


def test_a_secret_of_a_descriptor_seals_the_key(desk: Desk) -> None:
    file = desk.rows("1.csv", *GOOD)
    assert desk.run(file, key=f"fd:{descriptor(SECRET + chr(10))}").code == 0
    assert desk.on_store("status", key=f"fd:{descriptor(SECRET)}").code == 0
    told(desk.on_store("status", key="fd:987", json=True), 4, "key_missing")


@pytest.mark.parametrize("key", ["env:", "env:1x", "fd:x", ""])
def test_a_key_that_names_nothing_is_wrong_use(desk: Desk, key: str) -> None:
    told(desk.run(desk.rows("1.csv", *GOOD), key=key, json=True), 2, "usage")


# Guards.


def test_a_store_in_use_is_exit_4(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    with Store.open(desk.store):
        error = told(desk.on_store("close", json=True), 4, "locked")
        assert str(os.getpid()) in error["what"]
        assert desk.on_store("show").code == 0


def test_a_store_behind_its_key_is_exit_4(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD), through="2024-01-01").code == 0
    shutil.copytree(desk.store, desk.directory / "old")
    assert desk.on_store("close").code == 0
    shutil.rmtree(desk.store)
    shutil.copytree(desk.directory / "old", desk.store)
    assert "back-up" in told(desk.on_store("close", json=True), 4, "store_behind")["do"]


def test_a_back_up_is_opened_by_restore_alone(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    (desk.store / "backup").touch()
    assert "restore" in told(desk.on_store("status", json=True), 4, "backup")["do"]
    assert desk.on_store("export").code == 0


def test_a_test_store_says_so_wherever_its_numbers_are_shown(desk: Desk) -> None:
    with new_store(desk.store, counting()) as store:
        store.close_through(1)
    assert "TEST" in desk.on_store("show").out
    assert "TEST" in desk.on_store("export").said


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_exit_4(desk: Desk, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    monkeypatch.setattr(reading, "write_file", full)
    told(desk.on_store("export", output=desk.directory / "x.csv", json=True), 4, "disk_full")


def test_a_fault_of_the_program_quotes_no_data(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    value = "".join(reversed("orroz"))  # not as a text of this file, which the lines may quote

    def broken(*_: object, **__: object) -> None:
        raise ValueError(value)

    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    monkeypatch.setattr(reading, "write_file", broken)
    outcome = desk.on_store("export", output=desk.directory / "x.csv", json=True)
    assert "ValueError" in told(outcome, 70, "fault")["what"]
    assert value not in outcome.out + outcome.said


@pytest.mark.parametrize("file", ["plan.resolved.json", "releases.sqlite", "ledger.sqlite"])
def test_a_damaged_store_is_exit_4(desk: Desk, file: str) -> None:
    assert desk.run(desk.rows("1.csv", *GOOD)).code == 0
    (desk.store / file).write_bytes(b"nonsense" * 1000)
    told(desk.on_store("close", json=True), 4, "store_corrupt")


def test_a_question_of_the_command_line_ends_in_one_mark() -> None:
    assert "Did you mean 'check'? See" in retrodp("chekc").said


@pytest.mark.parametrize("command", ["check", "run", "close", "verify", "forget"])
def test_commands_that_make_releases_tell_of_the_option_for_code(command: str) -> None:
    assert "--allow-code" in retrodp(command, "--help").out


@pytest.mark.parametrize("command", ["show", "export", "statement"])
def test_commands_that_only_read_do_not(command: str) -> None:
    assert "--allow-code" not in retrodp(command, "--help").out


def test_a_missing_argument_ends_in_how_the_command_is_written() -> None:
    said = retrodp("run", "plan.toml", "--store", "store").said
    assert "Missing argument" in said
    assert "expected: retrodp run [OPTIONS] PLAN FILES..." in said


def test_a_group_without_a_command_shows_its_commands() -> None:
    outcome = retrodp("audit")
    assert outcome.code == 2
    assert outcome.err == ""
    assert "reconstruct" in outcome.out


def test_a_plan_that_is_no_toml_is_named(desk: Desk) -> None:
    plan = desk.write("mine.toml", "[stream\n")
    assert f"The plan {plan} is not valid TOML" in retrodp("check", plan).said


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_named_and_nothing_of_the_file(
    desk: Desk, separator: str, name: str
) -> None:
    file = desk.write("1.csv", (HEADER + GOOD[0] + "\n").replace(",", separator))
    error = told(desk.run(file, json=True), 2, "source")
    assert f"separated by {name}" in error["what"]
    assert "with commas" in error["do"]


def test_a_first_line_that_is_data_is_not_quoted(desk: Desk) -> None:
    file = desk.write("1.csv", "add;secret;2024-01-01;ann;DE;1\n")
    error = told(desk.run(file, json=True), 2, "source")
    assert "secret" not in str(error)


def test_a_spreadsheet_is_to_be_saved_as_csv_or_parquet(desk: Desk) -> None:
    error = told(desk.run(desk.write("1.xlsx", "PK"), json=True), 2, "source")
    assert "CSV (UTF-8) or Parquet" in error["do"]


def test_a_name_without_a_format_leads_to_the_option(desk: Desk) -> None:
    error = told(desk.run(desk.write("1.dat", HEADER), json=True), 2, "source")
    assert "--format csv" in error["do"]


def test_forgetting_nobody_names_the_options(desk: Desk) -> None:
    desk.run(desk.rows("1.csv", *GOOD))
    assert "--person" in told(desk.on_store("forget", json=True), 2, "usage")["do"]


def test_the_demo_writes_nothing_into_a_store(desk: Desk) -> None:
    desk.run(desk.rows("1.csv", *GOOD))
    before = sorted(desk.store.iterdir())
    error = told(retrodp("demo", "--out", desk.store, "--json"), 2, "usage")
    assert "is the directory of a store" in error["what"]
    assert sorted(desk.store.iterdir()) == before


def test_a_directory_of_files_leads_to_a_pattern(desk: Desk) -> None:
    desk.run(desk.rows("1.csv", *GOOD))
    assert "/*.csv'" in told(desk.run(desk.directory, json=True), 2, "source")["do"]
