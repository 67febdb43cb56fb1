"""Every kind of noise process, under one name.

Promise: a process read back is the process that was written, or an error. Knows no data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, get_args

from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.dense import DenseFactor, Kind
from retrodp.noise.process import NoiseProcess
from retrodp.noise.product import ProductFactor, ProductProcess

AnyFactor: TypeAlias = Factor | DenseFactor | ProductFactor
"""A factor of whole weights over a power of two, a dense one, or one with an axis of stamps."""

Process: TypeAlias = NoiseProcess | DenseProcess | ProductProcess
"""All draw, know their variance and describe themselves in the same words."""


def process_from_spec(spec: Mapping[str, object]) -> Process:
    """The process that `spec` described; nothing is chosen again.

    Raises:
        PlanError: A field is missing, surplus or wrong.
    """
    factor = spec.get("factor")
    if isinstance(factor, Mapping) and factor.get("factor") in get_args(Kind):
        return DenseProcess.from_spec(spec)
    if isinstance(factor, Mapping) and factor.get("factor") == ProductFactor.name:
        return ProductProcess.from_spec(spec)
    return NoiseProcess.from_spec(spec)
