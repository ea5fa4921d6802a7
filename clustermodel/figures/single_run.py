"""Figures of one result, and of several side by side, with matplotlib: units on every axis, a policy in its own colour."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from clustermodel.errors import OutputError, SpecificationError, counted
from clustermodel.figures.run_data import (
    IDLE_EMPTY,
    IDLE_WAITING,
    SHARES,
    WORK,
    Slice,
    capacity_shares,
    running_row,
    runs_of,
    slices_between,
    waiting_at,
)
from clustermodel.figures.style import (
    BLACK,
    BLUE,
    ORANGE,
    PURPLE,
    VERMILLION,
    Style,
    job_colour,
    job_hue,
    legend_below,
    plain,
    policy_styles,
)
from clustermodel.output_files import replacing
from clustermodel.recording.ledger import Account
from clustermodel.recording.matrix_history import History
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import require_seconds, require_whole

if TYPE_CHECKING:
    from clustermodel.experiment.scenario import Result, Scenario

FloatArray = npt.NDArray[np.float64]

_SHARE_COLOURS: Final = {
    WORK: BLUE, Account.CONTEXT_SWITCH: ORANGE, Account.CHECKPOINT: PURPLE, Account.RESTART: VERMILLION,
    Account.BLOCKED: BLACK, IDLE_WAITING: "0.6", IDLE_EMPTY: "0.88",
}  # fmt: skip
_HATCH: Final = "////"
"""Of gangs in rows that are not their home."""
_DAY_S: Final = 86_400.0
_GANTT_LIMIT: Final = 20_000
"""Rectangles that a Gantt chart draws at most; more is neither legible nor quick."""


def time_axis(span_s: float) -> tuple[float, str]:
    """Return the unit in seconds, and its name, in which a time axis of ``span_s`` reads best."""
    for unit_s, name in ((_DAY_S, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if span_s >= 3 * unit_s:
            return unit_s, name
    return 1.0, "seconds"


def busy_nodes(result: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of busy nodes in each interval between ``edges_s`` (seconds from the first event)."""
    log = result.events
    return mean_of_steps(log.time_s, result.machine.nodes - log.empty, edges_s)


def waiting_jobs(result: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of waiting jobs in each interval between ``edges_s`` (seconds from the first event)."""
    log = result.events
    return mean_of_steps(log.time_s, log.waiting, edges_s)


def mean_of_steps(times_s: FloatArray, values: npt.NDArray[np.int64] | FloatArray, edges_s: FloatArray) -> FloatArray:
    """Average a step function over intervals, exactly: differences of its integral."""
    integral = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times_s))])
    means: FloatArray = np.diff(np.interp(edges_s, times_s, integral)) / np.diff(edges_s)
    return means


def _named(scenario: Scenario) -> str:
    """Return policy and workload for a title."""
    return f"{plain(scenario.label)} on {plain(scenario.workload_name)}"


def _edges(results: Sequence[Result], bins: int) -> FloatArray:
    span = max(float(result.events.time_s[-1]) for result in results)
    return np.linspace(0.0, span, bins + 1)


def _styled(results: Sequence[Result]) -> list[tuple[Result, Style]]:
    """Return results with the styles of their policies in one figure."""
    styles = policy_styles([result.scenario.label for result in results])
    return [(result, styles[result.scenario.label]) for result in results]


def _draw_over_time(axes: Axes, results: Sequence[Result], bins: int, *, busy: bool) -> None:
    edges = _edges(results, bins)
    unit, name = time_axis(float(edges[-1]))
    for result, style in _styled(results):
        values = (busy_nodes(result, edges) / result.machine.nodes) if busy else waiting_jobs(result, edges)
        axes.stairs(values, edges / unit, color=style.colour, linestyle=style.line, linewidth=1.2)
    axes.set_xlabel(f"time since the first submission ({name})")
    axes.set_xlim(0, edges[-1] / unit)
    axes.set_ylabel("busy nodes / nodes" if busy else "waiting jobs")
    axes.set_ylim(0, 1.02 if busy else None)
    axes.grid(alpha=0.25)


def _draw_waits(axes: Axes, results: Sequence[Result]) -> None:
    for result, style in _styled(results):
        waits = np.sort(result.jobs["wait_s"].dropna().to_numpy())
        share = 1 - np.arange(len(waits)) / max(len(waits), 1)
        axes.step(np.maximum(waits, 1) / 3600, share, where="pre", color=style.colour, linestyle=style.line)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("wait (hours; shorter than a second drawn at one second)")
    axes.set_ylabel("share of jobs that wait at least this long")
    axes.grid(alpha=0.25, which="both", linewidth=0.4)


class _Bar(NamedTuple):
    """A rectangle that stands for a gang, in the units of the axes; its label is written where it fits."""

    left: float
    width: float
    low: float
    height: float
    job: int
    replica: bool


def _draw_gangs(axes: Axes, bars: Sequence[_Bar], *, widest: float, tallest: float) -> None:
    """Draw bars in the colours of their jobs, those of replicas hatched, on axes of size ``widest`` x ``tallest``."""
    for replica in (False, True):
        drawn = [bar for bar in bars if bar.replica == replica]
        corners = [
            [(left, low), (left + width, low), (left + width, low + height), (left, low + height)]
            for left, width, low, height, *_ in drawn
        ]
        colours = [job_colour(bar.job) for bar in drawn]
        # An edge would hide a bar that is hardly wider than itself.
        edges = [0.6 if bar.width >= 0.004 * widest and bar.height >= 0.006 * tallest else 0.0 for bar in drawn]
        hatch = _HATCH if replica else None
        gangs = PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=edges, hatch=hatch)
        axes.add_collection(gangs, autolim=False)
    for left, width, low, height, job, replica in bars:
        text = str(job)
        if width >= 0.011 * (len(text) + 0.5) * widest and height >= 0.035 * tallest:
            red, green, blue = colour = job_colour(job)
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            box = {"facecolor": colour, "edgecolor": "none", "pad": 2.0} if replica else None
            middle = (left + width / 2, low + height / 2)
            axes.annotate(
                text, middle, ha="center", va="center", fontsize=7, color="white" if dark else "black", bbox=box, clip_on=True
            )


def _name_rows(axes: Axes, slices: Sequence[tuple[int, int, int]], unit: float) -> None:
    """Write above each slice, given by begin, end and row, which row runs, where that can be read."""
    span = slices[-1][1] - slices[0][0]
    wide = [(to_seconds(begin + end) / 2 / unit, row) for begin, end, row in slices if end - begin >= 0.012 * span]
    if 2 * len(wide) > len(slices):
        above = axes.secondary_xaxis("top")
        above.set_xticks([middle for middle, _ in wide], [str(row) for _, row in wide])
        above.tick_params(length=0, labelsize=7)
        above.set_xlabel("row")


def _gang_legend(figure: Figure, *others: Line2D | Patch) -> None:
    home = Patch(facecolor="0.5", edgecolor="white", label="gang in its home row")
    replica = Patch(facecolor="0.5", edgecolor="white", hatch=_HATCH, label="replica in another row")
    figure.legend(handles=[home, replica, *others], loc="outside lower center", ncols=2 + len(others))


def _shown_s(seconds: float) -> str:
    text = f"{seconds:,.6f}"
    return text.rstrip("0").rstrip(".") + " s"


def comparison(results: Sequence[Result], *, bins: int = 120) -> Figure:
    """Return one figure that compares runs: utilization and queue over time, and the distribution of waits.

    Raises:
        SpecificationError: there is nothing to draw.
    """
    drawable = [result for result in results if result.records.finished.any()]
    if not drawable:
        raise SpecificationError("figure: no job ran in any result; there is nothing to draw")
    figure = Figure(figsize=(9, 10), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1)
    _draw_over_time(top, drawable, bins, busy=True)
    _draw_over_time(middle, drawable, bins, busy=False)
    if max(waiting_jobs(result, _edges(drawable, bins)).max() for result in drawable) > 200:
        middle.set_yscale("symlog", linthresh=10)
    _draw_waits(bottom, drawable)
    first = drawable[0]
    top.set_title(
        f"{plain(first.scenario.workload_name)} on {first.machine.nodes:,} nodes, {len(first.records):,} jobs; "
        f"means over {bins} equal intervals"
    )
    legend_below(figure, dict(zip((result.scenario.label for result in drawable), bottom.get_lines(), strict=True)))
    return figure


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write ``figure`` to ``path``; the suffix chooses the format.

    Raises:
        OutputError: the file cannot be written, or the format is unknown.
    """
    suffix = Path(path).suffix
    known = sorted(figure.canvas.get_supported_filetypes())
    if suffix[1:].lower() not in known:
        raise OutputError(f"{path}: format {suffix!r} is unknown; known are {', '.join(known)}")
    with replacing(path) as file:
        figure.savefig(file, format=suffix[1:].lower(), dpi=150)


def _position(ids: npt.NDArray[np.int64], field: str, job: int) -> int:
    found = np.flatnonzero(ids == job)
    if not len(found):
        raise SpecificationError(f"gantt: {field}: job {job} is not in this run")
    return int(found[0])


def draw_gantt(
    axes: Axes, result: Result, *, first: int | None = None, last: int | None = None, labels: bool | None = None
) -> None:
    """Draw a Gantt chart on axes of your own; arguments and errors are those of :meth:`ResultPlots.gantt`."""
    if result.slices is not None:
        raise SpecificationError(
            f"gantt: {result.scenario.label} shares nodes in time, so bars would hide each other; "
            "draw slices(first_s, last_s) instead"
        )
    records = result.records
    ids = records.column("id")
    begin = 0 if first is None else _position(ids, "first", first)
    stop = min(begin + 200, len(ids)) if last is None else _position(ids, "last", last) + 1
    shown = [index for index in range(begin, stop) if len(records.columns_of(index))]
    if not shown:
        raise SpecificationError(f"gantt: no job ran between first={first} and last={last}")
    if len(shown) > _GANTT_LIMIT:
        raise SpecificationError(f"gantt: {len(shown)} jobs are too many to draw; choose at most {_GANTT_LIMIT}")
    start, end = records.column("start"), records.column("end")
    bars = [(index, to_seconds(start[index]), to_seconds(end[index]), records.columns_of(index), False) for index in shown]
    bars += [
        (one.job, to_seconds(one.start), to_seconds(one.end), one.columns, one.lost > 0)
        for one in records.each_stopped_run()
        if begin <= one.job < stop
    ]
    earliest, latest = min(bar[1] for bar in bars), max(bar[2] for bar in bars)
    unit, name = time_axis(span := latest - earliest)

    for index, begins, ends, columns, lost in bars:
        ranges = [(low - 0.5, high - low) for low, high in zip(columns[::2], columns[1::2], strict=True)]
        left, width = begins / unit, (ends - begins) / unit
        colour, hatch, alpha = job_hue(int(ids[index])), "////" if lost else None, 0.6 if lost else 1.0
        for low, height in ranges:
            axes.broken_barh(
                [(left, width)],
                (low, height),
                facecolors=colour,
                edgecolors="white",
                linewidth=0.4,
                hatch=hatch,
                alpha=alpha,
            )
        low, height = max(ranges, key=lambda extent: extent[1])
        legible = width >= 0.025 * span / unit and height >= 0.025 * result.machine.nodes
        if labels or (labels is None and legible):
            middle = (left + width / 2, low + height / 2)
            axes.annotate(str(ids[index]), middle, ha="center", va="center", fontsize=7, annotation_clip=True)
    axes.set_ylim(-0.5, result.machine.nodes - 0.5)
    axes.set_xlim(earliest / unit, latest / unit)
    axes.set_xlabel(f"time ({name})")
    axes.set_ylabel("node")
    scenario = result.scenario
    title = f"{_named(scenario)}: jobs {ids[shown[0]]} to {ids[shown[-1]]}"
    axes.set_title(title if len(shown) == records.finished.sum() else f"{title} (others are not drawn)")


def _require_drawable(result: Result, figure: str) -> None:
    if not result.records.finished.any():
        raise SpecificationError(f"{figure}: no job ran; there is nothing to draw")


def _history(result: Result, figure: str) -> History:
    _require_drawable(result, figure)
    return result.history


def _within_run(result: Result, field: str, seconds: object) -> float:
    """Return a time of the run, seconds."""
    ledger, given = result.ledger, require_seconds(field, seconds)
    if not ledger.start <= to_ticks(given) <= ledger.end:
        first, last = _shown_s(to_seconds(ledger.start)), _shown_s(to_seconds(ledger.end))
        raise SpecificationError(f"{field}: {given} is not allowed; it must lie in the run, from {first} to {last}")
    return given


def draw_matrix(axes: Axes, result: Result, at_s: float) -> None:
    """Draw the Ousterhout matrix on axes of your own, without a legend; see :meth:`ResultPlots.matrix`."""
    history, nodes = _history(result, "matrix"), result.machine.nodes
    at = to_ticks(_within_run(result, "matrix: at_s", at_s))
    moment, running = history.at(at), running_row(history, at)
    rows = moment.rows if moment.ticks <= at else ((),) * len(moment.rows)
    bars = [
        _Bar(low - 0.5, count, row - 0.46, 0.92, cell.job, cell.replica)
        for row, cells in enumerate(rows)
        for cell in cells
        for low, count in runs_of(cell)
    ]
    axes.set_facecolor("0.93")
    axes.hlines(np.arange(len(rows) - 1) + 0.5, -0.5, nodes - 0.5, color="white", linewidth=1.5, zorder=0.5)
    if nodes <= 64:
        axes.vlines(np.arange(nodes - 1) + 0.5, -0.5, len(rows) - 0.5, color="white", linewidth=0.8, zorder=0.5)
    _draw_gangs(axes, bars, widest=nodes, tallest=len(rows))
    if running is not None:
        frame = Rectangle((-0.5, running - 0.5), nodes, 1, fill=False, edgecolor="black", linewidth=2, clip_on=False, zorder=4)
        axes.add_patch(frame)
    axes.set_xlim(-0.5, nodes - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("column (node)")
    axes.set_ylabel("row (time slice)")
    there = len({cell.job for cells in rows for cell in cells})
    axes.set_title(
        f"{_named(result.scenario)} at {_shown_s(at_s)}: "
        f"{counted(there, 'job')} in the matrix, {waiting_at(result, at)} waiting"
    )


class ResultPlots:
    """The figures of one result; each method returns a matplotlib figure, to show or save."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def utilization(self, *, bins: int = 200) -> Figure:
        """Draw the share of busy nodes and the queue length over time.

        Args:
            bins: number of equal intervals over which both are averaged.

        Raises:
            SpecificationError: no job ran.
        """
        _require_drawable(self._result, "utilization")
        figure = Figure(figsize=(9, 5.5), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True)
        _draw_over_time(top, [self._result], bins, busy=True)
        _draw_over_time(bottom, [self._result], bins, busy=False)
        top.set_xlabel("")
        scenario, rho = self._result.scenario, self._result.ledger.utilization
        top.axhline(rho, color="0.4", linewidth=0.8, linestyle="--")
        top.set_title(f"{_named(scenario)}: utilization $\\rho$ = {rho:.3f} (dashed)")
        return figure

    def gantt(self, *, first: int | None = None, last: int | None = None, labels: bool | None = None) -> Figure:
        """Draw which nodes each job held, and when; runs of which work was lost are hatched.

        Args:
            first: id of the first job to show, in order of submission; the first of all by default.
            last: id of the last job to show; by default the 200th after ``first``, or the last of all.
            labels: write all job ids, or none; by default those that fit their bars.

        Raises:
            SpecificationError: unknown ids, an empty range, too many jobs to draw, or nodes were shared in time.
        """
        figure = Figure(figsize=(10, 5.5), layout="constrained")
        draw_gantt(figure.subplots(), self._result, first=first, last=last, labels=labels)
        return figure

    def matrix(self, at_s: float) -> Figure:
        """Draw the Ousterhout matrix at an instant: which gang has which columns in which row (002, figure 7).

        The row that runs at that instant is framed; at the boundary of two slices it is the one that begins.

        Args:
            at_s: when, seconds on the clock of the workload, which the job table and :meth:`gantt` have too.

        Raises:
            SpecificationError: the history of the run was not kept, nodes are not shared in time, or the run does not cover
                that time.
        """
        _require_drawable(self._result, "matrix")
        figure = Figure(figsize=(9, 1.9 + 0.45 * len(self._result.history.moments[0].rows)), layout="constrained")
        draw_matrix(figure.subplots(), self._result, at_s)
        empty = Patch(facecolor="0.93", edgecolor="0.7", label="empty")
        runs = Patch(fill=False, edgecolor="black", linewidth=2, label="row that runs")
        _gang_legend(figure, empty, runs)
        return figure

    def slices(self, first_s: float, last_s: float) -> Figure:
        """Draw which gang each node runs in which time slice.

        Args:
            first_s: from when, seconds on the clock of the workload, which the job table and :meth:`gantt` have too.
            last_s: until when, seconds on the same clock.

        Raises:
            SpecificationError: the history of the run was not kept, nodes are not shared in time, the run does not cover that
                time, nothing ran in it, or there would be too much to draw.
        """
        result = self._result
        history, nodes = _history(self._result, "slices"), result.machine.nodes
        first = to_ticks(_within_run(self._result, "slices: first_s", first_s))
        last = to_ticks(_within_run(self._result, "slices: last_s", last_s))
        if first >= last:
            raise SpecificationError(f"slices: last_s: {last_s} is not allowed; it must be > first_s, {first_s}")
        unit, name = time_axis(to_seconds(last - first))
        bars: list[_Bar] = []
        shown: list[Slice] = []
        for turn in slices_between(history, first, last, result.ledger.end):
            shown.append(turn)
            left, right = to_seconds(max(turn.begin, first)) / unit, to_seconds(min(turn.end, last)) / unit
            for cell in turn.gangs:
                bars += [_Bar(left, right - left, low - 0.5, count, cell.job, cell.replica) for low, count in runs_of(cell)]
            if len(bars) > _GANTT_LIMIT:
                raise SpecificationError(
                    f"slices: more than {_GANTT_LIMIT:,} rectangles between first_s={first_s} and last_s={last_s} are too many "
                    "to draw; choose a shorter time"
                )
        if not bars:
            raise SpecificationError(f"slices: nothing ran between first_s={first_s} and last_s={last_s}")
        figure = Figure(figsize=(10, 5.5), layout="constrained")
        axes = figure.subplots()
        axes.set_facecolor("0.93")
        _draw_gangs(axes, bars, widest=to_seconds(last - first) / unit, tallest=nodes)
        thickness = 1.0 if len(shown) <= 60 else 0.5
        for at_event, colour, linewidth in ((False, "0.4", thickness / 2), (True, "black", thickness)):
            begins = [to_seconds(turn.begin) / unit for turn in shown if turn.at_event == at_event]
            axes.vlines(begins, -0.5, nodes - 0.5, color=colour, linewidth=linewidth)
        axes.set_xlim(to_seconds(first) / unit, to_seconds(last) / unit)
        axes.set_ylim(-0.5, nodes - 0.5)
        axes.set_xlabel(f"time ({name})")
        axes.set_ylabel("node")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        _name_rows(axes, [(max(turn.begin, first), min(turn.end, last), turn.row) for turn in shown], unit)
        axes.set_title(
            f"{_named(result.scenario)}: {counted(len(shown), 'time slice')} of at most "
            f"{_shown_s(result.machine.time_slicing.quantum_s)}"
        )
        boundary = Line2D([], [], color="0.4", linewidth=0.5, label="slice begins")
        event = Line2D([], [], color="black", linewidth=1.0, label="slice begins at a scheduling event")
        _gang_legend(figure, boundary, event)
        return figure

    def capacity(self, *, bins: int = 200) -> Figure:
        """Draw where the machine's capacity goes over time, by the accounts of the ledger, stacked, as shares of the machine.

        Work is one area: whether it was useful or lost is known only when a job ends, while here it appears when it is done.
        What an account gains between two scheduling events is spread evenly over the time between them.  Accounts with nothing
        in them are left out; the legend has each one's share of the whole run.

        Args:
            bins: number of equal intervals for which shares are drawn.

        Raises:
            SpecificationError: no job ran, or nodes were shared in time and the history of the run was not kept.
        """
        bins = require_whole("capacity: bins", bins, at_least=1)
        result = self._result
        _require_drawable(self._result, "capacity")
        edges, shares = capacity_shares(result, bins)
        unit, name = time_axis(float(edges[-1]))
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        axes = figure.subplots()
        below = np.zeros(bins)
        for account, share in zip(SHARES, shares, strict=True):
            if share.any():
                total = share.mean()
                label = f"{account} ({total:.2%})" if total >= 0.0001 else f"{account} (< 0.01%)"
                axes.stairs(below + share, edges / unit, baseline=below, fill=True, color=_SHARE_COLOURS[account], label=label)
                below = below + share
        axes.set_xlabel(f"time since the first submission ({name})")
        axes.set_xlim(0, edges[-1] / unit)
        axes.set_ylabel("node time / capacity")
        axes.set_ylim(0, 1)
        figure.suptitle(
            f"{_named(result.scenario)}: capacity of {result.machine.nodes:,} nodes, means over {bins} equal intervals",
            fontsize="large",
        )
        figure.legend(loc="outside right center", reverse=True)
        return figure
