"""Gangs of several sizes in rows: the chain's steps against the simulator's matrix, event by event, and its means against cases
with a closed form.
"""

from collections.abc import Mapping

import numpy as np
import pytest

from clustermodel import Machine, Rows, Scenario, SpecificationError, TimeSlicing, Workload
from clustermodel.policies.gang import GS, MGS
from clustermodel.theory import gang_rows as module
from clustermodel.theory.gang_rows import Gang, Phase, compact, fill, gang_rows, gang_saturation, start
from clustermodel.theory.gangs import gs_mean_response, mgs_mean_response
from clustermodel.theory.matrix_geometric import chain_of, solve
from clustermodel.theory.rigid_jobs import multiserver_job_throughput, multiserver_job_utilization
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow
from tests.gang_runs import Call, Watched

JOBS = 600


def watch(policy: GS | MGS, nodes: int, mpl: int, sizes: list[int], seed: int) -> tuple[list[JobRow], list[Call]]:
    """Run jobs at random times, no two events at the same tick, and return what the policy was shown."""
    rng = np.random.default_rng(seed)
    run_s = 100.0
    rate = 0.9 * nodes / (run_s * float(np.mean(sizes)))
    submit = np.cumsum(rng.exponential(1 / rate, JOBS))
    runs = (rng.exponential(run_s, JOBS) * TICKS_PER_SECOND + 1).astype(int).tolist()
    drawn = rng.choice(sizes, JOBS).tolist()
    rows = [
        JobRow(int(at * TICKS_PER_SECOND), number, size, run, run, -1, -1, 0, -1)
        for number, (at, size, run) in enumerate(zip(submit, drawn, runs, strict=True))
    ]
    watched = Watched(policy)
    machine = Machine(nodes=nodes, time_slicing=TimeSlicing(quantum_s=1.0, mpl=mpl))
    Scenario(machine=machine, workload=Workload(rows), policy=watched).run()
    return rows, watched.calls


@pytest.mark.parametrize(
    ("nodes", "mpl", "sizes"),
    [(2, 3, [1, 2]), (3, 2, [1, 2, 3]), (3, 4, [1, 2]), (4, 2, [1, 2, 4]), (4, 3, [1, 2, 3, 4]), (5, 5, [1])],
)
def test_the_steps_of_the_chain_are_those_of_gs(nodes: int, mpl: int, sizes: list[int]) -> None:
    jobs, calls = watch(GS(), nodes, mpl, sizes, seed=20261122)
    arrivals = {job.submit: job for job in jobs}
    ids: list[int] = []
    gangs: tuple[Gang, ...] = ()
    queue: list[JobRow] = []
    replicas = waits = 0
    for call in calls:
        ended = [place for place, job in enumerate(ids) if job not in call.running]
        assert len(ended) + (call.now in arrivals) == 1, "one event at a time"
        for job, gang, rows in zip(ids, gangs, fill(gangs), strict=True):
            if job in call.running:
                shown = call.running[job]
                assert (shown.columns, shown.rows.bit_count()) == (gang.columns, rows)
                assert shown.rows >> gang.home & 1
                replicas += rows > 1
        for place in ended:
            gangs = gangs[:place] + gangs[place + 1 :]
            del ids[place]
        if not ended:
            queue.append(arrivals[call.now])
        gangs = compact(gangs)
        while queue:
            started = start(gangs, queue[0].nodes, nodes, mpl)
            if started is None:
                waits += 1
                break
            gangs = started
            ids.append(queue.pop(0).id)
    assert replicas > JOBS / 10
    assert waits > JOBS / 10 or mpl == 5


@pytest.mark.parametrize(("nodes", "mpl"), [(2, 3), (3, 3), (4, 2)])
def test_the_service_of_mgs_is_that_of_the_chain(nodes: int, mpl: int) -> None:
    # Rows in use: those of the gangs of all nodes, and as few as hold the one-node gangs, who then use all nodes they can.
    jobs, calls = watch(MGS(), nodes, mpl, [1, nodes], seed=20261123)
    size_of = {job.id: job.nodes for job in jobs}
    arrivals = {job.submit: job for job in jobs}
    queue: list[int] = []
    counts = {1: 0, nodes: 0}
    checked = 0
    before: set[int] = set()
    for call in calls:
        used = counts[nodes] + -(-counts[1] // nodes)
        if call.now in arrivals:
            shown = dict.fromkeys(counts, 0)
            for job, gang in call.running.items():
                shown[size_of[job]] += gang.rows.bit_count()
            assert shown == {1: (used - counts[nodes]) * min(counts[1], nodes), nodes: counts[nodes]}
            checked += 1
            queue.append(arrivals[call.now].nodes)
        for job in before - call.running.keys():
            counts[size_of[job]] -= 1
        while queue and (
            counts[1] < nodes * (mpl - counts[nodes]) if queue[0] == 1 else counts[nodes] + -(-counts[1] // nodes) < mpl
        ):
            counts[queue.pop(0)] += 1
        rows = [decision for decision in call.decisions if isinstance(decision, Rows)]
        before = set(call.running) | {place.job.id for decision in rows for place in decision.places}
        assert {size: sum(size_of[job] == size for job in before) for size in counts} == counts
    assert checked == JOBS


def test_the_oldest_job_of_a_column_gets_the_first_replica() -> None:
    # Column 0 has two jobs and three rows to fill: shares of two thirds and one third, not equal ones.
    gangs = (Gang(0b01, 0), Gang(0b01, 1), Gang(0b10, 0), Gang(0b10, 1), Gang(0b10, 2))
    assert fill(gangs) == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("sizes", [{1: 1.0}, {1: 0.5, 2: 0.5}, {1: 0.4, 2: 0.3, 3: 0.3}, {2: 1.0}])
def test_one_row_is_first_come_first_served(sizes: Mapping[int, float]) -> None:
    found = gang_saturation(3, 1, sizes, 10.0)
    assert found.throughput == pytest.approx(multiserver_job_throughput(3, sizes, 10.0))
    assert found.utilization == pytest.approx(multiserver_job_utilization(3, sizes))


def test_one_node_gangs_in_many_rows_join_the_shortest_queue_or_are_one() -> None:
    gs, mgs = (gang_rows(2, 24, {1: 1.0}, 1.0, 1.0, migration=migration) for migration in (False, True))
    assert gs.mean_wait_s < 1e-12  # so rows are no limit
    assert gs.mean_response_s == pytest.approx(gs_mean_response(2, 1.0, 1.0), rel=2e-7)
    assert mgs.mean_response_s == pytest.approx(mgs_mean_response(2, 1.0, 1.0))


@pytest.mark.parametrize("mpl", [1, 3])
def test_gangs_of_all_nodes_are_one_queue(mpl: int) -> None:
    found = gang_rows(4, mpl, {4: 1.0}, 0.8, 1.0)
    assert found.mean_response_s == pytest.approx(5)  # M/M/1, in any order of service
    assert gang_saturation(4, mpl, {4: 1.0}, 1.0) == pytest.approx((1, 1))


@pytest.mark.parametrize("migration", [False, True])
@pytest.mark.parametrize(("nodes", "mpl"), [(2, 3), (3, 2), (4, 2)])
def test_what_arrives_is_served(nodes: int, mpl: int, migration: bool) -> None:
    sizes, means = {1: 0.6, nodes: 0.4}, {1: 50.0, nodes: 120.0}
    limit = gang_saturation(nodes, mpl, sizes, means, migration=migration)
    found = gang_rows(nodes, mpl, sizes, 0.9 * limit.throughput, means, migration=migration)
    assert found.utilization == pytest.approx(0.9 * limit.utilization)
    assert found.mean_response_s == pytest.approx(sum(sizes[size] * mean for size, mean in found.response_s_by_size.items()))
    with pytest.raises(SpecificationError, match=f"arrival_rate: .* must be < {limit.throughput:g}"):
        gang_rows(nodes, mpl, sizes, 1.001 * limit.throughput, means, migration=migration)


def test_near_saturation_the_response_grows_as_one_over_what_is_left() -> None:
    limit = gang_saturation(2, 2, {1: 0.5, 2: 0.5}, 1.0).throughput
    near, nearer = (gang_rows(2, 2, {1: 0.5, 2: 0.5}, load * limit, 1.0).mean_response_s for load in (0.99, 0.999))
    assert nearer / near == pytest.approx(10, rel=0.02)


def test_sizes_are_counted_in_their_common_divisor() -> None:
    sizes, halves = {2: 0.5, 4: 0.5}, {1: 0.5, 2: 0.5}
    assert gang_rows(5, 2, sizes, 0.5, 1.0).mean_response_s == gang_rows(2, 2, halves, 0.5, 1.0).mean_response_s
    found, expected = gang_saturation(5, 2, sizes, 1.0), gang_saturation(2, 2, halves, 1.0)
    assert found.utilization == pytest.approx(expected.utilization * 4 / 5)


@pytest.mark.parametrize(("nodes", "sizes"), [(2, {1: 0.5, 2: 0.5}), (3, {1: 0.7, 3: 0.3})])
def test_the_number_of_gangs_in_each_column_says_all(
    nodes: int, sizes: Mapping[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = gang_rows(nodes, 2, sizes, 0.7, {1: 1.0, nodes: 0.8})
    monkeypatch.setattr(module._RowsChain, "_packed", lambda _, gangs: module.in_normal_order(compact(gangs)))
    everything = gang_rows(nodes, 2, sizes, 0.7, {1: 1.0, nodes: 0.8})
    assert everything.mean_response_s == pytest.approx(short.mean_response_s)
    assert everything.response_s_by_size == pytest.approx(short.response_s_by_size)


def test_lumping_does_not_change_the_means() -> None:
    chain = module._RowsChain(3, 1, {1: 0.4, 2: 0.3, 3: 0.3}, 0.9, 1.0, False)
    means = []
    for states in (chain.lumped(), chain_of(chain, Phase((), 0))):
        found = solve(states)
        means.append((found.mean(lambda phase: len(phase.gangs), 1.0), found.mean(lambda phase: phase.head, 0.0)))
    assert len(chain.lumped().phases) < len(chain_of(chain, Phase((), 0)).phases)
    assert means[0] == pytest.approx(means[1])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"nodes": 0}, "nodes: 0 is not allowed"),
        ({"mpl": 0}, "mpl: 0 is not allowed"),
        ({"sizes": {5: 1.0}}, "sizes: 5 is not allowed; it must be a whole number >= 1 and <= 4 nodes"),
        ({"sizes": {1: 0.5}}, "probabilities that sum to 0.5"),
        ({"sizes": {1: 1.5}}, "probability of 1: 1.5 is not allowed"),
        ({"arrival_rate": 0}, "arrival_rate: 0 is not allowed"),
        ({"mean_run_s": {1: 1.0}}, "a mapping without size 2 is not allowed"),
        ({"mean_run_s": 0.0}, "mean_run_s: 0.0 is not allowed"),
        ({"migration": True, "sizes": {1: 0.5, 2: 0.5}}, "migration: sizes other than"),
        ({"mpl": 8, "nodes": 4, "sizes": {1: 0.5, 3: 0.5}}, "more than 200 states"),
        ({"mpl": 2, "sizes": {2: 0.5, 4: 0.5}}, "phases are not allowed; it must have <= 3"),
    ],
)
def test_what_the_theory_of_rows_refuses(change: dict[str, object], match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clustermodel.theory.matrix_geometric.MOST_STATES", 200)
    monkeypatch.setattr("clustermodel.theory.matrix_geometric.MOST_PHASES", 3)
    arguments = {"nodes": 4, "mpl": 1, "sizes": {1: 0.5, 2: 0.5}, "arrival_rate": 0.1, "mean_run_s": 1.0, **change}
    with pytest.raises(SpecificationError, match=match):
        gang_rows(**arguments)  # type: ignore[arg-type]
