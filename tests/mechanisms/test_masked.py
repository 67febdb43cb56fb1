"""The Gaussian compiler: what a mask hides, against the exact laws of hidden answers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import calibrated
from retrodp.mechanisms.contract import Adaptive, Retroactive, Seen
from retrodp.mechanisms.masked import GaussianMap, Mask, Masked, MedianMap
from retrodp.mechanisms.oneshot.ranks import ratio_below
from retrodp.noise.coins import Coins
from retrodp.noise.key import KeyTree, NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.budget import PureDP
from retrodp.privacy.loss import PrivacyLoss
from tests.privacy.pairs import Pair, delta

HORIZON = 6
ALPHA_OF_ONE, BETA = Fraction(1, 2), Fraction(1, 10**4)
NOISE = calibrated("m", horizon=HORIZON, budget=PureDP(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Answers every second round anew, and repeats itself between: the simplest one with memory."""

    name: str = "m"
    retroactive: Retroactive = "no"
    adaptive: Adaptive = "yes"
    step: Fraction = Fraction(1)
    instead: str = "a count"
    watches: bool = False

    @property
    def factor(self) -> AnyFactor:
        return NOISE.process.factor

    def begin(self) -> bytes:
        return b""

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        if round_ % 2 == 1:
            noisy = sum(seen.totals.values())
            noisy += int(NOISE.draw(round_, keys, Coordinates.of_indices(1))[0])
            state = noisy.to_bytes(8, "big", signed=True)
        return NOISE.answer(round_, None, [int.from_bytes(state, "big", signed=True)]), state

    def cost(self) -> tuple[PrivacyLoss, ...]:
        return NOISE.losses()

    def describe(self) -> dict[str, Any]:
        return {"mechanism": "stale count"}


def masked(error: int) -> Masked:
    found = GaussianMap.of(error, alpha=ALPHA_OF_ONE, beta=BETA)
    return Masked(
        base=Stale(), mask=Mask(map=found, base_miss=1e-6), level=Fraction(19, 20), block=3
    )


def transcript(mechanism: Masked, counts: list[int], tree: KeyTree) -> list[int | None]:
    state, said = mechanism.begin(), []
    for round_, count in enumerate(counts, 1):
        answer, state = mechanism.advance(round_, Seen({b"": count}, {}), tree, state)
        said.append(answer.values[0])
    return said


def test_what_remembers_differs_by_the_same_noise_under_any_mask() -> None:
    """The mask hides a difference and adds none: equal keys, equal masks."""
    tree = KeyTree.from_root(bytes(range(32)), b"mask", HORIZON)
    one = transcript(masked(10), [5, 4, 4, 4], tree)
    two = transcript(masked(10), [4, 4, 4, 4], tree)
    assert [(a or 0) - (b or 0) for a, b in zip(one, two, strict=True)] == [1, 1, 0, 0]


def test_hidden_answers_are_as_close_as_promised() -> None:
    """Exact laws: discrete Gaussians of the chosen variance, 2 E apart."""
    for error in (1, 3, 20):
        found = GaussianMap.of(error, alpha=ALPHA_OF_ONE, beta=BETA)
        pair = hidden(2 * error, found.variance)
        assert delta(pair, float(ALPHA_OF_ONE)) <= float(BETA)
        tighter = hidden(2 * error, found.variance * Fraction(9, 10))
        assert delta(tighter, float(ALPHA_OF_ONE)) > float(BETA)
        assert found.paper is not None
        assert found.deviation < found.paper


def test_half_the_distance_hidden_is_caught() -> None:
    """The slip of a factor of two: E in the place of 2 E."""
    found = GaussianMap.of(10, alpha=ALPHA_OF_ONE, beta=BETA)
    assert delta(hidden(40, found.variance), float(ALPHA_OF_ONE)) > float(BETA)


def hidden(shift: int, variance: Fraction) -> Pair:
    reach = shift + math.ceil(12 * math.sqrt(variance))
    points = np.arange(-reach, reach + 1)
    one = np.exp(-(points.astype(float) ** 2) / (2 * float(variance)))
    other = np.exp(-((points - shift).astype(float) ** 2) / (2 * float(variance)))
    return Pair([*(one / one.sum())], [*(other / other.sum())])


def test_a_masked_answer_has_the_law_of_base_and_mask() -> None:
    mechanism = masked(10)
    assert isinstance(mechanism.mask.map, GaussianMap)
    found = []
    for number in range(1500):
        tree = KeyTree.from_root(number.to_bytes(32, "big"), b"law", HORIZON)
        found.append(transcript(mechanism, [50], tree)[0] or 0)
    variance = float(mechanism.mask.map.variance) + NOISE.process.variance(1)
    assert np.mean(found) == pytest.approx(50, abs=6 * math.sqrt(variance / 1500))
    assert np.var(found) == pytest.approx(variance, rel=0.25)


def test_the_interval_holds_as_often_as_stated_where_the_base_is_within_its_error() -> None:
    mechanism = masked(60)  # the base's noise stays below 60 with room
    misses = 0
    for number in range(400):
        tree = KeyTree.from_root(number.to_bytes(32, "big"), b"cover", HORIZON)
        answer, _ = mechanism.advance(1, Seen({b"": 500}, {}), tree, b"")
        assert answer.values[0] is not None
        misses += abs(answer.values[0] - 500) > answer.half
    assert misses <= 40  # 20 expected at most


def test_the_promise_of_a_block_is_described_with_the_paper_s_beside_it() -> None:
    facts = masked(10).describe()
    assert facts["alpha"] == 0.5
    assert facts["beta"] == pytest.approx(1e-4 + (2 + math.exp(0.5)) * 1e-6)
    assert facts["block_alpha"] < facts["block_alpha_of_the_paper"] <= 3 * 0.5 + 1e-6
    assert facts["mask_deviation"] < facts["mask_deviation_of_the_paper"]
    assert masked(10).retroactive == "marginal"


@pytest.mark.parametrize("changed", [0, 1, 3])
def test_medians_of_close_estimates_are_close(changed: int) -> None:
    """Exact laws on a small grid: estimates within 2 E of one another everywhere."""
    error, alpha = 2, Fraction(3, 4)
    found = MedianMap(error=error, alpha=alpha)
    ratio = ratio_below(alpha / (12 * error))
    one = [3, 9, 9, 14, 20]
    other = [count + shift for count, shift in zip(one, (4, -4, 4, -4, changed), strict=True)]

    def law(counts: list[int]) -> list[float]:
        weights = [float(ratio ** -abs(2 * count - counts[-1])) for count in counts]
        return [weight / sum(weights) for weight in weights]

    pair = Pair(law(one), law(other))
    assert delta(pair, float(alpha)) == 0
    assert delta(pair.reversed, float(alpha)) == 0
    drawn = Counter(found.hide(one, Coins(bytes([n] * 32)))[0] for n in range(250))
    assert drawn.keys() <= set(range(5))
    assert found.one == (0.75, 0.0)


def test_a_median_of_a_sharp_estimate_is_near_the_middle() -> None:
    found = MedianMap(error=1, alpha=Fraction(1))
    counts = [100 * place for place in range(1, 101)]
    error = found.rank_error(100, 0.01)
    places = [found.hide(counts, Coins(bytes([n] * 32)))[0] for n in range(100)]
    assert sum(abs(counts[place] - 5_000) > error + 50 for place in places) <= 4


def test_only_gaussian_masks_are_composed_exactly() -> None:
    mask = Mask(map=MedianMap(error=1, alpha=Fraction(1)), base_miss=0.0)
    assert mask.block(3, slack=1e-6).alpha == pytest.approx(3, rel=1e-6)
    with pytest.raises(PlanError):
        mask.tight_block(3, beta=1e-6)
