"""Time sharing: the whole machine belongs to the time-slice process, and gangs run in rows of the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from clustermodel.errors import DecisionError, SpecificationError
from clustermodel.machine import Machine
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.matrix_history import Cell, History, Moment
from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import NodeSet, count, is_node_set
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import Execution, JobInSystem, Terms
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.time_sharing.matrix_rows import MatrixRows
from clustermodel.sim.time_sharing.sliced_gang import SlicedGang, Slices


class TimeSliceProcess(Slices, Protocol):
    """The process that gives the machine to one row after the other: computed between events, or played node by node."""

    @property
    def rows(self) -> MatrixRows:
        """Which gangs are in which row."""

    @property
    def begun(self) -> int:
        """How long the slice that goes on at the last scheduling event had run before, ticks."""

    def take_down(self, columns: NodeSet) -> None:
        """Take nodes out of service that have failed, and on which no gang runs any more."""

    def put_up(self, columns: NodeSet) -> None:
        """Put nodes that have been repaired back into service."""

    def admit(self, gang: SlicedGang) -> None:
        """A gang starts; it is placed in a row next."""

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Move gangs to new columns and queue the checkpoint and restart, or the blocking, for the gangs concerned.

        Raises:
            DecisionError: see :meth:`MatrixRows.migrate <clustermodel.sim.time_sharing.matrix_rows.MatrixRows.migrate>`.
        """

    def settle(self, now: int) -> None:
        """Bring what gangs have executed, ledger and log up to ``now``."""

    def resume(self, *, waiting: bool) -> None:
        """Go on with the running slice or the next row in use, now that the decisions of the present have been carried out.

        Args:
            waiting: whether jobs wait from now on.

        Raises:
            DecisionError: the rows cannot run as they are.
        """


MakeTimeSlices = Callable[[Clock, Machine, Ledger, SliceLog], TimeSliceProcess]


class TimeSharing:
    """The nodes of a machine that gangs share in time; see :class:`~clustermodel.sim.sharing.Sharing`.

    Args:
        env: the simulation.
        machine: what is shared.
        ledger: where node time is charged.
        saved: what is saved of preempted jobs.
        history: keeps every state of the matrix, if it is wanted.
        time_slices: makes the time-slice process.
    """

    is_settled = True

    def __init__(
        self,
        env: Clock,
        machine: Machine,
        ledger: Ledger,
        saved: SavedWork,
        history: History | None,
        time_slices: MakeTimeSlices,
    ) -> None:
        if machine.checkpointing.interval_s is not None and machine.checkpointing.max_tasks_per_slice is not None:
            raise SpecificationError(
                "Checkpointing: interval_s and max_tasks_per_slice are not allowed together where nodes are shared in time, "
                "because who writes next would depend on the store's queue inside a slice; leave one of them out"
            )
        if (store := machine.checkpointing.store) is not None and store.is_shared:
            raise SpecificationError(
                "CheckpointStore: bandwidth_gib_s, max_concurrent_tasks and writers are not allowed where nodes are shared in "
                "time, because who shares the store would change inside a slice; give node_bandwidth_gib_s alone"
            )
        self.slice_log = SliceLog()
        """What ran between scheduling events."""
        self._env = env
        self._nodes = machine.processors
        self._ledger = ledger
        self._saved = saved
        self._history = history
        self._slices = slices = time_slices(env, machine, ledger, self.slice_log)
        self.settle = slices.settle
        self.take_down = slices.take_down
        self.put_up = slices.put_up
        self._starts = 0

    def shared_in_time(self, down: Iterable[NodeSet]) -> TimeSharing:
        """Return itself; which nodes are down is known."""
        return self

    def start(self, job: JobInSystem, terms: Terms, columns: NodeSet | None, row: int | None) -> Execution:
        """Start a gang in a row of the Ousterhout matrix, on the columns that the policy has chosen.

        Raises:
            DecisionError: see ``Sharing.start``.
        """
        queued = job.queued
        if row is None:
            raise DecisionError(f"job {queued.id} cannot start without a row: nodes are shared in time, and none is idle")
        if columns is None or not _are_columns(terms.nodes, columns, self._nodes):
            raise DecisionError(
                f"job {queued.id} cannot start in row {row} on columns {columns!r}: "
                f"they must be ascending ranges, (low, high, ...), of {terms.nodes} nodes in all"
            )
        self._starts += 1
        gang = SlicedGang(self._env, job, columns, row, terms, self._starts, self._slices, self._saved)
        if self._saved.memory.free is not None:
            self._saved.memory.hold(job, columns, job.suspended_on)
        if self._saved.costs.are_periodic:
            gang.plan_checkpoints(*self._saved.checkpoints_of(job, gang.nodes))
        if job.image is not None:
            gang.begin_by_restoring(self._saved.in_all(self._saved.overheads_of_restoring(job, columns), gang.nodes))
        self._slices.admit(gang)
        self._slices.place(gang, row)
        return gang

    def migrate(self, moves: list[tuple[Execution, NodeSet]], blocked: list[Execution]) -> None:
        """Move gangs to other columns; each spends a checkpoint and a restart at the start of its next slices.

        Raises:
            DecisionError: a gang is in a row or being preempted or restored, or its columns are not as many as it needs.
        """
        for gang, columns in moves:
            refused = f"job {gang.job.id} cannot migrate"
            if gang.stopping or gang.fetching:
                state = "been preempted, and still holds its nodes" if gang.stopping else "not been restored yet"
                raise DecisionError(f"{refused}: it has {state}")
            if not _are_columns(gang.nodes, columns, self._nodes):
                raise DecisionError(f"{refused} to columns {columns!r}: its gang needs {gang.nodes} nodes")
        if self._saved.memory.free is not None:
            for gang, columns in moves:
                self._saved.memory.hold(gang.owner, columns)
        self._slices.migrate([(_sliced(gang), columns) for gang, columns in moves], list(map(_sliced, blocked)))

    def resume(self, *, waiting: bool) -> None:
        """Go on with the running slice or the next row in use.

        Raises:
            DecisionError: a gang is in no row, or more tasks are written or read in a slice than the store takes.
        """
        self._slices.resume(waiting=waiting)
        if self._history is not None:
            self._remember(self._history, self._slices.rows)

    def _remember(self, history: History, rows: MatrixRows) -> None:
        contents = tuple(
            tuple(Cell(gang.job.id, gang.mask, replica=gang.home != row) for gang in gangs.values())
            for row, gangs in enumerate(rows.gangs)
        )
        amounts = {account: self._ledger.amount(account) for account in Account}
        history.moments.append(Moment(self._env.now, contents, tuple(rows.rotation()), amounts, self._slices.begun))


def _are_columns(nodes: int, columns: NodeSet, machine_nodes: int) -> bool:
    """Return whether ``columns`` are a set of ``nodes`` nodes of the machine."""
    within = bool(columns) and 0 <= columns[0] < columns[-1] <= machine_nodes
    return within and is_node_set(columns) and count(columns) == nodes


def _sliced(gang: Execution) -> SlicedGang:
    assert isinstance(gang, SlicedGang), "all gangs share their nodes in time, or none does"
    return gang
