"""Slack-based backfilling (Talby & Feitelson 1999): what the pages say of the stored study, and the paper's own numbers."""

import pandas as pd
import pytest

from clustermodel import StudyTable
from clustermodel.experiment.exhibits import exhibits_of
from tests.scripts import defined_in, stored

SCRIPT = defined_in("papers/talby_1999/slack")


@pytest.fixture(scope="module")
def table() -> StudyTable:
    kept = stored("slack")
    assert not kept.frame[["reservation_violations", "benign_violations"]].any(axis=None)  # no job starts after its bound
    return kept


def test_delayed_and_compressed_jobs_give_the_papers_order_of_heuristics() -> None:
    table = stored("slack_compression")
    assert not table.frame["reservation_violations"].any()
    script = vars(defined_in("papers/talby_1999/compression"))
    found = script["by_heuristic"](table)
    for column in ("mean wait (s)", "paper, mean wait (s)"):
        assert found[column].sort_values().index.tolist() == ["ast", "aat", "dp", "dc", "du", "conservative"]


def test_no_compression_gives_the_papers_wait_under_conservative_backfilling() -> None:
    table = stored("conservative_compression")
    found = defined_in("papers/talby_1999/conservative").by_compression(table)
    waits = found["mean wait (s)"]
    assert (abs(waits.drop("none") / waits["in queue order"] - 1) < 0.05).all()
    assert waits["none"] > 2 * found["paper, mean wait (s)"]["none"]
    late = found["starts later than announced"]
    assert late[late > 0].index.tolist() == ["all taken out, placed again in queue order"]


def test_the_job_with_which_every_fifth_begins(table: StudyTable) -> None:
    kept = stored("slack_every_fifth")
    assert not kept.frame["reservation_violations"].any()
    script = vars(defined_in("papers/talby_1999/every_fifth"))
    found = script["by_beginning"](kept, script["EQUAL_WEIGHTS"])
    assert found.loc[("afresh", 5)].to_list()[:3] == pytest.approx(
        SCRIPT.gap_sizes(table).loc[2.0, ["slack", "every fifth", "the others"]].to_list()
    )
    differences = found["difference (s)"].groupby("compression")
    assert set(differences.idxmin()) == {("afresh", 2), ("shift", 5)}
    means = script["means"](kept)
    paper = 2294.0 - 1955.28
    assert means["paper, difference (s)"].dropna().to_list() == pytest.approx([paper] * 2)
    assert (means["lowest"] < paper).all()
    assert means["highest"].to_list()[::2] == pytest.approx([paper] * 2, rel=0.03)  # with all weights 1
    assert set(differences.idxmax()) == {("afresh", 3), ("shift", 3)}  # the only one of the five that gives as much


def test_weights_of_the_price() -> None:
    """Both classes wait longer where priority counts most, as in the paper; the difference between them is not larger."""
    kept = stored("slack_every_fifth")
    means = defined_in("papers/talby_1999/every_fifth").means(kept)
    usual, low = (means.xs(weights, level="weights") for weights in ("all 1", "alpha_p = 1, the others 0.2"))
    assert (low[["every fifth (s)", "the others (s)"]] > usual[["every fifth (s)", "the others (s)"]]).all(axis=None)
    assert (low["difference (s)"] < 0.7 * usual["difference (s)"]).all()


def test_experiments_without_a_table(table: StudyTable) -> None:
    kept = stored("slack_experiments")
    assert not kept.frame["reservation_violations"].any()
    found = defined_in("papers/talby_1999/awt_and_priorities").by_experiment(kept)
    months = SCRIPT.months(table).loc["year"]
    afresh, shift = (found[f"{compression}, mean wait (s)"] for compression in ("afresh", "shift"))
    assert afresh.iloc[:2].to_list() == pytest.approx(months[["conservative", "slack"]].to_list())
    conservative, usual, monthly, small, high = (found.index[number] for number in range(5))
    assert 0.98 < afresh[monthly] / afresh[usual] < 1 < shift[monthly] / shift[usual] < 1.01
    for waits in (afresh, shift):
        assert waits[usual] < waits[small] < 0.91 * waits[conservative]
        assert waits[usual] < waits[high] < 0.91 * waits[conservative]


@pytest.mark.long
@pytest.mark.parametrize("script", ["compression", "conservative", "every_fifth", "awt_and_priorities"])
def test_small_runs_have_the_tables(script: str) -> None:
    study = defined_in(f"papers/talby_1999/{script}").study(jobs=120)
    exhibits = exhibits_of(study, study.run(workers=1))
    assert not exhibits.problems
    assert exhibits.tables


def test_slack_shortens_waits_as_in_the_paper(table: StudyTable) -> None:
    found = SCRIPT.months(table)
    ours, theirs = (found.loc["year", f"{paper}{SCRIPT.SHORTER}"] for paper in ("", "paper, "))
    assert abs(ours - theirs) < 2  # within two points
    assert (found["slack"] <= found["conservative"]).all()
    assert found.loc["year", "paper, slack"] == 2004.46


def test_slack_factors(table: StudyTable) -> None:
    found = SCRIPT.factors(table)
    assert found["slack"].idxmin() == found["paper, slack"].idxmin() == 9.0
    assert found["slack"][11.0] > found["slack"][9.0]
    assert found["slack"].iloc[0] == found["slack"].max() < SCRIPT.months(table).loc["year", "conservative"]  # SF = 0
    longest = table.at(month="1996-10", policy="ast", compression="afresh", gap=0.0).frame.set_index("slack_factor")[
        "longest_wait_s"
    ]
    assert len(set(longest[longest.index > 0])) == 1


def test_priorities(table: StudyTable) -> None:
    found = SCRIPT.gap_sizes(table)
    unequal = found[found.index > 0]
    assert (unequal["every fifth"] < unequal["the others"]).all()
    assert found["slack"].idxmax() == found["paper, slack"].idxmax() == 2.0
    months = SCRIPT.unequal_months(table).drop(["year", "in one run"])
    assert (months["every fifth"] > months["the others"]).sum() == 3


def test_heuristics(table: StudyTable) -> None:
    found = SCRIPT.by_heuristic(table)
    conservative = SCRIPT.months(table).loc["year", "conservative"]
    ast = found.loc[("ast", "afresh")]
    for compression in ("afresh", "in-place"):
        rows = pd.DataFrame({**found.xs(compression, level="compression").T.to_dict("series"), "ast": ast}).T
        assert rows["equal"].astype(float).sort_values().index.tolist() == ["ast", "aat", "dp", "dc", "du"]
        assert (rows["equal"] < conservative).sum() == (5 if compression == "in-place" else 1)
        if compression == "in-place":
            assert (rows["every fifth"] < rows["the others"]).all()


def test_the_papers_numbers_agree_with_each_other() -> None:
    months = SCRIPT.PAPER_MONTHS
    november = months.loc["1996-11"]
    assert (november["every fifth"] + 4 * (november["the others"] + 3000)) / 5 == pytest.approx(november["slack"], abs=1)
    year = SCRIPT.PAPER_HEURISTICS.loc["ast"]
    assert months.loc["year", ["equal", "slack", "every fifth", "the others"]].to_list() == pytest.approx(list(year), abs=0.05)
