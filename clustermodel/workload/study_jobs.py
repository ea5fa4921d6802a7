"""The jobs of a study: those of a trace, or synthetic ones."""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Final

from clustermodel.workload.resampling import Unit
from clustermodel.workload.swf import read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import Workload

JOBS: Final = 20_000
"""The number of synthetic jobs."""
LOAD: Final = 0.8
"""The offered load of synthetic jobs: queues are long enough for their order to matter."""


def study_jobs(
    trace: str | PathLike[str] | None,
    *,
    jobs: int | None = None,
    nodes: int = 128,
    load: float = LOAD,
    seed: int = 1,
    processors_from: str = "allocated",
    resample: Unit | None = None,
) -> Workload:
    """Return the jobs of a trace, the same for every seed, or without a trace synthetic jobs drawn from ``seed``.

    Resampled from ``seed``, one log, that of the trace or of synthetic jobs, gives other jobs in each replication, the same for
    all policies.

    The last few workloads are kept, so that the trials of a study neither read a trace nor draw its jobs again.

    Args:
        trace: an SWF file; ``None`` for synthetic jobs.
        jobs: their number; by default all of the trace, or 20,000 synthetic ones.  Of a trace, the first ones.
        nodes: size of the machine of synthetic jobs.
        load: offered load of synthetic jobs.
        seed: of synthetic jobs, or of resampling.
        processors_from: as for :func:`~clustermodel.workload.swf.read_swf`.
        resample: what of one log to draw with replacement, as for :meth:`Workload.resampled
            <clustermodel.workload.table.Workload.resampled>`; by default nothing.

    Raises:
        TraceError: the trace cannot be read.
        SpecificationError: an argument is not allowed.
    """
    if resample is not None:
        return _resampled(study_jobs(trace, jobs=jobs, nodes=nodes, load=load, processors_from=processors_from), resample, seed)
    if trace is None:
        return synthetic_workload(jobs=jobs or JOBS, nodes=nodes, load=load, seed=seed)  # remembers the last workloads
    path = Path(trace)
    try:
        written = path.stat().st_mtime_ns
    except OSError:  # which the reader says better
        return read_swf(path)
    return _first(path, written, processors_from, jobs)


@lru_cache(maxsize=4)
def _resampled(log: Workload, of: Unit, seed: int) -> Workload:
    return log.resampled(of, seed=seed)


@lru_cache(maxsize=4)
def _first(trace: Path, written: int, processors_from: str, jobs: int | None) -> Workload:
    """Return the first jobs of a trace; a file that has been written again is read again."""
    if jobs is None:
        return read_swf(trace, processors_from=processors_from)
    whole = _first(trace, written, processors_from, None)
    rows = list(whole.rows())[:jobs]
    return Workload(rows, name=whole.name, provenance=whole.provenance, machine_nodes=whole.machine_nodes)
