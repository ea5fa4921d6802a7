"""Does equipartition agree with processor sharing, and on four nodes with Downey's speedup with its Markov chain?

All jobs are malleable between one node and all of them, resizes cost nothing, and arrivals are Poisson.

* ``16 nodes, linear``: exponential run times.  With a linear speedup equipartition is M/M/1 under processor sharing, whose mean
  response is that of M/M/1 in any order that idles no node, whatever the shares: jobs beyond 16 may wait.
* ``256 nodes, linear``: hyperexponential run times, M/G/1 under processor sharing (Kleinrock 1976).  It holds as far as shares
  are equal and no job waits: five jobs have 51 or 52 nodes each, and there are never 256.
* ``4 nodes, Downey``: exponential work, a speedup of 2.9 on four nodes (Downey 1997, sigma = 1), and the birth-death process of
  :func:`~clustermodel.theory.equipartition_response.equipartition_mean_response`.

A control variate is the mean response of the same jobs under processor sharing, computed directly, on one server as fast as all
nodes with a job each: so equipartition is compared with processor sharing of the same jobs, whose mean is E[S] / (1 - rho).

    clustermodel validate scenarios/validation/equipartition.py --out results --set jobs=500 --set loads=0.5,0.8
"""

from queueing_models import MEAN_S, SHAPES, column, mean_response_s, middle, model_jobs

from clustermodel import DowneySpeedup, LinearSpeedup, Machine, Result, Scenario, Speedup, Validation, validate
from clustermodel.theory.equipartition_response import equipartition_mean_response
from clustermodel.theory.processor_sharing import mg1_ps_mean_response, processor_sharing_responses

DOWNEY = DowneySpeedup()
MACHINES: dict[str, tuple[int, str, Speedup]] = {
    "16 nodes, linear": (16, "exponential", LinearSpeedup()),
    "256 nodes, linear": (256, "hyperexponential", LinearSpeedup()),
    "4 nodes, Downey": (4, "exponential", DOWNEY),
}
"""Nodes, distribution of run times, speedup."""


def speedups(nodes: int, speedup: Speedup) -> list[float]:
    """Return S(1), ..., S(c)."""
    return [DOWNEY.speedup(n, nodes) if speedup is DOWNEY else float(n) for n in range(1, nodes + 1)]


def efficiency(machine: str) -> float:
    """Return S(c) / c: how fast a job is on all nodes, against as many jobs of one node each."""
    nodes, _, speedup = MACHINES[machine]
    return speedups(nodes, speedup)[-1] / nodes


def rate(machine: str, load: float) -> float:
    """Return the arrival rate at a load, of which 1 is what the nodes can do if each runs a job of its own, jobs per second."""
    return load / (MEAN_S * efficiency(machine))


def formula(machine: str, load: float) -> float | None:
    nodes, shape, speedup = MACHINES[machine]
    if shape == "hyperexponential":
        return mg1_ps_mean_response(rate(machine, load), MEAN_S) if load <= 0.5 else None  # the more jobs, the less equal
    speeds = speedups(nodes, speedup)
    return equipartition_mean_response(rate(machine, load), MEAN_S * speeds[-1], speeds)


def shared(result: Result) -> float:
    """Return the control variate; estimates are exact, and run times are those on other numbers of nodes."""
    machine = next(name for name, (nodes, _, _) in MACHINES.items() if nodes == result.machine.nodes)
    submit, run = (column(result, name) for name in ("submit_s", "estimate_s"))
    return float(middle(processor_sharing_responses(submit, run * efficiency(machine), 1)).mean())


def mean_shared(machine: str, load: float) -> float:
    mean = MEAN_S * efficiency(machine)
    return mg1_ps_mean_response(load / mean, mean)


def study(
    jobs: int = 2_000,
    at_most: int = 80,
    machines: tuple[str, ...] = tuple(MACHINES),
    loads: tuple[float, ...] = (0.5, 0.8, 0.9),
) -> Validation:
    def scenario(machine: str, load: float, seed: int) -> Scenario:
        nodes, shape, speedup = MACHINES[machine]
        stream = f"equipartition: {machine}, {load}"
        of_all = model_jobs(
            jobs=jobs, seed=seed, stream=stream, run_s=SHAPES[shape], per_s=rate(machine, load), sizes={nodes: 1.0}
        )
        return Scenario(
            machine=Machine(nodes=nodes, resize_s=0.0),
            workload=of_all.with_malleable(),
            policy="equipartition",
            speedup=speedup,
            seed=seed,
        )

    return validate(
        formula,
        scenario=scenario,
        factors={"machine": machines, "load": loads},
        measure=mean_response_s,
        margin=0.01,
        replications=20,
        at_most=max(at_most, 20),
        controls={"processor sharing": (shared, mean_shared)},
        name="Equipartition: mean response",
    )
