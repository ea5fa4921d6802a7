"""An agent as a policy: a function that looks at the queue and the machine, and chooses what to do next.

What it sees and what it may choose are those of the environment of :mod:`clustermodel.gym`, which is made of this policy.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import cos, log1p, pi, sin
from operator import itemgetter
from typing import ClassVar, Final, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError, quoted
from clustermodel.policies.interface import Decision, Resize, Setup, Start
from clustermodel.policies.preemption import can_be_saved, preempt, require_store
from clustermodel.policies.view import RUNNING, Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LONGEST_S, choice, flag, require, whole_fields

Observation = dict[str, npt.NDArray[np.float32]]
"""``"queue"``, shape ``(window, 6)``, ``"running"``, shape ``(running, 6)``, and ``"machine"``, shape ``(5,)``."""
Mask = npt.NDArray[np.int8]
"""1 for each action that is allowed, shape ``(actions,)``."""
Act = Callable[[Observation, Mask], int]
"""Returns the action to take."""

WAIT: Final = 0
"""The action that starts no more jobs until the next event."""
OF_QUEUE: Final = ("present", "nodes", "estimate", "waited", "least", "most")
"""What an observation has of a waiting job: 1, nodes per nodes of the machine, how long it holds them by its estimate, and how
long it has been in the system, as :func:`log_time`; the numbers of nodes that it may have, which differ if it is malleable."""
OF_RUNNING: Final = ("present", "nodes", "rest", "elapsed", "least", "most")
"""Of a running gang: the same, with its expected rest and the time since its start."""
OF_MACHINE: Final = ("idle", "down", "waiting", "sine of the time of day", "cosine of the time of day")
"""Of the machine: shares of its nodes, n / (n + 100) for n waiting jobs, and (1 + x) / 2 for the two coordinates of a hand that
turns once a day, from time 0 on."""

_LONGEST: Final = log1p(LONGEST_S)
_DAY: Final = 86_400 * TICKS_PER_SECOND
_place: Final = itemgetter(0, 1)


def log_time(seconds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return log(1 + seconds) in units of that of the longest time, 1e10 s; in [0, 1], of the same shape."""
    return np.asarray(np.log1p(np.minimum(np.maximum(seconds, 0.0), LONGEST_S)) / _LONGEST)


def is_action(action: object, actions: int) -> TypeGuard[int]:
    """Return whether something is the number of one of so many actions; ``True`` and ``False`` are none."""
    return isinstance(action, int | np.integer) and not isinstance(action, bool) and 0 <= int(action) < actions


@dataclass(frozen=True, kw_only=True)
class AgentPolicy:
    """A policy whose decisions a function (an agent) takes, from an observation and a mask of the allowed actions.

    Action 0 waits for the next event; 1 to ``window`` start a job of the window.  The next ``running`` preempt a gang that is
    shown, with ``preempt``; then as many halve its nodes and as many double them, with ``resize``, as far as its sizes and the
    idle nodes allow.  The function is called again after each action but 0, and only if another one is allowed.  Waiting is not
    allowed while nothing runs and a job of the window fits.  A forbidden action is replaced by the first allowed one.

    The policy can be pickled, and so used in parallel studies, if the function can.
    """

    act: Act
    """A function of :data:`Observation` and :data:`Mask`; the same arguments must give the same action."""
    window: int = 16
    """Number of waiting jobs that it is shown, from the head of the queue."""
    running: int = 16
    """Number of running gangs that it is shown, those that are expected to end first."""
    preempt: str | None = None
    """Preemption by ``"kill"`` (the job starts over) or ``"checkpoint"``; ``None``: no preemption."""
    resize: bool = False
    """Whether it may resize gangs of malleable jobs, and start such a job on all idle nodes where these are fewer than it asks
    for, and at least its least number."""
    name: str = "agent"

    takes_partitions: ClassVar[bool] = False
    takes_shapes: ClassVar[bool] = False
    takes_reservations: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(callable(self.act), "AgentPolicy.act", self.act, "it must be a function of an observation and a mask")
        whole_fields(self, "AgentPolicy.", window=1, running=0)
        if self.preempt is not None:
            choice("AgentPolicy.preempt", self.preempt, ("kill", "checkpoint"), other=", or None")
        if flag("AgentPolicy.resize", self.resize) or self.preempt is not None:
            require(self.running, "AgentPolicy.running", self.running, "it must be >= 1", " with preempt or resize")

    @property
    def takes_resizes(self) -> bool:
        """Whether it resizes jobs."""
        return self.resize

    @property
    def actions(self) -> int:
        """The number of actions."""
        return 1 + self.window + self.running * (bool(self.preempt) + 2 * self.resize)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parts of an observation."""
        queue, running = (self.window, len(OF_QUEUE)), (self.running, len(OF_RUNNING))
        return {"queue": queue, "running": running, "machine": (len(OF_MACHINE),)}

    def start(self, setup: Setup) -> AgentRun:
        """Return a new run; refuse ``preempt="checkpoint"`` where the machine takes no checkpoints."""
        if self.preempt is not None:
            require_store(self.name, self.preempt, setup.machine, parameter="preempt")
        return AgentRun(self, setup)


class AgentRun:
    """One run of an agent's policy."""

    def __init__(self, policy: AgentPolicy, setup: Setup) -> None:
        self._policy, self._setup, self._nodes = policy, setup, setup.nodes
        # Where nothing is saved and no node boots, a job holds its nodes for its estimate.
        saves = policy.preempt == "checkpoint" or setup.machine.checkpointing.interval_s is not None
        self._holding = setup.holding if saves or setup.machine.idle_off_s is not None or setup.occupies else None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Ask the agent for one action after the other, until it waits or can do nothing else."""
        cycle = _Cycle(self._policy, self._setup, view)
        while cycle.offers():
            action: object = self._policy.act(self._observation(cycle), cycle.mask)
            if not is_action(action, len(cycle.mask)):
                must = f"it must return a whole number from 0 to {len(cycle.mask) - 1}"
                raise SpecificationError(f"policy {self._policy.name}: act returned {quoted(action)}; {must}")
            if not cycle.mask[action]:
                action = int(cycle.mask.argmax())
            if action == WAIT:
                break
            cycle.take(int(action))
        return cycle.decisions

    def _observation(self, cycle: _Cycle) -> Observation:
        view, size = cycle.view, self._nodes
        now = view.now
        parts = {name: np.zeros(shape, dtype=np.float32) for name, shape in self._policy.shapes.items()}
        queue, shown, holding = cycle.queue, cycle.running[: self._policy.running], self._holding
        lengths = [job.estimate if holding is None else holding(job, job.estimate) for job in queue]
        ends = [gang.end - now for gang in shown]
        for part, jobs, nodes, times, since in (
            ("queue", queue, [job.nodes for job in queue], lengths, [job.submit for job in queue]),
            ("running", [gang.job for gang in shown], [gang.nodes for gang in shown], ends, [gang.start for gang in shown]),
        ):
            if nodes:
                rows = parts[part][: len(nodes)]
                rows[:, 0] = 1.0
                rows[:, 1] = np.array(nodes) / size
                rows[:, 2:4] = log_time(np.array((times, now - np.array(since))).T / TICKS_PER_SECOND)
                rows[:, 4:] = rows[:, 1:2]
                for place, job in enumerate(jobs):
                    if job.sizes is not None:
                        rows[place, 4:] = job.sizes[0] / size, min(job.sizes[1] / size, 1.0)
        hand, waiting = 2 * pi * (now % _DAY) / _DAY, len(view.waiting) - cycle.started
        clock = (1 + sin(hand)) / 2, (1 + cos(hand)) / 2
        parts["machine"][:] = (cycle.idle / size, 1 - view.up / size, waiting / (waiting + 100), *clock)
        return parts


class _Shown(NamedTuple):
    """A running gang as an agent is shown it; those that end first come first."""

    end: int  # expected, ticks
    queue_order: tuple[int, int, int]
    job: QueuedJob
    nodes: int
    start: int
    gang: RunningJob | None = None  # if it may be preempted
    is_resizable: bool = False


class _Cycle:
    """What an agent has chosen in one scheduling cycle, and what it may still choose."""

    def __init__(self, policy: AgentPolicy, setup: Setup, view: View) -> None:
        self.policy, self.view, self.idle, self.started = policy, view, view.idle, 0
        self.decisions: list[Decision] = []
        self._jobs = iter(view.waiting.values())
        self.queue: list[QueuedJob] = list(islice(self._jobs, policy.window))
        self.running: list[_Shown] = []
        self._is_listed = False  # which takes time, and often there is nothing to choose
        self.mask: Mask = np.zeros(policy.actions, dtype=np.int8)
        self._setup, self._now = setup, view.now
        self._changes_gangs = policy.preempt is not None or policy.resize

    def offers(self) -> bool:
        """Return whether there is a choice beside waiting; set the mask, and what is shown of running gangs."""
        policy = self.policy
        starts = [self._size(job) > 0 for job in self.queue]
        fits = True in starts
        if not (fits or self._changes_gangs):
            return False
        if not self._is_listed:
            self._is_listed = True
            self.running = sorted(map(self._shown, self.view.running.values()), key=_place)
        mask = self.mask = np.zeros(policy.actions, dtype=np.int8)
        mask[1 : 1 + len(starts)] = starts
        shown, first = self.running[: policy.running], 1 + policy.window
        if policy.preempt is not None:
            mask[first : first + len(shown)] = [gang.gang is not None for gang in shown]
            first += policy.running
        if policy.resize:
            mask[first : first + len(shown)] = [self._smaller(gang) < gang.nodes for gang in shown]
            first += policy.running
            mask[first : first + len(shown)] = [self._larger(gang) > gang.nodes for gang in shown]
        if not (fits or mask.any()):
            return False
        mask[WAIT] = not fits or bool(self.running) or bool(self.view.running)
        return True

    def _size(self, job: QueuedJob) -> int:
        """Return the number of nodes on which a waiting job would start, 0 if it does not fit."""
        nodes, idle = job.nodes, self.idle
        if job.sizes is not None:
            if (saved := self.view.saved_on(job)) is not None:
                nodes = saved
            elif self.policy.resize and job.sizes[0] <= idle < nodes:
                return idle
        return nodes if nodes <= idle else 0

    def _smaller(self, shown: _Shown) -> int:
        least = shown.nodes if shown.job.sizes is None or not shown.is_resizable else shown.job.sizes[0]
        return max(least, shown.nodes // 2)

    def _larger(self, shown: _Shown) -> int:
        most = shown.nodes if shown.job.sizes is None or not shown.is_resizable else shown.job.sizes[1]
        return min(most, 2 * shown.nodes, shown.nodes + self.idle)

    def _shown(self, gang: RunningJob) -> _Shown:
        mode, can = self.policy.preempt, None
        # A gang that starts and is stopped at one instant would make no progress.
        if mode is not None and gang.state is RUNNING and gang.start < self._now and can_be_saved(gang, mode, self.view):
            can = gang
        resizable = self.policy.resize and self.view.resizable(gang, gang.nodes) is not None
        return _Shown(gang.expected_end, gang.job.queue_order, gang.job, gang.nodes, gang.start, can, resizable)

    def take(self, action: int) -> None:
        """Carry out an action other than waiting."""
        kind, place = divmod(action - 1 - self.policy.window, max(self.policy.running, 1))
        if action <= self.policy.window:
            self._start(self.queue.pop(action - 1))
        elif self.policy.preempt is not None and kind == 0:
            self.decisions.append(preempt(self.running.pop(place).job, self.policy.preempt))
        else:
            self._resize(self.running.pop(place), grows=kind > (self.policy.preempt is not None))

    def _start(self, job: QueuedJob) -> None:
        nodes = self._size(job)
        self.queue.extend(islice(self._jobs, 1))
        self.started += 1
        self.idle -= nodes
        self.decisions.append(Start(job=job, nodes=None if nodes == job.nodes else nodes))
        length = job.estimate if nodes == job.nodes else self._setup.speedup.time_on(job.estimate, job.nodes, nodes)
        insort(self.running, _Shown(self._now + length, job.queue_order, job, nodes, self._now), key=_place)

    def _resize(self, shown: _Shown, *, grows: bool) -> None:
        job, nodes = shown.job, self._larger(shown) if grows else self._smaller(shown)
        self.idle += shown.nodes - nodes
        self.decisions.append(Resize(job=job, nodes=nodes))
        before, after = (self._setup.speedup.time_on(job.estimate, job.nodes, on) for on in (shown.nodes, nodes))
        rest = max(shown.end - self._now, 0) * after // before + self._setup.resize_time(job, shown.nodes, nodes)
        insort(self.running, _Shown(self._now + rest, shown.queue_order, job, nodes, shown.start), key=_place)
