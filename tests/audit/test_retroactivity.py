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
from retrodp.audit.subjects import Stream, compiled_fillings, fillings, fits
from retrodp.audit.tamper import Tampered, by_rule
from retrodp.errors import VerificationError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism, Retroactive
from retrodp.noise.key import NoiseKeys
from tests.audit.sizes import SEED
from tests.support.mechanisms import pure

PAIRS = 40
SIZE = retroactivity.Size(pairs=1, controls=PAIRS, streams={"zcdp": ("ids",), "pure": ("points",)})


@cache
def few(stream: Stream = "ids") -> Subject:
    tables = [filling for filling in fillings() if filling.title in CONTROL_TITLES]
    return subject_of(tables, model="zcdp", stream=stream)


def test_no_release_of_the_registry_is_accused() -> None:
    every = [*fillings(), *compiled_fillings()]
    rows = retroactivity.audit(SEED, SIZE, chosen=every)
    audited = {(row.mechanism, row.model) for row in rows if row.test == "uniting histories"}
    wanted = {(one.title, m) for one in every for m in ("zcdp", "pure") if fits(one, m)}
    assert audited == wanted
    assert [row for row in rows if row.verdict == "accused"] == []


@pytest.mark.parametrize("title", MEMORY_FAULTS)
def test_every_planted_memory_is_caught(title: str) -> None:
    (row,) = controls(SEED, PAIRS, {title: MEMORY_FAULTS[title]})
    assert row.verdict == "caught"


def test_a_release_that_is_only_wrapped_is_not_caught() -> None:
    def honest(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        return self.inner.release(round_, exact, keys)

    (row,) = controls(SEED, PAIRS, {"honest": by_rule(honest)})
    assert row.verdict == "missed"


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


def history(*totals: int) -> list[Round]:
    return [Round(frozenset(), {"r0": {b"": total}}) for total in totals]


@cache
def wide_count() -> Mechanism:
    """A count with noise of life, so that laws have a width: a deviation of about 3."""
    count = [filling for filling in fillings() if filling.title == "count, auto"]
    (release,) = subject_of(count, model="zcdp", stream="ids", epsilon=5).compiled()
    return pure(release)


def largest_kept() -> Mechanism:
    return MEMORY_FAULTS["largest total kept"](wide_count())


KEYS = [SEED.keys(HORIZON, "marginal", number) for number in range(1_200)]
ALPHA = 1e-6


def test_histories_that_unite_have_one_law_and_a_twin_that_remembers_has_two() -> None:
    one, two = history(5, 5, 5), history(5, 12, 5)
    sound = marginal(wide_count, (one, two), keys=KEYS, alpha=ALPHA)
    twin = marginal(largest_kept, (one, two), keys=KEYS, alpha=ALPHA)
    assert not sound.rejected
    assert twin.rejected


def test_a_distance_that_a_contract_allows_is_not_rejected() -> None:
    apart = history(5, 5, 5), history(5, 5, 9)
    assert marginal(wide_count, apart, keys=KEYS, alpha=ALPHA).rejected
    assert not marginal(wide_count, apart, keys=KEYS, alpha=ALPHA, claimed=0.9).rejected
