"""The ledger's numbers at the border of two epochs: rounds begin again with 1.

Promise: stamps, rounds of what waits and rounds until which intake remembers mean the same instants
as before; the rest is untouched. Runs inside the caller's transaction.
"""

from __future__ import annotations

from retrodp.store import states
from retrodp.store.database import Database
from retrodp.stream.update import Op

_FAR = 1 << 40
"""Beyond every stamp, so that a row on its way never meets the key of one that has not moved."""


def shift(database: Database, rounds: int, *, ids: bool) -> None:
    """Take `rounds` off every round and stamp.

    Args:
        database: Of the ledger.
        rounds: Of the epoch that is over.
        ids: Whether records have ids. Then a deletion names no stamp, which stands as 0.
    """
    survivors = "records" if ids else "multiset"
    names_stamp = f"CASE WHEN op = {int(Op.DELETE)} THEN 0 ELSE 1 END" if ids else "1"
    for move in (_FAR, -_FAR - rounds):
        database.execute(f"UPDATE {survivors} SET stamp = stamp + ?", (move,))  # noqa: S608
        database.execute(
            f"UPDATE queue SET round = round + ?1, stamp = stamp + ?1 * ({names_stamp})",  # noqa: S608
            (move,),
        )
    database.execute("UPDATE remembered SET until = until - ?", (rounds,))
    database.execute("UPDATE sources SET until = until - ?", (rounds,))
    if states.exists(database):
        database.execute("DELETE FROM states")  # what an epoch remembered ends with it
