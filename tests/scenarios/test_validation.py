"""The validations of ``scenarios/validation``: small runs, the numbers of the first edition, and the page of the full runs.

After a new full run: ``python docs/make_studies.py`` with the names of docs/studies.toml that begin with ``validation``.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from clustermodel import Machine, Scenario, StudyTable, Validation, Verdicts, equivalence_test
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.script import load_experiment
from tests.scripts import defined_in

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scenarios" / "validation"
PAGE = ROOT / "docs" / "validation.md"
EXACT = ("kappa", "saturated", "migration_overhead")
SMALL: Mapping[str, Mapping[str, str]] = {
    "mmc": {"jobs": "2000", "at_most": "20", "nodes": "1,4", "loads": "0.5"},
    "partitions": {"jobs": "2000", "at_most": "20", "nodes": "1"},
    "mg1": {"jobs": "2000", "at_most": "20", "loads": "0.5"},
    "checkpoint_interval": {"at_most": "100", "mtbfs_h": "24", "multiples": "1.0"},
    "saturation": {"jobs": "600", "at_most": "20"},
    "kappa": {"jobs": "60", "replications": "3"},
    "saturated": {"jobs": "60", "replications": "3"},
    "migration_overhead": {"jobs": "60", "replications": "3"},
    "shared_node": {"jobs": "400", "at_most": "20", "loads": "0.5"},
    "slices": {"jobs": "400", "at_most": "20", "slices": "60", "levels": "2"},
    "gangs": {"jobs": "400", "at_most": "20", "loads": "0.5,0.8"},
    "gang_rows": {"jobs": "400", "at_most": "20"},
    "rigid_response": {"jobs": "2000", "at_most": "20", "shares": "0.5"},
    "packing": {"jobs": "400", "at_most": "20"},
    "equipartition": {"jobs": "300", "at_most": "20", "loads": "0.5"},
    "resize_cost": {"pairs": "200", "at_most": "20", "costs_s": "0,37.5"},
}
"""Parameters of small runs."""


def validation(name: str, settings: Mapping[str, str] = {}) -> Validation:
    path = SCRIPTS / f"{name}.py"
    found = load_experiment(path, path.read_text(), settings)
    assert isinstance(found, Validation)
    return found


def test_every_script_has_a_small_run() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} == SMALL.keys() | {"queueing_models"}


def strayed(verdicts: Verdicts) -> float:
    """Return the largest distance of a mean from its formula, in half widths of its interval."""
    return max(abs(test.difference) / test.half for _, test in verdicts.points if test.half > 0)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.long
def test_exact_equations_agree_in_small_runs(name: str) -> None:
    found = validation(name, SMALL[name]).run(workers=1)
    assert found.holds
    assert (found.frame["formula"] > 0).all()  # 0 = 0 would prove nothing
    assert found.frame["difference"].abs().max() < 1e-12


@pytest.mark.long
def test_the_worth_of_migration_agrees_in_a_small_run() -> None:
    found = validation("gangs", {**SMALL["gangs"], "loads": "0.5"}).run(workers=1)
    assert found.at(policy="mgs").verdict == "agrees"
    assert found.at(policy="gs").verdict != "differs"
    assert found.at(policy="gs").low > 0.5 * (found.at(policy="mgs").expected - found.at(policy="gs").expected)


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in SMALL if name not in EXACT])
def test_no_formula_differs_in_small_runs(name: str) -> None:
    found = validation(name, SMALL[name]).run(workers=1)
    assert "differs" not in set(found.frame["verdict"])
    # The deciding interval has a level of 90 %; of these points none should lie four half widths from its formula.
    assert strayed(found) < 4


def test_the_formula_of_saturation_needs_exponential_run_times() -> None:
    # With constant run times the same comparison fails, so it can.
    saturation = defined_in("validation/saturation")
    sizes = saturation.SIZES["20 % of the jobs have 8 nodes, the others 1"]
    values = []
    for seed in range(1, 11):
        constant = saturation.model_jobs(jobs=600, seed=seed, stream="constant run times", run_s=100.0, sizes=sizes)
        result = Scenario(machine=Machine(nodes=8), workload=constant, policy="fcfs").run()
        values.append(saturation.utilization_until_last_start(result, skip=saturation.SKIPPED))
    assert equivalence_test(values, saturation.formula(sizes), 0.01).verdict == "differs"


def test_a_longer_run_loses_a_smaller_share_while_it_drains() -> None:
    idle = {}
    for jobs in (100, 1_000):
        study = validation("saturated", {"jobs": str(jobs)})
        runs = [run_numbers(study, ("gs", "every-slice"), seed) for seed in (1, 2, 3)]
        idle[jobs] = np.mean([1 - run["utilization"] - run["kappa"] for run in runs])
        assert all(run["kappa"] <= run["simulated"] + 1e-12 for run in runs)  # which is until the last start
    assert 0 < idle[1_000] < idle[100] / 2


# The numbers of the first edition.


class Family(NamedTuple):
    """A family of rows of the first edition, and the validation that has them now."""

    script: str
    settings: Mapping[str, str]
    quantity: Callable[..., str]
    """The name of a point, a function of its labels."""


def paid(switches: str) -> str:
    return f", switches paid {switches.replace('-', ' ')}" if switches != "none" else ""


FAMILIES = {
    "M/M/c under FCFS: mean wait (s)": Family(
        "mmc", {"jobs": "600", "nodes": "1,4", "loads": "0.5,0.8"}, lambda nodes, load: f"c = {nodes}, ρ = {load}"
    ),
    "M/G/1 under FCFS: mean response (s)": Family(
        "mg1",
        {"jobs": "600", "policies": "fcfs", "loads": "0.5,0.7"},
        lambda policy, shape, load: f"{shape} run times, ρ = {load}",  # noqa: ARG005
    ),
    "M/G/1-PS by GS: mean response (s)": Family(
        "mg1",
        {"jobs": "600", "policies": "gs", "loads": "0.5,0.7"},
        lambda policy, shape, load: f"{shape} run times, ρ = {load}",  # noqa: ARG005
    ),
    "Rigid jobs under FCFS, 8 nodes: highest utilization": Family("saturation", {"jobs": "600"}, lambda sizes: sizes),
    "κ by eqs. (2), (3) and by the ledger": Family(
        "kappa", {"jobs": "60"}, lambda equation, policy, switches: f"{policy.upper()}, {equation}{paid(switches)}"
    ),
    "1 - ρ_max and κ, until the last start": Family(
        "saturated", {"jobs": "60"}, lambda policy, switches: f"{policy.upper()}{paid(switches)}"
    ),
    "Migration by eqs. (4), (5) and as spent (node-s)": Family(
        "migration_overhead", {"jobs": "60"}, lambda policy, nodes: f"{policy.upper()}, {nodes} nodes"
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.long
def test_formulas_and_simulated_numbers_are_those_of_the_first_edition(family: str) -> None:
    stored = json.loads(Path(__file__).with_name("analytic_validation.json").read_text())
    rows = [dict(zip(stored["columns"], row, strict=True)) for row in stored["rows"]]
    rows = [row for row in rows if row["family"] == family]
    assert rows
    script, settings, quantity = FAMILIES[family]
    study = validation(script, settings)
    points = {quantity(**dict(zip(study.levels.names, point, strict=True))): point for point in study.levels.points()}
    for row in rows:
        numbers = measured(study, points[row["quantity"]], row["replication"])
        assert numbers["formula"] == pytest.approx(row["formula"], rel=1e-9)
        assert numbers["simulated"] == pytest.approx(row["simulated"], rel=1e-9, abs=1e-12)


def run_numbers(study: Validation, point: tuple[Label, ...], replication: int) -> dict[str, Any]:
    """Return the numbers of one run."""
    trial = Trial(point, replication)
    scenario = study.scenario_of(trial)
    assert scenario is not None
    return {"run": "1", "seed": 0, **study.numbers_of(scenario.run()), **study.levels.named(point), "replication": replication}


def measured(study: Validation, point: tuple[Label, ...], replication: int) -> dict[str, float]:
    """Return the formula's value and the measure of one run."""
    row = run_numbers(study, point, replication)
    ((_, found),) = study.conclude(StudyTable([row], study.levels.names, study.name)).points
    return {"formula": found.expected, "simulated": float(row[study.quantity])}


# The page.

ENTRIES = {
    name: entry
    for name, entry in tomllib.loads((ROOT / "docs" / "studies.toml").read_text()).items()
    if entry.get("page") == "validation.md"
}


def test_every_validation_is_on_the_page() -> None:
    assert {Path(entry["script"]).stem for entry in ENTRIES.values()} == SMALL.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole] if name == "validation_gang_rows" else []) for name in ENTRIES]
)
@pytest.mark.long
def test_the_page_has_the_verdicts_of_the_stored_runs(name: str) -> None:
    study = validation(Path(ENTRIES[name]["script"]).stem)
    found = study.conclude(StudyTable.read_csv(ROOT / "docs" / "data" / f"{name}.csv"))
    assert len(found.points) == len({trial.point for trial in study.trials(study.first_table())} - nonsense(study))
    assert "differs" not in set(found.frame["verdict"])
    tool = run_path(str(ROOT / "docs" / "make_studies.py"))
    entry = next(one for one in tool["documented_studies"]() if one.name == name)
    page = PAGE.read_text()
    assert tool["with_tables"](page, name, tool["shown_in"](page, entry, tool["shown"](entry))) == page
    assert tool["markdown_table"](pd.DataFrame([tool["verdict"](entry)])).splitlines()[-1] in page
    assert (ROOT / "docs" / "figures" / f"{name}.png").stat().st_size > 10_000


def test_the_last_row_adds_the_verdicts_up() -> None:
    rows = PAGE.read_text().partition("<!-- verdicts -->")[2].partition("<!-- end -->")[0].strip().splitlines()[2:]
    numbers = [[int(cell) for cell in row.split(" | ")[3:6]] for row in rows]
    assert len(rows) == len(ENTRIES) + 1
    assert np.sum(numbers[:-1], axis=0).tolist() == numbers[-1]


def nonsense(study: Validation) -> set[tuple[Label, ...]]:
    """Return the points that the scenario leaves out."""
    one_of_each = {trial.point: trial for trial in study.trials(study.first_table())}  # a scenario draws all its jobs
    return {point for point, trial in one_of_each.items() if study.scenario_of(trial) is None}
