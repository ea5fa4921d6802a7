"""Figures and files of a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from clustermodel import Job, Machine, OutputError, Scenario, SpecificationError, Workload, synthetic_workload
from clustermodel.report.plots import busy_nodes, comparison, save, waiting_jobs


def test_figures_have_units_and_average_to_the_ledger(tmp_path: Path) -> None:
    result = Scenario(machine=Machine(nodes=32), workload=synthetic_workload(jobs=200, nodes=32), policy="easy").run()
    edges = np.linspace(0, result.summary().horizon_s, 7)
    assert busy_nodes(result, edges).mean() / 32 == pytest.approx(result.ledger.utilization, rel=1e-12)
    # Little's law over the whole horizon, which holds exactly because the queue is empty at both ends
    waiting = waiting_jobs(result, edges).mean()
    assert waiting == pytest.approx(result.jobs["wait_s"].sum() / result.summary().horizon_s, rel=1e-9)
    figures = [result.plot.utilization(), result.plot.gantt(first=3, last=40), comparison([result])]
    for number, figure in enumerate(figures):
        assert isinstance(figure, Figure)
        assert all(axes.get_ylabel() for axes in figure.axes)
        assert figure.axes[-1].get_xlabel().endswith(")")  # the unit
        save(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SpecificationError, match="first: job 999 is not in this run"):
        result.plot.gantt(first=999)
    with pytest.raises(SpecificationError, match="no job ran between"):
        result.plot.gantt(first=40, last=3)
    with pytest.raises(OutputError, match="cannot be written"):
        save(figures[0], tmp_path / "nowhere" / "a.png")
    with pytest.raises(OutputError, match=r"format '\.xyz' is unknown"):
        save(figures[0], tmp_path / "a.xyz")


def test_evalys_columns_stand_in_the_csv_with_interval_sets(tmp_path: Path) -> None:
    jobs = [
        Job(id=1, nodes=3, submit_s=0, run_s=10),
        Job(id=2, nodes=1, submit_s=0, run_s=20),
        Job(id=3, nodes=9, submit_s=0, run_s=1),
    ]
    result = Scenario(machine=Machine(nodes=4), workload=Workload.from_jobs(jobs), policy="fcfs").run()
    result.to_csv(tmp_path / "jobs.csv")
    header, *rows = (tmp_path / "jobs.csv").read_text().splitlines()
    assert header == (
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources"
    )
    assert rows[0].endswith(",0,10,10,0,10,1,0-2")
    assert rows[1].endswith(",0,20,20,0,20,1,3")
    assert len(rows) == 2
    with pytest.raises(SpecificationError, match="layout: 'xml' is not allowed; it must be one of evalys, jobs"):
        result.to_csv(tmp_path / "jobs.xml", layout="xml")
