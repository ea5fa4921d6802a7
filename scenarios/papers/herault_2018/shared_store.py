"""How much does the order matter in which jobs write their checkpoints to a shared store?

Herault et al. 2018: jobs of four classes keep the machine Cielo full, and its nodes fail.  Jobs are checkpointed at Daly's
intervals, or at Young's, which their program uses.  The waste is the share of node time spent on checkpoints, restarts, waiting
for the store and discarded work; theory gives a lower bound.  Repairs take no time.  All jobs are submitted at the beginning,
in a random order; on average as many jobs of each class run as in the authors' program.

Small and full (65 s on two cores): blocking writers (oblivious, fcfs) waste more than non-blocking ones, by more than the
intervals.

    clustermodel sweep scenarios/papers/herault_2018/shared_store.py --out full --set replications=6
"""

import numpy as np
import pandas as pd

from clustermodel import (
    Account,
    Checkpointing,
    CheckpointStore,
    Job,
    Machine,
    NodeFailures,
    Result,
    Scenario,
    Status,
    Study,
    StudyTable,
    Workload,
)
from clustermodel.theory import checkpointing

HOUR, GIB, NODES = 3600.0, 2**30, 17_784
CLASSES = {  # nodes, run time (h), share of the work, checkpoint at 40 GB/s (s)
    "EAP": (1024, 262.4, 0.66, 1310.7),
    "LAP": (256, 64.0, 0.055, 378.9),
    "Silverton": (2048, 128.0, 0.155, 5734.4),
    "VPIC": (1875, 157.2, 0.12, 1275.0),
}
CASES = {"40 GB/s, MTBF 8 h": (40.0, 8.0), "160 GB/s, MTBF 1 h": (160.0, 1.0)}  # of the store, of the machine
PUBLISHED = {"40 GB/s, MTBF 8 h": 0.168, "160 GB/s, MTBF 1 h": 0.279}  # waste where all write at once
WRITERS = ["oblivious", "fcfs", "fcfs_nonblocking", "least_waste"]
AT_ONCE = checkpointing.jobs_at_once(
    NODES, [nodes for nodes, *_ in CLASSES.values()], [share / hours for _, hours, share, _ in CLASSES.values()]
)  # mean number of jobs of each class in execution


def classes(case: str) -> list[checkpointing.CheckpointingJobs]:
    return [
        checkpointing.CheckpointingJobs(nodes=nodes, jobs=count, checkpoint_s=seconds * 40 / CASES[case][0])
        for (nodes, _, _, seconds), count in zip(CLASSES.values(), AT_ONCE, strict=True)
    ]


def bound(case: str) -> float:
    """Return the lower bound of the waste, of first order (Herault et al. 2018, eq. (7))."""
    return checkpointing.shared_store_bound(NODES, CASES[case][1] * HOUR, classes(case)).waste


def without_others(case: str) -> float:
    """Return the exact waste of the same jobs if each had a store of its own (Daly 2006)."""
    work = busy = 0.0
    for one in classes(case):
        cost_s, mtbf_s = one.checkpoint_s, CASES[case][1] * HOUR * NODES / one.nodes
        interval_s = checkpointing.optimal_interval_s(cost_s, mtbf_s)
        work += one.jobs * one.nodes
        wasted = checkpointing.checkpoint_waste(interval_s, checkpoint_s=cost_s, restart_s=cost_s, mtbf_s=mtbf_s)
        busy += one.jobs * one.nodes / (1 - wasted)
    return 1 - work / busy


def jobs(days: float, seed: int) -> Workload:
    """Return jobs that keep the machine busy for so many days; run times vary by a fifth."""
    rng = np.random.default_rng(seed)
    counts = [max(round(mean * days * 24 / hours), 1) for mean, (_, hours, *_) in zip(AT_ONCE, CLASSES.values(), strict=True)]
    kinds = [kind for kind, count in zip(CLASSES.values(), counts, strict=True) for _ in range(count)]
    return Workload.from_jobs(
        Job(
            id=number,
            submit_s=0,
            nodes=nodes,
            run_s=hours * HOUR * rng.uniform(0.8, 1.2),
            memory_gib=seconds * 40e9 / nodes / GIB,
        )
        for number, (nodes, hours, _, seconds) in enumerate((kinds[at] for at in rng.permutation(len(kinds))), 1)
    )


def waste(result: Result) -> float:
    """Return the waste: the share of the busy nodes' time that is not useful."""
    spent = result.ledger.frame["total_node_s"]
    wasted = spent[["lost", "checkpoint", "restart", "blocked"]].sum()
    return float(wasted / (wasted + spent["useful"]))


def waste_if_kept(result: Result) -> float:
    """Return the waste if a failure during a checkpoint discarded no work, as in the authors' program."""
    runs, held = result.records.runs, result.records.overheads
    writing = held.account == list(Account).index(Account.CHECKPOINT)
    stopped = set(zip(held.job[writing].tolist(), held.end[writing].tolist(), strict=True))
    during = [end in stopped for end in zip(runs.job.tolist(), runs.end.tolist(), strict=True)]
    kept = (runs.lost * runs.nodes)[(runs.ended_as == Status.FAILED) & during].sum()
    return waste(result) - float(kept) / (result.ledger.capacity - sum(result.ledger.amount(Account.IDLE)))


def beside_the_bound(table: StudyTable) -> pd.DataFrame:
    shown = table.pivot("waste", columns="writers", interval="daly")
    for place, (name, lowest) in enumerate({"bound": bound, "exact, own store": without_others}.items()):
        shown.insert(place, name, [f"{lowest(str(case)):.4f}" for case in shown.index])
    return shown


def beside_the_paper(table: StudyTable) -> pd.DataFrame:
    """Return the waste by what may be meant by it, beside the published one where all write at once, and beside the bound."""
    parts = []
    for writers, reference in (("oblivious", PUBLISHED.__getitem__), ("least_waste", bound)):
        part = table.at(writers=writers).means("waste", "waste_if_kept")[["case", "interval", "waste", "waste_if_kept"]]
        parts.append(part.assign(writers=writers, paper=part["case"].map(reference)))
    shown = pd.concat(parts).set_index(["case", "writers", "interval", "paper"])
    paper = shown.index.get_level_values("paper")
    return shown.assign(**{f"{name}, ratio": shown[name] / paper for name in shown}).reset_index()


LABELS = {
    "waste": "wasted share of the node time that is not idle",
    "fcfs": "FCFS",
    "fcfs_nonblocking": "FCFS, non-blocking",
    "least_waste": "least waste first",
}


def study(days: float = 90.0, replications: int = 12) -> Study:
    def scenario(case: str, writers: str, interval: str, seed: int) -> Scenario:
        bandwidth, mtbf_h = CASES[case]
        store = CheckpointStore(bandwidth_gib_s=bandwidth * 1e9 / GIB, writers=writers)
        machine = Machine(
            nodes=NODES, kill_at_estimate=False, checkpointing=Checkpointing(interval_s=interval, store=store),
            failures=NodeFailures(mtbf_s=mtbf_h * HOUR, repair_s=0, per="machine"),
        )  # fmt: skip
        return Scenario(machine=machine, workload=jobs(days, seed), policy="easy", seed=seed)

    return Study(
        name="Cielo: who writes to the checkpoint store",
        factors={"case": list(CASES), "writers": WRITERS, "interval": ["daly", "young"]},
        scenario=scenario,
        measures={"waste": waste, "waste_if_kept": waste_if_kept},
        replications=replications,
        shown=("waste", "checkpoint_share", "restart_share", "blocked_share", "lost_share", "idle_share"),
        tables={
            "Waste at Daly's intervals, beside lower bounds": beside_the_bound,
            "Beside the paper: published waste where all write at once, bound for least waste": beside_the_paper,
        },
        figures={
            "Waste by strategy": lambda table: table.at(interval="daly").plot.bars(
                x="case", y="waste", by="writers", labels=LABELS
            )
        },
        text=str(__doc__),
    )
