"""How published numbers are written: exact decimals for machines, grouped digits for people.

Everything here is arithmetic on texts and whole steps; it knows no release and no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from retrodp.errors import StoreCorruptError

_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?(?:/[1-9][0-9]*)?)")
_SMALL, _LARGE = Decimal("1e-4"), Decimal("1e15")


@dataclass(frozen=True, slots=True)
class Grid:
    """Whole steps as exact decimals: `retrodp.plan.decimals.decimal_text` for many values.

    Attributes:
        digits: Digits after the point of a step.
        factor: A step, in units of the last of these digits.
    """

    digits: int
    factor: int

    @classmethod
    def of(cls, step: Fraction) -> Grid:
        """The grid of multiples of a step.

        Raises:
            StoreCorruptError: If the step is no decimal; no plan has such a step.
        """
        denominator = step.denominator
        digits = 0
        # A decimal needs no more digits than its denominator has bits.
        while 10**digits % denominator and digits <= denominator.bit_length():
            digits += 1
        if 10**digits % denominator:
            raise StoreCorruptError(
                f"A release has steps of {step}, which is not a decimal.",
                do="Restore the store from a back-up.",
            )
        return cls(digits, step.numerator * 10**digits // denominator)

    def text(self, steps: int) -> str:
        """Shortest exact decimal, without exponent."""
        whole = steps * self.factor
        if not self.digits:
            return str(whole)
        body = self._fixed(whole)
        return body.rstrip("0").rstrip(".")

    def _fixed(self, whole: int) -> str:
        sign = "-" if whole < 0 else ""
        digits = str(abs(whole)).rjust(self.digits + 1, "0")
        return f"{sign}{digits[: -self.digits]}.{digits[-self.digits :]}"


_SINGULAR = {"are": "is", "were": "was"}


def plain(number: str) -> str:
    """A decimal text without exponent: "1.2e+06" is "1200000"."""
    if "e" not in number and "E" not in number:
        return number
    text = f"{Decimal(number):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def grouped(number: str, digits: int = 0) -> str:
    """A decimal text with thousands separators and at least `digits` digits after the point."""
    whole, _, fraction = plain(number).partition(".")
    sign = "-" if whole.startswith("-") else ""
    fraction = fraction.ljust(digits, "0")
    return f"{sign}{int(whole.lstrip('-')):,}{'.' if fraction else ''}{fraction}"


def at_most(exact: Fraction, *, significant: int = 6) -> str:
    """Least decimal with that many significant digits that is not below `exact`.

    What is reported of a budget is never smaller than what was spent.
    """
    upward = Context(prec=significant, rounding=ROUND_CEILING)
    least = upward.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize()
    scientific = 0 < least < _SMALL or least >= _LARGE
    return f"{least:E}".lower() if scientific else f"{least:f}"


def counted(number: int, noun: str, verb: str = "") -> str:
    """So many of something: "1 row", "2 rows"; with a verb of several "1 row is", "2 rows are"."""
    many = f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
    if not verb:
        return many
    return f"{many} {_SINGULAR.get(verb, f'{verb}s') if number == 1 else verb}"


def percent(level: Fraction) -> str:
    """A share or coverage as per cent, at most four significant digits: "95%"."""
    return f"{float(level * 100):.4g}%"


def shared_level(levels: Iterable[str]) -> str:
    """For a heading: " 95%" if all have this one coverage, else nothing."""
    found = set(levels)
    return f" {percent(Fraction(found.pop()))}" if len(found) == 1 else ""


def printable(label: str) -> str:
    """A label that cannot move the cursor or colour the screen: controls are escaped."""
    if label.isprintable():
        return label
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in label
    )


def natural(label: str) -> tuple[str | Fraction, ...]:
    """What sorts labels by the numbers in them: "5" before "10", and "1/3" between them."""
    parts = _NUMBER.split(label)
    return tuple(Fraction(part) if place % 2 else part for place, part in enumerate(parts))
