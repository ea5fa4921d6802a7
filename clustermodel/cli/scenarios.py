"""Scenarios of files and scripts on the command line, and the options that replace values of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from clustermodel.cli.options import machine_with
from clustermodel.errors import SpecificationError
from clustermodel.experiment.scenario import Scenario
from clustermodel.tables import SUFFIX

_OUTPUTS: Final = frozenset(
    {"scenarios", "as_json", "jobs_csv", "jobs_parquet", "stream", "figure", "perfetto", "with_traceback"}
)
"""Parameters that say what becomes of the results; they go with any scenario."""
_OF_WORKLOADS: Final = frozenset(
    {
        "trace",
        "model",
        "jobs",
        "unit",
        "timezone",
        "cluster",
        "processors_from",
        "estimates",
        "lenient",
        "window",
        "size",
        "status",
        "user",
        "feedback",
        "format",
        "default_memory",
        "resample",
    }
    | {"scale_interarrival", "scale_run_time", "scale_size"}
)


def scenarios_of(paths: Sequence[Path], given: Mapping[str, Any]) -> list[Scenario]:
    """Return the scenarios of files or of a script, in order.

    Args:
        paths: scenario files, or one script.
        given: the options that the user has given.  Those of policy, machine and run replace what a file says; several
            policies give a scenario each.

    Raises:
        SpecificationError: a file or the script is not a scenario, or an option is not allowed with it.
    """
    options = {name: value for name, value in given.items() if name not in _OUTPUTS}
    scripts = [path for path in paths if path.suffix.lower() != SUFFIX]
    if scripts:
        if len(paths) > 1:
            raise SpecificationError(f"{scripts[0]}: a script stands alone; several scenarios are {SUFFIX} files")
        if options:
            raise SpecificationError(
                f"{scripts[0]}: {_option(next(iter(options)))}: a script brings its own; only files take it"
            )
        from clustermodel.experiment.script import load_scenarios  # noqa: PLC0415  with all that studies need

        return load_scenarios(scripts[0])
    if of_workloads := [name for name in options if name in _OF_WORKLOADS]:
        option = _option(of_workloads[0])
        raise SpecificationError(f"{paths[0]}: {option}: the jobs are those of the file; change its table [workload]")
    return [scenario for path in paths for scenario in _variants(path, options, several=len(paths) > 1)]


def _variants(path: Path, options: Mapping[str, Any], *, several: bool) -> list[Scenario]:
    """Return the scenario of a file with each of the policies; with ``several`` files labels have the file's name."""
    scenario = Scenario.from_toml(path)
    policies = options.get("policies") or (scenario.policy,)
    changes = {name: options[name] for name in ("seed", "fidelity", "events", "speedup") if name in options}
    machine = scenario.machine
    if "nodes" in options or any(name not in ("policies", *changes) for name in options):
        machine = machine_with(scenario.used_machine, options)
        machine = replace(machine, nodes=options.get("nodes", machine.nodes))
    names = dict.fromkeys(policies, scenario.name or (path.stem if several else ""))
    if len(policies) > 1:
        names = {policy: f"{name} {policy}" if name else "" for policy, name in names.items()}
    return [replace(scenario, policy=policy, machine=machine, name=names[policy], **changes) for policy in policies]


def _option(parameter: str) -> str:
    """Return an option as users write it."""
    return "--policy" if parameter == "policies" else f"--{parameter.replace('_', '-')}"
