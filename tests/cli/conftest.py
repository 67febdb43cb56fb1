"""Fixtures for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Desk, set_clock


@pytest.fixture
def desk(ram: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk at noon of 2024-01-04: rounds 1 to 3 are over, round 4 is not, round 5 is to come."""
    set_clock(monkeypatch, "2024-01-04T12:00")
    return Desk(ram)
