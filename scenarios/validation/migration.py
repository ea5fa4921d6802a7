"""Do the nodes spend on migration what Zhang et al. 2003, eqs. (4) and (5), say?

The equations are added up over the migrations that the policy decides, and compared with checkpoints, restarts and waiting for
them in the ledger of the same run.  Switches are free, because on change nodes also wait for others of their gang.  On 32 nodes
several gangs move at a time, which only option 1 has, and several wait, which only option 2 has.

    clustermodel validate scenarios/validation/migration.py --out results
"""

from capacity_loss import CHECKPOINT_S, JOBS, LOADED_PER_S, RESTART_S, SHARED

from clustermodel import Account, Result, Scenario, Validation, to_seconds, validate
from clustermodel.experiment.migration_overhead import CountedMigrations, migration_overhead_s


def spent(result: Result) -> float:
    """Return what nodes spent on checkpoints, restarts and waiting for them, node-seconds."""
    accounts = (Account.CHECKPOINT, Account.RESTART, Account.BLOCKED)
    return to_seconds(sum(sum(result.ledger.amount(account)) for account in accounts))


def study(jobs: int = 400, replications: int = 20) -> Validation:
    """Return the validation."""

    def scenario(policy: str, nodes: int, seed: int) -> Scenario:
        workload = JOBS(jobs=jobs, seed=seed, per_s=nodes * LOADED_PER_S)
        counted = CountedMigrations(policy, checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S)
        return Scenario(machine=SHARED(nodes=nodes), workload=workload, policy=counted, seed=seed)

    return validate(
        migration_overhead_s,
        scenario=scenario,
        factors={"policy": ["mgs", "mbgs"], "nodes": [8, 32]},
        measure=spent,
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Overhead of migration by eqs. (4), (5)",
    )
