"""Fields of scenarios set by their dotted names in scenario files: ``--set machine.time_slicing.quantum_s=60``."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.scenario import Scenario
from clustermodel.machine.machine import Machine
from clustermodel.workload.table import JobSource


def settings_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--set`` by name."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not all(part.isidentifier() for part in name.split(".")):
            raise SpecificationError(f"--set: {text!r} is not allowed; it must be NAME=VALUE")
        settings[name] = value
    return settings


def scenario_with_settings(scenario: Scenario, settings: Mapping[str, str]) -> Scenario:
    """Return a scenario with other values of some of its fields, as texts by the dotted keys of files; its jobs stay."""
    if not settings:
        return scenario
    known = {field.name for field in fields(scenario)}
    changed = {path.partition(".")[0] for path in settings} & known
    if "workload" in changed:
        raise SpecificationError("--set: workload: not allowed; options of the trace or the model say what the jobs are")
    import tomllib  # noqa: PLC0415  few runs have settings

    import tomlkit  # noqa: PLC0415  the same

    # Fields of which a part changes are written as a file and read again, beside any jobs, which are not looked at.
    kept = {path.partition(".")[0]: None for path in settings if "." in path}
    values = {name: getattr(scenario, name) for name in kept if name in known}
    if "machine" in values or "site" in changed:  # a site has partitions of its machine
        values["machine"] = scenario.used_machine
    table = tomllib.loads(Scenario(workload=_any_jobs(), **values).to_toml())
    for path, text in settings.items():
        _set(table, path, text)
    try:
        read = Scenario.from_toml(tomlkit.dumps(table))
    except SpecificationError as problem:
        raise SpecificationError(f"--set: {str(problem).removeprefix('scenario: ')}") from None
    return replace(scenario, **{name: getattr(read, name) for name in changed})


def machine_with_settings(machine: Machine, settings: Mapping[str, str]) -> Machine:
    """Return a machine with the values of those settings that begin with ``machine.``."""
    own = {path: text for path, text in settings.items() if path.startswith("machine.")}
    if not own:
        return machine
    return scenario_with_settings(Scenario(machine=machine, workload=_any_jobs()), own).used_machine


def _set(table: dict[str, Any], path: str, text: str) -> None:
    *parts, name = path.split(".")
    part: Any = table
    for number, key in enumerate(parts, start=1):
        part = part.setdefault(key, {})
        if not isinstance(part, dict):
            whole = ".".join(parts[:number])
            raise SpecificationError(f"--set: {path}: not allowed; {whole} is {quoted(part)}, which has no fields")
    if text.lower() == "none":  # the field's default
        part.pop(name, None)
        return
    import tomllib  # noqa: PLC0415

    try:
        read = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        read = {}
    part[name] = read["value"] if len(read) == 1 else text


def _any_jobs() -> JobSource:
    from clustermodel.workload.synthetic import synthetic_workload  # noqa: PLC0415

    return synthetic_workload(jobs=2, nodes=1)
