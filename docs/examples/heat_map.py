from clustermodel import ContextSwitch, Machine, Scenario, Study, TimeSlicing, synthetic_workload


def scenario(switch, mpl, seed):
    machine = Machine(nodes=128, time_slicing=TimeSlicing(mpl=mpl), context_switch=ContextSwitch(fraction=switch))
    return Scenario(machine=machine, workload=synthetic_workload(jobs=1000, seed=seed), policy="bgs", seed=seed)


study = Study(
    name="context switch x MPL",
    factors={"switch": [0.0, 0.01, 0.02, 0.05, 0.1], "mpl": [1, 2, 3, 4, 5]},
    scenario=scenario,
    replications=3,
)
study.run().plot.heat_map("mean_bounded_slowdown", x="switch", y="mpl").savefig("heat.png")
