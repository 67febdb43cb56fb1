"""Hold the revised releases against the table, and against publishing again every day.

    python examples/italy_revised/measure.py STORE

It reads what was published and the table, no ledger and no key. Every published number (365 days of
publication, up to 365 days each) is compared with what the table said of that day on that day.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Answer
from retrodp.views.published import Published

Counts = NDArray[np.int64]


def _of_the_other_example(name: str) -> Any:
    """A script of `examples/italy`, under a name of its own."""
    path = Path(__file__).parents[1] / "italy" / f"{name}.py"
    spec = spec_from_file_location(f"italy_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[f"italy_{name}"] = module
    spec.loader.exec_module(module)
    return module


italy = _of_the_other_example("make_updates")
changes, updates, START = italy.changes, italy.updates, italy.START


def round_of(at: str) -> int:
    """Round of a publication or of a day."""
    days: int = (date.fromisoformat(at[:10]) - START).days
    return days + 1


def known(rounds: int, regions: list[str]) -> Iterator[Counts]:
    """Cases by region and day as the table had them at the end of each round, shape (regions, days)."""
    place = {region: row for row, region in enumerate(regions)}
    made: list[list[tuple[int, int, int]]] = [[] for _ in range(rounds + 1)]
    for update in updates(changes(days=rounds)):
        stamp = round_of(update.day)
        made[round_of(update.at)].append((place[update.place.region], stamp - 1, update.cases))
    stand = np.zeros((len(regions), rounds), dtype=np.int64)
    for round_ in range(1, rounds + 1):
        for row, column, cases in made[round_]:
            stand[row, column] += cases
        yield stand[:, :round_].copy()


@dataclass(slots=True)
class Errors:
    """How far published numbers are off, and how often they lie within their intervals."""

    squares: float = 0.0
    inside: int = 0
    total: int = 0

    def add(self, published: Counts, exact: Counts, half: Counts) -> None:
        off = (published - exact).astype(np.float64)
        self.squares += float((off**2).sum())
        self.inside += int((np.abs(off) <= half).sum())
        self.total += off.size

    @property
    def rms(self) -> float:
        return math.sqrt(self.squares / self.total)


def values_of(answer: Answer, rows: int) -> tuple[Counts, Counts]:
    """Published numbers, shape (rows, days), and half widths, shape (days,)."""
    values = np.array(answer.values, dtype=np.int64).reshape(rows, -1)
    assert answer.spreads is not None
    return values, np.array([spread.half for spread in answer.spreads], dtype=np.int64)


def measured(published: Published) -> dict[str, Errors]:
    """Errors of the releases, and of sums of a release's days."""
    regions = sorted({update.place.region for update in updates(changes(days=60))}, key=str.encode)
    found = {name: Errors() for name in ("by_region", "cases", "so_far", "sums")}
    for round_, exact in enumerate(known(published.last_round, regions), start=1):
        answers = published.answers(round_)
        nation = exact.sum(axis=0)[None]
        truths = {"by_region": exact, "cases": nation, "so_far": nation.cumsum(axis=1)}
        for name, truth in truths.items():
            values, half = values_of(answers[name], len(truth))
            found[name].add(values, truth, half)
        summed = values_of(answers["cases"], 1)[0].cumsum(axis=1)
        found["sums"].add(summed, truths["so_far"], np.zeros(round_, dtype=np.int64))
    return found


def again(published: Published, release: str) -> tuple[float, float]:
    """Errors at the release's budget of publishing again every day, each day a T-th of it.

    Fresh noise on every day's number, and a fresh binary tree over the days (mean of all days).
    """
    entry, horizon = published.entries[release], published.horizon
    rho = Fraction(published.resolved.budget["rho"]) * Fraction(entry["share"])
    fresh = math.sqrt(horizon / (2 * float(rho)))
    levels = horizon.bit_length()
    bits = sum(day.bit_count() for day in range(1, horizon + 1)) / horizon
    return fresh, fresh * math.sqrt(levels * bits)


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    with Published.open(Path(arguments[0])) as published:
        found = measured(published)
        print(f"round {published.last_round}, from {published.start_text(published.last_round)}")
        for name in ("by_region", "cases", "so_far"):
            share = found[name].inside / found[name].total
            print(f"{name}: {share:.2%} of {found[name].total:,} numbers are within their interval")
        print()
        print(f"{'typical error of a number (root mean square)':52}{'retrodp':>9}{'again':>9}")
        rows = [
            ("cases of a day, by region", found["by_region"].rms, again(published, "by_region")[0]),
            ("cases of a day, Italy", found["cases"].rms, again(published, "cases")[0]),
            ("cases up to a day, Italy", found["so_far"].rms, again(published, "so_far")[1]),
            ("the same from sums of days", found["sums"].rms, None),
        ]
        for what, own, other in rows:
            print(f"{what:52}{own:9.1f}" + ("" if other is None else f"{other:9.1f}"))


if __name__ == "__main__":
    main(sys.argv[1:])
