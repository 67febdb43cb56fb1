"""Pages of the documents, cut into what a test can check: fenced blocks, headings and links."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block and what language its fence names."""

    language: str
    text: str
    line: int


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = read(page)
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", read(page))


def section(page: Path, heading: str) -> str:
    """From a heading to the next one of any level."""
    _, found, rest = read(page).partition(f"\n{heading}\n")
    assert found, f"{page.name} has no heading {heading!r}"
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def links(page: Path) -> list[str]:
    """Targets of all links outside fenced blocks."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Anchors that GitHub gives the headings of a page."""
    return {_slug(heading) for heading in _HEADING.findall(prose(page))}


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    kept = "".join(char for char in plain if char.isalnum() or char in " -_")
    return kept.replace(" ", "-")


def generator() -> ModuleType:
    """The script that writes parts of the pages."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def generated(page: Path, name: str) -> Iterator[str]:
    """Lines between the markers of a generated part."""
    _, _, rest = read(page).partition(f"<!-- {name}: begin")
    inner, found, _ = rest.partition(f"<!-- {name}: end -->")
    assert found, f"{page.name} has no generated part {name!r}"
    yield from inner.splitlines()[1:]
