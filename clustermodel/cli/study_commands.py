"""``clustermodel sweep``, ``validate``, ``results`` and ``report``: running, comparing, exporting and reporting studies."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

import clustermodel.cli.options as opt
from clustermodel.cli.interrupts import INTERRUPTED, exit_code_of, leaving_quietly
from clustermodel.cli.options import FILE, option, option_group
from clustermodel.cli.standard_streams import json_option, print_json, progress_of_sweep
from clustermodel.errors import ExecutionError, SpecificationError, counted, did_you_mean, missing_package, quoted
from clustermodel.experiment.settings import settings_of
from clustermodel.figures.tables import OVERHEADS, frame_table, means_table, notes_of_runs, study_notes, trials_table
from clustermodel.figures.terminal import literal, print_notes, print_table, standard_error, standard_output
from clustermodel.measure.metrics import ENERGY
from clustermodel.sim.compiled import advice
from clustermodel.text.files import replacing, without_formulas, write_file

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.executor import Progress
    from clustermodel.experiment.study import Experiment
    from clustermodel.experiment.study_table import StudyTable
    from clustermodel.experiment.worker import Origin

FAILED: Final = 1  # exit code of failed runs, of validations that do not agree everywhere, of results without damaged runs
_RUN_OPTIONS: Final = option_group(
    "Options",
    option("--out", "Directory of the results; created if need be.", FILE, required=True),
    option("--set settings", "Set a parameter of the script's function `study`, or with a dotted name a field of all "
           "scenarios: machine.time_slicing.quantum_s=60; repeat.", multiple=True, metavar="NAME=VALUE"),
    option("--workers", "Processes of this machine; default: one for each processor that it may use.", click.IntRange(1)),
    option("--dask", "Run on the Dask cluster with this scheduler, e.g. tcp://host:8786.", metavar="ADDRESS"),
    option("--shard", "Run part I of N, as a task of a job array.", metavar="I/N"),
)  # fmt: skip
_TRACEBACK: Final = option("--traceback tracebacks", "Show the whole traceback of each failed run.", is_flag=True)


@click.command()
@click.argument("study", type=FILE)
@_RUN_OPTIONS
@opt.SITE
@opt.ORDER
@opt.RESERVATION
@opt.MALLEABLE
@opt.energy_options
@option("--run-timeout run_timeout_s", "Fail runs that take longer.", click.FloatRange(0, min_open=True), metavar="SECONDS")
@_TRACEBACK
@option("--tls-ca tls_ca_file", "Dask with TLS: file of the certificate authority.", click.Path())
@option("--tls-cert tls_client_cert", "Dask with TLS: file of this client's certificate.", click.Path())
@option("--tls-key tls_client_key", "Dask with TLS: file of this client's key.", click.Path())
def sweep(
    study: Path,
    out: Path,
    settings: tuple[str, ...],
    site: Path | None,
    order: str | None,
    reservations: tuple[str, ...],
    malleable: tuple[str, ...],
    run_timeout_s: float | None,
    *,
    tracebacks: bool,
    **options: Any,
) -> int:
    """Run all trials of STUDY and keep their results in a directory.

    STUDY is a Python script that defines `study`: a Study, another experiment such as a crossover, or a function that returns
    one, whose parameters --set changes; or it defines `scenarios`.  --set with a dotted name changes a field of all scenarios.
    Finished runs are kept: the same command again runs only missing and failed runs.  A failed run records its error and does
    not stop the others.

    \b
    Examples:
      clustermodel sweep study.py --out results
      clustermodel sweep study.py --out results --set machine.time_slicing.mpl=3
      clustermodel sweep study.py --out results --site site.toml
      clustermodel sweep study.py --out results --power busy=350,idle=120
      clustermodel sweep study.py --out results --shard $SLURM_ARRAY_TASK_ID/100
      clustermodel sweep study.py --out results --dask tcp://host:8786
      clustermodel results results --csv results.csv
    """
    energy = opt.energy_settings(options)
    chosen = _executor_options(**options) | {"run_timeout_s": run_timeout_s}
    with leaving_quietly():
        from clustermodel.experiment.script import origin_of_script  # noqa: PLC0415  with NumPy and SimPy

    rules = opt.site_of({"site": site, "order": order, "reservations": reservations, "malleable": malleable})
    given = opt.site_settings(rules) | energy | settings_of(settings)
    code, _, _ = _run_experiment(origin_of_script(study, given), out, chosen, whole_tracebacks=tracebacks)
    return code


def _executor_options(workers: int | None, dask: str | None, shard: str | None, **tls: str | None) -> dict[str, Any]:
    """Return the options of the executor, by name."""
    if dask is not None and workers is not None:
        raise SpecificationError("--workers: a Dask cluster has its own workers; give one of --workers and --dask")
    number, _, count = ("1/1" if shard is None else shard).partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise SpecificationError(f"--shard: {shard!r} is not allowed; it must be I/N with 1 <= I <= N, for example 3/10")
    options = {"workers": workers, "dask": dask, "shard": None if shard is None else (int(number), int(count))}
    if not any(tls.values()):
        return options
    if not all(tls.values()):
        raise SpecificationError("--tls-ca, --tls-cert, --tls-key: TLS needs all three")
    try:
        from distributed import Security  # noqa: PLC0415  an extra
    except ImportError:
        raise SpecificationError(missing_package("--dask", "distributed", "dask")) from None
    return options | {"dask_options": {"security": Security(require_encryption=True, **tls)}}


def _run_experiment(
    origin: Origin, out: Path, options: Mapping[str, Any], *, whole_tracebacks: bool
) -> tuple[int, Experiment[Any] | None, StudyTable | None]:
    """Run an experiment, show its tables, figures and failures, and return the exit code as far as runs decide it.

    Experiment and table are ``None`` if a signal stopped it.
    """
    with leaving_quietly():
        from clustermodel.experiment.executor import Options, run_trials  # noqa: PLC0415  the same

    notes = standard_error()
    directory = out.absolute()  # the script may change the working directory
    last: Progress | None = None
    remarks: list[str] = []
    try:
        with progress_of_sweep(notes) as advance:

            def report(progress: Progress) -> None:
                nonlocal last
                last = progress
                advance(progress)

            design, table = run_trials(origin, directory, Options(**options, progress=report, note=remarks.append))
    except (KeyboardInterrupt, ExecutionError) as problem:
        so_far = f"{last.done} of {counted(last.total, 'run')} are done" if last else "nothing has run"
        so_far += ", and the same command goes on from there"
        if isinstance(problem, ExecutionError):
            raise ExecutionError(f"{problem}; {so_far}") from None
        code = exit_code_of(problem)
        how = "interrupted" if code == INTERRUPTED else f"stopped by {signal.Signals(code - 128).name}"
        notes.print(f"clustermodel: {how}; {so_far}")
        return code, None, None
    done, total = (last.done, last.total) if last else (len(table), len(table) + len(table.failures))
    took = f"; {table.spent}" if table.spent is not None and table.spent.in_runs_s else ""
    notes.print(f"{literal(out)}: {done} of {counted(total, 'run')} done{took}")
    simulated_s = 0.0 if table.spent is None else table.spent.in_runs_s
    for remark in (*remarks, *filter(None, [advice(simulated_s)])):
        notes.print(literal(remark))
    print_notes(notes_of_runs(table), notes)
    if options["shard"] is None:
        _show_exhibits(design, table, directory)
    _print_failures(table.failures, notes, whole=whole_tracebacks)
    return FAILED if table.failures else 0, design, table


def _show_exhibits(design: Experiment[Any], table: StudyTable, directory: Path) -> None:
    """Print the tables of an experiment, and write them and its figures below the directory of its results."""
    from clustermodel.experiment.exhibits import exhibits_of, write_exhibits  # noqa: PLC0415

    if not len(table):
        return
    notes, concluded = standard_error(), None
    try:
        concluded = design.conclude(table)
    except SpecificationError as problem:  # for example because runs have failed
        notes.print(literal(problem))
    exhibits = exhibits_of(design, table)
    folder = write_exhibits(exhibits, directory) if exhibits.tables or exhibits.figures else None
    if concluded is not None and concluded is not table and str(concluded):
        standard_output().print(literal(str(concluded)))
    for title, frame in exhibits.tables.items():
        print_table(frame_table(frame, title), titled=True)
    for line in exhibits.problems:
        notes.print(literal(line))
    if folder is not None:
        counts = f"{counted(len(exhibits.tables), 'table')}, {counted(len(exhibits.figures), 'figure')}"
        notes.print(f"{literal(folder)}: {counts}")


@click.command()
@click.argument("studies", type=FILE, nargs=-1, required=True)
@_RUN_OPTIONS
@option("--stored", "Run nothing: compare with the finished runs, those of all shards.", is_flag=True)
def validate(studies: tuple[Path, ...], out: Path, settings: tuple[str, ...], *, stored: bool, **options: Any) -> int:
    """Compare the formulas of STUDIES with simulated means.

    Each of STUDIES is a Python script that defines `study`: what `validate` of the package returns, or a function that
    returns it, whose parameters --set changes.  At each point of its factors the formula agrees, differs, or is undecided:
    then the replications that are missing for a verdict are given.  Finished runs are kept: the same command again runs
    only missing and failed runs.  With several STUDIES each has a folder in the directory, with the name of its script.

    Exit code: 0 if the formula agrees at every point, otherwise 1; 0 after a shard, which has no verdict, unless runs failed.

    \b
    Examples:
      clustermodel validate queueing.py --out results --set jobs=1000 --shard 3/10
      clustermodel validate scenarios/validation/*.py --out results
      clustermodel validate queueing.py --out results --stored
    """
    chosen = _executor_options(**options)
    if stored and any(options.values()):
        raise SpecificationError("--stored: nothing is run; give it without --workers, --dask and --shard")
    folders = {study: out if len(studies) == 1 else out / study.stem for study in studies}
    if len(set(folders.values())) < len(studies):
        raise SpecificationError("STUDIES: two scripts of one name are not allowed; validate them in different directories")
    with leaving_quietly():  # needs packages of an extra
        from clustermodel.experiment.script import read_script  # noqa: PLC0415
        from clustermodel.experiment.validate import Validation, load_validation  # noqa: PLC0415
        from clustermodel.experiment.worker import Origin  # noqa: PLC0415

    given, worst = settings_of(settings), 0
    for study, folder in folders.items():
        code, text = 0, read_script(study)
        design: Experiment[Any] | None
        table: StudyTable | None
        if stored:
            design = load_validation(study, text, given)
            table = design.stored_table(folder)
            _show_exhibits(design, table, folder)
        else:
            origin = Origin(script=str(study), text=text, settings=given, load=load_validation)
            code, design, table = _run_experiment(origin, folder, chosen, whole_tracebacks=False)
        if table is not None and chosen["shard"] is None:
            assert isinstance(design, Validation)
            code = max(code, 0 if design.conclude(table).holds else FAILED)
        worst = max(worst, code)
        if table is None:  # stopped by a signal
            break
    return worst


@click.command()
@click.argument("directory", type=FILE)
@option("--measure measures", "Print the mean of this column; repeat.", multiple=True, metavar="COLUMN")
@option("--runs each", "Print a row for each run instead of means over replications.", is_flag=True)
@json_option("Print JSON: means and half-widths, or with --runs the whole table.")
@option("--csv", "Write the tidy table, a row per run, as CSV.", FILE)
@option("--parquet", "Write it as Parquet.", FILE)
@option("--earlier", "Include runs that the study had before it was changed.", is_flag=True)
@option("--verify", "Recompute all keys and digests instead, and list deviations from what was written.", is_flag=True)
@_TRACEBACK
def results(
    directory: Path, measures: tuple[str, ...], csv: Path | None, parquet: Path | None,
    *, each: bool, as_json: bool, earlier: bool, verify: bool, tracebacks: bool,
) -> int:  # fmt: skip
    """Print the results of the study in DIRECTORY: means over replications with their 95 % intervals, and export them.

    JSON has a record for each point: its factors, for each measure the mean and half the width of its interval (MEASURE_half,
    null for a single replication), and the number of replications.  With --runs it has a record for each trial, all columns.

    The exports have the factors of each run, all fields of its summary, all accounts of its ledger and the study's own measures
    (docs/outputs).  Damaged runs are named and left out; the same sweep runs them again.
    """
    with leaving_quietly():
        from clustermodel.experiment.store import Store  # noqa: PLC0415  with NumPy and SimPy

    notes = standard_error()
    with Store.read(directory) as store:
        if verify:
            problems, (runs, files) = store.verify(), store.number_of_files()
            for problem in problems:
                notes.print(f"{literal(directory)}: {literal(problem)}")
            looked_at = f"{counted(runs, 'run')} and {counted(files, 'file')} are as they were written"
            notes.print(f"{literal(directory)}: {looked_at}; {counted(len(problems), 'problem')}")
            return FAILED if problems else 0
        frame, table, states, failures = store.results(earlier=earlier), store.table(), store.states(), store.failures()
        left_out, damaged, absent = 0 if earlier else len(store.earlier()), store.damaged(), store.missing_shards()
    wanted = list(measures) or [name for name in store.study.shown if name in frame]
    extra = [] if measures else [name for name in (*OVERHEADS, *ENERGY) if name in frame and name not in wanted]
    if each or earlier:
        if unknown := [name for name in measures if name not in frame]:
            near = did_you_mean(unknown[0], map(str, frame.columns))
            raise SpecificationError(f"--measure: there is no column {quoted(unknown[0])}{near}")
        keys = [name for name in (*table.factors, "replication") if name in frame]
        shown = trials_table(frame, str(directory), keys, [name for name in wanted if name not in keys], extra)
    elif len(frame):
        shown = means_table(table, str(directory), wanted, extra)
    if csv is not None:  # before the table: its reader may have gone (| head)
        write_file(csv, without_formulas(frame).to_csv(index=False, lineterminator="\n"))
    if parquet is not None:
        with replacing(parquet) as file:
            frame.to_parquet(file, index=False)
    if as_json:
        whole = frame if each or earlier else table.means(*wanted, *extra)
        print_json(_records(whole))
    elif len(frame):
        print_table(shown)
        print_notes(study_notes(table), notes)
    notes.print(", ".join(f"{number:,} {state}" for state, number in states.items()))
    if absent:
        names = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        notes.print(f"{literal(directory)}: without the runs of {counted(len(absent), 'shard')} not there: {names}")
    if left_out:
        notes.print(f"left out: {counted(left_out, 'run')} that the study had before it was changed; --earlier shows them too")
    _print_failures(failures, notes, whole=tracebacks)
    return _print_damaged(damaged, directory, notes)


def _records(frame: pd.DataFrame) -> str:
    """Return the rows of a table as JSON, numbers with all their digits; what is missing is null."""
    columns = {str(name): [_value(each) for each in frame[name].tolist()] for name in frame}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps(rows, separators=(",", ":"), allow_nan=False)


def _value(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and not isfinite(value)) else value


@click.command()
@click.argument("directory", type=FILE)
@option("--out", "The file; default: report.html in DIRECTORY.", FILE)
@option("--run runs", "Show this run, by a prefix of its key; repeat for several.", multiple=True, metavar="KEY")
def report(directory: Path, out: Path | None, runs: tuple[str, ...]) -> int:
    """Write a report of the study in DIRECTORY: one HTML file that opens without a network.

    The report has the study's text, tables and figures, sortable tables with paired differences, capacity by account, curves,
    heat maps, Gantt charts and Ousterhout matrices of two runs on one time slider, and the provenance of every number.
    """
    with leaving_quietly():
        from clustermodel.report.write import write_report  # noqa: PLC0415  with pandas and pyarrow

    path, notes = out or directory / "report.html", standard_error()
    damaged = write_report(directory, path, runs=runs)
    notes.print(f"{literal(path)}: {path.stat().st_size / 1e6:,.1f} MB")
    return _print_damaged(damaged, directory, notes)


def _print_damaged(damaged: list[tuple[str, str]], directory: Path, notes: Console) -> int:
    """Print the damaged runs that were left out, in one line; return the exit code."""
    if damaged:
        shown = "; ".join(f"run {key}: {what}" if key else f"{what} are missing" for key, what in damaged[:3])
        more = f"; and {len(damaged) - 3} more" if len(damaged) > 3 else ""
        again = "the same sweep runs them again, `clustermodel results --verify` lists all"
        notes.print(f"{literal(directory)}: damaged, and left out: {literal(shown)}{more}; {again}")
    return FAILED if damaged else 0


def _print_failures(failures: Sequence[tuple[str, str]], notes: Console, *, whole: bool) -> None:
    """Print a line for each distinct error, with the first run that had it and the number of the others."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for factors, error in failures:
        alike.setdefault(error.rstrip().rpartition("\n")[2], []).append((factors, error.rstrip()))
    for last_line, runs in alike.items():
        factors, error = runs[0]
        others = f" and {counted(len(runs) - 1, 'other run')}" if len(runs) > 1 else ""
        notes.print(f"failed: {literal(factors)}{others}: {literal(last_line)}")
        if whole and last_line != error:
            notes.print("\n".join(map(literal, error.rpartition("\n")[0].rstrip().splitlines())))
