"""How much memory does a node need before another gang on it pays?

Tasks of gangs that share a node share its memory.  The baseline workload and machine of Zhang et al. 2003 (320 nodes, run times
x 1.5, phi 0.2) under BGS, MPL against memory per node.  Each job needs a lognormal amount of memory on each node, mean 0.5 GiB,
coefficient of variation 1, at most 1.5 GiB, so that every job fits every machine.  Nothing is published about the memory of
these jobs, so that is chosen.  Its shape follows Feitelson 1997: on the CM-5 of Los Alamos many jobs used a small part of the
memory of a node.

    clustermodel sweep scenarios/hypothetical/memory_for_multiprogramming.py --out results
"""

from functools import lru_cache

import numpy as np

from clustermodel import Lognormal, Machine, Scenario, Study, TimeSlicing, Workload, load_model
from clustermodel.experiment.scenario import random_stream
from clustermodel.validation import KIB_PER_GIB

MEMORY, MOST_GIB = Lognormal(mean=0.5, cv=1), 1.5
MEANS = ("mean_response_s", "mean_bounded_slowdown")

LABELS = {"mpl": "multiprogramming level", "memory_gib": "memory of a node (GiB)", None: "no limit"}


def study(
    jobs: int = 10_000,
    replications: int = 5,
    policy: str = "bgs",
    levels: tuple[int, ...] = (1, 2, 3, 5),
    memory_gib: tuple[float | None, ...] = (1.5, 2, 3, None),
) -> Study:
    """Return the study; ``levels`` of multiprogramming, ``memory_gib`` of a node, ``None`` for no limit."""

    def scenario(memory_gib: float | None, mpl: int, seed: int) -> Scenario:
        machine = Machine(nodes=320, time_slicing=TimeSlicing(quantum_s=200, mpl=mpl), node_memory_gib=memory_gib)
        return Scenario(machine=machine, workload=with_memory(jobs, seed), policy=policy, seed=seed)

    return Study(
        name="memory for multiprogramming",
        factors={"memory_gib": memory_gib, "mpl": levels},
        scenario=scenario,
        replications=replications,
        shown=("utilization", "rejected", *MEANS),
        tables={
            "Mean response (s)": lambda table: table.pivot("mean_response_s", columns="mpl"),
            "Mean bounded slowdown": lambda table: table.pivot("mean_bounded_slowdown", columns="mpl"),
            "Ratio of mean response to that of MPL 1, paired": lambda table: table.differences(
                "mean_response_s", "mpl", levels[0], ratio=True
            ),
        },
        figures={
            "Response and slowdown": lambda table: table.plot.curves(
                x="mpl", y=MEANS, by="memory_gib", log=["mean_bounded_slowdown"], labels=LABELS
            )
        },
    )


@lru_cache(maxsize=2)
def with_memory(jobs: int, seed: int) -> Workload:
    workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=1.5, phi=0.2)
    gib = np.minimum(MEMORY.sample(random_stream(seed, "memory"), len(workload)), MOST_GIB)
    kib = np.rint(gib * KIB_PER_GIB).astype(int).tolist()
    rows = (row._replace(memory=amount) for row, amount in zip(workload.rows(), kib, strict=True))
    return Workload(rows, name=workload.name, provenance=workload.provenance, machine_nodes=workload.machine_nodes)
