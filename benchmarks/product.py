"""The whole program: the retail demo, growing stores, and one forgotten person among a million."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import Table

ROOT = Path(__file__).parents[1]
ROUNDS = 50


def measured(job: str, *arguments: object) -> dict[str, float]:
    """Run one job of this module in a process of its own; its numbers and its peak memory."""
    command = [sys.executable, "-m", "benchmarks.product", job, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def product(sizes: tuple[int, ...] = (100_000, 1_000_000)) -> Table:
    """Everything end to end, in processes of their own."""
    table = Table(
        "product",
        "End to end",
        "In processes of their own, on files in the temporary directory; seconds are wall time of "
        "a machine that may be busy, (cpu) and rows/s are processor time. Retail is the shipped "
        "demo: a shop's order book, 374 rounds, 5 releases, two customers forgotten. The others "
        f"are made-up Parquet files with random ids over {ROUNDS} rounds, 1,000 records a person, "
        "a public histogram of 100 bins and an open one with a bin for every 10 records.",
        ("what", "amount", "seconds", "(cpu)", "rows/s", "peak memory MB"),
    )

    def add(what: str, found: dict[str, float], part: str, amount: int, rows: int | None) -> None:
        wall, cpu = found[part], found[f"{part}_cpu"]
        peak = found["peak"] if part in {"total", "forget"} else None
        table.add(what, amount, wall, cpu, None if rows is None else rows / cpu, peak)

    retail = measured("retail")
    rows, rounds = int(retail["rows"]), int(retail["rounds"])
    add("retail: ingest", retail, "ingest", rows, rows)
    add("retail: close all rounds", retail, "close", rounds, rows)
    add("retail: erase bytes", retail, "settle", 1, None)
    add("retail: verify", retail, "verify", 1, None)
    add("retail: all of it", retail, "total", rows, rows)
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="retrodp-bench-") as name:
            path = Path(name) / "rows.parquet"
            measured("rows", size, path)
            made = measured("grow", size, path)
        add(f"made-up, {size:,} records: ingest", made, "ingest", size, size)
        add(f"made-up, {size:,} records: close the rounds", made, "close", ROUNDS, size)
        add(f"made-up, {size:,} records: a round of 1,000 more", made, "small", 1, None)
        add(f"made-up, {size:,} records: forget one person, bytes too", made, "forget", 1, None)
    return table


class Clock:
    """Wall and processor seconds of the parts of a job."""

    def __init__(self) -> None:
        """Start now."""
        self.found: dict[str, float] = {}
        self._last = self._now()
        self._first = self._last

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def lap(self, name: str) -> None:
        """Name what happened since the last lap."""
        now = self._now()
        self.found[name] = now[0] - self._last[0]
        self.found[f"{name}_cpu"] = now[1] - self._last[1]
        self._last = now

    def done(self) -> None:
        """Print everything."""
        import resource  # noqa: PLC0415  POSIX only

        now = self._now()
        self.found["total"], self.found["total_cpu"] = (
            now[0] - self._first[0],
            now[1] - self._first[1],
        )
        self.found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(self.found))


def retail(directory: Path) -> None:
    """The demo without its printing."""
    from retrodp import demo as shipped  # noqa: PLC0415
    from retrodp.engine.forget import asked  # noqa: PLC0415
    from retrodp.engine.store import Store  # noqa: PLC0415
    from retrodp.engine.verify import verify  # noqa: PLC0415
    from retrodp.plan.plan import Plan  # noqa: PLC0415
    from retrodp.stream.sources import read_file  # noqa: PLC0415

    clock = Clock()
    with Store.create(directory / "store", Plan.load(shipped.plan_path())) as store:
        clock.lap("create")
        ingested = store.ingest(read_file(shipped.data_path(), store.layout()))
        clock.found["rows"] = ingested.new
        clock.lap("ingest")
        store.close_through(store.horizon - 2)
        store.forget(persons=shipped.FORGET_CUSTOMERS)
        store.close_through(store.horizon)
        clock.found["rounds"] = store.horizon
        clock.lap("close")
        store.settle()
        clock.lap("settle")
        checked = verify(store, asked((), shipped.FORGET_CUSTOMERS))
        assert checked.passed
        clock.lap("verify")
    clock.done()


PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = 365
unit = "record"
person = "person"

[columns]
person = "text"
group = {{ type = "category", values = [{groups}] }}
item = "text"

[privacy]
model = "zcdp"
epsilon = 1.0
delta = 1e-9

[release.all]
kind = "count"

[release.by_group]
kind = "histogram"
by = "group"

[release.by_item]
kind = "histogram"
by = "item"
"""


def made_rows(count: int, day: int, *, size: int, seed: int) -> pa.Table:
    """Additions of one day: random ids, `size / 1000` persons, 100 groups, `size / 10` items."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(0, 2**62, count)
    start = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) + 86_400 * (day - 1)
    return pa.table(
        {
            "op": pa.array(["add"] * count),
            "id": pa.array([f"{number:016x}" for number in ids.tolist()]),
            "at": pa.array(start * 10**6 + np.arange(count) % 10**9, pa.timestamp("us", tz="UTC")),
            "person": pa.array([f"p{place}" for place in (ids % (size // 1000)).tolist()]),
            "group": pa.array([f"g{place:02d}" for place in (ids % 100).tolist()]),
            "item": pa.array([f"item-{place}" for place in (ids // 100 % (size // 10)).tolist()]),
        }
    )


def write_rows(size: int, path: Path) -> None:
    """A file of `size` records, day by day."""
    parts = [made_rows(size // ROUNDS, day, size=size, seed=day) for day in range(1, ROUNDS + 1)]
    pq.write_table(pa.concat_tables(parts), path)
    print(json.dumps({"bytes": float(path.stat().st_size)}))


def grow(directory: Path, size: int, path: Path) -> None:
    """A store of the file's records; then a small round; then one person forgotten."""
    from retrodp.engine.store import Store  # noqa: PLC0415
    from retrodp.plan.plan import Plan  # noqa: PLC0415
    from retrodp.stream.sources import read_file, read_frame  # noqa: PLC0415

    groups = ", ".join(f'"g{number:02d}"' for number in range(100))
    plan = Plan.loads(PLAN.format(groups=groups))
    more = made_rows(1000, ROUNDS + 1, size=size, seed=0)
    clock = Clock()
    with Store.create(directory / "store", plan) as store:
        clock.lap("create")
        assert store.ingest(read_file(path, store.layout())).new == size
        clock.lap("ingest")
        store.close_through(ROUNDS)
        clock.lap("close")
        store.settle()
        clock.lap("settle")
        store.ingest(read_frame(more, store.layout()))
        store.close_round()
        clock.lap("small")
        store.forget(persons=["p1"])
        store.close_round()
        store.settle()
        clock.lap("forget")
    clock.done()


def main(arguments: list[str]) -> None:
    """One job."""
    with tempfile.TemporaryDirectory(prefix="retrodp-bench-") as name:
        match arguments:
            case ["retail"]:
                retail(Path(name))
            case ["rows", size, path]:
                write_rows(int(size), Path(path))
            case ["grow", size, path]:
                grow(Path(name), int(size), Path(path))
            case _:
                raise SystemExit("usage: python -m benchmarks.product retail")


if __name__ == "__main__":
    main(sys.argv[1:])
