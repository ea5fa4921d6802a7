"""Accounting records of Grid Engine: the rules of accounting(5), field by field."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clustermodel import Machine, Scenario, TraceError, Workload, read_sge, read_trace
from clustermodel.logs.sge import RECORD
from clustermodel.logs.trace_file import require_log
from tests.shared_data import SHARED

LOG = Path(__file__).resolve().parents[1] / "logs" / "sge.acct"
REPORTED = {"jobs": 7, "comment lines": 3, "steps": 1, "never started": 1, "damaged lines": 1}


def record(number: int = 1, **fields: object) -> str:
    """Return a record of one slot that waits for a minute and runs for ten."""
    values = {
        "queue": "all.q", "host": "n1", "group": "g", "user": "u", "name": "job", "number": number, "account": "sge",
        "priority": 0, "submit": 1_600_000_000, "start": 1_600_000_060, "end": 1_600_000_660, "failed": 0, "status": 0,
        "wallclock": 600, "usage": ":".join(["0"] * 17), "project": "NONE", "department": "d", "environment": "NONE",
        "slots": 1, "task": 0, "cpu": 1.0, "mem": 0.0, "io": 0.0, "category": "NONE", "iow": "0.000000", "part": "NONE",
        "maxvmem": "1.0", "arid": 0, "ar_submission": 0,
    }  # fmt: skip
    assert fields.keys() <= values.keys()
    return ":".join(map(str, {**values, **fields}.values()))


@pytest.fixture
def read(write_trace: Callable[..., Path]) -> Callable[..., Workload]:
    """Return what reads records, recognised by their content."""
    return lambda *records, **options: read_trace(write_trace(*records, name="accounting"), **options)


def test_what_becomes_of_each_record() -> None:
    workload = read_trace(LOG)
    assert workload.provenance.report is not None
    assert dict(workload.provenance.report.counts) == REPORTED
    frame = workload.frame.set_index("job")
    assert frame["nodes"].tolist() == frame["cores"].tolist() == [8, 1, 16, 16, 1, 1, 1]  # a node is a slot
    assert frame["run_s"].tolist() == [3600, 300, 1000, 1000, 100, 200, 60]
    assert frame["estimate_s"].tolist() == [7200, 3600, 1000, 1000, 100, 200, 60]
    assert frame["wait_s"].tolist() == [60, 100, 10, 10, 100, 100, 60]  # the second attempt waits from the end of the first
    assert frame["status"].tolist() == [1, 1, 0, 1, 0, 1, 1]
    assert frame["requeues"].tolist() == [0, 0, 0, 0, 0, 1, 0]
    assert frame["job_name"].tolist()[:3] == ["render", "a:b:c", "arr"]
    assert frame["account"].astype(object).fillna("").tolist() == ["", "proj7", "bio", "bio", "", "", ""]
    assert frame.index.tolist()[:3] == [501, 502, 503]
    assert not any("job number" in reason for reason in workload.provenance.repaired)  # tasks and attempts share theirs


@pytest.mark.parametrize("lines", [None, 1, 3])
def test_the_log_of_three_jobs(tmp_path: Path, lines: int | None) -> None:
    path = SHARED / "cases" / "sites" / "d06_sge.acct"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the cases are not part of the repository")
    if lines is not None:
        (tmp_path / "accounting").write_text("\n".join(path.read_text().splitlines()[1 : 1 + lines]))
        path = tmp_path / "accounting"
    assert require_log(path) == "sge"
    frame = read_sge(path).frame.iloc[: lines or 3]
    assert frame["nodes"].tolist() == [8, 1, 16][: lines or 3]
    assert frame["run_s"].tolist() == [3600, 300, 1000][: lines or 3]


@pytest.mark.parametrize(
    ("category", "estimate_s"),
    [
        ("-l h_rt=1200", 1200), ("-U x -l gpu=1,h_rt=00:20:00 -pe smp 4", 1200), ("-l s_rt=1200", 600), ("NONE", 600),
        ("-l h_rt=INFINITY", 600), ("-l cpu=24:00:00", 600), ("-l my_h_rt=5", 600), ("", 600),
    ],
)  # fmt: skip
def test_the_estimate_is_the_hard_limit_of_the_run_time(
    read: Callable[..., Workload], category: str, estimate_s: float
) -> None:
    workload = read(record(category=category))
    assert workload.frame["estimate_s"].tolist() == [estimate_s]
    assert read(record(category=category)).with_perfect_estimates().frame["estimate_s"].tolist() == [600]


@pytest.mark.parametrize("name", ["a:b", "1:2:3", "x:12:sge:0", "", "ä ö", ":", "7:8:9:1600000000:1600000000"])
def test_names_of_jobs_may_have_colons(read: Callable[..., Workload], name: str) -> None:
    workload = read(record(7, name=name), record(8))
    assert workload.column("id").tolist() == [7, 8]
    assert workload.names["job_name"][0] == (name or "job")


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({"start": 0, "end": 0, "failed": 7}, "never started"),
        ({"end": 1_600_000_060}, "with run time zero"),
        ({"submit": 0}, "without a submission time"),
        ({"end": 1_600_000_000}, "ending before their start"),
        ({"part": "3.n7", "submit": 0}, "steps"),
        ({"category": "-l h_rt=soon"}, "damaged lines"),
        ({"end": 99_999_999_999}, "damaged lines"),
        ({"slots": "many"}, "damaged lines"),
    ],
)
def test_records_that_are_no_jobs_are_counted(read: Callable[..., Workload], fields: dict[str, object], counted: str) -> None:
    workload = read(record(1), record(2, **fields))
    assert workload.provenance.report is not None
    assert dict(workload.provenance.report.counts) == {"jobs": 1, counted: 1}


@pytest.mark.parametrize(("failed", "status", "swf"), [(0, 0, 1), (0, 1, 0), (100, 137, 0), (37, 0, 0)])
def test_a_job_has_completed_if_nothing_failed(read: Callable[..., Workload], failed: int, status: int, swf: int) -> None:
    assert read(record(failed=failed, status=status)).column("status").tolist() == [swf]


def test_hosts_are_known_of_jobs_on_one_host(read: Callable[..., Workload]) -> None:
    log = record(1), record(2, environment="mpi", slots=32, host="n2"), record(3, host="n3")
    workload = read(*log, unit="nodes")
    assert workload.column("id").tolist() == [1, 3]  # of the job on several hosts the record names the first
    assert workload.recorded_placements["job"].tolist() == [1, 3]
    assert read(*log).machine_nodes == 34


def test_a_rescheduled_job_may_follow_its_attempt(read: Callable[..., Workload]) -> None:
    again = record(1, failed=25, status=99), record(1, start=1_600_000_700, end=1_600_000_760, wallclock=60)
    workload = read(*again, feedback=True)
    assert workload.column("preceding").tolist() == [-1, 1]
    jobs = Scenario(machine=Machine(nodes=1), workload=workload, policy="fcfs").run().jobs
    assert jobs["start_s"].tolist() == [0, 600]


def test_only_records_of_grid_engine_are_recognised(write_trace: Callable[..., Path]) -> None:
    assert RECORD.fullmatch(record())
    assert not RECORD.fullmatch(record(slots="x"))
    assert not RECORD.fullmatch("03/27/2015 00:06:27;E;25.b0;user=u4 queue=q3 ctime=1427422724")
    assert not RECORD.fullmatch("1 0 5 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1")
    with pytest.raises(TraceError, match="it has no accounting records of Grid Engine"):
        read_sge(write_trace("all.q:n1:g:u:job", name="accounting"))
