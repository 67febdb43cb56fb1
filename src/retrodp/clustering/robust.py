"""Robust centres: few changes for every arrival, whatever arrives.

Promise: a spell of n arrivals changes at most 4 n centres. Knows published places and weights.

Source: Fichtenberger, Lattanzi, Norouzi-Fard, Svensson, Consistent k-clustering for general metrics
(2021), where a spell is an epoch. Their steps are kept, their constants are milder, and what a fresh
clustering costs comes from local search.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from retrodp.clustering.medoids import Medoids

MISSED = Fraction(5, 4)
"""Cost, over that of all centres, at which no more of them are removed."""

PART = 2
"""One in so many of the centres that could be removed makes room for arrivals."""

GOOD = Fraction(13, 10)
"""Cost, over that of a fresh clustering, at which a spell's new centres are good enough."""

CLOSE, SHARE, RING = 200, 5, 10
"""A centre is made robust up to 1 / 200 of the way to the next centre: within balls whose radii are
powers of 10, unless the points of a ball are a fifth of its radius away from it on average."""


class Spell(NamedTuple):
    """What the current spell remembers; places of representatives.

    Attributes:
        initial: Centres with which it began, in no particular order; empty before the first.
        fresh: Its arrivals so far.
        left: Arrivals that are still taken as centres at once; -1 between spells.
    """

    initial: list[int] = []  # noqa: RUF012  never changed
    fresh: list[int] = []  # noqa: RUF012
    left: int = -1

    def arrived(
        self, medoids: Medoids, centres: list[int], place: int, *, k: int, fresh_cost: int
    ) -> tuple[list[int], Spell]:
        """Centres after one arrival.

        Args:
            medoids: Places and weights of the block.
            centres: Places.
            place: That arrived.
            k: Most centres.
            fresh_cost: Of a clustering found anew.
        """
        spell = self
        if spell.left < 0:
            if len(centres) < k:
                return _with(medoids, centres, place), spell
            centres, spell = _begun(medoids, centres)
        spell = spell._replace(fresh=[*spell.fresh, place])
        if spell.left > 0:
            return _with(medoids, centres, place), spell._replace(left=spell.left - 1)
        return _ended(medoids, spell, k, fresh_cost), Spell()


def _with(medoids: Medoids, centres: list[int], place: int) -> list[int]:
    """And the arrival, unless a centre is there."""
    return centres if medoids.taken(place, centres) else [*centres, place]


def _begun(medoids: Medoids, centres: list[int]) -> tuple[list[int], Spell]:
    """Without the centres that make room, and the spell in which they do."""
    removals = medoids.removals(centres)
    most = MISSED * removals[0][0]
    missed_little = sum(cost <= most for cost, _ in removals) - 1
    room = missed_little // PART
    return removals[room][1], Spell(initial=list(centres), fresh=[], left=room)


def _ended(medoids: Medoids, spell: Spell, k: int, fresh_cost: int) -> list[int]:
    """At most k centres out of the initial ones, the arrivals, and as few others as are needed."""
    enough = GOOD * fresh_cost
    union = list(dict.fromkeys([*spell.initial, *spell.fresh]))
    most = len(union) + len(spell.fresh)
    while True:
        cost, chosen = medoids.removals(union)[max(0, len(union) - k)]
        if cost <= enough or len(union) >= most:
            break
        union.append(medoids.addition(union))
    kept = [place for place in chosen if place in spell.initial]
    for place in chosen:
        if place not in spell.initial:
            others = [other for other in chosen if other != place]
            kept = _with(medoids, kept, _robust(medoids, place, others))
    return kept


def _robust(medoids: Medoids, place: int, others: list[int]) -> int:
    """The place, or one near it that stays good as more points arrive around it."""
    lengths = medoids.lengths(place)
    least = medoids.least_length()
    if not others or not least:
        return place
    limit = int(lengths[others].min())
    radii = [least * RING]
    while radii[-1] * CLOSE < limit:
        radii.append(radii[-1] * RING)
    if limit <= least * CLOSE:
        return place
    for radius in reversed(radii):
        ball = np.flatnonzero((lengths <= radius) & (medoids.weights > 0)).tolist()
        weights, away = medoids.weights[ball].tolist(), lengths[ball].tolist()
        spread = sum(weight * one for weight, one in zip(weights, away, strict=True))
        if ball and spread * SHARE < radius * sum(weights):
            place = ball[medoids.middle(ball)]
            lengths = medoids.lengths(place)
    return place
