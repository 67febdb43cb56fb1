"""What happens where no round is left to carry it: forgetting at once, and the end of a store.

Promise: the key is destroyed before or with what it could open, and never comes back; nothing is
ever released from here. An interrupted end is completed by doing it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from retrodp.engine.close import Closing
from retrodp.engine.parts import Parts
from retrodp.engine.publishing import finish


def forget_at_once(parts: Parts) -> None:
    """Carry out the forgets that wait after the last round, without a release."""
    if not parts.ledger.facts.retired:
        finish(parts)  # of a close that failed in this process
    # First the key: whoever holds it could otherwise open the last release later.
    destroy_key(parts)
    take_out_forgotten(parts)
    settle(parts)


def retire(parts: Parts, *, erase_ledger: bool) -> None:
    """End a store; see `Store.retire`."""
    if not parts.ledger.facts.retired:
        finish(parts)  # of a close that failed in this process
    take_out_forgotten(parts, also=parts.ledger.facts.retire)
    destroy_key(parts)
    if erase_ledger:
        parts.ledger.forget_everything()
    settle(parts)


def take_out_forgotten(parts: Parts, *, also: Callable[[], None] = lambda: None) -> None:
    """Take out of records and totals what waits to be forgotten, in one transaction.

    Args:
        parts: Of the store.
        also: Done in the same transaction.
    """
    closing = Closing(plan=parts.running.plan, releases=parts.compiled, ledger=parts.ledger)
    parts.totals.lose()
    with parts.ledger.transaction():
        parts.totals.catch_up()
        closing.forget(parts.ledger.facts.round)
        also()


def destroy_key(parts: Parts) -> None:
    """Leave nothing of the key that derives anything; again does nothing."""
    if not parts.key.destroyed:
        parts.rewrite_key(replace(parts.key, tree=parts.key.tree.destroyed()))


def settle(parts: Parts) -> None:
    """Rewrite the ledger if a deletion, replacement or forget was processed."""
    if parts.ledger.facts.erase_due:
        parts.totals.write_behind()
        parts.ledger.erase()


def compact(parts: Parts) -> None:
    """Make the ledger's file a function of its contents, and its totals of its survivors."""
    parts.totals.write_behind()
    parts.ledger.compact()
