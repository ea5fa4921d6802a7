"""Measures of an experiment that say what its jobs are like, whatever schedules them."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.experiment.design import Measure
from clustermodel.experiment.result import Result
from clustermodel.validation import choice

FACTS: Final = ("nodes", "run_s", "estimate_s", "overestimation")
"""Size, run time and estimate as recorded, and estimate / run time."""
STATISTICS: Final = ("mean", "median")


def job_fact(name: str, statistic: str = "mean") -> Measure:
    """Return a measure: the mean or the median of a fact over the jobs that have run.

    Args:
        name: one of :data:`FACTS`.
        statistic: one of ``STATISTICS``.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    fact, chosen = choice("job_fact: name", name, FACTS), choice("job_fact: statistic", statistic, STATISTICS)
    return partial(_fact, name=fact, statistic=chosen)


def _fact(result: Result, name: str, statistic: str) -> float:
    values = _values(result, name)[result.records.finished]
    return float(np.mean(values) if statistic == "mean" else np.median(values))


def _values(result: Result, name: str) -> FloatArray:
    records = result.records
    if name == "nodes":
        nodes: FloatArray = records.column("nodes").astype(float)
        return nodes
    if name == "overestimation":
        return _values(result, "estimate_s") / _values(result, "run_s")
    return records.seconds(name.removesuffix("_s"))
