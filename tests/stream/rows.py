"""Short ways to write updates down."""

from __future__ import annotations

import msgspec

from retrodp.stream.update import Op, QueuedUpdate

RANKS = {Op.DELETE: 0, Op.REPLACE: 1, Op.ADD: 2}


def payload(*values: object) -> bytes:
    return msgspec.msgpack.encode(values)


def add(id_: str, at: int, *values: object, stamp: int = 1, space: str = "") -> QueuedUpdate:
    return QueuedUpdate(space, id_, at, RANKS[Op.ADD], payload(*values), stamp, Op.ADD, None)


def replace(id_: str, at: int, *values: object, stamp: int = 1, space: str = "") -> QueuedUpdate:
    rank = RANKS[Op.REPLACE]
    return QueuedUpdate(space, id_, at, rank, payload(*values), stamp, Op.REPLACE, None)


def delete(id_: str, at: int, *, space: str = "") -> QueuedUpdate:
    return QueuedUpdate(space, id_, at, RANKS[Op.DELETE], b"", 0, Op.DELETE, None)


def point(op: Op, stamp: int, *values: object, count: int = 1) -> QueuedUpdate:
    return QueuedUpdate("", "", 0, 0, payload(*values), stamp, op, None, count)
