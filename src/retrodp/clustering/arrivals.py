"""Noise of counters that only grow, and what one arrival moves in it for good.

Promise: charges are exact whole numbers, worked out from the factor, and hold for streams that
react to what was published. Knows no point and no data.

**What an arrival moves.** A counter that an arrival of round s raises by 1 stays raised: its window
is s to the horizon, and no later. With a causal root L R = A (`retrodp.noise.factors.dense`) that
moves the draws by column s of R; in a binary tree, by 1 on every used node that holds s. So the
price is the largest column, about two thirds of what a window that may end anywhere costs.

**Why the noise must be causal.** A sketch reads its own answers: which counter an arrival raises
depends on what was published before it. The draws that the arrival moves are first used in its own
round or later, so given all that was published before, they still have their law, and the vector
that moves them is fixed. A factor with nodes that serve earlier rounds too (haar, delannoy) has no
such moment, and is refused under Gaussian noise. Laplace noise holds with any factor, by the shift
that is chosen transcript by transcript (theorem 7 of docs/guarantees.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import VARIANCE_GRID
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.dense import DenseFactor, best_dense, square_root
from retrodp.noise.process import NoiseProcess
from retrodp.noise.processes import AnyFactor, Process
from retrodp.noise.product import ProductProcess
from retrodp.privacy.loss import GaussianNorm, PrivacyLoss, PureLoss
from retrodp.privacy.norms import Norms

FactorName = Literal["sqrt", "dense", "binary", "delannoy"]


@lru_cache(maxsize=64)
def arrival_norms(factor: AnyFactor) -> Norms:
    """Largest norms of the shifts that one arrival, by 1 and for good, asks of a factor's draws.

    Raises:
        PlanError: The factor is neither causal nor one whose windows bound it in L1.
    """
    match factor:
        case DenseFactor():
            columns = factor.matrix()
            return Norms(
                int(abs(columns).sum(axis=0).max()), int((columns * columns).sum(axis=0).max())
            )
        case BinaryFactor():
            most = _used_nodes_over_one_round(factor.horizon)
            return Norms(most, most)
    if factor.name != "delannoy":
        raise PlanError(
            f'factor = "{factor.name}" does not suit a sketch that reads its own answers.',
            expected='"sqrt", "dense" or "binary"; under Laplace noise "delannoy" or "binary"',
        )
    return Norms(factor.window_l1, factor.window_l2sq)


def _used_nodes_over_one_round(horizon: int) -> int:
    """Most complete left children (or roots) that hold one round, over all rounds.

    A block of 2**level rounds is used if its index is even and it ends by the horizon. For the
    round with the most of them every level whose first block is complete has one: round 1 lies in
    the first block of every level up to the largest power of two.
    """
    return horizon.bit_length()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Counters that share a noise, and what one arrival adds to them.

    Attributes:
        name: Part of every label of the noise.
        share: Of the budget.
        norms: Of the vector that one arrival adds to all counters of the part, over all phases.
        moved: Most counters that it moves.
    """

    name: str
    share: Fraction
    norms: Norms
    moved: int


def check_process(process: Process) -> None:
    """The noise suits counters that decide what is counted next.

    Raises:
        PlanError: It does not; see the module.
    """
    if isinstance(process, ProductProcess):
        raise PlanError("Noise over stamps does not suit counters that only grow.")
    causal = isinstance(process.factor, DenseFactor | BinaryFactor)
    if process.law == "gaussian" and not causal:
        raise PlanError(
            f'Gaussian noise with factor = "{process.factor.name}" reaches into the future; a '
            "sketch that reads its own answers would have no proof.",
            expected='"sqrt", "dense" or "binary"',
        )
    arrival_norms(process.factor)


def losses_of(part: Part, process: Process) -> PrivacyLoss:
    """What the counters of a part, over all rounds, reveal about one arrival."""
    own = arrival_norms(process.factor)
    if process.law == "laplace":
        return PureLoss(epsilon=own.l1 * part.norms.l1 / process.scale)
    nodes = own.l1 if isinstance(process.factor, BinaryFactor) else process.factor.horizon
    return GaussianNorm(
        norm_squared=Fraction(own.l2_squared * part.norms.l2_squared),
        variance=process.scale,
        moved=nodes * part.moved,
    )


def facts_of(part: Part, process: Process) -> dict[str, Any]:
    """Public facts about a part, JSON-able."""
    return {
        "part": part.name,
        "share": str(part.share),
        "scale": str(process.scale),
        "stddev_max": math.sqrt(process.max_variance),
    }


def gaussian_part(part: Part, factor: DenseFactor | BinaryFactor, rho: Fraction) -> Process:
    """Discrete Gaussian noise of a part that costs at most its share of `rho` zCDP."""
    own = arrival_norms(factor)
    exact = Fraction(own.l2_squared * part.norms.l2_squared) / (2 * rho * part.share)
    variance = Fraction(math.ceil(exact * VARIANCE_GRID), VARIANCE_GRID)
    if isinstance(factor, DenseFactor):
        return DenseProcess(factor=factor, scale=variance)
    return NoiseProcess(factor=factor, law="gaussian", scale=variance)


def laplace_part(part: Part, factor: AnyFactor, epsilon: Fraction) -> Process:
    """Discrete Laplace noise of a part that costs at most its share of `epsilon`."""
    if isinstance(factor, DenseFactor):
        raise PlanError("Laplace noise has no dense factor.", expected='"delannoy" or "binary"')
    own = arrival_norms(factor)
    scale = own.l1 * part.norms.l1 / (epsilon * part.share)
    return NoiseProcess(factor=factor, law="laplace", scale=scale)  # type: ignore[arg-type]


def factor_of(name: FactorName, horizon: int) -> AnyFactor:
    """A factor for counters that only grow."""
    match name:
        case "sqrt":
            return square_root(horizon, None)
        case "dense":
            return best_dense(horizon, None)
        case "binary":
            return BinaryFactor(horizon=horizon)
        case "delannoy":
            return best_delannoy(horizon)
    raise PlanError(f"Unknown factor {name!r}.", expected="sqrt, dense, binary or delannoy")
