"""Figures of results, with matplotlib: units on every axis, one colour for a policy everywhere, safe for colour-blind eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustermodel.errors import OutputError, SpecificationError

if TYPE_CHECKING:
    from clustermodel.study.scenario import Result

FloatArray = npt.NDArray[np.float64]

# M. Okabe and K. Ito, Color Universal Design (2008), without the yellow, which is too light for lines.
_PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
_POLICY_COLOURS: Final = {
    "fcfs": _PALETTE[6], "easy": _PALETTE[0], "conservative": _PALETTE[1], "bf": _PALETTE[1],
    "gs": _PALETTE[3], "bgs": _PALETTE[2], "mgs": _PALETTE[4], "mbgs": _PALETTE[5],
}  # fmt: skip
_DAY_S: Final = 86_400.0
_GANTT_LIMIT: Final = 20_000
"""Rectangles that a Gantt chart draws at most; more is neither legible nor quick."""


def policy_colour(label: str, position: int = 0) -> str:
    """Return the colour of a policy: always the same for ours, by ``position`` for others."""
    name = label.partition(":")[0]
    if name in _POLICY_COLOURS and name == label:
        return _POLICY_COLOURS[name]
    return _PALETTE[(position + 2) % len(_PALETTE)]


def time_axis(span_s: float) -> tuple[float, str]:
    """Return the unit in seconds, and its name, in which a time axis of ``span_s`` reads best."""
    for unit_s, name in ((_DAY_S, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if span_s >= 3 * unit_s:
            return unit_s, name
    return 1.0, "seconds"


def busy_nodes(result: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of busy nodes in each interval between ``edges_s`` (seconds from the first event)."""
    log = result.events
    return _mean_of_steps(log.time_s, result.machine.nodes - log.empty, edges_s)


def waiting_jobs(result: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of waiting jobs in each interval between ``edges_s`` (seconds from the first event)."""
    log = result.events
    return _mean_of_steps(log.time_s, log.waiting, edges_s)


def _mean_of_steps(times_s: FloatArray, values: npt.NDArray[np.int64] | FloatArray, edges_s: FloatArray) -> FloatArray:
    """Average a step function over intervals, exactly: differences of its integral."""
    integral = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times_s))])
    means: FloatArray = np.diff(np.interp(edges_s, times_s, integral)) / np.diff(edges_s)
    return means


def _edges(results: Sequence[Result], bins: int) -> FloatArray:
    span = max(float(result.events.time_s[-1]) for result in results)
    return np.linspace(0.0, span, bins + 1)


def _draw_over_time(axes: Axes, results: Sequence[Result], bins: int, *, busy: bool) -> None:
    edges = _edges(results, bins)
    unit, name = time_axis(float(edges[-1]))
    for position, result in enumerate(results):
        values = (busy_nodes(result, edges) / result.machine.nodes) if busy else waiting_jobs(result, edges)
        label = result.scenario.label
        axes.stairs(values, edges / unit, color=policy_colour(label, position), label=label, linewidth=1.2)
    axes.set_xlabel(f"time since the first submission ({name})")
    axes.set_xlim(0, edges[-1] / unit)
    axes.set_ylabel("busy nodes / nodes" if busy else "waiting jobs")
    axes.set_ylim(0, 1.02 if busy else None)
    axes.grid(alpha=0.25)


def _draw_waits(axes: Axes, results: Sequence[Result]) -> None:
    for position, result in enumerate(results):
        label = result.scenario.label
        waits = np.sort(result.jobs["wait_s"].dropna().to_numpy())
        share = 1 - np.arange(len(waits)) / max(len(waits), 1)
        axes.step(np.maximum(waits, 1) / 3600, share, where="pre", color=policy_colour(label, position), label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("wait (hours; shorter than a second drawn at one second)")
    axes.set_ylabel("share of jobs that wait at least this long")
    axes.grid(alpha=0.25, which="both", linewidth=0.4)


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
        f"{first.scenario.workload_name} on {first.machine.nodes:,} nodes, {len(first.records):,} jobs; "
        f"means over {bins} equal intervals"
    )
    top.legend(loc="lower right", ncols=len(drawable))
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write ``figure`` to ``path``; the suffix chooses the format.

    Raises:
        OutputError: the file cannot be written, or the format is unknown.
    """
    try:
        figure.savefig(path, dpi=150)
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    except ValueError:
        known = ", ".join(sorted(figure.canvas.get_supported_filetypes()))
        raise OutputError(f"{path}: format {path.suffix!r} is unknown; known are {known}") from None


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
        if not self._result.records.finished.any():
            raise SpecificationError("utilization: no job ran; there is nothing to draw")
        figure = Figure(figsize=(9, 5.5), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True)
        _draw_over_time(top, [self._result], bins, busy=True)
        _draw_over_time(bottom, [self._result], bins, busy=False)
        top.set_xlabel("")
        scenario, rho = self._result.scenario, self._result.ledger.utilization
        top.axhline(rho, color="0.4", linewidth=0.8, linestyle="--")
        top.set_title(f"{scenario.label} on {scenario.workload_name}: utilization $\\rho$ = {rho:.3f} (dashed)")
        return figure

    def gantt(self, *, first: int | None = None, last: int | None = None, labels: bool | None = None) -> Figure:
        """Draw which nodes each job held, and when.

        Args:
            first: id of the first job to show, in order of submission; the first of all by default.
            last: id of the last job to show; by default the 200th after ``first``, or the last of all.
            labels: write all job ids, or none; by default those that fit their bars.

        Raises:
            SpecificationError: unknown ids, an empty range, or too many jobs to draw.
        """
        records = self._result.records
        ids = records.column("id")
        begin = 0 if first is None else self._position(ids, "first", first)
        stop = min(begin + 200, len(ids)) if last is None else self._position(ids, "last", last) + 1
        shown = [index for index in range(begin, stop) if len(records.columns_of(index))]
        if not shown:
            raise SpecificationError(f"gantt: no job ran between first={first} and last={last}")
        if len(shown) > _GANTT_LIMIT:
            raise SpecificationError(f"gantt: {len(shown)} jobs are too many to draw; choose at most {_GANTT_LIMIT}")
        start, end = records.seconds("start"), records.seconds("end")
        span = float(end[shown].max() - start[shown].min())
        unit, name = time_axis(span)

        figure = Figure(figsize=(10, 5.5), layout="constrained")
        axes = figure.subplots()
        for index in shown:
            columns = records.columns_of(index)
            ranges = [(low - 0.5, high - low) for low, high in zip(columns[::2], columns[1::2], strict=True)]
            left, width = start[index] / unit, (end[index] - start[index]) / unit
            colour = _PALETTE[int(ids[index]) % 6]
            for low, height in ranges:
                axes.broken_barh([(left, width)], (low, height), facecolors=colour, edgecolors="white", linewidth=0.4)
            low, height = max(ranges, key=lambda extent: extent[1])
            legible = width >= 0.025 * span / unit and height >= 0.025 * self._result.machine.nodes
            if labels or (labels is None and legible):
                middle = (left + width / 2, low + height / 2)
                axes.annotate(str(ids[index]), middle, ha="center", va="center", fontsize=7, annotation_clip=True)
        axes.set_ylim(-0.5, self._result.machine.nodes - 0.5)
        axes.set_xlim(float(start[shown].min()) / unit, float(end[shown].max()) / unit)
        axes.set_xlabel(f"time ({name})")
        axes.set_ylabel("node")
        scenario = self._result.scenario
        title = f"{scenario.label} on {scenario.workload_name}: jobs {ids[shown[0]]} to {ids[shown[-1]]}"
        axes.set_title(title if len(shown) == records.finished.sum() else f"{title} (others are not drawn)")
        return figure

    @staticmethod
    def _position(ids: npt.NDArray[np.int64], field: str, job: int) -> int:
        found = np.flatnonzero(ids == job)
        if not len(found):
            raise SpecificationError(f"gantt: {field}: job {job} is not in this run")
        return int(found[0])
