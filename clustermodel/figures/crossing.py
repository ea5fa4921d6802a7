"""The paired difference of two policies along a factor, with the interval in which it crosses zero."""

from __future__ import annotations

from math import inf, isfinite, isnan
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from clustermodel.figures.labels import axis_label, factor_label
from clustermodel.figures.notebook_figure import NotebookFigure
from clustermodel.figures.style import BLUE, ORANGE, legend_below, plain


def difference_curve(
    differences: pd.DataFrame,
    crossing: tuple[float, float, float],
    *,
    along: str,
    measure: str,
    policies: tuple[str, ...],
) -> Figure:
    """Return a figure of a paired difference along a factor, with its confidence band, and the crossing with its interval.

    Args:
        differences: columns ``difference`` and ``half``, by the values of the factor.
        crossing: the crossing and the ends of its interval, which may be infinite; ``nan`` without a crossing.
        along: the factor.
        measure: the column that is compared.
        policies: the two policies; the difference is that of the first minus that of the second.
    """
    figure = NotebookFigure(figsize=(6.4, 3.8))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    values = differences.index.to_numpy(dtype=float)
    mean, half = (differences[name].to_numpy(dtype=float) for name in ("difference", "half"))
    (line,) = axes.plot(values, mean, color=BLUE, marker="o", markersize=4, linewidth=1.4)
    band = axes.fill_between(values, mean - half, mean + half, color=BLUE, alpha=0.15, linewidth=0)
    handles: dict[str, Any] = {"mean difference with its interval": (band, line)}
    axes.axhline(0, color="0.4", linewidth=0.8)
    at, low, high = crossing
    if not isnan(at):
        start, end = axes.get_xlim()
        ends = start if low == -inf else low, end if high == inf else high
        span = axes.axvspan(*ends, color=ORANGE, alpha=0.25, linewidth=0)
        text = f"crossing {at:.4g}" + (f", interval {low:.4g} to {high:.4g}" if isfinite(low) and isfinite(high) else "")
        handles[text] = (span, axes.axvline(at, color=ORANGE, linewidth=1.6, linestyle="--"))
        axes.set_xlim(start, end)
    axes.set_xlabel(factor_label(along))
    axes.set_ylabel(f"{axis_label(measure)}\n{plain(policies[0])} - {plain(policies[1])}")
    axes.grid(alpha=0.25, linewidth=0.5)
    legend_below(figure, handles)
    return figure
