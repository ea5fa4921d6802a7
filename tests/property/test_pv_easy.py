"""PV-EASY (004): against a slow twin written from the paper, and what holds in every run."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, ContextSwitch, Machine, check_policy, make_policy
from clustermodel.job import JobRow
from clustermodel.measure.ledger import Account, Ledger
from clustermodel.measure.metrics import Summary, summarize
from clustermodel.measure.records import PREEMPTIONS, UNKNOWN, JobRecords
from clustermodel.sim.simulation import Outcome, simulate
from tests.property.strategies import machines_and_rows
from tests.pv_easy_twin import PvEasyTwin
from tests.twins import TwinJob

SECOND = 1_000_000
Case = tuple[int, list[JobRow]]

PREDICTORS = ["estimate", "perfect", "last", "last-two"]
ALL_PREDICTORS = [*PREDICTORS, "virtual:0.4", "virtual:1"]


class Setting(NamedTuple):
    """A way to preempt, and what it costs in seconds."""

    mode: str
    checkpoint_s: int = 0
    restart_s: int = 0
    kill: bool = True

    def machine(self, nodes: int) -> Machine:
        costs = Checkpointing(checkpoint_s=self.checkpoint_s, restart_s=self.restart_s)
        return Machine(nodes=nodes, kill_at_estimate=self.kill, checkpointing=costs, context_switch=ContextSwitch(seconds=0.0))


def modes(*, costs: bool) -> st.SearchStrategy[Setting]:
    free = st.builds(Setting, st.sampled_from(["kill", "checkpoint", "suspend"]), kill=st.booleans())
    paid = st.builds(Setting, st.just("checkpoint"), st.integers(0, 6), st.integers(0, 6), st.booleans())
    return free | paid if costs else free


THREE = [(0, 1, 1, 10), (1, 2, 2, 5), (2, 3, 1, 20)]
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
    ids, tries = records.column("id"), records.earlier_tries
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


@settings(max_examples=600, deadline=None)
@given(
    case=workloads,
    slp=st.booleans(),
    vb=st.booleans(),
    predictor=st.sampled_from(PREDICTORS),
    setting=modes(costs=True),
)
def test_runs_preempted_runs_promises_and_overheads_are_those_of_the_slow_twin(
    case: Case, slp: bool, vb: bool, predictor: str, setting: Setting
) -> None:
    outcome = run(case, name(slp, vb, predictor, setting.mode), setting)
    records, ledger = outcome.records, outcome.ledger
    expected = twin(case, slp, vb, predictor, setting)
    assert last_runs(records) == expected.runs
    assert preempted_runs(records) == sorted(expected.preempted)
    assert promises(records) == expected.promises
    for account in (Account.CHECKPOINT, Account.RESTART):
        spent = sum(one.nodes * (one.end - one.start) for one in expected.overheads if one.what == account.value)
        assert total(ledger, account) == spent


@settings(max_examples=150, deadline=None)
@given(case=workloads, kill=st.booleans(), mode=st.sampled_from(["kill", "checkpoint", "suspend"]))
def test_without_preemption_and_ventures_and_with_estimates_it_is_easy(case: Case, kill: bool, mode: str) -> None:
    setting = Setting(mode, kill=kill)
    ours, easy = run(case, name(False, False, "estimate", mode), setting), run(case, "easy", setting)
    assert last_runs(ours.records) == last_runs(easy.records)


# Strict fairness.


@settings(max_examples=300, deadline=None)
@given(case=one_priority, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), setting=modes(costs=False))
def test_preemption_leaves_nobody_delayed_by_later_jobs_whatever_is_predicted(
    case: Case, vb: bool, predictor: str, setting: Setting
) -> None:
    found = summary(run(case, name(True, vb, predictor, setting.mode), setting))
    assert found.delayed == 0
    assert found.reservation_violations == 0


@settings(max_examples=150, deadline=None)
@given(case=one_priority, vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), kill=st.booleans())
def test_no_job_ends_later_than_in_fcfs(case: Case, vb: bool, predictor: str, kill: bool) -> None:
    # Of the jobs ahead each ends no later than in FCFS, and those behind are out of the way when it is first: by induction.
    for mode in ("kill", "checkpoint", "suspend"):
        setting = Setting(mode, kill=kill)
        ours = last_runs(run(case, name(True, vb, predictor, mode), setting).records)
        fcfs = last_runs(run(case, "fcfs", setting).records)
        assert all(ours[job][1] <= fcfs[job][1] for job in ours)


# The books.


@settings(max_examples=300, deadline=None)
@given(
    case=workloads,
    slp=st.booleans(),
    vb=st.booleans(),
    predictor=st.sampled_from(ALL_PREDICTORS),
    setting=modes(costs=True),
)
def test_the_books_have_the_work_of_all_jobs_and_the_waste_of_all_records(
    case: Case, slp: bool, vb: bool, predictor: str, setting: Setting
) -> None:
    outcome = run(case, name(slp, vb, predictor, setting.mode), setting)
    records, ledger = outcome.records, outcome.ledger
    work = sum(row.nodes * (min(row.run, row.estimate) if setting.kill else row.run) for row in case[1])
    assert total(ledger, Account.USEFUL) == work
    assert total(ledger, Account.LOST) == int(records.wasted.sum())
    assert setting.mode == "kill" or total(ledger, Account.LOST) == 0
    assert sum(total(ledger, account) for account in Account) == ledger.capacity


def capacity_loss(case: Case, expected: PvEasyTwin) -> float:
    """002, eq. (2), from the runs of the twin: nodes that do not work while a job waits."""
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


@settings(max_examples=150, deadline=None)
@given(
    case=workloads,
    slp=st.booleans(),
    vb=st.booleans(),
    predictor=st.sampled_from(PREDICTORS),
    setting=modes(costs=True),
)
def test_kappa_of_the_books_is_that_of_the_twins_runs(
    case: Case, slp: bool, vb: bool, predictor: str, setting: Setting
) -> None:
    outcome = run(case, name(slp, vb, predictor, setting.mode), setting)
    expected = capacity_loss(case, twin(case, slp, vb, predictor, setting))
    assert outcome.ledger.capacity_loss == pytest.approx(expected, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    case=workloads, slp=st.booleans(), vb=st.booleans(), predictor=st.sampled_from(ALL_PREDICTORS), setting=modes(costs=True)
)
def test_the_same_seed_gives_the_same_records(case: Case, slp: bool, vb: bool, predictor: str, setting: Setting) -> None:
    first, second = (run(case, name(slp, vb, predictor, setting.mode), setting, seed=3).records for _ in range(2))
    assert last_runs(first) == last_runs(second)
    assert preempted_runs(first) == preempted_runs(second)


@pytest.mark.parametrize("mode", ["kill", "checkpoint", "suspend"])
@pytest.mark.parametrize("predictor", ALL_PREDICTORS)
def test_every_rule_is_kept(predictor: str, mode: str) -> None:
    for slp, vb in ((True, True), (True, False), (False, True)):
        assert check_policy(name(slp, vb, predictor, mode)) == []


def test_the_twin_is_not_vacuous() -> None:
    # Two nodes.  2 (both nodes) is blocked until 1 has ended at 10; 3, which runs for 20, is backfilled as a venture at 2.
    case = (
        2,
        [JobRow(submit * SECOND, job, nodes, run * SECOND, run * SECOND, -1, -1, 0, -1) for submit, job, nodes, run in THREE],
    )
    killed = twin(case, True, True, "estimate", Setting("kill"))
    assert killed.runs == {1: (0, 10 * SECOND), 2: (10 * SECOND, 15 * SECOND), 3: (15 * SECOND, 35 * SECOND)}
    assert killed.preempted == [(3, 2 * SECOND, 10 * SECOND, 8 * SECOND)]
    assert killed.promises == {2: 10 * SECOND, 3: 15 * SECOND}
    # It has worked for 8 when it is checkpointed until 13, and is restarted from 18 to 20.
    written = twin(case, True, True, "estimate", Setting("checkpoint", 3, 2))
    assert written.runs == {1: (0, 10 * SECOND), 2: (13 * SECOND, 18 * SECOND), 3: (18 * SECOND, 32 * SECOND)}
    assert written.preempted == [(3, 2 * SECOND, 13 * SECOND, 0)]
    assert sorted(written.overheads) == [
        ("checkpoint", 10 * SECOND, 13 * SECOND, 1),
        ("restart", 18 * SECOND, 20 * SECOND, 1),
    ]
    # EASY lets it wait.
    assert twin(case, False, False, "estimate", Setting("kill")).runs[3] == (15 * SECOND, 35 * SECOND)
