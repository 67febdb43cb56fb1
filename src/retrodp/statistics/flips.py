"""Records per item, for mechanisms that follow each item through a bounded number of flips.

An item flips in a round in which it begins or ceases to be present. The truncated number of items
with limit w takes each item as it was until it has flipped w times, and as it then was for ever. A
record moves it as much as w signed windows do, which is far less than the number itself moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from retrodp.privacy.norms import Norms
from retrodp.statistics.contract import Component
from retrodp.statistics.items import ALL, Items
from retrodp.stream.batch import Batch

WATCH = Fraction(1, 4)
"""Part of the budget that counts the items beyond a limit; the intervals need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Flips up to which items are followed, and what that costs.

    Attributes:
        flips: w, at least 1.
        l2_squared: Squared L2 norm of the node shifts of any record, in windows, rounded up.
    """

    flips: int
    l2_squared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlippingItems:
    """Records of each item, under one limit or several.

    Attributes:
        items: Which item a record is.
        limits: From the least on; each has a part of the budget, in proportion to one over its
            place, so that streams that flip little pay little.
    """

    items: Items
    limits: tuple[Limit, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return self.items.columns

    @property
    def components(self) -> tuple[Component, ...]:
        """For each limit the truncated number, then for each the items beyond it.

        Whether an item is beyond a limit changes once in a stream, so a record moves it by one in
        one window.
        """
        weights = [Fraction(1, place) for place in range(1, len(self.limits) + 1)]
        counts = [
            Component(
                f"up to {limit.flips}",
                1,
                Fraction(1),
                (1 - WATCH) * weight / sum(weights),
                (ALL,) * limit.flips,
                Norms(limit.flips, limit.l2_squared),
            )
            for limit, weight in zip(self.limits, weights, strict=True)
        ]
        share = WATCH / len(self.limits)
        beyond = [
            Component(f"beyond {limit.flips}", 1, Fraction(1), share, (ALL,))
            for limit in self.limits
        ]
        return (*counts, *beyond)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per item."""
        return self.items.counted(batch)
