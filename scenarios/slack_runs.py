"""What the studies of slack-based backfilling share: logs cut into months, runs that can be told apart by month and policy.

The papers (000_abeb21d5b8b877d3.txt, section 3; 001_f8fdeaee59e3a36f.txt, section 5) simulate each month of KTH's log on 128
processors by itself, with one AWT for all, the mean wait of the year under conservative backfilling; their yearly means are
total wait by number of jobs.  Here, too: AWT is what our conservative backfilling gives.  Without a trace the log is synthetic,
cut into three parts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import version
from itertools import groupby
from math import fsum
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from reporting import Runs, add_usual_options, in_parallel, read, whole

from clustermodel import (
    TICKS_PER_SECOND,
    JobRow,
    Machine,
    Policy,
    Scenario,
    Slack,
    Workload,
    make_policy,
    read_swf,
    synthetic_workload,
)

NODES: Final = 128
"""000, section 3.1."""
KTH: Final = "KTH-SP2-1996-2.2.swf.gz"
"""The log of the papers."""
WHOLE: Final = "all"
"""The log in one run."""
YEAR_END: Final = "1997-09"
"""The papers' logs end before this month; so does KTH's trace."""
SMALL_JOBS: Final = 3_000
SMALL_LOAD: Final = 0.75


class Variant(NamedTuple):
    """A policy, and which of its parameters tell it from the others of a study."""

    policy: str = "slack"
    """``"slack"`` or the name of another policy."""
    heuristic: str = "ast"
    remove: str = "afresh"
    slack_factor: float = 3.0
    gap: float = 0.0
    """UP + PP of every fifth job; 0 for the others (000, section 3.3)."""

    def made(self, awt_s: float, fifth: frozenset[int]) -> Policy:
        """Return the policy; jobs of ``fifth`` have the higher priority."""
        if self.policy != "slack":
            return make_policy(self.policy)
        user, political = min(self.gap, 1.0), max(self.gap - 1.0, 0.0)

        def of_fifth(value: float) -> Any:
            return (lambda job: value if job.id in fifth else 0.0) if value else 0.0

        return Slack(
            heuristic=self.heuristic,
            remove=self.remove,
            slack_factor=self.slack_factor,
            awt=awt_s,
            user_priority=of_fifth(user),
            political_priority=of_fifth(political),
        )


def options_of(doc: str | None, *, study: str) -> argparse.ArgumentParser:
    """Return the options that these studies have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--trace", type=Path, metavar="PATH", help="a trace in SWF whose header has UnixStartTime, such as KTH-SP2-1996-2.2")
    add("--jobs", type=whole, default=SMALL_JOBS, help=f"jobs of the synthetic log (default {SMALL_JOBS:,})")
    add("--full", action="store_true", help="the whole study; by default the most telling part of it")
    add_usual_options(parser, study=study)
    return parser


def runs_of(options: argparse.Namespace, variants: Sequence[Variant], in_one_run: Sequence[Variant] = ()) -> Runs:
    """Run all variants on each part of the log, and some on the whole of it in one run; or read what was stored.

    The first runs are conservative backfilling's, which give AWT.
    """
    if options.stored:
        return read(options.stored)
    trace = str(options.trace) if options.trace else None
    parts = [*_parts(trace, options.jobs), *([WHOLE] if in_one_run else [])]
    conservative = Variant("conservative")
    first = in_parallel(_run, [(trace, options.jobs, part, conservative, 0.0) for part in parts], options.workers)
    of_parts = [row for row in first if row["part"] != WHOLE]
    year_s = fsum(row["wait_s"] for row in of_parts) / sum(row["jobs"] for row in of_parts)
    awt_s = dict.fromkeys(parts, year_s) | {WHOLE: first[-1]["wait_s"] / first[-1]["jobs"]}
    tasks = [
        (trace, options.jobs, part, one, awt_s[part])
        for one in variants
        for part in parts
        if one != conservative and (part != WHOLE or one in in_one_run)
    ]
    facts = {
        "study": options.study,
        "clustermodel": version("clustermodel"),
        "log": Path(trace).name if trace else "synthetic_workload",
        "jobs": sum(row["jobs"] for row in of_parts),
        "nodes": NODES,
        "replications": 1,
        "awt_s": year_s,
    }
    return Runs(facts, [*first, *in_parallel(_run, tasks, options.workers)])


def _run(trace: str | None, jobs: int, part: str, variant: Variant, awt_s: float) -> dict[str, Any]:
    rows = _parts(trace, jobs)[part] if part != WHOLE else [row for rows in _parts(trace, jobs).values() for row in rows]
    fifth = frozenset(row.id for row in rows[4::5])
    policy = variant.made(awt_s, fifth)
    result = Scenario(machine=Machine(nodes=NODES), workload=Workload(rows), policy=policy).run()
    table = result.jobs[result.jobs["wait_s"].notna()]
    chosen = table["job"].isin(fifth)
    delay = (table["start_s"] - table["reserved_s"]).fillna(0.0)
    return {
        "part": part,
        **variant._asdict(),
        "replication": 1,
        "jobs": len(table),
        "wait_s": float(table["wait_s"].sum()),
        "fifth_jobs": int(chosen.sum()),
        "fifth_wait_s": float(table["wait_s"][chosen].sum()),
        "longest_wait_s": float(table["wait_s"].max()),
        "slowdown": float(result.summary().mean_bounded_slowdown),
        "late": int((delay > 0).sum()),
    }


@cache
def _parts(trace: str | None, jobs: int) -> Mapping[str, list[JobRow]]:
    """Return the jobs by month of submission, or by thirds of the time for a synthetic log."""
    if trace is None:
        log = synthetic_workload(jobs=jobs, nodes=NODES, load=SMALL_LOAD)
        third = log.span_s * TICKS_PER_SECOND / 3
        by_third = groupby(log.rows(), key=lambda row: min(2, int(row.submit // third)) + 1)
        return {f"part {number}": list(rows) for number, rows in by_third}
    log = read_swf(trace)
    header = log.provenance.header
    zone, began = ZoneInfo(header["TimeZoneString"]), int(header["UnixStartTime"])
    months = groupby(
        log.rows(), key=lambda row: f"{datetime.fromtimestamp(began + row.submit // TICKS_PER_SECOND, zone):%Y-%m}"
    )
    return {month: list(rows) for month, rows in months if month < YEAR_END}


def mean_wait(runs: Runs, measure: str = "wait_s", jobs: str = "jobs") -> float:
    """Return total wait by number of jobs over the parts of the log (000, section 3.2), without the run in one piece."""
    rows = [row for row in runs.rows if row["part"] != WHOLE]
    return fsum(row[measure] for row in rows) / sum(row[jobs] for row in rows)


def fifth_wait(runs: Runs) -> float:
    """Return the mean wait of every fifth job, seconds."""
    return mean_wait(runs, "fifth_wait_s", "fifth_jobs")


def other_wait(runs: Runs) -> float:
    """Return the mean wait of the jobs that are not fifth, seconds."""
    rows = [
        {"part": row["part"], "wait_s": row["wait_s"] - row["fifth_wait_s"], "jobs": row["jobs"] - row["fifth_jobs"]}
        for row in runs.rows
    ]
    return mean_wait(Runs(runs.facts, rows))


def of(runs: Runs, variant: Variant) -> Runs:
    """Return the runs of a variant."""
    return runs.at(**variant._asdict())


def seconds(value: float) -> str:
    """Write a mean wait."""
    return f"{value:,.1f}"


def gain(before: float, after: float) -> str:
    """Write by how much a wait has become shorter."""
    return f"{100 * (1 - after / before):.1f} %" if before else "-"


def log_of(runs: Runs) -> str:
    """Return in words what was scheduled."""
    name = "KTH" if runs.facts["log"] == KTH else "synthetic"
    return f"{name}, {runs.facts['jobs']:,} jobs, {runs.facts['nodes']} nodes, AWT {runs.facts['awt_s']:,.0f} s"
