"""What a report is drawn from: means, numbers in names, text that is no mathematics, the columns of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clustermodel import Machine, Scenario, TimeSlicing, synthetic_workload
from clustermodel.figures.run_tables import means_of
from clustermodel.measure.timeline import KINDS
from clustermodel.report.curves import FACTORS, METRICS, numbers_in, shown
from clustermodel.report.viewer import viewed_run
from clustermodel.statistics import LEVEL


def results_of(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame([dict.fromkeys(METRICS) | row for row in rows])


def row(policy: str, replication: int, **measured: float) -> dict[str, object]:
    return {"machine": "m", "workload": "w", "policy": policy, "replication": replication, **measured}


def test_points_are_means_with_students_intervals() -> None:
    waits = (10.0, 30.0, 80.0)
    rows = [row("a", at, mean_wait_s=wait, utilization=0.5) for at, wait in enumerate(waits)]
    points = means_of(results_of(*rows, row("b", 1, mean_wait_s=7.0)), FACTORS, METRICS, LEVEL)
    assert points[["machine", "workload", "policy", "runs"]].to_numpy().tolist() == [["m", "w", "a", 3], ["m", "w", "b", 1]]
    assert points["mean_wait_s"].tolist() == [40.0, 7.0]
    half = stats.t.ppf(0.975, 2) * np.std(waits, ddof=1) / np.sqrt(3)
    assert points["mean_wait_s half"][0] == pytest.approx(half, rel=1e-12)
    assert np.isnan(points["mean_wait_s half"][1])  # one run has no interval
    assert points["utilization half"][0] == 0.0
    assert points["kappa"].isna().all()


def test_points_leave_out_what_a_run_has_no_number_for() -> None:
    table = results_of(row("a", 1, mean_wait_s=4.0), row("a", 2), row("a", 3, mean_wait_s=6.0))
    points = means_of(table, FACTORS, METRICS, LEVEL)
    assert (points["runs"][0], points["mean_wait_s"][0]) == (3, 5.0)
    assert points["mean_wait_s half"][0] == pytest.approx(stats.t.ppf(0.975, 1) * 1.0)


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["load 0.5", "load 0.9"], [0.5, 0.9]),
        (["128 nodes", "64 nodes", "9 nodes"], [128, 64, 9]),
        (["-1", "2.5"], [-1, 2.5]),
        (["load 0.5"], None),
        (["load 0.5", "charge 0.9"], None),
        (["4 of 5", "5 of 5"], None),
        (["easy", "fcfs"], None),
        (["kth", "kth 2"], None),
        ([], None),
    ],
)
def test_numbers_in_names(names: list[str], numbers: list[float] | None) -> None:
    assert numbers_in(names) == numbers


@pytest.mark.parametrize("text", ["$$x$$", r"\(x\)", r"\[x\]", "$$$$", "a $ b", r"\\", "plain"])
def test_shown_text_reads_the_same_and_is_no_mathematics(text: str) -> None:
    assert shown(text).replace("\u200b", "") == text
    assert not any(mark in shown(text) for mark in ("$$", r"\(", r"\["))


@pytest.mark.parametrize("policy", ["easy", "mbgs", "pv-easy"])
def test_a_viewed_run_is_its_placements_and_states(policy: str) -> None:
    machine = Machine(nodes=64, time_slicing=TimeSlicing(quantum_s=300))
    jobs = synthetic_workload(jobs=120, nodes=64, load=0.9)
    result = Scenario(machine=machine, workload=jobs, policy=policy, history=True).run()
    placements, states = result.placements, result.states
    run = viewed_run("label", 64, result.jobs, placements, states, {"x": np.zeros(2), "y": np.zeros(2)})
    start = states["time_s"].iloc[0]
    stay = run.pieces["stay"].astype(int)
    rebuilt = pd.DataFrame(
        {
            "job": run.jobs["id"][run.stays["job"][stay]],
            "begin_s": run.stays["begin"][stay] + start,
            "end_s": run.stays["end"][stay] + start,
            "row": run.stays["row"][stay],
            "first_node": run.pieces["first"],
            "nodes": run.pieces["nodes"],
            "kind": np.array(KINDS)[run.stays["kind"][stay]],
        }
    )
    pd.testing.assert_frame_equal(rebuilt, placements, check_dtype=False)
    assert run.shared == (policy == "mbgs")
    assert run.rows == placements["row"].max() + 1
    assert (np.diff(run.stays["begin"]) >= 0).all()  # the page searches in them
    np.testing.assert_array_equal(run.events["time"] + start, states["time_s"])
    np.testing.assert_array_equal(run.events["waiting"], states["waiting_jobs"])
    np.testing.assert_array_equal(run.events["row"], states["running_row"])
    np.testing.assert_array_equal(run.jobs["user"], result.jobs["user"])
    parts = (run.jobs, run.stays, run.pieces, run.events, run.overview)
    assert run.size == sum(len(column.tobytes()) for part in parts for column in part.values())
    assert run.pieces["nodes"].itemsize == 1  # 64 nodes fit into a byte


@pytest.mark.parametrize(("largest", "kind"), [(127, "int8"), (128, "int16"), (40_000, "int32"), (2**40, "float64")])
def test_whole_numbers_take_as_few_bytes_as_hold_them(largest: int, kind: str) -> None:
    records = pd.DataFrame({"job": [1], "user": [largest], "nodes": [2], "submit_s": [0.0]})
    placements = pd.DataFrame(
        {"job": [1], "begin_s": [0.0], "end_s": [5.0], "row": [0], "first_node": [0], "nodes": [2], "kind": ["run"]}
    )
    states = pd.DataFrame({"time_s": [0.0, 5.0], "busy_nodes": [2, 0], "waiting_jobs": [0, 0], "running_row": [-1, -1]})
    run = viewed_run("one", 4, records, placements, states, {})
    assert run.jobs["user"].dtype == kind
    assert run.jobs["user"].tolist() == [largest]
