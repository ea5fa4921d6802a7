"""Figures and files of a result."""

import errno
import os
from collections.abc import Callable
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import clustermodel as cm
from clustermodel.figures.result_plots import comparison, means_over_time
from clustermodel.figures.style import save
from clustermodel.policies.interface import Setup
from clustermodel.text import files
from clustermodel.text.files import without_formulas
from tests.timeline.script import Script, migrate, start

SECOND = 1_000_000


def test_figures_have_units_and_average_to_the_ledger(tmp_path: Path) -> None:
    result = cm.Scenario(machine=cm.Machine(nodes=32), workload=cm.synthetic_workload(jobs=200, nodes=32), policy="easy").run()
    edges = np.linspace(0, result.summary().horizon_s, 7)
    means = means_over_time(result.states, 32, edges)
    assert means["busy"].mean() == pytest.approx(result.ledger.utilization, rel=1e-12)
    # Little's law over the whole horizon, which holds exactly because the queue is empty at both ends
    waiting = means["waiting"].mean()
    assert waiting == pytest.approx(result.jobs["wait_s"].sum() / result.summary().horizon_s, rel=1e-9)
    figures = [result.plot.utilization(), result.plot.gantt(first=3, last=40), comparison([result])]
    for number, figure in enumerate(figures):
        assert isinstance(figure, Figure)
        assert all(axes.get_ylabel() for axes in figure.axes)
        assert figure.axes[min(2, len(figure.axes) - 1)].get_xlabel().endswith(")")  # the unit
        save(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(cm.SpecificationError, match="first: job 999 is not in this run"):
        result.plot.gantt(first=999)
    with pytest.raises(cm.SpecificationError, match=r"no job ran \(first=40, last=3\)"):
        result.plot.gantt(first=40, last=3)
    with pytest.raises(cm.OutputError, match="cannot be written"):
        save(figures[0], tmp_path / "nowhere" / "a.png")
    with pytest.raises(cm.OutputError, match=r"format '\.xyz' is unknown"):
        save(figures[0], tmp_path / "a.xyz")


def test_evalys_columns_stand_in_the_csv_with_interval_sets(tmp_path: Path) -> None:
    jobs = [
        cm.Job(id=1, nodes=3, submit_s=0, run_s=10),
        cm.Job(id=2, nodes=1, submit_s=0, run_s=20),
        cm.Job(id=3, nodes=9, submit_s=0, run_s=1),
    ]
    result = cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    result.to_csv(tmp_path / "jobs.csv")
    header, *rows = (tmp_path / "jobs.csv").read_text().splitlines()
    assert header == (
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources"
    )
    seconds = {0: "0.000000", 1: "1.000000", 10: "10.000000", 20: "20.000000"}  # evalys fails where some are whole numbers
    for row, run, nodes in ((rows[0], 10, "0-2"), (rows[1], 20, "3")):
        times = ",".join(seconds[value] for value in (0, run, run, 0, run, 1))
        assert row.endswith(f",{seconds[run]},1,COMPLETED_SUCCESSFULLY,{times},{nodes}")
    assert len(rows) == 2
    with pytest.raises(cm.SpecificationError, match="layout: 'xml' is not allowed; it must be one of evalys, jobs"):
        result.to_csv(tmp_path / "jobs.xml", layout="xml")


def test_evalys_has_no_rows_for_nodes_shared_in_time(tmp_path: Path) -> None:
    result = cm.Scenario(machine=cm.Machine(nodes=64), workload=cm.synthetic_workload(jobs=50, nodes=64), policy="mbgs").run()
    with pytest.raises(cm.SpecificationError) as refused:
        result.to_csv(tmp_path / "jobs.csv")
    assert str(refused.value) == (
        "layout: 'evalys' is not allowed: its rows are gangs that have their nodes to themselves, and mbgs shares nodes in "
        "time; it must be 'jobs'"
    )
    assert not list(tmp_path.iterdir())
    result.to_csv(tmp_path / "jobs.csv", layout="jobs")


def evalys_rows(path: Path) -> list[tuple[object, ...]]:
    """Return what a file for evalys says of each placement."""
    table = pd.read_csv(path)
    times = ["submission_time", "starting_time", "finish_time", "waiting_time", "execution_time", "turnaround_time"]
    columns = ["job_id", *times, "allocated_resources", "success", "final_state"]
    return list(table[columns].astype({"allocated_resources": str}).itertuples(index=False, name=None))


def test_evalys_has_a_row_for_each_run_attempt(tmp_path: Path) -> None:
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=2, submit_s=0, run_s=10)])
    result = cm.Scenario(machine=cm.Machine(nodes=2), workload=jobs, policy=StoppedOnce()).run()
    result.to_csv(tmp_path / "jobs.csv")
    assert evalys_rows(tmp_path / "jobs.csv") == [
        (1, 0, 0, 1, 0, 1, 1, "0-1", 0, "COMPLETED_KILLED"),
        (1, 1, 1, 11, 0, 10, 10, "0-1", 1, "COMPLETED_SUCCESSFULLY"),
    ]
    assert pd.read_csv(tmp_path / "jobs.csv")["stretch"].fillna(0).tolist() == [0, 1.1]


def test_evalys_has_a_row_for_each_place_of_a_gang_that_migrates(tmp_path: Path) -> None:
    script = Script({0: [start(1)], 10: [migrate({1: (2, 4)})]})
    machine = cm.Machine(nodes=4, checkpointing=cm.Checkpointing(checkpoint_s=4, restart_s=2))
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=2, submit_s=0, run_s=30)])
    cm.Scenario(machine=machine, workload=jobs, policy=script).run().to_csv(tmp_path / "jobs.csv")
    assert evalys_rows(tmp_path / "jobs.csv") == [
        (1, 0, 0, 10, 0, 10, 10, "0-1", 0, "COMPLETED_KILLED"),
        (1, 10, 10, 36, 0, 26, 26, "2-3", 1, "COMPLETED_SUCCESSFULLY"),
    ]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of evalys
@pytest.mark.parametrize(
    "policy", ["fcfs", "easy", "slack", "pv-easy", "pv-easy:mode=checkpoint", "ss:mode=suspend", "server-filling"]
)
def test_real_evalys_finds_no_more_busy_nodes_than_there_are(tmp_path: Path, policy: str) -> None:
    jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed; pip install '.[test-all]' brings it")
    machine = cm.Machine(nodes=64, checkpointing=cm.Checkpointing(checkpoint_s=120.3, restart_s=60))
    jobs = cm.synthetic_workload(jobs=600, nodes=64, load=1.1)
    result = cm.Scenario(machine=machine, workload=jobs, policy=policy).run()
    result.to_csv(tmp_path / "jobs.csv")
    seen = jobset.JobSet.from_csv(tmp_path / "jobs.csv", resource_bounds=(0, 63))
    busy = seen.utilisation.load
    assert busy.max() == 64
    assert busy.min() == busy.iloc[-1] == 0
    assert seen.queue.load.min() == seen.queue.load.iloc[-1] == 0
    assert seen.df["jobID"].nunique() == 600
    assert len(seen.df) == len(result.run_attempts)
    held = (seen.df["proc_alloc"] * seen.df["execution_time"]).sum()
    assert abs(held - result.ledger.frame["total_node_s"].drop("idle").sum()) <= seen.df["proc_alloc"].sum() / 64
    ends = seen.df.groupby("jobID", sort=False)["finish_time"].last()
    assert np.abs(ends.to_numpy() - result.jobs["end_s"].to_numpy()).max() <= 1 / 128


class StoppedOnce:
    """Stops each job once after a second, and then lets it run."""

    name = "stopped once"

    def start(self, setup: Setup) -> object:
        self._seen: set[int] = set()
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[cm.Start]:
        starts = [cm.Start(job=job, limit=None if job.id in self._seen else SECOND) for job in view.waiting.values()]
        self._seen |= set(view.waiting)
        return starts


# Files are written as a whole or not at all, texts in them are no formulas
def writers(result: cm.Result) -> dict[str, Callable[[str], None]]:
    """Return what writes files, by suffix, given a path as text."""
    return {
        "evalys.csv": result.to_csv,
        "jobs.csv": lambda path: result.to_csv(path, layout="jobs"),
        "swf": result.to_swf,
        "swf.gz": result.to_swf,
        **{kind: lambda path: save(comparison([result]), path) for kind in ("png", "svg", "pdf")},
    }


@pytest.fixture(scope="module")
def small() -> cm.Result:
    return cm.Scenario(machine=cm.Machine(nodes=32), workload=cm.synthetic_workload(jobs=50, nodes=32)).run()


@pytest.mark.parametrize("kind", ["evalys.csv", "jobs.csv", "swf", "swf.gz", "png", "svg", "pdf"])
@pytest.mark.long
def test_a_file_that_fails_half_way_leaves_the_old_one_and_nothing_else(
    small: cm.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / f"out.{kind}"
    write = writers(small)[kind]
    write(str(path))  # a path as text
    assert path.stat().st_size > 100
    path.write_text("old")

    class FullDisk(BufferedWriter):
        def write(self, data: Any) -> int:
            super().write(bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(target: Any, mode: str) -> FullDisk:
        return FullDisk(FileIO(target, mode.replace("b", "")))

    monkeypatch.setattr(files, "open", opened, raising=False)
    with pytest.raises(cm.OutputError) as refused:
        write(str(path))
    assert str(refused.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_text() == "old"
    assert [left.name for left in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_device_is_named_in_one_line(small: cm.Result) -> None:
    for write in (small.to_csv, small.to_swf):
        with pytest.raises(cm.OutputError) as refused:
            write("/dev/full")
        assert str(refused.value) == "/dev/full: cannot be written: No space left on device"


def test_texts_in_csv_files_are_no_formulas(tmp_path: Path) -> None:
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=10)], name='=HYPERLINK("x")')
    cm.Scenario(machine=cm.Machine(nodes=1), workload=jobs).run().to_csv(tmp_path / "jobs.csv")
    table = pd.read_csv(tmp_path / "jobs.csv")
    assert table["workload_name"].tolist() == ['\'=HYPERLINK("x")']
    assert table["profile"].tolist() == ["user-1"]


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    texts = ["=1+1", "+1", "-1", "@a", "\tx", "\rx", "a=1", "", "easy:p=-1"]
    table = pd.DataFrame({"number": range(-4, 5), "share": np.linspace(-1, 1, 9), "text": texts, "kind": pd.Categorical(texts)})
    guarded = without_formulas(table)
    assert guarded[["number", "share"]].equals(table[["number", "share"]])
    for column in ("text", "kind"):
        assert guarded[column].tolist() == ["'=1+1", "'+1", "'-1", "'@a", "'\tx", "'\rx", "a=1", "", "easy:p=-1"]
    assert table["text"].tolist() == texts
    assert without_formulas(table[:0]).columns.tolist() == table.columns.tolist()


def test_a_schedule_keeps_names_with_line_ends_in_its_header(tmp_path: Path) -> None:
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=10)], name="a\n1 2\x1b[31m")
    cm.Scenario(machine=cm.Machine(nodes=1), workload=jobs).run().to_swf(tmp_path / "out.swf")
    again = cm.read_swf(tmp_path / "out.swf")
    assert len(again) == 1
    assert again.provenance.header["Note"].splitlines()[:2] == ["simulated schedule of a", r"1 2\x1b[31m under easy"]
