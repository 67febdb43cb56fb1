"""Marginal tables of counts: consistent where the plan lists the cells, from a threshold where not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.mechanisms.parts import Part, part, part_of
from retrodp.mechanisms.several_noises import SeveralNoises
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates, collision_bound
from retrodp.postprocess.consistency import Columns, Consistency
from retrodp.statistics.marginals import OPEN, PUBLIC, Cube, Marginal, coordinate, possible

FINER = 100  # counts are published in hundredths: consistent ones are fractions


class _Errors(NamedTuple):
    """Standard deviation in records, and half widths in published steps."""

    stddev: str
    half: int
    half_all: int

    def around(self, value: int) -> Bounds:
        """Both intervals around a published value."""
        return Bounds(
            *(self.stddev, value - self.half, value + self.half),
            *(value - self.half_all, value + self.half_all),
        )


class _Value(NamedTuple):
    key: str
    value: int
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalTables(SeveralNoises):
    """Counts in the cells of several marginals of the surviving records, every round.

    Guarantee: privacy of one counter a cell (KKMNS theorem 3.2); one record moves one cell of every
    marginal. Public tables are made consistent by least squares, which is memoryless post-processing
    of noisy cells: exactly retroactive (KKMNS lemma 3.3). Cells of open tables are those with records
    whose noisy count reaches the threshold (KKMNS theorem 4.1); they are not made consistent, for
    which cells there are follows from the data.

    Attributes:
        name: Of the release.
        statistic: The marginals.
        public: Noise of the public cells; None if there are none.
        open: Noise of the open cells; None if there are none.
        band: Of sums of the public noise; None if there are no public cells.
        threshold: Of the open cells, in records; None if there are none.
        max_bins: Planned maximum of open labels.
        level: Coverage of the intervals.
    """

    name: str
    statistic: Cube
    public: CalibratedNoise | None
    open: CalibratedNoise | None
    band: Band | None
    threshold: int | None
    max_bins: int
    level: Fraction

    @property
    def step(self) -> Fraction:
        """A hundredth of a record."""
        return Fraction(1, FINER)

    @property
    def noises(self) -> tuple[CalibratedNoise, ...]:
        """Of all parts."""
        return tuple(noise for noise in (self.public, self.open) if noise is not None)

    @property
    def adaptive(self) -> Adaptive:
        """A threshold's delta is proved for oblivious streams only."""
        return "no" if self.open is not None else adaptive_guarantee(self.noises[0].process)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """Every public cell, zeros included, and the open cells that reach the threshold.

        Time: some microseconds a cell.
        """
        found = sorted(
            (*self._public(round_, exact, keys), *self._open(round_, exact, keys)),
            key=lambda one: one.key.encode(),
        )
        halves = self._halves(round_)
        return Answer(
            release=self.name,
            round=round_,
            keys=tuple(one.key for one in found),
            values=tuple(one.value for one in found),
            step=self.step,
            stddev="",
            half=max(half for half, _ in halves),
            half_all=max(half_all for _, half_all in halves),
            level=self.level,
            each=tuple(one.bounds for one in found),
            threshold=None if self.threshold is None else self.threshold * FINER,
        )

    def _halves(self, round_: int) -> list[tuple[int, int]]:
        """Half widths of each kind of cell in a round, in published steps."""
        halves = [(errors.half, errors.half_all) for errors in self._table_errors(round_).values()]
        if self.open is not None:
            at = round_ - 1
            halves.append((self.open.half[at] * FINER, self.open.half_all[at] * FINER))
        return halves

    def _public(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Iterator[_Value]:
        if self.public is None:
            return
        component = PUBLIC if self.open is not None else ""
        labels = [[one.key(cell) for cell in one.cells()] for one in self.statistic.public]
        consistency = consistency_of(self.statistic)
        where = Coordinates.of_indices(sum(map(len, labels)))
        draws = iter(self.public.draw(round_, keys, where).tolist())
        noisy = {
            table: [exact.get(coordinate(component, key), 0) + next(draws) for key in own]
            for table, own in zip(consistency.tables, labels, strict=True)
        }
        tables = consistency.estimate(noisy, finer=FINER)
        errors = self._table_errors(round_)
        for table, own in zip(consistency.tables, labels, strict=True):
            for key, value in zip(own, tables[table], strict=True):
                yield _Value(key, value, errors[table].around(value))

    def _table_errors(self, round_: int | None) -> dict[Columns, _Errors]:
        """Errors of the cells of each public table in a round; None for the worst round."""
        noise, band = self.public, self.band
        if noise is None:
            return {}
        assert band is not None
        at = None if round_ is None else round_ - 1
        stddev = max(noise.stddev, key=float) if at is None else noise.stddev[at]
        half = max(noise.half) if at is None else noise.half[at]
        half_all = max(noise.half_all) if at is None else noise.half_all[at]
        consistency = consistency_of(self.statistic)
        found = {}
        for table, (squared, absolute, largest) in consistency.spreads.items():
            if squared == 1:  # no other table tells anything about this one
                found[table] = _Errors(stddev, half * FINER, half_all * FINER)
                continue
            halves = (
                band.worst().half(1, squared, absolute, largest)
                if round_ is None
                else band.half(round_, squared, absolute, largest)
            )
            found[table] = _Errors(
                f"{float(stddev) * math.sqrt(squared):.6g}", *map(_published, halves)
            )
        return found

    def _open(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Iterator[_Value]:
        if self.open is None:
            return
        assert self.threshold is not None
        prefix = coordinate(OPEN, "") if self.public is not None else b""
        found = [
            (place[len(prefix) :], count)
            for place, count in exact.items()
            if place.startswith(prefix) and count >= 1
        ]
        labels = [label for label, _ in found]
        counts = np.array([count for _, count in found], dtype=np.int64)
        label_key = keys.lasting_key(release=self.open.release, purpose="labels")
        noise = self.open.draw(round_, keys, Coordinates.of_labels(labels, label_key))
        at = round_ - 1
        errors = _Errors(
            self.open.stddev[at], self.open.half[at] * FINER, self.open.half_all[at] * FINER
        )
        # A sum could leave 64 bits; the difference cannot, for a threshold and a count are above 0.
        for place in np.flatnonzero(noise >= self.threshold - counts).tolist():
            value = (int(counts[place]) + int(noise[place])) * FINER
            yield _Value(labels[place].decode(), value, errors.around(value))

    def collision_delta(self) -> Fraction:
        """Bound on the probability that two open labels share their noise."""
        return Fraction(0) if self.open is None else Fraction(collision_bound(self.max_bins))

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are the largest of any table and round."""
        parts = self._parts()
        facts: dict[str, Any] = {
            "mechanism": "marginal tables",
            "marginals": [list(marginal.names) for marginal in self.statistic.marginals],
            **self.noises[0].describe(),
            "step": str(self.step),
            "stddev_max": max(float(one["stddev_max"]) for one in parts),
            "error_max": max(float(one["error_max"]) for one in parts),
            "error_all_max": max(float(one["error_all_max"]) for one in parts),
            "parts": parts,
        }
        if self.public is not None:
            facts["cells"] = sum(map(_size, self.statistic.public))
            facts["consistent"] = "by least squares over the public tables"
        if self.open is not None:
            facts |= {"threshold": self.threshold, "max_bins": self.max_bins}
        return facts

    def _parts(self) -> list[Part]:
        found = []
        if self.public is not None:
            for marginal, errors in zip(
                self.statistic.public, self._table_errors(None).values(), strict=True
            ):
                found.append(
                    part(
                        _title(marginal),
                        step=self.step,
                        stddev=[errors.stddev],
                        half=errors.half,
                        half_all=errors.half_all,
                    )
                )
        if self.open is not None:
            found += [part_of(self.open, _title(marginal)) for marginal in self.statistic.unlisted]
        return found


@lru_cache(maxsize=64)
def consistency_of(cube: Cube) -> Consistency:
    """Least squares for the public tables of a cube, in their order; depends on the plan alone."""
    used = {name for one in cube.public for name in one.names}
    columns = [column for column in cube.by if column.name in used]
    places = {column.name: place for place, column in enumerate(columns)}
    return Consistency(
        sizes=tuple(len(possible(column)) for column in columns),
        tables=tuple(tuple(places[name] for name in one.names) for one in cube.public),
    )


def cells_band(noise: CalibratedNoise, cube: Cube) -> Band:
    """The band of the intervals of consistent cells: both sides at half the miss."""
    return Band.of(
        noise.process, miss=(1 - noise.level) / 2, coordinates=sum(map(_size, cube.public))
    )


def _size(marginal: Marginal) -> int:
    return math.prod(map(len, marginal.values))


def _title(marginal: Marginal) -> str:
    return " and ".join(marginal.names) or "total"


def _published(half: Fraction) -> int:
    """A half width in published steps; half a step for the rounding of the value to them."""
    return math.ceil(half * FINER + Fraction(1, 2))
