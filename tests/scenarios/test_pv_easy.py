"""The study of PV-EASY runs small, its table is the one that is checked in, and what is claimed of the full studies holds.

After a deliberate change: ``python scenarios/pv_easy.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/pv_easy.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from clustermodel import Job, Machine, Scenario, Workload
from tests.scenarios.conftest import FIGURES, SMALL, Study

STORED = ("pv_easy_ctc", "pv_easy_blue", "pv_easy_blue_allocated", "pv_easy_kth")
WITH_PREEMPTION = ("PV-EASY", "PV-EASY without VB", "PV-EASY, estimates", "PV-EASY, perfect predictions")


def claim_strict_fairness(script: ModuleType, runs: Any) -> None:
    """Claim that nobody is delayed or disappointed where there is preemption, and somebody is where there is not."""
    for reading in script.READINGS:
        for policy in WITH_PREEMPTION:
            here = script.at(runs, policy, reading)
            for name in ("delayed", "delayed_literally", "reservation_violations"):
                assert not here.values(name).any(), (policy, reading, name)
        for policy in ("EASY", "EASY-Last", "PV-EASY without SLP"):
            here = script.at(runs, policy, reading)
            assert here.values("delayed").sum() > 0
            assert not here.values("preempted").any()
        assert script.at(runs, "EASY-Last", reading).values("reservation_violations").sum() > 0
    cut = list(script.READINGS)[1]
    for policy in ("EASY", "EASY, perfect predictions"):
        assert not script.at(runs, policy, cut).values("reservation_violations").any()  # nothing outlives its prediction


def claim_table_4(script: ModuleType, runs: Any) -> None:
    """Claim that PV-EASY backfills fewer jobs than EASY, and blocks more."""
    for reading in script.READINGS:
        pv_easy, easy = (script.at(runs, policy, reading) for policy in ("PV-EASY", "EASY"))
        assert pv_easy.values("backfilled").sum() < easy.values("backfilled").sum()
        assert pv_easy.values("blocked").sum() > easy.values("blocked").sum()


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("pv_easy")
    assert study.figure.stat().st_size > 10_000
    for title in ("Table 1", "Table 2", "Table 4", "Tables 4 to 6", "Figures 2 and 3", "Figures 5 and 6", "The other reading"):
        assert title in study.printed
    assert "004, EASY" not in study.printed  # the embedded workload is none of the paper's
    claim_strict_fairness(study.script, study.runs)
    claim_table_4(study.script, study.runs)
    for row in study.runs.rows:
        assert row["wide_jobs"] + row["narrow_jobs"] == 500
        for name in ("blocked", "delayed", "preempted"):
            assert row[f"wide_{name}"] + row[f"narrow_{name}"] == row[name]
        assert row["delayed_over_600_s"] <= row["delayed_over_60_s"] <= row["delayed"] <= row["delayed_literally"]
        assert (row["mean_killed_times"] is None) == (row["preempted"] == 0)


def test_cut(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> None:
    """Each title says which reading it is; ``--cut`` shows the other one of the same runs."""
    script = load("pv_easy")
    as_recorded, cut = script.READINGS
    for options, first, second in (([], as_recorded, cut), (["--cut"], cut, as_recorded)):
        script.main(["--stored", f"{__file__.rpartition('/')[0]}/pv_easy.json", "--markdown", *options])
        titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("**")]
        assert titles[-1].startswith(f"**The other reading, {second}")
        assert all(first in title for title in titles[:-1])
    assert "--cut" not in SMALL


def test_no_number_where_there_is_nothing(load: Callable[[str], ModuleType]) -> None:
    """Means of nobody are no numbers, and are shown as dashes."""
    script, reporting = load("pv_easy"), load("reporting")
    workload = Workload.from_jobs([Job(id=1, submit_s=0, nodes=1, run_s=60)])
    row = script.measure(Scenario(machine=Machine(nodes=4), workload=workload).run(), workload)
    assert row["mean_delay_by_later_s"] is None
    assert row["wide_mean_bounded_slowdown"] is None
    assert row["delayed"] == 0
    runs = reporting.Runs({}, [{"replication": 1, **row}, {"replication": 2, **row, "mean_delay_by_later_s": 3.0}])
    assert load("paper_004").shown(runs, "longest_delay_by_later_s", script.hours) == "-"
    assert load("paper_004").shown(runs, "mean_delay_by_later_s", str) == "3.0"


def test_the_paper_is_known_by_its_traces(load: Callable[[str], ModuleType]) -> None:
    script, reporting = load("pv_easy"), load("reporting")

    def blocked(name: str) -> int | None:
        numbers = script.paper_of(reporting.Runs({"workload": name}, []))
        return numbers and numbers.blocked_easy

    assert blocked("CTC-SP2-1996-3.1-cln") == 3833
    assert blocked("SDSC-BLUE-2000-4.2-cln") == 10409
    assert blocked("SDSC-DS-2004-2.1-cln") == 4147
    assert blocked("embedded") is blocked("KTH-SP2-1996-2.2") is None


@pytest.mark.parametrize("name", STORED)
def test_stored(load: Callable[[str], ModuleType], name: str) -> None:
    script = load("pv_easy")
    runs = load("reporting").read(FIGURES / f"{name}.json")
    assert len(runs.rows) == len(script.POLICIES) * len(script.READINGS)
    claim_strict_fairness(script, runs)
    claim_table_4(script, runs)


@pytest.mark.parametrize("name", ["pv_easy_ctc", "pv_easy_blue", "pv_easy_blue_allocated"])
def test_what_preemption_costs_is_what_004_says(load: Callable[[str], ModuleType], name: str) -> None:
    """Tables 5 and 6, within 10 %."""
    script = load("pv_easy")
    runs = load("reporting").read(FIGURES / f"{name}.json")
    theirs = script.paper_costs(script.paper_of(runs))
    for column in ("total_load", "wasted_load", "preempted", "preempted_rate", "mean_killed_times", "runtime_waste"):
        assert abs(script.differs(script.at(runs, "PV-EASY"), column, theirs[column])) <= 0.10, column
