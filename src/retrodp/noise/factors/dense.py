"""Dense factors: any causal root of the counting matrix, exact on a grid.

Promise: whatever integers are read back, the price charged for a window is that of these integers.
Knows no key, no law, no scale and no data.

With A the lower triangle of ones (a count is the sum of all changes so far), R a lower triangle of
whole numbers without a zero on its diagonal, and L = A R^-1, the noise is `N = L z` with one
integer draw z_j a column.

Shift identity: a window is A u with u = e_ws - e_we, and no e_we where the window outlasts the
horizon. Moving z by the **whole** numbers R u moves N by L R u = A u: by exactly 1 in every round of
the window and 0 elsewhere. So the proof for the discrete Gaussian applies as it stands, with
`window_l2sq` the largest |R u|^2. That is worked out in integers from R when it is needed and is
never stored. Causality: L and R are lower triangles, so z_j is first used in round j, and how far a
window moves it is settled by what happened up to round j; hence the guarantee holds for streams
that react to earlier releases. Price: every draw is used until the horizon ends, so that the noise
of past rounds stays derivable for the holder of the key until then.

Source: Li, Hay, Rastogi, Miklau, McGregor (2010) and Denisov, McMahan, Rush, Smith, Thakurta (2022)
for factorised noise on sums; Fichtenberger, Henzinger, Upadhyay (2022) for the square root.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from retrodp._check import round_within, whole
from retrodp.errors import PlanError
from retrodp.noise.factors.contract import not_a_node
from retrodp.noise.factors.optimise import optimal_covariance
from retrodp.noise.key import Node

IntMatrix = NDArray[np.int64]
FloatMatrix = NDArray[np.float64]
Kind = Literal["dense", "sqrt"]

LONGEST_DENSE = 1 << 10
"""Rounds up to which sums of products with a root fit the 53 bits of a float, see `rows`."""

LARGEST_ENTRY = 1 << 12
"""A root is rounded to this many parts of its largest entry."""

# Of the least worst error at rho = 1/2, by horizon, for windows of any length; see `expected_error`.
_LEAST_ERRORS = {1: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFactor:
    """One node a round, used from that round to the horizon.

    Attributes:
        name: "dense" (least worst error) or "sqrt" (square root of the counting matrix); part of
            every node's key.
        horizon: Rounds covered.
        window: Longest window that is hidden, in rounds: the horizon, or the length of a release's
            sliding window.
        root: Lower triangle of R row by row, two bytes an entry, little-endian; see `of_matrix`.
    """

    name: Kind
    horizon: int
    window: int
    root: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_dense_horizon(self.horizon)
        whole(least=1, window=self.window)
        if self.name not in get_args(Kind):
            raise PlanError(f"A dense factor is called {' or '.join(get_args(Kind))}.")
        if self.window > self.horizon:
            raise PlanError(f"window must be at most the horizon, {self.horizon} rounds.")
        if len(self.root) != self.horizon * (self.horizon + 1):
            raise PlanError(
                f"The root of {self.horizon} rounds needs {self.horizon * (self.horizon + 1)} "
                f"bytes, got {len(self.root)}."
            )
        matrix = self.matrix()
        if np.abs(matrix).max() > LARGEST_ENTRY or not (matrix.diagonal() > 0).all():
            raise PlanError(
                "The root of a dense factor cannot be used.",
                expected=f"entries within {LARGEST_ENTRY}, and above 0 on the diagonal",
            )

    @classmethod
    def of_matrix(cls, name: Kind, root: FloatMatrix, *, window: int) -> Self:
        """Round a root to `LARGEST_ENTRY` parts of its largest entry.

        Args:
            name: See the attributes.
            root: Lower triangular with a positive diagonal, shape (horizon, horizon), any scale.
            window: Longest window to hide.
        """
        parts = np.rint(root * (LARGEST_ENTRY / np.abs(root).max())).astype("<i2")
        triangle = parts[np.tril_indices(len(root))]
        return cls(name=name, horizon=len(root), window=window, root=triangle.tobytes())

    def matrix(self) -> IntMatrix:
        """R, int64, shape (horizon, horizon)."""
        return _unpacked(self.root, self.horizon)

    @property
    def window_l2sq(self) -> int:
        """The largest |R u|^2 of a window of at most `window` rounds, exact; see the module."""
        return _window_l2sq(self)

    @property
    def window_shape(self) -> None:
        """Unknown: the shifts of different windows are not dominated by one of them."""
        return

    def nodes(self, round: int, /) -> tuple[tuple[Node, int], ...]:  # noqa: A002
        """Columns 1 to the round; see `noise.dense` for their weights, which are no whole numbers.

        Returns:
            Pairs (node, column).
        """
        round_within(round, self.horizon)
        return tuple(((column,), column) for column in range(1, round + 1))

    def last(self, node: Node, /) -> int:
        """The horizon: no draw is ever done with."""
        match node:
            case (int(column),) if 1 <= column <= self.horizon:
                return self.horizon
            case _:
                raise not_a_node(self.name, node)

    def spec(self) -> dict[str, object]:
        """Name, horizon, window and the whole root.

        The root is coded as differences along its diagonals, which are nearly constant, packed by
        zlib and written in base64: 60 kB at 365 rounds.
        """
        return {
            "factor": self.name,
            "horizon": self.horizon,
            "window": self.window,
            "root": _coded(self.root, self.horizon),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The factor that `spec` described; fields are those and no others.

        Raises:
            PlanError: Values that make no factor.
        """
        name, horizon, window, root = (spec[f] for f in ("factor", "horizon", "window", "root"))
        if name not in get_args(Kind) or type(horizon) is not int or type(window) is not int:
            raise PlanError("A dense factor needs a name, and horizon and window in rounds.")
        check_dense_horizon(horizon)
        return cls(name=name, horizon=horizon, window=window, root=_decoded(root, horizon))


def check_dense_horizon(horizon: int) -> None:
    """The horizon is a whole number from 1 to `LONGEST_DENSE`."""
    whole(least=1, horizon=horizon)
    if horizon > LONGEST_DENSE:
        raise PlanError(
            f"A dense factor covers at most {LONGEST_DENSE} rounds, got {horizon}.",
            do='Use longer rounds, or factor = "haar".',
        )


@lru_cache(maxsize=8)
def best_dense(horizon: int, window: int | None = None) -> DenseFactor:
    """The factor of nearly least worst error: within 0.4 per cent of a lower bound, then rounded.

    Args:
        horizon: Rounds covered.
        window: Longest window to hide, in rounds; None for any.

    Time: see `optimal_covariance`. The search is in floating point: store what it found.
    """
    check_dense_horizon(horizon)
    hidden = horizon if window is None else min(window, horizon)
    whole(least=1, window=hidden)
    covariance = optimal_covariance(horizon, hidden).covariance
    lower = cholesky(covariance, lower=True)
    root = solve_triangular(lower, np.tri(horizon), lower=True)
    return DenseFactor.of_matrix("dense", root, window=hidden)


def square_root(horizon: int, window: int | None = None) -> DenseFactor:
    """The square root of the counting matrix: the best factor whose diagonals are constant.

    Its error is 15 per cent above that of `best_dense` at 365 rounds. For comparison.
    """
    check_dense_horizon(horizon)
    hidden = horizon if window is None else min(window, horizon)
    steps = np.arange(1, horizon)
    diagonals = np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])
    apart = np.subtract.outer(np.arange(horizon), np.arange(horizon))
    root = np.where(apart >= 0, diagonals[np.maximum(apart, 0)], 0.0)
    return DenseFactor.of_matrix("sqrt", root, window=hidden)


@lru_cache(maxsize=16)
def _window_l2sq(factor: DenseFactor) -> int:
    """Largest |R_ws - R_we|^2 over the windows; R_(horizon + 1) = 0.

    In floats, but exact: every product and every sum of products is a whole number of at most
    horizon * LARGEST_ENTRY^2 <= 2^34, in whichever order they are added.
    """
    horizon = factor.horizon
    columns = np.zeros((horizon, horizon + 1))
    columns[:, :horizon] = factor.matrix()
    products = columns.T @ columns
    squares = products.diagonal()
    apart = squares[:, None] + squares - 2 * products
    begins = np.arange(horizon + 1)
    length = begins - begins[:, None]
    return int(apart[(length >= 1) & (length <= factor.window)].max())


def _unpacked(triangle: bytes, horizon: int) -> IntMatrix:
    """The matrix of a packed lower triangle."""
    matrix = np.zeros((horizon, horizon), dtype=np.int64)
    matrix[np.tril_indices(horizon)] = np.frombuffer(triangle, dtype="<i2")
    return matrix


def _coded(triangle: bytes, horizon: int) -> str:
    """Differences along the diagonals, zlib, base64; `_decoded` is the way back."""
    matrix = _unpacked(triangle, horizon)
    matrix[1:, 1:] -= matrix[:-1, :-1].copy()
    differences = matrix[np.tril_indices(horizon)].astype("<i2")
    return base64.b64encode(zlib.compress(differences.tobytes(), 9)).decode("ascii")


def _decoded(text: Any, horizon: int) -> bytes:
    """The packed triangle; sums are taken modulo 2^16 and checked by the factor."""
    size = horizon * (horizon + 1)
    try:
        packed = zlib.decompressobj()
        differences = packed.decompress(base64.b64decode(text, validate=True), size + 1)
    except (TypeError, ValueError, binascii.Error, zlib.error):
        differences = b""
    if len(differences) != size or not packed.eof or packed.unused_data:
        raise PlanError("The root of a dense factor is not in its code.")
    matrix = _unpacked(differences, horizon).astype("<i2")
    for row in range(1, horizon):
        matrix[row, 1:] += matrix[row - 1, :-1]
    return matrix[np.tril_indices(horizon)].tobytes()
