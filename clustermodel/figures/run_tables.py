"""Tables of runs: a comparison, a row for each group of jobs, percentiles of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Any, Final

from clustermodel.errors import SpecificationError, counted
from clustermodel.figures.text_table import Column, TextTable, measure_columns
from clustermodel.measure import input_notes
from clustermodel.measure.metrics import SINCE_ELIGIBLE
from clustermodel.measure.quantities import account_column, account_columns, named
from clustermodel.measure.recorded_groups import NO_NAME
from clustermodel.recording.ledger import WHILE_HELD
from clustermodel.text.formatting import cell
from clustermodel.workload.job import UNSET

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result
    from clustermodel.machine.machine import Machine

_WAIT: Final = {"mean_wait_s": "mean\nwait", "median_wait_s": "median\nwait"}
_SINCE_ELIGIBLE: Final = {"mean_wait_since_eligible_s": "mean wait\nsince elig."}
"""Column of runs in which rules or dependencies hold jobs."""
_RESPONSE: Final = {
    "mean_response_s": "mean\nresponse", "mean_bounded_slowdown": "bounded\nslowdown",
    "mean_weighted_bounded_slowdown": "weighted\nslowdown",
}  # fmt: skip
_NODE_TIME: Final = {
    "utilization": "utilization", "lost_share": "discarded\nwork",
    **{account_column(account, "share"): account.value.replace(" ", "\n") for account in WHILE_HELD},
    "startup_share": "start-up", "blocked_share": "blocked\ngangs", "down_share": "down\nnodes",
    "reserved_share": "reserved\nnodes", "off_share": "nodes\noff", "idle_share": "idle\nnodes", "kappa": "loss of\ncapacity",
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
HEADINGS: Final = {**_HEADINGS, "p95_wait_s": "95th pct.\nwait", **_SINCE_ELIGIBLE, **_OF_ENERGY}
"""Short headings of fields, without the units of times and shares."""
_WAITS: Final = ("mean_wait_s", "median_wait_s", "p95_wait_s")
_OF_GROUPS: Final = ("jobs", *_WAIT, "mean_bounded_slowdown")
_MOST_GROUPS: Final = 20  # rows of a table of groups
OVERHEADS: Final = tuple(name for name in _NODE_TIME if name.endswith("_share") and name != "idle_share")
"""Columns of the shares of node time that do no useful work although nodes are held."""
_NOT_IF_ZERO: Final = {*OVERHEADS, *_COUNTS}  # columns that people see only where they are not zero
PLAIN: Final = (*_HEADINGS, "load")  # the columns of the plain comparison, behind the policy
_VAGUE: Final = {"fraction", "seconds", "charge", "interval_s", "store"}
"""Fields of a machine's parts that do not tell alone what they are."""


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
    columns = measure_columns({name: [row[name] for row in shown] for name in seen}, headings=HEADINGS)
    values = {"policy": [run.scenario.label] * len(rows), by: [row["who"] for row in rows]}
    values |= {name: [row[name] for row in rows] for name in names}
    return TextTable(title, [Column(by, [row["who"] for row in shown], number=False)], [list(columns.values())], values)


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
    columns = measure_columns(shown, headings=HEADINGS, not_if_zero=_NOT_IF_ZERO, share_places=2)
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
    of_machines = [dict(leaves(machine)) for machine in machines]
    differing = [name for name in dict.fromkeys(chain(*of_machines)) if len({of.get(name) for of in of_machines}) > 1]
    return [", ".join(field_text(name, of.get(name)) for name in differing) for of in of_machines]


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a specification, and of those within it, that are numbers or texts, by their dotted names."""
    if is_dataclass(value):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{name}.{key}" if name else key)
    elif value is None or isinstance(value, bool | int | float | str):
        yield name, value


def field_text(name: str, value: Any) -> str:
    """Return a field of a specification as text: ``"quantum 200 s"``."""
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
