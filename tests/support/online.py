"""Plans and streams of points for the kinds that cluster online."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from retrodp.plan.plan import Plan

COLUMN = '{ type = "number", min = -5, max = 5, step = 0.01 }'
_PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = {horizon}
forgetting = "{forgetting}"
{stream}
[columns]
{texts}
x = {column}
y = {column}
[privacy]
model = "{model}"
epsilon = {epsilon}
delta = 1e-6
forward_secrecy = {secrecy}
[release.places]
kind = "{kind}"
of = ["x", "y"]
k = {k}
{keys}
"""


def plan(
    *,
    kind: str = "online_kmeans",
    k: int = 2,
    horizon: int = 8,
    epsilon: float = 8,
    keys: str = "",
    stream: str = "",
    forgetting: str = "partial",
    column: str = COLUMN,
    texts: str = "",
    model: str = "zcdp",
    secrecy: bool = True,
) -> Plan:
    """One release of points in a box ten units wide, in hundredths."""
    return Plan.loads(
        _PLAN.format(
            horizon=horizon,
            forgetting=forgetting,
            stream=stream,
            column=column,
            texts=texts,
            model=model,
            epsilon=epsilon,
            secrecy=str(secrecy).lower(),
            kind=kind,
            k=k,
            keys=keys,
        )
    )


START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def rows(first: int, last: int, day: int = 1) -> list[dict[str, Any]]:
    """Additions of one day: points around (-3, 2) and (3, -1), by turns."""
    return [
        {"id": f"point-{number}", "at": moment(day, number), "x": x / 100, "y": y / 100}
        for number, (x, y) in enumerate(places(first, last), start=first)
    ]


def places(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Points in hundredths."""
    for number in range(first, last):
        side = number % 2
        x, y = (-300, 200) if side else (300, -100)
        yield x + number * 37 % 100 - 50, y + number * 53 % 100 - 50


def moment(day: int, second: int = 0) -> str:
    """An instant of a day of the plan."""
    return (START + dt.timedelta(days=day - 1, seconds=second)).isoformat()
