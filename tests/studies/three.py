"""Three experiments that the tests run in several ways: ``--set which=map``, ``until`` or ``crossover``."""

from __future__ import annotations

from typing import Any

from clustermodel import (
    ContextSwitch,
    Machine,
    Precision,
    Scenario,
    Study,
    StudyTable,
    TimeSlicing,
    crossover,
    synthetic_workload,
    tradeoff_map,
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
