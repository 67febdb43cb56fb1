"""Attacks 11 and 12: what k records of one person cost, through a whole plan."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from retrodp.engine.amounts import protection_of
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.process import NoiseProcess
from tests.support.plans import MAX_PER_BIN, MAX_RECORDS, plan

RELEASES = """
[release.lines]
kind = "count"
[release.by_country]
kind = "histogram"
by = "country"
[release.by_product]
kind = "histogram"
by = "product"
[release.by_both]
kind = "histogram"
by = ["country", "product"]
"""
PERSONS = plan("persons", releases=RELEASES, epsilon=1)
RESOLVED = resolve(PERSONS)


def entry(name: str) -> Mapping[str, Any]:
    return RESOLVED.release(name)


def charge(name: str) -> Fraction:
    """Squared norm that a person is charged, in units of one record's."""
    process = NoiseProcess.from_spec(entry(name)["noise"]["process"])
    share = Fraction(RESOLVED.budget["rho"]) * Fraction(entry(name)["share"])
    return 2 * share * process.scale / process.factor.window_l2sq


def near(value: Fraction) -> int:
    return round(value)


def test_records_in_one_bin_of_a_coarser_partition_are_charged_their_square() -> None:
    assert near(charge("lines")) == MAX_RECORDS**2
    assert near(charge("by_country")) == MAX_RECORDS**2


def test_only_a_partition_that_refines_the_bound_is_charged_less() -> None:
    spread = sum(windows**2 for windows in protection_of(PERSONS).worst_split(("product",)))
    assert spread == MAX_PER_BIN**2 + (MAX_RECORDS - MAX_PER_BIN) ** 2
    assert near(charge("by_product")) == spread
    assert near(charge("by_both")) == spread


def test_twin_the_root_of_k_everywhere_would_charge_too_little() -> None:
    assert near(charge("by_country")) > MAX_RECORDS


def test_the_threshold_covers_all_records_of_a_person() -> None:
    process = NoiseProcess.from_spec(entry("by_product")["noise"]["process"])
    delta = entry("by_product")["threshold_delta"]
    needed = threshold_for(process, delta=delta, records=MAX_RECORDS, per_bin=MAX_PER_BIN)
    of_one_record = threshold_for(process, delta=delta, records=1)
    assert entry("by_product")["threshold"] == needed
    assert needed > of_one_record
