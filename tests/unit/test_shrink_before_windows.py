"""A malleable gang that loses a node goes on with its others only if it is gone before these are reserved."""

import numpy as np
import pytest

from clustermodel import Job, LinearSpeedup, Machine, Reservation, Scenario, Workload
from clustermodel.machine.recorded_outages import Outages

POLICY = "shrink-to-admit:expand=no,fewer=False"


@pytest.mark.parametrize(("begins", "shrinks"), [(70, True), (69, False)])
def test_a_gang_shrinks_after_a_failure_only_if_it_ends_before_a_window(begins: float, shrinks: bool) -> None:
    # On 4 nodes it takes 45 s, on 3 nodes 60 s: from 10 s, when node 3 fails, until 70 s.
    machine = Machine(
        nodes=4,
        resize_s=0,
        failures=Outages(node=np.array([3]), down_s=np.array([10.0]), up_s=np.array([11.0]), nodes=4),
        on_failure="shrink",
        reservations=[Reservation(nodes="0", start_s=begins, end_s=100, users=("bob",))],
    )
    jobs = [Job(id=1, nodes=4, submit_s=0, run_s=45, estimate_s=45, malleable=True, min_nodes=1, max_nodes=4)]
    run = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=POLICY, speedup=LinearSpeedup()).run()
    assert run.jobs["end_s"].tolist() == [70 if shrinks else 11 + 45]
    assert sorted(run.run_attempts["nodes"]) == ([3, 4] if shrinks else [4, 4])
