"""What the gang of a job pays by its number of nodes: a context switch, the start-up and the epilog of a run attempt."""

from typing import Final

from clustermodel.errors import counted
from clustermodel.machine.machine import Machine
from clustermodel.validation import require
from clustermodel.workload.job import NO_COSTS, UNSET, Demands, JobRow, OwnCosts


class JobCosts:
    """The job's own costs count if it has some, else what the machine says, perhaps by number of nodes."""

    def __init__(self, machine: Machine, demands: Demands) -> None:
        self._machine = machine
        self._switch = machine.uniform_switch
        self._by_nodes = machine.context_switch.cost
        self._startup, self._epilog = machine.startup, machine.epilog
        own = dict[OwnCosts, int]()  # with the first job of each
        for demand, job in demands.items():
            if demand is not None:
                own.setdefault(demand.costs, job)
        own_switches = any(each.context_switch != UNSET for each in own)
        self.switch_of_all: Final = None if own_switches else self._switch
        """The context switch of all jobs, ticks; ``None``: they differ."""
        self.occupy: Final = bool(
            self._startup.constant != 0
            or self._epilog.constant != 0
            or any(each.startup > 0 or each.epilog > 0 for each in own)
        )
        """Whether gangs may occupy dedicated nodes before and after they execute."""
        charge, where = machine.checkpointing.restart_charge, " where jobs have a start-up or an epilog"
        free = charge == "on-start" or not self.occupy
        require(free, "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)
        for each, job in own.items():
            if each.context_switch != UNSET:
                machine.require_switch(each.context_switch, f" of job {job}")
        self._checked: dict[int, int] = {}

    def switch(self, job: JobRow, nodes: int) -> int:
        """Return the ticks of a context switch of a job's gang on ``nodes`` nodes."""
        if self.switch_of_all is not None:
            return self.switch_of_all
        if job.demand is not None and job.demand.costs.context_switch != UNSET:
            return job.demand.costs.context_switch
        if self._switch is not None:
            return self._switch
        if nodes not in self._checked:
            ticks = self._by_nodes.of(nodes)
            self._machine.require_switch(ticks, f" of a gang of {counted(nodes, 'node')}")
            self._checked[nodes] = ticks
        return self._checked[nodes]

    def startup(self, job: JobRow, nodes: int) -> int:
        """Return how long the gang of a job occupies so many dedicated nodes before a run attempt executes, ticks."""
        own = (NO_COSTS if job.demand is None else job.demand.costs).startup
        return self._startup.of(nodes) if own == UNSET else own

    def epilog(self, job: JobRow, nodes: int) -> int:
        """Return how long it occupies them after that, ticks."""
        own = (NO_COSTS if job.demand is None else job.demand.costs).epilog
        return self._epilog.of(nodes) if own == UNSET else own
