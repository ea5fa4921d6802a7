"""Reservations and outages that are known in advance: who drains, who may use them, what plans make of them, and the books."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import (
    Checkpointing,
    ContextSwitch,
    DecisionError,
    Job,
    Machine,
    NodeFailures,
    Outages,
    Partition,
    Reservation,
    Result,
    Scenario,
    Site,
    Store,
    TimeSlicing,
    TraceError,
    Workload,
    read_outages,
    read_trace,
)
from clustermodel.errors import StrandedJobsError
from clustermodel.figures.capacity import SHARES, capacity_shares
from clustermodel.figures.result_plots import means_over_time
from clustermodel.plans.windows import Windows
from clustermodel.policies.interface import Migrate, Place, Rows, Setup, Start, WakeAt
from clustermodel.recording.ledger import Account
from clustermodel.ticks import to_ticks
from tests.conftest import Finished, refusal
from tests.property.strategies import cases
from tests.unit.test_partitions import OTHER, nodes_of, starts

CommandLine = Callable[..., Finished]
KNOWN = ("fcfs", "easy", "conservative", "bf", "fifo-preempt", "ss", "slack:awt=20,slack_factor=0")
WEEK = 7 * 86_400.0


def job(number: int, submit_s: float, nodes: int, run_s: float, **fields: Any) -> Job:
    return Job(id=number, submit_s=submit_s, nodes=nodes, run_s=run_s, **fields)


def run(jobs: list[Job], reservations: Any = (), nodes: int = 8, policy: Any = "easy", **fields: Any) -> Result:
    machine = Machine(nodes=nodes, reservations=reservations, **fields)
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9, nan_ok=True)
    return result


def node_s(result: Result, account: Account) -> float:
    return sum(result.ledger.amount(account)) / 1e6


@pytest.mark.parametrize(("policy", "third"), [("fcfs", 120), ("easy", 50), ("conservative", 50), ("bf", 50)])
def test_nodes_drain_before_a_reservation(policy: str, third: float) -> None:
    # Job 2 would reach into it; job 3 ends before, and comes first where jobs may be overtaken.
    jobs = [job(1, 0, 8, 50), job(2, 1, 4, 100), job(3, 2, 4, 40)]
    result = run(jobs, Reservation(start_s=100, end_s=120), policy=policy)
    assert starts(result) == [0, 120, third]
    assert node_s(result, Account.RESERVED) == 8 * 20
    assert node_s(result, Account.USEFUL) == 400 + 400 + 160
    assert result.ledger.capacity == to_ticks(8 * 220)


@pytest.mark.parametrize("policy", KNOWN)
def test_a_job_that_ends_when_the_reservation_begins_runs(policy: str) -> None:
    jobs = [job(1, 0, 8, 100), job(2, 100, 8, 10), job(3, 110, 8, 0.5, estimate_s=21)]
    assert starts(run(jobs, Reservation(start_s=130, end_s=200), policy=policy)) == [0, 100, 200]


@pytest.mark.parametrize("policy", KNOWN)
def test_every_monday_morning(policy: str) -> None:
    # 8 to 12 o'clock on Mondays, in a week that begins with Monday at 0 o'clock; nodes 0 to 3.
    hour = 3600.0
    monday = Reservation(nodes="0-3", start_s=8 * hour, end_s=12 * hour, every_s=WEEK)
    jobs = [
        job(1, 0, 6, 9 * hour),  # reaches into the first one
        job(2, 3 * WEEK, 8, 8 * hour),
        job(3, 3 * WEEK + 1, 8, 8 * hour),
        job(4, 3 * WEEK + 2, 4, 40 * hour),  # nodes 4 to 7, but behind job 3
    ]
    result = run(jobs, monday, policy=policy)
    assert starts(result) == [12 * hour, 3 * WEEK, 3 * WEEK + 12 * hour, 3 * WEEK + 20 * hour]
    assert node_s(result, Account.RESERVED) == 4 * 4 * hour * 4


def test_jobs_of_an_account_may_have_the_nodes_and_others_keep_out() -> None:
    course = Reservation(nodes="0-3", start_s=100, end_s=200, accounts="bio", users=[7])
    jobs = [
        job(1, 0, 8, 90),
        job(2, 110, 4, 60, account="bio", user=7),
        job(3, 111, 4, 60, account="bio", user=8),
        job(4, 112, 4, 60, account="bio", user=8),
    ]
    result = run(jobs, course)
    assert starts(result) == [0, 110, 170, 200]
    assert nodes_of(result, 2) == {4, 5, 6, 7}
    assert starts(run(jobs, Reservation(nodes="0-3", start_s=100, end_s=200, accounts="bio"))) == [0, 110, 111, 170]


@pytest.mark.parametrize("policy", ["gs", "mbgs"])
def test_events_and_shares_of_capacity_know_what_is_reserved_beside_gangs_in_rows(policy: str) -> None:
    rng = np.random.default_rng(1)
    sizes, times = rng.integers(1, 6, 20), rng.integers(20, 80, 20)
    jobs = [job(n, 10 * n, int(sizes[n]), float(times[n]), account=None if n % 4 else "bio") for n in range(20)]
    windows = (
        Reservation(nodes="0-3", start_s=100, end_s=160, every_s=150, accounts="bio"),
        Reservation(start_s=240, end_s=250),
    )
    machine = Machine(nodes=8, reservations=windows, time_slicing=TimeSlicing(quantum_s=5, mpl=3))
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy, history=True).run()
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)
    share, log = result.ledger.frame["share"], result.events
    assert share["reserved"] > 0
    reserved = (log.reserved[:-1] * np.diff(log.time_s)).sum() / log.time_s[-1] / 8
    _, shares = capacity_shares(result, 7)
    assert shares[list(SHARES).index("reserved")].mean() == pytest.approx(share["reserved"]) == pytest.approx(reserved)
    busy = means_over_time(result.states, 8, log.time_s[[0, -1]])["busy"]
    assert busy.tolist() == pytest.approx([1 - share["idle"] - share["reserved"]])


@pytest.mark.parametrize("policy", ["gs", "bgs", "mbgs"])
@pytest.mark.parametrize(("at_events", "ends"), [("cut", 1510), ("keep", 1660)])
@pytest.mark.parametrize("fidelity", ["fast", "node"])
def test_a_gang_in_rows_waits_for_its_first_slice_before_a_reservation(
    policy: str, at_events: str, ends: float, fidelity: str
) -> None:
    # Job 9 needs one slice, after those of four other rows, so it may end at 850 + 4 x 200 + 60 = 1710 at worst.
    parts = [Partition(name="x", nodes="0")]
    jobs = [*(job(n, 0, 1, 9000, partition="x") for n in range(1, 5)), job(9, 850, 2, 60)]
    for begin, start in ((1200, 1300), (1709.5, 1809.5), (1710, 850)):
        machine = Machine(
            nodes=2,
            partitions=parts,
            reservations=[Reservation(nodes="1", start_s=begin, end_s=begin + 100)],
            time_slicing=TimeSlicing(at_events=at_events),
        )
        workload = Workload.from_jobs(jobs)
        last = Scenario(workload=workload, machine=machine, policy=policy, fidelity=fidelity).run().jobs.set_index("job").loc[9]
        assert last["start_s"] == start
        assert last["end_s"] == ends or start > 850


def test_what_a_gang_in_rows_needs_at_worst() -> None:
    cut, keep = TimeSlicing(quantum_s=10, mpl=3), TimeSlicing(quantum_s=10, mpl=3, at_events="keep")
    second = to_ticks(1)
    needs = [(1, 3, 0, 21), (10, 3, 0, 30), (11, 3, 0, 51), (8, 3, 2, 30), (9, 3, 2, 53), (9, 1, 2, 13), (25, 1, 0, 25)]
    for own, rows, switch, at_worst in needs:
        assert cut.longest(own * second, rows, switch * second) == at_worst * second
        assert keep.longest(own * second, rows, switch * second) == (at_worst + switch) * second
    assert cut.longest(0, 3, second) == keep.longest(0, 3, second) == 0


def test_a_reservation_that_jobs_name_is_theirs() -> None:
    window = Reservation(nodes="0-3", start_s=100, end_s=200, accounts="bio", name="course")
    jobs = [
        job(1, 0, 8, 90),
        job(2, 110, 4, 60, account="bio"),
        job(3, 111, 4, 60, account="bio"),
        job(4, 112, 4, 20, reservation="x,course"),
    ]
    assert starts(run(jobs, window)) == [0, 110, 170, 112]
    assert nodes_of(run(jobs, window), 4) == {0, 1, 2, 3}
    assert starts(run(jobs[:3], window)) == [0, 110, 111]  # nobody names it


def test_the_reserved_account_has_idle_nodes_only() -> None:
    # Nodes 0 and 1 are used by the account for half of the time; job 1 ends while its nodes are reserved for others.
    two = Reservation(nodes="0-1", start_s=10, end_s=30, accounts="bio")
    jobs = [job(1, 0, 2, 20, estimate_s=10), job(2, 12, 2, 10, account="bio"), job(3, 40, 4, 10)]
    result = run(jobs, two, nodes=4, kill_at_estimate=False)
    assert nodes_of(result, 1) == {2, 3}
    assert nodes_of(result, 2) == {0, 1}
    assert starts(result) == [0, 12, 40]
    assert node_s(result, Account.RESERVED) == 2 * (20 - 10)
    assert node_s(result, Account.IDLE) == 2 * 10 + 2 * 10 + 2 * 20
    late = run([job(1, 0, 4, 20, estimate_s=10), job(2, 40, 1, 10)], two, nodes=4, kill_at_estimate=False)
    assert node_s(late, Account.RESERVED) == 2 * (30 - 20)


def test_reservations_while_no_job_is_in_the_system_are_in_the_books() -> None:
    result = run([job(1, 0, 1, 10), job(2, 950, 1, 10)], Reservation(start_s=100, end_s=110, every_s=300), nodes=2)
    assert node_s(result, Account.RESERVED) == 2 * 10 * 3
    # The books end with the last job.
    assert node_s(run([job(1, 0, 1, 10)], Reservation(start_s=20, end_s=30), nodes=2), Account.RESERVED) == 0


def test_events_states_and_figures_know_what_is_reserved() -> None:
    # Nodes 0 and 1 are reserved from 10 to 30 for an account, whose job has one of them from 12 to 22; job 3 waits until 30.
    window = Reservation(nodes="0-1", start_s=10, end_s=30, accounts="bio")
    jobs = [job(1, 0, 2, 20), job(2, 12, 1, 10, account="bio"), job(3, 15, 4, 20)]
    result = run(jobs, window, nodes=4)
    assert (starts(result), nodes_of(result, 1)) == ([0, 12, 30], {2, 3})
    log = result.events
    assert log.time_s.tolist() == [0, 10, 12, 15, 20, 22, 30, 50]
    assert log.reserved.tolist() == [0, 2, 1, 1, 1, 2, 0, 0]
    assert log.empty.tolist() == [2, 0, 0, 0, 2, 2, 0, 4]
    assert result.kappa_by_formula == 2 * 10 / (4 * 50)  # job 3 waits for nodes 0 and 1, which are not lost
    states = result.states
    assert states["busy_nodes"].tolist() == [2, 2, 3, 3, 1, 0, 4, 0]
    assert states["reserved_nodes"].tolist() == log.reserved.tolist()
    assert "reserved_nodes" not in run(jobs, nodes=4).states
    busy = means_over_time(result.states, 4, np.array([0.0, 10, 30, 50]))["busy"]
    assert (4 * busy).tolist() == [2, (2 * 2 + 3 * 8 + 2) / 20, 4]
    ground = result.plot.gantt().axes[0].collections[-1].get_paths()[0].get_extents()
    assert ground.bounds == (10, -0.5, 20, 2)


def test_plans_go_around_a_reservation() -> None:
    # Job 2 holds a reservation for the time after 200; job 3 fits before on all nodes and job 4 does not delay job 2.
    jobs = [job(1, 0, 4, 50), job(2, 1, 8, 100), job(3, 2, 4, 90), job(4, 3, 4, 300)]
    window = Reservation(start_s=100, end_s=200)
    easy = run(jobs, window)
    assert starts(easy) == [0, 200, 2, 300]
    assert easy.jobs["reserved_s"].iloc[1] == 200
    planned = run([*jobs, job(5, 4, 8, 40)], window, policy="conservative")
    # Job 5 fits between none of them before 100: job 3 ends at 92.
    assert list(planned.jobs["reserved_s"].dropna()) == [200, 300, 600]
    assert starts(planned) == [0, 200, 2, 300, 600]
    gaps = run(
        [job(1, 0, 8, 30), job(2, 1, 8, 30), job(3, 2, 8, 5)], Reservation(start_s=20, end_s=30, every_s=50), policy="bf"
    )
    assert starts(gaps) == [30, 80, 2]


def test_a_job_behind_a_window_does_not_move_those_that_wait_elsewhere() -> None:
    parts = [Partition(name="a", nodes="0-3"), Partition(name="b", nodes="4-7")]
    jobs = [job(1, 0, 4, 100, partition="a"), job(2, 1, 4, 100, partition="b"), job(3, 2, 4, 10, partition="a")]
    result = run(jobs, Reservation(nodes="0-3", start_s=50, end_s=60), partitions=parts, policy="fcfs")
    assert starts(result) == [60, 1, 160]


@pytest.mark.parametrize("policy", KNOWN)
def test_jobs_that_no_gap_ever_holds_are_rejected(policy: str) -> None:
    jobs = [job(1, 0, 4, 300), job(2, 0, 2, 300), job(3, 0, 4, 150)]
    result = run(jobs, Reservation(nodes="0-1", start_s=0, end_s=50, every_s=200), nodes=4, policy=policy)
    assert list(result.jobs["status"]) == ["rejected", "completed", "completed"]
    assert starts(result)[1:] == [0, 450]


@pytest.mark.parametrize("policy", KNOWN)
def test_jobs_that_have_missed_their_last_chance_are_rejected(policy: str) -> None:
    # Node 3 is down for good from 100 on; job 2 needs it and cannot start before, and job 4 depends on it.
    gone = Outages(node=[3], down_s=[100.0], up_s=[1e10], nodes=4, known=(True,))
    jobs = [job(1, 0, 4, 50), job(2, 1, 4, 60), job(3, 2, 3, 500), job(4, 3, 1, 10, after_ok=2)]
    result = run(jobs, nodes=4, failures=gone, policy=policy)
    assert list(result.jobs["status"]) == ["completed", "rejected", "completed", "rejected"]
    assert starts(result)[2] == 50 if policy != "fcfs" else 51
    assert node_s(result, Account.DOWN) == result.ledger.end / 1e6 - 100


@pytest.mark.parametrize("policy", [*KNOWN, "gs", "mbgs"])
def test_a_known_outage_is_drained_and_a_surprise_is_not(policy: str) -> None:
    outage: dict[str, Any] = {"node": [0, 1], "down_s": [50.0, 50.0], "up_s": [80.0, 80.0], "nodes": 4}
    jobs = [job(1, 0, 4, 100)]
    surprise = run(jobs, nodes=4, failures=Outages(**outage), policy=policy)
    assert (starts(surprise), surprise.summary().failed_attempts) == ([80], 1)
    known = run(jobs, nodes=4, failures=Outages(**outage, known=(True, True)), policy=policy)
    assert (starts(known), known.summary().failed_attempts) == ([80], 0)
    assert node_s(known, Account.DOWN) == 2 * 30
    assert node_s(known, Account.RESERVED) == 0
    one_known = run([job(1, 0, 3, 100)], nodes=4, failures=Outages(**outage, known=(True, False)), policy=policy)
    assert (starts(one_known), one_known.summary().failed_attempts) == ([80], 1)
    assert starts(run([job(1, 0, 2, 100)], nodes=4, failures=Outages(**outage, known=(True, True)), policy=policy)) == [0]


def test_random_failures_beside_reservations() -> None:
    rng = np.random.default_rng(3)
    jobs = [job(n, n * 30.0, int(rng.integers(1, 7)), 60.0, estimate_s=90.0) for n in range(1, 200)]
    window = Reservation(nodes="0-3", start_s=500, end_s=700, every_s=1000)
    for policy in KNOWN:
        result = run(jobs, window, policy=policy, failures=NodeFailures(mtbf_s=3000, repair_s=100))
        assert result.summary().failed_attempts > 0
        assert (result.jobs["status"] == "completed").all()


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_events_of_sacctmgr_are_outages(tmp_path: Path) -> None:
    events = write(
        tmp_path / "events.txt",
        "ClusterName|NodeName|TimeStart|TimeEnd|State|Reason|User",
        "alpha||2024-03-01T00:00:00|2024-03-02T00:00:00||Cluster Registered TRES|",
        "alpha|n3|2024-03-01T10:00:00|2024-03-01T10:30:00|DOWN*|Not responding|slurm(64030)",
        "alpha|n[1-2]|2024-03-01T12:00:00|Unknown|DRAIN|maintenance|root(0)",
    )
    outages = read_outages(events)
    assert outages.node.tolist() == [2, 0, 1]
    assert outages.down_s.tolist() == [0, 7200, 7200]
    assert outages.up_s.tolist() == [1800, 1e10, 1e10]
    assert outages.cause == ("DOWN* Not responding", "DRAIN maintenance", "DRAIN maintenance")
    assert outages.dropped == {"events of the whole cluster": 1}
    assert outages.known == ()
    assert outages.mean_repair_s == 1800
    known = read_outages(events, known=True)
    assert known.known == (True, True, True)
    assert known != outages
    result = run([job(1, 0, 2, 7201), job(2, 0, 1, 100)], nodes=3, failures=known)
    assert list(result.jobs["status"]) == ["rejected", "completed"]
    assert nodes_of(run([job(1, 1, 1, 8000)], nodes=4, failures=known), 1) == {3}


def test_tables_of_outages_say_which_are_known(tmp_path: Path) -> None:
    table = write(tmp_path / "o.csv", "node,down_s,up_s,known", "0,50,80,yes", "1,60,70,false", "2,60,70,")
    outages = read_outages(table)
    assert outages.known == (True, False, False)
    assert [tuple(failure) for failure in outages.announced()] == [(to_ticks(50), 0, to_ticks(30))]
    assert outages.merged().known == ()
    wrong = write(tmp_path / "w.csv", "node,down_s,up_s,known", "0,50,80,perhaps")
    with pytest.raises(TraceError, match="field known: 'perhaps' is not allowed; it must be true or false"):
        read_outages(wrong)


def test_a_policy_that_does_not_say_that_it_knows_them_refuses_them() -> None:
    message = refusal(lambda: run([job(1, 0, 1, 1)], Reservation(start_s=1, end_s=2), policy=OTHER))
    assert message.startswith("policy other: not allowed on a machine with reservations; a class with takes_reservations")
    known = Outages(node=[0], down_s=[1.0], up_s=[2.0], nodes=1, known=(True,))
    message = refusal(lambda: run([job(1, 0, 1, 1)], failures=known, policy=OTHER))
    assert "not allowed where outages are known in advance; " in message


@pytest.mark.parametrize("policy", ["easy", "conservative", "bf", "D-NG", "easy:reserve_depth=2"])
def test_a_job_predicted_to_be_short_has_to_end_by_its_estimate_before_them(policy: str) -> None:
    # Job 1 took a tenth of its estimate.  Job 2 is predicted to end at 60, and may take until 150.
    jobs = [job(1, 0, 2, 10, estimate_s=100, user=1), job(2, 50, 2, 10, estimate_s=100, user=1)]
    text = f"{policy}{',' if ':' in policy else ':'}predictor=last"
    assert starts(run(jobs, Reservation(start_s=140, end_s=160), nodes=2, policy=text)) == [0, 160]


class _First:
    """A policy of a user that respects `eligible` and knows nothing of windows."""

    name = "first"
    takes_reservations = True

    def __init__(self, columns: Any = None) -> None:
        self.columns = columns

    def start(self, setup: Setup) -> Any:
        def decide(batch: Any, view: Any) -> list[Start]:
            idle = set(np.concatenate([np.arange(*pair) for pair in zip(*[iter(view.idle_nodes())] * 2, strict=True)] or [[]]))
            started = []
            for each in view.waiting.values():
                bounds = (0, setup.nodes) if each.eligible is None else each.eligible
                may = [node for low, high in zip(bounds[::2], bounds[1::2], strict=True) for node in range(low, high)]
                if len(idle.intersection(may)) >= each.nodes or self.columns is not None:
                    started.append(Start(job=each, columns=self.columns))
                    idle -= set(sorted(idle.intersection(may))[: each.nodes])
            return started

        return decide


def test_policies_that_respect_the_nodes_of_a_job_need_no_code_for_windows() -> None:
    window = Reservation(nodes="0-1", start_s=50, end_s=60, accounts="bio")
    jobs = [job(1, 0, 4, 51), job(2, 1, 2, 49), job(3, 2, 2, 49), job(4, 3, 2, 100, account="bio")]
    result = run(jobs, window, nodes=4, policy=_First())
    assert starts(result) == [150, 1, 2, 50]  # job 3 on nodes 2 and 3, job 4 while its account has nodes 0 and 1
    refused = "job 1 cannot run on nodes 0-1 until 60 s: they are reserved, or known to be down, before"
    with pytest.raises(DecisionError, match=refused):
        run([job(1, 0, 2, 60)], window, nodes=4, policy=_First((0, 2)))


class _Mover:
    """A policy that starts a job on some nodes, on dedicated ones or in a row, and moves it to others at 10 s."""

    name = "mover"
    takes_reservations = True

    def __init__(self, first: Any, then: Any, *, in_rows: bool) -> None:
        self.first, self.then, self.in_rows = first, then, in_rows

    def rows_on(self, machine: Machine) -> int:
        return 2 if self.in_rows else 0

    def start(self, setup: Setup) -> Any:
        def decide(batch: Any, view: Any) -> list[Any]:
            if batch.submitted:
                (each,) = batch.submitted
                place = Place(each, self.first, (0,))
                return [
                    Rows(places=(place,)) if self.in_rows else Start(job=each, columns=self.first),
                    WakeAt(time=to_ticks(10)),
                ]
            gangs = list(view.running.values()) if batch.alarm else []
            if self.in_rows:
                return [Rows(places=(Place(gang.job, self.then, (0,)),)) for gang in gangs]
            return [Migrate(moves=((gang.job, self.then),)) for gang in gangs]

        return decide


@pytest.mark.parametrize(
    ("first", "then", "in_rows", "where"),
    [
        ((0, 2), (2, 4), False, "2-3 until 50"),
        ((0, 2), (1, 3), False, "2 until 50"),
        ((2, 4), (0, 2), False, "2-3 until 50"),
        ((0, 2), (1, 3), True, "2 until 90"),
        ((2, 4), (0, 2), True, "2-3 until 100"),
        ((0, 2), (0, 2), True, ""),
    ],
)
def test_no_decision_puts_a_job_where_nodes_are_reserved(first: Any, then: Any, *, in_rows: bool, where: str) -> None:
    window = Reservation(nodes="2-3", start_s=20, end_s=30)
    slicing = TimeSlicing(quantum_s=5, mpl=2)
    policy = _Mover(first, then, in_rows=in_rows)
    if not where:
        assert starts(run([job(1, 0, 2, 50)], window, nodes=4, policy=policy, time_slicing=slicing)) == [0]
        return
    refused = f"job 1 cannot run on nodes {where} s: they are reserved, or known to be down, before"
    with pytest.raises(DecisionError, match=refused):
        run([job(1, 0, 2, 50)], window, nodes=4, policy=policy, time_slicing=slicing)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "fifo-preempt", "ss", "gs"])
def test_nodes_with_several_processors_are_reserved_whole(policy: str) -> None:
    # Node 1, with processors 2 and 3, is reserved from 5 to 8.  Job 1 has node 0.  Job 2 ends on node 1 at 5, job 3 would not,
    # and waits for node 0; job 4 waits for node 1.
    jobs = [job(1, 0, 2, 5), job(2, 1, 1, 4), job(3, 2, 1, 4), job(4, 3, 3, 2)]
    window, slicing = Reservation(nodes="1", start_s=5, end_s=8), TimeSlicing(mpl=1)
    result = run(jobs, window, nodes=2, processors_per_node=2, policy=policy, time_slicing=slicing)
    assert starts(result) == [0, 1, 5, 8]
    assert node_s(result, Account.RESERVED) == 6


def test_restarts_at_other_times_are_refused() -> None:
    charged = Checkpointing(restart_s=1, restart_charge="every-decision")
    message = refusal(lambda: run([job(1, 0, 1, 1)], Reservation(start_s=1, end_s=2), checkpointing=charged))
    assert message == (
        "Checkpointing.restart_charge: 'every-decision' is not allowed where nodes are kept free; it must be 'on-start'"
    )


def test_a_policy_that_leaves_jobs_waiting_for_ever_is_told() -> None:
    class Never(_First):
        def start(self, setup: Setup) -> Any:
            return lambda *_: []

    with pytest.raises(StrandedJobsError, match="left waiting for ever"):
        run([job(1, 0, 1, 1)], Reservation(start_s=5, end_s=6, every_s=10), policy=Never())


def test_a_job_that_cannot_go_on_before_nodes_are_down_for_good_is_aborted() -> None:
    known = Outages(node=[0], down_s=[100.0], up_s=[1e10], nodes=2, known=(True,))
    result = run([job(1, 0, 2, 90), job(2, 50, 1, 30)], nodes=2, failures=known, policy="srtf")
    assert result.jobs[["start_s", "end_s", "status"]].values.tolist() == [[0, 50, "aborted"], [50, 80, "completed"]]
    assert result.run_attempts["outcome"].tolist() == ["aborted", "completed"]
    assert (node_s(result, Account.LOST), node_s(result, Account.USEFUL)) == (2 * 50, 30)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reservation(start_s=2, end_s=2), "Reservation.end_s: 2 is not allowed; it must be after start_s, 2"),
        (
            lambda: Reservation(start_s=0, end_s=9, every_s=9),
            "Reservation.every_s: 9 is not allowed; it must be longer than the reservation, 9 s",
        ),
        (lambda: Reservation(start_s=0, end_s=9, nodes="x"), "Reservation.nodes: 'x' is not allowed; they must be a text as"),
        (lambda: Reservation(start_s=0, end_s=9, accounts=[None]), "Reservation.accounts: [None] is not allowed"),
        (
            lambda: Reservation(start_s=0, end_s=9, users=["ann", "-bob"]),
            "Reservation.users: ['ann', '-bob'] is not allowed; either all names have a minus, for all but those, or none has",
        ),
        (
            lambda: Machine(nodes=4, reservations=[Reservation(nodes="4", start_s=0, end_s=9)]),
            "Machine.reservations: nodes: '4' is not allowed; they must be among 0-3",
        ),
        (
            lambda: Machine(
                nodes=4, reservations=[Reservation(start_s=0, end_s=1, every_s=every) for every in (86_399, 86_400)]
            ),
            "Machine.reservations: every_s: [86399, 86400] is not allowed; their periods must fit each other: together",
        ),
        (
            lambda: Reservation.from_text("0-3,start_s=1"),
            "reservation: end_s is missing in '0-3,start_s=1'; write NODES,start_s=",
        ),
        (lambda: Reservation.from_text("start_s=1,end_s=x"), "reservation: end_s: 'x' is not allowed; it must be a number of"),
        (lambda: Reservation.from_text("start_s=1,2"), "reservation: start_s: '2' is not allowed; write key=value,key=value"),
        (lambda: Reservation.from_text("begin_s=1"), "reservation: 'begin_s' is not allowed (did you mean"),
    ],
)
def test_what_is_not_allowed(make: Any, message: str) -> None:
    assert refusal(make).startswith(message)


def test_texts_and_files_have_reservations(tmp_path: Path) -> None:
    assert Reservation.from_text("0,start_s=1,end_s=2,users=-ann,-bob").users == ("-ann", "-bob")
    text = "0-3,8,start_s=86400,end_s=90000,every_s=604800,accounts=bio,chem"
    reservation = Reservation(nodes=[0, 1, 2, 3, 8], start_s=86_400, end_s=90_000, every_s=WEEK, accounts=["bio", "chem"])
    assert Reservation.from_text(text) == reservation
    assert Reservation.from_text("all,start_s=1,end_s=2") == Reservation(start_s=1, end_s=2)
    site = Site(reservations=[reservation])
    site.to_toml(tmp_path / "site.toml")
    assert Site.from_toml(tmp_path / "site.toml") == site
    machine = Machine(nodes=16, reservations=[reservation, Reservation(start_s=1, end_s=2)])
    jobs = Workload.from_jobs([job(1, 0, 1, 1)])
    scenario = Scenario(machine=machine, workload=jobs, site=site)
    assert scenario.used_machine.reservations == (reservation,)
    text = "[workload]\nsynthetic = true\njobs = 5\n[machine]\nnodes = 8\n[[machine.reservations]]\nstart_s = 5\nend_s = 9\n"
    read = Scenario.from_toml(text)
    assert read.used_machine.reservations == (Reservation(start_s=5, end_s=9),)
    assert Scenario.from_toml(read.to_toml()) == read


def test_the_command_line(command_line: CommandLine, tmp_path: Path) -> None:
    trace = tmp_path / "t.swf"
    lines = ["; MaxProcs: 8", *(f"{n} {s} 0 {r} {p} -1 -1 {p} {r} -1 1 1 1 -1 -1 -1 -1 -1" for n, s, p, r in _ROWS)]
    write(trace, *lines)
    reserve = ("--reservation", "all,start_s=100,end_s=120")

    def waits(*options: str, command: str = "run") -> list[float]:
        rows = json.loads(command_line(command, "--trace", trace, "--policy", "easy", "--json", *options).out)
        return [row["mean_wait_s"] for row in (rows["rows"] if isinstance(rows, dict) else rows)]

    assert waits() == [(0 + 49 + 48) / 3]
    assert waits(*reserve) == [(0 + 119 + 48) / 3]
    site = tmp_path / "site.toml"
    Site(reservations=[Reservation(start_s=120, end_s=130)]).to_toml(site)
    assert waits("--site", str(site), *reserve) == [(0 + 129 + 48) / 3]
    assert waits(*reserve, command="whatif") == [(0 + 49 + 48) / 3, (0 + 119 + 48) / 3]
    outages = write(tmp_path / "o.csv", "node,down_s,up_s", "0,100,120")
    assert waits("--known-outages", str(outages)) == [(0 + 49 + 48) / 3]  # job 2 on nodes 1 to 4
    assert waits(
        "--known-outages", str(write(tmp_path / "p.csv", "node,down_s,up_s", *(f"{n},100,120" for n in range(5))))
    ) == [(0 + 119 + 48) / 3]
    both = command_line("run", "--trace", trace, "--outages", outages, "--known-outages", outages)
    assert both.err.startswith("clustermodel: error: --known-outages: the outages come from --outages")
    wrong = command_line("run", "--trace", trace, "--reservation", "all,start_s=1")
    assert wrong.err.startswith("clustermodel: error: reservation: end_s is missing in 'all,start_s=1'")
    scenario = tmp_path / "s.toml"
    Scenario(workload=read_trace(trace), machine=Machine(nodes=8, reservations=[Reservation(start_s=120, end_s=130)])).to_toml(
        scenario
    )
    rows = json.loads(command_line("run", scenario, "--json", *reserve).out)
    assert rows[0]["mean_wait_s"] == (0 + 129 + 48) / 3


_ROWS = ((1, 0, 8, 50), (2, 1, 4, 100), (3, 2, 4, 40))


def test_a_study_takes_reservations(command_line: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(
        "from clustermodel import Job, Machine, Scenario, Study, Workload\n"
        "jobs = Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=60)])\n"
        "def scenario(policy, seed):\n"
        "    return Scenario(machine=Machine(nodes=1), workload=jobs, policy=policy)\n"
        "study = Study(name='one', factors={'policy': ['easy']}, scenario=scenario)\n"
    )
    reserve = ("--reservation", "all,start_s=10,end_s=20", "--out", tmp_path / "out")
    assert command_line("sweep", script, *reserve).code == 0
    with Store.read(tmp_path / "out") as store:
        frame = store.results()
    assert frame["mean_wait_s"].to_list() == [20]
    assert frame["reserved_share"].to_list() == [10 / 80]


def test_windows_recur_and_end() -> None:
    windows = Windows([((0, 2), 10, 20, 50), ((1, 3), 30, 35, 0)], 1)
    assert [windows.all[0].next(time) for time in (0, 19, 20, 119, 120)] == [
        (10, 20),
        (10, 20),
        (60, 70),
        (110, 120),
        (160, 170),
    ]
    assert windows.next_change(0) == 10
    assert windows.next_change(10) == 20
    assert bin(windows.reserved(65)) == "0b11"
    assert windows.barred(20, 10, 3) == 0
    assert windows.barred(20, 11, 3) == 0b110
    assert windows.barred(20, 41, 3) == 0b111
    assert windows.barred(20, 41, 2) == 0b110
    assert [begin for begin, _ in windows.near(12, 100)] == [10, 30]
    assert windows.last_start(0, 40, lambda mask: mask.bit_count() >= 3, 0b111, 3) > 10**30  # between two turns of the first
    assert windows.last_start(0, 41, lambda mask: mask.bit_count() >= 3, 0b111, 3) == -1
    assert windows.last_start(0, 41, lambda mask: mask.bit_count() >= 1, 0b111, 3) > 10**30


jobs_of_cases = st.lists(
    st.tuples(st.integers(0, 80), st.integers(1, 6), st.integers(1, 40), st.integers(1, 3), st.sampled_from(["x", "y", None])),
    min_size=1,
    max_size=16,
)
windows_of_cases = st.lists(
    st.tuples(
        st.integers(0, 120),
        st.integers(1, 30),
        st.sampled_from([None, 60, 90]),
        st.sampled_from(["0-2", "2-5", "4-7", None]),
        st.sampled_from([(), ("x",)]),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "easy:reservation=kept,reserve_depth=2", "1/L", "D-NG"])
@settings(max_examples=cases(20), deadline=None)
@given(jobs=jobs_of_cases, windows=windows_of_cases)
def test_no_job_is_ever_in_a_window_of_others(policy: str, jobs: list[tuple[Any, ...]], windows: list[tuple[Any, ...]]) -> None:
    reservations = [
        Reservation(start_s=start, end_s=start + length, every_s=every, nodes=nodes, accounts=accounts)
        for start, length, every, nodes, accounts in windows
    ]
    given_jobs = [
        job(number, submit, nodes, run_s, account=account, estimate_s=run_s * factor)
        for number, (submit, nodes, run_s, factor, account) in enumerate(jobs, 1)
    ]
    result = run(given_jobs, reservations, policy=policy)
    table = result.jobs
    assert set(table["status"]) <= {"completed", "rejected"}
    for reservation in reservations:
        for row in table[table["status"] == "completed"].itertuples():
            if reservation.admits(given_jobs[row.job - 1].account, None):
                continue
            held = nodes_of(result, row.job)
            own = set(range(8)) if reservation.nodes is None else {n for n in range(8) if n in _members(reservation)}
            for turn in range(50):
                begin = reservation.start_s + turn * (reservation.every_s or 0)
                end = begin + reservation.end_s - reservation.start_s
                limit = row.start_s + given_jobs[row.job - 1].estimate_s
                assert not (held & own and row.start_s < end and begin < limit)
    guaranteed = table[table["reserved_s"].notna() & (table["status"] == "completed")]
    assert (guaranteed["start_s"] <= guaranteed["reserved_s"]).all()


@pytest.mark.parametrize("policy", ["gs", "bgs", "mbgs"])
@settings(max_examples=cases(30), deadline=None)
@given(
    jobs=st.lists(st.tuples(st.integers(5, 30), st.sampled_from([4, 1]), st.integers(1, 25)), min_size=1, max_size=2),
    drains=st.integers(1, 60),
    mpl=st.integers(2, 5),
    switch=st.sampled_from([0, 1, 3]),
    charge=st.sampled_from(["on-change", "every-slice"]),
    at_events=st.sampled_from(["cut", "keep"]),
)
def test_only_events_delay_gangs_in_rows_into_a_window(
    policy: str, jobs: list[tuple[int, int, int]], drains: int, mpl: int, switch: int, charge: str, at_events: str
) -> None:
    begin = jobs[-1][0] + drains
    # Node 3 is reserved; jobs that never end fill the other nodes in all rows but one.
    others = [job(number, 0, 3, 2000, partition="others") for number in range(1, mpl)]
    machine = Machine(
        nodes=4,
        partitions=[Partition(name="others", nodes="0-2")],
        reservations=[Reservation(nodes="3", start_s=begin, end_s=begin + 200)],
        time_slicing=TimeSlicing(quantum_s=10, mpl=mpl, at_events=at_events),
        context_switch=ContextSwitch(seconds=switch, charge=charge),
    )
    workload = Workload.from_jobs([*others, *(job(number, *of_job) for number, of_job in enumerate(jobs, 11))])
    result = Scenario(workload=workload, machine=machine, policy=policy, history=True).run()
    start_s, events = result.jobs.set_index("job")["start_s"], result.events.time_s
    for row in result.placements.itertuples():
        if row.first_node + row.nodes == 4 and row.begin_s < begin + 200 and row.end_s > begin:
            delays = ((start_s[row.job] < events) & (events < begin)).sum()
            assert row.end_s - begin <= delays * mpl * 10  # a round of the rows each


def _members(reservation: Reservation) -> set[int]:
    bounds = reservation.node_set or ()
    return {node for low, high in zip(bounds[::2], bounds[1::2], strict=True) for node in range(low, high)}
