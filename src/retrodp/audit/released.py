"""What is published in either world, in many independent runs.

Promise: numbers are drawn directly from a release's noise only after the release itself, in both
worlds, all rounds and under several keys, was seen to publish exactly its totals plus those draws.
A release that does not, or of a kind not known here, is asked as it stands, once a key: slower,
but with nothing assumed.

Coordinates of one key are independent (the noise is a pseudo-random function), so that n bins are n
runs; a few different keys are used besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.coins import Seed
from retrodp.audit.distinguish import Declared, Seen
from retrodp.audit.histories import Round
from retrodp.audit.parts import component_of, components, thresholded, thresholds_of
from retrodp.audit.restated import expected
from retrodp.audit.structure import Structure
from retrodp.audit.worlds import Trajectory, change_of
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Mechanism
from retrodp.noise.prf import Coordinates

Floats = NDArray[np.float64]
Noise = Mapping[tuple[str, str], NDArray[np.int64]]
"""Rounded noise by release and component, shape ``(slots, runs, rounds)``."""

MANY_COMPONENTS = 2
ALONE: Mapping[str, int] = {}
"""Every coordinate is seen by itself."""

ROUNDING = 1 / 12


def smaller(noise: CalibratedNoise, by: Fraction) -> CalibratedNoise:
    """Noise whose scale is too small by a factor."""
    process = noise.process
    divisor = by if process.law == "laplace" else by * by
    return replace(noise, process=replace(process, scale=process.scale / divisor))


def is_as_declared(
    mechanisms: Mapping[str, Mechanism],
    worlds: tuple[list[Round], list[Round]],
    seed: Seed,
    *,
    keys: int,
) -> bool:
    """Whether every release publishes totals plus its declared noise, in all rounds of both worlds."""
    horizon = len(worlds[0])
    for number in range(keys):
        own = seed.keys(horizon, "gate", number)
        for world in worlds:
            for round_, lived in enumerate(world, start=1):
                for name, mechanism in mechanisms.items():
                    answer = mechanism.release(round_, lived.totals[name], own)
                    wanted = expected(mechanism, round_, lived.totals[name], own)
                    if wanted is None or wanted != (answer.keys, answer.values):
                        return False
    return True


def draw_noise(
    mechanisms: Mapping[str, Mechanism],
    *,
    slots: int,
    runs: int,
    seeds: Sequence[Seed],
    together: Mapping[str, int] = ALONE,
) -> Noise:
    """Noise of all rounds for `slots` coordinates in `runs` runs, split over the seeds' keys.

    Slots of one run lie side by side, so that coordinates which wrongly share their noise meet.
    Where a release's coordinates are seen `together`, a slot has the sum of so many draws.
    """
    found: dict[tuple[str, str], NDArray[np.int64]] = {}
    share = -(-runs // len(seeds))
    for name, mechanism in mechanisms.items():
        for component, noise in (components(mechanism) or {}).items():
            rounds = range(1, noise.horizon + 1)
            pieces = []
            size = together.get(name, 1)
            for seed in seeds:
                keys = seed.keys(noise.horizon, "runs")
                where = Coordinates.of_indices(slots * size * share)
                drawn = [
                    noise.draw(round_, keys, where).reshape(share, slots, size).sum(axis=-1)
                    for round_ in rounds
                ]
                pieces.append(np.stack(drawn, axis=-1))
            joined = np.concatenate(pieces)[:runs]
            found[name, component] = np.ascontiguousarray(joined.transpose(1, 0, 2))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What an adversary sees of one pair of worlds, and what the declared noise says about it.

    Attributes:
        worlds: Seen in world 0 and in world 1.
        declared: Components; empty where nothing is known.
        raw: What to add to seen values to have the published ones.
    """

    worlds: tuple[Seen, Seen]
    declared: tuple[Declared, ...]
    raw: Floats


def view_of(
    mechanisms: Mapping[str, Mechanism],
    trajectories: Sequence[Trajectory],
    noise: Noise,
    structures: Mapping[tuple[str, str], Structure],
    together: Mapping[str, int] = ALONE,
) -> View:
    """Published numbers of the coordinates in question, from drawn noise.

    Args:
        mechanisms: Of all releases, as `is_as_declared` found them.
        trajectories: Coordinates in which the worlds differ.
        noise: See `draw_noise`; as many slots as a component has trajectories.
        structures: Of each component's declared factor.
        together: As for `draw_noise`.
    """
    blocks: list[tuple[list[Floats], list[NDArray[np.bool_]]]] = []
    declared: list[Declared] = []
    raw: list[Floats] = []
    used: dict[tuple[str, str], int] = {}
    for trajectory in trajectories:
        mechanism = mechanisms[trajectory.release]
        component = component_of(mechanism, trajectory.label)
        thresholds = thresholds_of(mechanism, component)
        place = (trajectory.release, component)
        slot = used[place] = used.get(place, -1) + 1
        drawn = noise[place][slot]
        base = np.array(trajectory.one)
        rounds = len(base)
        values, present = [], []
        for path in (trajectory.zero, trajectory.one):
            total = np.array(path)
            shown = np.ones((len(drawn), rounds), dtype=np.bool_)
            value = drawn + total
            if thresholds is not None:
                threshold = np.array(thresholds)
                shown = (value >= threshold) & (total >= 1)
                value = np.where(shown, value, threshold - 1)
            values.append((value - base).astype(np.float64))
            present.append(shown)
        blocks.append((values, present))
        calibrated = (components(mechanism) or {})[component]
        start = (len(blocks) - 1) * rounds
        law, scale = _law_of_sum(calibrated, together.get(trajectory.release, 1))
        declared.append(
            Declared(
                structure=structures[place],
                law=law,
                scale=scale,
                columns=slice(start, start + rounds),
                change=change_of(trajectory),
            )
        )
        raw.append(base.astype(np.float64))
    sparse = any(thresholded(one) is not None for one in mechanisms.values())
    zero, one = (
        Seen(
            np.hstack([values[world] for values, _ in blocks]),
            np.hstack([present[world] for _, present in blocks]) if sparse else None,
        )
        for world in (0, 1)
    )
    return View(worlds=(zero, one), declared=tuple(declared), raw=np.concatenate(raw))


def _law_of_sum(noise: CalibratedNoise, size: int) -> tuple[str, float]:
    """Law and scale of the sum of so many draws; of many Laplace ones by the normal law."""
    law, scale = noise.process.law, float(noise.process.scale)
    if size == 1:
        return law, scale
    return "gaussian", size * (scale if law == "gaussian" else 2 * scale**2)


def bystanders(
    mechanisms: Mapping[str, Mechanism], seen: Sequence[Trajectory], horizon: int
) -> list[Trajectory]:
    """Coordinates that the unit does not touch, always published, one a component.

    An adversary sees them too: noise that is shared where it must not be is found beside them. Of
    many components only those of which nothing is seen yet.
    """
    places = [
        (name, component, mechanism)
        for name, mechanism in mechanisms.items()
        for component in components(mechanism) or {}
    ]
    moved = {(path.release, component_of(mechanisms[path.release], path.label)) for path in seen}
    found = []
    for name, component, mechanism in places:
        if len(places) > MANY_COMPONENTS and (name, component) in moved:
            continue
        total = 0
        if (thresholds := thresholds_of(mechanism, component)) is not None:
            noise = (components(mechanism) or {})[component]
            total = 2 * max(thresholds) + 10 * max(noise.half_all)
        path = (total,) * horizon
        label = f"{component}\nbystander" if component else "bystander"
        found.append(Trajectory(release=name, label=label.encode(), zero=path, one=path))
    return found


def asked(
    mechanisms: Mapping[str, Mechanism],
    worlds: tuple[list[Round], list[Round]],
    *,
    runs: int,
    seed: Seed,
) -> View:
    """Published numbers of every coordinate, the releases asked as they stand, once a key."""
    horizon = len(worlds[0])
    place: dict[tuple[int, str, str], int] = {}
    cells: tuple[list[tuple[int, int, float]], ...] = ([], [])
    for found, world in zip(cells, worlds, strict=True):
        for run in range(runs):
            keys = seed.keys(horizon, "asked", run)
            for round_, lived in enumerate(world, start=1):
                for name, mechanism in mechanisms.items():
                    answer = mechanism.release(round_, lived.totals[name], keys)
                    for label, value in _figures(answer):
                        column = place.setdefault((round_, name, label), len(place))
                        if value is not None:
                            found.append((run, column, value))
    seen = []
    for found in cells:
        values = np.zeros((runs, len(place)))
        present = np.zeros((runs, len(place)), dtype=np.bool_)
        for run, column, number in found:
            values[run, column] = number
            present[run, column] = True
        seen.append(Seen(values, present))
    return View(worlds=(seen[0], seen[1]), declared=(), raw=np.zeros(len(place)))


def _figures(answer: Answer) -> list[tuple[str, int | None]]:
    keys = ("",) if answer.keys is None else answer.keys
    return list(zip(keys, answer.values, strict=True))
