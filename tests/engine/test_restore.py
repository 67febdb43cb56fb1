"""Back-ups brought into use: as they are if nothing newer was published, else as a new epoch."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrodp.engine import publishing
from retrodp.engine import restore as restoring
from retrodp.engine.backup import Place
from retrodp.engine.ending import take_out_forgotten
from retrodp.engine.forget import Forgotten
from retrodp.engine.resolve import resolve
from retrodp.engine.restore import Restored, examine, restore_as_is, restore_into
from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import (
    BackupError,
    PlanChangedError,
    StoreBehindError,
    StoreCorruptError,
    StoreRetiredError,
    TestKeyError,
    UsageError,
)
from retrodp.mechanisms.answer import Answer
from retrodp.plan.epochs import Epoch
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.keyfile import PlainKeyFile
from tests.support.answers import values_of
from tests.support.plans import HORIZON, Kind, counting, plan
from tests.support.rows import START, Contents, Row, add, delete, ingest
from tests.support.stores import (
    fingerprints,
    memory_directory,
    new_store,
    published,
    read_files,
    write_files,
)

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
window = "4d"
[release.by_product]
kind = "histogram"
by = "product"
"""


def running_plan(kind: Kind = "ids") -> Plan:
    return plan(kind, releases=RELEASES)


def next_plan(old: Plan, shift: int) -> Plan:
    """The plan of an epoch that begins after so many rounds."""
    start = (START + dt.timedelta(days=shift)).date().isoformat()
    return Plan.loads(old.text.replace("start = 2024-01-01", f"start = {start}"))


@cache
def resolved_once(text: str) -> ResolvedPlan:
    return resolve(Plan.loads(text))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are resolved once a text: it takes a second and is no subject of these tests."""
    monkeypatch.setattr(restoring, "resolve", lambda plan: resolved_once(plan.text))


@cache
def _template(text: str) -> dict[str, bytes]:
    with memory_directory() as directory:
        Store.create(directory / "store", Plan.loads(text)).close()
        return read_files(directory / "store")


def real_store(path: Path, plan: Plan) -> Store:
    """A store under a key from the operating system's generator; one key a plan."""
    write_files(path, _template(plan.text))
    return Store.open(path)


def place(directory: Path) -> Place:
    return Place(directory, PlainKeyFile(Path(f"{directory}.key")))


def copied(source: Path, target: Path) -> Path:
    write_files(target, read_files(source))
    return target


def at(rows: Iterable[Row], *rounds: int) -> list[Row]:
    return [row for row in rows if row.round in rounds]


def totals(store: Store) -> dict[str, dict[bytes, int]]:
    return {release.name: store.ledger.read_totals(release.name) for release in store.releases}


def survivors(store: Store, shift: int = 0) -> Counter[tuple[str, str, int, bytes]]:
    """Surviving records with stamps of the first calendar."""
    found: Counter[tuple[str, str, int, bytes]] = Counter()
    for batch in store.ledger.survivors():
        for record in batch:
            found[record.space, record.id, record.stamp + shift, record.payload] += record.count
    return found


ROWS = [
    *(add(f"a{number}", 1, product="tea") for number in range(5)),
    add("b", 2, product="ink", country="FR", amount=7.0),
    replace(add("late", 3, amount=9.5), stamp=1),
    delete("a0", 4),
    add("c", 4, product="ink"),
    add("d", 5, amount=3.0),
    delete("a1", 5),
    add("e", 6),
]


def backed_up(ram: Path, plan: Plan, *, round_: int = 3, lost_round: int = 5) -> Path:
    """A back-up from after `round_` of a store that went on to `lost_round` and was lost."""
    with real_store(ram / "store", plan) as store:
        ingest(store, ROWS)
        store.close_through(round_)
    copied(ram / "store", ram / "backup")
    with Store.open(ram / "store") as store:
        store.close_through(lost_round)
    return ram / "backup"


# What is found.


def test_a_back_up_may_go_on_if_nothing_newer_was_published(ram: Path) -> None:
    backup = backed_up(ram, counting())
    before = fingerprints(backup)
    found = examine(place(backup), last_round=3)
    assert (found.reason, found.round, found.released, found.horizon) == ("", 3, 3, HORIZON)
    assert found.redeliver_from == "2024-01-04T00:00:00+00:00"
    assert examine(place(backup), last_round=2).reason == ""
    assert fingerprints(backup) == before


def test_a_back_up_may_not_go_on_otherwise(ram: Path) -> None:
    backup = backed_up(ram, counting())
    assert "round 5 was released" in examine(place(backup), last_round=5).reason
    assert "nobody knows" in examine(place(backup), last_round=None).reason
    (ram / "backup.key").unlink()
    assert "is not there" in examine(place(backup), last_round=3).reason


@pytest.mark.parametrize("newer", [".key", "/releases.sqlite"])
def test_a_newer_key_or_newer_releases_contradict_the_answer(ram: Path, newer: str) -> None:
    backup = backed_up(ram, counting())
    shutil.copyfile(f"{ram / 'store'}{newer}", f"{backup}{newer}")
    found = examine(place(backup), last_round=3)
    assert found.released == 5
    assert "round 5 was released" in found.reason


@pytest.mark.parametrize("last_round", [-1, HORIZON + 1])
def test_a_round_that_the_plan_does_not_have_was_not_published(ram: Path, last_round: int) -> None:
    backup = backed_up(ram, counting())
    with pytest.raises(UsageError):
        examine(place(backup), last_round=last_round)


# As it is.


def test_as_it_is_the_same_updates_give_the_bytes_of_the_store_that_was_lost(ram: Path) -> None:
    backup = backed_up(ram, running_plan())
    assert restore_as_is(place(backup), last_round=3).round == 3
    with Store.open(backup) as store:
        ingest(store, ROWS)  # delivered again
        store.close_through(5)
    assert published(backup) == published(ram / "store")


def test_as_it_is_requests_since_the_back_up_belong_to_the_open_round(ram: Path) -> None:
    backup = backed_up(ram, counting())
    restore_as_is(place(backup), last_round=3, forgotten=[Forgotten("id", "b")])
    with Store.open(backup) as store:
        assert len(store.ledger.forgets.waiting()) == 1
        store.close_round()
        assert store.ledger.records_of_id("b") == []


def test_a_marked_back_up_is_opened_by_restore_alone(ram: Path) -> None:
    backup = backed_up(ram, counting())
    (backup / "backup").touch()
    with pytest.raises(BackupError):
        Store.open(backup)
    with pytest.raises(StoreBehindError):
        restore_as_is(place(backup), last_round=5)
    assert (backup / "backup").exists()
    restore_as_is(place(backup), last_round=3)
    Store.open(backup).close()


@pytest.mark.parametrize("torn", ["totals", "records"])
def test_a_torn_copy_is_refused_and_stays_marked(ram: Path, torn: str) -> None:
    backup = backed_up(ram, counting())
    with Store.open(backup) as store:
        if torn == "totals":
            store.ledger.add_totals("lines", {b"": 1})
        else:  # totals agree, but it is not what was published
            store.ledger.forgets.add("id", "b")
            take_out_forgotten(store._parts)
    (backup / "backup").touch()
    with pytest.raises(StoreCorruptError):
        restore_as_is(place(backup), last_round=3)
    assert (backup / "backup").exists()


def test_a_back_up_that_was_cut_short_in_a_close_is_completed(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with real_store(ram / "store", counting()) as store:
        ingest(store, ROWS)
        store.close_through(2)
        with monkeypatch.context() as cut:
            cut.setattr(publishing, "finish", lambda _: None)
            store.close_round()
    copied(ram / "store", ram / "backup")
    assert restore_as_is(place(ram / "backup"), last_round=3).round == 3
    Store.open(ram / "store").close()
    assert published(ram / "backup") == published(ram / "store")


# As a new epoch.


def new_epoch(
    ram: Path, backup: Path, plan: Plan, shift: int, *, last_round: int | None = None
) -> tuple[Restored, Path]:
    into = ram / "into"
    done = restore_into(
        place(into), next_plan(plan, shift), backup=place(backup), last_round=last_round
    )
    return done, into


@pytest.mark.parametrize("kind", ["ids", "points", "persons"])
def test_an_epoch_goes_on_as_if_nothing_had_been_lost(ram: Path, kind: Kind) -> None:
    """Survivors and exact totals of every later round are those of a store that never stopped."""
    plan = running_plan(kind)
    rows = ROWS
    if kind == "points":  # a deletion names the point
        point = Contents(product="tea")
        rows = [
            replace(row, contents=point, stamp=1) if row.op == "delete" else row for row in ROWS
        ]
    with real_store(ram / "whole", plan) as whole:
        ingest(whole, rows)
        whole.close_through(3)
        copied(ram / "whole", ram / "backup")
        done, into = new_epoch(ram, ram / "backup", plan, 3)
        assert (done.how, done.round) == ("new_epoch", 0)
        with Store.open(into) as store:
            assert (totals(store), survivors(store, 3)) == (totals(whole), survivors(whole))
            ingest(store, at(rows, 4, 5, 6))
            for round_ in range(1, 4):
                store.close_round()
                whole.close_round()
                assert totals(store) == totals(whole), round_
                assert survivors(store, 3) == survivors(whole)
                assert verify(store).passed


def test_windows_reach_back_over_the_beginning_of_an_epoch(ram: Path) -> None:
    plan = running_plan()
    backup = backed_up(ram, plan, round_=2)
    _, into = new_epoch(ram, backup, plan, 2)
    with Store.open(into) as store:
        assert totals(store)["recent"] == {b"": 6}  # of rounds 1 and 2
        store.close_round()
        assert totals(store)["recent"] == {b"": 1}  # of rounds 2 and 3: "late" is of round 1
        assert totals(store)["lines"] == {b"": 7}


def test_updates_of_the_past_name_their_moment_in_an_epoch_too(ram: Path) -> None:
    plan = running_plan("points")
    with real_store(ram / "store", plan) as store:
        ingest(store, [replace(add("", 1), n=3)])
        store.close_through(2)
    _, into = new_epoch(ram, ram / "store", plan, 2)
    with Store.open(into) as store:
        gone = Row(op="delete", round=3, stamp=1)
        come = Row(round=3, stamp=2, contents=Contents(who="cyd"))
        before_all = replace(gone, stamp=0)
        assert len(ingest(store, [gone, come, before_all]).refused) == 1
        store.close_round()
        assert sorted(stamp for _, _, stamp, _ in survivors(store, 2)) == [1, 2]
        assert totals(store)["lines"] == {b"": 3}


def test_waiting_updates_are_carried_over_where_records_have_ids(ram: Path) -> None:
    backup = backed_up(ram, counting())
    done, into = new_epoch(ram, backup, counting(), 3)
    assert done.left_behind == 0
    with Store.open(into) as store:
        assert store.ledger.waiting.rounds() == {1: 2, 2: 2, 3: 1}
        ingest(store, at(ROWS, 4, 5, 6))  # again does no harm
        assert store.ledger.waiting.count() == 5


def test_waiting_updates_without_ids_are_left_to_be_delivered_again(ram: Path) -> None:
    with real_store(ram / "store", counting("points")) as store:
        ingest(store, [add("", 1), add("", 2), replace(add("", 3), n=4)])
        store.close_through(1)
    done, into = new_epoch(ram, ram / "store", counting("points"), 1)
    assert done.left_behind == 5
    with Store.open(into) as store:
        assert store.ledger.waiting.count() == 0


def test_an_epoch_may_begin_later_and_takes_what_waited_in_its_first_round(ram: Path) -> None:
    backup = backed_up(ram, counting())
    _, into = new_epoch(ram, backup, counting(), 5)
    with Store.open(into) as store:
        assert store.ledger.waiting.rounds() == {1: 5}
        store.close_round()
        stamps = sorted(stamp for _, _, stamp, _ in survivors(store, 5))
        assert stamps == [1, 1, 1, 1, 2, 4, 5, 6]


def test_what_was_to_be_forgotten_never_enters_the_new_store(ram: Path) -> None:
    with real_store(ram / "store", running_plan()) as store:
        ingest(
            store,
            [
                add("remembered-for-ever", 1),
                add("forgotten-since-the-back-up", 1),
                add("forgotten-in-the-back-up", 1),
                add("waiting", 3, who="person-to-be-forgotten"),
            ],
        )
        store.close_through(2)
        store.forget(["forgotten-in-the-back-up"])
    asked = [
        Forgotten("id", "forgotten-since-the-back-up"),
        Forgotten("person", "person-to-be-forgotten"),
    ]
    into = ram / "into"
    restore_into(
        place(into),
        next_plan(running_plan(), 2),
        backup=place(ram / "store"),
        last_round=2,
        forgotten=asked,
    )
    content = b"".join(read_files(into).values())
    assert b"remembered-for-ever" in content
    assert b"forgotten" not in content
    with Store.open(into) as store:
        assert store.ledger.waiting.count() == 0
        assert totals(store)["lines"] == {b"": 1}
        assert verify(store, asked).passed


def test_the_old_store_is_retired_and_its_key_destroyed(ram: Path) -> None:
    backup = backed_up(ram, counting())
    new_epoch(ram, backup, counting(), 3, last_round=5)
    assert place(backup).keeper.read().tree.cover == ()
    with Store.open(backup) as store:
        assert store.ledger.survivor_count() == 7
        with pytest.raises(StoreRetiredError):
            store.close_round()
    with pytest.raises(StoreBehindError, match="retired"):
        restore_as_is(place(backup), last_round=3)
    assert published(backup).keys() == {1, 2, 3}


def test_the_old_ledger_is_erased_on_request(ram: Path) -> None:
    with real_store(ram / "store", counting()) as store:
        ingest(store, [add("a-name-to-look-for", 1)])
        store.close_through(2)
    restore_into(
        place(ram / "into"),
        next_plan(counting(), 2),
        backup=place(ram / "store"),
        last_round=2,
        erase_ledger=True,
    )
    assert b"a-name-to-look-for" not in b"".join(read_files(ram / "store").values())
    assert b"a-name-to-look-for" in b"".join(read_files(ram / "into").values())


def test_a_store_whose_key_is_lost_goes_on_in_a_new_epoch(ram: Path) -> None:
    backup = backed_up(ram, counting())
    (ram / "backup.key").unlink()
    done, into = new_epoch(ram, backup, counting(), 3, last_round=3)
    assert "is not there" in done.found.reason
    with Store.open(into) as store:
        assert totals(store)["lines"] == {b"": 7}
        store.close_through(3)


def test_a_store_behind_its_key_and_releases_goes_on_in_a_new_epoch(ram: Path) -> None:
    backup = backed_up(ram, counting())
    for newer in (".key", "/releases.sqlite"):
        shutil.copyfile(f"{ram / 'store'}{newer}", f"{backup}{newer}")
    done, into = new_epoch(ram, backup, counting(), 3, last_round=5)
    assert done.found.released == 5
    Store.open(into).close()
    Store.open(backup).close()  # retired: being behind no longer matters


def test_a_store_whose_horizon_is_over_goes_on_in_a_new_epoch(ram: Path) -> None:
    with real_store(ram / "store", counting()) as store:
        ingest(store, ROWS)
        store.close_through(HORIZON)
    into = ram / "into"
    following = next_plan(counting(), HORIZON)
    restore_into(place(into), following, backup=place(ram / "store"), last_round=HORIZON)
    with Store.open(into) as store:
        store.close_through(4)
        assert totals(store)["lines"] == {b"": 8}


def test_budgets_of_all_epochs_add_up(ram: Path) -> None:
    backup = backed_up(ram, counting())
    done, into = new_epoch(ram, backup, counting(), 3, last_round=5)
    assert done.budget["own"] == {"epsilon": 1.0, "delta": 1e-3}
    assert done.budget["total"] == {"epsilon": 2.0, "delta": 2e-3}
    assert [own["last_round"] for own in done.budget["earlier_stores"]] == [5]
    with Store.open(into) as store:
        store.close_round()
    third = restore_into(
        place(ram / "third"),
        next_plan(counting(), 4),
        backup=place(into),
        last_round=None,
    )
    assert third.budget["total"] == {"epsilon": 3.0, "delta": pytest.approx(3e-3)}
    assert [own["last_round"] for own in third.budget["earlier_stores"]] == [5, None]
    with Store.open(ram / "third") as store:
        assert len(store.epoch.past) == 4
        assert {stamp for _, _, stamp, _ in survivors(store, 4)} == {1, 2, 4}


def test_an_account_of_the_past_that_was_changed_is_refused(ram: Path) -> None:
    backup = backed_up(ram, counting())
    _, into = new_epoch(ram, backup, counting(), 3)
    file = into / "epoch.json"
    good = file.read_bytes()
    for bad in (good.replace(b'"1"', b'"0"'), good + b" ", b"{}", b"[]", b""):
        file.write_bytes(bad)
        with pytest.raises(StoreCorruptError):
            Store.open(into)
    file.unlink()
    with pytest.raises(StoreCorruptError):
        Store.open(into)
    file.write_bytes(good)
    Store.open(into).close()
    assert Epoch.from_bytes(good).to_bytes() == good


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("step = 0.5", "step = 0.25", "columns"),
        ('gift = "boolean"\n', "", "columns"),
        ('["DE", "FR"]', '["FR", "DE"]', "columns"),
        ('round = "1d"', 'round = "6h"', "stream.round"),
        ('person = "who"', 'unit = "person_round"\nperson = "who"\nmax_records = 3', "stream.unit"),
        ("start = 2024-01-04", "start = 2024-01-03", "stream.start"),
        ("start = 2024-01-04", "start = 2024-01-09", "stream.start"),
        ("start = 2024-01-04", 'timezone = "Europe/London"\nstart = 2024-01-04', "timezone"),
    ],
)
def test_a_plan_that_gives_the_records_another_meaning_is_refused(
    ram: Path, old: str, new: str, named: str
) -> None:
    backup = backed_up(ram, counting())
    before = fingerprints(backup)
    text = next_plan(counting(), 3).text
    assert old in text
    with pytest.raises(PlanChangedError, match=named):
        restore_into(
            place(ram / "into"),
            Plan.loads(text.replace(old, new)),
            backup=place(backup),
            last_round=None,
        )
    assert not (ram / "into").exists()
    assert fingerprints(backup) == before


def test_budget_releases_and_names_in_files_may_change(ram: Path) -> None:
    backup = backed_up(ram, counting())
    text = next_plan(counting(), 3).text
    text = text.replace("epsilon = 1\n", 'epsilon = "1/2"\n')
    text = text.replace('gift = "boolean"', 'gift = { type = "boolean", from = "present" }')
    text += '[release.gifts]\nkind = "histogram"\nby = "gift"\n'
    done = restore_into(
        place(ram / "into"), Plan.loads(text), backup=place(backup), last_round=None
    )
    assert done.budget["total"]["epsilon"] == 1.5
    with Store.open(ram / "into") as store:
        assert totals(store)["gifts"] == {b"[false]": 7}


def test_a_test_store_is_no_back_up(ram: Path) -> None:
    new_store(ram / "store", counting()).close()
    with pytest.raises(TestKeyError):
        new_epoch(ram, ram / "store", counting(), 0)


@pytest.mark.parametrize("step", ["create_files", "retire"])
def test_an_interrupted_restore_is_completed_by_the_next(
    ram: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    backup = backed_up(ram, counting())

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    where = {"retire": "backup.Backup.retire", "create_files": "creation.Releases.create"}
    with monkeypatch.context() as patched:
        patched.setattr(f"retrodp.engine.{where[step]}", killed)
        with pytest.raises(KeyboardInterrupt):
            new_epoch(ram, backup, counting(), 3)
    before = read_files(ram / "into").get("/plan.resolved.json")
    done, into = new_epoch(ram, backup, counting(), 3)
    assert (before is None) == (step == "create_files")
    assert done.budget["total"]["epsilon"] == 2.0
    assert place(backup).keeper.read().tree.cover == ()
    with Store.open(into) as store:
        store.close_through(3)
        assert totals(store)["lines"] == {b"": 8}


def test_an_epoch_is_opened_in_a_new_directory_only(ram: Path) -> None:
    backup = backed_up(ram, counting())
    real_store(ram / "into", counting()).close()
    before = fingerprints(ram / "into")
    with pytest.raises(UsageError):
        new_epoch(ram, backup, counting(), 3)
    assert fingerprints(ram / "into") == before
    assert place(backup).keeper.read().tree.cover


def test_a_store_opens_one_epoch_and_no_second_beside_it(ram: Path) -> None:
    """Each would state a sum of budgets that leaves the other's out."""
    backup = backed_up(ram, counting())
    new_epoch(ram, backup, counting(), 3)
    with pytest.raises(BackupError, match="goes on as"):
        restore_into(
            place(ram / "beside"),
            next_plan(counting(), 3),
            backup=place(backup),
            last_round=None,
        )
    assert not (ram / "beside").exists()


# Attack 1.

BINS = [f"bin{number}" for number in range(40)]
MANY_BINS = """
[release.by_country]
kind = "histogram"
by = "country"
"""


def bins_plan() -> Plan:
    one = plan("ids", releases=MANY_BINS, epsilon=1)
    listed = ", ".join(f'"{own}"' for own in BINS)
    return Plan.loads(one.text.replace('["DE", "FR"]', f"[{listed}]"))


def published_bins(directory: Path, round_: int) -> dict[str, int]:
    answer = Answer.from_bytes(published(directory)[round_]["by_country"])
    assert answer.keys is not None
    return dict(zip(answer.keys, values_of(answer), strict=True))


def lost_after_round_4(ram: Path) -> Path:
    """A store whose round 4 was published, and its back-up from after round 3."""
    with real_store(ram / "store", bins_plan()) as store:
        ingest(store, [add(own, 1, country=own) for own in BINS])
        store.close_through(3)
    copied(ram / "store", ram / "backup")
    with Store.open(ram / "store") as store:
        store.close_round()
    return ram / "backup"


DELETED = [delete(own, 4) for own in BINS[::2]]


def test_restore_never_publishes_a_round_again_under_the_same_noise(ram: Path) -> None:
    backup = lost_after_round_4(ram)
    for last_round in (4, None):
        with pytest.raises(StoreBehindError):
            restore_as_is(place(backup), last_round=last_round)
    _, into = new_epoch(ram, backup, bins_plan(), 3, last_round=4)
    with Store.open(into) as store:
        ingest(store, DELETED)
        store.close_round()
    first, second = published_bins(ram / "store", 4), published_bins(into, 1)
    exact = {own: 1 if own in BINS[::2] else 0 for own in first}
    assert {own: first[own] - second[own] for own in first} != exact
    assert sum(first[own] - second[own] == exact[own] for own in first) < len(first) / 2


def test_twin_a_copy_put_back_by_hand_publishes_the_exact_difference(ram: Path) -> None:
    backup = lost_after_round_4(ram)
    with Store.open(backup) as store:
        ingest(store, DELETED)
        store.close_round()
    first, second = published_bins(ram / "store", 4), published_bins(backup, 4)
    exact = {own: 1 if own in BINS[::2] else 0 for own in first}
    assert {own: first[own] - second[own] for own in first} == exact


# Any history, cut anywhere.


@st.composite
def histories(draw: st.DrawFn) -> tuple[Kind, int, int, list[Row], list[bool]]:
    """Kind of stream, last round in the back-up, first of the epoch less one, rows, delivered early."""
    kind: Kind = draw(st.sampled_from(["ids", "points"]))
    cut = draw(st.integers(0, 5))
    shift = draw(st.integers(cut, 5))
    rows = []
    for second in range(draw(st.integers(0, 12))):
        round_ = draw(st.integers(1, HORIZON))
        round_ = shift + 1 if cut < round_ <= shift else round_
        rows.append(
            Row(
                op=draw(st.sampled_from(["add", "add", "delete"])),
                id=draw(st.sampled_from("abcd")),
                round=round_,
                second=second,
                stamp=draw(st.none() | st.integers(1, round_)),
                contents=Contents(product=draw(st.sampled_from(["tea", "ink"]))),
                n=1 if kind == "ids" else draw(st.integers(1, 3)),
            )
        )
    return kind, cut, shift, rows, [draw(st.booleans()) for _ in rows]


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(history=histories())
def test_any_history_cut_anywhere_goes_on_as_if_nothing_had_been_lost(
    history: tuple[Kind, int, int, list[Row], list[bool]],
) -> None:
    kind, cut, shift, rows, early = history
    plan = running_plan(kind)
    with memory_directory() as directory:
        with real_store(directory / "store", plan) as store:
            told = [row for row, now in zip(rows, early, strict=True) if now or row.round <= cut]
            ingest(store, told)
            store.close_through(cut)
        with real_store(directory / "whole", plan) as whole:
            ingest(whole, rows)
            whole.close_through(shift)
            done, into = new_epoch(directory, directory / "store", plan, shift)
            with Store.open(into) as store:
                ingest(store, [row for row in rows if row.round > cut])
                for _ in range(shift, HORIZON):
                    store.close_round()
                    whole.close_round()
                    assert totals(store) == totals(whole)
                    assert survivors(store, shift) == survivors(whole)
                assert verify(store).passed
    assert done.how == "new_epoch"
