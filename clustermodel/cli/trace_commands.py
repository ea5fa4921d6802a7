"""``clustermodel trace``: facts about a trace, traces from accounting logs, and workload models fitted to a trace."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

import click

from clustermodel.cli.options import FILE, GroupedCommand, load_workload, log_options, option, require_size, trace_options
from clustermodel.cli.standard_streams import json_option, print_json
from clustermodel.errors import counted
from clustermodel.figures.tables import percentile_table
from clustermodel.figures.terminal import Column, TextTable, literal, print_table, standard_error, standard_output
from clustermodel.logs.trace_file import read_trace, require_log
from clustermodel.text.files import write_file
from clustermodel.validation import LARGEST_WHOLE
from clustermodel.workload.model import WorkloadModel, fit_model
from clustermodel.workload.swf import write_trace
from clustermodel.workload.trace_facts import trace_facts

_SIZE: Final = "Size of the machine; default: MaxProcs or MaxNodes of the trace."
_NODES: Final = option("--nodes", _SIZE, click.IntRange(1, LARGEST_WHOLE))


@click.group()
def trace() -> None:
    """Look into workload traces, make them from accounting logs, and fit models to them."""


@trace.command(cls=GroupedCommand)
@click.argument("file", type=FILE)
@_NODES
@json_option("Print one JSON object instead of text.")
@trace_options
def info(file: Path, nodes: int | None, as_json: bool, **options: Any) -> None:
    """Show facts about FILE: counts, load, percentiles of sizes and run times, dropped and repaired jobs.

    \b
    Examples:
      clustermodel trace info KTH-SP2-1996-2.2.swf.gz
      clustermodel trace info CTC-SP2-1996-3.1-cln.swf.gz --window 0:2592000
    """
    workload = load_workload({"trace": file, **options})
    facts = trace_facts(workload, nodes or workload.machine_nodes)
    if as_json:
        print_json(json.dumps(facts, indent=2))
        return
    out, unit, header = standard_output(), workload.provenance.unit, workload.provenance.header
    for key in ("Computer", "Installation", "Acknowledge", "MaxProcs", "MaxNodes", "StartTime", "EndTime"):
        if key in header:
            out.print(f"{key}: " + "\n".join(map(literal, header[key].split("\n"))))  # several where the key is repeated
    jobs, users = counted(len(workload), "job"), counted(cast("int", facts["users"]), "user")
    out.print(f"{jobs} of {users}, submitted over {workload.span_s / 86400:,.1f} days")
    if isinstance(machine := facts["machine_nodes"], int) and machine:
        if facts["offered_load"] is not None:
            without = f"({facts['offered_load_without_killing']:.4f} if nothing is killed at its estimate)"
            out.print(f"offered load on {counted(machine, unit)}: {facts['offered_load']:.4f} {without}")
        out.print(f"jobs wider than the machine: {facts['jobs_wider_than_machine']:,}")
    out.print(f"jobs that run past their estimate: {facts['jobs_beyond_estimate']:,}")
    print_table(percentile_table(facts, unit), titled=True)
    for line in workload.provenance.lines() or ["nothing dropped, nothing repaired"]:
        out.print(literal(line))


@trace.command("import", cls=GroupedCommand)
@click.argument("log", type=FILE)
@option("-o --output", "SWF file (.swf, .swf.gz) to write; without it, the report alone is printed.", FILE)
@json_option("Print the report as one JSON object instead of text.")
@log_options
def import_log(log: Path, output: Path | None, as_json: bool, **options: Any) -> None:
    """Make an SWF trace of LOG, an accounting log of Slurm (sacct), PBS, LSF or Grid Engine; report what became of each line.

    Compressed logs (gzip, bzip2, xz) are read as they are.  docs/guide_own_log has the sacct command, and what becomes of each
    state and each field.

    \b
    Examples:
      clustermodel trace import jobs.sacct -o cluster.swf
      clustermodel trace import jobs.sacct.gz --unit cores -o cluster.swf.gz
      clustermodel trace import accounting/20260105
    """
    require_log(log)
    workload = read_trace(log, **options)
    report = workload.provenance.report
    assert report is not None
    notes = [] if output is None else write_trace(output, workload)
    if as_json:
        print_json(json.dumps({**asdict(report), "repaired": dict(workload.provenance.repaired), "notes": notes}, indent=2))
    else:
        for line in (f"{log}: {report.format}", *workload.provenance.lines(), *notes):
            standard_output().print(literal(line), soft_wrap=True)
    if output is not None:
        standard_error().print(f"trace: {literal(output)}")


@trace.command(cls=GroupedCommand)
@click.argument("file", type=FILE)
@option("-o --output", "File to write the model to instead of standard output.", FILE)
@_NODES
@trace_options
def fit(file: Path, output: Path | None, nodes: int | None, **options: Any) -> None:
    """Fit a workload model to FILE, for `clustermodel run --model`, and print it as JSON.

    Jobs are grouped by size, with powers of two for upper bounds.  Interarrival and run times of each class get a hyper-Erlang
    distribution of common order, of the lowest order with their first three moments.  A table on standard error shows them.

    \b
    Examples:
      clustermodel trace fit KTH-SP2-1996-2.2.swf.gz > kth.json
      clustermodel trace fit CTC-SP2-1996-3.1-cln.swf.gz --output ctc.json
      clustermodel run --model kth.json --jobs 20000 --scale-run-time 1.2
    """
    notes = standard_error()
    workload = load_workload({"trace": file, **options})
    for line in workload.provenance.lines():
        notes.print(f"{literal(workload.name)}: {literal(line)}", soft_wrap=True)
    model = fit_model(workload, nodes=nodes or require_size(workload.machine_nodes, file))
    if output is not None:
        write_file(output, model.to_json())
    print_table(_model_table(model), titled=True, error=True)
    for line in model.notes:
        notes.print(f"{literal(model.name)}: {literal(line)}", soft_wrap=True)
    if output is None:
        click.echo(model.to_json(), nl=False)
    else:
        notes.print(f"model: {literal(output)}", soft_wrap=True)


def _model_table(model: WorkloadModel) -> TextTable:
    """Return a table of a model, one row per size class: mean, CV, skewness and order of the times."""
    labels = [of_class.label for of_class in model.classes]
    jobs = [sum(of_class.weights) for of_class in model.classes]
    plain: dict[str, list[Any]] = {"nodes": labels, "jobs": jobs}
    groups = [[Column("jobs", [f"{number:,}" for number in jobs])]]
    measures = {"mean_s": ("mean (s)", ",.1f"), "cv": ("CV", ".2f"), "skewness": ("skewness", ".2f"), "order": ("order", ",")}
    for name in ("interarrival", "run_time"):
        groups.append([])
        for measure, (heading, form) in measures.items():
            values = plain[f"{name}_{measure}"] = [getattr(getattr(of_class, name), measure) for of_class in model.classes]
            over = "" if groups[-1] else name.replace("_", " ")
            groups[-1].append(Column(f"{over}\n{heading}", [format(value, form) for value in values]))
    title = f"{model.name} on {model.nodes:,} nodes: offered load {model.offered_load:.4f}"
    return TextTable(title, [Column("nodes", labels)], groups, plain)
