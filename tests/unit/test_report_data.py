"""What a report is drawn from: factors and measures with their names, text that is no mathematics, the columns of a run."""

import numpy as np
import pandas as pd
import pytest
from bokeh.models import HoverTool

from clustermodel import Machine, Power, Scenario, TimeSlicing, synthetic_workload
from clustermodel.measure.metrics import quantity
from clustermodel.report.data import factor_of, title_of
from clustermodel.report.plots import STATUSES, StatesOfRun, curve_of, curves_over_time, group_of, literal, span, viewed_run
from clustermodel.workload.placements import KINDS

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("levels", "numeric", "labels", "places"),
    [
        ([0.5, 0.9, 10], True, ["0.5", "0.9", "10"], [0.5, 0.9, 10.0]),
        ([True, False], False, ["True", "False"], [0.0, 1.0]),
        ([3], False, ["3"], [0.0]),
        (["load 0.5", "load 0.9"], False, ["load 0.5", "load 0.9"], [0.0, 1.0]),
        ([1, "1", None], False, ["1", "'1'", "None"], [0.0, 1.0, 2.0]),
    ],
)
def test_factors_have_labels_and_places(levels: list[object], numeric: bool, labels: list[str], places: list[float]) -> None:
    factor = factor_of("quantum_s", levels)
    assert (factor.numeric, factor.labels, factor.places, factor.title) == (numeric, labels, places, "quantum (s)")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("mean_wait_s", "mean wait (s)"),
        ("jobs", "completed jobs"),
        ("context_switch_share", "context switch, share of capacity"),
        ("idle_waiting_share", "idle, share of capacity while jobs wait"),
        ("useful_node_s", "useful (node-seconds)"),
        ("my measure", "my measure"),
    ],
)
def test_measures_have_titles(name: str, title: str) -> None:
    assert title_of(quantity(name)) == title


@pytest.mark.parametrize("text", ["$$x$$", r"\(x\)", r"\[x\]", "$$$$", "a $ b", r"\\", "plain"])
def test_shown_text_reads_the_same_and_is_no_mathematics(text: str) -> None:
    assert literal(text).replace("\u200b", "") == text
    assert not any(mark in literal(text) for mark in ("$$", r"\(", r"\["))


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
    assert run.stays["row"].max() == placements["row"].max()
    assert (np.diff(run.stays["begin"]) >= 0).all()  # the page searches in them
    np.testing.assert_array_equal(run.events["time"] + start, states["time_s"])
    np.testing.assert_array_equal(run.events["waiting"], states["waiting_jobs"])
    np.testing.assert_array_equal(run.events["row"], states["running_row"])
    np.testing.assert_array_equal(run.jobs["user"], result.jobs["user"])
    for name in ("wait", "response"):
        np.testing.assert_allclose(run.jobs[name], result.jobs[f"{name}_s"], rtol=1e-6)
    assert run.jobs["slowdown"].mean() == pytest.approx(result.summary().mean_bounded_slowdown, rel=1e-6)
    assert [STATUSES[status] for status in run.jobs["status"]] == result.jobs["status"].tolist()
    reserved = result.jobs["reserved_s"].to_numpy() - start
    np.testing.assert_allclose(run.jobs["reserved"], np.where(np.isfinite(reserved), reserved, -1), rtol=1e-6)
    parts = (run.jobs, run.stays, run.pieces, run.events, run.overview)
    assert run.size == sum(len(column.tobytes()) for part in parts for column in part.values())
    assert run.pieces["nodes"].itemsize == 1  # 64 nodes fit into a byte


@pytest.mark.parametrize(("largest", "kind"), [(127, "int8"), (128, "int16"), (40_000, "int32"), (2**40, "float64")])
def test_whole_numbers_take_as_few_bytes_as_hold_them(largest: int, kind: str) -> None:
    seconds = {name: [0.0] for name in ("submit_s", "wait_s", "response_s", "run_s", "reserved_s", "head_since_s")}
    records = pd.DataFrame(
        {"job": [1], "user": [largest], "nodes": [2], **seconds, "tries": [1], "backfilled": [False], "status": ["completed"]}
    )
    placements = pd.DataFrame(
        {"job": [1], "begin_s": [0.0], "end_s": [5.0], "row": [0], "first_node": [0], "nodes": [2], "kind": ["run"]}
    )
    states = pd.DataFrame(
        {"time_s": [0.0, 5.0], "busy_nodes": [2, 0], "down_nodes": [0, 0], "waiting_jobs": [0, 0], "running_row": [-1, -1]}
    )
    run = viewed_run("one", 4, records, placements, states, {})
    assert run.jobs["user"].dtype == kind
    assert run.jobs["user"].tolist() == [largest]


def test_nodes_that_are_down_have_a_curve_where_nodes_fail() -> None:
    columns = {"time_s": [0.0, 100.0, 200.0, 400.0], "busy_nodes": [4, 2, 4, 0], "waiting_jobs": [0, 1, 0, 0]}
    failing, sound = (pd.DataFrame({**columns, "down_nodes": down}) for down in ([0, 2, 0, 0], [0, 0, 0, 0]))
    assert curve_of(StatesOfRun("", 4, failing), np.array([0.0, 200.0, 400.0]))["down"] == [1.0, 0.0, 0.0]
    for states, names in ((failing, ["busy", "waiting", "down"]), (sound, ["busy", "waiting"])):
        plots, starts = curves_over_time([group_of([StatesOfRun("easy", 4, states)], 1.0)], ["easy"], "s")
        assert [plot.name for plot in plots] == [f"over time {name}" for name in names]
        assert [plot.xaxis.axis_label is not None for plot in plots] == [False] * (len(names) - 1) + [True]
        assert list(starts.args["lines"][0]["sources"]) == names


@pytest.mark.parametrize("column", ["memory_share", "store_share", "reserved_nodes"])
def test_limited_resources_have_a_curve_where_a_run_has_the_limit(column: str) -> None:
    name = column.partition("_")[0]
    columns = {"time_s": [0.0, 100.0, 200.0, 400.0], "busy_nodes": [4, 2, 4, 0], "waiting_jobs": [0] * 4, "down_nodes": [0] * 4}
    without = pd.DataFrame(columns)
    limited = without.assign(**{column: [0.5, 0.25, 1.0, 0.0]})
    unused = without.assign(**{column: 0.0})
    edges = np.array([0.0, 200.0, 400.0, 500.0])
    assert curve_of(StatesOfRun("", 4, limited), edges)[name] == [0.375, 1.0, 0.0, 0.0]
    assert curve_of(StatesOfRun("", 4, without), edges).keys() == {"busy", "waiting", "down"}
    for runs, names in (
        ({"little": limited, "no limit": without}, ["busy", "waiting", name]),
        ({"unused": unused}, ["busy", "waiting", name]),
        ({"no limit": without}, ["busy", "waiting"]),
    ):
        group = group_of([StatesOfRun(label, 4, states) for label, states in runs.items()], 1.0)
        plots, starts = curves_over_time([group], list(runs), "s")
        assert [plot.name for plot in plots] == [f"over time {plot}" for plot in names]
        assert [plot.xaxis.axis_label is not None for plot in plots] == [False] * (len(names) - 1) + [True]
        assert all(plot.x_range is plots[0].x_range for plot in plots)
        assert {
            (plot.y_range.start, plot.y_range.end)
            for plot in plots
            if plot.name not in ("over time waiting", "over time reserved")
        } == {(0, 1.02)}
        assert len({str(plot.select_one(HoverTool).tooltips) for plot in plots}) == 1
        assert [list(line["sources"]) for line in starts.args["lines"]] == [names] * len(runs)


@pytest.mark.parametrize("policy", ["gs", "ss"])
def test_the_curve_of_memory_is_what_its_figure_draws(policy: str) -> None:
    machine = Machine(nodes=16, node_memory_gib=4, time_slicing=TimeSlicing(quantum_s=300))
    jobs = synthetic_workload(jobs=60, nodes=16, load=0.9).with_default_memory(1.5)
    result = Scenario(machine=machine, workload=jobs, policy=policy).run()
    (stairs,) = result.plot.memory(bins=50).axes[0].patches
    drawn = stairs.get_data().values
    edges = np.linspace(0.0, span(result.states), 51)
    assert max(drawn) > 0.3
    np.testing.assert_allclose(curve_of(StatesOfRun("", 16, result.states), edges)["memory"], [*drawn, 0.0], atol=1e-5)


def test_power_has_a_curve_over_time_where_it_is_known() -> None:
    jobs = synthetic_workload(jobs=20, nodes=8)
    machine = Machine(nodes=8, power=Power(busy_w=350, idle_w=120))
    result = Scenario(machine=machine, workload=jobs, policy="easy").run()
    run = StatesOfRun("easy", 8, result.states)
    curve = group_of([run], 3600.0)["curves"]["easy"]["power"]
    hours = span(run.states) / 3600
    assert sum(curve[:-1]) / len(curve[:-1]) * hours == pytest.approx(result.energy_kwh, rel=1e-4)
    without = StatesOfRun("easy", 8, result.states.drop(columns="power_w"))
    assert "power" not in group_of([without], 3600.0)["curves"]["easy"]
