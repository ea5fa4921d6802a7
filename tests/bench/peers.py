"""Compare simulators on the same jobs, in one run; fill in the table of docs/other_simulators.md.

    python -m tests.bench.peers --python accasim=FOLDER/bin/python --package FOLDER
    python -m tests.bench.peers --stored             measure nothing: fill in again

Simulators take turns, each run in a process of its own; the CPU time of the simulation alone counts, the least of several
rounds.  AccaSim is run by the Python in which it is installed (``python3 -m venv FOLDER; FOLDER/bin/pip install accasim``), and
compiled modules are taken from a folder (``CLUSTERMODEL_COMPILE=1 pip install --no-deps --target FOLDER .``); what is not given
is skipped.  Results go to docs/data/peers.csv.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from operator import ne
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pandas as pd

from clustermodel import Workload, read_swf
from tests.bench.record import conditions, require_compiled, require_this_commit
from tests.bench.timing import ROOT
from tests.scripts import make_studies
from tests.shared_data import trace_path

NAME: Final = "peers"
STORED: Final = ROOT / "docs" / "data" / f"{NAME}.csv"
PAGE: Final = ROOT / "docs" / "other_simulators.md"
TRACES: Final = {
    "KTH-SP2": ("KTH-SP2-1996-2.2", 100, ("fcfs", "easy", "conservative")),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln", 338, ("easy",)),  # with the others, queues of thousands of jobs take some of them hours
}
"""File, nodes of the machine, and policies."""
LABELS: Final = {"fcfs": "FCFS", "easy": "EASY", "conservative": "conservative"}
ROUNDS: Final = 3
LONGEST_S: Final = 60.0
"""A simulator is not run again with a policy after runs that have taken so long together."""
OURS, COMPILED, PYSS, ACCASIM = "clustermodel", "compiled", "pyss's method", "accasim"


class Simulator(NamedTuple):
    """A simulator as it is run."""

    name: str
    module: str
    """What ``tests.bench.peer_run`` calls it."""
    python: str
    package: Path
    """Where the package is looked for."""

    def run(self, policy: str, jobs: Path) -> dict[str, Any]:
        """Return what a run prints.

        Raises:
            SystemExit: it fails; with the last line of its error.
        """
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.package), str(ROOT)])}
        command = [self.python, "-P", "-m", "tests.bench.peer_run", self.module, policy, str(jobs)]
        done = subprocess.run(command, cwd=jobs.parent, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{self.name}, {policy}: {done.stderr.strip().splitlines()[-1]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def can_import(python: str, module: str) -> bool:
    """Return whether there is a Python that has a module."""
    return (
        bool(which(python))
        and not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode
    )


def simulators(pythons: dict[str, str], package: Path | None) -> list[Simulator]:
    """Return the simulators that can be run here; print why others cannot."""
    found = [Simulator(OURS, OURS, sys.executable, ROOT), Simulator(PYSS, PYSS, sys.executable, ROOT)]
    if package is not None:
        found.insert(1, Simulator(COMPILED, OURS, sys.executable, package.resolve()))
    else:
        print("compiled modules are skipped: CLUSTERMODEL_COMPILE=1 pip install --no-deps --target FOLDER .")
        print("then add --package FOLDER")
    python = pythons.get(ACCASIM, sys.executable)
    if can_import(python, ACCASIM):
        found.append(Simulator(ACCASIM, ACCASIM, python, ROOT))
    else:
        print(f"{ACCASIM} is skipped: python3 -m venv FOLDER; FOLDER/bin/pip install {ACCASIM}")
        print(f"then add --python {ACCASIM}=FOLDER/bin/python")
    return found


def jobs_of(workload: Workload) -> list[list[int]]:
    """Return submission, nodes, run time within the estimate, and estimate of each job, in seconds."""
    return [
        [row.submit // 10**6, row.nodes, min(row.run, row.estimate) // 10**6, row.estimate // 10**6] for row in workload.rows()
    ]


def has(simulator: Simulator, policy: str) -> bool:
    """Return whether a simulator has a policy."""
    return simulator.name != ACCASIM or policy != "conservative"


def measure(trace: str, chosen: Sequence[Simulator], rounds: int) -> list[dict[str, Any]]:
    """Return a row of the stored table for each policy and simulator."""
    file, nodes, policies = TRACES[trace]
    jobs = jobs_of(read_swf(trace_path(file)))
    rows = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "jobs.json")
        path.write_text(json.dumps({"nodes": nodes, "jobs": jobs}))
        for policy in policies:
            having = [simulator for simulator in chosen if has(simulator, policy)]
            runs: dict[str, list[dict[str, Any]]] = {one.name: [] for one in having}
            for _ in range(rounds):
                for one in having:
                    if sum(run["seconds"] for run in runs[one.name]) < LONGEST_S:
                        runs[one.name].append(one.run(policy, path))
            for one in having:
                first = runs[one.name][0]
                starts = first["starts"]
                rows.append({
                    "trace": trace,
                    "policy": policy,
                    "simulator": one.name,
                    "cpu_s": round(min(run["seconds"] for run in runs[one.name]), 3),
                    "peak_mib": round(min(run["peak_kb"] for run in runs[one.name]) / 1024),
                    "mean_wait_s": round(sum(start - job[0] for start, job in zip(starts, jobs, strict=True)) / len(jobs), 3),
                    "jobs": len(jobs),
                    "other_starts": sum(map(ne, starts, runs[OURS][0]["starts"])),
                    "version": first["version"],
                })  # fmt: skip
                print(*rows[-1].values(), sep=", ", flush=True)
    return rows


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the page: CPU time of ours and multiples of it, peak memory, and mean wait."""
    rows: list[dict[str, object]] = []
    for (trace, policy), runs in table.groupby(["trace", "policy"], sort=False):
        by_name = runs.set_index("simulator")
        ours = by_name.loc[OURS]
        row: dict[str, object] = {"trace": trace, "policy": LABELS[policy]}
        for name in (name for name in SHOWN if name in set(table["simulator"])):
            row[SHOWN[name]] = ""
            if name in by_name.index:
                seconds, memory = by_name.loc[name, ["cpu_s", "peak_mib"]]
                time = f"{seconds:.2f} s" if name == OURS else f"{seconds / ours['cpu_s']:.2f}"
                row[SHOWN[name]] = f"{time}, {memory:.0f} MiB"
        others = [f"{SHOWN[one.simulator]} {one.mean_wait_s:,.0f}" for one in runs.itertuples() if one.other_starts]
        row["mean wait, s"] = "; ".join([f"{ours['mean_wait_s']:,.0f}", *others])
        rows.append(row)
    return pd.DataFrame(rows)


SHOWN: Final = {OURS: "pure", COMPILED: "compiled", PYSS: PYSS, ACCASIM: "AccaSim"}
"""In the columns of the page's table."""


def with_summary(page: str, table: pd.DataFrame) -> str:
    """Return the text of the page with the stored table, and a line that says where it was measured."""
    made = make_studies()
    line = table["conditions"].iloc[0]
    if (versions := table.loc[table["simulator"] == ACCASIM, "version"]).size:
        line += f", AccaSim {versions.iloc[0]}"
    text: str = made.with_tables(page, NAME, f"{line}:\n\n{made.markdown_table(summary(table), '---:')}")
    return text


def read() -> pd.DataFrame:
    """Return the stored table."""
    return pd.read_csv(STORED, dtype={"version": str})


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, store and show what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[], metavar="NAME=PATH", help="the Python that has a simulator")
    parser.add_argument("--package", type=Path, help="folder that has this commit's package with compiled modules")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"in which simulators take turns (default: {ROUNDS})")
    parser.add_argument("--stored", action="store_true", help="measure nothing: fill in the stored results again")
    options = parser.parse_args(argv)
    if not options.stored:
        require_this_commit()
        if options.package is not None:
            require_compiled(options.package)
        chosen = simulators(dict(text.split("=", 1) for text in options.python), options.package)
        rows = [row for trace in TRACES for row in measure(trace, chosen, options.rounds)]
        pd.DataFrame(rows).assign(conditions=conditions()).to_csv(STORED, index=False)
    PAGE.write_text(with_summary(PAGE.read_text(), read()))


if __name__ == "__main__":
    main()
