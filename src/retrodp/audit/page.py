"""The report of audits as a page: HTML that needs nothing else, or Markdown.

Promise: bytes are a function of the report's document; every text is escaped by the template; the
page runs no script and loads nothing. The style is that of the page of published numbers.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from retrodp.errors import UsageError

Form = Literal["html", "md", "json"]


def form_of(path: Path) -> Form:
    """The form that a file's name asks for.

    Raises:
        UsageError: It asks for none.
    """
    found: Form
    for found in get_args(Form):
        if path.suffix == f".{found}":
            return found
    raise UsageError(
        f"{path} says no form.", expected="a name that ends in .html, .md or .json", do="Rename it."
    )


def contents(path: Path, document: Mapping[str, Any]) -> dict[Path, bytes]:
    """The files of a report: the page, and beside it the document under its name with `.json`."""
    form = form_of(path)
    whole = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    found = {path.with_suffix(".json"): whole.encode()}
    if form != "json":
        found[path] = html(document) if form == "html" else markdown(document).encode()
    return found


def html(document: Mapping[str, Any]) -> bytes:
    """The document of `verdicts` as one HTML page."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  only a page needs it
    from markupsafe import Markup  # noqa: PLC0415

    style = _text("retrodp.views", "templates/report.css") + _text("retrodp.audit", "report.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(_text("retrodp.audit", "report.html.j2"))
    return template.render(
        document=document,
        style=Markup(style),  # noqa: S704  files of the package
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'",
    ).encode()


def markdown(document: Mapping[str, Any]) -> str:
    """The document of `verdicts` as Markdown."""
    lines = ["# Audit report", "", f"retrodp {document['version']}. {outcome(document)}", ""]
    for one in document["audits"]:
        lines += [
            f"## {one['title']}",
            "",
            one["question"],
            "",
            f"**{one['verdict']}**",
            "",
            f"- chance of a false alarm: {one['alpha_means']}",
            f"- power: {one['power']}",
            f"- size: {one['size']}, seed `{one['seed']}`, {_which(one)}",
            f"- again: `{one['command']}`",
            *(f"- {line}" for line in one["against"]),
            *(f"- left out: {line}" for line in one["left_out"]),
            "",
        ]
        for table in one["tables"]:
            if table["rows"]:
                lines += [f"### {table['title']}", "", *_rows(table), ""]
    if document["statement"] is not None:
        stated = json.dumps(document["statement"], indent=2, ensure_ascii=False)
        lines += ["## Privacy statement of the store", "", "```json", stated, "```", ""]
    return "\n".join(lines)


def outcome(document: Mapping[str, Any]) -> str:
    """The whole report in a sentence."""
    missing = f" Not run: {', '.join(document['missing'])}." if document["missing"] else ""
    if document["passed"]:
        return f"Nothing was found against any claim, and every planted fault was caught.{missing}"
    return f"FAILED: something is accused, or a planted fault was missed.{missing}"


def _which(one: Mapping[str, Any]) -> str:
    return f"releases of kind {one['only']} alone" if one["only"] else "all releases"


def _rows(table: Mapping[str, Any]) -> list[str]:
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return [f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
