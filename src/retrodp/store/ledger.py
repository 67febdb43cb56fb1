"""The ledger, the only keeper of records: survivors, what waits, exact totals.

Promise: every change of a close is in one transaction, so a crash anywhere leaves the ledger of
before or of after; what it holds is a function of the survivors, of what waits and of the last
closed round, not of the way there; after `erase` no file holds anything that was taken out. It
knows no noise, no key and no calendar. Its contents are exact: nobody but the engine opens it.

Journal: write-ahead. A rollback journal copies the pages that held a forgotten record into a file
that is unlinked after every transaction, out of reach of any overwriting; the log is one file that
stays until we have written zeros over it. Speed is the same (within 10 %).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from retrodp.errors import RoundClosedError, StoreCorruptError, UsageError
from retrodp.store import compact, erase, memory, queue, schema_sql, shift, totals
from retrodp.store.chunks import ChunkQueue
from retrodp.store.database import Database, check_head, create_file
from retrodp.store.mentions import Mention, mentions
from retrodp.store.packs import RecordTable
from retrodp.store.queue import Forget, PointQueue, Queue
from retrodp.store.scan import scan
from retrodp.store.states import States
from retrodp.store.survivors import Point, PointTable, Survivors
from retrodp.stream.queued import Updates
from retrodp.stream.update import Arrivals, Changes, QueuedUpdate, Record

_NAME = "The ledger"
_PRAGMAS = (
    # Before the first access: then the log's index lives in memory and not in a file.
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA busy_timeout = 0",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -524288",  # at most; a store of millions with random ids needs it
    # A page that many rounds change is moved into the file once for all of them (160 MB of log).
    "PRAGMA wal_autocheckpoint = 40000",
    "PRAGMA trusted_schema = OFF",
)


class Ledger:
    """The only keeper of records; one process, one object.

    Methods that write join the transaction that is open, or are one of their own.
    """

    def __init__(self, path: Path) -> None:
        """Open a ledger; see `create` and `open`."""
        self._path = path
        self._database = Database(str(path), name=_NAME, pragmas=_PRAGMAS)
        self._ids = True
        self._survivors: Survivors = RecordTable(self._database)
        self._queue: Queue = ChunkQueue(self._database)

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r})"

    @classmethod
    def create(
        cls, path: Path, *, store_id: str, fingerprint: str, ids: bool, test: bool = False
    ) -> Ledger:
        """Make the ledger of a new store.

        Args:
            path: Of the file, which must not exist.
            store_id: Random name of the store.
            fingerprint: Of the resolved plan.
            ids: Whether records have ids; else stamped points with copies are kept.
            test: Whether the store was made for tests, under a fixed key.
        """
        create_file(path, 0o600)
        ledger = cls(path)
        database = ledger._database
        survivors = schema_sql.WITH_IDS if ids else schema_sql.WITHOUT_IDS
        facts = {
            "store_id": store_id,
            "fingerprint": fingerprint,
            "ids": str(int(ids)),
            "test": str(int(test)),
            "round": "0",
            "erase_due": "0",
            "totals_behind": "0",
        }
        with ledger.transaction():
            for statement in schema_sql.statements(schema_sql.COMMON + survivors):
                database.execute(statement)
            database.many("INSERT INTO meta VALUES (?, ?)", sorted(facts.items()))
            database.execute(f"PRAGMA user_version = {schema_sql.LEDGER_FORMAT}")
            database.execute(f"PRAGMA application_id = {schema_sql.LEDGER_APPLICATION}")
        ledger._recognise()
        return ledger

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open the ledger of a store and complete what a crash interrupted.

        Time: reads the whole file once (0.25 s for 10^6 records).

        Raises:
            StoreCorruptError: Not a ledger, another format, or damaged.
        """
        if not path.is_file():
            raise StoreCorruptError(
                f"{path} is missing.", do="Name the directory of a store, or restore it."
            )
        erase.remove_leftovers(path)
        ledger = cls(path)
        try:
            check_head(
                ledger._database,
                application=schema_sql.LEDGER_APPLICATION,
                schema=schema_sql.LEDGER_FORMAT,
                name=_NAME,
            )
            ledger._recognise()
            ledger.check_integrity()
        except BaseException:
            ledger._database.close()
            raise
        return ledger

    def _recognise(self) -> None:
        self._ids = self.meta("ids") != "0"
        if self._ids:
            self._survivors = RecordTable(self._database)
            self._queue = ChunkQueue(self._database)
        else:
            self._survivors = PointTable(self._database)
            self._queue = PointQueue(self._database)

    def check_integrity(self) -> None:
        """Raise `StoreCorruptError` if the file is damaged."""
        whole = self._database.rows("PRAGMA quick_check(1)") == [("ok",)]
        if not whole or not self._survivors.agree():
            raise StoreCorruptError(
                "The ledger is damaged.",
                do="Restore the store from a back-up with `retrodp restore`.",
            )

    def close(self) -> None:
        """Empty the log (its bytes become zeros) and let go of the file."""
        try:
            erase.drain_log(self._database, self._path)
        finally:
            self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside, or nothing of it: by exception, crash or full disk."""
        with self._database.transaction():
            yield

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Part of the open transaction, or a transaction of its own."""
        with self._database.joined():
            yield

    # What is known of the store.

    @property
    def ids(self) -> bool:
        """Whether records have ids."""
        return self._ids

    @property
    def round(self) -> int:
        """Last closed round; 0 before the first."""
        return int(self.meta("round"))

    @property
    def store_id(self) -> str:
        """Random name of the store."""
        return self.meta("store_id")

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the resolved plan."""
        return self.meta("fingerprint")

    @property
    def test(self) -> bool:
        """Whether the store was made for tests."""
        return self.meta("test") != "0"

    @property
    def erase_due(self) -> bool:
        """Whether something was processed that `erase` still has to remove from the file."""
        return self.meta("erase_due") != "0"

    @property
    def retired(self) -> bool:
        """Whether the store was ended."""
        return bool(self._database.value("SELECT value = '1' FROM meta WHERE key = 'retired'"))

    def retire(self) -> None:
        """Note that the store was ended, for ever."""
        self.set_meta("retired", "1")

    @property
    def successor(self) -> str | None:
        """Where the one epoch that goes on from this store was opened; None if none was."""
        return self._fact("successor")

    def fix_root(self, root: bytes) -> None:
        """Keep what the keys of a store made for tests come from, so that its epochs are fixed."""
        self.set_meta("test_root", root.hex())

    @property
    def test_root(self) -> bytes | None:
        """What the keys of a store made for tests come from; None for every other store."""
        found = self._fact("test_root")
        return None if found is None else bytes.fromhex(found)

    @property
    def epoch(self) -> str | None:
        """Digest of what was there before this store; None if nothing was."""
        return self._fact("epoch")

    def begin_epoch(self, digest: str) -> None:
        """Note what was there before this store, by its digest."""
        self.set_meta("epoch", digest)

    def next_epoch(self, digest: str, fingerprint: str) -> None:
        """Begin the next epoch of this store: round 0 of another plan, from the same survivors.

        Leaves no totals: those of the next epoch's releases belong in the same transaction.

        Args:
            digest: Of what was there before, as for `begin_epoch`.
            fingerprint: Of the next epoch's resolved plan.
        """
        with self._database.joined():
            shift.shift(self._database, self._queue, self._survivors, self.round)
            for release in totals.releases(self._database):
                totals.replace(self._database, release, {})
            self.note_totals(behind=False)
            self.set_meta("fingerprint", fingerprint)
            self.set_meta("round", "0")
            self.begin_epoch(digest)

    def meta(self, key: str) -> str:
        """A fact about the store.

        Raises:
            StoreCorruptError: There is no such fact.
        """
        value = self._fact(key)
        if value is None:
            raise StoreCorruptError(f"The ledger lacks the fact {key!r}.")
        return value

    def _fact(self, key: str) -> str | None:
        value = self._database.value("SELECT value FROM meta WHERE key = ?", (key,))
        return None if value is None else str(value)

    def set_meta(self, key: str, value: str) -> None:
        """Note a fact about the store; never one about a record."""
        with self._database.joined():
            self._database.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (key, value),
            )

    def advance(self, round_: int) -> None:
        """Note that a round is closed; it must be the one after the last."""
        if round_ != self.round + 1:
            raise RoundClosedError(
                f"Round {round_} cannot be closed now.", expected=f"round {self.round + 1}"
            )
        self.set_meta("round", str(round_))

    def mark_erase_due(self) -> None:
        """Note that `erase` has to run before the command reports done."""
        self.set_meta("erase_due", "1")

    # What waits for the open round.

    def enqueue(self, arrivals: Arrivals) -> int:
        """Take accepted rows in.

        Returns:
            How many were not there yet; without ids, how many there were. For the operator only.

        Raises:
            RoundClosedError: A row belongs to a closed round; nothing was taken.
            CapacityError: A number does not fit 64 bits; nothing was taken.
        """
        if len(arrivals) and min(arrivals.rounds()) <= self.round:
            raise RoundClosedError("A row belongs to a round that is closed; nothing was taken.")
        with self._database.joined():
            return self._queue.enqueue(arrivals)

    def waiting(self, round_: int) -> list[QueuedUpdate]:
        """Updates of a round, sorted by (space, id, at, rank, payload, stamp)."""
        return self._queue.waiting(round_)

    def waiting_columns(self, round_: int) -> Updates:
        """The same as columns; of a stream with ids."""
        if not isinstance(self._queue, ChunkQueue):
            raise UsageError("The records of this store have no ids.")
        return self._queue.updates(round_)

    def latest_waiting(self, round_: int) -> int | None:
        """Latest `at` among the updates that wait for a round; None if none does."""
        return self._queue.latest(round_)

    def waiting_count(self) -> int:
        """Updates that wait, of all rounds, multiplicities included. For the operator only."""
        return sum(self.waiting_rounds().values())

    def waiting_rounds(self) -> dict[int, int]:
        """Updates that wait, by round. For the operator only."""
        return self._queue.rounds()

    def remove_round_from_queue(self, round_: int) -> None:
        """Remove the updates of a round; a deletion or replacement among them makes erasing due."""
        with self._database.joined():
            if self._queue.remove(round_):
                self.mark_erase_due()

    def drop_waiting_of_id(self, identifier: str, space: str | None = None) -> int:
        """Remove all waiting updates of an id, in one namespace or (None) in all."""
        with self._database.joined():
            self.mark_erase_due()
            return self._queue.drop_id(identifier, space)

    def drop_waiting_of_person(self, person: str) -> int:
        """Remove all waiting updates of a person."""
        with self._database.joined():
            self.mark_erase_due()
            return self._queue.drop_person(person)

    def add_forget(
        self, kind: Literal["id", "person"], value: str, space: str | None = None
    ) -> None:
        """Note a forget for the open round; noting it again changes nothing."""
        with self._database.joined():
            queue.add_forget(self._database, Forget(kind=kind, value=value, space=space))

    def forgets(self) -> list[Forget]:
        """Forgets that wait for the open round to close."""
        return queue.forgets(self._database)

    def clear_forgets(self) -> None:
        """Remove the forgets, which makes erasing due if there were any, matched or not."""
        with self._database.joined():
            if self._database.execute("DELETE FROM forgets"):
                self.mark_erase_due()

    # What intake remembers beside the data.

    def remember(self, hashes: Iterable[bytes], until: int) -> None:
        """Note keyed hashes of deleted ids until a round is closed."""
        with self._database.joined():
            memory.remember(self._database, hashes, until)

    def remembered(self, hashes: Collection[bytes]) -> set[bytes]:
        """Those of the hashes that are still remembered."""
        return memory.remembered(self._database, hashes)

    def take_source(self, digest: str, until: int) -> None:
        """Note a source whose rows wait until a round is closed."""
        with self._database.joined():
            memory.take_source(self._database, digest, until)

    def is_taken(self, digest: str) -> bool:
        """Whether a source with this digest was taken and still has rows that wait."""
        return memory.is_taken(self._database, digest)

    def drop_past_memory(self, round_: int) -> None:
        """Let go of what intake remembered until a round that is closed now."""
        with self._database.joined():
            if memory.drop_past(self._database, round_):
                self.mark_erase_due()

    # What survives.

    def running_for_round(self, round_: int) -> dict[tuple[str, str], Record]:
        """Running life of every (space, id) that the waiting updates of a round name."""
        return self._records.running(self.waiting_columns(round_).names_of_all())

    def running(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Record]:
        """Running life of each of these (space, id) that has one."""
        return self._records.running(names)

    @property
    def _records(self) -> RecordTable:
        if not isinstance(self._survivors, RecordTable):
            raise UsageError("The records of this store have no ids.")
        return self._survivors

    def begin_all(self, updates: Updates) -> bool:
        """Put in what these additions write, each of a name of its own.

        Returns:
            False if a life of one of the names is running; then nothing was put in.
        """
        with self._database.joined():
            return self._records.begin_all(updates)

    def running_points(self, round_: int) -> dict[Point, Record]:
        """Surviving (stamp, payload) of every point that the waiting updates of a round name."""
        if not isinstance(self._survivors, PointTable):
            raise UsageError("The records of this store have ids.")
        return self._survivors.running(round_)

    def apply_changes(self, changes: Changes) -> None:
        """Take out what ended and put in what begun.

        Raises:
            StoreCorruptError: What is to end does not survive as given, or what is to begin is
                there already; nothing was changed.
        """
        with self._database.joined():
            self._survivors.apply(changes)

    def survivors(self, size: int = 50_000) -> Iterator[list[Record]]:
        """All survivors in the order of their keys, in batches of at most `size`."""
        return self._survivors.all(size)

    def survivor_count(self) -> int:
        """Number of survivors, copies included."""
        return self._survivors.count()

    def records_with_stamp(self, stamp: int) -> list[Record]:
        """Survivors of one stamp round."""
        return self._survivors.with_stamp(stamp)

    def columns_with_stamp(self, stamp: int) -> Updates:
        """Survivors of one stamp round of a stream with ids, as the additions that write them."""
        return self._records.columns_with_stamp(stamp)

    def survivor_columns(self) -> Iterator[Updates]:
        """All survivors of a stream with ids, as the additions that write them, in many parts."""
        return self._records.columns()

    def records_of_persons(self, persons: Collection[str]) -> list[Record]:
        """Survivors of some persons; reads all survivors once for every few hundred persons."""
        return self._survivors.of_persons(persons)

    def records_of_id(self, identifier: str) -> list[Record]:
        """Survivors with this id, in any namespace."""
        return self._survivors.of_id(identifier)

    # Exact totals, and the release of a round until it is published.

    def read_totals(self, release: str) -> dict[bytes, int]:
        """Non-zero totals of a release, sorted by key."""
        return totals.read(self._database, release)

    def add_totals(
        self, release: str, delta: Mapping[bytes, int], *, gone: Collection[bytes] | None = None
    ) -> None:
        """Add to the totals of a release; `CapacityError` if one would leave 64 bits.

        Args:
            release: Name.
            delta: What to add.
            gone: The coordinates whose total becomes 0, if the caller knows them.
        """
        with self._database.joined():
            totals.add(self._database, release, delta, gone=gone)

    def replace_totals(self, release: str, values: Mapping[bytes, int]) -> None:
        """Put these totals in the place of all totals of a release."""
        with self._database.joined():
            totals.replace(self._database, release, values)

    def set_totals(self, release: str, values: Mapping[bytes, int]) -> None:
        """Set some totals of a release; `CapacityError` if one is outside 64 bits."""
        with self._database.joined():
            totals.put(self._database, release, values)

    @property
    def totals_behind(self) -> bool:
        """Whether rounds were closed whose totals are still to be written."""
        return self.meta("totals_behind") != "0"

    def note_totals(self, *, behind: bool) -> None:
        """Note whether the totals are behind the survivors."""
        self.set_meta("totals_behind", str(int(behind)))

    def set_pending(self, round_: int, content: bytes) -> None:
        """Keep the release of a round until it is published; at most one is kept."""
        with self._database.joined():
            self.clear_pending()
            self._database.execute("INSERT INTO pending VALUES (?, ?)", (round_, content))

    def pending(self) -> tuple[int, bytes] | None:
        """Round and release that wait to be published, if any."""
        rows = self._database.rows("SELECT round, content FROM pending")
        return (rows[0][0], rows[0][1]) if rows else None

    def clear_pending(self) -> None:
        """Remove the release that was published."""
        with self._database.joined():
            self._database.execute("DELETE FROM pending")

    @property
    def states(self) -> States:
        """What releases that remember remember."""
        return States(self._database)

    # Forgetting for good.

    def erase(self) -> None:
        """Rewrite the file so that no file of the store holds what was taken out.

        Raises:
            DiskFullError: No room for the fresh copy; nothing was changed, and it stays due.
        """
        if self._database.in_transaction:
            raise UsageError("The ledger cannot be rewritten inside a transaction.")
        try:
            erase.rewrite(self._database, self._path)
        except OSError as error:
            raise erase.named(error, _NAME) from error
        self.set_meta("erase_due", "0")

    def compact(self) -> None:
        """Make the file a function of its contents; see `compact`.

        Raises:
            DiskFullError: As for `erase`.
        """
        if self.erase_due:
            self.erase()
        if self._database.in_transaction:
            raise UsageError("The ledger cannot be rewritten inside a transaction.")
        with self._database.joined():
            self._queue.unite()
        try:
            compact.compact(self._database, self._path)
        except OSError as error:
            raise erase.named(error, _NAME) from error

    def stray_copies(self, needles: Sequence[bytes]) -> list[int]:
        """How often each needle stands in the ledger's bytes beyond what its live rows hold.

        A value may be part of a longer one that rightly lives, so places are counted in the file
        and in a copy of its live rows alone: every live row has the same bytes in both, once, and
        what the file has more stands in freed space. `mentions` tells what lives.

        Args:
            needles: Byte strings of at least 4 bytes.
        """
        with erase.live_rows_alone(self._database, self._path) as alone:
            counts = [Counter[int](), Counter[int]()]
            for path, count in zip((self._path, alone), counts, strict=True):
                for hit in scan([path], needles, store=self._path.parent):
                    count[hit.needle] += hit.count
        found, rightly = counts
        return [max(0, found[number] - rightly[number]) for number in range(len(needles))]

    def forget_everything(self) -> None:
        """Take out every record, total and waiting row, and erase; the store's facts stay."""
        with self.transaction():
            survivors = ("packs", "names") if self._ids else ("multiset",)
            tables = ("queue", "forgets", "totals", "pending", "remembered", "sources")
            for table in (*tables, *survivors):
                self._database.execute(f"DELETE FROM {table}")  # noqa: S608
            self.states.purge()
        self.erase()

    def mentions(
        self,
        *,
        ids: Sequence[str] = (),
        persons: Sequence[str] = (),
        values: Sequence[str] = (),
    ) -> list[Mention]:
        """Where these ids, persons and text values still occur; see `mentions.mentions`."""
        return mentions(self._database, ids=ids, persons=persons, values=values)
