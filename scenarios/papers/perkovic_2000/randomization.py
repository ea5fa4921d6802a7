"""When does it help to randomize shortest-first backfilling?

Perkovic & Keleher 2000, section 5, find R/L-NG far better than 1/L-NG on the CTC trace, explain it by long-narrow jobs that
users overestimate and that wait behind all short ones, and say that randomization could hurt where most long-narrow jobs have
smaller slowdowns than short ones.  The study changes one thing at a time:

* the estimates of long-narrow jobs, of all others, or of all jobs become exact;
* the machine gets ``other_nodes``, and jobs are submitted faster or slower, so that the load is the same; the machine rejects
  jobs that it cannot hold.

Shapes are those of job_shapes.py, of the jobs before the change.

    clustermodel sweep scenarios/papers/perkovic_2000/randomization.py --out results
"""

from functools import cache, partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clustermodel import LoadScale, Machine, Result, Scenario, Study, StudyTable, Workload, bars
from clustermodel.arrays import BoolArray
from clustermodel.measure.metrics import bounded_slowdown_perkovic
from clustermodel.workload.shapes import SHAPES, jobs_by_shape
from clustermodel.workload.study_jobs import study_jobs

BEFORE, AFTER = "1/L-NG", "R/L-NG"
SLOWDOWN, WAIT = "mean_bounded_slowdown_perkovic", "mean_wait_s"
EXACT = {
    "long-narrow exact": ("long-narrow",),
    "all others exact": tuple(shape for shape in SHAPES if shape != "long-narrow"),
    "all exact": SHAPES,
}
"""Shapes of jobs that get exact estimates, by the name of the change."""


def study(
    trace: str | None = None, nodes: int = 128, jobs: int = 0, narrow: int = 0, other_nodes: int = 256, replications: int = 5
) -> Study:
    """Return the study.

    Args:
        trace: an SWF file; by default the jobs are synthetic.
        nodes: size of the machine.
        jobs: their number; 0 for all of the trace, or 20,000 synthetic ones.
        narrow: largest number of nodes of a narrow job; 0 for the median.
        other_nodes: another size of the machine.
        replications: seeds.
    """
    original = partial(study_jobs, trace, jobs=jobs or None, nodes=nodes)
    on_other = f"on {other_nodes} nodes"

    def scenario(change: str, policy: str, seed: int) -> Scenario:
        workload = original(seed=seed)
        if change in EXACT:
            workload = exact(workload, EXACT[change], narrow, nodes)
        elif change == on_other:
            workload = at_same_load(workload, nodes, other_nodes)
        machine = Machine(nodes=other_nodes if change == on_other else nodes)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    def of_shape(result: Result, shape: str, name: str) -> float:
        """Return the mean bounded slowdown or wait of the jobs that had a shape before the change."""
        held, members = shapes_of(original(seed=result.scenario.seed), narrow, result.machine.nodes)
        found = result.jobs[held][members[shape]]
        wait, response, run = (found[column].to_numpy() for column in ("wait_s", "response_s", "run_s"))
        return float((wait if name == "wait_s" else bounded_slowdown_perkovic(response, run)).mean())

    return Study(
        name="randomization",
        text=__doc__ or "",
        factors={"change": ["as it is", *EXACT, on_other], "policy": ["D", BEFORE, AFTER]},
        scenario=scenario,
        measures={
            f"{name}_{shape}": partial(of_shape, shape=shape, name=name) for name in ("slowdown", "wait_s") for shape in SHAPES
        },
        replications=replications,
        shown=(SLOWDOWN, WAIT, "mean_response_s", "wasted_load", "retried"),
        tables={"Mean bounded slowdown ± 95 % interval": means, "Mean bounded slowdown by shape ± 95 % interval": by_shape},
        figures={"Mean bounded slowdown by shape": picture},
    )


def shapes_of(workload: Workload, narrow: int, nodes: int) -> tuple[BoolArray, dict[str, BoolArray]]:
    """Return which jobs a machine of ``nodes`` can hold, and which of those have each shape."""
    held = (workload.column("nodes") > 0) & (workload.column("nodes") <= nodes)
    return held, jobs_by_shape(workload.column("nodes")[held], workload.column("estimate")[held], narrow=narrow or None)


@cache
def exact(workload: Workload, shapes: tuple[str, ...], narrow: int, nodes: int) -> Workload:
    """Return the jobs with exact estimates for those of some shapes."""
    held, members = shapes_of(workload, narrow, nodes)
    chosen = np.zeros(len(held), dtype=bool)
    chosen[held] = np.any([members[shape] for shape in shapes], axis=0)
    rows = [
        row._replace(estimate=row.run) if change else row for row, change in zip(workload.rows(), chosen.tolist(), strict=True)
    ]
    return Workload(rows, name=workload.name, machine_nodes=workload.machine_nodes)


@cache
def at_same_load(workload: Workload, nodes: int, other: int) -> Workload:
    """Return the jobs submitted so much faster or slower that a machine of ``other`` nodes has the load of one of ``nodes``."""
    size, run = workload.column("nodes"), np.minimum(workload.seconds("run"), workload.seconds("estimate"))
    old, new = (float((size * run)[size <= machine].sum()) / machine for machine in (nodes, other))
    return workload.scaled(LoadScale(interarrival=new / old))


def means(table: StudyTable) -> pd.DataFrame:
    base = {"policy": BEFORE}
    parts = [table.pivot(SLOWDOWN, columns="policy")]
    parts += [table.pivot(name, columns="policy", relative_to=base)[[AFTER]] for name in (SLOWDOWN, WAIT)]
    titles = [*parts[0].columns, f"{AFTER}, of {BEFORE}'s", f"delay of {AFTER}, of {BEFORE}'s"]
    return pd.concat(parts, axis=1).set_axis(titles, axis=1)


def by_shape(table: StudyTable) -> pd.DataFrame:
    points = [point for point in table.points(["change", "policy"]) if point["policy"] != "D"]
    return pd.DataFrame(
        [{**point, **{shape: table.at(**point).interval(f"slowdown_{shape}") for shape in SHAPES}} for point in points]
    )


def picture(table: StudyTable) -> Figure:
    frame = table.frame[table.frame["policy"] != "D"]
    columns = {"all jobs": SLOWDOWN, **{shape: f"slowdown_{shape}" for shape in SHAPES}}
    parts = [frame.assign(shape=title, bounded_slowdown=frame[column]) for title, column in columns.items()]
    return bars(pd.concat(parts), y="bounded_slowdown", x="change", panels="shape", share_y=False)
