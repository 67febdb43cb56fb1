"""What query, cube and gram declare covers every window of every unit, found by brute force.

A unit's records begin in one round and end anywhere. Record r adds its vector F_r in its window, so
that the nodes move by the sum of F_r (x) s_r, s_r the shifts that hide the window. All units of a
small plan are gone through: every combination of records that differ, every combination of ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.engine.compile import statistic_of
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.noise.tails import summed_tail
from retrodp.privacy.loss import PureLoss, total_rho
from retrodp.privacy.neighbours import worst_split_tail
from tests.contracts.released import Released
from tests.contracts.test_sensitivity import node_shifts
from tests.support.vectors import (
    HORIZON,
    MAX_PER_BIN,
    MAX_RECORDS,
    MODELS,
    Model,
    Values,
    batch,
    records,
)

Floats = NDArray[np.float64]
REGION = 2  # place of the column that max_per_bin names
KINDS = ["matrix", "linear", "clipped", "cube", "open_cube", "gram"]
# Some record attains the bounds that these declare: no smaller noise would do.
EXACT = {"matrix", "cube", "open_cube"}


def noises(case: Released) -> list[CalibratedNoise]:
    (entry,) = case.resolved.releases
    return [CalibratedNoise.from_spec(spec) for spec in (entry["noise"], *entry["further"])]


@cache
def vectors(case: Released) -> tuple[list[Values], list[Floats]]:
    """Records that differ in what they add or in their bin, and their vectors by component."""
    of = statistic_of(case.plan, case.plan.releases[0])
    encoded = {values: of.encode(batch([values], case.plan)) for values in records()}
    distinct = {
        (tuple(sorted(one.items())), values[REGION]): values for values, one in encoded.items()
    }
    kept = list(distinct.values())
    several = len(of.components) > 1
    found = []
    for component in of.components:
        prefix = f"{component.name}\n".encode() if several else b""
        labels = sorted(
            {label for one in encoded.values() for label in one if label.startswith(prefix)}
        )
        found.append(
            np.array(
                [[encoded[values].get(label, 0) for label in labels] for values in kept], float
            )
        )
    return kept, found


def shifts(case: Released, horizon: int = HORIZON) -> tuple[list[tuple[int, int]], Floats]:
    """All windows (start, end) and the shifts of the nodes that hide them."""
    factor = noises(case)[0].process.factor
    _, columns = node_shifts(factor)  # type: ignore[arg-type]
    windows = [
        (start, end) for start in range(1, horizon + 1) for end in range(start + 1, horizon + 2)
    ]
    return windows, np.array([columns[:, a - 1] - columns[:, b - 1] for a, b in windows])


def units(kept: list[Values], size: int) -> list[tuple[int, ...]]:
    """Combinations of records that a person may add in one round."""
    return [
        chosen
        for chosen in combinations_with_replacement(range(len(kept)), size)
        if max(Counter(kept[place][REGION] for place in chosen).values()) <= MAX_PER_BIN
    ]


def ends(windows: list[tuple[int, int]], size: int) -> list[tuple[int, ...]]:
    """Places of windows that share their start, in every order."""
    by_start: dict[int, list[int]] = {}
    for place, (start, _) in enumerate(windows):
        by_start.setdefault(start, []).append(place)
    return [chosen for own in by_start.values() for chosen in product(own, repeat=size)]


def worst_rho(case: Released, size: int) -> float:
    """Largest squared shift of any unit over twice the variance, all components together."""
    kept, by_component = vectors(case)
    gram = np.zeros((len(kept), len(kept)))
    for own, noise in zip(by_component, noises(case), strict=True):
        gram += own @ own.T / (2 * float(noise.process.scale))
    windows, shift = shifts(case)
    inner = shift @ shift.T
    people = np.array(units(kept, size)) if size > 1 else np.arange(len(kept))[:, None]
    starts = np.array(ends(windows, size))
    of_people = gram[people[:, :, None], people[:, None, :]].reshape(len(people), -1)
    of_windows = inner[starts[:, :, None], starts[:, None, :]].reshape(len(starts), -1)
    worst = 0.0
    for part in range(0, len(people), 2000):
        worst = max(worst, float((of_people[part : part + 2000] @ of_windows.T).max()))
    return worst


def worst_epsilon(case: Released, size: int) -> float:
    """Largest sum of absolute shifts of any unit over the scales; persons in three rounds only."""
    kept, by_component = vectors(case)
    windows, shift = shifts(case)
    if size > 1:
        last = [place for place, (start, _) in enumerate(windows) if start >= HORIZON - 2]
        windows, shift = [windows[place] for place in last], shift[last]
    starts = np.array(ends(windows, size))
    people = units(kept, size) if size > 1 else [(place,) for place in range(len(kept))]
    if len(people) > 400:
        # The heaviest by the triangle inequality; it is met with equality where windows are equal.
        people.sort(key=lambda one: -_weight(case, by_component, one))
        people = people[:400]
    worst = 0.0
    for chosen in people:
        total = np.zeros(len(starts))
        for own, noise in zip(by_component, noises(case), strict=True):
            moved = np.einsum("rc,wrn->wcn", own[list(chosen)], shift[starts])
            total += np.abs(moved).sum(axis=(1, 2)) / float(noise.process.scale)
        worst = max(worst, float(total.max()))
    return worst


def _weight(case: Released, by_component: list[Floats], chosen: tuple[int, ...]) -> float:
    return sum(
        float(np.abs(own[list(chosen)].sum(axis=0)).sum()) / float(noise.process.scale)
        for own, noise in zip(by_component, noises(case), strict=True)
    )


def cases(model: Model) -> Iterator[Released]:
    for kind in KINDS:
        for unit in ("record", "person_round"):
            yield Released(kind=kind, model=model, unit=unit)


def named(case: Released) -> str:
    return f"{case.kind}-{case.unit}"


@pytest.mark.parametrize("case", list(cases("zcdp")), ids=named)
def test_gaussian_losses_cover_every_window_of_every_unit(case: Released) -> None:
    size = 1 if case.unit == "record" else MAX_RECORDS
    declared = float(total_rho(case.make().mechanism.cost()))
    found = worst_rho(case, size)
    assert 0 < found <= declared * (1 + 1e-9)
    if size == 1 and case.kind in EXACT:
        assert found > 0.995 * declared


@pytest.mark.parametrize("case", list(cases("pure")), ids=named)
def test_laplace_losses_cover_every_window_of_every_unit(case: Released) -> None:
    size = 1 if case.unit == "record" else MAX_RECORDS
    losses = case.make().mechanism.cost()
    declared = sum(float(loss.epsilon) for loss in losses if isinstance(loss, PureLoss))
    found = worst_epsilon(case, size)
    assert 0 < found <= declared * (1 + 1e-9)
    if size == 1 and case.kind in EXACT:
        assert found > 0.999 * declared


def test_a_person_in_a_cube_is_charged_exactly_where_marginals_refine_the_bound() -> None:
    case = Released(kind="cube", model="zcdp", unit="person_round")
    spread = MAX_PER_BIN**2 + (MAX_RECORDS - MAX_PER_BIN) ** 2
    (noise,) = noises(case)
    charged = sum(count**2 for count in noise.split)
    # Region and region by gift refine the bound by region; gift alone does not.
    assert charged == 2 * spread + MAX_RECORDS**2
    declared = float(total_rho(case.make().mechanism.cost()))
    assert worst_rho(case, MAX_RECORDS) > 0.995 * declared


def test_twin_one_marginal_charged_for_all_is_too_little() -> None:
    case = Released(kind="cube", model="zcdp", unit="record")
    (noise,) = noises(case)
    factor, variance = noise.process.factor, noise.process.scale
    of_one = float(Fraction(factor.window_l2sq) / (2 * variance))
    assert worst_rho(case, 1) > 2.9 * of_one


def test_twin_the_largest_weight_alone_is_no_norm() -> None:
    case = Released(kind="matrix", model="zcdp", unit="record")
    (noise,) = noises(case)
    largest = float(noise.process.factor.window_l2sq * noise.amount**2 / (2 * noise.process.scale))
    assert worst_rho(case, 1) > 1.1 * largest


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("unit", ["record", "person_round"])
def test_one_threshold_covers_all_open_marginals_together(model: Model, unit: str) -> None:
    case = Released(kind="open_cube", model=model, unit=unit)
    (entry,) = case.resolved.releases
    process = noises(case)[1].process
    allowed = float(Fraction(entry["threshold_delta"]))
    records_, bounded = (1, 1) if unit == "record" else (MAX_RECORDS, MAX_PER_BIN)
    # Words alone do not refine the bound by region; words by region do.
    bounds = (records_, bounded)

    def crossing(threshold: int) -> float:
        return sum(
            worst_split_tail(
                lambda held: summed_tail(process, threshold - held),
                records=records_,
                max_per_bin=bound,
            )
            for bound in bounds
        )

    assert crossing(entry["threshold"]) <= allowed
    if unit == "record":  # there the bound over all marginals is the sum over each
        assert crossing(entry["threshold"] - 1) > allowed
        assert crossing(entry["threshold"] - 1) / 2 <= allowed
