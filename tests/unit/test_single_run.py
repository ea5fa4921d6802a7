"""Figures: units on the axes, and the numbers that are drawn, read back from the figure."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustermodel import ContextSwitch, Machine, OutputError, Scenario, SpecificationError, synthetic_workload
from clustermodel.experiment.result import Result
from clustermodel.figures.result_plots import comparison
from clustermodel.figures.style import save
from clustermodel.text.formatting import time_unit
from tests.timeline.timeline import play


@pytest.fixture(scope="module")
def run() -> Result:
    workload = synthetic_workload(jobs=300, nodes=32, load=0.9, seed=4)
    return Scenario(machine=Machine(nodes=32), workload=workload, policy="easy").run()


@pytest.fixture(scope="module")
def four() -> Result:
    """Four nodes: 1 on 0-1 from 0 to 20, 2 on all from 20 to 25, 3 on 2-3 from 2 to 10, 4 on 0 from 25 to 41."""
    return play(4, "1 0 2 20\n2 0 4 5\n3 2 2 8\n4 4 1 16", "easy")


def bars(axes: Axes) -> list[tuple[float, float, float, float]]:
    """Return the rectangles of a Gantt chart as (left, right, bottom, top)."""
    extents = [path.get_extents() for collection in axes.collections for path in collection.get_paths()]
    return sorted((box.x0, box.x1, box.y0, box.y1) for box in extents)


@pytest.mark.parametrize(
    ("span_s", "unit_s", "name"),
    [
        (0.5, 1, "seconds"), (179, 1, "seconds"), (180, 60, "minutes"), (3 * 3600 - 1, 60, "minutes"),
        (3 * 3600, 3600, "hours"), (3 * 86_400 - 1, 3600, "hours"), (3 * 86_400, 86_400, "days"),
    ],
)  # fmt: skip
def test_the_time_axis_has_the_largest_unit_of_which_there_are_three(span_s: float, unit_s: float, name: str) -> None:
    assert time_unit(span_s)[1:] == (name, unit_s)


def test_every_axis_says_what_it_shows_in_which_unit(run: Result, four: Result) -> None:
    def labels(figure: Figure) -> list[tuple[str, str]]:
        return [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]

    since = "time since the first submission (days)"
    over_time = [(since, "busy nodes / nodes"), (since, "waiting jobs")]
    waits = ("wait (hours; shorter than a second drawn at one second)", "share of jobs that wait at least this long")
    assert labels(run.plot.utilization()) == [("", over_time[0][1]), over_time[1]]  # the two share their time axis
    assert labels(comparison([run])) == [*over_time, waits, ("node time / capacity", "policy")]
    assert labels(run.plot.gantt()) == [("time (days)", "node")]
    assert labels(four.plot.gantt()) == [("time (seconds)", "node")]


@pytest.mark.parametrize("bins", [1, 7, 200])
def test_the_steps_average_to_the_ledgers_utilization_and_the_queue_to_littles_law(run: Result, bins: int) -> None:
    busy, queue = (axes.patches[0].get_data() for axes in run.plot.utilization(bins=bins).axes)
    horizon_s = run.summary().horizon_s
    for drawn in (busy, queue):
        assert len(drawn.values) == bins
        assert drawn.edges[0] == 0
        assert drawn.edges[-1] * 86_400 == pytest.approx(horizon_s)  # drawn in days
    assert np.mean(busy.values) == pytest.approx(run.ledger.utilization, rel=1e-9)
    assert busy.values.max() <= 1 + 1e-12
    assert np.mean(queue.values) * horizon_s == pytest.approx(run.jobs["wait_s"].sum(), rel=1e-9)


def test_steps_by_hand(four: Result) -> None:
    # busy nodes: 2 until 2 s, 4 until 10, 2 until 20, 4 until 25, 1 until 41; waiting: 1 until 4, 2 until 20, 1 until 25
    busy, queue = (axes.patches[0].get_data() for axes in four.plot.utilization(bins=2).axes)
    assert busy.edges.tolist() == queue.edges.tolist() == [0, 20.5, 41]
    first = 2 * 2 + 4 * 8 + 2 * 10 + 4 * 0.5
    second = 4 * 4.5 + 1 * 16
    assert (busy.values * 4 * 20.5).tolist() == pytest.approx([first, second])
    assert (queue.values * 20.5).tolist() == pytest.approx([1 * 4 + 2 * 16 + 1 * 0.5, 1 * 4.5])


def test_the_dashed_line_and_the_title_say_the_utilization(four: Result) -> None:
    axes = four.plot.utilization().axes[0]
    rho = (40 + 20 + 16 + 16) / (4 * 41)
    assert axes.lines[0].get_ydata() == pytest.approx([rho, rho])
    assert axes.get_title() == f"easy on workload: utilization $\\rho$ = {rho:.3f} (dashed)"


def test_a_comparison_draws_every_run_in_its_own_colour(run: Result) -> None:
    others = [
        Scenario(machine=run.machine, workload=run.scenario.workload, policy=policy).run()
        for policy in ("fcfs", "conservative", "easy:reserve_depth=2")
    ]
    figure = comparison([run, *others])
    labels = ["easy", "fcfs", "conservative", "easy:reserve_depth=2"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels
    for axes in figure.axes[:2]:
        assert len({patch.get_edgecolor() for patch in axes.patches}) == len(axes.patches) == 4
    assert len({line.get_color() for line in figure.axes[2].lines}) == 4


def test_where_nodes_are_shared_in_time_slowdowns_are_compared() -> None:
    machine = Machine(nodes=32, context_switch=ContextSwitch(fraction=0.05))
    jobs = synthetic_workload(jobs=60, nodes=32, load=0.9)
    runs = [Scenario(machine=machine, workload=jobs, policy=policy).run() for policy in ("bf", "bgs")]
    figure = comparison(runs)
    _, middle, below, bottom = figure.axes
    assert middle.get_ylabel() == "waiting and running jobs"
    assert below.get_xlabel() == "bounded slowdown"
    for run, line, steps in zip(runs, below.lines, middle.patches, strict=True):
        assert line.get_xdata().mean() == pytest.approx(run.summary().mean_bounded_slowdown)
        # Little's law: jobs in the system are responses per time, over the length of the longer run
        values, edges = steps.get_data().values, steps.get_data().edges
        longest = max(other.summary().horizon_s for other in runs)
        in_system = values.mean() * (edges[-1] - edges[0]) / edges[-1] * longest
        assert in_system == pytest.approx(run.jobs["response_s"].sum(), rel=1e-9)
    assert [label.get_text() for label in bottom.get_yticklabels()] == ["bf", "bgs"]
    widths = {text.get_text(): bars for text, bars in zip(bottom.get_legend().get_texts(), bottom.containers, strict=True)}
    switching = [bar.get_width() for bar in widths["context switch"]]
    assert switching == pytest.approx([run.ledger.frame.loc["context switch", "share"] for run in runs])
    assert [sum(bars[at].get_width() for bars in bottom.containers) for at in (0, 1)] == pytest.approx([1, 1])


def test_the_distribution_of_waits_by_hand(four: Result) -> None:
    # waits 0, 20, 0, 21 s: all wait at least 0 (drawn at 1 s), half of them 20 s, one in four 21 s
    line = comparison([four]).axes[2].lines[0]
    assert (line.get_xdata() * 3600).tolist() == pytest.approx([1, 1, 20, 21])
    assert line.get_ydata().tolist() == [1, 0.75, 0.5, 0.25]


def test_a_run_in_which_nothing_ran_is_left_out_of_a_comparison(four: Result) -> None:
    nothing = play(2, "1 0 3 10", "fcfs")
    assert len(comparison([nothing, four]).axes[0].patches) == 1
    with pytest.raises(SpecificationError) as refused:
        comparison([nothing])
    assert str(refused.value) == "figure: no job ran in any result; there is nothing to draw"
    for draw in (nothing.plot.gantt, nothing.plot.utilization):
        with pytest.raises(SpecificationError, match="no job ran"):
            draw()


def test_a_gantt_chart_has_a_bar_for_each_job_over_its_time_and_nodes(four: Result) -> None:
    axes = four.plot.gantt().axes[0]
    # node n reaches from n - 0.5 to n + 0.5
    assert bars(axes) == [(0, 20, -0.5, 1.5), (2, 10, 1.5, 3.5), (20, 25, -0.5, 3.5), (25, 41, -0.5, 0.5)]
    assert axes.get_xlim() == (0, 41)
    assert axes.get_ylim() == (-0.5, 3.5)
    assert axes.get_title() == "easy on workload: jobs 1 to 4"


def test_a_gang_whose_nodes_are_apart_has_several_bars_with_its_label() -> None:
    # 1 on node 0 and 3 on node 2 end at 5; 2 keeps node 1; 4 takes 0, 2 and 3
    result = play(4, "1 0 1 5\n2 0 1 20\n3 0 1 5\n4 5 3 10", "fcfs")
    axes = result.plot.gantt(first=4, labels=True).axes[0]
    assert bars(axes) == [(5, 15, -0.5, 0.5), (5, 15, 1.5, 3.5)]
    assert [text.get_text() for text in axes.texts] == ["4", "4"]


@pytest.mark.parametrize(("labels", "written"), [(True, ["1", "2", "3", "4"]), (False, [])])
def test_labels_are_written_on_all_bars_or_on_none(four: Result, labels: bool, written: list[str]) -> None:
    assert sorted(text.get_text() for text in four.plot.gantt(labels=labels).axes[0].texts) == written


def test_labels_are_written_by_default_where_they_fit() -> None:
    # 1 s of 101 s is too short, one node of 100 too thin; 2.5 % of either will do
    result = play(100, "1 0 50 1\n2 1 99 100\n3 1 1 100", "fcfs")
    assert [text.get_text() for text in result.plot.gantt().axes[0].texts] == ["2"]


def test_a_range_of_jobs_can_be_chosen(four: Result) -> None:
    axes = four.plot.gantt(first=2, last=3).axes[0]
    assert bars(axes) == [(2, 10, 1.5, 3.5), (20, 25, -0.5, 3.5)]
    assert axes.get_title() == "easy on workload: jobs 2 to 3 (others are not drawn)"


def test_by_default_two_hundred_jobs_are_drawn(run: Result) -> None:
    title = run.plot.gantt().axes[0].get_title()
    assert title == "easy on synthetic-4: jobs 1 to 200 (others are not drawn)"
    assert run.plot.gantt(first=150).axes[0].get_title() == "easy on synthetic-4: jobs 150 to 300 (others are not drawn)"
    assert run.plot.gantt(last=300).axes[0].get_title() == "easy on synthetic-4: jobs 1 to 300"


def test_rejected_jobs_are_not_drawn() -> None:
    result = play(2, "1 0 9 5\n2 0 1 5\n3 1 9 5", "fcfs")
    axes = result.plot.gantt(first=1, last=3).axes[0]
    assert len(bars(axes)) == 1
    assert axes.get_title() == "fcfs on workload: jobs 2 to 2"


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (99, None, "gantt: first: job 99 is not in this run"),
        (None, 99, "gantt: last: job 99 is not in this run"),
        (3, 2, "gantt: no job ran (first=3, last=2)"),
    ],
)
def test_a_range_without_jobs_is_refused(four: Result, first: int | None, last: int | None, message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        four.plot.gantt(first=first, last=last)
    assert str(refused.value) == message


def test_more_jobs_than_anyone_can_read_are_refused(four: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clustermodel.figures.gantt.MOST_RECTANGLES", 3)
    assert four.plot.gantt(last=3).axes
    with pytest.raises(SpecificationError) as refused:
        four.plot.gantt(last=4)
    assert str(refused.value) == "gantt: 4 rectangles are too many to draw; choose fewer jobs"


def test_a_figure_is_saved_as_an_image_of_the_size_it_was_made_for(four: Result, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    save(four.plot.gantt(), path)
    height, width, _ = matplotlib.image.imread(path).shape
    assert (width, height) == (10 * 150, 5.5 * 150)


def test_a_figure_that_cannot_be_saved_is_an_output_error(four: Result, tmp_path: Path) -> None:
    figure = four.plot.gantt()
    with pytest.raises(OutputError) as refused:
        save(figure, tmp_path / "no" / "a.png")
    assert str(refused.value) == f"{tmp_path}/no/a.png: cannot be written: No such file or directory"
    with pytest.raises(OutputError) as refused:
        save(figure, tmp_path / "a.docx")
    assert str(refused.value).startswith(f"{tmp_path}/a.docx: format '.docx' is unknown; known are ")
