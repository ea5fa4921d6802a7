"""What jobs ask of nodes that have several processors: shapes, and memory that several jobs share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import DecisionError, SpecificationError, counted
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask, is_node_set, lowest, text
from clustermodel.plans.by_node import Layout, Nodes
from clustermodel.policies.view import QueuedJob
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.node_pool import NodePool, may_have, one_of
from clustermodel.sim.power_cap import PowerCap
from clustermodel.sim.saved_work import SavedWork
from clustermodel.validation import require, to_gib
from clustermodel.workload.job import Demand, Demands, JobRow


class NodeRequests:
    """The nodes for the jobs of one run that have shapes, or share the memory of nodes."""

    def __init__(self, machine: Machine) -> None:
        self._sizes = np.array(machine.node_sizes)
        self.nodes = Nodes(
            machine.node_sizes, machine.node_memories, machine.sets_of_nodes(), consolidates=machine.allocation == "consolidate"
        )

    def row_of(self, row: JobRow, eligible: NodeSet | None) -> JobRow:
        """Return a job with all processors of its nodes, if it asks for whole nodes."""
        if row.demand is None or row.demand.shape is None or not row.demand.shape.whole_nodes:
            return row
        per_node = row.demand.shape.processors_per_node
        size = self._size_of(row.id, eligible)
        return row._replace(nodes=-(-row.nodes // (per_node or size)) * size)

    def _size_of(self, job: int, eligible: NodeSet | None) -> int:
        """Return the number of processors of the nodes that a job for whole nodes may have."""
        sizes = np.unique(self._sizes[self.nodes.having(eligible) > 0])
        if len(sizes) > 1:
            raise SpecificationError(
                f"job {job}: whole_nodes is not allowed where nodes that it may have differ in size "
                f"({', '.join(map(str, sizes))} processors); name a node_type"
            )
        return int(sizes[0])

    def lay_out(self, job: QueuedJob, demand: Demand | None) -> bool:
        """Note the layout of a job; return whether it fits on the empty machine."""
        if demand is not None and (shape := demand.shape) is not None:
            per_node, most_nodes, whole = shape
            job.layout = Layout(self._size_of(job.id, job.eligible) if whole else per_node, most_nodes)
        return self.nodes.choose_of(job, job.nodes, self.nodes.total, job.sets_allowed()) is not None

    def fits_alone(self, job: QueuedJob, processors: int, idle: NodeSet) -> bool:
        """Return whether a job fits on some processors if nothing else was on the machine."""
        return self.nodes.choose(job, processors, self.nodes.free(idle, self.nodes.total[self.nodes.count :]), None) is not None

    def fits(
        self, job: QueuedJob, processors: int, idle: NodeSet, saved: SavedWork, sets: Iterable[NodeSet | None]
    ) -> NodeSet | None:
        """Return the idle processors that a job would have, in the first of some sets; ``None`` where it does not fit."""
        split = self.nodes.choose_of(job, processors, self._free(idle, saved), sets)
        return None if split is None else self.nodes.processors(split, idle)

    def _free(self, idle: NodeSet, saved: SavedWork) -> IntArray:
        return self.nodes.free(idle, None if saved.free is None else saved.free.by_node())

    def take(self, job: QueuedJob, processors: int, columns: NodeSet | None, idle: NodeSet, saved: SavedWork) -> NodeSet:
        """Return ``columns`` if a job may start on them, else those that it fits on; a DecisionError otherwise."""
        if columns is None:
            if (columns := self.fits(job, processors, idle, saved, job.sets_eligible())) is None:
                raise DecisionError(f"job {job.id} cannot start: it does not fit on idle nodes ({_asked(job, processors)})")
            return columns
        if not is_node_set(columns) or columns[-1] > self.nodes.first[-1]:
            return columns  # the node pool refuses them
        refused = f"job {job.id} cannot start on processors {text(columns)}"
        if not may_have(columns, sets := job.sets_eligible()):
            raise DecisionError(f"{refused}: it may have {one_of(sets)} only")
        split = self.nodes.split(columns, job.memory)
        parts, free = [part for part in split if part[0] < self.nodes.count], self._free(idle, saved)
        per_node, most_nodes = job.layout or Layout()
        if (per_node and {number for _, number in parts} != {per_node}) or (most_nodes and len(parts) > most_nodes):
            raise DecisionError(f"{refused}: they are not of its shape ({_asked(job, processors)})")
        if any(free[place] < number for place, number in split if place >= self.nodes.count):
            raise DecisionError(f"{refused}: a node has less free memory ({_asked(job, processors)})")
        return columns


def _asked(job: QueuedJob, processors: int) -> str:
    """Return in words what a job asks of nodes."""
    per_node, most_nodes = job.layout or Layout()
    words = [f"{processors} processors"]
    words += [f"{per_node} on each node"] if per_node else []
    words += [f"on at most {counted(most_nodes, 'node')}"] if most_nodes else []
    words += [f"{to_gib(job.memory):g} GiB each"] if job.memory else []
    return ", ".join(words)


def requests_of(machine: Machine, demands: Demands, *, by_node: bool = False) -> NodeRequests | None:
    """Return what the jobs of a run ask of nodes; ``None`` where a number of processors is all, and it is not ``by_node``."""
    if machine.has_shared_nodes:
        shaped = any(demand is not None and demand.shape for demand in demands)
        differ = shaped or by_node or machine.node_memories is not None or bool(machine.sets_of_nodes())
        where = " where jobs have shapes, or limits count nodes"
        require(not differ or machine.power_cap_w is None, "Machine.power_cap_w", machine.power_cap_w, "it must be None", where)
        return NodeRequests(machine) if differ else None
    for demand, job in demands.items():
        if demand is not None and demand.shape and (demand.shape.processors_per_node > 1 or demand.shape.most_nodes):
            raise SpecificationError(
                f"job {job}: a shape is not allowed where nodes have one processor; give Machine(processors_per_node=...)"
            )
    return None


class NodeChoice:
    """Which idle nodes a job would have if it started now, and whether it can start on some at all."""

    def __init__(self, pool: NodePool, saved: SavedWork, requests: NodeRequests | None, cap: PowerCap | None) -> None:
        self._pool, self._saved, self._requests, self._cap = pool, saved, requests, cap

    def fits_alone(self, job: JobInSystem, nodes: int, mask: int) -> bool:
        """Return whether a job could start on these nodes, a bitmask, if nothing else was on the machine."""
        if (stays_on := self._saved.must_stay_on(job)) is not None and as_mask(stays_on) & ~mask:
            return False
        if self._requests is not None:
            return self._requests.fits_alone(job.queued, nodes, from_mask(mask))
        if self._saved.of_empty is not None:
            mask &= self._saved.of_empty.nodes_with(job.queued.memory)
        return (mask.bit_count() if self._cap is None else self._cap.most((from_mask(mask),))) >= nodes

    def idle_for(self, job: QueuedJob, nodes: int, sets: Iterable[NodeSet | None]) -> NodeSet | None:
        """Return so many idle nodes, in the first of some sets; ``None`` where the job does not fit."""
        idle, memory = self._pool.idle_nodes.as_set(), self._saved.free
        if self._requests is not None:
            return self._requests.fits(job, nodes, idle, self._saved, sets)
        if memory is None:
            for eligible in sets:
                if (lowest_ones := self._pool.idle_nodes.lowest_of(idle if eligible is None else eligible, nodes)) is not None:
                    return lowest_ones
            return None
        free = as_mask(idle) & memory.nodes_with(job.memory)
        for eligible in sets:
            suitable = free if eligible is None else free & as_mask(eligible)
            if suitable.bit_count() >= nodes:
                return from_mask(lowest(suitable, nodes))
        return None
