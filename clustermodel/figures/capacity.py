"""The use of a machine's capacity by the accounts of the ledger: over time, and as bars of runs and of a study's points."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError
from clustermodel.figures import curves_bars, maps, style
from clustermodel.measure.quantities import account_column
from clustermodel.measure.timeline import WORK, mean_of_steps, rates_in_matrix, rates_in_space
from clustermodel.recording.ledger import WHILE_HELD, Account
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result
    from clustermodel.experiment.study_table import StudyTable

USEFUL_WORK: Final = "useful work"
DISCARDED_WORK: Final = "discarded work"
IDLE_WAITING: Final = "idle while jobs wait"
IDLE_EMPTY: Final = "idle, queue empty"
_OWN: Final = {
    Account.CONTEXT_SWITCH: style.ORANGE, Account.CHECKPOINT: style.PURPLE, Account.RESTART: style.VERMILLION,
    Account.BLOCKED: style.BLACK,
}  # fmt: skip
_OTHERS: Final = cycle(("#8c564b", "#bcbd22", "#7f5fa8", "#c49c94", "#17becf", "#98df8a", "#e377c2"))
_BESIDE_WORK: Final = {
    **{account: _OWN.get(account) or next(_OTHERS) for account in WHILE_HELD},
    Account.DOWN: style.YELLOW, Account.RESERVED: style.GREEN, Account.OFF: "#f2efe9",
}  # fmt: skip
_COLOURS: Final = {
    **{account.value: colour for account, colour in _BESIDE_WORK.items()}, IDLE_WAITING: "#999999", IDLE_EMPTY: "#dedede",
}  # fmt: skip
SHARES: Final = {WORK: style.BLUE, **_COLOURS}  # the uses of capacity over time, in the order of stacking
ACCOUNT_COLOURS: Final = {USEFUL_WORK: style.BLUE, DISCARDED_WORK: style.SKY, **_COLOURS}  # those of whole runs
_COLUMNS: Final = {
    USEFUL_WORK: account_column(Account.USEFUL, "share"), DISCARDED_WORK: account_column(Account.LOST, "share"),
    **{account.value: account_column(account, "share") for account in _BESIDE_WORK},
    IDLE_WAITING: account_column(Account.IDLE, "waiting_share"), IDLE_EMPTY: account_column(Account.IDLE, "share"),
}  # fmt: skip
SHARE_COLUMNS: Final = tuple(_COLUMNS.values())
"""The columns of a table that :func:`account_shares` reads; those of accounts that a run does not have may lack."""


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


def account_shares(means: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of each use of ``ACCOUNT_COLOURS``, which sum to 1, from means of ``SHARE_COLUMNS``."""
    useful = pd.to_numeric(means[_COLUMNS[USEFUL_WORK]])
    shares = {use: pd.to_numeric(means[column]) if column in means else 0.0 * useful for use, column in _COLUMNS.items()}
    shares[IDLE_EMPTY] = (shares[IDLE_EMPTY] - shares[IDLE_WAITING]).clip(lower=0.0)
    return pd.DataFrame(shares)


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


def account_rows(table: StudyTable, by: str | None) -> tuple[pd.DataFrame, pd.DataFrame, IntArray]:
    """Return the levels of each point of a study, the means of :func:`account_shares`, and a number of what it is beside.

    Points that differ in the factor ``by`` only follow each other, and have the same number.
    """
    names = sorted(maps.varying(table), key=lambda name: name == by)
    means = table.means(*(column for column in SHARE_COLUMNS if column in table.frame), by=names)
    others = [tuple(map(curves_bars.level_of, row)) for row in means[[name for name in names if name != by]].to_numpy(object)]
    numbers = pd.factorize(pd.Series(others, dtype=object))[0]
    order = np.argsort(numbers, kind="stable")
    return means[names].iloc[order], account_shares(means.iloc[order]), np.sort(numbers)


def account_bars(table: StudyTable, *, by: str = "policy") -> Figure:
    """Return a figure of stacked bars: what the capacity was used for, a bar for each point, means over replications."""
    if not len(table.frame):
        raise SpecificationError("table: it has no rows; there is nothing to draw")
    if by != "policy":
        table.levels(by)  # refuses what is no factor
    levels, shares, numbers = account_rows(table, by)
    places = np.arange(len(levels)) + 0.6 * numbers
    figure, axes = style.new_figure(8.2, 1.0 + 0.27 * (places[-1] + 1))
    handles = draw_account_bars(axes, shares, places)
    axes.set_yticks(places, [", ".join(map(curves_bars.shown_value, row)) for row in levels.to_numpy(object)])
    axes.set_ylabel(", ".join(map(style.factor_label, map(str, levels))))
    style.legend_below(figure, handles)
    return figure
