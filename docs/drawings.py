"""Drawings of how schedulers decide, after those of the papers, each from a simulation of a handful of jobs.

    python docs/drawings.py                 write all of them to docs/figures/drawings
    python docs/drawings.py matrix          write one

The papers' drawings have no numbers in their text; the jobs here are ours, chosen so that what the captions say happens.  Jobs
are named by their numbers, and times are in seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import factorial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from clustermodel import (
    TICKS_PER_SECOND,
    Checkpointing,
    Job,
    Machine,
    Policy,
    QueuedJob,
    Result,
    Scenario,
    TimeSlicing,
    Workload,
    distributions,
    estimates_used,
    load_model,
    read_swf,
    to_seconds,
)
from clustermodel.figures.gantt import draw_gantt, draw_matrix
from clustermodel.plans.slack_prices import Weights, cost, favour, price_of_start, weight
from clustermodel.policies.easy import Easy
from clustermodel.policies.predictors import UserEstimate
from clustermodel.theory.migration import option_1_overhead, option_2_overhead

Submitted = tuple[float, ...]
"""Seconds of submission, nodes, seconds of run time, and of the estimate if it is another; jobs are numbered from 1 on."""
PHI = 0.2
"""Of figures 1 to 3 of Zhang et al. 2003: what most of their figures have."""


def play(nodes: int, jobs: Sequence[Submitted], policy: str | Policy, *, mpl: int = 1, cost_s: float = 0.0) -> Result:
    """Run a handful of jobs.

    Args:
        nodes: of the machine.
        jobs: what is submitted.
        policy: what schedules them.
        mpl: rows of the matrix, for slices of 10 s; the history is kept where there is more than one.
        cost_s: C of Zhang et al. 2003, half of it to checkpoint a gang and half to restart it.
    """
    workload = Workload.from_jobs(
        Job(id=number, submit_s=submit, nodes=int(size), run_s=run, estimate_s=estimate[0] if estimate else run)
        for number, (submit, size, run, *estimate) in enumerate(jobs, 1)
    )
    slicing = TimeSlicing(quantum_s=10, mpl=mpl) if mpl > 1 else TimeSlicing()
    saving = Checkpointing(checkpoint_s=cost_s / 2, restart_s=cost_s / 2)
    machine = Machine(nodes=nodes, time_slicing=slicing, checkpointing=saving)
    return Scenario(machine=machine, workload=workload, policy=policy, history=mpl > 1).run()


def beside_each_other(panels: Sequence[tuple[str, Callable[[Axes], None]]], *, height: float = 2.9) -> Figure:
    """Return a figure with a panel for each title."""
    picture = Figure(figsize=(3.5 * len(panels), height), layout="constrained")
    for axes, (title, draw) in zip(picture.subplots(1, len(panels), squeeze=False).flat, panels, strict=True):
        draw(axes)
        axes.set_title(title, fontsize="medium")
    return picture


def _gantt(result: Result, *, until_s: float | None = None) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        draw_gantt(axes, result, labels=True)
        axes.set_xlim(0, until_s or axes.get_xlim()[1])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))

    return draw


def _matrix(result: Result, at_s: float) -> Callable[[Axes], None]:
    return lambda axes: draw_matrix(axes, result, at_s)


# Talby & Feitelson 1999, long version


def schedule() -> Figure:
    """Talby & Feitelson 1999, long version, figure 1: job 1 ends, jobs 2 and 3 start, job 4 waits."""
    return beside_each_other([("FCFS", _gantt(play(4, [(0, 4, 2), (0, 2, 3), (0, 1, 2), (0, 3, 2)], "fcfs")))])


BY_SHADOW_TIME = [(0, 2, 4), (0, 1, 2), (0, 4, 2), (1, 1, 3)]
ON_EXTRA_NODES = [(0, 2, 4), (0, 1, 2), (0, 3, 2), (1, 1, 6)]


def easy_criteria() -> Figure:
    """Talby & Feitelson 1999, long version, figure 2: job 4 is backfilled by each of the two criteria."""
    return beside_each_other(
        [
            ("criterion 1: it ends by the shadow time", _gantt(play(4, BY_SHADOW_TIME, "easy"))),
            ("criterion 2: it fits on the extra nodes", _gantt(play(4, ON_EXTRA_NODES, "easy"))),
        ]
    )


PROFILE = [(0, 2, 2), (0, 2, 4), (0, 3, 2), (0, 4, 2), (0, 1, 7)]


def profiles() -> Figure:
    """Talby & Feitelson 1999, long version, figures 3 to 5: a profile, what EASY makes of it, and conservative backfilling."""
    return beside_each_other(
        [
            (f"figure {number}: {name}", _gantt(play(4, PROFILE, policy), until_s=15))
            for number, name, policy in (
                (3, "in order of arrival", "fcfs"),
                (4, "EASY", "easy"),
                (5, "conservative", "conservative"),
            )
        ]
    )


def cost_example() -> Figure:
    """Talby & Feitelson 1999, long version, figures 6 and 7: a profile, and three schedules with their prices.

    Prices are those of equal priorities and slacks (section 4.4).
    """
    one, two, three = (2, 2), (1, 5), (2, 2)  # nodes, seconds
    weights = Weights()
    moved = {"S1": (None, 2), "S2": (two, 0), "S3": (one, 0)}
    panels = [("figure 6: the profile", _gantt(play(4, [(0, *one), (0, *two)], "fcfs"), until_s=7))]
    for name, (delayed, start) in moved.items():
        price = price_of_start(three[0], start, weights)
        if delayed:
            price += cost(weight(delayed[0], 0.5, 10, 10, weights), 2, favour(0.5, weights), weights.t)
        submits = [2 if delayed is one else 0, 2 if delayed is two else 0, start]
        jobs = [(submit, *job) for submit, job in zip(submits, (one, two, three), strict=True)]
        panels.append((f"figure 7: {name}, price {price:g}", _gantt(play(4, jobs, "fcfs"), until_s=7)))
    return beside_each_other(panels)


def complexity_example() -> Figure:
    """Talby & Feitelson 1999, long version, figure 8: how many orders are tried when job 4 is inserted at a slot."""
    result = play(4, [(0, 4, 2), (0, 4, 3), (0, 4, 1)], "fcfs")
    starts = [*result.jobs["start_s"], result.jobs["end_s"].iloc[-1]]
    orders = ", ".join(f"{factorial(3 - place)} at t = {start:g}" for place, start in enumerate(starts))
    return beside_each_other([(f"orders to try:\n{orders}", _gantt(result))], height=3.1)


# Zhang et al. 2003


@cache
def baseline() -> Workload:
    """Return a baseline workload of Zhang et al. 2003, section 2.2, drawn from the package's model."""
    return load_model("blue-pacific").generate(jobs=10_000, seed=1, phi=PHI)


def phi_model() -> Figure:
    """Zhang et al. 2003, figure 1."""
    return estimates_used([baseline()], phi=PHI)


def job_sizes_and_cpu_time() -> Figure:
    """Zhang et al. 2003, figures 2 and 3."""
    return distributions([baseline()])


BACKFILLED = [(0, 3, 2), (0, 2, 5), (0, 4, 1), (0, 4, 2), (0, 3, 3)]


def with_and_without_backfilling() -> Figure:
    """Zhang et al. 2003, figure 4: FCFS without and with backfilling; numbers are places in the queue."""
    results = [play(5, BACKFILLED, policy) for policy in ("fcfs", "bf")]
    end = max(result.jobs["end_s"].max() for result in results)
    return beside_each_other(
        [(name, _gantt(result, until_s=end)) for name, result in zip(("(a) without", "(b) with"), results, strict=True)]
    )


MATRIX = [(0, 8, 100), (0, 8, 100), (0, 4, 100), (0, 2, 100), (0, 2, 100), (0, 4, 100)]


def matrix() -> Figure:
    """Zhang et al. 2003, figure 7: eight processors, four rows, six jobs, of which 4 and 5 are in two rows."""
    return play(8, MATRIX, "gs", mpl=4).plot.matrix(1)


FIRST_OPTION = [(0, 3, 200), (0, 3, 20), (0, 1, 200), (0, 3, 200)]
"""Jobs J, one that ends, a third one and A."""
SECOND_OPTION = [(0, 3, 200), (0, 3, 20), (0, 2, 200), (0, 2, 200)]
COST_S = 4.0


def migration(jobs: Sequence[Submitted]) -> tuple[Result, float]:
    """Return a run in which job 4 moves to the row of job 1 when job 2 has ended, and when that is, seconds."""
    result = play(8, jobs, "mgs", mpl=2, cost_s=COST_S)
    gone = next(
        moment.ticks for moment in result.history.moments if not any(cell.job == 2 for cells in moment.rows for cell in cells)
    )
    return result, to_seconds(gone)


def migration_options() -> Figure:
    """Zhang et al. 2003, figure 13: job 1 yields to job 4, or job 4 goes to other columns, the cheaper one."""
    picture = Figure(figsize=(10, 4), layout="constrained")
    panels = picture.subplots(2, 2)
    for row, name, jobs in zip(panels, ("option 1: 1 yields", "option 2: 4 moves"), (FIRST_OPTION, SECOND_OPTION), strict=True):
        result, at_s = migration(jobs)
        (_, j, *_), (_, a, *_) = jobs[0], jobs[3]
        costs = [option(int(a), [int(j)], COST_S / 2, COST_S / 2) for option in (option_1_overhead, option_2_overhead)]
        for axes, when, title in (
            (row[0], at_s - 1, "before"),
            (row[1], at_s, f"{name}; eqs. (4), (5): {costs[0]:g}, {costs[1]:g} node-s"),
        ):
            draw_matrix(axes, result, when)
            axes.set_title(title, fontsize="medium")
    return picture


# Perkovic & Keleher 2000, and Yuan et al. 2010


WIDE_AND_LONG = [(0, 2, 5), (0, 4, 2), (0, 3, 1), (0, 3, 3)]
"""Jobs B, C, D and the new one; A comes before them."""


def guaranteed_start(run_s: float) -> Result:
    """Return a run in which job A, of 3 nodes, is estimated to take 2 s."""
    return play(5, [(0, 3, run_s, 2), *WIDE_AND_LONG], "conservative")


def guarantee() -> Figure:
    """Perkovic & Keleher 2000, figure 1: job 5 is guaranteed a start at 7, and starts at 2 if job 1 ends early."""
    return beside_each_other(
        [
            ("job 1 takes as long as estimated", _gantt(guaranteed_start(2), until_s=10)),
            ("job 1 ends early", _gantt(guaranteed_start(1), until_s=10)),
        ]
    )


@dataclass(frozen=True)
class OneUnderestimated(UserEstimate):
    """The user's estimate, except that one job is thought to take less time."""

    job: int
    predicted_s: int

    def predict(self, job: QueuedJob) -> int:
        """Return the prediction."""
        return self.predicted_s * TICKS_PER_SECOND if job.id == self.job else job.estimate


THREE_JOBS = [(0, 2, 2), (0, 5, 2), (0, 1, 2)]
FIVE_JOBS = [(0, 2, 5), (0, 5, 1), (0, 3, 6), (0, 2, 6), (0, 1, 6)]
FIRST_UNDERESTIMATED = Easy(predictor=OneUnderestimated(1, 1))
FIFTH_UNDERESTIMATED = Easy(predictor=OneUnderestimated(5, 4))


def wasted_before_second(result: Result) -> float:
    """Return the idle node-seconds before job 2 starts."""
    jobs = result.jobs.set_index("job")
    start = float(jobs.at[2, "start_s"])
    used = sum(row.nodes * max(min(row.end_s, start) - row.start_s, 0) for row in jobs.drop(2).itertuples())
    return result.machine.nodes * start - used


def underestimate() -> Figure:
    """Yuan et al. 2010, figure 1: what EASY does with users' estimates, with a running and with a waiting job underestimated.

    With job 1 underestimated job 3 is not backfilled, and job 2 starts later than promised.  Job 5 is backfilled because it is
    underestimated, and delays job 2.
    """
    panels = []
    for name, policy in (("(a) users' estimates", "easy"), ("(b) job 1 predicted to end at 1", FIRST_UNDERESTIMATED)):
        result = play(5, THREE_JOBS, policy)
        panels.append((f"{name}:\n{wasted_before_second(result):g} node-s idle before 2 starts", _gantt(result, until_s=6)))
    result = play(5, FIVE_JOBS, FIFTH_UNDERESTIMATED)
    second = result.jobs.set_index("job").loc[2]
    promise = f"2 starts at {second['start_s']:g}, not at {second['reserved_s']:g}"
    panels.append((f"(c) job 5 predicted to end at 4:\n{promise}", _gantt(result, until_s=14)))
    return beside_each_other(panels, height=3.1)


# Zhang et al. 2003 on a real log


KTH = Path(__file__).parents[2] / "shared" / "traces" / "KTH-SP2-1996-2.2.swf.gz"


def matrix_of_log() -> Figure:
    """BGS with five rows and MBGS with one, at the same time of KTH-SP2: the first such time after both had five rows."""
    jobs = Workload(islice(read_swf(KTH).rows(), 1500), name="KTH-SP2", machine_nodes=100)
    machine = Machine(nodes=100, checkpointing=Checkpointing(checkpoint_s=5, restart_s=5))
    bgs, mbgs = (Scenario(machine=machine, workload=jobs, policy=name, history=True).run() for name in ("bgs", "mbgs"))
    rows = machine.time_slicing.mpl
    moments = (moment.ticks for moment in bgs.history.moments if len(moment.rotation) == rows)
    both = next(ticks for ticks in moments if len(mbgs.history.at(ticks).rotation) == rows)
    at_s = to_seconds(next(ticks for ticks in moments if ticks > both and len(mbgs.history.at(ticks).rotation) == 1))
    return beside_each_other([(name, _matrix(run, at_s)) for name, run in (("BGS", bgs), ("MBGS", mbgs))])


DRAWINGS: dict[str, Callable[[], Figure]] = {
    one.__name__: one
    for one in (
        schedule,
        easy_criteria,
        profiles,
        cost_example,
        complexity_example,
        phi_model,
        job_sizes_and_cpu_time,
        with_and_without_backfilling,
        matrix,
        migration_options,
        guarantee,
        underestimate,
        matrix_of_log,
    )
}
"""By the names of their files."""


def main(argv: Sequence[str] | None = None) -> None:
    """Write the drawings named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="drawings (default: all)")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "figures" / "drawings", help="where they go")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or DRAWINGS:
        if name == matrix_of_log.__name__ and not KTH.exists():
            print(f"{name}: skipped, because {KTH.name} is missing")
            continue
        DRAWINGS[name]().savefig(options.folder / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main()
