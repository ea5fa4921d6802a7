"""How much does it matter in which order jobs write their checkpoints to a store that they share?

Herault et al. 2018: the machine Cielo (17,784 nodes) is always full of jobs of four classes, whose nodes fail.  Each job is
checkpointed at Daly's interval.  Their theory bounds the waste from below: the share of the node time that goes into
checkpoints, restarts, waiting for the store and discarded work.  Repairs take no time.  All jobs are submitted at the
beginning, in a random order, in such numbers that the mean number of each class in execution is that of the authors'
program.

    clustermodel sweep scenarios/papers/herault_2018/shared_store.py --out results
"""

import numpy as np
import pandas as pd

from clustermodel import (
    Checkpointing,
    CheckpointStore,
    Job,
    Machine,
    NodeFailures,
    Result,
    Scenario,
    Study,
    StudyTable,
    Workload,
)
from clustermodel.theory.checkpointing import CheckpointingJobs, jobs_at_once, shared_store_bound

HOUR, GIB = 3600.0, 2**30
NODES = 17_784
CLASSES = {  # nodes, run time (h), share of the work, checkpoint at 40 GB/s (s)
    "EAP": (1024, 262.4, 0.66, 1310.7),
    "LAP": (256, 64.0, 0.055, 378.9),
    "Silverton": (2048, 128.0, 0.155, 5734.4),
    "VPIC": (1875, 157.2, 0.12, 1275.0),
}
CASES = {"40 GB/s, MTBF 8 h": (40.0, 8.0), "160 GB/s, MTBF 1 h": (160.0, 1.0)}
"""Bandwidth of the store, and mean time between the failures of the machine."""
WRITERS = ("oblivious", "fcfs", "fcfs_nonblocking", "least_waste")
AT_ONCE = jobs_at_once(
    NODES, [nodes for nodes, *_ in CLASSES.values()], [share / hours for _, hours, share, _ in CLASSES.values()]
)
"""Mean number of jobs of each class in execution, as in the authors' program."""


def bound(case: str) -> float:
    """Return the lower bound of the waste (Herault et al. 2018, eq. (7))."""
    bandwidth, mtbf_h = CASES[case]
    jobs = [
        CheckpointingJobs(nodes=nodes, jobs=count, checkpoint_s=seconds * 40 / bandwidth)
        for (nodes, _, _, seconds), count in zip(CLASSES.values(), AT_ONCE, strict=True)
    ]
    return shared_store_bound(NODES, mtbf_h * HOUR, jobs).waste


def jobs(days: float, seed: int) -> Workload:
    """Return jobs that keep the machine busy for so many days; run times vary by a fifth."""
    rng = np.random.default_rng(seed)
    kinds = [kind for kind, count in zip(CLASSES.values(), AT_ONCE, strict=True) for _ in range(_of(kind, count, days))]
    return Workload.from_jobs(
        Job(
            id=number,
            submit_s=0,
            nodes=nodes,
            run_s=hours * HOUR * rng.uniform(0.8, 1.2),
            memory_gib=checkpoint_s * 40e9 / nodes / GIB,
        )
        for number, (nodes, hours, _, checkpoint_s) in enumerate((kinds[at] for at in rng.permutation(len(kinds))), 1)
    )


def _of(kind: tuple[int, float, float, float], at_once: float, days: float) -> int:
    return max(round(at_once * days * 24 / kind[1]), 1)


def waste(result: Result) -> float:
    """Return the waste: the share of the busy nodes' time that is not useful."""
    spent = result.ledger.frame["total_node_s"]
    wasted = spent[["lost", "checkpoint", "restart", "blocked"]].sum()
    return float(wasted / (wasted + spent["useful"]))


def beside_the_bound(table: StudyTable) -> pd.DataFrame:
    """Return the mean waste of each strategy, with its interval, beside the bound."""
    shown = table.pivot("waste", columns="writers")
    shown.insert(0, "bound", [f"{bound(str(case)):.4f}" for case in shown.index])
    return shown


def study(days: float = 90.0, replications: int = 8) -> Study:
    """Return the study."""

    def scenario(case: str, writers: str, seed: int) -> Scenario:
        bandwidth, mtbf_h = CASES[case]
        store = CheckpointStore(bandwidth_gib_s=bandwidth * 1e9 / GIB, writers=writers)
        machine = Machine(
            nodes=NODES,
            kill_at_estimate=False,
            failures=NodeFailures(mtbf_s=mtbf_h * HOUR, repair_s=0, per="machine"),
            checkpointing=Checkpointing(interval_s="daly", store=store),
        )
        return Scenario(machine=machine, workload=jobs(days, seed), policy="easy", seed=seed)

    return Study(
        name="Cielo: who writes to the checkpoint store",
        factors={"case": list(CASES), "writers": list(WRITERS)},
        scenario=scenario,
        measures={"waste": waste},
        replications=replications,
        shown=("waste", "checkpoint_share", "restart_share", "blocked_share", "lost_share", "idle_share"),
        tables={"Waste, beside the lower bound": beside_the_bound},
        figures={"Waste by strategy": lambda table: table.plot.bars(x="case", y="waste", by="writers")},
        text=__doc__ or "",
    )
