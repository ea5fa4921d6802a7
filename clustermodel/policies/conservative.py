"""Conservative backfilling: every waiting job holds a reservation, and no job may be delayed (Talby & Feitelson 1999).

This is :mod:`clustermodel.policies.backfilling.scheduler` with a guarantee for every job
(:class:`~clustermodel.policies.backfilling.guarantees.EveryJob`).
"""

from dataclasses import dataclass
from typing import ClassVar

from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.policies.interface import Run, Setup, dependencies_of
from clustermodel.policies.predictors import Correction, Predictor, correction_of, predictor_of
from clustermodel.policies.queue_order import OWN_ORDERS, QueueOrder, queue_order_of


@dataclass(frozen=True, kw_only=True)
class Conservative:
    """Conservative backfilling with compression in queue order.

    After an early end each waiting job is tried once, in queue order, and moves to its earliest start.  A job that moves leaves
    a gap; a job that was tried before it keeps its place until the next early end, even if it would fit this gap.  So nodes can
    be idle while a job waits that would fit them, with priorities for instance.

    Args:
        queue_order: ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"`` or a callable: the order in which jobs are
            placed, and moved to earlier starts.  Except in order of arrival, priorities and a site's order only
            break ties.
        predictor: of run times, by name or an object (:mod:`clustermodel.policies.predictors`).  A job is placed by the
            prediction at its submission; when a running job outlives its own, all reservations are made again and may be later.
        correction: of a prediction that has expired, by name or a function; ``None`` is as long as the job is late.
    """

    name: ClassVar[str] = "conservative"
    takes_partitions: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    queue_order: str | QueueOrder = "arrival"
    predictor: str | Predictor = "estimate"
    correction: str | Correction | None = None

    def __post_init__(self) -> None:
        queue_order_of(self.name, self.queue_order)
        predictor_of(self.name, self.predictor)
        correction_of(self.name, self.correction)

    @property
    def takes_order(self) -> bool:
        return self.queue_order not in OWN_ORDERS

    @property
    def depends_on(self) -> frozenset[str]:
        return dependencies_of(predictor_of(self.name, self.predictor))

    def start(self, setup: Setup) -> Run:
        return Backfilling(order=self.queue_order, predictor=self.predictor, correction=self.correction).start(setup)


@dataclass(frozen=True, kw_only=True)
class BF(Conservative):
    """Backfilling with reservations for all waiting jobs: the space-sharing policy of Zhang et al. 2003, section 5.3."""

    name: ClassVar[str] = "bf"
