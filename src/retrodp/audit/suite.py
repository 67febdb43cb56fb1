"""All audits by name: what each asks, how it is run at both sizes, and what its document says.

Promise: a document names the command that gives it again, and the probability with which the audit
accuses something sound.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrodp.audit import (
    differencing,
    faults,
    game,
    price,
    privacy,
    reconstruct,
    retroactivity,
)
from retrodp.audit.coins import Seed
from retrodp.audit.report import Row, document, rows_left_out
from retrodp.audit.subjects import compiled_fillings, fillings
from retrodp.errors import UsageError
from retrodp.plan.kinds import KINDS

Progress = Callable[[str], None]

GAMES_MISS = 1e-3
"""Probability that anything sound is accused in the games of one run."""

PLANTED = frozenset({"caught", "missed"})
"""Verdicts on what is not sound, which therefore has no part in `alpha`."""


def run(
    name: str, seed: Seed, progress: Progress, *, deep: bool, only: str = ""
) -> tuple[list[Row], dict[str, Any]]:
    """Run one audit.

    Args:
        name: One of `AUDITS`.
        seed: Of all its coins and keys.
        progress: Told what comes next, and how much is left where that is known.
        deep: The long size.
        only: A kind, whose releases alone are audited; "" for all.

    Returns:
        Its rows, and the document that `--json` prints.

    Raises:
        UsageError: `only` names no kind, or one that this audit does not run on.
    """
    if only:
        _known(name, only)
    rows = AUDITS[name](seed, progress, deep, only)
    return rows, {
        **document(rows, seed=seed.hex, deep=deep),
        "audit": name,
        "only": only or None,
        "version": importlib.metadata.version("retrodp"),
        "command": command(name, seed.hex, deep=deep, only=only),
        "alpha": alpha(rows),
    }


def command(name: str, seed: str, *, deep: bool, only: str = "") -> str:
    """What gives the same document again."""
    chosen = f" --only {only}" if only else ""
    return f"retrodp audit {name} --seed {seed}{' --deep' if deep else ''}{chosen} --json"


def alpha(rows: Sequence[Row]) -> float:
    """Probability that anything sound is accused, by the union bound."""
    missed = sum(1 - row.confidence for row in rows if row.verdict not in PLANTED)
    return float(f"{missed:.6g}")


def _known(name: str, only: str) -> None:
    kinds = {kind for kind, entry in KINDS.items() if entry is not None}
    if only not in kinds:
        raise UsageError(f"There is no kind {only!r}.", expected=", ".join(sorted(kinds)))
    if name not in BY_KIND:
        raise UsageError(
            f"`audit {name}` does not go by kind.",
            do=f"Leave --only out; it goes with {' and '.join(sorted(BY_KIND))}.",
        )


def _retroactivity(seed: Seed, progress: Progress, deep: bool, only: str) -> list[Row]:  # noqa: FBT001
    size = retroactivity.DEEP if deep else retroactivity.SMOKE
    every = [*fillings(), *compiled_fillings()]
    chosen = [one for one in every if only in {"", one.table["kind"]}]
    return [*rows_left_out(only), *retroactivity.audit(seed, size, progress, chosen=chosen)]


def _privacy(seed: Seed, progress: Progress, deep: bool, only: str) -> list[Row]:  # noqa: FBT001
    size = privacy.DEEP if deep else privacy.SMOKE
    chosen = privacy.chosen_outlines(size, only=only)
    rows = rows_left_out(only)
    if not chosen and not rows:
        raise UsageError(
            f"The audit of privacy runs on no release of kind {only!r}.",
            do="Its noise is that of other kinds; `audit retroactivity --only` runs on it.",
        )
    rows += privacy.audit(seed, size, progress, chosen=chosen)
    plays = game.DEEP if deep else game.SMOKE
    rows += game.audit(seed, plays, miss=GAMES_MISS, progress=progress, only=only)
    miss = privacy.MISS / max(1, len(chosen))
    rows += faults.controls(seed, size, miss=miss, progress=progress, only=only)
    return rows


def _price(seed: Seed, progress: Progress, deep: bool, only: str) -> list[Row]:  # noqa: ARG001, FBT001
    return price.audit(seed, price.DEEP if deep else price.SMOKE, progress)


def _reconstruct(seed: Seed, progress: Progress, deep: bool, only: str) -> list[Row]:  # noqa: ARG001, FBT001
    return reconstruct.audit(seed, reconstruct.DEEP if deep else reconstruct.SMOKE, progress)


def _differencing(seed: Seed, progress: Progress, deep: bool, only: str) -> list[Row]:  # noqa: ARG001, FBT001
    return differencing.audit(seed, differencing.DEEP if deep else differencing.SMOKE, progress)


AUDITS: Mapping[str, Callable[[Seed, Progress, bool, str], list[Row]]] = {
    "retroactivity": _retroactivity,
    "privacy": _privacy,
    "reconstruct": _reconstruct,
    "differencing": _differencing,
    "price": _price,
}
BY_KIND = frozenset({"retroactivity", "privacy"})
"""Audits that run on releases of every kind."""
