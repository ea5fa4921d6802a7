"""Gang scheduling of one-node jobs, with slices of no length that cost nothing to switch: the worth of migration.

Poisson arrivals, exponential run times.  Without migration (`gs`) a job stays in its column of the Ousterhout matrix
(Ousterhout 1982).  An arriving job gets a column with the fewest jobs, and as FillMatrix replicates gangs into the empty
cells of their columns, a column with jobs is never idle.  So the columns are servers that their jobs share, and an arriving job
joins the shortest queue (Haight 1958; Flatto & McKean 1977).  With free migration (`mgs`) no column is idle while another has
two jobs: M/M/c.

The order of service does not change the number of jobs, as run times are exponential: the mean response is exact although the
jobs of a column do not have equal shares in the simulator (the oldest job gets the first replica).

The functions take the number of ``nodes`` (c, the columns of the matrix), the ``arrival_rate`` (jobs per second) and
``mean_run_s`` (seconds); they refuse a queue that is not stable by a SpecificationError.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from math import comb
from typing import Final, NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.theory.matrix_geometric import MOST_PHASES, UnstableError, chain_of, solve
from clustermodel.theory.queueing import erlang_c, mmc_mean_wait
from clustermodel.validation import require_number, require_whole

TOLERANCE: Final = 1e-7
"""Half the distance of the bounds, relative to the mean response, at which :func:`gs_mean_response` stops."""

Queues = tuple[int, ...]


class Bounds(NamedTuple):
    """Bounds of the mean response."""

    lower: float
    """Mean response with threshold jockeying, seconds."""
    upper: float
    """Mean response with threshold blocking, seconds; infinite if that chain is not stable."""
    threshold: int
    """Largest difference between the longest and the shortest queue in the truncated chains."""


def mgs_mean_response(nodes: int, arrival_rate: float, mean_run_s: float) -> float:
    """Return the mean response of one-node gangs with free migration, seconds: that of M/M/c."""
    return mmc_mean_wait(nodes, arrival_rate, mean_run_s) + mean_run_s


def gs_mean_response(nodes: int, arrival_rate: float, mean_run_s: float) -> float:
    """Return the mean response of one-node gangs without migration, seconds: that of joining the shortest of c queues.

    The chain is truncated at a difference between queues, which grows until the bounds of :func:`shortest_queue_bounds` agree
    to 2e-7 of the mean; the result is their mean, so its relative error is at most 1e-7.

    The truncated chain needs more than a thousand phases, and is refused, from 5 nodes on at high load.
    """
    nodes = require_whole("nodes", nodes, at_least=1)
    if nodes == 1:
        return mgs_mean_response(nodes, arrival_rate, mean_run_s)
    threshold = 3
    while True:
        bounds = shortest_queue_bounds(nodes, arrival_rate, mean_run_s, threshold)
        if bounds.upper - bounds.lower <= 2 * TOLERANCE * bounds.lower:
            return (bounds.lower + bounds.upper) / 2
        threshold += 2


def shortest_queue_bounds(nodes: int, arrival_rate: float, mean_run_s: float, threshold: int) -> Bounds:
    """Return bounds of the mean response where arriving jobs join the shortest of c queues with a server each.

    The longest and the shortest queue differ by at most ``threshold``.  Where a job would leave the shortest queue and exceed
    it, a job of the longest queue takes its place at once (threshold jockeying: lower bound) or the job does not leave
    (threshold blocking: upper bound) (Adan, van Houtum & van der Wal 1994).  The length of the shortest queue, which is the
    level of the chain, is not truncated.
    """
    nodes, threshold = require_whole("nodes", nodes, at_least=2), require_whole("threshold", threshold, at_least=1)
    mean_run_s = require_number("mean_run_s", mean_run_s, "a number > 0", lambda mean: 0 < mean < float("inf"))
    offered = arrival_rate * mean_run_s
    erlang_c(nodes, offered)  # refuses a queue that is not stable
    phases = comb(threshold + nodes - 1, nodes - 1)
    if phases > MOST_PHASES:
        raise SpecificationError(
            f"nodes: {nodes} nodes at load {offered / nodes:g} need more than {MOST_PHASES:,} phases; "
            "it must be fewer nodes, or a lower load"
        )
    means = []
    for jockeying in (True, False):
        chain = chain_of(partial(_joining_the_shortest, offered, threshold, jockeying=jockeying), (0,) * nodes)
        try:
            means.append(solve(chain).mean(sum, nodes) / arrival_rate)
        except UnstableError:
            means.append(float("inf"))
    return Bounds(means[0], means[1], threshold)


def _joining_the_shortest(
    offered: float, threshold: int, level: int, surplus: Queues, *, jockeying: bool
) -> Iterator[tuple[float, int, Queues]]:
    """Yield the transitions of the truncated chain, with the mean run time as the unit of time."""
    # The level is the length of the shortest queue, the phase the surplus of each queue, in descending order.

    def state(queues: Iterable[int]) -> tuple[int, Queues]:
        jobs = sorted(queues, reverse=True)
        return level + jobs[-1], tuple(length - jobs[-1] for length in jobs)

    yield offered, *state((*surplus[:-1], 1))
    for place, jobs in enumerate(surplus):
        if level + jobs == 0:
            continue
        after = list(surplus)
        if jobs or surplus[0] < threshold:
            after[place] -= 1
        elif jockeying:
            after[0] -= 1
        else:
            continue
        yield 1.0, *state(after)
