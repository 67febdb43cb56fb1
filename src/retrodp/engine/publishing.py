"""The way of a round from the ledger to those who look, in steps that a crash may come between.

(1) Ledger and release change in one transaction; (2) the key forgets the rounds before and marks
this one; (3) the release is published. Nothing is visible before (3).

Promise: each step is done once and in this order, whoever did the one before. `finish` does those
that are missing; it reads what (1) stored and computes nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from retrodp.engine.close import Closed, Closing
from retrodp.engine.parts import Parts
from retrodp.errors import RoundClosedError, StoreCorruptError


def commit(parts: Parts, round_: int, *, write: bool) -> Closed:
    """Step 1: updates, release and round, in one transaction.

    Args:
        parts: Of a store whose last close is finished.
        round_: The open round, in the numbers of the present epoch.
        write: Whether the ledger's totals follow, or are written with a later round.

    Returns:
        The closed round, its answers numbered on.
    """
    try:
        with parts.ledger.transaction():
            closing = Closing(plan=parts.running.plan, releases=parts.compiled, ledger=parts.ledger)
            closed = closing.close(round_, parts.totals, parts.key.tree, write=write)
            closed = replace(closed, answers=parts.running.numbered(closed.answers))
            content = {answer.release: answer.to_bytes() for answer in closed.answers}
            parts.ledger.pending.keep(round_, msgspec.msgpack.encode(content))
            parts.ledger.facts.advance(round_)
        if write:
            parts.totals.kept()
    except BaseException:
        parts.totals.lose()  # changed in place, but the transaction was not
        raise
    return closed


def finish(parts: Parts) -> None:
    """Steps 2 and 3 of the last close, or the way into an epoch, as far as they are missing."""
    parts.finish_crossing()
    pending = parts.ledger.pending.read()
    if pending is None:
        if parts.key.round < parts.ledger.facts.round:  # an older copy of the key
            digest = parts.releases.digest(parts.ledger.facts.round)
            assert digest is not None
            mark(parts, parts.ledger.facts.round, digest)
        return
    round_, packed = pending
    content = msgspec.msgpack.decode(packed, type=dict[str, bytes])
    if round_ != parts.ledger.facts.round:
        raise StoreCorruptError("The ledger holds the release of another round.")
    mark(parts, round_, parts.releases.digest_of(round_, content))
    publish(parts, round_, content)
    parts.ledger.pending.clear()


def mark(parts: Parts, round_: int, digest: str) -> None:
    """Step 2: the key forgets the rounds before this one, and notes that it was released."""
    key = parts.key
    if key.round == round_ and key.release_sha256 == digest:
        return
    if key.round >= round_:
        raise RoundClosedError(f"Round {round_} was released already, with other contents.")
    tree = key.tree.advanced(round_)
    parts.rewrite_key(replace(key, round=round_, release_sha256=digest, tree=tree))


def publish(parts: Parts, round_: int, content: Mapping[str, bytes]) -> None:
    """Step 3: the release becomes visible."""
    parts.releases.publish(round_, content)
