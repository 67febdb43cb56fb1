"""Weighted sums, marginals and moments: linear maps whose records keep to the declared norms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from retrodp.engine.compile import statistic_of
from retrodp.plan.plan import Plan
from retrodp.statistics.contract import Statistic
from retrodp.statistics.marginals import Cube
from retrodp.statistics.moments import Moments, _norms_of_products, _norms_of_sums
from tests.support.vectors import ALL, MODELS, Model, Values, batch, plan, records

RECORDS = list(records())
SOME = st.lists(st.sampled_from(RECORDS), max_size=6)
KINDS = [name for name in ALL if name != "mean"]


def statistic(name: str, model: Model = "zcdp") -> tuple[Plan, Statistic]:
    found = plan(ALL[name], model=model)
    return found, statistic_of(found, found.releases[0])


def nonzero(totals: dict[bytes, int]) -> dict[bytes, int]:
    return {label: total for label, total in totals.items() if total}


def by_component(of: Statistic, totals: dict[bytes, int]) -> dict[str, list[int]]:
    """What one record adds to each component's coordinates."""
    several = len(of.components) > 1
    found: defaultdict[str, list[int]] = defaultdict(list)
    for label, total in nonzero(totals).items():
        found[label.split(b"\n")[0].decode() if several else ""].append(total)
    return found


@pytest.mark.parametrize("name", KINDS)
@given(one=SOME, two=SOME)
def test_the_encoding_of_two_batches_is_the_sum_of_theirs(
    name: str, one: list[Values], two: list[Values]
) -> None:
    read, of = statistic(name)
    parts = [of.encode(batch(values, read)) for values in (one, two)]
    labels = {label for part in parts for label in part}
    added = {label: sum(part.get(label, 0) for part in parts) for label in labels}
    assert nonzero(of.encode(batch(one + two, read))) == nonzero(added)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", KINDS)
def test_no_record_exceeds_what_its_components_declare(name: str, model: Model) -> None:
    read, of = statistic(name, model)
    declared = {component.name: component for component in of.components}
    broken, seen = [], 0
    for values in RECORDS:
        for component, vector in by_component(of, of.encode(batch([values], read))).items():
            own = declared[component]
            sizes = [abs(value) for value in vector]
            l1, l2_squared = sum(sizes), sum(value * value for value in vector)
            touched = len(own.partitions)
            most = own.norms or (own.amount * touched, own.amount**2 * touched)
            seen += 1
            if max(sizes) > own.amount or len(vector) > touched:
                broken.append((values, component))
            # Under either law only the norm that it charges has to hold.
            if (l1 > most[0]) if model == "pure" else (l2_squared > most[1]):
                broken.append((values, component))
    assert broken == []
    assert seen > 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["matrix", "cube", "open_cube", "linear"])
def test_the_declared_norm_is_attained(name: str, model: Model) -> None:
    """Otherwise the noise would be larger than it must be."""
    read, of = statistic(name, model)
    encoded = [by_component(of, of.encode(batch([values], read))) for values in RECORDS]
    for own in of.components:
        l1 = max(sum(map(abs, one.get(own.name, []))) for one in encoded)
        squared = max(sum(value**2 for value in one.get(own.name, [])) for one in encoded)
        touched = len(own.partitions)
        most = own.norms or (own.amount * touched, own.amount**2 * touched)
        assert (l1, squared) == tuple(most)
    assert of.components


def test_norms_of_a_matrix_are_those_of_its_columns() -> None:
    _, of = statistic("matrix")
    (component,) = of.components
    # 1.5, 1 and -2 in steps of a half; more than any other column of F.
    assert component.step == Fraction(1, 2)
    assert component.norms == (3 + 2 + 4, 9 + 4 + 16)
    assert component.norms.of_records(3) == (27, 9 * 29)


def test_a_record_that_a_matrix_does_not_list_weighs_nothing() -> None:
    read, of = statistic("matrix")
    unlisted: Values = ("ann", "tea", "north", None, 0, 0)
    assert nonzero(of.encode(batch([unlisted], read))) == {}
    listed: Values = ("ann", "tea", "south", None, 0, 0)
    assert nonzero(of.encode(batch([listed, listed], read))) == {b"land": 2}


def test_a_cube_counts_each_record_once_in_every_marginal() -> None:
    read, of = statistic("open_cube")
    assert isinstance(of, Cube)
    found = nonzero(of.encode(batch([("ann", "tea", "north", None, 0, 0)] * 2, read)))
    assert found == {
        b'public\n[["region","north"]]': 2,
        b'public\n[["gift",null]]': 2,
        b'public\n[["region","north"],["gift",null]]': 2,
        b'open\n[["word","tea"]]': 2,
        b'open\n[["region","north"],["word","tea"]]': 2,
    }
    assert sum(component.share for component in of.components) == 1


def test_cells_of_a_public_marginal_leave_out_nulls_that_cannot_be() -> None:
    _, of = statistic("cube")
    assert isinstance(of, Cube)
    sizes = [len(list(marginal.cells())) for marginal in of.marginals]
    assert sizes == [2, 3, 6]  # region is not nullable, gift is


def moments(name: str, columns: Sequence[int], norm: int) -> dict[bytes, int]:
    read = plan(f'[release.g]\nkind = "gram"\nof = ["x", "y"]\nnorm = {norm}')
    of = statistic_of(read, read.releases[0])
    assert isinstance(of, Moments)
    return of.encode(batch([("ann", name, "north", True, *columns)], read))


def test_moments_are_those_of_the_clipped_vector() -> None:
    # (4, 3) has the norm 5 in steps; a norm of 2 units is 4 steps: (3.2, 2.4) toward zero.
    assert moments("tea", (4, 3), 2) == {
        b'count\n["count"]': 1,
        b'sum\n["sum","x"]': 3,
        b'sum\n["sum","y"]': 2,
        b'product\n["product","x","x"]': 9,
        b'product\n["product","x","y"]': 6,
        b'product\n["product","y","y"]': 4,
    }


def test_a_vector_with_a_null_is_not_counted() -> None:
    read, of = statistic("gram")
    assert nonzero(of.encode(batch([("ann", "tea", "north", True, 4, None)], read))) == {}


FINE = """
[release.g]
kind = "gram"
of = ["x", "y"]
norm = 2000000
"""


def test_products_of_fine_steps_are_counted_in_coarser_ones_rounded_toward_zero() -> None:
    text = plan().text.split("[release.")[0]
    text = text.replace("min = -1, max = 2", "min = -1000000, max = 1000000")
    text = text.replace("min = 0, max = 1.5", "min = 0, max = 1000000")
    read = Plan.loads(text + FINE)
    of = statistic_of(read, read.releases[0])
    assert isinstance(of, Moments)
    assert of.grain == 10**5  # (2 000 000 steps)^2 is 4 10^12
    found = of.encode(batch([("ann", "tea", "north", True, -1_999_999, 1_999_999)], read))
    assert found[b'product\n["product","x","y"]'] == -(1_999_999**2 // 10**5)
    _, _, products = of.components
    assert products.step == Fraction(10**5, 4)
    assert products.amount == 4 * 10**12 // 10**5


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
    st.integers(1, 20),
    st.data(),
)
def test_norms_of_products_hold_for_every_vector(
    bounds: list[int], norm: int, data: st.DataObject
) -> None:
    x = [data.draw(st.integers(-bound, bound)) for bound in bounds]
    square = norm * norm
    if sum(value * value for value in x) > square:
        return
    capped = [min(norm, bound) ** 2 for bound in bounds]
    products = [x[i] * x[j] for i in range(len(x)) for j in range(i, len(x))]
    sums, squares = _norms_of_sums(capped, square), _norms_of_products(capped, square)
    assert sum(map(abs, x)) <= sums.l1
    assert sum(value * value for value in x) <= sums.l2_squared
    assert sum(map(abs, products)) <= squares.l1
    assert sum(value * value for value in products) <= squares.l2_squared


def test_the_norm_of_products_is_attained_at_an_axis() -> None:
    assert _norms_of_products([25, 25], 25).l2_squared == 25**2
    # Where bounds forbid the axis, the largest coordinates are filled first: y = (16, 9).
    assert _norms_of_products([16, 16], 25).l2_squared == (25**2 + 16**2 + 9**2) // 2
