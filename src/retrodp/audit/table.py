"""Many plays of one adaptive game at once, on noise that is drawn as the release draws it.

Promise: the adversary's moves are a function of the board; world 0 adds the challenge life to its
moves and world 1 does not, and nothing else differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.adversaries import Adversary, Board, Moves
from retrodp.errors import UsageError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import AnyMechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Where many plays of one game are made at once.

    Attributes:
        noise: Of the release under attack.
        thresholds: Of a sparse release, one a round, else None.
    """

    noise: CalibratedNoise
    thresholds: tuple[int, ...] | None

    @classmethod
    def of(cls, mechanism: AnyMechanism) -> Table:
        """For a count or a histogram."""
        match mechanism:
            case SparseHistogram():
                return cls(noise=mechanism.noise, thresholds=mechanism.thresholds)
            case Counter() | Histogram():
                return cls(noise=mechanism.noise, thresholds=None)
            case _:
                raise UsageError(f"{mechanism.name} cannot be played against.")

    def play(self, adversary: Adversary, keys: KeyTree, *, plays: int, challenged: bool) -> Board:
        """Play to the end.

        Args:
            adversary: Of whatever strategy.
            keys: Every play has coordinates of its own under them.
            plays: How many.
            challenged: World 0, in which the challenge is real; else it is left out.

        Returns:
            The adversary's view when the horizon is over.
        """
        horizon, bins = self.noise.horizon, adversary.bins
        where = Coordinates.of_indices(plays * bins)
        board = new_board(horizon, plays=plays, bins=bins)
        own = np.zeros((plays, bins), dtype=np.int64)
        for round_ in range(1, horizon + 1):
            moves = adversary.moves(board)
            own = own + moves.own
            settle(board, moves)
            total = own + (challenge_now(board, bins) if challenged else 0)
            value = total + self.noise.draw(round_, keys, where).reshape(plays, bins)
            shown = np.ones((plays, bins), dtype=np.bool_)
            if self.thresholds is not None:
                threshold = self.thresholds[round_ - 1]
                shown = (total >= 1) & (value >= threshold)
                value = np.where(shown, value, threshold - 1)
            publish(board, value, shown, own)
        return board


def new_board(horizon: int, *, plays: int, bins: int) -> Board:
    """Before round 1."""
    return Board(
        round=1,
        horizon=horizon,
        noisy=np.zeros((plays, bins, 0)),
        present=np.zeros((plays, bins, 0), dtype=np.bool_),
        own=np.zeros((plays, bins, 0), dtype=np.int64),
        bin=np.full(plays, -1, dtype=np.int64),
        begin=np.zeros(plays, dtype=np.int64),
        end=np.zeros(plays, dtype=np.int64),
    )


def settle(board: Board, moves: Moves) -> None:
    """Note a challenge that is placed or removed; each at most once."""
    removed = moves.remove & board.placed & (board.end == 0)
    board.end[removed] = board.round
    placed = (moves.place >= 0) & ~board.placed
    board.bin[placed] = moves.place[placed]
    board.begin[placed] = board.round


def challenge_now(board: Board, bins: int) -> Ints:
    """1 in the bin of the challenge while its life runs, shape ``(plays, bins)``."""
    there = np.zeros((len(board.bin), bins), dtype=np.int64)
    running = np.flatnonzero(board.placed & (board.end == 0))
    there[running, board.bin[running]] = 1
    return there


def publish(board: Board, value: NDArray[np.int64], shown: NDArray[np.bool_], own: Ints) -> None:
    """Show the adversary a round."""
    board.noisy = np.concatenate([board.noisy, value[:, :, None].astype(np.float64)], axis=2)
    board.present = np.concatenate([board.present, shown[:, :, None]], axis=2)
    board.own = np.concatenate([board.own, own[:, :, None]], axis=2)
    board.round += 1
