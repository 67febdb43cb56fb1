"""The ledger's numbers at the border of two epochs: rounds begin again with 1.

Promise: stamps, rounds of what waits and rounds until which intake remembers mean the same instants
as before; the rest is untouched. Runs inside the caller's transaction.
"""

from __future__ import annotations

from retrodp.store import states
from retrodp.store.database import Database
from retrodp.store.queue import Queue
from retrodp.store.survivors import Survivors


def shift(database: Database, queue: Queue, survivors: Survivors, rounds: int) -> None:
    """Take `rounds` off every round and stamp.

    Args:
        database: Of the ledger.
        queue: What waits in it.
        survivors: Its survivors.
        rounds: Of the epoch that is over.
    """
    survivors.shift(rounds)
    queue.shift(rounds)
    database.execute("UPDATE remembered SET until = until - ?", (rounds,))
    database.execute("UPDATE sources SET until = until - ?", (rounds,))
    if states.exists(database):
        database.execute("DELETE FROM states")  # what an epoch remembered ends with it
