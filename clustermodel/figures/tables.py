"""Tables of runs, studies and traces: a comparison of runs, means with intervals, single trials, any table of pandas.

What looks wrong in a study is said here too, in notes below its table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from math import isnan, nan
from re import fullmatch
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from clustermodel.errors import SpecificationError, counted
from clustermodel.figures.terminal import Column, TextTable
from clustermodel.measure import input_notes
from clustermodel.measure.input_notes import Note
from clustermodel.measure.metrics import SINCE_ELIGIBLE, quantity
from clustermodel.measure.quantities import account_columns, column_heading, named, never_negative
from clustermodel.measure.recorded_groups import NO_NAME
from clustermodel.text.formatting import UNDEFINED, cell, column, intervals, time_units
from clustermodel.workload.job import UNSET

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.result import Result
    from clustermodel.experiment.study_table import StudyTable
    from clustermodel.machine.machine import Machine

Values = Sequence[float | None]

_WAIT: Final = {"mean_wait_s": "mean\nwait", "median_wait_s": "median\nwait"}
_SINCE_ELIGIBLE: Final = {"mean_wait_since_eligible_s": "mean wait\nsince elig."}
"""Column of runs in which rules or dependencies hold jobs."""
_RESPONSE: Final = {
    "mean_response_s": "mean\nresponse", "mean_bounded_slowdown": "bounded\nslowdown",
    "mean_weighted_bounded_slowdown": "weighted\nslowdown",
}  # fmt: skip
_NODE_TIME: Final = {
    "utilization": "utilization", "lost_share": "discarded\nwork", "context_switch_share": "context\nswitch",
    "checkpoint_share": "checkpoint", "restart_share": "restart", "resize_share": "resize", "boot_share": "boot",
    "startup_share": "start-up", "epilog_share": "epilog",
    "blocked_share": "blocked\ngangs", "down_share": "down\nnodes", "reserved_share": "reserved\nnodes",
    "off_share": "nodes\noff", "idle_share": "idle\nnodes", "kappa": "loss of\ncapacity",
}  # fmt: skip
_COUNTS: Final = {
    "backfilled": "backfilled", "blocked": "blocked\njobs", "delayed": "delayed by\nlower prio.", "preempted": "preempted",
    "resizes": "resizes",
    "retried": "restarted", "aborted": "killed by\npolicy", "failures": "node\nfailures", "failed_attempts": "failed\nattempts",
    "killed": "killed\nat limit", "rejected": "rejected",
}  # fmt: skip
_OF_ENERGY: Final = {"energy_kwh": "energy\n(kWh)", "energy_cost": "cost of\nenergy", "carbon_kg": "carbon\n(kg)"}
"""Columns of runs in which it is known what nodes draw."""
_HEADINGS: Final = {"jobs": "jobs", **_RESPONSE, **_WAIT, **_NODE_TIME, **_COUNTS}
_ALL_HEADINGS: Final = {**_HEADINGS, **_SINCE_ELIGIBLE, **_OF_ENERGY}
_WAITS: Final = ("mean_wait_s", "median_wait_s", "p95_wait_s")
_OF_GROUPS: Final = ("jobs", *_WAIT, "mean_bounded_slowdown")
_MOST_GROUPS: Final = 20  # rows of a table of groups
OVERHEADS: Final = tuple(name for name in _NODE_TIME if name.endswith("_share") and name != "idle_share")
"""Columns of the shares of node time that do no useful work although nodes are held."""
_NOT_IF_ZERO: Final = {*OVERHEADS, *_COUNTS}  # columns that people see only where they are not zero
PLAIN: Final = (*_HEADINGS, "load")  # the columns of the plain comparison, behind the policy
_PERCENT: Final = {"utilization": "utilization", "kappa": "loss of capacity", "lost_share": "discarded work"}
_COMPARED: Final = ("mean_wait_s", "mean_response_s", "utilization", "kappa", "horizon_s")  # these tell policies apart
_VAGUE: Final = {"fraction", "seconds", "charge", "interval_s", "store"}
"""Fields of a machine's parts that do not tell alone what they are."""
_NUMBER: Final = r"[-+]?[0-9][-+0-9,.e]*( %)?|-"


def measure_columns(
    values: Mapping[str, Values], *, headings: Mapping[str, str] = MappingProxyType({}), not_if_zero: Collection[str] = (),
    halves: Mapping[str, Sequence[float]] = MappingProxyType({}), share_places: int | None = None,
) -> dict[str, Column]:  # fmt: skip
    """Return the columns of measures as people see them: times in a common unit, shares of node time in percent."""
    shown = [name for name, of in values.items() if name not in not_if_zero or any(value and not isnan(value) for value in of)]
    units = time_units({name: values[name] for name in shown if named(name).unit == "s"})
    columns = {}
    for name in shown:
        scale, places, unit, words = 1.0, None, "", headings.get(name)
        if name in units:
            scale, unit = 1 / units[name].seconds, units[name].symbol
        elif name in _PERCENT or name.endswith("_share"):
            scale, places, unit = 100.0, share_places, "%"
        if words is not None:
            label = f"{words}\n({unit})" if unit else words
        elif unit == "%":
            label = _heading(f"{_PERCENT.get(name) or name.removesuffix('_share').replace('_', ' ').strip() or name} (%)")
        else:
            label = _heading(column_heading(name, unit or "s"))
        numbers = [nan if value is None else scale * value for value in values[name]]
        if name in halves:
            cells = intervals(numbers, [scale * half for half in halves[name]])
        elif all(value is None or isinstance(value, int) for value in values[name]):
            cells = [UNDEFINED if value is None else f"{value:,}" for value in values[name]]
        else:
            cells = column(numbers, places=places)
        columns[name] = Column(label, cells)
    return columns


def run_row(run: Result) -> dict[str, Any]:
    """Return the fields of a run's summary, and the shares of node time by account; undefined values are ``None``."""
    shares = account_columns(run.ledger)
    return {**run.summary().as_dict(), **{name: value for name, value in shares.items() if name.endswith("_share")}}


def group_rows(run: Result, by: str) -> list[dict[str, Any]]:
    """Return the metrics of the groups of a run that have jobs, as values for JSON; undefined ones are ``None``."""
    groups = run.by_group(by)
    groups = groups[groups["jobs"] + groups["rejected"] > 0]
    columns = {str(name): groups[name].tolist() for name in groups}
    names = [NO_NAME if by in ("user", "group") and who == UNSET else str(who) for who in groups.index]
    rows = zip(*([None if isnan(value) else value for value in values] for values in columns.values()), strict=True)
    return [{"by": by, "who": who, **dict(zip(columns, row, strict=True))} for who, row in zip(names, rows, strict=True)]


def group_table(run: Result, by: str) -> TextTable:
    """Return a table of the groups of a run, those with the most jobs; its plain form has all."""
    rows, title = group_rows(run, by), f"{run.scenario.label} by {by}"
    shown = rows
    if len(rows) > _MOST_GROUPS:
        least = sorted((row["jobs"] for row in rows), reverse=True)[_MOST_GROUPS - 1]
        shown = [row for row in rows if row["jobs"] >= least][:_MOST_GROUPS]
        title += f", {_MOST_GROUPS} of {len(rows):,} groups (all with --json)"
    names = [*_OF_GROUPS, *(name for name in (*_SINCE_ELIGIBLE, *_OF_ENERGY) if name in (rows[0] if rows else ()))]
    seen = [name for name in names if name not in _SINCE_ELIGIBLE or differs(rows)]
    columns = measure_columns({name: [row[name] for row in shown] for name in seen}, headings=_ALL_HEADINGS)
    plain = {"policy": [run.scenario.label] * len(rows), by: [row["who"] for row in rows]}
    plain |= {name: [row[name] for row in rows] for name in names}
    return TextTable(title, [Column(by, [row["who"] for row in shown], number=False)], [list(columns.values())], plain)


def comparison_table(runs: Sequence[Result] | Result, title: str = "") -> TextTable:
    """Return a table that compares runs, at least one: response time, slowdown, wait, node time by account, numbers of jobs.

    Where a run shares nodes in time, whose waits are short by construction, response and slowdown come before the wait.  Of
    the accounts and the numbers of jobs only those that are not zero are shown; the plain form has all.
    """
    runs = list(runs) if isinstance(runs, Iterable) else [runs]
    if not runs:
        raise SpecificationError("runs: no result is given; a table compares at least one")
    rows = [run_row(run) for run in runs]
    workloads = [row["workload"] for row in rows]
    sizes = [counted(row["nodes"], run.scenario.unit) for run, row in zip(runs, rows, strict=True)]
    several_workloads, several_sizes = len(set(workloads)) > 1, len(set(sizes)) > 1
    if not title and rows:
        title = "several workloads" if several_workloads else workloads[0]
        title += f" on {'several machines' if several_sizes else sizes[0]}"
        loads = {row["load"] for row in rows}
        title += f", offered load {rows[0]['load']:.2f}" if len(loads) == 1 and None not in loads else ""
    names = [
        ", ".join([run.scenario.label, *([str(workload)] if several_workloads else []), *([size] if several_sizes else [])])
        for run, workload, size in zip(runs, workloads, sizes, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [
            ", ".join(filter(None, parts)) for parts in zip(names, machine_texts([run.machine for run in runs]), strict=True)
        ]
    if any(name in row for row in rows for name in _SINCE_ELIGIBLE):  # where nothing holds jobs, their waits are since then
        rows = [{**dict(zip(SINCE_ELIGIBLE, map(row.get, _WAITS), strict=True)), **row} for row in rows]
    known = (*_SINCE_ELIGIBLE, *_OF_ENERGY)
    optional = {name: [row.get(name) for row in rows] for name in known if any(name in row for row in rows)}
    values = {**{name: [row[name] for row in rows] for name in PLAIN}, **optional}
    shown = {name: values[name] for name in (*_HEADINGS, *optional) if name not in _SINCE_ELIGIBLE or differs(rows)}
    columns = measure_columns(shown, headings=_ALL_HEADINGS, not_if_zero=_NOT_IF_ZERO, share_places=2)
    in_time = any(run.slices is not None for run in runs)
    waits = [*_WAIT, *_SINCE_ELIGIBLE]
    times = [*_RESPONSE, *waits] if in_time else [*waits, *_RESPONSE]
    sections = (["jobs", *times], _NODE_TIME, _OF_ENERGY, _COUNTS)
    groups = [[columns[name] for name in section if name in columns] for section in sections]
    return TextTable(
        title, [Column("policy", names, number=False)], groups, {"policy": names, **values}, input_notes.run_notes(runs)
    )


def differs(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the mean wait since eligible differs from the mean wait in some row, so that it is worth showing."""
    (since,) = _SINCE_ELIGIBLE
    return any(row.get(since) is not None and row[since] != row["mean_wait_s"] for row in rows)


def machine_texts(machines: Sequence[Machine]) -> list[str]:
    """Return what tells machines apart, such as ``"MPL 2"``: the fields of numbers and texts in which they differ."""
    leaves = [dict(_leaves(machine)) for machine in machines]
    differing = [name for name in dict.fromkeys(chain(*leaves)) if len({leaf.get(name) for leaf in leaves}) > 1]
    return [", ".join(_field_text(name, leaf.get(name)) for name in differing) for leaf in leaves]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a specification, and of those within it, that are numbers or texts, by their dotted names."""
    if is_dataclass(value):
        for part in fields(value):
            yield from _leaves(getattr(value, part.name), f"{name}.{part.name}" if name else part.name)
    elif value is None or isinstance(value, bool | int | float | str):
        yield name, value


def _field_text(name: str, value: Any) -> str:
    outer, _, inner = name.rpartition(".")
    whole = f"{outer}_{inner}" if inner in _VAGUE else inner
    quantity = named(whole)
    return f"{quantity.name} none" if value is None else f"{quantity.name} {cell(value)} {quantity.unit}".strip()


def percentile_table(facts: Mapping[str, Any], unit: str = "node") -> TextTable:
    """Return a table of the percentiles of :func:`~clustermodel.trace_facts`, of jobs that ask for ``unit``."""
    rows = {"nodes": f"{unit}s", "run_s": "run time (s)", "estimate_s": "estimate (s)"}
    rows["estimate_over_run"] = "estimate / run time"
    percentiles = {name: [float(facts[row][name]) for row in rows] for name in facts["nodes"]}
    ends = {"p0": "min", "p50": "median", "p100": "max"}
    columns = [
        Column(ends.get(name, name), [f"{value:,.2f}" if value % 1 else f"{value:,.0f}" for value in values])
        for name, values in percentiles.items()
    ]
    keys = [Column("", list(rows.values()), number=False)]
    return TextTable("percentiles over jobs", keys, [columns], {"quantity": list(rows), **percentiles})


def means_table(table: StudyTable, title: str, measures: Sequence[str], extra: Sequence[str] = ()) -> TextTable:
    """Return a table of means with their intervals: a row for each point; ``extra`` ones are shown where they are not zero."""
    means = table.means(*measures, *extra)
    halves = {name: means[f"{name}_half"].tolist() for name in (*measures, *extra)}
    factors = [str(name) for name in means if name not in {"replications", *halves, *(f"{name}_half" for name in halves)}]
    columns = measure_columns({name: means[name].tolist() for name in halves}, not_if_zero=extra, halves=halves)
    runs = Column("runs", [f"{number:,}" for number in means["replications"]])
    keys = [_text_column(name, means[name]) for name in factors]
    plain = {str(name): means[name].tolist() for name in means}
    advice = "" if sample_paths(table) else "more replications narrow them"
    return TextTable(title, keys, [[runs, *columns.values()]], plain, _below_zero(plain, list(columns), advice))


def _below_zero(values: Mapping[str, Values], measures: Sequence[str], advice: str) -> list[Note]:
    """Return a note on measures that cannot be negative whose intervals reach below 0."""
    wrong = [
        (name, mean, half)
        for name in measures
        if never_negative(name)
        for mean, half in zip(values[name], values[f"{name}_half"], strict=True)
        if mean is not None and half is not None and 0 <= mean < half
    ]
    if not wrong:
        return []
    names = ", ".join(dict.fromkeys((quantity(name) or named(name)).name for name, *_ in wrong))
    fact = f"intervals reach below 0, where {names} cannot be: they are to be read as ending at 0"
    return [Note(fact, advice)]


def sample_paths(table: StudyTable) -> list[Note]:
    """Return a note on what the intervals of a study mean whose jobs are resampled."""
    resampled = table.resampled
    if not resampled.any():
        return []
    which = "jobs" if resampled.all() else f"the jobs of {int(resampled.sum()):,} of {len(resampled):,} runs"
    fact = f"{which} are resampled: their ± is half of a prediction interval for one new log, sqrt(n+1) times that of a mean"
    return [Note(fact, "more resamples do not narrow it")]


def trials_table(
    frame: pd.DataFrame, title: str, keys: Sequence[str], measures: Sequence[str], extra: Sequence[str] = ()
) -> TextTable:
    """Return a table with a row for each trial, which the columns ``keys`` identify; ``extra`` as for :func:`means_table`."""
    numbers = {name: frame[name].tolist() for name in (*measures, *extra) if frame[name].dtype.kind in "iuf"}
    texts = [_text_column(name, frame[name]) for name in measures if name not in numbers]
    plain = {name: frame[name].tolist() for name in (*keys, *measures, *extra)}
    shown = [*measure_columns(numbers, not_if_zero=extra).values(), *texts]
    return TextTable(title, [_text_column(name, frame[name]) for name in keys], [shown], plain)


def _heading(text: str) -> str:
    return fill(text, 12, break_long_words=False)


def frame_table(frame: pd.DataFrame, title: str) -> TextTable:
    """Return a pandas table as a table of text; its index, or else the columns before the first number, name the rows."""
    keys: list[str] = []
    if any(name is not None for name in frame.index.names):
        keys = [*map(str, frame.index.names)]
        frame = frame.reset_index()
    columns = {str(name): _text_column(str(name), frame.iloc[:, index]) for index, name in enumerate(frame.columns)}
    if not keys:
        first = next((index for index, shown in enumerate(columns.values()) if shown.number), len(columns))
        keys = list(columns)[: max(first, 1) if first < len(columns) else 1]
    others = [shown for name, shown in columns.items() if name not in keys]
    plain = {name: frame.iloc[:, index].tolist() for index, name in enumerate(columns)}
    return TextTable(title, [columns[name] for name in keys], [others], plain)


def _text_column(name: str, cells: pd.Series) -> Column:
    values = [value for value in cells.tolist() if value is not None]
    texts = [value for value in values if isinstance(value, str)]
    numbers = bool(values) and not any(isinstance(value, bool) for value in values)
    numbers = numbers and all(" ± " in text or fullmatch(_NUMBER, text) for text in texts)  # perhaps with intervals
    return Column(_heading(column_heading(name)), list(map(cell, cells.tolist())), cells.dtype.kind in "iuf" or numbers)


def repeated_runs(table: StudyTable) -> list[Note]:
    """Return a note if all replications of a point are the same run: its function ignores the seed, and nothing is random."""
    frame = table.frame
    if not len(frame):
        return []
    point = [frame[name] for name in table.factors] or [frame["run"].isna()]
    runs = frame.groupby(point, dropna=False, sort=False)["run"].agg(["size", "nunique"])
    same = runs[(runs["size"] > 1) & (runs["nunique"] == 1)]
    if not len(same):
        return []
    which = "each point" if len(same) == len(runs) else f"{len(same):,} of {len(runs):,} points"
    fact = f"the {same['size'].max():,} replications of {which} are one and the same run, so that means have no interval"
    return [Note(fact, "let the workload of the study depend on its seed, or ask for one replication")]


def notes_of_runs(table: StudyTable) -> list[Note]:
    """Return what to know after the runs: replications that are the same run, resampled jobs, unused costs, lost work."""
    notes, frame = [*repeated_runs(table), *sample_paths(table), *table.notes], table.frame
    if not {"policy", "lost_share", "useful_share", "failed_attempts"} <= set(frame.columns):
        return notes
    lost = frame["lost_share"].where(frame["failed_attempts"] > 0, 0.0).astype(float)
    shares = (lost / (lost + frame["useful_share"].astype(float))).groupby(frame["policy"].astype(str), sort=False).max()
    if (shares > input_notes.DISCARDED_SHARE).any():
        notes.append(input_notes.discarded_work(shares.fillna(0.0).tolist(), shares.index.tolist()))
    return notes


def study_notes(table: StudyTable) -> list[Note]:
    """Return what looks wrong in an experiment: that of :func:`notes_of_runs`, its worst runs, policies without effect."""
    frame, repeated = table.frame, notes_of_runs(table)
    if not {*input_notes.COUNTED, *_COMPARED} <= set(frame.columns) or not len(frame):
        return repeated
    numbers = {*input_notes.COUNTED, *_COMPARED} - {"policy"}
    if any(isinstance(level, str) for name in numbers & set(table.factors) for level in table.levels(name)):
        return repeated  # texts hide the numbers of a column of that name
    rows = frame[list(input_notes.COUNTED)].astype({"policy": str, "load": float})  # a single job has no load: None
    notes = [*repeated, *input_notes.count_notes(list(rows.itertuples(index=False)), with_memory=True, with_rules=True)]
    policies = rows["policy"].nunique()
    if policies > 1 and "policy" in table.factors:
        others = [name for name in (*table.factors, "replication") if name != "policy"]
        differing = frame.groupby(others, dropna=False, sort=False)[list(_COMPARED)].nunique(dropna=False)
        if (differing == 1).all(axis=None):
            waits = bool((frame["mean_wait_s"] > 0).any())
            notes.append(input_notes.same_results(policies, float(frame["load"].max()), waits=waits))
    return notes
