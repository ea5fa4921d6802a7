"""Idle nodes that are switched off, and that boot when a gang gets them.

A node is off from when it has been idle for ``Machine.idle_off_s`` until a gang gets it, or it fails.  If a gang leaves its
nodes before they have booted, they are off again.  A node whose memory keeps a suspended job is on: when it would be switched
off, it is looked at again after the same time, a second at least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush

from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask, from_members, members
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, UnusedNodes
from clustermodel.sim.events import AlarmClock, Clock
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.saved_work import SavedWork
from clustermodel.ticks import TICKS_PER_SECOND


class SwitchedOff:
    """Which nodes are off, and since when the others have been idle."""

    def __init__(
        self, env: Clock, machine: Machine, after: int, saved: SavedWork, unused: UnusedNodes, records: JobRecords,
        jobs: Mapping[int, JobInSystem],
    ) -> None:  # fmt: skip
        self._env, self._after, self._saved, self._unused, self._records, self._jobs = env, after, saved, unused, records, jobs
        self.boot = machine.boot  # how long a node takes to boot, ticks
        self.note: Callable[[], None] | None = None  # called when nodes may have been switched off
        self.off = 0  # a bitmask
        self._booting = 0  # the nodes of gangs that wait until they have booted, a bitmask
        nodes = machine.processors
        self._since = [0] * nodes  # when each node became idle; -1 of those that are not
        self._due: list[tuple[int, NodeSet]] = [(after, (0, nodes))]  # a heap: when nodes may be switched off
        self._alarm = AlarmClock(env, self._ring)
        self._alarm.set(after)

    def idle(self, nodes: NodeSet) -> None:
        """Note nodes that no gang has from now on, and that are up; those that have not booted yet are off again."""
        now, cut = self._env.now, 0
        if self._booting:
            cut = as_mask(nodes) & self._booting
            self._booting ^= cut
            self._switch(cut)
            nodes = from_mask(as_mask(nodes) & ~cut)
        for low, high in zip(nodes[::2], nodes[1::2], strict=True):
            self._since[low:high] = [now] * (high - low)
        self._wait(now + self._after, nodes)

    def taken(self, nodes: NodeSet) -> int:
        """Note nodes that a gang gets, or that fail; return how many were off."""
        for low, high in zip(nodes[::2], nodes[1::2], strict=True):
            self._since[low:high] = [-1] * (high - low)
        if not self.off or not (off := as_mask(nodes) & self.off):
            return 0
        self.off ^= off
        self._charge(-off.bit_count())
        return off.bit_count()

    def taken_by_gang(self, nodes: NodeSet) -> int:
        """Note nodes that a gang gets; return how many have to boot first."""
        before = self.off
        number = self.taken(nodes)
        if not self.boot:
            return 0
        self._booting |= before & ~self.off
        return number

    def booted(self, nodes: NodeSet) -> None:
        """Note that the nodes of a gang are on."""
        self._booting &= ~as_mask(nodes)

    def _wait(self, until: int, nodes: NodeSet) -> None:
        if nodes:
            heappush(self._due, (until, nodes))
            if self._alarm.at is None or until < self._alarm.at:
                self._alarm.set(until)

    def _ring(self) -> None:
        """Switch off the nodes that have been idle for long enough."""
        now, kept, chosen = self._env.now, self._saved.nodes_with_images(), 0
        while self._due and self._due[0][0] == now:
            nodes, looked_at_before = heappop(self._due)[1], now - self._after
            idle = from_members(node for node in members(nodes) if 0 <= self._since[node] <= looked_at_before)
            chosen |= as_mask(idle) & ~self.off
        again = chosen & kept
        self._switch(chosen & ~kept)
        self._wait(now + max(self._after, TICKS_PER_SECOND), from_mask(again))  # what is suspended there may stay for long
        if self._due:
            self._alarm.set(self._due[0][0])
        if self.note is not None:
            self.note()

    def _switch(self, nodes: int) -> None:
        if nodes:
            self.off |= nodes
            self._charge(nodes.bit_count())

    def _charge(self, more: int) -> None:
        """Charge so many more nodes, or fewer, as off instead of idle."""
        self._unused.put_off(self._env.now, Account.OFF, more)
        self._records.switched_off(self._env.now, self.off.bit_count())
        if self._jobs:
            self._unused.charge()
