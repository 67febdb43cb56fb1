"""Copies of a value in the ledger's file that no live row holds.

Promise: exact, if the value has at least 4 bytes. A value may be part of a longer one that rightly
lives, so places are counted in the file and in a copy of its live rows alone: every live row has
the same bytes in both, once, and what the file has more stands in freed space. `mentions` tells
what lives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from retrodp.store.database import Database
from retrodp.store.erase import live_rows_alone
from retrodp.store.scan import scan


def stray_copies(database: Database, path: Path, needles: Sequence[bytes]) -> list[int]:
    """How often each needle stands in a ledger's bytes beyond what its live rows hold.

    Args:
        database: Of the ledger; no transaction open.
        path: Of its file.
        needles: Byte strings of at least 4 bytes.
    """
    with live_rows_alone(database, path) as alone:
        counts = [Counter[int](), Counter[int]()]
        for own, count in zip((path, alone), counts, strict=True):
            for hit in scan([own], needles, store=path.parent):
                count[hit.needle] += hit.count
    found, rightly = counts
    return [max(0, found[number] - rightly[number]) for number in range(len(needles))]
