"""A browser, the pages that it opens, and a small study that is run once."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import Machine, TimeSlicing, synthetic_workload
from clustermodel.experiment.exhibits import exhibits_of, write_exhibits
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.store import Store
from clustermodel.experiment.study import Study
from clustermodel.experiment.study_table import StudyTable
from clustermodel.report.write import write_report

READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle"
PATIENCE_MS = 120_000
NODES = 64
SHARED = "bgs:mpl=3"


class Opened:
    """A report in the browser, with all that it said and asked for."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page = page
        self.path = path
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.said.append(f"page error: {error}"))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))
        page.set_default_timeout(PATIENCE_MS / 2)
        began = time.perf_counter()
        page.goto(path.as_uri(), timeout=PATIENCE_MS)
        page.wait_for_function(READY, timeout=PATIENCE_MS)
        self.seconds = time.perf_counter() - began

    def _note(self, message: Any) -> None:
        if message.type in {"error", "warning", "assert"}:  # Bokeh says its version as information
            self.said.append(f"{message.type}: {message.text}")

    def do(self, body: str, argument: object = None) -> Any:
        """Run a function's body, which knows ``doc`` and ``of`` (a model by its name); return its value when all is drawn."""
        given = "const doc = Bokeh.documents[0]; const of = (name) => doc.get_model_by_name(name);"
        answer = self.page.evaluate(f"(given) => {{ {given} {body} }}", argument)
        self.settle()
        return answer

    def settle(self) -> None:
        """Wait until everything is drawn."""
        self.page.wait_for_function(READY, timeout=PATIENCE_MS)
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.page.wait_for_function(READY, timeout=PATIENCE_MS)

    def drawn(self, plot: str, number: int = 0) -> pd.DataFrame:
        """Return the columns of a renderer of a plot."""
        body = """
            const {data} = of(given.plot).renderers.at(given.number).data_source;
            return Object.fromEntries(Object.entries(data).map(([name, values]) => [name, Array.from(values)]));
        """
        return pd.DataFrame(self.do(body, {"plot": plot, "number": number}))

    def box(self, plot: str) -> dict[str, float]:
        """Scroll a plot into sight and return where its inner part is: ``left``, ``top``, ``width``, ``height``."""
        body = """
            const view = Bokeh.index.find_one_by_id(of(given).id);
            view.el.scrollIntoView({block: "center"});
            const {left, top} = view.el.getBoundingClientRect();
            const {bbox} = view.frame;
            return {left: left + bbox.left, top: top + bbox.top, width: bbox.width, height: bbox.height};
        """
        found: dict[str, float] = self.do(body, plot)
        return found

    def range_of(self, plot: str, axis: str = "x") -> tuple[float, float]:
        """Return a plot's range."""
        start, end = self.do(f"const range = of(given).{axis}_range; return [range.start, range.end]", plot)
        return start, end

    def at(self, plot: str, x: float, y: float) -> tuple[float, float]:
        """Return where a point of the data of a plot is on the page."""
        box = self.box(plot)
        (left, right), (bottom, top) = self.range_of(plot), self.range_of(plot, "y")
        return (
            box["left"] + (x - left) / (right - left) * box["width"],
            box["top"] + (top - y) / (top - bottom) * box["height"],
        )

    def assert_quiet(self) -> None:
        """Assert that nothing was said on the console, and that nothing was asked for but the page itself."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("blob:", "data:"))] == [self.path.as_uri()]
        assert self.page.evaluate("typeof window.hacked") == "undefined"


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def opener(browser: Any) -> Iterator[Open]:
    """Return what opens a report without a network; what it opened is closed in the end."""
    contexts = []

    def open_report(path: Path, width: int = 1300) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 1000}, offline=True)
        contexts.append(context)
        return Opened(context.new_page(), path)

    yield open_report
    for context in contexts:
        context.close()


def small_study() -> Study:
    """Return a study with a policy that shares nodes in time, two that do not, and one that preempts."""
    machine = Machine(nodes=NODES, time_slicing=TimeSlicing(quantum_s=300))
    made = {
        f"load {load}": (lambda seed, load=load: synthetic_workload(jobs=90, nodes=NODES, load=load, seed=seed))
        for load in (0.6, 0.95)
    }
    return Study.grid(
        name="a small study", machines={"ours": machine, "wider": Machine(nodes=80, time_slicing=TimeSlicing(quantum_s=300))},
        workloads=made, policies=["easy", SHARED, "pv-easy"], replications=2, history=True, job_tables="all",
    )  # fmt: skip


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the small study, with its report."""
    directory = tmp_path_factory.mktemp("report") / "results"
    assert len(small_study().run(directory, workers=1)) == 24
    write_report(directory, directory / "report.html")
    return directory


@pytest.fixture(scope="session")
def results(directory: Path) -> pd.DataFrame:
    """Return its tidy table."""
    with Store.read(directory) as store:
        return store.results()


def numeric_study() -> Study:
    """Return a study with two numeric factors, a measure, a text, a table and a figure of its own, and a clear winner."""

    def scenario(load: float, quantum_s: int, policy: str, seed: int) -> Scenario:
        machine = Machine(nodes=32, time_slicing=TimeSlicing(quantum_s=quantum_s))
        return Scenario(
            machine=machine, workload=synthetic_workload(jobs=40, nodes=32, load=load / 10, seed=seed), policy=policy
        )

    return Study(
        name="numbers",
        factors={"load": [9.0, 5.0, 10.0], "quantum_s": [60, 600], "policy": ["fcfs", "easy", "bgs"]},
        scenario=scenario,
        measures={
            "thousand": lambda result: 1000.0 * result.ledger.utilization,
            "shared": lambda result: float(result.slices is not None),
        },
        replications=3,
        shown=("mean_wait_s", "mean_response_s", "thousand", "shared"),
        text=TEXT,
        tables={"lowest": lambda table: table.lowest("mean_response_s")},
        figures={"=waits <b>": lambda table: table.plot.heat_map("mean_response_s", x="load", y="quantum_s")},
    )


TEXT = """# Question

Is *sharing* worth it?

| load | answer |
|---|---|
| 0.5 | no |

<script>window.hacked=1</script> ![far](http://example.org/a.png) [bad](javascript:window.hacked=1)
"""


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StudyTable]:
    """Return the directory of the study with numeric factors, with its report, and its table."""
    directory = tmp_path_factory.mktemp("numbers") / "results"
    study = numeric_study()
    table = study.run(directory, workers=1)
    write_exhibits(exhibits_of(study, table), directory)
    write_report(directory, directory / "report.html")
    return directory, table
