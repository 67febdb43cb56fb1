"""Noise of one release, calibrated and frozen: law, units, and what may be said about its size.

Everything here is public and data independent. It is resolved once, when a store is created, and
never recomputed, so a later version cannot change the bytes of a running store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.mechanisms.answer import Answer
from retrodp.noise.dense import DenseProcess
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.noise.processes import Process, process_from_spec
from retrodp.noise.product import ProductProcess
from retrodp.noise.tails import half_widths
from retrodp.privacy.loss import GaussianNorm, PrivacyLoss, PureLoss
from retrodp.privacy.neighbours import gaussian_losses, gaussian_norm
from retrodp.privacy.norms import Norms

ONE_RECORD = (1,)


def losses_of(
    process: Process,
    *,
    amount: int,
    split: tuple[int, ...] = ONE_RECORD,
    norms: Norms | None = None,
) -> tuple[PrivacyLoss, ...]:
    """Loss of one release for one unit, whose records fall on coordinates as `split` says.

    Where the norms of a unit's whole vector are known, they are what counts.
    """
    if norms is not None:
        return _losses_by_norm(process, norms, coordinates=sum(split))
    match process:
        case NoiseProcess():
            return _weighted_losses(process, amount, split)
        case DenseProcess():
            norm = gaussian_norm(
                process.factor.window_l2sq,
                nodes=process.factor.horizon,
                variance=process.scale,
                split=split,
                scale=amount,
            )
            return (norm,)
        case ProductProcess():
            return _product_losses(process, amount, split)
        case _:
            assert_never(process)


def _weighted_losses(
    process: NoiseProcess, amount: int, split: tuple[int, ...]
) -> tuple[PrivacyLoss, ...]:
    factor = process.factor
    match process.law:
        case "laplace":
            epsilon = factor.window_l1 * amount * sum(split) / process.scale
            return (PureLoss(epsilon=epsilon),)
        case "gaussian":
            return gaussian_losses(
                factor.window_shape, variance=process.scale, split=split, scale=amount
            )
        case _:
            assert_never(process.law)


def _product_losses(
    process: ProductProcess, amount: int, split: tuple[int, ...]
) -> tuple[PrivacyLoss, ...]:
    if process.law == "laplace":
        epsilon = process.factor.window_l1 * amount * sum(split) / process.scale
        return (PureLoss(epsilon=epsilon),)
    norm = gaussian_norm(
        process.factor.window_l2sq,
        nodes=process.factor.moved,
        variance=process.scale,
        split=split,
        scale=amount,
    )
    return (norm,)


def _losses_by_norm(process: Process, norms: Norms, *, coordinates: int) -> tuple[PrivacyLoss, ...]:
    """Loss of a unit whose vector has these norms and moves at most so many coordinates.

    A coordinate that moves by w steps in a window moves the nodes by w times the window's shifts.
    So the shifts of all coordinates have the product of both norms, in L1 as in L2.
    """
    if process.law == "laplace":
        assert isinstance(process, NoiseProcess)
        return (PureLoss(epsilon=process.factor.window_l1 * norms.l1 / process.scale),)
    if isinstance(process, NoiseProcess):
        nodes = sum(count for _, count in process.factor.window_shape)
    else:
        nodes = process.factor.horizon
    return (
        GaussianNorm(
            norm_squared=Fraction(process.factor.window_l2sq * norms.l2_squared),
            variance=process.scale,
            moved=nodes * coordinates,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedNoise:
    """The noise of a release and the uncertainty it causes.

    Attributes:
        release: Name of the release; part of every noise label.
        process: Noise by round and coordinate, in steps.
        step: Size of a step in units of the statistic.
        amount: Most that one record adds to a coordinate, in steps.
        split: Records of one unit on each coordinate that it touches, in the worst case.
        level: Coverage of the intervals.
        stddev: Standard deviation by round, in units of the statistic, six digits.
        half: Half width of the interval of a round alone, in steps, by round.
        half_all: Half width for all rounds of one key at once, in steps, by round.
        norms: Of the vector that one unit moves, where `amount` and `split` say too much.
    """

    release: str
    process: Process
    step: Fraction
    amount: int
    split: tuple[int, ...]
    level: Fraction
    stddev: tuple[str, ...]
    half: tuple[int, ...]
    half_all: tuple[int, ...]
    norms: Norms | None = None

    @classmethod
    def of(  # noqa: PLR0913  the parts of a release's noise
        cls,
        release: str,
        process: Process,
        *,
        step: Fraction,
        amount: int,
        split: tuple[int, ...],
        level: Fraction,
        norms: Norms | None = None,
    ) -> CalibratedNoise:
        """Work out the intervals of every round from the noise law alone."""
        rounds = range(1, process.factor.horizon + 1)
        miss = float(1 - level)
        return cls(
            release=release,
            process=process,
            step=step,
            amount=amount,
            split=split,
            level=level,
            stddev=tuple(f"{process.stddev(r) * float(step):.6g}" for r in rounds),
            half=tuple(half_widths(process, miss).tolist()),
            half_all=tuple(half_widths(process, miss / len(rounds)).tolist()),
            norms=norms,
        )

    def at_level(self, level: Fraction) -> CalibratedNoise:
        """The same noise with intervals of another coverage."""
        return CalibratedNoise.of(
            self.release,
            self.process,
            step=self.step,
            amount=self.amount,
            split=self.split,
            level=level,
            norms=self.norms,
        )

    @property
    def horizon(self) -> int:
        """Rounds covered."""
        return self.process.factor.horizon

    def draw(self, round_: int, keys: NoiseKeys, where: Coordinates) -> NDArray[np.int64]:
        """Rounded noise in steps, shape ``(len(where),)``: a pure function of key and label."""
        _check.instance(NoiseKeys, keys=keys, expected="a key, such as KeyTree.generate(T)[0]")
        return self.process.draw(release=self.release, round=round_, keys=keys, where=where)

    def losses(self) -> tuple[PrivacyLoss, ...]:
        """What all rounds together reveal about one unit (window sensitivity, any window)."""
        return losses_of(self.process, amount=self.amount, split=self.split, norms=self.norms)

    def answer(
        self,
        round_: int,
        keys: Sequence[str] | None,
        values: Sequence[int],
        *,
        threshold: int | None = None,
    ) -> Answer:
        """Noisy values with the uncertainty of the round."""
        return Answer(
            release=self.release,
            round=round_,
            keys=None if keys is None else tuple(keys),
            values=tuple(values),
            step=self.step,
            stddev=self.stddev[round_ - 1],
            half=self.half[round_ - 1],
            half_all=self.half_all[round_ - 1],
            level=self.level,
            threshold=threshold,
        )

    def describe(self) -> dict[str, Any]:
        """Public facts for `check`, reports and `describe()` of mechanisms."""
        step = float(self.step)
        return {
            "factor": self.process.factor.name,
            "law": f"discrete {'Laplace' if self.process.law == 'laplace' else 'Gaussian'}",
            "scale": str(self.process.scale),
            "horizon": self.horizon,
            "step": str(self.step),
            "sensitivity": str(self.step * self.amount),
            "stddev_max": max(float(text) for text in self.stddev),
            "error_max": max(self.half) * step,
            "error_all_max": max(self.half_all) * step,
            "level": str(self.level),
        }

    def spec(self) -> dict[str, Any]:
        """What the resolved plan stores."""
        return {
            "release": self.release,
            "process": self.process.spec(),
            "step": str(self.step),
            "amount": self.amount,
            "split": list(self.split),
            "level": str(self.level),
            "stddev": list(self.stddev),
            "half": list(self.half),
            "half_all": list(self.half_all),
            **({} if self.norms is None else {"norms": list(self.norms)}),
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> CalibratedNoise:
        """Read what `spec` wrote."""
        return cls(
            release=spec["release"],
            process=process_from_spec(spec["process"]),
            step=Fraction(spec["step"]),
            amount=spec["amount"],
            split=tuple(spec["split"]),
            level=Fraction(spec["level"]),
            stddev=tuple(spec["stddev"]),
            half=tuple(spec["half"]),
            half_all=tuple(spec["half_all"]),
            norms=Norms(*spec["norms"]) if "norms" in spec else None,
        )
