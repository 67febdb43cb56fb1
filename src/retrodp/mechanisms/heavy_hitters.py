"""The items with most records, spelled out by a search in noisy counts; no name is looked up.

Every level of a sketch counts the leading bits of items. The search keeps the leading bits with the
largest noisy counts, looks at all their continuations, present or not, and ends with whole items.
It sees nothing but noisy counters, so it costs nothing beyond them.

What begins an item counts at least as much as the item. So a number is taken for no more than the
least of the counts on its way: one that meets large items in most rows of one level is not believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.mechanisms.second_moment import VARIANCE_STEPS
from retrodp.mechanisms.spread import (
    median_deviation,
    normal_tail,
    share_of_variance,
    tail_of_a_row,
)
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.statistics.buckets import read
from retrodp.statistics.codes import LEVEL_BITS
from retrodp.statistics.contract import PURPOSE
from retrodp.statistics.sketch import Ints, SketchedPrefixes

LEAST_KEPT = 256
"""Leading bits that the search keeps at a level, at least; else eight for each item wanted."""

GIVEN_UP = 1 / 700
"""Share of the counts of nothing at all that are followed up."""

_CHUNK = 1 << 18

Words = NDArray[np.uint64]


def kept_at_a_level(top: int) -> int:
    """Leading bits that the search goes on with."""
    return max(LEAST_KEPT, 8 * top)


def candidates(top: int) -> int:
    """Most numbers that are looked at on one level."""
    return kept_at_a_level(top) << LEVEL_BITS


class Reach(NamedTuple):
    """Shares of a level's counters, on one side, beyond which a row strays seldom enough.

    The counters of a level know nothing of which numbers earlier levels left to look at, so it is
    the number of those that counts; by its power of two.

    Attributes:
        round: For all candidates of a round at once, by the logarithm of their number.
        all: For all candidates of all rounds, likewise.
        followed: For one candidate to be followed up.
    """

    round: tuple[Fraction, ...]
    all: tuple[Fraction, ...]
    followed: Fraction

    @classmethod
    def of(cls, rows: int, *, top: int, horizon: int, miss: float) -> Self:
        """For the median of so many rows."""
        powers = range(candidates(top).bit_length() + 1)
        return cls(
            tuple(tail_of_a_row(rows, miss=miss / 2**power) for power in powers),
            tuple(tail_of_a_row(rows, miss=miss / horizon / 2**power) for power in powers),
            tail_of_a_row(rows, miss=GIVEN_UP),
        )

    def spec(self) -> list[Any]:
        """What the resolved plan stores."""
        return [
            [str(one) for one in self.round],
            [str(one) for one in self.all],
            str(self.followed),
        ]

    @classmethod
    def from_spec(cls, spec: list[Any]) -> Self:
        """Read what `spec` wrote."""
        round_, all_, followed = spec
        return cls(tuple(map(Fraction, round_)), tuple(map(Fraction, all_)), Fraction(followed))


class Found(NamedTuple):
    """Numbers under way; parallel.

    Attributes:
        codes: Leading bits.
        counts: Noisy counts of them.
        believed: The least of the noisy counts of what begins them, their own included.
    """

    codes: Words
    counts: Ints
    believed: Ints

    @classmethod
    def start(cls) -> Self:
        """The empty beginning, which every number has."""
        anything = np.full(1, np.iinfo(np.int64).max)
        return cls(np.zeros(1, dtype=np.uint64), anything, anything)

    @classmethod
    def together(cls, parts: Sequence[Found]) -> Self:
        """All of them; none of nothing."""
        if not parts:
            empty = np.zeros(0, dtype=np.int64)
            return cls(empty.astype(np.uint64), empty, empty)
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def part(self, start: int, size: int) -> Found:
        """Some of them."""
        return self._take(slice(start, start + size))

    def at_least(self, least: int) -> Found:
        """Those of which so much is believed."""
        return self._take(self.believed >= least)

    def first(self, most: int) -> Found:
        """Those of which most is believed, at most so many; of equals the least numbers."""
        return self._take(np.lexsort((self.codes, -self.believed))[:most])

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """One by one."""
        return zip(self.codes.tolist(), self.counts.tolist(), self.believed.tolist(), strict=True)

    def _take(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Found:
        return Found(self.codes[which], self.counts[which], self.believed[which])


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(OneNoise):
    """Publishes the items found whose noisy counts no candidate without records would reach.

    Guarantee: all counters of all levels are one vector mechanism, charged by what a record moves;
    the search is post-processing. Exactly retroactive, since noise and hashes are functions of key
    and name. A row strays by the noise and by other items in its bucket: as far as a counter drawn
    at random is from 0. So the law of the rows' median is read off the noisy counters themselves,
    whatever it is. The intervals hold for all candidates of a round at once, so that having searched
    does not break them. Source:
    CountSketch (Charikar, Chen, Farach-Colton 2002) over leading bits (Cormode, Muthukrishnan 2005).

    Attributes:
        noise: Of each counter.
        sketch: What the counters are, without their secret.
        top: Most items published.
        variances: As in `SecondMoment`.
        reach: Of the rows.
    """

    noise: CalibratedNoise
    sketch: SketchedPrefixes
    top: int
    variances: tuple[int, ...]
    reach: Reach

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of one round; `exact` holds the counters that are not zero."""
        sketch = self.sketch.keyed(keys.lasting_key(release=self.name, purpose=PURPOSE))
        levels = len(sketch.codes.shifts)
        size = levels * sketch.rows * sketch.buckets
        counters = read(exact, size)
        counters += self.noise.draw(round_, keys, Coordinates.of_indices(size))
        grid = counters.reshape(levels, sketch.rows, sketch.buckets)
        found, looked_at = self._search(sketch, grid)
        return self._answer(round_, found, looked_at, _strays(grid[-1]))

    def _search(self, sketch: SketchedPrefixes, grid: Ints) -> tuple[Found, int]:
        """Items with the largest noisy counts, and how many the last level looked at."""
        kept, before, looked_at = Found.start(), sketch.codes.bits, 0
        for level, shift in enumerate(sketch.codes.shifts):
            wide = before - shift
            least = _beyond(_strays(grid[level]), self.reach.followed)
            each, looked_at = max(1, _CHUNK >> wide), len(kept.codes) << wide
            parts = [
                self._followed(kept.part(start, each), wide, sketch, level, grid[level])
                .at_least(least)
                .first(kept_at_a_level(self.top))
                for start in range(0, len(kept.codes), each)
            ]
            kept = Found.together(parts).first(kept_at_a_level(self.top))
            before = shift
        return kept, looked_at

    def _followed(
        self, kept: Found, wide: int, sketch: SketchedPrefixes, level: int, grid: Ints
    ) -> Found:
        """All continuations of what was kept by so many bits."""
        ends = np.arange(1 << wide, dtype=np.uint64)
        codes = (kept.codes[:, None] << np.uint64(wide) | ends).ravel()
        counts = _middle(
            [grid[row][bucket] * sign for row, bucket, sign in sketch.found(level, codes)]
        )
        believed = np.minimum(np.repeat(kept.believed, len(ends)), counts)
        return Found(codes, counts, believed)

    def _answer(self, round_: int, kept: Found, looked_at: int, strays: Ints) -> Answer:
        power = max(0, looked_at - 1).bit_length()
        shares = self.reach.round[power], self.reach.all[power]
        half, half_all = (_beyond(strays, share) for share in shares)
        least = half + 1  # that much itself is reached by chance, often so if noise is small
        stddev = f"{median_deviation(strays, self.sketch.rows):.6g}"
        found: list[tuple[str, int]] = []
        for code, count, believed in kept.rows():
            label = self.sketch.codes.label(code) if believed >= least else None
            if label is not None and len(found) < self.top:
                found.append((label, count))
        found.sort(key=lambda one: one[0].encode())
        return Answer(
            release=self.name,
            round=round_,
            keys=tuple(label for label, _ in found),
            values=tuple(count for _, count in found),
            step=self.step,
            stddev="",
            half=half,
            half_all=half_all,
            level=self.noise.level,
            each=tuple(
                Bounds(stddev, count - half, count + half, count - half_all, count + half_all)
                for _, count in found
            ),
            threshold=least,
        )

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those of an empty stream, and grow with the data."""
        row = math.sqrt(max(self.variances) / VARIANCE_STEPS)
        half, half_all = (
            math.ceil(row * normal_tail(own[-1])) for own in (self.reach.round, self.reach.all)
        )
        share = share_of_variance(self.sketch.rows, median=True)
        return {
            "mechanism": "search in a sketch",
            **self.noise.describe(),
            "top": self.top,
            "levels": len(self.sketch.codes.shifts),
            "rows": self.sketch.rows,
            "buckets": self.sketch.buckets,
            "stddev_max": row * math.sqrt(float(share)),
            "error_max": float(half),
            "error_all_max": float(half_all),
        }


def _strays(grid: Ints) -> Ints:
    """How far a number without records is from 0 in a row: like any noisy counter; sorted."""
    return np.sort(np.abs(grid), axis=None)


def _beyond(strays: Ints, share: Fraction) -> int:
    """What the absolute counters exceed with twice the share, for both sides."""
    return int(strays[max(0, len(strays) - 1 - math.floor(2 * share * len(strays)))])


def _middle(rows: list[Ints]) -> Ints:
    """Median of an odd number of rows, entry by entry, by exchanges of neighbours.

    A few times as fast as sorting the columns; the rows are used up.
    """
    spare = np.empty_like(rows[0])
    for turn in range(len(rows)):
        for one in range(turn % 2, len(rows) - 1, 2):
            np.minimum(rows[one], rows[one + 1], out=spare)
            np.maximum(rows[one], rows[one + 1], out=rows[one + 1])
            rows[one], spare = spare, rows[one]
    return rows[len(rows) // 2]
