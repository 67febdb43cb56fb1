"""Canonical labels of bins: what a release prints is what its noise is keyed by.

A label is a text. One text column gives the text itself; null, the empty text, other types, a
text that begins with "[" and several columns give a JSON array. So no two different bins share a
label: True, 1 and 1.0 differ, null is a bin of its own, and text is NFC already (see the plan).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from json.encoder import encode_basestring
from typing import Any

from retrodp.plan.columns import Column
from retrodp.plan.decimals import decimal_text


@dataclass(frozen=True, slots=True, kw_only=True)
class BinLabels:
    """Turns the values of the columns of a histogram into labels."""

    columns: tuple[Column, ...]

    def text(self, values: Sequence[object]) -> str:
        """Label of one bin; `values` are canonical values in the order of the columns."""
        if len(values) == 1 and isinstance(values[0], str):
            return bare_or_array(values[0])
        parts = [
            value_json(value, column) for value, column in zip(values, self.columns, strict=True)
        ]
        return f"[{','.join(parts)}]"

    def coordinates(self, columns: Sequence[Sequence[object]]) -> list[bytes]:
        """Labels of many bins, as the bytes of a coordinate; `columns` hold a value a bin each."""
        if len(columns) == 1:
            texts: Any = columns[0]
            if set(map(type, texts)) == {str} and all(texts) and not _like_array(texts):
                return list(map(str.encode, texts))
            return [self.text([value]).encode() for value in texts]
        return [self.text(values).encode() for values in zip(*columns, strict=True)]


def _like_array(texts: Sequence[str]) -> bool:
    """Whether one of the texts begins as a JSON array does, or has such a line."""
    return "\n[" in "\n".join(["", *texts])


def bare_or_array(text: str) -> str:
    """A text as it stands, unless it is empty or looks like a JSON array; then an array of it."""
    if text and not text.startswith("["):
        return text
    return json.dumps([text], ensure_ascii=False)


def value_json(value: object, column: Column) -> str:
    """A canonical value of a column as JSON; no two values of one column look alike."""
    if isinstance(value, str):
        return encode_basestring(value)  # what json.dumps does, without an encoder a call
    if column.type == "number" and isinstance(value, int):
        text = decimal_text(value, column.step or Fraction(1))
        return text if "." in text else f"{text}.0"
    if column.type == "integer" and isinstance(value, int):
        return decimal_text(value, column.step or Fraction(1))
    return json.dumps(value, ensure_ascii=False)
