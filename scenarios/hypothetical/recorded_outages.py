"""How much work do the recorded outages of three clusters discard, and how much of it do periodic checkpoints save?

Systems 18 to 20 of Los Alamos National Laboratory with their outages (LANL 2005): the first weeks of the records, with jobs
that offer a load of 0.7.  A checkpoint and a restart take 2 minutes each.

    clustermodel sweep scenarios/hypothetical/recorded_outages.py --out results --set outages=FILE
"""

from functools import cache

from clustermodel import (
    Checkpointing,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    Outages,
    Poisson,
    Result,
    Scenario,
    Study,
    TwoStageUniform,
    read_outages,
)

INTERVALS: dict[str, float | str | None] = {"never": None, "4 h": 4 * 3_600.0, "1 h": 3_600.0, "Daly": "daly"}


@cache
def outages_of(path: str, system: int) -> Outages:
    return read_outages(path, system=system)


def failures(result: Result) -> float:
    return float(result.summary().failures)


LABELS = {
    "system": "system of Los Alamos",
    "lost_share": "discarded work, share of capacity",
    "interval": "checkpoint interval",
}


def study(
    outages: str = "../shared/traces/failures/lanl_systems_18_19_20.csv.gz", jobs: int = 2_000, replications: int = 5
) -> Study:
    def scenario(system: int, interval: str, seed: int) -> Scenario:
        recorded = outages_of(outages, system)
        machine = Machine(
            nodes=recorded.nodes,
            kill_at_estimate=False,
            failures=recorded,
            checkpointing=Checkpointing(checkpoint_s=120, restart_s=120, interval_s=INTERVALS[interval]),
        )
        stream = JobStream(
            arrivals=Poisson(per_hour=4),
            nodes=TwoStageUniform(largest=recorded.nodes // 2),
            run_s=Lognormal(mean=6 * 3_600, cv=2),
            estimates=FactorEstimates(3),
        )
        workload = stream.generate(jobs=jobs, seed=seed, load=0.7, machine_nodes=recorded.nodes)
        return Scenario(machine=machine, workload=workload, policy="easy", seed=seed)

    return Study(
        name="recorded outages",
        factors={"system": [18, 19, 20], "interval": list(INTERVALS)},
        scenario=scenario,
        measures={"node_failures": failures},
        replications=replications,
        shown=("mean_response_s", "lost_share", "checkpoint_share", "down_share", "failed_attempts", "node_failures"),
        tables={
            "Discarded work (share of node time)": lambda table: table.pivot("lost_share", columns="interval"),
            "Ratio of mean response to that without checkpoints, paired": lambda table: table.differences(
                "mean_response_s", "interval", "never", ratio=True
            ),
            "Outages": lambda table: table.means("node_failures", "down_share"),
        },
        figures={
            "Discarded work and checkpoints": lambda table: table.plot.bars(
                x="system", y="lost_share", by="interval", labels=LABELS
            )
        },
        text=__doc__ or "",
    )
