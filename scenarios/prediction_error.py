"""How well must run times be predicted for EASY to be better than PV-EASY?

Figure 4 of 004 (004_55d19449f9d7d838.txt, section 5.2.2): MBS and MWBS of PV-EASY, FCFS-EASY and SJF-EASY, all with the same
"virtual" predictor, by its maximum error.

    python scenarios/prediction_error.py                         a small study on the embedded workload
    python scenarios/prediction_error.py --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --full --figure prediction_error.png

The predictor multiplies the run time by a factor that is uniform in 1 ± the maximum error.  With the same seed a job has the
same factor under every policy, so that policies are compared seed by seed.  Dotted lines: the same policies with what they have
in practice, users' estimates for EASY and SJF-EASY, the Last Model for PV-EASY.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from matplotlib.figure import Figure
from paper_004 import AS_RECORDED, UNCUT, count, draw_line
from reporting import Grid, Interval, Runs, label_axes, percent, refusing_in_one_line, report, share, three_digits
from traces import Point, mark_of, options_of, relative, runs_of, size_of

from clustermodel import Result, Workload
from clustermodel.figures.style import policy_styles

ERRORS: Final = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Maximum errors of the virtual predictor; 004's mean absolute error is half of that."""
SMALL_ERRORS: Final = (0.0, 0.1, 0.4, 1.0)
POLICIES: Final = {
    "PV-EASY": "pv-easy",
    "FCFS-EASY": "easy",
    "SJF-EASY": "easy:backfill_order=shortest",
}
"""By their names in 004."""
METRICS: Final = {"mbs": "MBS", "mwbs": "MWBS"}


def points(options: argparse.Namespace) -> list[Point]:
    """Return each policy with the predictor it has in practice, and with the virtual one by its error."""
    made = []
    for error in (None, *(options.errors or (ERRORS if options.full else SMALL_ERRORS))):
        for name, policy in POLICIES.items():
            predicted = "" if error is None else f"{',' if ':' in policy else ':'}predictor=virtual:{error}"
            at = {"policy": name, "error": error}
            made.append(Point(at=at, policy=policy + predicted, random=bool(error), machine=AS_RECORDED))
    return made


def measure(result: Result, _: Workload) -> dict[str, float | None]:
    """Return the slowdowns, and whether fairness and promises were kept."""
    summary = result.summary()
    return {
        "mbs": summary.mean_bounded_slowdown,
        "mwbs": summary.mean_weighted_bounded_slowdown,
        "delayed": summary.delayed,
        "violations": summary.reservation_violations,
        "wasted": summary.wasted_load,
    }


def at(runs: Runs, policy: str, error: float | None) -> Runs:
    return runs.at(policy=policy, error=error)


def errors_of(runs: Runs) -> list[float]:
    return [error for error in runs.distinct("error") if error is not None]


def relative_to(runs: Runs, other: str, metric: str, error: float | None) -> Interval:
    """Return PV-EASY's metric relative to that of another policy with the same predictor, seed by seed."""
    return relative(at(runs, "PV-EASY", error), at(runs, other, error), metric)


def tables(runs: Runs) -> list[Grid]:
    size, errors = size_of(runs), errors_of(runs)
    headings = ["", "in practice", *(f"± {error:.0%}" for error in errors)]

    def grid(title: str, names: Sequence[str], cell: Callable[[str, float | None], str]) -> Grid:
        rows = [[name, *(cell(name, error) for error in (None, *errors))] for name in names]
        return Grid(f"{title}, {UNCUT}, {size}", headings, rows)

    def value(name: str, error: float | None, *, metric: str, number: Callable[[float], str]) -> str:
        return at(runs, name, error).interval(metric).shown(number)

    def compared(name: str, error: float | None, *, metric: str) -> str:
        return relative_to(runs, name.removeprefix("of "), metric, error).shown(percent)

    found = [
        grid(f"Figure 4, {title} ± 95 % interval", list(POLICIES), partial(value, metric=metric, number=three_digits))
        for metric, title in METRICS.items()
    ]
    others = [f"of {name}" for name in POLICIES if name != "PV-EASY"]
    found += [
        grid(f"PV-EASY's {title} ± 95 % interval", others, partial(compared, metric=metric))
        for metric, title in METRICS.items()
    ]
    found.append(grid("Jobs delayed by later jobs", list(POLICIES), partial(value, metric="delayed", number=count)))
    found.append(grid("Reservation violations", list(POLICIES), partial(value, metric="violations", number=count)))
    found.append(grid("Wasted load", ["PV-EASY"], partial(value, metric="wasted", number=share)))
    return found


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 4.8), layout="constrained")
    panels = picture.subplots(1, 2)
    errors = errors_of(runs)
    for axes, (metric, title) in zip(panels, METRICS.items(), strict=True):
        for name, style in policy_styles(list(POLICIES)).items():
            curve = [at(runs, name, error).interval(metric) for error in errors]
            draw_line(axes, [100 * error for error in errors], curve, color=style.colour, marker=style.marker, label=name)
            practice = at(runs, name, None).interval(metric).mean
            axes.axhline(practice, color=style.colour, linestyle=":", linewidth=1.2, label=f"{name}, in practice")
        label_axes(axes, "maximum error of the prediction (%)", title)
        axes.set_ylim(bottom=0)
        axes.set_title(f"figure 4: {title}")
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    picture.suptitle(f"{size_of(runs)}, {UNCUT}; bands: 95 % intervals")
    return picture


def share_of_one(text: str) -> float:
    """Return a maximum error from the command line."""
    try:
        error = float(text)
    except ValueError:
        error = -1.0
    if not 0 <= error <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a number in [0, 1]")
    return error


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="prediction_error", replications=10)
    default = ", ".join(f"{error:g}" for error in SMALL_ERRORS)
    parser.add_argument(
        "--errors", nargs="+", type=share_of_one, metavar="X", help=f"maximum errors (default {default}; more with --full)"
    )
    options = parser.parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
