"""Online clusterings in a store: they run, verify, keep what arrived and no point of it."""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrodp.clustering.memory import Memory as Counters
from retrodp.clustering.online import Memory, OnlineClusters
from retrodp.engine.check import check
from retrodp.engine.compile import compile_plan
from retrodp.engine.forget import Forgotten
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.engine.verify import openable_rounds, verify
from retrodp.errors import (
    KeyDestroyedError,
    NotInThisVersionError,
    PlanError,
    StoreCorruptError,
)
from retrodp.mechanisms.answer import Answer
from retrodp.noise.factors.gathered import BlockKeys
from retrodp.noise.prf import Coordinates
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.views import show, words
from retrodp.views.export import write
from retrodp.views.published import Published
from tests.support.online import moment, plan, rows
from tests.support.stores import new_store, published, read_files
from tests.views.screens import screen

BOTH = '\n[release.points]\nkind = "count"'
Row = dict[str, Any]


def fill(store: Store, given: Sequence[Row]) -> None:
    store.add(pa.Table.from_pylist(list(given)))


def of_round(path: Path, round_: int) -> Answer:
    with Published.open(path) as found:
        answer = found.answer(round_, "places")
    assert answer is not None
    return answer


def numbers(answer: Answer) -> dict[tuple[Any, ...], float]:
    assert answer.keys is not None
    return {
        tuple(json.loads(key)): float(value * answer.step)
        for key, value in zip(answer.keys, answer.values, strict=True)
        if value is not None
    }


# What is published.


def test_centres_find_the_groups_and_hardly_move(ram: Path) -> None:
    with new_store(ram / "store", plan(epsilon=20)) as store:
        for day in range(1, 7):
            fill(store, rows(day * 1000, day * 1000 + 400, day))
            store.close_round()
            assert verify(store).passed
    found = numbers(of_round(ram / "store", 6))
    assert found["centres",] == 2
    centres = sorted((found["centre", n, "x"], found["centre", n, "y"]) for n in (1, 2))
    for (x, y), (real_x, real_y) in zip(centres, [(-3, 2), (3, -1)], strict=True):
        assert abs(x - real_x) < 1
        assert abs(y - real_y) < 1
    assert abs(found["size", 1] - 1200) < 300
    assert abs(found["size", 2] - 1200) < 300
    assert 2 <= found["recourse",] <= 6
    changes = [numbers(of_round(ram / "store", r))["changed",] for r in range(1, 7)]
    assert sum(changes) == found["recourse",]
    assert changes[-1] == 0


def test_weights_have_intervals_and_all_else_is_what_it_is(ram: Path) -> None:
    with new_store(ram / "store", plan(epsilon=20)) as store:
        fill(store, rows(0, 400))
        store.close_round()
        (entry,) = store.resolved.releases
    answer = of_round(ram / "store", 1)
    noisy = {figure.key for figure in answer.figures() if figure.bounds.low < figure.bounds.high}
    assert noisy == {key for key in answer.keys or () if '"weight"' in key or '"size"' in key}
    deviations = {one.bounds.stddev for one in answer.figures() if '"weight"' in one.key}
    assert deviations == {entry["further"][0]["stddev"][0]}


def test_a_release_is_shown_exported_and_explained(ram: Path) -> None:
    made = plan(epsilon=20)
    with new_store(ram / "store", made) as store:
        fill(store, rows(0, 400))
        store.close_round()
    with Published.open(ram / "store") as found:
        printed = screen(lambda console: show.render(console, show.document(found)))
        with (ram / "places.parquet").open("wb") as handle:
            write(found, handle, format="parquet")
    assert '["centre",1,"x"]' in printed
    table = pq.read_table(ram / "places.parquet")
    assert table.num_rows == len(table["value"].drop_null()) > 3
    assert "all x, y that arrived" in words.meaning(made.to_dict()["release"][0])


def test_the_median_has_its_own_kind(ram: Path) -> None:
    keys = 'algorithm = "hysteresis"'
    with new_store(ram / "store", plan(kind="online_kmedian", epsilon=20, keys=keys)) as store:
        fill(store, rows(0, 800))
        store.close_round()
        store.close_round()
        assert verify(store).passed
        mechanism = store.releases[0].mechanism
        assert isinstance(mechanism, OnlineClusters)
        assert (mechanism.sketch.power, mechanism.consistent.power) == (1, 1)


# A function of what arrived in each round, and of nothing else.


def test_batches_and_their_order_change_no_byte(ram: Path) -> None:
    days = {day: rows(day * 1000, day * 1000 + 150, day) for day in (1, 2, 3)}
    with new_store(ram / "one", plan(epsilon=20)) as store:
        for day in (1, 2, 3):
            fill(store, days[day])
            store.close_round()
    whole = [row for day in (3, 1, 2) for row in days[day][::-1]]
    with new_store(ram / "two", plan(epsilon=20)) as store:
        for part in (whole[:70], whole[70:333], whole[333:]):
            fill(store, part)
    store = Store.open(ram / "two")
    for _ in range(3):
        store.close_round()
        store.close()
        store = Store.open(ram / "two")
    store.close()
    assert published(ram / "one") == published(ram / "two")


def test_points_that_are_deleted_stay_in_it_and_leave_all_else(ram: Path) -> None:
    for name, gone in (("kept", False), ("gone", True)):
        made = Plan.loads(plan(epsilon=20).text + BOTH)
        with new_store(ram / name, made) as store:
            fill(store, rows(0, 400))
            store.close_round()
            if gone:
                store.delete([f"point-{number}" for number in range(200)])
            store.close_round()
            assert verify(store).passed
    kept, gone_ = published(ram / "kept"), published(ram / "gone")
    assert kept[2]["places"] == gone_[2]["places"]
    assert kept[2]["points"] != gone_[2]["points"]


def test_what_arrives_and_goes_within_a_round_was_never_there(ram: Path) -> None:
    stray = {"id": "stray", "at": moment(1, 5), "x": 4.9, "y": 4.9}
    for name, extra in (("without", []), ("with", [stray])):
        with new_store(ram / name, plan(epsilon=20)) as store:
            fill(store, [*rows(0, 300), *extra])
            if extra:
                store.forget(["stray"])
            store.close_round()
    assert published(ram / "with") == published(ram / "without")


# No point is left of what is deleted.

LONE = {"id": "a lone point", "at": moment(2), "x": -4.37, "y": 4.71}
PLACE = (-437, 471)
TRACES = (
    b"a lone point",
    struct.pack(">2q", *PLACE),
    struct.pack("<2q", *PLACE),
    msgspec.msgpack.encode(PLACE)[1:],
)


def with_lone_point(path: Path) -> Store:
    store = new_store(path, plan(epsilon=20))
    fill(store, rows(0, 300))
    store.close_round()
    fill(store, [*rows(1000, 1200, 2), LONE])
    return store


@pytest.mark.parametrize("how", ["deleted", "forgotten"])
def test_no_file_holds_the_id_or_the_place_of_a_deleted_record(ram: Path, how: str) -> None:
    with with_lone_point(ram / "store") as store:
        store.close_round()
        before = b"".join(read_files(ram / "store").values())
        assert [trace in before for trace in TRACES[:2]] == [True, True]  # until the next close
        if how == "deleted":
            store.delete(["a lone point"])
            store.close_through(3)
        else:
            store.forget(["a lone point"])
            store.close_round()
        verified = verify(store, [Forgotten("id", "a lone point")])
    content = b"".join(read_files(ram / "store").values())
    assert [trace in content for trace in TRACES] == [False] * 4
    assert verified.passed
    assert verified.document["keep_what_is_forgotten"] == ["places"]
    assert verified.document["forgotten"][0]["left_in"] == []


def test_the_state_is_counters_and_what_was_published(ram: Path) -> None:
    with with_lone_point(ram / "store") as store:
        store.close_round()
        kept = store.ledger.states.read("places", 2)
        assert kept is not None
    memory = Memory.from_bytes(kept.state)
    assert [trace in kept.state for trace in TRACES] == [False] * 4
    counters = Counters.from_bytes(memory.sketch, 2)
    assert counters.weights.sum() == 501
    answer = numbers(of_round(ram / "store", 2))
    points = [
        [round(answer["representative", n, "at", axis] * 100) for axis in ("x", "y")]
        for n in range(1, int(answer["representatives",]) + 1)
    ]
    assert counters.points.tolist() == points == memory.shown.points
    assert memory.to_bytes() == kept.state


def test_twin_a_state_with_an_id_in_it_is_found(ram: Path) -> None:
    with with_lone_point(ram / "store") as store:
        store.close_round()
        store.forget(["a lone point"])
        store.close_round()
        store.ledger._database.execute(
            "UPDATE states SET state = CAST(state || 'a lone point' AS BLOB) WHERE round = 3"
        )
        verified = verify(store, [Forgotten("id", "a lone point")])
    assert not verified.passed
    assert verified.document["forgotten"][0]["left_in"]


def test_a_state_that_cannot_be_read_is_refused() -> None:
    (release,) = compile_plan(plan(), resolve(plan()))
    assert isinstance(release.mechanism, OnlineClusters)
    state = release.mechanism.begin()
    for broken in (b"", state[:-1], b"\x94\x02\xc4\x00\xc4\x00\xc0", state + b"\x00"):
        with pytest.raises(StoreCorruptError):
            Memory.from_bytes(broken)


def test_a_receipt_says_that_the_release_keeps_the_influence(ram: Path) -> None:
    with with_lone_point(ram / "store") as store:
        store.close_round()
        (receipt,) = store.forget(["a lone point"])
    assert receipt.to_json()["kept_by"] == ["places"]


# The plan says so.


@pytest.mark.parametrize("kind", ["kmeans", "kmedian"])
def test_a_plan_must_say_that_it_forgets_in_part(ram: Path, kind: str) -> None:
    complete = plan(kind=f"online_{kind}", forgetting="complete")
    with pytest.raises(PlanError, match="not retroactive") as caught:
        check(complete)
    assert f'plan kind = "{kind}"' in str(caught.value)
    assert 'forgetting = "partial"' in str(caught.value)
    with pytest.raises(PlanError):
        Store.create_for_tests(ram / "store", complete)
    assert not (ram / "store").exists()


def test_check_says_what_is_kept_and_predicts_the_weights() -> None:
    document = check(plan())
    assert document["retroactivity"] == {"places": "no"}
    (release,) = document["releases"]
    assert release["stddev_max"] > 0
    assert {part["part"]: part["share"] for part in release["parts"]} == {
        "cells": "1/2",
        "weights": "1/5",
        "sums": "1/4",
        "size": "1/20",
    }
    assert release["representatives_max"] >= release["representatives_a_phase"] > 0
    assert any(note.startswith("places: not ") for note in document["notes"])
    assert any("standard deviation of at most" in note for note in document["notes"])


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ('window = "2d"', "window"),
        ('factor = "haar"', "factor"),
        ('factor = "dense"', "factor"),
        ('factor = "delannoy"', "factor"),
        ('mode = "theory"', "points"),
        ("points = 1000", "points"),
        ('algorithm = "lloyd"', "algorithm"),
        ("blocks = 0", "blocks"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(keys: str, what: str) -> None:
    with pytest.raises(PlanError, match=what):
        check(plan(keys=keys))


def test_no_solver_is_needed(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with Store.create_for_tests(ram / "store", plan(epsilon=20)) as store:
        fill(store, rows(0, 300))
        store.close_round()
        assert verify(store).passed


@pytest.mark.parametrize("points", [2, 10**6, 10**14])
def test_theory_is_refused_with_its_numbers(points: int) -> None:
    with pytest.raises(PlanError, match=r"Psi = .*tau = .*R = ") as caught:
        check(plan(k=10, epsilon=1, keys=f'mode = "theory"\npoints = {points}'))
    assert f"n = {points:,}" in str(caught.value)


def test_theory_that_says_something_is_for_the_library() -> None:
    generous = plan(k=1, epsilon=1000, keys=f'mode = "theory"\npoints = {1 << 50}')
    with pytest.raises(NotInThisVersionError, match="theory_sketch"):
        check(generous)


def test_every_choice_is_stored_and_a_drift_is_refused() -> None:
    made = plan()
    resolved = resolve(made)
    (entry,) = resolved.releases
    assert {"geometry", "clip", "rounds_a_block", "least_counts", "cap", "band", "centres"} <= set(
        entry
    )
    other = resolved.to_json().replace(b'"radius":4096', b'"radius":8192')
    with pytest.raises(StoreCorruptError, match="cells"):
        compile_plan(made, ResolvedPlan.from_json(other))


# Blocks of several rounds.


def test_within_a_block_the_last_answer_stands(ram: Path) -> None:
    made = plan(epsilon=20, horizon=7, keys="blocks = 3")  # of 3, 3 and 1 rounds
    with new_store(ram / "store", made) as store:
        for day in range(1, 8):
            fill(store, rows(day * 1000, day * 1000 + 300, day))
            store.close_round()
            assert verify(store).passed
        assert openable_rounds(store).keys() == {"places"}
    found = [numbers(of_round(ram / "store", round_)) for round_ in range(1, 8)]
    assert found[0] == found[1]
    assert found[0]["centres",] == found[0]["representatives",] == 0
    assert found[2] == found[3] == found[4] != found[5] != found[6]
    assert abs(found[5]["size", 1] + found[5]["size", 2] - 1800) < 150
    borns = {value for label, value in found[6].items() if label[-1] == "born"}
    assert borns <= {0, 3, 6, 7}
    assert 3 in borns


def test_a_round_is_open_as_long_as_the_weights_that_it_shows(ram: Path) -> None:
    """Rounds 1 and 2 show no block, rounds 3 to 5 the first, round 6 the second."""
    blocks_shown = {3: 1, 4: 1, 5: 1, 6: 2, 7: 3}
    opened, expected = [], []
    with new_store(ram / "store", plan(epsilon=20, horizon=7, keys="blocks = 3")) as store:
        (release,) = store.releases
        mechanism = release.mechanism
        assert isinstance(mechanism, OnlineClusters)
        for round_ in range(1, 8):
            store.close_round()
            own = BlockKeys(store.key.tree, mechanism.gathered)
            opened.append(openable_rounds(store)["places"])
            expected.append(
                sum(
                    derivable(mechanism, own, block)
                    for shown, block in blocks_shown.items()
                    if shown < round_
                )
            )
    assert opened == expected
    assert max(expected) > min(expected[3:])  # some rounds close, some stay open


def derivable(mechanism: OnlineClusters, keys: BlockKeys, block: int) -> bool:
    """Whether every draw in the weights of a block can be made again."""
    try:
        mechanism.sketch.weights.draw(
            release="any", round=block, keys=keys, where=Coordinates.of_indices(1)
        )
    except KeyDestroyedError:
        return False
    return True


@pytest.mark.parametrize(("named", "length"), [(8, 1), (9, 1), (4, 2), (3, 3), (1, 8)])
def test_there_are_at_most_as_many_blocks_as_are_named(named: int, length: int) -> None:
    (release,) = check(plan(keys=f"blocks = {named}"))["releases"]
    assert release["rounds_a_block"] == length
    assert release["blocks"] == -(-8 // length) <= named


def test_without_forward_secrecy_the_weights_have_less_noise() -> None:
    lean, lasting = (
        check(plan(horizon=128, secrecy=secrecy))["releases"][0] for secrecy in (True, False)
    )
    assert (lean["factor"], lasting["factor"]) == ("binary", "sqrt")
    assert lasting["stddev_max"] < 0.6 * lean["stddev_max"]


# Other streams, other models.


def test_a_new_epoch_begins_anew_from_the_survivors(ram: Path) -> None:
    text = plan(epsilon=60, keys="blocks = 3").text.replace(
        "horizon = 8", 'horizon = "open"\nepochs = { first = 2, number = 3 }'
    )
    with new_store(ram / "store", Plan.loads(text)) as store:
        fill(store, rows(0, 400))
        store.close_through(2)
        store.delete([f"point-{number}" for number in range(1, 400, 2)])
        store.close_through(2)
        before = numbers(of_round(ram / "store", 2))
        store.close_through(4)  # epoch 2 has four rounds, so its blocks have two
        assert verify(store).passed
    after = numbers(of_round(ram / "store", 4))
    assert before["size", 1] + before.get(("size", 2), 0) > 350
    assert after["size", 1] + after.get(("size", 2), 0) < 250


@pytest.mark.parametrize("model", ["zcdp", "pure"])
def test_streams_without_ids_are_counted_copy_by_copy(ram: Path, model: str) -> None:
    made = plan(epsilon=60, stream="ids = false", model=model)
    given = [{"at": moment(1), "x": x, "y": y, "n": 150} for x, y in ((-3.0, 2.0), (3.0, -1.0))]
    with new_store(ram / "store", made) as store:
        fill(store, given)
        store.close_round()
        assert verify(store).passed
        kept = store.ledger.states.read("places", 1)
        assert kept is not None
    counters = Counters.from_bytes(Memory.from_bytes(kept.state).sketch, 2)
    assert counters.weights.sum() == 300


def test_records_of_a_person_are_charged_together() -> None:
    person = 'unit = "person_round"\nperson = "who"\nmax_records = 3'
    made = plan(stream=person, texts='who = "text"')
    one, three = (check(own)["releases"][0] for own in (plan(), made))
    ratio = float(three["stddev_max"]) / float(one["stddev_max"])
    assert 2.9 < ratio < 3.1


def test_a_certificate_tells_of_noise_that_is_never_published_itself(ram: Path) -> None:
    with with_lone_point(ram / "store") as store:
        store.close_round()
        key = verify(store).document["key"]
    assert key["decisions_not_counted"] == ["places"]
    assert "remove the noise of the numbers published in the current round" in key["note"]
    assert "Of places only the weights and means are counted." in key["note"]
    assert "noisy counts of cells and noisy sizes of phases" in key["note"]
    assert "the key may still tell from which exact count on a place was published" in key["note"]
