"""How much longer do jobs wait under a power cap?

The 320 nodes and the workload of Zhang et al. 2003, without its jobs of more than 128 nodes.  Nodes draw 350 W in use and 120 W
otherwise.  The cap is a share of what all nodes draw in use: at 70 % of it little more than half of the nodes may be in use, as
the others are idle and draw 120 W all the same.

    clustermodel sweep scenarios/tradeoffs/power_cap.py --out results
"""

from clustermodel import JobFilter, Machine, Power, Result, Scenario, Study, load_model

POLICIES = ("fcfs", "easy", "conservative", "mbgs")
CAPS = (1.0, 0.9, 0.8, 0.75, 0.7)
NODES = 320
LARGEST = 128  # job: at most as many nodes as may be in use at any cap

LABELS = {"cap": "power cap, share of the power of all nodes busy"}


def cap_wait(result: Result) -> float:
    """Return how long jobs wait on average while enough nodes are idle for them, but for the cap, seconds."""
    return float(result.jobs["power_cap_wait_s"].mean())


def energy_per_job(result: Result) -> float:
    return 1000 * result.energy_kwh / result.summary().jobs


MEASURES = {"power_cap_wait_s": cap_wait, "energy_per_job_wh": energy_per_job}


def study(jobs: int = 1_500, replications: int = 8, busy_w: float = 350, idle_w: float = 120) -> Study:
    def scenario(policy: str, cap: float, seed: int) -> Scenario:
        machine = Machine(nodes=NODES, power=Power(busy_w=busy_w, idle_w=idle_w), power_cap_w=cap * NODES * busy_w)
        workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed).select(JobFilter(nodes=(1, LARGEST)))
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="power cap",
        factors={"policy": list(POLICIES), "cap": list(CAPS)},
        scenario=scenario,
        replications=replications,
        measures=MEASURES,
        shown=(*MEASURES, "mean_wait_s", "mean_bounded_slowdown", "utilization"),
        tables={
            "Mean bounded slowdown": lambda table: table.pivot("mean_bounded_slowdown", columns="cap"),
            "Mean wait (s)": lambda table: table.pivot("mean_wait_s", columns="cap"),
            "Of this, because of the cap (s)": lambda table: table.pivot("power_cap_wait_s", columns="cap"),
            "Energy per job (Wh)": lambda table: table.pivot("energy_per_job_wh", columns="cap"),
        },
        figures={
            "Slowdown under a power cap": lambda table: table.plot.curves(
                x="cap", y="mean_bounded_slowdown", by="policy", log=True, labels=LABELS
            ),
        },
        text=__doc__ or "",
    )
