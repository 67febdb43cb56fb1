"""Clusterings in a store: they run, forget to the byte, are shown, exported and verified."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrodp.engine.check import check
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import ExtraMissingError, StoreCorruptError, UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.statistics.cells import Cells
from retrodp.views import show, words
from retrodp.views.export import write
from retrodp.views.published import Published
from tests.support.clusters import blobs, plan
from tests.views.screens import screen

EXTRA = "coreset = true"


def rows(first: int, last: int) -> list[dict[str, object]]:
    points, _ = blobs(2000)
    return [
        {"id": str(at), "who": "ann", "x0": points[at, 0] / 1000, "x1": points[at, 1] / 1000}
        for at in range(first, last)
    ]


def exported(published: Published, path: Path) -> Path:
    with path.open("wb") as handle:
        write(published, handle, format="parquet")
    return path


def of_round(published: Published, round_: int) -> Answer:
    answer = published.answer(round_, "places")
    assert answer is not None
    return answer


def lived(path: Path, made: Plan, *, detour: bool) -> list[bytes]:
    """Answers of a store from round 3 on; with a detour through 500 points that are deleted."""
    with Store.create_for_tests(path, made) as store:
        store.add(pa.Table.from_pylist(rows(0, 900 if detour else 400)))
        store.close_round()
        if detour:
            store.delete([str(at) for at in range(400, 700)])
        store.close_round()
        store.add(pa.Table.from_pylist(rows(1000, 1800)))
        if detour:
            store.delete([str(at) for at in range(700, 900)])
        store.close_round()
        store.close_round()
        assert verify(store).passed
    with Published.open(path) as published:
        return [of_round(published, round_).to_bytes() for round_ in (3, 4)]


@pytest.mark.parametrize(
    ("kind", "extra"), [("kmeans", EXTRA), ("kmedian", f'{EXTRA}\nvariant = "lths"')]
)
def test_histories_that_unite_publish_the_same_bytes(ram: Path, kind: str, extra: str) -> None:
    made = plan(kind=kind, epsilon=40, extra=extra)
    one, two = (lived(ram / str(detour), made, detour=detour) for detour in (False, True))
    assert one == two
    assert b"coreset" in one[0]


def test_a_window_lets_points_go(ram: Path) -> None:
    made = plan(epsilon=40, extra='window = "1d"')
    with Store.create_for_tests(ram / "store", made) as store:
        store.add(pa.Table.from_pylist(rows(0, 900)))
        store.close_round()
        store.close_round()
    with Published.open(ram / "store") as published:
        found = [len(of_round(published, round_)) for round_ in (1, 2)]
    assert found[0] > 3
    assert found[1] == 1


def test_a_release_is_shown_and_explained(ram: Path) -> None:
    made = plan(epsilon=40)
    with Store.create_for_tests(ram / "store", made) as store:
        store.add(pa.Table.from_pylist(rows(0, 900)))
        store.close_round()
    with Published.open(ram / "store") as published:
        printed = screen(lambda console: show.render(console, show.document(published)))
        table = pq.read_table(exported(published, ram / "places.parquet"))
    assert '["centre",1,"x1"]' in printed
    assert table.num_rows == len(table["value"].drop_null()) > 3
    assert table["stddev"].null_count > 0  # a centre has an interval and no standard deviation
    assert "centres of x0, x1" in words.meaning(made.to_dict()["release"][0])
    statement = check(made)
    assert statement["releases"][0]["mechanism"] == "kmeans of noisy cells"


def test_every_choice_is_stored_and_a_drift_is_refused() -> None:
    made = plan()
    resolved = resolve(made)
    (entry,) = resolved.releases
    assert {"geometry", "instances", "least_counts", "bands"} <= set(entry)
    other = resolved.to_json().replace(b'"radius":4096', b'"radius":8192')
    drifted = ResolvedPlan.from_json(other)
    with pytest.raises(StoreCorruptError, match="cells"):
        compile_plan(made, drifted)


def test_an_open_horizon_goes_on_from_the_survivors_on_another_grid(ram: Path) -> None:
    """Epochs of 2, 4 and 8 rounds: each begins with the points that survive, under keys of its own."""
    text = plan(epsilon=400, extra='variant = "lths"\nlevels = [2, 4]').text
    made = Plan.loads(text.replace("horizon = 16", 'horizon = "open"\nepochs = { first = 2 }'))
    instances, grids = [], set()
    with Store.create_for_tests(ram / "store", made) as store:
        store.add(pa.Table.from_pylist(rows(0, 1500)))
        for _ in range(8):
            store.close_round()
            (release,) = store.releases
            assert isinstance(release.statistic, Cells)
            instances.append(release.statistic.instances)
            grids.add(release.statistic.placed[0].shifts)
            assert verify(store).passed
    with Published.open(ram / "store") as published:
        found = [of_round(published, round_).values[0] for round_ in range(1, 9)]
    assert instances == [1, 1, 2, 2, 2, 2, 3, 3]
    assert len(grids) == 3
    assert all(one is not None and abs(one + 300) < 30 for one in found)


def test_a_close_without_the_solver_changes_nothing_and_goes_on_with_it(ram: Path) -> None:
    """A store that was made where scikit-learn is, closed where it is not, and taken back."""
    answers = []
    for missing in (False, True):
        with Store.create_for_tests(ram / str(missing), plan(epsilon=40)) as store:
            store.add(pa.Table.from_pylist(rows(0, 900)))
            if missing:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(importlib.util, "find_spec", lambda _: None)
                    with pytest.raises(ExtraMissingError):
                        store.close_round()
            store.close_round()
            assert verify(store).passed
        with Published.open(ram / str(missing)) as published:
            assert published.last_round == 1
            answers.append(of_round(published, 1).to_bytes())
    assert answers[0] == answers[1]


def test_a_plan_without_the_solver_is_refused_before_anything_is_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install scikit-learn"):
        resolve(plan())
    assert resolve(plan(kind="kmedian")).releases
