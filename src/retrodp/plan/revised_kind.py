"""The common keys `revised`, `shape` and `last`: a release of the whole revised past.

Promise: a revised release is one of the kinds that have a series by stamp, with one way to read it
and a whole number of rounds to look back; or it is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypeVar

from retrodp.errors import PlanError
from retrodp.plan.duration import Duration
from retrodp.plan.schema import ReleaseTable, shown
from retrodp.plan.settings import StreamPlan

Shape: TypeAlias = Literal["per_stamp", "cumulative"]

Inner = TypeVar("Inner")

REVISABLE = ("count", "sum", "histogram")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """The past of a count, sum or histogram as it is known in each round, stamp by stamp.

    Attributes:
        inner: What is measured.
        shape: "per_stamp": the records of each stamp; "cumulative": those up to each stamp.
        last: Stamps that each round publishes, the newest ones; None: all.
    """

    inner: Any
    shape: Shape
    last: int | None

    @property
    def of(self) -> str | None:
        """The column that is added up, if any."""
        of: str | None = getattr(self.inner, "of", None)
        return of

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that make the bins; empty: one number a stamp."""
        by: tuple[str, ...] = getattr(self.inner, "by", ())
        return by

    @property
    def max_bins(self) -> int:
        """Planned maximum of pairs of a stamp and a label."""
        most: int = self.inner.max_bins
        return most

    def rounds(self, horizon: int) -> int:
        """Stamps that a round publishes, at most."""
        return horizon if self.last is None else min(self.last, horizon)

    def keys(self, length: str) -> dict[str, Any]:
        """The keys as a plan writes them.

        Args:
            length: Of a round, `stream.round`.
        """
        own = {key.name: getattr(self.inner, key.name) for key in fields(self.inner)}
        last = self.last and str(Duration.parse(length, key="stream.round").times(self.last))
        return own | {"revised": True, "shape": self.shape, "last": last}


def read_revised(
    common: ReleaseTable, inner: Inner, stream: StreamPlan, table: Mapping[str, Any], path: str
) -> Inner | Revised:
    """The statistic of a release, revised if its table says so.

    Args:
        common: The keys that all kinds share.
        inner: What the kind measures.
        stream: For the length of rounds and the horizon.
        table: As written.
        path: Dotted path of the table.
    """
    if not common.revised:
        for key in ("shape", "last"):
            if table.get(key) is not None:
                raise PlanError(
                    f"{path}.{key} is about a revised release, but {path}.revised is not true.",
                    do=f"Set revised = true, or leave {key} out.",
                )
        return inner
    if common.kind not in REVISABLE:
        raise PlanError(
            f'{path}.revised is true, but a release of kind "{common.kind}" has no series by stamp.',
            expected=f"one of {', '.join(REVISABLE)}",
        )
    if common.window is not None:
        raise PlanError(
            f"{path}.window and {path}.revised do not go together: a revised release lists every "
            "stamp, so the records of any window of stamps are a sum or a difference of its numbers.",
            do="Leave window out; `last` says how many stamps each round publishes.",
        )
    if stream.epochs is not None:
        raise PlanError(
            f"{path}.revised needs a known horizon, which decides how many stamps there are.",
            do="Give stream.horizon as a number of rounds.",
        )
    return Revised(inner=inner, shape=common.shape or "per_stamp", last=_last(common, stream, path))


def _last(common: ReleaseTable, stream: StreamPlan, path: str) -> int | None:
    if common.last is None:
        return None
    key = f"{path}.last"
    if not isinstance(common.last, str):
        raise PlanError(f"{key} is {shown(common.last)}.", expected="a duration such as '90d'")
    return stream.rounds_in(
        common.last, key=key, usual=90, without="Leave it out to publish all stamps."
    )
