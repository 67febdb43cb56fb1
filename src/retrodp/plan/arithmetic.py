"""The `linear` language of a `query`: a bounded number made of a record's columns.

    number      2, 0.5
    column      amount                      (integer and number columns; odd names in backquotes)
    condition   [country == 'DE' and gift]  (1 where the condition of the `where` language holds, else 0)
    together    -, +, *, parentheses        (* binds tighter than + and -)

Promise: the value is exact, a whole number of steps, and lies within bounds that follow from the
plan alone; both are worked out when the plan is read. Null in a column that the expression adds or
multiplies makes the whole value 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple, assert_never

import numpy as np

from retrodp.errors import PlanError
from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.plan.schema import did_you_mean
from retrodp.plan.term import (
    Constant,
    Indicator,
    Node,
    Product,
    Range,
    Sum,
    Value,
    added_by,
    columns_of,
    evaluated,
    range_of,
)
from retrodp.plan.tokens import Source

LARGEST_STEPS = 2**53
FINEST = Fraction(1, 10**30)
_DEEPEST = 50
_LONGEST = 10_000

_WORD = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?(?![\w.]))
    | (?P<quoted>`[^`]+`)
    | (?P<name>[^\W\d]\w*)
    | (?P<sign>[-+*()\[])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)
_HINTS = {
    "/": "Multiply by a decimal instead, such as 0.25.",
    "=": "Comparisons stand in brackets: [amount >= 10].",
    "<": "Comparisons stand in brackets: [amount >= 10].",
    ">": "Comparisons stand in brackets: [amount >= 10].",
    "^": "Write a product.",
}


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A bounded number of a record.

    Attributes:
        text: As the plan writes it.
        range: Its grid and bounds.
        columns: Names of the columns it reads, in order of appearance.
        node: What it means.
    """

    text: str
    range: Range
    columns: tuple[str, ...]
    node: Node = field(repr=False)

    @classmethod
    def parse(cls, text: str, columns: Sequence[Column], *, key: str) -> Arithmetic:
        """Read an expression over the plan's columns.

        Args:
            text: The expression.
            columns: The plan's columns.
            key: Dotted path of the plan's key, for the error.

        Raises:
            PlanError: With the character at which reading stopped, or if the value's bounds lie
                too many steps from zero.
        """
        if len(text) > _LONGEST:
            raise PlanError(f"{key} has {len(text)} characters.", expected=f"at most {_LONGEST}")
        node = _Parser(Source(text, key), columns).whole()
        found = range_of(node)
        if found.amount > LARGEST_STEPS:
            raise PlanError(
                f"{key} can lie {found.amount} steps of {float(found.step):g} from zero.",
                expected="at most 2^53 steps",
                do="Choose coarser steps or nearer bounds of its columns.",
            )
        if not FINEST <= found.step <= 1 / FINEST:
            raise PlanError(
                f"{key} is a multiple of {found.step.numerator:.3g} / {found.step.denominator:.3g}.",
                expected="steps between 1e-30 and 1e30",
            )
        if not found.amount:
            raise PlanError(f"{key} is 0 for every record.", expected="a number that can differ")
        return cls(text, found, tuple(dict.fromkeys(columns_of(node))), node)

    def evaluate(self, columns: Mapping[str, Sequence[object]], length: int) -> list[int]:
        """The value of each record, in steps of `range`, never outside its bounds.

        Args:
            columns: Canonical values by column name, each of `length`.
            length: Records.
        """
        values = [columns[name] for name in dict.fromkeys(added_by(self.node))]
        known = np.ones(length, dtype=np.bool_)
        for column in values:
            if None in column:
                known &= np.array([value is not None for value in column], dtype=np.bool_)
        found = np.where(known, evaluated(self.node, columns, length), 0)
        # The bounds hold for values within their columns' bounds; privacy rests on them alone.
        least, greatest = min(self.range.least, 0), max(self.range.greatest, 0)
        return [min(max(int(value), least), greatest) for value in found.tolist()]


class _Word(NamedTuple):
    """One word; a condition is the text between its brackets."""

    kind: Literal["number", "name", "sign", "condition", "end"]
    text: str
    at: int


class _Parser:
    """Recursive descent over the words; each method reads one rule of the grammar."""

    def __init__(self, source: Source, columns: Sequence[Column]) -> None:
        self._source = source
        self._listed = columns
        self._columns = {column.name: column for column in columns}
        self._words = list(_words(source))
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._sum()
        if self._word.kind != "end":
            raise self._source.refusal(self._word.at, "the number has ended", expected="+, - or *")
        return node

    @property
    def _word(self) -> _Word:
        return self._words[self._next]

    def _take(self, *signs: str) -> str | None:
        word = self._word
        if word.kind == "sign" and word.text in signs:
            self._next += 1
            return word.text
        return None

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._source.refusal(self._word.at, f"more than {_DEEPEST} sums are nested")
        parts: list[tuple[Literal[1, -1], Node]] = []
        sign = self._take("+", "-") or "+"
        while True:
            parts.append((1 if sign == "+" else -1, self._product()))
            following = self._take("+", "-")
            if following is None:
                break
            sign = following
        self._depth -= 1
        return parts[0][1] if len(parts) == 1 and parts[0][0] > 0 else Sum(tuple(parts))

    def _product(self) -> Node:
        parts = [self._atom()]
        while self._take("*"):
            parts.append(self._atom())
        return parts[0] if len(parts) == 1 else Product(tuple(parts))

    def _atom(self) -> Node:
        word = self._word
        if self._take("("):
            node = self._sum()
            if self._take(")") is None:
                raise self._source.refusal(self._word.at, ") is missing", expected=")")
            return node
        if self._take("-"):
            return Sum(((-1, self._atom()),))
        self._next += 1
        match word.kind:
            case "number":
                return Constant(Fraction(word.text))
            case "condition":
                key = f"{self._source.key}, the condition at character {word.at + 1}"
                return Indicator(Expression.parse(word.text, self._listed, key=key))
            case "name":
                return self._value(word)
            case "sign" | "end":
                raise self._source.refusal(
                    word.at, "a number is incomplete", expected="a column, a number or [condition]"
                )
            case _:
                assert_never(word.kind)

    def _value(self, word: _Word) -> Node:
        column = self._columns.get(word.text)
        if column is None:
            raise self._source.refusal(
                word.at,
                f"there is no column {word.text!r}",
                expected=f"one of {', '.join(self._columns)}",
                do=did_you_mean(word.text, self._columns),
            )
        if column.type not in {"integer", "number"}:
            raise self._source.refusal(
                word.at,
                f"{column.name} is {column.type}, not a number",
                expected=f"a number; for a condition, [{column.name} == ...]",
            )
        step, (least, greatest) = column.grid
        return Value(column.name, Range(step, least, greatest))


def _words(source: Source) -> Iterator[_Word]:
    at = 0
    while True:
        match = _WORD.match(source.text, at)
        if match is None:
            at += len(source.text[at:]) - len(source.text[at:].lstrip())
            hint = _HINTS.get(source.text[at], "")
            raise source.refusal(at, "this is no word of the language", do=hint)
        group = match.lastgroup or "end"
        text, begin, at = match[group], match.start(group), match.end()
        match group:
            case "number":
                yield _Word("number", text, begin)
            case "quoted":
                yield _Word("name", text[1:-1], begin)
            case "name":
                yield _Word("name", text, begin)
            case "sign" if text == "[":
                end = _closing(source, begin)
                yield _Word("condition", source.text[begin + 1 : end], begin)
                at = end + 1
            case "sign":
                yield _Word("sign", text, begin)
            case _:
                yield _Word("end", "", begin)
                return


def _closing(source: Source, begin: int) -> int:
    """Place of the bracket that closes a condition; quotes and lists inside it are passed over."""
    text, depth, quote, at = source.text, 0, "", begin
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\" and quote != "`":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"`":
            quote = letter
        elif letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise source.refusal(begin, "the condition is not closed", expected="]")
