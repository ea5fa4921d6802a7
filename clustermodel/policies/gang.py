"""Gang scheduling with any combination of backfilling and migration (Zhang et al. 2003, sections 4 and 5).

Here are the parameters of GS, BGS, MGS and MBGS; the steps, and the state of a run, are in
:mod:`clustermodel.policies.gang_run`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, ClassVar, Final

from clustermodel.errors import SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.plans.make import are_alike, pools_of
from clustermodel.policies.gang_run import GangRun
from clustermodel.policies.interface import NOTHING, Setup
from clustermodel.policies.preemption import DEPENDENCIES
from clustermodel.policies.queue_order import OWN_ORDERS, QueueOrder, queue_order_of
from clustermodel.validation import choice, require, require_whole

if TYPE_CHECKING:
    from clustermodel.policies.adaptive import AdaptiveRows

_LARGEST_MATRIX: Final = 10**7
"""Most rows x columns: a row may be a bitmask as wide as the machine, and what is beyond any machine would fill the memory."""


@dataclass(frozen=True, kw_only=True)
class GangScheduling:
    """What the gang scheduling policies share; a subclass sets ``name``, ``backfilling`` and ``migration``.

    Args:
        mpl: multiprogramming level, at most the machine's, which is the default.
        queue_order: ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"`` or a callable.  Except in order of arrival,
            priorities and a site's order only break ties.
    """

    name: ClassVar[str]
    backfilling: ClassVar[bool] = False
    """Whether jobs that are not next in the queue are backfilled, around reservations for those that wait."""
    migration: ClassVar[bool] = False
    """Whether gangs move to other columns."""
    mpl: int | None = None
    queue_order: str | QueueOrder = "arrival"
    urgent: str | None = field(default=None, init=False, repr=False)
    takes_partitions: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.mpl is not None:
            require_whole(f"{self.name}: mpl", self.mpl, at_least=1)
        queue_order_of(self.name, self.queue_order)
        if self.urgent is not None:
            choice(f"{self.name}: urgent", self.urgent, DEPENDENCIES)

    @property
    def depends_on(self) -> frozenset[str]:
        """Time slices, memory, and the costs of migration and of preemption for urgent jobs."""
        migration = {"checkpointing"} if self.migration else set()
        urgent = NOTHING if self.urgent is None else DEPENDENCIES[self.urgent]
        return frozenset({"time_slicing", "context_switch", "node_memory_gib", *migration, *urgent})

    @property
    def takes_order(self) -> bool:
        return self.queue_order not in OWN_ORDERS

    def start(self, setup: Setup) -> GangRun:
        """Start a run, with at most as many rows as the machine's multiprogramming level."""
        mpl = self.rows_on(setup.machine)
        if setup.nodes * mpl > _LARGEST_MATRIX:
            raise SpecificationError(
                f"{self.name}: a matrix of {mpl:,} rows x {setup.nodes:,} nodes is not allowed; mpl x nodes must be "
                f"<= {_LARGEST_MATRIX:,}"
            )
        pools = pools_of(setup)
        return GangRun(self, mpl, setup, self.open_rows(), pools, alike=are_alike(pools))

    def rows_on(self, machine: Machine) -> int:
        """Return the number of rows: a job's nodes are its own for one slice in so many at worst."""
        most = machine.time_slicing.mpl
        mpl = most if self.mpl is None else index(self.mpl)
        require(mpl <= most, f"{self.name}: mpl", mpl, f"it must be <= {most}, the machine's TimeSlicing.mpl")
        return mpl

    def open_rows(self) -> AdaptiveRows | None:
        """Return what decides in which rows jobs may be started, if not in all."""
        return None


@dataclass(frozen=True, kw_only=True)
class GS(GangScheduling):
    """Gang scheduling, first come first served (Zhang et al. 2003, section 5.1)."""

    name = "gs"


@dataclass(frozen=True, kw_only=True)
class MGS(GangScheduling):
    """Gang scheduling with migration (Zhang et al. 2003, section 5.4)."""

    name = "mgs"
    migration = True


@dataclass(frozen=True, kw_only=True)
class BGS(GangScheduling):
    """Backfilling gang scheduling: every row is a machine to backfill (Zhang et al. 2003, section 5.2).

    Args:
        mpl, queue_order: as for :class:`GangScheduling`.
        urgent: gives jobs of higher priority their nodes in every row at once; what that does to the gangs in their way:
            ``"checkpoint"``, ``"suspend"`` or ``"kill"``.
    """

    name = "bgs"
    backfilling = True
    urgent: str | None = None


@dataclass(frozen=True, kw_only=True)
class MBGS(BGS):
    """Backfilling gang scheduling with migration (Zhang et al. 2003, section 5.5)."""

    name = "mbgs"
    migration = True
