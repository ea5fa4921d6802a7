"""ServerFilling against its rule, replayed here from event to event without the machine's nodes (Grosof et al. 2022)."""

import numpy as np
from hypothesis import given, settings

from clustermodel import Checkpointing, Machine, make_policy
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows

Case = tuple[int, list[JobRow]]


def run(case: Case, checkpointing: Checkpointing) -> Outcome:
    nodes, rows = case
    machine = Machine(nodes=nodes, checkpointing=checkpointing)
    return simulate(machine, [sorted(rows)], make_policy("server-filling"), np.random.default_rng(1))


def served(nodes: int, present: list[JobRow]) -> list[JobRow]:
    """Return the jobs that run, of those in the system in queue order."""
    needed = [sum(job.nodes for job in present[:number]) for number in range(len(present) + 1)]
    prefix = next((number for number, sum_of in enumerate(needed) if sum_of >= nodes), len(present))
    running: list[JobRow] = []
    for size in range(nodes, 0, -1):
        for job in present[:prefix]:
            if job.nodes == size and sum(other.nodes for other in running) + size <= nodes:
                running.append(job)
    return running


def replayed(nodes: int, rows: list[JobRow]) -> dict[int, int]:
    """Return job -> end, ticks."""
    left = {row.id: min(row.run, row.estimate) for row in rows}
    ends: dict[int, int] = {}
    now = 0
    while len(ends) < len(rows):
        present = sorted(
            (row for row in rows if row.submit <= now and row.id not in ends),
            key=lambda row: (-row.priority, row.submit, row.id),
        )
        running = served(nodes, present)
        arrivals = [row.submit for row in rows if row.submit > now]
        after = min([*arrivals, *(now + left[job.id] for job in running)])
        for job in running:
            left[job.id] -= after - now
            if not left[job.id]:
                ends[job.id] = after
        now = after
    return ends


@settings(max_examples=cases(400))
@given(case=machines_and_rows(priorities=True, underestimates=True))
def test_jobs_complete_when_the_rule_says_so(case: Case) -> None:
    records = run(case, Checkpointing()).records
    ids, ends = (records.column(name).tolist() for name in ("id", "end"))
    assert dict(zip(ids, ends, strict=True)) == replayed(*case)


@settings(max_examples=cases(100))
@given(case=machines_and_rows(priorities=True, underestimates=True))
def test_with_checkpoints_that_take_time_all_jobs_complete_and_no_earlier_than_they_can(case: Case) -> None:
    store = Checkpointing(checkpoint_s=3.0, restart_s=2.0, max_tasks_per_slice=3)
    records = run(case, store).records
    needed = {row.id: row.submit + min(row.run, row.estimate) for row in case[1]}
    for job, end in zip(records.column("id").tolist(), records.column("end").tolist(), strict=True):
        assert end >= needed[job]
