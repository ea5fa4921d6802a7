"""Does the wait under conservative backfilling hang on how the schedule is compressed after a job has ended early?

Talby & Feitelson 1999, short version, table 1 (section 3): 2,401 s on a year of KTH-SP2, a fifth more than here.  The long
version, section 3.2, names "several alternatives" of *remove* and prefers to compress in the order of the scheduled starts;
``conservative`` compresses in queue order.  As in the paper each month is a run of its own on 128 processors.

Without a trace the log is synthetic, cut into three parts of equal length.

    clustermodel sweep scenarios/papers/talby_1999/conservative.py --out results --set jobs=600
"""

from collections.abc import Callable, Iterable

import pandas as pd

from clustermodel import Machine, Scenario, Study, StudyTable, read_swf, synthetic_workload
from clustermodel.experiment.measure_table import published_table
from clustermodel.policies.conservative import Conservative
from clustermodel.schedule.plan import Plan
from clustermodel.schedule.reservations import Reservable, Reservation
from clustermodel.schedule.running_profile import RunningProfile
from clustermodel.workload.periods import by_month, in_parts

NODES, WAIT, LATE = 128, "mean wait (s)", "starts later than announced"
PAPER = published_table(__file__, "tables 1 and 3")["conservative"]
Compress = Callable[[Plan, list[Reservable], int], None]


def by_start(plan: Plan, jobs: list[Reservable], now: int) -> None:
    Plan.compress(plan, sorted(jobs, key=lambda job: plan.reserved[job.id].start), now)


def repeatedly(plan: Plan, jobs: list[Reservable], now: int) -> None:
    before: dict[int, Reservation] = {}
    while before != plan.reserved:
        before = dict(plan.reserved)
        Plan.compress(plan, jobs, now)


def afresh(plan: Plan, jobs: list[Reservable], _: int) -> None:
    shapes = {job.id: [(plan.reserved[job.id].nodes, plan.reserved[job.id].length)] for job in jobs}
    for job in jobs:
        plan.drop(job)
    for job in jobs:
        plan.keep(job, plan.earliest(shapes[job.id]))


COMPRESSIONS: dict[str, Compress] = {
    "in queue order": Plan.compress,
    "in the order of the scheduled starts": by_start,
    "in queue order, until no job moves": repeatedly,
    "all taken out, placed again in queue order": afresh,
    "none": lambda *_: None,
}


class CompressedPlan(Plan):
    """A plan with another compression."""

    def __init__(self, profile: RunningProfile, how: Compress) -> None:
        super().__init__(profile)
        self._how = how

    def compress(self, jobs: Iterable[Reservable], now: int) -> None:
        """Compress the plan in its own way."""
        self._how(self, [job for job in jobs if job.id in self.reserved], now)


class OtherwiseCompressed(Conservative):
    """Conservative backfilling with one of the compressions."""

    def __init__(self, compression: str) -> None:
        super().__init__()
        self._how = COMPRESSIONS[compression]

    def empty_plan(self, nodes: int, *, may_overrun: bool) -> Plan:
        """Return the plan that a run begins with."""
        return CompressedPlan(RunningProfile(nodes, may_overrun=may_overrun), self._how)


def study(trace: str = "", jobs: int = 3_000) -> Study:
    """Return the study; ``jobs`` are those of the synthetic log."""
    parts = by_month(read_swf(trace)) if trace else in_parts(synthetic_workload(jobs=jobs, nodes=NODES, load=0.75), 3)

    def scenario(compression: str, month: str, seed: int) -> Scenario:
        policy = OtherwiseCompressed(compression)
        return Scenario(machine=Machine(nodes=NODES), workload=parts[month], policy=policy, seed=seed)

    return Study(
        name="compression under conservative backfilling",
        factors={"compression": tuple(COMPRESSIONS), "month": tuple(parts)},
        scenario=scenario,
        measures={"total_wait_s": lambda result: float(result.jobs["wait_s"].sum())},
        shown=("jobs", "mean_wait_s", "reservation_violations"),
        tables={"Conservative backfilling by compression": by_compression},
    )


def by_compression(table: StudyTable) -> pd.DataFrame:
    """Return the mean wait of all jobs of the year, and of the paper."""
    sums = table.frame.groupby("compression", sort=False)[["total_wait_s", "jobs", "reservation_violations"]].sum()
    found = pd.DataFrame({WAIT: sums["total_wait_s"] / sums["jobs"], LATE: sums["reservation_violations"]})
    if "1996-09" in table.levels("month"):
        found.insert(0, f"paper, {WAIT}", PAPER["year"])
    return found
