"""Feedback: jobs that are submitted a think time after another job has completed."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clustermodel as cm
from clustermodel.experiment.run_key import Opened
from clustermodel.experiment.scenario import NOTHING_PLAYED
from clustermodel.policies.interface import Decision, Policy
from clustermodel.policies.view import Batch, View
from clustermodel.workload.streams_of_run import JobStreams
from tests.property.strategies import cases

TIMES = ["submit_s", "start_s", "end_s"]


def chained(*jobs: tuple[float, int, float, int, float], **more: object) -> cm.Workload:
    """Return jobs 1, 2, ... given as (submit, nodes, run, preceding, think)."""
    columns = ["submit_s", "nodes", "run_s", "preceding", "think_time_s"]
    frame = pd.DataFrame(jobs, columns=columns).assign(job=range(1, len(jobs) + 1), **more)
    return cm.Workload.from_frame(frame)


def run(
    workload: cm.Workload | list[cm.Workload], nodes: int = 1, policy: str | Policy = "fcfs", **machine: object
) -> cm.Result:
    return cm.Scenario(machine=cm.Machine(nodes=nodes, **machine), workload=workload, policy=policy).run()


def times(result: cm.Result) -> dict[int, tuple[float, float, float]]:
    rows = result.jobs.set_index("job")[TIMES].itertuples(name=None)
    return {number: tuple(row) for number, *row in rows}


def test_a_job_is_submitted_a_think_time_after_the_completion_of_the_one_before() -> None:
    # Job 1 waits for job 2 to complete at 15; on an idle machine it would have completed at 15 too, so job 3 is later.
    workload = chained((0, 1, 10, -1, 0), (0, 1, 5, -1, 0), (20, 1, 7, 2, 5), (40, 1, 1, 3, 100))
    result = run(workload)
    assert times(result) == {1: (0, 0, 10), 2: (0, 10, 15), 3: (20, 20, 27), 4: (127, 127, 128)}
    assert result.jobs["wait_s"].tolist() == [0, 10, 0, 0]
    assert result.ledger.frame["total_node_s"].sum() == 128


def test_a_slower_machine_gets_the_jobs_later() -> None:
    workload = chained((0, 2, 10, -1, 0), (0, 2, 10, -1, 0), (12, 1, 1, 1, 2), (13, 1, 1, 2, 3))
    assert times(run(workload, nodes=4)) == {1: (0, 0, 10), 2: (0, 0, 10), 3: (12, 12, 13), 4: (13, 13, 14)}
    assert times(run(workload, nodes=2)) == {1: (0, 0, 10), 2: (0, 10, 20), 3: (12, 20, 21), 4: (23, 23, 24)}


def test_jobs_that_were_killed_or_rejected_have_completed() -> None:
    workload = chained((0, 9, 10, -1, 0), (0, 1, 10, -1, 0), (1, 1, 2, 1, 4), (2, 1, 2, 2, 1), estimate_s=[10, 6, 5, 5])
    result = run(workload, nodes=4)
    assert result.jobs.set_index("job")["status"].to_dict() == {1: "rejected", 2: "killed", 3: "completed", 4: "completed"}
    assert times(result)[3] == (4, 4, 6)
    assert times(result)[4] == (7, 7, 9)


def test_without_think_time_the_same_scheduling_cycle_sees_completion_and_submission() -> None:
    seen: list[tuple[list[int], list[int]]] = []

    class Watching(Policy):
        name = "watching"

        def start(self, setup: object) -> object:
            return self

        def decide(self, batch: Batch, view: View) -> list[Decision]:
            seen.append(([gang.job.id for gang in batch.ended], [job.id for job in batch.submitted]))
            return [cm.Start(job=job) for job in view.waiting.values()]

    run(chained((0, 1, 10, -1, 0), (0, 1, 3, 1, 0), (0, 1, 3, 1, 0)), nodes=2, policy=Watching())
    assert seen == [([], [1]), ([1], [2, 3]), ([2, 3], [])]


def test_a_job_whose_predecessor_is_left_out_is_submitted_at_its_recorded_time() -> None:
    workload = chained((0, 2, 10, -1, 0), (30, 1, 10, 1, 1), (50, 1, 10, 2, 1))
    assert times(run(workload, nodes=2))[2] == (11, 11, 21)
    narrow = workload.select(cm.JobFilter(nodes=(1, 1)))
    assert narrow.has_feedback
    assert times(run(narrow, nodes=2)) == {2: (30, 30, 40), 3: (41, 41, 51)}


def test_think_times_scale_with_interarrival_times() -> None:
    workload = chained((0, 1, 10, -1, 0), (20, 1, 10, 1, 8)).scaled(cm.LoadScale(interarrival=0.5, run_time=2))
    assert times(run(workload)) == {1: (0, 0, 20), 2: (24, 24, 44)}


def test_transformations_keep_feedback() -> None:
    workload = chained((0, 1, 10, -1, 0), (20, 1, 10, 1, 8), user=[1, 2])
    for same in (workload.with_phi_estimates(), workload.with_perfect_estimates(), workload.renumbered(100)):
        assert [one[0] for one in times(run(same)).values()] == [0, 18]
    assert not any(part.has_feedback for part in workload.split("user"))


@pytest.mark.parametrize("policy", ["easy", "slack", "mbgs", "pv-easy", "conservative", "ss"])
def test_streams_with_feedback_merge_with_others(policy: str) -> None:
    stream = cm.JobStream(
        arrivals=cm.ClosedUsers(users=3, think_time_s=cm.Exponential(50)),
        nodes=[1, 2, 8],
        run_s=cm.Exponential(100),
        users=None,
    )
    one, other = (stream.generate(jobs=40, seed=seed) for seed in (1, 2))
    apart = run([one, other], nodes=8, policy=policy)
    merged = cm.merge(one=one, other=other)
    together = run(merged, nodes=8, policy=policy)
    pd.testing.assert_frame_equal(apart.jobs.drop(columns="stream"), together.jobs.drop(columns="stream"))
    assert together.jobs["stream"].value_counts().to_dict() == {"one": 40, "other": 40}
    table = together.jobs.set_index("job")
    for row in merged.frame.itertuples():
        if row.preceding != -1:
            gap = table["submit_s"][row.job] - table["end_s"][row.preceding]
            assert gap == pytest.approx(row.think_time_s, abs=1e-6)


@settings(max_examples=cases(40), deadline=None)
@given(st.data())
def test_both_fidelities_agree(data: st.DataObject) -> None:
    jobs = []
    for number in range(1, data.draw(st.integers(2, 12)) + 1):
        submit, nodes, length = (data.draw(st.integers(low, high)) for low, high in ((0, 40), (1, 5), (1, 30)))
        preceding = data.draw(st.sampled_from([-1, *range(1, number)]))
        jobs.append((submit, nodes, length, preceding, data.draw(st.integers(0, 10))))
    workload = chained(*jobs)
    for policy in ("gs", "mbgs"):
        scenarios = [
            cm.Scenario(machine=cm.Machine(nodes=4), workload=workload, policy=policy, fidelity=fidelity)
            for fidelity in ("fast", "node")
        ]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", NOTHING_PLAYED)
            fast, node = (scenario.run().jobs.sort_values("job", ignore_index=True) for scenario in scenarios)
        pd.testing.assert_frame_equal(fast, node)


def test_a_policy_that_strands_jobs_with_followers_is_found_out() -> None:
    class Idle(Policy):
        name = "idle"

        def start(self, setup: object) -> object:
            return self

        def decide(self, batch: Batch, view: View) -> list[Decision]:
            return []

    with pytest.raises(cm.StrandedJobsError, match="1 job left waiting for ever"):
        run(chained((0, 1, 10, -1, 0), (5, 1, 1, 1, 3)), policy=Idle())


def test_jobs_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(cm.SpecificationError, match="preceding: job 2 would wait for itself"):
        chained((0, 1, 1, -1, 0), (1, 1, 1, 4, 0), (2, 1, 1, 2, 0), (3, 1, 1, 3, 0))


def test_progress_counts_followers_too() -> None:
    counted: list[int] = []
    workload = chained((0, 1, 10, -1, 0), (5, 1, 1, 1, 3), (6, 1, 1, 2, 3))
    cm.Scenario(machine=cm.Machine(nodes=1), workload=workload).run(progress=counted.append)
    assert sum(counted) == 3


def test_feedback_is_part_of_the_key_of_a_run() -> None:
    base = (0, 1, 10, -1, 0)
    workloads = [chained(base, (5, 1, 1, *last)) for last in ((-1, 0), (1, 3), (1, 4))]
    plain = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=10), cm.Job(id=2, nodes=1, submit_s=5, run_s=1)])
    scenarios = [
        cm.Scenario(machine=cm.Machine(nodes=1), workload=one, name=str(at)) for at, one in enumerate([*workloads, plain])
    ]
    study = cm.Study.of_scenarios("feedback", scenarios)
    keys = [run.key for run in study.runs(study.trials(study.first_table()), Opened(study))]
    assert len(set(keys)) == 4


def line(number: int, submit: float, length: float, preceding: float = -1, think: float = -1) -> str:
    return f"{number} {submit} -1 {length} 1 -1 -1 1 99 -1 1 1 1 -1 -1 -1 {preceding} {think}"


def test_fields_17_and_18_of_a_trace_are_honoured_on_request(write_trace: Callable[..., Path]) -> None:
    path = write_trace("; MaxProcs: 1", line(1, 0, 10), line(2, 4, 5), line(3, 20, 5, 2, 7), line(4, 21, 1, 77, 7))
    recorded, honoured = cm.read_swf(path), cm.read_swf(path, feedback=True)
    assert list(recorded.rows()) == list(honoured.rows())
    assert recorded.extra == ()
    assert times(run(recorded))[3] == (20, 20, 25)
    assert times(run(honoured))[3] == (22, 22, 27)
    assert times(run(honoured))[4] == (21, 21, 22)
    assert honoured.provenance.lines() == ["1 job repaired: preceding_job not submitted earlier, recorded submission used"]
    faster = cm.read_swf(path, feedback=True, scale=cm.LoadScale(interarrival=0.5))
    assert times(run(faster))[3] == (18.5, 18.5, 23.5)


def test_a_schedule_with_feedback_is_written_with_both_fields(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    path = write_trace("; MaxProcs: 1", line(1, 0, 10), line(2, 4, 5), line(3, 20, 5, 2, 7.5))
    result = run([cm.read_swf(path, feedback=True), cm.read_swf(path, feedback=True)])
    result.to_swf(tmp_path / "schedule.swf")
    lines = [text.split() for text in (tmp_path / "schedule.swf").read_text().splitlines() if text[0] != ";"]
    assert {text[0]: text[16:] for text in lines} == {
        "1": ["-1", "-1"], "2": ["-1", "-1"], "3": ["2", "7.5"], "4": ["-1", "-1"], "5": ["-1", "-1"], "6": ["5", "7.5"],
    }  # fmt: skip
    again = cm.read_swf(tmp_path / "schedule.swf", feedback=True)
    assert times(run(again)) == times(result)


@pytest.mark.parametrize(
    ("preceding", "think", "message"),
    [(1.5, 0, "preceding_job: 1.5 is not a whole number"), (1, 1e11, "think_time: 100000000000.0 is not allowed")],
)
def test_a_wrong_field_of_feedback_is_an_error_only_where_it_is_used(
    write_trace: Callable[..., Path], preceding: float, think: float, message: str
) -> None:
    path = write_trace("; MaxProcs: 1", line(1, 0, 10), line(2, 20, 5, preceding, think))
    assert len(cm.read_swf(path)) == 2
    with pytest.raises(cm.TraceError, match=f"jobs.swf:3: field {message}"):
        cm.read_swf(path, feedback=True)


def test_a_stream_without_feedback_takes_the_usual_way(write_trace: Callable[..., Path]) -> None:
    stream = cm.SwfStream(write_trace("; MaxProcs: 1", line(1, 0, 10), line(2, 4, 5, 1, 3)))
    assert [row.id for row in JobStreams([stream]).submissions(())[0][0]] == [1, 2]
    assert times(cm.Scenario(workload=stream).run())[2][0] == 4


def test_sessions_have_one_user_each_and_an_idle_machine_keeps_the_recorded_times() -> None:
    stream = cm.JobStream(
        arrivals=cm.Sessions(arrivals=cm.Poisson(per_hour=6), jobs=[1, 2, 5], think_time_s=cm.Exponential(60)),
        nodes=1, run_s=cm.Exponential(300), users=range(1, 1000),
    )  # fmt: skip
    workload = stream.generate(days=1)
    users = workload.frame.set_index("job")["user"]
    follows = workload.frame[workload.frame["preceding"] != -1]
    assert len(follows) > 100
    assert users[follows["job"]].tolist() == users[follows["preceding"]].tolist()
    result = run(workload, nodes=len(workload), policy="easy")
    submitted = result.jobs.set_index("job")["submit_s"]
    assert submitted.sort_index().tolist() == workload.frame.set_index("job")["submit_s"].sort_index().tolist()


def test_submissions_beyond_64_bit_ticks_are_refused_in_one_line() -> None:
    late = chained(*((0.0, 1, 1.0, preceding, 1e10) for preceding in (-1, *range(1, 1000))))
    with pytest.raises(cm.SpecificationError, match=r"the jobs take too long: at 9\.2\d+e\+12 s, .* fit 64-bit ticks"):
        run(late)
