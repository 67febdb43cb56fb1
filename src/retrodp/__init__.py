"""retrodp: differentially private releases that forget on request.

Promise: the whole sequence of releases is differentially private, and after a deletion every later
release is distributed as if the deleted record had never been there.

Two levels: `Plan` and `Store` for the daily job; `Counter`, `Histogram` and `SparseHistogram` with
`KeyTree` for research without a store.
"""

from __future__ import annotations

from retrodp.engine.check import check
from retrodp.engine.forget import Forgotten, Receipt
from retrodp.engine.store import Ingested, Release, Store
from retrodp.engine.verify import Verified, verify
from retrodp.errors import RetrodpError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.noise.key import KeyTree, NoiseKeys
from retrodp.plan.plan import Plan
from retrodp.privacy.budget import ApproxDP, PureDP, zCDP

__all__ = [
    "Answer",
    "ApproxDP",
    "Counter",
    "Forgotten",
    "Histogram",
    "Ingested",
    "KeyTree",
    "NoiseKeys",
    "Plan",
    "PureDP",
    "Receipt",
    "Release",
    "RetrodpError",
    "SparseHistogram",
    "Store",
    "Verified",
    "check",
    "verify",
    "zCDP",
]
