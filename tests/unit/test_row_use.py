"""Rows in use, and nodes that are idle while gangs of other rows are stopped."""

from math import isnan

import pytest

from clustermodel import Account, Job, Machine, Scenario, TimeSlicing, Workload
from clustermodel.measure.timeline import row_use
from clustermodel.recording.ledger import Amount
from clustermodel.recording.matrix_history import LoggedRotation


def test_by_hand() -> None:
    """Two rows of 3 and 5 of 8 nodes for 25 ticks of slices of 10: 10 + 5 ticks of the first row, 10 of the second."""
    rotations = [
        LoggedRotation(25, waiting=False, held=(3, 5), switching=(), migration=0, up=8),
        LoggedRotation(10, waiting=True, held=(8, 6), switching=(), migration=0, up=8),  # only the full row runs
        LoggedRotation(15, waiting=True, held=(8, 6), switching=(), migration=0, up=8),
        LoggedRotation(50, waiting=True, held=(2,), switching=(), migration=0, up=8),  # no gang is stopped
        LoggedRotation(99, waiting=False, held=(), switching=(), migration=0, up=8),
    ]
    found = row_use(rotations, quantum=10)
    assert found.idle_beside_stopped == Amount(queue_empty=15 * 5 + 10 * 3, job_waiting=5 * 2)
    assert found.mean_rows == (2 * 50 + 1 * 50) / 100


def test_an_empty_machine_has_no_rows() -> None:
    assert isnan(row_use([], quantum=10).mean_rows)


def test_a_run() -> None:
    """Two gangs of 5 of 8 nodes share them in two rows, then the longer one is alone; no job waits."""
    jobs = [
        Job(id=1, submit_s=0, nodes=5, run_s=100, estimate_s=100),
        Job(id=2, submit_s=0, nodes=5, run_s=300, estimate_s=300),
    ]
    machine = Machine(nodes=8, time_slicing=TimeSlicing(quantum_s=10, mpl=2))
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy="gs").run()
    shared_s = float(result.jobs["end_s"].min())
    assert result.row_use.mean_rows == pytest.approx((2 * shared_s + (400 - shared_s)) / 400)
    idle = result.row_use.idle_beside_stopped
    assert idle == Amount(queue_empty=round(3 * shared_s * 1e6), job_waiting=0)
    assert idle.queue_empty < sum(result.ledger.amount(Account.IDLE))


def test_without_time_sharing() -> None:
    jobs = [Job(id=1, submit_s=0, nodes=5, run_s=100, estimate_s=100)]
    result = Scenario(machine=Machine(nodes=8), workload=Workload.from_jobs(jobs), policy="easy").run()
    assert result.row_use == (1.0, Amount(0, 0))
