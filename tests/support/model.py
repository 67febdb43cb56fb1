"""What a store must hold after any history, said again as plainly as possible.

Shares no code with the package. `survive` is the model of streams; `TOTALS` is what every release
of `tests.support.plans.RELEASES` measures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from tests.support.plans import MAX_PER_BIN, MAX_RECORDS
from tests.support.rows import Contents, Row

pack = msgspec.msgpack.encode
ORDER = {"delete": 0, "replace": 1, "add": 2}


@dataclass
class Lives:
    """A stream with ids: the running life of every (space, id)."""

    by_person: bool = False
    waiting: dict[int, set[Row]] = field(default_factory=dict)
    running: dict[tuple[str, str], Row] = field(default_factory=dict)
    forgotten: set[tuple[str, str]] = field(default_factory=set)

    def take(self, row: Row, *, first_open: int) -> None:
        if row.round >= first_open:
            self.waiting.setdefault(row.round, set()).add(row)

    def forget(self, kind: str, value: str) -> None:
        self.forgotten.add((kind, value))
        for round_, rows in self.waiting.items():
            self.waiting[round_] = {row for row in rows if not self._named(row, kind, value)}

    def _named(self, row: Row, kind: str, value: str) -> bool:
        if kind == "id":
            return row.id == value
        # A deletion by id names no person, unless ids live in her namespace.
        return row.contents.who == value and (self.by_person or row.op != "delete")

    def close(self, round_: int, intake_key: bytes = b"") -> None:
        rows = self.waiting.pop(round_, set())
        kept = self._bounded(rows, intake_key) if self.by_person else None
        for row in sorted(
            rows,
            key=lambda row: (
                row.second,
                ORDER[row.op],
                pack(row.contents.canonical) if row.op != "delete" else b"",
                row.stamp_round,
            ),
        ):
            key = (row.contents.who if self.by_person else "", row.id)
            over = kept is not None and key not in kept
            if row.op != "add":  # a replacement over the bound still ends what runs
                self.running.pop(key, None)
            if row.op != "delete" and not over:
                self.running.setdefault(key, row)
        for kind, value in self.forgotten:
            self.running = {
                key: row
                for key, row in self.running.items()
                if (row.id if kind == "id" else row.contents.who) != value
            }
        self.forgotten.clear()

    @staticmethod
    def _bounded(rows: set[Row], key: bytes) -> set[tuple[str, str]]:
        """Ids of smallest keyed hash, at most so many a person and so many a product."""
        bins: dict[tuple[str, str], set[str | None]] = {}
        for row in rows:
            if row.op != "delete":
                bins.setdefault((row.contents.who, row.id), set()).add(row.contents.product)
        of_person: Counter[str] = Counter()
        in_bin: Counter[tuple[str, str | None]] = Counter()
        kept = set()
        for who, id_ in sorted(
            bins, key=lambda name: blake2b(pack(name), key=key, digest_size=16).digest()
        ):
            of_person[who] += 1
            places = {(who, product) for product in bins[who, id_]}
            if of_person[who] <= MAX_RECORDS and all(
                in_bin[place] < MAX_PER_BIN for place in places
            ):
                in_bin.update(places)
                kept.add((who, id_))
        return kept

    def survivors(self) -> Counter[tuple[int, tuple[object, ...]]]:
        return Counter((row.stamp_round, row.contents.canonical) for row in self.running.values())


@dataclass
class Points:
    """A stream without ids: copies of stamped points, in the paper's own words."""

    waiting: dict[int, list[Row]] = field(default_factory=dict)
    running: Counter[tuple[int, tuple[object, ...]]] = field(default_factory=Counter)
    forgotten: set[str] = field(default_factory=set)

    def take(self, row: Row, *, first_open: int) -> None:
        if row.round >= first_open:
            self.waiting.setdefault(row.round, []).append(row)

    def forget(self, person: str) -> None:
        self.forgotten.add(person)
        for round_, rows in self.waiting.items():
            self.waiting[round_] = [row for row in rows if row.contents.who != person]

    def close(self, round_: int) -> None:
        rows = self.waiting.pop(round_, [])
        for row in sorted(rows, key=lambda row: row.op == "delete"):
            point = (row.stamp_round, row.contents.canonical)
            if row.op == "add":
                self.running[point] += row.n
            else:
                self.running[point] -= min(row.n, self.running[point])
        self.running = Counter(
            {
                (stamp, values): copies
                for (stamp, values), copies in self.running.items()
                if copies and values[0] not in self.forgotten
            }
        )
        self.forgotten.clear()

    def survivors(self) -> Counter[tuple[int, tuple[object, ...]]]:
        return self.running


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one release adds up: weights on a label for the records that are live and meant."""

    window: int | None = None
    where: Callable[..., bool] = lambda **_: True
    weight: Callable[..., int] = lambda **_: 1
    label: Callable[..., str] = lambda **_: ""
    further: Callable[..., tuple[tuple[str, int], ...]] = lambda **_: ()


def _bare(value: str | None) -> str:
    return value if value and not value.startswith("[") else _array(value)


def _array(*values: object) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


MIDDLE = (-10 + 40) // 2  # of the bounds of amount, in steps: a mean is summed from there
TOTALS = {
    "lines": Measure(),
    "lines_binary": Measure(),
    "lines_haar": Measure(),
    "lines_delannoy": Measure(),
    "recent": Measure(window=2),
    "recent_binary": Measure(window=3),
    "german_gifts": Measure(where=lambda country, gift, **_: country == "DE" and gift),
    "money": Measure(
        where=lambda amount, **_: amount is not None and amount > 2,
        weight=lambda amount, **_: amount,
    ),
    "recent_money": Measure(
        window=3,
        weight=lambda amount, **_: amount or 0,
        label=lambda country, **_: country,
    ),
    "mean_money": Measure(
        where=lambda amount, gift, **_: amount is not None and not gift,
        weight=lambda amount, **_: amount - MIDDLE,
        label=lambda country, **_: f"sum\n{country}",
        further=lambda country, **_: ((f"count\n{country}", 1),),
    ),
    "by_country": Measure(label=lambda country, gift, **_: _array(country, gift)),
    "by_product": Measure(label=lambda product, **_: _bare(product)),
    "recent_pairs": Measure(window=4, label=lambda product, country, **_: _array(product, country)),
}
COLUMNS = tuple(Contents.__dataclass_fields__)


def totals(
    survivors: Iterable[tuple[tuple[int, tuple[object, ...]], int]], round_: int
) -> dict[str, dict[bytes, int]]:
    """Non-zero totals of every release from (stamp, values) and copies."""
    pairs = list(survivors)
    found = {}
    for name, measure in TOTALS.items():
        sums: Counter[bytes] = Counter()
        for (stamp, values), copies in pairs:
            named = dict(zip(COLUMNS, values, strict=True))
            live = measure.window is None or round_ - stamp < measure.window
            if live and measure.where(**named):
                sums[measure.label(**named).encode()] += copies * measure.weight(**named)
                for label, weight in measure.further(**named):
                    sums[label.encode()] += copies * weight
        found[name] = {label: total for label, total in sums.items() if total}
    return found
