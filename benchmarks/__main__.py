"""Run the benchmarks and write what they found.

python -m benchmarks                 everything but the largest: ten million records, a million points
python -m benchmarks samplers error  tables whose name begins so
python -m benchmarks --large         a store of ten million records and streams of a million points too
python -m benchmarks --docs          docs/benchmarks.md and its picture of errors from the last results
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import (
    clustering,
    distinct,
    errors,
    kinds,
    machine,
    online,
    product,
    quantiles,
    revised,
    sampling,
    sketches,
    speed,
    vectors,
)
from benchmarks.page import page
from benchmarks.tables import Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PICTURE = ROOT / "docs" / "img" / "error-curves.png"
SIZES = (100_000, 1_000_000)
LARGE = 10_000_000

Make = Callable[[], Table | Iterable[Table]]


def jobs(*, large: bool) -> dict[str, Make]:
    """Every table by its name; "error" gives two."""
    return {
        "samplers": speed.samplers,
        "parts": speed.parts,
        "releases": speed.releases,
        "sparse": speed.sparse,
        "memory": speed.memory,
        "error": errors.counters,
        "thresholds": errors.thresholds,
        "quantiles": quantiles.quantiles,
        "revised_error": revised.errors,
        "revised_cost": revised.costs,
        "vectors": vectors.vectors,
        "kinds": kinds.tables,
        "distinct": distinct.tables,
        "cluster": clustering.clusters,
        "online": lambda: online.tables(large=large),
        "sampling": sampling.tables,
        "sketch": sketches.tables,
        "retail": product.retail_table,
        "ingest": product.ingest_table,
        "scale": lambda: product.scale_table((*SIZES, LARGE) if large else SIZES),
    }


def write(table: Table, found: dict[str, str]) -> None:
    """One Markdown and one JSON file a table, with the machine."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = f"{table.markdown()}\n{machine.markdown(found)}"
    (RESULTS / f"{table.name}.md").write_text(text, encoding="utf-8")
    document: dict[str, Any] = {"machine": found, **table.document()}
    (RESULTS / f"{table.name}.json").write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument("tables", nargs="*", help="names of tables, or how they begin")
    parser.add_argument(
        "--large",
        action="store_true",
        help="add what takes longest: ten million records, streams of a million points",
    )
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks.md")
    asked = parser.parse_args()
    chosen = {
        name: make
        for name, make in jobs(large=asked.large).items()
        if not asked.tables or any(name.startswith(wanted) for wanted in asked.tables)
    }
    if asked.docs and not asked.tables:
        chosen = {}
    if not chosen and not asked.docs:
        parser.error(f"no such table; there are {', '.join(jobs(large=False))}")
    for name, make in chosen.items():
        print(f"{name} ...", flush=True)
        made = make()
        for table in [made] if isinstance(made, Table) else made:
            write(table, machine.described())
            print(f"\n{table.markdown()}", flush=True)
    pictures = {
        "error": (errors.plot, PICTURE),
        "quantiles": (quantiles.plot, quantiles.PICTURE),
        "cluster": (clustering.plot, clustering.PICTURE),
        "online": (online.plot, online.IMAGES),
        "sampling": (sampling.plot, sampling.PICTURE),
        "distinct": (distinct.pictures, distinct.IMAGES),
    }
    for name, (plot, target) in pictures.items():
        if name in chosen or (asked.docs and name == "error"):
            done = plot(target)
            print(f"wrote {target.relative_to(ROOT)}" if done else "no matplotlib: no picture")
    if asked.docs:
        target = ROOT / "docs" / "benchmarks.md"
        target.write_text(page(RESULTS), encoding="utf-8")
        print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
