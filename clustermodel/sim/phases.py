"""What a run attempt consists of: phases, each with what they cost (:class:`~clustermodel.sim.job_process.Phase`).

On dedicated nodes these are a boot, start-up, restoring what was saved, the work with its periodic checkpoints, and the epilog;
a preemption saves, a migration writes and reads an image, a resize has phases of its own.  In rows a gang spends those that it
can have there in its own slices.  How long a gang is expected to hold its nodes is the sum of its phases.

A cost that occupies dedicated nodes before or after a gang executes is a field of the machine (``OCCUPYING`` there), an account
of the ledger, and a line of ``BEFORE`` or ``AFTER``.
"""

from collections.abc import Iterable
from typing import Any, Final

from clustermodel.errors import DecisionError, counted
from clustermodel.machine.costs import CostTicks
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, text
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.job_process import SAVING, Execution, JobInSystem, Phase
from clustermodel.sim.transfer_costs import TransferCosts
from clustermodel.validation import require
from clustermodel.workload.job import NO_COSTS, UNSET, Demands, JobRow, OwnCosts

BEFORE: Final = {Account.STARTUP: "startup"}
"""What a gang occupies dedicated nodes with before a run attempt executes, in order: fields of ``Machine`` with ``_s``, and of
``OwnCosts`` where a job may have its own.  What is resumed on the nodes whose memory has it has none of these phases."""
AFTER: Final = {Account.EPILOG: "epilog"}
"""The same, after it has executed and saved what it is to save; not if it is suspended, or a node fails."""


class Phases:
    """The phases of each job's run attempts; the job's own costs count if it has some, else what the machine says."""

    def __init__(self, machine: Machine, demands: Demands) -> None:
        self._machine = machine
        self.transfers: Final = TransferCosts(machine)  # what checkpoints and restarts cost
        self._restarts_at_starts = machine.checkpointing.restart_charge == "on-start"
        self._quantum = machine.time_slicing.quantum
        self._boot = machine.boot  # how long nodes take to boot that are switched off when they are idle, ticks
        self._switch = machine.uniform_switch
        self._by_nodes = machine.context_switch.cost
        self._checked: dict[int, int] = {}
        self._occupying = {name: CostTicks(f"Machine.{name}_s", _of(machine, f"{name}_s")) for name in _NAMES}
        own = dict[OwnCosts, int]()  # with the first job of each
        for demand, job in demands.items():
            if demand is not None:
                own.setdefault(demand.costs, job)
        own_switches = any(each.context_switch != UNSET for each in own)
        self.switch_of_all: Final = None if own_switches else self._switch
        """The context switch of all jobs, ticks; ``None``: they differ."""
        self.occupy: Final = any(
            cost.constant != 0 or any(_of(each, name) > 0 for each in own) for name, cost in self._occupying.items()
        )
        """Whether gangs may occupy dedicated nodes before and after they execute."""
        charge, where = machine.checkpointing.restart_charge, " where jobs have a start-up or an epilog"
        free = charge == "on-start" or not self.occupy
        require(free, "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)
        for each, job in own.items():
            if each.context_switch != UNSET:
                machine.require_switch(each.context_switch, f" of job {job}")

    def takes(self, phases: Iterable[Phase]) -> int:
        """Return how long phases take one after the other if the checkpoint store has room at once, ticks."""
        return sum([ticks * self.transfers.rounds(tasks) if tasks else ticks for _, ticks, tasks, _ in phases])

    def in_all(self, phases: Iterable[Phase]) -> list[Phase]:
        """Return the same phases, each with all rounds of its transfer."""
        return [phase._replace(ticks=self.takes([phase])) for phase in phases]

    def before(self, job: JobInSystem, nodes: int, columns: NodeSet | None) -> list[Phase]:
        """Return what a gang on dedicated nodes spends before a run attempt executes there; ``None``: on nodes at worst."""
        resumes = job.image is not None and columns is not None and job.image.columns == columns
        phases = [] if resumes else self.occupying(BEFORE, job.row, nodes)
        return phases if job.image is None else [*phases, *self.restoring(job, columns)]

    def occupying(self, which: dict[Account, str], row: JobRow, nodes: int) -> list[Phase]:
        """Return what a gang occupies dedicated nodes with ``BEFORE`` or ``AFTER`` it executes, but for what is saved of it."""
        if not self.occupy:
            return []
        phases, costs = list[Phase](), NO_COSTS if row.demand is None else row.demand.costs
        for account, name in which.items():
            own = _of(costs, name)
            phases.append(Phase(account, self._occupying[name].of(nodes) if own == UNSET else own, 0, which is BEFORE))
        return _costing(*phases)

    def execution(self, job: JobInSystem, nodes: int, ticks: int) -> list[Phase]:
        """Return what a gang does on dedicated nodes that is ready to execute for so many ticks, until they are free."""
        interval, checkpoint = self.checkpoints(job, nodes)
        number = 0 if interval is None else (ticks - 1) // interval
        work, written = Phase(Account.USEFUL, ticks), Phase(Account.CHECKPOINT, number * checkpoint)
        return [work, written, *self.occupying(AFTER, job.row, nodes)]

    def holding(self, job: JobInSystem, ticks: int, on: int | None = None) -> int:
        """Return how long a waiting job can be expected to hold nodes from now on if it executes for ``ticks`` in all.

        It does so on as many nodes as it asked for, or was saved with, unless on those ``on`` others.
        """
        nodes = on or job.saved_on or job.queued.nodes
        ticks = ticks if job.image is None else max(ticks - job.image.work, 1)
        return self._boot + self.takes(self.before(job, nodes, None) + self.execution(job, nodes, ticks))

    def checkpoints(self, job: JobInSystem, nodes: int) -> tuple[int | None, int]:
        """Return how long a gang executes between two periodic checkpoints, if it has some, and how long one takes, ticks."""
        interval = self.transfers.interval(job, nodes) if self.transfers.are_periodic else None
        return interval, 0 if interval is None else self.transfers.in_all(job, nodes)[0]

    def checkpoint(self, gang: Execution) -> list[Phase]:
        return _costing(Phase(Account.CHECKPOINT, self.transfers.of(gang.owner, gang.nodes)[0], gang.nodes))

    def saving(self, gang: Execution, how: Status) -> list[Phase]:
        """Return what a gang spends on saving what it has executed; nothing if its image is still where it was."""
        if how not in SAVING or gang.fetching:
            return []
        return self.checkpoint(gang) if how is Status.CHECKPOINTED else self._resuming(gang.owner, gang.nodes)

    def restoring(self, job: JobInSystem, columns: NodeSet | None) -> list[Phase]:
        """Return what a saved job spends on ``columns`` before it goes on there; ``None``: on nodes at worst."""
        image = job.image
        assert image is not None
        if image.columns == columns and columns is not None:
            return self._resuming(job, image.nodes)
        if self.transfers.tasks_at_a_time == 0 and columns is not None:
            where = f"it is in the memory of nodes {text(image.columns or ())}"
            raise DecisionError(f"job {job.queued.id} cannot start elsewhere: {where}, and the store takes no tasks")
        phases = self._moved(job, image.nodes, at_worst=columns is None)
        if image.columns is None:
            return [phase for phase in phases if phase.account is Account.RESTART]
        return phases if columns is not None else max(phases, self._resuming(job, image.nodes), key=self.takes)

    def migration(self, gang: Execution, rounds: int = 1) -> list[Phase]:
        """Return what a gang spends on its new nodes when it migrates."""
        # A round begins a quantum of its own slices after the one before it, or later, when that is over.
        transfers = self._moved(gang.owner, gang.nodes)
        if rounds == 1 or not transfers:
            return transfers
        waiting = _costing(Phase(Account.BLOCKED, max(0, self._quantum - sum(phase.ticks for phase in transfers))))
        return [*(transfers + waiting) * (rounds - 1), *transfers]

    def _moved(self, job: JobInSystem, nodes: int, *, at_worst: bool = False) -> list[Phase]:
        """Return a checkpoint and a restart; restarts that are charged later cost nothing now."""
        checkpoint, restart = self.transfers.of(job, nodes)
        restart = restart if self._restarts_at_starts or at_worst else 0
        return _costing(Phase(Account.CHECKPOINT, checkpoint, nodes), Phase(Account.RESTART, restart, nodes))

    def resize(self, job: JobInSystem, before: int, after: int, *, fails: bool = False) -> list[Phase]:
        """Return what a change of a gang's size costs; after a failure, nothing of the gang can be written."""
        assert job.sizes is not None
        constant = self._machine.resize if job.sizes.resize == UNSET else job.sizes.resize
        if constant is not None:
            return _costing(Phase(Account.RESIZE, constant))
        written = 0 if fails else self.transfers.of(job, before)[0]
        read = self.transfers.of(job, after)[1]
        return _costing(Phase(Account.RESIZE, written, before), Phase(Account.RESIZE, read, after))

    def _resuming(self, job: JobInSystem, nodes: int) -> list[Phase]:
        return _costing(Phase(Account.CONTEXT_SWITCH, self.switch(job.row, nodes)))

    def switch(self, row: JobRow, nodes: int) -> int:
        """Return the ticks of a context switch of a job's gang on ``nodes`` nodes."""
        if self.switch_of_all is not None:
            return self.switch_of_all
        if row.demand is not None and row.demand.costs.context_switch != UNSET:
            return row.demand.costs.context_switch
        if self._switch is not None:
            return self._switch
        if nodes not in self._checked:
            ticks = self._by_nodes.of(nodes)
            self._machine.require_switch(ticks, f" of a gang of {counted(nodes, 'node')}")
            self._checked[nodes] = ticks
        return self._checked[nodes]


_NAMES: Final = (*BEFORE.values(), *AFTER.values())


def _of(costs: object, name: str) -> Any:
    return getattr(costs, name, UNSET)


def _costing(*phases: Phase) -> list[Phase]:
    return [phase for phase in phases if phase.ticks]
