from clustermodel import Cycle, JobStream, Lognormal, Machine, Poisson, Scenario, Study, merge

interactive = JobStream(arrivals=Cycle(Poisson(per_hour=60)), nodes={1: 0.5, 4: 0.5}, run_s=Lognormal(mean=300, cv=2))
batch = JobStream(arrivals=Poisson(per_hour=6), nodes={64: 0.8, 256: 0.2}, run_s=Lognormal(mean=7200, cv=1.5))


def scenario(policy, seed):
    jobs = merge(interactive=interactive, batch=batch).generate(days=7, seed=seed, load=0.8, machine_nodes=512)
    return Scenario(machine=Machine(nodes=512), workload=jobs, policy=policy, seed=seed)


study = Study(
    name="two user classes on 512 nodes",
    factors={"policy": ["fcfs", "easy", "bgs", "mbgs"]},
    scenario=scenario,
    measures={
        "interactive_response_s": lambda result: result.by_stream().loc["interactive", "mean_response_s"],
        "batch_response_s": lambda result: result.by_stream().loc["batch", "mean_response_s"],
    },
    replications=10,
)
table = study.run("results")
print(table)
table.plot.bars(y=["interactive_response_s", "batch_response_s"], share_y=False).savefig("classes.png")
