"""The environments of Gymnasium: their checker, rewards that add up to the measure of the result, seeds, what is refused."""

import weakref
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from clustermodel import (
    AgentPolicy,
    Job,
    Machine,
    NodeFailures,
    Partition,
    Power,
    Scenario,
    SpecificationError,
    Workload,
    read_swf,
    synthetic_workload,
)
from clustermodel.gym import REWARDS, SchedulingEnv
from clustermodel.measure.job_table import Jobs
from clustermodel.workload.transforms import LoadScale
from tests.agents import first_allowed, last_allowed, shortest
from tests.bench import environment
from tests.conftest import refusal
from tests.scripts import defined_in

JOBS = Scenario(workload=synthetic_workload(jobs=40, nodes=16, load=2.0), machine=Machine(nodes=16))
MALLEABLE = replace(
    JOBS,
    workload=synthetic_workload(jobs=40, nodes=16, load=2.0).with_malleable(share=0.7),
    machine=Machine(nodes=16, resize_s=9),
)
OPTIONS: list[dict[str, Any]] = [{}, {"preempt": "kill"}, {"preempt": "checkpoint", "resize": True}, {"resize": True}]
NAME = "clustermodel/Scheduling-v0"
pytestmark = pytest.mark.long


def played(env: gymnasium.Env, act: Any, *, seed: int | None = 1) -> list[float]:
    """Return the rewards of an episode."""
    observation, info = env.reset(seed=seed)
    rewards, ended = [], False
    while not ended:
        observation, reward, ended, _, info = env.step(act(observation, info["action_mask"]))
        rewards.append(reward)
    return rewards


def at_random(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda _, mask: rng.choice(np.flatnonzero(mask))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_checker_of_gymnasium_passes(options: dict[str, Any]) -> None:
    env = gymnasium.make(NAME, scenario=MALLEABLE, window=4, running=3, **options)
    check_env(env.unwrapped)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("reward", REWARDS)
def test_rewards_add_up_to_the_measure_of_the_result(reward: str, options: dict[str, Any]) -> None:
    env = SchedulingEnv(MALLEABLE, reward=reward, window=4, running=3, **options)
    total = 0.0
    for part in played(env, at_random(1)):
        total += part
    jobs, attempts = env.result.jobs, env.result.run_attempts
    response, run = jobs["response_s"], Jobs.of(env.result.records).dedicated / 1e6
    useful = (attempts["nodes"] * (attempts["executed_s"] - attempts["lost_s"])).sum()
    measures = {
        "mean_wait_s": jobs["wait_s"].mean(),
        "mean_response_s": response.mean(),
        "mean_bounded_slowdown": (response.clip(10) / np.maximum(run, 10)).mean(),
        "utilization": useful / (16 * (jobs["end_s"].max() - jobs["submit_s"].min())),
    }
    assert total == pytest.approx(REWARDS[reward] * measures[reward], rel=1e-12)
    exact = REWARDS[reward] * getattr(env.result.summary(), reward)
    assert total in ([exact] if REWARDS[reward] < 0 else [np.nextafter(exact, 0), exact, np.nextafter(exact, 1)])


REWARDS_OF_THREE = {
    "mean_wait_s": [-(100 + 80) / 3, -50 / 3, 0],
    "mean_response_s": [-(100 + 100 + 80) / 3, -(50 + 50) / 3, -1 / 3],
    "mean_bounded_slowdown": [-(100 / 100 + 100 / 50 + 80 / 10) / 3, -(50 / 50 + 50 / 10) / 3, -0.1 / 3],
    "utilization": [1, 0, 301 / 302 - 1],
}


@pytest.mark.parametrize(("reward", "expected"), REWARDS_OF_THREE.items(), ids=list(REWARDS_OF_THREE))
def test_rewards_come_with_time(reward: str, expected: list[float]) -> None:
    """Job 1 runs until 100 on both nodes, job 2 until 150; job 3, of 1 s, has waited since 20."""
    jobs = [Job(id=1, nodes=2, submit_s=0, run_s=100), Job(id=2, nodes=2, submit_s=0, run_s=50)]
    jobs.append(Job(id=3, nodes=1, submit_s=20, run_s=1))
    env = SchedulingEnv(Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=2)), reward=reward)
    assert played(env, first_allowed) == pytest.approx(expected)


def test_a_function_of_the_result_is_the_last_reward() -> None:
    env = SchedulingEnv(JOBS, reward=lambda result: -result.summary().p95_wait_s)
    *before, last = played(env, first_allowed)
    assert set(before) == {0.0}
    assert last == -env.result.summary().p95_wait_s


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_exported_policy_gives_the_schedule_of_the_environment(options: dict[str, Any]) -> None:
    env = SchedulingEnv(MALLEABLE, window=5, running=4, **options)
    played(env, last_allowed)
    result = replace(env.scenario, policy=env.to_policy(last_allowed)).run()
    assert result.jobs.equals(env.result.jobs)
    assert result.run_attempts.equals(env.result.run_attempts)
    assert result.scenario.label == "agent"


def test_failures_of_nodes_are_part_of_an_episode() -> None:
    machine = Machine(nodes=16, failures=NodeFailures(mtbf_s=200_000, repair_s=3600))
    env = SchedulingEnv(replace(JOBS, machine=machine), window=4)
    played(env, at_random(2))
    assert env.result.summary().failures > 0


@pytest.mark.parametrize("given", [{"power_cap_w": 2000}, {"idle_off_s": 60}], ids=str)
def test_agents_keep_to_power_caps_and_boot_nodes(given: dict[str, Any]) -> None:
    power = Power(busy_w=200, idle_w=50, off_w=5, boot_s=30, boot_w=100)
    machine = Machine(nodes=16, power=power, resize_s=9, **given)
    env = SchedulingEnv(replace(MALLEABLE, machine=machine), window=4, running=3, preempt="kill", resize=True)
    played(env, at_random(2))
    assert len(env.result.jobs) == 40


def test_a_seed_gives_the_same_episode_and_the_next_one_another() -> None:
    env = SchedulingEnv(JOBS)
    first, after, again = (played(env, shortest, seed=seed) for seed in (5, None, 5))
    assert first == again != after
    assert not np.array_equal(env.scenario.sources[0].table, JOBS.workload.table)


def test_the_seed_draws_the_jobs_of_a_model_with_its_steps() -> None:
    doubled = synthetic_workload(jobs=40, nodes=16).scaled(LoadScale(run_time=2)).with_phi_estimates(seed=1)
    env = SchedulingEnv(Scenario(workload=doubled))
    env.reset(seed=3)
    drawn = env.scenario.sources[0]
    seed = env.scenario.seed
    expected = synthetic_workload(jobs=40, nodes=16, seed=seed).scaled(LoadScale(run_time=2)).with_phi_estimates(seed=seed)
    assert drawn == expected


def test_an_episode_has_consecutive_jobs_of_a_trace(write_trace: Any) -> None:
    lines = [f"{n} {60 * n} 0 50 1 -1 -1 1 90 -1 1 1 1 1 -1 -1 -1 -1" for n in range(1, 101)]
    env = SchedulingEnv(Scenario(workload=read_swf(write_trace("; MaxProcs: 4", *lines)), machine=Machine(nodes=4)), jobs=10)
    firsts = set()
    for seed in range(4):
        played(env, first_allowed, seed=seed)
        ids = env.result.jobs["job"].tolist()
        assert ids == list(range(ids[0], ids[0] + 10))
        firsts.add(ids[0])
    assert len(firsts) > 1


def test_a_function_makes_the_scenario_of_a_seed() -> None:
    env = SchedulingEnv(lambda seed: replace(JOBS, workload=synthetic_workload(jobs=20, nodes=16, seed=seed)), jobs=15)
    played(env, first_allowed)
    assert env.result.submitted == 15


def test_an_action_that_is_not_allowed_is_replaced_by_the_first_one_that_is() -> None:
    env, other = (SchedulingEnv(JOBS, window=4) for _ in range(2))
    wrong = played(env, lambda _, mask: len(mask) - 1 if mask[-1] else int(mask.argmin()))
    assert wrong == played(other, lambda _, mask: len(mask) - 1 if mask[-1] else int(mask.argmax()))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_environments_run_side_by_side(kind: str) -> None:
    envs = gymnasium.make_vec(NAME, num_envs=3, vectorization_mode=kind, scenario=JOBS, window=4)
    _, info = envs.reset(seed=1)
    returns = np.zeros(3)
    ended = np.zeros(3, dtype=bool)
    while not ended.all():
        _, rewards, now, _, info = envs.step(info["action_mask"].argmax(axis=1))
        returns += np.where(ended, 0, rewards)
        ended |= now
    envs.close()
    alone = [sum(played(SchedulingEnv(JOBS, window=4), lambda _, mask: mask.argmax(), seed=seed)) for seed in (1, 2, 3)]
    assert returns == pytest.approx(alone)


def test_an_abandoned_episode_is_given_up_at_once() -> None:
    env = SchedulingEnv(JOBS)
    env.reset(seed=1)
    first = weakref.ref(env._run)
    env.reset(seed=2)
    assert first() is None
    second = weakref.ref(env._run)
    del env
    assert second() is None


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"scenario": "KTH"}, "SchedulingEnv.scenario: 'KTH' is not allowed; it must be a Scenario, or a function of a seed"),
        ({"reward": "slowdown"}, "SchedulingEnv.reward: 'slowdown' is not allowed"),
        ({"jobs": 0}, "SchedulingEnv.jobs: 0 is not allowed; it must be an integer >= 1"),
        ({"window": 0}, "AgentPolicy.window: 0 is not allowed; it must be an integer >= 1"),
        ({"preempt": "suspend"}, "AgentPolicy.preempt: 'suspend' is not allowed"),
        ({"preempt": "kill", "running": 0}, "AgentPolicy.running: 0 is not allowed with preempt or resize; it must be >= 1"),
        ({"scenario": replace(JOBS, stream=True)}, "SchedulingEnv.scenario: a streamed run is not allowed"),
        ({"scenario": replace(JOBS, fidelity="node")}, "SchedulingEnv.scenario: the slow mode is not allowed"),
        ({"scenario": replace(JOBS, workload=[JOBS.workload] * 2)}, "SchedulingEnv.scenario: several job streams are not"),
        (
            {"scenario": replace(JOBS, machine=Machine(nodes=16, partitions=[Partition(name="a", nodes=range(16))]))},
            "SchedulingEnv.scenario: a machine with partitions is not allowed; the agent chooses among all nodes",
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else "-".join(case),
)
def test_what_is_not_allowed_is_refused_in_one_line(arguments: dict[str, Any], line: str) -> None:
    assert refusal(lambda: SchedulingEnv(**{"scenario": JOBS, **arguments})).startswith(line)


def test_an_episode_must_have_begun_and_have_jobs() -> None:
    env = SchedulingEnv(JOBS)
    assert refusal(lambda: env.step(0)) == "SchedulingEnv.step: there is no episode, or it has ended; call reset()"
    assert refusal(lambda: env.result) == "SchedulingEnv.result: no episode has ended yet"
    assert refusal(lambda: env.scenario) == "SchedulingEnv.scenario: there is no episode yet; call reset()"
    played(env, first_allowed)
    with pytest.raises(SpecificationError, match="call reset"):
        env.step(0)
    for action in (True, np.True_, 1.0, "0", -1, 10_000, None):
        env.reset(seed=1)
        said = refusal(lambda action=action: env.step(action))
        assert said.startswith("SchedulingEnv.step: ")
        assert said.endswith(" is not allowed; it must be a whole number from 0 to 16")
        env.step(np.int64(0))  # the episode goes on
    too_large = Workload.from_jobs([Job(id=1, nodes=99, submit_s=0, run_s=1)])
    nothing = SchedulingEnv(Scenario(workload=too_large, machine=Machine(nodes=4)))
    assert refusal(nothing.reset).endswith("no job of the episode fits the machine; there is nothing to do")


def test_a_policy_of_an_environment_has_what_it_sees() -> None:
    policy = SchedulingEnv(JOBS, window=7, running=3, preempt="kill").to_policy(first_allowed, name="mine")
    assert policy == AgentPolicy(act=first_allowed, window=7, running=3, preempt="kill", name="mine")


def test_the_agent_of_the_scenarios_is_trained_in_the_environment() -> None:
    training, halves = defined_in("learning/train"), defined_in("learning/halves")
    weights = (0.0, -1.0, 0.0, 0.0, 0.0, -9.0)
    (total,) = training.returns(weights, range(3, 4), trace=None, nodes=16)
    env = SchedulingEnv(Scenario(workload=halves.halves(None, 0, 16)[0], machine=Machine(nodes=16)), jobs=256)
    env.reset(seed=3)
    result = replace(env.scenario, policy=defined_in("learning/scorer").agent(weights)).run()
    assert total == pytest.approx(-result.summary().mean_bounded_slowdown)


def test_the_bench_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "SCENARIO", JOBS)
    monkeypatch.setattr(environment, "SWITCHES", 10)
    assert (environment.measured()["µs"] > 0).tolist() == [True] * 6
