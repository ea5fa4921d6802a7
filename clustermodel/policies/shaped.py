"""First come, first served, EASY and conservative backfilling where jobs have shapes, or share the memory of nodes.

The rules are those of :mod:`clustermodel.policies.partitioned`; the plan is of the processors and the memory of each node, so
that a reservation is a start on particular nodes on which the job fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from clustermodel.policies.interface import Decision, Reason, Setup, Start
from clustermodel.policies.partitioned import Choosers, PartitionedBackfilling, Profiles, Reservation
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule.by_node import NodeChooser, NodeProfile, Nodes
from clustermodel.schedule.node_set import NodeSet
from clustermodel.schedule.pools import Split
from clustermodel.ticks import NEVER


def nodes_of(setup: Setup) -> Nodes:
    """Return the nodes of a machine for plans by node."""
    machine = setup.machine
    return Nodes(machine.node_sizes, machine.node_memories, setup.node_sets, consolidates=machine.allocation == "consolidate")


def _chooser(nodes: Nodes, view: View) -> NodeChooser:
    memory = view.free_memory()
    return NodeChooser(nodes, view.idle_nodes(), None if memory is None else memory.by_node())


class ShapedFcfs:
    """One run of first come, first served."""

    def __init__(self, setup: Setup) -> None:
        self._nodes = nodes_of(setup)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; a job that does not fit closes the nodes that it may have."""
        chooser, decisions = _chooser(self._nodes, view), list[Decision]()
        closed = np.zeros(self._nodes.count, dtype=np.int64)
        for job in view.waiting.values():
            having = self._nodes.having(job.eligible)
            split = None if (closed & having).any() else chooser.split(job)
            if split is None:
                closed |= having
                if closed.all():
                    break
            else:
                decisions.append(Start(job=job, columns=chooser.take(split), reason=Reason("head of its queue, and it fits")))
        return decisions


class ShapedBackfilling(PartitionedBackfilling):
    """One run of backfilling with a plan by node."""

    def __init__(
        self, setup: Setup, depth: int | None, sort: Callable[[Iterable[QueuedJob], int], Iterable[QueuedJob]]
    ) -> None:
        super().__init__(setup, depth, sort)
        self._nodes = nodes_of(setup)

    def _chooser(self, view: View) -> Choosers:
        return _chooser(self._nodes, view)

    def _fitting(self, job: QueuedJob, length: int, profile: Profiles, chooser: Choosers, now: int) -> Split | None:
        assert isinstance(profile, NodeProfile)
        assert isinstance(chooser, NodeChooser)
        split = profile.split(now, length, job)
        return split if split is not None and chooser.has(split) else None

    def _earliest(self, job: QueuedJob, length: int, profile: Profiles, not_after: int = NEVER) -> Reservation:
        assert isinstance(profile, NodeProfile)
        start, split = profile.earliest(length, job, not_after)
        return Reservation(start, length, split)

    def _profile_of(self, now: int, ends: list[tuple[int, NodeSet, int]]) -> Profiles:
        nodes = self._nodes
        return NodeProfile(nodes, now, [(end, nodes.split(columns, memory)) for end, columns, memory in ends])


def backfilling_of(
    setup: Setup, depth: int | None, sort: Callable[[Iterable[QueuedJob], int], Iterable[QueuedJob]]
) -> PartitionedBackfilling:
    """Return a run of backfilling where jobs differ in the nodes that they may have, or in their shapes."""
    return ShapedBackfilling(setup, depth, sort) if setup.by_node else PartitionedBackfilling(setup, depth, sort)
