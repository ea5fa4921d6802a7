"""Makespans and 99th percentiles of Zhao et al. 2022: by hand, and the stored tables beside the published ones."""

import pytest

from clustermodel import Job, Machine, Scenario, Workload
from tests.scripts import defined_in, mean, stored, study_of

SCRIPT = defined_in("papers/zhao_2022/restart_charges")
TESTBED, PUBLISHED_S = SCRIPT.TESTBED, SCRIPT.PUBLISHED_S
PLACES = pytest.mark.parametrize("place", range(len(SCRIPT.MEASURES)), ids=SCRIPT.MEASURES.values())


def test_measures_by_hand() -> None:
    """Of 200 jobs of 1 s on one node, 0.99 x 200 = 198 have completed before the one that completes after 199 s."""
    jobs = Workload.from_jobs(Job(id=n, nodes=1, submit_s=5, run_s=1) for n in range(200))
    result = Scenario(machine=Machine(nodes=1), workload=jobs, policy="fcfs").run()
    assert (SCRIPT.makespan_s(result), SCRIPT.p99_response_s(result)) == (200, 199)


@PLACES
def test_stored_are_the_published(place: int) -> None:
    table, measure = stored("restart_charges"), list(SCRIPT.MEASURES)[place]
    for workload in PUBLISHED_S:
        charge, near = ("on start", 0.04) if workload == TESTBED else ("repeatedly", 1e-9)
        for policy, name in SCRIPT.POLICIES.items():
            ours = mean(table, measure, workload=workload, policy=policy, charge=charge)
            assert ours == pytest.approx(PUBLISHED_S[workload][name][place], rel=near)


def test_tables() -> None:
    tables = study_of("papers/zhao_2022/restart_charges").tables
    means, others, over_muri = (show(stored("restart_charges")) for show in tables.values())
    assert len(means) == len(others) == len(PUBLISHED_S) * len(SCRIPT.POLICIES)
    assert over_muri.set_index(["policy", "measure"]).loc[("SRTF", "mean"), "trace1"] == "1.58 / 1.58"  # 1,370,603 / 867,706


@PLACES
def test_themis_on_the_testbed(place: int) -> None:
    published = PUBLISHED_S[TESTBED]["Themis"][place]
    assert mean(stored("themis"), list(SCRIPT.MEASURES)[place], workload=TESTBED) == pytest.approx(published, rel=0.06)
    (table,) = (show(stored("themis")) for show in study_of("papers/zhao_2022/themis").tables.values())
    row = table.set_index(["workload", "completion time"]).loc[(TESTBED, list(SCRIPT.MEASURES.values())[place])]
    assert row["published (s)"] == f"{published:,.0f}"
