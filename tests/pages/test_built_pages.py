"""The built pages in Chromium: nothing is wider than a window of a desktop, and no page than a telephone.

``BUILT_PAGES`` is the folder of the pages; ``bash .ci/test`` builds them and sets it.
"""

import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("BUILT_PAGES", "pages-are-not-built"))
DESKTOP, TELEPHONE = 1280, 390

WIDE_PARTS = """() => [...document.querySelectorAll("article pre, article div.table-wrapper")]
    .filter(part => part.scrollWidth > part.clientWidth + 1)
    .map(part => `${part.scrollWidth} > ${part.clientWidth}: ${part.innerText.slice(0, 60)}`)"""
WIDE_PAGE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
HEIGHT = "() => document.documentElement.scrollHeight"

pytestmark = [pytest.mark.long, pytest.mark.skipif(not FOLDER.is_dir(), reason="BUILT_PAGES names no folder of built pages")]


def pages() -> list[Path]:
    """Return all pages but the sources of modules, each of which is one block that scrolls on its own."""
    return sorted(path for path in FOLDER.rglob("*.html") if "_modules" not in path.relative_to(FOLDER).parts)


@pytest.mark.whole
def test_no_page_scrolls_sideways(browser: Any) -> None:
    page = browser.new_page()
    wide = []
    for path in pages():
        name = path.relative_to(FOLDER)
        page.set_viewport_size({"width": DESKTOP, "height": 1000})
        page.goto(path.as_uri(), wait_until="load")
        wide += [f"{name}: {part}" for part in page.evaluate(WIDE_PARTS)]
        for width in (DESKTOP, TELEPHONE):
            page.set_viewport_size({"width": width, "height": 1000})
            if (more := page.evaluate(WIDE_PAGE)) > 0:
                wide.append(f"{name}: {more} pixels too wide for a window of {width}")
    page.close()
    assert wide == []
    assert len(pages()) > 30


NOT_READ_THROUGH = ("_modules/", "api/modules", "genindex", "py-modindex", "search")
TEN_SCREENS = 10_000


def test_pages_have_at_most_ten_screens(browser: Any) -> None:
    page = browser.new_page(viewport={"width": DESKTOP, "height": 1000})
    long, read = [], [path for path in pages() if not str(path.relative_to(FOLDER)).startswith(NOT_READ_THROUGH)]
    for path in read:
        page.goto(path.as_uri(), wait_until="load")
        if (height := page.evaluate(HEIGHT)) > TEN_SCREENS:
            long.append(f"{path.relative_to(FOLDER)}: {height}")
    page.close()
    assert long == []
    assert len(read) > 50


def test_the_contents_of_a_page_are_beside_it_on_a_desktop(browser: Any) -> None:
    page = browser.new_page(viewport={"width": DESKTOP, "height": 1000})
    page.goto((FOLDER / "api" / "machine.html").as_uri(), wait_until="load")
    box = page.locator(".toc-drawer").bounding_box()
    page.close()
    assert 0 < box["x"] <= DESKTOP - box["width"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("maintenance", "site.html"),
        ("partition", "site.html"),
        ("fair share", "site.html"),
        ("dependency", "site.html"),
        ("context switch", "gang_scheduling/context_switches.html"),
        ("backfilling", "backfilling.html"),
        ("Machine", "api/machine.html"),
    ],
)
def test_the_search_finds_the_page_that_explains_a_word(browser: Any, words: str, expected: str) -> None:
    page = browser.new_page()
    page.goto(f"{(FOLDER / 'search.html').as_uri()}?q={words.replace(' ', '+')}", wait_until="load")
    page.wait_for_selector("ul.search li:nth-child(4)")
    found = [link.get_attribute("href").partition("#")[0] for link in page.locator("ul.search li > a").all()]
    page.close()
    assert expected in list(dict.fromkeys(found))[:3]


def test_the_test_sees_what_is_too_wide(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        "<article><pre style='overflow-x: auto; width: 100px'>"
        + "x" * 99
        + "</pre><div style='width: 2000px'>.</div></article>"
    )
    page = browser.new_page(viewport={"width": DESKTOP, "height": 1000})
    page.goto(path.as_uri())
    assert page.evaluate(WIDE_PAGE) > 700
    assert len(page.evaluate(WIDE_PARTS)) == 1
    page.close()
