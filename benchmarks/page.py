"""The page of the documentation, from the results on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.tables import Table

ORDER = (
    "error-pure",
    "error-zcdp",
    "thresholds",
    "samplers",
    "parts",
    "releases",
    "sparse",
    "memory",
    "retail",
    "ingest",
    "scale",
    "quantiles",
    "quantiles-rounds",
    "quantiles-speed",
    "distinct-365",
    "distinct-65536",
    "distinct-constants",
    "distinct-real",
    "distinct-speed",
    "kinds",
    "windows",
    "cube",
    "query",
    "gram",
    "ridge",
    "clusters",
    "medians",
    "cluster-seconds",
    "dense-balls",
    "online-cost-200000",
    "online-cost-1000000",
    "online-methods-200000",
    "online-methods-1000000",
    "sampling",
    "sampling-linear",
    "sketch-error",
    "sketch-speed",
    "revised_error",
    "revised_cost",
)

HEAD = """# Benchmarks

Written by `python -m benchmarks --docs` from the results in `benchmarks/results`; `make bench`
measures them again. Errors are worked out and the same everywhere. Speeds are those of one run on
one shared machine, which worked for others meanwhile (see its load below): they count as ratios
within a table, and a quiet machine is faster. Where a peer is not installed its cells say `missing`.

"""

PICTURES = {
    "error-zcdp": "![Largest error of a count over the horizon](img/error-curves.png)",
    "quantiles-rounds": "![Rank errors of quantiles by round](img/quantiles.png)",
    "sampling-linear": "![Privacy bought by sampling](img/sampling.png)",
    "distinct-365": "![Error of distinct counts, 365 rounds](img/distinct-365.png)",
    "distinct-65536": "![Error of distinct counts, 65,536 rounds](img/distinct-65536.png)",
    "clusters": "![Cost ratios of centres by round](img/clusters.png)",
    "online-methods-200000": "![Cost against recourse of online clusterings](img/online.png)",
}
"""After a table."""

TAIL = """## Where a peer is better

- **Less noise at zCDP.** Square-root and buffered Toeplitz factors, the latter from jax-privacy,
  have 12 to 18 % less error than `haar` in the worst round, 8 to 16 % on average. Their draws live
  until the horizon ends, so a store could not forget the noise of past rounds; retrodp offers the
  still better `dense` factor for plans that accept that (`forward_secrecy = false`), up to about a
  thousand rounds. Beyond that, who does not need forgetting keys has less noise elsewhere.
- **Speed without secrecy or exactness.** NumPy's normal generator, and jax-privacy's compiled
  streams, produce floating-point noise from a seed about as fast as retrodp produces exact keyed
  integers, sometimes faster. Neither can be recomputed by coordinate, and floating-point noise has
  known attacks (Mironov 2012).
- **Breadth.** OpenDP has many mechanisms that retrodp has not, in Rust, with a proof for each;
  its samplers are exact too, one value at a time. Its b-ary tree needs the whole stream at once.
- **Counting alone.** An engine for data frames counts tens of millions of rows a second. The ledger
  takes up to a million a second in and some hundred thousands into the statistics, because it finds
  each record by its id, keeps it until it is deleted and can erase it from its files. With
  random ids an update touches a page of the index of ids, however many updates a round has.
- **One release.** What is published once and never again needs no horizon. There a peer's one-shot
  mechanism has the whole budget, and less noise than a round of a stream.
- **Amplification and training.** jax-privacy is made for training models, where many gradients
  are summed; retrodp is not.
"""


def page(results: Path) -> str:
    """The whole page."""
    found: list[dict[str, Any]] = []
    others = sorted({path.stem for path in results.glob("*.json")} - set(ORDER))
    for name in (*ORDER, *others):
        path = results / f"{name}.json"
        if path.exists():
            found.append(json.loads(path.read_text(encoding="utf-8")))
    parts = [HEAD]
    for document in found:
        table = Table(
            document["name"],
            document["title"],
            document["note"],
            document["headings"],
            document["rows"],
        )
        parts.append(table.markdown() + "\n")
        if document["name"] in PICTURES:
            parts.append(f"\n{PICTURES[document['name']]}\n\n")
    parts.append(TAIL)
    if found:
        latest = max((document["machine"] for document in found), key=lambda one: str(one["date"]))
        parts.append(
            "\n## The machine\n\nOf the table measured last; every file of results names its own.\n\n"
            f"{machine.markdown(latest)}"
        )
    return "".join(parts)
