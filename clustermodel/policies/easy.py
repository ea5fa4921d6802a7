"""EASY backfilling: a job may jump ahead if it does not delay the first job in the queue (Talby & Feitelson 1999, section 3.1).

Here are the policy's parameters; the rule is in :mod:`clustermodel.policies.backfilling.head`.  With a predictor, predictions
replace the users' estimates (Yuan et al. 2010, section 3.2).  EASY-Last is ``easy:predictor=last``; EASY++ of Tsafrir et al.
2007 is ``easy:predictor=last-two,correction=tsafrir,backfill_order=shortest``.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from clustermodel.plans.make import in_pools
from clustermodel.policies import predictors
from clustermodel.policies.backfilling.cycle import BackfillingRun
from clustermodel.policies.backfilling.head import BackfillOrder, HeadRun
from clustermodel.policies.disjoint_partitions import runs_of_partitions
from clustermodel.policies.easy_run import EasyRun
from clustermodel.policies.interface import Run, Setup, dependencies_of
from clustermodel.policies.predictors import Correction, Lengths, Predictor, correction_of, predictor_of
from clustermodel.validation import choice, require_whole

BACKFILL_ORDERS: Final = ("arrival", "shortest")
"""Named orders: queue order, and by expected run time, which is the SJF-EASY of Yuan et al. 2010, section 5.2.2."""
RESERVATIONS: Final = ("renewed", "kept")
"""Whether the shadow time is recomputed whenever running jobs end early, or kept as it was for the first blocked job."""


@dataclass(frozen=True, kw_only=True)
class Easy:
    """EASY backfilling.

    Args:
        backfill_order: in which order candidates are tried: ``"arrival"``, ``"shortest"`` (as predicted) or a callable.
        reserve_depth: how many blocked jobs are protected by a reservation; 1 is EASY.
        predictor: of run times, by name or an object (:mod:`clustermodel.policies.predictors`).
        correction: of a prediction that has expired, by name or a function; ``None`` is a second from now, and with several
            reservations as long as the job is late.
        reservation: of a blocked job: ``"renewed"`` moves to an earlier shadow time when running jobs end early; ``"kept"``
            stays where it was made, unless the job can start now or jobs that are late force it to a later time (a reading of
            "its reservation guaranteed by EASY", Yuan et al. 2010, section 3.2).
    """

    name: ClassVar[str] = "easy"
    takes_partitions: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    backfill_order: str | BackfillOrder = "arrival"
    reserve_depth: int = 1
    predictor: str | Predictor = "estimate"
    correction: str | Correction | None = None
    reservation: str = "renewed"

    def __post_init__(self) -> None:
        predictor_of("easy", self.predictor)
        correction_of("easy", self.correction)
        if not callable(self.backfill_order):
            choice("easy: backfill_order", self.backfill_order, BACKFILL_ORDERS, other=", or a callable")
        choice("easy: reservation", self.reservation, RESERVATIONS)
        require_whole("easy: reserve_depth", self.reserve_depth, at_least=1)

    @property
    def depends_on(self) -> frozenset[str]:
        return dependencies_of(predictor_of("easy", self.predictor))

    def start(self, setup: Setup) -> Run:
        beyond = predictors.a_second_more if self.reserve_depth == 1 else predictors.as_late_again
        lengths = Lengths(self, setup, beyond)
        order = self.backfill_order if callable(self.backfill_order) else None
        if self.backfill_order == "shortest":
            order = lambda job, _: (lengths.of(job), job.queue_order)  # noqa: E731
        if setup.disjoint and not lengths.may_overrun:  # else whatever happens lets EASY notice whose job is late
            return runs_of_partitions(self, setup)
        plain = self.reserve_depth == 1 and self.reservation == "renewed" and order is None and not lengths.may_overrun
        if plain and not (setup.explain or setup.one_by_one or in_pools(setup)):
            return EasyRun()
        head = HeadRun(self.reserve_depth, order, kept=self.reservation == "kept")
        return BackfillingRun(setup, lengths, head)
