"""Make the studies behind the documentation: their stored tables, their figures, the tables in the pages, and the gallery.

    python docs/make_studies.py                     run all studies of docs/studies.toml; hours, the first time
    python docs/make_studies.py job_sizes           run one
    python docs/make_studies.py --stored            run nothing: show the stored tables again

Results are kept in a directory outside the documentation, so that the same command again runs only what has changed.  Studies
of traces are skipped where the trace is missing.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import runpy
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isnan
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import pandas as pd

from clustermodel import StudyTable, Validation, sweep
from clustermodel.experiment.exhibits import Exhibits, exhibits_of
from clustermodel.experiment.script import load_experiment
from clustermodel.experiment.study import Experiment
from clustermodel.measure.statistics import Interval
from clustermodel.policies import registry

DOCS = Path(__file__).parent
ROOT = DOCS.parent


class DocumentedStudy(NamedTuple):
    """A study of the documentation: an entry of docs/studies.toml."""

    name: str
    """Of its files, and of its place in a page."""
    script: Path
    settings: Mapping[str, str]
    """Values of the parameters of the script's function."""
    page: Path | None
    """The page with its tables, and with the figures that the page shows nowhere else, between ``<!-- name -->`` and
    ``<!-- end -->``."""
    figures: int | None = None
    """Only so many of its figures, the first ones, are drawn and shown; ``None``: all."""
    tables: Sequence[int] | None = None
    """Numbers of the tables that the page shows, from 1; ``None``: all.  Where it shows only some, a file has all of them."""

    @property
    def stored(self) -> Path:
        """The stored table."""
        return DOCS / "data" / f"{self.name}.csv"

    @property
    def all_tables(self) -> Path:
        """The file with all tables, where the page shows only some."""
        return DOCS / "tables" / f"{self.name}.txt"

    def missing(self) -> str | None:
        """Return the first file among the settings that is missing."""
        paths = [value for value in self.settings.values() if value.startswith("../")]
        return next((path for path in paths if not (ROOT / path).exists()), None)

    def experiment(self) -> Experiment[Any]:
        """Return the experiment."""
        return load_experiment(self.script, self.script.read_text(), self.settings)


def documented_studies() -> Iterator[DocumentedStudy]:
    """Yield the studies of docs/studies.toml."""
    for name, entry in tomllib.loads((DOCS / "studies.toml").read_text()).items():
        page = DOCS / entry["page"] if "page" in entry else None
        settings = {key: str(value) for key, value in entry.get("settings", {}).items()}
        yield DocumentedStudy(name, ROOT / entry["script"], settings, page, entry.get("figures"), entry.get("tables"))


def make(study: DocumentedStudy, results: Path, workers: int) -> None:
    """Run a study and store its table."""
    table = sweep(study.script, results / study.name, settings=study.settings, workers=workers)
    if table.failures:
        factors, error = table.failures[0]
        raise SystemExit(f"{study.name}: {len(table.failures)} runs failed: {factors}: {error.rstrip().splitlines()[-1]}")
    experiment = study.experiment()
    study.stored.parent.mkdir(exist_ok=True)
    table.to_csv(study.stored, columns=list(dict.fromkeys([*experiment.shown, *experiment.measures])))


def shown(study: DocumentedStudy) -> Exhibits:
    """Return the tables and figures of a stored study that its page shows."""
    exhibits = exhibits_of(study.experiment(), StudyTable.read_csv(study.stored))
    return exhibits._replace(figures=dict(islice(exhibits.figures.items(), study.figures)))


def show(study: DocumentedStudy) -> None:
    """Draw the figures of a stored study, and write its tables into its page; a study without a page only has a table."""
    if study.page is None:
        return
    exhibits = shown(study)
    if exhibits.problems:
        raise SystemExit(f"{study.name}: {exhibits.problems[0]}")
    for number, figure in enumerate(exhibits.figures.values()):
        figure.savefig(DOCS / "figures" / picture(study, number), dpi=110)
    if study.tables is None:
        study.all_tables.unlink(missing_ok=True)
    else:
        study.all_tables.parent.mkdir(exist_ok=True)
        study.all_tables.write_text(text(exhibits.tables))
    page = study.page.read_text()
    study.page.write_text(with_tables(page, study.name, shown_in(page, study, exhibits)))


def picture(study: DocumentedStudy, number: int = 0) -> str:
    """Return the file name of a study's figure."""
    return f"{study.name}_{number + 1}.png" if number else f"{study.name}.png"


def shown_in(page: str, study: DocumentedStudy, exhibits: Exhibits) -> str:
    """Return what a page shows of a study: the figures that its text does not show elsewhere, and the tables."""
    assert study.page is not None
    folder = Path(os.path.relpath(DOCS / "figures", study.page.parent)).as_posix()
    elsewhere = with_tables(page, study.name, "")
    links = [(title, f"{folder}/{picture(study, number)}") for number, title in enumerate(exhibits.figures)]
    figures = "".join(f"![{title}]({path})\n\n" for title, path in links if f"({path})" not in elsewhere)
    if study.tables is None:
        return figures + markdown(exhibits.tables)
    tables = list(exhibits.tables.items())
    if wrong := [number for number in study.tables if not 1 <= number <= len(tables)]:
        raise SystemExit(f"{study.name}: tables = {wrong} is not allowed; its tables have numbers from 1 to {len(tables)}")
    path = Path(os.path.relpath(study.all_tables, study.page.parent)).as_posix()
    chosen = markdown(dict(tables[number - 1] for number in study.tables))
    return f"{figures}{chosen}\n[All tables of `{study.name}`]({path})\n".replace("\n\n\n", "\n\n")


def with_tables(page: str, name: str, tables: str) -> str:
    """Return a page with other tables between ``<!-- name -->`` and ``<!-- end -->``."""
    before, mark, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not end:
        raise SystemExit(f"there is no place for {name} in its page")
    return f"{before}{mark}\n{tables}\n{end}{after}"


class StoredTables(Mapping[str, StudyTable]):
    """The stored tables of docs/data by name, each read when it is asked for."""

    def __getitem__(self, name: str) -> StudyTable:
        """Return a stored table."""
        return StudyTable.read_csv(DOCS / "data" / f"{name}.csv")

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(sorted(path.stem for path in (DOCS / "data").glob("*.csv")))

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(list(iter(self)))


def publications() -> list[str]:
    """Return the papers with a comparison, by author and year: the scripts of docs/published."""
    return sorted(path.stem for path in (DOCS / "published").glob("*.py"))


def published_page(author_year: str) -> Path:
    """Return the page that compares a paper, table by table, with what is reproduced of it."""
    return DOCS / "papers" / f"{author_year}.md"


class Publication(NamedTuple):
    """What a script of docs/published compares, by the stored tables.

    The script has a function ``entries``, which returns a table with a row for each table and figure of the paper.  It may
    have a function ``published_numbers``, which returns rows for :func:`closeness`, and ``REASONS`` for :func:`beyond`.
    """

    author_year: str
    entries: pd.DataFrame
    """What the paper says of each table and figure, what is reproduced, the difference, and the result in a few words."""
    numbers: pd.DataFrame | None
    """The published numbers and ours."""
    reasons: Sequence[tuple[str, str, str]]

    @property
    def all_tables(self) -> Path:
        """The file with all columns of the entries and all numbers."""
        return DOCS / "tables" / f"{self.author_year}.txt"

    def text(self) -> str:
        """Return what the file has."""
        parts = [f"{row[0]}\n" + "".join(map(_paragraph, self.entries.columns[1:-1], row[1:-1])) for row in self.entries.values]
        return "\n".join(parts) + ("" if self.numbers is None else "\n" + text({"Number by number": self.numbers}))

    def in_page(self, page: str) -> str:
        """Return the text of the paper's page with its tables written again.

        Rows with the same result are one.  The page has the places of the tables, ``<!-- papers NAME -->`` and
        ``<!-- numbers NAME -->``, each with an ``<!-- end -->``.
        """
        link = f"[All rows in full](../tables/{self.all_tables.name})\n"
        where, result = self.entries.columns[[0, -1]]
        short = markdown_table(self.entries.groupby(result, sort=False)[where].agg("; ".join).reset_index()[[where, result]])
        page = with_tables(page, f"papers {self.author_year}", f"{short}\n{link}")
        if self.numbers is None:
            return page
        table = markdown_table(beyond(self.numbers, self.reasons))
        return with_tables(page, f"numbers {self.author_year}", f"{counts_of(self.numbers)}\n\n{table}")


def publication(author_year: str) -> Publication:
    """Return what the script of a paper compares."""
    script, tables = runpy.run_path(str(DOCS / "published" / f"{author_year}.py")), StoredTables()
    numbers = closeness(script["published_numbers"](tables)) if "published_numbers" in script else None
    return Publication(author_year, script["entries"](tables), numbers, script.get("REASONS", ()))


def _paragraph(column: str, cell: str) -> str:
    """Return a cell as a paragraph of plain text, nothing if it is empty; links are left out."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"[;,]? ?\[(?:details|readings|picture)\]\([^)]*\)", "", cell))
    return fill(f"{column}: {plain}", 120, initial_indent="  ", subsequent_indent="    ") + "\n" if plain else ""


class Compared(NamedTuple):
    """A published number and ours; a plain tuple of the three will do."""

    what: str
    """What the number is, and where it is published."""
    paper: str | float
    """The number; in text as printed, such as ``"79,302"``, ``"about 1,000"`` or ``"< 20,000"``, which is a bound."""
    ours: Interval | float
    """The same quantity in the same unit."""


WITHIN = {"within 5 %": 0.05, "within 10 %": 0.10, "within 25 %": 0.25}
"""Classes of closeness, and how far ours may be from the published number, as a share of that."""
HOLDS, BEYOND = "holds", "beyond"


def closeness(rows: Iterable[tuple[str, str | float, Interval | float]]) -> pd.DataFrame:
    """Return a table of published numbers, ours, their ratio, and how close ours is: one of ``WITHIN``, or ``BEYOND``.

    A published bound ``HOLDS``, or has the class of ours relative to it.  Intervals are compared by their means.
    """
    table = []
    for row in rows:
        what, paper, ours = Compared(*row)
        mean = ours.mean if isinstance(ours, Interval) else float(ours)
        ratio = mean / _printed(what, paper)
        close = next((name for name, limit in WITHIN.items() if abs(ratio - 1) <= limit), BEYOND)
        if str(paper).startswith("<") and ratio < 1:
            close = HOLDS
        table.append((what, paper, ours, f"{ratio:.2f}", close))
    return pd.DataFrame(table, columns=["published number", "paper", "ours", "ours / paper", "ours is"], dtype=object)


def beyond(found: pd.DataFrame, reasons: Sequence[tuple[str, str, str]]) -> pd.DataFrame:
    """Return the numbers of a table of :func:`closeness` that are ``BEYOND`` all classes, by reason.

    Args:
        found: the table.
        reasons: for each group of numbers a title, a pattern that their whole names match, whose first group is the short name,
            and the reason.
    """
    groups: dict[str, list[str]] = {title: [] for title, _, _ in reasons}
    for row in found[found["ours is"] == BEYOND].itertuples(index=False):
        what, ratio = str(row[0]), row[3]
        matches = ((title, re.fullmatch(pattern, what)) for title, pattern, _ in reasons)
        title, match = next(((title, match) for title, match in matches if match), ("", None))
        if match is None:
            raise SystemExit(f"{what}: {BEYOND} {max(WITHIN.values()):.0%} of the published number, and REASONS has no reason")
        groups[title].append(f"{match[1]} {ratio}")
    if idle := [title for title, numbers in groups.items() if not numbers]:
        raise SystemExit(f"{idle[0]}: a reason in REASONS for no number {BEYOND} {max(WITHIN.values()):.0%}")
    rows = [(title, "; ".join(groups[title]), reason) for title, _, reason in reasons]
    return pd.DataFrame(rows, columns=["beyond 25 %", "ours / paper", "why"])


def counts_of(found: pd.DataFrame) -> str:
    """Return how many numbers of a table of :func:`closeness` are in each class."""
    counts = found["ours is"].value_counts()
    classes = [name for name in (HOLDS, *WITHIN, BEYOND) if name in counts]
    return f"Of {len(found)} numbers: {', '.join(f'{counts[name]} {name}' for name in classes)}."


def _printed(what: str, paper: str | float) -> float:
    """Return a number as it is printed, which is not 0."""
    try:
        value = float(re.sub(r"^(about|<) |,", "", str(paper)))
    except ValueError:
        value = 0.0
    if not value:
        raise SystemExit(f"{what}: {paper} is not allowed; a published number is a number other than 0, such as 79,302")
    return value


GALLERY = {
    "papers": "Papers reproduced",
    "tradeoffs": "Trade-offs",
    "hypothetical": "Hypothetical machines and workloads",
    "sites": "Logs of sites with rules",
    "learning": "Policies that learn",
}
"""Sections of the gallery by folder of scenarios; those of ``validation`` are on docs/validation.md."""


def scenarios(folder: str) -> Iterator[tuple[Path, str]]:
    """Yield the scripts of a folder of scenarios that define a study, and the question that each asks: its first line."""
    for path in sorted((ROOT / "scenarios" / folder).rglob("*.py")):
        module = ast.parse(path.read_text())
        if any(getattr(one, "name", None) == "study" for one in module.body):
            yield path, str(ast.get_docstring(module)).partition("\n\n")[0].replace("\n", " ")


def gallery() -> str:
    """Return the cards of the gallery: for each scenario its question, its first figure, and where its results are."""
    studies = [study for study in documented_studies() if study.page is not None]
    cards = []
    for folder, title in GALLERY.items():
        cards.append(f"## {title}\n\n````{{container}} gallery\n")
        cards += [card(path, question, [one for one in studies if one.script == path]) for path, question in scenarios(folder)]
        cards.append("````\n\n")
    return "".join(cards).rstrip() + "\n"


def card(script: Path, question: str, studies: Sequence[DocumentedStudy]) -> str:
    """Return the card of a scenario with its documented studies, which may be none: an item of a list."""
    name = f"`{script.relative_to(ROOT / 'scenarios').as_posix()}`"
    drawn = [one for one in studies if (DOCS / "figures" / picture(one)).exists()]
    if not studies:
        return f"- {question}\n\n  {name}\n"
    study = next(iter(drawn or studies))
    image = f"[![](figures/{picture(study)})]({place(study)})\n\n  " if drawn else ""
    return f"- {image}[{question}]({place(study)})\n\n  {name}\n"


def place(study: DocumentedStudy) -> str:
    """Return the link to the heading above a study's tables."""
    assert study.page is not None
    page = study.page.relative_to(DOCS).as_posix()
    headings = re.findall(r"^(#+) (.+)$", study.page.read_text().partition(f"<!-- {study.name} -->")[0], re.MULTILINE)
    level, heading = headings[-1]
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return f"{page}#{anchor}" if len(level) > 1 else page


def text(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return tables as plain text, each with its title."""
    shown = ((title, _with_named_rows(frame).map(_cell).to_string(index=False)) for title, frame in tables.items())
    return "\n".join(f"{title}\n\n{table}\n" for title, table in shown)


def markdown(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return tables as Markdown, each with its title; a table that is too wide for a page is continued below."""
    return "\n".join(
        f"**{title}**\n\n" + "\n".join(markdown_table(part, "---:") for part in parts(frame)) for title, frame in tables.items()
    )


WIDEST = 122
"""Characters of a table that fit the column of a page in a window of 1280 pixels."""


def parts(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Return a table in parts that fit a page, of about the same width, with the first columns, as many
    as tell the rows apart, in each.

    Columns of a paper and ours, ``paper, jobs`` and ``jobs``, stay together.
    """
    columns = _with_named_rows(frame)
    levels = next((n for n in range(1, len(columns.columns) + 1) if not columns.iloc[:, :n].duplicated().any()), 1)
    widths = [_width(columns.iloc[:, number]) for number in range(len(columns.columns))]
    names = list(map(str, columns.columns))
    pairs = [[number] for number in range(levels, len(names))]
    for number in range(len(names) - 1, levels, -1):
        if names[number - 1] == f"paper, {names[number]}":
            pairs[number - levels - 1 : number - levels + 1] = [[number - 1, number]]
    keys = sum(widths[:levels])
    count = -(-(sum(widths) - keys) // (WIDEST - keys))
    share = (sum(widths) - keys) / count
    blocks: list[list[int]] = [[] for _ in range(count)]
    taken = 0.0
    for pair in pairs:
        size = sum(widths[number] for number in pair)
        blocks[min(int((taken + size / 2) / share), count - 1)] += pair
        taken += size
    return [columns.iloc[:, [*range(levels), *block]] for block in blocks]


def _width(column: pd.Series) -> int:
    """Return the characters that a column needs: its longest word, and what is between columns."""
    words = [word for text in (str(column.name), *map(_cell, column)) for word in re.split(r" |(?<=-)", text)]
    return max(map(len, words)) + 2


def _with_named_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with what names its rows, if anything does, as first columns."""
    return frame.reset_index() if any(name is not None for name in frame.index.names) else frame


def markdown_table(frame: pd.DataFrame, alignment: str = "---") -> str:
    """Return a table as Markdown; all columns but the first are aligned as ``alignment`` says."""
    frame = _with_named_rows(frame)
    rows = [list(map(str, frame.columns)), ["---"] + [alignment] * (len(frame.columns) - 1)]
    rows += [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


VALIDATION = DOCS / "validation.md"


def verdict(study: DocumentedStudy) -> dict[str, object]:
    """Return the row of a stored validation: how many points agree, and the largest difference."""
    experiment = study.experiment()
    assert isinstance(experiment, Validation)
    found = experiment.conclude(StudyTable.read_csv(study.stored)).frame
    largest = found["difference"].abs().max()
    return {
        "formula and simulation": f"[{experiment.name}]({study.all_tables.relative_to(DOCS).as_posix()})",
        "script": f"`{study.script.stem}`",
        "margin": f"{100 * experiment.margin:.2g} %" if experiment.margin > 1e-6 else "exact",
        "points": len(found),
        "agree": int((found["verdict"] == "agrees").sum()),
        "differ": int((found["verdict"] == "differs").sum()),
        "largest difference": f"{largest:.1g}" if largest < 1e-9 else f"{100 * largest:.2f} %",
    }


def verdicts() -> str:
    """Return the table of all validations; the Markov chain of ``gang_rows`` takes half a minute."""
    rows = pd.DataFrame([verdict(study) for study in documented_studies() if study.page == VALIDATION])
    totals = {name: int(rows[name].sum()) for name in ("points", "agree", "differ")}
    total = {"formula and simulation": "all", "script": "", "margin": "", **totals, "largest difference": ""}
    return markdown_table(pd.concat([rows, pd.DataFrame([total])], ignore_index=True))


def rules_of_policies() -> str:
    """Return the table of the rules that the shipped policies respect."""
    policies = registry.policies_by_rules(registry.shipped_policies())
    return markdown_table(pd.DataFrame(
        {"policies": [", ".join(f"`{name}`" for name in names) for names in policies.values()]}
        | {rule: [row[place] for row in policies] for place, rule in enumerate(registry.RULES)}
    ))  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Make the studies named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="studies of docs/studies.toml (default: all)")
    parser.add_argument("--stored", action="store_true", help="show the stored tables again instead of running")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="directory of the results (default: results)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one for each processor)")
    options = parser.parse_args(argv)
    studies = {study.name: study for study in documented_studies()}
    if unknown := set(options.names) - studies.keys():
        parser.error(f"{sorted(unknown)[0]}: no such study; there are {', '.join(studies)}")
    for name in options.names or studies:
        study = studies[name]
        if (path := study.missing()) is not None and not options.stored:
            print(f"{name}: skipped, because {path} is missing")
            continue
        if not options.stored:
            make(study, options.results, options.workers)
        show(study)
        print(f"{name}: {study.stored.relative_to(ROOT)}")
    if any(studies[name].page == VALIDATION for name in options.names or studies):
        VALIDATION.write_text(with_tables(VALIDATION.read_text(), "verdicts", verdicts()))
    for author_year in publications():
        page, paper = published_page(author_year), publication(author_year)
        page.write_text(paper.in_page(page.read_text()))
        paper.all_tables.parent.mkdir(exist_ok=True)
        paper.all_tables.write_text(paper.text())
    for name, place, text in (("gallery.md", "gallery", gallery()), ("site.md", "policies", rules_of_policies())):
        page = DOCS / name
        page.write_text(with_tables(page.read_text(), place, text))


if __name__ == "__main__":
    main()
