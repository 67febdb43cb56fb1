from __future__ import annotations

import pandas as pd
import pytest

from retrodp.errors import DataError
from retrodp.plan import Column
from tests.plan.test_columns import DAY, FLAG, KIND, MONEY, TEXT


@pytest.mark.parametrize("column", [TEXT, KIND, FLAG, DAY], ids=lambda column: column.type)
@pytest.mark.parametrize("marker", [pd.NA, pd.NaT], ids=repr)
def test_a_missing_marker_of_pandas_is_null(column: Column, marker: object) -> None:
    assert column.encode(marker) is None


@pytest.mark.parametrize("marker", [pd.NA, pd.NaT], ids=repr)
def test_a_missing_number_of_pandas_is_refused_like_null(marker: object) -> None:
    with pytest.raises(DataError, match="missing"):
        MONEY.encode(marker)
