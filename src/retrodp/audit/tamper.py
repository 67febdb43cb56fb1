"""A mechanism that answers by another rule than the one it stands in for.

For planted faults only: what the rest of the audit must catch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.stand_in import StandIn
from retrodp.noise.key import NoiseKeys


@dataclass(slots=True)
class Memory:
    """What a faulty mechanism keeps from round to round; sound ones keep nothing.

    Attributes:
        seen: Whatever the rule remembers by label.
        before: Totals of the round before.
        changes: How many totals changed so far.
    """

    seen: dict[bytes, int] = field(default_factory=dict)
    before: dict[bytes, int] = field(default_factory=dict)
    changes: int = 0

    def moved(self, exact: Mapping[bytes, int]) -> dict[bytes, int]:
        """What changed since the last round; counts the changes."""
        moved = {
            label: exact.get(label, 0) - self.before.get(label, 0)
            for label in exact.keys() | self.before.keys()
            if exact.get(label, 0) != self.before.get(label, 0)
        }
        self.before = dict(exact)
        self.changes += len(moved)
        return moved


@dataclass(slots=True)
class Tampered(StandIn):
    """Claims what the sound mechanism claims, and answers by its rule.

    Attributes:
        inner: The sound mechanism.
        rule: Makes the answer.
        memory: Of this one object.
    """

    inner: Mechanism
    rule: Rule
    memory: Memory = field(default_factory=Memory)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The rule's answer."""
        return self.rule(self, round_, exact, keys)


Rule: TypeAlias = Callable[[Tampered, int, Mapping[bytes, int], NoiseKeys], Answer]


def by_rule(rule: Rule) -> Callable[[Mechanism], Mechanism]:
    """Puts a rule into a mechanism; every call has a memory of its own."""
    return lambda inner: Tampered(inner, rule)
