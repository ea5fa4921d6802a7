"""Slack-based backfilling: a job may be delayed for others, but by no more than its slack (Talby & Feitelson 1999).

Here are the policy's parameters.  The operations of the paper, and the state of a run, are in
:mod:`clustermodel.policies.slack_run`, the formulas in :mod:`clustermodel.schedule.slack`, slacks in
:mod:`clustermodel.schedule.slack`, the search in :mod:`clustermodel.schedule.slack`.  Sections are those of
the paper's long version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf
from numbers import Real

from clustermodel.errors import SpecificationError
from clustermodel.policies.average_wait import MEASURED, AverageWait
from clustermodel.policies.calibrated import MeasureWaits
from clustermodel.policies.copies import CopiedWithoutRun
from clustermodel.policies.interface import NOTHING, Decision, Setup
from clustermodel.policies.predictors import may_overrun
from clustermodel.policies.quotas import Quotas
from clustermodel.policies.slack_run import AFRESH, COMPRESSIONS, PriorityOf, SlackRules, SlackRun
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule.slack import HEURISTICS, OPTIMAL, Weights
from clustermodel.validation import choice, flag, require_number, share


class Slack(CopiedWithoutRun):
    """Slack-based backfilling: the cheapest schedule that delays no job beyond its slack.

    Args:
        slack_factor: SF; a job of priority 0 may be delayed by SF times the average wait time beyond its first reserved start.
        heuristic: in which order jobs are put back: ``"ast"``, ``"aat"``, ``"du"``, ``"dc"``, ``"dp"``, or ``"optimal"``, which
            tries every order and is for a few waiting jobs only.
        compression: how the waiting jobs from a slot on are moved (docs/slack compares the three).  ``"afresh"``: all are taken
            out and put back at their earliest times.  ``"shift"``: all are delayed by the arriving job's estimate, then moved
            up one after the other, not before the slot; after an early end they are only moved up, as early as they can.
            ``"in-place"``: as ``"afresh"`` for an arriving job, as ``"shift"`` after an early end.
        awt: AWT, the average wait time: ``"conservative"`` (the mean wait under conservative backfilling, measured before
            the run), ``"conservative-by-size"`` (the same for each class of sizes 1, 2, 3-4, 5-8, ...), seconds, or a
            mapping from the largest number of nodes of a class to seconds.
        alpha_u: weight of utilization, in [0, 1].
        alpha_t: weight of time.
        alpha_p: weight of priority.
        alpha_f: weight of fairness.
        user_priority: UP in [0, 1], of all jobs, or a callable that gives it for a job.
        political_priority: PP in [0, 1], likewise.
        quotas: what users and groups may use; jobs of those over quota delay no other job (PP is minus infinity).
        extend_unfinished: give a job that is unfinished at its estimate 10 % more time where that is cheaper than killing it
            (section 4.7); for machines that do not kill at the estimate themselves.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    name = "slack"
    uses = NOTHING

    def __init__(
        self,
        *,
        slack_factor: float = 3.0,
        heuristic: str = "ast",
        compression: str = AFRESH,
        awt: str | float | Mapping[int, float] = MEASURED,
        alpha_u: float = 1.0,
        alpha_t: float = 1.0,
        alpha_p: float = 1.0,
        alpha_f: float = 1.0,
        user_priority: float | PriorityOf = 0.0,
        political_priority: float | PriorityOf = 0.0,
        quotas: Quotas | None = None,
        extend_unfinished: bool = False,
    ) -> None:
        factor = require_number("slack: slack_factor", slack_factor, "a finite number >= 0", lambda x: 0 <= x < inf)
        choice("slack: heuristic", heuristic, HEURISTICS)
        choice("slack: compression", compression, COMPRESSIONS)
        if heuristic == OPTIMAL and compression != AFRESH:
            raise SpecificationError(
                f"slack: compression: {compression!r} is not allowed; it must be {AFRESH!r} where heuristic is optimal"
            )
        if quotas is not None and not isinstance(quotas, Quotas):
            raise SpecificationError(f"slack: quotas: {quotas!r} is not allowed; it must be a Quotas(...) or None")
        self._rules = SlackRules(
            slack_factor=factor,
            rank=HEURISTICS[heuristic],
            compression=compression,
            awt=AverageWait(awt),
            weights=Weights(
                u=share("slack: alpha_u", alpha_u),
                t=share("slack: alpha_t", alpha_t),
                p=share("slack: alpha_p", alpha_p),
                f=share("slack: alpha_f", alpha_f),
            ),
            user_priority=_priority_of("user_priority", user_priority),
            political_priority=_priority_of("political_priority", political_priority),
            quotas=quotas or Quotas(),
            extend_unfinished=flag("slack: extend_unfinished", extend_unfinished),
        )

    def calibrate(self, measure: MeasureWaits) -> None:
        """Measure the average wait time under conservative backfilling, if that is what ``awt`` asks for."""
        self._rules.awt.calibrate(measure)

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run and prepare for one.

        Raises:
            SpecificationError: the average wait time is not known, or not for all job sizes, or unfinished jobs are to be
                extended on a machine that kills them.
        """
        self._rules.awt.check(setup.nodes)
        if self._rules.extend_unfinished and setup.kill_at_estimate:
            raise SpecificationError(
                "slack: extend_unfinished: True is not allowed on a machine with kill_at_estimate=True; "
                "it must be a Machine(..., kill_at_estimate=False)"
            )
        self._run = SlackRun(self._rules, setup.nodes, may_overrun=may_overrun(setup), explain=setup.explain)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Remove jobs that have ended, insert the submitted jobs, start those that are due."""
        return self._run.decide(batch, view)


def _priority_of(field: str, given: object) -> PriorityOf:
    if isinstance(given, Real):
        return partial(_same_for_all, share(f"slack: {field}", given))
    if not callable(given):
        raise SpecificationError(f"slack: {field}: {given!r} is not allowed; it must be a number >= 0 and <= 1, or a callable")
    return lambda job: share(f"slack: {field} of job {job.id}", given(job))


def _same_for_all(priority: float, _job: QueuedJob) -> float:
    """Of a partial: a compiled lambda would keep the number where run keys cannot see it."""
    return priority
