"""Proof that a store forgot: the current round recomputed from the survivors, and every byte read.

Nothing recomputed is ever shown: the same noise on two exact values is their difference. What
differs is named by release and row number only. Opens no second store and moves no mark.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from retrodp.engine.close import answers
from retrodp.engine.forget import SALT_BYTES, Forgotten
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import system_bytes
from retrodp.store.releases import ReleasesReader
from retrodp.store.scan import LEAST_BYTES, Hit, files_of, scan, scan_ids
from retrodp.stream.update import QueuedUpdate, Record

PUBLISHED = ("releases.sqlite",)
TELLING_BYTES = 8  # from here on a text does not stand in a file by chance


@dataclass(frozen=True, slots=True)
class Verified:
    """Outcome of a verification.

    Attributes:
        document: The certificate.
        passed: Whether nothing differs and nothing forgotten is left.
        salts: Of the hashes, in the order of the requests; for the requesters, not published.
    """

    document: dict[str, Any]
    passed: bool
    salts: tuple[str, ...]


def verify(store: Store, forgotten: Sequence[Forgotten] = ()) -> Verified:
    """Recompute the current round and look for what was forgotten.

    Args:
        store: Open; updates and forgets that wait for the open round are left out, since they are
            no part of the last close.
        forgotten: Ids, persons and other values that must be in no file but published releases.

    Returns:
        The erasure certificate, also written to `certificate.json` in the store.
    """
    equal, differing = _compare(store)
    changed = _changed_rounds(store)
    salts = [request.salt or system_bytes(SALT_BYTES).hex() for request in forgotten]
    entries = [_entry(store, request, salt) for request, salt in zip(forgotten, salts, strict=True)]
    left = any(entry["left_in"] for entry in entries)
    directory = store.files.directory
    document: dict[str, Any] = {
        "format": 1,
        "store": store.store_id,
        "test": store.ledger.test,
        "round": store.round,
        "releases_equal": equal,
        "differing_rows": differing,
        "changed_rounds": changed,
        "forgotten": entries,
        "files_scanned": [_name(store, path) for path in files_of(directory, store.key_path)],
        "fingerprint": store.resolved.fingerprint,
        "version": importlib.metadata.version("retrodp"),
        "key": _key_statement(store),
        "what_it_means": _meaning(equal),
    }
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    document["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    store.files.certificate.write_text(
        json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    passed = equal is not False and not left and not changed
    return Verified(document, passed, tuple(salts))


def check_certificate(document: dict[str, Any]) -> bool:
    """Whether a certificate still has the digest it was written with."""
    content = {name: value for name, value in document.items() if name != "sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest() == document.get("sha256")


def _compare(store: Store) -> tuple[bool | None, dict[str, list[int]]]:
    """Whether the published round equals the recomputed one; None if its key is gone."""
    if store.round == 0 or store.key.tree.round > store.horizon:
        return None, {}
    names = [column.name for column in store.plan.columns]
    totals = recount(store.releases, names, store.round, store.ledger.survivors())
    differing: dict[str, list[int]] = {}
    with ReleasesReader(store.files.releases) as reader:
        published = reader.answers(store.round)
    for answer in answers(store.releases, store.round, totals, store.key.tree):
        stored = published.pop(answer.release, b"")
        if stored != answer.to_bytes():
            differing[answer.release] = _differing_rows(answer, stored)
    differing.update({name: [] for name in published})
    return not differing, differing


def _differing_rows(answer: Answer, stored: bytes) -> list[int]:
    """Row numbers, from 1, of the published answer that are not in the recomputed one."""
    if not stored:
        return []
    recomputed = set(answer.rows())
    rows = enumerate(Answer.from_bytes(stored).rows(), start=1)
    return [number for number, row in rows if row not in recomputed]


def _changed_rounds(store: Store) -> list[int]:
    with ReleasesReader(store.files.releases) as reader:
        return reader.changed_rounds()


def _entry(store: Store, request: Forgotten, salt: str) -> dict[str, Any]:
    """What is left of one request: where it must not be, and where it was published."""
    hits = _hits(store, request)
    left = {hit.file for hit in hits if hit.file not in PUBLISHED} | _living(store, request)
    return {
        "kind": request.kind,
        "hash": request.digest(salt),
        "left_in": sorted(left),
        "published_in": {hit.file: hit.count for hit in hits if hit.file in PUBLISHED},
        "bytes_scanned": len(request.value.encode()) >= LEAST_BYTES,
    }


def _hits(store: Store, request: Forgotten) -> list[Hit]:
    """Places in files where the value stands.

    In the ledger's bytes a text may stand inside longer ones, and a short one by chance, so there
    it is looked for in the shapes in which rows hold it, live or freed. A long text that is part
    of nothing that lives is looked for as it is.
    """
    directory = store.files.directory.absolute()
    files = files_of(directory, store.key_path)
    rows = [path for path in files if path.name.startswith(store.files.ledger.name)]
    others = [path for path in files if path not in rows]
    needle = request.value.encode()
    if request.kind == "id":
        hits = scan_ids(rows, [("", request.value)], store=directory)
    else:
        hits = scan(rows, [_packed(request.value)], store=directory)
    telling = _telling(store, request)
    found = scan(rows, telling, store=directory)
    inside = {number: _lives_inside(store, telling[number]) for number in {h.needle for h in found}}
    hits += [hit for hit in found if not inside[hit.needle]]
    return hits + (scan(others, [needle], store=directory) if len(needle) >= LEAST_BYTES else [])


def _telling(store: Store, request: Forgotten) -> list[bytes]:
    """Bytes that stand in the ledger only where the value stood, or inside something longer.

    The value itself; a row of the forgets (kind, then value); in a label of several columns, in
    quotes; a row of the totals (release, then label).
    """
    needle = request.value.encode()
    shapes = [needle, request.kind.encode() + needle]
    if request.kind != "id":
        shapes.append(json.dumps(request.value, ensure_ascii=False).encode())
        shapes += [release.name.encode() + needle for release in store.releases]
    return [shape for shape in shapes if len(shape) >= TELLING_BYTES]


def _lives_inside(store: Store, needle: bytes) -> bool:
    """Whether these bytes are part of something that rightly stands in the ledger.

    Columns stand side by side in a row, so they are looked through side by side.
    """
    ledger = store.ledger
    rows: list[Record | QueuedUpdate] = [row for batch in ledger.survivors() for row in batch]
    rows += [row for round_ in ledger.waiting_rounds() for row in ledger.waiting(round_)]
    texts = [
        person + (row.space + row.id).encode() + person + row.payload + person
        for row in rows
        for person in [(row.person or "").encode()]
    ]
    texts += [f"{one.kind}{one.space or ''}{one.value}".encode() for one in ledger.forgets()]
    texts += [
        release.name.encode() + label
        for release in store.releases
        for label in ledger.read_totals(release.name)
    ]
    texts.append(f"store_id{ledger.store_id}fingerprint{ledger.fingerprint}".encode())
    return any(needle in text for text in texts)


def _packed(value: str) -> bytes:
    """The value as a row's payload holds it: its length, then its bytes."""
    packed = msgspec.msgpack.encode(value)
    return packed if len(packed) >= LEAST_BYTES else packed.rjust(LEAST_BYTES, b"\x90")


def _living(store: Store, request: Forgotten) -> set[str]:
    """Tables of the ledger in whose live rows the value occurs; exact for any length."""
    value = [request.value]
    found = store.ledger.mentions(
        ids=value if request.kind == "id" else [],
        persons=value if request.kind == "person" else [],
        values=value if request.kind != "id" else [],
    )
    tables = {mention.table for mention in found}
    if request.kind != "id" and any(
        request.value in _values_of(label)
        for release in store.releases
        for label in store.ledger.read_totals(release.name)
    ):
        tables.add("totals")
    return {f"ledger.sqlite, {table}" for table in tables}


def _values_of(label: bytes) -> list[Any]:
    """The values that a label of a bin names."""
    text = label.decode()
    values: list[Any] = json.loads(text) if text.startswith("[") else [text]
    return values


def openable_rounds(store: Store) -> dict[str, int]:
    """Past rounds of each release whose noise the key holder can still derive."""
    mark = store.key.tree.round
    opened = {}
    for release in store.releases:
        factor = release.mechanism.factor
        opened[release.name] = sum(
            all(factor.last(node) >= mark for node, _ in factor.nodes(round_))
            for round_ in range(1, min(store.round, mark - 1) + 1)
        )
    return opened


def _key_statement(store: Store) -> dict[str, Any]:
    return {
        "derives_rounds_from": None
        if store.key.tree.round > store.horizon
        else store.key.tree.round,
        "past_rounds_still_open": openable_rounds(store),
        "note": "Whoever holds the key and the publications can remove the noise of the current "
        "round and of the past rounds counted here, and of no other round.",
    }


def _meaning(equal: bool | None) -> str:  # noqa: FBT001  three-valued outcome, not a mode
    if equal is None:
        return (
            "No key of a closed round is left, so its release cannot be recomputed by anyone. "
            "The bytes were scanned all the same."
        )
    if equal:
        return (
            "The current release was recomputed from the surviving records alone and is equal, "
            "byte for byte: it does not depend on anything that was forgotten before its round."
        )
    return "The current release differs from what the surviving records give."


def _name(store: Store, path: Path) -> str:
    directory = store.files.directory.absolute()
    inside = path.is_relative_to(directory)
    return str(path.relative_to(directory)) if inside else path.name
