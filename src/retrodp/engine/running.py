"""The present epoch of a store, as its files describe it; all of it public.

Inside the engine rounds are those of the epoch, from 1, and stamps before it are 0 and below; what
is published is numbered on from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrodp import _check
from retrodp.engine.files import StoreFiles
from retrodp.errors import FutureDateError, HorizonExceededError
from retrodp.mechanisms.answer import Answer
from retrodp.plan.epochs import Epoch, epoch_of_series, known_boundaries, read_plans
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.stream.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An epoch that runs.

    Attributes:
        epoch: What was there before it.
        resolved: Its plan, with everything decided.
        declared: The plan as it was written; its horizon may be open.
        plan: The same for this epoch alone, with a horizon.
        clock: Its calendar and what is known of the time before and after.
    """

    epoch: Epoch
    resolved: ResolvedPlan
    declared: Plan
    plan: Plan
    clock: Clock

    @classmethod
    def read(cls, files: StoreFiles) -> Running:
        """From the files of a store."""
        files.require_store()
        epoch = files.read_epoch()
        plans = read_plans(files.directory, epoch)
        resolved = plans[-1]
        declared = Plan.from_dict(resolved.plan)
        earlier = (instant for plan in plans[:-1] for instant in plan.boundaries[:-1])
        clock = Clock.from_boundaries(
            known_boundaries(declared, resolved),
            timezone=declared.stream.timezone,
            past=(*epoch.past, *earlier),
            own=epoch.rounds_before,
        )
        plan = declared.of_epoch(epoch_of_series(resolved))
        return cls(epoch=epoch, resolved=resolved, declared=declared, plan=plan, clock=clock)

    @property
    def horizon(self) -> int:
        """Rounds of the epoch."""
        return self.plan.stream.horizon

    @property
    def before(self) -> int:
        """Rounds of the store before the epoch."""
        return self.epoch.rounds_before

    @property
    def next_in_series(self) -> int | None:
        """Number of the next epoch of an open horizon; None if there is none."""
        series, number = self.declared.stream.epochs, epoch_of_series(self.resolved)
        return number + 1 if series is not None and number < series.number else None

    def numbered(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """Answers of the epoch as they are published, numbered on."""
        return tuple(answer.numbered_on(self.before) for answer in answers)

    def require_closable(self, through: int, *, now: int | None) -> None:
        """Raise unless a round may be closed by now; numbered on from epoch to epoch.

        Args:
            through: The round.
            now: Microseconds since 1970 UTC; None if time does not matter.
        """
        _check.whole(least=0, through=through)
        last, own = self.before + self.clock.horizon, through - self.before
        if through > last:
            raise HorizonExceededError(
                f"Round {through} lies after the horizon of {last} rounds.",
                do="Go on with a successor plan and a budget of its own: `retrodp continue`.",
            )
        if now is not None and own >= 1 and self.clock.start_of(own) > now:
            raise FutureDateError(
                f"Round {through} has not begun.",
                expected=f"a round up to {self.before + self.clock.round_of(now)}",
                do="A round is released when it is over, or early on request, never before it began.",
            )
