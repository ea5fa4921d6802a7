"""Why does gang scheduling with backfilling raise mean response times on real logs, and why does migration lower them?

Zhang et al. 2003 find BGS better than BF by every measure, on jobs drawn from a model of one log.  On logs of the Parallel
Workloads Archive BGS (MPL 5) lowers slowdowns but raises mean response times; MBGS lowers both.  The study explains the
difference by the accounts of the ledger, by the rows of the Ousterhout matrix in use, and by classes of jobs.

The first ``jobs`` jobs of each log are split into ``parts`` disjoint parts of as many consecutive jobs.  Each part runs on an
empty machine and is one replication, so intervals show how much the result varies from one period of the log to another.
``parts=1`` runs the jobs in one piece.  Load 0.865: the times between submissions of each part are scaled to this offered load.

Small (15 s on two cores): on the first jobs of KTH-SP2, BGS and MBGS lower slowdowns to about a fifth and MBGS lowers mean
response times; that BGS raises them needs the full study.

    clustermodel sweep scenarios/papers/zhang_2003/real_traces.py --out small --set logs=KTH-SP2 --set jobs=5000 --set parts=10

Full (about 5 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/real_traces.py --out full --set traces=../shared/traces
"""

from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from clustermodel import (
    Checkpointing,
    ContextSwitch,
    LoadScale,
    Machine,
    Result,
    Scenario,
    Study,
    StudyTable,
    TimeSlicing,
    Workload,
    bars,
)
from clustermodel.report.measure_table import Relative, Scaled, by_class, class_measures, measure_table
from clustermodel.workload.synthetic import study_jobs

LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.2.swf.gz", 100),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln.swf.gz", 430),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln.swf.gz", 1152),
}
"""Files and machine sizes; of CTC-SP2 its batch partition."""
CLASSES = ("narrow, short", "narrow, long", "wide, short", "wide, long")
"""Wide jobs need more than a quarter of the machine, long jobs run for more than an hour."""
RESPONSE, SLOWDOWN = MEANS = ("mean_response_s", "mean_bounded_slowdown")
METRICS: dict[str, str | Scaled] = {"response_h_{}": Scaled(RESPONSE, 1 / 3600), "slowdown_{}": SLOWDOWN}
OF_CLASS = dict(zip(("mean response time (h)", "mean bounded slowdown"), METRICS, strict=True))
"""Measures of a class, by title."""
RATIOS = {name: Relative(name, {"policy": "bf"}) for name in MEANS}
POINT = ("log", "load", "policy")
SHARES = {
    "useful": ["useful_share"],
    "context switch": ["context_switch_share"],
    "migration": ["checkpoint_share", "restart_share", "blocked_share"],
    "idle, jobs wait": ["idle_waiting_share"],
    "idle beside stopped gangs, none waits": ["idle_beside_stopped_share"],
}
"""Columns of each use of the capacity; the rest is idle with no job waiting and no gang stopped."""


def study(
    traces: Path = Path("../shared/traces"),
    logs: tuple[str, ...] = tuple(LOGS),
    jobs: int = 30_000,
    parts: int = 10,
    policies: tuple[str, ...] = ("bf", "bgs", "mbgs"),
) -> Study:
    """Return the study; ``traces`` is the folder of the logs."""

    def scenario(log: str, load: float | None, policy: str, seed: int) -> Scenario:
        file, nodes = LOGS[log]
        slices, switch = TimeSlicing(quantum_s=200, mpl=5), ContextSwitch(fraction=0.01)
        saving = Checkpointing(checkpoint_s=5, restart_s=5)
        machine = Machine(nodes=nodes, time_slicing=slices, context_switch=switch, checkpointing=saving)
        workload = part_of(study_jobs(traces / file, jobs=jobs), seed, parts)
        if load is not None:
            workload = workload.scaled(LoadScale(interarrival=workload.offered_load(nodes) / load))
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="real traces",
        factors={"log": logs, "load": {"as recorded": None, "scaled to 0.865": 0.865}, "policy": policies},
        scenario=scenario,
        replications=parts,
        measures={
            "mean_run_s": lambda result: float(result.jobs["run_s"].mean()),
            "mean_rows": lambda result: result.row_use.mean_rows,
            "idle_beside_stopped_share": lambda result: result.row_use.idle_beside_stopped.queue_empty / result.ledger.capacity,
            **class_measures(class_of, range(4), METRICS),
        },
        shown=(
            "utilization", "kappa", "mean_response_s", "mean_bounded_slowdown", "mean_wait_s",
            "useful_share", "context_switch_share", "checkpoint_share", "restart_share", "blocked_share", "idle_waiting_share",
        ),
        tables={
            "Paired ratios to BF ± 95 % interval": partial(measure_table, columns=RATIOS, by=POINT),
            "Where capacity goes: shares, and mean number of rows in use": capacity,
            "Mean response time (s) by its parts": response,
            "Log as recorded: mean response time (h) and mean bounded slowdown by class of jobs": means_by_class,
        },
        figures={
            "Less than with BF": lambda table: table.plot.improvements(y=MEANS, baseline="bf", x="log", panels="load"),
            "Capacity lost": picture_of_capacity,
            "By class of jobs": lambda table: classes(table).plot.bars(
                y=list(OF_CLASS), x="class of jobs", panels="log", log=True, share_y=False
            ),
        },
    )  # fmt: skip


def part_of(log: Workload, number: int, parts: int) -> Workload:
    first, end = (len(log) * ends // parts for ends in (number - 1, number))
    rows, name = list(log.rows())[first:end], f"{log.name} {number} of {parts}"
    return Workload(rows, name=name, provenance=log.provenance, machine_nodes=log.machine_nodes)


def class_of(result: Result) -> "pd.Series[int]":
    wide, long = 4 * result.jobs["nodes"] > result.machine.nodes, result.jobs["run_s"] > 3600
    return 2 * wide + long


def means(table: StudyTable) -> pd.DataFrame:
    return table.frame.groupby(list(POINT), sort=False).mean(numeric_only=True)


def capacity(table: StudyTable) -> pd.DataFrame:
    found = pd.DataFrame({use: means(table)[columns].sum(axis=1) for use, columns in SHARES.items()})
    rest = 1 - found.sum(axis=1)
    return found.assign(**{"idle, no gang stopped": rest, "rows": means(table)["mean_rows"]}).round(3).reset_index()


def response(table: StudyTable) -> pd.DataFrame:
    found = means(table)[["mean_response_s", "mean_wait_s", "mean_run_s"]]
    stopped = found["mean_response_s"] - found["mean_wait_s"] - found["mean_run_s"]
    return found.assign(stopped_or_overhead_s=stopped).round().abs().reset_index()


def classes(table: StudyTable) -> StudyTable:
    columns = {
        name: {title: measure.format(number) for title, measure in OF_CLASS.items()} for number, name in enumerate(CLASSES)
    }
    return by_class(table.at(load="as recorded"), "class of jobs", columns)


def means_by_class(table: StudyTable) -> pd.DataFrame:
    found = classes(table).frame.pivot_table(list(OF_CLASS), ["log", "class of jobs"], "policy", sort=False).round(2)
    return found.set_axis(found.columns.map(", ".join), axis=1).reset_index()


def picture_of_capacity(table: StudyTable) -> Figure:
    names = {
        "idle_waiting_share": "idle while jobs wait / capacity",
        "idle_beside_stopped_share": "idle beside stopped gangs, no job waits / capacity",
        "mean_rows": "mean number of rows in use",
    }
    return bars(table.frame.rename(columns=names), y=list(names.values()), x="log", panels="load")
