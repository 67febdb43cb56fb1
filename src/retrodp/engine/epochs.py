"""What was there before a store: the epochs that it goes on from, their calendar and their budgets.

A store that was opened from the survivors of another (KKMNS remark 3.6) has a key, rounds and a
budget of its own. Two things of the past stay true and are kept, in `epoch.json`: when the rounds
before round 1 began, because survivors keep their stamps (round 0 is the one before the start,
then -1, ...), and what was spent, because budgets add up. All of it is public.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import msgspec

from retrodp._check import exact
from retrodp.errors import PlanError, StoreCorruptError
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import canonical_json

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessor:
    """An epoch that ended.

    Attributes:
        store: Its public name.
        fingerprint: Of its resolved plan.
        epsilon: Exact text.
        delta: Exact text; "0" if it had none.
        last_round: Last of its rounds that was published anywhere; None if nobody knows.
    """

    store: str
    fingerprint: str
    epsilon: str
    delta: str
    last_round: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What was there before a store.

    Attributes:
        past: Instants at which the rounds before round 1 began, microseconds since 1970 UTC, in
            order; the last of them began round 0.
        predecessors: From the first epoch on.
    """

    past: tuple[int, ...] = ()
    predecessors: tuple[Predecessor, ...] = ()

    @property
    def digest(self) -> str | None:
        """SHA-256 of the file, hex; None for a store that goes on from nothing."""
        return hashlib.sha256(self.to_bytes()).hexdigest() if self.predecessors else None

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical_json(
            {
                "format": FORMAT,
                "past": list(self.past),
                "predecessors": [asdict(own) for own in self.predecessors],
            }
        )

    @classmethod
    def from_bytes(cls, content: bytes) -> Epoch:
        """What `to_bytes` wrote.

        Raises:
            StoreCorruptError: Anything else.
        """
        try:
            document = json.loads(content)
            format_ = document.pop("format")
            epoch = msgspec.convert(document, cls)
            epoch.budget(Fraction(0), Fraction(0))
        except (ValueError, TypeError, AttributeError, KeyError, PlanError):
            format_, epoch = None, cls()
        ordered = all(early < late for early, late in pairwise(epoch.past))
        if format_ != FORMAT or not ordered or epoch.to_bytes() != content:
            raise StoreCorruptError(
                "epoch.json cannot be read.", do="Restore the file from a back-up of this store."
            )
        return epoch

    def budget(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """What all epochs together spend, this one's budget given; by basic composition.

        Holds whatever the plan of a later epoch was chosen after.
        """
        for own in self.predecessors:
            epsilon += exact("epsilon", own.epsilon)
            delta += exact("delta", own.delta)
        return epsilon, delta

    def statement(self, plan: Plan) -> dict[str, Any]:
        """The same as a part of a JSON document."""
        own = plan.privacy.epsilon, plan.privacy.delta or Fraction(0)
        epsilon, delta = self.budget(*own)
        return {
            "own": {"epsilon": float(own[0]), "delta": float(own[1])},
            "earlier_stores": [asdict(predecessor) for predecessor in self.predecessors],
            "total": {"epsilon": float(epsilon), "delta": float(delta)},
        }
