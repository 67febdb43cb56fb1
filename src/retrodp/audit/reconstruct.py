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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from retrodp.audit import attack
from retrodp.audit.attack import (
    DELTA,
    EPSILON,
    MISS,
    claim_of,
    deviation_of,
    most_by_chance,
    verdict_of,
)
from retrodp.audit.coins import Seed
from retrodp.audit.histories import Arrived, History, exact_rounds
from retrodp.audit.report import Row
from retrodp.audit.rows import Point, update
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from retrodp.stream.update import Op

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


Target: TypeAlias = attack.Target[Readout, Floats]
"""Reads the published numbers of different items, of all rounds."""


def exact(rounds: int) -> Target:
    """Perfect retraining: what the surviving records give, and no trace of any other."""
    return noisy(rounds, 0)


def noisy(rounds: int, deviation: float) -> Target:
    """Exact counts under Gaussian noise of a size that nobody accounted for."""
    attack.require_deviation(deviation)
    plan = plan_of(rounds, "zcdp", "fresh")

    def read(stream: Readout, keys: KeyTree) -> Floats:
        # Items survive as equal contents, so this is the count that retraining would find.
        lived = exact_rounds(plan, (), stream.history(plan), keys)
        counts = [len({payload for _, _, _, payload, _ in own.survivors}) for own in lived]
        if not deviation:
            return np.array(counts, dtype=np.float64)
        noise = attack.unaccounted(keys, _RELEASE, Fraction(deviation) ** 2, len(counts))
        return np.array(counts, dtype=np.float64) + noise

    title = f"noise of {deviation:g}" if deviation else "exact unlearning"
    return attack.Target(title=title, deviation=float(deviation), read=read)


def released(rounds: int, model: str, method: str) -> Target:
    """A release of this package: resolved from a plan, with the guarantee that it states."""
    plan = plan_of(rounds, model, method)
    release, mechanism = attack.resolved(plan)

    def read(stream: Readout, keys: KeyTree) -> Floats:
        lived = exact_rounds(plan, (release,), stream.history(plan), keys)
        return np.array(
            [
                number_of(mechanism.release(round_, own.totals[_RELEASE], keys))
                for round_, own in enumerate(lived, start=1)
            ]
        )

    return attack.Target(
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
    if method == "ladder":
        table["expect"] = [1, rounds]
    return attack.plan_of(
        model,
        stream={"round": "1h", "horizon": rounds},
        columns={"item": "text"},
        release={_RELEASE: table},
    )


def number_of(answer: Answer) -> float:
    """The published number, or the middle of a published bracket."""
    (figure,) = answer.figures()
    if figure.value is not None:
        return float(figure.value)
    return (figure.bounds.low + figure.bounds.high) / 2


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
    return Row(
        mechanism=target.title,
        model=target.model,
        factor=target.factor,
        test="reconstruction of secret bits",
        claim=claim_of(target.cap, "on average"),
        measured=f"{found.accuracy:.1%} of {found.bits:,} secrets read",
        confidence=1 - MISS - 2 * found.bits * float(DELTA),
        verdict=verdict_of(
            found.accuracy, capped=target.cap is not None, beyond=found.beyond, must=must
        ),
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
