"""What arrives: sources, the calendar, the rules of form and of ids."""

from __future__ import annotations

from retrodp.stream.batch import Batch
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Intake, Taken, Tally
from retrodp.stream.rejected import RefusedRow, write_rejected
from retrodp.stream.sources import (
    Layout,
    RawBatch,
    expand,
    read_file,
    read_frame,
    read_stream,
)
from retrodp.stream.update import Arrivals, Changes, Op, QueuedUpdate, Record

__all__ = [
    "Arrivals",
    "Batch",
    "Changes",
    "Clock",
    "Intake",
    "Layout",
    "Op",
    "QueuedUpdate",
    "RawBatch",
    "Record",
    "RefusedRow",
    "Taken",
    "Tally",
    "expand",
    "read_file",
    "read_frame",
    "read_stream",
    "write_rejected",
]
