"""The page that lists attacks, reports and their tests names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tests.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_named_test_exists() -> None:
    missing = [
        (path, name)
        for path, name in NAMED
        if not (ROOT / path).is_file() or (name and name not in names_in(ROOT / path))
    ]
    assert missing == []
    assert len(NAMED) > 50


def test_every_attack_has_a_row_and_a_twin() -> None:
    files = sorted(Path(__file__).parent.glob("test_attack_*.py"))
    named = {path for path, _ in NAMED}
    unlisted = [file.name for file in files if f"tests/attacks/{file.name}" not in named]
    untwinned = [
        file.name
        for file in files
        if not any(name.startswith("test_twin_") for name in names_in(file))
    ]
    assert unlisted == []
    assert untwinned == []
    assert len(files) >= 15
