"""The id rules once more, as plainly as they can be said; shares no code with the package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

Row = tuple[str, str, str, int, int, str]
"""(op, space, id, at, stamp, contents)"""
DELETE_FIRST = ["delete", "replace", "add"]


def lives(rounds: Iterable[Iterable[Row]]) -> dict[tuple[str, str], tuple[int, str]]:
    """(stamp, contents) of every running life after the rounds, replayed row by row."""
    running: dict[tuple[str, str], tuple[int, str]] = {}
    for rows in rounds:
        in_order = sorted(
            rows, key=lambda row: (row[3], DELETE_FIRST.index(row[0]), row[5], row[4])
        )
        for op, space, id_, _, stamp, contents in in_order:
            if op == "delete":
                running.pop((space, id_), None)
            elif op == "replace" or (space, id_) not in running:
                running[space, id_] = (stamp, contents)
    return running


def points(rounds: Iterable[Iterable[tuple[str, int, str]]]) -> Counter[tuple[int, str]]:
    """Surviving stamped points: rows are ("add" or "delete", stamp, value), in any order."""
    surviving: Counter[tuple[int, str]] = Counter()
    for rows in rounds:
        for _, *point in sorted(row for row in rows if row[0] == "add"):
            surviving[tuple(point)] += 1  # type: ignore[index]
        for _, *point in sorted(row for row in rows if row[0] == "delete"):
            surviving[tuple(point)] -= surviving[tuple(point)] > 0  # type: ignore[index]
    return +surviving
