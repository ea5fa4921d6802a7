"""Gang scheduling with any combination of backfilling and migration (Zhang et al. 2003, sections 4 and 5).

The steps, and the state of a run, are in :mod:`clustermodel.policies.gang_run`; here are the policies: GS, BGS, MGS and MBGS of
the paper, and one that changes between BGS and BF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import expm1
from operator import index
from typing import ClassVar, Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.gang_run import GangRun
from clustermodel.policies.interface import NOTHING, Setup
from clustermodel.policies.preemption import DEPENDENCIES, require_mode
from clustermodel.policies.queue_order import QueueOrder, queue_order_of
from clustermodel.policies.view import View
from clustermodel.schedule.ousterhout import OusterhoutMatrix
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import require, require_seconds, require_whole, share

_LARGEST_MATRIX: Final = 10**7
"""Most rows x columns: a row may be a bitmask as wide as the machine, and what is beyond any machine would fill the memory."""


@dataclass(frozen=True, kw_only=True)
class GangScheduling:
    """What the gang scheduling policies share; a subclass sets ``name``, ``backfilling`` and ``migration``.

    Args:
        mpl: multiprogramming level, at most the machine's, which is the default.
        queue_order: ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"`` or a callable.
    """

    name: ClassVar[str]
    backfilling: ClassVar[bool] = False
    """Whether jobs that are not next in the queue are backfilled, around reservations for those that wait."""
    migration: ClassVar[bool] = False
    """Whether gangs move to other columns."""
    mpl: int | None = None
    queue_order: str | QueueOrder = "arrival"
    urgent: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.mpl is not None:
            require_whole(f"{self.name}: mpl", self.mpl, at_least=1)
        queue_order_of(self.name, self.queue_order)

    @property
    def depends_on(self) -> frozenset[str]:
        """Time slices, memory, and the costs of migration and of preemption for urgent jobs."""
        migration = {"checkpointing"} if self.migration else set()
        urgent = NOTHING if self.urgent is None else DEPENDENCIES[self.urgent]
        return frozenset({"time_slicing", "context_switch", "node_memory_gib", *migration, *urgent})

    def start(self, setup: Setup) -> GangRun:
        """Start a run, with at most as many rows as the machine's multiprogramming level."""
        most = setup.machine.time_slicing.mpl
        mpl = most if self.mpl is None else index(self.mpl)
        require(mpl <= most, f"{self.name}: mpl", mpl, f"it must be <= {most}, the machine's TimeSlicing.mpl")
        if setup.nodes * mpl > _LARGEST_MATRIX:
            raise SpecificationError(
                f"{self.name}: a matrix of {mpl:,} rows x {setup.nodes:,} nodes is not allowed; mpl x nodes must be "
                f"<= {_LARGEST_MATRIX:,}"
            )
        return GangRun(self, mpl, setup, self._open_rows())

    def _open_rows(self) -> AdaptiveRows | None:
        """Return what decides where jobs may be started, if not in all rows."""
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.urgent is not None:
            require_mode(self.name, self.urgent, parameter="urgent")


@dataclass(frozen=True, kw_only=True)
class MBGS(BGS):
    """Backfilling gang scheduling with migration (Zhang et al. 2003, section 5.5)."""

    name = "mbgs"
    migration = True


@dataclass(frozen=True, kw_only=True)
class Adaptive(GangScheduling):
    """BGS below a critical utilization, BF above it (Zhang et al. 2003, section 5.3).

    The paper finds that with costly context switches BGS is better than BF up to a critical utilization and worse beyond it,
    and leaves a scheduler that changes between them open.  This is one.

    Above, jobs are started and given reservations in one row only, the fullest one; the others drain, and with the last of
    them time slices and context switches are gone.  Utilization is the share of nodes in use, averaged over time with
    weights that fall exponentially into the past.

    Args:
        threshold: the critical utilization; the paper reports rho_critical = 0.83 for switches of 5 %.
        hysteresis: the policy goes over to BF above ``threshold + hysteresis``, and back below ``threshold - hysteresis``.
        window_s: time constant of the average, seconds.
        mpl, queue_order: as for :class:`GangScheduling`.
    """

    name = "adaptive"
    backfilling = True
    threshold: float = 0.83
    hysteresis: float = 0.03
    window_s: float = 86_400.0

    def __post_init__(self) -> None:
        super().__post_init__()
        share("adaptive: threshold", self.threshold)
        share("adaptive: hysteresis", self.hysteresis)
        require_seconds("adaptive: window_s", self.window_s, positive=True)

    def _open_rows(self) -> AdaptiveRows | None:
        return AdaptiveRows(self.threshold + self.hysteresis, self.threshold - self.hysteresis, self.window_s)


class AdaptiveRows:
    """The rows in which jobs may be started in one run of :class:`Adaptive`; it begins with BGS.

    Above the utilization ``over`` one row is open, below ``back`` all are open again.
    """

    def __init__(self, over: float, back: float, window_s: float) -> None:
        self._over, self._back = over, back
        self._window = duration_to_ticks(window_s)
        self.space_sharing = False
        """Whether the policy is in its BF mode."""
        self.utilization = 0.0
        self._only_row = 0
        self._since: int | None = None

    def open_rows(self, view: View, matrix: OusterhoutMatrix) -> tuple[Sequence[int], int]:
        """Choose the mode, before the gangs that have ended leave the matrix; in BF mode only the fullest row is open.

        Return the rows in which jobs may be started, and among how many rows a gang may have to share the machine.
        """
        if self._since is not None:
            weight = -expm1((self._since - view.now) / self._window)
            self.utilization += weight * (matrix.occupancy - self.utilization)
        self._since = view.now
        if not self.space_sharing and self.utilization > self._over:
            self.space_sharing = True
            self._only_row = min(range(matrix.mpl), key=matrix.room.__getitem__)
        elif self.space_sharing and self.utilization < self._back:
            self.space_sharing = False
        if not self.space_sharing:
            return range(matrix.mpl), matrix.mpl
        return (self._only_row,), len({self._only_row, *matrix.rows_in_use()})
