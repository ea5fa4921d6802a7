"""At which cost of a resize does admission by shrinking stop paying on KTH-SP2?

As in ``cost.py``: twelve periods of four weeks, all jobs malleable.  The search narrows down the cost at which
the mean response of ``policy`` exceeds that of EASY, by the mean of its logarithm.

    clustermodel sweep scenarios/tradeoffs/resizing/crossing.py --out results --set policy=equipartition
"""

from pathlib import Path

from malleable_weeks import NODES, SPEEDUP, TRACE, log10_response, malleable_weeks

from clustermodel import Machine, Scenario, crossover
from clustermodel.experiment.crossover import CrossoverStudy


def study(trace: Path = TRACE, weeks: int = 4, replications: int = 12, policy: str = "shrink-to-admit") -> CrossoverStudy:
    """Return the search; ``trace`` is the file of KTH-SP2."""

    def scenario(cost_s: float, policy: str, seed: int) -> Scenario:
        machine = Machine(nodes=NODES, resize_s=cost_s)
        return Scenario(
            machine=machine, workload=malleable_weeks(trace, weeks, seed), policy=policy, speedup=SPEEDUP, seed=seed
        )

    return crossover(
        scenario,
        "cost_s",
        0,
        3600,
        [policy, "easy"],
        "log10_response",
        step=60,
        measures={"log10_response": log10_response},
        replications=replications,
        name="crossing of the cost of a resize",
    )
