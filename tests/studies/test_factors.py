"""Factors: kinds of levels, labels in tables, points that make no sense; and every refusal in its exact words."""

import time
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clustermodel import ExecutionError, Machine, Scenario, SpecificationError, Store, Study, StudyTable, synthetic_workload
from clustermodel.errors import quoted
from clustermodel.experiment.factors import Factors
from clustermodel.experiment.study import Precision
from clustermodel.policies.easy import Easy
from tests.conftest import refusal
from tests.studies.test_sweep import runs_of, serial


def scenario(seed: int, **_: object) -> Scenario:
    return Scenario(machine=Machine(nodes=32), workload=synthetic_workload(jobs=10, nodes=32, seed=seed), seed=seed)


def test_levels_keep_their_kinds_in_tables_and_reach_the_scenario_as_they_are(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    policy, machine = Easy(), Machine(nodes=64)

    def make(seed: int, **levels: Any) -> Scenario:
        seen.append(levels)
        return scenario(seed)

    factors: dict[str, Any] = {
        "whole": np.array([1, 2]), "real": [np.float64(0.5)], "mixed": [1, 2.5], "maybe": [None, 3], "flag": (True, False),
        "text": ["a"], "policy": [policy, "fcfs"], "machine": {"small": machine},
        "sized": {64: machine, 128: Machine(nodes=128)},
    }  # fmt: skip
    study = Study(name="kinds", factors=factors, scenario=make)
    table = serial(study, tmp_path)
    assert len(table) == len(study) == 2 * 2 * 2 * 2 * 2 * 2
    first = seen[0]
    assert [type(first[name]) for name in ("whole", "real", "mixed", "maybe", "flag", "text")] == [
        int, float, int, type(None), bool, str,
    ]  # fmt: skip
    assert first["policy"] is policy
    assert first["machine"] is first["sized"] is machine
    assert {levels["sized"].nodes for levels in seen} == {64, 128}
    kinds = {name: table.frame[name].dtype.kind for name in ("whole", "real", "mixed", "maybe", "flag", "sized")}
    assert kinds == {"whole": "i", "real": "f", "mixed": "f", "maybe": "f", "flag": "b", "sized": "i"}
    assert table.levels("maybe") == [None, 3]
    assert table.levels("policy") == ["easy", "fcfs"]
    for levels in ({"maybe": None}, {"maybe": 3.0}, {"flag": True}, {"whole": 2}, {"machine": "small", "flag": False}):
        assert len(table.at(**levels)) == 32
    for levels in ({"flag": 1}, {"whole": True}, {"text": None}, {"whole": "1"}):
        with pytest.raises(SpecificationError, match=r"^table of kinds: no finished trial has "):
            table.at(**levels)
    with Store.read(tmp_path) as store:  # as they are stored
        pd.testing.assert_frame_equal(store.table().frame, table.frame)
        assert store.table().trials() == study.trials(study.first_table())


def test_the_last_factor_varies_fastest_and_labels_have_places() -> None:
    factors = Factors({"x": [2, 1], "y": ["a", "b"]})
    assert factors.points() == [(2, "a"), (2, "b"), (1, "a"), (1, "b")]
    assert [factors.place("x", label) for label in (2, 1, 1.0, 1.5, "other")] == [0, 1, 1, 1.5, 2]
    assert factors.values((1.0, "b")) == {"x": 1, "y": "b"}
    assert factors.values((1.5, "c")) == {"x": 1.5, "y": "c"}  # a value that a search has chosen


def test_points_whose_scenario_is_none_are_left_out(tmp_path: Path) -> None:
    study = Study(
        name="s",
        factors={"x": [1, 2, 3], "y": [1, 2, 3]},
        scenario=lambda x, y, seed: scenario(seed) if x >= y else None,
        replications=2,
    )
    table = serial(study, tmp_path)
    assert len(study) == 18
    assert table.points() == [{"x": x, "y": y} for x in (1, 2, 3) for y in (1, 2, 3) if x >= y]
    assert len(table) == 12
    with Store.read(tmp_path) as store:
        assert store.states() == {"pending": 0, "done": 12, "failed": 0}
    nothing = Study(name="s", factors={}, scenario=lambda seed: None)  # noqa: ARG005
    assert len(nothing.run(workers=1)) == 0


def test_a_factor_may_have_the_name_of_a_column_and_wins(tmp_path: Path) -> None:
    table = serial(Study(name="s", factors={"nodes": [1, 2], "policy": ["x"]}, scenario=scenario), tmp_path)
    assert table.frame[["nodes", "policy"]].to_numpy().tolist() == [[1, "x"], [2, "x"]]


def study(**fields: Any) -> Study:
    return Study(**{"name": "s", "factors": {"x": [1]}, "scenario": scenario, **fields})


NAME = (
    "Study.factors: {} is not allowed; a factor's name must be a name of Python other than run, replication, seed, measure, "
    "level, self, resampled, because it is an argument of the scenario function"
)
LEVELS = "Study.factors: x: {} is not allowed; it must be a list of levels, or a dictionary of them by name"
OBJECT = (
    "Study.factors: x: {} is not allowed in a list; levels that are neither numbers, texts nor policies must be a dictionary "
    "of them by name"
)
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: study(factors=[1]), "Study.factors: [1] is not allowed; it must be a dictionary of levels by name"),
    *(
        (lambda name=name: study(factors={name: [1]}), NAME.format(repr(name)))
        for name in ("run", "replication", "seed", "measure", "level", "self", "my factor", "", 3)
    ),
    *((lambda given=given: study(factors={"x": given}), LEVELS.format(repr(given))) for given in (3, "abc", b"abc", None)),
    (lambda: study(factors={"x": []}), "Study.factors: x: no level is given; at least one is needed"),
    (lambda: study(factors={"x": {}}), "Study.factors: x: no level is given; at least one is needed"),
    (lambda: study(factors={"x": [1, 1.0]}), "Study.factors: x: 1.0 is given twice; levels must be distinct"),
    (lambda: study(factors={"x": [1, True]}), "Study.factors: x: True is given twice; levels must be distinct"),
    (lambda: study(factors={"x": np.array([2, 2])}), "Study.factors: x: 2 is given twice; levels must be distinct"),
    (
        lambda: study(factors={"policy": ["easy", Easy()]}),
        "Study.factors: policy: 'easy' is given twice; levels must be distinct",
    ),
    (lambda: study(factors={"x": [Machine(nodes=3)]}), OBJECT.format(quoted(Machine(nodes=3)))),
    (lambda: study(factors={"x": [(1, 2)]}), OBJECT.format("(1, 2)")),
    (lambda: study(factors={"x": [nan]}), "Study.factors: x: nan is not allowed; a number must be finite (None is allowed)"),
    (lambda: study(factors={"x": [inf]}), "Study.factors: x: inf is not allowed; a number must be finite (None is allowed)"),
    (lambda: study(factors={"x": [""]}), "Study.factors: x: '' is not allowed; a name must be a text that is not empty"),
    (lambda: study(factors={"x": {(1, 2): 3}}), "Study.factors: x: (1, 2) is not allowed; a label must be a text or a number"),
    (lambda: study(name=" "), "Study.name: ' ' is not allowed; a name must be a text that is not empty"),
    (lambda: study(job_tables="none"), "Study.job_tables: 'none' is not allowed; it must be one of first, all"),
    (lambda: study(text=3), "Study.text: 3 is not allowed; it must be a text"),
    (
        lambda: study(measures=[len]),
        "Study.measures: [<built-in function len>] is not allowed; it must be a dictionary of functions by name",
    ),
    (lambda: study(measures={"": len}), "Study.measures: '' is not allowed; a name must be a text that is not empty"),
    (lambda: study(measures={"kappa": len}), "Study.measures: 'kappa' is not allowed; the table has a column of that name"),
    (lambda: study(measures={"x": len}), "Study.measures: 'x' is not allowed; the table has a column of that name"),
    (lambda: study(measures={"run": len}), "Study.measures: 'run' is not allowed; the table has a column of that name"),
    (lambda: study(measures={"m": 3}), "Study.measures: m: 3 is not allowed; it must be a function of a Result"),
    (
        lambda: study(shown=["kapa"]),
        "Study.shown: 'kapa' is not allowed (did you mean 'kappa'?); it must be a column of the table",
    ),
    (lambda: study(scenario=3), "Study.scenario: 3 is not allowed; it must be a function of x, seed"),
    (
        lambda: study(scenario=lambda y, seed: None),  # noqa: ARG005
        "Study.scenario: it must be a function of x, seed: missing a required argument: 'y'",
    ),
    (
        lambda: study(until=Precision(measure="m", relative=1)),
        "Precision.measure: 'm' is not allowed; it must be a column of the table",
    ),
    (
        lambda: study(scenario=lambda x, seed: 3).run(workers=1),  # noqa: ARG005
        "Study.scenario: the function returned 3; it must return a Scenario or None",
    ),
    (lambda: study().run(workers=0), "workers: 0 is not allowed; it must be an integer >= 1"),
    (
        lambda: study().run(run_timeout_s=0),
        "run_timeout_s: 0 is not allowed; it must be a finite number of seconds > 0 and <= 1e+10",
    ),
    (lambda: study().run(progress=False), "progress: False is not allowed; it must be a callable, or None"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("refused", "line"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_is_one_line(refused: Callable[[], object], line: str) -> None:
    assert refusal(refused) == line


def test_shown_may_be_one_name() -> None:
    assert study(shown="kappa").shown == ("kappa",)


def test_a_measure_that_returns_no_number_fails_its_runs() -> None:
    with pytest.raises(ExecutionError) as failed:
        study(measures={"m": lambda _: "text"}).run(workers=1)
    assert str(failed.value) == (
        "study s: all runs failed, the first one was x 1, replication 1: measure m: it returned 'text'; it must return a "
        "number or None"
    )
    half = study(factors={"x": [1, 2]}, measures={"m": lambda result: 1 / 0}, scenario=lambda x, seed: scenario(seed))  # noqa: ARG005
    with pytest.raises(ExecutionError, match=r"all runs failed, the first one was x 1, replication 1: .*ZeroDivisionError"):
        half.run(workers=1)


def test_failed_runs_are_a_warning_where_others_are_finished() -> None:
    def some(x: int, seed: int) -> Scenario:
        if x == 2:
            raise RuntimeError("no")
        return scenario(seed)

    with pytest.warns(UserWarning, match=r"^study s: 1 run failed: x 2, replication 1: .*RuntimeError: no$"):
        table = study(factors={"x": [1, 2]}, scenario=some).run(workers=1)
    assert (len(table), len(table.failures)) == (1, 1)


# Tables.


def large() -> StudyTable:
    rng = np.random.default_rng(1)
    rows = [
        {"run": f"{x}/{y}/{policy}/{r}", "x": x, "y": y, "policy": policy, "replication": r, "wait": rng.normal(10, 1)}
        for x in range(25) for y in range(20) for policy in "ab" for r in range(1, 11)
    ]  # fmt: skip
    return StudyTable(rows, ["x", "y", "policy"], "large")


def test_means_and_differences_of_a_thousand_points_are_those_of_pandas_and_scipy_and_soon_made() -> None:
    table = large()
    table.interval("wait", x=1, y=1, policy="a")  # imports scipy
    began = time.process_time()
    means, differences = table.means("wait"), table.differences("wait", "policy", "a")
    wanted = [Precision(measure="wait", relative=0.1).wanted(table, point) for point in table.points()]
    assert time.process_time() - began < 10  # a bound on work that grows with the square: a third of a second is usual
    assert (len(means), len(differences), len(wanted)) == (1000, 500, 1000)
    by_pandas = table.frame.groupby(["x", "y", "policy"], sort=False)["wait"].agg(["mean", "count"]).reset_index()
    np.testing.assert_allclose(means["wait"], by_pandas["mean"])
    assert means["replications"].tolist() == by_pandas["count"].tolist()
    wide = table.frame.pivot_table(index=["x", "y"], columns=["policy"], values="wait")
    np.testing.assert_allclose(differences["difference"], wide["b"] - wide["a"])


FACTORS, LEVELS = "there are x, y, policy", "there are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 15 more"


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        (lambda table: table.at(z=1), f"table of large: 'z' is no factor; {FACTORS}"),
        (lambda table: table.at(polcy="a"), f"table of large: 'polcy' is no factor (did you mean 'policy'?); {FACTORS}"),
        (lambda table: table.at(x=99), f"table of large: no finished trial has x 99; {LEVELS}"),
        (lambda table: table.values("wait", x=1), "table of large: x 1 has several points; choose levels of more factors"),
        (lambda table: table.values("wait"), "table of large: this table has several points; choose levels of more factors"),
        (lambda table: table.values("wai", x=1), "table of large: there is no column 'wai' (did you mean 'wait'?)"),
        (lambda table: table.levels("wait"), f"table of large: 'wait' is no factor; {FACTORS}"),
        (lambda table: table.differences("wait", "policy", "c"), "table of large: policy 'c' is not there; there are a, b"),
        (
            lambda table: table.difference("wait", {"x": 1, "y": 1, "policy": "a"}, {"x": 99}),
            f"table of large: no finished trial has x 99; {LEVELS}",
        ),
    ],
)  # fmt: skip
def test_what_a_table_does_not_have_is_one_line(ask: Callable[[StudyTable], object], line: str) -> None:
    assert refusal(lambda: ask(large())) == line


# What the parent process does for each trial.


def test_the_jobs_of_a_replication_are_made_once_for_all_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = np.random.SeedSequence

    def counted(seed: int) -> np.random.SeedSequence:
        made.append(seed)
        return real(seed)

    monkeypatch.setattr(np.random, "SeedSequence", counted)
    study = Study(
        name="s",
        factors={"policy": ["fcfs", "easy", "conservative", "slack"]},
        scenario=lambda policy, seed: Scenario(workload=synthetic_workload(jobs=501, seed=seed), policy=policy),
        replications=3,
    )
    assert len({run.key for run in runs_of(study)}) == 12
    assert made == [1, 2, 3]
