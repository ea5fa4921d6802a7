"""Tables, maps, comparisons and the job panel of a report, used as a reader uses them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clustermodel import StudyTable
from clustermodel.experiment.store import Store
from clustermodel.figures.capacity import ACCOUNT_COLOURS
from clustermodel.measure.metrics import quantity
from clustermodel.report.data import factor_of, title_of
from clustermodel.report.html import markdown
from tests.report.conftest import NODES, SHARED, Open, Opened
from tests.report.test_html_report import choose, column_of, download, number, section, slide
from tests.unit.test_labels import NAMES

pytestmark = pytest.mark.long

FACTORS = ["load", "quantum_s", "policy"]


@pytest.fixture(scope="module")
def report(opener: Open, numbers: tuple[Path, StudyTable]) -> Opened:
    """Return the report of the study with numeric factors."""
    return opener(numbers[0] / "report.html")


# Any factors.


def test_the_summary_has_the_shown_columns_with_the_wait_last_and_its_file_all_digits(
    report: Opened, numbers: tuple[Path, StudyTable]
) -> None:
    expected = numbers[1].means("mean_response_s", "thousand", "shared", "mean_wait_s")  # bgs shares nodes in time
    found = download(report, "summary")
    assert list(found.columns) == [
        *FACTORS, "replications", "mean_response_s", "mean_response_s_half", "thousand", "thousand_half", "shared",
        "shared_half", "mean_wait_s", "mean_wait_s_half",
    ]  # fmt: skip
    pd.testing.assert_frame_equal(found, expected[found.columns], check_dtype=False, rtol=1e-12)


def test_a_numeric_factor_has_a_scale(report: Opened, numbers: tuple[Path, StudyTable]) -> None:
    choose(report, "metrics", "against", "load")
    choose(report, "metrics", "quantum (s)", "600")
    for place, policy in enumerate(("fcfs", "easy", "bgs")):
        drawn = report.drawn("curves linear", 3 * place + 1)
        means = [numbers[1].interval("mean_response_s", load=load, quantum_s=600, policy=policy).mean for load in (5, 9, 10)]
        np.testing.assert_allclose(drawn[["x", "y"]], list(zip((5, 9, 10), means, strict=True)))
    choose(report, "metrics", "a curve for each", "quantum (s)")
    choose(report, "metrics", "policy", "bgs")
    for place, quantum in enumerate((60, 600)):
        mean = numbers[1].interval("mean_response_s", load=9.0, quantum_s=quantum, policy="bgs").mean
        assert report.drawn("curves linear", 3 * place + 1)["y"][1] == pytest.approx(mean)
    assert report.drawn("curves linear", 7).empty
    choose(report, "metrics", "a curve for each", "policy")


# Differences.


@pytest.mark.parametrize(("factor", "title", "baseline"), [("policy", "policy", "easy"), ("quantum_s", "quantum (s)", "60")])
def test_differences_from_the_chosen_baseline(
    report: Opened, numbers: tuple[Path, StudyTable], factor: str, title: str, baseline: str
) -> None:
    table = numbers[1]
    choose(report, "differences", "compare", title)
    choose(report, "differences", "baseline", baseline)
    found = download(report, "differences")
    for measure in ("mean_response_s", "thousand"):
        expected = table.differences(measure, factor, 60 if factor == "quantum_s" else baseline)
        assert found[FACTORS].to_numpy().tolist() == expected[FACTORS].to_numpy().tolist()
        np.testing.assert_allclose(found[f"{measure}_difference"], expected["difference"], atol=1e-9)
        np.testing.assert_allclose(found[f"{measure}_half"], expected["half"], atol=1e-9)
        assert found[f"{measure}_significant"].tolist() == expected["significant"].tolist()
    marked = section(report, "differences").locator("td.lower, td.higher").count()
    assert marked == 3 * int(found.filter(like="_significant").to_numpy().sum())


def test_marks_say_in_which_direction_a_difference_is_significant(report: Opened) -> None:
    choose(report, "differences", "compare", "policy")
    choose(report, "differences", "baseline", "fcfs")
    found = download(report, "differences")
    assert found["shared_significant"].tolist() == (found["policy"] == "bgs").tolist()
    rows = section(report, "differences").locator("tbody tr")
    at = list(found["policy"]).index("bgs")
    assert "▲" in rows.nth(at).inner_text()
    choose(report, "differences", "baseline", "bgs")
    assert "▼" in rows.nth(0).inner_text()


# Capacity and maps.


def test_the_bars_are_the_accounts_of_the_ledger(report: Opened, numbers: tuple[Path, StudyTable]) -> None:
    found = download(report, "capacity")
    assert list(found.columns) == [*FACTORS, *ACCOUNT_COLOURS]
    np.testing.assert_allclose(found[list(ACCOUNT_COLOURS)].sum(axis=1), 1.0)
    for row in found.to_dict("records"):
        point = {name: row[name] for name in FACTORS}
        assert row["useful work"] == pytest.approx(numbers[1].interval("useful_share", **point).mean)
    bars = section(report, "capacity").locator(".bar")
    assert bars.count() == len(found)
    widths = bars.first.evaluate("bar => [...bar.children].map((one) => one.getBoundingClientRect().width / bar.clientWidth)")
    assert widths == pytest.approx([share for share in found.loc[0, list(ACCOUNT_COLOURS)] if share > 0], abs=0.01)


def test_a_heat_map_of_means_and_of_differences(report: Opened, numbers: tuple[Path, StudyTable]) -> None:
    table = numbers[1]
    choose(report, "maps", "measure", "mean_response_s")
    choose(report, "maps", "policy", "bgs")
    found = download(report, "maps").set_index("quantum_s")
    assert list(found.columns) == ["5", "9", "10"]
    assert list(found.index) == [600, 60]  # upwards
    for quantum, load in ((60, 5.0), (600, 10.0)):
        mean = table.interval("mean_response_s", load=load, quantum_s=quantum, policy="bgs").mean
        assert found.loc[quantum, f"{load:g}"] == pytest.approx(mean)
    choose(report, "maps", "show", "differences from fcfs")
    found = download(report, "maps").set_index("quantum_s")
    expected = table.differences("mean_response_s", "policy", "fcfs")
    tied = int((~expected[expected["policy"] == "bgs"]["significant"]).sum())
    assert section(report, "maps").locator("td.tied").count() == tied
    row = expected[(expected["policy"] == "bgs") & (expected["load"] == 10.0) & (expected["quantum_s"] == 60)].iloc[0]
    base = table.interval("mean_response_s", load=10.0, quantum_s=60, policy="fcfs").mean
    assert found.loc[60, "10"] == pytest.approx(row["difference"] / base)
    choose(report, "maps", "across", "policy")
    assert column_of(report, "maps", "fcfs") == ["-", "-"]  # the baseline itself
    choose(report, "maps", "down", "policy")
    assert "Choose two different factors." in section(report, "maps").inner_text()
    report.page.locator("#maps-show").select_option("")
    choose(report, "maps", "across", "load")
    choose(report, "maps", "down", "quantum (s)")


# The study's own text, tables and figures.


def test_the_text_is_markdown_without_tags_scripts_and_pictures_from_elsewhere(report: Opened) -> None:
    text = report.page.locator(".study-text")
    assert text.locator("h1").inner_text() == "Question"
    assert text.locator("em").inner_text() == "sharing"
    assert text.locator("table td").all_inner_texts() == ["0.5", "no"]
    assert "<script>window.hacked=1</script>" in text.inner_text()
    assert text.locator("script, img").count() == 0
    assert text.locator("a[href^=javascript]").count() == 0
    report.assert_quiet()


@pytest.mark.parametrize(
    "text", ["<b onclick=x>", "&lt;b&gt;", "[a](javascript:b)", "![a](http://b)", "a\x1b\u202eb", "<!-- -->"]
)
def test_markdown_of_strangers_stays_text(text: str) -> None:
    assert not any(mark in markdown(text) for mark in ("<b ", "<b>", 'href="javascript', "<img", "\x1b", "\u202e", "<!--"))


def test_the_page_says_what_was_simulated(report: Opened) -> None:
    rows = report.page.locator("table.facts").first.locator("tr").all_inner_texts()
    assert rows[0].startswith("machine\tnodes ")
    assert rows[1].startswith("jobs\t")
    assert "EASY backfilling." in "".join(rows[2:])


def test_exhibits_are_in_the_page(report: Opened, numbers: tuple[Path, StudyTable]) -> None:
    found = download(report, "exhibits")
    expected = numbers[1].lowest("mean_response_s")
    assert found["lowest"].tolist() == expected["lowest"].tolist()
    np.testing.assert_allclose(found["mean_response_s"], expected["mean_response_s"])
    image = section(report, "exhibits").locator("img")
    assert image.evaluate("one => one.complete && one.naturalWidth") > 300
    assert section(report, "exhibits").locator("figcaption").inner_text() == "=waits <b>"


def test_the_file_of_runs_is_the_table(report: Opened, numbers: tuple[Path, StudyTable]) -> None:
    found, frame = download(report, "runs"), numbers[1].frame
    assert len(found) == len(frame)
    for name in (*FACTORS, "replication", "seed", "run", "mean_wait_s", "kappa", "useful_node_s", "thousand"):
        assert found[name].tolist() == frame[name].tolist(), name


def test_texts_in_files_are_no_formulas(report: Opened) -> None:
    written = report.do("""
        const table = document.createElement("table");
        table.className = "data";
        table.dataset.name = "made";
        const head = "<thead><tr><th>a</th><th class=number>b</th></tr></thead>";
        table.innerHTML = head + "<tbody><tr><td></td><td data-v=-1>-1.0</td></tr></tbody>";
        table.rows[1].cells[0].textContent = '=1+"x",y';
        const button = document.createElement("button");
        button.className = "csv";
        const box = document.createElement("div");
        box.append(table);
        document.body.append(box, button);
        let link = null;
        const made = URL.createObjectURL;
        URL.createObjectURL = (blob) => { link = blob; return made.call(URL, blob) };
        HTMLAnchorElement.prototype.click = () => {};
        button.click();
        URL.createObjectURL = made;
        delete HTMLAnchorElement.prototype.click;
        box.remove(); button.remove();
        return link.text();
    """)
    assert written == 'a,b\n"\'=1+""x"",y",-1\n'


# Time series.


def test_first_replications_come_before_second_ones(opener: Open, directory: Path) -> None:
    report = opener(directory / "report.html")
    groups = report.page.locator("#over-time-runs option").all_inner_texts()
    assert [int(text[-1]) for text in groups] == [1] * 4 + [2] * 4
    report.page.close()


# Two runs, and a job.


@pytest.fixture(scope="module")
def small(opener: Open, directory: Path) -> Opened:
    """Return the report of the small study."""
    return opener(directory / "report.html")


def two_runs(report: Opened, results: pd.DataFrame) -> list[str]:
    """Show EASY beside the policy that shares nodes in time, and return the keys of the runs."""
    where = (results["workload"] == "load 0.95") & (results["machine"] == "ours") & (results["replication"] == 1)
    keys = [results[where & (results["policy"] == policy)]["run"].item() for policy in ("easy", SHARED)]
    for title, policy, key in zip(("run", "beside it"), ("easy", SHARED), keys, strict=True):
        choose(report, "viewer", title, f"{policy} · ours · load 0.95 · {key[:8]}")
    return keys


def test_two_runs_share_one_slider_and_one_window(small: Opened, directory: Path, results: pd.DataFrame) -> None:
    keys = two_runs(small, results)
    with Store.read(directory) as store:
        states, placements = ([read(key) for key in keys] for read in (store.states_over_time, store.placements))
    times = sorted({time for of in states for time in of["time_s"] - of["time_s"].iloc[0]})
    assert int(small.page.locator("#event").get_attribute("max")) == len(times)
    for event in np.linspace(1, len(times), 5).astype(int).tolist():
        slide(small, event)
        for panel, (of, places) in enumerate(zip(states, placements, strict=True), start=1):
            start = of["time_s"].iloc[0]
            at = int((of["time_s"] - start <= times[event - 1]).sum())
            assert f"(event {at} of {len(of)})" in small.page.locator(f"#instant-{panel}").inner_text()
            now = of["time_s"].iloc[at - 1]
            there = places[(places["begin_s"] <= now) & (now < places["end_s"])]
            assert sorted(small.drawn(f"matrix {panel}")["job"]) == sorted(there["job"])
    assert small.range_of("gantt 1") == small.range_of("gantt 2")
    left, right = small.box("gantt 1"), small.box("gantt 2")
    assert left["left"] + left["width"] < right["left"]
    assert left["top"] == pytest.approx(right["top"], abs=2)
    choose(small, "viewer", "beside it", "no other run")
    assert not small.page.locator("#panel-2").is_visible()


def test_a_click_on_a_job_shows_its_pieces_in_both_runs(small: Opened, directory: Path, results: pd.DataFrame) -> None:
    keys = two_runs(small, results)
    small.do("const whole = of('overview 1').x_range; of('gantt 1').x_range.setv({start: whole.start, end: whole.end})")
    drawn = small.drawn("gantt 1")
    largest = drawn.iloc[((drawn["right"] - drawn["left"]) * (drawn["top"] - drawn["bottom"])).argmax()]
    small.page.mouse.click(*small.at("gantt 1", (largest.left + largest.right) / 2, (largest.bottom + largest.top) / 2))
    small.settle()
    job, panel = int(largest["job"]), small.page.locator("#job")
    assert panel.locator("h3").inner_text() == f"Job {job}"
    facts = {
        row[0]: row[1:]
        for row in panel.locator(".facts tr").evaluate_all("all => all.map((one) => [...one.cells].map((c) => c.innerText))")
    }
    found = download_of(small)
    pieces = []
    with Store.read(directory) as store:
        for column, key in enumerate(keys):
            record = store.records(key).set_index("job").loc[job]
            assert number(facts["wait"][column].removesuffix(" s")) == pytest.approx(record["wait_s"], rel=1e-6, abs=1e-3)
            assert number(facts["response"][column].removesuffix(" s")) == pytest.approx(record["response_s"], rel=1e-6)
            slowdown = max(record["response_s"], 10) / max(record["run_s"], 10)
            assert number(facts["bounded slowdown"][column]) == pytest.approx(slowdown, abs=1e-3)
            assert ("backfilled" in facts["start"][column]) == record["backfilled"]
            start = store.states_over_time(key)["time_s"].iloc[0]
            places = store.placements(key)
            places = places[places["job"] == job]
            pieces += list(zip(places["begin_s"] - start, places["first_node"], places["nodes"], places["kind"], strict=True))
    written = found[["from (s)", "first node", "nodes", "kind"]].itertuples(index=False, name=None)
    for (begin, *others), (expected, *rest) in zip(written, pieces, strict=True):
        assert begin == pytest.approx(expected)
        assert others == rest
    for panel_number in (1, 2):
        boxes = small.drawn(f"gantt {panel_number}")
        frames = small.drawn(f"gantt {panel_number}", -1)
        assert len(frames) == (boxes["job"] == job).sum() > 0
    end = small.range_of("gantt 1")[1] * 0.97
    busy = drawn[(drawn["left"] < end * 1.01) & (end * 0.99 < drawn["right"])]
    idle = next(node for node in range(NODES) if not ((busy["bottom"] < node + 0.5) & (node - 0.5 < busy["top"])).any())
    small.page.mouse.click(*small.at("gantt 1", end, idle))
    small.settle()
    assert not panel.is_visible()
    small.assert_quiet()


def download_of(report: Opened) -> pd.DataFrame:
    """Download the table of pieces."""
    with report.page.expect_download() as expected:
        report.page.locator("#job button.csv").click()
    return pd.read_csv(expected.value.path())


# Light, dark, paper.


def test_a_dark_page_is_dark_with_its_plots_and_paper_is_light(small: Opened) -> None:
    page = small.page
    colours = "return [getComputedStyle(document.body).backgroundColor, of('curves linear').below[0].major_label_text_color]"
    found = []
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        page.emulate_media(color_scheme=scheme, media=media)
        small.settle()
        found.append(small.do(colours))
    (light, ink), dark, paper = found
    assert (light, dark[0]) == ("rgb(255, 255, 255)", "rgb(24, 24, 26)")
    assert paper == [light, ink] != [light, dark[1]]
    assert not page.locator(".slider").is_visible()
    assert not page.locator("button.csv").first.is_visible()
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every((one) => one.scrollHeight <= one.clientHeight + 1)")
    page.emulate_media(color_scheme="light", media="screen")
    small.assert_quiet()


@pytest.mark.parametrize(("name", "label"), NAMES)
def test_reports_call_quantities_what_figures_call_them(name: str, label: str) -> None:
    shown = {title_of(quantity(name)), factor_of(name, [1, 2]).title}
    assert shown - {"wasted, share of capacity", "wasted (node-seconds)"} == {label}  # an account of the ledger
