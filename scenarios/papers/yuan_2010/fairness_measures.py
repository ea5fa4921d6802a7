"""Measures of the fairness of a run: of all jobs, of wide and of narrow ones, and of jobs delayed for long."""

from functools import lru_cache, partial
from typing import Final

import pandas as pd

from clustermodel import Result, delays_by_later_jobs
from clustermodel.experiment.design import Measure

GROUPS: Final = ("wide", "narrow")
"""Jobs of more than a quarter of the machine, and the others (section 5.2)."""


def fairness_measure(name: str) -> Measure:
    """Return a column of ``Result.fairness`` as a measure; ``"wide_"`` or ``"narrow_"`` before its name chooses a group."""
    group, _, column = name.partition("_")
    return partial(_fairness, group=group, column=column) if group in GROUPS else partial(_fairness, group="all", column=name)


def delayed_measure(*, over_s: float = 0.0, only_with_idle_nodes: bool = True) -> Measure:
    """Return the number of jobs that lower-priority jobs delay by more than ``over_s`` seconds as a measure."""
    return partial(_delayed, over_s=over_s, only_with_idle_nodes=only_with_idle_nodes)


def _fairness(result: Result, group: str, column: str) -> float:
    return float(_table(result)[column].loc[group])


@lru_cache(maxsize=1)
def _table(result: Result) -> pd.DataFrame:
    return result.fairness()


def _delayed(result: Result, over_s: float, only_with_idle_nodes: bool) -> float:
    delays_s = delays_by_later_jobs(result.records, result.machine.nodes, only_with_idle_nodes=only_with_idle_nodes)
    return float((delays_s > over_s).sum())
