"""Keys that forget: the only door to the operating system's randomness.

Promise: every round has a key, a tree advanced to a round derives the keys of that and later rounds
exactly as before, and holds nothing from which an earlier round's key can be derived (as long as
BLAKE2b is a pseudo-random function). What Python leaves behind in freed memory is not covered.
Knows no data, no statistic and no file: writing a key down safely is the store's work.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, TypeVar, runtime_checkable

from retrodp._check import whole
from retrodp.errors import (
    HorizonExceededError,
    KeyDestroyedError,
    PlanError,
    StoreCorruptError,
    UsageError,
)

KEY_BYTES = 32
STORE_ID_BYTES = 16
_SIDES = (b"retrodp ggm left", b"retrodp ggm righ")

Node = tuple[int | str, ...]
Part = int | str | bytes | tuple["Part", ...]
_T = TypeVar("_T")


@runtime_checkable
class NoiseKeys(Protocol):
    """What a mechanism may ask keys for; `KeyTree` is the one that stores use."""

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        """Key of a factor's node, derivable until round `last` is over."""
        ...

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        """Key of coins that are fresh in `round`."""
        ...

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        """Key of what must persist to the horizon; hides no data."""
        ...


def encode(*parts: Part) -> bytes:
    """One byte string for a sequence of typed parts; different sequences never share one.

    Every part is a tag for its type, its length in eight bytes and its contents (integers in
    two's complement, texts in UTF-8, tuples part by part), so the code is prefix free: 1, "1" and
    b"1" differ, and so do ("a", "bc") and ("ab", "c").
    """
    return b"".join(_encode_part(part) for part in parts)


def _encode_part(part: Part) -> bytes:
    # `type` and not `isinstance`: True would otherwise share the code of 1.
    if type(part) is int:
        tag, contents = b"i", part.to_bytes(part.bit_length() // 8 + 1, "big", signed=True)
    elif type(part) is str:
        tag, contents = b"s", part.encode()
    elif type(part) is bytes:
        tag, contents = b"b", part
    elif type(part) is tuple:
        tag, contents = b"t", encode(*part)
    else:
        raise UsageError(
            f"A key label cannot hold a {type(part).__name__}.",
            expected="int, str, bytes or a tuple of them",
        )
    return tag + len(contents).to_bytes(8, "big") + contents


def system_bytes(count: int) -> bytes:
    """Unpredictable bytes of the operating system, for secrets, store ids, salts and nonces."""
    whole(least=1, count=count)
    return os.urandom(count)


def _derive(key: bytes, use: bytes, label: bytes = b"") -> bytes:
    """32 bytes of keyed BLAKE2b; uses (at most 16 bytes) are separate functions."""
    return hashlib.blake2b(label, key=key, digest_size=KEY_BYTES, person=use).digest()


@dataclass(frozen=True, slots=True)
class CoverNode:
    """A tree node that still derives `2 ** (height - depth)` leaves from `index` shifted up.

    Attributes:
        depth: Steps from the root.
        index: Position from the left among the nodes of that depth, from 0.
        key: 32 bytes; never shown.
    """

    depth: int
    index: int
    key: bytes = field(repr=False)

    def child(self, side: int) -> CoverNode:
        """The left (0) or right (1) half; the parent cannot be derived from both."""
        return CoverNode(self.depth + 1, 2 * self.index + side, self.descendant_key(side, 1))

    def descendant_key(self, path: int, steps: int) -> bytes:
        """Key of the node `steps` below; the bits of `path`, high to low, are the sides taken."""
        key = self.key
        for step in reversed(range(steps)):
            key = _derive(key, _SIDES[path >> step & 1])
        return key


@dataclass(frozen=True, slots=True)
class KeyTree:
    """Keys of rounds `round`..`horizon`, and one lasting key; earlier rounds are underivable.

    A length-doubling tree (Goldreich, Goldwasser, Micali 1986) whose leaf `l - 1` is the key of
    round l. Only the roots of the maximal subtrees over the remaining rounds are held: at most
    `2 * log2(horizon)` of them. Residual: a node key whose `last` round is still to come can be
    derived until then, also for what it added to past rounds.

    Attributes:
        horizon: Rounds in all; public.
        round: The mark, first round whose key can be derived; `horizon + 1` once destroyed.
        cover: Remaining subtrees from left to right; secret.
        lasting: 32 bytes, or none once destroyed; secret. In later epochs after 32 more, those of
            intake, which came over from the epoch before.
        epoch: Of the store, from 1; no two epochs share the key of a round, and of lasting keys
            only those of intake, which no release has a part in.
    """

    horizon: int
    round: int
    cover: tuple[CoverNode, ...] = field(repr=False)
    lasting: bytes = field(repr=False)
    epoch: int = 1

    def __post_init__(self) -> None:
        whole(least=1, horizon=self.horizon, round=self.round, epoch=self.epoch)
        positions = tuple((node.depth, node.index) for node in self.cover)
        parts = 1 if self.epoch == 1 else 2
        lengths = {len(node.key) for node in self.cover} | {len(self.lasting) / parts}
        over = self.round == self.horizon + 1
        if (
            self.round > self.horizon + 1
            or positions != _cover_positions(self.horizon, self.round)
            or lengths != ({0} if over else {KEY_BYTES})
        ):
            raise StoreCorruptError(
                f"The key's parts do not derive exactly rounds {self.round} to {self.horizon}.",
                do="Restore the key file; it must never be edited.",
            )

    @classmethod
    def from_root(cls, root: bytes, store_id: bytes, horizon: int) -> Self:
        """The tree rooted in (root secret, store id); real stores use `generate`.

        Args:
            root: 32 secret bytes, used once and forgotten.
            store_id: Identity of the store, so that two stores never share noise.
            horizon: Rounds in all.
        """
        whole(least=1, horizon=horizon)
        if len(root) != KEY_BYTES:
            raise PlanError(f"The root secret must have {KEY_BYTES} bytes, got {len(root)}.")
        label = encode("retrodp key tree", 1, store_id, horizon)
        top = CoverNode(0, 0, _derive(root, b"retrodp root", label))
        lasting = _derive(root, b"retrodp lasting", label)
        cover = _kept((top,), horizon, 1)
        return cls(horizon=horizon, round=1, cover=cover, lasting=lasting)

    @classmethod
    def generate(cls, horizon: int) -> tuple[Self, str]:
        """A new tree from the operating system's generator, and its random store id in hex."""
        store_id = system_bytes(STORE_ID_BYTES)
        return cls.from_root(system_bytes(KEY_BYTES), store_id, horizon), store_id.hex()

    def following(self, *, store_id: str, horizon: int, root: bytes | None = None) -> Self:
        """The tree of the store's next epoch, from a secret of its own.

        What intake keeps under the lasting key (hashes of remembered ids and of sources that wait)
        goes on, so what it is derived from goes over, unless it was destroyed, and nothing else.

        Args:
            store_id: Of the store.
            horizon: Rounds of the next epoch.
            root: 32 secret bytes; by default from the operating system's generator.
        """
        epoch = self.epoch + 1
        secret = system_bytes(KEY_BYTES) if root is None else root
        tree = self.from_root(secret, encode(store_id, epoch), horizon)
        intake = self._intake if self.lasting else tree._intake  # noqa: SLF001  its own class
        return replace(tree, lasting=intake + tree.lasting, epoch=epoch)

    @property
    def _intake(self) -> bytes:
        """What the lasting keys of intake are derived from; derives no other."""
        if self.epoch > 1:
            return self.lasting[:KEY_BYTES]
        return _derive(self.lasting, b"retrodp intake")

    def round_key(self, round: int) -> bytes:  # noqa: A002
        """32 bytes of one round.

        Raises:
            KeyDestroyedError: The round lies before the mark or outside 1..horizon.
        """
        height = _height(self.horizon)
        if type(round) is int and self.round <= round <= self.horizon:
            leaf = round - 1
            for node in self.cover:
                below = height - node.depth
                if leaf >> below == node.index:
                    return node.descendant_key(leaf & (1 << below) - 1, below)
        raise KeyDestroyedError(
            f"The key of round {round!r} cannot be derived.",
            expected=self._derivable(),
            do="The noise of a past round is gone for good; use its published release.",
        )

    def _derivable(self) -> str:
        if self.round > self.horizon:
            return "no round; every key was destroyed"
        return f"a round from {self.round} to {self.horizon}"

    def advanced(self, round: int) -> Self:  # noqa: A002
        """The same tree without anything that derives a round before `round`.

        Raises:
            KeyDestroyedError: `round` lies before the mark.
            HorizonExceededError: `round` lies after the horizon; see `destroyed`.
        """
        whole(least=1, round=round)
        if round < self.round:
            raise KeyDestroyedError(
                f"A key at round {self.round} cannot go back to round {round}.",
                expected=self._derivable(),
            )
        if round > self.horizon:
            raise HorizonExceededError(
                f"Round {round} lies after the horizon {self.horizon}.", expected=self._derivable()
            )
        return replace(self, round=round, cover=_kept(self.cover, self.horizon, round))

    def destroyed(self) -> Self:
        """Nothing left: no round's key and no lasting key."""
        return replace(self, round=self.horizon + 1, cover=(), lasting=b"")

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        """AES-256 key of one node of a factor, from the key of `last`, its last round.

        A sign or weight is no part of the node: two rounds that use a node share its draws.
        """
        label = encode(release, factor, node, last)
        return _derive(self.round_key(last), b"retrodp node", label)

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        """AES-256 key of coins used in `round` only, one per purpose."""
        return _derive(self.round_key(round), b"retrodp fresh", encode(release, purpose, round))

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        """32 bytes that stay the same to the horizon; whatever uses them must hide no data."""
        if not self.lasting:
            raise KeyDestroyedError("The lasting key was destroyed.", expected=self._derivable())
        secret = self.lasting[-KEY_BYTES:] if release else self._intake
        return _derive(secret, b"retrodp persist", encode(release, purpose))

    def to_json(self) -> dict[str, object]:
        """All of it as JSON values; secret, for the key file only."""
        return {
            "horizon": self.horizon,
            "round": self.round,
            "cover": [[node.depth, node.index, node.key.hex()] for node in self.cover],
            "lasting": self.lasting.hex(),
        }

    @classmethod
    def from_json(cls, pieces: Mapping[str, object]) -> Self:
        """The tree that `to_json` wrote; other keys of the mapping are ignored.

        Raises:
            StoreCorruptError: A piece is missing, malformed, or the cover is not the one of
                the mark. The message quotes no key.
        """
        try:
            return cls(
                horizon=_of_type(int, pieces["horizon"]),
                round=_of_type(int, pieces["round"]),
                cover=tuple(
                    CoverNode(_of_type(int, depth), _of_type(int, index), bytes.fromhex(key))
                    for depth, index, key in _of_type(list, pieces["cover"])
                ),
                lasting=bytes.fromhex(_of_type(str, pieces["lasting"])),
                epoch=_of_type(int, pieces.get("epoch", 1)),
            )
        except (KeyError, TypeError, ValueError, PlanError):
            raise StoreCorruptError(
                "The key cannot be read.",
                expected="horizon, round, cover and lasting as this package wrote them",
                do="Restore the key file; it must never be edited.",
            ) from None


def _of_type(wanted: type[_T], value: object) -> _T:
    if type(value) is not wanted:
        raise TypeError
    return value


def _height(horizon: int) -> int:
    """Depth of the leaves."""
    return (horizon - 1).bit_length()


def _kept(cover: tuple[CoverNode, ...], horizon: int, first: int) -> tuple[CoverNode, ...]:
    """Maximal subtrees below `cover` whose leaves all lie in rounds `first`..`horizon`."""
    height = _height(horizon)
    kept: list[CoverNode] = []
    waiting = list(reversed(cover))
    while waiting:
        node = waiting.pop()
        below = height - node.depth
        least, most = (node.index << below) + 1, (node.index + 1) << below
        if first <= least and most <= horizon:
            kept.append(node)
        elif most >= first and least <= horizon:
            waiting += [node.child(1), node.child(0)]
    return tuple(kept)


def _cover_positions(horizon: int, first: int) -> tuple[tuple[int, int], ...]:
    """(depth, index) of the maximal subtrees over rounds `first`..`horizon`, left to right."""
    height = _height(horizon)
    positions: list[tuple[int, int]] = []
    leaf = first - 1
    while leaf < horizon:
        size = height if leaf == 0 else min(height, (leaf & -leaf).bit_length() - 1)
        while leaf + (1 << size) > horizon:
            size -= 1
        positions.append((height - size, leaf >> size))
        leaf += 1 << size
    return tuple(positions)
