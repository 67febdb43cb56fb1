"""A published number over the rounds, as arrays, for plots and reports.

Promise: exactly what was published, nothing smoothed and nothing filled in: a round in which a
sparse histogram did not publish a label is NaN, and stands for "below the threshold", not for 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer, Figure
from retrodp.views.published import Published


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One release and key over n published rounds; in units of the statistic.

    Attributes:
        release: Name of the release.
        key: Label of the bin; None for a scalar.
        rounds: int64, shape ``(n,)``, rising.
        value: float64, shape ``(n,)``; NaN where the label is not published.
        low: Lower end of each round's own interval, shape ``(n,)``; NaN like `value`.
        high: Upper end, likewise.
        low_all: Lower end for all rounds of the horizon at once, likewise.
        high_all: Upper end, likewise.
        absent_below: Threshold of a sparse release; None for others.
    """

    release: str
    key: str | None
    rounds: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    low_all: NDArray[np.float64]
    high_all: NDArray[np.float64]
    absent_below: float | None


def _of_rounds(answers: Sequence[Answer]) -> None:
    """Refuse a revised release, which has a series in every round."""
    if any(answer.stamps is not None for answer in answers):
        raise UsageError(
            f"{answers[0].release} publishes every stamp in every round.",
            do="Read it by `views.vintages`.",
        )


def scalar_series(published: Published, release: str) -> Series:
    """A release that is one number.

    Raises:
        UsageError: If the plan has no such release or it has bins.
    """
    answers = list(published.each(releases=[release]))
    _of_rounds(answers)
    if any(answer.keys is not None for answer in answers):
        raise UsageError(f"{release} has one number a key.", do="Name the key.")
    return series_of(release, None, answers, [answer.figures()[0] for answer in answers])


def key_series(published: Published, release: str, keys: Sequence[str]) -> dict[str, Series]:
    """Some bins of a release, in the order of `keys`; one pass over its answers.

    Raises:
        UsageError: If the plan has no such release or it is one number.
    """
    keys = _check.texts(keys=keys, expected="labels of bins")
    answers = []
    for answer in published.each(releases=[release]):
        _of_rounds([answer])
        if answer.keys is None:
            raise UsageError(f"{release} is one number and has no keys.", do="Leave the key out.")
        answers.append(cut_to(answer, keys))
    return series_of_keys(release, keys, answers)


def cut_to(answer: Answer, keys: Sequence[str]) -> Answer:
    """The answer without the bins that are not among `keys`; of hundreds of thousands, few are read."""
    assert answer.keys is not None
    wanted = frozenset(keys)
    places = [place for place, key in enumerate(answer.keys) if key in wanted]
    return replace(
        answer,
        keys=tuple(answer.keys[place] for place in places),
        values=tuple(answer.values[place] for place in places),
        each=answer.each and tuple(answer.each[place] for place in places),
    )


def series_of_keys(
    release: str, keys: Sequence[str], answers: Sequence[Answer]
) -> dict[str, Series]:
    """Series of some bins, in the order of `keys`, from answers that are sorted by round."""
    rounds = [{figure.key: figure for figure in answer.figures()} for answer in answers]
    return {
        key: series_of(release, key, answers, [found.get(key) for found in rounds]) for key in keys
    }


def top_keys(published: Published, release: str, top: int) -> tuple[str, ...]:
    """Labels of the largest bins in the last published round, largest first."""
    _check.whole(least=0, top=top)
    last = published.last_round
    answer = published.answer(last, release) if last else None
    if answer is None or answer.keys is None:
        return ()
    figures = sorted(answer.figures(), key=lambda figure: (-(figure.value or 0), figure.key))
    return tuple(figure.key for figure in figures[:top])


def series_of(
    release: str, key: str | None, answers: Sequence[Answer], figures: Sequence[Figure | None]
) -> Series:
    """The series of one figure a round; None where a round has none."""
    thresholds = {
        float(answer.threshold * answer.step) for answer in answers if answer.threshold is not None
    }
    steps = np.array([float(answer.step) for answer in answers], dtype=np.float64)

    def column(pick: Callable[[Figure], int | None]) -> NDArray[np.float64]:
        picked = [None if figure is None else pick(figure) for figure in figures]
        numbers = [np.nan if number is None else float(number) for number in picked]
        return np.array(numbers, dtype=np.float64) * steps

    return Series(
        release=release,
        key=key,
        rounds=np.array([answer.round for answer in answers], dtype=np.int64),
        value=column(lambda figure: figure.value),
        low=column(lambda figure: figure.bounds.low),
        high=column(lambda figure: figure.bounds.high),
        low_all=column(lambda figure: figure.bounds.low_all),
        high_all=column(lambda figure: figure.bounds.high_all),
        absent_below=max(thresholds, default=None),
    )
