"""The stamp axis of a revised series that is cumulative in stamp.

Promise: an axis names the combinations of slots that make up the noise at every stamp, and bounds
how far the slots move to hide one stamp: a record with stamp t adds one at t and at every later
stamp. There is no second end, so nothing is pinned, and nothing cancels. Knows no key, no scale and
no data.

**Roots.** With A the lower triangle of ones, R a lower triangle of whole numbers with a positive
diagonal and L = A R^-1, slot j takes one draw and stamp s the combination L_s z. A record with stamp
t moves z by the whole vector R e_t, as L R e_t = A e_t is 1 from t on and 0 before. So its squared
size is that of the widest column of R. `best_root` minimises the largest |L_s| |R e_t|; at 365
stamps that is 2.65, the square root of the counting matrix has 2.94 and a binary tree 6.

**Walks.** The left half of a cyclic Delannoy tree over twice as many rounds: every stamp is in at
most one slot on each of z levels, all weights are 1 or -1, and a record moves the slots that hold
its stamp by one each. This serves Laplace noise, whose shifts are counted in L1, and horizons beyond
the reach of roots.

Source: Fichtenberger, Henzinger, Upadhyay (2023) and Li et al. (2010) for factorised prefix sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse import csr_array

from retrodp._check import whole
from retrodp.errors import PlanError
from retrodp.noise.factors.delannoy import DelannoyFactor, best_delannoy
from retrodp.noise.factors.dense import DenseFactor, rows_of
from retrodp.noise.factors.rows import MOST_ROWS
from retrodp.noise.key import Node

Floats = NDArray[np.float64]

MOST_STAMPS = MOST_ROWS
"""Longest axis that roots reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootAxis:
    """One slot a stamp, real weights.

    Attributes:
        root: Holds R; its own windows have two ends and are not asked here.
    """

    root: DenseFactor

    @property
    def stamps(self) -> int:
        """Length of the axis."""
        return self.root.horizon

    @property
    def shift_l2sq(self) -> int:
        """Largest squared norm of a column of R: what one stamp moves. Exact."""
        return _widest_column(self.root)

    @property
    def moved(self) -> int:
        """Most slots that one stamp moves."""
        return self.stamps

    def slots(self, stamp: int) -> int:
        """Slots that the stamps up to this one use."""
        return stamp

    @property
    def squares(self) -> Floats:
        """Upper bounds of the squared weights of each stamp; shape (stamps,)."""
        return rows_of(self.root).squares

    def spec(self) -> dict[str, object]:
        """The root as it stands."""
        return self.root.spec()


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkAxis:
    """Signed intervals of stamps.

    Attributes:
        tree: Cyclic Delannoy tree over twice the stamps; its left half is used.
    """

    tree: DelannoyFactor

    @property
    def stamps(self) -> int:
        """Length of the axis."""
        return self.tree.horizon // 2

    @property
    def shift_l2sq(self) -> int:
        """At most one slot a level holds a stamp, and it moves by one."""
        return self.tree.z

    @property
    def moved(self) -> int:
        """Likewise; the same in L1."""
        return self.tree.z

    def slots(self, stamp: int) -> int:
        """Slots that the stamps up to this one use; they are numbered as they are first used."""
        return int(_walks(self.tree).used[stamp - 1])

    @property
    def squares(self) -> Floats:
        """Slots of each stamp; shape (stamps,)."""
        return _walks(self.tree).lengths.astype(np.float64)

    def spec(self) -> dict[str, object]:
        """The tree."""
        return self.tree.spec()


StampAxis: TypeAlias = RootAxis | WalkAxis


class _Walks:
    """All walks of the left half as one matrix of signs.

    Attributes:
        signs: int64, shape (stamps, slots).
        used: Slots used up to each stamp.
        lengths: Slots of each stamp.
    """

    __slots__ = ("lengths", "signs", "used")

    def __init__(self, tree: DelannoyFactor) -> None:
        numbers: dict[Node, int] = {}
        rows, columns, signs, used, lengths = [], [], [], [], []
        for stamp in range(1, tree.horizon // 2 + 1):
            nodes = tree.nodes(stamp)
            for node, sign in nodes:
                rows.append(stamp - 1)
                columns.append(numbers.setdefault(node, len(numbers)))
                signs.append(sign)
            used.append(len(numbers))
            lengths.append(len(nodes))
        self.signs = csr_array(
            (np.array(signs, dtype=np.int64), (rows, columns)), shape=(len(used), len(numbers))
        )
        self.used = np.array(used, dtype=np.int64)
        self.lengths = np.array(lengths, dtype=np.int64)


@lru_cache(maxsize=8)
def _walks(tree: DelannoyFactor) -> _Walks:
    return _Walks(tree)


def signs_of(axis: WalkAxis, first: int, last: int) -> csr_array:
    """Weights of the stamps first..last in the slots used up to the last; whole numbers."""
    return _walks(axis.tree).signs[first - 1 : last, : axis.slots(last)]


@lru_cache(maxsize=16)
def _widest_column(root: DenseFactor) -> int:
    columns = root.matrix()
    return int((columns * columns).sum(axis=0).max())  # below 2^10 * 2^24


def best_walk(stamps: int) -> WalkAxis:
    """The walks of least worst variance for Laplace draws.

    With one end the price is `w z^2`, with two `w (2 z)^2`: the same walks are best.
    """
    whole(least=1, stamps=stamps)
    return WalkAxis(tree=best_delannoy(2 * stamps))


GAP = 1 / 250
"""The search ends when the squared error is within this share of its lower bound."""

_MOST_STEPS = 200
_SMALLEST = 40  # stamps; longer axes begin from the weights of one of half the length
_LEAST_EIGENVALUE = 1e-15
_LEAST_WEIGHT = 1e-12


@lru_cache(maxsize=8)
def best_root(stamps: int) -> RootAxis:
    """The root of nearly least worst error over all (stamp, stamp of a record), then rounded.

    Time: half a second at 365 stamps, 10 s at 1000. The search is in floating point: store what it
    found.
    """
    whole(least=1, stamps=stamps)
    if stamps > MOST_STAMPS:
        raise PlanError(f"A root covers at most {MOST_STAMPS} stamps, got {stamps}.")
    lower = cholesky(optimal_prefix_covariance(stamps)[0], lower=True)
    root = solve_triangular(lower, np.tri(stamps), lower=True)
    return RootAxis(root=DenseFactor.of_matrix("dense", root, window=stamps))


@lru_cache(maxsize=8)
def optimal_prefix_covariance(stamps: int) -> tuple[Floats, float, float]:
    """Covariance of least error for prefix sums, its squared error, and a lower bound of any.

    The problem and the ascent are those of `optimise`, with prefixes in the place of windows:
    least max over s of S_ss times max over t of a_t' S^-1 a_t, a_t one from t on. No lower bound
    needs the other axis: this is the squared gamma-2 norm of the counting matrix, and that norm of a
    product of two axes is the product of the norms (Lee, Shraibman, Spalek 2008).
    """
    sizes = [stamps]
    while sizes[-1] > _SMALLEST:
        sizes.append((sizes[-1] + 1) // 2)
    records = rows = np.full(sizes[-1], 1 / sizes[-1])
    covariance, error, bound = np.eye(1), np.inf, 0.0
    for size in reversed(sizes):
        records, rows = _stretched(records, size), _stretched(rows, size)
        error, bound = np.inf, 0.0
        for step in range(_MOST_STEPS):
            found, prices, variances, below = _evaluate(records, rows)
            bound = max(bound, below)
            squared = float(variances.max() * prices.max())
            if squared < error:
                covariance, error = found, squared
            if error <= (1 + GAP) * bound:
                break
            if step % 2:
                records = _normed(records * prices**3)
            else:
                rows = _normed(rows * variances**2)
    return covariance, error, bound


def _evaluate(records: Floats, rows: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Covariance, price of every stamp, variance of every stamp, lower bound, for weights of both."""
    scale = np.sqrt(rows)
    stamps = np.arange(len(rows))
    together = np.cumsum(records)[np.minimum.outer(stamps, stamps)]
    values, vectors = eigh(scale[:, None] * together * scale, driver="evd", check_finite=False)
    roots = np.sqrt(np.maximum(values, values[-1] * _LEAST_EIGENVALUE))
    covariance: Floats = (vectors * roots) @ vectors.T / scale[:, None] / scale
    inverse: Floats = (vectors / roots) @ vectors.T * scale[:, None] * scale
    prices = inverse[::-1, ::-1].cumsum(axis=0).cumsum(axis=1).diagonal()[::-1]
    return covariance, prices, covariance.diagonal(), float(roots.sum() ** 2)


def _stretched(weights: Floats, size: int) -> Floats:
    """The weights at another length, interpolated where logits of the places are alike."""
    if len(weights) == size:
        return weights
    before, after = ((np.arange(n) + 0.5) / n for n in (len(weights), size))
    logits = [np.log(places / (1 - places)) for places in (before, after)]
    return _normed(np.exp(np.interp(logits[1], logits[0], np.log(weights))))


def _normed(weights: Floats) -> Floats:
    kept = np.maximum(weights, weights.max() * _LEAST_WEIGHT)
    normed: Floats = kept / kept.sum()
    return normed


def axis_from_spec(spec: Mapping[str, object]) -> StampAxis:
    """The axis that `spec` described; nothing is chosen again.

    Raises:
        PlanError: A missing or surplus field, or values that make no axis.
    """
    match spec:
        case {"factor": "delannoy", "horizon": int(horizon), "w": int(w), "z": int(z)}:
            return WalkAxis(tree=DelannoyFactor(horizon=horizon, w=w, z=z))
        case _:
            return RootAxis(root=DenseFactor.from_spec(spec))
