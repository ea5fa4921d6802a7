from clustermodel import ContextSwitch, Machine, Scenario
from clustermodel import Study, TimeSlicing, synthetic_workload


def scenario(switch, mpl, seed):
    slices, costs = TimeSlicing(mpl=mpl), ContextSwitch(fraction=switch)
    machine = Machine(nodes=128, time_slicing=slices, context_switch=costs)
    jobs = synthetic_workload(jobs=1000, seed=seed)
    return Scenario(machine=machine, workload=jobs, policy="bgs")


study = Study(
    name="context switch x MPL",
    factors={"switch": [0.0, 0.01, 0.02, 0.05, 0.1], "mpl": [1, 2, 3, 4, 5]},
    scenario=scenario,
    replications=3,
)
figure = study.run().plot.heat_map("mean_bounded_slowdown", x="switch", y="mpl")
figure.savefig("heat.png")
