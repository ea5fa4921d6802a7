"""Dedicated nodes on which gangs spend the time of a restart again and again, by the conventions of published simulations.

By default a job with saved work spends it once, when it starts (:mod:`clustermodel.sim.dedicated_nodes`).  Here every running
gang spends it, in its first run attempt too: at the beginning of each interval between two scheduling cycles, or of each round.
What a gang has executed by a cycle follows from arithmetic, so neither convention needs an event of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator

from simpy import Event, Timeout

from clustermodel.errors import DecisionError, SpecificationError
from clustermodel.machine import Machine
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.schedule.node_set import NodeSet
from clustermodel.sim.checkpoint_store import LimitedStore
from clustermodel.sim.dedicated_nodes import DedicatedGang, DedicatedNodes
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import JobInSystem, Terms
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.shared_store import SharedStore
from clustermodel.sim.sharing import Sharing
from clustermodel.ticks import to_seconds


class RechargedGang(DedicatedGang):
    """A gang that spends the time of a restart repeatedly.

    Args:
        owner: whose run attempt it is.
        nodes: where it runs.
        columns: which of them.
        terms: how long it will execute, and how that ends.
        restart: how long a restart takes, ticks.
    """

    __slots__ = ("_restart",)

    def __init__(self, owner: JobInSystem, nodes: RechargingNodes, columns: NodeSet, terms: Terms, restart: int) -> None:
        super().__init__(owner, nodes, columns, terms)
        self._restart = restart
        nodes.gangs[owner.queued.id] = self

    def run(self) -> Generator[Event, object, None]:
        """Hold the nodes until the run attempt has ended."""
        yield from super().run()
        assert isinstance(self._nodes, RechargingNodes)
        del self._nodes.gangs[self.job.id]

    @abstractmethod
    def settle(self, now: int) -> None:
        """Bring what it has executed, and what it has been charged, up to ``now``."""

    def _charge(self, begin: int, end: int) -> None:
        """Charge its nodes to a restart from ``begin`` to ``end``, ticks; the queue has not changed in between."""
        if begin < end:
            ledger = self._nodes.ledger
            ledger.charge(Account.RESTART, self.nodes * (end - begin), waiting=ledger.waiting)
            self._nodes.records.overhead(self.owner.index, begin, end, self.nodes, Account.RESTART)


class PayingAtDecisions(RechargedGang):
    """A gang that restarts after every scheduling cycle.

    Until the next cycle it counts as executing, and it completes when it has executed for its duration: the interval in which
    it completes is not charged.  What it had to spend in an interval is known at its end.
    """

    __slots__ = ()

    def _execute(self, until: int) -> Generator[Event, object, None]:
        while (left := until - self.executed()) > 0:  # restarts may have been charged meanwhile
            yield Timeout(self._nodes.env, left)
        self._executed, self._since = until, None

    def settle(self, now: int) -> None:
        """Charge the interval since the last cycle."""
        if self._since is None:
            return
        paid = min(self._restart, now - self._since)
        self._charge(self._since, self._since + paid)
        self._executed += now - self._since - paid
        self._since = now


class PayingInRounds(RechargedGang):
    """A gang that restarts at its start and at the beginning of each round.

    Raises:
        SpecificationError: a restart takes a whole round.
    """

    __slots__ = ("_charged_until", "_round")

    def __init__(
        self, owner: JobInSystem, nodes: RechargingNodes, columns: NodeSet, terms: Terms, restart: int, length: int
    ) -> None:
        if restart >= length:
            raise SpecificationError(
                f"Machine.round_s: {to_seconds(length):g} is not allowed for job {owner.queued.id}, whose restart takes "
                f"{to_seconds(restart):g} s in every round; it must be longer"
            )
        super().__init__(owner, nodes, columns, terms, restart)
        self._round = length
        self._charged_until = self.start
        self.expected_end = self._end(self.start, self.length)

    def _execute(self, until: int) -> Generator[Event, object, None]:
        assert self._since is not None
        yield Timeout(self._nodes.env, self._end(self._since, until - self._executed) - self._nodes.env.now)
        self.settle(self._nodes.env.now)
        self._executed, self._since = until, None

    def settle(self, now: int) -> None:
        """Charge the restarts since the last cycle."""
        if self._since is not None:
            for begin, end in self._restarts(self._since, max(self._charged_until, self._since), now):
                self._charge(begin, end)
            self._charged_until = now

    def executed(self) -> int:
        """Return how long it has executed, ticks: this run attempt alone."""
        return self._executed if self._since is None else self._executed + self._executed_from(self._since)

    def _pause(self) -> None:
        self._executed, self._since = self.executed(), None

    def _executed_from(self, since: int) -> int:
        now = self._nodes.env.now
        return now - since - sum(end - begin for begin, end in self._restarts(since, since, now))

    def _end(self, since: int, work: int) -> int:
        """Return when a gang that starts at ``since`` has executed for ``work`` ticks."""
        ends = since - since % self._round + self._round
        first = max(ends - since - self._restart, 0)
        if work <= first:
            return since + self._restart + work
        rounds, rest = divmod(work - first - 1, self._round - self._restart)
        return ends + rounds * self._round + self._restart + rest + 1

    def _restarts(self, since: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of ``begin`` to ``end`` in which a gang that started at ``since`` restarts."""
        at = max(since, begin - begin % self._round)
        while at < end:
            ends = at - at % self._round + self._round
            first, last = max(at, begin), min(at + self._restart, ends, end)
            if first < last:
                yield first, last
            at = ends


class RechargingNodes(DedicatedNodes):
    """Dedicated nodes whose gangs spend the time of a restart repeatedly.

    Args:
        machine: whose charging convention it is.
        env, pool, store, saved, ledger, records, time_sharing: as for
            :class:`~clustermodel.sim.dedicated_nodes.DedicatedNodes`.
    """

    def __init__(
        self,
        machine: Machine,
        env: Clock,
        pool: NodePool,
        store: LimitedStore | SharedStore,
        saved: SavedWork,
        ledger: Ledger,
        records: JobRecords,
        time_sharing: Callable[[], Sharing],
    ) -> None:
        super().__init__(env, pool, store, saved, ledger, records, time_sharing)
        self.gangs: dict[int, RechargedGang] = {}
        """The running gangs by job id."""
        self.is_settled = True
        self._convention = machine.checkpointing.restart_charge
        self._round = machine.round

    def shared_in_time(self, down: Iterable[NodeSet]) -> Sharing:
        """Refuse to share nodes in time: a gang in rows goes on from slice to slice without a restart.

        Raises:
            DecisionError: always.
        """
        raise DecisionError(
            f"nodes cannot be shared in time where restarts are charged {self._convention} (Checkpointing.restart_charge), "
            "because gangs in rows go on without a restart; use 'on-start'"
        )

    def _gang(self, job: JobInSystem, columns: NodeSet, terms: Terms) -> DedicatedGang:
        restart = self.saved.restart_ticks(job, terms.nodes)
        if self._convention == "every-round":
            return PayingInRounds(job, self, columns, terms, restart, self._round)
        return PayingAtDecisions(job, self, columns, terms, restart)

    def settle(self, now: int) -> None:
        """Bring what gangs have executed, and what they have been charged, up to ``now``."""
        for gang in self.gangs.values():
            gang.settle(now)


def dedicated_nodes(
    machine: Machine,
    env: Clock,
    pool: NodePool,
    store: LimitedStore | SharedStore,
    saved: SavedWork,
    ledger: Ledger,
    records: JobRecords,
    time_sharing: Callable[[], Sharing],
) -> DedicatedNodes:
    """Return dedicated nodes with the charging convention of the machine."""
    rest = (env, pool, store, saved, ledger, records, time_sharing)
    return DedicatedNodes(*rest) if machine.checkpointing.restart_charge == "on-start" else RechargingNodes(machine, *rest)
