"""Does equipartition agree with processor sharing, and on four nodes with Downey's speedup with its Markov chain?

All jobs are malleable between one node and all of them, resizes cost nothing, and arrivals are Poisson.

* ``8 nodes, linear``: exponential run times.  With a linear speedup equipartition is M/M/1 under processor sharing, whose mean
  response is that of M/M/1 in any order that idles no node, whatever the shares: jobs beyond 8 may wait.
* ``128 nodes, linear``: hyperexponential run times, M/G/1 under processor sharing (Kleinrock 1976).  It holds as far as shares
  are equal and no job waits: five jobs have 25 or 26 nodes each, and there are never 128.
* ``4 nodes, Downey``: exponential work, a speedup of 2.9 on four nodes (Downey 1997, sigma = 1), and the birth-death process of
  :func:`~clustermodel.theory.equipartition.equipartition_mean_response`.

A control variate is the mean response of the same jobs in order of arrival on one server, of which the mean is known from
Pollaczek and Khinchine: it takes out most of the variance, and has nothing to do with shares.

    clustermodel validate scenarios/validation/equipartition.py --out results --set jobs=2000 --set loads=0.5,0.8
"""

from queueing_models import HYPEREXPONENTIAL, MEAN_S, SHAPES, in_turn_response, mean_response, model_jobs

from clustermodel import DowneySpeedup, LinearSpeedup, Machine, Result, Scenario, Speedup, Validation, validate
from clustermodel.theory.equipartition import equipartition_mean_response
from clustermodel.theory.processor_sharing import mg1_ps_mean_response
from clustermodel.theory.queueing import mg1_mean_wait

DOWNEY = DowneySpeedup()
MACHINES: dict[str, tuple[int, str, Speedup]] = {
    "8 nodes, linear": (8, "exponential", LinearSpeedup()),
    "128 nodes, linear": (128, "hyperexponential", LinearSpeedup()),
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
        return mg1_ps_mean_response(rate(machine, load), MEAN_S) if load < 0.9 else None  # too many resizes
    speeds = speedups(nodes, speedup)
    return equipartition_mean_response(rate(machine, load), MEAN_S * speeds[-1], speeds)


def in_turn(result: Result) -> float:
    """Return the control variate, on a server as fast as all nodes with a job each."""
    return in_turn_response(
        result, 1 / efficiency(next(name for name in MACHINES if MACHINES[name][0] == result.machine.nodes))
    )


def mean_in_turn(machine: str, load: float) -> float:
    mean, cv = MEAN_S * efficiency(machine), HYPEREXPONENTIAL.cv if MACHINES[machine][1] == "hyperexponential" else 1.0
    return mean + mg1_mean_wait(load / mean, mean, (cv * mean) ** 2)


def study(
    jobs: int = 20_000,
    at_most: int = 320,
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
        measure=mean_response,
        margin=0.01,
        replications=20,
        at_most=max(at_most, 20),
        controls={"in order of arrival": (in_turn, mean_in_turn)},
        name="Equipartition: mean response",
    )
