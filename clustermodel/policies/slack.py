"""Slack-based backfilling: a job may be delayed for others, but by no more than its slack (Talby & Feitelson 1999).

Here are the policy's parameters.  The operations of the paper, and the state of a run, are in
:mod:`clustermodel.policies.slack_run`, the formulas in :mod:`clustermodel.schedule.slack_prices`, slacks in
:mod:`clustermodel.schedule.slack_prices`, the search in :mod:`clustermodel.schedule.slack_prices`.  Sections are those of
the paper's long version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import ClassVar, Final

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.interface import MEASURED, NOTHING, MeasureWaits, Setup, Waits
from clustermodel.policies.predictors import may_overrun
from clustermodel.policies.quotas import Quotas
from clustermodel.policies.slack_run import AFRESH, COMPRESSIONS, PriorityOf, SlackRules, SlackRun
from clustermodel.schedule.slack_prices import HEURISTICS, OPTIMAL, Weights
from clustermodel.ticks import to_seconds
from clustermodel.validation import choice, flag, require_number, require_seconds, require_whole, share

MEASURED_BY_SIZE: Final = "conservative-by-size"

Classes = tuple[tuple[float, float], ...]
"""(largest number of nodes, average wait time in seconds), ascending."""


class AverageWait:
    """The average wait time, by classes of job sizes.

    Args:
        asked: ``"conservative"``, ``"conservative-by-size"``, seconds, or a mapping from the largest number of nodes of a class
            to seconds, or such pairs.

    Raises:
        SpecificationError: ``asked`` is none of these.
    """

    def __init__(self, asked: object) -> None:
        self._asked = asked
        self.classes: Classes = _given(asked)
        """Empty until it has been measured."""

    def check(self, nodes: int) -> None:
        """Make sure that the average is known for all job sizes of a machine.

        Raises:
            SpecificationError: it has not been measured, or ``nodes`` is above the largest class.
        """
        if not self.classes:
            raise SpecificationError(
                f"slack: awt: {self._asked!r} has not been measured; run the policy in a Scenario, or give a number of seconds"
            )
        if nodes > self.classes[-1][0]:
            raise SpecificationError(
                f"slack: awt: {self.classes[-1][0]} as the largest size is not allowed; "
                f"it must be >= {nodes}, the machine's nodes"
            )

    def of(self, nodes: int) -> float:
        """Return the average wait time of jobs of this size, seconds."""
        return next(seconds for largest, seconds in self.classes if nodes <= largest)


def measured(asked: object, measure: MeasureWaits) -> Classes | None:
    """Return the average wait time under conservative backfilling, if that is asked for."""
    if asked == MEASURED:
        return ((inf, _mean_s(measure("conservative").wait)),)
    return _by_size(measure("conservative")) if asked == MEASURED_BY_SIZE else None


def _given(awt: object) -> Classes:
    """Return the classes that ``awt`` gives, none if they have to be measured."""
    if isinstance(awt, str):
        if awt in (MEASURED, MEASURED_BY_SIZE):
            return ()
        raise SpecificationError(
            f"slack: awt: {awt!r} is not allowed{did_you_mean(awt, (MEASURED, MEASURED_BY_SIZE))}; "
            f"it must be {MEASURED!r}, {MEASURED_BY_SIZE!r}, a number of seconds, or a mapping from nodes to seconds"
        )
    if isinstance(awt, tuple):  # classes of a mapping, or measured ones
        return awt
    if isinstance(awt, Mapping):
        if not awt:
            raise SpecificationError("slack: awt: an empty mapping is not allowed; it must have one class of sizes at least")
        classes = (
            (require_whole("slack: awt: largest size", largest, at_least=1), require_seconds(f"slack: awt[{largest}]", seconds))
            for largest, seconds in awt.items()
        )
        return tuple(sorted(classes))
    return ((inf, require_seconds("slack: awt", awt)),)


def _mean_s(waits: Sequence[int]) -> float:
    return to_seconds(sum(waits)) / len(waits) if waits else 0.0


def _by_size(waits: Waits) -> Classes:
    """Return the mean wait of the sizes 1, 2, 3-4, 5-8, ...; larger sizes and empty classes get the mean of all jobs."""
    largest = max(waits.nodes, default=1)
    classes: dict[int, list[int]] = {2**k: [] for k in range((largest - 1).bit_length() + 1)}
    for nodes, wait in zip(waits.nodes, waits.wait, strict=True):
        classes[2 ** (nodes - 1).bit_length()].append(wait)
    overall = _mean_s(waits.wait)
    return (*((bound, _mean_s(of_class) if of_class else overall) for bound, of_class in classes.items()), (inf, overall))


@dataclass(frozen=True, kw_only=True)
class Slack:
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

    name: ClassVar[str] = "slack"
    depends_on: ClassVar[frozenset[str]] = NOTHING
    slack_factor: float = 3.0
    heuristic: str = "ast"
    compression: str = AFRESH
    awt: str | float | Mapping[int, float] | Classes = MEASURED
    alpha_u: float = 1.0
    alpha_t: float = 1.0
    alpha_p: float = 1.0
    alpha_f: float = 1.0
    user_priority: float | PriorityOf = 0.0
    political_priority: float | PriorityOf = 0.0
    quotas: Quotas | None = None
    extend_unfinished: bool = False

    def __post_init__(self) -> None:
        require_number("slack: slack_factor", self.slack_factor, "a finite number >= 0", lambda x: 0 <= x < inf)
        choice("slack: heuristic", self.heuristic, HEURISTICS)
        choice("slack: compression", self.compression, COMPRESSIONS)
        if self.heuristic == OPTIMAL and self.compression != AFRESH:
            raise SpecificationError(
                f"slack: compression: {self.compression!r} is not allowed; it must be {AFRESH!r} where heuristic is optimal"
            )
        if self.quotas is not None and not isinstance(self.quotas, Quotas):
            raise SpecificationError(f"slack: quotas: {self.quotas!r} is not allowed; it must be a Quotas(...) or None")
        if isinstance(self.awt, Mapping):
            object.__setattr__(self, "awt", AverageWait(self.awt).classes)
        self._rules()

    def _rules(self) -> SlackRules:
        return SlackRules(
            slack_factor=float(self.slack_factor),
            rank=HEURISTICS[self.heuristic],
            compression=self.compression,
            awt_s=AverageWait(self.awt).of,
            weights=Weights(
                u=share("slack: alpha_u", self.alpha_u),
                t=share("slack: alpha_t", self.alpha_t),
                p=share("slack: alpha_p", self.alpha_p),
                f=share("slack: alpha_f", self.alpha_f),
            ),
            user_priority=_priority_of("user_priority", self.user_priority),
            political_priority=_priority_of("political_priority", self.political_priority),
            quotas=self.quotas or Quotas(),
            extend_unfinished=flag("slack: extend_unfinished", self.extend_unfinished),
        )

    def calibrated(self, measure: MeasureWaits) -> Slack:
        """Return the policy with the average wait time under conservative backfilling, if that is what ``awt`` asks for."""
        classes = measured(self.awt, measure)
        return self if classes is None else replace(self, awt=classes)

    def start(self, setup: Setup) -> SlackRun:
        """Start a run.

        Raises:
            SpecificationError: the average wait time is not known, or not for all job sizes, or unfinished jobs are to be
                extended on a machine that kills them.
        """
        AverageWait(self.awt).check(setup.nodes)
        if self.extend_unfinished and setup.kill_at_estimate:
            raise SpecificationError(
                "slack: extend_unfinished: True is not allowed on a machine with kill_at_estimate=True; "
                "it must be a Machine(..., kill_at_estimate=False)"
            )
        return SlackRun(self._rules(), setup.nodes, may_overrun=may_overrun(setup), explain=setup.explain)


def _priority_of(field: str, given: object) -> PriorityOf:
    if isinstance(given, Real):
        priority = share(f"slack: {field}", given)
        return lambda _job: priority
    if not callable(given):
        raise SpecificationError(f"slack: {field}: {given!r} is not allowed; it must be a number >= 0 and <= 1, or a callable")
    return lambda job: share(f"slack: {field} of job {job.id}", given(job))
