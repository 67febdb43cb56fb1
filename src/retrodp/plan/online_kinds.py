"""The kinds that cluster a stream as it comes and keep what left it: `online_kmeans`, `online_kmedian`.

Their keys, checked against the plan's columns, and the frozen descriptions that come of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.cluster_kinds import points_of
from retrodp.plan.place import Place
from retrodp.plan.schema import NameOrNames, Whole

Mode = Literal["practical", "theory"]
Algorithm = Literal["swaps", "hysteresis", "robust"]

MOST_BLOCKS = 10_000
"""Every block is a step of the noise and of the centres; more than some hundreds buy nothing."""

MOST_POINTS = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineKMeans:
    """At most k centres that hardly move, of all points that arrived; squared distances.

    Attributes:
        of: Columns of the points.
        k: Centres asked for.
        blocks: Parts of the horizon after which something new is published, or None: one a round,
            as far as there are not too many.
        mode: "practical", or "theory" for the parameters of the paper's proofs.
        algorithm: How centres follow the representatives.
        points: Most points that the theory may count on; None in practical mode.
    """

    of: tuple[str, ...]
    k: int
    blocks: int | None = None
    mode: Mode = "practical"
    algorithm: Algorithm = "swaps"
    points: int | None = None

    @property
    def power(self) -> Literal[1, 2]:
        """Of the distances: 2."""
        return 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineKMedian(OnlineKMeans):
    """The same with distances as they are."""

    @property
    def power(self) -> Literal[1, 2]:
        """Of the distances: 1."""
        return 1


class OnlineKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `online_kmeans` and `online_kmedian`."""

    of: NameOrNames
    k: Whole
    blocks: Whole | None = None
    mode: Mode = "practical"
    algorithm: Algorithm = "swaps"
    points: Whole | None = None


def read_online_kmeans(keys: OnlineKeys, place: Place) -> OnlineKMeans:
    """The description of an `online_kmeans`."""
    return OnlineKMeans(**_checked(keys, place))


def read_online_kmedian(keys: OnlineKeys, place: Place) -> OnlineKMedian:
    """The description of an `online_kmedian`."""
    return OnlineKMedian(**_checked(keys, place))


def _checked(keys: OnlineKeys, place: Place) -> dict[str, Any]:
    of = points_of(keys.of, keys.k, place)
    if keys.blocks is not None and not 1 <= keys.blocks <= MOST_BLOCKS:
        raise PlanError(f"{place.path}.blocks is {keys.blocks}.", expected=f"1 to {MOST_BLOCKS}")
    theory = keys.mode == "theory"
    if theory != (keys.points is not None):
        raise PlanError(
            f'{place.path}.points is {"missing" if theory else "given"}: mode = "{keys.mode}".',
            expected="the most points that may ever arrive"
            if theory
            else 'points with mode = "theory" alone',
        )
    if keys.points is not None and not 1 <= keys.points <= MOST_POINTS:
        raise PlanError(f"{place.path}.points is {keys.points}.", expected=f"1 to {MOST_POINTS}")
    return {
        "of": of,
        "k": keys.k,
        "blocks": keys.blocks,
        "mode": keys.mode,
        "algorithm": keys.algorithm,
        "points": keys.points,
    }
