"""A report in a real browser: what must hold of every page.

    python -m tests.views.browser report.html

Needs playwright, axe-playwright-python and a Chromium that is installed already; nothing is downloaded.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
PHONE, DESK = 360, 1280


def missing() -> str:
    """Why no page can be looked at; "" if one can."""
    for module in ("playwright", "axe_playwright_python"):
        if find_spec(module) is None:
            return f"{module} is not installed"
    return "" if _chromium() else "no Chromium is installed (Debian: apt-get install chromium)"


def _chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


@dataclass
class Seen:
    """A page with everything drawn, and what it said and asked for on the way."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def scroll(self) -> None:
        """Look at everything once, and go back to the top."""
        self.page.evaluate(
            "(async () => { const step = () => new Promise(r => requestAnimationFrame(() => setTimeout(r, 0)));"
            " for (let y = 0; y < document.body.scrollHeight; y += 1500)"
            " { scrollTo({top: y, behavior: 'instant'}); await step(); await step(); }"
            " scrollTo({top: 0, behavior: 'instant'}); await step(); })()"
        )
        for _ in range(20):  # a busy machine may be late
            if not self.undrawn:
                break
            self.page.wait_for_timeout(200)

    def violations(self, rules: Sequence[str] = RULES) -> list[str]:
        """What axe-core finds fault with."""
        if not self.page.evaluate("'axe' in window"):
            script = files("axe_playwright_python").joinpath("axe.min.js")
            self.page.evaluate(script.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate(
            f"axe.run({{runOnly: {list(rules)!r}, resultTypes: ['violations']}})"
        )
        return [
            f"{one['id']}: {node['html'][:200]}"
            for one in found["violations"]
            for node in one["nodes"]
        ]

    @property
    def undrawn(self) -> int:
        """Charts without a picture."""
        return int(
            self.page.evaluate(
                "[...document.querySelectorAll('[data-chart]')].filter(e => !e.querySelector('svg path')).length"
            )
        )

    @property
    def too_wide(self) -> int:
        """By how much one must scroll sideways, in pixels."""
        root = "document.documentElement"
        return int(self.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth"))


@contextmanager
def seen(
    opened: Browser, path: Path, *, width: int = DESK, scrolled: bool = True, **more: Any
) -> Iterator[Seen]:
    """Open a page and scroll through it, so that it draws all charts as for a reader."""
    context = opened.new_context(viewport={"width": width, "height": 800}, **more)
    try:
        found = Seen(context.new_page())
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(path.resolve().as_uri())
        if scrolled and more.get("java_script_enabled", True):
            found.scroll()
        yield found
    finally:
        context.close()


def faults(opened: Browser, path: Path) -> list[str]:
    """Everything that is wrong with a report."""
    with seen(opened, path) as desk:
        outside = [url for url in desk.asked if not url.startswith(("file:", "data:"))]
        found = [f"network: {url}" for url in outside]
        found += [f"{desk.undrawn} charts are not drawn"] * bool(desk.undrawn)
        found += [f"accessibility: {text}" for text in desk.violations()]
        desk.page.emulate_media(color_scheme="dark")
        found += [f"in the dark: {text}" for text in desk.violations(["color-contrast"])]
        desk.page.set_viewport_size({"width": PHONE, "height": 800})
        found += [f"phone: {desk.too_wide} pixels too wide"] * bool(desk.too_wide)
        return found + [f"console: {text}" for text in desk.said]


def main(names: list[str]) -> int:
    if why := missing():
        print(f"Not looked at: {why}.")  # noqa: T201
        return 1
    with browser() as opened:
        found = [fault for name in names for fault in faults(opened, Path(name))]
    for fault in found:
        print(fault)  # noqa: T201
    print(f"{len(names)} pages, {len(found)} faults")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
