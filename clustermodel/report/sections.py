"""The sections of the page: tables, differences, capacity, curves and maps of the study, its exhibits, and its runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from bokeh.models import CustomJS
from matplotlib import colormaps
from matplotlib.colors import to_hex

from clustermodel.errors import SpecificationError, counted
from clustermodel.experiment.exhibits import StoredExhibits
from clustermodel.experiment.factors import describe
from clustermodel.experiment.run_key import PLACEMENTS, RECORDS, STATES_OVER_TIME
from clustermodel.experiment.store import Store
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.capacity import ACCOUNT_COLOURS, SHARE_COLUMNS, account_shares
from clustermodel.figures.style import short, time_axis, visible
from clustermodel.report.data import Replications, StudyData, measure_title
from clustermodel.report.plots import (
    BINS,
    Control,
    Group,
    StatesOfRun,
    curve_controls,
    curve_of,
    curves_over_time,
    group_of,
    held_controls,
    metric_curves,
    span,
)
from clustermodel.report.viewer import PANELS, ViewedRun, run_viewer, viewed_run

MOST_ROWS: Final = 1000
"""Rows of a table of runs."""
_LONGEST: Final = 60


class TableCell(NamedTuple):
    """A cell of a table."""

    text: str
    value: str = ""
    """The exact value, if the text is not."""
    style: str = ""
    """Classes of the style sheet, separated by spaces."""


class PageColumn(NamedTuple):
    """A column of a table, which readers can sort and download."""

    name: str
    """In CSV files."""
    title: str
    """In the page."""
    cells: Sequence[TableCell]
    numeric: bool = True


class PageTable(NamedTuple):
    """A table of the page."""

    name: str
    """Of the element, and of the CSV file."""
    columns: Sequence[PageColumn]

    @property
    def rows(self) -> list[tuple[TableCell, ...]]:
        """The cells by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


def _number_format(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> Callable[[float], str]:
    """Return how to write the numbers of a column: about four significant digits of the largest."""
    known = np.abs(np.asarray(values, dtype=float))
    known = known[np.isfinite(known)]
    largest = float(known.max(initial=0.0))
    whole = bool((known % 1 == 0).all())
    digits = 0 if whole or largest >= 10_000 else 1 if largest >= 100 else 2 if largest >= 10 else 4
    return lambda value: f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def _number_cells(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]], style: str = "") -> list[TableCell]:
    """Return the cells of a column of numbers."""
    shown = _number_format(values)
    return [TableCell(shown(value), exact(value), style) for value in map(float, values)]


def _text_cell(text: object) -> TableCell:
    """Return a cell with a text, which is shown short and on one line."""
    whole = visible(text)
    label = short(whole, _LONGEST)
    return TableCell(label, "" if label == whole else whole)


def exact(value: float) -> str:
    """Return a number with all its digits, an empty text for ``nan``."""
    return (
        "" if not np.isfinite(value) else str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
    )


def from_frame(name: str, frame: pd.DataFrame) -> PageTable:
    """Return a table of pandas; a named index becomes columns."""
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index()
    columns = []
    for at, title in enumerate(map(visible, frame.columns)):
        values = frame.iloc[:, at]
        numeric = values.dtype.kind in "iuf"
        cells = _number_cells(values.to_numpy(dtype=float)) if numeric else [_text_cell(_known(value)) for value in values]
        columns.append(PageColumn(title, title.replace("_", " "), cells, numeric))
    return PageTable(name, columns)


def _known(value: object) -> object:
    return "-" if value is None or value != value else value  # noqa: PLR0124  nan


MAP_COLOURS: Final = {
    "means": [to_hex(colormaps["cividis"](share)) for share in np.linspace(0, 1, 33)],
    "differences": [to_hex(colormaps["PuOr_r"](share)) for share in np.linspace(0, 1, 33)],
}
"""Colours of heat maps from low to high."""
_ABOUT_TRIALS: Final = ("run", "replication", "seed", "policy", "workload", "nodes", "warm_up_s")
"""Columns of the table that no section draws."""


class Picture(NamedTuple):
    """A figure of the study's own."""

    title: str
    address: str
    """The file itself, as a data URI."""


@dataclass
class Section:
    """A part of the page."""

    name: str
    title: str
    text: str = ""
    tables: Sequence[tuple[str, PageTable]] = ()
    """With their captions."""
    pictures: Sequence[Picture] = ()
    controls: Sequence[Control] = ()
    filled: str = ""
    """The element that a script of the page fills."""
    plots: Sequence[Any] = ()
    starts: CustomJS | None = None
    """Draws the plots."""
    more: dict[str, Any] = field(default_factory=dict)
    """What the template needs else."""


def measures_of(table: StudyTable, study: Replications, shown: Sequence[str]) -> list[str]:
    """Return the columns to draw that have numbers: the shown ones first, then the others in the order of the table.

    Where nodes are shared in time the waits stand behind the other shown columns: they are short by construction.
    """
    shared = "delayed" in table.frame and bool(table.frame["delayed"].isna().any())  # which time sharing does not define
    first = sorted(shown, key=lambda name: shared and "wait" in name)
    others = [str(name) for name in table.frame.columns if name not in {*shown, *_ABOUT_TRIALS}]
    return [
        name
        for name in [*first, *others]
        if name not in table.factors and name in table.frame and _is_numeric(table.frame[name]) and study.has(name)
    ]


def _is_numeric(values: pd.Series) -> bool:
    return all(value is None or isinstance(value, int | float | np.number) for value in values)


def summary(study: Replications, data: StudyData, shown: Sequence[str]) -> Section:
    """Return the table of means: a row for each point."""
    points = list(range(len(study.codes)))
    columns = _factor_columns(study, points, study.varying)
    several = max(data["runs"]) > 1
    if several:
        columns.append(PageColumn("replications", "runs", _number_cells(data["runs"])))
    for name in shown:
        mean, half, _ = study.means(name)
        columns.append(PageColumn(name, measure_title(name), _number_cells(mean)))
        if several:
            columns.append(PageColumn(f"{name}_half", "±", _number_cells(half, "half")))
    means = f"  Means over up to {max(data['runs'])} runs; ± is half the 95 % interval (Student t)." if several else ""
    text = f"A row for each {_named(study)}.{means}  Click a heading to sort."
    return Section("summary", "Summary", text, [("", PageTable("summary", columns))])


def _named(study: Replications) -> str:
    names = [study.factors[at].title for at in study.varying]
    return ", ".join(names) or "point"


def _factor_columns(study: Replications, points: Sequence[int], factors: Sequence[int]) -> list[PageColumn]:
    """Return the columns of factors of a table."""
    columns = []
    for at in factors:
        factor = study.factors[at]
        cells = []
        for level, label in zip(factor.levels, factor.labels, strict=True):
            value = exact(float(level)) if factor.numeric else visible(level)  # type: ignore[arg-type]
            cells.append(TableCell(label, "" if value == label else value))
        of_rows = [cells[study.codes[point, at]] for point in points]
        columns.append(PageColumn(factor.name, factor.title, of_rows, factor.numeric))
    return columns


def differences(data: StudyData) -> Section | None:
    """Return the paired differences from a baseline, which ``differences.mjs`` shows; ``None`` without any to compare."""
    comparable = [(str(at), data["factors"][at]["title"]) for at, levels in enumerate(data["differences"]) if levels]
    if not comparable or not data["shown"]:
        return None
    lead = str(data["lead"])
    first = lead if lead in dict(comparable) else comparable[0][0]
    controls = [
        Control("differences-factor", "compare", comparable, first),
        Control("differences-baseline", "baseline", [], ""),
    ]
    text = (
        "Mean differences from the baseline at otherwise equal factors, replication by replication: with the same jobs, what "
        "all policies share cancels.  ± is half the 95 % interval; ▼ and ▲ mark differences that are significantly lower and "
        "higher, one by one: of a hundred differences that are zero, five look as if they were not."
    )
    if max(data["runs"]) == 1:
        text += "  With a single replication nothing is known about significance."
    return Section("differences", "Paired differences", text, controls=controls, filled="differences-table")


def capacity(study: Replications) -> Section | None:
    """Return what the capacity was used for: a stacked bar for each point; ``None`` for a table without accounts."""
    if not all(study.has(name) for name in SHARE_COLUMNS):
        return None
    order = _by_lead(study)
    means = pd.DataFrame({name: study.means(name).mean for name in SHARE_COLUMNS}).iloc[order]
    shares = account_shares(means).to_numpy(dtype=float)
    others = [at for at in study.varying if at != study.lead]
    columns = _factor_columns(study, order, [*others, *([study.lead] if study.lead is not None else [])])
    table = PageTable("capacity", columns)
    columns_of_uses = [PageColumn(use, use, ()) for use in ACCOUNT_COLOURS]
    bars = []
    for cells, row in zip(table.rows or [()] * len(order), shares, strict=True):
        parts = [
            (use, colour, f"{share:.6f}", f"{share:.2%}")
            for (use, colour), share in zip(ACCOUNT_COLOURS.items(), row, strict=True)
            if share > 0
        ]
        numbers = [TableCell(f"{share:.1%}" if np.isfinite(share) else "-", exact(share)) for share in row]
        bars.append({"cells": cells, "parts": parts, "numbers": numbers})
    used = [use for use, share in zip(ACCOUNT_COLOURS, np.nan_to_num(shares).T, strict=True) if share.any()]
    text = (
        "What the nodes' time was used for, as shares of the capacity, means over replications.  Idle nodes while jobs wait, "
        "and all overheads while jobs wait are lost capacity (Zhang et al. 2003, eqs. (2) and (3))."
    )
    more = {"bars": bars, "columns": table.columns, "uses": columns_of_uses, "used": used, "colours": ACCOUNT_COLOURS}
    return Section("capacity", "Capacity by account", text, more=more)


def _by_lead(study: Replications) -> list[int]:
    """Return the points with those next to each other that differ in the lead factor only."""
    others = [at for at in range(study.codes.shape[1]) if at != study.lead]
    groups = {tuple(code): number for number, code in reversed(list(enumerate(study.codes[:, others].tolist())))}
    return sorted(range(len(study.codes)), key=lambda point: groups[tuple(study.codes[point, others].tolist())])


def curves(data: StudyData, first: str) -> Section:
    """Return the curves of a measure."""
    plots, starts = metric_curves(data)
    return Section("metrics", "Curves", _ABOUT_CURVES, controls=curve_controls(data, first), plots=plots, starts=starts)


_ABOUT_CURVES: Final = (
    "Means over replications; bands and whiskers are 95 % intervals.  Drag to zoom (or enable the wheel tool); click a legend "
    "entry to hide it; hover for values."
)


def maps(data: StudyData, first: str) -> Section | None:
    """Return the heat maps, which ``maps.mjs`` shows; ``None`` without two factors with several levels."""
    factors = [(str(at), factor["title"]) for at, factor in enumerate(data["factors"]) if len(factor["labels"]) > 1]
    if len(factors) < 2:
        return None
    lead = data["lead"]
    axes = sorted(
        (int(at) for at, _ in factors), key=lambda at: (at == lead, not data["factors"][at]["numeric"])
    )  # numbers first, the policy last
    shows = [("", "means")]
    if data["differences"][lead]:
        shows += [(str(at), f"differences from {label}") for at, label in enumerate(data["factors"][lead]["labels"])]
    controls = [
        Control("maps-measure", "measure", [(name, of["title"]) for name, of in data["measures"].items()], first),
        Control("maps-show", "show", shows, ""),
        Control("maps-x", "across", factors, str(axes[0])),
        Control("maps-y", "down", factors, str(axes[1])),
        *held_controls("maps", data),
    ]
    text = (
        "A mean in each cell, or its paired difference from a baseline in per cent of the baseline's mean.  "
        "Hatched differences are not significant."
    )
    return Section("maps", "Heat maps", text, controls=controls, filled="maps-table")


def runs(table: StudyTable, study: Replications, measures: Sequence[str]) -> Section:
    """Return the table of all runs with all measures."""
    frame = table.frame.iloc[:MOST_ROWS]
    columns = _factor_columns(study, study.point_of_trial[:MOST_ROWS].tolist(), study.varying)
    for name in ("replication", "seed"):
        columns.append(PageColumn(name, name, _number_cells(frame[name].to_numpy(dtype=float))))
    for name in measures:
        values = pd.to_numeric(frame[name]).to_numpy(dtype=float)
        columns.append(PageColumn(name, measure_title(name), _number_cells(values)))
    columns.append(PageColumn("run", "run", [_text_cell(run) for run in frame["run"]], numeric=False))
    text = "Every run with all measures.  Click a heading to sort."
    if left := len(table) - len(frame):
        text += f"  {counted(left, 'run')} more are left out: clustermodel results --csv has all."
    return Section("runs", "Runs", text, [("", PageTable("runs", columns))])


def exhibits(stored: StoredExhibits) -> Section | None:
    """Return the tables and figures of the study's own, ``None`` if it has none."""
    tables = [(visible(title), from_frame(path.stem, _read(path))) for title, path in stored.tables.items()]
    pictures = [Picture(visible(title), _data_uri(path)) for title, path in stored.figures.items()]
    if not tables and not pictures:
        return None
    return Section("exhibits", "Results", tables=tables, pictures=pictures)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (ValueError, OSError):  # an empty table, or a damaged file
        return pd.DataFrame()


def _data_uri(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


SIZE: Final = 12_000_000
"""Bytes for the figures of runs; runs beyond are left out.  Encoded in the file, the figures take a third more at most."""
GROUPS: Final = 12
"""Groups of runs with curves over time."""
_ABOUT_RUNS: Final = (
    "Which job held which nodes; initially zoomed to the longest queue.  Choose a second run to see both at the same "
    "time.  Drag or resize the window in the strip above a chart to show another time.  The slider, its arrow keys and "
    "a click into a chart select an event: the matrix shows the gangs then, with time sharing as the rows of the "
    "Ousterhout matrix; the row that runs first has a dashed frame.  Click a job to see all its pieces, its wait, "
    "response and slowdown, and what is known of its start.  Hatched: replicas outside their home row (slanted lines), run "
    "attempts whose work was discarded (crosses) or saved (dots), or that the failure of a node ended (level lines)."
)


class FinishedTrial(NamedTuple):
    """A finished trial."""

    key: str
    point: int
    replication: int
    nodes: int


def trials_of(table: StudyTable, study: Replications) -> list[FinishedTrial]:
    """Return the finished trials, in the order of the study."""
    frame = table.frame
    nodes = pd.to_numeric(frame["nodes"], errors="coerce")
    rows = zip(frame["run"], study.point_of_trial, frame["replication"], nodes, strict=True)
    return [
        FinishedTrial(str(key), int(point), int(replication), int(size))
        for key, point, replication, size in rows
        if not np.isnan(size)  # a store may not know it
    ]


def over_time(store: Store, study: Replications, trials: Sequence[FinishedTrial], unit_s: float, unit: str) -> Section | None:
    """Return the curves over time: replication 1 of every point, then the second of each, as far as tables were kept.

    A curve is a level of the lead factor; runs that differ in it only are shown together.  ``None`` if no run kept its states.
    """
    others = [at for at in study.varying if at != study.lead]
    members: dict[tuple[int, ...], list[FinishedTrial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.replication):
        if store.has(STATES_OVER_TIME, trial.key):
            place = (trial.replication, *(int(study.codes[trial.point, at]) for at in others))
            members.setdefault(place, []).append(trial)
    if not members:
        return None
    several = len({trial.replication for trial in trials}) > 1
    groups: dict[str, Group] = {}
    labels: dict[str, None] = {}
    for (replication, *_), group in list(members.items())[:GROUPS]:
        name = study.label(group[0].point, others) or "all"
        name += f", replication {replication}" if several else ""
        with _damaged_tables(store):
            runs = [_states(store, study, trial) for trial in group]
            groups[name if name not in groups else f"{name} ({len(groups) + 1})"] = group_of(runs, unit_s)
        labels |= dict.fromkeys(run.label for run in runs)
    text = "Averages over equal time bins; shorter peaks are smoothed away."
    if left := len(members) - len(groups):
        text += f"  {counted(left, 'group')} of runs more are left out."
    plots, starts = curves_over_time(list(groups.values()), list(labels), unit)
    control = Control("over-time-runs", "runs", [(str(at), name) for at, name in enumerate(groups)], "0")
    return Section("over-time", "Utilization and queue over time", text, controls=[control], plots=plots, starts=starts)


@contextmanager
def _damaged_tables(store: Store) -> Iterator[None]:
    """Report tables of runs that lack columns, or have others than numbers in them, in one line."""
    try:
        yield
    except SpecificationError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        words = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise SpecificationError(f"{store.directory}: the tables of a run are damaged: {words}") from problem


def _states(store: Store, study: Replications, trial: FinishedTrial) -> StatesOfRun:
    label = "all" if study.lead is None else study.factors[study.lead].labels[study.codes[trial.point, study.lead]]
    return StatesOfRun(label, trial.nodes, store.states_over_time(trial.key))


class _Viewed(NamedTuple):
    """The runs of the viewer, and how many are left out."""

    runs: list[ViewedRun]
    without: int
    """Without placements."""
    idle: int
    """In which no job ran."""
    too_large: int


def viewer(
    store: Store, study: Replications, trials: Sequence[FinishedTrial], wanted: Sequence[str], unit_s: float, unit: str
) -> Section:
    """Return the viewer of single runs.

    Args:
        store: of the study.
        study: its points.
        trials: the finished ones.
        wanted: keys of runs, or their beginnings; by default the first replications that fit.
        unit_s: unit of the axes, seconds.
        unit: its name.

    Raises:
        SpecificationError: no run has a key that is wanted.
    """
    chosen = _chosen(trials, wanted)
    with _damaged_tables(store):
        viewed = _viewed(store, study, chosen, at_least_one=bool(wanted), unit_s=unit_s)
    text = _ABOUT_RUNS
    if viewed.without:
        text += (
            f"  {counted(viewed.without, 'run')} kept no placements: give a study with time sharing history=True, and other "
            "replications than the first job_tables='all'."
        )
    if viewed.idle:
        text += f"  {counted(viewed.idle, 'run')} left out, in which no job ran."
    if viewed.too_large:
        text += (
            f"  {counted(viewed.too_large, 'run')} left out, to keep this page small: choose runs with clustermodel report "
            "--run KEY."
        )
    if not viewed.runs:
        return Section("viewer", "Run by run", text)
    plots, starts = run_viewer(viewed.runs, unit_s, unit)
    options = [(str(at), run.label) for at, run in enumerate(viewed.runs)]
    controls = [
        Control(f"run-{number}", title, chosen, chosen[0][0])
        for number, title, chosen in zip(PANELS, ("run", "beside it"), (options, [("", "no other run"), *options]), strict=True)
    ]
    return Section("viewer", "Run by run", text, controls=controls, starts=starts, more={"panels": plots})


def _chosen(trials: Sequence[FinishedTrial], wanted: Sequence[str]) -> list[FinishedTrial]:
    """Return the trials of the viewer, each run once."""
    for key in wanted:
        if not any(trial.key.startswith(key) for trial in trials):
            raise SpecificationError(
                f"--run: {key!r} is not allowed; it must be the beginning of the key of a run that is done"
            )
    first = min(trial.replication for trial in trials)
    chosen = [trial for trial in trials if (trial.key.startswith(tuple(wanted)) if wanted else trial.replication == first)]
    return list({trial.key: trial for trial in reversed(chosen)}.values())[::-1]


def _viewed(
    store: Store, study: Replications, chosen: Sequence[FinishedTrial], *, at_least_one: bool, unit_s: float
) -> _Viewed:
    known = [trial for trial in chosen if store.has(PLACEMENTS, trial.key) and store.has(RECORDS, trial.key)]
    runs: list[ViewedRun] = []
    left, idle, too_large = SIZE, 0, 0
    for trial in known:
        placements = store.placements(trial.key)
        if placements.empty:
            idle += 1
            continue
        run = _viewed_run(store, study, trial, placements, unit_s)
        if run.size > left and (runs or not at_least_one):
            too_large = len(known) - len(runs) - idle  # the remaining runs, perhaps hundreds, are not read
            break
        runs.append(run)
        left -= run.size
    return _Viewed(runs, len(chosen) - len(known), idle, too_large)


def _viewed_run(store: Store, study: Replications, trial: FinishedTrial, placements: pd.DataFrame, unit_s: float) -> ViewedRun:
    states = store.states_over_time(trial.key)
    edges = np.linspace(0.0, span(states), BINS + 1)
    busy = curve_of(StatesOfRun("", trial.nodes, states), edges)["busy"]
    order = sorted(study.varying, key=lambda at: at != study.lead)
    label = " · ".join([*(study.factors[at].named(study.codes[trial.point, at]) for at in order), trial.key[:8]])
    overview = {"x": edges / unit_s, "y": np.array(busy)}
    return viewed_run(label, trial.nodes, store.records(trial.key), placements, states, overview)


def time_unit(table: StudyTable) -> tuple[float, str]:
    """Return the unit of all time axes: its length in seconds, and its name."""
    longest = pd.to_numeric(table.frame["horizon_s"]).max()
    return time_axis(float(longest) if longest == longest else 1.0)  # noqa: PLR0124  nan


def provenance(store: Store) -> Iterator[dict[str, Any]]:
    """Yield what each finished run depends on, and the trials that it belongs to."""
    trials: dict[str, list[str]] = {}
    for entry in store.entries():
        trials.setdefault(entry.key, []).append(visible(describe(store.factors_of(entry))))
    for key, factors in trials.items():
        run = store.run(key)
        if run is not None and run.state == "done":
            yield {
                "key": key,
                "factors": factors[0],
                "others": factors[1:],
                "sources": [visible(source) for source in run.sources],
                "specification": visible(json.dumps(run.specification, indent=1, ensure_ascii=False)),
                "versions": ", ".join(f"{name} {number}" for name, number in run.versions.items()),
                "seconds": f"{run.seconds:.2f} s",
            }
