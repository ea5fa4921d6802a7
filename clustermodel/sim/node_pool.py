"""The machine's nodes as a resource that jobs queue for, each for its whole gang at once; some of them may be down.

The resource never decides whose turn it is: a request waits in the queue until the coordinator grants it.  A scan of the
queue (``simpy.Resource``) would be a scheduling policy of its own, and one request per node joined by ``all_of`` deadlocks
as soon as two gangs hold a part each of what both need.
"""

from collections.abc import Callable, Iterable, Sequence

from clustermodel.errors import DecisionError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import (
    Allocation,
    IdleNodes,
    NodeSet,
    as_mask,
    count,
    from_mask,
    is_node_set,
    lowest,
    mask_of,
    text,
)
from clustermodel.plans.job_queue import JobQueue
from clustermodel.policies.view import QueuedJob
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.switching_off import SwitchedOff
from clustermodel.validation import to_gib


def may_have(columns: NodeSet, sets: Iterable[NodeSet | None]) -> bool:
    """Return whether nodes are all in one of some sets, ``None`` for all."""
    return any(each is None or not as_mask(columns) & ~mask_of(each) for each in sets)


def one_of(sets: Sequence[NodeSet | None]) -> str:
    """Return some sets of nodes in words."""
    words = [text(each or ()) or "none" for each in sets]
    return words[0] if len(words) == 1 else f"those of one of its partitions ({'; '.join(words)})"


class NodePool:
    """The nodes of a machine, or their processors, each idle or held by one gang, and the queue of jobs."""

    def __init__(self, env: Clock, machine: Machine) -> None:
        nodes = machine.processors
        self.queue = JobQueue()
        self.waiting = self.queue.jobs
        self._env, self._size = env, nodes
        self.idle_nodes = IdleNodes(nodes)  # the nodes that a gang could have
        # How processors are chosen where nodes have several; ``None``: the lowest idle nodes.
        self.allocation = Allocation(machine.node_sizes[0], machine.allocation) if machine.has_shared_nodes else None
        self.down = 0  # number of nodes that are out of service
        self.switched_off: SwitchedOff | None = None  # which of them are, where idle ones are switched off
        self.in_rows: Callable[[], int] | None = None  # which nodes no gang has, where nodes are shared in time
        # Jobs that have asked for nodes since the last cycle, for the first time and again.
        self.submitted: list[QueuedJob] = []
        self.requeued: list[QueuedJob] = []

    def request_again(self, job: JobInSystem) -> None:
        """Ask for nodes of a job that has run; as any other, it waits in the queue once the present time has settled."""
        self.requeued.append(job.queued)

    def join(self, job: JobInSystem) -> None:
        """Put a job that has been held into the queue, behind jobs that joined it earlier, as a request does."""
        # Of those that join it at one time, jobs that were submitted earlier come first, then those with smaller ids.
        queued, now = job.queued, self._env.now
        queued.queue_order = (-queued.priority, now, queued.id - (now - queued.submit << 64))
        self.submitted.append(queued)

    def take_arrivals(self) -> tuple[list[QueuedJob], list[QueuedJob]]:
        """Put jobs that have asked for nodes into the queue; return those just submitted, and those that have run."""
        submitted, requeued = self.submitted, self.requeued
        if requeued:
            self.requeued = []
            self.queue.join(requeued)
        if submitted:
            self.submitted = []
            self.queue.join(submitted)
        return submitted, requeued

    def take(self, job: QueuedJob, nodes: int, columns: NodeSet | None = None, to: str = "start") -> NodeSet:
        """Give a gang its nodes: ``columns`` if named, else the lowest idle ones that it may have, so that runs repeat."""
        idle = self.idle_nodes
        if columns is None:
            if job.eligible is not None:
                idle.take(columns := self.eligible_nodes(job, nodes, None))
                return columns
            if nodes > idle.count:
                raise DecisionError(f"job {job.id} cannot {to}: it needs {nodes} nodes and {idle.count} are idle")
            return idle.take_lowest(nodes) if self.allocation is None else self.allocation.take(idle, nodes)
        refused = f"job {job.id} cannot {to}"
        if not is_node_set(columns):
            raise DecisionError(f"{refused} on columns {columns!r}: they must be ascending ranges, (low, high, ...)")
        if count(columns) != nodes:
            raise DecisionError(f"{refused} on {count(columns)} columns ({text(columns)}): its gang needs {nodes}")
        if not idle.take(columns):
            raise DecisionError(f"{refused} on columns {text(columns)}: not all of them are idle")
        return columns

    def lowest_idle(self, job: QueuedJob, nodes: int, suitable: int) -> NodeSet | None:
        """Return the lowest idle nodes of those ``suitable`` by memory, a bitmask; ``None`` if all idle nodes are suitable."""
        idle = as_mask(self.idle_nodes.as_set())
        if not idle & ~suitable:
            return None
        there = idle & suitable
        if there.bit_count() < nodes:
            raise DecisionError(
                f"job {job.id} cannot start: it needs {nodes} nodes with {to_gib(job.memory):g} GiB of free memory, and "
                f"{there.bit_count()} of the {self.idle_nodes.count} idle nodes have that"
            )
        return from_mask(lowest(there, nodes))

    def eligible_nodes(self, job: QueuedJob, nodes: int, columns: NodeSet | None, suitable: int = -1) -> NodeSet:
        """Return ``columns``, if a job may have them all, else the lowest idle nodes that it may have of those ``suitable``."""
        if columns is not None:
            if not may_have(columns, sets := job.sets_allowed()):
                raise DecisionError(f"job {job.id} cannot start on nodes {text(columns)}: it may have {one_of(sets)} only")
            return columns
        most = 0
        for eligible in job.sets_eligible():
            assert eligible is not None
            there = eligible if suitable == -1 else from_mask(as_mask(eligible) & suitable)
            if (chosen := self.idle_nodes.lowest_of(there, nodes)) is not None:
                return chosen
            most = max(most, (as_mask(self.idle_nodes.as_set()) & as_mask(there)).bit_count())
        what = one_of(job.sets_eligible())
        raise DecisionError(f"job {job.id} cannot start: it needs {nodes} nodes of {what}, and {most} are idle")

    def give_back(self, columns: NodeSet) -> None:
        """Take back the nodes of a gang, which are idle."""
        self.idle_nodes.give_back(columns)
        if self.switched_off is not None:
            self.switched_off.idle(columns)

    def unused(self) -> int:
        """Return the nodes that are up and that no gang has, a bitmask."""
        return as_mask(self.idle_nodes.as_set()) if self.in_rows is None else self.in_rows()

    def take_whole_machine(self) -> None:
        """Hand all nodes, including failed ones, to the time-slice process for the rest of the run."""
        if held := self._size - self.idle_nodes.count - self.down:
            raise DecisionError(
                f"nodes cannot be shared in time while {held} of {self._size} are held "
                "without a row; a policy starts either all jobs in rows or none"
            )
        self.idle_nodes.take_lowest(self.idle_nodes.count)
        self.down = 0

    def change_nodes(self, columns: NodeSet, *, down: bool) -> None:
        if down:
            taken = self.idle_nodes.take(columns)
            assert taken, "the gangs on a failed node have been stopped"
        else:
            self.idle_nodes.give_back(columns)
        self.down += count(columns) if down else -count(columns)
