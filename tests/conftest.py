"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import memory_directory


@pytest.fixture
def ram() -> Iterator[Path]:
    """An empty directory in memory where there is one: stores there need no disk to be durable."""
    with memory_directory() as directory:
        yield directory
