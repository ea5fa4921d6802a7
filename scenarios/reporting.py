"""What the studies in this folder share, whatever they study: tables of runs, means with intervals, tables and figures to show.

Responsible for running tasks on several processes, for storing their results and for showing them; what is run, and which
tables and figures a study has, is its script's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from clustermodel import ClusterModelError, statistics

FloatArray = npt.NDArray[np.float64]

DOTS_PER_INCH: Final = 110
"""Of figures: legible, and small enough to keep with the documentation."""


IN_SUMMARIES: Final = {
    "rho": "utilization",
    "wait_s": "mean_wait_s",
    "response_s": "mean_response_s",
    "waste": "wasted_load",
    "mbs": "mean_bounded_slowdown",
    "mwbs": "mean_weighted_bounded_slowdown",
}
"""What measures are called in the package's summaries; ``slowdown`` is 002's or 003's, as its study says."""


class Interval(NamedTuple):
    """A mean over replications and its 95 % confidence interval."""

    mean: float
    half: float
    """Half the width of the interval; ``nan`` for a single replication."""

    def shown(self, number: Callable[[float], str]) -> str:
        """Return mean ± half, each as ``number`` writes it; the unit, if there is one, once."""
        if isnan(self.half):
            return number(self.mean)
        mean, _, unit = number(self.mean).partition(" ")
        half = number(self.half).partition(" ")[0]
        return f"{mean} ± {half} {unit}".rstrip()


def interval(values: Sequence[float] | FloatArray) -> Interval:
    """Return the mean and the Student t interval of independent replications; of a single one, which has none, the value."""
    if len(values) == 1:
        return Interval(float(values[0]), nan)
    found = statistics.interval(values)
    return Interval(found.mean, found.half)


@dataclass(frozen=True)
class Runs:
    """The table of runs: one row per point and replication, columns from ``Point.at``, ``replication`` and the measures."""

    facts: Mapping[str, object]
    """What the table was made from."""
    rows: Sequence[Mapping[str, Any]]

    def at(self, **place: object) -> Runs:
        """Return the runs that have these values in these columns."""
        rows = [row for row in self.rows if all(row[name] == value for name, value in place.items())]
        return Runs(self.facts, rows)

    def distinct(self, column: str) -> list[Any]:
        """Return the different values of a column, in the order in which they appear."""
        return list(dict.fromkeys(row[column] for row in self.rows))

    def values(self, measure: str) -> FloatArray:
        """Return a measure of one point in the order of replications, so that two points can be compared pair by pair.

        Raises:
            ValueError: these are the runs of no point, or of several.
        """
        replications = [row["replication"] for row in self.rows]
        if not replications or len(set(replications)) != len(replications):
            raise ValueError(f"{measure}: {len(replications)} runs are not the replications of one point")
        return np.array([row[measure] for row in sorted(self.rows, key=lambda row: row["replication"])], dtype=float)

    def frame(self, **names: str) -> pd.DataFrame:
        """Return the table as the package's figures take it: one row per run, measures under the names of its summaries.

        Args:
            names: what else a column is to be called, by its name here.
        """
        return pd.DataFrame(list(self.rows)).rename(columns={**IN_SUMMARIES, **names})

    def interval(self, measure: str) -> Interval:
        """Return mean and interval of a measure of one point."""
        return interval(self.values(measure))

    def curve(self, measure: str) -> list[Interval]:
        """Return a measure of one configuration at each factor."""
        return [self.at(factor=factor).interval(measure) for factor in self.distinct("factor")]

    def means(self, measure: str) -> FloatArray:
        """Return the means of :meth:`curve`."""
        return np.array([one.mean for one in self.curve(measure)])


def better(before: Runs, after: Runs, measure: str) -> Interval:
    """Return by which fraction a measure is smaller after than before, paired by replication; 0 where both are 0."""
    old, new = before.values(measure), after.values(measure)
    same = old == new
    return interval(np.where(same, 0.0, 1 - new / np.where(same, 1.0, old)))


# Running.


def whole(text: str) -> int:
    """Return a number of things, at least one, from the command line."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a whole number >= 1")
    return number


def refusing_in_one_line(main: Callable[[Sequence[str] | None], None]) -> Callable[[Sequence[str] | None], None]:
    """Return a script's ``main`` that ends with one line where a trace or an option is refused."""

    @wraps(main)
    def program(argv: Sequence[str] | None = None) -> None:
        try:
            main(argv)
        except ClusterModelError as problem:
            raise SystemExit(f"error: {problem}") from None

    return program


def add_usual_options(parser: argparse.ArgumentParser, *, study: str) -> None:
    """Add the options that every study has.

    Args:
        parser: of the script's arguments.
        study: name of the script.
    """
    add = parser.add_argument
    add("--workers", type=whole, default=os.cpu_count() or 1, help="processes (default: one for each processor)")
    add("--figure", type=Path, metavar="PATH", help="save the figure")
    add("--json", type=Path, metavar="PATH", help="store the table of runs")
    add("--stored", type=Path, metavar="PATH", help="show a stored table of runs instead of running")
    add("--markdown", action="store_true", help="print tables as Markdown")
    add("--into", type=Path, metavar="PATH", help="write tables into a Markdown page, between their mark and <!-- end -->")
    parser.set_defaults(study=study)


def in_parallel(run: Callable[..., dict[str, Any]], tasks: Sequence[tuple[Any, ...]], workers: int) -> list[Mapping[str, Any]]:
    """Return ``run(*task)`` for each task, in their order, with a bar that shows how far it is."""
    rows: list[Mapping[str, Any]] = [{}] * len(tasks)
    with _shown_progress(len(tasks)) as advance:
        if workers == 1:
            for index, task in enumerate(tasks):
                rows[index] = run(*task)
                advance()
        else:
            with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
                places: dict[Future[dict[str, Any]], int] = {pool.submit(run, *task): at for at, task in enumerate(tasks)}
                for done in as_completed(places):
                    rows[places[done]] = done.result()
                    advance()
    return rows


@contextmanager
def _shown_progress(total: int) -> Iterator[Callable[[], None]]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("runs", total=total)
        yield lambda: progress.advance(task)


# Storing: JSON with a line for each run.


def write(runs: Runs, path: Path) -> None:
    """Store a table of runs."""
    columns = list(runs.rows[0])
    lines = ",\n  ".join(json.dumps([row[name] for name in columns]) for row in runs.rows)
    path.write_text(
        f'{{"facts": {json.dumps(dict(runs.facts))},\n "columns": {json.dumps(columns)},\n "rows": [\n  {lines}\n]}}\n'
    )


def read(path: Path) -> Runs:
    """Read a stored table of runs."""
    stored = json.loads(path.read_text())
    return Runs(stored["facts"], [dict(zip(stored["columns"], row, strict=True)) for row in stored["rows"]])


# Showing.


class Grid(NamedTuple):
    """A table to print; rows of cells as they are shown."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def report(
    options: argparse.Namespace, runs: Runs, grids: Sequence[Grid], figure: Callable[[Runs], Figure], *, mark: str = ""
) -> None:
    """Print the tables, save the figure, store the runs, as the options say.

    Args:
        options: of the study.
        runs: its table of runs.
        grids: the tables to show.
        figure: draws the runs.
        mark: after which the tables stand in a page; by default the study's name.
    """
    mark = mark or options.study
    if options.markdown:
        print(markdown(grids), end="")
    else:
        console = Console(width=200, highlight=False, markup=False)
        for grid in grids:
            table = Table(title=grid.title, title_justify="left")
            for position, heading in enumerate(grid.headings):
                table.add_column(heading, justify="right" if position else "left")
            for row in grid.rows:
                table.add_row(*row)
            console.print(table)
    if options.json:
        write(runs, options.json)
    if options.into:
        write_into(options.into, mark, markdown(grids))
    if options.figure:
        figure(runs).savefig(options.figure, dpi=DOTS_PER_INCH)


def write_into(page: Path, mark: str, text: str) -> None:
    """Replace what stands in a page between a mark and the next ``<!-- end -->``.

    Raises:
        SystemExit: the mark is not there.
    """
    before, begin, rest = page.read_text().partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not end:
        raise SystemExit(f"{page}: there is no place for {mark}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def markdown(grids: Sequence[Grid]) -> str:
    """Return tables as Markdown."""
    texts = []
    for grid in grids:
        lines = [grid.headings, ["---"] + ["---:"] * (len(grid.headings) - 1), *grid.rows]
        texts.append(f"**{grid.title}**\n\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines))
    return "\n".join(texts)


def three_digits(value: float) -> str:
    """Write a slowdown or a time with about three significant digits."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def share(value: float) -> str:
    """Write a utilization or a loss of capacity."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """Write a fraction as a percentage."""
    return f"{100 * value:.1f} %"


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Name the axes and lay a grid under them."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25, which="both", linewidth=0.5)


def draw_bars(
    axes: Axes, places: FloatArray, found: Sequence[Interval], width: float, *, across: bool = False, **style: Any
) -> None:
    """Draw means as bars, with lines for their 95 % intervals where there are any.

    Args:
        axes: where.
        places: of the bars' middles.
        found: the means.
        width: of a bar.
        across: draw the bars from left to right.
        style: of the bars, as matplotlib has it.
    """
    mean, half = np.array(found).T
    known = ~np.isnan(half)
    spread = np.minimum(half, mean)[known], half[known]  # nothing that is drawn as a bar is negative
    lines: dict[str, Any] = {"fmt": "none", "ecolor": "0.25", "elinewidth": 1, "capsize": 2}
    if across:
        axes.barh(places, mean, width, **style)
        axes.errorbar(mean[known], places[known], xerr=spread, **lines)
    else:
        axes.bar(places, mean, width, **style)
        axes.errorbar(places[known], mean[known], yerr=spread, **lines)
    axes.set_axisbelow(True)


def use_log_scale(*panels: Axes) -> None:
    """Scale vertical axes logarithmically, down to half of the lowest mean in any of the panels, though bands may go deeper."""
    lines = [line for axes in panels for line in axes.get_lines()]
    lowest = min(float(np.min(np.asarray(line.get_ydata(), dtype=float), initial=inf)) for line in lines)
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(bottom=lowest / 2)
