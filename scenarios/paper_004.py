"""What the studies of 004 (004_55d19449f9d7d838.txt) share: how run times past the estimate are read, and lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from reporting import Interval, Runs, interval

AS_RECORDED: Final[Mapping[str, Any]] = {"kill_at_estimate": False}
"""A machine on which jobs run for as long as the trace says, past their estimates too.

004 says that "the values of these data fields are faithful to the original workload"; its loads are those of uncut run times.
"""
CUT: Final[Mapping[str, Any]] = {"kill_at_estimate": True}
"""A machine that kills jobs at their estimates."""
UNCUT: Final = "run times as recorded"
"""What a table's title says of :data:`AS_RECORDED`."""


def known(value: float) -> float | None:
    """Return ``value``, or ``None`` where there is none, for a table that is stored."""
    return None if isnan(value) else float(value)


def found(runs: Runs, measure: str) -> Interval:
    """Return mean and interval of a measure over the seeds that have it; ``nan`` where none does."""
    values = runs.values(measure)
    there = values[~np.isnan(values)]
    return interval(there) if len(there) else Interval(float("nan"), float("nan"))


def shown(runs: Runs, measure: str, number: Callable[[float], str], scale: float = 1.0) -> str:
    """Write a measure, or a dash where there is none."""
    mean, half = found(runs, measure)
    return "-" if isnan(mean) else Interval(scale * mean, scale * half).shown(number)


def count(value: float) -> str:
    """Write a number of jobs, or its mean over seeds."""
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:.1f}"


def draw_line(axes: Axes, x: list[float], curve: list[Interval], **style: Any) -> None:
    """Draw means as a line, with a band for their 95 % intervals where there are any."""
    mean, half = np.array(curve).T
    axes.plot(x, mean, markersize=4, linewidth=1.5, **style)
    if not np.isnan(half).all():
        half = np.nan_to_num(half)  # what is not random ran once
        axes.fill_between(x, mean - half, mean + half, color=style["color"], alpha=0.15, linewidth=0)
