"""How long should a time slice be?

Short slices let short jobs through sooner, long slices pay for fewer context switches.  A machine of 320 nodes under BGS with
MPL 5, slices of 10 to 1,000 s, and context switches of 0 to 20 s; the workload of Zhang et al. 2003 at 1.5 times its run times.
A context switch that is longer than half a slice is left out.

    clustermodel sweep scenarios/tradeoffs/slice_length.py --out results
"""

from typing import Any

from clustermodel import ContextSwitch, Machine, Scenario, Study, TimeSlicing, load_model

MEASURES = ("mean_bounded_slowdown", "mean_response_s", "utilization", "context_switch_share")
LABELS = {
    "quantum_s": "slice (s)",
    "switch_s": "cost of a context switch (s)",
    "context_switch_share": "context switches, share of capacity",
}
PLANE: dict[str, Any] = {"x": "quantum_s", "y": "switch_s", "labels": LABELS}


def study(jobs: int = 3_000, replications: int = 10, policy: str = "bgs", run_time_factor: float = 1.5) -> Study:
    def scenario(quantum_s: float, switch_s: float, seed: int) -> Scenario | None:
        if switch_s > quantum_s / 2:
            return None
        slices, switch = TimeSlicing(quantum_s=quantum_s, mpl=5), ContextSwitch(seconds=switch_s)
        machine = Machine(nodes=320, time_slicing=slices, context_switch=switch)
        workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=run_time_factor)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="slice length x context switch",
        factors={"quantum_s": [10, 30, 100, 300, 1_000], "switch_s": [0, 1, 5, 20]},
        scenario=scenario,
        replications=replications,
        shown=MEASURES,
        tables={
            "Mean bounded slowdown": lambda table: table.pivot("mean_bounded_slowdown", columns="switch_s"),
            "Slice with the lowest slowdown": lambda table: table.lowest("mean_bounded_slowdown", of="quantum_s"),
        },
        figures={
            "Mean bounded slowdown": lambda table: table.plot.heat_map("mean_bounded_slowdown", log=True, **PLANE),
            "Share of node time spent on switches": lambda table: table.plot.heat_map(
                "context_switch_share", log=True, **PLANE
            ),
        },
    )
