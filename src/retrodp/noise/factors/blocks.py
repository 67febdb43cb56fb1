"""Stamps cut into blocks, each block with a factor of its own over the rounds that need it.

Promise: every stamp is a counter over rounds of arrival, so a record, which has one stamp, moves the
noise of one of them through one window; and a stamp that is published for `last` rounds needs a
factor over little more than `last` rounds. Knows no key, no law, no scale and no data.

Block g holds the stamps `g * length + 1` to `(g + 1) * length`. Its own round 1 is the round of its
first stamp, and all its stamps share the nodes of its factor, each at coordinates of its own. What
outlasts the horizon is never drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from retrodp._check import round_within, whole
from retrodp.errors import PlanError
from retrodp.noise.factors.contract import Factor, PartialSum, Profile, WeightedNode, chain
from retrodp.noise.key import Node, NoiseKeys

PARTS = 8
"""Blocks that a limited series spans; more cost keys, fewer cost rounds that a factor covers."""


def block_length(horizon: int, last: int) -> int:
    """Stamps in a block: all of them, or an eighth of the rounds for which one is published."""
    return horizon if last >= horizon else -(-last // PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StampBlocks:
    """The nodes of all blocks, as one factor over the rounds of the plan.

    Attributes:
        inner: Of every block, over its own rounds.
        horizon: Rounds of the plan.
        length: Stamps in a block.
        rounds: For which a stamp is published, its own round included.
    """

    inner: Factor
    horizon: int
    length: int
    rounds: int

    def __post_init__(self) -> None:
        whole(least=1, horizon=self.horizon, length=self.length, rounds=self.rounds)
        if self.inner.horizon < min(self.horizon, self.length + self.rounds - 1):
            raise PlanError("The factor of a block of stamps does not cover its rounds.")

    @property
    def name(self) -> str:
        """That of the blocks' factor."""
        return self.inner.name

    @property
    def denominator(self) -> int:
        """Likewise."""
        return self.inner.denominator

    @property
    def window_l1(self) -> int:
        """That of one block: a record has one stamp."""
        return self.inner.window_l1

    @property
    def window_l2sq(self) -> int:
        """Likewise."""
        return self.inner.window_l2sq

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """Likewise."""
        return self.inner.window_shape

    def first_stamp(self, round_: int) -> int:
        """First stamp that is published in a round; the last is the round's own."""
        round_within(round_, self.horizon)
        return max(1, round_ - self.rounds + 1)

    def blocks(self, round_: int) -> range:
        """Blocks that hold a stamp published in the round."""
        return range((self.first_stamp(round_) - 1) // self.length, (round_ - 1) // self.length + 1)

    def start(self, block: int) -> int:
        """Rounds before the block's own round 1."""
        return block * self.length

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """The nodes of every block that the round publishes."""
        return tuple(
            ((block, *node), weight)
            for block in self.blocks(round)
            for node, weight in self.inner.nodes(round - self.start(block))
        )

    def sums(self, round: int, /) -> tuple[PartialSum, ...]:  # noqa: A002
        """A chain; a release asks block by block and not here."""
        return chain(self.nodes(round))

    def last(self, node: Node, /) -> int:
        """Last round of the plan whose noise uses a node of a block."""
        block, *own = node
        assert isinstance(block, int)
        return min(self.horizon, self.start(block) + self.inner.last(tuple(own)))

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        """Of the stamps of the newest block; a stamp's variance goes by its block's own round."""
        return self.inner.unit_variance(round - self.start(self.blocks(round)[-1]))

    def profile(self) -> Profile:
        """Over the rounds of a block."""
        return self.inner.profile()

    def spec(self) -> dict[str, object]:
        """That of the blocks' factor; how stamps are cut is stored with the release."""
        return self.inner.spec()


@dataclass(frozen=True, slots=True)
class BlockKeys:
    """The keys of one block, to be asked in the block's own rounds.

    Attributes:
        keys: Of the plan.
        blocks: How stamps are cut.
        block: Which one; part of every label.
    """

    keys: NoiseKeys
    blocks: StampBlocks
    block: int

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        """Key of a node of the block; `last` counts the block's rounds."""
        return self.keys.node_key(
            release=release,
            factor=factor,
            node=("stamps", self.block, *node),
            last=min(self.blocks.horizon, self.blocks.start(self.block) + last),
        )

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        """As of the plan."""
        return self.keys.fresh_key(release=release, purpose=purpose, round=round)

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        """As of the plan."""
        return self.keys.lasting_key(release=release, purpose=purpose)
