"""How many different values survive, for streams whose items seldom come and go: with memory.

The mechanism of Jain, Kalemaj, Raskhodnikova, Sivakumar and Smith (2023): an item that flipped w
times is frozen, so that one record moves the number little, and a tree hides it with noise that
grows with the root of w and not of the horizon. What it costs is what it remembers: how often each
item flipped, long after its records were deleted. It is private, and it is not retroactive; KKMNS
theorem 6.4 says that nothing with such errors can be.

The state holds, for each item that was ever there, 16 bytes of a keyed hash of its label and a
count of its flips. Whoever has the ledger and the key can ask whether a label was ever there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import StoreCorruptError
from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive, Seen
from retrodp.mechanisms.parts import part_of
from retrodp.noise.key import NoiseKeys
from retrodp.noise.labels import label_words
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss

STATE = "state"  # purpose of the lasting key that hides items
MOST_FLIPS = (1 << 16) - 2
_FORMAT = b"\x01"
_HASH = "S16"  # all of full length, so that padding zeros compare like any byte


class Flips(NamedTuple):
    """How often each item flipped: the whole memory.

    Attributes:
        items: Keyed hashes, sorted, dtype "S16", shape (n,).
        counts: Flips of each, "<u2", shape (n,); at most one more than the largest limit, where
            they are counted no further.
    """

    items: NDArray[np.bytes_]
    counts: NDArray[np.uint16]

    @classmethod
    def none(cls) -> Self:
        """Of no item."""
        return cls(np.empty(0, _HASH), np.empty(0, "<u2"))

    @classmethod
    def from_bytes(cls, state: bytes) -> Self:
        """What `to_bytes` wrote."""
        body = state[len(_FORMAT) :]
        items, rest = divmod(len(body), 18)
        if not state.startswith(_FORMAT) or rest:
            raise StoreCorruptError(
                "The state of a release cannot be read.", do="Restore the store from a back-up."
            )
        counts = np.frombuffer(body, "<u2", offset=16 * items)
        return cls(np.frombuffer(body, _HASH, count=items), counts)

    def to_bytes(self) -> bytes:
        """Canonical: a byte for the format, hashes in order, counts in their order."""
        return _FORMAT + self.items.tobytes() + self.counts.tobytes()

    def after(self, present: NDArray[np.bytes_], most: int) -> Flips:
        """The flips after a round.

        Args:
            present: Hashes of the items that are there now, sorted, each once.
            most: The largest limit.
        """
        # An item begins absent, so it is there after an odd number of flips.
        there = _among(self.items, present)
        flipped = (self.counts <= most) & ((self.counts & 1).astype(bool) != there)
        new = present[~_among(present, self.items)]
        items = np.concatenate([self.items, new])
        counts = np.concatenate([self.counts + flipped, np.ones(len(new), "<u2")])
        order = np.argsort(items, kind="stable")
        return Flips(items[order], counts[order].astype("<u2"))

    def truncated(self, limit: int) -> int:
        """Items that are there, each as it was when it had flipped `limit` times."""
        return int((np.minimum(self.counts, limit) & 1).sum(dtype=np.int64))

    def beyond(self, limit: int) -> int:
        """Items that flipped more often than `limit` times."""
        return int(np.count_nonzero(self.counts > limit))


def _among(some: NDArray[np.bytes_], others: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    """Whether each of `some` is among the sorted `others`."""
    if not len(others):
        return np.zeros(len(some), bool)
    place = np.minimum(np.searchsorted(others, some), len(others) - 1)
    found: NDArray[np.bool_] = others[place] == some
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Flippancy:
    """Publishes the truncated number of items, under the limit that gives the narrowest interval.

    Guarantee: all truncated numbers and all numbers of items beyond a limit form one vector whose
    losses add; choosing between them is post-processing. Not retroactive. Under Laplace noise and
    with one limit or several alike; with Gaussian noise of a factor that reaches into the future
    nothing is claimed for streams that react to earlier answers. The interval holds for any data:
    an item beyond the limit may be there or not, and there are at most so many. Source: Jain et al.
    2023, algorithms 1 to 3, with counters in the place of the sparse vector technique; sensitivity
    as in `retrodp.noise.factors.switching`.

    Attributes:
        name: Of the release.
        limits: w, from the least on.
        counts: Noise of the truncated numbers, one a limit.
        beyond: Noise of the numbers of items beyond each limit.
        level: Coverage of the intervals.
        facts: Public facts about the choice of the method.
    """

    name: str
    limits: tuple[int, ...]
    counts: tuple[CalibratedNoise, ...]
    beyond: tuple[CalibratedNoise, ...]
    level: Fraction
    facts: tuple[tuple[str, Any], ...] = ()

    @property
    def step(self) -> Fraction:
        """One item."""
        return self.counts[0].step

    @property
    def factor(self) -> AnyFactor:
        """Of all its noise."""
        return self.counts[0].process.factor

    @property
    def retroactive(self) -> Retroactive:
        """It keeps books of flips, which a retroactive mechanism may not (KKMNS remark 6.5)."""
        return "no"

    @property
    def adaptive(self) -> Adaptive:
        """Nothing is proved for Gaussian nodes that reach into the future."""
        return "yes" if self.counts[0].process.law == "laplace" else "no"

    @property
    def instead(self) -> str:
        """What to plan to have every deletion forgotten."""
        return 'kind = "distinct" with method = "fresh" or "ladder"'

    @property
    def watches(self) -> bool:
        """The totals tell what is there."""
        return False

    def begin(self) -> bytes:
        """No item was ever there."""
        return Flips.none().to_bytes()

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        """The answer of one round; `seen.totals` holds the records of each item."""
        key = keys.lasting_key(release=self.name, purpose=STATE)
        present = hashed((label for label, total in seen.totals.items() if total > 0), key)
        flips = Flips.from_bytes(state).after(present, self.limits[-1])
        return self.answer(round_, flips, keys), flips.to_bytes()

    def answer(self, round_: int, flips: Flips, keys: NoiseKeys) -> Answer:
        """What is published of the flips after a round: the narrowest of the intervals."""
        candidates = [
            _interval(
                round_,
                limit,
                flips.truncated(limit) + _draw(count, round_, keys),
                flips.beyond(limit) + _draw(beyond, round_, keys),
                noises=(count, beyond),
            )
            for limit, count, beyond in zip(self.limits, self.counts, self.beyond, strict=True)
        ]
        value, bounds = min(candidates, key=lambda one: one[1].high - one[1].low)
        return Answer.of_one(
            value, bounds, release=self.name, round=round_, step=self.step, level=self.level
        )

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """All numbers over the whole horizon for one unit."""
        return tuple(loss for noise in (*self.counts, *self.beyond) for loss in noise.losses())

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those of the least limit, while no item is beyond it."""
        return {
            "mechanism": "distinct count of items with few flips",
            **self.counts[0].describe(),
            "level": str(self.level),
            "flips": list(self.limits),
            "parts": [
                part_of(noise, f"up to {limit} flips")
                for limit, noise in zip(self.limits, self.counts, strict=True)
            ],
            **dict(self.facts),
        }


def hashed(labels: Iterable[bytes], key: bytes) -> NDArray[np.bytes_]:
    """Keyed hashes of labels, sorted, each once."""
    words = label_words([*labels], key)
    return np.unique(np.ascontiguousarray(words).view(_HASH).ravel())


def _draw(noise: CalibratedNoise, round_: int, keys: NoiseKeys) -> int:
    return int(noise.draw(round_, keys, Coordinates.of_indices(1))[0])


def _interval(
    round_: int,
    limit: int,
    value: int,
    beyond: int,
    *,
    noises: tuple[CalibratedNoise, CalibratedNoise],
) -> tuple[int, Bounds]:
    """A noisy truncated number, and how far the true one can be from it.

    An item beyond the limit is counted as it was after so many flips: there if they are odd. So it
    is counted too often or too seldom, never both.
    """
    count, more = noises
    at = round_ - 1
    half, half_all = count.half[at], count.half_all[at]
    strays = max(0, beyond + more.half[at])
    strays_all = max(0, beyond + more.half_all[at])
    above, below = (0, 1) if limit % 2 else (1, 0)
    bounds = Bounds(
        count.stddev[at],
        value - half - below * strays,
        value + half + above * strays,
        value - half_all - below * strays_all,
        value + half_all + above * strays_all,
    )
    # Of many items beyond the limit half are taken to be as they were; of none that is noise.
    moved = (above - below) * (beyond // 2) if beyond > more.half[at] else 0
    return value + moved, bounds
