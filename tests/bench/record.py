"""Keep the watched ratios of a commit: measure them, draw their figure and fill their table in docs/design.md.

    python -m tests.bench.record                    measure the package of this checkout
    python -m tests.bench.record --commit 65f7d02   measure the package of an earlier commit with the benches of this one
    python -m tests.bench.record --package FOLDER   measure this commit's package as it is in a folder, compiled perhaps
    python -m tests.bench.record --stored           measure nothing: draw and fill in again

A row per ratio goes to docs/data/bench_ratios.csv, in place of earlier rows of the same commit, measured with or without
compiled modules as they were.  It takes minutes, and nothing else should run meanwhile.
"""

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustermodel.figures.style import BLUE, ORANGE, legend_below
from tests.bench.timing import ROOT
from tests.bench.watched import WATCHED, Watched
from tests.scripts import make_studies

NAME: Final = "bench_ratios"
STORED: Final = ROOT / "docs" / "data" / f"{NAME}.csv"
PICTURE: Final = ROOT / "docs" / "figures" / f"{NAME}.png"
PAGE: Final = ROOT / "docs" / "design.md"
SPEED_PAGE: Final = ROOT / "CONTRIBUTING.md"
COLUMNS: Final = ["commit", "number", "date", "kind", "ratio", "value"]
"""The number is that of the commits in its history, with itself: branches are in order, and commits of one second."""
NAMES: Final = [one.name for one in WATCHED]
KINDS: Final = {"pure": (BLUE, "o"), "compiled": (ORANGE, "s")}
"""Colour and marker by kind of modules."""
BOUNDS: Final[dict[str, list[object]]] = {
    "pure": [one.at_most for one in WATCHED],
    "compiled": [one.compiled_at_most for one in WATCHED],
}
"""Of all ratios, by kind of modules."""
MEASURED: Final = ("clustermodel", "tests/bench", "tests/shared_data.py")
"""What the ratios depend on."""
ROUNDS: Final = 4
PANELS: Final = 3
"""In a row of the figure."""
LABELS: Final = 12
"""Commits that are named below the lowest panels, at most."""


def git(*arguments: str) -> bytes:
    """Return what git prints.

    Raises:
        SystemExit: git fails; with its last line.
    """
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {arguments[0]}: {done.stderr.decode().strip().splitlines()[-1]}")
    return done.stdout


def package_commit() -> str:
    """Return the short hash of the last commit that changed the package."""
    return git("log", "-1", "--abbrev=7", "--format=%h", "--", "clustermodel").decode().strip()


def conditions() -> str:
    """Return where and when something is measured: date, processor, Python and the commit of the package."""
    cpus = [line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = f"{len(cpus)} x {cpus[0].strip()}" if cpus else platform.machine()
    return f"{datetime.now(UTC):%Y-%m-%d}, {processor}, CPython {platform.python_version()}, commit {package_commit()}"


def changed() -> list[str]:
    """Return the files that differ from the commit, of those that ratios depend on."""
    return [line[3:] for line in git("status", "--porcelain", "--", *MEASURED).decode().splitlines()]


class Commit(NamedTuple):
    """A commit that is measured."""

    name: str
    """Its short hash."""
    number: int
    date: str
    """In UTC."""


def commit_of(text: str) -> Commit:
    """Return the commit of a hash or another name."""
    shown = git("rev-parse", "--verify", "--short=7", f"{text}^{{commit}}").decode().strip()
    date = pd.Timestamp(git("show", "-s", "--format=%cI", shown).decode().strip())
    number = int(git("rev-list", "--count", shown))
    return Commit(shown, number, date.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%SZ"))


def unpack(commit: str, target: Path) -> None:
    """Write the package of a commit to a folder; nothing else of the commit."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "clustermodel"))) as archive:
        archive.extractall(target, filter="data")


def differing(package: Path) -> str | None:
    """Return the first module of this checkout whose text in a folder of packages is another, or is missing there."""
    for path in sorted((ROOT / "clustermodel").rglob("*.py")):
        name = path.relative_to(ROOT)
        if not (package / name).is_file() or (package / name).read_bytes() != path.read_bytes():
            return name.as_posix()
    return None


def require_this_commit(package: Path | None = None) -> None:
    """Refuse to measure changes that are not committed, or a folder that has another package than this checkout.

    Raises:
        SystemExit: with the first file that differs.
    """
    for file in changed():
        raise SystemExit(f"{file} differs from the commit: commit it first")
    if package is not None and (module := differing(package)) is not None:
        raise SystemExit(f"{package}: {module} is missing or differs from this checkout")


def require_compiled(package: Path) -> None:
    """Refuse to measure a folder as this commit's package with compiled modules if it is not.

    Raises:
        SystemExit: in one line.
    """
    require_this_commit(package)
    command = [
        sys.executable,
        "-P",
        "-c",
        "from clustermodel.sim.compiled import is_compiled; raise SystemExit(not is_compiled())",
    ]
    if subprocess.run(command, env={**os.environ, "PYTHONPATH": str(package.resolve())}, check=False).returncode:
        raise SystemExit(f"{package}: no module is compiled")


def measure(package: Path, rounds: int, names: Sequence[str]) -> tuple[str, dict[str, float | str]]:
    """Return the kind of the modules in a folder of packages, and each ratio or why there is none, by name."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    command = [sys.executable, "-P", "-m", "tests.bench.watched", str(rounds), *names]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"nothing was measured: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return "compiled" if found["compiled"] else "pure", found["ratios"]


def with_ratios(table: pd.DataFrame, commit: Commit, kind: str, ratios: Mapping[str, float | str]) -> pd.DataFrame:
    """Return a table with the ratios of a commit, in the order of commits, in place of those that it had for the same kind.

    One that could not be measured has no row.
    """
    of_commit = (table["commit"] == commit.name) & (table["kind"] == kind)
    earlier = table[~(of_commit & table["ratio"].isin(ratios))]
    rows = [(*commit, kind, name, round(value, 4)) for name, value in ratios.items() if not isinstance(value, str)]
    new = pd.DataFrame(rows, columns=COLUMNS)
    both = pd.concat([earlier, new]) if len(earlier) else new
    return both.sort_values(
        ["number", "commit", "kind", "ratio"],
        key=lambda column: column.map(NAMES.index) if column.name == "ratio" else column,
        ignore_index=True,
    )


def read(path: Path) -> pd.DataFrame:
    """Return a stored table, empty where there is no file; ratios that are watched no longer are left out.

    Hashes are text, also those that look like a number, as 54e3372 does.
    """
    table = pd.read_csv(path, dtype={"commit": str}) if path.exists() else pd.DataFrame(columns=COLUMNS)
    return table[table["ratio"].isin(NAMES)]


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the page: each ratio's bounds, and its last value of each kind."""
    found: dict[str, list[object]] = {"CPU time": NAMES}
    for kind, bounds in BOUNDS.items():
        found[f"bound, {kind}"] = bounds
        for commit in table.loc[table["kind"] == kind, "commit"].drop_duplicates().tolist()[-1:]:
            values = table[(table["commit"] == commit) & (table["kind"] == kind)].set_index("ratio")["value"]
            found[f"{commit}, {kind}"] = [float(f"{values.get(one.name, float('nan')):.3g}") for one in WATCHED]
    return pd.DataFrame(found)


def with_summary(page: str, table: pd.DataFrame) -> str:
    """Return the text of the page with the table of stored ratios."""
    made = make_studies()
    text: str = made.with_tables(page, NAME, made.markdown_table(summary(table), "---:"))
    return text


def speed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of speeds: policies on KTH as multiples of the floor, the last commit's of each kind."""
    latest = summary(table).set_index("CPU time")
    columns = {kind: latest.columns[[name.endswith(f", {kind}") for name in latest.columns]][-1] for kind in KINDS}
    policies = [name for name in NAMES if name.endswith(" on KTH")]
    found = {kind: latest.loc[policies, column].tolist() for kind, column in columns.items()}
    return pd.DataFrame({"policy": [name.removesuffix(" on KTH") for name in policies], **found})


def with_speed(page: str, table: pd.DataFrame) -> str:
    """Return the text of a page with the table of speeds."""
    made = make_studies()
    text: str = made.with_tables(page, "speed", made.markdown_table(speed(table), "---:"))
    return text


def draw(table: pd.DataFrame) -> Figure:
    """Return the figure: a panel per ratio, commits from left to right, the bound as a line."""
    commits = table["commit"].drop_duplicates().tolist()
    rows = -(-len(WATCHED) // PANELS)
    figure = Figure(figsize=(9, 2.1 * rows), layout="constrained")
    panels: list[Axes] = list(figure.subplots(rows, PANELS, squeeze=False).flat)
    handles: dict[str, Any] = {}
    for number, (axes, one) in enumerate(zip(panels, WATCHED, strict=False)):
        handles |= draw_panel(axes, one, table[table["ratio"] == one.name], commits)
        axes.tick_params(labelsize=7, labelbottom=number >= len(WATCHED) - PANELS)
    for axes in panels[len(WATCHED) :]:
        axes.remove()
    figure.supylabel("ratio of CPU times", fontsize=9)
    legend_below(figure, {name: handles[name] for name in (*KINDS, *(f"bound, {kind}" for kind in KINDS)) if name in handles})
    return figure


def draw_panel(axes: Axes, watched: Watched, values: pd.DataFrame, commits: Sequence[str]) -> dict[str, Any]:
    """Draw a ratio at each commit; return the artists by name."""
    handles: dict[str, Any] = {}
    for (kind, (colour, marker)), at_most in zip(KINDS.items(), (watched.at_most, watched.compiled_at_most), strict=True):
        of_kind = values[values["kind"] == kind]
        if len(of_kind):
            handles[f"bound, {kind}"] = axes.axhline(at_most, color=colour, linestyle="--", linewidth=1)
            places = of_kind["commit"].map(commits.index)
            handles[kind] = axes.plot(places, of_kind["value"], color=colour, marker=marker, markersize=4, linewidth=1.2)[0]
    axes.set_title(watched.name, fontsize=8)
    axes.set_ylim(0, 1.1 * max([watched.at_most, *values["value"]]))
    axes.set_xlim(-0.5, len(commits) - 0.5)
    named = range(len(commits) - 1, -1, -len(commits) // LABELS)  # the last one in any case
    axes.set_xticks(list(named), [commits[place] for place in named], rotation=60, ha="right", rotation_mode="anchor")
    axes.grid(axis="y", linewidth=0.3)
    return handles


def show(table: pd.DataFrame) -> None:
    """Draw the figure, and fill the tables of the two pages."""
    draw(table).savefig(PICTURE, dpi=110)
    SPEED_PAGE.write_text(with_speed(SPEED_PAGE.read_text(), table))
    PAGE.write_text(with_summary(PAGE.read_text(), table))


def record(commit: Commit, package: Path, rounds: int, names: Sequence[str], *, is_earlier: bool) -> None:
    """Measure a package and store its ratios.

    Raises:
        SystemExit: a ratio could not be measured, and the package is that of this checkout.
    """
    kind, ratios = measure(package, rounds, names)
    for name, value in ratios.items():
        print(f"{commit.name} {kind}: {name}: {value if isinstance(value, str) else format(value, '.3g')}")
        if isinstance(value, str) and not is_earlier:
            raise SystemExit(f"{name} could not be measured")
    with_ratios(read(STORED), commit, kind, ratios).to_csv(STORED, index=False)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, store and show what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--commit", nargs="+", default=[], help="earlier commits whose packages are measured")
    what.add_argument("--package", type=Path, help="folder that has this commit's package (default: this checkout)")
    what.add_argument("--stored", action="store_true", help="measure nothing: draw and fill in the stored ratios again")
    parser.add_argument("--ratio", nargs="+", choices=NAMES, metavar="NAME", help="measure these ratios (default: all)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"in which sides take turns (default: {ROUNDS})")
    options = parser.parse_args(argv)
    names = options.ratio or NAMES
    if not options.stored:
        require_this_commit(options.package)
    for earlier in options.commit:
        commit = commit_of(earlier)
        with tempfile.TemporaryDirectory() as folder:
            unpack(commit.name, Path(folder))
            record(commit, Path(folder), options.rounds, names, is_earlier=True)
    if not options.commit and not options.stored:
        record(commit_of("HEAD"), (options.package or ROOT).resolve(), options.rounds, names, is_earlier=False)
    show(read(STORED))


if __name__ == "__main__":
    main()
