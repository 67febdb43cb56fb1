"""Keyed noise of a counter: the same for the same key, round and coordinate, on every machine.

Promise: a draw is a function of key, release, round and coordinate alone, with exactly the law of the
factor's weighted sums of discrete draws, rounded to whole grid steps. Knows no data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from retrodp._check import exact, positive
from retrodp.errors import PlanError
from retrodp.noise.factors.contract import Factor, Profile
from retrodp.noise.factors.spec import factor_from_spec
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.key import Node, NoiseKeys
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import CHUNK, BlockPRF, Coordinates
from retrodp.noise.running import Integers, RunningSums, multiply
from retrodp.noise.sampler import Desk, Sampler, sampler

Law = Literal["laplace", "gaussian"]

LARGEST = 2**63 - 1
NARROW = 2**31 - 1
ROUNDING_VARIANCE = 1 / 12  # of the distance to the nearest whole step, uniform


@lru_cache(maxsize=16)
def profile_of(factor: Factor) -> Profile:
    """The factor's profile, computed once: it depends on the factor alone."""
    return factor.profile()


def _node_keys(process: NoiseProcess, release: str, keys: NoiseKeys) -> Callable[[Node], BlockPRF]:
    """Blocks of a node, its key derived once; the memory ends with the call that asked."""
    factor = process.factor

    @cache
    def prf(node: Node) -> BlockPRF:
        last = factor.last(node)
        key = keys.node_key(release=release, factor=factor.name, node=node, last=last)
        return BlockPRF(key)

    return prf


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseProcess:
    """A factor, the law of its nodes, and their scale; all public.

    Noise of round l is `floor(N_l + 1/2)`, N_l the weighted sum of the round's node draws over the
    factor's denominator. Privacy of N is that of the node draws under the factor's shifts (pure
    epsilon `window_l1 / b` for Laplace; rho `window_l2sq / (2 s^2)` for Gaussian, per unit of
    change); rounding costs none, because counts are whole.

    Attributes:
        factor: Nodes of every round.
        law: Discrete "laplace" or "gaussian".
        scale: Exact: b of exp(-|k| / b), in steps, or s^2 of exp(-k^2 / (2 s^2)), in squared steps.
    """

    factor: Factor
    law: Law
    scale: Fraction

    def __post_init__(self) -> None:
        if self.law not in get_args(Law):
            raise PlanError(f'law must be "laplace" or "gaussian", got {self.law!r}.')
        object.__setattr__(self, "scale", exact("scale", self.scale))
        positive(scale=self.scale)
        if self._largest > LARGEST:
            raise PlanError(
                f"Noise of scale {float(self.scale):g} on a {self.factor.name} factor over "
                f"{self.factor.horizon} rounds could leave 64 bits.",
                do="Use a coarser step.",
            )

    @property
    def node_law(self) -> DiscreteLaplace | DiscreteGaussian:
        """Law of one node's draw."""
        match self.law:
            case "laplace":
                return DiscreteLaplace(scale=self.scale)
            case "gaussian":
                return DiscreteGaussian(variance=self.scale)
            case _:
                assert_never(self.law)

    @property
    def _sampler(self) -> Sampler:
        return sampler(self.node_law.exponent)

    def draw(
        self,
        *,
        release: str,
        round: int,  # noqa: A002
        keys: NoiseKeys,
        where: Coordinates,
    ) -> NDArray[np.int64]:
        """Rounded noise of one round.

        Args:
            release: Name of the release; other releases draw independently.
            round: 1..horizon.
            keys: Keys that still derive every node of the round.
            where: n coordinates (bins, buckets); each has noise of its own.

        Returns:
            int64, shape (n,), in grid steps. A coordinate gets the same noise in any batch.

        Raises:
            KeyDestroyedError: The round is past.

        Sees: no data. Time: one draw per node and coordinate, some 10 to 30 ns each.
        """
        prf = _node_keys(self, release, keys)
        nodes = [(prf(node), weight) for node, weight in self.factor.nodes(round)]
        draws, desk = self._sampler, Desk.of(len(where))
        sums, drawn = np.empty((2, min(len(where), CHUNK)), dtype=self._width)
        total = np.empty(len(where), dtype=np.int64)
        for part, piece in where.chunks():
            row, one = sums[: len(piece)], drawn[: len(piece)]
            row.fill(self.factor.denominator // 2)
            for blocks, weight in nodes:
                draws.draw_into(one, blocks, piece, desk)
                if weight == -1:
                    np.subtract(row, one, out=row)
                    continue
                multiply(one, weight)
                np.add(row, one, out=row)
            self._divided(row, one, out=total[part])
        return total

    def each_round(
        self, *, release: str, rounds: Iterable[int], keys: NoiseKeys, where: Coordinates
    ) -> Iterator[NDArray[np.int64]]:
        """What `draw` gives for one round after another, at the cost of about one draw a value.

        Args:
            release: As for `draw`.
            rounds: In any order; neighbours next to one another are fastest.
            keys: Keys that still derive every node of every round.
            where: n coordinates.

        Yields:
            int64, shape (n,), in grid steps: `draw` of each round.

        Raises:
            KeyDestroyedError: One of the rounds is past.

        Sees: no data. Memory: as many vectors as a round has nodes, and a key a node.
        """
        running = self._running(_node_keys(self, release, keys), where)
        for round_ in rounds:
            total = running.at(self.factor.sums(round_))
            noise = np.empty(len(where), dtype=np.int64)
            self._divided(total, running.spare, out=noise)
            yield noise

    def draw_rounds(
        self,
        *,
        release: str,
        rounds: Sequence[int],
        keys: NoiseKeys,
        where: Coordinates,
        out: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """The same as a matrix, a few thousand coordinates at a time.

        Args:
            release: As for `draw`.
            rounds: R rounds, as for `each_round`.
            keys: Keys that still derive every node of every round.
            where: n coordinates; the result has R n entries, so take as many as memory allows.
            out: Memory for the result, if some is there: to get it takes a tenth of the time.

        Returns:
            int64, shape (R, n), in grid steps: row i is `draw` of round `rounds[i]`.

        Raises:
            KeyDestroyedError: One of the rounds is past.
        """
        prf = _node_keys(self, release, keys)
        if out is None:
            out = np.empty((len(rounds), len(where)), dtype=np.int64)
        for part, piece in where.chunks():
            running = self._running(prf, piece)
            for place, round_ in enumerate(rounds):
                total = running.at(self.factor.sums(round_))
                self._divided(total, running.spare, out=out[place, part])
        return out

    def _running(self, prf: Callable[[Node], BlockPRF], where: Coordinates) -> RunningSums:
        draws, desk = self._sampler, Desk.of(len(where))
        return RunningSums(
            lambda row, node: draws.draw_into(row, prf(node), where, desk),
            np.empty((profile_of(self.factor).terms, len(where)), dtype=self._width),
            # Means take the half that rounding adds from one sum to the next.
            pinned=self.factor.denominator // 2,
        )

    @property
    def _width(self) -> type[np.int32 | np.int64]:
        """Integers that hold every sum: narrow ones are twice as many to a vector."""
        if not self._sampler.small or self._largest > NARROW:
            return np.int64
        return np.int32

    @property
    def _largest(self) -> int:
        """Bound on any sum of draws, with what rounding adds."""
        profile = profile_of(self.factor)
        weights = profile.terms * profile.largest_weight
        return weights * self.node_law.max_magnitude + self.factor.denominator

    def _divided(self, total: Integers, spare: Integers, *, out: NDArray[np.int64]) -> None:
        """floor(total / denominator), a power of two, of a sum to which its half was added."""
        bits = self.factor.denominator.bit_length() - 1
        if bits:
            total = np.right_shift(total, bits, out=spare)
        np.copyto(out, total)

    def variance(self, round: int) -> float:  # noqa: A002
        """Variance of the round's noise, in squared steps.

        With a denominator above 1 it includes 1/12 for the rounding. On a `haar` round of m nodes
        that adds (1 - 4^-m) / 12 to the variance and, as halves are rounded up, 2^-(m + 1) to the
        mean.
        """
        unit = self.factor.unit_variance(round)
        return float(unit) * self.node_law.variance_exactish + self._rounding

    def stddev(self, round: int) -> float:  # noqa: A002
        """Root of `variance`, in steps."""
        return math.sqrt(self.variance(round))

    @property
    def max_variance(self) -> float:
        """Largest variance of any round."""
        return self._scaled(int(profile_of(self.factor).squares.max()))

    @property
    def mean_variance(self) -> float:
        """Mean variance over the rounds."""
        return self._scaled(float(profile_of(self.factor).squares.mean(dtype=np.float64)))

    @property
    def _rounding(self) -> float:
        return ROUNDING_VARIANCE if self.factor.denominator > 1 else 0.0

    def _scaled(self, squares: float) -> float:
        """Variance of a round whose squared weights sum to `squares`."""
        unit = squares / self.factor.denominator**2
        return unit * self.node_law.variance_exactish + self._rounding

    def spec(self) -> dict[str, object]:
        """All of it as JSON values; the scale as a ratio."""
        return {"factor": self.factor.spec(), "law": self.law, "scale": str(self.scale)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> NoiseProcess:
        """The process that `spec` described; nothing is chosen again.

        Raises:
            PlanError: A field is missing, surplus or wrong.
        """
        if set(spec) != {"factor", "law", "scale"}:
            raise PlanError(
                f"Noise cannot be read from the fields {sorted(spec)}.",
                expected="factor, law and scale",
            )
        factor, law, scale = spec["factor"], spec["law"], spec["scale"]
        if not isinstance(factor, Mapping) or not isinstance(scale, str):
            raise PlanError("Noise needs a described factor and a scale written as a ratio.")
        match law:
            case "laplace" | "gaussian":
                return cls(factor=factor_from_spec(factor), law=law, scale=exact("scale", scale))
            case _:
                raise PlanError(f'law must be "laplace" or "gaussian", got {law!r}.')
