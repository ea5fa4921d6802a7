"""Validations: right formulas agree and wrong ones differ."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from clustermodel import Machine, Result, Scenario, StudyTable, Validation, synthetic_workload, validate
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.script import load_experiment
from clustermodel.experiment.validate import load_validation
from clustermodel.figures.study import formula_and_simulation
from tests.conftest import Finished, refusal

SCRIPT = Path(__file__).with_name("validation_example.py")
Command = Callable[..., Finished]


def example() -> Validation:
    return load_validation(SCRIPT, SCRIPT.read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the example, run one after the other."""
    directory = tmp_path_factory.mktemp("whole") / "results"
    example().run(directory, workers=1)
    return directory


def test_right_formulas_agree_and_wrong_ones_differ_and_the_table_says_by_how_much(whole: Path) -> None:
    found = example().stored(whole)
    assert [(levels["error"], test.verdict) for levels, test in found.points] == [(0.0, "agrees"), (0.05, "differs")] * 2
    assert not found.holds
    assert str(found) == "mean_response: agrees at 2, differs at 2 of 4 points, within 2 %"
    for row in found.frame.to_dict("records"):
        here = found.table.interval("mean_response_s", mean_s=row["mean_s"], error=row["error"])
        assert row["formula"] == row["mean_s"] * (1 + row["error"])
        assert row["simulated"] == pytest.approx(here.mean)
        assert row["replications"] == here.count
        assert row["difference"] == pytest.approx(here.mean / row["formula"] - 1)
        assert row["high"] - row["difference"] == pytest.approx(row["half"] / row["formula"])
        assert (abs(row["low"]) < 0.02 and abs(row["high"]) < 0.02) == (row["verdict"] == "agrees")
        assert row["margin"] == 0.02
        assert pd.isna(row["more"])
    assert found.at(mean_s=400, error=0.05).verdict == "differs"
    with pytest.raises(KeyError, match="no point has error 1"):
        found.at(error=1)


def test_replications_are_added_until_there_is_a_verdict(whole: Path) -> None:
    study = example()
    assert study.looks == (5, 10, 20, 40, 80)
    assert len(study) == 4 * 5
    found = study.stored(whole)
    frame = found.table.frame
    counts = {tuple(levels.values()): test.count for levels, test in found.points}
    assert set(counts.values()) <= set(study.looks)
    assert len(found.table) == sum(counts.values()) > 4 * 5
    for levels, test in found.points:
        if (count := test.count) > 5:
            earlier = StudyTable(frame[frame["replication"] <= count // 2], study.levels.names, study.name)
            assert study.conclude(earlier).at(**levels).verdict == "undecided"


def test_a_point_without_a_verdict_says_how_many_replications_it_needs(whole: Path) -> None:
    study = replace(example(), at_most=5)
    frame = example().stored(whole).table.frame
    found = study.conclude(StudyTable(frame[frame["replication"] <= 5], study.levels.names, study.name))
    (undecided, *_) = [test for _, test in found.points if test.verdict == "undecided"]
    assert undecided.more is not None
    assert str(undecided) == f"undecided: needs {undecided.more:,} more replications"
    assert f"undecided (+{undecided.more:,})" in found.shown["verdict"].tolist()


# 100 repetitions.


def repeated(study: Validation, numbers: Callable[[Trial], Mapping[str, Any]]) -> StudyTable:
    """Run a validation as the executor does, without a store."""
    rows: dict[Trial, dict[str, Any]] = {}
    table = study.first_table()
    while missing := [trial for trial in study.trials(table) if trial not in rows]:
        for trial in missing:
            levels = study.levels.named(trial.point)
            rows[trial] = {"run": str(trial), **levels, "replication": trial.replication, "seed": 0, **numbers(trial)}
        table = StudyTable(list(rows.values()), study.levels.names, study.name)
    return table


def verdicts_of(numbers: Callable[[Validation, Trial], Mapping[str, Any]], repetitions: int) -> Counter[tuple[Any, str]]:
    """Count the verdicts of the example's points over repetitions with other seeds."""
    found: Counter[tuple[Any, str]] = Counter()
    for repetition in range(repetitions):
        study = replace(example(), seed=1000 * repetition, factors={"mean_s": [100], "error": [0.0, 0.05]}, at_most=320)
        table = repeated(study, lambda trial, study=study: numbers(study, trial))
        found.update((levels["error"], test.verdict) for levels, test in study.conclude(table).points)
    return found


def drawn(study: Validation, trial: Trial) -> dict[str, float]:
    """Return a mean response as the example's runs have it, without a run."""
    mean_s, error = trial.point
    rng = np.random.default_rng([study.seed + trial.replication, int(1000 * float(error or 0))])
    return {"mean_response_s": float(mean_s or 0) * rng.uniform(0.9, 1.1, 12).mean()}


def simulated(study: Validation, trial: Trial) -> dict[str, Any]:
    scenario = study.scenario_of(trial)
    assert scenario is not None
    return dict(study.numbers_of(scenario.run()))


@pytest.mark.statistical
@pytest.mark.parametrize("numbers", [drawn, simulated])
def test_a_formula_wrong_by_5_percent_differs_and_a_right_one_agrees_in_95_of_100_repetitions(
    numbers: Callable[[Validation, Trial], Mapping[str, Any]],
) -> None:
    found = verdicts_of(numbers, 100)
    assert found[0.05, "differs"] >= 95
    assert found[0.0, "agrees"] >= 95


# Formulas of runs, control variates, points without a formula, runs that cannot differ.


def load_scenario(load: float, seed: int) -> Scenario:
    workload = synthetic_workload(jobs=60, nodes=16, load=load, seed=seed)
    return Scenario(machine=Machine(nodes=16), workload=workload, policy="easy")


def kappa(result: Result) -> float | None:
    return result.kappa_by_formula


def wrong_utilization(result: Result) -> float:
    work = float((result.jobs["nodes"] * result.jobs["run_s"]).sum())
    return 1.05 * work / (result.machine.nodes * float(result.jobs["end_s"].max() - result.jobs["submit_s"].min()))


def test_a_formula_of_each_run_is_paired_with_its_measure() -> None:
    right = validate(kappa, scenario=load_scenario, factors={"load": [0.9]}, measure="kappa", margin=1e-9, replications=4)
    assert right.of_each_run
    found = right.run(workers=1)
    assert found.holds
    assert found.frame["formula"].item() > 0
    assert abs(float(found.shown["difference"].item())) < 1e-12
    assert {"kappa", "by_formula"} <= set(found.table.frame.columns)
    factors = {"load": [0.9]}
    wrong = validate(wrong_utilization, scenario=load_scenario, factors=factors, measure="utilization", replications=4)
    assert wrong.run(workers=1).at().verdict == "differs"


def mean_run(result: Result) -> float:
    return float(result.jobs["run_s"].mean())


def mean_response(result: Result) -> float:
    return float(result.jobs["response_s"].mean())


def test_a_control_variate_narrows_the_interval() -> None:
    study = replace(example(), factors={"mean_s": [100], "error": [0.0]}, at_most=5)
    controlled = replace(study, measure=mean_response, controls={"mean_run": (mean_run, lambda mean_s: mean_s)})
    plain, found = study.run(workers=1).at(), controlled.run(workers=1)
    assert (found.quantity, controlled.quantity) == ("mean_response", "simulated")
    assert found.at().half < 1e-6 < plain.half  # a response is a run time here
    assert found.at().mean == pytest.approx(100)
    assert found.holds


def test_where_the_formula_says_nothing_nothing_is_run() -> None:
    options: dict[str, Any] = {"scenario": load_scenario, "factors": {"load": [0.5, 2.0]}, "measure": "utilization"}
    study = validate(lambda load: None if load > 1 else load, margin=0.5, name="load", **options)
    assert {trial.point for trial in study.trials(study.first_table())} == {(0.5,)}
    assert len(study) == 10


def test_runs_that_cannot_differ_have_no_spread() -> None:
    def same(load: float, seed: int) -> Scenario:
        return load_scenario(load, min(seed, 1))

    factors = {"load": [0.5]}
    found = validate(lambda: 60, scenario=same, factors=factors, measure="jobs", replications=2, name="jobs").run(workers=1)
    assert (found.at().verdict, found.at().half, found.at().count) == ("agrees", 0, 2)


def test_a_validation_without_factors_and_one_that_is_half_done() -> None:
    study = validate(lambda: 60, scenario=lambda seed: load_scenario(0.5, seed), measure="jobs", replications=3, name="jobs")
    found = study.run(workers=1)
    assert found.holds
    assert str(found) == "jobs: agrees at 1 of 1 point, within 2 %"
    half = study.conclude(StudyTable(found.table.frame.iloc[:1], (), "jobs"))
    assert not half.holds
    assert str(study.conclude(study.first_table())) == "jobs: no run is finished"
    assert not study.conclude(study.first_table()).holds


# Pictures, the command, messages.


def test_the_figure_is_drawn_over_one_factor_two_factors_and_names(whole: Path, tmp_path: Path) -> None:
    frame = example().stored(whole).frame
    for chosen, panels in ((frame, 3), (frame[frame["error"] == 0], 2), (frame.assign(mean_s=["a", "b", "c", "d"]), 2)):
        figure = formula_and_simulation(chosen, ("mean_s", "error"), quantity="mean_response_s", relative=True)
        assert len(figure.axes) == panels
        figure.savefig(tmp_path / "figure.png")
        assert matplotlib.image.imread(tmp_path / "figure.png").std() > 0.01


def test_the_command_shows_verdicts_in_80_columns_and_its_exit_code_is_whether_all_agree(
    command_line: Command, whole: Path, tmp_path: Path
) -> None:
    shown = command_line("validate", SCRIPT, "--out", whole, "--stored")
    assert shown.code == 1
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.out.splitlines()[0] == "mean_response: agrees at 2, differs at 2 of 4 points, within 2 %"
    assert shown.out.count("agrees") == shown.out.count("differs") == 3
    right = tmp_path / "right.py"
    right.write_text(SCRIPT.read_text().replace("[0.0, 0.05]", "[0.0]"))
    other = tmp_path / "other.py"
    other.write_text(right.read_text().replace("seed=3", "seed=4"))
    assert command_line("validate", right, other, "--out", tmp_path / "both", "--workers", "1").code == 0
    assert {path.name for path in (tmp_path / "both").iterdir()} == {"right", "other"}
    assert command_line("validate", right, "--out", tmp_path / "part", "--shard", "1/2", "--workers", "1").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((Path(__file__).with_name("no.py"), "--out", "x"), "no such scenario script"),
        ((SCRIPT, "--out", "x", "--stored", "--workers", "2"), "--stored: nothing is run"),
        ((SCRIPT, "--out", "x", "--stored"), "x: there is no study here"),
        ((SCRIPT, SCRIPT.parent / "." / SCRIPT.name, "--out", "x"), "STUDIES: two scripts of one name are not allowed"),
        ((SCRIPT, "--out", "x", "--dask", "tcp://a:1", "--workers", "2"), "--workers: a Dask cluster has its own workers"),
    ],
)
def test_what_the_command_refuses_is_one_line(
    command_line: Command, arguments: tuple[object, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = command_line("validate", *arguments)
    assert refused.code == 2
    assert said in refused.err
    assert len(refused.err.splitlines()) == 1


def test_a_study_is_no_validation(command_line: Command, tmp_path: Path) -> None:
    script = tmp_path / "grid.py"
    script.write_text(
        "from clustermodel import Study, Scenario, synthetic_workload\n"
        "study = Study(name='s', factors={}, scenario=lambda seed: Scenario(workload=synthetic_workload(jobs=3, seed=seed)))\n"
    )
    assert load_experiment(script, script.read_text()).name == "s"
    refused = command_line("validate", script, "--out", tmp_path / "out")
    assert refused.code == 2
    assert f"{script}: `study` is no validation; define study = validate(...), or use clustermodel sweep" in refused.err


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"formula": 3}, "formula: 3 is not allowed; it must be a function of factors"),
        ({"formula": lambda lode: lode}, "of factors, which are mean_s, error: missing a required argument: 'lode'"),
        ({"measure": "mean_wait"}, "measure: 'mean_wait' is not allowed (did you mean 'mean_wait_s'?)"),
        ({"measure": "error"}, "measure: 'error' is not allowed; it is a factor, whose column hides it"),
        ({"margin": -1}, "margin: -1 is not allowed"),
        ({"replications": 1}, "replications: 1 is not allowed; it must be an integer >= 2"),
        ({"at_most": 2}, "at_most: 2 is not allowed; it must be an integer >= 5"),
        ({"controls": {"c": mean_run}}, "controls: c: <function mean_run"),
        ({"controls": {"c": (mean_run, "100")}}, "controls: c: '100' is not allowed; it must be a finite number"),
        (
            {"controls": {"c": (mean_run, lambda x: x)}},
            "controls: c: it must be a function of factors, which are mean_s, error: missing",
        ),
        ({"controls": 3}, "controls: 3 is not allowed"),
        ({"level": 2}, "level: 2 is not allowed"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], said: str) -> None:
    assert said in refusal(lambda: replace(example(), **fields))


def divided(mean_s: float, error: float) -> float:
    return 1 / (mean_s - 100)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (divided, "mean_response: formula at mean_s 100, error 0.0: "),
        (lambda mean_s: mean_s * float("nan"), "mean_response: formula at mean_s 100, error 0.0: nan is not allowed"),
        (lambda mean_s: f"{mean_s}", "mean_response: formula at mean_s 100, error 0.0: '100' is not allowed"),
    ],
)
def test_a_formula_that_fails_or_returns_no_number_is_one_line(formula: Any, said: str, tmp_path: Path) -> None:
    study = replace(example(), formula=formula)
    assert refusal(lambda: study.run(tmp_path / "out", workers=1)).startswith(said)


def test_a_missing_measure_is_named() -> None:
    factors = {"mean_s": [100], "error": [0.0]}
    study = replace(example(), measure=lambda result: None if result.jobs.size else 1.0, factors=factors)
    assert "simulated is missing in mean_s 100, error 0.0, replication 1" in refusal(lambda: study.run(workers=1))
