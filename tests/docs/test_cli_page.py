"""The page about the command line says what the command line does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retrodp import errors
from retrodp.cli.app import run
from retrodp.views.export import COLUMNS
from tests.docs.pages import DOCS, PAGES, blocks, generator, read, section

PAGE = DOCS / "cli.md"


def kinds_of_error() -> dict[str, int]:
    """Exit code of every code that an error can have."""
    kinds = [errors.RetrodpError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.code: kind.exit_code for kind in kinds if kind.code != "error"}


def test_the_page_is_what_the_generator_writes() -> None:
    made = generator()
    assert read(PAGE) == made.replaced(read(PAGE), "commands", made.reference())


def test_every_command_has_a_heading() -> None:
    made = generator()
    headings = re.findall(r"^### `retrodp ([^`]+)`$", read(PAGE), re.MULTILINE)
    assert headings == list(made.commands())
    assert "run" in headings


def test_every_option_is_one_that_the_help_shows(capsys: pytest.CaptureFixture[str]) -> None:
    made = generator()
    written = {
        name: set(
            re.findall(r"--[a-z-]+", " ".join(one.shown for one in made.parameters(callback)))
        )
        for name, callback in made.commands().items()
    }
    shown = {}
    for name in written:
        assert run([*name.split(), "--help"]) == 0
        shown[name] = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)) - {"--help"}
    unknown = {name: sorted(options - shown[name]) for name, options in written.items()}
    assert not any(unknown.values()), unknown


def test_every_code_of_an_error_is_on_the_page() -> None:
    text = section(PAGE, "## JSON")
    _, _, with_2_and_4 = text.partition("Codes with exit 2:")
    of_2, found, of_4 = with_2_and_4.partition("With exit 4:")
    assert found
    of_4 = of_4.partition("\n\n")[0]
    written = dict.fromkeys(re.findall(r"`(\w+)`", of_2), 2)
    written |= dict.fromkeys(re.findall(r"`(\w+)`", of_4), 4)
    assert written == {code: exit_ for code, exit_ in kinds_of_error().items() if exit_ in {2, 4}}


def test_the_columns_of_an_export_are_those_of_the_page() -> None:
    assert ",".join(COLUMNS) + "\n" in [block.text for block in blocks(PAGE)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "{plan}"], 0),
        (["no-such-command"], 2),
        (["show"], 2),
        (["check", "no-such-plan.toml"], 2),
        (["show", "--store", "no-such-store"], 2),
        (["run", "{plan}", "{rows}", "--store", "{store}", "--through", "2025-01-01"], 3),
        (["run", "{plan}", "{rows}", "--store", "{store}", "--through", "2999-01-01"], 4),
    ],
)
def test_commands_leave_with_the_code_of_the_page(
    arguments: list[str], code: int, ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, rows = ram / "plan.toml", ram / "rows.csv"
    plan.write_text(
        '[stream]\nstart = 2025-01-01\nround = "1d"\nhorizon = 3\n'
        '[privacy]\nepsilon = 1\ndelta = 1e-9\n[release.rows]\nkind = "count"\n'
    )
    rows.write_text("id,at\na,2025-01-01T10:00\n,2025-01-01T11:00\n")
    places = {"plan": str(plan), "rows": str(rows), "store": str(ram / "store")}
    assert run([argument.format(**places) for argument in arguments]) == code
    capsys.readouterr()


def test_every_code_that_there_is_stands_on_the_page() -> None:
    written = set(re.findall(r"`(\w+)`", section(PAGE, "## JSON")))
    assert {*kinds_of_error(), "fault"} <= written


def test_every_command_is_named_by_a_page_for_readers() -> None:
    """Beside the reference, which is generated."""
    pages = [page for page in PAGES if page != PAGE]
    text = " ".join(" ".join(read(page).split()) for page in pages)
    missing = [name for name in generator().commands() if f"retrodp {name}" not in text]
    assert missing == []
