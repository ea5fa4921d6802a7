"""One node with time slices as the simulator has them: a Markov chain at the beginnings of slices, exact.

The node has MPL rows, each with at most one job; rows in use take turns in the order of their numbers, a slice of length T
each.  An arriving job takes the lowest empty row, or waits if there is none; the first waiting job takes the row of a job that
completes.  Every arrival and every completion ends the running slice, and the next row in use gets a full one.  A
context switch of s seconds begins a slice: every slice, or each one whose task is not the last that ran.  One that is cut short
is lost.  That is ``gs`` on one node.

Arrivals are Poisson, run times hyperexponential.  A job's branch is drawn when it enters a row, which changes nothing, because
waiting jobs are alike.  At the beginning of a slice the state is: the branches in the rows, the row whose turn it is, whether
its task is loaded, and the number of waiting jobs.  Nothing changes within a slice but the outcome that ends it, so transition
probabilities and mean lengths of slices are exponentials, and time averages follow.  Where jobs wait, the chain repeats itself
from one number to the next: a quasi-birth-and-death process, with matrix-geometric solution (Neuts 1981; the matrix G by
logarithmic reduction, Latouche & Ramaswami 1993).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, expm1
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.theory.matrix_geometric import first_passage, stationary
from clustermodel.theory.round_robin import branches, require_slices
from clustermodel.validation import require_whole

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MOST_STATES: Final = 20_000  # most states without waiting jobs
_EMPTY: Final = -1  # in a row: no job


class _State(NamedTuple):
    """At the beginning of a slice."""

    rows: tuple[int, ...]  # branch of the job in each row, -1 where there is none
    turn: int  # the row whose slice it is
    loaded: bool  # whether its task ran last, so that a switch on change is not charged


class _Step(NamedTuple):
    """How a slice can end."""

    change: Literal[-1, 0, 1]  # of the number of jobs
    state: _State | None  # the next slice; ``None`` where the node is empty
    probability: float


def sliced_node_mean_response(
    arrival_rate: float,
    means_s: Mapping[float, float],
    slice_s: float,
    switch_s: float,
    *,
    mpl: int,
    charge: str = "on-change",
) -> float:
    """Return the mean response time on one node with time slices, seconds: exactly the simulator's ``gs`` on one node.

    Arguments are those of :mod:`clustermodel.theory.round_robin`, and the multiprogramming level ``mpl``: the largest number of
    jobs that share the node.  The number of states grows with (branches + 1)^MPL: with two branches the largest MPL is 7.

    Raises:
        SpecificationError: an argument is not allowed, there are too many states, or the queue is not stable.
    """
    require_slices(arrival_rate, slice_s, switch_s, charge)
    means, shares = branches(means_s)
    mpl = require_whole("mpl", mpl, at_least=1)
    if mpl * (len(means) + 1.0) ** mpl > _MOST_STATES:
        raise SpecificationError(
            f"mpl: {mpl} is not allowed; mpl x {len(means) + 1}^mpl, the number of states, must be <= {_MOST_STATES:,}"
        )
    return (
        _Chain(arrival_rate, means, shares, slice_s, switch_s, mpl, on_change=charge == "on-change").mean_jobs() / arrival_rate
    )


class _Chain:
    """The chain; rates are relative to one visit of the empty node."""

    def __init__(
        self,
        arrival_rate: float,
        means: FloatArray,
        shares: FloatArray,
        slice_s: float,
        switch_s: float,
        mpl: int,
        *,
        on_change: bool,
    ) -> None:
        self._rate = arrival_rate
        self._mu = (1 / means).tolist()
        self._shares: list[float] = shares.tolist()
        self._slice, self._switch, self._mpl, self._on_change = slice_s, switch_s, mpl, on_change

    def mean_jobs(self) -> float:
        """Return E[N]."""
        from scipy.linalg import solve
        from scipy.sparse import csr_array, eye_array
        from scipy.sparse.linalg import spsolve

        states = self._reachable()
        full = [state for state in states if self._is_full(state)]
        self._number = {state: position for position, state in enumerate(states)}
        self._full_number = {state: position for position, state in enumerate(full)}
        up, same, down = self._transitions(full)
        growth = _growth(up, same, down)
        within = self._within(states)
        # Seen only while no job waits: an arrival that waits begins an excursion, which the last of `down` ends.
        among = np.array([self._number[state] for state in full])
        size = len(states)
        back = csr_array(
            (np.ravel(growth @ down), (np.repeat(among, len(among)), np.tile(among, len(among)))), shape=(size, size)
        )
        begin = np.zeros(size)
        for state, probability in self._arriving(()):
            begin[self._number[state]] += probability
        rates = spsolve((eye_array(size) - within - back).T.tocsc(), begin)
        lengths = np.array([self._length(state) for state in states])
        jobs = np.array([sum(branch != _EMPTY for branch in state.rows) for state in states])
        waiting = np.eye(len(full)) - growth
        over = solve(waiting.T, rates[among] @ growth)  # slices with waiting jobs
        queued = solve(waiting.T, over)  # the same, times the number of waiting jobs
        time = rates @ lengths + over @ lengths[among] + 1 / self._rate
        area = rates @ (lengths * jobs) + (self._mpl * over + queued) @ lengths[among]
        return float(area / time)

    # Slices.

    def _is_full(self, state: _State) -> bool:
        return _EMPTY not in state.rows

    def _parts(self, state: _State) -> tuple[float, float, float]:
        """Return mean length of the switch, probability that work begins, and most time at work of a slice."""
        switch = 0.0 if state.loaded else self._switch
        return -expm1(-self._rate * switch) / self._rate, exp(-self._rate * switch), self._slice - switch

    def _length(self, state: _State) -> float:
        """Return the mean length of a slice, seconds."""
        switching, works, window = self._parts(state)
        rate = self._rate + self._mu[state.rows[state.turn]]
        return float(switching + works * -expm1(-rate * window) / rate)

    def _steps(self, state: _State) -> Iterator[_Step]:
        """Return how a slice can end; full rows have waiting jobs to refill them."""
        _, works, window = self._parts(state)
        rows, turn = state.rows, state.turn
        mu = self._mu[rows[turn]]
        rate = self._rate + mu
        ended = works * -expm1(-rate * window)
        for after, share in self._arriving(rows, turn, loaded=False):
            yield _Step(1, after, share * (1 - works))
        for after, share in self._arriving(rows, turn, loaded=self._on_change):
            yield _Step(1, after, share * ended * self._rate / rate)
        yield _Step(0, self._next(rows, turn, loaded=self._on_change), works * exp(-rate * window))
        yield _Step(-1, self._next((*rows[:turn], _EMPTY, *rows[turn + 1 :]), turn, loaded=False), ended * mu / rate)

    def _next(self, rows: tuple[int, ...], turn: int, *, loaded: bool) -> _State | None:
        """Return the slice of the next row in use after row ``turn``, ``None`` if there is none."""
        for step in range(1, self._mpl + 1):
            row = (turn + step) % self._mpl
            if rows[row] != _EMPTY:
                return _State(rows, row, loaded and row == turn)
        return None

    def _arriving(self, rows: tuple[int, ...], turn: int = -1, *, loaded: bool = False) -> Iterator[tuple[_State, float]]:
        """Return the slices that can follow an arrival, with probabilities; the arriving job waits if all rows are in use."""
        rows = rows or (_EMPTY,) * self._mpl
        if _EMPTY not in rows:
            after = self._next(rows, turn, loaded=loaded)
            assert after is not None
            yield after, 1.0
            return
        free = rows.index(_EMPTY)
        for branch, share in enumerate(self._shares):
            after = self._next((*rows[:free], branch, *rows[free + 1 :]), turn, loaded=loaded)
            assert after is not None
            yield after, share

    def _refilled(self, state: _State) -> Iterator[tuple[_State, float]]:
        """Return the slices that can follow a completion where jobs wait, with probabilities."""
        for branch, share in enumerate(self._shares):
            rows = (*state.rows[: state.turn], branch, *state.rows[state.turn + 1 :])
            after = self._next(rows, state.turn, loaded=False)
            assert after is not None
            yield after, share

    # Matrices.

    def _reachable(self) -> list[_State]:
        """Return all states that can follow the empty node, with or without waiting jobs."""
        states: dict[_State, None] = {}
        todo = [state for state, _ in self._arriving(())]
        while todo:
            state = todo.pop()
            if state in states:
                continue
            states[state] = None
            todo += [step.state for step in self._steps(state) if step.state is not None]
            if self._is_full(state):
                todo += [after for after, _ in self._refilled(state)]
        return list(states)

    def _within(self, states: list[_State]) -> csr_array:
        """Return the transition probabilities among states without waiting jobs, shape ``(states, states)``."""
        from scipy.sparse import csr_array

        entries: list[tuple[float, int, int]] = []
        for position, state in enumerate(states):
            entries += [
                (step.probability, position, self._number[step.state])
                for step in self._steps(state)
                if step.state is not None and not (step.change == 1 and self._is_full(state))
            ]
        values, origins, targets = zip(*entries, strict=True)
        return csr_array((values, (origins, targets)), shape=(len(states), len(states)))

    def _transitions(self, full: list[_State]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the transition probabilities where jobs wait, by the change of their number: +1, 0, -1."""
        up, same, down = (np.zeros((len(full), len(full))) for _ in range(3))
        for position, state in enumerate(full):
            for step in self._steps(state):
                if step.change == 1:
                    assert step.state is not None
                    up[position, self._full_number[step.state]] += step.probability
                elif not step.change:
                    assert step.state is not None
                    same[position, self._full_number[step.state]] += step.probability
                else:
                    for after, share in self._refilled(state):
                        down[position, self._full_number[after]] += step.probability * share
        return up, same, down


def _growth(up: FloatArray, same: FloatArray, down: FloatArray) -> FloatArray:
    """Return R of a quasi-birth-and-death process: slices with one more waiting job for each slice; refuse an unstable one."""
    local = same - np.eye(len(up))
    phases = stationary(up + local + down)
    rises, falls = float(phases @ up.sum(axis=1)), float(phases @ down.sum(axis=1))
    if rises >= falls:
        raise SpecificationError(
            f"arrival_rate: a load with {rises / falls:.3g} arrivals for each completion is not allowed; it must be < 1"
        )
    return up @ np.linalg.inv(-local - up @ first_passage(up, local, down))
