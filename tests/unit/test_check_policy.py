"""``check_policy`` passes every shipped policy and names the rule that each broken one breaks."""

from __future__ import annotations

import pytest

from clustermodel import (
    Batch,
    Kill,
    Machine,
    Reserve,
    Scenario,
    Setup,
    SpecificationError,
    Start,
    View,
    WakeAt,
    check_policy,
    make_policy,
    policy_names,
    register_policy,
    synthetic_workload,
)
from clustermodel.policies.base import Decision, Policy
from clustermodel.policies.easy import Easy
from clustermodel.policies.fcfs import Fcfs


@pytest.mark.parametrize(
    "policy",
    [
        *policy_names(),
        "easy:backfill_order=shortest",
        "easy:reserve_depth=3",
        "easy:reserve_depth=100,backfill_order=shortest",
        Easy(backfill_order=lambda job, now: (-(now - job.submit), job.id)),
    ],
    ids=str,
)
def test_every_shipped_policy_keeps_every_rule(policy: str | Policy) -> None:
    assert check_policy(policy) == []


class Base(Fcfs):
    name = "broken"


class DoesNothing(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return []


class StartsTooWide(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [Start(job) for job in view.waiting.values()]


class StartsTwice(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [decision for decision in super().decide(batch, view) for _ in range(2)]


class KillsTheDead(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return super().decide(batch, view) + [Kill(gang.job) for gang in batch.ended]


class ReservesForTheRunning(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return super().decide(batch, view) + [Reserve(gang.job, view.now) for gang in view.running.values()]


class WakesInThePast(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [*super().decide(batch, view), WakeAt(view.now)]


class NeverStops(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [WakeAt(view.now + 1)]


class Remembers(Base):
    """Lets the second run wait a second before each start."""

    runs = 0

    def begin(self, setup: Setup) -> None:
        super().begin(setup)
        type(self).runs += 1

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        if self.runs % 3 == 2 and not batch.alarm:
            return [WakeAt(view.now + 1_000_000)]
        return super().decide(batch, view)


class BreaksPromises(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        starts = super().decide(batch, view)
        started = {decision.job.id for decision in starts if isinstance(decision, Start)}
        return starts + [Reserve(job, view.now) for job in view.waiting.values() if job.id not in started]


class Raises(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [view.nonsense]


class ReturnsNonsense(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return ["start them all"] if view.waiting else []


class TakesPartOfTheGang(Base):
    def decide(self, batch: Batch, view: View) -> list[Decision]:
        starts = super().decide(batch, view)
        for decision in starts:
            decision.job.nodes = 1
        return starts


IMPOSSIBLE = "never asks for the impossible, leaves no job behind"


@pytest.mark.parametrize(
    ("broken", "rule", "detail"),
    [
        (DoesNothing, IMPOSSIBLE, "left waiting for ever"),
        (StartsTooWide, IMPOSSIBLE, "cannot start: it needs"),
        (StartsTwice, IMPOSSIBLE, "cannot start: it is running already"),
        (KillsTheDead, IMPOSSIBLE, "cannot be killed: it is not running"),
        (ReservesForTheRunning, IMPOSSIBLE, "cannot hold a reservation: it does not wait"),
        (WakesInThePast, IMPOSSIBLE, "the alarm clock cannot be set"),
        (ReturnsNonsense, IMPOSSIBLE, "'start them all' is not a decision; it must be one of Start, Kill, Reserve, WakeAt"),
        (NeverStops, "comes to an end", "without an end in sight"),
        (Remembers, "forgets earlier runs in begin", "a second run gave another schedule"),
        (BreaksPromises, "keeps its promises", "started after the start it was first promised"),
        (Raises, "raises nothing", "AttributeError"),
        (TakesPartOfTheGang, "starts gangs whole", "held another number of nodes"),
    ],
)
def test_a_broken_rule_is_named_with_the_case_that_shows_it(broken: type[Base], rule: str, detail: str) -> None:
    found = check_policy(broken())
    assert any(one.rule == rule and detail in one.detail for one in found)
    assert str(found[0]).startswith(f"{found[0].rule} [{found[0].case}]: ")


def test_a_class_or_something_else_is_not_a_policy() -> None:
    for nonsense in (Fcfs, 3, None):
        with pytest.raises(SpecificationError, match="must be a name or an object with name, begin and decide"):
            make_policy(nonsense)  # type: ignore[arg-type]


def test_a_registered_policy_works_wherever_a_name_does() -> None:
    class Limited(Fcfs):
        """FCFS on a part of the machine."""

        def __init__(self, *, share: float) -> None:
            self.name = "limited"
            self._share = share

        def begin(self, setup: Setup) -> None:
            super().begin(setup)
            self._spare = int(setup.nodes * (1 - self._share))

        def decide(self, batch: Batch, view: View) -> list[Decision]:
            reduced = View()
            reduced.now, reduced.waiting, reduced.running = view.now, view.waiting, view.running
            reduced.idle = view.idle - self._spare
            return super().decide(batch, reduced)

    register_policy("limited", Limited)
    workload = synthetic_workload(jobs=50, nodes=8)
    run = Scenario(machine=Machine(nodes=16), workload=workload, policy="limited:share=0.5").run()
    assert (run.machine.nodes - run.events.empty).max() <= 8
    assert run.summary().policy == "limited:share=0.5"
    with pytest.raises(SpecificationError, match="parameter 'share' is missing; write limited:share=value"):
        make_policy("limited")
    with pytest.raises(SpecificationError, match="'limited' is already registered"):
        register_policy("limited", Limited)
    with pytest.raises(SpecificationError, match="without ':', ',' or '='"):
        register_policy("a:b", Limited)
