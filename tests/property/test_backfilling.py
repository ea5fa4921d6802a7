"""Backfilling from parts (Perkovic & Keleher 2000): against a slow twin, against each other, and what holds in every run."""

from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Machine, Scenario, Workload, check_policy, make_policy
from clustermodel.machine.node_set import count
from clustermodel.measure.fairness import delays_by_later_jobs
from clustermodel.measure.job_table import Jobs, job_columns
from clustermodel.measure.metrics import summarize
from clustermodel.measure.timeline import event_log
from clustermodel.policies.backfilling.moldable import Greedy
from clustermodel.policies.backfilling.scheduler import NAMED, Backfilling
from clustermodel.policies.backfilling.speculation import TestRuns
from clustermodel.policies.interface import Policy
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.theory.capacity_loss import capacity_loss
from clustermodel.workload.job import JobRow
from clustermodel.workload.speedup import LINEAR, DowneySpeedup, Speedup
from tests.backfilling_twin import Trials, Twin
from tests.property.strategies import cases, machines_and_rows
from tests.tiers import some
from tests.twins import TwinJob

SECOND = 1_000_000
Case = tuple[int, list[JobRow]]

SHORT_TESTS = TestRuns(longer_than_s=15, shortest_s=2, longest_s=6)
"""Test runs for jobs of half a minute."""


def run(
    case: Case, policy: str | Policy, *, kill: bool = True, speedup: Speedup = LINEAR, seed: int = 1, explain: bool = False
) -> Outcome:
    nodes, rows = case
    machine = Machine(nodes=nodes, kill_at_estimate=kill)
    rng = np.random.default_rng(seed)
    return simulate(machine, [rows], make_policy(policy), rng, speedup=speedup, explain=explain)


def starts(records: JobRecords) -> dict[int, int]:
    return dict(zip(records.column("id").tolist(), records.column("start").tolist(), strict=True))


def promises(records: JobRecords) -> dict[int, int]:
    ids, reserved = records.column("id").tolist(), records.column("reserved").tolist()
    return {job: promised for job, promised in zip(ids, reserved, strict=True) if promised != UNKNOWN}


class Run(NamedTuple):
    """One run of a job on its nodes, from a record or from a lost try."""

    job: int
    start: int
    end: int
    columns: tuple[int, ...]
    lost: bool
    backfilled: bool


def all_runs(records: JobRecords) -> list[Run]:
    columns = (records.column(name).tolist() for name in ("id", "start", "end", "backfilled"))
    last = list(zip(*columns, strict=True))
    runs = [
        Run(job, start, end, records.columns_of(index), False, bool(flag)) for index, (job, start, end, flag) in enumerate(last)
    ]
    return runs + [
        Run(last[one.job][0], one.start, one.end, one.columns, True, one.backfilled) for one in records.each_stopped_run()
    ]


# Orders that a slow twin can follow: queue order, by length, and one that changes at every pass as R does.


def shortest(job: Any, now: int) -> tuple[object, ...]:
    return job.estimate, _queue_order(job)


def scrambled(job: Any, now: int) -> tuple[object, ...]:
    return (job.id * 7919 + now // SECOND * 31) % 101, _queue_order(job)


def _queue_order(job: Any) -> object:
    return job.order if isinstance(job, TwinJob) else job.queue_order


def alternatives(width: str, most: int) -> Any:
    """Return Perkovic & Keleher 2000, section 7.1, in the twin's words."""

    return {
        "asked": None,
        "half": lambda nodes: [ceil(nodes / 2)],
        "quarter": lambda nodes: [ceil(nodes / 4) if nodes > 4 else ceil(nodes / 2)],
        "greedy": lambda nodes: list(dict.fromkeys([nodes, ceil(nodes / 2), min(2 * nodes, most)])),
    }[width]


@settings(max_examples=cases(400))
@given(
    case=machines_and_rows(underestimates=True, priorities=True),
    guarantees=st.booleans(),
    order=st.sampled_from([None, shortest, scrambled]),
    speculation=st.sampled_from([None, 0.1, 0.5, 0.9, 1.0]),
    tests=st.booleans(),
    width=st.sampled_from(["asked", "asked", "half", "quarter", "greedy"]),
    widening=st.sampled_from([False, False, 1.0, 2.0]),
)
def test_every_combination_has_the_schedule_the_tries_and_the_promises_of_the_slow_twin(
    case: Case, guarantees: bool, order: Any, speculation: float | None, tests: bool, width: str, widening: float | bool
) -> None:
    nodes, rows = case
    policy = Backfilling(
        order=order or "D",
        guarantees="all" if guarantees else "none",
        speculation=speculation,
        test_runs=SHORT_TESTS if tests else False,
        width=width,
        widening=widening,
    )
    records = run(case, policy).records
    twin = Twin(
        nodes,
        guarantees,
        order,
        speculation,
        Trials(15 * SECOND, 2 * SECOND, 6 * SECOND) if tests else None,
        alternatives(width, nodes),
        None if widening is False else float(widening),
    ).run(TwinJob(row.submit, row.id, row.nodes, row.run, row.estimate, row.priority) for row in rows)
    runs = all_runs(records)
    assert {one.job: (one.start, one.end, count(one.columns)) for one in runs if not one.lost} == twin.runs
    lost = sorted((one.job, one.start, one.end, count(one.columns)) for one in runs if one.lost)
    assert lost == sorted(twin.tries)
    assert promises(records) == twin.promises


@given(case=machines_and_rows(underestimates=True, priorities=True))
def test_the_schedulers_without_guarantees_start_jobs_as_a_twin_that_places_all_of_them_at_every_instant(case: Case) -> None:
    nodes, rows = case
    jobs = [TwinJob(row.submit, row.id, row.nodes, row.run, row.estimate, row.priority) for row in rows]

    def by_length(job: TwinJob, now: int) -> object:
        return -job.priority, job.estimate, job.order

    for name, order in (("D-NG", None), ("1/L-NG", by_length)):
        expected = {job: start for job, (start, _, _) in Twin(nodes, False, order).run(jobs).runs.items()}
        assert starts(run(case, name).records) == expected


# Parts that come to the same.


@given(case=machines_and_rows(underestimates=True, priorities=True), kill=st.booleans())
def test_arrival_order_with_guarantees_is_conservative_backfilling(case: Case, kill: bool) -> None:
    conservative = run(case, "conservative", kill=kill).records
    for name in ("D", "backfilling", "backfilling:order=arrival"):
        ours = run(case, name, kill=kill).records
        assert starts(ours) == starts(conservative)
        assert promises(ours) == promises(conservative)


@given(case=machines_and_rows(underestimates=True, priorities=True), kill=st.booleans())
def test_a_reservation_for_everybody_from_the_first_look_on_is_conservative_backfilling(case: Case, kill: bool) -> None:
    ours = run(case, "backfilling:guarantees=selective,threshold=1", kill=kill).records
    conservative = run(case, "conservative", kill=kill).records
    assert starts(ours) == starts(conservative)
    assert not kill or promises(ours) == promises(conservative)


@given(case=machines_and_rows(underestimates=True))
def test_relaxed_backfilling_without_relaxation_is_easy_among_jobs_of_one_priority(case: Case) -> None:
    # Where nothing kills them, EASY does not look again at the moment when a job outlives its estimate.
    ours = run(case, "backfilling:guarantees=relaxed,relaxation=0").records
    easy = run(case, "easy").records
    assert starts(ours) == starts(easy)
    assert promises(ours) == promises(easy)


@given(case=machines_and_rows(underestimates=True, priorities=True), order=st.sampled_from(["1/L", "P/L", "R/L"]))
def test_speculating_on_the_whole_estimate_and_widening_to_what_was_asked_change_nothing(case: Case, order: str) -> None:
    # With guarantees R would be drawn more often, because the phases to come go through the queue even where nothing moves up.
    for suffix in ("-NG",) if order == "R/L" else ("", "-NG"):
        plain = starts(run(case, f"{order}{suffix}").records)
        assert starts(run(case, f"{order}{suffix}:speculation=1.0").records) == plain
        assert starts(run(case, f"{order}{suffix}:widening=true").records) == plain


# Any combination.

GUARANTEES = ["all", "none", "selective", "relaxed"]


@st.composite
def combinations(draw: st.DrawFn, *, guarantees: list[str] = GUARANTEES, adapts: bool = True) -> Backfilling:
    return Backfilling(
        order=draw(st.sampled_from(["D", "P", "R", "1/L", "P/L", "R/L", "widest"])),
        guarantees=draw(st.sampled_from(guarantees)),
        threshold=draw(st.sampled_from([1.0, 1.5, 3.0])),
        relaxation=draw(st.sampled_from([0.0, 0.3, 2.0])),
        speculation=draw(st.sampled_from([None, 0.05, 0.3, 0.9, 1.0])),
        test_runs=draw(st.sampled_from([False, SHORT_TESTS])),
        width=draw(st.sampled_from(["asked", "half", "quarter", "greedy", 3.0, Greedy((0.25, 2.0))])) if adapts else "asked",
        widening=draw(st.sampled_from([False, True, 2.0, 4.0])) if adapts else False,
    )


speedups = st.sampled_from([LINEAR, DowneySpeedup(sigma=0.5), DowneySpeedup(sigma=2.0, parallelism=3.0)])


@settings(max_examples=cases(300))
@given(
    case=machines_and_rows(underestimates=True, priorities=True), policy=combinations(), kill=st.booleans(), speedup=speedups
)
def test_a_node_holds_one_gang_at_a_time_lost_tries_and_widened_gangs_among_them(
    case: Case, policy: Backfilling, kill: bool, speedup: Speedup
) -> None:
    nodes, rows = case
    records = run(case, policy, kill=kill, speedup=speedup).records
    held: dict[int, list[tuple[int, int]]] = {node: [] for node in range(nodes)}
    by_job: dict[int, list[tuple[int, int]]] = {row.id: [] for row in rows}
    for one in all_runs(records):
        by_job[one.job].append((one.start, one.end))
        for low, high in zip(one.columns[::2], one.columns[1::2], strict=True):
            assert 0 <= low < high <= nodes
            for node in range(low, high):
                held[node].append((one.start, one.end))
    for intervals in (*held.values(), *by_job.values()):
        intervals.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(intervals))
    assert all(by_job[row.id][0][0] >= row.submit for row in rows)
    assert np.isin(records.column("ended_as"), [Status.COMPLETED, Status.KILLED]).all()


@settings(max_examples=cases(300))
@given(
    case=machines_and_rows(underestimates=True, priorities=True), policy=combinations(), kill=st.booleans(), speedup=speedups
)
def test_the_books_balance_waste_is_what_tries_lost_and_the_formula_of_kappa_agrees(
    case: Case, policy: Backfilling, kill: bool, speedup: Speedup
) -> None:
    nodes, rows = case
    outcome = run(case, policy, kill=kill, speedup=speedup)
    ledger, records = outcome.ledger, outcome.records
    start, end, width = records.column("start"), records.column("end"), records.allocated
    assert sum(sum(ledger.amount(account)) for account in Account) == nodes * int(end.max() - rows[0].submit)
    assert sum(ledger.amount(Account.USEFUL)) == int(np.dot(width, end - start))
    lost = sum((one.end - one.start) * count(one.columns) for one in records.each_stopped_run())
    assert sum(ledger.amount(Account.LOST)) == lost == int(Jobs.of(records).wasted.sum())
    assert job_columns(Jobs.of(records))["wasted_node_s"].sum() == pytest.approx(lost / SECOND)
    assert job_columns(Jobs.of(records))["tries"].sum() == len(rows) + len(records.stopped_runs.job)
    log = event_log(records, nodes)
    assert log.empty.min() >= 0
    assert log.waiting.min() >= 0
    assert log.waiting[-1] == 0
    assert capacity_loss(log.time_s, log.empty, log.waiting, nodes) == pytest.approx(ledger.capacity_loss, abs=1e-9)


@settings(max_examples=cases(200))
@given(case=machines_and_rows(underestimates=True, priorities=True), policy=combinations(adapts=False), kill=st.booleans())
def test_speculation_never_changes_the_useful_work(case: Case, policy: Backfilling, kill: bool) -> None:
    outcome = run(case, policy, kill=kill)
    records = outcome.records
    work = sum(row.nodes * (min(row.run, row.estimate) if kill else row.run) for row in case[1])
    assert sum(outcome.ledger.amount(Account.USEFUL)) == work
    assert sum(run(case, "fcfs", kill=kill).ledger.amount(Account.USEFUL)) == work
    assert int(np.dot(records.column("nodes"), Jobs.of(records).dedicated)) == work


@settings(max_examples=cases(200))
@given(case=machines_and_rows(underestimates=True, priorities=True), policy=combinations())
def test_with_linear_speedup_widths_change_the_useful_work_by_roundings_alone(case: Case, policy: Backfilling) -> None:
    outcome = run(case, policy)
    work = sum(row.nodes * min(row.run, row.estimate) for row in case[1])
    useful = sum(outcome.ledger.amount(Account.USEFUL))
    assert work <= useful < work + int(outcome.records.allocated.sum())  # each run is rounded up by less than a tick
    assert int(np.dot(outcome.records.column("nodes"), Jobs.of(outcome.records).dedicated)) == work


@settings(max_examples=cases(800))
@given(
    case=machines_and_rows(underestimates=True),
    policy=combinations(guarantees=["all", "selective", "relaxed"]),
    speedup=speedups,
)
def test_no_job_starts_after_its_first_promise_or_bound_in_any_order_with_speculation_and_widths(
    case: Case, policy: Backfilling, speedup: Speedup
) -> None:
    records = run(case, policy, speedup=speedup).records
    begun = starts(records)
    assert all(begun[job] <= promised for job, promised in promises(records).items())


@settings(max_examples=cases(100))
@given(case=machines_and_rows(underestimates=True), policy=combinations(), explain=st.booleans())
def test_explaining_changes_nothing_and_calls_backfilled_what_the_records_do(
    case: Case, policy: Backfilling, explain: bool
) -> None:
    plain, explained = run(case, policy), run(case, policy, explain=True)
    assert all_runs(plain.records) == all_runs(explained.records)
    assert explained.reasons is not None
    backfilled = dict(zip(plain.records.column("id").tolist(), plain.records.column("backfilled").tolist(), strict=True))
    assert {job: reason.rule.startswith("backfilled") for job, reason in explained.reasons.items()} == {
        job: flag == 1 for job, flag in backfilled.items()
    }


# Start-time widening.


@settings(max_examples=cases(200))
@given(
    case=machines_and_rows(underestimates=True),
    order=st.sampled_from(["D", "1/L", "widest"]),
    widest=st.sampled_from([1.0, 3.0]),
)
def test_widening_leaves_every_promise_of_the_first_instant_as_it_was(case: Case, order: str, widest: float) -> None:
    # All jobs come at once, so that with and without widening the first pass is the same; what differs is the last phase.
    nodes, rows = case
    burst = nodes, sorted(row._replace(submit=0) for row in rows)
    plain = run(burst, Backfilling(order=order, width="half")).records
    wide = run(burst, Backfilling(order=order, width="half", widening=widest)).records
    assert promises(wide) == promises(plain)
    began = {job for job, start in starts(plain).items() if start == 0}
    assert {job for job, start in starts(wide).items() if start == 0} == began
    held, held_wide, asked = plain.allocated, wide.allocated, plain.column("nodes")
    at_once = plain.column("start") == 0
    assert (held_wide[at_once] >= held[at_once]).all()
    assert (held_wide <= np.maximum(asked * widest, held)).all()


# The rules, and what is measured.

COMBINED = [
    *NAMED, *(f"{name}:starvation_weight=0.01" for name in ("R-NG", "1/L-NG", "P/L", "D")), "P-NG:levels=1", "P/L:levels=20",
    "R/L-NG:speculation=0.1", "R/L:speculation=0.3", "1/L:speculation=0.5,width=half", "R-NG:width=quarter,widening=true",
    "D:width=greedy,widening=2.0", "P/L-NG:width=greedy", "R/L-NG:speculation=0.2,width=half,widening=true",
    "backfilling:guarantees=selective", "backfilling:guarantees=selective,threshold=1,order=R,speculation=0.2,width=greedy",
    "backfilling:guarantees=relaxed",
    "backfilling:guarantees=relaxed,relaxation=0,order=R/L,speculation=0.2,width=greedy,widening=4",
    "backfilling:order=narrowest,guarantees=none,width=0.3",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("policy", some(COMBINED, one_in=3))
def test_every_name_and_many_combinations_keep_every_rule(policy: str) -> None:
    assert check_policy(policy, failures=True) == []


@pytest.mark.long
@pytest.mark.parametrize("guarantees", GUARANTEES)
def test_so_do_test_runs_of_short_jobs(guarantees: str) -> None:
    policy = Backfilling(order="R/L", guarantees=guarantees, speculation=0.3, test_runs=SHORT_TESTS, width="half", widening=2.0)
    assert check_policy(policy, failures=True) == []


def naive_delay(records: JobRecords, nodes: int, index: int, since: int, began: int, *, only_with_idle_nodes: bool) -> int:
    """Fairness of Yuan et al. 2010, section 3.1, at every event, from the runs alone."""
    order = {
        job: (-priority, submit, job)
        for job, priority, submit in zip(*(records.column(name).tolist() for name in ("id", "priority", "submit")), strict=True)
    }
    ids, needed = (records.column(name).tolist()[index] for name in ("id", "nodes"))
    runs = all_runs(records)
    instants = {*records.column("submit").tolist(), *(one.start for one in runs), *(one.end for one in runs)}
    for now in sorted(instants):
        if not since <= now < began:
            continue
        running = [one for one in runs if one.start <= now < one.end]
        idle = nodes - sum(count(one.columns) for one in running)
        idle += sum(count(one.columns) for one in running if one.start == now and one.backfilled)
        ahead = sum(count(one.columns) for one in running if order[one.job] < order[ids])
        if (idle > 0 or not only_with_idle_nodes) and nodes - ahead >= needed:
            return int(began - now)
    return 0


@settings(max_examples=cases(200))
@given(case=machines_and_rows(underestimates=True, priorities=True), policy=combinations(), bare=st.booleans())
def test_delays_by_later_jobs_count_lost_tries_and_widths(case: Case, policy: Backfilling, bare: bool) -> None:
    nodes, rows = case
    records = run(case, policy).records
    found = delays_by_later_jobs(records, nodes, only_with_idle_nodes=not bare)
    tries = records.stopped_runs
    waits = [*zip(tries.job.tolist(), tries.head_since.tolist(), tries.start.tolist(), strict=True)]
    waits += zip(range(len(rows)), records.column("head_since").tolist(), records.column("start").tolist(), strict=True)
    expected = [0] * len(rows)
    for index, since, began in waits:
        if since != UNKNOWN:
            expected[index] += naive_delay(records, nodes, index, since, began, only_with_idle_nodes=not bare)
    assert found.tolist() == [delay / SECOND for delay in expected]


@given(case=machines_and_rows(underestimates=True), policy=combinations())
def test_the_summary_counts_waste_and_retried_jobs(case: Case, policy: Backfilling) -> None:
    outcome = run(case, policy)
    summary = summarize(outcome.records, outcome.ledger, policy="any", workload="any", seed=1)
    assert summary.retried == int((Jobs.of(outcome.records).attempts > 1).sum())
    assert summary.wasted_load * outcome.ledger.capacity == pytest.approx(Jobs.of(outcome.records).wasted.sum())
    assert summary.jobs == len(case[1])
    assert summary.mean_bounded_slowdown_perkovic >= 0


# The guard against starvation.


def endless(until: int) -> Workload:
    """Every 5 s a job of two nodes for 10 s, so that two such jobs always run; and at 7 s a job of four nodes for 100 s."""
    rows = [JobRow(5 * k * SECOND, k + 1, 2, 10 * SECOND, 10 * SECOND, -1, -1, 0, -1) for k in range(until // 5)]
    return Workload([*rows, JobRow(7 * SECOND, 100_000, 4, 100 * SECOND, 100 * SECOND, -1, -1, 0, -1)])


def wide_wait(policy: str, until: int) -> float:
    jobs = Scenario(machine=Machine(nodes=4), workload=endless(until), policy=policy).run().jobs.set_index("job")
    return float(jobs.loc[100_000, "wait_s"])


@pytest.mark.parametrize("until", [500, 1000, 5000])
def test_the_starvation_guard_bounds_the_wait_of_a_wide_job_under_endless_small_ones(until: int) -> None:
    # 1/L of a small job is 1/10, of the wide one 1/100.  Without the weight the wide job waits until the stream ends: the last
    # small job starts at until - 5 and ends at until + 5.
    assert wide_wait("1/L-NG", until) == until + 5 - 7
    # With the weight w a small job that comes d seconds after the wide one is behind it once w x d > 1/10 - 1/100, whatever
    # both have waited since; none that came earlier waits, for they start when they come.  From the first pass after that on,
    # which comes within 5 s, the wide job is placed first, where the two running jobs have ended, within 10 s.
    for weight in (0.01, 0.001, 0.0005):
        assert wide_wait(f"1/L-NG:starvation_weight={weight}", until) <= min(0.09 / weight + 5 + 10, until + 5 - 7)
    assert wide_wait("1/L-NG:starvation_weight=0.001", until) == 0.09 / 0.001 + 3 + 5
