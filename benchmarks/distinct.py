"""Numbers of different values: which method errs how much, on made-up and on real data.

    python -m benchmarks distinct

Every interval is published by the method's own mechanism, from totals of made-up items under
several keys, at rho = 1/2. Real data: a shop's order lines and the register of .gov domains, replayed
without a store, exact numbers beside the published ones.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.peers import load
from benchmarks.tables import Table, millions
from benchmarks.timing import rate
from retrodp.demo import data_path
from retrodp.mechanisms import ladder, minhash
from retrodp.mechanisms.calibrate import choose_factor, gaussian_process
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.distinct import FreshDistinct
from retrodp.mechanisms.ladder import Ladder
from retrodp.mechanisms.minhash import MinHash
from retrodp.noise.key import KeyTree
from retrodp.plan.columns import Column
from retrodp.privacy.budget import zCDP
from retrodp.statistics.contract import Statistic
from retrodp.statistics.items import BucketedItems, Items, LowBitItems, PresentItems, bucket_sums
from retrodp.statistics.label import BinLabels
from retrodp.stream.batch import Batch

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
IMAGES = ROOT / "docs" / "img"
REGISTER = ROOT / "examples" / "gov_register" / "register.parquet"

RHO = Fraction(1, 2)
LEVEL = Fraction(19, 20)
HORIZONS = (365, 65_536)
HIGH = 30_000
NUMBERS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
COPIES = (1, 30, 3_000)
KEYS = 5
INSTANCES = 7
MILLION = 10**6

Integers = NDArray[np.int64]


class Ends(NamedTuple):
    """Ends of the interval for one round."""

    low: int
    high: int


def tree(number: int, horizon: int) -> KeyTree:
    """One of several keys."""
    root = hashlib.sha256(b"benchmark" + number.to_bytes(4, "big")).digest()
    return KeyTree.from_root(root, b"distinct", horizon)


@cache
def noise_of(horizon: int, partitions: int) -> CalibratedNoise:
    """Of counters of which a record moves so many."""
    split = (1,) * partitions
    factor = choose_factor("auto", horizon=horizon, law="gaussian")
    process = gaussian_process(factor, rho=RHO, amount=1, split=split)
    return CalibratedNoise.of(
        "items", process, step=Fraction(1), amount=1, split=split, level=LEVEL
    )


@cache
def a_ladder(horizon: int, high: int = HIGH, *, signed: bool = False) -> Ladder:
    """A ladder for up to so many items."""
    height = ladder.height_for(high)
    return Ladder.of(noise_of(horizon, height + 1), height=height, signed=signed)


@cache
def hashes(horizon: int, high: int = HIGH, instances: int = INSTANCES) -> MinHash:
    """Hashes by low bits for up to so many items."""
    noise = noise_of(horizon, instances)
    return MinHash.of(noise, instances=instances, levels=minhash.levels_for(high))


@cache
def fresh(horizon: int, window: int | None = None) -> FreshDistinct:
    """The exact number with noise of its own."""
    return FreshDistinct.of(horizon=horizon, budget=zCDP(RHO), window=window, name="items")


def items(column: str) -> Items:
    """Of one text column."""
    return Items(of=BinLabels(columns=(Column(name=column, type="text", from_=column),)))


def batch(column: str, values: Sequence[object], each: int = 1) -> Batch:
    """Values as a column, each so often."""
    return Batch(len(values), {column: [*values]}, np.full(len(values), each, np.int64))


def labels(number: int) -> list[bytes]:
    """So many items."""
    return [b"item %d" % place for place in range(number)]


def intervals(horizon: int, number: int, each: int, key: int) -> dict[str, Ends]:
    """What every method publishes of so many items of so many records."""
    keys = tree(key, horizon)
    round_ = horizon // 2 + 1 + key
    names, secret = labels(number), bytes([key]) * 32
    made = fresh(horizon)
    value = int(made.release(round_, dict.fromkeys(names, each), keys).value)
    half = made.noise.half[round_ - 1]
    found = {"fresh": Ends(max(value - half, 0), max(value + half, 0))}
    amounts = np.full(number, each, np.int64)
    rungs = a_ladder(horizon)
    sums = bucket_sums(names, amounts, key=secret, height=rungs.height, signed=False)
    low_bits = hashes(horizon)
    counted = LowBitItems(
        items=items("item"), instances=INSTANCES, levels=low_bits.levels, key=secret
    ).encode(batch("item", [name.decode() for name in names], each))
    for title, answer in (
        ("ladder", rungs.release(round_, sums, keys)),
        ("minhash", low_bits.release(round_, counted, keys)),
    ):
        assert answer.each is not None
        found[title] = Ends(answer.each[0].low, answer.each[0].high)
    return found


@cache
def found_at(horizon: int) -> dict[tuple[str, int, int], list[Ends]]:
    """Intervals by method, copies and number, one a key."""
    found: dict[tuple[str, int, int], list[Ends]] = {}
    for each in COPIES:
        for number in NUMBERS:
            for key in range(KEYS):
                for method, ends in intervals(horizon, number, each, key).items():
                    found.setdefault((method, each, number), []).append(ends)
    return found


def widths() -> Iterator[Table]:
    """Ends over the true number, by horizon."""
    for horizon in HORIZONS:
        table = Table(
            f"distinct-{horizon}",
            f"Different values: published intervals over {horizon:,} rounds, rho = 1/2",
            f"Median ends of {KEYS} keys as multiples of the true number D, at level 0.95, for a "
            "round. A ladder and hashes by low bits planned for up to "
            f"{HIGH:,} items; tau {a_ladder(horizon).sureness.seeing.tau} and "
            f"{hashes(horizon).sureness.seeing.tau}.",
            ("records an item", "D", "fresh", "ladder", "minhash"),
        )
        found = found_at(horizon)
        for each in COPIES:
            for number in NUMBERS:
                cells = []
                for method in ("fresh", "ladder", "minhash"):
                    ends = found[method, each, number]
                    low, high = (
                        float(np.median(side)) / number for side in zip(*ends, strict=True)
                    )
                    cells.append(f"{low:.3g} to {high:.4g}")
                table.add(each, number, *cells)
        yield table


def constants() -> Table:
    """What the theorems promise beside what happens."""
    horizon = HORIZONS[1]
    rungs, single = a_ladder(horizon), hashes(horizon, instances=1)
    tau = rungs.sureness.seeing.tau
    table = Table(
        "distinct-constants",
        f"Different values: constants, {horizon:,} rounds, rho = 1/2",
        f"Ladder of {rungs.height + 1} scales, tau = {tau}, {KEYS} hashes; i* is the largest scale "
        "with half of its buckets seen, the estimate the largest -M ln(1 - occupancy) over "
        "occupancies below 0.9. Minhash: one hash, "
        f"tau = {single.sureness.seeing.tau}, 1,000 hashes, E = 2^(l + 1). Promised from D = 8 tau "
        "on: D/(8 tau) < 2^i* < 4 D, and D/(8 tau) < E <= 8 D with probability 3/4 - 1/tau.",
        (
            *("D", "records an item", "2^i* / D", "8 tau 2^i* / D", "estimate / D"),
            "minhash within, %",
        ),
    )
    for number in (300, 3_000, 30_000):
        for each in (1, tau // 8, tau, 2 * tau, 20 * tau):
            scales, estimates = [], []
            for key in range(KEYS):
                sums = bucket_sums(
                    labels(number),
                    np.full(number, each, np.int64),
                    key=bytes([key + 40]) * 32,
                    height=rungs.height,
                    signed=False,
                )
                noisy = rungs.noisy(1 + key, sums, tree(key, horizon))
                shares = [float(np.mean(scale > tau)) for scale in noisy]
                scales.append(max((2.0**i for i, o in enumerate(shares) if o >= 0.5), default=0.0))
                estimates.append(
                    max(-(2.0**i) * math.log1p(-o) if o < 0.9 else 0 for i, o in enumerate(shares))
                )
            scale, estimate = float(np.median(scales)), float(np.median(estimates))
            table.add(
                number,
                each,
                f"{scale / number:.3g}",
                f"{8 * tau * scale / number:.4g}",
                f"{estimate / number:.3f}",
                f"{100 * within_theorem(single, number, each):.1f}",
            )
    return table


def within_theorem(single: MinHash, number: int, each: int, runs: int = 1000) -> float:
    """Share of hashes whose E is within the factors of theorem 3.1; normal noise, rounded."""
    rng = np.random.default_rng(number + each)
    tau, levels = single.sureness.seeing.tau, single.levels
    chances = np.ldexp(1.0, -np.append(np.arange(1, levels), levels - 1))
    counts = rng.multinomial(number, chances, size=runs) * each
    deviation = float(single.noise.stddev[0])
    noisy = counts + np.rint(rng.normal(0, deviation, counts.shape))
    top = minhash.highest(noisy > tau)
    size = np.where(top >= 0, 2.0 ** (top + 1), 0)
    good = (number / (8 * tau) < size) & (size <= 8 * number)
    return float(good.mean())


def picture(horizon: int, target: Path) -> bool:
    """Intervals over the true number; False where matplotlib is not installed."""
    pyplot = load("matplotlib.pyplot")
    if pyplot is None:
        return False
    found = found_at(horizon)
    figure, axes = pyplot.subplots(1, len(COPIES), figsize=(11, 4), sharey=True)
    colours = {"fresh": "tab:blue", "ladder": "tab:orange", "minhash": "tab:green"}
    for axis, each in zip(axes, COPIES, strict=True):
        for method, colour in colours.items():
            ends = np.array([np.median(found[method, each, n], axis=0) for n in NUMBERS])
            low, high = np.maximum(ends[:, 0], 0.5), np.maximum(ends[:, 1], 0.5)
            shares = np.array(NUMBERS)
            axis.fill_between(shares, low / shares, high / shares, color=colour, alpha=0.18)
            for side in (low, high):
                axis.plot(shares, side / shares, color=colour, marker="o", markersize=3)
            axis.plot([], [], color=colour, label=method)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="true number D")
        axis.set_title(f"{each:,} record{'s' if each > 1 else ''} an item", fontsize=10)
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("ends of the 95 % interval over D")
    axes[0].legend(fontsize=8)
    figure.suptitle(f"Different values, {horizon:,} rounds, rho = 1/2")
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    return True


class Event(NamedTuple):
    """An item that gains or loses a record in a round; `stamp` is the record's own round."""

    round: int
    sign: int
    stamp: int
    item: str | None


def shop(column: str) -> list[Event]:
    """Order lines of the demo by day, with what was taken back."""
    rows = pq.read_table(data_path()).to_pylist()
    start = rows[0]["at"].date()
    begun: dict[str, tuple[int, str | None]] = {}
    events = []
    for row in rows:
        day = (row["at"].date() - start).days + 1
        if row["op"] == "add":
            begun[row["id"]] = day, row[column]
            events.append(Event(day, 1, day, row[column]))
        elif row["id"] in begun:
            stamp, item = begun.pop(row["id"])
            events.append(Event(day, -1, stamp, item))
    return events


def register() -> list[Event]:
    """Domains of .gov by month, with their organisations; a correction is a loss and a gain."""
    events, stamps = [], Counter[tuple[str, str]]()
    for row in pq.read_table(REGISTER).to_pylist():
        month = (row["seen_at"].year - 2019) * 12 + row["seen_at"].month - 1
        key = row["domain"], row["organization"]
        if row["op"] == "+":
            stamps[key] = month
        events.append(Event(month, 1 if row["op"] == "+" else -1, stamps[key], row["organization"]))
    return events


def replay(events: Sequence[Event], horizon: int, window: int | None) -> list[dict[bytes, int]]:
    """Totals by item after every round, of records that still count."""
    moves: list[Counter[bytes]] = [Counter() for _ in range(horizon + 2)]
    for event in events:
        label = b"[null]" if event.item is None else event.item.encode()
        if window is not None and event.round - event.stamp >= window:
            continue  # it had stopped counting before it was taken back
        moves[event.round][label] += event.sign
        if window is not None and event.stamp + window <= horizon:
            moves[event.stamp + window][label] -= event.sign
    totals: Counter[bytes] = Counter()
    found = []
    for move in moves[1 : horizon + 1]:
        for label, change in move.items():
            totals[label] += change
        found.append({label: total for label, total in totals.items() if total > 0})
    return found


def real() -> Table:
    """Exact and published numbers of three real streams."""
    table = Table(
        "distinct-real",
        "Different values of real streams, rho = 1/2",
        f"Root mean squared error of `fresh` over all rounds and {KEYS} keys beside what is stated "
        "beforehand, and the share of rounds inside the 95 % interval; median bracket of a ladder "
        "in the last round over its number.",
        (
            *("stream", "rounds", "exact, last", "records, last", "fresh, stated", "fresh, found"),
            *("inside, %", "ladder, last"),
        ),
    )
    streams: list[tuple[str, Callable[[], list[Event]], int, int | None]] = [
        ("customers of the last 30 days", lambda: shop("customer"), 374, 30),
        ("customers so far", lambda: shop("customer"), 374, None),
        ("products so far", lambda: shop("product"), 374, None),
        ("organisations in .gov", register, 91, None),
    ]
    for title, events, horizon, window in streams:
        totals = replay(events(), horizon, window)
        made = fresh(horizon, window)
        exact = np.array([len(one) for one in totals])
        errors = np.array(
            [
                [
                    int(made.release(r, one, tree(key, horizon)).value) - len(one)
                    for r, one in enumerate(totals, start=1)
                ]
                for key in range(KEYS)
            ]
        )
        inside = np.abs(errors) <= np.array(made.noise.half)
        rungs = a_ladder(horizon, int(exact.max()))
        last = totals[-1]
        brackets = []
        for key in range(KEYS):
            sums = bucket_sums(
                [*last],
                np.fromiter(last.values(), np.int64, len(last)),
                key=bytes([key]) * 32,
                height=rungs.height,
                signed=False,
            )
            ends = rungs.release(horizon, sums, tree(key, horizon)).each
            assert ends is not None
            brackets.append((ends[0].low, ends[0].high))
        low, high = np.median(brackets, axis=0)
        table.add(
            title,
            horizon,
            int(exact[-1]),
            sum(last.values()),
            f"{float(made.noise.stddev[0]):.2f}",
            f"{math.sqrt(float((errors**2).mean())):.2f}",
            f"{100 * float(inside.mean()):.1f}",
            f"{low:.0f} to {high:.0f}",
        )
    return table


def speed() -> Table:
    """Updates a second from decoded records to totals."""
    table = Table(
        "distinct-speed",
        "Different values: million updates a second into totals",
        "One batch of a million decoded records of a text column, processor time of one core: "
        "grouped by item, hashed by a keyed AES chain, added up by bucket.",
        ("method", "different items in the batch", "million/s", "best"),
    )
    for different in (4_000, 100_000, MILLION):
        values = [f"item {place % different}" for place in range(MILLION)]
        records = batch("item", values)
        ways: dict[str, Statistic] = {
            "fresh": PresentItems(items=items("item")),
            "ladder, 2^16 buckets": BucketedItems(items=items("item"), height=16, key=bytes(32)),
            "signed, 2^16 buckets": BucketedItems(
                items=items("item"), height=16, signed=True, key=bytes(32)
            ),
            "minhash, 7 hashes": LowBitItems(
                items=items("item"), instances=7, levels=18, key=bytes(32)
            ),
        }
        for name, statistic in ways.items():
            found = rate(partial(statistic.encode, records), MILLION)
            table.add(name, different, *millions(found))
    raw = np.random.default_rng(0).choice([-1, 1], MILLION)
    updates = labels(MILLION)
    found = rate(lambda: bucket_sums(updates, raw, key=bytes(32), height=16, signed=True), MILLION)
    table.add("raw signed updates, 2^16 buckets", MILLION, *millions(found))
    return table


def tables() -> Iterator[Table]:
    """All of them."""
    yield speed()
    yield real()
    yield constants()
    yield from widths()


def pictures(folder: Path) -> bool:
    """Error against the true count, one picture a horizon; whether they could be drawn."""
    done = True
    for horizon in HORIZONS:
        done &= picture(horizon, folder / f"distinct-{horizon}.png")
    return done
