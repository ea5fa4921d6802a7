"""How often should jobs checkpoint on a machine of 16,384 nodes that fails every three hours, and who writes when?

A machine with images of 64 GiB per node and a store of 1,000 GiB/s that all jobs share; repairs take half an hour.  The
interval of each job is a multiple of Daly's, which is best for a job that has the store to itself (Daly 2006).  A node fails
every 3.1 h, or every 24.8 h.

    clustermodel sweep scenarios/hypothetical/exascale.py --out results
"""

from dataclasses import replace

from clustermodel import (
    Checkpointing,
    CheckpointStore,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    NodeFailures,
    Poisson,
    Result,
    Scenario,
    Study,
    TwoStageUniform,
    Workload,
)
from clustermodel.theory.checkpointing import daly_interval_s

NODES, MEMORY_GIB, BANDWIDTH_GIB_S = 16_384, 64.0, 1_000.0
JOBS = JobStream(
    arrivals=Poisson(per_hour=4),
    nodes=TwoStageUniform(largest=8_192),
    run_s=Lognormal(mean=6 * 3_600, cv=1),
    estimates=FactorEstimates(3),
)

LABELS = {
    "multiple": "checkpoint interval, multiple of Daly's",
    "waste": "wasted share of the node time that is not idle",
    "least_waste": "least waste first",
}


def waste(result: Result) -> float:
    spent = result.ledger.frame["total_node_s"]
    wasted = spent[["lost", "checkpoint", "restart", "blocked"]].sum()
    return float(wasted / (wasted + spent["useful"]))


def workload(jobs: int, mtbf_h: float, multiple: float, seed: int) -> Workload:
    drawn = JOBS.generate(jobs=jobs, seed=seed, load=0.6, machine_nodes=NODES)
    return Workload.from_jobs(
        replace(
            job,
            memory_gib=MEMORY_GIB,
            checkpoint_interval_s=multiple
            * daly_interval_s(job.nodes * MEMORY_GIB / BANDWIDTH_GIB_S, mtbf_h * 3_600 * NODES / job.nodes),
        )
        for job in drawn.jobs()
    )


def study(jobs: int = 400, replications: int = 10) -> Study:
    def scenario(mtbf_h: float, writers: str, multiple: float, seed: int) -> Scenario:
        store = CheckpointStore(bandwidth_gib_s=BANDWIDTH_GIB_S, writers=writers)
        machine = Machine(
            nodes=NODES,
            kill_at_estimate=False,
            failures=NodeFailures(mtbf_s=mtbf_h * 3_600, repair_s=1_800, per="machine"),
            checkpointing=Checkpointing(interval_s="own", store=store),
        )
        return Scenario(machine=machine, workload=workload(jobs, mtbf_h, multiple, seed), policy="easy", seed=seed)

    return Study(
        name="exascale: checkpoint interval",
        factors={"mtbf_h": [3.1, 24.8], "writers": ["oblivious", "least_waste"], "multiple": [0.25, 0.5, 1.0, 2.0, 4.0]},
        scenario=scenario,
        measures={"waste": waste},
        replications=replications,
        shown=("waste", "mean_response_s", "lost_share", "checkpoint_share", "restart_share", "blocked_share"),
        tables={
            "Waste by interval": lambda table: table.pivot("waste", columns="multiple"),
            "Mean response by interval (s)": lambda table: table.pivot("mean_response_s", columns="multiple"),
        },
        figures={
            "Waste by interval": lambda table: table.plot.curves(
                x="multiple", y="waste", by="writers", panels="mtbf_h", log_x=True, labels=LABELS
            )
        },
        text=__doc__ or "",
    )
