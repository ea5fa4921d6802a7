"""How expensive can a migration be, and how many tasks must be able to migrate at once, for migration to pay?

Zhang et al. 2003, section 5.4, asks for the cost C at which migration stops paying, with at most Q tasks migrating in a slice.
Here both vary: C from 0 to 300 s, half of it for the checkpoint and half for the restart, and Q from 10 tasks to no limit; MBGS
against BGS, MPL 5, slices of 200 s, the paper's workload at 1.5 times its run times.

    clustermodel sweep scenarios/tradeoffs/migration_cost.py --out results
"""

from clustermodel import Checkpointing, ContextSwitch, Machine, Scenario, Study, TimeSlicing, load_model, tradeoff_map


def study(jobs: int = 3_000, replications: int = 10, run_time_factor: float = 1.5) -> Study:
    def scenario(cost_s: float, tasks: int | None, policy: str, seed: int) -> Scenario:
        slices, switch = TimeSlicing(quantum_s=200, mpl=5), ContextSwitch(fraction=0.01)
        saving = Checkpointing(checkpoint_s=cost_s / 2, restart_s=cost_s / 2, max_tasks_per_slice=tasks)
        machine = Machine(nodes=320, time_slicing=slices, context_switch=switch, checkpointing=saving)
        workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=run_time_factor)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return tradeoff_map(
        scenario,
        {"cost_s": [0, 30, 60, 120, 300], "tasks": {"10": 10, "50": 50, "320": 320, "no limit": None}},
        ["bgs", "mbgs"],
        "mean_bounded_slowdown",
        labels={"cost_s": "cost of a migration (s)", "tasks": "tasks that may migrate in a slice"},
        replications=replications,
        name="cost of migration x tasks that migrate",
        shown=("mean_bounded_slowdown", "mean_response_s", "kappa", "checkpoint_share", "restart_share", "blocked_share"),
    )
