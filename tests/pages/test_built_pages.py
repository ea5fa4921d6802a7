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
