"""How full are the rows of a saturated machine: loss of capacity because gangs do not fill rows.

A machine of N nodes always has jobs waiting; sizes are independent, of one distribution.  The *fill* is the share of the nodes
in use, averaged over rows, and at saturation the loss of capacity is kappa = 1 - fill.

Equal run times.  If all run times are equal and a slice is not shorter, whatever runs in a slice completes in it: packing jobs
into rows is bin packing.

===============================  =========================  =============================================
scheduler                        packing rule               here
===============================  =========================  =============================================
``fcfs``, ``gs:mpl=1``           next fit                   :func:`next_fit_fill`, exact
``gs`` without its replicas      best fit, MPL open rows    :func:`best_fit_fill`, exact
``bf``, ``bgs:mpl=1``, ``easy``  first fit                  :func:`first_fit_rows`, for a list of jobs
any, whatever the run times      no rule                    :func:`largest_fill`, an upper bound
===============================  =========================  =============================================

``gs`` has CompactMatrix and FillMatrix too (Zhang et al. 2003, section 5.1): a gang of another row runs besides where its
own columns are free.  In simulations that changes nothing if sizes divide one another, 1, 2, 4 and 8 for instance; sizes 3 and
5 on 8 nodes fill rows better than :func:`best_fit_fill`.  No formula is known here for that.

Other run times.  With exponential run times nodes become free one gang at a time, and rows are never filled anew;
``rigid_jobs.multiserver_job_utilization`` is exact for ``fcfs`` and ``gs:mpl=1``.  The upper bound holds
for any run times that do not depend on the sizes.

``nodes`` is N, and ``sizes`` are nodes of a job -> probability; a SpecificationError refuses sizes that are not whole numbers
from 1 to N, and probabilities that do not add up to one.
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.theory.arguments import job_size, job_sizes
from clustermodel.theory.matrix_geometric import stationary
from clustermodel.validation import require_whole

_MOST_STATES: Final = 100_000  # most states of the Markov chain of best fit


def next_fit_fill(nodes: int, sizes: Mapping[int, float]) -> float:
    """Return the mean fill of rows under next fit: a row is closed when the next job in the queue does not fit.

    A row begins with the job that did not fit into the row before, so these first sizes are a Markov chain.  Let u(x) be
    the probability that sums of fresh sizes visit x (a renewal sequence).  A row that begins with size a passes fill x with
    probability u(x - a), and is closed there by a job of size b > N - x: from a to b with probability
    p(b) sum_{x > N - b} u(x - a).
    """
    p = _probabilities(nodes, sizes)
    visits = np.zeros(nodes + 1)
    visits[0] = 1.0
    for x in range(1, nodes + 1):
        visits[x] = np.dot(p[1 : x + 1], visits[:x][::-1])
    too_large = np.array([p[nodes - x + 1 :].sum() for x in range(nodes + 1)])  # P(next size > N - x)
    support = np.flatnonzero(p)
    chain = np.zeros((len(support), len(support)))
    fills = np.zeros(len(support))
    for row, first in enumerate(support):
        passed = np.append(np.zeros(first), visits[: nodes + 1 - first])  # by fill
        chain[row] = [p[b] * passed[nodes - b + 1 :].sum() for b in support]
        fills[row] = float(np.dot(passed * too_large, np.arange(nodes + 1)))
    return float(stationary(chain - np.eye(len(support))) @ fills) / nodes


def best_fit_fill(nodes: int, sizes: Mapping[int, float], rows: int) -> float:
    """Return the mean fill of rows under best fit with a number of open rows.

    Jobs are placed in order of arrival, each into the fullest row that has enough free nodes, the lowest-numbered among equals.
    When the next job fits into none, the row whose turn it is (rows take turns by number) is closed, and that job begins the
    new row in its place.  It is the bounded-space best fit of Csirik & Johnson 2001, but for the rule which row to close.  The
    fills of the rows and the turn are a Markov chain, one step for each job.

    There may be at most a hundred thousand states.  With one row it is next fit.
    """
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import spsolve

    p = _probabilities(nodes, sizes)
    rows = require_whole("rows", rows, at_least=1)
    support = np.flatnonzero(p).tolist()
    largest = max(support)
    # Enough jobs of the largest size lead to this state from any other, so it recurs.
    start = ((0,) * rows, 0)
    for _ in range(2 * rows * nodes):
        start, _ = _place(nodes, start, largest)
    number = {start: 0}
    states = [start]
    entries: list[tuple[float, int, int]] = []
    closed: list[tuple[float, float]] = []  # by state: probability that a row is closed, and that times its fill
    for origin, state in enumerate(states):  # which grows
        closes = 0.0
        for size in support:
            after, full = _place(nodes, state, size)
            if after not in number:
                if len(states) == _MOST_STATES:
                    raise SpecificationError(
                        f"rows: {rows} is not allowed with these sizes; the chain has more than {_MOST_STATES:,} states"
                    )
                number[after] = len(states)
                states.append(after)
            entries.append((p[size], origin, number[after]))
            closes += p[size] * full
        closed.append((closes, closes * state[0][state[1]]))
    values, origins, targets = zip(*entries, strict=True)
    count = len(states)
    chain = csr_array((values, (origins, targets)), shape=(count, count))
    rates = np.ones(count)  # relative to visits of the first state
    if count > 1:
        rest = (eye_array(count, format="csr") - chain)[1:, 1:]
        rates[1:] = spsolve(rest.T.tocsc(), chain[[0], 1:].toarray()[0])
    closings, fills = rates @ np.array(closed)
    return float(fills / closings) / nodes


def _place(nodes: int, state: tuple[tuple[int, ...], int], size: int) -> tuple[tuple[tuple[int, ...], int], bool]:
    """Return the state after a job of ``size`` nodes, and whether it has closed a row."""
    fills, turn = state
    fitting = [row for row, fill in enumerate(fills) if fill + size <= nodes]
    if fitting:
        row = max(fitting, key=lambda row: (fills[row], -row))
        return ((*fills[:row], fills[row] + size, *fills[row + 1 :]), turn), False
    return ((*fills[:turn], size, *fills[turn + 1 :]), (turn + 1) % len(fills)), True


def first_fit_rows(nodes: int, sizes: Iterable[int]) -> list[int]:
    """Return the fills of rows, in nodes, when each job of a list takes the first row that has enough free nodes.

    If all jobs are submitted at once with equal run times, which the scheduler knows, backfilling is first fit: under
    conservative backfilling each job in turn gets the earliest slot, and under EASY each row takes, in order, every waiting
    job that still fits.  The makespan is the number of rows times the run time.  The mean fill depends on how
    many jobs there are; no closed form is known for it.
    """
    nodes = require_whole("nodes", nodes, at_least=1)
    fills: list[int] = []
    with_free: list[list[int]] = [[] for _ in range(nodes + 1)]  # rows by number of free nodes, as heaps
    for given in sizes:
        size = job_size(given, nodes)
        row, free = min(
            ((heap[0], free) for free, heap in enumerate(with_free) if free >= size and heap), default=(len(fills), nodes)
        )
        if row == len(fills):
            fills.append(0)
        else:
            heappop(with_free[free])
        fills[row] += size
        heappush(with_free[free - size], row)
    return fills


def largest_fill(nodes: int, sizes: Mapping[int, float]) -> float:
    """Return the largest mean fill of rows that any scheduler can have: an upper bound of the utilization at any load.

    Whatever runs at the same time is a set of jobs that fits into N nodes, and over a long time jobs of each size get node
    time in proportion to their probability.  The smallest number of rows for each job is a linear program, the cutting-stock
    relaxation of Gilmore & Gomory 1961, here with a variable for each size at each fill of a row (Csirik et al. 2006), so
    that N x (number of sizes) variables stand for all patterns.  The bound is reached in the limit of many jobs, all known.

    It holds for preemptive schedulers too, and for all run times that do not depend on the size.
    """
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array

    p = _probabilities(nodes, sizes)
    support = np.flatnonzero(p)
    # Variable: how many jobs of a size, for each job, are placed where a row has this fill.
    fill, kind = np.nonzero(np.add.outer(np.arange(nodes), support) <= nodes)
    variables = np.arange(len(fill))
    placed = csr_array((np.ones(len(fill)), (kind, variables)), shape=(len(support), len(fill)))
    # At each fill > 0 no more jobs are placed than rows get there.
    leaves = csr_array((np.ones(len(fill)), (fill, variables)), shape=(nodes + 1, len(fill)))
    arrives = csr_array((np.ones(len(fill)), (fill + support[kind], variables)), shape=(nodes + 1, len(fill)))
    every_job = LinearConstraint(placed, p[support], p[support])
    rows_there = LinearConstraint((leaves - arrives)[1:], -np.inf, 0)
    solution = milp((fill == 0).astype(float), constraints=[every_job, rows_there])  # no variable is an integer
    if not solution.success:
        raise ArithmeticError(f"the linear program of the largest fill was not solved: {solution.message}")
    return min(1.0, float(np.dot(support, p[support]) / (nodes * solution.fun)))


def _probabilities(nodes: int, sizes: Mapping[int, float]) -> FloatArray:
    """Return the probabilities of sizes, shape ``(N + 1,)``."""
    probabilities = np.zeros(require_whole("nodes", nodes, at_least=1) + 1)
    for size, probability in job_sizes(sizes, nodes).items():
        probabilities[size] = probability
    return probabilities
