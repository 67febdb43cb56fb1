"""Exact counts over ordered cells on their way to noise: cumulative counts and labels of groups."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.prf import Coordinates
from retrodp.postprocess.halving import Cut, depth
from retrodp.statistics.ordered import NO_GROUP, cells_by_group, joined

IntArray = NDArray[np.int64]

LEVELS_AHEAD = 3
"""Levels drawn with those that are asked for: a call costs as much as some thousand draws."""


class Cumulative(NamedTuple):
    """Exact counts of one group.

    Attributes:
        cells: Cells with records, rising.
        sums: Count of the cells before each, and at the end of all.
    """

    cells: list[int]
    sums: list[int]

    @property
    def total(self) -> int:
        """Records in all cells."""
        return self.sums[-1]

    def below(self, cell: int) -> int:
        """Records in cells before this one."""
        return self.sums[bisect_left(self.cells, cell)]

    def difference(self, cut: Cut) -> int:
        """Records in the left half of a node less those in its right half."""
        return 2 * self.below(cut.middle) - self.below(cut.low) - self.below(cut.high)


def cumulative(exact: Mapping[bytes, int], groups: Sequence[bytes]) -> list[Cumulative]:
    """Exact counts of every public group; what lies in no such group is not looked at."""
    found = cells_by_group(exact)
    return [_cumulative(found.get(group, {})) for group in groups]


def _cumulative(counts: Mapping[int, int]) -> Cumulative:
    cells = sorted(counts)
    return Cumulative(cells, [0, *accumulate(map(counts.__getitem__, cells))])


def group_labels(groups: tuple[str, ...] | None) -> list[bytes]:
    """Groups as coordinates name them."""
    return [NO_GROUP] if groups is None else [group.encode() for group in groups]


def labelled(groups: tuple[str, ...] | None, lasts: Sequence[str]) -> list[str]:
    """Published labels, group by group."""
    if groups is None:
        return list(lasts)
    return [joined(group, last) for group in groups for last in lasts]


def in_key_order(keys: Sequence[str]) -> list[int]:
    """Places of the labels by their UTF-8 bytes."""
    return sorted(range(len(keys)), key=lambda place: keys[place].encode())


class NoisyTree:
    """Noisy totals and differences of the trees of all groups, in one round.

    A coordinate is (group, number): 0 for the total of the group, then its nodes by number. What
    is drawn ahead spares calls and changes nothing: noise is a function of its label. Lives as
    long as the call that makes an answer.
    """

    def __init__(
        self, counts: Sequence[Cumulative], cells: int, draw: Callable[[Coordinates], IntArray]
    ) -> None:
        """Join exact counts, one entry a group, and the noise of one release and round."""
        self._counts = counts
        self._width = 1 << depth(cells)
        self._draw = draw
        self._drawn: dict[int, int] = {}

    def totals(self) -> list[int]:
        """Noisy number of records of each group, in all cells."""
        draws = self._noise([group * self._width for group in range(len(self._counts))])
        return [count.total + draw for count, draw in zip(self._counts, draws, strict=True)]

    def differences(self, cuts: Sequence[Cut]) -> list[int]:
        """Noisy count of the left half of each node less that of its right half."""
        draws = self._noise([cut.group * self._width + cut.number for cut in cuts])
        exact = [self._counts[cut.group].difference(cut) for cut in cuts]
        return [own + draw for own, draw in zip(exact, draws, strict=True)]

    def _noise(self, places: Sequence[int]) -> list[int]:
        missing = [place for place in places if place not in self._drawn]
        if missing:
            ahead = self._ahead(missing)
            draws = self._draw(Coordinates.of_indices(np.array(ahead, dtype=np.uint64)))
            self._drawn |= zip(ahead, draws.tolist(), strict=True)
        return [self._drawn[place] for place in places]

    def _ahead(self, places: Sequence[int]) -> list[int]:
        """The places and the nodes of the next levels below them, each once."""
        row = [divmod(place, self._width) for place in places]
        found = dict.fromkeys(places)
        for _ in range(LEVELS_AHEAD):
            row = [
                (group, child)
                for group, number in row
                for child in ((2 * number, 2 * number + 1) if number else (1,))
                if child < self._width
            ]
            found |= dict.fromkeys(group * self._width + number for group, number in row)
        return [place for place in found if place not in self._drawn]
