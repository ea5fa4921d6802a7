"""What notebooks show: objects as small tables, figures once; text is escaped and no colour is fixed."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from clustermodel import ContextSwitch, Job, Machine, Result, Scenario, Study, Workload, interval, synthetic_workload
from clustermodel.figures.result_plots import comparison
from clustermodel.text.formatting import html_fields, html_table

pytestmark = pytest.mark.long

EVIL = "<script>alert('x')</script>&\x1b[31m"


class _Cells(HTMLParser):
    """The rows of the tables of a page, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def rows(page: str) -> list[list[str]]:
    cells = _Cells()
    cells.feed(page)
    cells.close()
    assert not cells.open
    assert set(cells.tags) <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"color|background|#[0-9a-f]{3}", page)  # the theme of the notebook decides
    assert page.isprintable()
    return cells.rows


@pytest.fixture(scope="module")
def run() -> Result:
    machine = Machine(nodes=32, context_switch=ContextSwitch(fraction=0.05))
    return Scenario(machine=machine, workload=synthetic_workload(jobs=80, nodes=32), policy="bgs").run()


@pytest.fixture(scope="module")
def study() -> Study:
    def make(load: float, policy: str, seed: int) -> Scenario:
        jobs = synthetic_workload(jobs=30, nodes=32, load=load, seed=seed)
        return Scenario(machine=Machine(nodes=32), workload=jobs, policy=policy, seed=seed)

    return Study(name="a study", factors={"load": [0.5, 0.9], "policy": ["fcfs", "easy"]}, scenario=make, replications=2)


def test_a_machine(run: Result) -> None:
    fields = dict(rows(run.machine._repr_html_()))  # type: ignore[arg-type]
    assert fields["time_slicing.quantum_s"] == "200"
    assert (fields["context_switch.fraction"], fields["context_switch.charge"]) == ("0.05", "on-change")
    assert fields["checkpointing.max_tasks_per_slice"] == "-"
    assert "<strong>Machine of 32 nodes</strong>" in run.machine._repr_html_()


def test_a_workload() -> None:
    jobs = [Job(id=n, submit_s=3600 * n, run_s=600 * n, estimate_s=7200, nodes=n) for n in range(1, 6)]
    fields = dict(rows(Workload.from_jobs(jobs, name=EVIL, machine_nodes=8)._repr_html_()))  # type: ignore[arg-type]
    assert fields["submitted over"] == "4 h"
    assert fields["recorded on"] == "8 nodes"
    assert fields["nodes of a job"] == "1, median 3, up to 5"
    assert fields["run time"] == "median 30 min, up to 50 min"
    # (1 + 4 + 9 + 16 + 25) x 600 s in 4 h on 8 nodes
    assert float(fields["offered load"]) == pytest.approx(55 * 600 / (4 * 3600 * 8), abs=1e-4)
    one = dict(rows(Workload.from_jobs(jobs[:1], machine_nodes=8)._repr_html_()))  # type: ignore[arg-type]
    assert one["offered load"] == "-"


def test_a_scenario_shows_what_is_not_the_default(run: Result) -> None:
    assert [name for name, _ in rows(run.scenario._repr_html_())] == ["workload", "machine", "policy", "seed"]  # type: ignore[attr-defined]
    other = Scenario(workload=synthetic_workload(jobs=5), explain=True, fidelity="node", name="a name")
    assert [name for name, _ in rows(other._repr_html_())][4:] == ["fidelity", "explain"]


def test_a_result_and_its_summary(run: Result) -> None:
    titles, values = rows(run._repr_html_())
    shown = dict(zip(titles, values, strict=True))
    summary = run.summary()
    assert shown["policy"] == "bgs"
    assert shown["utilization (%)"] == f"{100 * summary.utilization:.2f}"
    assert "context switch (%)" in shown
    table = rows(summary._repr_html_())
    assert table[0] == ["field", "meaning", "value", "unit"]
    by_field = {row[0]: row[1:] for row in table[1:]}
    assert by_field.keys() == summary.as_dict().keys()
    assert by_field["mean_response_s"][0] == "mean response time"
    assert by_field["mean_response_s"][2] == "s"
    assert by_field["delayed"] == ["jobs delayed by lower-priority jobs", "-", "jobs"]
    assert type(run.jobs) is pd.DataFrame


def test_a_ledger_has_units_and_sums_to_the_machine(run: Result) -> None:
    titles, *accounts = rows(run.ledger._repr_html_())
    assert titles == ["account", "queue empty (node-h)", "job waiting (node-h)", "total (node-h)", "share (%)"]
    assert accounts[0][:3] == ["useful", "-", "-"]
    assert sum(float(row[4]) for row in accounts) == pytest.approx(100, abs=0.05)


def test_an_interval() -> None:
    page = interval([1.0, 2.0, 4.0])._repr_html_()
    assert rows(page) == [["mean", "low", "high", "values"], ["2.333", "-1.461", "6.128", "3"]]
    assert "2.3 ± 3.8 (95 % interval)" in page


def test_a_study_and_its_table(study: Study) -> None:
    fields = dict(rows(study._repr_html_()))  # type: ignore[arg-type]
    assert (fields["load"], fields["policy"], fields["replications"]) == ("0.5, 0.9", "fcfs, easy", "2 of each point")
    table = study.run(workers=1)
    titles, *points = rows(table._repr_html_())
    assert titles[:4] == ["load", "policy", "runs", "mean response (min)"]
    assert [row[:3] for row in points] == [
        ["0.5", "fcfs", "2"],
        ["0.5", "easy", "2"],
        ["0.9", "fcfs", "2"],
        ["0.9", "easy", "2"],
    ]
    assert all("±" in row[3] for row in points)
    assert rows(study.first_table()._repr_html_()) == []


def test_names_are_escaped(study: Study) -> None:
    workload = Workload.from_jobs([Job(id=1, submit_s=0, run_s=5, nodes=1)], name=EVIL, machine_nodes=2)
    result = Scenario(workload=workload, name="<b>mine</b>").run()
    for one in (workload, result.scenario, result, result.summary()):
        page = one._repr_html_()  # type: ignore[attr-defined]
        rows(page)
        assert "<script" not in page
        assert "<b>" not in page
        assert "\x1b" not in page
    assert "&lt;script&gt;" in workload._repr_html_()


def test_long_tables_are_cut_and_say_so() -> None:
    page = html_table("many", [("n", list(range(100))), ("text", ["x" * 500] * 100)])
    assert len(rows(page)) == 41
    assert "40 of 100 rows" in page
    assert max(len(cell) for row in rows(page) for cell in row) < 120
    assert rows(html_fields("f", [("a", None), ("b", True)])) == [["a", "-"], ["b", "yes"]]


@pytest.fixture
def display() -> Callable[[object], dict[str, Any]]:
    """Return what IPython shows for the value of a cell, by type."""
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython, of .[test-all], is missing")
    return lambda value: formatters.DisplayFormatter().format(value)[0]


def test_a_figure_is_shown_once_and_without_pyplot(run: Result, display: Callable[[object], dict[str, Any]]) -> None:
    import matplotlib.pyplot as plt

    for figure in (run.plot.utilization(), comparison([run])):
        assert isinstance(figure, Figure)
        shown = display(figure)
        assert shown.keys() == {"text/plain", "image/png"}
        assert shown["image/png"].startswith(b"\x89PNG")
    assert plt.get_fignums() == []  # pyplot would show them again at the end of the cell


def test_tables_are_shown_by_ipython(run: Result, display: Callable[[object], dict[str, Any]]) -> None:
    for one in (run, run.machine, run.ledger, run.summary(), run.scenario):
        assert display(one)["text/html"] == one._repr_html_()  # type: ignore[attr-defined]


def test_every_figure_of_the_package_shows_itself() -> None:
    from pathlib import Path

    import clustermodel.figures

    for path in Path(clustermodel.figures.__file__).parent.glob("*.py"):
        assert not re.search(r"= Figure\(", path.read_text(encoding="utf-8")), path
