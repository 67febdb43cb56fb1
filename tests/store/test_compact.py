"""After compacting, the ledger's bytes follow from its contents alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from retrodp.errors import DiskFullError, UsageError
from retrodp.store import compact, erase
from retrodp.store.ledger import Ledger
from retrodp.store.states import Kept
from retrodp.stream.update import Op
from tests.store.rows import arrivals, contents, new_ledger, run, update
from tests.store.test_crash import ROOT, killed

LEFT = [f"life {number:05} of many" for number in range(0, 3000, 3)]


def straight(ledger: Ledger) -> None:
    """Every survivor comes in its round, and nothing else happens."""
    run(ledger, [update(name) for name in LEFT], [], [])


def winding(ledger: Ledger) -> None:
    """The same survivors, in another order, among records that come and go; two rewrites."""
    others = [f"life {number:05} of many" for number in range(3000) if number % 3]
    run(ledger, [update(name) for name in reversed([*LEFT[500:], *others])])
    ledger.erase()
    run(ledger, [update(name, op=Op.DELETE) for name in others])
    ledger.erase()
    run(ledger, [update(name, at=20) for name in LEFT[:500]])  # stamped 1, like the others


def points(ledger: Ledger) -> None:
    run(ledger, [update("", value="a", count=3), update("", value="b", count=2)], [])


def points_exhausted(ledger: Ledger) -> None:
    more = [update("", value=value, count=9) for value in "abc"]
    run(ledger, [update("", value="b", count=5), *more])
    less = {"a": 6, "b": 12, "c": 50}
    run(
        ledger,
        [update("", value=value, count=count, op=Op.DELETE) for value, count in less.items()],
    )


def file_of(directory: Path, history: object, *, ids: bool, compacted: bool) -> bytes:
    ledger = new_ledger(directory, ids=ids)
    assert callable(history)
    history(ledger)
    if compacted:
        ledger.compact()
    else:
        ledger.erase()
    ledger.close()
    assert [path.name for path in directory.iterdir()] == ["ledger.sqlite"]
    return (directory / "ledger.sqlite").read_bytes()


@pytest.mark.parametrize(
    ("one", "other", "ids"), [(straight, winding, True), (points, points_exhausted, False)]
)
def test_histories_that_unite_leave_equal_files(
    tmp_path: Path, one: object, other: object, *, ids: bool
) -> None:
    files = {
        file_of(tmp_path / f"{number}", history, ids=ids, compacted=True)
        for number, history in enumerate((one, other))
    }
    assert len(files) == 1


def test_twin_a_mere_rewrite_counts_the_rewrites_before_it(tmp_path: Path) -> None:
    one = file_of(tmp_path / "1", straight, ids=True, compacted=False)
    other = file_of(tmp_path / "2", winding, ids=True, compacted=False)
    assert one != other


def test_compacting_again_and_opening_change_no_byte(tmp_path: Path) -> None:
    first = file_of(tmp_path, winding, ids=True, compacted=True)
    for _ in range(2):
        ledger = Ledger.open(tmp_path / "ledger.sqlite")
        ledger.compact()
        ledger.close()
        assert (tmp_path / "ledger.sqlite").read_bytes() == first


def test_contents_stay_what_they_were(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    winding(ledger)
    ledger.waiting.enqueue(arrivals(4, [update("waits"), update("waits", op=Op.DELETE, at=11)]))
    ledger.forgets.add("person", "eve")
    ledger.memory.remember([b"hash"], 9)
    ledger.memory.take_source("digest", 9)
    before = contents(ledger)
    ledger.compact()
    assert contents(ledger) == before
    assert ledger.memory.remembered([b"hash"]) == {b"hash"}
    assert not ledger.facts.erase_due


def test_a_table_of_states_that_is_empty_leaves_no_trace(tmp_path: Path) -> None:
    plain, kept = (new_ledger(tmp_path / name) for name in ("plain", "kept"))
    run(plain, [update("a")])
    run(kept, [update("a")])
    kept.states.keep(1, {"books": Kept(b"state", {})})
    kept.compact()
    assert kept.states.read("books", 1) == Kept(b"state", {})
    kept.states.purge()
    for ledger in (plain, kept):
        ledger.compact()
        ledger.close()
    files = {path.read_bytes() for path in tmp_path.rglob("ledger.sqlite")}
    assert len(files) == 1
    again = Ledger.open(tmp_path / "kept" / "ledger.sqlite")
    again.states.keep(2, {"books": Kept(b"new", {})})
    assert again.states.read("books", 2) == Kept(b"new", {})


def test_different_survivors_leave_different_files(tmp_path: Path) -> None:
    one = file_of(
        tmp_path / "1", lambda ledger: run(ledger, [update("a")]), ids=True, compacted=True
    )
    two = file_of(
        tmp_path / "2", lambda ledger: run(ledger, [update("b")]), ids=True, compacted=True
    )
    assert one != two


def test_inside_a_transaction_it_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with ledger.transaction(), pytest.raises(UsageError):
        ledger.compact()


def test_without_room_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")])
    before = contents(ledger)

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(erase, "_sync_file", full)
    with pytest.raises(DiskFullError):
        ledger.compact()
    assert contents(ledger) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"ledger.sqlite", "ledger.sqlite-wal"}


def test_a_fault_before_the_rename_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger(tmp_path)
    winding(ledger)
    ledger.erase()
    before = (tmp_path / "ledger.sqlite").read_bytes()

    def fails(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compact, "_forget_rewrites", fails)
    with pytest.raises(KeyboardInterrupt):
        ledger.compact()
    ledger.close()
    assert (tmp_path / "ledger.sqlite").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]


@pytest.mark.parametrize("delay", [0.0, 0.004, 0.015])
def test_a_kill_while_compacting_keeps_the_ledger_whole(tmp_path: Path, delay: float) -> None:
    ledger = new_ledger(tmp_path)
    straight(ledger)
    before = contents(ledger)
    ledger.close()
    program = (
        "import sys\nfrom pathlib import Path\nfrom retrodp.store.ledger import Ledger\n"
        "ledger = Ledger.open(Path(sys.argv[1]))\n"
        "while True:\n    ledger.compact()\n    print('compacted', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "ledger.sqlite")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "compacted\n"
    time.sleep(delay)
    killed(process)
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert contents(again) == before
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]
