"""A study of forty runs: two processes against one, Dask with two workers against two processes, and the price of keys."""

import os
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import dask
import pytest
from distributed import LocalCluster

from clustermodel import sweep
from clustermodel.experiment.store import Store
from tests.bench.timing import MOST_UNREST, require, unrest

AS_IN_THE_GUIDE = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
"""Settings of Dask that docs/guide_cluster.md recommends: workers are not interrupted a hundred times a second."""
pytestmark = pytest.mark.slow_bench

SCRIPT = Path(__file__).with_name("study_of_forty.py")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need two processors")
def test_two_processes_are_nearly_twice_as_fast_and_dask_as_fast_as_they(tmp_path: Path) -> None:
    def swept(name: str, **options: object) -> Swept:
        began, busy = perf_counter(), process_time()
        table = sweep(SCRIPT, tmp_path / name, **options)  # type: ignore[arg-type]
        wall_s, own_s = perf_counter() - began, process_time() - busy
        assert (len(table), table.failures) == (40, ())
        return Swept(wall_s, time_in_runs(tmp_path / name), own_s)

    one, two = swept("one", workers=1), swept("two", workers=2)
    nothing_to_do = swept("one", workers=1).wall_s  # makes all jobs and keys, reads the store and compares every digest
    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(AS_IN_THE_GUIDE), LocalCluster(**workers) as cluster:
        on_dask = swept("dask", dask=cluster.scheduler_address)
    # The same runs do not take equally long in all three: processors share caches, and a machine is never quite at rest.
    faster = (one.wall_s / one.in_runs_s) / two.wall_per_second_in_runs
    dask_longer = on_dask.wall_per_second_in_runs / two.wall_per_second_in_runs
    print(
        f"\n40 runs: one process {one.wall_s:.1f} s, two processes {one.wall_s / two.wall_s:.2f} times as fast, {faster:.2f} "
        f"if runs took equally long; Dask {on_dask.wall_s / two.wall_s:.2f}x their time, {dask_longer:.2f}x if they did; "
        f"reading and keys {nothing_to_do / one.wall_s:.2%} of one process"
    )
    require(holds=faster >= 1.9)
    require(holds=one.wall_s >= 1.8 * two.wall_s or unrest() > MOST_UNREST)
    require(holds=nothing_to_do <= 0.02 * one.wall_s)
    require(holds=dask_longer <= 1.1)
    require(holds=on_dask.wall_s <= 1.1 * two.wall_s or unrest() > MOST_UNREST)


class Swept(NamedTuple):
    """How long a sweep took, seconds."""

    wall_s: float
    in_runs_s: float
    """The sum over all runs, without what comes before and after them."""
    own_s: float
    """CPU time of the process that assigns the runs to others, which may delay them."""

    @property
    def wall_per_second_in_runs(self) -> float:
        """Wall time for each second that other processes spent in runs."""
        return self.wall_s / (self.in_runs_s - self.own_s)


def time_in_runs(directory: Path) -> float:
    """Return the wall time of all runs of a study, without what comes before and after them, seconds."""
    with Store.read(directory) as store:
        runs = [store.run(entry.key) for entry in store.entries()]
    return sum(run.seconds for run in runs if run is not None)
