from clustermodel import Cycle, JobStream, Lognormal, Machine
from clustermodel import Poisson, Scenario, Study, merge

short, long = Lognormal(mean=300, cv=2), Lognormal(mean=7200, cv=1.5)
by_day, steady = Cycle(Poisson(per_hour=60)), Poisson(per_hour=6)
interactive = JobStream(arrivals=by_day, nodes={1: 0.5, 4: 0.5}, run_s=short)
batch = JobStream(arrivals=steady, nodes={64: 0.8, 256: 0.2}, run_s=long)
streams = merge(interactive=interactive, batch=batch)


def response_s(stream):
    return lambda result: result.by_stream().loc[stream, "mean_response_s"]


def scenario(policy, seed):
    jobs = streams.generate(days=7, seed=seed, load=0.8, machine_nodes=512)
    return Scenario(machine=Machine(nodes=512), workload=jobs, policy=policy)


study = Study(
    name="two user classes on 512 nodes",
    factors={"policy": ["fcfs", "easy", "bgs", "mbgs"]},
    scenario=scenario,
    measures={
        "interactive_response_s": response_s("interactive"),
        "batch_response_s": response_s("batch"),
    },
    replications=10,
)
table = study.run("results")
print(table)
responses = ["interactive_response_s", "batch_response_s"]
figure = table.plot.bars(y=responses, share_y=False)
figure.savefig("classes.png")
