"""A mechanism that remembers, as one history lived it, for whoever keeps no ledger.

For audits, research and tests. A store never uses it: there the states are in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import (
    AnyMechanism,
    Mechanism,
    Seen,
    Stateful,
)
from retrodp.mechanisms.stand_in import StandIn
from retrodp.noise.key import NoiseKeys


@dataclass(slots=True)
class Lived(StandIn):
    """Answers round after round, from 1 on; the last round may be asked for again.

    Attributes:
        inner: The description.
        states: After each round so far, from the state before round 1 on.
        begun: What the next round sees begin, for a mechanism that watches.
    """

    inner: Stateful
    states: list[bytes] = field(default_factory=list)
    begun: Mapping[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.states:
            self.states.append(self.inner.begin())

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of the next round, or of the last one again.

        Raises:
            UsageError: Another round: what it would remember is not there.
        """
        if not len(self.states) - 1 <= round_ <= len(self.states) or round_ < 1:
            raise UsageError(
                f"{self.name} remembers: round {round_} cannot be released now.",
                expected=f"round {len(self.states)}",
            )
        seen = Seen(exact, self.begun)
        answer, state = self.inner.advance(round_, seen, keys, self.states[round_ - 1])
        self.states[round_:] = [state]
        return answer


def lived(mechanism: AnyMechanism) -> Mechanism:
    """The mechanism itself, or one history of it if it remembers."""
    return Lived(mechanism) if isinstance(mechanism, Stateful) else mechanism
