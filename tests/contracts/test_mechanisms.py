"""What every mechanism promises, whatever it measures and however its noise is made."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import pairwise

import pytest

from retrodp.errors import HorizonExceededError, KeyDestroyedError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism
from retrodp.noise.factors.dense import DenseFactor
from retrodp.noise.product import ProductFactor
from retrodp.privacy.loss import PureLoss
from tests.contracts.mechanisms import CASES, HORIZON, IDS, TREE, Case, Recording
from tests.support.answers import values_of

every_mechanism = pytest.mark.parametrize("case", CASES, ids=IDS)


def all_rounds(mechanism: Mechanism, case: Case) -> list[bytes]:
    rounds = range(1, HORIZON + 1)
    return [mechanism.release(round_, case.exact(), TREE).to_bytes() for round_ in rounds]


@every_mechanism
def test_the_same_round_twice_gives_the_same_bytes(case: Case) -> None:
    mechanism = case.make()
    assert all_rounds(mechanism, case) == all_rounds(mechanism, case)


@every_mechanism
def test_rounds_released_in_any_order_give_the_same_bytes(case: Case) -> None:
    mechanism = case.make()
    backwards = [
        mechanism.release(round_, case.exact(), TREE).to_bytes() for round_ in range(HORIZON, 0, -1)
    ]
    assert backwards[::-1] == all_rounds(mechanism, case)


@every_mechanism
def test_a_mechanism_made_again_or_in_another_process_gives_the_same_bytes(case: Case) -> None:
    travelled = pickle.loads(pickle.dumps(case.make()))
    assert all_rounds(travelled, case) == all_rounds(case.make(), case)


@every_mechanism
def test_a_key_that_forgot_the_rounds_before_gives_the_same_bytes(case: Case) -> None:
    mechanism = case.make()
    late = TREE.advanced(5)
    assert [mechanism.release(r, case.exact(), late).to_bytes() for r in range(5, HORIZON + 1)] == (
        all_rounds(mechanism, case)[4:]
    )


@every_mechanism
def test_past_rounds_cannot_be_released_again_but_for_nodes_still_in_use(case: Case) -> None:
    mechanism, late = case.make(), TREE.advanced(5)

    def opens(round_: int) -> bool:
        try:
            mechanism.release(round_, case.exact(), late)
        except KeyDestroyedError:
            return False
        return True

    past = range(1, 5)
    still_used = [
        round_
        for round_ in past
        if all(mechanism.factor.last(node) >= 5 for node, _ in mechanism.factor.nodes(round_))
    ]
    assert [round_ for round_ in past if opens(round_)] == still_used
    # A dense factor uses every draw to the horizon, which a plan has to ask for by name.
    assert len(still_used) <= (4 if case.factor == "dense" else 1)


@every_mechanism
def test_what_was_added_and_deleted_is_like_what_never_was(case: Case) -> None:
    mechanism = case.make()
    never = case.exact()
    gone = {b"gone": 0, **never, b"also gone": 0}
    assert [mechanism.release(r, gone, TREE) for r in range(1, HORIZON + 1)] == (
        [mechanism.release(r, never, TREE) for r in range(1, HORIZON + 1)]
    )


@every_mechanism
def test_the_order_of_the_totals_is_irrelevant(case: Case) -> None:
    mechanism = case.make()
    other_order = dict(reversed(case.exact().items()))
    assert mechanism.release(3, other_order, TREE).to_bytes() == all_rounds(mechanism, case)[2]


@every_mechanism
def test_a_change_of_a_total_changes_its_value_by_as_much_and_no_other(case: Case) -> None:
    mechanism = case.make()
    before = values_of(mechanism.release(3, case.exact(), TREE))
    after = values_of(mechanism.release(3, case.exact(one=51_234_567 + 10), TREE))
    moved = [new - old for old, new in zip(before, after, strict=True)]
    assert sorted(moved) == [0] * (len(before) - 1) + [10]


@every_mechanism
def test_releases_of_equal_shape_share_no_noise(case: Case) -> None:
    one, two = Recording(), Recording()
    rounds = range(1, HORIZON + 1)
    first = [case.make("first").release(r, case.exact(), one) for r in rounds]
    second = [case.make("second").release(r, case.exact(), two) for r in rounds]
    assert one.labels.isdisjoint(two.labels)
    assert len(one.labels) == len(two.labels) > 0
    differing = sum(values_of(a) != values_of(b) for a, b in zip(first, second, strict=True))
    assert differing > HORIZON // 2


def test_twin_one_name_for_two_releases_shares_all_noise() -> None:
    case = CASES[0]
    one, two = Recording(), Recording()
    assert case.make("same").release(3, case.exact(), one) == (
        case.make("same").release(3, case.exact(), two)
    )
    assert one.labels == two.labels


@every_mechanism
def test_noise_is_asked_for_by_public_labels_alone(case: Case) -> None:
    few, many = Recording(), Recording()
    case.make().release(3, case.exact(), few)
    case.make().release(3, dict.fromkeys((b"", b"tea", b"ink", b"new"), 7), many)
    assert few.labels == many.labels


@every_mechanism
def test_no_description_holds_an_exact_value(case: Case) -> None:
    mechanism = case.make()
    answers = [mechanism.release(r, case.exact(), TREE) for r in range(1, HORIZON + 1)]
    said = json.dumps(mechanism.describe()) + repr(mechanism) + repr(mechanism.cost())
    exact = [str(total) for total in case.exact().values()]
    assert [text for text in exact if text in said] == []
    unlikely = sum(any(text in str(answer.values) for text in exact) for answer in answers)
    assert unlikely < HORIZON


@every_mechanism
def test_a_mechanism_is_frozen(case: Case) -> None:
    mechanism = case.make()
    with pytest.raises((FrozenInstanceError, AttributeError)):
        mechanism.noise = None  # type: ignore[attr-defined]
    with pytest.raises((AttributeError, TypeError)):
        mechanism.memory = {}  # type: ignore[attr-defined]


@every_mechanism
def test_every_mechanism_is_exactly_retroactive_and_says_so(case: Case) -> None:
    assert case.make().retroactive == "exact"


@every_mechanism
def test_the_last_round_is_released_and_the_next_is_refused(case: Case) -> None:
    mechanism = case.make()
    long_key = TREE.from_root(bytes(32), b"longer", HORIZON + 5)
    before, last = (mechanism.release(r, case.exact(), TREE) for r in (HORIZON - 1, HORIZON))
    assert (before.round, last.round) == (HORIZON - 1, HORIZON)
    for keys in (TREE, long_key):
        with pytest.raises(HorizonExceededError):
            mechanism.release(HORIZON + 1, case.exact(), keys)


@every_mechanism
@pytest.mark.parametrize("round_", [0, -1, 2.0, True, None])
def test_what_is_no_round_is_refused(case: Case, round_: int) -> None:
    with pytest.raises(PlanError):
        case.make().release(round_, case.exact(), TREE)


@every_mechanism
def test_noise_is_not_repeated_from_round_to_round(case: Case) -> None:
    """Past the horizon of a careless implementation the same noise is added every step."""
    rounds = [values_of(case.make().release(r, case.exact(), TREE)) for r in range(1, HORIZON + 1)]
    assert sum(now != then for then, now in pairwise(rounds)) >= HORIZON // 2


@every_mechanism
@pytest.mark.parametrize("amount", [1, 3, 1000])
def test_the_declared_cost_is_that_of_an_independent_formula(case: Case, amount: int) -> None:
    mechanism = case.make(amount=amount)
    scale = Fraction(mechanism.describe()["scale"])
    factor = mechanism.factor
    rho = sum((loss.rho for loss in mechanism.cost()), Fraction(0))
    if case.law == "laplace":
        assert not isinstance(factor, DenseFactor)
        spent = [loss.epsilon for loss in mechanism.cost() if isinstance(loss, PureLoss)]
        assert spent == [Fraction(factor.window_l1 * amount) / scale] == [1]
    else:
        if not isinstance(factor, DenseFactor | ProductFactor):
            squares = sum(shift**2 * count for shift, count in factor.window_shape)
            assert squares == factor.window_l2sq
        assert rho == Fraction(factor.window_l2sq * amount**2) / (2 * scale)
        assert Fraction(1, 2) * (1 - Fraction(1, 1000)) < rho <= Fraction(1, 2)


@every_mechanism
def test_an_answer_survives_its_bytes(case: Case) -> None:
    answer = case.make().release(3, case.exact(), TREE)
    again = Answer.from_bytes(answer.to_bytes())
    assert again == answer
    assert again.to_bytes() == answer.to_bytes()
    assert len(list(answer.rows())) == len(answer)
