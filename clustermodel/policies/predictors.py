"""Run-time predictors: how long a scheduler thinks a job will run (004_55d19449f9d7d838.txt, sections 2.3 and 5.2).

A policy that takes ``predictor=`` plans with predictions instead of users' estimates; a batch system that kills still does so
at the estimate.  A predictor is asked for as long as a job waits, and told of each job that has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

import numpy as np

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.interface import Batch, QueuedJob, Setup, View
from clustermodel.validation import require_number


@runtime_checkable
class Predictor(Protocol):
    """Predicts run times; times in ticks."""

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run and get ready for one on this machine."""

    def submitted(self, job: QueuedJob) -> None:
        """Note a job; called for each in the order of submission, before anything else is asked about it."""

    def predict(self, job: QueuedJob) -> int:
        """Return how long a job will run, from its beginning to its end; at least one tick."""

    def ended(self, job: QueuedJob, run: int) -> None:
        """Learn that a job has ended after it had run for ``run``; runs that were stopped to be repeated do not count."""


class _Stateless:
    def begin(self, setup: Setup) -> None:
        """There is nothing to forget."""

    def submitted(self, job: QueuedJob) -> None:
        """There is nothing to note."""

    def ended(self, job: QueuedJob, run: int) -> None:
        """There is nothing to learn."""


class UserEstimate(_Stateless):
    """The user's estimate."""

    def predict(self, job: QueuedJob) -> int:
        """Return the estimate."""
        return job.estimate


class LastModel(_Stateless):
    """The user's estimate, corrected by the lifetime accuracy of the user's last job that has ended (004, section 5.2).

    Lifetime accuracy is run time / estimate.  The estimate itself where no job of the user has ended yet.  Never more than the
    estimate: "prediction that exceeds user estimates is meaningless" (section 3.2).
    """

    def begin(self, setup: Setup) -> None:
        """Forget all users."""
        self._last: dict[int, tuple[int, int]] = {}  # user -> run time and estimate of the last job that has ended

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


class LastTwo(_Stateless):
    """The mean run time of the user's last two jobs that have ended, but at most the estimate.

    The estimate where fewer than two have.  This is the predictor of D. Tsafrir, Y. Etsion and D. G. Feitelson, Backfilling
    using system-generated predictions rather than user runtime estimates, 2007: 004's reference [16].
    """

    def begin(self, setup: Setup) -> None:
        """Forget all users."""
        self._last: dict[int, tuple[int, ...]] = {}  # user -> run times of the last jobs that have ended, at most two

    def predict(self, job: QueuedJob) -> int:
        """Return the mean."""
        last = self._last.get(job.user, ())
        return max(min(sum(last) // 2, job.estimate), 1) if len(last) == 2 else job.estimate

    def ended(self, job: QueuedJob, run: int) -> None:
        """Remember the run time as one of the user's last two."""
        self._last[job.user] = (*self._last.get(job.user, ())[-1:], run)


class Perfect(_Stateless):
    """The run time itself, or the estimate where the job will be killed there: no real scheduler knows it."""

    def begin(self, setup: Setup) -> None:
        """Look into the future."""
        self._setup = setup

    def predict(self, job: QueuedJob) -> int:
        """Return how long the job is going to run."""
        run = self._setup.run_time(job)
        return min(run, job.estimate) if self._setup.kill_at_estimate else run


class Virtual(Perfect):
    """A predictor of known quality: the run time times a factor uniform in 1 +- ``max_error`` (004, section 5.2.2).

    The mean absolute error is half of that.  Each job's factor is drawn when it is submitted, from a stream of its own: it does
    not depend on what a policy does, so that policies can be compared under the same predictions.

    Args:
        max_error: the paper's x %, as a fraction in [0, 1].

    Raises:
        SpecificationError: ``max_error`` is not.
    """

    def __init__(self, max_error: float) -> None:
        self.max_error = require_number("virtual predictor", max_error, "a number in [0, 1]", lambda share: 0 <= share <= 1)

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
    "last-two": LastTwo,
    "perfect": Perfect,
}
"""By name; there is ``virtual:X`` besides, with a maximum error of X."""


def predictor_of(policy: str, predictor: str | Predictor) -> Predictor:
    """Return ``predictor`` itself, or the one of that name.

    Args:
        policy: what asks, for the message.
        predictor: a name, ``"virtual:X"``, or an object of your own.

    Raises:
        SpecificationError: it is none of these.
    """
    if isinstance(predictor, str):
        if predictor in PREDICTORS:
            return PREDICTORS[predictor]()
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
    raise SpecificationError(
        f"{policy}: predictor: {predictor!r} is not allowed{did_you_mean(str(predictor), PREDICTORS)}; "
        f"it must be one of {', '.join(PREDICTORS)}, virtual:X, or an object with begin, submitted, predict and ended"
    )


def learn(predictor: Predictor, batch: Batch, view: View) -> None:
    """Tell a predictor what has happened: which jobs have been submitted, and which have ended, but for runs to be repeated."""
    for job in batch.submitted:
        predictor.submitted(job)
    for gang in batch.ended:
        if gang.job.id not in view.waiting:
            predictor.ended(gang.job, gang.ran)
