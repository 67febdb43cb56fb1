"""A process killed anywhere loses nothing that was acknowledged and leaves nothing half-done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retrodp.store.ledger import Ledger
from retrodp.store.releases import Releases, ReleasesReader
from retrodp.stream.update import Op
from tests.store.rows import arrivals, contents, new_ledger, run, update

ROOT = Path(__file__).parents[2]

INSIDE = """
with ledger.transaction():
    ledger.waiting.enqueue(arrivals(2, [update(f"n{number}") for number in range(20_000)]))
    ledger.add_totals("by_payload", {b"x": 1})
    ledger.pending.keep(2, bytes(5_000_000))
    ledger.facts.advance(2)
    print("inside", flush=True)
    time.sleep(60)
"""

CLOSING = """
while True:
    round_ = ledger.facts.round + 1
    run(ledger, [update(f"r{round_}-{number}", stamp=round_) for number in range(200)])
    print(round_, flush=True)
"""

ERASING = """
while True:
    ledger.erase()
    print("erased", flush=True)
"""


def child(directory: Path, body: str) -> subprocess.Popen[str]:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from retrodp.store.ledger import Ledger\n"
        "from tests.store.rows import arrivals, run, update\n"
        "ledger = Ledger.open(Path(sys.argv[1]))\n" + body
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, str(directory / "ledger.sqlite")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def killed(process: subprocess.Popen[str]) -> str:
    """What the process had printed before it was killed."""
    os.kill(process.pid, signal.SIGKILL)
    said, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    return said


def test_a_kill_inside_a_transaction_leaves_what_was_before(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a"), update("b")])
    before = contents(ledger)
    ledger.close()
    process = child(tmp_path, INSIDE)
    assert process.stdout is not None
    assert process.stdout.readline() == "inside\n"
    killed(process)
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert contents(again) == before
    assert (again.facts.round, again.waiting.count(), again.pending.read()) == (1, 0, None)


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.05])
def test_a_kill_loses_no_acknowledged_round_and_keeps_totals_true(
    tmp_path: Path, delay: float
) -> None:
    new_ledger(tmp_path).close()
    process = child(tmp_path, CLOSING)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(delay)
    acknowledged = int((first + killed(process)).split()[-1])
    again = Ledger.open(tmp_path / "ledger.sqlite")
    closed = again.facts.round
    assert acknowledged <= closed <= acknowledged + 1
    assert again.survivor_count() == 200 * closed
    assert sum(again.read_totals("by_payload").values()) == 200 * closed
    assert len(again.records_with_stamp(closed)) == 200


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.02])
def test_a_kill_while_erasing_keeps_the_ledger_whole(tmp_path: Path, delay: float) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update(f"{number}" * 20) for number in range(5_000)])
    before = contents(ledger)
    ledger.close()
    process = child(tmp_path, ERASING)
    assert process.stdout is not None
    assert process.stdout.readline() == "erased\n"
    time.sleep(delay)
    killed(process)
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert contents(again) == before
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_a_leftover_of_an_interrupted_rewrite_goes_when_the_ledger_opens(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")], [update("a", op=Op.DELETE)])
    ledger.close()
    (tmp_path / "ledger.sqlite.fresh").write_bytes(b"half a copy")
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite.fresh").exists()
    assert again.facts.erase_due


def test_a_kill_while_publishing_publishes_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "releases.sqlite"
    Releases.create(path, store_id="5e").close()
    program = (
        "import sys\nfrom pathlib import Path\nfrom retrodp.store.releases import Releases\n"
        "releases = Releases(Path(sys.argv[1]))\n"
        "round_ = 0\n"
        "while True:\n"
        "    round_ += 1\n"
        "    releases.publish(round_, {str(n): bytes(3000) for n in range(50)})\n"
        "    print(round_, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(0.03)
    acknowledged = int((first + killed(process)).split()[-1])
    releases = Releases(path)
    assert acknowledged <= releases.last_round <= acknowledged + 1
    with ReleasesReader(path) as reader:
        assert {len(reader.answers(round_)) for round_ in reader.rounds()} == {50}
        assert reader.changed_rounds() == []


def test_a_ledger_is_of_no_use_after_a_fork(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom retrodp.store.ledger import Ledger\n"
        "from retrodp.errors import UsageError\n"
        "ledger = Ledger.open(Path(sys.argv[1]))\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        ledger.facts.note('x', '1')\n"
        "    except UsageError:\n"
        "        os._exit(7)\n"
        "    os._exit(0)\n"
        "_, status = os.wait()\n"
        "sys.exit(os.waitstatus_to_exitcode(status))\n"
    )
    ledger.close()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "ledger.sqlite")], check=False, cwd=ROOT
    )
    assert done.returncode == 7


def test_rows_taken_before_a_kill_still_wait(tmp_path: Path) -> None:
    new_ledger(tmp_path).close()
    body = 'ledger.waiting.enqueue(arrivals(1, [update("a")]))\nprint("taken", flush=True)\ntime.sleep(60)'
    process = child(tmp_path, body)
    assert process.stdout is not None
    assert process.stdout.readline() == "taken\n"
    killed(process)
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert again.waiting.of_round(1) == [update("a")]
    assert again.waiting.enqueue(arrivals(1, [update("a")])) == 0
