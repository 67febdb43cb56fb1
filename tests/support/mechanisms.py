"""Mechanisms of compiled releases, for tests that know what they planned."""

from __future__ import annotations

from retrodp.engine.compile import CompiledRelease
from retrodp.mechanisms.contract import Mechanism, Stateful


def pure(release: CompiledRelease) -> Mechanism:
    """The mechanism of a release that does not remember."""
    assert not isinstance(release.mechanism, Stateful)
    return release.mechanism
