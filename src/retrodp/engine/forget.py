"""Forgetting on request: what is asked, and the receipt that the requester takes home.

The answer is the same whether or not anything was found, so a receipt tells nobody who is in the
data. The salt is made once, given to the requester and not kept.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from retrodp import _check
from retrodp.errors import UsageError
from retrodp.noise.key import encode, system_bytes
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger

Kind = Literal["id", "person", "value"]
KINDS: tuple[Kind, ...] = ("id", "person", "value")
SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What somebody asked to be forgotten.

    Attributes:
        kind: "id" of a record, "person", or any other text "value" to look for.
        value: The text itself; data, never logged.
        salt: Of the requester's receipt, in hex, if there is one.
    """

    kind: Kind
    value: str
    salt: str | None = None

    def __repr__(self) -> str:
        return f"Forgotten(kind={self.kind!r})"

    def digest(self, salt: str) -> str:
        """SHA-256 of salt, kind and value, in hex."""
        return hashlib.sha256(encode(bytes.fromhex(salt), self.kind, self.value)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the requester gets: enough to recognise the own entry in a certificate later.

    Attributes:
        forgotten: What was asked.
        store_id: Public name of the store.
        from_round: First round whose releases do not depend on the forgotten data; None when the
            horizon is over and no release follows.
        from_instant: When that round ends and is released, ISO 8601, or None.
        erased: Whether the bytes are gone already.
        kept_by: Releases that are not retroactive: what they publish keeps the influence.
    """

    forgotten: Forgotten
    store_id: str
    from_round: int | None
    from_instant: str | None
    erased: bool
    kept_by: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The receipt as a document; contains the value, so it is for the requester alone."""
        salt = self.forgotten.salt
        assert salt is not None
        return {
            "format": 1,
            "kind": self.forgotten.kind,
            "value": self.forgotten.value,
            "salt": salt,
            "hash": self.forgotten.digest(salt),
            "store": self.store_id,
            "from_round": self.from_round,
            "released_at": self.from_instant,
            "erased": self.erased,
            "kept_by": list(self.kept_by),
            "what_it_means": self._meaning(),
        }

    def _meaning(self) -> str:
        if self.from_round is None:
            return (
                "The last release was published already. What matched was erased; earlier "
                "publications stay, protected by the privacy budget."
            )
        if self.kept_by:
            return (
                f"From round {self.from_round} on, every release but {', '.join(self.kept_by)} is "
                "distributed as if what matched had never been there. Those keep its influence in "
                "counters under keyed hashes until the last round, as the plan says, protected by "
                "the privacy budget like earlier publications; its records are erased."
            )
        return (
            f"From round {self.from_round} on, every release is distributed as if what matched "
            "had never been there. Earlier publications stay, protected by the privacy budget."
        )


def canonical_text(text: str) -> str:
    """Text as ids and text columns are kept: NFC."""
    return unicodedata.normalize("NFC", text)


def asked(ids: Iterable[str], persons: Iterable[str]) -> list[Forgotten]:
    """Requests with a fresh salt each, in canonical text."""
    pairs: list[tuple[Kind, str]] = [("id", text) for text in ids]
    pairs += [("person", text) for text in persons]
    for kind, named in pairs:
        _check.instance(str, expected="a text", **{kind: named})
    requests = []
    for kind, text in dict.fromkeys((kind, canonical_text(text)) for kind, text in pairs):
        if not text:
            raise UsageError(f"An empty {kind} cannot be forgotten.", do="Name it.")
        requests.append(Forgotten(kind, text, system_bytes(SALT_BYTES).hex()))
    if not requests:
        raise UsageError("Nothing to forget was named.", do="Name ids or persons.")
    return requests


def note(requests: Sequence[Forgotten], ledger: Ledger) -> None:
    """Note requests for the open round, and drop what waits of theirs; in one transaction."""
    for request in requests:
        if request.kind == "id":
            ledger.forgets.add("id", request.value)
            ledger.waiting.drop_id(request.value)
        else:
            ledger.forgets.add("person", request.value)
            ledger.waiting.drop_person(request.value)


def require_nameable(requests: Sequence[Forgotten], plan: Plan) -> None:
    """Raise `UsageError` if the plan's records cannot be named by what was asked."""
    kinds = {request.kind for request in requests}
    if "person" in kinds and not plan.stream.person:
        raise UsageError(
            "The plan names no person column.",
            do="Forget by id, or plan stream.person when a store is created.",
        )
    if "id" in kinds and not plan.stream.ids:
        raise UsageError("The records of this plan have no ids.", do="Send deletions instead.")


def read_forgotten(path: Path) -> list[Forgotten]:
    """A file of requests or receipts, one a line.

    A line is JSON such as {"id": "..."}, {"person": "..."}, {"value": "..."} or a receipt; any
    other line is the text of an id.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"{path} cannot be read.", expected="a UTF-8 text file", do="Check the path."
        ) from None
    stripped = ((number, line.strip()) for number, line in enumerate(lines, start=1))
    return [_request(path, number, line) for number, line in stripped if line]


def _request(path: Path, number: int, line: str) -> Forgotten:
    if not line.startswith("{"):
        return Forgotten("id", canonical_text(line))
    try:
        document: Mapping[str, Any] = json.loads(line)
        if "kind" in document:
            kind, value = document["kind"], document["value"]
        else:
            [(kind, value)] = document.items()
        if kind in KINDS and isinstance(value, str) and value:
            return Forgotten(kind, canonical_text(value), document.get("salt"))
    except (ValueError, KeyError):
        pass
    raise UsageError(
        f"{path}, line {number}: not a request.",
        expected='an id, or JSON such as {"id": "..."}, {"person": "..."} or a receipt',
    )
