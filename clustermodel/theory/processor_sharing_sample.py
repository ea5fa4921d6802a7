"""Response times under processor sharing of the very jobs of a simulation: a control variate with a known mean.

The mean response of a simulated sample and that of the same jobs under processor sharing deviate together from their means.
The latter mean is known (M/M/c, for Poisson arrivals and exponential run times), so a regression on the deviation leaves a much
narrower interval: :func:`clustermodel.equivalence.controlled_mean` (Lavenberg & Welch 1981).
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError
from clustermodel.validation import require_whole

Floats = npt.NDArray[np.float64]


def processor_sharing_responses(submit: npt.ArrayLike, run: npt.ArrayLike, servers: int) -> Floats:
    """Return the response time of each job where n jobs on c servers have the rate min(1, c / n) each.

    Args:
        submit: arrival times, ascending, shape (jobs,), in any unit.
        run: run times alone on a server, >= 0, shape (jobs,), in the same unit.
        servers: c.

    Returns:
        Response times, shape (jobs,), in the same unit.

    Raises:
        SpecificationError: the times are not two vectors of one length, arrivals do not ascend, or a run time is negative.
    """
    servers = require_whole("servers", servers, at_least=1)
    arrivals, runs = np.asarray(submit, dtype=np.float64), np.asarray(run, dtype=np.float64)
    if arrivals.ndim != 1 or arrivals.shape != runs.shape:
        raise SpecificationError(
            f"run: shape {runs.shape} is not allowed; it must be that of submit, {arrivals.shape}, with one dimension"
        )
    if not (np.diff(arrivals) >= 0).all():
        raise SpecificationError("submit: times that do not ascend are not allowed; they must be sorted")
    if not (runs >= 0).all():
        raise SpecificationError("run: a negative time is not allowed; all must be >= 0")
    responses = np.empty_like(arrivals)
    now = served = 0.0  # what a job has been served that has been there all the time
    there: list[tuple[float, int]] = []  # by ``served`` at completion
    for number, (arrival, work) in enumerate([*zip(arrivals.tolist(), runs.tolist(), strict=True), (float("inf"), 0.0)]):
        while there:
            rate = min(1.0, servers / len(there))
            end = now + max(0.0, there[0][0] - served) / rate
            if end > arrival:
                served += (arrival - now) * rate
                break
            now, (served, done) = end, heappop(there)
            responses[done] = end - arrivals[done]
        now = arrival
        heappush(there, (served + work, number))
    return responses
