"""What the studies of 002 in this folder share: replicated runs, 95 % intervals, tables, curves.

Responsible for running points with independent seeds on several processes and for showing means with intervals; which points,
tables and figures a study has is its script's.  Every workload is one of the nine of 002 (002_8335dd3215a2768d.txt, section
2.2), drawn from the shipped model ``blue-pacific``.  Replication r has seed r at every point: common random numbers, so that
policies are compared on the same jobs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from math import inf, nan
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from reporting import FloatArray, Runs, add_usual_options, in_parallel, read, whole

from clustermodel import RUN_TIME_FACTORS, Machine, Result, Scenario, WorkloadModel, load_model
from clustermodel.figures.style import Style

MODEL: Final = "blue-pacific"
NODES: Final = 320
"""002, section 2.2."""
QUANTUM_S: Final = 200
"""002, section 5.3."""
FULL_JOBS: Final = 10_000
"""002, section 2.2."""
SMALL_JOBS: Final = 1_000
SMALL_REPLICATIONS: Final = 3
FULL_FACTORS: Final = RUN_TIME_FACTORS
SMALL_FACTORS: Final = (1.0, 1.4, 1.8)
LEAST_WAIT_S: Final = 1.0
"""Shortest mean wait that a logarithmic axis shows."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One scenario, to be replicated."""

    at: Mapping[str, str | float | None]
    """What tells this point from the others of its study; becomes columns of the table of runs."""
    policy: str
    machine: Machine
    factor: float
    """Multiplies the run times: 1.0 to 1.8 are workloads 0 to 8 of 002."""
    phi: float = 0.2
    """Fraction of exact estimates."""


Measure = Callable[[Result], dict[str, float]]
"""Reduces a result, in the process that made it, to the numbers that are kept."""


def usual_measures(result: Result) -> dict[str, float]:
    """Return what every study keeps: utilization, loss of capacity, mean slowdown and mean wait."""
    summary = result.summary()
    return {
        "rho": summary.utilization,
        "kappa": summary.kappa,
        "slowdown": summary.mean_bounded_slowdown,
        "wait_s": summary.mean_wait_s,
    }


# Running.


def options_of(doc: str | None, *, study: str, replications: int) -> argparse.ArgumentParser:
    """Return the options that every study has.

    Args:
        doc: the script's docstring.
        study: name of the script.
        replications: of the full study.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--full", action="store_true", help=f"the paper's size: {FULL_JOBS:,} jobs and nine workloads")
    add("--jobs", type=whole, help=f"jobs in a workload (default {SMALL_JOBS:,}; {FULL_JOBS:,} with --full)")
    add("--replications", type=whole, help=f"independent seeds (default {SMALL_REPLICATIONS}; {replications} with --full)")
    add_usual_options(parser, study=study)
    parser.set_defaults(full_replications=replications)
    return parser


def runs_of(options: argparse.Namespace, points: Sequence[Point], measure: Measure) -> Runs:
    """Run all points in all replications, or read them from where they are stored."""
    if options.stored:
        return read(options.stored)
    jobs = options.jobs or (FULL_JOBS if options.full else SMALL_JOBS)
    replications = options.replications or (options.full_replications if options.full else SMALL_REPLICATIONS)
    tasks = [(point, measure, jobs, seed) for seed in range(1, replications + 1) for point in points]
    facts = {
        "study": options.study,
        "clustermodel": version("clustermodel"),
        "model": MODEL,
        "model_sha256": model_digest(),
        "jobs": jobs,
        "replications": replications,
    }
    return Runs(facts, in_parallel(_run, tasks, options.workers))


def _run(point: Point, measure: Measure, jobs: int, seed: int) -> dict[str, Any]:
    workload = _model().generate(jobs=jobs, seed=seed, run_time_factor=point.factor, phi=point.phi)
    result = Scenario(machine=point.machine, workload=workload, policy=point.policy, seed=seed).run()
    return {**point.at, "replication": seed, **measure(result)}


@cache
def _model() -> WorkloadModel:
    return load_model(MODEL)


def model_digest() -> str:
    """Return a digest of the workload model's parameters; what the model says of its source does not count."""
    parameters = {name: value for name, value in json.loads(_model().to_json()).items() if name != "source"}
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()


def size_of(runs: Runs) -> str:
    """Return the size of a study in words."""
    count = runs.facts["replications"]
    return f"{runs.facts['jobs']:,} jobs, {count} replication{'s' if count != 1 else ''}"


def workload_number(factor: float) -> int:
    """Return the number 002 gives to the workload with a factor."""
    return round(10 * (factor - 1))


def draw_curve(
    axes: Axes,
    runs: Runs,
    measure: str,
    *,
    style: Style,
    label: str,
    least: float = 0.0,
    band: bool = True,
) -> None:
    """Draw a measure of one configuration against its utilization, with a band for the 95 % interval.

    Args:
        axes: where.
        runs: of the configuration, at several factors.
        measure: its column.
        style: of line and band.
        label: for the legend.
        least: the smallest possible value, below which no band goes.
        band: whether to draw it.
    """
    curve, rho = runs.curve(measure), runs.means("rho")
    mean, half = np.array(curve).T
    mean = np.maximum(mean, least)
    drawn = {"color": style.colour, "linestyle": style.line, "marker": style.marker}
    axes.plot(rho, mean, **drawn, label=label, linewidth=1.3, markersize=3)
    if band and not np.isnan(half).any():
        axes.fill_between(rho, np.maximum(mean - half, least), mean + half, color=style.colour, alpha=0.15, linewidth=0)


def highest_below(rho: FloatArray, values: FloatArray, limit: float) -> float:
    """Return the utilization at which a rising curve reaches ``limit``.

    It is interpolated between points, linearly in the logarithm of the value; ``inf`` if the curve never gets there, ``nan`` if
    it begins above.
    """
    above = np.flatnonzero(values > limit)
    if not len(above):
        return inf
    if above[0] == 0:
        return nan
    ends = slice(above[0] - 1, above[0] + 1)
    return float(np.interp(np.log(limit), np.log(values[ends]), rho[ends]))
