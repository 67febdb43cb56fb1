"""Values of a column as numbers of at most 64 bits, so that a search can spell out their names.

A text is its first bytes, an integer or number its step from the least value, a date its day. A
number is cut to its leading bits at each level, so that whoever knows only noisy counts of cut
numbers can find the full ones from the top down, and never has to be told a name.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.plan.columns import Column
from retrodp.statistics.label import BinLabels

Words = NDArray[np.uint64]

LEVEL_BITS = 12
"""Leading bits that one level adds: 4,096 continuations of what was found are looked at."""

_DATE_BITS = dt.date.max.toordinal().bit_length()


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """The numbers of a column's values.

    Attributes:
        column: Text, integer, number or date.
        length: Bytes of a text that are kept.
    """

    column: Column
    length: int

    @property
    def bits(self) -> int:
        """Length of a number."""
        match self.column.type:
            case "text":
                return 8 * self.length
            case "date":
                return _DATE_BITS
            case _:
                _, (least, greatest) = self.column.grid
                return max(1, (greatest - least).bit_length())

    @property
    def shifts(self) -> tuple[int, ...]:
        """Bits that are cut off at each level, from the first on; none at the last."""
        return (*tuple(range(self.bits, 0, -LEVEL_BITS))[1:], 0)

    def of(self, values: Sequence[object]) -> Words:
        """Numbers of values that are not null, shape (n,)."""
        match self.column.type:
            case "text":
                padded = _cut([*map(str, values)], self.length)
                bytes_ = np.zeros((len(values), 8), np.uint8)
                bytes_[:, 8 - self.length :] = padded.view(np.uint8).reshape(-1, self.length)
                return bytes_.view(">u8").ravel().astype(np.uint64)
            case "date":
                days = [dt.date.fromisoformat(str(value)).toordinal() for value in values]
                return np.array(days, dtype=np.uint64)
            case _:
                _, (least, _) = self.column.grid
                steps = [value - least for value in values if isinstance(value, int)]
                return np.array(steps, dtype=np.uint64)

    def label(self, code: int) -> str | None:
        """The name that is published for a number; None for a number that no value has."""
        match self.column.type:
            case "text":
                try:
                    value: object = code.to_bytes(self.length, "big").rstrip(b"\0").decode()
                except UnicodeDecodeError:
                    return None
                if not str(value).isprintable():
                    return None
            case "date":
                if not 1 <= code <= dt.date.max.toordinal():
                    return None
                value = dt.date.fromordinal(code).isoformat()
            case _:
                _, (least, greatest) = self.column.grid
                if least + code > greatest:
                    return None
                value = least + code
        return BinLabels(columns=(self.column,)).text((value,))


def _cut(texts: list[str], length: int) -> NDArray[np.bytes_]:
    """First bytes of each text, cut between characters, padded with zeros; shape (n,)."""
    try:
        return np.array(texts, dtype=f"S{length}")  # a character is a byte, if all are ASCII
    except UnicodeEncodeError:
        whole = [text.encode()[:length].decode(errors="ignore").encode() for text in texts]
        return np.array(whole, dtype=f"S{length}")
