"""Options that commands share: their groups in the help, options of traces and machines, and what is made of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.settings import machine_with_settings, settings_of
from clustermodel.failures.failure import FailureSource, NodeFailures
from clustermodel.failures.recorded_outages import read_outages
from clustermodel.machine import COUNTS, INTERVALS, RESTART_CHARGES, WRITERS, Checkpointing, CheckpointStore, Machine
from clustermodel.policies.registry import policy_names
from clustermodel.workload.log_workload import UNITS
from clustermodel.workload.model import MODEL_JOBS, WorkloadModel
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale, Unit, checked_unit

if TYPE_CHECKING:
    from clustermodel.workload.swf import SwfStream

Function = TypeVar("Function", bound=Callable[..., Any])
POLICIES: Final = ("fcfs", "easy", "conservative")
"""Policies that commands simulate by default."""
SCALES: Final = ("scale_interarrival", "scale_run_time", "scale_size")
FILE: Final = click.Path(path_type=Path)


# Groups of options in the help


class GroupedCommand(click.Command):
    """A command whose help has a section for each group of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None:
                groups.setdefault(getattr(option, "group", "Other options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def option(name: str, help: str, type: Any = None, default: Any = None, **more: Any) -> Callable[[Any], Any]:
    """Return the decorator of an option whose help shows its default, if it has one."""
    if default is not None:
        more |= {"default": default, "show_default": True}
    return click.option(*name.split(), help=help, type=type, **more)


POLICY: Final = option(
    "--policy policies",
    "Policy as NAME or NAME:key=value,key=value; repeat to compare.  Default: fcfs, easy, conservative.",
    multiple=True,
    shell_complete=lambda _context, _option, typed: [name for name in policy_names() if name.startswith(typed)],
)
SEED: Final = option("--seed", "Root of all random streams.", click.IntRange(min=0), 1)


def option_group(title: str, *options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return a decorator that adds options to a function under a title of their own in the help."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            option(function)
            function.__click_params__[-1].group = title  # type: ignore[attr-defined]  # where click keeps them
        return function

    return add


def given_options(context: click.Context) -> dict[str, Any]:
    """Return the options that the user has given, by name; those left at their defaults are not in it."""
    default = ParameterSource.DEFAULT
    return {name: value for name, value in context.params.items() if context.get_parameter_source(name) is not default}


def names_in_groups(context: click.Context, *titles: str) -> set[str]:
    """Return the names of the parameters whose options have one of these titles in the help."""
    return {str(option.name) for option in context.command.params if getattr(option, "group", "") in titles}


def option_name(parameter: str) -> str:
    """Return an option as users write it."""
    return "--" + {"policies": "policy", "settings": "set"}.get(parameter, parameter).replace("_", "-")


# Types of values


class Parsed(click.ParamType[Any]):
    """A parameter type whose values a function makes of a text; it raises ``ValueError`` for a text that is not allowed."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


def _number(text: str, allowed: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not {allowed}") from None


def _interval(number: type[int] | type[float], least: float) -> Parsed:
    def parse(text: str) -> tuple[float, float]:
        low, colon, high = text.partition(":")
        try:
            if not colon:
                raise ValueError
            return number(low or least), number(high or 10**12)
        except ValueError:
            raise ValueError(f"{text!r} is not LOW:HIGH, two numbers of which either may be left out") from None

    return Parsed("LOW:HIGH", parse)


def _estimates(text: str) -> str | float:
    if text in ("user", "run-time"):
        return text
    model, _, phi = text.partition(":")
    try:
        if model != "phi" or not 0 <= float(phi) <= 1:
            raise ValueError
    except ValueError:
        raise ValueError(f"{text!r} is not 'user', 'run-time' or 'phi:VALUE' with a value from 0 to 1, as phi:0.2") from None
    return float(phi)


def _resampled(text: str) -> Unit:
    allowed = "'weeks', 'users' or a number of seconds above 0"
    try:
        return checked_unit(cast("Unit", text) if text in ("weeks", "users") else _number(text, allowed))
    except SpecificationError:
        raise ValueError(f"{text!r} is not {allowed}") from None


def _checkpoint_interval(text: str) -> str | float:
    return text if text in INTERVALS else _number(text, "a number of seconds, 'young', 'daly' or 'own'")


def _columns(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if any(not (field.strip() and column.strip()) for field, _, column in pairs):
        raise SpecificationError(f"{quoted(text)} is not allowed; it must be FIELD=COLUMN,FIELD=COLUMN,...")
    return {field.strip(): column.strip() for field, _, column in pairs}


# Traces

log_options: Final = option_group(
    "Logs",
    option(
        "--unit",
        "sacct, PBS and LSF: what a node of the simulation is.  auto: cores for LSF and where the log shows jobs that share "
        "nodes, else nodes.",
        click.Choice(UNITS),
        "auto",
    ),
    option("--timezone", "sacct: time zone of the times, as Europe/Paris; default: as they are given, UTC after TZ=UTC sacct."),
    option("--cluster", "sacct: use the jobs of this cluster; default: the one with the most jobs."),
    option(
        "--feedback",
        "Submit a job that follows another one after the simulated end of that one: further run attempts of sacct and PBS, "
        "jobs with a preceding job of SWF.  Default: at its recorded time.",
        is_flag=True,
    ),
)
"""Options for reading an accounting log of Slurm, PBS or LSF, or any trace."""

_OF_TRACES: Final = option_group(
    "Jobs",
    option(
        "--columns",
        "Read the trace as a CSV table with these columns: submit_s=submit_time,nodes=gpu_num,run_s=duration; or start_s and "
        "end_s for run_s.",
        Parsed("FIELD=COLUMN,...", _columns),
    ),
    option("--format", "Format of the trace: swf, sacct, pbs, lsf or muri; default: its first lines tell."),
    option(
        "--processors-from",
        "SWF field with the number of processors; the other field is used where it is missing.",
        click.Choice(["allocated", "requested"]),
        "allocated",
    ),
    option(
        "--estimates",
        "Use the users' estimates (a model has none: phi:0.2), the run times, or the phi model of overestimation, in which a "
        "fraction VALUE of the estimates is exact.",
        Parsed("user|run-time|phi:VALUE", _estimates),
        "user",
    ),
    option("--lenient", "Count and skip malformed lines instead of stopping at one.", is_flag=True),
    option("--window", "Keep jobs submitted in LOW <= t < HIGH seconds.", _interval(float, 0)),
    option("--size", "Keep jobs of LOW to HIGH processors.", _interval(int, 1)),
    option("--status", "Keep jobs of this SWF status; repeat for several.", int, multiple=True),
    option("--user", "Keep jobs of this user number; repeat for several.", int, multiple=True),
    option(
        "--resample",
        "Draw the weeks of the trace, its users, or blocks of so many seconds with replacement, by --seed, after selecting "
        "jobs and before scaling.",
        Parsed("weeks|users|SECONDS", _resampled),
    ),
    option("--scale-interarrival", "Multiply the time between submissions.", float, 1.0),
    option("--scale-run-time", "Multiply run times and estimates.", float, 1.0),
    option("--scale-size", "Multiply numbers of processors.", float, 1.0),
    option("--default-memory", "Memory per node of jobs that have none recorded, GiB.", float),
)


def trace_options(function: Function) -> Function:
    """Add the options for reading and transforming a trace."""
    return log_options(_OF_TRACES(function))


def filter_of(options: Mapping[str, Any]) -> JobFilter | None:
    """Return the requested filter, ``None`` for all jobs."""
    keep = JobFilter(
        window_s=options["window"],
        nodes=options["size"],
        statuses=frozenset(options["status"]) or None,
        users=frozenset(options["user"]) or None,
    )
    return None if keep == JobFilter() else keep


def scale_of(options: Mapping[str, Any]) -> LoadScale | None:
    """Return the requested factors, ``None`` if all are one."""
    interarrival, run_time, size = (options[name] for name in SCALES)
    scale = LoadScale(interarrival=interarrival, run_time=run_time, size=size)
    return None if scale == LoadScale() else scale


def load_workload(
    options: Mapping[str, Any],
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
    estimates, keep, scale = options["estimates"], filter_of(options), scale_of(options)
    drawn: Unit | None = options["resample"]
    if trace is not None:
        from clustermodel.workload.trace_file import read_trace  # noqa: PLC0415  with the readers of all formats

        workload = read_trace(
            trace,
            **{name: options[name] for name in ("columns", "unit", "timezone", "cluster", "lenient", "feedback", "format")},
            processors_from=options["processors_from"],
            use_estimates=estimates == "user",
            keep=keep,
            scale=scale if drawn is None else None,
            waits=waits,
        )
    else:
        if model is not None:
            # Filters do not use run times, so these may be scaled first: the workload's name then has the factor.
            run_time = options["scale_run_time"]
            workload = model.generate(jobs=MODEL_JOBS if jobs is None else jobs, seed=seed, run_time_factor=run_time)
            scale = scale_of({**options, "scale_run_time": 1.0})
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


_NOT_FOR_STREAMS: Final = ("unit", "timezone", "cluster", "format", "feedback", "resample")
"""Options that need the whole trace, or are of other formats."""


def stream_of(trace: Path, options: Mapping[str, Any], given: Mapping[str, Any]) -> SwfStream:
    """Return a trace in SWF as a stream, filtered and rescaled as the options say, of which ``given`` are the user's."""
    from clustermodel.workload.swf import SwfStream  # noqa: PLC0415  with the readers of all formats
    from clustermodel.workload.trace_file import SWF, recognised  # noqa: PLC0415

    for name in _NOT_FOR_STREAMS:
        if name in given:
            raise SpecificationError(f"{option_name(name)}: not allowed with --stream, which reads SWF job by job")
    estimates = options["estimates"]
    if isinstance(estimates, float):
        raise SpecificationError("--estimates: phi is not allowed with --stream; it draws the estimates of all jobs at once")
    if (reader := recognised(trace)) not in (SWF, None):
        raise SpecificationError(
            f"--stream: {trace} is read as {reader.name}, but only SWF job by job; 'clustermodel trace import' makes SWF of it"
        )
    return SwfStream(
        trace,
        processors_from=options["processors_from"],
        use_estimates=estimates == "user",
        keep=filter_of(options),
        scale=scale_of(options),
        lenient=options["lenient"],
        default_memory_gib=options["default_memory"],
    )


# Machines


class _Field(NamedTuple):
    """An option that sets a field of the machine; type and default are those of the field."""

    option: str
    path: str
    """The field, as scenario files and ``--set`` name it below ``machine``."""
    help: str
    type: Any = None
    """Where the annotation of the field does not say all."""


_OUTAGES: Final = "failures.outages"
MACHINE_FIELDS: Final[Mapping[str, Sequence[_Field]]] = {
    "Machine": (
        _Field("--gpus-per-node", "gpus_per_node", "Processors of a node; jobs ask for these."),
        _Field(
            "--allocation",
            "allocation",
            "Which processors a job gets: any, those with the lowest numbers, or those of as few nodes as possible.",
        ),
        _Field(
            "--kill-at-estimate/--no-kill-at-estimate",
            "kill_at_estimate",
            "Kill a job at its wall-time limit, the user's estimate, or let it run on.",
        ),
        _Field("--node-memory", "node_memory_gib", "Memory of each node, GiB."),
        _Field("--suspended-per-node", "suspended_per_node", "Largest number of suspended tasks in a node's memory."),
        _Field(
            "--round",
            "round_s",
            "Length of a round, seconds: preemptive schedulers decide at its multiples only; 0: at every event.",
        ),
    ),
    "Time sharing": (
        _Field("--quantum", "time_slicing.quantum_s", "Length of a time slice, seconds."),
        _Field("--mpl", "time_slicing.mpl", "Multiprogramming level: largest number of gangs on a node."),
        _Field(
            "--at-events", "time_slicing.at_events", "Cut the running time slice at each arrival and end of a job, or keep it."
        ),
        _Field(
            "--context-switch",
            "context_switch.fraction",
            "Cost of a context switch as a fraction of the time slice; free by default.",
        ),
        _Field(
            "--charge",
            "context_switch.charge",
            "Charge nodes for a context switch when their task changes, or in every slice.",
        ),
    ),
    "Checkpoints": (
        _Field("--checkpoint", "checkpointing.checkpoint_s", "Time to checkpoint a gang, seconds."),
        _Field("--restart", "checkpointing.restart_s", "Time to restart a gang, seconds."),
        _Field(
            "--restart-charge",
            "checkpointing.restart_charge",
            "Charge a restart when a saved job starts; or each running gang after every scheduling cycle, or in every round.",
            click.Choice(RESTART_CHARGES),
        ),
        _Field(
            "--max-migrating-tasks",
            "checkpointing.max_tasks_per_slice",
            "Q: largest number of tasks that migrate in a time slice, or are checkpointed at a time.",
        ),
        _Field(
            "--count-migrating",
            "checkpointing.counts",
            "Tasks of a migrating gang that count against Q: all; those that move; or those, spread over slices.",
            click.Choice(COUNTS),
        ),
        _Field(
            "--checkpoint-interval",
            "checkpointing.interval_s",
            "Checkpoint each job whenever it has executed for so many seconds, for the interval of Young or Daly, or for one "
            "of its own.",
            Parsed("SECONDS|young|daly|own", _checkpoint_interval),
        ),
        _Field(
            "--store-bandwidth",
            "checkpointing.store.bandwidth_gib_s",
            "Bandwidth of the checkpoint store, GiB a second, which gangs share; an image is as large as the memory.",
        ),
        _Field(
            "--store-writers",
            "checkpointing.store.writers",
            "Who writes to a store with a bandwidth when several gangs want to.",
            click.Choice(WRITERS),
        ),
    ),
    "Failures": (
        _Field("--node-mtbf", "failures.mtbf_s", "Mean time between the failures of a node, seconds; exponential."),
        _Field("--node-repair", "failures.repair_s", "Time to repair a node that has failed, seconds; 0 by default."),
        _Field(
            "--outages",
            _OUTAGES,
            "File of recorded outages, instead of --node-mtbf.",
            click.Path(exists=True, dir_okay=False, path_type=Path),
        ),
    ),
}
"""The options of machines by their title in the help; ``--set`` sets all other fields."""

_KINDS: Final[Mapping[str, type]] = {"failures": NodeFailures, "store": CheckpointStore}
"""What is made of parts that a machine need not have."""


def _option_of(field: _Field) -> Callable[[Any], Any]:
    """Return the click option of a field; its default is ``None``, for the field's own, which the help shows."""
    if field.path == _OUTAGES:
        return option(field.option, field.help, field.type)
    kind: Any = Machine
    *parts, name = field.path.split(".")
    for part in parts:
        kind = _KINDS.get(part) or get_type_hints(kind)[part]
    hint = get_type_hints(kind)[name]
    if get_origin(hint) is UnionType:
        hint = next(one for one in get_args(hint) if one is not NoneType)
    own = next(known.default for known in fields(kind) if known.name == name)
    text = field.help if own is MISSING or own is None else f"{field.help}  [default: {own}]"
    if hint is bool:
        return click.option(field.option, default=None, help=text)
    return option(field.option, text, field.type or (click.Choice(get_args(hint)) if get_origin(hint) is Literal else hint))


_SET: Final = option(
    "--set settings",
    "Set any field of a scenario, by its name in scenario files: machine.time_slicing.quantum_s=60; repeat.",
    multiple=True,
    metavar="PATH=VALUE",
)


def machine_options(function: Function) -> Function:
    """Add the options for a machine beyond its size, and ``--set``."""
    groups = {title: [_option_of(field) for field in group] for title, group in MACHINE_FIELDS.items()}
    groups["Machine"].append(_SET)
    for title, options in reversed(groups.items()):
        function = option_group(title, *options)(function)
    return function


def machine_with(machine: Machine, options: Mapping[str, Any]) -> Machine:
    """Return the machine with the values of its options, then those of ``--set``.

    Raises:
        SpecificationError: a value is not allowed.
    """
    changes: dict[str, Any] = {}
    for field in (field for group in MACHINE_FIELDS.values() for field in group):
        if (value := options.get(_parameter(field))) is not None:
            *parts, name = field.path.split(".")
            part = changes
            for key in parts:
                part = part.setdefault(key, {})
            part[name] = value
    if "fraction" in changes.get("context_switch", {}):
        changes["context_switch"]["seconds"] = None  # the cost is given once
    if failures := changes.pop("failures", None):
        changes["failures"] = _failures(machine, failures)
    if store := changes.get("checkpointing", {}).pop("store", None):
        changes["checkpointing"]["store"] = _store(machine.checkpointing, store)
    for name, values in changes.items():
        if isinstance(values, dict):
            changes[name] = replace(getattr(machine, name), **values)
    return machine_with_settings(replace(machine, **changes), settings_of(options.get("settings", ())))


def _parameter(field: _Field) -> str:
    return field.option.partition("/")[0].removeprefix("--").replace("-", "_")


def _store(checkpointing: Checkpointing, values: Mapping[str, Any]) -> CheckpointStore:
    if checkpointing.store is not None:
        return replace(checkpointing.store, **values)
    if "bandwidth_gib_s" not in values:
        raise SpecificationError("--store-writers: it needs --store-bandwidth, the bandwidth of the checkpoint store")
    return CheckpointStore(**values)


def _failures(machine: Machine, values: dict[str, Any]) -> FailureSource:
    outages = values.pop("outages", None)
    if "mtbf_s" in values and outages is not None:
        raise SpecificationError(f"--node-mtbf: the outages come from --outages {outages}; give one of the two")
    if isinstance(machine.failures, NodeFailures) and outages is None:
        return replace(machine.failures, **values)
    if "repair_s" in values and "mtbf_s" not in values:
        raise SpecificationError("--node-repair: it needs --node-mtbf, the mean time between failures")
    return NodeFailures(**{"repair_s": 0.0, **values}) if outages is None else read_outages(outages)
