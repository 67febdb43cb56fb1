"""A command starts without what only a few of them need."""

from __future__ import annotations

import subprocess
import sys


def test_the_command_line_starts_without_optimisers_and_templates() -> None:
    heavy = ("scipy.optimize", "scipy.integrate", "scipy.stats", "sklearn", "jinja2", "pandas")
    code = f"import retrodp.cli, sys; print(*(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == []
