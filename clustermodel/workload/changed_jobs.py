"""What if the jobs were different: exact estimates for some, urgent ones or others among them, another load."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from zlib import crc32

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError
from clustermodel.job import JobRow
from clustermodel.validation import require_number, require_whole, share
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import LoadScale


def with_exact_estimates(workload: Workload, which: npt.ArrayLike) -> Workload:
    """Return the jobs with exact estimates for some of them.

    Args:
        workload: any.
        which: the jobs whose estimates become their run times, truth values of shape ``(jobs,)``.

    Raises:
        SpecificationError: there is not one truth value for each job.
    """
    chosen = np.asarray(which, dtype=bool)
    if chosen.shape != (len(workload),):
        raise SpecificationError(
            f"with_exact_estimates: which has shape {chosen.shape}; it must have a value for each of {len(workload):,} jobs"
        )
    pairs = zip(workload.rows(), chosen.tolist(), strict=True)
    return _with_rows(workload, [row._replace(estimate=row.run) if change else row for row, change in pairs])


@lru_cache(maxsize=2)
def with_urgent_jobs(workload: Workload, probability: float, seed: int) -> Workload:
    """Return the jobs, of which a random share has priority 1 and the others 0.

    The last workloads are kept, so that the trials of a study do not draw them again.

    Args:
        workload: any.
        probability: that a job is urgent, in [0, 1].
        seed: of the random numbers; the same jobs are urgent for the same seed and number of jobs.

    Raises:
        SpecificationError: an argument is out of range.
    """
    probability, seed = share("probability", probability), require_whole("seed", seed, at_least=0)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(b"urgent jobs"),)))
    urgent = (rng.random(len(workload)) < probability).tolist()
    return _with_rows(workload, [row._replace(priority=int(first)) for row, first in zip(workload.rows(), urgent, strict=True)])


@lru_cache(maxsize=2)
def at_load_of(workload: Workload, nodes: int, other_nodes: int) -> Workload:
    """Return the jobs, submitted so much faster or slower that another machine has the load of the original one.

    Jobs that a machine cannot hold, which it rejects, do not count in its load.

    Args:
        workload: any.
        nodes: size of the original machine.
        other_nodes: size of the other machine.

    Raises:
        SpecificationError: a machine can hold none of the jobs.
    """
    size, run_s = workload.column("nodes"), np.minimum(workload.seconds("run"), workload.seconds("estimate"))
    for machine in (nodes, other_nodes):
        if not (size <= machine).any():
            raise SpecificationError(f"at_load_of: a machine of {machine} nodes can hold none of the jobs")
    old, new = (float((size * run_s)[size <= machine].sum()) / machine for machine in (nodes, other_nodes))
    return workload.scaled(LoadScale(interarrival=new / old))


def at_load(workload: Workload, load: float, nodes: int) -> Workload:
    """Return the jobs, submitted so much faster or slower that they offer a machine this load.

    Args:
        workload: jobs that are not all submitted at once.
        load: the offered load, as :meth:`Workload.offered_load <clustermodel.workload.table.Workload.offered_load>`, above 0.
        nodes: size of the machine.

    Raises:
        SpecificationError: the load is not a number > 0, or all jobs are submitted at once.
    """
    load = require_number("load", load, "a finite number > 0", lambda number: 0 < number < inf)
    if not workload.span_s:
        raise SpecificationError(f"at_load: all jobs are submitted at once in {workload.name}, so they have no offered load")
    return workload.scaled(LoadScale(interarrival=workload.offered_load(nodes) / load))


def _with_rows(workload: Workload, rows: list[JobRow]) -> Workload:
    return Workload(
        rows,
        name=workload.name,
        provenance=workload.provenance,
        machine_nodes=workload.machine_nodes,
        extra=workload.extra,
    )
