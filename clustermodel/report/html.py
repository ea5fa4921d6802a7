"""The report of a study: one HTML file with tables, curves and interactive figures of runs, which opens without a network."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.events import DocumentReady
from bokeh.models import ColumnDataSource, CustomJS, DataTable, NumberFormatter, StringFormatter, TableColumn, UIElement
from bokeh.resources import INLINE
from jinja2 import Environment, FileSystemLoader

from clustermodel.errors import SpecificationError, counted
from clustermodel.experiment.store import Store
from clustermodel.experiment.study import describe
from clustermodel.figures.labels import QUANTITIES
from clustermodel.figures.run_tables import means_of
from clustermodel.figures.steps import mean_of_steps, time_axis
from clustermodel.figures.style import short, visible
from clustermodel.output_files import write_file
from clustermodel.report.curves import FACTORS, METRICS, PAGE, STRETCH, curves_over_time, metric_curves
from clustermodel.report.viewer import ViewedRun, run_viewer, viewed_run
from clustermodel.statistics import LEVEL

ROOM: Final = 12_000_000
"""Bytes for the figures of runs; runs beyond are left out.  Encoded in the file, the figures take a third more at most."""
BINS: Final = 400
"""Time bins of curves over time."""
LABEL: Final = 36
"""Characters of a name beside curves, so that the curves fit a page 700 pixels wide."""
GROUPS: Final = 12
"""Combinations of machine, workload and replication with curves over time."""
_SUMMARY: Final = (
    "jobs", "mean_wait_s", "median_wait_s", "mean_bounded_slowdown", "mean_weighted_bounded_slowdown", "utilization", "kappa",
    "backfilled", "blocked", "delayed", "preempted", "wasted_load",
)  # fmt: skip
"""Metrics of the summary table; the table of runs has all."""
_ROW_HEIGHT: Final = 26


@dataclass
class _Section:
    name: str
    title: str
    text: str
    element: UIElement | None = None
    starts: CustomJS | None = None

    @property
    def drawn(self) -> bool:
        return self.element is not None


def write_report(
    directory: str | os.PathLike[str], path: str | os.PathLike[str], *, runs: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Write the report of a stored study, and return the damaged runs, which it leaves out: key and damage of each.

    Args:
        directory: of the study.
        path: the file.
        runs: keys, or prefixes of keys, of the runs with interactive figures; by default the first replications that fit.

    Raises:
        SpecificationError: the directory has no study, or no run is done or has one of these keys.
        OutputError: the file cannot be written.
    """
    directory, path = Path(directory), Path(path)
    with Store.read(directory) as store:
        page, damaged = _page(store, directory, runs), store.damaged()
    write_file(path, page)
    return damaged


def _page(store: Store, directory: Path, wanted: Sequence[str]) -> str:
    results = store.results()
    if results.empty:
        raise SpecificationError(f"{directory}: no run of this study is done; there is nothing to report")
    results = _with_labels(_with_policy_of_scenarios(results))
    points = means_of(results, FACTORS, METRICS, LEVEL)
    sections = [
        _Section("summary", "Summary", _about_summary(results), _summary_table(points)),
        _Section("metrics", "Curves", _ABOUT_CURVES, *metric_curves(points)),
        *_sections_of_runs(store, results, wanted),
        _Section("runs", "Runs", "Every run with all metrics.  Click a heading to sort.", _run_table(results)),
    ]
    document = Document(title=shown_title(store))
    for section in sections:
        if section.element is not None:
            section.element.name = section.name
            document.add_root(section.element)
        if section.starts is not None:
            document.js_on_event(DocumentReady, section.starts)
    facts, states = store.facts(), store.states()
    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True)
    page: str = file_html(
        document,
        INLINE,
        title=shown_title(store),
        template=environment.get_template("report.html"),
        template_variables={
            "sections": sections,
            "counts": _counts(states),
            "warm_up": f"{float(facts['warm_up_s']):,g} s" if float(facts["warm_up_s"]) else "",
            "failures": [(visible(of), visible(error.rstrip().rpartition("\n")[2])) for of, error in store.failures()],
            "facts": _facts(facts, directory),
            "runs": list(_provenance(store)),
        },
    )
    return page


def shown_title(store: Store) -> str:
    """Return the name of the study."""
    return visible(store.facts()["study"])


def _with_policy_of_scenarios(results: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a study of scenarios with the names of the scenarios, which identify its runs, as policies."""
    return results.assign(policy=results["scenario"]) if "scenario" in results else results


def _with_labels(results: pd.DataFrame) -> pd.DataFrame:
    """Return the table with short, distinct names; the provenance has the full names."""
    return results.assign(**{factor: results[factor].map(short_labels(results[factor].unique())) for factor in FACTORS})


def short_labels(names: Iterable[str]) -> dict[str, str]:
    """Return short, visible and distinct labels of names, by name."""
    shown = {name: short(visible(name), LABEL) for name in names}
    often = Counter(shown.values())
    taken = set(shown.values())
    labels = {}
    for name, label in shown.items():
        numbered = (f"{label} ({number})" for number in count(1))
        labels[name] = label if often[label] == 1 else next(one for one in numbered if one not in taken)
        taken.add(labels[name])
    return labels


def _counts(states: Mapping[str, int]) -> str:
    total = sum(states.values())
    text = f"{states['done']:,} of {counted(total, 'run')} {'are' if total != 1 else 'is'} done."
    if states["failed"]:
        text += f"  {counted(states['failed'], 'run')} failed."
    if states["pending"]:
        text += f"  {counted(states['pending'], 'run')} missing: the study has not been run to its end."
    return text


def _facts(facts: Mapping[str, str], directory: Path) -> list[tuple[str, str]]:
    return [
        ("study", visible(facts["study"])),
        ("seed of the first replication", facts["seed"]),
        ("warm-up left out", f"{float(facts['warm_up_s']):,g} s"),
        ("directory", visible(directory)),
        ("made", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by clustermodel {version('clustermodel')}, Bokeh {version('bokeh')}"),
    ]


def _provenance(store: Store) -> Iterator[dict[str, object]]:
    for run in store.provenance().to_dict("records"):
        if run["state"] == "done":
            yield {
                "key": run["run"],
                "factors": visible(describe(json.loads(run["factors"]))),
                "sources": [visible(source) for source in json.loads(run["sources"])],
                "specification": visible(json.dumps(json.loads(run["specification"]), indent=1, ensure_ascii=False)),
                "versions": ", ".join(f"{name} {number}" for name, number in json.loads(run["versions"]).items()),
                "seconds": f"{run['seconds']:.2f} s",
            }


# Tables.


def _about_summary(results: pd.DataFrame) -> str:
    most = int(results.groupby(list(FACTORS), sort=False).size().max())
    means = f"  Means over up to {most} runs; ± is half the 95 % interval (Student t)." if most > 1 else ""
    return f"A row for each machine, workload and policy.{means}  Click a heading to sort."


def _summary_table(points: pd.DataFrame) -> DataTable:
    columns = _factors(points)
    several = bool((points["runs"] > 1).any())
    shown = [name for name in _SUMMARY if points[name].notna().any()]
    if several:
        columns.append(TableColumn(field="runs", title="runs", width=45))
    for name in shown:
        columns.append(_numbers(name, points[name]))
        if several:
            half = f"{name} half"
            columns.append(TableColumn(field=half, title="±", width=62, formatter=_format(points[half]), sortable=True))
    return _table(points, columns, name="summary table")


def _run_table(results: pd.DataFrame) -> DataTable:
    numbers = results.assign(**{name: pd.to_numeric(results[name]) for name in METRICS})
    columns = _factors(results)
    columns += [TableColumn(field=name, title=name, width=70) for name in ("replication", "seed")]
    columns += [_numbers(name, numbers[name]) for name in METRICS]
    columns.append(TableColumn(field="run", title="run", width=260, formatter=StringFormatter()))
    return _table(numbers, columns, name="run table")


def _factors(frame: pd.DataFrame) -> list[TableColumn]:
    widths = {factor: max(len(factor), *frame[factor].str.len()) for factor in FACTORS}
    return [
        TableColumn(field=factor, title=factor, width=min(20 + 7 * width, 220), formatter=StringFormatter())
        for factor, width in widths.items()
    ]


def _numbers(name: str, values: pd.Series) -> TableColumn:
    quantity = QUANTITIES[name]
    label = f"{quantity.name} (s)" if quantity.unit == "s" else quantity.name
    return TableColumn(field=name, title=label, width=max(62, 7 * len(label)), formatter=_format(values))


def _format(values: pd.Series) -> NumberFormatter:
    """Return a number format with about four significant digits for the values of a column."""
    known = values.dropna().abs()
    largest = float(known.max()) if len(known) else 0.0
    whole = bool((known % 1 == 0).all())
    digits = 0 if whole or largest >= 10_000 else 1 if largest >= 100 else 2 if largest >= 10 else 4
    return NumberFormatter(
        format=f"0,0.{'0' * digits}" if digits else "0,0", text_align="right", nan_format="-", null_format="-"
    )


def _table(frame: pd.DataFrame, columns: list[TableColumn], name: str) -> DataTable:
    source = ColumnDataSource({column.field: frame[column.field].to_numpy() for column in columns})
    height = _ROW_HEIGHT * (min(len(frame), 14) + 1) + 20
    return DataTable(
        source=source, columns=columns, **STRETCH, height=height, autosize_mode="none", index_position=None,
        row_height=_ROW_HEIGHT, selectable=True, reorderable=False, frozen_columns=len(FACTORS), tags=[name],
    )  # fmt: skip


# Curves over time, and figures of single runs.

_ABOUT_CURVES: Final = (
    "Means over replications with their 95 % intervals.  Drag to zoom (or enable the wheel tool); click a legend entry to hide "
    "it; hover for values."
)
_ABOUT_RUNS: Final = (
    "Which job held which nodes; initially zoomed to the longest queue.  Drag or resize the window in the strip above it to "
    "show another time.  Use the slider, its arrow keys or a click into the chart to select an event.  Below are the nodes "
    "after that event, with time sharing as the rows of the Ousterhout matrix; the row that runs first has a frame.  Hatched: "
    "replicas outside their home row (lines), run attempts whose work was discarded (crosses) or saved (dots)."
)


def _sections_of_runs(store: Store, results: pd.DataFrame, wanted: Sequence[str]) -> Iterator[_Section]:
    """Yield the section of curves over time, and the viewer of single runs."""
    longest = float(results["horizon_s"].max())
    unit_s, unit = time_axis(longest)
    groups: dict[str, tuple[np.ndarray, dict[str, dict[str, np.ndarray]]]] = {}
    replicated = len(set(results["replication"])) > 1
    by_group = list(results.groupby(["machine", "workload", "replication"], sort=False))
    for (machine, workload, replication), runs in by_group[:GROUPS]:
        states = {policy: store.states_over_time(run) for policy, run in zip(runs["policy"], runs["run"], strict=True)}
        nodes = dict(zip(runs["policy"], runs["nodes"], strict=True))
        edges = np.linspace(0.0, max(_span(table) for table in states.values()), BINS + 1)
        curves = {policy: _curves(table, edges, nodes[policy]) for policy, table in states.items()}
        name = f"{machine}, {workload}" + (f", replication {replication}" if replicated else "")
        if name in groups:
            name += f" ({len(groups) + 1})"
        groups[name] = edges / unit_s, curves
    left = len(by_group) - len(groups)
    text = "Averages over equal time bins; shorter peaks are smoothed away."
    if left:
        text += f"  The first {len(groups)} of {len(by_group)} machines, workloads and replications."
    yield _Section("over-time", "Utilization and queue over time", text, *curves_over_time(groups, unit))

    viewed, without, idle, no_room = _viewed(store, results, wanted, unit_s)
    text = _ABOUT_RUNS
    if without:
        text += f"  {counted(without, 'run')} with time sharing kept no history: give the study history=True."
    if idle:
        text += f"  {counted(idle, 'run')} left out, in which no job ran."
    if no_room:
        text += (
            f"  {counted(no_room, 'run')} left out, to keep this page small: choose runs with clustermodel report --run KEY."
        )
    if viewed:
        yield _Section("viewer", "Run by run", text, *run_viewer(viewed, unit_s, unit))
    else:
        yield _Section("viewer", "Run by run", text)


def _span(states: pd.DataFrame) -> float:
    """Return the duration of a run, seconds; one second for a run without events."""
    return float(np.ptp(states["time_s"])) if len(states) else 1.0


def _curves(states: pd.DataFrame, edges: np.ndarray, nodes: int) -> dict[str, np.ndarray]:
    if states.empty:
        return {name: np.zeros(len(edges)) for name in ("busy", "waiting")}
    times = states["time_s"].to_numpy(dtype=float) - float(states["time_s"].iloc[0])
    busy, waiting = (states[name].to_numpy(dtype=float) for name in ("busy_nodes", "waiting_jobs"))
    means = {"busy": mean_of_steps(times, busy, edges) / nodes, "waiting": mean_of_steps(times, waiting, edges)}
    return {name: np.append(np.round(values, 5), 0.0) for name, values in means.items()}


def _viewed(store: Store, results: pd.DataFrame, wanted: Sequence[str], unit_s: float) -> tuple[list[ViewedRun], int, int, int]:
    """Return the runs with figures; the numbers of runs without placements, without jobs that ran, and without room."""
    chosen = results[results["replication"] == results["replication"].min()]
    if wanted:
        for key in wanted:
            if not results["run"].str.startswith(key).any():
                raise SpecificationError(
                    f"--run: {key!r} is not allowed; it must be the beginning of the key of a run that is done"
                )
        chosen = results[results["run"].str.startswith(tuple(wanted))]
    known = [store.has_placements(key) for key in chosen["run"]]
    viewed: list[ViewedRun] = []
    room, idle, no_room, shown_at_most = ROOM, 0, 0, sum(known)
    for run in chosen[known].itertuples():
        placements = store.placements(run.run)
        if placements.empty:
            idle += 1
            continue
        one = _viewed_run(store, run, placements, unit_s)
        if one.size > room and (viewed or not wanted):
            no_room = shown_at_most - len(viewed) - idle  # the remaining runs, perhaps hundreds, are not read
            break
        viewed.append(one)
        room -= one.size
    return viewed, len(chosen) - sum(known), idle, no_room


def _viewed_run(store: Store, run: Any, placements: pd.DataFrame, unit_s: float) -> ViewedRun:
    states = store.states_over_time(run.run)
    edges = np.linspace(0.0, _span(states), BINS + 1)
    overview = {"x": edges / unit_s, "y": _curves(states, edges, run.nodes)["busy"]}
    label = f"{run.policy} · {run.workload} · {run.machine} · {run.run[:8]}"
    return viewed_run(label, int(run.nodes), store.records(run.run), placements, states, overview)
