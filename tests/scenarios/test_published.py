"""The pages of published results have all tables and figures of each paper, and are what docs/make_studies.py writes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.shared_data import SHARED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAKE: dict[str, Any] = runpy.run_path(str(DOCS / "make_studies.py"))
PAPERS = {
    "talby_1999, short version": ("000", 5, 0),
    "talby_1999, long version": ("001", 3, 10),
    "zhang_2003": ("002", 1, 15),
    "perkovic_2000": ("003", 4, 9),
    "yuan_2010": ("004", 6, 6),
}
"""The beginning of the name of the text in ../shared/papers, and how many tables and figures it has, numbered from 1."""
PUBLICATIONS = MAKE["publications"]()


def rows_of(paper: str) -> list[str]:
    """Return the first column of the comparison with a paper."""
    page = MAKE["published_page"](paper).read_text()
    section = page.partition(f"<!-- papers {paper} -->")[2].partition("<!-- end -->")[0]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][2:]


def exhibits_in(text: str) -> set[tuple[str, int]]:
    """Return the tables and figures that a text such as "Figures 3 to 5" names."""
    found = set()
    for kind, first, link, last in re.findall(r"(?i)\b(table|figure)s? (\d+)(?:(,| to) (\d+))?", text):
        numbers = range(int(first), int(last) + 1) if link.strip() == "to" else [int(one) for one in (first, last) if one]
        found |= {(kind.lower(), number) for number in numbers}
    return found


@pytest.mark.parametrize("paper", [name for name in PAPERS if name.partition(",")[0] in PUBLICATIONS])
def test_no_table_or_figure_is_forgotten(paper: str) -> None:
    author_year, _, version = paper.partition(", ")
    named = [part for row in rows_of(author_year) for part in row.split("; ") if part.lower().startswith(version)]
    _, tables, figures = PAPERS[paper]
    expected = {("table", number + 1) for number in range(tables)} | {("figure", number + 1) for number in range(figures)}
    assert set().union(*map(exhibits_in, named)) == expected


@pytest.mark.parametrize("paper", PAPERS)
def test_the_captions_are_those_of_the_papers(paper: str) -> None:
    """The numbers of tables and figures are the highest ones in the papers' texts."""
    number, *counts = PAPERS[paper]
    found = [path.read_text() for path in (SHARED / "papers").glob(f"{number}_*.txt")]
    if not found:
        pytest.skip("the papers are not here; they are not part of the repository")
    for kind, count in zip(("Table", "Figure"), counts, strict=True):
        assert max([0, *map(int, re.findall(rf"\b{kind} (\d+)", found[0]))]) == count


@pytest.mark.parametrize("paper", PUBLICATIONS)
def test_the_page_is_up_to_date(paper: str) -> None:
    page = MAKE["published_page"](paper).read_text()
    assert MAKE["published"](paper, page) == page
