"""Arrow data and frames as pieces of plain Python cells.

Promise: a missing marker of a frame is null, except a NaN, which stays NaN so that it is refused
where a number is meant. Every cell is hashable. Knows no plan and no meaning of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import pyarrow as pa

from retrodp.errors import SourceError
from retrodp.stream.cells import cells_of_arrow


class _NotAScalar:
    """Stands for a list or an object in a cell, which no column takes."""

    def __repr__(self) -> str:
        return "NOT_A_SCALAR"


NOT_A_SCALAR = _NotAScalar()


class Piece(Protocol):
    """Some consecutive rows of a table."""

    @property
    def rows(self) -> int:
        """How many rows."""

    def cells(self, name: str) -> Sequence[object]:
        """The cells of one column, null as None."""


@dataclass(frozen=True, slots=True)
class ArrowPiece:
    """Rows of an Arrow record batch."""

    batch: Any

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.batch.num_rows)

    def cells(self, name: str) -> Sequence[object]:
        """The cells of one column; times finer than a microsecond are cut to it."""
        return _cells_of_arrow(self.batch.column(name))


@dataclass(frozen=True, slots=True)
class PandasPiece:
    """Rows of a pandas frame, which may mix types in one column."""

    frame: Any

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.frame)

    def cells(self, name: str) -> Sequence[object]:
        """The cells of one column."""
        column = self.frame.iloc[:, [str(own) for own in self.frame.columns].index(name)]
        if column.dtype == object:
            return [_cell_of_object(value) for value in column.tolist()]
        # The usual conversion turns a NaN in a number into null, which would hide it.
        floating = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
        array = pa.array(column, from_pandas=not floating)
        return _cells_of_arrow(array if isinstance(array, pa.Array) else array.combine_chunks())


def pieces_of_frame(frame: Any, *, rows: int, label: str) -> tuple[list[str], Iterator[Piece]]:
    """Column names of a frame, and its rows in pieces.

    Args:
        frame: Arrow table, record batch or record batch reader; pandas or polars frame, or
            another frame that narwhals knows (a lazy one is collected).
        rows: Rows of a piece, at most.
        label: What to call the frame in an error.
    """
    if isinstance(frame, pa.RecordBatchReader):
        return list(frame.schema.names), pieces_of_batches(frame, rows=rows)
    if isinstance(frame, pa.RecordBatch):
        return list(frame.schema.names), pieces_of_batches([frame], rows=rows)
    if nw.dependencies.is_pandas_dataframe(frame):
        starts = range(0, len(frame), rows)
        pieces = (PandasPiece(frame.iloc[start : start + rows]) for start in starts)
        return [str(name) for name in frame.columns], pieces
    table = frame if isinstance(frame, pa.Table) else _table(frame, label)
    return list(table.schema.names), pieces_of_batches(table.to_batches(), rows=rows)


def pieces_of_batches(batches: Iterable[Any], *, rows: int) -> Iterator[Piece]:
    """Arrow record batches, cut to at most `rows` rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield ArrowPiece(batch.slice(start, rows))


def _table(frame: Any, label: str) -> Any:
    try:
        read: Any = nw.from_native(frame)
    except TypeError:
        raise SourceError(
            f"{label} is a {type(frame).__name__}.",
            expected="an Arrow table, a pandas or a polars frame",
        ) from None
    return (read.collect() if isinstance(read, nw.LazyFrame) else read).to_arrow()


def _cell_of_object(value: object) -> object:
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return NOT_A_SCALAR if type(value).__hash__ is None else value


def _cells_of_arrow(array: Any) -> Sequence[object]:
    cells = cells_of_arrow(array)
    if cells is None:
        return [NOT_A_SCALAR if valid else None for valid in array.is_valid().to_pylist()]
    return cells
