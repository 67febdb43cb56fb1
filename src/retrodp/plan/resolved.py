"""The resolved plan: everything that was decided when a store was created.

Promise: what is read back is byte for byte what was stored, or refused; the fingerprint is a
function of these bytes alone. So a new version of an accountant, of zone data or of a sort never
changes the releases of a running store. Knows nothing of what the decided values mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from retrodp.errors import PlanError, StoreCorruptError

FORMAT = 1
"""Version of this document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPlan:
    """A plan with everything decided. All of it is public.

    Attributes:
        noise_format: Version of the map from keys and labels to noise.
        plan: `Plan.to_dict()`.
        boundaries: T+1 instants, microseconds since 1970-01-01 UTC.
        tzdata: Version of the zone data that the boundaries come from.
        unicode: Version of the Unicode data that texts are normalised with.
        releases: One JSON-able document a release, in plan order, with at least its `name`.
        budget: JSON-able totals and splits of the budget.
        format: Version of this document.
    """

    noise_format: int
    plan: Mapping[str, Any]
    boundaries: tuple[int, ...]
    tzdata: str
    unicode: str
    releases: tuple[Mapping[str, Any], ...]
    budget: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def __post_init__(self) -> None:
        # Copies: whoever handed the documents over cannot change what the fingerprint says.
        plain = json.loads(canonical_json(self._document()))
        object.__setattr__(self, "plan", plain["plan"])
        object.__setattr__(self, "budget", plain["budget"])
        object.__setattr__(self, "boundaries", tuple(plain["boundaries"]))
        object.__setattr__(self, "releases", tuple(plain["releases"]))

    def to_json(self) -> bytes:
        """Canonical JSON: the document that is stored."""
        return canonical_json(self._document())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json()).hexdigest()

    def release(self, name: str) -> Mapping[str, Any]:
        """The document of one release; `KeyError` if there is none of that name."""
        return {release["name"]: release for release in self.releases}[name]

    @classmethod
    def from_json(cls, data: bytes, *, fingerprint: str | None = None) -> ResolvedPlan:
        """Read a stored document.

        Args:
            data: What `to_json` gave, to the byte.
            fingerprint: What it must have, if it is known from elsewhere.

        Raises:
            StoreCorruptError: Anything differs.
        """
        try:
            document = json.loads(data.decode("utf-8"))
            resolved = cls(**_checked(document))
        except (ValueError, TypeError, RecursionError, PlanError):
            raise _corrupt("is not a resolved plan of this version") from None
        if resolved.to_json() != data:
            raise _corrupt("is not in canonical form")
        if fingerprint is not None and resolved.fingerprint != fingerprint:
            raise _corrupt("does not have the fingerprint that the store was created with")
        return resolved

    def _document(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}


def canonical_json(value: Any) -> bytes:
    """The one JSON text of a document: sorted keys, no spaces, UTF-8, no floats.

    Raises:
        PlanError: It holds a float (two machines may print it differently), a key that is no
            text, or something JSON does not have.
    """
    text = json.dumps(
        _exact(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise PlanError("A resolved plan holds half a Unicode character.") from None


def _exact(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case Mapping() if all(isinstance(key, str) for key in value):
            return {key: _exact(own) for key, own in value.items()}
        case list() | tuple():
            return [_exact(own) for own in value]
        case _:
            raise PlanError(
                f"A resolved plan holds a {type(value).__name__}.",
                expected="exact values: text, whole numbers, booleans, null, lists and tables",
            )


_TYPES: Mapping[str, type] = {
    "noise_format": int,
    "plan": dict,
    "boundaries": list,
    "tzdata": str,
    "unicode": str,
    "releases": list,
    "budget": dict,
    "format": int,
}


def _checked(document: Any) -> dict[str, Any]:
    """The fields, if there are these and no others, each of its type."""
    if not isinstance(document, dict) or document.keys() != _TYPES.keys():
        raise ValueError
    if any(type(document[name]) is not kind for name, kind in _TYPES.items()):
        raise ValueError
    whole = all(type(instant) is int for instant in document["boundaries"])
    named = all(
        isinstance(own, dict) and isinstance(own.get("name"), str) for own in document["releases"]
    )
    if document["format"] != FORMAT or not whole or not named:
        raise ValueError
    return document


def _corrupt(what: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"The file plan.resolved.json {what}.",
        do="Restore it from a back-up; a store never recomputes it.",
    )
