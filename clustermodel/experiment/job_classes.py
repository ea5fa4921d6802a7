"""Classes of jobs in an experiment: a measure for each class, and tables and figures with a row for each class.

An experiment's table has one row for each trial, so each class has columns of its own: :func:`class_measures`.  Tables and
figures that compare the classes need a row for each: :func:`by_class`.  Most classes are ranges of columns of the job table:
:func:`by_bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Final

from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.design import Measure
from clustermodel.experiment.factors import Label
from clustermodel.experiment.measure_table import Scaled
from clustermodel.experiment.result import Result
from clustermodel.experiment.study_table import StudyTable
from clustermodel.measure.metrics import LARGE_ABOVE_NODES

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

Classify = Callable[[Result], "npt.ArrayLike"]
"""A function that returns the class of each job of a run, in the order of its job table, shape ``(jobs,)``."""
Bounds = Mapping[str, float]
"""Classes in ascending order, each with the largest value that belongs to it."""
SIZES: Final[Bounds] = {"small": LARGE_ABOVE_NODES, "large": inf}
"""Small jobs have up to 32 nodes (Zhang et al. 2003, section 5.3)."""


def by_bounds(**columns: Bounds) -> Classify:
    """Return a function that classifies jobs by the ranges in which columns of the job table are.

    >>> from clustermodel.experiment.job_classes import by_bounds
    >>> lengths = {"short": 600, "long": float("inf")}
    >>> sizes = {"sequential": 1, "parallel": float("inf")}
    >>> classify = by_bounds(run_s=lengths, nodes=sizes)

    Args:
        columns: bounds for each column, in its unit.

    Returns:
        The function.  A class is named after the ranges of its columns, ``"short, parallel"``; a job whose value is missing or
        above the last bound is in class ``"nan"`` of this column.

    Raises:
        SpecificationError: bounds do not ascend.
    """
    for name, bounds in columns.items():
        largest = list(bounds.values())
        if not largest or any(high <= low for low, high in pairwise(largest)):
            raise SpecificationError(f"by_bounds: {name}: {quoted(dict(bounds))} is not allowed; bounds must ascend")
    return partial(_classes, columns=columns)


def _classes(result: Result, columns: Mapping[str, Bounds]) -> npt.ArrayLike:
    import pandas as pd

    cuts = (pd.cut(result.jobs[name], [-inf, *bounds.values()], labels=list(bounds)) for name, bounds in columns.items())
    return [", ".join(labels) for labels in zip(*(map(str, cut) for cut in cuts), strict=True)]


def class_measures(classify: Classify, classes: Iterable[Label], metrics: Mapping[str, str | Scaled]) -> dict[str, Measure]:
    """Return measures of an experiment: metrics of the jobs of each class.

    >>> from clustermodel.experiment.job_classes import class_measures
    >>> classify = lambda result: result.jobs["nodes"] > 8
    >>> list(class_measures(classify, [True, False], {"wait_s, wide {}": "mean_wait_s"}))
    ['wait_s, wide True', 'wait_s, wide False']

    Args:
        classify: returns the class of each job.
        classes: those to measure.
        metrics: columns of :meth:`Result.by_group <clustermodel.experiment.result.Result.by_group>` by the name of the
            measure, in which ``{}`` stands for the class.

    Returns:
        The measures by name, class by class for each metric.  In a run without jobs of a class, their numbers are 0 and other
        measures are missing.
    """
    labels = list(classes)
    return {
        title.format(label): partial(_metric, classify=classify, label=label, metric=metric)
        for title, metric in metrics.items()
        for label in labels
    }


_COUNTS: Final = ("jobs", "rejected", "killed", "aborted")
"""Metrics that are numbers of jobs."""


def _metric(result: Result, classify: Classify, label: Label, metric: str | Scaled) -> float | None:
    name, scale = (metric, 1) if isinstance(metric, str) else (metric.measure, metric.scale)
    found: dict[object, float] = _metrics(result, classify)[name].to_dict()
    if label not in found:
        return 0 if name in _COUNTS else None
    return scale * found[label]


@lru_cache(maxsize=1)
def _metrics(result: Result, classify: Classify) -> pd.DataFrame:
    """Return the metrics of all classes; the measures of a run are taken one after the other."""
    return result.by_group(classify(result))


def by_class(table: StudyTable, factor: str, columns: Mapping[str, Mapping[str, str]]) -> StudyTable:
    """Return a table with a row for each trial and class of jobs.

    Args:
        table: of an experiment.
        factor: the name of the factor whose levels are the classes.
        columns: for each class its columns in the table, by the names that they have for all classes.  A class has no rows
            of the trials in which one of them is missing.

    Returns:
        The table with one factor more.
    """
    import pandas as pd

    parts = []
    for label, of_class in columns.items():
        frame = table.frame.assign(**{factor: label})
        for name, column in of_class.items():
            frame[name] = table.frame[column]
        parts.append(frame.dropna(subset=list(of_class)))
    return StudyTable(pd.concat(parts, ignore_index=True), [*table.factors, factor], table.name)
