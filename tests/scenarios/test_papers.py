"""The papers beside ours: the page is what the command writes, and no table or figure of a paper is forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.image
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clustermodel.figures.style import policy_colour
from tests.scenarios.conftest import FIGURES, ROOT
from tests.shared_data import SHARED

PAGE = ROOT / "docs" / "papers.md"
PAPERS = {"000": (5, 0), "001": (3, 10), "002": (1, 15), "003": (4, 9), "004": (6, 6)}
"""How many tables and figures there are, by paper; their numbers begin with 1."""


@pytest.fixture
def papers(load: Callable[[str], ModuleType]) -> Any:
    return load("papers")


def test_nothing_is_forgotten(papers: Any) -> None:
    """Every number is there, shown in a picture or a table, or with the reason why it is not."""
    for paper, (tables, figures) in PAPERS.items():
        entries = papers.ENTRIES[paper]
        assert sorted(one.number for one in entries if one.kind == "table") == list(range(1, tables + 1))
        assert [one.number for one in entries if one.kind == "figure"] == list(range(1, figures + 1))
        for one in entries:
            assert one.paper == paper
            shared = any(other.number == one.with_picture_of and other.picture for other in entries)
            elsewhere = paper == "001" and one.kind == "table"
            assert bool(one.impossible) != bool(one.picture or one.grid or shared or elsewhere), one.name
            assert bool(one.picture) == bool(one.alt)
            assert one.says
            assert bool(one.ours) != bool(one.impossible)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_captions_are_those_of_the_papers(paper: str) -> None:
    """Our counts of tables and figures are the highest numbers in the papers' texts."""
    found = [path.read_text() for path in (SHARED / "papers").glob(f"{paper}_*.txt")]
    if not found:
        pytest.skip("the papers are not here; they are not part of the repository")
    (text,) = found
    for kind, count in zip(("Table", "Figure"), PAPERS[paper], strict=True):
        assert max([0, *map(int, re.findall(rf"\b{kind} (\d+)", text))]) == count


def test_the_page_is_what_the_command_writes(papers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "papers.md"
    text = PAGE.read_text()
    page.write_text(re.sub(r"(<!-- papers \d+ -->\n).*?(<!-- end -->)", r"\1\2", text, flags=re.DOTALL))
    assert len(page.read_text()) < len(text) / 4
    papers.main(["--no-pictures", "--into", str(page)])
    assert page.read_text() == text
    assert capsys.readouterr().out.count("tables and figures") == len(PAPERS)


def test_one_paper_with_its_pictures(papers: Any, tmp_path: Path) -> None:
    page, pictures = tmp_path / "papers.md", tmp_path / "pictures"
    page.write_text("<!-- papers 001 -->\n<!-- end -->\n")
    papers.main(["--papers", "001", "--into", str(page), "--pictures", str(pictures)])
    shown = re.findall(r"figures/papers/(\w+\.png)", page.read_text())
    assert sorted(shown) == sorted(path.name for path in pictures.iterdir())
    for name in shown:
        drawn, kept = (matplotlib.image.imread(folder / name) for folder in (pictures, FIGURES / "papers"))
        assert drawn.shape[1] == kept.shape[1]  # its height depends on the fonts' heights, and so do colours of edges


def test_the_pictures_are_there_and_small(papers: Any) -> None:
    there = {path.name: path.stat().st_size for path in (FIGURES / "papers").iterdir()}
    shown = re.findall(r"!\[([^]]+)\]\(figures/papers/([^)]+)\)", PAGE.read_text())
    assert {name for _, name in shown} == set(there)
    assert len({alt for alt, _ in shown}) == len(shown)
    assert max(there.values()) < 60_000
    assert sum(there.values()) < 3_000_000


def figures(papers: Any) -> dict[str, Figure]:
    return {one.name: one.picture() for entries in papers.ENTRIES.values() for one in entries if one.picture}


WITHOUT_GROUPS = {"003_figure_03", "003_figure_04", "004_figure_05", "004_figure_06"}
"""Bars that only differ in colour: the legend says what they are."""


@pytest.mark.long
def test_every_axis_says_what_it_shows(papers: Any) -> None:
    for name, figure in figures(papers).items():
        for axes in figure.axes:
            place = axes.get_subplotspec()
            if place is None:  # the second axis of a matrix
                continue
            assert axes.get_ylabel() or not place.is_first_col(), name
            assert axes.get_xlabel() or not place.is_last_row() or name in WITHOUT_GROUPS, name


def test_curves_are_those_of_the_stored_runs(papers: Any, load: Callable[[str], ModuleType]) -> None:
    """A point of figure 9 of 002 and a bar of figure 3 of 003, by hand."""
    runs = load("reporting").read(FIGURES / "context_switch_tradeoff.json")
    figure = load("papers_gang").by_context_switch("mean_bounded_slowdown")
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    line = figure.axes[3].get_lines()[names.index("BGS-5")]
    here = runs.at(strategy="BGS-5", switch=0.05)
    expected = [
        (here.at(factor=factor).values("rho").mean(), here.at(factor=factor).values("slowdown").mean())
        for factor in here.distinct("factor")
    ]
    assert [tuple(point) for point in line.get_xydata()] == [pytest.approx(point) for point in expected]

    runs = load("reporting").read(FIGURES / "queue_order_ctc.json")
    bars = load("papers_backfilling").twelve_algorithms().axes[1].patches
    heights = [runs.at(algorithm=name).values("wait_s").mean() for name in runs.distinct("algorithm")]
    assert [bar.get_height() for bar in bars] == pytest.approx(heights)


def test_improvements_are_those_of_the_study(papers: Any, load: Callable[[str], ModuleType]) -> None:
    """Figures 5, 6 and 7 of 003: the functions of the package find what the studies' tables say."""
    script, backfilling = load("speculation"), load("papers_backfilling")
    runs = load("reporting").read(FIGURES / "speculation_ctc.json")
    for tests in (False, True):
        lines = backfilling.speculation(tests=tests).axes[1].get_lines()
        for line, algorithm in zip(lines, runs.distinct("algorithm"), strict=True):
            expected = [100 * script.improvement(runs, algorithm, part, tests).mean for part in script.parts_of(runs)]
            assert line.get_ydata().tolist() == pytest.approx(expected)
    runs, adaptation, traces = load("reporting").read(FIGURES / "adaptation_ctc.json"), load("adaptation"), load("traces")
    base = adaptation.at(runs, "D", "as asked")
    bars = backfilling.adapted("Figure 7", "mean_wait_s").axes[0].patches
    expected = [
        100 * (1 - traces.relative(adaptation.at(runs, algorithm, technique), base, "wait_s").mean)
        for algorithm in runs.distinct("algorithm")
        for technique in ("half", "quarter")
    ]
    assert [bar.get_height() for bar in bars] == pytest.approx(expected)


NAMES = {
    "FCFS", "BF", "GS", "BGS", "MGS", "MBGS", "ADAPTIVE", "GS-2", "GS-3", "GS-5", "BGS-2", "BGS-3", "BGS-5", "conservative",
    "slack, AST", "D", "P", "R", "1/L", "P/L", "R/L", "D-NG", "P-NG", "R-NG", "1/L-NG", "P/L-NG", "R/L-NG", "EASY", "EASY-Last",
    "PV-EASY", "FCFS-EASY", "SJF-EASY",
}  # fmt: skip
"""Policies, as legends have them."""


def colour_of(handle: Any) -> str:
    if isinstance(handle, tuple):
        handle = handle[0]
    if isinstance(handle, BarContainer):
        handle = handle.patches[0]
    return to_hex(handle.get_color() if isinstance(handle, Line2D) else handle.get_facecolor())


@pytest.mark.long
def test_a_policy_has_one_colour_in_all_figures(papers: Any, load: Callable[[str], ModuleType]) -> None:
    """Those of the page, and those that the studies draw of what is stored."""
    drawn = figures(papers)
    for path in sorted(FIGURES.glob("*.json")):
        runs = load("reporting").read(path)
        drawn[path.stem] = load(runs.facts["study"]).figure(runs)
    seen: dict[str, set[str]] = {}
    for figure in drawn.values():
        legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
        for legend in legends:
            for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
                if text.get_text() in NAMES and handle is not None:
                    seen.setdefault(text.get_text(), set()).add(colour_of(handle))
    assert {name: {policy_colour(name).lower()} for name in seen} == seen
    assert len(seen) > 25


def test_no_scenario_has_colours_of_its_own() -> None:
    for path in (ROOT / "scenarios").glob("*.py"):
        assert not re.search(r"#[0-9A-Fa-f]{6}\b", path.read_text()), path.name


def test_what_the_page_says_of_000(load: Callable[[str], ModuleType]) -> None:
    """The claims about tables 1 to 5 that are words."""
    runs, kth, slack_runs = load("reporting").read(FIGURES / "slack_kth.json"), load("slack_kth"), load("slack_runs")

    def wait(variant: Any) -> float:
        return slack_runs.mean_wait(slack_runs.of(runs, variant))

    ours, theirs = 1 - wait(kth.AST) / wait(kth.CONSERVATIVE), 1 - kth.PAPER_MONTHS["year"][1] / kth.PAPER_MONTHS["year"][0]
    assert abs(ours - theirs) < 0.02
    by_factor = {factor: wait(slack_runs.Variant(slack_factor=factor)) for factor in kth.PAPER_FACTORS}
    assert min(by_factor, key=by_factor.__getitem__) == min(kth.PAPER_FACTORS, key=kth.PAPER_FACTORS.__getitem__) == 9
    gaps = {}
    improvements = {}
    for heuristic, (paper_equal, *_) in kth.PAPER_HEURISTICS.items():
        equal, unequal = (slack_runs.of(runs, kth.heuristic(heuristic, "in-place", gap)) for gap in (0.0, 2.0))
        improvements[heuristic] = 1 - slack_runs.mean_wait(equal) / wait(kth.CONSERVATIVE)
        assert abs(improvements[heuristic] - (1 - paper_equal / kth.PAPER_MONTHS["year"][0])) < 0.04
        gaps[heuristic] = slack_runs.other_wait(unequal) - slack_runs.fifth_wait(unequal)
    assert sorted(improvements, key=improvements.__getitem__) == ["du", "dc", "dp", "aat", "ast"]
    assert {heuristic for heuristic, gap in gaps.items() if gap > 0} == {"ast", "aat", "dp"}


def test_what_the_page_says_of_002(load: Callable[[str], ModuleType]) -> None:
    """Figures 9, 12 and 15, and table 1, in words."""
    read = load("reporting").read
    runs = read(FIGURES / "context_switch_tradeoff.json")

    def mean(measure: str, strategy: str, switch: float, factor: float) -> float:
        return float(runs.at(strategy=strategy, switch=switch, factor=factor).values(measure).mean())

    factors = runs.distinct("factor")
    for switch in runs.distinct("switch"):
        for level in (2, 3, 5):
            for factor in factors:
                for measure in ("slowdown", "wait_s"):
                    assert mean(measure, f"BGS-{level}", switch, factor) < mean(measure, f"GS-{level}", switch, factor)
    loses_more = {
        (strategy, switch)
        for strategy in ("BGS-2", "BGS-3", "BGS-5")
        for switch in (0.0, 0.02, 0.05)
        if mean("kappa", strategy, switch, 1.8) > mean("kappa", "BF", 0.0, 1.8)
    }
    assert loses_more == {("BGS-2", 0.02), ("BGS-3", 0.02), ("BGS-2", 0.05), ("BGS-3", 0.05), ("BGS-5", 0.05)}

    runs = read(FIGURES / "migration_tradeoff.json").at(figure=15)
    for factor in factors:
        here = runs.at(factor=factor)
        for measure in ("kappa", "slowdown", "wait_s"):
            by_policy = {name: here.at(policy=name).values(measure).mean() for name in ("gs", "bgs", "mgs", "mbgs")}
            assert min(by_policy, key=by_policy.__getitem__) == "mbgs"
            assert max(by_policy, key=by_policy.__getitem__) == "gs"
            if measure != "kappa" or factor >= 1.2:
                assert by_policy["bgs"] < by_policy["mgs"]

    runs = read(FIGURES / "table1_migration.json")
    for factor in factors:
        wait = {name: runs.at(policy=name, factor=factor).values("slowdown").mean() for name in ("gs", "bgs", "mgs", "mbgs")}
        assert wait["mbgs"] < wait["bgs"] < wait["mgs"] < wait["gs"]


def test_what_the_page_says_of_003(load: Callable[[str], ModuleType]) -> None:
    """Figures 3, 4, 6, 8 and 9 in words."""
    read = load("reporting").read
    runs = read(FIGURES / "queue_order_ctc.json")

    def mean(algorithm: str, measure: str = "slowdown") -> float:
        return float(runs.at(algorithm=algorithm).values(measure).mean())

    for order in ("D", "P", "R", "1/L", "P/L", "R/L"):
        assert (mean(f"{order}-NG") < mean(order)) == (order != "D")
    assert mean("R") < mean("1/L") < mean("P")
    assert mean("R-NG") < mean("P-NG")
    for algorithm in ("P/L-NG", "R/L-NG"):
        shapes = {
            shape: mean(algorithm, f"slowdown_{shape}") / mean("D", f"slowdown_{shape}") for shape in load("shapes").SHAPES
        }
        assert max(shapes, key=shapes.__getitem__) == "long-wide"
        assert shapes["long-wide"] < 1
    for algorithm, improved in (("D-NG", []), ("1/L", ["short-narrow", "short-wide", "long-narrow"])):
        shapes = {
            shape: mean(algorithm, f"slowdown_{shape}") / mean("D", f"slowdown_{shape}") for shape in load("shapes").SHAPES
        }
        assert [shape for shape, ratio in shapes.items() if ratio < 1] == improved

    runs = read(FIGURES / "speculation_ctc.json")
    for algorithm in runs.distinct("algorithm"):
        first, last = (
            [runs.at(algorithm=algorithm, percentage=part, test_runs=test).values("slowdown").mean() for test in (False, True)]
            for part in (0.1, 0.9)
        )
        assert first[1] < first[0]
        assert last[1] < last[0]
        assert 1 - last[1] / last[0] > 1 - first[1] / first[0]
        assert last[1] < first[1]

    runs = read(FIGURES / "adaptation_ctc.json")

    def relative(algorithm: str, technique: str, measure: str = "slowdown") -> float:
        base = runs.at(algorithm="D", technique="as asked").values(measure).mean()
        return float(runs.at(algorithm=algorithm, technique=technique).values(measure).mean() / base)

    for algorithm in runs.distinct("algorithm"):
        best = algorithm == "R/L-NG"
        assert (relative(algorithm, "greedy 1, 1/2, 2") < 1) == best
        assert (relative(algorithm, "greedy 1, 1/2, 1/4") < relative(algorithm, "half")) == best
        assert relative(algorithm, "quarter") < relative(algorithm, "greedy 1, 1/2, 1/4")
    assert round(relative("R/L-NG", "half, speculation", "wait_s"), 2) == 0.22
    assert relative("R/L-NG", "half, speculation") < 0.25


def test_what_the_page_says_of_004(load: Callable[[str], ModuleType]) -> None:
    """Figures 2 to 6 and tables 2 and 6 in words."""
    read, paper = load("reporting").read, load("pv_easy").PAPER
    worse: dict[str, set[str]] = {}
    for trace in ("ctc", "blue", "kth"):
        runs = read(FIGURES / f"pv_easy_{trace}.json").at(run_times="run times as recorded")
        (easy,), (last,), (pv,), (perfect,) = (
            runs.at(policy=name).rows for name in ("EASY", "EASY-Last", "PV-EASY", "PV-EASY, perfect predictions")
        )
        worse[trace] = {
            f"{width} {measure}"
            for width in ("wide", "narrow")
            for measure in ("", "weighted_")
            if pv[f"{width}_blocked_{measure}bounded_slowdown"] > easy[f"{width}_blocked_{measure}bounded_slowdown"]
        }
        for measure in ("mean_bounded_slowdown", "mean_weighted_bounded_slowdown"):
            weighted = "weighted" in measure
            assert easy[measure] < pv[measure]
            assert easy[measure] < last[measure]
            assert (pv[measure] < last[measure]) == (weighted or trace != "ctc")
            assert (perfect[measure] < easy[measure]) == (not weighted or trace != "blue")
        assert pv["reservation_violations"] == 0
        assert pv["blocked"] > easy["blocked"]
        assert pv["backfilled"] < easy["backfilled"]
        if trace != "kth":
            theirs = paper["CTC-SP2" if trace == "ctc" else "SDSC-BLUE"]
            assert 8 <= last["reservation_violations"] / theirs.violations < 12.5
            assert last["mean_violation_nodes"] < theirs.violation_nodes
            assert abs(100 * pv["preempted_rate"] - theirs.rate) < 2
            assert abs(pv["mean_killed_times"] - theirs.killed_times) < 0.1
            assert abs(100 * pv["runtime_waste"] - theirs.waste) < 2
    everything = {"wide ", "wide weighted_", "narrow ", "narrow weighted_"}
    assert worse == {"ctc": {"narrow ", "narrow weighted_"}, "blue": everything, "kth": {"wide ", "wide weighted_"}}

    for trace in ("ctc", "kth"):
        runs = read(FIGURES / f"prediction_error_{trace}.json")
        for error in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0):
            fcfs, sjf, pv = (runs.at(policy=name, error=error) for name in ("FCFS-EASY", "SJF-EASY", "PV-EASY"))
            mbs, mwbs = ([one.values(name).mean() for one in (fcfs, sjf, pv)] for name in ("mbs", "mwbs"))
            assert (mbs[2] < mbs[0]) == (trace == "kth" or error <= 0.4)
            assert mwbs[2] < mwbs[0] or error <= 0.2
            assert (mbs[1] < mbs[2] and mwbs[1] < mwbs[2]) or error > 0.2
            assert mbs[1] < mbs[2] or trace == "kth"
