"""Counters of a sketch as they are told: exact values and keyed noise, and nothing else of the points.

Promise: what is told of a counter is its value plus the noise of its label and of the round of its
part; one label never counts two things. Knows no rule of the sketch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.arrivals import Part
from retrodp.clustering.places import Box
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import Process
from retrodp.privacy.norms import Norms
from retrodp.statistics.grid import RADIUS

Ints = NDArray[np.int64]

CELLS, WEIGHTS, SUMS, SIZE = "cells", "weights", "sums", "size"
PARTS = (CELLS, WEIGHTS, SUMS, SIZE)

_PLACE_BITS = 24

SHARES = {
    CELLS: Fraction(1, 2),
    WEIGHTS: Fraction(1, 5),
    SUMS: Fraction(1, 4),
    SIZE: Fraction(1, 20),
}


class Noises(Protocol):
    """The noise of every part of a sketch."""

    @property
    def horizon(self) -> int:
        """Blocks."""

    def process(self, part: str) -> Process:
        """Noise of a part."""

    def noise_name(self, part: str) -> str:
        """Release that it is labelled with."""


class Counters(Protocol):
    """Whoever tells noisy counts; the sketch sees no other numbers of the points."""

    def read(self, part: str, index: int, labels: Ints, exact: Ints) -> Ints:
        """Noisy values of counters.

        Args:
            part: Of the sketch.
            index: Rounds since the part began: causal noise of that round is added.
            labels: Of the counters; public numbers, shape (n,).
            exact: Their true values, shape (n,).
        """


@dataclass(frozen=True, slots=True, eq=False)
class KeyedCounters:
    """Counters under the noise of a sketch.

    Attributes:
        noises: Of the sketch.
        keys: Source of the noise.
        block: That is being closed.
    """

    noises: Noises
    keys: NoiseKeys
    block: int

    def read(self, part: str, index: int, labels: Ints, exact: Ints) -> Ints:
        """Exact values and the noise of their labels."""
        if not len(labels):
            return exact
        noise = self.noises.process(part).draw(
            release=self.noises.noise_name(part),
            round=index,
            keys=_Later(self.keys, self.block - index, self.noises.horizon),
            where=Coordinates.of_indices(labels),
        )
        found: Ints = exact + noise
        return found


class _Later(NamedTuple):
    """Keys for noise that began some rounds late: its nodes serve so much later."""

    keys: NoiseKeys
    late: int
    horizon: int

    def node_key(
        self, *, release: str, factor: str, node: tuple[int | str, ...], last: int
    ) -> bytes:
        return self.keys.node_key(
            release=release, factor=factor, node=node, last=min(last + self.late, self.horizon)
        )

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        return self.keys.fresh_key(release=release, purpose=purpose, round=round)

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        return self.keys.lasting_key(release=release, purpose=purpose)


def parts_of(box: Box, shares: Mapping[str, Fraction], records: int = 1) -> tuple[Part, ...]:
    """What one unit adds to each part, over all phases.

    An arrival lies in one block, so it meets one phase and one nearest representative. It adds 1 to
    one cell a level if it is sampled, 1 to one weight, an offset of norm at most `RADIUS` to one
    vector of sums, and 1 to one size if it is sampled.
    """
    levels, columns = len(box.grid.counted), box.columns
    length = min(columns * RADIUS, math.isqrt(columns * RADIUS**2))
    norms = {
        CELLS: (Norms(levels, levels), levels),
        WEIGHTS: (Norms(1, 1), 1),
        SUMS: (Norms(length, RADIUS**2), columns),
        SIZE: (Norms(1, 1), 1),
    }
    return tuple(
        Part(
            name=name,
            share=shares[name],
            norms=own.of_records(records),
            moved=moved * records,
        )
        for name, (own, moved) in norms.items()
    )


def birth_labels(births: Ints) -> Ints:
    """Labels of representatives: block of birth, and place among those born with it."""
    _, firsts, often = np.unique(births, return_index=True, return_counts=True)
    places = np.arange(len(births)) - np.repeat(firsts, often)
    labels: Ints = births << _PLACE_BITS | places
    return labels
