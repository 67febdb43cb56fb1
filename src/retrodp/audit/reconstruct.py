"""The attack of reconstruction: secret bits read out of counts that forget too exactly.

Kaplan et al. 2026 (arXiv 2609.05329), theorem 6.3 and lemma D.1, after Jain et al. 2023 and Dwork,
McSherry, Talwar 2007: item i is there if secret bit i is 1. Block j adds a copy of every item of a
set Q_j and deletes the copies again; in between, the number of different items tells how many of
the items outside Q_j are there. Everything was deleted, nothing was kept, and a linear program
knows the secrets.

The paper sends one update a round and reads two answers a block. Here a round takes a whole
half block, which leaves noise fewer rounds to hide in, and the program reads every answer.

Promise: updates pass through lives, statistic and mechanism as in a store, under a key tree of
their own; the decoder sees what is published and the sets, nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.special import bdtrc

from retrodp.audit.coins import Seed
from retrodp.audit.histories import Arrived, History, exact_rounds
from retrodp.audit.report import Row, Verdict
from retrodp.audit.rows import Point, update
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Mechanism, Stateful
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from retrodp.stream.update import Op

EPSILON, DELTA = 1, Fraction(1, 10**9)
RECONSTRUCTED = 0.95
"""Share of secrets from which a stream counts as reconstructed."""
MISS = 1e-6
"""Probability with which chance alone lets bits be guessed so well that noise is accused."""

Floats = NDArray[np.float64]
_RELEASE = "items"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is attacked.

    Attributes:
        bits: Secrets of one stream.
        blocks: Sets that are read out.
        streams: Streams under keys of their own, for each noise.
        deviations: Of the noise that is too little, or enough only by luck.
    """

    bits: int
    blocks: int
    streams: int
    deviations: tuple[float, ...]


SMOKE = Size(bits=64, blocks=160, streams=4, deviations=(0.5, 4, 16))
DEEP = Size(bits=96, blocks=288, streams=8, deviations=(1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128))


@dataclass(frozen=True, slots=True, kw_only=True)
class Readout:
    """Secrets, and the sets whose blocks read them out.

    Attributes:
        secrets: Bits, shape (bits,).
        sets: Row j is Q_j, shape (blocks, bits).
    """

    secrets: NDArray[np.bool_]
    sets: NDArray[np.bool_]

    @classmethod
    def drawn(cls, seed: Seed, bits: int, blocks: int) -> Readout:
        """Secrets and sets by fair coins."""
        coins = seed.coins("readout")
        drawn = (coins.words((blocks + 1) * bits) >> np.uint64(63)).astype(bool)
        table = drawn.reshape(blocks + 1, bits)
        return cls(secrets=table[0], sets=table[1:])

    @property
    def rounds(self) -> int:
        """Of the stream: one for the secrets, two a block."""
        return 1 + 2 * len(self.sets)

    def history(self, plan: Plan) -> History:
        """The stream: secrets as additions, then each set added and deleted."""
        rounds = [self._sent(plan, Op.ADD, self.secrets, 1, "secret", 1)]
        for number, members in enumerate(self.sets):
            first = 2 + 2 * number
            rounds.append(self._sent(plan, Op.ADD, members, first, f"copy {number}", first))
            rounds.append(self._sent(plan, Op.DELETE, members, first, f"copy {number}", first + 1))
        return tuple(rounds)

    def _sent(
        self, plan: Plan, op: Op, members: NDArray[np.bool_], stamp: int, name: str, round_: int
    ) -> Arrived:
        points = (
            Point(id=f"{name} of {item}", stamp=stamp, person=None, values=(f"item {item}",))
            for item in np.flatnonzero(members).tolist()
        )
        return Arrived(tuple(update(plan, op, point, round_=round_) for point in points))

    def decoded(self, answers: Floats) -> NDArray[np.bool_]:
        """The secrets by linear programming: least sum of absolute errors over bits in [0, 1].

        Args:
            answers: Published numbers of different items, shape (rounds,).
        """
        outside = np.ones((self.rounds, self.sets.shape[1]))
        outside[1::2] = ~self.sets
        known = np.zeros(self.rounds)
        known[1::2] = self.sets.sum(axis=1)  # the items of Q_j are there whatever the secrets are
        return least_absolute(outside, answers - known) > 0.5


def least_absolute(matrix: Floats, values: Floats) -> Floats:
    """The point of the unit cube with the least sum of absolute errors (HiGHS).

    Args:
        matrix: Shape (answers, bits).
        values: Shape (answers,).
    """
    answers, bits = matrix.shape
    errors = sparse.identity(answers, format="csr")
    found = optimize.linprog(
        np.concatenate([np.zeros(bits), np.ones(2 * answers)]),
        A_eq=sparse.hstack([sparse.csr_matrix(matrix), errors, -errors], format="csr"),
        b_eq=values,
        bounds=[(0, 1)] * bits + [(0, None)] * (2 * answers),
        method="highs",
    )
    assert found.status == 0, found.message
    assert found.x is not None
    point: Floats = found.x[:bits]
    return point


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that publishes the number of different items, ready to be attacked.

    Attributes:
        title: For people.
        model: Of its budget; "" if it has none.
        factor: Of its noise; "" if it has none.
        deviation: Of the noise of one answer; 0 for exact answers.
        cap: Probability with which a bit is guessed at best, on average; None without a budget.
        read: All published numbers: of the stream and a key tree.
    """

    title: str
    model: str
    factor: str
    deviation: float
    cap: float | None
    read: Callable[[Readout, KeyTree], Floats]


def exact(rounds: int) -> Target:
    """Perfect retraining: what the surviving records give, and no trace of any other."""
    return noisy(rounds, 0)


def noisy(rounds: int, deviation: float) -> Target:
    """Exact counts under Gaussian noise of a size that nobody accounted for."""
    plan = plan_of(rounds, "zcdp", "fresh")

    def read(stream: Readout, keys: KeyTree) -> Floats:
        # Items survive as equal contents, so this is the count that retraining would find.
        lived = exact_rounds(plan, (), stream.history(plan), keys)
        counts = [len({payload for _, _, _, payload, _ in own.survivors}) for own in lived]
        if not deviation:
            return np.array(counts, dtype=np.float64)
        key = keys.lasting_key(release=_RELEASE, purpose="unaccounted noise")
        law = DiscreteGaussian(variance=Fraction(deviation) ** 2)
        noise = law.draw(BlockPRF(key), Coordinates.of_indices(np.arange(len(counts))))
        return np.array(counts, dtype=np.float64) + noise

    title = f"noise of {deviation:g}" if deviation else "exact unlearning"
    return Target(title=title, model="", factor="", deviation=float(deviation), cap=None, read=read)


def released(rounds: int, model: str, method: str) -> Target:
    """A release of this package: resolved from a plan, with the guarantee that it states."""
    plan = plan_of(rounds, model, method)
    (release,) = compile_plan(plan, resolve(plan))
    mechanism = release.mechanism
    assert not isinstance(mechanism, Stateful)

    def read(stream: Readout, keys: KeyTree) -> Floats:
        lived = exact_rounds(plan, (release,), stream.history(plan), keys)
        return np.array(
            [
                number_of(mechanism.release(round_, own.totals[_RELEASE], keys))
                for round_, own in enumerate(lived, start=1)
            ]
        )

    return Target(
        title=f"distinct, {method}",
        model=model,
        factor=mechanism.factor.name,
        deviation=deviation_of(mechanism),
        cap=(1 + delta_of(mechanism.cost(), 0)) / 2,
        read=read,
    )


def plan_of(rounds: int, model: str, method: str) -> Plan:
    """A plan that counts different items over so many rounds at epsilon 1."""
    table: dict[str, Any] = {"kind": "distinct", "of": "item", "method": method}
    privacy: dict[str, Any] = {"model": model, "epsilon": EPSILON}
    if model == "zcdp":
        privacy["delta"] = str(float(DELTA))
    if method == "ladder":
        table["expect"] = [1, rounds]
    return Plan.from_dict(
        {
            "stream": {"start": "2024-01-01", "round": "1h", "horizon": rounds},
            "columns": {"item": "text"},
            "privacy": privacy,
            "release": {_RELEASE: table},
        }
    )


def number_of(answer: Answer) -> float:
    """The published number, or the middle of a published bracket."""
    (figure,) = answer.figures()
    if figure.value is not None:
        return float(figure.value)
    return (figure.bounds.low + figure.bounds.high) / 2


def deviation_of(mechanism: Mechanism) -> float:
    """Standard deviation of the noise of a release in its last round."""
    noise = getattr(mechanism, "noise", None)
    assert isinstance(noise, CalibratedNoise)
    return float(noise.stddev[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the attack found out.

    Attributes:
        target: Attacked.
        right: Secrets guessed right.
        bits: Secrets in all.
    """

    target: Target
    right: int
    bits: int

    @property
    def accuracy(self) -> float:
        """Share guessed right; chance has 1/2."""
        return self.right / self.bits

    @property
    def beyond(self) -> bool:
        """Whether no release of epsilon 1 lets so many be guessed, but for a chance of `MISS`."""
        return self.right > most_right(self.bits)


def most_right(bits: int) -> int:
    """Most secrets that can be guessed of a release of epsilon 1, but for a chance of `MISS`.

    The number of right guesses of independent fair bits is dominated by a binomial one with
    p = e^epsilon / (1 + e^epsilon), up to 2 bits delta (Steinke, Nasr, Jagielski 2023, theorem
    5.2; its alpha is at most 2).
    """
    return most_by_chance(bits, math.exp(EPSILON) / (1 + math.exp(EPSILON)))


def most_by_chance(trials: int, share: float) -> int:
    """Least number that a binomial one exceeds with probability at most `MISS`."""
    beyond = bdtrc(np.arange(trials + 1), trials, share)
    return int(np.argmax(beyond <= MISS))


def attacked(target: Target, seed: Seed, size: Size) -> Found:
    """Attack so many streams, each with secrets, sets and a key of its own."""
    right = 0
    for number in range(size.streams):
        own = seed.further("reconstruct", target.title, target.model, number)
        stream = Readout.drawn(own, size.bits, size.blocks)
        answers = target.read(stream, own.keys(stream.rounds, "stream"))
        right += int((stream.decoded(answers) == stream.secrets).sum())
    return Found(target=target, right=right, bits=size.bits * size.streams)


def targets(size: Size) -> Iterator[Target]:
    """Exact unlearning, too little noise, and the releases of this package."""
    rounds = 1 + 2 * size.blocks
    yield exact(rounds)
    for deviation in size.deviations:
        yield noisy(rounds, deviation)
    yield released(rounds, "zcdp", "fresh")
    yield released(rounds, "zcdp", "ladder")
    yield released(rounds, "pure", "fresh")


def audit(seed: Seed, size: Size, progress: Callable[[str], None] = lambda _: None) -> list[Row]:
    """A row for every target; exact counts and the least noise must be reconstructed."""
    must = {"exact unlearning", f"noise of {min(size.deviations):g}"}
    rows = []
    for target in targets(size):
        progress(target.title)
        found = attacked(target, seed, size)
        rows.append(row(found, size, must=target.title in must))
    return rows


def row(found: Found, size: Size, *, must: bool) -> Row:
    """The outcome as a row; `must` for what the attack has to reconstruct, or it is blind."""
    target = found.target
    claim = "nothing is promised" if target.cap is None else f"at most {target.cap:.1%} on average"
    return Row(
        mechanism=target.title,
        model=target.model,
        factor=target.factor,
        test="reconstruction of secret bits",
        claim=claim,
        measured=f"{found.accuracy:.1%} of {found.bits:,} secrets read",
        confidence=1 - MISS - 2 * found.bits * float(DELTA),
        verdict=_verdict(found, must=must),
        details={
            "accuracy": found.accuracy,
            "bits": found.bits,
            "chance": 0.5,
            "deviation": target.deviation,
            "cap": target.cap,
            "blocks": size.blocks,
            "bits_of_a_stream": size.bits,
            "accused_above": most_right(found.bits) / found.bits,
        },
    )


def _verdict(found: Found, *, must: bool) -> Verdict:
    if found.target.cap is not None:
        return "accused" if found.beyond else "holds"
    if found.accuracy > RECONSTRUCTED:
        return "caught"
    return "missed" if must else "as stated"
