"""Vintages of revised releases: what was published of a stamp first, last, and in between.

Promise: made of published answers alone. A **vintage** is the series as one round published it. The
**first release** of a stamp is the value of the stamp's own round, its **latest release** that of the
last round that published it, and a **revision triangle** holds all of them, stamps down, rounds
across. Noise differs from vintage to vintage: a revision may be noise, and says so when it fits
within the intervals of its two values.

Source of the words: Croushore, Stark (2001), on real-time data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.views.published import Published

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Vintage = str | int
"""Of "first", "latest", "all", or a round: as it was known then."""

VINTAGES = ("first", "latest", "all")


def vintage_of(text: str) -> Vintage:
    """The vintage that a command names.

    Raises:
        UsageError: It is neither a word nor a round.
    """
    if text in VINTAGES:
        return text
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise UsageError(f"There is no vintage {text!r}.", expected=f"{', '.join(VINTAGES)} or a round")


def looks_back(entry: Mapping[str, Any]) -> int | None:
    """Stamps that each round of a release publishes, from its resolved entry; None: not revised."""
    return None if "stamps" not in entry else int(entry["stamps"]["rounds"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which round a stamp is shown as of.

    Attributes:
        vintage: As asked for.
        last: Last round that counts as published.
    """

    vintage: Vintage
    last: int

    def shows(self, round_: int, stamp: int, rounds: int) -> bool:
        """Whether a round's value of a stamp is shown; `rounds` are those that publish a stamp."""
        match self.vintage:
            case "all":
                return True
            case "first":
                return stamp == round_
            case _:
                return round_ == min(self._as_of, stamp + rounds - 1)

    def needs(self, round_: int, rounds: int) -> bool:
        """Whether any value of a round can be shown."""
        if self.vintage in {"all", "first"}:
            return True
        return round_ == self._as_of or rounds <= round_ < self._as_of

    @property
    def _as_of(self) -> int:
        return self.vintage if isinstance(self.vintage, int) else self.last


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triangle:
    """Every published value of one key; in units of the statistic.

    Attributes:
        release: Name of the release.
        key: Label of the bin; None for a scalar.
        stamps: Rows, int64, shape ``(n,)``, rising.
        rounds: Columns, int64, shape ``(m,)``, rising.
        value: float64, shape ``(n, m)``; NaN where a round does not publish a stamp.
        half: Half width of the interval of the round alone, likewise.
    """

    release: str
    key: str | None
    stamps: Ints
    rounds: Ints
    value: Floats
    half: Floats

    @property
    def first(self) -> Floats:
        """First release of each stamp, shape ``(n,)``; NaN where it lies outside the triangle."""
        return self._picked(self.value, first=True)

    @property
    def latest(self) -> Floats:
        """Latest release of each stamp, likewise."""
        return self._picked(self.value, first=False)

    @property
    def revision(self) -> Floats:
        """Latest minus first release."""
        return self.latest - self.first

    @property
    def noise_of_revision(self) -> Floats:
        """Half widths of the first and the latest release added up: a revision within is no news."""
        halves = (self._picked(self.half, first=first) for first in (True, False))
        return sum(halves, np.zeros(len(self.stamps)))

    def _picked(self, values: Floats, *, first: bool) -> Floats:
        picked = np.full(len(self.stamps), np.nan)
        for place in range(len(self.stamps)):
            known = np.flatnonzero(~np.isnan(self.value[place]))
            if len(known):
                picked[place] = values[place, known[0 if first else -1]]
        return picked


def revised_releases(published: Published) -> tuple[str, ...]:
    """Names of the plan's revised releases, in the plan's order."""
    return tuple(name for name, entry in published.entries.items() if "stamps" in entry)


def triangle(
    published: Published,
    release: str,
    key: str | None = None,
    *,
    rounds: Sequence[int] | None = None,
) -> Triangle:
    """The revision triangle of one number or bin.

    Args:
        published: The store.
        release: A revised release.
        key: Label of the bin; None for a scalar.
        rounds: Vintages to show, rising; None for every published round.

    Raises:
        UsageError: The release is not revised, has no such key, or a round is not published.
    """
    if release not in revised_releases(published):
        listed = ", ".join(revised_releases(published)) or "none of this plan"
        raise UsageError(f"{release!r} is no revised release.", expected=listed)
    columns = published.rounds if rounds is None else tuple(rounds)
    answers = [_answer(published, round_, release, key) for round_ in columns]
    newest = max(columns, default=0)
    value = np.full((newest, len(columns)), np.nan)
    half = np.full((newest, len(columns)), np.nan)
    for column, answer in enumerate(answers):
        for stamp, steps, width in _values(answer, key):
            value[stamp - 1, column] = float(answer.step * steps)
            half[stamp - 1, column] = float(answer.step * width)
    return Triangle(
        release=release,
        key=key,
        stamps=np.arange(1, newest + 1),
        rounds=np.array(columns, dtype=np.int64),
        value=value,
        half=half,
    )


def _answer(published: Published, round_: int, release: str, key: str | None) -> Answer:
    answer = published.answer(round_, release)
    if answer is None:
        raise UsageError(
            f"Round {round_} is not published.", expected=f"1 to {published.last_round}"
        )
    if (answer.keys is None) != (key is None):
        what = "is one number a stamp" if answer.keys is None else "has one number a key and stamp"
        raise UsageError(f"{release} {what}.", do="Leave the key out, or name one.")
    sparse = answer.threshold is not None
    if key is not None and not sparse and key not in set(answer.keys or ()):
        raise UsageError(f"{release} has no key {key!r}.")
    return answer


def _values(answer: Answer, key: str | None) -> Iterator[tuple[int, int, int]]:
    """Stamp, value and half width of every value of a key, in steps."""
    assert answer.stamps is not None
    assert answer.spreads is not None
    for place, stamp in enumerate(answer.stamps):
        steps = answer.values[place]
        if steps is not None and (answer.keys is None or answer.keys[place] == key):
            yield stamp, steps, answer.spreads[stamp - answer.first_stamp].half


def document(
    published: Published,
    release: str,
    key: str | None = None,
    *,
    last: int = 14,
    start_text: Callable[[int], str] | None = None,
) -> dict[str, Any]:
    """First release, latest release and revision of the newest stamps, JSON-able.

    Args:
        published: The store.
        release: A revised release.
        key: Label of the bin; None for a scalar.
        last: Stamps to list, the newest ones.
        start_text: How a round is named; by default by when it begins.
    """
    newest = published.last_round
    name = published.start_text if start_text is None else start_text
    if newest == 0:
        return {"format": 1, "release": release, "key": key, "round": 0, "stamps": []}
    oldest = max(1, newest - last + 1)
    found = triangle(published, release, key, rounds=range(oldest, newest + 1))
    columns = zip(
        *(found.first, found.latest, found.revision, found.noise_of_revision), strict=True
    )
    rows = [
        {
            "stamp": stamp,
            "stamp_start": name(stamp),
            **{
                what: None if np.isnan(number) else float(number)
                for what, number in zip(("first", "latest", "revision", "noise"), row, strict=True)
            },
        }
        for stamp, row in zip(found.stamps.tolist(), columns, strict=True)
        if stamp >= oldest
    ]
    return {
        "format": 1,
        "test": published.is_test,
        "release": release,
        "key": key,
        "round": newest,
        "stamps": rows,
    }


def triangle_document(
    published: Published, release: str, key: str | None = None, *, last: int
) -> dict[str, Any]:
    """Every value that the last rounds published of the newest stamps, JSON-able.

    Args:
        published: The store.
        release: A revised release.
        key: Label of the bin; None for a scalar.
        last: Newest stamps and rounds to list.
    """
    newest = published.last_round
    rounds = range(max(1, newest - last + 1), newest + 1)
    found = triangle(published, release, key, rounds=rounds)
    return {
        "format": 1,
        "test": published.is_test,
        "release": release,
        "key": key,
        "rounds": list(rounds),
        "stamps": [
            {
                "stamp": stamp,
                "stamp_start": published.start_text(stamp),
                "values": [None if np.isnan(one) else float(one) for one in found.value[stamp - 1]],
            }
            for stamp in rounds
        ],
    }


def triangle_lines(shown: Mapping[str, Any]) -> Iterator[str]:
    """The triangle as CSV: a line a stamp, a column a round; empty before the stamp's own round."""
    yield ",".join(["stamp", "stamp_start", *(f"round {round_}" for round_ in shown["rounds"])])
    for row in shown["stamps"]:
        values = ("" if one is None else f"{one:.12g}" for one in row["values"])
        yield ",".join([str(row["stamp"]), row["stamp_start"], *values])
