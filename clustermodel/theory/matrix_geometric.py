"""Stationary distribution of Markov chains with levels: the matrix-geometric method (Neuts 1981).

A state is a level 0, 1, 2, ... and a phase.  At level 1 and above the rates do not depend on the level, apart from those to
level 0; the level rises by at most one per transition and may fall by several (a chain of GI/M/1 type; a quasi-birth-death
process if by one).  Then the distribution pi of the phases satisfies pi(n + 1) = pi(n) R from level 1 on, without truncation.

A chain is given by a function that lists the transitions from a state.  Its states are found breadth first and lumped: states
with the same rates into each class of states become one state (ordinary lumpability, Kemeny & Snell 1976, section 6.3).
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError

Phase = TypeVar("Phase", bound=Hashable)
Transitions = Callable[[int, Phase], Iterable[tuple[float, int, Phase]]]
"""Of a level and a phase: rate, next level and next phase of each transition; the same pair may be listed several times.  If
none from a level leads to level 0, those from higher levels are the same, so many levels up."""

Floats = npt.NDArray[np.float64]

MOST_STATES: Final = 40_000  # most states that are found, with all levels above 0 counted once

MOST_PHASES: Final = 1_000  # most phases at level 1 and above, after lumping, for which R is computed: its matrices are dense

_MOST_ITERATIONS: Final = 100_000
_DOUBLINGS: Final = 60  # of the levels that a path may reach; far fewer are enough at any load that rounding errors allow
_RELATIVE_RATE: Final = 12  # decimals of a rate, relative to the largest, that must agree where states are lumped


class UnstableError(Exception):
    """The level of the chain grows without bound: there is no stationary distribution."""


@dataclass(frozen=True)
class Chain(Generic[Phase]):
    """The lumped states of a chain, a phase for each, and the rates between them."""

    empty: list[Phase]  # of each state at level 0 a phase
    phases: list[Phase]  # of each state at level 1 and above a phase
    blocks: list[Floats]
    """Rates between phases far from level 0: up by one level, to the same level, down by one, down by two, ..."""
    to_empty: list[Floats]  # rates from level 1, 2, ... to level 0
    from_empty: Floats  # rates at level 0; the diagonal makes the rows of the whole generator sum to zero
    up_from_empty: Floats  # rates from level 0 to level 1

    def drift(self) -> float:
        """Return the mean change of the level per unit of time, far from level 0."""
        among = stationary(np.sum(self.blocks, axis=0))
        return float(sum((1 - down) * float(among @ block.sum(axis=1)) for down, block in enumerate(self.blocks)))


@dataclass(frozen=True)
class Solution(Generic[Phase]):
    """The stationary distribution of a chain."""

    chain: Chain[Phase]
    at_empty: Floats  # pi(0)
    at_one: Floats  # pi(1)
    ratio: Floats  # R

    def mean(self, value: Callable[[Phase], float], per_level: float = 0.0) -> float:
        """Return the mean of ``value(phase) + per_level * level``."""
        remainder = (np.eye(len(self.ratio)) - self.ratio).T
        above = _solve(remainder, self.at_one)  # sum of pi(n)
        levels = float(_solve(remainder, above).sum())  # sum of n pi(n)
        of_empty: float = sum(
            share * value(phase) for share, phase in zip(self.at_empty.tolist(), self.chain.empty, strict=True)
        )
        of_others: float = sum(share * value(phase) for share, phase in zip(above.tolist(), self.chain.phases, strict=True))
        return of_empty + of_others + per_level * levels


def _solve(matrix: Floats, right: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def stationary(generator: Floats) -> Floats:
    """Return the stationary distribution of a chain with one closed class; the rows of its rates add up to zero."""
    equations = generator.T.copy()
    equations[-1] = 1.0
    return _solve(equations, np.eye(len(equations))[-1])


def chain_of(transitions: Transitions[Phase], start: Phase, value: Callable[[Phase], Hashable] | None = None) -> Chain[Phase]:
    """Find the states of a chain breadth first, from a phase at level 0, and lump those with the same ``value``, if any."""
    numbers: dict[tuple[bool, Phase], int] = {(False, start): 0}
    states = list(numbers)
    rates: list[_Rates] = []  # by state

    def number(waiting: bool, phase: Phase) -> int:
        if (waiting, phase) not in numbers:
            numbers[waiting, phase] = len(states)
            states.append((waiting, phase))
            if len(states) > MOST_STATES:
                raise SpecificationError(f"chain: more than {MOST_STATES:,} states are not allowed; it must be smaller")
        return numbers[waiting, phase]

    for waiting, phase in states:  # which grows
        outgoing: _Rates = defaultdict(float)
        for level in count(1) if waiting else (0,):
            listed = [(rate, to, number(to > 0, following)) for rate, to, following in transitions(level, phase)]
            last = all(to for _, to, _ in listed)
            for rate, to, following in listed:
                if not waiting or not to:
                    outgoing["empty" if not to else "up", level, following] += rate
                elif last:
                    outgoing["block", level + 1 - to, following] += rate
            if last:
                break
        rates.append(outgoing)
    classes = list(range(len(states))) if value is None else _lumped(states, rates, value)
    return _matrices(states, rates, classes)


_Rates = dict[tuple[str, int, int], float]
"""Kind of transition, its level (or how far down, plus one, for a ``"block"``), state -> rate."""


def _lumped(states: list[tuple[bool, Phase]], rates: list[_Rates], value: Callable[[Phase], Hashable]) -> list[int]:
    """Return the class of each state in the coarsest partition that refines ``value``."""
    places: dict[Hashable, int] = {}
    classes = [places.setdefault((waiting, value(phase)), len(places)) for waiting, phase in states]
    largest = max(rate for outgoing in rates for rate in outgoing.values())
    while True:
        before, places = len(set(classes)), {}
        refined = []
        for own, outgoing in zip(classes, rates, strict=True):
            into: _Rates = defaultdict(float)
            for (kind, step, state), rate in outgoing.items():
                if (kind, step, classes[state]) not in (("block", 1, own), ("empty", 0, own)):  # what stays changes nothing
                    into[kind, step, classes[state]] += rate
            key = own, frozenset((to, round(rate / largest, _RELATIVE_RATE)) for to, rate in into.items())
            refined.append(places.setdefault(key, len(places)))
        classes = refined
        if len(places) == before:
            return classes


def _matrices(states: list[tuple[bool, Phase]], rates: list[_Rates], classes: list[int]) -> Chain[Phase]:
    members = {of: state for state, of in reversed(list(enumerate(classes)))}  # the first of each class
    chosen: dict[bool, list[int]] = {False: [], True: []}
    for state in sorted(members.values()):
        chosen[states[state][0]].append(state)
    place = {classes[state]: index for of_kind in chosen.values() for index, state in enumerate(of_kind)}
    empty, above = len(chosen[False]), len(chosen[True])
    deepest = max([step - 1 for outgoing in rates for kind, step, _ in outgoing if kind == "block"], default=0)
    blocks = [np.zeros((above, above)) for _ in range(deepest + 2)]
    to_empty = [np.zeros((empty if level == 0 else above, empty)) for level in range(deepest + 1)]
    up = np.zeros((empty, above))
    for waiting in (False, True):
        for state in chosen[waiting]:
            for (kind, step, to), rate in rates[state].items():
                matrix = up if kind == "up" else blocks[step] if kind == "block" else to_empty[step]
                matrix[place[classes[state]], place[classes[to]]] += rate
    from_empty = to_empty.pop(0)
    np.fill_diagonal(from_empty, from_empty.diagonal() - from_empty.sum(axis=1) - up.sum(axis=1))
    np.fill_diagonal(blocks[1], blocks[1].diagonal() - np.sum([block.sum(axis=1) for block in blocks], axis=0))
    phases = {waiting: [states[state][1] for state in of_kind] for waiting, of_kind in chosen.items()}
    return Chain(phases[False], phases[True], blocks, to_empty, from_empty, up)


def solve(chain: Chain[Phase]) -> Solution[Phase]:
    """Return the stationary distribution; an UnstableError if the level grows without bound."""
    phases = len(chain.phases)
    if phases > MOST_PHASES:
        raise SpecificationError(f"chain: {phases:,} phases are not allowed; it must have <= {MOST_PHASES:,}")
    if chain.drift() >= 0:
        raise UnstableError
    up, same, *down = chain.blocks
    if len(down) == 1:
        ratio = _solve(-(same + up @ first_passage(up, same, down[0])).T, up.T).T
    else:
        ratio = _ratio_by_iteration(up, [same, *down])
    # Balance at level 0 and level 1, in terms of pi(0) and pi(1); the sum of all probabilities replaces the first equation.
    into_empty, into_one = np.zeros((phases, len(chain.empty))), same.copy()
    power = np.eye(phases)
    for to_empty, block in zip(chain.to_empty, down, strict=True):
        into_empty += power @ to_empty
        power = power @ ratio
        into_one += power @ block
    equations = np.block([[chain.from_empty, chain.up_from_empty], [into_empty, into_one]]).T
    total = _solve(np.eye(phases) - ratio, np.ones(phases))
    equations[0] = np.concatenate([np.ones(len(chain.empty)), total])
    probabilities = _solve(equations, np.eye(len(equations))[0])
    return Solution(chain, probabilities[: len(chain.empty)], probabilities[len(chain.empty) :], ratio)


def _ratio_by_iteration(up: Floats, others: list[Floats]) -> Floats:
    """Return R: the limit, from R = 0, of R = -A_0 (A_1 + R A_2 + R^2 A_3 + ...)^-1, A_k the rates down by k - 1 levels."""
    # It grows monotonically (Neuts 1981, chapter 1), the more slowly the closer the chain is to instability.
    ratio = np.zeros_like(up)
    for _ in range(_MOST_ITERATIONS):
        rates = others[-1]
        for block in reversed(others[:-1]):
            rates = block + ratio @ rates
        before, ratio = ratio, _solve(-rates.T, up.T).T
        if float(np.abs(ratio - before).max()) <= 1e-14 * float(ratio.max()):
            break
    return ratio


def first_passage(up: Floats, same: Floats, down: Floats) -> Floats:
    """Return G of a quasi-birth-death process: the phase at the first visit to the level below, by the phase before."""
    # By logarithmic reduction (Latouche & Ramaswami 1993), fast at any load, from rates up by one level, to the same and down.
    identity = np.eye(len(same))
    low, high = _solve(-same, down), _solve(-same, up)
    passage, reach = low, high
    for _ in range(_DOUBLINGS):
        inverse = np.linalg.inv(identity - high @ low - low @ high)
        low, high = inverse @ low @ low, inverse @ high @ high
        passage = passage + reach @ low
        reach = reach @ high
        if float(reach.max()) <= 1e-15:
            break
    return passage
