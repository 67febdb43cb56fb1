"""Files and frames as batches of raw columns.

Promise: every format ends up in the same batches of plain Python cells; a source whose columns are
wrong is refused before its first batch, and one bad row never stops the others. Streams: at most
one batch of rows is in memory. Knows no plan, no calendar and no meaning of a cell.

A file can turn out to be unreadable (not UTF-8, cut off) after some of its batches were read:
whoever takes the batches takes a file in one transaction.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from retrodp import _check
from retrodp.errors import SourceError
from retrodp.stream.coded import CodedColumn
from retrodp.stream.frames import NOT_A_SCALAR, Piece, pieces_of_batches, pieces_of_frame
from retrodp.stream.rejected import RefusedRow

Format: TypeAlias = Literal["csv", "jsonl", "parquet", "arrow"]

BATCH_ROWS = 200_000
"""Taken at once, some 100 MB; what two batches have of one round is put together at its close."""
STANDARD_INPUT = "-"

_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_SHEETS = {".xlsx", ".xlsm", ".xls", ".ods"}
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_decode_json_object = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns that are looked for in a source, by their names there; public.

    Attributes:
        required: Columns without which nothing can be taken.
        optional: Columns that may be absent.
        contents: Columns that describe a record. A source may lack all of them if it has `op`:
            then it can only delete.
        op: Name of the column that says what a row does.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    contents: tuple[str, ...]
    op: str = "op"

    def wanted(self, present: Sequence[str], label: str) -> list[str]:
        """The columns to read, in the source's order; raises `SourceError` if the set is wrong."""
        twice = sorted({name for name in present if present.count(name) > 1})
        if twice:
            raise SourceError(
                f"{label}: the column {twice[0]!r} appears more than once.",
                do="Rename or remove one of the two; nothing of this source was taken.",
            )
        missing = [name for name in self.required if name not in present]
        absent = [name for name in self.contents if name not in present]
        if self.op not in present or len(absent) < len(self.contents):
            missing += absent
        if missing:
            raise SourceError(
                f"{label}: the column {missing[0]!r} is missing.",
                expected="the columns " + ", ".join((*self.required, *self.contents)),
                do=(
                    "Rename the column in the source, or give its name there in the plan as "
                    '[columns] NAME = { from = "..." }; nothing of this source was taken.'
                ),
            )
        known = {*self.required, *self.optional, *self.contents}
        return [name for name in present if name in known]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBatch:
    """Some rows of a source, column by column, as they stand there.

    Attributes:
        file: Label of the source.
        lines: First line of each row in a text file; row number from 1 elsewhere.
        columns: Cells by the source's column names. All hashable; None is null.
        refused: Rows of this stretch that could not be cut into cells.
        extra: Columns of the source that nobody asked for.
    """

    file: str
    lines: Sequence[int]
    columns: Mapping[str, Sequence[object]]
    refused: tuple[RefusedRow, ...] = ()
    extra: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def first_line(self) -> int:
        """Line of the first row; 0 without rows."""
        return self.lines[0] if self.lines else 0

    def cells(self, name: str) -> Sequence[object]:
        """The cells of a column; null in every row if the source lacks it."""
        found = self.columns.get(name)
        return CodedColumn.constant(None, len(self.lines)) if found is None else found


def expand(patterns: Iterable[str | PathLike[str]]) -> list[str]:
    """Paths that the patterns name, each pattern's in sorted order, each path once.

    Raises:
        SourceError: A pattern that matches no file.
    """
    paths: dict[str, None] = {}
    given: Any = patterns
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        given = [fspath(one) if isinstance(one, PathLike) else one for one in given]
    for pattern in _check.texts(patterns=given, expected="paths or patterns"):
        if pattern == STANDARD_INPUT or Path(pattern).exists():
            paths[pattern] = None
            continue
        matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  # absolute patterns
        if not matches:
            raise SourceError(
                f"No file matches {pattern!r}.", do="Check the path, and quote patterns with *."
            )
        paths.update(dict.fromkeys(matches))
    return list(paths)


def read_file(
    path: str | Path, layout: Layout, *, format_: Format | None = None
) -> Iterator[RawBatch]:
    """The batches of a file: CSV, JSON Lines (both also .gz, .zst), Parquet or Arrow IPC.

    Args:
        path: The file; its name is the label of its batches.
        layout: Columns to look for.
        format_: Format, where the file's name does not tell it.

    Raises:
        SourceError: The file cannot be read or its columns are wrong.
    """
    path = Path(path)
    label = str(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    format_ = format_ or (_FORMATS.get(suffixes[-1]) if suffixes else None)
    if format_ is None:
        raise SourceError(
            f"{label}: the name does not tell the format.",
            expected=", ".join(_FORMATS) + ", or a text format followed by .gz or .zst",
            do=(
                "Save the sheet as CSV (UTF-8) or Parquet; spreadsheets are not read."
                if _SHEETS & {*suffixes[-1:]}
                else "Rename the file, or name its format: --format csv (format_ in Python)."
            ),
        )
    with _readable(label), ExitStack() as opened:
        file = cast("BinaryIO", opened.enter_context(path.open("rb")))
        if compression is not None:
            inner = pa.PythonFile(file, mode="r")
            unpacked = opened.enter_context(pa.CompressedInputStream(inner, compression))
            file = io.BufferedReader(unpacked)
        yield from _READERS[format_](file, layout, label)


def read_stream(
    file: BinaryIO, layout: Layout, *, format_: Format = "csv", label: str = "standard input"
) -> Iterator[RawBatch]:
    """The batches of an open binary file, standard input for one.

    Raises:
        SourceError: The stream cannot be read or its columns are wrong.
    """
    with _readable(label):
        if format_ in {"parquet", "arrow"}:
            file = io.BytesIO(file.read())  # both need to seek
        yield from _READERS[format_](file, layout, label)


def read_frame(frame: Any, layout: Layout, *, label: str = "frame") -> Iterator[RawBatch]:
    """The batches of an Arrow table, record batch or reader, or of a pandas or polars frame.

    Raises:
        SourceError: It is no frame, or its columns are wrong.
    """
    present, pieces = pieces_of_frame(frame, rows=BATCH_ROWS, label=label)
    yield from _batches_of_pieces(pieces, present, layout, label)


@contextmanager
def _readable(label: str) -> Iterator[None]:
    """Turn what the system says about a file into a sentence that quotes nothing of it."""
    try:
        yield
    except UnicodeDecodeError:
        raise SourceError(
            f"{label} is not UTF-8 text.",
            do="Convert it to UTF-8; nothing of this file was taken.",
        ) from None
    except FileNotFoundError:
        raise SourceError(f"There is no file {label}.", do="Check the path.") from None
    except IsADirectoryError:
        raise SourceError(
            f"{label} is a directory.",
            do=f"Name files, or a quoted pattern such as '{label}/*.csv'.",
        ) from None
    except PermissionError:
        raise SourceError(f"{label} may not be read.", do="Check its permissions.") from None
    except (OSError, EOFError, pa.ArrowException):
        raise SourceError(
            f"{label} is damaged, cut off, or of another format than it says.",
            do="Fetch it again; nothing of this file was taken.",
        ) from None


def _read_csv(file: BinaryIO, layout: Layout, label: str) -> Iterator[RawBatch]:
    # "utf-8-sig" swallows a byte-order mark; newline="" leaves line ends to the csv module.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        yield from _csv_batches(csv.reader(text), layout, label)
    finally:
        text.detach()  # the file belongs to the caller


def _csv_batches(reader: Any, layout: Layout, label: str) -> Iterator[RawBatch]:
    try:
        header: list[str] = next(reader, [])
    except csv.Error:
        header = []
    if not header:
        raise SourceError(
            f"{label} has no header line.", expected="a first line with the names of the columns"
        )
    _require_commas(header, layout, label)
    wanted = layout.wanted(header, label)
    extra = tuple(name for name in header if name not in wanted)
    positions = [(name, header.index(name)) for name in wanted]
    ended = False
    while not ended:
        # One flat list: a list for every row would keep the garbage collector busy.
        flat: list[str] = []
        lines: list[int] = []
        refused: list[RefusedRow] = []
        while len(lines) + len(refused) < BATCH_ROWS:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                ended = True
                break
            except csv.Error:
                refused.append(RefusedRow(label, line, "", "not readable as a CSV row"))
                continue
            if len(row) == len(header):
                flat += row
                lines.append(line)
            elif row:  # an empty line is no row
                reason = "has another number of cells than the header"
                refused.append(RefusedRow(label, line, "", reason))
        if lines or refused:
            width = len(header)
            yield RawBatch(
                file=label,
                lines=lines,
                columns={
                    name: [cell or None for cell in flat[at::width]] for name, at in positions
                },
                refused=tuple(refused),
                extra=extra,
            )


def _require_commas(header: Sequence[str], layout: Layout, label: str) -> None:
    """Refuse a header in which another separator stands between names of the plan's columns.

    Says which separator and quotes nothing: the first line may be a row.
    """
    if len(header) != 1:
        return
    known = {*layout.required, *layout.optional, *layout.contents, layout.op}
    for separator, name in _SEPARATORS.items():
        cells = header[0].split(separator)
        if len(cells) > 1 and known & {cell.strip('" ') for cell in cells}:
            raise SourceError(
                f"{label}: its columns are separated by {name}.",
                expected="commas between the columns",
                do="Save it as CSV with commas; nothing of this source was taken.",
            )


def _read_jsonl(file: BinaryIO, layout: Layout, label: str) -> Iterator[RawBatch]:
    wanted: list[str] | None = None
    extra: tuple[str, ...] = ()
    rows: list[dict[str, object]] = []
    lines: list[int] = []
    refused: list[RefusedRow] = []

    def batch() -> RawBatch:
        nonlocal wanted, extra
        if wanted is None and rows:
            present = list(dict.fromkeys(name for row in rows for name in row))
            wanted = layout.wanted(present, label)
            extra = tuple(name for name in present if name not in wanted)
        columns = {name: [_scalar(row.get(name)) for row in rows] for name in wanted or ()}
        return RawBatch(
            file=label, lines=lines, columns=columns, refused=tuple(refused), extra=extra
        )

    for number, line in enumerate(file, start=1):
        stripped = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if not stripped:
            continue
        try:
            rows.append(_decode_json_object(stripped))
            lines.append(number)
        except msgspec.MsgspecError:
            stripped.decode()  # what is not UTF-8 is refused whole
            refused.append(RefusedRow(label, number, "", "not a JSON object"))
        if len(rows) + len(refused) == BATCH_ROWS:
            yield batch()
            rows, lines, refused = [], [], []
    if rows or refused:
        yield batch()


def _scalar(value: object) -> object:
    return NOT_A_SCALAR if isinstance(value, list | dict) else value


def _read_parquet(file: BinaryIO, layout: Layout, label: str) -> Iterator[RawBatch]:
    parquet = pq.ParquetFile(file)
    present = list(parquet.schema_arrow.names)
    columns = layout.wanted(present, label)
    batches = parquet.iter_batches(batch_size=BATCH_ROWS, columns=columns)
    pieces = pieces_of_batches(batches, rows=BATCH_ROWS)
    yield from _batches_of_pieces(pieces, present, layout, label)


def _read_arrow(file: BinaryIO, layout: Layout, label: str) -> Iterator[RawBatch]:
    reader = pa.ipc.open_file(file)
    batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    pieces = pieces_of_batches(batches, rows=BATCH_ROWS)
    yield from _batches_of_pieces(pieces, list(reader.schema.names), layout, label)


def _batches_of_pieces(
    pieces: Iterator[Piece], present: list[str], layout: Layout, label: str
) -> Iterator[RawBatch]:
    wanted = layout.wanted(present, label)
    extra = tuple(name for name in present if name not in wanted)
    first = 1
    for piece in pieces:
        yield RawBatch(
            file=label,
            lines=range(first, first + piece.rows),
            columns={name: piece.cells(name) for name in wanted},
            extra=extra,
        )
        first += piece.rows


_READERS = {
    "csv": _read_csv,
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
