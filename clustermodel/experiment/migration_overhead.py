"""The overhead of migration by Zhang et al. 2003, eqs. (4) and (5), added up over the migrations that a policy decides."""

from __future__ import annotations

from collections.abc import Iterable

from clustermodel.errors import SpecificationError
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Decision, Migrate, Policy, Setup
from clustermodel.policies.registry import make_policy
from clustermodel.policies.view import Batch, View
from clustermodel.theory.migration import option_1_overhead, option_2_overhead


class CountedMigrations:
    """A policy whose migrations are added up by eqs. (4) and (5) while it decides.

    Args:
        policy: what decides; a policy, or its name with parameters.
        checkpoint_s: time to checkpoint a gang, seconds: C/2 in the paper.
        restart_s: time to restart it, seconds: C/2 in the paper.
    """

    def __init__(self, policy: str | Policy, *, checkpoint_s: float, restart_s: float) -> None:
        self._policy = make_policy(policy)
        self.name = self._policy.name
        self._costs_s = checkpoint_s, restart_s
        self.overhead_s = 0.0
        """Of the run that is going on or has ended last, node-seconds."""

    def begin(self, setup: Setup) -> None:
        """Begin a run."""
        self.overhead_s = 0.0
        self._policy.begin(setup)

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        """Return the policy's decisions, and add up its migrations."""
        decisions = list(self._policy.decide(batch, view))
        self.overhead_s += sum(self._overhead_s(one) for one in decisions if isinstance(one, Migrate))
        return decisions

    def _overhead_s(self, decision: Migrate) -> float:
        moves, waits = [job.nodes for job, _ in decision.moves], [job.nodes for job in decision.blocked]
        if len(waits) > 1:  # option 2: a gang moves, those in its way wait
            return option_2_overhead(sum(moves), waits, *self._costs_s)
        # Option 1: a gang waits, those in its way move; where one moves and one waits, both equations say the same.
        return option_1_overhead(sum(waits), moves, *self._costs_s)


def migration_overhead_s(result: Result) -> float:
    """Return the overhead of a run's migrations by eqs. (4) and (5), node-seconds.

    Args:
        result: of a run whose policy is :class:`CountedMigrations`, before it runs again.

    Raises:
        SpecificationError: it has another policy.
    """
    policy = result.scenario.policy
    if not isinstance(policy, CountedMigrations):
        raise SpecificationError(
            f"migration_overhead_s: policy {result.scenario.label} is not allowed; it must be CountedMigrations"
        )
    return policy.overhead_s
