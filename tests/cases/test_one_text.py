"""One text where several are wanted is refused; to Python it is the sequence of its letters."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrodp.clustering.practical import box_columns
from retrodp.engine.ingest import check_sources
from retrodp.engine.store import Store
from retrodp.errors import UsageError
from retrodp.mechanisms.histogram import Histogram
from retrodp.mechanisms.oneshot.centres import NoisyLloyd
from retrodp.mechanisms.oneshot.own import private
from retrodp.plan import Plan
from retrodp.postprocess.covariance import Gram
from retrodp.privacy import Protection
from retrodp.privacy.budget import zCDP
from retrodp.stream.sources import expand
from retrodp.views.export import Selection, rows
from retrodp.views.published import Published
from retrodp.views.series import key_series
from tests.plan.examples import RETAIL
from tests.support.plans import counting
from tests.support.stores import new_store

ONE = Fraction(1)
PLAN = Plan.loads(RETAIL)
BOUND = Protection(unit="person", max_records=2, max_rounds=1)
LINEAR = Gram(("a", "b"), 9.0, np.zeros(2), np.eye(2))

CALLS: dict[str, Callable[[Any], object]] = {
    "Histogram": lambda x: Histogram(x, horizon=2, budget=zCDP(1)),
    "private": lambda x: private(epsilon=1, low=0, high=1, answers=x),
    "NoisyLloyd": lambda x: NoisyLloyd(
        epsilon=ONE, k=1, columns=x, ranges=((0, 1),) * 2, steps_of=(ONE,) * 2
    ),
    "Gram.ridge": lambda x: LINEAR.ridge("a", x, penalty=1.0),
    "Plan.is_public": PLAN.is_public,
    "Plan.public_bins": PLAN.public_bins,
    "Protection.worst_split": BOUND.worst_split,
    "Protection.bin_columns": lambda x: Protection(
        unit="person", max_records=2, max_rounds=1, max_per_bin=1, bin_columns=x
    ),
    "expand": expand,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_one_text_is_refused_with_what_to_write(call: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match="is the one text 'ab'") as refusal:
        call("ab")
    assert "in a list or tuple" in refusal.value.expected
    assert "=['ab']" in refusal.value.do


@pytest.mark.parametrize("value", [(1, 2), [b"a"], None, 7], ids=repr)
@pytest.mark.parametrize("name", ["Histogram", "Plan.is_public", "expand"])
def test_what_holds_no_texts_is_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError) as refusal:
        CALLS[name](value)
    assert refusal.value.expected


def test_any_collection_of_texts_will_do() -> None:
    listed = Histogram(["b", "a"], horizon=2, budget=zCDP(1))  # type: ignore[arg-type]
    assert listed == Histogram(("a", "b"), horizon=2, budget=zCDP(1))
    assert expand(text for text in ["-"]) == ["-"]


def test_a_path_is_as_good_as_its_text(tmp_path: Path) -> None:
    assert expand([tmp_path, str(tmp_path)]) == [str(tmp_path)]


def test_bounds_of_columns_are_no_text() -> None:
    with pytest.raises(UsageError, match="low is the one text '12'"):
        box_columns("12", [3, 4], "1")


def test_a_path_is_no_list_of_paths() -> None:
    with pytest.raises(UsageError, match=r"patterns is the one text 'days\.csv'"):
        check_sources(PLAN, "days.csv", stdin=None)  # type: ignore[arg-type]  # never read


def test_readers_take_names_not_one_name(tmp_path: Path) -> None:
    store = new_store(tmp_path / "store", counting())
    store.close_round()
    store.close()
    with Published.open(tmp_path / "store") as published:
        name = published.releases[0]
        with pytest.raises(UsageError, match="releases is the one text"):
            published.each(releases=name)
        with pytest.raises(UsageError, match="releases is the one text"):
            list(rows(published, Selection(releases=name)))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="keys is the one text"):
            key_series(published, name, "ab")


def test_a_store_takes_one_id_for_one_id(tmp_path: Path) -> None:
    with new_store(tmp_path / "store", counting()) as store:
        assert isinstance(store, Store)
        assert [receipt.forgotten.value for receipt in store.forget("ab")] == ["ab"]
