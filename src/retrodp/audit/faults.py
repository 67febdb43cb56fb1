"""Planted faults of privacy, each in the smallest plan that has it: all must be caught.

A fault keeps the claim of the sound mechanism it replaces, and is audited like any other case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from retrodp.audit import misuse
from retrodp.audit.cases import EPSILON, TOGETHER, Case, Together, kinds_of
from retrodp.audit.coins import Seed
from retrodp.audit.misuse import Tamper
from retrodp.audit.privacy import Size, rows_of
from retrodp.audit.report import FAILURES, Row
from retrodp.audit.subjects import Model, Stream
from retrodp.audit.tamper import by_rule

COUNT: Together = {"r": {"kind": "count"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault and the smallest plan that has it.

    Attributes:
        title: What is wrong.
        tamper: Puts it into a mechanism.
        tables: Releases of the plan.
        model: Of the plan.
        stream: Of the plan.
        horizon: Rounds; None for the audit's.
        runs: At least so many, where the audit itself draws fewer.
        asked: Runs where the release is asked as it stands; 0 for the audit's number.
        epsilon: Of the plan.
        windows: Tried; None for the audit's number.
    """

    title: str
    tamper: Tamper
    tables: Together = field(default_factory=lambda: COUNT)
    model: Model = "pure"
    stream: Stream = "ids"
    horizon: int | None = None
    runs: int = 0
    asked: int = 0
    epsilon: int = EPSILON
    windows: int | None = None

    def case(self, horizon: int) -> Case:
        """The sound case; `planted` breaks it."""
        return Case.of(
            self.title,
            self.tables,
            model=self.model,
            stream=self.stream,
            horizon=self.horizon or horizon,
            epsilon=self.epsilon,
        )

    def planted(self, horizon: int) -> Case:
        """The case with the fault; the claim stays."""
        return self.case(horizon).tampered(self.tamper)


def _count(factor: str) -> Together:
    return {"r": {"kind": "count", "factor": factor}}


_SPARSE: Together = {"r": {"kind": "histogram", "by": "product"}}
_SUM: Together = {"r": {"kind": "sum", "of": "amount"}}
_TREE: Together = {"r": {"kind": "quantiles", "of": "amount", "at": [0.5]}}
_CUBE: Together = {"r": {"kind": "cube", "by": ["country", "gift"]}}
_BINS: Together = {"r": {"kind": "histogram", "by": "country"}}

# Asked once a key, which is slow: little is drawn, and the claim is one that little can break.
_ASKED: Any = {"epsilon": 1, "windows": 1, "asked": 500, "horizon": 7}
_MORE: Any = {**_ASKED, "asked": 1_300}

_halved = misuse.too_small(Fraction(2))
_shared = misuse.misused(misuse.shared_by_two)
_coarse = misuse.misused(misuse.without_finest)
_fresh = misuse.fresh_charged_once
_one_sided = misuse.additions_only
_lower = misuse.lower_threshold

FAULTS: tuple[Fault, ...] = (
    Fault(title="scale halved, Laplace", tamper=_halved, tables=_count("binary")),
    Fault(title="scale halved, Gaussian", tamper=_halved, model="zcdp"),
    Fault(
        title="scale too small by 1.5, Gaussian",
        tamper=misuse.too_small(Fraction(3, 2)),
        model="zcdp",
    ),
    Fault(title="node shared by two rounds, Laplace", tamper=_shared, tables=_count("binary")),
    Fault(
        title="node shared by two rounds, Gaussian",
        tamper=_shared,
        tables=_count("binary"),
        model="zcdp",
    ),
    Fault(title="node left out, haar", tamper=_coarse, tables=_count("haar"), model="zcdp"),
    Fault(title="node left out, binary", tamper=_coarse, tables=_count("binary")),
    Fault(
        title="delannoy without sides",
        tamper=misuse.misused(misuse.without_sides),
        tables=_count("delannoy"),
    ),
    Fault(title="drawn anew every round, charged once, Laplace", tamper=_fresh),
    Fault(title="drawn anew every round, charged once, Gaussian", tamper=_fresh, model="zcdp"),
    Fault(title="charged for additions only, Laplace", tamper=_one_sided, tables=_count("binary")),
    Fault(
        title="charged for additions only, Gaussian",
        tamper=_one_sided,
        tables=_count("binary"),
        model="zcdp",
        horizon=15,
        runs=60_000,
    ),
    Fault(
        title="a person's records charged as one, Laplace",
        tamper=misuse.one_record,
        stream="persons",
    ),
    Fault(
        title="a person's records charged as one, Gaussian",
        tamper=misuse.one_record,
        stream="persons",
        model="zcdp",
    ),
    Fault(title="a sum charged as a count", tamper=misuse.amount_of_one, tables=_SUM),
    Fault(
        title="levels of a tree charged as one",  # seven of them: the root of 7 is above 5/2
        tamper=misuse.too_small(Fraction(5, 2)),
        tables=_TREE,
        model="zcdp",
    ),
    Fault(
        title="tables of a cube charged as one",  # three of them
        tamper=misuse.too_small(Fraction(17, 10)),
        tables=_CUBE,
        model="zcdp",
    ),
    Fault(
        title="two releases under one label",
        tamper=misuse.one_label,
        tables=TOGETHER["two counts"],
        model="zcdp",
    ),
    Fault(title="threshold one too low, Laplace", tamper=_lower(1), tables=_SPARSE),
    Fault(title="threshold one too low, Gaussian", tamper=_lower(1), tables=_SPARSE, model="zcdp"),
    Fault(title="no threshold", tamper=_lower(10**6), tables=_SPARSE),
    Fault(title="all bins share one draw", tamper=by_rule(misuse.one_draw), tables=_BINS, **_ASKED),
    Fault(
        title="noise keyed by the bin's place",
        tamper=by_rule(misuse.by_place),
        tables=_SPARSE,
        **_MORE,
    ),
    Fault(title="noise keyed by the data", tamper=by_rule(misuse.noise_of_data), **_MORE),
    Fault(title="even noise shows the parity", tamper=by_rule(misuse.even_noise), **_ASKED),
    Fault(
        title="float noise shows its low bits",
        tamper=by_rule(misuse.float_noise),
        horizon=3,
        epsilon=1,
        windows=1,
        asked=6_000,
    ),
)


def audit_fault(fault: Fault, seed: Seed, size: Size, *, miss: float) -> list[Row]:
    """All rows that the audit gives for a planted fault."""
    own = replace(
        size,
        runs=max(size.runs, fault.runs),
        asked=fault.asked or size.asked,
        windows=fault.windows or size.windows,
    )
    return list(rows_of(fault.planted(size.horizon), seed, own, miss=miss))


def controls(
    seed: Seed,
    size: Size,
    *,
    miss: float,
    progress: Callable[[str], None] = lambda _: None,
    only: str = "",
) -> Iterator[Row]:
    """One row for each fault: caught by the row of the audit that accuses it, or missed.

    Faults that have to be asked once a key are slow, and left out of the short audit.

    Args:
        seed: Of keys.
        size: As the audit itself uses it.
        miss: Of one case, as the audit itself uses it.
        progress: Told what comes next.
        only: A kind, in whose plans alone faults are planted; "" for all.
    """
    chosen = [
        (number, fault)
        for number, fault in enumerate(FAULTS)
        if (size.deep or not fault.asked) and only in {"", *kinds_of(fault.tables)}
    ]
    for done, (number, fault) in enumerate(chosen, start=1):
        progress(f"planted fault {done} of {len(chosen)}: {fault.title}")
        rows = audit_fault(fault, seed.further("fault", number), size, miss=miss)
        accusing = [row for row in rows if row.verdict in FAILURES]
        shown = accusing[0] if accusing else rows[0]
        yield Row(
            mechanism=fault.title,
            model=fault.model,
            factor=shown.factor,
            test=f"planted fault, {shown.test}",
            claim=shown.claim,
            measured=shown.measured,
            confidence=shown.confidence,
            verdict="caught" if accusing else "missed",
            details=shown.details,
        )
