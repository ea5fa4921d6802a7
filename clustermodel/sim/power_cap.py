"""The power cap in one run: which nodes are out of service because of it, and how long jobs wait because of that.

So many nodes of each pool are out of service that the others can do whatever they do within the cap.  Policies see them as
nodes that are down and will not be repaired.  When a node in service fails, one that is out of service takes its place, if one
of its pool is up; the failed node is then out of service when it is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, from_mask, lowest, mask_of, members
from clustermodel.plans.capped_pools import CappedPool, capped_pools, most_in_use
from clustermodel.policies.view import QueuedJob
from clustermodel.recording.job_records import JobRecords
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.rules import Rule


def cap_of(machine: Machine) -> PowerCap | None:
    """Return the power cap of a run; ``None`` where all nodes may be in use."""
    cap = machine.power_cap
    pools = capped_pools(machine.processors, machine.kinds_of_nodes(), machine.draws, cap) if cap is not None else []
    return PowerCap(pools, machine.processors) if pools else None


class PowerCap:
    """The nodes that are out of service."""

    def __init__(self, pools: list[CappedPool], nodes: int) -> None:
        self._pools, self._nodes = pools, nodes
        # Of each pool the nodes that are up and out of service: at first those with the highest numbers.
        self._spare = [pool.nodes ^ lowest(pool.nodes, pool.most) for pool in pools]
        self._out = self.spare  # with those of them that have failed

    @property
    def spare(self) -> int:
        """The nodes that are up and out of service, a bitmask."""
        return sum(self._spare)  # they are disjoint

    @property
    def first_out(self) -> list[int]:
        """The nodes that are out of service at first."""
        return list(members(from_mask(self._out)))

    def most(self, sets: Iterable[NodeSet | None] = (None,)) -> int:
        """Return how many nodes of one of some sets, ``None`` for all, can be in use at a time."""
        return max(most_in_use(self._pools, self._nodes, each) for each in sets)

    def exchange(self, failing: Iterable[int], repaired: Iterable[int]) -> tuple[dict[int, bool], list[int]]:
        """Return the nodes that leave service, each with whether another one takes its place, and those that enter it."""
        in_service = []
        for node in failing:
            if self._out >> node & 1:
                self._spare[self._pool_of(node)] &= ~(1 << node)
            else:
                in_service.append(node)
        leaving: dict[int, bool] = {}
        entering: list[int] = []
        for node in in_service:
            pool = self._pool_of(node)
            leaving[node] = bool(self._spare[pool])
            if leaving[node]:
                other = lowest(self._spare[pool], 1)
                self._spare[pool] ^= other
                self._out ^= other | 1 << node
                entering.append(other.bit_length() - 1)
        for node in repaired:
            if self._out >> node & 1:
                self._spare[self._pool_of(node)] |= 1 << node
            else:
                entering.append(node)
        return leaving, entering

    def _pool_of(self, node: int) -> int:
        return next(number for number, pool in enumerate(self._pools) if pool.nodes >> node & 1)


class _Waits:
    """How long jobs of each size that may have some nodes have waited because of the cap: a Fenwick tree of ticks."""

    def __init__(self, sizes: int, now: int) -> None:
        self._tree = [0] * (sizes + 2)
        self._since = now
        self._fits = self._would_fit = 0  # the largest job for which enough nodes are idle, and for which, but for the cap

    def go_on(self, now: int, fits: int, would_fit: int) -> None:
        """Count the time since the last call, and note which sizes fit from now on."""
        self.settle(now)
        self._fits, self._would_fit = fits, would_fit

    def settle(self, now: int) -> None:
        if (ticks := now - self._since) and self._would_fit > self._fits:
            self._add(self._fits + 1, ticks)
            self._add(self._would_fit + 1, -ticks)
        self._since = now

    def _add(self, size: int, ticks: int) -> None:
        while size < len(self._tree):
            self._tree[size] += ticks
            size += size & -size

    def of(self, size: int) -> int:
        """Return for how long jobs of a size would have fitted but for the cap, ticks."""
        ticks = 0
        while size:
            ticks += self._tree[size]
            size &= size - 1
        return ticks


class CapWaits(Rule):
    """How long each job has waited while enough nodes were idle for it, but for those out of service because of the cap."""

    # By the nodes that jobs may have; whether a job fits is a matter of numbers here.

    def __init__(self, env: Clock, records: JobRecords, cap: PowerCap, nodes: int, unused: Callable[[], int]) -> None:
        self._env, self._records, self._cap, self._nodes = env, records, cap, nodes
        self._unused = unused  # which nodes no gang has, a bitmask
        self._waits: dict[tuple[NodeSet | None, ...], _Waits] = {}
        self._before: dict[int, int] = {}  # by id of a waiting job: what had been counted when it joined the queue

    def before_cycle(self, submitted: list[QueuedJob], requeued: list[QueuedJob]) -> list[JobInSystem]:
        """Note which jobs have joined the queue at the present."""
        now = self._env.now
        for job in (*submitted, *requeued):
            sets = job.sets_allowed()
            if (waits := self._waits.get(sets)) is None:
                waits = self._waits[sets] = _Waits(self._nodes, now)
            waits.settle(now)
            self._before[job.id] = waits.of(job.nodes)
        return []

    def started(self, job: JobInSystem) -> None:
        """Count how long a job has waited that starts."""
        waits, queued = self._waits[job.queued.sets_allowed()], job.queued
        waits.settle(self._env.now)
        if ticks := waits.of(queued.nodes) - self._before.pop(queued.id):
            self._records.waited_for_cap(job.index, ticks)

    def after_instant(self, *, cycled: bool) -> None:
        """Note how many nodes are idle from now on, and how many would be but for the cap."""
        if not cycled:
            return
        now, unused, spare = self._env.now, self._unused(), self._cap.spare
        for sets, waits in self._waits.items():
            masks = [-1 if allowed is None else mask_of(allowed) for allowed in sets]
            would_fit = max([((unused | spare) & mask).bit_count() for mask in masks])
            waits.go_on(now, max([(unused & mask).bit_count() for mask in masks]), would_fit)
