"""Corrections: how long a job is expected to run once it has outlived its prediction.

A run-time predictor is often too short.  Of a job that still runs when its prediction expires a scheduler knows only that it
runs longer, and what it then assumes decides whether it can plan at all (Tsafrir et al. 2007).

========== =========================================================================================================
name       the job is then expected to
========== =========================================================================================================
second     end a second from now, and so on at each scheduling cycle: an expired prediction is not corrected
estimate   end at the user's estimate
tsafrir    run for its prediction and 1, 5, 15 or 30 minutes or 1, 2, 5, 10, 20, 50, 100 ... hours, the first of these sums
           that has not passed, but at most for its estimate (Gaussier et al. 2015)
double     run on for as long as it has outlived its prediction already, at least for a second
========== =========================================================================================================

A correction holds until what it expects has passed.  PV-EASY, which works out its shadow load anew in each scheduling cycle,
asks for one in each: with ``double`` it expects other ends than EASY.

Without a correction, and where a job has outlived its estimate too because nothing kills it, each policy has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clustermodel.policies.view import QueuedJob
from clustermodel.schedule.profile import SHORTEST_EXTENSION
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import choice

Correction = Callable[[QueuedJob, int, int], int]
"""Returns how long a running job is now expected to run in all, given the job, its prediction and how long it has run, ticks.
What is not longer than it has run says nothing, and the policy's rule for jobs that have outlived their estimates holds."""

_MINUTE, _HOUR = 60 * TICKS_PER_SECOND, 3600 * TICKS_PER_SECOND
STEPS: Final = (
    *(minutes * _MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
)
"""By how much a prediction has grown after 1, 2, ... corrections, ticks; by the last of these again after each further one."""


def _next_step(job: QueuedJob, predicted: int, ran: int) -> int:
    step = next((step for step in STEPS if predicted + step > ran), None)
    if step is None:
        step = ((ran - predicted) // STEPS[-1] + 1) * STEPS[-1]
    return min(predicted + step, job.estimate)


CORRECTIONS: Final[dict[str, Correction]] = {
    "second": lambda _job, _predicted, ran: ran + SHORTEST_EXTENSION,
    "estimate": lambda job, _predicted, _ran: job.estimate,
    "tsafrir": _next_step,
    "double": lambda _job, predicted, ran: ran + max(SHORTEST_EXTENSION, ran - predicted),
}
"""Corrections by name."""


def correction_of(policy: str, correction: str | Correction | None) -> Correction | None:
    """Return ``correction`` itself, or the correction of that name; ``None`` is no correction.

    Args:
        policy: name of the policy, for the message.
        correction: a name or a function.

    Raises:
        SpecificationError: ``correction`` is neither.
    """
    if correction is None or callable(correction):
        return correction
    return CORRECTIONS[choice(f"{policy}: correction", correction, CORRECTIONS, other=", or a callable")]


def a_second_more(late: int) -> int:
    """Return that a job or an outage which is ``late`` ends a second from now: for policies that set no alarm for it."""
    return late + SHORTEST_EXTENSION


def as_late_again(late: int) -> int:
    """Return that a job or an outage which is ``late`` goes on for as long: a plan need not be made again every second."""
    return late + max(SHORTEST_EXTENSION, late)
