"""Start-up and epilog under every policy of dedicated nodes: the rules of policies, the books, and the time of each attempt."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from clustermodel import Checkpointing, SizeCost, policy_names
from clustermodel.experiment import conformance
from clustermodel.experiment.conformance import Case
from clustermodel.policies.interface import Policy, dependencies_of
from clustermodel.policies.registry import make_policy
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.sim.simulation import simulate
from clustermodel.ticks import TICKS_PER_SECOND
from tests.property.test_failures import DEDICATED
from tests.tiers import some

IN_SPACE = [name for name in policy_names() if "time_slicing" not in dependencies_of(make_policy(name))]
VARIANTS = (
    *DEDICATED, "easy:predictor=last-two,correction=tsafrir", "backfilling:width=half",
    "pv-easy:vb=false,slp=false",
)  # fmt: skip
POLICIES = [*IN_SPACE, *(name for name in VARIANTS if name not in IN_SPACE)]
COSTS = {"startup_s": SizeCost(base_s=0.5, per_node_s=1.5), "epilog_s": lambda nodes: 0.3 * nodes}


def occupied_cases(policy: Policy, seed: int, *, failures: bool = False) -> list[Case]:
    """Return the cases of :func:`check_policy` on machines on which jobs occupy their nodes for longer than they execute."""
    cases = [*conformance.cases(seed, failures=failures)][:: 3 if not failures else 1]
    if getattr(policy, "takes_partitions", False):
        cases += [conformance._in_partitions(case) for case in islice(cases, 0, None, 3)]
    return [case._replace(machine=replace(case.machine, **COSTS)) for case in cases]


@pytest.mark.parametrize("policy", some(POLICIES, one_in=4))
def test_policies_keep_their_rules(policy: str) -> None:
    made = make_policy(policy)
    assert [broken for case in occupied_cases(made, 1) for broken in conformance._check(made, case, 1)] == []


@pytest.mark.parametrize("policy", some(POLICIES, one_in=4))
def test_policies_keep_their_rules_where_nodes_fail(policy: str) -> None:
    made = make_policy(policy)
    cases = [case for case in occupied_cases(made, 2, failures=True) if case.machine.failures is not None]
    assert [broken for case in cases for broken in conformance._check(made, case, 1)] == []


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "pv-easy", "pv-easy:mode=checkpoint", "srtf", "ss"])
def test_a_run_attempt_takes_its_start_up_its_work_and_its_epilog(policy: str) -> None:
    made = make_policy(policy)
    for case in occupied_cases(made, 3)[-20:]:
        machine = replace(case.machine, checkpointing=Checkpointing(checkpoint_s=2.0, restart_s=1.0))
        outcome = simulate(machine, [sorted(case.jobs)], made, np.random.default_rng(1))
        runs, overheads = outcome.records.runs, outcome.records.overheads
        held = runs.nodes * (runs.end - runs.start)
        assert (runs.end != UNKNOWN).all()
        spent = {account: sum(outcome.ledger.amount(account)) for account in Account}
        assert int(held.sum()) == sum(spent.values()) - spent[Account.IDLE]
        for account, most in ((Account.STARTUP, 0.5 + 1.5 * runs.nodes), (Account.EPILOG, 0.3 * runs.nodes)):
            of_account = overheads.account == list(Account).index(account)
            recorded = int((overheads.nodes * (overheads.end - overheads.start))[of_account].sum())
            assert spent[account] == recorded <= (runs.nodes * np.rint(most * TICKS_PER_SECOND)).sum()
