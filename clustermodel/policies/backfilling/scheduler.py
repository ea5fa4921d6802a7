"""Backfilling, assembled from named parts (Perkovic & Keleher 2000, figure 2).

A scheduling cycle runs whenever a job arrives or completes.  Its phases share one plan: (1) sort the queue; (2) regular
backfilling, with guarantees and the shapes a job can have; (3) speculative backfilling and test runs; (4) start-time widening.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from clustermodel.policies.backfilling.cycle import BackfillingRun
from clustermodel.policies.backfilling.guarantees import EveryJob, Guarantees, NoJob, Relaxed, Selective
from clustermodel.policies.backfilling.moldable import Sizes, StartTimeWidening, sizes_of
from clustermodel.policies.backfilling.speculation import Speculation, TestRuns
from clustermodel.policies.disjoint_partitions import runs_of_partitions
from clustermodel.policies.interface import NOTHING, RANDOM_NUMBERS, Run, Setup, dependencies_of
from clustermodel.policies.predictors import Correction, Lengths, Predictor, correction_of, predictor_of
from clustermodel.policies.queue_order import CRITERIA, OWN_ORDERS, QueueOrder, QueueSorter, require_order
from clustermodel.validation import choice, require

PRIORITY_LEVELS: Final = 3  # "With 3 priorities only" (Perkovic & Keleher 2000, section 5)


@dataclass(frozen=True, kw_only=True)
class Backfilling:
    """Backfilling assembled from parts (Perkovic & Keleher 2000, figure 2).

    Args:
        order: the queue order of the phases: one of the paper's criteria (``"D"``, ``"P"``, ``"R"``, ``"1/L"``,
            ``"P/L"``, ``"R/L"``), ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"``, or a key.
            In the order of ``"shortest"``, ``"narrowest"`` and ``"widest"``, priorities only break ties.
        guarantees: which jobs hold reservations: ``"all"``, ``"none"``, ``"selective"``, ``"relaxed"``, or a user-defined part.
        levels: the number of priority levels of criterion P.
        starvation_weight: the increase of the criterion per second of delay.
        threshold: the expected slowdown that earns a job a reservation, for ``"selective"``.
        relaxation: the share of its expected wait by which the first blocked job may be delayed, for ``"relaxed"``.
        speculation: the ratio of speculated time to estimate, in (0, 1]; ``None`` for no speculation.
        test_runs: whether jobs with long estimates get test runs, or a ``TestRuns(...)``.
        width: the shapes a job can have: ``"asked"``, ``"half"``, ``"quarter"``, ``"greedy"``, a share of the nodes it asked
            for, or a user-defined part.
        widening: whether starting jobs get idle nodes, up to the number they asked for, or the largest multiple of it.
        predictor: of run times, which replace the estimates in the plan, by name or an object
            (:mod:`clustermodel.policies.predictors`); asked once for each job, when it is submitted.
        correction: of expired predictions, by name or a function; ``None`` extends them as long as the job is late.
    """

    order: str | QueueOrder = "D"
    guarantees: str | Guarantees = "all"
    levels: int = PRIORITY_LEVELS
    starvation_weight: float = 0.0
    threshold: float = 2.0
    relaxation: float = 0.5
    speculation: float | None = None
    test_runs: bool | TestRuns = False
    width: str | float | Sizes = "asked"
    widening: bool | float = False
    predictor: str | Predictor = "estimate"
    correction: str | Correction | None = None

    def __post_init__(self) -> None:
        require_order("backfilling", self.order, self.levels, self.starvation_weight)
        known = isinstance(self.test_runs, bool | TestRuns)
        require(known, "backfilling: test_runs", self.test_runs, "it must be True, False or TestRuns(...)")
        correction_of("backfilling", self.correction)
        _ = self.depends_on, self.speculative_phase(), self.last_phase()

    @property
    def name(self) -> str:
        """Order and guarantees, as in Perkovic & Keleher 2000, table 4."""
        order = self.order if isinstance(self.order, str) else "own order"
        if not isinstance(self.guarantees, str):
            return f"{order} {type(self.guarantees).__name__}"
        return order + {"all": "", "none": "-NG"}.get(self.guarantees, f" {self.guarantees}")

    @property
    def depends_on(self) -> frozenset[str]:
        """What its parts depend on."""
        drawn = {RANDOM_NUMBERS} if self.order in CRITERIA and self.order not in ("D", "1/L") else NOTHING  # P or R
        used = (self._guarantees(), predictor_of("backfilling", self.predictor), sizes_of(self.width))
        return frozenset(drawn).union(*map(dependencies_of, used))

    def _guarantees(self) -> Guarantees:
        if isinstance(self.guarantees, Guarantees) and not isinstance(self.guarantees, type):
            return self.guarantees
        kinds: dict[str, Guarantees] = {"all": EveryJob(), "none": NoJob()}
        kinds |= {"selective": Selective(self.threshold), "relaxed": Relaxed(self.relaxation)}
        return kinds[choice("backfilling: guarantees", self.guarantees, kinds, other=", or an object with start")]

    @property
    def takes_order(self) -> bool:
        return self.order not in OWN_ORDERS

    takes_partitions: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True

    def start(self, setup: Setup) -> Run:
        """Start a run."""
        guarantees, lengths = self._guarantees(), Lengths(self, setup, once=True)
        alone = self.speculation is None and self.width == "asked" and not (self.test_runs or self.widening)
        # Random numbers are drawn in the order of all submissions, and whose job is late is noticed by whatever happens.
        tied = lengths.may_overrun or RANDOM_NUMBERS in self.depends_on
        if setup.disjoint and isinstance(guarantees, EveryJob) and alone and not tied:
            return runs_of_partitions(self, setup)
        sorter = QueueSorter(self.order, self.levels, self.starvation_weight, setup.rng)
        return BackfillingRun(
            setup,
            lengths,
            guarantees.start(setup),
            sorter,
            sizes=sizes_of(self.width),
            speculation=self.speculative_phase(),
            widening=self.last_phase(),
        )

    # What a run consists of.

    def speculative_phase(self) -> Speculation | None:
        tests = TestRuns() if self.test_runs is True else self.test_runs or None
        if self.speculation is None and tests is None:
            return None
        return Speculation(1.0 if self.speculation is None else self.speculation, tests)

    def last_phase(self) -> StartTimeWidening | None:
        if self.widening is False:
            return None
        return StartTimeWidening(1.0 if self.widening is True else self.widening)


def _named(criterion: str, guarantees: str) -> Callable[..., Backfilling]:
    """Return a factory of a scheduler of Perkovic & Keleher 2000, table 4, without the parameters that its name fixes."""
    factory = partial(Backfilling, order=criterion, guarantees=guarantees)
    fixed = {"order", "guarantees", "threshold", "relaxation"} | (set() if "P" in criterion else {"levels"})
    signature = inspect.signature(Backfilling)
    left = [parameter for name, parameter in signature.parameters.items() if name not in fixed]
    factory.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    known = f"{'with' if guarantees == 'all' else 'without'} guarantees (Perkovic & Keleher 2000, table 4)."
    factory.__doc__ = f"Backfilling in descending order of {criterion}, {known}"
    return factory


NAMED: Final = {
    f"{criterion}{suffix}": _named(criterion, guarantees)
    for suffix, guarantees in (("", "all"), ("-NG", "none"))
    for criterion in CRITERIA
}
"""Perkovic & Keleher 2000, table 4: schedulers by name.  D is the delay, P a priority, R a random number, L the estimate."""
