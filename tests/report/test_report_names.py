"""Names of studies, machines, workloads, policies files and errors are text: whatever is in them, nothing of it is run."""

import os
from pathlib import Path

import pytest

from clustermodel import Machine, read_swf, synthetic_workload
from clustermodel.errors import visible as written_out
from clustermodel.experiment.script import sweep
from clustermodel.experiment.study import Study
from clustermodel.experiment.user_code import shortened
from clustermodel.figures.style import short, visible
from clustermodel.policies.fcfs import Fcfs
from clustermodel.report.data import short_labels
from clustermodel.report.write import write_report
from tests.report.conftest import Open, Opened
from tests.tiers import some

pytestmark = pytest.mark.long

HOSTILE = (
    "<script>window.hacked=1</script>", "</script><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>",
    "\"'`><b onmouseover=window.hacked=1>", "{{7*7}}", "{% raw %}", "$$x^2$$", r"\(x\) \[y\]", "@{job} @policy $name",
    "&lt;b&gt;", "\x01\x0b\x1b\x7f", "\u202eabc\u202c", "x" * 10_000, "\N{GRINNING FACE}", "same", "same\u200b", "__proto__",
    "constructor", "<!--", "]]>", "two\nlines", "two lines",
)  # fmt: skip


class Named(Fcfs):
    """First come, first served, under any name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class Failing(Named):
    """Fails with its name."""

    def decide(self, batch, view):
        raise RuntimeError(self.name)


@pytest.fixture(scope="module")
def report(opener: Open, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    directory = tmp_path_factory.mktemp("names <b>&amp;")
    trace = Path(os.fsdecode(bytes(directory) + b"/\xff<script>window.hacked=1<\\script>{{7*7}}.swf"))
    trace.write_text("".join(f"{i} {i} -1 20 2 -1 -1 2 20 -1 1 7 1 -1 -1 -1 -1 -1\n" for i in range(1, 9)))
    jobs = synthetic_workload(jobs=15, nodes=16)
    study = Study.grid(
        name=" ".join(HOSTILE),
        machines={name: Machine(nodes=16 + place) for place, name in enumerate(HOSTILE[:2])},
        workloads={HOSTILE[1]: jobs, "x" * 10_000: read_swf(trace)},
        policies=[*map(Named, HOSTILE), Failing(HOSTILE[0] + " "), Failing(HOSTILE[12] + " ")],
        text="\n\n".join(HOSTILE),
    )
    sweep(study, directory / "out", workers=1)
    write_report(directory / "out", directory / "report.html")
    return opener(directory / "report.html")


def test_nothing_of_them_is_run_or_fetched(report: Opened) -> None:
    report.page.locator("summary").first.click()
    for metric in ("against", "machine", "workload"):
        select = report.page.locator("section:has(#metrics)").get_by_label(metric, exact=True)
        for value in select.locator("option").evaluate_all("all => all.map((one) => one.value)"):
            if select.is_enabled():
                select.select_option(value)
    assert report.page.evaluate("typeof window.MathJax") == "undefined"
    report.assert_quiet()


@pytest.mark.parametrize(("of", "value"), [("curves-x", "utilization"), ("over-time-runs", "1")])
def test_legends_are_drawn_again_a_few_times_when_the_curves_change(report: Opened, of: str, value: str) -> None:
    page = report.page
    page.evaluate("""() => {
        const prototype = HTMLCanvasElement.prototype
        const {getContext} = prototype
        if (window.canvases === undefined)
            prototype.getContext = function (...given) { window.canvases++; return getContext.apply(this, given) }
        window.canvases = 0
    }""")
    page.locator(f"#{of}").select_option(value)
    report.settle()
    assert page.evaluate("window.canvases") < 10 * len(HOSTILE)  # each item of a legend has a canvas


def test_they_are_shown_as_text(report: Opened) -> None:
    page = report.page
    assert page.locator("h1").inner_text() == " ".join(visible(" ".join(HOSTILE)).split())
    assert page.title() == page.locator("h1").inner_text()
    labels = list(short_labels(HOSTILE).values())
    items = page.locator("section:has(#metrics) .bk-item:visible")
    assert [text.replace("\u200b", "") for text in items.all_inner_texts()] == labels
    machines = page.locator("section:has(#metrics)").get_by_label("machine", exact=True).locator("option")
    assert machines.all_inner_texts() == list(short_labels(HOSTILE[:2]).values())
    cells = page.locator("section:has(#summary) tbody td:nth-child(3)").all_inner_texts()
    assert {" ".join(cell.split()) for cell in cells} == {" ".join(short(written_out(name), 60).split()) for name in HOSTILE}
    runs = page.locator("#run-1 option").all_inner_texts()
    assert runs[0].startswith(f"{HOSTILE[0]} · ")
    for name, label in short_labels(HOSTILE).items():
        assert any(text.startswith(f"{' '.join(label.split())} · ") for text in runs), name


@pytest.mark.parametrize(("name", "plot"), [("metrics", "curves linear"), ("over-time", "over time busy")])
def test_all_are_in_the_legend_and_none_is_cut_off(report: Opened, name: str, plot: str) -> None:
    report.box(plot)
    items = report.page.locator(f"section:has(#{name}) .bk-item:visible")
    assert items.count() == len(HOSTILE)
    body = """
        const {top, right, bottom} = Bokeh.index.find_one_by_id(of(given).id).el.getBoundingClientRect();
        return {top, right, bottom};
    """
    plotted = report.do(body, plot)
    for box in items.evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())"):
        assert plotted["top"] <= box["top"] < box["bottom"] <= plotted["bottom"]
        assert box["right"] <= plotted["right"]


def test_they_are_whole_in_the_provenance(report: Opened) -> None:
    text = report.page.locator("#provenance ~ details").evaluate_all("all => all.map((one) => one.textContent)")
    whole = "\n".join(text)
    for name in HOSTILE:
        assert f"policy {visible(name)}, replication" in whole
    assert r"\udcff<script>window.hacked=1<\script>{{7*7}}.swf" in whole


def test_errors_of_failed_runs_are_text(report: Opened) -> None:
    errors = report.page.locator("#failed + dl dd").all_inner_texts()
    expected = [shortened(f"RuntimeError: {name}".strip(), 500) for name in (HOSTILE[0], HOSTILE[12])]
    said = [error.partition(f"{Path(__file__).name}:")[2].partition(": ")[2] for error in errors[:2]]  # after file and line
    assert said == expected


@pytest.mark.parametrize("width", some([700, 1300], one_in=2))
def test_long_ones_do_not_break_the_page(opener: Open, report: Opened, width: int) -> None:
    again = opener(report.path, width=width)
    assert again.page.evaluate("document.documentElement.scrollWidth") <= width
    assert again.page.locator("h1").bounding_box()["height"] < 200
    assert again.box("curves linear")["width"] > 0.3 * width
    again.assert_quiet()


@pytest.mark.parametrize("policy", some([0, 2, 6, 8, 11, 16, 17], one_in=4))
def test_tooltips_show_them_as_text(report: Opened, policy: int) -> None:
    label = list(short_labels(HOSTILE).values())[policy]
    section = report.page.locator("section:has(#metrics)")
    section.get_by_label("against", exact=True).select_option("policy")
    report.settle()
    point = report.drawn("curves linear", 3 * policy + 1).iloc[0]
    left, top = report.at("curves linear", point.x, point.y)
    report.page.mouse.move(left - 20, top - 40)
    report.page.mouse.move(left, top, steps=3)
    report.settle()
    said = " ".join(" ".join(report.page.locator(".bk-tooltip-content").all_inner_texts()).split())
    assert f"policy: {' '.join(label.split())}" in said.replace("\u200b", "")
    report.assert_quiet()


def test_labels_are_short_visible_and_differ() -> None:
    labels = short_labels([*HOSTILE, "same (1)", "same ", "two  lines (2)"])
    assert len(set(labels.values())) == len(labels)
    assert max(map(len, labels.values())) <= 60
    assert all(label.isprintable() for label in labels.values())
    assert (labels["same"], labels["same (1)"], labels["same "], labels["same\u200b"]) == (
        "same (2)", "same (1)", "same (3)", r"same\u200b",
    )  # fmt: skip
    assert short_labels(["easy", "bgs:mpl=3"]) == {"easy": "easy", "bgs:mpl=3": "bgs:mpl=3"}


def test_what_nobody_sees_becomes_visible() -> None:
    assert visible("a\x00\u202e\udcff\tb\nc é\N{GRINNING FACE}") == "a\\x00\\u202e\\udcff\\tb\nc é\N{GRINNING FACE}"
