"""Jobs that wait for other jobs: none may, in the end, wait for itself."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError
from clustermodel.workload.job import UNSET

Singletons = Mapping[int, tuple[tuple[str, str], bool]]
"""In order of submission, user and name of jobs of which some wait for all before them, by number, and whether the job does."""


def require_an_order(ids: IntArray, preceding: IntArray) -> None:
    """Refuse jobs of which each waits for another one, so that none would ever be submitted."""
    order, none = np.argsort(ids), len(ids)
    before = np.where(preceding == UNSET, none, order[np.searchsorted(ids, preceding, sorter=order).clip(max=none - 1)])
    ancestor = np.append(before, none)
    for _ in range(len(ids).bit_length()):  # each step doubles how far an ancestor is away
        ancestor = ancestor[ancestor]
    if (circular := np.flatnonzero(ancestor[:-1] != none)).size:
        raise SpecificationError(
            f"preceding: job {ids[circular[0]]} would wait for itself, through the jobs before it; "
            "each chain of preceding jobs must begin with a job that has none"
        )


def require_no_circle(dependencies: IntArray, singletons: Singletons = MappingProxyType({})) -> None:
    """Refuse jobs of which each waits for another one, so that none would ever start."""
    graph: dict[Any, list[Any]] = {}
    for job, _, other in dependencies.tolist():
        graph.setdefault(job, []).append(other)
    until: dict[tuple[str, str], str] = {}  # user and name -> what stands for all their jobs so far
    for job, (group, alone) in singletons.items():
        so_far = [until[group]] if group in until else []
        if alone:
            graph.setdefault(job, []).extend(so_far)
        until[group] = f"until {job}"
        graph[until[group]] = [job, *so_far]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        jobs = ", ".join(str(job) for job in problem.args[1] if not isinstance(job, str))
        raise SpecificationError(
            f"dependencies: jobs {jobs} wait for each other; a chain of jobs must begin somewhere"
        ) from None
