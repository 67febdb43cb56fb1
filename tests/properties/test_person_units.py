"""A person unit costs what is charged, by brute force over all pairs of neighbouring streams.

Two streams are neighbours when one lacks the records that one person adds in one round. Everything
a pair goes through is the real thing: the bound on a person, the rules of lives, the totals of
every release, the resolved charge. Only the ledger is replaced by a dictionary. The horizons are
small enough for the draws of a factor to be determined by the noise of all rounds, so the shift
that hides a difference is unique, and its norm is exact and no matter of a proof.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Literal

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.engine.close import bound_of
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.engine.totals import Totals, add_into, difference
from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.mechanisms.calibrated import losses_of
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.process import NoiseProcess
from retrodp.plan.plan import Plan
from retrodp.privacy.loss import PrivacyLoss, PureLoss, total_rho
from retrodp.stream import lives
from retrodp.stream.bounding import within_bound
from retrodp.stream.update import Op, QueuedUpdate, Record
from tests.noise.test_factors import weights

Matrix = NDArray[np.float64]
Model = Literal["zcdp", "pure"]

FACTORS = ("haar", "binary", "delannoy")
MODELS: tuple[Model, ...] = ("zcdp", "pure")
KEY = b"k" * 32
LARGEST_AMOUNT = 40  # in steps of 0.5
WINDOW = 2
AMOUNTS: defaultdict[str, int] = defaultdict(lambda: 1, money=LARGEST_AMOUNT)
SCALARS = ("lines", "by_country", "money")
PARTITIONS = ("by_product", "by_both")

PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = {horizon}
unit = "person_round"
person = "who"
max_records = {records}
{per_bin}

[columns]
who = {{ type = "text", nullable = true }}
product = "text"
country = {{ type = "category", values = ["DE", "FR"] }}
amount = {{ type = "number", min = -5, max = 20, step = 0.5 }}

[privacy]
model = "{model}"
epsilon = 100
delta = 1e-3

[release.lines]
kind = "count"
factor = "{factor}"
[release.money]
kind = "sum"
of = "amount"
factor = "{factor}"
[release.by_country]
kind = "histogram"
by = "country"
factor = "{factor}"
[release.by_product]
kind = "histogram"
by = "product"
factor = "{factor}"
[release.by_both]
kind = "histogram"
by = ["country", "product"]
factor = "{factor}"
[release.recent]
kind = "count"
window = "{window}d"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the plan says about a person."""

    horizon: int
    records: int
    per_bin: int | None

    def __str__(self) -> str:
        return f"T{self.horizon}-k{self.records}-m{self.per_bin}"

    def plan(self, factor: str = "haar", model: Model = "zcdp") -> Plan:
        return _plan(self, factor, model)

    def releases(self, factor: str = "haar", model: Model = "zcdp") -> tuple[CompiledRelease, ...]:
        return _compiled(self, factor, model)


@cache
def _plan(setting: Setting, factor: str, model: Model) -> Plan:
    bound = f'max_per_bin = {{ by = ["product"], max = {setting.per_bin} }}'
    return Plan.loads(
        PLAN.format(
            horizon=setting.horizon,
            records=setting.records,
            per_bin="" if setting.per_bin is None else bound,
            factor=factor,
            model=model,
            window=min(WINDOW, setting.horizon),
        )
    )


@cache
def _compiled(setting: Setting, factor: str, model: Model) -> tuple[CompiledRelease, ...]:
    plan = setting.plan(factor, model)
    return compile_plan(plan, resolve(plan))


# The streams.

Unit = tuple[tuple[int, ...], ...]
"""A person's records of one round: for each product the rounds in which its lives end."""


def units(start: int, horizon: int, ids: int) -> list[Unit]:
    """All ways in which so many records of one round may fall into products and end.

    Products are alike, so of two units that differ in their names alone one stands for both.
    """
    ends = range(start + 1, horizon + 2)
    choices = combinations_with_replacement([(p, end) for p in range(ids) for end in ends], ids)
    found: set[Unit] = set()
    for chosen in choices:
        of_product: defaultdict[int, list[int]] = defaultdict(list)
        for product, end in chosen:
            of_product[product].append(end)
        found.add(tuple(sorted(tuple(sorted(of)) for of in of_product.values())))
    return sorted(found)


def all_units(setting: Setting, most: int) -> Iterator[tuple[int, Unit]]:
    """Every start and unit of 1 to `most` records that arrive."""
    for start in range(1, setting.horizon + 1):
        for ids in range(1, most + 1):
            for unit in units(start, setting.horizon, ids):
                yield start, unit


def update(op: Op, id_: str, *, space: str, product: str = "", **more: object) -> QueuedUpdate:
    row = (space or None, product, "DE", more.get("amount", LARGEST_AMOUNT))
    payload = b"" if op == Op.DELETE else msgspec.msgpack.encode(row)
    stamp = int(str(more.get("stamp", 0)))
    return QueuedUpdate(space, id_, 0, op == Op.ADD, payload, stamp, int(op), space or None)


Stream = list[list[QueuedUpdate]]


def stream_of(start: int, unit: Unit, horizon: int) -> Stream:
    """The person's updates beside those of somebody else who buys the same things."""
    rounds: Stream = [[] for _ in range(horizon)]
    rounds[0].append(update(Op.ADD, "0", space="other", product="product0", stamp=1))
    rounds[start - 1].append(
        update(Op.ADD, "1", space="other", product="product0", stamp=start, amount=-1)
    )
    number = 0
    for product, ends in enumerate(unit):
        for end in ends:
            id_, number = f"{number}", number + 1
            added = update(Op.ADD, id_, space="she", product=f"product{product}", stamp=start)
            rounds[start - 1].append(added)
            if end <= horizon:
                rounds[end - 1].append(update(Op.DELETE, id_, space="she"))
    return rounds


def without(stream: Stream, start: int) -> Stream:
    """The neighbour: her additions of the round never arrived; her later deletions did."""
    left = [one for one in stream[start - 1] if one.space != "she" or one.op == Op.DELETE]
    return [*stream[: start - 1], left, *stream[start:]]


def totals_by_round(setting: Setting, stream: Stream) -> list[Totals]:
    """Exact totals after every round, as a close makes them."""
    plan, releases = setting.plan(), setting.releases()
    names = [column.name for column in plan.columns]
    bound = bound_of(plan)
    running: dict[tuple[str, str], Record] = {}
    totals: Totals = {release.name: {} for release in releases}
    after: list[Totals] = []
    for round_, updates in enumerate(stream, 1):
        kept = within_bound(updates, bound, key=KEY).kept
        changes = lives.apply_round(running, kept)
        before = list(running.values())
        moves = difference(
            releases,
            names,
            round_,
            ended=changes.ended,
            begun=changes.begun,
            with_stamp=lambda stamp, held=before: [  # type: ignore[misc]
                record for record in held if record.stamp == stamp
            ],
        )
        for record in changes.ended:
            del running[record.space, record.id]
        running |= {(record.space, record.id): record for record in changes.begun}
        for name, move in moves.items():
            add_into(totals[name], move)
        after.append({name: dict(of_label) for name, of_label in totals.items()})
    return after


Differences = dict[str, Matrix]
"""By release: how far the totals of each pair differ, shape (pairs, horizon, labels)."""


def compared(one: Sequence[Totals], two: Sequence[Totals], release: str) -> Matrix:
    labels = sorted({label for totals in (*one, *two) for label in totals[release]})
    return np.array(
        [
            [mine[release].get(label, 0) - yours[release].get(label, 0) for label in labels]
            for mine, yours in zip(one, two, strict=True)
        ],
        dtype=float,
    ).reshape(len(one), -1)


@cache
def differences(setting: Setting, most: int) -> Differences:
    """All pairs in which she adds 1 to `most` records, also more than the bound lets in."""
    found: defaultdict[str, list[Matrix]] = defaultdict(list)
    for start, unit in all_units(setting, most):
        stream = stream_of(start, unit, setting.horizon)
        one = totals_by_round(setting, stream)
        two = totals_by_round(setting, without(stream, start))
        for release in one[0]:
            found[release].append(compared(one, two, release))
    return {release: stacked(pairs) for release, pairs in found.items()}


def stacked(pairs: Sequence[Matrix]) -> Matrix:
    """The pairs as one array; labels that a pair does not touch differ by nothing."""
    labels = max(pair.shape[1] for pair in pairs)
    return np.stack([np.pad(pair, ((0, 0), (0, labels - pair.shape[1]))) for pair in pairs])


# What a difference costs, and what is charged.


@dataclass(frozen=True, slots=True)
class Cost:
    """Norms of the shift of the draws that hides a difference."""

    l1: int
    l2_squared: int


def named(setting: Setting, name: str, factor: str = "haar") -> CompiledRelease:
    (release,) = [one for one in setting.releases(factor) if one.name == name]
    return release


def noise_of(release: CompiledRelease) -> NoiseProcess:
    process = release.mechanism.noise.process  # type: ignore[union-attr]
    assert isinstance(process, NoiseProcess)
    return process


def cost_of(process: NoiseProcess, pairs: Matrix) -> Cost:
    """The dearest of the pairs."""
    used = weights(process.factor)[0].toarray() / process.factor.denominator
    rounds, nodes = used.shape
    assert rounds == nodes == np.linalg.matrix_rank(used)
    shifts = np.linalg.inv(used) @ pairs
    whole = np.rint(shifts).astype(np.int64)
    assert np.allclose(shifts, whole, rtol=0, atol=1e-6)
    return Cost(
        l1=int(np.abs(whole).sum(axis=(1, 2)).max()),
        l2_squared=int((whole**2).sum(axis=(1, 2)).max()),
    )


def charged(process: NoiseProcess, losses: Sequence[PrivacyLoss]) -> Fraction:
    """What the losses say that a unit may cost: a squared norm (Gaussian) or an L1 norm."""
    if process.law == "gaussian":
        return total_rho(losses) * 2 * process.scale
    pure = [loss.epsilon for loss in losses if isinstance(loss, PureLoss)]
    assert len(pure) == len(losses)
    return sum(pure, Fraction(0)) * process.scale


def spent(process: NoiseProcess, cost: Cost) -> int:
    return cost.l2_squared if process.law == "gaussian" else cost.l1


SETTINGS = [
    Setting(horizon=7, records=3, per_bin=1),
    Setting(horizon=7, records=3, per_bin=2),
    Setting(horizon=3, records=4, per_bin=3),
    Setting(horizon=3, records=4, per_bin=None),
]


def costs(
    setting: Setting, factor: str, model: Model, pairs: Differences
) -> dict[str, tuple[int, Fraction]]:
    """For each release what the dearest pair costs, and what is charged."""
    return {
        release.name: (
            spent(noise_of(release), cost_of(noise_of(release), pairs[release.name])),
            charged(noise_of(release), release.mechanism.cost()),
        )
        for release in setting.releases(factor, model)
    }


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_dearest_pair_of_neighbours_costs_exactly_what_is_charged(
    setting: Setting, factor: str, model: Model
) -> None:
    found = costs(setting, factor, model, differences(setting, setting.records))
    assert found.keys() == {*SCALARS, *PARTITIONS, "recent"}
    assert all(most == declared for most, declared in found.values()), found


@pytest.mark.sweep
@pytest.mark.parametrize("horizon", range(1, 9))
@pytest.mark.parametrize("records", [2, 3, 4])
@pytest.mark.parametrize("per_bin", [1, 2, None])
def test_no_pair_of_any_small_horizon_costs_more_than_is_charged(
    horizon: int, records: int, per_bin: int | None
) -> None:
    setting = Setting(horizon=horizon, records=records, per_bin=per_bin)
    pairs = differences(setting, records)
    found = {
        (name, factor, model): cost
        for factor in FACTORS
        for model in MODELS
        for name, cost in costs(setting, factor, model, pairs).items()
    }
    differences.cache_clear()
    assert len(found) == 36
    assert all(most <= declared for most, declared in found.values()), found


@pytest.mark.parametrize(("horizon", "records", "per_bin"), [(5, 2, 1), (5, 2, None), (3, 3, 2)])
def test_a_person_who_adds_more_than_the_bound_costs_no_more(
    horizon: int, records: int, per_bin: int | None
) -> None:
    setting = Setting(horizon=horizon, records=records, per_bin=per_bin)
    found = costs(setting, "haar", "zcdp", differences(setting, records + 2))
    assert len(found) == 6
    assert all(most == declared for most, declared in found.values()), found


def test_twin_a_bound_that_is_not_enforced_costs_more() -> None:
    setting = Setting(horizon=5, records=2, per_bin=1)
    pairs = differences(Setting(horizon=5, records=3, per_bin=None), 3)  # what would get in
    found = costs(setting, "haar", "zcdp", pairs)
    assert all(most > declared for most, declared in found.values()), found


@pytest.mark.parametrize("factor", FACTORS)
def test_twin_the_square_root_is_too_little_where_bins_do_not_refine_the_bound(
    factor: str,
) -> None:
    """Attack 11: k records of k products fall into one country, one total, one upper node."""
    setting, k = SETTINGS[0], 3
    pairs = differences(setting, k)
    naive = {
        release.name: charged(
            noise_of(release), losses_of(noise_of(release), amount=AMOUNTS[name], split=(1,) * k)
        )
        for release in setting.releases(factor)
        for name in [release.name]
    }
    found = costs(setting, factor, "zcdp", pairs)
    ratios = {name: Fraction(most) / naive[name] for name, (most, _) in found.items()}
    assert ratios == dict.fromkeys((*SCALARS, "recent"), k) | dict.fromkeys(PARTITIONS, 1)


def test_twin_the_square_root_is_too_little_where_no_bin_is_bounded() -> None:
    setting, k = SETTINGS[3], 4
    pairs = differences(setting, k)
    process = noise_of(named(setting, "by_product"))
    naive = charged(process, losses_of(process, amount=1, split=(1,) * k))
    assert cost_of(process, pairs["by_product"]).l2_squared == k * naive


def test_a_declared_number_of_rounds_changes_nothing_of_the_charge() -> None:
    setting = SETTINGS[0]
    one_round = setting.plan()
    person = one_round.text.replace('"person_round"', '"person"\nmax_rounds = 12')
    plan = Plan.loads(person)
    assert plan.stream.max_rounds == 12
    charges = [release.mechanism.cost() for release in compile_plan(plan, resolve(plan))]
    assert charges == [release.mechanism.cost() for release in setting.releases()]


# Attack 10: rows without a person.


SHY = Setting(horizon=3, records=1, per_bin=None)


def lost_without(id_: str, *, space: str) -> Matrix:
    """What one stranger's record of round 2 makes of the products' counts; all end in round 3."""

    def stream(ids: str) -> Stream:
        added = [update(Op.ADD, one, space=space, product=one, stamp=2) for one in ids]
        return [[], added, [update(Op.DELETE, one, space=space) for one in "xyz"]]

    one = totals_by_round(SHY, stream("xyz"))
    return compared(one, totals_by_round(SHY, stream("xyz".replace(id_, ""))), "by_product")


def test_strangers_do_not_decide_about_each_other() -> None:
    """Each stranger's record is in, and moves one bin by one."""
    release = named(SHY, "by_product")
    moved = [lost_without(id_, space="") for id_ in "xyz"]
    assert [np.abs(one).sum() for one in moved] == [1, 1, 1]
    most = cost_of(noise_of(release), stacked(moved)).l2_squared
    assert most == charged(noise_of(release), release.mechanism.cost())


def test_twin_null_as_one_person_couples_strangers() -> None:
    """The stranger who is kept leaves, another's record comes in: two bins move for one record."""
    release = named(SHY, "by_product")
    moved = [lost_without(id_, space="null") for id_ in "xyz"]
    assert sorted(np.abs(one).sum() for one in moved) == [0, 0, 2]
    most = cost_of(noise_of(release), stacked(moved)).l2_squared
    assert most == 2 * charged(noise_of(release), release.mechanism.cost())


# Attack 12: the threshold of a sparse histogram.


@dataclass(frozen=True, slots=True)
class Sparse:
    """A counter whose every round is a sum of equal draws, with the exact law of its noise."""

    process: NoiseProcess

    @classmethod
    def of(cls, factor: str, law: str, split: tuple[int, ...]) -> Sparse:
        chosen = choose_factor(factor, horizon=8, law=law)
        if law == "gaussian":
            return cls(gaussian_process(chosen, rho=Fraction(1, 8), amount=1, split=split))
        return cls(laplace_process(chosen, epsilon=Fraction(1), amount=1, split=split))

    def tail(self, round_: int, least: int) -> float:
        """P[noise of the round >= least], from the law itself."""
        tails = _tails(self.process)[len(self.process.factor.nodes(round_))]
        position = len(tails) // 2 + least
        return 1.0 if position < 0 else float(tails[position])

    def crossings(self, threshold: int, split: Sequence[int]) -> float:
        """Expected number of crossings of bins that only this unit fills."""
        rounds = range(1, self.process.factor.horizon + 1)
        return sum(self.tail(round_, threshold - m) for round_ in rounds for m in split)

    def probability(self, threshold: int, split: Sequence[int]) -> float:
        """Probability that some bin crosses in the likeliest round: exact, bins are independent."""
        rounds = range(1, self.process.factor.horizon + 1)
        return max(
            1 - float(np.prod([1 - self.tail(round_, threshold - m) for m in split]))
            for round_ in rounds
        )


@cache
def _tails(process: NoiseProcess) -> dict[int, Matrix]:
    """Tails of sums of 1, 2, ... draws, over values -reach..reach of growing reach."""
    scale = float(process.scale)
    reach = int(40 * (scale**0.5 if process.law == "gaussian" else scale))
    values = np.arange(-reach, reach + 1, dtype=float)
    gaussian = process.law == "gaussian"
    law = np.exp(-(values**2) / (2 * scale) if gaussian else -np.abs(values) / scale)
    law /= law.sum()
    assert process.factor.denominator == 1
    found, total = {}, np.ones(1)
    for draws in range(1, 5):
        total = np.convolve(total, law)
        found[draws] = np.cumsum(total[::-1])[::-1]
    return found


def splits(records: int, most: int) -> Iterator[tuple[int, ...]]:
    """All ways to put so many records into bins, at most so many in each."""
    if not records:
        yield ()
    for first in range(1, min(records, most) + 1):
        for rest in splits(records - first, first):
            yield (first, *rest)


DELTA = Fraction(1, 10**6)
LAWS = [("binary", "gaussian"), ("delannoy", "laplace")]


@pytest.mark.parametrize(("records", "per_bin"), [(1, 1), (6, 1), (6, 3), (6, 6), (50, 1)])
@pytest.mark.parametrize(("factor", "law"), LAWS)
def test_no_split_of_a_persons_records_crosses_more_often_than_delta(
    factor: str, law: str, records: int, per_bin: int
) -> None:
    dearest = (per_bin,) * (records // per_bin)
    sparse = Sparse.of(factor, law, dearest)
    threshold = threshold_for(sparse.process, delta=DELTA, records=records, per_bin=per_bin)
    ways = list(splits(records, per_bin))
    assert dearest in ways
    assert max(sparse.crossings(threshold, split) for split in ways) <= DELTA
    # And it is the least such threshold, but for the certified slack of the tails.
    assert max(sparse.crossings(threshold - 2, split) for split in ways) > DELTA


@pytest.mark.parametrize(("factor", "law"), LAWS)
def test_twin_a_records_threshold_lets_a_persons_bins_cross(factor: str, law: str) -> None:
    """With the right noise, 50 bins of one record cross 50 times as often."""
    split = (1,) * 50
    sparse = Sparse.of(factor, law, split)
    threshold = threshold_for(sparse.process, delta=DELTA, records=1)
    assert sparse.crossings(threshold, split) > 45 * DELTA
    assert sparse.probability(threshold, split) > 15 * DELTA


@pytest.mark.parametrize(("factor", "law"), LAWS)
def test_twin_a_records_noise_and_threshold_let_a_persons_bin_cross(factor: str, law: str) -> None:
    """16 records in one bin stand 15 steps nearer to the threshold."""
    sparse = Sparse.of(factor, law, (1,))
    threshold = threshold_for(sparse.process, delta=DELTA, records=1)
    assert sparse.crossings(threshold, (16,)) > 450 * DELTA
    assert sparse.probability(threshold, (16,)) > 150 * DELTA


def test_the_threshold_of_a_plan_covers_the_persons_records() -> None:
    """What is resolved is the threshold for k records, not for one."""
    setting = Setting(horizon=8, records=6, per_bin=1)
    plan = setting.plan("binary")
    entry = {one["name"]: one for one in resolve(plan).releases}["by_product"]
    sparse = Sparse(noise_of(named(setting, "by_product", "binary")))
    allowed = Fraction(entry["threshold_delta"])
    found = sparse.crossings(entry["threshold"], (1,) * 6)
    assert found <= allowed < sparse.crossings(entry["threshold"] - 2, (1,) * 6)
