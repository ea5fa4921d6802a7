"""Context switches that take longer for some gangs than for others, on dedicated nodes: each pays its own."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import ContextSwitch, Scenario, Workload, make_policy
from clustermodel.experiment.result import Result
from clustermodel.machine.context_switch import CHARGES
from clustermodel.policies.interface import Policy
from clustermodel.recording.run_attempts import Status
from clustermodel.ticks import to_seconds
from clustermodel.workload.job import UNSET
from tests.gang_runs import GangCase, check_books, gang_cases
from tests.property.strategies import cases

quick = settings(max_examples=cases(300), suppress_health_check=[HealthCheck.too_slow])


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


def run(drawn: Drawn, policy: Policy) -> Result:
    """Run a case, and check its books."""
    (machine, rows), own = drawn
    workload = Workload(rows)
    if own:
        table = np.array([[*row[:-1], ticks] for row, ticks in zip(rows, own, strict=True)], dtype=np.int64)
        workload = Workload(table, extra=["context_switch"])
    result = Scenario(machine=machine, workload=workload, policy=policy, history=True).run()
    check_books(result)
    return result


@settings(quick, max_examples=cases(200))
@given(drawn=different_switches(), policy=st.sampled_from(("ss", "pv-easy:mode=suspend")))
def test_jobs_that_are_suspended_on_dedicated_nodes_pay_their_own(drawn: Drawn, policy: str) -> None:
    (machine, rows), own = drawn
    if machine.checkpointing.max_tasks_per_slice == 0:
        machine = replace(machine, checkpointing=replace(machine.checkpointing, max_tasks_per_slice=1))
    result = run((GangCase(machine, rows), own), make_policy(policy))
    assert Status.UNFINISHED not in result.records.column("ended_as").tolist()
