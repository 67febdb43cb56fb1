"""Plans with clusterings, points for them, and a key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.retroactive import Clusters
from retrodp.engine.compile import CompiledRelease, compile_plan, keyed
from retrodp.engine.resolve import resolve
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.statistics.cells import Cells
from retrodp.stream.batch import Batch

Model = Literal["zcdp", "pure"]
MODELS: tuple[Model, ...] = ("zcdp", "pure")
Points = NDArray[np.int64]

HALF = 500  # steps from the middle of a column to its ends

_PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = {horizon}
{stream}
[columns]
who = "text"
{columns}
[privacy]
model = "{model}"
epsilon = {epsilon}
delta = 1e-6
[release.places]
kind = "{kind}"
of = [{of}]
k = {k}
{extra}
"""


@cache
def plan(
    dimensions: int = 2,
    *,
    kind: str = "kmeans",
    k: int = 3,
    horizon: int = 16,
    model: Model = "zcdp",
    epsilon: float = 1,
    stream: str = "",
    extra: str = "",
) -> Plan:
    """Columns x0, x1, ... from -0.5 to 0.5 in thousandths."""
    names = [f"x{place}" for place in range(dimensions)]
    columns = [
        f'{name} = {{ type = "number", min = -0.5, max = 0.5, step = 0.001 }}' for name in names
    ]
    return Plan.loads(
        _PLAN.format(
            horizon=horizon,
            stream=stream,
            columns="\n".join(columns),
            model=model,
            epsilon=epsilon,
            kind=kind,
            of=", ".join(f'"{name}"' for name in names),
            k=k,
            extra=extra,
        )
    )


def tree(number: int = 0, horizon: int = 16) -> KeyTree:
    """A key of tests."""
    return KeyTree.from_root(bytes([number % 256, number // 256]) * 16, b"clusters", horizon)


def made(plan_: Plan) -> CompiledRelease:
    """The release of a plan that has no other; its secret is still open."""
    return _made(plan_.text)


@cache
def _made(text: str) -> CompiledRelease:
    plan_ = Plan.loads(text)
    (release,) = compile_plan(plan_, resolve(plan_))
    return release


def bound(plan_: Plan, keys: KeyTree) -> tuple[Cells, Clusters]:
    """Statistic and mechanism, ready to run."""
    (release,) = keyed([made(plan_)], keys)
    assert isinstance(release.statistic, Cells)
    assert isinstance(release.mechanism, Clusters)
    return release.statistic, release.mechanism


def batch(points: Points | Sequence[Sequence[int]], copies: Sequence[int] | None = None) -> Batch:
    """Points in steps, shape (n, columns), as a statistic sees them."""
    array = np.asarray(points, dtype=np.int64)
    columns: dict[str, list[object]] = {
        f"x{place}": array[:, place].tolist() for place in range(array.shape[1])
    }
    counts = np.ones(len(array), dtype=np.int64) if copies is None else np.array(copies)
    return Batch(len(array), columns, counts)


def blobs(
    number: int, dimensions: int = 2, *, seed: int = 0, spread: float = 25.0
) -> tuple[Points, NDArray[np.float64]]:
    """Three groups of points, and their middles, in steps."""
    rng = np.random.default_rng(seed)
    middles = np.array([[-300.0] * dimensions, [300.0] * dimensions, [0.0] * dimensions])
    middles[2, 0] = 250.0
    chosen = rng.integers(0, 3, number)
    raw = middles[chosen] + rng.normal(size=(number, dimensions)) * spread
    return np.clip(np.round(raw), -HALF, HALF).astype(np.int64), middles
