"""The use of a machine's capacity over time, by the accounts of the ledger: the numbers, and their figure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.axes import Axes

from clustermodel.arrays import FloatArray
from clustermodel.figures.steps import time_axis
from clustermodel.figures.style import BLACK, BLUE, ORANGE, PURPLE, VERMILLION, YELLOW
from clustermodel.measure.event_log import EventLog, event_log
from clustermodel.recording.ledger import CHARGED, OVERHEADS, Account, Amount
from clustermodel.recording.matrix_history import Moment
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

WORK: Final = "work"
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

_Overheads = dict[Account, Amount]
_NOTHING: Final[_Overheads] = dict.fromkeys(CHARGED, Amount(0, 0))


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

    The amount that an account of the ledger gains between two scheduling events is spread evenly over the time between them.
    Work is the remainder, because the ledger charges work when a job completes.

    Returns:
        The bounds of the intervals, seconds since the first submission, shape ``(bins + 1,)``, and shares of the machine,
        shape ``(len(SHARES), bins)``.

    Raises:
        SpecificationError: the run used time sharing and kept no history.
    """
    overheads = _overheads_over_time(run)
    start, nodes = run.ledger.start, run.machine.processors
    amounts_at_events = []
    for ticks, amounts in overheads.items():
        parts = [sum(amounts[account]) for account in CHARGED if account is not Account.IDLE]
        idle = amounts[Account.IDLE]
        parts += [idle.job_waiting, idle.queue_empty]
        amounts_at_events.append([nodes * (ticks - start) - sum(parts), *parts])
    since = np.array([ticks - start for ticks in overheads], dtype=np.float64)
    edges = np.linspace(0.0, since[-1], bins + 1)
    charged = np.array(amounts_at_events, dtype=np.float64).T
    shares = np.array([np.diff(np.interp(edges, since, line)) for line in charged]) / (nodes * np.diff(edges))
    return edges / TICKS_PER_SECOND, shares


def _overheads_over_time(run: Result) -> dict[int, _Overheads]:
    """Return the ledger's accumulated overheads at each scheduling event, by ticks, ascending."""
    log, ledger = event_log(run.records, run.machine.processors), run.ledger
    if run.slices is None:
        return _idle_over_time(log)
    moments = run.history.moments
    # Before the first gang starts nothing runs and no moments are kept.
    opening = moments[0].ticks
    overheads = {ticks: amounts for ticks, amounts in _idle_over_time(log).items() if ticks <= opening}
    for before, moment in pairwise(moments):
        if not _is_unsettled(before, moment):
            overheads[moment.ticks] = moment.ledger
    overheads[ledger.end] = {account: ledger.amount(account) for account in CHARGED}
    return overheads


def _is_unsettled(before: Moment, moment: Moment) -> bool:
    """Return whether a timeout fired on an idle machine with an empty queue, so the idle time before it is not yet charged."""
    return not before.rotation and moment.ledger == before.ledger


def _idle_over_time(log: EventLog) -> dict[int, _Overheads]:
    """Return the accumulated idle time at each event of a log, by ticks, ascending."""
    empty, waiting, down = 0, 0, 0
    overheads = {int(log.ticks[0]): _NOTHING}
    lengths = np.diff(log.ticks)
    states = zip(log.ticks[1:], lengths, log.empty[:-1], log.waiting[:-1], log.down[:-1], strict=True)
    for ticks, length, idle, queue, failed in states:
        down += int(length) * int(failed)
        amount = int(length) * int(idle)
        if queue:
            waiting += amount
        else:
            empty += amount
        overheads[int(ticks)] = {**_NOTHING, Account.IDLE: Amount(empty, waiting), Account.DOWN: Amount(down, 0)}
    return overheads
