"""Environments of Gymnasium in which an agent learns to schedule; docs/learning has the spaces, the rewards and an example.

``import clustermodel.gym`` registers ``clustermodel/Scheduling-v0``, and needs the extra ``gym``; a trained agent is a policy
of :mod:`clustermodel.policies.agent`, which does not need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import numpy as np

from clustermodel.errors import SpecificationError, missing_package
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.workload_tables import table_of_workload, workload_from
from clustermodel.measure.job_table import GAMMA_S
from clustermodel.policies.agent import WAIT, Act, AgentPolicy, Mask, Observation, is_action
from clustermodel.policies.interface import Decision, Run, Setup
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.text.tables import Place
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds
from clustermodel.validation import choice, require, require_whole
from clustermodel.workload.provenance import Recipe
from clustermodel.workload.table import Workload

try:
    import gymnasium
    from greenlet import getcurrent, greenlet
    from gymnasium import spaces
except ModuleNotFoundError as problem:
    raise SpecificationError(missing_package("clustermodel.gym", str(problem.name), "gym")) from None

REWARDS: Final = {"mean_bounded_slowdown": -1, "mean_wait_s": -1, "mean_response_s": -1, "utilization": 1}
"""Fields of :class:`~clustermodel.measure.metrics.Summary` that are rewards by name, and their signs."""
Reward = str | Callable[[Result], float]
"""A name of :data:`REWARDS`, or a function of the result, whose value is the reward of the last step."""

_DRAWN: Final = ("model", "synthetic", "job_stream", "job_streams")  # sources of jobs that have a seed


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):  # type: ignore[misc]  # of an extra, which mypy does without
    """A scenario in which an agent takes the place of the policy; an episode is a run.

    Observations, actions and masks (``info["action_mask"]``) are those of
    :class:`~clustermodel.policies.agent.AgentPolicy`.  The rewards of an episode, added one after the other, are the measure of
    its result, with the sign of :data:`REWARDS`.  An environment stays in the thread in which it is reset.

    Args:
        scenario: whose machine, workload and site are used, not its policy.  The seed of an episode draws the jobs of a model
            (and failures); a function makes the scenario of a seed.
        jobs: number of consecutive jobs of an episode, drawn from those of the workload; by default all.
        reward: a name of :data:`REWARDS`, or a function of the result.
        window: see :class:`~clustermodel.policies.agent.AgentPolicy`.
        running: see there.
        preempt: see there.
        resize: see there.

    Raises:
        SpecificationError: an argument is not allowed, or the scenario: several job streams, a streamed trace or run, the slow
            mode, jobs that may not have all nodes at all times, nodes with several processors.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario | Callable[[int], Scenario],
        *,
        jobs: int | None = None,
        reward: Reward = "mean_bounded_slowdown",
        window: int = 16,
        running: int = 16,
        preempt: str | None = None,
        resize: bool = False,
    ) -> None:
        made = isinstance(scenario, Scenario) or (callable(scenario) and not isinstance(scenario, type))
        require(made, "SchedulingEnv.scenario", scenario, "it must be a Scenario, or a function of a seed that returns one")
        if isinstance(scenario, Scenario):
            _require_space_sharing(scenario)
        self._specified = scenario
        self._jobs = None if jobs is None else require_whole("SchedulingEnv.jobs", jobs, at_least=1)
        self._reward = reward if callable(reward) else choice("SchedulingEnv.reward", reward, REWARDS, other=", or a function")
        self._policy = AgentPolicy(act=_ask, window=window, running=running, preempt=preempt, resize=resize)
        shapes = self._policy.shapes
        self.observation_space = spaces.Dict({part: spaces.Box(0.0, 1.0, shape, np.float32) for part, shape in shapes.items()})
        self.action_space = spaces.Discrete(self._policy.actions)
        self._run: greenlet | None = None  # the simulation of an episode, which waits for an action
        self._result: Result | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario of the present episode, with its jobs; its policy is the agent."""
        if self._run is None and self._result is None:
            raise SpecificationError("SchedulingEnv.scenario: there is no episode yet; call reset()")
        return self._scenario

    @property
    def result(self) -> Result:
        """The result of the episode that ended last."""
        if self._result is None:
            raise SpecificationError("SchedulingEnv.result: no episode has ended yet")
        return self._result

    def to_policy(self, act: Act, *, name: str = "agent") -> AgentPolicy:
        """Return an agent as a policy that sees and may do what it does here; see ``AgentPolicy.act``."""
        return replace(self._policy, act=act, name=name)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; there are no options."""
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(2**31))
        scenario = self._episode(drawn)
        self._accrued = _Accrued(self._reward, scenario)
        self._scenario = replace(scenario, policy=_Learning(self._policy, self._accrued))
        self._run = greenlet(self._scenario.run)
        self._paid = 0.0
        answer = self._run.switch()
        if isinstance(answer, Result):
            self._run = None
            raise SpecificationError("SchedulingEnv.scenario: no job of the episode fits the machine; there is nothing to do")
        observation, self._mask = answer
        return observation, {"action_mask": self._mask}

    def _episode(self, seed: int) -> Scenario:
        """Return the scenario of an episode, with its jobs."""
        if not isinstance(self._specified, Scenario):
            made: object = self._specified(seed)
            require(isinstance(made, Scenario), "SchedulingEnv.scenario", made, "it must return a Scenario")
            scenario = cast("Scenario", made)
            _require_space_sharing(scenario)
        else:
            scenario = replace(self._specified, seed=seed, workload=_drawn(_jobs_of(self._specified), seed))
        jobs = _jobs_of(scenario)
        if self._jobs is None or self._jobs >= len(jobs):
            return scenario
        first = int(np.random.default_rng(seed).integers(len(jobs) - self._jobs + 1))
        which = np.zeros(len(jobs), dtype=bool)
        which[first : first + self._jobs] = True
        return replace(scenario, machine=scenario.used_machine, workload=jobs.part(which, f"{jobs.name}, from job {first + 1}"))

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out an action and let the simulation go on to the next choice; ``truncated`` is never true."""
        if self._run is None:
            raise SpecificationError("SchedulingEnv.step: there is no episode, or it has ended; call reset()")
        must = f"it must be a whole number from 0 to {self._policy.actions - 1}"
        require(is_action(action, self._policy.actions), "SchedulingEnv.step", action, must)
        run = self._run
        run.parent = getcurrent()
        self._run = None  # if it fails
        answer = run.switch(action)
        if isinstance(answer, Result):
            self._result = answer
            reward = _closing(self._paid, self._measured(answer))
            observation = {part: np.zeros(shape, dtype=np.float32) for part, shape in self._policy.shapes.items()}
            self._mask = np.zeros(self._policy.actions, dtype=np.int8)
            self._mask[WAIT] = 1
            return observation, reward, True, False, {"action_mask": self._mask}
        self._run = run
        reward = self._accrued.value - self._paid
        self._paid += reward
        observation, self._mask = answer
        return observation, reward, False, False, {"action_mask": self._mask}

    def _measured(self, result: Result) -> float:
        if callable(self._reward):
            return float(self._reward(result))
        return REWARDS[self._reward] * float(getattr(result.summary(), self._reward))

    def close(self) -> None:
        """Give up the present episode."""
        self._run = None  # its greenlet ends when it is collected


def _ask(observation: Observation, mask: Mask) -> int:
    """Return the action that the environment is given for an observation; called in its simulation."""
    parent = getcurrent().parent
    assert parent is not None
    return cast("int", parent.switch((observation, mask)))


def _closing(paid: float, total: float) -> float:
    """Return the number that makes ``total`` of ``paid`` when it is added, in floating point."""
    rest = total - paid
    while paid + rest < total:
        rest = math.nextafter(rest, math.inf)
    while paid + rest > total:
        rest = math.nextafter(rest, -math.inf)
    return rest


def _jobs_of(scenario: Scenario) -> Workload:
    return cast("Workload", scenario.sources[0])


def _require_space_sharing(scenario: Scenario) -> None:
    machine = scenario.used_machine
    for what, wrong in (
        ("several job streams are", len(scenario.sources) > 1),
        ("a trace that is streamed is", not isinstance(scenario.sources[0], Workload)),
        ("a streamed run is", scenario.stream is not False),
        ("the slow mode is", scenario.fidelity == "node"),
        ("a machine with partitions is", bool(machine.partitions)),
        ("a machine with types of nodes is", bool(machine.node_types)),
        ("a machine whose nodes have several processors is", machine.has_shared_nodes),
        ("a machine with reservations, or outages known in advance, is", bool(machine.windows)),
    ):
        if wrong:
            raise SpecificationError(f"SchedulingEnv.scenario: {what} not allowed; the agent chooses among all nodes")


def _drawn(jobs: Workload, seed: int) -> Workload:
    """Return the jobs that a model draws from another seed; the same jobs where they are not drawn."""
    if not isinstance(jobs.recipe, Recipe) or jobs.recipe.source not in _DRAWN:
        return jobs
    place = Place("SchedulingEnv.scenario", Path())
    table = {**table_of_workload(jobs, place), "seed": seed}
    for step in table.get("steps", ()):
        for arguments in step.values():
            if isinstance(arguments, dict) and "seed" in arguments:
                arguments["seed"] = seed
    return cast("Workload", workload_from(table, place))


class _Accrued:
    """The measure of an episode so far: it grows with time in proportion to the jobs in the system."""

    def __init__(self, reward: Reward, scenario: Scenario) -> None:
        self.value = 0.0
        self._reward, self._nodes = reward, scenario.used_machine.processors
        nodes = _jobs_of(scenario).column("nodes")
        self._jobs = max(1, int(((nodes > 0) & (nodes <= self._nodes)).sum()))
        self._began: int | None = None
        self._before = 0  # when it was looked at last
        self._busy = 0  # node-ticks
        self._weights: dict[int, float] = {}  # of jobs in the system: what a second of theirs adds
        self._rate = 0.0

    def advance(self, batch: Batch, view: View, run_time: Callable[[QueuedJob], int]) -> None:
        """Add the time since the last scheduling cycle."""
        now = view.now
        if self._began is None:
            self._began = self._before = now
        ticks, self._before = now - self._before, now
        if self._reward == "utilization":
            gangs = (*view.running.values(), *batch.ended)
            self._busy += ticks * sum(gang.nodes for gang in gangs)
            if now > self._began:
                self.value = self._busy / (self._nodes * (now - self._began))
        elif self._reward == "mean_bounded_slowdown":
            self.value -= to_seconds(ticks) * self._rate / self._jobs
            waits_again = {job.id for job in batch.requeued}
            for gang in batch.ended:
                if gang.job.id not in waits_again:
                    self._rate -= self._weights.pop(gang.job.id)
            for job in batch.submitted:
                weight = self._weights[job.id] = 1 / max(run_time(job) / TICKS_PER_SECOND, GAMMA_S)
                self._rate += weight
        elif self._reward in REWARDS:
            counted = len(view.waiting) - len(batch.submitted) - len(batch.requeued)
            if self._reward == "mean_response_s":
                counted += len(view.running) + len(batch.ended)
            self.value -= to_seconds(ticks * counted) / self._jobs


@dataclass(frozen=True)
class _Learning:
    """The policy of an environment: that of its agent, with the measure so far."""

    policy: AgentPolicy
    accrued: _Accrued
    name: ClassVar[str] = "agent"

    def start(self, setup: Setup) -> Run:
        run, accrued, run_time = self.policy.start(setup), self.accrued, setup.run_time

        class Watched:
            def decide(self, batch: Batch, view: View) -> list[Decision]:
                accrued.advance(batch, view, run_time)
                return run.decide(batch, view)

        return Watched()


gymnasium.register(id="clustermodel/Scheduling-v0", entry_point="clustermodel.gym:SchedulingEnv")
