"""The policies on the real mechanism against slow, obvious twins that share no code with it."""

import numpy as np
import pytest
from hypothesis import given, settings

from clustermodel import Machine, make_policy
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.sim.simulation import simulate
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows
from tests.twins import TwinJob, conservative_twin, easy_twin, fcfs_twin

Case = tuple[int, list[JobRow]]
CASES = cases(300)


def twin_jobs(rows: list[JobRow]) -> list[TwinJob]:
    second = TICKS_PER_SECOND
    return [
        TwinJob(row.submit // second, row.id, row.nodes, row.run // second, row.estimate // second, row.priority)
        for row in rows
    ]


def records(nodes: int, rows: list[JobRow], policy: str) -> JobRecords:
    return simulate(Machine(nodes=nodes), [rows], make_policy(policy), np.random.default_rng(1)).records


def starts(found: JobRecords) -> dict[int, int]:
    columns = (found.column(name).tolist() for name in ("id", "start", "ended_as"))
    return {number: start // TICKS_PER_SECOND for number, start, how in zip(*columns, strict=True) if how != Status.REJECTED}


@settings(max_examples=CASES)
@given(case=machines_and_rows(priorities=True, underestimates=True, awkward=True))
def test_fcfs(case: Case) -> None:
    nodes, rows = case
    assert starts(records(nodes, rows, "fcfs")) == fcfs_twin(nodes, twin_jobs(rows))


@settings(max_examples=CASES)
@given(case=machines_and_rows(underestimates=True, awkward=True))
def test_easy(case: Case) -> None:
    nodes, rows = case
    assert starts(records(nodes, rows, "easy")) == easy_twin(nodes, twin_jobs(rows))


@settings(max_examples=CASES)
@given(case=machines_and_rows(priorities=True, awkward=True))
def test_easy_with_priorities(case: Case) -> None:
    nodes, rows = case
    assert starts(records(nodes, rows, "easy")) == easy_twin(nodes, twin_jobs(rows))


@settings(max_examples=CASES)
@given(case=machines_and_rows(underestimates=True, awkward=True))
def test_easy_with_the_shortest_first(case: Case) -> None:
    nodes, rows = case
    found = starts(records(nodes, rows, "easy:backfill_order=shortest"))
    assert found == easy_twin(nodes, twin_jobs(rows), shortest_first=True)


@settings(max_examples=CASES)
@given(case=machines_and_rows(underestimates=True, largest=40, awkward=True))
def test_conservative_without_a_full_replan_equals_conservative_with_one(case: Case) -> None:
    nodes, rows = case
    found = records(nodes, rows, "conservative")
    expected, guarantees = conservative_twin(nodes, twin_jobs(rows))
    assert starts(found) == expected
    for number, promised in zip(found.column("id").tolist(), found.column("reserved").tolist(), strict=True):
        if promised != UNKNOWN:
            assert promised // TICKS_PER_SECOND == guarantees[number]


@settings(max_examples=CASES)
@given(case=machines_and_rows(priorities=True, awkward=True))
def test_conservative_with_priorities(case: Case) -> None:
    nodes, rows = case
    assert starts(records(nodes, rows, "conservative")) == conservative_twin(nodes, twin_jobs(rows))[0]


@settings(max_examples=CASES)
@given(case=machines_and_rows(underestimates=True, awkward=True))
def test_easy_that_protects_every_job_is_conservative_backfilling(case: Case) -> None:
    nodes, rows = case
    assert starts(records(nodes, rows, f"easy:reserve_depth={len(rows)}")) == starts(records(nodes, rows, "conservative"))


def test_the_twins_are_not_vacuous() -> None:
    # Two nodes; 1 runs on both, 2 (both nodes) is blocked until 10; 3 fits neither before nor beside, 4 arrives when
    # job 5 holds one node until 4 and is backfilled.
    jobs = [TwinJob(0, 1, 1, 10, 10), TwinJob(1, 2, 2, 5, 5), TwinJob(2, 3, 1, 20, 20), TwinJob(3, 4, 1, 7, 7)]
    assert fcfs_twin(2, jobs) == {1: 0, 2: 10, 3: 15, 4: 15}
    assert easy_twin(2, jobs) == {1: 0, 2: 10, 3: 15, 4: 3}  # 4 ends at 10, the shadow time; 3 would end at 22
    assert conservative_twin(2, jobs)[0] == {1: 0, 2: 10, 3: 15, 4: 3}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_same_hand_made_case_on_the_mechanism(policy: str) -> None:
    second = TICKS_PER_SECOND
    rows = [
        JobRow(submit * second, number, nodes, run * second, run * second, -1, -1, 0, -1)
        for submit, number, nodes, run in [(0, 1, 1, 10), (1, 2, 2, 5), (2, 3, 1, 20), (3, 4, 1, 7)]
    ]
    assert starts(records(2, rows, policy)) == {1: 0, 2: 10, 3: 15, 4: 3}
