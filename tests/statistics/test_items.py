"""Items and the buckets that a keyed hash puts them into."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

import numpy as np
import pytest

from retrodp.errors import UsageError
from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Keyed
from retrodp.statistics.items import (
    BucketedItems,
    Items,
    LowBitItems,
    PresentItems,
    bucket_sums,
    first_bits,
    zeros_at_end,
)
from retrodp.statistics.label import BinLabels
from retrodp.stream.batch import Batch

ColumnType = Literal["text", "boolean"]
KEY = bytes(range(32))
OTHER = bytes(range(1, 33))


def column(name: str, type_: ColumnType) -> Column:
    return Column(name=name, type=type_, from_=name)


def items(*names: str, where: Expression | None = None) -> Items:
    columns = tuple(column(name, "text") for name in names or ("product",))
    return Items(of=BinLabels(columns=columns), where=where)


def batch(values: Sequence[str | None], counts: Sequence[int] | None = None) -> Batch:
    many = np.array([1] * len(values) if counts is None else counts, np.int64)
    return Batch(len(values), {"product": list(values)}, many)


HASHING = [
    BucketedItems(items=items(), height=4),
    BucketedItems(items=items(), height=4, signed=True),
    LowBitItems(items=items(), instances=3, levels=8),
]


def test_null_and_the_empty_text_are_items_of_their_own() -> None:
    found = PresentItems(items=items()).encode(batch(["tea", None, "", "tea", None, "[null]"]))
    assert found == {b"tea": 2, b"[null]": 2, b'[""]': 1, b'["[null]"]': 1}


def test_several_columns_make_one_item() -> None:
    found = Items(of=BinLabels(columns=(column("a", "text"), column("b", "boolean"))))
    rows = Batch(3, {"a": ["x", "x", "x"], "b": [True, False, True]}, np.ones(3, np.int64))
    assert found.counted(rows) == {b'["x",true]': 2, b'["x",false]': 1}


def test_copies_count_and_the_short_cut_counts_the_same() -> None:
    values = ["tea", None, "ink", "tea"]
    assert items().counted(batch(values)) == {b"tea": 2, b"[null]": 1, b"ink": 1}
    assert items().counted(batch(values, [1, 2, 3, 4])) == {b"tea": 5, b"[null]": 2, b"ink": 3}


@pytest.mark.parametrize("statistic", HASHING, ids=["buckets", "signed", "low bits"])
def test_without_its_secret_a_hash_encodes_nothing(statistic: Keyed) -> None:
    assert isinstance(statistic, Keyed)
    assert not statistic.bound
    assert statistic.keyed(KEY).bound
    with pytest.raises(UsageError, match="secret"):
        statistic.encode(batch(["tea"]))  # type: ignore[attr-defined]


@pytest.mark.parametrize("statistic", HASHING, ids=["buckets", "signed", "low bits"])
def test_a_deletion_is_the_negative_of_the_addition(statistic: BucketedItems) -> None:
    bound = statistic.keyed(KEY)
    values = [f"item {number}" for number in range(50)]
    whole = bound.encode(batch(values))
    first, rest = bound.encode(batch(values[:20])), bound.encode(batch(values[20:]))
    joined = {name: first.get(name, 0) + rest.get(name, 0) for name in {*first, *rest}}
    assert {name: total for name, total in joined.items() if total} == whole


@pytest.mark.parametrize("statistic", HASHING, ids=["buckets", "signed", "low bits"])
def test_a_record_moves_one_coordinate_of_each_partition_by_one(
    statistic: BucketedItems | LowBitItems,
) -> None:
    """Brute force over items; the scales of a ladder all follow from its finest one."""
    (component,) = statistic.components
    bound = statistic.keyed(KEY)
    moved = [bound.encode(batch([f"item {number}"])) for number in range(300)]
    touched = {len(one) for one in moved}
    per_record = len(component.partitions) if isinstance(statistic, LowBitItems) else 1
    assert touched == {per_record}
    assert {abs(total) for one in moved for total in one.values()} == {1}
    assert component.amount == 1
    assert all(columns == () for columns in component.partitions)


def test_a_ladder_is_charged_for_every_scale() -> None:
    (component,) = BucketedItems(items=items(), height=9).components
    assert len(component.partitions) == 10


def test_several_records_of_a_person_do_meet_in_one_bucket() -> None:
    """Attack 11: different items share buckets, so no bound on equal items refines them."""
    bound = BucketedItems(items=items(), height=4, key=KEY)
    met = [bound.encode(batch([f"{n}", f"{n + 1}"])) for n in range(200)]
    assert max(total for one in met for total in one.values()) == 2


def test_buckets_depend_on_the_secret_and_on_nothing_else() -> None:
    values = [f"item {number}" for number in range(400)]
    bound = BucketedItems(items=items(), height=6)
    one, again = (
        bound.keyed(KEY).encode(batch(values)),
        bound.keyed(KEY).encode(batch(values[::-1])),
    )
    assert one == again
    assert one != bound.keyed(OTHER).encode(batch(values))


def test_items_spread_evenly_over_buckets_levels_and_signs() -> None:
    """Chi-square with 63 degrees: above 117 by chance with probability 4e-5; the key is fixed."""
    labels = [f"item {number}".encode() for number in range(20_000)]
    ones = np.ones(len(labels), np.int64)
    sums = bucket_sums(labels, ones, key=KEY, height=6, signed=False)
    expected = len(labels) / 64
    assert sum((total - expected) ** 2 / expected for total in sums.values()) < 117
    signed = bucket_sums(labels, ones, key=KEY, height=0, signed=True)
    assert abs(sum(signed.values())) < 4.5 * len(labels) ** 0.5
    low = LowBitItems(items=items(), instances=2, levels=10, key=KEY).encode(
        batch([label.decode() for label in labels])
    )
    assert [round(low[bytes((0, level))] / 20_000 * 2 ** (level + 1), 1) for level in range(4)] == (
        pytest.approx([1.0] * 4, abs=0.11)
    )
    assert low[bytes((0, 0))] != low[bytes((1, 0))]


def test_first_bits_and_zeros_at_the_end_at_the_edges() -> None:
    words = np.array([0, 1, 8, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    assert zeros_at_end(words).tolist() == [64, 0, 3, 63, 0]
    assert first_bits(words, 0).tolist() == [0] * 5
    assert first_bits(words, 1).tolist() == [0, 0, 0, 1, 1]
    assert first_bits(words, 4).tolist() == [0, 0, 0, 8, 15]


def _presence(lives: Sequence[tuple[str, int, int]], rounds: int) -> list[int]:
    """Items present in each round; lives of (item, begin, end)."""
    return [
        len({item for item, begin, end in lives if begin <= now < end})
        for now in range(1, rounds + 1)
    ]


def test_one_life_moves_the_number_by_one_in_any_subset_of_its_rounds() -> None:
    """Brute force over all pairs of streams of up to three lives, two items and four rounds."""
    rounds = 4
    windows = [(b, e) for b in range(1, rounds + 1) for e in range(b + 1, rounds + 2)]
    lives = [(item, *window) for item in "ab" for window in windows]
    changes = {
        tuple(
            after - before
            for before, after in zip(
                _presence(others, rounds), _presence([*others, life], rounds), strict=True
            )
        )
        for life in lives
        for others in ([], *([one] for one in lives), *(list(two) for two in product(lives, lives)))
    }
    assert changes == set(product((0, 1), repeat=rounds))  # every subset occurs, and no more
    assert max(sum(value**2 for value in change) for change in changes) == rounds
