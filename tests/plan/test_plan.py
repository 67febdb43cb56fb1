from __future__ import annotations

import datetime as dt
import json
import pickle
from fractions import Fraction
from pathlib import Path

import pytest

from retrodp.errors import PlanError
from retrodp.plan import Count, Histogram, MaxPerBin, Mean, Plan, Sum
from tests.plan.examples import RETAIL, SMALL, changed


def test_the_example_of_the_documentation_is_read_whole() -> None:
    plan = Plan.loads(RETAIL)
    assert plan.text == RETAIL
    assert (plan.stream.start, plan.stream.round, plan.stream.horizon) == ("2010-12-01", "1d", 374)
    assert plan.reserved == {"id": "InvoiceNo", "op": "op", "at": "at", "time": "time", "n": "n"}
    assert [release.name for release in plan.releases] == [
        "lines",
        "by_country",
        "by_product",
        "revenue",
    ]
    assert [release.statistic for release in plan.releases] == [
        Count(),
        Histogram(by=("country",)),
        Histogram(by=("product",)),
        Sum(of="amount"),
    ]
    assert plan.release("by_product").share == 3
    assert plan.release("revenue").window == 30
    assert plan.release("revenue").where is not None


def test_numbers_are_the_exact_decimals_that_were_written() -> None:
    plan = Plan.loads(RETAIL.replace("epsilon = 1.0", "epsilon = 0.1"))
    assert plan.privacy.epsilon == Fraction(1, 10)
    assert plan.privacy.delta == Fraction(1, 10**9)
    assert plan.column("amount").step == Fraction(1, 100)
    assert changed(privacy__epsilon="1/3").privacy.epsilon == Fraction(1, 3)
    assert changed(privacy__epsilon=0.1).privacy.epsilon == Fraction(1, 10)


def test_defaults_are_those_of_the_grammar() -> None:
    plan = Plan.from_dict(SMALL)
    stream = plan.stream
    assert (stream.timezone, stream.unit, stream.ids) == ("UTC", "record", True)
    assert (stream.same_time, stream.date_only_at) == ("delete_first", False)
    assert (stream.out_of_bounds, stream.forgetting) == ("clamp", "complete")
    assert (plan.privacy.model, plan.privacy.forward_secrecy) == ("zcdp", True)
    (release,) = plan.releases
    assert (release.share, release.level) == (Fraction(1), Fraction(19, 20))
    assert release.factor == "auto"
    assert (release.where, release.window, release.by, release.of) == (None, None, (), None)


def test_a_plan_without_columns_may_count() -> None:
    tables = {name: table for name, table in SMALL.items() if name != "columns"}
    assert Plan.from_dict(tables).columns == ()


def test_an_integer_has_step_one() -> None:
    plan = Plan.loads(RETAIL)
    assert plan.column("items").step == 1
    assert plan.column("items").min == -10


def test_null_is_a_bin_but_no_amount_unless_the_plan_says_otherwise() -> None:
    plan = Plan.loads(RETAIL)
    nullable = {column.name: column.nullable for column in plan.columns}
    assert nullable == {
        "customer": True,
        "product": True,
        "country": True,
        "amount": False,
        "items": False,
        "gift": True,
        "shipped": True,
    }


PERSON = {"stream__unit": "person_round", "stream__person": "person", "stream__max_records": 5}


def test_a_row_without_a_person_is_refused_unless_declared_a_person_of_its_own() -> None:
    assert not changed(**PERSON).column("person").nullable
    declared = changed(**PERSON, columns__person={"type": "text", "nullable": True})
    assert declared.column("person").nullable
    assert changed(stream__person="person").column("person").nullable


def test_person_units_carry_their_bounds() -> None:
    plan = changed(
        **PERSON | {"stream__unit": "person"},
        stream__max_rounds=7,
        stream__max_per_bin={"by": ["place"], "max": 1},
    )
    assert plan.stream.max_per_bin == MaxPerBin(by=("place",), max=1)
    assert (plan.stream.max_records, plan.stream.max_rounds) == (5, 7)
    assert plan.stream.person_unit


def test_streams_without_ids_protect_an_operation() -> None:
    stream = changed(stream__ids=False).stream
    assert (stream.unit, stream.ids, stream.date_only_at) == ("operation", False, True)


def test_a_stated_same_time_admits_dates() -> None:
    stream = changed(stream__same_time="add_first").stream
    assert (stream.same_time, stream.date_only_at) == ("add_first", True)


@pytest.mark.parametrize(
    ("round_", "window", "rounds"),
    [
        ("1h", "6h", 6),
        ("1h", "1d", 24),
        ("6h", "1d", 4),
        ("6h", "24h", 4),
        ("1d", "1w", 7),
        ("1d", "24h", 1),
        ("1w", "28d", 4),
        ("1mo", "12mo", 12),
    ],
)
def test_a_window_is_counted_in_rounds(round_: str, window: str, rounds: int) -> None:
    plan = changed(stream__round=round_, release__records={"kind": "count", "window": window})
    assert plan.releases[0].window == rounds


def test_a_mean_may_have_bins() -> None:
    plan = changed(release__m={"kind": "mean", "of": "weight", "by": ["kind", "place"]})
    assert plan.release("m").statistic == Mean(of="weight", by=("kind", "place"))


def test_bins_of_categories_and_booleans_are_public_null_included() -> None:
    plan = Plan.loads(RETAIL)
    assert plan.is_public(("country", "gift"))
    assert not plan.is_public(("country", "product"))
    assert plan.public_bins(("country",)) == [
        ("United Kingdom",),
        ("Germany",),
        ("other",),
        (None,),
    ]
    assert len(plan.public_bins(("country", "gift"))) == 4 * 3


def test_pure_epsilon_needs_no_delta_without_an_open_domain() -> None:
    plan = changed(
        privacy={"model": "pure", "epsilon": 1}, release__h={"kind": "histogram", "by": "kind"}
    )
    assert plan.privacy.delta is None


@pytest.mark.parametrize(
    ("start", "round_", "canonical"),
    [
        (dt.date(2024, 6, 1), "1d", "2024-06-01"),
        (dt.datetime(2024, 5, 31, 22, tzinfo=dt.UTC), "1w", "2024-06-01"),
        ("2024-06-01T00:00:00+02:00", "1mo", "2024-06-01"),
        ("2024-06-01T06:00", "6h", "2024-06-01T06:00:00"),
        ("2024-06-01", "1h", "2024-05-31T22:00:00+00:00"),
        ("2024-06-01T06:30", "1h", "2024-06-01T04:30:00+00:00"),
    ],
)
def test_a_start_means_the_same_whatever_later_zone_data_say(
    start: object, round_: str, canonical: str
) -> None:
    plan = changed(
        stream={"start": start, "round": round_, "horizon": 3, "timezone": "Europe/Copenhagen"}
    )
    assert plan.stream.start == canonical
    assert Plan.from_dict(plan.to_dict()) == plan


def test_the_canonical_dict_is_json_and_reads_as_the_same_plan() -> None:
    plan = Plan.loads(RETAIL)
    stored = json.loads(json.dumps(plan.to_dict(), sort_keys=True))
    again = Plan.from_dict(stored)
    assert again == plan
    assert [column.name for column in again.columns] == [column.name for column in plan.columns]
    assert again.to_dict() == plan.to_dict()


@pytest.mark.parametrize(
    "plan",
    [
        changed(**PERSON, stream__max_per_bin={"by": "place", "max": 2}),
        changed(stream__ids=False),
        changed(stream__same_time="add_first", stream__out_of_bounds="reject"),
        changed(privacy={"model": "pure", "epsilon": "1/3"}),
        changed(release__m={"kind": "mean", "of": "weight", "by": "kind", "window": "7d"}),
        changed(columns__odd={"type": "text", "from": 'q"uo\\te\x7f'}),
    ],
    ids=["person", "no ids", "order", "pure", "mean", "quotes"],
)
def test_every_plan_survives_its_own_dict_and_its_own_text(plan: Plan) -> None:
    assert Plan.from_dict(plan.to_dict()) == plan
    assert Plan.loads(plan.text) == plan
    assert Plan.loads(Plan.from_dict(plan.to_dict()).text) == plan


def test_layout_and_comments_do_not_make_another_plan() -> None:
    assert Plan.loads("# a comment\n" + RETAIL) == Plan.loads(RETAIL)


def test_a_plan_crosses_processes() -> None:
    plan = Plan.loads(RETAIL)
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_plan_is_loaded_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(RETAIL, encoding="utf-8")
    assert Plan.load(path) == Plan.loads(RETAIL)
    assert Plan.load(str(path)).text == RETAIL


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"missing\.toml cannot be read"):
        Plan.load(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(PlanError, match="not UTF-8"):
        Plan.load(tmp_path / "latin.toml")
