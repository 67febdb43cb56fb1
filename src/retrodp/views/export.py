"""Published numbers as files: CSV, JSON Lines, Parquet and Arrow tables.

Promise: the same published rounds give the same CSV and JSON Lines bytes on every machine, every
number is the exact decimal that was published, and a file appears whole or not at all. It reads
what was published and nothing else.

Exactness by format: CSV and JSON Lines print decimals without exponent (a JSON number may have any
length; read it with a decimal parser where a float is too short). Parquet and Arrow use
`decimal128(38, s)` with one `s` for the whole plan, so that a file's types follow from the plan
and never from the data; only where 38 digits cannot hold every value are they texts. `stddev` is a
rounded description and a float there.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias, cast, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer, Figure
from retrodp.views.atomic import whole_file
from retrodp.views.figures import Grid, plain
from retrodp.views.published import Published
from retrodp.views.vintages import Choice, Vintage, looks_back

COLUMNS = (
    "round",
    "round_start",
    "release",
    "key",
    "value",
    "stddev",
    "low",
    "high",
    "low_all",
    "high_all",
)
NUMBERS = COLUMNS[3:]
Format: TypeAlias = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

_DECIMAL_DIGITS = 38
_INT64_DIGITS = 20  # interval ends may lie a little beyond int64
_BATCH_ROWS = 65_536
_STANDARD_OUTPUT = 1
_QUOTED = frozenset(',"\r\n')


class Row(NamedTuple):
    """One published value; numbers are exact decimals without exponent."""

    round: int
    round_start: str
    release: str
    key: str
    value: str
    stddev: str
    low: str
    high: str
    low_all: str
    high_all: str
    stamp: str = ""
    stamp_start: str = ""


STAMPS = ("stamp", "stamp_start")
"""What revised releases add after `key`: the round that a number is about, and when it began."""

NULLABLE = frozenset({*STAMPS, "value", "stddev"})
"""Empty where a release has no such number: of a bracket the value, of a quantile the deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which published rows are meant.

    Attributes:
        releases: Names of releases; empty for all.
        first: First round; None for the first of the plan.
        last: Last round, itself included; None for the last that is published.
        vintage: Of revised releases: "latest" (each stamp as known in the last round meant),
            "first" (as first published), "all", or a round (as known then).
    """

    releases: tuple[str, ...] = ()
    first: int | None = None
    last: int | None = None
    vintage: Vintage = "latest"

    @classmethod
    def latest(cls, published: Published, *, releases: tuple[str, ...] = ()) -> Selection:
        """The last published round alone; no rows before anything is published."""
        newest = published.last_round
        return cls(releases=releases, first=newest or None, last=newest or None)


ALL = Selection()


def rows(published: Published, selection: Selection = ALL) -> Iterator[Row]:
    """Rows in the order of the export: round, UTF-8 bytes of release, UTF-8 bytes of key, stamp.

    Raises:
        UsageError: If a release or a round is not of this plan, or a vintage is not published.
    """
    last = published.last_round if selection.last is None else selection.last
    if isinstance(selection.vintage, int) and selection.vintage > published.last_round:
        raise UsageError(
            f"Round {selection.vintage} is not published, so there is no such vintage.",
            expected=f"1 to {published.last_round}",
        )
    choice = Choice(vintage=selection.vintage, last=min(last, published.last_round))
    back = {name: looks_back(entry) for name, entry in published.entries.items()}

    def wanted(round_: int, release: str) -> bool:
        rounds = back[release]
        return rounds is None or choice.needs(round_, rounds)

    answers = published.each(
        releases=selection.releases, first=selection.first, last=selection.last, wanted=wanted
    )
    return _rows(published, answers, choice, back)


def _rows(
    published: Published,
    answers: Iterator[Answer],
    choice: Choice,
    back: Mapping[str, int | None],
) -> Iterator[Row]:
    for answer in answers:
        start, rounds = published.start_text(answer.round), back[answer.release]
        found = answer_rows(answer, start)
        if rounds is None:
            yield from found
            continue
        for row in found:
            stamp = int(row.stamp)
            if choice.shows(answer.round, stamp, rounds):
                yield row._replace(stamp_start=published.start_text(stamp))


def columns_of(published: Published, selection: Selection = ALL) -> tuple[str, ...]:
    """Columns of the export: `STAMPS` are among them where a revised release is selected."""
    names = selection.releases or published.releases
    if any(looks_back(published.entries[name]) for name in names if name in published.entries):
        return (*COLUMNS[:4], *STAMPS, *COLUMNS[4:])
    return COLUMNS


def _by_key_and_stamp(figure: Figure) -> tuple[str, int]:
    return figure.key, figure.stamp or 0


def answer_rows(answer: Answer, round_start: str) -> Iterator[Row]:
    """Rows of one answer, sorted by UTF-8 bytes of key."""
    text = Grid.of(answer.step).text
    # Code points sort as their UTF-8 bytes do.
    for figure in sorted(answer.figures(), key=_by_key_and_stamp):
        stddev, *ends = figure.bounds
        value = "" if figure.value is None else text(figure.value)
        deviation = plain(stddev) if stddev else ""
        low, high, low_all, high_all = map(text, ends)
        yield Row(
            *(answer.round, round_start, answer.release, figure.key),
            *(value, deviation, low, high, low_all, high_all),
            stamp="" if figure.stamp is None else str(figure.stamp),
        )


def csv_lines(published: Published, selection: Selection = ALL) -> Iterator[str]:
    """CSV by RFC 4180 with a header, lines ended by a line feed; quoted only where needed."""
    found = rows(published, selection)
    columns = columns_of(published, selection)
    stamped = len(columns) > len(COLUMNS)
    yield ",".join(columns) + "\n"
    for row in found:
        release, key = _csv_field(row.release), _csv_field(row.key)
        if stamped:
            key = f"{key},{row.stamp},{row.stamp_start}"
        yield f"{row.round},{row.round_start},{release},{key},{','.join(row[4:10])}\n"


def _csv_field(text: str) -> str:
    # Not the csv module: whether it quotes a lone carriage return depends on Python's version.
    if _QUOTED.isdisjoint(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def jsonl_lines(published: Published, selection: Selection = ALL) -> Iterator[str]:
    """One JSON object a line; numbers are JSON numbers that spell the exact decimal."""
    stamped = len(columns_of(published, selection)) > len(COLUMNS)
    for row in rows(published, selection):
        head = f'"round":{row.round},"round_start":"{row.round_start}"'
        names = f'"release":{_json_text(row.release)},"key":{_json_text(row.key)}'
        numbers = ",".join(
            f'"{name}":{number or "null"}'
            for name, number in zip(COLUMNS[4:], row[4:10], strict=True)
        )
        if stamped:
            start = f'"{row.stamp_start}"' if row.stamp_start else "null"
            names += f',"stamp":{row.stamp or "null"},"stamp_start":{start}'
        yield f"{{{head},{names},{numbers}}}\n"


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def arrow_schema(published: Published, selection: Selection = ALL) -> pa.Schema:
    """Types of the columns: a function of the plan and the releases selected."""
    number = _number_type(published)
    metadata = {"retrodp.format": "1", "retrodp.fingerprint": published.fingerprint}
    if published.is_test:
        metadata["retrodp.test"] = "TEST"
    types: dict[str, pa.DataType] = {
        "round": pa.int32(),
        "round_start": pa.timestamp("us", tz=published.timezone),
        "release": pa.string(),
        "key": pa.string(),
        "value": number,
        "stddev": pa.float64(),
        **dict.fromkeys(("low", "high", "low_all", "high_all"), number),
        "stamp": pa.int32(),
        "stamp_start": pa.timestamp("us", tz=published.timezone),
    }
    fields = [
        pa.field(name, types[name], nullable=name in NULLABLE)
        for name in columns_of(published, selection)
    ]
    return pa.schema(fields, metadata=metadata)


def _number_type(published: Published) -> pa.DataType:
    grids = [Grid.of(step) for step in published.steps]
    scale = max((grid.digits for grid in grids), default=0)
    most = max(
        (_INT64_DIGITS + len(str(grid.factor)) + scale - grid.digits for grid in grids), default=0
    )
    return pa.decimal128(_DECIMAL_DIGITS, scale) if most <= _DECIMAL_DIGITS else pa.string()


def arrow_batches(published: Published, selection: Selection = ALL) -> Iterator[pa.RecordBatch]:
    """Record batches of at most 65,536 rows."""
    schema = arrow_schema(published, selection)
    found = rows(published, selection)
    while gathered := list(islice(found, _BATCH_ROWS)):
        yield _batch(gathered, schema, published.boundaries)


def _batch(gathered: Sequence[Row], schema: pa.Schema, boundaries: Sequence[int]) -> pa.RecordBatch:
    exact: Callable[[str], object] = str
    if pa.types.is_decimal(schema.field("value").type):
        exact = Decimal  # from a text: exact, whatever the context's precision
    stamps = [int(row.stamp) if row.stamp else None for row in gathered]
    columns: dict[str, Iterable[object]] = {
        "round": [row.round for row in gathered],
        "round_start": [boundaries[row.round - 1] for row in gathered],
        "release": [row.release for row in gathered],
        "key": [row.key for row in gathered],
        "stamp": stamps,
        "stamp_start": [None if stamp is None else boundaries[stamp - 1] for stamp in stamps],
        "value": [exact(row.value) if row.value else None for row in gathered],
        "stddev": [float(row.stddev) if row.stddev else None for row in gathered],
        "low": [exact(row.low) for row in gathered],
        "high": [exact(row.high) for row in gathered],
        "low_all": [exact(row.low_all) for row in gathered],
        "high_all": [exact(row.high_all) for row in gathered],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def to_arrow(published: Published, selection: Selection = ALL) -> pa.Table:
    """The selected rows as one table, for pandas, polars and everything else that reads Arrow."""
    schema = arrow_schema(published, selection)
    return pa.Table.from_batches(arrow_batches(published, selection), schema=schema)


def write(
    published: Published,
    handle: IO[bytes] | IO[str],
    *,
    format: Format,  # noqa: A002  what the command calls it
    selection: Selection = ALL,
) -> int:
    """Stream the selected rows to an open file or to standard output.

    Returns:
        Number of rows.

    Raises:
        UsageError: If Parquet is asked for on standard output or on a text file, or if the
            selection is not of this plan; nothing is written then.
    """
    match format:
        case "csv":
            return _write_lines(csv_lines(published, selection), handle) - 1
        case "jsonl":
            return _write_lines(jsonl_lines(published, selection), handle)
        case "parquet":
            return _write_parquet(published, handle, selection)
        case _:
            raise UsageError(f"There is no format {format!r}.", expected=", ".join(FORMATS))


def write_file(
    published: Published,
    path: str | Path,
    *,
    format: Format,  # noqa: A002  what the command calls it
    selection: Selection = ALL,
) -> int:
    """Write the selected rows to a file that appears whole or not at all.

    Returns:
        Number of rows.

    Raises:
        UsageError: If the path cannot be written, or lies in the store's own directory.
        DiskFullError: If the disk is full; a file that was there is as it was.
    """
    if published.directory.resolve() in Path(path).resolve().parents:
        raise UsageError(
            f"{path} lies in the directory of the store, which is the engine's own.",
            do="Name a file elsewhere.",
        )
    with whole_file(path) as handle:
        return write(published, handle, format=format, selection=selection)


def _write_lines(lines: Iterator[str], handle: IO[bytes] | IO[str]) -> int:
    count = 0
    if isinstance(handle, io.TextIOBase):
        for line in lines:
            handle.write(line)
            count += 1
        return count
    binary = cast("IO[bytes]", handle)
    for line in lines:
        binary.write(line.encode())
        count += 1
    return count


def _write_parquet(published: Published, handle: IO[bytes] | IO[str], selection: Selection) -> int:
    if isinstance(handle, io.TextIOBase) or _descriptor(handle) == _STANDARD_OUTPUT:
        raise UsageError(
            "Parquet is not written to standard output.", do="Name a file with `-o FILE`."
        )
    batches = arrow_batches(published, selection)
    count = 0
    with pq.ParquetWriter(handle, arrow_schema(published, selection)) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _descriptor(handle: IO[bytes] | IO[str]) -> int | None:
    try:
        return handle.fileno()
    except OSError:
        return None
