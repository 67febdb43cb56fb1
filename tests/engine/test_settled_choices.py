"""What was decided when a plan was resolved stands in it, and another version may not decide anew."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from retrodp.engine import ordered
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import StoreCorruptError
from retrodp.mechanisms import mean
from retrodp.mechanisms.cdf import CumulativeCounts
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.tails import summed_tail, upper_tail
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.statistics import moments
from tests.support.plans import plan

RELEASES = """
[release.amounts]
kind = "cdf"
of = "amount"
edges = [0, 5, 10]
[release.mean_money]
kind = "mean"
of = "amount"
[release.moments]
kind = "gram"
of = ["amount"]
norm = 20
"""


def drawn_up() -> tuple[Plan, ResolvedPlan]:
    own = plan(releases=RELEASES, epsilon=1)
    return own, resolve(own)


def entry(resolved: ResolvedPlan, name: str) -> Any:
    return resolved.release(name)


def test_tree_or_counters_grain_and_step_are_stored() -> None:
    _, resolved = drawn_up()
    assert entry(resolved, "amounts")["flat"] is True
    assert entry(resolved, "moments")["grain"] == 1
    assert entry(resolved, "mean_money")["step"] == "1/200"


def test_a_version_that_would_decide_otherwise_runs_on_what_was_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, resolved = drawn_up()
    monkeypatch.setattr(ordered, "is_flat", lambda *_: False)
    mechanism: Any = compile_plan(own, resolved)[0].mechanism
    assert isinstance(mechanism, CumulativeCounts)
    assert mechanism.flat is True


def test_a_version_that_would_publish_on_another_grid_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, resolved = drawn_up()
    compile_plan(own, resolved)
    with monkeypatch.context() as patched:
        patched.setattr(mean, "FINER", 10)
        with pytest.raises(StoreCorruptError, match="mean_money another step"):
            compile_plan(own, resolved)
    with monkeypatch.context() as patched:
        patched.setattr(moments, "LARGEST_PRODUCT", 1)
        with pytest.raises(StoreCorruptError, match="moments another grain"):
            compile_plan(own, resolved)


def sparse(model: str, *, horizon: int, delta: str, factor: str = "auto") -> ResolvedPlan:
    release = f'[release.by]\nkind = "histogram"\nby = "product"\nfactor = "{factor}"'
    text = plan(releases=release, epsilon=1, horizon=horizon).text
    text = text.replace('model = "zcdp"', f'model = "{model}"').replace("1e-3", delta)
    return resolve(Plan.loads(text))


@pytest.mark.parametrize(
    ("model", "horizon", "delta", "tau"),
    [
        ("pure", 365, "1e-6", 140.5),
        ("pure", 365, "1e-9", 177.5),
        ("pure", 4096, "1e-6", 239),
        ("pure", 4096, "1e-9", 292),
        ("zcdp", 365, "1e-6", 106.5),
        ("zcdp", 365, "1e-9", 161.9),
        ("zcdp", 4096, "1e-6", 152),
        ("zcdp", 4096, "1e-9", 228),
    ],
)
def test_a_plan_resolves_to_the_thresholds_of_the_table(
    model: str, horizon: int, delta: str, tau: float
) -> None:
    """To 2 per cent, conversion and collisions included; and most rounds need less."""
    found = entry(sparse(model, horizon=horizon, delta=delta), "by")
    assert found["threshold"] == max(found["thresholds"]) == pytest.approx(tau, rel=0.02)
    mean_of_all = sum(found["thresholds"]) / horizon
    assert mean_of_all < 0.975 * found["threshold"]


def test_a_tree_of_fewer_levels_lowers_the_threshold_of_pure_epsilon() -> None:
    found = entry(sparse("pure", horizon=365, delta="1e-6"), "by")
    factor = found["noise"]["process"]["factor"]
    assert (factor["w"], factor["z"]) == (14, 2)
    count = plan("ids", "pure", releases='[release.n]\nkind = "count"', horizon=365, epsilon=1)
    whole = entry(resolve(count), "n")["noise"]["process"]["factor"]
    assert (whole["w"], whole["z"]) == (6, 3)
    haar = entry(sparse("pure", horizon=365, delta="1e-6", factor="binary"), "by")
    assert haar["noise"]["process"]["factor"]["factor"] == "binary"


@pytest.mark.parametrize("model", ["zcdp", "pure"])
def test_thresholds_of_all_rounds_cost_delta_together_and_none_is_above_the_uniform_one(
    model: str,
) -> None:
    """Summed round by round, by another function than the one that chose them."""
    found = entry(sparse(model, horizon=100, delta="1e-6"), "by")
    own = plan(releases='[release.by]\nkind = "histogram"\nby = "product"', epsilon=1, horizon=100)
    text = own.text.replace('model = "zcdp"', f'model = "{model}"').replace("1e-3", "1e-6")
    resolved = resolve(Plan.loads(text))
    (compiled,) = compile_plan(Plan.loads(text), resolved)
    mechanism: Any = compiled.mechanism
    assert isinstance(mechanism, SparseHistogram)
    process, thresholds = mechanism.noise.process, mechanism.thresholds
    delta = float(Fraction(found["threshold_delta"]))
    spent = sum(upper_tail(process, n, tau - 1) for n, tau in enumerate(thresholds, start=1))
    assert spent <= delta
    assert spent > 0.8 * delta
    uniform = threshold_for(process, delta=delta, records=1)
    assert max(thresholds) <= uniform
    assert min(thresholds) < 0.8 * uniform
    twin = [tau - 1 for tau in thresholds]
    less = sum(upper_tail(process, n, tau - 1) for n, tau in enumerate(twin, start=1))
    assert less > delta  # one record less everywhere would not do
    assert summed_tail(process, uniform - 1) <= delta


def test_thresholds_of_several_records_cover_the_worst_split() -> None:
    releases = '[release.by]\nkind = "histogram"\nby = "product"'
    own = plan("persons", releases=releases, epsilon=1, horizon=60)
    (compiled,) = compile_plan(own, resolve(own))
    mechanism: Any = compiled.mechanism
    process, thresholds = mechanism.noise.process, mechanism.thresholds
    delta = float(Fraction(entry(resolve(own), "by")["threshold_delta"]))

    def crossing(in_bin: int) -> float:
        return sum(upper_tail(process, n, tau - in_bin) for n, tau in enumerate(thresholds, 1))

    splits = [3 * crossing(1), crossing(1) + crossing(2)]  # three records, two in one bin
    assert max(splits) <= delta
