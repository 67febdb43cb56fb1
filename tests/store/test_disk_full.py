"""A full disk is named, and leaves nothing half-written."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrodp.errors import DiskFullError
from retrodp.noise.key import KeyTree
from retrodp.store.keyfile import PlainKeyFile
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.store.releases import Releases
from retrodp.stream.update import Op
from tests.store.rows import arrivals, contents, new_ledger, run, update

ROOT = Path(__file__).parents[2]
MANY = [update(f"{number:06d}", value=f"{number:0100d}") for number in range(20_000)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB; needs the right to mount."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(mount, check=False, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "fill").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def close_with_a_large_release(ledger: Ledger) -> None:
    with ledger.transaction():
        ledger.waiting.remove_round(2)
        ledger.facts.advance(2)
        ledger.pending.keep(2, bytes(4 << 20))


def test_a_full_disk_takes_nothing_and_work_goes_on_after(small_disk: Path) -> None:
    ledger = new_ledger(small_disk)
    run(ledger, [update("a"), update("b")])
    before = contents(ledger)
    with pytest.raises(DiskFullError):
        ledger.waiting.enqueue(arrivals(2, MANY))
    assert contents(ledger) == before
    assert ledger.waiting.count() == 0
    assert ledger.waiting.enqueue(arrivals(2, MANY[:100])) == 100


def test_a_close_on_a_full_disk_rolls_back_whole(small_disk: Path) -> None:
    ledger = new_ledger(small_disk)
    run(ledger, [update("a"), update("b")])
    ledger.waiting.enqueue(arrivals(2, [update("c")]))
    before = contents(ledger)
    with pytest.raises(DiskFullError):
        close_with_a_large_release(ledger)
    assert contents(ledger) == before
    assert (ledger.facts.round, ledger.waiting.count(), ledger.pending.read()) == (1, 1, None)


def test_erasing_on_a_full_disk_stays_due(small_disk: Path) -> None:
    ledger = new_ledger(small_disk)
    run(ledger, MANY[:2000], [update("000000", op=Op.DELETE)])
    before = contents(ledger)
    fill(small_disk)
    with pytest.raises(DiskFullError):
        ledger.erase()
    assert contents(ledger) == before
    assert ledger.facts.erase_due
    assert not (small_disk / "ledger.sqlite.fresh").exists()
    (small_disk / "fill").unlink()
    ledger.close()
    again = Ledger.open(small_disk / "ledger.sqlite")
    again.erase()
    assert contents(again) == before


def test_publishing_on_a_full_disk_publishes_nothing(small_disk: Path) -> None:
    releases = Releases.create(small_disk / "releases.sqlite", store_id="5e")
    releases.publish(1, {"a": b"x"})
    with pytest.raises(DiskFullError):
        releases.publish(2, {"a": b"x", "b": bytes(4 << 20)})
    assert releases.last_round == 1
    releases.publish(2, {"a": b"x"})
    assert releases.last_round == 2


def test_a_key_that_cannot_be_rewritten_stays(small_disk: Path) -> None:
    tree = KeyTree.from_root(bytes(32), b"5e", 16)
    record = KeyRecord(store_id="5e", fingerprint="f1", round=0, release_sha256=None, tree=tree)
    keeper = PlainKeyFile(small_disk / "s.key")
    keeper.create(record)
    fill(small_disk)
    later = KeyRecord(
        store_id="5e", fingerprint="f1", round=1, release_sha256="00", tree=tree.advanced(1)
    )
    with pytest.raises(DiskFullError):
        keeper.rewrite(later)
    assert keeper.read() == record
    assert sorted(path.name for path in small_disk.iterdir()) == ["fill", "s.key"]


def test_a_file_size_limit_is_a_full_disk_too(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")])
    before = contents(ledger)
    ledger.close()
    program = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from retrodp.errors import DiskFullError\n"
        "from retrodp.store.ledger import Ledger\n"
        "from tests.store.rows import arrivals\n"
        "from tests.store.test_disk_full import MANY\n"
        "ledger = Ledger.open(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))\n"
        "try:\n"
        "    ledger.waiting.enqueue(arrivals(2, MANY))\n"
        "except DiskFullError as error:\n"
        "    sys.exit(error.exit_code)\n"
    )
    path = tmp_path / "ledger.sqlite"
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, cwd=ROOT)
    assert done.returncode == 4
    again = Ledger.open(path)
    assert contents(again) == before
    assert again.waiting.count() == 0


def test_a_full_database_file_is_a_full_disk_too(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger._database.rows("PRAGMA max_page_count = 40")
    with pytest.raises(DiskFullError):
        ledger.waiting.enqueue(arrivals(1, MANY))
    assert ledger.waiting.count() == 0
    assert ledger.waiting.enqueue(arrivals(1, MANY[:10])) == 10
