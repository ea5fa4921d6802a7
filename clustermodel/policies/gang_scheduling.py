"""Gang scheduling with any combination of backfilling and migration (Zhang et al. 2003, sections 4 and 5).

The steps, and the state of a run, are in :mod:`clustermodel.policies.gang_run`; here are the parameters that all combinations
share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.copies import CopiedWithoutRun
from clustermodel.policies.gang_run import Combination, GangRun
from clustermodel.policies.interface import NOTHING, Decision, Setup
from clustermodel.policies.preemption_modes import Mode
from clustermodel.policies.queue_order import QueueOrder, queue_order_of
from clustermodel.policies.urgent_gangs import UrgentJobs
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule.ousterhout import OusterhoutMatrix
from clustermodel.validation import require_whole

_LARGEST_MATRIX: Final = 10**7
"""Most rows x columns: a row may be a bitmask as wide as the machine, and what is beyond any machine would fill the memory."""


class GangScheduling(CopiedWithoutRun):
    """Gang scheduling with any combination of backfilling and migration.

    Args:
        name: short name.
        backfilling: fill holes with jobs that are not next in the queue, around reservations for those that wait.
        migration: move gangs to other columns.
        mpl: multiprogramming level, at most the machine's, which is the default.
        queue_order: ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"`` or a callable.
        urgent: gives jobs of higher priority their nodes in every row at once; what that does to the gangs in their way:
            ``"checkpoint"``, ``"suspend"`` or ``"kill"``.  Only together with backfilling.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    def __init__(
        self,
        name: str,
        *,
        backfilling: bool,
        migration: bool,
        mpl: int | None = None,
        queue_order: str | QueueOrder = "arrival",
        urgent: str | Mode | None = None,
    ) -> None:
        self.name = name
        self._backfilling = backfilling
        self._migration = migration
        self._asked_mpl = None if mpl is None else require_whole(f"{name}: mpl", mpl, at_least=1)
        self._order = queue_order_of(name, queue_order)
        self._urgent = None if urgent is None else UrgentJobs(name, urgent)

    @property
    def uses(self) -> frozenset[str]:
        """What its schedules depend on: time slices, memory, and the costs of migration and of preemption for urgent jobs."""
        migration = {"checkpointing"} if self._migration else set()
        urgent = NOTHING if self._urgent is None else self._urgent.uses
        return frozenset({"time_slicing", "context_switch", "node_memory_gib", *migration, *urgent})

    def begin(self, setup: Setup) -> None:
        """Get ready for a run.

        Raises:
            SpecificationError: the machine's multiprogramming level is below the one asked for, or the Ousterhout matrix would
                have more than ten million rows x columns.
        """
        machine = setup.machine
        self._mpl = machine.time_slicing.mpl if self._asked_mpl is None else self._asked_mpl
        if self._mpl > machine.time_slicing.mpl:
            raise SpecificationError(
                f"{self.name}: mpl: {self._mpl} is not allowed; it must be <= {machine.time_slicing.mpl}, the machine's "
                "TimeSlicing.mpl"
            )
        if setup.nodes * self._mpl > _LARGEST_MATRIX:
            raise SpecificationError(
                f"{self.name}: a matrix of {self._mpl:,} rows x {setup.nodes:,} nodes is not allowed; mpl x nodes must be "
                f"<= {_LARGEST_MATRIX:,}"
            )
        combination = Combination(self._mpl, self._backfilling, self._migration, self._order, self._urgent)
        self._run = GangRun(combination, setup, self.open_rows)

    @property
    def matrix(self) -> OusterhoutMatrix[QueuedJob]:
        """The Ousterhout matrix of the run."""
        return self._run.matrix

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Rebuild the matrix, in the steps of Zhang et al. 2003, sections 4.2 and 5.4."""
        return self._run.decide(batch, view)

    def open_rows(self, view: View) -> tuple[Sequence[int], int]:
        """Return the rows in which jobs may be started, and among how many rows a gang may have to share the machine.

        Called once at each event, before the gangs that have ended leave the matrix.
        """
        return range(self._mpl), self._mpl
