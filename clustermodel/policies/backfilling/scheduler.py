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
from clustermodel.policies.backfilling.guarantees import EveryJob, Guarantees, NoJob, Relaxed, Selective
from clustermodel.policies.backfilling.moldable import ASKED, Sizes, StartTimeWidening, shapes_of, sizes_of
from clustermodel.policies.backfilling.scheduling_cycle import Scheduler, SchedulingCycle
from clustermodel.policies.backfilling.speculation import Speculation, TestRuns
from clustermodel.policies.interface import NOTHING, Decision, Setup, WakeAt, uses_of
from clustermodel.policies.predictors import Lengths, Predictor, predictor_of
from clustermodel.policies.queue_order import CRITERIA, QueueOrder, make_sorter
from clustermodel.policies.view import Batch, View
from clustermodel.schedule.plan import Plan
from clustermodel.schedule.running_profile import RunningProfile
from clustermodel.validation import choice

PRIORITY_LEVELS: Final = 3
""""With 3 priorities only" (Perkovic & Keleher 2000, section 5)."""


class Backfilling:
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
        self._sizes = sizes_of(width)
        self._widening = None if widening is False else StartTimeWidening(1.0 if widening is True else widening)

    @property
    def uses(self) -> frozenset[str]:
        """What its schedules depend on: what its parts use."""
        parts = (self._sorter, self._guarantees, self._predictor, self._sizes)
        return frozenset().union(*(NOTHING if part is None else uses_of(part) for part in parts))

    def begin(self, setup: Setup) -> None:
        """Prepare for a run."""
        self._setup = setup
        lengths = Lengths(self._predictor, setup, once=True)
        self._scheduler = Scheduler(
            plan=Plan(RunningProfile(setup.nodes, may_overrun=lengths.may_overrun)),
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

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run one scheduling cycle: the phases, one after the other."""
        plan, lengths, shapes, *_ = self._scheduler
        if not lengths.are_estimates:
            lengths.observe(batch, view)
        nodes_freed = self._forget(batch, view)
        if batch.submitted:
            self._sorter.submitted(batch.submitted)
        for job in batch.submitted:
            shapes[job.id] = shapes_of(job, lengths.of(job), self._sizes, self._setup)
        for job in batch.requeued:
            if (nodes := view.saved_on(job)) is not None:  # it goes on, after the failure of a node, on as many nodes as before
                run_time = self._setup.speedup.time_on(lengths.predicted(job), job.nodes, nodes)
                shapes[job.id] = ((nodes, self._setup.holding(job, run_time)),)
        current = SchedulingCycle(self._scheduler, batch, view, nodes_freed=nodes_freed)
        late = plan.profile.overrunning(view.now)
        if late or batch.failed:
            self._replan(late, current)
        self._guarantees.schedule(current)
        if self._speculation is not None:
            self._speculation.schedule(current)
        if self._widening is not None and current.dispatched:
            self._widening.schedule(current)
        decisions = current.decisions()
        alarm = plan.new_alarm()
        if alarm is None and lengths.may_overrun:
            # A running job may outlive the end at which its nodes were to be free; the policy decides again at that time.
            alarm = current.next_held_start
        if alarm is not None:
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _forget(self, batch: Batch, view: View) -> bool:
        """Take out the jobs that have completed or stopped; return whether reserved nodes were freed."""
        plan, shapes, waiting = self._scheduler.plan, self._scheduler.shapes, view.waiting
        nodes_freed = plan.profile.catch_up(batch.ended, view.now, failed=batch.failed, repaired=batch.repaired)
        for gang in batch.ended:
            job = gang.job
            if job.id in waiting:
                continue  # stopped at its speculated time, or by the failure of a node
            del shapes[job.id]
            self._sorter.left(job)
            if self._speculation is not None:
                self._speculation.left(job)
                if job.id in plan.reserved:  # it completed in a speculative run attempt and no longer needs its reservation
                    plan.drop(job)
                    nodes_freed = True
        return nodes_freed

    def _replan(self, late: list[int], current: SchedulingCycle) -> None:
        """Place all jobs again because running jobs have outlived their expected ends, or nodes have failed; guaranteed starts
        may be missed.
        """
        plan, waiting = current.plan, current.view.waiting
        jobs = [job for job in current.queue if job.id in plan.reserved]
        for job_id in [job_id for job_id in plan.reserved if job_id not in waiting]:
            plan.drop(current.view.running[job_id].job)
        for job in jobs:
            plan.drop(job)
        plan.profile.extend(late, current.now)
        for job in () if current.batch.failed else jobs:  # after a failure all are placed again, with the jobs that it stopped
            plan.keep(job, current.earliest(job))
        current.nodes_freed = False


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
