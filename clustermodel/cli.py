"""The command line: run policies on a trace, a workload model, a synthetic year or a scenario script; look into traces.

Every error a user can cause is one line on standard error and a non-zero exit: 2 for bad input, 1 for output that cannot
be written and for policies that fail, 130 for Ctrl-C.  Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from traceback import format_exception
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from clustermodel.cli_studies import report, results, sweep
from clustermodel.errors import (
    ClusterModelError,
    ExecutionError,
    OutputError,
    PolicyError,
    SpecificationError,
    shown,
    visible,
)
from clustermodel.interrupts import INTERRUPTED, OneInterrupt
from clustermodel.machine import LARGEST_WHOLE, Checkpointing, ContextSwitch, Machine, TimeSlicing
from clustermodel.output_files import write_file
from clustermodel.policies import make_policy, policy_label, policy_names, policy_parameters, policy_summary
from clustermodel.report.tables import comparison_table, percentile_table, trace_facts
from clustermodel.sim.simulation import FIDELITIES, Fidelity
from clustermodel.speedup import LINEAR, DowneySpeedup, Speedup
from clustermodel.study.scenario import NOTHING_PLAYED, Result, Scenario
from clustermodel.study.script import failure_line, read_script, run_script
from clustermodel.study.sweep import Study
from clustermodel.terminal import guarded_streams, literal, standard_error, standard_output
from clustermodel.workload.model import MODEL_JOBS, WorkloadModel, fit_model, load_model, shipped_models
from clustermodel.workload.swf import read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale

BAD_INPUT, BAD_OUTPUT, FAILED = 2, 1, 1
_LONGEST_FILE_NAME = 255  # bytes, on the file systems of Linux, macOS and Windows
_MACHINE_SIZE = click.IntRange(1, LARGEST_WHOLE)
Command = TypeVar("Command", bound=Callable[..., Any])


class Interval(click.ParamType[tuple[float, float]]):
    """``LOW:HIGH``, either side may be empty."""

    name = "LOW:HIGH"

    def __init__(self, number: type[int] | type[float], *, least: float) -> None:
        self._number = number
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Parse the text."""
        low, colon, high = str(value).partition(":")
        try:
            if not colon:
                raise ValueError
            pair = (self._number(low or self._least), self._number(high or 10**12))
        except ValueError:
            self.fail(f"{value!r} is not LOW:HIGH, two numbers of which either may be left out", param, ctx)
        return pair


class Estimates(click.ParamType[str | float]):
    """``user``, ``run-time`` or ``phi:VALUE``; the value of phi alone for the last."""

    name = "user|run-time|phi:VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """Parse the text."""
        if value in ("user", "run-time"):
            return str(value)
        model, _, phi = str(value).partition(":")
        try:
            if model != "phi" or not 0 <= float(phi) <= 1:
                raise ValueError
        except ValueError:
            self.fail(f"{value!r} is not 'user', 'run-time' or 'phi:VALUE' with a value from 0 to 1, as phi:0.2", param, ctx)
        return float(phi)


class SpeedupModel(click.ParamType[Speedup]):
    """``linear`` or ``downey:SIGMA``."""

    name = "linear|downey:SIGMA"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Speedup:
        """Parse the text."""
        model, _, sigma = str(value).partition(":")
        if value == "linear":
            return LINEAR
        try:
            if model != "downey":
                raise ValueError
            downey = DowneySpeedup(sigma=float(sigma))
        except (ValueError, SpecificationError):
            self.fail(f"{value!r} is not 'linear' or 'downey:SIGMA' with a number >= 0, as downey:1", param, ctx)
        return downey


def trace_options(command: Command) -> Command:
    """Add the options that say how a trace is read and changed."""
    for option in reversed(
        (
            click.option(
                "--processors-from",
                type=click.Choice(["allocated", "requested"]),
                default="allocated",
                show_default=True,
                help="SWF field to take the number of processors from; where it is missing the other one is used.",
            ),
            click.option(
                "--estimates",
                type=Estimates(),
                default="user",
                show_default=True,
                help="Use the users' estimates (a model has none: phi:0.2), or replace each by the run time, or by the phi "
                "model of overestimation, in which a fraction VALUE is exact.",
            ),
            click.option("--lenient", is_flag=True, help="Count and skip malformed lines instead of stopping at one."),
            click.option("--window", type=Interval(float, least=0), help="Keep jobs submitted in LOW <= t < HIGH seconds."),
            click.option("--size", type=Interval(int, least=1), help="Keep jobs of LOW to HIGH processors."),
            click.option("--status", type=int, multiple=True, help="Keep jobs of this SWF status; repeat for several."),
            click.option("--user", type=int, multiple=True, help="Keep jobs of this user number; repeat for several."),
            click.option("--scale-interarrival", type=float, default=1.0, help="Multiply the time between submissions."),
            click.option("--scale-run-time", type=float, default=1.0, help="Multiply run times and estimates."),
            click.option("--scale-size", type=float, default=1.0, help="Multiply numbers of processors."),
        )
    ):
        command = option(command)
    return command


def machine_options(command: Command) -> Command:
    """Add the options that describe a machine beyond its size; the defaults are those of the specifications."""
    slicing, store = TimeSlicing(), Checkpointing()
    for option in reversed(
        (
            click.option(
                "--kill-at-estimate/--no-kill-at-estimate",
                default=True,
                show_default=True,
                help="End a job that reaches its estimate, or let it run on.",
            ),
            click.option(
                "--quantum",
                type=float,
                default=slicing.quantum_s,
                show_default=True,
                help="Length of a time slice, seconds, for policies that share nodes in time.",
            ),
            click.option(
                "--mpl", type=int, default=slicing.mpl, show_default=True, help="Multiprogramming level: most gangs on a node."
            ),
            click.option(
                "--context-switch",
                type=float,
                default=0.0,
                show_default=True,
                help="Cost of a context switch as a fraction of the time slice.",
            ),
            click.option(
                "--charge",
                type=click.Choice(["on-change", "every-slice"]),
                default="on-change",
                show_default=True,
                help="Whether nodes pay for a context switch when their task changes, or in every slice.",
            ),
            click.option(
                "--checkpoint",
                type=float,
                default=store.checkpoint_s,
                show_default=True,
                help="Time to checkpoint a gang, seconds.",
            ),
            click.option(
                "--restart", type=float, default=store.restart_s, show_default=True, help="Time to restart a gang, seconds."
            ),
            click.option(
                "--max-migrating-tasks",
                type=int,
                help="Most tasks that migrate in a time slice, or are checkpointed at a time (Q); no limit by default.",
            ),
            click.option(
                "--suspended-per-node", type=int, help="Most suspended tasks in a node's memory; no limit by default."
            ),
        )
    ):
        command = option(command)
    return command


def _machine(options: dict[str, Any], nodes: int) -> Machine:
    return Machine(
        nodes=nodes,
        kill_at_estimate=options["kill_at_estimate"],
        time_slicing=TimeSlicing(quantum_s=options["quantum"], mpl=options["mpl"]),
        context_switch=ContextSwitch(fraction=options["context_switch"], charge=options["charge"]),
        checkpointing=Checkpointing(
            checkpoint_s=options["checkpoint"],
            restart_s=options["restart"],
            max_tasks_per_slice=options["max_migrating_tasks"],
        ),
        suspended_per_node=options["suspended_per_node"],
    )


def _load_workload(
    options: dict[str, Any],
    *,
    trace: Path | None = None,
    model: WorkloadModel | None = None,
    jobs: int | None = None,
    nodes: int | None = None,
    seed: int,
) -> Workload:
    """Return the jobs of the trace, or of the model, or of a synthetic year; filtered, rescaled, with the estimates wanted."""
    keep = JobFilter(
        window_s=options["window"],
        nodes=options["size"],
        statuses=frozenset(options["status"]) or None,
        users=frozenset(options["user"]) or None,
    )
    run_time, estimates = options["scale_run_time"], options["estimates"]
    scale = LoadScale(interarrival=options["scale_interarrival"], run_time=run_time, size=options["scale_size"])
    if trace is not None:
        workload = read_swf(
            trace,
            processors_from=options["processors_from"],
            use_estimates=estimates == "user",
            keep=None if keep == JobFilter() else keep,
            scale=None if scale == LoadScale() else scale,
            lenient=options["lenient"],
        )
    else:
        if model is not None:
            # No filter looks at run times, so they may be scaled first: the workload's name says by how much.
            workload = model.generate(jobs=MODEL_JOBS if jobs is None else jobs, seed=seed, run_time_factor=run_time)
            scale = replace(scale, run_time=1.0)
        else:
            given = {"jobs": jobs, "nodes": nodes}
            workload = synthetic_workload(seed=seed, **{name: value for name, value in given.items() if value is not None})
        if keep != JobFilter():
            workload = workload.select(keep)
        if scale != LoadScale():
            workload = workload.scaled(scale)
        if estimates == "run-time":
            workload = workload.with_perfect_estimates()
    return workload.with_phi_estimates(phi=estimates, seed=seed) if isinstance(estimates, float) else workload


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="clustermodel")
def cli() -> None:
    """Simulate parallel job scheduling: compare policies on a trace or on a machine that does not exist yet.

    \b
    Start here:
      clustermodel run                                   a synthetic year under three policies
      clustermodel trace info KTH-SP2-1996-2.2.swf.gz    what is in a trace
      clustermodel run --trace KTH-SP2-1996-2.2.swf.gz --policy easy --policy conservative
      clustermodel run --model blue-pacific              jobs drawn from a model of a workload
      clustermodel policies                              what can be simulated, with parameters
    """


@cli.command()
@click.argument("scenario", type=click.Path(path_type=Path), required=False)
@click.option("--trace", type=click.Path(path_type=Path), help="SWF file (.swf, .swf.gz); without it, a synthetic year.")
@click.option("--model", help=f"Draw the jobs from a workload model: {', '.join(shipped_models())}, or a file of `trace fit`.")
@click.option(
    "--jobs", type=click.IntRange(1, 1_000_000), help="Number of jobs to make; default: 10,000 of a model, else 30,000."
)
@click.option("--nodes", type=int, help="Size of the machine; default: that of the trace (MaxProcs) or of the model, else 128.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Policy as NAME or NAME:key=value,key=value; repeat to compare.  Default: fcfs, easy, conservative.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Root of all random streams.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, an object per policy, instead of the table.")
@click.option("--jobs-csv", type=click.Path(path_type=Path), help="Directory to write POLICY.csv into, a row per job.")
@click.option("--figure", type=click.Path(path_type=Path), help="File (.png, .svg, .pdf) for a figure that compares the runs.")
@click.option(
    "--fidelity",
    type=click.Choice(list(FIDELITIES)),
    default="fast",
    show_default=True,
    help="Time sharing only: compute what happens between scheduling events, or play every time slice on every node, slowly.",
)
@click.option(
    "--speedup",
    type=SpeedupModel(),
    default="linear",
    show_default=True,
    help="How run times change where a policy gives a job another width than it asked for: linear, or Downey's model.",
)
@click.option(
    "--traceback", "with_traceback", is_flag=True, help="Where the code of a policy fails, print the whole traceback too."
)
@machine_options
@trace_options
def run(
    scenario: Path | None,
    trace: Path | None,
    model: str | None,
    jobs: int | None,
    nodes: int | None,
    policies: tuple[str, ...],
    seed: int,
    as_json: bool,
    jobs_csv: Path | None,
    figure: Path | None,
    fidelity: Fidelity,
    *,
    with_traceback: bool,
    **options: Any,
) -> int:
    """Simulate policies and print one table, a row per policy.

    The jobs come from --trace, or from --model, or from a synthetic year; the last two are made with --seed.  Or they come
    from SCENARIO, a Python script that defines `scenario` (a Scenario) or `scenarios` (several).  Job slowdowns are bounded
    at 10 s; docs/outputs defines every column.

    \b
    Examples:
      clustermodel run --trace KTH-SP2-1996-2.2.swf.gz --nodes 100 --figure kth.png
      clustermodel run --policy easy --policy easy:backfill_order=shortest --policy easy:reserve_depth=4
      clustermodel run --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --jobs-csv out --json
      clustermodel run --policy R/L-NG --policy R/L-NG:width=half,widening=1 --speedup downey:0.5
      clustermodel run --model blue-pacific --scale-run-time 1.3 --estimates phi:0.5
      clustermodel run --model blue-pacific --policy bf --policy bgs --policy mbgs --context-switch 0.02
      clustermodel run scenarios/quickstart.py
    """
    notes = standard_error()
    if scenario is not None:
        if policies or any(given is not None for given in (trace, model, jobs, nodes)):
            raise SpecificationError(
                f"{scenario}: a scenario script brings its own --trace, --model, --jobs, --nodes and --policy"
            )
        scenarios = _load_script(scenario)
    else:
        scenarios = _scenarios(options, trace, model, jobs, nodes, policies, seed, fidelity, notes)
    labels = [one.label for one in scenarios]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise SpecificationError(f"policy: {twice!r} is asked for twice; names must be unique")
    files = {} if jobs_csv is None else _job_files(labels, jobs_csv)
    _require_writable(jobs_csv, figure)

    results: list[Result] = []
    interrupted: str | None = None
    try:
        _run_all(scenarios, results, files, notes, with_traceback=with_traceback)
    except KeyboardInterrupt:
        interrupted = next((one.label for one in scenarios[len(results) :]), "the last report")
    finally:
        _show(results, as_json=as_json)  # whatever stopped the rest, work already done is kept
    if figure is not None and results:
        from clustermodel.report.plots import comparison, save  # noqa: PLC0415  matplotlib takes a second to import

        save(comparison(results), figure)
        notes.print(f"figure: {literal(figure)}")
    if interrupted is not None:
        notes.print(
            f"clustermodel: interrupted during {literal(interrupted)}; "
            f"{len(results)} of {len(scenarios)} runs had finished and are reported"
        )
        return INTERRUPTED
    return 0


def _scenarios(
    options: dict[str, Any],
    trace: Path | None,
    model: str | None,
    jobs: int | None,
    nodes: int | None,
    policies: Sequence[str],
    seed: int,
    fidelity: Fidelity,
    notes: Console,
) -> list[Scenario]:
    """Return a scenario for each policy, on the workload and the machine that the options describe."""
    for policy in policies:
        make_policy(policy)  # a mistyped name should not cost the time to read a trace
    machine = _machine(options, 1 if nodes is None else nodes)
    if trace is not None and (model is not None or jobs is not None):
        raise SpecificationError(
            f"--{'jobs' if model is None else 'model'}: the jobs come from --trace {trace}; give one of the two"
        )
    drawn_from = None if model is None else load_model(model)
    workload = _load_workload(options, trace=trace, model=drawn_from, jobs=jobs, nodes=nodes, seed=seed)
    for line in workload.provenance.lines():
        notes.print(f"{literal(workload.name)}: {literal(line)}")
    if nodes is None:
        if workload.machine_nodes is None:
            raise SpecificationError(f"--nodes: neither MaxProcs nor MaxNodes of {trace} is the size of a machine; give one")
        machine = replace(machine, nodes=workload.machine_nodes)
    return [
        Scenario(machine=machine, workload=workload, policy=policy, seed=seed, fidelity=fidelity, speedup=options["speedup"])
        for policy in policies or ("fcfs", "easy", "conservative")
    ]


def _load_script(path: Path) -> list[Scenario]:
    """Return the scenarios that a script defines, in ``scenario`` or ``scenarios``."""
    defined = run_script(path, read_script(path))
    found = defined.get("scenarios", defined.get("scenario"))
    if found is None and isinstance(defined.get("study"), Study):
        raise SpecificationError(f"{path}: defines a study; run it with: clustermodel sweep {path} --out DIRECTORY")
    scenarios = [found] if isinstance(found, Scenario) else list(found) if isinstance(found, Sequence) else []
    if not scenarios or not all(isinstance(one, Scenario) for one in scenarios):
        raise SpecificationError(
            f"{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module level"
        )
    return scenarios


def _job_files(labels: Sequence[str], folder: Path) -> dict[str, Path]:
    """Return the file of job records for each run; names that no file can have, or that two runs share, are refused."""
    owners: dict[str, str] = {}
    for label in labels:
        name = visible(label).replace("/", "_") + ".csv"
        if (length := len(name.encode())) > _LONGEST_FILE_NAME:
            raise SpecificationError(
                f"--jobs-csv: {shown(label)}: the name of its file would have {length} bytes; "
                f"at most {_LONGEST_FILE_NAME} are allowed"
            )
        if name in owners:
            raise SpecificationError(f"--jobs-csv: {owners[name]!r} and {label!r} would have one file, {folder / name}")
        owners[name] = label
    return {label: folder / name for name, label in owners.items()}


def _require_writable(jobs_csv: Path | None, figure: Path | None) -> None:
    """Refuse outputs that cannot be written before any time is spent."""
    if jobs_csv is not None:
        try:
            jobs_csv.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise OutputError(f"--jobs-csv: {jobs_csv}: cannot be made: {problem.strerror}") from None
    for option, path in (("--jobs-csv", jobs_csv), ("--figure", figure.parent if figure else None)):
        if path is not None and not (path.is_dir() and os.access(path, os.W_OK)):
            raise OutputError(f"{option}: {path}: is not a directory that can be written to")
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise OutputError(f"--figure: {figure}: format {figure.suffix!r} is unknown; use .png, .svg or .pdf")


def _run_all(
    scenarios: Sequence[Scenario], results: list[Result], files: dict[str, Path], notes: Console, *, with_traceback: bool
) -> None:
    """Run the scenarios in turn, appending to ``results`` and writing each one's job records as soon as it is done."""
    for scenario in scenarios:
        began = perf_counter()
        with _progress(scenario, notes) as advance, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=NOTHING_PLAYED)  # a note says it for all runs
            try:
                result = scenario.run(progress=advance)
            except (ClusterModelError, KeyboardInterrupt):
                raise
            except BaseException as problem:  # of the policy's code
                if with_traceback:
                    notes.print("\n".join(map(literal, "".join(format_exception(problem)).splitlines())))
                policy = f"policy {policy_label(scenario.policy)}"
                hint = "" if with_traceback else "; --traceback shows all"
                raise PolicyError(f"{failure_line(problem)} ({policy}{hint})") from None
        if scenario.label in files:
            result.to_csv(files[scenario.label], layout="jobs")
        results.append(result)
        notes.print(f"{literal(scenario.label)}: {len(result.records):,} jobs in {perf_counter() - began:.2f} s")
    if unplayed := [result.scenario.label for result in results if result.nothing_played]:
        notes.print(
            f"fidelity node: no gang shared its nodes in time under {literal(', '.join(unplayed))}; there was nothing to play, "
            "and the result is that of fidelity fast"
        )


@contextmanager
def _progress(scenario: Scenario, notes: Console) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal; nothing elsewhere."""
    if not notes.is_terminal:
        yield None
        return
    sized = [len(source) for source in scenario.sources if isinstance(source, Workload)]
    total = sum(sized) if len(sized) == len(scenario.sources) else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task(literal(scenario.label), total=total)
        yield lambda jobs: bar.advance(task, jobs)


def _show(results: Sequence[Result], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([result.summary().as_dict() for result in results], indent=2))
    elif results:
        first = results[0]
        title = f"{first.scenario.workload_name} on {first.machine.nodes:,} nodes"
        standard_output().print(comparison_table([result.summary() for result in results], title))


@cli.group()
def trace() -> None:
    """Look into workload traces, and fit models to them."""


@trace.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--nodes", type=_MACHINE_SIZE, help="Size of the machine; default: MaxProcs or MaxNodes of the trace.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@trace_options
def info(file: Path, nodes: int | None, as_json: bool, **options: Any) -> None:
    """Show what is in FILE: counts, load, percentiles of sizes and run times, and what would be dropped or repaired.

    \b
    Examples:
      clustermodel trace info KTH-SP2-1996-2.2.swf.gz
      clustermodel trace info CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --window 0:2592000
    """
    workload = _load_workload(options, trace=file, seed=1)
    facts = trace_facts(workload, nodes or workload.machine_nodes)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    out = standard_output()
    for key in ("Computer", "Installation", "Acknowledge", "MaxProcs", "MaxNodes", "StartTime", "EndTime"):
        if key in workload.provenance.header:
            lines = workload.provenance.header[key].split("\n")  # more than one where the key is repeated
            out.print(f"{key}: " + "\n".join(map(literal, lines)))
    out.print(f"{len(workload):,} jobs of {facts['users']} users, submitted over {workload.span_s / 86400:,.1f} days")
    if facts["machine_nodes"]:
        if facts["offered_load"] is not None:
            out.print(
                f"offered load on {facts['machine_nodes']:,} nodes: {facts['offered_load']:.4f} "
                f"({facts['offered_load_without_killing']:.4f} if nothing is killed at its estimate)"
            )
        out.print(f"jobs wider than the machine: {facts['jobs_wider_than_machine']:,}")
    out.print(f"jobs that run past their estimate: {facts['jobs_beyond_estimate']:,}")
    out.print(percentile_table(facts))
    for line in workload.provenance.lines() or ["nothing dropped, nothing repaired"]:
        out.print(literal(line))


@trace.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write the model to instead of standard output.")
@click.option("--nodes", type=_MACHINE_SIZE, help="Size of the machine; default: MaxProcs or MaxNodes of the trace.")
@trace_options
def fit(file: Path, output: Path | None, nodes: int | None, **options: Any) -> None:
    """Fit a workload model to FILE, for `clustermodel run --model`, and print it as JSON.

    Jobs are grouped by size, with powers of two for upper bounds.  Interarrival and run times of each class get a hyper-Erlang
    distribution of common order, the smallest that has their first three moments.  A table on standard error shows them.

    \b
    Examples:
      clustermodel trace fit KTH-SP2-1996-2.2.swf.gz > kth.json
      clustermodel trace fit CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --output ctc.json
      clustermodel run --model kth.json --jobs 20000 --scale-run-time 1.2
    """
    notes = standard_error(tables=True)
    workload = _load_workload(options, trace=file, seed=1)
    for line in workload.provenance.lines():
        notes.print(f"{literal(workload.name)}: {literal(line)}", soft_wrap=True)
    if nodes is None and workload.machine_nodes is None:
        raise SpecificationError(f"--nodes: neither MaxProcs nor MaxNodes of {file} is the size of a machine; give one")
    model = fit_model(workload, nodes=nodes)
    notes.print(_model_table(model))
    for line in model.notes:
        notes.print(f"{literal(model.name)}: {literal(line)}", soft_wrap=True)
    if output is None:
        click.echo(model.to_json(), nl=False)
        return
    write_file(output, model.to_json())
    notes.print(f"model: {literal(output)}", soft_wrap=True)


def _model_table(model: WorkloadModel) -> Table:
    """Return one row per size class: what the three moments say, and the order that has them."""
    title = f"{literal(model.name)} on {model.nodes:,} nodes: offered load {model.offered_load:.4f}"
    table = Table(title=title, title_justify="left")
    for heading in (
        "nodes", "jobs", "interarrival\nmean (s)", "\nCV", "\nskewness", "\norder", "run time\nmean (s)", "\nCV", "\nskewness",
        "\norder",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for one in model.classes:
        times = [
            (f"{time.mean_s:,.1f}", f"{time.cv:.2f}", f"{time.skewness:.2f}", f"{time.order:,}")
            for time in (one.interarrival, one.run_time)
        ]
        table.add_row(one.label, f"{sum(one.weights):,}", *times[0], *times[1])
    return table


@cli.command()
def policies() -> None:
    """List the policies with their parameters and defaults."""
    out = standard_output()
    for name in policy_names():
        parameters = ",".join(
            f"{key}={'...' if value.default is value.empty else value.default}"
            for key, value in policy_parameters(name).items()
        )
        out.print(f"[bold]{literal(name)}[/]{literal(':' + parameters) if parameters else ''}")
        out.print(f"    {literal(policy_summary(name))}")


cli.add_command(sweep)
cli.add_command(results)
cli.add_command(report)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: by default those of the process, which then has nothing else to do.
    """
    with OneInterrupt(for_good=arguments is None):
        try:
            with guarded_streams():
                code = _exit_code(arguments)
        except KeyboardInterrupt:  # while something else was being said
            code = INTERRUPTED
    sys.exit(code)


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        code = _run_command(arguments)
        if code == 0:
            sys.stdout.flush()
    except OutputError as problem:
        code = _complain(str(problem), BAD_OUTPUT)
    except BrokenPipeError:  # the reader of our output has gone (| head)
        code = BAD_OUTPUT
    except SystemExit as gone:  # the same, as click and rich put it
        code = gone.code if isinstance(gone.code, int) else BAD_OUTPUT
    return code


def _run_command(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(args=arguments, prog_name="clustermodel", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        return BAD_INPUT
    except click.ClickException as problem:
        return _complain(problem.format_message(), BAD_INPUT)
    except OutputError:
        raise
    except (PolicyError, ExecutionError) as problem:
        return _complain(str(problem), FAILED)
    except ClusterModelError as problem:
        return _complain(str(problem), BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    click.echo(f"clustermodel: error: {visible(' '.join(message.split()))}", err=True)
    return code


if __name__ == "__main__":
    main()
