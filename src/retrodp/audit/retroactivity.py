"""Retroactivity: histories that unite are run through every mechanism and compared by bytes.

Promise: where a contract says exact, any difference of any byte from the meeting on accuses the
mechanism, and nothing else does: under one key equal bytes are equal laws (KKMNS definition 2.8).
One of the two histories is interrupted: its mechanisms are made anew at a round of the coins'
choice, as after a restart.

Where a contract promises less, marginal laws are compared over many keys (`twosample`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from retrodp.audit.coins import Seed
from retrodp.audit.compiled import COMPILED
from retrodp.audit.histories import Plant, Round, asked, exact_rounds
from retrodp.audit.memory import MEMORY_FAULTS
from retrodp.audit.pairs import Pair, flapping_pair, uniting_pair
from retrodp.audit.report import Row, Verdict
from retrodp.audit.subjects import (
    LASTING,
    MODELS,
    STREAMS,
    Filling,
    Model,
    Stream,
    fillings,
    fits,
    plan_of,
)
from retrodp.audit.twosample import TwoSample, two_sample
from retrodp.engine.compile import CompiledRelease, compile_plan, keyed
from retrodp.engine.resolve import resolve
from retrodp.engine.states import remembering
from retrodp.errors import VerificationError
from retrodp.mechanisms.contract import Mechanism, Retroactive
from retrodp.mechanisms.lived import Lived, lived
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan

HORIZON = 7
EPSILON = 300  # of no use in life: noise so small that bins of two records pass a threshold
DELTA = "1e-3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How long an audit of retroactivity searches.

    Attributes:
        pairs: Of each plan.
        controls: Most pairs tried for each planted fault.
        streams: Kinds of streams under each model.
    """

    pairs: int
    controls: int
    streams: Mapping[Model, Sequence[Stream]]


SMOKE = Size(pairs=3, controls=60, streams={"zcdp": ("ids",), "pure": STREAMS})
DEEP = Size(pairs=25, controls=200, streams=dict.fromkeys(MODELS, STREAMS))


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers that had to be equal are not.

    Attributes:
        release: Name in the plan.
        round: First round.
        meet: Round from which the histories agree.
    """

    release: str
    round: int
    meet: int


@dataclass(slots=True)
class Subject:
    """A plan under audit and what was found about each of its releases."""

    plan: Plan
    resolved: ResolvedPlan
    titles: Mapping[str, str]
    found: dict[str, Difference] = field(default_factory=dict)

    def compiled(self) -> tuple[CompiledRelease, ...]:
        """Releases made anew, as when a store is opened."""
        return compile_plan(self.plan, self.resolved)


def subject_of(
    tables: Sequence[Filling], *, model: Model, stream: Stream, epsilon: int = EPSILON
) -> Subject:
    """One plan with all these releases, r0, r1, ..."""
    titles = {f"r{number}": filling.title for number, filling in enumerate(tables)}
    plan = plan_of(
        {f"r{number}": filling.table for number, filling in enumerate(tables)},
        model=model,
        stream=stream,
        horizon=HORIZON,
        epsilon=epsilon,
        delta=DELTA,
    )
    return Subject(plan, resolve(plan), titles)


def differences(
    subject: Subject, pair: Pair, keys: KeyTree, *, restart: int, plant: Plant | None = None
) -> dict[str, Difference]:
    """First difference of every release from the meeting on.

    Args:
        subject: Releases to compare.
        pair: Uniting histories.
        keys: Shared by both.
        restart: Round before which the second history's mechanisms are made anew.
        plant: A fault put into every mechanism; it survives the restart, or it would be healed.

    Raises:
        VerificationError: The histories do not unite: the audit itself is wrong.
    """
    releases = keyed(subject.compiled(), keys)
    first, second = (
        exact_rounds(subject.plan, releases, history, keys) for history in (pair.one, pair.two)
    )
    after = slice(pair.meet - 1, None)
    if [lived.survivors for lived in first[after]] != [lived.survivors for lived in second[after]]:
        raise VerificationError("Two histories of the audit do not unite.", do="Report this.")
    one = _bytes(_made(subject, plant), first, keys)
    if plant is None:
        before = _made(subject, None)
        two = _bytes(before, second[: restart - 1], keys)
        two += _bytes(_restarted(subject, before), second, keys, start=restart)
    else:
        two = _bytes(_made(subject, plant), second, keys)
    found: dict[str, Difference] = {}
    for round_ in range(pair.meet, len(one) + 1):
        for name, answer in one[round_ - 1].items():
            if answer != two[round_ - 1][name]:
                found.setdefault(name, Difference(name, round_, pair.meet))
    return found


def _made(subject: Subject, plant: Plant | None) -> dict[str, Mechanism]:
    made = {release.name: lived(release.mechanism) for release in subject.compiled()}
    return made if plant is None else {name: plant(inner) for name, inner in made.items()}


def _restarted(subject: Subject, before: Mapping[str, Mechanism]) -> dict[str, Mechanism]:
    """Mechanisms made anew; those that remember find their states, as in a store."""
    made = _made(subject, None)
    for name, mechanism in made.items():
        if isinstance(mechanism, Lived):
            was = before[name]
            assert isinstance(was, Lived)
            mechanism.states = [*was.states]
    return made


def _bytes(
    mechanisms: Mapping[str, Mechanism], rounds: Sequence[Round], keys: KeyTree, *, start: int = 1
) -> list[dict[str, bytes]]:
    return [
        {
            name: asked(mechanism, round_, now, keys).to_bytes()
            for name, mechanism in mechanisms.items()
        }
        for round_, now in enumerate(rounds[start - 1 :], start=start)
    ]


def audit(
    seed: Seed,
    size: Size,
    progress: Callable[[str], None] = lambda _: None,
    *,
    chosen: Sequence[Filling],
) -> list[Row]:
    """Run the whole suite on these releases.

    Returns:
        A row for every release under every model (streams together), and one for every planted
        fault.
    """
    rows: list[Row] = []
    stateful: dict[str, Filling] = {}
    for model in MODELS:
        tables = [filling for filling in chosen if fits(filling, model)]
        # Without forward secrecy "auto" means another factor, so such releases have their own plan.
        # So have those of the compilers, whose epsilons are searched for at every step of the budget.
        compiled = [one for one in tables if one.title in COMPILED]
        plain = [one for one in tables if one.title not in COMPILED]
        parts = {
            "": [one for one in plain if one.table.get("factor") != LASTING],
            " compiled": compiled,
            " lasting": [one for one in tables if one.table.get("factor") == LASTING],
        }
        for name, part in parts.items():
            subjects = []
            for stream in size.streams[model] if part else ():
                progress(f"retroactivity, {model}{name}, {stream}")
                subject = subject_of(part, model=model, stream=stream)
                _search(subject, seed, size.pairs, label=f"{model}{name} {stream}")
                subjects.append(subject)
                found = {subject.titles[own.name] for own in remembering(subject.compiled())}
                stateful |= {one.title: one for one in part if one.title in found}
            rows += _rows(subjects, model, size.pairs)
    progress("retroactivity, releases that remember")
    rows += list(memories(seed, size.controls, [*stateful.values()]))
    progress("retroactivity, planted faults")
    rows += list(controls(seed, size.controls))
    return rows


def _search(subject: Subject, seed: Seed, pairs: int, *, label: str) -> None:
    for number in range(pairs):
        coins = seed.coins("pairs", label, number)
        pair = uniting_pair(subject.plan, coins)
        keys = seed.keys(HORIZON, "retroactivity", label, number)
        restart = coins.between(2, HORIZON)
        for name, difference in differences(subject, pair, keys, restart=restart).items():
            subject.found.setdefault(name, difference)


def _rows(subjects: Sequence[Subject], model: Model, pairs: int) -> Iterator[Row]:
    for name, title in subjects[0].titles.items() if subjects else ():
        release = next(one for one in subjects[0].compiled() if one.name == name)
        found = [subject.found[name] for subject in subjects if name in subject.found]
        measured = f"equal bytes in {pairs * len(subjects)} pairs"
        if found:
            measured = f"differs in round {found[0].round}, the histories met in {found[0].meet}"
        yield Row(
            mechanism=title,
            model=model,
            factor=release.mechanism.factor.name,
            test="uniting histories",
            claim=f"retroactive: {release.mechanism.retroactive}",
            measured=measured,
            confidence=1.0,
            verdict=verdict_on(release.mechanism.retroactive, differs=bool(found)),
            details={"pairs": pairs * len(subjects)},
        )


def memories(seed: Seed, most: int, tables: Sequence[Filling]) -> Iterator[Row]:
    """Releases that say they remember, shown to do so: the audit would see memory where there is.

    Args:
        seed: Of the pairs and keys.
        most: Pairs tried for each release, the first made for such releases.
        tables: Releases that keep a state; those that say "no" get a row.
    """
    for filling in tables:
        subject = subject_of([filling], model="zcdp", stream="ids", epsilon=1)
        (release,) = subject.compiled()
        if release.mechanism.retroactive != "no":
            continue
        shown = next((n for n in range(most) if _remembers(subject, seed, n)), None)
        yield Row(
            mechanism=filling.title,
            model="zcdp",
            factor=release.mechanism.factor.name,
            test="releases that remember",
            claim="retroactive: no",
            measured="not shown" if shown is None else f"differs in pair {shown}",
            confidence=1.0,
            verdict="missed" if shown is None else "as stated",
            details={"pairs": most if shown is None else shown},
        )


def _remembers(subject: Subject, seed: Seed, number: int) -> bool:
    coins = seed.coins("memories", number)
    pair = uniting_pair(subject.plan, coins) if number else flapping_pair(subject.plan, coins)
    keys = seed.keys(HORIZON, "memories", number)
    return bool(differences(subject, pair, keys, restart=2))


def verdict_on(promised: Retroactive, *, differs: bool) -> Verdict:
    """A difference accuses a release that promises to be exact, and no other."""
    if not differs:
        return "holds"
    return "accused" if promised == "exact" else "as stated"


CONTROL_TITLES = ("count, auto", "histogram by country, auto", "histogram by product, auto")


def controls(seed: Seed, pairs: int, faults: Mapping[str, Plant] = MEMORY_FAULTS) -> Iterator[Row]:
    """Every planted fault, hunted with the same pairs in three mechanisms until one catches it."""
    tables = [filling for filling in fillings() if filling.title in CONTROL_TITLES]
    subject = subject_of(tables, model="zcdp", stream="ids")
    for title, plant in faults.items():
        catching = next((n for n in range(1, pairs + 1) if _catches(subject, plant, seed, n)), None)
        yield Row(
            mechanism=title,
            model="zcdp",
            factor="haar",
            test="planted fault",
            claim="must be caught",
            measured=f"missed by {pairs} pairs" if catching is None else f"pair {catching}",
            confidence=1.0,
            verdict="missed" if catching is None else "caught",
            details={"pairs": pairs if catching is None else catching},
        )


def _catches(subject: Subject, plant: Plant, seed: Seed, number: int) -> bool:
    pair = uniting_pair(subject.plan, seed.coins("control pairs", number))
    keys = seed.keys(HORIZON, "control", number)
    return bool(differences(subject, pair, keys, restart=2, plant=plant))


def marginal(
    make: Callable[[], Mechanism],
    histories: tuple[Sequence[Round], Sequence[Round]],
    *,
    keys: Sequence[KeyTree],
    alpha: float,
    claimed: float = 0.0,
) -> TwoSample:
    """Compare the law of the last scalar answer of two histories, over many keys.

    Args:
        make: The mechanism, made anew for every key, so that what it remembers is the history's.
        histories: Rounds from the first on; equally many.
        keys: Two halves: the first for one history, the second for the other.
        alpha: Of the test.
        claimed: Distance that the contract allows.
    """
    half = len(keys) // 2
    one, two = (
        np.array([_last_value(make(), history, key) for key in some], dtype=np.int64)
        for history, some in zip(histories, (keys[:half], keys[half:]), strict=True)
    )
    return two_sample(one, two, alpha=alpha, claimed=claimed)


def _last_value(mechanism: Mechanism, history: Sequence[Round], keys: KeyTree) -> int:
    answers = [asked(mechanism, round_, now, keys) for round_, now in enumerate(history, start=1)]
    (value,) = answers[-1].values
    assert value is not None
    return value
