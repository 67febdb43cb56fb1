"""Compiled loops draw what vectors draw; run here without a compiler, and with it if there is one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from retrodp.errors import UsageError
from retrodp.noise import compiled, sampler
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates
from tests.noise.slow_reference import Law
from tests.noise.test_sampler import LARGE, SMALL, law_of
from tests.noise.test_sampler import (
    test_a_low_digit_of_zero_is_always_accepted as low_digit_of_zero,
)
from tests.noise.test_sampler import (
    test_a_word_equal_to_a_threshold_is_decided_by_what_follows as word_at_a_threshold,
)
from tests.noise.test_sampler import (
    test_far_tails_are_exact as far_tails,
)
from tests.noise.test_sampler import (
    test_minus_zero_is_refused_and_zero_is_not as minus_zero,
)
from tests.noise.test_sampler import (
    test_near_ties_of_the_acceptance_are_exact as near_ties_of_the_acceptance,
)

PRF = BlockPRF(bytes(range(32)))
NUMBA = importlib.util.find_spec("numba") is not None


@pytest.fixture(
    params=[
        "plain",
        pytest.param("numba", marks=pytest.mark.skipif(not NUMBA, reason="no compiler")),
    ]
)
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "numba":
        compiled.enable()
    else:
        sampler.use_loops(compiled.small, compiled.large)
    yield
    compiled.disable()


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_loops_draw_what_vectors_draw(law: Law) -> None:
    """Enough draws for refusals, so that second attempts are compared too."""
    where = Coordinates.of_indices(1500)
    looped = law_of(law).draw(PRF, where)
    compiled.disable()
    assert law_of(law).draw(PRF, where).tobytes() == looped.tobytes()


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("law", LARGE[1::3], ids=str)
def test_loops_leave_narrow_decisions_to_integers(law: Law) -> None:
    """The same chosen blocks as for vectors, against the slow reference."""
    low_digit_of_zero(law)
    minus_zero(law)
    near_ties_of_the_acceptance(law, 1)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_loops_leave_far_tails_to_integers(law: Law) -> None:
    far_tails(law, 2)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("law", [*SMALL[1:5], *SMALL[6:], *LARGE], ids=str)
def test_loops_leave_ties_to_integers(law: Law) -> None:
    word_at_a_threshold(law)


def test_the_compiler_is_asked_for_and_never_assumed() -> None:
    assert sampler._loops.small is None
    if not NUMBA:
        with pytest.raises(UsageError, match="Numba"):
            compiled.enable()
        assert sampler._loops.small is None


def test_twin_a_loop_with_another_table_is_noticed() -> None:
    where = Coordinates.of_indices(200)
    law, other = DiscreteLaplace(scale=Fraction(3)), DiscreteGaussian(variance=Fraction(9))
    assert not np.array_equal(law.draw(PRF, where), other.draw(PRF, where))
