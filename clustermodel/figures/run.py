"""The figures of one run, and a figure that compares several: over time, a Gantt chart, the matrix, slices, capacity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.figures import style
from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.measure.job_table import Jobs, bounded_slowdown
from clustermodel.measure.metrics import other_machine
from clustermodel.measure.quantities import account_column, account_columns
from clustermodel.measure.timeline import WORK, mean_of_steps, memory_share, rates_in_matrix, rates_in_space
from clustermodel.recording.ledger import OVERHEADS, Account
from clustermodel.recording.matrix_history import History, Slice
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.text.formatting import time_unit
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks
from clustermodel.validation import require_seconds, require_whole, to_gib
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

MOST_RECTANGLES: Final = 20_000  # that a figure draws; more are neither legible nor quick
_HATCH: Final = "////"  # of replicas, gangs in rows other than their home row, and of discarded work
_HATCHED: Final = {
    "replica": (_HATCH, "replica in another row"),
    "lost": (_HATCH, "work discarded"),
    "failed": (_HATCH, "ended by the failure of a node"),
    "partly": ("..", "executed for part of this time; the log does not show when"),
}
"""Hatches of kinds of placements, and what they say."""


class ResultPlots:
    """The figures of one result; each method returns a matplotlib figure, to show or save.

    ``bins`` is the number of equal time bins over which a figure over time takes means.  Times in seconds are on the clock of
    the workload, as in the job table.  Methods raise a ``SpecificationError`` where no job ran, where figures of the matrix or
    of time sharing lack the history of a run in which gangs shared their nodes in time, and where there is too much to draw.
    """

    def __init__(self, run: Result) -> None:
        self._run = run

    def utilization(self, *, bins: int = 200) -> Figure:
        """Draw the share of busy nodes and the queue length over time."""
        edges = self._edges("utilization", bins)
        figure, (top, bottom) = style.new_figure(9, 5.5, 2, sharex=True)
        _draw_over_time(top, [self._run], edges, "busy nodes / nodes")
        _draw_over_time(bottom, [self._run], edges, "waiting jobs")
        top.set_xlabel("")
        rho = self._run.ledger.utilization
        top.axhline(rho, color="0.4", linewidth=0.8, linestyle="--")
        top.set_title(f"{style.title_of(self._run)}: utilization $\\rho$ = {rho:.3f} (dashed)")
        return figure

    def gantt(self, *, first: int | None = None, last: int | None = None, labels: bool | None = None) -> Figure:
        """Draw which nodes each job held, and when, of a run on dedicated nodes, from the id ``first`` to ``last``.

        By default these are the first job in order of submission, and the 200th from it on.  ``labels`` writes all job ids, or
        none; by default those that fit.  Attempts of which work was discarded are hatched; nodes that were down are black, and
        those that were reserved have a green ground.
        """
        figure, axes = style.new_figure(10, 5.5)
        draw_gantt(axes, self._run, first=first, last=last, labels=labels)
        return figure

    def matrix(self, at_s: float) -> Figure:
        """Draw the Ousterhout matrix at an instant: which gang has which columns in which row (Zhang et al. 2003, figure 7).

        The row that runs at that instant has a frame; at the boundary of two slices it is the row of the later one.
        """
        figure, axes = style.new_figure(9, 1.9 + 0.45 * len(_history(self._run, "matrix").moments[0].rows))
        draw_matrix(axes, self._run, at_s)
        empty = Patch(facecolor="0.93", edgecolor="0.7", label="empty")
        _gang_legend(figure, empty, Patch(fill=False, edgecolor="black", linewidth=2, label="row that runs"))
        return figure

    def slices(self, first_s: float, last_s: float) -> Figure:
        """Draw which gang each node runs in which time slice, from ``first_s`` to ``last_s``."""
        return _slices_figure(self._run, first_s, last_s)

    def recorded(self, *, first_s: float | None = None, last_s: float | None = None) -> Figure:
        """Draw which job held which nodes, as a log has recorded it above as it was simulated, from ``first_s`` to ``last_s``.

        A job has the same colour in both.  By default the time is all of both schedules, or as much as has few enough
        rectangles.  Where jobs share nodes in time, each row of the matrix has the nodes once.  The workload must have
        :attr:`~clustermodel.workload.table.Workload.recorded_placements`.
        """
        return _recorded_figure(self._run, first_s, last_s)

    def memory(self, *, bins: int = 200) -> Figure:
        """Draw the share of the nodes' memory, if that is limited, that running and suspended jobs have over time."""
        edges = self._edges("memory", bins)
        of_nodes, nodes, log = self._run.machine.node_memories, self._run.machine.nodes, self._run.events
        if of_nodes is None:
            raise SpecificationError("memory: nodes have as much as jobs need; give Machine(node_memory_gib=...)")
        _, name, unit = time_unit(float(edges[-1]))
        figure, axes = style.new_figure(9, 3.5)
        used = mean_of_steps(log.time_s, memory_share(self._run.records, sum(of_nodes), log.ticks), edges)
        axes.stairs(used, edges / unit, linewidth=1.2)
        axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit))
        axes.set(ylabel="memory in use / memory", ylim=(0, 1.02))
        axes.grid(alpha=0.25)
        axes.set_title(f"{style.title_of(self._run)}: {nodes:,} nodes with {to_gib(sum(of_nodes)) / nodes:g} GiB each")
        return figure

    def capacity(self, *, bins: int = 200) -> Figure:
        """Draw the use of the machine's capacity over time, by the accounts of the ledger, stacked, as shares of the machine.

        Work is one area: whether it was useful or wasted is known only when a job completes.  The amount that an account gains
        between two scheduling events is spread evenly between them.  The legend has each account's share of the whole run.
        """
        bins = len(self._edges("capacity", bins)) - 1
        figure, axes = style.new_figure(9, 4.5)
        edges, shares = capacity_shares(self._run, bins)
        _, name, unit = time_unit(float(edges[-1]))
        below = np.zeros(bins)
        for (account, colour), share in zip(SHARES.items(), shares, strict=True):
            if share.any():
                total = f"{share.mean():.2%}" if share.mean() >= 0.0001 else "< 0.01%"
                look: Any = {"fill": True, "color": colour, "label": f"{account} ({total})"}
                axes.stairs(below + share, edges / unit, baseline=below, **look)
                below = below + share
        axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit))
        axes.set(ylabel="node time / capacity", ylim=(0, 1))
        size = counted(self._run.machine.processors, self._run.scenario.unit)
        title = f"{style.title_of(self._run)}: capacity of {size}, means over {bins} equal intervals"
        figure.suptitle(title, fontsize="large")
        figure.legend(loc="outside right center", reverse=True)
        return figure

    def power(self, *, bins: int = 200) -> Figure:
        """Draw what all nodes draw over time, and the price of energy, if the machine has one.

        The dashed line is the mean, the energy of the run over its length.
        """
        edges, run = self._edges("power", bins), self._run
        watts = run.power_draw.between(run.ledger.start, run.ledger.end, len(edges) - 1)
        _, name, unit = time_unit(float(edges[-1]))
        figure, axes = style.new_figure(9, 3.5)
        axes.stairs(watts / 1000, edges / unit, linewidth=1.2)
        axes.axhline(watts.mean() / 1000, color="0.4", linewidth=0.8, linestyle="--")
        axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit))
        axes.set(ylabel="power (kW)", ylim=(0, None))
        axes.grid(alpha=0.25)
        axes.set_title(f"{style.title_of(run)}: {run.energy_kwh:,.4g} kWh")
        if (price := run.machine.price) is not None:
            drawn = list(islice(price.steps(run.ledger.start, run.ledger.end), MOST_RECTANGLES + 1))
            if len(drawn) > MOST_RECTANGLES:
                raise SpecificationError(
                    f"power: the price has more than {MOST_RECTANGLES:,} steps in the run, too many to draw"
                )
            begins, steps = zip(*drawn, strict=True)
            times = (np.array([*begins, run.ledger.end]) - run.ledger.start) / TICKS_PER_SECOND / unit
            other = axes.twinx()
            other.stairs([price.price[step] for step in steps], times, color=style.ORANGE, linewidth=0.8)
            other.set_ylabel("price per kWh", color=style.ORANGE)
        return figure

    def _edges(self, figure: str, bins: int) -> FloatArray:
        bins = require_whole(f"{figure}: bins", bins, at_least=1)
        style.require_drawable(self._run, figure)
        return _equal_bins([self._run], bins)


def draw_gantt(
    axes: Axes, run: Result, *, first: int | None = None, last: int | None = None, labels: bool | None = None
) -> None:
    """Draw a Gantt chart on axes of your own; arguments and errors are those of :meth:`ResultPlots.gantt`."""
    if run.slices is not None:
        raise SpecificationError(
            f"gantt: {run.scenario.label} shares nodes in time, so bars would hide each other; "
            "draw slices(first_s, last_s) instead"
        )
    records, ids = run.records, run.records.column("id")
    for field, job in (("first", first), ("last", last)):
        if job is not None and job not in ids:
            raise SpecificationError(f"gantt: {field}: job {job} is not in this run")
    begin = 0 if first is None else int(np.argmax(ids == first))
    stop = min(begin + 200, len(ids)) if last is None else int(np.argmax(ids == last)) + 1
    shown = [index for index in range(begin, stop) if len(records.columns_of(index))]
    if not shown:
        given = ", ".join(f"{field}={job}" for field, job in (("first", first), ("last", last)) if job is not None)
        raise SpecificationError(f"gantt: no job ran{given and f' ({given})'}")
    if len(shown) > MOST_RECTANGLES:
        raise SpecificationError(f"gantt: {len(shown)} jobs are too many to draw; choose at most {MOST_RECTANGLES}")
    starts, ends = records.seconds("start"), records.seconds("end")
    bars = [(index, starts[index], ends[index], records.columns_of(index), False) for index in shown]
    bars += [
        (attempt.job, to_seconds(attempt.start), to_seconds(attempt.end), attempt.columns, attempt.lost > 0)
        for attempt in records.each_stopped_run()
        if begin <= attempt.job < stop
    ]
    earliest, latest = min(bar[1] for bar in bars), max(bar[2] for bar in bars)
    _, name, unit = time_unit(span := latest - earliest)
    for index, start, end, columns, lost in bars:
        ranges = [(low - 0.5, number) for low, number in _ranges(columns)]
        left, width = start / unit, (end - start) / unit
        look: dict[str, Any] = {"facecolors": style.PALETTE[int(ids[index]) % 6], "edgecolors": "white", "linewidth": 0.4}
        look |= {"hatch": _HATCH, "alpha": 0.6} if lost else {}
        for extent in ranges:
            axes.broken_barh([(left, width)], extent, **look)
        low, height = max(ranges, key=lambda extent: extent[1])
        legible = width >= 0.025 * span / unit and height >= 0.025 * run.machine.processors
        if labels or (labels is None and legible):
            middle = (left + width / 2, low + height / 2)
            axes.annotate(str(ids[index]), middle, ha="center", va="center", fontsize=7, annotation_clip=True)
    for node, down, up in zip(*(column.tolist() for column in records.outages), strict=True):
        since, until = to_seconds(down), latest if up == UNKNOWN else to_seconds(up)
        axes.broken_barh([(since / unit, (until - since) / unit)], (node - 0.5, 1), facecolors="black")
    for reserved, begin, end, every in run.machine.windows[: len(run.machine.reservations)]:
        turns = range(begin, to_ticks(latest), every) if every else [begin]
        times = [(to_seconds(turn) / unit, to_seconds(end - begin) / unit) for turn in turns]
        for extent in _ranges(reserved):
            axes.broken_barh(times, (extent[0] - 0.5, extent[1]), facecolors=style.GREEN, alpha=0.25, zorder=0)
    axes.set(xlim=(earliest / unit, latest / unit), ylim=(-0.5, run.machine.processors - 0.5))
    axes.set(xlabel=f"time ({name})", ylabel=run.scenario.unit)
    title = f"{style.title_of(run)}: jobs {ids[shown[0]]} to {ids[shown[-1]]}"
    axes.set_title(title if len(shown) == records.finished.sum() else f"{title} (others are not drawn)")


def comparison(results: Sequence[Result], *, bins: int = 120) -> Figure:
    """Return one figure that compares runs, of which some ran jobs: jobs over time, a distribution, and node time by account.

    The jobs are those that wait, and the distribution is that of waits.  Where a run shares nodes in time, so that waits are
    short by construction, the jobs are those that wait or run, and the distribution is that of bounded slowdowns.
    """
    drawable = [result for result in results if result.records.finished.any()]
    if not drawable:
        raise SpecificationError("figure: no job ran in any result; there is nothing to draw")
    in_time = any(run.slices is not None for run in drawable)
    bars, edges = 0.7 + 0.3 * len(drawable), _equal_bins(drawable, bins)
    figure, (top, middle, below, bottom) = style.new_figure(9, 10 + bars, 4, height_ratios=(3.3, 3.3, 3.3, bars))
    _draw_over_time(top, drawable, edges, "busy nodes / nodes")
    _draw_over_time(middle, drawable, edges, "waiting and running jobs" if in_time else "waiting jobs")
    if max(waiting_jobs(result, edges).max() for result in drawable) > 200:
        middle.set_yscale("symlog", linthresh=10)
    _draw_distribution(below, drawable, slowdowns=in_time)
    shares = account_shares(pd.DataFrame([account_columns(run.ledger) for run in drawable]))
    labels, places = [run.scenario.label for run in drawable], np.arange(len(drawable), dtype=float)
    handles = draw_account_bars(bottom, shares, places)
    bottom.set_yticks(places, style.legend_labels(labels))
    bottom.set_ylabel("policy")
    look: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "fontsize": "small"}
    bottom.legend(list(handles.values()), list(handles), ncols=4, **look)
    first = drawable[0]
    top.set_title(
        f"{style.plain(first.scenario.workload_name)} on {counted(first.machine.processors, first.scenario.unit)}, "
        f"{counted(len(first.records), 'job')}; means over {bins} equal intervals"
    )
    style.legend_below(figure, dict(zip(labels, below.get_lines(), strict=True)))
    return figure


def busy_nodes(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of busy nodes in each interval between ``edges_s`` (seconds from the first event)."""
    return mean_of_steps(run.events.time_s, run.events.busy(run.machine.processors), edges_s)


def waiting_jobs(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of waiting jobs in each interval between ``edges_s`` (seconds from the first event)."""
    return mean_of_steps(run.events.time_s, run.events.waiting, edges_s)


def _jobs_in_system(run: Result, edges_s: FloatArray) -> FloatArray:
    ran = run.records.finished
    begins, ends = (run.records.seconds(name)[ran] - to_seconds(run.ledger.start) for name in ("submit", "end"))
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    changes = np.repeat([1, -1], len(begins))[order]
    return mean_of_steps(times[order], np.cumsum(changes), edges_s)


_OVER_TIME: Final[dict[str, Callable[[Result, FloatArray], FloatArray]]] = {
    "busy nodes / nodes": busy_nodes,
    "waiting jobs": waiting_jobs,
    "waiting and running jobs": _jobs_in_system,
}


def _draw_over_time(axes: Axes, runs: Sequence[Result], edges: FloatArray, what: str) -> None:
    _, name, unit = time_unit(float(edges[-1]))
    share = what == "busy nodes / nodes"
    for run, look in _styled(runs):
        values = _OVER_TIME[what](run, edges) / (run.machine.processors if share else 1)
        axes.stairs(values, edges / unit, color=look.colour, linestyle=look.line, linewidth=1.2)
    axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit), ylabel=what)
    axes.set_ylim(0, 1.02 if share else None)
    axes.grid(alpha=0.25)


def _draw_distribution(axes: Axes, runs: Sequence[Result], *, slowdowns: bool) -> None:
    """Draw the share of jobs whose bounded slowdown, or else whose wait, is at least that on the axis."""
    for run, look in _styled(runs):
        ran = run.records.finished
        submit, start, end = (run.records.seconds(name)[ran] for name in ("submit", "start", "end"))
        values = np.maximum(start - submit, 1) / 3600
        if slowdowns:
            values = bounded_slowdown(end - submit, Jobs.of(run.records).dedicated[ran] / TICKS_PER_SECOND)
        share = 1 - np.arange(len(values)) / max(len(values), 1)
        axes.step(np.sort(values), share, where="pre", color=look.colour, linestyle=look.line)
    wait = "wait (hours; shorter than a second drawn at one second)"
    axes.set_xlabel("bounded slowdown" if slowdowns else wait)
    axes.set_ylabel("share of jobs with this or more" if slowdowns else "share of jobs that wait at least this long")
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.25, which="both", linewidth=0.4)


def _styled(runs: Sequence[Result]) -> list[tuple[Result, style.Style]]:
    """Return runs with the styles of their policies in one figure."""
    styles = style.policy_styles([run.scenario.label for run in runs])
    return [(run, styles[run.scenario.label]) for run in runs]


def _equal_bins(runs: Sequence[Result], bins: int) -> FloatArray:
    """Return the bounds of equal time bins over the longest run, seconds since the first event, shape ``(bins + 1,)``."""
    return np.linspace(0.0, max(float(run.events.time_s[-1]) for run in runs), bins + 1)


# The use of a machine's capacity by the accounts of the ledger.

IDLE_WAITING: Final = "idle while jobs wait"
IDLE_EMPTY: Final = "idle, queue empty"
_PALETTE: Final = (
    style.ORANGE, style.PURPLE, style.VERMILLION, "#8c564b", "#bcbd22", "#7f5fa8", "#c49c94", "#17becf", "#e377c2", "#9edae5",
)  # fmt: skip
_SPENT: Final = [account for account in OVERHEADS if account not in (Account.BLOCKED, Account.IDLE, Account.OFF)]
_OVERHEADS: Final = dict(zip(_SPENT, _PALETTE, strict=False)) | {Account.BLOCKED: style.BLACK}
_COLOURS: Final = {
    **{account.value: colour for account, colour in _OVERHEADS.items()},
    Account.DOWN.value: style.YELLOW,
    Account.RESERVED.value: style.GREEN,
    Account.OFF.value: "#f2efe9",
    IDLE_WAITING: "#999999",
    IDLE_EMPTY: "#dedede",
}
SHARES: Final = {WORK: style.BLUE, **_COLOURS}  # the uses of capacity over time, in the order of stacking
ACCOUNT_COLOURS: Final = {"useful work": style.BLUE, "discarded work": style.SKY, **_COLOURS}  # those by whole runs


def capacity_shares(run: Result, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of equal intervals, seconds, shape ``(bins + 1,)``, and how they are used, ``(len(SHARES), bins)``."""
    in_space = run.slices is None
    rates = rates_in_space(run.records, run.ledger) if in_space else rates_in_matrix(run.records, run.history, run.ledger)
    uses = {**rates.nodes, IDLE_WAITING: rates.idle_waiting, IDLE_EMPTY: rates.nodes[Account.IDLE] - rates.idle_waiting}
    if in_space:
        uses[WORK] = uses[Account.USEFUL] + uses[Account.LOST]
    since = (rates.ticks - rates.ticks[0]) / TICKS_PER_SECOND
    edges = np.linspace(0.0, since[-1], bins + 1)
    return edges, np.array([mean_of_steps(since, uses[use], edges) for use in SHARES]) / run.machine.processors


_ALWAYS: Final = (Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART, Account.BLOCKED)
_IN_SOME: Final = (
    *(account for account in _OVERHEADS if account not in _ALWAYS), Account.DOWN, Account.RESERVED, Account.OFF,
)  # fmt: skip
SHARE_COLUMNS_OF_SOME: Final = {account_column(account, "share"): account.value for account in _IN_SOME}
"""Columns that tables of earlier runs, and tables made by hand, may lack."""
_IDLE: Final = account_column(Account.IDLE, "share")
_IDLE_WAITING: Final = account_column(Account.IDLE, "waiting_share")
_WORK: Final = {Account.USEFUL: "useful work", Account.LOST: "discarded work"}
_COLUMNS: Final = {
    _WORK.get(account, account.value): account_column(account, "share")
    for account in (*_WORK, *_OVERHEADS)
    if account not in _IN_SOME
}
SHARE_COLUMNS: Final = (*_COLUMNS.values(), _IDLE, _IDLE_WAITING)
"""The columns of a table that :func:`account_shares` reads, besides ``SHARE_COLUMNS_OF_SOME``."""


def account_shares(means: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of each use of ``ACCOUNT_COLOURS``, which sum to 1, from means of ``SHARE_COLUMNS``."""
    shares = {use: pd.to_numeric(means[column]) for use, column in _COLUMNS.items()}
    for column, use in SHARE_COLUMNS_OF_SOME.items():
        shares[use] = pd.to_numeric(means[column]) if column in means else 0.0 * shares["useful work"]
    idle, waiting = pd.to_numeric(means[_IDLE]), pd.to_numeric(means[_IDLE_WAITING])
    shares |= {IDLE_WAITING: waiting, IDLE_EMPTY: (idle - waiting).clip(lower=0.0)}
    return pd.DataFrame({use: shares[use] for use in ACCOUNT_COLOURS})


def draw_account_bars(axes: Axes, shares: pd.DataFrame, places: FloatArray) -> dict[str, BarContainer]:
    """Draw rows of :func:`account_shares` as stacked horizontal bars, the first at the top; return those of each use drawn."""
    left, handles = np.zeros(len(shares)), {}
    for use, colour in ACCOUNT_COLOURS.items():
        widths = np.nan_to_num(shares[use].to_numpy(dtype=float))
        if widths.any():
            handles[use] = axes.barh(places, widths, 0.86, left=left, color=colour, edgecolor="white", linewidth=0.3)
            left += widths
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 1), ylim=(places[-1] + 0.7, -0.7), xlabel="node time / capacity")
    return handles


# Time sharing: the Ousterhout matrix at an instant, and the time slices of every node.


def draw_matrix(axes: Axes, run: Result, at_s: float) -> None:
    """Draw the Ousterhout matrix on axes of your own, without a legend; as :meth:`ResultPlots.matrix`."""
    history, nodes = _history(run, "matrix"), run.machine.processors
    at = to_ticks(_within_run(run, "matrix: at_s", at_s))
    moment, running = history.at(at), history.running_row(at)
    rows = moment.rows if moment.ticks <= at else ((),) * len(moment.rows)
    bars = [
        _Bar(low - 0.5, count, row - 0.46, 0.92, cell.job, _HATCH if cell.replica else "")
        for row, cells in enumerate(rows)
        for cell in cells
        for low, count in _ranges(from_mask(cell.columns))
    ]
    axes.set_facecolor("0.93")
    axes.hlines(np.arange(len(rows) - 1) + 0.5, -0.5, nodes - 0.5, color="white", linewidth=1.5, zorder=0.5)
    if nodes <= 64:
        axes.vlines(np.arange(nodes - 1) + 0.5, -0.5, len(rows) - 0.5, color="white", linewidth=0.8, zorder=0.5)
    _draw_gangs(axes, bars, widest=nodes, tallest=len(rows))
    if running is not None:
        frame = Rectangle((-0.5, running - 0.5), nodes, 1, fill=False, edgecolor="black", linewidth=2, clip_on=False, zorder=4)
        axes.add_patch(frame)
    axes.set(xlim=(-0.5, nodes - 0.5), ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)))
    axes.set(xlabel="column (node)", ylabel="row (time slice)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    jobs = len({cell.job for cells in rows for cell in cells})
    waiting = run.events.waiting[np.searchsorted(run.events.ticks, at, side="right") - 1]
    axes.set_title(f"{style.title_of(run)} at {_shown_s(at_s)}: {counted(jobs, 'job')} in the matrix, {waiting} waiting")


def _slices_figure(run: Result, first_s: float, last_s: float) -> Figure:
    history, nodes = _history(run, "slices"), run.machine.processors
    first, last = (
        to_ticks(_within_run(run, f"slices: {field}", time_s)) for field, time_s in (("first_s", first_s), ("last_s", last_s))
    )
    if first >= last:
        raise SpecificationError(f"slices: last_s: {last_s} is not allowed; it must be > first_s, {first_s}")
    _, name, unit = time_unit(to_seconds(last - first))
    bars: list[_Bar] = []
    shown: list[Slice] = []
    for time_slice in history.slices(first, last, run.ledger.end):
        shown.append(time_slice)
        left, right = to_seconds(max(time_slice.begin, first)) / unit, to_seconds(min(time_slice.end, last)) / unit
        for cell in time_slice.gangs:
            ranges = _ranges(from_mask(cell.columns))
            hatch = _HATCH if cell.replica else ""
            bars += [_Bar(left, right - left, low - 0.5, number, cell.job, hatch) for low, number in ranges]
        if len(bars) > MOST_RECTANGLES:
            raise SpecificationError(
                f"slices: more than {MOST_RECTANGLES:,} rectangles between first_s={first_s} and last_s={last_s} are too many "
                "to draw; choose a shorter time"
            )
    if not bars:
        raise SpecificationError(f"slices: nothing ran between first_s={first_s} and last_s={last_s}")
    figure, axes = style.new_figure(10, 5.5)
    axes.set_facecolor("0.93")
    _draw_gangs(axes, bars, widest=to_seconds(last - first) / unit, tallest=nodes)
    thickness = 1.0 if len(shown) <= 60 else 0.5
    for at_event, colour, linewidth in ((False, "0.4", thickness / 2), (True, "black", thickness)):
        begins = [to_seconds(time_slice.begin) / unit for time_slice in shown if time_slice.at_event == at_event]
        axes.vlines(begins, -0.5, nodes - 0.5, color=colour, linewidth=linewidth)
    axes.set(xlim=(to_seconds(first) / unit, to_seconds(last) / unit), ylim=(-0.5, nodes - 0.5))
    axes.set(xlabel=f"time ({name})", ylabel=run.scenario.unit)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    extents = [(max(time_slice.begin, first), min(time_slice.end, last), time_slice.row) for time_slice in shown]
    span = extents[-1][1] - extents[0][0]
    wide = [(to_seconds(begin + end) / 2 / unit, row) for begin, end, row in extents if end - begin >= 0.012 * span]
    if 2 * len(wide) > len(extents):  # the rows are named above the slices if most of these are wide enough
        above = axes.secondary_xaxis("top")
        above.set_xticks([middle for middle, _ in wide], [str(row) for _, row in wide])
        above.tick_params(length=0, labelsize=7)
        above.set_xlabel("row")
    quantum = _shown_s(run.machine.time_slicing.quantum_s)
    axes.set_title(f"{style.title_of(run)}: {counted(len(shown), 'time slice')} of at most {quantum}")
    boundary = Line2D([], [], color="0.4", linewidth=0.5, label="slice begins")
    event = Line2D([], [], color="black", linewidth=1.0, label="slice begins at a scheduling event")
    _gang_legend(figure, boundary, event)
    return figure


def _history(run: Result, figure: str) -> History:
    style.require_drawable(run, figure)
    return run.history


def _within_run(run: Result, field: str, seconds: object) -> float:
    """Return a time, seconds, or refuse it if it lies outside the run."""
    ledger, time_s = run.ledger, require_seconds(field, seconds)
    if not ledger.start <= to_ticks(time_s) <= ledger.end:
        first, last = _shown_s(to_seconds(ledger.start)), _shown_s(to_seconds(ledger.end))
        raise SpecificationError(f"{field}: {time_s} is not allowed; it must lie in the run, from {first} to {last}")
    return time_s


def _ranges(columns: NodeSet) -> list[tuple[int, int]]:
    """Return the contiguous ranges of a set of nodes, as (lowest node, number of nodes)."""
    return [(low, high - low) for low, high in zip(columns[::2], columns[1::2], strict=True)]


class _Bar(NamedTuple):
    """A rectangle for a gang on a contiguous range of nodes, in the units of the axes."""

    left: float
    width: float
    low: float
    height: float
    job: int
    hatch: str = ""


def _draw_gangs(axes: Axes, bars: Sequence[_Bar], *, widest: float, tallest: float) -> None:
    """Draw bars in the colours of their jobs on axes of size ``widest`` x ``tallest``, with labels that fit."""
    for hatch in sorted({bar.hatch for bar in bars}):
        drawn = [bar for bar in bars if bar.hatch == hatch]
        corners = [
            [(left, low), (left + width, low), (left + width, low + height), (left, low + height)]
            for left, width, low, height, *_ in drawn
        ]
        colours = [style.job_colour(bar.job) for bar in drawn]
        # An edge would hide a bar that is hardly wider than the edge.
        edges = [0.6 if bar.width >= 0.004 * widest and bar.height >= 0.006 * tallest else 0.0 for bar in drawn]
        gangs = PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=edges, hatch=hatch or None)
        axes.add_collection(gangs, autolim=False)
    for left, width, low, height, job, hatch in bars:
        text = str(job)
        if width >= 0.011 * (len(text) + 0.5) * widest and height >= 0.035 * tallest:
            colour = style.job_colour(job)
            box = {"facecolor": colour, "edgecolor": "none", "pad": 2.0} if hatch else None
            middle = (left + width / 2, low + height / 2)
            axes.annotate(text, middle, ha="center", va="center", fontsize=7, color=style.ink(colour), bbox=box, clip_on=True)


# A recorded schedule above a simulated one.


def _recorded_figure(run: Result, first_s: float | None, last_s: float | None) -> Figure:
    style.require_drawable(run, "recorded")
    workload = run.scenario.sources[0]
    if len(run.scenario.sources) > 1 or not isinstance(workload, Workload):
        raise SpecificationError("recorded: jobs of several streams, or of a trace that is streamed, have no recorded schedule")
    recorded, simulated = workload.recorded_placements, run.placements
    if recorded.empty:
        raise SpecificationError(f"recorded: {workload.name}: the log names the nodes of none of these jobs")
    every = pd.concat([recorded, simulated])
    begins = np.sort(every["begin_s"])
    first = begins[0] if first_s is None else require_seconds("recorded: first_s", first_s)
    last = every["end_s"].max() if last_s is None else require_seconds("recorded: last_s", last_s)
    drawn = begins[begins >= first]
    is_cut = last_s is None and len(drawn) > MOST_RECTANGLES and drawn[MOST_RECTANGLES] > first
    if is_cut:
        last = drawn[MOST_RECTANGLES]
    there = every[(every["begin_s"] < last) & (every["end_s"] > first)]
    if there.empty:
        raise SpecificationError(f"recorded: nothing ran between first_s={first:g} and last_s={last:g}")
    if len(there) > 2 * MOST_RECTANGLES:
        raise SpecificationError(f"recorded: {len(there):,} rectangles are too many to draw; choose a shorter time")
    _, name, unit = time_unit(last - first)
    figure, axes = style.new_figure(10, 7, 2, sharex=True)
    unnamed = len(workload) - recorded["job"].nunique()
    left_out = f" ({counted(unnamed, 'job')} without names of nodes not drawn)" if unnamed else ""
    sizes = [int((table["first_node"] + table["nodes"]).max()) for table in (recorded, simulated)]
    if not every["row"].any():
        sizes = [max(sizes)] * 2
    titles = [f"recorded: {style.plain(workload.name)}", f"simulated: {style.plain(run.scenario.label)}"]
    if (own_size := workload.machine_nodes) is not None and other_machine(workload, own_size, run.machine.processors):
        numbers = (own_size, run.machine.processors)
        titles = [f"{title}, on {counted(nodes, run.scenario.unit)}" for title, nodes in zip(titles, numbers, strict=True)]
    titles[0] += left_out
    for panel, title, table, size in zip(axes, titles, (recorded, simulated), sizes, strict=True):
        _draw_placements(panel, table[(table["begin_s"] < last) & (table["end_s"] > first)], (first, last), unit, size)
        panel.set_title(title)
        panel.set_ylabel(f"{run.scenario.unit}s, row by row" if panel.yaxis_inverted() else run.scenario.unit)
    axes[1].set_xlabel(f"time ({name}){'; more would be too many rectangles' if is_cut else ''}")
    kinds = there["kind"].unique()
    handles = [
        Patch(facecolor="0.5", edgecolor="white", hatch=hatch, label=label)
        for kind, (hatch, label) in _HATCHED.items()
        if kind in kinds
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_placements(axes: Axes, table: pd.DataFrame, window: tuple[float, float], unit: float, nodes: int) -> None:
    """Draw a rectangle for each row of a table of placements: one row of the matrix below the other."""
    first, last = window
    rows = int(table["row"].max()) + 1 if len(table) else 1
    pitch = nodes + (max(0.5, 0.04 * nodes) if rows > 1 else 0.0)
    begin, end = (table[name].clip(first, last) / unit for name in ("begin_s", "end_s"))
    low = table["first_node"] + table["row"] * pitch - 0.5
    hatches = [_HATCHED[kind][0] if kind in _HATCHED else "" for kind in table["kind"]]
    bars = list(map(_Bar, begin, end - begin, low, table["nodes"], table["job"], hatches))
    bottom, top = -0.5, (rows - 1) * pitch + nodes - 0.5
    axes.set_facecolor("0.93")
    _draw_gangs(axes, bars, widest=(last - first) / unit, tallest=top - bottom)
    axes.set(xlim=(first / unit, last / unit), ylim=(bottom, top))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if rows > 1:  # as in the matrix, the first one on top
        axes.set_ylim(top, bottom)
        axes.set_yticks([row * pitch + nodes / 2 - 0.5 for row in range(rows)], [f"row {row}" for row in range(rows)])


def _gang_legend(figure: Figure, *others: Line2D | Patch) -> None:
    home = Patch(facecolor="0.5", edgecolor="white", label="gang in its home row")
    replica = Patch(facecolor="0.5", edgecolor="white", hatch=_HATCH, label="replica in another row")
    figure.legend(handles=[home, replica, *others], loc="outside lower center", ncols=2 + len(others))


def _shown_s(seconds: float) -> str:
    return f"{seconds:,.6f}".rstrip("0").rstrip(".") + " s"
