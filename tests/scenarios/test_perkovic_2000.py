"""What the pages say of the studies of Perkovic & Keleher 2000, on the stored tables; what the studies change in the jobs."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustermodel import StudyTable, TraceError, Workload, synthetic_workload
from clustermodel.experiment.measure_table import published_table
from clustermodel.experiment.script import load_experiment, run_script
from clustermodel.policies.queue_order import CRITERIA
from clustermodel.workload.changed_jobs import at_load_of
from clustermodel.workload.shapes import SHAPES, shapes_of_jobs
from clustermodel.workload.study_jobs import study_jobs
from tests.shared_data import trace_path

ROOT = Path(__file__).parents[2]
DOCS, SCRIPTS = ROOT / "docs", ROOT / "scenarios" / "papers" / "perkovic_2000"
SLOWDOWN, WAIT, RESPONSE = "mean_bounded_slowdown_perkovic", "mean_wait_s", "mean_response_s"


@cache
def run(path: Path) -> Mapping[str, Any]:
    """Return the global names of a script, which may import others of its folder."""
    return run_script(path, path.read_text()) if path.parent == SCRIPTS else runpy.run_path(str(path))


@cache
def stored(name: str) -> StudyTable:
    return StudyTable.read_csv(DOCS / "data" / f"{name}.csv")


def mean(table: StudyTable, measure: str = SLOWDOWN, **levels: Any) -> float:
    return table.at(**levels).interval(measure).mean


def studies() -> list[Any]:
    return [one for one in run(DOCS / "make_studies.py")["documented_studies"]() if one.script.parent == SCRIPTS]


@pytest.mark.parametrize("study", studies(), ids=lambda study: study.name)
@pytest.mark.long
def test_the_page_shows_the_stored_table(study: Any) -> None:
    make_studies = run(DOCS / "make_studies.py")
    exhibits, page = make_studies["shown"](study), study.page.read_text()
    assert not exhibits.problems
    assert make_studies["with_tables"](page, study.name, make_studies["markdown"](exhibits.tables)) == page
    for number in range(len(exhibits.figures)):
        picture = f"{study.name}_{number + 1}.png" if number else f"{study.name}.png"
        assert f"figures/{picture})" in page
        assert (DOCS / "figures" / picture).stat().st_size > 10_000


def test_the_page_of_the_paper_is_up_to_date() -> None:
    page = (DOCS / "papers" / "perkovic_2000.md").read_text()
    assert run(DOCS / "make_studies.py")["published"]("perkovic_2000", page) == page


@pytest.mark.parametrize("script", [path.name for path in sorted(SCRIPTS.glob("*.py"))])
def test_a_missing_trace_is_one_line(script: str) -> None:
    path = SCRIPTS / script
    with pytest.raises(TraceError, match=r"^nowhere\.swf: cannot be read: No such file or directory$"):
        load_experiment(path, path.read_text(), {"trace": "nowhere.swf"}).run(workers=1)


def test_tables_1_and_2() -> None:
    """Two shapes have the paper's numbers of jobs; the other jobs have been cleaned away."""
    table, paper = stored("job_shapes_ctc"), published_table(SCRIPTS / "job_shapes.py", "table 2", trace="CTC-SP2")
    counts = {shape: int(mean(table, "jobs", shape=shape)) for shape in SHAPES}
    missing = {shape: int(paper.loc[shape, "jobs"].replace(",", "")) - counts[shape] for shape in SHAPES}
    assert missing == {"short-narrow": 39, "short-wide": 0, "long-narrow": 2058, "long-wide": 0}
    assert sum(counts.values()) == mean(table, "jobs", shape="all")


def test_the_order_of_figure_3() -> None:
    """On the paper's trace the order of the algorithms is the paper's (section 5)."""
    table = stored("queue_order_ctc")
    slowdown = {policy: mean(table, policy=policy) for policy in table.levels("policy")}
    assert min(slowdown, key=slowdown.__getitem__) == "R/L-NG"
    assert slowdown["R"] < slowdown["1/L"] < slowdown["P"] < slowdown["D"]
    assert slowdown["R-NG"] < slowdown["P-NG"]
    assert [one for one in CRITERIA if slowdown[f"{one}-NG"] > slowdown[one]] == ["D"]
    paper = published_table(SCRIPTS / "queue_order.py", "section 5", trace="CTC-SP2")
    for (policy, base), published in paper.iterrows():
        for measure, value in zip((SLOWDOWN, WAIT), published[["bounded slowdown", "delay"]], strict=True):
            ratio = table.difference(measure, {"policy": policy}, {"policy": base}, ratio=True)
            assert ratio.mean == pytest.approx(value, abs=0.02 if measure == WAIT else 0.13)


def test_the_shapes_of_figure_4() -> None:
    table = stored("queue_order_ctc")

    def ratios(policy: str) -> dict[str, float]:
        return {
            shape: mean(table, f"slowdown_{shape}", policy=policy) / mean(table, f"slowdown_{shape}", policy="D")
            for shape in SHAPES
        }

    for policy in ("P/L-NG", "R/L-NG"):
        assert max(ratios(policy), key=ratios(policy).__getitem__) == "long-wide"
        assert ratios(policy)["long-wide"] < 1
    assert [shape for shape, ratio in ratios("D-NG").items() if ratio < 1] == []
    assert [shape for shape, ratio in ratios("1/L").items() if ratio < 1] == ["short-narrow", "short-wide", "long-narrow"]


def test_figures_5_and_6() -> None:
    """Test runs help, most at large percentages; without them the smallest percentage is the best, but for R/L-NG."""
    table = stored("speculation_ctc")
    for policy in table.levels("policy"):
        (few, few_tested), (most, most_tested) = (
            [mean(table, policy=policy, speculation=part, test_runs=tests) for tests in (False, True)] for part in (0.1, 0.9)
        )
        assert few_tested < few
        assert most_tested < most
        assert most_tested / most < few_tested / few
        assert most_tested < few_tested
        assert (few < most) == (policy != "R/L-NG")


def test_figures_7_to_9() -> None:
    table = stored("adaptation_ctc")

    def relative(policy: str, technique: str, measure: str = SLOWDOWN) -> float:
        base = mean(table, measure, policy="D", technique="as asked")
        return mean(table, measure, policy=policy, technique=technique) / base

    for policy in table.levels("policy"):
        best = policy == "R/L-NG"
        assert (relative(policy, "greedy to double") < 1) == best
        assert (relative(policy, "greedy to quarter") < relative(policy, "half")) == best
        assert relative(policy, "quarter") < relative(policy, "greedy to quarter")
        assert relative(policy, "half", RESPONSE) < relative(policy, "quarter", RESPONSE)
    assert round(relative("R/L-NG", "half + speculation", WAIT), 2) == 0.22
    assert relative("R/L-NG", "half + speculation") < 0.25


def test_randomization_helps_on_the_larger_machine() -> None:
    """On KTH R/L-NG and 1/L-NG cannot be told apart; on 430 nodes, or with exact estimates of the others, R/L-NG is better."""
    table = stored("randomization_kth")
    ratios = table.pivot(SLOWDOWN, columns="policy", relative_to={"policy": "1/L-NG"})["R/L-NG"]
    assert {change: ratio.high < 1 for change, ratio in ratios.items() if 1 not in ratio} == {
        "all others exact": True, "all exact": True, "on 430 nodes": True,
    }  # fmt: skip


def test_the_flurry_leaves_other_jobs_alone() -> None:
    table = stored("flurry_ctc")
    for column, of_others in ((SLOWDOWN, "slowdown_others"), (WAIT, "wait_s_others")):
        cleaned = table.at(workload="cleaned").frame
        assert cleaned[column].tolist() == pytest.approx(cleaned[of_others].tolist())
    assert mean(table, workload="with the flurry", policy="D") > 1.05 * mean(table, workload="cleaned", policy="D")
    with_flurry = mean(table, "slowdown_others", workload="with the flurry", policy="D")
    assert with_flurry == pytest.approx(mean(table, workload="cleaned", policy="D"), rel=0.01)


def test_facts_of_small_jobs() -> None:
    """The facts of 500 synthetic jobs are those that the first edition stored."""
    path = SCRIPTS / "job_shapes.py"
    table = load_experiment(path, path.read_text(), {"jobs": "500"}).run(workers=1)
    facts = json.loads(Path(__file__).with_name("queue_order.json").read_text())["facts"]
    names = {
        "parallelism": "nodes",
        "run time (s)": "run_s",
        "estimate (s)": "estimate_s",
        "overestimation factor": "overestimation",
    }
    for name, value in facts["trace"].items():
        statistic, _, of = name.partition(" ")
        assert mean(table, f"{statistic}_{names[of]}", shape="all") == pytest.approx(value, rel=1e-5)
    for shape, (count, *overestimation) in facts["shapes"].items():
        assert mean(table, "jobs", shape=shape) == count
        found = [mean(table, f"{statistic}_overestimation", shape=shape) for statistic in ("mean", "median")]
        assert found == pytest.approx(overestimation, rel=1e-5)


def test_exact_estimates() -> None:
    script, workload = run(SCRIPTS / "randomization.py"), synthetic_workload(jobs=300)
    changed = script["exact"](workload, ("long-narrow",), 0, 128)
    long_narrow = shapes_of_jobs(workload.column("nodes"), workload.column("estimate")) == "long-narrow"
    assert (changed.column("estimate") == changed.column("run"))[long_narrow].all()
    assert (changed.column("estimate") == workload.column("estimate"))[~long_narrow].all()
    for name in ("submit", "nodes", "run"):
        assert (changed.column(name) == workload.column(name)).all()
    everything = script["exact"](workload, SHAPES, 0, 128)
    assert (everything.column("estimate") == everything.column("run")).all()


@pytest.mark.parametrize("other", [100, 512])
def test_the_same_load_on_another_machine(other: int) -> None:
    workload = synthetic_workload(jobs=300)
    changed = at_load_of(workload, 128, other)

    def load_on(jobs: Workload, nodes: int) -> float:
        size, executed, submit = jobs.column("nodes"), jobs.column("run"), jobs.column("submit")
        return float((size * executed)[size <= nodes].sum()) / (nodes * float(np.ptp(submit)))

    assert load_on(changed, other) == pytest.approx(load_on(workload, 128), rel=1e-6)


def test_the_flurry() -> None:
    script, workload = run(SCRIPTS / "flurry.py"), synthetic_workload(jobs=30_000)
    changed = script["with_flurry"](workload, 1)
    added = changed.column("id") > workload.column("id").max()
    assert added.sum() == round(30_000 * 2080 / 77205)
    assert (np.delete(changed.column("submit"), np.flatnonzero(added)) == workload.column("submit")).all()
    assert set(changed.column("nodes")[added].tolist()) == {1}
    run_s, estimate_s = changed.seconds("run")[added], changed.seconds("estimate")[added]
    assert run_s.mean() == pytest.approx(100, rel=0.15)
    assert (estimate_s / run_s).mean() == pytest.approx(857, rel=0.15)
    between = np.flatnonzero(added)[[0, -1]] - [0, added.sum()]
    assert between / 30_000 == pytest.approx([script["FIRST"], script["LAST"]], abs=1e-3)


def test_the_place_of_the_flurry() -> None:
    """The gaps in the job numbers of the cleaned trace are where the study puts the flurry."""
    script, number = run(SCRIPTS / "flurry.py"), study_jobs(trace_path("CTC-SP2-1996-3.1-cln")).column("id")
    missing = np.setdiff1d(np.arange(47421, 50308), number)
    assert len(missing) == 2080
    assert len(missing) / len(number) == script["PER_JOB"]
    assert [(number < edge).mean() for edge in missing[[0, -1]]] == pytest.approx([script["FIRST"], script["LAST"]], abs=1e-4)
