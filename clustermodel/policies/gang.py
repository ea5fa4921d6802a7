"""GS, BGS, MGS, MBGS: gang scheduling without and with backfilling and migration (Zhang et al. 2003, sections 4 and 5)."""

from __future__ import annotations

from clustermodel.policies.gang_scheduling import GangScheduling
from clustermodel.policies.preemption_modes import Mode
from clustermodel.policies.queue_order import QueueOrder


class GS(GangScheduling):
    """Gang scheduling, first come first served (Zhang et al. 2003, section 5.1)."""

    def __init__(self, *, mpl: int | None = None, queue_order: str | QueueOrder = "arrival") -> None:
        super().__init__("gs", backfilling=False, migration=False, mpl=mpl, queue_order=queue_order)


class BGS(GangScheduling):
    """Backfilling gang scheduling: every row is a machine to backfill (Zhang et al. 2003, section 5.2)."""

    def __init__(
        self, *, mpl: int | None = None, queue_order: str | QueueOrder = "arrival", urgent: str | Mode | None = None
    ) -> None:
        super().__init__("bgs", backfilling=True, migration=False, mpl=mpl, queue_order=queue_order, urgent=urgent)


class MGS(GangScheduling):
    """Gang scheduling with migration (Zhang et al. 2003, section 5.4)."""

    def __init__(self, *, mpl: int | None = None, queue_order: str | QueueOrder = "arrival") -> None:
        super().__init__("mgs", backfilling=False, migration=True, mpl=mpl, queue_order=queue_order)


class MBGS(GangScheduling):
    """Backfilling gang scheduling with migration (Zhang et al. 2003, section 5.5)."""

    def __init__(
        self, *, mpl: int | None = None, queue_order: str | QueueOrder = "arrival", urgent: str | Mode | None = None
    ) -> None:
        super().__init__("mbgs", backfilling=True, migration=True, mpl=mpl, queue_order=queue_order, urgent=urgent)
