"""The comparison of online clusterings counts what it says it counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.online_rivals import MergeAndReduce, meyerson
from benchmarks.online_streams import Ints, K, Step

from benchmarks import online_streams as streams

NUMBER, BLOCKS = 3000, 10


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Ints:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(streams, "STARTS", 2)
    return streams.stream(NUMBER, 2, "drifting")


def test_drifting_groups_begin_one_after_the_other() -> None:
    drifting = streams.units(streams.stream(NUMBER, 2, "drifting"))
    mixed = streams.units(streams.stream(NUMBER, 2, "in any order"))
    first = [
        float(own[:150].var(axis=0).sum() / own.var(axis=0).sum()) for own in (drifting, mixed)
    ]
    assert first[0] < 0.5 < first[1]
    assert np.allclose(np.sort(drifting, axis=0), np.sort(mixed, axis=0))
    assert (drifting**2).sum(axis=1).max() <= 0.26


def test_recourse_counts_centres_that_were_not_there_before(points: Ints) -> None:
    centres = streams.best(streams.units(points), starts=2)

    def method(_: Ints, blocks: int) -> Iterator[Step]:
        for block in range(1, blocks + 1):
            moved = centres.copy()
            moved[0] += 1e-9 * (block >= 4)  # one centre becomes another one, once
            yield Step(block, moved, block, 0.25)

    found = streams.outcome(points, BLOCKS, method)
    assert found.recourse == K + 1
    assert found.kept == BLOCKS
    assert found.seconds >= 0.25 * BLOCKS
    assert abs(found.final - 1) < 0.1
    assert found.worst >= found.mean


@pytest.mark.parametrize("method", [MergeAndReduce(2), meyerson])
def test_rivals_give_centres_after_every_block(points: Ints, method: streams.Method) -> None:
    steps = [*method(points, BLOCKS)]
    assert [step.block for step in steps] == [*range(1, BLOCKS + 1)]
    assert all(1 <= len(step.centres) <= K for step in steps)
    assert streams.ratio(points, NUMBER, steps[-1].centres) < 20
