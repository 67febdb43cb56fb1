"""The nearest sequence that never falls.

Promise: sees noisy numbers only, and is a function of them alone.
"""

from __future__ import annotations

from collections.abc import Sequence


def never_falling(values: Sequence[int]) -> list[int]:
    """Least-squares fit of a sequence that never falls, rounded to whole numbers, halves up.

    If the true sequence never falls, the fit is nearer to it than `values` are, in squared error.
    Runs that fall are replaced by their means (pool adjacent violators: Ayer et al. 1955); means
    that are in order stay so when they are rounded. Exact. Time: linear.
    """
    runs: list[tuple[int, int]] = []  # sum and length, means rising strictly
    for value in values:
        total, length = value, 1
        while runs and runs[-1][0] * length >= total * runs[-1][1]:
            before, many = runs.pop()
            total, length = total + before, length + many
        runs.append((total, length))
    return [(2 * total + length) // (2 * length) for total, length in runs for _ in range(length)]
