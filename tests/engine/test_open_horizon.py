"""A plan without a known horizon goes on across its epochs as if there were no borders."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from retrodp.engine import crossing
from retrodp.engine.backup import Place
from retrodp.engine.check import describe
from retrodp.engine.compile import compile_plan
from retrodp.engine.crossing import NextEpoch
from retrodp.engine.resolve import resolve, resolve_next
from retrodp.engine.restore import restore_as_is, restore_into
from retrodp.engine.spending import norms_of
from retrodp.engine.store import Ingested, Store
from retrodp.engine.verify import verify
from retrodp.errors import (
    HorizonExceededError,
    KeyMismatchError,
    StoreBehindError,
    StoreCorruptError,
)
from retrodp.mechanisms.answer import Answer
from retrodp.noise.factors.contract import LONGEST_HORIZON
from retrodp.noise.key import KeyTree
from retrodp.plan.open_horizon import LONGEST_EPOCH
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import PrivacyLoss, pure_epsilon, total_rho
from retrodp.store.facts import Facts
from retrodp.store.keyfile import PlainKeyFile
from retrodp.store.ledger import Ledger
from retrodp.stream.clock import Clock
from retrodp.stream.sources import read_frame
from tests.support.plans import HORIZON, Kind, opened, plan
from tests.support.rows import Contents, Row, add, delete, ingest
from tests.support.stores import (
    ROOT,
    abandon,
    crashed,
    fingerprints,
    memory_directory,
    new_store,
    published,
    read_files,
    write_files,
)
from tests.support.uniting import Forget, History, Pair, pairs

RELEASES = """
[release.lines]
kind = "count"
[release.recent]
kind = "count"
window = "2d"
[release.recent_money]
kind = "sum"
of = "amount"
by = "country"
window = "2d"
[release.by_product]
kind = "histogram"
by = "product"
share = 6
"""
EPOCHS = "first = 2\nnumber = 3"
BORDERS, LAST = (2, 6, 14), 14
ONE = '[release.lines]\nkind = "count"'


def open_plan(kind: Kind = "ids", *, releases: str = RELEASES) -> Plan:
    return opened(kind, releases=releases, epochs=EPOCHS)


_later: dict[tuple[str, int], ResolvedPlan] = {}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every epoch of a plan is resolved once: it takes a second and is no subject of most tests."""

    def once(
        plan: Plan, before: ResolvedPlan, *, epoch: int, boundaries: tuple[int, ...]
    ) -> ResolvedPlan:
        key = (before.fingerprint, epoch)
        if key not in _later:
            _later[key] = resolve_next(plan, before, epoch=epoch, boundaries=boundaries)
        return _later[key]

    monkeypatch.setattr(crossing, "resolve_next", once)


def totals(store: Store) -> dict[str, dict[bytes, int]]:
    return {release.name: store.ledger.read_totals(release.name) for release in store.releases}


def survivors(store: Store) -> Counter[tuple[str, str, int, bytes]]:
    """Surviving records, stamps numbered on."""
    found: Counter[tuple[str, str, int, bytes]] = Counter()
    for batch in store.ledger.survivors():
        for record in batch:
            stamp = store.rounds_before + record.stamp
            found[record.space, record.id, stamp, record.payload] += record.count
    return found


ROWS = [
    *(add(f"a{number}", 1, product="tea") for number in range(5)),
    add("b", 2, product="ink", country="FR", amount=7.0),
    replace(add("late", 4, amount=9.5), stamp=1),
    delete("a0", 3),
    add("c", 4, product="ink"),
    delete("b", 7),
    add("d", 6, amount=3.0),
    replace(add("later", 9, amount=2.0), stamp=6),
    delete("a1", 7),
    add("e", 13),
]
POINTS = [
    replace(row, contents=Contents(product="tea"), stamp=1) if row.op == "delete" else row
    for row in ROWS
]


# The border is not seen.


@pytest.mark.parametrize("kind", ["ids", "points", "persons"])
def test_exact_totals_and_survivors_are_those_of_a_store_without_epochs(
    ram: Path, kind: Kind
) -> None:
    """Windows, late stamps and deletions over the borders; all updates were taken in round 1."""
    known = plan(kind, horizon=LAST, releases=RELEASES)
    rows = POINTS if kind == "points" else ROWS
    if kind == "persons":  # whose bound is kept by hashes under the key; here nobody reaches it
        rows = [replace(row, contents=replace(row.contents, who=f"of {row.id}")) for row in ROWS]
    with new_store(ram / "epochs", open_plan(kind)) as store, new_store(ram / "one", known) as one:
        assert ingest(store, rows).tally == ingest(one, rows).tally
        seen = []
        for round_ in range(1, LAST + 1):
            release = store.close_round()
            one.close_round()
            assert (release.round, store.round) == (round_, round_)
            assert (totals(store), survivors(store)) == (totals(one), survivors(one)), round_
            seen.append(store.epoch.number)
            assert verify(store).document["releases_equal"] is True
        assert seen == [1] * 2 + [2] * 4 + [3] * 8
        assert store.over
        with pytest.raises(HorizonExceededError, match="retrodp continue"):
            store.close_round()
    found = published(ram / "epochs")
    assert list(found) == list(range(1, LAST + 1))
    assert all(
        Answer.from_bytes(answer).round == round_
        for round_, answers in found.items()
        for answer in answers.values()
    )


def test_the_calendar_of_all_epochs_is_that_of_one_horizon(ram: Path) -> None:
    known = Clock.of_stream(plan(horizon=LAST).stream)
    with new_store(ram / "store", open_plan()) as store:
        for _ in range(LAST):
            clock = store.clock
            assert (*clock.past, *clock.boundaries) == known.boundaries
            store.close_round()


def test_a_command_through_a_later_epoch_closes_every_round_to_there(ram: Path) -> None:
    with new_store(ram / "store", open_plan(releases=ONE)) as store:
        ingest(store, ROWS)
        assert store.close_through(9) == 9
        assert (store.round, store.epoch.number, store.horizon) == (9, 3, LAST)
        with pytest.raises(HorizonExceededError):
            store.close_through(LAST + 1)


def test_a_request_at_a_border_belongs_to_the_first_round_after_it(ram: Path) -> None:
    with new_store(ram / "store", open_plan(releases=ONE)) as store:
        ingest(store, [add("somebody-to-forget", 1), add("kept", 1)])
        store.close_through(2)
        (receipt,) = store.forget(["somebody-to-forget"])
        assert (receipt.from_round, receipt.from_instant) == (3, "2024-01-04T00:00:00+00:00")
        assert store.ledger.survivor_count() == 2
        store.close_round()
        assert totals(store)["lines"] == {b"": 1}
    assert b"somebody-to-forget" not in b"".join(read_files(ram / "store").values())


def test_what_intake_remembers_goes_over_a_border(ram: Path) -> None:
    text = opened(releases=ONE, epochs=EPOCHS).text
    remembering = Plan.loads(text.replace("[stream]", '[stream]\nremember_deleted = "3d"'))
    with new_store(ram / "store", remembering) as store:
        ingest(store, [add("a", 1), delete("a", 2), replace(add("a", 4), second=1), add("a", 6)])
        counts = []
        for _ in range(6):
            store.close_round()
            counts.append(totals(store)["lines"].get(b"", 0))
    assert counts == [1, 0, 0, 0, 0, 1]


def test_a_source_that_waits_over_a_border_is_not_taken_twice(ram: Path) -> None:
    """Without ids the same rows again would be other copies."""
    with new_store(ram / "store", open_plan("points", releases=ONE)) as store:
        rows = [replace(add("", 5), n=4)]
        first = deliver(store, rows, digest="of a file")
        store.close_through(3)
        again = deliver(store, rows, digest="of a file")
        store.close_through(5)
        assert (first.repeated, again.repeated) == (False, True)
        assert totals(store)["lines"] == {b"": 4}


def deliver(store: Store, rows: list[Row], *, digest: str) -> Ingested:
    cells = pa.Table.from_pylist([row.cells(ids=False) for row in rows])
    return store.ingest(read_frame(cells, store.layout()), digest=digest)


# The law over a border.


def lived(path: Path, plan: Plan, history: History) -> dict[int, dict[str, bytes]]:
    with new_store(path, plan) as store:
        for round_ in range(1, 8):
            ingest(store, [one for one in history if isinstance(one, Row) and one.round == round_])
            for one in history:
                if isinstance(one, Forget) and one.round == round_:
                    asked = [one.value]
                    _ = store.forget(asked) if one.kind == "id" else store.forget(persons=asked)
            store.close_round()
    return published(path)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pair=pairs(ids=True))
def test_histories_that_unite_publish_the_same_bytes_over_every_border(pair: Pair) -> None:
    with memory_directory() as directory:
        one = lived(directory / "one", open_plan(), pair.one)
        two = lived(directory / "two", open_plan(), pair.two)
    after = range(pair.meet, 8)
    assert {round_: one[round_] for round_ in after} == {round_: two[round_] for round_ in after}


def test_no_two_epochs_share_noise(ram: Path) -> None:
    """Their first rounds have the same place in their trees, and the same data."""
    noisy = opened(releases=ONE, epochs=EPOCHS, epsilon=1)
    with new_store(ram / "store", noisy) as store:
        store.close_through(BORDERS[1] + 1)
    values = [Answer.from_bytes(published(ram / "store")[n]["lines"]).values for n in (1, 3, 7)]
    assert len(set(values)) == 3


def test_twin_epochs_under_one_key_would_share_their_noise() -> None:
    noisy = opened(releases=ONE, epochs=EPOCHS, epsilon=1)
    (compiled,) = compile_plan(noisy.of_epoch(1), resolve(noisy))
    mechanism: Any = compiled.mechanism
    key = KeyTree.from_root(ROOT, b"s", 2)
    first, again = mechanism.release(1, {b"": 7}, key), mechanism.release(1, {b"": 9}, key)
    assert again.values[0] - first.values[0] == 2  # the exact difference
    following = key.following(store_id="s", horizon=2, root=ROOT)
    assert mechanism.release(1, {b"": 9}, following).values != again.values


# Keys.


def test_the_key_of_an_epoch_is_destroyed_at_its_end(ram: Path) -> None:
    with new_store(ram / "store", open_plan(releases=ONE)) as store:
        store.close_through(2)
        old = {node.key for node in store.key.tree.cover}
        copy = (ram / "store.key").read_bytes()
        store.close_round()
        assert old.isdisjoint(node.key for node in store.key.tree.cover)
        assert store.key.epoch == 2
    (ram / "store.key").write_bytes(copy)
    with pytest.raises(KeyMismatchError, match="epoch 1"):
        Store.open(ram / "store")


def test_a_store_that_was_put_back_over_a_border_is_refused(ram: Path) -> None:
    store = new_store(ram / "store", open_plan(releases=ONE))
    store.close_through(2)
    store.close()
    old = read_files(ram / "store")
    with Store.open(ram / "store") as store:
        store.close_round()
        key = (ram / "store.key").read_bytes()
    write_files(ram / "copy", old)
    (ram / "copy.key").write_bytes(key)
    with pytest.raises(StoreBehindError, match="epoch 2"):
        Store.open(ram / "copy")


def test_releases_that_were_put_back_over_a_border_are_noticed(ram: Path) -> None:
    """Also before the first round of the new epoch, when nothing else would miss them."""
    with new_store(ram / "store", open_plan(releases=ONE)) as store:
        store.close_through(1)
    old = (ram / "store" / "releases.sqlite").read_bytes()
    with Store.open(ram / "store") as store:
        store.close_through(2)
        store._parts.begin(NextEpoch.by_itself(store._parts.running, store.ledger, store.files))
    (ram / "store" / "releases.sqlite").write_bytes(old)
    with pytest.raises(StoreCorruptError, match="Rounds 2 to 2 were closed"):
        Store.open(ram / "store")


# A crash at any step.


class Killed(BaseException):
    """Stands for a process that ends at once."""


@contextmanager
def killed_at(step: int, patched: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Make one of the steps of a border the last thing that happens."""
    count = 0
    steps: list[tuple[Any, str]] = [
        (crossing, "write_durably"),
        (crossing, "sync_directory"),
        (PlainKeyFile, "rewrite"),
        (Ledger, "next_epoch"),
        (Facts, "note"),
        (Path, "replace"),
        (Path, "unlink"),
        (Path, "rmdir"),
        (Path, "mkdir"),
    ]
    for owner, name in steps:
        real = getattr(owner, name)

        def call(*args: Any, real: Any = real, **keywords: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise Killed
            return real(*args, **keywords)

        patched.setattr(owner, name, call)
    yield lambda: count


def test_a_kill_at_any_step_of_a_border_loses_and_changes_nothing(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_border = new_store(ram / "border", open_plan())
    ingest(at_border, ROWS)
    at_border.close_through(2)
    abandon(at_border)
    files = read_files(ram / "border")
    write_files(ram / "whole", files)
    with Store.open(ram / "whole") as store, monkeypatch.context() as patched:
        with killed_at(0, patched) as steps:
            store.close_round()
            events = steps()
        store.close_through(7)
        expected = published(ram / "whole"), store.key.to_bytes(), totals(store)
    outcomes = []
    for step in range(1, events + 1):
        write_files(ram / f"killed{step}", files)
        store = Store.open(ram / f"killed{step}")
        with (
            monkeypatch.context() as patched,
            pytest.raises(Killed),
            killed_at(step, patched),
        ):
            store.close_round()
        with crashed(store, ram / f"again{step}") as again:
            again.close_through(7)
            outcomes.append((published(ram / f"again{step}"), again.key.to_bytes(), totals(again)))
            left = (ram / f"again{step}" / "continuing").exists()
            assert not left
    assert outcomes == [expected] * events
    assert events > 15


def test_a_step_that_fails_is_completed_by_the_same_store(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(ram / "store", open_plan())
    ingest(store, ROWS)
    store.close_through(2)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "next_epoch", _no_room)
        with pytest.raises(OSError, match="no room"):
            store.close_round()
    store.close_round()
    assert (store.round, store.epoch.number) == (3, 2)
    store.close()


def test_rows_after_a_step_that_failed_wait_for_the_round_that_they_name(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger may be in the new epoch while the files of it are not yet in their places."""
    store = new_store(ram / "store", open_plan(releases=ONE))
    store.close_through(2)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", _no_room_for_files)
        with pytest.raises(OSError, match="no room"):
            store.close_round()
    ingest(store, [add("a", 3)])
    assert store.ledger.waiting.rounds() == {1: 1}
    store.close()


def _no_room_for_files(self: Path, target: Path) -> Path:
    if self.parent.name == "continuing":
        _no_room()
    return Path(self.rename(target))


def _no_room(*_: object, **__: object) -> None:
    raise OSError(28, "no room")


# The budget.


def epochs_of(plan: Plan) -> list[ResolvedPlan]:
    """All epochs, resolved."""
    series = plan.stream.epochs
    assert series is not None
    found = [resolve(plan)]
    instants = Clock.of(start="2024-01-01", round="1d", horizon=series.before(series.number + 1))
    for number in range(2, series.number + 1):
        first, last = series.before(number), series.before(number + 1)
        within = instants.boundaries[first : last + 1]
        found.append(resolve_next(plan, found[-1], epoch=number, boundaries=within))
    return found


BUDGETED = """
[release.lines]
kind = "count"
share = 2
[release.money]
kind = "sum"
of = "amount"
by = "country"
[release.by_product]
kind = "histogram"
by = "product"
"""


@pytest.mark.parametrize(
    "epochs", ["first = 3\nnumber = 4", 'first = 3\nshares = ["1/2", "1/3", "1/10"]']
)
@pytest.mark.parametrize("kind", ["ids", "persons"])
def test_the_losses_of_all_epochs_together_stay_within_the_budget(kind: Kind, epochs: str) -> None:
    """The exact losses of every mechanism of every epoch, composed anew."""
    plan = opened(kind, releases=BUDGETED, epochs=epochs, epsilon=1)
    resolved = epochs_of(plan)
    losses: list[PrivacyLoss] = []
    thresholds = Fraction(0)
    for number, own in enumerate(resolved, start=1):
        for release in compile_plan(plan.of_epoch(number), own):
            losses += release.mechanism.cost()
        thresholds += sum(
            (Fraction(entry.get("threshold_delta", "0")) for entry in own.releases), Fraction(0)
        )
    parts = {name: Fraction(text) for name, text in resolved[0].budget["delta_parts"].items()}
    spent = delta_of(losses, 1)
    assert spent <= parts["conversion"]
    assert thresholds <= parts["thresholds"]
    assert sum(parts.values()) == plan.privacy.delta
    assert total_rho(losses) <= Fraction(resolved[0].budget["rho"])
    assert spent > parts["conversion"] * Fraction(6, 10)  # and most of it is used
    assert delta_of(norms_of(resolved[0].budget), 1) >= spent


def test_pure_epsilon_adds_up_to_the_plan_s() -> None:
    plan = opened("ids", "pure", releases=BUDGETED, epochs="first = 3\nnumber = 4", epsilon=1)
    spent = Fraction(0)
    for number, own in enumerate(epochs_of(plan), start=1):
        for release in compile_plan(plan.of_epoch(number), own):
            spent += pure_epsilon(release.mechanism.cost()) or 0
    assert spent == 1


def test_groups_under_pure_epsilon_are_charged_for_all_epochs() -> None:
    """Also where a plan has a delta that nothing asks for."""
    plans = [make("ids", "pure", releases=ONE, epsilon=1) for make in (opened, plan)]
    groups = [describe(own, resolve(own))["budget"]["groups"] for own in plans]
    assert groups[0] == groups[1]
    assert groups[0][-1]["epsilon"] > 1.9


def test_dividing_rho_costs_less_than_dividing_epsilon() -> None:
    """An epoch with a quarter of rho against one with a quarter of epsilon and of delta."""
    divided = resolve(opened(releases=ONE, epochs="first = 64\nnumber = 4", epsilon=1))
    quarter = plan(releases=ONE, horizon=64, epsilon=1).text
    quarter = quarter.replace("epsilon = 1", "epsilon = 0.25").replace("1e-3", "0.00025")
    apart = resolve(Plan.loads(quarter))
    errors = [float(own.releases[0]["noise"]["stddev"][0]) for own in (divided, apart)]
    assert errors[0] < 0.65 * errors[1]


def test_shares_fall_so_that_all_of_them_add_up_to_the_budget() -> None:
    series = opened(releases=ONE, epochs="first = 365").stream.epochs
    assert series is not None
    assert sum(series.shares) == 1
    assert series.number == 12
    ratios = [early / late for early, late in pairwise(series.shares)]
    assert ratios == [Fraction(n + 2, n) for n in range(1, 12)]
    for n, share in enumerate(series.shares[1:], start=2):
        assert share > Fraction(6) / (Fraction(314159, 100000) ** 2 * n * n)
    assert LONGEST_EPOCH == LONGEST_HORIZON


def test_an_epoch_that_would_leave_its_budget_is_refused() -> None:
    plan = opened(releases=ONE, epochs=EPOCHS, epsilon=1)
    first = resolve(plan)
    losses = [{**own, "norm_squared": "1/1000"} for own in first.budget["losses"]]
    narrow = replace(first, budget={**first.budget, "losses": losses})
    with pytest.raises(Exception, match="does not stay within"):
        resolve_next(plan, narrow, epoch=2, boundaries=range(5))


def test_check_prints_what_every_epoch_costs_and_one_long_horizon_would() -> None:
    plan = opened(releases=ONE, epochs="first = 365\nnumber = 4", epsilon=1)
    found = describe(plan, resolve(plan))
    assert [own["last_round"] for own in found["epochs"]] == [365, 1095, 2555, 5475]
    assert found["epochs"][0]["error_ratio"] == 2.0
    assert found["epochs"][3]["one_horizon_ratio"] < 1.5
    assert found["budget"]["delta_spent"] <= found["budget"]["delta"]
    assert "One known horizon of 5,475 rounds" in found["notes"][-1]


# Back-ups.


def place(directory: Path) -> Place:
    return Place(directory, PlainKeyFile(Path(f"{directory}.key")))


def test_a_back_up_from_a_later_epoch_goes_on_as_it_is_or_elsewhere(ram: Path) -> None:
    plan = open_plan()
    with Store.create(ram / "store", plan) as store:
        ingest(store, ROWS)
        store.close_through(4)
    for name in ("as-it-is", "elsewhere"):
        write_files(ram / name, read_files(ram / "store"))
    done = restore_as_is(place(ram / "as-it-is"), last_round=4)
    assert done.round == 4
    with pytest.raises(StoreBehindError, match="round 5 was released"):
        restore_as_is(place(ram / "as-it-is"), last_round=5)
    following = Plan.loads(plan.text.replace("start = 2024-01-01", "start = 2024-01-05"))
    with Store.open(ram / "store") as store:
        done = restore_into(
            place(ram / "into"), following, backup=place(ram / "elsewhere"), last_round=None
        )
        assert done.budget["total"] == {"epsilon": 300.0, "delta": 2e-3}
        assert [own["rounds"] for own in done.budget["earlier_stores"]] == [0, 0]
        with Store.open(ram / "into") as into:
            assert len(into.clock.past) == 4
            ingest(into, [row for row in ROWS if row.round > 4])
            for _ in range(5, 12):
                store.close_round()
                into.close_round()
                assert totals(into) == totals(store)


def test_a_back_up_from_before_a_border_goes_on_elsewhere_though_the_key_is_newer(
    ram: Path,
) -> None:
    plan = open_plan(releases=ONE)
    with Store.create(ram / "store", plan) as store:
        ingest(store, ROWS)
        store.close_through(2)
    files = read_files(ram / "store")
    with Store.open(ram / "store") as store:
        store.close_through(4)
    write_files(ram / "old", files | {".key": (ram / "store.key").read_bytes()})
    for last_round in (2, 4, None):
        with pytest.raises(StoreBehindError, match="epoch 2 has begun under its key"):
            restore_as_is(place(ram / "old"), last_round=last_round)
    following = Plan.loads(plan.text.replace("start = 2024-01-01", "start = 2024-01-03"))
    done = restore_into(place(ram / "into"), following, backup=place(ram / "old"), last_round=None)
    assert done.budget["total"] == {"epsilon": 300.0, "delta": 2e-3}
    assert place(ram / "old").keeper.read().destroyed


def test_a_back_up_whose_key_is_that_of_a_successor_plan_is_refused(ram: Path) -> None:
    """Its budget is in no file of the back-up, so the total would leave it out."""
    old = plan(releases=ONE)
    with Store.create(ram / "store", old) as store:
        store.close_through(HORIZON)
    files = read_files(ram / "store")
    following = Plan.loads(old.text.replace("start = 2024-01-01", "start = 2024-01-07"))
    with Store.open(ram / "store") as store:
        store.go_on(following)
    write_files(ram / "old", files | {".key": (ram / "store.key").read_bytes()})
    with pytest.raises(StoreBehindError, match="epoch 2 has begun"):
        restore_into(place(ram / "into"), following, backup=place(ram / "old"), last_round=None)


def test_a_store_that_was_cut_short_at_a_border_is_a_sound_back_up(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(ram / "store", open_plan(releases=ONE))
    store.close_through(2)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "next_epoch", _no_room)
        with pytest.raises(OSError, match="no room"):
            store.close_round()
    abandon(store)
    assert restore_as_is(place(ram / "store"), last_round=2).round == 2
    with Store.open(ram / "store") as store:
        store.close_round()
        assert (store.round, store.epoch.number) == (3, 2)


def test_files_of_a_border_that_was_given_up_are_thrown_away(ram: Path) -> None:
    with new_store(ram / "store", open_plan(releases=ONE)) as store:
        store.close_through(1)
    before = fingerprints(ram / "store")
    (ram / "store" / "continuing").mkdir()
    (ram / "store" / "continuing" / "plan.toml").write_text("half a pl")
    Store.open(ram / "store").close()
    assert fingerprints(ram / "store").keys() == before.keys()
    shutil.rmtree(ram / "store")
