"""Small adversarial workloads for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from clustermodel.job import JobRow
from clustermodel.ticks import TICKS_PER_SECOND


@st.composite
def machines_and_rows(
    draw: st.DrawFn,
    *,
    exact_estimates: bool = False,
    priorities: bool = False,
    underestimates: bool = False,
    largest: int = 25,
) -> tuple[int, list[JobRow]]:
    """Return (nodes, rows): times are whole seconds, close together, so that instants collide."""
    nodes = draw(st.integers(1, 8))
    rows = []
    for number in range(1, draw(st.integers(1, largest)) + 1):
        run = draw(st.integers(1, 30))
        slack = 0 if exact_estimates else draw(st.integers(-run + 1 if underestimates else 0, 40))
        rows.append(
            JobRow(
                submit=draw(st.integers(0, 40)) * TICKS_PER_SECOND,
                id=number,
                nodes=draw(st.integers(1, nodes)),
                run=run * TICKS_PER_SECOND,
                estimate=(run + slack) * TICKS_PER_SECOND,
                user=number % 3,
                group=-1,
                priority=draw(st.integers(0, 2)) if priorities else 0,
                status=-1,
            )
        )
    return nodes, sorted(rows)
