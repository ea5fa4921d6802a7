"""Errors of verdicts and coverage by batch means: the tables of docs/validation.md and docs/statistics.md.

``python -m tests.statistical.error_rates`` takes several minutes and writes docs/data/verdict_errors.csv and
docs/data/batch_means_coverage.csv.

*Verdicts.*  Values are 1 + spread z, where z has mean 0, deviation 1 and one of the distributions below; the margin is 2 %, and
:func:`~clustermodel.measure.equivalence.equivalence_test` looks after 10, 20, ... 320 values until there is a verdict, as
``validate`` does.  A formula is right, or off by exactly the margin.  The constants of the test were chosen on CALIBRATED; the
others were measured afterwards.

*Batch means.*  Waits of M/M/1 by Lindley's recursion, stationary from the first; the mean service time is 1.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from math import exp, pi, sqrt
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

from clustermodel.arrays import FloatArray
from clustermodel.measure.equivalence import MARGIN, equivalence_test, looks_at
from clustermodel.measure.statistics import batch_means

DATA: Final = Path(__file__).parents[2] / "docs" / "data"
Draw = Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def _standard(draw: Draw, mean: float, deviation: float) -> Draw:
    return lambda rng, shape: (draw(rng, shape) - mean) / deviation


def _lognormal(sigma: float) -> Draw:
    mean = exp(sigma**2 / 2)
    return _standard(lambda rng, shape: rng.lognormal(0, sigma, shape), mean, mean * sqrt(exp(sigma**2) - 1))


def _pareto(alpha: float) -> Draw:
    mean = 1 / (alpha - 1)
    return _standard(lambda rng, shape: rng.pareto(alpha, shape), mean, mean * sqrt(alpha / (alpha - 2)))


def _hyperexponential(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Return values of which 1 in 10 has a mean of 5.5, the others of 0.5: mean 1, squared coefficient of variation 5.5."""
    return rng.exponential(np.where(rng.random(shape) < 0.1, 5.5, 0.5))


CALIBRATED: Final[Mapping[str, Draw]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "exponential": _standard(lambda rng, shape: rng.exponential(size=shape), 1, 1),
    "lognormal (0.5)": _lognormal(0.5),
    "lognormal (1)": _lognormal(1),
    "Pareto (2.5)": _pareto(2.5),
}
"""Distributions of mean 0 and deviation 1 on which the constants of the test were chosen."""
HELD_OUT: Final[Mapping[str, Draw]] = {
    "uniform": lambda rng, shape: rng.uniform(-sqrt(3), sqrt(3), shape),
    "gamma (0.5)": _standard(lambda rng, shape: rng.gamma(0.5, size=shape), 0.5, sqrt(0.5)),
    "minus gamma (0.5)": _standard(lambda rng, shape: -rng.gamma(0.5, size=shape), -0.5, sqrt(0.5)),
    "hyperexponential": _standard(_hyperexponential, 1, sqrt(5.5)),
    "Gumbel": _standard(lambda rng, shape: rng.gumbel(size=shape), float(np.euler_gamma), pi / sqrt(6)),
    "Pareto (3)": _pareto(3),
}
"""Other distributions of mean 0 and deviation 1."""
DISTRIBUTIONS: Final = {**CALIBRATED, **HELD_OUT}
SPREADS: Final = (0.02, 0.1, 1.0)
"""Coefficients of variation of the values."""
EDGES: Final = (1 / (1 - MARGIN) - 1, 1 / (1 + MARGIN) - 1)
"""Errors of formulas from which the mean differs by exactly the margin, a share of the formula's value."""
LOOKS: Final = looks_at(10, 320)
LOADS: Final = (0.5, 0.8, 0.9)
LENGTHS: Final = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000)
BATCHES: Final = (5, 20, 50)


def verdict_counts(name: str, spread: float, error: float, repetitions: int) -> Counter[str]:
    """Return how often each verdict occurs for a formula with a relative error; under "runs" the values used in all."""
    rng = np.random.default_rng([crc32(name.encode()), round(1000 * spread), 0 if not error else 1 if error > 0 else 2])
    found: Counter[str] = Counter()
    for values in 1 + spread * DISTRIBUTIONS[name](rng, (repetitions, LOOKS[-1])):
        for look in LOOKS:
            verdict = equivalence_test(values[:look], 1 + error, looks=len(LOOKS)).verdict
            if verdict != "undecided":
                break
        found[verdict] += 1
        found["runs"] += look
    return found


def verdict_errors(repetitions: int) -> pd.DataFrame:
    """Return the table of verdicts, a row for each distribution and spread; shares are percentages."""
    rows = []
    for name in DISTRIBUTIONS:
        for spread in SPREADS:
            right, *edges = (verdict_counts(name, spread, error, repetitions) for error in (0.0, *EDGES))
            percent = 100 / repetitions
            rows.append(
                {
                    "values": name,
                    "deviation, % of the mean": f"{100 * spread:g}",
                    "right: agrees %": f"{percent * right['agrees']:.1f}",
                    "right: differs %": f"{percent * right['differs']:.1f}",
                    "right: runs": f"{right['runs'] / repetitions:.0f}",
                    "off by the margin: agrees %": f"{percent * max(edge['agrees'] for edge in edges):.1f}",
                    "off by the margin: differs %": f"{percent * max(edge['differs'] for edge in edges):.1f}",
                }
            )
            print(*rows[-1].values(), sep=", ", flush=True)
    return pd.DataFrame(rows)


def waits(load: float, jobs: int, rng: np.random.Generator) -> FloatArray:
    """Return the waits of successive jobs in M/M/1, in mean service times; the first is drawn from the stationary ones."""
    steps = rng.exponential(1, jobs - 1) - rng.exponential(1 / load, jobs - 1)
    first = rng.exponential(1 / (1 - load)) if rng.random() < load else 0.0
    walk = first + np.concatenate([[0.0], np.cumsum(steps)])  # W' = max(W + step, 0) (Lindley 1952)
    return walk - np.minimum(np.minimum.accumulate(walk), 0)


class Coverage(NamedTuple):
    """What intervals of one number of batches have covered."""

    covers: float
    """Share of all runs."""
    vouched: float
    """Share of the runs that are long enough."""
    of_vouched: float
    """Share of these whose interval covers the mean; ``nan`` if they are fewer than 20."""


def coverage(load: float, jobs: int, runs: int) -> dict[int, Coverage]:
    """Return the coverage by number of batches, over so many runs at least, and up to 20 times as many until each number of
    batches has so many that are long enough."""
    rng = np.random.default_rng([20261125, round(100 * load), jobs])
    hits: dict[int, list[tuple[bool, bool]]] = {batches: [] for batches in BATCHES}
    for run in range(20 * runs):
        if run >= runs and all(sum(vouched for _, vouched in found) >= runs for found in hits.values()):
            break
        values = waits(load, jobs, rng)
        for batches, of_batches in hits.items():
            found = batch_means(values, batches)
            of_batches.append((load / (1 - load) in found, found.long_enough))
    table = {}
    for batches, of_batches in hits.items():
        covers, vouched = np.array(of_batches).T
        of_vouched = covers[vouched].mean() if vouched.sum() >= 20 else np.nan
        table[batches] = Coverage(covers.mean(), vouched.mean(), of_vouched)
    return table


def batch_coverage(runs: int) -> pd.DataFrame:
    """Return the table of batch means; shares are percentages."""
    rows = []
    for load in LOADS:
        for jobs in LENGTHS:
            row: dict[str, object] = {"load": load, "jobs": f"{jobs:,}"}
            for batches, (covers, vouched, of_vouched) in coverage(load, jobs, runs).items():
                row[f"{batches} batches: covers %"] = f"{100 * covers:.0f}"
                row[f"{batches}: long enough %"] = f"{100 * vouched:.0f}" if vouched >= 0.01 else f"{100 * vouched:.1g}"
                row[f"{batches}: these cover %"] = "" if np.isnan(of_vouched) else f"{100 * of_vouched:.0f}"
            rows.append(row)
            print(*row.values(), sep=", ", flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    """Keep both tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repetitions", type=int, default=1000, help="of verdicts (default: 1000)")
    parser.add_argument("--runs", type=int, default=200, help="of batch means (default: 200)")
    parser.add_argument("--only", choices=["verdicts", "batches"], help="one table (default: both)")
    options = parser.parse_args()
    if options.only != "batches":
        verdict_errors(options.repetitions).to_csv(DATA / "verdict_errors.csv", index=False, lineterminator="\n")
    if options.only != "verdicts":
        batch_coverage(options.runs).to_csv(DATA / "batch_means_coverage.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
