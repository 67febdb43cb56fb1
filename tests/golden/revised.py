"""The same stream under revised releases, whose published bytes must never change by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrodp.engine.store import Store
from retrodp.mechanisms.answer import Answer
from retrodp.store.releases import ReleasesReader
from tests.golden.stream import rows
from tests.support.plans import Kind, Model
from tests.support.revised import revised
from tests.support.rows import ingest
from tests.support.stores import memory_directory

FILE = Path(__file__).with_name("revised.json")
STREAMS: list[tuple[Kind, Model]] = [("ids", "zcdp"), ("points", "pure")]


def releases(kind: Kind, model: Model) -> dict[str, Any]:
    """Digest of every round, and the numbers of the last by label and stamp.

    The root of a Gaussian axis comes from a search in floating point and is stored with a plan, so
    the numbers of cumulative Gaussian releases are golden under one build of the search only; they
    are left out.
    """
    with memory_directory() as directory:
        with Store.create_for_tests(
            directory / "store", revised(kind, model), root=bytes(range(32)), name="golden"
        ) as store:
            ingest(store, rows(kind))
            store.close_through(store.horizon)
        with ReleasesReader(directory / "store" / "releases.sqlite") as reader:
            last = reader.answers(reader.last_round)
    return {
        name: [list(pair) for pair in _numbers(Answer.from_bytes(data))]
        for name, data in last.items()
        if model == "pure" or "so_far" not in name
    }


def _numbers(answer: Answer) -> list[tuple[str, int, int | None]]:
    stamps = answer.stamps or ()
    keys = answer.keys or ("",) * len(stamps)
    return list(zip(keys, stamps, answer.values, strict=True))


def all_releases() -> dict[str, Any]:
    return {f"{kind}, {model}": releases(kind, model) for kind, model in STREAMS}
