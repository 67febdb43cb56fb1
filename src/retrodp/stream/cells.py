"""The cells of an Arrow column, made into Python objects as late and as rarely as possible.

Promise: reads like the list of its cells, null as None; whoever needs only the distinct cells, or
instants as whole numbers, gets them without an object a row. Knows no plan and no meaning of a
column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from retrodp.stream.coded import CodedColumn

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MICROSECONDS = "us"


class Coded(NamedTuple):
    """Distinct cells and which row has which.

    Attributes:
        distinct: Cells.
        codes: Position in `distinct` of each row's cell.
        once: Whether it is known that no two cells are equal. A source that comes in codes may
            repeat one; 0.0 and -0.0 are two cells, but equal.
    """

    distinct: list[Any]
    codes: npt.NDArray[np.intp]
    once: bool


class Instants(NamedTuple):
    """A column of times as whole numbers.

    Attributes:
        micros: Microseconds since 1970-01-01, 0 where null.
        null: Where no time is given.
        local: Whether they count from a local 1970-01-01, for want of a zone.
    """

    micros: Ints
    null: Flags
    local: bool


class ArrowCells(Sequence[object]):
    """One column of a record batch; valid text, scalars only, times in whole microseconds."""

    def __init__(self, array: Any) -> None:
        """Take an array whose type `dictionary_encode` knows or that is a dictionary already."""
        self._array = array
        self._plain: list[object] | None = None

    @property
    def plain(self) -> list[object]:
        """All cells as Python objects."""
        if self._plain is None:
            self._plain = self._listed()
        return self._plain

    def _listed(self) -> list[object]:
        if _is_text(self._array.type):
            texts: list[object] = self._array.to_numpy(zero_copy_only=False).tolist()
            return texts
        distinct, codes, _ = self.coded()
        return CodedColumn(distinct, codes).values()

    def coded(self) -> Coded:
        """The distinct cells, one Python object each; null is the last of them, if there is one."""
        array = self._array
        given = pa.types.is_dictionary(array.type)
        coded = array if given else array.dictionary_encode()
        distinct = coded.dictionary.to_pylist()
        indices = coded.indices
        if indices.null_count:
            indices = pc.fill_null(indices.cast(pa.int64()), len(distinct))
            distinct.append(None)
        codes = indices.to_numpy(zero_copy_only=False)
        once = not given and _is_text(array.type)
        return Coded(distinct, codes.astype(np.intp, copy=False), once)

    def are_ascii(self) -> bool:
        """Whether it is known that all cells are texts of ASCII characters."""
        array = self._array
        plain = _is_text(array.type) and not array.null_count
        return plain and pc.all(pc.string_is_ascii(array)).as_py() is not False

    def instants(self) -> Instants | None:
        """The cells as whole numbers, if they are times of day; None if they are anything else."""
        kind = self._array.type
        if not pa.types.is_timestamp(kind):
            return None
        numbers = self._array.cast(pa.int64())
        null = np.zeros(len(numbers), np.bool_)
        if numbers.null_count:
            null = numbers.is_null().to_numpy(zero_copy_only=False)
            numbers = numbers.fill_null(0)
        return Instants(np.array(numbers.to_numpy(), dtype=np.int64), null, local=kind.tz is None)

    def take(self, rows: Ints) -> ArrowCells:
        """The cells of some rows."""
        return ArrowCells(self._array.take(pa.array(rows)))

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, at: int) -> object: ...
    @overload
    def __getitem__(self, at: slice) -> list[object]: ...
    def __getitem__(self, at: int | slice) -> object:
        return self.plain[at]

    def __iter__(self) -> Iterator[object]:
        return iter(self.plain)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.plain == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.plain)


def cells_of_arrow(array: Any) -> Sequence[object] | None:
    """The cells of an Arrow array; None if they are no scalars.

    Raises:
        UnicodeDecodeError: A text is not UTF-8.
    """
    kind = array.type
    if pa.types.is_string_view(kind):
        array = array.cast(pa.large_string())
    if pa.types.is_timestamp(kind) and kind.unit != MICROSECONDS:
        # Times finer than a microsecond are cut to it.
        array = pc.cast(array, pa.timestamp(MICROSECONDS, kind.tz), safe=kind.unit != "ns")
    cells = array.dictionary if pa.types.is_dictionary(kind) else array
    try:
        cells.slice(0, 0).dictionary_encode()
    except pa.ArrowNotImplementedError:
        return None
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        cells.to_pylist()  # says what is wrong with them
        raise
    return ArrowCells(array)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def picked(cells: Sequence[object], rows: Ints) -> Sequence[object]:
    """The cells of some rows."""
    if isinstance(cells, ArrowCells | CodedColumn):
        return cells.take(rows)
    return [cells[row] for row in rows]
