"""Reservations where gangs share nodes in time: their begins and ends cut no slice, in both fidelities."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import ContextSwitch, Job, Machine, Reservation, Scenario, TimeSlicing, Workload
from clustermodel.ticks import TICKS_PER_SECOND
from tests.gang_runs import POLICIES, GangCase, gang_cases, run, seen_in_time, spans
from tests.property.strategies import cases

quick = settings(max_examples=cases(300), suppress_health_check=[HealthCheck.too_slow])


@st.composite
def windows(draw: st.DrawFn, nodes: int) -> Reservation:
    """Return a reservation of some nodes that no job of these may use, which may recur."""
    low = draw(st.integers(0, nodes - 1))
    begin, length = draw(st.integers(0, 40)) + draw(st.sampled_from((0.0, 0.3))), draw(st.integers(1, 30))
    every = draw(st.none() | st.integers(length + 1, length + 60))
    return Reservation(nodes=f"{low}-{draw(st.integers(low, nodes - 1))}", start_s=begin, end_s=begin + length, every_s=every)


@st.composite
def cases_with_windows(draw: st.DrawFn) -> GangCase:
    case = draw(gang_cases(units=(TICKS_PER_SECOND,), largest=6))
    reservations = tuple(draw(st.lists(windows(case.machine.nodes), min_size=1, max_size=3)))
    return case._replace(machine=replace(case.machine, reservations=reservations))


@settings(quick, max_examples=cases(600))
@given(case=cases_with_windows(), policy=st.sampled_from(POLICIES))
def test_both_fidelities_agree(case: GangCase, policy: str) -> None:
    fast = run(case, policy)
    if fast.slices is not None:
        assert seen_in_time(fast) == seen_in_time(run(case, policy, fidelity="node"))


@settings(quick, max_examples=cases(300))
@given(case=gang_cases(units=(TICKS_PER_SECOND,), largest=6), policy=st.sampled_from(("gs", "mgs")), data=st.data())
def test_windows_that_bar_no_job_change_nothing(case: GangCase, policy: str, data: st.DataObject) -> None:
    reservations = data.draw(st.lists(windows(case.machine.nodes), min_size=1, max_size=3))
    allowed = tuple(replace(each, users=("-1",)) for each in reservations)  # the user of all jobs
    users = {row.id: "-1" for row in case.rows}
    plain = Scenario(machine=case.machine, workload=Workload(case.rows), policy=policy).run()
    workload = Workload(case.rows, names={"user": users})
    around = Scenario(machine=replace(case.machine, reservations=allowed), workload=workload, policy=policy).run()
    assert spans(around) == spans(plain)


def test_gangs_run_although_windows_come_sooner_than_a_switch_is_over() -> None:
    machine = Machine(
        nodes=2,
        time_slicing=TimeSlicing(quantum_s=5, mpl=2),
        context_switch=ContextSwitch(seconds=2, charge="every-slice"),
        reservations=[Reservation(nodes="1", start_s=0.5, end_s=1, every_s=1)],
    )
    jobs = [Job(id=number, nodes=1, submit_s=0, run_s=6) for number in (1, 2)]
    for fidelity in ("fast", "node"):
        ends = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy="gs", fidelity=fidelity).run().jobs["end_s"]
        assert ends.tolist() == [15, 20]  # each has two slices, 3 s of which it executes
