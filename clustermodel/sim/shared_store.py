"""A checkpoint store with a bandwidth, which the gangs that write or read share, or have one after the other.

Who writes or reads when several gangs want to follows the strategies of Herault et al. 2018
(:attr:`CheckpointStore.writers <clustermodel.machine.CheckpointStore.writers>`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import nullcontext

from simpy import Event

from clustermodel.machine import CheckpointStore
from clustermodel.sim.alarm_clock import AlarmClock
from clustermodel.sim.checkpoint_store import Interval
from clustermodel.sim.events import Clock
from clustermodel.sim.shared_bandwidth import Moving, SharedBandwidth

AtRisk = Callable[[], int]
"""How much a gang that executes would lose now by a failure, and how long it would take to restart, together, ticks."""


class Transfer:
    """What a gang asks of the store: to write or to read its image.

    Args:
        env: the simulation.
        nodes: how many nodes the gang has.
        tasks: how many of its tasks are moved at a time.
        ticks: how long that takes if the gang has the store to itself.
        at_risk: of a gang that executes until it is its turn; ``None`` if it waits.
    """

    __slots__ = ("at_risk", "done", "granted", "moving", "nodes", "since", "tasks", "ticks")

    def __init__(self, env: Clock, nodes: int, tasks: int, ticks: int, at_risk: AtRisk | None) -> None:
        self.nodes = nodes
        self.tasks = tasks
        self.ticks = ticks
        self.at_risk = at_risk
        self.since = env.now
        """Since when it has waited, ticks."""
        self.granted = Event(env)
        """Succeeds when it is its turn, and the store begins to move it."""
        self.done = Event(env)
        """Succeeds when all of it has been moved."""
        self.moving: Moving | None = None
        """What is under way, once it has been granted."""


class SharedStore:
    """The store.

    Args:
        env: the simulation.
        store: its bandwidths, and who writes when.
        node_mtbf: mean time between the failures of a node, ticks; ``None`` if nodes do not fail.
    """

    def __init__(self, env: Clock, store: CheckpointStore, node_mtbf: int | None) -> None:
        self.executes_while_waiting = store.writers in ("fcfs_nonblocking", "least_waste")
        """Whether a gang that waits to write a periodic checkpoint executes until it is its turn."""
        self._env = env
        self._bandwidth = SharedBandwidth(store.bandwidth, store.node_bandwidth)
        self._most_tasks = store.max_concurrent_tasks
        self._one_at_a_time = store.writers != "oblivious"
        self._least_waste = store.writers == "least_waste"
        self._node_mtbf = node_mtbf
        self._waiting: list[Transfer] = []  # in the order in which they asked
        self._under_way: dict[Moving, Transfer] = {}
        self._alarm = AlarmClock(env, self._go_on)

    def transfer(
        self, nodes: int, ticks: int, *, queueing: Interval = nullcontext, moving: Interval = nullcontext
    ) -> Generator[Event, object, None]:
        """Write or read the image of a gang of ``nodes``; an interrupt ends the transfer.

        Args:
            nodes: how many it has.
            ticks: how long that takes if it has the store to itself.
            queueing: brackets the time before it is its turn.
            moving: brackets the time in which its image is moved.
        """
        transfer = self.ask(nodes, ticks)
        try:
            if not transfer.granted.triggered:
                with queueing():
                    yield transfer.granted
            with moving():
                yield transfer.done
        finally:
            self.withdraw(transfer)

    def ask(self, nodes: int, ticks: int, at_risk: AtRisk | None = None) -> Transfer:
        """Ask for a transfer, which begins at once if it is its turn; :meth:`withdraw` it in the end."""
        tasks = min(nodes, self._most_tasks or nodes)
        transfer = Transfer(self._env, nodes, tasks, ticks, at_risk)
        self._waiting.append(transfer)
        self._go_on()
        return transfer

    def withdraw(self, transfer: Transfer) -> None:
        """Take back what has been asked for, if it is not done: what has been moved of it is of no use."""
        if transfer.done.triggered:
            return
        if transfer.moving is None:
            self._waiting.remove(transfer)
        else:
            del self._under_way[transfer.moving]
            self._bandwidth.stop(self._env.now, transfer.moving)
        self._go_on()

    def _go_on(self) -> None:
        """End the transfers that have been moved, begin those whose turn it is, and wake up when the next one ends."""
        now = self._env.now
        for moving in self._bandwidth.ended(now):
            self._under_way.pop(moving).done.succeed()
        while self._waiting and (transfer := self._next()) is not None:
            self._waiting.remove(transfer)
            transfer.moving = moving = self._bandwidth.begin(now, transfer.tasks, transfer.ticks)
            self._under_way[moving] = transfer
            transfer.granted.succeed()
        self._alarm.set(self._bandwidth.next_end())

    def _next(self) -> Transfer | None:
        """Return the waiting transfer whose turn it is; ``None`` if it is no transfer's."""
        if self._one_at_a_time:
            if self._under_way:
                return None
            return min(self._waiting, key=self._waste_of_others) if self._least_waste else self._waiting[0]
        first = self._waiting[0]
        if self._most_tasks is not None and self._bandwidth.tasks + first.tasks > self._most_tasks:
            return None
        return first

    def _waste_of_others(self, served: Transfer) -> int:
        """Return what the other gangs can be expected to waste if ``served`` has the store next, in some unit.

        While it takes v, a gang of q nodes that waits, since d, wastes q (d + v).  One that executes fails with probability
        q v / M, M being the mean time between the failures of a node, and then discards on average what it has at risk and
        v / 2, on q nodes (Herault et al. 2018).  All in whole numbers, times 2 M.
        """
        now, takes, scale = self._env.now, served.ticks, 2 * (self._node_mtbf or 1)
        waste = 0
        for other in self._waiting:
            if other is served:
                continue
            if other.at_risk is None:
                waste += scale * other.nodes * (now - other.since + takes)
            elif self._node_mtbf is not None:
                waste += other.nodes**2 * takes * (2 * other.at_risk() + takes)
        return waste
