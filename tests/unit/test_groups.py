"""Merged workloads keep their labels, and metrics by stream, size class and user are those of the jobs in the group."""

import numpy as np
import pandas as pd
import pytest

import clustermodel as cm
from clustermodel.experiment.run_key import Opened

MACHINE = cm.Machine(nodes=64)


@pytest.fixture(scope="module")
def parts() -> dict[str, cm.Workload]:
    return {label: cm.synthetic_workload(jobs=300, nodes=64, load=0.5, seed=seed) for seed, label in ((1, "day"), (2, "night"))}


@pytest.fixture(scope="module")
def result(parts: dict[str, cm.Workload]) -> cm.Result:
    short = [cm.Job(id=2000 + n, nodes=99 if n == 1 else 4, submit_s=n, run_s=600, estimate_s=300) for n in range(3)]
    third = cm.Workload.from_jobs(short)
    return cm.Scenario(machine=MACHINE, workload=cm.merge(**parts, odd=third), policy="easy").run()


def test_a_merged_workload_has_the_schedule_of_its_streams(parts: dict[str, cm.Workload]) -> None:
    merged = cm.merge(**parts)
    assert (len(merged), merged.name, merged.streams, merged.machine_nodes) == (600, "day+night", ("day", "night"), 64)
    together = cm.Scenario(machine=MACHINE, workload=merged).run().jobs
    apart = cm.Scenario(machine=MACHINE, workload=list(parts.values())).run().jobs
    assert apart["stream"].unique().tolist() == ["synthetic-1", "synthetic-2"]
    renamed = apart.assign(stream=apart["stream"].cat.rename_categories(["day", "night"]))
    by_job = [frame.sort_values("job", ignore_index=True) for frame in (together, renamed)]
    pd.testing.assert_frame_equal(*by_job)


def test_labels_survive_transformations_and_further_merges(parts: dict[str, cm.Workload]) -> None:
    merged = cm.merge(**parts)
    assert merged.frame["stream"].value_counts().to_dict() == {"day": 300, "night": 300}
    assert merged.with_phi_estimates().streams == merged.streams
    assert [(part.name, len(part)) for part in merged.split("stream")] == [("day", 300), ("night", 300)]
    with_more = cm.Scenario(machine=MACHINE, workload=[merged, parts["day"], merged]).run().jobs
    labels = {"day": 300, "night": 300, "synthetic-1": 300, "day (2)": 300, "night (2)": 300}
    assert with_more["stream"].value_counts().to_dict() == labels
    assert cm.merge(all=merged, other=parts["day"]).frame["stream"].value_counts().to_dict() == {"all": 600, "other": 300}


def test_a_stream_that_is_read_from_a_file_is_read_into_memory(tmp_path, parts: dict[str, cm.Workload]) -> None:
    path = tmp_path / "file.swf"
    cm.write_swf(path, [(1, 5, -1, 9, 2, -1, -1, 2, 9, -1, 1, 1, 1, -1, -1, -1, -1, -1)], header=[("MaxProcs", 128)])
    merged = cm.merge(file=cm.SwfStream(path), day=parts["day"])
    assert (merged.machine_nodes, len(merged)) == (128, 301)
    assert merged.frame["stream"].value_counts().to_dict() == {"day": 300, "file": 1}


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({}, "merge: no stream is given"),
        ({"a": 3}, "merge: a: 3 is not allowed; all streams must be workloads, or all JobStream"),
        ({"a": cm.JobStream(arrivals=60, nodes=1, run_s=60), "b": cm.synthetic_workload(jobs=3)}, "merge: a: JobStream"),
    ],
)
def test_what_cannot_be_merged_is_refused(streams: dict[str, object], message: str) -> None:
    with pytest.raises(cm.SpecificationError, match=message):
        cm.merge(**streams)


def test_streams_with_the_same_random_numbers_are_refused() -> None:
    day, night = (cm.JobStream(arrivals=cm.Poisson(per_hour=rate), nodes=1, run_s=60) for rate in (10, 20))
    with pytest.raises(cm.SpecificationError, match="day and night were generated with the same random numbers"):
        cm.merge(day=day.generate(jobs=5), night=night.generate(jobs=5))
    assert len(cm.merge(day=day.generate(jobs=5), night=night.generate(jobs=5, seed=2))) == 10


def test_metrics_of_a_group_are_those_of_its_jobs(result: cm.Result) -> None:
    groups, jobs = result.by_stream(), result.jobs
    assert groups.index.tolist() == ["day", "night", "odd"]
    assert groups.index.name == "stream"
    for label, row in groups.iterrows():
        mine = jobs[(jobs["stream"] == label) & jobs["end_s"].notna()]
        slowdown = np.maximum(mine["response_s"], 10) / np.maximum(mine["run_s"], 10)
        expected = {
            "jobs": len(mine),
            "killed": (mine["status"] == "killed").sum(),
            "mean_wait_s": mine["wait_s"].mean(),
            "median_wait_s": mine["wait_s"].median(),
            "p95_wait_s": np.percentile(mine["wait_s"], 95),
            "std_response_s": mine["response_s"].std(ddof=0),
            "p99_bounded_slowdown": np.percentile(slowdown, 99),
            "max_bounded_slowdown": slowdown.max(),
            "mean_weighted_bounded_slowdown": np.average(slowdown, weights=mine["nodes"]),
            "useful_node_s": (mine["nodes"] * mine["run_s"]).sum(),
        }
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-9), (label, name)
    assert groups["rejected"].tolist() == [0, 0, 1]
    assert groups["killed"].tolist() == [0, 0, 2]
    assert groups["share_of_work"].sum() == pytest.approx(1, rel=1e-12)


def test_one_group_of_all_jobs_has_the_numbers_of_the_summary(result: cm.Result) -> None:
    everybody = result.by_group(np.zeros(len(result.records))).iloc[0]
    summary = result.summary().as_dict()
    shared = set(everybody.index) & summary.keys()
    assert shared >= {"jobs", "killed", "rejected", "aborted", "mean_wait_s", "mean_response_s", "mean_bounded_slowdown"}
    assert {name: everybody[name] for name in shared} == pytest.approx({name: summary[name] for name in shared}, rel=1e-12)


def test_a_warm_up_leaves_jobs_out(result: cm.Result) -> None:
    warm_up_s = 86_400.0
    everybody = result.by_group(np.zeros(len(result.records)), warm_up_s=warm_up_s).iloc[0]
    summary = result.summary(warm_up_s=warm_up_s)
    assert everybody["jobs"] == summary.jobs < result.summary().jobs
    assert everybody["mean_wait_s"] == pytest.approx(summary.mean_wait_s, rel=1e-12)
    odd = result.by_stream(warm_up_s=warm_up_s).loc["odd"]
    assert (odd["jobs"], odd["rejected"], odd["useful_node_s"]) == (0, 0, 0)
    assert np.isnan(odd["mean_wait_s"])


def test_size_classes_and_users(result: cm.Result) -> None:
    sizes = result.by_size([1, 8, 1000])
    assert sizes.index.tolist() == ["1", "2-8", "9-1000", "> 1000"]
    assert sizes["jobs"].sum() == result.summary().jobs
    assert sizes.loc["> 1000", "jobs"] == 0
    users = result.by_user()
    assert users.index.is_monotonic_increasing
    assert users["jobs"].to_dict() == result.jobs[result.jobs["end_s"].notna()].groupby("user").size().to_dict()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda result: result.by_size([]), r"boundaries: \[\] is not allowed; it must be sizes that rise"),
        (lambda result: result.by_size([8, 8]), r"boundaries: \[8, 8\] is not allowed"),
        (lambda result: result.by_size([0]), "boundaries: 0 is not allowed; it must be an integer >= 1"),
        (lambda result: result.by_group("nods"), r"by: 'nods' is not allowed \(did you mean 'nodes'\?\)"),
        (lambda result: result.by_group([1, 2]), "by_group: 2 groups are given for 603 jobs"),
        (lambda result: result.by_stream(warm_up_s=-1), "warm_up_s: -1 is not allowed"),
    ],
)
def test_groups_that_cannot_be_are_refused(result: cm.Result, table, message: str) -> None:
    with pytest.raises(cm.SpecificationError, match=message):
        table(result)


def test_labels_are_part_of_the_key_of_a_run(parts: dict[str, cm.Workload]) -> None:
    day, night = parts.values()
    workloads = [cm.merge(day=day, night=night), cm.merge(day=night, night=day), cm.merge(a=day, b=night), [day, night]]
    scenarios = [cm.Scenario(machine=MACHINE, workload=one, name=str(at)) for at, one in enumerate(workloads)]
    study = cm.Study.of_scenarios("labels", scenarios)
    assert len({run.key for run in Opened(study).runs(study.trials(study.first_table()))}) == 4


def test_metrics_of_groups_are_those_of_their_jobs_but_for_rounding() -> None:
    rng = np.random.default_rng(3)
    rows = {"submit_s": rng.uniform(0, 9e4, 900).round(3), "nodes": rng.integers(1, 9, 900), "run_s": rng.exponential(500, 900)}
    frame = pd.DataFrame(rows).round(3).assign(user=rng.choice(60, 900, p=np.arange(60) / 1770) + 1)
    run = cm.Scenario(machine=cm.Machine(nodes=8), workload=cm.Workload.from_frame(frame), policy="easy").run()
    table = run.by_user()
    for user, jobs in run.jobs.groupby("user"):
        wait = jobs["wait_s"].to_numpy()
        expected = [np.mean(wait), np.median(wait), np.std(wait), *np.percentile(wait, (90, 95)), np.max(wait)]
        found = table.loc[user, [f"{name}_wait_s" for name in ("mean", "median", "std", "p90", "p95", "max")]]
        assert found.tolist() == pytest.approx(expected, rel=1e-13)
        assert table.loc[user, "mean_weighted_wait_s"] == pytest.approx(np.average(wait, weights=jobs["nodes"]), rel=1e-13)
