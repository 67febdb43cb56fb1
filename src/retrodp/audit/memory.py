"""Planted faults of retroactivity: mechanisms that remember what was deleted.

For the audit's own control only: every one of them must be caught, or the audit proves nothing.
Each wraps a sound mechanism and breaks one law, the way real systems do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from retrodp.audit.histories import Plant
from retrodp.audit.tamper import Tampered, by_rule
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates


def _noisier(answer: Answer, coordinates: Sequence[int], keys: NoiseKeys) -> Answer:
    """The answer with further noise, each value's at the coordinate that is given for it."""
    key = keys.lasting_key(release=answer.release, purpose="planted")
    where = Coordinates.of_indices(np.array(coordinates, dtype=np.int64))
    words = BlockPRF(key).blocks(where)[:, 0] >> np.uint64(61)
    values = [
        None if value is None else value + word
        for value, word in zip(answer.values, words.tolist(), strict=True)
    ]
    return replace(answer, values=tuple(values))


def _keyed_by_changes(
    self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    self.memory.moved(exact)
    answer = self.inner.release(round_, exact, keys)
    return _noisier(answer, [self.memory.changes] * len(answer), keys)


def _redrawn_after_deletion(
    self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    seen = self.memory.seen
    fell = sum(change < 0 for change in self.memory.moved(exact).values())
    drawn = seen[b""] = seen.get(b"", 0) + fell
    answer = self.inner.release(round_, exact, keys)
    return _noisier(answer, [drawn] * len(answer), keys) if drawn else answer


def _largest_so_far(
    self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    seen = self.memory.seen
    for label, total in exact.items():
        seen[label] = max(total, seen.get(label, total))
    return self.inner.release(round_, seen, keys)


def _smoothed(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    before = self.memory.before
    labels = exact.keys() | before.keys()
    mean = {label: (exact.get(label, 0) + before.get(label, 0)) // 2 for label in labels}
    self.memory.before = dict(exact)
    return self.inner.release(round_, mean, keys)


def _kept_keys(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    """A bin that was published once keeps its line, at the threshold."""
    answer = self.inner.release(round_, exact, keys)
    if answer.threshold is None or answer.keys is None:
        return answer
    lines: dict[str, int | None] = {}
    lines |= {label.decode(): answer.threshold for label in self.memory.seen}
    lines |= zip(answer.keys, answer.values, strict=True)
    self.memory.seen |= {key.encode(): 1 for key in lines}
    ordered = sorted(lines, key=str.encode)
    return replace(answer, keys=tuple(ordered), values=tuple(lines[key] for key in ordered))


def _index_of_arrival(
    self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    seen = self.memory.seen
    for label in sorted(exact):
        seen.setdefault(label, len(seen))
    answer = self.inner.release(round_, exact, keys)
    labels = ("",) if answer.keys is None else answer.keys
    return _noisier(answer, [seen.get(label.encode(), 0) for label in labels], keys)


def _held_back(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    """A total may not rise by more than the totals moved in the round before."""
    memory = self.memory
    allowed, before = memory.seen.get(b"", 1), dict(memory.before)
    held = {label: min(total, before.get(label, 0) + allowed) for label, total in exact.items()}
    moved = memory.moved(exact)
    memory.seen[b""] = max(1, max((abs(change) for change in moved.values()), default=1))
    return self.inner.release(round_, held, keys)


def _wider_after_changes(
    self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    """The stated error grows with the changes of the past, as instance-adaptive mechanisms do."""
    self.memory.moved(exact)
    answer = self.inner.release(round_, exact, keys)
    return replace(answer, half=answer.half + self.memory.changes)


MEMORY_FAULTS: Mapping[str, Plant] = {
    "noise keyed by the number of changes": by_rule(_keyed_by_changes),
    "noise redrawn after each deletion": by_rule(_redrawn_after_deletion),
    "largest total kept": by_rule(_largest_so_far),
    "totals smoothed over rounds": by_rule(_smoothed),
    "keys that stay published": by_rule(_kept_keys),
    "index of arrival as coordinate": by_rule(_index_of_arrival),
    "late changes held back": by_rule(_held_back),
    "error that counts the changes of the past": by_rule(_wider_after_changes),
}
