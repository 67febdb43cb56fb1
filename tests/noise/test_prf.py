from __future__ import annotations

import multiprocessing
import pickle
import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.errors import PlanError, UsageError
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.prf import CHUNK, BlockPRF, Coordinates, collision_bound
from tests.noise.slow_reference import aes_word, label_place

KEY = bytes(range(32))
PRF = BlockPRF(KEY)


def mixed(count: int) -> Coordinates:
    """Coordinates that use all 96 bits."""
    lo = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return Coordinates(np.stack([lo, lo >> np.uint64(29) << np.uint64(32)], axis=1))


def test_a_block_is_the_published_test_vector_of_aes_256() -> None:
    """FIPS 197, appendix C.3, its plaintext read as coordinate and counters."""
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    lo, extension, attempt, hi = (
        int.from_bytes(plain[start:end], "little")
        for start, end in ((0, 8), (8, 10), (10, 12), (12, 16))
    )
    where = Coordinates(np.array([[lo, hi << 32]], dtype=np.uint64))
    blocks = PRF.blocks(where, attempt, extension)
    assert blocks.astype("<u8").tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


@pytest.mark.parametrize("counters", [(0, 0), (1, 0), (0, 1), (65535, 65535), (258, 772)])
def test_blocks_are_the_cipher_of_coordinate_and_counters(counters: tuple[int, int]) -> None:
    where = mixed(50)
    places = list(zip(where.lo.tolist(), where.hi.tolist(), strict=True))
    expected = [[aes_word(KEY, place, counters, column) for column in (0, 1)] for place in places]
    assert PRF.blocks(where, *counters).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_blocks_do_not_depend_on_the_batch(count: int) -> None:
    where = mixed(count)
    whole = PRF.blocks(where, 3, 5)
    assert (whole.shape, whole.dtype) == ((count, 2), np.dtype(np.uint64))
    order = np.argsort(where.lo)[::3]
    assert np.array_equal(whole[order], PRF.blocks(where.take(order), 3, 5))


@pytest.mark.parametrize("counters", [(-1, 0), (0, -1), (65536, 0), (0, 65536)])
def test_a_counter_never_wraps(counters: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="out of range"):
        PRF.blocks(mixed(1), *counters)


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(PlanError, match="32 bytes"):
        BlockPRF(b"short")
    with pytest.raises(PlanError, match="32 bytes"):
        Coordinates.of_labels([b"a"], b"short")


def test_the_key_is_never_shown() -> None:
    assert repr(PRF) == "BlockPRF()"


def test_indices_are_their_own_coordinates() -> None:
    assert Coordinates.of_indices(5).lo.tolist() == [0, 1, 2, 3, 4]
    scattered = Coordinates.of_indices(np.array([7, 0, 2**62]))
    assert (scattered.lo.tolist(), scattered.hi.tolist()) == ([7, 0, 2**62], [0, 0, 0])
    assert len(Coordinates.of_indices(0)) == 0


@pytest.mark.parametrize(
    "indices", [np.array([-1]), np.array([1.0]), np.array([[1]]), np.array([True])]
)
def test_indices_that_are_no_positions_are_refused(indices: NDArray[np.integer]) -> None:
    with pytest.raises(UsageError, match="whole numbers"):
        Coordinates.of_indices(indices)


def test_a_negative_number_of_indices_is_refused() -> None:
    with pytest.raises(PlanError):
        Coordinates.of_indices(-1)


@pytest.mark.parametrize(
    "words",
    [
        np.zeros((2, 2), np.int64),
        np.zeros((2, 2), np.uint32),
        np.zeros(2, np.uint64),
        np.zeros((2, 3), np.uint64),
        np.zeros((1, 2, 2), np.uint64),
    ],
)
def test_coordinates_of_another_type_or_shape_are_refused(words: NDArray[np.uint64]) -> None:
    with pytest.raises(UsageError, match="two uint64 words"):
        Coordinates(words)


def test_coordinates_leave_room_for_the_counters() -> None:
    """Otherwise one coordinate's second attempt could be another one's first."""
    with pytest.raises(UsageError, match="low 32 bits"):
        Coordinates(np.array([[0, 1 << 31]], dtype=np.uint64))


def test_chunks_are_all_coordinates_in_order() -> None:
    counts = (0, 1, CHUNK, 2 * CHUNK + 5)
    for count in counts:
        pieces = [piece for _, piece in mixed(count).chunks()]
        joined = [piece.words for piece in pieces] or [np.empty((0, 2), np.uint64)]
        assert np.array_equal(np.concatenate(joined), mixed(count).words)
        assert max(map(len, pieces), default=0) <= CHUNK


LABELS = [b"", b"a", b"b", b"ab", b"a\x00", "sm\u00f8rrebr\u00f8d".encode(), b"x" * 1000]


def test_a_label_is_placed_by_96_bits_of_its_keyed_hash() -> None:
    where = Coordinates.of_labels(LABELS, KEY)
    found = list(zip(where.lo.tolist(), where.hi.tolist(), strict=True))
    assert found == [label_place(KEY, label) for label in LABELS]


def test_another_key_moves_every_label() -> None:
    one, two = Coordinates.of_labels(LABELS, KEY), Coordinates.of_labels(LABELS, bytes(32))
    assert not np.any(one.lo == two.lo)


def test_all_96_bits_of_a_label_are_used() -> None:
    where = Coordinates.of_labels([str(number).encode() for number in range(200)], KEY)
    seen = [np.bitwise_or.reduce(where.lo), np.bitwise_or.reduce(where.hi)]
    never = [np.bitwise_and.reduce(where.lo), np.bitwise_and.reduce(where.hi)]
    assert [int(word) for word in seen] == [2**64 - 1, 2**32 - 1]
    assert [int(word) for word in never] == [0, 0]


def test_the_collision_bound_is_the_union_over_pairs() -> None:
    assert collision_bound(0) == collision_bound(1) == 0
    assert 1 < collision_bound(2) * 2**96 < 1 + Fraction(1, 1000)
    assert collision_bound(2**20 + 1) == collision_bound(2) * 2**19 * (2**20 + 1)
    assert collision_bound(10**8) <= Fraction(1, 2**40)


def test_bins_of_64_bits_would_collide_too_often() -> None:
    """Twin: the same labels in blocks of 64 bits."""
    assert collision_bound(10**8) * 2**32 > Fraction(1, 2**40)


LAW = DiscreteGaussian(variance=Fraction(10**6))
COUNT = 20_000


def draws_of(span: tuple[int, int]) -> list[int]:
    """Runs in another process: draws of a range of coordinates."""
    values: list[int] = LAW.draw(PRF, Coordinates.of_indices(np.arange(*span))).tolist()
    return values


def test_draws_do_not_depend_on_batch_order_or_subset() -> None:
    whole = LAW.draw(PRF, mixed(COUNT))
    one_by_one = [int(LAW.draw(PRF, mixed(COUNT).take(slice(i, i + 1)))[0]) for i in range(300)]
    backwards = LAW.draw(PRF, mixed(COUNT).take(np.arange(COUNT)[::-1]))[::-1]
    some = np.array([17, 4, 4, COUNT - 1])
    assert whole[:300].tolist() == one_by_one
    assert np.array_equal(whole, backwards)
    assert np.array_equal(whole[some], LAW.draw(PRF, mixed(COUNT).take(some)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_draw_what_one_process_draws_and_nothing_twice(method: str) -> None:
    spans = [(start, start + COUNT // 4) for start in range(0, COUNT, COUNT // 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside BLAS threads
        with multiprocessing.get_context(method).Pool(2) as pool:
            parts = pool.map(draws_of, spans)
    assert [draw for part in parts for draw in part] == draws_of((0, COUNT))
    assert len({tuple(part) for part in parts}) == len(parts)


def test_threads_that_share_a_key_do_not_disturb_one_another() -> None:
    found: dict[int, list[int]] = {}

    def work(number: int) -> None:
        found[number] = draws_of((0, 3 * CHUNK))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] == draws_of((0, 3 * CHUNK)) for number in range(4)] == [True] * 4


def test_a_prf_survives_pickling_for_other_processes() -> None:
    assert pickle.loads(pickle.dumps(PRF)) == PRF
