"""No sound release is accused, measures come close to their claims, and planted faults are caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from retrodp.audit import misuse
from retrodp.audit.cases import MOST_SEEN, TOGETHER, Case, Together
from retrodp.audit.faults import FAULTS, Fault, audit_fault
from retrodp.audit.privacy import findings, power, rows_of
from retrodp.audit.released import is_as_declared
from retrodp.audit.report import FAILURES, Row
from retrodp.audit.subjects import Model, Stream
from retrodp.audit.tamper import Tampered, by_rule
from retrodp.audit.worlds import lived, moved, unit_contents
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.counter import Counter
from retrodp.noise.key import NoiseKeys
from tests.audit.sizes import MISS, SEED, SIZE

SOUND: list[tuple[str, Together, Model, Stream]] = [
    ("haar", {"r": {"kind": "count", "factor": "haar"}}, "zcdp", "ids"),
    ("dense", {"r": {"kind": "count", "factor": "dense"}}, "zcdp", "ids"),
    ("fresh", {"r": {"kind": "sum", "of": "amount", "window": "3d"}}, "zcdp", "ids"),
    ("sparse", {"r": {"kind": "histogram", "by": "product"}}, "zcdp", "ids"),
    ("together", TOGETHER["two counts"], "zcdp", "ids"),
    ("delannoy", {"r": {"kind": "count", "factor": "delannoy"}}, "pure", "ids"),
    ("binary", {"r": {"kind": "count", "factor": "binary"}}, "pure", "points"),
    ("mean", {"r": {"kind": "mean", "of": "amount", "by": "country"}}, "pure", "ids"),
    ("persons", {"r": {"kind": "histogram", "by": "product"}}, "pure", "persons"),
]
IDS = [name for name, *_ in SOUND]


@cache
def rows(name: str) -> tuple[Row, ...]:
    (found,) = (one for one in SOUND if one[0] == name)
    _, tables, model, stream = found
    case = Case.of(name, tables, model=model, stream=stream, horizon=SIZE.horizon)
    return tuple(rows_of(case, SEED.further(name), SIZE, miss=MISS))


@pytest.mark.parametrize("name", IDS)
def test_no_sound_release_is_accused(name: str) -> None:
    assert [row for row in rows(name) if row.verdict != "holds"] == []


@pytest.mark.parametrize("name", IDS)
def test_measures_come_close_to_their_claims(name: str) -> None:
    """At least 55 per cent, at a confidence of 1 - 1e-5; most are near 80."""
    (row,) = (row for row in rows(name) if row.test == "neighbouring streams")
    assert 0.55 < row.details["loss_measured"] / row.details["loss_claimed"] < 1


@pytest.mark.parametrize("name", IDS)
def test_noise_too_small_by_a_factor_of_two_would_be_found(name: str) -> None:
    (row,) = (row for row in rows(name) if row.test == "neighbouring streams")
    assert row.details["noise_too_small_by_found"] in {1.5, 2.0}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.title)
def test_every_planted_fault_is_caught(fault: Fault) -> None:
    found = audit_fault(fault, SEED.further(fault.title), SIZE, miss=MISS)
    assert any(row.verdict in FAILURES for row in found)


def test_a_fault_of_the_sampling_kind_is_caught_by_what_was_measured() -> None:
    """Not only by the exact rows: a release may say about itself what it likes."""
    (fault,) = (one for one in FAULTS if one.title == "scale halved, Gaussian")
    found = audit_fault(fault, SEED, SIZE, miss=MISS)
    (row,) = (row for row in found if row.test == "neighbouring streams")
    assert row.verdict == "accused"
    assert row.details["loss_measured"] > 1.5 * row.details["loss_claimed"]


@pytest.mark.parametrize("model", ["zcdp", "pure"])
def test_a_threshold_that_is_one_too_low_needs_exact_tails(model: Model) -> None:
    name = "sparse" if model == "zcdp" else "persons"
    (row,) = (row for row in rows(name) if row.test == "threshold")
    assert row.details["spent"] <= row.details["allowed"] < row.details["one_lower"]
    assert row.details["runs_to_see_one_lower"] > 10**6


def test_a_release_that_adds_what_it_does_not_declare_is_asked_and_not_drawn() -> None:
    case = Case.of("count", {"r": {"kind": "count"}}, model="pure", horizon=3)
    worlds = case.neighbours(1)[0]
    rounds = lived(case.plan, case.releases, worlds, SEED.keys(3))
    assert is_as_declared(case.mechanisms, rounds, SEED, keys=2)
    planted = case.tampered(by_rule(misuse.even_noise))
    assert not is_as_declared(planted.mechanisms, rounds, SEED, keys=2)


class _Loose(Counter):
    """Claims to be a counter, and publishes one more where there is anything to count."""

    def release(self, round_: int, exact: int | Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        assert not isinstance(exact, int)
        total = exact.get(b"", 0)
        return Counter.release(self, round_, total + (total > 0), keys)


def test_a_counter_that_publishes_anything_but_total_plus_noise_is_accused() -> None:
    case = Case.of("count", {"r": {"kind": "count"}}, model="pure", horizon=3)
    (sound,) = case.mechanisms.values()
    assert isinstance(sound, Counter)
    loose = replace(case, mechanisms={"r": _Loose.of(sound.noise)})
    few = replace(SIZE, asked=20, windows=1)
    verdicts = {row.test: row.verdict for row in rows_of(loose, SEED, few, miss=MISS)}
    assert verdicts["declared noise"] == "accused"


def test_neighbours_differ_in_one_window_of_the_greatest_weight() -> None:
    case = Case.of("sum", {"r": {"kind": "sum", "of": "amount"}}, model="pure", horizon=5)
    (worlds, *_) = case.neighbours(1)
    (path,) = moved(lived(case.plan, case.releases, worlds, SEED.keys(5)))
    change = [zero - one for zero, one in zip(path.zero, path.one, strict=True)]
    assert set(change) == {0, 40}  # 20 in halves
    inside = [round_ for round_, by in enumerate(change) if by]
    assert inside == list(range(inside[0], inside[-1] + 1))


def test_the_unit_of_a_person_fills_as_few_and_as_many_bins_as_it_may() -> None:
    case = Case.of(
        "persons",
        {"r": {"kind": "histogram", "by": "product"}},
        model="pure",
        stream="persons",
        horizon=5,
    )
    contents = dict(unit_contents(case.plan, case.releases))
    products = {
        name: sorted(
            [values[1] for values in records].count(label) for label in {v[1] for v in records}
        )
        for name, records in contents.items()
    }
    assert products == {
        "3 records in the fewest bins": [1, 2],
        "3 records in the most bins": [1, 1, 1],
    }


def _as_it_is(
    unknown: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    return unknown.inner.release(round_, exact, keys)


def test_a_kind_whose_numbers_are_not_followed_is_audited_by_its_noise() -> None:
    case = Case.of(
        "cdf",
        {"r": {"kind": "cdf", "of": "amount", "edges": [0, 5, 10, 20]}},
        model="zcdp",
        horizon=SIZE.horizon,
    )
    hide = by_rule(_as_it_is)  # a mechanism of a class that the audit does not know
    hidden = replace(
        case.tampered(hide),
        releases=tuple(
            replace(one, mechanism=hide(case.mechanisms[one.name])) for one in case.releases
        ),
    )
    assert case.known
    assert not hidden.known
    found = list(rows_of(hidden, SEED, SIZE, miss=MISS))
    assert {row.verdict for row in found} == {"holds"}
    (row,) = (row for row in found if row.test == "neighbouring streams")
    assert row.details["loss_measured"] > 0.55 * row.details["loss_claimed"]
    assert row.details["follows_release"] is False


DENSE = {
    "r": {"kind": "second_moment", "of": "product", "method": "dense", "rows": 3, "buckets": 128}
}


@cache
def dense() -> Case:
    return Case.of("dense", DENSE, model="zcdp", horizon=3)


def test_hundreds_of_coordinates_alike_are_seen_as_a_few_sums_that_hold_all_of_them() -> None:
    (mechanism,) = dense().vector().mechanisms.values()
    assert isinstance(mechanism, Counter)
    split = mechanism.noise.split
    path = dense().vector_paths(1, 4)
    assert len(split) == 384
    assert len(path) <= MOST_SEEN
    assert sum(one.zero[0] for one in path) == sum(split)


def test_sums_tell_as_much_of_gaussian_noise_as_their_coordinates() -> None:
    size = replace(SIZE, runs=8_000, windows=1, keys=1, scales=(Fraction(2),))
    (worst, *_) = findings(dense(), SEED, size, miss=MISS)
    assert worst.evidence.excess(dense().claim) <= 0
    assert worst.evidence.loss(dense().claim) > 0.55 * dense().claim.loss
    assert power(dense(), worst, SEED, size, miss=MISS) == 2.0


def test_twin_one_coordinate_alone_would_tell_nothing_of_it() -> None:
    size = replace(SIZE, runs=8_000, windows=1, keys=1)
    loss = {}
    for name, share in (("all", Fraction(1)), ("one", Fraction(1, 384))):
        case = Case.of(name, {"r": {"kind": "count"}}, model="zcdp", horizon=3)
        thinner = case.tampered(misuse.too_small(share)) if share < 1 else case
        (worst, *_) = findings(thinner, SEED, size, miss=MISS)
        loss[name] = worst.evidence.loss(case.claim) / case.claim.loss
    assert loss["one"] < 0.1
    assert loss["all"] > 0.55


def test_the_stated_power_is_that_of_noise_really_too_small() -> None:
    case = Case.of("count", {"r": {"kind": "count"}}, model="zcdp", horizon=SIZE.horizon)
    (worst, *_) = findings(case, SEED, SIZE, miss=MISS)
    fine = replace(SIZE, scales=(Fraction(101, 100), Fraction(2)))
    assert power(case, worst, SEED, fine, miss=MISS / 21) == 2.0
