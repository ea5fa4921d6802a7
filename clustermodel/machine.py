"""Specification of the machine: nodes and their memory, time slices, context switches, checkpoints, failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from clustermodel.errors import SpecificationError, counted, quoted
from clustermodel.failures.failure import FailureSource
from clustermodel.formatting import html_fields
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import choice, require_gib, require_number, require_seconds, require_whole, to_kib

INTERVALS: Final = ("young", "daly", "own")
"""Intervals of periodic checkpoints by name: Young 1974; Daly 2006, eq. (37); or what each job asks for."""
RESTART_CHARGES: Final = ("on-start", "every-decision", "every-round")
"""When a gang spends the time of its restart: conventions of published simulations."""
COUNTS: Final = ("gang", "moved", "spread")
"""Which tasks of a migrating gang count against the limit Q: readings of Zhang et al. 2003, section 5.4."""
AtEvents = Literal["cut", "keep"]
AT_EVENTS: Final = get_args(AtEvents)
"""What a scheduling event does to the running time slice."""
ALLOCATIONS: Final = ("any", "lowest", "consolidate")
"""Which processors a gang gets."""
WRITERS: Final = ("oblivious", "fcfs", "fcfs_nonblocking", "least_waste")
"""Who writes to the checkpoint store, or reads from it, when several gangs want to (Herault et al. 2018)."""
LEAST_BANDWIDTH: Final = 1e-6
MOST_BANDWIDTH: Final = 1e9
"""Bounds of bandwidths, GiB a second: a kibibyte, and more than any machine has."""
_BYTES_PER_GIB: Final = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSlicing:
    """How the machine's time can be cut into slices, for policies that share nodes in time (Zhang et al. 2003, section 4).

    Raises:
        SpecificationError: ``quantum_s`` is not a positive number, ``mpl`` not a whole number of at least one, or ``at_events``
            unknown.
    """

    quantum_s: float = 200.0
    """Length T of a time slice, seconds: how long one row of the Ousterhout matrix runs before the next row."""
    mpl: int = 5
    """Multiprogramming level: largest number of rows of the matrix, and so of gangs that share a node."""
    at_events: AtEvents = "cut"
    """What a scheduling event does to the running slice:

    - ``"cut"``: it ends the slice; the next row has a full slice, and context switches in progress start over.
    - ``"keep"``: the slice ends when it would have ended.  What changes in the running row takes effect at once, and a context
      switch in progress for a task that still runs is not started over."""

    def __post_init__(self) -> None:
        require_seconds("TimeSlicing.quantum_s", self.quantum_s, positive=True)
        if not self.quantum:
            raise SpecificationError(f"TimeSlicing.quantum_s: {self.quantum_s} is not allowed; it must be >= 1e-6 (a tick)")
        object.__setattr__(self, "mpl", require_whole("TimeSlicing.mpl", self.mpl, at_least=1))
        choice("TimeSlicing.at_events", self.at_events, AT_EVENTS)

    @property
    def quantum(self) -> int:
        """T in ticks."""
        return to_ticks(self.quantum_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextSwitch:
    """Cost of suspending one task and resuming another on a node, at the start of a slice (Zhang et al. 2003, section 5).

    The node makes no progress in this time.  Context switches are free by default.

    Raises:
        SpecificationError: both ``fraction`` and ``seconds`` are given, one is out of range, or ``charge`` is unknown.
    """

    fraction: float | None = None
    """CS, the cost as a fraction of the time slice, in [0, 1)."""
    seconds: float | None = None
    """The cost in seconds, whatever the time slice."""
    charge: Literal["on-change", "every-slice"] = "on-change"
    """``"on-change"``: a node pays when the task it runs changes, and a gang continues when all of its nodes are ready.
    ``"every-slice"``: every node of every gang pays in every slice, the convention of Zhang et al. 2003, eq. (3)."""

    def __post_init__(self) -> None:
        if self.fraction is not None and self.seconds is not None:
            raise SpecificationError(
                f"ContextSwitch: fraction={self.fraction!r} and seconds={self.seconds!r} are both given; give one of them"
            )
        if self.fraction is not None:
            allowed = "a number >= 0 and < 1, a share of the time slice"
            require_number("ContextSwitch.fraction", self.fraction, allowed, lambda share: 0 <= share < 1)
        if self.seconds is not None:
            require_seconds("ContextSwitch.seconds", self.seconds)
        if self.charge not in ("on-change", "every-slice"):
            raise SpecificationError(
                f"ContextSwitch.charge: {self.charge!r} is not allowed; it must be 'on-change' or 'every-slice'"
            )

    def ticks(self, quantum: int) -> int:
        """Return the cost in ticks in slices of ``quantum`` ticks."""
        return round(self.fraction * quantum) if self.fraction is not None else to_ticks(self.seconds or 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointStore:
    """A checkpoint store with a bandwidth: a transfer takes as long as its image is large.

    The image of a gang is its memory, ``Job.memory_gib`` on each of its nodes.  All nodes that write or read share the
    bandwidth of the store evenly.  On nodes that gangs share in time, a store can have ``node_bandwidth_gib_s`` alone.

    Raises:
        SpecificationError: no bandwidth is given, a bandwidth or the limit is out of range, or ``writers`` is unknown.
    """

    bandwidth_gib_s: float | None = None
    """Bandwidth of the store, GiB a second, which the nodes that write or read at the same time share; ``None`` is no limit."""
    node_bandwidth_gib_s: float | None = None
    """Bandwidth between a node and the store, GiB a second; ``None`` is no limit."""
    max_concurrent_tasks: int | None = None
    """How many tasks the store takes at a time; further gangs wait for room, first come, first served, and larger ones write or
    read so many of their tasks at a time.  ``None`` is no limit.  For ``writers="oblivious"``."""
    writers: str = "oblivious"
    """Who writes or reads when several gangs want to (the strategies of Herault et al. 2018):

    - ``"oblivious"``: all at once; they share the bandwidth.
    - ``"fcfs"``: one gang at a time, first come, first served; the others hold their nodes and wait.
    - ``"fcfs_nonblocking"``: the same, but a gang that waits to write a periodic checkpoint executes on until it is its turn.
    - ``"least_waste"``: one gang at a time, the one for which the others lose least, waiting or by failures; those that wait to
      write a periodic checkpoint execute on."""

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("bandwidth_gib_s", "node_bandwidth_gib_s")}
        for name, value in given.items():
            if value is not None:
                allowed = f"a number of GiB/s >= {LEAST_BANDWIDTH:g} and <= {MOST_BANDWIDTH:g}"
                require_number(
                    f"CheckpointStore.{name}", value, allowed, lambda rate: LEAST_BANDWIDTH <= rate <= MOST_BANDWIDTH
                )
        if all(value is None for value in given.values()):
            raise SpecificationError(f"CheckpointStore: no bandwidth is given; give {' or '.join(given)}")
        choice("CheckpointStore.writers", self.writers, WRITERS)
        if self.max_concurrent_tasks is not None:
            limit = require_whole("CheckpointStore.max_concurrent_tasks", self.max_concurrent_tasks, at_least=1)
            object.__setattr__(self, "max_concurrent_tasks", limit)
            if self.writers != "oblivious":
                raise SpecificationError(
                    f"CheckpointStore.max_concurrent_tasks: {limit} is not allowed with writers={self.writers!r}, "
                    "where one gang writes at a time; it must be None"
                )

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

    Raises:
        SpecificationError: a cost is negative, the limit is not a whole number of at least zero, or costs are given beside a
            store.
    """

    checkpoint_s: float = 0.0
    """Time to checkpoint a gang, seconds."""
    restart_s: float = 0.0
    """Time to restart a gang from its checkpoint, seconds."""
    interval_s: float | str | None = None
    """How long a gang executes between two periodic checkpoints, seconds; ``None``: there are none.  While a checkpoint is
    written, the gang holds its nodes and does not execute.  After the failure of a node a job goes on from its last checkpoint.
    ``"young"`` and ``"daly"`` are the intervals of Young 1974 and Daly 2006 for the number of nodes of the gang.  A job's own
    ``checkpoint_interval_s`` replaces the interval; with ``"own"`` jobs without one are not checkpointed."""
    max_tasks_per_slice: int | None = None
    """Q: largest number of tasks that migrate in a time slice, and that the store takes at a time where gangs are preempted;
    ``None`` is no limit, 0 no migration and no checkpoints."""
    counts: str = "gang"
    """Which tasks of a gang that migrates in rows count against ``max_tasks_per_slice``:

    - ``"gang"``: all its tasks.  A gang of more than Q tasks does not migrate.
    - ``"moved"``: the tasks that get another node.  A gang of which more than Q tasks would move does not migrate.
    - ``"spread"``: the tasks that get another node, Q of them in a slice.  A gang of which more than Q tasks move spends a
      quantum of its own slices on each Q of them but the last, in which it does not execute.  Where migration costs nothing,
      it moves at once.

    All tasks of a gang that is preempted or restored count, whatever this says."""
    store: CheckpointStore | None = None
    """A store with a bandwidth, which says how long checkpoints and restarts take; ``None``: as long as the costs say."""
    restart_charge: str = "on-start"
    """When a gang on dedicated nodes spends the time of its restart:

    - ``"on-start"``: when a job with saved work starts.
    - ``"every-decision"``: each running gang, in its first run attempt too, at the beginning of every interval between two
      scheduling cycles; not in the interval in which it completes.  The rule of the simulator of Zhao et al. 2022.
    - ``"every-round"``: each running gang at its start and at every multiple of ``Machine.round_s``."""

    def __post_init__(self) -> None:
        require_seconds("Checkpointing.checkpoint_s", self.checkpoint_s)
        require_seconds("Checkpointing.restart_s", self.restart_s)
        choice("Checkpointing.counts", self.counts, COUNTS)
        choice("Checkpointing.restart_charge", self.restart_charge, RESTART_CHARGES)
        if self.restart_charge != "on-start" and self.interval_s is not None:
            raise SpecificationError(
                f"Checkpointing.restart_charge: {self.restart_charge!r} is not allowed with periodic checkpoints (interval_s); "
                "it must be 'on-start'"
            )
        if self.store is not None:
            self._require_no_costs_beside(self.store)
        if isinstance(self.interval_s, str):
            choice("Checkpointing.interval_s", self.interval_s, INTERVALS, other=", a number of seconds, or None")
            if not self.checkpoint and self.store is None and self.interval_s != "own":
                raise SpecificationError(
                    f"Checkpointing.interval_s: {self.interval_s!r} is not allowed where checkpoints take no time; "
                    "it must be a number of seconds"
                )
        elif self.interval_s is not None:
            require_seconds("Checkpointing.interval_s", self.interval_s, positive=True)
            if not to_ticks(self.interval_s):
                raise SpecificationError(
                    f"Checkpointing.interval_s: {self.interval_s} is not allowed; it must be >= 1e-6 (a tick)"
                )
        if self.max_tasks_per_slice is not None:
            limit = require_whole("Checkpointing.max_tasks_per_slice", self.max_tasks_per_slice, at_least=0)
            object.__setattr__(self, "max_tasks_per_slice", limit)
            if limit == 0 and self.interval_s is not None:
                raise SpecificationError(
                    f"Checkpointing.interval_s: {self.interval_s!r} is not allowed with max_tasks_per_slice=0, "
                    "where no checkpoints are written; it must be None"
                )

    def _require_no_costs_beside(self, store: object) -> None:
        if not isinstance(store, CheckpointStore):
            raise SpecificationError(
                f"Checkpointing.store: {quoted(store)} is not allowed; it must be a CheckpointStore(...) or None"
            )
        for name, unset in (("checkpoint_s", 0), ("restart_s", 0), ("max_tasks_per_slice", None), ("counts", "gang")):
            if (value := getattr(self, name)) != unset:
                instead = "its bandwidth says how long it takes" if unset == 0 else "use CheckpointStore.max_concurrent_tasks"
                raise SpecificationError(f"Checkpointing.{name}: {value!r} is not allowed beside a store; {instead}")

    @property
    def checkpoint(self) -> int:
        """Time to checkpoint a gang, ticks."""
        return to_ticks(self.checkpoint_s)

    @property
    def restart(self) -> int:
        """Time to restart a gang, ticks."""
        return to_ticks(self.restart_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A parallel computer of identical nodes.

    Raises:
        SpecificationError: a field has a value that is not allowed, or a context switch takes a whole time slice.
    """

    nodes: int
    """Number of nodes; each task of a job has a node of its own (the papers' processors; N in Zhang et al. 2003)."""
    kill_at_estimate: bool = True
    """Whether the estimate is the wall-time limit, at which the batch system kills the job (Talby & Feitelson 1999, long
    version, requirement VIII).  If not, the job continues."""

    time_slicing: TimeSlicing = field(default_factory=TimeSlicing)
    """Time slices; space-sharing policies do not use them."""
    context_switch: ContextSwitch = field(default_factory=ContextSwitch)
    """Cost of a context switch between time slices."""
    checkpointing: Checkpointing = field(default_factory=Checkpointing)
    """Cost of a checkpoint and of a restart; a migration is one of each."""
    failures: FailureSource | None = None
    """When nodes fail, and for how long they are down; ``None``: never."""
    suspended_per_node: int | None = None
    """Number of suspended tasks that fit a node's memory besides the running task; ``None`` is no limit, 0 no suspension."""
    gpus_per_node: int = 1
    """Number of processors of each node, as GPUs: jobs ask for processors, and each task has one of its own.  What this
    documentation says of nodes is then true of processors."""
    allocation: Literal["any", "lowest", "consolidate"] = "any"
    """Which idle processors a gang gets unless the policy names them: ``"any"`` or ``"lowest"``: those with the lowest numbers,
    wherever they are (``"any"`` says that it does not matter); ``"consolidate"``: those of as few nodes as possible, the last
    of them the fullest that has enough for the rest."""
    round_s: float = 0.0
    """Length of a scheduling round, seconds: the preemptive schedulers decide at its multiples only; 0: at every event."""

    node_memory_gib: float | None = None
    """Memory of each node, GiB; ``None`` is no limit.  The tasks of all gangs on a node, suspended ones too, must fit
    (:attr:`Job.memory_gib <clustermodel.job.Job.memory_gib>`)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", require_whole("Machine.nodes", self.nodes, at_least=1))
        if not isinstance(self.kill_at_estimate, bool):
            raise SpecificationError(
                f"Machine.kill_at_estimate: {self.kill_at_estimate!r} is not allowed; it must be True or False"
            )
        if self.suspended_per_node is not None:
            limit = require_whole("Machine.suspended_per_node", self.suspended_per_node, at_least=0)
            object.__setattr__(self, "suspended_per_node", limit)
        if self.node_memory_gib is not None:
            require_gib("Machine.node_memory_gib", self.node_memory_gib, positive=True)
        for name, kind in (
            ("time_slicing", TimeSlicing),
            ("context_switch", ContextSwitch),
            ("checkpointing", Checkpointing),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise SpecificationError(f"Machine.{name}: {value!r} is not allowed; it must be a {kind.__name__}(...)")
        object.__setattr__(self, "gpus_per_node", require_whole("Machine.gpus_per_node", self.gpus_per_node, at_least=1))
        choice("Machine.allocation", self.allocation, ALLOCATIONS)
        for name in ("failures", "node_memory_gib"):
            if self.gpus_per_node > 1 and getattr(self, name) is not None:
                raise SpecificationError(
                    f"Machine.{name}: {getattr(self, name)!r} is not allowed with {self.gpus_per_node} processors per node; "
                    "it must be None"
                )
        require_seconds("Machine.round_s", self.round_s)
        if self.checkpointing.restart_charge == "every-round" and not self.round:
            raise SpecificationError(
                f"Machine.round_s: {self.round_s:g} is not allowed where restarts are charged in every round; it must be > 0"
            )
        if self.failures is not None and not isinstance(self.failures, FailureSource):
            raise SpecificationError(
                f"Machine.failures: {self.failures!r} is not allowed; it must be NodeFailures(...), Outages(...) or None"
            )
        if self.failures is None and self.checkpointing.interval_s in ("young", "daly"):
            raise SpecificationError(
                f"Checkpointing.interval_s: {self.checkpointing.interval_s!r} is not allowed on a machine without failures; "
                "it must be a number of seconds"
            )
        if self.switch_ticks >= self.time_slicing.quantum:
            raise SpecificationError(
                f"Machine.time_slicing: a quantum of {self.time_slicing.quantum_s:g} s is not allowed; "
                f"it must be longer than the context switch of {to_seconds(self.switch_ticks):g} s, or no job ever runs"
            )

    @property
    def switch_ticks(self) -> int:
        """Length of a context switch, ticks."""
        return self.context_switch.ticks(self.time_slicing.quantum)

    @property
    def switches_on_change(self) -> bool:
        """Whether context switches take time, and only nodes whose task changes pay for them."""
        return self.switch_ticks > 0 and self.context_switch.charge == "on-change"

    @property
    def processors(self) -> int:
        """Number of processors of all nodes; as many as nodes, unless these have several."""
        return self.nodes * self.gpus_per_node

    @property
    def round(self) -> int:
        """Length of a scheduling round, ticks; 0 where there are none."""
        return to_ticks(self.round_s)

    @property
    def node_memory(self) -> int | None:
        """Memory of each node, KiB; ``None`` is no limit."""
        return None if self.node_memory_gib is None else to_kib(self.node_memory_gib)

    def _repr_html_(self) -> str:
        """Return the machine for a notebook."""
        slicing, store, switch = self.time_slicing, self.checkpointing, self.context_switch
        return html_fields(
            f"Machine of {counted(self.nodes, 'node')}",
            [
                ("processors per node", self.gpus_per_node),
                ("killed at the estimate", self.kill_at_estimate),
                ("time slice", f"{slicing.quantum_s:g} s"),
                ("multiprogramming level", f"{slicing.mpl:,} gangs on a node"),
                ("running slice at events", slicing.at_events),
                ("context switch", f"{to_seconds(self.switch_ticks):g} s {switch.charge.replace('-', ' ')}"),
                *(
                    [("checkpoint", f"{store.checkpoint_s:g} s"), ("restart", f"{store.restart_s:g} s")]
                    if store.store is None
                    else [("checkpoint store", _bandwidths(store.store))]
                ),
                ("migrating tasks per slice", "no limit" if store.max_tasks_per_slice is None else store.max_tasks_per_slice),
                ("migrating tasks counted", store.counts),
                ("periodic checkpoints every", "never" if store.interval_s is None else _seconds(store.interval_s)),
                ("restarts charged", store.restart_charge.replace("-", " ")),
                ("scheduling rounds", f"{self.round_s:g} s" if self.round_s else "none"),
                ("failures of nodes", "none" if self.failures is None else self.failures),
                ("memory per node", "no limit" if self.node_memory_gib is None else f"{self.node_memory_gib:g} GiB"),
                ("suspended tasks per node", "no limit" if self.suspended_per_node is None else self.suspended_per_node),
            ],
        )


def _bandwidths(store: CheckpointStore) -> str:
    """Return the bandwidths of a store and who writes when, for a notebook."""
    rates = [(store.bandwidth_gib_s, "GiB/s"), (store.node_bandwidth_gib_s, "GiB/s per node")]
    return ", ".join([*(f"{rate:g} {unit}" for rate, unit in rates if rate is not None), store.writers.replace("_", " ")])


def _seconds(interval_s: float | str) -> str:
    """Return an interval, or its name, for a notebook."""
    return interval_s if isinstance(interval_s, str) else f"{interval_s:g} s"
