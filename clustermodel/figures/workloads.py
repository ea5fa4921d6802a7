"""Figures of workloads: distributions of job sizes and of work, and the share of their estimates that jobs use."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from clustermodel.errors import SpecificationError
from clustermodel.figures.style import legend_labels, new_figure, policy_styles
from clustermodel.validation import require_number, require_whole
from clustermodel.workload.table import Workload


def distributions(workloads: Sequence[Workload]) -> Figure:
    """Return a figure of jobs and their CPU time, run time x nodes, by job size (Zhang et al. 2003, figures 2 and 3).

    Left: jobs of each size.  Right: jobs of at most that size, as a share of all.
    """
    shown = _checked(workloads)
    figure, panels = new_figure(10, 6.4, 2, 2, sharex=True)
    for workload, colour, label in shown:
        nodes = workload.column("nodes")
        sizes, of_size = np.unique(nodes, return_inverse=True)
        for (left, right), weights in zip(panels, (np.ones(len(nodes)), nodes * workload.seconds("run") / 3600), strict=True):
            amount = np.bincount(of_size, weights)
            left.vlines(sizes, 0, amount, color=colour, linewidth=1.2, alpha=0.8, label=label)
            right.step(sizes, 100 * amount.cumsum() / amount.sum(), where="post", color=colour, label=label)
    for (left, right), what, unit in zip(panels, ("jobs", "CPU time"), ("", " (node-hours)"), strict=True):
        left.set(ylabel=f"{what} of jobs of this size{unit}" if unit else "jobs of this size")
        left.set_ylim(bottom=0)
        right.set(ylabel=f"{what} of at most this size (%)", ylim=(0, 102))
    for axes in panels.flat:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.25, linewidth=0.5)
    for axes in panels[1]:
        axes.set_xlabel("job size (nodes)")
    figure.legend(*panels[0, 1].get_legend_handles_labels(), loc="outside right upper")
    return figure


def estimates_used(workloads: Sequence[Workload], *, phi: float | None = None, bins: int = 20) -> Figure:
    """Return a figure of the share of their estimates that jobs use (Zhang et al. 2003, section 2.1 and figure 1).

    The last of ``bins`` equal intervals of the share includes jobs that exceed their estimates.  With ``phi`` in [0, 1] it also
    shows the expectation of the phi model of Zhang et al. 2003: a fraction ``phi`` of the jobs use all of their estimates, and
    the shares of the others are uniform.
    """
    shown = _checked(workloads)
    bins = require_whole("bins", bins, at_least=1)
    if phi is not None:
        require_number("phi", phi, "a number in [0, 1]", lambda share: 0 <= share <= 1)
    figure, axes = new_figure(7, 3.6)
    edges = np.linspace(0, 100, bins + 1)
    for workload, colour, label in shown:
        used = 100 * np.minimum(workload.seconds("run") / workload.seconds("estimate"), 1)
        counts = np.histogram(used, edges)[0]
        axes.stairs(100 * counts / len(used), edges, color=colour, label=label, linewidth=1.4)
    if phi is not None:
        expected = np.full(bins, 100 * (1 - phi) / bins)
        expected[-1] += 100 * phi
        axes.stairs(expected, edges, color="0.4", linestyle=":", label=f"phi model, phi = {phi:g}", linewidth=1.4)
    axes.set(xlabel="run time / estimate (%)", ylabel=f"jobs (% in each {100 / bins:g} %)", xlim=(0, 100))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25, linewidth=0.5)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


def _checked(workloads: Sequence[Workload]) -> list[tuple[Workload, str, str]]:
    """Return workloads with their colours and labels."""
    if isinstance(workloads, Workload):
        raise SpecificationError("workloads: a single workload is not allowed; it must be a list of workloads")
    if not workloads:
        raise SpecificationError("workloads: none is given; there is nothing to draw")
    labels = legend_labels([workload.name for workload in workloads])
    styles = policy_styles([str(place) for place in range(len(workloads))]).values()
    return [(workload, style.colour, label) for workload, style, label in zip(workloads, styles, labels, strict=True)]
