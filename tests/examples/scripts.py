"""The scripts of the examples as modules, and their READMEs as commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from retrodp.mechanisms.answer import Answer
from retrodp.store.releases import ReleasesReader

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


_loaded: dict[str, dict[str, ModuleType]] = {}


@cache
def script(example: str, name: str) -> Any:
    """A script as a module; it finds its neighbours as it does on the command line.

    Scripts of different examples may bear one name, so none stays where the next would find it.
    """
    folder = EXAMPLES / example
    own = _loaded.setdefault(example, {})
    sys.modules.update(own)
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))
        names = {path.stem for path in folder.glob("*.py")} & sys.modules.keys()
        own.update({name: sys.modules.pop(name) for name in names})


def answer_of(path: Path, round_: int, release: str) -> Answer:
    """A published answer of a store."""
    with ReleasesReader(path / "releases.sqlite") as reader:
        return Answer.from_bytes(reader.answers(round_)[release])


def drawn(example: str, target: Path, *stores: Path) -> bool:
    """Whether the example's picture can be drawn of these stores; skips where nothing can draw."""
    pytest.importorskip("matplotlib")
    script(example, "picture").draw(*stores, target)
    return target.read_bytes().startswith(b"\x89PNG")


def commands(example: str) -> list[str]:
    """The lines of the README's shell blocks."""
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]


def run(lines: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as if a clone lay in the directory; stops at the first that fails."""
    (directory / "examples").symlink_to(EXAMPLES)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        cwd=directory,
        env=os.environ | {"PATH": path, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
