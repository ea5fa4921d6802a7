"""Measures of an experiment that its table does not have by itself: fairness by size of jobs, and jobs delayed for long."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from clustermodel.experiment.design import Measure
from clustermodel.experiment.result import Result
from clustermodel.measure.fairness import delays_by_later_jobs

if TYPE_CHECKING:
    import pandas as pd

GROUPS: Final = ("wide", "narrow")
"""Jobs of more than a quarter of the machine, and the others (Yuan et al. 2010, section 5.2)."""


def fairness_measure(name: str) -> Measure:
    """Return a measure: a column of :meth:`Result.fairness <clustermodel.experiment.result.Result.fairness>`.

    Args:
        name: of the column, for all jobs; ``"wide_"`` or ``"narrow_"`` before it chooses a group, as in ``"wide_blocked"``.
    """
    group, _, column = name.partition("_")
    return partial(_fairness, group=group, column=column) if group in GROUPS else partial(_fairness, group="all", column=name)


def delayed_measure(*, over_s: float = 0.0, only_with_idle_nodes: bool = True) -> Measure:
    """Return a measure: the number of jobs that lower-priority jobs delay by more than ``over_s`` seconds.

    Args:
        over_s: seconds.
        only_with_idle_nodes: as for :func:`~clustermodel.measure.fairness.delays_by_later_jobs`.
    """
    return partial(_delayed, over_s=over_s, only_with_idle_nodes=only_with_idle_nodes)


def _fairness(result: Result, group: str, column: str) -> float:
    return float(_table(result)[column].loc[group])


@lru_cache(maxsize=1)
def _table(result: Result) -> pd.DataFrame:
    """Return the table of a run, whose measures are taken one after the other."""
    return result.fairness()


def _delayed(result: Result, over_s: float, only_with_idle_nodes: bool) -> float:
    delays_s = delays_by_later_jobs(result.records, result.machine.nodes, only_with_idle_nodes=only_with_idle_nodes)
    return float((delays_s > over_s).sum())
