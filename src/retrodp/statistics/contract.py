"""What a statistic is: a frozen, public description of a linear map; it knows no noise.

A statistic sends every surviving record to integer weights on labelled coordinates and adds them
up. It is linear, so a deletion is the negative of the addition and there is no second code path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol, Self, runtime_checkable

from retrodp.plan.expression import Expression
from retrodp.privacy.norms import Norms
from retrodp.stream.batch import Batch

Totals = Mapping[bytes, int]


class Component(NamedTuple):
    """Coordinates of a statistic that share a unit, a noise law and a part of the budget.

    Attributes:
        name: Distinguishes the components of one statistic; "" for a single one.
        amount: Most that one record adds to a coordinate, in steps, absolutely.
        step: Size of a step, in units of the component.
        share: Part of the release's budget; the shares of a statistic add up to 1.
        partitions: One entry for each coordinate that a record touches: the columns whose equal
            values make that coordinate. A count has one entry without columns, a histogram one
            with its columns, a tree one without columns for each level.
        norms: Bounds on the vector that one record adds to all coordinates, where they are smaller
            than what `amount` and the number of partitions give; None where they are not.
        separate: Whether its values are published as they are. Otherwise published numbers are made
            of all components of the statistic together, which share the allowed miss.
        open: Whether its coordinates are labels of an open domain, published from a threshold on.
        grows: Whether they only grow: what a record adds when it arrives stays to the horizon,
            deletions or not. Its noise is then charged for such windows alone.
    """

    name: str
    amount: int
    step: Fraction
    share: Fraction
    partitions: tuple[tuple[str, ...], ...] = ((),)
    norms: Norms | None = None
    separate: bool = False
    open: bool = False
    grows: bool = False


class Statistic(Protocol):
    """A linear statistic of the surviving data, in whole steps."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the plan that `encode` reads."""

    @property
    def components(self) -> tuple[Component, ...]:
        """How much one record can move, component by component."""

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum of the batch's records on each coordinate they touch, multiplicities included.

        Sees: exact records. Coordinates that cancel may be left out or be zero.
        """


@runtime_checkable
class Keyed(Protocol):
    """A statistic whose coordinates come from a hash or a grid that a secret places.

    The secret hides no data: it keeps whoever writes records from choosing ones that meet in a
    bucket. It lasts to the horizon, so an addition and its deletion meet the same coordinates.
    """

    @property
    def bound(self) -> bool:
        """Whether `keyed` gave it its secret; `encode` needs that, nothing else does."""

    def keyed(self, key: bytes) -> Self:
        """The same statistic with its secret.

        Args:
            key: 32 bytes, `lasting_key(release, purpose=PURPOSE)`.
        """


PURPOSE = "statistic"  # of the lasting key that `keyed` takes


@runtime_checkable
class Individual(Protocol):
    """A statistic whose mechanism watches records begin one by one, and not their sum alone.

    For mechanisms that remember and whose decisions on a record depend on which record it is, such
    as a coin of its own. Other statistics show what begins as `encode` would.
    """

    def arrivals(self, batch: Batch, identities: Sequence[bytes]) -> dict[bytes, int]:
        """What the records of the batch, which begin in a round, are for the mechanism.

        Args:
            batch: Their contents.
            identities: Canonical bytes of (namespace, id, stamp) of each, or of (stamp, contents)
                in a stream without ids, where copies share one. For keyed coins alone: they may
                stand in what is returned, but in no state.
        """


def columns_read(names: Iterable[str], where: Expression | None) -> tuple[str, ...]:
    """Columns of a statistic: its own, then those of its condition, each once."""
    return tuple(dict.fromkeys((*names, *(() if where is None else where.columns))))
