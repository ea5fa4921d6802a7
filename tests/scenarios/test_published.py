"""The pages of published results and the gallery: complete, and what docs/make_studies.py writes."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from clustermodel.measure.statistics import Interval
from clustermodel.policies.registry import RULES, make_policy, shipped_policies
from tests.shared_data import SHARED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAKE: dict[str, Any] = runpy.run_path(str(DOCS / "make_studies.py"))
PAPERS = {
    "talby_1999, short version": ("abeb21d5b8b877d3", 5, 0),
    "talby_1999, long version": ("f8fdeaee59e3a36f", 3, 10),
    "zhang_2003": ("8335dd3215a2768d", 1, 15),
    "perkovic_2000": ("96c4631de6a07f8a", 4, 9),
    "yuan_2010": ("55d19449f9d7d838", 6, 6),
}
"""The end of the name of the text in ../shared/papers, and how many tables and figures it has, numbered from 1."""
PUBLICATIONS = MAKE["publications"]()
STUDIES = [study for study in MAKE["documented_studies"]() if study.page and study.page.name != "validation.md"]
"""Those of validation.md are in test_validation.py."""


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
    name, *counts = PAPERS[paper]
    found = [path.read_text() for path in (SHARED / "papers").glob(f"*_{name}.txt")]
    if not found:
        pytest.skip("the papers are not here; they are not part of the repository")
    for kind, count in zip(("Table", "Figure"), counts, strict=True):
        assert max([0, *map(int, re.findall(rf"\b{kind} (\d+)", found[0]))]) == count


@pytest.mark.parametrize("paper", PUBLICATIONS)
def test_the_page_is_up_to_date(paper: str) -> None:
    page, compared = MAKE["published_page"](paper).read_text(), MAKE["publication"](paper)
    assert compared.in_page(page) == page
    assert compared.all_tables.read_text() == compared.text()


@pytest.mark.parametrize("paper", PUBLICATIONS)
def test_the_file_of_a_paper_has_every_row_and_every_number(paper: str) -> None:
    compared = MAKE["publication"](paper)
    kept = " ".join(compared.all_tables.read_text().split())
    assert all(row in kept for row in compared.entries["in the paper"])
    assert all(" ".join(what.split()) in kept for what in compared.numbers["published number"])


def test_intervals_contain_the_published_numbers_where_that_is_the_reason() -> None:
    compared = MAKE["publication"]("zhang_2003")
    patterns = [pattern for _, pattern, reason in compared.reasons if "contain" in reason]
    rows = compared.numbers[compared.numbers["ours is"] == "beyond"].values
    found = [(paper, ours) for what, paper, ours, *_ in rows if any(re.fullmatch(pattern, what) for pattern in patterns)]
    assert len(found) > len(patterns)
    assert all(ours.low <= float(paper) <= ours.high for paper, ours in found)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
@pytest.mark.long
def test_the_page_of_a_study_shows_its_stored_table(study: Any) -> None:
    exhibits, page = MAKE["shown"](study), study.page.read_text()
    assert not exhibits.problems
    assert MAKE["with_tables"](page, study.name, MAKE["shown_in"](page, study, exhibits)) == page
    assert study.all_tables.exists() == (study.tables is not None)
    assert study.tables is None or study.all_tables.read_text() == MAKE["text"](exhibits.tables)
    for number in range(len(exhibits.figures)):
        picture = MAKE["picture"](study, number)
        assert f"figures/{picture})" in page
        assert (DOCS / "figures" / picture).stat().st_size > 10_000


def test_the_gallery_is_up_to_date() -> None:
    page = (DOCS / "gallery.md").read_text()
    assert MAKE["with_tables"](page, "gallery", MAKE["gallery"]()) == page


def test_the_table_of_rules_that_policies_respect_is_up_to_date() -> None:
    page = (DOCS / "site.md").read_text()
    table = MAKE["rules_of_policies"]()
    assert MAKE["with_tables"](page, "policies", table) == page, "python docs/make_studies.py --stored sdsc writes it"
    for name in shipped_policies():
        (row,) = (line for line in table.splitlines() if f"`{name}`" in line)
        policy = make_policy(name)
        flags = [getattr(policy, f"takes_{rule}", rule == "order") for rule in RULES]
        assert row.split("|")[2:-1] == [f" {'yes' if flag else 'no'} " for flag in flags]


def test_the_gallery_has_every_scenario() -> None:
    page = (DOCS / "gallery.md").read_text()
    for folder in MAKE["GALLERY"]:
        found = list(MAKE["scenarios"](folder))
        assert found
        for script, question in found:
            assert question.endswith("?")
            assert question in page
            assert f"`{script.relative_to(ROOT / 'scenarios').as_posix()}`" in page


def test_a_study_shows_its_figures_above_its_tables_unless_the_page_has_them() -> None:
    study = next(one for one in MAKE["documented_studies"]() if one.name == "context_switch_mpl")
    exhibits = MAKE["shown"](study)
    empty = f"<!-- {study.name} -->\n<!-- end -->\n"
    picture = f"](figures/{study.name}.png)"
    assert picture in MAKE["shown_in"](empty, study, exhibits)
    assert picture not in MAKE["shown_in"](f"![Drawn{picture}\n\n{empty}", study, exhibits)


def test_a_page_shows_some_tables_of_a_study_and_leads_to_all_of_them() -> None:
    study = next(one for one in MAKE["documented_studies"]() if one.name == "context_switch_mpl")
    exhibits, empty = MAKE["shown"](study), f"<!-- {study.name} -->\n<!-- end -->\n"
    titles = list(exhibits.tables)
    found = MAKE["shown_in"](empty, study._replace(tables=[2]), exhibits)
    assert [title in found for title in titles] == [number == 2 for number in range(1, len(titles) + 1)]
    assert f"(tables/{study.name}.txt)" in found
    assert all(title in MAKE["text"](exhibits.tables) for title in titles)
    with pytest.raises(SystemExit, match=rf"tables = \[9\] is not allowed; its tables have numbers from 1 to {len(titles)}$"):
        MAKE["shown_in"](empty, study._replace(tables=[9]), exhibits)


def test_published_numbers_have_the_class_of_their_distance() -> None:
    rows = [
        ("as printed", "79,302", 79302),
        ("about", "about 1,000", 905.0),
        ("mean", 0.2, Interval(0.24, 0.1, 0.95, 3)),
        ("half", 0.2, 0.1),
        ("below a bound", "< 20,000", 100.0),
        ("above a bound", "< 20,000", 20_100.0),
    ]
    found = MAKE["closeness"](rows)
    assert found["ours is"].tolist() == ["within 5 %", "within 10 %", "within 25 %", "beyond", "holds", "within 5 %"]
    assert found["ours / paper"].tolist() == ["1.00", "0.91", "1.20", "0.50", "0.01", "1.00"]
    assert MAKE["counts_of"](found) == "Of 6 numbers: 1 holds, 2 within 5 %, 1 within 10 %, 1 within 25 %, 1 beyond."


def test_numbers_beyond_all_classes_have_a_reason() -> None:
    found = MAKE["closeness"]([("Table 1: jobs", 100, 200), ("Table 1: load", 0.5, 0.5), ("Table 2: jobs", 100, 50)])
    reasons = [("Jobs of table 1", r"Table 1: (.*)", "Others."), ("Table 2", r"Table 2: (.*)", "Unknown.")]
    table = MAKE["beyond"](found, reasons)
    assert table.values.tolist() == [["Jobs of table 1", "jobs 2.00", "Others."], ["Table 2", "jobs 0.50", "Unknown."]]
    with pytest.raises(SystemExit, match=r"^Table 2: jobs: beyond 25% of the published number, and REASONS has no reason$"):
        MAKE["beyond"](found, reasons[:1])
    with pytest.raises(SystemExit, match=r"^Table 3: a reason in REASONS for no number beyond 25%$"):
        MAKE["beyond"](found, [*reasons, ("Table 3", r"Table 3: (.*)", "Idle.")])


@pytest.mark.parametrize("paper", ["none", "", 0.0])
def test_a_published_number_is_a_number(paper: str | float) -> None:
    with pytest.raises(SystemExit, match=rf"^Table 1: {paper} is not allowed; a published number is a number other than 0"):
        MAKE["closeness"]([("Table 1", paper, 1.0)])
