"""Experiments that the tests run in several ways: ``--set which=map``, ``until``, ``crossover`` or ``validation``."""

from typing import Any

import numpy as np

import clustermodel as cm
from clustermodel.experiment.study import Experiment


def sliced(fraction: float, mpl: int, policy: str, seed: int) -> cm.Scenario | None:
    """Return gang scheduling or backfilling on a small machine; 5 rows without context-switch cost make no sense here."""
    if mpl == 5 and fraction == 0:
        return None
    slicing = cm.TimeSlicing(quantum_s=200, mpl=mpl)
    return cm.Scenario(
        machine=cm.Machine(
            nodes=16, time_slicing=slicing, context_switch=cm.ContextSwitch(fraction=fraction, charge="every-slice")
        ),
        workload=cm.synthetic_workload(jobs=40, nodes=16, load=0.8, seed=seed),
        policy=policy,
        seed=seed,
    )


def drawn(error: float, seed: int) -> cm.Scenario:
    """Return jobs that start at once; run times of 100 s on average are drawn anew for each level of ``error``."""
    run_s = np.random.default_rng([seed, round(1000 * error)]).uniform(90, 110, 40)
    jobs = [cm.Job(id=number, submit_s=0, nodes=1, run_s=time) for number, time in enumerate(run_s)]
    return cm.Scenario(machine=cm.Machine(nodes=40), workload=cm.Workload.from_jobs(jobs), policy="fcfs")


def study(which: str = "map") -> Experiment[Any]:
    """Return one of the experiments."""
    if which == "map":
        return cm.tradeoff_map(
            sliced, {"fraction": [0.0, 0.5], "mpl": [2, 5]}, ["gs", "bf"], "mean_response_s", replications=3, figures={}
        )
    if which == "until":
        until = cm.Precision(measure="utilization", relative=0.1, at_least=3, at_most=12)
        return cm.Study(
            name="until", factors={"fraction": [0.1], "mpl": [2, 3], "policy": ["gs", "bf"]}, scenario=sliced, until=until
        )
    if which == "validation":
        return cm.validate(
            lambda error: 100 * (1 + error),
            scenario=drawn,
            factors={"error": [0.0, 0.05]},
            measure="mean_response_s",
            margin=0.004,
            replications=5,
            at_most=80,
        )
    return cm.crossover(
        lambda fraction, policy, seed: sliced(fraction, 4, policy, seed),
        "fraction",
        0.0,
        0.8,
        ["gs", "bf"],
        step=0.05,
        replications=3,
        tables={"means": lambda table: table.means("mean_bounded_slowdown")},
    )


def numbers(table: cm.StudyTable) -> list[dict[str, Any]]:
    """Return all cells of a table."""
    return table.frame.to_dict("records")  # type: ignore[return-value]
