"""Comparisons of policies over resampled weeks: a small run, the page, and what the page says."""

import pytest

from clustermodel.experiment.exhibits import exhibits_of
from clustermodel.measure.statistics import Interval
from tests.scripts import stored, study_of

RECORDED, DRAWN = {"sample": "as recorded"}, {"sample": "weeks drawn"}
SLOWDOWN, WAIT = "mean_bounded_slowdown", "mean_wait_s"


@pytest.mark.long
def test_a_small_run_compares_policies_on_the_same_weeks() -> None:
    settings = {"jobs": "2500", "nodes": "64", "weeks": "1,2", "replications": "2"}
    study = study_of("hypothetical/other_years", settings)
    table = study.run(workers=1)
    exhibits = exhibits_of(study, table)
    assert not exhibits.problems
    ratios = exhibits.tables["Paired ratios ± 95 % interval"]
    assert ratios["policy"].tolist() == ["conservative / EASY", "PV-EASY / EASY", "R/L-NG / D"]
    assert "slowdown, 2 weeks drawn" in ratios
    drawn = table.frame[table.frame["sample"] != "as recorded"]
    assert drawn["resampled"].all()
    assert (drawn.groupby(["sample", "replication"])["load"].nunique() == 1).all()
    assert drawn.groupby("sample")["load"].nunique().tolist() == [2, 2]


def test_what_the_page_concludes_from_ctc() -> None:
    table = stored("other_years_ctc")

    def ratio(measure: str, policy: str, baseline: str) -> Interval:
        return table.difference(measure, {"policy": policy, **DRAWN}, {"policy": baseline, **DRAWN}, ratio=True)

    randomized, venture, conservative = (
        ratio(SLOWDOWN, *pair) for pair in (("R/L-NG", "D"), ("PV-EASY", "EASY"), ("conservative", "EASY"))
    )
    assert (round(randomized.low, 1), round(randomized.high, 1)) == (0.2, 0.5)
    assert ratio(WAIT, "R/L-NG", "D").high < 1
    assert venture.low < 1 < venture.high < 1.31
    assert ratio(WAIT, "PV-EASY", "EASY").low > 1.4
    assert (round(conservative.low, 1), round(conservative.high, 1)) == (0.5, 2.4)
    assert ratio(WAIT, "conservative", "EASY").low > 1


def test_what_the_page_concludes() -> None:
    table = stored("other_years_kth")

    def ratio(measure: str, policy: str, baseline: str, sample: dict[str, str] = DRAWN) -> Interval:
        return table.difference(measure, {"policy": policy, **sample}, {"policy": baseline, **sample}, ratio=True)

    over_weeks, over_seeds = (ratio(SLOWDOWN, "R/L-NG", "D", sample) for sample in (DRAWN, RECORDED))
    assert (round(over_weeks.low, 1), round(over_weeks.high, 1)) == (0.4, 0.7)
    assert (over_weeks.count, over_seeds.count, round(over_weeks.half / over_seeds.half, 1)) == (10, 10, 7.5)
    assert ratio(SLOWDOWN, "PV-EASY", "EASY", RECORDED).mean < 1
    assert 1 <= ratio(SLOWDOWN, "PV-EASY", "EASY").high < 1.01
    assert ratio(WAIT, "PV-EASY", "EASY").low > 1
    assert ratio(SLOWDOWN, "conservative", "EASY", RECORDED).mean < 1
    assert ratio(SLOWDOWN, "conservative", "EASY").low < 1 < ratio(SLOWDOWN, "conservative", "EASY").mean
    assert ratio(WAIT, "conservative", "EASY").low > 1
    pairs = [ratio(SLOWDOWN, policy, "EASY") for policy in ("conservative", "PV-EASY")]
    assert all(0.08 < found.half / found.mean < 0.12 for found in pairs)
    widths = [
        found.half / found.mean
        for policy in table.levels("policy")
        if (found := table.interval(SLOWDOWN, policy=policy, **DRAWN))
    ]
    assert 0.24 < min(widths) < max(widths) < 0.5
