"""What every mechanism promises: protocols only.

A `Mechanism` is a pure function of (key, round, totals of the survivors), so it cannot remember.
A `Stateful` mechanism keeps a state from round to round and is given nothing else to remember with;
it says `retroactive = "no"` (or what less it promises), and plan, reports and receipts repeat it.

To write one that remembers: a frozen description like any other, with `begin` and `advance` in the
place of `release`. What it must know of the past stands in the state, a canonical byte string: equal
rounds from equal states give equal bytes, so no sets, no floats, no order of arrival. Whoever deletes
a record may not find it in the state: items enter as keyed hashes (`keys.lasting_key`) and counters,
never as labels, ids or contents. Noise stays a function of keys and public labels; never store a draw.
The engine keeps the states after the last two rounds in the ledger, in the transaction of the close,
and begins anew in a new epoch (`retrodp.engine.states`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss

Retroactive = Literal["exact", "marginal", "no"]
"""`marginal` names alpha and beta in `describe`: each later answer alone is that close to one that
never knew what was deleted (KKMNS definition 2.9)."""
Adaptive = Literal["yes", "integer-order RDP", "no"]


class Described(Protocol):
    """What is known of every mechanism without any data."""

    @property
    def name(self) -> str:
        """Name of the release; part of the label of all its noise."""

    @property
    def retroactive(self) -> Retroactive:
        """Whether uniting histories give identically distributed answers."""

    @property
    def adaptive(self) -> Adaptive:
        """Which streams the privacy guarantee covers (KKMNS appendix B)."""

    @property
    def step(self) -> Fraction:
        """Size of a step of the published values, in units of the statistic."""

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise, for whoever asks which keys are still needed."""

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """What the answers of all rounds together reveal about one unit."""

    def describe(self) -> dict[str, Any]:
        """Public facts: mechanism, factor, law, scale, threshold, predicted errors."""


class Mechanism(Described, Protocol):
    """A frozen description of how exact totals become one published answer a round.

    `release` is a pure function of its arguments; a mechanism holds no state, so it cannot
    remember a deleted record (KKMNS definition 2.8).
    """

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of one round.

        Args:
            round_: From 1 to the horizon.
            exact: Totals of the surviving data by coordinate; what is absent is 0.
            keys: Source of the noise; the same keys give the same answer.
        """


class Seen(NamedTuple):
    """What a mechanism that remembers sees of one round; exact.

    Attributes:
        totals: Of the records that survive the round, by coordinate; what is absent is 0.
        begun: Of the records that begin in the round and survive it, deletions left out; in round 1
            of all that survive it, so that a new epoch begins with what it was given. Empty unless
            the mechanism `watches`.
    """

    totals: Mapping[bytes, int]
    begun: Mapping[bytes, int]


@runtime_checkable
class Stateful(Described, Protocol):
    """A frozen description of answers that depend on the rounds before, through a state alone."""

    @property
    def instead(self) -> str:
        """What to plan in its place to have every deletion forgotten: part of a sentence."""

    @property
    def watches(self) -> bool:
        """Whether it looks at `Seen.begun`; otherwise nothing of it is made or kept."""

    def begin(self) -> bytes:
        """The state before round 1; public."""

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        """The answer of one round and the state after it: a pure function of the arguments.

        Args:
            round_: From 1 to the horizon.
            seen: Of this round.
            keys: Source of the noise, and of the lasting key that hides items in the state.
            state: After the round before.
        """


AnyMechanism: TypeAlias = Mechanism | Stateful
