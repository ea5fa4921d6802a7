"""Random cases in which idle nodes are switched off, perhaps under a power cap, checked from gangs and failures."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from clustermodel import Job, Power
from clustermodel.recording.ledger import Account
from tests.gang_runs import GangCase, gang_cases, run, seen_in_time
from tests.outside import differences
from tests.property.strategies import cases
from tests.property.test_failures import DEDICATED, failing, storing

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
        machine = replace(machine, power=draw(powers()))
    assert machine.power is not None
    boot = draw(st.sampled_from((0, 1e-6, unit / 3, unit, 5 * unit)))
    after = draw(st.sampled_from((1e-6, unit / 2, unit, 10 * unit)))
    machine = replace(machine, power=replace(machine.power, boot_s=round(boot, 6)), idle_off_s=max(after, 1e-6))
    if draw(st.booleans()):
        nodes, (_, unused, most) = machine.nodes, machine.draws[0]
        machine = replace(machine, power_cap_w=(nodes * unused + draw(st.integers(1, nodes)) * (most - unused)) / 1e6)
    return GangCase(machine, case.rows)


@settings(max_examples=cases(200), deadline=None, suppress_health_check=slow)
@given(case=switched_off(), policy=st.sampled_from(_KEEPING_NOTHING_IN_MEMORY))
def test_nodes_are_off_when_they_have_been_idle_for_long_enough(case: GangCase, policy: str) -> None:
    result = run(case, policy)
    off, boot = (sum(result.ledger.amount(account)) for account in (Account.OFF, Account.BOOT))
    event(f"off: {off > 0}, boots: {boot > 0}")
    assert differences(result, [Job.from_row(row) for row in case.rows]) == []
    power: Any = case.machine.power
    at_worst = max(power.busy, power.switching, power.booting, power.idle, power.down, power.off)
    assert sum(result.power_draw.picojoules) <= at_worst * result.ledger.capacity


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
