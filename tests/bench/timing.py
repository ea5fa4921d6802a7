"""How benches measure: the least CPU time of programs that take turns, and the floor of a workload."""

import gc
import os
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

import pytest

from clustermodel import Machine, Scenario, Workload, read_swf
from tests.bench.floor import bare_simpy
from tests.shared_data import trace_path

ROUNDS = 3
ROOT = Path(__file__).parents[2]
MOST_JOBS: Final = int(os.environ.get("BENCH_JOBS", "0")) or None
"""With it a bench is only tried: it has at most this many jobs and one round, and no ratio is held to its bound."""


def size(jobs: int) -> int:
    """Return how many jobs a bench has that measures this many."""
    return jobs if MOST_JOBS is None else min(jobs, MOST_JOBS)


def trace(name: str) -> Workload:
    """Return a trace of ../shared, or as many of its first jobs as a bench may have."""
    whole = read_swf(trace_path(name))
    if MOST_JOBS is None:
        return whole
    return Workload(islice(whole.rows(), MOST_JOBS), name=whole.name)


def require(*, holds: bool) -> None:
    """Assert what holds at the sizes of a bench; where it is only tried, measuring it is enough."""
    assert holds or MOST_JOBS is not None


def best_of(*programs: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Return each program's best CPU time in seconds; they take turns, so that a busy moment hits all of them."""
    best = [float("inf")] * len(programs)
    for _ in range(rounds if MOST_JOBS is None else 1):
        for index, program in enumerate(programs):
            gc.collect()  # what others have left is not collected at this one's cost
            began = process_time()
            program()
            best[index] = min(best[index], process_time() - began)
    return best


@cache
def _bytecode() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


def with_bytecode(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process that keeps and finds bytecode, as that of a user does, wherever benches run."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": _bytecode().name, **(changes or {})}


def floor_of(workload: Workload) -> Callable[[], int]:
    """Return the bare-SimPy floor of a workload, a program."""
    jobs = [(row.submit, min(row.run, row.estimate)) for row in workload.rows()]
    return lambda: bare_simpy(jobs)


def simulation(workload: Workload, nodes: int, policy: str) -> Callable[[], object]:
    """Return the simulation of a workload under a policy, a program."""
    return Scenario(machine=Machine(nodes=nodes), workload=workload, policy=policy).run


MEASUREMENTS: Final = 3
"""At most: what disturbs one measurement passes, a slowdown is in all of them."""
MOST_UNREST: Final = 1.15
"""Beyond it the machine is disturbed all the time, and a ratio over its bound says nothing."""


def require_at_most(bound: float, measure: Callable[[], float]) -> None:
    """Measure a ratio of CPU times up to three times until it is within its bound; skip the test on a disturbed machine."""
    if MOST_JOBS is not None:
        measure()
        return
    ratios: list[float] = []
    while len(ratios) < MEASUREMENTS and min(ratios, default=inf) > bound:
        ratios.append(measure())
    if min(ratios) > bound and (found := unrest()) > MOST_UNREST:
        pytest.skip(
            f"{min(ratios):.2f} > {bound} on a disturbed machine: equal programs take {found:.2f} times as long as at best"
        )
    assert min(ratios) <= bound


def unrest() -> float:
    """Return how many times as long as the fastest of thirty equal programs the median one takes."""
    jobs = [(10 * number, 1_000) for number in range(3_000)]
    seconds = []
    for _ in range(30):
        began = process_time()
        bare_simpy(jobs)
        seconds.append(process_time() - began)
    return median(seconds) / min(seconds)
