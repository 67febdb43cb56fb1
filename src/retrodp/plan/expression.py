"""The `where` language: text, checked against the plan's columns, as a condition on a record.

    comparison  column == 'text', amount >= 12.5, day < '2011-01-01', `two words` != null
    membership  country in ['Germany', 'France', null], product not in ['X']
    truth       paid, not paid                     (boolean columns)
    together    not, and, or, parentheses          (not binds tighter than and, and than or)

Promise: numbers compare exactly, whatever the column's step; a text that no value of the column
can equal is refused. Null fulfils no comparison but `== null` and `!= null`; in a list null is
a value like others. An expression names columns and literals only: it calls and computes nothing.
"""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, cast

from retrodp.errors import PlanError
from retrodp.plan.columns import OTHER, Column
from retrodp.plan.condition import (
    BoolArray,
    Comparator,
    Compare,
    CompareColumns,
    Condition,
    Every,
    Not,
    OneOf,
    Some,
    columns_of,
    evaluate,
)
from retrodp.plan.schema import did_you_mean
from retrodp.plan.tokens import Source, Token

LiteralValue: TypeAlias = str | Fraction | bool | None

_COMPARATORS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_FLIPPED: dict[Comparator, Comparator] = {
    "==": "==",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_NUMERIC = frozenset({"integer", "number"})
_ORDERED = frozenset({"integer", "number", "date", "text"})
_DEEPEST = 50
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition on a record.

    Attributes:
        text: As the plan writes it.
        condition: What it means.
        columns: Names of the columns it reads, in order of appearance.
    """

    text: str
    condition: Condition = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str, columns: Sequence[Column], *, key: str = "where") -> Expression:
        """Read an expression over the plan's columns.

        Args:
            text: The expression.
            columns: The plan's columns.
            key: Dotted path of the plan's key, for the error.

        Raises:
            PlanError: With the character at which reading stopped and what was expected there.
        """
        if len(text) > _LONGEST:
            raise PlanError(f"{key} has {len(text)} characters.", expected=f"at most {_LONGEST}")
        condition = _Parser(Source(text, key), columns).whole()
        return cls(text, condition, columns_of(condition))

    def evaluate(self, columns: Mapping[str, Sequence[object]], length: int) -> BoolArray:
        """Which records fulfil the condition.

        Args:
            columns: Canonical values by column name, each of `length`; see `plan.columns`.
            length: Records.

        Returns:
            Booleans, shape `(length,)`.
        """
        return evaluate(self.condition, columns, length)


@dataclass(frozen=True, slots=True)
class _Value:
    """A literal and where it stands."""

    value: LiteralValue
    at: int


@dataclass(frozen=True, slots=True)
class _Named:
    """A column and where it is named."""

    column: Column
    at: int


class _Parser:
    """Recursive descent over the tokens; each method reads one rule of the grammar."""

    def __init__(self, source: Source, columns: Sequence[Column]) -> None:
        self._source = source
        self._columns = {column.name: column for column in columns}
        self._tokens = list(source.tokens())
        self._next = 0
        self._depth = 0

    def whole(self) -> Condition:
        condition = self._some()
        if self._token.kind != "end":
            raise self._source.refusal(
                self._token.at, "the condition has ended", expected="and, or"
            )
        return condition

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *words: str) -> str | None:
        """The next word, if it is one of these."""
        token = self._token
        if token.kind in {"keyword", "sign"} and token.text in words:
            self._next += 1
            return token.text
        return None

    def _require(self, word: str) -> None:
        if self._take(word) is None:
            raise self._source.refusal(self._token.at, f"{word} is missing", expected=word)

    def _some(self) -> Condition:
        parts = [self._every()]
        while self._take("or"):
            parts.append(self._every())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _every(self) -> Condition:
        parts = [self._negation()]
        while self._take("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _negation(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._source.refusal(
                self._token.at, f"more than {_DEEPEST} conditions are nested"
            )
        if self._take("not"):
            condition: Condition = Not(self._negation())
        elif self._take("("):
            condition = self._some()
            self._require(")")
        else:
            condition = self._comparison()
        self._depth -= 1
        return condition

    def _comparison(self) -> Condition:
        left = self._operand()
        at = self._token.at
        if self._take("in"):
            return self._membership(left, at)
        if self._take("not"):
            self._require("in")
            return Not(self._membership(left, at))
        comparator = self._take(*_COMPARATORS)
        if comparator is None:
            return self._truth(left)
        right = self._operand()
        if self._token.kind == "sign" and self._token.text in _COMPARATORS:
            raise self._source.refusal(
                self._token.at,
                "comparisons do not chain",
                do="Write a < b and b < c.",
            )
        return self._compared(left, cast("Comparator", comparator), right, at)

    def _compared(
        self, left: _Named | _Value, comparator: Comparator, right: _Named | _Value, at: int
    ) -> Condition:
        match left, right:
            case _Named(), _Named():
                return self._two_columns(left.column, comparator, right.column, at)
            case _Named(), _Value():
                return self._with_literal(left.column, comparator, right, at)
            case _Value(), _Named():
                return self._with_literal(right.column, _FLIPPED[comparator], left, at)
            case _:
                raise self._source.refusal(
                    at, "two literals are compared", expected="a column on one side"
                )

    def _operand(self) -> _Named | _Value:
        token = self._token
        self._next += 1
        match token.kind, token.text:
            case "name", name:
                if name in self._columns:
                    return _Named(self._columns[name], token.at)
                known = [*self._columns]
                raise self._source.refusal(
                    token.at,
                    f"there is no column {name!r}",
                    expected=f"one of {', '.join(known)}" if known else "",
                    do=did_you_mean(name, [*known, "true", "false", "null", "and", "or", "not"]),
                )
            case "text", text:
                return _Value(unicodedata.normalize("NFC", text), token.at)
            case "number", digits:
                return _Value(Fraction(digits), token.at)
            case "keyword", ("true" | "false" | "null") as word:
                return _Value({"true": True, "false": False, "null": None}[word], token.at)
            case _:
                raise self._source.refusal(
                    token.at, "a condition is incomplete", expected="a column or a literal"
                )

    def _truth(self, operand: _Named | _Value) -> Condition:
        if isinstance(operand, _Named) and operand.column.type == "boolean":
            return Compare(operand.column.name, "==", value=True)
        raise self._source.refusal(
            self._token.at,
            "only a boolean column is a condition by itself",
            expected="one of == != < <= > >= in, not in",
        )

    def _membership(self, operand: _Named | _Value, at: int) -> Condition:
        if not isinstance(operand, _Named):
            raise self._source.refusal(
                operand.at, "in asks about a column", expected="a column before in"
            )
        self._require("[")
        literals: list[_Value] = []
        while self._take("]") is None:
            if literals:
                self._require(",")
            literal = self._operand()
            if not isinstance(literal, _Value):
                raise self._source.refusal(
                    literal.at, "a list holds literals only", expected="a literal"
                )
            literals.append(literal)
        if not literals:
            raise self._source.refusal(at, "the list is empty", expected="at least one literal")
        column = operand.column
        values = (self._canonical(column, each) for each in literals if each.value is not None)
        return OneOf(
            column.name,
            frozenset(value for value in values if not isinstance(value, Fraction)),
            null=any(literal.value is None for literal in literals),
        )

    def _two_columns(
        self, left: Column, comparator: Comparator, right: Column, at: int
    ) -> Condition:
        numeric = left.type in _NUMERIC and right.type in _NUMERIC
        if not numeric and left.type != right.type:
            raise self._source.refusal(
                at, f"{left.name} is {left.type} and {right.name} is {right.type}"
            )
        self._refuse_order(left, comparator, at)
        if not numeric:
            return CompareColumns(left.name, comparator, right.name)
        ratio = (left.step or Fraction(1)) / (right.step or Fraction(1))
        return CompareColumns(left.name, comparator, right.name, ratio.numerator, ratio.denominator)

    def _with_literal(
        self, column: Column, comparator: Comparator, literal: _Value, at: int
    ) -> Condition:
        if literal.value is None:
            if comparator not in {"==", "!="}:
                raise self._source.refusal(at, "null has no order", expected="== null or != null")
            null = OneOf(column.name, frozenset(), null=True)
            return null if comparator == "==" else Not(null)
        self._refuse_order(column, comparator, at)
        value = self._canonical(column, literal)
        if not isinstance(value, Fraction):
            return Compare(column.name, comparator, value)
        return _between_steps(column.name, comparator, value)

    def _refuse_order(self, column: Column, comparator: Comparator, at: int) -> None:
        if comparator not in {"==", "!="} and column.type not in _ORDERED:
            raise self._source.refusal(
                at, f"{column.name} is {column.type}, which has no order", expected="== or !="
            )

    def _canonical(self, column: Column, literal: _Value) -> str | int | bool | Fraction:
        """The literal as the column's canonical value; a Fraction if between two grid points."""
        value, at = literal.value, literal.at
        match column.type, value:
            case "integer" | "number", Fraction():
                steps = value / (column.step or 1)
                return steps.numerator if steps.denominator == 1 else steps
            case "boolean", bool():
                return value
            case "text", str():
                return value
            case "category", str():
                return self._planned(column, value, at)
            case "date", str():
                return self._day(column, value, at)
            case _:
                expected = {
                    "integer": "a number",
                    "number": "a number",
                    "boolean": "true or false",
                    "text": "a text in quotes",
                    "category": "a text in quotes",
                    "date": "a date in quotes, such as '2010-12-01'",
                }[column.type]
                raise self._source.refusal(at, f"{column.name} is {column.type}", expected=expected)

    def _planned(self, column: Column, value: str, at: int) -> str:
        planned = [*column.values, OTHER] if column.other else [*column.values]
        if value in planned:
            return value
        raise self._source.refusal(
            at,
            f"{column.name} is never {value!r}",
            expected=f"one of its values: {', '.join(planned[:20])}",
            do=did_you_mean(value, planned),
        )

    def _day(self, column: Column, value: str, at: int) -> str:
        try:
            day = dt.date.fromisoformat(value).isoformat()
        except ValueError:
            day = ""
        if day != value:
            raise self._source.refusal(
                at, f"{column.name} is date", expected="a date such as '2010-12-01'"
            )
        return day


def _between_steps(column: str, comparator: Comparator, steps: Fraction) -> Condition:
    """A comparison with a number that no value of the column equals."""
    match comparator:
        case "==":
            return OneOf(column, frozenset())
        case "!=":
            return Not(OneOf(column, frozenset(), null=True))
        case "<" | "<=":
            return Compare(column, "<=", math.floor(steps))
        case ">" | ">=":
            return Compare(column, ">=", math.ceil(steps))
