"""The report of audits: from their documents to verdicts with figures, alpha, power and commands.

Promise: everything is taken from documents that `retrodp audit NAME --json` printed, so that a long
campaign is reported without running again, and a short one in the same form. Knows no mechanism.
"""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from retrodp.errors import UsageError

FORMAT = 1

Json = Mapping[str, Any]

TITLES = {
    "retroactivity": "Retroactivity, by law",
    "privacy": "Privacy, measured",
    "reconstruct": "Attack: secret bits read out of counts",
    "differencing": "Attack: two publications subtracted",
    "price": "The price of forgetting",
}
"""What a report shows, in this order."""

QUESTIONS = {
    "retroactivity": (
        "Two histories that end with the same surviving records: does every release publish the same "
        "bytes from there on?"
    ),
    "privacy": (
        "Two streams that differ in one unit: how well can anybody tell them apart from all "
        "publications, beside what epsilon and delta allow?"
    ),
    "reconstruct": (
        "A stream of additions and deletions is arranged to ask about secrets: how many are read out "
        "of exact counts, of counts with too little noise, and of ours?"
    ),
    "differencing": (
        "Somebody is deleted between two publications: how often does the difference tell what she "
        "had answered?"
    ),
    "price": (
        "How much more exact would a count of different items be that remembers what was deleted?"
    ),
}
_PLANTED = "planted fault"
_NEIGHBOURS = "neighbouring streams"


def document(documents: Sequence[Json], *, statement: Json | None = None) -> dict[str, Any]:
    """The report as a JSON document.

    Args:
        documents: What the audits printed, any order; at most one of each.
        statement: The privacy statement of a store, to stand in the report.

    Returns:
        `passed`; under `audits` one entry an audit with `verdict`, `alpha`, `power`, `command`, `seed`,
        `tables` (texts) and the whole `document`; `missing` audits; `statement`.

    Raises:
        UsageError: A document is of no audit that is known, or two are of one.
    """
    named: dict[str, Json] = {}
    for one in documents:
        name = str(one["audit"])
        if name not in TITLES:
            raise UsageError(f"There is no audit {name!r}.", expected=", ".join(TITLES))
        if name in named:
            raise UsageError(f"Two documents are of the audit {name!r}.", do="Give one of them.")
        named[name] = one
    found = [_whole(name, named[name]) for name in TITLES if name in named]
    return {
        "format": FORMAT,
        "version": importlib.metadata.version("retrodp"),
        "passed": all(one["passed"] for one in found),
        "missing": [name for name in TITLES if name not in named],
        "audits": found,
        "statement": statement,
    }


def _whole(name: str, one: Json) -> dict[str, Any]:
    try:
        return _audit(name, one)
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"The document of the audit {name!r} is not whole ({type(error).__name__}: {error}).",
            do="Take it as `retrodp audit --json` of this version prints it.",
        ) from None


def _audit(name: str, one: Json) -> dict[str, Any]:
    rows: list[Json] = one["rows"]
    bad = [row for row in rows if row["verdict"] in {"accused", "missed"}]
    return {
        "audit": name,
        "title": TITLES[name],
        "question": QUESTIONS[name],
        "verdict": _verdict(name, rows, bad),
        "passed": not bad,
        "counts": one["counts"],
        "alpha": one["alpha"],
        "alpha_means": _alpha(one["alpha"]),
        "power": _power(name, rows),
        "seed": one["seed"],
        "size": "deep" if one["deep"] else "short",
        "only": one.get("only"),
        "version": one.get("version"),
        "command": one["command"],
        "against": [
            f"{row['verdict'].upper()}: {_named(row)}, {row['test']}: {row['measured']} against "
            f"{row['claim']}"
            for row in bad
        ],
        "left_out": [f"{row['mechanism']}: {row['measured']}" for row in _of(rows, "left out")],
        "tables": _tables(name, rows),
        "document": one,
    }


def _of(rows: Sequence[Json], *verdicts: str) -> list[Json]:
    return [row for row in rows if row["verdict"] in verdicts]


def _named(row: Json) -> str:
    return ", ".join(part for part in (row["mechanism"], row["model"], row["factor"]) if part)


def _alpha(alpha: float) -> str:
    if alpha == 0:
        return "Nothing sound can be accused: bytes are compared, no chance is involved."
    return f"All rows of a run together accuse something sound with a probability of at most {alpha:.2g}."


# What was found, in a sentence.


def _verdict(name: str, rows: Sequence[Json], bad: Sequence[Json]) -> str:
    if bad:
        return f"FAILED in {_number(len(bad), 'row')}, listed below."
    match name:
        case "retroactivity":
            return _on_retroactivity(rows)
        case "privacy":
            return _on_privacy(rows)
        case "price":
            return _on_price(rows)
        case _:
            return _on_attack(rows)


def _on_retroactivity(rows: Sequence[Json]) -> str:
    equal = [row for row in rows if row["verdict"] == "holds"]
    pairs = sum(row.get("pairs", 0) for row in equal)
    stated = {row["mechanism"] for row in _of(rows, "as stated")}
    others = f"; {len(stated)} promise less, and differ as they say" if stated else ""
    return (
        f"{_number(len(equal), 'release')} published equal bytes in all of {pairs:,} comparisons "
        f"of histories that unite{others}."
    )


def _on_privacy(rows: Sequence[Json]) -> str:
    measured = _neighbours(rows)
    if not measured:
        return "Nothing was found against any claim."
    closest = max(measured, key=_reached)
    return (
        f"No lower bound exceeds its claim in {_number(len(measured), 'plan')}; the closest reaches "
        f"{_reached(closest):.0%} of it ({_named(closest)})."
    )


def _on_attack(rows: Sequence[Json]) -> str:
    read = {row["verdict"]: row for row in rows if row["deviation"] == 0}
    ours = [row for row in rows if row["cap"] is not None]
    if not ours or not read:
        return "Nothing was found against any claim."
    exact, most = next(iter(read.values())), max(ours, key=lambda row: float(row["accuracy"]))
    return (
        f"Of exact numbers that forget perfectly {exact['accuracy']:.1%} of the secrets were read; of "
        f"ours at most {most['accuracy']:.1%}, a coin being right in 50% ({_named(most)})."
    )


def _on_price(rows: Sequence[Json]) -> str:
    found = [row for row in rows if "crossing" in row]
    if not found:
        return "Errors are as predicted."
    return (
        f"Errors are as predicted. Memory pays while items come or go fewer than "
        f"{found[0]['crossing']} times each in {found[0]['horizon']:,} rounds; then it buys nothing."
    )


# How much it says.


def _power(name: str, rows: Sequence[Json]) -> str:
    planted = _planted(rows)
    caught = sum(row["verdict"] == "caught" for row in planted)
    parts = [f"{caught} of {_number(len(planted), 'planted fault')} caught"] if planted else []
    match name:
        case "retroactivity":
            tried = [row["pairs"] for row in planted if row["verdict"] == "caught"]
            if tried:
                parts[0] += f", the slowest by the {_ordinal(max(tried))} pair"
        case "privacy":
            least = Counter(row["noise_too_small_by_found"] for row in _neighbours(rows))
            shown = [
                f"noise too small by {factor:g} would be found in {number} of {least.total()} plans"
                for factor, number in sorted(_cumulated(least))
            ]
            parts += [*shown, f"by none of these in {least[None]}"] if least[None] else shown
        case "price":
            parts.append("an error off by more than 40% would be found")
        case _:
            control = [row for row in rows if row["verdict"] == "caught"]
            targets = ", ".join(f"{row['mechanism']} {row['accuracy']:.0%}" for row in control)
            if control:
                parts.append(f"the attack works where it must (more than 95%): {targets}")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _cumulated(least: Counter[float | None]) -> list[tuple[float, int]]:
    factors = [factor for factor in least if factor is not None]
    return [(at, sum(least[own] for own in factors if own <= at)) for at in factors]


def _neighbours(rows: Sequence[Json]) -> list[Json]:
    return [row for row in rows if row["test"] == _NEIGHBOURS]


def _reached(row: Json) -> float:
    return float(row["loss_measured"]) / float(row["loss_claimed"])


# The figures, as texts.


def _tables(name: str, rows: Sequence[Json]) -> list[dict[str, Any]]:
    match name:
        case "retroactivity":
            return [_law_table(rows), _plain_table("Planted faults", _planted(rows))]
        case "privacy":
            games = [row for row in rows if row["test"].startswith("adversary")]
            tests = [
                row
                for row in rows
                if row["test"] in {"declared noise", "threshold", "least shift of every window"}
            ]
            return [
                _epsilon_table(_neighbours(rows)),
                _plain_table("Adversaries that react to what is published", games),
                _plain_table("Planted faults", _planted(rows)),
                _plain_table("Exact checks of noise, thresholds and sensitivities", tests),
            ]
        case "price":
            return [_plain_table("Errors, with memory and without", rows)]
        case _:
            return [_attack_table(rows)]


def _planted(rows: Sequence[Json]) -> list[Json]:
    return [row for row in rows if row["test"].startswith(_PLANTED)]


def _table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    bars: Sequence[float] = (),
) -> dict[str, Any]:
    """A table of texts; `bars` has a share from 0 to 1 for each row, or none."""
    return {
        "title": title,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
        "bars": [round(min(1.0, max(0.0, share)), 4) for share in bars],
    }


def _law_table(rows: Sequence[Json]) -> dict[str, Any]:
    chosen = [row for row in rows if row["test"] in {"uniting histories", "releases that remember"}]
    chosen.sort(key=lambda row: row["verdict"] == "holds")  # what is worth reading comes first
    return _plain_table("Histories that unite", chosen)


def _plain_table(title: str, rows: Sequence[Json]) -> dict[str, Any]:
    return _table(
        title,
        ("what", "test", "claim", "measured", "verdict"),
        [(_named(row), row["test"], row["claim"], row["measured"], row["verdict"]) for row in rows],
    )


def _epsilon_table(rows: Sequence[Json]) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: -_reached(row))
    return _table(
        "Lower bounds on epsilon beside the claimed",
        (
            *("plan", "epsilon claimed", "delta", "epsilon at least", "loss claimed"),
            *("loss at least", "of the claim", "noise too small by this is found", "verdict"),
        ),
        [
            (
                _named(row),
                f"{row['epsilon_claimed']:g}",
                f"{row['delta_claimed']:.3g}",
                f"{row['epsilon_measured']:.3f}",
                f"{row['loss_claimed']:.3f} {row['loss_unit']}",
                f"{row['loss_measured']:.3f}",
                f"{_reached(row):.0%}",
                "no factor tried"
                if row["noise_too_small_by_found"] is None
                else f"{row['noise_too_small_by_found']:g}",
                row["verdict"],
            )
            for row in ordered
        ],
        [_reached(row) for row in ordered],
    )


def _attack_table(rows: Sequence[Json]) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: (row["cap"] is not None, row["deviation"]))
    return _table(
        "Share of secrets read, by the noise",
        (
            "what",
            "standard deviation of the noise",
            "read",
            "claimed at most",
            "secrets",
            "verdict",
        ),
        [
            (
                _named(row),
                f"{row['deviation']:g}",
                f"{row['accuracy']:.1%}",
                "nothing is promised" if row["cap"] is None else f"{row['cap']:.1%}",
                f"{row.get('bits', row.get('trials')):,}",
                row["verdict"],
            )
            for row in ordered
        ],
        [float(row["accuracy"]) for row in ordered],
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in {11, 12, 13} else ending}"
