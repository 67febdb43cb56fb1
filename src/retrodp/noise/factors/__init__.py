"""Factors of the counting matrix: which noise nodes make up a round, and what a window costs."""

from __future__ import annotations

from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import LONGEST_HORIZON, Factor, Profile, WeightedNode
from retrodp.noise.factors.delannoy import DelannoyFactor, best_delannoy
from retrodp.noise.factors.dense import DenseFactor, best_dense, square_root
from retrodp.noise.factors.haar import HaarFactor, best_haar
from retrodp.noise.factors.spec import factor_from_spec

__all__ = [
    "LONGEST_HORIZON",
    "BinaryFactor",
    "DelannoyFactor",
    "DenseFactor",
    "Factor",
    "HaarFactor",
    "Profile",
    "WeightedNode",
    "best_delannoy",
    "best_dense",
    "best_haar",
    "factor_from_spec",
    "square_root",
]
