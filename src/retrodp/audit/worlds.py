"""Worst-case neighbours: streams that differ in one unit, chosen to be told apart most easily.

Promise: both streams pass through the pipeline like any other, so that what is audited includes
lives, bounds, windows and encodings. World 0 has the unit, world 1 has not.

Source: Kaplan et al. 2026 (arXiv 2609.05329), definitions 2.3 and A.1; units as in docs/guarantees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.histories import Arrived, History, Round, exact_rounds
from retrodp.audit.rows import TEXTS, Point, all_values, update
from retrodp.engine.compile import CompiledRelease
from retrodp.noise.key import NoiseKeys
from retrodp.plan.columns import Canonical
from retrodp.plan.plan import Plan
from retrodp.stream.batch import Batch
from retrodp.stream.update import Op, QueuedUpdate

Values: TypeAlias = tuple[Canonical, ...]

PERSON = "the person in question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worlds:
    """Two neighbouring streams.

    Attributes:
        name: For the report.
        without: What both have.
        with_unit: The same and the unit in question.
    """

    name: str
    without: History
    with_unit: History


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Exact totals of one coordinate, by round; for the audit alone.

    Attributes:
        release: Name of the release.
        label: The coordinate.
        zero: With the unit.
        one: Without it.
    """

    release: str
    label: bytes
    zero: tuple[int, ...]
    one: tuple[int, ...]


def unit_contents(
    plan: Plan, releases: Sequence[CompiledRelease]
) -> list[tuple[str, list[Values]]]:
    """Contents of one unit's records that move the releases most, in each way worth trying.

    A record of greatest weight for every set of releases that it can move; for a unit of several records as many as the plan allows, in as
    few bins as they may be, and in as many as there are.
    """
    weights = {values: _weight(plan, releases, values) for values in all_values(plan, PERSON)}
    heaviest = max(size for size, _ in weights.values())
    stream = plan.stream
    if stream.max_records is None:
        best: dict[frozenset[str], tuple[float, Values]] = {}
        for values, (size, labels) in weights.items():
            touched = frozenset(name for name, _ in labels)
            if touched and size > best.get(touched, (0.0, values))[0]:
                best[touched] = (size, values)
        # A record that moves only some releases is told apart by those that it does not move.
        ranked = sorted(best.items(), key=lambda entry: (-entry[1][0], sorted(entry[0])))
        return [
            (f"one record of {' and '.join(sorted(touched))}", [values])
            for touched, (_, values) in ranked
        ]
    kinds: dict[tuple[frozenset[tuple[str, bytes]], Values], Values] = {}
    for values, (size, labels) in weights.items():
        if size == heaviest:
            kinds.setdefault((labels, _bin(plan, values)), values)
    allowed = [
        combination
        for combination in combinations_with_replacement(kinds, stream.max_records)
        if _within(plan, [bin_ for _, bin_ in combination])
    ]

    def together(combination: tuple[tuple[frozenset[tuple[str, bytes]], Values], ...]) -> int:
        return sum(count**2 for count in Counter(labels for labels, _ in combination).values())

    crowded, spread = max(allowed, key=together), min(allowed, key=together)
    many = f"{stream.max_records} records"
    found = [(f"{many} in the fewest bins", [kinds[kind] for kind in crowded])]
    if together(spread) != together(crowded):
        found.append((f"{many} in the most bins", [kinds[kind] for kind in spread]))
    return found


def _weight(
    plan: Plan, releases: Sequence[CompiledRelease], values: Values
) -> tuple[float, frozenset[tuple[str, bytes]]]:
    """How much a record moves, relative to what it may, and which coordinates."""
    point = Point(id="one", stamp=1, person=PERSON, values=values)
    batch = Batch.of_records([point.record(plan)], plan.names)
    size, labels = 0.0, set()
    for release in releases:
        amounts = {one.name: one.amount for one in release.statistic.components}
        for label, total in release.statistic.encode(batch).items():
            if total:
                component = label.split(b"\n")[0].decode() if len(amounts) > 1 else ""
                size += abs(total) / amounts[component]
                labels.add((release.name, label))
    return size, frozenset(labels)


def _bin(plan: Plan, values: Values) -> Values:
    """What `max_per_bin` counts by."""
    bound = plan.stream.max_per_bin
    names = [column.name for column in plan.columns]
    return () if bound is None else tuple(values[names.index(name)] for name in bound.by)


def _within(plan: Plan, bins: Sequence[Values]) -> bool:
    bound = plan.stream.max_per_bin
    return bound is None or max(Counter(bins).values()) <= bound.max


def neighbours(  # noqa: PLR0913  the parts of a pair of worlds
    plan: Plan,
    contents: Sequence[Values],
    *,
    begin: int,
    end: int,
    base: int = 0,
    beside: int = 0,
    name: str,
) -> Worlds:
    """Streams that differ in one unit whose records are there in rounds begin..end - 1.

    Args:
        plan: Of the streams.
        contents: Of the unit's records.
        begin: Round in which they are added.
        end: Round in which they are deleted; horizon + 1: never.
        base: Records of others in the same bins, there in all rounds of both worlds.
        beside: Records of others in other bins of open columns, likewise.
        name: For the report.
    """
    ids = plan.stream.ids
    unit = [
        Point(id=f"unit {number}" if ids else "", stamp=begin, person=PERSON, values=values)
        for number, values in enumerate(contents)
    ]
    common: dict[int, list[QueuedUpdate]] = {round_: [] for round_ in _rounds(plan)}
    own: dict[int, list[QueuedUpdate]] = {round_: [] for round_ in _rounds(plan)}
    crowds = [(values, base) for values in dict.fromkeys(contents)]
    crowds += [(values, beside) for values in _elsewhere(plan, contents)]
    windowed = any(release.window for release in plan.releases)
    for round_ in _rounds(plan) if windowed else [1]:  # they would stop to count after a window
        for place, (values, size) in enumerate(crowds):
            for number in range(size):
                person = f"other {round_} {place} {number}"
                other = Point(
                    id=f"{person} {place}" if ids else "",
                    stamp=round_,
                    person=person,
                    values=_of_person(plan, values, person),
                )
                common[round_].append(update(plan, Op.ADD, other, round_=round_))
    for point in unit:
        own[begin].append(update(plan, Op.ADD, point, round_=begin))
        if end <= plan.stream.horizon:
            # With ids the deletion belongs to the unit. Without, the unit is one operation, and
            # the deletion arrives in both worlds: where there is no copy it does nothing.
            out = own if ids else common
            out[end].append(update(plan, Op.DELETE, point, round_=end))
    return Worlds(
        name=name,
        without=tuple(Arrived(tuple(common[round_])) for round_ in _rounds(plan)),
        with_unit=tuple(Arrived((*common[round_], *own[round_])) for round_ in _rounds(plan)),
    )


def _rounds(plan: Plan) -> range:
    return range(1, plan.stream.horizon + 1)


def _elsewhere(plan: Plan, contents: Sequence[Values]) -> list[Values]:
    """The first contents with other texts: bins before and after in any order of the labels."""
    person = plan.stream.person
    texts = [c.type == "text" and c.name != person for c in plan.columns]
    used = {value for values in contents for value, text in zip(values, texts, strict=True) if text}
    return [
        tuple(other if text else value for value, text in zip(contents[0], texts, strict=True))
        for other in TEXTS
        if other not in used
    ]


def _of_person(plan: Plan, values: Values, person: str) -> Values:
    return tuple(
        person if column.name == plan.stream.person else value
        for column, value in zip(plan.columns, values, strict=True)
    )


def lived(
    plan: Plan, releases: Sequence[CompiledRelease], worlds: Worlds, keys: NoiseKeys
) -> tuple[list[Round], list[Round]]:
    """Exact rounds of both worlds."""
    return (
        exact_rounds(plan, releases, worlds.with_unit, keys),
        exact_rounds(plan, releases, worlds.without, keys),
    )


def moved(rounds: tuple[list[Round], list[Round]]) -> list[Trajectory]:
    """The coordinates in which the worlds differ."""
    zero, one = rounds
    found = []
    for name in zero[0].totals:
        labels = {label for lived in (*zero, *one) for label in lived.totals[name]}
        for label in sorted(labels):
            paths = [
                tuple(round_.totals[name].get(label, 0) for round_ in world) for world in rounds
            ]
            if paths[0] != paths[1]:
                found.append(Trajectory(release=name, label=label, zero=paths[0], one=paths[1]))
    return found


def change_of(trajectory: Trajectory) -> NDArray[np.float64]:
    """World 0 less world 1, by round."""
    return np.array(trajectory.zero, dtype=np.float64) - np.array(trajectory.one, dtype=np.float64)
