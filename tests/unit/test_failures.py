"""Random failures: reproducible, in order, never of a node that is down, and with the laws of renewal processes."""

from collections import defaultdict
from itertools import islice, pairwise, takewhile
from math import gamma
from typing import Any

import numpy as np
import pytest

from clustermodel import Failure, Job, Machine, NodeFailures, Scenario, SpecificationError, Workload, to_ticks
from clustermodel.experiment.scenario import random_stream
from clustermodel.machine.failure import FailureSource
from clustermodel.sim import node_failures

HOUR = 3600.0


def until(spec: NodeFailures, nodes: int, horizon_s: float, seed: int = 1) -> list[Failure]:
    end = to_ticks(horizon_s)
    return list(takewhile(lambda failure: failure.time < end, spec.failures(nodes, random_stream(seed, "failures"))))


def by_node(failures: list[Failure]) -> dict[int, list[Failure]]:
    nodes: dict[int, list[Failure]] = defaultdict(list)
    for failure in failures:
        nodes[failure.node].append(failure)
    return nodes


SPECS = [
    NodeFailures(mtbf_s=10.0, repair_s=5.0),
    NodeFailures(mtbf_s=10.0, repair_s=5.0, per="machine"),
    NodeFailures(mtbf_s=10.0, repair_s=0.0, distribution="weibull", shape=0.5),
    NodeFailures(mtbf_s=2.0, repair_s=50.0, per="machine"),
    NodeFailures(mtbf_s=1e-6, repair_s=2e-6),  # a tick
    NodeFailures(mtbf_s=1e-6, repair_s=2e-6, per="machine"),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_failures_are_in_order_and_never_of_a_node_that_is_down(spec: NodeFailures) -> None:
    failures = list(islice(spec.failures(7, random_stream(3, "failures")), 2000))
    assert all((a.time, a.node) < (b.time, b.node) for a, b in pairwise(failures))
    for own in by_node(failures).values():
        assert all(a.time + a.repair < b.time for a, b in pairwise(own))
    assert {type(value) for failure in failures for value in failure} == {int}
    assert failures[0].time >= 0
    assert all(failure.repair >= 0 for failure in failures)
    assert {failure.node for failure in failures} == set(range(7))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_one_seed_gives_one_sequence(spec: NodeFailures) -> None:
    first, again, other = (list(islice(spec.failures(5, random_stream(seed, "failures")), 50)) for seed in (1, 1, 2))
    assert first == again != other


def test_the_repair_times_do_not_change_the_times_between_failures() -> None:
    def up_times(repair_s: float) -> list[int]:
        own = list(islice(NodeFailures(mtbf_s=100.0, repair_s=repair_s).failures(1, random_stream(1, "failures")), 30))
        return [b.time - a.time - a.repair for a, b in pairwise(own)]

    assert up_times(0.0) == up_times(7.0)


@pytest.mark.parametrize("horizon", [0.1, 5.0], ids=["a tenth of the MTBF", "five times the MTBF"])
@pytest.mark.parametrize("shape", [0.6, 1.0, 3.0])
def test_from_time_0_on_nodes_fail_once_per_mean_time_between_failures(shape: float, horizon: float) -> None:
    """Of a stationary renewal process that is exact for every horizon; the interval is four standard deviations or more."""
    nodes, spec = 20_000, NodeFailures(mtbf_s=HOUR, repair_s=0.0, distribution="weibull", shape=shape)
    count = len(until(spec, nodes, horizon * HOUR))
    squared_cv = gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1
    assert count == pytest.approx(nodes * horizon, abs=4 * (nodes * horizon * max(1.0, squared_cv)) ** 0.5)


@pytest.mark.parametrize("per", ["node", "machine"])
@pytest.mark.parametrize("shape", [0.7, 1.0, 2.0])
def test_times_between_failures_have_the_moments_of_the_distribution(shape: float, per: Any) -> None:
    spec = NodeFailures(mtbf_s=HOUR, repair_s=0.0, distribution="weibull", shape=shape, per=per)
    own = list(islice(spec.failures(1, random_stream(4, "failures")), 50_000))
    times = np.diff([failure.time for failure in own]) / to_ticks(HOUR)
    assert times.mean() == pytest.approx(1, rel=0.015)
    assert (times**2).mean() == pytest.approx(gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2, rel=0.04)
    assert np.mean(times > spec.scale_s / HOUR) == pytest.approx(np.exp(-1), abs=0.006)


@pytest.mark.parametrize("shape", [0.7, 1.0])
def test_unavailability_is_repair_over_mtbf_and_repair(shape: float) -> None:
    """The beginning, when more nodes are up than later, is left out."""
    spec = NodeFailures(mtbf_s=9 * HOUR, repair_s=HOUR, distribution="weibull", shape=shape)
    nodes, start, end = 400, to_ticks(50 * HOUR), to_ticks(550 * HOUR)
    down = sum(
        max(0, min(failure.time + failure.repair, end) - max(failure.time, start)) for failure in until(spec, nodes, 550 * HOUR)
    )
    assert down / (nodes * (end - start)) == pytest.approx(0.1, rel=0.03)


def test_a_failure_of_the_machine_is_of_any_node_that_is_up() -> None:
    """Ten nodes of which about five are down: the next one to fail is uniform among the others, whatever their numbers."""
    spec = NodeFailures(mtbf_s=1.0, repair_s=5.0, per="machine")
    rng = np.random.default_rng(7)  # makes a place among m nodes a number from 0 to 1
    repaired, places = [0] * 10, []
    for failure in islice(spec.failures(10, random_stream(6, "failures")), 30_000):
        up = [node for node, time in enumerate(repaired) if time < failure.time]
        places.append((up.index(failure.node) + rng.random()) / len(up))
        repaired[failure.node] = failure.time + failure.repair
    assert np.mean(places) == pytest.approx(0.5, abs=0.006)
    assert np.var(places) == pytest.approx(1 / 12, abs=0.006)


def test_a_machine_without_a_node_that_is_up_has_no_failures() -> None:
    spec = NodeFailures(mtbf_s=1.0, repair_s=100.0, per="machine")
    times = [failure.time for failure in islice(spec.failures(2, random_stream(1, "failures")), 100)]
    assert all(c - a > to_ticks(100.0) for a, c in zip(times, times[2:], strict=False))


def test_it_is_a_source_of_failures() -> None:
    assert isinstance(NodeFailures(mtbf_s=1.0, repair_s=0.0), FailureSource)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mtbf_s": 0}, "NodeFailures.mtbf_s: 0 is not allowed; it must be a finite number of seconds > 0"),
        ({"mtbf_s": "a day"}, "NodeFailures.mtbf_s: 'a day' is not a number"),
        ({"repair_s": -1}, "NodeFailures.repair_s: -1 is not allowed"),
        ({"per": "rack"}, "NodeFailures.per: 'rack' is not allowed; it must be one of node, machine"),
        ({"distribution": "weibul"}, "NodeFailures.distribution: 'weibul' is not allowed (did you mean 'weibull'?)"),
        (
            {"distribution": "weibull", "shape": 0},
            "NodeFailures.shape: 0 is not allowed; it must be a number >= 0.1",
        ),
        ({"shape": 0.7}, "NodeFailures.shape: 0.7 is not allowed with exponential times"),
    ],
)
def test_bad_fields_are_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        NodeFailures(**{"mtbf_s": 10.0, "repair_s": 1.0, **fields})
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_the_number_of_nodes_is_checked_before_the_first_failure_is_asked_for() -> None:
    with pytest.raises(SpecificationError, match=r"^nodes: 0 is not allowed"):
        NodeFailures(mtbf_s=1.0, repair_s=0.0).failures(0, random_stream(1, "failures"))


def test_each_node_has_a_clock_on_ten_million_nodes_at_most() -> None:
    """A thousand million clocks ended in a MemoryError of numpy."""
    failures = NodeFailures(mtbf_s=1e10, repair_s=1.0)
    first = list(islice(failures.failures(1_000_000, random_stream(1, "failures")), 100))
    assert sorted(first, key=lambda failure: (failure.time, failure.node)) == first
    with pytest.raises(SpecificationError) as refused:
        failures.failures(10_000_001, random_stream(1, "failures"))
    assert str(refused.value) == (
        "NodeFailures.per: 'node' is not allowed on 10,000,001 nodes; it must be 'machine', or nodes <= 10,000,000"
    )


def test_failures_that_let_no_job_start_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_failures, "MOST_FAILURES", 300)
    machine = Machine(nodes=8, failures=NodeFailures(mtbf_s=0.001, repair_s=0))
    with pytest.raises(SpecificationError, match=r"^Machine.failures: nodes have failed 300 times by 0\.0\d+ s since a job"):
        Scenario(
            machine=machine, workload=Workload.from_jobs([Job(id=1, submit_s=3600, nodes=1, run_s=1)]), policy="fcfs"
        ).run()
