"""The command line in this process: arguments in, exit code and what was printed out."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import retrodp.cli.app as command_line

PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = 5
person = "who"

[columns]
who = "text"
country = { type = "category", values = ["DE", "FR"], other = true }
amount = { type = "number", min = 0, max = 100, step = 0.5 }

[privacy]
epsilon = 1000
delta = 1e-6

[release.records]
kind = "count"
[release.by_country]
kind = "histogram"
by = "country"
"""
"""Rounds 2024-01-01 to 2024-01-05; so much budget that counts come out as they are."""

HEADER = "op,id,at,who,country,amount\n"


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """Standard output on one line, wherever a narrow screen broke it."""
        return " ".join(self.raw.decode().split())

    @property
    def said(self) -> str:
        """Standard error on one line."""
        return " ".join(self.err.split())

    @property
    def document(self) -> dict[str, Any]:
        """Standard output, which is one JSON document and nothing else."""
        document: dict[str, Any] = json.loads(self.raw)
        assert document["format"] == 1
        return document


class _Keyboard(io.TextIOWrapper):
    """Standard input with somebody at it."""

    def isatty(self) -> bool:
        return True


def retrodp(*arguments: object, stdin: str | bytes = b"", terminal: bool = False) -> Outcome:
    """Run a command as `retrodp ARGUMENTS < stdin`."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    given = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
    kept, sys.stdin = sys.stdin, (_Keyboard if terminal else io.TextIOWrapper)(given, "utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command_line.run([str(argument) for argument in arguments])
    finally:
        sys.stdin = kept
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return Outcome(code, out.buffer.getvalue(), err.getvalue())


def set_clock(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let it be this time, in UTC."""
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    nanos = int(moment.timestamp()) * 10**9
    monkeypatch.setattr(command_line, "time", SimpleNamespace(time_ns=lambda: nanos))


class Desk:
    """A directory with a plan and the store that commands make of it."""

    def __init__(self, directory: Path, plan: str = PLAN) -> None:
        self.directory = directory
        self.plan = self.write("plan.toml", plan)
        self.store = directory / "store"

    @classmethod
    def in_new(cls, directory: Path, plan: str = PLAN) -> Desk:
        """A desk in a directory that is not there yet."""
        directory.mkdir()
        return cls(directory, plan)

    def write(self, name: str, text: str) -> Path:
        """A file of this text."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def rows(self, name: str, *rows: str, header: str = HEADER) -> Path:
        """A CSV file of updates."""
        return self.write(name, header + "".join(f"{row}\n" for row in rows))

    def run(self, *files: object, **options: object) -> Outcome:
        """`retrodp run` with this plan and store."""
        return retrodp("run", self.plan, *files, "--store", self.store, *_given(options))

    def on_store(self, command: str, *arguments: object, **options: object) -> Outcome:
        """A command on the store."""
        return retrodp(command, *arguments, "--store", self.store, *_given(options))

    def published(self, release: str = "records", key: str = "") -> dict[int, str]:
        """Published value of each round, as the export says it."""
        outcome = self.on_store("export", "--format", "jsonl", "--release", release)
        assert outcome.code == 0
        lines = [json.loads(line, parse_float=str) for line in outcome.raw.splitlines()]
        return {line["round"]: str(line["value"]) for line in lines if line["key"] == key}


def _given(options: dict[str, object]) -> list[object]:
    given: list[object] = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            given.append(option)
        elif value is not False:
            given += [option, value]
    return given
