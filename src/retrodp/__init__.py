"""retrodp: differentially private releases that forget on request.

Promise: the whole sequence of releases is differentially private, and after a deletion every later
release is distributed as if the deleted record had never been there.

Two levels: `Plan` and `Store` for the daily job; `Counter`, `Histogram` and `SparseHistogram` with
`KeyTree` for research without a store. Names are loaded when they are first used, so that a reader
of published releases never loads the half of the package that holds exact values.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrodp.engine.check import check
    from retrodp.engine.code import code_allowed
    from retrodp.engine.forget import Forgotten, Receipt
    from retrodp.engine.store import Ingested, Release, Store
    from retrodp.engine.verify import Verified, verify
    from retrodp.errors import RetrodpError
    from retrodp.mechanisms.answer import Answer
    from retrodp.mechanisms.counter import Counter
    from retrodp.mechanisms.histogram import Histogram, SparseHistogram
    from retrodp.mechanisms.oneshot.own import private
    from retrodp.noise.coins import Coins
    from retrodp.noise.key import KeyTree, NoiseKeys
    from retrodp.plan.plan import Plan
    from retrodp.privacy.budget import ApproxDP, PureDP, zCDP

_HOMES = {
    "Answer": "mechanisms.answer",
    "ApproxDP": "privacy.budget",
    "Coins": "noise.coins",
    "Counter": "mechanisms.counter",
    "Forgotten": "engine.forget",
    "Histogram": "mechanisms.histogram",
    "Ingested": "engine.store",
    "KeyTree": "noise.key",
    "NoiseKeys": "noise.key",
    "Plan": "plan.plan",
    "PureDP": "privacy.budget",
    "Receipt": "engine.forget",
    "Release": "engine.store",
    "RetrodpError": "errors",
    "SparseHistogram": "mechanisms.histogram",
    "Store": "engine.store",
    "Verified": "engine.verify",
    "check": "engine.check",
    "code_allowed": "engine.code",
    "private": "mechanisms.oneshot.own",
    "verify": "engine.verify",
    "zCDP": "privacy.budget",
}

__all__ = [
    "Answer",
    "ApproxDP",
    "Coins",
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
    "code_allowed",
    "private",
    "verify",
    "zCDP",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'retrodp' has no attribute {name!r}")
    return getattr(importlib.import_module(f"retrodp.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
