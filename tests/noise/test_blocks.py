"""Stamps in blocks: covered when they are published, keyed until then, one window a record."""

from __future__ import annotations

import numpy as np
import pytest

from retrodp.errors import PlanError
from retrodp.noise.factors.blocks import BlockKeys, StampBlocks, block_length
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.key import KeyTree, Node
from tests.noise.test_factors import shifts, weights


def blocks(horizon: int, rounds: int) -> StampBlocks:
    length = block_length(horizon, rounds)
    covered = min(horizon, rounds + length - 1)
    return StampBlocks(inner=best_haar(covered), horizon=horizon, length=length, rounds=rounds)


SIZES = [(1, 1), (5, 5), (12, 3), (12, 12), (30, 9), (40, 17)]


@pytest.mark.parametrize(("horizon", "rounds"), SIZES)
def test_every_published_stamp_lies_in_a_block_that_covers_the_round(
    horizon: int, rounds: int
) -> None:
    factor = blocks(horizon, rounds)
    published = 0
    for round_ in range(1, horizon + 1):
        covered = {
            stamp
            for block in factor.blocks(round_)
            for stamp in range(factor.start(block) + 1, factor.start(block) + factor.length + 1)
            if 1 <= round_ - factor.start(block) <= factor.inner.horizon
        }
        wanted = set(range(factor.first_stamp(round_), round_ + 1))
        assert wanted <= covered
        assert len(wanted) == min(round_, rounds)
        published += len(wanted)
    assert published == rounds * horizon - rounds * (rounds - 1) // 2


@pytest.mark.parametrize(("horizon", "rounds"), SIZES)
def test_a_key_lasts_as_long_as_any_round_uses_the_node(horizon: int, rounds: int) -> None:
    factor = blocks(horizon, rounds)
    last: dict[Node, int] = {}
    for round_ in range(1, horizon + 1):
        last.update(dict.fromkeys((node for node, _ in factor.nodes(round_)), round_))
    assert last
    # A block's own factor may use a node in rounds in which no stamp of the block is published.
    assert all(factor.last(node) >= used for node, used in last.items())
    assert max(map(factor.last, last)) <= horizon


class Noting:
    """Keys that note what they were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Node, int]] = []

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        del release, factor
        self.asked.append((node, last))
        return bytes(32)

    fresh_key = lasting_key = KeyTree.lasting_key  # never asked here


def test_keys_are_asked_in_rounds_of_the_plan_under_the_name_of_the_block() -> None:
    factor, noting = blocks(12, 3), Noting()
    own = BlockKeys(noting, factor, 4)  # type: ignore[arg-type]
    own.node_key(release="r", factor="haar", node=(0, 0), last=2)
    own.node_key(release="r", factor="haar", node=(0, 1), last=99)
    assert noting.asked == [
        (("stamps", 4, 0, 0), factor.start(4) + 2),
        (("stamps", 4, 0, 1), 12),
    ]


@pytest.mark.parametrize(("horizon", "rounds"), [(8, 8), (12, 3), (10, 5)])
def test_every_stamp_and_window_costs_at_most_one_window_of_a_block(
    horizon: int, rounds: int
) -> None:
    """Brute force over (stamp, window) pairs, in the rounds that publish the stamp."""
    factor = blocks(horizon, rounds)
    inner = factor.inner
    used, nodes = weights(inner)
    columns = shifts(inner, nodes, range(1, inner.horizon + 2))
    worst, count, wrong = 0.0, 0, 0
    for stamp in range(1, horizon + 1):
        start = factor.start((stamp - 1) // factor.length)
        over = min(horizon, stamp + rounds - 1)
        for begin in range(stamp, over + 1):
            for end in range(begin + 1, over + 2):
                shift = columns[:, begin - start - 1] - columns[:, end - start - 1]
                change = used.toarray() @ shift / inner.denominator
                shown = change[stamp - start - 1 : over - start]
                wanted = [float(begin <= r < end) for r in range(stamp, over + 1)]
                wrong += not np.array_equal(shown, wanted)
                worst = max(worst, float((shift**2).sum()))
                count += 1
    assert count > 0
    assert wrong == 0
    assert 0 < worst <= factor.window_l2sq


def test_a_limited_series_has_less_noise_than_a_whole_one() -> None:
    whole, limited = blocks(365, 365), blocks(365, 90)
    assert limited.inner.horizon == 90 + 12 - 1
    assert limited.window_l2sq < whole.window_l2sq


def test_a_factor_that_is_too_short_is_refused() -> None:
    with pytest.raises(PlanError, match="cover"):
        StampBlocks(inner=best_haar(4), horizon=12, length=2, rounds=6)
