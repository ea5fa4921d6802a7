"""The studies of Yuan et al. 2010: small runs equal the checked-in tables; what the pages say holds on the stored tables."""

from pathlib import Path

import pandas as pd
import pytest

from clustermodel import StudyTable, check_policy
from clustermodel.report.measure_table import published_table
from tests.scenarios.test_studies import Small
from tests.scenarios.test_studies import test_small_tables_are_those_that_are_checked_in as check_small_table
from tests.scripts import defined_in, mean, stored, study_of

ROOT = Path(__file__).parents[2]
DOCS, SCRIPTS = ROOT / "docs", ROOT / "scenarios" / "papers" / "yuan_2010"
MBS, MWBS = "mean_bounded_slowdown", "mean_weighted_bounded_slowdown"
RECORDED, CUT = "as recorded", "cut at the estimate"
WITH_PREEMPTION = ("PV-EASY", "PV-EASY without VB", "PV-EASY, estimates", "PV-EASY, perfect predictions")
ERRORS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
TRACES = ("ctc", "blue", "kth")


def of(trace: str) -> StudyTable:
    return stored(f"strict_fairness_{trace}").at(run_times=RECORDED)


# Small runs.

SIZE = {"jobs": "500", "replications": "2"}
SMALL = [
    Small("papers/yuan_2010/strict_fairness.py", "pv_easy", SIZE),
    Small("papers/yuan_2010/other_readings.py", "easy_readings", SIZE, subset=True),
    Small("papers/yuan_2010/prediction_error.py", "prediction_error", {**SIZE, "errors": "0,0.1,0.4,1"}),
    Small("papers/yuan_2010/preemption_mode.py", "preemption_mode", {**SIZE, "costs_s": "0,60,900,3600"}, subset=True),
]


@pytest.mark.parametrize(
    "small", [pytest.param(one, id=one.known, marks=[pytest.mark.long] if one.known == "pv_easy" else []) for one in SMALL]
)
@pytest.mark.long
def test_small_tables(small: Small) -> None:
    check_small_table(small)


def test_killing_costs_the_same_at_each_cost() -> None:
    """The points of mode kill share one run, and a store that is too small delays jobs."""
    settings = {"jobs": "200", "costs_s": "0,60", "store": "4"}
    table = study_of("papers/yuan_2010/preemption_mode", settings).run(workers=1)
    assert table.at(mode="kill").frame["run"].unique().size == 1
    assert set(table.levels("mode")) == {"kill", "checkpoint", "suspend", "checkpoint, limited store"}
    assert mean(table, "blocked_share", mode="checkpoint, limited store", cost_s=60) > 0


def test_break_even_costs_in_words() -> None:
    script = defined_in("papers/yuan_2010/preemption_mode")

    def at(*means: float) -> str:
        rows = [
            {"run": f"{mode} {cost}", "mode": mode, "cost_s": cost, "replication": 1, **dict.fromkeys(columns, value)}
            for mode, values in (("kill", (3.0, 3.0, 3.0)), ("suspend", means))
            for cost, value in zip((0, 10, 100), values, strict=True)
        ]
        found = script.break_even_costs(StudyTable(rows, ["mode", "cost_s"], "t"))
        return str(found.loc[0, "MBS"])

    columns = script.CRITERIA.values()
    assert [at(1, 2, 4), at(1, 3, 4), at(1, 2, 2.9), at(3, 2, 4)] == ["55", "10", "not in this range", "at no cost"]


@pytest.mark.long
def test_other_readings_keep_every_rule() -> None:
    for policy in defined_in("papers/yuan_2010/other_readings").READINGS.values():
        assert check_policy(policy) == []


# What the pages say.


@pytest.mark.parametrize("name", TRACES)
def test_strict_fairness(name: str) -> None:
    """With preemption no job is delayed and no reservation violated; PV-EASY backfills fewer jobs and blocks more."""
    table = stored(f"strict_fairness_{name}")
    for reading in (RECORDED, CUT):
        here = table.at(run_times=reading)
        for policy in WITH_PREEMPTION:
            for measure in ("delayed", "delayed_literally", "reservation_violations"):
                assert mean(here, measure, policy=policy) == 0
        for policy in ("EASY", "EASY-Last", "PV-EASY without SLP"):
            assert mean(here, "delayed", policy=policy) > 0
            assert mean(here, "preempted", policy=policy) == 0
        assert mean(here, "reservation_violations", policy="EASY-Last") > 0
        assert mean(here, "backfilled", policy="PV-EASY") < mean(here, "backfilled", policy="EASY")
        assert mean(here, "blocked", policy="PV-EASY") > mean(here, "blocked", policy="EASY")
    for policy in ("EASY", "EASY, perfect predictions"):
        assert mean(table, "reservation_violations", policy=policy, run_times=CUT) == 0  # nothing outlives its prediction


def paper_of(trace: str) -> pd.DataFrame:
    return published_table(SCRIPTS / "strict_fairness.py", "table 1", "table 2", "table 4", "tables 5 and 6", trace=trace)


@pytest.mark.parametrize("name", ["ctc", "blue"])
def test_costs_of_preemption_are_the_published_ones(name: str) -> None:
    """Tables 5 and 6, within 10 %."""
    script = defined_in("papers/yuan_2010/strict_fairness")
    columns = script.TABLES["Tables 4 to 6, backfilled and blocked jobs, cost of preemption"]
    paper = paper_of("CTC-SP2" if name == "ctc" else "SDSC-BLUE").loc["PV-EASY"]

    def apart(title: str) -> float:
        one = columns[title]
        measure, scale = (one, 1.0) if isinstance(one, str) else (one.measure, one.scale)
        return abs(scale * mean(of(name), measure, policy="PV-EASY") / paper[title] - 1)

    for title in ("total load (%)", "wasted load (%)", "preempted", "preempted (%)", "MKT", "RTW (%)"):
        assert apart(title) <= 0.10


def test_slowdowns() -> None:
    def ratio(trace: str, policy: str, measure: str = MBS, to: str = "EASY") -> float:
        return mean(of(trace), measure, policy=policy) / mean(of(trace), measure, policy=to)

    for trace, slowdown, weighted in (("ctc", 1.38, 1.07), ("blue", 0.95, 1.24), ("kth", 0.90, 1.04)):
        assert ratio(trace, "PV-EASY") == pytest.approx(slowdown, abs=0.005)
        assert ratio(trace, "PV-EASY", MWBS) == pytest.approx(weighted, abs=0.005)
        assert ratio(trace, "PV-EASY, perfect predictions") < 0.80
        assert ratio(trace, "PV-EASY, perfect predictions", to="EASY, perfect predictions") < 1
        for measure in (MBS, MWBS):
            assert ratio(trace, "PV-EASY without VB", measure, to="PV-EASY") > 1
            assert ratio(trace, "EASY-Last", measure) > 1
        assert ratio(trace, "EASY-Last", f"wide_{MBS}") > 1.75
        assert ratio(trace, "PV-EASY without SLP") < 1
    better = [ratio(trace, "PV-EASY", "wide_blocked_bounded_slowdown") < 1 for trace in TRACES]
    assert better == [True, False, False]


def test_readings() -> None:
    """What the readings found on CTC-SP2 give, there and on SDSC-BLUE."""
    for trace, name, blocked in (("ctc", "CTC-SP2", 0.02), ("blue", "SDSC-BLUE", 0.20)):
        table = stored(f"other_readings_{trace}")
        easy, last, pv_easy = (paper_of(name).loc[policy] for policy in ("EASY", "EASY-Last", "PV-EASY"))

        def apart(policy: str, measure: str, paper: float, table: StudyTable = table) -> float:
            return abs(mean(table, measure, policy=policy) / paper - 1)

        for policy in ("EASY", "EASY, kept"):
            assert apart(policy, "delayed_over_it", easy["delayed"]) < 0.16 < apart(policy, "delayed", easy["delayed"])
        assert apart("EASY, kept", "delayed_over_it", easy["delayed"]) < 0.10
        assert apart("EASY, kept", "blocked", easy["blocked"]) < blocked < apart("EASY", "blocked", easy["blocked"])
        assert apart("EASY, kept", "backfilled", easy["backfilled"]) < 0.05
        violations = last["violations"]
        assert apart("EASY-Last, kept", "reservation_violations_over_it", violations) < 0.10
        assert apart("EASY-Last", "reservation_violations_over_it", violations) < 0.12
        assert apart("EASY-Last", "reservation_violations", violations) > 5
        for policy in ("PV-EASY", "PV-EASY, last submitted"):
            assert apart(policy, "blocked", pv_easy["blocked"]) < 0.10
            for measure in (MBS, MWBS):
                assert mean(table, measure, policy=policy) < mean(table, measure, policy="PV-EASY, not corrected")
        ratio = mean(table, MBS, policy="PV-EASY, last submitted") / mean(table, MBS, policy="EASY, kept")
        assert ratio < 1
        assert ratio > 0.95 or trace == "blue"


@pytest.mark.parametrize("trace", ["ctc", "kth"])
def test_prediction_errors(trace: str) -> None:
    """PV-EASY is fair with every error; at which errors intervals tell the policies apart."""
    table = stored(f"prediction_error_{trace}")
    assert table.levels("error") == [None, *ERRORS]
    for error in table.levels("error"):
        here = table.at(error=error)
        assert {here.interval(MBS, policy=policy).count for policy in here.levels("policy")} == {10 if error else 1}
        assert mean(here, "delayed", policy="PV-EASY") == mean(here, "reservation_violations", policy="PV-EASY") == 0
        for policy in ("FCFS-EASY", "SJF-EASY"):
            assert mean(here, "delayed", policy=policy) > 0
            assert error is None or (mean(here, "reservation_violations", policy=policy) > 0) == (error > 0)

    def sides(other: str, measure: str) -> list[int]:
        found = [
            table.difference(measure, {"policy": "PV-EASY", "error": error}, {"policy": other, "error": error}, ratio=True)
            for error in ERRORS
        ]
        return [0 if 1 in one else 1 if one.mean > 1 else -1 for one in found]

    expected = {
        "kth": ([-1] * 7, [1, 1, -1, -1, -1, -1, -1], [1, 1, 1, 1, -1, -1, -1], [1, 1, 1, -1, -1, -1, -1]),
        "ctc": ([-1] * 7, [1, 1, -1, -1, -1, -1, -1], [1] * 7, [1, 1, 1, 0, -1, -1, -1]),
    }[trace]
    assert tuple(sides(other, measure) for other in ("FCFS-EASY", "SJF-EASY") for measure in (MBS, MWBS)) == expected
    for measure in (MBS, MWBS):
        small, practice, large = (mean(table, measure, policy="FCFS-EASY", error=error) for error in (0.1, None, 0.4))
        assert small < practice < large
        assert mean(table, measure, policy="PV-EASY", error=None) > mean(table, measure, policy="PV-EASY", error=1.0)


@pytest.mark.parametrize(("trace", "low_min", "high_min"), [("ctc", 25, 39), ("kth", 35, 51)])
def test_saving_work(trace: str, low_min: float, high_min: float) -> None:
    """No work is discarded where it is saved; what is free delays no job; break-even costs."""
    script, table = defined_in("papers/yuan_2010/preemption_mode"), stored(f"preemption_mode_{trace}")
    killed = table.at(mode="kill", cost_s=0)
    assert mean(killed, "lost_share") > 0 == mean(killed, "delayed")
    for mode in ("checkpoint", "suspend", "checkpoint, limited store"):
        for cost in table.levels("cost_s"):
            here = table.at(mode=mode, cost_s=cost)
            assert mean(here, "lost_share") == 0
            assert (mean(here, "preemption_share") > 0) == (mean(here, "delayed") > 0) == (cost != 0)
            if "store" not in mode:
                assert mean(here, "blocked_share") == 0
                assert mean(here, "longest_delay_by_later_s") == cost
    for measure in (MBS, MWBS, "mean_wait_s", "preempted"):  # at no cost it does not matter where the work is kept
        assert mean(table, measure, mode="checkpoint", cost_s=0) == pytest.approx(
            mean(table, measure, mode="suspend", cost_s=0)
        )
    for measure in script.CRITERIA.values():
        checkpoint, suspend, limited = (
            script.break_even(table, measure, mode) for mode in ("checkpoint", "suspend", "checkpoint, limited store")
        )
        assert low_min - 0.5 <= checkpoint / 60 <= high_min + 0.5
        assert limited < suspend < checkpoint
        assert 0.24 < limited / checkpoint < 0.5
