"""Checkpoints and restarts, and the store that holds them: what they cost."""

from dataclasses import dataclass
from typing import Final

import clustermodel.validation as check
from clustermodel.errors import SpecificationError
from clustermodel.ticks import to_ticks
from clustermodel.validation import A_TICK, require, seconds_fields, whole_fields

# What the fields of the classes below may be, and mean.
INTERVALS: Final = ("young", "daly", "own")
RESTART_CHARGES: Final = ("on-start", "every-decision", "every-round")
COUNTS: Final = ("gang", "moved", "spread")
WRITERS: Final = ("oblivious", "fcfs", "fcfs_nonblocking", "least_waste")
LEAST_BANDWIDTH: Final = 1e-6  # GiB a second: a kibibyte
MOST_BANDWIDTH: Final = 1e9
_BYTES_PER_GIB: Final = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointStore:
    """A checkpoint store with a bandwidth: a transfer takes as long as its image is large.

    The image of a gang is its memory, ``Job.memory_gib`` on each of its nodes.  All nodes that write or read share the
    bandwidth of the store evenly.  On nodes that gangs share in time, a store can have ``node_bandwidth_gib_s`` alone.
    """

    bandwidth_gib_s: float | None = None
    """Bandwidth of the store, GiB a second, which the nodes that write or read at the same time share; ``None`` is no limit."""
    node_bandwidth_gib_s: float | None = None
    """Bandwidth between a node and the store, GiB a second; ``None`` is no limit."""
    max_concurrent_tasks: int | None = None
    """How many tasks the store takes at a time, for ``writers="oblivious"``; further gangs wait, first come, first served, and
    larger ones write or read so many of their tasks at a time.  ``None`` is no limit."""
    writers: str = "oblivious"
    """Who writes or reads when several gangs want to (the strategies of Herault et al. 2018):

    - ``"oblivious"``: all at once; they share the bandwidth.
    - ``"fcfs"``: one gang at a time, first come, first served; the others hold their nodes and wait.
    - ``"fcfs_nonblocking"``: the same, but a gang that waits to write a periodic checkpoint executes on until it is its turn.
    - ``"least_waste"``: one gang at a time, the one for which the others lose least, waiting or by failures; those that wait to
      write a periodic checkpoint execute on."""

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("bandwidth_gib_s", "node_bandwidth_gib_s")}
        allowed = f"a number of GiB/s >= {LEAST_BANDWIDTH:g} and <= {MOST_BANDWIDTH:g}"
        for name in [name for name, value in given.items() if value is not None]:
            field = f"CheckpointStore.{name}"
            check.require_number(field, given[name], allowed, lambda rate: LEAST_BANDWIDTH <= rate <= MOST_BANDWIDTH)
        if all(value is None for value in given.values()):
            raise SpecificationError(f"CheckpointStore: no bandwidth is given; give {' or '.join(given)}")
        check.choice("CheckpointStore.writers", self.writers, WRITERS)
        whole_fields(self, "CheckpointStore.", max_concurrent_tasks=1)
        alone = self.max_concurrent_tasks is None or self.writers == "oblivious"
        where = f" with writers={self.writers!r}, where one gang writes at a time"
        require(alone, "CheckpointStore.max_concurrent_tasks", self.max_concurrent_tasks, "it must be None", where)

    @property
    def bandwidth(self) -> int | None:
        """Bandwidth of the store, bytes a second."""
        return None if self.bandwidth_gib_s is None else round(self.bandwidth_gib_s * _BYTES_PER_GIB)

    @property
    def node_bandwidth(self) -> int | None:
        """Bandwidth between a node and the store, bytes a second."""
        return None if self.node_bandwidth_gib_s is None else round(self.node_bandwidth_gib_s * _BYTES_PER_GIB)

    @property
    def is_shared(self) -> bool:
        """Whether how long a transfer takes depends on what else is at the store."""
        return self.bandwidth_gib_s is not None or self.max_concurrent_tasks is not None or self.writers != "oblivious"


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpointing:
    """Cost of writing a gang's image to the checkpoint store and reading it back (Zhang et al. 2003, section 5.4).

    The cost does not depend on the size of the gang, whose tasks are written in parallel.  The number of tasks that the store
    takes in one time slice can be limited.  The paper's cost C of a migration is ``checkpoint_s + restart_s``, C/2 each.  With
    a ``store``, a transfer takes as long as the store's bandwidth says instead.  A job may have costs of its own.
    """

    checkpoint_s: float = 0.0
    """Time to checkpoint a gang, seconds."""
    restart_s: float = 0.0
    """Time to restart a gang from its checkpoint, seconds."""
    interval_s: float | str | None = None
    """Executed time between two periodic checkpoints, seconds; ``None`` disables them.  While one is written, the
    gang holds its nodes and does not execute; after the failure of a node it continues from its last one.  ``"young"`` and
    ``"daly"``: for the number of nodes of the gang (Young 1974; Daly 2006).  A job's ``checkpoint_interval_s`` replaces the
    interval; with ``"own"`` jobs without one are not checkpointed."""
    max_tasks_per_slice: int | None = None
    """Q: largest number of tasks that migrate in a time slice, and that the store takes at a time where gangs are preempted;
    ``None`` is no limit, 0 no migration and no checkpoints."""
    counts: str = "gang"
    """Which tasks of a gang that migrates in rows count against ``max_tasks_per_slice``, Q:

    - ``"gang"``: all its tasks.  A gang of more than Q tasks does not migrate.
    - ``"moved"``: the tasks that get another node.  A gang of which more than Q tasks would move does not migrate.
    - ``"spread"``: the same tasks, Q of them in a slice.  If more than Q move, the gang spends a quantum of its own slices on
      each Q of them but the last.  Where migration costs nothing, it moves at once.

    All tasks of a gang that is preempted or restored count, whatever this says."""
    store: CheckpointStore | None = None
    """A store whose bandwidth determines how long checkpoints and restarts take; ``None``: the costs above apply."""
    restart_charge: str = "on-start"
    """When a gang on dedicated nodes spends the time of its restart:

    - ``"on-start"``: when a job with saved work starts.
    - ``"every-decision"``: each running gang, in its first run attempt too, at every scheduling cycle but the last before its
      end.  The rule of the simulator of Zhao et al. 2022.
    - ``"every-round"``: each running gang at its start and at every multiple of ``Machine.round_s``."""

    def __post_init__(self) -> None:
        seconds_fields(self, "Checkpointing.", "checkpoint_s", "restart_s")
        check.choice("Checkpointing.counts", self.counts, COUNTS)
        check.choice("Checkpointing.restart_charge", self.restart_charge, RESTART_CHARGES)
        whole_fields(self, "Checkpointing.", max_tasks_per_slice=0)
        known = self.store is None or isinstance(self.store, CheckpointStore)
        require(known, "Checkpointing.store", self.store, "it must be a CheckpointStore(...) or None")
        for name, unset in (("checkpoint_s", 0), ("restart_s", 0), ("max_tasks_per_slice", None), ("counts", "gang")):
            instead = "its bandwidth says how long it takes" if unset == 0 else "use CheckpointStore.max_concurrent_tasks"
            value = getattr(self, name)
            require(self.store is None or value == unset, f"Checkpointing.{name}", value, instead, " beside a store")
        field, interval = "Checkpointing.interval_s", self.interval_s
        if interval is None:
            return
        on_start, where = self.restart_charge == "on-start", " with periodic checkpoints (interval_s)"
        require(on_start, "Checkpointing.restart_charge", self.restart_charge, "it must be 'on-start'", where)
        if isinstance(interval, str):
            own = check.choice(field, interval, INTERVALS, other=", a number of seconds, or None") == "own"
            costly, where = own or self.checkpoint or self.store is not None, " where checkpoints take no time"
            require(costly, field, interval, "it must be a number of seconds", where)
        else:
            require(to_ticks(check.require_seconds(field, interval, positive=True)), field, interval, A_TICK)
        where = " with max_tasks_per_slice=0, where no checkpoints are written"
        require(self.max_tasks_per_slice != 0, field, interval, "it must be None", where)

    @property
    def checkpoint(self) -> int:
        """Time to checkpoint a gang, ticks."""
        return to_ticks(self.checkpoint_s)

    @property
    def restart(self) -> int:
        """Time to restart a gang, ticks."""
        return to_ticks(self.restart_s)
