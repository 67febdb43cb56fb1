"""Draws by the batch: many rounds, many labels, other processes, other processors."""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import os
import subprocess
import sys
import tracemalloc
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.errors import KeyDestroyedError
from retrodp.noise.factors import BinaryFactor, Factor, best_delannoy, best_haar
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import CHUNK, Coordinates
from retrodp.noise.process import Law, NoiseProcess

HORIZON = 12
KEYS = KeyTree.from_root(b"a fixed key that tests use only!", b"store", HORIZON)
FACTORS: list[Factor] = [
    BinaryFactor(horizon=HORIZON),
    best_haar(HORIZON),
    best_delannoy(HORIZON),
    FreshFactor(horizon=HORIZON, window=3),
]
LAWS: list[tuple[Law, Fraction]] = [("laplace", Fraction(7, 2)), ("gaussian", Fraction(10**7))]
PROCESSES = [
    NoiseProcess(factor=factor, law=law, scale=scale) for factor in FACTORS for law, scale in LAWS
]
ALL = range(1, HORIZON + 1)
LABELS = [b"%d" % number * (number % 9) for number in range(2000)]


def one_by_one(process: NoiseProcess, rounds: list[int], where: Coordinates) -> NDArray[np.int64]:
    rows = [process.draw(release="r", round=t, keys=KEYS, where=where) for t in rounds]
    return np.array(rows, dtype=np.int64).reshape(len(rounds), len(where))


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("count", [0, 1, 300])
@pytest.mark.parametrize("rounds", [[], [5], list(ALL), list(ALL)[::-1], [3, 3, 11, 1]])
def test_rounds_drawn_together_are_the_rounds_drawn_one_by_one(
    process: NoiseProcess, count: int, rounds: list[int]
) -> None:
    where = Coordinates.of_indices(count)
    expected = one_by_one(process, rounds, where)
    matrix = process.draw_rounds(release="r", rounds=rounds, keys=KEYS, where=where)
    each = list(process.each_round(release="r", rounds=rounds, keys=KEYS, where=where))
    assert (matrix.shape, matrix.dtype) == ((len(rounds), count), np.dtype(np.int64))
    assert matrix.tobytes() == expected.tobytes()
    assert [row.tobytes() for row in each] == [row.tobytes() for row in expected]


@pytest.mark.parametrize("process", PROCESSES[2:6])
def test_batches_beyond_a_chunk_are_the_rounds_drawn_one_by_one(process: NoiseProcess) -> None:
    where = Coordinates.of_indices(2 * CHUNK + 3)
    expected = one_by_one(process, [6, 7], where)
    matrix = process.draw_rounds(release="r", rounds=[6, 7], keys=KEYS, where=where)
    each = process.each_round(release="r", rounds=[6, 7], keys=KEYS, where=where)
    assert matrix.tobytes() == expected.tobytes()
    assert np.array(list(each)).tobytes() == expected.tobytes()
    assert one_by_one(process, [6], where.take(slice(CHUNK - 2, CHUNK + 2))).tobytes() == (
        np.ascontiguousarray(expected[:1, CHUNK - 2 : CHUNK + 2]).tobytes()
    )


def test_rows_of_each_round_stay_as_they_were() -> None:
    """What was handed out is not worked on any more."""
    process, where = PROCESSES[2], Coordinates.of_indices(20)
    rows = process.each_round(release="r", rounds=ALL, keys=KEYS, where=where)
    first = next(rows)
    kept = first.tobytes()
    assert len(list(rows)) == HORIZON - 1
    assert first.tobytes() == kept


@pytest.mark.parametrize("process", PROCESSES)
def test_rounds_of_which_one_is_past_are_not_drawn(process: NoiseProcess) -> None:
    where, late = Coordinates.of_indices(3), KEYS.advanced(HORIZON)
    with pytest.raises(KeyDestroyedError):
        process.draw_rounds(release="r", rounds=[HORIZON, 1], keys=late, where=where)
    each = process.each_round(release="r", rounds=[HORIZON, 1], keys=late, where=where)
    assert next(each).tobytes() == one_by_one(process, [HORIZON], where)[0].tobytes()
    with pytest.raises(KeyDestroyedError):
        next(each)


def peak_beyond_result(count: int) -> int:
    """Bytes that a draw needs besides its result."""
    where = Coordinates.of_indices(count)
    tracemalloc.start()
    try:
        drawn = PROCESSES[3].draw(release="r", round=7, keys=KEYS, where=where)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - drawn.nbytes


def test_memory_of_a_draw_does_not_grow_with_the_number_of_coordinates() -> None:
    few, many = peak_beyond_result(2 * CHUNK), peak_beyond_result(20 * CHUNK)
    assert many < 1.2 * few + 100_000
    assert many < 3_000_000


def digest() -> str:
    """Draws of every process and of labels, as one hash."""
    found = hashlib.sha256()
    labels = Coordinates.of_labels(LABELS, b"k" * 32)
    found.update(labels.words.tobytes())
    for process in PROCESSES:
        for where in (labels, Coordinates.of_indices(3000)):
            drawn = process.draw_rounds(release="r", rounds=[4, 9], keys=KEYS, where=where)
            found.update(drawn.tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_draw_the_same(method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside BLAS threads
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert set(pool.starmap(digest, [()] * 3)) == {digest()}


def dispatched() -> list[str]:
    """Instruction sets that NumPy would choose among on this machine."""
    name = "numpy._core._multiarray_umath" if np.__version__ >= "2" else "numpy.core"
    module = importlib.import_module(name)
    return [feature for feature in module.__cpu_dispatch__ if module.__cpu_features__.get(feature)]


def test_processors_with_fewer_instructions_draw_the_same() -> None:
    """Neither vector instructions of NumPy nor the cipher in hardware are part of a draw."""
    poorer = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched()),
        "OPENSSL_ia32cap": "~0x200000200000000",  # no AES and no carry-less product
        "OPENSSL_armcap": "0",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    found = subprocess.run(
        [sys.executable, "-c", "from tests.noise.test_batches import digest; print(digest())"],
        env=os.environ | poorer,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == digest()
