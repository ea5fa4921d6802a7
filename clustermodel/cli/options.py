"""Options that commands share: their groups in the help, options of traces and machines, and what is made of their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from clustermodel.errors import OutputError, SpecificationError, did_you_mean, number_meant, quoted
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.settings import machine_with_settings, scenario_with_settings, settings_of
from clustermodel.logs.log_jobs import UNITS
from clustermodel.machine.checkpoints import COUNTS, INTERVALS, RESTART_CHARGES, WRITERS, Checkpointing, CheckpointStore
from clustermodel.machine.context_switch import CHARGES, ContextSwitch
from clustermodel.machine.failure import FailureSource, NodeFailures
from clustermodel.machine.machine import ALLOCATIONS, ON_FAILURES, Machine
from clustermodel.machine.power import Power
from clustermodel.machine.price import Price, read_price
from clustermodel.machine.reservation import Reservation
from clustermodel.machine.time_slicing import AT_EVENTS, TimeSlicing
from clustermodel.policies.registry import make_policy, policy_names
from clustermodel.site.order import ORDERS
from clustermodel.site.site import Site, table_of_site
from clustermodel.text.tables import Place, inline_text, plain
from clustermodel.validation import LONGEST_S
from clustermodel.workload.malleable import Malleable
from clustermodel.workload.speedup import speedup_of
from clustermodel.workload.table import JobSource, Workload
from clustermodel.workload.transforms import SELECTED, JobFilter, LoadScale

if TYPE_CHECKING:
    from clustermodel.workload.swf import SwfStream

Function = TypeVar("Function", bound=Callable[..., Any])
POLICIES: Final = ("fcfs", "easy", "conservative")  # that commands simulate by default
SCALES: Final = ("scale_interarrival", "scale_run_time", "scale_size")
FILE: Final = click.Path(path_type=Path)


# Groups of options in the help


class GroupedCommand(click.Command):
    """A command whose help has a section for each group of options, and which refuses to be given one value twice."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        single = [option for option in order if isinstance(option, click.Option) and not (option.multiple or option.is_flag)]
        if twice := [option for number, option in enumerate(single) if option in single[:number] and not option.count]:
            raise SpecificationError(f"{twice[0].opts[0]} is given more than once; it takes one value")
        return super().parse_args(ctx, args)

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


def option_group(title: str, *options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return a decorator that adds options to a function under a title of their own in the help."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            option(function)
            function.__click_params__[-1].group = title  # type: ignore[attr-defined]  # where click keeps them
        return function

    return add


def completion(names: Callable[[], Sequence[str]]) -> Any:
    """Return what completes the names of an option in shells."""
    return lambda _context, _option, typed: [name for name in names() if name.startswith(typed)]


def names_in_groups(*titles: str) -> set[str]:
    """Return the names of the parameters of the command whose options have one of these titles in the help."""
    params = click.get_current_context().command.params
    return {str(option.name) for option in params if getattr(option, "group", "") in titles}


def option_name(parameter: str) -> str:
    """Return an option as users write it."""
    return "--" + {"policies": "policy", "settings": "set", "reservations": "reservation"}.get(parameter, parameter).replace(
        "_", "-"
    )


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


# Options of several commands

POLICY: Final = option(
    "--policy policies", "Policy as NAME or NAME:key=value,key=value; repeat to compare.  Default: fcfs, easy, conservative.",
    multiple=True, shell_complete=completion(policy_names),
)  # fmt: skip
SITE: Final = option("--site", "Rules of the site, as limits of users: a TOML file (docs/site).", FILE)
ORDER: Final = option("--order", f"Order of the queue: {', '.join(ORDERS)}, with parameters as fair-share:half_life_s=86400.")
RESERVATION: Final = option(
    "--reservation reservations", "Keep nodes free: 0-63,start_s=86400,end_s=90000,every_s=604800,accounts=bio; repeat for "
    "several.  every_s, accounts and users may be left out; all: all nodes.", multiple=True, metavar="NODES,KEY=VALUE,...",
)  # fmt: skip
MALLEABLE: Final = option(
    "--malleable", "Let the size of a share of the jobs change: 0.3,min=0.5x,max=2x,seed=1,users=ann,nodes=4-64,resize_s=60; "
    "repeat for several.  x: multiples of the nodes that a job asks for; all but the share may be left out (docs/malleable).",
    multiple=True, metavar="SHARE,KEY=VALUE,...",
)  # fmt: skip
SPEEDUP: Final = option(
    "--speedup", "How run times depend on the sizes of jobs, where these are not as asked for: linear, or Downey's model.",
    Parsed("linear|downey:SIGMA", speedup_of), "linear",
)  # fmt: skip
SEED: Final = option("--seed", "Root of all random streams.", click.IntRange(min=0), 1)


# Parsing values


def _number(text: str) -> float:
    """Return a number, ``nan`` if the text is none."""
    try:
        return float(text)
    except ValueError:
        return nan


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
    phi = _number(text.removeprefix("phi:")) if text.startswith("phi:") else nan
    if text not in ("user", "run-time") and not 0 <= phi <= 1:
        meant = {"perfect": "run-time", "exact": "run-time"}
        hint = did_you_mean(text, ("user", "run-time", *meant), meant)
        raise ValueError(f"{text!r} is not 'user', 'run-time' or 'phi:VALUE' with a value from 0 to 1, as phi:0.2{hint}")
    return text if isnan(phi) else phi


def _resampled(text: str) -> str | float:
    if text not in ("weeks", "users") and not 0 < _number(text) <= LONGEST_S:
        hint = number_meant(text) or did_you_mean(text, ("weeks", "users"))
        raise ValueError(f"{text!r} is not 'weeks', 'users' or a number of seconds above 0{hint}")
    return text if text in ("weeks", "users") else float(text)


def _checkpoint_interval(text: str) -> str | float:
    if text not in INTERVALS and isnan(_number(text)):
        hint = number_meant(text) or did_you_mean(text, INTERVALS)
        raise ValueError(f"{text!r} is not a number of seconds, 'young', 'daly' or 'own'{hint}")
    return text if text in INTERVALS else float(text)


def _status(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a status of SWF: 0 failed, 1 completed, 5 cancelled") from None


def _of_fields(text: str, value: str) -> dict[str, str]:
    pairs = [[part.strip() for part in pair.partition("=")] for pair in text.split(",")]
    if not all(field and column for field, _, column in pairs):
        raise ValueError(f"{quoted(text)} is not allowed; it must be FIELD={value},FIELD={value},...")
    return {field: column for field, _, column in pairs}


# Traces

log_options: Final = option_group(
    "Logs",
    option("--unit", "sacct, PBS, LSF and SGE: what a node of the simulation is.  auto: cores for LSF, SGE and where the log "
           "shows jobs that share nodes, else nodes.", click.Choice(UNITS), "auto"),
    option("--timezone", "sacct: time zone of the times, as Europe/Paris; default: as they are given, UTC after TZ=UTC sacct."),
    option("--cluster", "sacct: use the jobs of this cluster; default: the one with the most jobs."),
    option("--feedback", "Submit a job that follows another one after the simulated end of that one: further run attempts of "
           "sacct and PBS, jobs with a preceding job of SWF.  Default: at its recorded time.", is_flag=True),
)  # fmt: skip
_OF_TRACES: Final = option_group(
    "Jobs",
    option("--columns", "Read the trace as a CSV table with these columns: submit_s=submit_time,nodes=gpu_num,run_s=duration; "
           "or start_s and end_s for run_s.", Parsed("FIELD=COLUMN,...", partial(_of_fields, value="COLUMN"))),
    option("--units", "Units of columns that are not in seconds or GiB: submit_s=ms,run_s=ms.",
           Parsed("FIELD=UNIT,...", partial(_of_fields, value="UNIT"))),
    option("--format", "Format of the trace: swf, sacct, pbs, lsf, sge, batsim or muri; default: its first lines tell."),
    option("--processors-from", "SWF field with the number of processors; the other field is used where it is missing.",
           click.Choice(["allocated", "requested"]), "allocated"),
    option("--estimates", "Use the users' estimates (a model has none: phi:0.2), the run times, or the phi model of "
           "overestimation, in which a fraction VALUE of the estimates is exact.",
           Parsed("user|run-time|phi:VALUE", _estimates), "user"),
    option("--lenient", "Count and skip malformed lines instead of stopping at one.", is_flag=True),
    option("--window", "Keep jobs submitted in LOW <= t < HIGH seconds.", _interval(float, 0)),
    option("--size", "Keep jobs of LOW to HIGH processors.", _interval(int, 1)),
    option("--status", "Keep jobs of this SWF status, 1 for completed ones; repeat for several.", Parsed("INTEGER", _status),
           multiple=True),
    option("--user", "Keep jobs of this user, a name or a number; repeat for several, here and below.", multiple=True),
    *(option(f"--{name}", f"Keep jobs of this {name}.", multiple=True) for name in SELECTED.values() if name != "user"),
    option("--resample", "Draw the weeks of the trace, its users, or blocks of so many seconds with replacement, by --seed, "
           "after selecting jobs and before scaling.", Parsed("weeks|users|SECONDS", _resampled)),
    option("--scale-interarrival", "Multiply the time between submissions.", float, 1.0),
    option("--scale-run-time", "Multiply run times and estimates.", float, 1.0),
    option("--scale-size", "Multiply numbers of processors.", float, 1.0),
    option("--recorded-shapes", "Let jobs have at most as many nodes as the log has recorded: nodes have several processors.",
           is_flag=True),
    option("--default-memory", "Memory per node of jobs that have none recorded, GiB.", float),
)  # fmt: skip
_READ_BY: Final = ("columns", "units", "unit", "timezone", "cluster", "lenient", "feedback", "format", "processors_from")
# They need all jobs, or are of other formats.
_NOT_FOR_STREAMS: Final = ("units", "unit", "timezone", "cluster", "format", "feedback", "resample", "recorded_shapes")


def trace_options(function: Function) -> Function:
    """Add the options for reading and transforming a trace."""
    return log_options(_OF_TRACES(function))


def _selection(options: Mapping[str, Any]) -> tuple[JobFilter | None, LoadScale | None]:
    """Return the requested filter and factors, ``None`` where all jobs stay as they are."""
    chosen: dict[str, Any] = {field: frozenset(options[name]) or None for field, name in SELECTED.items()}
    statuses = frozenset(options["status"]) or None
    keep = JobFilter(window_s=options["window"], nodes=options["size"], statuses=statuses, **chosen)
    scale = LoadScale(**{name.removeprefix("scale_"): options[name] for name in SCALES})
    return None if keep == JobFilter() else keep, None if scale == LoadScale() else scale


def load_workload(options: Mapping[str, Any], *, waits: bool = False) -> Workload:
    """Return the jobs of the trace, the model or a synthetic year: filtered, rescaled, with the requested estimates.

    With ``waits`` the jobs of a trace keep the recorded waits.
    """
    seed, estimates, drawn = options.get("seed", 1), options["estimates"], options["resample"]
    keep, scale = _selection(options)
    if options.get("trace") is not None:
        from clustermodel.logs.trace_file import read_trace  # noqa: PLC0415  with the readers of all formats

        reading = {name: options[name] for name in _READ_BY} | {"use_estimates": estimates == "user", "waits": waits}
        workload = read_trace(options["trace"], **reading, keep=keep, scale=None if drawn else scale)
        scale = scale if drawn else None
    else:
        sizes = {name: options[name] for name in ("jobs", "nodes") if options[name] is not None}
        if "nodes" in sizes:  # jobs ask for processors
            sizes["nodes"] *= options.get("gpus_per_node") or options.get("processors_per_node") or 1
        if options["model"] is not None:
            from clustermodel.workload.model import MODEL_JOBS, load_model  # noqa: PLC0415

            # Filters do not use run times, so these may be scaled first: the workload's name then has the factor.
            factor, jobs = options["scale_run_time"], sizes.get("jobs", MODEL_JOBS)
            workload = load_model(options["model"]).generate(jobs=jobs, seed=seed, run_time_factor=factor)
            _, scale = _selection({**options, "scale_run_time": 1.0})
        else:
            from clustermodel.workload.synthetic import synthetic_workload  # noqa: PLC0415

            workload = synthetic_workload(seed=seed, **sizes)
        if keep is not None:
            workload = workload.select(keep)
        if estimates == "run-time":
            workload = workload.with_perfect_estimates()
    if drawn is not None:
        workload = workload.resampled(drawn, seed=seed)
    if scale is not None:
        workload = workload.scaled(scale)
    if isinstance(estimates, float):
        workload = workload.with_phi_estimates(phi=estimates, seed=seed)
    if options["recorded_shapes"]:
        workload = workload.with_recorded_shapes()
    return workload if (gib := options["default_memory"]) is None else workload.with_default_memory(gib)


def stream_of(options: Mapping[str, Any], given: Mapping[str, Any]) -> SwfStream:
    """Return a trace in SWF as a stream, filtered and rescaled as the options say, of which ``given`` are the user's."""
    from clustermodel.logs.trace_file import SWF, recognised  # noqa: PLC0415
    from clustermodel.workload.swf import SwfStream  # noqa: PLC0415  with the readers of all formats

    trace, estimates = options["trace"], options["estimates"]
    if refused := [name for name in _NOT_FOR_STREAMS if name in given]:
        raise SpecificationError(f"{option_name(refused[0])}: not allowed with --stream, which reads SWF job by job")
    if isinstance(estimates, float):
        raise SpecificationError("--estimates: phi is not allowed with --stream; it draws the estimates of all jobs at once")
    if (reader := recognised(trace)) not in (SWF, None):
        raise SpecificationError(
            f"--stream: {trace} is read as {reader.name}, but only SWF job by job; 'clustermodel trace import' makes SWF of it"
        )
    keep, scale = _selection(options)
    reading = {name: options[name] for name in ("processors_from", "lenient")} | {"use_estimates": estimates == "user"}
    return SwfStream(trace, **reading, keep=keep, scale=scale, default_memory_gib=options["default_memory"])


# Machines


_ENERGY: Final = "Energy"  # a title in the help
_MACHINE: Final[Mapping[str, Mapping[str, tuple[str, Any, str]]]] = {
    "Machine": {
        "--gpus-per-node": ("gpus_per_node", int, "Processors of a node; jobs ask for these."),
        "--processors-per-node": ("processors_per_node", int, "The same, of nodes with cores."),
        "--allocation": ("allocation", click.Choice(ALLOCATIONS), "Which processors a job gets: any, those with the "
                         "lowest numbers, or those of as few nodes as possible."),
        "--kill-at-estimate/--no-kill-at-estimate": (
            "kill_at_estimate", None, "Kill a job at its wall-time limit, the user's estimate, or let it run on."),
        "--resize-s": ("resize_s", float, "How long a change of the size of a malleable job takes, seconds; default: as long "
                       "as a checkpoint and a restart."),
        "--startup": ("startup_s", float, "How long a job occupies its nodes before it executes, seconds."),
        "--epilog": ("epilog_s", float, "How long a job occupies its nodes after it has executed, seconds."),
        "--node-memory": ("node_memory_gib", float, "Memory of each node, GiB."),
        "--suspended-per-node": ("suspended_per_node", int, "Largest number of suspended tasks in a node's memory."),
        "--round": ("round_s", float, "Length of a round, seconds: preemptive schedulers decide at its multiples only; 0: at "
                    "every event."),
    },
    "Time sharing": {
        "--quantum": ("time_slicing.quantum_s", float, "Length of a time slice, seconds."),
        "--mpl": ("time_slicing.mpl", int, "Multiprogramming level: largest number of gangs on a node."),
        "--at-events": ("time_slicing.at_events", click.Choice(AT_EVENTS), "Cut the running time slice at each arrival "
                        "and end of a job, or keep it."),
        "--context-switch": ("context_switch.fraction", float, "Cost of a context switch as a fraction of the time slice; free "
                             "by default."),
        "--charge": ("context_switch.charge", click.Choice(CHARGES), "Charge nodes for a context switch when their task "
                     "changes, or in every slice."),
    },
    "Checkpoints": {
        "--checkpoint": ("checkpointing.checkpoint_s", float, "Time to checkpoint a gang, seconds."),
        "--restart": ("checkpointing.restart_s", float, "Time to restart a gang, seconds."),
        "--restart-charge": ("checkpointing.restart_charge", click.Choice(RESTART_CHARGES), "Charge a restart when a "
                             "saved job starts; or each running gang after every scheduling cycle, or in every round."),
        "--max-migrating-tasks": ("checkpointing.max_tasks_per_slice", int, "Q: largest number of tasks that migrate in a time "
                                  "slice, or are checkpointed at a time."),
        "--count-migrating": ("checkpointing.counts", click.Choice(COUNTS), "Tasks of a migrating gang that count against "
                              "Q: all; those that move; or those, spread over slices."),
        "--checkpoint-interval": (
            "checkpointing.interval_s", Parsed("SECONDS|young|daly|own", _checkpoint_interval), "Checkpoint each job whenever "
            "it has executed for so many seconds, for the interval of Young or Daly, or for one of its own."),
        "--store-bandwidth": ("checkpointing.store.bandwidth_gib_s", float, "Bandwidth of the checkpoint store, GiB a second, "
                              "which gangs share; an image is as large as the memory."),
        "--store-writers": ("checkpointing.store.writers", click.Choice(WRITERS), "Who writes to a store with a bandwidth "
                            "when several gangs want to."),
    },
    _ENERGY: {
        "--power": ("power", Parsed("busy=WATTS,idle=WATTS", Power.from_text), "What each node draws, by what it does: busy, "
                    "idle, switching, down, off, boot; boot_s is in seconds."),
        "--power-cap-w": ("power_cap_w", float, "What all nodes together may draw at any time, watts; other nodes stay idle."),
        "--idle-off": ("idle_off_s", float, "After how long an idle node is switched off, seconds; it boots for its next job."),
        "--price": ("price.file", click.Path(exists=True, dir_okay=False, path_type=Path), "File of the price of energy over "
                    "time, per kWh: CSV with the columns time_s, price and perhaps carbon, grams per kWh."),
        "--price-every": ("price.every_s", float, "After which time the prices recur, seconds."),
    },
    "Failures": {
        "--node-mtbf": ("failures.mtbf_s", float, "Mean time between the failures of a node, seconds; exponential."),
        "--node-repair": ("failures.repair_s", float, "Time to repair a node that has failed, seconds; 0 by default."),
        "--outages": ("failures.outages", click.Path(exists=True, dir_okay=False, path_type=Path), "File of recorded outages, "
                      "instead of --node-mtbf."),
        "--known-outages": ("failures.known", click.Path(exists=True, dir_okay=False, path_type=Path), "The same, of outages "
                            "that are all known in advance: no job starts that would reach into one."),
        "--on-failure": ("on_failure", click.Choice(ON_FAILURES), "What becomes of a malleable job of which a node fails: "
                         "it waits again, or goes on with its other nodes."),
    },
}  # fmt: skip
"""Options of machines by their title in the help: field, as ``--set`` names it below ``machine``, type and help."""
_PARTS: Final = {
    "": Machine, "time_slicing": TimeSlicing, "context_switch": ContextSwitch, "failures": NodeFailures,
    "checkpointing": Checkpointing, "checkpointing.store": CheckpointStore, "price": Price,
}  # fmt: skip
_SET: Final = option(
    "--set settings", "Set any field of a scenario, by its name in scenario files: machine.time_slicing.quantum_s=60; repeat.",
    multiple=True, metavar="PATH=VALUE",
)  # fmt: skip


def machine_options(function: Function) -> Function:
    """Add the options for a machine beyond its size, each ``None`` for the default of its field, and ``--set``."""
    return _options_of(_MACHINE)(function)


def energy_options(function: Function) -> Function:
    """Add the options of energy, of those for a machine."""
    return _options_of({_ENERGY: _MACHINE[_ENERGY]})(function)


def energy_settings(options: dict[str, Any]) -> dict[str, str]:
    """Take the options of energy out, and return their values as those of ``--set``, for the scenarios of a study."""
    settings = {}
    for name, (path, _, _) in _MACHINE[_ENERGY].items():
        if (value := options.pop(_parameter(name))) is not None:
            value = value.absolute() if isinstance(value, Path) else value
            settings[f"machine.{path}"] = inline_text(plain(value, Place(name, Path())))
    return settings


def _options_of(groups: Mapping[str, Mapping[str, tuple[str, Any, str]]]) -> Callable[[Function], Function]:
    def add(function: Function) -> Function:
        for title, group in reversed(list(groups.items())):
            options = []
            for name, (path, kind, text) in group.items():
                part, _, last = path.rpartition(".")
                own = next((field.default for field in fields(_PARTS[part]) if field.name == last), None)
                shown = text if own in (None, MISSING) else f"{text}  [default: {own}]"
                options.append(click.option(name, help=shown, type=kind, default=None))
            function = option_group(title, *options, *([_SET] if title == "Machine" else []))(function)
        return function

    return add


def _parameter(name: str) -> str:
    return name.partition("/")[0].removeprefix("--").replace("-", "_")


def machine_with(machine: Machine, options: Mapping[str, Any]) -> Machine:
    """Return the machine with the values of its options, then those of ``--set``."""
    changes: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    for name, (path, _, _) in (pair for group in _MACHINE.values() for pair in group.items()):
        if (value := options.get(_parameter(name))) is not None:
            part, _, field = path.rpartition(".")
            changes[part][field] = value
    if "fraction" in changes["context_switch"]:
        changes["context_switch"]["seconds"] = None  # the cost is given once
    whole, store, failures, price = (changes.pop(part) for part in ("", "checkpointing.store", "failures", "price"))
    if price:
        whole["price"] = _price(machine, price)
    if failures:
        whole["failures"] = _failures(machine, failures)
    if store and machine.checkpointing.store is not None:
        changes["checkpointing"]["store"] = replace(machine.checkpointing.store, **store)
    elif store:
        if "bandwidth_gib_s" not in store:
            raise SpecificationError("--store-writers: it needs --store-bandwidth, the bandwidth of the checkpoint store")
        changes["checkpointing"]["store"] = CheckpointStore(**store)
    whole |= {part: replace(getattr(machine, part), **values) for part, values in changes.items() if values}
    return machine_with_settings(replace(machine, **whole), settings_of(options.get("settings", ())))


def _price(machine: Machine, values: dict[str, Any]) -> Price:
    if (file := values.pop("file", None)) is not None:
        return read_price(file, **values)
    if machine.price is None:
        raise SpecificationError("--price-every: it needs --price, the file of the prices")
    return replace(machine.price, **values)


def _failures(machine: Machine, values: dict[str, Any]) -> FailureSource:
    outages, known = (values.pop(name, None) for name in ("outages", "known"))
    if outages is not None and known is not None:
        raise SpecificationError(f"--known-outages: the outages come from --outages {outages}; give one of the two")
    outages = outages or known
    if "mtbf_s" in values and outages is not None:
        raise SpecificationError(f"--node-mtbf: the outages come from --outages {outages}; give one of the two")
    if isinstance(machine.failures, NodeFailures) and outages is None:
        return replace(machine.failures, **values)
    if "repair_s" in values and "mtbf_s" not in values:
        raise SpecificationError("--node-repair: it needs --node-mtbf, the mean time between failures")
    if outages is None:
        return NodeFailures(**{"repair_s": 0.0, **values})
    from clustermodel.machine.recorded_outages import read_outages  # noqa: PLC0415

    return read_outages(outages, known=known is not None)


# Scenarios


def machine_of(options: Mapping[str, Any]) -> tuple[Machine, bool]:
    """Return the machine of a command's options, and whether these say its size; a mistyped policy fails here too."""
    for policy in options["policies"]:
        make_policy(policy)
    nodes, is_set = options["nodes"], "machine.nodes" in settings_of(options["settings"])
    return machine_with(Machine(nodes=1 if nodes is None else nodes), options), nodes is not None or is_set


def require_size(processors: int | None, trace: object) -> int:
    """Return the number of processors that a trace says, if it does."""
    if processors is None:
        raise SpecificationError(f"--nodes: neither MaxProcs nor MaxNodes of {trace} is the size of a machine; give one")
    return processors


def site_of(options: Mapping[str, Any], site: Site | None = None, reservations: Sequence[Reservation] = ()) -> Site | None:
    """Return the rules of ``--site``, or ``site``, with the order of ``--order``, and more reservations and malleable jobs."""
    if options.get("site") is not None:
        site = Site.from_toml(options["site"])
    if texts := options.get("reservations"):
        site = site or Site()
        present = site.reservations or reservations
        site = replace(site, reservations=(*present, *map(Reservation.from_text, texts)))
    if texts := options.get("malleable"):
        site = site or Site()
        site = replace(site, malleable=(*site.malleable, *map(Malleable.from_text, texts)))
    return site if options.get("order") is None else replace(site or Site(), order=options["order"])


def site_settings(site: Site | None) -> dict[str, str]:
    """Return the rules of a site as values of ``--set``, for the scenarios of a study."""
    if site is None:
        return {}
    table = table_of_site(site, Place("--site", Path()))
    return {f"site.{name}": inline_text(value) for name, value in table.items()}


def scenarios_of(options: Mapping[str, Any], machine: Machine, workload: JobSource, **fields: Any) -> list[Scenario]:
    """Return a scenario for each policy."""
    settings, policies = settings_of(options["settings"]), options["policies"] or POLICIES
    if (site := site_of(options)) is not None:
        fields["site"] = site
    scenarios = [Scenario(machine=machine, workload=workload, policy=policy, **fields) for policy in policies]
    return [scenario_with_settings(scenario, settings) for scenario in scenarios]


def require_writable(outputs: Mapping[str, Path | None]) -> None:
    """Refuse outputs that cannot be written, before the runs."""
    for name, path in outputs.items():
        if path is None:
            continue
        option, folder = option_name(name), path if name in ("jobs_csv", "jobs_parquet") else path.parent
        if folder is path and path.suffix in (".csv", ".parquet") and not os.path.isdir(path):  # noqa: PTH112  long names
            must = f"it must be a directory, for a file POLICY{path.suffix} of each policy"
            raise OutputError(f"{option}: {path}: is the name of a file; {must}")
        if folder is path:
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise OutputError(f"{option}: {path}: cannot be made: {problem.strerror}") from None
        elif name in ("perfetto", "write_site") and path.is_dir():
            raise OutputError(f"{option}: {path}: is a directory; it must be a file")
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise OutputError(f"{option}: {folder}: is not a directory that can be written to")
        known = {"figure": ".png, .svg or .pdf", "report": ".html"}.get(name)
        if known and (not path.suffix or path.suffix.lower() not in known):
            raise OutputError(f"{option}: {path}: format {path.suffix!r} is unknown; use {known}")
