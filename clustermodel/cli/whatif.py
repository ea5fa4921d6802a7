"""``clustermodel whatif``: the waits that a log has recorded, and those of simulated policies on the same jobs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

import clustermodel.cli.options as opt
from clustermodel.cli.options import option, option_group, option_name
from clustermodel.cli.streams import json_option, print_json, progress_of_run
from clustermodel.errors import SpecificationError, counted, shown
from clustermodel.figures.terminal import Column, TextTable, literal, print_table, standard_error
from clustermodel.formatting import UNDEFINED
from clustermodel.measure.metrics import Observed, observed_schedule
from clustermodel.policies.registry import policy_label
from clustermodel.validation import LARGEST_WHOLE
from clustermodel.workload.table import Workload

_MEASURES: Final = {
    "jobs": ("jobs", "{:,}"),
    "mean_wait_s": ("mean\nwait (s)", "{:,.0f}"),
    "median_wait_s": ("median\nwait (s)", "{:,.0f}"),
    "p95_wait_s": ("95th pct.\nwait (s)", "{:,.0f}"),
    "mean_bounded_slowdown": ("bounded\nslowdown", "{:,.2f}"),
    "utilization": ("utili-\nzation", "{:.4f}"),
}
"""Columns of the table: heading and format by measure."""
_ALIKE: Final = 0.1  # difference of mean waits that needs no explanation


class _OfTrace(opt.GroupedCommand):
    """A command that tells those who forget ``--trace`` what to write."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            _, others, _ = self.make_parser(ctx).parse_args(given)
            problem = f"{shown(others[0])}: a log is given with --trace" if others else "--trace: no log is given"
            log = shown(others[0] if others else "jobs.sacct")
            raise SpecificationError(f"{problem}: clustermodel whatif --trace {log}") from None


@click.command(cls=_OfTrace)
@option_group("Jobs", option("--trace", "Log of sacct, PBS or LSF, or SWF file.", opt.FILE, required=True))
@option_group("Runs", opt.POLICY, opt.SEED)
@option_group("Output", json_option("Print a JSON list, an object per row, instead of the table."))
@option_group("Machine", option("--nodes", "Size of the machine; default: MaxProcs of an SWF header, else the most nodes in "
                                "use at the same time.", click.IntRange(1, LARGEST_WHOLE)))  # fmt: skip
@opt.machine_options
@opt.trace_options
def whatif(trace: Path, *, as_json: bool, **options: Any) -> None:
    """Compare the waits that a log has recorded with those of simulated policies on the same jobs.

    The first row is the log's own schedule.  Its utilization is of the machine that is simulated, or of the most nodes in use
    at the same time, if these are more.  Waits are from submission to start; job slowdowns are bounded at 10 s.

    \b
    Examples:
      clustermodel whatif --trace jobs.sacct
      clustermodel whatif --trace jobs.sacct --nodes 512 --policy easy
      clustermodel whatif --trace KTH-SP2-1996-2.2.swf.gz --nodes 100
    """
    notes = standard_error()
    options |= {"trace": trace, "policies": tuple(dict.fromkeys(options["policies"]))}
    machine, is_given = opt.machine_of(options)
    for name in opt.SCALES:
        if options[name] != 1:
            because = f"{options[name]:g} is not allowed; the recorded waits belong to the recorded load"
            raise SpecificationError(f"{option_name(name)}: {because}")
    if options["resample"] is not None:
        raise SpecificationError("--resample: not allowed; the recorded waits belong to the recorded jobs")
    workload = opt.load_workload(options, waits=True)
    for line in workload.provenance.lines():
        notes.print(f"{literal(workload.name)}: {literal(line)}")
    peak = observed_schedule(workload).peak_nodes
    own_size = workload.machine_nodes or peak
    if not is_given:
        machine = replace(machine, nodes=-(-own_size // machine.gpus_per_node))
    size = machine.processors
    recorded = observed_schedule(workload, max(size, own_size))
    rows: list[dict[str, Any]] = [{"policy": "observed", **{name: getattr(recorded, name) for name in _MEASURES}}]
    scenarios = opt.scenarios_of(options, machine, workload, seed=options["seed"])
    for scenario in scenarios:
        with progress_of_run(scenario, notes) as advance:
            summary = scenario.run(progress=advance).summary().as_dict()
        rows.append({"policy": policy_label(scenario.policy), **{name: summary[name] for name in (*_MEASURES, "rejected")}})
    for line in (*_about_machine(workload, size, peak, is_given=is_given), *_remarks(rows, recorded)):
        notes.print(literal(line))
    if as_json:
        print_json(json.dumps(rows, indent=2))
        return
    names = [str(row["policy"]) for row in rows]
    columns = [
        Column(heading, [UNDEFINED if row[name] is None else form.format(row[name]) for row in rows])
        for name, (heading, form) in _MEASURES.items()
    ]
    plain = {name: [row[name] for row in rows] for name in ("policy", *_MEASURES)}
    title = f"{workload.name} on {counted(size, scenarios[0].unit)}"
    print_table(TextTable(title, [Column("policy", names, number=False)], [columns], plain))


def _about_machine(workload: Workload, size: int, peak: int, *, is_given: bool) -> Iterator[str]:
    """Yield where the size of the machine comes from; the report of an import has said it, if it comes from there."""
    unit, own_size = workload.provenance.unit, workload.machine_nodes or peak
    if workload.provenance.report is None or is_given:
        source = "as asked for" if is_given else "by the header of the trace" if workload.machine_nodes else "as none is given"
        yield f"machine: {counted(size, unit)}, {source}; the most in use at the same time were {peak:,} (--nodes)"
        if size < own_size:
            yield f"observed: on {counted(own_size, unit)}, not on {size:,}"


def _remarks(rows: Sequence[Mapping[str, Any]], recorded: Observed) -> Iterator[str]:
    """Yield what the reader of the table should know."""
    if recorded.without_wait:
        yield f"observed: without {counted(recorded.without_wait, 'job')} of unknown wait"
    if rejected := max(row.get("rejected", 0) for row in rows):
        yield f"simulated: {counted(rejected, 'job')} larger than the machine rejected"
    own, *simulated = (row["mean_wait_s"] for row in rows if row["mean_wait_s"] is not None)
    if all(abs(wait - own) > _ALIKE * max(own, 1.0) for wait in simulated):
        yield (
            "observed and simulated mean waits differ by more than 10 %: the model knows no reservations, downtime, "
            "priorities, limits per user and dependencies of the real machine"
        )
