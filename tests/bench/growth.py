"""Measure how CPU time and memory grow with jobs and with nodes; fill in a table and draw a figure of docs/design.md.

Times are multiples of the bare-SimPy floor of the same jobs, which grows in proportion to them; both take turns.

    python -m tests.bench.growth                     measure all points
    python -m tests.bench.growth --only easy nodes   measure the points with these words in their names
    python -m tests.bench.growth --stored            measure nothing: draw and fill in again

Each point is measured in a process of its own and stored in docs/data/growth.csv as soon as it is measured.  A million jobs
take minutes, and nothing else should run meanwhile.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clustermodel import Machine, Scenario
from clustermodel.figures.style import legend_below, policy_colour
from tests.bench.floor import bare_simpy
from tests.bench.record import package_commit, require_this_commit
from tests.bench.scale import ManyJobs, peak_kb
from tests.bench.timing import ROOT, best_of
from tests.scripts import make_studies

NAME: Final = "growth"
STORED: Final = ROOT / "docs" / "data" / f"{NAME}.csv"
PICTURE: Final = ROOT / "docs" / "figures" / f"{NAME}.png"
PAGE: Final = ROOT / "docs" / "design.md"
LABELS: Final = {"easy": "EASY", "conservative": "conservative", "mbgs": "mbgs"}
LONGEST_S: Final = 10.0
"""A run that takes longer is measured once."""
MORE_ROUNDS: Final = 3
"""Of others, after the first."""


class Point(NamedTuple):
    """What is measured at once: a policy with so many jobs on so many nodes."""

    growth: str
    """What grows in the series of the point: ``jobs``, or ``nodes`` with the sizes of jobs, even or ``uneven``."""
    policy: str
    jobs: int
    nodes: int

    @property
    def name(self) -> str:
        """Its words, for the command line."""
        return f"{self.growth} {self.policy} {self.value}"

    @property
    def value(self) -> int:
        """How many jobs or nodes, whatever grows."""
        return self.jobs if self.growth == "jobs" else self.nodes

    def stream(self) -> ManyJobs:
        """Return the jobs; where nodes grow, those of 100 nodes, with larger sizes."""
        if self.growth == "jobs":
            return ManyJobs(self.jobs, machine_nodes=self.nodes)
        return ManyJobs(
            self.jobs, machine_nodes=self.nodes, scale=self.nodes // 100, is_uneven=self.growth.startswith("uneven")
        )

    def program(self) -> Callable[[], object]:
        """Return what is measured."""
        return Scenario(workload=self.stream(), machine=Machine(nodes=self.nodes), policy=self.policy).run

    def floor(self) -> Callable[[], object]:
        """Return what it is compared with."""
        stream = self.stream()
        return lambda: bare_simpy((row.submit, row.run) for row in stream.rows())


UNEVEN: Final = "uneven nodes"
POINTS: Final = (
    *(Point("jobs", policy, 10**power, 128) for policy in ("easy", "conservative", "mbgs") for power in range(4, 7)),
    *(
        Point(growth, policy, jobs, 10**power)
        for growth in ("nodes", UNEVEN)
        for policy, jobs, powers in (
            ("easy", 10_000, range(2, 7)),
            ("conservative", 10_000, range(2, 7)),
            ("mbgs", 3_000, range(2, 6)),
        )
        for power in powers
    ),
)
COLUMNS: Final = [*Point._fields, "us_per_job", "floor_us_per_job", "bytes_per_job", "commit"]
"""The commit is the last one that changed the package."""


def measure_here(point: Point) -> dict[str, float]:
    """Measure a point in this process, which has run nothing else."""
    point._replace(jobs=100).program()()  # imports are not measured
    before = peak_kb()
    programs = point.program(), point.floor()
    seconds = best_of(*programs, rounds=1)
    grown = peak_kb() - before
    if seconds[0] < LONGEST_S:
        seconds = list(map(min, seconds, best_of(*programs, rounds=MORE_ROUNDS)))
    us_per_job, floor_us_per_job = (1e6 * taken / point.jobs for taken in seconds)
    return {"us_per_job": us_per_job, "floor_us_per_job": floor_us_per_job, "bytes_per_job": grown * 1024 / point.jobs}


def measure(point: Point) -> dict[str, float]:
    """Measure a point in a process of its own.

    Raises:
        SystemExit: it fails; with the last line of its error.
    """
    command = [sys.executable, "-m", "tests.bench.growth", "--here", point.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{point.name}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def with_point(table: pd.DataFrame, point: Point, found: dict[str, float], commit: str) -> pd.DataFrame:
    """Return a table with a measured point, in place of its earlier measurement; points are in the order of POINTS."""
    rows = {Point(*row[: len(Point._fields)]): row for row in table.itertuples(index=False, name=None)}
    times = (round(found[name], 3) for name in ("us_per_job", "floor_us_per_job"))
    rows[point] = (*point, *times, round(found["bytes_per_job"]), commit)
    return pd.DataFrame([rows[one] for one in POINTS if one in rows], columns=COLUMNS)


def read() -> pd.DataFrame:
    """Return the stored table, empty where there is no file."""
    return pd.read_csv(STORED, dtype={"commit": str}) if STORED.exists() else pd.DataFrame(columns=COLUMNS)


def exponent(values: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent of a power law fitted to CPU times: 1 where they are proportional, 0 where they do not grow."""
    slope, _ = np.polyfit(np.log(values), np.log(times), 1)
    return round(float(slope), 2) + 0.0  # not -0.0


class Series(NamedTuple):
    """The points of a policy in which one quantity grows."""

    growth: str
    policy: str
    values: Sequence[int]
    multiples: Sequence[float]
    """Of the floor."""
    exponent: float
    """Of the CPU time of a run, where nodes grow of the last decade."""
    bytes_per_job: int
    """Where there are the most jobs or nodes."""

    @property
    def label(self) -> str:
        """The policy and the exponent."""
        return f"{LABELS[self.policy]}: {self.exponent:.2f}"


def series_of(table: pd.DataFrame) -> list[Series]:
    """Return the series of a table that have at least two points."""
    found = []
    for (growth, policy), rows in table.groupby(["growth", "policy"], sort=False):
        values = rows["jobs" if growth == "jobs" else "nodes"].tolist()
        multiples = rows["us_per_job"] / rows["floor_us_per_job"]
        if len(values) > 1:
            last = -2 if growth != "jobs" else 0  # of nodes, where bitmasks become long, those of the last decade
            slope = exponent(values[last:], (multiples * rows["jobs"]).tolist()[last:])
            found.append(Series(growth, policy, values, multiples.tolist(), slope, int(rows["bytes_per_job"].iloc[-1])))
    return found


EXPONENTS: Final = {"jobs": "exponent, jobs", "nodes": "exponent, last decade of nodes (even, uneven)"}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the page: for each policy, times at both ends, exponents, and memory with the most jobs."""
    by_key = {(one.policy, one.growth): one for one in series_of(table)}
    rows = []
    for policy, label in LABELS.items():
        row: dict[str, object] = {"policy": label}
        for growth, least, most in (("jobs", 10**4, 10**6), ("nodes", 10**2, 10**6)):
            first, last, exponents = f"{shown(least)} {growth}", f"{shown(most)} {growth}", EXPONENTS[growth]
            row |= {first: "", last: "", exponents: ""}
            if one := by_key.get((policy, growth)):
                multiples = dict(zip(one.values, one.multiples, strict=True))
                end = "" if one.values[-1] == most else f" ({shown(one.values[-1])})"
                row |= {first: f"{multiples[least]:.3g}" if least in multiples else "", last: f"{one.multiples[-1]:.3g}{end}"}
                also = by_key.get((policy, UNEVEN)) if growth == "nodes" else None
                row[exponents] = ", ".join(f"{series.exponent:.2f}" for series in (one, also) if series)
        most_jobs = by_key.get((policy, "jobs"))
        row["bytes per job"] = f"{most_jobs.bytes_per_job}" if most_jobs else ""
        rows.append(row)
    return pd.DataFrame(rows)


def shown(power_of_ten: int) -> str:
    """Return how tables name a power of ten."""
    return f"10^{len(str(power_of_ten)) - 1}"


def with_summary(page: str, table: pd.DataFrame) -> str:
    """Return the text of the page with the table of stored points."""
    made = make_studies()
    text: str = made.with_tables(page, NAME, made.markdown_table(summary(table), "---:"))
    return text


def draw(table: pd.DataFrame) -> Figure:
    """Return the figure: CPU time against jobs, and against nodes; a policy's label has its exponents."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, 2, sharey=True))
    all_series = series_of(table)
    for axes, growths, quantity in zip(panels, (["jobs"], ["nodes", UNEVEN]), ("jobs", "nodes"), strict=True):
        chosen = [one for one in all_series if one.growth in growths]
        for one in chosen:
            line, marker = ("--", "s") if one.growth == UNEVEN else ("-", "o")
            axes.plot(
                one.values,
                one.multiples,
                color=policy_colour(one.policy),
                linestyle=line,
                marker=marker,
                markersize=4,
                linewidth=1.2,
            )
        for policy in dict.fromkeys(one.policy for one in chosen):
            of_policy = [one for one in chosen if one.policy == policy]
            text = ", ".join([of_policy[0].label, *(f"{one.exponent:.2f}" for one in of_policy[1:])])
            end = (of_policy[0].values[-1], of_policy[0].multiples[-1])
            axes.annotate(text, end, (7, 0), textcoords="offset points", color=policy_colour(policy), fontsize=8, va="center")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(quantity)
        axes.set_xlim(right=10**9)  # for the labels
        axes.set_xticks([10**power for power in range(4 if quantity == "jobs" else 2, 7)])
        axes.set_xticks([], minor=True)
        axes.grid(linewidth=0.3)
    multiples = [5, 10, 20, 50, 100]
    panels[0].set_yticks(multiples, map(str, multiples))
    panels[0].set_yticks([], minor=True)
    panels[0].set_ylabel("CPU time / bare SimPy")
    looks = {"even sizes": ("-", "o"), "uneven sizes": ("--", "s")}
    handles = {name: Line2D([], [], color="grey", linestyle=line, marker=marker) for name, (line, marker) in looks.items()}
    legend_below(figure, handles)
    return figure


def show(table: pd.DataFrame) -> None:
    """Draw the figure, and fill in the table of the page."""
    draw(table).savefig(PICTURE, dpi=110)
    PAGE.write_text(with_summary(PAGE.read_text(), table))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, store and show what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--only", nargs="+", default=[], metavar="WORD", help="measure points whose names have these words")
    what.add_argument("--here", metavar="NAME", help="measure one point in this process and print JSON")
    what.add_argument("--stored", action="store_true", help="measure nothing: draw and fill in the stored points again")
    options = parser.parse_args(argv)
    if options.here:
        print(json.dumps(measure_here(next(point for point in POINTS if point.name == options.here))))
        return
    points = [point for point in POINTS if set(options.only) <= set(point.name.split())]
    if not points:
        raise SystemExit(f"no point has the words {' '.join(options.only)}; the last one is {POINTS[-1].name}")
    if not options.stored:
        require_this_commit()
        commit = package_commit()
        for point in points:
            found = measure(point)
            us, floor_us, memory = found.values()
            print(f"{point.name}: {us:.1f} us, {us / floor_us:.2f} times the floor, {memory:.0f} bytes per job", flush=True)
            with_point(read(), point, found, commit).to_csv(STORED, index=False)
    show(read())


if __name__ == "__main__":
    main()
