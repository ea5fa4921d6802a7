"""The energy of random runs against what each node did at each instant, from the tables of the results alone."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import Account, NodeType, Power, Price, Result
from clustermodel.measure.energy import cost_of, energy_by_account, energy_of_jobs, microwatts
from clustermodel.recording.run_attempts import UNKNOWN
from tests.outside_cases import Case, drawn
from tests.property.strategies import cases

DEDICATED: Final = (
    "easy", "conservative", "slack:awt=20", "pv-easy:mode=checkpoint", "pv-easy:mode=suspend", "server-filling", "srtf",
    "srsf:mode=kill", "las:mode=suspend", "R/L-NG",
)  # fmt: skip
RESIZING: Final = ("equipartition", "shrink-to-admit", "expand")
OF_NO_JOB: Final = (Account.IDLE, Account.RESERVED, Account.DOWN, Account.OFF)
IN_ROWS: Final = ("gs", "bgs", "mbgs", "adaptive")
PRICE: Final = Price(time_s=[0, 3, 7], price=[1, 5, -2], carbon=[100, 0, 300], every_s=11)
OVERHEADS: Final = list(Account)


def cases_of(policy: str) -> st.SearchStrategy[Case]:
    """Return random cases of rigid jobs on machines of which it is not known what they draw."""
    return st.integers(0, 10**9).map(lambda number: drawn(number, policy=policy, without=("power", "malleable jobs")))


def powers() -> st.SearchStrategy[Power]:
    """Return powers of whole and of broken watts."""
    watts = st.integers(0, 9) | st.sampled_from((0.3, 1 / 3))
    return st.builds(
        lambda idle, more, switching, down: Power(busy_w=idle + more, idle_w=idle, switching_w=switching, down_w=down),
        watts, watts, st.none() | watts, watts,
    )  # fmt: skip


def with_power(draw: Any, case: Case, *, differing: bool) -> Case:
    """Return a case in which it is known what nodes draw, perhaps each type something else."""
    types: list[NodeType] = [
        replace(each, power=draw(st.none() | powers()) if differing else None) for each in case.machine.node_types
    ]
    if differing and not types:
        types = [NodeType(name="p", nodes="0", power=draw(powers()), memory_gib=case.machine.node_memory_gib)]
    return replace(case, machine=replace(case.machine, power=draw(powers()), node_types=types))


def with_malleable_jobs(draw: Any, case: Case) -> Case:
    """Return a case on nodes of one speed, some of whose jobs may change their size."""
    types = [replace(each, speed=1) for each in case.machine.node_types]
    machine = replace(case.machine, node_types=types, on_failure=draw(st.sampled_from(("requeue", "shrink"))))
    shaped = machine.has_shared_nodes
    jobs = [
        job if shaped or draw(st.booleans()) else replace(job, malleable=True, resize_s=draw(st.sampled_from((None, 0, 3))))
        for job in case.jobs
    ]
    return replace(case, machine=machine, jobs=tuple(jobs))


def instants(result: Result) -> Iterator[tuple[int, int, dict[int, tuple[Account, int]]]]:
    """Yield each interval without changes, and what each processor that is not idle is charged to, and for which job."""
    records, ledger = result.records, result.ledger
    ranges, runs, held, down = records.node_ranges, records.runs, records.overheads, records.outages
    stays = list(zip(*(column.tolist() for column in (runs.job[ranges.run], *ranges[1:])), strict=True))
    spent = list(zip(*(column.tolist() for column in held), strict=True))
    failed = [
        (node, start, ledger.end if end == UNKNOWN else end)
        for node, start, end in zip(*(column.tolist() for column in down), strict=True)
    ]
    times = {ledger.start, ledger.end, *(time for stay in stays for time in stay[3:]), *(t for s in spent for t in s[:2])}
    times |= {time for _, *both in failed for time in both}
    for begin, end in pairwise(sorted(time for time in times if ledger.start <= time <= ledger.end)):
        states = {node: (Account.DOWN, -1) for node, start, until in failed if start <= begin < until}
        overhead = {job: OVERHEADS[account] for start, until, _, job, account in spent if start <= begin < until}
        for job, first, nodes, since, until in stays:
            if since <= begin < until:
                for node in range(first, first + nodes):
                    assert node not in states
                    states[node] = overhead.get(job, Account.USEFUL), job
        yield begin, end, states


def power_of_each(result: Result) -> dict[int, Power]:
    """Return what each processor draws."""
    sets = result.machine.powers.items()
    return {
        node: power
        for power, many in sets
        for bounds in many
        for low, high in zip(bounds[::2], bounds[1::2], strict=True)
        for node in range(low, high)
    }


def check_instant_by_instant(result: Result) -> None:
    machine, ledger = result.machine, result.ledger
    each, parts, of_jobs = power_of_each(result), [], [0] * len(result.records)
    assert sorted(each) == list(range(machine.processors))
    cost = carbon = 0.0
    for begin, end, states in instants(result):
        total = 0
        for node, power in each.items():
            account, job = states.get(node, (Account.IDLE, -1))
            energy = microwatts(power, account) * (end - begin)
            total += energy
            if job >= 0:
                of_jobs[job] += energy
        parts.append((begin, end, total))
        bounds = [*PRICE.steps(begin, end), (end, 0)]
        for (since, step), (until, _) in pairwise(bounds):
            share = total * (until - since) / (end - begin) / 3.6e18
            cost, carbon = cost + PRICE.price[step] * share, carbon + PRICE.carbon[step] * share / 1000
    amounts = energy_by_account(result.records, ledger, machine)
    assert sum(amounts.values()) == sum(total for *_, total in parts) == sum(result.power_draw.picojoules)
    assert energy_of_jobs(result.records, ledger, machine, None) == of_jobs
    found = cost_of(result.power_draw, PRICE)
    assert (found.energy_cost, found.carbon_kg) == (pytest.approx(cost, abs=1e-15), pytest.approx(carbon, abs=1e-15))


LIMITS: Final[Any] = {
    "deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}  # fmt: skip


@settings(max_examples=cases(80, fewest=8), **LIMITS)
@given(policy=st.sampled_from(DEDICATED), differing=st.booleans(), data=st.data())
def test_energy_is_what_nodes_draw_at_each_instant(policy: str, differing: bool, data: st.DataObject) -> None:
    case = with_power(data.draw, data.draw(cases_of(policy)), differing=differing)
    result, without = case.run(), replace(case, machine=plain(case)).run()
    assert result.jobs.drop(columns="energy_kwh").equals(without.jobs)
    check_instant_by_instant(result)
    assert_states_sum(result)


@settings(max_examples=cases(40, fewest=4), **LIMITS)
@given(policy=st.sampled_from(RESIZING), differing=st.booleans(), data=st.data())
def test_energy_of_jobs_that_change_size(policy: str, differing: bool, data: st.DataObject) -> None:
    case = with_power(data.draw, data.draw(cases_of(policy)), differing=differing)
    result = with_malleable_jobs(data.draw, case).run()
    check_instant_by_instant(result)
    assert_states_sum(result)


@settings(max_examples=cases(40, fewest=4), **LIMITS)
@given(policy=st.sampled_from(("easy", "pv-easy:mode=checkpoint", "las:mode=suspend")), data=st.data())
def test_energy_of_nodes_that_are_switched_off(policy: str, data: st.DataObject) -> None:
    case = with_power(data.draw, data.draw(cases_of(policy)), differing=False)
    assert case.machine.power is not None
    power = replace(case.machine.power, off_w=0.5, boot_s=data.draw(st.sampled_from((0, 2))), boot_w=7)
    machine = replace(case.machine, power=power, idle_off_s=data.draw(st.sampled_from((1, 8))))
    result = replace(case, machine=machine).run()
    amounts = energy_by_account(result.records, result.ledger, machine)
    assert sum(amounts.values()) == sum(result.power_draw.picojoules)
    held = sum(energy_of_jobs(result.records, result.ledger, machine, None))
    assert held == sum(amount for account, amount in amounts.items() if account not in OF_NO_JOB)
    assert_states_sum(result)


@settings(max_examples=cases(80, fewest=8), **LIMITS)
@given(policy=st.sampled_from(IN_ROWS), data=st.data())
def test_energy_in_rows_is_that_of_the_slices(policy: str, data: st.DataObject) -> None:
    case = with_power(data.draw, data.draw(cases_of(policy)), differing=False)
    result = case.run()
    amounts = energy_by_account(result.records, result.ledger, case.machine)
    assert sum(amounts.values()) == sum(result.power_draw.picojoules)
    if result.slices is not None:
        slow = case.run(fidelity="node")
        assert energy_by_account(slow.records, slow.ledger, case.machine) == amounts
        executed = sum(energy_of_jobs(result.records, result.ledger, case.machine, result.slices))
        assert executed == amounts[Account.USEFUL] + amounts[Account.LOST]
    assert_states_sum(result)


def plain(case: Case) -> Any:
    """Return the machine of a case without any power."""
    return replace(case.machine, power=None, node_types=[replace(each, power=None) for each in case.machine.node_types])


def assert_states_sum(result: Result) -> None:
    states = result.states
    joules = float((states["power_w"] * -states["time_s"].diff(-1)).sum())
    assert joules / 3.6e6 == pytest.approx(result.energy_kwh, rel=1e-9, abs=1e-15)
