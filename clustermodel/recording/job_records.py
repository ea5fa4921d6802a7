"""What happened to each job, written by the mechanism while it runs: a table of jobs and a table of their run attempts.

One array per column.  A job takes 128 bytes, a run attempt 66, a range of neighbouring nodes 16.  No Python object of a
finished job stays behind.  Tables and quantities derived from the records are in :mod:`clustermodel.measure.job_table`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.job import JobRow
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN, NodeOutages, NodeRanges, Overheads, RunAttempt, RunAttempts, Status
from clustermodel.schedule.node_set import NodeSet
from clustermodel.ticks import TICKS_PER_SECOND

_BLANK_TIMES: Final = array("q", [UNKNOWN]) * 1024
_BLANK_NUMBERS: Final = array("q", [0]) * 1024
_BLANK_FLAGS: Final = array("b", [0]) * 1024
_AS_NUMBERS: Final = Struct(f"{len(JobRow._fields)}q")
"""A row as numbers of 64 bits: to pack all at once takes a third of the time of appending one after the other."""
_ABORTED: Final = Status.ABORTED  # a global name is looked up faster than a member of an enumeration
_ACCOUNTS: Final = {account: position for position, account in enumerate(Account)}


class SubmittedIds(Protocol):
    """The ids of the jobs submitted so far."""

    def __contains__(self, job: int) -> bool:
        """Return whether a job with this id has been submitted."""

    def add(self, job: int, /) -> None:
        """Note the id of a submitted job."""


class MemoryInUse(NamedTuple):
    """The memory that running and suspended jobs have on all nodes together; shapes ``(changes,)``."""

    ticks: IntArray
    """Times of the changes, ascending."""
    kib: IntArray
    """From then on."""


class MemoryLog:
    """The changes of the memory in use, where it is limited."""

    __slots__ = ("_change", "_time")

    def __init__(self) -> None:
        self._time = array("q")
        self._change = array("q")

    def changed(self, now: int, kib: int) -> None:
        """Note that jobs have so much more memory from ``now`` on, or less if negative, on all nodes together.

        Changes may be noted after later ones: the fast mode finds out at a scheduling event what has happened since the last.
        """
        self._time.append(now)
        self._change.append(kib)

    @property
    def in_use(self) -> MemoryInUse:
        """The memory at each time at which it changes; no row where it is not limited."""
        ticks, changes = (np.array(column, dtype=np.int64) for column in (self._time, self._change))
        order = np.argsort(ticks, kind="stable")
        ticks, changes = ticks[order], changes[order]
        last = np.diff(ticks, append=-1) != 0  # of the changes at one time
        ticks, kib = ticks[last], np.cumsum(changes)[last]
        other = np.diff(kib, prepend=0) != 0
        return MemoryInUse(ticks[other], kib[other])


class JobRecords:
    """The records of one run, in order of submission.

    Columns in ticks, besides those of :class:`~clustermodel.job.JobRow`: ``reserved``, the first guaranteed start; ``due``, the
    guaranteed start that was the first to come, after renewals; and of the job's last run attempt ``start``, ``end``;
    ``ended_as`` (a ``Status``); ``worked``, how long the gang executed, without other gangs' slices, overheads and discarded
    work; ``head_since``, when the job was left waiting at the head of the queue (*blocked*) before the attempt;
    ``backfilled``, 1 if the attempt started while a job ahead in the queue kept waiting.  ``UNKNOWN`` where something never
    happened.
    """

    __slots__ = (
        "_attempt",
        "_attempts",
        "_backfilled",
        "_bounds",
        "_due",
        "_end",
        "_ended_as",
        "_first_bound",
        "_head_since",
        "_job",
        "_lost",
        "_move_attempt",
        "_move_first_bound",
        "_move_number_of_bounds",
        "_move_time",
        "_number_of_bounds",
        "_outage_end",
        "_outage_node",
        "_outage_start",
        "_overhead_account",
        "_overhead_end",
        "_overhead_job",
        "_overhead_nodes",
        "_overhead_start",
        "_reserved",
        "_start",
        "_submitted",
        "_worked",
        "memory",
    )

    def __init__(self) -> None:
        # Of each job, in order of submission:
        self._submitted = array("q")  # the JobRow, whose fields stay together: nothing reads them before the run is over
        self._reserved = array("q")
        self._due = array("q")
        self._attempt = array("q")  # the last one
        # Of each run attempt, in the order in which the jobs joined the queue; the columns are longer than that:
        self._attempts = 0
        self._job = array("q")
        self._start = array("q")
        self._end = array("q")
        self._ended_as = array("b")
        self._backfilled = array("b")
        self._head_since = array("q")
        self._worked = array("q")
        self._lost = array("q")
        self._first_bound = array("q")
        self._number_of_bounds = array("q")
        # Of each run of neighbouring nodes, first and beyond the last, in order of start:
        self._bounds = array("q")
        # Of each interval of overhead:
        self._overhead_start = array("q")
        self._overhead_end = array("q")
        self._overhead_nodes = array("q")
        self._overhead_job = array("q")
        self._overhead_account = array("b")
        # Of each migration of a gang that has its nodes to itself, the nodes that it gave up:
        self._move_attempt = array("q")
        self._move_time = array("q")
        self._move_first_bound = array("q")
        self._move_number_of_bounds = array("q")
        # Of each outage of a node, in order of the failures:
        self._outage_node = array("q")
        self._outage_start = array("q")
        self._outage_end = array("q")
        self.memory: MemoryLog = MemoryLog()
        """The memory that jobs have, where it is limited."""

    def __len__(self) -> int:
        return len(self._reserved)

    def submitted_ids(self) -> SubmittedIds:
        """Return where the ids of submitted jobs are noted: nowhere yet."""
        return set()

    # Written by the mechanism; ``index`` is the number that ``submitted`` returned.

    def submitted(self, row: JobRow) -> int:
        """Open a record and return its index."""
        index = len(self._reserved)
        self._submitted.frombytes(_AS_NUMBERS.pack(*row))
        self._reserved.append(UNKNOWN)
        self._due.append(UNKNOWN)
        self._attempt.append(self._open_attempt(index))
        return index

    def _open_attempt(self, index: int) -> int:
        attempt = self._attempts
        if attempt == len(self._job):  # ten appends for each attempt would take longer
            for times in (self._start, self._end, self._head_since, self._worked):
                times.extend(_BLANK_TIMES)
            for numbers in (self._job, self._lost, self._first_bound, self._number_of_bounds):
                numbers.extend(_BLANK_NUMBERS)
            for flags in (self._ended_as, self._backfilled):
                flags.extend(_BLANK_FLAGS)
        self._job[attempt] = index
        self._attempts += 1
        return attempt

    def rejected(self, index: int) -> None:
        """Note that the machine cannot run the job."""
        self._ended_as[self._attempt[index]] = Status.REJECTED

    def started(self, index: int, now: int, columns: NodeSet) -> None:
        """Note the dispatch and the nodes."""
        attempt = self._attempt[index]
        self._start[attempt] = now
        self._first_bound[attempt] = len(self._bounds)
        self._number_of_bounds[attempt] = len(columns)
        self._bounds.extend(columns)

    def moved(self, index: int, now: int, columns: NodeSet) -> None:
        """Note that the gang has migrated to other nodes, as many as it had."""
        attempt = self._attempt[index]
        self._move_attempt.append(attempt)
        self._move_time.append(now)
        self._move_first_bound.append(self._first_bound[attempt])
        self._move_number_of_bounds.append(self._number_of_bounds[attempt])
        self._first_bound[attempt] = len(self._bounds)
        self._number_of_bounds[attempt] = len(columns)
        self._bounds.extend(columns)

    def ended(self, index: int, now: int, status: Status, executed: int) -> None:
        """Note when and how the job ended, and how long the gang executed."""
        attempt = self._attempt[index]
        self._end[attempt] = now
        self._ended_as[attempt] = status
        self._worked[attempt] = executed
        if status is _ABORTED:
            self._lost[attempt] = executed

    def stopped(self, index: int, now: int, status: Status, executed: int, lost: int) -> None:
        """Note that the current run attempt was stopped and the job returned to the queue.

        Args:
            index: of the record.
            now: ticks.
            status: why it was stopped.
            executed: how long the gang executed, ticks.
            lost: how much of the job's work is discarded, ticks.
        """
        attempt = self._attempt[index]
        self._end[attempt] = now
        self._ended_as[attempt] = status
        self._worked[attempt] = executed
        self._lost[attempt] = lost
        self._attempt[index] = self._open_attempt(index)

    def discarded(self, index: int, lost: int) -> None:
        """Note that work of the job, which waits again, is discarded after its last run attempt has ended.

        Args:
            index: of the record.
            lost: how much, ticks.
        """
        attempt = self._attempt[index] - 1
        while self._job[attempt] != index:
            attempt -= 1
        self._lost[attempt] += lost

    def node_failed(self, node: int, now: int) -> None:
        """Note that a node is down from now on."""
        self._outage_node.append(node)
        self._outage_start.append(now)
        self._outage_end.append(UNKNOWN)

    def node_repaired(self, node: int, now: int) -> None:
        """Note that a node is up again."""
        outage = len(self._outage_node) - 1
        while self._outage_node[outage] != node:
            outage -= 1
        self._outage_end[outage] = now

    def overhead(self, index: int, start: int, end: int, nodes: int, account: Account) -> None:
        """Note that a gang held ``nodes`` for a checkpoint, a restart or a context switch of its own, or waited for one."""
        self._overhead_start.append(start)
        self._overhead_end.append(end)
        self._overhead_nodes.append(nodes)
        self._overhead_job.append(index)
        self._overhead_account.append(_ACCOUNTS[account])

    def blocked(self, index: int, now: int) -> None:
        """Note that the job is left waiting at the head of the queue; the first time before each start counts."""
        attempt = self._attempt[index]
        if self._head_since[attempt] == UNKNOWN:
            self._head_since[attempt] = now

    def backfilled(self, index: int) -> None:
        """Note that the job started while a job ahead in the queue kept waiting."""
        self._backfilled[self._attempt[index]] = 1

    def reserved(self, index: int, start: int, now: int) -> None:
        """Note a guaranteed start, the job's first or one that is renewed."""
        if self._reserved[index] == UNKNOWN:
            self._reserved[index] = self._due[index] = start
        elif self._due[index] > now:
            self._due[index] = start

    # Read afterwards.

    def column(self, name: str) -> IntArray:
        """Return one column, shape ``(jobs,)``, in ticks where it is a time."""
        if name in JobRow._fields:
            return _numbers(self._submitted).reshape(-1, len(JobRow._fields))[:, JobRow._fields.index(name)].copy()
        if name in ("reserved", "due"):
            return _numbers(self._reserved if name == "reserved" else self._due)
        times = {"start": self._start, "end": self._end, "head_since": self._head_since, "worked": self._worked}
        flags = {"ended_as": self._ended_as, "backfilled": self._backfilled}
        return self._of_attempts((times | flags)[name])[_numbers(self._attempt)]

    def seconds(self, name: str) -> FloatArray:
        """Return a tick column in seconds, ``nan`` where it never happened; shape ``(jobs,)``."""
        return in_seconds(self.column(name))

    def _of_attempts(self, column: array[int]) -> IntArray:
        """Return a column of the run attempts, without what is not used yet, shape ``(attempts,)``."""
        return _numbers(column[: self._attempts])

    def columns_of(self, index: int) -> NodeSet:
        """Return the nodes that the job held in its last run attempt, empty if it never ran."""
        return self._nodes_of(self._attempt[index])

    def _nodes_of(self, attempt: int) -> NodeSet:
        first = self._first_bound[attempt]
        return tuple(self._bounds[first : first + self._number_of_bounds[attempt]])

    @property
    def finished(self) -> BoolArray:
        """Which jobs ran to an end, shape ``(jobs,)``."""
        finished: BoolArray = self.column("end") != UNKNOWN
        return finished

    @property
    def allocated(self) -> IntArray:
        """Number of nodes on which each job ran last, 0 if it never ran; shape ``(jobs,)``."""
        return self._nodes()[_numbers(self._attempt)]

    @property
    def blocked_since(self) -> IntArray:
        """When each job was first left waiting at the head of the queue, ticks, ``UNKNOWN`` if never; shape ``(jobs,)``."""
        never = np.iinfo(np.int64).max
        head_since = self._of_attempts(self._head_since)
        first = np.full(len(self), never)
        np.minimum.at(first, self._of_attempts(self._job), np.where(head_since == UNKNOWN, never, head_since))
        return np.where(first == never, UNKNOWN, first)

    @property
    def runs(self) -> RunAttempts:
        """All run attempts that started, the last ones included, in the order in which the jobs joined the queue."""
        attempts = self._all_attempts()
        return attempts.where(attempts.start != UNKNOWN)

    @property
    def stopped_runs(self) -> RunAttempts:
        """The run attempts after which jobs returned to the queue, in the order in which they were stopped."""
        return self._all_attempts().where(self._stopped())

    def _all_attempts(self) -> RunAttempts:
        return RunAttempts(
            self._of_attempts(self._job),
            self._of_attempts(self._start),
            self._of_attempts(self._end),
            self._nodes(),
            self._of_attempts(self._backfilled),
            self._of_attempts(self._head_since),
            self._of_attempts(self._worked),
            self._of_attempts(self._lost),
            self._of_attempts(self._ended_as),
        )

    def _stopped(self) -> npt.NDArray[np.intp]:
        """Return the attempts that were stopped, in that order, which is the order of the attempts that follow them."""
        job = self._of_attempts(self._job)
        order = np.argsort(job, kind="stable")
        again = np.flatnonzero(job[order[1:]] == job[order[:-1]])
        return order[again][np.argsort(order[again + 1])]

    def each_stopped_run(self) -> Iterator[RunAttempt]:
        """Yield the attempts of :attr:`stopped_runs` one by one, with the nodes held."""
        for attempt in self._stopped().tolist():
            yield RunAttempt(
                self._job[attempt],
                self._start[attempt],
                self._end[attempt],
                self._nodes_of(attempt),
                bool(self._backfilled[attempt]),
                Status(self._ended_as[attempt]),
                self._worked[attempt],
                self._lost[attempt],
            )

    @property
    def node_ranges(self) -> NodeRanges:
        """The nodes that gangs held, by run attempt."""
        attempt, since, until, first, nodes, _ = self._ranges()
        run = np.cumsum(self._of_attempts(self._start) != UNKNOWN) - 1  # position in :attr:`runs`
        return NodeRanges(run[attempt], first, nodes, since, until)

    def _ranges(self) -> tuple[IntArray, ...]:
        """Return the ranges of neighbouring nodes that gangs held, in order of start.

        Returns:
            Attempt, since when and until when it held them, first node, number of nodes, and 1 if they were its last ones.
        """
        moves = [_numbers(column) for column in (self._move_attempt, self._move_time)]
        moved, times = moves
        start, end = self._of_attempts(self._start), self._of_attempts(self._end)
        attempt = np.concatenate([moved, np.arange(self._attempts)])
        until = np.concatenate([times, end])
        since = np.concatenate([start[moved], start])
        for position in np.flatnonzero(np.isin(attempt, moved)):  # few gangs migrate
            earlier = times[(moved == attempt[position]) & (np.arange(len(moved)) < position)]
            since[position] = earlier[-1] if len(earlier) else since[position]
        number = np.concatenate([_numbers(self._move_number_of_bounds), self._of_attempts(self._number_of_bounds)]) // 2
        first = np.concatenate([_numbers(self._move_first_bound), self._of_attempts(self._first_bound)])
        order = np.argsort(first, kind="stable")
        held = np.repeat(order, number[order])
        bounds = _numbers(self._bounds).reshape(-1, 2)
        last = (held >= len(moved)).astype(np.int64)
        return attempt[held], since[held], until[held], bounds[:, 0], bounds[:, 1] - bounds[:, 0], last

    def _nodes(self) -> IntArray:
        """Return the number of nodes held in each attempt, shape ``(attempts,)``."""
        nodes = np.zeros(self._attempts, dtype=np.int64)
        attempt, _, _, _, held, last = self._ranges()
        np.add.at(nodes, attempt, held * last)
        return nodes

    @property
    def outages(self) -> NodeOutages:
        """When nodes were down, in order of their failures."""
        return NodeOutages(*map(_numbers, (self._outage_node, self._outage_start, self._outage_end)))

    @property
    def overheads(self) -> Overheads:
        """When gangs on dedicated nodes were held up by checkpoints, restarts and context switches."""
        columns = self._overhead_start, self._overhead_end, self._overhead_nodes, self._overhead_job, self._overhead_account
        return Overheads(*map(_numbers, columns))


def in_seconds(ticks: IntArray) -> FloatArray:
    """Return ticks in seconds, ``nan`` where they are ``UNKNOWN``."""
    seconds: FloatArray = np.where(ticks == UNKNOWN, np.nan, ticks / TICKS_PER_SECOND)
    return seconds


def _numbers(column: array[int]) -> IntArray:
    """Return a copy of a column of numbers."""
    return np.array(column, dtype=np.int64)
