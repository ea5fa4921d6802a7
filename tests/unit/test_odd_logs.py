"""Logs as people really have them: suspended jobs, changed clocks, recycled numbers, prefixes, compressed files."""

import bz2
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import Machine, Scenario, TraceError, Workload, read_csv, read_lsf, read_outages, read_trace
from clustermodel.measure.metrics import observed_schedule
from clustermodel.workload.provenance import ImportReport
from tests.conftest import Finished

Write = Callable[..., Path]
SWF = "; MaxProcs: 4\n1 0 5 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n"


def report_of(workload: Workload) -> ImportReport:
    report = workload.provenance.report
    assert report is not None
    return report


def remarks(workload: Workload) -> tuple[str, ...]:
    return report_of(workload).remarks


def gangs(
    write: Write, *records: str, header: str = "JobID|Submit|Start|End|Elapsed|State|AllocNodes|AllocCPUS|NodeList"
) -> Path:
    return write(header, *records, name="gangs.sacct")


@pytest.mark.parametrize("day", ["2018-11-13", "2018-06-01"])
def test_gangs_that_share_nodes_in_time_slices_need_them_once(write_trace: Write, day: str) -> None:
    times = f"{day}T08:00:00|{day}T08:00:00|{day}T10:00:00|01:00:00|COMPLETED|4|16|n[1-4]"
    workload = read_trace(gangs(write_trace, f"1|{times}", f"2|{times}"))
    assert workload.machine_nodes == 4
    assert workload.frame["run_s"].tolist() == workload.frame["suspended_s"].tolist() == [3600, 3600]
    assert observed_schedule(workload, 4).utilization == 1
    assert not any(remark.startswith("clock") for remark in remarks(workload))


def test_an_hour_on_the_day_of_a_clock_change_is_no_suspension(write_trace: Write) -> None:
    times = "2018-03-25T01:30:00|2018-03-25T01:30:00|2018-03-25T03:30:00|01:00:00|COMPLETED|4|16|n[1-4]"
    workload = read_trace(gangs(write_trace, f"1|{times}"))
    assert workload.frame["suspended_s"].tolist() == [0]
    assert any(remark.startswith("clock: 1 job") for remark in remarks(workload))


def test_many_suspended_records_are_read_as_one(write_trace: Write) -> None:
    records = (
        f"{day}|2018-06-{day:02d}T08:00:00|2018-06-{day:02d}T08:00:00|2018-06-{day:02d}T10:00:00|00:30:00|COMPLETED|1|4|n1"
        for day in range(1, 29)
    )
    assert read_trace(gangs(write_trace, *records)).frame["suspended_s"].unique().tolist() == [5400]


def test_a_job_suspended_by_another_one_on_its_nodes_shares_none(write_trace: Write) -> None:
    day = "2024-01-01T"
    path = write_trace(
        "JobID|User|Submit|Start|End|Elapsed|Suspended|State|AllocNodes|AllocCPUS|NodeList",
        f"1|low|{day}00:00:00|{day}00:00:00|{day}03:00:00|02:00:00|01:00:00|COMPLETED|4|16|n[1-4]",
        f"2|high|{day}01:00:00|{day}01:00:00|{day}02:00:00|01:00:00|00:00:00|COMPLETED|4|16|n[1-4]",
        f"3|low|{day}00:30:00|{day}03:00:00|{day}04:00:00|01:00:00|00:00:00|COMPLETED|4|16|n[1-4]",
        name="preempted.sacct",
    )
    workload = read_trace(path)
    assert workload.machine_nodes == 4
    assert workload.column("nodes").tolist() == [4, 4, 4]
    assert observed_schedule(workload, 4).utilization == 1
    assert observed_schedule(workload).peak_nodes == 4
    run = Scenario(machine=Machine(nodes=4), workload=workload, policy="fcfs").run()
    assert run.summary().mean_wait_s == 4200


def test_suspended_jobs_without_node_names_count_as_long_as_they_execute(write_trace: Write) -> None:
    times = "2018-06-01T08:00:00|2018-06-01T08:00:00|2018-06-01T10:00:00|01:00:00|COMPLETED|4|16|"
    assert read_trace(gangs(write_trace, f"1|{times}", f"2|{times}")).machine_nodes == 4


def test_ends_in_the_second_pass_of_a_repeated_hour(write_trace: Write) -> None:
    path = gangs(
        write_trace,
        "1|2017-10-28T23:00:00|2017-10-29T01:00:00|2017-10-29T04:00:00|COMPLETED|1",
        "2|2017-10-28T23:00:00|2017-10-29T02:30:00|2017-10-29T02:10:00|COMPLETED|1",
        "3|2017-10-29T02:50:00|2017-10-29T02:10:00|2017-10-29T02:30:00|COMPLETED|1",
        header="JobID|Submit|Start|End|State|NNodes",
    )
    frame = read_trace(path, timezone="Europe/Amsterdam").frame.set_index("job")
    assert frame["run_s"].to_dict() == {1: 14_400, 2: 2400, 3: 1200}
    assert frame.loc[3, "wait_s"] == 1200
    without = read_trace(path)
    assert report_of(without).counts["ending before their start"] == 1
    assert any(remark.startswith("clock: 1 record") and "--timezone" in remark for remark in remarks(without))


@pytest.mark.parametrize("user", ["old", "new"])
def test_a_recycled_number_is_another_job(write_trace: Write, user: str) -> None:
    path = write_trace(
        "JobID|User|Submit|Start|End|Elapsed|State|AllocNodes",
        f"12728|{user}|2017-10-03T17:00:00|2017-10-03T17:39:29|2017-10-03T18:39:29|01:00:00|NODE_FAIL|1",
        "12728|new|2026-08-21T10:00:00|2026-08-21T10:05:00|2026-08-21T12:05:00|02:00:00|COMPLETED|2",
        name="recycled.sacct",
    )
    workload = read_trace(path, feedback=True)
    assert workload.frame["requeues"].tolist() == [0, 0]
    assert set(workload.column("preceding").tolist()) == {-1}


@pytest.mark.parametrize("prefix", ["20150327:", "accounting/20150327:", "17:", "20150327:17:", "/var/spool/my logs/20150327:"])
def test_what_grep_writes_in_front_of_a_record_is_skipped(tmp_path: Path, prefix: str) -> None:
    record = (
        "03/27/2015 00:06:27;E;25.b0;user=u4 queue=q3 ctime=1427422724 start=1427422975 exec_host=b391/0-3 "
        "Resource_List.nodect=1 end=1427439987 resources_used.walltime=04:43:32\n"
    )
    path = tmp_path / "accounting"
    path.write_text(prefix + record + prefix + record.replace("25.b0", "26.b0"))
    workload = read_trace(path)
    assert workload.frame["run_s"].tolist() == [17_012, 17_012]
    assert workload.frame["cores"].tolist() == [4, 4]


@pytest.mark.parametrize(("ending", "compress"), [(".bz2", bz2.compress), (".xz", lzma.compress), ("", bz2.compress)])
def test_swf_and_outages_compressed_with_bzip2_or_xz(tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]) -> None:
    trace, outages = tmp_path / f"t.swf{ending}", tmp_path / f"o.csv{ending}"
    trace.write_bytes(compress(SWF.encode()))
    outages.write_bytes(compress(b"node,down_s,up_s\n0,1,2\n"))
    workload = read_trace(trace)
    assert (len(workload), workload.name, workload.machine_nodes) == (1, "t", 4)
    assert read_outages(outages).node.tolist() == [0]


def test_commas_of_fields_in_a_log_separated_by_commas(write_trace: Write) -> None:
    path = write_trace(
        "JobID,Submit,Start,End,Elapsed,State,AllocNodes,AllocTRES,NodeList",
        "1,2024-02-28T23:00:00,2024-02-28T23:30:00,2024-02-29T00:30:00,01:00:00,COMPLETED,2,billing=8,cpu=8,mem=16G,node=2,n[1,3]",
        "2,2024-02-29T00:00:00,2024-02-29T00:30:00,2024-03-01T00:30:00,1-00:00:00,COMPLETED,2,cpu=8,gres/gpu=2,node=2,n[1-2]",
        "3,2023-02-29T00:00:00,2024-02-29T00:30:00,2024-03-01T00:30:00,1-00:00:00,COMPLETED,2,cpu=8,node=2,n[1-2]",
        "4_[1,3,5%2],2024-02-29T00:00:00,Unknown,Unknown,00:00:00,PENDING,2,,None assigned",
        name="commas.sacct",
    )
    workload = read_trace(path)
    report = report_of(workload)
    assert workload.frame["run_s"].tolist() == [3600, 86_400]
    assert workload.frame["nodes"].tolist() == [2, 2]
    assert workload.frame["gpus"].tolist() == [0, 2]
    assert (report.counts["damaged lines"], report.counts["still waiting"]) == (1, 1)
    assert "2023-02-29" in report.examples[0]
    assert any("4 to 2" in remark for remark in remarks(workload))


def test_a_table_with_dates_names_and_jobs_without_gpus(write_trace: Write, command_line: Callable[..., Finished]) -> None:
    path = write_trace(
        "job_id,user,vc,gpu_num,state,submit_time,start_time,end_time,duration",
        "1,u1,vcA,8,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:05:00,2020-04-01 11:05:00,1:00:00",
        "2,u2,vcA,0,COMPLETED,2020-04-01 10:10:00,2020-04-01 10:10:00,2020-04-01 10:20:00,0:10:00",
        "3,u3,vcB,1,FAILED,2020-04-01 10:10:00,2020-04-01 10:10:00,2020-04-01 10:10:03,0:00:03",
        "4,u3,vcB,1,CANCELLED,2020-04-01 10:10:00,None,2020-04-01 10:20:00,",
        name="table.csv",
    )
    fields = {"job": "job_id", "submit_s": "submit_time", "nodes": "gpu_num", "user": "user", "partition": "vc"}
    both = {"start_s": "start_time", "end_s": "end_time"}
    workload = read_csv(path, columns={**fields, **both, "status": "state"})
    assert workload.provenance.dropped == {"of size 0": 1, "never started": 1}
    frame = workload.frame
    for name, values in {"job": [1, 3], "submit_s": [0, 600], "run_s": [3600, 3], "wait_s": [300, 0], "status": [1, 0]}.items():
        assert frame[name].tolist() == values
    assert [workload.names["user"][number - 1] for number in frame["user"]] == ["u1", "u3"]
    assert [part.name for part in workload.split("partition")] == ["table.csv partition vcA", "table.csv partition vcB"]
    durations = read_csv(path, columns={**fields, "start_s": "start_time", "run_s": "duration"})
    assert durations.frame["run_s"].tolist() == [3600, 3]
    option = ",".join(f"{field}={column}" for field, column in {**fields, **both}.items())
    finished = command_line("run", "--trace", path, "--columns", option, "--nodes", 8, "--policy", "fcfs", "--json")
    assert finished.code == 0
    assert json.loads(finished.out)[0]["jobs"] == 2
    for wrong in ("submit_s", "submit_s=", "=x", "submit_s=a,,nodes=b"):
        refused = command_line("trace", "info", path, "--columns", wrong)
        assert refused.code != 0
        assert refused.err.startswith("clustermodel: error: --columns: ")


def test_a_table_of_dates_that_are_none(write_trace: Write) -> None:
    path = write_trace("s,n,r", "2020-04-01 10:00:00,1,5", "2020-02-30 10:00:00,1,5", name="t.csv")
    with pytest.raises(TraceError, match=r"t\.csv:3: s: '2020-02-30 10:00:00' is not allowed; it must be a number, or a date"):
        read_csv(path, columns={"submit_s": "s", "nodes": "n", "run_s": "r"})


def test_node_events_of_slurm_are_outages_and_open_ones_have_no_end(write_trace: Write) -> None:
    path = write_trace(
        "NodeName|TimeStart|TimeEnd|State|Reason|User",
        "cn07|2024-03-01T10:00:00|2024-03-01T12:30:00|DOWN*|Not responding|root(0)",
        "cn[11-12]|2024-03-02T09:00:00|Unknown|DRAIN|bad DIMM|admin(1000)",
        "|2024-03-02T09:00:00|2024-03-02T10:00:00||Cluster registered TRES|slurm(64030)",
        name="events.txt",
    )
    outages = read_outages(path)
    assert outages.nodes == 3
    assert outages.node.tolist() == [0, 1, 2]
    assert outages.down_s.tolist() == [0, 82_800, 82_800]
    assert outages.up_s[0] == 9000
    assert outages.dropped == {"events of the whole cluster": 1}
    jobs = Workload.from_frame(pd.DataFrame({"submit_s": [0.0, 90_000.0], "nodes": [1, 1], "run_s": [2e5, 1.0]}))
    run = Scenario(machine=Machine(nodes=4, failures=outages), workload=jobs, policy="fcfs").run()
    end_s = 82_800 + 200_000  # the first job starts again when its node goes down
    assert run.jobs["end_s"].max() == end_s
    down_node_s = 9000 + 2 * (end_s - 82_800)
    assert run.ledger.frame.loc["down", "total_node_s"] == down_node_s


def test_recorded_columns_of_a_log_are_in_the_job_table(write_trace: Write) -> None:
    times = "2025-03-03T08:00:00|2025-03-03T08:10:00|2025-03-03T08:20:00|00:10:00|COMPLETED"
    path = write_trace(
        "JobID|Partition|Account|QOS|Submit|Start|End|Elapsed|State|AllocNodes|AllocTRES",
        f"7|gpu|phys|high|{times}|2|cpu=8,gres/gpu=4,node=2",
        f"3|cpu|chem|low|{times}|1|cpu=4,node=1",
        f"5|gpu|chem|low|{times}|1|cpu=4,node=1",
        name="jobs.sacct",
    )
    workload = read_trace(path)
    run = Scenario(machine=Machine(nodes=4), workload=workload, policy="fcfs").run()
    jobs = run.jobs.set_index("job")
    assert jobs["partition"].astype(str).to_dict() == {3: "cpu", 5: "gpu", 7: "gpu"}
    assert jobs["qos"].astype(str).to_dict() == {3: "low", 5: "low", 7: "high"}
    assert jobs["gpus"].to_dict() == {3: 0, 5: 0, 7: 4}
    assert jobs["recorded_wait_s"].tolist() == [600, 600, 600]
    assert jobs["wait_s"].tolist() == [0, 0, 0]
    assert run.by_group("partition")["jobs"].to_dict() == {"cpu": 1, "gpu": 2}
    assert run.by_group("account")["jobs"].to_dict() == {"phys": 1, "chem": 2}
    two = Scenario(machine=Machine(nodes=4), workload=[workload, workload], policy="fcfs").run()
    assert two.by_group("partition")["jobs"].to_dict() == {"cpu": 2, "gpu": 4}


@pytest.mark.parametrize("indent", [None, 2])
def test_the_json_of_sacct(tmp_path: Path, indent: int | None) -> None:
    unset = {"set": False, "infinite": False, "number": 0}

    def job(number: int, **changes: object) -> dict[str, object]:
        return {
            "job_id": number,
            "name": "a | b",
            "user": "u",
            "partition": "p",
            "nodes": "n[1-2]",
            "allocation_nodes": 2,
            "state": {"current": ["COMPLETED"]},
            "array": {"job_id": 0, "task_id": unset},
            "required": {"CPUs": 8, "memory_per_node": {"set": True, "infinite": False, "number": 4096}},
            "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 2}]},
            "time": {
                "elapsed": 3600,
                "start": 1_700_000_400,
                "end": 1_700_004_000,
                "submission": 1_700_000_000,
                "suspended": 0,
                "limit": {"set": True, "infinite": False, "number": 120},
            },
            **changes,
        }

    task = {"job_id": 40, "task_id": {"set": True, "infinite": False, "number": 0}}
    jobs = [job(41), job(42, array=task, nodes="n[3-4]"), job(43, state={"current": ["PENDING"]}), {}]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"meta": {"plugin": {"type": "openapi/slurmdbd"}}, "jobs": jobs}, indent=indent))
    workload = read_trace(path)
    frame = workload.frame
    assert frame["job"].tolist() == [41, 42]
    columns = ["nodes", "cores", "gpus", "wait_s", "run_s", "estimate_s", "memory_gib"]
    assert frame[columns].to_numpy().tolist() == [[2, 8, 2, 400, 3600, 7200, 4]] * 2
    assert workload.names["job_name"] == ("a | b",)
    for text, message in (('{"meta": {}, "jobs": 3}', "no list 'jobs'"), ('{"meta": {}, "jobs": [', "not readable as JSON")):
        path.write_text(text)
        with pytest.raises(TraceError, match=message):
            read_trace(path)


def arrays(*records: str) -> list[str]:
    times = "2021-05-06T10:00:00|2021-05-06T10:10:00|2021-05-06T11:10:00|01:00:00|COMPLETED|1"
    waiting = "2021-05-06T10:00:00|Unknown|Unknown|00:00:00|PENDING|1"
    return [
        "JobID|Submit|Start|End|Elapsed|State|AllocNodes",
        *(f"{one}|{waiting if '[' in one else times}" for one in records),
    ]


@pytest.mark.parametrize("others", [0, 100])
def test_limits_of_job_arrays_are_kept_and_reported(write_trace: Write, others: int) -> None:
    more = map(str, range(1000, 1000 + others))
    path = write_trace(
        *arrays("100_[3-4%2]", "100_1", "100_2", "200_[1,3,...%500]", "300_[1-4]", "300_5", *more), name="arrays.sacct"
    )
    workload = read_trace(path)
    assert sorted(workload.frame["array_limit"]) == [*[-1] * others, -1, 2, 2]
    assert [remark for remark in remarks(workload) if remark.startswith("job arrays")] == [
        "job arrays: 2 arrays with a limit (%) of tasks that run at a time, 100 to 2, 200 to 500; the waits of their tasks "
        "(2 jobs) are not all the scheduler's"
    ]
    run = Scenario(machine=Machine(nodes=4), workload=workload, policy="fcfs").run()
    assert sorted(run.jobs["array_limit"]) == [*[-1] * others, -1, 2, 2]
    assert sorted(workload.frame["array"]) == [*[-1] * others, -1, 100, 100]
    assert "array_limit" not in read_trace(write_trace(*arrays("300_[1-4]", "300_5"), name="without.sacct")).frame


def test_limits_of_arrays_are_those_of_their_cluster_and_count_for_tasks_in_one_record(write_trace: Write) -> None:
    times = "2021-05-06T10:00:00|2021-05-06T10:10:00|2021-05-06T11:10:00|01:00:00|COMPLETED|1"
    header = "JobID|Cluster|Submit|Start|End|Elapsed|State|AllocNodes"
    path = write_trace(header, f"100_[1-4%2]|a|{times}", f"100_5|b|{times}", name="clusters.sacct")
    assert read_trace(path).frame["array_limit"].tolist() == [2, 2, 2, 2]
    assert "array_limit" not in read_trace(path, cluster="b").frame


def test_limits_of_arrays_in_the_json_of_sacct(tmp_path: Path) -> None:
    time = {"elapsed": 3600, "start": 1_700_000_400, "end": 1_700_004_000, "submission": 1_700_000_000}
    limits = {"max": {"running": {"tasks": 2}}}
    job = {"job_id": 41, "allocation_nodes": 2, "state": {"current": ["COMPLETED"]}, "time": time}
    array = {"job_id": 40, "task_id": {"set": True, "infinite": False, "number": 7}, "limits": limits}
    waiting = {"job_id": 50, "task_id": {"set": False, "infinite": False, "number": 0}, "task": "1-4", "limits": limits}
    path = tmp_path / "arrays.json"
    path.write_text(
        json.dumps({"meta": {}, "jobs": [{**job, "array": array}, {"array": waiting, "state": {"current": ["PENDING"]}}]})
    )
    workload = read_trace(path)
    assert workload.frame["array_limit"].tolist() == [2]
    assert any("2 arrays with a limit (%)" in remark and "40 to 2, 50 to 2" in remark for remark in remarks(workload))


def lsf(
    job: int, *, hosts: str = '2 "h1" "h1"', index: int = 0, start: int = 1_000_010, exit_info: int = 0, **texts: str
) -> str:
    """Return a record of LSF that ends at 1,000,110; the job was submitted at 1,000,000 and asked for two slots."""
    name, command = texts.get("name", ""), texts.get("command", "./x")
    used = " ".join(["-1"] * 19)
    return (
        f'"JOB_FINISH" "10.1" 1000110 {job} 500 33 2 1000000 0 0 {start} "ann" "long" "" "" "" "sub" "/p" "" "" "" "1.2" '
        f'1 "h9" {hosts} 32 60.0 "{name}" "{command}" {used} "" "proj" 256 2 "" "" {index} 49 0 "" "" "" "" 0 "" {exit_info} ""'
    )


def test_records_of_lsf(write_trace: Write, command_line: Callable[..., Finished]) -> None:
    path = write_trace(
        lsf(1, hosts='4 "h1" "h1" "h2" "h2"'),
        lsf(2, hosts='2 "3*h2" "h3"', exit_info=14, name='say ""hello"" to all'),
        lsf(3, start=0, hosts="0"),
        lsf(4, name="sweep[1-9]%3", index=7, hosts="0"),
        *lsf(5, command="a\nb").split("\n"),
        '"JOB_RESIZE" "10.1" 1000000 5 0',
        lsf(6).replace(" 1000110 ", " 1000010 "),
        lsf(7).replace(" 33 2 ", " 33 two "),
        lsf(8)[:120],
        lsf(9).replace('"ann"', '"ann'),
        "",
        lsf(10, hosts='90 "h1"'),
        "no record",
        name="lsb.acct",
    )
    workload = read_trace(path)
    report, frame = report_of(workload), workload.frame
    assert frame["job"].tolist() == [1, 2, 4, 5]
    assert frame["nodes"].tolist() == frame["cores"].tolist() == [4, 4, 2, 2]
    assert frame["node_count"].tolist() == [2, 2, -1, 1]
    assert set(frame["run_s"]) == set(frame["estimate_s"]) == {100}
    assert set(frame["wait_s"]) == {10}
    assert frame["status"].tolist() == [0, 5, 0, 0]
    assert frame["array_limit"].tolist() == [-1, -1, 3, -1]
    assert frame["job_name"].astype(object).fillna("").tolist() == ["", 'say "hello" to all', "sweep[1-9]%3", ""]
    assert (workload.names["user"], workload.names["queue"], workload.names["account"]) == (("ann",), ("long",), ("proj",))
    assert report.counts == {
        "jobs": 4, "damaged lines": 6, "never started": 1, "line breaks inside fields": 1, "records 'JOB_RESIZE'": 1,
        "with run time zero": 1,
    }  # fmt: skip
    assert [example.partition("lsb.acct:")[2] for example in report.examples] == [
        "9: field numProcessors: 'two' is not a whole number",
        "10: 26 fields; the record ends before the last of its 2 hosts",
        "11: a text without a closing quotation mark",
        "13: 66 fields; the record ends before the last of its 90 hosts",
        "14: it is no accounting record of LSF",
    ]
    assert read_lsf(path, processors_from="requested").frame["nodes"].tolist() == [2, 2, 2, 2]
    assert read_lsf(path, unit="nodes").frame["nodes"].tolist() == [2, 2, 1]
    imported = command_line("trace", "import", path, "-o", path.with_name("out.swf"))
    assert imported.code == 0
    assert "unit: cores, because slots are what the scheduler allocates" in imported.out + imported.err


def test_a_file_of_lsf_without_records_of_jobs(write_trace: Write) -> None:
    path = write_trace('"JOB_NEW" "10.1" 1000000 5 0 "x"', name="lsb.events")
    with pytest.raises(TraceError, match=r"no usable job: 1 line: 1 record 'JOB_NEW'"):
        read_trace(path)
    path = write_trace("nothing", name="other")
    with pytest.raises(TraceError, match="no records"):
        read_lsf(path)
