"""The last screen of a run: the numbers, what was forgotten and the proof, the budget, what next.

Promise: reads published answers, the plan and a certificate; shows no salt, no id and no person
that the caller did not hand over to be shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from retrodp.views import budget, show
from retrodp.views.figures import counted, grouped, printable, shared_level
from retrodp.views.published import Published
from retrodp.views.tables import bare_table

TOP = 5
_KINDS = {"id": "id", "person": "person", "value": "other value"}


def render(
    console: Console,
    published: Published,
    *,
    certificate: Mapping[str, Any] | None,
    paths: Mapping[str, str | Path],
    try_next: Sequence[str] = (),
    forgotten: Sequence[str] = (),
) -> None:
    """Print the summary; fits 80 columns.

    Args:
        console: Where to.
        published: The store.
        certificate: What `verify` returned; None leaves the part out.
        paths: Where everything lies, by a word for each.
        try_next: Commands worth trying.
        forgotten: Sentences about what was forgotten, in the caller's words.
    """
    latest = show.document(published, top=TOP)
    show.render_test(console, latest)
    if latest["round"]:
        _totals(console, published, latest)
        for release in latest["releases"]:
            show.render_many(console, release)
    else:
        console.print(Text("Nothing is published yet."))
    if forgotten or certificate is not None:
        _heading(console, "Forgotten, and the proof")
        for sentence in filter(None, forgotten):
            _line(console, printable(sentence))
        for style, sentence in proof(certificate or {}):
            _line(console, sentence, style)
    _heading(console, "Budget")
    _line(console, budget.sentence(budget.document(published.resolved, published.epoch)))
    _places(console, paths)
    if try_next:
        _heading(console, "Try next")
        for command in try_next:
            # A command that is wrapped cannot be copied.
            console.print(Text(f"  {command}", style="bold"), soft_wrap=True)


def _totals(console: Console, published: Published, latest: Mapping[str, Any]) -> None:
    last = latest["round"]
    scalars = [
        release
        for release in latest["releases"]
        if release["bins"] is None and "stamps" not in release
    ]
    before = {}
    if last > 1:
        earlier = show.document(published, round=last - 1, top=0)["releases"]
        before = {release["release"]: release for release in earlier if release["bins"] is None}
    title = f"Round {last:,} of {latest['horizon']:,}"
    console.print(Text.assemble((title, "bold"), f"  from {latest['round_start']}"))
    if not scalars:
        return
    level = shared_level(release["level"] for release in scalars)
    table = bare_table()
    table.add_column("release", overflow="fold")
    for heading in ("round before", "this round", f"±{level}"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold", style="dim")
    for release in scalars:
        digits = show.digits_of(release)
        earlier_row = before.get(release["release"])
        table.add_row(
            Text(release["release"]),
            grouped(earlier_row["rows"][0]["value"], digits) if earlier_row else "",
            Text(grouped(release["rows"][0]["value"], digits), style="bold"),
            grouped(release["error"], digits),
            Text(release["means"]),
        )
    console.print(table)


def proof(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a certificate says, as pairs of a style and a sentence."""
    if not certificate:
        return []
    said = [_equality(certificate)]
    if changed := certificate.get("changed_rounds"):
        said.append(("bold red", f"{len(changed):,} published rounds were changed afterwards."))
    entries: Sequence[Mapping[str, Any]] = certificate.get("forgotten") or ()
    if entries:
        said += _search(entries, len(certificate.get("files_scanned") or ()))
    if key := certificate.get("key"):
        said += _key(key)
    if digest := certificate.get("sha256"):
        said.append(("dim", f"Certificate {digest}"))
    return said


def _key(key: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What whoever holds the key could still undo."""
    if key["derives_rounds_from"] is None:
        return []
    most = max(key["past_rounds_still_open"].values(), default=0)
    past = f" and {counted(most, 'past round')}" if most else ""
    sentence = (
        "Whoever holds the key and the publications can still take the noise off the numbers of this "
        f"round{past}{' (at most, by release)' if most else ''}, and off no others."
    )
    if deciding := key["decisions_not_counted"]:
        sentence += (
            f" Not counted is the noise that decided which places {', '.join(deciding)} published: "
            "it may be derivable for longer."
        )
    return [("", sentence)]


def _equality(certificate: Mapping[str, Any]) -> tuple[str, str]:
    match certificate.get("releases_equal"):
        case True:
            kept = ", ".join(certificate.get("keep_what_is_forgotten") or ())
            source = (
                f"and the state of {kept}, which keeps the influence of what was forgotten"
                if kept
                else "alone"
            )
            sentence = (
                f"Round {certificate['round']:,} was recomputed from the surviving records {source}: "
                "equal, byte for byte."
            )
            return "green", sentence
        case False:
            names = ", ".join(certificate.get("differing_rows") or {}) or "releases"
            return (
                "bold red",
                f"Round {certificate['round']:,} DIFFERS from what the survivors give ({names}).",
            )
        case _:
            return "", str(certificate.get("what_it_means") or "No release could be recomputed.")


def _search(entries: Sequence[Mapping[str, Any]], files: int) -> list[tuple[str, str]]:
    """What the search for forgotten values found."""
    kinds = Counter(_KINDS.get(str(entry["kind"]), str(entry["kind"])) for entry in entries)
    asked = ", ".join(counted(many, kind) for kind, many in kinds.items())
    left = sorted({place for entry in entries for place in entry["left_in"]})
    whole = all(entry.get("searched") == "every byte" for entry in entries)
    # A short value stands in any file by chance, so of it only live rows were asked.
    where = f"every byte of {files:,} files" if whole else "the live rows, short as they are"
    searched = f"{asked} looked for in {where}"
    if left:
        said = [("bold red", f"{searched}: FOUND in {', '.join(left)}.")]
    else:
        said = [("green", f"{searched}: nothing found.")]
    published = sorted({place for entry in entries for place in entry["published_in"]})
    if published:
        said.append(("", f"As labels that were published, some remain in {', '.join(published)}."))
    return said


def _places(console: Console, paths: Mapping[str, str | Path]) -> None:
    if not paths:
        return
    _heading(console, "Where everything lies")
    width = max(len(word) for word in paths)
    for word, path in paths.items():
        console.print(Text(f"  {word.ljust(width)}  {path}"), soft_wrap=True)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Padding(Text(text, style=style), (0, 0, 0, 2)))
