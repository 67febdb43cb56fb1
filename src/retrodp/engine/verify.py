"""Proof that a store forgot: the current round recomputed from the survivors, and every byte read.

Nothing recomputed is ever shown: the same noise on two exact values is their difference. What
differs is named by release and row number only. Opens no second store and moves no mark.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrodp import _check
from retrodp.engine.compile import CompiledRelease
from retrodp.engine.forget import SALT_BYTES, Forgotten
from retrodp.engine.states import keepers, made, read_states, remembering
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.mechanisms.answer import Answer
from retrodp.noise.factors.gathered import Blocks
from retrodp.noise.key import system_bytes
from retrodp.statistics.contract import Keyed
from retrodp.statistics.revised import ByStamp, labelled
from retrodp.store.releases import ReleasesReader
from retrodp.store.scan import LEAST_BYTES, files_of, scan

PUBLISHED = ("releases.sqlite",)


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
    _check.instance(Store, store=store, expected="an open Store")
    for one in forgotten:
        _check.instance(Forgotten, forgotten=one, expected='Forgotten("id", "...") and the like')
    equal, differing = _compare(store)
    changed = _changed_rounds(store)
    salts = [request.salt or system_bytes(SALT_BYTES).hex() for request in forgotten]
    entries = _entries(store, forgotten, salts)
    left = any(entry["left_in"] for entry in entries)
    directory = store.files.directory
    document: dict[str, Any] = {
        "format": 1,
        "store": store.store_id,
        "test": store.ledger.facts.test,
        "round": store.round,
        "releases_equal": equal,
        "differing_rows": differing,
        "changed_rounds": changed,
        "forgotten": entries,
        "files_scanned": [
            _name(store, path)
            for path in files_of(directory, store.key_path)
            if path != store.files.certificate.absolute()  # the one before this one
        ],
        "fingerprint": store.resolved.fingerprint,
        "version": importlib.metadata.version("retrodp"),
        "budget": store.epoch.statement(store.resolved),
        "key": _key_statement(store),
        "keep_what_is_forgotten": list(keepers(own.mechanism for own in store.releases)),
        "what_it_means": _meaning(equal, keepers(own.mechanism for own in store.releases)),
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
    round_ = store.ledger.facts.round  # in the numbers of the present epoch
    if round_ == 0 or store.key.destroyed:
        return None, {}
    names = store.plan.names
    totals = recount(store.releases, names, round_, store.ledger.survivors())
    differing: dict[str, list[int]] = {}
    with ReleasesReader(store.files.releases) as reader:
        published = reader.answers(store.round)
    # Of a release that remembers, the states before and after the round are kept: its last step.
    after = {
        own.name: store.ledger.states.read(own.name, round_) for own in remembering(store.releases)
    }
    again = made(
        store.releases,
        round_,
        totals,
        store.key.tree,
        begun={name: dict(kept.begun) for name, kept in after.items() if kept is not None},
        states=read_states(store.releases, store.ledger, round_ - 1),
    )
    differing.update({name: [] for name, kept in again.kept.items() if kept != after[name]})
    for answer in store.numbered(again.answers):
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


def _entries(
    store: Store, forgotten: Sequence[Forgotten], salts: Sequence[str]
) -> list[dict[str, Any]]:
    """What is left of each request: where it must not be, and where it was published.

    A short value stands in any file by chance, so of it only the live rows can be asked.
    """
    needles = [request.value.encode() for request in forgotten]
    long = [number for number, needle in enumerate(needles) if len(needle) >= LEAST_BYTES]
    looked_for = [needles[number] for number in long]
    directory = store.files.directory.absolute()
    stray = dict(zip(long, store.ledger.stray_copies(looked_for), strict=True)) if long else {}
    hits: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for hit in scan(_other_files(store), looked_for, store=directory):
        hits[long[hit.needle]][hit.file] = hit.count
    return [
        {
            "kind": request.kind,
            "hash": request.digest(salt),
            "left_in": sorted(
                {file for file in hits[number] if file not in PUBLISHED}
                | ({"ledger.sqlite"} if stray.get(number) else set())
                | _living(store, request)
            ),
            "published_in": {file: n for file, n in hits[number].items() if file in PUBLISHED},
            "searched": "every byte" if number in stray else "live rows",
        }
        for number, (request, salt) in enumerate(zip(forgotten, salts, strict=True))
    ]


def _other_files(store: Store) -> list[Path]:
    """Files where a value must not stand at all.

    The ledger is compared with its live rows instead; plan and key were made without any data, and
    a short value would stand in their digits by chance.
    """
    directory = store.files.directory.absolute()
    own = {store.files.ledger, *store.files.plans()}
    without_data = {*(directory / path.name for path in own), store.key_path.absolute()}
    return [path for path in files_of(directory, store.key_path) if path not in without_data]


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
        request.value in _values_of(_without_stamp(release, label))
        for release in store.releases
        if not isinstance(release.statistic, Keyed)  # whose coordinates are places, not labels
        for label in store.ledger.read_totals(release.name)
    ):
        tables.add("totals")
    return {f"ledger.sqlite, {table}" for table in tables}


def _without_stamp(release: CompiledRelease, label: bytes) -> bytes:
    """The label of a bin: totals of a revised release have the stamp before it."""
    if not isinstance(release.statistic, ByStamp):
        return label
    return labelled(label)[1]


def _values_of(label: bytes) -> list[Any]:
    """The values that a label of a bin names."""
    text = label.decode()
    values: list[Any] = json.loads(text) if text.startswith("[") else [text]
    return values


_DECISIONS = (
    "Of {names} only the weights and means are counted. Which places were published was decided by "
    "noisy counts of cells and noisy sizes of phases that are never published themselves; their "
    "noise ends at other rounds, so that of rounds which are not counted here the key may still tell "
    "from which exact count on a place was published."
)


def openable_rounds(store: Store) -> dict[str, int]:
    """Past rounds of each release whose published numbers the key holder can still free of noise.

    Of an online clustering these are weights and means: noise behind its decisions is not counted.
    """
    mark = store.key.tree.round
    opened = {}
    for release in store.releases:
        factor = release.mechanism.factor
        blocks = getattr(release.mechanism, "gathered", Blocks(horizon=store.horizon, length=1))
        past = range(1, min(store.ledger.facts.round, mark - 1) + 1)
        opened[release.name] = sum(
            all(blocks.end(factor.last(node)) >= mark for node, _ in factor.nodes(block))
            for block in map(blocks.shown, past)
            if block
        )
    return opened


def _key_statement(store: Store) -> dict[str, Any]:
    deciding = [release.name for release in store.releases if _is_gathered(release)]
    return {
        "derives_rounds_from": None
        if store.key.destroyed
        else store.rounds_before + store.key.tree.round,
        "past_rounds_still_open": openable_rounds(store),
        "decisions_not_counted": deciding,
        "note": "Whoever holds the key and the publications can remove the noise of the numbers "
        "published in the current round and in the past rounds counted here, and of no other."
        + (f" {_DECISIONS.format(names=', '.join(deciding))}" if deciding else ""),
    }


def _is_gathered(release: CompiledRelease) -> bool:
    return hasattr(release.mechanism, "gathered")


def _meaning(
    equal: bool | None,  # noqa: FBT001  three-valued outcome, not a mode
    keeping: Sequence[str],
) -> str:
    if equal is None:
        return (
            "No key of a closed round is left, so its release cannot be recomputed by anyone. "
            "The bytes were scanned all the same."
        )
    if equal and keeping:
        return (
            f"{', '.join(keeping)} keep the influence of what was forgotten, as the plan says; "
            "their last step was recomputed from their state and is equal. Every other release "
            "was recomputed from the surviving records alone and is equal, byte for byte."
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
