"""Interactive users and batch users share 512 nodes: which policy serves whom?

By day, interactive users submit short jobs on few nodes; around the clock, batch users submit long jobs of up to 256 nodes.
Users estimate three times their run times.  EASY, BGS and MBGS with MPL 5 and slices of a minute, which cost 1 % of a slice for
a context switch, and selective suspension, at four loads of the machine.

    clustermodel sweep scenarios/hypothetical/two_classes.py --out results
"""

from clustermodel import (
    ContextSwitch,
    Cycle,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    Poisson,
    Scenario,
    Study,
    TimeSlicing,
    merge,
)
from clustermodel.report.measure_table import Relative, class_measures, measure_table

POLICIES = {"EASY": "easy", "BGS": "bgs", "MBGS": "mbgs", "SS": "ss"}
INTERACTIVE = JobStream(
    arrivals=Cycle(Poisson(per_hour=60)),
    nodes={1: 0.4, 2: 0.2, 4: 0.2, 8: 0.2},
    run_s=Lognormal(mean=300, cv=2),
    estimates=FactorEstimates(3),
)
BATCH = JobStream(
    arrivals=Poisson(per_hour=6),
    nodes={16: 0.3, 64: 0.4, 128: 0.2, 256: 0.1},
    run_s=Lognormal(mean=7_200, cv=1.5),
    estimates=FactorEstimates(3),
)
WHO = ("interactive", "batch")
METRICS = {"{}_response_s": "mean_response_s", "{}_slowdown": "mean_bounded_slowdown"}
AGAINST_EASY = {who: Relative(f"{who}_response_s", {"policy": "EASY"}) for who in WHO}

LABELS = {f"{who}_slowdown": f"mean bounded slowdown of {who} jobs" for who in WHO}


def study(days: int = 28, replications: int = 10, loads: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9)) -> Study:
    def scenario(load: float, policy: str, seed: int) -> Scenario:
        jobs = merge(interactive=INTERACTIVE, batch=BATCH).generate(days=days, seed=seed, load=load, machine_nodes=512)
        switch, slices = ContextSwitch(fraction=0.01), TimeSlicing(quantum_s=60, mpl=5)
        machine = Machine(nodes=512, time_slicing=slices, context_switch=switch)
        return Scenario(machine=machine, workload=jobs, policy=POLICIES[policy], seed=seed)

    return Study(
        name="two user classes on 512 nodes",
        factors={"load": loads, "policy": list(POLICIES)},
        scenario=scenario,
        measures=class_measures(lambda result: result.jobs["stream"], WHO, METRICS),
        replications=replications,
        shown=("interactive_slowdown", "batch_slowdown", "interactive_response_s", "batch_response_s", "utilization"),
        tables={
            "Mean response of interactive jobs, s": lambda table: table.pivot("interactive_response_s", columns="policy"),
            "Mean response of batch jobs, s": lambda table: table.pivot("batch_response_s", columns="policy"),
            "Ratio of mean response to that of EASY, paired": lambda table: measure_table(table, AGAINST_EASY),
        },
        figures={
            "Mean bounded slowdown by class, relative to EASY": lambda table: table.plot.ratios(
                x="load", y=[f"{who}_slowdown" for who in WHO], baseline="EASY", log=True, labels=LABELS
            )
        },
    )
