"""What the studies of traces in this folder share: the jobs of a trace, or of the embedded workload, and seeds.

Without ``--trace`` a study runs on :func:`clustermodel.synthetic_workload`, and replication r has other jobs, from seed r,
the same at every point.  With ``--trace`` the jobs are always the same, and replication r gives seed r to policies that draw
random numbers; the others run once.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from reporting import Interval, Runs, add_usual_options, in_parallel, interval, read, whole

from clustermodel import Machine, Policy, Result, Scenario, Workload, read_swf, synthetic_workload

NODES: Final = 128
LOAD: Final = 0.8
"""Of the embedded workload: queues are long enough for their order to matter."""
SMALL_JOBS: Final = 2_000
FULL_JOBS: Final = 20_000
SMALL_REPLICATIONS: Final = 3

Change = Callable[[Workload, int], Workload]
"""Makes other jobs out of those of the trace, given the replication."""
TraceMeasure = Callable[[Result, Workload], Mapping[str, float]]
"""Reduces a result, and the unchanged workload, to the numbers that are kept."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One scenario, to be replicated."""

    at: Mapping[str, str | float | None]
    """What tells this point from the others of its study; becomes columns of the table of runs."""
    policy: str | Policy
    random: bool = False
    """Whether the policy draws random numbers."""
    change: Change | None = None
    """What is done to the workload first."""
    nodes: int | None = None
    """Size of the machine, if not that of the study."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the :class:`~clustermodel.Machine`: whether it kills at the estimate, costs."""


@dataclass(frozen=True)
class Jobs:
    """Where a study's jobs come from."""

    trace: Path | None
    nodes: int
    count: int | None
    """How many jobs; ``None`` for all of a trace."""

    def workload(self, replication: int) -> Workload:
        """Return the jobs of one replication."""
        if self.trace is None:
            return _embedded(self.count or SMALL_JOBS, self.nodes, replication)
        return _first(self.trace, self.count)


@cache
def _embedded(jobs: int, nodes: int, seed: int) -> Workload:
    return synthetic_workload(jobs=jobs, nodes=nodes, load=LOAD, seed=seed)


@cache
def _first(trace: Path, count: int | None) -> Workload:
    workload = read_swf(trace)
    if count is None:
        return workload
    rows = list(workload.rows())[:count]
    return Workload(rows, name=workload.name, provenance=workload.provenance, machine_nodes=workload.machine_nodes)


def options_of(doc: str | None, *, study: str, replications: int) -> argparse.ArgumentParser:
    """Return the options that every study of traces has.

    Args:
        doc: the script's docstring.
        study: name of the script.
        replications: with ``--full``.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--trace", type=Path, metavar="FILE", help="jobs of an SWF trace instead of the embedded workload")
    add("--nodes", type=whole, help=f"size of the machine (default {NODES}; with --trace, as its header says)")
    add("--full", action="store_true", help="all points of the study")
    add("--jobs", type=whole, help=f"jobs (default {SMALL_JOBS:,}, {FULL_JOBS:,} with --full; all of a trace)")
    add("--replications", type=whole, help=f"independent seeds (default {SMALL_REPLICATIONS}; {replications} with --full)")
    add_usual_options(parser, study=study)
    parser.set_defaults(full_replications=replications)
    return parser


def jobs_of(options: argparse.Namespace) -> Jobs:
    """Return where the jobs come from, as the options say.

    Raises:
        SystemExit: the size of the machine is neither given nor in the trace's header.
    """
    if options.trace is None:
        return Jobs(None, options.nodes or NODES, options.jobs or (FULL_JOBS if options.full else SMALL_JOBS))
    nodes = options.nodes or _first(options.trace, options.jobs).machine_nodes
    if not nodes:
        raise SystemExit(f"{options.trace}: the header does not say how large the machine is; give --nodes")
    return Jobs(options.trace, nodes, options.jobs)


def runs_of(
    options: argparse.Namespace,
    points: Sequence[Point],
    measure: TraceMeasure,
    about: Callable[[Workload, int], Mapping[str, object]] = lambda *_: {},
) -> Runs:
    """Run all points in all replications, or read them from where they are stored.

    Args:
        options: of the study.
        points: what to run.
        measure: what to keep of each run.
        about: makes facts of the jobs of the first replication, and of the machine's nodes, that are stored with the runs.
    """
    if options.stored:
        return read(options.stored)
    jobs = jobs_of(options)
    replications = options.replications or (options.full_replications if options.full else SMALL_REPLICATIONS)
    tasks = [
        (point, measure, jobs, replication)
        for replication in range(1, replications + 1)
        for point in points
        if replication == 1 or point.random or jobs.trace is None
    ]
    workload = jobs.workload(1)
    facts = {
        "study": options.study,
        "clustermodel": version("clustermodel"),
        "workload": "embedded" if jobs.trace is None else workload.name,
        "workload_sha256": digest(workload),
        "nodes": jobs.nodes,
        "jobs": len(workload),
        "replications": replications,
        **about(workload, jobs.nodes),
    }
    return Runs(facts, in_parallel(_run, tasks, options.workers))


def _run(point: Point, measure: TraceMeasure, jobs: Jobs, replication: int) -> dict[str, Any]:
    workload = jobs.workload(replication)
    changed = workload if point.change is None else point.change(workload, replication)
    machine = Machine(nodes=point.nodes or jobs.nodes, **point.machine)
    result = Scenario(machine=machine, workload=changed, policy=point.policy, seed=replication).run()
    return {**point.at, "replication": replication, **measure(result, workload)}


def digest(workload: Workload) -> str:
    """Return a digest of what a scheduler is given."""
    columns = (workload.column(name).astype("<i8").tobytes() for name in ("submit", "nodes", "run", "estimate"))
    return hashlib.sha256(b"".join(columns)).hexdigest()


def usual_measures(result: Result) -> dict[str, float]:
    """Return what every study keeps: 003's bounded slowdown, mean delay and response, and wasted capacity."""
    summary = result.summary()
    return {
        "slowdown": summary.mean_bounded_slowdown_perkovic,
        "wait_s": summary.mean_wait_s,
        "response_s": summary.mean_response_s,
        "waste": summary.wasted_load,
        "retried": summary.retried,
    }


def relative(runs: Runs, base: Runs, measure: str) -> Interval:
    """Return how large a measure of one point is relative to another, as a fraction.

    Points that ran as often are compared seed by seed; one that ran once is compared with each run of the other.  Equal values
    are 1 relative to one another, also where both are 0.
    """
    new, old = np.broadcast_arrays(runs.values(measure), base.values(measure))
    same = old == new
    return interval(np.where(same, 1.0, new / np.where(same, 1.0, old)))


def size_of(runs: Runs) -> str:
    """Return what a study ran on, in words."""
    facts = runs.facts
    count = facts["replications"]
    name = "embedded workload" if facts["workload"] == "embedded" else facts["workload"]
    return f"{name}, {facts['jobs']:,} jobs, {facts['nodes']} nodes, {count} seed{'s' if count != 1 else ''}"


def mark_of(runs: Runs) -> str:
    """Return the mark after which a study's tables stand in a page: its name, and the trace if there is one."""
    facts = runs.facts
    return str(facts["study"]) if facts["workload"] == "embedded" else f"{facts['study']} {facts['workload']}"
