"""The language between the coordinator and a policy: what happened, what the machine looks like, what to do.

A policy is any object with a ``name``, a ``begin`` and a ``decide`` method (:class:`Policy`); it needs no base class and
knows nothing of SimPy.  Times are integer ticks (:mod:`clustermodel.ticks`).  It sees what a real scheduler sees: sizes,
estimates, who submitted what and when - never the run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from clustermodel.machine import Machine
from clustermodel.schedule.node_set import NodeSet
from clustermodel.speedup import LINEAR, Speedup


class QueuedJob:
    """A job as the scheduler knows it; read-only by convention, equal only to itself."""

    __slots__ = ("estimate", "group", "id", "nodes", "priority", "queue_order", "submit", "user")

    def __init__(self, id: int, nodes: int, submit: int, estimate: int, user: int, group: int, priority: int) -> None:
        self.id = id
        self.nodes = nodes
        """Number of nodes the gang needs."""
        self.submit = submit
        """Submission time, ticks."""
        self.estimate = estimate
        """The user's estimate of the run time, ticks."""
        self.user = user
        self.group = group
        self.priority = priority
        self.queue_order = (-priority, submit, id)
        """Sorting key of the queue: priority (higher first), then submit time, then id (docs/model)."""

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.nodes} nodes>"


class RunningJob:
    """A dispatched gang as the scheduler knows it."""

    __slots__ = ("columns", "expected_end", "fetching", "job", "migrating", "nodes", "ran", "rows", "start", "stopping")

    def __init__(self, job: QueuedJob, start: int, columns: NodeSet, nodes: int, length: int) -> None:
        self.job = job
        self.start = start
        """Start time, ticks."""
        self.expected_end = start + length
        """Start plus estimate, or plus the time limit it was started with, ticks.  A job may end earlier; later only where
        nothing kills it at the estimate, where it shares its nodes in time, or where it waits for the checkpoint store."""
        self.columns = columns
        """The nodes it holds."""
        self.nodes = nodes
        """How many they are: as many as the job asked for, unless it was started with another width."""
        self.rows = 0
        """The rows of the Ousterhout matrix in which it runs, a bitmask; 0 where nodes are not shared in time."""
        self.migrating = False
        """Whether it has been moved at this instant, or has still to spend a checkpoint or a restart."""
        self.ran = 0
        """For how long the job has run, ticks, that of earlier runs included which was saved; known when the gang has ended."""
        self.fetching = False
        """Whether it does not work yet, because what was saved when it was preempted has still to be brought to its nodes."""
        self.stopping = False
        """Whether it has been preempted and does not work any more, although it still holds its nodes."""

    def __repr__(self) -> str:
        return f"<running {self.job!r} since {self.start}>"


class Batch(NamedTuple):
    """Everything that happened at one instant, settled: ends first, then submissions, each in queue order."""

    ended: Sequence[RunningJob]
    submitted: Sequence[QueuedJob]
    alarm: bool
    """Whether the policy's alarm clock rang."""
    requeued: Sequence[QueuedJob] = ()
    """Jobs that were stopped at their time limits, or preempted, and wait again, in queue order; their gangs are among
    ``ended``."""


class View:
    """The machine as a policy sees it, valid during one call of ``decide``; nothing in it can be changed."""

    __slots__ = ("can_suspend", "idle", "now", "overhead_left", "progress", "running", "saved", "waiting")

    now: int
    """The present, ticks."""
    idle: int
    """Number of idle nodes."""
    waiting: Mapping[int, QueuedJob]
    """Waiting jobs by id, in queue order; the jobs just submitted are among them."""
    running: Mapping[int, RunningJob]
    """Running gangs by job id."""
    progress: Callable[[RunningJob], int]
    """How long a gang has really run, ticks: without the slices of others, context switches and migrations, and with the work
    that was saved when it was preempted."""
    overhead_left: Callable[[RunningJob], int]
    """How long a gang is still held up by migrations that have been decided, ticks of its own slices."""
    saved: Callable[[QueuedJob], int]
    """How much of its run time a waiting job has behind it, ticks: what was saved when it was preempted."""
    can_suspend: Callable[[RunningJob], bool]
    """Whether the memory of a gang's nodes has room for one more suspended task each."""


class Reason(NamedTuple):
    """Why a job starts now: what the decision log keeps and ``explain`` prints."""

    rule: str
    """The rule that let it in, in the field's words."""
    holder: int | None = None
    """The waiting job that held the (first) reservation."""
    shadow: int | None = None
    """When that job was expected to start, ticks: the shadow time (001, section 3.1)."""
    extra: int | None = None
    """Nodes left over at the shadow time before this start: the extra nodes."""
    reserved: int | None = None
    """The start time this job itself had been given, ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Dispatch a waiting job now, as a whole gang."""

    job: QueuedJob
    columns: NodeSet | None = None
    """The nodes to use; the lowest idle ones when ``None``.  Must be given together with ``row``."""
    reason: Reason | None = None
    """Filled in only when ``Setup.explain`` asks for it."""
    row: int | None = None
    """The row of the Ousterhout matrix to run in, for policies that share nodes in time: 0 to MPL - 1."""
    nodes: int | None = None
    """The width, where it is another than the job asked for; how long the job then takes, ``Setup.speedup`` says."""
    limit: int | None = None
    """Ticks after which the job, if it still runs, is stopped and waits again: its work is lost, not its turn in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End a running job now; its work is lost.

    One that has had its estimate is *killed* as by a batch system, and its work counts (the archive's convention).
    """

    job: QueuedJob
    requeue: bool = False
    """Whether it waits again, at its place in the queue: preemption by kill and restart (004, section 4.2).  It begins again
    from its last checkpoint, or from the beginning if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Preempt a running job: write it to the checkpoint store and let it wait again, at its place in the queue.

    It stops working at once, and holds its nodes until it is written.  When it starts again, on any nodes, they are first held
    for a restart.
    """

    job: QueuedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """Preempt a running job: leave it in the memory of its nodes and let it wait again, at its place in the queue.

    It stops working at once, and holds its nodes for a context switch.  When it starts again they are held for another one; on
    other nodes than its own, for a checkpoint and a restart instead.
    """

    job: QueuedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Tell a waiting job when it will start at the latest.  The first promise is kept in the job's record."""

    job: QueuedJob
    start: int
    """Promised start, ticks."""
    guaranteed: bool = True
    """Whether that is certain as long as jobs are killed at their estimates; not where it rests on predictions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt:
    """Set the policy's alarm clock.  It has one: a later ``WakeAt`` replaces the time, and ringing clears it."""

    time: int | None
    """Ticks, after now; ``None`` clears it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """Let a gang run in one more row of the Ousterhout matrix, on its own columns."""

    job: QueuedJob
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Take a gang out of a row.  When all decisions have been carried out it must be in at least one."""

    job: QueuedJob
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehome:
    """Make one of a gang's rows its home row; in the others it is a replica (002, section 4.1).

    The home row is the one of :class:`Start` until then.  It matters to pictures only.
    """

    job: QueuedJob
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate:
    """Move gangs to other columns by checkpoint and restart (002, section 5.4); they must be in no row at the moment.

    Each gang of ``moves`` spends a checkpoint and a restart at the beginning of its next slice, and each gang of
    ``blocked``, whose nodes it shares until then, waits for the checkpoint at the beginning of its own.
    """

    moves: tuple[tuple[QueuedJob, NodeSet], ...]
    """Gangs and their new columns."""
    blocked: tuple[QueuedJob, ...]
    """Gangs that have to wait until the checkpoints are written."""


Decision = Start | Kill | Checkpoint | Suspend | Reserve | WakeAt | Replicate | Withdraw | Rehome | Migrate


def _unknown_run_time(job: QueuedJob) -> int:
    raise LookupError(f"job {job.id}: nobody knows its run time")


class Setup(NamedTuple):
    """What a policy learns before a run."""

    nodes: int
    """Size of the machine."""
    kill_at_estimate: bool
    """Whether running jobs end at their estimates at the latest."""
    rng: np.random.Generator
    """The policy's own random stream."""
    explain: bool
    """Whether to attach a :class:`Reason` to each :class:`Start`."""
    machine: Machine
    """The whole specification: time slices, context switches and checkpointing."""
    speedup: Speedup = LINEAR
    """How estimates and run times change where a job is started with another width than it asked for."""
    run_time: Callable[[QueuedJob], int] = _unknown_run_time
    """How long a job in the system would run if nothing killed it, ticks: what no real scheduler knows.  It is there for the
    predictors of :mod:`clustermodel.policies.predictors` that stand for better ones than there are."""


@runtime_checkable
class Policy(Protocol):
    """A scheduling policy."""

    @property
    def name(self) -> str:
        """Short name for tables and file names."""

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run and get ready for one on this machine."""

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        """Return what to do, in order, now that ``batch`` has happened."""
