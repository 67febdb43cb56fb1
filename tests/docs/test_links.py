"""Links between the documents lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, anchors, links


def broken(page: Path, target: str) -> bool:
    if target.startswith(("https://", "http://")):
        return False
    name, _, anchor = target.partition("#")
    other = (page.parent / name).resolve() if name else page
    if not other.exists():
        return True
    return bool(anchor) and anchor not in anchors(other)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert [target for target in links(page) if broken(page, target)] == []


def test_a_link_to_nowhere_is_noticed() -> None:
    page = DOCS / "plan.md"
    assert broken(page, "no-such-page.md")
    assert broken(page, "cli.md#no-such-heading")
    assert not broken(page, "cli.md#exit-codes")


def test_the_readme_lists_every_page() -> None:
    listed = {target.partition("#")[0] for target in links(ROOT / "README.md")}
    expected = {str(page.relative_to(ROOT)) for page in PAGES} - {"README.md"}
    assert expected - listed == set()
