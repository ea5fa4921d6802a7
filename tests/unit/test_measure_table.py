"""Tables of measures for people: intervals, units, missing values, published values, classes of jobs."""

from math import isnan
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import Machine, Result, Scenario, Study, StudyTable, synthetic_workload
from clustermodel.report.measure_table import (
    Columns,
    Relative,
    Scaled,
    by_class,
    class_measures,
    measure_table,
    published_table,
    readings_table,
    with_published,
)
from tests.conftest import refusal

PUBLISHED = pd.DataFrame({"wait": [700], "other": [1]}, index=["easy"])
TOML = """
[waits]
source = "table 1, seconds"
index = ["trace", "policy"]
columns = ["wait", "longest"]
rows = [["KTH-SP2", "fcfs", 700.0, 9], ["KTH-SP2", "easy", 70], ["CTC-SP2", "fcfs", 300, 8]]

[jobs]
source = "table 2"
index = ["trace", "policy"]
columns = ["jobs"]
rows = [["KTH-SP2", "easy", 100]]

[sizes]
source = "table 3"
index = ["size"]
columns = ["wait"]
rows = [[1.0, 5], [2.0, 6]]

[nameless]
index = ["size"]
columns = ["wait"]
rows = []

[long]
source = "table 4"
index = ["size"]
columns = ["wait"]
rows = [[1, 2], [1, 2, 3]]
"""


def table(replications: int = 2) -> StudyTable:
    rows = []
    for policy, wait_s in (("fcfs", 0), ("easy", 600)):
        for number in range(1, replications + 1):
            row = {"run": f"{policy} {number}", "policy": policy, "load": 0.5, "replication": number}
            rows.append({**row, "wait_s": wait_s + 60 * number, "rare": 1.0 if policy == "fcfs" else None})
    return StudyTable(rows, ["policy", "load"], "waits")


def test_several_replications_have_intervals_in_the_unit_of_the_column() -> None:
    frame = measure_table(table(), {"wait (min)": Scaled("wait_s", 1 / 60), "wait (s)": "wait_s"}, by=["policy"])
    assert list(frame.columns) == ["policy", "wait (min)", "wait (s)"]
    minutes, seconds = frame["wait (min)"][1], frame["wait (s)"][1]
    assert (minutes.mean, minutes.count) == (pytest.approx(11.5), 2)
    assert minutes.half == pytest.approx(seconds.half / 60)
    assert seconds.half == pytest.approx(table().interval("wait_s", policy="easy").half)


def test_one_run_has_plain_numbers_an_empty_cell_without_a_measure_and_published_values_before_them() -> None:
    frame = measure_table(table(1), {"wait": "wait_s", "rare": "rare"}, published=PUBLISHED)
    assert list(frame.columns) == ["policy", "paper, wait", "wait", "rare"]
    assert frame.fillna(-1).to_dict("records") == [
        {"policy": "fcfs", "paper, wait": -1, "wait": 60.0, "rare": 1.0},
        {"policy": "easy", "paper, wait": 700, "wait": 660.0, "rare": ""},
    ]


def test_unknown_columns_and_factors_are_refused() -> None:
    assert "there is no column" in refusal(lambda: measure_table(table(), {"wait": "wait"}))
    assert "is no factor" in refusal(lambda: measure_table(table(), {"wait": "wait_s"}, by=["nodes"]))


def test_comparisons_with_a_baseline_are_paired_and_have_no_row_for_it() -> None:
    columns = {
        "ratio": Relative("wait_s", {"policy": "fcfs"}),
        "difference": Relative("wait_s", {"policy": "fcfs"}, ratio=False),
    }
    frame = measure_table(table(), columns, by=["policy"])
    assert frame["policy"].tolist() == ["easy"]
    assert frame["ratio"][0] == table().difference("wait_s", {"policy": "easy"}, {"policy": "fcfs"}, ratio=True)
    assert (frame["difference"][0].mean, frame["difference"][0].half) == (600, 0)
    both = measure_table(table(), {"wait": "wait_s", **columns}, by=["policy"])
    assert both["policy"].tolist() == ["fcfs", "easy"]
    assert both["ratio"][0].mean == 1


def readings(replications: int = 1) -> StudyTable:
    """Return two readings under two policies, of which the second reading has only one."""
    waits = {("literal", "fcfs"): 100.0, ("literal", "easy"): 50.0, ("shifted", "fcfs"): 95.0}
    rows = [
        {"run": f"{row} {number}", "reading": row[0], "policy": row[1], "replication": number, "wait_s": wait + 2 * number}
        for row, wait in waits.items()
        for number in range(replications)
    ]
    return StudyTable(rows, ["reading", "policy"], "readings")


QUANTITIES: Columns = {
    "FCFS": Scaled("wait_s", at={"policy": "fcfs"}),
    "EASY (min)": Scaled("wait_s", 1 / 60, at={"policy": "easy"}),
    "EASY / FCFS": Relative("wait_s", to={"policy": "fcfs"}, at={"policy": "easy"}),
}


def test_readings_are_marked_where_they_give_the_published_number() -> None:
    frame = readings_table(readings(), QUANTITIES, {"FCFS": 91, "EASY / FCFS": 0.51, "EASY (min)": float("nan"), "other": 1})
    assert frame.to_dict("records") == [
        {"reading": "paper", "FCFS": "91", "EASY (min)": "", "EASY / FCFS": "0.51", "within 10 %": ""},
        {"reading": "literal", "FCFS": "*100*", "EASY (min)": "0.8333", "EASY / FCFS": "**0.5000**", "within 10 %": "2 of 2"},
        {"reading": "shifted", "FCFS": "**95**", "EASY (min)": "", "EASY / FCFS": "", "within 10 %": "1 of 2"},
    ]


def test_readings_with_intervals_are_judged_by_their_means() -> None:
    frame = readings_table(readings(2), {"FCFS": QUANTITIES["FCFS"]}, {"FCFS": 92})
    assert frame["FCFS"].tolist() == ["92", "*101 ± 13*", "**96 ± 13**"]


def test_readings_without_published_numbers_have_no_row_of_the_paper() -> None:
    frame = readings_table(readings(), QUANTITIES, {})
    assert list(frame.columns) == ["reading", *QUANTITIES]
    assert frame["reading"].tolist() == ["literal", "shifted"]


def test_several_levels_of_a_factor_choose_rows() -> None:
    assert table().at(policy=("easy", "fcfs")).frame["policy"].tolist() == ["fcfs", "fcfs", "easy", "easy"]
    assert "no finished trial has policy" in refusal(lambda: table().at(policy=["ss", "gs"]))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "published.toml").write_text(TOML)
    return tmp_path / "study.py"


def test_published_tables_are_read_from_beside_the_script(script: Path) -> None:
    sizes = published_table(script, "sizes")
    assert (sizes.index.name, sizes["wait"].to_dict()) == ("size", {1.0: 5, 2.0: 6})
    kth = published_table(str(script), "waits", "jobs", trace="../traces/KTH-SP2-1996-2.2.swf.gz")
    expected = pd.DataFrame({"wait": [700.0, 70.0], "longest": [9.0, None], "jobs": [None, 100.0]}, index=["fcfs", "easy"])
    pd.testing.assert_frame_equal(kth, expected.rename_axis("policy"))

    assert published_table(script, "waits", trace="../traces/SDSC-SP2.swf").empty
    none = published_table(script, "waits", trace=None)
    frames = [measure_table(table(), {"wait": "wait_s"}, by=["policy"], published=paper) for paper in (none, None)]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wait", "there is no table 'wait' (did you mean 'waits'?); there are waits, jobs, sizes, nameless, long"),
        ("nameless", "nameless: source is missing"),
        ("long", "long: row 2 has 3 values; the columns are size, wait"),
    ],
)
def test_a_damaged_published_table_is_one_line(script: Path, name: str, message: str) -> None:
    assert refusal(lambda: published_table(script, name)) == f"{script.with_name('published.toml')}: {message}"


def test_a_missing_or_broken_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    line = f"{path}: cannot be read: No such file or directory"
    assert refusal(lambda: published_table(tmp_path / "study.py", "waits")) == line
    path.write_text("[waits")
    assert refusal(lambda: published_table(tmp_path / "study.py", "waits")).startswith(f"{path}: Expected ")


FOUND = pd.DataFrame({"wait": [1.0, 2.0], "slowdown": [3.0, 4.0]}, index=pd.Index(["a", "b"], name="policy"))
PAPER = pd.DataFrame({"wait": [20.0, 30.0], "other": [5.0, 6.0]}, index=["b", "c"])


def test_published_values_stand_before_ours_in_the_same_row() -> None:
    table = with_published(FOUND, PAPER)
    assert list(table) == ["paper, wait", "wait", "slowdown"]
    assert table["paper, wait"]["b"] == 20
    assert isnan(table["paper, wait"]["a"])
    pd.testing.assert_frame_equal(table[["wait", "slowdown"]], FOUND)
    pd.testing.assert_frame_equal(with_published(FOUND, PAPER.loc[["c"]]), FOUND)  # without a common row
    line = refusal(lambda: with_published(FOUND, PAPER.set_axis(["b", "b"])))
    assert line == "with_published: b is there twice; rows must be unique"


def wide(result: Result) -> list[str]:
    return ["wide" if nodes > 8 else "narrow" for nodes in result.jobs["nodes"]]


def waits(policy: str, seed: int) -> Scenario:
    workload = synthetic_workload(jobs=60, nodes=32, load=0.9, seed=seed)
    return Scenario(machine=Machine(nodes=32), workload=workload, policy=policy, seed=seed)


@pytest.fixture(scope="module")
def classes() -> StudyTable:
    metrics = {"wait_s, {}": "mean_wait_s", "wait_h, {}": Scaled("mean_wait_s", 1 / 3600), "jobs, {}": "jobs"}
    measures = class_measures(wide, ["narrow", "wide", "none"], metrics)
    factors = {"policy": ["fcfs", "easy"]}
    return Study(name="waits", factors=factors, scenario=waits, measures=measures, replications=2).run(workers=1)


def test_a_class_has_the_metrics_of_its_jobs(classes: StudyTable) -> None:
    jobs = waits("easy", 1).run().jobs
    row = classes.at(policy="easy").frame.iloc[0]
    assert row["wait_s, wide"] == pytest.approx(jobs["wait_s"][jobs["nodes"] > 8].mean())
    assert row["wait_h, narrow"] == pytest.approx(jobs["wait_s"][jobs["nodes"] <= 8].mean() / 3600)
    assert row["jobs, narrow"] + row["jobs, wide"] == 60


def test_a_class_without_jobs_has_no_value_and_no_row(classes: StudyTable) -> None:
    assert classes.frame["wait_s, none"].isna().all()
    assert (classes.frame["jobs, none"] == 0).all()
    found = by_class(classes, "class", {name: {"wait_s": f"wait_s, {name}"} for name in ("narrow", "wide", "none")})
    assert found.factors == ("policy", "class")
    assert found.levels("class") == ["narrow", "wide"]
    assert len(found) == 2 * len(classes)
    narrow = {"policy": "fcfs", "class": "narrow"}
    assert found.interval("wait_s", **narrow) == classes.interval("wait_s, narrow", policy="fcfs")
