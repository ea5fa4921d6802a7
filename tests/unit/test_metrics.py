"""Metrics, event log and delays by later jobs against numbers worked out by hand."""

from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction
from math import isnan, sqrt

import numpy as np
import pytest

from clustermodel import Kill, Machine, Scenario, SpecificationError, Workload, synthetic_workload
from clustermodel.experiment.result import Result
from clustermodel.measure.fairness import delays_by_later_jobs, weighted_mean
from clustermodel.measure.job_table import bounded_slowdown, bounded_slowdown_perkovic
from clustermodel.measure.metrics import OPTIONAL, Summary, by_class
from clustermodel.measure.timeline import event_log
from clustermodel.policies.fcfs import Fcfs
from clustermodel.policies.interface import Decision
from clustermodel.policies.view import Batch, View
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import LoggedRotation, SliceLog
from clustermodel.recording.run_attempts import Status
from clustermodel.theory.capacity_loss import capacity_loss, gang_capacity_loss, utilization
from clustermodel.workload.job import JobRow
from tests.timeline.timeline import play, spans


@pytest.fixture(scope="module")
def five() -> Result:
    """Four nodes under EASY; lines are ``id submit nodes run [estimate]``.

    1 starts at once.  2 needs all nodes: blocked from 0, shadow time 20, no extra nodes.  3 will end in time: backfilled.
    4 would run past 20: it waits, is first in the queue from 20 on, and is killed at its estimate, 25 + 16.
    5 is wider than the machine.
    """
    return play(4, "1 0 2 20\n2 0 4 5\n3 2 2 8\n4 4 1 30 16\n5 4 5 1", "easy")


def test_the_schedule_that_the_numbers_below_are_worked_out_for(five: Result) -> None:
    assert {job: span for job, span in spans(five).items() if job != 5} == {1: (0, 20), 2: (20, 25), 3: (2, 10), 4: (25, 41)}
    assert five.jobs["status"].tolist() == ["completed", "completed", "completed", "killed", "rejected"]


def test_counts(five: Result) -> None:
    found = five.summary()
    assert (found.jobs, found.rejected, found.killed, found.aborted) == (4, 1, 1, 0)
    assert (found.backfilled, found.blocked, found.delayed) == (1, 2, 0)
    assert (found.policy, found.workload, found.nodes, found.seed) == ("easy", "workload", 4, 1)
    assert five.jobs["backfilled"].tolist() == [False, False, True, False, False]
    assert five.jobs["head_since_s"].tolist() == pytest.approx([np.nan, 0, np.nan, 20, np.nan], nan_ok=True)


def test_waits_and_responses(five: Result) -> None:
    found = five.summary()
    # waits 0, 20, 0, 25 - 4 = 21; responses 20, 25, 8, 41 - 4 = 37
    assert found.mean_wait_s == 41 / 4
    assert found.median_wait_s == 10
    assert found.p95_wait_s == pytest.approx(20.85)  # sorted 0, 0, 20, 21: position 0.95 x 3 = 2.85
    # deviations from 10.25, squared: 105.0625 twice, 95.0625, 115.5625
    assert found.std_wait_s == pytest.approx(sqrt(420.75 / 4))
    assert found.mean_response_s == 90 / 4


def test_slowdowns_by_either_paper(five: Result) -> None:
    found = five.summary()
    # Zhang et al. 2003: max(response, 10) / max(run, 10): 20/20, 25/10, 10/10, 37/16
    assert found.mean_bounded_slowdown == pytest.approx((1 + 2.5 + 1 + 2.3125) / 4)
    # Perkovic & Keleher 2000: response / max(run, 10): 20/20, 25/10, 8/10, 37/16
    assert found.mean_bounded_slowdown_perkovic == pytest.approx((1 + 2.5 + 0.8 + 2.3125) / 4)
    # weighted by 2, 4, 2 and 1 nodes
    assert found.mean_weighted_bounded_slowdown == pytest.approx((2 * 1 + 4 * 2.5 + 2 * 1 + 1 * 2.3125) / 9)


def test_utilization_loads_and_lost_capacity(five: Result) -> None:
    found = five.summary()
    work = 2 * 20 + 4 * 5 + 2 * 8 + 1 * 16
    assert found.horizon_s == 41
    assert found.utilization == found.load_until_end == work / (4 * 41)
    assert found.load == work / (4 * 4)  # accepted submissions from 0 to 4
    # two nodes idle from 0 to 2 while 2 waits, two from 10 to 20 while 2 and 4 wait; nobody waits after 25
    assert found.kappa == (2 * 2 + 2 * 10) / (4 * 41)


def test_the_event_log_has_the_state_after_each_instant(five: Result) -> None:
    log = five.events
    assert log.time_s.tolist() == [0, 2, 4, 10, 20, 25, 41]
    assert log.empty.tolist() == [2, 0, 0, 2, 0, 3, 4]
    assert log.waiting.tolist() == [1, 1, 2, 2, 1, 0, 0]
    assert capacity_loss(log.time_s, log.empty, log.waiting, 4) == pytest.approx(24 / 164)
    assert utilization([2, 4, 2, 1], [20, 5, 8, 16], 41, 4) == pytest.approx(92 / 164)


def test_times_of_the_event_log_count_from_the_first_submission() -> None:
    log = play(4, "1 100 9 5\n2 130 4 10\n3 135 4 10", "fcfs").events
    assert log.ticks.tolist() == [130_000_000, 135_000_000, 140_000_000, 150_000_000]
    assert log.time_s.tolist() == [0, 5, 10, 20]


def test_classes(five: Result) -> None:
    table = by_class(five.records, large_above=2)
    assert table.index.names == ["class", "metric"]
    assert list(table) == ["jobs", "mean", "std", "median", "p90", "p95", "p99", "max", "weighted_mean"]
    # small: 1, 3, 4 of 2, 2 and 1 nodes, waits 0, 0, 21; percentile p lies at position p x 2 of the sorted values
    small = table.loc[("small", "wait_s")].to_dict()
    expected = {"jobs": 3, "mean": 7, "std": sqrt((49 + 49 + 196) / 3), "median": 0, "p90": 0.8 * 21, "p95": 0.9 * 21}
    assert small == pytest.approx(expected | {"p99": 0.98 * 21, "max": 21, "weighted_mean": 21 / 5})
    large = table.loc[("large", "response_s")].to_dict()
    assert large == {"jobs": 1, "std": 0, **dict.fromkeys(["mean", "median", "p90", "p95", "p99", "max", "weighted_mean"], 25)}
    assert table.loc[("all", "bounded_slowdown"), ["jobs", "max"]].tolist() == [4, 2.5]


def test_a_job_of_32_nodes_is_small_and_one_of_33_large() -> None:
    jobs = play(40, "1 0 32 1\n2 1 33 1\n3 2 1 1", "fcfs").by_class()["jobs"].unstack()["wait_s"]
    assert jobs.to_dict() == {"all": 3, "small": 2, "large": 1}


def test_an_empty_class_has_no_statistics(five: Result) -> None:
    large = five.by_class().loc["large"]  # nothing above 32 nodes
    assert (large["jobs"] == 0).all()
    assert large.drop(columns="jobs").isna().all(axis=None)


RESPONSE, RUN = np.array([4.0, 10.0, 100.0, 100.0]), np.array([4.0, 2.0, 2.0, 50.0])


def test_the_slowdown_of_zhang_2003_bounds_both_times_and_is_never_below_one() -> None:
    # 10/10, 10/10, 100/10, 100/50
    assert bounded_slowdown(RESPONSE, RUN).tolist() == [1, 1, 10, 2]
    assert bounded_slowdown(RESPONSE, RUN, gamma_s=1).tolist() == [1, 5, 50, 2]


def test_the_slowdown_of_perkovic_2000_bounds_the_run_time_only_so_short_jobs_fall_below_one() -> None:
    # 4/10, 10/10, 100/10, 100/50
    assert bounded_slowdown_perkovic(RESPONSE, RUN).tolist() == [0.4, 1, 10, 2]
    assert bounded_slowdown_perkovic(RESPONSE, RUN, bound_s=1).tolist() == [1, 5, 50, 2]


def test_a_weighted_mean_of_nothing_is_nan() -> None:
    assert weighted_mean(np.array([1.0, 4.0]), [3, 1]) == 7 / 4
    assert isnan(weighted_mean(np.array([]), []))


def test_after_a_warm_up_waits_are_those_of_jobs_submitted_later_and_the_rest_is_of_the_whole_run(five: Result) -> None:
    # submitted at 2 s or later: 3 and 4, waits 0 and 21, responses 8 and 37, slowdowns 10/10 and 37/16, nodes 2 and 1
    whole, later = five.summary().as_dict(), five.summary(warm_up_s=2).as_dict()
    expected = {
        "warm_up_s": 2, "jobs": 2, "mean_wait_s": 10.5, "median_wait_s": 10.5, "p95_wait_s": 0.95 * 21, "std_wait_s": 10.5,
        "mean_response_s": 22.5, "mean_bounded_slowdown": (1 + 2.3125) / 2,
        "mean_bounded_slowdown_perkovic": (0.8 + 2.3125) / 2, "mean_weighted_bounded_slowdown": (2 * 1 + 2.3125) / 3,
    }  # fmt: skip
    assert {name: later[name] for name in expected} == pytest.approx(expected)
    assert {name: value for name, value in later.items() if name not in expected} == {
        name: value for name, value in whole.items() if name not in expected
    }
    assert five.summary(warm_up_s=0) == five.summary()


def test_a_warm_up_counts_from_the_first_submission_that_is_not_rejected() -> None:
    result = play(4, "1 90 9 5\n2 100 4 10\n3 104 4 10\n4 105 4 10", "fcfs")
    assert result.summary(warm_up_s=4).jobs == 2
    assert result.summary(warm_up_s=4.000001).jobs == 1


@pytest.mark.parametrize("warm_up_s", [-1, float("nan"), 5, "day"])
def test_a_warm_up_that_is_no_time_or_leaves_no_job_is_refused(five: Result, warm_up_s: float) -> None:
    with pytest.raises(SpecificationError, match=r"^warm_up_s: "):
        five.summary(warm_up_s=warm_up_s)


def test_a_run_in_which_no_job_ran_has_counts_and_otherwise_nothing() -> None:
    found = play(2, "1 0 3 10\n2 5 -1 10", "easy").summary()
    numbers = {key: value for key, value in found.as_dict().items() if key not in ("policy", "workload", "nodes", "seed")}
    zero = {"jobs", "killed", "aborted", "retried", "backfilled", "blocked", "delayed", "horizon_s", "warm_up_s"}
    zero |= {"mean_delay_by_later_s", "longest_delay_by_later_s", "reservation_violations", "benign_violations"}
    zero |= {"preempted", "mean_killed_times", "runtime_waste", "resizes", "failures", "failed_attempts", "failure_violations"}
    assert numbers == {key: 2 if key == "rejected" else 0 if key in zero else None for key in numbers}


def test_the_dictionary_has_every_field_in_order_and_none_for_nan(five: Result) -> None:
    found = five.summary()
    known = [field.name for field in fields(Summary) if field.name not in OPTIONAL]
    assert list(found.as_dict()) == known
    assert found.as_dict() == {name: getattr(found, name) for name in known}


class KillAtFive(Fcfs):
    """FCFS that kills job 1 when job 2 is submitted."""

    name = "killer"

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        kills = [Kill(job=view.running[1].job) for job in batch.submitted if job.id == 2]
        return [*super().decide(batch, view), *kills]


def test_a_job_killed_by_the_policy_counts_as_run_but_not_as_utilization() -> None:
    # 1 runs from 0 to 5 on two nodes and is killed; 2 from 5 to 15 on all four
    result = play(4, "1 0 2 100\n2 5 4 10", KillAtFive())
    found = result.summary()
    assert result.jobs["status"].tolist() == ["aborted", "completed"]
    assert (found.jobs, found.aborted, found.killed) == (2, 1, 0)
    assert found.mean_response_s == (5 + 10) / 2
    assert found.utilization == 4 * 10 / (4 * 15)
    assert found.load_until_end == (2 * 5 + 4 * 10) / (4 * 15)


def test_jobs_submitted_at_one_instant_have_no_load() -> None:
    found = play(4, "1 3 4 10\n2 3 4 10", "fcfs").summary()
    assert isnan(found.load)
    assert found.as_dict()["load"] is None
    assert found.load_until_end == 1


def schedule(jobs: Iterable[tuple[int, ...]]) -> JobRecords:
    """Return records of (submit, nodes, priority, start, end, head_since or -1, backfilled), seconds, ids from 1."""
    records = JobRecords()
    second = 1_000_000
    for number, (submit, nodes, priority, start, end, head_since, backfilled) in enumerate(jobs, 1):
        index = records.submitted(JobRow(submit * second, number, nodes, 1, 1, -1, -1, priority, -1))
        records.started(index, start * second, (0, nodes), nodes)
        records.ended(index, end * second, Status.COMPLETED, (end - start) * second)
        if head_since >= 0:
            records.blocked(index, head_since * second)
        if backfilled:
            records.backfilled(index)
    return records


def test_a_job_is_delayed_from_the_first_instant_at_which_the_jobs_ahead_left_it_enough() -> None:
    # Six nodes.  1 holds three until 10 (it had asked for 40).  2 needs five: blocked from 1.  3 and 4 are backfilled with
    # two nodes until 30 and one until 33.  At 10, with 3 and 4 out of the way, six nodes would have been there: 2 starts
    # at 30, when 3 ends, 20 s late.
    result = play(6, "1 0 3 10 40\n2 1 5 5\n3 2 2 28\n4 3 1 30", "easy")
    assert spans(result) == {1: (0, 10), 2: (30, 35), 3: (2, 30), 4: (3, 33)}
    assert delays_by_later_jobs(result.records, 6).tolist() == [0, 20, 0, 0]
    by_hand = schedule([(0, 3, 0, 0, 10, -1, 0), (1, 5, 0, 30, 35, 1, 0), (2, 2, 0, 2, 30, -1, 1), (3, 1, 0, 3, 33, -1, 1)])
    assert delays_by_later_jobs(by_hand, 6).tolist() == [0, 20, 0, 0]
    found = result.summary()
    assert (found.delayed, found.mean_delay_by_later_s, found.longest_delay_by_later_s) == (1, 20, 20)


def test_mean_and_longest_delay_are_over_the_delayed_jobs_only() -> None:
    # Two delays like the one above, of 20 s (the later jobs leave at 30) and of 10 s (at 60), among eight jobs.
    lines = "1 0 3 10 40\n2 1 5 5\n3 2 2 28\n4 3 1 30\n5 40 3 10 40\n6 41 5 5\n7 42 2 18\n8 43 1 17"
    found = play(6, lines, "easy").summary()
    assert (found.delayed, found.mean_delay_by_later_s, found.longest_delay_by_later_s) == (2, 15, 20)


def test_jobs_ahead_delay_nobody() -> None:
    # Four nodes under FCFS: 2 waits for 1, and 3 for 2.
    result = play(4, "1 0 4 10\n2 1 4 10\n3 2 4 10", "fcfs")
    assert delays_by_later_jobs(result.records, 4).tolist() == [0, 0, 0]


def test_instants_at_which_the_machine_was_full_count_only_by_the_bare_definition() -> None:
    # Two nodes.  1, of low priority, holds both until 100.  2, of high priority and so ahead of it, comes at 5: the nodes
    # held by the job behind it would be enough at once, but until 100 there is none to hand out.
    result = play(2, "1 0 2 100 100 0\n2 5 1 10 10 1", "fcfs")
    assert delays_by_later_jobs(result.records, 2).tolist() == [0, 0]
    assert delays_by_later_jobs(result.records, 2, only_with_idle_nodes=False).tolist() == [0, 95]


def test_nodes_backfilled_at_an_instant_were_there_to_hand_out() -> None:
    # Two nodes.  1, behind 2 by priority, holds both until 20; 3, behind 2 too, takes one of them at 20, when 2, which
    # needs both, could have started: by hand, since none of our policies would do that.
    jobs = [(0, 2, 0, 0, 20, -1, 0), (5, 2, 1, 50, 60, 5, 0), (6, 1, 0, 20, 50, -1, 1), (6, 1, 0, 20, 50, -1, 1)]
    assert delays_by_later_jobs(schedule(jobs), 2).tolist() == [0, 30, 0, 0]
    assert delays_by_later_jobs(schedule(jobs), 2, only_with_idle_nodes=False).tolist() == [0, 45, 0, 0]
    # The same schedule, did 3 and 4 not count as backfilled: at 20 the machine is full again, and 50 is the next instant.
    unmarked = [(*job[:-1], 0) for job in jobs]
    assert delays_by_later_jobs(schedule(unmarked), 2).tolist() == [0, 0, 0, 0]


def delays_by_definition(result: Result, *, only_with_idle_nodes: bool) -> list[float]:
    """Look at every instant of the run, for every blocked job, as the definition is written."""
    names = ("id", "submit", "priority", "nodes", "start", "end", "head_since", "backfilled")
    jobs = [dict(zip(names, row, strict=True)) for row in np.transpose([result.records.column(n) for n in names]).tolist()]
    instants = sorted({job[when] for job in jobs for when in ("submit", "start", "end")})
    width = result.machine.nodes

    def order(job: dict[str, int]) -> tuple[int, int, int]:
        return (-job["priority"], job["submit"], job["id"])

    def held(now: int, whose: list[dict[str, int]]) -> int:
        return sum(job["nodes"] for job in whose if job["start"] <= now < job["end"])

    delays = []
    for job in jobs:
        delay = 0
        ahead = [other for other in jobs if order(other) < order(job)]
        for now in instants if job["head_since"] >= 0 else []:
            backfilled_now = sum(other["nodes"] for other in jobs if other["backfilled"] and other["start"] == now)
            to_hand_out = width - held(now, jobs) + backfilled_now > 0 or not only_with_idle_nodes
            if job["head_since"] <= now < job["start"] and to_hand_out and width - held(now, ahead) >= job["nodes"]:
                delay = job["start"] - now
                break
        delays.append(delay / 1e6)
    return delays


@pytest.mark.parametrize("only_with_idle_nodes", [True, False])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy:backfill_order=shortest", "conservative"])
def test_delays_are_those_of_the_definition_instant_by_instant(policy: str, only_with_idle_nodes: bool) -> None:
    rows = [row._replace(priority=row.id % 3) for row in synthetic_workload(jobs=120, nodes=8, load=0.95, seed=3).rows()]
    result = Scenario(machine=Machine(nodes=8), workload=Workload(rows), policy=policy).run()
    expected = delays_by_definition(result, only_with_idle_nodes=only_with_idle_nodes)
    assert delays_by_later_jobs(result.records, 8, only_with_idle_nodes=only_with_idle_nodes).tolist() == expected
    assert sum(delay > 0 for delay in expected) >= 3  # the comparison is not one of zeros


def test_rejected_jobs_are_no_events_and_a_log_may_be_empty() -> None:
    records = JobRecords()
    records.rejected(records.submitted(JobRow(0, 1, 9, 1, 1, -1, -1, 0, -1)))
    log = event_log(records, 4)
    assert {len(column) for column in log} == {0}
    assert len(log.time_s) == 0


def test_jobs_that_still_wait_or_run_are_in_the_log() -> None:
    records = JobRecords()
    first, second, third = (records.submitted(JobRow(n * 10, n, 2, 1, 1, -1, -1, 0, -1)) for n in (1, 2, 3))
    records.started(first, 10, (0, 2), 2)
    records.ended(first, 30, Status.COMPLETED, 30)
    records.started(second, 30, (0, 2), 2)
    log = event_log(records, 3)
    assert (log.ticks.tolist(), log.empty.tolist(), log.waiting.tolist()) == ([10, 20, 30], [1, 1, 1], [0, 1, 1])
    assert records.finished.tolist() == [True, False, False]
    assert records.columns_of(third) == ()


def test_a_log_of_slices_holds_more_node_ticks_than_64_bits() -> None:
    log = SliceLog()
    noted = [
        (7, True, (3, 2**53), ((1, 0), (2, 5)), 10**32, 2**53),
        (1, False, (4,), ((0, 0),), 2**62 - 1, 5),
        (9, True, (), (), 0, 4),
    ]
    for length, waiting, held, switching, migration, up in noted:
        log.note(length, held, switching if any(map(any, switching)) else (), migration, up, waiting=waiting)
    assert list(log) == [LoggedRotation(*one) for one in noted]


def test_equation_3_is_exact_beyond_64_bits_and_as_quick_with_many_slices() -> None:
    # Ten thousand million slices of a second, N = 2^53, one node empty: e x psi is 10^16 ticks.
    rotation = LoggedRotation(10**16, True, (2**53 - 1,), ((2**53 - 1, 0),), 10**31, 2**53)
    expected = Fraction(10**16 + (2**53 - 1) * 1000 + 10**31, 2**53 * 10**16)
    assert gang_capacity_loss([rotation], 10**6, 1000, 2**53) == float(expected)
