"""The attack by difference: what exact counts tell about the one record that was just deleted.

A group answers yes or no; one record is deleted between two rounds, and the adversary knows when.
Whoever subtracts the two publications reads the answer of exactly the one who asked to be
forgotten. Retraining without the record does not help: it is what makes both publications exact
(Kaplan et al. 2026, section 1). Nor does noise that is drawn once and kept, because it cancels.

Promise: every trial is a stream of its own under a key of its own, so trials are independent, and
so are right guesses. Updates pass through lives, statistic and mechanism as in a store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from retrodp.audit import attack
from retrodp.audit.attack import MISS, claim_of, deviation_of, most_by_chance, verdict_of
from retrodp.audit.coins import Seed
from retrodp.audit.histories import Arrived, History, exact_rounds
from retrodp.audit.report import Row, Verdict
from retrodp.audit.rows import Point, update
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.neighbours import group_losses
from retrodp.stream.update import Op

ANSWERS = ("yes", "no")
_RELEASE = "answers"
_MUST = 3  # the first targets, which the attack has to read, or it is blind
_UNITS = 2  # streams with another answer of one record differ in a record less and a record more

Tables = tuple[Mapping[str, float], Mapping[str, float]]
"""Published numbers by answer, before and after the deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is attacked.

    Attributes:
        people: Records of a stream.
        horizon: Rounds.
        trials: Streams, each with a deletion in a round of its own.
        deviations: Of noise that nobody accounted for, drawn anew in every round.
    """

    people: int
    horizon: int
    trials: int
    deviations: tuple[float, ...]


SMOKE = Size(people=20, horizon=30, trials=400, deviations=(0.125, 1, 4))
DEEP = Size(
    people=40, horizon=60, trials=2000, deviations=(0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """People, their answers, and who leaves when.

    Attributes:
        answers: Of everybody; the first one leaves.
        round: At whose close she is gone.
    """

    answers: tuple[str, ...]
    round: int

    @classmethod
    def drawn(cls, seed: Seed, size: Size) -> Group:
        """Answers and round by fair coins."""
        coins = seed.coins("group")
        answers = tuple(coins.choice(ANSWERS) for _ in range(size.people))
        return cls(answers=answers, round=coins.between(2, size.horizon))

    @property
    def secret(self) -> str:
        """Answer of the one who leaves."""
        return self.answers[0]

    def history(self, plan: Plan) -> History:
        """Everybody comes in round 1, one goes."""
        points = [
            Point(id=f"person {number}", stamp=1, person=None, values=(answer,))
            for number, answer in enumerate(self.answers)
        ]
        come = tuple(update(plan, Op.ADD, point, round_=1) for point in points)
        goes = update(plan, Op.DELETE, points[0], round_=self.round)
        quiet = (Arrived(),) * (self.round - 2)
        return (Arrived(come), *quiet, Arrived((goes,)))


Target: TypeAlias = attack.Target[Group, Tables]
"""Reads what is published right before and after the deletion."""


def exact() -> Target:
    """Perfect retraining: what the surviving records give."""
    return attack.Target(title="exact unlearning", read=lambda group, _: _counts(group))


def kept(deviation: float) -> Target:
    """One table of noise, added to every publication."""
    attack.require_deviation(deviation)

    def read(group: Group, keys: KeyTree) -> Tables:
        noise, _ = _noise(keys, deviation)
        before, after = _counts(group)
        return _sum(before, noise), _sum(after, noise)

    return attack.Target(title=f"noise of {deviation:g}, kept", deviation=deviation, read=read)


def noisy(deviation: float) -> Target:
    """Noise drawn anew in every round, of a size that nobody accounted for."""
    attack.require_deviation(deviation)

    def read(group: Group, keys: KeyTree) -> Tables:
        early, late = _noise(keys, deviation)
        before, after = _counts(group)
        return _sum(before, early), _sum(after, late)

    return attack.Target(title=f"noise of {deviation:g}", deviation=deviation, read=read)


def released(horizon: int, model: str) -> Target:
    """A release of this package: resolved from a plan, with the guarantee that it states."""
    plan = plan_of(horizon, model)
    release, mechanism = attack.resolved(plan)

    def read(group: Group, keys: KeyTree) -> Tables:
        lived = exact_rounds(plan, (release,), group.history(plan), keys)
        before, after = (
            {
                figure.key: float(figure.value)
                for figure in mechanism.release(
                    round_, lived[round_ - 1].totals[_RELEASE], keys
                ).figures()
                if figure.value is not None
            }
            for round_ in (group.round - 1, group.round)
        )
        return before, after

    return attack.Target(
        title="histogram",
        model=model,
        factor=mechanism.factor.name,
        deviation=deviation_of(mechanism),
        cap=min(1.0, (1 + delta_of(group_losses(mechanism.cost(), _UNITS), 0)) / 2),
        read=read,
    )


def plan_of(horizon: int, model: str) -> Plan:
    """A plan that publishes how many answer what, at epsilon 1."""
    return attack.plan_of(
        model,
        stream={"round": "1d", "horizon": horizon},
        columns={"answer": {"type": "category", "values": list(ANSWERS)}},
        release={_RELEASE: {"kind": "histogram", "by": "answer"}},
    )


def guessed(tables: Tables) -> str:
    """The answer whose number fell most."""
    before, after = tables
    return max(ANSWERS, key=lambda answer: before[answer] - after[answer])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the attack found out.

    Attributes:
        target: Attacked.
        right: Answers guessed right.
        trials: Streams.
    """

    target: Target
    right: int
    trials: int

    @property
    def accuracy(self) -> float:
        """Share guessed right; chance has 1/2."""
        return self.right / self.trials


def attacked(target: Target, seed: Seed, size: Size) -> Found:
    """Attack so many streams."""
    right = 0
    for number in range(size.trials):
        own = seed.further("differencing", target.title, target.model, number)
        group = Group.drawn(own, size)
        right += guessed(target.read(group, own.keys(size.horizon, "stream"))) == group.secret
    return Found(target=target, right=right, trials=size.trials)


def targets(size: Size) -> list[Target]:
    """Exact counts, kept noise, too little noise, and the releases of this package."""
    return [
        exact(),
        kept(max(size.deviations)),
        *map(noisy, size.deviations),
        released(size.horizon, "zcdp"),
        released(size.horizon, "pure"),
    ]


def audit(seed: Seed, size: Size, progress: Callable[[str], None] = lambda _: None) -> list[Row]:
    """A row for every target; exact counts, kept noise and the least noise must be read."""
    rows = []
    for number, target in enumerate(targets(size)):
        progress(target.title)
        rows.append(row(attacked(target, seed, size), size, must=number < _MUST))
    return rows


def row(found: Found, size: Size, *, must: bool) -> Row:
    """The outcome as a row; `must` for what the attack has to read, or it is blind."""
    target = found.target
    return Row(
        mechanism=target.title,
        model=target.model,
        factor=target.factor,
        test="difference of two rounds",
        claim=claim_of(target.cap, "right"),
        measured=f"{found.accuracy:.1%} of {found.trials:,} answers read",
        confidence=1 - MISS,
        verdict=_verdict(found, must=must),
        details={
            "accuracy": found.accuracy,
            "trials": found.trials,
            "chance": 0.5,
            "deviation": target.deviation,
            "cap": target.cap,
            "people": size.people,
            "horizon": size.horizon,
        },
    )


def _verdict(found: Found, *, must: bool) -> Verdict:
    cap = found.target.cap
    beyond = cap is not None and found.right > most_by_chance(found.trials, cap)
    return verdict_of(found.accuracy, capped=cap is not None, beyond=beyond, must=must)


def _counts(group: Group) -> Tables:
    before = {answer: float(group.answers.count(answer)) for answer in ANSWERS}
    after = {answer: float(group.answers[1:].count(answer)) for answer in ANSWERS}
    return before, after


def _noise(keys: KeyTree, deviation: float) -> Tables:
    """Two tables of independent noise, in quarters so that little noise can be had too."""
    drawn = attack.unaccounted(keys, _RELEASE, (Fraction(deviation) * 4) ** 2, 4) / 4
    early, late = drawn[:2].tolist(), drawn[2:].tolist()
    return dict(zip(ANSWERS, early, strict=True)), dict(zip(ANSWERS, late, strict=True))


def _sum(table: Mapping[str, float], noise: Mapping[str, float]) -> dict[str, float]:
    return {answer: number + noise[answer] for answer, number in table.items()}
