"""What may be said beforehand about each part of a release whose parts err differently."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.plan.decimals import decimal_text

Part = dict[str, str]


def part_of(noise: CalibratedNoise, name: str) -> Part:
    """Predicted errors of values that are published as the noise leaves them.

    Args:
        noise: Of the values.
        name: What the part is called beside the release's name; "" for the whole.

    Returns:
        Texts of exact decimals in units of the statistic, the largest of any round.
    """
    return part(
        name,
        step=noise.step,
        stddev=noise.stddev,
        half=max(noise.half),
        half_all=max(noise.half_all),
    )


def part(name: str, *, step: Fraction, stddev: Sequence[str], half: int, half_all: int) -> Part:
    """The same from numbers; half widths in steps."""
    return {
        "name": name,
        "step": decimal_text(1, step),
        "stddev_max": max(stddev, key=float),
        "error_max": decimal_text(half, step),
        "error_all_max": decimal_text(half_all, step),
    }
