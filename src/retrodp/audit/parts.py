"""Of which noisy coordinates a release is made.

Promise: a release that is known here is a function of its exact coordinates plus noise of the law
that its components declare; `restated` says which function, and the audit compares it with what is
published. So whatever holds for the law of the coordinates holds for the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from retrodp.audit import revised
from retrodp.errors import UsageError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.cdf import CumulativeCounts
from retrodp.mechanisms.contract import AnyMechanism, Mechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.cube import MarginalTables
from retrodp.mechanisms.gram import NoisyMoments
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.mechanisms.mean import MeanOfBins
from retrodp.mechanisms.ordered import group_labels
from retrodp.mechanisms.quantiles import Quantiles
from retrodp.mechanisms.query import Block, WeightedSums
from retrodp.mechanisms.revised import RevisedSeries
from retrodp.mechanisms.stamped import StampNoise
from retrodp.statistics.marginals import OPEN, PUBLIC
from retrodp.statistics.means import COUNT, SUM
from retrodp.statistics.moments import COUNT as NUMBER
from retrodp.statistics.moments import PRODUCTS, SUMS
from retrodp.statistics.ordered import cells_by_group

Change = Callable[[CalibratedNoise], CalibratedNoise]


def components(mechanism: AnyMechanism) -> dict[str, CalibratedNoise] | None:
    """Noise of each component by its name; None for a mechanism not known here."""
    match mechanism:
        case Counter() | Histogram() | SparseHistogram() | Quantiles() | CumulativeCounts():
            found = {"": mechanism.noise}
        case MeanOfBins():
            found = {SUM: mechanism.total, COUNT: mechanism.count}
        case WeightedSums():
            found = {_name(block): block.noise for block in mechanism.blocks}
        case NoisyMoments():
            found = {
                NUMBER: mechanism.count,
                SUMS: mechanism.sums,
                PRODUCTS: mechanism.products,
            }
        case MarginalTables():
            both = {PUBLIC: mechanism.public, OPEN: mechanism.open}
            found = {name: noise for name, noise in both.items() if noise is not None}
        case _:
            series = revised.noise_of(mechanism)
            return None if series is None else {"": series}
    return found if len(found) > 1 else dict.fromkeys([""], *found.values())


def _name(block: Block) -> str:
    return block.coordinates[0].split(b"\n")[0].decode()


def component_of(mechanism: AnyMechanism, label: bytes) -> str:
    """The component that a coordinate of `coordinates` belongs to."""
    names = components(mechanism) or {}
    return label.split(b"\n")[0].decode() if len(names) > 1 else ""


def with_noise(mechanism: Mechanism, change: Change) -> Mechanism:
    """The same release with other noise; for planted faults and the measure of power."""
    changed: Mechanism
    match mechanism:
        case Counter():
            changed = Counter.of(change(mechanism.noise))
        case Histogram():
            changed = Histogram.of(change(mechanism.noise), mechanism.bins)
        case SparseHistogram():
            changed = SparseHistogram.of(
                change(mechanism.noise),
                threshold=mechanism.thresholds,
                max_bins=mechanism.max_bins,
            )
        case MeanOfBins(total=total, count=count):
            changed = replace(mechanism, total=change(total), count=change(count))
        case Quantiles() | CumulativeCounts():
            changed = replace(mechanism, noise=change(mechanism.noise))
        case WeightedSums():
            blocks = [replace(block, noise=change(block.noise)) for block in mechanism.blocks]
            changed = replace(mechanism, blocks=tuple(blocks))
        case NoisyMoments(count=count, sums=sums, products=products):
            changed = replace(
                mechanism, count=change(count), sums=change(sums), products=change(products)
            )
        case MarginalTables(public=public, open=open_):
            changed = replace(
                mechanism,
                public=None if public is None else change(public),
                open=None if open_ is None else change(open_),
            )
        case RevisedSeries(series=StampNoise() as series):
            changed = replace(mechanism, series=replace(series, noise=change(series.noise)))
        case _:
            raise UsageError(f"The audit does not know the noise of {mechanism.name}.")
    return changed


def thresholded(mechanism: AnyMechanism) -> SparseHistogram | None:
    """The part of a release whose bins are published from a threshold on; None if there is none."""
    match mechanism:
        case SparseHistogram():
            return mechanism
        case MarginalTables(open=CalibratedNoise() as noise, threshold=int(threshold)):
            return SparseHistogram.of(noise, threshold=threshold, max_bins=mechanism.max_bins)
        case _:
            return None


def thresholds_of(mechanism: AnyMechanism, component: str) -> tuple[int, ...] | None:
    """Thresholds of a component, one a round; None where everything is published."""
    part = thresholded(mechanism)
    return None if part is None or component == PUBLIC else part.thresholds


def coordinates(mechanism: AnyMechanism, totals: Mapping[bytes, int]) -> Mapping[bytes, int]:
    """Exact values of the coordinates that noise is added to; what is absent is 0.

    Most releases keep them as their totals. A tree adds noise to the number of records and to the
    differences between the halves of its nodes: a record counts 1 in the number, and 1 or -1 in
    the nodes above its cell.
    """
    match mechanism:
        case Quantiles():
            return _tree(totals, mechanism.cells.count, mechanism.groups)
        case CumulativeCounts(flat=False):
            return _tree(totals, len(mechanism.texts), mechanism.groups)
        case _:
            return totals


def _tree(
    totals: Mapping[bytes, int], cells: int, groups: tuple[str, ...] | None
) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    by_group = cells_by_group(totals)
    for group in group_labels(groups):
        for cell, count in by_group.get(group, {}).items():
            for number, sign in moved_nodes(cell, cells):
                label = b"node %d of %b" % (number, group)
                found[label] = found.get(label, 0) + sign * count
    return found


def moved_nodes(cell: int, cells: int) -> list[tuple[int, int]]:
    """Coordinates that a record of a cell moves, and by how much: 0 is the number of all."""
    found = [(0, 1)]
    number, low, high = 1, 0, cells
    while high - low > 1:
        middle = (low + high) // 2
        left = cell < middle
        found.append((number, 1 if left else -1))
        low, high = (low, middle) if left else (middle, high)
        number = 2 * number + (not left)
    return found
