"""Which jobs are malleable: fields of a job, columns of tables, shares of a workload, rules of a site, options."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clustermodel import (
    Checkpointing,
    Job,
    JobFilter,
    LoadScale,
    Machine,
    Malleable,
    Scenario,
    Site,
    Store,
    SwfStream,
    Workload,
    merge,
    read_csv,
    synthetic_workload,
    write_trace,
)
from clustermodel.experiment.run_key import digest_of_jobs, key_of_scenario
from clustermodel.workload.job import UNSET, Sizes
from clustermodel.workload.streams_of_run import JobStreams
from tests.conftest import refusal


def job(number: int, nodes: int = 4, **fields: Any) -> Job:
    return Job(id=number, submit_s=number, nodes=nodes, run_s=10, **fields)


RESIZABLE = [
    job(1),
    job(2, malleable=True),
    job(3, malleable=True, min_nodes=2, max_nodes=8, resize_s=0),
    job(4, malleable=True, resize_s=1.5),
]
SIZES = {2: Sizes(), 3: Sizes(2, 8, 0), 4: Sizes(resize=1_500_000)}


def sizes_of(*sources: Workload) -> dict[int, Sizes]:
    return sizes_in(JobStreams(list(sources)))


def sizes_in(streams: JobStreams) -> dict[int, Sizes]:
    demands = {row.id: row.demand for stream in streams.submissions(())[0] for row in stream}
    return {number: demand.sizes for number, demand in demands.items() if demand is not None and demand.sizes is not None}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min_nodes": 2}, "min_nodes: 2 is not allowed of a job that is not malleable; it must be None"),
        ({"max_nodes": 8}, "max_nodes: 8 is not allowed of a job that is not malleable; it must be None"),
        ({"resize_s": 0}, "resize_s: 0 is not allowed of a job that is not malleable; it must be None"),
        ({"malleable": 1}, "malleable: 1 is not allowed; it must be True or False"),
        ({"malleable": True, "min_nodes": 5}, "min_nodes: 5 is not allowed; it must be at most its nodes, 4"),
        ({"malleable": True, "max_nodes": 3}, "max_nodes: 3 is not allowed; it must be at least its nodes, 4"),
        ({"malleable": True, "min_nodes": 0}, "min_nodes: 0 is not allowed; it must be an integer >= 1"),
        ({"malleable": True, "resize_s": -1}, "resize_s: -1 is not allowed; it must be a finite number of seconds >= 0"),
        ({"malleable": True, "whole_nodes": True}, "whole_nodes: True is not allowed of a malleable job; a job with a shape"),
        ({"malleable": True, "max_nodes_used": 2}, "max_nodes_used: 2 is not allowed of a malleable job; a job with a shape"),
    ],
)
def test_refused_jobs(fields: dict[str, Any], message: str) -> None:
    assert refusal(lambda: job(1, **fields)).startswith(f"Job 1: {message}")


def test_sizes_in_tables() -> None:
    workload = Workload.from_jobs(RESIZABLE)
    assert sizes_of(workload) == SIZES
    again = Workload.from_frame(workload.frame)
    assert digest_of_jobs(again) == digest_of_jobs(workload)
    assert sizes_of(Workload.from_jobs(workload.jobs())) == SIZES
    assert not Workload.from_jobs([job(1), job(2)]).extra


def test_sizes_of_several_streams() -> None:
    workload = Workload.from_jobs(RESIZABLE)
    both = {**SIZES, **{number + 4: sizes for number, sizes in SIZES.items()}}
    assert sizes_of(workload, workload) == both
    assert sizes_of(merge(a=workload, b=workload)) == both
    assert sizes_of(workload, Workload.from_jobs([job(9)])) == SIZES


def test_scaled_sizes() -> None:
    # 4 nodes between 2 and 8 become 3 between 2 (1.5, to the even number) and 6; what has no number has none.
    scaled = Workload.from_jobs(RESIZABLE).scaled(LoadScale(size=0.75, run_time=2))
    assert sizes_of(scaled) == {**SIZES, 3: Sizes(2, 6, 0)}


def test_csv_files_with_sizes(tmp_path: Path) -> None:
    path, names = tmp_path / "jobs.csv", ("submit_s", "nodes", "run_s", "malleable", "min_nodes", "max_nodes", "resize_s")
    path.write_text(",".join(names) + "\n0,4,9,1,2,8,0.5\n1,4,9,0,2,8,0.5\n2,4,9,1,,,\n3,4,9,,,,\n")
    workload = read_csv(path, columns={name: name for name in names})
    assert sizes_of(workload) == {1: Sizes(2, 8, 500_000), 3: Sizes()}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"min_nodes": 1}, "Workload.from_frame: column 'malleable' is missing; 'min_nodes' needs it"),
        ({"resize_s": 1}, "Workload.from_frame: column 'malleable' is missing; 'resize_s' needs it"),
        ({"malleable": 2}, "Workload.from_frame: row 0: malleable: 2 is not allowed; it must be True or False"),
        (
            {"malleable": True, "min_nodes": 0},
            "job 1: min_nodes: 0 is not allowed; it must be at least 1 and at most the nodes",
        ),
        (
            {"malleable": True, "min_nodes": 5},
            "job 1: min_nodes: 5 is not allowed; it must be at least 1 and at most the nodes",
        ),
        ({"malleable": True, "max_nodes": 3}, "job 1: max_nodes: 3 is not allowed; it must be at least the nodes that the job"),
        (
            {"malleable": True, "whole_nodes": True},
            "job 1: malleable: a job with a shape (processors_per_node, max_nodes_used, whole_nodes) keeps its size",
        ),
    ],
)
def test_refused_tables(columns: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame({"submit_s": [0], "nodes": 4, "run_s": 9, **columns})
    assert refusal(lambda: sizes_of(Workload.from_frame(frame))).startswith(message)


JOBS = synthetic_workload(jobs=300, nodes=64)


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        ({}, {2: (UNSET, UNSET), 5: (UNSET, UNSET)}),
        ({"min_nodes": 3, "max_nodes": 4}, {2: (2, 4), 5: (3, 5)}),
        ({"min_nodes": "0.5x", "max_nodes": "1.5x"}, {2: (1, 3), 5: (2, 8)}),  # 2.5 and 7.5 to the even numbers
        ({"min_nodes": "0.1x", "nodes": (3, 9)}, {5: (1, UNSET)}),
        ({"users": ["ann"], "min_nodes": "1x", "max_nodes": "1x"}, {2: (2, 2)}),
        ({"users": ["bob", "ann"], "nodes": (6, 9)}, {}),
    ],
)
def test_sizes_by_rule(rule: dict[str, Any], sizes: dict[int, tuple[int, int]]) -> None:
    frame = pd.DataFrame({"job": [2, 5, 7], "submit_s": 0, "nodes": [2, 5, 0], "run_s": 9, "user_name": ["ann", "bob", "ann"]})
    workload = Workload.from_frame(frame).with_malleable(**rule, resize_s=3)
    assert sizes_of(workload) == {job: Sizes(*both, 3_000_000) for job, both in sizes.items()}
    assert workload.provenance.notes == (f"{len(sizes)} of 3 jobs are malleable",)


def test_jobs_that_are_malleable_keep_their_sizes() -> None:
    workload = Workload.from_jobs([*RESIZABLE, job(5)]).with_malleable(nodes=(4, 4), min_nodes=2)
    assert sizes_of(workload) == {**SIZES, 1: Sizes(2), 5: Sizes(2)}


def test_shares_are_nested_and_reproducible() -> None:
    before: set[int] = set()
    for share in (0.1, 0.3, 0.6, 1):
        chosen = set(sizes_of(JOBS.with_malleable(share=share)))
        assert before <= chosen
        assert abs(len(chosen) - 300 * share) < 30
        before = chosen
    assert len(before) == 300
    some = sizes_of(JOBS.with_malleable(share=0.3, seed=2))
    assert some != sizes_of(JOBS.with_malleable(share=0.3))
    few = JOBS.select(JobFilter(nodes=(1, 2)))  # whether a job is chosen depends on no other job
    assert sizes_of(few.with_malleable(share=0.3, seed=2)).items() <= some.items()
    assert Malleable(share=0.5, seed=7).belong(np.arange(1, 11)).tolist() == [place not in (0, 3, 7) for place in range(10)]


def test_a_share_of_0_changes_nothing() -> None:
    none = JOBS.with_malleable(share=0)
    assert digest_of_jobs(none) == digest_of_jobs(JOBS)
    assert none.extra == ()
    scenario = Scenario(workload=JOBS, machine=Machine(nodes=64))
    pd.testing.assert_frame_equal(replace(scenario, site=Site(malleable=Malleable(share=0))).run().jobs, scenario.run().jobs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2", "Malleable.share: 2.0 is not allowed; it must be a number >= 0 and <= 1"),
        ("x", "malleable: share: 'x' is not allowed; it must be a number"),
        ("", "malleable: share: '' is not allowed; it must be a number"),
        ("0.3,mn=2", "malleable: 'mn' is not allowed (did you mean 'min'?)"),
        (
            "0.3,min=2x",
            "Malleable.min_nodes: '2x' is not allowed; it must be a whole number, or a multiple of at most 1, as '0.5x'",
        ),
        ("0.3,min=0x", "Malleable.min_nodes: '0x' is not allowed"),
        ("0.3,min=0", "Malleable.min_nodes: 0 is not allowed; it must be an integer >= 1"),
        ("0.3,max=0.5x", "Malleable.max_nodes: '0.5x' is not allowed; it must be a whole number, or a multiple of at least 1"),
        ("0.3,max=half", "malleable: max_nodes: 'half' is not allowed; it must be a whole number, or a multiple as 2x"),
        ("0.3,nodes=a-b", "malleable: nodes: 'a-b' is not allowed; it must be LOW-HIGH, as 4-64"),
        ("0.3,nodes=8-4", "Malleable.nodes: (8, 4) is not allowed; it must be (low, high), low <= high"),
        ("0.3,seed=1.5", "malleable: seed: '1.5' is not allowed; it must be a whole number"),
        ("0.3,0.4", "malleable: share: '0.4' is not allowed; write SHARE,key=value,key=value"),
        ("0.3,users=ann,users=bob", "malleable: users: 'bob' is not allowed; it is given twice"),
        ("0.3,resize_s=-1", "Malleable.resize_s: -1.0 is not allowed; it must be a finite number of seconds >= 0"),
    ],
)
def test_refused_rules(text: str, message: str) -> None:
    assert refusal(lambda: Malleable.from_text(text)).startswith(message)


def test_a_rule_as_text() -> None:
    text = "0.3,min=0.5x,max=64,seed=2,users=ann,bob,nodes=4-64,resize_s=60,window_s=0-9.5,statuses=1"
    assert Malleable.from_text(text) == Malleable(
        share=0.3, min_nodes="0.5x", max_nodes=64, seed=2, users=["ann", "bob"], nodes=(4, 64), resize_s=60, window_s=(0, 9.5),
        statuses=[1],
    )  # fmt: skip
    assert Malleable.from_text("1") == Malleable()


def test_a_rule_that_names_nobody_is_refused() -> None:
    assert refusal(lambda: JOBS.with_malleable(users=["ann"])).startswith("user: 'ann' has no jobs in synthetic-1")


def test_rules_of_a_site(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(
        "[[malleable]]\nusers = [1, 2]\nmax_nodes = '2x'\n[[malleable]]\nshare = 0.2\nseed = 4\n"
    )
    site = Site.from_toml(tmp_path / "site.toml")
    assert site == Site(malleable=[Malleable(users=[1, 2], max_nodes="2x"), Malleable(share=0.2, seed=4)])
    assert Site.from_toml(tmp_path / "site.toml") == site
    site.to_toml(tmp_path / "again.toml")
    assert Site.from_toml(tmp_path / "again.toml") == site
    machine = Machine(nodes=64)
    scenario = Scenario(workload=JOBS, machine=machine, site=site)
    workload = JOBS.with_malleable(users=[1, 2], max_nodes="2x").with_malleable(share=0.2, seed=4)
    assert sizes_in(scenario.streams) == sizes_of(workload)
    keys = {key_of_scenario(each) for each in (scenario, replace(scenario, site=None), replace(scenario, workload=workload))}
    assert len(keys) == 3
    assert Scenario.from_toml(scenario.to_toml()) == scenario


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[malleable]\nshare = 1", "malleable: {'share': 1} is not allowed; it must be tables [[malleable]]"),
        ("[[malleable]]\nshar = 1", "malleable[0].shar: unknown key (did you mean 'share'?); known are window_s, nodes"),
        ("[[malleable]]\nshare = 3", "malleable[0].share: 3 is not allowed; it must be a number >= 0 and <= 1"),
    ],
)
def test_refused_tables_of_a_site(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "site.toml").write_text(text)
    assert refusal(lambda: Site.from_toml(tmp_path / "site.toml")).startswith(f"{tmp_path / 'site.toml'}: {message}")


def test_a_stream_that_is_read_job_by_job_has_no_malleable_jobs(tmp_path: Path) -> None:
    write_trace(tmp_path / "jobs.swf", JOBS)
    scenario = Scenario(workload=SwfStream(tmp_path / "jobs.swf"), machine=Machine(nodes=64), site=Site(malleable=Malleable()))
    assert refusal(scenario.run) == "Site.malleable: not allowed for jobs, which is read job by job; read it into memory"


def test_options(command_line: Callable[..., Any], tmp_path: Path) -> None:
    options = ["--jobs", "300", "--nodes", "64", "--policy", "expand", "--malleable", "0.3,max=2x", "--malleable", "1,users=2"]
    ran = command_line("run", *options, "--resize-s", "60", "--on-failure", "shrink", "--by", "malleable", "--json")
    workload = synthetic_workload(jobs=300, nodes=64).with_malleable(share=0.3, max_nodes="2x").with_malleable(users=[2])
    malleable = int(workload.column("malleable").sum())
    counts = {group["who"]: group["jobs"] for group in json.loads(ran.out)[0]["groups"]}
    assert counts == {"0": 300 - malleable, "1": malleable}
    assert f"synthetic-1: {malleable} of 300 jobs are malleable\n" in ran.err
    wrong = command_line("run", "--malleable", "0.3,mn=2")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert wrong.err.startswith("clustermodel: error: malleable: 'mn' is not allowed (did you mean 'min'?)")
    (tmp_path / "case.toml").write_text("[machine]\nnodes = 64\n[workload]\nsynthetic = true\njobs = 300\nnodes = 64\n")
    assert "of 300 jobs are malleable" in command_line("run", tmp_path / "case.toml", "--malleable", "0.5").err


def test_whatif_compares_with_malleable_jobs(command_line: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submit_s,nodes,run_s,wait_s\n0,4,100,0\n1,4,100,9\n")
    columns = ",".join(f"{name}={name}" for name in ("submit_s", "nodes", "run_s", "wait_s"))
    options = ["--trace", tmp_path / "jobs.csv", "--columns", columns, "--policy", "fcfs", "--speedup", "downey:1"]
    ran = command_line("whatif", *options, "--malleable", "1", "--json")
    assert [row["site"] for row in json.loads(ran.out)["rows"]] == ["none", "1"]
    assert "1: 2 of 2 jobs are malleable\n" in ran.err
    assert "note: 1: malleable jobs: no effect under fcfs; compare policies that resize malleable jobs" in ran.err


def test_a_study_takes_malleable_jobs(command_line: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(
        "from clustermodel import Job, Machine, Scenario, Study, Workload\n"
        "jobs = Workload.from_jobs([Job(id=number, nodes=1, submit_s=0, run_s=60) for number in (1, 2, 3)])\n"
        "def scenario(policy, seed):\n"
        "    return Scenario(machine=Machine(nodes=4), workload=jobs, policy=policy)\n"
        "def malleable(result):\n"
        "    return sum(row.demand is not None for row in result.scenario.streams.submissions(())[0][0])\n"
        "study = Study(name='s', factors={'policy': ['easy']}, scenario=scenario, measures={'malleable': malleable})\n"
    )
    options = ("--out", tmp_path / "out", "--malleable", "1,max=2x")
    assert command_line("sweep", tmp_path / "study.py", *options).code == 0
    with Store.read(tmp_path / "out") as store:
        assert store.results()["malleable"].tolist() == [3]


TABLE = "submit_s,nodes,run_s,malleable,max_nodes\n0,2,100,1,4\n0,2,20,0,\n"
"""At 20 s, when job 2 has ended, job 1 gets its nodes, which takes 10 s.  Of its 100 s on 2 nodes 80 are left, 40 on 4 nodes:
its end is at 70 s.  4 nodes for 10 of these 70 s are a seventh of the capacity."""


def test_resizes_in_outputs(command_line: Callable[..., Any], terminal: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(TABLE)
    columns = ",".join(f"{name}={name}" for name in TABLE.partition("\n")[0].split(","))
    options = ["--trace", tmp_path / "jobs.csv", "--columns", columns, "--nodes", "4", "--resize-s", "10"]
    rows = json.loads(command_line("run", *options, "--policy", "easy", "--policy", "expand", "--json").out)
    assert [(row["mean_response_s"], row["resizes"], row["resize_share"]) for row in rows] == [(60, 0, 0), (45, 1, 1 / 7)]
    shown = [terminal("run", *options, "--policy", policy).out for policy in ("easy", "expand")]
    assert ["resize" in table for table in shown] == [False, True]


def test_resizes_in_the_job_table(tmp_path: Path) -> None:
    frame = pd.read_csv(StringIO(TABLE)).assign(job=[1, 2])
    scenario = Scenario(workload=Workload.from_frame(frame), machine=Machine(nodes=4, resize_s=10), policy="expand")
    shown = scenario.run().jobs[["end_s", "resizes", "malleable", "max_nodes"]]
    assert shown.to_numpy().tolist() == [[70, 1, 1, 4], [20, 0, 0, -1]]
    replace(scenario, stream=str(tmp_path / "jobs.parquet")).run()
    assert pd.read_parquet(tmp_path / "jobs.parquet").set_index("job")["resizes"].to_dict() == {1: 1, 2: 0}
    rigid = Workload.from_frame(frame.assign(malleable=0))
    assert "resizes" not in replace(scenario, workload=rigid).run().jobs


def test_keys_know_costs_of_resizes() -> None:
    def key(policy: str, **machine: Any) -> str:
        return key_of_scenario(Scenario(workload=JOBS, machine=Machine(nodes=64, **machine), policy=policy))

    restart = Checkpointing(restart_s=9)
    machines: list[dict[str, Any]] = [{}, {"resize_s": 0}, {"resize_s": 1}, {"checkpointing": restart}]
    assert len({key("expand", **machine) for machine in machines}) == 4
    assert len({key("easy", **machine) for machine in machines}) == 1  # which resizes nothing
    machines = [{"on_failure": "shrink", **machine} for machine in machines]
    assert len({key("easy", **machine) for machine in [*machines, {}]}) == 5
    assert key("easy", on_failure="requeue", resize_s=None) == key("easy")


def test_notes_say_that_nothing_is_resized(command_line: Callable[..., Any]) -> None:
    options = ["--jobs", "100", "--nodes", "16", "--resize-s", "5", "--malleable"]
    unused = [line for line in command_line("run", *options, "0.5", "--policy", "easy").err.splitlines() if "note:" in line]
    assert unused == [
        "note: resizes of 5 s: no effect under easy; leave it out, or compare policies that resize malleable jobs, such as "
        "expand (--resize-s)",
        "note: malleable jobs: no effect under easy; compare policies that resize malleable jobs, such as expand (--policy)",
    ]
    assert "note: " not in command_line("run", *options, "1", "--policy", "easy", "--policy", "equipartition").err


@pytest.mark.parametrize("policy", ["fcfs", "conservative", "gs", "ss"])
def test_policies_that_do_not_resize_run_malleable_jobs_as_rigid_ones(policy: str) -> None:
    rigid = Scenario(workload=JOBS, machine=Machine(nodes=64), policy=policy).run().jobs
    jobs = Scenario(workload=JOBS.with_malleable(), machine=Machine(nodes=64), policy=policy).run().jobs
    pd.testing.assert_frame_equal(jobs[rigid.columns], rigid)
    assert jobs["resizes"].sum() == 0
