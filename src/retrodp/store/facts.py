"""What a ledger knows of its store: name, plan, how far it has come, what is still due.

Promise: a few texts by name, none of them of a record; each change joins the transaction that is
open, or is one of its own. A store is ended once and its rounds go up one by one.
"""

from __future__ import annotations

from retrodp.errors import RoundClosedError, StoreCorruptError
from retrodp.store.database import Database


class Facts:
    """The facts of a store, in a table of its ledger."""

    def __init__(self, database: Database) -> None:
        """See `Ledger.facts`."""
        self._database = database

    def begin(self, *, store_id: str, fingerprint: str, ids: bool, test: bool) -> None:
        """Write down those of a new store, at round 0; see `Ledger.create`."""
        facts = {
            "store_id": store_id,
            "fingerprint": fingerprint,
            "ids": str(int(ids)),
            "test": str(int(test)),
            "round": "0",
            "erase_due": "0",
            "totals_behind": "0",
        }
        self._database.many("INSERT INTO meta VALUES (?, ?)", sorted(facts.items()))

    def read(self, key: str) -> str:
        """A fact that every store has.

        Raises:
            StoreCorruptError: There is no such fact.
        """
        value = self._found(key)
        if value is None:
            raise StoreCorruptError(f"The ledger lacks the fact {key!r}.")
        return value

    def _found(self, key: str) -> str | None:
        value = self._database.value("SELECT value FROM meta WHERE key = ?", (key,))
        return None if value is None else str(value)

    def note(self, key: str, value: str) -> None:
        """Note a fact about the store; never one about a record."""
        with self._database.joined():
            self._database.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (key, value),
            )

    # What it is.

    @property
    def store_id(self) -> str:
        """Random name of the store."""
        return self.read("store_id")

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the resolved plan."""
        return self.read("fingerprint")

    @property
    def ids(self) -> bool:
        """Whether records have ids."""
        return self.read("ids") != "0"

    @property
    def test(self) -> bool:
        """Whether the store was made for tests."""
        return self.read("test") != "0"

    @property
    def test_root(self) -> bytes | None:
        """What the keys of a store made for tests come from; None for every other store."""
        found = self._found("test_root")
        return None if found is None else bytes.fromhex(found)

    def fix_root(self, root: bytes) -> None:
        """Keep what the keys of a store made for tests come from, so that its epochs are fixed."""
        self.note("test_root", root.hex())

    # How far it has come.

    @property
    def round(self) -> int:
        """Last closed round; 0 before the first."""
        return int(self.read("round"))

    def advance(self, round_: int) -> None:
        """Note that a round is closed; it must be the one after the last."""
        if round_ != self.round + 1:
            raise RoundClosedError(
                f"Round {round_} cannot be closed now.", expected=f"round {self.round + 1}"
            )
        self.note("round", str(round_))

    @property
    def epoch(self) -> str | None:
        """Digest of what was there before this store, or its epoch; None if nothing was."""
        return self._found("epoch")

    def begin_epoch(self, digest: str) -> None:
        """Note what was there before this store, or its epoch, by its digest."""
        self.note("epoch", digest)

    @property
    def successor(self) -> str | None:
        """Where the one epoch that goes on from this store was opened; None if none was."""
        return self._found("successor")

    @property
    def retired(self) -> bool:
        """Whether the store was ended."""
        return self._found("retired") == "1"

    def retire(self) -> None:
        """Note that the store was ended, for ever."""
        self.note("retired", "1")

    # What is due.

    @property
    def erase_due(self) -> bool:
        """Whether something was processed that `Ledger.erase` still has to remove from the file."""
        return self.read("erase_due") != "0"

    def note_erase(self, *, due: bool) -> None:
        """Note whether `Ledger.erase` has to run before the command reports done."""
        self.note("erase_due", str(int(due)))

    @property
    def totals_behind(self) -> bool:
        """Whether rounds were closed whose totals are still to be written."""
        return self.read("totals_behind") != "0"

    def note_totals(self, *, behind: bool) -> None:
        """Note whether the totals are behind the survivors."""
        self.note("totals_behind", str(int(behind)))
