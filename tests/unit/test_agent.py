"""An agent as a policy: what it sees and may do, and that the policy conforms, can be pickled and compared."""

import pickle
from collections.abc import Callable
from math import log1p
from typing import Any

import numpy as np
import pytest

from clustermodel import AgentPolicy, Checkpointing, Job, Machine, Scenario, Workload, check_policy
from clustermodel.policies.agent import Act, Mask, Observation
from tests.agents import first_allowed, last_allowed, shortest
from tests.conftest import refusal


def seen(act: Act, *jobs: Job, machine: Machine, **options: Any) -> list[tuple[Observation, Mask]]:
    """Return what an agent is shown in a run, call after call."""
    shown: list[tuple[Observation, Mask]] = []

    def watched(observation: Observation, mask: Mask) -> int:
        shown.append((observation, mask))
        return act(observation, mask)

    policy = AgentPolicy(act=watched, window=2, running=2, **options)
    Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()
    return shown


def in_log(*seconds: float) -> list[float]:
    return [log1p(time) / log1p(1e10) for time in seconds]


THREE = (
    Job(id=1, nodes=3, submit_s=0, run_s=50, estimate_s=100),
    Job(id=2, nodes=2, submit_s=10, run_s=30, estimate_s=40),
    Job(id=3, nodes=1, submit_s=20, run_s=5),
)


def test_what_an_agent_is_shown() -> None:
    """Job 1 starts at 0 and ends at 50; job 3 fits beside it from 20 on, job 2 does not."""
    at_0, at_20, *_ = seen(shortest, *THREE, machine=Machine(nodes=4))
    observation, mask = at_0
    assert mask.tolist() == [0, 1, 0]  # waiting is not allowed on an idle machine
    assert observation["queue"].tolist() == [pytest.approx([1, 3 / 4, *in_log(100, 0), 3 / 4, 3 / 4]), [0] * 6]
    assert observation["running"].tolist() == [[0] * 6] * 2
    observation, mask = at_20
    assert mask.tolist() == [1, 0, 1]
    assert observation["queue"] == pytest.approx(
        np.array([[1, 2 / 4, *in_log(40, 10), 2 / 4, 2 / 4], [1, 1 / 4, *in_log(5, 0), 1 / 4, 1 / 4]])
    )
    assert observation["running"].tolist() == [pytest.approx([1, 3 / 4, *in_log(80, 20), 3 / 4, 3 / 4]), [0] * 6]
    hand = 2 * np.pi * 20 / 86_400
    clock = (1 + np.sin(hand)) / 2, (1 + np.cos(hand)) / 2
    assert observation["machine"] == pytest.approx([1 / 4, 0, 2 / 102, *clock])


def test_gangs_that_run_may_be_preempted_and_those_that_have_just_started_may_not() -> None:
    at_0, at_10, *_ = seen(first_allowed, *THREE, machine=Machine(nodes=4), preempt="kill")
    assert [mask.tolist() for _, mask in (at_0, at_10)] == [[0, 1, 0, 0, 0], [1, 0, 0, 1, 0]]


@pytest.mark.parametrize(("preempt", "end_s"), [("kill", 80), ("checkpoint", 77)])
def test_a_preempted_job_waits_again(preempt: str, end_s: float) -> None:
    """Job 1 is preempted when job 2 arrives at 10, and goes on when job 2 has ended, in 7 s of costs."""

    def act(_: Observation, mask: Mask) -> int:
        if mask[3] and not preempted:
            preempted.append(1)
            return 3
        return int(mask[:3].nonzero()[0][-1])  # the last job that fits

    preempted: list[int] = []
    machine = Machine(nodes=3, checkpointing=Checkpointing(checkpoint_s=3, restart_s=4))
    policy = AgentPolicy(act=act, window=2, running=2, preempt=preempt)
    jobs = Job(id=1, nodes=3, submit_s=0, run_s=50), Job(id=2, nodes=2, submit_s=10, run_s=20)
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()
    assert result.jobs["end_s"].max() == end_s


RIGID = Job(id=1, nodes=3, submit_s=0, run_s=100)
MALLEABLE = Job(id=1, nodes=2, min_nodes=1, max_nodes=4, malleable=True, submit_s=0, run_s=100)
WIDE = Job(id=1, nodes=4, min_nodes=1, max_nodes=4, malleable=True, submit_s=0, run_s=100)


@pytest.mark.parametrize(
    ("first", "second", "masks", "ends"),
    [
        # Job 1 has executed 10 s on two nodes, 5 s on four, of 50 s, and the resize takes 3 s.
        pytest.param(MALLEABLE, {"nodes": 4, "run_s": 30}, ["100 10 10"], [10 + 3 + 45, 58 + 30], id="grows"),
        # It has executed 20 s of 200 s on two nodes, and job 2 starts at once; from 40 on, after 27 s more, it has four again.
        pytest.param(
            WIDE, {"nodes": 2, "run_s": 30}, ["100 10 00", "110 00 00", "100 10 10"], [40 + 3 + 153 / 2, 10 + 30], id="shrinks"
        ),
        # Job 2 takes twice as long on one node.
        pytest.param(
            RIGID,
            {"nodes": 2, "min_nodes": 1, "malleable": True, "run_s": 30},
            ["110 00 00"],
            [100, 10 + 60],
            id="starts-on-fewer",
        ),
    ],
)
def test_an_agent_resizes_jobs(first: Job, second: dict[str, Any], masks: list[str], ends: list[float]) -> None:
    """Job 2 arrives at 10; the agent takes the last action that is allowed."""
    shown: list[str] = []

    def act(_: Observation, mask: Mask) -> int:
        shown.append("".join(map(str, mask)))
        return last_allowed(_, mask)

    jobs = Workload.from_jobs([first, Job(id=2, submit_s=10, **second)])
    policy = AgentPolicy(act=act, window=2, running=2, resize=True)
    result = Scenario(workload=jobs, machine=Machine(nodes=4, resize_s=3), policy=policy).run()
    assert shown[1 : 1 + len(masks)] == [mask.replace(" ", "") for mask in masks]
    assert result.jobs["end_s"].tolist() == ends


def test_the_sizes_of_malleable_jobs_are_shown() -> None:
    observation, mask = seen(shortest, MALLEABLE, machine=Machine(nodes=8))[0]
    assert observation["queue"][0, [1, 4, 5]].tolist() == [2 / 8, 1 / 8, 4 / 8]
    assert mask.tolist() == [0, 1, 0]  # it may not resize


CONFORM = [
    (first_allowed, None, False), (last_allowed, "kill", True),
    *(pytest.param(*of, marks=pytest.mark.long) for of in [(shortest, None, False), (last_allowed, "checkpoint", True)]),
]  # fmt: skip


@pytest.mark.parametrize(("act", "preempt", "resize"), CONFORM, ids=lambda of: getattr(of, "__name__", str(of)))
def test_an_agent_conforms_to_the_rules_of_policies(act: Act, preempt: str | None, resize: bool) -> None:
    policy = AgentPolicy(act=act, window=3, running=3, preempt=preempt, resize=resize)
    assert check_policy(policy, failures=resize) == []


def test_the_policy_can_be_pickled_and_compared() -> None:
    policy = AgentPolicy(act=shortest, window=5, name="sjf")
    assert pickle.loads(pickle.dumps(policy)) == policy != AgentPolicy(act=shortest)


@pytest.mark.parametrize(
    ("answer", "shown"), [(3, "3"), (-1, "-1"), (1.0, "1.0"), (None, "None")], ids=["large", "negative", "float", "none"]
)
def test_an_answer_that_is_no_action_is_refused_in_one_line(answer: Any, shown: str) -> None:
    must = "it must return a whole number from 0 to 2"
    run: Callable[[], object] = lambda: seen(lambda *_: answer, *THREE, machine=Machine(nodes=4))  # noqa: E731
    assert refusal(run) == f"policy agent: act returned {shown}; {must}"


def test_checkpoints_are_refused_on_a_machine_that_takes_none() -> None:
    machine = Machine(nodes=4, checkpointing=Checkpointing(max_tasks_per_slice=0))
    line = refusal(lambda: seen(shortest, *THREE, machine=machine, preempt="checkpoint"))
    assert line.startswith("agent: preempt=checkpoint: the machine takes no checkpoints")
