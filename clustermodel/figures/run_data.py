"""What the pictures of a run show, as numbers: the row that runs, the slices of a while, where capacity has gone by when.

Nothing is drawn here; :mod:`clustermodel.figures.single_run` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.measure.event_log import EventLog, event_log
from clustermodel.recording.ledger import OVERHEADS, Account, Amount
from clustermodel.recording.matrix_history import Cell, History, Moment
from clustermodel.schedule.node_set import from_mask
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.experiment.scenario import Result

FloatArray = npt.NDArray[np.float64]


class Slice(NamedTuple):
    """A time slice: one row of the Ousterhout matrix runs."""

    begin: int
    """Ticks."""
    end: int
    """Ticks: a quantum later, or earlier if a scheduling event cuts the slice short."""
    row: int
    gangs: tuple[Cell, ...]
    at_event: bool
    """Whether it begins with a scheduling event."""


def runs_of(cell: Cell) -> list[tuple[int, int]]:
    """Return the runs of neighbouring nodes of a gang, as (lowest, how many)."""
    bounds = from_mask(cell.columns)
    return [(low, high - low) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]


def running_row(history: History, ticks: int) -> int | None:
    """Return the row that runs at a time, ticks, the one that begins if it is a boundary; ``None`` if nothing runs."""
    moment = history.at(ticks)
    if not moment.rotation or ticks < moment.ticks:
        return None
    return moment.rotation[(ticks - moment.ticks) // history.quantum % len(moment.rotation)]


def waiting_at(result: Result, ticks: int) -> int:
    """Return how many jobs wait from a time on, ticks, that lies in the run."""
    log = event_log(result.records, result.machine.nodes)
    return int(log.waiting[np.searchsorted(log.ticks, ticks, side="right") - 1])


def slices_between(history: History, first: int, last: int, end: int) -> Iterator[Slice]:
    """Go through the slices in which something runs, in order.

    Args:
        history: the states of the matrix.
        first: slices that end by then are left out, ticks.
        last: slices that begin then or later are left out, ticks.
        end: when the run ends, ticks.
    """
    moments, quantum = history.moments, history.quantum
    ends = [moment.ticks for moment in moments[1:]] + [end]
    for moment, stop in zip(moments, ends, strict=True):
        if moment.ticks >= last:
            return
        rotation = moment.rotation
        number = max(first - moment.ticks, 0) // quantum
        begin = moment.ticks + number * quantum
        while rotation and begin < min(stop, last) and first < stop:
            row = rotation[number % len(rotation)]
            yield Slice(begin, min(begin + quantum, stop), row, moment.rows[row], at_event=not number)
            number, begin = number + 1, begin + quantum


# Where capacity has gone.

WORK: Final = "work"
IDLE_WAITING: Final = "idle while jobs wait"
IDLE_EMPTY: Final = "idle, queue empty"
SHARES: Final = (
    WORK,
    *(account.value for account in OVERHEADS if account is not Account.IDLE),
    IDLE_WAITING,
    IDLE_EMPTY,
)
"""What capacity is divided into, in the order in which it is stacked."""

_Overheads = dict[Account, Amount]
_NOTHING: Final[_Overheads] = dict.fromkeys(OVERHEADS, Amount(0, 0))


def capacity_shares(result: Result, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return where capacity goes in each of ``bins`` equal intervals.

    What an account of the ledger gains between two scheduling events is spread evenly over the time between them.  Work is
    the rest, because the ledger charges it when jobs end.

    Returns:
        The bounds of the intervals, seconds since the first submission, shape ``(bins + 1,)``, and shares of the machine,
        shape ``(len(SHARES), bins)``.

    Raises:
        SpecificationError: nodes are shared in time, and no history was kept.
    """
    books = _books_in_time(result)
    start, nodes = result.ledger.start, result.machine.nodes
    rows = []
    for ticks, amounts in books.items():
        parts = [sum(amounts[account]) for account in OVERHEADS if account is not Account.IDLE]
        idle = amounts[Account.IDLE]
        parts += [idle.job_waiting, idle.queue_empty]
        rows.append([nodes * (ticks - start) - sum(parts), *parts])
    since = np.array([ticks - start for ticks in books], dtype=np.float64)
    edges = np.linspace(0.0, since[-1], bins + 1)
    charged = np.array(rows, dtype=np.float64).T
    shares = np.array([np.diff(np.interp(edges, since, line)) for line in charged]) / (nodes * np.diff(edges))
    return edges / TICKS_PER_SECOND, shares


def _books_in_time(result: Result) -> dict[int, _Overheads]:
    """Return what the ledger's overheads have come to by each scheduling event, by ticks, ascending."""
    log, ledger = event_log(result.records, result.machine.nodes), result.ledger
    if result.slices is None:
        return _idle_in_time(log)
    moments = result.history.moments
    # Before the first gang starts nothing runs and no moments are kept.
    opening = moments[0].ticks
    books = {ticks: amounts for ticks, amounts in _idle_in_time(log).items() if ticks <= opening}
    for before, moment in pairwise(moments):
        if not _is_unsettled(before, moment):
            books[moment.ticks] = moment.ledger
    books[ledger.end] = {account: ledger.amount(account) for account in OVERHEADS}
    return books


def _is_unsettled(before: Moment, moment: Moment) -> bool:
    """Tell whether an alarm rang while nothing ran or waited, and the idle time since then is not charged yet."""
    return not before.rotation and moment.ledger == before.ledger


def _idle_in_time(log: EventLog) -> dict[int, _Overheads]:
    empty, waiting = 0, 0
    books = {int(log.ticks[0]): _NOTHING}
    lengths = np.diff(log.ticks)
    for ticks, length, idle, queue in zip(log.ticks[1:], lengths, log.empty[:-1], log.waiting[:-1], strict=True):
        amount = int(length) * int(idle)
        if queue:
            waiting += amount
        else:
            empty += amount
        books[int(ticks)] = {**_NOTHING, Account.IDLE: Amount(empty, waiting)}
    return books
