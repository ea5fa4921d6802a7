"""PV-EASY: preemptive venture EASY backfilling (Yuan et al. 2010, section 4).

Here are the policy's parameters; the rule is in :mod:`clustermodel.policies.pv_easy_run`, and over pools in
:mod:`clustermodel.policies.partitioned_pv_easy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clustermodel.plans.make import in_pools
from clustermodel.policies.interface import Setup, dependencies_of
from clustermodel.policies.partitioned_pv_easy import PooledPVEasyRun
from clustermodel.policies.predictors import Correction, Predictor, correction_of, predictor_of
from clustermodel.policies.preemption import DEPENDENCIES
from clustermodel.policies.pv_easy_run import PVEasyRun
from clustermodel.validation import choice, flag


@dataclass(frozen=True, kw_only=True)
class PVEasy:
    """Preemptive venture EASY backfilling (Yuan et al. 2010, section 4).

    Args:
        slp: shadow load preemption.  Without it no job is preempted.
        vb: venture backfilling.  Without it EASY decides which jobs are backfilled; the reservation then considers the whole
            running load.
        predictor: of run times, by name or an object (:mod:`clustermodel.policies.predictors`); the paper's is ``"last"``.
        correction: of a prediction that has expired, by name or a function.  The paper does not say; with ``"second"``,
            slowdowns are twice EASY's on CTC-SP2, where the paper has similar ones (docs/pv_easy).
        mode: what preemption does to a job: ``"kill"`` (the paper's), ``"checkpoint"`` or ``"suspend"``.  A job
            that does not fit into memory beside the blocked job and other suspended jobs is killed, as is one that could not be
            saved before its nodes are reserved for others, or known to be down.
    """

    name: ClassVar[str] = "pv-easy"
    takes_partitions: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    slp: bool = True
    vb: bool = True
    predictor: str | Predictor = "last"
    correction: str | Correction = "estimate"
    mode: str = "kill"

    def __post_init__(self) -> None:
        flag("pv-easy: slp", self.slp)
        flag("pv-easy: vb", self.vb)
        predictor_of("pv-easy", self.predictor)
        correction_of("pv-easy", self.correction)
        choice("pv-easy: mode", self.mode, DEPENDENCIES)

    @property
    def depends_on(self) -> frozenset[str]:
        return dependencies_of(predictor_of("pv-easy", self.predictor)) | DEPENDENCIES[self.mode]

    def start(self, setup: Setup) -> PVEasyRun:
        return PooledPVEasyRun(self, setup) if in_pools(setup) else PVEasyRun(self, setup)
