"""How many items there are, from how many buckets of a random hash are seen to hold some.

Promise: every bound is a function of whole numbers alone, the same on every machine, and errs with
at most the probability that it is given. Knows no noise but through one number tau: a bucket is
seen if its noisy count is above tau, and noise is at most tau (an event that the caller pays for).

**Too many seen.** Seen buckets hold an item. The number of buckets that D items fill is a sum of
negatively associated indicators (Dubhashi, Ranjan 1998), each with probability
p = 1 - (1 - 1/M)^D, so Chernoff's bound for independent ones holds,
P(at least n) <= exp(-M kl(n/M, p)); moving one item changes the number by one at most, so
P(at least n) <= exp(-2 (n - M p)^2 / D) as well (McDiarmid 1989). The smaller counts.

**Too many unseen.** A bucket of more than 2 tau items has a count above 2 tau and is seen. The
number of buckets with at most c items is again a sum of negatively associated indicators, each with
probability at most exp(-D kl(c/D, 1/M)) if c < D/M, so P(at least z unseen) <= exp(-M kl(z/M, q)).

**With random signs**, where counts may be negative, a bucket is seen if its noisy sum is beyond tau
on either side. The sum of n whole numbers that are not 0, with random signs, lies in a half-open
interval of length 2 with probability at most C(n, n/2) / 2^n <= sqrt(2 / (pi n)) (Erdos 1945 on
Littlewood, Offord), hence in [-2 tau, 2 tau] with at most (2 tau + 1) sqrt(2 / (pi n)): below 1/4
from n = 41 (tau + 1)^2 on. Given how the items fall the signs of different buckets are independent,
and the bound falls in n, so that the product of the buckets' factors is bounded as before, with
q = P(a bucket has fewer than n items) + that bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import lru_cache

DIGITS = 28
MOST = 1 << 62
"""A number of items that stands for no bound."""

_PI = Decimal("3.14159265358979323846264338327")
_ONE = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeing:
    """When a bucket is seen, and how surely one that holds many items is.

    Attributes:
        tau: What a noisy count must be above, in absolute value with `signed`.
        signed: Whether every item's count has a random sign.
    """

    tau: int
    signed: bool = False

    def unseen(self, items: int, buckets: int) -> Decimal:
        """Bound on the probability that a given bucket of so many is not seen; falls in `items`."""
        if not self.signed:
            return _few(2 * self.tau, items, buckets)
        if buckets == 1:
            return min(_ONE, (2 * self.tau + 1) * (2 / (_PI * items)).sqrt())
        least = 15 * items // (16 * buckets)  # nearly all that fall there on average
        if least < 16:  # below, the bound is 1, and not yet falling
            return _ONE
        hidden = (2 * self.tau + 1) * (2 / (_PI * least)).sqrt()
        return min(_ONE, _few(least - 1, Decimal(16 * buckets * least) / 15, buckets) + hidden)

    @property
    def heavy(self) -> int:
        """Items in a bucket from which it is seen: surely, or with signs in 3 of 4 cases."""
        return 41 * (self.tau + 1) ** 2 if self.signed else 2 * self.tau + 1


@lru_cache(maxsize=4096)
def fewest(seen: int, buckets: int, rarity: Decimal) -> int:
    """Least number of items that does not make so many seen buckets too rare.

    Args:
        seen: Buckets that surely hold an item.
        buckets: Of the hash.
        rarity: ln(1/miss).
    """
    if seen <= 1 or buckets == 1:
        return min(seen, 1)
    with localcontext(Context(prec=DIGITS)):
        per_item = (_ONE - _ONE / buckets).ln()

        def excluded(items: int) -> bool:
            if items < seen:
                return True
            share = _ONE - (items * per_item).exp()
            mean = buckets * share
            if mean >= seen:
                return False
            if 2 * (seen - mean) ** 2 >= rarity * items:
                return True
            return buckets * _kl(Decimal(seen) / buckets, share) >= rarity

        return _first(lambda items: not excluded(items), seen)


@lru_cache(maxsize=4096)
def most(unseen: int, buckets: int, seeing: Seeing, rarity: Decimal) -> int:
    """Greatest number of items that does not make so many unseen buckets too rare.

    Args:
        unseen: Buckets that were not seen.
        buckets: Of the hash.
        seeing: When a bucket is seen.
        rarity: ln(1/miss).

    Returns:
        `MOST` if the unseen buckets exclude nothing.
    """
    if unseen == 0:
        return MOST
    if buckets == 1 and not seeing.signed:
        return 2 * seeing.tau
    with localcontext(Context(prec=DIGITS)):
        share = Decimal(unseen) / buckets

        def excluded(items: int) -> bool:
            chance = seeing.unseen(items, buckets)
            return chance < share and buckets * _kl(share, chance) >= rarity

        found = _first(excluded, 1)
        return found if found == MOST else found - 1


def _few(most_items: int, items: int | Decimal, buckets: int) -> Decimal:
    """Bound on the probability that a bucket gets at most so many of the items."""
    share = Decimal(most_items) / items
    chance = _ONE / buckets
    if share >= chance:
        return _ONE
    return (-items * _kl(share, chance)).exp()


def _kl(share: Decimal, chance: Decimal) -> Decimal:
    """Divergence of coins, ln(...) with 0 ln 0 = 0; the chance may be 1 only if the share is."""
    first = share * (share / chance).ln() if share else Decimal(0)
    rest = _ONE - share
    return first + (rest * (rest / (_ONE - chance)).ln() if rest else Decimal(0))


def _first(holds: Callable[[int], bool], least: int) -> int:
    """Least number from `least` on at which a condition holds that stays true; `MOST` if none."""
    high = max(least, 1)
    while not holds(high):
        if high >= MOST:
            return MOST
        high = min(2 * high, MOST)
    low = least
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@lru_cache(maxsize=4096)
def most_that_fill(filled: int, buckets: int, rarity: Decimal) -> int:
    """Greatest number of items that does not make so few filled buckets too rare.

    Args:
        filled: A number of buckets that surely are not exceeded by those that hold an item.
        buckets: Of the hash.
        rarity: ln(1/miss).
    """
    if filled >= buckets:
        return MOST
    with localcontext(Context(prec=DIGITS)):
        per_item = (_ONE - _ONE / buckets).ln()
        share = Decimal(filled) / buckets

        def excluded(items: int) -> bool:
            chance = _ONE - (items * per_item).exp()
            if chance <= share:
                return False
            if 2 * (buckets * chance - filled) ** 2 >= rarity * items:
                return True
            return chance == 1 or buckets * _kl(share, chance) >= rarity

        # An item above the buckets' own number is no further chance, so the search begins there.
        return _first(excluded, filled + 1) - 1


@lru_cache(maxsize=4096)
def fewest_by_median(level: int, instances: int, rarity: Decimal) -> int:
    """Least number of items that does not make the median of the instances' levels too rare.

    An instance puts an item at a level of at least k with probability 2^-k, and shows the highest
    level at which it sees some.

    Args:
        level: The median of what an odd number of instances show; -1 where it shows none.
        instances: Independent hashes.
        rarity: ln(1/miss).
    """
    if level <= 0:
        return level + 1
    with localcontext(Context(prec=DIGITS)):
        miss, rare = (-rarity).exp(), (_ONE - Decimal(2) ** -level).ln()

        def allowed(items: int) -> bool:
            return _most_of(instances, _ONE - (items * rare).exp()) > miss

        return _first(allowed, 1)


@lru_cache(maxsize=4096)
def most_by_median(level: int, instances: int, seeing: Seeing, rarity: Decimal) -> int:
    """Greatest number of items that does not make the median of the levels too rare.

    More than half of the instances did not see the bucket one level up, which takes an item with
    probability 2^-(level + 2).
    """
    with localcontext(Context(prec=DIGITS)):
        miss = (-rarity).exp()

        def excluded(items: int) -> bool:
            return _most_of(instances, seeing.unseen(items, 1 << (level + 2))) <= miss

        found = _first(excluded, 1)
        return found if found == MOST else found - 1


def _most_of(instances: int, chance: Decimal) -> Decimal:
    """Probability that more than half of an odd number of coins show heads."""
    if chance == 1:
        return _ONE
    rest = _ONE - chance
    return sum(
        (
            math.comb(instances, heads) * chance**heads * rest ** (instances - heads)
            for heads in range(instances // 2 + 1, instances + 1)
        ),
        Decimal(0),
    )
