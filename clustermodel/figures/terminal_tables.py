"""The comparison of runs as a table of text, and the percentiles of a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.errors import counted
from clustermodel.figures.text_tables import TextColumn, TextTable
from clustermodel.measure.input_notes import run_notes
from clustermodel.measure.quantities import account_columns
from clustermodel.readable import TIME_UNITS, UNDEFINED, TimeUnit, column, time_units

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

Values = Sequence[float | None]


def _time(heading: str, values: Values, unit: TimeUnit) -> TextColumn:
    return TextColumn(
        f"{heading}\n({unit.symbol})", column([None if value is None else value / unit.seconds for value in values])
    )


def _ratio(heading: str, values: Values, _: TimeUnit) -> TextColumn:
    return TextColumn(heading, column(values))


def _percent(heading: str, values: Values, _: TimeUnit) -> TextColumn:
    return TextColumn(f"{heading}\n(%)", column([None if value is None else 100 * value for value in values], places=2))


def _count(heading: str, values: Values, _: TimeUnit) -> TextColumn:
    return TextColumn(heading, [UNDEFINED if value is None else f"{value:,}" for value in values])


class _Field(NamedTuple):
    """A column of the comparison."""

    name: str
    """Of the value in a run's row."""
    shown: Callable[[Values, TimeUnit], TextColumn]
    always: bool = False
    """Whether it is shown where all its values are zero."""


_RESPONSE: Final = (
    _Field("mean_response_s", partial(_time, "mean\nresponse"), always=True),
    _Field("mean_bounded_slowdown", partial(_ratio, "bounded\nslowdown"), always=True),
    _Field("mean_weighted_bounded_slowdown", partial(_ratio, "weighted\nslowdown"), always=True),
)
_WAIT: Final = (
    _Field("mean_wait_s", partial(_time, "mean\nwait"), always=True),
    _Field("median_wait_s", partial(_time, "median\nwait"), always=True),
)
_NODE_TIME: Final = (
    _Field("utilization", partial(_percent, "utilization"), always=True),
    _Field("lost_share", partial(_percent, "discarded\nwork")),
    _Field("context_switch_share", partial(_percent, "context\nswitch")),
    _Field("checkpoint_share", partial(_percent, "checkpoint")),
    _Field("restart_share", partial(_percent, "restart")),
    _Field("blocked_share", partial(_percent, "blocked\ngangs")),
    _Field("down_share", partial(_percent, "down\nnodes")),
    _Field("idle_share", partial(_percent, "idle\nnodes"), always=True),
    _Field("kappa", partial(_percent, "loss of\ncapacity"), always=True),
)
_JOBS: Final = _Field("jobs", partial(_count, "jobs"), always=True)
_COUNTS: Final = (
    _Field("backfilled", partial(_count, "backfilled")),
    _Field("blocked", partial(_count, "blocked\njobs")),
    _Field("delayed", partial(_count, "delayed by\nlower prio.")),
    _Field("preempted", partial(_count, "preempted")),
    _Field("retried", partial(_count, "restarted")),
    _Field("aborted", partial(_count, "killed by\npolicy")),
    _Field("failures", partial(_count, "node\nfailures")),
    _Field("failed_attempts", partial(_count, "failed\nattempts")),
    _Field("killed", partial(_count, "killed\nat limit")),
    _Field("rejected", partial(_count, "rejected")),
)
_TIMES: Final = tuple(field.name for field in (*_WAIT, *_RESPONSE) if field.name.endswith("_s"))
"""The columns of times, which share a unit."""
PLAIN: Final = (
    "jobs",
    *(field.name for field in (*_RESPONSE, *_WAIT, *_NODE_TIME, *_COUNTS)),
    "load",
)
"""The columns of the plain table, behind ``policy``: fields of the summary, and shares of node time by account."""


def run_row(run: Result) -> dict[str, Any]:
    """Return the fields of a run's summary, and the shares of node time by account; undefined values are ``None``."""
    shares = account_columns(run.ledger)
    return {**run.summary().as_dict(), **{name: value for name, value in shares.items() if name.endswith("_share")}}


def comparison_table(runs: Sequence[Result], title: str = "") -> TextTable:
    """Return a table that compares runs: response time, slowdown, wait, node time by account, numbers of jobs.

    Where a run shares nodes in time, whose waits are short by construction, response and slowdown come before the wait.  Of
    the accounts and the numbers of jobs only those that are not zero are shown; the plain form has all.

    Args:
        runs: a row each.
        title: by default the workload and the machine; where runs differ in one of them, their names say it.
    """
    rows = [run_row(run) for run in runs]
    sizes = [counted(row["nodes"], run.scenario.unit) for run, row in zip(runs, rows, strict=True)]
    if not title and rows:
        title = _title(rows, sizes)

    def values(name: str) -> Values:
        return [row[name] for row in rows]

    units = time_units({name: values(name) for name in _TIMES})

    def group(fields: Sequence[_Field]) -> list[TextColumn]:
        columns = {field: values(field.name) for field in fields}
        return [
            field.shown(those, units.get(field.name, TIME_UNITS[-1]))
            for field, those in columns.items()
            if field.always or any(those)
        ]

    in_time = any(run.slices is not None for run in runs)
    order = (*_RESPONSE, *_WAIT) if in_time else (*_WAIT, *_RESPONSE)
    names = [_row_name(run.scenario.label, at, rows, sizes) for at, run in enumerate(runs)]
    keys = [TextColumn("policy", names, number=False)]
    plain = {"policy": names, **{name: values(name) for name in PLAIN}}
    return TextTable(title, keys, [group([_JOBS, *order]), group(_NODE_TIME), group(_COUNTS)], plain, run_notes(runs))


def _differ(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({row[name] for row in rows}) > 1


def _title(rows: Sequence[Mapping[str, Any]], sizes: Sequence[str]) -> str:
    """Return the workload, the machine and the load that all rows have in common."""
    workload = "several workloads" if _differ(rows, "workload") else rows[0]["workload"]
    machine = "several machines" if len(set(sizes)) > 1 else sizes[0]
    known = rows[0]["load"] is not None and not _differ(rows, "load")
    return f"{workload} on {machine}" + (f", offered load {rows[0]['load']:.2f}" if known else "")


def _row_name(label: str, at: int, rows: Sequence[Mapping[str, Any]], sizes: Sequence[str]) -> str:
    """Return the policy, with the workload and the machine where rows differ in them."""
    differing = [str(rows[at]["workload"])] if _differ(rows, "workload") else []
    differing += [sizes[at]] if len(set(sizes)) > 1 else []
    return ", ".join([label, *differing])


def percentile_table(facts: Mapping[str, Any], unit: str = "node") -> TextTable:
    """Return a table of the percentiles of :func:`~clustermodel.workload.facts.trace_facts`, of jobs that ask for ``unit``."""
    rows = {
        "nodes": f"{unit}s",
        "run_s": "run time (s)",
        "estimate_s": "estimate (s)",
        "estimate_over_run": "estimate / run time",
    }
    percentiles = {name: [float(facts[row][name]) for row in rows] for name in facts["nodes"]}
    ends = {"p0": "min", "p50": "median", "p100": "max"}
    columns = [
        TextColumn(ends.get(name, name), [f"{value:,.2f}" if value % 1 else f"{value:,.0f}" for value in values])
        for name, values in percentiles.items()
    ]
    keys = [TextColumn("", list(rows.values()), number=False)]
    return TextTable("percentiles over jobs", keys, [columns], {"quantity": list(rows), **percentiles})
