"""Attack 2: the resolved mechanism drifts under one key, and differences become exact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.errors import GuardError
from retrodp.mechanisms import calibrate
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.haar import HaarFactor, best_haar
from tests.support.plans import HORIZON, counting
from tests.support.rows import add, ingest
from tests.support.stores import new_store, published, read_files, write_files


def other_ties(horizon: int) -> Factor:
    """The same tree with its rounds at other positions of equal variance."""
    best = best_haar(horizon)
    end = 1 << best.height
    mirrored = tuple(sorted(end - position for position in best.positions))
    return HaarFactor(horizon=horizon, height=best.height, positions=mirrored)


def drifted(patched: pytest.MonkeyPatch) -> None:
    patched.setitem(calibrate._FACTORS, "haar", other_ties)
    patched.setattr(calibrate, "best_haar", other_ties)


def test_the_other_ties_are_another_mechanism_of_equal_error() -> None:
    best, other = best_haar(HORIZON), other_ties(HORIZON)
    assert isinstance(other, HaarFactor)
    assert other.positions != best.positions
    squares = [sorted(factor.profile().squares.tolist()) for factor in (best, other)]
    assert squares[0] == squares[1]


def test_an_open_store_keeps_the_mechanism_it_was_created_with(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("steady", "drifting"):
        with new_store(ram / name, counting()) as store:
            ingest(store, [add("a", 1)])
            store.close_through(2)
    with Store.open(ram / "steady") as store:
        store.close_through(HORIZON)
    drifted(monkeypatch)
    with Store.open(ram / "drifting") as store:
        store.close_through(HORIZON)
    assert published(ram / "drifting") == published(ram / "steady")


def test_every_resolved_parameter_is_stored_and_hashed(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        document = json.loads((ram / "store" / "plan.resolved.json").read_bytes())
        factor = document["releases"][0]["noise"]["process"]["factor"]
        assert tuple(factor["positions"]) == best_haar(HORIZON).positions
        assert document["unicode"]
        assert document["tzdata"]
        assert document["noise_format"] == 1
        assert store.key.fingerprint == store.resolved.fingerprint


def test_a_drifted_plan_is_another_plan_and_refused(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_store(ram / "store", counting()) as store:
        before = store.resolved.fingerprint
    drifted(monkeypatch)
    other = resolve(counting())
    assert other.fingerprint != before
    files = read_files(ram / "store")
    write_files(ram / "drifted", files | {"/plan.resolved.json": other.to_json()})
    with pytest.raises(GuardError):
        Store.open(ram / "drifted")


def test_positions_follow_no_sort_of_a_library() -> None:
    """Strictly increasing, ties to the smallest position, in integers."""
    positions = best_haar(374).positions
    assert list(positions) == sorted(set(positions))
    assert all(type(position) is int for position in positions)
    factor = best_haar(374)
    end = 1 << factor.height
    at = [
        HaarFactor(horizon=1, height=factor.height, positions=(position,)).profile().squares[0]
        for position in range(1, end)
    ]
    least = sorted(range(1, end), key=lambda position: (at[position - 1], position))[:374]
    assert tuple(sorted(least)) == positions


def test_twin_noise_recomputed_at_load_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of one key under two maps share draws but not sums: equal nodes, other weights."""
    before = resolve(counting()).releases[0]["noise"]["process"]
    drifted(monkeypatch)
    after = resolve(counting()).releases[0]["noise"]["process"]
    assert before["scale"] == after["scale"]
    assert before["factor"] != after["factor"]
