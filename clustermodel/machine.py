"""Specification of the machine: nodes and their memory, time slices, context switches, checkpoints, failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from clustermodel.errors import SpecificationError, counted
from clustermodel.failures.failure import FailureSource
from clustermodel.html import html_fields
from clustermodel.memory_units import require_gib, to_kib
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import choice, require_number, require_seconds, require_whole

INTERVALS: Final = ("young", "daly")
"""Intervals of periodic checkpoints by name: Young 1974; Daly 2006, eq. (37)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSlicing:
    """How the machine's time can be cut into slices, for policies that share nodes in time (Zhang et al. 2003, section 4).

    Raises:
        SpecificationError: ``quantum_s`` is not a positive number, or ``mpl`` not a whole number of at least one.
    """

    quantum_s: float = 200.0
    """Length T of a time slice, seconds: how long one row of the Ousterhout matrix runs before the next row."""
    mpl: int = 5
    """Multiprogramming level: largest number of rows of the matrix, and so of gangs that share a node."""

    def __post_init__(self) -> None:
        require_seconds("TimeSlicing.quantum_s", self.quantum_s, positive=True)
        if not self.quantum:
            raise SpecificationError(f"TimeSlicing.quantum_s: {self.quantum_s} is not allowed; it must be >= 1e-6 (a tick)")
        object.__setattr__(self, "mpl", require_whole("TimeSlicing.mpl", self.mpl, at_least=1))

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
class Checkpointing:
    """Cost of writing a gang's image to the checkpoint store and reading it back (Zhang et al. 2003, section 5.4).

    The cost does not depend on the size of the gang, whose tasks are written in parallel.  The number of tasks that the store
    takes in one time slice can be limited.  The paper's cost C of a migration is ``checkpoint_s + restart_s``, C/2 each.

    Raises:
        SpecificationError: a cost is negative, or the limit is not a whole number of at least zero.
    """

    checkpoint_s: float = 0.0
    """Time to checkpoint a gang, seconds."""
    restart_s: float = 0.0
    """Time to restart a gang from its checkpoint, seconds."""
    interval_s: float | str | None = None
    """How long a gang executes between two periodic checkpoints, seconds; ``None``: there are none.  While a checkpoint is
    written, the gang holds its nodes and does not execute.  After the failure of a node a job goes on from its last checkpoint.
    ``"young"`` and ``"daly"`` are the intervals of Young 1974 and Daly 2006 for the number of nodes of the gang."""
    max_tasks_per_slice: int | None = None
    """Q: largest number of tasks that migrate in a time slice, and that the store takes at a time where gangs are preempted;
    ``None`` is no limit, 0 no migration and no checkpoints."""

    def __post_init__(self) -> None:
        require_seconds("Checkpointing.checkpoint_s", self.checkpoint_s)
        require_seconds("Checkpointing.restart_s", self.restart_s)
        if isinstance(self.interval_s, str):
            choice("Checkpointing.interval_s", self.interval_s, INTERVALS, other=", a number of seconds, or None")
            if not self.checkpoint:
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
        if self.failures is not None and not isinstance(self.failures, FailureSource):
            raise SpecificationError(
                f"Machine.failures: {self.failures!r} is not allowed; it must be NodeFailures(...), Outages(...) or None"
            )
        if self.failures is None and isinstance(self.checkpointing.interval_s, str):
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
    def node_memory(self) -> int | None:
        """Memory of each node, KiB; ``None`` is no limit."""
        return None if self.node_memory_gib is None else to_kib(self.node_memory_gib)

    def _repr_html_(self) -> str:
        """Return the machine for a notebook."""
        slicing, store, switch = self.time_slicing, self.checkpointing, self.context_switch
        return html_fields(
            f"Machine of {counted(self.nodes, 'node')}",
            [
                ("killed at the estimate", self.kill_at_estimate),
                ("time slice", f"{slicing.quantum_s:g} s"),
                ("multiprogramming level", f"{slicing.mpl:,} gangs on a node"),
                ("context switch", f"{to_seconds(self.switch_ticks):g} s {switch.charge.replace('-', ' ')}"),
                ("checkpoint", f"{store.checkpoint_s:g} s"),
                ("restart", f"{store.restart_s:g} s"),
                ("migrating tasks per slice", "no limit" if store.max_tasks_per_slice is None else store.max_tasks_per_slice),
                ("periodic checkpoints every", "never" if store.interval_s is None else _seconds(store.interval_s)),
                ("failures of nodes", "none" if self.failures is None else self.failures),
                ("memory per node", "no limit" if self.node_memory_gib is None else f"{self.node_memory_gib:g} GiB"),
                ("suspended tasks per node", "no limit" if self.suspended_per_node is None else self.suspended_per_node),
            ],
        )


def _seconds(interval_s: float | str) -> str:
    """Return an interval, or its name, for a notebook."""
    return interval_s if isinstance(interval_s, str) else f"{interval_s:g} s"
