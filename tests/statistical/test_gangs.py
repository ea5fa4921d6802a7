"""Gang scheduling with short slices against the Markov chains of :mod:`clustermodel.theory.gangs` and ``gang_rows``.

The control variate is the mean response of the same jobs under processor sharing: M/M/c for one-node gangs, and for several
sizes M/G/1 with the work of a job, run time x nodes, at the rate of the whole machine.  Its mean is a closed form.  A 99 %
interval misses its mean once in a hundred; the seeds are fixed, so what passes once passes always.

The first and last jobs are left out, of the control too.  Slices of a length T > 0 are not processor sharing; how far that is
from it is measured with slices four and twenty times as long on the same jobs.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from clustermodel import Machine, Scenario, TimeSlicing, Workload
from clustermodel.measure.equivalence import controlled_mean
from clustermodel.measure.statistics import Interval, interval
from clustermodel.theory.gang_rows import gang_rows, gang_saturation
from clustermodel.theory.gangs import gs_mean_response, mgs_mean_response
from clustermodel.theory.processor_sharing import mg1_ps_mean_response, processor_sharing_responses
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow

MEAN_S = 100.0
QUANTUM_S = 0.25
MANY_ROWS = 64
REPLICATIONS, JOBS = 30, 8_000
LEFT_OUT = 500
"""Jobs at the beginning and at the end of a run."""

Floats = npt.NDArray[np.float64]


class Jobs(NamedTuple):
    submit_s: Floats
    run_s: Floats
    sizes: npt.NDArray[np.int64]


def draw(seed: np.random.SeedSequence, jobs: int, rate: float, sizes: Mapping[int, float]) -> Jobs:
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(1 / rate, jobs)) if np.isfinite(rate) else np.zeros(jobs)
    return Jobs(submit, rng.exponential(MEAN_S, jobs), rng.choice(list(sizes), jobs, p=list(sizes.values())))


def run(policy: str, nodes: int, mpl: int, jobs: Jobs, quantum_s: float = QUANTUM_S) -> tuple[Floats, Floats]:
    """Return wait and response of each job, seconds."""
    submit, ticks = (np.round(times * TICKS_PER_SECOND).astype(int).tolist() for times in (jobs.submit_s, jobs.run_s))
    rows = [
        JobRow(at, number, size, max(1, needed), max(1, needed), -1, -1, 0, -1)
        for number, (at, needed, size) in enumerate(zip(submit, ticks, jobs.sizes.tolist(), strict=True))
    ]
    machine = Machine(nodes=nodes, time_slicing=TimeSlicing(quantum_s=quantum_s, mpl=mpl))
    table = Scenario(machine=machine, workload=Workload(rows), policy=policy).run().jobs
    return table["wait_s"].to_numpy(), table["response_s"].to_numpy()


def of_one_node(
    policy: str, nodes: int, load: float, replications: int, count: int, left_out: int = LEFT_OUT
) -> tuple[float, Interval]:
    """Return the mean response of one-node gangs by theory and by simulation, seconds."""
    rate = load * nodes / MEAN_S
    with_migration = mgs_mean_response(nodes, rate, MEAN_S)
    expected = with_migration if policy == "mgs" else gs_mean_response(nodes, rate, MEAN_S)
    samples, controls = [], []
    for seed in np.random.SeedSequence(20261122).spawn(replications):
        jobs = draw(seed, count, rate, {1: 1.0})
        wait, response = run(policy, nodes, MANY_ROWS, jobs)
        assert (wait == 0).all(), "as many rows as there ever are jobs"
        samples.append(response[left_out:-left_out].mean())
        controls.append(processor_sharing_responses(jobs.submit_s, jobs.run_s, nodes)[left_out:-left_out].mean())
    return expected, controlled_mean(samples, np.transpose([controls]), [with_migration]).interval(0.99)


@pytest.mark.parametrize("policy", ["gs", "mgs"])
def test_one_node_gangs_on_two_nodes_quickly(policy: str) -> None:
    expected, found = of_one_node(policy, 2, 0.5, replications=6, count=700, left_out=50)
    assert expected in found
    assert found.half < 0.05 * expected


@pytest.mark.statistical
@pytest.mark.parametrize(("load", "width"), [(0.5, 0.003), (0.8, 0.006)])
@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("policy", ["gs", "mgs"])
def test_one_node_gangs_join_the_shortest_queue_and_with_migration_one_queue(
    policy: str, nodes: int, load: float, width: float
) -> None:
    expected, found = of_one_node(policy, nodes, load, replications=REPLICATIONS, count=JOBS)
    print(f"{policy} {nodes} nodes, load {load}: theory {expected:.3f}, simulation {found.mean:.3f} +- {found.half:.3f}")
    assert expected in found
    assert found.half < width * expected  # an interval so wide that anything fits would prove nothing
    if policy == "gs":  # and the interval tells the two policies apart
        assert found.low > mgs_mean_response(nodes, load * nodes / MEAN_S, MEAN_S)


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["gs", "mgs"])
def test_the_bias_of_a_finite_quantum_is_less_than_half_of_the_interval_that_decides(policy: str) -> None:
    load, nodes, replications, count = 0.8, 2, 10, 4_000
    rate = load * nodes / MEAN_S
    means, controls = [], []
    counted = slice(LEFT_OUT, -LEFT_OUT)
    for seed in np.random.SeedSequence(20261123).spawn(replications):
        jobs = draw(seed, count, rate, {1: 1.0})
        means.append([run(policy, nodes, MANY_ROWS, jobs, factor * QUANTUM_S)[1][counted].mean() for factor in (1, 4, 20)])
        controls.append(processor_sharing_responses(jobs.submit_s, jobs.run_s, nodes)[counted].mean())
    short, longer, longest = np.transpose(means)
    four, twenty = interval(longer - short, level=0.99), interval(longest - short, level=0.99)
    # The interval of the test above is narrower by the square root of the number of jobs that are counted.
    more_jobs = REPLICATIONS * (JOBS - 2 * LEFT_OUT) / (replications * (count - 2 * LEFT_OUT))
    mean = mgs_mean_response(nodes, rate, MEAN_S)
    decides = controlled_mean(short, np.transpose([controls]), [mean]).interval(0.99).half / more_jobs**0.5
    # If the bias grows in proportion to the quantum, that of the shortest is a nineteenth of the last difference.
    at_most = max(abs(twenty.low), abs(twenty.high)) / 19
    print(f"{policy}: quanta of {4 * QUANTUM_S} and {20 * QUANTUM_S} s against {QUANTUM_S} s: {four} s, {twenty} s")
    print(f"bias at {QUANTUM_S} s at most {at_most:.3f} s, the interval that decides +- {decides:.3f} s")
    assert at_most < decides / 2


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "nodes", "mpl", "sizes"),
    [
        ("gs", 2, 3, {1: 0.5, 2: 0.5}),
        ("mgs", 2, 3, {1: 0.5, 2: 0.5}),
        ("gs", 3, 2, {1: 0.4, 2: 0.3, 3: 0.3}),
        ("gs", 4, 2, {1: 0.6, 4: 0.4}),
        ("mgs", 4, 2, {1: 0.6, 4: 0.4}),
    ],
)
def test_gangs_of_several_sizes_in_few_rows(policy: str, nodes: int, mpl: int, sizes: Mapping[int, float]) -> None:
    migration = policy == "mgs"
    limit = gang_saturation(nodes, mpl, sizes, MEAN_S, migration=migration).throughput
    rate = 0.7 * limit
    expected = gang_rows(nodes, mpl, sizes, rate, MEAN_S, migration=migration)
    work_s = MEAN_S * sum(size * share for size, share in sizes.items()) / nodes
    samples, controls = [], []
    for seed in np.random.SeedSequence(20261124).spawn(40):
        jobs = draw(seed, 6_000, rate, sizes)
        wait, response = run(policy, nodes, mpl, jobs)
        counted = slice(LEFT_OUT, -LEFT_OUT)
        of_size = [response[counted][jobs.sizes[counted] == size].mean() for size in sizes]
        samples.append([response[counted].mean(), wait[counted].mean(), *of_size])
        controls.append(processor_sharing_responses(jobs.submit_s, jobs.run_s * jobs.sizes / nodes, 1)[counted].mean())
    expectations = [expected.mean_response_s, expected.mean_wait_s, *(expected.response_s_by_size[size] for size in sizes)]
    level = 1 - 0.01 / len(expectations)  # all at once
    for mean, values in zip(expectations, np.transpose(samples), strict=True):
        found = controlled_mean(values, np.transpose([controls]), [mg1_ps_mean_response(rate, work_s)]).interval(level)
        print(f"{policy} {nodes} nodes, {mpl} rows: theory {mean:.2f}, simulation {found.mean:.2f} +- {found.half:.2f}")
        assert mean in found
        assert found.half < 0.05 * mean


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "nodes", "mpl", "sizes"),
    [("gs", 2, 3, {1: 0.5, 2: 0.5}), ("mgs", 2, 3, {1: 0.5, 2: 0.5}), ("gs", 3, 2, {1: 0.4, 2: 0.3, 3: 0.3})],
)
def test_the_throughput_when_jobs_always_wait(policy: str, nodes: int, mpl: int, sizes: Mapping[int, float]) -> None:
    expected = gang_saturation(nodes, mpl, sizes, MEAN_S, migration=policy == "mgs").throughput
    found = []
    for seed in np.random.SeedSequence(20261125).spawn(12):
        ends = np.sort(run(policy, nodes, mpl, draw(seed, 4_000, np.inf, sizes))[1])  # all are submitted at 0
        first, last = 400, 3_600
        found.append((last - first) / (ends[last] - ends[first]))
    measured = interval(found, level=0.99)
    print(f"{policy} {nodes} nodes, {mpl} rows: theory {expected:.6f}, simulation {measured}")
    assert expected in measured
    assert measured.half < 0.02 * expected
