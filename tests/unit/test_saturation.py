"""Measures until the last start, on runs small enough to compute by hand."""

from __future__ import annotations

import pytest

from clustermodel import ContextSwitch, JobRow, Machine, Result, Scenario, TimeSlicing, Workload
from clustermodel.experiment.saturation import kappa_until_last_start, utilization_until_last_start

SECOND = 1_000_000


def run(policy: str, *sizes_and_runs: tuple[int, int], **machine: object) -> Result:
    """Return a run of jobs submitted at once to 2 nodes."""
    rows = [
        JobRow(0, number, nodes, run_s * SECOND, run_s * SECOND, -1, -1, 0, -1)
        for number, (nodes, run_s) in enumerate(sizes_and_runs, 1)
    ]
    return Scenario(machine=Machine(nodes=2, **machine), workload=Workload(rows), policy=policy).run()  # type: ignore[arg-type]


def test_what_is_idle_until_the_last_start_is_lost() -> None:
    result = run("fcfs", (1, 10), (2, 10), (1, 30))  # one node idles for 10 s; what follows 20 s does not count
    assert kappa_until_last_start(result) == pytest.approx(10 / 40)
    assert utilization_until_last_start(result) == pytest.approx(30 / 40)


def test_the_first_starts_may_be_left_out() -> None:
    result = run("fcfs", (1, 10), (2, 10), (1, 30))
    assert utilization_until_last_start(result, skip=0.4) == pytest.approx(1.0)  # from the second start at 10 s


def test_with_time_sharing_switches_are_lost_and_both_agree() -> None:
    machine = {
        "time_slicing": TimeSlicing(quantum_s=10, mpl=2),
        "context_switch": ContextSwitch(fraction=0.1, charge="every-slice"),
    }
    result = run("gs", (2, 18), (2, 18), (2, 18), **machine)
    assert kappa_until_last_start(result) == pytest.approx(0.1)
    assert utilization_until_last_start(result) == pytest.approx(0.9)
