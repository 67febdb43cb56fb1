"""What a store answers when it takes updates in and when it closes a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.stream.intake import Tally
from retrodp.stream.rejected import RefusedRow

Progress = Callable[[int, int], None]  # rounds done, rounds in all


@dataclass(frozen=True, slots=True)
class Release:
    """What one round published.

    Attributes:
        round: The round, from 1.
        answers: By name of the release, in the order of the plan.
    """

    round: int
    answers: Mapping[str, Answer]

    def __getitem__(self, name: str) -> Answer:
        """The answer of one release."""
        if name not in self.answers:
            raise UsageError(f"The plan has no release {name!r}.", expected=", ".join(self.answers))
        return self.answers[name]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of the rows that were handed in. For the operator only."""

    tally: Tally
    refused: tuple[RefusedRow, ...]
    new: int
    repeated: bool = False
