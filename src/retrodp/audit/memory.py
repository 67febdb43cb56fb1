"""Planted faults of retroactivity: mechanisms that remember what was deleted.

For the audit's own control only: every one of them must be caught, or the audit proves nothing.
Each wraps a sound mechanism and breaks one law, the way real systems do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from retrodp.audit.histories import Plant
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Adaptive, Mechanism, Retroactive
from retrodp.noise.factors.contract import Factor
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.privacy.loss import PrivacyLoss


@dataclass(slots=True)
class _Tampered:
    """A sound mechanism and whatever is remembered beside it."""

    inner: Mechanism
    seen: dict[bytes, int] = field(default_factory=dict)
    before: dict[bytes, int] = field(default_factory=dict)
    changes: int = 0

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def retroactive(self) -> Retroactive:
        return self.inner.retroactive

    @property
    def adaptive(self) -> Adaptive:
        return self.inner.adaptive

    @property
    def step(self) -> Any:
        return self.inner.step

    @property
    def factor(self) -> Factor:
        return self.inner.factor

    def cost(self) -> tuple[PrivacyLoss, ...]:
        return self.inner.cost()

    def describe(self) -> dict[str, Any]:
        return self.inner.describe()

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        return self.inner.release(round_, exact, keys)

    def moved(self, exact: Mapping[bytes, int]) -> dict[bytes, int]:
        """What changed since the last round; counts the changes."""
        labels = exact.keys() | self.before.keys()
        moved = {
            label: exact.get(label, 0) - self.before.get(label, 0)
            for label in labels
            if exact.get(label, 0) != self.before.get(label, 0)
        }
        self.before = dict(exact)
        self.changes += len(moved)
        return moved


def _with_values(answer: Answer, values: list[int | None]) -> Answer:
    return replace(answer, values=tuple(values))


def _shifted(answer: Answer, coordinates: Sequence[int], keys: NoiseKeys) -> Answer:
    """The answer with further noise, each value's at the coordinate that is given for it."""
    key = keys.lasting_key(release=answer.release, purpose="planted")
    where = Coordinates.of_indices(np.array(coordinates, dtype=np.int64))
    words = BlockPRF(key).blocks(where)[:, 0] >> 61
    return _with_values(
        answer,
        [
            None if value is None else value + word
            for value, word in zip(answer.values, words.tolist(), strict=True)
        ],
    )


class UpdateCounter(_Tampered):
    """Noise keyed by how often the data changed."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        self.moved(exact)
        answer = self.inner.release(round_, exact, keys)
        return _shifted(answer, [self.changes] * len(answer), keys)


class RedrawnAfterDeletion(_Tampered):
    """Noise drawn anew after each deletion, so that the deletion can be seen to have happened."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        fell = sum(change < 0 for change in self.moved(exact).values())
        self.seen[b""] = self.seen.get(b"", 0) + fell
        answer = self.inner.release(round_, exact, keys)
        drawn = self.seen[b""]
        return _shifted(answer, [drawn] * len(answer), keys) if drawn else answer


class LargestSoFar(_Tampered):
    """A cache of the largest totals: what was taken back still counts."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        for label, total in exact.items():
            self.seen[label] = max(total, self.seen.get(label, total))
        return self.inner.release(round_, self.seen, keys)


class Smoothed(_Tampered):
    """Totals averaged with those of the round before."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        labels = exact.keys() | self.before.keys()
        mean = {label: (exact.get(label, 0) + self.before.get(label, 0)) // 2 for label in labels}
        self.before = dict(exact)
        return self.inner.release(round_, mean, keys)


class KeptKeys(_Tampered):
    """Hysteresis: a bin that was published once keeps its line, at the threshold."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        answer = self.inner.release(round_, exact, keys)
        if answer.threshold is None or answer.keys is None:
            return answer
        lines = dict.fromkeys((label.decode() for label in self.seen), answer.threshold)
        lines |= {
            key: value or 0 for key, value in zip(answer.keys, answer.values, strict=True)
        }
        self.seen |= {key.encode(): 1 for key in lines}
        ordered = sorted(lines, key=str.encode)
        values = [lines[key] for key in ordered]
        return _with_values(replace(answer, keys=tuple(ordered)), [*values])


class IndexOfArrival(_Tampered):
    """A dictionary's index as coordinate of the noise: the order of first arrival is remembered."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        for label in sorted(exact):
            self.seen.setdefault(label, len(self.seen))
        answer = self.inner.release(round_, exact, keys)
        labels = ("",) if answer.keys is None else answer.keys
        return _shifted(answer, [self.seen.get(key.encode(), 0) for key in labels], keys)


class Watermark(_Tampered):
    """Late data are left out: a total may not change by more than in the round before."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        allowed = self.seen.get(b"", 1)
        held = {
            label: min(total, self.before.get(label, 0) + allowed) for label, total in exact.items()
        }
        self.seen[b""] = max(1, max((abs(c) for c in self.moved(exact).values()), default=1))
        return self.inner.release(round_, held, keys)


class WiderAfterChanges(_Tampered):
    """The stated error grows with the changes of the past, like an instance-adaptive mechanism."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        self.moved(exact)
        answer = self.inner.release(round_, exact, keys)
        return replace(answer, half=answer.half + self.changes)


MEMORY_FAULTS: Mapping[str, Plant] = {
    "noise keyed by the number of changes": UpdateCounter,
    "noise redrawn after each deletion": RedrawnAfterDeletion,
    "largest total kept": LargestSoFar,
    "totals smoothed over rounds": Smoothed,
    "keys that stay published": KeptKeys,
    "index of arrival as coordinate": IndexOfArrival,
    "late changes held back": Watermark,
    "error that counts the changes of the past": WiderAfterChanges,
}
