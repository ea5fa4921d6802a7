"""The page of a report, looked at in a browser: what it draws is what was measured, and nothing leaves the file."""

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clustermodel import Checkpointing, CheckpointStore, Job, Machine, Scenario, TimeSlicing, Workload, synthetic_workload
from clustermodel.experiment.store import Store
from clustermodel.experiment.study import Study
from clustermodel.measure.metrics import quantity
from clustermodel.report.data import title_of
from clustermodel.report.write import write_report
from tests.report.conftest import NODES, SHARED, Open, Opened, small_study

pytestmark = pytest.mark.long

HOUR_S, DAY_S = 3600.0, 86_400.0
POLICIES = ("easy", SHARED, "pv-easy")
PLACE = ["job", "row", "first", "nodes", "kind"]


@pytest.fixture(scope="module")
def report(opener: Open, directory: Path) -> Opened:
    """Return the report of the small study, opened once; tests leave nothing hidden."""
    return opener(directory / "report.html")


def section(report: Opened, name: str):
    return report.page.locator(f"section:has(#{name})")


def choose(report: Opened, name: str, title: str, value: str) -> None:
    """Choose in a list, as a reader does."""
    shown = title_of(quantity(value)) if title == "measure" else value
    section(report, name).get_by_label(title, exact=True).select_option(shown)
    report.settle()


def made(tmp_path: Path, opener: Open, study: Study) -> Opened:
    """Run a study, write its report and open it."""
    assert len(study.run(tmp_path, workers=1)) == len(study)
    write_report(tmp_path, tmp_path / "report.html")
    return opener(tmp_path / "report.html")


# The page.


def test_it_opens_without_a_network_and_says_nothing_on_the_console(report: Opened) -> None:
    assert report.page.title() == "a small study"
    assert "24 of 24 runs are done." in report.page.locator("body").inner_text()
    assert report.page.locator("section h2").all_inner_texts() == [
        "Summary", "Paired differences", "Capacity by account", "Curves", "Heat maps", "Utilization and queue over time",
        "Run by run", "Runs",
    ]  # fmt: skip
    report.assert_quiet()


def test_the_file_names_no_address_from_which_a_browser_would_load(directory: Path) -> None:
    page = (directory / "report.html").read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link|img|iframe|object|embed)\b[^>]*>", page.split("<body>")[0])
    assert tags
    assert not [tag for tag in tags if re.search(r"""(?:src|href)\s*=\s*["']?(?!["']?data:)""", tag)]


@pytest.mark.parametrize("width", [390, 700, 1300])
def test_nothing_is_wider_than_the_window(opener: Open, directory: Path, width: int) -> None:
    narrow = opener(directory / "report.html", width=width)
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= width
    below = "Bokeh.documents[0].get_model_by_name('curves linear').below.map((model) => model.type)"
    assert ("Legend" in narrow.page.evaluate(below)) == (width < 600)  # beside a narrow plot it would leave no width
    narrow.assert_quiet()


# Tables.


def column_of(report: Opened, name: str, heading: str) -> list[str]:
    """Return the cells of a column of the first table of a section, from top to bottom."""
    table = section(report, name).locator("table.data").first
    place = table.locator("thead th").all_inner_texts().index(heading)
    return table.locator(f"tbody tr td:nth-child({place + 1})").all_inner_texts()


def download(report: Opened, name: str) -> pd.DataFrame:
    """Download the table of a section, as a reader does, and return what the CSV file holds."""
    with report.page.expect_download() as expected:
        section(report, name).locator("button.csv").first.click()
    return pd.read_csv(expected.value.path(), keep_default_na=True)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_headings_sort_the_summary(report: Opened, results: pd.DataFrame) -> None:
    means = results.groupby(["machine", "workload", "policy"], sort=False)["mean_wait_s"].mean()
    titles = section(report, "summary").locator("thead th").all_inner_texts()
    (title,) = [title for title in titles if title.startswith("mean wait (")]
    unit_s = {"s": 1, "min": 60, "h": 3600}[title.removeprefix("mean wait (").removesuffix(")")]

    def shown() -> list[float]:
        return [unit_s * number(text.partition(" ±")[0]) for text in column_of(report, "summary", title)]

    assert shown() == pytest.approx(list(means), abs=0.0501 * unit_s)
    heading = section(report, "summary").get_by_role("button", name=title, exact=True)
    for ascending in (True, False):
        heading.click()
        report.settle()
        assert shown() == pytest.approx(sorted(means, reverse=not ascending), abs=0.0501 * unit_s)
        by_wait = means.sort_values(ascending=ascending)
        best = [name for name, wait in zip(by_wait.index, by_wait, strict=True) if wait == by_wait.iloc[0]]
        assert column_of(report, "summary", "policy")[0] in {policy for *_, policy in best}


def test_headings_sort_the_table_of_runs(report: Opened, results: pd.DataFrame) -> None:
    for name, clicks in (("seed", 2), ("policy", 1)):
        for _ in range(clicks):
            section(report, "runs").get_by_role("button", name=name, exact=True).click()
        report.settle()
        expected = sorted(results[name], reverse=clicks == 2)
        assert column_of(report, "runs", name) == [str(value) for value in expected]


# Curves.


@pytest.mark.parametrize("metric", ["mean_wait_s", "utilization", "kappa", "wasted_load"])
@pytest.mark.parametrize("machine", ["ours", "wider"])
def test_curves_are_the_means_and_their_intervals(report: Opened, results: pd.DataFrame, metric: str, machine: str) -> None:
    choose(report, "metrics", "measure", metric)
    choose(report, "metrics", "machine", machine)
    for place, policy in enumerate(POLICIES):
        expected = []
        for at, load in enumerate((0.6, 0.95)):
            runs = results[(results.machine == machine) & (results.workload == f"load {load}") & (results.policy == policy)]
            values = pd.to_numeric(runs[metric]).dropna()
            if len(values) == 0:
                continue
            half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
            expected.append((at, values.mean(), values.mean() - half, values.mean() + half))
        drawn = report.drawn("curves linear", 3 * place + 1)
        assert len(drawn) == len(expected)
        if expected:
            np.testing.assert_allclose(drawn[["x", "y", "low", "high"]].to_numpy(dtype=float), expected, rtol=1e-9, atol=1e-12)
            assert all(f"policy: {policy}" in point for point in drawn["point"])


def test_curves_against_other_things(report: Opened, results: pd.DataFrame) -> None:
    choose(report, "metrics", "measure", "mean_response_s")
    choose(report, "metrics", "machine", "wider")
    choose(report, "metrics", "against", "utilization")
    means = results.groupby(["machine", "workload", "policy"])[["utilization", "mean_response_s"]].mean()
    expected = means.loc["wider"].xs("easy", level="policy").loc[["load 0.6", "load 0.95"]]  # points follow the workloads
    drawn = report.drawn("curves linear", 1)[["x", "y"]].to_numpy()
    np.testing.assert_allclose(drawn, expected.to_numpy(dtype=float))
    choose(report, "metrics", "against", "policy")
    choose(report, "metrics", "workload", "load 0.95")
    for place, policy in enumerate(POLICIES):
        drawn = report.drawn("curves linear", 3 * place + 1)[["x", "y"]].to_numpy()
        np.testing.assert_allclose(drawn, [[place, means.loc[("wider", "load 0.95", policy), "mean_response_s"]]])
    choose(report, "metrics", "against", "machine")
    assert report.do("return of('curves linear').below[0].axis_label") == "machine"
    assert len(report.drawn("curves linear", 1)) == 2
    choose(report, "metrics", "against", "workload")


def test_a_logarithmic_scale_shows_the_same_means(report: Opened) -> None:
    choose(report, "metrics", "measure", "mean_response_s")
    linear = report.drawn("curves linear", 1)
    choose(report, "metrics", "scale", "logarithmic")
    assert report.do("return ['linear', 'logarithmic'].map((scale) => of(`curves ${scale}`).visible)") == [False, True]
    pd.testing.assert_frame_equal(report.drawn("curves logarithmic", 1).drop(columns="low"), linear.drop(columns="low"))
    low, high = report.range_of("curves logarithmic", "y")
    assert 0 < low < linear["y"].min() <= linear["y"].max() < high
    choose(report, "metrics", "scale", "linear")


def test_a_box_zooms_and_reset_comes_back(report: Opened) -> None:
    before = report.range_of("curves linear"), report.range_of("curves linear", "y")
    box = report.box("curves linear")
    mouse = report.page.mouse
    mouse.move(box["left"] + 0.3 * box["width"], box["top"] + 0.3 * box["height"])
    mouse.down()
    mouse.move(box["left"] + 0.6 * box["width"], box["top"] + 0.6 * box["height"], steps=5)
    mouse.up()
    report.settle()
    (left, right), (start, end) = before[0], report.range_of("curves linear")
    assert (start, end) == pytest.approx((left + 0.3 * (right - left), left + 0.6 * (right - left)), abs=0.01 * (right - left))
    section(report, "metrics").locator("[title=Reset]").click()
    report.settle()
    assert (report.range_of("curves linear"), report.range_of("curves linear", "y")) == before


def tooltip(report: Opened, plot: str, x: float, y: float) -> str:
    """Point at a place of a plot and return what its tooltip says."""
    left, top = report.at(plot, x, y)
    report.page.mouse.move(left - 40, top - 7)
    report.page.mouse.move(left, top, steps=3)
    report.settle()
    return " ".join(" ".join(report.page.locator(".bk-tooltip-content").all_inner_texts()).split())


def test_a_point_tells_what_it_is(report: Opened, results: pd.DataFrame) -> None:
    choose(report, "metrics", "machine", "ours")
    choose(report, "metrics", "measure", "mean_response_s")
    point = report.drawn("curves linear", 3 * POLICIES.index(SHARED) + 1).iloc[1]
    said = tooltip(report, "curves linear", point.x, point.y)
    for fact in (f"policy: {SHARED}", "machine: ours", "workload: load 0.95", f"mean: {point.y:,.4f}", "runs: 2"):
        assert fact in said


def test_the_legend_hides_a_policy(report: Opened) -> None:
    item = section(report, "metrics").locator(".bk-item:visible", has_text="pv-easy")
    for hidden in (True, False):
        item.click()
        report.settle()
        visible = report.do("return of('curves linear').renderers.map((one) => one.visible)")
        assert visible == [True] * 6 + [not hidden] * 3
        high = report.range_of("curves linear", "y")[1]
        drawn = [report.drawn("curves linear", 3 * place + 1)["high"].max() for place in range(2 if hidden else 3)]
        assert max(drawn) < high < max(drawn) + 0.2 * (max(drawn) - report.range_of("curves linear", "y")[0])


def test_utilization_and_queue_over_time_average_the_states(report: Opened, directory: Path, results: pd.DataFrame) -> None:
    choose(report, "over-time", "runs", "wider, load 0.95, replication 2")
    runs = results[(results.machine == "wider") & (results.workload == "load 0.95") & (results.replication == 2)]
    for place, run in enumerate(runs.itertuples()):
        with Store.read(directory) as store:
            states = store.states_over_time(run.run)
        times = states["time_s"].to_numpy() - states["time_s"].iloc[0]
        lengths = np.append(np.diff(times), 0.0)
        for plot, values in (("busy", states["busy_nodes"] / 80), ("waiting", states["waiting_jobs"])):
            drawn = report.drawn(f"over time {plot}", place)
            area = float((np.diff(drawn["x"]) * drawn["y"][:-1]).sum()) * DAY_S
            assert area == pytest.approx(float((lengths * values).sum()), rel=1e-3, abs=1.0)
        busy = report.drawn("over time busy", place)
        assert busy["y"].max() <= 1.0
        assert busy["x"].iloc[-1] * DAY_S == pytest.approx(max(runs["horizon_s"]), rel=1e-6)


def test_a_curve_over_time_tells_its_mean(report: Opened) -> None:
    choose(report, "over-time", "runs", "ours, load 0.95, replication 1")
    for plot in ("busy", "waiting"):
        curves = [report.drawn(f"over time {plot}", number) for number in range(len(POLICIES))]
        means = np.array([curve["y"] for curve in curves])
        apart = np.abs(means[1:] - means[0]).min(axis=0) / means.max()  # of the first curve from the others
        place = int(np.argmax(np.where((means[0] > 0.1) & (means[0] < 0.9 * means.max()), apart, 0.0)))
        assert apart[place] > 0.2
        x, y = curves[0]["x"], means[0]
        said = tooltip(report, f"over time {plot}", (x[place] + x[place + 1]) / 2, y[place])
        assert said == f"{POLICIES[0]} time: {x[place]:.2f} mean: {y[place]:.3f}"


# The viewer.


@pytest.mark.whole
def test_memory_and_the_store_have_curves_over_time_where_they_are_limited(opener: Open, tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=60, nodes=16, load=0.9).with_default_memory(2)
    store = Checkpointing(interval_s=1800, store=CheckpointStore(bandwidth_gib_s=0.5))
    limits = {"none": {}, "memory": {"node_memory_gib": 4}, "store": {"checkpointing": store}}
    limits["memory and store"] = limits["memory"] | limits["store"]
    machines = {name: Machine(nodes=16, **more) for name, more in limits.items()}
    report = made(tmp_path, opener, Study.grid(name="limits", machines=machines, workloads={"jobs": jobs}, policies=["ss"]))
    with Store.read(tmp_path) as results:
        states = dict(zip(limits, map(results.states_over_time, results.results()["run"]), strict=True))
    for number, (limited, known) in enumerate(states.items()):
        span_s, lengths = np.ptp(known["time_s"]), np.diff(known["time_s"])
        for name in ("memory", "store"):
            drawn = report.drawn(f"over time {name}", number)
            assert (len(drawn) > 0, f"{name}_share" in known) == (name in limited, name in limited)
            if name in limited:
                mean = float((np.diff(drawn["x"]) * drawn["y"][:-1]).sum()) * HOUR_S / span_s
                assert mean == pytest.approx(float((lengths * known[f"{name}_share"][:-1]).sum() / span_s), rel=1e-3)
                assert 0.01 < mean < drawn["y"].max() <= 1.0
    report.assert_quiet()


def slide(report: Opened, event: int) -> None:
    """Move the slider to an event."""
    report.page.locator("#event").fill(str(event))
    report.settle()


def slid(report: Opened) -> int:
    """Return the event at which the slider is."""
    return int(report.page.locator("#event").input_value())


def instant(report: Opened, panel: int = 1) -> str:
    """Return what stands above the matrix."""
    return report.page.locator(f"#instant-{panel}").inner_text()


def look_into(report: Opened, results: pd.DataFrame, policy: str, machine: str = "ours", workload: str = "load 0.95") -> str:
    """Choose a run and return its key."""
    runs = results[(results.machine == machine) & (results.workload == workload) & (results.policy == policy)]
    key: str = runs[runs.replication == 1]["run"].item()
    choose(report, "viewer", "run", f"{policy} · {machine} · {workload} · {key[:8]}")
    return key


def tables(directory: Path, key: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return placements and states of a run, in seconds since its first submission."""
    with Store.read(directory) as store:
        placements, states = store.placements(key), store.states_over_time(key)
    start = states["time_s"].iloc[0]
    for table, names in ((placements, ["begin_s", "end_s"]), (states, ["time_s"])):
        table[names] -= start
    return placements.rename(columns={"first_node": "first"}), states


def places(boxes: pd.DataFrame) -> set[tuple[object, ...]]:
    """Return what stands where in the matrix that is drawn."""
    row, first = (boxes["bottom"] + boxes["top"]) / 2, boxes["left"] + 0.5
    nodes = boxes["right"] - boxes["left"]
    rounded = (column.round(6).astype(int) for column in (row, first, nodes))
    return set(zip(boxes["job"], *rounded, boxes["kind"], strict=True))


def assert_matrix(report: Opened, directory: Path, key: str, event: int) -> None:
    """Assert that the matrix and its title show a run from an event on, the first of which is 1."""
    placements, states = tables(directory, key)
    state = states.iloc[event - 1]
    there = placements[(placements.begin_s <= state.time_s) & (state.time_s < placements.end_s)]
    expected = set(there[PLACE].itertuples(index=False, name=None))
    boxes = report.drawn("matrix 1")
    assert len(boxes) == len(expected)
    assert (places(boxes) if len(boxes) else set()) == expected
    row = int(state.running_row)
    frame = report.drawn("matrix 1", -1)
    assert (((frame["bottom"] + frame["top"]) / 2).tolist() if len(frame) else []) == ([row] if row >= 0 else [])
    title = instant(report)
    assert f"(event {event} of {len(states):,})" in title
    jobs, waiting = there["job"].nunique(), int(state.waiting_jobs)
    assert f": {jobs} job{'s' * (jobs != 1)} on the nodes, {waiting} job{'s' * (waiting != 1)} waiting" in title
    assert (f"; row {row} runs first" in title) == (row >= 0)
    now = report.do("return of('gantt 1').center.find((one) => one.type === 'Span').location")
    assert now == pytest.approx(state.time_s / DAY_S)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_slider_moves_the_matrix(report: Opened, directory: Path, results: pd.DataFrame, policy: str) -> None:
    key = look_into(report, results, policy)
    _, states = tables(directory, key)
    seen = set()
    for event in np.linspace(1, len(states), 9).astype(int).tolist():
        slide(report, event)
        assert_matrix(report, directory, key, event)
        seen.add(instant(report))
    assert len(seen) == 9
    assert len(report.drawn("matrix 1")) == 0  # after the last end


def test_arrow_keys_move_the_slider_by_one_event(report: Opened, directory: Path, results: pd.DataFrame) -> None:
    key = look_into(report, results, SHARED)
    slide(report, 60)
    handle = report.page.locator("#event")
    handle.focus()
    for pressed, event in (("ArrowRight", 61), ("ArrowRight", 62), ("ArrowLeft", 61)):
        handle.press(pressed)
        report.settle()
        assert slid(report) == event
        assert_matrix(report, directory, key, event)


def test_a_click_into_the_chart_goes_to_the_event_there(report: Opened, directory: Path, results: pd.DataFrame) -> None:
    key = look_into(report, results, SHARED)
    _, states = tables(directory, key)
    start, end = report.range_of("gantt 1")
    for share in (0.25, 0.8):
        x = start + share * (end - start)
        report.page.mouse.click(*report.at("gantt 1", x, report.range_of("gantt 1", "y")[0] * 0.5))
        report.settle()
        event = slid(report)
        pixel = (end - start) / report.box("gantt 1")["width"] * DAY_S
        assert (states.time_s <= x * DAY_S - pixel).sum() <= event <= (states.time_s <= x * DAY_S + pixel).sum()
        assert_matrix(report, directory, key, event)
        assert report.range_of("gantt 1") == (start, end)


def test_panning_does_not_snap_back_and_the_slider_brings_the_window_along(
    report: Opened, directory: Path, results: pd.DataFrame
) -> None:
    look_into(report, results, "easy")
    start, end = report.range_of("gantt 1")
    report.do("const {x_range} = of('gantt 1'); x_range.setv({start: given[0], end: given[1]})", [start, (start + end) / 2])
    event = slid(report)
    start, end = report.range_of("gantt 1")
    box = report.box("gantt 1")
    mouse = report.page.mouse
    mouse.move(box["left"] + 0.2 * box["width"], box["top"] + 20)
    mouse.down()
    mouse.move(box["left"] + 0.9 * box["width"], box["top"] + 20, steps=6)
    mouse.up()
    report.settle()
    moved = report.range_of("gantt 1")
    assert moved == pytest.approx((start - 0.7 * (end - start), end - 0.7 * (end - start)), abs=0.02 * (end - start))
    assert slid(report) == event
    assert report.range_of("gantt 1") == moved
    slide(report, int(report.page.locator("#event").get_attribute("max")))
    now = report.do("return of('gantt 1').center.find((one) => one.type === 'Span').location")
    assert now > moved[1]
    start, end = report.range_of("gantt 1")
    assert (start + end) / 2 == pytest.approx(now)
    assert end - start == pytest.approx(moved[1] - moved[0])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_chart_draws_exactly_the_pieces_in_its_window(
    report: Opened, directory: Path, results: pd.DataFrame, policy: str
) -> None:
    key = look_into(report, results, policy)
    placements, states = tables(directory, key)
    whole = states.time_s.iloc[-1]
    for first, last in ((0.0, whole), (0.2 * whole, 0.3 * whole), (-2 * whole, -whole)):
        report.do("of('gantt 1').x_range.setv({start: given[0], end: given[1]})", [first / DAY_S, last / DAY_S])
        shown = placements[(placements.begin_s < last) & (placements.end_s > first)]
        drawn = report.drawn("gantt 1")
        assert len(drawn) == len(shown)
        if len(shown):
            assert drawn["job"].tolist() == shown["job"].tolist()
            assert drawn["kind"].tolist() == shown["kind"].tolist()
            np.testing.assert_allclose(drawn["left"] * DAY_S, shown["begin_s"], atol=1e-6)
            np.testing.assert_allclose(drawn["right"] * DAY_S, shown["end_s"], atol=1e-6)
            np.testing.assert_allclose(drawn["top"] - drawn["bottom"], shown["nodes"])
            apart = NODES + 0.04 * NODES if shown["row"].max() else 0.0
            np.testing.assert_allclose(drawn["bottom"] + 0.5, shown["row"] * apart + shown["first"])


def test_a_rectangle_tells_whose_it_is(report: Opened, directory: Path, results: pd.DataFrame) -> None:
    key = look_into(report, results, "easy")
    with Store.read(directory) as store:
        records = store.records(key)
    drawn = report.drawn("gantt 1")
    widest = drawn.iloc[((drawn["right"] - drawn["left"]) * (drawn["top"] - drawn["bottom"])).argmax()]
    start, end = report.range_of("gantt 1")
    middle = (max(widest.left, start) + min(widest.right, end)) / 2
    said = tooltip(report, "gantt 1", middle, (widest.bottom + widest.top) / 2)
    job = records[records["job"] == widest.job].iloc[0]
    assert f"job: {job.job} user: {job.user} nodes: {job.nodes} " in said
    assert "run" in said


def test_the_whole_study_was_looked_at_in_silence(report: Opened) -> None:
    report.assert_quiet()


@pytest.mark.whole
def test_of_many_rectangles_the_largest_are_drawn_and_a_note_says_so(opener: Open, tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=5_000, nodes=430, load=0.95)
    report = made(tmp_path, opener, Study.grid(name="many", workloads={"w": jobs}, policies=["easy"]))
    with Store.read(tmp_path) as store:
        placements = store.placements(store.results()["run"].item())
    assert len(placements) > 15_000
    note = report.page.locator("#note-1")
    assert note.inner_text() == ""
    report.do("const whole = of('overview 1').x_range; of('gantt 1').x_range.setv({start: whole.start, end: whole.end})")
    assert note.inner_text() == f"The 15,000 largest of {len(placements):,} rectangles are drawn; choose a shorter time."
    drawn = report.drawn("gantt 1")
    size = ((placements["end_s"] - placements["begin_s"]) * placements["nodes"]).sort_values(ascending=False)
    drawn_size = ((drawn["right"] - drawn["left"]) * (drawn["top"] - drawn["bottom"])).sort_values(ascending=False) * DAY_S
    np.testing.assert_allclose(drawn_size, size.iloc[:15_000], rtol=1e-6)
    report.assert_quiet()


# Provenance.


def test_provenance_has_every_run_with_all_that_its_numbers_depend_on(report: Opened, directory: Path) -> None:
    with Store.read(directory) as store:
        runs = [store.run(entry.key) for entry in store.entries()]
    assert len(runs) == 24
    text = report.page.locator("#provenance ~ details").evaluate_all("all => all.map((e) => [e.id, e.textContent])")
    shown = dict(text)
    assert list(shown) == [f"run-{run.key}" for run in runs]
    for run in runs:
        block = shown[f"run-{run.key}"]
        assert f"policy {run.factors['policy']}" in block
        assert json.dumps(run.specification, indent=1, ensure_ascii=False) in block
        for source in run.sources:
            assert source in block
        for package, number_of in run.versions.items():
            assert f"{package} {number_of}" in block
    rows = report.page.locator("#provenance ~ table tr")
    facts = dict(rows.evaluate_all("all => all.map((e) => [...e.cells].map((c) => c.innerText))"))
    assert (facts["study"], facts["warm-up left out"], facts["directory"]) == ("a small study", "0 s", str(directory))


def test_failed_and_missing_runs_and_the_warm_up_are_said(opener: Open, tmp_path: Path) -> None:
    from clustermodel.policies.fcfs import Fcfs

    class Failing(Fcfs):
        name = "failing"

        def decide(self, batch, view):
            raise RuntimeError("on the first line\nI cannot")

    study = Study.grid(
        name="s", workloads={"w": synthetic_workload(jobs=80)}, policies=["easy", "fcfs", Failing()], warm_up_s=1_000.0
    )
    with pytest.warns(UserWarning, match="1 run failed"):
        key = study.run(tmp_path, workers=1).frame["run"].iloc[1]
    (tmp_path / "states" / f"{key}.parquet").unlink()
    with Store.read(tmp_path) as store:
        assert store.states() == {"pending": 1, "done": 1, "failed": 1}
    write_report(tmp_path, tmp_path / "report.html")
    report = opener(tmp_path / "report.html")
    text = report.page.locator("body").inner_text()
    said = "1 of 3 runs are done. 1 run failed. 1 run missing: the study has not been run to its end."
    assert said in " ".join(text.split())
    assert "leave out jobs submitted in the first 1,000 s." in text
    failed = report.page.locator("#failed + dl")
    assert failed.locator("dt").all_inner_texts() == ["workload w, policy failing, replication 1"]
    (error,) = failed.locator("dd").all_inner_texts()
    line = Failing.decide.__code__.co_firstlineno + 1
    assert error.endswith(f"test_html_report.py:{line}: RuntimeError: on the first line I cannot")
    assert key not in text
    report.assert_quiet()


# Other studies.


@pytest.mark.whole
def test_a_study_of_scenarios(opener: Open, tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=60, nodes=32)
    scenarios = [
        Scenario(workload=jobs, machine=Machine(nodes=nodes), policy=policy, name=f"{policy} on {nodes}")
        for nodes in (32, 40) for policy in ("easy", "fcfs")
    ]  # fmt: skip
    report = made(tmp_path, opener, Study.of_scenarios("s", scenarios))
    assert column_of(report, "summary", "scenario") == ["easy on 32", "fcfs on 32", "easy on 40", "fcfs on 40"]
    assert report.page.locator("#run-1 option").count() == 4
    report.assert_quiet()


@pytest.mark.whole
def test_a_study_with_one_run(opener: Open, tmp_path: Path) -> None:
    report = made(tmp_path, opener, Study.grid(name="one", workloads={"w": synthetic_workload(jobs=60)}, policies=["easy"]))
    assert "1 of 1 run is done." in report.page.locator("body").inner_text()
    drawn = report.drawn("curves linear", 1)
    with Store.read(tmp_path) as store:
        assert drawn["y"].tolist() == store.results()["mean_response_s"].tolist()
    assert "±" not in section(report, "summary").locator("table").inner_text()
    report.assert_quiet()


@pytest.mark.whole
def test_a_run_of_one_job(opener: Open, tmp_path: Path) -> None:
    jobs = Workload.from_jobs([Job(id=7, nodes=3, submit_s=5, run_s=10)], name="w")
    machine = Machine(nodes=4, time_slicing=TimeSlicing())
    study = Study.grid(name="s", machines={"m": machine}, workloads={"w": jobs}, policies=["easy", "bgs"], history=True)
    report = made(tmp_path, opener, study)
    for place, running in ((0, ""), (1, "; row 0 runs first")):
        report.page.locator("#run-1").select_option(str(place))
        report.settle()
        slide(report, 1)
        assert instant(report) == (f"at 0 seconds (event 1 of 2): 1 job on the nodes, 0 jobs waiting{running}")
        boxes = report.drawn("matrix 1")
        assert boxes[["job", "left", "right"]].to_numpy().tolist() == [[7, -0.5, 2.5]]
        assert report.drawn("gantt 1")[["left", "right"]].to_numpy().tolist() == [[0, 10]]
    report.assert_quiet()


@pytest.mark.whole
def test_runs_in_which_all_jobs_were_rejected(opener: Open, tmp_path: Path) -> None:
    wide = Workload.from_jobs([Job(id=i, nodes=20, submit_s=5 * i, run_s=10) for i in range(3)], name="wide")
    machine = Machine(nodes=4, time_slicing=TimeSlicing())
    alone = Study.grid(name="s", machines={"m": machine}, workloads={"w": wide}, policies=["easy", "bgs"], history=True)
    report = made(tmp_path / "alone", opener, alone)
    assert "2 runs left out, in which no job ran." in section(report, "viewer").inner_text()
    assert column_of(report, "runs", "jobs") == ["0", "0"]
    report.assert_quiet()
    both = {"w": wide, "v": Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=10)], name="v")}
    mixed = made(tmp_path / "mixed", opener, Study.grid(name="s", machines={"m": machine}, workloads=both, policies=["easy"]))
    assert "1 run left out, in which no job ran." in section(mixed, "viewer").inner_text()
    assert mixed.page.locator("#run-1 option").count() == 1
    for measure in mixed.page.locator("#curves-measure option").evaluate_all("all => all.map((one) => one.value)"):
        mixed.page.locator("#curves-measure").select_option(measure)
        mixed.settle()
    mixed.assert_quiet()


@pytest.mark.whole
def test_a_run_that_shared_nodes_in_time_without_history_is_said(opener: Open, tmp_path: Path) -> None:
    machine = Machine(nodes=32, time_slicing=TimeSlicing())
    jobs = {"w": synthetic_workload(jobs=60, nodes=32)}
    report = made(tmp_path, opener, Study.grid(name="s", machines={"m": machine}, workloads=jobs, policies=["easy", "bgs"]))
    said = section(report, "viewer").inner_text()
    assert "1 run kept no placements: give a study with time sharing history=True" in said
    assert [text.split()[0] for text in report.page.locator("#run-1 option").all_inner_texts()] == ["easy"]
    report.assert_quiet()


def test_the_runs_that_are_asked_for_are_looked_into(
    opener: Open, directory: Path, results: pd.DataFrame, tmp_path: Path
) -> None:
    keys = results[results["replication"] == 2]["run"].tolist()[:2]
    path = tmp_path / "chosen.html"
    write_report(directory, path, runs=[keys[0], keys[1][:10]])
    report = opener(path)
    assert {text[-8:] for text in report.page.locator("#run-1 option").all_inner_texts()} == {key[:8] for key in keys}
    report.assert_quiet()


@pytest.mark.whole
def test_ids_of_jobs_may_be_large(opener: Open, tmp_path: Path) -> None:
    ids = [2**40 + i for i in range(4)]
    jobs = Workload.from_jobs([Job(id=i, nodes=4, submit_s=0, run_s=10, user=2**33) for i in ids], name="w")
    study = Study.grid(name="s", machines={"m": Machine(nodes=4)}, workloads={"w": jobs}, policies=["fcfs"])
    report = made(tmp_path, opener, study)
    assert report.drawn("gantt 1")["job"].tolist() == ids
    report.assert_quiet()


# The command.


def test_the_command_writes_into_the_directory_or_where_it_is_told(
    command_line: Callable[..., object], directory: Path, tmp_path: Path
) -> None:
    path = tmp_path / "there.html"
    finished = command_line("report", directory, "--out", path)
    assert (finished.code, finished.out) == (0, "")
    assert finished.err == f"{path}: {path.stat().st_size / 1e6:.1f} MB\n"
    assert small_study().name in path.read_text(encoding="utf-8")
    assert [left.name for left in tmp_path.iterdir()] == ["there.html"]


def test_a_study_without_what_is_asked_for_is_one_line(
    command_line: Callable[..., object], directory: Path, tmp_path: Path
) -> None:
    pending = tmp_path / "pending"
    study = Study.grid(name="s", workloads={"w": synthetic_workload(jobs=20)}, policies=["easy"])
    Store.create(pending, study)
    for arguments, said in (
        ((tmp_path,), f"{tmp_path}: there is no study here (no study.json)"),
        ((pending,), f"{pending}: no run of this study is done; there is nothing to report"),
        ((directory, "--run", "zzz"), "--run: 'zzz' is not allowed; it must be the beginning of the key of a run that is done"),
    ):
        finished = command_line("report", *arguments)
        assert finished.code == 2
        assert len(finished.err.splitlines()) == 1
        assert finished.err.startswith(f"clustermodel: error: {said}")
        assert not list(tmp_path.glob("*.part"))


def test_a_place_that_cannot_be_written_is_one_line(
    command_line: Callable[..., object], directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clustermodel.report.html.report_page", lambda *_: "a page")
    for path, said in (
        (tmp_path / "no/such/place.html", "No such file or directory"), (tmp_path, "Is a directory"), ("/", ""),
        (directory / "study.json/r.html", "Not a directory"),
    ):  # fmt: skip
        finished = command_line("report", directory, "--out", path)
        assert finished.code == 1
        assert len(finished.err.splitlines()) == 1
        assert finished.err.startswith(f"clustermodel: error: {path}: cannot be written: {said}")
        assert not list(tmp_path.glob("*.part"))


def test_a_report_that_cannot_be_finished_leaves_the_one_before(
    command_line: Callable[..., object], directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clustermodel.report.html.report_page", lambda *_: "a page")
    precious, path = tmp_path / "precious.txt", tmp_path / "r.html"
    precious.write_text("not ours")
    path.write_text("the one before")
    (tmp_path / "r.html.part").symlink_to(precious)  # a link beside the report is not followed

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        finished = command_line("report", directory, "--out", path)
        assert finished.code == 1
        assert finished.err == f"clustermodel: error: {path}: cannot be written: No space left on device\n"
        assert path.read_text() == "the one before"
    assert command_line("report", directory, "--out", path).code == 0
    assert (precious.read_text(), path.read_text()) == ("not ours", "a page")
    assert {left.name for left in tmp_path.iterdir()} == {"precious.txt", "r.html", "r.html.part"}


def test_a_recorded_schedule_is_above_the_simulated_one(opener: Open, tmp_path: Path) -> None:
    """Job 1 is suspended while job 2, which began later, holds its nodes; easy lets job 2 wait."""
    jobs = [Job(id=1, nodes=4, submit_s=0, run_s=7200), Job(id=2, nodes=4, submit_s=3600, run_s=3600)]
    columns = ["job", "begin_s", "end_s", "first_node", "nodes"]
    rows = [[1, 0, 3600, 0, 4], [2, 3600, 7200, 0, 4], [1, 7200, 10800, 0, 4]]
    workload = Workload.from_jobs(jobs, name="log").with_recorded_placements(pd.DataFrame(rows, columns=columns))
    report = made(
        tmp_path, opener, Study.grid(name="s", machines={"m": Machine(nodes=4)}, workloads={"w": workload}, policies=["easy"])
    )
    page = report.page
    assert page.locator("#run-1 option:checked").inner_text() == "recorded · w"
    assert page.locator("#run-2 option:checked").inner_text().startswith("easy")
    upper, lower = (page.locator(f"#panel-{number}").bounding_box() for number in (1, 2))
    assert upper["y"] + upper["height"] <= lower["y"]
    said = [page.locator(f"#instant-{number}").inner_text() for number in (1, 2)]
    assert ["1 job on the nodes, 1 job waiting" in text for text in said] == [True, True]
    report.assert_quiet()
