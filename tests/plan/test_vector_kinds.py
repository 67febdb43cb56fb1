"""Keys of query, cube and gram: what they default to, and what is refused with which words."""

from __future__ import annotations

from fractions import Fraction

import pytest

from retrodp.errors import PlanError
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from tests.support.vectors import ALL, plan


def one(kind: str, keys: str) -> Release:
    (release,) = plan(f'[release.r]\nkind = "{kind}"\n{keys}').releases
    return release


@pytest.mark.parametrize("name", ALL)
def test_a_plan_with_the_kind_survives_its_dict_and_its_text(name: str) -> None:
    read = plan(ALL[name])
    assert Plan.from_dict(read.to_dict()) == read
    assert Plan.loads(Plan.from_dict(read.to_dict()).text) == read


def test_a_cube_has_all_marginals_of_one_and_two_columns_unless_told() -> None:
    found = one("cube", 'by = ["region", "gift", "word"]').statistic
    assert isinstance(found, kinds.Cube)
    assert found.marginals == (
        *(("region",), ("gift",), ("word",)),
        *(("region", "gift"), ("region", "word"), ("gift", "word")),
    )


def test_marginals_have_the_order_of_by_and_the_smallest_come_first() -> None:
    keys = 'by = ["region", "gift"]\nmarginals = [["gift", "region"], [], ["gift"]]'
    found = one("cube", keys).statistic
    assert isinstance(found, kinds.Cube)
    assert found.marginals == ((), ("gift",), ("region", "gift"))


def test_expressions_are_sorted_by_name_so_that_a_stored_plan_keeps_their_order() -> None:
    found = one("query", 'linear = { b = "x", a = "y" }').statistic
    assert isinstance(found, kinds.Query)
    assert found.linear == (("a", "y"), ("b", "x"))


def test_a_norm_is_exact() -> None:
    found = one("gram", 'of = "x"\nnorm = "2.50"').statistic
    assert isinstance(found, kinds.Gram)
    assert (found.of, found.norm) == (("x",), Fraction(5, 2))


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        ("query", "", "neither of matrix and linear"),
        ("query", 'linear = { a = "x" }\nmatrix = [["region", "coordinate", "weight"]]', "both of"),
        ("query", 'matrix = [["gift", "coordinate", "weight"], [true, "a", 1]]\nnorm = 1', "norm"),
        ("query", "linear = {}", 'expected.*name = "expression"|{ name'),
        ("query", 'linear = "x"', "name = "),
        ("query", "linear = { a = 1 }", "name = "),
        ("query", 'linear = { "a b" = "x" }', "letters, digits and _"),
        ("query", 'linear = { a = "z" }', "there is no column 'z'"),
        ("query", 'linear = { a = "x" }\nnorm = 0', "above 0"),
        ("query", 'linear = { a = "x" }\nnorm = "nan"', "a finite number"),
        ("query", 'linear = { a = "x" }\nmatrx = 1', "Did you mean 'matrix'"),
        ("cube", "", "by is missing"),
        ("cube", 'by = ["regoin"]', "Did you mean 'region'"),
        ("cube", 'by = "region"\nmarginals = []', "a list of lists"),
        ("cube", 'by = "region"\nmarginals = ["region"]', "a list of lists"),
        ("cube", 'by = "region"\nmarginals = [["gift"]]', "which by does not"),
        ("cube", 'by = "region"\nmarginals = [["region"], ["region"]]', "each once"),
        ("cube", 'by = "region"\nmarginals = [["region", "region"]]', "each once"),
        ("cube", 'by = ["region", "gift"]\nmarginals = [["gift"]]', "no marginal with 'region'"),
        ("gram", 'of = "x"', "norm is missing"),
        ("gram", "norm = 1", "of is missing"),
        ("gram", 'of = ["x", "word"]\nnorm = 1', "a column of type number or integer"),
        ("gram", 'of = ["x", "x"]\nnorm = 1', "twice|each"),
        ("gram", 'of = "x"\nnorm = -1', "above 0"),
        ("gram", 'of = "x"\nnorm = 0.7', "no multiple of the columns' step"),
        ("gram", 'of = "x"\nnorm = 1e20', "too many steps"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_expected(kind: str, keys: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        one(kind, keys)


def test_a_cube_of_too_many_public_cells_is_refused() -> None:
    values = ", ".join(f'"v{number}"' for number in range(400))
    wide = f'[columns]\na = {{ type = "category", values = [{values}] }}\n'
    wide += f'b = {{ type = "category", values = [{values}] }}\n'
    cube = '[release.r]\nkind = "cube"\nby = ["a", "b"]'
    text = plan().text.split("[release.")[0].replace("[columns]\n", wide) + cube
    with pytest.raises(PlanError, match="at most 100000"):
        Plan.loads(text)
