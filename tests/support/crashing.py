"""Processes that live through the life of a store and are killed at any step of it.

A helper process loads the package once and forks a child for every life, so that a life costs
milliseconds. An event is a call of anything that changes a file or takes part in a close.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retrodp.engine import crossing, publishing
from retrodp.engine import store as engine_store
from retrodp.engine.resolve import resolve, resolve_next
from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.facts import Facts
from retrodp.store.forgets import Forgets
from retrodp.store.keyfile import PlainKeyFile
from retrodp.store.ledger import Ledger
from retrodp.store.pending import Pending
from retrodp.store.releases import Releases
from retrodp.store.waiting import Waiting
from retrodp.stream.clock import Clock
from tests.support.plans import counting, opened
from tests.support.rows import add, delete, ingest

ROOT = Path(__file__).parents[2]
HORIZON = 4
PLANS = {
    "known": counting(horizon=HORIZON),
    # Borders after rounds 1 and 3.
    "open": opened(
        releases='[release.lines]\nkind = "count"', epochs="first = 1\nnumber = 3", epsilon=1
    ),
}
ROWS = [
    *(add(f"id-{number}", 1 + number % 3) for number in range(9)),
    add("to-be-forgotten", 1, who="eve"),
    add("late-to-be-forgotten", 3, who="eve"),
    add("a-person-s", 2, who="mallory"),
    delete("id-0", 2),
    delete("unknown", 3),
]

EVENTS: list[tuple[Any, str]] = [
    (os, "fsync"),
    (os, "replace"),
    (os, "unlink"),
    (os, "write"),
    (publishing, "commit"),
    (publishing, "mark"),
    (publishing, "publish"),
    (Waiting, "enqueue"),
    (Ledger, "apply_changes"),
    (Ledger, "add_totals"),
    (Waiting, "remove_round"),
    (Pending, "keep"),
    (Facts, "advance"),
    (Pending, "clear"),
    (Forgets, "clear"),
    (Forgets, "add"),
    (Ledger, "erase"),
    (Facts, "note"),
    (Ledger, "next_epoch"),
    (os, "mkdir"),
    (os, "rmdir"),
    (Releases, "publish"),
    (PlainKeyFile, "create"),
    (PlainKeyFile, "rewrite"),
]


def live(path: Path, plan: Plan) -> None:
    """The whole life of a store; the same again changes nothing, wherever it stopped before."""
    known = (path / "plan.resolved.json").is_file()
    with Store.open(path, plan=plan) if known else Store.create_for_tests(path, plan) as store:
        ingest(store, ROWS)
        store.close_through(2)
    with Store.open(path) as store:
        if store.round < HORIZON:
            store.forget(["to-be-forgotten", "never-there"])
        store.close_through(3)
        store.settle()
        store.close_through(HORIZON)
    with Store.open(path) as store:
        store.forget(persons=["mallory"])


def _count_events(kill_at: int | None) -> dict[str, int]:
    """Make every event count, and the given one the last thing the process does."""
    counted = {"events": 0}

    def counting_calls(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            counted["events"] += 1
            if counted["events"] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **keywords)

        return call

    for owner, name in EVENTS:
        setattr(owner, name, counting_calls(getattr(owner, name)))
    return counted


def _child(path: Path, plan: Plan, kill_at: int | None) -> None:
    code = 1
    try:
        counted = _count_events(kill_at)
        live(path, plan)
        path.with_name(path.name + "-events").write_text(str(counted["events"]))
        code = 0
    finally:
        os._exit(code)


def _serve() -> None:
    """Fork a child for every request read, kill it if asked to, and tell how it ended."""
    resolved = {plan.text: resolve(plan) for plan in PLANS.values()}
    vars(engine_store)["resolve"] = lambda plan: resolved[plan.text]
    later = _later_epochs(resolved[PLANS["open"].text])
    vars(crossing)["resolve_next"] = lambda *_, epoch, **__: later[epoch]
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(Path(request["path"]), PLANS[request["plan"]], request["kill_at"])
        if request["after"] is not None:
            time.sleep(request["after"])
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _later_epochs(first: ResolvedPlan) -> dict[int, ResolvedPlan]:
    plan, found = PLANS["open"], {1: first}
    series = plan.stream.epochs
    assert series is not None
    days = Clock.of(start=plan.stream.start, round="1d", horizon=series.before(4)).boundaries
    for epoch in (2, 3):
        within = days[series.before(epoch) : series.before(epoch + 1) + 1]
        found[epoch] = resolve_next(plan, found[epoch - 1], epoch=epoch, boundaries=within)
    return found


class Lives:
    """Starts lives of stores, in processes that can be killed; a context manager."""

    def __init__(self, plan: str = "known") -> None:
        self._plan = plan
        self._helper = subprocess.Popen(
            [sys.executable, "-c", "from tests.support.crashing import _serve; _serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def close(self) -> None:
        """End the helper."""
        self._helper.communicate()

    def run(self, path: Path, *, kill_at: int | None = None, after: float | None = None) -> int:
        """A life from the beginning; returns the exit code, negative for a signal."""
        assert self._helper.stdin is not None
        assert self._helper.stdout is not None
        request = {"path": str(path), "plan": self._plan, "kill_at": kill_at, "after": after}
        self._helper.stdin.write(json.dumps(request) + "\n")
        self._helper.stdin.flush()
        return int(self._helper.stdout.readline())

    @staticmethod
    def events(path: Path) -> int:
        """Events of a life that came to its end."""
        return int(path.with_name(path.name + "-events").read_text())
