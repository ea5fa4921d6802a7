"""The tables and figures of Yuan et al. 2010 (PV-EASY), and what is reproduced of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path

import pandas as pd

from clustermodel import StudyTable
from clustermodel.report.measure_table import Columns, Scaled, published_table

MBS, MWBS = "mean_bounded_slowdown", "mean_weighted_bounded_slowdown"
TRACES = {"CTC-SP2": "strict_fairness_ctc", "SDSC-BLUE": "strict_fairness_blue", "KTH-SP2": "strict_fairness_kth"}
"""Stored tables by trace; the paper has SDSC-DS instead of KTH-SP2."""
PUBLISHED = ("CTC-SP2", "SDSC-BLUE")
SAME = "The same, with other jobs; [picture](../pictures.md#how-schedulers-decide)."
DETAILS = "[details](../pv_easy.md#what-strict-fairness-costs)"
ERRORS = "[details](../pv_easy.md#how-well-run-times-must-be-predicted)"
READ = "[readings](../pv_easy.md#which-reading-gives-which-number)"
OF_BLOCKED = {"big": "wide_blocked", "small": "narrow_blocked"}
SCRIPT = Path(__file__).parents[2] / "scenarios" / "papers" / "yuan_2010" / "other_readings.py"
READINGS = {"CTC-SP2": "other_readings_ctc", "SDSC-BLUE": "other_readings_blue"}
EASY, LAST, PV_EASY = "EASY, kept", "EASY-Last, kept", "PV-EASY, last submitted"
"""The readings of the paper's policies that give most of its numbers."""
NUMBERS: dict[tuple[str, str], Columns] = {
    ("Table 1: EASY", EASY): {
        "delayed": "delayed_over_it", "mean delay (min)": Scaled("mean_delay_by_later_s_over_it", 1 / 60),
        "longest (h)": Scaled("longest_delay_by_later_s_over_it", 1 / 3600),
    },
    ("Table 2: EASY-Last", LAST): {
        "violations": "reservation_violations_over_it", "mean nodes": "mean_violation_nodes_over_it",
        "mean DTR (min)": Scaled("mean_violation_s_over_it", 1 / 60), "mean SI": "mean_slowdown_increment_over_it",
        "longest DTR (h)": Scaled("longest_violation_s_over_it", 1 / 3600),
    },
    ("Table 4: EASY", EASY): {"backfilled": "backfilled", "blocked": "blocked"},
    ("Table 4: PV-EASY", PV_EASY): {"backfilled": "backfilled", "blocked": "blocked"},
    ("Table 5: PV-EASY", PV_EASY): {
        "total load (%)": Scaled("total_load", 100), "wasted load (%)": Scaled("wasted_load", 100),
    },
    ("Table 6: PV-EASY", PV_EASY): {
        "preempted": "preempted", "preempted (%)": Scaled("preempted_rate", 100), "MKT": "mean_killed_times",
        "RTW (%)": Scaled("runtime_waste", 100),
    },
}  # fmt: skip
"""Where numbers are published, the reading compared, and its measures by the published columns."""
REASONS = (
    ("Table 1, EASY, SDSC-BLUE", r"Table 1: EASY, (.*), SDSC-BLUE", "As many jobs are delayed, each by less: unexplained."),
    (
        "Table 2, EASY-Last",
        r"Table 2: EASY-Last, (.*)",
        "As many jobs, starting later after their reservations; the paper does not say which guarantee counts.",
    ),
)
"""Why numbers are beyond 25 %, for ``beyond`` of docs/make_studies.py."""


def entries(tables: Mapping[str, StudyTable]) -> pd.DataFrame:
    """Return a row for each table and figure: what the paper says, what is reproduced, what differs, and that in a few words.

    Args:
        tables: the stored tables of docs/data by name.
    """
    found = {trace: tables[name].at(run_times="as recorded") for trace, name in TRACES.items()}
    reading = {trace: tables[name] for trace, name in READINGS.items()}
    errors = {trace: tables[f"prediction_error_{name}"] for trace, name in (("CTC-SP2", "ctc"), ("KTH-SP2", "kth"))}
    rows = [
        ("Figure 1", "An underestimate wastes six squares instead of four and violates the guaranteed start of job 2.",
         SAME, "",
         SAME),
        ("Figure 2", "Big blocked jobs mostly have a lower MBS under PV-EASY than under EASY; small ones do not.",
         f"PV-EASY / EASY: {blocked(found, 'bounded_slowdown')}; {DETAILS}", "On SDSC-BLUE, all are higher.",
         f"Agrees on CTC-SP2 only; on SDSC-BLUE and KTH-SP2 big jobs are worse off; {DETAILS}."),
        ("Figure 3", "The same holds for MWBS.", f"PV-EASY / EASY: {blocked(found, 'weighted_bounded_slowdown')}", "",
         "As figure 2."),
        ("Figure 4", "PV-EASY is better than FCFS-EASY and SJF-EASY where the maximum error is 10 % or more.",
         f"Errors at which PV-EASY has the lower mean: {'; '.join(lower(one, at) for at, one in errors.items())}; "
         f"{ERRORS}",
         "SJF-EASY is better at small errors.  SDSC-BLUE is left out.",
         f"FCFS-EASY: agrees by MBS, and by MWBS from 20 %.  SJF-EASY is better at small errors; {ERRORS}.  "
         "SDSC-BLUE was not run."),
        ("Figure 5", "The MBS of PV-EASY is lower than that of EASY on SDSC-BLUE, elsewhere similar; EASY-Last is worst.",
         f"PV-EASY / EASY: {ratios(found, MBS, 'PV-EASY')}; EASY-Last / EASY: {ratios(found, MBS, 'EASY-Last')}; {DETAILS}.  "
         f"With the last submitted job and a kept reservation: {ratios(reading, MBS, PV_EASY, EASY)}.",
         "Similar on CTC-SP2 only if the last job is the last one submitted, whose run time no scheduler knows.",
         f"PV-EASY / EASY: {ratios(found, MBS, 'PV-EASY')}; with the last submitted job and a kept reservation "
         f"{ratios(reading, MBS, PV_EASY, EASY)}: only then similar on CTC-SP2.  EASY-Last is worst, as published."),
        ("Figure 6", "The same holds for MWBS.",
         f"PV-EASY / EASY: {ratios(found, MWBS, 'PV-EASY')}; EASY-Last / EASY: {ratios(found, MWBS, 'EASY-Last')}.  "
         f"With the last submitted job and a kept reservation: {ratios(reading, MWBS, PV_EASY, EASY)}.",
         "On SDSC-BLUE it is not smaller.",
         f"PV-EASY / EASY: {ratios(found, MWBS, 'PV-EASY')}; not smaller on SDSC-BLUE.  EASY-Last is worst, as published."),
        ("Table 1", "EASY delays 736 and 1,770 blocked jobs on CTC-SP2 and SDSC-BLUE, by 80 and 169 min on average.",
         f"{count(reading, EASY, 'delayed_over_it')} jobs, by {minutes(reading)} min, by jobs backfilled over it and with "
         f"kept reservations; {count(found, 'EASY', 'delayed')} by all later jobs with renewed ones; "
         f"{READ}",
         "Each is delayed by less.",
         f"{count(reading, EASY, 'delayed_over_it')} jobs (paper: 736 and 1,770), each delayed by less; {READ}."),
        ("Table 2", "With the Last Model EASY violates 92 and 407 reservations.",
         f"{count(reading, LAST, 'reservation_violations_over_it')} by jobs backfilled over it, judged when "
         f"the reservation comes; {count(found, 'EASY-Last', 'reservation_violations')} of the first guarantee; "
         f"PV-EASY {count(found, 'PV-EASY', 'reservation_violations')}",
         "Starts are later after the reservation; the paper does not say which guarantee counts.",
         f"{count(reading, LAST, 'reservation_violations_over_it')} (paper: 92 and 407); these jobs start later "
         "after the reservation."),
        ("Table 3", "CTC-SP2: 77,222 jobs, load 66.18 %; SDSC-BLUE: 223,407 jobs, load 76.21 %; SDSC-DS.",
         f"{traces(tables['yuan_2010_traces'])}; [details](../pv_easy.md#comparison-with-the-published-results)",
         "Jobs without a run time are left out; SDSC-BLUE has fewer jobs in the paper; KTH-SP2 replaces SDSC-DS.",
         "The jobs of CTC-SP2; SDSC-BLUE has more.  KTH-SP2 replaces SDSC-DS."),
        ("Table 4", "PV-EASY backfills fewer jobs than EASY, and blocks 6,403 and 19,262 jobs instead of 3,833 and 10,409.",
         f"PV-EASY blocks {count(reading, PV_EASY, 'blocked')}, EASY {count(reading, EASY, 'blocked')} with "
         f"kept reservations and {count(found, 'EASY', 'blocked')} with renewed ones", "On SDSC-BLUE EASY blocks more jobs.",
         "Agrees; on SDSC-BLUE EASY blocks more jobs."),
        ("Table 5", "PV-EASY wastes 2.48 % and 5.66 % of the capacity; the total load is 68.6 % and 81.8 %.",
         f"{percent(found, 'wasted_load')} of {percent(found, 'total_load')}", "",
         "Agrees."),
        ("Table 6", "13.17 % and 7.77 % of the jobs are preempted, on average 1.72 and 1.46 times (MKT); RTW is 39 % and 48 %.",
         f"{percent(found, 'preempted_rate')}; {numbers(found, 'mean_killed_times')} times; "
         f"RTW {percent(found, 'runtime_waste')}", "",
         "Agrees."),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["in the paper", "the paper says", "reproduced", "difference", "result"])


def published_numbers(tables: Mapping[str, StudyTable]) -> Iterator[tuple[str, float, float]]:
    """Yield the published numbers and ours, as rows of ``closeness`` of docs/make_studies.py.

    Args:
        tables: the stored tables of docs/data by name.
    """
    for trace, name in READINGS.items():
        paper = published_table(SCRIPT, "table 1", "table 2", "table 4", "tables 5 and 6", trace=trace)
        for (where, reading), columns in NUMBERS.items():
            printed = paper.loc[where.partition(": ")[2]]
            for title, one in columns.items():
                measure, scale = (one, 1.0) if isinstance(one, str) else (one.measure, one.scale)  # type: ignore[union-attr]
                if not isnan(printed[title]):
                    yield f"{where}, {title}, {trace}", printed[title], scale * mean(tables[name], reading, measure)


def traces(table: StudyTable) -> str:
    parts = []
    for trace in PUBLISHED:
        jobs, load = (table.interval(measure, trace=trace).mean for measure in ("jobs", "load"))
        parts.append(f"{trace}: {jobs:,.0f} jobs, load {load:.2%}")
    return "; ".join(parts)


def mean(table: StudyTable, policy: str, measure: str) -> float:
    return table.interval(measure, policy=policy).mean


def ratios(found: Mapping[str, StudyTable], measure: str, policy: str, to: str = "EASY") -> str:
    return ", ".join(f"{mean(one, policy, measure) / mean(one, to, measure):.2f} ({at})" for at, one in found.items())


def blocked(found: Mapping[str, StudyTable], measure: str) -> str:
    return "; ".join(f"{name} {ratios(found, f'{group}_{measure}', 'PV-EASY')}" for name, group in OF_BLOCKED.items())


def lower(table: StudyTable, trace: str) -> str:
    """Return the errors at which PV-EASY has a lower mean than the two others."""
    parts = []
    for name, measure in (("MBS", MBS), ("MWBS", MWBS)):
        for other in ("FCFS-EASY", "SJF-EASY"):
            at = [error for error in table.levels("error") if isinstance(error, float) and error > 0]
            better = [
                f"{one:.0%}"
                for one in at
                if mean(table.at(error=one), "PV-EASY", measure) < mean(table.at(error=one), other, measure)
            ]
            parts.append(f"{name}, {other}: {'all' if len(better) == len(at) else ', '.join(better) or 'none'}")
    return f"{trace}: {'; '.join(parts)}"


def published(found: Mapping[str, StudyTable], policy: str, measure: str, form: str, scale: float = 1.0) -> str:
    return " and ".join(format(scale * mean(found[trace], policy, measure), form) for trace in PUBLISHED)


def count(found: Mapping[str, StudyTable], policy: str, measure: str) -> str:
    return published(found, policy, measure, ",.0f")


def minutes(found: Mapping[str, StudyTable]) -> str:
    return published(found, EASY, "mean_delay_by_later_s_over_it", ".0f", 1 / 60)


def percent(found: Mapping[str, StudyTable], measure: str) -> str:
    return published(found, "PV-EASY", measure, ".2%")


def numbers(found: Mapping[str, StudyTable], measure: str) -> str:
    return published(found, "PV-EASY", measure, ".2f")
