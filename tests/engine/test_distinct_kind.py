"""The kind `distinct` through whole plans and stores: methods, the choice between them, charges."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from retrodp.engine import outlook
from retrodp.engine.check import check
from retrodp.engine.compile import compile_plan
from retrodp.engine.outlook import Ground
from retrodp.engine.resolve import resolve, resolve_next
from retrodp.engine.verify import verify
from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.factors.haar import HaarFactor
from retrodp.noise.factors.switching import switching_l2sq
from retrodp.noise.process import NoiseProcess
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.statistics.contract import PURPOSE
from retrodp.statistics.items import LowBitItems
from tests.mechanisms.test_distinct import a_ladder, bounds_of, brackets, hashes, tree
from tests.statistics.test_items import batch, items
from tests.support.plans import MAX_RECORDS, MODELS, Kind, Model, opened, plan
from tests.support.rows import Contents, Row, add, delete, ingest
from tests.support.stores import new_store, published
from tests.support.uniting import Forget, Pair, difference, few, pairs

RELEASES = """
[release.products]
kind = "distinct"
of = "product"
method = "fresh"
[release.lately]
kind = "distinct"
of = ["product", "country"]
method = "fresh"
window = "2d"
[release.gifts]
kind = "distinct"
of = "product"
method = "ladder"
expect = [1, 30]
where = "gift"
[release.recent_ladder]
kind = "distinct"
of = "product"
method = "ladder"
expect = [1, 30]
window = "3d"
factor = "binary"
[release.lows]
kind = "distinct"
of = "product"
method = "minhash"
expect = [1, 30]
[release.signs]
kind = "distinct"
of = "product"
method = "signed"
expect = [1, 30]
[release.chosen]
kind = "distinct"
of = "product"
expect = [1, 30]
"""
NAMES = ("products", "lately", "gifts", "recent_ladder", "lows", "signs", "chosen")


def one_release(text: str, kind: Kind = "ids", model: Model = "zcdp", epsilon: int = 1) -> Plan:
    return plan(kind, model, releases=f'[release.r]\nkind = "distinct"\n{text}', epsilon=epsilon)


def answers(path: Path, round_: int) -> dict[str, Answer]:
    return {name: Answer.from_bytes(data) for name, data in published(path)[round_].items()}


@pytest.mark.parametrize("model", MODELS)
def test_with_hardly_any_noise_a_store_publishes_what_a_set_says(ram: Path, model: Model) -> None:
    with new_store(ram / "store", plan("ids", model, releases=RELEASES, epsilon=5000)) as store:
        rows = [add(f"{n}", 1 + n % 2, product=f"p{n % 9}", gift=n % 3 == 0) for n in range(90)]
        ingest(store, [*rows, add("null", 1, product=None)])
        store.close_through(4)
    two, four = (answers(ram / "store", round_) for round_ in (2, 4))
    assert two["products"].value == four["products"].value == 10  # null is a product of its own
    assert [two["lately"].value, four["lately"].value] == [Fraction(10), Fraction(0)]
    truth = {"gifts": 3, "recent_ladder": 10, "lows": 10, "signs": 10}
    ends = {name: (two[name].each or ())[0] for name in truth}
    assert {name: ends[name].low <= truth[name] <= ends[name].high for name in truth} == (
        dict.fromkeys(truth, True)
    )
    assert all(two[name].values == (None,) for name in truth)


@pytest.mark.parametrize("kind", ["ids", "points", "persons"])
def test_what_is_deleted_leaves_no_item_and_no_bucket(ram: Path, kind: Kind) -> None:
    with new_store(ram / "store", plan(kind, releases=RELEASES)) as store:
        rows = [add("a", 1, product="ink", gift=True), add("b", 1, who="bob", product="tea")]
        ingest(store, rows)
        store.close_round()
        assert store.ledger.read_totals("products") == {b"ink": 1, b"tea": 1}
        assert sum(store.ledger.read_totals("gifts").values()) == 1
        rows = [
            replace(row, op="delete", round=2, stamp=1 if kind == "points" else None)
            for row in rows
        ]
        ingest(store, rows)
        store.close_round()
        assert [store.ledger.read_totals(name) for name in NAMES] == [{}] * len(NAMES)


RUN = few(3)


@pytest.mark.parametrize("model", MODELS)
@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_publish_the_same_bytes(model: Model, pair: Pair) -> None:
    assert difference(plan("ids", model, releases=RELEASES), pair) is None


@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_publish_the_same_bytes(pair: Pair) -> None:
    assert difference(plan("points", releases=RELEASES), pair) is None


# One history had an item that came, went and came; the other never heard of it.
FLIPPED = Pair(
    meet=5,
    one=(
        *(add(f"{n}", 1, product=f"p{n}") for n in range(5)),
        add("x", 1, who="eve", product="rare"),
        delete("x", 2, who="eve"),
        add("x", 3, who="eve", product="rare"),
        Forget(4, "person", "eve"),
    ),
    two=tuple(add(f"{n}", 1, product=f"p{n}") for n in range(5)),
)


@pytest.mark.parametrize("kind", ["ids", "persons"])
def test_an_item_that_flipped_is_forgotten_under_every_unit(kind: Kind) -> None:
    assert difference(plan(kind, releases=RELEASES), FLIPPED) is None


def test_verify_recomputes_hashes_from_the_survivors(ram: Path) -> None:
    with new_store(ram / "store", plan(releases=RELEASES)) as store:
        ingest(store, [Row(id=f"{n}", contents=Contents(product=f"p{n % 7}")) for n in range(40)])
        store.close_through(2)
        outcome = verify(store, [])
    assert outcome.passed
    assert outcome.document["releases_equal"]


# Charges.


def _charge(found: Plan) -> tuple[Fraction, list[int]]:
    """Squared norm in units of a window's, and the split; from what was resolved."""
    resolved = resolve(found)
    noise = resolved.release("r")["noise"]
    process = NoiseProcess.from_spec(noise["process"])
    assert process.law == "gaussian"
    charge = 2 * Fraction(resolved.budget["rho"]) * process.scale / process.factor.window_l2sq
    return charge, noise["split"]


@pytest.mark.parametrize("window", [None, "2d"])
def test_fresh_is_charged_for_every_round_of_a_life(window: str | None) -> None:
    text = 'of = "product"\nmethod = "fresh"' + (f'\nwindow = "{window}"' if window else "")
    process = NoiseProcess.from_spec(resolve(one_release(text)).release("r")["noise"]["process"])
    assert isinstance(process.factor, FreshFactor)
    assert process.factor.window_l2sq == process.factor.window_l1 == (2 if window else 6)


@pytest.mark.parametrize("of", ["product", "country"])
def test_k_records_of_a_person_are_charged_k_squared(of: str) -> None:
    """Attack 11: k records may be k items, and meet in one bucket, whatever `max_per_bin` says."""
    fresh, split = _charge(one_release(f'of = "{of}"\nmethod = "fresh"', "persons"))
    assert split == [MAX_RECORDS]
    assert fresh == pytest.approx(MAX_RECORDS**2, rel=1e-3)
    ladder, split = _charge(
        one_release(f'of = "{of}"\nmethod = "ladder"\nexpect = [1, 30]', "persons")
    )
    assert split == [MAX_RECORDS] * 7
    assert ladder == pytest.approx(7 * MAX_RECORDS**2, rel=1e-3)


def test_twin_a_histogram_of_the_same_column_is_charged_less() -> None:
    text = '[release.r]\nkind = "histogram"\nby = "product"'
    split = resolve(plan("persons", releases=text, epsilon=1)).release("r")["noise"]["split"]
    assert sum(n * n for n in split) < MAX_RECORDS**2


@pytest.mark.parametrize("model", MODELS)
def test_the_cost_of_all_methods_is_the_budget_and_no_more(model: Model) -> None:
    found = plan("persons", model, releases=RELEASES, epsilon=1)
    budget = check(found)["budget"]
    spent = budget["delta_spent"]
    assert 0.9e-3 < spent <= 1e-3 if model == "zcdp" else spent == 0


# The choice.


def ground(**changes: Any) -> Ground:
    usual: dict[str, Any] = {
        "horizon": 365,
        "window": 365,
        "law": "gaussian",
        "budget": Fraction(1, 2),
        "records": 1,
        "factor": "auto",
        "low": 100,
        "high": 10_000,
        "level": Fraction(19, 20),
    }
    return Ground(**(usual | changes))


LONG = {"horizon": 65_536, "window": 65_536}
GROUNDS = {
    "fresh": [ground(), ground(low=1, high=50), ground(law="laplace", budget=Fraction(1))],
    "ladder": [ground(low=1, high=10, **LONG), ground(low=100, high=5_000, **LONG)],
    "minhash": [ground(low=1, high=10**7, law="laplace", budget=Fraction(1), **LONG)],
}


def _compared(on: Ground) -> dict[str, float]:
    found = {
        "fresh": outlook.fresh(on),
        "ladder": outlook.ladder_ahead(on),
        "minhash": outlook.minhash_ahead(on),
    }
    return {name: one.ratio for name, one in found.items() if one is not None}


@pytest.mark.parametrize(
    ("method", "number"), [(method, n) for method, own in GROUNDS.items() for n in range(len(own))]
)
def test_every_method_has_a_ground_on_which_it_is_predicted_to_be_best(
    method: str, number: int
) -> None:
    found = _compared(GROUNDS[method][number])
    assert min(found, key=lambda name: found[name]) == method


def test_auto_takes_the_least_predicted_error_and_says_why() -> None:
    entry = check(one_release('of = "product"\nexpect = [1, 30]'))["releases"][0]
    ratios = {name: float(text) for name, text in entry["predicted"].items()}
    assert set(ratios) == {"fresh", "ladder", "minhash"}
    assert ratios[entry["method"]] == min(ratios.values())
    assert "least predicted ratio" in entry["why"]
    assert "1 to 30 items" in entry["why"]


def test_auto_never_picks_what_remembers_or_what_needs_too_many_buckets() -> None:
    entry = check(one_release('of = "product"\nexpect = [1, 100_000_000]'))["releases"][0]
    assert set(entry["predicted"]) == {"fresh", "minhash"}


def test_the_choice_is_stored_and_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(releases=RELEASES)
    resolved = resolve(made)
    before = compile_plan(made, resolved)

    def refuse(*_: object) -> None:
        raise AssertionError("chosen again")

    for name in ("fresh", "ladder_ahead", "minhash_ahead", "instances_for", "of_ladder"):
        monkeypatch.setattr(outlook, name, refuse)
    assert compile_plan(made, ResolvedPlan.from_json(resolved.to_json())) == before


@pytest.mark.parametrize("number", [40, 300])
def test_the_predicted_width_of_a_ladder_is_within_a_tenth_of_the_measured(number: int) -> None:
    """The worst number of records an item, median of nine keys; so for both intervals."""
    ladder = a_ladder(10)
    found = []
    for each in (1, 4, 16, 64, 256, 1024):
        ends = list(brackets(ladder, number, each, 9))
        ratio = float(np.median([one.high / max(one.low, 1) for one in ends]))
        half = float(np.median([(one.high - one.low) / 2 for one in ends]))
        half_all = float(np.median([(one.high_all - one.low_all) / 2 for one in ends]))
        found.append((ratio, half, half_all))
    worst = [max(column) for column in zip(*found, strict=True)]
    assert outlook.of_ladder((number,), ladder.sureness, 10) == pytest.approx(worst, rel=0.1)


def test_hashes_by_low_bits_are_predicted_within_the_factor_two_that_a_level_is() -> None:
    mechanism = hashes(5, 16)
    statistic = LowBitItems(items=items(), instances=5, levels=16)
    tau = mechanism.sureness.seeing.tau
    ratios = []
    for one in range(21):
        secret = tree(one).lasting_key(release="people", purpose=PURPOSE)
        totals = statistic.keyed(secret).encode(batch([f"i{n}" for n in range(300)], [tau] * 300))
        found = bounds_of(mechanism.release(1, totals, tree(one)))
        ratios.append(found.high / max(found.low, 1))
    said = outlook.of_minhash((300,), mechanism.sureness, 5, 16).ratio
    assert said / 2 <= float(np.median(ratios)) <= 2 * said


def test_a_method_stays_what_it_is_from_epoch_to_epoch(ram: Path) -> None:
    with new_store(ram / "store", opened(releases=RELEASES)) as store:
        ingest(store, [add(f"{n}", 1, product=f"p{n % 9}", gift=True) for n in range(30)])
        store.close_through(5)
        first, second = (
            {
                entry["name"]: (entry["method"], entry["shape"])
                for entry in ResolvedPlan.from_json(file.read_bytes()).releases
            }
            for file in _resolved_files(ram / "store")
        )
    assert first == second
    assert answers(ram / "store", 5)["products"].value > 0


# What is remembered from round to round costs more in a longer epoch.


def _epochs(text: str, number: int, model: Model = "zcdp") -> list[tuple[int, dict[str, Any]]]:
    """Horizon and entry of each epoch of 8, 16, 32, ... rounds."""
    one = f"[release.r]\n{text}"
    written = opened("ids", model, releases=one, epochs=f"first = 8\nnumber = {number}", epsilon=1)
    made = Plan.loads(written.text.replace("[stream]", '[stream]\nforgetting = "partial"'))
    resolved, found = resolve(made), []
    for epoch in range(1, number + 1):
        horizon = made.of_epoch(epoch).stream.horizon
        if epoch > 1:
            resolved = resolve_next(made, resolved, epoch=epoch, boundaries=range(horizon + 1))
        found.append((horizon, dict(resolved.release("r"))))
    return found


RECOMPUTE = 'kind = "distinct"\nof = "product"\nmethod = "recompute"'
HIDDEN = 'kind = "masked"\nalpha = 0.5\nbeta = 1e-6\ndrift = 20\nbase = {'


@pytest.mark.parametrize("text", [RECOMPUTE, HIDDEN + RECOMPUTE.replace("\n", ", ") + "}"])
@pytest.mark.parametrize("model", MODELS)
def test_recompute_pays_in_every_epoch_for_all_the_heads_that_a_life_meets(
    model: Model, text: str
) -> None:
    epochs = _epochs(text, 5, model)
    block = epochs[0][1]["shape"]["block"]
    heads, charged = [], []
    for horizon, entry in epochs:
        assert entry["shape"] == {"block": block}
        heads.append(len(range(0, horizon, block)))
        charged.append(NoiseProcess.from_spec(entry["noise"]["process"]).factor.window_l1)
    assert charged == heads


FLIPPANCY = 'kind = "distinct"\nof = "product"\nmethod = "flippancy"\nflips = 4'


def test_flippancy_pays_in_every_epoch_for_the_tree_that_it_has_there() -> None:
    charges, needs = [], []
    for _, entry in _epochs(FLIPPANCY, 6):
        factor = NoiseProcess.from_spec(entry["noise"]["process"]).factor
        assert isinstance(factor, HaarFactor)
        charges.append(entry["noise"]["norms"][1] * factor.window_l2sq)
        needs.append(switching_l2sq(factor.height, 8))
    assert all(charge >= need for charge, need in zip(charges, needs, strict=True))
    assert needs[-1] > 4 * (2 * 8 + 2)  # more than what the first epoch's tree came to, in windows


def _resolved_files(store: Path) -> list[Path]:
    found = sorted(store.glob("plan.resolved*.json"))
    assert len(found) == 2
    return found


# Plans.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('of = "nothing"', "no column"),
        ('of = []\nmethod = "fresh"', "of is"),
        ('of = "product"', "expect is missing"),
        ('of = "product"\nmethod = "ladder"', "expect is missing"),
        ('of = "product"\nmethod = "mystery"', "method is"),
        ('of = "product"\nmethod = "fresh"\nexpect = [5]', "expect is"),
        ('of = "product"\nmethod = "fresh"\nexpect = [5, 2]', "expect is"),
        ('of = "product"\nmethod = "fresh"\nexpect = [-1, 2]', "expect is"),
        ('of = "product"\nmethod = "fresh"\nexpect = [0, 0]', "expect is"),
        ('of = "product"\nmethod = "fresh"\nexpect = [1.0, 2.0]', "expect is"),
        ('of = "product"\nmethod = "fresh"\nexpect = [true, true]', "expect is"),
        ('of = "product"\nmethod = "fresh"\nflips = 3', "flips is for"),
        ('of = "product"\nmethod = "fresh"\nfactor = "haar"', "does not fit"),
        ('of = "product"\nmethod = "ladder"\nexpect = [1, 900_000]', "reaches 900000"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_its_key(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        resolve(one_release(text))
    assert "release.r" in str(caught.value)


def test_a_plan_reads_back_as_it_is() -> None:
    made = plan(releases=RELEASES)
    assert Plan.from_dict(made.to_dict()).to_dict() == made.to_dict()
    assert Plan.from_dict(made.to_dict()).releases == made.releases
