"""Small plans for the tests of this folder."""

from __future__ import annotations

from retrodp.plan.plan import Plan
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Intake

DAYS = """
[stream]
start = {start}
round = "1d"
timezone = "Europe/London"
horizon = 10
{stream}

[columns]
who = "text"
kind = {{ type = "category", values = ["tea", "ink"], other = true }}
amount = {{ type = "number", min = -5, max = 50, step = 0.5 }}
{columns}

[privacy]
model = "zcdp"
epsilon = 1.0
delta = 1e-9

[release.lines]
kind = "count"
"""

PERSON_UNIT = 'unit = "person_round"\nperson = "who"\nmax_records = 5'


def intake(stream: str = "", columns: str = "", *, start: str = "2020-03-27") -> Intake:
    """Ten days in London, from 2020-03-27: the clocks go forward on 03-29 at 01:00."""
    plan = Plan.loads(DAYS.format(start=start, stream=stream, columns=columns))
    return Intake(plan, Clock.of_stream(plan.stream))
