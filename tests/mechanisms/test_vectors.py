"""Query, cube and gram: what is published, what stays away, and what errors were predicted."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from retrodp.engine.check import describe
from retrodp.mechanisms.cube import FINER, MarginalTables
from retrodp.mechanisms.gram import NoisyMoments
from retrodp.mechanisms.query import WeightedSums
from retrodp.noise.prf import Coordinates
from retrodp.statistics.marginals import coordinate
from tests.contracts.released import TREE, Released
from tests.support.answers import pairs_of
from tests.support.mechanisms import pure
from tests.support.vectors import HORIZON


def released(kind: str, **other: str) -> Released:
    return Released(kind=kind, **{"model": "zcdp", "unit": "record", **other})  # type: ignore[arg-type]


def cube(kind: str = "cube", **other: str) -> MarginalTables:
    made = released(kind, **other).make().mechanism
    assert isinstance(made, MarginalTables)
    return made


def test_every_public_cell_is_published_and_names_its_columns() -> None:
    answer = cube().release(2, {}, TREE)
    assert answer.keys is not None
    assert set(answer.keys) == {
        *('[["region","north"]]', '[["region","south"]]'),
        *('[["gift",false]]', '[["gift",true]]', '[["gift",null]]'),
        *(
            f'[["region","{region}"],["gift",{gift}]]'
            for region in ("north", "south")
            for gift in ("false", "true", "null")
        ),
    }
    assert [json.loads(key) for key in answer.keys]


def test_published_tables_agree_up_to_their_hundredths() -> None:
    values = pairs_of(cube().release(2, released("cube").exact(), TREE))
    for region in ("north", "south"):
        parts = [value for key, value in values.items() if f'"region","{region}"],[' in key]
        assert len(parts) == 3
        assert abs(values[f'[["region","{region}"]]'] - sum(parts)) <= 2


def test_a_single_table_is_published_as_the_noise_leaves_it() -> None:
    case = released("cube")
    made = case.make().mechanism
    assert isinstance(made, MarginalTables)
    assert made.public is not None
    alone = replace(made, statistic=replace(made.statistic, marginals=made.statistic.marginals[:1]))
    answer = alone.release(2, {}, TREE)
    noise = made.public.draw(2, TREE, Coordinates.of_indices(2)).tolist()
    assert list(answer.values) == [FINER * draw for draw in noise]
    assert answer.half == FINER * made.public.half[1]


def open_cells(made: MarginalTables, exact: dict[bytes, int], round_: int = 2) -> set[str]:
    answer = made.release(round_, exact, TREE)
    assert answer.keys is not None
    return {key for key in answer.keys if '"word"' in key}


def test_open_cells_appear_from_the_threshold_on_and_leave_with_their_records() -> None:
    made = cube("open_cube")
    assert made.threshold is not None
    many, few = made.threshold * 3, 1
    tea, ink = '[["word","tea"]]', '[["region","north"],["word","ink"]]'
    exact = {coordinate("open", tea): many, coordinate("open", ink): few}
    assert open_cells(made, exact) == {tea}
    assert open_cells(made, {coordinate("open", ink): few}) == set()
    eager = replace(made, threshold=-1000)
    assert open_cells(eager, {**exact, coordinate("open", '[["word","gone"]]'): 0}) == {tea, ink}


def test_a_threshold_is_published_in_the_steps_of_the_values() -> None:
    made = cube("open_cube")
    assert made.threshold is not None
    answer = made.release(1, {}, TREE)
    assert answer.threshold == made.threshold * FINER
    assert answer.to_json()["absent_below"] == str(made.threshold)


def test_an_open_cell_has_its_noise_whatever_stands_beside_it() -> None:
    made = replace(cube("open_cube"), threshold=-1000)
    tea = coordinate("open", '[["word","tea"]]')
    crowd = {coordinate("open", f'[["word","w{number}"]]'): 1 for number in range(50)}
    alone = pairs_of(made.release(3, {tea: 1}, TREE))['[["word","tea"]]']
    assert pairs_of(made.release(3, crowd | {tea: 1}, TREE))['[["word","tea"]]'] == alone


def test_only_open_marginals_make_a_cube_open() -> None:
    assert cube().adaptive == "integer-order RDP"
    assert cube(model="pure").adaptive == "yes"
    assert cube("open_cube").adaptive == "no"
    assert cube().collision_delta() == 0
    assert cube("open_cube").collision_delta() > 0


def sums(kind: str) -> WeightedSums:
    made = released(kind).make().mechanism
    assert isinstance(made, WeightedSums)
    return made


def test_a_matrix_is_published_on_its_own_grid_with_one_error() -> None:
    made = sums("matrix")
    answer = made.release(2, {b"land": 10**9}, TREE)
    assert answer.keys == ('["[gifts]"]', "land", "sea")
    assert made.step == Fraction(1, 2)
    assert abs(pairs_of(answer)["land"] - 10**9) < 10**4
    assert len({figure.bounds.stddev for figure in answer.figures()}) == 1


def test_expressions_have_errors_of_their_own() -> None:
    made = sums("linear")
    answer = made.release(2, {}, TREE)
    assert answer.keys == ("gifts", "net", "northern")
    stated = {figure.key: float(figure.bounds.stddev) for figure in answer.figures()}
    # Bounds of 1, 4 + 1.5 (2 x - y) and 2: errors in proportion.
    assert stated["northern"] == pytest.approx(2 * stated["gifts"], rel=0.01)
    assert stated["net"] == pytest.approx(4 * stated["gifts"], rel=0.01)


def test_a_norm_beats_apart_where_expressions_exclude_each_other() -> None:
    clipped, apart = sums("clipped"), sums("linear")
    assert clipped.blocks[0].noise.norms == (9, 11)  # 1.7 units are 3.4 steps
    assert len(clipped.blocks) == 1
    assert len(apart.blocks) == 3


def moments() -> NoisyMoments:
    made = released("gram").make().mechanism
    assert isinstance(made, NoisyMoments)
    return made


def test_a_gram_publishes_moments_and_what_follows_from_them() -> None:
    answer = moments().release(2, {b'count\n["count"]': 1000}, TREE)
    assert answer.keys is not None
    kinds = [json.loads(key)[0] for key in answer.keys]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "count": 1,
        "sum": 2,
        "product": 3,
        "mean": 2,
        "covariance": 3,
    }


def test_where_the_count_may_be_nothing_only_public_bounds_are_said() -> None:
    made = moments()
    answer = made.release(2, {b'count\n["count"]': -(10**6)}, TREE)
    found = {figure.key: figure for figure in answer.figures()}
    mean, variance = found['["mean","x"]'], found['["covariance","x","x"]']
    assert mean.value is None
    assert variance.value is None
    assert [end * answer.step for end in mean.bounds[1:3]] == [-2, 2]
    assert [end * answer.step for end in variance.bounds[1:3]] == [0, 4]


def test_variances_are_never_negative() -> None:
    made = moments()
    answers = [made.release(round_, {b'count\n["count"]': 100}, TREE) for round_ in (1, 2, 3)]
    variances = [
        figure
        for answer in answers
        for figure in answer.figures()
        if figure.key in {'["covariance","x","x"]', '["covariance","y","y"]'}
    ]
    assert len(variances) == 6
    assert min(figure.value or 0 for figure in variances) >= 0
    assert min(figure.bounds.low for figure in variances) >= 0


@pytest.mark.parametrize("kind", ["matrix", "linear", "clipped", "cube", "open_cube", "gram"])
def test_check_predicts_the_largest_error_that_is_published(kind: str) -> None:
    case = released(kind)
    (facts,) = describe(case.plan, case.resolved)["releases"]
    made, exact = pure(case.make()), case.exact()
    published: dict[str, list[float]] = {"": []}
    for round_ in range(1, HORIZON + 1):
        answer = made.release(round_, exact, TREE)
        for figure in answer.figures():
            if figure.bounds.stddev:
                half = (figure.bounds.high - (figure.value or 0)) * answer.step
                published[""].append(float(half))
    largest = max(float(part["error_max"]) for part in facts["parts"])
    assert facts["error_max"] == pytest.approx(largest)
    if kind == "open_cube":  # no open cell was published, and they err most
        assert max(published[""]) < largest
    else:
        assert max(published[""]) == pytest.approx(largest)
