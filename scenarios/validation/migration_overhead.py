"""Does the node time spent on migration agree with Zhang et al. 2003, eqs. (4) and (5)?

The equations are added up over the migrations that the policy decides, and compared with checkpoints, restarts and waiting for
them in the ledger of the same run.  Switches are free, because on change nodes also wait for others of their gang.  On 32 nodes
several gangs move at a time, which only option 1 has, and several wait, which only option 2 has.

    clustermodel validate scenarios/validation/migration_overhead.py --out results
"""

from collections.abc import Iterable
from typing import Self

from kappa import CHECKPOINT_S, JOBS, LOADED_PER_S, RESTART_S, SHARED

from clustermodel import (
    Account,
    Batch,
    Decision,
    QueuedJob,
    Result,
    Rows,
    Scenario,
    Setup,
    Validation,
    View,
    make_policy,
    to_seconds,
    validate,
)
from clustermodel.theory.migration import option_1_overhead, option_2_overhead


class CountedMigrations:
    """A policy whose migrations are added up by eqs. (4) and (5) while it decides."""

    def __init__(self, policy: str) -> None:
        self._policy = make_policy(policy)
        self.name = self._policy.name
        self.overhead_s = 0.0
        """Of the last run, node-seconds."""

    def start(self, setup: Setup) -> Self:
        """Start a run."""
        self.overhead_s = 0.0
        self._run = self._policy.start(setup)
        return self

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        """Return the policy's decisions, and add up its migrations."""
        decisions = list(self._run.decide(batch, view))
        self.overhead_s += sum(
            overhead_s(*pair) for decision in decisions if isinstance(decision, Rows) for pair in decision.migrations
        )
        return decisions


def overhead_s(moving: Iterable[QueuedJob], waiting: Iterable[QueuedJob]) -> float:
    moves, waits = [job.nodes for job in moving], [job.nodes for job in waiting]
    if len(waits) > 1:  # option 2: a gang moves, those in its way wait
        return option_2_overhead(sum(moves), waits, CHECKPOINT_S, RESTART_S)
    # Option 1: a gang waits, those in its way move; where one moves and one waits, both equations say the same.
    return option_1_overhead(sum(waits), moves, CHECKPOINT_S, RESTART_S)


def by_equations(result: Result) -> float:
    """Return the overhead of a run's migrations by eqs. (4) and (5), node-seconds."""
    policy = result.scenario.policy
    assert isinstance(policy, CountedMigrations)
    return policy.overhead_s


def overhead_node_s(result: Result) -> float:
    """Return what nodes spent on checkpoints, restarts and waiting for them, node-seconds."""
    accounts = (Account.CHECKPOINT, Account.RESTART, Account.BLOCKED)
    return to_seconds(sum(sum(result.ledger.amount(account)) for account in accounts))


def study(jobs: int = 400, replications: int = 20) -> Validation:
    def scenario(policy: str, nodes: int, seed: int) -> Scenario:
        workload = JOBS(jobs=jobs, seed=seed, per_s=nodes * LOADED_PER_S)
        return Scenario(machine=SHARED(nodes=nodes), workload=workload, policy=CountedMigrations(policy), seed=seed)

    return validate(
        by_equations,
        scenario=scenario,
        factors={"policy": ["mgs", "mbgs"], "nodes": [8, 32]},
        measure=overhead_node_s,
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Overhead of migration by eqs. (4), (5)",
    )
