"""A pseudo-random function of labels of any length: AES-256 chained over padded blocks.

Promise: the words of a label depend on the key and the label's bytes alone, not on the other labels
it is hashed with. Knows no coordinate, no law and no data; a label is seen only as the bytes that
its release would print.

A label is written as its length in 4 bytes, its bytes, and zeros up to a multiple of 16. That code
is unambiguous: the length tells label from padding. It is prefix free as well: if the code of x
began the code of y, they would name one length, hence have one number of blocks, hence be equal.
The words are the last link of the cipher block chain from zero over the code (CBC-MAC). On a
prefix-free code that is a pseudo-random function if the cipher is a pseudo-random permutation: over
q labels of at most L blocks it differs from a random function by at most
`L q^2 / 2^128 (12 + 64 L^3 / 2^128)` (Bellare, Pietrzak, Rogaway 2005). Nobody outside asks for
words of labels of their choice; the bound does not even need that.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

BLOCK_BYTES = 16
LENGTH_BYTES = 4
_BATCH = 1 << 14  # blocks that are chained at a time

Words = NDArray[np.uint64]


def label_words(labels: Sequence[bytes], key: bytes) -> Words:
    """Two little-endian words a label, shape (n, 2), dtype "<u8".

    Args:
        labels: Each shorter than 2**32 bytes; equal labels get equal words.
        key: 32 bytes used for nothing else.

    Cost: some 60 ns a label, and memory for `_BATCH` blocks or the longest label.
    """
    words = np.empty((len(labels), 2), dtype="<u8")
    # One context for all: a block of this mode leaves no state behind.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    for start in range(0, len(labels), _BATCH):  # few enough to be still at hand when copied
        part = labels[start : start + _BATCH]
        _fill(words[start : start + _BATCH], encryptor, part)
    return words


def _fill(words: Words, encryptor: CipherContext, labels: Sequence[bytes]) -> None:
    lengths = np.fromiter(map(len, labels), dtype=np.int64, count=len(labels))
    blocks = (lengths + (LENGTH_BYTES + BLOCK_BYTES - 1)) // BLOCK_BYTES
    if (blocks == blocks[0]).all():
        words[:] = _chained(encryptor, labels, lengths, int(blocks[0]))
        return
    for count in np.flatnonzero(np.bincount(blocks)).tolist():
        rows = np.flatnonzero(blocks == count)
        most = max(1, _BATCH // count)
        for start in range(0, len(rows), most):
            batch = rows[start : start + most]
            chosen = itemgetter(*batch.tolist(), -1)(labels)[:-1]  # -1: a tuple even of one
            words[batch] = _chained(encryptor, chosen, lengths[batch], count)


def _chained(
    encryptor: CipherContext, labels: Sequence[bytes], lengths: NDArray[np.int64], blocks: int
) -> Words:
    """Chain labels of one number of blocks, all in step: block by block over the batch."""
    text = f"S{blocks * BLOCK_BYTES - LENGTH_BYTES}"  # NumPy pads with zeros
    coded = np.empty(len(labels), dtype=np.dtype([("length", "<u4"), ("text", text)]))
    coded["length"], coded["text"] = lengths, labels
    chain = coded.view("<u8").reshape(len(labels), blocks, 2)
    link = np.zeros((len(labels), 2), dtype="<u8")
    result = np.empty(2 * len(labels) + 2, dtype="<u8")  # the cipher asks for 15 spare bytes
    source, target = link.reshape(-1).view(np.uint8).data, result.view(np.uint8).data
    words: Words = result[: 2 * len(labels)].reshape(-1, 2)
    for block in range(blocks):
        before = words if block else link
        for column in (0, 1):  # a row of two is too short for NumPy's inner loop
            np.bitwise_xor(before[:, column], chain[:, block, column], out=link[:, column])
        encryptor.update_into(source, target)
    return words
