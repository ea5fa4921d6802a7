"""Two departments have 64 nodes each: who gains and who pays if their partitions share nodes?

Chemistry submits many short jobs by day, physics long jobs on up to 32 nodes around the clock.  Chemistry keeps its nodes half
busy, physics comes to more and more of its own.  Under EASY backfilling the partitions share no nodes, half of them (each
department has 32 nodes for itself, and 64 are both's), or all.  Users estimate three times their run times.

    clustermodel sweep scenarios/hypothetical/shared_partitions.py --out results
"""

from clustermodel import (
    Cycle,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    Partition,
    Poisson,
    Scenario,
    Study,
    Workload,
    merge,
)
from clustermodel.report.measure_table import Relative, class_measures, measure_table

CHEMISTRY = JobStream(
    arrivals=Cycle(Poisson(per_hour=30)),
    nodes={1: 0.4, 4: 0.3, 8: 0.2, 16: 0.1},
    run_s=Lognormal(mean=1_800, cv=2),
    estimates=FactorEstimates(3),
    name="chemistry",
)
PHYSICS = JobStream(
    arrivals=Poisson(per_hour=2),
    nodes={4: 0.3, 8: 0.3, 16: 0.3, 32: 0.1},
    run_s=Lognormal(mean=10_800, cv=1.5),
    estimates=FactorEstimates(3),
    name="physics",
)
WHO = ("chemistry", "physics")
SHARED = {"none": ("0-63", "64-127"), "half": ("0-95", "32-127"), "all": ("0-127", "0-127")}
"""Nodes of the two partitions."""
METRICS = {"{}_response_s": "mean_response_s", "{}_slowdown": "mean_bounded_slowdown"}
AGAINST_NONE = {f"{who}, response": Relative(f"{who}_response_s", {"shared": "none"}) for who in WHO}

LABELS = {"load": "load of physics", "none": "no shared nodes", "half": "half shared", "all": "all shared"}
LABELS |= {f"{who}_response_s": f"mean response time of {who}" for who in WHO}


def study(days: int = 14, replications: int = 6, loads: tuple[float, ...] = (0.5, 0.7, 0.9), own: float = 0.5) -> Study:
    """Return the study; ``own`` is the load of chemistry on 64 nodes."""

    def scenario(load: float, shared: tuple[str, str], seed: int) -> Scenario:
        jobs = merge(
            chemistry=CHEMISTRY.generate(days=days, seed=seed, load=own, machine_nodes=64),
            physics=PHYSICS.generate(days=days, seed=seed, load=load, machine_nodes=64),
        )
        workload = Workload.from_frame(jobs.frame.assign(partition=jobs.frame["stream"]))
        partitions = [Partition(name=who, nodes=nodes) for who, nodes in zip(WHO, shared, strict=True)]
        return Scenario(machine=Machine(nodes=128, partitions=partitions), workload=workload, policy="easy", seed=seed)

    return Study(
        name="two partitions that share nodes",
        factors={"load": loads, "shared": SHARED},
        scenario=scenario,
        replications=replications,
        measures=class_measures(lambda result: result.jobs["stream"], WHO, METRICS),
        shown=tuple(name.format(who) for name in METRICS for who in WHO),
        tables={
            "Ratio of mean response to that without shared nodes, paired": lambda table: measure_table(table, AGAINST_NONE)
        },
        figures={
            "Mean response by department, relative to that without shared nodes": lambda table: table.plot.ratios(
                x="load", y=[f"{who}_response_s" for who in WHO], by="shared", baseline="none", labels=LABELS
            )
        },
    )
