"""The whole program: a shop's order book, stores that grow, one forgotten person among millions."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import Table

ROOT = Path(__file__).parents[1]
ROUNDS = 365
MILLION = 1_000_000


class Job(NamedTuple):
    """What one process was asked for and what it measured: seconds, counts, bytes."""

    found: dict[str, float]

    def times(self, part: str) -> tuple[float, float]:
        """Wall and processor seconds of a part."""
        return self.found[part], self.found[f"{part}_cpu"]

    def whole(self, name: str) -> int:
        """A count."""
        return int(self.found[name])


def measured(job: str, *arguments: object) -> Job:
    """Run one job of this module in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.product", job, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Job(json.loads(done.stdout.splitlines()[-1]))


def retail_table() -> Table:
    """The whole job on real data."""
    table = Table(
        "retail",
        "End to end: a shop's order book with 8 releases",
        "The shipped file, 374 rounds: two counts and one over a window of a day, two sums, a "
        "public histogram and two open ones; two customers forgotten two rounds before the end. "
        "One process, files in the temporary directory; seconds are wall time of a machine that "
        "may be busy, (cpu) and rows/s are processor time.",
        ("part", "amount", "seconds", "(cpu)", "rows/s", "peak memory MB"),
    )
    job = measured("retail")
    rows, rounds = job.whole("rows"), job.whole("rounds")
    for name, part, amount in (
        ("ingest from Parquet", "ingest", rows),
        ("close all rounds", "close", rounds),
        ("erase bytes", "settle", 1),
        ("all of it", "total", rows),
        ("verify, besides", "verify", 1),
    ):
        wall, cpu = job.times(part)
        rate = rows / cpu if part in {"ingest", "close", "total"} else None
        table.add(name, amount, wall, cpu, rate, job.found["peak"] if part == "total" else None)
    return table


def ingest_table() -> Table:
    """Ids in order and at random."""
    table = Table(
        "ingest",
        "Ingest: a million additions from Parquet",
        "50 rounds of 20,000; a person, a group of 100 and one of 100,000 items each. To the "
        "ledger: read, judged, queued in order, durable. To the statistics: the rounds closed too, "
        "with every record in the ledger and in the totals of a count, a public and an open "
        "histogram. Published: the releases too, of up to 100,000 open bins in each round. Updates "
        "a second of processor time; seconds for all of it; and of forgetting one person of 1,000 "
        "records after that, its round and the rewrite of all bytes included. SQLite alone: the "
        "same rows, at hand as tuples, into one table by id that overwrites what it deletes, in 50 "
        "transactions. Medians of five runs, one of each in turn; best: of the statistics.",
        (
            *("ids", "to the ledger", "to the statistics", "best", "published", "seconds"),
            *("forget seconds", "SQLite alone"),
        ),
    )
    for ids in ("sorted", "random"):
        runs = []
        with tempfile.TemporaryDirectory(prefix="retrodp-bench-") as name:
            path = Path(name) / "rows.parquet"
            measured("rows", MILLION, 50, ids, path)
            for _ in range(5):
                job, alone = measured("grow", MILLION, 50, path), measured("sqlite", 50, path)
                (wall, cpu), (more_wall, more_cpu) = job.times("ingest"), job.times("close")
                statistics = cpu + more_cpu - job.found["release_cpu"]
                rates = (MILLION / each for each in (cpu, statistics, cpu + more_cpu))
                last = MILLION / alone.times("insert")[1]
                runs.append((*rates, wall + more_wall, job.times("forget")[0], last))
        ledger, statistics, *rest = map(median, zip(*runs, strict=True))
        table.add(ids, ledger, statistics, max(run[1] for run in runs), *rest)
    return table


def scale_table(sizes: tuple[int, ...]) -> Table:
    """Growth."""
    table = Table(
        "scale",
        f"Scale: growing stores over {ROUNDS} rounds",
        "Additions with random ids from Parquet, 1,000 records a person, a count, a public "
        "histogram of 100 bins and an open one with a bin for every 10 records. Microseconds of "
        "processor time an update, for ingest and for closing all rounds; then, with that "
        "history, seconds (cpu) of a round of 1,000 updates more, of its statistics and its "
        "release of all bins, and of forgetting one person: round, release and the rewrite of "
        "all bytes; the ledger's size and the peak memory of the process.",
        (
            *("updates", "open bins", "ingest us", "close us", "seconds in all", "(cpu)"),
            *("1,000 more (cpu)", "forget seconds", "(cpu)", "ledger MB", "peak memory MB"),
        ),
    )
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="retrodp-bench-") as name:
            path = Path(name) / "rows.parquet"
            measured("rows", size, ROUNDS, "random", path)
            job = measured("grow", size, ROUNDS, path)
        ingest, close = job.times("ingest"), job.times("close")
        each = (1e6 * cpu / job.whole("rows") for _, cpu in (ingest, close))
        table.add(
            *(job.whole("rows"), job.whole("bins"), *each),
            *(ingest[0] + close[0], ingest[1] + close[1], job.times("small")[1]),
            *(*job.times("forget"), job.found["size"], job.found["peak"]),
        )
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

    def watch(self, owner: Any, name: str, part: str) -> None:
        """From now on add the processor seconds of a function to a part."""
        real = getattr(owner, name)
        self.found[f"{part}_cpu"] = 0.0

        def watched(*own: Any, **rest: Any) -> Any:
            began = time.process_time()
            try:
                return real(*own, **rest)
            finally:
                self.found[f"{part}_cpu"] += time.process_time() - began

        setattr(owner, name, watched)

    def tell(self, what: str) -> None:
        """Say on standard error how far a long job is."""
        wall, cpu = (now - first for now, first in zip(self._now(), self._first, strict=True))
        print(f"  {what}, {wall:.0f} s ({cpu:.0f} s cpu)", file=sys.stderr, flush=True)

    def tell_fifths(self, done: int, todo: int) -> None:
        """The same of rounds, five times."""
        if done * 5 // todo > (done - 1) * 5 // todo:
            self.tell(f"{done} of {todo} rounds closed")

    def total(self) -> None:
        """What happened since the start is the whole job."""
        now = self._now()
        self.found["total"], self.found["total_cpu"] = (
            now[0] - self._first[0],
            now[1] - self._first[1],
        )

    def done(self) -> None:
        """Print everything."""
        self.found["peak"] = peak_memory()
        print(json.dumps(self.found))


EXTRA = """
[release.abroad]
kind = "count"
where = "country != 'United Kingdom'"

[release.revenue_abroad]
kind = "sum"
of = "amount"
where = "country != 'United Kingdom'"

[release.by_country_and_product]
kind = "histogram"
by = ["country", "product"]
share = 3
"""


def warm_up() -> None:
    """Import what is imported late: pyarrow looks for pandas at the first conversion."""
    pa.array(["x"]).to_numpy(zero_copy_only=False)


def peak_memory() -> float:
    """Most memory that this process held since it began, in MB."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        import resource  # noqa: PLC0415  POSIX only

        # Elsewhere than on Linux; there it would count what the parent held when it forked.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


def retail(directory: Path) -> None:
    """The demo with three releases more and without its printing."""
    from retrodp import demo as shipped  # noqa: PLC0415
    from retrodp.engine.forget import asked  # noqa: PLC0415
    from retrodp.engine.store import Store  # noqa: PLC0415
    from retrodp.engine.verify import verify  # noqa: PLC0415
    from retrodp.plan.plan import Plan  # noqa: PLC0415
    from retrodp.stream.sources import read_file  # noqa: PLC0415

    plan = Plan.loads(shipped.plan_path().read_text(encoding="utf-8") + EXTRA)
    warm_up()
    clock = Clock()
    with Store.create(directory / "store", plan) as store:
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
        clock.total()
        checked = verify(store, asked((), shipped.FORGET_CUSTOMERS))
        assert checked.passed
        clock.lap("verify")
    clock.done()


PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = 400
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


def made_rows(count: int, day: int, *, size: int, seed: int, ids: str = "random") -> pa.Table:
    """Additions of one day: `size / 1000` persons, 100 groups, `size / 10` items."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, 2**62, count)
    names = drawn if ids == "random" else np.arange(count) + (seed << 32)
    start = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) + 86_400 * (day - 1)
    return pa.table(
        {
            "op": pa.array(["add"] * count),
            "id": pa.array([f"{number:016x}" for number in names.tolist()]),
            "at": pa.array(start * 10**6 + np.arange(count) % 10**9, pa.timestamp("us", tz="UTC")),
            "person": pa.array([f"p{place}" for place in (drawn % (size // 1000)).tolist()]),
            "group": pa.array([f"g{place:02d}" for place in (drawn % 100).tolist()]),
            "item": pa.array([f"item-{place}" for place in (drawn // 100 % (size // 10)).tolist()]),
        }
    )


def write_rows(size: int, rounds: int, ids: str, path: Path) -> None:
    """A file of about `size` records, day by day."""
    each = -(-size // rounds)
    days = range(1, rounds + 1)
    first = made_rows(1, 1, size=size, seed=1, ids=ids)
    with pq.ParquetWriter(path, first.schema) as writer:
        for day in days:
            writer.write_table(made_rows(each, day, size=size, seed=day, ids=ids))
    print(json.dumps({"bytes": float(path.stat().st_size)}))


def grow(directory: Path, size: int, rounds: int, path: Path) -> None:
    """A store of the file's records; then a small round; then one person forgotten."""
    from retrodp.engine import close as closing  # noqa: PLC0415
    from retrodp.engine.store import Store  # noqa: PLC0415
    from retrodp.plan.plan import Plan  # noqa: PLC0415
    from retrodp.stream.sources import read_file, read_frame  # noqa: PLC0415

    groups = ", ".join(f'"g{number:02d}"' for number in range(100))
    plan = Plan.loads(PLAN.format(groups=groups))
    more = made_rows(1000, rounds + 1, size=size, seed=0)
    warm_up()
    clock = Clock()
    clock.watch(closing, "made", "release")
    with Store.create(directory / "store", plan) as store:
        clock.lap("create")
        clock.found["rows"] = store.ingest(read_file(path, store.layout())).new
        clock.lap("ingest")
        store.close_through(rounds, progress=clock.tell_fifths)
        clock.lap("close")
        clock.total()
        store.settle()
        store.ingest(read_frame(more, store.layout()))
        clock.lap("settle")
        store.close_round()
        clock.lap("small")
        store.forget(persons=["p1"])
        store.close_round()
        store.settle()
        clock.lap("forget")
        clock.found["bins"] = len(store.ledger.read_totals("by_item"))
        clock.found["size"] = (directory / "store" / "ledger.sqlite").stat().st_size / 1e6
    clock.done()


def sqlite_alone(directory: Path, transactions: int, path: Path) -> None:
    """The file's rows into a table of SQLite, and nothing else done with them."""
    columns = [pq.read_table(path)[name] for name in ("id", "at", "person", "group", "item")]
    columns[1] = columns[1].cast(pa.int64())
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    each = -(-len(rows) // transactions)
    connection = sqlite3.connect(directory / "alone.sqlite", isolation_level=None)
    for pragma in (
        *("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"),
        *("cache_size = -524288", "wal_autocheckpoint = 40000"),
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    names = "id TEXT PRIMARY KEY, at INTEGER, person TEXT, section TEXT, item TEXT"
    connection.execute(f"CREATE TABLE records({names}) WITHOUT ROWID")
    clock = Clock()
    for start in range(0, len(rows), each):
        connection.execute("BEGIN")
        some = rows[start : start + each]
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", some)
        connection.execute("COMMIT")
    clock.lap("insert")
    connection.close()
    clock.done()


def main(arguments: list[str]) -> None:
    """One job."""
    with tempfile.TemporaryDirectory(prefix="retrodp-bench-") as name:
        match arguments:
            case ["retail"]:
                retail(Path(name))
            case ["rows", size, rounds, ids, path]:
                write_rows(int(size), int(rounds), ids, Path(path))
            case ["grow", size, rounds, path]:
                grow(Path(name), int(size), int(rounds), Path(path))
            case ["sqlite", transactions, path]:
                sqlite_alone(Path(name), int(transactions), Path(path))
            case _:
                raise SystemExit("usage: python -m benchmarks.product retail")


if __name__ == "__main__":
    main(sys.argv[1:])
