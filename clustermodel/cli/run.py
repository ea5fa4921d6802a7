"""``clustermodel run``: policies on a trace, a workload model, a synthetic year, or scenarios of files and scripts."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from traceback import format_exception
from typing import Any, Final

import click
from rich.console import Console

from clustermodel.cli.interrupts import exit_code_of
from clustermodel.cli.options import SpeedupModel, given_options, load_workload, machine_options, machine_with, trace_options
from clustermodel.cli.progress import progress_of_run
from clustermodel.cli.streams import json_option, print_json
from clustermodel.compiled import advice
from clustermodel.errors import ClusterModelError, OutputError, PolicyError, SpecificationError, shown, visible
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import NOTHING_PLAYED, Scenario, nothing_played
from clustermodel.experiment.user_code import failure_line
from clustermodel.figures.tables import comparison_table, run_row
from clustermodel.figures.terminal import literal, print_notes, print_table, standard_error
from clustermodel.machine import Machine
from clustermodel.measure.input_notes import run_notes
from clustermodel.policies.registry import make_policy, policy_label, policy_names
from clustermodel.sim.simulation import EVENTS, FIDELITIES, Events, Fidelity
from clustermodel.workload.model import load_model, shipped_models
from clustermodel.workload.table import JobSource

_log = logging.getLogger(__name__)
_LONGEST_FILE_NAME: Final = 255
"""Bytes, on the file systems of Linux, macOS and Windows."""


def _policy_names(_context: click.Context, _option: click.Parameter, typed: str) -> list[str]:
    """Return the policies that the shell completes a word to."""
    return [name for name in policy_names() if name.startswith(typed)]


def _model_names(_context: click.Context, _option: click.Parameter, typed: str) -> list[str]:
    """Return the workload models that the shell completes a word to."""
    return [name for name in shipped_models() if name.startswith(typed)]


@click.command()
@click.argument("scenarios", metavar="[SCENARIO]...", type=click.Path(path_type=Path), nargs=-1)
@click.option(
    "--trace", type=click.Path(path_type=Path), help="SWF file, or a log of sacct, PBS or LSF; default: a synthetic year."
)
@click.option(
    "--model",
    shell_complete=_model_names,
    help=f"Draw the jobs from a workload model: {', '.join(shipped_models())}, or a file of `trace fit`.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 1_000_000), help="Number of jobs to make; default: 10,000 of a model, else 30,000."
)
@click.option("--nodes", type=int, help="Size of the machine; default: that of the trace (MaxProcs) or of the model, else 128.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    shell_complete=_policy_names,
    help="Policy as NAME or NAME:key=value,key=value; repeat to compare.  Default: fcfs, easy, conservative.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Root of all random streams.")
@json_option("Print a JSON list, an object per policy, instead of the table.")
@click.option("--jobs-csv", type=click.Path(path_type=Path), help="Directory to write POLICY.csv into, a row per job.")
@click.option("--figure", type=click.Path(path_type=Path), help="File (.png, .svg, .pdf) for a figure that compares the runs.")
@click.option(
    "--perfetto", type=click.Path(path_type=Path), help="File (.json, or .json.gz) for the runs over time, for ui.perfetto.dev."
)
@click.option(
    "--stream",
    is_flag=True,
    help="Keep no finished job in memory: the summary is made of running sums, median and 95th percentile of more than "
    "10,000 jobs within 0.1 %.",
)
@click.option(
    "--jobs-parquet",
    type=click.Path(path_type=Path),
    help="With --stream, directory to write POLICY.parquet into, a row per job.",
)
@click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    default="fast",
    show_default=True,
    help="Time sharing only: compute progress between scheduling events, or simulate every time slice on every node, slowly.",
)
@click.option(
    "--events",
    type=click.Choice(EVENTS),
    default="together",
    show_default=True,
    help="How a policy is told of several events at one instant: in one scheduling cycle, or each in a cycle of its own.",
)
@click.option(
    "--speedup",
    type=SpeedupModel(),
    default="linear",
    show_default=True,
    help="How run times depend on job sizes chosen by the policy: linear, or Downey's model.",
)
@click.option(
    "--traceback", "with_traceback", is_flag=True, help="If the code of a policy fails, print the whole traceback too."
)
@machine_options
@trace_options
def run(
    scenarios: tuple[Path, ...],
    trace: Path | None,
    model: str | None,
    jobs: int | None,
    nodes: int | None,
    policies: tuple[str, ...],
    seed: int,
    as_json: bool,
    jobs_csv: Path | None,
    figure: Path | None,
    perfetto: Path | None,
    fidelity: Fidelity,
    events: Events,
    jobs_parquet: Path | None,
    *,
    stream: bool,
    with_traceback: bool,
    **options: Any,
) -> int:
    """Simulate policies and print one table, a row per policy.

    The jobs come from --trace, or from --model, or from a synthetic year; the last two are made with --seed.  Or they come
    from SCENARIO: one or several scenario files (.toml), in which options of the policy, the machine and the run replace the
    values of the file; or a Python script that defines `scenario` (a Scenario) or `scenarios` (several).  Job slowdowns are
    bounded at 10 s; docs/outputs defines every column.

    \b
    Examples:
      clustermodel run --trace KTH-SP2-1996-2.2.swf.gz --nodes 100 --figure kth.png
      clustermodel run --trace jobs.sacct --unit cores --policy easy
      clustermodel run --policy easy --policy easy:backfill_order=shortest --policy easy:reserve_depth=4
      clustermodel run --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --jobs-csv out --json
      clustermodel run --policy R/L-NG --policy R/L-NG:width=half,widening=1 --speedup downey:0.5
      clustermodel run --model blue-pacific --scale-run-time 1.3 --estimates phi:0.5
      clustermodel run --model blue-pacific --policy bf --policy bgs --policy mbgs --context-switch 0.02
      clustermodel run --jobs 2000 --policy easy --policy pv-easy --perfetto runs.json.gz
      clustermodel run --trace CEA-Curie-2011-2.1-cln.swf.gz --policy easy --stream --jobs-parquet out
      clustermodel run scenarios/quickstart.py
      clustermodel run kth.toml --policy easy --policy conservative --nodes 128
    """
    notes = standard_error()
    specified: list[Scenario] = []
    if scenarios:
        from clustermodel.cli.scenarios import scenarios_of  # noqa: PLC0415  with all kinds of workloads

        specified = scenarios_of(scenarios, given_options(click.get_current_context()))
        specified = [replace(scenario, stream=True) if stream and not scenario.stream else scenario for scenario in specified]
        stream = any(scenario.stream for scenario in specified)
    if stream or jobs_parquet is not None:
        from clustermodel.cli.streamed import require_streamable  # noqa: PLC0415  few runs are streamed

        outputs = {"--jobs-csv": jobs_csv, "--figure": figure, "--perfetto": perfetto}
        require_streamable(jobs_parquet=jobs_parquet, stream=stream, outputs=outputs)
    if not scenarios:
        specified = _scenarios(options, trace, model, jobs, nodes, policies, seed, fidelity, events, stream=stream)
    told: set[tuple[int, str]] = set()
    _note_sources(specified, notes, told)
    labels = [scenario.label for scenario in specified]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise SpecificationError(f"policy: {twice!r} is asked for twice; names must be unique")
    files = {} if jobs_csv is None else _job_files(labels, jobs_csv, "--jobs-csv", ".csv")
    files |= {} if jobs_parquet is None else _job_files(labels, jobs_parquet, "--jobs-parquet", ".parquet")
    _require_writable({"--jobs-csv": jobs_csv, "--jobs-parquet": jobs_parquet}, figure, perfetto)
    if perfetto is not None:
        specified = [replace(scenario, history=True) for scenario in specified]  # of time slices

    results: list[Result] = []
    interrupted: str | None = None
    code = 0
    try:
        try:
            _run_all(specified, results, files, notes, told, with_traceback=with_traceback)
        except KeyboardInterrupt as problem:
            interrupted = next((unfinished.label for unfinished in specified[len(results) :]), "the last report")
            code = exit_code_of(problem)
        _write(results, figure, perfetto, notes)  # before the table: its reader may have gone (| head)
    finally:
        _show(results, notes, as_json=as_json)  # finished runs are reported, whatever stopped the others
    if interrupted is not None:
        notes.print(
            f"clustermodel: interrupted during {literal(interrupted)}; "
            f"{len(results)} of {len(specified)} runs had finished and are reported"
        )
    return code


def _scenarios(
    options: dict[str, Any],
    trace: Path | None,
    model: str | None,
    jobs: int | None,
    nodes: int | None,
    policies: Sequence[str],
    seed: int,
    fidelity: Fidelity,
    events: Events,
    *,
    stream: bool,
) -> list[Scenario]:
    """Return a scenario for each policy, on the workload and the machine specified by the options."""
    for policy in policies:
        make_policy(policy)  # a mistyped name fails before the trace is read
    machine = machine_with(Machine(nodes=1 if nodes is None else nodes), options)
    if trace is not None and (model is not None or jobs is not None):
        raise SpecificationError(
            f"--{'jobs' if model is None else 'model'}: the jobs come from --trace {trace}; give one of the two"
        )
    drawn_from = None if model is None else load_model(model)
    workload: JobSource
    if stream and trace is not None:
        from clustermodel.cli.streamed import stream_of  # noqa: PLC0415  few runs are streamed

        workload = stream_of(trace, options, given_options(click.get_current_context()))
    else:
        workload = load_workload(options, trace=trace, model=drawn_from, jobs=jobs, nodes=nodes, seed=seed)
    if nodes is None:
        if workload.machine_nodes is None:
            raise SpecificationError(f"--nodes: neither MaxProcs nor MaxNodes of {trace} is the size of a machine; give one")
        machine = replace(machine, nodes=-(-workload.machine_nodes // machine.gpus_per_node))
    return [
        Scenario(
            machine=machine,
            workload=workload,
            policy=policy,
            seed=seed,
            fidelity=fidelity,
            events=events,
            speedup=options["speedup"],
            stream=stream,
        )
        for policy in policies or ("fcfs", "easy", "conservative")
    ]


def _job_files(labels: Sequence[str], folder: Path, option: str, suffix: str) -> dict[str, Path]:
    """Return the file of job records of each run; refuse file names that are too long, or that two runs share."""
    owners: dict[str, str] = {}
    for label in labels:
        name = visible(label).replace("/", "_") + suffix
        if (length := len(name.encode())) > _LONGEST_FILE_NAME:
            raise SpecificationError(
                f"{option}: {shown(label)}: the name of its file would have {length} bytes; "
                f"at most {_LONGEST_FILE_NAME} are allowed"
            )
        if name in owners:
            raise SpecificationError(f"{option}: {owners[name]!r} and {label!r} would have one file, {folder / name}")
        owners[name] = label
    return {label: folder / name for name, label in owners.items()}


def _require_writable(folders_of_jobs: Mapping[str, Path | None], figure: Path | None, perfetto: Path | None) -> None:
    """Refuse outputs that cannot be written, before the runs."""
    for option, folder in folders_of_jobs.items():
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise OutputError(f"{option}: {folder}: cannot be made: {problem.strerror}") from None
    if perfetto is not None and perfetto.is_dir():
        raise OutputError(f"--perfetto: {perfetto}: is a directory; it must be a file")
    folders = [(option, file.parent if file else None) for option, file in (("--figure", figure), ("--perfetto", perfetto))]
    for option, path in (*folders_of_jobs.items(), *folders):
        if path is not None and not (path.is_dir() and os.access(path, os.W_OK)):
            raise OutputError(f"{option}: {path}: is not a directory that can be written to")
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise OutputError(f"--figure: {figure}: format {figure.suffix!r} is unknown; use .png, .svg or .pdf")


def _run_all(
    scenarios: Sequence[Scenario],
    results: list[Result],
    files: dict[str, Path],
    notes: Console,
    told: set[tuple[int, str]],
    *,
    with_traceback: bool,
) -> None:
    """Run the scenarios in turn; append each result to ``results`` and write its job records as soon as it is there.

    What has been left out of a streamed trace is known, and printed, after the run.
    """
    simulated_s = 0.0
    for scenario in scenarios:
        if _log.isEnabledFor(logging.DEBUG):
            from clustermodel.experiment.run_key import key_of_scenario  # noqa: PLC0415  reads streamed traces

            _log.debug("run %s has the key %s", scenario.label, key_of_scenario(scenario))
        began = perf_counter()
        with progress_of_run(scenario, notes) as advance, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=NOTHING_PLAYED)  # one note below covers all runs
            try:
                result = _finished_run(scenario, files.get(scenario.label), advance)
            except (ClusterModelError, KeyboardInterrupt):
                raise
            except BaseException as problem:  # of the policy's code
                if with_traceback:
                    notes.print("\n".join(map(literal, "".join(format_exception(problem)).splitlines())))
                policy = f"policy {policy_label(scenario.policy)}"
                hint = "" if with_traceback else "; --traceback shows all"
                raise PolicyError(f"{failure_line(problem)} ({policy}{hint})") from None
        results.append(result)
        _note_sources([scenario], notes, told)
        seconds = perf_counter() - began
        simulated_s += seconds
        notes.print(f"{literal(scenario.label)}: {result.submitted:,} jobs in {seconds:.2f} s")
    if told_now := advice(simulated_s):
        notes.print(told_now)
    if unplayed := [result.scenario.label for result in results if result.nothing_played]:
        notes.print(f"fidelity node: {literal(nothing_played(unplayed))}")


def _note_sources(scenarios: Sequence[Scenario], notes: Console, told: set[tuple[int, str]]) -> None:
    """Print what has been left out or changed of the jobs, but each line of a source once.

    Args:
        scenarios: with the sources.
        notes: where to print.
        told: the lines printed so far, by the source's identity; the new ones are added.
    """
    for source in [source for scenario in scenarios for source in scenario.sources]:
        for line in source.provenance.lines():
            if (id(source), line) not in told:
                told.add((id(source), line))
                notes.print(f"{literal(source.name)}: {literal(line)}")


def _finished_run(scenario: Scenario, file: Path | None, advance: Callable[[int], None] | None) -> Result:
    """Run a scenario and write its job records."""
    if scenario.stream:
        return replace(scenario, stream=file or scenario.stream).run(progress=advance)
    result = scenario.run(progress=advance)
    if file is not None:
        result.to_csv(file, layout="jobs")
    return result


def _write(results: Sequence[Result], figure: Path | None, perfetto: Path | None, notes: Console) -> None:
    if figure is not None and results:
        from clustermodel.figures.run import comparison  # noqa: PLC0415  matplotlib takes a second to import
        from clustermodel.figures.style import save  # noqa: PLC0415

        save(comparison(results), figure)
        notes.print(f"figure: {literal(figure)}")
    if perfetto is not None and results:
        from clustermodel.figures.perfetto import write_perfetto  # noqa: PLC0415  the same

        write_perfetto(results, perfetto)
        notes.print(f"perfetto: {literal(perfetto)}, for ui.perfetto.dev", soft_wrap=True)


def _show(results: Sequence[Result], notes: Console, *, as_json: bool) -> None:
    if as_json:
        print_json(json.dumps([run_row(result) for result in results], indent=2))
    elif results:
        table = comparison_table(results)
        print_table(table)
        print_notes((note.with_option() for note in run_notes(results)), notes)
