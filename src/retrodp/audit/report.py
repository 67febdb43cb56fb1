"""What an audit says: one row a test, with claim, measure, confidence and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from retrodp.audit.subjects import left_out

FORMAT = 1

Verdict = Literal["holds", "accused", "as stated", "caught", "missed", "left out"]
"""`holds`: nothing found against the claim. `accused`: the claim is false, up to the stated
confidence. `as stated`: the contract promises nothing here, and the measure shows why. `caught`
and `missed`: a planted fault, which the same test had to find. `left out`: not audited, because
it cannot be made here."""

FAILURES: frozenset[Verdict] = frozenset({"accused", "missed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Outcome of one test of one mechanism.

    Attributes:
        mechanism: The release, in words.
        model: "zcdp" or "pure".
        factor: How noise is shared between rounds.
        test: What was tried.
        claim: What is promised.
        measured: What was found.
        confidence: Probability with which a sound mechanism is not accused by this row.
        verdict: See `Verdict`.
        details: Further numbers, for machines.
    """

    mechanism: str
    model: str
    factor: str
    test: str
    claim: str
    measured: str
    confidence: float
    verdict: Verdict
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "mechanism": self.mechanism,
            "model": self.model,
            "factor": self.factor,
            "test": self.test,
            "claim": self.claim,
            "measured": self.measured,
            "confidence": self.confidence,
            "verdict": self.verdict,
            **self.details,
        }


def rows_left_out(only: str = "") -> list[Row]:
    """One for every kind that is not audited because an optional dependency is missing.

    Args:
        only: A kind; "" for all.
    """
    return [
        Row(
            mechanism=kind,
            model="",
            factor="",
            test="left out",
            claim="not audited",
            measured=do,
            confidence=1.0,
            verdict="left out",
        )
        for kind, do in left_out().items()
        if only in {"", kind}
    ]


def failed(rows: Sequence[Row]) -> bool:
    """Whether anything is accused, or a planted fault was missed."""
    return any(row.verdict in FAILURES for row in rows)


def document(rows: Sequence[Row], *, seed: str, deep: bool) -> dict[str, Any]:
    """The whole audit as one JSON document."""
    return {
        "format": FORMAT,
        "seed": seed,
        "deep": deep,
        "passed": not failed(rows),
        "counts": {
            verdict: sum(row.verdict == verdict for row in rows)
            for verdict in ("holds", "as stated", "caught", "accused", "missed", "left out")
        },
        "rows": [row.to_json() for row in rows],
    }
