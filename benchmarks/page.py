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
    "product",
)

HEAD = """# Benchmarks

Written by `python -m benchmarks --docs` from the results in `benchmarks/results`; `make bench`
measures them again. Errors are worked out and the same everywhere. Speeds are those of one run on
one shared machine: compare the columns of a row, not rows of different machines.

"""

PICTURE = """
![Largest error of a count over the horizon](img/error-curves.png)

"""

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
- **Amplification and training.** jax-privacy is made for training models, where many gradients
  are summed; retrodp is not.
"""


def page(results: Path) -> str:
    """The whole page."""
    found: list[dict[str, Any]] = []
    for name in ORDER:
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
        if document["name"] == "error-zcdp":
            parts.append(PICTURE)
    parts.append(TAIL)
    if found:
        latest = max((document["machine"] for document in found), key=lambda one: str(one["date"]))
        parts.append(f"\n## The machine\n\n{machine.markdown(latest)}")
    return "".join(parts)
