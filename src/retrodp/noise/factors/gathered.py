"""Rounds gathered into blocks: noise that has one step a block, in a plan that counts rounds.

Promise: the keys of a block can be derived up to the block's last round and no longer. Knows no
law, no scale and no data.
"""

from __future__ import annotations

from dataclasses import dataclass

from retrodp._check import round_within, whole
from retrodp.noise.key import Node, NoiseKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Equal blocks of rounds; the last may be shorter.

    Attributes:
        horizon: Rounds of the plan.
        length: Rounds in a block.
    """

    horizon: int
    length: int

    def __post_init__(self) -> None:
        whole(least=1, horizon=self.horizon, length=self.length)

    @property
    def number(self) -> int:
        """Of blocks."""
        return -(-self.horizon // self.length)

    def of(self, round_: int) -> int:
        """Block that a round lies in, from 1."""
        round_within(round_, self.horizon)
        return -(-round_ // self.length)

    def end(self, block: int) -> int:
        """Last round of a block."""
        return min(self.horizon, block * self.length)

    def ends(self, round_: int) -> bool:
        """Whether a round is the last of its block."""
        return round_ == self.end(self.of(round_))

    def shown(self, round_: int) -> int:
        """Block whose answer a round publishes: the last that has ended; 0 before the first."""
        return self.of(round_) if self.ends(round_) else self.of(round_) - 1


@dataclass(frozen=True, slots=True)
class BlockKeys:
    """The keys of a plan, to be asked in blocks.

    Attributes:
        keys: Of the plan, by rounds.
        blocks: How rounds are gathered.
    """

    keys: NoiseKeys
    blocks: Blocks

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        """Key of a node; `last` counts blocks."""
        return self.keys.node_key(
            release=release, factor=factor, node=node, last=self.blocks.end(last)
        )

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        """Key of coins of a block, derivable in all its rounds."""
        return self.keys.fresh_key(release=release, purpose=purpose, round=self.blocks.end(round))

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        """As of the plan."""
        return self.keys.lasting_key(release=release, purpose=purpose)
