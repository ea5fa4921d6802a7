"""Small adversarial workloads for hypothesis."""

import os
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st

from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow

ALL_CASES: Final = 100
"""Cases of a random test that says nothing of their number, under hypothesis's profile ``new``."""
FEWEST: Final = 20
"""Random cases that a test draws at least, unless it never draws as many."""
LATE: Final = 20_000
"""Units of time after which whatever was submitted in the first 40 has ended."""


def cases(usual: int, *, fewest: int = FEWEST) -> int:
    """Return how many random cases a test draws: ``usual`` under hypothesis's profile ``new``, a sixth under ``long``, a tenth
    under ``fast``, but ``fewest`` at least: a test of each policy needs few.

    ``TWIN_CASES`` in the environment replaces both.
    """
    share = settings().max_examples / ALL_CASES
    return int(os.environ.get("TWIN_CASES", max(usual * share, min(usual, fewest))))


def one_in(number: int) -> st.SearchStrategy[bool]:
    """Return what is true once in so many times, and shrinks to what is not."""
    return st.integers(1, number).map(lambda drawn: drawn == number)


def refused_sizes(nodes: int) -> st.SearchStrategy[int]:
    """Return sizes of jobs that a machine of ``nodes`` rejects."""
    return st.sampled_from((nodes + 1, 10 * nodes, 0, -1))


@st.composite
def machines_and_rows(
    draw: st.DrawFn,
    *,
    exact_estimates: bool = False,
    priorities: bool = False,
    underestimates: bool = False,
    largest: int = 25,
    awkward: bool = False,
) -> tuple[int, list[JobRow]]:
    """Return (nodes, rows): times are whole seconds, close together, so that instants collide.

    Args:
        draw: of hypothesis.
        exact_estimates: instead of overestimates.
        priorities: of several levels.
        underestimates: besides overestimates.
        largest: most jobs.
        awkward: some jobs are twins of others, some are submitted when all others have long ended, the machine rejects some.
    """
    nodes = draw(st.integers(1, 8))
    rows: list[JobRow] = []
    for number in range(1, draw(st.integers(1, largest)) + 1):
        twin, late, refused = (awkward and draw(one_in(8)) for _ in range(3))
        if rows and twin:
            rows.append(rows[-1]._replace(id=number))
            continue
        run = draw(st.integers(1, 30))
        slack = 0 if exact_estimates else draw(st.integers(-run + 1 if underestimates else 0, 40))
        submit = draw(st.integers(0, 40)) + (LATE if late else 0)
        size = draw(refused_sizes(nodes) if refused else st.integers(1, nodes))
        priority = draw(st.integers(0, 2)) if priorities else 0
        submit, run, estimate = (seconds * TICKS_PER_SECOND for seconds in (submit, run, run + slack))
        rows.append(JobRow(submit, number, size, run, estimate, number % 3, -1, priority, -1))
    return nodes, sorted(rows)
