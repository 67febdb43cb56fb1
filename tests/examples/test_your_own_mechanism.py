"""A ten-line private function, in a plan, over a window of real data; a person is forgotten."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from retrodp import Plan, code_allowed
from retrodp.demo import data_path
from retrodp.engine.check import check
from retrodp.noise.coins import Coins
from tests.examples.scripts import EXAMPLES, script

FOLDER = EXAMPLES / "your_own_mechanism"
DAYS = 6
histories: Any = script("your_own_mechanism", "two_histories")
own: Any = script("your_own_mechanism", "best_price")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(FOLDER)
    return FOLDER


def test_the_function_has_ten_lines() -> None:
    tree = ast.parse((FOLDER / "best_price.py").read_text(encoding="utf-8"))
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert (function.end_lineno or 0) - function.decorator_list[0].lineno + 1 <= 10


def test_later_answers_are_those_of_the_shop_without_the_customer(inside: Path) -> None:
    plan = Plan.load(FOLDER / "plan.toml")
    table = histories.updates(data_path(), DAYS)
    same = histories.compare(plan, table, DAYS, histories.CUSTOMER)
    before = DAYS - histories.AFTER
    assert same == [False] * before + [True] * histories.AFTER


def test_the_declared_epsilon_is_true_of_a_line_more() -> None:
    """One line raises each sum, by its price at most; monotone noisy maxima then cost epsilon."""
    prices = range(1, 51)
    for amount in (0, 99, 100, 2_550, 50_000):
        raised = [price * (amount >= 100 * price) for price in prices]
        assert all(0 <= own <= 50 for own in raised)
    answers = {own.best_price([1_500] * 900, Coins(bytes([n] * 32))) for n in range(20)}
    assert answers == {15}


def test_check_prints_what_the_function_costs(inside: Path) -> None:
    with code_allowed():
        document = check(Plan.load(FOLDER / "plan.toml"))
    (facts,) = [one for one in document["releases"] if one["name"] == "best_price"]
    assert facts["function"] == "best_price:best_price"
    assert facts["epsilon_once"] == "1"
    assert facts["retroactive"] == "exact"
