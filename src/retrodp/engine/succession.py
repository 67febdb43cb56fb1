"""Whether a plan may go on from the survivors of another: they must mean the same under it."""

from __future__ import annotations

from typing import Any

from retrodp.engine.running import Running
from retrodp.errors import PlanChangedError, UsageError
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger
from retrodp.stream.clock import Clock

_FREE = {"start", "horizon", "epochs", "forgetting"}


def require_same_meaning(plan: Plan, *, of: Plan) -> None:
    """Raise `PlanChangedError` if surviving records would mean something else under the plan.

    Args:
        plan: Of the next epoch.
        of: Of the epoch before.
    """
    given, stored = _meaning(plan), _meaning(of)
    changed = sorted(name for name in given if given[name] != stored[name])
    if changed:
        raise PlanChangedError(
            f"The plan gives the surviving records another meaning ({', '.join(changed)}).",
            expected="the plan of the store, but for start, horizon, [privacy] and releases",
            do="Take its plan.toml, and change only these.",
        )


def require_over(running: Running, ledger: Ledger) -> None:
    """Raise `UsageError` while rounds of the present plan are still to come."""
    if ledger.facts.round >= running.clock.horizon:
        return
    if running.declared.stream.epochs is not None:
        raise UsageError(
            "The horizon of this store is open: it goes on by itself.",
            do="Close rounds with `retrodp run` or `retrodp close`.",
        )
    raise UsageError(
        f"{running.horizon - ledger.facts.round} rounds of the present plan are still to come.",
        expected="a store whose rounds are all closed",
        do="Close them first: what is left of a budget cannot be moved to another plan.",
    )


def require_next(plan: Plan, running: Running) -> None:
    """Raise `PlanChangedError` unless the plan goes on where the last round of this one ended."""
    require_same_meaning(plan, of=running.declared)
    end = running.resolved.boundaries[-1]
    if Clock.of_stream(plan.of_epoch(1).stream).boundaries[0] != end:
        raise PlanChangedError(
            "stream.start does not go on from the store.",
            expected=running.clock.text_of(end),
            do="Start when the last round ended: a gap would be a time of which nothing is said.",
        )


def _meaning(plan: Plan) -> dict[str, Any]:
    """What a surviving record means: columns and stream, without when and how long."""
    tables = plan.to_dict()
    stream = {
        f"stream.{name}": value for name, value in tables["stream"].items() if name not in _FREE
    }
    columns = [
        {key: value for key, value in column.items() if key != "from"}
        for column in tables["columns"]
    ]
    return {**stream, "columns": columns}
