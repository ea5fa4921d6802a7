"""Conservative backfilling (001, section 3.2): every waiting job holds a reservation, and nobody may be delayed.

A job is placed, when it is submitted, at the earliest time that fits the plan of running jobs and reservations; that
start is a guarantee.  When a job ends before its estimate, each waiting job in queue order is taken out of the plan and
put back at its earliest time, which is never later than the one it had (*compression*).

That is backfilling (:mod:`clustermodel.policies.backfilling.scheduler`) with a guarantee for every job
(:class:`~clustermodel.policies.backfilling.guarantees.EveryJob`, where the steps are), and nothing else.
"""

from __future__ import annotations

from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.policies.predictors import Predictor, predictor_of
from clustermodel.policies.queue_order import QueueOrder, queue_order_of


class Conservative(Backfilling):
    """Conservative backfilling with compression in queue order.

    Args:
        queue_order: ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"`` or a callable: the order in which jobs are
            placed, and moved up when room is made.
        predictor: of run times, which take the place of estimates: ``"estimate"``, ``"last"``, ``"last-two"``, ``"perfect"``,
            ``"virtual:X"`` or an object (:mod:`clustermodel.policies.predictors`).  A job is placed by the prediction
            of when it was submitted; when a running job outlives its own, all reservations are made anew, and may be later.

    Raises:
        SpecificationError: ``queue_order`` is neither a name nor a callable, or ``predictor`` no predictor.
    """

    def __init__(self, *, queue_order: str | QueueOrder = "arrival", predictor: str | Predictor = "estimate") -> None:
        name = type(self).__name__.lower()
        queue_order_of(name, queue_order)  # fewer orders than backfilling has
        super().__init__(order=queue_order, guarantees="all", predictor=predictor_of(name, predictor))
        self.name = name


class BF(Conservative):
    """Backfilling with reservations for all waiting jobs, the space-sharing policy that 002 (section 5.3) compares with."""
