"""Would another reading of EASY, or of the Last Model, give the numbers of 004 that ours are far from?

Table 4 of 004 (004_55d19449f9d7d838.txt, section 5.2.1) has EASY backfill more jobs and block fewer than ours does, and 004's
PV-EASY has slowdowns like EASY's, which ours has not (docs/pv_easy.md).  Tried here: EASY whose extra nodes are not used up, so
that each backfilled job may take all of them; the same, with running jobs that have outlived their estimates taken to run for
ever; and PV-EASY with other readings of "the last job of the same user".

    python scenarios/easy_readings.py                       a small study on the embedded workload
    python scenarios/easy_readings.py --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --full --replications 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from paper_004 import AS_RECORDED, UNCUT, count, shown
from pv_easy import PAPER
from reporting import Grid, Runs, draw_bars, label_axes, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, runs_of, size_of

from clustermodel import Batch, Decision, Policy, Profile, QueuedJob, Result, Setup, Start, View, Workload
from clustermodel.figures.style import policy_colour
from clustermodel.policies.predictors import LastModel
from clustermodel.policies.pv_easy import PVEasy

SECOND: Final = 1_000_000
FOR_EVER: Final = 2**60


class Generous:
    """EASY (001, section 3.1) with users' estimates and extra nodes that do not shrink as they are used.

    Args:
        late: how much longer a running job is taken to run that has outlived its estimate, ticks.
    """

    def __init__(self, late: int) -> None:
        self.name = "generous EASY"
        self._late = late

    def begin(self, setup: Setup) -> None:
        """Note how large the machine is."""
        self._nodes = setup.nodes

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, and backfill as the shadow time and the extra nodes allow."""
        now, idle = view.now, view.idle
        load = [(self._end(gang.expected_end, now), gang.nodes) for gang in view.running.values()]
        starts: list[Decision] = []
        waiting = iter(view.waiting.values())
        for head in waiting:
            if head.nodes > idle:
                break
            starts.append(Start(job=head))
            load.append((now + head.estimate, head.nodes))
            idle -= head.nodes
        else:
            return starts
        profile = Profile.of_running(self._nodes, now, load)
        shadow = profile.earliest(head.nodes, 1)
        extra = profile.free_at(shadow) - head.nodes
        for job in waiting if idle else ():
            if job.nodes <= idle and (now + job.estimate <= shadow or job.nodes <= extra):
                starts.append(Start(job=job))
                idle -= job.nodes
        return starts

    def _end(self, expected: int, now: int) -> int:
        return expected if expected > now else now + self._late


class OnceAndForAll(LastModel):
    """The Last Model, asked when a job is submitted and not again."""

    def begin(self, setup: Setup) -> None:
        """Forget all users and jobs."""
        super().begin(setup)
        self._predicted: dict[int, int] = {}

    def submitted(self, job: QueuedJob) -> None:
        """Predict."""
        self._predicted[job.id] = super().predict(job)

    def predict(self, job: QueuedJob) -> int:
        """Return what was predicted."""
        return self._predicted[job.id]


class LastSubmitted(OnceAndForAll):
    """The accuracy of the last job that the user submitted, whether it has ended or not: no real scheduler knows it."""

    def begin(self, setup: Setup) -> None:
        """Look into the future."""
        super().begin(setup)
        self._run_time = setup.run_time

    def submitted(self, job: QueuedJob) -> None:
        """Predict, and be the user's last job from now on."""
        super().submitted(job)
        super().ended(job, self._run_time(job))

    def ended(self, job: QueuedJob, run: int) -> None:
        """Nothing new."""


class WithoutLimit(LastModel):
    """The Last Model without the limit at the estimate: a job that outlives its estimate makes predictions beyond them."""

    def predict(self, job: QueuedJob) -> int:
        """Return the estimate times the accuracy, whatever that is."""
        run, estimate = self._last.get(job.user, (1, 1))
        return max(job.estimate * run // estimate, 1)


READINGS: Final[Mapping[str, Callable[[], str | Policy]]] = {
    "EASY": lambda: "easy",
    "EASY, extra nodes are not used up": lambda: Generous(SECOND),
    "the same, late jobs run for ever": lambda: Generous(FOR_EVER),
    "PV-EASY": lambda: "pv-easy",
    "PV-EASY, predicted at submission": lambda: PVEasy(predictor=OnceAndForAll()),
    "PV-EASY, last submitted job": lambda: PVEasy(predictor=LastSubmitted()),
    "PV-EASY, no limit at the estimate": lambda: PVEasy(predictor=WithoutLimit()),
}
KEPT: Final = (
    "mean_bounded_slowdown",
    "mean_weighted_bounded_slowdown",
    "backfilled",
    "blocked",
    "delayed",
    "mean_delay_by_later_s",
    "wasted_load",
)
"""Fields of the summary."""


def points() -> list[Point]:
    return [Point(at={"policy": name}, policy=make(), machine=AS_RECORDED) for name, make in READINGS.items()]


def measure(result: Result, _: Workload) -> dict[str, float]:
    summary = result.summary().as_dict()
    return {name: summary[name] for name in KEPT}  # type: ignore[misc]


def tables(runs: Runs) -> list[Grid]:
    paper = next((numbers for name, numbers in PAPER.items() if str(runs.facts["workload"]).startswith(name)), None)
    headings = ["policy", "MBS", "MWBS", "backfilled", "blocked", "delayed", "mean delay (min)", "wasted load"]
    rows = []
    for name in READINGS:
        here = runs.at(policy=name)
        rows.append(
            [
                name,
                shown(here, "mean_bounded_slowdown", three_digits),
                shown(here, "mean_weighted_bounded_slowdown", three_digits),
                *(shown(here, column, count) for column in ("backfilled", "blocked", "delayed")),
                shown(here, "mean_delay_by_later_s", three_digits, 1 / 60),
                shown(here, "wasted_load", lambda value: f"{100 * value:.2f} %"),
            ]
        )
        if paper is not None and name == "EASY":
            counts = (paper.backfilled_easy, paper.blocked_easy, paper.delayed)
            rows.append(["EASY in 004", "-", "-", *map(count, counts), three_digits(paper.mean_delay_min), "-"])
        if paper is not None and name == "PV-EASY":
            counts = (paper.backfilled_pv, paper.blocked_pv, 0)
            rows.append(["PV-EASY in 004", "-", "-", *map(count, counts), "0.00", f"{paper.wasted_load:.2f} %"])
    return [Grid(f"Other readings of EASY and of the Last Model, {UNCUT}, {size_of(runs)}", headings, rows)]


def figure(runs: Runs) -> Figure:
    names = list(READINGS)
    picture = Figure(figsize=(11, 4.2), layout="constrained")
    places = np.arange(len(names), dtype=float)[::-1]
    panels = (("backfilled", "jobs backfilled"), ("blocked", "jobs blocked"), ("mean_bounded_slowdown", "MBS"))
    for panel, (axes, (column, title)) in enumerate(zip(picture.subplots(1, 3), panels, strict=True)):
        found = [runs.at(policy=name).interval(column) for name in names]
        draw_bars(axes, places, found, 0.7, across=True, color=[policy_colour("easy")] * 3 + [policy_colour("pv-easy")] * 4)
        axes.set_yticks(places, names if panel == 0 else [""] * len(names))
        label_axes(axes, title, "")
    picture.suptitle(size_of(runs), fontsize="medium")
    return picture


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="easy_readings", replications=1).parse_args(argv)
    runs = runs_of(options, points(), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
