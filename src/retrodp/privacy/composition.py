"""Composition of privacy losses on one grid, pessimistic and accurate in the far tail.

Promise: `log_delta` is never below the logarithm of the exact delta of the parts it is given,
and close to it. Knows laws of losses, not where they come from.

**Spreading.** An atom of mass m at loss L between two points of the grid is split between them so
that both ``m`` and ``m exp(-L)`` are kept, that is, its probability under either neighbour. The
hockey-stick divergence is convex in the likelihood ratio, so the split pair dominates (Doroshenko
et al. 2022, "connect the dots"), and dominating pairs compose; the error is of second order in the
grid's step, where rounding losses up would be of first order and add over parts.

**Tilting.** With ``M = E exp(t L)`` over all parts and tilted masses g,
``delta = M exp(-t epsilon) sum over y = L - epsilon > 0 of g exp(-t y) (1 - exp(-y))``.
At the saddle point t the sum is neither small nor ill-conditioned, so a delta of 1e-30 is as
accurate as one of 1e-3 (Gopi, Lee, Wutschitz 2021 use no tilt and lose everything below 1e-15).

**What is added for certainty.** Masses carry the error bound of the FFT; tilted mass that was cut
or wraps around the circle, at most its Chernoff bound, counts in full at the peak of the weights;
epsilon is lowered, and the result raised, by more than all elementary rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.fft import irfft, rfft

from retrodp.privacy.conversion import log_peak
from retrodp.privacy.lattice import (
    LOST_NATS,
    Coarse,
    FloatArray,
    Law,
    coarse_law,
    fft_error,
    gaussian_law,
    response_law,
)
from retrodp.privacy.ratio import RatioLoss, greatest_loss, ratio_atoms, tilted_mean

GRID_POINTS = 2**15
COARSEST_TILTED_STEP = 100.0
NARROWEST = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a vector mechanism, grouped by what makes their losses one law.

    Attributes:
        fine: (variance, ((shift, count), ...)) per group of discrete Gaussian coordinates.
        coarse: The Gaussian that stands for all others, or None.
        pure: (epsilon, count) per group of pure mechanisms.
        rho: Zero-concentrated loss of all Gaussian parts, for the choice of the tilt.
        ratio: Rounds of which only the likelihood ratio is known.
        reverse: Whether a record is removed rather than added; all other parts are symmetric.
    """

    fine: tuple[tuple[Fraction, tuple[tuple[int, int], ...]], ...]
    coarse: Coarse | None
    pure: tuple[tuple[Fraction, int], ...]
    rho: float
    ratio: tuple[RatioLoss, ...] = ()
    reverse: bool = False


def log_delta(parts: Parts, epsilon: float) -> float:
    """Upper bound of the logarithm of delta at `epsilon` >= 0 of all parts together.

    Infinite where the grid would be useless: at an epsilon so many deviations out that delta is
    below any float.
    Minus infinity where no loss is above epsilon.
    Time: milliseconds per part.
    """
    if _greatest_loss(parts) <= epsilon:
        return -math.inf
    tilt = _saddle(parts, epsilon)
    laws = [gaussian_law(variance, dict(shifts), tilt) for variance, shifts in parts.fine]
    laws += [response_law(one, count, tilt) for one, count in parts.pure]
    laws += [_law_of_ratio(loss, tilt, reverse=parts.reverse) for loss in parts.ratio]
    if len(laws) == 1 and parts.coarse is None:
        (law,) = laws
        lowered = epsilon - 1e-12 * max(epsilon, law.centre)
        value = _tail(law.losses, law.masses, tilt=tilt, epsilon=lowered)
        value += law.lost * math.exp(log_peak(tilt))
        return law.log_moment - tilt * lowered + math.log(value or 5e-324)
    return _log_delta_on_grid(laws, parts.coarse, tilt=tilt, epsilon=epsilon)


def _greatest_loss(parts: Parts) -> float:
    """The largest loss there can be; infinite with Gaussian parts."""
    if parts.rho > 0:
        return math.inf
    most = sum(count * float(one) for one, count in parts.pure)
    return most + sum(greatest_loss(loss, reverse=parts.reverse) for loss in parts.ratio)


def _saddle(parts: Parts, epsilon: float) -> float:
    """Where Markov's bound is nearly least; any tilt above 0 would be valid."""
    from scipy.optimize import brentq  # noqa: PLC0415  takes a while to load

    pure = [(float(one), count) for one, count in parts.pure]

    def slope(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        mean = parts.rho * (2 * tilt + 1)
        mean += sum(count * one * math.tanh((tilt + 0.5) * one) for one, count in pure)
        mean += sum(tilted_mean(loss, tilt, reverse=parts.reverse) for loss in parts.ratio)
        return mean - epsilon - 1 / tilt - 1 / (tilt + 1)

    # Without Gaussian parts a coin is certain once tilt times its loss is large.
    least = -40.0
    coins = [one for one, _ in pure] + [
        greatest_loss(loss, reverse=parts.reverse) / loss.count for loss in parts.ratio
    ]
    greatest = 60.0 if parts.rho > 0 else math.log(1e9 / min(coins))
    if slope(greatest) <= 0:
        return math.exp(greatest)
    return math.exp(brentq(slope, least, greatest, xtol=1e-6))


def _law_of_ratio(loss: RatioLoss, tilt: float, *, reverse: bool) -> Law:
    atoms = ratio_atoms(loss, tilt, reverse=reverse)
    return Law(
        losses=atoms.losses,
        masses=atoms.masses,
        log_moment=atoms.log_moment,
        centre=atoms.centre,
        spread=atoms.spread,
        excess=0.0,
        lost=0.0,
    )


def _tail(losses: FloatArray, masses: FloatArray, *, tilt: float, epsilon: float) -> float:
    above = losses - epsilon
    chosen = above > 0
    gap = above[chosen]
    return float(np.dot(masses[chosen], np.exp(-tilt * gap) * -np.expm1(-gap)))


def _log_delta_on_grid(
    laws: Sequence[Law], coarse: Coarse | None, *, tilt: float, epsilon: float
) -> float:
    count = len(laws) + (coarse is not None)
    coarse_rho = 0.0 if coarse is None else coarse.rho
    centre = sum(law.centre for law in laws) + coarse_rho * (2 * tilt + 1)
    spread = sum(law.spread for law in laws) + 2 * coarse_rho
    excess = sum(law.excess for law in laws)
    half = math.sqrt(2 * spread * (LOST_NATS + excess))
    # A spread atom moves by less than one step per part, so that much room is left on either side.
    step = 2 * half / (GRID_POINTS - 2 * count - 4)
    if tilt * step > COARSEST_TILTED_STEP:
        return math.inf
    if coarse is not None:
        # Far narrower than a step it could not be resolved; a larger rho dominates.
        rho = max(coarse.rho, (NARROWEST * step) ** 2 / 2)
        widened = Coarse(rho=rho, log_factor=coarse.log_factor)
        laws = [*laws, coarse_law(widened, tilt, step)]
    spectrum = np.ones(GRID_POINTS // 2 + 1, dtype=np.complex128)
    masses_product = 1.0
    for law in laws:
        circle = _spread(law, tilt=tilt, step=step)
        masses_product *= max(1.0, float(circle.sum()))
        spectrum *= rfft(circle)
    masses = np.maximum(irfft(spectrum, n=GRID_POINTS), 0)
    masses += fft_error(GRID_POINTS, count) * masses_product
    first = math.floor((centre - half) / step) - count - 1
    places = np.arange(first, first + GRID_POINTS)
    losses = places.astype(np.float64) * step
    lowered = epsilon - 1e-12 * max(epsilon, abs(centre), half)
    value = _tail(losses, masses[places % GRID_POINTS], tilt=tilt, epsilon=lowered)
    lost = sum(law.lost for law in laws) + 2 * math.exp(-LOST_NATS)
    log_lost = math.log(lost) + count * tilt * step + log_peak(tilt)
    log_moment = sum(law.log_moment for law in laws)
    return log_moment - tilt * lowered + float(np.logaddexp(math.log(value or 5e-324), log_lost))


def _spread(law: Law, *, tilt: float, step: float) -> FloatArray:
    """The law's tilted masses on the circle of `GRID_POINTS` multiples of `step`."""
    place = law.losses / step
    below = np.floor(place)
    part = place - below
    whole = -math.expm1(-step)
    low = law.masses * np.exp(-(tilt + 1) * part * step) * -np.expm1((part - 1) * step) / whole
    high = law.masses * np.exp(tilt * (1 - part) * step) * -np.expm1(-part * step) / whole
    index = below.astype(np.int64) % GRID_POINTS
    circle = np.bincount(index, weights=low, minlength=GRID_POINTS)
    circle += np.bincount((index + 1) % GRID_POINTS, weights=high, minlength=GRID_POINTS)
    return circle.astype(np.float64)
