"""Specification of a job in seconds, as a user writes it, and its row in ticks, as the simulator reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import index
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from clustermodel.errors import SpecificationError, shown
from clustermodel.ticks import duration_to_ticks, to_seconds, to_ticks
from clustermodel.validation import flag, require, require_gib, require_whole, seconds_fields, to_gib, to_kib, whole_fields

UNSET: Final = -1  # stands for a value that a job does not have
NAMES: Final = ("account", "partition", "qos", "job_name", "node_type", "features", "reservation")
"""Fields of a job that are names."""
SHAPE: Final = ("processors_per_node", "max_nodes_used", "whole_nodes")
"""Fields of a job that say how its processors lie on nodes that have several."""
SINGLETON: Final = "singleton"
MALLEABLE, LEAST, MOST, RESIZE = SIZES = ("malleable", "min_nodes", "max_nodes", "resize")
"""Columns that say whether the size of a job may change while it runs, between which, and what that costs, in ticks."""
COSTS: Final = ("checkpoint", "restart", "checkpoint_interval", "context_switch", "startup", "epilog")
"""Columns of what a job costs that is not what the machine says, in ticks."""
FLAGS: Final = ("whole_nodes", SINGLETON, MALLEABLE)
"""Fields of a job that are true or false."""
DEPENDENCIES: Final = ("after", "after_ok", "after_not_ok", "after_any")
"""Kinds of dependencies between jobs, by their position."""
LEAST_TICKS: Final = {"submit": 0, "run": 1, "estimate": 1}  # of the times that each row has
_LARGEST: Final = 2**63 - 1


class JobShape(NamedTuple):
    """How the processors of a job lie on nodes that have several; 0 where it does not say."""

    processors_per_node: int = 0
    most_nodes: int = 0
    whole_nodes: bool = False


class Sizes(NamedTuple):
    """On how many nodes a malleable job may run, and what a change of its size costs."""

    least: int = UNSET
    """``UNSET`` for 1."""
    most: int = UNSET
    """``UNSET`` where only the machine limits it."""
    resize: int = UNSET
    """How long a resize takes, ticks; ``UNSET`` for what the machine says."""


class OwnCosts(NamedTuple):
    """What a job costs that is not what the machine says, ticks; ``UNSET`` where it is."""

    checkpoint: int = UNSET
    restart: int = UNSET
    checkpoint_interval: int = UNSET
    """How long it executes between two periodic checkpoints."""
    context_switch: int = UNSET
    startup: int = UNSET
    epilog: int = UNSET


NO_COSTS: Final = OwnCosts()


class Demand(NamedTuple):
    """What a job asks for beyond nodes and time, as in :class:`Job`.  Jobs that ask for the same share one."""

    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    job_name: str | None = None
    node_type: str | None = None
    features: str | None = None
    reservation: str | None = None
    user: str | None = None
    """The name of its user, where it matters who that is."""
    shape: JobShape | None = None
    singleton: bool = False
    sizes: Sizes | None = None
    """Of a malleable job."""
    costs: OwnCosts = NO_COSTS


class JobRow(NamedTuple):
    """One job of a workload, times in ticks.  The simulator, the filters and the trace reader work on rows."""

    submit: int
    id: int
    nodes: int
    run: int
    """Run time on a dedicated machine (t^e in Zhang et al. 2003)."""
    estimate: int
    """The user's estimate, which may also be the wall-time limit."""
    user: int
    group: int
    priority: int
    """Higher runs first; ties go by submit time, then id."""
    status: int
    """SWF status of the trace (1 completed, 0 failed, 5 cancelled, -1 unknown); does not influence the simulation."""
    memory: int = UNSET
    """Memory that each task needs on its node, KiB; ``UNSET`` when unknown."""
    demand: Demand | None = None
    """What else it asks for; ``None`` for most jobs."""


NUMBERS: Final = JobRow._fields[:-1]
"""Fields of a row that are numbers: the columns that each workload has."""
Demands = Mapping[Demand | None, int]
"""All demands of the jobs of a run, each with the number of the first job that has it; ``None`` if some jobs have none."""
NO_DEMANDS: Final[Demands] = MappingProxyType({None: 0})


# A row of its fields: JobRow._make without counting them, in a quarter of the time.
row_of: Final[Callable[[Iterable[Any]], JobRow]] = partial(tuple.__new__, JobRow)


def demands_of(rows: Iterable[JobRow]) -> Demands:
    """Return the demands of jobs in memory."""
    first: dict[Demand | None, int] = {}
    for row in rows:
        first.setdefault(row.demand, row.id)
    return first


def checked_row(row: JobRow) -> JobRow:
    """Return a row with Python's own integers: numpy's would turn clock and ledger into 64 bits."""
    try:
        numbers = tuple(map(index, row[:-1]))
    except TypeError:
        field, value = next(pair for pair in zip(NUMBERS, row[:-1], strict=True) if not hasattr(pair[1], "__index__"))
        raise SpecificationError(f"job {row.id}: {field} {value!r} is not a whole number") from None
    plain = row_of((*numbers, row.demand))
    if plain.submit < 0 or plain.run < 1 or plain.estimate < 1 or max(numbers) > _LARGEST or min(numbers) < -_LARGEST:
        raise SpecificationError(problem_of(plain))
    return plain


def problem_of(row: JobRow) -> str:
    """Return the error message for an invalid row: a number beyond 64 bits, or a time below ``LEAST_TICKS``."""
    fields = dict(zip(NUMBERS, row[:-1], strict=True))
    large = [(field, "fit 64 bits") for field, value in fields.items() if abs(value) > _LARGEST]
    small = [(field, f"be >= {least}, in ticks") for field, least in LEAST_TICKS.items() if fields[field] < least]
    field, must = (large + small)[0]
    return f"job {shown(row.id)}: {field} {shown(fields[field])} is not allowed; it must {must}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A parallel job: rigid, unless it is ``malleable``.

    A size that the machine cannot satisfy (zero, negative, or more nodes than it has) is allowed here: the *machine* rejects
    such a job at submission and records it as rejected (docs/model).  Any other value that is not allowed is a
    :class:`~clustermodel.errors.SpecificationError`.
    """

    id: int
    """Unique number; the last tie breaker of the queue order."""
    nodes: int
    """Number of nodes the gang needs, all at once."""
    submit_s: float
    """Submission time in seconds, not negative."""
    run_s: float
    """Run time in seconds on a dedicated machine, positive.  The scheduler never sees it."""
    estimate_s: float | None = None
    """The user's estimate in seconds; missing or zero means the run time."""
    user: int = -1
    """User number, -1 when unknown."""
    group: int = -1
    """Group number, -1 when unknown."""
    priority: int = 0
    """Queue priority: higher first."""
    memory_gib: float | None = None
    """Memory that each task needs on its node, GiB; ``None`` when unknown.  For machines with
    :attr:`node_memory_gib <clustermodel.machine.machine.Machine.node_memory_gib>`."""

    checkpoint_s: float | None = None
    """How long a checkpoint of this job takes, seconds; ``None``: as long as the machine says, also below.  With a store that
    has a bandwidth, how long if no other gang uses it."""
    restart_s: float | None = None
    checkpoint_interval_s: float | None = None
    """How long this job executes between two periodic checkpoints, seconds; for machines with
    :attr:`Checkpointing.interval_s <clustermodel.machine.checkpoints.Checkpointing.interval_s>`."""
    context_switch_s: float | None = None
    """How long a context switch of its gang takes, seconds."""
    startup_s: float | None = None
    """How long its gang occupies dedicated nodes before it executes, seconds."""
    epilog_s: float | None = None
    """How long after, seconds."""
    account: str | None = None
    """Names, for the rules of a site and for groups of results."""
    partition: str | None = None
    """The partition in which it runs, by :attr:`Partition.name <clustermodel.machine.partition.Partition.name>`, or several,
    ``"short,long"``: it runs in the first in which it can start, in the order of their priorities, of equal ones as named."""
    qos: str | None = None
    job_name: str | None = None
    node_type: str | None = None
    """The type of all its nodes, by :attr:`NodeType.name <clustermodel.machine.node_type.NodeType.name>`, or several:
    ``"a100,v100"``."""
    features: str | None = None
    """Features required of each of its nodes: ``"ib&avx512"`` both, ``"a100|v100"`` either."""
    reservation: str | None = None
    """Whose nodes it may have, by :attr:`Reservation.name <clustermodel.machine.reservation.Reservation.name>`; or several."""
    processors_per_node: int | None = None
    """How many of its processors (``nodes``, where nodes have several) each of its nodes must have."""
    max_nodes_used: int | None = None
    """On how many nodes its processors may lie at most."""
    whole_nodes: bool = False
    """Whether it has all processors of its nodes: ``nodes`` is rounded up to those of whole nodes."""
    malleable: bool = False
    """Whether the number of its nodes may change while it runs, and be another than ``nodes`` from its start (docs/malleable);
    not with a shape.  ``run_s`` and ``estimate_s`` are those on ``nodes``, and the speedup of the scenario gives others."""
    min_nodes: int | None = None
    """Least number of nodes of a malleable job; by default 1."""
    max_nodes: int | None = None
    """Largest number of nodes of a malleable job; by default as many as the machine has."""
    resize_s: float | None = None
    """Time of a resize, seconds; ``None``: the machine's."""
    after: Sequence[int] = ()
    """Numbers of jobs that must have started first, as in Slurm; a single number may be given without a list."""
    after_ok: Sequence[int] = ()
    """Numbers of jobs that must have completed; if any is killed, aborted or rejected, this job is rejected."""
    after_not_ok: Sequence[int] = ()
    """Numbers of jobs that must have ended without completing; if any completes, this job is rejected."""
    after_any: Sequence[int] = ()
    """Numbers of jobs that must have ended, however they did."""
    singleton: bool = False
    """Whether it may begin only when all jobs of its user and its ``job_name`` submitted before it have ended, as in Slurm."""

    def __post_init__(self) -> None:
        whole_fields(self, "Job.", id=0)
        prefix = f"Job {self.id}: "
        for name in NAMES:
            value = getattr(self, name)
            require(value is None or (isinstance(value, str) and value), prefix + name, value, "it must be a name")
        for name in DEPENDENCIES:
            value = getattr(self, name)
            others = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
            object.__setattr__(self, name, tuple(require_whole(prefix + name, other) for other in others))
        whole_fields(self, prefix, nodes=None, user=None, group=None, priority=None, processors_per_node=1, max_nodes_used=1)
        whole_fields(self, prefix, min_nodes=1, max_nodes=1)
        for name in FLAGS:
            flag(prefix + name, getattr(self, name))
        named = self.job_name is not None or not self.singleton
        require(named, f"{prefix}job_name", self.job_name, "it must be a name", " with singleton")
        if (each := self.processors_per_node) is not None:
            must = "it must divide their number"
            require(not self.nodes % each, f"{prefix}processors_per_node", each, must, f" for {self.nodes} processors")
        self._check_sizes(prefix)
        seconds_fields(self, prefix, "submit_s")
        seconds_fields(self, prefix, "run_s", positive=True)
        seconds_fields(self, prefix, "estimate_s")
        if self.memory_gib is not None:
            require_gib(f"{prefix}memory_gib", self.memory_gib)
        seconds_fields(self, prefix, *(f"{name}_s" for name in COSTS if name != "checkpoint_interval"))
        seconds_fields(self, prefix, "checkpoint_interval_s", positive=True)

    def _check_sizes(self, prefix: str) -> None:
        seconds_fields(self, prefix, "resize_s")
        if not self.malleable:
            for name in (LEAST, MOST, "resize_s"):
                value = getattr(self, name)
                require(value is None, prefix + name, value, "it must be None", " of a job that is not malleable")
        for name in SHAPE if self.malleable else ():
            shape = getattr(self, name)
            require(not shape, prefix + name, shape, "a job with a shape keeps its size", " of a malleable job")
        if (least := self.min_nodes) is not None:
            require(least <= self.nodes, prefix + LEAST, least, f"it must be at most its nodes, {self.nodes}")
        if (most := self.max_nodes) is not None:
            require(most >= self.nodes, prefix + MOST, most, f"it must be at least its nodes, {self.nodes}")

    def row(self) -> JobRow:
        """Return the job in ticks, with the estimate filled in; without the jobs that it depends on."""
        run = duration_to_ticks(self.run_s)
        estimate = duration_to_ticks(self.estimate_s) if self.estimate_s else run
        memory = UNSET if self.memory_gib is None else to_kib(self.memory_gib)
        submit, of_whom = to_ticks(self.submit_s), (self.user, self.group, self.priority, -1)
        demand = self._demand()
        return JobRow(submit, self.id, self.nodes, run, estimate, *of_whom, memory, None if demand == _NOTHING else demand)

    def _demand(self) -> Demand:
        shape = JobShape(self.processors_per_node or 0, self.max_nodes_used or 0, self.whole_nodes)
        least, most = (UNSET if size is None else size for size in (self.min_nodes, self.max_nodes))
        return Demand(
            **{name: getattr(self, name) for name in NAMES},
            shape=shape if any(shape) else None,
            singleton=self.singleton,
            sizes=Sizes(least, most, _ticks(self.resize_s)) if self.malleable else None,
            costs=OwnCosts(
                _ticks(self.checkpoint_s),
                _ticks(self.restart_s),
                UNSET if self.checkpoint_interval_s is None else duration_to_ticks(self.checkpoint_interval_s),
                _ticks(self.context_switch_s),
                _ticks(self.startup_s),
                _ticks(self.epilog_s),
            ),
        )

    @classmethod
    def from_row(cls, row: JobRow) -> Job:
        """Return the specification of a row; the inverse of :meth:`row`."""
        fields: dict[str, Any] = {name: getattr(row, name) for name in ("id", "nodes", "user", "group", "priority")}
        fields |= {f"{name}_s": to_seconds(getattr(row, name)) for name in ("submit", "run", "estimate")}
        if row.memory != UNSET:
            fields["memory_gib"] = to_gib(row.memory)
        if (demand := row.demand) is not None:
            fields |= {name: getattr(demand, name) for name in NAMES}
            fields[SINGLETON] = demand.singleton and demand.job_name is not None  # without a name it waits for nobody
            fields |= {f"{name}_s": to_seconds(ticks) for name, ticks in demand.costs._asdict().items() if ticks != UNSET}
            if demand.shape is not None:
                per_node, most_nodes, whole = demand.shape
                fields |= dict(zip(SHAPE, (per_node or None, most_nodes or None, whole), strict=True))
            if demand.sizes is not None:
                least, most, resize = (None if size == UNSET else size for size in demand.sizes)
                fields |= {MALLEABLE: True, LEAST: least, MOST: most}
                fields["resize_s"] = None if resize is None else to_seconds(resize)
        return cls(**fields)


_NOTHING: Final = Demand()


def _ticks(seconds: float | None) -> int:
    return UNSET if seconds is None else to_ticks(seconds)
