"""How expensive can a resize be: does the mean response of jobs that grow when others end agree with a balance equation?

Pairs of jobs begin together on two nodes, each on one, with exponential run times of 100 s.  When the first completes, the
other grows to both nodes at a cost d, under ``equipartition``: always (``min_gain=-inf``), or if it then ends earlier, which it
knows from its exact estimate.  On both nodes a job is 1.6 times as fast (Downey 1997, average parallelism 2, sigma = 1).
With always growing, the mean response is that without resizes, 100 s, where d = 100 s (1 - 1 / 1.6) = 37.5 s.

    clustermodel validate scenarios/validation/resize_cost.py --out results --set pairs=500
"""

from queueing_models import MEAN_S, mean_response_s, mean_run_by_estimate

from clustermodel import DowneySpeedup, Exponential, JobRow, Machine, Scenario, Validation, Workload, validate
from clustermodel.experiment.scenario import random_stream
from clustermodel.theory.equipartition_response import pair_mean_response
from clustermodel.ticks import to_ticks

SPEEDUP = DowneySpeedup(parallelism=2.0)
MIN_GAIN = {"always": "-inf", "if it pays": "0"}
APART_S = 40 * MEAN_S
"""Time between two pairs: a pair has ended before, but for one in e^40."""


def formula(grows: str, cost_s: float) -> float:
    return pair_mean_response(MEAN_S, SPEEDUP.speedup(2, 2.0), cost_s, grows=grows)


def study(pairs: int = 3_000, at_most: int = 160, costs_s: tuple[float, ...] = (0.0, 20.0, 37.5, 60.0)) -> Validation:
    def scenario(grows: str, cost_s: float, seed: int) -> Scenario:
        rng = random_stream(seed, f"pairs of jobs: {grows}, {cost_s}")
        run = [max(to_ticks(run_s), 1) for run_s in Exponential(MEAN_S).sample(rng, 2 * pairs).tolist()]
        rows = [JobRow(n // 2 * to_ticks(APART_S), n, 1, run[n], run[n], -1, -1, 0, -1) for n in range(2 * pairs)]
        return Scenario(
            machine=Machine(nodes=2, resize_s=cost_s),
            workload=Workload(rows).with_malleable(),
            policy=f"equipartition:min_gain={MIN_GAIN[grows]}",
            speedup=SPEEDUP,
            seed=seed,
        )

    return validate(
        formula,
        scenario=scenario,
        factors={"grows": tuple(MIN_GAIN), "cost_s": costs_s},
        measure=mean_response_s,
        margin=0.01,
        replications=20,
        at_most=max(at_most, 20),
        controls={"mean run": (mean_run_by_estimate, MEAN_S)},
        name="Growing at a cost: mean response",
    )
