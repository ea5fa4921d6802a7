"""Classes of jobs in an experiment: a measure for each class, and tables and figures with a row for each class.

An experiment's table has one row for each trial, so each class has columns of its own: :func:`class_measures`.  Tables and
figures that compare the classes need a row for each: :func:`by_class`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from clustermodel.experiment.design import Measure
from clustermodel.experiment.factors import Label
from clustermodel.experiment.measure_table import Scaled
from clustermodel.experiment.result import Result
from clustermodel.experiment.study_table import StudyTable

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

Classify = Callable[[Result], "npt.ArrayLike"]
"""A function that returns the class of each job of a run, in the order of its job table, shape ``(jobs,)``."""


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
        The measures by name, class by class for each metric; a measure is missing in a run without jobs of its class.
    """
    labels = list(classes)
    return {
        title.format(label): partial(_metric, classify=classify, label=label, metric=metric)
        for title, metric in metrics.items()
        for label in labels
    }


def _metric(result: Result, classify: Classify, label: Label, metric: str | Scaled) -> float | None:
    name, scale = (metric, 1) if isinstance(metric, str) else metric
    found: dict[object, float] = _metrics(result, classify)[name].to_dict()
    return scale * found[label] if label in found else None


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
