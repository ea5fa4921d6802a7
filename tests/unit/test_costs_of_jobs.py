"""Costs by number of nodes and by job: workloads and files that hold them, run keys, refusals."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import clustermodel as cm
from clustermodel import ContextSwitch, Machine, Scenario, SizeCost, SpecificationError, Workload, synthetic_workload
from clustermodel.experiment.run_key import key_of_scenario
from clustermodel.machine.costs import CostTicks
from clustermodel.workload.job import Demand, OwnCosts, Sizes

JOBS = [
    cm.Job(id=1, nodes=1, submit_s=0, run_s=5, context_switch_s=0.5, startup_s=0, epilog_s=2),
    cm.Job(id=2, nodes=2, submit_s=1, run_s=5),
    cm.Job(id=3, nodes=2, submit_s=2, run_s=5, malleable=True, resize_s=1, startup_s=3),
]


def twice(nodes: int) -> float:
    """Return two seconds a node."""
    return 2.0 * nodes


def thrice(nodes: int) -> float:
    """Return three seconds a node."""
    return 3.0 * nodes


def test_workloads_hold_costs_of_jobs() -> None:
    workload = Workload.from_jobs(JOBS)
    assert list(workload.jobs()) == [replace(job, estimate_s=5.0) for job in JOBS]
    again = Workload.from_frame(workload.frame)
    assert again.frame[["context_switch_s", "startup_s", "epilog_s"]].equals(
        workload.frame[["context_switch_s", "startup_s", "epilog_s"]]
    )
    first, second, third = again.rows()
    assert first.demand == Demand(costs=OwnCosts(context_switch=500_000, startup=0, epilog=2_000_000))
    assert second.demand is None
    assert third.demand == Demand(sizes=Sizes(resize=1_000_000), costs=OwnCosts(startup=3_000_000))
    assert Workload(again.rows()) == again


def test_a_function_is_asked_once_for_each_number_of_nodes() -> None:
    asked: list[int] = []
    cost = CostTicks("cost", lambda nodes: asked.append(nodes) or 1.5)  # type: ignore[func-returns-value]
    assert [cost.of(nodes) for nodes in (4, 2, 4)] == [1_500_000] * 3
    assert asked == [4, 2]
    assert (CostTicks("cost", 2).constant, cost.constant) == (2_000_000, None)


def test_run_keys_tell_costs_apart() -> None:
    workload = synthetic_workload(jobs=10, nodes=8)

    def key(policy: str, **machine: Any) -> str:
        return key_of_scenario(Scenario(machine=Machine(nodes=8, **machine), workload=workload, policy=policy))

    costs: list[Any] = [0, 1, twice, thrice, SizeCost(base_s=1), SizeCost(per_node_s=1)]
    for field in ("startup_s", "epilog_s"):
        assert len({key("easy", **{field: cost}) for cost in costs}) == len(costs)
    switches = [ContextSwitch(seconds=cost) for cost in costs]
    assert len({key("bgs", context_switch=switch) for switch in switches}) == len(costs)
    assert len({key("easy", context_switch=switch) for switch in switches}) == 1
    assert key("easy") == key("easy", startup_s=0.0)


def test_files_hold_costs_by_number_of_nodes(tmp_path: Path) -> None:
    machine = Machine(
        nodes=8, startup_s=SizeCost(base_s=5, per_node_s=0.25), epilog_s=1.5, context_switch=ContextSwitch(seconds=SizeCost())
    )
    scenario = Scenario(machine=machine, workload=synthetic_workload(jobs=10, nodes=8), policy="easy")
    assert Scenario.from_toml(scenario.to_toml()).machine == machine
    assert "startup_s" not in replace(scenario, machine=Machine(nodes=8)).to_toml()
    for changed, field in (
        ({"startup_s": twice}, "machine.startup_s"),
        ({"context_switch": ContextSwitch(seconds=twice)}, "machine.context_switch.seconds"),
    ):
        with pytest.raises(SpecificationError, match=rf"{field}: .* cannot be written; a file has a number, or base_s and"):
            replace(scenario, machine=replace(machine, **changed)).to_toml()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"startup_s": "long"}, "Machine.startup_s: 'long' is not a number"),
        ({"epilog_s": -1}, "Machine.epilog_s: -1 is not allowed"),
        ({"startup_s": lambda _: "long"}, "Machine.startup_s of 1 node: 'long' is not a number"),
        ({"startup_s": lambda: 1}, "Machine.startup_s: the function"),
        ({"context_switch": {"seconds": lambda nodes: -nodes}}, "ContextSwitch.seconds of 1 node: -1 is not allowed"),
        ({"context_switch": {"seconds": "long"}}, "ContextSwitch.seconds: 'long' is not a number"),
    ],
)
def test_what_is_no_time_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        Machine(
            nodes=1, **{name: ContextSwitch(**value) if isinstance(value, dict) else value for name, value in wrong.items()}
        )
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_jobs_refuse_negative_costs() -> None:
    for field in ("context_switch_s", "startup_s", "epilog_s"):
        with pytest.raises(SpecificationError, match=f"Job 1: {field}: -1 is not allowed"):
            cm.Job(id=1, nodes=1, submit_s=0, run_s=5, **{field: -1})


def test_gangs_that_share_nodes_in_time_switch_alike() -> None:
    switch = ContextSwitch(seconds=twice)
    with pytest.raises(SpecificationError, match=r"ContextSwitch\.seconds: a function .* is not allowed where all switches"):
        Scenario(machine=Machine(nodes=2, context_switch=switch), workload=Workload.from_jobs(JOBS), policy="gs").run()
    refused = r"nodes cannot be shared in time where context switches differ \(ContextSwitch.seconds, Job.context_switch_s\)"
    own = cm.Job(id=1, nodes=1, submit_s=0, run_s=5, context_switch_s=0.5)
    with pytest.raises(cm.DecisionError, match=refused):
        Scenario(machine=Machine(nodes=2), workload=Workload.from_jobs([own]), policy="gs").run()


def test_a_switch_as_long_as_a_slice_is_refused() -> None:
    short = cm.TimeSlicing(quantum_s=0.5)
    with pytest.raises(SpecificationError, match=r"it must be longer than the context switch of job 1 of 0\.5 s"):
        Scenario(machine=Machine(nodes=2, time_slicing=short), workload=Workload.from_jobs(JOBS[:1]), policy="ss").run()
