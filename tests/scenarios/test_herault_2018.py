"""The case of Herault et al. 2018, on a few weeks of one replication: the study itself has many."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustermodel import Study
from clustermodel.experiment.script import load_experiment

SCRIPT = Path(__file__).parents[2] / "scenarios" / "papers" / "herault_2018" / "shared_store.py"
BOUNDS = {"40 GB/s, MTBF 8 h": 0.1066, "160 GB/s, MTBF 1 h": 0.1549}


@pytest.fixture(scope="module")
def study() -> Study:
    found = load_experiment(SCRIPT, SCRIPT.read_text(), {"days": "40"})
    assert isinstance(found, Study)
    return found


def waste(study: Study, case: str, writers: str) -> float:
    return float(study.measures["waste"](study.scenario(case=case, writers=writers, seed=1).run()))  # type: ignore[operator]


def test_waiting_for_a_turn_costs_less_than_sharing_and_executing_meanwhile_costs_least(study: Study) -> None:
    case = "40 GB/s, MTBF 8 h"
    found = {writers: waste(study, case, writers) for writers in ("oblivious", "fcfs", "fcfs_nonblocking", "least_waste")}
    assert found["oblivious"] > 1.2 * found["fcfs"] > 1.2 * found["fcfs_nonblocking"]
    assert found["least_waste"] == pytest.approx(BOUNDS[case], rel=0.15)


@pytest.mark.long
def test_the_waste_under_heavy_load(study: Study) -> None:
    case = "160 GB/s, MTBF 1 h"
    assert waste(study, case, "oblivious") > 1.5 * waste(study, case, "least_waste")
    assert waste(study, case, "least_waste") == pytest.approx(BOUNDS[case], rel=0.15)
