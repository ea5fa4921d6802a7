"""What a log says of its jobs survives: names of queues, partitions, users, states; selections and groups by them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import clustermodel as cm
from clustermodel import JobFilter, Machine, Scenario, SwfStream, TraceError, Workload, read_sacct, read_swf
from clustermodel.experiment.run_key import key_of_scenario
from tests.conftest import Finished, refusal

Command = Callable[..., Finished]
WriteTrace = Callable[..., Path]
HEADER = (
    "; MaxProcs: 8",
    "; Queue: 0 interactive",
    "; Queue:  1  express",
    "; Queue: 2 low",
    "; Queue: 4 low",
    "; UserMap: 1 ann",
)
JOBS = ((1, 1, 1), (2, 2, 4), (2, 1, 2), (3, 5, -1), (2, 1, 1))
"""Users, statuses and queues of five jobs; two numbers of queues have one name."""


def line(number: int, user: int = 1, status: int = 1, queue: object = -1, partition: object = -1, group: int = -1) -> str:
    return f"{number} {10 * number} 5 100 4 -1 -1 4 200 -1 {status} {user} {group} -1 {queue} {partition} -1 -1"


def jobs() -> list[str]:
    states = {1: 1, 2: 0, 5: 5}
    return [line(number, user, states[status], queue) for number, (user, status, queue) in enumerate(JOBS, start=1)]


@pytest.fixture
def trace(write_trace: WriteTrace) -> Path:
    return write_trace(*HEADER, *jobs())


def run(workload: Any, **fields: Any) -> Any:
    return Scenario(workload=workload, machine=Machine(nodes=8), policy="fcfs", **fields).run()


def test_queues_and_partitions_have_the_names_of_the_header_or_their_numbers(write_trace: WriteTrace) -> None:
    lines = (line(1, queue=0, partition=7), line(2, queue=1), line(3, queue=9), line(4, queue=4), line(5, queue=2))
    workload = read_swf(write_trace(*HEADER, "; Partition: 7 batch  nodes", *lines))
    assert workload.frame["queue"].tolist() == ["interactive", "express", "9", "low", "low"]
    assert workload.frame["partition"].tolist()[0] == "batch  nodes"
    assert workload.frame["partition"].isna().tolist() == [False, True, True, True, True]
    assert workload.names["queue"] == ("interactive", "express", "low", "9")


def test_a_column_without_any_value_is_left_out(trace: Path, write_trace: WriteTrace) -> None:
    assert read_swf(trace).extra == ("queue",)
    assert read_swf(write_trace("; Queue: 0 interactive", line(1), line(2), name="none.swf")).extra == ()
    with_all = write_trace(line(1), line(2, queue=3).replace(" -1 -1 -1", " 1 1 50"), name="chain.swf")
    workload = read_swf(with_all, feedback=True, waits=True)
    assert workload.extra == ("wait", "partition", "queue", "preceding", "think")
    assert workload.frame[["partition", "queue", "preceding", "think_time_s"]].iloc[1].tolist() == ["1", "3", 1, 50]


def test_a_number_that_is_no_queue_is_unknown_and_counted(write_trace: WriteTrace) -> None:
    workload = read_swf(write_trace(line(1, queue=0), line(2, queue=1.5), line(3, queue="x"), line(4, queue="1e11")))
    assert workload.frame["queue"].tolist()[0] == "0"
    assert workload.frame["queue"].isna().sum() == 3
    assert workload.provenance.repaired == {"queue invalid, ignored": 3}


def test_names_of_users_are_those_of_the_header_with_numbers_where_it_has_none(trace: Path, write_trace: WriteTrace) -> None:
    assert read_swf(trace).names["user"] == ("ann",)
    some = read_swf(write_trace("; UserMap: 3 cy", "; UserMap: nobody", "; GroupMap: 1 lab", line(1, 3), name="some.swf"))
    assert (some.names["user"], some.names["group"]) == (("1", "2", "cy"), ("lab",))
    huge = read_swf(write_trace("; UserMap: 9999999999 big", line(1), name="huge.swf"))
    assert huge.names == {}  # no header fills the memory


@pytest.mark.parametrize("has_groups", [True, False])
def test_what_a_log_says_is_in_the_trace_that_is_made_of_it(tmp_path: Path, write_trace: WriteTrace, has_groups: bool) -> None:
    header = (
        f"JobID|User|{'Group|' * has_groups}Account|Partition|QOS|Submit|Start|End|ElapsedRaw|State|AllocNodes|TimelimitRaw"
    )
    times = "2025-03-03T08:00:00|2025-03-03T08:10:00|2025-03-03T08:20:00|600"
    rows = [
        f"{number}|{user}|{'lab|' * has_groups}{account}|{partition}|{qos}|{times}|{state}|1|60"
        for number, (user, account, partition, qos, state) in enumerate(
            (
                ("ann", "bio", "main", "high", "COMPLETED"),
                ("bob", "phys", "gpu", "normal", "FAILED"),
                ("ann", "phys", "main", "normal", "TIMEOUT"),
            ),
            start=1,
        )
    ]
    log = read_sacct(write_trace(header, *rows, name="jobs.sacct"))
    path = tmp_path / "log.swf"
    cm.write_trace(path, log)
    again = read_swf(path)
    assert list(again.rows()) == list(log.rows())
    own, others = run(log).jobs, run(again).jobs
    kept = ["user_name", "partition", "qos", "recorded_status", *(["group_name"] if has_groups else ["account"])]
    for column in kept:
        assert others[column].tolist() == own[column].tolist(), column
    assert own["recorded_status"].tolist() == ["completed", "failed", "failed"]
    assert ("account" in others) == (not has_groups)  # groups have their field
    cm.write_trace(tmp_path / "twice.swf", again)
    assert run(read_swf(tmp_path / "twice.swf")).jobs[kept].equals(others[kept])


def test_groups_have_names_and_every_job_is_in_one(trace: Path) -> None:
    workload = read_swf(trace)
    result = run(workload)
    assert result.jobs["user"].tolist() == [1, 2, 2, 3, 2]  # numbers, as before
    assert result.by_user()["jobs"].to_dict() == result.by_group("user")["jobs"].to_dict() == {"2": 3, "3": 1, "ann": 1}
    assert result.by_user().index.name == "user"
    assert result.by_group("queue")["jobs"].to_dict() == {"(none)": 1, "express": 2, "low": 2}
    assert result.by_group("recorded_status")["jobs"].to_dict() == {"failed": 1, "completed": 3, "cancelled": 1}
    assert result.by_group("size")["jobs"].to_dict() == {"1": 0, "2": 0, "3-4": 5, "> 4": 0}
    parts = {part.name: part.column("id").tolist() for part in workload.split("queue")}
    assert parts == {"jobs without queue": [4], "jobs queue express": [1, 5], "jobs queue low": [2, 3]}
    assert [part.name for part in workload.split("user")] == ["jobs user ann", "jobs user 2", "jobs user 3"]


def test_streams_of_one_run_have_their_own_names(trace: Path, write_trace: WriteTrace) -> None:
    other = read_swf(write_trace("; UserMap: 1 bob", line(1), line(2, 2), name="other.swf"))
    jobs = run([read_swf(trace), other]).jobs
    assert jobs["user_name"].tolist()[-4:] != jobs["user"].tolist()[-4:]
    assert run([read_swf(trace), other]).by_user()["jobs"].to_dict() == {"2": 4, "3": 1, "ann": 1, "bob": 1}


SELECTIONS = [
    (JobFilter(queues=["low"]), [2, 3], "queue not selected"),
    (JobFilter(queues={"low", "express"}), [1, 2, 3, 5], "queue not selected"),
    (JobFilter(users=["ann", 3]), [1, 4], "user not selected"),
    (JobFilter(users={"2"}, queues=["express"]), [5], "queue not selected"),
]


@pytest.mark.parametrize(("keep", "kept", "reason"), SELECTIONS)
def test_jobs_are_selected_by_names_on_reading_in_a_stream_and_later(
    trace: Path, keep: JobFilter, kept: list[int], reason: str
) -> None:
    read, later, stream = read_swf(trace, keep=keep), read_swf(trace).select(keep), SwfStream(trace, keep=keep)
    assert read.column("id").tolist() == later.column("id").tolist() == [row.id for row in stream.rows()] == kept
    assert reason in read.provenance.dropped
    assert read.provenance.dropped == later.provenance.dropped == stream.provenance.dropped


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (
            JobFilter(queues=["expres"]),
            "queue: 'expres' has no jobs in jobs (did you mean 'express'?); there are express, interactive, low",
        ),
        (JobFilter(users=["cy"]), "user: 'cy' has no jobs in jobs; there are ann"),
        (JobFilter(accounts=["bio"]), "account: jobs of jobs have none; they have user, group, queue, partition"),
        (JobFilter(partitions=["main"]), "partition: 'main' has no jobs in jobs; only numbers are known"),
    ],
)
def test_names_that_there_are_not_are_one_line(trace: Path, keep: JobFilter, message: str) -> None:
    assert refusal(lambda: read_swf(trace, keep=keep)) == message
    assert refusal(lambda: SwfStream(trace, keep=keep)) == message


def test_of_a_table_only_names_that_have_jobs_are_known(trace: Path) -> None:
    few = read_swf(trace).select(JobFilter(queues=["low"]))
    message = "queue: 'express' has no jobs in jobs; there are low"
    assert refusal(lambda: few.select(JobFilter(queues=["express"]))) == message
    many = pd.DataFrame({"submit_s": 0, "nodes": 1, "run_s": 1, "account": [f"a{number}" for number in range(9)]})
    message = "account: 'b' has no jobs in workload; there are a0, a1, a2, a3, a4, a5, a6, a7, ..."
    assert refusal(lambda: Workload.from_frame(many).select(JobFilter(accounts=["b"]))) == message
    with pytest.raises(TraceError, match="no usable job: 5 jobs dropped: queue not selected"):
        read_swf(trace, keep=JobFilter(queues=[77]))
    for wrong in ("low", [1.5], 7):
        must = "it must be a set of names or whole numbers"
        assert refusal(lambda wrong=wrong: JobFilter(queues=wrong)) == f"JobFilter.queues: {wrong!r} is not allowed; {must}"


def test_scenario_files_select_by_names(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text('[workload]\ntrace = "jobs.swf"\nkeep = {queues = ["low"], users = [2, "ann"]}\n')
    scenario = Scenario.from_toml(file)
    assert scenario.run().jobs["job"].tolist() == [2, 3]
    assert Scenario.from_toml(scenario.to_toml(tmp_path / "again.toml")).workload == scenario.workload
    file.write_text('[workload]\ntrace = "jobs.swf"\nkeep = {queues = ["slow"]}\n')
    assert refusal(lambda: Scenario.from_toml(file)).endswith(
        "queue: 'slow' has no jobs in jobs (did you mean 'low'?); there are express, interactive, low"
    )


def test_merged_workloads_keep_what_is_recorded(trace: Path, write_trace: WriteTrace) -> None:
    other = read_swf(
        write_trace("; UserMap: 1 bob", "; Queue: 1 low", line(1), line(2, 2, queue=1), name="other.swf"), waits=True
    )
    streams = {
        "day": read_swf(trace),
        "night": other,
        "model": Workload.from_jobs([cm.Job(id=99, nodes=1, submit_s=0, run_s=9)]),
    }
    merged = cm.merge(**streams)
    apart, together = (run(workload).jobs for workload in (list(streams.values()), merged))
    together, apart = (jobs.sort_values("job", ignore_index=True) for jobs in (together, apart))
    for column in ("user_name", "queue", "recorded_wait_s", "recorded_status", "start_s"):
        pd.testing.assert_series_equal(together[column], apart[column], check_dtype=False, check_categorical=False)
    assert run(merged).by_user()["jobs"].to_dict() == {"(none)": 1, "2": 4, "3": 1, "ann": 1, "bob": 1}
    assert [len(part) for part in merged.split("queue")] == [3, 2, 3]


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_options_select_by_names(command_line: Command, trace: Path, stream: tuple[str, ...]) -> None:
    def number(*options: object) -> int:
        finished = command_line("run", "--trace", trace, "--policy", "fcfs", "--json", *stream, *options)
        assert finished.code == 0, finished.err
        jobs: int = json.loads(finished.out)[0]["jobs"]
        return jobs

    assert number("--queue", "low") == 2
    assert number("--queue", "low", "--queue", "express") == 4
    assert number("--user", "ann", "--user", 2) == 4
    finished = command_line("run", "--trace", trace, *stream, "--account", "bio")
    assert (finished.code, finished.err.count("\n")) == (2, 1)
    assert finished.err == "clustermodel: error: account: jobs of jobs have none; they have user, group, queue, partition\n"


def test_other_commands_select_by_names(command_line: Command, trace: Path) -> None:
    assert json.loads(command_line("trace", "info", trace, "--queue", "low", "--json").out)["jobs"] == 2
    rows = json.loads(command_line("whatif", "--trace", trace, "--policy", "fcfs", "--queue", "express", "--json").out)
    assert [row["jobs"] for row in rows] == [2, 2]
    log = Path(__file__).resolve().parents[1] / "logs" / "arrays.sacct"
    chosen = json.loads(command_line("run", "--trace", log, "--account", "a1", "--policy", "fcfs", "--json").out)
    assert chosen[0]["jobs"] == 2
    finished = command_line("run", "--trace", log, "--account", "a3")
    assert finished.err.endswith("account: 'a3' has no jobs in arrays.sacct; there are a1, a2\n")


def test_a_selection_by_what_no_job_has_says_so(command_line: Command, write_trace: WriteTrace) -> None:
    finished = command_line("whatif", "--trace", write_trace(line(1), name="plain.swf"), "--partition", 1)
    assert finished.err == "clustermodel: error: partition: jobs of plain have none; they have user\n"


def test_a_run_shows_groups(command_line: Command, trace: Path, terminal: Command) -> None:
    options = ("run", "--trace", trace, "--policy", "easy", "--policy", "fcfs", "--by", "queue", "--by", "user")
    runs = json.loads(command_line(*options, "--json").out)
    by_queue, by_user = ([group for group in runs[1]["groups"] if group["by"] == by] for by in ("queue", "user"))
    assert {group["who"]: group["jobs"] for group in by_queue} == {"(none)": 1, "express": 2, "low": 2}
    assert {group["who"]: group["jobs"] for group in by_user} == {"ann": 1, "2": 3, "3": 1}
    # Two of 4 nodes run at a time: starts at 10, 20, 110, 120, 210 s, submissions 10, 20, ... 50 s
    assert {group["who"]: group["mean_wait_s"] for group in by_queue} == {"(none)": 80, "express": 80, "low": 40}
    lines = command_line(*options).out.splitlines()
    assert [text.split("\t")[:3] for text in lines[3:7]] == [
        ["policy", "queue", "jobs"], ["easy", "(none)", "1"], ["easy", "express", "2"], ["easy", "low", "2"]
    ]  # fmt: skip
    assert "fcfs by queue\n" in terminal(*options).out


def test_a_long_table_of_groups_shows_those_with_the_most_jobs(write_trace: WriteTrace, terminal: Command) -> None:
    path = write_trace(*(line(number, user=1 + number % 29) for number in range(1, 60)))
    shown = terminal("run", "--trace", path, "--policy", "fcfs", "--nodes", 8, "--by", "user").out
    assert "fcfs by user, 20 of 29 groups (all with --json)" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "queu"), "--by: 'queu' is not allowed (did you mean 'queue'?)"),
        (("--by", "accounts"), "--by: 'accounts' is not allowed (did you mean 'account'?)"),
        (("--by", "queue", "--stream"), "--by: not allowed with --stream, which keeps no jobs"),
    ],
)
def test_groups_that_there_are_not_are_one_line_before_the_run(
    command_line: Command, trace: Path, options: tuple[str, ...], message: str
) -> None:
    finished = command_line("run", "--trace", trace, "--policy", "fcfs", *options)
    assert finished.code == 2
    assert finished.err.splitlines()[-1].startswith(f"clustermodel: error: {message}")
    assert "fcfs: 5 jobs" not in finished.err


def test_rules_and_facts_have_keys_of_their_own(trace: Path) -> None:
    workload = read_swf(trace)
    limited = Scenario(workload=workload, site=cm.Site(limits=cm.Limits(user="*", running_jobs=1)))
    keys = [key_of_scenario(scenario) for scenario in (Scenario(workload=workload), limited)]
    machine = Machine(nodes=8, partitions=[cm.Partition(name="low", nodes="0-7")])
    keys.append(key_of_scenario(Scenario(workload=workload, machine=machine)))
    rows = list(workload.rows())
    keys.append(key_of_scenario(Scenario(workload=Workload(rows, name=workload.name, machine_nodes=8))))
    chain = [cm.Job(id=number, nodes=1, submit_s=0, run_s=9, after_ok=number - 1 if number > 1 else ()) for number in (1, 2)]
    alone = [cm.Job(id=job.id, nodes=1, submit_s=0, run_s=9) for job in chain]
    keys += [key_of_scenario(Scenario(workload=Workload.from_jobs(jobs, machine_nodes=8))) for jobs in (chain, alone)]
    assert len(set(keys)) == len(keys)


def test_tables_have_names_of_users(trace: Path) -> None:
    frame = pd.DataFrame(
        {"submit_s": range(4), "nodes": 1, "run_s": 5, "user": ["ann", "bob", None, "ann"], "group": [7, 8, 7, 7]}
    )
    workload = Workload.from_frame(frame)
    assert (workload.names, workload.frame["user"].tolist()) == ({"user": ("ann", "bob")}, [1, 2, -1, 1])
    assert workload.frame["user_name"].isna().tolist() == [False, False, True, False]
    for known in (workload, read_swf(trace)):
        again = Workload.from_frame(known.frame, name=known.name, machine_nodes=known.machine_nodes)
        assert (again, again.names["user"]) == (known, known.names["user"])
    names = Workload.from_frame(frame.drop(columns="user").assign(group_name=["x", "y", "x", "x"]))
    assert (names.names["group"][6:], len(names.names["group"])) == (("x", "y"), 8)
    two = frame.assign(group_name=["x", "y", "z", "x"])
    message = "Workload.from_frame: group_name: a number in the column 'group' has two names; each must have one"
    assert refusal(lambda: Workload.from_frame(two)) == message


def test_a_schedule_has_queues_and_names(trace: Path, tmp_path: Path) -> None:
    result = run(read_swf(trace))
    result.to_swf(tmp_path / "schedule.swf")
    again = run(read_swf(tmp_path / "schedule.swf"))
    for column in ("user", "user_name", "queue"):
        pd.testing.assert_series_equal(again.jobs[column], result.jobs[column], check_categorical=False)
    run([read_swf(trace), read_swf(trace)]).to_swf(tmp_path / "two.swf")
    assert read_swf(tmp_path / "two.swf").extra == ()
