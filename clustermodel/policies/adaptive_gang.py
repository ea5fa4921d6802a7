"""Adaptive scheduling: backfilling gang scheduling while the machine has room, plain backfilling when it is nearly full.

002 (002_8335dd3215a2768d.txt, section 5.3) finds that with costly context switches BGS is better than BF up to a critical
utilization and worse beyond it, and leaves a scheduler that switches between them open.  This is one.
"""

from __future__ import annotations

from math import expm1

from clustermodel.policies.gang import GangScheduling
from clustermodel.policies.interface import Batch, Decision, Setup, View
from clustermodel.policies.queue_order import QueueOrder
from clustermodel.ticks import duration_to_ticks
from clustermodel.validation import require_number, require_seconds


class Adaptive(GangScheduling):
    """BGS below a critical utilization, BF above it (002, section 5.3).

    Above, jobs are started and given reservations in one row only, the fullest one; the others drain, and with the last of
    them time slices and context switches are gone.  Utilization is the share of nodes in use, averaged over time with
    weights that fall exponentially into the past.

    Args:
        threshold: the critical utilization, 002's rho_critical; 0.83 is what the paper reports for switches of 5 %.
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
        self._utilization = 0.0
        self._since: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Choose the mode, and decide as it does."""
        self._average(view.now)
        if not self.space_sharing and self._utilization > self._over:
            self.space_sharing = True
            self._open_rows = (min(range(self._mpl), key=self.matrix.room.__getitem__),)
        elif self.space_sharing and self._utilization < self._back:
            self.space_sharing = False
            self._open_rows = range(self._mpl)
        if self.space_sharing:
            self._rows_at_worst = max(1, len(set(self._open_rows) | set(self.matrix.rows_in_use())))
        else:
            self._rows_at_worst = self._mpl
        return super().decide(batch, view)

    def _average(self, now: int) -> None:
        """Take the time since the last event into the average."""
        if self._since is not None:
            weight = -expm1((self._since - now) / self._window)
            self._utilization += weight * (self.matrix.occupancy - self._utilization)
        self._since = now
