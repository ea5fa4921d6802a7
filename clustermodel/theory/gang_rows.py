"""Gang scheduling of jobs of several sizes in few rows, with slices of no length that cost nothing to switch.

Poisson arrivals, exponential run times.  The states of the Markov chain are the contents of the Ousterhout matrix (Ousterhout
1982; Feitelson & Rudolph 1992) and the jobs that wait, first come first served.  At each arrival and each completion the matrix
is rebuilt in the steps of Zhang et al. 2003, section 5.1: CompactMatrix, Schedule, FillMatrix.  The rows in use then have equal
shares of the time; a gang runs in its home row and in the rows with a replica of it.

Where sizes are 1 and the number of columns, the number of gangs in each column says all: the rows without a gang of all columns
serve a column whenever it has a job, whichever, so what runs in a column completes at a rate that does not depend on which job
has which replica.  Otherwise the chain has the home row, the columns and the starting order of all gangs, as far as gangs share
columns; gangs that do not share any never compete for a replica.

The number of waiting jobs is not truncated (:mod:`clustermodel.theory.matrix_geometric`).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import gcd, isfinite
from typing import NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.theory.arguments import job_sizes, means_by_size
from clustermodel.theory.matrix_geometric import Chain, UnstableError, chain_of, solve
from clustermodel.validation import require_number, require_whole


class Gang(NamedTuple):
    """A gang in the matrix."""

    columns: int  # a bitmask
    home: int  # its home row

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.columns.bit_count()


class Phase(NamedTuple):
    """What is in the matrix and who is next."""

    gangs: tuple[Gang, ...]  # in starting order
    head: int  # size of the waiting job that is next, 0 if no job waits.  Sizes of the jobs behind it are still unknown


class GangRows(NamedTuple):
    """Stationary means of gang scheduling in rows."""

    mean_response_s: float
    """From arrival to completion, seconds."""
    mean_wait_s: float
    """From arrival to the start in a row, seconds."""
    response_s_by_size: dict[int, float]
    """Mean response of the jobs of each size, seconds."""
    utilization: float
    """Share of the nodes' time that does work for a job."""


class Saturation(NamedTuple):
    """The highest load."""

    throughput: float
    """Jobs per second when jobs always wait; the queue is stable for lower arrival rates."""
    utilization: float
    """Utilization at that throughput."""


def gang_rows(
    nodes: int,
    mpl: int,
    sizes: Mapping[int, float],
    arrival_rate: float,
    mean_run_s: float | Mapping[int, float],
    *,
    migration: bool = False,
) -> GangRows:
    """Return stationary means of gang scheduling in at most ``mpl`` rows, with slices of no length.

    Args:
        nodes: c, the columns of the matrix.
        mpl: multiprogramming level, the most rows.
        sizes: nodes that a job takes -> probability.
        arrival_rate: jobs per second.
        mean_run_s: mean run time, seconds, or size -> mean run time.
        migration: with free migration (`mgs`) instead of without (`gs`); only for jobs of one node and of all nodes.

    Raises:
        SpecificationError: the queue is not stable, an argument has a value that is not allowed, or the chain is too large
            (``MOST_STATES``,
            ``MOST_PHASES``).
    """
    chain = _RowsChain(nodes, mpl, sizes, arrival_rate, mean_run_s, migration)
    try:
        solution = solve(chain.lumped())
    except UnstableError:
        limit = gang_saturation(nodes, mpl, sizes, mean_run_s, migration=migration).throughput
        raise SpecificationError(
            f"arrival_rate: {arrival_rate:g} is not allowed; it must be < {limit:g}, where the queue is stable"
        ) from None
    response = {
        size * chain.unit: solution.mean(partial(_jobs_of, size, probability), probability) / (arrival_rate * probability)
        for size, probability in chain.sizes.items()
    }
    busy = solution.mean(lambda phase: sum(rate * mean * size for rate, mean, size in chain.service(phase.gangs)))
    return GangRows(
        mean_response_s=sum(chain.sizes[size // chain.unit] * mean for size, mean in response.items()),
        mean_wait_s=solution.mean(lambda _: 0.0, 1.0) / arrival_rate,
        response_s_by_size=response,
        utilization=busy * chain.unit / nodes,
    )


def gang_saturation(
    nodes: int,
    mpl: int,
    sizes: Mapping[int, float],
    mean_run_s: float | Mapping[int, float],
    *,
    migration: bool = False,
) -> Saturation:
    """Return throughput and utilization of gang scheduling in at most ``mpl`` rows when jobs always wait.

    Arguments are those of :func:`gang_rows`.
    """
    chain = _RowsChain(nodes, mpl, sizes, 1.0, mean_run_s, migration)
    throughput = 0.0
    while abs(throughput - chain.arrival_rate) > 1e-12 * chain.arrival_rate:
        # An arrival lets CompactMatrix act again, which seldom changes anything: the rate of arrivals hardly matters.
        chain.arrival_rate = throughput or min(chain.mean_run_s.values()) ** -1
        throughput = chain.arrival_rate - chain.lumped().drift()
    work = sum(probability * size * chain.mean_run_s[size] for size, probability in chain.sizes.items())
    return Saturation(throughput, throughput * work * chain.unit / nodes)


def _jobs_of(size: int, probability: float, phase: Phase) -> float:
    """Return the number of gangs of a size, and of heads above the expected number of any waiting job."""
    head = (phase.head == size) - probability if phase.head else 0.0
    return sum(gang.size == size for gang in phase.gangs) + head


class _Outcome(NamedTuple):
    """The matrix and the queue once what can start has started."""

    probability: float
    gangs: tuple[Gang, ...]
    head: int
    behind: int  # number of jobs that wait behind the head of the queue


class _RowsChain:
    """Transitions of the chain; the level is the number of waiting jobs."""

    # Sizes are in units of their greatest common divisor: a gang gets the lowest free columns, so all gangs are aligned.

    def __init__(
        self,
        nodes: int,
        mpl: int,
        sizes: Mapping[int, float],
        arrival_rate: float,
        mean_run_s: float | Mapping[int, float],
        migration: bool,
    ) -> None:
        nodes, self.mpl = require_whole("nodes", nodes, at_least=1), require_whole("mpl", mpl, at_least=1)
        self.arrival_rate = require_number(
            "arrival_rate", arrival_rate, "a number > 0", lambda rate: rate > 0 and isfinite(rate)
        )
        drawn = job_sizes(sizes, nodes)
        self.unit = gcd(*drawn)
        self.columns = nodes // self.unit
        self.sizes = {size // self.unit: probability for size, probability in drawn.items()}
        means = means_by_size("mean_run_s", drawn, mean_run_s)
        self.mean_run_s = {size // self.unit: mean for size, mean in means.items()}
        self._counts_say_all = self.sizes.keys() <= {1, self.columns}
        self._migration = migration
        if migration and not self._counts_say_all:
            raise SpecificationError("migration: sizes other than one node and all nodes are not allowed; it must be False")

    def lumped(self) -> Chain[Phase]:
        """Return the chain; lumped states have gangs of the same sizes, and the same job waits next."""
        return chain_of(self, Phase((), 0), lambda phase: (phase.head, tuple(sorted(gang.size for gang in phase.gangs))))

    def __call__(self, level: int, phase: Phase) -> Iterator[tuple[float, int, Phase]]:
        arrived = {phase.head: 1.0} if level else self.sizes
        for head, probability in arrived.items():
            for outcome in self._settle(phase.gangs, head, level):
                yield self.arrival_rate * probability * outcome.probability, *self._state(outcome)
        for number, (rate, _, _) in enumerate(self.service(phase.gangs)):
            left = phase.gangs[:number] + phase.gangs[number + 1 :]
            for outcome in self._settle(left, phase.head, max(0, level - 1)):
                yield rate * outcome.probability, *self._state(outcome)

    def service(self, gangs: tuple[Gang, ...]) -> list[tuple[float, float, int]]:
        """Return of each gang: rate of completion, mean run time, size."""
        rows = fill(gangs)
        used = len({gang.home for gang in gangs})
        means = [self.mean_run_s[gang.size] for gang in gangs]
        return [(count / used / mean, mean, gang.size) for gang, count, mean in zip(gangs, rows, means, strict=True)]

    def _settle(self, gangs: tuple[Gang, ...], head: int, behind: int) -> Iterator[_Outcome]:
        """Compact and schedule; sizes of jobs that become the head of the queue are drawn."""
        return self._schedule(self._packed(gangs) if self._counts_say_all else compact(gangs), head, behind)

    def _schedule(self, gangs: tuple[Gang, ...], head: int, behind: int) -> Iterator[_Outcome]:
        started = start(gangs, head, self.columns, self.mpl) if head else None
        if started is None:
            yield _Outcome(1.0, gangs, head, behind)
        elif not behind:
            yield _Outcome(1.0, started, 0, 0)
        else:
            for size, probability in self.sizes.items():
                for outcome in self._schedule(started, size, behind - 1):
                    yield outcome._replace(probability=probability * outcome.probability)

    def _state(self, outcome: _Outcome) -> tuple[int, Phase]:
        kept = self._packed(outcome.gangs) if self._counts_say_all else in_normal_order(outcome.gangs)
        return outcome.behind + (outcome.head > 0), Phase(kept, outcome.head)

    def _packed(self, gangs: tuple[Gang, ...]) -> tuple[Gang, ...]:
        """Return the gangs in the lowest rows: those of all columns, then each column's, the longest column first."""
        everywhere = (1 << self.columns) - 1
        whole = sum(gang.columns == everywhere for gang in gangs)
        if self._migration:
            rows, rest = divmod(len(gangs) - whole, self.columns)
            counts = [rows + (column < rest) for column in range(self.columns)]
        else:
            counts = [sum(gang.columns == 1 << column for gang in gangs) for column in range(self.columns)]
            counts.sort(reverse=True)
        if self.columns == 1:
            counts = [0]
        single = [Gang(1 << column, whole + row) for column, jobs in enumerate(counts) for row in range(jobs)]
        return (*(Gang(everywhere, row) for row in range(whole)), *single)


# The steps of Zhang et al. 2003, section 5.1.  Gangs are in starting order, rows are numbers from 0.


def compact(gangs: tuple[Gang, ...]) -> tuple[Gang, ...]:
    """CompactMatrix: move gangs, on their columns, from the least to the most populated rows."""
    moved = list(gangs)
    taken = _taken(gangs)
    order = sorted(sorted(taken), key=lambda row: taken[row].bit_count())
    for place, source in enumerate(order):
        for target in reversed(order[place + 1 :]):
            for number, gang in enumerate(moved):
                if gang.home == source and not gang.columns & taken[target]:
                    moved[number] = gang._replace(home=target)
                    taken[source] ^= gang.columns
                    taken[target] |= gang.columns
    return tuple(moved)


def start(gangs: tuple[Gang, ...], size: int, columns: int, mpl: int) -> tuple[Gang, ...] | None:
    """Schedule: give a job the lowest free columns of the fullest row that has enough, or ``None``; of equals the lowest."""
    taken = _taken(gangs)
    used = {row: taken.get(row, 0) for row in range(mpl)}
    fitting = [row for row in used if columns - used[row].bit_count() >= size]
    if not fitting:
        return None
    home = max(fitting, key=lambda row: used[row].bit_count())  # the first of equals
    free = [1 << column for column in range(columns) if not used[home] >> column & 1]
    return (*gangs, Gang(sum(free[:size]), home))


def fill(gangs: tuple[Gang, ...]) -> list[int]:
    """FillMatrix: replicate gangs, in starting order, one row at a time each, into free cells; return how many each has."""
    taken = _taken(gangs)
    rows = sorted(taken)
    count = [1] * len(gangs)
    candidates: Iterable[int] = range(len(gangs))
    while candidates:
        again = []
        for number in candidates:
            for row in rows:
                if not gangs[number].columns & taken[row]:
                    taken[row] |= gangs[number].columns
                    count[number] += 1
                    again.append(number)
                    break
        candidates = again
    return count


def in_normal_order(gangs: tuple[Gang, ...]) -> tuple[Gang, ...]:
    """Return the least of the orders in which gangs that share columns keep their starting order."""
    left = list(gangs)
    ordered: list[Gang] = []
    while left:
        free = [gang for number, gang in enumerate(left) if not any(gang.columns & other.columns for other in left[:number])]
        ordered.append(min(free))
        left.remove(ordered[-1])
    return tuple(ordered)


def _taken(gangs: Iterable[Gang]) -> dict[int, int]:
    """Return the columns taken in each row in use, a bitmask."""
    taken: dict[int, int] = {}
    for gang in gangs:
        taken[gang.home] = taken.get(gang.home, 0) | gang.columns
    return taken
