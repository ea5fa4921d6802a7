"""Small runs of the studies of machines that fail and of stores with a bandwidth."""

from collections.abc import Mapping

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.policies.fcfs import Fcfs
from clustermodel.policies.interface import Decision
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from tests.scripts import study_of
from tests.shared_data import SHARED

LOS_ALAMOS = SHARED / "traces" / "failures" / "lanl_systems_18_19_20.csv.gz"


def run(found: cm.Study, **point: object) -> cm.Result:
    return found.scenario(**point, seed=1).run()


def shares(result: cm.Result) -> Mapping[str, float]:
    return result.ledger.frame["share"].to_dict()


def test_more_bandwidth_makes_preemption_cheaper() -> None:
    found = study_of("tradeoffs/store_bandwidth", {"jobs": "100", "replications": "2"})
    slow, fast = (shares(run(found, bandwidth_gib_s=bandwidth, load=0.9, policy="SS"))["checkpoint"] for bandwidth in (1, 16))
    assert slow > 4 * fast > 0


def test_on_an_exascale_machine_short_intervals_are_paid_for_with_checkpoints_and_long_ones_with_work() -> None:
    found = study_of("hypothetical/exascale", {"jobs": "40", "replications": "2"})
    often, rarely = (shares(run(found, mtbf_h=3.1, writers="least_waste", multiple=multiple)) for multiple in (0.25, 4.0))
    assert often["checkpoint"] > 3 * rarely["checkpoint"]
    assert often["lost"] < rarely["lost"]


@pytest.mark.parametrize("policy", ["bf", "mbgs"])
def test_failures_stop_gangs_that_share_nodes_and_others(policy: str) -> None:
    found = study_of("hypothetical/gangs_and_failures", {"jobs": "60", "replications": "2"})
    stopped = [run(found, mtbf_h=mtbf_h, policy=policy).summary().failed_attempts for mtbf_h in (3.0, 1000.0)]
    assert stopped[0] > stopped[1]


def recorded(system: int) -> cm.Outages:
    if not LOS_ALAMOS.is_file():
        pytest.skip(f"{LOS_ALAMOS} is not here; the traces are not part of the repository")
    return cm.read_outages(LOS_ALAMOS, system=system)


@pytest.mark.parametrize("system", [18, 19, 20])
def test_the_simulated_outages_are_the_recorded_ones(system: int) -> None:
    outages = recorded(system)
    found = study_of("hypothetical/recorded_outages", {"outages": str(LOS_ALAMOS), "jobs": "150", "replications": "2"})
    result = run(found, system=system, interval="1 h")
    ledger, simulated = result.ledger, result.records.outages
    merged = outages.merged()
    begins = [to_ticks(second) for second in merged.down_s]
    ends = [to_ticks(second) for second in merged.up_s]
    assert len(simulated.start) == sum(begin <= ledger.end for begin in begins)
    assert result.summary().failures == sum(ledger.start <= begin <= ledger.end for begin in begins)
    down = sum(max(min(end, ledger.end) - max(begin, ledger.start), 0) for begin, end in zip(begins, ends, strict=True))
    assert shares(result)["down"] == pytest.approx(down / (ledger.end - ledger.start) / ledger.nodes, rel=1e-9)


class OnTheLastNode(Fcfs):
    """Starts each job of one node on the last node of the machine."""

    name = "last node"

    def start(self, setup: cm.Setup) -> object:
        self._last = setup.nodes - 1
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
        return [cm.Start(job=job, columns=(self._last, self._last + 1)) for job in view.waiting.values()]


@pytest.mark.long
@pytest.mark.parametrize(("system", "shape"), [(18, 0.82), (19, 0.89), (20, 0.65)])
def test_a_run_over_all_of_the_records_has_their_counts_unavailability_and_shape(system: int, shape: float) -> None:
    """The shapes are those of ../shared/traces/failures/README.md.  One more node, which never fails, keeps the run going."""
    outages = recorded(system)
    facts = cm.outage_facts(outages)
    failures = cm.Outages(node=outages.node, down_s=outages.down_s, up_s=outages.up_s, nodes=outages.nodes + 1)
    machine = cm.Machine(nodes=failures.nodes, failures=failures, kill_at_estimate=False)
    workload = cm.Workload.from_jobs([cm.Job(id=1, submit_s=0, nodes=1, run_s=outages.span_s)])
    result = cm.Scenario(machine=machine, workload=workload, policy=OnTheLastNode()).run()
    summary = result.summary()
    assert summary.failures == facts["failures"] - facts["failures_of_nodes_already_down"]  # type: ignore[operator]
    assert summary.down_share * failures.nodes == pytest.approx(facts["unavailability"] * outages.nodes, rel=1e-12)  # type: ignore[operator]
    low, high = cm.fit_weibull(np.diff(result.records.outages.start) / TICKS_PER_SECOND).shape_interval
    assert low < shape < high
