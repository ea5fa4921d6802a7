"""From a trace to its tables by the command line: the CPU time of each part of ``clustermodel run --trace ... --jobs-csv ...``.

    python -m tests.bench.file_to_table                     measure, and fill in the table of CONTRIBUTING.md
    python -m tests.bench.file_to_table --package FOLDER    the same with compiled modules in a folder
    python -m tests.bench.file_to_table --stored            fill in the stored table again

Each run is a process of its own, as of a user, with the bytecode of all modules kept.  Nothing else should run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pandas as pd

from tests.bench.record import conditions, require_compiled, require_this_commit
from tests.bench.timing import MOST_JOBS, ROOT, with_bytecode
from tests.scripts import make_studies
from tests.shared_data import trace_path

NAME: Final = "file_to_table"
STORED: Final = ROOT / "docs" / "data" / f"{NAME}.csv"
PAGE: Final = ROOT / "CONTRIBUTING.md"
TRACES: Final = {"KTH-SP2": "KTH-SP2-1996-2.2", "CEA-Curie": "CEA-Curie-2011-2.1-cln"}
MEASURED: Final = "measured"
"""The row of the stored table that says where and when."""
PARTS: Final = ("import", "read", "simulate", "measure", "write")
MOST: Final = 0.25
"""The largest share of any part but the simulation."""
ROUNDS: Final = {"KTH-SP2": 5, "CEA-Curie": 2}


def parts(trace: str, package: Path = ROOT) -> dict[str, float]:
    """Return the CPU time of each part, and of the whole, of one run of a trace."""
    with TemporaryDirectory() as folder:
        target = Path(folder, "parts.json")
        environment = with_bytecode({"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])})
        command = ["run", "--trace", str(trace_path(trace)), "--policy", "easy", "--jobs-csv", folder]
        if MOST_JOBS is not None:
            command += ["--window", "0:32000000"]  # all jobs of KTH-SP2, a few hundred of CEA-Curie
        measured = [sys.executable, "-P", "-m", "tests.bench.run_in_parts", str(target), *command]
        subprocess.run(measured, env=environment, capture_output=True, check=True)
        found: dict[str, float] = json.loads(target.read_text())
    return found


def best_parts(trace: str, rounds: int, package: Path = ROOT) -> dict[str, float]:
    """Return the parts of the fastest of some runs."""
    runs = rounds + 1 if MOST_JOBS is None else 1  # the first one compiles
    return min((parts(trace, package) for _ in range(runs)), key=lambda found: found["whole"])


def largest_share(seconds: Mapping[str, float]) -> float:
    """Return the share of the longest part but the simulation."""
    return max(seconds[part] for part in PARTS if part != "simulate") / seconds["whole"]


def read() -> pd.DataFrame:
    """Return the stored table: texts by part, and where and when each column was measured."""
    return pd.read_csv(STORED, index_col="seconds", dtype=str).reindex([*PARTS, "whole", MEASURED])


def with_parts(page: str, stored: pd.DataFrame) -> str:
    """Return the text of the page with the stored table."""
    made, measured = make_studies(), "; ".join(dict.fromkeys(stored.loc[MEASURED].dropna()))
    table = made.markdown_table(stored.drop(index=MEASURED).rename_axis("seconds").reset_index(), "---:")
    text: str = made.with_tables(page, NAME, f"Measured: {measured}.\n\n{table}")
    return text


def main(argv: list[str] | None = None) -> None:
    """Measure, store and show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, help="folder of compiled modules")
    parser.add_argument("--stored", action="store_true", help="measure nothing: fill in the stored table again")
    options = parser.parse_args(argv)
    stored = read()
    if not options.stored:
        require_this_commit()
        if options.package is not None:
            require_compiled(options.package)
        for trace, name in TRACES.items():
            seconds = best_parts(name, ROUNDS[trace], options.package or ROOT)
            print(f"{trace}: the longest part but the simulation is {100 * largest_share(seconds):.0f} %")
            texts = {part: f"{seconds[part]:.3f}" for part in (*PARTS, "whole")} | {MEASURED: conditions()}
            stored[f"{trace}, compiled" if options.package else trace] = pd.Series(texts)
        stored.to_csv(STORED, index_label="seconds")
    PAGE.write_text(with_parts(PAGE.read_text(encoding="utf-8"), stored), encoding="utf-8")
    print(stored.drop(index=MEASURED).to_string())


if __name__ == "__main__":
    main()
