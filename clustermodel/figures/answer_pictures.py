"""The pictures of a page that answers a question: times by size of jobs, nodes over time, differences with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from clustermodel.figures import style
from clustermodel.figures.result_plots import means_over_time
from clustermodel.measure.metrics import doubling_classes
from clustermodel.text.formatting import time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from clustermodel.experiment.result import Result
    from clustermodel.measure.answers import Answer

_BINS = 120
_WIDTH = 5.6  # inches
_LONG_NAME = 30  # characters, of which two do not fit side by side


def times_by_size(runs: Mapping[str, Result], measure: str) -> Figure:
    """Return bars of the mean wait or response time of jobs by their size, in hours, of each run, by its name."""
    figure, axes = style.new_figure(_WIDTH, 3.4)
    classes: dict[str, None] = {}
    times: dict[str, dict[str, float]] = {}
    for name, run in runs.items():
        records, ran = run.records, run.records.finished
        until = records.seconds("start" if measure == "mean wait" else "end")
        hours = (until - records.seconds("submit"))[ran] / 3600
        means = {}
        if ran.any():
            by_size = doubling_classes(records.column("nodes")[ran])
            places = by_size.groupby(by_size, observed=True).indices
            means = {str(size): float(hours[jobs].mean()) for size, jobs in places.items()}
        times[name] = means
        classes |= dict.fromkeys(means)
    sizes = sorted(classes, key=lambda text: int(text.replace(",", "").split("-")[0].lstrip("<>= ") or 0))
    width = 0.8 / max(len(runs), 1)
    for place, (name, look) in enumerate(style.policy_styles(list(runs), separate=True).items()):
        heights = [times[name].get(size, 0.0) for size in sizes]
        axes.bar(
            np.arange(len(sizes)) + (place - (len(runs) - 1) / 2) * width,
            heights,
            width,
            color=look.colour,
            label=style.plain(name),
        )
    first = next(iter(runs.values()))
    axes.set_xticks(np.arange(len(sizes)), sizes)
    axes.set(xlabel=f"{first.scenario.unit}s of the job", ylabel=f"{measure} (hours)")
    axes.grid(axis="y", alpha=0.25)
    _put_legend(figure)
    return figure


def nodes_over_time(runs: Mapping[str, Result]) -> Figure:
    """Return the busy nodes of each run over time, means over equal intervals."""
    figure, axes = style.new_figure(_WIDTH, 3.0)
    end = max(float(run.events.time_s[-1]) for run in runs.values())
    edges = np.linspace(0, end, _BINS + 1)
    unit = time_unit(end)
    for name, look in style.policy_styles(list(runs), separate=True).items():
        busy = means_over_time(runs[name].columns("states"), 1, edges)["busy"]
        axes.stairs(busy, edges / unit.seconds, color=look.colour, linestyle=look.line, label=style.plain(name))
    for size in sorted({run.machine.processors for run in runs.values()}):
        axes.axhline(size, color="gray", linewidth=0.8, linestyle=":")
    first = next(iter(runs.values()))
    axes.set(
        xlabel=f"time since the first submission ({unit.name})",
        ylabel=f"busy {first.scenario.unit}s",
        xlim=(0, end / unit.seconds),
    )
    axes.set_ylim(0)
    axes.grid(alpha=0.25)
    _put_legend(figure)
    return figure


def differences(answers: Sequence[Answer]) -> Figure:
    """Return the differences of mean waits with their intervals, in hours; filled where they are certain."""
    figure, axes = style.new_figure(_WIDTH, 0.9 + 0.5 * len(answers))
    for place, answer in enumerate(answers):
        mean, low, high = (value / 3600 for value in (answer.difference.mean, answer.difference.low, answer.difference.high))
        if isnan(mean):
            continue
        if not isnan(low):
            axes.plot([low, high], [place, place], color="tab:blue", linewidth=2)
        axes.plot([mean], [place], "o", color="tab:blue", markerfacecolor="tab:blue" if answer.certain else "white")
    axes.axvline(0, color="gray", linewidth=0.8)
    axes.set_yticks(range(len(answers)), [style.plain(answer.change, longest=40) for answer in answers])
    axes.set_ylim(len(answers) - 0.5, -0.5)
    axes.set_xlabel(f"change of the {answers[0].measure} (hours)")
    axes.grid(axis="x", alpha=0.25)
    return figure


def _put_legend(figure: Figure) -> None:
    """Put the names above the picture, in its order, where they hide nothing."""
    names = figure.axes[0].get_legend_handles_labels()[1]
    columns = 1 if max(map(len, names)) > _LONG_NAME else 2
    figure.legend(loc="outside upper left", ncols=columns, frameon=False, fontsize="small")
