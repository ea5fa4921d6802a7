"""Options that commands share: parameter types, options of traces and machines, and the objects made from their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from clustermodel.errors import SpecificationError
from clustermodel.machine import Checkpointing, Machine, TimeSlicing
from clustermodel.speedup import Speedup, speedup_of
from clustermodel.workload.model import MODEL_JOBS, WorkloadModel
from clustermodel.workload.readers import SWF, read_with, reader_of
from clustermodel.workload.swf import read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale

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


class SpeedupModel(click.ParamType[Speedup]):
    """The parameter type ``linear`` or ``downey:SIGMA``."""

    name = "linear|downey:SIGMA"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Speedup:
        """Parse the text."""
        try:
            return speedup_of(str(value))
        except SpecificationError as problem:
            self.fail(str(problem), param, ctx)


def trace_options(command: Command) -> Command:
    """Add the options for reading and transforming a trace."""
    for option in reversed(
        (
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
            click.option("--scale-interarrival", type=float, default=1.0, help="Multiply the time between submissions."),
            click.option("--scale-run-time", type=float, default=1.0, help="Multiply run times and estimates."),
            click.option("--scale-size", type=float, default=1.0, help="Multiply numbers of processors."),
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


_MACHINE_FIELDS: Final = {
    "kill_at_estimate": ("", "kill_at_estimate"),
    "quantum": ("time_slicing", "quantum_s"),
    "mpl": ("time_slicing", "mpl"),
    "context_switch": ("context_switch", "fraction"),
    "charge": ("context_switch", "charge"),
    "checkpoint": ("checkpointing", "checkpoint_s"),
    "restart": ("checkpointing", "restart_s"),
    "max_migrating_tasks": ("checkpointing", "max_tasks_per_slice"),
    "suspended_per_node": ("", "suspended_per_node"),
}
"""Part and field of the machine that each option of :func:`machine_options` sets."""


def machine_with(machine: Machine, options: Mapping[str, Any]) -> Machine:
    """Return the machine with the values of those of its options that are in ``options``."""
    changes: dict[str, dict[str, Any]] = {"": {}}
    for option, (part, field) in _MACHINE_FIELDS.items():
        if option in options:
            changes.setdefault(part, {})[field] = options[option]
    if "context_switch" in options:
        changes["context_switch"]["seconds"] = None  # the cost is given once
    whole = changes.pop("")
    return replace(machine, **whole, **{part: replace(getattr(machine, part), **values) for part, values in changes.items()})


def given_options(context: click.Context) -> dict[str, Any]:
    """Return the options that the user has given, by name; those left at their defaults are not in it."""
    given = (name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT)
    return {name: context.params[name] for name in given}


def load_workload(
    options: dict[str, Any],
    *,
    trace: Path | None = None,
    model: WorkloadModel | None = None,
    jobs: int | None = None,
    nodes: int | None = None,
    seed: int,
) -> Workload:
    """Return the jobs of the trace, the model or a synthetic year: filtered, rescaled, with the requested estimates."""
    keep = JobFilter(
        window_s=options["window"],
        nodes=options["size"],
        statuses=frozenset(options["status"]) or None,
        users=frozenset(options["user"]) or None,
    )
    run_time, estimates = options["scale_run_time"], options["estimates"]
    scale = LoadScale(interarrival=options["scale_interarrival"], run_time=run_time, size=options["scale_size"])
    reader = SWF if trace is None else reader_of(trace)
    if trace is not None and reader is SWF:
        workload = read_swf(
            trace,
            processors_from=options["processors_from"],
            use_estimates=estimates == "user",
            keep=None if keep == JobFilter() else keep,
            scale=None if scale == LoadScale() else scale,
            lenient=options["lenient"],
        )
    else:
        if trace is not None:
            _require_defaults(options, reader.name, trace)
            workload = read_with(reader, trace)
        elif model is not None:
            # Filters do not use run times, so these may be scaled first: the workload's name then has the factor.
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


def _require_defaults(options: Mapping[str, Any], reader: str, trace: Path) -> None:
    """Refuse options that have a meaning for SWF only."""
    for option, given in (("--lenient", options["lenient"]), ("--processors-from", options["processors_from"] != "allocated")):
        if given:
            raise SpecificationError(f"{option}: only for SWF; {trace} is read as {reader}")
