"""Do the nodes spend on migration what Zhang et al. 2003, eqs. (4) and (5), say?

The equations are added up over the migrations that the policy decides, and compared with checkpoints, restarts and waiting for
them in the ledger of the same run.  Switches are free, because on change nodes also wait for others of their gang.  On 32 nodes
several gangs move at a time, which only option 1 has, and several wait, which only option 2 has.

    clustermodel validate scenarios/validation/migration.py --out results
"""

from collections.abc import Iterable

from clustermodel import (
    Account,
    Batch,
    Checkpointing,
    Decision,
    Exponential,
    Machine,
    Migrate,
    Policy,
    Result,
    Scenario,
    Setup,
    TimeSlicing,
    Validation,
    View,
    make_policy,
    to_seconds,
    validate,
)
from clustermodel.experiment.queueing_models import model_jobs
from clustermodel.theory.migration import option_1_overhead, option_2_overhead

CHECKPOINT_S, RESTART_S = 3.0, 7.0
"""A restart is longer than a checkpoint, so that eqs. (4) and (5) cannot be mistaken for each other."""
MEAN_S, LOAD = 100.0, 0.75
SIZES = dict.fromkeys(range(1, 9), 1 / 8)


class Watched:
    """A policy whose migrations are added up by eqs. (4) and (5).

    Args:
        policy: what decides.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name = policy.name
        self.overhead_s = 0.0

    def begin(self, setup: Setup) -> None:
        """Begin a run."""
        self.overhead_s = 0.0
        self._policy.begin(setup)

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        """Return the policy's decisions, and add up its migrations."""
        decisions = list(self._policy.decide(batch, view))
        for decision in decisions:
            if isinstance(decision, Migrate):
                moves, waits = [job.nodes for job, _ in decision.moves], [job.nodes for job in decision.blocked]
                if len(waits) > 1:  # option 2: a gang moves, those in its way wait
                    self.overhead_s += option_2_overhead(sum(moves), waits, CHECKPOINT_S, RESTART_S)
                else:  # option 1: a gang waits; where one moves and one waits, both equations say the same
                    self.overhead_s += option_1_overhead(sum(waits), moves, CHECKPOINT_S, RESTART_S)
        return decisions


def by_equations(result: Result) -> float:
    """Return the overhead of the run's migrations by eqs. (4) and (5), node-seconds."""
    policy = result.scenario.policy
    assert isinstance(policy, Watched)
    return policy.overhead_s


def spent(result: Result) -> float:
    """Return what nodes spent on checkpoints, restarts and waiting for them, node-seconds."""
    accounts = (Account.CHECKPOINT, Account.RESTART, Account.BLOCKED)
    return to_seconds(sum(sum(result.ledger.amount(account)) for account in accounts))


def study(jobs: int = 400, replications: int = 20) -> Validation:
    """Return the validation."""

    def scenario(policy: str, nodes: int, seed: int) -> Scenario:
        machine = Machine(
            nodes=nodes,
            time_slicing=TimeSlicing(quantum_s=20, mpl=4),
            checkpointing=Checkpointing(checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S),
        )
        rate = LOAD * nodes / (4.5 * MEAN_S)
        workload = model_jobs(
            jobs=jobs, seed=seed, stream="the same for all", run_s=Exponential(MEAN_S), per_s=rate, sizes=SIZES
        )
        return Scenario(machine=machine, workload=workload, policy=Watched(make_policy(policy)), seed=seed)

    return validate(
        by_equations,
        scenario=scenario,
        factors={"policy": ["mgs", "mbgs"], "nodes": [8, 32]},
        measure=spent,
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Overhead of migration by eqs. (4), (5)",
    )
