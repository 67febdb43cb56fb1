"""Factors from their stored descriptions.

Promise: a factor read back is the factor that was written, or an error; nothing is chosen again.
Knows no key and no data.
"""

from __future__ import annotations

from collections.abc import Mapping

from retrodp.errors import PlanError
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.delannoy import DelannoyFactor
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.factors.haar import HaarFactor

_FIELDS = {
    "binary": {"factor", "horizon"},
    "delannoy": {"factor", "horizon", "w", "z"},
    "fresh": {"factor", "horizon", "window"},
    "haar": {"factor", "horizon", "height", "positions"},
}


def factor_from_spec(spec: Mapping[str, object]) -> Factor:
    """The factor that `Factor.spec` described.

    Raises:
        PlanError: Unknown kind, a missing or surplus field, or values that make no factor.
    """
    name = spec.get("factor")
    if not isinstance(name, str) or set(spec) != _FIELDS.get(name):
        raise PlanError(
            f"A factor cannot be read from the fields {sorted(spec)}.",
            expected=f"factor (one of {', '.join(_FIELDS)}) and exactly its parameters",
        )
    match name:
        case "binary":
            return BinaryFactor(horizon=_whole(spec, "horizon"))
        case "delannoy":
            return DelannoyFactor(
                horizon=_whole(spec, "horizon"), w=_whole(spec, "w"), z=_whole(spec, "z")
            )
        case "fresh":
            return FreshFactor(horizon=_whole(spec, "horizon"), window=_whole(spec, "window"))
        case _:
            return HaarFactor(
                horizon=_whole(spec, "horizon"),
                height=_whole(spec, "height"),
                positions=_positions(spec["positions"]),
            )


def _whole(spec: Mapping[str, object], field: str) -> int:
    """The field as an int; the factor checks its range."""
    value = spec[field]
    if type(value) is not int:
        raise PlanError(f"{field} of a factor must be a whole number, got {value!r}.")
    return value


def _positions(value: object) -> tuple[int, ...]:
    """The position map; the factor checks its entries."""
    if not isinstance(value, list | tuple):
        raise PlanError(f"positions of a haar factor must be a list, got {value!r}.")
    return tuple(value)
