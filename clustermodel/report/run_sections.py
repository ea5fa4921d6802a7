"""The sections of the page that show single runs: utilization and queue over time, the viewer, the provenance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from clustermodel.errors import SpecificationError, counted
from clustermodel.experiment.factors import describe
from clustermodel.experiment.run_key import PLACEMENTS, RECORDS, STATES_OVER_TIME
from clustermodel.experiment.store import Store
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.style import time_axis, visible
from clustermodel.report.controls import Control
from clustermodel.report.over_time import BINS, Group, StatesOfRun, curve_of, curves_over_time, group_of, span
from clustermodel.report.replications import Replications
from clustermodel.report.sections import Section
from clustermodel.report.viewed_run import ViewedRun, viewed_run
from clustermodel.report.viewer import PANELS, run_viewer

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
    return [FinishedTrial(str(key), int(point), int(replication), int(size)) for key, point, replication, size in rows]


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
        found = _viewed(store, study, chosen, at_least_one=bool(wanted), unit_s=unit_s)
    text = _ABOUT_RUNS
    if found.without:
        text += (
            f"  {counted(found.without, 'run')} kept no placements: give a study with time sharing history=True, and other "
            "replications than the first job_tables='all'."
        )
    if found.idle:
        text += f"  {counted(found.idle, 'run')} left out, in which no job ran."
    if found.too_large:
        text += (
            f"  {counted(found.too_large, 'run')} left out, to keep this page small: choose runs with clustermodel report "
            "--run KEY."
        )
    if not found.runs:
        return Section("viewer", "Run by run", text)
    plots, starts = run_viewer(found.runs, unit_s, unit)
    options = [(str(at), run.label) for at, run in enumerate(found.runs)]
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
