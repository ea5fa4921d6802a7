"""Capacity by account: the mean shares of the ledger's accounts at each point of an experiment, and their figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.figures.capacity import IDLE_EMPTY, IDLE_WAITING
from clustermodel.figures.drawn_table import varying
from clustermodel.figures.labels import factor_label
from clustermodel.figures.notebook_figure import NotebookFigure
from clustermodel.figures.run_tables import level_of, shown_value
from clustermodel.figures.style import BLACK, BLUE, ORANGE, PURPLE, SKY, VERMILLION, YELLOW, legend_below
from clustermodel.measure.quantities import account_column
from clustermodel.recording.ledger import Account

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable

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
SHARES: Final = (*_COLUMNS.values(), _IDLE, _IDLE_WAITING)
"""The columns of a table that :func:`account_shares` reads; tables of machines whose nodes fail have ``down_share`` too."""


def account_shares(means: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of capacity of each use, which sum to 1 in each row; ``nan`` for runs without any length.

    Args:
        means: means of the columns :data:`SHARES`, a row for each point.

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
    columns = (*SHARES, _DOWN) if _DOWN in table.frame else SHARES
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
