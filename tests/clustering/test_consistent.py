"""Consistent centres: representatives, few changes as bounded, and the same on every machine."""

from __future__ import annotations

import inspect
import itertools
import json
import math
from fractions import Fraction
from functools import cache
from typing import get_args

import numpy as np
import pytest

from retrodp.clustering.consistent import (
    WORSE,
    Algorithm,
    Consistent,
    Step,
    Where,
    grid_of,
    most_arrivals,
    snapped,
)
from retrodp.clustering.coreset import Coreset
from retrodp.clustering.counting import Counter
from retrodp.clustering.medoids import Ints, Medoids, Power
from retrodp.clustering.theory_sketch import assigned, private_meyerson
from retrodp.clustering.transport import (
    Approximation,
    SemiCoreset,
    Weighted,
    powers,
    transport,
)
from retrodp.errors import PlanError, UsageError
from retrodp.privacy.budget import zCDP
from tests.support.coresets import STDDEV, coresets
from tests.support.meyerson import clusters, cost, exact_balls, exact_count, sketch

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
K = 4
EVERY = [(algorithm, drifting) for algorithm in ALGORITHMS for drifting in (False, True)]


@cache
def steps(algorithm: Algorithm, power: Power = 2, *, seed: int, drifting: bool) -> list[Step]:
    own = Consistent(k=K, power=power, algorithm=algorithm)
    state, found = own.begin(), []
    for coreset in coresets(seed, drifting=drifting):
        found.append(own.advance(coreset, state))
        state = found[-1].state
    return found


def monotone(seed: int, *, drifting: bool) -> list[Ints]:
    found: list[Ints] = []
    for coreset in coresets(seed, drifting=drifting):
        found.append(coreset.monotone(found[-1] if found else None))
    return found


def rows(centres: Ints) -> set[tuple[int, ...]]:
    return set(map(tuple, centres.tolist()))


def levels(state: bytes) -> list[int]:
    found: list[int] = json.loads(state)["levels"]
    return found


def with_arrivals(found: list[Step]) -> list[int]:
    """Arrivals of each block: levels that rose."""
    seen = [[], *(levels(step.state) for step in found)]
    return [
        sum(level > old for level, old in itertools.zip_longest(new, before, fillvalue=-1))
        for before, new in itertools.pairwise(seen)
    ]


@pytest.mark.parametrize(("algorithm", "drifting"), EVERY)
def test_centres_are_distinct_representatives_and_at_most_k(
    algorithm: Algorithm, *, drifting: bool
) -> None:
    found = steps(algorithm, seed=1, drifting=drifting)
    strangers = [
        rows(step.centres) - rows(coreset.points)
        for step, coreset in zip(found, coresets(1, drifting=drifting), strict=True)
    ]
    assert strangers == [set()] * 40
    assert {len(rows(step.centres)) == len(step.centres) <= K for step in found} == {True}
    assert len(found[-1].centres) == K
    assert found[0].centres.dtype == np.int64


@pytest.mark.parametrize(("algorithm", "drifting"), EVERY)
def test_recourse_is_the_number_of_centres_that_were_none_before(
    algorithm: Algorithm, *, drifting: bool
) -> None:
    found = steps(algorithm, seed=2, drifting=drifting)
    sets = [set(), *(rows(step.centres) for step in found)]
    counted = [len(new - old) for old, new in itertools.pairwise(sets)]
    assert [step.recourse for step in found] == counted
    assert sum(counted) > K


@pytest.mark.parametrize(("algorithm", "drifting"), EVERY)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_centres_change_only_with_arrivals_and_these_are_few(
    algorithm: Algorithm, seed: int, *, drifting: bool
) -> None:
    found = steps(algorithm, seed=seed, drifting=drifting)
    arrivals = with_arrivals(found)
    assert [step.recourse for step, some in zip(found, arrivals, strict=True) if not some] == (
        [0] * arrivals.count(0)
    )
    last = monotone(seed, drifting=drifting)[-1]
    least = math.ceil(2.5 * STDDEV)
    assert 0 < sum(arrivals) <= most_arrivals(last, STDDEV)
    assert most_arrivals(last, STDDEV) <= len(last) * (math.log2(last.max() / least) + 1)
    recourse = sum(step.recourse for step in found)
    assert recourse <= K * sum(map(bool, arrivals))


def test_arrivals_are_bounded_where_noise_grows_from_block_to_block() -> None:
    own = Consistent(k=K)
    state, found, weights = own.begin(), [], None
    for coreset in coresets(6, louder=1):
        weights = coreset.monotone(weights)
        found.append(own.advance(coreset, state))
        state = found[-1].state
    assert weights is not None
    assert most_arrivals(weights, STDDEV + 40) < sum(with_arrivals(found))
    assert sum(with_arrivals(found)) <= most_arrivals(weights, STDDEV + 1)


@pytest.mark.parametrize("drifting", [False, True])
@pytest.mark.parametrize("power", get_args(Power))
def test_swaps_are_bounded_by_what_they_save(power: Power, *, drifting: bool) -> None:
    """In each block at most the added centres and 2 k ln(before / after) more."""
    found = steps("swaps", power, seed=2, drifting=drifting)
    weights = monotone(2, drifting=drifting)
    before: list[int] = []
    allowed = []
    for step, own, coreset in zip(found, weights, coresets(2, drifting=drifting), strict=True):
        medoids = Medoids.of(coreset.points, own, power)
        centres = json.loads(step.state)["centres"]
        full = list(before)
        while own.any() and len(full) < K and medoids.cost(full or [0]) > 0:
            full.append(medoids.addition(full))
        added = len(full) - len(before)
        ends = [medoids.cost(these) if these else 0 for these in (full, centres)]
        most = 2 * K * math.log(ends[0] / ends[1]) if ends[1] else 0.0
        allowed.append(added + most - step.recourse)
        before = centres
    assert min(allowed) >= 0
    assert sum(step.recourse for step in found) > K


@pytest.mark.parametrize("drifting", [False, True])
def test_hysteresis_is_never_far_above_a_fresh_clustering(*, drifting: bool) -> None:
    found = steps("hysteresis", seed=1, drifting=drifting)
    ratios = []
    arrivals = with_arrivals(found)
    for step, own, coreset, some in zip(
        found,
        monotone(1, drifting=drifting),
        coresets(1, drifting=drifting),
        arrivals,
        strict=True,
    ):
        medoids = Medoids.of(coreset.points, own, 2)
        if some:
            fresh = medoids.cost(medoids.settled(K))
            ratios.append(Fraction(medoids.cost(json.loads(step.state)["centres"]), fresh or 1))
    assert len(ratios) > 20
    assert max(ratios) <= WORSE
    assert max(ratios) > 1


@pytest.mark.parametrize(("seed", "drifting"), [(s, d) for s in range(4) for d in (False, True)])
@pytest.mark.parametrize("power", get_args(Power))
def test_robust_centres_change_at_most_four_times_an_arrival(
    seed: int, power: Power, *, drifting: bool
) -> None:
    found = steps("robust", power, seed=seed, drifting=drifting)
    recourse = np.cumsum([step.recourse for step in found])
    arrivals = np.cumsum(with_arrivals(found))
    assert (recourse <= 4 * arrivals).all()
    assert recourse[-1] > 0


@pytest.mark.parametrize(
    ("algorithm", "worst"), [("swaps", 1.6), ("hysteresis", 1.5), ("robust", 1.4)]
)
def test_centres_stay_good_while_few_of_them_change(algorithm: Algorithm, worst: float) -> None:
    """Cost over that of a fresh clustering, on average over blocks; a frozen choice is far worse."""
    ratios, frozen, changed = [], [], 0
    for drifting in (False, True):
        found = steps(algorithm, seed=5, drifting=drifting)
        changed += sum(step.recourse for step in found)
        first = json.loads(found[9].state)["centres"]
        own = monotone(5, drifting=drifting)
        for place in range(10, 40):
            medoids = Medoids.of(coresets(5, drifting=drifting)[place].points, own[place], 2)
            fresh = medoids.cost(medoids.settled(K))
            ratios.append(medoids.cost(json.loads(found[place].state)["centres"]) / fresh)
            frozen.append(medoids.cost(first) / fresh)
    assert np.mean(ratios) < worst
    assert np.mean(frozen) > 1.2 * np.mean(ratios)
    assert changed < 20 * K


@pytest.mark.parametrize("algorithm", ["swaps", "robust"])
def test_costs_at_the_means_leave_centres_at_representatives(algorithm: Algorithm) -> None:
    found = {}
    for where in get_args(Where):
        own = Consistent(k=K, algorithm=algorithm, costs_at=where)
        state, changed = own.begin(), 0
        for coreset in coresets(3, off=900):
            step = own.advance(coreset, state)
            state, changed = step.state, changed + step.recourse
        assert rows(step.centres) <= rows(coreset.points)
        assert len(rows(step.centres)) == K
        assert K <= changed <= 4 * most_arrivals(own_weights(state), STDDEV)
        found[where] = Weighted(
            coreset.centres.astype(float), own_weights(state).astype(float)
        ).cost(step.centres.astype(float), 2)
    assert found["means"] < found["representatives"]


def own_weights(state: bytes) -> Ints:
    return np.array(json.loads(state)["weights"], dtype=np.int64)


@pytest.mark.parametrize(("columns", "same"), [(3, True), (4, False)])
def test_costs_are_at_the_means_from_four_columns_on(columns: int, *, same: bool) -> None:
    points = np.arange(2 * columns, dtype=np.int64).reshape(2, columns)
    coreset = Coreset(
        block=1,
        phase=0,
        points=points,
        centres=points + 5,
        weights=np.array([3, 4]),
        births=np.zeros(2, dtype=np.int64),
        weight_stddev=1.0,
    )
    found = Consistent(k=1).medoids(coreset, coreset.weights)
    assert (found.distances[0, 0] == 0) == same


def test_swaps_gain_what_is_asked_for() -> None:
    eager, lazy = (Consistent(k=K, gain=gain) for gain in (Fraction(1, 50), Fraction(1, 3)))
    recourse = []
    for own in (eager, lazy):
        state, changed = own.begin(), 0
        for coreset in coresets(4, drifting=True):
            step = own.advance(coreset, state)
            state, changed = step.state, changed + step.recourse
        recourse.append(changed)
    assert recourse[0] > recourse[1]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_state_is_whole_numbers_and_carries_on_as_if_nothing_had_stopped(
    algorithm: Algorithm,
) -> None:
    found = steps(algorithm, seed=1, drifting=True)
    own = Consistent(k=K, algorithm=algorithm)
    again = own.advance(coresets(1, drifting=True)[25], found[24].state)
    assert again.state == found[25].state
    assert np.array_equal(again.centres, found[25].centres)

    def leaves(value: object) -> list[object]:
        if isinstance(value, dict):
            return [leaf for one in value.values() for leaf in leaves(one)]
        if isinstance(value, list):
            return [leaf for one in value for leaf in leaves(one)]
        return [value]

    assert {type(leaf) for leaf in leaves(json.loads(found[25].state))} == {int}


def test_nothing_but_published_numbers_goes_in() -> None:
    names = set(inspect.signature(Consistent.advance).parameters)
    assert names == {"self", "coreset", "state"}


def test_the_order_of_sums_does_not_matter() -> None:
    """Costs are sums of whole numbers below 2^62; with floats a new order gives new last bits."""
    coreset = coresets(2)[-1]
    weights = monotone(2, drifting=False)[-1]
    order = np.random.default_rng(0).permutation(len(coreset))
    one = Medoids.of(coreset.points, weights, 1)
    two = Medoids.of(coreset.points[order], weights[order], 1)
    back = np.argsort(order)
    assert one.cost([3, 8]) == two.cost([int(back[3]), int(back[8])])


def test_an_empty_coreset_has_no_centres() -> None:
    own = Consistent(k=3)
    none = Coreset(
        block=1,
        phase=0,
        points=np.zeros((0, 2), dtype=np.int64),
        centres=np.zeros((0, 2), dtype=np.int64),
        weights=np.zeros(0, dtype=np.int64),
        births=np.zeros(0, dtype=np.int64),
        weight_stddev=1.0,
    )
    step = own.advance(none, own.begin())
    assert step.centres.shape == (0, 2)
    assert step.recourse == 0


@pytest.mark.parametrize(
    "state",
    [
        *(b"", b"{}", b"[1]", b"\xff"),
        Consistent(k=3).begin().replace(b'"centres":[]', b'"centres":[7]'),
    ],
)
def test_bytes_that_are_no_state_are_refused(state: bytes) -> None:
    with pytest.raises(UsageError, match="not one that an earlier block gave"):
        Consistent(k=3).advance(coresets(1)[0], state)


def test_a_block_is_advanced_once_and_in_order() -> None:
    found = steps("swaps", seed=1, drifting=False)
    with pytest.raises(UsageError, match="of block 5"):
        Consistent(k=K).advance(coresets(1)[4], found[4].state)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": True},
        {"power": 3},
        {"algorithm": "lazy"},
        {"grid": 0},
        {"costs_at": "nowhere"},
        {"gain": Fraction(0)},
        {"gain": Fraction(1)},
    ],
)
def test_settings_that_cannot_be_right_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        Consistent(**({"k": 3} | wrong))  # type: ignore[arg-type]


# Definition 16 and lemma 17.


def test_definition_16_no_coordinate_grows_and_none_moves_by_a_grid_step() -> None:
    points = np.arange(-25, 26, dtype=np.int64)[:, None]
    found = snapped(points, 7)
    assert (found % 7 == 0).all()
    assert (np.abs(found) <= np.abs(points)).all()
    assert (np.abs(found - points) < 7).all()
    assert np.array_equal(snapped(points, 1), points)


@pytest.mark.parametrize("power", [1, 2])
def test_lemma_17_snapping_costs_at_most_one_diameter(power: int) -> None:
    rng = np.random.default_rng(1)
    diameter, many, columns = 10**6, 200, 3
    grid = grid_of(diameter, many, columns)
    points = rng.integers(-280_000, 280_000, (many, columns))
    data, sketch_ = (Weighted.ones(own / diameter) for own in (points, snapped(points, grid)))
    moved = transport(data, sketch_, np.arange(many), power)
    assert 0 < moved.total <= 1
    apart = powers(sketch_.points, sketch_.points, 1)
    assert apart[apart > 0].min() >= 1 / (many * columns) * (1 - 1e-9)


def test_snapped_representatives_at_one_place_are_one_centre() -> None:
    own = Consistent(k=K, grid=500)
    state = own.begin()
    for coreset in coresets(1):
        step = own.advance(coreset, state)
        state = step.state
    assert (step.centres % 500 == 0).all()
    assert len(rows(step.centres)) == len(step.centres) == K


# Corollary 11.


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_corollary_11_consistent_centres_of_the_private_stream_are_good_for_the_points(
    algorithm: Algorithm,
) -> None:
    """Algorithm 2 with exact dense balls, algorithm 5 with noisy counts, then consistent centres.

    Every step is certified by what is measured of it: the transport cost makes a semi-coreset (lemma
    14), the centres are as good for it as they are found to be, and lemma 5 does the rest.
    """
    points, places = clusters(4000, seed=11, spread=0.02)
    own = sketch(4000, cost(points, places, 2) / 1.5, tau=12, k=2, power=2)
    run = private_meyerson(
        points,
        own,
        k=2,
        power=2,
        coins=np.random.default_rng(1).random(4000),
        counts=exact_count,
        dense=exact_balls(12),
    )
    spots = np.vstack([np.zeros((1, 2)), run.born.places])
    times = np.concatenate([[0], run.born.times])
    nearest = assigned(points, spots, times)
    counter = Counter(times=4000, budget=zCDP(1))
    counts = np.array(
        [
            counter.counts(nearest == number, number.to_bytes(32, "big"))
            for number in range(len(spots))
        ]
    )
    unit = 2**20
    rule = Consistent(k=2, algorithm=algorithm)
    state, exceeded, recourse, useful = rule.begin(), [], 0, []
    for block, time in enumerate(range(200, 4001, 200), start=1):
        there = times <= time
        grid = np.rint(spots[there] * unit).astype(np.int64)
        step = rule.advance(
            Coreset(
                block=block,
                phase=0,
                points=grid,
                centres=grid.copy(),
                weights=counts[there, time - 1],
                births=times[there],
                weight_stddev=0.0,
            ),
            state,
        )
        state, recourse = step.state, recourse + step.recourse
        data = Weighted.ones(points[:time])
        weighted = Weighted(spots[there], counts[there, time - 1].astype(float))
        moved = transport(data, weighted, nearest[:time], 2)
        coreset = SemiCoreset.of_transport(0, moved.total, 2, negative_weights=False)
        pairs = [spots[there][list(two)] for two in itertools.combinations(range(there.sum()), 2)]
        best = min(weighted.cost(two, 2) for two in pairs)
        centres = step.centres / unit
        # Places outside the representatives cost a quarter of the best pair among them, or more.
        found = coreset.of_centres(Approximation(4 * weighted.cost(centres, 2) / best, 0))
        promised = found.alpha * data.cost(places, 2) + found.beta
        exceeded.append(data.cost(centres, 2) - promised)
        useful.append(data.cost(centres, 2) / data.cost(places, 2))
    assert max(exceeded) <= 0
    assert np.mean(useful[5:]) < 3
    assert recourse <= 2 * most_arrivals(counts[:, -1], 0.0)
