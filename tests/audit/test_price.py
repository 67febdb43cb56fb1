"""What retroactivity costs: amnesia, and errors beside those of a mechanism that remembers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retrodp.audit import price
from retrodp.audit.histories import Arrived, History, Survivors, asked, exact_rounds
from retrodp.audit.price import Method, Size, Waves, measure, predicted_crossing, predicted_ratio
from retrodp.audit.rows import Point, update
from retrodp.audit.subjects import plan_of
from retrodp.cli.app import run
from retrodp.engine.compile import compile_plan, keyed
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.flippancy import Flips, hashed
from retrodp.mechanisms.lived import lived
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.stream.update import Op
from tests.audit.sizes import SEED

HORIZON = 6
METHODS: dict[str, dict[str, Any]] = {
    "fresh": {"method": "fresh"},
    "ladder": {"method": "ladder", "expect": [1, 20]},
    "minhash": {"method": "minhash", "expect": [1, 20]},
    "flippancy": {"method": "flippancy"},
    "known": {"method": "flippancy", "flips": 1},
    "recompute": {"method": "recompute"},
}


def plan() -> Plan:
    releases = {
        name: {"kind": "distinct", "of": "product", **keys} for name, keys in METHODS.items()
    }
    return plan_of(releases, model="zcdp", horizon=HORIZON, epsilon=2)


def point(plan: Plan, number: int, stamp: int) -> Point:
    values = tuple(
        f"{column.name} {number}" if column.type == "text" else None for column in plan.columns
    )
    country = [column.name for column in plan.columns].index("country")
    values = (*values[:country], "DE", *values[country + 1 :])
    return Point(id=f"id {number}", stamp=stamp, person=f"who {number}", values=values)


def busy(plan: Plan) -> History:
    """Additions, deletions, additions again: items 0, 2 and 4 survive, with late stamps."""
    rounds = []
    for round_ in range(1, HORIZON + 1):
        updates = [
            update(plan, Op.ADD if (round_ + number) % 2 else Op.DELETE, own, round_=round_)
            for number in range(5)
            for own in [point(plan, number, round_)]
        ]
        rounds.append(Arrived(tuple(updates)))
    return tuple(rounds)


def insertions(plan: Plan, history: History, keys: KeyTree) -> History:
    """Lemma 6.2's stream: at every round the additions of the survivors that carry its stamp."""
    survivors = Survivors(plan)
    for round_, arrived in enumerate(history, start=1):
        survivors.receive(round_, arrived, keys)
    records = [*survivors.records()]
    assert records
    return tuple(
        Arrived(
            tuple(
                update(plan, Op.ADD, point(plan, int(one.id[3:]), one.stamp), round_=round_)
                for one in records
                if one.stamp == round_
            )
        )
        for round_ in range(1, HORIZON + 1)
    )


def test_amnesia_every_retroactive_count_answers_as_on_a_stream_of_additions_alone() -> None:
    """KKMNS lemma 6.2, by bytes under one key; and what remembers does not."""
    own = plan()
    keys = KeyTree.from_root(bytes(32), b"amnesia", HORIZON)
    releases = keyed(compile_plan(own, resolve(own)), keys)
    history = busy(own)
    both = [
        exact_rounds(own, releases, one, keys) for one in (history, insertions(own, history, keys))
    ]
    assert both[0][-1].survivors == both[1][-1].survivors
    same = {}
    for release in releases:
        ends = []
        for rounds in both:
            mechanism = lived(release.mechanism)
            answers = [asked(mechanism, r, now, keys) for r, now in enumerate(rounds, start=1)]
            ends.append(answers[-1].to_bytes())
        same[release.name] = ends[0] == ends[1]
    promised = {one.name: one.mechanism.retroactive == "exact" for one in releases}
    assert promised == {name: name in {"fresh", "ladder", "minhash"} for name in METHODS}
    assert all(same[name] for name, exact in promised.items() if exact)
    assert not same["flippancy"]
    assert not same["known"]


def test_waves_are_streams_of_their_flippancy() -> None:
    for flips in (1, 2, 8):
        stream = Waves(horizon=64, flips=flips)
        assert set(stream.counts(64).tolist()) == {flips}
        assert len(stream.present(64)) == 64 * (flips % 2)


def test_what_the_measurement_assumes_known_is_what_the_mechanism_would_know() -> None:
    stream, flips = Waves(horizon=24, flips=4), Flips.none()
    for round_ in range(1, 25):
        before = flips
        present = hashed([one.encode() for one in stream.present(round_)], bytes(32))
        flips = before.after(present, 8)
        assert sorted(flips.counts.tolist()) == sorted(stream.known(round_).counts.tolist())


@pytest.mark.parametrize("title", ["flippancy, w known", "fresh"])
def test_measured_errors_are_the_predicted_ones(title: str) -> None:
    """150 keys, two rounds: within 25 %, five deviations of the measurement."""
    horizon = 64
    method = (
        Method.of(title, horizon, method="fresh")
        if title == "fresh"
        else Method.of(title, horizon, method="flippancy", flips=2)
    )
    found = measure(
        method, Waves(horizon=horizon, flips=2), SEED, Size(horizon=horizon, keys=150, rounds=2)
    )
    assert found.rmse == pytest.approx(found.predicted, rel=0.25)
    assert found.covered >= 0.9
    assert found.retroactive == (title == "fresh")


def test_memory_pays_on_easy_streams_and_not_on_hard_ones() -> None:
    for horizon in (512, 4096, 65536):
        crossing = predicted_crossing(horizon)
        assert predicted_ratio(horizon, 1) < 1 / 4
        assert predicted_ratio(horizon, crossing) >= 1
        assert crossing == 1 or predicted_ratio(horizon, crossing - 1) < 1
    assert predicted_crossing(512) < predicted_crossing(4096) < predicted_crossing(65536)


def test_the_command_prints_a_row_a_method_and_the_crossing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(price, "SMOKE", Size(horizon=32, keys=8, rounds=2))
    monkeypatch.setattr(price, "FLIPPANCIES", (1, 2))
    run(["audit", "price", "--json", "--seed", SEED.hex])
    document = json.loads(capsys.readouterr().out)
    assert len(document["rows"]) == 2 * 5 + 1
    assert document["rows"][-1]["test"] == "crossing"
