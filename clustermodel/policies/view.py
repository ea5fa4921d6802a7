"""What a policy sees: the jobs that wait and run, the nodes that are down, what has just happened, and the machine.

Times are integer ticks (:mod:`clustermodel.ticks`).  A policy sees what a real scheduler sees: sizes, estimates, who submitted
what and when - never the run time.  What it answers stands in :mod:`clustermodel.policies.interface`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask
from clustermodel.plans.by_node import Layout
from clustermodel.plans.free_memory import FreeMemory


class QueuedJob:
    """A job as the scheduler knows it, equal only to itself.  A policy that assigns to a field is refused (DecisionError)."""

    __slots__ = {  # noqa: RUF023  help() shows the texts
        "id": "",
        "nodes": "Number of nodes the gang needs.",
        "submit": "Submission time, ticks.",
        "estimate": "The user's estimate of the run time, ticks.",
        "user": "", "group": "", "priority": "",
        "memory": "Memory that each task needs on its node, KiB; 0 where it is unknown.",
        "queue_order": "Sorting key of the queue: priority (higher first), then submit time, then id (docs/model).",
        "eligible": """The nodes that it may have if it starts now, as ranges; ``None``: all.  Those that are reserved for
        others, or known to be down, before it ends by its estimate are not among them.""",
        "allowed": "The nodes that it may have at some time, as ranges; ``None``: all.",
        "alternatives": """The sets of nodes of which it may have those of one only, in the order in which they are tried: the
        nodes of each partition, where it names several; empty: any of ``allowed``, which has the nodes of all of them.""",
        "barred": "For plans: the windows of the machine from which it is barred, as bits in the order of ``Machine.windows``.",
        "layout": "How its processors must lie on nodes that have several; ``None``: in any way.",
        "sizes": "The least and the largest number of nodes of a malleable job; ``None``: its gang cannot be resized.",
    }  # fmt: skip

    def __init__(
        self, id: int, nodes: int, submit: int, estimate: int, user: int, group: int, priority: int, memory: int = 0
    ) -> None:
        self.id = id
        self.nodes = nodes
        self.submit = submit
        self.estimate = estimate
        self.user = user
        self.group = group
        self.priority = priority
        self.memory = memory
        self.queue_order = (-priority, submit, id)
        self.eligible: NodeSet | None = None
        self.layout: Layout | None = None
        self.allowed: NodeSet | None = None
        self.alternatives: tuple[NodeSet, ...] = ()
        self.barred = 0
        self.sizes: tuple[int, int] | None = None

    def on(self, nodes: int, estimate: int) -> "QueuedJob":
        """Return the job as it would have to be described if it asked for so many nodes for so long, ticks; for plans."""
        other = QueuedJob(self.id, nodes, self.submit, estimate, self.user, self.group, self.priority, self.memory)
        other.allowed, other.eligible, other.barred, other.sizes = self.allowed, self.eligible, self.barred, self.sizes
        other.alternatives = self.alternatives
        return other

    def sized(self, nodes: int) -> "QueuedJob":
        """Return the job as it would have to be described if it asked for so many nodes for as long; for plans."""
        return self if nodes == self.nodes else self.on(nodes, self.estimate)

    def sets_allowed(self) -> tuple[NodeSet | None, ...]:
        """Return the sets of nodes of which its nodes are all in one, in the order in which they are tried; ``None``: all."""
        return self.alternatives or (self.allowed,)

    def sets_eligible(self) -> tuple[NodeSet | None, ...]:
        """Return what is left of these if it starts now, in the same order."""
        alternatives, eligible = self.alternatives, self.eligible
        if not alternatives:
            return (eligible,)
        return alternatives if eligible is None or eligible == self.allowed else _narrowed(alternatives, eligible)

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.nodes} nodes>"


@lru_cache(maxsize=1024)
def _narrowed(alternatives: tuple[NodeSet, ...], eligible: NodeSet) -> tuple[NodeSet, ...]:
    mask = as_mask(eligible)
    return tuple([from_mask(as_mask(each) & mask) for each in alternatives])


class GangState(Enum):
    """Where a run attempt stands, until it ends."""

    RUNNING = "running"  # it executes, or waits for its slice
    RESTORING = "restoring"  # it does not execute yet: nodes of it boot, or the job's saved work has still to be restored
    MIGRATING = "migrating"  # it has been moved to other nodes, and the checkpoint and restart are pending
    RESIZING = "resizing"  # the number of its nodes has been changed, and what that costs is pending
    STOPPING = "stopping"  # it has been preempted, and holds its nodes or rows until its work has been saved
    RETURNING = "returning"  # it has been preempted before its saved work was restored, which stays where it was


RUNNING: Final = GangState.RUNNING  # global names are looked up faster than members of an enumeration
RESTORING: Final = GangState.RESTORING
MIGRATING: Final = GangState.MIGRATING
RESIZING: Final = GangState.RESIZING
STOPPING: Final = GangState.STOPPING
RETURNING: Final = GangState.RETURNING


class RunningJob:
    """A running gang as the scheduler knows it: one run attempt of a job; read-only for policies, as :class:`QueuedJob`."""

    __slots__ = {  # noqa: RUF023
        "job": "",
        "start": "Start time, ticks.",
        "expected_end": """Start plus estimate or time limit, and what booting, start-up, restoring, migrating and the epilog
        take, ticks.  A gang may end earlier; later only where nothing kills it at the estimate, where it shares its nodes in
        time, or where it queues at the checkpoint store.""",
        "columns": "The nodes it runs on; it holds them alone unless nodes are shared in time.",
        "nodes": "Number of its nodes: as many as the job asked for, unless it was started on another number, or resized.",
        "rows": "The rows of the Ousterhout matrix in which it runs, a bitmask; 0 where nodes are not shared in time.",
        "ran": "How long the job has executed, ticks, with saved work of earlier run attempts; known when the gang has ended.",
        "state": "",
    }

    def __init__(self, job: QueuedJob, start: int, columns: NodeSet, nodes: int, length: int) -> None:
        self.job = job
        self.start = start
        self.expected_end = start + length
        self.columns = columns
        self.nodes = nodes
        self.rows = 0
        self.ran = 0
        self.state = RUNNING

    @property
    def fetching(self) -> bool:
        """Whether it has not begun to execute: its nodes boot, it starts up, or its saved work is being restored."""
        return self.state is RESTORING or self.state is RETURNING

    @property
    def stopping(self) -> bool:
        """Whether it no longer executes, but still holds its nodes or rows: it has been preempted, or is in its epilog."""
        return self.state is STOPPING or self.state is RETURNING

    @property
    def migrating(self) -> bool:
        """Whether it was moved at the current time, or has a pending checkpoint or restart."""
        return self.state is MIGRATING

    @property
    def resizing(self) -> bool:
        """Whether it is paused by a resize."""
        return self.state is RESIZING

    def __repr__(self) -> str:
        return f"<running {self.job!r} since {self.start}>"


class Outage(NamedTuple):
    """A node that is down, from its failure until it is repaired."""

    node: int
    start: int
    """When the node failed, ticks."""
    expected_end: int
    """When it can be expected to be up again, ticks: after the mean repair time of the machine.  It may take more or less."""

    def __setattr__(self, field: str, value: object) -> None:
        raise DecisionError(f"it sets {field} of the outage of node {self.node}; a policy may not change outages")

    @property
    def id(self) -> int:
        """A number unlike any job's, for plans and matrices in which nodes are held under the number of a job."""
        return -(2**62) - self.node

    @property
    def nodes(self) -> int:
        return 1


class Batch(NamedTuple):
    """Everything that happened at one instant, settled: ends first, then submissions, each in queue order."""

    ended: Sequence[RunningJob]
    submitted: Sequence[QueuedJob]
    alarm: bool
    """Whether the policy's alarm clock rang."""
    requeued: Sequence[QueuedJob] = ()
    """Jobs that have been preempted, stopped at a time limit or hit by the failure of a node, and wait again, in queue order;
    their gangs are among ``ended``."""
    failed: Sequence[Outage] = ()
    """Nodes that have failed.  Their gangs are among ``ended``; jobs suspended in their memory lose their work."""
    repaired: Sequence[Outage] = ()
    """Nodes that are up again, at once after a failure with a repair time of 0."""
    reservations: bool = False
    """Whether a reservation of the machine begins or ends."""

    def __setattr__(self, field: str, value: object) -> None:
        raise DecisionError(f"it sets {field} of the batch; a policy may not change what has happened")


class View:
    """The machine as a policy sees it, valid during one call of ``decide``; nothing in it can be changed."""

    __slots__ = {  # noqa: RUF023
        "now": "The present, ticks.",
        "idle": "Number of idle nodes; those that are down are not among them.",
        "idle_nodes": "The idle nodes, as the bounds of ranges, flat and ascending: ``(0, 4, 7, 8)`` is nodes 0 to 3 and 7.",
        "idle_or_ended": """The idle nodes, and those of gangs that end at this instant although that is reported in a later
        scheduling cycle of it (``events="one-by-one"``): a policy may know from its plan that they are free.""",
        "up": "Number of nodes that are not down.",
        "down": "The outages of the nodes that are down, by node.",
        "waiting": "Waiting jobs by id, in queue order; the jobs just submitted are among them.",
        "running": "Running gangs by job id.",
        "progress": """How long a gang's job has executed, ticks: without the slices of other gangs and without overheads, but
        with the saved work of earlier run attempts.""",
        "overhead_left": """A gang's pending overhead, ticks of its own slices: context switches of a suspension or resumption,
        checkpoints (the periodic ones to come included), restarts, waiting for those of others; 0 on dedicated nodes, where it
        depends on the queue at the checkpoint store.""",
        "expected_left": """How long each running gang is expected to need its nodes, or slices, from now on, by job id, ticks
        of its own: of what it was expected to execute on its nodes when it started, within its time limit, what is left (of one
        that is late: as much as it is late, at least a second), and its pending overhead; that alone once it is preempted.""",
        "saved": "How much of a waiting job's run time has been saved, ticks.",
        "saved_on": """The number of nodes on which a waiting job has to start, because that many tasks of it have been saved;
        ``None`` where it can start on any number.""",
        "suspended_on": "The nodes whose memory keeps a waiting job that has been suspended; ``None`` for any other job.",
        "can_suspend": "Whether each of a gang's nodes can hold one more suspended task (``Machine.suspended_per_node``).",
        "saved_in_time": """Whether a gang that is checkpointed now, or suspended if the second argument is true, leaves its
        nodes before they are reserved for others, or known to be down.""",
        "free_memory": """A copy of the free memory of each node, to plan with; ``None`` where memory is not limited.  The tasks
        of all gangs that run, in whichever rows, and of those suspended have theirs; all jobs together must fit when the
        decisions of an instant have been carried out.  Of a node with several processors it is that of all of them.""",
        "resizable": """The nodes that a running gang would have if it were resized to a number of nodes now; ``None`` where it
        cannot be: its job is rigid, the number not among its sizes, it does not execute, or the nodes that it may have (idle,
        with enough free memory, not reserved before it ends) are too few.""",
        "barred_if_resized": """The nodes, a bitmask, that a running gang may not have if it were resized to a number of
        nodes now: they are reserved, or known to be down, before it would end.  Its own do not count where
        they already are.""",
        "fits": """The idle nodes that a waiting job would have if it were started now, by its layout, its memory and the nodes
        that it may have; ``None`` where it does not fit.""",
    }

    now: int
    idle: int
    idle_nodes: Callable[[], NodeSet]
    idle_or_ended: Callable[[], NodeSet]
    up: int
    down: Mapping[int, Outage]
    waiting: Mapping[int, QueuedJob]
    running: Mapping[int, RunningJob]
    progress: Callable[[RunningJob], int]
    overhead_left: Callable[[RunningJob], int]
    expected_left: Callable[[], Mapping[int, int]]
    saved: Callable[[QueuedJob], int]
    saved_on: Callable[[QueuedJob], int | None]
    suspended_on: Callable[[QueuedJob], NodeSet | None]
    can_suspend: Callable[[RunningJob], bool]
    saved_in_time: Callable[[RunningJob, bool], bool]
    free_memory: Callable[[], FreeMemory | None]
    resizable: Callable[[RunningJob, int], NodeSet | None]
    barred_if_resized: Callable[[RunningJob, int], int]
    fits: Callable[[QueuedJob], NodeSet | None]


def copy_of(view: View) -> View:
    """Return a copy of a view, for a policy that shows the runs of others a part of what it sees."""
    own = View()
    own.now, own.idle, own.idle_nodes = view.now, view.idle, view.idle_nodes
    own.up, own.down, own.waiting = view.up, view.down, view.waiting
    own.running, own.progress, own.overhead_left = view.running, view.progress, view.overhead_left
    own.expected_left, own.saved, own.saved_on = view.expected_left, view.saved, view.saved_on
    own.suspended_on, own.can_suspend, own.saved_in_time = view.suspended_on, view.can_suspend, view.saved_in_time
    own.free_memory, own.resizable, own.fits = view.free_memory, view.resizable, view.fits
    own.barred_if_resized, own.idle_or_ended = view.barred_if_resized, view.idle_or_ended
    return own
