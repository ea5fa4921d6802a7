"""The memory of the nodes: the tasks that run on a node, in whichever rows, and those suspended there must fit.

A job has its memory once on each node on which it runs or is kept, from the start of a run attempt until it has left the node
and no image of it is there.  Where amounts of memory are not limited, the number of suspended tasks may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from clustermodel.errors import DecisionError
from clustermodel.machine import Machine
from clustermodel.memory_units import to_gib
from clustermodel.schedule.free_memory import FreeMemory
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask
from clustermodel.schedule.profile import Profile
from clustermodel.sim.job_process import Execution, JobInSystem


class NodeMemory:
    """Which memory of each node is free.

    Args:
        machine: its nodes, their memory, and the number of suspended tasks that a node holds.
    """

    def __init__(self, machine: Machine) -> None:
        self.most_suspended = machine.suspended_per_node
        self._room = Profile(self.most_suspended or 0)  # for how many more suspended tasks: steps along the nodes
        self._of_a_node = machine.node_memory
        self.free = None if self._of_a_node is None else FreeMemory.of(machine.nodes, self._of_a_node)
        """The free memory; ``None`` where memory is not limited."""
        self.changed: Callable[[int, int | None], None] = lambda _kib, _when: None
        """Called when jobs get so much more memory on all nodes together, or less if negative, and when: ``None`` is now."""
        self._held: dict[int, NodeSet] = {}  # job id -> the nodes on which it has memory

    # Amounts of memory.

    def as_planned(self) -> FreeMemory | None:
        """Return a copy of the free memory to plan with, ``None`` where memory is not limited."""
        return None if self.free is None else self.free.copy()

    def hold(self, job: JobInSystem, *places: NodeSet | None, since: int | None = None) -> None:
        """Let a job have its memory on the nodes of all ``places``, and on no others; ``since`` when, ``None`` is now."""
        if self.free is None:
            return
        kib, number = job.queued.memory, job.queued.id
        if before := self._held.pop(number, None):
            self.free.give_back(before, kib)
        nodes = 0
        for place in places:
            nodes |= as_mask(place or ())
        if nodes and kib:
            self._held[number] = columns = from_mask(nodes)
            self.free.take(columns, kib)
        if more := kib * (nodes.bit_count() - sum(high - low for low, high in _ranges(before or ()))):
            self.changed(more, since)

    def require_room(self, running: Iterable[Execution]) -> None:
        """Check that the tasks of all nodes fit, now that the decisions of the present have been carried out.

        Args:
            running: the running gangs; other jobs that have memory are suspended.

        Raises:
            DecisionError: they do not.
        """
        if self.free is None or self._of_a_node is None:
            return
        node, free = self.free.least()
        if free < 0:
            in_all, of_a_node = to_gib(self._of_a_node - free), to_gib(self._of_a_node)
            runs = {gang.job.id for gang in running}
            there = [number for number, nodes in self._held.items() if as_mask(nodes) >> node & 1]
            tasks = ", ".join(f"{number}{'' if number in runs else ' (suspended)'}" for number in sorted(there))
            raise DecisionError(f"node {node} has {of_a_node:g} GiB of memory, and jobs {tasks} need {in_all:g} GiB there")

    def nodes_for(self, job: JobInSystem) -> int:
        """Return the nodes with enough free memory for a task of a job, a bitmask; where it is suspended it has its memory."""
        assert self.free is not None
        return self.free.nodes_with(job.queued.memory) | as_mask(job.suspended_on or ())

    # Numbers of suspended tasks.

    def has_room(self, columns: NodeSet) -> bool:
        """Return whether each of ``columns`` can hold one more suspended task."""
        return self.most_suspended is None or all(self._room.fits_at(low, 1, high - low) for low, high in _ranges(columns))

    def suspend(self, columns: NodeSet) -> None:
        """Note that each of ``columns`` holds one more suspended task."""
        self._add(columns, 1)

    def resume(self, columns: NodeSet | None) -> None:
        """Note that each of ``columns`` holds one suspended task less."""
        if columns is not None:
            self._add(columns, -1)

    def _add(self, columns: NodeSet, tasks: int) -> None:
        if self.most_suspended is not None:
            for low, high in _ranges(columns):
                self._room.release(low, high, -tasks)


def _ranges(columns: NodeSet) -> Iterator[tuple[int, int]]:
    return zip(columns[::2], columns[1::2], strict=True)
