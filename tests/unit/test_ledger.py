"""The capacity ledger's arithmetic, and that it agrees with the formulas of Zhang et al. 2003 on the event log."""

from collections.abc import Iterable

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustermodel as cm
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Decision
from clustermodel.recording.ledger import OVERHEADS, Account, Amount, Ledger
from clustermodel.recording.run_attempts import Status
from clustermodel.theory import capacity_loss
from tests.timeline.timeline import play


def example() -> Ledger:
    """Four nodes from tick 100 to 150: all idle for 10, one idle for 20 while a job waits, none idle for 20."""
    ledger = Ledger(4)
    ledger.settle(100, 4, waiting=False)
    ledger.settle(110, 1, waiting=True)
    ledger.settle(130, 0, waiting=False)
    ledger.settle(150, 4, waiting=False)
    return ledger


def test_time_between_instants_is_charged_to_idle_in_the_state_that_held_then() -> None:
    ledger = example()
    # 4 x 10 with an empty queue; 1 x 20 while a job waited
    assert ledger.amount(Account.IDLE) == Amount(queue_empty=40, job_waiting=20)
    ledger.charge(Account.USEFUL, 140)  # 4 x 50 - 60
    ledger.close()
    assert (ledger.start, ledger.end, ledger.capacity) == (100, 150, 200)
    assert ledger.utilization == 140 / 200
    assert ledger.capacity_loss == 20 / 200


def test_overheads_are_lost_capacity_only_while_a_job_waits_and_work_never_is() -> None:
    ledger = example()
    ledger.charge(Account.CONTEXT_SWITCH, 5, waiting=True)
    ledger.charge(Account.CHECKPOINT, 6, waiting=True)
    ledger.charge(Account.CHECKPOINT, 7, waiting=False)
    ledger.charge(Account.RESTART, 8, waiting=True)
    ledger.charge(Account.BLOCKED, 9, waiting=True)
    ledger.charge(Account.LOST, 10)
    ledger.charge(Account.USEFUL, 95)  # 140 - 45
    ledger.close()
    assert ledger.amount(Account.CHECKPOINT) == Amount(7, 6)
    assert ledger.capacity_loss == (20 + 5 + 6 + 8 + 9) / 200
    assert ledger.utilization == 95 / 200
    assert set(Account) - set(OVERHEADS) == {Account.USEFUL, Account.LOST, Account.DOWN, Account.RESERVED}


@pytest.mark.parametrize(("useful", "total"), [(139, 199), (141, 201)])
def test_books_that_are_one_node_tick_off_do_not_close(useful: int, total: int) -> None:
    ledger = example()
    ledger.charge(Account.USEFUL, useful)
    with pytest.raises(cm.LedgerError) as refused:
        ledger.close()
    assert str(refused.value) == (
        f"the ledger's accounts sum to {total} node-ticks, but 4 nodes x 50 ticks are 200: "
        f"<Ledger of 4 nodes; useful: {useful}, lost: 0, context switch: 0, checkpoint: 0, restart: 0, resize: 0, boot: 0, "
        "startup: 0, epilog: 0, blocked: 0, idle: 60, down: 0, reserved: 0, off: 0>"
    )
    assert isinstance(refused.value, cm.ClusterModelError)


def test_amounts_are_exact_beyond_what_a_float_or_64_bits_hold() -> None:
    ledger = Ledger(10**12)
    ledger.settle(0, 1, waiting=True)
    ledger.settle(10**18 + 1, 0, waiting=False)
    assert ledger.amount(Account.IDLE) == Amount(0, 10**18 + 1)
    ledger.charge(Account.USEFUL, (10**12 - 1) * (10**18 + 1) - 1)
    with pytest.raises(cm.LedgerError):
        ledger.close()
    ledger.charge(Account.USEFUL, 1)
    ledger.close()


def test_a_ledger_without_time_has_no_shares() -> None:
    untouched, instant = Ledger(4), Ledger(4)
    instant.settle(70, 4, waiting=False)
    for ledger, begin in ((untouched, 0), (instant, 70)):
        ledger.close()
        assert (ledger.start, ledger.end, ledger.capacity) == (begin, begin, 0)
        assert pd.isna([ledger.utilization, ledger.capacity_loss, ledger.capacity_loss_with_outages]).all()
        assert ledger.frame["share"].isna().all()


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_idle_time_is_that_of_a_tick_by_tick_account(instants: list[tuple[int, int, bool]]) -> None:
    ledger, now, by_tick = Ledger(5), 0, [0, 0]
    for length, idle, waiting in instants:
        ledger.settle(now, idle, waiting)
        for _ in range(length):
            by_tick[waiting] += idle
            now += 1
    ledger.settle(now, 5, waiting=False)
    assert list(ledger.amount(Account.IDLE)) == by_tick


def test_the_frame_splits_overheads_by_the_queue_and_shares_add_up_to_one() -> None:
    ledger = Ledger(2)
    ledger.settle(0, 2, waiting=False)
    ledger.settle(3_000_000, 1, waiting=True)  # 3 s x 2 nodes idle, nobody waiting
    ledger.settle(5_000_000, 0, waiting=False)  # 2 s x 1 node idle while a job waits
    ledger.charge(Account.USEFUL, 2_000_000)  # the other node, 2 s
    ledger.close()
    frame = ledger.frame
    assert list(frame.index) == [
        "useful",
        "lost",
        "context switch",
        "checkpoint",
        "restart",
        "resize",
        "boot",
        "startup",
        "epilog",
        "blocked",
        "idle",
        "down",
        "reserved",
        "off",
    ]
    assert list(frame) == ["queue_empty_node_s", "job_waiting_node_s", "total_node_s", "share"]
    assert frame.loc["idle"].tolist() == [6, 2, 8, 0.8]
    assert frame.loc["useful", ["total_node_s", "share"]].tolist() == [2, 0.2]
    assert frame.loc[["useful", "lost"], ["queue_empty_node_s", "job_waiting_node_s"]].isna().all(axis=None)
    assert frame["share"].sum() == 1


LIMIT_S = 4 * 3600


class Impatient:
    """FCFS that kills whatever has run for four hours: a policy that loses work."""

    name = "impatient"

    def start(self, setup: cm.Setup) -> object:
        """Nothing to remember."""
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> Iterable[Decision]:
        limit = LIMIT_S * 1_000_000
        due = [gang for gang in view.running.values() if view.now - gang.start >= limit]
        yield from (cm.Kill(job=gang.job) for gang in due)
        idle, starts = view.idle, [gang.start for gang in view.running.values() if gang not in due]
        for job in view.waiting.values():
            if job.nodes > idle:
                break
            idle -= job.nodes
            starts.append(view.now)
            yield cm.Start(job=job)
        if starts:
            yield cm.WakeAt(time=min(starts) + limit)


POLICIES: list[str | Impatient] = ["fcfs", "easy", "conservative", "easy:backfill_order=shortest", Impatient()]


@pytest.fixture(scope="module", params=POLICIES, ids=lambda policy: getattr(policy, "name", policy))
def run(request: pytest.FixtureRequest) -> Result:
    workload = cm.synthetic_workload(jobs=400, nodes=32, load=0.95, seed=2)
    return cm.Scenario(machine=cm.Machine(nodes=32), workload=workload, policy=request.param).run()


def test_every_node_tick_from_first_submission_to_last_end_is_in_one_account(run: Result) -> None:
    ledger = run.ledger
    assert ledger.start == run.records.column("submit").min()
    assert ledger.end == run.records.column("end").max()
    assert sum(sum(ledger.amount(account)) for account in Account) == ledger.capacity == 32 * (ledger.end - ledger.start)


def test_the_ledger_agrees_with_the_papers_formulas_from_the_event_log(run: Result) -> None:
    log, jobs = run.events, run.jobs
    kappa = capacity_loss.capacity_loss(log.time_s, log.empty, log.waiting, 32)
    assert kappa == pytest.approx(run.ledger.capacity_loss, abs=1e-9)
    assert kappa > 0.01  # there was something to lose
    counts = jobs[jobs["status"] != "aborted"]
    rho = capacity_loss.utilization(counts["nodes"], counts["run_s"], float(log.time_s[-1]), 32)
    assert rho == pytest.approx(run.ledger.utilization, abs=1e-9)


def test_the_work_of_jobs_that_the_policy_killed_is_lost_and_no_other(run: Result) -> None:
    start, end, nodes, ended_as = (run.records.column(name) for name in ("start", "end", "nodes", "ended_as"))
    work, aborted = nodes * (end - start), ended_as == Status.ABORTED
    assert aborted.any() == (run.scenario.label == "impatient")
    assert ((end - start)[aborted] == LIMIT_S * 1_000_000).all()
    assert sum(run.ledger.amount(Account.LOST)) == work[aborted].sum()
    assert sum(run.ledger.amount(Account.USEFUL)) == work[~aborted].sum()


def test_work_killed_at_the_estimate_is_useful() -> None:
    result = play(2, "1 0 2 10 4", "fcfs")
    assert result.jobs["status"].tolist() == ["killed"]
    assert result.ledger.amount(Account.USEFUL) == Amount(8_000_000, 0)  # 2 nodes x 4 s


def test_the_horizon_begins_with_the_first_job_that_is_not_rejected_and_ends_with_the_last_end() -> None:
    ledger = play(4, "1 10 9 5\n2 100 4 10\n3 105 4 10\n4 1000 9 5", "easy").ledger
    assert (ledger.start, ledger.end) == (100_000_000, 120_000_000)
    assert ledger.utilization == 1
    assert ledger.capacity_loss == 0


def test_a_run_in_which_nothing_ran_has_an_empty_ledger() -> None:
    ledger = play(4, "1 10 9 5", "easy").ledger
    assert ledger.capacity == 0
    assert pd.isna(ledger.utilization)
