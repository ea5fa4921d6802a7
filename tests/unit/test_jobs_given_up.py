"""Jobs that can start at no time any more are rejected, or aborted if they have run; the others go on."""

from typing import Any

import pytest

from clustermodel import (
    Account,
    Checkpointing,
    FairShare,
    Job,
    Limits,
    Machine,
    Outages,
    Power,
    Reservation,
    Result,
    Scenario,
    Site,
    StrandedJobsError,
    TimeSlicing,
    Workload,
)
from clustermodel.measure.input_notes import run_notes
from clustermodel.plans.windows import Windows
from clustermodel.policies.interface import Setup
from clustermodel.policies.registry import policy_names

KNOWN = ("fcfs", "easy", "conservative", "bf", "fifo-preempt", "las", "gs", "D", "equipartition", "expand", "shrink-to-admit")
OTHERS = {
    "gs",
    "bgs",
    "mgs",
    "mbgs",
    "adaptive",
    "slack",
    "max-min",
    "finish-time-fair",
}  # in rows, with an argument, in rounds
EVERY_41 = Reservation(start_s=136, end_s=176, every_s=41)  # gaps of a second


def job(number: int, submit_s: float, nodes: int, run_s: float, **fields: Any) -> Job:
    return Job(id=number, nodes=nodes, submit_s=submit_s, run_s=run_s, **fields)


def run(jobs: list[Job], policy: Any, site: Site | None = None, events: Any = "together", **machine: Any) -> Result:
    workload = Workload.from_jobs(jobs)
    return Scenario(machine=Machine(**machine), workload=workload, policy=policy, site=site, events=events).run()


def ends(result: Result) -> dict[int, tuple[str, float]]:
    return {row.job: (row.status, row.start_s) for row in result.jobs.itertuples() if row.status != "rejected"}


def node_s(result: Result, account: Account) -> float:
    return sum(result.ledger.amount(account)) / 1e6


@pytest.mark.parametrize("policy", KNOWN)
@pytest.mark.parametrize("events", ["together", "one-by-one"])
def test_a_job_released_by_a_limit_when_no_gap_is_long_enough(policy: str, events: str) -> None:
    if policy == "gs" and events == "one-by-one":
        return  # refused: nodes are shared in time
    jobs = [job(1, 24, 1, 100, qos="lo"), job(2, 29, 1, 20, qos="lo"), job(3, 34, 1, 1), job(4, 35, 1, 0.5, after_any=2)]
    site = Site(limits=[Limits(qos="*", nodes=1)])
    result = run(jobs, policy, site, events, nodes=1, reservations=EVERY_41, time_slicing=TimeSlicing(mpl=1))
    assert ends(result)[1] == ("completed", 24)
    assert sorted(ends(result)) == [1, 3, 4]
    assert result.summary().rejected == 1
    assert [str(note) for note in run_notes([result]) if "rejected" in str(note)] == [
        "1 job is rejected: no time between reservations, or outages known in advance, is long enough for the nodes that they "
        "need; give them shorter estimates, or reservations longer intervals"
    ]


@pytest.mark.parametrize("policy", KNOWN)
def test_a_job_that_a_failure_stops_and_no_gap_holds_is_aborted(policy: str) -> None:
    failures = Outages(node=[3], down_s=[10.0], up_s=[35.0], nodes=8)
    jobs = [job(1, 0, 8, 20), job(2, 301, 1, 0.5), job(3, 302, 8, 0.5, after_not_ok=1), job(4, 303, 1, 0.5, after_ok=1)]
    reservation = Reservation(start_s=50, end_s=150, every_s=101)
    result = run(jobs, policy, nodes=8, failures=failures, reservations=reservation, time_slicing=TimeSlicing(mpl=1))
    assert ends(result)[1] == ("aborted", 0)
    assert sorted(ends(result)) == [1, 2, 3]
    assert result.run_attempts["outcome"].tolist() == ["aborted", "completed", "completed"]
    assert (node_s(result, Account.LOST), node_s(result, Account.USEFUL)) == (80, 0.5 + 4)
    assert result.jobs["wasted_node_s"].sum() == 80
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)
    assert any(str(note).startswith("1 job is aborted: stopped once, and no time between") for note in run_notes([result]))


def test_what_was_saved_of_an_aborted_job_is_discarded() -> None:
    # Job 1 is checkpointed at 4 and 8 s, fails at 10 s, and needs 12 s more; the gaps are of 10 s.
    machine: dict[str, Any] = {
        "checkpointing": Checkpointing(interval_s=4),
        "failures": Outages(node=[0], down_s=[10.0], up_s=[11.0], nodes=1),
        "reservations": Reservation(start_s=20, end_s=30, every_s=20),
    }
    result = run([job(1, 0, 1, 20), job(2, 31, 1, 5)], "fcfs", nodes=1, **machine)
    assert ends(result) == {1: ("aborted", 0), 2: ("completed", 31)}
    attempts = result.run_attempts
    assert attempts[["executed_s", "lost_s", "outcome"]].values.tolist() == [[10, 10, "aborted"], [5, 0, "completed"]]
    assert (node_s(result, Account.LOST), node_s(result, Account.USEFUL)) == (10, 5)


@pytest.mark.parametrize("policy", KNOWN)
def test_a_gap_of_exactly_the_estimate_is_used(policy: str) -> None:
    reservation = Reservation(start_s=40, end_s=90, every_s=90)
    result = run([job(1, 50, 1, 30, estimate_s=40)], policy, nodes=1, reservations=reservation, time_slicing=TimeSlicing(mpl=1))
    assert ends(result) == {1: ("completed", 90)}


def test_rounds_that_begin_in_no_gap() -> None:
    # Gaps of 200 s from 75.6 + 210 k on; 210 s are 30 rounds of 7 s, so each gap is 1.4 s longer from the next round on.
    window = Reservation(start_s=65.6, end_s=75.6, every_s=210)
    for run_s, starts in ((200, {}), (198.7, {}), (198.6, {1: ("completed", 77)})):
        assert ends(run([job(1, 0, 1, run_s)], "las:round_s=7", nodes=1, reservations=window)) == starts
    # Of 211 s, every seventh turn ends at a multiple of 7 s, 75.6 + 2 k x 0.7: none does; one 0.4 s before it does.
    window = Reservation(start_s=66, end_s=76, every_s=211)
    assert ends(run([job(1, 0, 1, 201), job(2, 1, 1, 202)], "las:round_s=7", nodes=1, reservations=window)) == {
        1: ("completed", 76 + 211)
    }


def test_the_last_start_at_multiples_of_a_step() -> None:
    windows = Windows([((0, 1), 10, 20, 50)], 1)

    def last(duration: int, step: int) -> int:
        return windows.last_start(0, duration, bool, 1, 1, step)

    assert last(40, 1) > 10**30
    assert last(40, 20) > 10**30  # from 120 on
    assert last(40, 50) == -1  # at 0, 50, 100: ten ticks before a window
    assert last(10, 50) > 10**30
    once = Windows([((0, 1), 10, 10**19, 0)], 1)
    assert [once.last_start(0, 3, bool, 1, 1, step) for step in (1, 4, 8)] == [7, 4, 0]


@pytest.mark.parametrize("policy", ["easy", "bgs", "fcfs", "conservative"])
def test_no_gap_has_enough_nodes_under_a_cap_or_with_memory(policy: str) -> None:
    window = Reservation(nodes="2-11", start_s=50, end_s=51, every_s=2)
    power = Power(busy_w=350, idle_w=100, switching_w=400)  # of nodes 0 and 1, one may be in use
    cap: dict[str, Any] = {"power": power, "power_cap_w": 3040, "reservations": window}
    assert ends(run([job(1, 0, 2, 100), job(2, 1, 1, 9)], policy, nodes=12, **cap)) == {2: ("completed", 1)}
    if policy != "bgs":
        window = Reservation(nodes="0-3", start_s=50, end_s=51, every_s=2)
        jobs = [job(1, 0, 2, 100, memory_gib=4), job(2, 1, 2, 100, memory_gib=2)]
        result = run(jobs, policy, nodes=5, gpus_per_node=2, node_memory_gib=4, reservations=window)
        assert ends(result) == {2: ("completed", 1)}


def test_a_policy_of_a_user_that_does_not_start_what_could_is_told() -> None:
    class Never:
        name, takes_reservations = "never", True

        def start(self, setup: Setup) -> Any:
            return lambda *_: []

    with pytest.raises(StrandedJobsError, match=r"policy never: 1 job left waiting for ever on an idle machine \(job 2\)"):
        run([job(1, 0, 1, 10), job(2, 0, 1, 1)], Never(), nodes=1, reservations=Reservation(start_s=1, end_s=2, every_s=3))


def test_a_recurring_window_is_waited_for_until_all_that_comes_once_is_over() -> None:
    windows = [Reservation(nodes="1", start_s=16, end_s=19, every_s=4), Reservation(nodes="0", start_s=29, end_s=129)]
    assert ends(run([job(1, 20, 1, 20)], "easy", nodes=2, reservations=windows)) == {1: ("completed", 129)}
    failures = Outages(node=[0], down_s=[12.0], up_s=[1012.0], nodes=1)
    window = Reservation(start_s=68, end_s=168, every_s=300)
    for policy in ("easy", "mgs"):
        result = run(
            [job(1, 20, 1, 150)], policy, nodes=1, failures=failures, reservations=window, time_slicing=TimeSlicing(mpl=1)
        )
        assert ends(result) == {1: ("completed", 1068)}
    late = run([job(1, 400, 1, 20)], "pv-easy", nodes=1, reservations=Reservation(start_s=11, end_s=21, every_s=31))
    assert ends(late) == {1: ("completed", 424)}


# The horizon.


def test_the_horizon_begins_with_the_first_job_that_is_not_rejected() -> None:
    held = run([job(1, 0, 1, 100, after=2), job(2, 1000, 1, 100)], "easy", nodes=1)
    assert (held.summary().horizon_s, held.summary().utilization) == (1200, 200 / 1200)
    assert node_s(held, Account.IDLE) == 1000
    assert held.events.time_s[0] == 0
    # Job 1 depends on job 2, which is rejected at 50; job 3 was submitted at 20.
    never = run([job(1, 0, 1, 10, after_ok=2), job(2, 50, 9, 1), job(3, 20, 1, 10)], "easy", nodes=1)
    assert (never.ledger.start, never.ledger.end) == (20 * 10**6, 30 * 10**6)


@pytest.mark.parametrize("policy", ["easy", "conservative", "gs", "fifo-preempt"])
def test_neither_a_job_rejected_late_nor_the_time_after_the_last_end_is_in_the_horizon(policy: str) -> None:
    # Node 1 is down until 300; job 1 needs both before 400, and cannot start in time.  Job 3 waits for nothing but to be late.
    failures = Outages(node=[1], down_s=[5.0], up_s=[300.0], nodes=2)
    window = Reservation(start_s=400, end_s=1e10)
    jobs = [job(1, 10, 2, 350), job(2, 80, 1, 20), job(3, 90, 2, 120)]
    scenario = Scenario(
        machine=Machine(nodes=2, failures=failures, reservations=window, time_slicing=TimeSlicing(mpl=1, quantum_s=10)),
        workload=Workload.from_jobs(jobs),
        policy=policy,
        history=policy == "gs",
    )
    result = scenario.run()
    assert ends(result) == {2: ("completed", 80)}
    assert (result.ledger.start, result.ledger.end) == (80 * 10**6, 100 * 10**6)
    spent = {account: node_s(result, account) for account in Account if node_s(result, account)}
    assert spent == {Account.USEFUL: 20, Account.DOWN: 20}
    assert (result.events.ticks[0], result.events.ticks[-1]) == (80 * 10**6, 100 * 10**6)
    assert result.kappa_by_formula == result.ledger.capacity_loss == 0
    assert result.plot.capacity() is not None
    if policy == "gs":
        assert sum(rotation.length for rotation in result.slices or ()) == 20 * 10**6
        assert result.history.moments[0].ledger[Account.DOWN].job_waiting <= 20 * 10**6


# The order of released jobs.


@pytest.mark.parametrize("order", [None, FairShare(half_life_s=100)])
@pytest.mark.parametrize("how", ["after_any", "limit"])
def test_jobs_released_together_start_in_the_order_of_their_submission(how: str, order: FairShare | None) -> None:
    needs: dict[str, Any] = {"after_any": 9} if how == "after_any" else {"qos": "one"}
    jobs = [job(9, 0, 2, 100, qos="one"), *(job(n, submit, 1, 10, **needs) for n, submit in ((7, 1), (4, 2), (5, 2), (3, 3)))]
    jobs.append(job(1, 100, 1, 10))
    site = Site(limits=[Limits(qos="one", nodes=2)] if how == "limit" else [], order=order)
    result = run(jobs, "fcfs", site, nodes=2)
    starts = result.jobs.set_index("job")["start_s"].to_dict()
    order_of_starts = sorted((start, number) for number, start in starts.items())
    expected = {"after_any": [(0, 9), (100, 4), (100, 7), (110, 3), (110, 5), (120, 1)]}
    if how in expected:
        assert order_of_starts == expected[how]
    else:
        assert starts[7] == starts[4] == 100
        assert starts[5] <= starts[3]


# Events one by one.


@pytest.mark.parametrize("policy", [*sorted(set(policy_names()) - OTHERS), "slack:awt=9"])
def test_memory_and_nodes_are_free_when_the_end_is_reported(policy: str) -> None:
    # Job 1 ends at 21 s, when job 2 is submitted, which needs its memory; job 4 is released by that of job 3.
    jobs = [job(1, 11, 1, 10, memory_gib=2), job(2, 21, 2, 10, memory_gib=3)]
    jobs += [job(3, 50, 2, 10, memory_gib=0.5), job(4, 51, 2, 10, memory_gib=4, after_any=3)]
    result = run(jobs, policy, events="one-by-one", nodes=2, node_memory_gib=4)
    assert result.jobs["start_s"].tolist() == [11, 21, 50, 60]


def test_each_end_frees_its_own_nodes() -> None:
    told: list[tuple[float, int, int]] = []

    def moldable(setup: Setup) -> Any:
        from clustermodel import Start

        def decide(batch: Any, view: Any) -> list[Any]:
            idle, starts = view.idle, list[Any]()
            assert idle == sum(view.idle_nodes()[1::2]) - sum(view.idle_nodes()[::2])
            told.append((view.now / 1e6, idle, len(batch.ended)))
            for each in view.waiting.values():
                if (nodes := min(idle, 2 if each.id < 3 else 4)) < 2:
                    break
                starts.append(Start(job=each, nodes=nodes))
                idle -= nodes
            return starts

        return decide

    jobs = [job(1, 0, 2, 100), job(2, 0, 2, 100), job(3, 1, 2, 100), job(4, 2, 2, 100)]
    result = run(jobs, moldable, events="one-by-one", nodes=4)
    assert result.run_attempts[["start_s", "end_s", "nodes"]].values.tolist() == [
        [0, 100, 2], [0, 100, 2], [100, 200, 2], [100, 200, 2]
    ]  # fmt: skip
    assert told[4:] == [(100, 2, 1), (100, 2, 1), (200, 2, 1), (200, 4, 1)]
    together = run(jobs, moldable, nodes=4)
    assert together.run_attempts["nodes"].tolist() == [2, 2, 4, 4]


# The checkpoint store.


@pytest.mark.parametrize("policy", ["easy", "conservative", "fcfs"])
def test_gangs_that_queue_at_the_store_are_out_before_their_nodes_are_reserved(policy: str) -> None:
    costs = Checkpointing(checkpoint_s=30, restart_s=1, interval_s=1, max_tasks_per_slice=1)
    machine: dict[str, Any] = {"nodes": 1, "gpus_per_node": 4, "checkpointing": costs}
    window = Reservation(start_s=50, end_s=90, every_s=1000)
    result = run([job(1, 0, 1, 10), job(2, 1, 1, 23.75)], policy, reservations=window, **machine)
    assert ends(result) == {1: ("completed", 90), 2: ("completed", 90)}
    assert result.jobs["end_s"].max() <= 1050
    assert result.jobs["end_s"].max() > 1050 - 30  # as many checkpoints as there is time for
    assert run([job(1, 0, 1, 10), job(2, 1, 1, 23.75)], policy, **machine).jobs["end_s"].max() < 1050 - 60


def test_a_gang_that_cannot_restore_or_save_before_its_nodes_are_reserved_leaves_them() -> None:
    # Two jobs are checkpointed when job 3 comes, and restored when it ends, one after the other.  It is the turn of job 2 at
    # 66 s: it would be restored at 96 s, and execute for 10 s more, into the reservation at 100 s.  It is restored at 110 s.
    costs = Checkpointing(checkpoint_s=0, restart_s=30, max_tasks_per_slice=1)
    jobs = [job(1, 0, 1, 30), job(2, 0, 1, 30), job(3, 20, 2, 16, priority=1)]
    window = Reservation(start_s=100, end_s=110)
    result = run(jobs, "fifo-preempt", nodes=2, checkpointing=costs, reservations=window)
    of_2 = result.run_attempts[result.run_attempts["job"] == 2]
    assert of_2["outcome"].tolist() == ["checkpointed", "checkpointed", "completed"]
    assert of_2["end_s"].tolist() == [20, 66, 150]
    assert of_2["executed_s"].tolist() == [20, 0, 10]
