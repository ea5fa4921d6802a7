"""The tables and figures of Zhang et al. 2003 (gang scheduling, backfilling and migration), and what is reproduced of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from clustermodel import RUN_TIME_FACTORS, StudyTable, load_model
from clustermodel.experiment.script import run_script
from clustermodel.measure.metrics import LARGE_ABOVE_NODES
from clustermodel.measure.statistics import Interval
from clustermodel.report.measure_table import published_table

SLOWDOWN, WAIT = "mean_bounded_slowdown", "mean_wait_s"
MODEL = "The jobs are drawn from a model that matches the published facts; neither trace nor parameters are published."
OTHER_JOBS = "The same, with other jobs; [picture](../pictures.md#how-schedulers-decide)."
SCRIPT = Path(__file__).parents[2] / "scenarios" / "papers" / "zhang_2003" / "table1_migration.py"
LOAD_CURVES = SCRIPT.with_name("load_curves.py")
_load_curves = run_script(LOAD_CURVES, LOAD_CURVES.read_text())
overtaking, utilization_at = _load_curves["overtaking"], _load_curves["utilization_at"]
CALIBRATIONS = {"blue-pacific-2": "table1_second_model", "blue-pacific": "table1_migration"}
"""The stored tables of table 1 by the calibration of the jobs."""
CLOSE = 0.25
PHI = "job_sizes.md#overestimation-figures-5-6-and-8"
"""Where overestimation is compared."""
COSTLY = "migration.md#costly-and-limited-migration-figures-14-and-15"
"""Where figures 14 and 15 are compared."""
COUNTED = "migration.md#which-tasks-count"
"""Which reading of Q gives which number."""
FEW_SHORT = "`blue-pacific` has too few very short jobs, on which saturated slowdowns depend."
REASONS = (
    (
        "blue-pacific-2, slowdowns of table 1 at low load (workload, policy)",
        r"blue-pacific-2: table 1, workload (\d, MGS|[01], GS), slowdown",
        "Few replications: the intervals contain the published slowdowns.",
    ),
    (
        "blue-pacific-2, slowdowns of table 1 at high load (workload, policy)",
        r"blue-pacific-2: table 1, workload (\d, (?:GS|MBGS)), slowdown",
        "Published slowdowns rise more steeply; the parameters of the paper's jobs are not published.",
    ),
    (
        "blue-pacific-2, section 5.6",
        r"blue-pacific-2: section 5\.6, workload 5, (slowdown of short jobs, MGS)",
        "The interval contains the published slowdown.",
    ),
    (
        "blue-pacific, slowdowns of table 1 at low load (workload, policy)",
        r"blue-pacific: table 1, workload ([01], GS), slowdown",
        "The column of GS was not calibrated.",
    ),
    (
        "blue-pacific, slowdowns of table 1 at high load (workload, policy)",
        r"blue-pacific: table 1, workload (\d, \w+), slowdown",
        FEW_SHORT,
    ),
    ("blue-pacific, section 5.6", r"blue-pacific: section 5\.6, (?:workload 5, )?(.*)", FEW_SHORT),
)
"""Why numbers are beyond 25 %, for ``beyond`` of docs/make_studies.py."""


def entries(tables: Mapping[str, StudyTable]) -> pd.DataFrame:
    """Return a row for each table and figure: what the paper says, what is reproduced, what differs, and that in a few words.

    Args:
        tables: the stored tables of docs/data by name.
    """
    rows = [
        ("Figure 1", "The phi model: a fraction phi of the jobs uses its whole estimate; the others use a uniformly "
         "distributed share of it.", "The same model; [picture](../pictures.md#how-schedulers-decide).", "",
         "The same model."),
        ("Figures 2, 3", "Jobs of more than 32 nodes are only 30 % of the jobs, but take more than 80 % of the CPU time.",
         large_jobs(), MODEL,
         f"{large_jobs().removesuffix('.')} (paper: 30 %, more than 80 %)."),
        ("Figure 4", "Job 5 is backfilled while job 3 waits for job 2, and does not delay job 3.", OTHER_JOBS, "",
         OTHER_JOBS),
        ("Figures 5, 8", "Under BF, overestimation hardly matters, and lowers slowdowns up to a utilization of 0.90.  Under "
         "BGS, slowdowns vary more from 0.85 on, but not monotonically.",
         f"Workload 8, exact estimates / phi = 0.2: {overestimation(tables['overestimation'])}; {details(PHI)}",
         "At high load, exact estimates are clearly worse; a likely cause is that jobs that complete early leave backfill "
         "windows.",
         f"Agrees at low load; {details(PHI)}.  At high load exact estimates are clearly worse."),
        ("Figure 6", "At phi = 0.2, jobs of users who estimate well wait less.", estimators(tables["overestimation"]), "",
         "Agrees."),
        ("Figure 7", "Eight processors, four rows: J4 and J5 are in two rows.",
         "Six jobs of these sizes under GS give the same matrix; [picture](../pictures.md#how-schedulers-decide).", "",
         "The same matrix; [picture](../pictures.md#how-schedulers-decide)."),
        ("Figures 9, 10", "BGS has lower slowdowns and shorter waits than GS with the same MPL throughout.  BF overtakes BGS-5 "
         "at a utilization of 0.92 with switches of 2 %, and at 0.83 with switches of 5 %.  BF has a slowdown of 20 at 0.76.",
         context_switches(tables["context_switch"]), "BF has lower slowdowns than in the paper at medium load.",
         f"Agrees in order: {context_switches(tables['context_switch']).partition(';')[0]} (paper: 0.92 and 0.83; 0.76); "
         f"{details('context_switches.md')}."),
        ("Figure 11", "BGS-5 has lower slowdowns than BF for large and for small jobs, and the difference between their waits "
         "is smaller.", sizes(tables["job_sizes"]), "Under BF, large jobs also have the larger slowdowns here.",
         f"Agrees; {details('job_sizes.md')}.  Under BF, large jobs also have the larger slowdowns."),
        ("Figure 12", "BGS loses less capacity than BF, and than GS with the same MPL; all saturate on the line 1 - ρ.",
         capacity(tables["context_switch"]), "At high load, BGS loses more than BF where switches are costly.",
         "Agrees with free switches.  At high load, BGS loses more than BF if switches are costly."),
        ("Figure 13", "A gang moves to another row in the cheaper of two ways, eqs. (4) and (5).",
         "Both ways, with other jobs; [picture](../pictures.md#how-schedulers-decide).", "",
         OTHER_JOBS),
        ("Figure 14", "Slowdown and wait fall as Q grows, mostly up to Q = 64; a cost C of up to 30 s leaves a benefit.",
         limited(tables["migration"]),
         "Most of the benefit is reached at Q = 128 where all tasks of a gang count, and at Q = 64 where those that move do, "
         f"with the second calibration of the jobs; {details(COUNTED)}",
         "Agrees, but most of the benefit is reached at Q = 128; at Q = 64, as published, with `blue-pacific-2` if the "
         f"tasks that move count; {details(COUNTED)}."),
        ("Figure 15", "MBGS is best and GS worst in loss of capacity, slowdown and wait.",
         four_policies(tables["migration"]), "MGS loses more capacity than BGS, unless "
         f"the tasks that move count and the jobs are those of the second calibration; {details(COUNTED)}",
         "Agrees, but MGS loses more capacity than BGS, except with `blue-pacific-2` if the tasks that move count; "
         f"{details(COSTLY)}."),
        ("Table 1", "Utilization and slowdown of nine workloads: migration lowers slowdowns in all, those of GS more than "
         "those of BGS.", table_1(tables),
         "With the first calibration of the jobs, saturated slowdowns are a fifth of the published ones: it has too few very "
         "short jobs.",
         f"{table_1(tables)}."),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["in the paper", "the paper says", "reproduced", "difference", "result"])


def published_numbers(tables: Mapping[str, StudyTable]) -> Iterator[tuple[str, str | float, Interval | float]]:
    """Yield the published numbers and ours under each calibration, as rows of ``closeness`` of docs/make_studies.py.

    Args:
        tables: the stored tables of docs/data by name.
    """
    for model, name in CALIBRATIONS.items():
        table = tables[name]
        yield f"{model}: section 5.6, median run time in workload 5 (s)", 680.0, median_run_s(model, 5)
        for (policy, jobs), paper in published_table(SCRIPT, "section 5.6, by run time")["paper"].items():
            ours = table.interval(f"slowdown_{jobs}", policy=policy, factor=RUN_TIME_FACTORS[5])
            yield f"{model}: section 5.6, workload 5, slowdown of {jobs} jobs, {policy.upper()}", paper, ours
        at_20 = utilization_at(table.at(policy="mbgs"), SLOWDOWN, 20.0, "factor")
        yield f"{model}: section 6, utilization of MBGS at a slowdown of 20", 0.94, at_20
        for (policy, workload), row in published_table(SCRIPT, "table 1").iterrows():
            here = table.at(policy=policy, factor=RUN_TIME_FACTORS[workload])
            what = f"{model}: table 1, workload {workload}, {policy.upper()}"
            yield f"{what}, utilization", row["utilization"], here.interval("utilization")
            yield f"{what}, slowdown", row["slowdown"], here.interval(SLOWDOWN)


def median_run_s(model: str, workload: int) -> float:
    """Return the median run time of 10,000 jobs, the mean of ten draws, seconds."""
    drawn = [load_model(model).generate(jobs=10_000, seed=seed).seconds("run") for seed in range(1, 11)]
    return float(np.mean([np.median(run_s) for run_s in drawn])) * RUN_TIME_FACTORS[workload]


def details(page: str) -> str:
    return f"[details](../gang_scheduling/{page})"


def large_jobs() -> str:
    workload = load_model("blue-pacific").generate(jobs=10_000, seed=1, phi=0.2)
    nodes = workload.column("nodes")
    large, work = nodes > LARGE_ABOVE_NODES, nodes * workload.seconds("run")
    return f"{large.mean():.1%} of the jobs, {work[large].sum() / work.sum():.1%} of the CPU time."


def mean(table: StudyTable, measure: str, **levels: bool | float | str | None) -> float:
    return table.at(**levels).interval(measure).mean


def overestimation(table: StudyTable) -> str:
    ratios = [
        f"{policy.upper()} {table.difference(SLOWDOWN, {**at, 'phi': 1.0}, {**at, 'phi': 0.2}, ratio=True)}"
        for policy in ("bf", "bgs")
        for at in [{"policy": policy, "factor": 1.8}]
    ]
    return ", ".join(ratios)


def estimators(table: StudyTable) -> str:
    bf = table.at(policy="bf", phi=0.2)
    lower = [mean(bf, "wait_s_9", factor=one) < mean(bf, WAIT, factor=one) for one in bf.levels("factor")]
    return f"The best estimators wait less than average in {sum(lower)} of {len(lower)} workloads; {details(PHI)}"


def context_switches(table: StudyTable) -> str:
    at = [
        f"{overtaking(table, SLOWDOWN, 'factor', {'strategy': 'BF'}, {'strategy': 'BGS-5', 'switch': switch}):.2f}"
        for switch in (0.02, 0.05)
    ]
    acceptable = utilization_at(table.at(strategy="BF"), SLOWDOWN, 20.0, "factor")
    found = f"BF overtakes at {' and '.join(at)}, and has a slowdown of 20 at {acceptable:.2f}"
    return f"{found}; {details('context_switches.md')}"


def sizes(table: StudyTable) -> str:
    better = [
        all(
            mean(table, f"{SLOWDOWN}_{size}", policy="bgs", factor=one)
            < mean(table, f"{SLOWDOWN}_{size}", policy="bf", factor=one)
            for size in ("small", "large")
        )
        for one in table.levels("factor")
    ]
    return f"Lower slowdowns for both in {sum(better)} of {len(better)} workloads; {details('job_sizes.md')}"


def capacity(table: StudyTable) -> str:
    kappas = [f"{name} {table.at(strategy=name, switch=0.0, factor=1.8).interval('kappa')}" for name in ("BF", "BGS-5", "GS-5")]
    return f"Free switches, workload 8: {', '.join(kappas)}; {details('context_switches.md')}"


def limited(table: StudyTable) -> str:
    here, found = table.at(factor=1.5, cost_s=30.0), []
    for without, policy in (("bgs", "mbgs"), ("gs", "mgs")):
        slowdowns = [
            mean(here, SLOWDOWN, policy=name, limit=at) for name, at in ((without, None), (policy, 64), (policy, None))
        ]
        found.append(f"{policy.upper()} " + ", ".join(f"{one:.1f}" for one in slowdowns))
    what = "slowdown without migration, at Q = 64, without limit"
    return f"Workload 5, C = 30 s, {what}: {'; '.join(found)}; {details(COSTLY)}"


def four_policies(table: StudyTable) -> str:
    here = table.at(cost_s=10.0, limit=64)
    lowest = [here.at(factor=one).lowest(SLOWDOWN)["lowest"].iloc[0] for one in here.levels("factor")]
    return f"MBGS has the lowest slowdown in {lowest.count('mbgs')} of {len(lowest)} workloads; {details(COSTLY)}"


def table_1(tables: Mapping[str, StudyTable]) -> str:
    found = []
    for model, name in CALIBRATIONS.items():
        ratios = []
        for (policy, workload), paper in published_table(SCRIPT, "table 1")["slowdown"].items():
            here = tables[name].at(policy=policy, factor=RUN_TIME_FACTORS[workload])
            ratios.append(here.interval(SLOWDOWN).mean / paper)
        close = sum(abs(ratio - 1) <= CLOSE for ratio in ratios)
        found.append(f"{model}: {close} of {len(ratios)} slowdowns within {CLOSE:.0%}")
    return f"{'; '.join(found)}; {details('migration.md#free-migration-table-1')}"
