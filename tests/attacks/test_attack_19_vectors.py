"""Attack 19 for vectors: no record moves a clipped vector by more than it is charged for."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from retrodp.engine.store import Store
from tests.support.vectors import CLIPPED, GRAM, MODELS, Model, plan


@pytest.mark.parametrize("release", [CLIPPED, GRAM], ids=["clipped", "gram"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("x", "y"), [(2, 1.5), (-1e9, 1.26), (1.74, 1e9)])
def test_no_record_exceeds_the_norms_that_are_charged(
    ram: Path, x: float, y: float, model: Model, release: str
) -> None:
    row = {
        "id": "1",
        "who": "ann",
        "word": "tea",
        "region": "north",
        "gift": True,
        "x": float(x),
        "y": float(y),
    }
    with Store.create_for_tests(ram / "store", plan(release, model=model)) as store:
        store.add(pa.Table.from_pylist([row]))
        store.close_round()
        (compiled,) = store.releases
        totals = store.ledger.read_totals(compiled.name)
    components = compiled.statistic.components
    prefix = "{}\n" if len(components) > 1 else ""
    spent, allowed = [], []
    for component in components:
        start = prefix.format(component.name).encode()
        vector = [total for label, total in totals.items() if label.startswith(start)]
        norms = component.norms or (component.amount, component.amount**2)
        if model == "pure":
            spent.append(sum(map(abs, vector)))
            allowed.append(norms[0])
        else:
            spent.append(sum(value**2 for value in vector))
            allowed.append(norms[1])
    assert [one <= most for one, most in zip(spent, allowed, strict=True)] == [True] * len(
        components
    )
    assert any(spent)


def test_twin_rounding_to_the_nearest_step_after_the_clip_exceeds_the_norm() -> None:
    """Three equal coordinates scaled to a norm of three steps: 1.73 each, rounded to 2."""
    norm, coordinate = 3.0, 3.0 / math.sqrt(3)
    assert math.hypot(*[round(coordinate)] * 3) > 1.15 * norm
