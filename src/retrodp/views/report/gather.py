"""What one release published over the rounds, read once.

Promise: every number comes from a published answer. Where a release has so many numbers that reading all rounds
would take minutes, rounds are left out evenly and the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from retrodp.mechanisms.answer import Answer, Figure
from retrodp.views.published import Published
from retrodp.views.series import Series, cut_to, series_of, series_of_keys

MOST_FIGURES = 6_000_000
"""Published values of a release that are read; about as many as a machine reads in a minute."""

ANSWER = 20
"""What reading an answer costs besides its values, in values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The answers of a release, cut to some bins.

    Attributes:
        last: The newest answer, whole.
        answers: Of the same shape as `last`, by round.
        keys: The bins that were read; empty for a scalar.
        of: How many rounds have such an answer.
    """

    last: Answer
    answers: tuple[Answer, ...]
    keys: tuple[str, ...]
    of: int

    @property
    def note(self) -> str:
        """What was left out, as a sentence; "" if nothing was."""
        if len(self.answers) == self.of:
            return ""
        return f"Of {self.of:,} rounds {len(self.answers):,}, evenly spread, were read."

    def scalar(self) -> Series:
        """The series of a scalar release."""
        figures = [answer.figures()[0] for answer in self.answers]
        return series_of(self.last.release, None, self.answers, figures)

    def keyed(self, keys: Sequence[str]) -> dict[str, Series]:
        """The series of some of the bins."""
        return series_of_keys(self.last.release, keys, self.answers)


def last_answer(published: Published, release: str) -> Answer | None:
    """The newest answer of a release; None before the first."""
    for round_ in reversed(published.rounds):
        if (answer := published.answer(round_, release)) is not None:
            return answer
        if release in {str(own["name"]) for own in published.resolved.releases}:
            return None
    return None


def history(published: Published, last: Answer, keys: Sequence[str]) -> History:
    """The answers of a release up to its newest one, cut to some bins."""
    rounds = [round_ for round_ in published.rounds if round_ <= last.round]
    stride = max(1, -(-len(rounds) * (len(last) + ANSWER) // MOST_FIGURES))
    # Counted from the end, so that the newest round is always among them.
    read = frozenset(rounds[::-1][::stride])
    wanted = tuple(keys)
    answers = [
        answer if answer.keys is None else cut_to(answer, wanted)
        for answer in published.each(
            releases=[last.release], last=last.round, wanted=lambda round_, _: round_ in read
        )
        if (answer.keys is None) == (last.keys is None) and answer.stamps is None
    ]
    of = len(rounds) if stride > 1 else len(answers)
    return History(last=last, answers=tuple(answers), keys=wanted, of=of)


def largest(answer: Answer, most: int) -> list[Figure]:
    """The largest bins of an answer, largest first; equal ones by key."""
    assert answer.keys is not None
    values = answer.values
    places = sorted(
        range(len(values)), key=lambda place: (-_size(answer, place), (answer.keys or ())[place])
    )
    chosen = [answer.keys[place] for place in places[:most]]
    found = {figure.key: figure for figure in cut_to(answer, chosen).figures()}
    return [found[key] for key in chosen if key in found]


def _size(answer: Answer, place: int) -> Fraction | int:
    value = answer.values[place]
    if value is not None:
        return value
    return 0 if answer.each is None else answer.each[place].high


def spread(answers: Sequence[Answer], most: int) -> list[Answer]:
    """At most so many, evenly, the newest among them."""
    stride = max(1, -(-len(answers) // most))
    return list(answers)[::-1][::stride][::-1]
