"""Adaptive scheduling: backfilling gang scheduling while the machine has room, plain backfilling when it is nearly full.

Zhang et al. 2003, section 5.3, find that with costly context switches BGS is better than BF up to a critical utilization and
worse beyond it, and leave a scheduler that changes between them open.  This is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1

from clustermodel.policies.gang_scheduling import GangScheduling
from clustermodel.policies.interface import Setup
from clustermodel.policies.queue_order import QueueOrder
from clustermodel.policies.view import View
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import require_number, require_seconds


class Adaptive(GangScheduling):
    """BGS below a critical utilization, BF above it (Zhang et al. 2003, section 5.3).

    Above, jobs are started and given reservations in one row only, the fullest one; the others drain, and with the last of
    them time slices and context switches are gone.  Utilization is the share of nodes in use, averaged over time with
    weights that fall exponentially into the past.

    Args:
        threshold: the critical utilization; the paper reports rho_critical = 0.83 for switches of 5 %.
        hysteresis: the policy goes over to BF above ``threshold + hysteresis``, and back below ``threshold - hysteresis``.
        window_s: time constant of the average, seconds.
        mpl: multiprogramming level of BGS, at most the machine's, which is the default.
        queue_order: as in :class:`~clustermodel.policies.gang.BGS`.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.83,
        hysteresis: float = 0.03,
        window_s: float = 86_400.0,
        mpl: int | None = None,
        queue_order: str | QueueOrder = "arrival",
    ) -> None:
        super().__init__("adaptive", backfilling=True, migration=False, mpl=mpl, queue_order=queue_order)
        for name, value in (("threshold", threshold), ("hysteresis", hysteresis)):
            require_number(f"adaptive: {name}", value, "a number >= 0 and <= 1", lambda share: 0 <= share <= 1)
        self._over, self._back = threshold + hysteresis, threshold - hysteresis
        self._window = duration_to_ticks(require_seconds("adaptive: window_s", window_s, positive=True))

    def begin(self, setup: Setup) -> None:
        """Get ready for a run, which begins with BGS."""
        super().begin(setup)
        self.space_sharing = False
        """Whether the policy is in its BF mode."""
        self._only_row = 0
        self._utilization = 0.0
        self._since: int | None = None

    def open_rows(self, view: View) -> tuple[Sequence[int], int]:
        """Choose the mode; in BF mode only the fullest row is open, and the other rows drain."""
        self._average(view.now)
        if not self.space_sharing and self._utilization > self._over:
            self.space_sharing = True
            self._only_row = min(range(self._mpl), key=self.matrix.room.__getitem__)
        elif self.space_sharing and self._utilization < self._back:
            self.space_sharing = False
        if not self.space_sharing:
            return super().open_rows(view)
        return (self._only_row,), len({self._only_row, *self.matrix.rows_in_use()})

    def _average(self, now: int) -> None:
        """Take the time since the last event into the average."""
        if self._since is not None:
            weight = -expm1((self._since - now) / self._window)
            self._utilization += weight * (self.matrix.occupancy - self._utilization)
        self._since = now
