"""The sampling compiler: any one-shot private mechanism, exactly retroactive over a sliding window.

KKMNS theorem 5.7: in every round a sample of the live records is drawn with coins of the round, and
the mechanism runs on it with coins of its own. A release is then a function of key, round and live
records, which is all that exact retroactivity asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, assert_never

from retrodp._check import round_within
from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.mechanisms.draws import poisson, smallest
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.mechanisms.oneshot.contract import OneShotMechanism, Values
from retrodp.noise.coins import Coins
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.sampling import Charge

SAMPLE = "sample"  # purpose of the key of the coins that choose
ANSWER = "answer"  # purpose of the key of the mechanism's own coins

Sampling = Literal["poisson", "fixed", "persistent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a sample is drawn.

    Attributes:
        sampling: "poisson", "fixed" or "persistent".
        rate: Probability of each live record; for Poisson alone.
        size: Records in a sample, if so many live; not for Poisson.
        occupancy: Live records that a released round surely has; None where nothing is promised.
    """

    sampling: Sampling
    rate: Fraction | None = None
    size: int | None = None
    occupancy: int | None = None

    @property
    def largest_rate(self) -> Fraction:
        """Probability at most of a record to be in the sample of a released round."""
        if self.rate is not None:
            return self.rate
        if self.occupancy is None or self.size is None:
            return Fraction(1)
        return Fraction(self.size, self.occupancy + 1)

    def sample(
        self, live: Mapping[bytes, int], round_: int, *, release: str, keys: NoiseKeys
    ) -> list[Values]:
        """The values of the sampled records."""
        match self.sampling:
            case "poisson":
                assert self.rate is not None
                key = keys.fresh_key(release=release, purpose=SAMPLE, round=round_)
                return poisson(live, key, self.rate)
            case "fixed":
                assert self.size is not None
                key = keys.fresh_key(release=release, purpose=SAMPLE, round=round_)
                return smallest(live, key, self.size)
            case "persistent":
                assert self.size is not None
                return smallest(live, keys.lasting_key(release=release, purpose=SAMPLE), self.size)
            case _:
                assert_never(self.sampling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Lemma 5.8: nothing is released while the noisy number of live records is below a threshold.

    Attributes:
        noise: Of the number of live records.
        threshold: Least noisy number with which a round is released.
        delta: Probability that a round passes with too few live records.
    """

    noise: CalibratedNoise
    threshold: int
    delta: Fraction

    def open(self, live: int, round_: int, keys: NoiseKeys) -> bool:
        """Whether the round is released."""
        noise = self.noise.draw(round_, keys, Coordinates.of_indices(1))
        return live + int(noise[0]) >= self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A one-shot mechanism on a sample of the live records, every round.

    Guarantee: the sequence of all answers loses what `charge` says, plus the gate's noise, for
    streams that differ in one unit; any mechanism, any data. Exactly retroactive. Fresh coins
    compose against streams that react to earlier answers; persistent ranks are proved for others
    alone. Source: KKMNS theorem 5.7, lemma 5.8, theorem C.1; `retrodp.privacy.sampling`.

    The interval of an answer is the public range that the mechanism declares: what is known of its
    error depends on the data, and is described, not published.

    Attributes:
        name: Of the release.
        mechanism: What runs on the sample.
        design: How the sample is drawn.
        charge: Loss over the horizon, and what it adds to delta.
        horizon: Rounds covered.
        window: W.
        level: Of the intervals.
        gate: See `Gate`; None releases every round.
        facts: Further public facts.
    """

    name: str
    mechanism: OneShotMechanism
    design: Design
    charge: Charge
    horizon: int
    window: int
    level: Fraction
    gate: Gate | None = None
    facts: tuple[tuple[str, Any], ...] = ()

    @property
    def step(self) -> Fraction:
        """The mechanism's step."""
        return self.mechanism.step

    @property
    def factor(self) -> AnyFactor:
        """The gate's; without one, coins that are fresh in every round."""
        if self.gate is not None:
            return self.gate.noise.process.factor
        return FreshFactor(horizon=self.horizon, window=self.window)

    @property
    def retroactive(self) -> Retroactive:
        """Exactly retroactive: fresh coins on what is live."""
        return "exact"

    @property
    def adaptive(self) -> Adaptive:
        """Fresh coins compose adaptively, as far as the gate's noise does."""
        if self.design.sampling == "persistent":
            return "no"
        return "yes" if self.gate is None else adaptive_guarantee(self.gate.noise.process)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The mechanism's answer on the round's sample, or no value where the gate is shut.

        Args:
            round_: From 1 to the horizon.
            exact: Copies of each live record, as `statistics.live` labels them.
            keys: Source of all coins.
        """
        round_within(round_, self.horizon)
        labels = self.mechanism.labels
        values: list[int | None] = [None] * (1 if labels is None else len(labels))
        if self.gate is None or self.gate.open(sum(exact.values()), round_, keys):
            sample = self.design.sample(exact, round_, release=self.name, keys=keys)
            key = keys.fresh_key(release=self.name, purpose=ANSWER, round=round_)
            values = list(self.mechanism.answer(sample, Coins(key)))
        low, high = self.mechanism.low, self.mechanism.high
        half = (high - low + 1) // 2
        return Answer(
            release=self.name,
            round=round_,
            keys=labels,
            values=tuple(values),
            step=self.step,
            stddev="",
            half=half,
            half_all=half,
            level=self.level,
            each=tuple(Bounds("", low, high, low, high) for _ in values),
        )

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """Of all samples and of the gate, for one unit."""
        return (self.charge.loss, *(() if self.gate is None else self.gate.noise.losses()))

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        facts: dict[str, Any] = {
            **self.mechanism.describe(),
            "sampling": self.design.sampling,
            "rate": float(self.design.largest_rate),
            "factor": self.factor.name,
            "step": str(self.step),
            "level": str(self.level),
        }
        if self.design.size is not None:
            facts["size"] = self.design.size
        if self.gate is not None:
            facts["gate_threshold"] = self.gate.threshold
            facts["gate_occupancy"] = self.design.occupancy
            facts["gate_delta"] = float(self.gate.delta)
        return {**facts, **dict(self.facts)}
