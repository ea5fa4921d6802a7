"""Means, intervals, differences and verdicts are the same numbers, to the last bit, wherever they are shown."""

import json
from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustermodel import Job, Machine, Scenario, Study, StudyTable, Workload, synthetic_workload, validate
from clustermodel.cli.main import main
from clustermodel.experiment.factors import Label
from clustermodel.experiment.script import sweep
from clustermodel.experiment.store import Store
from clustermodel.experiment.study import Precision
from clustermodel.figures.curves_bars import _paired, _points_of
from clustermodel.figures.tables import means_table
from clustermodel.measure import statistics
from clustermodel.measure.equivalence import equivalence_test
from clustermodel.measure.statistics import (
    RESAMPLED,
    estimates,
    interval,
    least_half,
    of_sample_paths,
    paired_difference,
    paired_ratio,
)
from clustermodel.report.measure_table import Relative, Scaled, measure_table

POLICIES = ("easy", "fcfs", "gs")
LOADS = (0.5, 0.9)


def rows(replications: int = 7) -> list[dict[str, Any]]:
    """Return trials of three policies at two loads; replications share most of their variation."""
    rng = np.random.default_rng(5)
    found = []
    for load in LOADS:
        shared = rng.lognormal(9, 0.3 if load == 0.5 else 1.0, replications)
        for policy in POLICIES:
            own = shared * rng.lognormal({"easy": 0.0, "fcfs": 0.05, "gs": 2.0}[policy], 0.1, replications)
            found += [
                {"run": f"{load} {policy} {number}", "load": load, "policy": policy, "replication": number, "seed": number,
                 "wait": float(value), "share": float(value) / 1e6}
                for number, value in enumerate(own, 1)
            ]  # fmt: skip
    return found


def resampled(trial: dict[str, Any]) -> dict[str, Any]:
    return trial | {RESAMPLED: True}


def mixed(trial: dict[str, Any]) -> dict[str, Any]:
    return trial | {RESAMPLED: True if trial["load"] == 0.9 else None}


def of_one_run(trial: dict[str, Any]) -> dict[str, Any]:
    """FCFS is deterministic on the jobs of load 0.5: all its replications are one run."""
    one = trial["policy"] != "gs" and trial["load"] == 0.5
    return trial | ({"run": f"{trial['policy']} recorded", "wait": 1234.1, "share": 0.3} if one else {})


def lacking(trial: dict[str, Any]) -> dict[str, Any]:
    """GS has no wait in replication 3 at load 0.9."""
    return trial | ({"wait": None} if (trial["policy"], trial["load"], trial["replication"]) == ("gs", 0.9, 3) else {})


def failed(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """EASY failed in replication 2 and GS in replication 5 at load 0.9; FCFS failed at load 0.5 altogether."""
    gone = {("easy", 0.9, 2), ("gs", 0.9, 5), *(("fcfs", 0.5, number) for number in range(1, 99))}
    return [trial for trial in trials if (trial["policy"], trial["load"], trial["replication"]) not in gone]


def nothing_in_common(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At load 0.9 EASY finished replications 1 to 3 only, and GS the others only."""
    gone = {("easy", 0.9): range(4, 99), ("gs", 0.9): range(1, 4)}
    return [trial for trial in trials if trial["replication"] not in gone.get((trial["policy"], trial["load"]), ())]


TABLES: dict[str, list[dict[str, Any]]] = {
    "plain": rows(),
    "many": rows(33),
    "two": rows(2),
    "single": rows(1),
    "resampled": list(map(resampled, rows())),
    "resampled and plain": list(map(mixed, rows())),
    "deterministic": list(map(of_one_run, rows())),
    "missing": list(map(lacking, rows())),
    "failed": failed(rows()),
    "failed, resampled": list(map(resampled, failed(rows()))),
    "nothing in common": nothing_in_common(rows()),
    "shuffled shards": [rows()[place] for place in np.random.default_rng(1).permutation(len(rows()))],
}  # fmt: skip


def table_of(case: str) -> StudyTable:
    return StudyTable([dict(trial) for trial in TABLES[case]], ["load", "policy"], case)


def same(first: float | None, second: float) -> bool:
    """Return whether numbers are equal to the last bit; the page has null for what is undefined."""
    return isnan(second) if first is None or isnan(first) else first == second


def counted(case: str, levels: Mapping[str, Label]) -> dict[int, dict[str, Any]]:
    """Return the trials of a point by replication."""
    trials = [trial for trial in TABLES[case] if all(trial[name] == level for name, level in levels.items())]
    return {trial["replication"]: trial for trial in sorted(trials, key=lambda trial: int(trial["replication"]))}


def expected(values: Sequence[float | None], *, wider: bool) -> tuple[float, float]:
    """Return mean and half-width by the functions of arrays."""
    if not values or None in values:
        return nan, nan
    if len(values) == 1:
        return float(values[0] or 0), nan
    found = interval(values)  # type: ignore[arg-type]
    return (found.mean, of_sample_paths(found).half) if wider else (found.mean, found.half)


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("measure", ["wait", "share"])
def test_means_of_a_table_are_those_of_arrays(case: str, measure: str) -> None:
    table = table_of(case)
    means = table.means("wait", "share")
    for place, levels in enumerate(table.points()):
        trials = {trial["run"]: trial for trial in counted(case, levels).values()}
        wider = any(trial.get(RESAMPLED) for trial in trials.values())
        mean, half = expected([trial[measure] for trial in trials.values()], wider=wider)
        row = means.iloc[place]
        assert same(row[measure], mean)
        assert same(row[f"{measure}_half"], half)
        assert row["replications"] == len(trials)  # also where a measure is missing
        if not isnan(mean):
            found = table.interval(measure, **levels)
            assert (found.mean, found.count) == (mean, len(trials))
            assert same(found.half, half)


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("of", ["load", "policy"])
@pytest.mark.parametrize("measure", ["wait", "share"])
def test_differences_and_verdicts_of_a_table_are_those_of_arrays(case: str, of: str, measure: str) -> None:
    table = table_of(case)
    for baseline in table.levels(of):
        frame = table.differences(measure, of, baseline)
        there = [levels for levels in table.points() if levels[of] != baseline and counted(case, {**levels, of: baseline})]
        assert frame[["load", "policy"]].to_dict("records") == there
        for row, levels in zip(frame.to_dict("records"), there, strict=True):
            first, second = (counted(case, at) for at in (levels, {**levels, of: baseline}))
            pairs = {(first[n]["run"], second[n]["run"]): (first[n], second[n]) for n in first if n in second}
            wider = any(trial.get(RESAMPLED) for pair in pairs.values() for trial in pair)
            known = [(a[measure], b[measure]) for a, b in pairs.values()]
            mean, half = expected([None if None in pair else pair[0] - pair[1] for pair in known], wider=wider)
            verdict = not isnan(half) and not mean - half <= 0 <= mean + half
            assert row["replications"] == len(pairs)
            assert same(row["difference"], mean)
            assert same(row["half"], half)
            assert row["significant"] is verdict
            if not isnan(mean):
                found = table.difference(measure, levels, {**levels, of: baseline})
                assert (found.mean, found.count, found.excludes(0)) == (mean, len(pairs), verdict)
                assert all(map(same, (found.half, found.low, found.high), (half, row["low"], row["high"])))


def test_the_verdicts_differ_with_and_without_the_factor() -> None:
    plain, wider = (table_of(case).differences("wait", "policy", "easy") for case in ("plain", "resampled"))
    assert plain["difference"].tolist() == wider["difference"].tolist()
    assert wider["half"].tolist() == [half * sqrt(8) for half in plain["half"]]
    assert plain["significant"].sum() > wider["significant"].sum()


@pytest.mark.parametrize("case", TABLES)
def test_figures_draw_the_numbers_of_the_table(case: str) -> None:
    table = table_of(case)
    frame = table.frame if case != "missing" else table.frame[table.frame["policy"] != "gs"]
    for point in _points_of(frame, ["wait"], "policy", "load"):
        found = table.interval("wait", policy=point.of, load=point.at)  # type: ignore[arg-type]
        mean, half = point.interval("wait", 0.95)
        assert mean == found.mean
        assert same(half, found.half)


@pytest.mark.parametrize(
    "case", ["plain", "many", "single", "resampled", "resampled and plain", "deterministic", "shuffled shards"]
)
@pytest.mark.parametrize("ratio", [False, True])
def test_figures_of_pairs_draw_the_numbers_of_the_table(case: str, ratio: bool) -> None:
    table, measure = table_of(case), statistics.ratios if ratio else np.subtract
    paired = _paired(table.frame, ["wait"], "easy", "load", "policy", measure, {"wait": "pair"})
    for point in _points_of(paired, ["pair"], "policy", "load"):
        levels = {"policy": point.of, "load": point.at}
        found = table.difference("wait", levels, {**levels, "policy": "easy"}, ratio=ratio)  # type: ignore[dict-item]
        mean, half = point.interval("pair", 0.95)
        assert mean == found.mean
        assert same(half, found.half)


@pytest.mark.parametrize("case", ["plain", "resampled"])
def test_bands_of_figures_are_the_intervals(case: str) -> None:
    table = table_of(case)
    for figure, at, ratio in (
        (table.plot.curves(y="wait", x="load"), None, False),
        (table.plot.differences(y="wait", x="load", baseline="easy"), "easy", False),
        (table.plot.ratios(y="wait", x="load", baseline="easy"), "easy", True),
    ):
        drawn = [band.get_paths()[0].vertices[:, 1] for band in figure.axes[0].collections]
        policies = [policy for policy in POLICIES if policy != at]
        assert len(drawn) == len(policies)
        for policy, heights in zip(policies, drawn, strict=True):
            for load in LOADS:
                found = (
                    table.interval("wait", policy=policy, load=load)
                    if at is None
                    else table.difference("wait", {"policy": policy, "load": load}, {"policy": at, "load": load}, ratio=ratio)
                )
                low = max(found.low, 0.0) if at is None or ratio else found.low
                assert {low, found.high} <= set(heights.tolist())


@pytest.mark.parametrize("case", ["plain", "resampled", "resampled and plain", "deterministic", "missing"])
def test_tables_for_people_have_the_intervals(case: str) -> None:
    table = table_of(case)
    frame = measure_table(
        table, {"wait": "wait", "hours": Scaled("share", 2.0), "of easy": Relative("share", {"policy": "easy"})}
    )
    for row in frame.to_dict("records"):
        levels = {"load": row["load"], "policy": row["policy"]}
        mean, ratio = (
            table.interval("share", **levels),
            table.difference("share", levels, {**levels, "policy": "easy"}, ratio=True),
        )
        for shown, found, scale in ((row["hours"], mean, 2.0), (row["of easy"], ratio, 1.0)):
            assert (shown.mean, shown.count) == (scale * found.mean, found.count)
            assert same(shown.half, scale * found.half)
    printed = means_table(table, "", ["wait", "share"])
    means = table.means("wait", "share")
    for name in ("wait", "wait_half", "share", "share_half", "replications"):
        assert all(map(same, printed.plain[name], means[name]))
    assert ("resampled" in str(table)) == case.startswith("resampled")


def test_a_single_pair_has_the_ratio_of_several() -> None:
    one = StudyTable([dict(trial, wait=0.0) for trial in TABLES["single"]], ["load", "policy"], "zeros")
    found = one.difference("wait", {"load": 0.5, "policy": "gs"}, {"load": 0.5, "policy": "easy"}, ratio=True)
    assert (found.mean, found.count) == (1.0, 1)
    assert not found.excludes(1)


@pytest.mark.parametrize("count", [2, 3, 7, 8, 9, 15, 16, 17, 100, 129, 300])
def test_the_numbers_of_a_point_do_not_depend_on_the_others(count: int) -> None:
    values = np.random.default_rng(count).lognormal(9, 1, (41, count))
    for memory in (values, np.asfortranarray(values)):
        found = estimates(memory)
        for place, of in enumerate(values):
            alone = interval(of)
            assert (found.mean[place], found.half[place]) == (alone.mean, alone.half)
            assert alone.mean == np.mean(of)
    assert paired_difference(values[0], values[1]) == interval(values[0] - values[1])
    assert paired_ratio(values[0], values[1]) == interval(values[0] / values[1])


# A study that has been run: page, command line, Python.


def weeks(seed: int) -> Workload:
    """Return ten days of a log that are drawn anew."""
    rng = np.random.default_rng(3)
    submit = np.sort(rng.uniform(0, 10 * 86_400, 150)).tolist()
    jobs = [
        Job(id=number, submit_s=at, nodes=int(rng.integers(1, 9)), run_s=float(rng.lognormal(8.5, 1.5)), estimate_s=90_000)
        for number, at in enumerate(submit, 1)
    ]
    return Workload.from_jobs(jobs).resampled(86_400, seed=seed)


def made(seed: int) -> Workload:
    return synthetic_workload(jobs=60, nodes=8, load=0.8, seed=seed)


def recorded(seed: int) -> Workload:
    return synthetic_workload(jobs=60, nodes=8, load=0.9, seed=3)


def study() -> Study:
    """Return a study of resampled, drawn and recorded jobs, in which a policy fails in a replication."""
    sources: dict[str, Callable[[int], Workload]] = {"log": weeks, "drawn": made, "recorded": recorded}

    def scenario(source: Callable[[int], Workload], policy: str, seed: int) -> Scenario:
        return Scenario(machine=Machine(nodes=8), workload=source(seed), policy=policy, seed=seed)

    def rare(result: Any) -> float | None:
        at = result.scenario.label, result.scenario.seed
        if at == ("conservative", 2):
            raise ValueError(at)
        return None if at == ("easy", 3) else result.summary().mean_wait_s / 7

    return Study(
        name="one statistic", factors={"source": sources, "policy": ["fcfs", "easy", "conservative"]}, scenario=scenario,
        replications=4, measures={"rare": rare}, shown=("mean_wait_s", "rare"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one statistic")
    assert sweep(study(), folder, workers=1).failures
    return folder


def stored(directory: Path) -> StudyTable:
    with Store.read(directory) as store:
        return store.table()


def test_the_command_line_prints_the_numbers_of_the_table(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = stored(directory)
    measures = ["mean_wait_s", "utilization", "rare"]
    means = table.means(*measures)
    given = [option for measure in measures for option in ("--measure", measure)]
    with pytest.raises(SystemExit):
        main(["results", str(directory), "--json", *given])
    said = capsys.readouterr()
    for record, row in zip(json.loads(said.out), means.to_dict("records"), strict=True):
        assert record.keys() == row.keys()
        for name, value in row.items():
            assert record[name] == value or (record[name] is None and isnan(value))
    assert means["replications"].min() > 0
    with pytest.raises(SystemExit):
        main(["results", str(directory), *given])
    said = capsys.readouterr()
    names, *lines = [line.split("\t") for line in said.out.splitlines()]
    for line, row in zip(lines, means.to_dict("records"), strict=True):
        shown = dict(zip(names, line, strict=True))
        assert all(shown[name] == (f"{value:.10g}" if isinstance(value, float) else str(value)) for name, value in row.items())
    assert "prediction interval for one new log" in said.err


# What ends or judges replications.


def test_replications_of_resampled_jobs_stop_where_more_of_them_narrow_nothing() -> None:
    trials = [dict(trial) for trial in rows(40) if trial["policy"] == "gs" and trial["load"] == 0.5]
    for more in ({}, {RESAMPLED: True}):
        table = StudyTable([trial | more for trial in trials], ["policy"], "until")
        first = table.interval_of_first("wait", 10, {"policy": "gs"})
        assert first.of_one_log == bool(more)
        wanted = Precision(measure="wait", half_width=0.3 * table.interval("wait").half).wanted(table, {"policy": "gs"})
        assert (wanted == 10) == bool(more)
        assert least_half(first) == (
            pytest.approx(1.959963984540054 * np.std(table.values("wait")[:10], ddof=1)) if more else 0
        )
        wide = Precision(measure="wait", half_width=2 * first.half).wanted(table, {"policy": "gs"})
        assert wide == 10


def test_a_formula_is_judged_by_the_interval_of_sample_paths() -> None:
    values = np.random.default_rng(2).normal(10, 0.5, 20)
    plain, wider = (equivalence_test(values, 10.0, 0.05, of_one_log=of_one_log) for of_one_log in (False, True))
    assert (plain.verdict, wider.verdict, wider.more) == ("agrees", "undecided", None)
    assert wider.half == pytest.approx(plain.half * sqrt(21), rel=1e-15)
    checked = validate(
        lambda: 10.0, measure=lambda result: result.summary().mean_wait_s, name="waits", at_most=40,
        scenario=lambda seed: Scenario(machine=Machine(nodes=8), workload=weeks(seed), policy="fcfs"),
    )  # fmt: skip
    found = checked.run(workers=1)
    ((_, test),) = found.points
    (mean,) = found.table.estimates("measure" if "measure" in found.table.frame else checked.quantity).mean
    assert test.mean == pytest.approx(mean, rel=1e-12)
    assert test.half > found.table.interval(checked.quantity).half / 2


def test_a_factor_with_the_name_of_a_column_of_numbers_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def scenario(jobs: int, load: float, seed: int) -> Scenario:
        workload = synthetic_workload(jobs=jobs, nodes=8, load=load, seed=seed)
        return Scenario(machine=Machine(nodes=8), workload=workload, policy="fcfs")

    sweep(Study(name="s", factors={"jobs": {"few": 10}, "load": {"low": 0.5}}, scenario=scenario), tmp_path, workers=1)
    with pytest.raises(SystemExit) as ended:
        main(["results", str(tmp_path)])
    assert ended.value.code == 0
    assert capsys.readouterr().out
