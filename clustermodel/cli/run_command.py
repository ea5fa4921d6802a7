"""``clustermodel run`` and ``policies``: simulating policies on a trace, a workload model, a synthetic year or scenarios."""

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from time import perf_counter
from traceback import format_exception
from typing import Any, Final

import click
from click.core import ParameterSource
from rich.console import Console

import clustermodel.cli.options as opt
from clustermodel.cli.interrupts import exit_code_of
from clustermodel.cli.options import FILE, option, option_group, option_name
from clustermodel.cli.standard_streams import json_option, print_json, progress_of_run
from clustermodel.errors import ClusterModelError, PolicyError, SpecificationError, shown, visible
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import NOTHING_PLAYED, Scenario, nothing_played
from clustermodel.experiment.settings import scenario_with_settings, settings_of
from clustermodel.experiment.user_code import failure_line
from clustermodel.figures.tables import comparison_table, group_rows, group_table, run_row
from clustermodel.figures.terminal import Column, TextTable, literal, print_notes, print_table, standard_error, standard_output
from clustermodel.measure.input_notes import run_notes
from clustermodel.measure.job_table import Jobs, job_columns
from clustermodel.measure.recorded_groups import GROUPINGS
from clustermodel.plugins import POLICIES, READERS, plugins
from clustermodel.plugins import PREDICTORS as PREDICTOR_PLUGINS
from clustermodel.policies import registry
from clustermodel.policies.predictors import CORRECTIONS, PREDICTORS
from clustermodel.policies.queue_order import QUEUE_ORDERS, SITE_ORDERS
from clustermodel.sim.compiled import advice
from clustermodel.sim.simulation import EVENTS, FIDELITIES
from clustermodel.text.tables import SUFFIX
from clustermodel.validation import choice
from clustermodel.workload.shipped import shipped_models
from clustermodel.workload.table import JobSource

_log = logging.getLogger(__name__)
_LONGEST_FILE_NAME: Final = 255  # bytes, on the file systems of Linux, macOS and Windows
_OF_RUNS: Final = ("seed", "fidelity", "events", "speedup")  # options that are fields of scenarios


@click.command()
def policies() -> None:
    """List the policies with their parameters and defaults.

    The names that some parameters and --format take are listed too, and those of other installed packages; one that cannot be
    used is a line on standard error.  A table at the end says which rules of a site and a machine each policy respects.
    """
    from clustermodel.logs.trace_file import SHIPPED  # noqa: PLC0415  with the readers of all formats

    out, installed, problems = standard_output(), plugins(POLICIES), registry.plugin_problems()
    usable_policies = []
    for name in registry.policy_names():
        try:
            known = registry.policy_parameters(name)
        except SpecificationError as problem:  # of a plug-in
            problems.append(str(problem))
            continue
        usable_policies.append(name)
        defaults = {key: "..." if value.default is value.empty else value.default for key, value in known.items()}
        parameters = ":" + ",".join(f"{key}={value}" for key, value in defaults.items()) if known else ""
        origin = f"  [dim]({literal(installed[name].package)})[/]" if name in installed else ""
        out.print(f"[bold]{literal(name)}[/]{literal(parameters)}{origin}")
        out.print(f"    {literal(registry.policy_summary(name))}")
    named = {
        "predictors, easy:predictor=NAME": ([*PREDICTORS, "virtual:X"], plugins(PREDICTOR_PLUGINS)),
        "corrections, easy:correction=NAME": (list(CORRECTIONS), {}),
        "queue orders, gs:queue_order=NAME": (list(QUEUE_ORDERS), {}),
        "orders of a site, easy:order=NAME": (list(SITE_ORDERS), {}),
        "readers of traces, --format NAME": ([reader.name for reader in SHIPPED], plugins(READERS)),
    }
    for what, (names, others) in named.items():
        usable = [plugin for plugin in others.values() if not plugin.problem(names, unfit=registry.SEPARATORS)]
        text = ", ".join([*names, *(f"{plugin.name} ({plugin.package})" for plugin in usable)])
        out.print(f"[bold]{what}[/]")
        out.print(fill(literal(text), 80, initial_indent=" " * 4, subsequent_indent=" " * 4, break_on_hyphens=False))
    policies = registry.policies_by_rules(usable_policies)
    respected = [Column(rule, ["yes" if row[place] else "no" for row in policies])
                 for place, rule in enumerate(registry.RULES)]  # fmt: skip
    out.print("[bold]rules that policies respect, beside limits and dependencies, which hold under all[/]")
    out.print(TextTable("", [Column("policies", list(map(", ".join, policies.values())), number=False)], [respected], {}))
    for line in problems:
        standard_error().print(literal(line))


_JOBS: Final = option_group(
    "Jobs",
    option("--trace", "SWF file, or a log of sacct, PBS, LSF or SGE; default: a synthetic year.", FILE),
    option("--model", f"Draw the jobs from a workload model: {', '.join(shipped_models())}, or a file of `trace fit`.",
           shell_complete=opt.completion(shipped_models)),
    option("--jobs", "Number of jobs to make; default: 10,000 of a model, else 30,000.", click.IntRange(1, 1_000_000)),
)  # fmt: skip
_RUNS: Final = option_group(
    "Runs", opt.POLICY, opt.SITE, opt.ORDER, opt.RESERVATION, opt.MALLEABLE, opt.SEED,
    option("--fidelity", "Time sharing only: compute progress between scheduling events, or simulate every time slice on every "
           "node, slowly.", click.Choice(FIDELITIES), "fast"),
    option("--events", "How a policy is told of several events at one instant: in one scheduling cycle, or each in a cycle of "
           "its own.", click.Choice(EVENTS), "together"),
    opt.SPEEDUP,
    option("--stream", "Keep no finished job in memory: the summary is made of running sums, median and 95th percentile of "
           "more than 10,000 jobs within 0.1 %.", is_flag=True),
)  # fmt: skip
_OUTPUT: Final = option_group(
    "Output",
    option("--by", "Show the waits and slowdowns of each user, queue, partition, size, or other column of the job table too; "
           "repeat for several.", multiple=True),
    json_option("Print a JSON list, an object per policy, instead of the table."),
    option("--jobs-csv", "Directory to write POLICY.csv into, a row per job.", FILE),
    option("--jobs-parquet", "With --stream, directory to write POLICY.parquet into, a row per job.", FILE),
    option("--figure", "File (.png, .svg, .pdf) for a figure that compares the runs.", FILE),
    option("--report", "File (.html) for a page with the answers, the table, pictures, and the machine and its rules in words.",
           FILE),
    option("--perfetto", "File (.json, or .json.gz) for the runs over time, for ui.perfetto.dev.", FILE),
    option("--traceback with_traceback", "If the code of a policy fails, print the whole traceback too.", is_flag=True),
)  # fmt: skip


@click.command(cls=opt.GroupedCommand)
@click.argument("scenarios", metavar="[SCENARIO]...", type=FILE, nargs=-1)
@_JOBS
@_RUNS
@_OUTPUT
@option_group(
    "Machine", option("--nodes", "Size of the machine; default: that of the trace (MaxProcs) or of the model, else 128.", int)
)
@opt.machine_options
@opt.trace_options
def run(scenarios: tuple[Path, ...], **options: Any) -> int:
    """Simulate policies and print one table, a row per policy.

    The jobs come from --trace, or from --model, or from a synthetic year; the last two are made with --seed.  Or they come
    from SCENARIO: one or several scenario files (.toml), in which options of the policy, the machine and the run replace the
    values of the file; or a Python script that defines `scenario` (a Scenario) or `scenarios` (several).  Job slowdowns are
    bounded at 10 s; docs/outputs defines every column.

    \b
    Examples:
      clustermodel run --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --json
      clustermodel run --policy easy --policy easy:backfill_order=shortest
      clustermodel run --model blue-pacific --policy mbgs --context-switch 0.02
      clustermodel run --policy gs --set machine.time_slicing.quantum_s=60
      clustermodel run kth.toml --policy easy --nodes 128
    """
    notes, context = standard_error(), click.get_current_context()
    given = {name: options[name] for name in options if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    outputs: dict[str, Path | None] = {
        name: options[name] for name in ("jobs_csv", "jobs_parquet", "figure", "report", "perfetto")
    }
    if scenarios:
        specified = _scenarios_of(scenarios, given)
        if options["stream"]:
            specified = [scenario if scenario.stream else replace(scenario, stream=True) for scenario in specified]
    else:
        _require_streamable(outputs, stream=options["stream"])  # before a trace is read
        trace, (machine, is_given) = options["trace"], opt.machine_of(options)
        if trace is not None and (both := [name for name in ("model", "jobs") if options[name] is not None]):
            raise SpecificationError(f"--{both[0]}: the jobs come from --trace {trace}; give one of the two")
        streamed = options["stream"] and trace is not None
        workload: JobSource = opt.stream_of(options, given) if streamed else opt.load_workload(options)
        if not is_given:
            size = opt.require_size(workload.machine_nodes, trace)
            machine = replace(machine, nodes=-(-size // machine.node_sizes[0]))
        specified = opt.scenarios_of(options, machine, workload, **{name: options[name] for name in (*_OF_RUNS, "stream")})
    _require_streamable(outputs, stream=any(scenario.stream for scenario in specified))
    _require_groups(specified, by := tuple(dict.fromkeys(options["by"])))
    told: set[tuple[str, str]] = set()
    _note_sources(specified, notes, told)
    labels = [scenario.label for scenario in specified]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise SpecificationError(f"policy: {twice[0]!r} is asked for twice; names must be unique")
    files = _job_files(labels, outputs)
    opt.require_writable(outputs)
    if outputs["perfetto"] is not None:
        specified = [replace(scenario, history=True) for scenario in specified]  # of time slices

    results: list[Result] = []
    interrupted, code = "", 0
    try:
        try:
            _run_all(specified, results, files, notes, told, with_traceback=options["with_traceback"])
        except KeyboardInterrupt as problem:
            interrupted = next((unfinished.label for unfinished in specified[len(results) :]), "the last report")
            code = exit_code_of(problem)
        _write(results, outputs, notes)  # before the table: its reader may have gone (| head)
    finally:  # finished runs are reported, whatever stopped the others
        _report(results, by, notes, as_json=options["as_json"])
    if interrupted:
        counts = f"{len(results)} of {len(specified)} runs had finished and are reported"
        notes.print(f"clustermodel: interrupted during {literal(interrupted)}; {counts}")
    return code


def _scenarios_of(paths: Sequence[Path], given: Mapping[str, Any]) -> list[Scenario]:
    """Return the scenarios of files, in which options replace values, or of a script, which takes none, in order."""
    options = {name: given[name] for name in given.keys() - opt.names_in_groups("Output") - {"stream"}}
    settings = settings_of(options.get("settings", ()))
    if scripts := [path for path in paths if path.suffix.lower() != SUFFIX]:
        from clustermodel.experiment.script import load_scenarios, read_script  # noqa: PLC0415  with all that studies need

        for path in scripts[: len(paths) - 1 + ("trace" in options)]:
            read_script(path)  # refuses a trace
        if len(paths) > 1:
            raise SpecificationError(f"{scripts[0]}: a script stands alone; several scenarios are {SUFFIX} files")
        if others := [name for name in options if name != "settings"]:
            raise SpecificationError(f"{scripts[0]}: {option_name(others[0])}: a script brings its own; only files take it")
        return [scenario_with_settings(scenario, settings) for scenario in load_scenarios(scripts[0])]
    if of_workloads := sorted(options.keys() & opt.names_in_groups("Jobs", "Logs")):
        refused = option_name(of_workloads[0])
        raise SpecificationError(f"{paths[0]}: {refused}: the jobs are those of the file; change its table [workload]")
    specified = []
    for path in paths:
        scenario = Scenario.from_toml(path)
        policies = options.get("policies") or (scenario.policy,)
        changes: dict[str, Any] = {name: options[name] for name in _OF_RUNS if name in options}
        changes["site"] = opt.site_of(options, scenario.site, scenario.used_machine.reservations)
        if options.keys() - changes.keys() - {"policies", "order", "reservations", "malleable"}:
            machine = opt.machine_with(scenario.used_machine, options)
            changes["machine"] = replace(machine, nodes=options.get("nodes", machine.nodes))
        name = scenario.name or (path.stem if len(paths) > 1 else "")
        for policy in policies:
            label = f"{name} {policy}" if name and len(policies) > 1 else name
            specified.append(scenario_with_settings(replace(scenario, policy=policy, name=label, **changes), settings))
    return specified


def _require_streamable(outputs: Mapping[str, Path | None], *, stream: bool) -> None:
    """Refuse outputs that do not go with ``--stream``, or that need it."""
    if outputs["jobs_parquet"] is not None and not stream:
        raise SpecificationError("--jobs-parquet: it needs --stream; --jobs-csv writes the jobs of a run that is not streamed")
    for name, value in outputs.items():
        if stream and value is not None and name != "jobs_parquet":
            raise SpecificationError(f"{option_name(name)}: not allowed with --stream, which keeps no jobs")


def _require_groups(scenarios: Sequence[Scenario], by: Sequence[str]) -> None:
    """Refuse columns of ``--by`` that the job table of a run will not have."""
    for scenario in scenarios if by else ():
        if scenario.stream:
            raise SpecificationError("--by: not allowed with --stream, which keeps no jobs")
        columns = dict.fromkeys([*job_columns(Jobs.of_streamed([])), "stream", *scenario.streams.facts(), *GROUPINGS])
        for name in by:
            choice("--by", name, columns)


def _job_files(labels: Sequence[str], outputs: Mapping[str, Path | None]) -> dict[str, Path]:
    """Return the file of job records of each run; refuse file names that are too long, or that two runs share."""
    name, suffix = ("jobs_csv", ".csv") if outputs["jobs_parquet"] is None else ("jobs_parquet", ".parquet")
    folder, owners = outputs[name], dict[str, str]()
    if folder is None:
        return {}
    for label in labels:
        file = visible(label).replace("/", "_") + suffix
        if (length := len(file.encode())) > _LONGEST_FILE_NAME:
            problem = f"the name of its file would have {length} bytes; at most {_LONGEST_FILE_NAME} are allowed"
            raise SpecificationError(f"{option_name(name)}: {shown(label)}: {problem}")
        if file in owners:
            both = f"{owners[file]!r} and {label!r}"
            raise SpecificationError(f"{option_name(name)}: {both} would have one file, {folder / file}")
        owners[file] = label
    return {label: folder / file for file, label in owners.items()}


def _run_all(
    scenarios: Sequence[Scenario], results: list[Result], files: Mapping[str, Path], notes: Console,
    told: set[tuple[str, str]], *, with_traceback: bool,
) -> None:  # fmt: skip
    """Run the scenarios in turn; append each result to ``results`` and write its job records as soon as it is there."""
    simulated_s = 0.0
    for scenario in scenarios:
        if _log.isEnabledFor(logging.DEBUG):
            from clustermodel.experiment.run_key import key_of_scenario  # noqa: PLC0415  reads streamed traces

            _log.debug("run %s has the key %s", scenario.label, key_of_scenario(scenario))
        began, file = perf_counter(), files.get(scenario.label)
        with progress_of_run(scenario, notes) as advance, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=NOTHING_PLAYED)  # one note below covers all runs
            try:
                if scenario.stream:
                    result = replace(scenario, stream=file or scenario.stream).run(progress=advance)
                else:
                    result = scenario.run(progress=advance)
                    if file is not None:
                        result.to_csv(file, layout="jobs")
            except (ClusterModelError, KeyboardInterrupt):
                raise
            except BaseException as problem:  # of the policy's code
                if with_traceback:
                    notes.print("\n".join(map(literal, "".join(format_exception(problem)).splitlines())))
                hint = "" if with_traceback else "; --traceback shows all"
                where = f"policy {registry.policy_label(scenario.policy)}{hint}"
                raise PolicyError(f"{failure_line(problem)} ({where})") from None
        results.append(result)
        _note_sources([scenario], notes, told)  # what has been left out of a streamed trace is known now
        simulated_s += result.simulation_s
        notes.print(f"{literal(scenario.label)}: {result.submitted:,} jobs in {perf_counter() - began:.2f} s")
    if told_now := advice(simulated_s):
        notes.print(told_now)
    if unplayed := [result.scenario.label for result in results if result.nothing_played]:
        notes.print(f"fidelity node: {literal(nothing_played(unplayed))}")


def _note_sources(scenarios: Sequence[Scenario], notes: Console, told: set[tuple[str, str]]) -> None:
    """Print what has been left out or changed of the jobs; each line once, which ``told`` keeps."""
    for scenario in scenarios:
        by_site = scenario.site is not None and scenario.site.malleable
        for source in scenario.streams if by_site else scenario.sources:
            for line in source.provenance.lines():
                if (source.name, line) not in told:
                    told.add((source.name, line))
                    notes.print(f"{literal(source.name)}: {literal(line)}")


def _report(results: Sequence[Result], by: Sequence[str], notes: Console, *, as_json: bool) -> None:
    """Print the table of the runs and those of their groups, or all as JSON."""
    if as_json:
        rows = [run_row(result) for result in results]
        if by:
            groups = [[row for name in by for row in group_rows(result, name)] for result in results]
            rows = [{**row, "groups": of_run} for row, of_run in zip(rows, groups, strict=True)]
        print_json(json.dumps(rows, indent=2))
    elif results:
        print_table(comparison_table(results))
        for name in by:
            for result in results:
                print_table(group_table(result, name))
        print_notes((note.with_option() for note in run_notes(results)), notes)


def _write(results: Sequence[Result], outputs: Mapping[str, Path | None], notes: Console) -> None:
    if results and (figure := outputs["figure"]) is not None:
        from clustermodel.figures.run import comparison  # noqa: PLC0415  matplotlib takes a second to import
        from clustermodel.figures.style import save  # noqa: PLC0415

        save(comparison(results), figure)
        notes.print(f"figure: {literal(figure)}")
    if results and (report := outputs["report"]) is not None:
        from clustermodel.report.answer_page import page_of_runs  # noqa: PLC0415

        page_of_runs(results).write(report)
        notes.print(f"report: {literal(report)}")
    if results and (perfetto := outputs["perfetto"]) is not None:
        from clustermodel.figures.perfetto import write_perfetto  # noqa: PLC0415  the same

        write_perfetto(results, perfetto)
        notes.print(f"perfetto: {literal(perfetto)}, for ui.perfetto.dev", soft_wrap=True)
