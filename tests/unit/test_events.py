"""What a job costs in events of SimPy, and processes that begin when they are told to."""

import pytest
import simpy

from clustermodel import Job, Machine, Scenario, Workload
from clustermodel.sim.events import Bell, Clock, InstantSettled, JobProcess


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_that_nothing_stops_costs_three_events(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    step = simpy.Environment.step
    monkeypatch.setattr(simpy.Environment, "step", lambda env: (steps.append(env.now), step(env))[1])

    def events(jobs: int) -> int:
        steps.clear()
        apart = Workload.from_jobs([Job(id=k, nodes=1, submit_s=100 * k + 1, run_s=10) for k in range(jobs)])
        Scenario(machine=Machine(nodes=1), workload=apart, policy=policy).run()
        return len(steps)

    assert events(20) - events(10) == 30


def test_who_waits_for_a_bell_goes_on_inside_the_event_that_rings_it_again_and_again() -> None:
    env, seen = Clock(), []
    bell = Bell(env)

    def life(name: str) -> simpy.events.ProcessGenerator:
        while True:
            yield bell
            seen.append((env.now, name))

    def rings() -> simpy.events.ProcessGenerator:
        for time in (3, 4):
            yield env.timeout(time)
            bell.ring()
            seen.append((env.now, "rung"))

    env.process(life("first"))
    env.process(life("second"))
    env.process(rings())
    env.run()
    assert seen == [(time, name) for time in (3, 7) for name in ("first", "second", "rung")]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_process_of_a_job_begins_when_it_is_told_to_and_is_alive_before(at_once: bool) -> None:
    env, seen = Clock(), []

    def life() -> simpy.events.ProcessGenerator:
        seen.append(env.now)
        yield env.timeout(3)
        return "done"

    process = JobProcess(env, life())
    env.run(until=5)
    assert (process.is_alive, seen) == (True, [])
    (process.go_on if at_once else process.go_on_in_turn)()
    assert seen == ([5] if at_once else [])
    assert env.run(until=process) == "done"
    assert (seen, env.now) == ([5], 8)


def test_a_process_of_a_job_begins_before_an_interrupt_of_the_same_time() -> None:
    env, causes = Clock(), []

    def life() -> simpy.events.ProcessGenerator:
        try:
            yield env.timeout(3)
        except simpy.Interrupt as interrupt:
            causes.append(interrupt.cause)

    process = JobProcess(env, life())
    process.go_on_in_turn()
    process.interrupt("stop")
    env.run()
    assert (causes, process.is_alive) == (["stop"], False)


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "plain"])
def test_an_instant_is_settled_when_all_its_other_events_are_over(settled: bool) -> None:
    """A plain event would wake the coordinator between two events of one time."""
    env = Clock()
    event = InstantSettled(env) if settled else env.event()
    happened: list[str] = []
    batches: list[list[str]] = []

    def happens(name: str, steps: int) -> simpy.events.ProcessGenerator:
        yield env.timeout(5)
        for _ in range(steps):
            yield env.timeout(0)
        happened.append(name)
        if isinstance(event, InstantSettled):
            event.is_armed = True
        elif not event.triggered:
            event.succeed()

    def coordinator() -> simpy.events.ProcessGenerator:
        nonlocal event
        while sum(map(len, batches)) < 2:
            yield event
            if not settled:
                event = env.event()
            batches.append(happened.copy())
            happened.clear()

    coordinating = env.process(coordinator())
    env.process(happens("an end", 0))
    env.process(happens("a submission", 1))
    if isinstance(event, InstantSettled):
        env.run_with(coordinating, event)
    else:
        env.run()
    assert batches == ([["an end", "a submission"]] if settled else [["an end"], ["a submission"]])
