"""Attacks 11 and 12 for ordered kinds: the upper levels of a tree hold a person's records together."""

from __future__ import annotations

from fractions import Fraction

import pytest

from retrodp.engine.compile import statistic_of
from retrodp.engine.resolve import resolve
from retrodp.noise.process import NoiseProcess
from tests.support.plans import MAX_PER_BIN, MAX_RECORDS, plan

OWN = {
    "quantiles": 'kind = "quantiles"\nof = "amount"\nat = [0.5]',
    "quantiles by country": 'kind = "quantiles"\nof = "amount"\nat = [0.5]\nby = "country"',
    "cdf": 'kind = "cdf"\nof = "amount"\nedges = [0, 1, 2, 3, 4, 5, 6, 20]',
    "range": 'kind = "range"\nof = "amount"\nedges = [0, 5, 20]',
}


@pytest.mark.parametrize("kind", OWN)
def test_k_records_are_charged_k_squared_on_every_level(kind: str) -> None:
    """The plan's `max_per_bin` is by product, which no node of these trees refines."""
    persons = plan("persons", releases=f"[release.r]\n{OWN[kind]}", epsilon=1)
    resolved = resolve(persons)
    process = NoiseProcess.from_spec(resolved.release("r")["noise"]["process"])
    charge = 2 * Fraction(resolved.budget["rho"]) * process.scale / process.factor.window_l2sq
    (component,) = statistic_of(persons, persons.releases[0]).components
    assert round(charge) == len(component.partitions) * MAX_RECORDS**2
    assert resolved.release("r")["noise"]["split"] == [MAX_RECORDS] * len(component.partitions)


def test_groups_that_refine_the_bound_are_charged_less() -> None:
    """`max_per_bin` by country: trees of different countries share no node."""
    text = plan("persons", releases=f"[release.r]\n{OWN['quantiles by country']}").text
    refined = type(plan()).loads(text.replace('by = ["product"]', 'by = ["country"]'))
    split = resolve(refined).release("r")["noise"]["split"]
    levels = len(statistic_of(refined, refined.releases[0]).components[0].partitions)
    assert split == [MAX_PER_BIN, MAX_RECORDS - MAX_PER_BIN] * levels


def test_no_ordered_kind_has_a_threshold() -> None:
    """Attack 12 does not arise: every group, edge and range is public and always published."""
    releases = "\n".join(f"[release.r{n}]\n{own}" for n, own in enumerate(OWN.values()))
    resolved = resolve(plan("persons", releases=releases, epsilon=1))
    assert all("threshold" not in entry for entry in resolved.releases)
    assert resolved.budget["delta_parts"]["thresholds"] == "0"


def test_twin_a_total_alone_would_be_charged_too_little() -> None:
    persons = plan("persons", releases=f"[release.r]\n{OWN['quantiles']}", epsilon=1)
    split = resolve(persons).release("r")["noise"]["split"]
    assert sum(n * n for n in split) > MAX_RECORDS**2 * 6
