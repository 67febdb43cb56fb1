"""Updates as plain rows: what a file would hold, and what it means."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from retrodp.engine.store import Ingested, Store
from retrodp.stream.sources import read_frame

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
Raw = str | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The plan's columns of one record, as a file writes them."""

    who: str = "ann"
    product: str | None = "tea"
    country: str = "DE"
    amount: float | None = 1.5
    gift: bool = False

    @property
    def canonical(self) -> tuple[str, str | None, str, int | None, bool]:
        """As the package keeps them: other countries as "other", amounts in halves from -5 to 20."""
        steps = None if self.amount is None else round(min(max(self.amount, -5), 20) * 2)
        country = self.country if self.country in {"DE", "FR"} else "other"
        return (self.who, self.product, country, steps, self.gift)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One update: round and second of its arrival, and the round of its stamp (None: the same)."""

    op: str = "add"
    id: str = ""
    round: int = 1
    second: int = 0
    stamp: int | None = None
    contents: Contents = Contents()
    n: int = 1

    @property
    def stamp_round(self) -> int:
        """The round that an addition belongs to."""
        return self.round if self.stamp is None else self.stamp

    def cells(self, *, ids: bool) -> dict[str, Raw | int]:
        """The row of a file."""
        day = dt.timedelta(days=1)
        at = START + (self.round - 1) * day + dt.timedelta(seconds=self.second)
        time = None if self.stamp is None else (START + (self.stamp - 1) * day).isoformat()
        own: dict[str, Raw | int] = {"op": self.op, "at": at.isoformat(), "time": time}
        own |= {"id": self.id} if ids else {"n": self.n}
        contents = self.contents
        return own | {
            "who": contents.who,
            "product": contents.product,
            "country": contents.country,
            "amount": contents.amount,
            "gift": contents.gift,
        }


def add(id_: str, round_: int = 1, **contents: str | float | bool | None) -> Row:
    return Row(id=id_, round=round_, contents=Contents(**contents))  # type: ignore[arg-type]


def delete(id_: str, round_: int, *, who: str = "ann", second: int = 0) -> Row:
    return Row(op="delete", id=id_, round=round_, second=second, contents=Contents(who=who))


def ingest(store: Store, rows: Iterable[Row]) -> Ingested:
    """Hand rows to a store as one frame."""
    ids = store.plan.stream.ids
    cells = [row.cells(ids=ids) for row in rows]
    if not cells:
        return store.ingest([])
    return store.ingest(read_frame(pa.Table.from_pylist(cells), store.layout()))
