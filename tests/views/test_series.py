from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retrodp.errors import PlanError, UsageError
from retrodp.views.published import Published
from retrodp.views.series import key_series, scalar_series, top_keys
from tests.views import stores


@pytest.fixture
def published(tmp_path: Path) -> Published:
    days = [
        stores.usual(1, {}),
        stores.usual(2, {"Tea": 400, "Jam": 500}),
        stores.usual(3, {"Tea": 600}),
    ]
    return Published.open(stores.store_of(tmp_path / "store", days))


def test_a_scalar_over_the_rounds(published: Published) -> None:
    found = scalar_series(published, "lines")
    assert found.rounds.tolist() == [1, 2, 3]
    assert found.value.tolist() == [1007, 2007, 3007]
    half = published.entries["lines"]["noise"]["half"][:3]
    half_all = published.entries["lines"]["noise"]["half_all"][:3]
    assert (found.high - found.value).tolist() == (found.value - found.low).tolist() == half
    assert (found.high_all - found.low_all).tolist() == [2 * width for width in half_all]


def test_a_sum_is_in_units_of_the_statistic(published: Published) -> None:
    found = scalar_series(published, "revenue").value
    np.testing.assert_allclose(found, [-617.3, -617.35, -617.4], rtol=1e-15)


def test_a_label_that_is_not_published_is_nan_and_not_zero(published: Published) -> None:
    found = key_series(published, "by_product", ["Tea", "Jam"])
    np.testing.assert_array_equal(found["Tea"].value, [np.nan, 400, 600])
    np.testing.assert_array_equal(found["Jam"].value, [np.nan, 500, np.nan])
    assert found["Tea"].absent_below == published.entries["by_product"]["threshold"]


@pytest.mark.parametrize("top", [-1, 2.0, float("nan"), True])
def test_a_number_of_bins_is_a_whole_number(published: Published, top: int) -> None:
    with pytest.raises(PlanError, match="top must be a whole number"):
        top_keys(published, "by_country", top)


def test_the_largest_bins_of_the_last_round(published: Published) -> None:
    assert top_keys(published, "by_country", 2) == ("France", "other")


def test_a_scalar_has_no_keys(published: Published) -> None:
    with pytest.raises(UsageError, match="no keys"):
        key_series(published, "lines", ["Tea"])
    assert top_keys(published, "lines", 3) == ()


def test_a_histogram_needs_a_key(published: Published) -> None:
    with pytest.raises(UsageError, match="Name the key"):
        scalar_series(published, "by_country")


def test_a_release_that_the_plan_has_not_is_wrong_use(published: Published) -> None:
    with pytest.raises(UsageError, match="no release"):
        scalar_series(published, "x")


def test_an_empty_store_gives_empty_series(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "empty", 0) as empty:
        assert scalar_series(empty, "lines").value.shape == (0,)
        assert top_keys(empty, "by_product", 3) == ()
