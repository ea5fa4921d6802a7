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
from clustermodel.figures import style
from clustermodel.figures.curves_bars import level_of, shown_value
from clustermodel.figures.maps import varying
from clustermodel.formatting import time_unit
from clustermodel.measure.event_log import WORK, mean_of_steps, rates_in_matrix, rates_in_space
from clustermodel.measure.quantities import account_column
from clustermodel.recording.ledger import Account
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result
    from clustermodel.experiment.study_table import StudyTable

IDLE_WAITING: Final = "idle while jobs wait"
IDLE_EMPTY: Final = "idle, queue empty"
_OVERHEADS: Final = {
    Account.CONTEXT_SWITCH: style.ORANGE, Account.CHECKPOINT: style.PURPLE, Account.RESTART: style.VERMILLION,
    Account.BLOCKED: style.BLACK,
}  # fmt: skip
_COLOURS: Final = {
    **{account.value: colour for account, colour in _OVERHEADS.items()},
    Account.DOWN.value: style.YELLOW,
    IDLE_WAITING: "#999999",
    IDLE_EMPTY: "#dedede",
}
SHARES: Final = {WORK: style.BLUE, **_COLOURS}
"""The uses of capacity over time and their colours, in the order in which they are stacked."""
ACCOUNT_COLOURS: Final = {"useful work": style.BLUE, "discarded work": style.SKY, **_COLOURS}
"""The uses of capacity by whole runs, also in the order of stacking."""


def draw_capacity(axes: Axes, run: Result, bins: int) -> None:
    """Draw the shares of capacity over time, stacked; each account with an amount has a label with its share of the run."""
    edges, shares = capacity_shares(run, bins)
    _, name, unit = time_unit(float(edges[-1]))
    below = np.zeros(bins)
    for (account, colour), share in zip(SHARES.items(), shares, strict=True):
        if share.any():
            total = share.mean()
            label = f"{account} ({total:.2%})" if total >= 0.0001 else f"{account} (< 0.01%)"
            axes.stairs(below + share, edges / unit, baseline=below, fill=True, color=colour, label=label)
            below = below + share
    axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit))
    axes.set(ylabel="node time / capacity", ylim=(0, 1))


def capacity_shares(run: Result, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of equal intervals, seconds, shape ``(bins + 1,)``, and how they are used, ``(len(SHARES), bins)``."""
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


_DOWN: Final = account_column(Account.DOWN, "share")
_IDLE: Final = account_column(Account.IDLE, "share")
_IDLE_WAITING: Final = account_column(Account.IDLE, "waiting_share")
_WORK: Final = {Account.USEFUL: "useful work", Account.LOST: "discarded work"}
_COLUMNS: Final = {_WORK.get(account, account.value): account_column(account, "share") for account in (*_WORK, *_OVERHEADS)}
SHARE_COLUMNS: Final = (*_COLUMNS.values(), _IDLE, _IDLE_WAITING)
"""The columns of a table that :func:`account_shares` reads; tables of machines whose nodes fail have ``down_share`` too."""


def account_shares(means: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of each use of :data:`ACCOUNT_COLOURS`, which sum to 1, from means of :data:`SHARE_COLUMNS`."""
    shares = {use: pd.to_numeric(means[column]) for use, column in _COLUMNS.items()}
    shares[Account.DOWN.value] = pd.to_numeric(means[_DOWN]) if _DOWN in means else 0.0 * shares["useful work"]
    idle, waiting = pd.to_numeric(means[_IDLE]), pd.to_numeric(means[_IDLE_WAITING])
    return pd.DataFrame({**shares, IDLE_WAITING: waiting, IDLE_EMPTY: (idle - waiting).clip(lower=0.0)})


def account_bars(table: StudyTable, *, by: str = "policy") -> Figure:
    """Return a figure of stacked bars: what the capacity was used for, a bar for each point, means over replications.

    Levels of the factor ``by`` are neighbouring bars.

    Raises:
        SpecificationError: the table has no rows, no accounts or no such factor.
    """
    if not len(table.frame):
        raise SpecificationError("table: it has no rows; there is nothing to draw")
    if by != "policy":
        table.levels(by)  # refuses what is no factor
    names = sorted(varying(table), key=lambda name: name == by)
    others = [name for name in names if name != by]
    means = table.means(*SHARE_COLUMNS, *([_DOWN] if _DOWN in table.frame else []), by=names)
    groups = [tuple(map(level_of, row)) for row in means[others].to_numpy(dtype=object)]
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    order = np.argsort([numbers[group] for group in groups], kind="stable")
    means = means.iloc[order]
    places = np.arange(len(means)) + 0.6 * np.array([numbers[groups[row]] for row in order])
    figure, axes = style.new_figure(8.2, 1.0 + 0.27 * (places[-1] + 1))
    handles = draw_account_bars(axes, account_shares(means), places)
    axes.set_yticks(places, [", ".join(map(shown_value, row)) for row in means[names].to_numpy(dtype=object)])
    axes.set_ylabel(", ".join(map(style.factor_label, names)))
    style.legend_below(figure, handles)
    return figure


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
