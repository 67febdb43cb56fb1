"""What clusterings declare covers every window of every unit, found by brute force.

Records begin in one round and end anywhere. A record adds its vector of counts, sums and squares in
its window; the nodes move by the vectors times the shifts that hide the windows. All pairs of some
points and all combinations of windows of a small plan are gone through; the corners of the box are
among the points, which move as much as any point can.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.clustering.retroactive import Clusters
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.loss import PureLoss, total_rho
from retrodp.statistics.cells import Cells
from tests.contracts.test_sensitivity import node_shifts
from tests.support.clusters import HALF, MODELS, Model, batch, bound, plan, tree

HORIZON = 5  # a window of five rounds attains the factor's bound
PERSON = 'unit = "person_round"\nperson = "who"\nmax_records = 2'
POINTS = [[-HALF, -HALF], [HALF, HALF], [HALF, -HALF], [0, 0], [-HALF, 17], [123, 321]]

Floats = NDArray[np.float64]


def made(model: Model, stream: str, extra: str = "") -> tuple[Cells, Clusters]:
    factor = 'factor = "delannoy"' if model == "pure" else 'factor = "haar"'
    plan_ = plan(horizon=HORIZON, model=model, stream=stream, extra=f"{factor}\n{extra}")
    return bound(plan_, tree(1, HORIZON))


def vectors(statistic: Cells) -> dict[str, Floats]:
    """Vectors of the points by component, shape (points, coordinates)."""
    encoded = [statistic.encode(batch([point])) for point in POINTS]
    found = {}
    for component in statistic.components:
        head = f"{component.name}\n".encode()
        labels = sorted({name for one in encoded for name in one if name.startswith(head)})
        found[component.name] = np.array(
            [[one.get(name, 0) for name in labels] for one in encoded], dtype=np.float64
        )
    return found


def windows(mechanism: Clusters) -> Iterator[Floats]:
    """Shifts of the nodes for the windows of one unit's records, those of a start together."""
    factor = mechanism.factor
    _, columns = node_shifts(factor)  # type: ignore[arg-type]
    for start in range(1, HORIZON + 1):
        ends = range(start + 1, HORIZON + 2)
        yield np.array([columns[:, start - 1] - columns[:, end - 1] for end in ends])


def parts(mechanism: Clusters) -> dict[str, NoiseProcess]:
    noises = {"count": mechanism.count, "sum": mechanism.sums, "square": mechanism.square}
    found = {}
    for name, noise in noises.items():
        assert isinstance(noise.process, NoiseProcess)
        found[name] = noise.process
    return found


def worst(mechanism: Clusters, statistic: Cells, size: int) -> float:
    """Largest rho, or epsilon, of any choice of points and windows."""
    own, processes = vectors(statistic), parts(mechanism)
    most = 0.0
    for shifts in windows(mechanism):
        for chosen in combinations_with_replacement(range(len(POINTS)), size):
            for ends in product(range(len(shifts)), repeat=size):
                spent = 0.0
                for name, process in processes.items():
                    moved = own[name][list(chosen)].T @ shifts[list(ends)]
                    if process.law == "gaussian":
                        spent += float((moved**2).sum()) / (2 * float(process.scale))
                    else:
                        spent += float(np.abs(moved).sum()) / float(process.scale)
                most = max(most, spent)
    return most


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("stream", "size"), [("", 1), (PERSON, 2)], ids=["record", "person"])
def test_losses_cover_every_window_of_every_unit(model: Model, stream: str, size: int) -> None:
    statistic, mechanism = made(model, stream)
    losses = mechanism.cost()
    if model == "zcdp":
        declared = float(total_rho(losses))
    else:
        declared = float(sum(loss.epsilon for loss in losses if isinstance(loss, PureLoss)))
    found = worst(mechanism, statistic, size)
    # The corner of the box attains the norms, but for whole steps and (pure) cells that are no cubes.
    assert (0.995 if model == "zcdp" else 0.9) * declared < found <= declared * (1 + 1e-9)


def test_every_instance_of_the_boosted_variant_is_charged() -> None:
    statistic, mechanism = made("zcdp", "", extra='variant = "lths"\nlevels = [2, 3]')
    assert statistic.instances == 2
    declared = float(total_rho(mechanism.cost()))
    found = worst(mechanism, statistic, 1)
    assert 0.99 * declared < found <= declared * (1 + 1e-9)


def test_twin_one_level_charged_for_all_is_too_little() -> None:
    statistic, mechanism = made("zcdp", "")
    process = parts(mechanism)["count"]
    of_one = process.factor.window_l2sq / (2 * float(process.scale))
    only_counts = total_rho(mechanism.count.losses())
    assert float(only_counts) > 3.9 * of_one
    assert len(statistic.grid.counted) == 4


def test_twin_root_k_for_the_records_of_a_person_is_too_little() -> None:
    """Records of a person may lie in one cell of every level: attack 11 for cells."""
    statistic, mechanism = made("zcdp", PERSON)
    single = worst(mechanism, statistic, 1)
    assert worst(mechanism, statistic, 2) > 3.9 * single
