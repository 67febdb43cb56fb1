"""Planted faults of privacy, one function each: mistakes of real systems.

For the audit's own control only. Each takes a sound mechanism and returns a faulty one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from retrodp.audit.parts import with_noise
from retrodp.audit.released import smaller
from retrodp.audit.structure import Structure, window
from retrodp.audit.tamper import Tampered
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.noise.factors.contract import Factor, PartialSum, Profile, WeightedNode, chain
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import Node, NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.process import NoiseProcess

Tamper = Callable[[Mechanism], Mechanism]
Use = Callable[[Factor, int], tuple[WeightedNode, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MisusedFactor:
    """A factor whose rounds use other nodes than it says."""

    inner: Factor
    use: Use

    @property
    def name(self) -> str:
        """As the sound one."""
        return self.inner.name

    @property
    def horizon(self) -> int:
        """As the sound one."""
        return self.inner.horizon

    @property
    def denominator(self) -> int:
        """As the sound one."""
        return self.inner.denominator

    @property
    def window_l1(self) -> int:
        """As the sound one claims."""
        return self.inner.window_l1

    @property
    def window_l2sq(self) -> int:
        """As the sound one claims."""
        return self.inner.window_l2sq

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """As the sound one claims."""
        return self.inner.window_shape

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """The wrong ones."""
        return self.use(self.inner, round)

    def sums(self, round: int, /) -> tuple[PartialSum, ...]:  # noqa: A002
        """The wrong ones, one by one."""
        return chain(self.nodes(round))

    def last(self, _node: Node, /) -> int:
        """Any round will do for keys that are never destroyed."""
        return self.horizon

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        """As the sound one claims."""
        return self.inner.unit_variance(round)

    def profile(self) -> Profile:
        """As the sound one claims."""
        return self.inner.profile()

    def spec(self) -> dict[str, object]:
        """As the sound one."""
        return self.inner.spec()


def too_small(by: Fraction) -> Tamper:
    """Noise whose scale is too small by a factor."""
    return lambda mechanism: with_noise(mechanism, lambda noise: smaller(noise, by))


def misused(use: Use) -> Tamper:
    """Rounds that use other nodes than the factor says."""

    def process(sound: NoiseProcess) -> NoiseProcess:
        return replace(sound, factor=MisusedFactor(inner=sound.factor, use=use))

    return lambda mechanism: with_noise(mechanism, lambda noise: _with(noise, process))


def without_finest(factor: Factor, round_: int) -> tuple[WeightedNode, ...]:
    """The finest node of every round is left out."""
    nodes = factor.nodes(round_)
    return nodes[:-1] or nodes


def shared_by_two(factor: Factor, round_: int) -> tuple[WeightedNode, ...]:
    """Round 3 uses the finest node of round 1 instead of its own."""
    nodes = factor.nodes(round_)
    return (*nodes[:-1], factor.nodes(1)[-1]) if round_ == 3 else nodes


def without_sides(factor: Factor, round_: int) -> tuple[WeightedNode, ...]:
    """Nodes of both ends of a delannoy tree under one name."""
    return tuple((("", *node[1:]), weight) for node, weight in factor.nodes(round_))


def fresh_charged_once(mechanism: Mechanism) -> Mechanism:
    """Noise drawn anew every round, each at the scale of a single release."""

    def process(sound: NoiseProcess) -> NoiseProcess:
        fresh = FreshFactor(horizon=sound.factor.horizon, window=1)
        return replace(sound, factor=fresh, scale=sound.scale / _charged(sound))

    return with_noise(mechanism, lambda noise: _with(noise, process))


def additions_only(mechanism: Mechanism) -> Mechanism:
    """The scale that records would need if they were never deleted."""

    def process(sound: NoiseProcess) -> NoiseProcess:
        structure, horizon = Structure.of(sound.factor), sound.factor.horizon
        size = structure.l1 if sound.law == "laplace" else structure.l2_squared
        needed = max(size(window(horizon, begin, horizon + 1)) for begin in range(1, horizon + 1))
        return replace(sound, scale=sound.scale * Fraction(round(needed)) / _charged(sound))

    return with_noise(mechanism, lambda noise: _with(noise, process))


def one_record(mechanism: Mechanism) -> Mechanism:
    """Several records of one person charged as one."""

    def change(noise: CalibratedNoise) -> CalibratedNoise:
        several = sum(noise.split)
        if noise.process.law == "gaussian":
            several = sum(records**2 for records in noise.split)
        cheap = _with(noise, lambda sound: replace(sound, scale=sound.scale / several))
        return replace(cheap, split=(1,))

    return with_noise(mechanism, change)


def amount_of_one(mechanism: Mechanism) -> Mechanism:
    """A sum charged as if a record moved it by one step."""
    return with_noise(
        mechanism, lambda noise: smaller(replace(noise, amount=1), Fraction(noise.amount))
    )


def one_label(mechanism: Mechanism) -> Mechanism:
    """Every release draws its noise under one name."""
    return with_noise(mechanism, lambda noise: replace(noise, release="noise"))


def lower_threshold(by: int) -> Tamper:
    """A threshold that is too low."""

    def tamper(mechanism: Mechanism) -> Mechanism:
        assert isinstance(mechanism, SparseHistogram)
        lower = tuple(threshold - by for threshold in mechanism.thresholds)
        return SparseHistogram.of(mechanism.noise, threshold=lower, max_bins=mechanism.max_bins)

    return tamper


def even_noise(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    """Noise of even numbers only: the parity of the exact count is published."""
    answer = self.inner.release(round_, exact, keys)
    total = exact.get(b"", 0)
    values = [total + 2 * round(((value or 0) - total) / 2) for value in answer.values]
    return replace(answer, values=tuple(values))


def noise_of_data(
    self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys
) -> Answer:
    """Noise keyed by the data: each change hands out a fresh draw of the same release."""
    assert isinstance(self.inner, Counter)
    total = exact.get(b"", 0)
    noise = replace(self.inner.noise, release=f"noise of {total}")
    (draw,) = noise.draw(round_, keys, Coordinates.of_indices(1)).tolist()
    return noise.answer(round_, None, [total + draw])


def float_noise(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    """The count rounded, then a float of a textbook sampler added: low bits tell the count."""
    assert isinstance(self.inner, Counter)
    key = keys.fresh_key(release=self.name, purpose="float", round=round_)
    word, sign = BlockPRF(key).blocks(Coordinates.of_indices(1))[0].tolist()
    uniform = ((word >> 11) + 1) * 2.0**-53
    size = float(self.inner.noise.process.scale) * (1 if sign & 1 else -1)
    value: Any = float(exact.get(b"", 0)) + size * math.log(uniform)
    return self.inner.noise.answer(round_, None, [value])


def by_place(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    """Noise of a bin keyed by its place in the list: a new bin hands its noise to the next."""
    assert isinstance(self.inner, SparseHistogram)
    labels = sorted(label for label, total in exact.items() if total >= 1)
    where = Coordinates.of_indices(len(labels))
    noise = self.inner.noise.draw(round_, keys, where).tolist()
    kept = {
        label.decode(): exact[label] + draw
        for label, draw in zip(labels, noise, strict=True)
        if exact[label] + draw >= self.inner.thresholds[round_ - 1]
    }
    return self.inner.noise.answer(
        round_, list(kept), list(kept.values()), threshold=self.inner.thresholds[round_ - 1]
    )


def one_draw(self: Tampered, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
    """All bins of a histogram share one draw: their differences are exact."""
    assert isinstance(self.inner, Histogram)
    (draw,) = self.inner.noise.draw(round_, keys, Coordinates.of_indices(1)).tolist()
    values = [exact.get(label.encode(), 0) + draw for label in self.inner.bins]
    return self.inner.noise.answer(round_, self.inner.bins, values)


def _with(
    noise: CalibratedNoise, change: Callable[[NoiseProcess], NoiseProcess]
) -> CalibratedNoise:
    assert isinstance(noise.process, NoiseProcess)
    return replace(noise, process=change(noise.process))


def _charged(process: NoiseProcess) -> int:
    """What a window costs."""
    return process.factor.window_l1 if process.law == "laplace" else process.factor.window_l2sq
