"""Runs what a page tells its reader to type, in one directory, in the order of the page.

Commands of retrodp run in this process, everything else in bash. The clock stands still at a given
moment, so that a page stays true on any day.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retrodp.cli.app import run
from tests.docs.pages import Block, blocks


@dataclass
class Reader:
    """Somebody who pastes every block of a page.

    Attributes:
        directory: Where she works; the current directory.
        captured: Reads and empties what was printed.
        names: Of her Python session.
        typed: Commands of retrodp she has run.
        said: Pairs of a block of promised output and what was printed.
    """

    directory: Path
    captured: pytest.CaptureFixture[str]
    names: dict[str, Any] = field(default_factory=dict)
    typed: list[list[str]] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)

    def follow(self, page: Path) -> None:
        """Do what the page says, block by block; the first failure is an error."""
        printed, before = "", ""
        for block in blocks(page):
            self.captured.readouterr()
            match block.language:
                case "sh":
                    self._shell(block)
                case "toml" if block.text.startswith("# "):
                    self._save(block)
                case "python":
                    code = compile("\n" * block.line + block.text, str(page), "exec")
                    exec(code, self.names)
                case "text" if before == "sh":
                    self.said.append((block.text, printed))
            printed, before = self.captured.readouterr().out, block.language

    def _save(self, block: Block) -> None:
        """A block whose first line is a comment with a file's name is that file."""
        name = block.text.partition("\n")[0].removeprefix("# ").strip()
        (self.directory / name).write_text(block.text, encoding="utf-8")

    def _shell(self, block: Block) -> None:
        for words, script in _steps(block.text):
            if words:
                self.typed.append(words)
                code = run(words[1:])
                assert code == 0, f"{shlex.join(words)} left with {code}"
            else:
                subprocess.run(["bash", "-euc", script], check=True, cwd=self.directory)


def _steps(text: str) -> Iterator[tuple[list[str], str]]:
    """Words of each command of retrodp, and the other lines between them as scripts."""
    script: list[str] = []
    for line in text.splitlines():
        if line.startswith("retrodp "):
            if script:
                yield [], "\n".join(script)
                script = []
            yield shlex.split(line, comments=True), ""
        elif not line.startswith("make "):  # the two long commands have tests of their own
            script.append(line)
    if script:
        yield [], "\n".join(script)
