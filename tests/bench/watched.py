"""The ratios that are measured for each commit: what is compared with what, and how large the ratio may be.

The benches hold each ratio to its bound (``test_watched_ratios.py``); ``python -m tests.bench.record`` keeps the ratios of
commits.  ``python -m tests.bench.watched ROUNDS NAME...`` measures those that are named and prints JSON: whether compiled
modules were in use, and each ratio, or the error of one that this version of the package cannot measure.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np

import clustermodel
from clustermodel import LoadScale, Workload, read_sacct, read_swf, synthetic_workload
from clustermodel.plans import profile
from tests.bench.partitions import single_machines, site
from tests.bench.timing import MOST_JOBS, best_of, floor_of, simulation, size, trace, with_bytecode
from tests.shared_data import trace_path

Seconds = Callable[[int], list[float]]
"""Measures in a number of rounds; returns the CPU times in seconds of what a program is compared with, and of the program."""


class Watched(NamedTuple):
    """A ratio of CPU times, measured side by side."""

    name: str
    """What is measured, ``/`` and what it is compared with, or without it: the bare-SimPy floor of the same jobs."""
    at_most: float
    """15 % above what was measured on the slowest machine so far, or less, with the modules as they are in the repository."""
    compiled_at_most: float
    """The same of compiled modules."""
    seconds: Seconds
    rounds: int = 3
    """At least; in each, all sides run once."""
    is_slow: bool = False
    """It takes minutes, or nearly: its bench has the marker ``slow_bench``."""

    def ratio(self, rounds: int | None = None) -> float:
        """Measure the ratio."""
        base_s, ours_s = self.seconds(rounds or self.rounds)
        return ours_s / base_s


@cache
def kth() -> Workload:
    """Return the year of the KTH-SP2."""
    return trace("KTH-SP2-1996-2.2")


def on_kth(policy: str) -> Seconds:
    """Compare a policy on KTH-SP2 with the floor."""
    return lambda rounds: best_of(floor_of(kth()), simulation(kth(), 100, policy), rounds=rounds)


def overloaded(policy: str, jobs: int) -> Seconds:
    """Compare a policy on a machine that cannot serve all jobs with the floor.

    More than a hundred jobs wait, and under conservative backfilling each early end compresses all their reservations.
    """

    def seconds(rounds: int) -> list[float]:
        workload = synthetic_workload(jobs=size(jobs), load=1.2)
        return best_of(floor_of(workload), simulation(workload, 128, policy), rounds=rounds)

    return seconds


def wide_and_narrow(rounds: int) -> list[float]:
    """Compare jobs a hundred times as wide on as many more nodes, which have the same schedule, with the jobs themselves."""
    workload = synthetic_workload(jobs=size(3_000), nodes=1_000, load=0.6)
    wide = workload.scaled(LoadScale(size=100))
    return best_of(simulation(workload, 1_000, "mbgs"), simulation(wide, 100_000, "mbgs"), rounds=rounds)


def reading(rounds: int) -> list[float]:
    """Compare reading a year of KTH-SP2 with the floor of its jobs."""
    path = trace_path("KTH-SP2-1996-2.2")
    return best_of(floor_of(kth()), lambda: read_swf(path), rounds=rounds)


SACCT_FIELDS: Final = (
    "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|User|Submit|Eligible|Start|End|ElapsedRaw|Suspended|State|"
    "AllocNodes|AllocCPUS|ReqMem|ReqTRES|AllocTRES|TimelimitRaw|NodeList|JobName"
)


def log_of_sacct(jobs: int) -> str:
    """Return a log as the documented command writes it, of 200 users: 3 % never start, 3 % are tasks of job arrays."""
    rng = np.random.default_rng(1)
    submit = np.datetime64("2025-01-01T00:00:00") + np.cumsum(rng.integers(0, 300, jobs)).astype("timedelta64[s]")
    start = submit + rng.integers(0, 7200, jobs).astype("timedelta64[s]")
    run, kind = rng.integers(1, 40_000, jobs), rng.random(jobs)
    end = start + run.astype("timedelta64[s]")
    numbers = [rng.integers(low, high, jobs) for low, high in ((1, 9), (0, 392), (0, 200), (1, 25))]
    lines = [SACCT_FIELDS]
    for number, (asked, began, ended, ran, which, nodes, first, user, hours) in enumerate(
        zip(
            *(values.tolist() for values in (submit.astype(str), start.astype(str), end.astype(str), run, kind, *numbers)),
            strict=True,
        ),
        1,
    ):
        never = which > 0.97
        task = f"{number}_4" if which < 0.03 else str(number)
        granted = f"billing={32 * nodes},cpu={32 * nodes},mem={4 * nodes}G,node={nodes}"
        lines.append(
            f"{task}|{number}|oak|{('short', 'main')[nodes > 2]}|normal|account{user % 20}|group{user % 20}|user{user}|"
            f"{asked}|{asked}|{'Unknown' if never else began}|{ended}|{0 if never else ran}|00:00:00|"
            f"{f'CANCELLED by {user}' if never else 'COMPLETED'}|{nodes}|{32 * nodes}|{4 * nodes}G|{granted}|"
            f"{'' if never else granted}|{60 * hours}|"
            f"{'None assigned' if never else f'cn[{first:03d}-{first + nodes - 1:03d}]'}|step {number % 5000}"
        )
    return "\n".join(lines) + "\n"


def reading_of_sacct(rounds: int) -> list[float]:
    """Compare reading a log of sacct with the floor of its jobs."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "jobs.sacct")
        path.write_text(log_of_sacct(size(20_000)))
        return best_of(floor_of(read_sacct(path)), lambda: read_sacct(path), rounds=rounds)


def start_of(*arguments: str) -> Seconds:
    """Compare a command with importing numpy and SimPy, each in a process of its own."""

    def seconds(rounds: int) -> list[float]:
        commands = (["-c", "import numpy, simpy"], ["-m", "clustermodel", *arguments])
        best = [float("inf")] * len(commands)
        for _ in range(rounds if MOST_JOBS is None else 1):
            for index, command in enumerate(commands):
                best[index] = min(best[index], process_seconds(command))
        return best

    return seconds


def process_seconds(arguments: list[str]) -> float:
    """Return the CPU time of a Python process, children included; it finds the package that this process has found."""
    before = getrusage(RUSAGE_CHILDREN)
    package = Path(clustermodel.__file__).parents[1]
    subprocess.run([sys.executable, *arguments], cwd=package, env=with_bytecode(), capture_output=True, check=True)
    after = getrusage(RUSAGE_CHILDREN)  # to the microsecond, where os.times counts hundredths of a second
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def in_partitions(policy: str, *, overlaps: bool = False) -> Seconds:
    """Compare a site of four partitions with four machines of the same jobs; each partition has the KTH-SP2's nodes.

    The quarters of the year happen at the same time, one in each partition, so that each has the load and the queues of the
    KTH-SP2.  Both sides have as many jobs and, without overlaps, the same schedules; the difference is what partitions cost.
    With ``overlaps``, a tenth of the jobs may have the nodes of two partitions, and schedules are similar.
    """

    def seconds(rounds: int) -> list[float]:
        sides = single_machines(kth(), policy), site(kth(), policy, overlaps=overlaps).run
        return best_of(*sides, rounds=rounds)

    return seconds


WATCHED: Final = (
    Watched("FCFS on KTH", 4.2, 2.4, on_kth("fcfs"), rounds=5),
    Watched("EASY on KTH", 5.3, 2.5, on_kth("easy"), rounds=5),
    Watched("conservative on KTH", 9.0, 3.9, on_kth("conservative")),
    Watched("mbgs on KTH", 23.8, 9.7, on_kth("mbgs"), is_slow=True),
    Watched("slack on KTH", 28.6, 9.1, on_kth("slack"), rounds=1),
    Watched("conservative at load 1.2", 23.2, 9.3, overloaded("conservative", 5_000), rounds=2),
    Watched("mbgs at load 1.2", 44.7, 23.4, overloaded("mbgs", 2_000)),
    Watched("mbgs on 10^5 nodes / 10^3", 1.85, 2.97, wide_and_narrow, rounds=2),
    Watched("EASY in 4 partitions / 4 machines", 1.75, 1.5, in_partitions("easy")),
    Watched("conservative in 4 partitions / 4 machines", 1.5, 1.5, in_partitions("conservative")),
    Watched("EASY in 4 overlapping partitions / 4 machines", 3.05, 3.0, in_partitions("easy", overlaps=True)),
    Watched("read_swf of KTH", 0.29, 0.29, reading),
    Watched("read_sacct of 20,000 jobs", 1.55, 1.55, reading_of_sacct),
    Watched("--help / imports", 0.33, 0.33, start_of("--help"), rounds=8),
    Watched("run of ten jobs / imports", 1.5, 1.5, start_of("run", "--jobs", "10", "--policy", "easy"), rounds=8),
)
"""In the order of the figure."""


def is_compiled() -> bool:
    """Return whether modules of the package are compiled, also in versions that do not say so themselves."""
    try:
        from clustermodel.sim.compiled import is_compiled as says_so
    except ImportError:
        return not str(profile.__file__).endswith(".py")
    compiled: bool = says_so()
    return compiled


def measured(rounds: int, names: Collection[str]) -> dict[str, float | str]:
    """Return ratios, or the errors of those that cannot be measured, by name."""
    found: dict[str, float | str] = {}
    for one in (one for one in WATCHED if one.name in names):
        try:
            found[one.name] = one.ratio(max(rounds, one.rounds))
        except Exception as error:  # an old version of the package may lack what is measured
            found[one.name] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    print(json.dumps({"compiled": is_compiled(), "ratios": measured(int(sys.argv[1]), sys.argv[2:])}))
