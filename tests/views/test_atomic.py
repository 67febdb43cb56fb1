from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from retrodp.errors import DiskFullError, UsageError
from retrodp.views.atomic import whole_file


def interrupted(path: Path, error: BaseException) -> None:
    with whole_file(path) as handle:
        handle.write(b"half")
        raise error


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    with whole_file(tmp_path / "out") as handle:
        handle.write(b"all")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_bytes() == b"all"


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_block_that_fails_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        interrupted(tmp_path / "out", error)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_guard_and_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(DiskFullError):
        interrupted(tmp_path / "out", OSError(errno.ENOSPC, "No space left on device"))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_full_device_is_reported_as_full() -> None:
    with pytest.raises(DiskFullError), whole_file("/dev/full") as handle:
        handle.write(b"x" * 10_000)


def test_a_device_is_not_replaced() -> None:
    with whole_file(os.devnull) as handle:
        handle.write(b"x")
    assert Path(os.devnull).is_char_device()


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    with whole_file(tmp_path / "link") as handle:
        handle.write(b"new")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "target").read_bytes()) == (True, b"new")


def test_a_directory_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory"), whole_file(tmp_path):
        pass


def test_a_missing_directory_is_wrong_use(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="directory that exists"),
        whole_file(tmp_path / "no" / "x"),
    ):
        pass


def test_a_file_left_by_a_dead_process_is_not_in_the_way(tmp_path: Path) -> None:
    left = tmp_path / f".out.{os.getpid()}-0.part"
    left.write_bytes(b"left")
    with whole_file(tmp_path / "out") as handle:
        handle.write(b"new")
    assert ((tmp_path / "out").read_bytes(), left.read_bytes()) == (b"new", b"left")
