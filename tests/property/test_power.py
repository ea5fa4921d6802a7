"""Random cases under a power cap and with idle nodes that are switched off, checked from what gangs held and what failed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from clustermodel import Machine, Power, Result
from clustermodel.measure.energy import microwatts
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import UNKNOWN
from tests.gang_runs import GangCase, gang_cases, run, seen_in_time
from tests.outside_site import differences_of_site
from tests.property.strategies import cases
from tests.property.test_failures import DEDICATED, failing, storing
from tests.property.test_site_cases import POLICIES, site_cases

IN_TIME = ("gs", "bgs", "mgs", "mbgs", "adaptive")

slow = (HealthCheck.too_slow, HealthCheck.data_too_large)


@st.composite
def powers(draw: st.DrawFn) -> Power:
    """Return what nodes draw."""
    idle = draw(st.sampled_from((0, 1, 100)))
    return Power(
        busy_w=idle + draw(st.sampled_from((1, 50, 250.5))),
        idle_w=idle,
        switching_w=draw(st.sampled_from((None, idle, 400))),
        down_w=draw(st.sampled_from((0, 0, 120))),
        off_w=draw(st.sampled_from((0, 5))),
        boot_s=draw(st.sampled_from((0, 1, 3))),
        boot_w=draw(st.sampled_from((None, 500))),
    )


@st.composite
def capped(draw: st.DrawFn, machine: Machine, *, in_time: bool = False) -> Machine:
    """Return the machine under a cap, at which some nodes may be in use or all.

    Types of nodes may have powers of their own, unless nodes are shared ``in_time``.
    """
    machine = replace(machine, power=draw(powers()))
    if machine.node_types and not in_time and draw(st.booleans()):
        machine = replace(machine, node_types=[replace(each, power=draw(powers())) for each in machine.node_types])
    nodes = [high - low for bounds, _, _ in machine.draws for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    of_ranges = [draws for bounds, *draws in machine.draws for _ in bounds[::2]]
    least = sum(size * unused for size, (unused, _) in zip(nodes, of_ranges, strict=True))
    all_in_use = sum(size * most for size, (_, most) in zip(nodes, of_ranges, strict=True))
    one = min(most - unused for unused, most in of_ranges)
    cap = draw(st.integers(least + one, max(all_in_use, least + one)))
    return replace(machine, power_cap_w=-(-cap // 1000) / 1000)  # in whole milliwatts, as a float holds them


def intervals(result: Result) -> Iterator[tuple[int, int, dict[int, str]]]:
    """Yield begin and end of each interval in which nothing changes, and the nodes in use and those that are down."""
    records, ledger = result.records, result.ledger
    ranges, outages = records.node_ranges, records.outages
    held = list(zip(*(column.tolist() for column in ranges[1:]), strict=True))
    down = [(node, start, ledger.end if end == UNKNOWN else end) for node, start, end in zip(*(c.tolist() for c in outages))]  # noqa: B905
    times = {ledger.start, ledger.end, *(time for *_, since, until in held for time in (since, until))}
    times |= {time for _, *both in down for time in both if ledger.start <= time <= ledger.end}
    for begin, end in zip(sorted(times), sorted(times)[1:], strict=False):
        doing = {node: "down" for node, since, until in down if since <= begin < until}
        for first, nodes, since, until in held:
            if since <= begin < until:
                doing |= dict.fromkeys(range(first, first + nodes), "in use")
        yield begin, end, doing


def require_below_cap(result: Result) -> None:
    """Check that whatever the gangs did at any time, all nodes together drew at most what the cap allows."""
    machine = result.machine
    draws = {}
    for power, sets in machine.powers.items():
        busy = max(power.busy, power.switching, power.idle)
        for bounds in sets:
            for low, high in zip(bounds[::2], bounds[1::2], strict=True):
                draws |= {node: {"in use": busy, "down": power.down} | {"idle": power.idle} for node in range(low, high)}
    for begin, end, doing in intervals(result):
        watts = sum(draws[node][doing.get(node, "idle")] for node in range(machine.processors))
        assert watts <= round(machine.power_cap_w * 1e6), f"from {begin} to {end}"


@settings(max_examples=cases(200), deadline=None, suppress_health_check=slow)
@given(policy=st.sampled_from(POLICIES), data=st.data())
def test_no_instant_is_above_the_cap(policy: str, data: st.DataObject) -> None:
    case = data.draw(site_cases(policy).filter(lambda case: not case.machine.has_shared_nodes))
    machine = data.draw(capped(case.machine, in_time=policy in IN_TIME))
    result = replace(case, machine=machine).run(policy)
    event(f"rejected: {(result.jobs['status'] == 'rejected').any()}, waits: {(result.jobs['power_cap_wait_s'] > 0).any()}")
    differences = differences_of_site(result, case.jobs, case.arrays, [])  # it rejects no job because of the cap
    assert [text for text in differences if "rejected" not in text and "is held at" not in text] == []
    require_below_cap(result)
    assert (result.jobs["power_cap_wait_s"] <= result.jobs["wait_s"].fillna(0)).all() or result.machine.failures is not None
    if result.slices is not None:
        assert seen_in_time(replace(case, machine=machine).run(policy, "node")) == seen_in_time(result)


_CASES = failing(gang_cases(perhaps_none_runs=False), in_rows=False)
_KEEPING_NOTHING_IN_MEMORY = [name for name in DEDICATED if name not in ("ss", "pv-easy:mode=suspend", "server-filling")]


@st.composite
def switched_off(draw: st.DrawFn) -> GangCase:
    """Return a case in which idle nodes are switched off, perhaps under a cap."""
    case = draw(_CASES | storing(_CASES, in_rows=False))
    unit = case.machine.time_slicing.quantum_s
    costs = replace(case.machine.checkpointing, max_tasks_per_slice=case.machine.checkpointing.max_tasks_per_slice or None)
    machine = replace(case.machine, checkpointing=costs, power=Power(busy_w=3, idle_w=1, off_w=0.5))
    if draw(st.booleans()):
        machine = draw(capped(machine))
    assert machine.power is not None
    boot = draw(st.sampled_from((0, 1e-6, unit / 3, unit, 5 * unit)))
    after = draw(st.sampled_from((1e-6, unit / 2, unit, 10 * unit)))
    machine = replace(
        machine, power_cap_w=None, power=replace(machine.power, boot_s=round(boot, 6)), idle_off_s=max(after, 1e-6)
    )
    if draw(st.booleans()):
        nodes, (_, unused, most) = machine.nodes, machine.draws[0]
        machine = replace(machine, power_cap_w=(nodes * unused + draw(st.integers(1, nodes)) * (most - unused)) / 1e6)
    return GangCase(machine, case.rows)


def off_and_booting(result: Result) -> tuple[int, int]:
    """Return the node-ticks in which nodes were off, and in which they booted, node by node."""
    records, ledger, machine = result.records, result.ledger, result.machine
    after, boot = machine.idle_off, machine.boot
    assert after is not None
    stays: list[list[tuple[int, int, bool]]] = [[] for _ in range(machine.nodes)]
    for _, first, nodes, since, until in zip(*(column.tolist() for column in records.node_ranges), strict=True):
        for node in range(first, first + nodes):
            stays[node].append((since, until, True))
    for node, start, end in zip(*(column.tolist() for column in records.outages), strict=True):
        stays[node].append((start, ledger.end if end == UNKNOWN else end, False))
    off = booting = 0
    for of_node in stays:
        goes_off = after  # when the node is off, unless something happens before
        for since, until, by_gang in [*sorted(of_node), (max(ledger.end, 0), 0, False)]:
            is_off = goes_off <= since
            if is_off:
                off += max(min(since, ledger.end) - max(goes_off, ledger.start), 0)
            boots = is_off and by_gang and boot > 0
            booting += min(boot, until - since) if boots else 0
            goes_off = until if boots and until < since + boot else until + after
    return off, booting


@settings(max_examples=cases(200), deadline=None, suppress_health_check=slow)
@given(case=switched_off(), policy=st.sampled_from(_KEEPING_NOTHING_IN_MEMORY))
def test_nodes_are_off_when_they_have_been_idle_for_long_enough(case: GangCase, policy: str) -> None:
    result = run(case, policy)
    off, boot = (sum(result.ledger.amount(account)) for account in (Account.OFF, Account.BOOT))
    event(f"off: {off > 0}, boots: {boot > 0}")
    assert (off, boot) == off_and_booting(result)
    if case.machine.power_cap_w is not None:
        require_below_cap(result)
    power: Any = case.machine.power
    energy = sum(microwatts(power, account) * sum(result.ledger.amount(account)) for account in Account)
    assert sum(result.power_draw.picojoules) == energy
    at_worst = max(power.busy, power.switching, power.booting, power.idle, power.down, power.off)
    assert energy <= at_worst * result.ledger.capacity


@settings(max_examples=cases(60, fewest=8), deadline=None, suppress_health_check=slow)
@given(case=switched_off(), policy=st.sampled_from(DEDICATED))
def test_every_policy_copes_with_nodes_that_boot(case: GangCase, policy: str) -> None:
    result = run(case, policy)
    assert np.isin(result.jobs["status"], ["completed", "killed", "rejected"]).all()


@settings(max_examples=cases(60, fewest=8), deadline=None, suppress_health_check=slow)
@given(case=gang_cases(), policy=st.sampled_from(("fcfs", "easy", "conservative", "slack", "ss", "D-NG")))
def test_nodes_that_are_never_idle_for_long_enough_change_nothing(case: GangCase, policy: str) -> None:
    machine = replace(case.machine, power=Power(busy_w=2, idle_w=1), idle_off_s=1e9)
    assert seen_in_time(run(GangCase(machine, case.rows), policy)) == seen_in_time(
        run(GangCase(replace(machine, idle_off_s=None), case.rows), policy)
    )
