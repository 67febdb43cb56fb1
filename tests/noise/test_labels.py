"""The hash of labels: CBC-MAC with AES-256 over a prefix-free code, whatever the batch."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrodp.noise import labels as module
from retrodp.noise.labels import label_words
from tests.noise.slow_reference import label_place

KEY = bytes(range(32))


def places(labels: list[bytes]) -> list[tuple[int, int]]:
    words = label_words(labels, KEY)
    return [(int(lo), int(high) >> 32) for lo, high in words]


def test_a_label_of_one_block_is_what_openssl_gives() -> None:
    """Of `openssl enc -aes-256-cbc -nopad -K KEY -iv 0` over 0c000000 and the label."""
    assert label_words([b"twelve bytes"], KEY).tobytes().hex() == "fd363d78b4453e2a50bd5e84b0ae1541"


def test_a_label_of_three_blocks_is_the_end_of_the_chain() -> None:
    """Of the same command over 23000000, the label and 9 zeros, the last 16 bytes."""
    label = b"thirty-five bytes make three blocks"
    assert label_words([label], KEY).tobytes().hex() == "cb02efa08464caa6e2e20992802d2fb5"


# Around every number of blocks at which one more byte needs one more block, and far beyond.
LENGTHS = [0, 1, 11, 12, 13, 27, 28, 29, 43, 44, 45, 1000, 100_000]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_label_of_any_length_equals_the_cipher_s_own_chain(length: int) -> None:
    label = bytes(index * 7 % 256 for index in range(length))
    assert places([label]) == [label_place(KEY, label)]


@given(st.lists(st.binary(max_size=70), max_size=60))
def test_labels_of_mixed_lengths_equal_the_cipher_s_own_chain(labels: list[bytes]) -> None:
    assert places(labels) == [label_place(KEY, label) for label in labels]


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_words_do_not_depend_on_the_batch(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [b"x" * (number * 37 % 61) + b"%d" % number for number in range(300)]
    whole = label_words(labels, KEY)
    monkeypatch.setattr(module, "_BATCH", batch)
    assert np.array_equal(label_words(labels, KEY), whole)
    assert np.array_equal(label_words(labels[::-1], KEY), whole[::-1])


def test_labels_that_differ_by_padding_or_length_alone_are_told_apart() -> None:
    labels = [b"\x00" * length for length in range(60)]
    labels += [b"\x0c\x00\x00\x00" + b"\x00" * 8, b"a", b"a\x00", b"a\x00b", b"a\x00c"]
    assert len(set(places(labels))) == len(labels)


def raw_chain(code: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(KEY), modes.CBC(bytes(16))).encryptor()
    return encryptor.update(code)[-16:]


def extended(one: bytes, tag: bytes, two: bytes) -> bytes:
    """`one` continued such that the chain goes on as if it had begun with `two`."""
    return one + bytes(a ^ b for a, b in zip(tag, two, strict=True))


def test_a_label_that_continues_another_is_told_apart_from_a_third() -> None:
    """The forgery that a chain without lengths allows, made with the codes of labels."""
    one, two = b"twelve bytes", b"other twelve"
    tag = label_words([one], KEY).tobytes()
    label = extended(one, tag, len(two).to_bytes(4, "little") + two)
    assert places([label]) != places([two])


def test_twin_a_chain_without_lengths_confuses_them() -> None:
    one, two = b"sixteen bytes :)", b"and sixteen more"
    assert raw_chain(extended(one, raw_chain(one), two)) == raw_chain(two)


def test_every_word_is_used() -> None:
    words = label_words([str(number).encode() for number in range(300)], KEY)
    ones: NDArray[np.uint64] = np.bitwise_or.reduce(words, axis=0)
    zeros: NDArray[np.uint64] = np.bitwise_and.reduce(words, axis=0)
    assert (ones.tolist(), zeros.tolist()) == ([2**64 - 1] * 2, [0, 0])


def test_no_labels_have_no_words() -> None:
    assert label_words([], KEY).shape == (0, 2)
