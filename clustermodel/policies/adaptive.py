"""A policy that changes between backfilling gang scheduling and space sharing (Zhang et al. 2003, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1

from clustermodel.plans.ousterhout import OusterhoutMatrix
from clustermodel.policies.gang import GangScheduling
from clustermodel.policies.view import View
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import require_seconds, share


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
        mpl, queue_order: as for :class:`~clustermodel.policies.gang.GangScheduling`.
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

    def open_rows(self) -> AdaptiveRows | None:
        return AdaptiveRows(self.threshold + self.hysteresis, self.threshold - self.hysteresis, self.window_s)


class AdaptiveRows:
    """The rows in which jobs may be started: all in BGS mode, with which a run begins, and one in BF mode.

    The mode is BF from when the utilization is above ``over`` until it is below ``back``.
    """

    def __init__(self, over: float, back: float, window_s: float) -> None:
        self._over, self._back = over, back
        self._window = duration_to_ticks(window_s)
        self.space_sharing = False  # whether the policy is in its BF mode
        self.utilization = 0.0
        self._only_row = 0
        self._since: int | None = None

    def open_rows(self, view: View, matrix: OusterhoutMatrix) -> tuple[Sequence[int], int]:
        """Choose the mode, before the gangs that have ended leave the matrix.

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
        return (self._only_row,), len({self._only_row, *matrix.rows_in_use})
