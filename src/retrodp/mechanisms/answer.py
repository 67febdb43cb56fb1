"""What one release publishes in one round: values, their uncertainty, and nothing exact.

An answer is a frozen value. Its canonical bytes are what the store keeps, compares and hashes, so
they are a pure function of the answer and never change between versions of one format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from retrodp.errors import StoreCorruptError
from retrodp.mechanisms.revised_bytes import MAGIC, packed, unpacked
from retrodp.plan.decimals import decimal_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FORMAT = 1
NO_TEXT = ""
COLUMNS = ("key", "value", "stddev", "low", "high", "low_all", "high_all")


class Bounds(NamedTuple):
    """Uncertainty of one value, where it differs from value to value.

    Attributes:
        stddev: Standard deviation in units of the statistic, or "" where there is none.
        low: Ends of the interval for this round, in steps.
        high: See `low`.
        low_all: Ends of the interval for all rounds of a key at once, in steps.
        high_all: See `low_all`.
    """

    stddev: str
    low: int
    high: int
    low_all: int
    high_all: int


class Figure(NamedTuple):
    """One published value with its uncertainty; numbers in steps, None where there is no value."""

    key: str
    value: int | None
    bounds: Bounds
    stamp: int | None = None


class Spread(NamedTuple):
    """Uncertainty of all values of one stamp of a revised release.

    Attributes:
        stddev: Standard deviation in units of the statistic.
        half: Half width of the interval for this round, in steps.
        half_all: Half width for all rounds of a key and stamp at once, in steps.
    """

    stddev: str
    half: int
    half_all: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Published numbers of one release in one round.

    Attributes:
        release: Name of the release in the plan.
        round: Round, from 1.
        keys: One label a value, sorted by UTF-8 bytes; None for a scalar.
        values: Noisy values in whole steps, shape ``(len(keys),)`` or ``(1,)``; None where only
            an interval can be given.
        step: Size of a step, in units of the statistic.
        stddev: Standard deviation of each value's noise, in units of the statistic; "" with
            `each`.
        half: Half width of the interval at `level` for this round alone, in steps; with `each`
            the largest.
        half_all: Half width that holds for all rounds of a key at once, in steps; likewise.
        level: Stated coverage of both intervals.
        each: Uncertainty of each value, where values differ in it; else None.
        threshold: For a sparse release, the least value that is published; else None.
        stamps: For a revised release, the stamp of each value, which are sorted by key, then
            stamp; a scalar then has a value a stamp. Else None.
        spreads: For a revised release, the uncertainty of each stamp that the round publishes,
            oldest first; the last is that of the round itself. `stddev`, `half` and `half_all` are
            then the largest.
    """

    release: str
    round: int
    keys: tuple[str, ...] | None
    values: tuple[int | None, ...]
    step: Fraction
    stddev: str
    half: int
    half_all: int
    level: Fraction
    each: tuple[Bounds, ...] | None = None
    threshold: int | None = None
    stamps: tuple[int, ...] | None = None
    spreads: tuple[Spread, ...] | None = None

    @classmethod
    def of_each(  # noqa: PLR0913  the fields of an answer
        cls,
        *,
        release: str,
        round: int,  # noqa: A002  the field's own word
        keys: Iterable[str] | None,
        values: Iterable[int | None],
        each: Iterable[Bounds],
        step: Fraction,
        level: Fraction,
    ) -> Answer:
        """Values of which each has an uncertainty of its own; the half widths are the largest."""
        bounds = tuple(each)
        return cls(
            release=release,
            round=round,
            keys=None if keys is None else tuple(keys),
            values=tuple(values),
            step=step,
            stddev="",
            half=max((own.high - own.low + 1) // 2 for own in bounds),
            half_all=max((own.high_all - own.low_all + 1) // 2 for own in bounds),
            level=level,
            each=bounds,
        )

    @classmethod
    def of_one(
        cls,
        value: int,
        bounds: Bounds,
        *,
        release: str,
        round: int,  # noqa: A002  the field's own word
        step: Fraction,
        level: Fraction,
    ) -> Answer:
        """One number with ends of its own; the half widths are the farther of both ends."""
        return cls(
            release=release,
            round=round,
            keys=None,
            values=(value,),
            step=step,
            stddev="",
            half=max(bounds.high - value, value - bounds.low),
            half_all=max(bounds.high_all - value, value - bounds.low_all),
            level=level,
            each=(bounds,),
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def value(self) -> Fraction:
        """The single value of a scalar release, in units of the statistic."""
        if self.keys is not None or self.stamps is not None:
            raise TypeError(f"{self.release} has one value a key; read rows() or to_polars().")
        if self.values[0] is None:
            raise TypeError(f"{self.release} has no value in this round, only an interval.")
        return self.step * self.values[0]

    def figures(self) -> tuple[Figure, ...]:
        """Every value with its uncertainty, in the order of the keys."""
        if self.stamps is not None:
            return tuple(self._by_stamp())
        keys = (NO_TEXT,) if self.keys is None else self.keys
        if self.each is not None:
            return tuple(map(Figure, keys, self.values, self.each))
        half, half_all = self.half, self.half_all
        return tuple(
            Figure(
                key,
                value,
                Bounds(self.stddev, value - half, value + half, value - half_all, value + half_all),
            )
            for key, value in zip(keys, self.values, strict=True)
            if value is not None
        )

    def _by_stamp(self) -> Iterator[Figure]:
        assert self.stamps is not None
        assert self.spreads is not None
        first = self.first_stamp
        keys = (NO_TEXT,) * len(self.stamps) if self.keys is None else self.keys
        for key, stamp, value in zip(keys, self.stamps, self.values, strict=True):
            assert value is not None
            stddev, half, all_ = self.spreads[stamp - first]
            bounds = Bounds(stddev, value - half, value + half, value - all_, value + all_)
            yield Figure(key, value, bounds, stamp)

    @property
    def first_stamp(self) -> int:
        """Oldest stamp that the round publishes, of a revised release."""
        return self.round - len(self.spreads or ()) + 1

    def numbered_on(self, before: int) -> Answer:
        """The answer with so many rounds before round 1, as a store that continues another counts."""
        stamps = self.stamps and tuple(before + stamp for stamp in self.stamps)
        return replace(self, round=before + self.round, stamps=stamps)

    @property
    def columns(self) -> tuple[str, ...]:
        """Of `rows`: `COLUMNS`, with `stamp` after `key` for a revised release."""
        return COLUMNS if self.stamps is None else (COLUMNS[0], "stamp", *COLUMNS[1:])

    def to_bytes(self) -> bytes:
        """Canonical JSON, UTF-8: sorted names, no spaces, no floats.

        Of a revised release the values follow in binary; see `revised_bytes`.
        """
        document: dict[str, Any] = {
            "each": self.each,
            "format": FORMAT,
            "half": self.half,
            "half_all": self.half_all,
            "keys": self.keys,
            "level": str(self.level),
            "release": self.release,
            "round": self.round,
            "stddev": self.stddev,
            "step": str(self.step),
            "threshold": self.threshold,
            "values": self.values,
        }
        if self.spreads is not None:
            return packed(document | {"stamps": self.stamps}, self.spreads)
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """Read what `to_bytes` wrote."""
        try:
            document = unpacked(data) if data.startswith(MAGIC) else json.loads(data)
            if document["format"] != FORMAT:
                raise StoreCorruptError(
                    f"A release is in format {document['format']}.",
                    expected=f"format {FORMAT}",
                    do="Open the store with the version of retrodp that wrote it.",
                )
            keys, each = document["keys"], document["each"]
            return cls(
                release=document["release"],
                round=document["round"],
                keys=None if keys is None else tuple(keys),
                values=tuple(document["values"]),
                step=Fraction(document["step"]),
                stddev=document["stddev"],
                half=document["half"],
                half_all=document["half_all"],
                level=Fraction(document["level"]),
                each=None if each is None else tuple(Bounds(*bounds) for bounds in each),
                threshold=document["threshold"],
                stamps=document.get("stamps"),
                spreads=None
                if "spreads" not in document
                else tuple(Spread(*spread) for spread in document["spreads"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreCorruptError(
                f"A stored release cannot be read ({type(error).__name__}).",
                do="Restore the store from a back-up.",
            ) from None

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One tuple of exact decimal texts a value, in the order of `columns`; "" for no value."""
        for key, value, bounds, stamp in self.figures():
            stddev, *ends = bounds
            low, high, low_all, high_all = (decimal_text(end, self.step) for end in ends)
            text = NO_TEXT if value is None else decimal_text(value, self.step)
            place = (key,) if stamp is None else (key, str(stamp))
            yield *place, text, stddev, low, high, low_all, high_all

    def to_arrow(self) -> pa.Table:
        """A table with the columns `columns`; stamps as int64, other numbers as float64."""
        columns = list(zip(*self.rows(), strict=True)) or [()] * len(self.columns)
        arrays = [pa.array(columns[0], pa.string())]
        if self.stamps is not None:
            arrays.append(pa.array([int(text) for text in columns[1]], pa.int64()))
        arrays += [
            pa.array([float(text) if text else None for text in column], pa.float64())
            for column in columns[len(arrays) :]
        ]
        return pa.table(arrays, names=list(self.columns))

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame (pandas must be installed)."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars frame (polars must be installed)."""
        import polars as pl  # noqa: PLC0415  an optional dependency

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_json(self) -> dict[str, Any]:
        """A JSON-able document with exact decimal texts."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "release": self.release,
            "round": self.round,
            "level": str(Decimal(self.level.numerator) / self.level.denominator),
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
        }
        if self.threshold is not None:
            document["absent_below"] = decimal_text(self.threshold, self.step)
        return document
