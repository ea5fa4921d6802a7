"""EASY with predicted run times, one event at a time: the published results of Gaussier et al. 2015, to the last digit.

The result files, how they were made and which jobs they have: ../shared/reference/sc15/README.md.
"""

import csv
from functools import cache

import pytest

from clustermodel import Machine, Scenario, Workload, read_swf
from clustermodel.experiment.result import Result
from tests.shared_data import SHARED, trace_path

LOGS = {"KTH-SP2": ("KTH-SP2-1996-2.2", 100, 1e-12), "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln", 1152, 0.003)}
"""File, processors, and by how much results differ at most: the log of SDSC-BLUE has six jobs fewer than theirs."""
POLICIES = {
    "easy_backfill_scheduler_None_None": "easy",
    "easy_sjbf_scheduler_None_None": "easy:backfill_order=shortest",
    "easy_prediction_backfill_scheduler_predictorclairvoyant_throw_an_error": "easy:predictor=perfect",
    "easy_plus_plus_scheduler_predictorclairvoyant_throw_an_error": "easy:predictor=perfect,backfill_order=shortest",
    "easy_prediction_backfill_scheduler_predictortsafrir_reqtime": "easy:predictor=last-two,correction=estimate",
    "easy_prediction_backfill_scheduler_predictortsafrir_tsafrir": "easy:predictor=last-two,correction=tsafrir",
    "easy_plus_plus_scheduler_predictortsafrir_reqtime": "easy:predictor=last-two,correction=estimate,backfill_order=shortest",
    "easy_plus_plus_scheduler_predictortsafrir_tsafrir": "easy:predictor=last-two,correction=tsafrir,backfill_order=shortest",
}
FIRST_TIER = "easy_plus_plus_scheduler_predictortsafrir_tsafrir"


@cache
def jobs(file: str) -> Workload:
    return read_swf(trace_path(file), processors_from="requested")


def published(log: str) -> dict[str, dict[str, float]]:
    path = SHARED / "reference" / "sc15" / f"{log}.csv"
    if not path.is_file():
        pytest.skip(f"needs {path}")
    with path.open() as file:
        return {
            row["name"]: {
                column: float(value) for column, value in row.items() if column not in ("log", "name") and value != "NA"
            }
            for row in csv.DictReader(file)
        }


def run(file: str, nodes: int, policy: str) -> Result:
    return Scenario(machine=Machine(nodes=nodes), workload=jobs(file), policy=policy, events="one-by-one").run()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == FIRST_TIER else pytest.mark.long) for name in POLICIES]
)
@pytest.mark.parametrize("log", ["KTH-SP2", pytest.param("SDSC-BLUE", marks=pytest.mark.whole)])
def test_flow_times_and_slowdowns_are_the_published_ones(log: str, name: str) -> None:
    file, nodes, within = LOGS[log]
    expected = published(log)[name]
    result = run(file, nodes, POLICIES[name])
    flow = (result.jobs["end_s"] - result.jobs["submit_s"]).to_numpy()
    slowdown = (flow / result.jobs["run_s"].clip(lower=10)).clip(lower=1)
    found = {"avgbsld": slowdown.mean()}
    if log == "KTH-SP2":
        assert len(flow) == expected["length"]
        found |= {"avgft": flow.mean(), "maxft": flow.max(), "RMSFT": (flow**2).mean() ** 0.5}
        found |= {"maxbsld": slowdown.max(), "RMSBSLD": (slowdown**2).mean() ** 0.5}
    assert found == {column: pytest.approx(expected[column], rel=within) for column in found}
