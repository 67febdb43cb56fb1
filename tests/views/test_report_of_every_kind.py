"""The page of a store with a release of every kind and method: read as text, and looked at in a browser.

The browser's tests run where Chromium and the packages for it are installed, and say why where not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from retrodp.demo import plan_path
from retrodp.engine.resolve import resolve
from retrodp.plan.kinds import KINDS
from retrodp.plan.plan import Plan
from retrodp.store.releases import Releases
from retrodp.views.published import PLAN_FILE, RELEASES_FILE, Published
from retrodp.views.report import document, page, write_file
from retrodp.views.report.labels import Days
from retrodp.views.report.sections import _shown as shown_as
from tests.support.stores import memory_directory
from tests.views import browser, stores
from tests.views.report_stores import every_kind, plan

if TYPE_CHECKING:
    from playwright.sync_api import Browser

needs_a_browser = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing())
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_kind(tmp_path_factory.mktemp("every") / "store")


@pytest.fixture(scope="module")
def every_page(every: Path) -> Path:
    with Published.open(every) as published:
        write_file(published, every.parent / "page.html")
    return every.parent / "page.html"


@pytest.fixture(scope="module")
def shop_page() -> Iterator[Path]:
    """The demo's plan, all its rounds, and made-up numbers of the demo's size."""
    with memory_directory() as directory:
        yield _shop(directory)


def _shop(directory: Path) -> Path:
    resolved = resolve(Plan.load(plan_path()))
    (directory / PLAN_FILE).write_bytes(resolved.to_json())
    releases = Releases.create(directory / RELEASES_FILE, store_id="7" * 32, test=False)
    countries = [*resolved.plan["columns"][-2]["values"], "other"]
    for round_ in range(1, 375):
        products = [f"product {n:04d}" for n in range(2 * round_)]
        numbers = {
            "lines": ([1_400 * round_], None),
            "lines_per_day": ([1_400 + 400 * (round_ % 7)], None),
            "revenue": ([2_500_000 * round_], None),
            "by_country": ([9 * n * round_ for n in range(len(countries))], sorted(countries)),
            "by_product": ([200 + n for n in range(len(products))], products),
        }
        own = {}
        for name, (values, keys) in numbers.items():
            own[name] = stores.answer_under(resolved, name, round_, values, keys).to_bytes()
        releases.publish(round_, own)
    releases.close()
    with Published.open(directory) as published:
        write_file(published, directory / "page.html", title="A gift shop's order book")
    return directory / "page.html"


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser.browser() as found:
        yield found


def test_every_kind_is_in_the_store_and_every_release_is_shown(every: Path) -> None:
    with Published.open(every) as published:
        found = document(published)
    assert {one.kind for one in found["sections"]} == {
        name for name, kind in KINDS.items() if kind is not None
    }
    assert [one.name for one in found["sections"]] == [own.name for own in plan().releases]
    empty = [one.name for one in found["sections"] if not one.blocks]
    assert {one.value for one in found["sections"] if one.name in empty} <= {"no label is named"}
    assert {own["word"] for own in found["retroactivity"]} == {"exact", "marginal", "no"}


def test_a_kind_that_the_page_does_not_know_is_shown_like_bins(every: Path) -> None:
    with Published.open(every) as published:
        answer = published.answer(published.last_round, "query")
        assert answer is not None
        shown = shown_as(published, answer, {"kind": "soothsaying"}, Days(published))
    assert [block.form for block in shown.blocks] == ["chart", "panels", "table", "table"]
    assert "the largest of 2" in shown.error


def test_a_page_of_the_demo_is_below_three_megabytes(shop_page: Path, every_page: Path) -> None:
    assert shop_page.stat().st_size < 2 * MEGABYTE
    assert every_page.stat().st_size < 2 * MEGABYTE


# In a browser.


@needs_a_browser
@pytest.mark.parametrize("which", ["shop_page", "every_page"])
def test_a_page_draws_all_charts_says_nothing_asks_for_nothing_and_anybody_can_read_it(
    which: str, opened: Browser, request: pytest.FixtureRequest
) -> None:
    assert browser.faults(opened, request.getfixturevalue(which)) == []


@needs_a_browser
def test_the_look_notices_planted_faults(opened: Browser, tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        text = page(published).decode()
    pale = '<svg width="700" height="1"></svg><font color="#999999">pale</font>'
    planted = {
        "accessibility: html-has-lang": ('<html lang="en">', "<html>"),
        "accessibility: color-contrast": ("<h1>", f"<h1>{pale}"),
        "phone: ": ("<h1>", f"<h1>{pale}"),
        "console: ": ("</body>", "<script>alert(1)</script></body>"),
        "network: ": ("</head>", '<script src="http://localhost:9/x.js"></script></head>'),
        "1 charts are not drawn": (' data-chart="0"', ' data-chart="0" data-drawn="1"'),
    }
    for old, new in set(planted.values()):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "page.html").write_text(text.replace("script-src ", "script-src http: "), "utf-8")
    found = browser.faults(opened, tmp_path / "page.html")
    assert {name: any(one.startswith(name) for one in found) for name in planted} == dict.fromkeys(
        planted, True
    )


@needs_a_browser
def test_the_keyboard_reaches_the_contents_every_table_and_the_citation_in_order(
    shop_page: Path, opened: Browser
) -> None:
    with browser.seen(opened, shop_page) as seen:
        reached = []
        for _ in range(80):
            seen.page.keyboard.press("Tab")
            reached.append(
                seen.page.evaluate(
                    "(() => { const e = document.activeElement, o = getComputedStyle(e);"
                    " return [e.tagName, e.textContent.slice(0, 40), o.outlineStyle, e.offsetTop] })()"
                )
            )
            if reached[-1][1] == "Copy the text":
                break
        summaries = int(seen.page.evaluate("document.querySelectorAll('summary').length"))
    assert reached[0][1] == "Skip to the numbers"
    assert reached[-1][1] == "Copy the text"
    assert sum(tag == "SUMMARY" for tag, *_ in reached) == summaries > 5
    assert [style for *_, style, _ in reached if style == "none"] == []


@needs_a_browser
def test_the_pointer_finds_the_numbers_as_text(shop_page: Path, opened: Browser) -> None:
    with browser.seen(opened, shop_page) as seen:
        chart = seen.page.locator("#r-lines .chart").first
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + 60, box["y"] + 20)
        seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        seen.page.wait_for_selector("#tip:not([hidden])", timeout=10_000)
        said = seen.page.locator("#tip").text_content() or ""
    day, number, interval, all_rounds = said.split("\n")
    assert "round" in day
    assert number.replace(",", "").isdecimal()
    assert " to " in interval
    assert all_rounds.startswith("all rounds at once: ")


@needs_a_browser
def test_paper_and_a_browser_without_scripts_have_the_numbers(
    shop_page: Path, opened: Browser
) -> None:
    with browser.seen(opened, shop_page, scrolled=False) as seen:
        before = seen.undrawn
        paper = seen.page.pdf(format="A4")
        assert (before > 10, seen.undrawn) == (True, 0)
    assert paper.startswith(b"%PDF")
    assert len(paper) > 50_000
    with browser.seen(opened, shop_page, java_script_enabled=False) as plain:
        assert plain.page.locator("noscript").is_visible()
        assert plain.page.locator("#r-lines summary").first.is_visible()
        assert plain.page.locator("#r-lines td").first.text_content() == "374"
