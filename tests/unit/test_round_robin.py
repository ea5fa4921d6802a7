"""Processor sharing and round robin: closed forms, Markov chains, a simulation of a few lines and the simulator agree."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from clustermodel import ContextSwitch, Machine, Scenario, SpecificationError, TimeSlicing, Workload, interval
from clustermodel.machine.time_slicing import AT_EVENTS, AtEvents
from clustermodel.theory.processor_sharing import (
    generalized_ps_mean_slowdown,
    mg1_ps_mean_response,
    mg1_ps_mean_slowdown,
    mgc_ps_mean_slowdown,
)
from clustermodel.theory.queueing import mg1_mean_wait, mmc_mean_wait
from clustermodel.theory.round_robin import mg1_round_robin_mean_response, mm1_round_robin_mean_response, optimal_slice
from clustermodel.theory.sliced_node import sliced_node_mean_response
from clustermodel.workload.job import JobRow
from tests.round_robin import round_robin

CHARGES = ("on-change", "every-slice")
RULES = ("cut", "queue")
HYPER = {40.0: 0.8, 340.0: 0.2}
"""Mean 100, squared coefficient of variation 3.88."""


def test_switches_slow_processor_sharing_down() -> None:
    # rho = 0.8, CS = 0.05.  Every slice: speed 0.95 always, 1 / (0.95 - 0.8).  On change: r = 0.8 / 0.95 = 16 / 19, so
    # 1 / (3 / 19 x (3 / 19 + 4 / 5)) = 1805 / 273.
    assert mg1_ps_mean_slowdown(0.8, switch=0.05, charge="every-slice") == pytest.approx(1 / 0.15)
    assert mg1_ps_mean_slowdown(0.8, switch=0.05) == pytest.approx(1805 / 273)
    assert mg1_ps_mean_response(0.008, 100.0, switch=0.05) == pytest.approx(100 * 1805 / 273)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_processor_sharing_is_a_birth_and_death_process(load: float) -> None:
    rates = [1.0, 0.7, 1.3, 1.1]
    weights = [1.0]
    for n in range(1, 3_000):
        weights.append(weights[-1] * load / rates[min(n, len(rates)) - 1])
    jobs = np.dot(np.arange(len(weights)), weights) / np.sum(weights)
    assert generalized_ps_mean_slowdown(load, rates) == pytest.approx(jobs / load)
    assert generalized_ps_mean_slowdown(load, [1.0]) == pytest.approx(1 / (1 - load))


@pytest.mark.parametrize("servers", [1, 2, 7])
def test_equal_shares_of_several_nodes_are_m_m_c_without_switches(servers: int) -> None:
    load = 0.85 * servers
    assert mgc_ps_mean_slowdown(servers, load) == pytest.approx(1 + mmc_mean_wait(servers, load, 1.0))
    # Switches are charged when more jobs than nodes are there, or always: between no switch and a slower machine.
    free, on_change, always = (
        mgc_ps_mean_slowdown(servers, load, switch=switch, charge=charge)
        for switch, charge in ((0.0, "on-change"), (0.05, "on-change"), (0.05, "every-slice"))
    )
    assert free < on_change < always
    assert always == pytest.approx((1 + mmc_mean_wait(servers, load / 0.95, 1.0)) / 0.95)


@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("arrivals", RULES)
def test_short_slices_are_processor_sharing_and_free_switches_m_m_1(charge: str, arrivals: str) -> None:
    short = mm1_round_robin_mean_response(0.007, 100.0, 1e-3, 5e-5, charge=charge, arrivals=arrivals)
    assert short == pytest.approx(mg1_ps_mean_response(0.007, 100.0, switch=0.05, charge=charge), rel=1e-4)
    for slice_s in (1.0, 80.0, inf):
        free = mm1_round_robin_mean_response(0.007, 100.0, slice_s, 0.0, charge=charge, arrivals=arrivals)
        assert free == pytest.approx(100 / 0.3)


def test_without_an_end_of_slices_round_robin_is_first_come_first_served() -> None:
    # Service is a switch of 5 and the run time, if arrivals wait.
    expected = 105 + mg1_mean_wait(0.007, 105.0, 100.0**2)
    for charge in CHARGES:
        assert mm1_round_robin_mean_response(0.007, 100.0, inf, 5.0, charge=charge, arrivals="queue") == pytest.approx(expected)
    variance = 2 * (0.8 * 40**2 + 0.2 * 340**2) - 100**2
    expected = 105 + mg1_mean_wait(0.007, 105.0, variance)
    assert mg1_round_robin_mean_response(0.007, HYPER, inf, 5.0) == pytest.approx(expected)
    assert sliced_node_mean_response(0.007, HYPER, inf, 0.0, mpl=1) == pytest.approx(
        100 + mg1_mean_wait(0.007, 100.0, variance)
    )


@pytest.mark.parametrize("slice_s", [30.0, 80.0, 200.0])
def test_exponential_run_times_are_a_special_case(slice_s: float) -> None:
    closed = mm1_round_robin_mean_response(0.005, 100.0, slice_s, 8.0, charge="every-slice", arrivals="queue")
    assert mg1_round_robin_mean_response(0.005, {100.0: 1.0}, slice_s, 8.0) == pytest.approx(closed)
    assert mg1_round_robin_mean_response(0.005, {100.0: 0.3, 100.000001: 0.7}, slice_s, 8.0) == pytest.approx(closed)
    for charge in CHARGES:
        closed = mm1_round_robin_mean_response(0.005, 100.0, slice_s, 8.0, charge=charge)
        for mpl in (2, 3, 5):
            assert sliced_node_mean_response(0.005, {100.0: 1.0}, slice_s, 8.0, mpl=mpl, charge=charge) == pytest.approx(closed)
        two_branches = sliced_node_mean_response(0.005, {100.0: 0.3, 100.000001: 0.7}, slice_s, 8.0, mpl=3, charge=charge)
        assert two_branches == pytest.approx(closed)


def test_pollaczek_khinchine_of_run_times_with_switches() -> None:
    # Service is X + s K, K = ceil(X / q): moments by summing over slices, independent of the module's integrals.
    rate, window, switch = 0.006, 60.0, 10.0
    k = np.arange(1, 400)
    stay = np.exp(-window / 100.0)
    chance = stay ** (k - 1) * (1 - stay)  # of K = k; X - (k - 1) q is an exponential below q
    first = 100.0 - window * stay / (1 - stay)
    second = 2 * 100.0 * first - window**2 * stay / (1 - stay)
    base = (k - 1) * window + k * switch
    mean, square = float(chance @ (base + first)), float(chance @ (base**2 + 2 * base * first + second))
    expected = mean + mg1_mean_wait(rate, mean, square - mean**2)
    found = mm1_round_robin_mean_response(rate, 100.0, window + switch, switch, charge="every-slice", arrivals="queue")
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("charge", CHARGES)
def test_slices_do_not_help_where_run_times_are_exponential(charge: str) -> None:
    best = optimal_slice(lambda t: mm1_round_robin_mean_response(0.007, 100.0, t, 0.5, charge=charge), 1.0, 500.0)
    assert best.slice_s == pytest.approx(500.0, rel=1e-3)


def test_slices_help_where_run_times_vary_much() -> None:
    def response(slice_s: float) -> float:
        return mg1_round_robin_mean_response(0.007, HYPER, slice_s, 0.5)

    best = optimal_slice(response, 20.0, 2_000.0, grid=7)
    assert 20 < best.slice_s < 100
    for factor in (0.8, 0.97, 1.03, 1.25):
        assert response(factor * best.slice_s) > best.mean_response_s
    in_rows = optimal_slice(lambda t: sliced_node_mean_response(0.005, HYPER, t, 5.0, mpl=2), 6.0, 5_000.0, grid=9)
    assert 50 < in_rows.slice_s < 500
    # More rows let more short jobs pass long ones.
    by_mpl = [sliced_node_mean_response(0.005, HYPER, 50.0, 0.5, mpl=mpl) for mpl in (1, 2, 3, 4)]
    assert by_mpl == sorted(by_mpl, reverse=True)


def jobs(seed: int, count: int, load: float, *, hyper: bool) -> tuple[list[int], list[int]]:
    """Return submissions and run times with a mean of 100, in microseconds."""
    rng = np.random.default_rng(seed)
    means = np.where(rng.random(count) < 0.8, 40.0, 340.0) if hyper else 100.0
    submit, run = np.cumsum(rng.exponential(100 / load, count)), rng.exponential(means, count)
    return (submit * 1e6).astype(int).tolist(), (run * 1e6).astype(int).tolist()


@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("mpl", [1, 2, 4, 64])
@pytest.mark.parametrize("at_events", AT_EVENTS)
def test_gs_on_one_node_is_that_round_robin_job_for_job(charge: str, mpl: int, at_events: AtEvents) -> None:
    # Long switches, so that arrivals cut many of them short.
    submit, run = jobs(1, 400, 0.6, hyper=True)
    rows = [JobRow(s, n, 1, r, r, -1, -1, 0, -1) for n, (s, r) in enumerate(zip(submit, run, strict=True))]
    slicing = TimeSlicing(quantum_s=30, mpl=mpl, at_events=at_events)
    machine = Machine(nodes=1, time_slicing=slicing, context_switch=ContextSwitch(seconds=8, charge=charge))
    found = Scenario(machine=machine, workload=Workload(rows), policy="gs").run().jobs["response_s"]
    expected = round_robin(submit, run, 30_000_000, 8_000_000, charge=charge, arrivals=at_events, mpl=mpl)
    assert found.to_numpy() == pytest.approx(np.array(expected) / 1e6, abs=1e-9)


def simulated(seed: int, *, hyper: bool, charge: str, arrivals: str, switch_s: int, mpl: int = 10**9) -> float:
    submit, run = jobs(seed, 6_000, 0.5, hyper=hyper)
    responses = round_robin(submit, run, 80_000_000, switch_s * 1_000_000, charge=charge, arrivals=arrivals, mpl=mpl)
    return float(np.mean(responses[300:])) / 1e6


def check(expected: float, simulate: Callable[[int], float]) -> None:
    found = interval([simulate(seed) for seed in range(24)], level=0.99)
    assert expected in found
    assert found.half < 0.1 * expected


@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("arrivals", RULES)
def test_exponential_run_times_against_a_simulation(charge: str, arrivals: str) -> None:
    expected = mm1_round_robin_mean_response(0.005, 100.0, 80.0, 10.0, charge=charge, arrivals=arrivals)
    check(expected, lambda seed: simulated(seed, hyper=False, charge=charge, arrivals=arrivals, switch_s=10))


def test_hyperexponential_run_times_against_a_simulation() -> None:
    expected = mg1_round_robin_mean_response(0.005, HYPER, 80.0, 3.0)
    check(expected, lambda seed: simulated(seed, hyper=True, charge="every-slice", arrivals="queue", switch_s=3))
    expected = sliced_node_mean_response(0.005, HYPER, 80.0, 3.0, mpl=4)
    check(expected, lambda seed: simulated(seed, hyper=True, charge="on-change", arrivals="cut", switch_s=3, mpl=4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mg1_ps_mean_slowdown(0.96, switch=0.05), "load: 0.96 is not allowed; it must be > 0 and < 0.95"),
        (lambda: mg1_ps_mean_slowdown(0.5, switch=1.0),
         "switch: 1.0 is not allowed; it must be a number >= 0 and < 1, a share of the time slice"),
        (lambda: mg1_ps_mean_slowdown(0.5, charge="never"),
         "charge: 'never' is not allowed; it must be one of on-change, every-slice"),
        (lambda: generalized_ps_mean_slowdown(0.5, []),
         "rates: [] is not allowed; it must be a sequence of finite numbers > 0"),
        (lambda: mm1_round_robin_mean_response(0.005, 100.0, 10.0, 10.0),
         "switch_s: 10.0 is not allowed; it must be a number of seconds >= 0 and < 10, the slice"),
        (lambda: mm1_round_robin_mean_response(0.005, 100.0, 10.0, 1.0, arrivals="wait"),
         "arrivals: 'wait' is not allowed; it must be one of cut, queue"),
        (lambda: mg1_round_robin_mean_response(0.005, HYPER, 1.0, 0.1),
         "slice_s: 1 is not allowed; it must be longer, for jobs may need 10,439 slices: use processor sharing"),
        (lambda: mg1_round_robin_mean_response(0.005, {100.0: 0.5}, 10.0, 0.1),
         "means_s: probabilities that sum to 0.5 are not allowed; their sum must be 1"),
        (lambda: sliced_node_mean_response(0.005, HYPER, 10.0, 0.1, mpl=8),
         "mpl: 8 is not allowed; mpl x 3^mpl, the number of states, must be <= 20,000"),
        (lambda: optimal_slice(lambda t: t, 5.0, 5.0), "longest_s: 5 is not allowed; it must be > 5, the shortest"),
    ],
)  # fmt: skip
def test_what_is_not_allowed(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        call()
    assert str(refused.value) == message


def test_a_queue_without_a_limit_is_refused() -> None:
    for unstable in (
        lambda: mm1_round_robin_mean_response(0.0096, 100.0, 10.0, 0.5),
        lambda: mm1_round_robin_mean_response(0.0096, 100.0, 10.0, 0.5, arrivals="queue"),
        lambda: mg1_round_robin_mean_response(0.0096, HYPER, 10.0, 0.5),
        lambda: sliced_node_mean_response(0.0096, HYPER, 10.0, 0.5, mpl=3),
        lambda: optimal_slice(lambda t: mm1_round_robin_mean_response(0.02, 100.0, t, 0.5), 1.0, 100.0),
    ):
        with pytest.raises(SpecificationError, match="is not allowed; it must be"):
            unstable()
