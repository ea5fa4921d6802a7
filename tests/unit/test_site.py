"""The rules of a site: what limits mean, which jobs they hold, and site files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clustermodel import Job, Limits, Machine, Result, Scenario, Site, Workload, merge, read_sacct
from clustermodel.measure.input_notes import run_notes
from tests.conftest import refusal

JOBS = ("submit_s", "nodes", "run_s", "user", "account", "partition")


def site(*limits: Limits) -> Site:
    return Site(limits=limits)


def run(jobs: list[tuple[Any, ...]], *limits: Limits, policy: str = "easy", nodes: int = 8, **fields: Any) -> Result:
    """Run jobs given by submission, nodes, run time, user, account and partition."""
    frame = pd.DataFrame(jobs, columns=JOBS[: len(jobs[0])])
    workload = Workload.from_frame(frame, name="jobs")
    return Scenario(workload=workload, machine=Machine(nodes=nodes), policy=policy, site=site(*limits), **fields).run()


def starts(result: Result) -> list[float]:
    return list(result.jobs["start_s"])


def test_a_job_over_a_limit_is_held_until_one_ends_and_others_pass() -> None:
    # User 1 may run one job.  The machine has room for all; only the first of user 1 and the job of user 2 start.
    result = run([(0, 1, 100, 1), (0, 1, 50, 1), (10, 1, 30, 1), (20, 1, 10, 2)], Limits(user=1, running_jobs=1))
    assert starts(result) == [0, 100, 150, 20]
    assert list(result.jobs["held_s"]) == [0, 100, 140, 0]
    assert list(result.jobs["wait_s"]) == [0, 100, 140, 0]


def test_a_held_job_blocks_no_queue() -> None:
    # First come first served: the held job is not at the head of the queue, so the wide job behind it starts.
    jobs = [(0, 2, 100, 1), (1, 2, 100, 1), (2, 6, 100, 2)]
    assert starts(run(jobs, Limits(user="*", running_jobs=1), policy="fcfs")) == [0, 100, 2]
    assert list(run(jobs, Limits(user="*", running_jobs=1), policy="fcfs").jobs["blocked"]) == [False, False, False]


def test_a_job_that_was_held_joins_the_queue_behind_those_that_wait() -> None:
    # When job 2 is let go at 100, job 3 waits for eight nodes since 5; both could start, and job 3 comes first.
    result = run([(0, 8, 100, 1), (1, 8, 10, 1), (5, 8, 10, 2)], Limits(user=1, running_jobs=1), policy="fcfs")
    assert starts(result) == [0, 110, 100]
    assert list(result.jobs["held_s"]) == [0, 99, 0]


@pytest.mark.parametrize(
    ("limit", "starts_s"),
    [
        ({"nodes": 4}, [0, 0, 100, 0]),  # 2 + 2, then 3 fits not, 1 of another user does
        ({"running_jobs": 1}, [0, 100, 200, 0]),
        ({"node_hours": 400 / 3600}, [0, 0, 75, 0]),  # 2 x 100 s twice; 3 x 100 s fits when 4 x 25 s are left
        ({"processor_hours": 400 / 3600}, [0, 0, 75, 0]),
        ({"processors": 4}, [0, 0, 100, 0]),
        ({"submitted_jobs": 2}, [0, 0, 100, 0]),
    ],
)
def test_kinds_of_limits(limit: dict[str, Any], starts_s: list[float]) -> None:
    jobs = [(0, 2, 100, 1), (0, 2, 100, 1), (0, 3, 100, 1), (0, 1, 100, 2)]
    assert starts(run(jobs, Limits(user="*", **limit))) == starts_s


def test_a_narrow_job_passes_a_wide_one_that_a_limit_of_nodes_holds() -> None:
    result = run([(0, 3, 100, 1), (1, 3, 100, 1), (2, 1, 10, 1)], Limits(user=1, nodes=4))
    assert starts(result) == [0, 100, 2]


def test_limits_of_an_account_and_of_each_user_in_a_partition() -> None:
    jobs = [
        (0, 1, 100, 1, "bio", "debug"),
        (0, 1, 100, 2, "bio", "debug"),
        (0, 1, 100, 1, "bio", "long"),
        (0, 1, 100, 1, "geo", "debug"),
        (0, 1, 100, 3, "geo", None),
    ]
    assert starts(run(jobs, Limits(account="bio", running_jobs=2))) == [0, 0, 100, 0, 0]
    assert starts(run(jobs, Limits(user="*", partition="debug", running_jobs=1))) == [0, 0, 0, 100, 0]
    both = run(jobs, Limits(account="bio", running_jobs=2), Limits(user="*", partition="debug", running_jobs=1))
    assert starts(both) == [0, 0, 100, 100, 0]


def test_jobs_that_no_limit_ever_allows_are_rejected() -> None:
    jobs = [(0, 2, 100, 1), (0, 5, 100, 1), (0, 5, 100, 2)]
    for limit in (Limits(user=1, nodes=4), Limits(user=1, node_hours=499 / 3600)):
        result = run(jobs, limit)
        assert list(result.jobs["status"]) == ["completed", "rejected", "completed"]
        (note,) = run_notes([result])
        assert note.fact == "1 job is rejected: limits of the site never allow such a size or estimate"
    assert list(run(jobs, Limits(job_nodes=4)).jobs["status"]) == ["completed", "rejected", "rejected"]
    assert list(run(jobs, Limits(wall_time_s=99)).jobs["status"]) == ["rejected"] * 3


def test_a_limit_of_several_names_counts_their_jobs_together(tmp_path: Path) -> None:
    jobs = [(0, 1, 100, 1, "bio"), (0, 1, 100, 2, "astro"), (0, 1, 100, 3, "geo"), (0, 1, 100, 4, "bio"), (0, 1, 100, 4, None)]
    both = Limits(account=["bio", "astro"], running_jobs=1)
    assert both == Limits(account=("bio", "astro", "bio"), running_jobs=1)
    assert starts(run(jobs, both)) == [0, 100, 0, 200, 0]
    assert starts(run(jobs, Limits(account=["bio"], user="*", running_jobs=1))) == [0] * 5
    assert starts(run(jobs, Limits(account=["bio"], running_jobs=1))) == [0, 0, 0, 100, 0]
    Site(limits=both).to_toml(tmp_path / "site.toml")
    assert Site.from_toml(tmp_path / "site.toml") == Site(limits=both)


def test_two_stages_jobs_in_the_system_then_running_ones() -> None:
    # Two jobs may be in the system, one may run: the third enters when the first ends, and is then held by the other limit.
    result = run([(0, 1, 10, 1)] * 3, Limits(user=1, submitted_jobs=2), Limits(user=1, running_jobs=1))
    assert starts(result) == [0, 10, 20]
    assert list(result.jobs["held_s"]) == [0, 10, 20]


def test_a_preempted_job_still_counts() -> None:
    jobs = [(0, 8, 100, 1), (10, 8, 10, 2), (20, 1, 10, 1)]
    result = run(jobs, Limits(user=1, running_jobs=1), policy="srtf")
    assert starts(result) == [20, 10, 110]  # job 1 goes on at 20, and ends at 110
    assert result.jobs["tries"][0] == 2


def test_waiting_time_of_held_jobs_is_no_loss_of_capacity() -> None:
    result = run([(0, 1, 100, 1), (0, 1, 50, 1)], Limits(user=1, running_jobs=1))
    assert result.ledger.capacity_loss == result.kappa_by_formula == 0
    assert (result.events.waiting == 0).all()


def test_notes_say_what_was_held_and_which_limit_concerns_nobody() -> None:
    jobs = [(0, 1, 100, 1, "bio"), (0, 1, 50, 1, "bio")]
    result = run(jobs, Limits(user=1, running_jobs=1), Limits(account="boi", nodes=1), Limits(partition="*", nodes=1))
    assert [note.fact for note in run_notes([result])] == [
        "no job has account boi (did you mean 'bio'?)",
        "no job has a partition",
        "rules of the site hold 1 job under easy, 50 s of the mean wait",
    ]


def test_a_streamed_run_takes_no_limits() -> None:
    assert "a site is not allowed in a streamed run" in refusal(
        lambda: run([(0, 1, 1, 1)], Limits(running_jobs=1), stream=True)
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"user": 1},
            "Limits: no limit is given; one of running_jobs, nodes, processors, node_hours, processor_hours, submitted_jobs, "
            "wall_time_s, job_nodes, job_processors is needed",
        ),
        (
            {"user": 1.5, "nodes": 1},
            "Limits.user: 1.5 is not allowed; it must be a name, a number, several of them, or '*' for each",
        ),
        ({"nodes": 0}, "Limits.nodes: 0 is not allowed; it must be an integer >= 1"),
        ({"node_hours": 0}, "Limits.node_hours: 0 is not allowed; it must be a number of hours > 0"),
        ({"wall_time_s": "1h"}, "Limits.wall_time_s: '1h' is not a number"),
    ],
)
def test_limits_that_are_not_allowed(fields: dict[str, Any], message: str) -> None:
    assert refusal(lambda: Limits(**fields)).startswith(message)


def test_a_site_takes_limits_only() -> None:
    assert "Site.limits: 3 is not allowed" in refusal(lambda: Site(limits=3))  # type: ignore[arg-type]
    assert Site(limits=Limits(nodes=1)) == site(Limits(nodes=1))  # type: ignore[arg-type]
    assert "Scenario.site: 'site.toml' is not allowed; it must be a Site" in refusal(
        lambda: Scenario(workload=Workload.from_frame(pd.DataFrame([(0, 1, 1)], columns=JOBS[:3])), site="site.toml")  # type: ignore[arg-type]
    )


def test_site_files(tmp_path: Path) -> None:
    rules = site(Limits(user="*", running_jobs=2), Limits(account="bio", partition="debug", nodes=4, node_hours=1.5))
    path = tmp_path / "site.toml"
    rules.to_toml(path)
    assert Site.from_toml(path) == rules
    path.write_text('[[limits]]\nuser = "ann"\nrunning_job = 1\n')
    assert "limits[0].running_job: unknown key (did you mean 'running_jobs'?)" in refusal(lambda: Site.from_toml(path))
    path.write_text("limits = 1\n")
    assert f"{path}: limits: 1 is not allowed; it must be tables [[limits]]" in refusal(lambda: Site.from_toml(path))
    path.write_text("[[limit]]\nnodes = 1\n")
    assert f"{path}: limit: unknown key (did you mean 'limits'?)" in refusal(lambda: Site.from_toml(path))


def test_scenario_files_have_the_rules_or_name_a_site_file(tmp_path: Path) -> None:
    text = 'policy = "easy"\n[workload]\nsynthetic = true\njobs = 5\n'
    rules = site(Limits(user="*", running_jobs=2))
    scenario = Scenario.from_toml(text + "[[site.limits]]\nuser = '*'\nrunning_jobs = 2\n")
    assert scenario.site == rules
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    rules.to_toml(tmp_path / "site.toml")
    path = tmp_path / "scenario.toml"
    path.write_text(f'site = "site.toml"\n{text}')
    assert Scenario.from_toml(path).site == rules


def test_limits_of_job_arrays() -> None:
    frame = pd.DataFrame(
        {
            "submit_s": [0, 0, 0, 0, 0, 5],
            "nodes": 1,
            "run_s": [10, 20, 30, 10, 10, 10],
            "array": [100, 100, 100, 200, 200, -1],
            "array_limit": [2, 2, 2, 1, 1, -1],
        }
    )
    workload = Workload.from_frame(frame)
    scenario = Scenario(workload=workload, machine=Machine(nodes=8), policy="easy", site=Site(array_limits=True))
    assert starts(scenario.run()) == [0, 0, 10, 0, 10, 5]
    two = Scenario(workload=[workload, workload], machine=Machine(nodes=20), policy="easy", site=Site(array_limits=True))
    assert sorted(two.run().jobs["start_s"]) == sorted([0, 0, 10, 0, 10, 5] * 2)
    assert "Site.array_limits: 1 is not allowed; it must be True or False" in refusal(lambda: Site(array_limits=1))


def chained(*jobs: Job, site: Site | None = None, nodes: int = 8, policy: str = "easy", **fields: Any) -> Result:
    """Run jobs that depend on each other."""
    workload = Workload.from_jobs(jobs)
    return Scenario(workload=workload, machine=Machine(nodes=nodes), policy=policy, site=site, **fields).run()


def job(number: int, submit_s: float = 0, run_s: float = 10, nodes: int = 1, **fields: Any) -> Job:
    return Job(id=number, nodes=nodes, submit_s=submit_s, run_s=run_s, **fields)


def test_a_chain_of_jobs_runs_one_after_the_other() -> None:
    result = chained(job(1), job(2, after_ok=1), job(3, after_ok=[2]), job(4))
    assert starts(result) == [0, 10, 20, 0]
    assert list(result.jobs["held_s"]) == [0, 10, 20, 0]


def test_a_chain_ends_where_a_job_fails_and_another_one_takes_over() -> None:
    # Job 1 is killed at its estimate: job 2, which needs it, is rejected, so is job 3, which needs job 2; job 4 cleans up.
    result = chained(
        job(1, run_s=20, estimate_s=10),
        job(2, after_ok=1),
        job(3, after_ok=2),
        job(4, after_not_ok=1),
        job(5, after_not_ok=3),
        job(6, after_not_ok=4),
        job(7, submit_s=15, after_ok=1),
        job(8, after_any=[1, 3, 5]),
    )
    status = dict(zip(result.jobs["job"], result.jobs["status"], strict=True))
    assert status == {
        1: "killed", 2: "rejected", 3: "rejected", 4: "completed", 5: "completed", 6: "rejected", 7: "rejected",
        8: "completed",
    }  # fmt: skip
    assert starts(result)[3] == starts(result)[4] == 10
    assert starts(result)[-2] == 20  # of job 8, when job 5 has ended


def test_after_waits_for_the_start_only_and_a_wide_job_delays_it() -> None:
    result = chained(job(1, nodes=8), job(2, nodes=8, run_s=30), job(3, submit_s=1, after=2), policy="fcfs", nodes=9)
    assert starts(result) == [0, 10, 10]


def test_a_job_may_depend_on_one_that_is_submitted_later_and_on_several() -> None:
    result = chained(job(1, after_ok=[2, 3]), job(2, submit_s=5), job(3, submit_s=50))
    assert starts(result) == [60, 5, 50]


def test_a_job_that_depends_on_others_is_then_under_limits() -> None:
    frame = Workload.from_jobs([job(1, account="a"), job(2, account="a", run_s=30), job(3, account="a", after_ok=1)])
    result = Scenario(
        workload=frame, machine=Machine(nodes=8), policy="easy", site=site(Limits(account="a", running_jobs=1))
    ).run()
    assert starts(result) == [0, 10, 40]


def test_dependencies_survive_a_selection_renumbering_and_merging() -> None:
    first = Workload.from_jobs([job(1, account="a"), job(2, after_ok=1, qos="high"), job(3, submit_s=1)])
    assert [each.after_ok for each in first.jobs()] == [(), (1,), ()]
    assert [each.qos for each in first.jobs()] == [None, "high", None]
    assert Workload.from_jobs(first.jobs()) == first
    second = first.renumbered(10)
    assert [each.after_ok for each in second.jobs()] == [(), (11,), ()]
    result = Scenario(workload=[first, first], machine=Machine(nodes=8), policy="easy").run()
    assert sorted(result.jobs["start_s"]) == [0, 0, 1, 1, 10, 10]
    assert sorted(Scenario(workload=merge(a=first, b=first), machine=Machine(nodes=8)).run().jobs["start_s"]) == [
        0, 0, 1, 1, 10, 10
    ]  # fmt: skip
    part = first.part(first.column("id") != 1, "without the first")
    assert list(Scenario(workload=part, machine=Machine(nodes=8)).run().jobs["start_s"]) == [0, 1]


def test_dependencies_that_are_not_allowed() -> None:
    circle = [job(1, after_ok=2), job(2, after=3), job(3, after_not_ok=1)]
    assert "wait for each other; a chain of jobs must begin somewhere" in refusal(lambda: Workload.from_jobs(circle))
    assert "Job 1: after: 'a' is not a whole number" in refusal(lambda: job(1, after="a"))
    assert "Job 1: account: 5 is not allowed; it must be a name" in refusal(lambda: job(1, account=5))
    assert "a workload with dependencies is not allowed in a streamed run" in refusal(
        lambda: chained(job(1), job(2, after_ok=1), stream=True)
    )


def sweep(number: int, submit_s: float, run_s: float, **fields: Any) -> Job:
    return job(number, submit_s, run_s, user=1, job_name="sweep", **fields)


def test_a_singleton_waits_for_all_of_its_name_that_came_before_it() -> None:
    result = chained(
        sweep(1, 0, 100),
        sweep(2, 5, 30, singleton=True),  # after job 1
        sweep(3, 6, 200),  # waits for nobody
        sweep(4, 7, 30, singleton=True),  # after jobs 1, 2 and 3
        sweep(5, 250, 10, singleton=True),  # nobody is left
        job(6, 8, 10, user=2, job_name="sweep", singleton=True),
        job(7, 8, 10, user=1, job_name="other", singleton=True),
    )
    assert starts(result) == [0, 100, 6, 206, 8, 8, 250]  # in order of submission
    assert list(result.jobs["held_s"]) == [0, 95, 0, 199, 0, 0, 0]
    assert [each.singleton for each in result.scenario.sources[0].jobs()] == [False, True, False, True, True, True, True]


def test_a_singleton_follows_jobs_that_are_killed_and_those_that_never_start() -> None:
    # Job 2 needs job 1, which is killed at 50: job 2 is rejected then, and job 3 is the first of its name.
    result = chained(
        sweep(1, 0, 100, estimate_s=50), sweep(2, 1, 10, after_ok=1), sweep(3, 2, 10, singleton=True), sweep(4, 3, 10, nodes=99)
    )
    assert list(result.jobs["status"]) == ["killed", "rejected", "completed", "rejected"]
    assert starts(result)[2] == 50


def test_a_singleton_with_another_dependency_and_under_limits() -> None:
    result = chained(sweep(1, 0, 10), sweep(2, 1, 10, singleton=True, after=3), job(3, 40, 100), job(4, 0, 60, account="a"))
    assert starts(result)[3] == 40  # of job 3; job 2 begins then
    assert result.jobs.set_index("job").loc[2, "start_s"] == 40
    limited = chained(
        sweep(1, 0, 10, account="a"), sweep(2, 1, 10, singleton=True, account="a"), sweep(3, 2, 50, account="a"),
        site=site(Limits(account="a", running_jobs=1)),
    )  # fmt: skip
    assert starts(limited) == [
        0,
        60,
        10,
    ]


def test_singletons_of_tables_logs_and_merged_workloads(write_trace: Callable[..., Path]) -> None:
    frame = pd.DataFrame(
        {"submit_s": [0, 0, 1], "nodes": 1, "run_s": 10, "job_name": ["x", "x", None], "singleton": [False, True, True]}
    )
    workload = Workload.from_frame(frame)
    assert workload.frame["singleton"].tolist() == [0, 1, 1]
    assert starts(Scenario(workload=workload, machine=Machine(nodes=8)).run()) == [
        0,
        10,
        1,
    ]
    assert [each.singleton for each in workload.jobs()] == [False, True, False]
    both = merge(a=workload, b=workload.renumbered(10))
    assert sorted(starts(Scenario(workload=both, machine=Machine(nodes=8)).run())) == [0, 0, 1, 1, 10, 20]
    row = "2025-03-03T08:00:00|2025-03-03T08:{}:00|2025-03-03T09:00:00|600|COMPLETED|1|sweep|sbatch "
    log = write_trace(
        "JobID|User|Submit|Start|End|ElapsedRaw|State|AllocNodes|JobName|SubmitLine",
        "1|ann|" + row.format("00") + "job.sh",
        "2|ann|" + row.format("10") + "--dependency=afterok:9,singleton job.sh",
        "3|ann|" + row.format("10") + "-d singleton job.sh",
        "4|ann|" + row.format("10") + "--comment=singleton job.sh",
        name="jobs.sacct",
    )
    read = read_sacct(log)
    assert read.frame.set_index("job")["singleton"].to_dict() == {1: -1, 2: 1, 3: 1, 4: -1}
    assert starts(Scenario(workload=read, machine=Machine(nodes=8)).run()) == [0, 600, 1200, 0]


def test_singletons_that_are_not_allowed() -> None:
    assert "Job 1: job_name: None is not allowed with singleton; it must be a name" in refusal(lambda: job(1, singleton=True))
    assert "Job 1: singleton: 1 is not allowed; it must be True or False" in refusal(lambda: job(1, singleton=1))
    assert "a workload with dependencies is not allowed in a streamed run" in refusal(
        lambda: chained(sweep(1, 0, 1, singleton=True), stream=True)
    )
    jobs = sweep(1, 0, 1, after_ok=2), sweep(2, 1, 1), sweep(3, 1, 1, singleton=True)
    assert starts(chained(*jobs)) == [2, 1, 3]
    circle = sweep(1, 0, 1, after_ok=3), *jobs[1:]
    assert refusal(lambda: chained(*circle)) == (
        "dependencies: jobs 1, 3, 1 wait for each other; a chain of jobs must begin somewhere"
    )


@pytest.mark.parametrize("policy", ["fcfs", "conservative", "mbgs", "srtf", "slack", "pv-easy"])
def test_a_random_graph_of_jobs_under_other_policies(policy: str) -> None:
    rng = np.random.default_rng(7)
    jobs = []
    for number in range(1, 61):
        others = {int(other) for other in rng.integers(1, max(number, 2), 2) if other < number}
        jobs.append(
            job(
                number,
                float(rng.integers(0, 100)),
                float(rng.integers(1, 50)),
                int(rng.integers(1, 9)),
                after_ok=sorted(others),
            )
        )
    table = chained(*jobs, policy=policy).jobs.set_index("job")
    assert (table["status"] == "completed").all()
    for each in jobs:
        for other in each.after_ok:
            assert table.loc[each.id, "start_s"] >= table.loc[other, "end_s"]
