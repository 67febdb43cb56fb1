"""An open horizon: epochs of doubling length, each with its share of one budget, stated in advance.

Epoch n has `2^(n-1)` times the rounds of the first (KKMNS remark 3.6). Every epoch is a run of
rounds like a plan with a known horizon, with noise and keys of its own, that starts from the
surviving records; the shares add up to at most 1, so all epochs together spend at most the plan's
budget. The number of epochs is finite, since a calendar ends with the year 9999 and an epoch has
at most 2^20 rounds; so the shares are, too, and all of them are known before the first round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.errors import PlanError
from retrodp.plan.schema import EpochsTable, number, read_table, shown

OPEN = "open"
LONGEST_EPOCH = 1 << 20  # rounds; the longest horizon that a factor covers
ROUNDS_AHEAD = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenHorizon:
    """The epochs of a plan without a known horizon.

    Attributes:
        first: Rounds of epoch 1.
        shares: Of the plan's budget, one an epoch; above 0, together at most 1.
    """

    first: int
    shares: tuple[Fraction, ...]

    @property
    def number(self) -> int:
        """How many epochs there may be."""
        return len(self.shares)

    def rounds(self, epoch: int) -> int:
        """Rounds of an epoch, counted from 1."""
        return self.first << (epoch - 1)

    def before(self, epoch: int) -> int:
        """Rounds of all epochs before it."""
        return self.first * ((1 << (epoch - 1)) - 1)

    def share(self, epoch: int) -> Fraction:
        """Its part of the plan's budget."""
        return self.shares[epoch - 1]

    def rounds_known_at(self, epoch: int) -> int:
        """Rounds of the series whose calendar is kept while an epoch runs.

        Whole epochs: the present one, the next, and further ones up to `ROUNDS_AHEAD` rounds after
        its end, so that updates may wait for rounds of epochs to come.
        """
        enough = self.before(epoch + 1) + ROUNDS_AHEAD
        known = min(epoch + 1, self.number)
        while known < self.number and self.before(known + 1) < enough:
            known += 1
        return self.before(known + 1)

    def facts(self, epoch: int) -> dict[str, Any]:
        """An epoch as documents have it."""
        return {
            "epoch": epoch,
            "rounds": self.rounds(epoch),
            "last_round": self.before(epoch + 1),
            "share": str(self.share(epoch)),
        }

    def to_dict(self) -> dict[str, Any]:
        """`[stream.epochs]` with everything stated."""
        return {"first": self.first, "shares": [str(share) for share in self.shares]}


def read_epochs(raw: object, fits: Callable[[int], bool]) -> OpenHorizon:
    """Check `[stream.epochs]`.

    Args:
        raw: The table.
        fits: Whether so many rounds end before the calendar does.
    """
    path = "stream.epochs"
    if raw is None:
        raise PlanError(
            f'{path} is missing: horizon = "{OPEN}" needs it.',
            expected="[stream.epochs] with first, the rounds of the first epoch",
        )
    table = read_table(EpochsTable, raw, path)
    most = sum(1 for _ in _fitting(table.first, fits))
    if not most:
        raise PlanError(
            f"{path}.first is {table.first}.",
            expected=f"at most {LONGEST_EPOCH} rounds that end before the year 9999",
        )
    if table.shares is not None and table.number not in {None, len(table.shares)}:
        raise PlanError(f"{path} has number and shares that disagree.", do="Leave number out.")
    shares = _shares(table, most, path)
    if len(shares) > most:
        raise PlanError(
            f"{path} has {len(shares)} epochs.",
            expected=f"at most {most}: later ones would have more than {LONGEST_EPOCH} rounds, or "
            "end after the year 9999",
        )
    return OpenHorizon(first=table.first, shares=shares)


def _shares(table: EpochsTable, most: int, path: str) -> tuple[Fraction, ...]:
    if table.shares is None:
        return equal_shares(table.number) if table.number else falling_shares(most)
    shares = tuple(number(share, f"{path}.shares") for share in table.shares)
    if not all(share > 0 for share in shares) or sum(shares) > 1:
        raise PlanError(
            f"{path}.shares is {shown(list(map(str, shares)))}.",
            expected="shares above 0 that add up to at most 1",
        )
    return shares


def equal_shares(epochs: int) -> tuple[Fraction, ...]:
    """The same for each: errors grow with the length of an epoch alone."""
    return (Fraction(1, epochs),) * epochs


def falling_shares(epochs: int) -> tuple[Fraction, ...]:
    """Shares in proportion to 1 / (n (n + 1)), which add up to 1: early epochs are cheap.

    Without an end the same series adds up to 1 as it stands, and each share from the second on is
    above that of 6 / (pi n)^2.
    """
    scale = Fraction(epochs + 1, epochs)
    return tuple(scale / (n * (n + 1)) for n in range(1, epochs + 1))


def _fitting(first: int, fits: Callable[[int], bool]) -> Iterator[int]:
    """Lengths of the epochs that there can be."""
    length, end = first, first
    while length <= LONGEST_EPOCH and fits(end):
        yield length
        length *= 2
        end += length
