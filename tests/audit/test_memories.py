"""Releases that remember: the audit shows that they do, as they state, and accuses none of it."""

from __future__ import annotations

from typing import Any

import pytest

from retrodp.audit.histories import exact_rounds
from retrodp.audit.pairs import flapping_pair
from retrodp.audit.retroactivity import HORIZON, memories, subject_of, verdict_on
from retrodp.audit.subjects import STREAMS, Filling, Stream
from retrodp.engine.compile import keyed
from tests.audit.sizes import SEED

KEYS: dict[str, dict[str, Any]] = {
    "doubling": {"method": "flippancy"},
    "one flip": {"method": "flippancy", "flips": 1},
    "blocks": {"method": "recompute"},
    "fresh": {"method": "fresh"},
}
TABLES = [
    Filling(title=title, table={"kind": "distinct", "of": "product", **keys})
    for title, keys in KEYS.items()
]


def test_every_release_that_says_it_remembers_is_shown_to() -> None:
    rows = {row.mechanism: row for row in memories(SEED, 20, TABLES)}
    assert rows.keys() == {"doubling", "one flip", "blocks"}
    assert {row.verdict for row in rows.values()} == {"as stated"}


def test_twin_a_release_that_says_no_and_forgets_would_be_missed() -> None:
    """With noise so small that every round is a head, nothing is remembered, and nothing claimed."""
    subject = subject_of(TABLES[2:3], model="zcdp", stream="ids", epsilon=300)
    (release,) = subject.compiled()
    assert release.mechanism.retroactive == "exact"
    assert verdict_on("exact", differs=True) == "accused"
    assert verdict_on("no", differs=True) == "as stated"


@pytest.mark.parametrize("stream", STREAMS)
def test_flapping_histories_unite(stream: Stream) -> None:
    subject = subject_of(TABLES[3:], model="zcdp", stream=stream)
    pair = flapping_pair(subject.plan, SEED.coins("flapping"))
    keys = SEED.keys(HORIZON, "flapping")
    releases = keyed(subject.compiled(), keys)
    one, two = (exact_rounds(subject.plan, releases, own, keys) for own in (pair.one, pair.two))
    after = slice(pair.meet - 1, None)
    assert [now.survivors for now in one[after]] == [now.survivors for now in two[after]]
    assert one[0].survivors != two[0].survivors
    assert len(one[pair.meet - 1].survivors) == 1
