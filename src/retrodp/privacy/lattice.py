r"""Laws of the privacy loss of integer noise, tilted so that tails keep their digits.

Promise: every `Law` bounds, atom by atom from above, the loss of one part of a vector mechanism
under the tilt ``exp(tilt L)``; what it may miss is stated as `lost`. Knows nothing of plans,
budgets or conversions.

**Fine parts, exact.** Coordinates that share a variance ``s^2`` have, at noise x and shift k, the
loss ``(k^2 + 2 k x) / (2 s^2)``; so the loss of all of them is a function of the one integer
``Z = sum k x`` and no rounding of losses is needed. Tilted by t, a coordinate is the discrete
Gaussian of the same variance around ``t k``, and its moment is
``E exp(t L) = exp(rho t (t + 1)) theta(t k) / theta(0)``, with
``theta(a) = sum over x of exp(-(x - a)^2 / (2 s^2)) <= theta(0)``.

**Coarse parts, by a continuous Gaussian that is certified to be worse.** Let ``P, Q`` be the
discrete Gaussian of variance ``s^2 > 1/12`` and its shift by the integer k, ``kappa = 1 - 1/(12
s^2)`` and ``c = exp(1/(24 s^2)) / kappa``. Then for every real epsilon

    H_epsilon(P, Q) <= c H_epsilon(N(0, kappa^2 s^2), N(k, kappa^2 s^2)),       (*)

H the hockey-stick divergence. Such bounds compose: for a product with any (M, N), integrate (*)
at ``epsilon`` minus the loss of (M, N); the factors c multiply. So coarse coordinates, however
many and of whatever variances, are one Gaussian with ``rho = sum k^2 / (2 kappa^2 s^2)`` and one
factor; only their norm and their number matter.

*Proof of (\*).* Let phi be the density of N(0, s^2), ``cell(x) = [x - 1/2, x + 1/2]``, and
``A(y)`` the integral over ``|u| <= 1/2`` of ``exp(-y u / s^2 - u^2 / (2 s^2))``, so that phi gives
``cell(x)`` the mass ``phi(x) A(x)`` and the shifted density ``phi(x - k) A(x - k)``.

1. By Jensen ``A(y) >= exp(-1/(24 s^2))``, and theta(0) is at least ``s sqrt(2 pi)`` (Poisson
   summation); hence ``P(x) <= exp(1/(24 s^2)) phi(cell(x))``.
2. ``A`` is even and ``d log A / dy = -E[u] / s^2`` under the truncated Gaussian in A. Its variance
   is at most 1/12: along the curve of fixed mean m, a larger curvature b (density ~ exp(-b (u-m)^2
   / 2 - c u)) changes the variance V by ``-(Var((u-m)^2) - Cov((u-m)^2, u)^2 / V) / 2 <= 0``
   (Cauchy-Schwarz), and at b = 0 it is ``1/v^2 - 1/(4 sinh^2(v/2)) <= 1/12``. Since E[u] = 0 at
   y = 0, ``0 <= d log A / dy <= y / (12 s^4)`` for y >= 0. So where the loss ``L(x) = log P(x)/Q(x)
   = ((x-k)^2 - x^2) / (2 s^2)`` is positive, the loss of the cell is
   ``L(x) - log(A(x-k)/A(x)) >= kappa L(x)``.
3. For epsilon >= 0 only such x count, and ``1 - exp(-z) <= (1 - exp(-kappa z)) / kappa`` for z >= 0.
   With 1, 2 and data processing (cells are a function of the continuous value),
   ``H_epsilon(P, Q) <= c H_{kappa epsilon}(N(0, s^2), N(k, s^2))``.
4. The loss of the right pair is ``kappa L'`` with L' of law N(r/kappa, 2 r/kappa^2), r = k^2/(2
   s^2); ``1 - exp(-kappa z) <= 1 - exp(-z)``, and L' is stochastically below N(r/kappa^2, 2
   r/kappa^2), the loss of N(0, kappa^2 s^2). That is (*) for epsilon >= 0.
5. For epsilon < 0 use ``H_{-e}(P, Q) = 1 - exp(-e) + exp(-e) H_e(Q, P)``, the reflection that
   swaps P and Q, and c >= 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln, logsumexp

from retrodp.privacy.conversion import log_response_moment

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

LOST_NATS = 80.0
"""Tails are cut where they hold less than exp(-80) of the tilted mass."""

MOST_POINTS = 2**18
"""A lattice with more points than this is treated as coarse."""

COARSE_SLACK = 1e-4
"""A part whose factor c is below exp(1e-4) is treated as coarse."""

_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Loss of one part under the tilt.

    Attributes:
        losses: Where the atoms lie, ascending, in nats; shape ``(atoms,)``.
        masses: Upper bounds of their tilted probabilities; same shape.
        log_moment: Upper bound of ``log E exp(tilt L)``.
        centre: Near the tilted mean.
        spread: Variance proxy: the tilted law is sub-Gaussian around `centre` with it,
        excess: up to the factor ``exp(excess)``.
        lost: Tilted mass that may be missing or misplaced.
    """

    losses: FloatArray
    masses: FloatArray
    log_moment: float
    centre: float
    spread: float
    excess: float
    lost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarse:
    """One continuous Gaussian mechanism that is worse than all coarse coordinates, up to a factor.

    Attributes:
        rho: Its zero-concentrated loss, ``norm^2 / (2 variance)``.
        log_factor: Logarithm of the factor on every hockey-stick divergence.
    """

    rho: float
    log_factor: float


def log_factor(variance: Fraction) -> float:
    """Logarithm of c in (*) for one coordinate; infinite where (*) does not hold."""
    inverse = float(1 / variance)
    if inverse >= 12:
        return math.inf
    return inverse / 24 - math.log1p(-inverse / 12)


def coarse_rho(variance: Fraction, norm_squared: Fraction) -> float:
    """Rho of the dominating continuous Gaussian in (*)."""
    rho = float(norm_squared / (2 * variance))
    return rho / (1 - float(1 / variance) / 12) ** 2


def is_fine(variance: Fraction, shifts: Mapping[int, int]) -> bool:
    """Whether these coordinates (shift -> count) deserve an exact lattice and can have one."""
    slack = sum(shifts.values()) * log_factor(variance)
    norm = math.sqrt(sum(count * shift**2 for shift, count in shifts.items()))
    step = math.gcd(*shifts)
    points = 2 * norm / step * math.sqrt(float(variance) * 2 * LOST_NATS)
    return slack > COARSE_SLACK and points <= MOST_POINTS


def gaussian_law(variance: Fraction, shifts: Mapping[int, int], tilt: float) -> Law:
    """Exact law of the loss of discrete Gaussian coordinates of one variance.

    Args:
        variance: Of every coordinate.
        shifts: Positive shift -> number of coordinates moved by it.
        tilt: At least 0.

    Time: one FFT per distinct shift; none for a single coordinate.
    """
    spread_of_one = float(variance)
    norm_squared = sum(count * shift**2 for shift, count in shifts.items())
    total = sum(shifts.values())
    noises = {shift: _tilted_noise(spread_of_one, shift * tilt) for shift in shifts}
    excess = -sum(count * noises[shift].log_ratio for shift, count in shifts.items())
    if total == 1:
        (shift,) = shifts
        noise = noises[shift]
        reach = len(noise.masses) // 2
        values = shift * (noise.nearest + np.arange(-reach, reach + 1, dtype=np.float64))
        masses = noise.masses
    else:
        values, masses = _sum_of_noises(shifts, noises, _reach(norm_squared, variance, excess))
    rho = norm_squared / (2 * spread_of_one)
    return Law(
        losses=(norm_squared + 2 * values) / (2 * spread_of_one),
        masses=masses,
        log_moment=rho * tilt * (tilt + 1) - excess,
        centre=rho * (2 * tilt + 1),
        spread=2 * rho,
        excess=excess,
        lost=2 * (total + 1) * math.exp(-LOST_NATS),
    )


def response_law(epsilon: Fraction, count: int, tilt: float) -> Law:
    """Law of the loss of `count` randomised responses, which dominate pure epsilon mechanisms.

    The spread is the Kearns-Saul variance proxy of a biased coin.
    """
    one = float(epsilon)
    log_fail = -(2 * tilt + 1) * one
    log_normal = math.log1p(math.exp(log_fail))
    wins = np.arange(count + 1, dtype=np.float64)
    log_choose = gammaln(count + 1) - gammaln(wins + 1) - gammaln(count - wins + 1)
    log_masses = log_choose + (count - wins) * log_fail - count * log_normal
    pull = one * math.tanh((tilt + 0.5) * one)
    return Law(
        losses=(2 * wins - count) * one,
        masses=np.exp(log_masses),
        log_moment=count * log_response_moment(one, tilt),
        centre=count * pull,
        spread=count * pull / (tilt + 0.5),
        excess=0.0,
        lost=0.0,
    )


def coarse_law(coarse: Coarse, tilt: float, cell: float) -> Law:
    """The continuous Gaussian's loss as Gauss-Legendre atoms, three in each piece of a cell.

    Args:
        coarse: The Gaussian.
        tilt: At least 0.
        cell: Width of the grid on which the atoms will be spread; no piece crosses its multiples.

    The tilted loss is N(rho (2 tilt + 1), 2 rho). A piece is at most sigma/256 wide, so that the
    quadrature error, ``width^7 f''''''/2016000``, is below 1e-12 of a piece's mass within the
    cut, also against the exponential weights of `composition`.
    """
    sigma = math.sqrt(2 * coarse.rho)
    centre = coarse.rho * (2 * tilt + 1)
    half = sigma * math.sqrt(2 * LOST_NATS)
    pieces = max(1, math.ceil(256 * cell / sigma))
    width = cell / pieces
    first, last = math.floor((centre - half) / width), math.ceil((centre + half) / width)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    starts = np.arange(first, last, dtype=np.float64)
    losses = ((starts + 0.5)[:, None] + nodes / 2) * width
    standard = (losses - centre) / sigma
    density = np.exp(-(standard**2) / 2) * (width / 2 / sigma / math.sqrt(2 * math.pi))
    return Law(
        losses=losses.ravel(),
        masses=(density * weights).ravel(),
        log_moment=coarse.rho * tilt * (tilt + 1) + coarse.log_factor,
        centre=centre,
        spread=2 * coarse.rho,
        excess=0.0,
        lost=2 * math.exp(-LOST_NATS),
    )


def fft_error(points: int, factors: int) -> float:
    """Largest error of an entry of a convolution of probability vectors by FFT.

    Every output of a transform is a sum in a tree of depth log2(points) of inputs times factors
    of modulus 1, so its error is below ``8 u log2(points)`` times the sum of the inputs' moduli
    (Higham 2002, chapter 24, entry by entry); products of transforms of modulus at most 1 add
    their errors, and the inverse transform averages them.
    """
    return 2 * _UNIT_ROUNDOFF * (8 * math.log2(points) + 16) * (factors + 1)


@dataclass(frozen=True, slots=True)
class _Noise:
    """One tilted coordinate: masses around `nearest`, which is `offset` below the centre."""

    nearest: int
    offset: float
    masses: FloatArray
    log_ratio: float


def _tilted_noise(variance: float, centre: float) -> _Noise:
    nearest = round(centre)
    offset = centre - nearest
    log_ratio = 0.0
    if variance < 4:  # beyond, theta is constant to 2 exp(-8 pi^2)
        few = np.arange(-30, 31, dtype=np.float64)
        tilted, plain = (
            float(logsumexp(-((few - a) ** 2) / (2 * variance))) for a in (offset, 0.0)
        )
        log_ratio = min(0.0, tilted - plain)
    reach = math.ceil(math.sqrt(2 * variance * (LOST_NATS - log_ratio))) + 1
    exponents = -((np.arange(-reach, reach + 1) - offset) ** 2) / (2 * variance)
    masses = np.exp(exponents - exponents.max())
    return _Noise(nearest, offset, masses / masses.sum(), log_ratio)


def _reach(norm_squared: int, variance: Fraction, excess: float) -> float:
    return math.sqrt(2 * norm_squared * float(variance) * (LOST_NATS + excess))


def _sum_of_noises(
    shifts: Mapping[int, int], noises: Mapping[int, _Noise], reach: float
) -> tuple[FloatArray, FloatArray]:
    """Values of Z, ascending, and upper bounds of their tilted probabilities."""
    step = math.gcd(*shifts)
    half = math.ceil(reach / step) + 2
    points = next_fast_len(2 * half + 1, True)
    spectrum: ComplexArray = np.ones(points // 2 + 1, dtype=np.complex128)
    for shift, count in shifts.items():
        noise = noises[shift]
        width = len(noise.masses) // 2
        places = np.arange(-width, width + 1) * (shift // step) % points
        circle = np.bincount(places, weights=noise.masses, minlength=points)
        spectrum *= _power(rfft(circle), count)
    total = sum(shifts.values())
    wrapped = irfft(spectrum, n=points)
    origin = sum(count * shift * noises[shift].nearest for shift, count in shifts.items()) // step
    drift = sum(count * shift * noises[shift].offset for shift, count in shifts.items()) / step
    places = np.arange(points) + (round(drift) - points // 2)
    masses = np.maximum(wrapped[places % points], 0) + fft_error(points, total)
    return step * (origin + places.astype(np.float64)), masses


def _power(values: ComplexArray, exponent: int) -> ComplexArray:
    """Entry by entry, by squaring: far faster than complex powers."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return result
