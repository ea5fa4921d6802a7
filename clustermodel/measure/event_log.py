"""What happened over time: the event log, shares of limited resources, use of rows, and the ledger's accounts.

The event log is for the formulas of ``clustermodel.theory``.  It is rebuilt from the job records alone and shares only their
times with the capacity ledger, so that a comparison of the two is a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import nan
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.machine import CheckpointStore, Machine
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import CHARGED, Account, Amount, Ledger
from clustermodel.recording.matrix_history import History, LoggedRotation, SliceLog
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND


class EventLog(NamedTuple):
    """The state after each event, arrays of shape ``(events,)``."""

    ticks: IntArray  # times of submissions, starts, ends, failures and repairs, ascending
    empty: IntArray | FloatArray  # e: idle nodes from then on; the mean over the slices where nodes are shared in time
    waiting: IntArray  # number of jobs waiting from then on; delta of Zhang et al. 2003 is 1 if there are any
    held_up: IntArray  # nodes of gangs that are checkpointed, restarted or suspended from then on; 0 with time sharing
    down: IntArray  # nodes that are down from then on; they are not idle

    @property
    def time_s(self) -> FloatArray:
        """psi: times of the events in seconds after the first submission (t = 0 in Zhang et al. 2003)."""
        seconds: FloatArray = (self.ticks - self.ticks[:1]) / TICKS_PER_SECOND
        return seconds


def event_log(records: JobRecords, nodes: int) -> EventLog:
    """Return the event log of a run on a machine of ``nodes``; rejected jobs do not appear.

    Checkpoints, restarts and context switches of preempted gangs begin and end with events too.
    """
    accepted = records.column("ended_as") != Status.REJECTED
    runs, stopped, overheads, outages = records.runs, records.stopped_runs, records.overheads, records.outages
    ended = runs.end != UNKNOWN
    submitted = records.column("submit")[accepted]
    busy: _Changes = [(runs.start, runs.nodes), (runs.end[ended], -runs.nodes[ended])]
    waiting: _Changes = [(submitted, 1), (runs.start, -1), (stopped.end, 1)]
    held_up: _Changes = [(overheads.start, overheads.nodes), (overheads.end, -overheads.nodes)]
    down: _Changes = []
    if len(outages.node) and len(submitted):  # a node that fails before the first submission is down from then on
        first, last = submitted[0], runs.end.max(initial=submitted[-1])
        start, end = np.maximum(outages.start, first), np.where(outages.end == UNKNOWN, last, outages.end)
        during = (start < last) & (end > first)
        down = [(start[during], 1), (np.minimum(end[during], last), -1)]
    ticks = np.unique(np.concatenate([times for times, _ in (*busy, *waiting, *held_up, *down)]))
    out_of_service = _steps(ticks, down)
    return EventLog(
        ticks, nodes - _steps(ticks, busy) - out_of_service, _steps(ticks, waiting), _steps(ticks, held_up), out_of_service
    )


_Changes = list[tuple[IntArray, IntArray | int]]
"""When a number changes, and by how much."""


def _steps(ticks: IntArray, changes: _Changes) -> IntArray:
    """Return a number that is 0 at first from each of ``ticks`` on; all its changes are at one of them."""
    steps = np.zeros(len(ticks), dtype=np.int64)
    for times, change in changes:
        np.add.at(steps, np.searchsorted(ticks, times), change)
    return np.cumsum(steps)


def sliced_event_log(records: JobRecords, slices: SliceLog, nodes: int, quantum: int) -> EventLog:
    """Return the event log of a run in which nodes were shared in time, in slices of ``quantum`` ticks."""
    log = event_log(records, nodes)
    rotations = list(slices)
    if not rotations:
        return log
    lengths = np.array([rotation.length for rotation in rotations])
    empty = np.array([_mean_empty(rotation, quantum) for rotation in rotations] + [float(rotations[-1].up)])
    ticks = np.concatenate([[0], np.cumsum(lengths)]) + (log.ticks[-1] - lengths.sum())
    before = log.ticks[log.ticks < ticks[0]]
    known = np.searchsorted(log.ticks, ticks, side="right") - 1
    # Nothing ran before the first start.
    return EventLog(
        np.concatenate([before, ticks]),
        np.concatenate([nodes - log.down[: len(before)].astype(float), empty]),
        np.concatenate([log.waiting[: len(before)], log.waiting[known]]),
        np.zeros(len(before) + len(ticks), dtype=np.int64),
        np.concatenate([log.down[: len(before)], log.down[known]]),
    )


def idle_before(records: JobRecords, slices: SliceLog, nodes: int) -> list[LoggedRotation]:
    """Return the time before the first start of a run in which nodes were shared in time: jobs may wait for repairs."""
    log = event_log(records, nodes)
    begins = int(log.ticks[-1]) - sum(rotation.length for rotation in slices)
    ticks = [*log.ticks[log.ticks < begins].tolist(), begins]
    states = zip(log.waiting.tolist(), log.empty.tolist(), strict=True)
    return [
        LoggedRotation(end - start, waiting > 0, (), (), 0, empty)
        for (start, end), (waiting, empty) in zip(pairwise(ticks), states, strict=False)
    ]


def _mean_empty(rotation: LoggedRotation, quantum: int) -> float:
    busy = sum(nodes * time for nodes, time in zip(rotation.held, _row_times(rotation, quantum), strict=True))
    return rotation.up - busy / rotation.length if rotation.held else float(rotation.up)


def _row_times(rotation: LoggedRotation, quantum: int) -> list[int]:
    """Return for how many ticks each row ran."""
    rows = len(rotation.held)
    laps, rest = divmod(rotation.begun + rotation.length, max(rows, 1) * quantum)
    times = [laps * quantum + min(max(rest - place * quantum, 0), quantum) for place in range(rows)]
    return [times[0] - rotation.begun, *times[1:]] if rows else []


_TRANSFERS: Final = [list(Account).index(account) for account in (Account.CHECKPOINT, Account.RESTART)]
SHARE_OF: Final = {"node_memory_gib": "memory_share", "checkpointing": "store_share"}
"""Columns of shares, by the field of :class:`~clustermodel.machine.Machine` that limits what is shared."""


def shares_over_time(records: JobRecords, machine: Machine, ticks: IntArray) -> dict[str, FloatArray]:
    """Return the shares in use of the resources that are limited from each of ``ticks``, all scheduling events, on."""
    shares = {}
    if machine.node_memory is not None:
        shares[SHARE_OF["node_memory_gib"]] = memory_share(records, machine.nodes * machine.node_memory, ticks)
    store = machine.checkpointing.store
    if store is not None and store.bandwidth is not None:
        shares[SHARE_OF["checkpointing"]] = _store_share(records, store, store.bandwidth, ticks)
    return shares


def memory_share(records: JobRecords, memory: int, ticks: IntArray) -> FloatArray:
    """Return the share of the memory that running and suspended jobs have from each event until the next, shape ``(events,)``.

    It is the mean where it changes in between: where nodes are shared in time, a gang that is restored on other nodes leaves
    its memory on the old ones between two events.
    """
    log = records.memory_in_use
    known = np.append(0, log.kib)  # nothing is in use before the first change
    share: FloatArray = known[np.searchsorted(log.ticks, ticks, side="right")] / memory
    between = np.flatnonzero(~np.isin(log.ticks, ticks))
    for tick, change in zip(log.ticks[between].tolist(), np.diff(known)[between].tolist(), strict=True):
        event = int(np.searchsorted(ticks, tick)) - 1
        if 0 <= event < len(ticks) - 1:
            share[event] += change / memory * float((ticks[event + 1] - tick) / (ticks[event + 1] - ticks[event]))
    return share


def _store_share(records: JobRecords, store: CheckpointStore, bandwidth: int, ticks: IntArray) -> FloatArray:
    """Return the share of the store's bandwidth that transfers use from each event on, shape ``(events,)``.

    The records say which gangs hold their nodes for a transfer, and so how many tasks are written or read at a time.  They use
    all of the bandwidth, unless the bandwidth of their nodes is less.
    """
    overheads = records.overheads
    moving = np.isin(overheads.account, _TRANSFERS)
    tasks = overheads.nodes[moving]
    if store.max_concurrent_tasks is not None:
        tasks = np.minimum(tasks, store.max_concurrent_tasks)
    at_the_store = _steps(ticks, [(overheads.start[moving], tasks), (overheads.end[moving], -tasks)])
    if store.node_bandwidth is None:
        return (at_the_store > 0).astype(np.float64)
    share: FloatArray = np.minimum(at_the_store * (store.node_bandwidth / bandwidth), 1.0)
    return share


class RowUse(NamedTuple):
    """How the rows of the Ousterhout matrix were used in a run."""

    mean_rows: float  # in use, over the time in which a gang is in the matrix; ``nan`` if none ever is
    idle_beside_stopped: Amount
    """Node-ticks of nodes that are idle in the running row while gangs of other rows are stopped; part of the idle account.

    Such nodes count as lost capacity only while a job waits (Zhang et al. 2003, eq. (3)).  Time sharing leaves few jobs
    waiting, so most of this idle time is outside of kappa, though it slows gangs down: a gang that has a row of several to
    itself runs no faster than one that shares its row.
    """


def switch_count(rotations: Iterable[LoggedRotation], quantum: int, switch: int) -> tuple[int, int]:
    """Return how many context switches there were, by node, and how many the next event cut short, which then started over.

    The rotations are of a run whose events end the running slice; times in ticks.
    """
    begun = cut = 0
    for rotation in rotations:
        rows = len(rotation.held)
        if not rows:
            continue
        full, rest = divmod(rotation.length, quantum)
        slices = full + (rest > 0)
        for place, (first, later) in enumerate(rotation.switching[:slices]):
            begun += first + (-(-(slices - place) // rows) - 1) * later
        if 0 < rest < switch:
            cut += rotation.switching[full % rows][full >= rows]
    return begun, cut


def row_use(rotations: Iterable[LoggedRotation], quantum: int) -> RowUse:
    """Return how the rows were used; the length of a time slice is in ticks."""
    used = in_rows = 0
    idle = {False: 0, True: 0}
    for rotation in rotations:
        rows = len(rotation.held)
        used += rotation.length if rows else 0
        in_rows += rows * rotation.length
        if rows > 1:
            times = _row_times(rotation, quantum)
            idle[rotation.waiting] += sum(
                (rotation.up - nodes) * time for nodes, time in zip(rotation.held, times, strict=True)
            )
    return RowUse(in_rows / used if used else nan, Amount(queue_empty=idle[False], job_waiting=idle[True]))


WORK: Final = "work"
"""Useful and lost work together: where nodes are shared in time, which work is lost is known when a run attempt ends."""


class AccountRates(NamedTuple):
    """Nodes by account over time; arrays of shape ``(times,)``."""

    ticks: IntArray  # when the values hold from, ascending, the end of the run last
    nodes: dict[str, IntArray | FloatArray]  # by account, from then on; 0 at the end
    idle_waiting: IntArray | FloatArray  # those of the idle nodes that were idle while a job waited


def rates_in_space(records: JobRecords, ledger: Ledger) -> AccountRates:
    """Return the accounts over time of a run on dedicated nodes, exactly.

    Work that is discarded later is *lost* while it is executed.
    """
    runs, held = records.runs, records.overheads
    ended = runs.end != UNKNOWN
    lost = list(_lost_intervals(records))
    begins, ends, widths = np.array(lost, dtype=np.int64).reshape(-1, 3).T
    outages = records.outages
    fails = outages.start.clip(ledger.start, ledger.end)
    repaired = np.where(outages.end == UNKNOWN, ledger.end, outages.end).clip(ledger.start, ledger.end)
    changes = [  # when each begins and ends, nodes, account
        (runs.start[ended], runs.end[ended], runs.nodes[ended], Account.USEFUL, Account.IDLE),
        (begins, ends, widths, Account.LOST, Account.USEFUL),
        (fails, repaired, np.ones_like(fails), Account.DOWN, Account.IDLE),
        *(
            (held.start[of], held.end[of], held.nodes[of], account, Account.USEFUL)
            for position, account in enumerate(Account)
            if (of := held.account == position).any()
        ),
    ]
    log = event_log(records, ledger.nodes)
    bounds = np.array([ledger.start, ledger.end])
    ticks = np.unique(np.concatenate([bounds, log.ticks, *(times for begin, end, *_ in changes for times in (begin, end))]))
    steps: dict[Account, _Changes] = {account: [] for account in Account}
    steps[Account.IDLE] = [(bounds[:1], ledger.nodes), (bounds[1:], -ledger.nodes)]
    for begin, end, width, account, instead_of in changes:
        steps[account] += [(begin, width), (end, -width)]
        steps[instead_of] += [(begin, -width), (end, width)]
    held_by: dict[str, IntArray | FloatArray] = {account.value: _steps(ticks, steps[account]) for account in Account}
    waiting = np.append(log.waiting, 0)[np.searchsorted(log.ticks, ticks, side="right") - 1] > 0
    return AccountRates(ticks, held_by, np.where(waiting, held_by[Account.IDLE.value], 0))


def _lost_intervals(records: JobRecords) -> Iterator[tuple[int, int, int]]:
    """Yield when work was executed that was discarded later: begin, end (ticks) and nodes."""
    runs, held = records.runs, records.overheads
    concerned = np.unique(runs.job[runs.lost > 0])
    overheads: dict[int, list[tuple[int, int]]] = {}
    for index in np.flatnonzero(np.isin(held.job, concerned)).tolist():
        overheads.setdefault(int(held.job[index]), []).append((int(held.start[index]), int(held.end[index])))
    executed: dict[int, list[tuple[int, int, int]]] = {}  # index of a job -> what it has executed and not lost, by time
    for index in np.flatnonzero(np.isin(runs.job, concerned)).tolist():
        job, begin, end, nodes, lost = (
            int(column[index]) for column in (runs.job, runs.start, runs.end, runs.nodes, runs.lost)
        )
        kept = executed.setdefault(job, [])
        for first, last in overheads.get(job, []):
            if begin <= first and last <= end:
                kept.append((begin, first, nodes))
                begin = last
        kept.append((begin, end, nodes))
        while lost > 0:  # the work executed last
            first, last, nodes = kept.pop()
            if last - first > lost:
                kept.append((first, last - lost, nodes))
                first = last - lost
            lost -= last - first
            yield first, last, nodes


def rates_in_matrix(records: JobRecords, history: History, ledger: Ledger) -> AccountRates:
    """Return the accounts over time of a run with time sharing: means from one scheduling event to the next.

    Useful and lost work are one account, :data:`WORK`.
    """
    nothing = dict.fromkeys(CHARGED, Amount(0, 0))
    charged = {ledger.start: nothing}  # ticks -> node-ticks charged by then
    log, moments = event_log(records, ledger.nodes), history.moments
    opening = moments[0].ticks if moments else ledger.end
    idle, down = Amount(0, 0), 0
    for event in range(1, int(np.searchsorted(log.ticks, opening, side="right"))):  # before the first gang starts
        length, waits = int(log.ticks[event] - log.ticks[event - 1]), bool(log.waiting[event - 1])
        amount = length * int(log.empty[event - 1])
        idle = Amount(idle.queue_empty + amount * (not waits), idle.job_waiting + amount * waits)
        down += length * int(log.down[event - 1])
        charged[int(log.ticks[event])] = {**nothing, Account.IDLE: idle, Account.DOWN: Amount(down, 0)}
    for before, moment in pairwise(moments):
        # A timeout on an idle machine with an empty queue charges nothing yet; the next moment has what was idle before it.
        if before.rotation or moment.ledger != before.ledger:
            charged[moment.ticks] = moment.ledger
    charged[ledger.end] = {account: ledger.amount(account) for account in CHARGED}
    lengths = [after - before for before, after in pairwise(charged)]

    def means(amounts: Iterable[int]) -> FloatArray:
        gains = (after - before for before, after in pairwise(amounts))
        return np.array([*(gain / length for gain, length in zip(gains, lengths, strict=True)), 0.0])

    nodes = {account.value: means(sum(amounts[account]) for amounts in charged.values()) for account in CHARGED}
    work: FloatArray = ledger.nodes - np.sum(list(nodes.values()), axis=0)
    work[np.abs(work) < ledger.nodes * np.finfo(np.float64).eps * len(CHARGED)] = 0  # the rounding of a difference
    work[-1] = 0.0
    idle_waiting = means(amounts[Account.IDLE].job_waiting for amounts in charged.values())
    return AccountRates(np.array(list(charged), dtype=np.int64), {WORK: work, **nodes}, idle_waiting)


def mean_of_steps(times_s: FloatArray, values: IntArray | FloatArray, edges_s: FloatArray) -> FloatArray:
    """Return the exact means of a step function over intervals: differences of its integral."""
    integral = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times_s))])
    means: FloatArray = np.diff(np.interp(edges_s, times_s, integral)) / np.diff(edges_s)
    return means
