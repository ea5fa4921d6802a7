"""What holds in every run of every policy."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Machine, Scenario, Workload, make_policy
from clustermodel.machine.node_set import count
from clustermodel.measure.timeline import event_log
from clustermodel.policies.easy import Easy
from clustermodel.policies.interface import Decision, Kill, Setup
from clustermodel.policies.view import Batch, View
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.theory.capacity_loss import capacity_loss, utilization
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows

POLICIES = [
    "fcfs", "easy", "easy:backfill_order=shortest", "easy:reserve_depth=3", "easy:reserve_depth=2,backfill_order=shortest",
    "conservative", "slack:awt=20", "slack:awt=20,heuristic=dc",
]  # fmt: skip
every_policy = pytest.mark.parametrize("policy", POLICIES)


def run(nodes: int, rows: list[JobRow], policy: str, *, kill: bool = True) -> Outcome:
    machine = Machine(nodes=nodes, kill_at_estimate=kill)
    return simulate(machine, [rows], make_policy(policy), np.random.default_rng(1))


def schedule(records: JobRecords) -> dict[int, tuple[int, int]]:
    ids, start, end = (records.column(name).tolist() for name in ("id", "start", "end"))
    return {number: (begin, finish) for number, begin, finish in zip(ids, start, end, strict=True)}


@every_policy
@given(case=machines_and_rows(priorities=True, underestimates=True), kill=st.booleans())
def test_a_node_holds_one_job_a_gang_starts_whole_and_no_job_starts_before_its_submission(
    policy: str, case: tuple[int, list[JobRow]], kill: bool
) -> None:
    nodes, rows = case
    records = run(nodes, rows, policy, kill=kill).records
    held: dict[int, list[tuple[int, int]]] = {node: [] for node in range(nodes)}
    start, end, submit, size = (records.column(name) for name in ("start", "end", "submit", "nodes"))
    assert len(records) == len(rows)
    for index in range(len(records)):
        columns = records.columns_of(index)
        assert count(columns) == size[index]
        assert start[index] >= submit[index]
        run_time = rows[index].run if not kill else min(rows[index].run, rows[index].estimate)
        assert end[index] - start[index] == run_time
        for low, high in zip(columns[::2], columns[1::2], strict=True):
            for node in range(low, high):
                held[node].append((int(start[index]), int(end[index])))
    for intervals in held.values():
        intervals.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(intervals))


@every_policy
@given(case=machines_and_rows(priorities=True, underestimates=True), kill=st.booleans())
def test_the_ledger_adds_up_to_the_tick_and_agrees_with_the_formulas(
    policy: str, case: tuple[int, list[JobRow]], kill: bool
) -> None:
    nodes, rows = case
    outcome = run(nodes, rows, policy, kill=kill)
    ledger, records = outcome.ledger, outcome.records
    start, end, size = (records.column(name) for name in ("start", "end", "nodes"))
    assert sum(sum(ledger.amount(account)) for account in Account) == nodes * (end.max() - rows[0].submit)
    assert sum(ledger.amount(Account.USEFUL)) == int(np.dot(size, end - start))
    log = event_log(records, nodes)
    assert capacity_loss(log.time_s, log.empty, log.waiting, nodes) == pytest.approx(ledger.capacity_loss, abs=1e-9)
    finish_s = float(end.max() - rows[0].submit) / 1e6
    assert utilization(size, (end - start) / 1e6, finish_s, nodes) == pytest.approx(ledger.utilization, abs=1e-9)


class KillsTheFirstRunning:
    """EASY that kills the longest-running job whenever one was submitted: exercises lost work."""

    name = "killer"

    def start(self, setup: Setup) -> object:
        self._run = Easy().start(setup)
        self._killed: set[int] = set()
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        decisions = self._run.decide(batch, view)
        victim = next(iter(view.running.values()), None)
        if batch.submitted and victim is not None and victim.job.id not in self._killed:
            self._killed.add(victim.job.id)
            decisions.append(Kill(job=victim.job))
        return decisions


@given(case=machines_and_rows())
def test_killed_work_is_lost_to_the_tick(case: tuple[int, list[JobRow]]) -> None:
    nodes, rows = case
    outcome = simulate(Machine(nodes=nodes), [rows], KillsTheFirstRunning(), np.random.default_rng(1))
    records, ledger = outcome.records, outcome.ledger
    work = records.column("nodes") * (records.column("end") - records.column("start"))
    aborted = records.column("ended_as") == Status.ABORTED
    assert sum(ledger.amount(Account.LOST)) == work[aborted].sum()
    assert sum(ledger.amount(Account.USEFUL)) == work[~aborted].sum()
    log = event_log(records, nodes)
    assert capacity_loss(log.time_s, log.empty, log.waiting, nodes) == pytest.approx(ledger.capacity_loss, abs=1e-9)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "fcfs"])
@given(case=machines_and_rows())
def test_no_job_starts_after_the_start_it_was_first_promised(policy: str, case: tuple[int, list[JobRow]]) -> None:
    # For EASY this is the head job's reservation, for conservative the guarantee given at submission.
    nodes, rows = case
    records = run(nodes, rows, policy).records
    start, promised = records.column("start"), records.column("reserved")
    assert (start[promised != UNKNOWN] <= promised[promised != UNKNOWN]).all()


@given(case=machines_and_rows(exact_estimates=True))
def test_with_right_estimates_a_blocked_head_starts_exactly_at_its_first_reservation_under_easy(
    case: tuple[int, list[JobRow]],
) -> None:
    nodes, rows = case
    records = run(nodes, rows, "easy").records
    start, promised = records.column("start"), records.column("reserved")
    assert (start[promised != UNKNOWN] == promised[promised != UNKNOWN]).all()


@given(case=machines_and_rows())
def test_conservative_promises_a_start_to_every_job_that_does_not_start_at_once(case: tuple[int, list[JobRow]]) -> None:
    nodes, rows = case
    records = run(nodes, rows, "conservative").records
    waited = records.column("start") > records.column("submit")
    assert ((records.column("reserved") != UNKNOWN) >= waited).all()


@every_policy
@given(case=machines_and_rows(priorities=True), seed=st.integers(0, 2**16), streams=st.integers(1, 4))
def test_permuting_what_happens_at_one_instant_and_splitting_streams_changes_nothing(
    policy: str, case: tuple[int, list[JobRow]], seed: int, streams: int
) -> None:
    nodes, rows = case
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    parts = [sorted(shuffled[part::streams], key=lambda row: row.submit) for part in range(streams)]
    outcome = simulate(Machine(nodes=nodes), parts, make_policy(policy), np.random.default_rng(1))
    assert schedule(outcome.records) == schedule(run(nodes, rows, policy).records)


@every_policy
@settings(max_examples=cases(20, fewest=4))
@given(case=machines_and_rows(priorities=True))
def test_the_same_seed_gives_the_same_bytes(
    policy: str, tmp_path_factory: pytest.TempPathFactory, case: tuple[int, list[JobRow]]
) -> None:
    nodes, rows = case
    folder: Path = tmp_path_factory.mktemp("bytes")
    written = []
    for attempt in ("first", "second"):
        result = Scenario(machine=Machine(nodes=nodes), workload=Workload(rows), policy=policy, seed=7).run()
        for layout in ("jobs", "evalys"):
            result.to_csv(folder / f"{attempt}-{layout}.csv", layout=layout)
        result.to_swf(folder / f"{attempt}.swf.gz")
        names = (f"{attempt}-jobs.csv", f"{attempt}-evalys.csv", f"{attempt}.swf.gz")
        written.append([(folder / name).read_bytes() for name in names])
    assert written[0] == written[1]


@every_policy
@given(case=machines_and_rows(), factor=st.integers(2, 1000))
def test_a_machine_and_jobs_wider_by_a_factor_have_the_same_schedule(
    policy: str, case: tuple[int, list[JobRow]], factor: int
) -> None:
    nodes, rows = case
    wide = [row._replace(nodes=row.nodes * factor) for row in rows]
    assert schedule(run(nodes * factor, wide, policy).records) == schedule(run(nodes, rows, policy).records)
