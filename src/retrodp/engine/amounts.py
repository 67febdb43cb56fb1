"""How much one unit moves, and how many bins are planned: amounts that the plan alone decides.

Promise: never too small for any data that the plan admits. It knows no noise and no budget.
"""

from __future__ import annotations

import math

from retrodp.engine.compile import statistic_of
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.privacy.neighbours import Protection


def protection_of(plan: Plan) -> Protection:
    """The plan's unit, and how many records of one unit may move at once."""
    stream = plan.stream
    bound = stream.max_per_bin
    return Protection(
        unit=stream.unit,
        max_records=stream.max_records or 1,
        max_per_bin=None if bound is None else bound.max,
        bin_columns=() if bound is None else bound.by,
        max_rounds=stream.max_rounds,
    )


def most_moved(plan: Plan, release: Release) -> int:
    """Most that one unit moves a coordinate of the release, in steps."""
    components = statistic_of(plan, release).components
    most = max((component.amount for component in components), default=1)
    return most * protection_of(plan).max_records


def planned_bins(plan: Plan, release: Release) -> int:
    """Bins of a release: the public ones, or as many open labels as are planned."""

    def bins(by: tuple[str, ...]) -> int:
        if not plan.is_public(by):
            return max_bins(release)
        return math.prod(len(plan.column(name).public_values or ()) for name in by)

    coordinates: int | None = getattr(statistic_of(plan, release), "coordinates", None)
    if coordinates is not None:
        return coordinates
    tables = release.statistic.marginals if isinstance(release.statistic, kinds.Cube) else None
    return bins(release.by) if tables is None else sum(map(bins, tables))


def max_bins(release: Release) -> int:
    """Most open labels that a release is planned for."""
    assert isinstance(release.statistic, kinds.Histogram | kinds.Cube | kinds.Revised)
    return release.statistic.max_bins
