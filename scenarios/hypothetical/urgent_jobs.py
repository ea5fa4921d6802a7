"""What do urgent jobs gain in gang scheduling, and what do others pay, if preemption kills, checkpoints or suspends gangs?

A random share of the jobs is urgent (priority 1), the same for all policies.  With ``bgs`` priorities order the queue; with
``urgent=kill``, ``urgent=checkpoint`` or ``urgent=suspend`` an urgent job gets its nodes in every row of the Ousterhout matrix.
For comparison: EASY, where priorities order the queue as well, and selective suspension, which ignores them.  Checkpointing a
gang takes a rotation at most if no scheduling event cuts its slice short.  Small jobs have up to 32 nodes.

    clustermodel sweep scenarios/hypothetical/urgent_jobs.py --out results --set jobs=1000 --set replications=3
"""

from functools import lru_cache, partial
from zlib import crc32

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clustermodel import Checkpointing, ContextSwitch, Machine, Result, Scenario, Study, StudyTable, TimeSlicing, Workload
from clustermodel.experiment.design import Measure
from clustermodel.measure.job_table import Jobs
from clustermodel.report.measure_table import Columns, Relative, Scaled, by_class, class_measures, measure_table
from clustermodel.workload.synthetic import study_jobs

BASE, QUANTUM_S, MPL, SWITCH_S, COST_S = "bgs", 200, 5, 4, 60
ROTATION_S = (MPL - 1) * QUANTUM_S + SWITCH_S + COST_S
URGENT_GANGS = ("bgs:urgent=kill", "bgs:urgent=checkpoint", "bgs:urgent=suspend", "mbgs", "mbgs:urgent=checkpoint")
PRIORITIES, SIZES = ("others", "urgent"), ("small", "large")
CLASSES = ("urgent", *PRIORITIES, *SIZES)
STATISTICS = ("mean_wait_s", "p95_wait_s", "mean_response_s", "mean_bounded_slowdown")
PAIRED = [f"{name}: {group}" for name in STATISTICS for group in CLASSES[:2] if (name, group) != ("p95_wait_s", "others")]
SHARES = ("context_switch_share", "checkpoint_share", "restart_share", "blocked_share", "lost_share")
TABLES: dict[str, Columns] = {
    "Waits, responses and mean bounded slowdowns": {
        **{f"{name}: {group}": f"{name}: {group}" for name in STATISTICS[:3] for group in CLASSES[:2]},
        **{f"slowdown: {group}": f"mean_bounded_slowdown: {group}" for group in CLASSES},
    },
    "What urgent jobs wait for": {
        "urgent jobs": "urgent_jobs", "at once (%)": Scaled("start_at_once", 100), "compete (%)": Scaled("compete", 100),
        "longest wait of the rest (s)": "longest_wait_alone_s", f"over {ROTATION_S} s (%)": Scaled("over_a_rotation", 100),
    },
    "What preemption costs (% of capacity)": {
        "preemptions": "preemptions",
        **{name.removesuffix("_share"): Scaled(name, 100) for name in (*SHARES, "utilization", "kappa")},
    },
}  # fmt: skip


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 10, share: float = 0.05) -> Study:
    """Return the study; ``jobs`` is 0 for all of a trace, ``share`` the probability that a job is urgent."""

    def scenario(policy: str, seed: int) -> Scenario:
        slices, switch = TimeSlicing(quantum_s=QUANTUM_S, mpl=MPL), ContextSwitch(seconds=SWITCH_S)
        saving = Checkpointing(checkpoint_s=COST_S, restart_s=COST_S)
        machine = Machine(nodes=nodes, time_slicing=slices, context_switch=switch, checkpointing=saving)
        workload = with_urgent_jobs(study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed), share, seed)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    waits = ("urgent_jobs", "start_at_once", "compete", "longest_wait_alone_s", "over_a_rotation")
    measures: dict[str, Measure] = {name: partial(of_urgent, name=name) for name in waits}
    measures["preemptions"] = lambda result: int(Jobs.of(result.records).preemptions.sum())
    metrics = {f"{name}: {{}}": name for name in STATISTICS}
    measures |= class_measures(lambda run: np.where(run.jobs["priority"] > 0, "urgent", "others"), PRIORITIES, metrics)
    measures |= class_measures(lambda run: np.where(run.jobs["nodes"] > 32, "large", "small"), SIZES, metrics)
    return Study(
        name="urgent jobs in gang scheduling",
        factors={"policy": (BASE, *URGENT_GANGS, "easy", "ss")},
        scenario=scenario,
        measures=measures,
        replications=replications,
        shown=("utilization", "kappa", *SHARES),
        tables={
            **{title: partial(measure_table, columns=columns, by=["policy"]) for title, columns in TABLES.items()},
            f"Paired differences from {BASE}, in brackets where the interval contains 0": differences,
        },
        figures={"Responses and slowdowns by class of jobs": picture},
    )


@lru_cache(maxsize=2)
def with_urgent_jobs(workload: Workload, share: float, seed: int) -> Workload:
    """Return the jobs, of which a random share has priority 1 and the others 0; a larger share includes a smaller one."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(b"urgent jobs"),)))
    urgent = (rng.random(len(workload)) < share).tolist()
    rows = [row._replace(priority=int(first)) for row, first in zip(workload.rows(), urgent, strict=True)]
    return Workload(rows, name=workload.name, provenance=workload.provenance, machine_nodes=workload.machine_nodes)


def of_urgent(result: Result, name: str) -> float:
    records = result.records
    urgent = records.finished & (records.column("priority") > 0)
    submit, start, end = (records.seconds(time)[urgent] for time in ("submit", "start", "end"))
    # Nodes of the urgent jobs, itself included, that are in the system at any time of its wait.
    asked = ((submit <= start[:, None]) & (end > submit[:, None])) @ records.column("nodes")[urgent]
    wait, compete = pd.Series(start - submit), pd.Series(asked > result.machine.nodes)
    alone = wait[~compete]
    shares = {"start_at_once": wait == 0, "compete": compete, "over_a_rotation": alone > ROTATION_S}
    return float(shares[name].mean() if name in shares else len(wait) if name == "urgent_jobs" else alone.max())


def differences(table: StudyTable) -> pd.DataFrame:
    columns = {name: Relative(name, {"policy": BASE}, ratio=False) for name in PAIRED}
    found = measure_table(table, columns, by=["policy"]).set_index("policy")
    return found.map(lambda one: f"({one})" if 0 in one else str(one)).reset_index()


def picture(table: StudyTable) -> Figure:
    names = ("mean_response_s", "mean_bounded_slowdown")
    found = by_class(table, "group", {group: {name: f"{name}: {group}" for name in names} for group in CLASSES})
    return found.plot.bars(y=names, x="group", log=True)
