"""The kinds `sample` and `masked` through the store: uniting histories, budgets, functions, refusals."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from retrodp.engine.check import check
from retrodp.engine.code import code_allowed
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.engine.verify import verify
from retrodp.errors import BudgetError, PlanChangedError, PlanError
from retrodp.mechanisms.flippancy import Flippancy
from retrodp.mechanisms.masked import Masked
from retrodp.mechanisms.sampled import Sampled
from retrodp.noise.tails import summed_tail
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import pure_epsilon
from retrodp.views import budget as budget_view
from tests.properties.test_uniting import PAIRS
from tests.support.plans import HORIZON, MODELS, Model, plan
from tests.support.rows import add, delete, ingest
from tests.support.stores import memory_directory, new_store, published
from tests.support.uniting import Pair, difference, few, lived, pairs

RELEASES = """
[release.lines]
kind = "count"
[release.middle]
kind = "sample"
of = "amount"
mechanism = "median"
rate = "1/2"
window = "3d"
[release.average]
kind = "sample"
of = "amount"
mechanism = "mean"
sampling = "fixed"
size = 2
gate = false
window = "4d"
where = "country != 'FR'"
[release.inside]
kind = "sample"
of = "amount"
mechanism = "interior_point"
sampling = "fixed"
size = 1
window = "3d"
[release.high]
kind = "sample"
of = "amount"
mechanism = "quantile"
at = 0.9
sampling = "persistent"
size = 2
gate = false
window = "3d"
"""
RUN = few(8)


@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_publish_the_same_bytes(pair: Pair) -> None:
    assert difference(plan("ids", "zcdp", releases=RELEASES), pair) is None


@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_publish_the_same_bytes(pair: Pair) -> None:
    assert difference(plan("points", "pure", releases=RELEASES), pair) is None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["ids", "persons"])
@pytest.mark.parametrize("pair", PAIRS, ids=["plain", "forgotten", "late"])
def test_chosen_pairs_unite_under_every_unit(kind: Any, model: Model, pair: Pair) -> None:
    assert difference(plan(kind, model, releases=RELEASES), pair) is None


def test_before_they_meet_samples_differ() -> None:
    """Otherwise equality after the meeting would mean nothing."""
    with memory_directory() as directory:
        made = plan(releases=RELEASES)
        rows = tuple(add(f"i{n}", 1, amount=float(n)) for n in range(12))
        one, _ = lived(directory / "one", made, rows)
        two, _ = lived(directory / "two", made, ())
        differing = {name for name in one[1] if one[1][name] != two[1][name]}
        assert differing >= {"lines", "middle", "average", "high"}


def test_totals_kept_by_differences_are_the_live_records() -> None:
    with memory_directory() as directory:
        made = plan(releases=RELEASES)
        with new_store(directory / "store", made) as store:
            ingest(store, [add("a", 1), add("b", 2, amount=None), add("c", 3), delete("a", 4)])
            for round_ in range(1, HORIZON + 1):
                store.close_round()
                batches = list(store.ledger.survivors())
                names = [column.name for column in made.columns]
                fresh = recount(store.releases, names, round_, batches)
                for release in store.releases:
                    assert store.ledger.read_totals(release.name) == fresh[release.name]
            assert verify(store).passed


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["ids", "points", "persons"])
def test_samples_and_counts_together_keep_to_the_plan_s_budget(kind: Any, model: Model) -> None:
    made = plan(kind, model, releases=RELEASES, epsilon=1)
    resolved = resolve(made)
    losses = [loss for release in compile_plan(made, resolved) for loss in release.mechanism.cost()]
    parts = {name: Fraction(text) for name, text in resolved.budget["delta_parts"].items()}
    assert sum(parts.values()) <= Fraction(1, 1000)
    if model == "pure":
        total = pure_epsilon(losses)
        assert total is not None
        assert Fraction(9, 10) < total <= 1 + Fraction(1, 10**9)
    else:
        assert delta_of(losses, 1) <= parts["conversion"]
        assert delta_of(losses, Fraction(9, 10)) > parts["conversion"]
    own = sum(
        release.mechanism.charge.delta
        + (release.mechanism.gate.delta if release.mechanism.gate else 0)
        for release in compile_plan(made, resolved)
        if isinstance(release.mechanism, Sampled)
    )
    assert own <= parts["samples"]


def test_a_gate_passes_with_too_few_no_more_often_than_its_delta() -> None:
    made = plan("persons", releases=RELEASES, epsilon=1)
    (inside,) = [
        release.mechanism
        for release in compile_plan(made, resolve(made))
        if release.name == "inside"
    ]
    assert isinstance(inside, Sampled)
    assert inside.gate is not None
    assert inside.design.occupancy is not None
    most_if_too_few = inside.design.occupancy - 1 + 3  # a person adds three
    least_noise = inside.gate.threshold - most_if_too_few
    assert summed_tail(inside.gate.noise.process, least_noise) <= inside.gate.delta
    assert summed_tail(inside.gate.noise.process, least_noise - 2) > inside.gate.delta


def test_what_was_resolved_is_what_is_run() -> None:
    made = plan(releases=RELEASES, epsilon=1)
    resolved = resolve(made)
    again = Plan.from_dict(resolved.plan)
    assert again == made
    entry = resolved.release("middle")
    (middle,) = [
        release.mechanism for release in compile_plan(again, resolved) if release.name == "middle"
    ]
    assert isinstance(middle, Sampled)
    assert str(middle.mechanism.guarantee.epsilon) == entry["epsilon_once"]
    assert entry["noise"] is None


def test_check_says_what_sampling_buys_and_when_not_to() -> None:
    document = check(plan(releases=RELEASES, epsilon=1))
    facts = {release["name"]: release for release in document["releases"]}
    assert facts["middle"]["linear"]["kind"] == "quantiles"
    assert "rounds share no noise" in facts["middle"]["factor_why"]
    assert any(note.startswith('average: kind = "mean"') for note in document["notes"])
    assert any("ranks of high last" in note for note in document["notes"])
    listed = budget_view.document(resolve(plan(releases=RELEASES, epsilon=1)))["releases"]
    assert {own["release"]: own["law"] for own in listed}["middle"] == "50%"


BAD = {
    "window": 'of = "amount"\nmechanism = "median"\nrate = 0.5',
    "neither of mechanism": 'of = "amount"\nwindow = "2d"\nrate = 0.5',
    "mechanism is 'mode'": 'of = "amount"\nmechanism = "mode"\nwindow = "2d"\nrate = 0.5',
    "rate is missing": 'of = "amount"\nmechanism = "median"\nwindow = "2d"',
    "rate is 1.5": 'of = "amount"\nmechanism = "median"\nwindow = "2d"\nrate = 1.5',
    "size is not for": 'of = "amount"\nmechanism = "median"\nwindow = "2d"\nrate = 0.5\nsize = 3',
    "size is ": 'of = "amount"\nmechanism = "median"\nwindow = "2d"\nsampling = "fixed"',
    "rate without a gate": 'of = "amount"\nmechanism = "median"\nwindow = "2d"\nsampling = "fixed"\n'
    "size = 3\nrate = 0.1\ngate = false",
    "takes one": 'of = ["amount", "amount2"]\nmechanism = "median"\nwindow = "2d"\nrate = 0.5',
    "at is missing": 'of = "amount"\nmechanism = "quantile"\nwindow = "2d"\nrate = 0.5',
    "at is for": 'of = "amount"\nmechanism = "median"\nat = 0.5\nwindow = "2d"\nrate = 0.5',
    "k is for": 'of = "amount"\nmechanism = "median"\nk = 2\nwindow = "2d"\nrate = 0.5',
    "k is ": 'of = "amount"\nmechanism = "kmeans"\nwindow = "2d"\nrate = 0.5',
    "of type text": 'of = "who"\nmechanism = "median"\nwindow = "2d"\nrate = 0.5',
    '"module:name"': 'of = "amount"\nfunction = "no colon"\nwindow = "2d"\nrate = 0.5',
    "--allow-code": 'of = "amount"\nfunction = "own:middle"\nwindow = "2d"\nrate = 0.5',
    "factor is for noise": 'of = "amount"\nmechanism = "median"\nwindow = "2d"\nrate = 0.5\n'
    'factor = "haar"',
}


@pytest.mark.parametrize("said", BAD)
def test_a_sample_that_cannot_be_is_refused_with_its_reason(said: str) -> None:
    text = plan().text.replace(
        "amount = {", 'amount2 = { type = "number", min = 0, max = 9, step = 1 }\namount = {'
    )
    head = text[: text.index("[release.")]
    with pytest.raises(PlanError, match=said.replace("(", r"\(")):
        resolve(Plan.loads(f'{head}[release.s]\nkind = "sample"\n{BAD[said]}\n'))


def test_a_gate_without_a_delta_is_refused() -> None:
    text = plan("ids", "pure", releases=RELEASES).text.replace("delta = 1e-3\n", "")
    with pytest.raises(BudgetError, match="needs a delta"):
        resolve(Plan.loads(text))


LASTING = """
[release.high]
kind = "sample"
of = "amount"
mechanism = "median"
sampling = "persistent"
size = 1
window = "3d"
"""


def test_persistent_ranks_buy_nothing_without_ids() -> None:
    """Copies share ranks by number: one copy more may have another rank in every round."""
    resolve(plan("ids", releases=LASTING))
    with pytest.raises(PlanError, match="persistent ranks buy nothing without ids"):
        resolve(plan("points", releases=LASTING))
    charged_in_full = resolve(plan("points", releases=LASTING + "gate = false\n"))
    assert charged_in_full.release("high")["loss"]["chance"] == "1"


MIDDLE = """
from retrodp import private

@private(epsilon="{epsilon}", low=-10, high=40, delta="{delta}")
def middle(values, coins):
    return {body}
"""
OWN = """
[release.own]
kind = "sample"
of = "amount"
function = "own_function_of_a_test:middle"
rate = 0.1
window = "3d"
"""


def written(directory: Path, *, body: str = "0", epsilon: str = "1", delta: str = "0") -> None:
    text = MIDDLE.format(epsilon=epsilon, delta=delta, body=body)
    (directory / "own_function_of_a_test.py").write_text(text)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, body="sorted(values)[len(values) // 2] if values else 0")
    yield tmp_path
    sys.modules.pop("own_function_of_a_test", None)


def test_a_plan_s_own_function_runs_where_that_is_allowed(place: Path) -> None:
    made = plan(releases=OWN, epsilon=3)
    with pytest.raises(PlanError, match="--allow-code"):
        Store.create_for_tests(place / "store", made)
    with code_allowed(), Store.create_for_tests(place / "store", made) as store:
        ingest(store, [add(f"i{n}", 1, amount=4.0) for n in range(60)])
        store.close_round()
    assert b'"values":[8]' in published(place / "store")[1]["own"]
    with pytest.raises(PlanError, match="--allow-code"):
        Store.open(place / "store")


def test_another_source_is_another_function(place: Path) -> None:
    with code_allowed():
        Store.create_for_tests(place / "store", plan(releases=OWN, epsilon=3)).close()
        Store.open(place / "store").close()
        sys.modules.pop("own_function_of_a_test")
        written(place, body="1")
        with pytest.raises(PlanChangedError, match="not the one that the store was created with"):
            Store.open(place / "store")


def test_half_a_module_is_never_run(place: Path) -> None:
    file = place / "own_function_of_a_test.py"
    file.write_text(file.read_text() + "\nimport a_module_that_is_not_there\n")
    for _ in range(2):
        with code_allowed(), pytest.raises(PlanError, match="there is no module"):
            resolve(plan(releases=OWN, epsilon=3))


def test_a_declared_loss_that_does_not_fit_is_refused(place: Path) -> None:
    written(place, epsilon="9")
    for model in MODELS:
        with code_allowed(), pytest.raises(BudgetError, match="declares epsilon 9"):
            resolve(plan("ids", model, releases=OWN, epsilon=1))


def test_failures_of_a_function_are_part_of_delta(place: Path) -> None:
    written(place, epsilon="0.1", delta="1e-6")
    with code_allowed():
        resolved = resolve(plan(releases=OWN, epsilon=1))
    spent = Fraction(resolved.budget["delta_parts"]["samples"])
    assert spent == 3 * Fraction(1, 10) * Fraction(1, 10**6)


MASKED = """
[release.lines]
kind = "count"
[release.people]
kind = "masked"
alpha = 0.5
drift = 4
block = 3
base = { kind = "distinct", of = "who", method = "recompute" }
"""


def partial(text: str) -> Plan:
    return Plan.loads(text.replace("[columns]", 'forgetting = "partial"\n[columns]', 1))


def test_a_masked_release_says_what_it_promises_everywhere() -> None:
    text = plan(releases=MASKED, epsilon=1).text
    with pytest.raises(PlanError, match='forgetting = "partial"'):
        resolve(Plan.loads(text))
    made = partial(text)
    resolved = resolve(made)
    assert Plan.from_dict(resolved.plan) == made
    assert resolved.release("people")["retroactive"] == "marginal"
    document = check(made)
    facts = document["releases"][1]
    assert (facts["alpha"], facts["drift"], facts["block"]) == (0.5, 4.0, 3)
    assert facts["beta"] <= 1e-6 * (1 + 1e-6)
    assert any(note.startswith("people: not exactly") for note in document["notes"])
    (lines, people) = budget_view.document(resolved)["releases"]
    assert people["retroactive"] == "marginal(alpha = 0.5, beta = 1e-06)"
    assert lines["retroactive"] == "exact"
    with memory_directory() as directory, new_store(directory / "s", made) as store:
        store.close_round()
        verified = verify(store)
        assert verified.passed
        assert verified.document["keep_what_is_forgotten"] == ["people"]


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("alpha is 0", ("alpha = 0.5", "alpha = 0")),
        ("beta is 1", ("alpha = 0.5", "alpha = 0.5\nbeta = 1")),
        ("drift is -1", ("drift = 4", "drift = -1")),
        ("method is 'fresh'", ('"recompute"', '"fresh"')),
        (
            "base.kind is 'count'",
            ('kind = "distinct", of = "who", method = "recompute"', 'kind = "count"'),
        ),
        ("base is 3", ('{ kind = "distinct", of = "who", method = "recompute" }', "3")),
        ("base.colour", ('method = "recompute"', 'method = "recompute", colour = 1')),
    ],
)
def test_a_mask_that_cannot_be_is_refused(said: str, change: tuple[str, str]) -> None:
    text = plan(releases=MASKED, epsilon=1).text
    with pytest.raises(PlanError, match=said):
        resolve(partial(text.replace(*change)))


def test_the_error_of_a_masked_flippancy_has_the_noise_that_moves_its_answer() -> None:
    """Its answer is moved by half of the noisy number of items beyond the limit."""
    text = plan(releases=MASKED, epsilon=1).text.replace('"recompute"', '"flippancy", flips = 2')
    resolved = resolve(partial(text))
    mask = resolved.release("people")["mask"]
    (people,) = [
        release.mechanism
        for release in compile_plan(partial(text), resolved)
        if release.name == "people"
    ]
    assert isinstance(people, Masked)
    assert isinstance(people.base, Flippancy)
    level = 1 - Fraction(mask["base_miss"]) / 2  # two noises
    (count,) = [max(one.at_level(level).half_all) for one in people.base.counts]
    (beyond,) = [max(one.at_level(level).half_all) for one in people.base.beyond]
    assert mask["noise_error"] >= count + beyond / 2
    assert mask["error"] == mask["noise_error"] + 4


def test_a_masked_interval_allows_for_a_base_beyond_its_error() -> None:
    """Under a large beta the base strays so often that the level has to pay for it."""
    text = plan(releases=MASKED, epsilon=1).text.replace("drift = 4", "drift = 4\nbeta = 0.9")
    made = partial(text)
    mask = resolve(made).release("people")["mask"]
    level = next(one.level for one in made.releases if one.name == "people")
    assert Fraction(mask["base_miss"]) <= (1 - level) / 2
    left = float(1 - level) - float(Fraction(mask["base_miss"]))
    spread = math.sqrt(2 * float(Fraction(mask["variance"])) * math.log(2 / left))
    assert resolve(made).release("people")["errors"]["half"] >= mask["error"] + spread
