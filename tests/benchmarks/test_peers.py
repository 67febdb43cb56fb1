"""A peer that is not installed is missing in a table, and no error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from benchmarks.speed import optional
from benchmarks.tables import Table, millions

from benchmarks import errors, peers

PEERS: list[Callable[[], object]] = [
    lambda: peers.opendp_draws("laplace", 3.0, 10),
    lambda: peers.opendp_tree(8, 3.0),
    lambda: peers.jax_blt_strategy(8),
    lambda: peers.jax_banded_strategy(8, 2),
    lambda: peers.jax_stream(8, 2),
    lambda: peers.dpcrpy_stream(8),
]


@pytest.fixture
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "load", lambda _: None)


@pytest.mark.usefixtures("_nothing_installed")
@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_that_is_not_installed_gives_nothing(peer: Callable[[], object]) -> None:
    assert peer() is None


def test_a_rate_that_is_missing_is_called_so() -> None:
    table = Table("name", "Title", "Note.", ("who", "million/s", "best"))
    table.add("peer", *millions(optional(lambda: None, 10)))
    assert table.markdown().splitlines()[-1] == "| peer | missing | missing |"


@pytest.mark.usefixtures("_nothing_installed")
def test_without_matplotlib_there_is_no_picture(tmp_path: object) -> None:
    assert not errors.plot(tmp_path)  # type: ignore[arg-type]
