"""The jobs of the studies of Perkovic & Keleher 2000: a log, or the log with the flurry that its cleaned version lacks.

The CTC log in the Parallel Workloads Archive is *cleaned*: its header says that 2,080 jobs of user 135 with numbers from 47421
to 50307 were removed.  Perkovic & Keleher 2000 (table 1) used the log with them.  Their tables and the cleaned log tell what
the jobs were like.  Table 2 has 2,058 more jobs among the long-narrow ones and 39 more among the short-narrow ones.  For the
means over 79,302 jobs to be those of table 1, the missing ones must have run for about 100 s on average, with estimates of
about 21,800 s, 857 times their run times on average.  Here they have one node, estimates of 6 h, and run times from a
lognormal distribution with the mean and the mean reciprocal above.  No parameter was chosen by what a simulation shows.
"""

from dataclasses import replace
from typing import Final

from cleaned_log import RESTORED, Flurry, with_flurry

from clustermodel import Workload
from clustermodel.workload.synthetic import study_jobs

CLEANED: Final = "cleaned"
DEFAULT: Final = "uniform"
"""The reading of the log in the studies of the documentation: of those with the flurry, the one that assumes least."""
FLURRIES: Final = (CLEANED, *RESTORED)
"""Readings of the log: as the archive has it, or with the flurry at times by one of ``RESTORED``."""
CTC: Final = Flurry(first=47_421, last=50_307, nodes=1, estimate_s=21_600, mean_run_s=100, mean_overestimation=857)
PER_JOB: Final = 2080 / 77_205
"""Jobs of the flurry per job that the cleaned log has kept (and that has a run time)."""
BEFORE: Final = 0.61
"""Share of the jobs that were submitted before the flurry."""


def paper_jobs(trace: str | None, *, jobs: int, nodes: int, flurry: str, seed: int) -> Workload:
    """Return the jobs of a trace, or synthetic ones, under a reading of the log.

    Args:
        trace: an SWF file, CTC-SP2 if the flurry is restored; ``None`` for synthetic jobs, which get a flurry in one gap.
        jobs: their number without the flurry; 0 for all of the trace, or 20,000 synthetic ones.
        nodes: size of the machine of synthetic jobs.
        flurry: one of :data:`FLURRIES`.
        seed: of synthetic jobs and of the flurry.
    """
    log = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed)
    if flurry == CLEANED:
        return log
    return with_flurry(log, CTC, at=flurry, seed=seed) if trace else _synthetic(log, flurry, seed)


def _synthetic(log: Workload, flurry: str, seed: int) -> Workload:
    last, count = round(BEFORE * len(log)), round(PER_JOB * len(log))
    rows = [row._replace(id=row.id + count) if row.id > last else row for row in log.rows()]
    removed = replace(CTC, first=last + 1, last=last + count)
    return with_flurry(Workload(rows, name=log.name, machine_nodes=log.machine_nodes), removed, at=flurry, seed=seed)
