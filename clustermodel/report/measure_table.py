"""Tables of measures for people: a row for each point, a column for each measure, and the published values before it.

Published values stand in a file ``published.toml`` beside the scripts of a paper, each table with its source::

    [table_2]
    source = "Perkovic & Keleher 2000, table 2: jobs by shape"
    index = ["trace", "shape"]
    columns = ["jobs"]
    rows = [["CTC-SP2", "short-narrow", 14486], ["CTC-SP2", "short-wide", 25702]]

Classes of jobs are columns of an experiment's table (:func:`class_measures`), or rows (:func:`by_class`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.experiment.design import Measure
from clustermodel.experiment.factors import Label
from clustermodel.experiment.result import Result
from clustermodel.experiment.study_table import MissingValueError, StudyTable
from clustermodel.measure.statistics import LEVEL, Interval
from clustermodel.text.formatting import cell

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

PAPER: Final = "paper, "
"""Begins the titles of columns with published values."""
_COUNTS: Final = ("jobs", "rejected", "killed", "aborted")  # metrics that are numbers of jobs


@dataclass(frozen=True)
class Scaled:
    """A measure in another unit."""

    measure: str
    """A column of numbers."""
    scale: float = 1.0
    """Factor by which its values are multiplied."""
    at: Mapping[str, Label] = field(default_factory=dict)
    """Levels of factors that the rows do not name."""


@dataclass(frozen=True)
class Relative:
    """A measure compared with the same measure at other levels, paired by replication."""

    measure: str
    """A column of numbers."""
    to: Mapping[str, Label]
    """The levels of the baseline; it shares the other levels of the row."""
    ratio: bool = True
    """Divide by the baseline instead of subtracting it."""
    at: Mapping[str, Label] = field(default_factory=dict)
    """Levels of factors that the rows do not name; the baseline shares those that ``to`` does not change."""


Columns = Mapping[str, str | Scaled | Relative]
"""Measures by the titles of their columns."""
Classify = Callable[[Result], "npt.ArrayLike"]
"""A function that returns the class of each job of a run, in the order of its job table, shape ``(jobs,)``."""


def measure_table(
    table: StudyTable, columns: Columns, *, by: Sequence[str] | None = None, published: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the means of measures with their intervals, and published values before them.

    The factors ``by`` distinguish the rows, as for ``StudyTable.means``; a table of :class:`Relative` measures only has no rows
    of the baseline.  Cells are :class:`~clustermodel.measure.statistics.Interval`, plain numbers if every point has a single
    run, and empty where the measure or its point is missing.  ``published`` values of a paper, by the levels of the one factor,
    have columns ``"paper, TITLE"`` before those of the measures.
    """
    import pandas as pd

    measures = {title: Scaled(column) if isinstance(column, str) else column for title, column in columns.items()}

    def is_compared(point: dict[str, Label]) -> bool:
        of = ((measure, {**point, **measure.at}) for measure in measures.values())
        return any(isinstance(measure, Scaled) or {**levels, **measure.to} != levels for measure, levels in of)

    points = [point for point in table.points(by) if is_compared(point)]
    frame = pd.DataFrame(points, dtype=object)
    for title, measure in measures.items():
        cells: list[Any] = [_value(table, measure, {**point, **measure.at}) for point in points]
        if isinstance(measure, Scaled) and all(isnan(mean.half) for mean in cells if mean != ""):
            cells = [mean and mean.mean for mean in cells]
        frame[title] = pd.Series(cells, frame.index, dtype=object)
    if published is None or published.empty:
        return frame
    return with_published(frame.set_index(frame.columns[0]), published).reset_index()


def _value(table: StudyTable, measure: Scaled | Relative, levels: dict[str, Label]) -> Interval | str:
    if measure.at and levels not in table.points(list(levels)):
        return ""
    if isinstance(measure, Relative):
        return table.difference(measure.measure, levels, {**levels, **measure.to}, ratio=measure.ratio)
    try:
        mean = table.interval(measure.measure, level=LEVEL, **levels)
    except MissingValueError:
        return ""
    return replace(mean, mean=measure.scale * mean.mean, half=measure.scale * mean.half)


def readings_table(table: StudyTable, columns: Columns, published: Mapping[Any, float], *, of: str = "reading") -> pd.DataFrame:
    """Return which reading of a paper gives which published number: the paper's row, and a row for each reading.

    ``columns`` are the published quantities, as for :func:`measure_table`, each with the levels of other factors (``at``);
    ``published`` has the paper's numbers by title, and may lack some; ``of`` is the factor whose levels are readings.  Values
    are marked as in Markdown: bold, with two stars, within 5 %, and in italics, with one, within 10 %.  The last column counts
    the numbers within 10 %.
    """
    import pandas as pd

    known = {title: float(published[title]) for title in columns if title in published and not isnan(published[title])}
    count = "within 10 %"
    rows: list[dict[str, object]] = [{of: "paper", **{title: cell(known[title]) for title in known}}] if known else []
    for measured in measure_table(table, columns, by=[of]).to_dict("records"):
        row: dict[str, object] = {of: measured[of]}
        hits = 0
        for title in columns:
            value, marks = measured[title], ""
            if title in known and value != "":
                off = abs(getattr(value, "mean", value) - known[title])
                marks = "**" if off <= 0.05 * abs(known[title]) else "*" if off <= 0.1 * abs(known[title]) else ""
                hits += bool(marks)
            row[title] = f"{marks}{cell(value)}{marks}"
        rows.append({**row, count: f"{hits} of {len(known)}"})
    return pd.DataFrame(rows, columns=[of, *columns, count] if known else [of, *columns]).fillna("")


def published_table(script: str | PathLike[str], *names: str, trace: object = None) -> pd.DataFrame:
    """Return tables of a paper from the file ``published.toml`` beside a script, side by side.

    Values that a row lacks are ``nan``.  If tables have an index ``"trace"``, only the rows are returned whose trace is part of
    ``trace``, such as the path of the study's file: none for a trace that the paper does not have.  A file that cannot be read,
    or a table without its source, index, columns or rows, is a ``SpecificationError``.
    """
    import pandas as pd

    path = Path(script).with_name("published.toml")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SpecificationError(f"{path}: cannot be read: {problem.strerror}") from None
    except ValueError as problem:  # not UTF-8, or no TOML
        raise SpecificationError(f"{path}: {problem}") from None
    frames = []
    for name in names:
        if name not in tables:
            near = did_you_mean(name, list(tables))
            raise SpecificationError(f"{path}: there is no table {quoted(name)}{near}; there are {', '.join(tables)}")
        if missing := [part for part in ("source", "index", "columns", "rows") if part not in tables[name]]:
            raise SpecificationError(f"{path}: {name}: {missing[0]} is missing")
        index, columns, rows = (tables[name][part] for part in ("index", "columns", "rows"))
        titles = [*index, *columns]
        for number, row in enumerate(rows, 1):
            if not len(index) <= len(row) <= len(titles):
                wrong = f"row {number} has {len(row)} values; the columns are {', '.join(titles)}"
                raise SpecificationError(f"{path}: {name}: {wrong}")
        full = [[*row, *[nan] * (len(titles) - len(row))] for row in rows]
        frames.append(pd.DataFrame(full, columns=titles).set_index(index))
    published = pd.concat(frames, axis=1)
    if "trace" not in published.index.names:
        return published
    known = [name for name in published.index.unique("trace") if str(name) in str(trace)]
    return published[published.index.isin(known, level="trace")].droplevel("trace")


def with_published(found: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which each column with published values has them before it, as column ``"paper, column"``.

    The index identifies the rows.  Rows that ``published`` lacks are ``nan``; rows and columns that the results lack are left
    out.  If no row is in both, the results are returned as they are.
    """
    for frame in (found, published):
        if not frame.index.is_unique:
            twice = frame.index[frame.index.duplicated()][0]
            raise SpecificationError(f"with_published: {twice} is there twice; rows must be unique")
    if not published.index.isin(found.index).any():
        return found
    in_order = published.reindex(found.index)
    columns = {}
    for column in found:
        if column in published:
            columns[f"{PAPER}{column}"] = in_order[column]
        columns[str(column)] = found[column]
    return type(found)(columns)


def class_measures(classify: Classify, classes: Iterable[Label], metrics: Mapping[str, str | Scaled]) -> dict[str, Measure]:
    """Return measures of an experiment: metrics of the jobs of each class.

    >>> from clustermodel.report.measure_table import class_measures
    >>> classify = lambda result: result.jobs["nodes"] > 8
    >>> list(class_measures(classify, [True, False], {"wait_s, wide {}": "mean_wait_s"}))
    ['wait_s, wide True', 'wait_s, wide False']

    ``metrics`` has columns of :meth:`Result.by_group <clustermodel.experiment.result.Result.by_group>` by the name of the
    measure, in which ``{}`` stands for the class.  In a run without jobs of a class, their numbers are 0 and other measures are
    missing.
    """
    return {
        title.format(label): partial(_metric, classify=classify, label=label, metric=metric)
        for (title, metric), label in product(metrics.items(), classes)
    }


def _metric(result: Result, classify: Classify, label: Label, metric: str | Scaled) -> float | None:
    scaled = Scaled(metric) if isinstance(metric, str) else metric
    values: dict[object, float] = _metrics(result, classify)[scaled.measure].to_dict()
    if label not in values:
        return 0 if scaled.measure in _COUNTS else None
    return scaled.scale * values[label]


@lru_cache(maxsize=1)
def _metrics(result: Result, classify: Classify) -> pd.DataFrame:
    """Return the metrics of all classes; the measures of a run are taken one after the other."""
    return result.by_group(classify(result))


def by_class(table: StudyTable, factor: str, columns: Mapping[str, Mapping[str, str]]) -> StudyTable:
    """Return a table with a row for each trial and class of jobs, and one factor more, whose levels are the classes.

    ``columns`` has for each class its columns by their common names; trials in which one is missing have no row of the class.
    """
    import pandas as pd

    parts = []
    for label, of_class in columns.items():
        renamed: dict[str, Any] = {name: table.frame[column] for name, column in of_class.items()}
        parts.append(table.frame.assign(**{factor: label, **renamed}).dropna(subset=list(of_class)))
    return StudyTable(pd.concat(parts, ignore_index=True), [*table.factors, factor], table.name)
