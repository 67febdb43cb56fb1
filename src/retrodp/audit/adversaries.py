"""Adversaries of the adaptive game: what each does next, given all that was published so far.

Promise: a strategy is a pure function of the board, so that a game can be played again; it sees
published numbers and its own moves, never an exact total, a key or the world it is in.

All plays of a strategy are made at once: arrays have one row a play.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.structure import Structure, worst_windows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class Board:
    """What the adversary knows when a round opens.

    Attributes:
        round: The round that opens; rounds before it are published.
        horizon: Rounds in all.
        noisy: Published values of rounds 1..round - 1, shape ``(plays, bins, rounds)``; where a bin
            is absent, the least value it could have.
        present: Whether the bin was published, same shape.
        own: The adversary's own records in each bin, same shape.
        bin: Where the challenge was placed, -1 if not yet, shape ``(plays,)``.
        begin: In which round, 0 if not yet.
        end: In which round it was deleted, 0 if not yet.
    """

    round: int
    horizon: int
    noisy: Floats
    present: NDArray[np.bool_]
    own: Ints
    bin: Ints
    begin: Ints
    end: Ints

    @property
    def noise(self) -> Floats:
        """Published values less the adversary's own records."""
        result: Floats = self.noisy - self.own
        return result

    @property
    def placed(self) -> NDArray[np.bool_]:
        """Plays whose challenge began."""
        result: NDArray[np.bool_] = self.bin >= 0
        return result

    def chosen(self, values: NDArray[np.float64]) -> Floats:
        """Of values by bin, that of the challenge's bin (of bin 0 where there is none yet)."""
        result: Floats = np.take_along_axis(values, np.maximum(self.bin, 0)[:, None], axis=1)[:, 0]
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What the adversary does in a round.

    Attributes:
        own: Change of its own records, shape ``(plays, bins)``.
        place: Bin in which the challenge is added, or -1, shape ``(plays,)``.
        remove: Whether the challenge is deleted, shape ``(plays,)``.
    """

    own: Ints
    place: Ints
    remove: NDArray[np.bool_]

    @classmethod
    def none(cls, board: Board) -> Moves:
        """Nothing happens."""
        plays, bins = board.noisy.shape[:2]
        return cls(
            own=np.zeros((plays, bins), dtype=np.int64),
            place=np.full(plays, -1, dtype=np.int64),
            remove=np.zeros(plays, dtype=np.bool_),
        )


class Adversary(Protocol):
    """A strategy of KKMNS appendix B: it places one challenge, once, and may remove it again."""

    @property
    def name(self) -> str:
        """For the report."""

    @property
    def bins(self) -> int:
        """How many bins it looks at."""

    def moves(self, board: Board) -> Moves:
        """What it does in the round that opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oblivious:
    """The worst window, whatever is published."""

    structure: Structure
    law: str
    longest: int | None = None
    name: str = "oblivious, worst window"
    bins: int = 1

    def moves(self, board: Board) -> Moves:
        """Place and remove on fixed rounds."""
        (worst,) = worst_windows(self.structure, law=self.law, longest=self.longest, most=1)
        moves = Moves.none(board)
        if board.round == worst[0]:
            moves.place[:] = 0
        moves.remove[:] = board.round == worst[1]
        return moves


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactiveDeleter:
    """Fills all bins, empties those whose noise is high, and puts the challenge where it is highest.

    The challenge is taken out when the bin's published value falls.
    """

    crowd: int
    name: str = "empties bins of high noise"
    bins: int = 4

    def moves(self, board: Board) -> Moves:
        """Fill in round 1, react from round 2 on."""
        moves = Moves.none(board)
        if board.round == 1:
            moves.own[:] = self.crowd
            return moves
        last = board.noise[:, :, -1]
        waiting = ~board.placed & (board.round >= 3)
        moves.place[waiting] = np.argmax(last[waiting], axis=1)
        running = board.placed & (board.end == 0)
        if board.round >= 4:
            fell = board.chosen(last) < board.chosen(board.noise[:, :, -2])
            moves.remove[:] = running & fell & (board.begin < board.round)
        high = (last > 0) & (board.own[:, :, -1] > 0)
        high[np.arange(len(high)), np.maximum(board.bin, 0)] &= ~board.placed
        moves.own[high] = -board.own[:, :, -1][high]
        return moves


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdHunter:
    """Fills many bins, learns their noise, empties them, and hides the challenge in the best one.

    The best bin is the one whose noise of the rounds to come, predicted from what it saw, comes
    closest to the threshold. What remains is one record in an otherwise empty bin: if it is
    published at all, the world is known.
    """

    structure: Structure
    crowd: int
    watched: int
    name: str = "hunts the threshold in emptied bins"
    bins: int = 2_000

    def moves(self, board: Board) -> Moves:
        """Watch some rounds, empty all bins, place one record where the noise will be highest."""
        moves = Moves.none(board)
        if board.round == 1:
            moves.own[:] = self.crowd
        elif board.round == self.watched + 1:
            moves.own[:] = -self.crowd
            weights = self.structure.weights
            covariance = weights @ weights.T
            seen, ahead = slice(0, self.watched), slice(self.watched, None)
            gain = np.linalg.solve(
                covariance[seen, seen] + 1e-9 * np.eye(self.watched), covariance[seen, ahead]
            )
            predicted = board.noise[:, :, : self.watched] @ gain
            moves.place[:] = np.argmax(predicted.max(axis=2), axis=1)
        return moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Hider:
    """One record in an empty bin from round 1 on, whatever is published."""

    name: str = "oblivious, a bin of its own"
    bins: int = 1

    def moves(self, board: Board) -> Moves:
        """Place it in round 1."""
        moves = Moves.none(board)
        if board.round == 1:
            moves.place[:] = 0
        return moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Averager:
    """Adds and deletes the same record of its own in turn, to average the noise away.

    The challenge is that very record, in the second half.
    """

    name: str = "averages one record added again and again"
    bins: int = 1

    def moves(self, board: Board) -> Moves:
        """Its own record is there in every second round; the challenge from the middle on."""
        moves = Moves.none(board)
        moves.own[:] = 1 if board.round % 2 else -1
        if board.round == board.horizon // 2 + 1:
            moves.place[:] = 0
        return moves


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceAttacker:
    """Begins the challenge after noise below 0 and ends it after noise above: ends that adapt."""

    name: str = "ends of the window follow the sign of the noise"
    bins: int = 1
    crowd: int = 0

    def moves(self, board: Board) -> Moves:
        """Wait for a fall; leave at the next rise; begin in the last round if there was none."""
        moves = Moves.none(board)
        if board.round == 1:
            moves.own[:] = self.crowd
            return moves
        last = board.noise[:, 0, -1]
        waiting = ~board.placed & ((last < 0) | (board.round == board.horizon))
        moves.place[waiting] = 0
        moves.remove[:] = board.placed & (board.end == 0) & (last > 0)
        return moves
