"""Studies: two processes against single runs, the overhead per run, very many runs, and Dask workers."""

import os

import pytest

from tests.bench.studies import many_runs, on_dask, overhead, two_processes
from tests.bench.timing import MOST_JOBS, MOST_UNREST, require, size, unrest

pytestmark = pytest.mark.slow_bench


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need two processors")
def test_two_processes_are_nearly_twice_as_fast_as_single_runs() -> None:
    found = two_processes(jobs=size(2_000), replications=2 if MOST_JOBS else 50)
    print(f"\n{found}: {found.faster:.2f}, {found.faster_once_started:.2f} without the start of the processes")
    require(holds=found.faster_once_started >= 1.95 or unrest() > MOST_UNREST)


def test_key_store_and_table_take_three_milliseconds_per_run() -> None:
    found = overhead(jobs=size(2_000), replications=3 if MOST_JOBS else 50)
    print(f"\n{found}")
    require(holds=found.key + found.write + found.read + found.row <= 3)
    require(holds=found.wall <= 3 or unrest() > MOST_UNREST)
    assert (found.files, found.synced) == (12 if MOST_JOBS else 200, 2)


def test_ten_thousand_short_runs_take_constant_time_and_little_more_memory() -> None:
    found = many_runs(runs=400 if MOST_JOBS else 10_000)
    print(f"\n{found}")
    require(holds=found.last_own_ms <= 1.15 * found.first_own_ms)
    require(holds=found.last_mb <= 1.3 * found.first_mb)
    require(holds=1e3 * found.resumed_s <= 3 * found.runs or unrest() > MOST_UNREST)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_dask_delays_a_run_by_few_milliseconds(workers: int) -> None:
    found = on_dask(workers, runs=40, sleep_s=0.02) if MOST_JOBS else on_dask(workers)
    print(f"\n{found}")
    require(holds=found.overhead_ms <= 10 or unrest() > MOST_UNREST)
