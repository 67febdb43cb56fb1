"""What a key file says: whose key it is, how far it has come, and what still derives noise.

Promise: a record is consistent or cannot be made; its JSON round-trips exactly; it says when
another one may take its place. Secret: only the store, plan and mark are ever shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from retrodp.errors import KeyMismatchError, StoreBehindError, StoreCorruptError
from retrodp.noise.key import KeyTree

FORMAT = 1


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON of a key file."""

    format: int
    store_id: str
    fingerprint: str
    horizon: int
    round: int
    release_sha256: str | None
    cover: list[tuple[int, int, str]]
    lasting: str
    epoch: int = 1


_decode = msgspec.json.Decoder(_Document).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """What a key file says.

    Attributes:
        store_id: Store that the key belongs to.
        fingerprint: Plan that it belongs to.
        round: The mark: last round of the epoch whose release was decided; 0 before the first.
        release_sha256: Digest of that release in hex; None before the first.
        tree: What still derives noise: rounds from max(1, `round`) on, or nothing.
    """

    store_id: str
    fingerprint: str
    round: int
    release_sha256: str | None
    tree: KeyTree = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.round <= self.tree.horizon or (self.round == 0) != (
            self.release_sha256 is None
        ):
            raise StoreCorruptError(
                f"The key's mark {self.round} does not fit its horizon or its digest."
            )
        if self.tree.round not in {max(1, self.round), self.tree.horizon + 1}:
            raise StoreCorruptError(
                f"The key derives rounds from {self.tree.round} on but is marked {self.round}."
            )

    @classmethod
    def new(cls, store_id: str, fingerprint: str, tree: KeyTree) -> KeyRecord:
        """The record before the first round of an epoch."""
        return cls(
            store_id=store_id, fingerprint=fingerprint, round=0, release_sha256=None, tree=tree
        )

    @property
    def epoch(self) -> int:
        """Of the store, from 1."""
        return self.tree.epoch

    @property
    def destroyed(self) -> bool:
        """Whether nothing is left that derives noise."""
        return self.tree.round > self.tree.horizon

    def require(self, *, store_id: str, fingerprint: str) -> None:
        """Raise `KeyMismatchError` unless the key belongs to this store and plan."""
        if self.store_id != store_id:
            raise KeyMismatchError(
                "The key belongs to another store.",
                expected=f"the key of store {store_id}, not of {self.store_id}",
                do="Name the key file that was made with this store.",
            )
        if self.fingerprint != fingerprint:
            raise KeyMismatchError(
                "The key belongs to another plan of this store.",
                do="Restore the plan that the store was created with.",
            )

    def require_successor(self, record: KeyRecord) -> None:
        """Raise unless `record` may take the place of this one: same store, never backwards.

        The next epoch has another plan and begins with round 0.
        """
        if record.store_id == self.store_id and (record.epoch, record.round) == (self.epoch + 1, 0):
            return
        record.require(store_id=self.store_id, fingerprint=self.fingerprint)
        if record.round < self.round or record.tree.round < self.tree.round:
            raise StoreBehindError(
                f"The key is at round {self.round} and cannot go back to {record.round}."
            )
        if record.round == self.round and record.release_sha256 != self.release_sha256:
            raise StoreBehindError(
                f"Round {record.round} was released already, with other contents."
            )

    def to_bytes(self) -> bytes:
        """Canonical JSON; secret."""
        pieces = self.tree.to_json()
        document = {
            "format": FORMAT,
            "store_id": self.store_id,
            "fingerprint": self.fingerprint,
            "horizon": self.tree.horizon,
            "round": self.round,
            "release_sha256": self.release_sha256,
            "cover": pieces["cover"],
            "lasting": pieces["lasting"],
        }
        if self.epoch > 1:
            document["epoch"] = self.epoch
        return msgspec.json.encode(document) + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes) -> KeyRecord:
        """The record that `to_bytes` wrote.

        Raises:
            StoreCorruptError: Anything else; the message quotes nothing of it.
        """
        try:
            document = _decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # The cause would be chained with parts of the key in it.
            document = None
        if document is None or document.format != FORMAT:
            raise StoreCorruptError(
                "The key file cannot be read.",
                expected=f"format {FORMAT}, as this package wrote it",
                do="Restore the key file; it must never be edited.",
            )
        alive = bool(document.cover or document.lasting)
        tree = KeyTree.from_json(
            {
                "horizon": document.horizon,
                "round": max(1, document.round) if alive else document.horizon + 1,
                "cover": document.cover,
                "lasting": document.lasting,
                "epoch": document.epoch,
            }
        )
        return cls(
            store_id=document.store_id,
            fingerprint=document.fingerprint,
            round=document.round,
            release_sha256=document.release_sha256,
            tree=tree,
        )
