"""Specification of the machine: nodes and their memory, time slices, context switches, checkpoints, failures.

A field with a value that is not allowed is a :class:`~clustermodel.errors.SpecificationError`, in every class.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import accumulate
from math import lcm
from typing import Any, Final, Literal, Self, TypeVar, get_args

import clustermodel.validation as check
from clustermodel.errors import SpecificationError, counted, quoted, refused
from clustermodel.machine.costs import CostTicks, Seconds, require_cost
from clustermodel.machine.failure import FailureSource
from clustermodel.machine.node_set import count, from_members, text, union, without
from clustermodel.machine.power import Power, to_microwatts, to_watts
from clustermodel.machine.price import Price
from clustermodel.text.formatting import html_fields
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import require, seconds_fields, whole_fields

# What the fields of the classes below may be, and mean.
INTERVALS: Final = ("young", "daly", "own")
RESTART_CHARGES: Final = ("on-start", "every-decision", "every-round")
COUNTS: Final = ("gang", "moved", "spread")
AtEvents = Literal["cut", "keep"]
AT_EVENTS: Final = get_args(AtEvents)
CHARGES: Final = ("on-change", "every-slice")
ALLOCATIONS: Final = ("any", "lowest", "consolidate")
ON_FAILURES: Final = ("requeue", "shrink")
WRITERS: Final = ("oblivious", "fcfs", "fcfs_nonblocking", "least_waste")
LEAST_BANDWIDTH: Final = 1e-6  # GiB a second: a kibibyte
MOST_BANDWIDTH: Final = 1e9
MOST_TOLD_APART: Final = 2**24
"""Nodes of the largest machine with partitions, types of nodes or reservations: a set of them takes a bit for each.
The largest machines have 11 million processors."""
SHORTEST_PERIOD_S: Final = 1.0
"""Of recurring reservations: each begin and each end is an event of the simulation."""
MOST_TURNS: Final = 10_000  # of recurring reservations, after which all recur together
_BYTES_PER_GIB: Final = 2**30
_Number = TypeVar("_Number", int, float)
_A_TICK: Final = "it must be >= 1e-6 (a tick)"


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSlicing:
    """Time slices, for policies that share nodes in time (Zhang et al. 2003, section 4)."""

    quantum_s: float = 200.0
    """Length T of a time slice, seconds, in which one row of the Ousterhout matrix runs."""
    mpl: int = 5
    """Multiprogramming level: largest number of rows of the matrix, and so of gangs that share a node."""
    at_events: AtEvents = "cut"
    """The effect of a scheduling event on the running slice:

    - ``"cut"``: it ends the slice; the next row has a full slice, and context switches in progress start over.
    - ``"keep"``: the slice keeps its end.  Changes of the running row take effect at once; context switches in progress for
      tasks that still run continue."""

    def __post_init__(self) -> None:
        seconds_fields(self, "TimeSlicing.", "quantum_s", positive=True)
        require(self.quantum, "TimeSlicing.quantum_s", self.quantum_s, _A_TICK)
        whole_fields(self, "TimeSlicing.", mpl=1)
        check.choice("TimeSlicing.at_events", self.at_events, AT_EVENTS)

    @property
    def quantum(self) -> int:
        """T in ticks."""
        return to_ticks(self.quantum_s)

    def longest(self, ticks: int, rows: int, switch: int) -> int:
        """Return how long a gang at worst takes for ``ticks`` of its own slices, unless another scheduling event delays it."""
        # Before each of its slices come those of all other rows, and each has a switch.  If it joins a slice that goes on,
        # that may end during the switch.
        slices = -(-ticks // (self.quantum - switch))
        unused = switch if slices and self.at_events == "keep" else 0
        return ticks + slices * ((rows - 1) * self.quantum + switch) + unused


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A named set of nodes with its own limits; partitions may overlap.

    >>> from clustermodel import Machine, Partition
    >>> debug = Partition(name="debug", nodes="60-63", max_wall_time_s=1800, priority=1)
    >>> batch = Partition(name="batch", nodes=range(60), default=True)
    >>> machine = Machine(nodes=64, partitions=[debug, batch])
    >>> [partition.nodes for partition in machine.partitions]
    ['60-63', '0-59']
    """

    name: str
    """The name that jobs give (column ``partition`` of a workload); a job that gives several, separated by commas, runs in one
    of them."""
    nodes: str | Sequence[int]
    """Its nodes, counted from 0: as text, ``"0-59,62"``, or a sequence of numbers."""
    max_wall_time_s: float | None = None
    """Longest estimate, seconds; a job with a longer one is rejected, unless it names another partition that can hold it."""
    max_nodes: int | None = None
    """Largest number of nodes of a job."""
    priority: int = 0
    """Added to the priority of jobs that name the partition.  Of several partitions, the highest counts, and is tried first."""
    default: bool = False
    """Whether jobs without a partition belong here; without a default partition they may use all nodes."""

    def __post_init__(self) -> None:
        known = isinstance(self.name, str) and self.name and "," not in self.name
        require(known, "Partition.name", self.name, "it must be a text without commas")
        object.__setattr__(self, "nodes", _ranges_of("Partition.nodes", self.nodes))
        seconds_fields(self, "Partition.", "max_wall_time_s", positive=True)
        whole_fields(self, "Partition.", max_nodes=1, priority=None)
        check.flag("Partition.default", self.default)

    @property
    def node_set(self) -> tuple[int, ...]:
        """Its nodes as ranges, (first, after the last, ...)."""
        return _bounds_of("Partition.nodes", self.nodes)


@dataclass(frozen=True, kw_only=True)
class NodeType:
    """A type of identical nodes, on a machine whose nodes differ.

    >>> from clustermodel import Machine, NodeType
    >>> fast = NodeType(name="fast", nodes="0-3", speed=2, features=["ib", "avx512"])
    >>> big = NodeType(name="big", nodes="4-5", memory_gib=512)
    >>> machine = Machine(nodes=16, node_memory_gib=64, node_types=[fast, big])
    >>> machine.node_types[0].features
    ('ib', 'avx512')
    """

    name: str
    """The name that jobs give (:attr:`Job.node_type <clustermodel.workload.job.Job.node_type>`)."""
    nodes: str | Sequence[int]
    """Its nodes, in the form of :attr:`Partition.nodes`; each node has at most one type."""
    processors_per_node: int | None = None
    """Processors of each node; ``None``, here and below: as of the machine's other nodes."""
    memory_gib: float | None = None
    """Memory of each node, GiB: jobs that need more do not get these nodes."""
    speed: float = 1.0
    """Speed relative to nodes of speed 1, to which run times and estimates refer."""
    features: str | Sequence[str] = ()
    """Features of its nodes, which jobs may ask for (:attr:`Job.features <clustermodel.workload.job.Job.features>`)."""
    power: Power | None = None
    """Power drawn by each of its nodes."""

    def __post_init__(self) -> None:
        known = isinstance(self.name, str) and self.name and "," not in self.name
        require(known, "NodeType.name", self.name, "it must be a text without commas")
        object.__setattr__(self, "nodes", _ranges_of("NodeType.nodes", self.nodes))
        whole_fields(self, "NodeType.", processors_per_node=1)
        if self.memory_gib is not None:
            check.require_gib("NodeType.memory_gib", self.memory_gib, positive=True)
        check.require_number("NodeType.speed", self.speed, "a number > 0 and <= 1000", lambda speed: 0 < speed <= 1000)
        features = (self.features,) if isinstance(self.features, str) else self.features
        must = "they must be names without '&', '|', ',' and spaces"
        known = isinstance(features, Sequence) and all(
            isinstance(each, str) and re.fullmatch("[^&|, ]+", each) for each in features
        )
        require(known, "NodeType.features", self.features, must)
        object.__setattr__(self, "features", tuple(features))
        require(isinstance(self.power, Power | None), "NodeType.power", self.power, "it must be a Power(...) or None")

    @property
    def node_set(self) -> tuple[int, ...]:
        """Its nodes as ranges, (first, after the last, ...)."""
        return _bounds_of("NodeType.nodes", self.nodes)


def has_features(features: frozenset[str], asked: str) -> bool:
    """Return whether nodes with these features have those asked for: ``"a&b"`` or ``"a,b"`` both, ``"a|b"`` one of them."""
    return any({part.strip() for part in re.split("[&,]", either)} <= features for either in asked.split("|"))


def _bounds_of(field: str, nodes: object) -> tuple[int, ...]:
    """Return the nodes of a text as ``"0-59,62"``, or of a sequence of numbers, as ranges."""
    allowed = "they must be a text as '0-59,62', or numbers from 0 on"
    if not isinstance(nodes, str):
        require(isinstance(nodes, Sequence), field, nodes, allowed)
        assert isinstance(nodes, Sequence)
        require(len(nodes), field, nodes, allowed)
        return from_members([check.require_whole(field, number, at_least=0) for number in nodes])
    bounds: tuple[int, ...] = ()
    for part in nodes.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part, re.ASCII)
        require(match, field, nodes, allowed)
        assert match is not None
        low, last = int(match[1]), int(match[2] or match[1])
        bounds = union(bounds, (low, last + 1) if low <= last else ())
    require(bounds, field, nodes, allowed)
    return bounds


def _ranges_of(field: str, nodes: object) -> str:
    return text(_bounds_of(field, nodes)).replace(" ", ",")


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Nodes that are kept free for a time, once or every so often, as for maintenance, or for jobs of some accounts or users.

    No other job starts there that by its estimate would still run when the reservation begins.

    >>> from clustermodel import Machine, Reservation
    >>> monday = Reservation(start_s=8 * 3600, end_s=12 * 3600, every_s=7 * 86_400)
    >>> course = Reservation(nodes="0-15", start_s=86_400, end_s=90_000, accounts="bio")
    >>> machine = Machine(nodes=64, reservations=[monday, course])
    """

    nodes: str | Sequence[int] | None = None
    """Its nodes, counted from 0: as text, ``"0-59,62"``, or a sequence of numbers; ``None`` is all nodes."""
    start_s: float
    """When it begins, seconds on the clock of the jobs."""
    end_s: float
    """When it ends, seconds."""
    every_s: float | None = None
    """Period of a recurring reservation, seconds (a week is 604,800); ``None``: it takes place once."""
    accounts: Sequence[str] = ()
    """Accounts (names of the log) whose jobs may use the nodes; ``["-bio", "-chem"]``: all but those.  Without accounts and
    users, no job may; with both, jobs of these users in these accounts (as in Slurm)."""
    users: Sequence[str] = ()
    """The same, by user."""
    name: str = ""
    """If any job names it (:attr:`Job.reservation <clustermodel.workload.job.Job.reservation>`), it is for the jobs that do,
    whatever their accounts and users."""

    def __post_init__(self) -> None:
        seconds_fields(self, "Reservation.", "start_s", "end_s")
        seconds_fields(self, "Reservation.", "every_s", positive=True)
        long = self.every_s is None or self.every_s >= SHORTEST_PERIOD_S
        must = f"it must be at least {SHORTEST_PERIOD_S:g} s, as each begin and each end is an event, or None"
        require(long, "Reservation.every_s", self.every_s, must)
        later = to_ticks(self.end_s) > to_ticks(self.start_s)
        require(later, "Reservation.end_s", self.end_s, f"it must be after start_s, {self.start_s:g}")
        apart = self.every_s is None or to_ticks(self.every_s) > to_ticks(self.end_s) - to_ticks(self.start_s)
        length = self.end_s - self.start_s
        require(apart, "Reservation.every_s", self.every_s, f"it must be longer than the reservation, {length:g} s")
        require(isinstance(self.name, str), "Reservation.name", self.name, "it must be a text")
        if self.nodes is not None:
            object.__setattr__(self, "nodes", _ranges_of("Reservation.nodes", self.nodes))
        for name in ("accounts", "users"):
            given = getattr(self, name)
            names: object = [given] if isinstance(given, str | int) else given
            known = isinstance(names, Sequence) and all(isinstance(each, str | int) and str(each) for each in names)
            require(known, f"Reservation.{name}", given, "they must be names or numbers")
            assert isinstance(names, Sequence)
            texts = tuple(map(str, names))
            alike = len({text.startswith("-") for text in texts}) < 2 and "-" not in texts
            require(alike, f"Reservation.{name}", given, "either all names have a minus, for all but those, or none has")
            object.__setattr__(self, name, texts)

    def admits(self, account: str | None, user: str | None) -> bool:
        """Return whether a job of this account and this user may have the nodes; ``None``: the log names none."""
        return bool(self.accounts or self.users) and _admits(self.accounts, account) and _admits(self.users, user)

    @property
    def node_set(self) -> tuple[int, ...] | None:
        """Its nodes as ranges, (first, after the last, ...); ``None``: all."""
        return None if self.nodes is None else _bounds_of("Reservation.nodes", self.nodes)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the reservation that a text describes: ``"0-63,start_s=86400,end_s=90000,every_s=604800,accounts=bio,chem"``.

        What stands before the fields are its nodes, ``"all"`` or nothing for all nodes.
        """
        fields: dict[str, list[str]] = {"nodes": []}
        key = "nodes"
        for part in text.split(","):
            name, equals, value = (each.strip() for each in part.partition("="))
            if equals:
                key = check.choice("reservation", name, [each for each in cls.__dataclass_fields__ if each != "nodes"])
                require(key not in fields, f"reservation: {key}", value, "it is given twice")
                fields[key] = [value]
            else:
                several = key in ("nodes", "accounts", "users")
                require(several, f"reservation: {key}", name, "write key=value,key=value behind the nodes")
                fields[key].append(name)
        nodes = ",".join(fields.pop("nodes"))
        values: dict[str, Any] = {} if nodes in ("", "all") else {"nodes": nodes}
        for key, given in fields.items():
            values[key] = given if key in ("accounts", "users") else given[0]
            if key.endswith("_s"):
                try:
                    values[key] = float(given[0])
                except ValueError:
                    raise refused(f"reservation: {key}", given[0], "it must be a number of seconds") from None
        for key in ("start_s", "end_s"):
            if key not in values:
                raise SpecificationError(f"reservation: {key} is missing in {quoted(text)}; write NODES,start_s=...,end_s=...")
        return cls(**values)


def _admits(names: Sequence[str], name: str | None) -> bool:
    """Return whether a name is one of ``names``, or if these have a minus, none of them; no names admit every one."""
    if names and names[0].startswith("-"):
        return f"-{name}" not in names
    return not names or name in names


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextSwitch:
    """Cost of suspending one task and resuming another on a node, at the start of a slice (Zhang et al. 2003, section 5).

    The node makes no progress in this time.  Context switches are free by default; the cost is given in one of two ways.  On
    dedicated nodes, where gangs are suspended to memory, a job may have a cost of its own
    (:attr:`Job.context_switch_s <clustermodel.workload.job.Job.context_switch_s>`).
    """

    fraction: float | None = None
    """CS, the cost as a fraction of the time slice, in [0, 1)."""
    seconds: Seconds | None = None
    """The cost in seconds, whatever the time slice: a number or, on dedicated nodes, a function of the number of nodes of the
    gang that is suspended to memory or resumed."""
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
            check.require_number("ContextSwitch.fraction", self.fraction, allowed, lambda share: 0 <= share < 1)
        if not callable(self.seconds):  # the machine asks a function, as it knows how many nodes there are
            seconds_fields(self, "ContextSwitch.", "seconds")
        require(self.charge in CHARGES, "ContextSwitch.charge", self.charge, "it must be 'on-change' or 'every-slice'")

    def ticks(self, quantum: int) -> int | None:
        """Return the cost in ticks in slices of ``quantum`` ticks; ``None`` if it depends on the number of nodes."""
        return round(self.fraction * quantum) if self.fraction is not None else self.cost.constant

    @property
    def cost(self) -> CostTicks:
        """The cost by number of nodes, unless it is a fraction of the time slice."""
        return CostTicks("ContextSwitch.seconds", self.seconds or 0.0)


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
            require(to_ticks(check.require_seconds(field, interval, positive=True)), field, interval, _A_TICK)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A parallel computer of nodes, identical unless they have types, perhaps in partitions."""

    nodes: int
    """Number of nodes; one task of a job per node (the papers' processors; N in Zhang et al. 2003)."""
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
    """When nodes fail, and for how long they are down."""
    suspended_per_node: int | None = None
    """Number of suspended tasks that fit a node's memory besides the running task; ``None`` is no limit, 0 no suspension."""
    gpus_per_node: int = 1
    """Number of processors of each node, as GPUs: jobs ask for processors, and each task has one of its own.  What this
    documentation says of nodes is then true of processors."""
    processors_per_node: int = 1
    """The same for cores and other processors; give one of the two fields."""
    allocation: Literal["any", "lowest", "consolidate"] = "any"
    """Which idle processors a gang gets unless the policy names them: ``"any"``, ``"lowest"``: those with the lowest numbers;
    ``"consolidate"``: those of as few nodes as possible, the last of them the fullest that has enough for the rest."""
    round_s: float = 0.0
    """Length of a scheduling round, seconds: the preemptive schedulers decide at its multiples only; 0: at every event."""

    partitions: Sequence[Partition] = ()
    """Sets of nodes that jobs name.  A job that names several runs in one of them at a time.  It starts in the first in which
    it can, in the order of their priorities, of equal ones as it names them; its reservation is in the one in which it can
    start earliest.  Without partitions each job may have all nodes."""
    node_types: Sequence[NodeType] = ()
    """Nodes that differ from the others in processors, memory, speed or features."""
    reservations: Sequence[Reservation] = ()
    """When nodes are kept free, and for whom."""
    node_memory_gib: float | None = None
    """Memory of each node, GiB; the tasks of all gangs on a node, suspended ones too, must fit
    (:attr:`Job.memory_gib <clustermodel.workload.job.Job.memory_gib>`).  ``None`` is no limit."""
    power: Power | None = None
    """Power drawn by each node, for the energy of a run; it changes no schedule.  ``None``: no energy accounting."""
    price: Price | None = None
    """Price and carbon intensity of energy over time: a :class:`~clustermodel.machine.price.Price`, or a table with its
    columns."""
    on_failure: Literal["requeue", "shrink"] = "requeue"
    """What becomes of a gang of which a node fails: its job waits again, or, if the job is malleable and its least number of
    nodes is left, ``"shrink"``: it continues at once on the remaining nodes, from its last checkpoint."""
    resize_s: float | None = None
    """How long a change of a gang's size takes, seconds, in which it does not execute; a job may have a cost of its own.
    ``None``: as long as a checkpoint on the nodes before and a restart on the nodes after."""
    startup_s: Seconds = 0.0
    """How long a gang on dedicated nodes occupies them before each run attempt executes (prolog, image, MPI launch), seconds: a
    number, or a function of its number of nodes.  A job may have a time of its own, here and below.  The wall-time limit does
    not count it, but the response does; wait is until the gang has its nodes."""
    epilog_s: Seconds = 0.0
    """How long it occupies them after a run attempt (epilog, cleaning), seconds.  The attempt ends when the nodes are free."""
    power_cap_w: float | None = None
    """What all nodes together may draw at any time, watts: so many nodes are kept idle that it is enough whatever the others do
    (docs/energy).  ``None`` is no limit."""
    idle_off_s: float | None = None
    """After how long an idle node is switched off, seconds; the gang that gets it waits until it has booted (``Power.boot_s``).
    ``None``: nodes stay on."""

    def __post_init__(self) -> None:
        whole_fields(self, "Machine.", nodes=1, suspended_per_node=0)
        check.flag("Machine.kill_at_estimate", self.kill_at_estimate)
        if self.node_memory_gib is not None:
            check.require_gib("Machine.node_memory_gib", self.node_memory_gib, positive=True)
        for part, name, kind in (
            (self.time_slicing, "time_slicing", TimeSlicing),
            (self.context_switch, "context_switch", ContextSwitch),
            (self.checkpointing, "checkpointing", Checkpointing),
        ):
            require(isinstance(part, kind), f"Machine.{name}", part, f"it must be a {kind.__name__}(...)")
        whole_fields(self, "Machine.", gpus_per_node=1, processors_per_node=1)
        both = self.gpus_per_node > 1 < self.processors_per_node
        where = f" with gpus_per_node={self.gpus_per_node}"
        require(not both, "Machine.processors_per_node", self.processors_per_node, "give one of the two", where)
        check.choice("Machine.allocation", self.allocation, ALLOCATIONS)
        check.choice("Machine.on_failure", self.on_failure, ON_FAILURES)
        seconds_fields(self, "Machine.", "resize_s")
        self._check_costs_of_size()
        self._check_node_types()
        one_each, where = not self.has_shared_nodes, f" with {self._most_per_node} processors per node"
        require(self.failures is None or one_each, "Machine.failures", self.failures, "it must be None", where)
        self._check_partitions()
        self._check_reservations()
        named = [name for name in ("partitions", "node_types", "reservations") if getattr(self, name)]
        few, where = not named or self.nodes <= MOST_TOLD_APART, f" with {' and '.join(named)}"
        require(few, "Machine.nodes", self.nodes, f"it must be at most {MOST_TOLD_APART:,}, a bit for each in a set", where)
        self._check_power()
        seconds_fields(self, "Machine.", "round_s")
        charged = self.checkpointing.restart_charge == "every-round" and not self.round
        require(not charged, "Machine.round_s", 0, "it must be > 0", " where restarts are charged in every round")
        known = self.failures is None or isinstance(self.failures, FailureSource)
        require(known, "Machine.failures", self.failures, "it must be NodeFailures(...), Outages(...) or None")
        interval, where = self.checkpointing.interval_s, " on a machine without failures"
        known = self.failures is not None or interval not in ("young", "daly")
        require(known, "Checkpointing.interval_s", interval, "it must be a number of seconds", where)
        self.require_switch(self.uniform_switch or 0)

    def require_switch(self, ticks: int, whose: str = "") -> None:
        """Refuse a context switch that takes as long as a time slice."""
        if ticks >= self.time_slicing.quantum:
            raise SpecificationError(
                f"Machine.time_slicing: a quantum of {self.time_slicing.quantum_s:g} s is not allowed; "
                f"it must be longer than the context switch{whose} of {to_seconds(ticks):g} s, or no job ever runs"
            )

    def _check_costs_of_size(self) -> None:
        if self.context_switch.seconds is not None:
            require_cost("ContextSwitch.seconds", self.context_switch.seconds, self.nodes)
        for name in COSTS_OF_SIZE:
            seconds: Seconds = getattr(self, name)
            require_cost(f"Machine.{name}", seconds, self.nodes)
            charge, where = self.checkpointing.restart_charge, f" where Machine.{name} takes time"
            free = charge == "on-start" or (not callable(seconds) and not seconds)
            require(free, "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)

    def _check_partitions(self) -> None:
        self._check_named_nodes("partitions", Partition)
        names = [each.name for each in self.partitions]
        require(sum(each.default for each in self.partitions) <= 1, "Machine.partitions", names, "at most one is the default")

    def _keep_tuple(self, name: str, kind: type) -> None:
        value = getattr(self, name)
        given: object = (value,) if isinstance(value, kind) else value
        known = isinstance(given, Sequence) and all(isinstance(each, kind) for each in given)
        require(known, f"Machine.{name}", value, f"they must be {kind.__name__}(...)")
        assert isinstance(given, Sequence)
        object.__setattr__(self, name, tuple(given))

    def _check_named_nodes(self, name: str, kind: type[Partition] | type[NodeType]) -> None:
        self._keep_tuple(name, kind)
        given = getattr(self, name)
        names = [each.name for each in given]
        for each in given:
            where = f"Machine.{name}: {each.name}"
            require(names.count(each.name) == 1, where, each.name, "another one has the same name; names must be unique")
            last = each.node_set[-1] - 1
            require(last < self.nodes, f"{where}: nodes", each.nodes, f"they must be among 0-{self.nodes - 1}")

    def _check_node_types(self) -> None:
        self._check_named_nodes("node_types", NodeType)
        taken: tuple[int, ...] = ()
        for place, each in enumerate(self.node_types):
            for other in self.node_types[:place]:
                both = without(each.node_set, without(each.node_set, other.node_set))
                where = f"Machine.node_types: {each.name}: nodes"
                require(not both, where, each.nodes, f"node {both[:1] and both[0]} is of type {other.name}")
            taken = union(taken, each.node_set)
        limited = [self.node_memory_gib if each.memory_gib is None else each.memory_gib for each in self.node_types]
        limited += [self.node_memory_gib] if count(taken) < self.nodes else []
        alike = None not in limited or not any(limited)
        must = "give it for all nodes, or Machine.node_memory_gib"
        require(alike, "NodeType.memory_gib", None, must, " where other nodes have limited memory")
        require(isinstance(self.power, Power | None), "Machine.power", self.power, "it must be a Power(...) or None")
        if self.price is not None:
            object.__setattr__(self, "price", Price.of(self.price))
        powers = [each.power or self.power for each in self.node_types] + [self.power] * (count(taken) < self.nodes)
        must = "give it for all nodes, or Machine.power"
        require(None not in powers or not any(powers), "NodeType.power", None, must, " where other nodes have a power")
        given, must = self.price is None or any(powers), "give Machine.power, what nodes draw, too"
        require(given, "Machine.price", "a price", must, " alone")
        uniform, where = self.node_speeds is None, " where nodes differ in speed"
        interval, charge = self.checkpointing.interval_s, self.checkpointing.restart_charge
        require(uniform or interval is None, "Checkpointing.interval_s", interval, "it must be None", where)
        require(uniform or charge == "on-start", "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)

    def _check_power(self) -> None:
        seconds_fields(self, "Machine.", "idle_off_s", positive=True)
        if self.idle_off_s is not None:
            require(self.idle_off, "Machine.idle_off_s", self.idle_off_s, _A_TICK)
            charge, where = self.checkpointing.restart_charge, " where idle nodes are switched off"
            require(charge == "on-start", "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)
        for name, given in (("power_cap_w", self.power_cap_w), ("idle_off_s", self.idle_off_s)):
            must = "say what nodes draw, Machine(power=Power(...))"
            require(given is None or self.powers, f"Machine.{name}", given, must, " without a power")
        where = " where types of nodes differ in power"
        require(
            self.idle_off_s is None or len(self.powers) == 1, "Machine.idle_off_s", self.idle_off_s, "it must be None", where
        )
        if self.power_cap_w is None:
            return
        allowed = "a number of watts > 0"
        check.require_number("Machine.power_cap_w", self.power_cap_w, allowed, lambda watts: 0 < watts < float("inf"))
        differ = self.has_shared_nodes and (self.partitions or self.node_types or self.node_memory is not None)
        where = " where nodes have several processors, and partitions, types or a limited memory"
        require(not differ, "Machine.power_cap_w", self.power_cap_w, "it must be None", where)
        least = sum(unused * sum(bounds[1::2], -sum(bounds[::2])) for bounds, unused, _ in self.draws)
        least += min(most - unused for _, unused, most in self.draws)
        enough = f"it must be at least {to_watts(least):g}: all nodes unused, and one in use"
        require(to_microwatts(self.power_cap_w) >= least, "Machine.power_cap_w", self.power_cap_w, enough)

    def _check_reservations(self) -> None:
        self._keep_tuple("reservations", Reservation)
        for each in self.reservations:
            last = 0 if each.node_set is None else each.node_set[-1] - 1
            require(last < self.nodes, "Machine.reservations: nodes", each.nodes, f"they must be among 0-{self.nodes - 1}")
        periods = [to_ticks(each.every_s) for each in self.reservations if each.every_s is not None]
        turns = sum(lcm(*periods) // period for period in periods)
        must = (
            f"their periods must fit each other: together they repeat after {turns:,} reservations only, at most {MOST_TURNS:,}"
        )
        require(turns <= MOST_TURNS, "Machine.reservations: every_s", [each.every_s for each in self.reservations], must)

    @property
    def windows(self) -> list[tuple[tuple[int, ...], int, int, int]]:
        """When nodes are kept free: ranges of processors, begin, end and period (ticks; 0: once), of reservations, then of
        outages that are known in advance.
        """
        nodes = self._in_processors(each.node_set or (0, self.nodes) for each in self.reservations)
        windows = [
            (of_window, to_ticks(each.start_s), to_ticks(each.end_s), to_ticks(each.every_s or 0.0))
            for of_window, each in zip(nodes, self.reservations, strict=True)
        ]
        announced = getattr(self.failures, "announced", None)
        together: dict[tuple[int, int], list[int]] = {}
        for outage in () if announced is None else announced():
            together.setdefault((outage.time, outage.time + outage.repair), []).append(outage.node)
        return windows + [(from_members(nodes), begin, end, 0) for (begin, end), nodes in sorted(together.items())]

    @property
    def switch_ticks(self) -> int:
        """Length of a context switch, ticks; a cost that depends on the number of nodes is refused."""
        if (ticks := self.uniform_switch) is None:
            raise SpecificationError(
                "ContextSwitch.seconds: a function of the number of nodes is not allowed where all switches must take the "
                "same time; it must be a number"
            )
        return ticks

    @property
    def uniform_switch(self) -> int | None:
        """Length of a context switch, ticks; ``None`` if it depends on the number of nodes."""
        return self.context_switch.ticks(self.time_slicing.quantum)

    @property
    def processors(self) -> int:
        """Number of processors of all nodes; as many as nodes, unless these have several."""
        of_types = any(each.processors_per_node for each in self.node_types)
        return sum(self.node_sizes) if of_types else self.nodes * self._per_node

    @property
    def _per_node(self) -> int:
        return max(self.gpus_per_node, self.processors_per_node)

    @property
    def node_sizes(self) -> list[int]:
        """Number of processors of each node."""
        return self._by_node(self._per_node, lambda each: each.processors_per_node)

    @property
    def has_shared_nodes(self) -> bool:
        """Whether nodes have several processors, so that several jobs may run on a node at a time."""
        return self._most_per_node > 1

    @property
    def _most_per_node(self) -> int:  # without a list of the nodes, of which there may be 2 to the power of 52
        return max([self._per_node, *(each.processors_per_node or 1 for each in self.node_types)])

    @property
    def node_memories(self) -> list[int] | None:
        """Memory of each node, KiB; ``None`` is no limit."""
        if self.node_memory is None:
            return None
        of_others = 0 if self.node_memory_gib is None else check.to_kib(self.node_memory_gib)
        return self._by_node(of_others, lambda each: None if each.memory_gib is None else check.to_kib(each.memory_gib))

    @property
    def node_speeds(self) -> list[float] | None:
        """Speed of each node; ``None`` if all have speed 1."""
        if all(each.speed == 1 for each in self.node_types):
            return None
        return self._by_node(1.0, lambda each: each.speed)

    @property
    def powers(self) -> dict[Power, list[tuple[int, ...]]]:
        """What processors draw, and the sets of those that draw it, as ranges; empty if no power is given."""
        if self.power is None and not any(each.power for each in self.node_types):
            return {}
        rest: tuple[int, ...] = (0, self.nodes)
        sets: dict[Power, list[tuple[int, ...]]] = {}
        differing = [each for each in self.node_types if each.power not in (None, self.power)]
        for each in differing:
            assert each.power is not None
            sets.setdefault(each.power, []).extend(self._in_processors([each.node_set]))
            rest = without(rest, each.node_set)
        if self.power is not None and rest:
            sets[self.power] = self._in_processors([rest])
        return sets

    @property
    def draws(self) -> list[tuple[tuple[int, ...], int, int]]:
        """Sets of processors, as ranges, and the most that each draws while no gang has it, and at any time, microwatts."""
        draws = []
        for power, sets in self.powers.items():
            unused = max(power.idle, power.down, 0 if self.idle_off_s is None else power.off)
            most = max(unused, power.busy, power.switching, 0 if self.idle_off_s is None else power.booting)
            draws += [(bounds, unused, most) for bounds in sets]
        return draws

    @property
    def power_cap(self) -> int | None:
        """``power_cap_w`` in microwatts."""
        return None if self.power_cap_w is None else to_microwatts(self.power_cap_w)

    @property
    def idle_off(self) -> int | None:
        """``idle_off_s`` in ticks."""
        return None if self.idle_off_s is None else to_ticks(self.idle_off_s)

    @property
    def boot(self) -> int:
        """How long a gang may have to wait until its nodes have booted, ticks; 0 where idle nodes stay on."""
        return 0 if self.idle_off_s is None else max(power.boot for power in self.powers)

    def _by_node(self, other: _Number, of_type: Callable[[NodeType], _Number | None]) -> list[_Number]:
        """Return a number of each node: that of its type, if it has one, else ``other``."""
        values = [other] * self.nodes
        for each in self.node_types:
            if (value := of_type(each)) is not None:
                for low, high in zip(each.node_set[::2], each.node_set[1::2], strict=True):
                    values[low:high] = [value] * (high - low)
        return values

    def sets_of_nodes(self) -> list[tuple[int, ...]]:
        """Return the sets of nodes to which jobs may be limited, as ranges of processors."""
        named: tuple[Partition | NodeType, ...] = (*self.partitions, *self.node_types)
        return self._in_processors(each.node_set for each in named)

    def kinds_of_nodes(self) -> list[tuple[int, ...]]:
        """Return the sets of nodes that partitions, types of nodes and reservations tell apart, as ranges of processors."""
        reserved = [each.node_set for each in self.reservations]
        return [*self.sets_of_nodes(), *self._in_processors(nodes for nodes in reserved if nodes is not None)]

    def _in_processors(self, sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        first = [0, *accumulate(self.node_sizes)] if self.has_shared_nodes else range(self.nodes + 1)
        return [tuple(first[bound] for bound in nodes) for nodes in sets]

    @property
    def resize(self) -> int | None:
        """How long a resize takes, ticks; ``None``: as long as a checkpoint and a restart."""
        return None if self.resize_s is None else to_ticks(self.resize_s)

    @property
    def round(self) -> int:
        """Length of a scheduling round, ticks; 0 where there are none."""
        return to_ticks(self.round_s)

    @property
    def node_memory(self) -> int | None:
        """Memory of the nodes that have most, KiB; ``None`` is no limit."""
        known = [gib for gib in (self.node_memory_gib, *(each.memory_gib for each in self.node_types)) if gib is not None]
        return check.to_kib(max(known)) if known else None

    def _repr_html_(self) -> str:
        """Return the machine for a notebook, its fields with the names of scenario files."""
        rows: list[tuple[str, object]] = []
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            inner = fields(value) if is_dataclass(value) else ()
            rows += [(f"{name}.{each.name}", getattr(value, each.name)) for each in inner] or [(name, value)]
        return html_fields(f"Machine of {counted(self.nodes, 'node')}", rows)


COSTS_OF_SIZE: Final = tuple(each.name for each in fields(Machine) if each.type == Seconds)
"""Fields of :class:`Machine` that say for how long a gang occupies dedicated nodes before or after it executes."""
