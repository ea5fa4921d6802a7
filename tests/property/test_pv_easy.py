"""PV-EASY (Yuan et al. 2010): against a slow twin written from the paper, and what holds in every run."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, ContextSwitch, Machine, make_policy
from clustermodel.machine.node_set import NodeSet
from clustermodel.measure.job_table import Jobs
from clustermodel.measure.metrics import Summary, summarize
from clustermodel.measure.timeline import event_log
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.run_attempts import PREEMPTIONS, UNKNOWN
from clustermodel.sim.simulation import Outcome, simulate
from clustermodel.theory.capacity_loss import capacity_loss
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows
from tests.pv_easy_twin import PvEasyTwin
from tests.twins import TwinJob

SECOND = 1_000_000
Case = tuple[int, list[JobRow]]

PREDICTORS = ["estimate", "perfect", "last", "last-two"]
ALL_PREDICTORS = [*PREDICTORS, "virtual:0.4", "virtual:1"]
"""Those that predict the same for a job at all times."""


class Setting(NamedTuple):
    """A way to preempt, and what it costs in seconds."""

    mode: str
    checkpoint_s: int = 0
    restart_s: int = 0
    kill: bool = True

    def machine(self, nodes: int) -> Machine:
        costs = Checkpointing(checkpoint_s=self.checkpoint_s, restart_s=self.restart_s)
        return Machine(nodes=nodes, kill_at_estimate=self.kill, checkpointing=costs, context_switch=ContextSwitch(seconds=0.0))


def settings_of_preemption(*, costs: bool) -> st.SearchStrategy[Setting]:
    none, cost, kill = st.just(0), st.integers(0, 6), st.booleans()
    free = st.builds(Setting, MODES, none, none, kill)
    paid = st.builds(Setting, st.just("checkpoint"), cost, cost, kill)
    return free | paid if costs else free


MODES = st.sampled_from(["kill", "checkpoint", "suspend"])
"""Submit, id, nodes, run time in seconds."""

workloads = machines_and_rows(underestimates=True) | machines_and_rows(underestimates=True, priorities=True)
one_priority = machines_and_rows(underestimates=True)


def name(slp: bool, vb: bool, predictor: str, mode: str) -> str:
    return f"pv-easy:slp={str(slp).lower()},vb={str(vb).lower()},predictor={predictor},mode={mode}"


def run(case: Case, policy: str, setting: Setting, *, seed: int = 1) -> Outcome:
    nodes, rows = case
    return simulate(setting.machine(nodes), [rows], make_policy(policy), np.random.default_rng(seed))


def twin(case: Case, slp: bool, vb: bool, predictor: str, setting: Setting) -> PvEasyTwin:
    nodes, rows = case
    costs = setting.checkpoint_s * SECOND, setting.restart_s * SECOND
    jobs = [TwinJob(row.submit, row.id, row.nodes, row.run, row.estimate, row.priority, row.user) for row in rows]
    return PvEasyTwin(nodes, slp, vb, predictor, setting.mode, *costs, setting.kill).run(jobs)


def last_runs(records: JobRecords) -> dict[int, tuple[int, int]]:
    ids, start, end = (records.column(column).tolist() for column in ("id", "start", "end"))
    return {job: (began, ended) for job, began, ended in zip(ids, start, end, strict=True)}


def preempted_runs(records: JobRecords) -> list[tuple[int, int, int, int]]:
    ids, tries = records.column("id"), records.stopped_runs
    assert np.isin(tries.ended_as, PREEMPTIONS).all()
    columns = ids[tries.job], tries.start, tries.end, tries.nodes * tries.lost
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def promises(records: JobRecords) -> dict[int, int]:
    ids, reserved = records.column("id").tolist(), records.column("reserved").tolist()
    return {job: promised for job, promised in zip(ids, reserved, strict=True) if promised != UNKNOWN}


def summary(outcome: Outcome) -> Summary:
    return summarize(outcome.records, outcome.ledger, policy="any", workload="any", seed=1)


def total(ledger: Ledger, account: Account) -> int:
    return sum(ledger.amount(account))


# The twin.


def capacity_loss_of(case: Case, expected: PvEasyTwin) -> float:
    """Zhang et al. 2003, eq. (2), from the runs of the twin: nodes that do not work while a job waits."""
    nodes, rows = case
    size = {row.id: row.nodes for row in rows}
    runs = [(job, start, end) for job, (start, end) in expected.runs.items()]
    runs += [(one.job, one.start, one.end) for one in expected.preempted]
    since = [(row.id, row.submit) for row in rows] + [(one.job, one.end) for one in expected.preempted]
    waits = [(came, min(start for job, start, _ in runs if job == waiting and start >= came)) for waiting, came in since]
    overheads = [(one.start, one.end) for one in expected.overheads]
    first, last = rows[0].submit, max(end for _, _, end in runs)
    spans = [*waits, *overheads, *((start, end) for _, start, end in runs)]
    instants = sorted({first, last} | {time for span in spans for time in span})
    lost = 0
    for now, until in pairwise(instants):
        if any(came <= now < began for came, began in waits):
            held = sum(size[job] for job, start, end in runs if start <= now < end)
            idling = sum(one.nodes for one in expected.overheads if one.start <= now < one.end)
            lost += (nodes - held + idling) * (until - now)
    return lost / (nodes * (last - first))


@settings(max_examples=cases(600))
@given(
    case=workloads,
    slp=st.booleans(),
    vb=st.booleans(),
    predictor=st.sampled_from(PREDICTORS),
    setting=settings_of_preemption(costs=True),
)
def test_runs_preempted_runs_promises_overheads_and_kappa_are_those_of_the_slow_twin(
    case: Case, slp: bool, vb: bool, predictor: str, setting: Setting
) -> None:
    outcome = run(case, name(slp, vb, predictor, setting.mode), setting)
    records, ledger = outcome.records, outcome.ledger
    expected = twin(case, slp, vb, predictor, setting)
    assert last_runs(records) == expected.runs
    assert preempted_runs(records) == sorted(expected.preempted)
    if not setting.checkpoint_s:  # a job for which others are being checkpointed is not promised anything
        assert promises(records) == expected.promises
    for account in (Account.CHECKPOINT, Account.RESTART):
        spent = sum(one.nodes * (one.end - one.start) for one in expected.overheads if one.what == account.value)
        assert total(ledger, account) == spent
    assert ledger.capacity_loss == pytest.approx(capacity_loss_of(case, expected), abs=1e-9)


class Awkward(NamedTuple):
    """A case that was wrong once."""

    what: str
    nodes: int
    jobs: list[tuple[int, int, int, int, int, int]]
    """Submit, id, nodes, run time, estimate, priority, in seconds."""
    predictor: str
    setting: Setting
    vb: bool = True


AWKWARD = [
    Awkward(
        "a job of higher priority that comes and starts while the head is blocked is no candidate any more",
        3, [(0, 1, 1, 10, 10, 0), (1, 2, 3, 5, 5, 0), (2, 3, 1, 5, 5, 1)],
        "estimate", Setting("kill"),
    ),
    Awkward(
        "nodes that are coming, but not enough for the head, keep nobody from being backfilled",
        8, [(0, 2, 1, 1, 1, 0), (0, 6, 5, 2, 2, 0), (0, 8, 3, 1, 1, 0), (0, 10, 1, 2, 2, 0), (1, 15, 6, 1, 1, 0),
            (2, 16, 1, 1, 1, 0)],
        "estimate", Setting("checkpoint", 6, 3),
    ),
    Awkward(
        "where one of two preempted gangs leaves at once, all is looked at again before anything is backfilled",
        5, [(0, 9, 1, 9, 1, 0), (0, 11, 1, 2, 1, 0), (1, 14, 4, 2, 1, 1), (2, 7, 2, 2, 1, 1), (8, 6, 2, 1, 1, 2)],
        "perfect", Setting("checkpoint", 6, 6, kill=False),
    ),
    Awkward(
        "without ventures nothing is backfilled past the shadow time because nodes are coming later than that",
        4, [(0, 2, 2, 4, 4, 0), (0, 10, 1, 2, 2, 0), (0, 12, 1, 2, 2, 0), (1, 1, 1, 3, 3, 1), (3, 14, 2, 2, 2, 1)],
        "estimate", Setting("checkpoint", 3, 1), vb=False,
    ),
]  # fmt: skip


@pytest.mark.parametrize("awkward", AWKWARD, ids=lambda awkward: awkward.what)
def test_awkward_cases_are_as_in_the_twin(awkward: Awkward) -> None:
    rows = [
        JobRow(submit * SECOND, job, nodes, run_s * SECOND, estimate * SECOND, -1, -1, priority, -1)
        for submit, job, nodes, run_s, estimate, priority in awkward.jobs
    ]
    case = awkward.nodes, rows
    records = run(case, name(True, awkward.vb, awkward.predictor, awkward.setting.mode), awkward.setting).records
    expected = twin(case, True, awkward.vb, awkward.predictor, awkward.setting)
    assert last_runs(records) == expected.runs
    assert preempted_runs(records) == sorted(expected.preempted)


@settings(max_examples=cases(300))
@given(
    case=workloads,
    kill=st.booleans(),
    predictor=st.sampled_from(ALL_PREDICTORS),
    correction=st.sampled_from(["second", "estimate", "tsafrir"]),  # PV-EASY asks for "double" more often
)
def test_without_preemption_and_ventures_it_is_easy(case: Case, kill: bool, predictor: str, correction: str) -> None:
    setting, options = Setting("kill", kill=kill), f"predictor={predictor},correction={correction}"
    ours, easy = (run(case, policy, setting) for policy in (f"pv-easy:slp=false,vb=false,{options}", f"easy:{options}"))
    assert last_runs(ours.records) == last_runs(easy.records)
    assert promises(ours.records) == promises(easy.records)


# Strict fairness.


@settings(max_examples=cases(300))
@given(
    case=one_priority, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), setting=settings_of_preemption(costs=False)
)
def test_preemption_leaves_nobody_delayed_by_later_jobs_whatever_is_predicted(
    case: Case, vb: bool, predictor: str, setting: Setting
) -> None:
    found = summary(run(case, name(True, vb, predictor, setting.mode), setting))
    assert found.delayed == 0
    assert found.reservation_violations == 0


@settings(max_examples=cases(300))
@given(case=one_priority, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), cost=st.integers(1, 6))
def test_where_saving_takes_time_nobody_is_delayed_for_longer_than_that(
    case: Case, vb: bool, predictor: str, cost: int
) -> None:
    setting = Setting("checkpoint", cost, 2)
    found = summary(run(case, name(True, vb, predictor, setting.mode), setting))
    assert found.longest_delay_by_later_s <= cost


@settings(max_examples=cases(300))
@given(case=workloads, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), setting=settings_of_preemption(costs=False))
def test_while_a_job_waits_at_the_head_those_ahead_of_it_hold_so_many_nodes_that_it_does_not_fit(
    case: Case, vb: bool, predictor: str, setting: Setting
) -> None:
    nodes, rows = case
    records = run(case, name(True, vb, predictor, setting.mode), setting).records
    by_id = {row.id: row for row in rows}
    order = {row.id: (-row.priority, row.submit, row.id) for row in rows}
    runs = [(job, *span) for job, span in last_runs(records).items()] + [one[:3] for one in preempted_runs(records)]
    for now in {row.submit for row in rows} | {time for _, *span in runs for time in span}:
        running = {job for job, start, end in runs if start <= now < end}
        over = {job for job, (_, end) in last_runs(records).items() if end <= now}
        waiting = [row.id for row in rows if row.submit <= now and row.id not in running | over]
        if waiting:
            head = min(waiting, key=lambda job: order[job])
            ahead = sum(by_id[job].nodes for job in running if order[job] < order[head])
            assert nodes - ahead < by_id[head].nodes


@settings(max_examples=cases(200))
@given(case=one_priority, vb=st.booleans(), predictor=st.sampled_from(["estimate", "perfect"]), mode=MODES)
def test_with_predictions_that_are_never_too_short_no_job_starts_after_its_promise(
    case: Case, vb: bool, predictor: str, mode: str
) -> None:
    records = run(case, name(True, vb, predictor, mode), Setting(mode)).records
    begun = last_runs(records)
    assert all(begun[job][0] <= promised for job, promised in promises(records).items())


@settings(max_examples=cases(150))
@given(case=one_priority, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), kill=st.booleans())
def test_no_job_ends_later_than_in_fcfs(case: Case, vb: bool, predictor: str, kill: bool) -> None:
    # Of the jobs ahead each ends no later than in FCFS, and those behind are out of the way when it is first: by induction.
    for mode in ("kill", "checkpoint", "suspend"):
        setting = Setting(mode, kill=kill)
        ours = last_runs(run(case, name(True, vb, predictor, mode), setting).records)
        fcfs = last_runs(run(case, "fcfs", setting).records)
        assert all(ours[job][1] <= fcfs[job][1] for job in ours)


# The nodes.


@settings(max_examples=cases(150))
@given(case=workloads, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), setting=settings_of_preemption(costs=True))
def test_a_node_holds_one_gang_at_a_time_and_a_job_runs_once_at_a_time(
    case: Case, vb: bool, predictor: str, setting: Setting
) -> None:
    nodes, rows = case
    records = run(case, name(True, vb, predictor, setting.mode), setting).records
    spans: list[tuple[int, int, int, NodeSet]] = [
        (index, start, end, records.columns_of(index))
        for index, (start, end) in enumerate(zip(*(records.column(edge).tolist() for edge in ("start", "end")), strict=True))
    ]
    spans += [(one.job, one.start, one.end, one.columns) for one in records.each_stopped_run()]
    held: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for job, start, end, columns in spans:
        of_nodes = [node for low, high in zip(columns[::2], columns[1::2], strict=True) for node in range(low, high)]
        assert len(of_nodes) == rows[job].nodes
        assert set(of_nodes) <= set(range(nodes))
        assert end > start >= rows[job].submit
        for holder in [("job", job), *(("node", node) for node in of_nodes)]:
            held.setdefault(holder, []).append((start, end))
    for intervals in held.values():
        intervals.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(intervals))


# The books.


@st.composite
def machines_with_little_room(draw: st.DrawFn, nodes: int) -> Machine:
    """Return one whose checkpoint store and memories take few tasks."""
    store = draw(st.none() | st.integers(1, 4))
    costs = Checkpointing(checkpoint_s=draw(st.integers(0, 6)), restart_s=draw(st.integers(0, 6)), max_tasks_per_slice=store)
    return Machine(
        nodes=nodes,
        kill_at_estimate=draw(st.booleans()),
        checkpointing=costs,
        context_switch=ContextSwitch(seconds=draw(st.integers(0, 4))),
        suspended_per_node=draw(st.none() | st.integers(0, 2)),
    )


@settings(max_examples=cases(450))
@given(
    case=workloads, data=st.data(), slp=st.booleans(), vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), mode=MODES
)
def test_the_books_balance_on_machines_with_little_room_for_saved_work(
    case: Case, data: st.DataObject, slp: bool, vb: bool, predictor: str, mode: str
) -> None:
    nodes, rows = case
    machine = data.draw(machines_with_little_room(nodes))
    outcome = simulate(machine, [rows], make_policy(name(slp, vb, predictor, mode)), np.random.default_rng(1))
    records, ledger = outcome.records, outcome.ledger
    work = sum(row.nodes * (min(row.run, row.estimate) if machine.kill_at_estimate else row.run) for row in rows)
    assert total(ledger, Account.USEFUL) == work
    assert total(ledger, Account.LOST) == int(Jobs.of(records).wasted.sum())
    may_lose = mode == "kill" or (mode == "suspend" and machine.suspended_per_node is not None)
    assert may_lose or total(ledger, Account.LOST) == 0
    assert sum(total(ledger, account) for account in Account) == ledger.capacity
    log = event_log(records, nodes)
    loss = capacity_loss(log.time_s, log.empty + log.held_up, log.waiting, nodes)
    assert loss == pytest.approx(ledger.capacity_loss, abs=1e-9)
