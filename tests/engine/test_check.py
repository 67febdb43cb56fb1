"""What a plan costs, said before anything is spent and recomputed here from its parts."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import norm

from retrodp.engine.check import check
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import BudgetError, NotInThisVersionError, PlanError
from retrodp.noise.process import NoiseProcess
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from tests.support.plans import KINDS, MODELS, Kind, Model, counting, plan

EVERY = [(kind, model) for kind in KINDS for model in MODELS]


def components(resolved: ResolvedPlan) -> list[tuple[Fraction, NoiseProcess, Any]]:
    """Share, noise and its description of every component; those of one release share alike."""
    found = []
    for entry in resolved.releases:
        noises = [entry["noise"], *entry["further"]]
        share = Fraction(entry["share"]) / len(noises)
        found += [(share, NoiseProcess.from_spec(noise["process"]), noise) for noise in noises]
    return found


@pytest.mark.parametrize(("kind", "model"), EVERY)
def test_shares_add_up_to_the_whole_budget_and_no_release_exceeds_its_own(
    kind: Kind, model: Model
) -> None:
    resolved = resolve(plan(kind, model, epsilon=1))
    parts = components(resolved)
    assert sum((share for share, _, _ in parts), Fraction(0)) == 1
    spent = []
    for share, process, noise in parts:
        amount, split = noise["amount"], noise["split"]
        if model == "zcdp":
            squares = sum(shift**2 * count for shift, count in process.factor.window_shape)
            records = sum(windows**2 for windows in split)
            cost = Fraction(squares * amount**2 * records) / (2 * process.scale)
            allowed = Fraction(resolved.budget["rho"]) * share
        else:
            cost = process.factor.window_l1 * amount * sum(split) / process.scale
            allowed = share
        spent.append(cost / allowed)
    assert max(spent) <= 1
    assert min(spent) > Fraction(99, 100)


@pytest.mark.parametrize(("kind", "model"), EVERY)
def test_what_is_printed_is_json_and_within_the_promise(kind: Kind, model: Model) -> None:
    document = check(plan(kind, model, epsilon=1))
    json.dumps(document, allow_nan=False)
    budget = document["budget"]
    assert budget["delta_spent"] <= budget["delta"]
    assert budget["epsilon"] == 1
    assert [release["name"] for release in document["releases"]] == list(document["retroactivity"])
    assert set(document["retroactivity"].values()) == {"exact"}


def test_the_noise_of_a_zcdp_plan_is_near_that_of_the_continuous_gaussian_and_not_below() -> None:
    resolved = resolve(counting())
    rho = float(Fraction(resolved.budget["rho"]))
    delta = float(Fraction(resolved.budget["delta_parts"]["conversion"]))
    mu = math.sqrt(2 * rho)
    near, far = norm.cdf(mu / 2 - 1 / mu), norm.cdf(-mu / 2 - 1 / mu)
    continuous = float(near - math.e * far)  # at epsilon 1, by the formula of Balle and Wang
    assert 0.95 * delta < continuous <= delta
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) > 1  # what the closed form would need


def test_groups_are_printed_for_what_one_update_or_person_can_move() -> None:
    record = check(counting())["budget"]["groups"]
    assert [group["units"] for group in record] == [1, 2]
    assert record[1]["epsilon"] > record[0]["epsilon"] == 1
    text = counting("persons").text
    person = Plan.loads(text.replace('unit = "person_round"', 'unit = "person"\nmax_rounds = 5'))
    groups = check(person)["budget"]["groups"]
    assert [group["units"] for group in groups] == [1, 5, 10]


def test_checking_spends_nothing_and_decides_the_same_twice() -> None:
    assert resolve(plan(epsilon=1)).to_json() == resolve(plan(epsilon=1)).to_json()


def test_a_compiled_plan_says_what_was_resolved() -> None:
    made = plan(epsilon=1)
    resolved = resolve(made)
    for release, entry in zip(compile_plan(made, resolved), resolved.releases, strict=True):
        assert release.name == entry["name"]
        assert release.mechanism.describe()["scale"] == entry["noise"]["process"]["scale"]
    assert len(resolved.releases) == len(made.releases) > 10


def test_more_share_means_less_noise() -> None:
    two = '[release.a]\nkind = "count"\nshare = 3\n[release.b]\nkind = "count"'
    [a, b] = resolve(plan(releases=two, epsilon=1)).releases
    ratio = [Fraction(entry["noise"]["process"]["scale"]) for entry in (b, a)]
    assert float(ratio[0] / ratio[1]) == pytest.approx(3, rel=1e-3)


OPEN = '[release.by_product]\nkind = "histogram"\nby = "product"'


def test_an_open_domain_needs_a_delta_even_under_pure_epsilon() -> None:
    text = plan("ids", "pure", releases=OPEN).text
    with pytest.raises(PlanError, match="by_product"):
        Plan.loads(text.replace("delta = 1e-3", ""))


def test_a_delta_below_the_collisions_of_labels_is_refused_by_name() -> None:
    text = plan(releases=OPEN).text.replace("delta = 1e-3", "delta = 1e-15")
    with pytest.raises(BudgetError, match="label collisions"):
        resolve(Plan.loads(text))


def test_a_sum_over_an_open_domain_is_not_in_this_version() -> None:
    text = '[release.x]\nkind = "sum"\nof = "amount"\nby = "product"'
    with pytest.raises(NotInThisVersionError, match="open-domain"):
        resolve(plan(releases=text, epsilon=1))


def test_a_sum_that_can_only_be_zero_is_refused() -> None:
    text = counting().text.replace("min = -5, max = 20", "min = 0, max = 20")
    with pytest.raises(PlanError):
        resolve(
            Plan.loads(
                text.replace("min = 0, max = 20", "min = 0, max = 0").replace(
                    'kind = "count"', 'kind = "sum"\nof = "amount"'
                )
            )
        )


def test_an_epsilon_too_small_for_64_bit_noise_is_refused() -> None:
    one = '[release.lines]\nkind = "count"'
    text = plan("ids", "pure", releases=one, epsilon=1).text.replace(
        "epsilon = 1", "epsilon = 1e-30"
    )
    with pytest.raises(PlanError):
        resolve(Plan.loads(text))
