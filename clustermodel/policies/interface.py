"""The policy interface: Policy, Run, Setup and the decisions that a policy returns.

A policy needs no base class and knows nothing of SimPy.  Times are integer ticks (:mod:`clustermodel.ticks`).  What a run sees
of jobs and machine stands in :mod:`clustermodel.policies.view`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol, Self, TypeAlias, cast, runtime_checkable

import numpy as np

from clustermodel.errors import DecisionError, SpecificationError, quoted
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.machine.node_set import places as rows_of
from clustermodel.plans.present import PresentPlan
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.workload.speedup import LINEAR, Speedup


class Reason(NamedTuple):
    """The reason for a start, kept in the decision log and printed by ``explain``; times in ticks."""

    rule: str
    """The rule that let it in, in the field's words."""
    holder: int | None = None
    """The waiting job that held the (first) reservation."""
    shadow: int | None = None
    """When that job was expected to start: the shadow time (Talby & Feitelson 1999, long version, section 3.1)."""
    extra: int | None = None
    """Nodes left over at the shadow time before this start: the extra nodes."""
    reserved: int | None = None
    """The start time this job itself had been given."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Start:
    """Start a waiting job now, as a whole gang, on dedicated nodes; :class:`Rows` starts jobs that share their nodes in time.

    A job with saved work is restored first, on its nodes.  After a checkpoint that is a restart; after a suspension it is a
    context switch on the same nodes, a checkpoint and a restart on others.
    """

    job: QueuedJob
    columns: NodeSet | Sequence[int] | None = None
    """The nodes to use: a list or a range of them, or a tuple with the bounds of ranges, as ``View.idle_nodes`` returns.
    ``None`` means those whose memory holds the job if they are idle, else the lowest idle ones."""
    reason: Reason | None = None
    """Filled in only when ``Setup.explain`` asks for it."""
    nodes: int | None = None
    """The number of nodes, where it differs from what the job asked for; ``Setup.speedup`` says how long the job then takes.  A
    job with saved work can start only on as many nodes as it was saved with."""
    limit: int | None = None
    """Executed ticks after which an unfinished job is stopped and requeued; its work is discarded."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Kill:
    """End a running gang now; it leaves its nodes, after its epilog, or its rows, at once and its work is discarded.

    A gang that has reached its estimate is recorded as *killed*, and its work counts as useful (the archive's convention).
    """

    job: QueuedJob
    requeue: bool = False
    """Whether the job waits again, at its place in the queue: preemption by kill and restart (Yuan et al. 2010, section 4.2).
    It begins again from its last checkpoint, if it has one.  The memory in which a job waits suspended is freed at once."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Checkpoint:
    """Preempt a running job: save it to the checkpoint store and return it to its place in the queue.

    Its gang stops executing at once, and holds dedicated nodes until it is written.  In rows it is written at the start of its
    own next slices, and then leaves its rows; other pending overheads are dropped.  A gang of more tasks than the store takes
    at a time is written in rounds.
    """

    job: QueuedJob


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Suspend:
    """Preempt a running job: leave it in the memory of its nodes; as :class:`Checkpoint`, with one context switch instead."""

    job: QueuedJob


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Reserve:
    """Guarantee a waiting job its latest start.  The job's record keeps the first guarantee."""

    job: QueuedJob
    start: int
    """The guaranteed start, ticks."""
    guaranteed: bool = True
    """Whether the guarantee is certain while jobs are killed at their estimates; ``False`` where it rests on predictions."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class WakeAt:
    """Schedule a call of ``decide`` at a time.  A later ``WakeAt`` replaces an earlier one; the call itself clears it."""

    time: int | None
    """Ticks, after now; ``None`` clears it."""


class Place(NamedTuple):
    """Where a gang runs in the Ousterhout matrix; the fields of :class:`Start` mean the same."""

    job: QueuedJob
    columns: NodeSet | Sequence[int]
    """The gang's nodes, one per task."""
    rows: tuple[int, ...]
    """The rows it runs in, 0 to MPL - 1: its home row first, then those with a replica (Zhang et al. 2003, section 4.1)."""
    reason: Reason | None = None
    nodes: int | None = None
    limit: int | None = None


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Rows:
    """Place gangs in the rows of the Ousterhout matrix from now on; only gangs whose rows or columns change need be named.

    A waiting job starts; a gang leaves rows and enters others; a gang whose columns differ migrates by checkpoint and restart
    (Zhang et al. 2003, section 5.4), which it spends at the start of its next slices, as a saved job spends what restoring it
    costs.  All gangs leave rows before any enters one: their places must be possible together.
    """

    places: tuple[Place, ...]
    migrations: tuple[tuple[tuple[QueuedJob, ...], tuple[QueuedJob, ...]], ...] = ()
    """Pairs, in order: gangs that migrate together, and gangs that have to wait until the checkpoints of these are written, at
    the start of their own next slices.  A gang that migrates and is in no pair blocks no other."""


MaskedPlace: TypeAlias = tuple[QueuedJob, int, int, int]
"""The job of a gang, its columns and its rows, bitmasks, and its home row."""


class RowsAsMasks(Rows):
    """:class:`Rows` of a policy that keeps bitmasks: the machine takes these as they are, and ``places`` is for readers."""

    __slots__ = ("masks", "reasons")
    nodes = limit = None  # of all places

    def __init__(
        self,
        masks: list[MaskedPlace],
        migrations: tuple[tuple[tuple[QueuedJob, ...], tuple[QueuedJob, ...]], ...],
        reasons: dict[int, Reason],
    ) -> None:
        self.masks = masks
        self.migrations = migrations
        self.reasons = reasons  # of starts, by job id

    @property
    def places(self) -> tuple[Place, ...]:  # type: ignore[override]
        return tuple(
            Place(job, from_mask(columns), (home, *(row for row in rows_of(rows) if row != home)), self.reasons.get(job.id))
            for job, columns, rows, home in self.masks
        )


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Migrate:
    """Move gangs to other dedicated nodes by checkpoint and restart, charged on the new nodes and queued at the store.

    The old nodes are idle at once, so a later :class:`Start` in the same list may use them.  A gang that is not restored yet
    restores its image on the new nodes instead.
    """

    moves: tuple[tuple[QueuedJob, NodeSet | Sequence[int]], ...]
    """Gangs and their new nodes, as in :class:`Start`: idle ones, nodes that other gangs of ``moves`` leave, or their own."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Resize:
    """Change the number of nodes of a running malleable job, on dedicated nodes; its executed work is kept.

    Released nodes are idle at once, so a later :class:`Start` in the same list may use them.  The gang spends the cost of the
    resize on its new nodes and then continues; its executed work is converted to ticks of the new number of nodes by
    ``Setup.speedup``, rounded down.
    """

    job: QueuedJob
    nodes: int | None = None
    """The new number of nodes, within ``QueuedJob.sizes``; ``None``: as many as ``columns``."""
    columns: NodeSet | Sequence[int] | None = None
    """Its new nodes, as in :class:`Start`; they may be its own or idle ones.  ``None``: the lowest of its own, and of the idle
    ones that it may have (``View.resizable``)."""


Decision = Start | Kill | Checkpoint | Suspend | Reserve | WakeAt | Rows | Migrate | Resize


class Holding(Protocol):
    """How long a waiting job that starts now holds its nodes; see :attr:`Setup.holding`."""

    def __call__(self, job: QueuedJob, ticks: int, nodes: int | None = None, /) -> int: ...


def _unknown_run_time(job: QueuedJob) -> int:
    raise LookupError(f"job {job.id}: its run time is unknown")


class Setup(NamedTuple):
    """The machine and the rules of a run, as its policy sees them before the first event; times in ticks."""

    nodes: int
    """Size of the machine."""
    kill_at_estimate: bool
    """Whether running jobs end at their estimates at the latest."""
    rng: np.random.Generator
    """The policy's own random stream."""
    explain: bool
    """Whether to attach a :class:`Reason` to each :class:`Start`."""
    machine: Machine
    """The whole specification: time slices, context switches and checkpointing."""
    speedup: Speedup = LINEAR
    """How estimates and run times change where a job is started with another width than it asked for."""
    run_time: Callable[[QueuedJob], int] = _unknown_run_time
    """The run time of a job in the system if nothing kills it.  Real schedulers do not know it; the ideal predictors of
    :mod:`clustermodel.policies.predictors` do."""
    holding: Holding = lambda _job, ticks, _nodes=None: ticks
    """The expected time for which a waiting job that starts now holds its nodes, given its ticks of execution in all:
    without what has been saved of it, with restoring that, with its periodic checkpoints, with booting, where nodes are
    switched off, and with its start-up and epilog, which may depend on the number of nodes that it gets (by default as many as
    it asks for, or was saved with)."""
    transfer_times: Callable[[QueuedJob], tuple[int, int]] = lambda _job: (0, 0)
    """How long a checkpoint and a restart of a job in the system take if no others are at the checkpoint store."""
    resize_time: Callable[[QueuedJob, int, int], int] = lambda _job, _before, _after: 0
    """How long a resize of a malleable job from one number of nodes to another takes if no others are at the store."""
    node_sets: Sequence[NodeSet] = ()
    """Sets of nodes to which jobs of this run may be limited, by partitions and types of nodes."""
    disjoint: Sequence[NodeSet] = ()
    """Parts of the machine without common nodes, where each job of this run may have nodes of one of them only, and nothing
    else ties them together; empty where there is one, or it is not known."""
    by_node: bool = False
    """Whether jobs have shapes, or share the memory of nodes: a job may then not fit although enough processors are idle."""
    one_by_one: bool = False
    """Whether each of several simultaneous events has its own scheduling cycle.  A gang that ends at that time is then missing
    from ``View.running`` in all these cycles, also before the one that reports its end."""
    switch_time: Callable[[QueuedJob], int] = lambda _job: 0
    """How long a context switch of the gang of a job in the system takes, ticks."""
    own_switches: bool = False
    """Whether context switches differ between jobs."""
    occupies: bool = False
    """Whether gangs may occupy their nodes before and after they execute: for a start-up or an epilog."""
    occupied: Callable[[QueuedJob, int], tuple[int, int]] = lambda _job, _nodes: (0, 0)
    """(start-up, epilog): ticks for which a job's gang occupies a number of nodes before it executes, and after it ends or is
    preempted (not if it is suspended)."""

    def plan(self) -> PresentPlan:
        """Return a plan for a policy of your own, which knows where jobs can be on this machine."""
        return PresentPlan(self)

    def __setattr__(self, field: str, value: object) -> None:
        raise DecisionError(f"it sets {field} of the setup; a policy may not change what it is told")


Decide = Callable[[Batch, View], Iterable[Decision]]
"""Returns what to do, in order, now that a batch has happened."""


class Run(Protocol):
    """A policy in one run: what it remembers from one scheduling cycle to the next."""

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        """Return what to do, in order, now that ``batch`` has happened."""


@runtime_checkable
class Policy(Protocol):
    """A scheduling policy: a specification that runs do not change; the state of a run is in what ``start`` returns.

    The policies of this package are frozen dataclasses, so that they can be compared, hashed and pickled.  Wrong
    arguments raise a SpecificationError when the policy is made, a machine that does not fit when ``start`` is called.
    """

    @property
    def name(self) -> str:
        """Short name for tables and file names."""

    def start(self, setup: Setup) -> Run:
        """Return a new run on this machine; the policy itself, if its ``decide`` remembers nothing."""


class Stateless:
    """A policy, or a part, that remembers nothing from one scheduling cycle to the next, and depends on no other part."""

    depends_on: ClassVar[frozenset[str]] = frozenset()

    def start(self, setup: Setup) -> Self:
        return self


def decide_of(policy: Policy, setup: Setup) -> Decide:
    """Start a run of a policy and return its ``decide``; a run may be a function, too."""
    try:
        run: object = policy.start(setup)
    except DecisionError as problem:
        raise DecisionError(f"policy {policy.name}: {problem}") from None
    decide = getattr(run, "decide", run)
    if not callable(decide):
        raise SpecificationError(
            f"policy {policy.name}: start returned {quoted(run)}; it must return the run, an object with decide (self, if the "
            "policy itself has it)"
        )
    return cast("Decide", decide)


@dataclass(frozen=True)
class PolicyFunction:
    """A policy that is written as a function of the setup, and of parameters by name, which returns ``decide``."""

    name: str
    function: Callable[..., Run | Decide]
    parameters: tuple[tuple[str, object], ...] = ()

    def start(self, setup: Setup) -> Run:
        return cast("Run", self.function(setup, **dict(self.parameters)))


@runtime_checkable
class Calibrated(Protocol):
    """A policy with a parameter that is measured before a run."""

    def calibrated(self, measure: MeasureWaits) -> Policy:
        """Return the policy with its parameters set by what another policy does on the same jobs; called before each run."""


MEASURED: Final = "conservative"
"""The policy under which calibrated policies measure waits."""


class Waits(NamedTuple):
    """How many nodes the jobs of a run had and how long they waited, ticks; those that started, in order of submission."""

    nodes: tuple[int, ...]
    wait: tuple[int, ...]


MeasureWaits = Callable[[str], Waits]
"""Runs the named policy on the same jobs and the same machine."""


RANDOM_NUMBERS: Final = "random numbers"
"""What a policy depends on that draws from :attr:`Setup.rng`."""
PARTS: Final = ("time_slicing", "context_switch", "checkpointing", "suspended_per_node", "node_memory_gib")
"""Fields of :class:`~clustermodel.machine.machine.Machine` on which not every policy depends."""
NOTHING: Final[frozenset[str]] = frozenset()
"""Of a policy whose schedules depend on the jobs, the size of the machine and the wall-time limit alone."""
_EVERYTHING: Final = frozenset({*PARTS, RANDOM_NUMBERS})


def dependencies_of(part: object) -> frozenset[str]:
    """Return what schedules of a policy, or of a part, depend on besides the jobs, the machine's size and the wall-time limit.

    That is its attribute ``depends_on``: names from :data:`PARTS` and :data:`RANDOM_NUMBERS`.  A study runs points once that
    differ only in what their policy does not depend on.  A policy whose class does not have the attribute itself may depend on
    everything: a subclass of a shipped policy may depend on more.
    :func:`~clustermodel.experiment.conformance.check_policy` checks what is declared.
    """
    kind = type(part)
    shipped = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    declares = shipped or "depends_on" in vars(kind) or "depends_on" in getattr(part, "__dict__", {})
    depends_on: frozenset[str] = getattr(part, "depends_on", _EVERYTHING) if declares else _EVERYTHING
    if unknown := sorted(set(depends_on) - _EVERYTHING):
        allowed = ", ".join(map(repr, sorted(_EVERYTHING)))
        raise SpecificationError(
            f"policy {kind.__name__}: depends_on {unknown[0]!r} is not allowed; it must be among {allowed}"
        )
    return depends_on
