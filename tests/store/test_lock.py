"""One process at a time has a store."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from retrodp.errors import StoreLockedError
from retrodp.store.lock import StoreLock


def test_a_second_writer_is_refused_at_once_and_told_who_has_it(tmp_path: Path) -> None:
    with StoreLock(tmp_path):
        with pytest.raises(StoreLockedError, match=f"process \\({os.getpid()}\\)") as caught:
            StoreLock(tmp_path)
        assert caught.value.exit_code == 4
    StoreLock(tmp_path).release()


def test_releasing_twice_does_no_harm(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path)
    lock.release()
    with StoreLock(tmp_path):
        lock.release()
        with pytest.raises(StoreLockedError):
            StoreLock(tmp_path)


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom retrodp.store.lock import StoreLock\n"
        "lock = StoreLock(Path(sys.argv[1]))\nprint('mine', flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    with pytest.raises(StoreLockedError):
        StoreLock(tmp_path)
    process.kill()
    process.communicate()
    StoreLock(tmp_path).release()


def contend(directory: Path, start: Barrier, decided: Barrier) -> None:
    """Try to get the store when all are ready; the winner holds it until all have tried."""
    start.wait(60)
    try:
        with StoreLock(directory):
            (directory / f"won-{os.getpid()}").touch()
            decided.wait(60)
    except StoreLockedError:
        decided.wait(60)


def test_one_of_24_processes_wins(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, decided = spawn.Barrier(24), spawn.Barrier(24)
    processes = [spawn.Process(target=contend, args=(tmp_path, start, decided)) for _ in range(24)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(90)
    assert [process.exitcode for process in processes] == [0] * 24
    assert len(list(tmp_path.glob("won-*"))) == 1
