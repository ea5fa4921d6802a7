"""How long a job's checkpoints and restarts take, and how often it is checkpointed."""

from __future__ import annotations

from clustermodel.errors import SpecificationError, counted
from clustermodel.job import UNSET
from clustermodel.machine import Machine
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.shared_bandwidth import SharedBandwidth
from clustermodel.theory.checkpointing import daly_interval_s, young_interval_s
from clustermodel.ticks import duration_to_ticks, to_seconds

_BYTES_PER_KIB = 1024


class TransferCosts:
    """The job's own costs if it has some, else what the bandwidth of the checkpoint store says, else the machine's constants.

    Args:
        machine: its costs, its store and its failures.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        costs = machine.checkpointing
        self._constants = costs.checkpoint, costs.restart
        self._store = store = costs.store
        self._bandwidth = None if store is None else SharedBandwidth(store.bandwidth, store.node_bandwidth)
        self.tasks_at_a_time = costs.max_tasks_per_slice if store is None else store.max_concurrent_tasks
        """The most tasks that the store takes at a time; ``None`` is no limit."""
        self._spreads_migrations = costs.counts == "spread"
        self.are_periodic = costs.interval_s is not None
        """Whether gangs are checkpointed periodically."""
        self._intervals: dict[tuple[int, int], int | None] = {}  # nodes, ticks of a checkpoint -> the machine's interval

    def of(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        """Return how long a checkpoint and a restart of a job take on ``nodes``, ticks; of constant costs, one round.

        Raises:
            SpecificationError: the store has a bandwidth, and the memory of the job is unknown.
        """
        own_checkpoint, own_restart = job.row.checkpoint, job.row.restart
        if UNSET not in (own_checkpoint, own_restart):
            return own_checkpoint, own_restart
        checkpoint, restart = self._constants if self._bandwidth is None else self._by_bandwidth(job, nodes)
        return checkpoint if own_checkpoint == UNSET else own_checkpoint, restart if own_restart == UNSET else own_restart

    def _by_bandwidth(self, job: JobInSystem, nodes: int) -> tuple[int, int]:
        assert self._bandwidth is not None
        if job.row.memory == UNSET:
            raise SpecificationError(
                f"CheckpointStore: job {job.queued.id} has no memory_gib, from which the size of its image follows; "
                "give the memory of each job, or costs of its own"
            )
        size = nodes * job.row.memory * _BYTES_PER_KIB
        ticks = self._bandwidth.ticks_alone(min(nodes, self.tasks_at_a_time or nodes), size)
        return ticks, ticks

    def rounds(self, nodes: int) -> int:
        """Return in how many rounds a gang's tasks are written or read, as many at a time as the store takes.

        One, where the bandwidth says how long all of them take.
        """
        return 1 if self._bandwidth is not None else -(-nodes // (self.tasks_at_a_time or nodes))

    def rounds_of_migration(self, moved: int) -> int:
        """Return over how many slices the migration of a gang in rows is spread, of which so many tasks get another node."""
        if not self._spreads_migrations or not self.tasks_at_a_time:
            return 1
        return max(1, -(-moved // self.tasks_at_a_time))

    def interval(self, job: JobInSystem, nodes: int) -> int | None:
        """Return how long a gang executes between two periodic checkpoints, ticks; ``None``: there are none.

        Raises:
            SpecificationError: the interval follows from the cost of a checkpoint, and this job's takes no time.
        """
        asked = self._machine.checkpointing.interval_s
        if asked is None:
            return None
        if (own := job.row.checkpoint_interval) != UNSET:
            return own
        if asked == "own":
            return None
        ticks = self.of(job, nodes)[0] * self.rounds(nodes) if isinstance(asked, str) else 0
        if (nodes, ticks) not in self._intervals:
            if isinstance(asked, str) and not ticks:
                raise SpecificationError(
                    f"Checkpointing.interval_s: {asked!r} is not allowed for job {job.queued.id} "
                    f"({counted(nodes, 'node')}), whose checkpoints take no time; it must be a number of seconds"
                )
            self._intervals[nodes, ticks] = self._interval(asked, nodes, ticks)
        return self._intervals[nodes, ticks]

    def _interval(self, asked: float | str, nodes: int, ticks: int) -> int:
        """Return the interval in seconds, or the one of a name for checkpoints that take so many ticks."""
        if isinstance(asked, str):
            failures = self._machine.failures
            assert failures is not None
            formula = {"young": young_interval_s, "daly": daly_interval_s}[asked]
            asked = formula(to_seconds(ticks), failures.node_mtbf_s(self._machine.processors) / nodes)
        return max(1, duration_to_ticks(asked))
