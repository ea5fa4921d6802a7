"""The tables and figures of Talby & Feitelson 1999 (slack-based backfilling), both versions, and what is reproduced of them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from clustermodel import StudyTable

HEURISTICS = ("ast", "aat", "dp", "dc", "du")
"""In the paper's order of mean waits."""
OTHER_JOBS = "The same, with other jobs; [picture](../pictures.md#how-schedulers-decide)."
LOG = "The archive's KTH trace is a later conversion of the authors' log; waits over the year are shorter."


def entries(tables: Mapping[str, StudyTable]) -> pd.DataFrame:
    """Return a row for each table and figure: what the paper says, what is reproduced, and what differs.

    Args:
        tables: the stored tables of docs/data by name.
    """
    table = tables["slack"]
    rows = [
        ("Short version, table 1; long version, table 1", "Over the year, the mean wait on KTH is 2,004 s instead of 2,401 s "
         "under conservative backfilling, 16.5 % shorter.", year(table),
         f"{LOG}  Single months differ by more than the year does."),
        ("Short version, table 2; long version, figure 9", "The mean wait falls from 2,156 s at SF = 1 to 1,939 s at SF = 9, "
         "19.25 % shorter than under conservative backfilling, with an exception at SF = 5; it is 1,956 s at SF = 11.  The "
         "long version expects SF = 0 to be conservative backfilling.", slack_factors(table),
         "More of the benefit is reached at SF = 1.  At SF = 0 no job is delayed, but waits are longer than under conservative "
         "backfilling."),
        ("Short version, table 3; long version, table 2", "Every fifth job has UP = PP = 1 and waits 1,955 s, the others "
         "2,294 s; all jobs 2,226 s.", priorities(table), "The difference is much smaller, and in some months every fifth "
         "job waits longer.  The mean of all jobs rises less, too.  The paper's low-priority mean of November is misprinted."),
        ("Short version, table 4; long version, figure 10", "The mean wait is 2,004 s without a gap in priority and 2,226 s at "
         "the largest gap; smaller gaps cost little.", gaps(table), "The largest gap costs less, and smaller ones even lower "
         "the mean wait."),
        ("Short version, table 5; long version, table 3", "All five heuristics improve on conservative backfilling: AST by "
         "16.5 %, AAT 13.0, DP 11.7, DC 9.2, DU 8.1 %.  With unequal priorities, the other jobs wait 289 to 339 s longer than "
         "every fifth job.", heuristics(table), "With `compression=\"afresh\"`, the letter of the paper, only AST improves; "
         "the paper's simulator probably compressed the schedule instead.  With unequal priorities, every fifth job waits less "
         "only with AST, AAT and DP."),
        ("Long version, figures 1, 2", "A job is a rectangle of processors and time.  EASY backfills a job either because it "
         "completes by the shadow time or because it uses only the extra nodes.", OTHER_JOBS, ""),
        ("Long version, figures 3 to 5", "Five jobs in order of arrival: EASY backfills J5, which delays J4 but not J3; "
         "conservative backfilling starts J5 at the end.", OTHER_JOBS, ""),
        ("Long version, figures 6, 7", "Either J3 waits, or J2 or J1 is moved for it, at 4, 2 or 4 processor seconds.",
         "The same prices, by the formulas of the package; [picture](../pictures.md#how-schedulers-decide).",
         "Row 6 of the table of section 4.4 is misprinted; `tests/unit/test_slack_example.py` has all rows."),
        ("Long version, figure 8", "J4 can be inserted before three jobs, two, one or none: 6, 2, 1 and 1 orders to try.",
         OTHER_JOBS, ""),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["in the paper", "the paper says", "reproduced", "difference"])


def wait(table: StudyTable, jobs: str = "all", **levels: str | float) -> float:
    """Return the total wait over the months by the number of jobs, seconds, of all jobs, every fifth or the others."""
    usual: dict[str, str | float] = {"policy": "ast", "compression": "afresh", "slack_factor": 3.0, "gap": 0.0}
    rows = table.at(**{**usual, **levels}).frame
    total = rows[rows["month"] != "in one run"].sum(numeric_only=True)
    number, waited, fifth, fifth_waited = total[["jobs", "total_wait_s", "fifth_jobs", "fifth_wait_s"]]
    means = {"all": waited / number, "fifth": fifth_waited / fifth, "others": (waited - fifth_waited) / (number - fifth)}
    return float(means[jobs])


def shorter(table: StudyTable, **levels: str | float) -> str:
    """Return by how much the mean wait is shorter than under conservative backfilling."""
    return f"{1 - wait(table, 'all', **levels) / wait(table, policy='conservative'):.1%}"


def details(heading: str) -> str:
    return f"[details](../slack.md#{heading})"


def year(table: StudyTable) -> str:
    waits = f"{wait(table):,.0f} s instead of {wait(table, policy='conservative'):,.0f} s, {shorter(table)} shorter"
    return f"{waits}; {details('conservative-against-slack')}"


def slack_factors(table: StudyTable) -> str:
    at = [f"{wait(table, slack_factor=factor):,.0f} s at SF = {factor:g}" for factor in (0.0, 1.0, 3.0, 9.0, 11.0)]
    return f"{', '.join(at)}; {shorter(table, slack_factor=9.0)} shorter at SF = 9; {details('slack-factor-and-gap')}"


def priorities(table: StudyTable) -> str:
    fifth, others, everyone = (wait(table, jobs, gap=2.0) for jobs in ("fifth", "others", "all"))
    return f"Every fifth job {fifth:,.0f} s, the others {others:,.0f} s, all {everyone:,.0f} s; {details('priorities-1')}"


def gaps(table: StudyTable) -> str:
    at = [f"{wait(table, gap=gap):,.0f} s at {gap:g}" for gap in (0.0, 0.5, 1.0, 1.5, 2.0)]
    return f"{', '.join(at)}; {details('slack-factor-and-gap')}"


def heuristics(table: StudyTable) -> str:
    found, differences = [], []
    for policy in HEURISTICS:
        compression = "afresh" if policy == "ast" else "in-place"
        found.append(f"{policy.upper()} {shorter(table, policy=policy, compression=compression)}")
        fifth, others = (wait(table, jobs, policy=policy, compression=compression, gap=2.0) for jobs in ("fifth", "others"))
        differences.append(others - fifth)
    unequal = f"unequal priorities: {min(differences):,.0f} to {max(differences):,.0f} s"
    return f'With `compression="in-place"`: {", ".join(found)}; {unequal}; {details("heuristics")}'
