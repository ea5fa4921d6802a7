"""Run-time predictors: how long a scheduler expects a job to run (Yuan et al. 2010, sections 2.3 and 5.2).

A policy that takes ``predictor=`` plans with predictions instead of the users' estimates; a batch system that kills jobs still
does so at the estimate.  The policy asks a :class:`Lengths`, which also tells the predictor what has happened.

A predictor is often too short.  Of a job that still runs when its prediction expires a scheduler knows only that it runs
longer, and what it then assumes, the *correction*, decides whether it can plan at all (Tsafrir et al. 2007).  A correction
holds until what it expects has passed; PV-EASY asks for one in each scheduling cycle.  Without a correction, and where a job
has outlived its estimate too because nothing kills it, each policy has its own rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from operator import attrgetter, index
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import numpy as np

from clustermodel.errors import refused
from clustermodel.plans.profile import SHORTEST_EXTENSION
from clustermodel.plugins import PREDICTORS as PREDICTOR_PLUGINS
from clustermodel.plugins import made_by, names_module, of_module, plugins
from clustermodel.policies.interface import NOTHING, RANDOM_NUMBERS, Setup, Stateless
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import choice, require, require_number

Correction = Callable[[QueuedJob, int, int], int]
"""Returns how long a running job is now expected to run in all, given the job, its prediction and how long it has run, ticks.
What is not longer than it has run says nothing, and the policy's rule for jobs that have outlived their estimates holds."""

_MINUTE, _HOUR = 60 * TICKS_PER_SECOND, 3600 * TICKS_PER_SECOND
STEPS: Final = (*(n * _MINUTE for n in (1, 5, 15, 30)), *(n * _HOUR for n in (1, 2, 5, 10, 20, 50, 100)))
"""By how much a prediction has grown after 1, 2, ... corrections, ticks; by the last of these again after each further one."""


def a_second_more(late: int) -> int:
    """Return that what is ``late`` ends a second from now: for policies that set no alarm for it."""
    return late + SHORTEST_EXTENSION


def as_late_again(late: int) -> int:
    """Return that what is ``late`` goes on for as long: a plan need not be made again every second."""
    return late + max(SHORTEST_EXTENSION, late)


def _next_step(job: QueuedJob, predicted: int, ran: int) -> int:
    """Return the prediction plus the first step that has not passed, but at most the estimate."""
    beyond = ((ran - predicted) // STEPS[-1] + 1) * STEPS[-1]
    step = next((step for step in STEPS if predicted + step > ran), beyond)
    return min(predicted + step, job.estimate)


CORRECTIONS: Final[dict[str, Correction]] = {
    "second": lambda _job, predicted, ran: predicted + a_second_more(ran - predicted),  # not corrected
    "estimate": lambda job, _predicted, _ran: job.estimate,
    "tsafrir": _next_step,  # as Gaussier et al. 2015
    "double": lambda _job, predicted, ran: predicted + as_late_again(ran - predicted),
}


def correction_of(policy: str, correction: str | Correction | None) -> Correction | None:
    """Return ``correction`` itself, or the correction of that name; refuse what is neither, in the name of ``policy``."""
    if correction is None or callable(correction):
        return correction
    return CORRECTIONS[choice(f"{policy}: correction", correction, CORRECTIONS, other=", or a callable")]


class Predictions(Protocol):
    """A predictor in one run; times in ticks."""

    def submitted(self, job: QueuedJob) -> None:
        """Note a submitted job; called for each job in the order of submission, before any prediction for it."""

    def predict(self, job: QueuedJob) -> int:
        """Return the expected run time of a job from start to completion; at least one tick."""

    def ended(self, job: QueuedJob, run: int) -> None:
        """Learn that a job has completed after it had run for ``run``; run attempts after which it is requeued do not count."""


@runtime_checkable
class Predictor(Protocol):
    """A predictor of run times: a specification, like a policy."""

    def start(self, setup: Setup) -> Predictions:
        """Return the predictor of a new run on this machine; the specification itself, if it learns nothing."""


class _LearnsNothing:
    def submitted(self, job: QueuedJob) -> None:
        pass

    def ended(self, job: QueuedJob, run: int) -> None:
        pass


@dataclass(frozen=True)
class UserEstimate(_LearnsNothing, Stateless):
    """The user's estimate."""

    def predict(self, job: QueuedJob) -> int:
        return job.estimate


Past = tuple[tuple[int, int], ...]  # run times and estimates of the last two jobs of a user, the last one last


class _FromPast(_LearnsNothing):
    """Predicts by a rule from the last completed jobs of the same user."""

    def __init__(self, rule: Callable[[QueuedJob, Past], int]) -> None:
        self._rule = rule
        self._past: dict[int, Past] = {}  # by user

    def predict(self, job: QueuedJob) -> int:
        return self._rule(job, self._past.get(job.user, ()))

    def ended(self, job: QueuedJob, run: int) -> None:
        self._past[job.user] = (*self._past.get(job.user, ())[-1:], (run, job.estimate))


def _as_accurate(job: QueuedJob, past: Past) -> int:
    """Return the estimate, corrected by the lifetime accuracy of the last job: run time / estimate (Yuan et al. 2010, 5.2)."""
    # Never more than the estimate: "prediction that exceeds user estimates is meaningless" (section 3.2).
    run, estimate = past[-1] if past else (1, 1)
    return max(job.estimate * run // estimate, 1) if run < estimate else job.estimate


def _mean_of_two(job: QueuedJob, past: Past) -> int:
    """Return the mean run time of the last two jobs, in whole seconds, but at most the estimate, also where there are fewer."""
    # Tsafrir et al. 2007, reference [16] of Yuan et al. 2010; the program of Gaussier et al. 2015.
    if len(past) < 2:
        return job.estimate
    mean = sum(run for run, _ in past) // 2
    return max(min(mean // TICKS_PER_SECOND * TICKS_PER_SECOND or mean, job.estimate), 1)


class _FromSubmitted(_LearnsNothing):
    """Takes the accuracy of the last submitted job, completed or not, which no real scheduler knows.

    Another reading of "the last job of the same user" (Yuan et al. 2010, section 3.2).  Predicts when a job is submitted.
    """

    def __init__(self, setup: Setup) -> None:
        self._run_time, self._past = setup.run_time, _FromPast(_as_accurate)
        self._predicted: dict[int, int] = {}  # job id -> prediction

    def submitted(self, job: QueuedJob) -> None:
        self._predicted[job.id] = self._past.predict(job)
        self._past.ended(job, self._run_time(job))  # from now on this is the user's last job

    def predict(self, job: QueuedJob) -> int:
        return self._predicted[job.id]


class _Perfect(_LearnsNothing):
    """Knows the run time, as no real scheduler does; it is the estimate where the job will be killed at it."""

    def __init__(self, setup: Setup) -> None:
        self._run_time, self._kills = setup.run_time, setup.kill_at_estimate

    def predict(self, job: QueuedJob) -> int:
        run = self._run_time(job)
        return min(run, job.estimate) if self._kills else run


class _Virtual(_Perfect):
    def __init__(self, setup: Setup, max_error: float) -> None:
        super().__init__(setup)
        self._max_error = max_error
        self._rng: np.random.Generator = setup.rng.spawn(1)[0]
        self._factor: dict[int, float] = {}  # job id -> its factor

    def submitted(self, job: QueuedJob) -> None:
        self._factor[job.id] = 1 + self._max_error * self._rng.uniform(-1, 1)

    def predict(self, job: QueuedJob) -> int:
        return max(round(super().predict(job) * self._factor[job.id]), 1)

    def ended(self, job: QueuedJob, run: int) -> None:
        del self._factor[job.id]


@dataclass(frozen=True)
class Virtual:
    """Predicts the run time times a factor uniform in 1 +- ``max_error`` (Yuan et al. 2010, section 5.2.2).

    The mean absolute error is half of ``max_error``.  Each job's factor is drawn at submission, from the predictor's own random
    stream.  It does not depend on the policy's decisions, so policies can be compared under the same predictions.
    """

    depends_on: ClassVar[frozenset[str]] = frozenset({RANDOM_NUMBERS})
    max_error: float
    """The paper's x %, as a fraction in [0, 1]."""

    def __post_init__(self) -> None:
        require_number("virtual predictor", self.max_error, "a number in [0, 1]", lambda x: 0 <= x <= 1)

    def start(self, setup: Setup) -> Predictions:
        return _Virtual(setup, self.max_error)


@dataclass(frozen=True)
class _Shipped:
    """A predictor without parameters."""

    depends_on: ClassVar[frozenset[str]] = NOTHING
    in_run: Callable[[Setup], Predictions]
    at_submission: bool = False
    """Whether each job is predicted once, when it is submitted."""

    def start(self, setup: Setup) -> Predictions:
        return self.in_run(setup)


PREDICTORS: Final[dict[str, Predictor]] = {
    "estimate": UserEstimate(),
    "last": _Shipped(lambda _: _FromPast(_as_accurate)),
    "last-submitted": _Shipped(_FromSubmitted),
    "last-two": _Shipped(lambda _: _FromPast(_mean_of_two), at_submission=True),
    "perfect": _Shipped(_Perfect),
}
"""Predictors by name; besides these there is ``virtual:X``, with a maximum error of X, and those of plug-ins."""


def predictor_of(policy: str, predictor: str | Predictor) -> Predictor:
    """Return ``predictor`` itself, or the predictor of that name; refuse what is neither, in the name of ``policy``."""
    field = f"{policy}: predictor"
    if isinstance(predictor, Predictor) and not isinstance(predictor, type):
        return predictor
    if isinstance(predictor, str) and predictor in PREDICTORS:  # before plug-ins, which take a while to find
        return PREDICTORS[predictor]
    if isinstance(predictor, str) and predictor.partition(":")[0] == "virtual":
        try:
            return Virtual(float(predictor.partition(":")[2]))
        except ValueError:
            raise refused(field, predictor, "write virtual:X, with the maximum error X in [0, 1]") from None
    if (make := installed_predictor(predictor)) is not None:
        made = made_by(f"{field} {predictor!r}", make) if callable(make) else make
        if not isinstance(made, Predictor):
            must = "it must have start, which returns an object with submitted, predict and ended"
            raise refused(f"{field} {predictor!r}", made, must)
        return made
    other = ", virtual:X, a plug-in, module:Class, or in Python an object with start"
    return PREDICTORS[choice(field, predictor, [*PREDICTORS, *plugins(PREDICTOR_PLUGINS)], other=other)]


def installed_predictor(name: object) -> object | None:
    """Return the predictor of another package or a module, or what makes it, which is imported; ``None`` if there is none."""
    if not isinstance(name, str) or name in PREDICTORS:
        return None
    if names_module(name):
        return of_module("predictor", name, PREDICTORS)
    return installed[name].load() if name in (installed := plugins(PREDICTOR_PLUGINS)) else None


def holds_longer(setup: Setup) -> bool:
    """Return whether jobs spend time on periodic checkpoints, boots, start-up, epilog, or restarts that no decision causes."""
    machine, costs = setup.machine, setup.machine.checkpointing
    restarts = machine.failures is not None or costs.restart_charge != "on-start"
    return restarts or costs.interval_s is not None or machine.boot > 0 or setup.occupies


def may_overrun(setup: Setup) -> bool:
    """Return whether a job may hold its nodes for longer than its estimate."""
    return not setup.kill_at_estimate or holds_longer(setup)


class Lengths:
    """Expected run times of the jobs of one run: what a policy with a predictor, and perhaps a correction, plans with.

    ``beyond`` says how much later than expected a job will end, or an outage, given how late it is already, ticks, where no
    correction says more.  With ``once``, or a predictor with a true ``at_submission``, each job's run time is predicted once,
    when it is submitted; otherwise whenever it is asked for, until the job starts.
    """

    def __init__(self, policy: Any, setup: Setup, beyond: Callable[[int], int] = as_late_again, *, once: bool = False) -> None:
        predictor = predictor_of(policy.name, policy.predictor)
        self._predictions = predictions = predictor.start(setup)
        name = policy.predictor if isinstance(policy.predictor, str) else type(predictor).__name__

        def predict(job: QueuedJob) -> int:
            ticks: Any = predictions.predict(job)
            if type(ticks) is int and ticks > 0:
                return ticks
            must = "predict must return a whole number of ticks (microseconds), at least 1"
            require(isinstance(ticks, Integral) and int(ticks) > 0, f"predictor {name}", ticks, must, f" for job {job.id}")
            return int(ticks)

        self._predict = predict
        self._correction = correction_of(policy.name, getattr(policy, "correction", None))
        self._beyond = beyond
        self._once = once or bool(getattr(predictor, "at_submission", False))
        self._predicted: dict[int, int] = {}  # job id -> prediction that stays, of submitted or of running jobs
        self._jobs: dict[int, QueuedJob] = {}
        self.are_estimates = type(predictor) is UserEstimate
        self.may_overrun = may_overrun(setup) or not self.are_estimates  # whether a job may run longer than expected
        self.predicted: Callable[[QueuedJob], int]  # returns how long a job is expected to run on the nodes it asked for, ticks
        if self.are_estimates:
            self.predicted = attrgetter("estimate")  # asked a million times
        elif self._once:
            self.predicted = lambda job: self._predicted[job.id]
        else:
            self.predicted = lambda job: self._predicted.get(job.id) or predict(job)
        self.of = self.predicted
        """Returns how long a waiting job is expected to hold its nodes, ticks: as long as it runs, unless part of that has been
        saved, or periodic checkpoints take time."""
        if holds_longer(setup):
            self.of = lambda job: setup.holding(job, self.predicted(job))

    def observe(self, batch: Batch, view: View) -> None:
        """Tell the predictor which jobs have been submitted and which have completed; restarted jobs have not."""
        if self.are_estimates:
            return
        predictions, predicted = self._predictions, self._predicted
        for job in batch.submitted:
            predictions.submitted(job)
            self._jobs[job.id] = job
        for gang in batch.ended:
            if gang.job.id not in view.waiting:
                predictions.ended(gang.job, gang.ran)
                del self._jobs[gang.job.id]
                predicted.pop(gang.job.id, None)
        if self._once:
            predicted.update((job.id, self._predict(job)) for job in batch.submitted)
        else:
            for job in batch.requeued:
                predicted.pop(job.id, None)

    def started(self, job: QueuedJob) -> None:
        """Keep the prediction of a job that starts now."""
        if not self.are_estimates:
            self._predicted[job.id] = self.predicted(job)

    def delays(self, running: Mapping[int, RunningJob]) -> Callable[[int, int], int]:
        """Return :meth:`delay` as a function of the id of a job, or of an outage; ``running`` is that of the view."""

        def delay(number: int, late: int) -> int:
            if (gang := running.get(number)) is not None:
                return self.delay(gang.job, late)
            if (ended := self._jobs.get(number)) is not None:  # now, which is still to be reported: it was corrected before
                return self.delay(ended, late - 1)
            return self._beyond(late)

        return delay

    def delay(self, job: QueuedJob | None, late: int) -> int:
        """Return how much later than expected a running job that is ``late``, or an outage (``None``), will end, ticks."""
        if job is not None and self._correction is not None:
            predicted = self.predicted(job)
            corrected: Any = self._correction(job, predicted, predicted + late)
            try:
                delay = index(corrected) - predicted
            except TypeError:
                raise refused("correction", corrected, "it must be whole ticks") from None
            if delay > late:
                return delay
        return self._beyond(late)
