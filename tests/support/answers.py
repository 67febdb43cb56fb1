"""Published values as numbers."""

from __future__ import annotations

from dataclasses import replace

from retrodp.mechanisms.answer import Answer


def values_of(answer: Answer) -> list[int]:
    """The values in steps, all of them there."""
    values = [value for value in answer.values if value is not None]
    assert len(values) == len(answer.values)
    return values


def raised(answer: Answer, by: int) -> Answer:
    """The answer with every value that is there raised."""
    raised_values = (None if value is None else value + by for value in answer.values)
    return replace(answer, values=tuple(raised_values))


def pairs_of(answer: Answer) -> dict[str, int]:
    """Value of each key."""
    assert answer.keys is not None
    return dict(zip(answer.keys, values_of(answer), strict=True))
