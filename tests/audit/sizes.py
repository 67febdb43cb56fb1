"""Sizes and seeds that the tests of the audit share: fixed, so that a verdict is reproducible."""

from __future__ import annotations

from dataclasses import replace

from retrodp.audit import game, privacy
from retrodp.audit.coins import Seed

SEED = Seed("000102030405060708090a0b0c0d0e0f")
MISS = 1e-5  # of one case: what the short audit gives each of its hundred
SIZE = replace(privacy.SMOKE, runs=16_000)
PLAYS = replace(game.SMOKE, plays=8_000, hunts=120, hidden=20_000)
