"""Context switches that take longer for some gangs than for others: the two fidelities against each other, and the constant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import ContextSwitch, Scenario, Workload, make_policy
from clustermodel.experiment import conformance
from clustermodel.experiment.result import Result
from clustermodel.machine.context_switch import CHARGES
from clustermodel.policies.interface import Policy
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.simulation import Fidelity
from clustermodel.ticks import to_seconds
from clustermodel.workload.job import UNSET
from tests.gang_runs import POLICIES, GangCase, Meddler, check_books, gang_cases, seen, seen_in_time
from tests.property.strategies import cases

quick = settings(max_examples=cases(300), suppress_health_check=[HealthCheck.too_slow])
policies = st.sampled_from(POLICIES)


@dataclass(frozen=True)
class BySize:
    """A switch for each number of nodes."""

    ticks: tuple[int, ...]

    def __call__(self, nodes: int) -> float:
        """Return how long it takes, seconds."""
        return to_seconds(self.ticks[nodes % len(self.ticks)])


Drawn = tuple[GangCase, list[int]]


@st.composite
def different_switches(draw: st.DrawFn) -> Drawn:
    """Return a machine whose switches depend on the number of nodes, jobs, and switches of their own of some of these."""
    case = draw(gang_cases(perhaps_none_runs=True))
    most = 3 * case.machine.time_slicing.quantum // 4  # the slow mode plays all slices
    lengths = st.sampled_from((0, min(1, most), most // 3, most // 2, most)) | st.integers(0, most)
    charge: Literal["on-change", "every-slice"] = draw(st.sampled_from(CHARGES))
    switch = ContextSwitch(seconds=BySize(tuple(draw(st.lists(lengths, min_size=1, max_size=4)))), charge=charge)
    own = [draw(st.just(UNSET) | lengths) for _ in case.rows] if draw(st.booleans()) else []
    return case._replace(machine=replace(case.machine, context_switch=switch)), own


def run(drawn: Drawn, policy: str | Policy, fidelity: Fidelity = "fast") -> Result:
    """Run a case, and check its books."""
    (machine, rows), own = drawn
    workload = Workload(rows)
    if own:
        table = np.array([[*row[:-1], ticks] for row, ticks in zip(rows, own, strict=True)], dtype=np.int64)
        workload = Workload(table, extra=["context_switch"])
    result = Scenario(machine=machine, workload=workload, policy=policy, fidelity=fidelity, history=True).run()
    check_books(result)
    return result


def both_agree(drawn: Drawn, make: Callable[[], str | Policy]) -> None:
    """Check that both fidelities agree in everything that happened."""
    fast = run(drawn, make())
    if fast.slices is not None:
        node = run(drawn, make(), "node")
        assert seen_in_time(fast) == seen_in_time(node)
        assert _attempts(fast) == _attempts(node)


def _attempts(result: Result) -> Sequence[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in result.records.stopped_runs), strict=True))


@settings(quick, max_examples=cases(1500))
@given(drawn=different_switches(), policy=policies)
def test_both_fidelities_agree(drawn: Drawn, policy: str) -> None:
    both_agree(drawn, lambda: policy)


@settings(quick, max_examples=cases(1000))
@given(drawn=different_switches(), seed=st.integers(0, 2**32))
def test_both_fidelities_agree_whatever_a_policy_preempts(drawn: Drawn, seed: int) -> None:
    both_agree(drawn, lambda: Meddler(seed, preempts=8))


@settings(quick, max_examples=cases(500))
@given(case=gang_cases(), policy=policies, own=st.booleans())
def test_a_constant_function_gives_the_results_of_the_constant(case: GangCase, policy: str, own: bool) -> None:
    ticks, charge = case.machine.switch_ticks, case.machine.context_switch.charge
    constant = replace(case.machine, context_switch=ContextSwitch(seconds=to_seconds(ticks), charge=charge))
    function = replace(case.machine, context_switch=ContextSwitch(seconds=BySize((ticks,)), charge=charge))
    first = run((case._replace(machine=constant), []), policy)
    second = run((case._replace(machine=constant if own else function), [ticks] * len(case.rows) if own else []), policy)
    assert seen(first) == seen(second)
    assert _attempts(first) == _attempts(second)
    assert first.states.equals(second.states)
    if first.slices is not None:
        assert first.placements.equals(second.placements)
        assert first.kappa_by_formula == second.kappa_by_formula
        assert [moment._replace(begun=0) for moment in first.history.moments] == [
            moment._replace(begun=0) for moment in second.history.moments
        ]


@settings(quick, max_examples=cases(200))
@given(drawn=different_switches(), policy=st.sampled_from(("ss", "pv-easy:mode=suspend")))
def test_jobs_that_are_suspended_on_dedicated_nodes_pay_their_own(drawn: Drawn, policy: str) -> None:
    (machine, rows), own = drawn
    if machine.checkpointing.max_tasks_per_slice == 0:
        machine = replace(machine, checkpointing=replace(machine.checkpointing, max_tasks_per_slice=1))
    result = run((GangCase(machine, rows), own), make_policy(policy))
    assert Status.UNFINISHED not in result.records.column("ended_as").tolist()


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_keep_their_rules(policy: str) -> None:
    made, broken = make_policy(policy), []
    for case in islice(conformance.cases(1, failures=False), 0, None, 6):
        most = case.machine.time_slicing.quantum - 1
        switch = ContextSwitch(seconds=BySize((most // 4, 0, most // 2, most // 9)))
        broken += conformance._check(made, case._replace(machine=replace(case.machine, context_switch=switch)), 1)
    assert broken == []
