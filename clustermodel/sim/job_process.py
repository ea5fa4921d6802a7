"""The life of a job: one SimPy process from its submission to its completion, whatever happens to it in between.

It consists of run attempts (:class:`Execution`).  What has been saved of the job between them is its :class:`Image`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Final, NamedTuple

from simpy import Event

from clustermodel.machine.node_set import NodeSet, count, holds_any
from clustermodel.plans.profile import SHORTEST_EXTENSION
from clustermodel.policies.view import (
    MIGRATING,
    RESIZING,
    RESTORING,
    RETURNING,
    RUNNING,
    STOPPING,
    GangState,
    QueuedJob,
    RunningJob,
)
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import REQUEUING, Status
from clustermodel.sim.events import JobProcess
from clustermodel.workload.job import UNSET, JobRow, Sizes

SAVING: Final = (Status.CHECKPOINTED, Status.SUSPENDED)  # outcomes of a run attempt that keep what the job has executed
ENDS: Final = (Status.COMPLETED, Status.KILLED)  # outcomes that end a job whose work counts
ALLOWED: Final = {
    RUNNING: (MIGRATING, RESIZING, STOPPING),
    RESTORING: (RUNNING, RETURNING),
    MIGRATING: (RUNNING, STOPPING),
    RESIZING: (RUNNING, STOPPING),
    STOPPING: (),
    RETURNING: (),
}
"""Which states of a run attempt may follow which.  It may end in any of them: its outcome says how."""
Terms = tuple[int, int, int, Status]
"""On what terms a run attempt starts: on how many nodes, how long it executes, how long the scheduler expects it to (ticks),
and how it ends if nothing stops it."""


class Image(NamedTuple):
    """What has been saved of a job."""

    work: int  # how much of its run time is behind it, ticks
    stored: int  # how much of that is in the checkpoint store, ticks: all of it, unless the image is in memory
    nodes: int  # how many tasks it has; the job can go on with no other number of nodes
    columns: NodeSet | None = None  # the nodes whose memory holds it; ``None`` where it is in the checkpoint store


def image_after(
    before: Image | None, outcome: Status, executed: int, nodes: int, columns: NodeSet, *, checkpointed: int = 0
) -> tuple[Image | None, int]:
    """Return what is saved of a job after a run attempt, and how much work is discarded, of this and earlier ones, ticks."""
    # `before` had been saved, on its nodes again when the attempt ended; `executed` is of this attempt, of which
    # `checkpointed` are in the store by a periodic checkpoint.
    if outcome in ENDS:
        return None, 0
    saved, stored = (before.work, before.stored) if before is not None else (0, 0)
    total = saved + executed
    if checkpointed:
        stored = saved + checkpointed
    match outcome:
        case Status.CHECKPOINTED:
            return Image(total, total, nodes), 0
        case Status.SUSPENDED:
            return Image(total, stored, nodes, columns), 0
        case Status.PREEMPTED | Status.REQUEUED | Status.FAILED:
            return (Image(stored, stored, nodes) if stored else None), total - stored
        case _:
            return None, total


class Phase(NamedTuple):
    """A part of a run attempt, which is a list of phases: see :mod:`clustermodel.sim.phases`."""

    account: Account  # what the time of the gang's nodes is charged to
    ticks: int  # how long it lasts, or one round of a transfer if the checkpoint store has room at once; how long it executes
    tasks: int = 0  # of a transfer, how many are written to the checkpoint store, or read; 0: it is none
    interruptible: bool = True  # whether the gang can be stopped, but by a failure


class Segment:
    """What the gang of a malleable job has executed on one number of nodes, in one run attempt; ticks of these nodes."""

    __slots__ = ("attempt", "executed", "nodes", "stored")

    def __init__(self, attempt: int, nodes: int, executed: int, stored: int) -> None:
        self.attempt = attempt  # where its records are
        self.nodes = nodes
        self.executed = executed  # without what has been discarded
        self.stored = stored  # how much of that is in the checkpoint store


class JobInSystem:
    """All that the mechanism knows of a job between its submission and its completion."""

    __slots__ = (
        "attempts", "execution", "image", "index", "is_cancelled", "memory_on", "most_saved", "process", "queued",
        "row", "run_time", "segments", "sizes", "without_progress",
    )  # fmt: skip
    __deletable__ = ("execution",)  # as compiled classes want to know

    process: JobProcess  # the job's life
    execution: Execution  # its latest run attempt
    segments: list[Segment]  # of a malleable job, those that are over

    def __init__(self, row: JobRow, index: int) -> None:
        memory = row.memory if row.memory > 0 else 0
        self.queued = QueuedJob(row.id, row.nodes, row.submit, row.estimate, row.user, row.group, row.priority, memory)
        """The job as policies know it."""
        self.row = row  # the job as its stream submitted it
        self.index = index  # of its record
        self.run_time = row.run  # how long it runs if nothing kills it, ticks; no policy sees this
        self.image: Image | None = None  # what has been saved of it
        self.memory_on: NodeSet = ()  # the nodes on which it has memory, running or suspended, where memory is limited
        self.attempts = 0  # how often it has been started
        self.is_cancelled = False  # whether it never runs, as a job that it depends on did not end as it had to
        self.most_saved = 0  # the most that has been saved of it, ticks
        self.without_progress = 0  # run attempts since more of it was saved
        self.sizes: Sizes | None = None  # of a malleable job

    def set_sizes(self, sizes: Sizes, nodes: int) -> None:
        """Make it malleable, on a machine of which so many nodes can be in use at a time."""
        of_sets = [nodes if allowed is None else count(allowed) for allowed in self.queued.sets_allowed()]
        most = max(of_sets) if sizes.most == UNSET else min(sizes.most, max(of_sets))
        self.sizes, self.segments = Sizes(max(sizes.least, 1), most, sizes.resize), []
        self.queued.sizes = self.sizes.least, most

    @property
    def saved(self) -> int:
        """How much of its run time has been saved, ticks."""
        return self.image.work if self.image is not None else 0

    def store_all(self) -> None:
        """Note that all that it has executed in segments that are over is in the checkpoint store."""
        if self.sizes is not None:
            for segment in self.segments:
                segment.stored = segment.executed

    @property
    def suspended_on(self) -> NodeSet | None:
        return self.image.columns if self.image is not None else None

    @property
    def saved_on(self) -> int | None:
        """The number of nodes with which it has been saved; ``None`` if it has not been."""
        return self.image.nodes if self.image is not None else None


class Execution(RunningJob):
    """One run attempt of a job, from ``start`` on: what every kind of gang can do, wherever it runs."""

    __slots__ = ("begun", "checkpointed", "duration", "interval", "length", "outcome", "owner", "resized_at")

    def __init__(self, owner: JobInSystem, start: int, columns: NodeSet, terms: Terms) -> None:
        nodes, self.duration, length, self.outcome = terms  # as far as known
        RunningJob.__init__(self, owner.queued, start, columns, nodes, length)
        self.owner = owner  # whose run attempt it is
        self.length = length
        self.interval: int | None = None  # how long it executes between two periodic checkpoints, ticks, if there are any
        self.begun = 0  # how long it had executed when the last of them began, ticks
        self.checkpointed = 0  # how much of what it has executed periodic checkpoints have saved, ticks
        self.resized_at = 0  # how long it had executed when it was last resized, ticks of its present number of nodes

    def enter(self, state: GangState) -> None:
        assert state in ALLOWED[self.state], f"job {self.job.id}: {self.state.value} becomes {state.value}"
        self.state = state

    def next_checkpoint(self) -> int:
        """Return how long it will have executed when its next periodic checkpoint begins, ticks; its duration if none will."""
        if self.interval is None:
            return self.duration
        return min(self.begun + self.interval, self.duration)

    @abstractmethod
    def run(self) -> Generator[Event, object, None]:
        """Hold the nodes until the run attempt has ended; they are free when this returns.  The job's process runs it."""

    @abstractmethod
    def executed(self) -> int:
        """Return how long it has executed, ticks of its present number of nodes: this run attempt alone."""

    def overhead_to_come(self) -> int:
        """Return its pending overhead and periodic checkpoints, ticks of its own slices; ``expected_end`` has other ones."""
        return 0

    @abstractmethod
    def begin(self) -> None:
        """Plan its phases: what it spends before it executes, and its periodic checkpoints."""

    @abstractmethod
    def leaving(self, how: Status) -> list[Phase]:
        """Return what it still spends if it is stopped now."""

    def resize_to(self, columns: NodeSet, nodes: int, executed: int, phases: list[Phase]) -> None:
        """Go on with another number of nodes, after ``phases``; of this number, it has executed for so many ticks."""
        raise NotImplementedError  # gangs in rows cannot

    @abstractmethod
    def stop(self, how: Status) -> bool:
        """Stop executing at once; return whether that frees the nodes at the present time, so that another cycle follows."""


def expected_left(running: Mapping[int, Execution]) -> dict[int, int]:
    """Return how long each running gang is expected to need its nodes, or slices, by job id, ticks of its own."""
    left: dict[int, int] = {}
    for number, gang in running.items():
        ticks = 0 if gang.stopping else gang.length - gang.executed()
        if ticks <= 0 and not gang.stopping:
            ticks = if_late(ticks)
        left[number] = ticks + gang.overhead_to_come()
    return left


def if_late(left: int) -> int:
    """Return how long a gang is expected to go on that has outlived its estimate, by ``-left``: as long again."""
    return max(SHORTEST_EXTENSION, -left)


def progress(gang: RunningJob) -> int:
    """Return how long a running gang's job has executed, ticks, with the work that was saved of earlier run attempts."""
    assert isinstance(gang, Execution)
    image = gang.owner.image
    return gang.executed() if image is None else image.work + gang.executed()


def overhead_left(gang: RunningJob) -> int:
    """Return a running gang's pending overhead, with its periodic checkpoints to come, ticks of its own slices."""
    assert isinstance(gang, Execution)
    return gang.overhead_to_come()


def needs_any(gang: Execution, nodes: Collection[int]) -> bool:
    """Return whether a running gang cannot go on without one of ``nodes``: its own, and those whose memory holds its image."""
    image = gang.owner.image
    if gang.fetching and image is not None and image.columns is not None and holds_any(image.columns, nodes):
        return True
    return holds_any(gang.columns, nodes)


def job_life(
    job: JobInSystem, request: Callable[[JobInSystem], None], ended: Callable[[JobInSystem], None]
) -> Generator[Event, object, None]:
    """Run, and wait for nodes and run again for as long as run attempts do not end the job."""
    # The process (JobProcess) has waited for the job's first nodes when this begins.
    while not job.is_cancelled:
        yield from job.execution.run()
        ended(job)
        if job.execution.outcome not in REQUEUING:
            return
        request(job)
        yield Event(job.process.env)  # which never happens: JobProcess.go_on
