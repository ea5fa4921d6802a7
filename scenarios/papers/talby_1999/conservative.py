r"""Does the wait under conservative backfilling depend on how the schedule is compressed after a job ends early?

Talby & Feitelson 1999, short version, table 1 (section 3): jobs wait 2,401 s on a year of KTH-SP2, a fifth more than here.  The
long version, section 3.2, names "several alternatives" of *remove* and prefers to compress in the order of the scheduled
starts; ``conservative`` compresses in queue order.  As in the paper each month is a separate run on 128 processors.

Without a trace the log is synthetic, cut into three parts of equal length.

Small (10 s on two cores): without any compression, the jobs of a synthetic log wait several times as long; the ways of
compressing do not differ significantly.

    clustermodel sweep scenarios/papers/talby_1999/conservative.py --out small --set jobs=8000 --set parts=20

Full (10 s on two cores): a year of KTH-SP2, a fixed log, so without intervals.

    clustermodel sweep scenarios/papers/talby_1999/conservative.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz
"""

from collections.abc import Callable, Sequence

import pandas as pd
from periods import NODES, SHORTER_S, periods, shorter_s

from clustermodel import Machine, QueuedJob, Scenario, Study, StudyTable
from clustermodel.policies.backfilling.cycle import SchedulingCycle
from clustermodel.policies.backfilling.guarantees import EveryJob
from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.report.measure_table import published_table

WAIT, LATE = "mean wait (s)", "starts later than announced"
PAPER = published_table(__file__, "tables 1 and 3")["conservative"]
Compress = Callable[[SchedulingCycle, Sequence[QueuedJob]], None]


def in_queue_order(current: SchedulingCycle, jobs: Sequence[QueuedJob]) -> None:
    current.plan.compress(jobs)


def by_start(current: SchedulingCycle, jobs: Sequence[QueuedJob]) -> None:
    current.plan.compress(sorted(jobs, key=lambda job: current.plan.reserved[job.id].start))


def repeatedly(current: SchedulingCycle, jobs: Sequence[QueuedJob]) -> None:
    while current.plan.compress(jobs):
        pass


def afresh(current: SchedulingCycle, jobs: Sequence[QueuedJob]) -> None:
    for job in jobs:
        current.plan.drop(job.id)
    for job in jobs:
        current.place(job)


COMPRESSIONS: dict[str, Compress] = {
    "in queue order": in_queue_order,
    "in the order of the scheduled starts": by_start,
    "in queue order, until no job moves": repeatedly,
    "all taken out, placed again in queue order": afresh,
    "none": lambda *_: None,
}


class OtherwiseCompressed(EveryJob):
    """Every waiting job holds a reservation, and the plan is compressed in one of these ways."""

    def __init__(self, compression: str) -> None:
        self._compress = COMPRESSIONS[compression]

    def schedule(self, current: SchedulingCycle) -> None:
        """Compress the plan if a job has ended early, place the arriving jobs, start those whose time has come."""
        if current.nodes_freed:
            self._compress(current, [job for job in current.queue if job.id in current.plan.reserved])
        current.place_arriving()
        current.start_due()


def study(trace: str = "", jobs: int = 3_000, parts: int = 3) -> Study:
    """Return the study; ``jobs`` are those of the synthetic log, cut into so many ``parts``."""
    months = periods(trace, jobs, parts)

    def scenario(compression: str, month: str, seed: int) -> Scenario:
        policy = Backfilling(guarantees=OtherwiseCompressed(compression))
        return Scenario(machine=Machine(nodes=NODES), workload=months[month], policy=policy, seed=seed)

    return Study(
        name="compression under conservative backfilling",
        factors={"compression": tuple(COMPRESSIONS), "month": tuple(months)},
        scenario=scenario,
        measures={"total_wait_s": lambda result: float(result.jobs["wait_s"].sum())},
        shown=("jobs", "mean_wait_s", "reservation_violations"),
        tables={"Conservative backfilling by compression": by_compression},
    )


def by_compression(table: StudyTable) -> pd.DataFrame:
    sums = table.frame.groupby("compression", sort=False)[["total_wait_s", "jobs", "reservation_violations"]].sum()
    found = pd.DataFrame({WAIT: sums["total_wait_s"] / sums["jobs"], LATE: sums["reservation_violations"]})
    if "1996-09" in table.levels("month"):
        found.insert(0, f"paper, {WAIT}", PAPER["year"])
        return found
    base = {"compression": next(iter(COMPRESSIONS))}
    found[SHORTER_S] = pd.Series([shorter_s(table, {"compression": one}, base) for one in found.index], found.index)
    return found
