"""What was promised: the plan's grammar, its expressions and the resolved plan."""

from __future__ import annotations

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.plan.kinds import Count, Histogram, Mean, Sum
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.plan.resolved import ResolvedPlan
from retrodp.plan.settings import MaxPerBin, PrivacyPlan, StreamPlan

__all__ = [
    "Column",
    "Count",
    "Expression",
    "Histogram",
    "MaxPerBin",
    "Mean",
    "Plan",
    "PrivacyPlan",
    "Release",
    "ResolvedPlan",
    "StreamPlan",
    "Sum",
]
