"""The tables and figures of 002 (gang scheduling, backfilling and migration) beside ours."""

from __future__ import annotations

from typing import Final

import illustrations
import job_sizes
import pandas as pd
import table1_migration
from matplotlib.figure import Figure
from migration_tradeoff import FIGURE_14_FACTORS, NO_LIMIT, NO_MIGRATION
from paper_entries import Entry, rows_of, stored
from replications import NODES, size_of, workload_number
from reporting import Grid, Runs, percent

from clustermodel import curves
from clustermodel.measure.metrics import LARGE_ABOVE_NODES

RERUN: Final = "python scenarios/{}.py --full"
SLOWDOWN: Final = "mean_bounded_slowdown"
WAIT: Final = "mean_wait_s"


BANDED: Final = ("BF", "GS-5", "BGS-5", "MBGS, C = 10 s", "MGS, C = 10 s")
"""Curves with bands in figures where all bands would hide each other."""


def frame(runs: Runs, **names: str) -> pd.DataFrame:
    """Return a study of 002 as the package's figures take it."""
    return runs.frame(slowdown=SLOWDOWN, factor="workload", **names)


def titled(picture: Figure, study: str, of: str = "") -> Figure:
    """Return a figure whose title says how large the study is, and what bands are, of which curves."""
    picture.suptitle(f"{size_of(stored(study))}; bands are 95 % intervals{of}", fontsize="medium")
    return picture


def by_phi(policy: str) -> Figure:
    """Return figure 5 or 8: slowdown and wait for each phi."""
    picture = curves(frame(stored("overestimation").at(policy=policy)), y=[SLOWDOWN, WAIT], by="phi", log=True)
    return titled(picture, "overestimation")


def by_class_of_estimate() -> Figure:
    """Return figure 6: the wait of the worst and of the best estimators and of all jobs under BF."""
    table = frame(stored("overestimation").at(policy="bf", phi=0.2))
    who = {"wait_s_0": "BF, worst estimates (class 0)", WAIT: "BF, all jobs", "wait_s_9": "BF, best estimates (class 9)"}
    parts = [
        table[["workload", "replication", "utilization"]].assign(**{WAIT: table[name], "jobs of": label})
        for name, label in who.items()
    ]
    return titled(curves(pd.concat(parts), y=WAIT, by="jobs of", log=True), "overestimation")


def by_context_switch(measure: str) -> Figure:
    """Return figure 9, 10 or 12: a measure at four costs of a context switch.  BF has none and is in every panel."""
    runs = stored("context_switch_tradeoff")
    parts = [
        frame(Runs(runs.facts, [row for row in runs.rows if row["switch"] == switch or row["strategy"] == "BF"])).assign(
            switch=f"context switch {100 * switch:.0f} % of a slice"
        )
        for switch in runs.distinct("switch")
    ]
    table = pd.concat(parts)
    table = table[~table["strategy"].str.contains("change")]
    picture = curves(table, y=measure, by="strategy", panels="switch", log={SLOWDOWN, WAIT}, bands=BANDED)
    if measure == "kappa":
        for axes in picture.axes:
            low, high = axes.get_xlim()
            axes.axline((1, 0), slope=-1, color="0.4", linestyle="--", linewidth=0.8)
            axes.set_xlim(low, high)
            axes.set_ylim(0, 0.4)
    return titled(picture, "context_switch_tradeoff", " of BF, GS-5 and BGS-5")


def by_limit() -> Figure:
    """Return figure 14: slowdown and wait against Q; 0 is without migration, and all nodes of the machine are no limit."""
    rows = []
    runs = stored("migration_tradeoff").at(figure=14)
    costs = [cost for cost in runs.distinct("cost_s") if cost]
    for row in runs.rows:
        if row["limit"] == 0:  # the same as no migration, but for the columns of new gangs
            continue
        limit = {NO_MIGRATION: 0, NO_LIMIT: NODES}.get(row["limit"], row["limit"])
        for cost in costs if row["limit"] == NO_MIGRATION else [row["cost_s"]]:
            number = workload_number(row["factor"])
            rows.append(
                {**row, "limit": limit, "panel": f"workload {number}", "who": f"{row['policy'].upper()}, C = {cost:.0f} s"}
            )
    table = pd.DataFrame(rows).rename(columns={"slowdown": SLOWDOWN, "wait_s": WAIT, "limit": "Q, tasks in a slice"})
    table = table[table["factor"].isin(FIGURE_14_FACTORS)].rename(columns={"who": "policy and cost"})
    picture = curves(
        table, y=[SLOWDOWN, WAIT], x="Q, tasks in a slice", by="policy and cost", panels="panel", log=True, bands=BANDED
    )
    return titled(picture, "migration_tradeoff", " at C = 10 s")


def four_strategies() -> Figure:
    """Return figure 15: loss of capacity, slowdown and wait of GS, BGS, MGS and MBGS."""
    runs = stored("migration_tradeoff").at(figure=15)
    table = frame(runs).assign(policy=[row["policy"].upper() for row in runs.rows])
    return titled(curves(table, y=["kappa", SLOWDOWN, WAIT], log={SLOWDOWN, WAIT}), "migration_tradeoff")


def _table_1() -> list[Grid]:
    *halves, conclusions = table1_migration.tables(stored("table1_migration"))
    return [*halves, conclusions._replace(rows=conclusions.rows[:9])]


def _large_jobs() -> Grid:
    workload = illustrations.baseline()
    nodes, run_s = workload.column("nodes"), workload.seconds("run")
    large = nodes > LARGE_ABOVE_NODES
    shares = float(large.mean()), float((nodes * run_s)[large].sum() / (nodes * run_s).sum())
    rows = [["jobs", "30 %", percent(shares[0])], ["CPU time", "> 80 %", percent(shares[1])]]
    return Grid(f"Share of jobs of more than {LARGE_ABOVE_NODES} nodes, {len(workload):,} jobs", ["", "002", "ours"], rows)


def _seconds_by_size() -> Grid:
    return rows_of(job_sizes.tables(stored("job_sizes"))[1], "0 (x 1.0)", "4 (x 1.4)", "8 (x 1.8)")


_JOBS: Final = "The jobs are drawn from a model with the published facts; trace and fitted parameters are not published."
ENTRIES_002: Final = (
    Entry(
        "002", "figure", 1, "the phi model of overestimation",
        "A fraction phi of the jobs uses all of its estimate, the others any share of it alike.",
        "10,000 jobs of our model at phi = 0.2, and what is expected; jobs that use all of it are in the last step.",
        picture=illustrations.phi_model, alt="Histogram of run time over estimate, with the phi model's expectation",
        more="workloads.md",
    ),
    Entry(
        "002", "figure", 2, "distribution of job sizes",
        "Large jobs, of more than 32 nodes, are only 30 % of the jobs.",
        "Upper row: jobs of each size, and of at most that size, here as a share of all.",
        grid=_large_jobs,
        picture=illustrations.job_sizes_and_cpu_time,
        alt="Jobs and CPU time by job size, of each size and of at most that size",
        differs=_JOBS, more="workloads.md#what-blue-pacific-is",
    ),
    Entry(
        "002", "figure", 3, "distribution of CPU time",
        "Large jobs make more than 80 % of the work.",
        "Lower row: CPU time of each size, and of at most that size, here as a share of all.",
        with_picture_of=2, differs=_JOBS, more="workloads.md#what-blue-pacific-is",
    ),
    Entry(
        "002", "figure", 4, "FCFS without and with backfilling",
        "Five jobs, numbered in order of arrival.  Job 5 fills the space that is empty while job 3 waits for job 2, without "
        "delaying job 3.",
        "The same.  The jobs are ours, of sizes for which this happens.",
        picture=illustrations.with_and_without_backfilling, alt="Two Gantt charts of five jobs, without and with backfilling",
        more="model.md",
    ),
    Entry(
        "002", "figure", 5, "overestimation under backfilling",
        "Very little impact of overestimation; it even helps slowdowns up to a utilization of 0.90, but not waits.",
        "Below a utilization of about 0.75 differences are within their intervals; above it overestimation helps slowdowns.",
        picture=lambda: by_phi("bf"), alt="Slowdown and wait against utilization under BF, a curve for each phi",
        differs="At high load exact estimates are clearly worse here, for waits as well; a likely cause is that jobs that end "
        "early leave holes.",
        more="gang_scheduling.md#overestimation-figures-5-6-and-8", rerun=RERUN.format("overestimation"),
    ),
    Entry(
        "002", "figure", 6, "who estimates well is rewarded",
        "At phi = 0.2 jobs of users who estimate well wait less.",
        "The best estimators wait less than the average in all workloads, the worst ones more; phi is the same.",
        picture=by_class_of_estimate, alt="Wait against utilization under BF: all jobs, the worst and the best estimators",
        more="gang_scheduling.md#overestimation-figures-5-6-and-8", rerun=RERUN.format("overestimation"),
    ),
    Entry(
        "002", "figure", 7, "the scheduling matrix",
        "Eight processors, four rows: J1 and J2 on all, J3 beside J4 and J5, J6 beside J4 and J5 again.",
        "Six jobs of these sizes under `gs` make the same matrix; how long they run is ours.  Time slice 0 is row 0.",
        picture=illustrations.matrix, alt="The Ousterhout matrix: six jobs in four rows, jobs 4 and 5 in two of them",
        more="pictures.md#the-matrix-at-an-instant",
    ),
    Entry(
        "002", "figure", 8, "overestimation under BGS",
        "Differences of waits are insignificant, those of slowdowns up to utilizations of 75 %; from 85 % on slowdowns vary "
        "more, but not monotonically.",
        "The same up to a utilization of about 0.75.",
        picture=lambda: by_phi("bgs"), alt="Slowdown and wait against utilization under BGS, a curve for each phi",
        differs="At high load slowdown and wait rise with phi here.",
        more="gang_scheduling.md#overestimation-figures-5-6-and-8", rerun=RERUN.format("overestimation"),
    ),
    Entry(
        "002", "figure", 9, "slowdown by the cost of a context switch",
        "BGS is better than GS with the same MPL everywhere, and better than BF unless switches are costly and load is high.",
        "The same; where BF overtakes BGS-5 differs from the paper by 0.02 at most.",
        picture=lambda: by_context_switch(SLOWDOWN),
        alt="Slowdown against utilization of BF, GS and BGS at four costs of a switch",
        differs="BF has smaller slowdowns than in the paper at medium load: 20 at a utilization of 0.82, not of 0.76.  GS-2 "
        "saturates earlier, GS-3 a little later.",
        more="gang_scheduling.md#context-switches-figures-9-10-and-12", rerun=RERUN.format("context_switch_tradeoff"),
    ),
    Entry(
        "002", "figure", 10, "wait by the cost of a context switch",
        "GS has very long waits even at moderate load; where switches are free BGS waits less than BF and than GS with the "
        "same MPL.",
        "The same.", picture=lambda: by_context_switch(WAIT),
        alt="Mean wait against utilization of BF, GS and BGS at four costs of a switch",
        differs="Costly switches hurt saturated GS less than in the paper.",
        more="gang_scheduling.md#context-switches-figures-9-10-and-12", rerun=RERUN.format("context_switch_tradeoff"),
    ),
    Entry(
        "002", "figure", 11, "large and small jobs",
        "BGS-5 has smaller slowdowns than BF for both, and helps the waits of large jobs most; small jobs wait less and, under "
        "BF, are slowed down more.",
        "BGS-5 is better for both, and the difference in wait between large and small jobs is less under it: large ones gain "
        "most seconds.",
        grid=_seconds_by_size, picture=lambda: job_sizes.figure(stored("job_sizes")),
        alt="Slowdown and wait against utilization of small and of large jobs under BF and BGS",
        differs="Under BF large jobs also have the larger slowdowns here, perhaps because their run times in the model are "
        "nearer to those of small jobs than in the trace.",
        more="gang_scheduling.md#large-and-small-jobs-figure-11",
        rerun=RERUN.format("job_sizes"),
    ),
    Entry(
        "002", "figure", 12, "loss of capacity by the cost of a context switch",
        "BGS loses less than BF and than GS with the same MPL; all saturate on the line 1 - ρ; BF's loss falls at high load.",
        "The same where switches cost little; the dashed line is κ = 1 - ρ.", picture=lambda: by_context_switch("kappa"),
        alt="Loss of capacity against utilization of BF, GS and BGS at four costs of a switch",
        differs="At high load BGS loses more than BF where a switch costs 5 % of a slice, and with an MPL of 2 or 3 where it "
        "costs 2 %.",
        more="gang_scheduling.md#context-switches-figures-9-10-and-12", rerun=RERUN.format("context_switch_tradeoff"),
    ),
    Entry(
        "002", "figure", 13, "the two ways to migrate",
        "A is to move to J's row.  Either J makes way and A keeps its columns, or A takes others; eqs. (4), (5) are the costs.",
        "A is job 4, J is job 1, and job 2 has just ended; the jobs are ours.  Above both cost the same, and J makes way; "
        "below A is the smaller, and moves.",
        picture=illustrations.migration_options, alt="The matrix before and after a migration by option 1 and by option 2",
        more="model.md#sharing-nodes-in-time",
    ),
    Entry(
        "002", "figure", 14, "limited migration",
        "Slowdown and wait fall with Q; most of the benefit is there at Q = 64, and costs of up to 30 s leave a benefit.",
        "Nearly the same, except for where most of it is.  Q = 0 is without migration, 320 without limit.", picture=by_limit,
        alt="Slowdown and wait against Q in workloads 2 and 5, under MBGS and MGS, at three costs",
        differs="Most of the benefit is at Q = 128: here all tasks of a gang count, also those that keep their node.",
        more="gang_scheduling.md#costly-and-limited-migration-figures-14-and-15", rerun=RERUN.format("migration_tradeoff"),
    ),
    Entry(
        "002", "figure", 15, "GS, BGS, MGS and MBGS",
        "MBGS is the best and GS the worst in all three; MGS loses less capacity than BGS, BGS is better in the others.",
        "MBGS is the best and GS the worst in all three, and BGS has smaller slowdowns and waits than MGS; Q and C are the "
        "paper's.",
        picture=four_strategies,
        alt="Loss of capacity, slowdown and wait against utilization of GS, BGS, MGS and MBGS",
        differs="With Q = 64 MGS loses more capacity than BGS from workload 2 on here, for the reason given for figure 14.",
        more="gang_scheduling.md#costly-and-limited-migration-figures-14-and-15", rerun=RERUN.format("migration_tradeoff"),
    ),
    Entry(
        "002", "table", 1, "improvement by migration",
        "Utilization and slowdown of nine workloads under BGS, MBGS, GS and MGS.",
        "Migration helps in all workloads, GS more than BGS, and BGS without it is still better than GS with it, as in the "
        "paper.",
        grid=_table_1,
        picture=lambda: table1_migration.figure(stored("table1_migration")),
        alt="Slowdown against utilization of GS, BGS, MGS and MBGS, ours and 002's, and improvement by migration",
        differs="Slowdowns of saturated strategies are smaller here; they depend on how long the queue has grown.  BGS and "
        "MBGS reach lower utilizations, and BGS gains most from migration at lower load.",
        more="gang_scheduling.md#migration-table-1", rerun="python scenarios/table1_migration.py --full --replications 5",
    ),
)  # fmt: skip
