"""Options that commands share: parameter types, options of traces and machines, and the objects made from their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from clustermodel.cli.selection import filter_of, scale_of
from clustermodel.errors import SpecificationError, quoted
from clustermodel.failures.failure import FailureSource, NodeFailures
from clustermodel.failures.outages import read_outages
from clustermodel.machine import (
    ALLOCATIONS,
    AT_EVENTS,
    COUNTS,
    INTERVALS,
    RESTART_CHARGES,
    WRITERS,
    Checkpointing,
    CheckpointStore,
    Machine,
    TimeSlicing,
)
from clustermodel.speedup import Speedup, speedup_of
from clustermodel.workload.log_workload import UNITS
from clustermodel.workload.model import MODEL_JOBS, WorkloadModel
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import Unit, checked_unit

Command = TypeVar("Command", bound=Callable[..., Any])


class Interval(click.ParamType[tuple[float, float]]):
    """The parameter type ``LOW:HIGH``; either side may be empty."""

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
    """The parameter type ``user``, ``run-time`` or ``phi:VALUE``; the last becomes its number."""

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


class Resampled(click.ParamType[Unit]):
    """The parameter type ``weeks``, ``users`` or a number of seconds."""

    name = "weeks|users|SECONDS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Unit:
        """Parse the text."""
        try:
            return checked_unit(value if value in ("weeks", "users") else float(value))
        except (ValueError, SpecificationError):
            self.fail(f"{value!r} is not 'weeks', 'users' or a number of seconds above 0", param, ctx)


class CheckpointInterval(click.ParamType[str | float]):
    """The parameter type of a number of seconds, ``young`` or ``daly``."""

    name = "SECONDS|young|daly|own"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """Parse the text."""
        if value in INTERVALS:
            return str(value)
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number of seconds, 'young', 'daly' or 'own'", param, ctx)


class SpeedupModel(click.ParamType[Speedup]):
    """The parameter type ``linear`` or ``downey:SIGMA``."""

    name = "linear|downey:SIGMA"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Speedup:
        """Parse the text."""
        try:
            return speedup_of(str(value))
        except SpecificationError as problem:
            self.fail(str(problem), param, ctx)


def log_options(command: Command) -> Command:
    """Add the options for reading an accounting log of Slurm or PBS, or any trace."""
    for option in reversed(
        (
            click.option(
                "--unit",
                type=click.Choice(UNITS),
                default="auto",
                show_default=True,
                help="sacct, PBS and LSF: what a node of the simulation is.  auto: cores for LSF and where the log shows jobs "
                "that share nodes, else nodes.",
            ),
            click.option(
                "--timezone",
                help="sacct: time zone of the times, as Europe/Paris; default: as they are given, UTC after TZ=UTC sacct.",
            ),
            click.option("--cluster", help="sacct: use the jobs of this cluster; default: the one with the most jobs."),
            click.option(
                "--feedback",
                is_flag=True,
                help="Submit a job that follows another one after the simulated end of that one: further run attempts of sacct "
                "and PBS, jobs with a preceding job of SWF.  Default: at its recorded time.",
            ),
        )
    ):
        command = option(command)
    return command


def trace_options(command: Command) -> Command:
    """Add the options for reading and transforming a trace."""
    command = log_options(command)
    for option in reversed(
        (
            click.option(
                "--columns",
                metavar="FIELD=COLUMN,...",
                callback=_columns,
                help="Read the trace as a CSV table with these columns: submit_s=submit_time,nodes=gpu_num,run_s=duration; or "
                "start_s and end_s for run_s.",
            ),
            click.option("--format", help="Format of the trace: swf, sacct, pbs, lsf or muri; default: its first lines tell."),
            click.option(
                "--processors-from",
                type=click.Choice(["allocated", "requested"]),
                default="allocated",
                show_default=True,
                help="SWF field with the number of processors; the other field is used where it is missing.",
            ),
            click.option(
                "--estimates",
                type=Estimates(),
                default="user",
                show_default=True,
                help="Use the users' estimates (a model has none: phi:0.2), the run times, or the phi model of overestimation, "
                "in which a fraction VALUE of the estimates is exact.",
            ),
            click.option("--lenient", is_flag=True, help="Count and skip malformed lines instead of stopping at one."),
            click.option("--window", type=Interval(float, least=0), help="Keep jobs submitted in LOW <= t < HIGH seconds."),
            click.option("--size", type=Interval(int, least=1), help="Keep jobs of LOW to HIGH processors."),
            click.option("--status", type=int, multiple=True, help="Keep jobs of this SWF status; repeat for several."),
            click.option("--user", type=int, multiple=True, help="Keep jobs of this user number; repeat for several."),
            click.option(
                "--resample",
                type=Resampled(),
                help="Draw the weeks of the trace, its users, or blocks of so many seconds with replacement, by --seed, after "
                "selecting jobs and before scaling.",
            ),
            click.option("--scale-interarrival", type=float, default=1.0, help="Multiply the time between submissions."),
            click.option("--scale-run-time", type=float, default=1.0, help="Multiply run times and estimates."),
            click.option("--scale-size", type=float, default=1.0, help="Multiply numbers of processors."),
            click.option("--default-memory", type=float, help="Memory per node of jobs that have none recorded, GiB."),
        )
    ):
        command = option(command)
    return command


def machine_options(command: Command) -> Command:
    """Add the options for a machine beyond its size, with the defaults of the specifications."""
    slicing, store = TimeSlicing(), Checkpointing()
    for option in reversed(
        (
            click.option(
                "--gpus-per-node", type=int, default=1, show_default=True, help="Processors of a node; jobs ask for these."
            ),
            click.option(
                "--allocation",
                type=click.Choice(ALLOCATIONS),
                default="any",
                show_default=True,
                help="Which processors a job gets: any, those with the lowest numbers, or those of as few nodes as possible.",
            ),
            click.option(
                "--kill-at-estimate/--no-kill-at-estimate",
                default=True,
                show_default=True,
                help="Kill a job at its wall-time limit, the user's estimate, or let it run on.",
            ),
            click.option(
                "--quantum",
                type=float,
                default=slicing.quantum_s,
                show_default=True,
                help="Length of a time slice, seconds, for time-sharing policies.",
            ),
            click.option(
                "--mpl", type=int, default=slicing.mpl, show_default=True, help="Multiprogramming level: most gangs on a node."
            ),
            click.option(
                "--at-events",
                type=click.Choice(AT_EVENTS),
                default=slicing.at_events,
                show_default=True,
                help="End the running time slice at each arrival and end of a job, or keep it.",
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
                help="Charge nodes for a context switch when their task changes, or in every slice.",
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
                "--restart-charge",
                type=click.Choice(RESTART_CHARGES),
                default=store.restart_charge,
                show_default=True,
                help="Charge a restart when a saved job starts; or each running gang after every scheduling cycle, or in every "
                "round.",
            ),
            click.option(
                "--round",
                type=float,
                default=0.0,
                show_default=True,
                help="Length of a round, seconds: preemptive schedulers decide at its multiples only; 0: at every event.",
            ),
            click.option(
                "--max-migrating-tasks",
                type=int,
                help="Most tasks that migrate in a time slice, or are checkpointed at a time (Q); no limit by default.",
            ),
            click.option(
                "--count-migrating",
                type=click.Choice(COUNTS),
                default=store.counts,
                show_default=True,
                help="Tasks of a migrating gang that count against Q: all; those that move; or those, spread over slices.",
            ),
            click.option("--node-memory", type=float, help="Memory of each node, GiB; no limit by default."),
            click.option(
                "--suspended-per-node", type=int, help="Most suspended tasks in a node's memory; no limit by default."
            ),
            click.option(
                "--checkpoint-interval",
                type=CheckpointInterval(),
                help="Checkpoint each job whenever it has executed for so many seconds, for the interval of Young or Daly, or "
                "for one of its own.",
            ),
            click.option(
                "--store-bandwidth",
                type=float,
                help="Bandwidth of the checkpoint store, GiB a second, which gangs share; an image is as large as the memory.",
            ),
            click.option(
                "--store-writers",
                type=click.Choice(WRITERS),
                default=WRITERS[0],
                show_default=True,
                help="Who writes to a store with a bandwidth when several gangs want to.",
            ),
            click.option("--node-mtbf", type=float, help="Mean time between the failures of a node, seconds; exponential."),
            click.option("--node-repair", type=float, help="Time to repair a node that has failed, seconds; 0 by default."),
            click.option(
                "--outages",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                help="File of recorded outages, instead of --node-mtbf.",
            ),
        )
    ):
        command = option(command)
    return command


_MACHINE_FIELDS: Final = {
    "kill_at_estimate": ("", "kill_at_estimate"),
    "quantum": ("time_slicing", "quantum_s"),
    "mpl": ("time_slicing", "mpl"),
    "at_events": ("time_slicing", "at_events"),
    "context_switch": ("context_switch", "fraction"),
    "charge": ("context_switch", "charge"),
    "checkpoint": ("checkpointing", "checkpoint_s"),
    "restart": ("checkpointing", "restart_s"),
    "restart_charge": ("checkpointing", "restart_charge"),
    "round": ("", "round_s"),
    "gpus_per_node": ("", "gpus_per_node"),
    "allocation": ("", "allocation"),
    "checkpoint_interval": ("checkpointing", "interval_s"),
    "max_migrating_tasks": ("checkpointing", "max_tasks_per_slice"),
    "count_migrating": ("checkpointing", "counts"),
    "node_memory": ("", "node_memory_gib"),
    "suspended_per_node": ("", "suspended_per_node"),
}
"""Part and field of the machine that each option of :func:`machine_options` sets."""
_OF_FAILURES: Final = ("node_mtbf", "node_repair", "outages")
_OF_THE_STORE: Final = ("store_bandwidth", "store_writers")


def machine_with(machine: Machine, options: Mapping[str, Any]) -> Machine:
    """Return the machine with the values of those of its options that are in ``options``."""
    changes: dict[str, dict[str, Any]] = {"": {}}
    for option, (part, field) in _MACHINE_FIELDS.items():
        if option in options:
            changes.setdefault(part, {})[field] = options[option]
    if "context_switch" in options:
        changes["context_switch"]["seconds"] = None  # the cost is given once
    whole = changes.pop("")
    if any(option in options for option in _OF_THE_STORE):
        changes.setdefault("checkpointing", {})["store"] = _store({option: options.get(option) for option in _OF_THE_STORE})
    if any(option in options for option in _OF_FAILURES):
        whole["failures"] = _failures({option: options.get(option) for option in _OF_FAILURES})
    return replace(machine, **whole, **{part: replace(getattr(machine, part), **values) for part, values in changes.items()})


def _store(options: dict[str, Any]) -> CheckpointStore | None:
    """Return the checkpoint store specified by the options, ``None`` if it has no bandwidth."""
    bandwidth, writers = options["store_bandwidth"], options["store_writers"]
    if bandwidth is None:
        if writers is not None and writers != WRITERS[0]:
            raise SpecificationError("--store-writers: it needs --store-bandwidth, the bandwidth of the checkpoint store")
        return None
    return CheckpointStore(bandwidth_gib_s=bandwidth, writers=writers or WRITERS[0])


def _columns(_context: click.Context, _option: click.Parameter, text: str | None) -> dict[str, str] | None:
    """Return the columns of a table by field."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    if any(not (field.strip() and column.strip()) for field, _, column in pairs):
        raise SpecificationError(f"--columns: {quoted(text)} is not allowed; it must be FIELD=COLUMN,FIELD=COLUMN,...")
    return {field.strip(): column.strip() for field, _, column in pairs}


def given_options(context: click.Context) -> dict[str, Any]:
    """Return the options that the user has given, by name; those left at their defaults are not in it."""
    default = ParameterSource.DEFAULT
    return {name: value for name, value in context.params.items() if context.get_parameter_source(name) is not default}


def _failures(options: dict[str, Any]) -> FailureSource | None:
    """Return the failures specified by the options, ``None`` if nodes never fail."""
    mtbf_s, repair_s, outages = options["node_mtbf"], options["node_repair"], options["outages"]
    if mtbf_s is not None and outages is not None:
        raise SpecificationError(f"--node-mtbf: the outages come from --outages {outages}; give one of the two")
    if repair_s is not None and mtbf_s is None:
        raise SpecificationError("--node-repair: it needs --node-mtbf, the mean time between failures")
    if outages is not None:
        return read_outages(outages)
    return None if mtbf_s is None else NodeFailures(mtbf_s=mtbf_s, repair_s=repair_s or 0.0)


def load_workload(
    options: dict[str, Any],
    *,
    trace: Path | None = None,
    model: WorkloadModel | None = None,
    jobs: int | None = None,
    nodes: int | None = None,
    seed: int,
    waits: bool = False,
) -> Workload:
    """Return the jobs of the trace, the model or a synthetic year: filtered, rescaled, with the requested estimates.

    With ``waits`` the jobs of a trace keep the recorded waits.
    """
    run_time, estimates, keep, scale = options["scale_run_time"], options["estimates"], filter_of(options), scale_of(options)
    drawn: Unit | None = options["resample"]
    if trace is not None:
        from clustermodel.workload.trace_file import read_trace  # noqa: PLC0415  with the readers of all formats

        workload = read_trace(
            trace,
            columns=options.get("columns"),
            unit=options["unit"],
            timezone=options["timezone"],
            cluster=options["cluster"],
            processors_from=options["processors_from"],
            use_estimates=estimates == "user",
            keep=keep,
            scale=scale if drawn is None else None,
            lenient=options["lenient"],
            feedback=options["feedback"],
            waits=waits,
            format=options["format"],
        )
    else:
        if model is not None:
            # Filters do not use run times, so these may be scaled first: the workload's name then has the factor.
            workload = model.generate(jobs=MODEL_JOBS if jobs is None else jobs, seed=seed, run_time_factor=run_time)
            scale = scale_of(options, run_time=1.0)
        else:
            given = {"jobs": jobs, "nodes": nodes}
            workload = synthetic_workload(seed=seed, **{name: value for name, value in given.items() if value is not None})
        if keep is not None:
            workload = workload.select(keep)
        if estimates == "run-time":
            workload = workload.with_perfect_estimates()
    if drawn is not None:
        workload = workload.resampled(drawn, seed=seed)
    if scale is not None and (trace is None or drawn is not None):  # otherwise the reader has scaled it
        workload = workload.scaled(scale)
    if isinstance(estimates, float):
        workload = workload.with_phi_estimates(phi=estimates, seed=seed)
    return workload if (gib := options["default_memory"]) is None else workload.with_default_memory(gib)
