"""A published number over the rounds, as arrays, for plots and reports.

Promise: exactly what was published, nothing smoothed and nothing filled in: a round in which a
sparse histogram did not publish a label is NaN, and stands for "below the threshold", not for 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.views.published import Published


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One release and key over n published rounds; in units of the statistic.

    Attributes:
        release: Name of the release.
        key: Label of the bin; None for a scalar.
        rounds: int64, shape ``(n,)``, rising.
        value: float64, shape ``(n,)``; NaN where the label is not published.
        half: Half width of each round's own interval, shape ``(n,)``.
        half_all: Half width for all rounds of the horizon at once, shape ``(n,)``.
        absent_below: Threshold of a sparse release; None for others.
    """

    release: str
    key: str | None
    rounds: NDArray[np.int64]
    value: NDArray[np.float64]
    half: NDArray[np.float64]
    half_all: NDArray[np.float64]
    absent_below: float | None

    @property
    def low(self) -> NDArray[np.float64]:
        """Lower end for each round alone."""
        return self.value - self.half

    @property
    def high(self) -> NDArray[np.float64]:
        """Upper end for each round alone."""
        return self.value + self.half

    @property
    def low_all(self) -> NDArray[np.float64]:
        """Lower end for all rounds at once."""
        return self.value - self.half_all

    @property
    def high_all(self) -> NDArray[np.float64]:
        """Upper end for all rounds at once."""
        return self.value + self.half_all


def scalar_series(published: Published, release: str) -> Series:
    """A release that is one number.

    Raises:
        UsageError: If the plan has no such release or it has bins.
    """
    answers = list(published.each(releases=[release]))
    if any(answer.keys is not None for answer in answers):
        raise UsageError(f"{release} has one number a key.", do="Name the key.")
    step = float(published.steps[release])
    return _series(release, None, answers, [answer.values[0] * step for answer in answers])


def key_series(published: Published, release: str, keys: Sequence[str]) -> dict[str, Series]:
    """Some bins of a release, in the order of `keys`; one pass over its answers.

    Raises:
        UsageError: If the plan has no such release or it is one number.
    """
    answers = []
    values: Mapping[str, list[float]] = {key: [] for key in keys}
    step = float(published.steps.get(release, 1))
    for answer in published.each(releases=[release]):
        if answer.keys is None:
            raise UsageError(f"{release} is one number and has no keys.", do="Leave the key out.")
        found = dict(zip(answer.keys, answer.values, strict=True))
        for key, column in values.items():
            steps = found.get(key)
            column.append(np.nan if steps is None else steps * step)
        answers.append(answer)
    return {key: _series(release, key, answers, column) for key, column in values.items()}


def top_keys(published: Published, release: str, top: int) -> tuple[str, ...]:
    """Labels of the largest bins in the last published round, largest first."""
    last = published.last_round
    answer = published.answer(last, release) if last else None
    if answer is None or answer.keys is None:
        return ()
    pairs = zip(answer.keys, answer.values, strict=True)
    return tuple(key for key, _ in sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:top])


def _series(
    release: str, key: str | None, answers: Sequence[Answer], values: Sequence[float]
) -> Series:
    thresholds = {
        float(answer.threshold * answer.step) for answer in answers if answer.threshold is not None
    }
    return Series(
        release=release,
        key=key,
        rounds=np.array([answer.round for answer in answers], dtype=np.int64),
        value=np.array(values, dtype=np.float64),
        half=np.array([float(answer.half * answer.step) for answer in answers], dtype=np.float64),
        half_all=np.array(
            [float(answer.half_all * answer.step) for answer in answers], dtype=np.float64
        ),
        absent_below=max(thresholds, default=None),
    )
