"""The page about the architecture shows the tree as it is."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import DOCS, generated, generator

PAGE = DOCS / "architecture.md"


def shown() -> set[str]:
    """Paths of the page's tree, from its indentation."""
    found: set[str] = set()
    above: list[str] = []
    for line in generated(PAGE, "tree"):
        name = line.strip().split(" ")[0]
        depth = (len(line) - len(line.lstrip())) // 2
        if not name or name.startswith("```") or depth == 0:
            continue
        above = [*above[: depth - 1], name]
        found.add("".join(above))
    return found


def real() -> set[str]:
    """Packages and modules of the source; of the inner packages' own files only the package."""
    source: Path = generator().SOURCE
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    packages = {f"{path.parent.relative_to(source)}/" for path in source.rglob("*/__init__.py")}
    return {path for path in modules if not path.endswith("/__init__.py")} | packages


def test_the_tree_of_the_page_is_the_tree_of_the_source() -> None:
    assert shown() ^ real() == set()


def test_every_module_says_what_it_is_in_one_sentence() -> None:
    lines = generator().tree().splitlines()[2:-1]
    assert [line for line in lines if len(line.split(maxsplit=1)) < 2] == []
