"""Dense noise from a budget: all of it spent, least error, refused where it does not fit."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import (
    MOST_DENSE_AMOUNT,
    MOST_DENSE_COORDINATES,
    MOST_DENSE_ROUNDS,
    calibrated,
    choose_any_factor,
    choose_factor,
    gaussian_process,
    why_not_dense,
    worst_error,
)
from retrodp.mechanisms.calibrated import CalibratedNoise, losses_of
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.mechanisms.histogram import Histogram
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.dense import DenseFactor
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import PureDP, zCDP
from retrodp.privacy.loss import GaussianNorm, total_rho
from tests.support.answers import values_of

HORIZON = 20
FITS: dict[str, Any] = {"horizon": HORIZON, "law": "gaussian"}


@pytest.mark.parametrize("factor", ["dense", "sqrt"])
@pytest.mark.parametrize("rho", ["1/3", "1e-4", "7"])
def test_noise_spends_its_budget_but_for_the_rounding_of_its_variance(
    factor: str, rho: str
) -> None:
    noise = calibrated("x", horizon=HORIZON, budget=zCDP(rho), factor=factor, amount=3)
    spent = total_rho(noise.losses())
    assert Fraction(rho) * (1 - Fraction(1, 10**6)) <= spent <= Fraction(rho)


@pytest.mark.parametrize("split", [(1,), (1, 1, 1), (3,), (2, 1)])
def test_the_loss_of_a_split_is_the_sum_of_its_squares(split: tuple[int, ...]) -> None:
    factor = choose_any_factor("dense", **FITS)
    process = gaussian_process(factor, rho=Fraction(1, 2), amount=5, split=split)
    (loss,) = losses_of(process, amount=5, split=split)
    assert isinstance(loss, GaussianNorm)
    squares = factor.window_l2sq * 25 * sum(n * n for n in split)
    assert loss.norm_squared == squares
    assert loss.coordinates == HORIZON * sum(split)
    assert loss.rho == Fraction(squares) / (2 * process.scale) <= Fraction(1, 2)


def test_auto_takes_the_dense_factor_where_it_is_admitted_and_only_there() -> None:
    assert choose_factor("auto", **FITS).name == "haar"
    assert choose_any_factor("auto", **FITS).name == "dense"
    assert choose_any_factor("auto", horizon=HORIZON, law="laplace").name == "delannoy"
    assert choose_any_factor("haar", **FITS).name == "haar"
    assert calibrated("x", horizon=HORIZON, budget=zCDP(1)).process.factor.name == "haar"


@pytest.mark.parametrize("window", [None, 1, 2, 5, 19, 20])
def test_auto_never_errs_more_than_any_other_factor(window: int | None) -> None:
    chosen = choose_any_factor("auto", **FITS, window=window)
    names = ["dense", "sqrt", "haar", "binary", "delannoy"]
    others = [choose_any_factor(name, **FITS, window=window) for name in names]
    others.append(choose_factor("auto", **FITS, window=window))
    least = min(worst_error(factor, "gaussian") for factor in others)
    assert worst_error(chosen, "gaussian") == least
    if window == 1:
        assert chosen.name == "fresh"


def test_a_short_window_is_charged_less() -> None:
    errors = [
        math.sqrt(worst_error(choose_any_factor("dense", **FITS, window=window), "gaussian"))
        for window in (1, 2, 5, 20)
    ]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(1, rel=1e-3)
    assert errors[2] < math.sqrt(5)  # independent noise every round


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"law": "laplace"}, "zcdp"),
    ({"horizon": MOST_DENSE_ROUNDS + 1}, "1000"),
    ({"coordinates": MOST_DENSE_COORDINATES + 1}, "100000"),
    ({"amount": MOST_DENSE_AMOUNT + 1}, "1000000"),
]


@pytest.mark.parametrize(("change", "says"), UNFIT)
def test_what_a_dense_factor_does_not_fit_is_named_and_never_taken_by_auto(
    change: dict[str, Any], says: str
) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        choose_any_factor("dense", **FITS | change)
    assert caught.value.exit_code == 2
    assert choose_any_factor("auto", **FITS | change).name in {"haar", "delannoy"}


def test_what_fits_just_so_is_taken() -> None:
    amount, coordinates = MOST_DENSE_AMOUNT, MOST_DENSE_COORDINATES
    assert (
        why_not_dense(
            horizon=MOST_DENSE_ROUNDS, law="gaussian", coordinates=coordinates, amount=amount
        )
        is None
    )
    factor = choose_any_factor("dense", **FITS, coordinates=coordinates, amount=amount)
    process = gaussian_process(factor, rho=Fraction(1, 10**4), amount=amount)
    assert isinstance(process, DenseProcess)


def test_noise_too_large_for_its_grid_names_the_way_out() -> None:
    factor = choose_any_factor("dense", **FITS)
    with pytest.raises(PlanError, match="haar"):
        gaussian_process(factor, rho=Fraction(1, 10**6), amount=10**9)


def test_pure_privacy_has_no_dense_factor() -> None:
    with pytest.raises(PlanError, match="Unknown factor"):
        calibrated("x", horizon=HORIZON, budget=PureDP(1), factor="dense")


@pytest.mark.parametrize("factor", ["dense", "sqrt"])
def test_the_guarantee_covers_streams_that_react(factor: str) -> None:
    noise = calibrated("x", horizon=HORIZON, budget=zCDP(1), factor=factor)
    assert adaptive_guarantee(noise.process) == "yes"
    haar = calibrated("x", horizon=HORIZON, budget=zCDP(1), factor="haar")
    assert adaptive_guarantee(haar.process) == "integer-order RDP"


def test_calibrated_noise_survives_json() -> None:
    noise = calibrated("x", horizon=HORIZON, budget=zCDP("1/7"), factor="dense")
    again = CalibratedNoise.from_spec(json.loads(json.dumps(noise.spec())))
    assert again == noise
    assert again.losses() == noise.losses()


def test_a_stored_root_that_was_changed_shows_in_the_losses() -> None:
    """The sensitivity is worked out from the root that is read, whatever was calibrated."""
    noise = calibrated("x", horizon=8, budget=zCDP("1/7"), factor="dense")
    factor = noise.process.factor
    assert isinstance(factor, DenseFactor)
    matrix = factor.matrix()
    matrix[6, 0] = 4000
    forged = DenseFactor.of_matrix("dense", matrix.astype(float), window=8)
    document: dict[str, Any] = json.loads(json.dumps(noise.spec()))
    document["process"]["factor"] = forged.spec()
    read = CalibratedNoise.from_spec(document)
    assert total_rho(read.losses()) > Fraction(1, 7)


def test_the_threshold_of_dense_noise_is_lower_than_that_of_a_tree() -> None:
    def threshold(name: str) -> int:
        factor = choose_any_factor(name, horizon=60, law="gaussian")
        process = gaussian_process(factor, rho=Fraction(1, 50), amount=1)
        return threshold_for(process, delta=Fraction(1, 10**9), records=3, per_bin=2)

    assert threshold("dense") < threshold("haar") * 0.85


@pytest.mark.parametrize(("shrink", "holds"), [(1.0, True), (0.8, False)])
def test_intervals_hold_as_often_as_they_say(shrink: float, holds: bool) -> None:  # noqa: FBT001
    """0.95 of 3,000 bins, within 6.2 binomial deviations; intervals a fifth too narrow do not."""
    keys = KeyTree.from_root(b"a fixed key that tests use only!", b"store", HORIZON)
    bins = tuple(f"{number:04d}" for number in range(3000))
    histogram = Histogram(bins, horizon=HORIZON, budget=zCDP("1/200"), factor="dense")
    shares = []
    for round_ in (1, 7, HORIZON):
        answer = histogram.release(round_, {}, keys)
        inside = sum(abs(value) <= shrink * answer.half for value in values_of(answer))
        shares.append(inside / len(bins))
    margin = 6.2 * math.sqrt(0.95 * 0.05 / len(bins))
    assert (min(shares) > 0.95 - margin) is holds
    assert max(shares) < 0.98
