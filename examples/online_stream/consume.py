"""Let an online clusterer of your own read what was published.

    python examples/online_stream/consume.py STORE [--river]

Reads published releases only, round after round, as a program elsewhere would that never sees a
point: scikit-learn's MiniBatchKMeans (or river's streaming k-means) learns from the representatives,
weighted by how much each has grown. What it makes of them costs no privacy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.feed import Delivery, deliveries
from retrodp.clustering.online import published_coreset
from retrodp.plan.plan import Plan
from retrodp.views.published import Published

Floats = NDArray[np.float64]

RELEASE = "places"
STEP = 0.01  # kilometres in a grid step of the plan
MIDDLE = np.array([20.0, 25.0])  # of the plan's box
POINTS = 10  # that one step of river stands for


def stream(store: Path) -> Iterator[Delivery]:
    """Every published round, as what it adds for a clusterer that can only add points."""
    with Published.open(store) as published:
        plan = Plan.from_dict(published.resolved.plan)
        columns = [plan.column(name) for name in ("east", "north")]
        answers = (
            published.answer(round_, RELEASE) for round_ in range(1, published.last_round + 1)
        )
        yield from deliveries(
            published_coreset(answer, columns) for answer in answers if answer is not None
        )


def scikit(rounds: Iterator[Delivery], k: int) -> Floats:
    """MiniBatchKMeans, fed what each round adds."""
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415

    model = MiniBatchKMeans(n_clusters=k, n_init=5, random_state=0)
    places, weights = np.empty((0, 2)), np.empty(0)
    for one in rounds:
        places = np.concatenate([places, one.additions.points * STEP])
        weights = np.concatenate([weights, one.additions.weights])
        if len(places) >= k:  # it takes no fewer points at once than it has centres
            model.partial_fit(places, sample_weight=weights)
            places, weights = places[:0], weights[:0]
    centres: Floats = model.cluster_centers_
    return centres


def river(rounds: Iterator[Delivery], k: int) -> Floats:
    """River's streaming k-means, which learns one point at a time.

    It throws its first centres around 0, so that places are told from the middle of the public box.
    """
    cluster: Any = import_module("river.cluster")
    model = cluster.KMeans(n_clusters=k, halflife=0.05, sigma=5, seed=3)
    for one in rounds:
        places = one.additions.points * STEP - MIDDLE
        for place, weight in zip(places, one.additions.weights, strict=True):
            for _ in range(max(1, round(weight / POINTS))):
                model.learn_one(dict(enumerate(place.tolist())))
    found: Floats = np.array([[one[0], one[1]] for one in model.centers.values()]) + MIDDLE
    return found


def centres(store: Path) -> Floats:
    """Those that the last round publishes itself."""
    with Published.open(store) as published:
        answer = published.answer(published.last_round, RELEASE)
    assert answer is not None
    step = float(answer.step)
    found = {tuple(json.loads(one.key)): (one.value or 0) * step for one in answer.figures()}
    return np.array(
        [
            [found["centre", number, name] for name in ("east", "north")]
            for number in range(1, round(found["centres",]) + 1)
        ]
    ).reshape(-1, 2)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--river", action="store_true", help="river in the place of scikit-learn")
    chosen = parser.parse_args(arguments)
    learner = river if chosen.river else scikit
    published = centres(chosen.store)
    learned = learner(stream(chosen.store), len(published))
    for title, places in (("published", published), ("learned from it", learned)):
        print(f"{title}: " + ", ".join(f"({east:.1f}, {north:.1f})" for east, north in places))


if __name__ == "__main__":
    main(sys.argv[1:])
