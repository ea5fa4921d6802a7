r"""When does randomizing shortest-first backfilling help?

Perkovic & Keleher 2000, section 5, find R/L-NG far better than 1/L-NG on the CTC trace.  Their explanation: users overestimate
long-narrow jobs, which wait behind all short ones; randomization could hurt where most long-narrow jobs have smaller slowdowns
than short ones.  The study changes one thing at a time:

* the estimates of long-narrow jobs, of all others, or of all jobs become exact;
* the machine has ``other_nodes`` nodes, and jobs arrive faster or slower to keep the load the same; jobs larger than the
  machine are rejected.

Shapes are those of job_shapes.py, before the change.

Small (20 s on two cores): in synthetic jobs, randomizing changes no slowdown significantly and shortens delays by about a sixth
if all estimates are exact.

    clustermodel sweep scenarios/papers/perkovic_2000/randomization.py --out small --set jobs=1000 --set replications=12

Full (about 2 min on two cores): a year of KTH-SP2; the intervals are those of random orders.

    clustermodel sweep scenarios/papers/perkovic_2000/randomization.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz --set nodes=100 --set other_nodes=430 --set replications=5
"""

from functools import cache, partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from shape_classes import SHAPES, workload_shapes

from clustermodel import LoadScale, Machine, Result, Scenario, Study, StudyTable, Workload
from clustermodel.report.measure_table import by_class, class_measures, measure_table
from clustermodel.workload.synthetic import study_jobs

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
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    Narrow jobs have up to ``narrow`` nodes, 0 for the median.
    """
    original = partial(study_jobs, trace, jobs=jobs, nodes=nodes)
    on_other = f"on {other_nodes} nodes"

    def scenario(change: str, policy: str, seed: int) -> Scenario:
        workload = original(seed=seed)
        if change in EXACT:
            workload = exact(workload, EXACT[change], narrow, nodes)
        elif change == on_other:
            workload = at_load_of(workload, nodes, other_nodes)
        machine = Machine(nodes=other_nodes if change == on_other else nodes)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    def shapes_before(result: Result) -> NDArray[np.str_]:
        return workload_shapes(original(seed=result.scenario.seed), result.machine.nodes, narrow=narrow or None)

    return Study(
        name="randomization",
        factors={"change": ["as it is", *EXACT, on_other], "policy": ["D", BEFORE, AFTER]},
        scenario=scenario,
        measures=class_measures(shapes_before, SHAPES, {"slowdown_{}": SLOWDOWN, "wait_s_{}": WAIT}),
        replications=replications,
        shown=(SLOWDOWN, WAIT, "mean_response_s", "wasted_load", "retried"),
        tables={"Mean bounded slowdown ± 95 % interval": means, "Mean bounded slowdown by shape ± 95 % interval": by_shape},
        figures={"Mean bounded slowdown by shape": picture},
    )


@cache
def exact(workload: Workload, shapes: tuple[str, ...], narrow: int, nodes: int) -> Workload:
    """Return the jobs with exact estimates for those of some shapes."""
    chosen = np.isin(workload_shapes(workload, nodes, narrow=narrow or None), shapes).tolist()
    rows = [row._replace(estimate=row.run) if change else row for row, change in zip(workload.rows(), chosen, strict=True)]
    return Workload(rows, name=workload.name, provenance=workload.provenance, machine_nodes=workload.machine_nodes)


@cache
def at_load_of(workload: Workload, nodes: int, other_nodes: int) -> Workload:
    """Return the jobs, submitted faster or slower, so that another machine has the load of the original one.

    Jobs that a machine cannot hold, which it rejects, do not count in its load.
    """
    size, run_s = workload.column("nodes"), np.minimum(workload.seconds("run"), workload.seconds("estimate"))
    old, new = (float((size * run_s)[size <= machine].sum()) / machine for machine in (nodes, other_nodes))
    return workload.scaled(LoadScale(interarrival=new / old))


def means(table: StudyTable) -> pd.DataFrame:
    base = {"policy": BEFORE}
    parts = [table.pivot(SLOWDOWN, columns="policy")]
    parts += [table.pivot(name, columns="policy", relative_to=base)[[AFTER]] for name in (SLOWDOWN, WAIT)]
    titles = [*parts[0].columns, f"{AFTER}, of {BEFORE}'s", f"delay of {AFTER}, of {BEFORE}'s"]
    return pd.concat(parts, axis=1).set_axis(titles, axis=1)


def by_shape(table: StudyTable) -> pd.DataFrame:
    columns = {shape: f"slowdown_{shape}" for shape in SHAPES}
    return measure_table(table.at(policy=(BEFORE, AFTER)), columns, by=["change", "policy"])


def picture(table: StudyTable) -> Figure:
    columns = {"all jobs": SLOWDOWN, **{shape: f"slowdown_{shape}" for shape in SHAPES}}
    shown = table.at(policy=(BEFORE, AFTER))
    found = by_class(shown, "shape", {shape: {"bounded_slowdown": column} for shape, column in columns.items()})
    return found.plot.bars(y="bounded_slowdown", x="change", panels="shape", share_y=False)
