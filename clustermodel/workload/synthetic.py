"""Synthetic jobs, for first runs without a trace, for examples and for benchmarks; and the jobs of a study with or without one.

The workload of a plausible mid-sized machine, not fitted to any; its parameters are in this module.  For studies, use a real
trace.
"""

from functools import lru_cache
from os import PathLike
from pathlib import Path

import numpy as np

from clustermodel.arrays import dot
from clustermodel.errors import SpecificationError, counted
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LONGEST_S, require_jobs, require_number, require_whole
from clustermodel.workload.job_columns import table_of
from clustermodel.workload.phi import PHI, phi_factors
from clustermodel.workload.provenance import Provenance
from clustermodel.workload.remembered import remembered
from clustermodel.workload.table import Workload

DAY_S = 86_400.0
LONGEST_RUN_S = 36 * 3600.0
MEDIAN_RUN_S = 680.0  # median run time before scaling, that of Zhang et al. 2003 (section 5.6)
ESTIMATES_PER_RUN = 50.0  # longest estimate as a multiple of the run time


@remembered
def synthetic_workload(*, jobs: int = 30_000, nodes: int = 128, load: float = 0.65, seed: int = 1) -> Workload:
    """Return a synthetic workload.

    Submissions follow a daily cycle (Poisson, the rate at 2 p.m. is four times that at 2 a.m.), spread over a year for 30,000
    jobs.  A quarter of the jobs are serial, the rest have 2^u nodes, u being log2 of the machine times a Beta(1, 2.5)
    variable, half of them rounded to a power of two.  Run times are lognormal (sigma 2), cut at 36 hours, then all scaled
    so that the offered load is ``load`` (runs shorter than a second become one second).  Estimates follow the phi model
    (Zhang et al. 2003, section 2.1) with phi = 0.2, cut at 50 times the run time.  Users are drawn with probabilities
    proportional to 1/rank.

    There is a random stream for each attribute.

    Raises:
        SpecificationError: an argument is out of range, or there are too few jobs for so large a machine.
    """
    require_jobs(jobs, at_least=2)
    require_whole("nodes", nodes, at_least=1)
    require_whole("seed", seed, at_least=0)
    load = require_number("load", load, "> 0 and < 10", lambda x: 0 < x < 10)
    arrivals, sizes, runs, estimates, users = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(5)
    )

    # Arrivals: a Poisson process in "busy time", mapped through the inverse of the cumulative daily cycle.
    span_s = 365 * DAY_S * jobs / 30_000
    grid = np.linspace(0.0, span_s, max(2, int(span_s / 600)))
    rate = 1 + 0.6 * np.cos(2 * np.pi * (grid / DAY_S - 14 / 24))
    cumulated = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    uniform = np.sort(arrivals.random(jobs)) * cumulated[-1]
    submit = np.round(np.interp(uniform, cumulated, grid))

    exponent = np.log2(nodes) * sizes.beta(1.0, 2.5, jobs)
    exponent = np.where(sizes.random(jobs) < 0.5, np.round(exponent), exponent)
    size = np.where(sizes.random(jobs) < 0.25, 1, np.clip(np.round(2**exponent), 1, nodes)).astype(np.int64)

    run = np.minimum(runs.lognormal(np.log(MEDIAN_RUN_S), 2.0, jobs), LONGEST_RUN_S)
    run = np.maximum(1.0, run * (load * nodes * float(np.ptp(submit)) / dot(size, run)))

    factor = np.minimum(phi_factors(estimates, jobs, PHI), ESTIMATES_PER_RUN)

    longest = float(np.max(run * factor))
    if longest > LONGEST_S:
        raise SpecificationError(
            f"nodes: {nodes} is not allowed with {counted(jobs, 'job')} and load {load:g}: an estimate would be {longest:g} s, "
            f"and must be <= {LONGEST_S:g}; make more jobs or a smaller machine"
        )

    ranks = np.arange(1, 101)
    user = users.choice(ranks, size=jobs, p=(1 / ranks) / (1 / ranks).sum())

    submit, run, estimate = (np.round(seconds * TICKS_PER_SECOND) for seconds in (submit, run, run * factor))
    arguments = {"jobs": jobs, "nodes": nodes, "load": load, "seed": seed}
    return Workload(
        table_of(submit=submit, id=np.arange(1, jobs + 1), nodes=size, run=run, estimate=estimate, user=user),
        name=f"synthetic-{seed}",
        provenance=Provenance(
            source=f"synthetic_workload(jobs={jobs}, nodes={nodes}, load={load}, seed={seed})",
            options=arguments,
        ),
        machine_nodes=nodes,
    ).made_by("synthetic", arguments)


STUDY_JOBS, STUDY_LOAD = 20_000, 0.8
"""Synthetic jobs of a study and their offered load: queues are long enough for their order to matter."""


def study_jobs(
    trace: str | PathLike[str] | None,
    *,
    jobs: int = 0,
    nodes: int = 128,
    seed: int = 1,
    processors_from: str = "allocated",
) -> Workload:
    """Return the jobs of a trace in SWF, or without a trace synthetic jobs drawn from ``seed`` for a machine of ``nodes``.

    ``jobs`` is the number of the first jobs; 0 for all of the trace, or 20,000 synthetic ones.  The last few workloads are
    kept, so that the trials of a study neither read a trace nor draw its jobs again.
    """
    if trace is None:
        return synthetic_workload(jobs=jobs or STUDY_JOBS, nodes=nodes, load=STUDY_LOAD, seed=seed)
    path = Path(trace)
    written = path.stat().st_mtime_ns if path.exists() else 0
    return _first(path, written, processors_from, jobs)


@lru_cache(maxsize=4)
def _first(trace: Path, written: int, processors_from: str, jobs: int) -> Workload:
    """Return the first jobs of a trace; a file that has been written again is read again."""
    from clustermodel.workload.swf import read_swf  # noqa: PLC0415  `clustermodel run` without a trace needs no reader

    if not jobs:
        return read_swf(trace, processors_from=processors_from)
    whole = _first(trace, written, processors_from, 0)
    rows = list(whole.rows())[:jobs]
    return Workload(rows, name=whole.name, provenance=whole.provenance, machine_nodes=whole.machine_nodes)
