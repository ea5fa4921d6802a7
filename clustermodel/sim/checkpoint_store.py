"""The checkpoint store, where the images of gangs are written and read.

Gangs share its bandwidth, or have it one after the other, by the strategies of Herault et al. 2018
(:attr:`CheckpointStore.writers <clustermodel.machine.checkpoints.CheckpointStore.writers>`).  Where transfers take constant
times, each task has a bandwidth of its own, and the store takes a limited number of tasks at a time (Q of Zhang et al. 2003,
section 5.4).
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf, isinf
from typing import Final

from simpy import Event

from clustermodel.machine.machine import Machine
from clustermodel.sim.events import AlarmClock, Clock
from clustermodel.ticks import duration_to_ticks

PARTS_OF_A_BYTE: Final = 10**6  # sizes are counted in millionths of a byte
Moving = tuple[int, int, int]
"""A transfer under way: what the clock of :class:`SharedBandwidth` shows when it ends, its number, its tasks."""


class SharedBandwidth:
    """Who moves how much by when, in whole numbers."""

    # Each task at the store gets the same bandwidth: its share of the store's, `total` bytes a second, at most what its node
    # has, `per_task` (one of the two is given).  So one clock counts what each of them has moved, in millionths of a byte,
    # rounded down whenever transfers begin or end; a transfer ends at the first tick at which all of it has been moved.

    def __init__(self, total: int | None, per_task: int | None) -> None:
        self._total = total
        self._per_task = per_task
        self._clock = 0  # what each task at the store has moved so far
        self._now = 0  # when that was, ticks
        self._order: list[Moving] = []  # a heap: the transfer that ends first comes first
        self._stopped: set[Moving] = set()  # of those in the heap
        self._begun = 0
        self.tasks = 0  # how many tasks are being moved

    def alone(self, tasks: int) -> int:
        """Return the bandwidth of so many tasks if no others are at the store, bytes a second."""
        limits = [self._total, None if self._per_task is None else tasks * self._per_task]
        return min(limit for limit in limits if limit is not None)

    def ticks_alone(self, tasks: int, size: int) -> int:
        """Return how long ``size`` bytes take if no others are at the store, ticks, rounded up."""
        return -(-size * PARTS_OF_A_BYTE // self.alone(tasks))

    def begin(self, now: int, tasks: int, ticks: int) -> Moving:
        """Begin a transfer of so many tasks at a time that takes ``ticks`` if no others are at the store."""
        self._advance(now)
        self.tasks += tasks
        self._begun += 1
        moving = (self._clock + ticks * self.alone(tasks) // tasks, self._begun, tasks)
        heappush(self._order, moving)
        return moving

    def stop(self, now: int, moving: Moving) -> None:
        self._advance(now)
        self.tasks -= moving[2]
        self._stopped.add(moving)

    def ended(self, now: int) -> list[Moving]:
        """Return the transfers that have ended by now, in the order in which they began among equals."""
        self._advance(now)
        ended = []
        while (first := self._first()) is not None and first[0] <= self._clock:
            ended.append(heappop(self._order))
            self.tasks -= first[2]
        return ended

    def next_end(self) -> int | None:
        """Return when the next transfer ends if none begins or is stopped before, ticks; ``None`` if there is none."""
        first = self._first()
        if first is None:
            return None
        moved, per = self._rate()
        return self._now + max(-(-(first[0] - self._clock) * per // moved), 0)

    def _first(self) -> Moving | None:
        while self._order and self._order[0] in self._stopped:
            self._stopped.remove(heappop(self._order))
        return self._order[0] if self._order else None

    def _rate(self) -> tuple[int, int]:
        """Return what a task moves in a tick, as a fraction."""
        if self._total is None or (self._per_task is not None and self._per_task * self.tasks <= self._total):
            assert self._per_task is not None
            return self._per_task, 1
        return self._total, self.tasks

    def _advance(self, now: int) -> None:
        if self.tasks and now > self._now:
            moved, per = self._rate()
            self._clock += (now - self._now) * moved // per
        self._now = now


class Transfer:
    """What a gang asks of the store: to write or to read its image, or a round of its tasks."""

    __slots__ = ("at_risk", "done", "granted", "moving", "nodes", "since", "tasks", "ticks")

    def __init__(self, env: Clock, nodes: int, tasks: int, ticks: int, at_risk: Callable[[], int] | None) -> None:
        self.nodes, self.tasks = nodes, tasks  # of the gang; how many of its tasks are moved at a time
        self.ticks = ticks  # how long the transfer takes if the gang has the store to itself
        self.at_risk = at_risk
        """Of a gang that executes until it is its turn (``None`` if it waits): how much it would lose now by a failure, and how
        long it would take to restart, together, ticks."""
        self.since = env.now  # since when it has waited, ticks
        self.granted, self.done = Event(env), Event(env)  # succeed when it begins, and ends, to be moved
        self.moving: Moving | None = None  # once it has been granted


class Store:
    """The store of a run's machine."""

    def __init__(self, env: Clock, machine: Machine) -> None:
        store, failures = machine.checkpointing.store, machine.failures
        writers, mtbf_s = "oblivious", inf
        self._in_rounds = store is None  # whether the tasks of a gang that it has no room for follow in further transfers
        if store is None:
            self._bandwidth = SharedBandwidth(None, 1)
            self._most_tasks = machine.checkpointing.max_tasks_per_slice or None
        else:
            self._bandwidth = SharedBandwidth(store.bandwidth, store.node_bandwidth)
            self._most_tasks, writers = store.max_concurrent_tasks, store.writers
            if failures is not None:
                mtbf_s = failures.node_mtbf_s(machine.processors)
        self.executes_while_waiting = writers in ("fcfs_nonblocking", "least_waste")
        """Whether a gang that waits to write a periodic checkpoint executes until it is its turn."""
        self._one_at_a_time, self._least_waste = writers != "oblivious", writers == "least_waste"
        self._node_mtbf = None if isinf(mtbf_s) else duration_to_ticks(mtbf_s)  # of a node, ticks, if they fail
        self._env = env
        self._waiting: list[Transfer] = []  # in the order in which they asked
        self._under_way: dict[Moving, Transfer] = {}
        self._alarm = AlarmClock(env, self._go_on)

    def rounds(self, nodes: int) -> Iterable[int]:
        """Return the tasks that are left in each transfer of a gang, which asks for one after the other."""
        return range(nodes, 0, -(self._most_tasks or nodes)) if self._in_rounds else (nodes,)

    def ask(self, nodes: int, ticks: int, at_risk: Callable[[], int] | None = None) -> Transfer:
        """Ask for a transfer, which begins at once if it is its turn; :meth:`withdraw` it in the end."""
        transfer = Transfer(self._env, nodes, min(nodes, self._most_tasks or nodes), ticks, at_risk)
        self._waiting.append(transfer)
        self._go_on()
        return transfer

    def withdraw(self, transfer: Transfer) -> None:
        """Cancel an unfinished transfer; data moved so far are discarded."""
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
        """Return what the other gangs can be expected to waste if ``served`` has the store next, in some unit."""
        # While it takes v, a gang of q nodes that waits, since d, wastes q (d + v).  One that executes fails with probability
        # q v / M, M being the mean time between the failures of a node, and then discards on average what it has at risk and
        # v / 2, on q nodes (Herault et al. 2018).  All in whole numbers, times 2 M.
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
