"""Words of the `where` language and where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from retrodp.errors import PlanError

TokenKind: TypeAlias = Literal["number", "text", "name", "keyword", "sign", "end"]

KEYWORDS = frozenset({"and", "or", "not", "in", "true", "false", "null"})

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?(?![\w.]))
    | (?P<text>'(?:[^'\\]|\\['\\])*'|"(?:[^"\\]|\\["\\])*")
    | (?P<quoted>`[^`]+`)
    | (?P<name>[^\W\d]\w*)
    | (?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,)
    | (?P<end>$)
    )""",
    re.VERBOSE,
)
_HINTS = {
    "=": "Write == for a comparison.",
    "&": "Write and.",
    "|": "Write or.",
    "!": "Write not, or != for a comparison.",
    "'": "The quote is not closed.",
    '"': "The quote is not closed.",
    "`": "The quote is not closed.",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One word; `text` is a text's contents or a name without its quotes."""

    kind: TokenKind
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Source:
    """The text of an expression and the plan's key that holds it."""

    text: str
    key: str

    def refusal(self, at: int, what: str, *, expected: str = "", do: str = "") -> PlanError:
        """The error that points at a character (from 0)."""
        rest = self.text[at : at + 20]
        place = f"before {rest!r}" if rest.strip() else "at the end"
        return PlanError(
            f"{self.key}, character {at + 1} ({place}): {what}.", expected=expected, do=do
        )

    def tokens(self) -> Iterator[Token]:
        """The words in order; the last is of the kind "end"."""
        at = 0
        while True:
            match = _TOKEN.match(self.text, at)
            if match is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                hint = _HINTS.get(self.text[at], "")
                raise self.refusal(at, "this is no word of the language", do=hint)
            token = _token(match)
            yield token
            if token.kind == "end":
                return
            at = match.end()


def _token(match: re.Match[str]) -> Token:
    group = match.lastgroup or "end"
    text, at = match[group], match.start(group)
    match group:
        case "text":
            return Token("text", re.sub(r"\\(.)", r"\1", text[1:-1]), at)
        case "quoted":
            return Token("name", text[1:-1], at)
        case "name":
            return Token("keyword" if text in KEYWORDS else "name", text, at)
        case "number":
            return Token("number", text, at)
        case "sign":
            return Token("sign", text, at)
        case _:
            return Token("end", "", at)
