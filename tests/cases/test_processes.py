"""Public reports about several processes: races, forks, restarts."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

from retrodp.engine.opening import open_or_create
from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import HorizonExceededError, StoreLockedError, UsageError
from retrodp.mechanisms.counter import Counter
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import PureDP
from tests.support.answers import values_of
from tests.support.plans import counting
from tests.support.rows import add, ingest
from tests.support.stores import new_store, published

PROCESSES, HORIZON = 24, 60
LOCKED, OVER, GAVE_UP = 3, 4, 5
PATIENCE = 120.0  # seconds; only a store that nobody can close takes so long


def _close_until_locked_out(path: Path, start: int) -> None:
    """Close rounds as fast as possible; the exit code says what stopped it."""
    os.read(start, 1)
    code, end = GAVE_UP, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < end:
            try:
                with Store.open(path) as store:
                    store.close_round()
            except StoreLockedError:
                time.sleep(0.001)  # or those who wait keep the one at work from its processor
    except HorizonExceededError:
        code = OVER
    except BaseException:  # noqa: BLE001  whatever it is, the parent must know
        code = 1
    os._exit(code)


def test_24_processes_on_one_store_release_every_round_once(ram: Path) -> None:
    plan = counting(horizon=HORIZON)
    rows = [add(f"id{number}", 1 + number % HORIZON) for number in range(200)]
    with new_store(ram / "alone", plan) as store:
        ingest(store, rows)
        store.close_through(HORIZON)
    with new_store(ram / "shared", plan) as store:
        ingest(store, rows)
    start, go = os.pipe()
    children = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            _close_until_locked_out(ram / "shared", start)
        children.append(pid)
    os.write(go, bytes(PROCESSES))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    os.close(start)
    os.close(go)
    assert codes == [OVER] * PROCESSES
    assert published(ram / "shared") == published(ram / "alone")


def _create_and_close(path: Path, start: int) -> None:
    os.read(start, 1)
    code = 1
    try:
        with open_or_create(path, counting()) as store:
            store.close_round()
        code = 0
    except (StoreLockedError, UsageError):
        code = LOCKED
    finally:
        os._exit(code)


def test_12_processes_that_create_one_store_make_one(ram: Path) -> None:
    start, go = os.pipe()
    children = []
    for _ in range(12):
        pid = os.fork()
        if pid == 0:
            _create_and_close(ram / "store", start)
        children.append(pid)
    os.write(go, bytes(12))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    os.close(start)
    os.close(go)
    assert set(codes) <= {0, LOCKED}
    with Store.open(ram / "store") as store:
        assert store.round == codes.count(0) >= 1
        assert verify(store).passed


KEYS = KeyTree.from_root(bytes(range(32)), b"processes", 16)
COUNTER = Counter(horizon=16, budget=PureDP("1/10"))


def draw(round_: int) -> int:
    return values_of(COUNTER.release(round_, 0, KEYS))[0]


def test_forked_workers_draw_what_one_process_draws_and_nothing_twice() -> None:
    alone = [draw(round_) for round_ in range(1, 17)]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        together = pool.map(draw, range(1, 17), chunksize=1)
    assert together == alone
    assert len(set(alone)) > 12


def test_spawned_workers_draw_what_one_process_draws() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(draw, [3, 16]) == [draw(3), draw(16)]


def test_a_store_reopened_before_every_round_gives_the_bytes_of_one_that_stayed_open(
    ram: Path,
) -> None:
    """Nothing is remembered by a process, so nothing is forgotten by a restart."""
    plan = counting(horizon=12)
    rows = [add(f"id{number}", 1 + number % 12) for number in range(30)]
    with new_store(ram / "stayed", plan) as store:
        ingest(store, rows)
        store.close_through(12)
    with new_store(ram / "restarted", plan) as store:
        ingest(store, rows)
    budgets = []
    for _ in range(12):
        with Store.open(ram / "restarted") as store:
            store.close_round()
            budgets.append(store.resolved.budget)
    assert published(ram / "restarted") == published(ram / "stayed")
    assert budgets == [budgets[0]] * 12
