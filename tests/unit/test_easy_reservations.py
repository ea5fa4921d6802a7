"""EASY's reservation renewed or kept, and the delays and violations by jobs that were backfilled over the blocked job."""

import numpy as np
import pytest

from clustermodel import Job, Machine, QueuedJob, Result, Scenario, Workload, to_ticks
from clustermodel.machine.failure import Failure
from clustermodel.measure.fairness import delays_by_later_jobs, reservation_violations
from clustermodel.policies.easy import Easy
from clustermodel.policies.predictors import UserEstimate
from tests.property.test_failures import Listed


def run(policy: str | Easy, rows: list[tuple[int, float, int, float, float]], nodes: int, *, kills: bool = True) -> Result:
    """Run jobs given by number, submission, nodes, run time and estimate."""
    jobs = [Job(id=i, submit_s=s, nodes=n, run_s=r, estimate_s=e) for i, s, n, r, e in rows]
    machine = Machine(nodes=nodes, kill_at_estimate=kills)
    return Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy).run()


def starts(result: Result) -> list[float]:
    found: list[float] = result.jobs["start_s"].tolist()
    return found


# Job 3 needs the whole machine.  When it is blocked, job 1 is expected to end at 200 s; it ends at 30 s, and the first time at
# which job 3 can start becomes 100 s.  Job 4 would run until 160 s.
EARLY = [(1, 0, 3, 30, 200), (2, 0, 1, 100, 100), (3, 1, 4, 10, 10), (4, 40, 1, 120, 120)]


def test_a_renewed_reservation_moves_with_early_completions_and_a_kept_one_does_not() -> None:
    renewed, kept = (run(f"easy:reservation={which}", EARLY, 4) for which in ("renewed", "kept"))
    assert starts(renewed) == starts(run("easy", EARLY, 4)) == [0, 0, 100, 110]
    assert starts(kept) == [0, 0, 160, 40]
    assert [result.jobs["reserved_s"][2] for result in (renewed, kept)] == [200, 200]
    assert [result.records.column("due")[2] for result in (renewed, kept)] == [to_ticks(100), to_ticks(200)]


def test_a_kept_reservation_is_given_up_when_nodes_are_repaired_later_than_expected() -> None:
    # Microseconds: an outage is expected to last 1.  Job 1 needs all nodes and outlives its estimate; the last repair is at 95.
    failures = [(2, 0, 2), (21, 4, 2), (41, 1, 1), (41, 0, 6), (55, 0, 40)]
    listed = tuple(Failure(at, node, repair) for at, node, repair in failures)
    machine = Machine(nodes=5, kill_at_estimate=False, failures=Listed(listed, mean_repair_s=1e-6))
    workload = Workload.from_jobs([Job(id=1, submit_s=1e-6, nodes=5, run_s=20e-6, estimate_s=13e-6)])
    renewed, kept = (
        Scenario(machine=machine, workload=workload, policy=f"easy:reservation={which}").run() for which in ("renewed", "kept")
    )
    assert starts(kept) == starts(renewed) == [95e-6]


def test_a_job_whose_reservation_is_kept_starts_as_soon_as_it_fits() -> None:
    # Job 1 ends early, or exactly as expected after job 2 has ended early.
    assert starts(run("easy:reservation=kept", [(1, 0, 3, 30, 200), (2, 0, 1, 200, 200), (3, 1, 3, 10, 10)], 4)) == [0, 0, 30]
    assert starts(run("easy:reservation=kept", [(1, 0, 2, 90, 90), (2, 0, 2, 30, 200), (3, 1, 4, 10, 10)], 4)) == [0, 0, 90]


def test_a_kept_reservation_moves_to_a_later_time_where_a_job_outlives_its_estimate() -> None:
    # Job 1 outlives its estimate: job 3 cannot start at 50 s, and job 4, which would end at 130 s, delays it no further.
    rows = [(1, 0, 3, 150, 50), (2, 0, 1, 40, 40), (3, 1, 4, 10, 10), (4, 60, 1, 1, 1)]
    result = run("easy:reservation=kept", rows, 4, kills=False)
    assert starts(result) == [0, 0, 150, 60]


def over_it(result: Result) -> list[list[float]]:
    """Return the delays by all later jobs, and by those backfilled over the blocked job."""
    nodes = result.machine.nodes
    return [delays_by_later_jobs(result.records, nodes, over_it=over_it).tolist() for over_it in (False, True)]


def test_a_job_backfilled_while_another_was_protected_was_not_backfilled_over_it() -> None:
    # Job 4 starts at 0 s on the node that job 2 leaves; job 3 is blocked from 10 s on, and has to wait for job 4.
    rows = [(1, 0, 2, 10, 10), (2, 0, 3, 10, 10), (3, 0, 4, 10, 10), (4, 0, 1, 100, 100)]
    result = run("easy", rows, 4)
    assert starts(result) == [0, 10, 100, 0]
    assert over_it(result) == [[0, 0, 80, 0], [0, 0, 0, 0]]
    fairness = result.fairness().loc["all"]
    assert fairness[["delayed", "delayed_over_it", "longest_delay_by_later_s"]].tolist() == [1, 0, 80]


def test_a_job_backfilled_since_it_was_blocked_was_backfilled_over_it() -> None:
    result = run("easy:reservation=kept", EARLY, 4)
    assert over_it(result) == [[0, 0, 60, 0]] * 2
    assert result.fairness().loc["all", "mean_delay_by_later_s_over_it"] == 60


class Wrong(UserEstimate):
    """The estimate, but 50 s for job 3."""

    def predict(self, job: QueuedJob) -> int:
        return to_ticks(50) if job.id == 3 else job.estimate


@pytest.mark.parametrize(
    ("rows", "late_s", "expected"),
    [
        # Job 3, backfilled over job 2, outlives its prediction: job 2, due at 100 s, waits for it.
        ([(1, 0, 1, 100, 100), (2, 0, 2, 10, 10), (3, 0, 1, 300, 500)], 200, [True, True]),
        # Job 1 too outlives the time at which job 2 is due, and ends before job 3: at 100 s that is not known.
        ([(1, 0, 1, 120, 100), (2, 0, 2, 10, 10), (3, 0, 1, 300, 500)], 200, [True, False]),
        # Only job 1 does.
        ([(1, 0, 1, 120, 100), (2, 0, 2, 10, 10), (3, 0, 1, 40, 500)], 20, [False, False]),
    ],
)
def test_a_violation_is_judged_when_the_job_is_due(
    rows: list[tuple[int, float, int, float, float]], late_s: float, expected: list[bool]
) -> None:
    result = run(Easy(predictor=Wrong()), rows, 2, kills=False)
    found = [reservation_violations(result.records, 2, over_it=over_it) for over_it in (False, True)]
    assert [violations.late_s.tolist() for violations in found] == [[0, late_s, 0]] * 2
    assert [violations.by_later.tolist() for violations in found] == [[False, one, False] for one in expected]
    assert not np.any(found[1].by_failure)
