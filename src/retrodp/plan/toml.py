"""A plan given as a dict, written down as the TOML file it stands for."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(tables: Mapping[str, Any]) -> str:
    """TOML of a plan's tables, which hold no None; `[release]` becomes one table a release."""
    blocks = []
    for name, table in tables.items():
        if name == "release" and isinstance(table, Mapping):
            blocks += [_block(f"release.{toml_key(own)}", each) for own, each in table.items()]
        else:
            blocks.append(_block(toml_key(name), table))
    return "\n".join(blocks)


def _block(header: str, table: Any) -> str:
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items()]
    return "\n".join([f"[{header}]", *lines, ""])


def toml_key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    """A value; whatever TOML has no form for becomes text."""
    match value:
        case bool():
            text = "true" if value else "false"
        case int() | float() | Decimal():
            text = str(value)
        case dt.date():
            text = value.isoformat()
        case Mapping():
            pairs = (f"{toml_key(own)} = {toml_value(value[own])}" for own in value)
            text = f"{{ {', '.join(pairs)} }}"
        case list():
            text = f"[{', '.join(map(toml_value, value))}]"
        case _:
            text = _text(str(value))
    return text
