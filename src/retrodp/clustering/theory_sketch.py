"""Algorithms 2, 4 and 5 as the paper has them, on a whole stream at once.

Promise: what is published at a time is what the algorithms publish that see the stream up to that time
only: a random choice of points, dense balls of those chosen, and the representatives' counts. Runs
where `theory.Theory` proves something and refuses elsewhere. Exact sets stay inside.

Source: Cohen et al. (2026), algorithms 2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.counting import Counter
from retrodp.clustering.dense_ball import dense_balls
from retrodp.clustering.solver import Floats, lengths
from retrodp.clustering.theory import Sketch, Theory
from retrodp.clustering.transport import Weighted
from retrodp.errors import DataError, UsageError
from retrodp.noise.key import KeyTree, NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Dense = Callable[[Floats, int], Floats]
"""Places for the points kept so far, shape (m, d), and the number of the call, from 1."""

RELEASE = "theory"


class Born(NamedTuple):
    """Representatives of one sketch.

    Attributes:
        times: When each was published, from 1, rising; shape (m,).
        places: Shape (m, d); the origin, which is there from the beginning, is not among them.
    """

    times: Ints
    places: Floats


class Run(NamedTuple):
    """One sketch, with what must not be published.

    Attributes:
        born: To be published.
        kept: Times of the points that were kept; exact, for proofs and tests.
        calls: For dense balls.
    """

    born: Born
    kept: Ints
    calls: int


def kept_times(chosen: Bools, capacity: int) -> Ints:
    """Times, from 1, of the points that are kept: the first chosen ones, while there is room."""
    times: Ints = np.flatnonzero(chosen)[:capacity].astype(np.int64) + 1
    return times


def sampling_rate(distances: Floats, sketch: Sketch, k: int, power: float) -> Floats:
    """Probability lambda that a point at such distances from the representatives is chosen."""
    weight = sketch.tau * k * sketch.rings / sketch.guess
    rate: Floats = np.minimum(1.0, weight * distances**power)
    return rate


def private_meyerson(  # noqa: PLR0913  the inputs of the algorithm
    points: Floats,
    sketch: Sketch,
    *,
    k: int,
    power: float,
    coins: Floats,
    counts: Callable[[Bools], Ints],
    dense: Dense,
) -> Run:
    """Algorithm 2.

    Args:
        points: A row per time, shape (n, d); a row of NaN is no point.
        sketch: Its parameters.
        k: Centres.
        power: p.
        coins: Uniform, shape (n,); a point is chosen if its own is below its rate.
        counts: Continual count of the choices, see `Counter.counts`.
        dense: Dense balls of the kept points.
    """
    there = np.isfinite(points.sum(axis=1))
    distances = np.where(there, lengths(np.where(there[:, None], points, 0.0)), 0.0)
    chosen = np.zeros(len(points), dtype=bool)
    times: list[int] = []
    places: list[Floats] = []
    start, call = 0, 1
    while start < len(points):
        rate = sampling_rate(distances[start:], sketch, k, power)
        chosen[start:] = coins[start:] < rate
        # What is chosen later does not move the counts up to the next call.
        wanted = np.flatnonzero(counts(chosen)[start:] >= call * sketch.tau)
        if not len(wanted) or call > sketch.calls:
            break
        now = start + int(wanted[0])
        found = dense(points[kept_times(chosen[: now + 1], sketch.capacity) - 1], call)
        for place in found:
            away = lengths(points[now + 1 :] - place)
            distances[now + 1 :] = np.where(
                there[now + 1 :], np.minimum(distances[now + 1 :], away), 0.0
            )
        times += [now + 1] * len(found)
        places += list(found)
        start, call = now + 1, call + 1
    born = Born(np.array(times, dtype=np.int64), np.array(places).reshape(-1, points.shape[1]))
    return Run(born, kept_times(chosen, sketch.capacity), call - 1)


def drawn_guess(theory: Theory, keys: NoiseKeys, repetition: int) -> float:
    """The guess of a repetition, each of them equally likely."""
    key = keys.fresh_key(release=RELEASE, purpose=f"{repetition} guess", round=1)
    (uniform,) = _uniforms(key, 1).tolist()
    return theory.guesses[int(uniform * len(theory.guesses))]


def guessed_sketch(
    theory: Theory, points: Floats, keys: NoiseKeys, repetition: int, guess: float | None = None
) -> Run:
    """Algorithm 4: algorithm 2 with a guess of the optimum that is drawn at random.

    Args:
        theory: Parameters.
        points: As `private_meyerson`.
        keys: Source of guess, coins and noise.
        repetition: From 0; each has randomness of its own.
        guess: One of the guesses, in the place of a random one.
    """

    def key(purpose: str) -> bytes:
        return keys.fresh_key(release=RELEASE, purpose=f"{repetition} {purpose}", round=1)

    sketch = theory.sketch(drawn_guess(theory, keys, repetition) if guess is None else guess)
    count_noise = sketch.counter.noise(key("count"))

    def counts(chosen: Bools) -> Ints:
        return _never_falling(np.cumsum(chosen) + count_noise)

    def dense(kept: Floats, call: int) -> Floats:
        found = dense_balls(
            kept,
            2 * 2**theory.dimensions * sketch.noise,
            sketch.r_min,
            sketch.dense,
            keys=KeyTree.from_root(key(f"dense {call}"), RELEASE.encode(), 1),
        )
        return found.centres[:-1][: sketch.size]  # without the origin

    return private_meyerson(
        points,
        sketch,
        k=theory.k,
        power=theory.power,
        coins=_uniforms(key("coins"), len(points)),
        counts=counts,
        dense=dense,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedStream:
    """What algorithm 5 publishes.

    Attributes:
        places: Representatives, shape (m, d); the origin first.
        times: When each appears, shape (m,), rising; 0 for the origin.
        at: Times for which the weights are given, rising.
        weights: Noisy numbers of points that never fall, shape (times, m); 0 before the birth.
    """

    places: Floats
    times: Ints
    at: tuple[int, ...]
    weights: Ints

    def until(self, time: int) -> Weighted:
        """The semi-coreset of the points up to a time, which is one of `at`."""
        if time not in self.at:
            raise UsageError(f"Weights were not kept at time {time}.", expected=f"one of {self.at}")
        born = int(np.searchsorted(self.times, time, side="right"))
        own = self.weights[self.at.index(time), :born].astype(np.float64)
        return Weighted(self.places[:born], own)


def assigned(points: Floats, places: Floats, times: Ints) -> Ints:
    """For each time the nearest representative there is, ties to the first; -1 without a point.

    Args:
        points: Shape (n, d); a row of NaN is no point.
        places: Shape (m, d), in the order of birth, one of them there from the beginning.
        times: Of birth, rising, shape (m,); one born at a time serves the point of that time.
    """
    nearest = np.full(len(points), -1, dtype=np.int64)
    closest = np.full(len(points), np.inf)
    for number, (place, time) in enumerate(zip(places, times.tolist(), strict=True)):
        first = max(0, time - 1)
        away = lengths(points[first:] - place)
        closer = away < closest[first:]  # never for NaN
        closest[first:][closer] = away[closer]
        nearest[first:][closer] = number
    return nearest


def semi_coreset(
    theory: Theory,
    points: Floats,
    *,
    at: Sequence[int] | None = None,
    keys: NoiseKeys | None = None,
) -> WeightedStream:
    """The private semi-coreset of a stream (algorithm 5 over the repetitions of algorithm 4).

    Args:
        theory: Parameters; refuses unless they prove something.
        points: As many rows as `theory.points`, of the ball of diameter 1 around the origin (what
            lies outside is moved to its surface). A row of NaN is no point.
        at: Times at which weights are wanted; the last by default.
        keys: Source of the randomness; None for a fresh secret of the operating system. A key that
            is used twice on different points reveals their difference.

    Time: R calls of algorithm 2, each n (calls + m) distances, and m counts over the stream.

    Raises:
        PlanError: The theorem says nothing here, or its cells do not fit; see `Theory`.
    """
    theory.refuse_vacuous()
    theory.refuse_oversized()
    inside = _inside(theory, points)
    keys = KeyTree.generate(1)[0] if keys is None else keys
    runs = [guessed_sketch(theory, inside, keys, number) for number in range(theory.repetitions)]
    places, times = _union([run.born for run in runs], theory.dimensions)
    own = assigned(inside, places, times)
    chosen = tuple(sorted(set(at))) if at is not None else (theory.points,)
    weights = np.zeros((len(chosen), len(places)), dtype=np.int64)
    counter: Counter = theory.weights
    for number, time in enumerate(times.tolist()):
        key = keys.fresh_key(release=RELEASE, purpose=f"weight {number}", round=1)
        # An instance begins with its representative, so nothing of it is seen before.
        noisy = np.cumsum(own == number) + counter.noise(key)
        counts = _never_falling(noisy[max(0, time - 1) :])
        for row, moment in enumerate(chosen):
            if moment >= max(1, time):
                weights[row, number] = counts[moment - max(1, time)]
    return WeightedStream(places=places, times=times, at=chosen, weights=weights)


def _inside(theory: Theory, points: Floats) -> Floats:
    array = np.asarray(points, dtype=np.float64)
    if array.shape != (theory.points, theory.dimensions):
        raise UsageError(
            f"Points have the shape {array.shape}.",
            expected=f"({theory.points}, {theory.dimensions})",
        )
    if np.isinf(array).any():
        raise DataError("Points are not all finite.", do="Leave such rows out beforehand.")
    norms = lengths(array)
    moved: Floats = array * np.minimum(1.0, 0.5 / np.maximum(norms, 0.5))[:, None]
    return moved


def _union(born: list[Born], dimensions: int) -> tuple[Floats, Ints]:
    """Distinct places in the order of birth, the origin first."""
    known: dict[bytes, tuple[int, Floats]] = {}
    origin = np.zeros(dimensions)
    known[origin.tobytes()] = (0, origin)
    one = [
        (time, place)
        for own in born
        for time, place in zip(own.times.tolist(), own.places, strict=True)
    ]
    for time, place in sorted(one, key=lambda pair: pair[0]):
        known.setdefault((place + 0.0).tobytes(), (time, place))
    return np.array([place for _, place in known.values()]), np.array(
        [time for time, _ in known.values()], dtype=np.int64
    )


def _never_falling(noisy: Ints) -> Ints:
    found: Ints = np.maximum(np.maximum.accumulate(noisy), 0)
    return found


def _uniforms(key: bytes, count: int) -> Floats:
    """Numbers in (0, 1), 53 bits each; none is 0, so that a rate of 0 never chooses."""
    words = BlockPRF(key).blocks(Coordinates.of_indices(count))[:, 0]
    uniforms: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return uniforms
