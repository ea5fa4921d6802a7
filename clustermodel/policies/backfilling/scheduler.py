"""Backfilling, assembled from named parts (003_96c4631de6a07f8a.txt, figure 2).

One plan, and phases that run one after the other whenever a job comes or ends:

1. sort the queue (``order``: :mod:`clustermodel.policies.queue_order`),
2. regular backfilling (``guarantees``: :mod:`clustermodel.policies.backfilling.guarantees`), with the shapes a job can have
   (``width``: :mod:`clustermodel.policies.backfilling.moldable`),
3. speculative backfilling and test runs (``speculation``, ``test_runs``: :mod:`clustermodel.policies.backfilling.speculation`),
4. start-time widening (``widening``: :mod:`clustermodel.policies.backfilling.moldable`).

What the schedulers of 003 differ in is which order, which guarantee, which run time they believe and which width they choose.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Final

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.backfilling.guarantees import EveryJob, Guarantees, NoJob, Relaxed, Selective
from clustermodel.policies.backfilling.moldable import StartTimeWidening, Widths, shapes_of, widths_of
from clustermodel.policies.backfilling.scheduling_cycle import Pass
from clustermodel.policies.backfilling.speculation import Speculation, TestRuns
from clustermodel.policies.interface import Batch, Decision, QueuedJob, Setup, View, WakeAt
from clustermodel.policies.predictors import Predictor, UserEstimate, learn, predictor_of
from clustermodel.policies.queue_order import CRITERIA, QueueOrder, make_sorter
from clustermodel.schedule.plan import Plan
from clustermodel.schedule.reservation import Shapes

PRIORITY_LEVELS: Final = 3
"""003, section 5: "with 3 priorities only"."""


class Backfilling:
    """Backfilling assembled from parts (003, figure 2).

    Args:
        order: in which the phases go through the queue: one of 003's criteria (``"D"``, ``"P"``, ``"R"``, ``"1/L"``, ``"P/L"``,
            ``"R/L"``), ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"``, or a key.
        guarantees: who holds a reservation: ``"all"``, ``"none"``, ``"selective"``, ``"relaxed"``, or a part of your own.
        levels: how many priorities P has.
        starvation_weight: what one second of delay adds to the criterion.
        threshold: the expected slowdown that earns a job a reservation, for ``"selective"``.
        relaxation: by how much of its expected wait the first blocked job may be delayed, for ``"relaxed"``.
        speculation: the ratio of speculated time to estimate, in (0, 1]; ``None`` for no speculation.
        test_runs: whether jobs estimated to be long get test runs, or which ones get which.
        width: the shapes a job can have: ``"asked"``, ``"half"``, ``"quarter"``, ``"greedy"``, a share of the nodes it asked
            for, or a part of your own.
        widening: whether starting jobs are widened up to the nodes they asked for, or up to which multiple of them.
        predictor: of run times (:mod:`clustermodel.policies.predictors`), which take the place of estimates in the plan; asked
            once for each job, when it is submitted.

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
        width: str | float | Widths = "asked",
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
        self._widths = widths_of(width)
        self._widening = None if widening is False else StartTimeWidening(1.0 if widening is True else widening)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._setup = setup
        self._believes_users = type(self._predictor) is UserEstimate
        self._may_overrun = not (setup.kill_at_estimate and self._believes_users)
        self._plan = Plan(setup.nodes, may_overrun=self._may_overrun)
        self._predictor.begin(setup)
        self._predicted: dict[int, int] = {}  # job id -> how long it was expected to run when it was submitted
        self._shapes: dict[int, Shapes] = {}  # of the jobs in the system
        self._reshapes = False  # whether one of them can have several
        self._sorter.begin(setup.rng)
        self._guarantees.begin(setup)
        if self._speculation is not None:
            self._speculation.begin()
        if self._widening is not None:
            self._widening.begin(setup)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Run the phases."""
        plan, now = self._plan, view.now
        if not self._believes_users:
            learn(self._predictor, batch, view)
        room_made = self._forget(batch, view)
        if batch.submitted:
            self._note(batch)
        current = Pass(
            batch,
            view,
            plan,
            room_made=room_made,
            speculates=self._speculation is not None,
            widens=self._widening is not None,
            reshapes=self._reshapes,
            sorter=self._sorter,
            shapes=self._shapes,
            length_of=self._length_of,
            guaranteed=not self._may_overrun,
            explain=self._setup.explain,
        )
        if late := plan.overrunning(now):
            self._replan(late, current)
        self._guarantees.schedule(current)
        if self._speculation is not None:
            self._speculation.schedule(current)
        if self._widening is not None and current.dispatched:
            self._widening.schedule(current)
        decisions = current.decisions()
        alarm = plan.new_alarm()
        if alarm is None and self._may_overrun:
            # A running job that should make the room may outlive its expected end: what to do then is decided when it does.
            alarm = current.held_next
        if alarm is not None:
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _note(self, batch: Batch) -> None:
        self._sorter.submitted(batch.submitted)
        for job in batch.submitted:
            if not self._believes_users:
                self._predicted[job.id] = self._predictor.predict(job)
            self._shapes[job.id] = shapes = shapes_of(job, self._length_of(job), self._widths, self._setup)
            self._reshapes = self._reshapes or len(shapes) > 1

    def _length_of(self, job: QueuedJob) -> int:
        return job.estimate if self._believes_users else self._predicted[job.id]

    def _forget(self, batch: Batch, view: View) -> bool:
        """Take out what has ended; tell whether room was made."""
        plan = self._plan
        room_made = plan.catch_up(batch.ended, view.now)
        for gang in batch.ended:
            job = gang.job
            if job.id in view.waiting:
                continue  # stopped at its speculated time
            del self._shapes[job.id]
            self._predicted.pop(job.id, None)
            self._sorter.left(job)
            if self._speculation is not None:
                self._speculation.left(job)
                if job.id in plan.reserved:  # it has ended in a speculative run, and its reservation is not needed any more
                    plan.drop(job)
                    room_made = True
        return room_made

    def _replan(self, late: list[int], current: Pass) -> None:
        """Place all jobs afresh because running ones have outlived their estimates; guarantees may be broken by it."""
        plan, waiting = self._plan, current.view.waiting
        jobs = [job for job in current.queue if job.id in plan.reserved]
        for job_id in [job_id for job_id in plan.reserved if job_id not in waiting]:
            plan.drop(current.view.running[job_id].job)
        for job in jobs:
            plan.drop(job)
        plan.extend(late, current.now)
        for job in jobs:
            plan.keep(job, plan.earliest_room(self._shapes[job.id]))
        current.room_made = False


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
    if isinstance(guarantees, str) and guarantees in parts:
        return parts[guarantees]
    if isinstance(guarantees, Guarantees) and not isinstance(guarantees, type):
        return guarantees
    raise SpecificationError(
        f"backfilling: guarantees: {guarantees!r} is not allowed{did_you_mean(str(guarantees), parts)}; "
        f"it must be one of {', '.join(parts)}, or an object with begin and schedule"
    )


def _named(criterion: str, guarantees: str) -> Callable[..., Backfilling]:
    """Return a scheduler of 003, table 4, without the parameters that its name settles."""
    factory = partial(Backfilling, order=criterion, guarantees=guarantees)
    settled = {"order", "guarantees", "threshold", "relaxation"} | (set() if "P" in criterion else {"levels"})
    signature = inspect.signature(Backfilling)
    left = [parameter for name, parameter in signature.parameters.items() if name not in settled]
    factory.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    with_or_without = "with" if guarantees == "all" else "without"
    factory.__doc__ = f"Backfilling in descending order of {criterion}, {with_or_without} guarantees (003, table 4)."
    return factory


NAMED: Final = {
    f"{criterion}{suffix}": _named(criterion, guarantees)
    for suffix, guarantees in (("", "all"), ("-NG", "none"))
    for criterion in CRITERIA
}
"""The schedulers of 003, table 4, under its names: D is the delay, P a priority, R a random number, L the estimate."""
