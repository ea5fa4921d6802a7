"""Backfilling, assembled from named parts (Perkovic & Keleher 2000, figure 2).

A scheduling cycle runs whenever a job arrives or completes.  Its phases share one plan:

1. sort the queue (``order``: :mod:`clustermodel.policies.queue_order`),
2. regular backfilling (``guarantees``: :mod:`clustermodel.policies.backfilling.guarantees`), with the shapes a job can have
   (``width``: :mod:`clustermodel.policies.backfilling.moldable`),
3. speculative backfilling and test runs (``speculation``, ``test_runs``: :mod:`clustermodel.policies.backfilling.speculation`),
4. start-time widening (``widening``: :mod:`clustermodel.policies.backfilling.moldable`).

The schedulers of the paper differ in queue order, guarantees, the run times that they expect, and the sizes of jobs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.backfilling.backfilling_run import BackfillingRun
from clustermodel.policies.backfilling.guarantees import EveryJob, Guarantees, NoJob, Relaxed, Selective
from clustermodel.policies.backfilling.moldable import ASKED, Sizes, StartTimeWidening, sizes_of
from clustermodel.policies.backfilling.scheduling_cycle import Scheduler
from clustermodel.policies.backfilling.speculation import Speculation, TestRuns
from clustermodel.policies.copies import CopiedWithoutRun
from clustermodel.policies.corrections import Correction, correction_of
from clustermodel.policies.interface import NOTHING, Decision, Setup, uses_of
from clustermodel.policies.predictors import Lengths, Predictor, predictor_of
from clustermodel.policies.queue_order import CRITERIA, QueueOrder, make_sorter
from clustermodel.policies.view import Batch, View
from clustermodel.schedule.profile import RunningProfile
from clustermodel.schedule.reservations import Plan
from clustermodel.validation import choice

PRIORITY_LEVELS: Final = 3
""""With 3 priorities only" (Perkovic & Keleher 2000, section 5)."""


class Backfilling(CopiedWithoutRun):
    """Backfilling assembled from parts (Perkovic & Keleher 2000, figure 2).

    Args:
        order: in which the phases go through the queue: one of the paper's criteria (``"D"``, ``"P"``, ``"R"``, ``"1/L"``,
            ``"P/L"``, ``"R/L"``), ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"``, or a key.
        guarantees: who holds a reservation: ``"all"``, ``"none"``, ``"selective"``, ``"relaxed"``, or a part of your own.
        levels: how many priorities P has.
        starvation_weight: what one second of delay adds to the criterion.
        threshold: the expected slowdown that earns a job a reservation, for ``"selective"``.
        relaxation: the share of its expected wait by which the first blocked job may be delayed, for ``"relaxed"``.
        speculation: the ratio of speculated time to estimate, in (0, 1]; ``None`` for no speculation.
        test_runs: whether jobs with long estimates get test runs, or a ``TestRuns(...)``.
        width: the shapes a job can have: ``"asked"``, ``"half"``, ``"quarter"``, ``"greedy"``, a share of the nodes it asked
            for, or a part of your own.
        widening: whether starting jobs get idle nodes, up to the number they asked for, or up to which multiple of it.
        predictor: of run times (:mod:`clustermodel.policies.predictors`), which replace the estimates in the plan; asked once
            for each job, when it is submitted.
        correction: of a prediction that has expired, by name or a function (:mod:`clustermodel.policies.corrections`); ``None``
            is as long as the job is late.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        order: str | QueueOrder = "D",
        guarantees: str | Guarantees = "all",
        levels: int = PRIORITY_LEVELS,
        starvation_weight: float = 0.0,
        threshold: float = 2.0,
        relaxation: float = 0.5,
        speculation: float | None = None,
        test_runs: bool | TestRuns = False,
        width: str | float | Sizes = "asked",
        widening: bool | float = False,
        predictor: str | Predictor = "estimate",
        correction: str | Correction | None = None,
    ) -> None:
        self.name = _name(order, guarantees)
        self._sorter = make_sorter("backfilling", order, levels=levels, starvation_weight=starvation_weight)
        self._guarantees = _guarantees(guarantees, threshold, relaxation)
        tests = TestRuns() if test_runs is True else None if test_runs is False else test_runs
        if tests is not None and not isinstance(tests, TestRuns):
            raise SpecificationError(
                f"backfilling: test_runs: {tests!r} is not allowed; it must be True, False or TestRuns(...)"
            )
        self._speculation = None
        if speculation is not None or tests is not None:
            self._speculation = Speculation(1.0 if speculation is None else speculation, tests)
        self._predictor = predictor_of("backfilling", predictor)
        self._correction = correction_of("backfilling", correction)
        self._sizes = sizes_of(width)
        self._widening = None if widening is False else StartTimeWidening(1.0 if widening is True else widening)

    @property
    def uses(self) -> frozenset[str]:
        """What its schedules depend on: what its parts use."""
        parts = (self._sorter, self._guarantees, self._predictor, self._sizes)
        return frozenset().union(*(NOTHING if part is None else uses_of(part) for part in parts))

    def begin(self, setup: Setup) -> None:
        """Prepare for a run."""
        lengths = Lengths(self._predictor, setup, self._correction, once=True)
        scheduler = Scheduler(
            plan=self.empty_plan(setup.nodes, may_overrun=lengths.may_overrun),
            lengths=lengths,
            shapes={},
            sorter=self._sorter,
            speculates=self._speculation is not None,
            molds=self._sizes is not ASKED,
            widens=self._widening is not None,
            explain=setup.explain,
        )
        self._sorter.begin(setup.rng)
        self._guarantees.begin(setup)
        if self._speculation is not None:
            self._speculation.begin()
        if self._widening is not None:
            self._widening.begin(setup)
        self._run = BackfillingRun(scheduler, self._guarantees, self._speculation, self._widening, self._sizes, setup)

    def empty_plan(self, nodes: int, *, may_overrun: bool) -> Plan:
        """Return the plan that a run begins with.

        Args:
            nodes: size of the machine.
            may_overrun: whether jobs may run longer than expected.
        """
        return Plan(RunningProfile(nodes, may_overrun=may_overrun))

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run one scheduling cycle: the phases, one after the other."""
        return self._run.decide(batch, view)


def _name(order: str | QueueOrder, guarantees: str | Guarantees) -> str:
    shown = order if isinstance(order, str) else "own order"
    if guarantees in ("all", "none"):
        return shown + ("-NG" if guarantees == "none" else "")
    return f"{shown} {guarantees if isinstance(guarantees, str) else type(guarantees).__name__}"


def _guarantees(guarantees: str | Guarantees, threshold: float, relaxation: float) -> Guarantees:
    parts: dict[str, Guarantees] = {
        "all": EveryJob(),
        "none": NoJob(),
        "selective": Selective(threshold),
        "relaxed": Relaxed(relaxation),
    }
    if isinstance(guarantees, Guarantees) and not isinstance(guarantees, type):
        return guarantees
    return parts[choice("backfilling: guarantees", guarantees, parts, other=", or an object with begin and schedule")]


def _named(criterion: str, guarantees: str) -> Callable[..., Backfilling]:
    """Return a factory of a scheduler of Perkovic & Keleher 2000, table 4, without the parameters that its name fixes."""
    factory = partial(Backfilling, order=criterion, guarantees=guarantees)
    fixed = {"order", "guarantees", "threshold", "relaxation"} | (set() if "P" in criterion else {"levels"})
    signature = inspect.signature(Backfilling)
    left = [parameter for name, parameter in signature.parameters.items() if name not in fixed]
    factory.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    with_or_without = "with" if guarantees == "all" else "without"
    factory.__doc__ = (
        f"Backfilling in descending order of {criterion}, {with_or_without} guarantees (Perkovic & Keleher 2000, table 4)."
    )
    return factory


NAMED: Final = {
    f"{criterion}{suffix}": _named(criterion, guarantees)
    for suffix, guarantees in (("", "all"), ("-NG", "none"))
    for criterion in CRITERIA
}
"""Perkovic & Keleher 2000, table 4: schedulers by name.  D is the delay, P a priority, R a random number, L the estimate."""
