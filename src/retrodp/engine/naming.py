"""Names of records and persons as a caller gives them: one text, or several of them.

Promise: a text is one name and never its letters, and what is no name at all is refused before
anything is done. No message carries a name: names are data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from retrodp.errors import UsageError


def names(**named: Any) -> list[str]:
    """The one value as a list of names.

    Args:
        named: A text or a collection of names, by the name of the argument.

    Raises:
        UsageError: It is neither, or texts are mixed with something else.
    """
    ((name, value),) = named.items()
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise UsageError(
            f"{name} cannot be of type {type(value).__name__}.",
            expected="one text, or several in a list",
            do="Give each name as the text that it has in the data.",
        )
    found = list(value)
    other = set(map(type, found)) - {str, type(None)}
    if other and str in map(type, found):
        raise UsageError(
            f"{name} mixes texts with {', '.join(sorted(own.__name__ for own in other))}.",
            expected="texts, all of them",
            do="Give each name as the text that it has in the data.",
        )
    return found
