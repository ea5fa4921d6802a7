"""Experiments that the tests run in several ways: ``--set which=map``, ``until``, ``crossover`` or ``validation``."""

from __future__ import annotations

from typing import Any

import numpy as np

from clustermodel import (
    ContextSwitch,
    Job,
    Machine,
    Precision,
    Scenario,
    Study,
    StudyTable,
    TimeSlicing,
    Workload,
    crossover,
    synthetic_workload,
    tradeoff_map,
    validate,
)
from clustermodel.experiment.study import Experiment


def sliced(fraction: float, mpl: int, policy: str, seed: int) -> Scenario | None:
    """Return gang scheduling or backfilling on a small machine; 5 rows without context-switch cost make no sense here."""
    if mpl == 5 and fraction == 0:
        return None
    slicing = TimeSlicing(quantum_s=200, mpl=mpl)
    return Scenario(
        machine=Machine(nodes=16, time_slicing=slicing, context_switch=ContextSwitch(fraction=fraction, charge="every-slice")),
        workload=synthetic_workload(jobs=40, nodes=16, load=0.8, seed=seed),
        policy=policy,
        seed=seed,
    )


def drawn(error: float, seed: int) -> Scenario:
    """Return jobs that start at once; run times of 100 s on average are drawn anew for each level of ``error``."""
    run_s = np.random.default_rng([seed, round(1000 * error)]).uniform(90, 110, 40)
    jobs = [Job(id=number, submit_s=0, nodes=1, run_s=time) for number, time in enumerate(run_s)]
    return Scenario(machine=Machine(nodes=40), workload=Workload.from_jobs(jobs), policy="fcfs")


def study(which: str = "map") -> Experiment[Any]:
    """Return one of the experiments."""
    if which == "map":
        return tradeoff_map(
            sliced, {"fraction": [0.0, 0.5], "mpl": [2, 5]}, ["gs", "bf"], "mean_response_s", replications=3, figures={}
        )
    if which == "until":
        until = Precision(measure="utilization", relative=0.1, at_least=3, at_most=12)
        return Study(
            name="until", factors={"fraction": [0.1], "mpl": [2, 3], "policy": ["gs", "bf"]}, scenario=sliced, until=until
        )
    if which == "validation":
        return validate(
            lambda error: 100 * (1 + error),
            scenario=drawn,
            factors={"error": [0.0, 0.05]},
            measure="mean_response_s",
            margin=0.004,
            replications=5,
            at_most=80,
        )
    return crossover(
        lambda fraction, policy, seed: sliced(fraction, 4, policy, seed),
        "fraction",
        0.0,
        0.8,
        ["gs", "bf"],
        step=0.05,
        replications=3,
        tables={"means": lambda table: table.means("mean_bounded_slowdown")},
    )


def numbers(table: StudyTable) -> list[dict[str, Any]]:
    """Return all cells of a table."""
    return table.frame.to_dict("records")  # type: ignore[return-value]
