"""A run over time: events and states, the use of limited resources and of rows, the ledger's accounts, who held which nodes.

The event log is for the formulas of ``clustermodel.theory``.  It is rebuilt from the job records alone and shares only their
times with the capacity ledger, so that a comparison of the two is a test.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.arrays import Columns, FloatArray, IntArray, distinct
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import CHARGED, Account, Amount, Ledger
from clustermodel.recording.matrix_history import Cell, History, LoggedRotation, SliceLog
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.placements import KINDS, placement_columns

if TYPE_CHECKING:
    import pandas as pd


class EventLog(NamedTuple):
    """The state after each event, arrays of shape ``(events,)``."""

    ticks: IntArray  # times of submissions, starts, ends, failures, repairs, and changes of what is reserved, ascending
    empty: IntArray | FloatArray  # e: idle nodes from then on; the mean over the slices where nodes are shared in time
    waiting: IntArray  # number of jobs waiting from then on; delta of Zhang et al. 2003 is 1 if there are any
    held_up: IntArray  # nodes of gangs that are checkpointed, restarted or suspended from then on; 0 with time sharing
    down: IntArray  # nodes that are down from then on; they are not idle
    reserved: IntArray  # nodes that reservations keep free from then on; they are not idle, either

    @property
    def time_s(self) -> FloatArray:
        """psi: times of the events in seconds after the first one, a submission (t = 0 in Zhang et al. 2003)."""
        return (self.ticks - self.ticks[:1]) / TICKS_PER_SECOND

    def busy(self, nodes: int) -> IntArray | FloatArray:
        """Return how many nodes of the machine jobs hold from each event on."""
        return nodes - self.empty - self.down - self.reserved


def event_log(records: JobRecords, nodes: int) -> EventLog:
    """Return the event log of a run; checkpoints, restarts and context switches are events, jobs rejected at once are not."""
    accepted = records.column("ended_as") != Status.REJECTED
    in_queue = accepted.copy()
    gave_up = list(records.gave_up)
    in_queue[gave_up] = True
    left = np.array(list(records.gave_up.values()), dtype=np.int64)
    runs, stopped, overheads, outages = records.runs, records.stopped_runs, records.overheads, records.outages
    ended = runs.end != UNKNOWN
    joined = records.column("eligible")[in_queue]  # when jobs were submitted, or rules of a site no longer held them
    back = records.column("end")[gave_up]  # of those that had run
    busy: _Changes = [(runs.start, runs.nodes), (runs.end[ended], -runs.nodes[ended])]
    waiting: _Changes = []
    held_up: _Changes = [(overheads.start, overheads.nodes), (overheads.end, -overheads.nodes)]
    down: _Changes = []
    reserved: _Changes = []
    if accepted.any():  # what fails or is reserved, and who waits, before the books begin is so from then on
        first = records.column("submit")[accepted].min()
        last = runs.end.max(initial=first)
        busy.append((np.array([first, last]), 0))
        waiting = [(joined.clip(first), 1), (runs.start, -1), (stopped.end, 1), (back[back != UNKNOWN], 1)]
        waiting.append((left.clip(first), -1))
        waiting = [(times.clip(max=last), change) for times, change in waiting]
        start, end = np.maximum(outages.start, first), np.where(outages.end == UNKNOWN, last, outages.end)
        during = (start < last) & (end > first)
        down = [(start[during], 1), (np.minimum(end[during], last), -1)]
        if records.kept_free_since:
            since, kept = np.array([*records.kept_free_since, (last, 0)], dtype=np.int64).T
            reserved = [(since.clip(first, last), np.diff(kept, prepend=0))]
    ticks = distinct(np.concatenate([times for times, _ in (*busy, *waiting, *held_up, *down, *reserved)]))
    in_use, queued, overhead, failed, kept_free = (
        _steps(ticks, changes) for changes in (busy, waiting, held_up, down, reserved)
    )
    return EventLog(ticks, nodes - in_use - failed - kept_free, queued, overhead, failed, kept_free)


_Changes = list[tuple[IntArray, IntArray | int]]  # when a number changes, and by how much


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
    busy = [sum(nodes * time for nodes, time in row_times(rotation, quantum)) for rotation in rotations]
    means = [rotation.up - held / max(rotation.length, 1) for rotation, held in zip(rotations, busy, strict=True)]
    empty = np.array([*means, float(rotations[-1].up)])
    ticks = np.concatenate([[0], np.cumsum(lengths)]) + (log.ticks[-1] - lengths.sum())
    before = log.ticks[log.ticks < ticks[0]]
    known = np.searchsorted(log.ticks, ticks, side="right") - 1
    # Nothing ran before the first start.
    return EventLog(
        np.concatenate([before, ticks]),
        np.concatenate([(nodes - log.down - log.reserved)[: len(before)].astype(float), empty]),
        np.concatenate([log.waiting[: len(before)], log.waiting[known]]),
        np.zeros(len(before) + len(ticks), dtype=np.int64),
        *(np.concatenate([values[: len(before)], values[known]]) for values in (log.down, log.reserved)),
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


def row_times(rotation: LoggedRotation, quantum: int) -> list[tuple[int, int]]:
    """Return on how many nodes each row ran, and for how many ticks."""
    laps, rest = divmod(rotation.begun + rotation.length, max(len(rotation.held), 1) * quantum)
    times = [laps * quantum + min(max(rest - place * quantum, 0), quantum) for place in range(len(rotation.held))]
    begun = [rotation.begun, *[0] * len(times)]
    return [(nodes, time - before) for nodes, time, before in zip(rotation.held, times, begun, strict=False)]


_TRANSFERS: Final = [list(Account).index(account) for account in (Account.CHECKPOINT, Account.RESTART)]
SHARE_OF: Final = {"node_memory_gib": "memory_share", "checkpointing": "store_share"}  # columns by fields of Machine


def shares_over_time(records: JobRecords, machine: Machine, ticks: IntArray) -> dict[str, FloatArray]:
    """Return the shares in use of the resources that are limited from each of ``ticks``, all scheduling events, on.

    The records say which gangs hold their nodes for a transfer, and so how many tasks are written or read at a time.  They use
    all of the store's bandwidth, unless the bandwidth of their nodes is less.
    """
    shares = {}
    if (memories := machine.node_memories) is not None:
        shares[SHARE_OF["node_memory_gib"]] = memory_share(records, sum(memories), ticks)
    store = machine.checkpointing.store
    if store is not None and store.bandwidth is not None:
        overheads = records.overheads
        moving = np.isin(overheads.account, _TRANSFERS)
        tasks = overheads.nodes[moving]
        if store.max_concurrent_tasks is not None:
            tasks = np.minimum(tasks, store.max_concurrent_tasks)
        at_the_store = _steps(ticks, [(overheads.start[moving], tasks), (overheads.end[moving], -tasks)])
        of_one = store.bandwidth if store.node_bandwidth is None else store.node_bandwidth
        shares[SHARE_OF["checkpointing"]] = np.minimum(at_the_store * (of_one / store.bandwidth), 1.0)
    return shares


def memory_share(records: JobRecords, memory: int, ticks: IntArray) -> FloatArray:
    """Return the share of the memory that running and suspended jobs have from each event until the next, shape ``(events,)``.

    It is the mean where it changes in between: a gang that is restored on other nodes leaves its memory on the old ones.
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


class RowUse(NamedTuple):
    """How the rows of the Ousterhout matrix were used in a run."""

    mean_rows: float  # in use, over the time in which a gang is in the matrix; ``nan`` if none ever is
    idle_beside_stopped: Amount
    """Node-ticks of nodes that are idle in the running row while gangs of other rows are stopped; part of the idle account.

    Most of this idle time is outside of kappa, as few jobs wait (Zhang et al. 2003, eq. (3)), though it slows gangs down.
    """


def switch_time(rotation: LoggedRotation, quantum: int, switch: int) -> int:
    """Return the node-ticks of context switches; where events do not cut slices short, ``migration`` has them instead."""
    rows = len(rotation.held)
    if not rows or not switch:
        return 0
    slices, rest = divmod(rotation.length, quantum)
    spent = 0
    for place, (first, later) in enumerate(rotation.switching):
        full = -(-max(slices - place, 0) // rows)  # complete slices of this row
        spent += ((first + (full - 1) * later) if full else 0) * switch
        if place == slices % rows:  # its slice was cut short by the event
            spent += (later if full else first) * min(rest, switch)
    return spent


def switch_count(rotations: Iterable[LoggedRotation], quantum: int, switch: int) -> tuple[int, int]:
    """Return how many context switches there were, by node, and how many events, which end slices, cut short."""
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
    """Return how the rows were used."""
    used = in_rows = 0
    idle = {False: 0, True: 0}
    for rotation in rotations:
        rows = len(rotation.held)
        used += rotation.length if rows else 0
        in_rows += rows * rotation.length
        if rows > 1:
            idle[rotation.waiting] += sum((rotation.up - nodes) * time for nodes, time in row_times(rotation, quantum))
    return RowUse(in_rows / used if used else nan, Amount(queue_empty=idle[False], job_waiting=idle[True]))


WORK: Final = "work"  # useful and lost: where nodes are shared in time, which is lost is known when a run attempt ends


class AccountRates(NamedTuple):
    """Nodes by account over time; arrays of shape ``(times,)``."""

    ticks: IntArray  # when the values hold from, ascending, the end of the run last
    nodes: dict[str, IntArray | FloatArray]  # by account, from then on; 0 at the end
    idle_waiting: IntArray | FloatArray  # those of the idle nodes that were idle while a job waited


def rates_in_space(records: JobRecords, ledger: Ledger) -> AccountRates:
    """Return the accounts of a run on dedicated nodes; work that is discarded later is *lost* while it is executed."""
    runs, held = records.runs, records.overheads
    ended = runs.end != UNKNOWN
    _, begins, ends, widths = np.array(list(lost_intervals(records)), dtype=np.int64).reshape(-1, 4).T
    outages = records.outages
    fails = outages.start.clip(ledger.start, ledger.end)
    repaired = np.where(outages.end == UNKNOWN, ledger.end, outages.end).clip(ledger.start, ledger.end)
    changes = [  # when each begins and ends, nodes, account
        (runs.start[ended], runs.end[ended], runs.nodes[ended], Account.USEFUL, Account.IDLE),
        (begins, ends, widths, Account.LOST, Account.USEFUL),
        (fails, repaired, np.ones_like(fails), Account.DOWN, Account.IDLE),
        *(
            (since, np.append(since[1:], ledger.end), numbers, account, Account.IDLE)
            for account, changes in ((Account.RESERVED, records.kept_free_since), (Account.OFF, records.off_since))
            for since, numbers in [_numbers_since(changes, ledger)]
        ),
        *(
            (held.start[of], held.end[of], held.nodes[of], account, Account.USEFUL)
            for position, account in enumerate(Account)
            if (of := held.account == position).any()
        ),
    ]
    log = event_log(records, ledger.nodes)
    bounds = np.array([ledger.start, ledger.end])
    ticks = distinct(np.concatenate([bounds, log.ticks, *(times for begin, end, *_ in changes for times in (begin, end))]))
    steps: dict[Account, _Changes] = {account: [] for account in Account}
    steps[Account.IDLE] = [(bounds[:1], ledger.nodes), (bounds[1:], -ledger.nodes)]
    for begin, end, width, account, instead_of in changes:
        steps[account] += [(begin, width), (end, -width)]
        steps[instead_of] += [(begin, -width), (end, width)]
    held_by: dict[str, IntArray | FloatArray] = {account.value: _steps(ticks, steps[account]) for account in Account}
    waiting = np.append(log.waiting, 0)[np.searchsorted(log.ticks, ticks, side="right") - 1] > 0
    return AccountRates(ticks, held_by, np.where(waiting, held_by[Account.IDLE.value], 0))


def _numbers_since(changes: Sequence[tuple[int, int]], ledger: Ledger) -> tuple[IntArray, IntArray]:
    """Return from when, within a run, how many nodes are in a state; at first there are none."""
    since, numbers = np.array([*changes] or [(ledger.start, 0)], dtype=np.int64).T
    return since.clip(ledger.start, ledger.end), numbers


def lost_intervals(records: JobRecords) -> Iterator[tuple[int, int, int, int]]:
    """Yield when work was executed that was discarded later: index of the job, begin, end (ticks) and nodes."""
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
            yield job, first, last, nodes


def rates_in_matrix(records: JobRecords, history: History, ledger: Ledger) -> AccountRates:
    """Return the accounts of a run with time sharing, work as one: means from one scheduling event to the next."""
    nothing = dict.fromkeys(CHARGED, Amount(0, 0))
    charged = {ledger.start: nothing}  # ticks -> node-ticks charged by then
    log, moments = event_log(records, ledger.nodes), history.moments
    opening = moments[0].ticks if moments else ledger.end
    idle, down, reserved = Amount(0, 0), 0, 0
    for event in range(1, int(np.searchsorted(log.ticks, opening, side="right"))):  # before the first gang starts
        length, waits = int(log.ticks[event] - log.ticks[event - 1]), bool(log.waiting[event - 1])
        amount = length * int(log.empty[event - 1])
        idle = Amount(idle.queue_empty + amount * (not waits), idle.job_waiting + amount * waits)
        down, reserved = down + length * int(log.down[event - 1]), reserved + length * int(log.reserved[event - 1])
        not_idle = {Account.DOWN: Amount(down, 0), Account.RESERVED: Amount(reserved, 0)}
        charged[int(log.ticks[event])] = {**nothing, Account.IDLE: idle, **not_idle}
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


NO_ROW: Final = -1  # nothing runs, or nodes are not shared in time


class GangPlacement(NamedTuple):
    """A gang on one set of nodes; times in ticks."""

    job: int  # index of the job's record
    attempt: int  # which of its run attempts this belongs to, from 1
    begin: int
    end: int
    row: int  # of the Ousterhout matrix, 0 on dedicated nodes
    columns: NodeSet
    kind: int  # position in KINDS


def kinds(ended_as: IntArray, lost: IntArray) -> IntArray:
    """Return what run attempts are, positions in ``KINDS``."""
    stopped = ~np.isin(ended_as, (Status.COMPLETED, Status.KILLED))
    kind = np.where(lost > 0, KINDS.index("lost"), np.where(stopped, KINDS.index("saved"), KINDS.index("run")))
    return np.where(ended_as == Status.FAILED, KINDS.index("failed"), kind)


def gangs_in_space(records: JobRecords) -> list[GangPlacement]:
    """Return the placements of gangs on dedicated nodes, by job, then by time; after each migration there is a new one."""
    runs, ranges = records.runs, records.node_ranges
    ended = np.flatnonzero(ranges.until != UNKNOWN)
    keys = (ranges.first_node, ranges.until, ranges.since, ranges.run, runs.job[ranges.run])
    order = ended[np.lexsort(tuple(column[ended] for column in keys))]
    run, since, until = ranges.run[order], ranges.since[order], ranges.until[order]
    bounds = np.column_stack([ranges.first_node[order], ranges.first_node[order] + ranges.nodes[order]]).ravel().tolist()
    begins = np.flatnonzero(np.any([np.diff(column, prepend=-1) != 0 for column in (run, since, until)], axis=0))
    by_job = np.argsort(runs.job, kind="stable")
    attempt = np.empty(len(by_job), dtype=np.int64)  # which one of its job each run is, from 1
    attempt[by_job] = np.arange(1, len(by_job) + 1) - np.searchsorted(runs.job[by_job], runs.job[by_job])
    of, kind = run[begins], kinds(runs.ended_as, runs.lost)
    columns = (runs.job[of], attempt[of], since[begins], until[begins], kind[of], begins, np.append(begins, len(order))[1:])
    return [
        GangPlacement(index, number, begin, end, 0, tuple(bounds[2 * low : 2 * high]), what)
        for index, number, begin, end, what, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]


def gangs_in_matrix(records: JobRecords, history: History, end: int) -> list[GangPlacement]:
    """Return the placements of gangs in the rows of the Ousterhout matrix, in the order in which they ended."""
    runs = records.runs
    index_of = {job: index for index, job in enumerate(records.column("id").tolist())}
    ends: dict[int, list[int]] = {}  # index of a job -> ends of its run attempts
    kind_of: dict[int, list[int]] = {}
    for job, ended, kind in zip(runs.job.tolist(), runs.end.tolist(), kinds(runs.ended_as, runs.lost).tolist(), strict=True):
        ends.setdefault(job, []).append(ended)
        kind_of.setdefault(job, []).append(kind)
    since: dict[tuple[int, Cell], int] = {}
    places: list[GangPlacement] = []

    def close(row: int, cell: Cell, now: int) -> None:
        job, begin = index_of[cell.job], since.pop((row, cell))
        # From the first attempt that had not ended before: where one failed, the next may have begun there at once.
        for attempt in range(bisect_right(ends[job], begin), bisect_left(ends[job], now) + 1):
            until = min(ends[job][attempt], now)
            kind = KINDS.index("replica") if cell.replica else kind_of[job][attempt]
            places.append(GangPlacement(job, attempt + 1, begin, until, row, from_mask(cell.columns), kind))
            begin = until

    for moment in history.moments:
        present = {(row, cell) for row, cells in enumerate(moment.rows) for cell in cells}
        for gone in sorted(since.keys() - present):
            close(*gone, moment.ticks)
        for place in present - since.keys():
            since[place] = moment.ticks
    for left in sorted(since):
        close(*left, end)
    return places


def placements(records: JobRecords, history: History | None, end: int) -> Columns:
    """Return where and when gangs ran, or with a history where they were in the matrix: ``Result.placements``."""
    ids, ranges = records.column("id"), records.node_ranges
    if history is None:
        runs = records.runs.where(ranges.run)
        kind, ended = kinds(runs.ended_as, runs.lost), runs.end != UNKNOWN
        columns: Any = (ids[runs.job], ranges.since, ranges.until, 0 * kind, ranges.first_node, ranges.nodes, kind)
        columns = [column[ended] for column in columns]
    else:
        places = [
            (ids[gang.job], gang.begin, gang.end, gang.row, low, high - low, gang.kind)
            for gang in gangs_in_matrix(records, history, end)
            for low, high in zip(gang.columns[::2], gang.columns[1::2], strict=True)
        ]
        columns = np.array(places, dtype=np.int64).reshape(-1, 7).T
    return placement_columns(*columns)


def states(log: EventLog, nodes: int, history: History | None, shares: Mapping[str, FloatArray]) -> Columns:
    """Return the state of the machine after each event; see :attr:`~clustermodel.experiment.result.Result.states`."""
    row = np.full(len(log.ticks), NO_ROW, dtype=np.int32)
    if history is not None and history.moments:
        begins = [moment.ticks for moment in history.moments]
        first = np.array([moment.rotation[0] if moment.rotation else NO_ROW for moment in history.moments], dtype=np.int32)
        moment = np.searchsorted(begins, log.ticks, side="right") - 1
        row = np.where(moment < 0, NO_ROW, first[moment]).astype(np.int32)
    fixed = {"busy_nodes": log.busy(nodes), "down_nodes": log.down, "waiting_jobs": log.waiting, "running_row": row}
    reserved = {"reserved_nodes": log.reserved} if log.reserved.any() else {}
    return {"time_s": log.ticks / TICKS_PER_SECOND, **fixed, **reserved, **shares}


def recorded_states(placements: pd.DataFrame, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the same of a recorded schedule, ``Workload.recorded_placements``, of jobs with ``job`` and ``submit_s``."""
    import pandas as pd

    times = distinct(np.concatenate([jobs["submit_s"], placements["begin_s"], placements["end_s"]]))
    times = times[times >= jobs["submit_s"].min()]
    submit_s = jobs.loc[jobs["job"].isin(placements["job"]), "submit_s"]  # of those whose nodes are known
    stays, ends = placements.drop_duplicates(["job", "begin_s", "end_s"]), placements.groupby("job")["end_s"].max()
    submitted, begun, left, completed = (
        np.searchsorted(np.sort(of), times, side="right") for of in (submit_s, stays["begin_s"], stays["end_s"], ends)
    )
    waiting = submitted - begun + left - completed  # suspended jobs wait, too
    # Each node apart, from the begin of its first stay to the latest end before a gap: jobs may hold it at the same time.
    nodes = placements["nodes"].to_numpy(dtype=np.int64)
    stay = np.repeat(np.arange(len(placements)), nodes)
    within = np.arange(len(stay)) - np.repeat(np.cumsum(nodes) - nodes, nodes)
    node = placements["first_node"].to_numpy()[stay] + within
    begin, end = (np.searchsorted(times, placements[name])[stay] for name in ("begin_s", "end_s"))
    order = np.lexsort((begin, node))
    apart = node[order] * (len(times) + 1)  # each node in a time of its own: one running maximum for all
    begin, latest = apart + begin[order], np.maximum.accumulate(apart + end[order])
    first = np.append(True, begin[1:] > latest[:-1])
    changes = np.zeros(len(times) + 1, dtype=np.int64)
    np.add.at(changes, (begin - apart)[first], 1)
    np.add.at(changes, (latest - apart)[np.append(first[1:], True)], -1)
    fixed = {"busy_nodes": np.cumsum(changes)[:-1], "down_nodes": 0, "waiting_jobs": np.maximum(waiting, 0)}
    return pd.DataFrame({"time_s": times, **fixed, "running_row": NO_ROW})
