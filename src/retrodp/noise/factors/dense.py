"""Dense factors: any causal root of the counting matrix, exact on a grid.

Promise: whatever whole numbers are read back, a window is charged the price of these numbers. Knows
no key, no law, no scale and no data.

With A the lower triangle of ones (a count is the sum of all changes so far), R a lower triangle of
whole numbers with a positive diagonal, and L = A R^-1, the noise is `N = L z` with one integer draw
z_j a round.

Shift identity: a window is A u with u = e_ws - e_we, without e_we where the window outlasts the
horizon. Moving z by the **whole** numbers R u moves N by L R u = A u: by exactly 1 in every round of
the window, and by 0 elsewhere. So the proof for discrete Gaussian draws applies as it stands, with
`window_l2sq` the largest |R u|^2. That is worked out in integers from R whenever it is needed, and
never stored. Causality: L and R are lower triangles, so z_j is first used in round j, and what
happened up to round j settles how far it moves; hence the guarantee holds for streams that react to
earlier releases. Price: every draw serves until the horizon ends, so until then whoever holds the
key can derive the noise of past rounds.

Source: Li, Hay, Rastogi, Miklau, McGregor (2010) and Denisov, McMahan, Rush, Smith, Thakurta (2022)
for factorised noise; Fichtenberger, Henzinger, Upadhyay (2023) for the square root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from retrodp._check import round_within, whole
from retrodp.errors import PlanError
from retrodp.noise.factors.contract import not_a_node
from retrodp.noise.factors.optimise import optimal_covariance
from retrodp.noise.factors.rows import LARGEST_ENTRY, MOST_ROWS, Rows, certified_rows
from retrodp.noise.factors.triangle import (
    IntMatrix,
    from_text,
    packed,
    size_of,
    to_text,
    unpacked,
)
from retrodp.noise.key import Node

FloatMatrix = NDArray[np.float64]
Kind = Literal["dense", "sqrt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFactor:
    """One node a round, used from that round to the horizon.

    Attributes:
        name: "dense" (least worst error) or "sqrt" (square root of the counting matrix); part of
            every node's key.
        horizon: Rounds covered.
        window: Longest window that is hidden, in rounds: the horizon, or the length of a release's
            sliding window.
        root: R, its lower triangle packed by `triangle`.
    """

    name: Kind
    horizon: int
    window: int
    root: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_horizon(self.horizon)
        whole(least=1, window=self.window)
        if self.name not in get_args(Kind):
            raise PlanError(f"A dense factor is called {' or '.join(get_args(Kind))}.")
        if self.window > self.horizon:
            raise PlanError(f"window must be at most the horizon of {self.horizon} rounds.")
        if len(self.root) != size_of(self.horizon):
            raise PlanError(
                f"The root of a dense factor over {self.horizon} rounds has "
                f"{size_of(self.horizon)} bytes, not {len(self.root)}."
            )
        matrix = self.matrix()
        if not (np.abs(matrix).max() <= LARGEST_ENTRY and matrix.diagonal().min() > 0):
            raise PlanError(
                "The root of a dense factor cannot be used.",
                expected=f"entries within {LARGEST_ENTRY}, and above 0 on the diagonal",
            )

    @classmethod
    def of_matrix(cls, name: Kind, root: FloatMatrix, *, window: int) -> Self:
        """Round a root to parts of 2^-12 of its largest entry.

        Args:
            name: See the attributes.
            root: Lower triangular with a positive diagonal, shape (horizon, horizon), any scale.
            window: Longest window to hide.
        """
        parts = np.rint(root * (LARGEST_ENTRY / np.abs(root).max())).astype(np.int64)
        return cls(name=name, horizon=len(root), window=window, root=packed(parts))

    def matrix(self) -> IntMatrix:
        """R, shape (horizon, horizon)."""
        return unpacked(self.root, self.horizon)

    @property
    def window_l2sq(self) -> int:
        """The largest |R u|^2 of a window of at most `window` rounds, exact; see the module."""
        return _window_l2sq(self)

    def nodes(self, round: int, /) -> tuple[tuple[Node, float], ...]:  # noqa: A002
        """The nodes of rounds 1 to this one and their weights, rounded; for the exact, `rows`."""
        round_within(round, self.horizon)
        weights = rows_of(self).weights[round - 1, :round].tolist()
        return tuple(((column,), weight) for column, weight in enumerate(weights, 1))

    def last(self, node: Node, /) -> int:
        """The horizon: no draw is ever done with."""
        match node:
            case (int(column),) if 1 <= column <= self.horizon:
                return self.horizon
            case _:
                raise not_a_node(self.name, node)

    def spec(self) -> dict[str, object]:
        """Name, horizon, window and the whole root: 15 kB at 365 rounds."""
        return {
            "factor": self.name,
            "horizon": self.horizon,
            "window": self.window,
            "root": to_text(self.root, self.horizon),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The factor that `spec` described; nothing is chosen again.

        Raises:
            PlanError: A missing or surplus field, or values that make no factor.
        """
        if set(spec) != {"factor", "horizon", "window", "root"}:
            raise PlanError(f"A dense factor cannot be read from the fields {sorted(spec)}.")
        name, horizon, window = spec["factor"], spec["horizon"], spec["window"]
        if type(horizon) is not int or type(window) is not int:
            raise PlanError("horizon and window of a dense factor must be whole numbers.")
        _check_horizon(horizon)
        root = from_text(spec["root"], horizon)
        match name:
            case "dense" | "sqrt":
                return cls(name=name, horizon=horizon, window=window, root=root)
            case _:
                raise PlanError(f"{name!r} is no dense factor.")


def _check_horizon(horizon: int) -> None:
    whole(least=1, horizon=horizon)
    if horizon > MOST_ROWS:
        raise PlanError(
            f"A dense factor covers at most {MOST_ROWS} rounds, got {horizon}.",
            do='Use longer rounds, or factor = "haar".',
        )


# Worst error of `best_dense` at rho = 1/2 for windows of any length, at the powers of two.
_ERRORS = (1.0, 1.155, 1.385, 1.639, 1.912, 2.199, 2.493, 2.793, 3.096, 3.402, 3.708)


def expected_error(horizon: int) -> float:
    """Worst error of `best_dense` at rho = 1/2, before rounding, to half a per cent.

    For windows of any length; without a search: between powers of two it is nearly linear in the
    logarithm of the horizon.
    """
    _check_horizon(horizon)
    return float(np.interp(np.log2(horizon), np.arange(len(_ERRORS)), _ERRORS))


@lru_cache(maxsize=16)
def best_dense(horizon: int, window: int | None = None) -> DenseFactor:
    """The factor of nearly least worst error: within 0.2 per cent of a lower bound, then rounded.

    Args:
        horizon: Rounds covered.
        window: Longest window to hide, in rounds; None for any.

    Time: on one idle core 1 s at 365 rounds, 10 s at 1000; thirty times that where BLAS threads
    wait for busy cores. The search is in floating point: store what it found.
    """
    hidden = _hidden(horizon, window)
    lower = cholesky(optimal_covariance(horizon, hidden).covariance, lower=True)
    root = solve_triangular(lower, np.tri(horizon), lower=True)
    return DenseFactor.of_matrix("dense", root, window=hidden)


def square_root(horizon: int, window: int | None = None) -> DenseFactor:
    """The square root of the counting matrix, the best-known root of constant diagonals.

    Its worst error is 15 per cent above that of `best_dense` at 365 rounds. For comparison.
    """
    hidden = _hidden(horizon, window)
    steps = np.arange(1, horizon)
    diagonals = np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])
    apart = np.subtract.outer(np.arange(horizon), np.arange(horizon))
    root = np.where(apart >= 0, diagonals[np.maximum(apart, 0)], 0.0)
    return DenseFactor.of_matrix("sqrt", root, window=hidden)


def _hidden(horizon: int, window: int | None) -> int:
    """Longest window to hide, checked."""
    _check_horizon(horizon)
    if window is None:
        return horizon
    whole(least=1, window=window)
    return min(window, horizon)


@lru_cache(maxsize=16)
def rows_of(factor: DenseFactor) -> Rows:
    """The certified rows of L, worked out once."""
    return certified_rows(factor.matrix())


@lru_cache(maxsize=64)
def _window_l2sq(factor: DenseFactor) -> int:
    """Largest |R_ws - R_we|^2 over the windows, R_(horizon + 1) = 0.

    In floats, but exact: all products and sums of products are whole and at most
    `MOST_ROWS * LARGEST_ENTRY^2` = 2^34, in whichever order they are added.
    """
    columns = np.zeros((factor.horizon, factor.horizon + 1))
    columns[:, :-1] = factor.matrix()
    products = columns.T @ columns
    squares = products.diagonal()
    apart = squares[:, None] + squares - 2 * products
    begins = np.arange(factor.horizon + 1)
    length = begins - begins[:, None]
    return int(apart[(length >= 1) & (length <= factor.window)].max())
