"""Records of sacct read together, or each alone: the same jobs, counts, messages and order."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import ClusterModelError, read_sacct
from clustermodel.workload import log_file, sacct

FIELDS = {
    "JobID": ["{0}", "{0}", "{0}_{0}", "{0}_7", "{0}.batch", "{0}_[1-3]", "{0}_[x]", "{0}+1", "0", "007", "²", "a|b"],
    "JobIDRaw": ["{0}", "", "1{0}", "{0}.batch", "x", "٣", "1234567890123456789"],
    "Cluster": ["oak", "", "elm"],
    "User": ["ann", "", "Zoë"],
    "UID": ["1001", ""],
    "Submit": ["2025-03-03T08:00:00", "2025-03-03T07:59:59", "Unknown", "1741000000", "2025-03-03T08:00:60",
               "2025-02-30T08:00:00", "2025-03-30T01:30:00", "1970-01-01T05:00:00", "2025-03-03T0a:00:00",
               "2025-03-03 08:00:00", "2025-03-03T08x00x00"],
    "Eligible": ["2025-03-03T08:00:00", "2025-03-03T08:05:00", "", "soon"],
    "Start": ["2025-03-03T08:10:00", "2025-03-03T08:10:00", "Unknown", "None", "2025-03-03T08:10:00Z", "2025-10-26T02:10:00",
              "2025-10-26T02:50:00.5", "0001-01-01T00:00:00", "2025-03-03T08:10:٣٣"],
    "End": ["2025-03-03T08:20:00", "2025-03-03T08:20:00", "2025-03-03T09:20:00", "2025-03-04T08:20:00", "Unknown", "",
            "2025-10-26T02:40:00", "9999-12-31T23:59:59", "x"],
    "ElapsedRaw": ["600", "600", "", "0", "4294967295", "599.5", "-1", "x", "99999999999"],
    "Elapsed": ["00:10:00", "", "0", "1-00:00:00", "soon"],
    "Suspended": ["00:00:00", "", "00:05:00", "1.5", "x"],
    "State": ["COMPLETED", "COMPLETED", "FAILED", "CANCELLED by 7", "NODE_FAIL", "RUNNING", "PENDING", "FOO", "", "OUT_OF_ME+"],
    "AllocNodes": ["2", "", "0", "1.5K", "4294967297"],
    "AllocCPUS": ["8", "", "999999999999G"],
    "ReqNodes": ["4", ""],
    "ReqCPUS": ["9", "", "0"],
    "ReqMem": ["16G", "4Gn", "2000Mc", "0n", "", "?"],
    "AllocTRES": ["", "", "cpu=8,mem=8G,node=2,gres/gpu=3", "cpu=4", "node=3", "cpu=99999999999"],
    "ReqTRES": ["", "gpu:2", "cpu=4,mem=2G,node=1", "gres/gpu:a100=1"],
    "ReqGRES": ["", "gpu:1", "gpu:tesla:2(S:0-1)"],
    "TimelimitRaw": ["20", "", "UNLIMITED", "1.5", "x"],
    "Timelimit": ["00:20:00", "Partition_Limit", "", "x"],
    "Restarts": ["", "0", "2", "99999999999"],
    "NodeList": ["cn[1-2]", "", "None assigned", " cn3 ", "cn3"],
    "JobName": ["a", "", "b|c", "日本語"],
}  # fmt: skip
NAMES = list(FIELDS)
CHANGES = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 11), max_size=3)
USUAL = [{}, {}, {}, {"State": 3}, {"Start": 2}, {"State": 5}, {"JobID": 4}]
RECORDS = st.lists(st.one_of(st.sampled_from(USUAL), CHANGES), min_size=1, max_size=40)
OPTIONS = st.sampled_from(
    [{}, {"timezone": "Europe/Paris"}, {"timezone": "America/New_York"}, {"processors_from": "requested"},
     {"use_estimates": False}, {"feedback": True}, {"unit": "cores"}, {"unit": "gpus"}]
)  # fmt: skip
BETWEEN = st.sampled_from(["", "", "", "\n", "slurm_load: error\n", "x\n", "a|b\n"])


def record(number: int, changes: dict[str, int], fields: list[str]) -> str:
    values = [FIELDS[name][changes.get(name, 0) % len(FIELDS[name])].format(number) for name in fields]
    return "|".join(values)


def outcome(path: Path, options: dict[str, object]) -> object:
    """Return jobs, names, counts in order and remarks, or the message of the error."""
    try:
        read = read_sacct(path, **options)  # type: ignore[arg-type]
    except ClusterModelError as problem:
        return str(problem)
    report = read.provenance.report
    assert report is not None
    provenance = (list(report.counts.items()), report.texts(), list(read.provenance.repaired.items()), read.provenance.header)
    return list(read.rows()), read.frame.to_csv(), read.names, read.machine_nodes, provenance


def one_by_one(path: Path, options: dict[str, object]) -> object:
    with mock.patch.object(sacct._Layout, "columns", return_value=None), mock.patch.object(sacct, "MOST_LINES", 1):
        return outcome(path, options)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=RECORDS,
    repeated=st.sampled_from([1, 2, 20]),
    dropped=st.sets(st.sampled_from(NAMES[1:]), max_size=4),
    between=st.tuples(st.integers(0, 30), BETWEEN),
    ends=st.sampled_from(["\n", "\r\n", "|\n"]),
    options=OPTIONS,
)
def test_a_log_reads_by_columns_as_one_by_one(
    tmp_path: Path,
    records: list[dict[str, int]],
    repeated: int,
    dropped: set[str],
    between: tuple[int, str],
    ends: str,
    options: dict[str, object],
) -> None:
    fields = [name for name in NAMES if name not in dropped]
    lines = ["|".join(fields)]
    lines += [record(number, changes, fields) for number, changes in enumerate(records * repeated, 5)]
    text = "".join(line + ends for line in lines[: between[0] + 1]) + between[1]
    text += "".join(line + ends for line in lines[between[0] + 1 :])
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8", newline="")
    assert outcome(path, options) == one_by_one(path, options)


def plain(jobs: int) -> str:
    fields = [name for name in NAMES if name != "UID"]
    return "|".join(fields) + "\n" + "".join(record(number, {}, fields) + "\n" for number in range(5, jobs + 5))


def test_plain_records_are_read_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sacct._Reader, "_assemble", lambda *_: pytest.fail("a record was put together"))
    monkeypatch.setattr(log_file, "_CHUNK", 1000)
    (path := tmp_path / "log").write_text(plain(700))
    read = read_sacct(path)
    assert read.column("id").tolist() == list(range(5, 705))
    assert set(read.column("run").tolist()) == {600_000_000}


@pytest.mark.parametrize("end", ["x" * (log_file.LONGEST_LINE + 1), "|" * log_file.LONGEST_LINE + "\n"])
def test_a_line_that_is_too_long_is_named(tmp_path: Path, end: str) -> None:
    (path := tmp_path / "log").write_text(plain(700) + end)
    if end.endswith("\n"):
        assert outcome(path, {}) == one_by_one(path, {})
    else:
        with pytest.raises(ClusterModelError, match=r"log:702: the line has more than 1,048,576 characters"):
            read_sacct(path)
