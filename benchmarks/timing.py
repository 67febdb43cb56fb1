"""How fast a call is: processor time and wall time, best and median of repeated calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Rate:
    """Items a second.

    Attributes:
        best: From the least processor time of a call; all threads count.
        typical: From the median processor time.
        wall: From the median wall time; on a busy machine it says little.
    """

    best: float
    typical: float
    wall: float


def rate(call: Callable[[], object], items: int, *, seconds: float = 0.8, least: int = 3) -> Rate:
    """Repeat a call for about `seconds`, at least `least` times, after one call to warm up."""
    call()
    return cold_rate(call, items, seconds=seconds, least=least)


def cold_rate(
    call: Callable[[], object], items: int, *, seconds: float = 0.0, least: int = 1
) -> Rate:
    """The same without the call to warm up, for what takes long."""
    processor: list[float] = []
    wall: list[float] = []
    end = time.perf_counter() + seconds
    while len(wall) < least or time.perf_counter() < end:
        before, wall_before = time.process_time(), time.perf_counter()
        call()
        processor.append(max(time.process_time() - before, 1e-9))
        wall.append(max(time.perf_counter() - wall_before, 1e-9))
    return Rate(items / min(processor), items / median(processor), items / median(wall))
