"""How was jobs.sacct made?  Twelve users with habits, simulated under the rules of site.toml, printed as sacct would.

python scenarios/first_cluster/make_log.py    writes jobs.sacct beside this script
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from clustermodel import Machine, Scenario, Site, Workload

FOLDER = Path(__file__).parent
SEED = 9
NODES, CORES, GIB = 60, 32, 128  # the last two on each node
FAIL, CANCEL = 0.05, 0.01  # shares of the jobs that fail early, and that are cancelled before they start
CANCELLED_AFTER_S = 600
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
DAY_S, HOUR_S = 86_400, 3600
FIRST_S, LAST_S = -6 * HOUR_S, 14 * DAY_S + 10 * HOUR_S
"""When jobs are submitted, after that Monday, 0:00: two weeks, with the evening before and the morning after."""
FIRST_ID = 48_201
HEADER = (
    "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|User|Constraints|Reservation|Submit|Eligible|Start|End|ElapsedRaw|"
    "Suspended|State|AllocNodes|AllocCPUS|ReqMem|ReqTRES|AllocTRES|TimelimitRaw|NodeList|JobName"
)
"""The fields of the command in docs/guide_own_log."""


class Habit(NamedTuple):
    """What a user submits again and again."""

    user: str
    account: str
    job_name: str
    per_day: float
    """Mean number of submissions on a working day."""
    hour: float
    """Mean time of day, with a standard deviation of ``spread_h``."""
    spread_h: float
    nodes: tuple[int, ...]
    limit_min: int
    """Wall-time limit; jobs use between a tenth and all of it."""
    tasks: int = 1
    """Jobs of one submission; several are an array."""
    partition: str = "batch"
    weekend: float = 0.1
    """Submissions on Saturdays and Sundays as a share of those on working days."""


HABITS = (
    Habit("ann", "physics", "lattice", 2.5, 10.0, 1.5, (8, 12), 720),
    Habit("bob", "physics", "sweep", 1.0, 11.0, 2.0, (1,), 240, tasks=24),
    Habit("cem", "physics", "relax", 6.0, 14.0, 3.0, (2, 4), 480),
    Habit("dee", "biology", "align", 1.2, 9.5, 1.0, (1,), 120, tasks=20),
    Habit("eva", "biology", "fold", 6.0, 15.0, 2.5, (1, 2), 720),
    Habit("fay", "biology", "docking", 4.0, 13.0, 3.0, (4,), 240),
    Habit("gus", "climate", "ocean", 2.0, 9.0, 1.5, (12, 16), 720),
    Habit("hua", "climate", "ensemble", 1.0, 17.5, 0.5, (4,), 480, tasks=6),
    Habit("ian", "climate", "forecast", 1.0, 22.0, 0.1, (12,), 240, weekend=1.0),
    Habit("joy", "engineering", "mesh", 8.0, 12.0, 3.0, (1, 2, 4), 120),
    Habit("kim", "engineering", "crash", 4.0, 16.0, 1.5, (6, 8), 480),
    Habit("leo", "engineering", "flow", 2.5, 18.0, 1.0, (8, 12), 720),
    Habit("ann", "physics", "test", 3.0, 13.0, 3.0, (1, 2), 60, partition="debug"),
    Habit("cem", "physics", "test", 4.0, 11.0, 3.0, (1, 2), 60, partition="debug"),
    Habit("fay", "biology", "test", 3.0, 14.0, 3.0, (1,), 60, partition="debug"),
    Habit("gus", "climate", "test", 4.0, 14.0, 3.0, (4,), 60, partition="debug"),
    Habit("joy", "engineering", "test", 5.0, 12.0, 3.0, (1, 2), 60, partition="debug"),
    Habit("kim", "engineering", "test", 4.0, 15.0, 3.0, (2, 4), 60, partition="debug"),
)
USERS = sorted({habit.user for habit in HABITS})


class Submitted(NamedTuple):
    """A job, in the order of submission."""

    submit_s: int
    """After the first Monday, 0:00."""
    array: int
    """A number that the jobs of one submission have in common."""
    task: int
    """From 1 in an array; 0 for a job that is none."""
    habit: Habit
    nodes: int
    run_s: int
    state: str


def submitted(habit: Habit, rng: np.random.Generator) -> Iterator[Submitted]:
    """Yield what a user submits by a habit."""
    limit_s = 60 * habit.limit_min
    for day in range(-1, 15):
        for _ in range(rng.poisson(habit.per_day * (habit.weekend if day % 7 >= 5 else 1))):
            submit_s = int(day * DAY_S + rng.normal(habit.hour, habit.spread_h) % 24 * HOUR_S)
            array, nodes, used = int(rng.integers(2**31)), int(rng.choice(habit.nodes)), rng.beta(2.5, 2)
            for task in range(1, habit.tasks + 1):
                run_s, state = int(limit_s * used * rng.lognormal(0.1, 0.3)) + 5, "COMPLETED"
                chance = rng.random()
                if chance < FAIL:
                    run_s, state = int(rng.integers(5, 300)), "FAILED"
                elif chance > 1 - CANCEL:
                    run_s, state = 0, "CANCELLED"
                elif run_s >= limit_s:
                    run_s, state = limit_s, "TIMEOUT"
                yield Submitted(submit_s, array, task if habit.tasks > 1 else 0, habit, nodes, run_s, state)


def host_list(nodes: Iterable[int]) -> str:
    """Return nodes, counted from 0, as Slurm writes their names: ``n[01-04,07]``."""
    parts: list[list[int]] = []
    for node in sorted(nodes):
        if parts and node == parts[-1][-1] + 1:
            parts[-1][1:] = [node]
        else:
            parts.append([node])
    names = ",".join("-".join(f"{node + 1:02}" for node in part) for part in parts)
    return f"n[{names}]" if "," in names or "-" in names else f"n{names}"


def record(number: int, array: int, job: Submitted, start_s: float | None, nodes: Iterable[int]) -> str:
    """Return the line of a job, which has no start if it was cancelled before."""

    def clock(time_s: float) -> str:
        return f"{MONDAY + timedelta(seconds=time_s):%Y-%m-%dT%H:%M:%S}"

    def resources(nodes: int) -> str:
        return f"cpu={CORES * nodes},mem={GIB * nodes}G,node={nodes}"

    habit, identifier = job.habit, f"{array}_{job.task}" if job.task else f"{number}"
    asked = [
        identifier, number, "first", habit.partition, "normal", habit.account, habit.account, habit.user, "", "",
        clock(job.submit_s), clock(job.submit_s),
    ]  # fmt: skip
    if start_s is None:
        end_s, by = job.submit_s + CANCELLED_AFTER_S, 1001 + USERS.index(habit.user)
        ran = ["None", clock(end_s), 0, "00:00:00", f"CANCELLED by {by}", 0, 0, f"{GIB}G", resources(job.nodes), ""]
    else:
        used = [job.nodes, CORES * job.nodes, f"{GIB}G", resources(job.nodes), resources(job.nodes)]
        ran = [clock(start_s), clock(start_s + job.run_s), job.run_s, "00:00:00", job.state, *used]
    where = "None assigned" if start_s is None else host_list(nodes)
    return "|".join(map(str, [*asked, *ran, habit.limit_min, where, habit.job_name]))


def log() -> str:
    """Return the log, a line for each job, in the order of submission."""
    habits = enumerate(HABITS)
    everything = sorted(job for number, habit in habits for job in submitted(habit, np.random.default_rng([SEED, number])))
    jobs = dict(enumerate((job for job in everything if FIRST_S <= job.submit_s <= LAST_S), start=FIRST_ID))
    arrays = {(job.submit_s, job.array): number for number, job in reversed(jobs.items())}
    rows = [
        {
            "job": number, "submit_s": job.submit_s - FIRST_S, "nodes": job.nodes, "run_s": job.run_s,
            "estimate_s": 60 * job.habit.limit_min, "user": job.habit.user, "account": job.habit.account,
            "partition": job.habit.partition,
        }
        for number, job in jobs.items() if job.state != "CANCELLED"
    ]  # fmt: skip
    workload, site = Workload.from_frame(pd.DataFrame(rows)), Site.from_toml(FOLDER / "site.toml")
    result = Scenario(machine=Machine(nodes=NODES), workload=workload, policy="easy", site=site).run()
    start_s = dict(zip(result.jobs["job"].tolist(), (result.jobs["start_s"] + FIRST_S).tolist(), strict=True))
    nodes: dict[int, list[int]] = defaultdict(list)
    for number, first, count in result.placements[["job", "first_node", "nodes"]].to_numpy(dtype=int).tolist():
        nodes[number].extend(range(first, first + count))
    lines = [
        record(number, arrays[job.submit_s, job.array], job, start_s.get(number), nodes[number]) for number, job in jobs.items()
    ]
    return "\n".join([HEADER, *lines, ""])


if __name__ == "__main__":
    (FOLDER / "jobs.sacct").write_text(log(), encoding="utf-8")
