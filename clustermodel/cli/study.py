"""``clustermodel sweep``, ``clustermodel results`` and ``clustermodel report``: running, exporting and reporting studies."""

from __future__ import annotations

import json
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from clustermodel.cli.interrupts import leaving_quietly
from clustermodel.cli.progress import progress_of_sweep
from clustermodel.errors import ExecutionError, SpecificationError, counted
from clustermodel.figures.terminal import literal, standard_error, standard_output
from clustermodel.output_files import replacing, without_formulas, write_file

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.executor import Progress
    from clustermodel.experiment.store import Store

SOME_FAILED = 1
"""Exit code of a sweep with failed runs."""
DAMAGED = 1
"""Exit code of results and reports that left out damaged runs."""
SIGNALLED = 128
"""Exit code of a sweep that a signal stopped, minus the number of the signal, as in shells."""
SHOWN = ("jobs", "mean_wait_s", "mean_bounded_slowdown", "mean_weighted_bounded_slowdown", "utilization", "kappa")
"""Columns of the summary that ``clustermodel results`` prints; the exports have all."""


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Directory of the results; created if need be.")
@click.option("--workers", type=click.IntRange(1), help="Processes of this machine; default: one for each processor.")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler, e.g. tcp://host:8786.")
@click.option(
    "--run-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Fail runs that take longer.",
)
@click.option("--traceback", "tracebacks", is_flag=True, help="Show the whole traceback of each failed run.")
@click.option("--tls-ca", type=click.Path(), help="Dask with TLS: file of the certificate authority.")
@click.option("--tls-cert", type=click.Path(), help="Dask with TLS: file of this client's certificate.")
@click.option("--tls-key", type=click.Path(), help="Dask with TLS: file of this client's key.")
def sweep(
    study: Path,
    out: Path,
    workers: int | None,
    dask: str | None,
    run_timeout: float | None,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    *,
    tracebacks: bool,
) -> int:
    r"""Run all scenarios of STUDY and keep their results in a directory.

    STUDY is a Python script that defines `study` (a Study: machines x workloads x policies x replications), or `scenarios`.
    Finished runs are kept: the same command again runs only missing and failed runs.  A failed run records its error and does
    not stop the others.

    \b
    Examples:
      clustermodel sweep study.py --out results
      clustermodel sweep study.py --out results --dask tls://host:8786 --tls-ca ca.pem --tls-cert me.pem --tls-key me.key
      clustermodel results results --csv results.csv
    """
    if dask is not None and workers is not None:
        raise SpecificationError("--workers: a Dask cluster has its own workers; give one of --workers and --dask")
    _require_packages()
    with leaving_quietly():
        from clustermodel.experiment.executor import sweep as run_sweep  # noqa: PLC0415  needs packages of an extra
        from clustermodel.experiment.store import Store  # noqa: PLC0415

    notes = standard_error()
    directory = out.absolute()  # the script may change the working directory
    last: list[Progress] = []
    try:
        with progress_of_sweep(notes) as advance:

            def report(progress: Progress) -> None:
                last[:] = [progress]
                advance(progress)

            states = run_sweep(
                study,
                directory,
                workers=workers or os.cpu_count() or 1,
                dask=dask,
                dask_options=_security(tls_ca, tls_cert, tls_key),
                run_timeout_s=run_timeout,
                progress=report,
            )
    except KeyboardInterrupt as problem:
        number = getattr(problem, "number", signal.SIGINT)  # or SIGTERM, SIGHUP
        how = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        notes.print(f"clustermodel: {how}; {_so_far(last)}, and the same command goes on from there")
        return SIGNALLED + number
    except ExecutionError as problem:
        raise ExecutionError(f"{problem}; {_so_far(last)}, and the same command goes on from there") from None
    total = last[0].total if last else sum(states.values())
    notes.print(f"{literal(out)}: {last[0].done if last else states['done']} of {counted(total, 'run')} done")
    if last and last[0].failed:
        with Store.read(directory) as store:
            _print_failures(store.failures(), notes, whole=tracebacks)
        return SOME_FAILED
    return 0


def _so_far(last: list[Progress]) -> str:
    return f"{last[0].done} of {counted(last[0].total, 'run')} are done" if last else "nothing has run"


def _security(ca: str | None, cert: str | None, key: str | None) -> dict[str, Any]:
    if not (ca or cert or key):
        return {}
    if not (ca and cert and key):
        raise SpecificationError("--tls-ca, --tls-cert, --tls-key: TLS needs all three")
    try:
        from distributed import Security  # noqa: PLC0415  an extra
    except ImportError:
        raise SpecificationError(
            "--dask: the package distributed is missing; pip install 'clustermodel[dask]', or '.[dask]' in a checkout"
        ) from None
    files = {"tls_ca_file": ca, "tls_client_cert": cert, "tls_client_key": key}
    return {"security": Security(require_encryption=True, **files)}  # type: ignore[no-untyped-call]


def _require_packages(extra: str = "study", *packages: str) -> None:
    """Refuse a command of which packages of an extra are missing."""
    for package in packages or ("filelock", "pyarrow"):
        if find_spec(package) is None:
            raise SpecificationError(
                f"the package {package} is missing, which is needed here; "
                f"pip install 'clustermodel[{extra}]', or '.[{extra}]' in a checkout"
            )


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--csv", type=click.Path(path_type=Path), help="Write the tidy table, a row per run, as CSV.")
@click.option("--parquet", type=click.Path(path_type=Path), help="Write it as Parquet.")
@click.option("--earlier", is_flag=True, help="Include runs that the study had before it was changed.")
@click.option(
    "--verify", is_flag=True, help="Recompute all keys and digests instead, and list deviations from what was written."
)
@click.option("--traceback", "tracebacks", is_flag=True, help="Show the whole traceback of each failed run.")
def results(directory: Path, csv: Path | None, parquet: Path | None, *, earlier: bool, verify: bool, tracebacks: bool) -> int:
    """Print the results of the study in DIRECTORY, a row for each run, and export them.

    The exports have the factors of each run and all fields of its summary (docs/outputs).  Damaged runs, of which a file or the
    row in the ledger is not as it was written, are named and left out; the same sweep runs them again.
    """
    _require_packages()
    with leaving_quietly():
        from clustermodel.experiment.store import Store  # noqa: PLC0415  needs packages of an extra

    out, notes = standard_output(), standard_error()
    with Store.read(directory) as store:
        if verify:
            return _verify(store, directory, notes)
        table, states, failures = store.results(earlier=earlier), store.states(), store.failures()
        left_out, damaged = 0 if earlier else store.earlier(), store.damaged()
    if len(table):
        out.print(_printed(table, str(directory)))
    notes.print(", ".join(f"{number:,} {state}" for state, number in states.items()))
    if left_out:
        which = f"{counted(left_out, 'run')} that the study had before it was changed"
        notes.print(f"left out: {which}; --earlier shows them too")
    _print_failures(failures, notes, whole=tracebacks)
    for path, write in ((csv, _write_csv), (parquet, _write_parquet)):
        if path is not None:
            write(table, path)
    return _print_damaged(damaged, directory, notes)


def _verify(store: Store, directory: Path, notes: Console) -> int:
    """Print the deviations from what was written, and the numbers of runs and files that were checked."""
    problems = store.verify()
    for problem in problems:
        notes.print(f"{literal(directory)}: {literal(problem)}")
    rows = store.rows(earlier=True)
    files = sum(len(json.loads(row.files or "{}")) for row in rows if row.state == "done")
    looked_at = f"{counted(len(rows), 'run')} and {counted(files, 'file')} are as they were written"
    notes.print(f"{literal(directory)}: {looked_at}; {counted(len(problems), 'problem')}")
    return DAMAGED if problems else 0


def _print_damaged(damaged: list[tuple[str, str]], directory: Path, notes: Console) -> int:
    """Print the damaged runs that were left out, in one line; return the exit code."""
    if not damaged:
        return 0
    shown = "; ".join(f"run {key}: {what}" if key else f"{what} are missing" for key, what in damaged[:3])
    more = f"; and {len(damaged) - 3} more" if len(damaged) > 3 else ""
    again = "the same sweep runs them again, `clustermodel results --verify` lists all"
    notes.print(f"{literal(directory)}: damaged, and left out: {literal(shown)}{more}; {again}")
    return DAMAGED


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The file; default: report.html in DIRECTORY.")
@click.option("--run", "runs", multiple=True, metavar="KEY", help="Show this run, by a prefix of its key; repeat for several.")
def report(directory: Path, out: Path | None, runs: tuple[str, ...]) -> int:
    """Write a report of the study in DIRECTORY: one HTML file that opens without a network.

    The report has sortable tables, interactive curves, a Gantt chart and the Ousterhout matrix of single runs with a slider for
    the time, and the provenance of every number.
    """
    _require_packages("report", "filelock", "pyarrow", "bokeh", "jinja2")
    with leaving_quietly():
        from clustermodel.report.html import write_report  # noqa: PLC0415  needs packages of an extra

    path = out or directory / "report.html"
    damaged = write_report(directory, path, runs=runs)
    size = path.stat().st_size / 1e6
    notes = standard_error()
    notes.print(f"{literal(path)}: {size:,.1f} MB")
    return _print_damaged(damaged, directory, notes)


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    write_file(path, without_formulas(table).to_csv(index=False, lineterminator="\n"))


def _write_parquet(table: pd.DataFrame, path: Path) -> None:
    with replacing(path) as file:
        table.to_parquet(file, index=False)


def _printed(results: pd.DataFrame, title: str) -> Table:
    table = Table(title=literal(title), title_justify="left")
    factors = [name for name in ("scenario", "machine", "workload", "policy", "replication") if name in results]
    for name in factors:
        table.add_column(name, justify="right" if name == "replication" else "left")
    for name in SHOWN:
        table.add_column(name.replace("_", "\n", 1).replace("_", " "), justify="right")
    for row in results.to_dict("records"):
        shown = ["-" if row[name] is None or row[name] != row[name] else _four_digits(row[name]) for name in SHOWN]
        table.add_row(*(literal(row[name]) for name in factors), *shown)
    return table


def _four_digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _print_failures(failures: list[tuple[str, str]], notes: Console, *, whole: bool) -> None:
    for factors, error in failures:
        last_line = error.rstrip().rpartition("\n")[2]
        notes.print(f"failed: {literal(factors)}: {literal(last_line)}")
        if whole and last_line != error.rstrip():
            notes.print("\n".join(map(literal, error.rstrip().rpartition("\n")[0].rstrip().splitlines())))
