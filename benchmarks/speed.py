"""Speed of draws and of releases, beside the peers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np

from benchmarks import peers
from benchmarks.tables import Table, millions
from benchmarks.timing import Rate, cold_rate, rate
from retrodp.errors import UsageError
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.noise import compiled
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors import BinaryFactor, Factor, best_delannoy, best_haar
from retrodp.noise.factors.dense import best_dense
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.key import KeyTree
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.process import Law, NoiseProcess
from retrodp.privacy.budget import zCDP

KEY = bytes(range(32))
MILLION = 10**6
SCALES = (1, 11, 100, 10_000, 1_000_000)
OPENDP_DRAWS = 2_000
HORIZON, BINS = 1024, 10_000
DENSE_HORIZON = 365
PEER_HORIZON_BINS = 20  # OpenDP's tree has one bin a call


def optional(make: Callable[[], peers.Draw | None], items: int, **options: float) -> Rate | None:
    """Rate of a peer, None if it is not there."""
    call = make()
    return None if call is None else rate(call, items, seconds=options.get("seconds", 0.8))


@contextmanager
def compiled_loops() -> Iterator[bool]:
    """Draw with compiled loops inside, if Numba is installed."""
    try:
        compiled.enable()
    except UsageError:
        yield False
        return
    try:
        yield True
    finally:
        compiled.disable()


def samplers() -> Table:
    """Draws a second of one core."""
    table = Table(
        "samplers",
        "Samplers: million draws a second",
        "One vector of a million coordinates (OpenDP: 2,000), processor time of one core, median "
        "and best call. retrodp and OpenDP draw the exact discrete laws; compiled means Numba, by "
        "choice, with the same draws. NumPy's seeded generators are a floor for the time and give "
        "no privacy.",
        (
            *("law", "scale", "retrodp", "best", "retrodp, compiled", "best"),
            *("OpenDP", "best", "NumPy, insecure", "best"),
        ),
    )
    where, prf = Coordinates.of_indices(MILLION), BlockPRF(KEY)
    for law in ("laplace", "gaussian"):
        for scale in SCALES:
            exact: DiscreteLaplace | DiscreteGaussian = (
                DiscreteLaplace(scale=Fraction(scale))
                if law == "laplace"
                else DiscreteGaussian(variance=Fraction(scale**2))
            )

            def draw(exact: DiscreteLaplace | DiscreteGaussian = exact) -> object:
                return exact.draw(prf, where)

            ours = rate(draw, MILLION)
            with compiled_loops() as there:
                fast = rate(draw, MILLION) if there else None
            opendp = optional(
                lambda law=law, scale=scale: peers.opendp_draws(law, scale, OPENDP_DRAWS),  # type: ignore[misc]
                OPENDP_DRAWS,
            )
            floor = rate(peers.numpy_draws(law, scale, MILLION), MILLION)
            cells = (cell for found in (ours, fast, opendp, floor) for cell in millions(found))
            table.add(law, scale, *cells)
    return table


def parts() -> Table:
    """The pseudo-random function alone."""
    table = Table(
        "parts",
        "Pseudo-random function and labels: million a second",
        "AES-256 blocks into memory that is used again, and 96-bit keyed hashes of labels held in "
        "a Python list. The Python loop is keyed BLAKE2b, one call a label.",
        ("what", "count", "million/s", "best"),
    )
    prf = BlockPRF(KEY)
    for count in (1 << 14, MILLION):
        where, words = Coordinates.of_indices(count), np.empty(2 * count + 2, dtype=np.uint64)
        blocks = rate(lambda where=where, out=words: prf.blocks(where, out=out), count)  # type: ignore[misc]
        table.add("AES-256 blocks", count, *millions(blocks))
    shapes = {
        "labels of 12 bytes": [f"item-{number:07d}".encode() for number in range(300_000)],
        "labels of 28 bytes": [
            f"item-{number:07d}, a longer one".encode()[:28] for number in range(300_000)
        ],
        "labels of 5 to 60 bytes": [b"x" * (5 + number % 56) for number in range(300_000)],
    }
    for name, labels in shapes.items():
        found = rate(lambda labels=labels: Coordinates.of_labels(labels, KEY), len(labels))  # type: ignore[misc]
        table.add(name, len(labels), *millions(found))
    loop = rate(lambda: looped(shapes["labels of 12 bytes"]), 300_000)
    table.add("labels of 12 bytes, Python loop", 300_000, *millions(loop))
    return table


def looped(labels: list[bytes]) -> list[bytes]:
    """A keyed hash a label, without vectors."""
    import hashlib  # noqa: PLC0415

    return [hashlib.blake2b(label, key=KEY, digest_size=12).digest() for label in labels]


def processes() -> Iterator[tuple[str, NoiseProcess]]:
    """The factors at the noise of epsilon = 1 or rho = 1/2."""
    made: list[tuple[Factor, Law]] = [
        (BinaryFactor(horizon=HORIZON), "laplace"),
        (best_delannoy(HORIZON), "laplace"),
        (best_haar(HORIZON), "gaussian"),
    ]
    for factor, law in made:
        scale = factor.window_l1 if law == "laplace" else factor.window_l2sq
        yield (
            f"{factor.name}, {law}",
            NoiseProcess(factor=factor, law=law, scale=Fraction(scale)),
        )


def releases() -> Table:
    """Values of a dense histogram over a horizon."""
    table = Table(
        "releases",
        "Releases: million values (bin x round) a second",
        f"Noise of {BINS:,} bins over {HORIZON:,} rounds: all rounds in one call, into memory that "
        "is used again, one round at a time with the running sums kept, one round at a time from the key alone (what a daily "
        "close does). Processor time; keys are derived within the time.",
        ("who", "how", "million/s", "best"),
    )
    keys = KeyTree.from_root(KEY, b"benchmark", HORIZON)
    where, rounds = Coordinates.of_indices(BINS), range(1, HORIZON + 1)
    matrix = np.empty((HORIZON, BINS), dtype=np.int64)
    for name, process in processes():

        def batched(process: NoiseProcess = process) -> object:
            return process.draw_rounds(
                release="r", rounds=rounds, keys=keys, where=where, out=matrix
            )

        def running(process: NoiseProcess = process) -> object:
            each = process.each_round(release="r", rounds=rounds, keys=keys, where=where)
            return sum(int(noise[0]) for noise in each)

        some = range(1, HORIZON + 1, 16)

        def single(process: NoiseProcess = process, some: range = some) -> object:
            for round_ in some:
                process.draw(release="r", round=round_, keys=keys, where=where)
            return None

        values = HORIZON * BINS
        ways: list[tuple[str, Callable[[], object], int]] = [
            ("all rounds in one call", batched, values),
            ("round by round, sums kept", running, values),
            ("round by round, key alone", single, len(some) * BINS),
        ]
        for how, call, count in ways:
            table.add(name, how, *millions(rate(call, count)))
        with compiled_loops() as there:
            for how, call, count in ways:
                found = rate(call, count) if there else None
                table.add(f"{name}, compiled", how, *millions(found))
    dense = dense_process()
    for how, call, count in dense_ways(dense):
        name = f"dense, gaussian, {dense.factor.horizon} rounds"
        table.add(name, how, *millions(cold_rate(call, count, least=2)))
    stream = optional(lambda: peers.jax_stream(HORIZON, BINS), HORIZON * BINS)
    table.add("jax-privacy BLT, float, insecure", "all rounds in one scan", *millions(stream))
    tree = optional(lambda: peers.opendp_tree(HORIZON, 22.0), HORIZON)
    table.add("OpenDP b-ary tree, laplace", "one bin, whole stream at once", *millions(tree))
    one = optional(lambda: peers.dpcrpy_stream(HORIZON), HORIZON)
    table.add("dpcrpy binary, float, insecure", "one bin, round by round", *millions(one))
    floor = rate(peers.numpy_tree(HORIZON, BINS, 5.0), HORIZON * BINS)
    table.add("NumPy normal on a binary tree, insecure", "round by round", *millions(floor))
    return table


def dense_process() -> DenseProcess:
    """The factor of least error over a year, at rho = 1/2."""
    factor = best_dense(DENSE_HORIZON)
    return DenseProcess(factor=factor, scale=Fraction(factor.window_l2sq))


def dense_ways(process: DenseProcess) -> list[tuple[str, Callable[[], object], int]]:
    """Calls that draw the same values in two ways."""
    keys = KeyTree.from_root(KEY, b"benchmark", DENSE_HORIZON)
    where, rounds = Coordinates.of_indices(BINS), range(1, DENSE_HORIZON + 1)

    def batched() -> object:
        return process.draw_rounds(release="r", rounds=rounds, keys=keys, where=where)

    def running() -> object:
        each = process.each_round(release="r", rounds=rounds, keys=keys, where=where)
        return sum(int(noise[0]) for noise in each)

    values = DENSE_HORIZON * BINS
    return [
        ("all rounds in one call", batched, values),
        ("round by round, draws kept", running, values),
    ]


def sparse() -> Table:
    """A round of a histogram over an open domain, and the memory that it takes."""
    table = Table(
        "sparse",
        "Open domains: one round of a sparse histogram",
        "365 rounds planned, rho = 1/2, haar. Every bin with records is hashed, drawn and compared "
        "with the threshold; only released bins become text. Peak memory besides the totals, as "
        "`tracemalloc` sees it, which slows nothing that was timed.",
        ("bins with records", "released", "seconds a round", "million bins/s", "peak MB"),
    )
    histogram = SparseHistogram(horizon=365, budget=zCDP("1/2"), delta="1e-6")
    keys = KeyTree.from_root(KEY, b"benchmark", 365)
    for bins in (10_000, 100_000, MILLION):
        counts = np.random.default_rng(0).geometric(0.1, bins).tolist()
        totals = {f"item-{number:07d}".encode(): count for number, count in enumerate(counts)}

        def run(totals: dict[bytes, int] = totals) -> int:
            return len(histogram.release(180, totals, keys))

        found = cold_rate(run, bins, least=3)
        tracemalloc.start()
        released = run()
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        table.add(bins, released, bins / found.typical, found.typical / 1e6, peak)
    return table


def memory() -> Table:
    """What a draw needs besides its result."""
    table = Table(
        "memory",
        "Memory of a draw besides its result",
        "Nothing is stored a bin or a node: a round of a haar factor over 1,024 rounds, "
        "`tracemalloc` peak less the result.",
        ("coordinates", "result MB", "besides it MB"),
    )
    process = dict(processes())["haar, gaussian"]
    keys = KeyTree.from_root(KEY, b"benchmark", HORIZON)
    for count in (10_000, 100_000, MILLION):
        where = Coordinates.of_indices(count)
        process.draw(release="r", round=500, keys=keys, where=where.take(slice(0, 1)))
        tracemalloc.start()
        drawn = process.draw(release="r", round=500, keys=keys, where=where)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        table.add(count, drawn.nbytes / 1e6, (peak - drawn.nbytes) / 1e6)
    return table
