"""The recorded schedule in a report."""

from pathlib import Path

import pytest

from clustermodel import Machine, Study
from clustermodel.experiment.store import Store
from clustermodel.report.data import Replications
from clustermodel.report.html import FinishedRuns
from tests.unit.test_recorded_placements import GANGS, PREEMPTED, Write, hours, log_of

pytestmark = pytest.mark.long


def test_a_report_has_the_recorded_run(write_trace: Write, tmp_path: Path) -> None:
    workloads = {"low": log_of(write_trace, *PREEMPTED), "gangs": log_of(write_trace, *GANGS)}
    policies = ["ss", "fcfs"]
    study = Study.grid(name="s", machines={"m": Machine(nodes=4)}, workloads=workloads, policies=policies)
    study.run(tmp_path / "out", workers=1)
    with Store.read(tmp_path / "out") as store:
        table = store.table()
        section = FinishedRuns(store, table, Replications(table)).viewer([])
        assert store.verify() == []
        recorded = store.recorded(table.frame["run"].iloc[0])
    assert hours(recorded) == hours(workloads["low"].recorded_placements)
    assert [name.split(" · ")[0] for _, name in section.controls[0].options] == ["recorded", "ss", "fcfs"] * 2
    assert [control.value for control in section.controls] == ["0", "1"]
