"""The report of a study: one HTML file with tables, curves, maps and figures of runs, which opens without a network."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.events import DocumentReady
from bokeh.models import CustomJS
from bokeh.resources import INLINE
from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.colors import to_hex

from clustermodel.errors import SpecificationError, counted, in_words
from clustermodel.experiment.design import PLACEMENTS, RECORDED, RECORDS, STATES_OVER_TIME
from clustermodel.experiment.exhibits import stored_exhibits
from clustermodel.experiment.factors import describe
from clustermodel.experiment.store import RunFile, Store
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.capacity import ACCOUNT_COLOURS, SHARE_COLUMNS, account_rows
from clustermodel.figures.run_tables import field_text, leaves
from clustermodel.figures.study_tables import means_table, sample_paths
from clustermodel.figures.style import short, visible
from clustermodel.figures.text_table import Column, TextTable, exact, frame_table, text_column, trials_table
from clustermodel.machine.machine import Machine
from clustermodel.measure.timeline import recorded_states
from clustermodel.policies.registry import policy_summary
from clustermodel.report import plots
from clustermodel.report.data import Replications, study_data
from clustermodel.report.plots import PANELS, Control, StatesOfRun, ViewedRun, recorded_jobs, run_viewer, viewed_run
from clustermodel.text.formatting import UNDEFINED, time_unit


def report_page(store: Store, directory: Path, wanted: Sequence[str]) -> str:
    """Return the page of a stored study, with the runs whose keys begin with one of ``wanted`` in its viewer."""
    table = store.table()
    if not len(table):
        raise SpecificationError(f"{directory}: no run of this study is done; there is nothing to report")
    study = Replications(table)
    measures = _measures_of(table, study, store.study.shown)
    shown = [name for name in measures if name in store.study.shown] or measures[:3]
    data, finished = study_data(study, measures, shown), FinishedRuns(store, table, study)
    curves, starts = plots.metric_curves(data)
    made = [
        _exhibits(*stored_exhibits(directory)),
        _summary(study, max(data["runs"]), shown),
        _differences(data),
        _capacity(study),
        Section("metrics", "Curves", controls=plots.curve_controls(data, shown[0]), plots=curves, starts=starts),
        _maps(data, shown[0]),
        finished.over_time(),
        finished.viewer(wanted),
        _runs(study, measures),
    ]
    there = [section for section in made if section]
    title = visible(store.study.study)
    document = Document(title=title)
    with document.models.freeze():  # else Bokeh collects all models again for each plot
        for plot in (plot for section in there for plot in (*section.plots, *chain(*section.panels))):
            document.add_root(plot)
    for script in (*(section.starts for section in there if section.starts is not None), plots.script("theme.mjs", {})):
        document.js_on_event(DocumentReady, script)
    environment = Environment(loader=FileSystemLoader(plots.PAGE), autoescape=True)
    environment.globals["page_file"] = lambda name: Markup((plots.PAGE / name).read_text(encoding="utf-8"))
    environment.globals |= {"counted": counted, "exact": exact}
    environment.filters |= {
        "visible": visible,
        "short": short,
        "json": lambda value: json.dumps(value, indent=1, ensure_ascii=False),
    }
    trials: dict[str, list[str]] = {}
    for entry in store.entries():
        trials.setdefault(entry.key, []).append(describe(store.factors_of(entry)))
    runs = [(store.run(key), of_run) for key, of_run in trials.items()]
    done = [run for run, _ in runs if run is not None and run.state == "done"]
    constant = [factor for index, factor in enumerate(study.factors) if index not in study.varying]
    page: str = file_html(
        document,
        INLINE,
        title=title,
        template=environment.get_template("report.html"),
        template_variables={
            "sections": there,
            "states": store.states(),
            "constant": ", ".join(f"{factor.title} {factor.labels[0]}" for factor in constant),
            "study": store.study,
            "setup": setup(done, list(dict.fromkeys(table.frame["policy"]))),
            "study_text": Markup(markdown(store.study.text)),
            "warm_up": f"{store.study.warm_up_s:,g} s",
            "failures": [(of, error.rstrip().rpartition("\n")[2]) for of, error in store.failures()],
            "directory": directory,
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            "versions": {name: version(name) for name in ("clustermodel", "bokeh")},
            "runs": [(run, of_run) for run, of_run in runs if run is not None and run.state == "done"],
            "data": data,
            "map_colours": MAP_COLOURS,
        },
    )
    return page


def setup(runs: Sequence[RunFile], policies: Sequence[str]) -> list[tuple[str, str]]:
    """Return what the runs simulate besides the factors: the machine that they share, jobs of the first run, policies."""
    found: dict[str, set[Any]] = {}
    default = dict(leaves(Machine(nodes=1)))
    for run in runs:
        for name, value in leaves(run.specification.get("machine") or {}):
            if value not in (None, 0, "") and (name in _ALWAYS or value != default.get(name)):
                found.setdefault(name, set()).add(value)
    shared = [field_text(name, values.pop()) for name, values in found.items() if len(values) == 1]
    rows = [("machine", "; ".join(shared))] if shared else []
    rows += [("jobs", f"{runs[0].jobs:,} of {', '.join(runs[0].sources)}")] if runs else []
    for policy in policies:
        with suppress(SpecificationError):
            rows.append((policy, policy_summary(policy.partition(":")[0])))
    return rows


_ALWAYS: Final = ("nodes", "time_slicing.quantum_s", "time_slicing.mpl")


def markdown(text: str) -> str:
    """Return a text in Markdown as HTML: tags are shown as text, images are left out, scripts cannot be addressed."""
    plain = "".join(character if character in "\n\t" else visible(character) for character in text)
    return str(MarkdownIt("commonmark", {"html": False}).enable("table").disable("image").render(plain))


MOST_ROWS: Final = 1000  # of a table of runs


MAP_COLOURS: Final = {
    show: [to_hex(colormaps[name](share)) for share in np.linspace(0, 1, 33)]
    for show, name in (("means", "cividis"), ("differences", "PuOr_r"))
}
_ABOUT_TRIALS: Final = ("run", "replication", "seed", "policy", "workload", "nodes", "warm_up_s")  # columns that are not drawn


@dataclass
class Section:
    """A part of the page."""

    name: str
    title: str
    text: str = ""  # what the page says of this study, after what it says of any
    tables: Sequence[tuple[str, TextTable]] = ()  # each with the name of its CSV file; a title is its caption
    bars: Sequence[Sequence[tuple[str, str, float]]] = ()  # of a row of the table: use, colour and share
    pictures: Sequence[tuple[str, str]] = ()  # titles and data URIs
    controls: Sequence[Control] = ()
    filled: str = ""  # the element that a script of the page fills
    plots: Sequence[Any] = ()
    panels: Sequence[Sequence[Any]] = ()  # plots of the viewer
    starts: CustomJS | None = None  # draws the plots
    key: Sequence[tuple[str, str]] = ()  # uses of capacity with their colours


def _measures_of(table: StudyTable, study: Replications, shown: Sequence[str]) -> list[str]:
    """Return the columns to draw that have numbers: the shown ones first, then the others in the order of the table."""
    frame = table.frame
    shared = "delayed" in frame and bool(frame["delayed"].isna().any())  # time sharing: waits are short by construction
    names = sorted(shown, key=lambda name: shared and "wait" in name)
    names += [str(name) for name in frame.columns if name not in {*shown, *_ABOUT_TRIALS}]
    numeric = [
        name
        for name in names
        if name in frame and all(value is None or isinstance(value, int | float | np.number) for value in frame[name])
    ]
    return [name for name in numeric if name not in table.factors and study.has(name)]


def _summary(study: Replications, most_runs: int, shown: Sequence[str]) -> Section:
    row = " and ".join(study.factors[index].title for index in study.varying) or "point"
    means = f"  Means over up to {most_runs} runs; ± is half the 95 % interval (Student t)." if most_runs > 1 else ""
    means += "".join(f"  Note: {note}." for note in sample_paths(study.table) if most_runs > 1)
    text = f"A row for each {row}.{means}  Click a heading to sort."
    return Section("summary", "Summary", text, [("summary", means_table(study.table, "", shown))])


def _differences(data: Mapping[str, Any]) -> Section | None:
    comparable = [(str(index), data["factors"][index]["title"]) for index, levels in enumerate(data["differences"]) if levels]
    if not comparable or not data["shown"]:
        return None
    lead = str(data["lead"])
    first = lead if lead in dict(comparable) else comparable[0][0]
    controls = [Control("differences-factor", "compare", comparable, first)]
    controls.append(Control("differences-baseline", "baseline", [], ""))
    text = "  With a single replication nothing is known about significance." if max(data["runs"]) == 1 else ""
    return Section("differences", "Paired differences", text, controls=controls, filled="differences-table")


def _capacity(study: Replications) -> Section | None:
    if not study.has(SHARE_COLUMNS[0]):
        return None
    lead = None if study.lead is None else study.factors[study.lead].name
    levels, shares, _ = account_rows(study.table, lead)
    bars = [
        [(use, colour, row[use]) for use, colour in ACCOUNT_COLOURS.items() if row[use] > 0]
        for row in shares.to_dict("records")
    ]
    columns = [
        Column(use, [f"{share:.1%}" if np.isfinite(share) else UNDEFINED for share in shares[use]], name=use)
        for use in ACCOUNT_COLOURS
    ]
    values = {str(name): values.tolist() for name, values in (*levels.items(), *shares.items())}
    table = TextTable("", [text_column(str(name), levels[name]) for name in levels], [columns], values)
    key = [(use, colour) for use, colour in ACCOUNT_COLOURS.items() if shares[use].any()]
    return Section("capacity", "Capacity by account", tables=[("capacity", table)], bars=bars, key=key)


def _maps(data: Mapping[str, Any], first: str) -> Section | None:
    factors = [(str(index), factor["title"]) for index, factor in enumerate(data["factors"]) if len(factor["labels"]) > 1]
    if len(factors) < 2:
        return None
    lead = data["lead"]  # policies come last
    axes = sorted(map(int, dict(factors)), key=lambda index: (index == lead, not data["factors"][index]["numeric"]))
    shows = [("", "means")]
    if data["differences"][lead]:
        shows += [(str(index), f"differences from {label}") for index, label in enumerate(data["factors"][lead]["labels"])]
    controls = [
        Control("maps-measure", "measure", [(name, of["title"]) for name, of in data["measures"].items()], first),
        Control("maps-show", "show", shows, ""),
        Control("maps-x", "across", factors, str(axes[0])),
        Control("maps-y", "down", factors, str(axes[1])),
        *plots.held_controls("maps", data),
    ]
    return Section("maps", "Heat maps", controls=controls, filled="maps-table")


def _runs(study: Replications, measures: Sequence[str]) -> Section:
    frame = study.table.frame.iloc[:MOST_ROWS]
    keys = [study.factors[index].name for index in study.varying]
    table = trials_table(frame, "", [*keys, "replication", "seed"], [*measures, "run"])
    left = len(study.table) - len(frame)
    text = f"  {counted(left, 'run')} more are left out: clustermodel results --csv has all." if left else ""
    return Section("runs", "Runs", text, [("runs", table)])


def _exhibits(stored: dict[str, Path], figures: dict[str, Path]) -> Section | None:
    tables = []
    for title, path in stored.items():
        try:
            frame = pd.read_csv(path)
        except (ValueError, OSError):  # an empty table, or a damaged file
            frame = pd.DataFrame()
        tables.append((path.stem, frame_table(frame, title)))
    pictures = [
        (visible(title), f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}")
        for title, path in figures.items()
    ]
    if not tables and not pictures:
        return None
    return Section("exhibits", "Results", tables=tables, pictures=pictures)


SIZE: Final = 12_000_000  # bytes for the figures of runs, a third more in the file; runs beyond are left out
GROUPS: Final = 12  # of runs with curves over time


class FinishedRuns:
    """The finished trials of a study, in its order: ``run`` (the key), ``replication``, ``workload``, ``nodes``, ``point``."""

    def __init__(self, store: Store, table: StudyTable, study: Replications) -> None:
        self._store, self._study = store, study
        nodes = pd.to_numeric(table.frame["nodes"], errors="coerce")  # a store may not know it
        trials = table.frame[["run", "replication", "workload"]].assign(nodes=nodes, point=study.point_of_trial)
        self._trials: list[Any] = list(trials[nodes.notna()].astype({"run": str, "nodes": int}).itertuples(index=False))
        longest = float(np.nanmax([1.0, *pd.to_numeric(table.frame["horizon_s"])]))
        _, self._unit, self._unit_s = time_unit(longest)

    def over_time(self) -> Section | None:
        """Return the curves over time of the runs that kept states; those that differ in the lead factor only share a group."""
        study = self._study
        others = [index for index in study.varying if index != study.lead]
        members: dict[tuple[int, ...], list[Any]] = {}
        for trial in sorted(self._trials, key=lambda trial: trial.replication):
            if self._store.has(STATES_OVER_TIME, trial.run):
                place = (trial.replication, *study.codes[trial.point, others].tolist())
                members.setdefault(place, []).append(trial)
        if not members:
            return None
        several = len({trial.replication for trial in self._trials}) > 1
        groups: dict[str, Any] = {}
        labels: dict[str, None] = {}  # in order of appearance
        for (replication, *_), group in list(members.items())[:GROUPS]:
            name = study.label(group[0].point, others) or "all"
            name += f", replication {replication}" if several else ""
            with self._damaged_tables():
                runs = [self._states(trial) for trial in group]
                groups[name if name not in groups else f"{name} ({len(groups) + 1})"] = plots.group_of(runs, self._unit_s)
            labels |= dict.fromkeys(run.label for run in runs)
        left = len(members) - len(groups)
        text = f"  {counted(left, 'group')} of runs more are left out." if left else ""
        drawn, starts = plots.curves_over_time(list(groups.values()), list(labels), self._unit)
        controls = [Control("over-time-runs", "runs", [(str(index), name) for index, name in enumerate(groups)], "0")]
        return Section("over-time", "Utilization and queue over time", text, controls=controls, plots=drawn, starts=starts)

    def viewer(self, wanted: Sequence[str]) -> Section:
        """Return the viewer of the wanted runs, by default of first replications that fit."""
        for key in wanted:
            if not any(trial.run.startswith(key) for trial in self._trials):
                raise SpecificationError(
                    f"--run: {key!r} is not allowed; it must be the beginning of the key of a run that is done"
                )
        first, keys = min(trial.replication for trial in self._trials), tuple(wanted)
        chosen = [trial for trial in self._trials if (trial.run.startswith(keys) if keys else trial.replication == first)]
        distinct = list({trial.run: trial for trial in reversed(chosen)}.values())[::-1]
        known = [trial for trial in distinct if all(self._store.has(kept, trial.run) for kept in (PLACEMENTS, RECORDS))]
        runs: list[ViewedRun] = []
        recorded: dict[str, ViewedRun] = {}  # by the digest of the table
        left, idle, too_large = SIZE, 0, 0
        for trial in known:
            with self._damaged_tables():
                placements = self._store.placements(trial.run)
                shown = [] if placements.empty else [*self._recorded_run(trial, recorded), self._viewed_run(trial, placements)]
            size = sum(run.size for run in shown)
            if not shown:
                idle += 1
            elif size > left and (runs or not wanted):
                taken = sum(not run.recorded for run in runs)
                too_large = len(known) - taken - idle  # the remaining runs, perhaps hundreds, are not read
                break
            else:
                runs += shown
                left -= size
        left_out = {
            "kept no placements: give a study with time sharing history=True, and other replications than the first "
            "job_tables='all'.": len(distinct) - len(known),
            "left out, in which no job ran.": idle,
            "left out, to keep this page small: choose runs with clustermodel report --run KEY.": too_large,
        }
        text = "".join(f"  {counted(number, 'run')} {reason}" for reason, number in left_out.items() if number)
        if not runs:
            return Section("viewer", "Run by run", text)
        drawn, starts = run_viewer(runs, self._unit_s, self._unit)
        options = [(str(index), run.label) for index, run in enumerate(runs)]
        lists = ("run", options, "0"), ("beside it", [("", "no other run"), *options], "1" if runs[0].recorded else "")
        controls = [Control(f"run-{index}", *of) for index, of in zip(PANELS, lists, strict=True)]
        return Section("viewer", "Run by run", text, controls=controls, starts=starts, panels=drawn)

    @contextmanager
    def _damaged_tables(self) -> Iterator[None]:
        """Report tables of runs that lack columns or numbers in one line."""
        try:
            yield
        except SpecificationError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            raise SpecificationError(
                f"{self._store.directory}: the tables of a run are damaged: {in_words(problem)}"
            ) from problem

    def _states(self, trial: Any) -> StatesOfRun:
        lead = self._study.lead
        label = "all" if lead is None else self._study.factors[lead].labels[self._study.codes[trial.point, lead]]
        return StatesOfRun(label, trial.nodes, self._store.states_over_time(trial.run))

    def _overview(self, run: StatesOfRun) -> plots.Columns:
        edges = np.linspace(0.0, plots.span(run.states), plots.BINS + 1)
        return {"x": edges / self._unit_s, "y": np.array(plots.curve_of(run, edges)["busy"])}

    def _recorded_run(self, trial: Any, others: dict[str, ViewedRun]) -> list[ViewedRun]:
        """Return the recorded schedule of a run's jobs, if its workload has one that is not among the others yet."""
        file = self._store.run(trial.run)
        digest = file.files.get(RECORDED) if file else None
        if digest is None or digest in others or (placements := self._store.recorded(trial.run)).empty:
            return []
        records = self._store.records(trial.run)
        nodes = max(trial.nodes, int((placements["first_node"] + placements["nodes"]).max()))
        label = f"recorded · {trial.workload}"
        label += f", on {nodes:,} nodes, not {trial.nodes:,}" if nodes > trial.nodes else ""
        label += f" ({len(others) + 1})" if any(other.label == label for other in others.values()) else ""
        run = StatesOfRun(label, nodes, recorded_states(placements, records))
        jobs = recorded_jobs(records, placements)
        others[digest] = viewed_run(label, nodes, jobs, placements, run.states, self._overview(run), recorded=True)
        return [others[digest]]

    def _viewed_run(self, trial: Any, placements: pd.DataFrame) -> ViewedRun:
        study, run = self._study, self._states(trial)
        order = sorted(study.varying, key=lambda index: index != study.lead)
        label = " · ".join([*(study.factors[index].named(study.codes[trial.point, index]) for index in order), trial.run[:8]])
        return viewed_run(label, run.nodes, self._store.records(trial.run), placements, run.states, self._overview(run))
