"""Noisy cumulative counts over ordered cells, from noisy differences between halves.

Promise: everything is a function of noisy differences and public geometry; exact counts, keys and
earlier rounds are not known here. Arithmetic is exact, so no order of evaluation and no machine
changes a result.

**The tree.** Cells 0..n-1 are cut in half until single cells are left: node (low, high) has the
middle (low + high) // 2, and its difference is the count of its left half less that of its right.
With F(c) the count of the cells below c,

    F(middle) = (F(low) + F(high) + difference) / 2,

from F(0) = 0 and F(n) = total. So every cumulative count is a weighted sum of the total and one
difference a level: those of a mechanism that perturbs differences instead of counts (Xiao, Wang,
Gehrke 2010: the Haar wavelet). One record moves the total by 1 and at most `depth` differences by
1 or -1. All counts that are derived from one tree are consistent: none is asked for twice.

**Searches.** A search for the cell in which the cumulative count reaches a target walks down: left
where the noisy F(middle) reaches it, else right. Only nodes on the way are asked. Searches for
higher targets never end to the left of searches for lower ones, because at every node that both
visit they compare the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DEEPEST_ENUMERATED = 18
"""Levels of middles whose weights are listed one by one; below them they are bounded."""

_SQUARED_A_LEVEL, _SQUARED_ONCE = 1 / 9, 5 / 36  # a quarter of 4/9 and of 5/9
_ABSOLUTE_A_LEVEL, _ABSOLUTE_ONCE = 1 / 3, 1 / 6
_FINER_POSITION = 1e-5  # middles below the listed levels lie no farther than this from one of them


class Cut(NamedTuple):
    """A node of the tree of one group of records.

    Attributes:
        group: Index of the group.
        number: 1 for all cells, 2 v and 2 v + 1 for the halves of v.
        low: First cell.
        high: Cell after the last.
    """

    group: int
    number: int
    low: int
    high: int

    @property
    def middle(self) -> int:
        """First cell of the right half."""
        return (self.low + self.high) // 2


class Target(NamedTuple):
    """What a search looks for: `share` of the total, moved by a band of the noise's own size.

    With w the weights of the noise in F(middle) less share times the total, a search goes right
    where the noisy difference lies below `side * (reach |w|_2 + rounding |w|_1)`.

    Attributes:
        share: Of the total, between 0 and 1.
        side: -1 for the lower end of a band, 0 for the value, 1 for the upper end.
        reach: Half width of the band per unit of the weights' norm.
        rounding: And per unit of their absolute sum; a multiple of 1/2.
        narrower: Smaller reaches for weights whose squares add up to at least so many times the
            largest of them: pairs (times, reach), rising.
    """

    share: Fraction
    side: int = 0
    reach: Fraction = Fraction(0)
    rounding: Fraction = Fraction(0)
    narrower: tuple[tuple[Fraction, Fraction], ...] = ()


class Search(NamedTuple):
    """A target in the tree of one group, whose noisy total is known."""

    group: int
    total: int
    target: Target


Asked = Callable[[Sequence[Cut]], Sequence[int]]
"""Noisy differences of some nodes, each node asked at most once."""


def depth(cells: int) -> int:
    """Levels of nodes above `cells` cells: the differences that one record moves, at most."""
    return (cells - 1).bit_length()


class _Place(NamedTuple):
    """A node on the way, and what is known of F at its ends.

    At depth d all are whole: positions, counts and sums of absolute weights in units of 2^-d,
    squared weights in units of 4^-d. Weights of the total are kept apart: they are the positions.
    """

    cut: Cut
    depth: int
    position: int  # weight of the total in F(low); that in F(high) is one unit more
    low: int
    high: int
    absolute_low: int
    absolute_high: int
    squared_low: int
    squared_high: int
    product: int  # of the weights of F(low) and F(high)


class _Middle(NamedTuple):
    """F(middle) of a node, in the units of the depth below it."""

    position: int
    below: int
    absolute: int
    squared: int


def searched(cells: int, searches: Sequence[Search], asked: Asked) -> list[int]:
    """Cell in which each search ends.

    Args:
        cells: n, at least 1.
        searches: Each in the tree of its group.
        asked: Gives noisy differences; called once a level.

    Cost: `depth(cells)` calls, each for at most as many nodes as there are searches.
    """
    places = [_root(one.group, cells, one.total) for one in searches]
    while wide := {place.cut: place for place in places if place.cut.high - place.cut.low > 1}:
        middles = _middles(list(wide.values()), asked)
        halves = {cut: _halves(wide[cut], middle) for cut, middle in middles.items()}
        places = [
            halves[place.cut][_falls_short(middles[place.cut], place, search)]
            if place.cut in halves
            else place
            for place, search in zip(places, searches, strict=True)
        ]
    return [place.cut.low for place in places]


def counts_below(cells: int, total: int, asked: Asked, *, group: int = 0) -> list[Fraction]:
    """Noisy F(1), ..., F(cells) of one group, from all differences of its tree."""
    found = [Fraction(total)] * cells
    for place, middle in _every_middle(cells, total, asked, group):
        found[place.cut.middle - 1] = Fraction(middle.below, 2 << place.depth)
    return found


class Weight(NamedTuple):
    """Size of the weights of the noise in a cumulative count.

    Attributes:
        squared: Sum of the squared weights.
        absolute: Sum of the absolute weights.
        largest: A bound on the largest squared weight.
    """

    squared: Fraction
    absolute: Fraction
    largest: Fraction


@lru_cache(maxsize=64)
def weights_below(cells: int) -> tuple[Weight, ...]:
    """Weights of F(1), ..., F(cells) in the total and the differences of the tree."""
    found = [Weight(Fraction(1), Fraction(1), Fraction(1))] * cells
    for place, middle in _every_middle(cells, 0, lambda cuts: [0] * len(cuts), 0):
        unit = 2 << place.depth
        found[place.cut.middle - 1] = Weight(
            Fraction(middle.squared + middle.position**2, unit**2),
            Fraction(middle.absolute + middle.position, unit),
            max(Fraction(1, 4), Fraction(middle.position**2, unit**2)),
        )
    return tuple(found)


def _every_middle(
    cells: int, total: int, asked: Asked, group: int
) -> Iterator[tuple[_Place, _Middle]]:
    places = [_root(group, cells, total)]
    while places := [place for place in places if place.cut.high - place.cut.low > 1]:
        middles = _middles(places, asked)
        yield from ((place, middles[place.cut]) for place in places)
        places = [half for place in places for half in _halves(place, middles[place.cut])]


def _root(group: int, cells: int, total: int) -> _Place:
    return _Place(Cut(group, 1, 0, cells), 0, 0, 0, total, 0, 0, 0, 0, 0)


def _middles(places: Sequence[_Place], asked: Asked) -> dict[Cut, _Middle]:
    """Noisy F(middle) of nodes of one level."""
    cuts = [place.cut for place in places]
    return {
        place.cut: _middle(place, difference)
        for place, difference in zip(places, asked(cuts), strict=True)
    }


def _middle(place: _Place, difference: int) -> _Middle:
    unit = 1 << place.depth
    return _Middle(
        position=2 * place.position + 1,
        below=place.low + place.high + unit * difference,
        absolute=place.absolute_low + place.absolute_high + unit,
        squared=place.squared_low + place.squared_high + 2 * place.product + unit * unit,
    )


def _halves(place: _Place, middle: _Middle) -> tuple[_Place, _Place]:
    """The left and the right half of a node."""
    cut, below = place.cut, place.depth + 1
    left = _Place(
        cut=Cut(cut.group, 2 * cut.number, cut.low, cut.middle),
        depth=below,
        position=middle.position - 1,
        low=2 * place.low,
        high=middle.below,
        absolute_low=2 * place.absolute_low,
        absolute_high=middle.absolute,
        squared_low=4 * place.squared_low,
        squared_high=middle.squared,
        product=2 * (place.squared_low + place.product),
    )
    right = _Place(
        cut=Cut(cut.group, 2 * cut.number + 1, cut.middle, cut.high),
        depth=below,
        position=middle.position,
        low=middle.below,
        high=2 * place.high,
        absolute_low=middle.absolute,
        absolute_high=2 * place.absolute_high,
        squared_low=middle.squared,
        squared_high=4 * place.squared_high,
        product=2 * (place.product + place.squared_high),
    )
    return left, right


def _falls_short(middle: _Middle, place: _Place, search: Search) -> bool:
    """Whether F(middle) lies below the target and its band; decided in whole numbers."""
    share, side, reach, rounding, narrower = search.target
    over, under, unit = share.numerator, share.denominator, 2 << place.depth
    lead = under * middle.below - over * search.total * unit
    if not side:
        return lead < 0
    of_total = abs(under * middle.position - over * unit)
    halves = int(2 * rounding)
    lead = 2 * lead - side * halves * (under * middle.absolute + of_total)
    squared = under * under * middle.squared + of_total * of_total
    largest = max((under * unit // 2) ** 2, of_total * of_total)  # a difference weighs half a hat
    for times, own in narrower:
        if squared * times.denominator >= largest * times.numerator:
            reach = own
    # lead < side * 2 reach * sqrt(squared), squared so that no root is taken.
    left = (lead * reach.denominator) ** 2
    right = 4 * reach.numerator**2 * squared
    if side > 0:
        return lead < 0 or left < right
    return lead < 0 and left > right


class LevelWeights(NamedTuple):
    """Weights of the noise in F(c) less a share of the total, c over the middles of a level.

    Attributes:
        squared: Sums of the squared weights, shape (middles,).
        absolute: Sums of the absolute weights, shape (middles,).
        largest: Bounds on the largest squared weights, shape (middles,).
    """

    squared: FloatArray
    absolute: FloatArray
    largest: FloatArray


def middle_weights(levels: int, share: Fraction = Fraction(0)) -> list[LevelWeights]:
    """Weights at all middles of the first levels of a tree that is halved evenly, level by level.

    Middles lie at the positions (2 i + 1) / 2^level, from left to right.
    """
    low, high, product = np.zeros(1), np.zeros(1), np.zeros(1)
    low_sum, high_sum = np.zeros(1), np.zeros(1)
    found = []
    for level in range(1, levels + 1):
        squared = (low + high + 2 * product + 1) / 4
        absolute = (low_sum + high_sum + 1) / 2
        position = (2 * np.arange(1 << (level - 1)) + 1) / (1 << level)
        of_total = np.abs(position - float(share))
        largest = np.maximum(of_total**2, 0.25)
        found.append(LevelWeights(squared + of_total**2, absolute + of_total, largest))
        left, right = (low + product) / 2, (product + high) / 2
        low, high = _alternating(low, squared), _alternating(squared, high)
        low_sum, high_sum = _alternating(low_sum, absolute), _alternating(absolute, high_sum)
        product = _alternating(left, right)
    return found


def widest(cells: int, share: Fraction, reach: Callable[[float], float], rounding: float) -> float:
    """Largest ``reach(spread) |w|_2 + rounding |w|_1`` over all middles of a tree.

    Args:
        cells: Of the tree.
        share: Of the total, which w has beside F(middle).
        reach: By the spread of the weights, falling; see `Target.narrower`.
        rounding: See `Target`.
    """
    levels = depth(cells)
    norm, absolute = largest_weights(cells, share)
    if not levels or levels > DEEPEST_ENUMERATED:
        return reach(1) * norm + rounding * absolute
    found = 0.0
    for weights in middle_weights(levels, share):
        spreads = weights.squared / weights.largest * (1 - 1e-12)
        own = np.array([reach(spread) for spread in np.floor(spreads).tolist()])
        found = max(
            found, float((own * np.sqrt(weights.squared) + rounding * weights.absolute).max())
        )
    return found


def _alternating(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.stack([first, second], axis=1).reshape(-1)


def largest_weights(cells: int, share: Fraction) -> tuple[float, float]:
    """Bounds of |w|_2 and |w|_1 over all middles of a tree of so many cells.

    Down to `DEEPEST_ENUMERATED` levels they are the largest of `middle_weights`. A difference
    weighs half a hat at the middle. The squared hats of n levels add up to at most 4 n / 9 + 5 / 9,
    near the position 1/3, and the hats to 2 n / 3 + 1 / 3; deeper trees are bounded by the sums of
    their upper and of their lower levels, each at its own largest.
    """
    levels = depth(cells)
    if not levels:
        of_total = float(max(share, 1 - share))
        return of_total, of_total
    listed = middle_weights(min(levels, DEEPEST_ENUMERATED), share)
    further = max(0, levels - DEEPEST_ENUMERATED)
    squared = max(float(weights.squared.max()) for weights in listed)
    absolute = max(float(weights.absolute.max()) for weights in listed)
    if further:
        squared += further * _SQUARED_A_LEVEL + _SQUARED_ONCE + 2 * _FINER_POSITION
        absolute += further * _ABSOLUTE_A_LEVEL + _ABSOLUTE_ONCE + _FINER_POSITION
    return float(np.sqrt(squared)), absolute
