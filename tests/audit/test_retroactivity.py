"""No sound release is accused of memory, and every planted memory is caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from retrodp.audit import retroactivity
from retrodp.audit.histories import Round
from retrodp.audit.memory import MEMORY_FAULTS
from retrodp.audit.pairs import uniting_pair
from retrodp.audit.retroactivity import (
    CONTROL_TITLES,
    HORIZON,
    Subject,
    controls,
    differences,
    marginal,
    subject_of,
    verdict_on,
)
from retrodp.audit.subjects import Stream, fillings, fits
from retrodp.audit.tamper import Tampered, by_rule
from retrodp.errors import VerificationError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism, Retroactive
from retrodp.noise.key import NoiseKeys
from tests.audit.sizes import SEED

PAIRS = 10
SIZE = retroactivity.Size(pairs=1, controls=2, streams={"zcdp": ("ids",), "pure": ("points",)})


@cache
def few(stream: Stream = "ids") -> Subject:
    tables = [filling for filling in fillings() if filling.title in CONTROL_TITLES]
    return subject_of(tables, model="zcdp", stream=stream)


def test_no_release_of_the_registry_is_accused() -> None:
    rows = retroactivity.audit(SEED, SIZE)
    audited = {(row.mechanism, row.model) for row in rows if row.test == "uniting histories"}
    wanted = {(one.title, m) for one in fillings() for m in ("zcdp", "pure") if fits(one, m)}
    assert audited == wanted
    assert [row for row in rows if row.verdict == "accused"] == []


@pytest.mark.parametrize("title", MEMORY_FAULTS)
def test_every_planted_memory_is_caught(title: str) -> None:
    (row,) = controls(SEED, PAIRS, {title: MEMORY_FAULTS[title]})
    assert row.verdict == "caught"
    assert row.details["caught"] >= 2


def test_a_release_that_is_only_wrapped_is_not_caught() -> None:
    def honest(
        self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
    ) -> Answer:
        return self.inner.release(round_, exact, keys)

    (row,) = controls(SEED, PAIRS, {"honest": by_rule(honest)})
    assert row.verdict == "missed"
    assert row.details["caught"] == 0


def test_a_restart_in_one_history_changes_nothing() -> None:
    pair = uniting_pair(few().plan, SEED.coins("restart"))
    keys = SEED.keys(HORIZON, "restart")
    found = [differences(few(), pair, keys, restart=round_) for round_ in range(1, HORIZON + 1)]
    assert found == [{}] * HORIZON


def test_histories_that_do_not_unite_are_a_fault_of_the_audit() -> None:
    pair = uniting_pair(few().plan, SEED.coins("apart"))
    apart = replace(pair, two=uniting_pair(few().plan, SEED.coins("other")).one)
    with pytest.raises(VerificationError, match="do not unite"):
        differences(few(), apart, SEED.keys(HORIZON), restart=2)


@pytest.mark.parametrize(
    ("promised", "differs", "verdict"),
    [("exact", False, "holds"), ("exact", True, "accused"), ("no", True, "as stated")],
)
def test_a_difference_accuses_only_what_promises_to_be_exact(
    promised: Retroactive,
    differs: bool,  # noqa: FBT001
    verdict: str,
) -> None:
    assert verdict_on(promised, differs=differs) == verdict


def totals(number: int) -> Round:
    return Round(frozenset(), {"r0": {b"": number}})


def count_of_few() -> Mechanism:
    (count,) = (one.mechanism for one in few().compiled() if one.name == "r0")
    return count


def wide_count() -> Mechanism:
    """A count with noise of life, so that laws have a width."""
    subject = subject_of(
        [filling for filling in fillings() if filling.title == "count, auto"],
        model="zcdp",
        stream="ids",
        epsilon=1,
    )
    (release,) = subject.compiled()
    return release.mechanism


KEYS = [SEED.keys(HORIZON, "marginal", number) for number in range(3_000)]


@pytest.mark.parametrize(("other", "rejected"), [(5, False), (12, True)])
def test_marginal_laws_are_compared_over_many_keys(
    other: int,
    rejected: bool,  # noqa: FBT001
) -> None:
    """Noise of deviation 9 or so: a shift by 7 is a Kolmogorov distance of 0.3; 0.2 is found."""
    outcome = marginal(wide_count, (totals(5), totals(other)), round_=3, keys=KEYS, alpha=1e-6)
    assert outcome.detected < 0.25
    assert outcome.rejected == rejected
