"""A shop's order lines seen closer: quantiles by country, top products, days and months."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from retrodp.demo import data_path
from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_frame
from retrodp.stream.update import Record
from tests.examples.scripts import EXAMPLES, ROOT, answer_of, commands, drawn, run
from tests.support.stores import memory_directory

FOLDER = EXAMPLES / "retail"
DAYS = 40
START = datetime(2010, 12, 1)  # noqa: DTZ001  local time of the shop, as in the file


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[Path, list[Record]]]:
    """A store after the first days, and what survives in it."""
    shipped = pq.read_table(data_path())
    early = shipped.filter(pc.less(shipped["at"], pa.scalar(START + timedelta(days=DAYS))))
    plan = Plan.loads((FOLDER / "plan.toml").read_text(encoding="utf-8"))
    with memory_directory() as directory:
        path = directory / "store"
        with Store.create_for_tests(path, plan) as store:
            store.ingest(read_frame(early, store.layout()))
            store.close_through(DAYS)
            survivors = [record for batch in store.ledger.survivors() for record in batch]
        yield path, survivors


def contents(record: Record) -> tuple[str, str, int]:
    """Product, country and amount in steps."""
    _, product, country, amount = msgspec.msgpack.decode(record.payload)
    return product, country, amount


def test_every_interval_covers_the_exact_quantile(shop: tuple[Path, list[Record]]) -> None:
    path, survivors = shop
    by_country: defaultdict[str, list[int]] = defaultdict(list)
    for _, country, amount in map(contents, survivors):
        by_country[country].append(amount)
    answer = answer_of(path, DAYS, "values")
    held = {}
    for figure in answer.figures():
        country, share = msgspec.json.decode(figure.key)
        values = sorted(by_country.get(country, []))
        if values:
            rank = -(-Fraction(str(share)) * len(values) // 1)
            exact = values[int(rank) - 1]
            held[figure.key] = figure.bounds.low_all <= exact <= figure.bounds.high_all
    assert len(held) >= 3 * 15
    assert all(held.values())


def test_the_largest_country_has_narrow_intervals(shop: tuple[Path, list[Record]]) -> None:
    path, survivors = shop
    assert len(survivors) > 40_000
    answer = answer_of(path, DAYS, "values")
    widths = {figure.key: figure.bounds.high - figure.bounds.low for figure in answer.figures()}
    assert widths['["United Kingdom",0.5]'] * answer.step <= 3


@pytest.mark.parametrize(("release", "days"), [("lines_per_day", 1), ("lines_per_30_days", 30)])
def test_counts_of_a_window_are_those_of_its_days(
    shop: tuple[Path, list[Record]], release: str, days: int
) -> None:
    path, survivors = shop
    exact = sum(record.stamp > DAYS - days for record in survivors)
    answer = answer_of(path, DAYS, release)
    assert abs(answer.value - exact) <= answer.half_all


def test_products_below_the_threshold_are_not_named(shop: tuple[Path, list[Record]]) -> None:
    path, survivors = shop
    numbers: defaultdict[str, int] = defaultdict(int)
    for product, _, _ in map(contents, survivors):
        numbers[product] += 1
    answer = answer_of(path, DAYS, "by_product")
    assert answer.threshold is not None
    assert answer.keys is not None
    far = answer.threshold + answer.half_all, answer.threshold - answer.half_all
    assert {product for product, many in numbers.items() if many >= far[0]} <= {*answer.keys}
    assert {*answer.keys} <= {product for product, many in numbers.items() if many >= far[1]}
    assert len(numbers) > 2_000


def test_the_picture_is_drawn_from_what_is_published(
    shop: tuple[Path, list[Record]], tmp_path: Path
) -> None:
    assert drawn("retail", tmp_path / "shop.png", shop[0])


@pytest.mark.sweep
def test_the_commands_of_the_readme_run(ram: Path) -> None:
    (ram / "src").symlink_to(ROOT / "src")
    done = run(commands("retail"), ram)
    assert done.returncode == 0, done.stderr
    assert "374 rounds closed" in done.stdout
