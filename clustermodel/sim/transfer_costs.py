"""How long the checkpoints, restarts and migrations of a job take, and how often it is checkpointed."""

from clustermodel.errors import SpecificationError, counted
from clustermodel.machine.machine import Machine
from clustermodel.sim.checkpoint_store import SharedBandwidth
from clustermodel.sim.job_process import JobInSystem
from clustermodel.ticks import duration_to_ticks, to_seconds
from clustermodel.workload.job import NO_COSTS, UNSET

_BYTES_PER_KIB = 1024


class TransferCosts:
    """The job's own costs count if it has some, else what the bandwidth of the store says, else the machine's constants."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        costs, store = machine.checkpointing, machine.checkpointing.store
        self._constants = costs.checkpoint, costs.restart
        self._bandwidth = None if store is None else SharedBandwidth(store.bandwidth, store.node_bandwidth)
        self.tasks_at_a_time = costs.max_tasks_per_slice if store is None else store.max_concurrent_tasks
        """The most tasks that the store takes at a time; ``None`` is no limit."""
        self.are_periodic = costs.interval_s is not None  # whether gangs are checkpointed periodically
        self._intervals: dict[tuple[int, int], int] = {}  # nodes, ticks of a checkpoint -> the machine's interval

    def of(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return how long a checkpoint and a restart of a job take on ``nodes``, ticks; of constant costs, one round."""
        own_checkpoint, own_restart = (NO_COSTS if job.row.demand is None else job.row.demand.costs)[:2]
        if UNSET not in (own_checkpoint, own_restart):
            return own_checkpoint, own_restart
        checkpoint, restart = self._constants
        if self._bandwidth is not None:
            if job.row.memory == UNSET:
                raise SpecificationError(
                    f"CheckpointStore: job {job.queued.id} has no memory_gib, from which the size of its image follows; "
                    "give the memory of each job, or costs of its own"
                )
            size = nodes * job.row.memory * _BYTES_PER_KIB
            checkpoint = restart = self._bandwidth.ticks_alone(min(nodes, self.tasks_at_a_time or nodes), size)
        return checkpoint if own_checkpoint == UNSET else own_checkpoint, restart if own_restart == UNSET else own_restart

    def in_all(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return :meth:`of` all rounds together, if the store has room at once."""
        checkpoint, restart = self.of(job, nodes)
        return checkpoint * self.rounds(nodes), restart * self.rounds(nodes)

    def rounds(self, nodes: int) -> int:
        """Return in how many rounds a gang's tasks are written or read; one, where the bandwidth says how long all take."""
        return 1 if self._bandwidth is not None else -(-nodes // (self.tasks_at_a_time or nodes))

    def rounds_of_migration(self, moved: int) -> int:
        """Return over how many slices the migration of a gang in rows is spread, of which so many tasks get another node."""
        if self._machine.checkpointing.counts != "spread" or not self.tasks_at_a_time:
            return 1
        return max(1, -(-moved // self.tasks_at_a_time))

    def interval(self, job: JobInSystem, nodes: int) -> int | None:
        """Return how long a gang executes between two periodic checkpoints, ticks; ``None``: there are none."""
        asked, failures = self._machine.checkpointing.interval_s, self._machine.failures
        if asked is None:
            return None
        if job.row.demand is not None and (own := job.row.demand.costs.checkpoint_interval) != UNSET:
            return own
        if asked == "own":
            return None
        ticks = self.in_all(job, nodes)[0] if isinstance(asked, str) else 0
        if (nodes, ticks) not in self._intervals:
            if isinstance(asked, str):
                if not ticks:
                    raise SpecificationError(
                        f"Checkpointing.interval_s: {asked!r} is not allowed for job {job.queued.id} "
                        f"({counted(nodes, 'node')}), whose checkpoints take no time; it must be a number of seconds"
                    )
                assert failures is not None
                from clustermodel.theory.checkpointing import daly_interval_s, young_interval_s  # noqa: PLC0415

                formula = {"young": young_interval_s, "daly": daly_interval_s}[asked]
                asked = formula(to_seconds(ticks), failures.node_mtbf_s(self._machine.processors) / nodes)
            self._intervals[nodes, ticks] = max(1, duration_to_ticks(asked))
        return self._intervals[nodes, ticks]
