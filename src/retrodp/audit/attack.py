"""What the attacks share: whom they attack, at which budget, and when one has succeeded.

Promise: an attack reads published numbers alone; a release is attacked as a plan resolves it, and is
accused only of what chance explains with probability at most `MISS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from retrodp.audit.report import Verdict
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import UsageError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Mechanism, Stateful
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.plan.plan import Plan

EPSILON, DELTA = 1, Fraction(1, 10**9)
SUCCESS = 0.95
"""Share of right guesses from which an attack counts as successful."""
MISS = 1e-6
"""Probability with which chance alone lets so much be guessed that noise is accused."""

Stream = TypeVar("Stream")
Seen = TypeVar("Seen")


@dataclass(frozen=True, kw_only=True)  # slots would break frozen generic classes
class Target(Generic[Stream, Seen]):
    """Something that publishes numbers, ready to be attacked.

    Attributes:
        title: For people.
        model: Of its budget; "" if it has none.
        factor: Of its noise; "" if it has none.
        deviation: Of the noise of one number; 0 for exact ones.
        cap: Probability with which one secret is guessed at best, on average; None without a
            budget.
        read: What is published, of a stream and a key tree.
    """

    title: str
    model: str = ""
    factor: str = ""
    deviation: float = 0.0
    cap: float | None = None
    read: Callable[[Stream, KeyTree], Seen]


def plan_of(
    model: str, *, stream: Mapping[str, Any], columns: Mapping[str, Any], release: Mapping[str, Any]
) -> Plan:
    """A plan at epsilon 1; `release` is its `[release]` table."""
    privacy: dict[str, Any] = {"model": model, "epsilon": EPSILON}
    if model == "zcdp":
        privacy["delta"] = str(float(DELTA))
    return Plan.from_dict(
        {
            "stream": {"start": "2024-01-01", **stream},
            "columns": columns,
            "privacy": privacy,
            "release": release,
        }
    )


def resolved(plan: Plan) -> tuple[CompiledRelease, Mechanism]:
    """The only release of a plan, and its mechanism."""
    (release,) = compile_plan(plan, resolve(plan))
    mechanism = release.mechanism
    assert not isinstance(mechanism, Stateful)
    return release, mechanism


def unaccounted(keys: KeyTree, release: str, variance: Fraction, count: int) -> NDArray[np.int64]:
    """Gaussian draws of a size that nobody accounted for."""
    key = keys.lasting_key(release=release, purpose="unaccounted noise")
    law = DiscreteGaussian(variance=variance)
    return law.draw(BlockPRF(key), Coordinates.of_indices(np.arange(count)))


def require_deviation(deviation: float) -> None:
    """Raise unless noise can have this standard deviation."""
    if isinstance(deviation, bool) or not 0 <= deviation < math.inf:
        raise UsageError(f"deviation must be finite and at least 0, got {deviation!r}.")


def deviation_of(mechanism: Mechanism) -> float:
    """Standard deviation of the noise of a release in its last round."""
    noise = getattr(mechanism, "noise", None)
    assert isinstance(noise, CalibratedNoise)
    return float(noise.stddev[-1])


def claim_of(cap: float | None, how: str) -> str:
    """What a target promises, in words."""
    return "nothing is promised" if cap is None else f"at most {cap:.1%} {how}"


def verdict_of(accuracy: float, *, capped: bool, beyond: bool, must: bool) -> Verdict:
    """The outcome of an attack.

    Args:
        accuracy: Share of right guesses.
        capped: Whether the target has a budget.
        beyond: Whether more was guessed than its budget and chance allow.
        must: Whether the attack has to succeed, or it is blind.
    """
    if capped:
        return "accused" if beyond else "holds"
    if accuracy > SUCCESS:
        return "caught"
    return "missed" if must else "as stated"


def most_by_chance(trials: int, share: float) -> int:
    """Least number that a binomial one exceeds with probability at most `MISS`."""
    beyond = bdtrc(np.arange(trials + 1), trials, share)
    return int(np.argmax(beyond <= MISS))
