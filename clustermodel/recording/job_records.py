"""What happened to each job: written by the mechanism while it runs, read as columns afterwards.

A record is 18 integers in two flat arrays, 144 bytes, and 16 bytes for each run of neighbouring nodes; a run that did not
end its job takes 80 more.  No Python object of a finished job stays behind.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.job import JobRow
from clustermodel.recording.node_time import NodeTicks, node_seconds, node_ticks
from clustermodel.schedule.node_set import NodeSet
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

UNKNOWN: Final = -1
"""In a tick column: it never happened."""


class Status(IntEnum):
    """How a job ended."""

    UNFINISHED = 0
    COMPLETED = 1
    KILLED = 2
    """Reached its estimate and was killed there; its work counts as useful (the archive's convention)."""
    ABORTED = 3
    """Killed by the policy; its work is lost."""
    REJECTED = 4
    """Asked for more nodes than the machine has, or for none."""
    REQUEUED = 5
    """Stopped at a time limit to run again: how a try ends, never a job."""
    PREEMPTED = 6
    """Killed by the policy to run again: how a try ends, never a job."""
    CHECKPOINTED = 7
    """Preempted, its work written to the checkpoint store: how a try ends, never a job."""
    SUSPENDED = 8
    """Preempted, its work kept in the memory of its nodes: how a try ends, never a job."""

    @property
    def label(self) -> str:
        """The word used in tables and files."""
        return self.name.lower()


_GIVEN: Final = JobRow._fields
_OBSERVED: Final = ("start", "end", "ended_as", "head_since", "reserved", "backfilled", "worked", "ranges_from", "ranges")
_START, _END, _ENDED_AS, _HEAD_SINCE, _RESERVED, _BACKFILLED, _WORKED, _RANGES_FROM, _RANGES = range(len(_OBSERVED))
_TRY: Final = ("job", "start", "end", "ranges_from", "ranges", "backfilled", "head_since", "worked", "lost", "ended_as")
_OVERHEAD: Final = ("start", "end", "nodes")
_NOTHING_YET: Final = (UNKNOWN, UNKNOWN, Status.UNFINISHED, UNKNOWN, UNKNOWN, 0, UNKNOWN, 0, 0)


PREEMPTIONS: Final = (Status.PREEMPTED, Status.CHECKPOINTED, Status.SUSPENDED)
"""How a try ends that the policy has stopped so that others can run."""


class Try(NamedTuple):
    """A run of a job that was stopped before the job had ended, so that it had to run again."""

    job: int
    """Index of the job's record."""
    start: int
    """Ticks."""
    end: int
    """Ticks."""
    columns: NodeSet
    """The nodes it held."""
    backfilled: bool
    """Whether it started while a job before it in the queue went on waiting."""
    ended_as: Status
    """Why it was stopped, and what became of its work."""
    worked: int
    """For how long it worked, ticks."""
    lost: int
    """How much work of the job was lost by its end, ticks; that of earlier tries may be among it."""


class Tries(NamedTuple):
    """All runs that were stopped before their jobs had ended, as columns, in order of their ends; shapes ``(tries,)``."""

    job: IntArray
    """Index of the job's record."""
    start: IntArray
    """Ticks."""
    end: IntArray
    """Ticks."""
    nodes: IntArray
    """How many nodes the try held."""
    backfilled: IntArray
    """1 if the try started while a job before it in the queue went on waiting."""
    head_since: IntArray
    """When the job was left waiting at the head of the queue before this try, :data:`UNKNOWN` if it was not."""
    worked: IntArray
    """For how long it worked, ticks."""
    lost: IntArray
    """How much work of the job was lost by its end, ticks."""
    ended_as: IntArray
    """A :class:`Status`."""


class Overheads(NamedTuple):
    """When gangs held nodes for checkpoints, restarts and context switches of their own, as columns; shapes ``(times,)``."""

    start: IntArray
    """Ticks."""
    end: IntArray
    """Ticks."""
    nodes: IntArray


class Holdings(NamedTuple):
    """Who held which nodes when, in runs that ended and in those that were stopped: a row for each run of neighbouring nodes;
    shapes ``(holdings,)``.
    """

    job: IntArray
    """Index of the job's record."""
    start: IntArray
    """Ticks."""
    end: IntArray
    """Ticks."""
    first_node: IntArray
    nodes: IntArray
    """How many nodes from ``first_node`` on."""
    ended_as: IntArray
    """A :class:`Status`."""
    lost: IntArray
    """How much work of the job was lost by the end of the run, ticks."""


class JobRecords:
    """The records of one run, in order of submission.

    Columns in ticks, besides those of :class:`~clustermodel.job.JobRow`: ``start``, ``end``; ``ended_as`` (a
    :class:`Status`); ``worked``, for how long it really ran, without the slices of others, overheads and lost work;
    ``head_since``, when the job was left waiting at the head of the queue (*blocked*) before its last start;
    ``reserved``, the first start it was promised; ``backfilled``, 1 if it started while a job before it in the queue
    waited.  :data:`UNKNOWN` where something never happened.
    """

    __slots__ = ("_columns", "_given", "_observed", "_overheads", "_tries")

    def __init__(self) -> None:
        self._given = array("q")
        self._observed = array("q")
        self._columns = array("q")  # bounds of the node ranges of all gangs, in order of start
        self._tries = array("q")
        self._overheads = array("q")

    def __len__(self) -> int:
        return len(self._observed) // len(_OBSERVED)

    # Written by the mechanism; ``index`` is the number that ``submitted`` returned.

    def submitted(self, row: JobRow) -> int:
        """Open a record and return its index."""
        index = len(self._observed) // len(_OBSERVED)
        self._given.extend(row)
        self._observed.extend(_NOTHING_YET)
        return index

    def rejected(self, index: int) -> None:
        """Note that the machine cannot run the job."""
        self._observed[index * len(_OBSERVED) + _ENDED_AS] = Status.REJECTED

    def started(self, index: int, now: int, columns: NodeSet) -> None:
        """Note the dispatch and the nodes."""
        at = index * len(_OBSERVED)
        observed = self._observed
        observed[at + _START] = now
        observed[at + _RANGES_FROM] = len(self._columns)
        observed[at + _RANGES] = len(columns)
        self._columns.extend(columns)

    def ended(self, index: int, now: int, status: Status, worked: int) -> None:
        """Note the end, how it came, and for how long the gang has really run."""
        at = index * len(_OBSERVED)
        self._observed[at + _WORKED] = worked
        self._observed[at + _END] = now
        self._observed[at + _ENDED_AS] = status

    def stopped(self, index: int, now: int, status: Status, worked: int, lost: int) -> None:
        """Note that the run that began at the last start did not end the job, which waits again.

        Args:
            index: of the record.
            now: ticks.
            status: why it was stopped.
            worked: for how long it worked, ticks.
            lost: how much of the job's work is lost, ticks.
        """
        at = index * len(_OBSERVED)
        observed = self._observed
        nodes = observed[at + _RANGES_FROM], observed[at + _RANGES]
        flags = observed[at + _BACKFILLED], observed[at + _HEAD_SINCE]
        self._tries.extend((index, observed[at + _START], now, *nodes, *flags, worked, lost, status))
        observed[at + _START] = observed[at + _HEAD_SINCE] = UNKNOWN
        observed[at + _RANGES] = observed[at + _BACKFILLED] = 0

    def overhead(self, start: int, end: int, nodes: int) -> None:
        """Note that a gang held ``nodes`` without working, for a checkpoint, a restart or a context switch of its own."""
        self._overheads.extend((start, end, nodes))

    def blocked(self, index: int, now: int) -> None:
        """Note that the job is left waiting at the head of the queue; the first time before each start counts."""
        at = index * len(_OBSERVED) + _HEAD_SINCE
        if self._observed[at] == UNKNOWN:
            self._observed[at] = now

    def backfilled(self, index: int) -> None:
        """Note that the job started while a job before it in the queue went on waiting."""
        self._observed[index * len(_OBSERVED) + _BACKFILLED] = 1

    def reserved(self, index: int, start: int) -> None:
        """Note a promised start; the first promise counts."""
        at = index * len(_OBSERVED) + _RESERVED
        if self._observed[at] == UNKNOWN:
            self._observed[at] = start

    # Read afterwards.

    def column(self, name: str) -> IntArray:
        """Return one column, shape ``(jobs,)``, in ticks where it is a time."""
        names, flat = (_GIVEN, self._given) if name in _GIVEN else (_OBSERVED, self._observed)
        table = np.frombuffer(flat, dtype=np.int64) if len(flat) else np.empty(0, dtype=np.int64)
        column: IntArray = table.reshape(-1, len(names))[:, names.index(name)].copy()
        return column

    @property
    def blocked_since(self) -> IntArray:
        """When each job was first left waiting at the head of the queue, ticks, :data:`UNKNOWN` if never; shape ``(jobs,)``."""
        never = np.iinfo(np.int64).max
        last, tries = self.column("head_since"), self.earlier_tries
        first = np.where(last == UNKNOWN, never, last)
        blocked = tries.head_since != UNKNOWN
        np.minimum.at(first, tries.job[blocked], tries.head_since[blocked])
        return np.where(first == never, UNKNOWN, first)

    def seconds(self, name: str) -> FloatArray:
        """Return a tick column in seconds, ``nan`` where it never happened; shape ``(jobs,)``."""
        return _in_seconds(self.column(name))

    def columns_of(self, index: int) -> NodeSet:
        """Return the nodes that the job held, empty if it never ran."""
        at = index * len(_OBSERVED)
        return self._ranges(self._observed[at + _RANGES_FROM], self._observed[at + _RANGES])

    def _ranges(self, first: int, count: int) -> NodeSet:
        return tuple(self._columns[first : first + count])

    def _held(self, first: IntArray, count: IntArray) -> IntArray:
        """Return how many nodes are in each of these stretches of the ranges' bounds."""
        bounds = np.frombuffer(self._columns, dtype=np.int64) if len(self._columns) else np.empty(0, dtype=np.int64)
        # Nodes in all ranges up to each; should that be more than 64 bits hold, it wraps, and so do the differences.
        before = np.concatenate([[0], np.cumsum(bounds[1::2] - bounds[::2])])
        held: IntArray = before[(first + count) // 2] - before[first // 2]
        return held

    @property
    def allocated(self) -> IntArray:
        """How many nodes each job ran on, 0 if it never ran; shape ``(jobs,)``."""
        return self._held(self.column("ranges_from"), self.column("ranges"))

    @property
    def dedicated(self) -> IntArray:
        """How long each job that ran to an end runs, in ticks, on the nodes it asked for: what a slowdown compares with.

        That is how long it really ran, unless it was given another width.  Shape ``(jobs,)``.
        """
        worked, run, estimate, ended_as = (self.column(name) for name in ("worked", "run", "estimate", "ended_as"))
        reshaped = (self.allocated != self.column("nodes")) & (worked != UNKNOWN)
        asked: IntArray = np.where(ended_as == Status.COMPLETED, run, np.minimum(run, estimate))
        return np.where(reshaped, asked, worked)

    @property
    def earlier_tries(self) -> Tries:
        """The runs that were stopped before their jobs had ended."""
        table = np.frombuffer(self._tries, dtype=np.int64) if len(self._tries) else np.empty(0, dtype=np.int64)
        index, start, end, first, count, *rest = table.reshape(-1, len(_TRY)).T.copy()
        return Tries(index, start, end, self._held(first, count), *rest)

    def each_earlier_try(self) -> Iterator[Try]:
        """Yield the runs that were stopped before their jobs had ended, with the nodes they held."""
        for at in range(0, len(self._tries), len(_TRY)):
            index, start, end, first, count, backfilled, _, worked, lost, status = self._tries[at : at + len(_TRY)]
            yield Try(index, start, end, self._ranges(first, count), bool(backfilled), Status(status), worked, lost)

    @property
    def holdings(self) -> Holdings:
        """Who held which nodes when."""
        last = [self.column(name) for name in ("start", "end", "ranges_from", "ranges", "ended_as", "worked")]
        start, end, first, count, ended_as, worked = (column[self.finished] for column in last)
        lost = np.where(ended_as == Status.ABORTED, worked, 0)
        table = np.frombuffer(self._tries, dtype=np.int64) if len(self._tries) else np.empty(0, dtype=np.int64)
        tries = dict(zip(_TRY, table.reshape(-1, len(_TRY)).T.copy(), strict=True))
        runs = np.array(
            [
                np.concatenate([np.flatnonzero(self.finished), tries["job"]]),
                np.concatenate([start, tries["start"]]),
                np.concatenate([end, tries["end"]]),
                np.concatenate([ended_as, tries["ended_as"]]),
                np.concatenate([lost, tries["lost"]]),
            ]
        )
        first, pairs = np.concatenate([first, tries["ranges_from"]]), np.concatenate([count, tries["ranges"]]) // 2
        of = np.repeat(np.arange(len(first)), pairs)  # which run each range belongs to
        at = np.repeat(first - 2 * (np.cumsum(pairs) - pairs), pairs) + 2 * np.arange(len(of))
        bounds = np.frombuffer(self._columns, dtype=np.int64) if len(self._columns) else np.empty(0, dtype=np.int64)
        job, start, end, ended_as, lost = runs[:, of]
        return Holdings(job, start, end, bounds[at], bounds[at + 1] - bounds[at], ended_as, lost)

    @property
    def overheads(self) -> Overheads:
        """When gangs held nodes for checkpoints, restarts and context switches of their own."""
        table = np.frombuffer(self._overheads, dtype=np.int64) if len(self._overheads) else np.empty(0, dtype=np.int64)
        return Overheads(*table.reshape(-1, len(_OVERHEAD)).T.copy())

    @property
    def tries(self) -> IntArray:
        """How often each job was started, shape ``(jobs,)``."""
        tries: IntArray = np.bincount(self.earlier_tries.job, minlength=len(self)) + (self.column("start") != UNKNOWN)
        return tries

    @property
    def preemptions(self) -> IntArray:
        """How often each job was preempted, shape ``(jobs,)``."""
        tries = self.earlier_tries
        counts: IntArray = np.bincount(tries.job[np.isin(tries.ended_as, PREEMPTIONS)], minlength=len(self))
        return counts

    @property
    def lost(self) -> IntArray:
        """Ticks for which each job worked in vain, shape ``(jobs,)``: in tries that were stopped, or until it was aborted."""
        lost: IntArray = np.where(self.column("ended_as") == Status.ABORTED, self.column("worked"), 0)
        tries = self.earlier_tries
        np.add.at(lost, tries.job, tries.lost)
        return lost

    @property
    def wasted(self) -> NodeTicks:
        """Node-ticks for which each job worked in vain, shape ``(jobs,)``; all of them are the ledger's account *lost*."""
        last = np.where(self.column("ended_as") == Status.ABORTED, self.column("worked"), 0)
        tries = self.earlier_tries
        each = node_ticks(np.concatenate([self.allocated, tries.nodes]), np.concatenate([last, tries.lost]))
        wasted, of_tries = each[: len(self)], each[len(self) :]
        np.add.at(wasted, tries.job, of_tries)
        return wasted

    @property
    def useful(self) -> NodeTicks:
        """Node-ticks for which each job worked, without what was lost, shape ``(jobs,)``: the ledger's account *useful*."""
        ended_as, worked = self.column("ended_as"), self.column("worked")
        return node_ticks(self.allocated, np.where((ended_as == Status.ABORTED) | (worked == UNKNOWN), 0, worked))

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which jobs ran to an end, shape ``(jobs,)``."""
        ended: npt.NDArray[np.bool_] = self.column("end") != UNKNOWN
        return ended

    @property
    def frame(self) -> pd.DataFrame:
        """The records as pandas, one row per job; docs/outputs lists every column with unit and formula."""
        import pandas as pd

        start, end, submit = self.seconds("start"), self.seconds("end"), self.seconds("submit")
        labels = np.array([status.label for status in Status])
        return pd.DataFrame(
            {
                "job": self.column("id"),
                "submit_s": submit,
                "start_s": start,
                "end_s": end,
                "nodes": self.column("nodes"),
                "allocated_nodes": self.allocated,
                "run_s": self.seconds("worked"),
                "estimate_s": self.seconds("estimate"),
                "user": self.column("user"),
                "group": self.column("group"),
                "priority": self.column("priority"),
                "status": labels[self.column("ended_as")],
                "wait_s": start - submit,
                "response_s": end - submit,
                "reserved_s": self.seconds("reserved"),
                "head_since_s": _in_seconds(self.blocked_since),
                "blocked": self.blocked_since != UNKNOWN,
                "backfilled": self.column("backfilled") == 1,
                "tries": self.tries,
                "wasted_node_s": node_seconds(self.wasted),
            }
        )


def _in_seconds(ticks: IntArray) -> FloatArray:
    seconds: FloatArray = np.where(ticks == UNKNOWN, np.nan, ticks / TICKS_PER_SECOND)
    return seconds
