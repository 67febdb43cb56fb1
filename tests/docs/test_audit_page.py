"""The pages about audits and statements name what there is, and nothing else; every kind has a page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from retrodp.audit import suite
from retrodp.plan.kinds import KINDS
from retrodp.views.registry import About, read_about
from retrodp.views.statement import Store
from tests.docs.pages import DOCS, ROOT, blocks, read

AUDIT, STATEMENT = DOCS / "audit.md", DOCS / "statement.md"


@pytest.mark.parametrize("name", suite.AUDITS)
def test_every_audit_is_on_its_page_and_in_make_audit(name: str) -> None:
    assert f"retrodp audit {name}" in read(AUDIT)
    (line,) = re.findall(r"^AUDITS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert name in line.split()


def test_the_example_of_a_statement_fills_in_everything(tmp_path: Path) -> None:
    (text,) = [block.text for block in blocks(STATEMENT) if block.language == "toml"]
    path = tmp_path / "about.toml"
    path.write_text(text)
    said = read_about(path)
    assert (said.to_fill_in, said.tier) == ([], 3)
    assert set(tomllib.loads(text)) | {"additional_information"} == set(About.__struct_fields__)


def test_the_example_s_file_fills_in_everything() -> None:
    assert read_about(ROOT / "examples" / "retail" / "about.toml").to_fill_in == []


@pytest.mark.parametrize("name", Store.__struct_fields__)
def test_every_field_of_a_statement_is_explained(name: str) -> None:
    known = {"method"} | set(re.findall(r"`(\w+)`", read(STATEMENT)))
    assert name in known


@pytest.mark.parametrize("kind", [name for name, known in KINDS.items() if known is not None])
def test_every_kind_links_from_the_plan_page_to_a_page_that_is_there(kind: str) -> None:
    lines = read(DOCS / "plan.md").splitlines()
    (row,) = (line for line in lines if line.startswith(f"| `{kind}` | "))
    pages = re.findall(r"\((kinds/\w+\.md)\)", row)
    assert pages
    assert all((DOCS / page).is_file() for page in pages)
