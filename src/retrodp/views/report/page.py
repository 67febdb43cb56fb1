"""The page: everything of a store that was published, in one HTML file that needs nothing else.

Promise: bytes are a pure function of what was published (and of `now`, if it is given). Every text that comes
from data is escaped by the template or stands in JSON that no HTML parser can leave. The page loads nothing,
evaluates no text as code and says so in its own content security policy.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from retrodp.views import budget as budget_view
from retrodp.views.atomic import whole_file
from retrodp.views.published import TEST, Published
from retrodp.views.report import promises, sentences, specs
from retrodp.views.report.labels import Days
from retrodp.views.report.parts import Chart, Drawing, Panels, Section
from retrodp.views.report.sections import section

FORMAT = 1
_VIEWS = "retrodp.views"
_INTERPRETER = "vega-interpreter.js"
_IMPORT = "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';"
_EXPORT = "export { expression as expressionInterpreter };"


TITLE = "Published numbers"


def document(published: Published, *, title: str = TITLE, now: int | None = None) -> dict[str, Any]:
    """What the page says, as a JSON document: sections with their facts, budget, gaps, citation.

    Args:
        published: The store.
        title: What the page is about, for people.
        now: Microseconds UTC; if given, late rounds are named.
    """
    days = Days(published)
    budget = budget_view.document(published.resolved, published.epoch)
    sections = [section(published, name) for name in published.releases]
    return {
        "format": FORMAT,
        "title": title,
        "test": published.is_test,
        "store": published.store_id,
        "fingerprint": published.fingerprint,
        "round": published.last_round,
        "horizon": published.horizon,
        "every": days.every,
        "timezone": published.timezone,
        "last_day": days.text(published.last_round) if published.last_round else None,
        "intro": sentences.intro(published, days),
        "reading": sentences.reading(published),
        "budget": budget,
        "total": promises.total(budget),
        "delta_parts": budget_view.delta_parts(budget),
        "promise": budget_view.sentence(budget),
        "spent": promises.spent(published, budget),
        "odds": promises.odds(budget),
        "adaptive": promises.adaptive(published, budget),
        "shares": promises.share(budget),
        "epoch_lines": [*promises.epochs(budget), *budget_view.epoch_lines(budget)],
        "retroactivity": promises.by_retroactivity(published),
        "gaps": promises.gaps(published, now, days),
        "citation": promises.citation(published, budget, days),
        "sections": sections,
    }


def page(published: Published, *, title: str = TITLE, now: int | None = None) -> bytes:
    """The HTML file; see `document`."""
    return rendered(document(published, title=title, now=now))


def write_file(
    published: Published, path: str | Path, *, title: str = TITLE, now: int | None = None
) -> dict[str, Any]:
    """Write the page and tell what is in it.

    Returns:
        A JSON-able summary: `bytes`, `sha256`, `round`, `releases`, `charts` and `tables`.

    Raises:
        UsageError: If the path cannot be written.
        DiskFullError: If the disk is full; a file that was there is as it was.
    """
    found = document(published, title=title, now=now)
    content = rendered(found)
    with whole_file(path) as file:
        file.write(content)
    sections = found["sections"]
    blocks = [block for one in sections for block in one.blocks]
    return {
        "format": FORMAT,
        "file": str(path),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "test": found["test"],
        "store": found["store"],
        "round": found["round"],
        "releases": [one.name for one in sections],
        "charts": len(list(_drawings(sections))),
        "tables": sum(block.form == "table" for block in blocks),
    }


def rendered(found: dict[str, Any]) -> bytes:
    """A `document` as HTML."""
    sections: list[Section] = found["sections"]
    drawings = list(_drawings(sections))
    places = {id(drawing): place for place, drawing in enumerate(drawings)}
    charts = {"config": specs.CONFIG, "charts": [drawing.to_json() for drawing in drawings]}
    scripts = [
        _vendored("vega.min.js"),
        _vendored("vega-lite.min.js"),
        _interpreter(),
        _ours("report.js"),
    ]
    style = _ours("report.css")
    text: str = _template().render(
        **found,
        test_line=TEST,
        style=Markup(style),  # noqa: S704  a file of the package
        scripts=[Markup(script) for script in scripts],  # noqa: S704  likewise
        charts=Markup(embedded(charts)),  # noqa: S704  no HTML can begin in it
        place=lambda drawing: places[id(drawing)],
        policy=_policy(style, scripts),
    )
    return text.encode()


def embedded(value: Any) -> str:
    """JSON that can stand between script tags: no angle brackets, no ampersands, no line separators."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _drawings(sections: list[Section]) -> Iterator[Drawing]:
    for one in sections:
        for block in one.blocks:
            match block:
                case Chart():
                    yield block.drawing
                case Panels():
                    yield from (panel.drawing for panel in block.panels)


def _policy(style: str, scripts: list[str]) -> str:
    """Only these scripts and this style, nothing from anywhere, no text as code."""
    allowed = " ".join(_digest(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template() -> Any:
    environment = Environment(
        loader=FunctionLoader(_ours),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


@cache
def _ours(name: str) -> str:
    return files(_VIEWS).joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _vendored(name: str) -> str:
    text = files(_VIEWS).joinpath("vendor", name).read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if not line.startswith("//# sourceMappingURL=")]
    return "\n".join(lines)


@cache
def _interpreter() -> str:
    """The module as a script: what it imports is there by then, under Vega's name."""
    text = _vendored(_INTERPRETER)
    assert text.count(_IMPORT) == text.count(_EXPORT) == 1
    names = _IMPORT.removeprefix("import ").partition(" from ")[0]
    body = text.replace(_IMPORT, f"const {names} = vega;")
    body = body.replace(_EXPORT, "vega.expressionInterpreter = expression;")
    return f"(() => {{\n{body}\n}})();"
