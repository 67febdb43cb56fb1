"""What a hostile reader tried against the online clustering: lives, units, keys and bits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from retrodp.clustering.counters import KeyedCounters
from retrodp.clustering.memory import Memory as Counters
from retrodp.clustering.online import Memory
from retrodp.clustering.places import Box
from retrodp.clustering.practical import CLIP_PARTS, box_columns, default_levels
from retrodp.noise.key import Node
from retrodp.privacy.loss import total_rho
from retrodp.statistics.grid import RADIUS
from retrodp.stream.lives import apply_round
from retrodp.stream.update import QueuedUpdate, Record
from tests.stream import rows as updates_of
from tests.support.online import moment, plan
from tests.support.stores import new_store
from tests.support.transcripts import (
    BLOCKS,
    KEYS,
    Ints,
    Point,
    by_clock,
    compare,
    played,
    spent,
    tiny,
)

# Lives: what begins must not depend on which other lives there were.

ROUNDS = 3
OPS = ("", "a", "d", "r", "da", "ad", "dr", "ada")


def updates(ops: str, round_: int) -> list[QueuedUpdate]:
    """Of one id, all with one record: an addition or replacement names the stamp of round 1."""
    made = {"a": updates_of.add, "r": updates_of.replace}
    return [
        updates_of.delete("x", 10 * round_ + second)
        if op == "d"
        else made[op]("x", 10 * round_ + second, "same", stamp=1)
        for second, op in enumerate(ops)
    ]


def arrivals(history: Sequence[str]) -> list[int]:
    """How many records each round shows to whoever counts arrivals."""
    running: dict[tuple[str, str], Record] = {}
    found = []
    for round_, ops in enumerate(history, start=1):
        changes = apply_round(running, updates(ops, round_))
        for record in changes.ended:
            del running[record.space, record.id]
        for record in changes.begun:
            running[record.space, record.id] = record
        found.append(len(changes.begun) + len(changes.again))
    return found


def lives(history: Sequence[str]) -> list[tuple[int, int]]:
    """Every accepted life: its first round, and that in which it ends (or the one after the last)."""
    found: list[tuple[int, int]] = []
    since: int | None = None
    for round_, ops in enumerate(history, start=1):
        for op in ops:
            if since is not None and op in "dr":
                found.append((since, round_))
                since = None
            if since is None and op in "ar":
                since = round_
    return found if since is None else [*found, (since, len(history) + 1)]


def test_every_life_that_survives_its_first_round_arrives_once_and_in_it() -> None:
    """So two streams that differ in one life differ in one arrival, whatever its record is."""
    wrong = [
        history
        for history in itertools.product(OPS, repeat=ROUNDS)
        if arrivals(history)
        != [sum(a == r < b for a, b in lives(history)) for r in range(1, ROUNDS + 1)]
    ]
    assert not wrong


@pytest.mark.parametrize("again", [["delete", "add"], ["replace"]], ids=["anew", "replaced"])
def test_a_life_less_takes_one_arrival_away_and_moves_none(ram: Path, again: list[str]) -> None:
    """The later life has the place, the id and the stamp of the one that is left out."""
    first = {"op": "add", "id": "a", "at": moment(1), "time": moment(1), "x": -3.0, "y": 2.0}
    last = [
        {"op": "delete", "id": "a", "at": moment(2, 1)}
        if op == "delete"
        else {**first, "op": op, "at": moment(2, 2)}
        for op in again
    ]
    counted = {}
    for name, given in (("both", [first]), ("second", [])):
        with new_store(ram / name, plan(epsilon=60)) as store:
            if given:
                store.add(pa.Table.from_pylist(given))
            store.close_round()
            for row in last:
                store.add(pa.Table.from_pylist([row]))
            store.close_round()
            kept = [store.ledger.states.read("places", round_) for round_ in (1, 2)]
        assert all(one is not None for one in kept)
        counted[name] = [
            int(Counters.from_bytes(Memory.from_bytes(one.state).sketch, 2).weights.sum())
            for one in kept
            if one is not None
        ]
    assert counted == {"both": [1, 2], "second": [0, 1]}


def test_what_a_forget_takes_is_not_seen_to_begin_again(ram: Path) -> None:
    given = {"op": "add", "id": "a", "at": moment(1), "time": moment(1), "x": -3.0, "y": 2.0}
    with new_store(ram / "store", plan(epsilon=60)) as store:
        store.add(pa.Table.from_pylist([given]))
        store.close_round()
        store.add(pa.Table.from_pylist([{**given, "op": "replace", "at": moment(2)}]))
        store.forget(["a"])
        store.close_round()
        kept = store.ledger.states.read("places", 2)
    assert kept is not None
    assert not kept.begun


# Units of several records, powers, columns, copies: random neighbours under one transcript.


def test_a_unit_of_records_in_a_block_moves_no_more_than_is_charged() -> None:
    generator, worst = np.random.default_rng(15), 0.0
    for _ in range(60):
        columns, records, many = (int(generator.integers(1, most)) for most in (4, 4, 8))
        sketch = replace(
            tiny(columns=columns),
            power=int(generator.integers(1, 3)),
            eagerness=int(generator.choice([1, 50, 10**6])),
            first_width=Fraction(1, int(generator.choice([2, 64]))),
        )
        places = generator.integers(0, 65, (many, columns))[generator.integers(0, many, many)]
        blocks = np.sort(generator.integers(1, BLOCKS + 1, many)).tolist()
        stream = [Point(own, tuple(at)) for own, at in zip(blocks, places.tolist(), strict=True)]
        inside = np.flatnonzero(np.array(blocks) == generator.choice(blocks))
        gone = set(generator.permutation(inside)[:records].tolist())
        other = [point for place, point in enumerate(stream) if place not in gone]
        seed = int(generator.integers(1 << 20))
        for one, two in ((stream, other), (other, stream)):
            charged = replace(sketch, records=records)
            vector = compare(charged, by_clock(tuple(one)), by_clock(tuple(two)), seed)
            worst = max(worst, float(spent(sketch, vector) / total_rho(charged.cost())))
    assert 0.9 < worst <= 1


# Noise: one counter has one key a node, and no two counters share a draw.


@dataclass(slots=True)
class Spy:
    """Keys that note what they were asked for."""

    asked: list[tuple[str, Node, int]] = field(default_factory=list)

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        self.asked.append((release, node, last))
        return KEYS.node_key(release=release, factor=factor, node=node, last=last)

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        return KEYS.fresh_key(release=release, purpose=purpose, round=round)

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        return KEYS.lasting_key(release=release, purpose=purpose)


@dataclass(slots=True)
class Noted:
    """Keyed counters, block by block, and under which key each label had which node."""

    sketch: object
    block: int = 0
    keys_of: dict[tuple[str, int, Node], set[int]] = field(default_factory=dict)
    made_up: np.random.Generator = field(default_factory=lambda: np.random.default_rng(4))

    def read(self, part: str, index: int, labels: Ints, exact: Ints) -> Ints:
        self.block += part == "size"  # read once a block, before all else
        spy = Spy()
        KeyedCounters(self.sketch, spy, self.block).read(part, index, labels, exact)  # type: ignore[arg-type]
        for _, node, last in spy.asked:
            for label in labels.tolist():
                self.keys_of.setdefault((part, label, node), set()).add(last)
        # Phases end at random, whatever the noise is.
        return exact + self.made_up.integers(-1, 5, len(exact))


def test_a_counter_meets_each_node_under_one_key_whenever_its_phase_began() -> None:
    late = 0
    for seed in range(12):
        noted = Noted(tiny(), made_up=np.random.default_rng(seed))
        stream = tuple(Point(block, (3,)) for block in (1, 1, 2, 3))
        ends = played(tiny(), by_clock(stream), noted)  # type: ignore[arg-type]
        assert {len(lasts) for lasts in noted.keys_of.values()} == {1}
        late += ends[-1].phase
    assert late > 12


def test_no_two_cells_of_any_phase_and_level_share_a_label() -> None:
    sketch = tiny()
    found = [
        int(sketch.cell_labels(phase, np.array([number << 6 | level]))[0])
        for phase in range(64)
        for level in (1, 9, 24)
        for number in (0, 1, 2, (1 << 44) - 1)
    ]
    assert len(set(found)) == len(found)
    assert min(found) >= 0


# Bits: whether another point is there changes none of a point's own numbers.


@pytest.mark.parametrize("columns", [1, 2, 5, 10])
def test_no_point_moves_the_bits_of_another(columns: int) -> None:
    box = Box.of(
        box_columns([0] * columns, [2**24 - 1] * columns, "1"), default_levels(columns), CLIP_PARTS
    )
    generator, ends = np.random.default_rng(columns), np.array(box.grid.extents)
    for many in (1, 3, 17, 500, 8192):
        representatives = (generator.random((many, columns)) * (ends + 1)).astype(np.int64)
        points = (generator.random((90, columns)) * (ends + 1)).astype(np.int64)
        representatives[0] = points[0] = ends
        places, squares = box.nearest(points, representatives)
        others = np.delete(np.arange(90), [0, 41])
        fewer, same = box.nearest(points[others], representatives)
        assert np.array_equal(places[others], fewer)
        assert squares[others].tobytes() == same.tobytes()
        alone = [box.nearest(points[[row]], representatives)[1][0] for row in range(0, 90, 9)]
        assert squares[::9].tolist() == alone
        offsets = box.offsets(points, representatives[places])
        assert int((offsets * offsets).sum(axis=1).max()) <= RADIUS**2
