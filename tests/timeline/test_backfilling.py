"""Backfilling assembled from parts (Perkovic & Keleher 2000), worked by hand."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import isnan
from typing import Any

import pytest

from clustermodel import Batch, Job, Machine, Scenario, Setup, View, Workload
from clustermodel.experiment.result import Result
from clustermodel.measure.job_table import Jobs
from clustermodel.policies.backfilling.moldable import Greedy
from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.policies.backfilling.speculation import TestRuns
from clustermodel.policies.interface import Decision, Start
from clustermodel.policies.view import QueuedJob
from clustermodel.recording.ledger import Account
from clustermodel.workload.speedup import DowneySpeedup
from tests.timeline.timeline import play, spans

SECOND = 1_000_000


def tries(result: Result) -> list[tuple[int, float, float, int]]:
    """Return (job, start, end, nodes) of the runs that were stopped, in seconds."""
    lost, ids = result.records.stopped_runs, result.records.column("id").tolist()
    columns = (lost.job.tolist(), lost.start.tolist(), lost.end.tolist(), lost.nodes.tolist())
    return [(ids[job], start / SECOND, end / SECOND, nodes) for job, start, end, nodes in zip(*columns, strict=True)]


def of(result: Result, job: int) -> Any:
    """Return a job's row."""
    return result.jobs.set_index("job").loc[job]


def widths(result: Result) -> dict[int, int]:
    return dict(zip(result.jobs["job"].tolist(), result.jobs["allocated_nodes"].tolist(), strict=True))


# The mechanism: a start with a time limit, or with another width.


class Scripted:
    """Starts jobs in queue order while they fit, the n-th start of each with the n-th of its (nodes, limit in seconds)."""

    name = "scripted"

    def __init__(self, terms: dict[int, Sequence[tuple[int | None, float | None]]]) -> None:
        self._terms = terms

    def start(self, setup: Setup) -> object:
        self.batches: list[tuple[float, list[int], list[int], list[int], list[int]]] = []
        self._left = {job: list(terms) for job, terms in self._terms.items()}
        return self

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        def ids(jobs: Iterable[QueuedJob]) -> list[int]:
            return [job.id for job in jobs]

        ended = ids(gang.job for gang in batch.ended)
        self.batches.append((view.now / SECOND, ended, ids(batch.submitted), ids(batch.requeued), ids(view.waiting.values())))
        idle = view.idle
        for job in view.waiting.values():
            terms = self._left.get(job.id) or [(None, None)]
            nodes, limit = terms[0]
            if (nodes or job.nodes) > idle:
                break
            idle -= nodes or job.nodes
            if job.id in self._left:
                del self._left[job.id][:1]
            yield Start(job=job, nodes=nodes, limit=None if limit is None else round(limit * SECOND))


def test_a_job_stopped_at_its_limit_waits_again_at_its_old_place_and_its_work_is_lost() -> None:
    # 1 is stopped at 4; 2 came in the meantime, and is behind it: 1 runs 4-14 to its end, then 2.
    policy = Scripted({1: [(None, 4)]})
    result = play(2, "1 0 2 10\n2 1 1 5", policy)
    assert spans(result) == {1: (4, 14), 2: (14, 19)}
    assert tries(result) == [(1, 0, 4, 2)]
    assert policy.batches == [
        (0, [], [1], [], [1]),
        (1, [], [2], [], [2]),
        (4, [1], [], [1], [1, 2]),
        (14, [1], [], [], [2]),
        (19, [2], [], [], []),
    ]
    one = of(result, 1)
    assert (one.tries, one.wasted_node_s, one.wait_s, one.response_s, one.run_s) == (2, 8, 4, 14, 10)
    assert (of(result, 2).tries, of(result, 2).wasted_node_s) == (1, 0)
    ledger = result.ledger
    assert [sum(ledger.amount(account)) / SECOND for account in (Account.USEFUL, Account.LOST)] == [25, 8]
    # idle: one node while 2 runs
    assert sum(ledger.amount(Account.IDLE)) == 5 * SECOND
    summary = result.summary()
    assert (summary.retried, summary.jobs, summary.killed) == (1, 2, 0)
    assert summary.wasted_load == pytest.approx(8 / 38)


def test_requeued_jobs_stand_in_queue_order_before_and_behind_others() -> None:
    # 5 and 3 are stopped at the same instant at which 7 comes; 9 came before but is of lower priority.
    policy = Scripted({5: [(None, 4)], 3: [(None, 3)]})
    play(4, "5 0 2 9\n3 1 2 9 9 1\n9 2 4 9 9 -1\n7 4 4 9", policy)
    assert policy.batches[3] == (4, [3, 5], [7], [3, 5], [3, 5, 7, 9])


@pytest.mark.parametrize(("limit", "lost"), [(9.999999, True), (10, False), (11, False)])
def test_a_job_that_ends_exactly_at_its_limit_or_before_it_has_not_run_in_vain(limit: float, lost: bool) -> None:
    result = play(1, "1 0 1 10 20", Scripted({1: [(None, limit)]}))
    assert len(tries(result)) == lost
    assert spans(result)[1] == ((limit, round(limit + 10, 6)) if lost else (0, 10))
    assert of(result, 1).status == "completed"


@pytest.mark.parametrize(("limit", "end", "status"), [(20, 20, "killed"), (25, 20, "killed"), (19, 39, "killed")])
def test_a_job_killed_at_its_estimate_within_its_limit_is_killed_for_good(limit: float, end: float, status: str) -> None:
    result = play(1, "1 0 1 50 20", Scripted({1: [(None, limit)]}))
    assert (spans(result)[1][1], of(result, 1).status) == (end, status)
    assert len(tries(result)) == (limit < 20)


def test_without_killing_the_limit_still_stops() -> None:
    result = play(1, "1 0 1 50 20", Scripted({1: [(None, 30)]}), kill_at_estimate=False)
    assert (spans(result)[1], tries(result)) == ((30, 80), [(1, 0, 30, 1)])


def test_half_as_many_nodes_take_twice_as_long_and_the_kill_at_the_estimate_stretches_too() -> None:
    # 1 asked for 4 nodes and 10 s; on 2 it takes 20 s.  2 runs 50 s, is killed at 20 s on 4 nodes, at 40 s on 2.
    result = play(4, "1 0 4 10 15\n2 0 4 50 20", Scripted({1: [(2, None)], 2: [(2, None)]}))
    assert spans(result) == {1: (0, 20), 2: (0, 40)}
    assert result.jobs["status"].tolist() == ["completed", "killed"]
    assert result.jobs["nodes"].tolist() == [4, 4]
    assert widths(result) == {1: 2, 2: 2}
    assert Jobs.of(result.records).dedicated.tolist() == [10 * SECOND, 20 * SECOND]
    # bounded slowdown compares with the run on the nodes asked for: 20 / 10 and 40 / 20
    assert result.summary().mean_bounded_slowdown_perkovic == 2


def test_a_try_and_the_run_after_it_can_have_different_widths() -> None:
    result = play(4, "1 0 2 10", Scripted({1: [(4, 2), (1, None)]}))
    assert (spans(result)[1], tries(result), widths(result)) == ((2, 22), [(1, 0, 2, 4)], {1: 1})
    assert (of(result, 1).wasted_node_s, of(result, 1).tries) == (8, 2)
    assert [sum(result.ledger.amount(account)) / SECOND for account in (Account.USEFUL, Account.LOST)] == [20, 8]


def test_downeys_speedup_decides_what_a_width_costs() -> None:
    # sigma = 2, A = 8: S(8) = 192 / 38 and S(4) = 3.2, so that 32 s on eight nodes are 32 x 192 / 38 / 3.2 = 50.526316 s on
    # four
    jobs = Workload.from_jobs([Job(id=1, nodes=8, submit_s=0, run_s=32)])
    for speedup, end in ((DowneySpeedup(sigma=2.0), 50.526316), (DowneySpeedup(sigma=0.0), 64)):
        for policy in (Scripted({1: [(4, None)]}), "backfilling:width=half"):
            result = Scenario(machine=Machine(nodes=8), workload=jobs, policy=policy, speedup=speedup).run()
            assert spans(result)[1] == (0, end)


# Guarantees.

# Four nodes.  1 holds two until 10.  2 needs four: it can start at 10, until 20.  3 needs two for 12 s.
BLOCKED = "1 0 2 10\n2 1 4 10\n3 2 2 12"


def test_without_guarantees_a_job_is_overtaken_by_every_shorter_one_that_comes() -> None:
    # 1/L: 4 (6 s) comes at 3 and would end at 9: both let it in.  5 (9 s) comes at 9 and is shorter than 2 (10 s): it takes the
    # room in which 2 was placed, though not where 2 holds a guarantee.
    jobs = "1 0 2 10\n2 1 4 10\n4 3 2 6\n5 9 2 9"
    assert spans(play(4, jobs, "1/L")) == {1: (0, 10), 2: (10, 20), 4: (3, 9), 5: (20, 29)}
    assert spans(play(4, jobs, "1/L-NG")) == {1: (0, 10), 2: (18, 28), 4: (3, 9), 5: (9, 18)}


def test_in_arrival_order_both_place_the_waiting_jobs_one_after_the_other() -> None:
    expected = {1: (0, 10), 2: (10, 20), 3: (20, 32)}
    assert spans(play(4, BLOCKED, "D")) == expected
    assert spans(play(4, BLOCKED, "D-NG")) == expected


def test_an_early_end_moves_all_waiting_jobs_up_in_order() -> None:
    # 1 says 20 and ends at 5.  2 (three nodes, 10 s) is placed at 20, 3 (four nodes) at 30, 4 (two nodes, 40 s) at 40; at 5
    # they all move up: 2 to 5, 3 to 15, 4 to 25.
    jobs = "1 0 2 5 20\n2 1 3 10\n3 2 4 10\n4 3 2 40"
    assert spans(play(4, jobs, "D")) == spans(play(4, jobs, "D-NG")) == {1: (0, 5), 2: (5, 15), 3: (15, 25), 4: (25, 65)}
    # 5 (one node, 3 s) and 6 (one node, 20 s) come at 6.  Beside 2 one node is idle until 15: enough for 5 alone.
    late = jobs + "\n5 6 1 3\n6 6 1 20"
    assert spans(play(4, late, "1/L")) == {1: (0, 5), 2: (5, 15), 3: (15, 25), 4: (25, 65), 5: (6, 9), 6: (25, 45)}


def test_selective_reservations_come_with_the_threshold() -> None:
    # 2 (four nodes, 10 s) comes at 1.  Jobs of two nodes for 10 s keep coming: 3 at 5, 4 at 10, 5 at 15, ...  Without a
    # reservation 2 starts when they stop.  Its expected slowdown is (wait + 10) / 10: 1.4 at 5, 1.9 at 10, 2.4 at 15.
    jobs = "1 0 2 10\n2 1 4 10\n" + "\n".join(f"{number} {5 * number - 10} 2 10" for number in range(3, 10))

    def start_of_2(threshold: float) -> tuple[float, float]:
        one = of(play(4, jobs, f"backfilling:guarantees=selective,threshold={threshold}"), 2)
        return one.start_s, one.reserved_s

    assert start_of_2(1) == (10, 10)  # at once: 1 ends at 10
    assert start_of_2(1.4) == (10, 10)  # at 5, before 3 is looked at
    assert start_of_2(1.5) == (15, 15)  # at 10, when 3 runs until 15
    assert start_of_2(2.4) == (20, 20)  # at 15, when 4 runs until 20
    start, promise = start_of_2(100)
    assert start == 45
    assert isnan(promise)


@pytest.mark.parametrize(
    ("relaxation", "start", "bound"),
    [
        (0, 10, 10),  # EASY: 3 would end at 14, and 2 start then
        (0.4, 10, 13.6),  # 2 could start at 10, 9 s after it came: until 13.6
        (0.5, 14, 14.5),  # until 14.5
    ],
)
def test_relaxed_backfilling_delays_the_first_blocked_job_by_a_bounded_share_of_its_wait(
    relaxation: float, start: float, bound: float
) -> None:
    result = play(4, BLOCKED, f"backfilling:guarantees=relaxed,relaxation={relaxation}")
    assert spans(result)[2] == (start, start + 10)
    assert spans(result)[3] == ((2, 14) if start == 14 else (20, 32))
    assert of(result, 2).reserved_s == bound


def test_the_relaxed_bound_never_grows_by_later_delays() -> None:
    # After 3 (until 14) the first blocked job expects 14; were the bound made anew it would be 14 + 13 / 2 = 20.5, and 4 (two
    # nodes, 8 s, at 10) would be let in until 18.
    result = play(4, BLOCKED + "\n4 10 2 8", "backfilling:guarantees=relaxed,relaxation=0.5")
    assert spans(result) == {1: (0, 10), 2: (14, 24), 3: (2, 14), 4: (24, 32)}


class Doubled:
    """Only jobs of four nodes have an alternative."""

    def sizes(self, nodes: int, most: int) -> Sequence[int]:
        return (4, 8) if nodes == 4 else (nodes,)


def test_a_relaxed_promise_is_not_given_up_for_a_shape_that_ends_earlier_but_starts_later() -> None:
    # Eight nodes: 1 holds three until 5, 2 two until 26, 3 two until 14.  4 can have four nodes at 5, until 25, and is promised
    # that.  2 ends at 2: eight nodes from 14 on would let 4 end at 24, but 5 (three nodes until 14) must not take its four.
    jobs = "1 0 3 5\n2 0 2 2 26\n3 0 2 14\n4 1 4 20\n5 3 3 11"
    result = play(8, jobs, Backfilling(guarantees="relaxed", relaxation=0.0, width=Doubled()))
    assert of(result, 4).reserved_s == 5
    assert spans(result)[4] == (5, 25)


# Speculation.

# Four nodes.  1 holds two until 100.  2 needs four: promised 100.  3 (two nodes) says 200 and runs 30: it is promised 110.
OVERESTIMATED = "1 0 2 100\n2 1 4 10\n3 2 2 30 200"


def test_a_job_that_would_not_fit_runs_in_a_hole_on_the_speculation_that_it_is_shorter() -> None:
    # The hole is 2-100.  3 needs 0.4 x 200 = 80 of it, and gets all 98.
    assert spans(play(4, OVERESTIMATED, "D:speculation=0.4")) == {1: (0, 100), 2: (100, 110), 3: (2, 32)}
    assert spans(play(4, OVERESTIMATED, "D-NG:speculation=0.4")) == {1: (0, 100), 2: (100, 110), 3: (2, 32)}
    # The hole is 0.49 of the estimate: too short for 0.5.
    assert spans(play(4, OVERESTIMATED, "D:speculation=0.5"))[3] == (110, 140)
    assert spans(play(4, OVERESTIMATED, "D:speculation=0.49"))[3] == (2, 32)
    assert spans(play(4, OVERESTIMATED, "D"))[3] == (110, 140)


def test_its_speculated_time_is_the_whole_hole_and_the_guaranteed_copy_starts_at_its_reserved_time() -> None:
    # 3 runs 150: it is stopped at 100, when the hole ends; its copy is suspended until then, and starts at 110 as promised.
    for policy in ("D:speculation=0.1", "D:speculation=0.49"):
        result = play(4, "1 0 2 100\n2 1 4 10\n3 2 2 150 200", policy)
        assert spans(result) == {1: (0, 100), 2: (100, 110), 3: (110, 260)}
        assert tries(result) == [(3, 2, 100, 2)]
        three = of(result, 3)
        assert (three.reserved_s, three.tries, three.wasted_node_s, three.wait_s) == (110, 2, 196, 108)
        assert sum(result.ledger.amount(Account.LOST)) == 196 * SECOND
        assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)


def test_the_reserved_time_itself_ends_the_hole() -> None:
    # Two nodes: 1 holds one until 50.  2 needs two: promised 50-60.  3 (one node, 100 s) is promised 60: free from 2 to 50.
    result = play(2, "1 0 1 50\n2 1 2 10\n3 2 1 70 100", "D:speculation=0.3")
    assert tries(result) == [(3, 2, 50, 1)]
    assert spans(result)[3] == (60, 130)
    assert of(result, 3).reserved_s == 60


def test_early_success_gives_up_the_reservation_and_the_others_move_up() -> None:
    # 4 (four nodes, 20 s) is promised 310, after 3's copy 110-310.  3 succeeds at 32: 4 is moved to 110.
    result = play(4, OVERESTIMATED + "\n4 3 4 20", "D:speculation=0.4")
    assert spans(result) == {1: (0, 100), 2: (100, 110), 3: (2, 32), 4: (110, 130)}
    assert of(result, 4).reserved_s == 310


def test_while_it_runs_speculatively_the_reservation_is_not_moved() -> None:
    # 1 ends at 50 instead of 100: 2 can start only when 3, which is stopped at 100, has ended; 3's copy stays at 110.
    result = play(4, "1 0 2 50 100\n2 1 4 10\n3 2 2 150 200", "D:speculation=0.4")
    assert spans(result) == {1: (0, 50), 2: (100, 110), 3: (110, 260)}
    assert tries(result) == [(3, 2, 100, 2)]


def test_the_next_speculated_time_is_the_mean_of_the_last_and_the_estimate() -> None:
    # One node beside 1; 2, 4 (two nodes each, priority) bound two holes for 3, which says 100 and runs 90.
    # First hole 2-50 (48): it needs 10, and is given 48.  The next must have (48 + 100) / 2 = 74.
    def second_hole(length: float) -> Result:
        # 2 runs 50-51; 5 takes both nodes from 51 + length on for 10 s.  Without guarantees both are placed before 3.
        jobs = f"1 0 1 50\n2 1 2 1 1 1\n3 2 1 90 100\n4 50 1 {1 + length}\n5 50 2 10 10 1"
        return play(2, jobs, in_rank)

    rank = {1: 0, 2: 1, 4: 2, 5: 3, 3: 4}
    in_rank = Backfilling(order=lambda job, _: rank[job.id], guarantees="none", speculation=0.1)

    # 4 starts after 2, at 51, and ends at 52 + length, when 5 starts: the hole beside it is 1 + length.
    assert tries(second_hole(72.9)) == [(3, 2, 50, 1)]
    assert tries(second_hole(73)) == [(3, 2, 50, 1), (3, 51, 125, 1)]
    # 90 of 100 are run in a hole of 90
    assert spans(second_hole(89))[3] == (51, 141)


def test_speculation_goes_through_the_queue_in_its_order_with_what_is_left() -> None:
    # One hole of two nodes until 100: D lets 3 take it, 1/L lets 4, which says 150.
    jobs = OVERESTIMATED + "\n4 2 2 30 150"
    assert spans(play(4, jobs, "D:speculation=0.3"))[3] == (2, 32)
    assert spans(play(4, jobs, "1/L:speculation=0.3"))[4] == (2, 32)


# Test runs.

HOUR = 3600
# Four nodes; 1 holds two until 20 h.  2 needs four: promised 20 h.  3 (two nodes) says 40 h.
LONG = f"1 0 2 {20 * HOUR}\n2 1 4 10\n"


def test_a_long_job_that_cannot_be_speculated_on_is_tested_for_a_quarter_of_an_hour() -> None:
    jobs = LONG + f"3 2 2 {30 * HOUR} {40 * HOUR}"
    for policy in ("D:test_runs=true", "D:test_runs=true,speculation=0.6", "D-NG:test_runs=true"):
        result = play(4, jobs, policy)
        assert tries(result) == [(3, 2, 902, 2)]  # once: not again at 902, when it comes back
        assert of(result, 3).wasted_node_s == 1800
    # A job that fails early ends in its test run.
    assert spans(play(4, LONG + f"3 2 2 600 {40 * HOUR}", "D:test_runs=true"))[3] == (2, 602)


def test_it_is_not_tested_where_it_can_be_speculated_on_or_says_three_hours_or_less() -> None:
    result = play(4, LONG + f"3 2 2 {30 * HOUR} {40 * HOUR}", "D:test_runs=true,speculation=0.4")
    assert tries(result) == [(3, 2, 20 * HOUR, 2)]
    # 2 s of the hole of three hours are missing
    hole = f"1 0 2 {3 * HOUR}\n2 1 4 10\n"
    assert tries(play(4, hole + f"3 2 2 {2 * HOUR} {3 * HOUR}", "D:test_runs=true")) == []
    assert tries(play(4, hole + f"3 2 2 {2 * HOUR} {3 * HOUR + 1}", "D:test_runs=true")) == [(3, 2, 902, 2)]


@pytest.mark.parametrize(("hole", "run"), [(299, 0), (300, 300), (400, 400), (900, 900), (901, 900), (5000, 900)])
def test_a_test_run_takes_five_to_fifteen_minutes_as_the_hole_allows(hole: int, run: int) -> None:
    result = play(4, f"1 0 2 {hole + 2}\n2 1 4 10\n3 2 2 9000 {4 * HOUR}", "D:test_runs=true")
    assert tries(result) == ([(3, 2, 2 + run, 2)] if run else [])


def test_a_test_run_alone_makes_no_job_speculate_later() -> None:
    # 3 says 4 h.  After its test run, beside 1 (until 3 h 50 min), a hole of more than half of its estimate is left.
    jobs = f"1 0 2 {3 * HOUR + 3000}\n2 1 4 10\n3 2 2 {3 * HOUR} {4 * HOUR}"
    assert tries(play(4, jobs, "D:test_runs=true")) == [(3, 2, 902, 2)]
    assert tries(play(4, jobs, "D:test_runs=true,speculation=0.99")) == [(3, 2, 902, 2)]


def test_the_times_of_test_runs_can_be_chosen() -> None:
    policy = Backfilling(test_runs=TestRuns(longer_than_s=150, shortest_s=10, longest_s=20))
    assert tries(play(4, OVERESTIMATED, policy)) == [(3, 2, 22, 2)]


# Widths.


@pytest.mark.parametrize(
    ("width", "allocated", "end"),
    [("asked", [8, 4, 1], [10, 20, 30]), ("half", [4, 2, 1], [20, 40, 30]), ("quarter", [2, 2, 1], [40, 40, 30])],
)
def test_half_and_quarter_size_jobs_run_longer_on_fewer_nodes_and_sequential_ones_as_they_are(
    width: str, allocated: list[int], end: list[float]
) -> None:
    result = play(16, "1 0 8 10\n2 0 4 20\n3 0 1 30", f"backfilling:width={width}")
    assert result.jobs["allocated_nodes"].tolist() == allocated
    assert result.jobs["end_s"].tolist() == end
    assert result.jobs["start_s"].tolist() == [0, 0, 0]


def test_greedy_takes_the_shape_that_ends_first_and_of_equals_what_was_asked() -> None:
    # Eight nodes.  1 takes all eight instead of four: 5 s instead of 10.  2 asks for two: from 5 on, four nodes end at 10,
    # two at 15, one at 25.  3 asks for four: four beside 2 at 5 end at 15; so do eight at 10.
    result = play(8, "1 0 4 10\n2 1 2 10\n3 2 4 10", "backfilling:width=greedy")
    assert (spans(result), widths(result)) == ({1: (0, 5), 2: (5, 10), 3: (5, 15)}, {1: 8, 2: 4, 3: 4})


def test_greedy_narrows_a_job_that_would_wait_too_long() -> None:
    # 1 holds five of eight nodes until 100.  2 asks for four and 30 s: now on two it ends at 62, at 100 on four at 130.
    result = play(8, "1 0 5 100\n2 2 4 30", Backfilling(width=Greedy((1.0, 0.5))))
    assert (spans(result)[2], widths(result)[2]) == ((2, 62), 2)
    # With only 20 s until 1 ends it waits: 2 + 60 > 22 + 30.
    result = play(8, "1 0 5 22\n2 2 4 30", Backfilling(width=Greedy((1.0, 0.5))))
    assert (spans(result)[2], widths(result)[2]) == ((22, 52), 4)


def test_greedy_chooses_again_when_room_is_made_but_never_a_later_start() -> None:
    # Eight nodes; 1 holds five until 100, but ends at 20.  2: four nodes at 100 would end at 190, two at once end at 182.  3
    # (four nodes, 100 s) waits for 100, and moves up to 20, still as wide.
    result = play(8, "1 0 5 20 100\n2 2 4 90\n3 3 4 100", Backfilling(width=Greedy((1.0, 0.5))))
    assert (spans(result)[2], widths(result)[2]) == ((2, 182), 2)
    assert of(result, 3).reserved_s == 100
    assert (spans(result)[3], widths(result)[3]) == ((20, 120), 4)


def test_a_starting_job_is_widened_into_idle_nodes_up_to_what_it_asked_for_or_beyond() -> None:
    # Half-size by default, on eight nodes: 1 (asks for four) gets two, and the six idle ones widen it.
    for policy, nodes, end in (
        ("backfilling:width=half", 2, 20),
        ("backfilling:width=half,widening=true", 4, 10),
        ("backfilling:width=half,widening=1.5", 6, 6.666667),
        ("backfilling:width=half,widening=4", 8, 5),
        ("backfilling:widening=2.0", 8, 5),
        ("backfilling:widening=true", 4, 10),
    ):
        result = play(8, "1 0 4 10", policy)
        assert (widths(result)[1], spans(result)[1]) == (nodes, (0, end))


def test_widening_goes_in_the_order_of_the_pass() -> None:
    # 1 (20 s) and 2 (10 s) ask for four of six nodes and start on two each: the first in order gets the other two.
    jobs = "1 0 4 20\n2 0 4 10"
    assert widths(play(6, jobs, "D:width=half,widening=true")) == {1: 4, 2: 2}
    assert widths(play(6, jobs, "1/L:width=half,widening=true")) == {1: 2, 2: 4}


class Given:
    """Each job has one width, by the nodes it asked for."""

    def __init__(self, width: dict[int, int]) -> None:
        self.width = width

    def sizes(self, nodes: int, most: int) -> Sequence[int]:
        return (self.width.get(nodes, nodes),)


def in_order(*jobs: int) -> Callable[[QueuedJob, int], int]:
    return lambda job, _: jobs.index(job.id)


@pytest.mark.parametrize("guarantees", ["all", "none"])
def test_widening_goes_as_far_as_nodes_stay_free_until_the_new_end(guarantees: str) -> None:
    # Eight nodes.  1 holds four until 12; then 3 gets five, until 22.  2 asks for eight, 10 s, and starts on two, until
    # 40.  Four would be idle for it now, but not from 12 to 20; three are, until 26.67.
    policy = Backfilling(order=in_order(1, 3, 2), guarantees=guarantees, width=Given({8: 2}), widening=True)
    result = play(8, "1 0 4 12\n2 0 8 10\n3 0 5 10", policy)
    assert spans(result) == {1: (0, 12), 2: (0, 26.666667), 3: (12, 22)}
    assert widths(result) == {1: 4, 2: 3, 3: 5}


@pytest.mark.parametrize("guarantees", ["all", "none"])
def test_widening_delays_no_waiting_job_though_without_guarantees_nothing_is_promised(guarantees: str) -> None:
    # Six nodes.  1 holds two until 3.  2 asks for four, 10 s: it gets two until 20, and two are idle.  3 asks for six, 10 s,
    # and gets four for 15 s: it is placed at 3, when 1 ends, on the nodes that 2 leaves.  Widened, 2 would hold four until
    # 10.
    jobs = "1 0 2 3\n2 0 4 10\n3 0 6 10"
    width = Given({4: 2, 6: 4})
    policy = Backfilling(order=in_order(1, 2, 3), guarantees=guarantees, width=width, widening=True)
    result = play(6, jobs, policy)
    assert spans(result) == {1: (0, 3), 2: (0, 20), 3: (3, 18)}
    assert widths(result) == {1: 2, 2: 2, 3: 4}


def test_a_job_that_starts_on_speculation_is_not_widened() -> None:
    # Six nodes; 3 asks for four but is given two, on which it says 200 and runs 30; four are idle until 100, when 2 gets all.
    policy = Backfilling(speculation=0.4, width=Given({4: 2}), widening=True)
    result = play(6, "1 0 2 100\n2 1 6 10\n3 2 4 15 100", policy)
    assert (spans(result)[3], widths(result)[3]) == ((2, 32), 2)
    assert of(result, 3).reserved_s == 110


# Orders.


def test_r_is_drawn_anew_at_each_pass_and_p_once() -> None:
    # One node.  Twenty equal jobs wait while 0 runs; each end is a pass.  Under P with three levels they run in at most three
    # ascending stretches; under R the next one is drawn at each pass.
    jobs = "0 0 1 10\n" + "\n".join(f"{number} 1 1 10" for number in range(1, 21))

    def stretches(policy: str) -> int:
        result = play(1, jobs, policy)
        order = result.jobs.sort_values("start_s")["job"].tolist()[1:]
        assert sorted(order) == list(range(1, 21))
        return 1 + sum(one > other for one, other in pairwise(order))

    assert stretches("P-NG") <= 3
    assert stretches("P") <= 3
    assert stretches("P-NG:levels=1") == 1
    assert stretches("R-NG") > 3
    assert stretches("1/L-NG") == 1


def test_the_starvation_weight_lets_a_long_wait_win() -> None:
    # One node.  2 (20 s) waits from 1 on; from 10 on there is always a shorter one (10 s).  1/L: 0.05 against 0.1; with a
    # weight of 0.002 for each second 2 is ahead of a job that comes more than 25 s after it: of 5, which comes at 30, not
    # of 3 and 4.
    jobs = "1 0 1 10\n2 1 1 20\n" + "\n".join(f"{number} {10 * number - 20} 1 10" for number in range(3, 9))
    assert spans(play(1, jobs, "1/L-NG"))[2] == (70, 90)
    assert spans(play(1, jobs, "1/L-NG:starvation_weight=0.002"))[2] == (30, 50)
    assert spans(play(1, jobs, "1/L-NG:starvation_weight=0.001"))[2] == (60, 80)


# Explanations.


def facts(result: Result, job: int) -> tuple[object, ...]:
    one = result.explain(job)
    return one.rule, one.holder, one.shadow_s


def test_the_reasons_of_each_kind_of_start() -> None:
    head = "head of the queue, and it fits"
    plain = play(4, "1 0 2 10\n2 1 4 10\n4 3 2 6", "1/L", explain=True)
    assert facts(plain, 1) == ("head of the queue, and its reserved time has come", None, None)
    assert facts(plain, 4) == ("backfilled: its reserved time has come, which delays no waiting job", 2, 10)
    free = play(4, "1 0 2 10\n2 1 4 10\n4 3 2 6", "1/L-NG", explain=True)
    assert facts(free, 1) == (head, None, None)
    assert facts(free, 4) == ("backfilled: it fits, which no waiting job was placed to prevent", 2, None)
    assert "job 2, ahead of it in the queue, kept waiting" in str(free.explain(4))
    guess = play(4, OVERESTIMATED, "D:speculation=0.4", explain=True)
    assert facts(guess, 3) == ("backfilled: it fits, if it ends by its speculated time", 2, 100)
    relaxed = play(4, BLOCKED, "backfilling:guarantees=relaxed,relaxation=0.5", explain=True)
    rule = "backfilled: it fits, and the first blocked job can still start by its guaranteed start"
    assert facts(relaxed, 3)[:2] == (rule, 2)
    assert facts(relaxed, 2)[0] == head
    selective = play(4, BLOCKED, "backfilling:guarantees=selective,threshold=9", explain=True)
    assert facts(selective, 3)[:2] == ("backfilled: it fits, which delays no job that holds a reservation", 2)


def test_the_reason_that_is_shown_is_that_of_the_last_try() -> None:
    result = play(4, "1 0 2 100\n2 1 4 10\n3 2 2 150 200", "D:speculation=0.4", explain=True)
    assert facts(result, 3)[0] == "head of the queue, and its reserved time has come"
    assert result.explain(3).start_s == 110


def test_jobs_that_start_together_are_not_called_backfilled() -> None:
    # 2 has the lower id but stands behind 5; both start at 0.
    for policy in ("D", "1/L-NG", "backfilling:guarantees=selective", "backfilling:guarantees=relaxed"):
        result = play(4, "2 0 2 5\n5 0 2 10 10 1", policy, explain=True)
        assert not result.jobs["backfilled"].any()
        assert all(result.explain(job).rule.startswith("head of the queue") for job in (2, 5))
