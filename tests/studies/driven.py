"""Experiments whose runs are numbers: the loop of the executor without simulations."""

from collections.abc import Callable
from typing import Any

from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.study import Experiment
from clustermodel.experiment.study_table import StudyTable

Value = Callable[[dict[str, Label], int], float | None]
"""The measure of a point in the replication with this seed."""


def driven(experiment: Experiment[Any], measure: str, value: Value) -> StudyTable:
    """Return the table of an experiment whose trials have these values, when it asks for no more trials."""
    names = experiment.levels.names
    done: dict[Trial, dict[str, Any]] = {}
    table = experiment.first_table()
    while missing := [trial for trial in experiment.trials(table) if trial not in done]:
        for trial in missing:
            levels, seed = dict(zip(names, trial.point, strict=True)), experiment.seed + trial.replication - 1
            row = {"run": str(trial), **levels, "replication": trial.replication, "seed": seed}
            done[trial] = {**row, measure: value(levels, seed)}
        rows = [done[trial] for trial in sorted(done, key=experiment.order_of)]
        table = StudyTable(rows, names, experiment.name)
    return table
