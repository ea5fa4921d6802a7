"""What happened to each job, written by the mechanism while it runs: a table of jobs and a table of their run attempts.

The tables are arrays of numbers, row after row.  A job takes 128 bytes, a run attempt 88, a range of neighbouring nodes 16.  No
Python object of a finished job stays behind.  What is derived from the records is in :mod:`clustermodel.measure.job_table`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import SpecificationError
from clustermodel.machine.node_set import NodeSet
from clustermodel.recording import run_attempts
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import PREEMPTIONS, UNKNOWN, RunAttempt, RunAttempts, Status
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import NUMBERS, JobRow

_AS_NUMBERS: Final = Struct(f"{len(NUMBERS)}q")
"""A row as numbers of 64 bits: to pack all at once takes a third of the time of appending one after the other."""
_ACCOUNTS: Final = {account: position for position, account in enumerate(Account)}
# The columns of a run attempt: those of RunAttempts, and where the nodes that it held are among all ranges.  What is known at
# the same time stands together.
_HEAD_SINCE: Final = 1
_BACKFILLED: Final = 2
_START: Final = 3
_NODES: Final = 4
_FIRST_BOUND: Final = 5
_BOUNDS: Final = 6
_END: Final = 7
_WORKED: Final = 8
_LOST: Final = 9
_ENDED_AS: Final = 10
_WIDTH: Final = 11
_OF_ATTEMPT: Final = [0, _START, _END, _NODES, _BACKFILLED, _HEAD_SINCE, _WORKED, _LOST, _ENDED_AS]
"""The columns of RunAttempts, in the order of its fields."""
_FOUR_COLUMNS: Final = Struct("4q")  # those of a start, or of an end
BLOCK: Final = 16_384  # jobs that are passed on at once
_BLANK: Final = array("q", [0, UNKNOWN, 0, UNKNOWN, 0, 0, 0, UNKNOWN, UNKNOWN, 0, Status.UNFINISHED])
_NO_START: Final = array("q", [UNKNOWN, UNKNOWN])


class EndedSegment(NamedTuple):
    """What a gang executed on one number of nodes, how much of it is discarded, and its job in all, if it has ended; ticks."""

    executed: int
    lost: int
    in_all: int


class MemoryInUse(NamedTuple):
    """The memory that running and suspended jobs have on all nodes together; shapes ``(changes,)``."""

    ticks: IntArray  # times of the changes, ascending
    kib: IntArray  # from then on


class JobRecords:
    """The records of one run, in order of submission.

    Columns in ticks, besides the numbers of :class:`~clustermodel.workload.job.JobRow`: ``reserved``, the first guaranteed
    start; ``due``, the earliest guaranteed start after renewals; ``eligible``, when the job joined the queue, later than it was
    submitted if it was held; ``cap_wait``, its wait caused by the power cap; and of the job's last run attempt
    ``start``, ``end``;
    ``ended_as`` (a ``Status``); ``worked``, how long the gang executed, without other gangs' slices, overheads and discarded
    work; ``head_since``, when the job was left waiting at the head of the queue (*blocked*) before the attempt;
    ``backfilled``, 1 if the attempt started while a job ahead in the queue kept waiting.  ``UNKNOWN`` where something never
    happened.
    """

    ids_rise = False  # whether the ids of the jobs must

    def __init__(self) -> None:
        # Of each job, in order of submission:
        self._submitted = array("q")  # the numbers of the JobRow
        self._guaranteed = array("q")  # start: the first one, and the earliest after renewals
        self._attempt = array("q")  # where its last run attempt begins
        self._attempts = array("q")  # in the order in which the jobs joined the queue
        self._bounds = array("q")  # of each run of neighbouring nodes, first and beyond the last, in order of start
        self._overheads = array("q")  # start, end, nodes, job, account
        self._moves = array("q")  # of gangs that have their nodes to themselves: attempt, time, the nodes that they gave up
        self.kept_free_since: list[tuple[int, int]] = []  # from when how many idle nodes were reserved
        self.off_since: list[tuple[int, int]] = []  # from when how many nodes were switched off
        self.gave_up: dict[int, int] = {}  # when jobs left the queue that could not start any more, by index, ticks
        self.in_no_window: set[int] = set()  # indices of jobs rejected or aborted since windows let them start at no time
        self.cap_waits: dict[int, int] = {}  # how long jobs waited because of the power cap, by index, ticks
        self._outages = array("q")  # node, start, end; in order of the failures
        self._down: dict[int, int] = {}  # node that is down -> where the end of its outage belongs
        self._memory = array("q")  # of the memory in use, where it is limited: time, change
        self._eligible: dict[int, int] = {}  # when jobs that were held joined the queue
        self._begun: dict[int, int] = {}  # when the last run attempts of jobs began that have been resized since
        self._in_all: dict[int, int] = {}  # how long malleable jobs executed in all their run attempts

    def __len__(self) -> int:
        return len(self._attempt)

    # Written by the mechanism; ``index`` is the number that ``submitted`` returned.

    def submitted(self, row: JobRow) -> int:
        index = len(self._attempt)
        self._submitted.frombytes(_AS_NUMBERS.pack(*row[:-1]))
        self._guaranteed.extend(_NO_START)
        self._attempt.append(self._open_attempt(index))
        return index

    def _open_attempt(self, index: int) -> int:
        attempt = len(self._attempts)
        self._attempts.extend(_BLANK)
        self._attempts[attempt] = index
        return attempt

    def rejected(self, index: int) -> None:
        self._attempts[self._attempt[index] + _ENDED_AS] = Status.REJECTED

    def rejected_late(self, index: int, now: int) -> None:
        """Record that a waiting job is rejected, because the machine can no longer run it."""
        self.rejected(index)
        self.gave_up[index] = now

    def aborted_late(self, index: int, now: int, discarded: int, in_all: int = UNKNOWN) -> None:
        """Record that a waiting job is aborted after its last run attempt, as no time is left in which it could end.

        ``discarded`` ticks of its work are lost; ``in_all``: of a malleable job, as of :meth:`ended`.
        """
        attempts, blank = self._attempts, self._attempt[index]
        attempt = self._attempt[index] = self._last_started(index)
        attempts[blank + _ENDED_AS] = attempts[attempt + _ENDED_AS] = Status.ABORTED
        attempts[attempt + _LOST] += discarded
        if in_all == UNKNOWN:  # what it has executed in all, as at any other end, which is lost
            attempts[attempt + _WORKED] = attempts[attempt + _LOST]
        else:
            self._in_all[index] = in_all
        self.gave_up[index] = now

    def held(self, index: int, until: int) -> None:
        """Record when the rules of the site released a held job to the queue."""
        self._eligible[index] = until

    def waited_for_cap(self, index: int, ticks: int) -> None:
        """Record further time for which the power cap alone kept the job waiting."""
        self.cap_waits[index] = self.cap_waits.get(index, 0) + ticks

    def started(self, index: int, now: int, columns: NodeSet, nodes: int) -> None:
        bounds = self._bounds
        _FOUR_COLUMNS.pack_into(self._attempts, 8 * (self._attempt[index] + _START), now, nodes, len(bounds), len(columns))
        bounds.extend(columns)

    def moved(self, index: int, now: int, columns: NodeSet) -> None:
        """Note that the gang has migrated to other nodes, as many as it had."""
        attempt, attempts, bounds = self._attempt[index], self._attempts, self._bounds
        first, number = attempt + _FIRST_BOUND, attempt + _BOUNDS
        self._moves.extend((attempt, now, attempts[first], attempts[number]))
        attempts[first], attempts[number] = len(bounds), len(columns)
        bounds.extend(columns)

    def attempt_of(self, index: int) -> int:
        """Return where the job's last run attempt is, for :meth:`lost`."""
        return self._attempt[index]

    def resized(self, index: int, now: int, columns: NodeSet, nodes: int, segment: EndedSegment) -> None:
        """Record that the gang continues on another number of nodes."""
        before = self._attempt[index]
        self.ended(index, now, Status.RESIZED, segment.executed, segment.lost)
        attempt = self._attempt[index] = self._open_attempt(index)
        self._begun.setdefault(index, self._attempts[before + _START])
        for column in (_BACKFILLED, _HEAD_SINCE):
            self._attempts[attempt + column] = self._attempts[before + column]
        self.started(index, now, columns, nodes)

    def lost(self, index: int, attempt: int, nodes: int, ticks: int) -> None:
        """Note that work of an earlier run attempt of the job, on so many nodes, is discarded."""
        self._attempts[attempt + _LOST] += ticks

    def ended(self, index: int, now: int, status: Status, executed: int, lost: int = 0, in_all: int = UNKNOWN) -> None:
        """Note that the run attempt ended, and ``lost`` ticks of the job's work were discarded.

        Of a malleable job, ``executed`` is of the run attempt alone, and ``in_all`` of all its run attempts.
        """
        if in_all != UNKNOWN:
            self._in_all[index] = in_all
        _FOUR_COLUMNS.pack_into(self._attempts, 8 * (self._attempt[index] + _END), now, executed, lost, status)

    def stopped(self, index: int, now: int, status: Status, executed: int, lost: int) -> None:
        """Note that the run attempt ended, and the job is queued again."""
        self.ended(index, now, status, executed, lost)
        self._attempt[index] = self._open_attempt(index)
        self._begun.pop(index, None)

    def discarded(self, index: int, lost: int) -> None:
        """Note that work of the job, which waits again, is discarded after its last run attempt has ended."""
        self._attempts[self._last_started(index) + _LOST] += lost

    def _last_started(self, index: int) -> int:
        """Return where the last run attempt is of a job that waits again."""
        attempt = self._attempt[index] - _WIDTH
        while self._attempts[attempt] != index:
            attempt -= _WIDTH
        return attempt

    def node_failed(self, node: int, now: int) -> None:
        self._outages.extend((node, now, UNKNOWN))
        self._down[node] = len(self._outages) - 1

    def node_repaired(self, node: int, now: int) -> None:
        self._outages[self._down.pop(node)] = now

    def kept_free(self, now: int, nodes: int) -> None:
        """Note how many idle nodes are reserved from ``now`` on."""
        self.kept_free_since.append((now, nodes))

    def switched_off(self, now: int, nodes: int) -> None:
        """Note how many nodes are off from ``now`` on."""
        self.off_since.append((now, nodes))

    def memory_changed(self, now: int, kib: int) -> None:
        """Record that jobs use more memory from ``now`` on (less if negative), on all nodes together."""
        self._memory.extend((now, kib))  # perhaps after later ones: the fast mode finds out at a scheduling event

    def overhead(self, index: int, start: int, end: int, nodes: int, account: Account) -> None:
        """Note that a gang held ``nodes`` for a checkpoint, a restart or a context switch of its own, or waited for one."""
        self._overheads.extend((start, end, nodes, index, _ACCOUNTS[account]))

    def blocked(self, index: int, now: int) -> None:
        """Note that the job is left waiting at the head of the queue; the first time before each start counts."""
        attempt = self._attempt[index]
        if self._attempts[attempt + _HEAD_SINCE] == UNKNOWN:
            self._attempts[attempt + _HEAD_SINCE] = now

    def backfilled(self, index: int) -> None:
        """Note that the job started while a job ahead in the queue kept waiting."""
        self._attempts[self._attempt[index] + _BACKFILLED] = 1

    def reserved(self, index: int, start: int, now: int) -> None:
        """Note a guaranteed start, the job's first or one that is renewed."""
        guaranteed, first, last = self._guaranteed, 2 * index, 2 * index + 1
        if guaranteed[first] == UNKNOWN:
            guaranteed[first] = guaranteed[last] = start
        elif guaranteed[last] > now:
            guaranteed[last] = start

    # Read afterwards.

    def column(self, name: str) -> IntArray:
        """Return one column, shape ``(jobs,)``, in ticks where it is a time."""
        if name in NUMBERS:
            rows = np.asarray(self._submitted, dtype=np.int64).reshape(-1, len(NUMBERS))
            return rows[:, NUMBERS.index(name)].copy()
        if name in ("reserved", "due"):
            return _rows(self._guaranteed, 2)[:, int(name == "due")].copy()
        if name == "cap_wait":
            waits = np.zeros(len(self), dtype=np.int64)
            waits[list(self.cap_waits)] = list(self.cap_waits.values())
            return waits
        if name == "eligible":
            values, others = self.column("submit"), self._eligible
        else:
            values = self._of_last(_OF_ATTEMPT[RunAttempts._fields.index(name)])
            others = {"start": self._begun, "worked": self._in_all}.get(name, {})
        values[list(others)] = list(others.values())
        return values

    def seconds(self, name: str) -> FloatArray:
        """Return a tick column in seconds, ``nan`` where it never happened; shape ``(jobs,)``."""
        return in_seconds(self.column(name))

    def _table(self) -> IntArray:
        """Return the run attempts, shape ``(attempts, 11)``: a view, while which lasts no attempt can be added."""
        return np.asarray(self._attempts, dtype=np.int64).reshape(-1, _WIDTH)

    def _of_last(self, column: int) -> IntArray:
        """Return a column of each job's last run attempt, shape ``(jobs,)``."""
        values: IntArray = self._table()[_numbers(self._attempt) // _WIDTH, column]
        return values

    def columns_of(self, index: int) -> NodeSet:
        """Return the nodes that the job held in its last run attempt, empty if it never ran."""
        return self._nodes_of(self._attempt[index])

    def _nodes_of(self, attempt: int) -> NodeSet:
        first = self._attempts[attempt + _FIRST_BOUND]
        return tuple(self._bounds[first : first + self._attempts[attempt + _BOUNDS]])

    @property
    def finished(self) -> BoolArray:
        """Which jobs ran to an end, shape ``(jobs,)``."""
        finished: BoolArray = self.column("end") != UNKNOWN
        return finished

    @property
    def malleable(self) -> BoolArray:
        """Which jobs that have ended were malleable, shape ``(jobs,)``."""
        malleable = np.zeros(len(self), dtype=bool)
        malleable[list(self._in_all)] = True
        return malleable

    @property
    def allocated(self) -> IntArray:
        """Number of nodes on which each job ran last, 0 if it never ran; shape ``(jobs,)``."""
        return self._of_last(_NODES)

    @property
    def blocked_since(self) -> IntArray:
        """When each job was first left waiting at the head of the queue, ticks, ``UNKNOWN`` if never; shape ``(jobs,)``."""
        never = np.iinfo(np.int64).max
        table = self._table()
        head_since, first = table[:, _HEAD_SINCE], np.full(len(self), never)
        np.minimum.at(first, table[:, 0], np.where(head_since == UNKNOWN, never, head_since))
        return np.where(first == never, UNKNOWN, first)

    @property
    def memory_in_use(self) -> MemoryInUse:
        """The memory at each time at which it changes; no row where it is not limited."""
        rows = _rows(self._memory, 2)
        ticks, changes = rows[np.argsort(rows[:, 0], kind="stable")].T
        last = np.diff(ticks, append=-1) != 0  # of the changes at one time
        ticks, kib = ticks[last], np.cumsum(changes)[last]
        other = np.diff(kib, prepend=0) != 0
        return MemoryInUse(ticks[other], kib[other])

    @property
    def runs(self) -> RunAttempts:
        """All run attempts that started, the last ones included, in the order in which the jobs joined the queue."""
        return self._attempts_of(self._table()[:, _START] != UNKNOWN)

    @property
    def stopped_runs(self) -> RunAttempts:
        """The run attempts after which jobs returned to the queue, in the order in which they were stopped."""
        return self._attempts_of(self._stopped())

    def _attempts_of(self, which: BoolArray | npt.NDArray[np.intp]) -> RunAttempts:
        return RunAttempts(*np.ascontiguousarray(self._table()[which][:, _OF_ATTEMPT].T))

    def _stopped(self) -> npt.NDArray[np.intp]:
        """Return the attempts that were stopped, in that order, which is the order of the attempts that follow them."""
        table = self._table()
        job = table[:, 0]
        order = np.argsort(job, kind="stable")
        # Of a job that is aborted while it waits, the last attempt that has started is the last one.
        goes_on = (table[:, _START] != UNKNOWN) | (table[:, _ENDED_AS] != Status.ABORTED)
        again = np.flatnonzero((job[order[1:]] == job[order[:-1]]) & goes_on[order[1:]])
        return order[again][np.argsort(order[again + 1])]

    def each_stopped_run(self) -> Iterator[RunAttempt]:
        """Yield the attempts of :attr:`stopped_runs` one by one, with the nodes held."""
        for place in self._stopped().tolist():
            attempt = place * _WIDTH
            job, _, backfilled, start, _, _, _, end, worked, lost, ended_as = self._attempts[attempt : attempt + _WIDTH]
            yield RunAttempt(job, start, end, self._nodes_of(attempt), bool(backfilled), Status(ended_as), worked, lost)

    @property
    def node_ranges(self) -> run_attempts.NodeRanges:
        """The nodes that gangs held, by run attempt."""
        table, moves = self._table(), _rows(self._moves, 4)
        attempt = np.concatenate([moves[:, 0] // _WIDTH, np.arange(len(table))])
        until = np.concatenate([moves[:, 1], table[:, _END]])
        first, bounds = np.concatenate([moves[:, 2:], table[:, [_FIRST_BOUND, _BOUNDS]]]).T
        since = table[attempt, _START]
        in_time = np.argsort(first, kind="stable")
        order = in_time[np.argsort(attempt[in_time], kind="stable")]  # by attempt; after a migration, since the end before it
        again = np.flatnonzero(np.diff(attempt[order]) == 0)
        since[order[again + 1]] = until[order[again]]
        held = np.repeat(in_time, bounds[in_time] // 2)
        low, high = _rows(self._bounds, 2).T
        run = np.cumsum(table[:, _START] != UNKNOWN) - 1  # position in :attr:`runs`
        return run_attempts.NodeRanges(run[attempt[held]], low, high - low, since[held], until[held])

    @property
    def outages(self) -> run_attempts.NodeOutages:
        return run_attempts.NodeOutages(*np.ascontiguousarray(_rows(self._outages, 3).T))

    @property
    def overheads(self) -> run_attempts.Overheads:
        return run_attempts.Overheads(*np.ascontiguousarray(_rows(self._overheads, 5).T))


def submitted_twice(job: int) -> SpecificationError:
    """Return the error of a second job of an id."""
    return SpecificationError(f"job id {job} is submitted twice; ids must be unique among all streams")


def in_seconds(ticks: IntArray) -> FloatArray:
    """Return ticks in seconds, ``nan`` where they are ``UNKNOWN``."""
    return np.where(ticks == UNKNOWN, np.nan, ticks / TICKS_PER_SECOND)


def _numbers(column: array[int]) -> IntArray:
    return np.array(column, dtype=np.int64)


def _rows(numbers: array[int], columns: int) -> IntArray:
    return _numbers(numbers).reshape(-1, columns)


class StreamedJob:
    """The record of one job of a streamed run, times in ticks; ``UNKNOWN`` where something never happened."""

    __slots__ = (
        "allocated", "attempts", "backfilled", "blocked_since", "end", "executed", "last_lost", "lost", "preemptions",
        "requeued", "reserved", "resizes", "row", "start", "status", "wasted",
    )  # fmt: skip

    def __init__(self, row: JobRow) -> None:
        self.row = row
        self.start = self.end = self.executed = self.blocked_since = self.reserved = UNKNOWN
        self.status = Status.UNFINISHED
        self.allocated = 0  # nodes of the last run attempt
        self.backfilled = False  # whether that started while a job ahead in the queue kept waiting
        self.attempts = self.preemptions = self.resizes = 0
        self.requeued = False  # whether it was stopped at a time limit of the policy and restarted
        self.lost = self.wasted = 0  # discarded work, ticks and node-ticks
        self.last_lost = 0  # of that, when the last run attempt ended, or after it; ticks


class StreamedRecords(JobRecords):
    """Records of a streamed run: no job is kept after it has left the system, so a Result refuses what needs the jobs.

    ``take`` is called with each ``BLOCK`` jobs that have left, and by :meth:`close` with the rest; the list is used again.
    Of the ids of jobs only the highest is kept, so they must rise.
    """

    ids_rise = True

    def __init__(self, take: Callable[[list[StreamedJob]], None]) -> None:
        super().__init__()
        self._highest: int | None = None
        self._take = take
        self._block: list[StreamedJob] = []
        self._open: dict[int, StreamedJob] = {}
        self._submissions = 0

    def __len__(self) -> int:
        return self._submissions

    def close(self) -> None:
        """Pass on the jobs that have left since the last block."""
        self._take(self._block)
        self._block.clear()

    def _left(self, index: int, status: Status) -> StreamedJob:
        job = self._open.pop(index)
        job.status = status
        self._block.append(job)
        if len(self._block) >= BLOCK:
            self.close()
        return job

    def submitted(self, row: JobRow) -> int:
        if self._highest is not None and row.id < self._highest:
            raise SpecificationError(
                f"stream: job {row.id} is submitted after job {self._highest}; the ids of a streamed run must rise, so that "
                "each is unique: number the jobs in order of submission"
            )
        if row.id == self._highest:
            raise submitted_twice(row.id)
        self._highest = row.id
        index = self._submissions
        self._submissions += 1
        self._open[index] = StreamedJob(row)
        return index

    def rejected(self, index: int) -> None:
        self._left(index, Status.REJECTED)

    def started(self, index: int, now: int, columns: NodeSet, nodes: int) -> None:
        job = self._open[index]
        job.start = now
        job.allocated = nodes
        job.attempts += 1

    def switched_off(self, now: int, nodes: int) -> None:
        """Note nothing, so that no log grows."""

    def moved(self, index: int, now: int, columns: NodeSet) -> None:
        """Note nothing: which nodes a job had is not kept."""

    def memory_changed(self, now: int, kib: int) -> None:
        """Note nothing, so that no log grows."""

    def attempt_of(self, index: int) -> int:
        return 0

    def resized(self, index: int, now: int, columns: NodeSet, nodes: int, segment: EndedSegment) -> None:
        self.discarded(index, segment.lost)
        job = self._open[index]
        job.allocated = nodes
        job.resizes += 1

    def lost(self, index: int, attempt: int, nodes: int, ticks: int) -> None:
        job = self._open[index]
        job.lost += ticks
        job.wasted += ticks * nodes

    def ended(self, index: int, now: int, status: Status, executed: int, lost: int = 0, in_all: int = UNKNOWN) -> None:
        job = self._open[index]
        job.end, job.executed = now, executed if in_all == UNKNOWN else in_all
        self.discarded(index, lost)
        self._left(index, status)

    def stopped(self, index: int, now: int, status: Status, executed: int, lost: int) -> None:
        job = self._open[index]
        job.preemptions += status in PREEMPTIONS
        job.requeued |= status is Status.REQUEUED
        job.end, job.backfilled, job.last_lost = now, False, 0
        self.discarded(index, lost)

    def aborted_late(self, index: int, now: int, discarded: int, in_all: int = UNKNOWN) -> None:
        self.discarded(index, discarded)
        job = self._open[index]
        job.executed = job.last_lost if in_all == UNKNOWN else in_all
        self._left(index, Status.ABORTED)

    def discarded(self, index: int, lost: int) -> None:
        job = self._open[index]
        job.lost += lost
        job.last_lost += lost
        job.wasted += lost * job.allocated

    def overhead(self, index: int, start: int, end: int, nodes: int, account: Account) -> None:
        """Note nothing: the ledger has the sums."""

    def blocked(self, index: int, now: int) -> None:
        job = self._open[index]
        if job.blocked_since == UNKNOWN:
            job.blocked_since = now

    def backfilled(self, index: int) -> None:
        self._open[index].backfilled = True

    def reserved(self, index: int, start: int, now: int) -> None:
        job = self._open[index]
        if job.reserved == UNKNOWN:
            job.reserved = start
