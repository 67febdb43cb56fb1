"""Lower triangles of small whole numbers as bytes, as matrices and as text.

Promise: every form is read back as exactly the numbers it was made of, or refused. Knows not what
the numbers mean.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import PlanError

IntMatrix = NDArray[np.int64]

_ENTRY = np.dtype("<i2")  # two bytes, whatever the machine


def size_of(rows: int) -> int:
    """Bytes of the packed lower triangle of so many rows."""
    return rows * (rows + 1) // 2 * _ENTRY.itemsize


def packed(matrix: IntMatrix) -> bytes:
    """The lower triangle row by row; entries fit 16 bits."""
    return matrix[np.tril_indices(len(matrix))].astype(_ENTRY).tobytes()


def unpacked(triangle: bytes, rows: int) -> IntMatrix:
    """The square matrix of a packed lower triangle, int64, zero above the diagonal."""
    matrix = np.zeros((rows, rows), dtype=np.int64)
    matrix[np.tril_indices(rows)] = np.frombuffer(triangle, dtype=_ENTRY)
    return matrix


def to_text(triangle: bytes, rows: int) -> str:
    """Differences along the diagonals, which are often nearly constant, in zlib and base64."""
    matrix = unpacked(triangle, rows)
    matrix[1:, 1:] -= matrix[:-1, :-1].copy()
    return base64.b64encode(zlib.compress(packed(matrix), 9)).decode("ascii")


def from_text(text: object, rows: int) -> bytes:
    """The packed triangle that `to_text` coded; sums wrap at 16 bits as differences did.

    Raises:
        PlanError: This is no code of a triangle of so many rows.
    """
    size = size_of(rows)
    stream = zlib.decompressobj()
    code = text if isinstance(text, str) else ""
    try:
        differences = stream.decompress(base64.b64decode(code, validate=True), size + 1)
    except (ValueError, zlib.error):  # of base64 and of zlib
        differences = b""
    if len(differences) != size or not stream.eof or stream.unused_data:
        raise PlanError(f"A triangle of {rows} rows cannot be read from its code.")
    matrix = unpacked(differences, rows)
    for row in range(1, rows):
        matrix[row, 1:] += matrix[row - 1, :-1]
    return packed(matrix)
