"""How full rows are at saturation: Markov chains by hand, by brute force, and against the simulator with equal run times."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustermodel as cm
from clustermodel.theory.packing import best_fit_fill, first_fit_rows, largest_fill, next_fit_fill
from clustermodel.theory.rigid_jobs import multiserver_job_utilization
from clustermodel.workload.job import JobRow

POWERS = dict.fromkeys((1, 2, 4, 8), 0.25)
UNIFORM = dict.fromkeys(range(1, 9), 1 / 8)
TWO = {3: 0.5, 5: 0.5}
RUN_S = 100.0


@pytest.mark.parametrize("narrow", [0.0, 0.3, 0.8, 1.0])
def test_two_nodes_by_hand(narrow: float) -> None:
    # Next fit on 2 nodes: a row begins with a wide job, which fills it, or with a narrow one, which a narrow one follows with
    # probability p.  The row after a filled one is fresh; a half-filled one is closed by a wide job, full.
    p = narrow
    sizes = {1: p, 2: 1 - p}
    # Of the rows that begin fresh: p^2 are 1 + 1, p (1 - p) are 1 and then a row of 2, and 1 - p are 2.
    rows = p**2 + 2 * p * (1 - p) + (1 - p)
    assert next_fit_fill(2, sizes) == pytest.approx((2 * p**2 + 3 * p * (1 - p) + 2 * (1 - p)) / (2 * rows))
    assert best_fit_fill(2, sizes, 1) == pytest.approx(next_fit_fill(2, sizes))
    assert largest_fill(2, sizes) == pytest.approx(1)


@pytest.mark.parametrize(("nodes", "size"), [(1, 1), (16, 1), (8, 3), (8, 8), (9, 5)])
def test_jobs_of_one_size_leave_what_they_do_not_divide(nodes: int, size: int) -> None:
    expected = nodes // size * size / nodes
    for fill in (next_fit_fill, largest_fill, lambda *given: best_fit_fill(*given, 3), multiserver_job_utilization):
        assert fill(nodes, {size: 1.0}) == pytest.approx(expected)


def test_the_largest_fill_by_hand() -> None:
    # 7 of 10 nodes leave too few for a 4, so there are rows 7 and 4 + 4: 0.5 + 0.25 rows for each job of 5.5 nodes.
    assert largest_fill(10, {4: 0.5, 7: 0.5}) == pytest.approx(5.5 / 7.5)
    # 3 and 5 fill 8 nodes; what is left of the more frequent size packs 3 + 3 or 5.
    assert largest_fill(8, TWO) == pytest.approx(1)
    assert largest_fill(8, {3: 0.6, 5: 0.4}) == pytest.approx(3.8 / (8 * (0.4 + 0.1)))
    assert largest_fill(8, {3: 0.4, 5: 0.6}) == pytest.approx(4.2 / (8 * (0.4 + 0.2)))


def patterns(nodes: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for count in range(1, nodes // min(sizes) + 1):
        yield from (pattern for pattern in combinations_with_replacement(sizes, count) if sum(pattern) <= nodes)


def largest_fill_by_patterns(nodes: int, sizes: dict[int, float]) -> float:
    """Solve the program of Gilmore and Gomory, with a variable for each pattern."""
    from scipy.optimize import linprog

    every = list(patterns(nodes, list(sizes)))
    contents = [[pattern.count(size) for pattern in every] for size in sizes]
    rows = linprog(np.ones(len(every)), A_ub=-np.array(contents), b_ub=-np.array(list(sizes.values()))).fun
    return sum(size * probability for size, probability in sizes.items()) / (nodes * rows)


distributions = st.lists(st.integers(0, 5), min_size=2, max_size=7).filter(any)


@given(weights=distributions, spare=st.integers(0, 2))
def test_the_fills_are_in_order_and_the_bound_is_that_of_patterns(weights: list[int], spare: int) -> None:
    nodes = len(weights) + spare
    sizes = {size: weight / sum(weights) for size, weight in enumerate(weights, 1) if weight}
    bound = largest_fill(nodes, sizes)
    assert bound == pytest.approx(largest_fill_by_patterns(nodes, sizes))
    one, two = next_fit_fill(nodes, sizes), best_fit_fill(nodes, sizes, 2)
    assert one == pytest.approx(best_fit_fill(nodes, sizes, 1))
    assert one <= two + 1e-9
    assert two <= bound + 1e-9
    # With exponential run times gangs leave one at a time, which leaves more nodes empty under first come, first served.
    assert multiserver_job_utilization(nodes, sizes) <= one + 1e-9


def test_a_large_machine() -> None:
    sizes = dict.fromkeys(range(1, 65), 1 / 64)
    assert 0.7 < next_fit_fill(128, sizes) < 1
    assert largest_fill(128, sizes) == pytest.approx(1)


def test_first_fit_fills_the_first_row_that_has_enough_free_nodes() -> None:
    assert first_fit_rows(8, [5, 4, 3, 2, 6, 1, 2, 8]) == [8, 7, 8, 8]
    assert first_fit_rows(8, []) == []


class BestFitRows:
    """Gang scheduling's Schedule, without CompactMatrix and FillMatrix, where the gangs of a row complete together."""

    name = "best-fit-rows"

    def start(self, setup: cm.Setup) -> object:
        self.nodes = setup.nodes
        self.fills = [0] * setup.machine.time_slicing.mpl
        self.row_of: dict[int, int] = {}
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[cm.Decision]:
        for gang in batch.ended:
            self.fills[self.row_of.pop(gang.job.id)] = 0
        decisions: list[cm.Decision] = []
        for job in view.waiting.values():
            fitting = [row for row, fill in enumerate(self.fills) if fill + job.nodes <= self.nodes]
            if not fitting:
                break
            row = max(fitting, key=lambda row: (self.fills[row], -row))
            first = self.fills[row]
            decisions.append(cm.Rows(places=(cm.Place(job, (first, first + job.nodes), (row,)),)))
            self.fills[row] += job.nodes
            self.row_of[job.id] = row
        return decisions


def drawn(sizes: dict[int, float], count: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    found: list[int] = rng.choice(list(sizes), size=count, p=list(sizes.values())).tolist()
    return found


def at_once(policy: Any, nodes: int, widths: list[int], mpl: int) -> cm.Result:
    """Simulate jobs with equal run times that are all submitted at once; a slice is as long as a run time."""
    run = round(RUN_S * 1e6)
    jobs = cm.Workload([JobRow(0, number, width, run, run, -1, -1, 0, -1) for number, width in enumerate(widths)])
    machine = cm.Machine(nodes=nodes, time_slicing=cm.TimeSlicing(quantum_s=RUN_S, mpl=mpl))
    return cm.Scenario(machine=machine, workload=jobs, policy=policy).run()


def next_fit_rows(nodes: int, widths: list[int]) -> list[int]:
    fills: list[int] = []
    for width in widths:
        if not fills or fills[-1] + width > nodes:
            fills.append(0)
        fills[-1] += width
    return fills


@pytest.mark.parametrize("sizes", [POWERS, UNIFORM, TWO], ids=["powers of two", "uniform", "3 and 5"])
@pytest.mark.parametrize(
    ("policy", "rule"),
    [("fcfs", next_fit_rows), ("gs", next_fit_rows), ("bf", first_fit_rows), ("bgs", first_fit_rows), ("easy", first_fit_rows)],
)
def test_one_row_with_equal_run_times_is_bin_packing(
    policy: str, rule: Callable[[int, list[int]], list[int]], sizes: dict[int, float]
) -> None:
    widths = drawn(sizes, 200, seed=3)
    found = at_once(policy, 8, widths, mpl=1)
    rows = rule(8, widths)
    ends = found.jobs["end_s"].to_numpy()
    assert [sum(np.array(widths)[ends == row * RUN_S]) for row in range(1, len(rows) + 1)] == rows
    # While jobs wait, what is free is lost; they do until the last row starts.
    assert found.summary().kappa == pytest.approx(sum(8 - fill for fill in rows[:-1]) / (8 * len(rows)))


WARM_UP, ROWS = 10, 100


def mean_fill(policy: Any, sizes: dict[int, float], mpl: int, *, runs: int = 20) -> cm.Interval:
    """Return the mean fill of a hundred rows on 8 nodes, after a warm-up and while jobs wait, over independent runs."""
    fills = []
    for seed in range(runs):
        widths = drawn(sizes, 300, seed)
        jobs = at_once(policy, 8, widths, mpl).jobs
        begin, end = WARM_UP * RUN_S, (WARM_UP + ROWS) * RUN_S
        assert jobs["start_s"].max() > end
        counted = (begin < jobs["end_s"]) & (jobs["end_s"] <= end)  # each of them ran in one of these rows
        fills.append(int(jobs["nodes"][counted].sum()) / (8 * ROWS))
    return cm.interval(fills, level=0.99)


@pytest.mark.parametrize(
    ("sizes", "policy", "mpl"),
    [(POWERS, "gs", 1), (POWERS, "gs", 3), (TWO, BestFitRows(), 2), (UNIFORM, BestFitRows(), 3), (UNIFORM, "gs", 1)],
)
@pytest.mark.long
def test_rows_of_the_simulator_are_as_full_as_the_markov_chain_says(sizes: dict[int, float], policy: Any, mpl: int) -> None:
    found, expected = mean_fill(policy, sizes, mpl), best_fit_fill(8, sizes, mpl)
    assert expected in found
    assert best_fit_fill(8, sizes, mpl + 1) not in found
    assert largest_fill(8, sizes) > found.high


def test_replicas_fill_rows_besides() -> None:
    assert mean_fill("gs", TWO, 3).low > best_fit_fill(8, TWO, 3)
    # Not where sizes divide one another: there are as many rows as with best fit alone.
    for seed in range(3):
        widths = drawn(POWERS, 200, seed)
        makespans = [at_once(policy, 8, widths, 3).jobs["end_s"].max() for policy in ("gs", BestFitRows())]
        assert makespans[0] == makespans[1]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({9: 1.0}, "sizes: 9 is not allowed; it must be a whole number >= 1 and <= 8 nodes"),
        ({1.5: 1.0}, "sizes: 1.5 is not allowed; it must be a whole number >= 1 and <= 8 nodes"),
        ({1: 0.5}, "sizes: probabilities that sum to 0.5 are not allowed; their sum must be 1"),
        ({1: 1.5, 2: -0.5}, "sizes: probability of 1: 1.5 is not allowed; it must be a number >= 0 and <= 1"),
    ],
)
def test_sizes_that_are_no_distribution_are_refused(sizes: dict[int, float], message: str) -> None:
    for formula in (next_fit_fill, largest_fill, lambda *given: best_fit_fill(*given, 2)):
        with pytest.raises(cm.SpecificationError) as refused:
            formula(8, sizes)
        assert str(refused.value) == message


def test_a_job_larger_than_the_machine_and_too_many_rows_are_refused() -> None:
    with pytest.raises(cm.SpecificationError, match="sizes: 9 is not allowed"):
        first_fit_rows(8, [1, 9])
    with pytest.raises(
        cm.SpecificationError, match="rows: 6 is not allowed with these sizes; the chain has more than 100,000 states"
    ):
        best_fit_fill(16, dict.fromkeys(range(1, 17), 1 / 16), 6)
