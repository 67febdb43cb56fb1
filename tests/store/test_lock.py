"""One process at a time has a store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import retrodp
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


CONTENDER = """
import sys, types
from pathlib import Path
# Only the lock is needed; importing the whole package 24 times would take a minute.
package = types.ModuleType("retrodp")
package.__path__ = [sys.argv[2]]
sys.modules["retrodp"] = package
from retrodp.errors import StoreLockedError
from retrodp.store.lock import StoreLock
print("ready", flush=True)
sys.stdin.readline()
try:
    lock = StoreLock(Path(sys.argv[1]))
    print("won", flush=True)
except StoreLockedError:
    print("refused", flush=True)
sys.stdin.readline()
"""


def test_one_of_24_processes_wins(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CONTENDER, str(tmp_path), str(Path(retrodp.__file__).parent)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(24)
    ]

    def all_say() -> list[str]:
        return [one.stdout.readline().strip() for one in processes if one.stdout is not None]

    def tell_all() -> None:
        for one in processes:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()

    assert all_say() == ["ready"] * 24
    tell_all()
    assert Counter(all_say()) == {"won": 1, "refused": 23}
    tell_all()
    for one in processes:
        one.communicate()
    assert [one.returncode for one in processes] == [0] * 24
