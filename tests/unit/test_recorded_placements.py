"""Recorded schedules: placements of logs and of tables by hand, their figure above a simulated one, their run in a report."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from clustermodel import Job, LoadScale, Machine, Scenario, SpecificationError, Workload, read_trace
from clustermodel.experiment.run_key import digest_of_jobs
from clustermodel.figures.style import job_colour
from clustermodel.measure.timeline import recorded_states
from clustermodel.workload.transforms import JobFilter
from tests.conftest import Finished

Write, Command = Callable[..., Path], Callable[..., Finished]
Table = list[tuple[Any, ...]]
HEADER = "JobID|User|Submit|Start|End|ElapsedRaw|Suspended|State|AllocNodes|AllocCPUS|NodeList"


def log_of(write: Write, *jobs: tuple[float, float, float, str], unit: str = "nodes") -> Workload:
    """Return a log of jobs given by start and end (hours), suspended time (hours) and nodes."""

    def stamp(hours: float) -> str:
        return str(pd.Timestamp("2024-01-01") + pd.Timedelta(hours=hours)).replace(" ", "T")

    lines = []
    for number, (start, end, suspended, nodes) in enumerate(jobs, start=1):
        times = f"{stamp(start)}|{stamp(start)}|{stamp(end)}|{round(3600 * (end - start - suspended))}"
        waited = str(pd.Timedelta(hours=suspended)).split()[-1]
        size = 4 if "-" in nodes else nodes.count(",") + 1
        lines.append(f"{number}|u{number}|{times}|{waited}|COMPLETED|{size}|{4 * size}|{nodes}")
    return read_trace(write(HEADER, *lines, name="jobs.sacct"), unit=unit)


def hours(table: pd.DataFrame) -> Table:
    """Return rows of a table of placements, times in hours."""
    table = table.assign(begin_s=table["begin_s"] / 3600, end_s=table["end_s"] / 3600)
    return list(table.itertuples(index=False, name=None))


# c05c and c05 of the cases: a job that is suspended for an hour by another one on its nodes, and gangs that share nodes.
PREEMPTED = ((0, 3, 1, "n[1-4]"), (1, 2, 0, "n[1-4]"), (3, 4, 0, "n[1-4]"))
GANGS = ((0, 2, 1, "n[1-4]"), (0, 2, 1, "n[1-4]"))


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (
            PREEMPTED,
            [(1, 0, 1, 0, 0, 4, "run"), (2, 1, 2, 0, 0, 4, "run"), (1, 2, 3, 0, 0, 4, "run"), (3, 3, 4, 0, 0, 4, "run")],
        ),
        (GANGS, [(1, 0, 2, 0, 0, 4, "partly"), (2, 0, 2, 1, 0, 4, "partly")]),
        # Two jobs on some of its nodes, one after the other, explain all of its suspended time.
        (
            ((0, 4, 2, "n[1-4]"), (1, 2, 0, "n1"), (2, 3, 0, "n4,n3")),
            [(1, 0, 1, 0, 0, 4, "run"), (2, 1, 2, 0, 0, 1, "run"), (3, 2, 3, 0, 2, 2, "run"), (1, 3, 4, 0, 0, 4, "run")],
        ),
        # Suspended for longer than the other job explains: it is not known when else.
        (
            ((0, 4, 2, "n[1-4]"), (1, 2, 0, "n[1-4]")),
            [(1, 0, 1, 0, 0, 4, "partly"), (2, 1, 2, 0, 0, 4, "run"), (1, 2, 4, 0, 0, 4, "partly")],
        ),
        # For a shorter time than the other one held its nodes: it is not known in which part of that.
        (
            ((0, 4, 1, "n[1-4]"), (1, 3, 0, "n[1-4]")),
            [(1, 0, 1, 0, 0, 4, "run"), (1, 1, 3, 0, 0, 4, "partly"), (2, 1, 3, 1, 0, 4, "run"), (1, 3, 4, 0, 0, 4, "run")],
        ),
        # A minute does not count.
        (
            ((0, 3, 59 / 60, "n[1-4]"), (1, 2, 0, "n[1-4]")),
            [(1, 0, 1, 0, 0, 4, "run"), (2, 1, 2, 0, 0, 4, "run"), (1, 2, 3, 0, 0, 4, "run")],
        ),
        # Nodes in natural order; a row for each range of neighbours; another job on other nodes suspends nobody.
        (
            ((0, 2, 0, "n10,n1,n2"), (1, 2, 0, "n9")),
            [(1, 0, 2, 0, 0, 2, "run"), (1, 0, 2, 0, 3, 1, "run"), (2, 1, 2, 0, 2, 1, "run")],
        ),
    ],
)  # fmt: skip
def test_placements_of_a_log(write_trace: Write, jobs: Any, expected: Table) -> None:
    table = log_of(write_trace, *jobs).recorded_placements
    assert hours(table) == expected
    jobs = [Job(id=1, nodes=1, submit_s=0, run_s=1)]
    result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=1), policy="fcfs").run()
    assert list(table.dtypes.items()) == list(result.placements.dtypes.items())


def test_placements_of_parts_of_a_log(write_trace: Write) -> None:
    whole = log_of(write_trace, *PREEMPTED)
    part = whole.select(JobFilter(users=frozenset({"u1", "u3"})))
    assert hours(part.recorded_placements) == [row for row in hours(whole.recorded_placements) if row[0] != 2]
    assert [len(each.recorded_placements) for each in whole.split()] == [2, 1, 1]
    assert hours(pickle.loads(pickle.dumps(whole)).recorded_placements) == hours(whole.recorded_placements)
    scaled = whole.scaled(LoadScale(run_time=2))
    assert not scaled.has_recorded_placements
    with pytest.raises(SpecificationError, match="or its jobs were scaled or resampled"):
        _ = scaled.recorded_placements


def test_components_of_a_heterogeneous_job_hold_the_nodes_of_all(write_trace: Write) -> None:
    times = "u|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|00:00:00|COMPLETED"
    workload = read_trace(write_trace(HEADER, f"7+0|{times}|2|8|n[1-2]", f"7+1|{times}|1|4|n5", name="a.sacct"), unit="nodes")
    assert hours(workload.recorded_placements) == [(7, 0, 1, 0, 0, 3, "run")]


def test_placements_of_pbs() -> None:
    workload = read_trace(Path(__file__).resolve().parents[1] / "logs" / "torque.pbs", unit="nodes")
    table = workload.recorded_placements
    held = (table["nodes"] * (table["end_s"] - table["begin_s"])).groupby(table["job"]).sum()
    expected = pd.Series(workload.column("nodes") * workload.seconds("run"), index=workload.column("id"))
    assert len(held)
    assert held.to_numpy() == pytest.approx(expected[held.index].to_numpy())


def test_a_table_of_placements() -> None:
    workload = Workload.from_jobs([Job(id=1, nodes=2, submit_s=0, run_s=60)])
    assert not workload.has_recorded_placements
    table = pd.DataFrame({"job": [1, 9], "begin_s": [30.0, 0.0], "end_s": [90.0, 5.0], "first_node": [4, 0], "nodes": [2, 1]})
    with_table = workload.with_recorded_placements(table)
    assert list(with_table.recorded_placements.itertuples(index=False, name=None)) == [(1, 30, 90, 0, 4, 2, "run")]
    assert digest_of_jobs(workload) != digest_of_jobs(with_table) == digest_of_jobs(workload.with_recorded_placements(table))
    for change, message in (
        ({"nodes": None}, "column 'nodes' is missing"),
        ({"nodes": 0}, "row 0: row and first_node must be >= 0, and nodes >= 1"),
        ({"end_s": [90.0, -1.0]}, "row 1: it ends before it begins"),
        ({"begin_s": np.nan}, "row 0: a number is missing"),
        ({"kind": "walk"}, "kind: 'walk' is not allowed; it must be one of run, saved"),
    ):
        wrong = table.drop(columns="nodes") if change == {"nodes": None} else table.assign(**change)
        with pytest.raises(SpecificationError, match=f"Workload.with_recorded_placements: {message}"):
            workload.with_recorded_placements(wrong)


def test_the_state_of_a_recorded_machine(write_trace: Write) -> None:
    table = log_of(write_trace, *PREEMPTED).recorded_placements
    states = recorded_states(table, pd.DataFrame({"job": [1, 2, 3, 9], "submit_s": [0.0, 3600.0, 1800.0, 0.0]}))
    assert states["time_s"].tolist() == [0, 1800, 3600, 7200, 10800, 14400]
    assert states["busy_nodes"].tolist() == [4, 4, 4, 4, 4, 0]
    assert states["waiting_jobs"].tolist() == [0, 1, 2, 1, 0, 0]
    table = log_of(write_trace, *GANGS, (0, 3, 0, "n[3-6]")).recorded_placements
    shared = recorded_states(table, pd.DataFrame({"job": [1, 2, 3], "submit_s": 0.0}))
    assert shared["busy_nodes"].tolist() == [6, 4, 0]


def rectangles(axes: Any) -> list[tuple[float, ...]]:
    """Return left, right, bottom and top of each rectangle, and its colour."""
    found = []
    for collection in axes.collections:
        assert isinstance(collection, PolyCollection)
        for path, colour in zip(collection.get_paths(), collection.get_facecolors(), strict=True):
            low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
            found.append((low[0], high[0], low[1], high[1], *colour[:3]))
    return sorted(found)


@pytest.mark.parametrize(("jobs", "policy", "rows"), [(PREEMPTED, "ss", 1), (GANGS, "mgs", 2)])
def test_the_figure_has_a_rectangle_for_each_placement(
    write_trace: Write, monkeypatch: pytest.MonkeyPatch, jobs: Any, policy: str, rows: int
) -> None:
    workload = log_of(write_trace, *jobs)
    result = Scenario(workload=workload, machine=Machine(nodes=4), policy=policy, history=True).run()
    upper, lower = result.plot.recorded().axes
    assert upper.get_xlim() == lower.get_xlim()
    assert (upper.get_title(), lower.get_title()) == ("recorded: jobs.sacct", f"simulated: {policy}")
    for axes, table in ((upper, workload.recorded_placements), (lower, result.placements)):
        unit = 3600 if policy == "ss" else 60
        pitch = 4.0 if rows == 1 else 4.5
        expected = [
            (begin / unit, end / unit, row * pitch + first - 0.5, row * pitch + first + nodes - 0.5, *job_colour(job))
            for job, begin, end, row, first, nodes, _ in table.itertuples(index=False)
        ]
        assert np.array(rectangles(axes)) == pytest.approx(np.array(sorted(expected)))
    later = result.plot.recorded(first_s=3600, last_s=5400).axes[0]
    assert len(rectangles(later)) == rows
    monkeypatch.setattr("clustermodel.figures.gantt.MOST_RECTANGLES", 3)
    assert result.plot.recorded().axes[1].get_xlabel().endswith("too many rectangles") == (rows == 1)
    with pytest.raises(SpecificationError, match="nothing ran between first_s=90000 and last_s=90001"):
        result.plot.recorded(first_s=90_000, last_s=90_001)


def test_whatif_draws_recorded_above_simulated(
    command_line: Callable[..., Finished], write_trace: Write, tmp_path: Path
) -> None:
    log_of(write_trace, *PREEMPTED)
    trace, picture = next(tmp_path.rglob("jobs.sacct")), tmp_path / "held.png"
    finished = command_line("whatif", "--trace", trace, "--policy", "mgs", "--policy", "easy", "--figure", picture)
    assert finished.code == 0, finished.err
    assert picture.stat().st_size > 10_000
    assert f"figure: {picture}" in finished.err
    for options, message in (
        (["--unit", "cores", "--figure", picture], "--figure: recorded placements: jobs.sacct: its jobs are counted in cores"),
        (["--figure", tmp_path / "held.txt"], "--figure: "),
    ):
        finished = command_line("whatif", "--trace", trace, *options)
        assert finished.code != 0
        assert message in finished.err.splitlines()[-1]
    plain = write_trace("; MaxProcs: 4\n1 0 5 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1", name="a.swf")
    finished = command_line("whatif", "--trace", plain, "--figure", picture)
    assert "--figure: recorded placements: a: it does not say which nodes its jobs held (NodeList" in finished.err
