"""Streams and exact dense balls for the tests of the theorem on semi-coresets."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.counting import Counter
from retrodp.clustering.solver import Floats, lengths
from retrodp.clustering.theory import Constants, Sketch
from retrodp.privacy.budget import PureDP

FACTOR = 3.0


def clusters(points: int, *, seed: int, spread: float = 0.005) -> tuple[Floats, Floats]:
    """Points around two places far from the origin, in random order, and these places."""
    generator = np.random.default_rng(seed)
    centres = np.array([[0.42, 0.0], [-0.3, 0.3]])
    own = centres[generator.integers(0, 2, points)]
    return own + spread * generator.normal(size=(points, 2)), centres


def cost(points: Floats, centres: Floats, power: float) -> float:
    """Of the points, to their nearest centre."""
    return float((nearest(points, centres) ** power).sum())


def nearest(points: Floats, centres: Floats) -> Floats:
    """Distance of each point to its nearest centre."""
    found: Floats = np.array([lengths(points - centre) for centre in centres]).min(axis=0)
    return found


def exact_balls(tau: int) -> Callable[[Floats, int], Floats]:
    """Dense balls without noise: definition 7 with factor 3, whatever the radius.

    The narrowest ball around one of the points that holds tau of them is taken out, as often as there
    are as many left. A ball B(u, r) with tau points is first met by one of a radius of at most 2 r,
    so the centre of that one lies within 3 r of u.
    """

    def found(kept: Floats, _: int) -> Floats:
        left, places = kept, []
        while len(left) >= tau:
            away = np.array([np.sort(lengths(left - one))[tau - 1] for one in left])
            place = left[int(away.argmin())]
            places.append(place)
            left = left[lengths(left - place) > away.min()]
        return np.array(places).reshape(-1, kept.shape[1])

    return found


def sketch(points: int, guess: float, *, tau: int, k: int, power: float) -> Sketch:
    """Parameters of algorithm 2 with the constants of lemma 10 for factor 3."""
    r_min = (guess / points) ** (1 / power)
    rings = max(1, int(np.ceil(-np.log2(r_min))))
    near, least = Constants.of(FACTOR, power)
    return Sketch(
        guess=guess,
        r_min=r_min,
        rings=rings,
        calls=int(np.ceil(8 * k * rings * (3 + least + 2 * near))),
        tau=tau,
        noise=1,
        size=points,
        dense=PureDP(1),
        counter=Counter(times=points, budget=PureDP(Fraction(100))),
    )


def exact_count(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Without noise."""
    return np.cumsum(chosen, dtype=np.int64)
