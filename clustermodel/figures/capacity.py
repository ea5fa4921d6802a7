"""The use of a machine's capacity by the accounts of the ledger: over time, and as bars of the points of an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.figures.curves_bars import level_of, shown_value
from clustermodel.figures.maps import varying
from clustermodel.figures.style import (
    BLACK,
    BLUE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    NotebookFigure,
    factor_label,
    legend_below,
    time_axis,
)
from clustermodel.measure.event_log import WORK, mean_of_steps, rates_in_matrix, rates_in_space
from clustermodel.measure.quantities import account_column
from clustermodel.recording.ledger import OVERHEADS, Account
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result
    from clustermodel.experiment.study_table import StudyTable


IDLE_WAITING: Final = "idle while jobs wait"
IDLE_EMPTY: Final = "idle, queue empty"
SHARES: Final = (
    WORK,
    *(account.value for account in OVERHEADS if account is not Account.IDLE),
    Account.DOWN.value,
    IDLE_WAITING,
    IDLE_EMPTY,
)
"""The uses of capacity, in the order in which the figure stacks them."""

_COLOURS: Final = {
    WORK: BLUE, Account.CONTEXT_SWITCH: ORANGE, Account.CHECKPOINT: PURPLE, Account.RESTART: VERMILLION,
    Account.BLOCKED: BLACK, Account.DOWN: YELLOW, IDLE_WAITING: "0.6", IDLE_EMPTY: "0.88",
}  # fmt: skip


def draw_capacity(axes: Axes, run: Result, bins: int) -> None:
    """Draw the shares of capacity over time, stacked; accounts without an amount are left out.

    Args:
        axes: where to draw; each account has a label for a legend, with its share of the whole run.
        run: what to draw.
        bins: number of equal time bins.

    Raises:
        SpecificationError: the run used time sharing and kept no history.
    """
    edges, shares = capacity_shares(run, bins)
    unit, name = time_axis(float(edges[-1]))
    below = np.zeros(bins)
    for account, share in zip(SHARES, shares, strict=True):
        if share.any():
            total = share.mean()
            label = f"{account} ({total:.2%})" if total >= 0.0001 else f"{account} (< 0.01%)"
            axes.stairs(below + share, edges / unit, baseline=below, fill=True, color=_COLOURS[account], label=label)
            below = below + share
    axes.set_xlabel(f"time since the first submission ({name})")
    axes.set_xlim(0, edges[-1] / unit)
    axes.set_ylabel("node time / capacity")
    axes.set_ylim(0, 1)


def capacity_shares(run: Result, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return how capacity is used in each of ``bins`` equal intervals.

    Where nodes are shared in time, the amount that an account of the ledger gains between two scheduling events is spread
    evenly over the time between them.

    Returns:
        The bounds of the intervals, seconds since the first submission, shape ``(bins + 1,)``, and shares of the machine,
        shape ``(len(SHARES), bins)``.

    Raises:
        SpecificationError: the run used time sharing and kept no history.
    """
    in_space = run.slices is None
    rates = rates_in_space(run.records, run.ledger) if in_space else rates_in_matrix(run.records, run.history, run.ledger)
    nodes = rates.nodes
    uses = {
        WORK: nodes[Account.USEFUL] + nodes[Account.LOST] if in_space else nodes[WORK],
        **nodes,
        IDLE_WAITING: rates.idle_waiting,
        IDLE_EMPTY: nodes[Account.IDLE] - rates.idle_waiting,
    }
    since = (rates.ticks - rates.ticks[0]) / TICKS_PER_SECOND
    edges = np.linspace(0.0, since[-1], bins + 1)
    return edges, np.array([mean_of_steps(since, uses[use], edges) for use in SHARES]) / run.machine.processors


ACCOUNT_COLOURS: Final = {
    "useful work": BLUE,
    "discarded work": SKY,
    Account.CONTEXT_SWITCH.value: ORANGE,
    Account.CHECKPOINT.value: PURPLE,
    Account.RESTART.value: VERMILLION,
    Account.BLOCKED.value: BLACK,
    Account.DOWN.value: YELLOW,
    IDLE_WAITING: "#999999",
    IDLE_EMPTY: "#dedede",
}
"""The uses of capacity in the order in which bars stack them, and their colours."""
_DOWN: Final = account_column(Account.DOWN, "share")
_IDLE: Final = account_column(Account.IDLE, "share")
_IDLE_WAITING: Final = account_column(Account.IDLE, "waiting_share")
_COLUMNS: Final = {
    "useful work": account_column(Account.USEFUL, "share"),
    "discarded work": account_column(Account.LOST, "share"),
    **{
        account.value: account_column(account, "share")
        for account in (Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART, Account.BLOCKED)
    },
}
SHARE_COLUMNS: Final = (*_COLUMNS.values(), _IDLE, _IDLE_WAITING)
"""The columns of a table that :func:`account_shares` reads; tables of machines whose nodes fail have ``down_share`` too."""


def account_shares(means: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of capacity of each use, which sum to 1 in each row; ``nan`` for runs without any length.

    Args:
        means: means of the columns :data:`SHARE_COLUMNS`, a row for each point.

    Returns:
        Columns :data:`ACCOUNT_COLOURS`, with the index of ``means``.
    """
    shares = {use: pd.to_numeric(means[column]) for use, column in _COLUMNS.items()}
    shares[Account.DOWN.value] = pd.to_numeric(means[_DOWN]) if _DOWN in means else 0.0 * shares["useful work"]
    idle, waiting = pd.to_numeric(means[_IDLE]), pd.to_numeric(means[_IDLE_WAITING])
    return pd.DataFrame({**shares, IDLE_WAITING: waiting, IDLE_EMPTY: (idle - waiting).clip(lower=0.0)})


def account_bars(table: StudyTable, *, by: str = "policy") -> Figure:
    """Return a figure of stacked bars: what the capacity was used for, a bar for each point, means over replications.

    Args:
        table: of an experiment.
        by: the factor whose levels are neighbouring bars.

    Raises:
        SpecificationError: the table has no rows, no accounts or no such factor.
    """
    if not len(table.frame):
        raise SpecificationError("table: it has no rows; there is nothing to draw")
    if by != "policy":
        table.levels(by)  # refuses what is no factor
    names = varying(table)
    others, inner = [name for name in names if name != by], [name for name in names if name == by]
    columns = (*SHARE_COLUMNS, _DOWN) if _DOWN in table.frame else SHARE_COLUMNS
    means = table.means(*columns, by=[*others, *inner])
    shares = account_shares(means)
    groups = [tuple(level_of(means[name].iloc[row]) for name in others) for row in range(len(means))]
    order = sorted(range(len(means)), key=lambda row: list(dict.fromkeys(groups)).index(groups[row]))
    new_group = np.array([at > 0 and groups[order[at]] != groups[order[at - 1]] for at in range(len(order))])
    places = np.arange(len(order)) + 0.6 * np.cumsum(new_group)
    figure = NotebookFigure(figsize=(8.2, 1.0 + 0.27 * (places[-1] + 1)))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    handles = draw_account_bars(axes, shares.iloc[order], places)
    labels = [", ".join(shown_value(means[name].iloc[row]) for name in [*others, *inner]) for row in order]
    axes.set_yticks(places, labels)
    axes.set_ylabel(", ".join(factor_label(name) for name in [*others, *inner]))
    legend_below(figure, handles)
    return figure


def draw_account_bars(axes: Axes, shares: pd.DataFrame, places: FloatArray) -> dict[str, BarContainer]:
    """Draw stacked horizontal bars of the uses of capacity, the first at the top.

    Args:
        axes: where to draw.
        shares: as :func:`account_shares` returns them, a bar for each row.
        places: of the bars, ascending, shape ``(rows,)``.

    Returns:
        The bars of each use that has any share, for a legend.
    """
    left, handles = np.zeros(len(shares)), {}
    for use, colour in ACCOUNT_COLOURS.items():
        widths = np.nan_to_num(shares[use].to_numpy(dtype=float))
        if widths.any():
            handles[use] = axes.barh(places, widths, 0.86, left=left, color=colour, edgecolor="white", linewidth=0.3)
            left += widths
    axes.set_ylim(-0.7, places[-1] + 0.7)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("node time / capacity")
    return handles
