"""Speed as ratios to the bare-SimPy floor, growth in time and memory, independence of the machine's width."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from clustermodel import LoadScale, Machine, Scenario, TimeSlicing, Workload, load_model, synthetic_workload
from tests.bench.timing import ROOT, ROUNDS, best_of, floor_of, require, require_at_most, simulation, size, trace

BENCH, SLOW = pytest.mark.bench, pytest.mark.slow_bench


def year() -> Workload:
    return synthetic_workload(jobs=size(30_000))


def kth() -> Workload:
    return trace("KTH-SP2-1996-2.2")


def pacific(jobs: int = 10_000, factor: float = 1.55) -> Workload:
    """Return jobs of Zhang et al. 2003 with which MBGS uses about 0.85 of the machine."""
    return load_model("blue-pacific").generate(jobs=size(jobs), run_time_factor=factor)


# Bounds are 15 % above what was measured, the last figure of a line.  Issue 3 asked for at most 15 times the floor for GS,
# which is not met; issue 4 for R/L-NG on KTH in 20 s and conservative backfilling on lublin_256 in 12 s, 128 and 218 times.
# Slack's heuristic is AST; the conservative run that measures AWT is part of its first run.
@pytest.mark.parametrize(
    ("policy", "jobs", "nodes", "at_most", "rounds"),
    [
        pytest.param("easy", year, 128, 6.0, ROUNDS, marks=BENCH),  # 5.2
        pytest.param("conservative", year, 128, 9.6, ROUNDS, marks=BENCH),  # 8.4
        pytest.param("R/L-NG", kth, 100, 14.2, 2, marks=BENCH),  # 12.3
        pytest.param("R/L-NG:speculation=0.5,test_runs=true", kth, 100, 22.5, 2, marks=SLOW),  # 19.6
        pytest.param("R/L-NG:width=half,widening=true", kth, 100, 15.2, 2, marks=SLOW),  # 13.3
        pytest.param("conservative", lambda: trace("lublin_256"), 256, 8.0, 2, marks=BENCH),  # 6.9
        pytest.param("slack:compression=afresh", kth, 128, 24, 1, marks=BENCH),  # 20.8
        pytest.param("slack:compression=in-place", kth, 128, 24, 1, marks=SLOW),  # 20.8
        pytest.param(
            "slack", lambda: synthetic_workload(jobs=size(2_000), load=0.9), 128, 29.7, 2, marks=BENCH
        ),  # 25.8; deep queues
        pytest.param("gs", pacific, 320, 19.2, ROUNDS, marks=BENCH),  # 16.7
        pytest.param("mbgs", pacific, 320, 47.0, ROUNDS, marks=BENCH),  # 40.8
    ],
)
def test_a_policy_costs_a_multiple_of_the_floor(
    policy: str, jobs: Callable[[], Workload], nodes: int, at_most: float, rounds: int
) -> None:
    workload = jobs()
    bare = floor_of(workload)

    def measure() -> float:
        floor, ours = best_of(bare, simulation(workload, nodes, policy), rounds=rounds)
        us = floor / len(workload) * 1e6
        print(f"\n{policy} on {workload.name}: {ours / floor:.2f}x the bare-SimPy floor of {us:.2f} us/job")
        return ours / floor

    require_at_most(at_most, measure)


@pytest.mark.bench
@pytest.mark.parametrize(
    ("policy", "base", "nodes", "at_most"),
    [
        ("slack", "conservative", 128, 2.15),  # 1.85
        *((f"pv-easy:mode={mode}", "easy", 100, 2) for mode in ("kill", "checkpoint", "suspend")),
    ],
)
def test_a_policy_costs_a_multiple_of_another(policy: str, base: str, nodes: int, at_most: float) -> None:
    runs = [simulation(kth(), nodes, name) for name in (base, policy)]

    def measure() -> float:
        base_s, policy_s = best_of(*runs, rounds=2)
        print(f"\n{policy} on a year of KTH: {policy_s / base_s:.2f} times as long as {base}")
        return policy_s / base_s

    require_at_most(at_most, measure)


@pytest.mark.bench
@pytest.mark.parametrize(("policy", "at_least"), [("gs", 20), ("mbgs", 10)])
def test_the_slow_mode_gives_the_same_jobs_many_times_more_slowly(policy: str, at_least: float) -> None:
    workload = pacific(200)
    fast, slow = (Scenario(workload=workload, policy=policy, fidelity=fidelity) for fidelity in ("fast", "node"))
    assert fast.run().jobs.equals(slow.run().jobs)
    fast_s, slow_s = best_of(fast.run, slow.run, rounds=2)
    print(f"\n{policy}: fidelity='node' takes {slow_s / fast_s:,.0f} times as long ({slow_s:.1f} s instead of {fast_s:.3f} s)")
    require(holds=slow_s >= at_least * fast_s)


@pytest.mark.bench
@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_machine_a_thousand_times_wider_is_not_slower(policy: str) -> None:
    # The same jobs, each a thousand times as wide, have the same schedule; 1.25 leaves room for the noise of two runs.
    workload = synthetic_workload(jobs=size(10_000))
    wide = workload.scaled(LoadScale(size=1000))
    narrow_run = Scenario(machine=Machine(nodes=128), workload=workload, policy=policy).run
    wide_run = Scenario(machine=Machine(nodes=128_000), workload=wide, policy=policy).run

    def measure() -> float:
        narrow_s, wide_s = best_of(narrow_run, wide_run, rounds=5)
        print(f"\n{policy}: 1,000 times the width takes {wide_s / narrow_s:.3f} times as long")
        return wide_s / narrow_s

    require_at_most(1.25, measure)


@pytest.mark.bench
@pytest.mark.parametrize("policy", ["gs", "mbgs"])
def test_neither_nodes_nor_slices_make_an_event_cost_more_in_proportion(policy: str) -> None:
    # The same jobs on 100 times the nodes, each as many times wider, have the same schedule; 100 times as many slices have
    # nearly the same one.  Both together are 10,000 times as many cells.  Jobs that are up to 99 nodes narrower than that have
    # another schedule.
    workload = pacific(1_000)
    wide = workload.scaled(LoadScale(size=100))
    uneven = Workload([row._replace(nodes=row.nodes - 37 * row.id % 100) for row in wide.rows()], name="uneven")
    sliced = Scenario(machine=Machine(nodes=320, time_slicing=TimeSlicing(quantum_s=2.0)), workload=workload, policy=policy)
    programs = [
        simulation(workload, 320, policy),
        simulation(wide, 32_000, policy),
        simulation(uneven, 32_000, policy),
        sliced.run,
    ]

    def measure() -> float:
        plain_s, wide_s, uneven_s, sliced_s = best_of(*programs, rounds=3)
        wide_ratio, uneven_ratio, sliced_ratio = wide_s / plain_s, uneven_s / plain_s, sliced_s / plain_s
        print(
            f"\n{policy}: 100 times the nodes {wide_ratio:.2f} times as long, jobs of uneven sizes {uneven_ratio:.2f}, "
            f"100 times the slices {sliced_ratio:.2f}"
        )
        return max(wide_ratio / 1.6, uneven_ratio / 1.7, sliced_ratio / 1.25)

    require_at_most(1.0, measure)


@pytest.mark.bench
def test_the_decision_log_is_cheap_when_off_and_bearable_when_on() -> None:
    workload = synthetic_workload(jobs=size(10_000))
    off = Scenario(workload=workload, policy="easy")
    on = Scenario(workload=workload, policy="easy", explain=True)
    off_s, on_s = best_of(off.run, on.run)
    print(f"\ndecision log on: {on_s / off_s:.3f} times as long as off")
    require(holds=on_s <= 1.5 * off_s)


def in_a_process_of_its_own(jobs: int, how: str) -> dict[str, float]:
    """Return time and peak memory of a run of many jobs."""
    command = [sys.executable, "-m", "tests.bench.scale", str(jobs), how]
    found: dict[str, float] = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    return found


@pytest.mark.slow_bench
def test_a_month_of_a_wide_machine_costs_a_small_multiple_of_the_floor() -> None:
    command = [sys.executable, "-m", "tests.bench.wide_machine", str(size(1_300_000))]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    print(f"\n{found['jobs']:,} jobs on 158,976 nodes (easy): {found['run_s']:.0f} s, {found['ratio_to_floor']:.2f}x the floor")
    require(holds=found["ratio_to_floor"] <= 5.6)  # 4.83 was measured, with 100,000 jobs


@pytest.mark.parametrize(
    ("jobs", "how"),
    [
        pytest.param(200_000, "keep", marks=BENCH),
        pytest.param(200_000, "stream", marks=BENCH),
        pytest.param(1_000_000, "keep", marks=SLOW),
        pytest.param(1_000_000, "stream", marks=SLOW),
        pytest.param(10_000_000, "stream", marks=SLOW),
    ],
)
def test_ten_times_the_jobs_cost_as_much_each_and_streamed_no_more_memory(jobs: int, how: str) -> None:
    small, large = (in_a_process_of_its_own(number, how) for number in (size(jobs) // 10, size(jobs)))
    growth = (large["peak_kb"] - small["peak_kb"]) * 1024 / (large["jobs"] - small["jobs"])
    slower = large["us_per_job"] / small["us_per_job"]
    print(
        f"\n{jobs:,} jobs ({how}): {slower:.2f} times the time per job, peak {large['peak_kb'] / 1024:.0f} MiB, "
        f"{large['peak_kb'] / small['peak_kb']:.2f} times that of a tenth, {growth:.0f} bytes per job"
    )
    require(holds=slower <= 1.3)
    if how == "keep":
        require(holds=growth <= 400)  # 320 were measured
    else:
        require(holds=large["peak_kb"] <= min(1.1 * small["peak_kb"], 200 * 1024))
