"""What preemption does to a job, whom it hits, and nodes for jobs where suspended jobs keep a part of the memory."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from clustermodel.errors import SpecificationError
from clustermodel.machine import Machine
from clustermodel.policies.interface import NOTHING, PARTS, Checkpoint, Kill, Suspend
from clustermodel.policies.view import QueuedJob, RunningJob, View
from clustermodel.schedule.free_memory import FreeMemory
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask, lowest

DEPENDENCIES: Final = {"kill": NOTHING, "checkpoint": frozenset({"checkpointing"}), "suspend": frozenset(PARTS)}
"""The modes, and the parts of the machine on which preemption in a mode depends."""
Preemption = Kill | Checkpoint | Suspend
T = TypeVar("T")


def can_be_saved(gang: RunningJob, mode: str, view: View) -> bool:
    """Return whether a running job may be preempted: its nodes have memory for it, and it leaves them before reservations."""
    return mode == "kill" or ((mode != "suspend" or view.can_suspend(gang)) and view.saved_in_time(gang, mode == "suspend"))


def require_store(policy: str, mode: str, machine: Machine, *, parameter: str = "mode") -> None:
    """Refuse a mode that keeps work where the machine takes no checkpoints."""
    if mode != "kill" and machine.checkpointing.max_tasks_per_slice == 0:
        raise SpecificationError(
            f"{policy}: {parameter}={mode}: the machine takes no checkpoints (max_tasks_per_slice=0), "
            "so that no job could go on on other nodes"
        )


def preempt(job: QueuedJob, mode: str) -> Preemption:
    """Return the decision to preempt a running job."""
    if mode == "kill":
        return Kill(job=job, requeue=True)
    return Suspend(job=job) if mode == "suspend" else Checkpoint(job=job)


def victims_for(missing: int, candidates: Iterable[T], nodes_of: Callable[[T], int]) -> list[T]:
    """Return the first candidates that free ``missing`` nodes, without those that are not needed; none if all are too few."""
    victims: list[T] = []
    for candidate in candidates if missing > 0 else ():
        victims.append(candidate)
        missing -= nodes_of(candidate)
        if missing <= 0:
            break
    if missing > 0:
        return []
    for victim in victims[::-1]:
        if missing + (nodes := nodes_of(victim)) <= 0:
            victims.remove(victim)
            missing += nodes
    return victims


class Nodes(NamedTuple):
    """Nodes for a job, a bitmask, and the suspended jobs of which what is saved there has to be discarded."""

    nodes: int
    discarded: list[QueuedJob]


class IdleMemory:
    """The idle nodes and the free memory during one scheduling cycle."""

    # A job may have the memory of suspended jobs behind it: those of a higher `rank`, by default in queue order.

    def __init__(self, view: View, free: FreeMemory, rank: Callable[[QueuedJob], Any] = lambda job: job.queue_order) -> None:
        self._rank, self._free = rank, free
        self._idle = as_mask(view.idle_nodes())
        suspended = ((job, view.suspended_on(job)) for job in view.waiting.values())
        self._suspended: dict[QueuedJob, NodeSet] = {job: kept for job, kept in suspended if kept is not None}

    def has_beside(self, nodes: NodeSet, job: QueuedJob) -> bool:
        """Return whether a job fits on those of ``nodes`` that it may have beside all that has memory there."""
        eligible = -1 if job.eligible is None else as_mask(job.eligible)
        return not as_mask(nodes) & eligible & ~self._free.nodes_with(job.memory)

    def place(self, job: QueuedJob, sets: Sequence[NodeSet | None] = ()) -> Nodes | None:
        """Return idle nodes for a job: where it is suspended if they are idle, else those where nothing is discarded first.

        They are of one of some sets, by default of those that it may have.
        """
        own = as_mask(self._suspended.get(job, ()))
        parts = [self._idle if each is None else self._idle & as_mask(each) for each in sets or job.sets_eligible()]
        if own and any(not own & ~idle for idle in parts):
            return Nodes(own, [])
        behind = [other for other in self._suspended if self._rank(other) > self._rank(job)]
        without = self._free.copy()
        for other in behind:
            without.give_back(self._suspended[other], other.memory)
        has_memory, could_have_it = (each.nodes_with(job.memory) | own for each in (self._free, without))
        idle = next((part for part in parts if (part & has_memory).bit_count() >= job.nodes), None)
        idle = next((part for part in parts if (part & could_have_it).bit_count() >= job.nodes), 0) if idle is None else idle
        at_once, possible = idle & has_memory, idle & could_have_it
        if possible.bit_count() < job.nodes:
            return None
        nodes = lowest(at_once, min(job.nodes, at_once.bit_count()))
        nodes |= lowest(possible & ~nodes, job.nodes - nodes.bit_count())
        return Nodes(nodes, [other for other in behind if as_mask(self._suspended[other]) & nodes & ~at_once])

    def take(self, job: QueuedJob, place: Nodes) -> list[Kill]:
        """Start a job where :meth:`place` said; return the decisions that discard what is saved of others there."""
        for other in place.discarded:
            self._free.give_back(self._suspended.pop(other), other.memory)
        self._idle &= ~place.nodes
        self._free.take(from_mask(place.nodes & ~as_mask(self._suspended.pop(job, ()))), job.memory)
        return [Kill(job=other, requeue=True) for other in place.discarded]
