"""The page of a study embeds and draws the numbers of its table, to the last bit."""

import json
import re
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustermodel import StudyTable
from clustermodel.experiment.store import Store
from clustermodel.figures.curves_bars import level_of
from clustermodel.report.data import Replications, study_data
from clustermodel.report.write import write_report
from tests.report.conftest import Open
from tests.report.test_html_report import choose, column_of, download
from tests.unit.test_one_statistic import TABLES, directory, same, table_of

__all__ = ["directory"]

pytestmark = pytest.mark.long


def compare(table: StudyTable, data: dict[str, Any]) -> tuple[int, int]:
    """Compare all numbers of a page with those of the table; return how many are defined, and how many are significant."""
    points, factors = table.points(), [factor["name"] for factor in data["factors"]]
    assert [levels[name] for levels in points for name in factors] == [
        table.levels(name)[code] for codes in data["codes"] for name, code in zip(factors, codes, strict=True)
    ]
    known = significant = 0
    for name, shown in data["measures"].items():
        means = table.means(name)
        assert all(map(same, shown["mean"], means[name]))
        assert all(map(same, shown["half"], means[f"{name}_half"]))
        assert data["runs"] == means["replications"].tolist()
        for levels, mean, half in zip(points, shown["mean"], shown["half"], strict=True):
            if mean is not None:
                found = table.interval(name, **levels)
                assert mean == found.mean
                assert same(half, found.half)
                known += 1
    for of, baselines in zip(factors, data["differences"], strict=True):
        for baseline, shown in zip(table.levels(of), baselines, strict=True):
            for name, numbers in shown["measures"].items():
                frame = table.differences(name, of, baseline)
                assert [[points[place][name] for name in factors] for place in shown["points"]] == [
                    [level_of(row[name]) for name in factors] for row in frame.to_dict("records")
                ]
                assert all(map(same, numbers["difference"], frame["difference"]))
                assert all(map(same, numbers["half"], frame["half"]))
                assert numbers["significant"] == frame["significant"].tolist()
                for place, mean, half, relative, verdict in zip(
                    shown["points"], numbers["difference"], numbers["half"], numbers["relative"], numbers["significant"],
                    strict=True,
                ):  # fmt: skip
                    if mean is None:
                        assert (half, relative, verdict) == (None, None, False)
                        continue
                    found = table.difference(name, points[place], {**points[place], of: baseline})
                    assert (mean, verdict) == (found.mean, found.excludes(0))
                    assert same(half, found.half)
                    known += 1
                    significant += verdict
    return known, significant


@pytest.mark.parametrize("case", TABLES)
def test_what_a_page_embeds_is_what_the_table_says(case: str) -> None:
    table = table_of(case)
    known, significant = compare(table, study_data(Replications(table), ["wait", "share"], ["wait", "share"]))
    assert known
    assert (significant == 0) == (case in ("single", "two"))


def test_levels_that_are_no_texts() -> None:
    rng = np.random.default_rng(1)
    rows = [
        {"run": f"{a}{b}{number}", "a": a, "b": b, "replication": number, "seed": number, "wait": rng.normal()}
        for a in (3, None, True) for b in ("x", 1.5) for number in (1, 2, 3, 4)[: 4 - (a == 3)]
    ]  # fmt: skip
    table = StudyTable(rows, ["a", "b"], "made")
    known, _ = compare(table, study_data(Replications(table), ["wait"], ["wait"]))
    assert known == 6 + 3 * 4 + 2 * 3


def test_the_relative_difference_is_the_difference_over_the_mean_of_the_baseline() -> None:
    table = table_of("plain")
    data = study_data(Replications(table), ["wait"], ["wait"])
    for code, baseline in enumerate(table.levels("policy")):
        shown = data["differences"][1][code]
        for place, relative in zip(shown["points"], shown["measures"]["wait"]["relative"], strict=True):
            levels = table.points()[place]
            base = {**levels, "policy": baseline}
            assert relative == table.difference("wait", levels, base).mean / table.interval("wait", **base).mean


def page_of(directory: Path) -> tuple[StudyTable, str, dict[str, Any]]:
    write_report(directory, directory / "report.html")
    page = (directory / "report.html").read_text(encoding="utf-8")
    (embedded,) = re.findall(r'<script type="application/json" id="study-data">(.*?)</script>', page, re.DOTALL)
    with Store.read(directory) as store:
        return store.table(), page, json.loads(embedded)


def test_the_page_of_a_study_with_resampled_jobs_failures_and_missing_measures(directory: Path) -> None:
    table, page, data = page_of(directory)
    assert 0 < int(table.resampled.sum()) < len(table)
    assert table.failures
    compare(table, data)
    summary = re.search(r'<table class="data" data-name="summary">(.*?)</table>', page, re.DOTALL)
    assert summary is not None
    exact = re.findall(r'<td class="number"[^>]* data-half="([^"]*)">', summary[1])
    halves = table.means("mean_wait_s", "rare")[["mean_wait_s_half", "rare_half"]].to_numpy().ravel()
    assert len(exact) == len(halves)
    assert all(same(float(text) if text else None, half) for text, half in zip(exact, halves, strict=True))
    assert "prediction interval for one new log" in page


def test_the_scripts_of_the_page_write_and_draw_these_numbers(opener: Open, directory: Path) -> None:
    table, _, _ = page_of(directory)
    report = opener(directory / "report.html")
    means = table.means("mean_wait_s", "rare")
    shown = download(report, "summary")
    for name in ("mean_wait_s", "mean_wait_s_half", "rare", "rare_half"):
        assert all(map(same, shown[name].tolist(), means[name]))
    choose(report, "differences", "compare", "policy")
    choose(report, "differences", "baseline", "fcfs")
    shown, frame = download(report, "differences"), table.differences("mean_wait_s", "policy", "fcfs")
    for column, name in (("difference", "difference"), ("half", "half")):
        assert all(map(same, shown[f"mean_wait_s_{column}"].tolist(), frame[name]))
    assert shown["mean_wait_s_significant"].tolist() == frame["significant"].tolist()
    marks = column_of(report, "differences", "")
    assert sum(mark != "" for mark in marks) == int(frame["significant"].sum())
    choose(report, "metrics", "measure", "mean_wait_s")
    for place, policy in enumerate(("fcfs", "easy", "conservative")):
        drawn = report.drawn("curves linear", 3 * place + 1)
        for number, source in enumerate(("log", "drawn", "recorded")):
            found = table.interval("mean_wait_s", source=source, policy=policy)
            low, high = (found.mean, found.mean) if isnan(found.half) else (found.low, found.high)
            assert tuple(drawn[["y", "low", "high"]].iloc[number]) == (found.mean, low, high)
    report.assert_quiet()
    assert np.isfinite(means["mean_wait_s"]).all()
