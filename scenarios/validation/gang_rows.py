"""Does the mean response of gangs of several sizes in few rows agree with the Markov chain of the Ousterhout matrix?

Poisson arrivals at 70 % of the highest throughput, exponential run times, slices of 250 ms without switches.  The states of the
chain are the contents of the matrix, which is rebuilt at each event in the steps of Zhang et al. 2003, section 5.1.  The
response of the same work under processor sharing is a control variate with a known mean.

    clustermodel validate scenarios/validation/gang_rows.py --out results --set jobs=1000
"""

from functools import cache

from queueing_models import mean_response_s, model_jobs, shared_work_response

from clustermodel import Exponential, Machine, Scenario, TimeSlicing, Validation, validate
from clustermodel.theory.gang_rows import gang_rows, gang_saturation
from clustermodel.theory.processor_sharing import mg1_ps_mean_response

MEAN_S, QUANTUM_S, SHARE = 100.0, 0.25, 0.7


Matrix = tuple[int, int, tuple[tuple[int, float], ...]]
"""Nodes, MPL, sizes of the gangs and their probabilities."""
MATRICES: dict[str, Matrix] = {
    "2 nodes, MPL 3, sizes 1, 2": (2, 3, ((1, 0.5), (2, 0.5))),
    "3 nodes, MPL 2, sizes 1, 2, 3": (3, 2, ((1, 0.4), (2, 0.3), (3, 0.3))),
    "4 nodes, MPL 2, sizes 1, 4": (4, 2, ((1, 0.6), (4, 0.4))),
}


@cache
def arrival_rate(policy: str, matrix: Matrix) -> float:
    nodes, mpl, shares = matrix
    return SHARE * gang_saturation(nodes, mpl, dict(shares), MEAN_S, migration=policy == "mgs").throughput


def formula(policy: str, matrix: Matrix) -> float | None:
    """Return the mean response, seconds; migration is known for jobs of one node and of all nodes only."""
    nodes, mpl, shares = matrix
    sizes, migration = dict(shares), policy == "mgs"
    if migration and set(sizes) != {1, nodes}:
        return None
    return gang_rows(nodes, mpl, sizes, arrival_rate(policy, matrix), MEAN_S, migration=migration).mean_response_s


def shared_mean(policy: str, matrix: Matrix) -> float:
    nodes, _, shares = matrix
    work_s = MEAN_S * sum(size * share for size, share in shares) / nodes
    return mg1_ps_mean_response(arrival_rate(policy, matrix), work_s)


def study(jobs: int = 6_000, at_most: int = 160) -> Validation:
    def scenario(policy: str, matrix: Matrix, seed: int) -> Scenario:
        nodes, mpl, shares = matrix
        stream, rate = f"gangs in rows: {policy}, {nodes}, {mpl}", arrival_rate(policy, matrix)
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=Exponential(MEAN_S), per_s=rate, sizes=dict(shares))
        machine = Machine(nodes=nodes, time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=mpl))
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"policy": ["gs", "mgs"], "matrix": MATRICES},
        measure=mean_response_s,
        margin=0.03,
        replications=20,
        at_most=max(at_most, 20),
        controls={"processor sharing": (shared_work_response, shared_mean)},
        name="Gangs of several sizes: mean response",
    )
