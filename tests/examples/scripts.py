"""The scripts of the examples as modules, and their READMEs as commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@cache
def script(example: str, name: str) -> Any:
    """A script as a module; it finds its neighbours as it does on the command line."""
    folder = str(EXAMPLES / example)
    sys.path.insert(0, folder)
    try:
        return import_module(name)
    finally:
        sys.path.remove(folder)


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
