"""Slack-based backfilling: a job may be delayed for others, but by no more than its slack (Talby & Feitelson 1999).

Here are the policy's parameters; its operations are in :mod:`clustermodel.policies.slack_run`, formulas in
:mod:`clustermodel.plans.slack_prices`, and the search for the cheapest schedule in :mod:`clustermodel.plans.slack_search`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from numbers import Integral, Real
from typing import ClassVar, Final

from clustermodel.errors import SpecificationError, refused
from clustermodel.plans.make import idle_now, in_pools, nodes_of, plan_of, pools_of
from clustermodel.plans.slack_prices import HEURISTICS, OPTIMAL, Weights
from clustermodel.policies.interface import MEASURED, NOTHING, MeasureWaits, Setup, Waits
from clustermodel.policies.predictors import holds_longer, may_overrun
from clustermodel.policies.slack_run import AFRESH, COMPRESSIONS, Classes, Limits, PriorityOf, SlackRun
from clustermodel.ticks import to_seconds
from clustermodel.validation import choice, flag, require, require_number, require_seconds, require_whole, share

MEASURED_BY_SIZE: Final = "conservative-by-size"


def _classes(awt: object) -> Classes:
    """Return the classes that ``awt`` gives, none if they have to be measured; refuse anything else."""
    if isinstance(awt, tuple):  # classes of a mapping, or measured ones
        return awt
    if isinstance(awt, str):
        other = ", a number of seconds, or a mapping from nodes to seconds"
        choice("slack: awt", awt, (MEASURED, MEASURED_BY_SIZE), other=other)
        return ()
    if not isinstance(awt, Mapping):
        return ((inf, require_seconds("slack: awt", awt)),)
    require(awt, "slack: awt", awt, "it must have one class of sizes at least")
    sizes = [require_whole("slack: awt: largest size", largest, at_least=1) for largest in awt]
    return tuple(sorted((size, require_seconds(f"slack: awt[{size}]", awt[size])) for size in sizes))


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
class Quotas:
    """Quotas of users and groups for a run, node-seconds.

    A job over quota has infinite slack: it may be delayed for every other job.  The papers (Talby & Feitelson 1999: short
    version, section 2.2; long version, section 2.3) assume an accounting system that knows who is over quota.
    """

    user: Limits = None
    """User number -> quota, or one quota for each user; ``None`` is no limit.  Users who are not listed have no limit; unknown
    users (-1) have a limit only if they are listed."""
    group: Limits = None
    """The same for groups."""

    def __hash__(self) -> int:
        of_fields = (limits.items() if isinstance(limits, Mapping) else [limits] for limits in (self.user, self.group))
        return hash(tuple(map(frozenset, of_fields)))

    def __post_init__(self) -> None:
        for field, limits in (("Quotas.user", self.user), ("Quotas.group", self.group)):
            quotas: dict[str, object] = {} if limits is None else {field: limits}
            if isinstance(limits, Mapping):
                for number in list[object](limits):
                    whole = isinstance(number, Integral) and not isinstance(number, bool)
                    require(whole, f"{field}: key", number, "it must be a whole number")
                quotas = {f"{field}[{number}]": quota for number, quota in limits.items()}
            for name, quota in quotas.items():
                require_number(name, quota, "a finite number of node-seconds >= 0", lambda number: 0 <= number < inf)


@dataclass(frozen=True, kw_only=True)
class Slack:
    """Slack-based backfilling: the cheapest schedule that delays no job beyond its slack.

    Args:
        slack_factor: SF; a job of priority 0 may be delayed by SF times the average wait time beyond its first reserved start.
        heuristic: the order in which jobs are put back: ``"ast"``, ``"aat"``, ``"du"``, ``"dc"``, ``"dp"``, or ``"optimal"``
            (tries every order; for a few waiting jobs only).
        compression: how waiting jobs move up when a slot opens (docs/slack compares the three).  ``"afresh"``: all are taken
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
        quotas: of users and groups; jobs of those over quota delay no other job (PP is minus infinity).
        extend_unfinished: give a job that is unfinished at its estimate 10 % more time where that is cheaper than killing it
            (section 4.7); for machines that do not kill at the estimate themselves.
    """

    name: ClassVar[str] = "slack"
    depends_on: ClassVar[frozenset[str]] = NOTHING
    takes_partitions: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
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
        fits = self.heuristic != OPTIMAL or self.compression == AFRESH
        require(fits, "slack: compression", self.compression, f"it must be {AFRESH!r} where heuristic is optimal")
        known = self.quotas is None or isinstance(self.quotas, Quotas)
        require(known, "slack: quotas", self.quotas, "it must be a Quotas(...) or None")
        if isinstance(self.awt, Mapping):
            object.__setattr__(self, "awt", _classes(self.awt))
        for field in ("user_priority", "political_priority"):
            self.priority(field)
        flag("slack: extend_unfinished", self.extend_unfinished)
        _ = _classes(self.awt), self.weights

    @property
    def weights(self) -> Weights:
        return Weights(*(share(f"slack: alpha_{name}", getattr(self, f"alpha_{name}")) for name in "utpf"))

    @property
    def average_waits(self) -> Classes:
        """AWT by size; none where it has to be measured."""
        return _classes(self.awt)

    def priority(self, field: str) -> PriorityOf:
        """Return the function that gives a job's user or political priority."""
        given: object = getattr(self, field)
        if isinstance(given, Real):
            of_all = share(f"slack: {field}", given)
            return lambda _job: of_all
        if not callable(given):
            raise refused(f"slack: {field}", given, "it must be a number >= 0 and <= 1, or a callable")
        return lambda job: share(f"slack: {field} of job {job.id}", given(job))

    def calibrated(self, measure: MeasureWaits) -> Slack:
        """Return the policy with the average wait time under conservative backfilling, if that is what ``awt`` asks for."""
        if self.awt == MEASURED:
            return replace(self, awt=((inf, _mean_s(measure(MEASURED).wait)),))
        return replace(self, awt=_by_size(measure(MEASURED))) if self.awt == MEASURED_BY_SIZE else self

    def start(self, setup: Setup) -> SlackRun:
        """Start a run, where the average wait time is known for all job sizes."""
        classes = self.average_waits
        if not classes:
            raise SpecificationError(
                f"slack: awt: {self.awt!r} has not been measured; run the policy in a Scenario, or give a number of seconds"
            )
        largest, must = classes[-1][0], f"it must be >= {setup.nodes}, the machine's nodes"
        require(setup.nodes <= largest, "slack: awt", largest, must, " as the largest size")
        where, must = " on a machine with kill_at_estimate=True", "it must be a Machine(..., kill_at_estimate=False)"
        require(not (self.extend_unfinished and setup.kill_at_estimate), "slack: extend_unfinished", True, must, where)
        pools, nodes = pools_of(setup), nodes_of(setup)
        plan = plan_of(pools, nodes, may_overrun=may_overrun(setup))
        # Elsewhere it does not matter which of the idle nodes a job has, and the mechanism chooses them faster.
        names_nodes = in_pools(setup) or holds_longer(setup)
        return SlackRun(self, setup, plan, (lambda view: idle_now(pools, nodes, view, planned=True)) if names_nodes else None)
