"""Releases of the compilers, `sample` and `masked`, as plans for the audit of retroactivity.

Their privacy does not lie in noise on coordinates, which is what the audit of privacy follows; it is
tested against the enumerated law of all answers, in the package's own tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WINDOW = "3d"

COMPILED: Mapping[str, Mapping[str, Any]] = {
    "sample median, poisson": {
        "kind": "sample",
        "of": "amount",
        "mechanism": "median",
        "rate": "1/2",
        "window": WINDOW,
    },
    "sample mean, fixed": {
        "kind": "sample",
        "of": "amount",
        "mechanism": "mean",
        "sampling": "fixed",
        "size": 2,
        "gate": False,
        "window": WINDOW,
    },
    "sample interior point, fixed, gate": {
        "kind": "sample",
        "of": "amount",
        "mechanism": "interior_point",
        "sampling": "fixed",
        "size": 2,
        "window": WINDOW,
    },
    "sample quantile, persistent": {
        "kind": "sample",
        "of": "amount",
        "mechanism": "quantile",
        "at": "9/10",
        "sampling": "persistent",
        "size": 2,
        "gate": False,
        "window": WINDOW,
    },
    "sample k-means, poisson": {
        "kind": "sample",
        "of": ["amount", "weight"],
        "mechanism": "kmeans",
        "k": 2,
        "rate": "1/2",
        "window": WINDOW,
        "where": "gift",
    },
    "masked distinct, recompute": {
        "kind": "masked",
        "base": {"kind": "distinct", "of": "product", "method": "recompute"},
        "alpha": "1/2",
        "drift": 2,
    },
}
"""By title, for people."""
