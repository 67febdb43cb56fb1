"""The report: verdicts, figures, commands; a page that runs nothing; built from saved documents."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from retrodp.audit import page, reconstruct, suite, verdicts
from retrodp.cli.app import run
from retrodp.errors import UsageError
from tests.audit.sizes import SEED
from tests.views.stores import store as published_store

ROW = {
    "mechanism": "count, auto",
    "model": "pure",
    "factor": "binary",
    "claim": "epsilon 3",
    "measured": "epsilon >= 2",
    "confidence": 0.999,
}


def neighbours(planted: float | None, reached: float, **changed: Any) -> dict[str, Any]:
    return {
        **ROW,
        "test": "neighbouring streams",
        "verdict": "holds",
        "epsilon_claimed": 3.0,
        "delta_claimed": 1e-6,
        "epsilon_measured": 2.0,
        "loss_claimed": 3.0,
        "loss_measured": 3.0 * reached,
        "loss_unit": "epsilon",
        "noise_too_small_by_found": planted,
        **changed,
    }


def saved(name: str, rows: list[dict[str, Any]], *, passed: bool = True) -> dict[str, Any]:
    return {
        "format": 1,
        "audit": name,
        "seed": SEED.hex,
        "deep": True,
        "only": None,
        "version": "0",
        "command": suite.command(name, SEED.hex, deep=True),
        "alpha": 0.002,
        "passed": passed,
        "counts": {"holds": len(rows)},
        "rows": rows,
    }


PRIVACY = saved("privacy", [neighbours(1.5, 0.4), neighbours(2.0, 0.9), neighbours(None, 0.1)])


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(content: bytes) -> Tags:
    tags = Tags()
    tags.feed(content.decode())
    return tags


def test_the_power_of_an_audit_is_what_planted_noise_showed() -> None:
    (one,) = verdicts.document([PRIVACY])["audits"]
    assert one["power"] == (
        "Noise too small by 1.5 would be found in 1 of 3 plans; noise too small by 2 would be found "
        "in 2 of 3 plans; by none of these in 1."
    )


def test_the_verdict_names_the_plan_that_comes_closest_to_its_claim() -> None:
    (one,) = verdicts.document([PRIVACY])["audits"]
    assert "3 plans; the closest reaches 90% of it (count, auto, pure, binary)" in one["verdict"]
    assert [row[6] for row in one["tables"][0]["rows"]] == ["90%", "40%", "10%"]
    assert one["tables"][0]["bars"] == [0.9, 0.4, 0.1]


def test_an_accusation_fails_the_report_and_is_told_with_its_figures() -> None:
    bad = neighbours(None, 1.5, verdict="accused")
    found = verdicts.document([saved("privacy", [bad], passed=False)])
    (one,) = found["audits"]
    assert not found["passed"]
    assert one["verdict"] == "FAILED in 1 row, listed below."
    assert one["against"] == [
        "ACCUSED: count, auto, pure, binary, neighbouring streams: epsilon >= 2 against epsilon 3"
    ]
    assert "Failed:" in parsed(page.html(found)).text


def test_audits_that_are_not_there_are_named() -> None:
    assert verdicts.document([PRIVACY])["missing"] == [
        *("retroactivity", "reconstruct", "differencing", "price"),
    ]


def test_every_audit_has_a_place_in_the_report() -> None:
    assert set(verdicts.TITLES) == set(verdicts.QUESTIONS) == set(suite.AUDITS)


def test_a_document_that_lacks_something_is_refused_and_not_a_fault() -> None:
    broken = saved("privacy", [{**neighbours(1.5, 0.4), "loss_measured": None}])
    with pytest.raises(UsageError, match="'privacy' is not whole"):
        verdicts.document([broken])
    with pytest.raises(UsageError, match="KeyError: 'alpha'"):
        verdicts.document([{name: own for name, own in PRIVACY.items() if name != "alpha"}])


def test_a_document_that_says_passed_over_an_accusation_does_not_pass() -> None:
    bad = neighbours(None, 1.5, verdict="accused")
    assert not verdicts.document([saved("privacy", [bad], passed=True)])["passed"]


def test_two_documents_of_one_audit_are_refused() -> None:
    with pytest.raises(UsageError, match="Two documents"):
        verdicts.document([PRIVACY, PRIVACY])


def test_the_page_runs_no_script_and_loads_nothing() -> None:
    tags = parsed(page.html(verdicts.document([PRIVACY])))
    assert not {tag for tag, _ in tags.found} & {"script", "img", "iframe", "object"}
    assert {own["href"] for tag, own in tags.found if tag == "link"} == {"data:,"}
    links = [own["href"] for tag, own in tags.found if tag == "a"]
    assert all(link is not None and link.startswith("#") for link in links)


def test_texts_of_a_document_cannot_become_markup() -> None:
    planted = neighbours(1.5, 0.4, mechanism="<script>alert(1)</script>")
    content = page.html(verdicts.document([saved("privacy", [planted])]))
    assert b"<script>" not in content
    assert "<script>alert(1)</script>" in parsed(content).text


def test_twin_a_template_without_escaping_would_let_it_in() -> None:
    assert "script" in {tag for tag, _ in parsed(b"<td><script>alert(1)</script></td>").found}


def test_every_audit_says_the_command_that_gives_it_again() -> None:
    found = verdicts.document([PRIVACY])
    command = f"retrodp audit privacy --seed {SEED.hex} --deep --json"
    assert command in parsed(page.html(found)).text
    assert f"`{command}`" in page.markdown(found)


def test_markdown_keeps_its_tables_whole() -> None:
    planted = neighbours(1.5, 0.4, mechanism="a | b\nc")
    text = page.markdown(verdicts.document([saved("privacy", [planted])]))
    (line,) = [line for line in text.splitlines() if "a \\| b c" in line]
    assert line.replace("\\|", "").count("|") == 10


# The command.


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """One audit of a second."""
    size = reconstruct.Size(streams=1, bits=16, blocks=40, deviations=(0.5,))
    monkeypatch.setattr(reconstruct, "SMOKE", size)
    monkeypatch.setattr(suite, "AUDITS", {"reconstruct": suite.AUDITS["reconstruct"]})


@pytest.mark.usefixtures("tiny")
def test_what_an_audit_printed_is_reported_as_if_it_were_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "reconstruct", "--json", "--seed", SEED.hex]) == 0
    document = tmp_path / "reconstruct.json"
    document.write_text(capsys.readouterr().out)
    assert run(["audit", "report", "--from", str(document), "--json"]) == 0
    taken = json.loads(capsys.readouterr().out)
    assert run(["audit", "report", "--seed", SEED.hex, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == taken


@pytest.mark.usefixtures("tiny")
def test_a_page_comes_with_its_document_and_the_statement_of_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = published_store(tmp_path / "s")
    target = tmp_path / "audit.html"
    assert run(["audit", "report", "-o", str(target), "--store", str(store)]) == 0
    assert "Report:" in capsys.readouterr().out
    found = json.loads(target.with_suffix(".json").read_text())
    assert found["format"] == 1
    assert found["statement"]["retrodp"]["fingerprint"] in target.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no place to go"),
        (["-o", "report.pdf"], "says no form"),
        (["-o", "a.html", "--from", "{other}"], "no document of an audit"),
        (["-o", "a.html", "--from", "{other}", "--deep"], "--from shows audits"),
    ],
)
def test_wrong_use_says_what_to_do(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    told = [one.format(other=other) for one in arguments]
    assert run(["audit", "report", *told]) == 2
    assert said in capsys.readouterr().err
