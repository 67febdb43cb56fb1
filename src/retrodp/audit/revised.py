"""Revised releases as the audit sees them.

Promise: a series with a counter a stamp is a function of its totals and its declared noise, said
again here from the documents; a series that is cumulative in stamp is known to the audit of
retroactivity alone (its shifts are a product of two axes, which the tests count by brute force).
"""

from __future__ import annotations

from collections.abc import Mapping

from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import AnyMechanism
from retrodp.mechanisms.revised import RevisedSeries
from retrodp.mechanisms.stamped import StampNoise
from retrodp.noise.factors.blocks import BlockKeys
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates

REVISED: Mapping[str, Mapping[str, object]] = {
    "revised": {"revised": True},
    "revised, 3d": {"revised": True, "last": "3d"},
    "revised, cumulative": {"revised": True, "shape": "cumulative"},
    "revised, cumulative, 3d": {"revised": True, "shape": "cumulative", "last": "3d"},
}
"""Ways to write a revised release, by what follows in its title."""


def noise_of(mechanism: AnyMechanism) -> CalibratedNoise | None:
    """Noise of the counters of a series without a limit; None for what is not known here."""
    match mechanism:
        case RevisedSeries(series=StampNoise() as series):
            factor = series.factor
            return series.noise if factor.rounds == factor.horizon else None
        case _:
            return None


def restated(
    mechanism: RevisedSeries, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> tuple[tuple[str, ...] | None, tuple[int, ...]]:
    """Labels and values of a series for which `noise_of` is known."""
    series, bins = mechanism.series, mechanism.bins or ("",)
    assert isinstance(series, StampNoise)
    own = BlockKeys(keys, series.blocks, 0)
    where = Coordinates.of_indices(round_ * len(bins))
    draws = series.noise.draw(round_, own, where).tolist()
    values = []
    for place in range(len(bins)):
        for stamp in range(1, round_ + 1):
            digits = [stamp >> 7 * n & 127 for n in (3, 2, 1, 0)]
            total = exact.get(bytes(digits + [place >> 7 * n & 127 for n in (3, 2, 1, 0)]), 0)
            values.append(total + draws[(stamp - 1) * len(bins) + place])
    labels = None
    if mechanism.bins is not None:
        labels = tuple(label for label in bins for _ in range(round_))
    return labels, tuple(values)
