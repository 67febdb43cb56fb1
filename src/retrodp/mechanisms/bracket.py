"""Brackets around a number of items: what methods that hash publish in the place of a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.noise.processes import Process
from retrodp.noise.tails import half_widths
from retrodp.postprocess.occupancy import Seeing

STORED_DIGITS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """How a bracket's allowed miss is used: half for the noise, a quarter for each end's hash.

    Attributes:
        seeing: The threshold that no noise of any bucket exceeds in any round, with probability
            1 - miss/2.
        rarity: ln(1/chance) that each bound of one end is given, for a round alone.
        rarity_all: For all rounds together.
    """

    seeing: Seeing
    rarity: Decimal
    rarity_all: Decimal

    @classmethod
    def of(
        cls, process: Process, *, miss: Fraction, buckets: int, bounds: int, signed: bool = False
    ) -> Sureness:
        """Settle it from the noise law.

        Args:
            process: Noise of every bucket.
            miss: What the bracket may miss with, for a round and for all of them.
            buckets: N, of all scales or instances.
            bounds: Bounds that each end is the best of.
            signed: Whether buckets are seen on either side of zero.
        """
        horizon = process.factor.horizon
        noise = float(miss / 2 / (horizon * buckets))
        seeing = Seeing(tau=int(half_widths(process, noise).max()), signed=signed)
        return cls.at(seeing, miss=miss, bounds=bounds, horizon=horizon)

    @classmethod
    def at(cls, seeing: Seeing, *, miss: Fraction, bounds: int, horizon: int) -> Sureness:
        """The same for a given threshold."""
        each = miss / 4 / bounds
        return cls(seeing=seeing, rarity=rarity_of(each), rarity_all=rarity_of(each / horizon))

    def spec(self) -> dict[str, Any]:
        """What the resolved plan stores."""
        return {
            "tau": self.seeing.tau,
            "signed": self.seeing.signed,
            "rarity": str(self.rarity),
            "rarity_all": str(self.rarity_all),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Sureness:
        """Read what `spec` wrote."""
        return cls(
            seeing=Seeing(tau=spec["tau"], signed=spec["signed"]),
            rarity=Decimal(spec["rarity"]),
            rarity_all=Decimal(spec["rarity_all"]),
        )


def bracketed(
    release: str,
    round_: int,
    alone: tuple[int, int],
    together: tuple[int, int],
    *,
    level: Fraction,
) -> Answer:
    """An answer without a value: the ends for the round alone and for all rounds.

    Ends that cross, which they do if the allowed miss has happened, meet at the lower one.
    """
    (low, high), (low_all, high_all) = alone, together
    high, high_all = max(low, high), max(low_all, high_all)
    return Answer(
        release=release,
        round=round_,
        keys=None,
        values=(None,),
        step=Fraction(1),
        stddev="",
        half=(high - low + 1) // 2,
        half_all=(high_all - low_all + 1) // 2,
        level=level,
        each=(Bounds("", low, high, low_all, high_all),),
    )


def rarity_of(miss: Fraction) -> Decimal:
    """ln(1/miss), rounded up, as it is stored."""
    with localcontext(Context(prec=STORED_DIGITS)):
        # The last digit of a logarithm is rounded to nearest; a bound needs it rounded up.
        return (Decimal(miss.denominator) / Decimal(miss.numerator)).ln() + Decimal("1e-9")
