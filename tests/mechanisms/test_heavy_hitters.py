"""Heavy hitters from a sketch: found by search alone, with bars, and nothing that is not there."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from retrodp.engine.resolve import resolve
from retrodp.engine.sketches import heavy_hitters, sketched_prefixes
from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.heavy_hitters import HeavyHitters
from retrodp.noise.key import KeyTree
from retrodp.statistics.buckets import stored
from retrodp.statistics.contract import PURPOSE
from retrodp.statistics.sketch import SketchedPrefixes
from tests.support.plans import plan as plan_with

HORIZON, ROUND = 6, 4


@cache
def made(keys: str, model: Any = "zcdp", epsilon: int = 3) -> tuple[SketchedPrefixes, HeavyHitters]:
    one = f'[release.top]\nkind = "heavy_hitters"\n{keys}'
    plan = plan_with(model=model, releases=one, epsilon=epsilon)
    (entry,) = resolve(plan).releases
    (release,) = plan.releases
    noise = CalibratedNoise.from_spec(entry["noise"])
    return sketched_prefixes(plan, release), heavy_hitters(plan, release, (noise,), entry)


WORDS = 'of = "product"\ntop = 5\nlength = 4\nbuckets = 1024\nrows = 5'


def published(amounts: dict[str, int], key: int = 0, keys: str = WORDS) -> Answer:
    sketch, mechanism = made(keys)
    tree = KeyTree.from_root(key.to_bytes(32, "big"), b"hitters", HORIZON)
    hashed = sketch.keyed(tree.lasting_key(release="top", purpose=PURPOSE))
    counts = np.fromiter(amounts.values(), np.int64, len(amounts))
    sums = hashed.sums(hashed.codes.of([*amounts]), counts)
    return mechanism.release(ROUND, stored(sums), tree)


LARGE = {"851A": 4000, "2242": 3000, "4756": 2500, "POST": 2000, "é1": 1500}
SMALL = {f"{number:04}": 3 for number in range(500)}


def test_the_largest_are_found_by_name_though_nobody_told_the_names() -> None:
    answer = published(LARGE | SMALL)
    assert answer.keys == tuple(sorted(LARGE, key=str.encode))


def test_an_empty_stream_names_nothing() -> None:
    """Four keys; a name would appear in one of 20 of them at most, and is far rarer."""
    assert sum(len(published({}, key)) for key in range(4)) == 0


@pytest.mark.parametrize(
    ("keys", "epsilon"),
    [
        ('of = "amount"\ntop = 2\nbuckets = 256\nrows = 1', 40),
        ('of = "amount"\ntop = 2\nbuckets = 1024\nrows = 3', 60),
    ],
)
def test_what_noise_reaches_by_chance_is_no_name_even_where_it_is_one_record(
    keys: str, epsilon: int
) -> None:
    """Noise of -1, 0 or 1: a number as large as the largest noise is nothing. 10 keys each."""
    _, mechanism = made(keys, "zcdp", epsilon)
    trees = [KeyTree.from_root(bytes(31) + bytes([key]), b"hitters", HORIZON) for key in range(10)]
    answers = [mechanism.release(ROUND, {}, tree) for tree in trees]
    assert sum(len(answer.keys or ()) for answer in answers) <= 1
    assert all(answer.threshold == answer.half + 1 for answer in answers)


def test_intervals_hold_for_all_names_of_a_round_at_once() -> None:
    """25 keys at level 0.95 for all candidates together: more than 6 misses are below 1e-4."""
    missed = 0
    for key in range(25):
        answer = published(LARGE | SMALL, key)
        assert answer.each is not None
        assert answer.keys is not None
        pairs = zip(answer.keys, answer.each, strict=True)
        missed += any(not b.low <= (LARGE | SMALL).get(name, 0) <= b.high for name, b in pairs)
    assert missed <= 6


@pytest.mark.parametrize("small", [3, 40])
def test_the_deviation_is_that_of_the_estimates(small: int) -> None:
    """100 errors: their root mean square strays by 7 % of itself; the rest is for the estimate."""
    data = LARGE | {f"{number:04}": small for number in range(5000, 8000)}
    errors, stated = [], []
    for key in range(20):
        answer = published(data, key)
        assert answer.keys is not None
        assert answer.each is not None
        for name, value, bounds in zip(answer.keys, answer.values, answer.each, strict=True):
            assert value is not None
            errors.append(value - data.get(name, 0))
            stated.append(float(bounds.stddev))
    assert len(errors) == 100
    measured = float(np.sqrt(np.mean(np.square(errors))))
    assert measured == pytest.approx(float(np.mean(stated)), rel=0.3)


def test_equal_data_by_other_lives_give_the_same_bytes() -> None:
    sketch, mechanism = made(WORDS)
    tree = KeyTree.from_root(bytes(32), b"hitters", HORIZON)
    hashed = sketch.keyed(tree.lasting_key(release="top", purpose=PURPOSE))
    codes = hashed.codes.of(["851A", "gone", "851A"])
    there_and_back = hashed.sums(codes, np.array([900, 7, 0])) - hashed.sums(
        codes[1:2], np.array([7])
    )
    plain = hashed.sums(codes[:1], np.array([900]))
    first, second = (
        mechanism.release(ROUND, stored(sums), tree).to_bytes() for sums in (there_and_back, plain)
    )
    assert first == second


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ('of = "country"\ntop = 3', "histogram"),
        ('of = "product"\ntop = 3\nrows = 2', "odd"),
        ('of = "product"\ntop = 0', "at least 1"),
        ('of = "product"\ntop = 2000', "at most 1000"),
        ('of = "product"\ntop = 3\nlength = 9', "1 to 8 bytes"),
        ('of = "amount"\ntop = 3\nlength = 4', "for texts"),
        ('of = "product"', "top is missing"),
        ('of = "product"\ntop = 3\nbuckets = 400000', "buckets in all"),
    ],
)
def test_keys_that_cannot_be_are_refused_with_what_can(keys: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        made(keys)


def test_numbers_are_found_on_their_grid() -> None:
    sketch, mechanism = made('of = "amount"\ntop = 2\nbuckets = 256\nrows = 3')
    tree = KeyTree.from_root(bytes(32), b"hitters", HORIZON)
    hashed = sketch.keyed(tree.lasting_key(release="top", purpose=PURPOSE))
    sums = hashed.sums(hashed.codes.of([-10, 40]), np.array([2000, 900]))
    answer = mechanism.release(ROUND, stored(sums), tree)
    assert answer.keys == ("[-5.0]", "[20.0]")
