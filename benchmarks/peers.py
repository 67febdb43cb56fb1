"""Other libraries, each behind one function that answers None where it is not installed.

They are loaded by name: none of them is needed to run the rest, and none is typed.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[], object]


def load(name: str) -> Any:
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def opendp_draws(law: str, scale: float, count: int) -> Draw | None:
    """A vector of `count` zeros with exact integer noise of OpenDP; scale b or sigma."""
    dp = load("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    distance = dp.l1_distance(T="i64") if law == "laplace" else dp.l2_distance(T="f64")
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance
    then = dp.m.then_laplace if law == "laplace" else dp.m.then_gaussian
    measurement, zeros = space >> then(scale=scale), [0] * count
    return lambda: measurement(zeros)


def opendp_tree(horizon: int, scale: float) -> Draw | None:
    """All prefix counts of one bin over the horizon: noisy b-ary tree, made consistent, summed.

    It needs the whole stream at once: there is no release round by round.
    """
    dp = load("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    tree = dp.t.make_b_ary_tree(*space, leaf_count=horizon, branching_factor=2)
    measurement = tree >> dp.m.then_laplace(scale=scale)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=2)
    zeros = [0] * horizon
    return lambda: np.cumsum(consistent(measurement(zeros)))


def numpy_draws(law: str, scale: float, count: int) -> Draw:
    """NumPy's seeded generators: no key, not exact; a floor for the time."""
    generator = np.random.default_rng(0)
    if law == "laplace":
        success = -np.expm1(-1 / scale)
        return lambda: generator.geometric(success, count) - generator.geometric(success, count)
    return lambda: generator.normal(0, scale, count)


def numpy_tree(horizon: int, bins: int, scale: float) -> Draw:
    """The binary tree on NumPy's floating-point normal draws, one new node a round."""

    def run() -> None:
        generator = np.random.default_rng(0)
        sums = np.zeros((horizon.bit_length() + 1, bins))
        for round_ in range(1, horizon + 1):
            depth = round_.bit_count()
            np.add(sums[depth - 1], generator.normal(0, scale, bins), out=sums[depth])

    return run


def _jax() -> Any:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    jax = load("jax")
    if jax is None or load("jax_privacy") is None:
        return None
    logging.getLogger("absl").setLevel(logging.ERROR)
    jax.config.update("jax_enable_x64", True)
    return jax


def jax_blt(horizon: int) -> Any:
    """jax-privacy's buffered linear Toeplitz strategy of least largest error, or None."""
    if _jax() is None:
        return None
    blt = importlib.import_module("jax_privacy.matrix_factorization.buffered_toeplitz")
    return blt.optimize(n=horizon, error="max", min_buffers=3, max_buffers=4)


def jax_blt_strategy(horizon: int) -> Floats | None:
    """First column of that strategy."""
    strategy = jax_blt(horizon)
    return None if strategy is None else np.asarray(strategy.toeplitz_coefs(horizon))


def jax_banded_strategy(horizon: int, bands: int) -> Floats | None:
    """First column of the banded Toeplitz strategy of least largest error, filled up with zeros."""
    jax = _jax()
    if jax is None:
        return None
    toeplitz = importlib.import_module("jax_privacy.matrix_factorization.toeplitz")
    found = np.asarray(
        toeplitz.optimize_banded_toeplitz(horizon, bands, reduction_fn=jax.numpy.max)
    )
    return np.concatenate([found, np.zeros(horizon - bands)])


def jax_stream(horizon: int, bins: int) -> Draw | None:
    """Correlated float noise for `bins` counts over the horizon, all rounds in one compiled scan."""
    jax, optimal = _jax(), jax_blt(horizon)
    if optimal is None:
        return None
    strategy = type(optimal).build(optimal.buf_decay, optimal.output_scale, dtype=jax.numpy.float32)
    matrix = importlib.import_module("jax_privacy.matrix_factorization.streaming_matrix")
    noise = matrix.multiply_streaming_matrices(
        matrix.prefix_sum(), strategy.inverse_as_streaming_matrix()
    )
    zeros = jax.numpy.zeros(bins, dtype=jax.numpy.float32)

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        key, state, total = carry
        key, drawn = jax.random.split(key)
        fresh = jax.random.normal(drawn, (bins,), dtype=jax.numpy.float32)
        value, state = noise.multiply_next(fresh, state)
        return (key, state, total + value.sum()), None

    def run(key: Any) -> Any:
        start = (key, noise.init_multiply(zeros), jax.numpy.float32(0))
        return jax.lax.scan(step, start, None, length=horizon)[0][2]

    compiled = jax.jit(run)
    return lambda: compiled(jax.random.key(0)).block_until_ready()


def dpcrpy_stream(horizon: int) -> Draw | None:
    """One counter over the horizon with the binary mechanism of dpcrpy, a round at a time."""
    mechanism, noise = load("dpcrpy.treeMethods.binMech"), load("dpcrpy.framework.noiMech")
    if mechanism is None or noise is None:
        return None
    counter = mechanism.BinMech(
        kOrder=(horizon - 1).bit_length(), noiMech=noise.GaussNoiMech(sigma0=5.0)
    )

    def run() -> None:
        counter.init()
        for _ in range(horizon):
            counter.dpRelease(1)

    return run
