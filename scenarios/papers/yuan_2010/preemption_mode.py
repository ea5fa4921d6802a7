r"""Up to which cost does saving the work of preempted jobs beat killing them under PV-EASY?

Yuan et al. 2010 (section 6) kill, and leave the other modes to a time when "operation cost will decrease".  Here PV-EASY
preempts with mode kill, checkpoint and suspend, by the cost of saving a job and of restoring it; run times are as recorded.

At a cost of c seconds a checkpoint, a restart and a context switch take c each.  A checkpoint costs c to save and c to restore;
so does suspension if the job resumes on its own nodes, and otherwise c to suspend and 2 c to move.  Memory holds every
suspended job.  Killing does not depend on c.  "Checkpoint, limited store" has a store that takes only so many tasks at a time.

Small (15 s on two cores): in synthetic jobs, killing discards more capacity than saving and restoring take, even at an hour
each.

    clustermodel sweep scenarios/papers/yuan_2010/preemption_mode.py --out small \
        --set jobs=2000 --set replications=10 --set costs_s=0,60,900,3600

Full (about 3 min on two cores): the log of CTC-SP2, which is fixed, so without intervals.

    clustermodel sweep scenarios/papers/yuan_2010/preemption_mode.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430 --set store=32
"""

from math import inf, isinf, isnan, nan

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clustermodel import Account, Checkpointing, ContextSwitch, Machine, Result, Scenario, Study, StudyTable, TimeSlicing
from clustermodel.experiment.factors import Label
from clustermodel.report.measure_table import Columns, Scaled, measure_table
from clustermodel.workload.synthetic import study_jobs

KILL, LIMITED = "kill", "checkpoint, limited store"
SAVING = (Account.CHECKPOINT, Account.RESTART, Account.CONTEXT_SWITCH)
MBS, MWBS = "mean_bounded_slowdown", "mean_weighted_bounded_slowdown"
COLUMNS: Columns = {
    "MBS": MBS, "MWBS": MWBS, "mean wait (s)": "mean_wait_s", "mean response (s)": "mean_response_s",
    "discarded (% of capacity)": Scaled("lost_share", 100), "saving and restoring (%)": Scaled("saving_share", 100),
    "waiting for the store (%)": Scaled("blocked_share", 100), "preempted": "preempted", "times each": "mean_killed_times",
    "delayed": "delayed", "delays (h)": "delays_by_later_h", "longest (s)": "longest_delay_by_later_s",
    "violations": "reservation_violations",
}  # fmt: skip
CRITERIA = {"MBS": MBS, "MWBS": MWBS, "mean response": "mean_response_s", "capacity": "preemption_share"}


def study(
    trace: str | None = None,
    nodes: int = 128,
    jobs: int = 0,
    replications: int = 1,
    costs_s: tuple[int, ...] = (0, 10, 60, 300, 900, 1800, 3600),
    store: int = 0,
) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    ``costs_s`` are those of saving and of restoring; ``store`` is the most tasks that the limited store takes at a time, 0
    to leave this mode out.
    """

    def scenario(mode: str, cost_s: int, seed: int) -> Scenario:
        tasks = store if mode == LIMITED else None
        machine = Machine(
            nodes=nodes,
            kill_at_estimate=False,
            checkpointing=Checkpointing(checkpoint_s=cost_s, restart_s=cost_s, max_tasks_per_slice=tasks),
            context_switch=ContextSwitch(seconds=cost_s),
            time_slicing=TimeSlicing(quantum_s=1e6),  # there are no slices; a context switch must be shorter than one
        )
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=f"pv-easy:mode={mode.partition(',')[0]}", seed=seed)

    return Study(
        name="preemption mode",
        factors={"mode": [KILL, "checkpoint", "suspend", *([LIMITED] if store else [])], "cost_s": costs_s},
        scenario=scenario,
        measures={
            "saving_share": lambda result: result.ledger.share(*SAVING),
            "preemption_share": lambda result: result.ledger.share(*SAVING, Account.BLOCKED, Account.LOST),
            "delays_by_later_h": total_delay,
        },
        replications=replications,
        shown=(MBS, MWBS, "mean_wait_s", "mean_response_s", "lost_share", "blocked_share", "preempted", "mean_killed_times",
               "delayed", "longest_delay_by_later_s", "reservation_violations"),
        tables={
            "PV-EASY by mode and cost": means,
            "Cost (s) up to which a mode is better than killing, interpolated": break_even_costs,
        },
        figures={"By cost of saving and of restoring": picture},
    )  # fmt: skip


def total_delay(result: Result) -> float:
    summary = result.summary()
    return (summary.delayed or 0) * summary.mean_delay_by_later_s / 3600


def means(table: StudyTable) -> pd.DataFrame:
    found = measure_table(table, COLUMNS, by=["mode", "cost_s"])
    shown: pd.DataFrame = found[(found["mode"] != KILL) | (found["cost_s"] == found["cost_s"].min())]
    return shown


def break_even_costs(table: StudyTable) -> pd.DataFrame:
    rows = []
    for mode in (mode for mode in table.levels("mode") if mode != KILL):
        found = {title: break_even(table, measure, mode) for title, measure in CRITERIA.items()}
        rows.append({"mode": mode, **{title: shown(cost_s) for title, cost_s in found.items()}})
    return pd.DataFrame(rows)


def break_even(table: StudyTable, measure: str, mode: Label) -> float:
    """Return the lowest cost at which a measure is no longer below that of killing, interpolated between the costs.

    Differences of means are paired by replication.  It is ``nan`` if the measure is not below at the first cost, ``inf`` if it
    is below at all of them.
    """
    costs = table.levels("cost_s")
    above = [table.difference(measure, {"mode": mode, "cost_s": cost}, {"mode": KILL, "cost_s": cost}).mean for cost in costs]
    reached = np.flatnonzero(np.array(above) >= 0)
    if not len(reached):
        return inf
    if reached[0] == 0:
        return nan
    ends = slice(reached[0] - 1, reached[0] + 1)
    return float(np.interp(0, above[ends], np.array(costs, dtype=float)[ends]))


def shown(cost_s: float) -> str:
    return "at no cost" if isnan(cost_s) else "not in this range" if isinf(cost_s) else f"{cost_s:,.0f}"


def picture(table: StudyTable) -> Figure:
    figure = table.plot.curves(x="cost_s", y=[MBS, "preemption_share", "delays_by_later_h"], by="mode", log=MBS)
    for axes in figure.axes:
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(left=0)
        axes.set_xlabel("cost of saving, and of restoring (s)")
    return figure
