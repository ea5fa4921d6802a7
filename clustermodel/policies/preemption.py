"""What preemption does to a job, and nodes for jobs on a machine whose memory suspended jobs keep a part of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from clustermodel.errors import SpecificationError
from clustermodel.machine import Machine
from clustermodel.policies.view import QueuedJob, View
from clustermodel.schedule.free_memory import FreeMemory
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask, lowest
from clustermodel.validation import choice

Mode = Literal["kill", "checkpoint", "suspend"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


def mode_of(policy: str, mode: str, *, parameter: str = "mode") -> Mode:
    """Return ``mode``, which the policy calls ``parameter``; raise :class:`SpecificationError` if it is none of ``MODES``."""
    return cast("Mode", choice(f"{policy}: {parameter}", mode, MODES))


def dependencies_of_mode(mode: Mode) -> frozenset[str]:
    """Return the parts of the machine on which preemption in this mode depends."""
    if mode == "kill":
        return frozenset()
    if mode == "checkpoint":
        return frozenset({"checkpointing"})
    return frozenset({"checkpointing", "context_switch", "node_memory_gib", "suspended_per_node", "time_slicing"})


def require_store(policy: str, mode: Mode, machine: Machine, *, parameter: str = "mode") -> None:
    """Raise :class:`SpecificationError` if the mode keeps work, and the machine takes no checkpoints."""
    if mode != "kill" and machine.checkpointing.max_tasks_per_slice == 0:
        raise SpecificationError(
            f"{policy}: {parameter}={mode}: the machine takes no checkpoints (max_tasks_per_slice=0), "
            "so that no job could go on on other nodes"
        )


class Place(NamedTuple):
    """Nodes for a job, and who has to give up memory there."""

    nodes: int
    """A bitmask."""
    discarded: list[QueuedJob]
    """Suspended jobs of which what is saved has to be discarded."""


class IdleMemory:
    """The idle nodes and the free memory during one scheduling cycle.

    A job may have the memory of suspended jobs behind it: those of a higher ``rank``, by default in queue order.
    """

    def __init__(
        self,
        view: View,
        nodes: int,
        free: FreeMemory,
        rank: Callable[[QueuedJob], Any] = lambda job: job.queue_order,
    ) -> None:
        self._rank = rank
        self._free = free
        self._idle = (1 << nodes) - 1
        for gang in view.running.values():
            self._idle &= ~as_mask(gang.columns)
        for node in view.down:
            self._idle &= ~(1 << node)
        suspended = ((job, view.suspended_on(job)) for job in view.waiting.values())
        self._suspended: dict[QueuedJob, NodeSet] = {job: kept for job, kept in suspended if kept is not None}

    def has_beside(self, nodes: NodeSet, job: QueuedJob) -> bool:
        """Return whether a job fits on ``nodes`` beside all that has memory there."""
        return not as_mask(nodes) & ~self._free.nodes_with(job.memory)

    def place(self, job: QueuedJob) -> Place | None:
        """Return idle nodes for a job: where it is suspended if it can have them, else those where nothing is discarded first.

        Returns:
            ``None`` if there are not enough.
        """
        own = as_mask(self._suspended.get(job, ()))
        if own and not own & ~self._idle:
            return Place(own, [])
        behind = [other for other in self._suspended if self._rank(other) > self._rank(job)]
        without = self._free.copy()
        for other in behind:
            without.give_back(self._suspended[other], other.memory)
        at_once = self._idle & (self._free.nodes_with(job.memory) | own)
        possible = self._idle & (without.nodes_with(job.memory) | own)
        if possible.bit_count() < job.nodes:
            return None
        nodes = lowest(at_once, min(job.nodes, at_once.bit_count()))
        nodes |= lowest(possible & ~nodes, job.nodes - nodes.bit_count())
        return Place(nodes, [other for other in behind if as_mask(self._suspended[other]) & nodes & ~at_once])

    def take(self, job: QueuedJob, place: Place) -> None:
        """Start a job where :meth:`place` said."""
        for other in place.discarded:
            self._free.give_back(self._suspended.pop(other), other.memory)
        self._idle &= ~place.nodes
        self._free.take(from_mask(place.nodes & ~as_mask(self._suspended.pop(job, ()))), job.memory)
