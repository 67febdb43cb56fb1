"""The garbage collector rests while a round is worked off, and only then."""

from __future__ import annotations

import gc

import pytest

from retrodp.engine.collecting import paused


def test_the_collector_runs_again_afterwards_whatever_happened() -> None:
    assert gc.isenabled()
    with paused():
        assert not gc.isenabled()
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), paused():
        raise KeyError
    assert gc.isenabled()


def test_who_switched_the_collector_off_finds_it_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
