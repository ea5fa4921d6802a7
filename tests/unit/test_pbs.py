"""Accounting records of PBS: every record is used or counted by its type, and resources are read in every notation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clustermodel import SpecificationError, TraceError, Workload, read_pbs
from clustermodel.workload.pbs import resources_of
from tests.shared_data import SHARED

LOGS = Path(__file__).resolve().parents[1] / "logs"


def counts(workload: Workload) -> dict[str, int]:
    report = workload.provenance.report
    assert report is not None
    assert sum(report.counts.values()) == report.lines
    return dict(report.counts)


def test_records_of_torque() -> None:
    workload = read_pbs(LOGS / "torque.pbs")
    assert counts(workload) == {
        "jobs": 5,
        "start records (S)": 3,
        "queue records (Q)": 2,
        "damaged lines": 2,
        "records of whole job arrays": 1,
        "deletion records (D)": 1,
        "never started": 1,
        "abort records (A)": 1,
        "records of unknown type 'X'": 1,
        "blank lines": 1,
    }
    frame = workload.frame.set_index("job")
    assert frame.loc[11, ["nodes", "cores", "run_s", "estimate_s", "wait_s", "memory_gib"]].tolist() == [
        2,
        4,
        1800,
        3600,
        10,
        2,
    ]
    assert frame.loc[12, ["nodes", "cores", "gpus", "status"]].tolist() == [3, 16, 2, 5]
    assert frame.loc[18, ["nodes", "cores"]].tolist() == [2, 3]
    # Job 14 was rerun after 10 minutes, and waits for 10 more.
    assert frame.loc[[14, 19], "run_s"].tolist() == [600, 1200]
    assert frame.loc[[14, 19], "requeues"].tolist() == [0, 1]
    assert frame.loc[[14, 19], "wait_s"].tolist() == [2400, 600]
    assert workload.names["user"] == ("ann", "bob")
    followers = read_pbs(LOGS / "torque.pbs", feedback=True).frame.set_index("job")
    assert followers.loc[[14, 19], "preceding"].tolist() == [-1, 14]
    assert followers.loc[19, "think_time_s"] == 0


def test_records_of_pbs_professional() -> None:
    workload = read_pbs(LOGS / "pbspro.pbs")
    assert counts(workload)["jobs"] == 4
    frame = workload.frame.set_index("job")
    assert frame.loc[21, ["nodes", "cores", "run_s", "suspended_s", "memory_gib"]].tolist() == [2, 16, 1800, 600, 4]
    assert frame.loc[21, "account"] == "climate"
    assert frame.loc[[22, 24], "requeues"].tolist() == [0, 1]
    assert frame.loc[[22, 24], "gpus"].tolist() == [1, 2]
    assert frame.loc[23, ["nodes", "cores", "gpus"]].tolist() == [1, 48, 4]


@pytest.mark.parametrize(
    ("values", "nodes", "cores", "gpus"),
    [
        ({"exec_host": "a/0+a/1+b/7"}, 2, 3, 0),
        ({"exec_host": "a/0-3+b/0,2,4-7"}, 2, 10, 0),
        ({"exec_host": "a/0*13+b/0*13"}, 2, 26, 0),
        ({"exec_host": "a/0*0", "exec_vnode": "(a[0]:ncpus=24:ngpus=2:mem=1gb+a[1]:ncpus=24)"}, 1, 48, 2),
        ({"exec_vnode": "(a:ncpus=2)+(b:ncpus=2)"}, 2, 4, 0),
        ({"exec_host": "a/0", "exec_gpus": "a-gpu/0+a-gpu/1"}, 1, 1, 2),
    ],
)
def test_allocated_resources(values: dict[str, str], nodes: int, cores: int, gpus: int) -> None:
    resources = resources_of(values)
    assert (*resources.allocated, resources.gpus) == (nodes, cores, gpus)


@pytest.mark.parametrize(
    ("values", "nodes", "cores", "gpus"),
    [
        ({"nodes": "2:ppn=4+1:ppn=8"}, 3, 16, 0),
        ({"nodes": "1:ppn=28:gpus=1:default", "nodect": "1", "ncpus": "1"}, 1, 28, 1),
        ({"nodes": "node01+node02:ppn=4#excl"}, 2, 5, 0),
        ({"select": "5:ncpus=13:ngpus=1+1:ncpus=4"}, 6, 69, 5),
        ({"nodect": "1:ppn=24:gpu=4:reqmem=128849018880:gpu"}, 1, 24, 4),
        ({"ncpus": "12", "nodect": "2", "ngpus": "3"}, 2, 12, 3),
        ({"ncpus": "16", "mem": "4gb"}, 1, 16, 0),
    ],
)
def test_requested_resources(values: dict[str, str], nodes: int, cores: int, gpus: int) -> None:
    resources = resources_of({f"Resource_List.{name}": value for name, value in values.items()})
    assert (*resources.requested, resources.gpus) == (nodes, cores, gpus)


def test_a_value_that_cannot_be_read_is_named(write_trace: Callable[..., Path]) -> None:
    times = "ctime=1740988800 start=1740988810 end=1740990000 Resource_List.nodect=1"
    path = write_trace(
        f"03/03/2025 08:30:10;E;1.srv;{times}",
        f"03/03/2025 08:30:10;E;2.srv;{times} Resource_List.walltime=abc",
        f"03/03/2025 08:30:10;E;3.srv;{times} resources_used.walltime=-1",
        name="log",
    )
    report = read_pbs(path).provenance.report
    assert report is not None
    assert report.examples == (
        f"{path}:2: field Resource_List.walltime: 'abc' is not a duration",
        f"{path}:3: field resources_used.walltime: '-1' is not a duration",
    )


def test_what_is_no_accounting_log_is_refused_in_one_line(write_trace: Callable[..., Path]) -> None:
    with pytest.raises(TraceError, match=r"log: it has no accounting records of PBS, as PBS_HOME/server_priv/accounting"):
        read_pbs(write_trace("a", "b", name="log"))
    with pytest.raises(TraceError, match=r"log: no usable job: 1 line: 1 queue record \(Q\)"):
        read_pbs(write_trace("03/03/2025 08:00:00;Q;1.srv;queue=batch", name="log"))
    with pytest.raises(SpecificationError, match="processors_from"):
        read_pbs(LOGS / "torque.pbs", processors_from="both")


def test_a_real_log() -> None:
    path = SHARED / "traces" / "sacct" / "pbs-accounting.log"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the logs are not part of the repository")
    workload = read_pbs(path, unit="cores")
    assert counts(workload) == {"jobs": 9}
    assert workload.column("nodes").tolist() == [32, 32, 4, 65, 12, 28, 28, 28, 48]
    assert workload.column("gpus").tolist() == [0, 0, 0, 0, 0, 1, 4, 2, 4]
