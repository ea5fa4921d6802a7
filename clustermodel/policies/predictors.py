"""Run-time predictors: how long a scheduler expects a job to run (Yuan et al. 2010, sections 2.3 and 5.2).

A policy that takes ``predictor=`` plans with predictions instead of the users' estimates; a batch system that kills jobs still
does so at the estimate.  The policy asks a :class:`Lengths`, which also tells the predictor what has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, index
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from clustermodel.errors import SpecificationError, quoted
from clustermodel.plugins import PREDICTORS as PREDICTOR_PLUGINS
from clustermodel.plugins import plugins
from clustermodel.policies.corrections import Correction, as_late_again
from clustermodel.policies.interface import NOTHING, RANDOM_NUMBERS, Setup
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import choice, require_number


@runtime_checkable
class Predictor(Protocol):
    """Predicts run times; times in ticks."""

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run and prepare for one on this machine."""

    def submitted(self, job: QueuedJob) -> None:
        """Note a submitted job; called for each job in the order of submission, before any prediction for it."""

    def predict(self, job: QueuedJob) -> int:
        """Return the expected run time of a job from start to completion; at least one tick."""

    def ended(self, job: QueuedJob, run: int) -> None:
        """Learn that a job has completed after it had run for ``run``; run attempts after which it is requeued do not count."""


class _Stateless:
    uses = NOTHING

    def begin(self, setup: Setup) -> None:
        """Do nothing: no state outlasts a run."""

    def submitted(self, job: QueuedJob) -> None:
        """Do nothing: predictions do not depend on submitted jobs."""

    def ended(self, job: QueuedJob, run: int) -> None:
        """Do nothing: predictions do not depend on completed jobs."""


class UserEstimate(_Stateless):
    """The user's estimate."""

    def predict(self, job: QueuedJob) -> int:
        """Return the estimate."""
        return job.estimate


class LastModel(_Stateless):
    """The user's estimate, corrected by the lifetime accuracy of the user's last completed job (Yuan et al. 2010, section 5.2).

    Lifetime accuracy is run time / estimate.  The prediction is the estimate itself until a job of the user has completed, and
    never more: "prediction that exceeds user estimates is meaningless" (section 3.2).
    """

    def begin(self, setup: Setup) -> None:
        """Forget all users."""
        self._last: dict[int, tuple[int, int]] = {}  # user -> run time and estimate of the last completed job

    def predict(self, job: QueuedJob) -> int:
        """Return the estimate times the accuracy."""
        last = self._last.get(job.user)
        if last is None:
            return job.estimate
        run, estimate = last
        return max(job.estimate * run // estimate, 1) if run < estimate else job.estimate

    def ended(self, job: QueuedJob, run: int) -> None:
        """Remember the job as its user's last."""
        self._last[job.user] = run, job.estimate


class LastAtSubmission(LastModel):
    """The Last Model, asked when a job is submitted and not again: a later completion does not change the prediction."""

    def begin(self, setup: Setup) -> None:
        """Forget all users and jobs."""
        super().begin(setup)
        self._predicted: dict[int, int] = {}  # job id -> prediction

    def submitted(self, job: QueuedJob) -> None:
        """Predict."""
        self._predicted[job.id] = super().predict(job)

    def predict(self, job: QueuedJob) -> int:
        """Return the prediction made at submission."""
        return self._predicted[job.id]


class LastSubmitted(LastAtSubmission):
    """The estimate, corrected by the accuracy of the user's last submitted job, completed or not.

    Another reading of "the last job of the same user" (Yuan et al. 2010, section 3.2); no real scheduler knows it.
    """

    def begin(self, setup: Setup) -> None:
        """Take the run times from the setup."""
        super().begin(setup)
        self._run_time = setup.run_time

    def submitted(self, job: QueuedJob) -> None:
        """Predict; from now on this is the user's last job."""
        super().submitted(job)
        super().ended(job, self._run_time(job))

    def ended(self, job: QueuedJob, run: int) -> None:
        """Do nothing: the submission has counted."""


class LastTwo(_Stateless):
    """The mean run time of the user's last two completed jobs, in whole seconds, but at most the estimate.

    The prediction is the estimate where fewer than two have completed, and is made once, when the job is submitted (Tsafrir et
    al. 2007, reference [16] of Yuan et al. 2010; the program of Gaussier et al. 2015).
    """

    at_submission = True

    def begin(self, setup: Setup) -> None:
        """Forget all users."""
        self._last: dict[int, tuple[int, ...]] = {}  # user -> run times of the last completed jobs, at most two

    def predict(self, job: QueuedJob) -> int:
        """Return the mean."""
        last = self._last.get(job.user, ())
        if len(last) < 2:
            return job.estimate
        mean = sum(last) // 2
        return max(min(mean // TICKS_PER_SECOND * TICKS_PER_SECOND or mean, job.estimate), 1)

    def ended(self, job: QueuedJob, run: int) -> None:
        """Remember the run time as one of the user's last two."""
        self._last[job.user] = (*self._last.get(job.user, ())[-1:], run)


class Perfect(_Stateless):
    """The run time itself, or the estimate where the job will be killed at it: no real scheduler knows this."""

    def begin(self, setup: Setup) -> None:
        """Take the run times from the setup."""
        self._setup = setup

    def predict(self, job: QueuedJob) -> int:
        """Return how long the job will really run."""
        run = self._setup.run_time(job)
        return min(run, job.estimate) if self._setup.kill_at_estimate else run


class Virtual(Perfect):
    """Predicts the run time times a factor uniform in 1 +- ``max_error`` (Yuan et al. 2010, section 5.2.2).

    The mean absolute error is half of ``max_error``.  Each job's factor is drawn at submission, from the predictor's own random
    stream.  It does not depend on the policy's decisions, so policies can be compared under the same predictions.

    Args:
        max_error: the paper's x %, as a fraction in [0, 1].

    Raises:
        SpecificationError: ``max_error`` is not.
    """

    uses = frozenset({RANDOM_NUMBERS})

    def __init__(self, max_error: float) -> None:
        self.max_error = require_number("virtual predictor", max_error, "a number in [0, 1]", lambda x: 0 <= x <= 1)

    def begin(self, setup: Setup) -> None:
        """Begin the stream of factors."""
        super().begin(setup)
        self._rng: np.random.Generator = setup.rng.spawn(1)[0]
        self._factor: dict[int, float] = {}  # job id -> its factor

    def submitted(self, job: QueuedJob) -> None:
        """Draw the job's factor."""
        self._factor[job.id] = 1 + self.max_error * self._rng.uniform(-1, 1)

    def predict(self, job: QueuedJob) -> int:
        """Return the run time times the factor."""
        return max(round(super().predict(job) * self._factor[job.id]), 1)

    def ended(self, job: QueuedJob, run: int) -> None:
        """Forget the job's factor."""
        del self._factor[job.id]


PREDICTORS: Final[dict[str, Callable[[], Predictor]]] = {
    "estimate": UserEstimate,
    "last": LastModel,
    "last-submitted": LastSubmitted,
    "last-two": LastTwo,
    "perfect": Perfect,
}
"""Predictors by name; besides these there is ``virtual:X``, with a maximum error of X, and those of plug-ins."""


def predictor_of(policy: str, predictor: str | Predictor) -> Predictor:
    """Return ``predictor`` itself, or the predictor of that name.

    Args:
        policy: name of the policy, for the message.
        predictor: a name, ``"virtual:X"``, or an object of your own.

    Raises:
        SpecificationError: ``predictor`` is none of these.
    """
    if isinstance(predictor, str):
        name, _, error = predictor.partition(":")
        if name == "virtual":
            try:
                return Virtual(float(error))
            except ValueError:
                raise SpecificationError(
                    f"{policy}: predictor: {predictor!r} is not allowed; write virtual:X, with the maximum error X in [0, 1]"
                ) from None
    elif isinstance(predictor, Predictor) and not isinstance(predictor, type):
        return predictor
    if (make := installed_predictor(predictor)) is not None:
        made = make()
        if not isinstance(made, Predictor):
            raise SpecificationError(
                f"{policy}: predictor {predictor!r}: {quoted(made)} is not allowed; it must have begin, submitted, predict "
                "and ended"
            )
        return made
    other = ", virtual:X, or an object with begin, submitted, predict and ended"
    names = [*PREDICTORS, *plugins(PREDICTOR_PLUGINS)]
    return PREDICTORS[choice(f"{policy}: predictor", predictor, names, other=other)]()


def installed_predictor(name: object) -> Callable[..., object] | None:
    """Return what makes the predictor of another package with this name; ``None`` if there is none.

    Raises:
        SpecificationError: the plug-in cannot be imported.
    """
    if not isinstance(name, str) or name in PREDICTORS or name not in (installed := plugins(PREDICTOR_PLUGINS)):
        return None
    return installed[name].load()


def holds_longer(setup: Setup) -> bool:
    """Return whether jobs spend time on periodic checkpoints, or on restarts that no decision of the policy causes."""
    costs = setup.machine.checkpointing
    return setup.machine.failures is not None or costs.interval_s is not None or costs.restart_charge != "on-start"


def may_overrun(setup: Setup) -> bool:
    """Return whether a job may hold its nodes for longer than its estimate."""
    return not setup.kill_at_estimate or holds_longer(setup)


class Lengths:
    """Expected run times of the jobs of one run: what a policy plans with.

    Args:
        predictor: gives the run times; told of the new run.
        setup: of the run.
        correction: of predictions that have expired, if they are corrected.
        beyond: how much later than expected a job will end, or an outage, given how late it is already, ticks, where no
            correction says more.
        once: whether each job's run time is predicted once, when it is submitted, or again whenever it is asked for, until the
            job starts.  Predictors with a true ``at_submission`` are asked once in any case.
    """

    def __init__(
        self,
        predictor: Predictor,
        setup: Setup,
        correction: Correction | None = None,
        beyond: Callable[[int], int] = as_late_again,
        *,
        once: bool = False,
    ) -> None:
        predictor.begin(setup)
        self._predictor = predictor
        self._correction = correction
        self._beyond = beyond
        self._once = once or bool(getattr(predictor, "at_submission", False))
        self._predicted: dict[int, int] = {}  # job id -> prediction that stays, of submitted or of running jobs
        self._jobs: dict[int, QueuedJob] = {}
        self.are_estimates = type(predictor) is UserEstimate
        """Whether these are the users' estimates themselves."""
        self.may_overrun = may_overrun(setup) or not self.are_estimates
        """Whether a job may run longer than expected."""
        self.predicted: Callable[[QueuedJob], int]
        """Return how long a job is expected to run on the nodes it asked for, ticks."""
        if self.are_estimates:
            self.predicted = attrgetter("estimate")  # asked a million times
        elif self._once:
            self.predicted = lambda job: self._predicted[job.id]
        else:
            self.predicted = lambda job: self._predicted.get(job.id) or predictor.predict(job)
        self.of = self.predicted
        """Return how long a waiting job is expected to hold its nodes, ticks: as long as it runs, unless part of that has been
        saved, or periodic checkpoints take time."""
        if holds_longer(setup):
            self.of = lambda job: setup.holding(job, self.predicted(job))

    def observe(self, batch: Batch, view: View) -> None:
        """Tell the predictor which jobs have been submitted and which have completed; restarted jobs have not."""
        if self.are_estimates:
            return
        predictor, predicted = self._predictor, self._predicted
        for job in batch.submitted:
            predictor.submitted(job)
            self._jobs[job.id] = job
        for gang in batch.ended:
            if gang.job.id not in view.waiting:
                predictor.ended(gang.job, gang.ran)
                del self._jobs[gang.job.id]
                predicted.pop(gang.job.id, None)
        if self._once:
            predicted.update((job.id, predictor.predict(job)) for job in batch.submitted)
        else:
            for job in batch.requeued:
                predicted.pop(job.id, None)

    def started(self, job: QueuedJob) -> None:
        """Keep the prediction of a job that starts now."""
        if not self.are_estimates:
            self._predicted[job.id] = self.predicted(job)

    def delays(self, running: Mapping[int, RunningJob]) -> Callable[[int, int], int]:
        """Return :meth:`delay` as a function of the id of a job, or of an outage.

        Args:
            running: the gangs that the policy sees.
        """
        jobs = self._jobs

        def delay(number: int, late: int) -> int:
            if (gang := running.get(number)) is not None:
                return self.delay(gang.job, late)
            if (ended := jobs.get(number)) is not None:  # now, which is still to be reported: it was corrected before
                return self.delay(ended, late - 1)
            return self._beyond(late)

        return delay

    def delay(self, job: QueuedJob | None, late: int) -> int:
        """Return how much later than expected a running job will end, ticks.

        Args:
            job: the job; ``None`` stands for a node that is down for longer than expected.
            late: for how long it has run beyond its expected end, ticks.

        Raises:
            SpecificationError: a correction of one's own returns no whole number.
        """
        if job is not None and self._correction is not None:
            predicted = self.predicted(job)
            corrected: Any = self._correction(job, predicted, predicted + late)
            try:
                delay = index(corrected) - predicted
            except TypeError:
                raise SpecificationError(f"correction: {quoted(corrected)} is not allowed; it must be whole ticks") from None
            if delay > late:
                return delay
        return self._beyond(late)
