"""Partitions that share no nodes: each is a machine of its own, with its own run of the policy.

No job can delay one of another partition, so each partition has its own queue and its own plan, and a scheduling cycle asks
only the partitions in which something has happened.
"""

from __future__ import annotations

from functools import lru_cache

from clustermodel.machine.node_set import NodeSet, as_mask, count
from clustermodel.plans.job_queue import JobQueue
from clustermodel.policies.interface import Decide, Decision, Policy, Resize, Run, Setup, Start, WakeAt, decide_of
from clustermodel.policies.view import Batch, RunningJob, View, copy_of
from clustermodel.ticks import NEVER


def runs_of_partitions(policy: Policy, setup: Setup, *, resizes: bool = False) -> Run:
    """Return a run of a policy in which partitions without common nodes are scheduled separately.

    One that ``resizes`` gangs sees those of the partition; others do not look at them.
    """
    kind = _ResizingPartition if resizes else _Partition
    return _DisjointRuns([kind(nodes, policy, setup) for nodes in setup.disjoint])


class _Partition:
    """A partition, or several that overlap: its queue, and the policy's run on it."""

    _counts_only = True  # where all jobs may have all its nodes, the policy counts nodes, and looks at no set of them
    # No job returns to the queue: failures tie partitions, and these policies neither preempt nor set limits.

    def __init__(self, nodes: NodeSet, policy: Policy, setup: Setup) -> None:
        self.mask, self._nodes = as_mask(nodes), count(nodes)
        sets = [each for each in setup.node_sets if not as_mask(each) & ~self.mask]
        if self._counts_only and all(each == nodes for each in sets):
            own = setup._replace(nodes=self._nodes, node_sets=(), disjoint=())
        else:
            own = setup._replace(node_sets=sets, disjoint=())
        self._decide: Decide = decide_of(policy, own)
        self._queue, self._idle = JobQueue(), self._nodes
        self.alarm = NEVER

    def cycle(self, batch: Batch, view: View, decisions: list[Decision]) -> bool:
        """Run one scheduling cycle and add its decisions; return whether the alarm is another one, which is not among them."""
        queue, idle, alarm = self._queue, self._idle, self.alarm
        for gang in batch.ended:
            idle += gang.nodes
        if batch.submitted:
            queue.join(list(batch.submitted))
        if batch.alarm:
            self.alarm = NEVER
        view.waiting, view.idle, view.up = queue.jobs, idle, self._nodes
        for decision in self._decide(batch, view):
            if type(decision) is WakeAt:
                self.alarm = NEVER if decision.time is None else decision.time
                continue
            decisions.append(decision)
            if type(decision) is Start:
                idle -= decision.job.nodes
                queue.leave(decision.job.id)
        self._idle = idle
        return self.alarm != alarm


class _ResizingPartition(_Partition):
    """A partition whose policy resizes gangs: it sees its own."""

    _counts_only = False

    def __init__(self, nodes: NodeSet, policy: Policy, setup: Setup) -> None:
        super().__init__(nodes, policy, setup)
        self._gangs: dict[int, RunningJob] = {}
        self._started: list[int] = []  # ids of jobs whose gangs have not been seen yet

    def cycle(self, batch: Batch, view: View, decisions: list[Decision]) -> bool:
        gangs, running, before = self._gangs, view.running, len(decisions)
        gangs.update((number, running[number]) for number in self._started if number in running)
        for gang in batch.ended:
            gangs.pop(gang.job.id, None)
        view.running = gangs
        alarm_changes = super().cycle(batch, view, decisions)
        view.running = running
        self._started = []
        for decision in decisions[before:]:
            if type(decision) is Resize:
                nodes = decision.nodes
                assert nodes is not None, "these policies say how many"
                self._idle += gangs[decision.job.id].nodes - nodes
            elif type(decision) is Start:
                self._started.append(decision.job.id)
                self._idle += decision.job.nodes - (decision.nodes or decision.job.nodes)
        return alarm_changes


class _DisjointRuns:
    """One run of a policy on each of several partitions."""

    def __init__(self, partitions: list[_Partition]) -> None:
        self._partitions = partitions
        self._view: View | None = None  # what the runs see: a copy, as a policy does not change the view
        self._of = lru_cache(maxsize=None)(self._of_nodes)
        self._alarm = NEVER  # the first one

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run a scheduling cycle of each partition in which something has happened."""
        of = self._of
        active = [of(gang.job.allowed) for gang in batch.ended]
        active += [of(job.allowed) for job in batch.submitted]
        if batch.alarm:
            self._alarm = NEVER
            active += [each for each in self._partitions if each.alarm == view.now]
        alarms, decisions = batch.alarm, list[Decision]()
        if (own := self._view) is None:
            own = self._view = copy_of(view)
        own.now = view.now
        if len(active) == 1:
            alarms |= active[0].cycle(batch, own, decisions)
        else:
            for partition in dict.fromkeys(active):
                alarms |= partition.cycle(self._part(batch, partition, view.now), own, decisions)
        if alarms and (first := min([each.alarm for each in self._partitions])) != self._alarm:
            self._alarm = first
            decisions.append(WakeAt(time=None if first == NEVER else first))
        return decisions

    def _part(self, batch: Batch, partition: _Partition, now: int) -> Batch:
        """Return what has happened in a partition."""
        of = self._of
        ended = [gang for gang in batch.ended if of(gang.job.allowed) is partition]
        submitted = [job for job in batch.submitted if of(job.allowed) is partition]
        return Batch(ended, submitted, partition.alarm == now)

    def _of_nodes(self, allowed: NodeSet | None) -> _Partition:
        """Return the partition of the jobs that may have these nodes."""
        assert allowed is not None, "no job may have nodes of several"
        mask = as_mask(allowed)
        return next(each for each in self._partitions if each.mask & mask)
