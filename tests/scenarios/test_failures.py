"""Small runs of the studies of machines that fail and of stores with a bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from clustermodel import Outages, Result, Study, read_outages
from clustermodel.experiment.script import load_experiment
from clustermodel.ticks import to_ticks
from tests.shared_data import SHARED

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LOS_ALAMOS = SHARED / "traces" / "failures" / "lanl_systems_18_19_20.csv.gz"


def study(script: str, **settings: str) -> Study:
    path = SCENARIOS / script
    assert len(path.read_text().splitlines()) <= 120
    found = load_experiment(path, path.read_text(), settings)
    assert isinstance(found, Study)
    return found


def run(found: Study, **point: object) -> Result:
    return found.scenario(**point, seed=1).run()


def shares(result: Result) -> Mapping[str, float]:
    return result.ledger.frame["share"].to_dict()


def test_more_bandwidth_makes_preemption_cheaper() -> None:
    found = study("tradeoffs/store_bandwidth.py", jobs="100", replications="2")
    slow, fast = (shares(run(found, bandwidth_gib_s=bandwidth, load=0.9, policy="SS"))["checkpoint"] for bandwidth in (1, 16))
    assert slow > 4 * fast > 0


def test_on_an_exascale_machine_short_intervals_are_paid_for_with_checkpoints_and_long_ones_with_work() -> None:
    found = study("hypothetical/exascale.py", jobs="40", replications="2")
    often, rarely = (shares(run(found, mtbf_h=3.1, writers="least_waste", multiple=multiple)) for multiple in (0.25, 4.0))
    assert often["checkpoint"] > 3 * rarely["checkpoint"]
    assert often["lost"] < rarely["lost"]


@pytest.mark.parametrize("policy", ["bf", "mbgs"])
def test_failures_stop_gangs_that_share_nodes_and_others(policy: str) -> None:
    found = study("hypothetical/gangs_and_failures.py", jobs="60", replications="2")
    stopped = [run(found, mtbf_h=mtbf_h, policy=policy).summary().failed_attempts for mtbf_h in (3.0, 1000.0)]
    assert stopped[0] > stopped[1]


def recorded(system: int) -> Outages:
    if not LOS_ALAMOS.is_file():
        pytest.skip(f"{LOS_ALAMOS} is not here; the traces are not part of the repository")
    return read_outages(LOS_ALAMOS, system=system)


@pytest.mark.parametrize("system", [18, 19, 20])
def test_the_simulated_outages_are_the_recorded_ones(system: int) -> None:
    outages = recorded(system)
    found = study("hypothetical/recorded_outages.py", outages=str(LOS_ALAMOS), jobs="150", replications="2")
    result = run(found, system=system, interval="1 h")
    ledger, simulated = result.ledger, result.records.outages
    merged = outages.merged()
    begins = [to_ticks(second) for second in merged.down_s]
    ends = [to_ticks(second) for second in merged.up_s]
    assert len(simulated.start) == sum(begin <= ledger.end for begin in begins)
    assert result.summary().failures == sum(ledger.start <= begin <= ledger.end for begin in begins)
    down = sum(max(min(end, ledger.end) - max(begin, ledger.start), 0) for begin, end in zip(begins, ends, strict=True))
    assert shares(result)["down"] == pytest.approx(down / (ledger.end - ledger.start) / ledger.nodes, rel=1e-9)
