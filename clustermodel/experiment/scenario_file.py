"""Scenarios as TOML files: reading the fields of a scenario, and writing them; docs/scenario_files describes the keys.

A file is data: nothing that it names is imported, except the code of this package and of installed plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clustermodel.errors import quoted, shown
from clustermodel.failures.failure import FailureSource, NodeFailures
from clustermodel.failures.outages import Outages, read_outages
from clustermodel.machine import Checkpointing, CheckpointStore, ContextSwitch, Machine, TimeSlicing
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import require_no_module
from clustermodel.speedup import LINEAR, DowneySpeedup, Speedup, speedup_of
from clustermodel.tables import SUFFIX, Place, made, placed, plain, read_file, read_text, table_at, text_of_table
from clustermodel.workload.table import JobSource
from clustermodel.workload.workload_tables import table_of_workload, workload_from

if TYPE_CHECKING:
    from clustermodel.experiment.scenario import Scenario

TEXT: Final = "scenario"
"""How messages name a text that is in no file."""
_PARTS: Final = {"time_slicing": TimeSlicing, "context_switch": ContextSwitch, "checkpointing": Checkpointing}
_STORE: Final = "store"
_POLICY_NAME: Final = "name"
_OUTAGES: Final = "outages"
_Scenario = TypeVar("_Scenario")


def scenario_from(make: Callable[..., _Scenario], source: str | PathLike[str]) -> _Scenario:
    """Return the scenario that a file or a text describes.

    Args:
        make: the class of scenarios.
        source: a path, or the text itself, which has a line break or an equals sign.

    Raises:
        SpecificationError: the file cannot be read, is not TOML, or has a key or a value that is not allowed.
    """
    if isinstance(source, str) and ("\n" in source or "=" in source):
        place = Place(TEXT, Path())
        table = read_text(source, place)
    else:
        table, place = read_file(Path(source))
    values = {key: _READERS[key](value, place.at(key)) if key in _READERS else value for key, value in table.items()}
    if "workload" not in values:
        raise place.at("workload").error("is missing; a scenario has a table [workload]")
    return made(make, values, place)


def _machine_from(value: object, place: Place) -> Machine:
    table, place = table_at(value, place, "a machine")
    parts = {}
    for key, kind in _PARTS.items():
        if key in table:
            part, at = table_at(table[key], place.at(key), f"a {kind.__name__}")
            if _STORE in part and kind is Checkpointing:
                store, at_store = table_at(part[_STORE], at.at(_STORE), f"a {CheckpointStore.__name__}")
                part = {**part, _STORE: made(CheckpointStore, store, at_store)}
            parts[key] = made(kind, part, at)
    if "failures" in table:
        parts["failures"] = _failures_from(table["failures"], place.at("failures"))
    return made(Machine, {**table, **parts}, place)


def _failures_from(value: object, place: Place) -> FailureSource:
    """Return the failures that a table describes: random ones, recorded ones, or a file of recorded ones."""
    table, place = table_at(value, place, "NodeFailures or Outages")
    if _OUTAGES in table:
        file = table[_OUTAGES]
        if not isinstance(file, str):
            raise place.at(_OUTAGES).refused(file, "the name of a file")
        others = {key: one for key, one in table.items() if key != _OUTAGES}
        return made(read_outages, others, place, path=place.folder / file)
    kind: Callable[..., FailureSource] = Outages if "down_s" in table else NodeFailures
    return made(kind, table, place)


def _policy_from(value: object, place: Place) -> str:
    """Return the text of a policy: a text, a table with its name and parameters, or a file with such a table."""
    if isinstance(value, str) and not value.endswith(SUFFIX):
        placed(lambda: require_no_module(value), place, ())
        return value
    table, place = table_at(value, place, "a policy")
    name = table.get(_POLICY_NAME)
    if not isinstance(name, str):
        raise place.at(_POLICY_NAME).error(
            "is missing" if name is None else f"{quoted(name)} is not allowed; it must be a text"
        )
    settings = []
    for key, setting in table.items():
        if key == _POLICY_NAME:
            continue
        if not isinstance(setting, bool | int | float | str) or "," in str(setting):
            raise place.at(key).refused(setting, "a number, a text without commas, true or false")
        settings.append(f"{key}={str(setting).lower() if isinstance(setting, bool) else setting}")
    text = f"{name}:{','.join(settings)}" if settings else name
    placed(lambda: require_no_module(text), place, ())
    return text


def _speedup_from(value: object, place: Place) -> Speedup:
    if isinstance(value, str):
        return placed(lambda: speedup_of(value), place, ())
    if not isinstance(value, Mapping):
        raise place.refused(value, "'linear', 'downey:SIGMA', or a table with sigma and parallelism")
    return made(DowneySpeedup, value, place)


def _workloads_from(value: object, place: Place) -> JobSource | tuple[JobSource, ...]:
    if isinstance(value, list):
        return tuple(workload_from(one, place.at(number)) for number, one in enumerate(value))
    return workload_from(value, place)


_READERS: Final[dict[str, Callable[[Any, Place], object]]] = {
    "machine": _machine_from,
    "policy": _policy_from,
    "speedup": _speedup_from,
    "workload": _workloads_from,
}
"""How the values of keys are read that are no single values."""


def text_of(scenario: Scenario, folder: Path) -> str:
    """Return the TOML text of a scenario; paths of traces are relative to ``folder`` unless they are absolute.

    Raises:
        SpecificationError: a file cannot describe the policy, the speedup model or a workload.
    """
    place = Place("Scenario.to_toml", folder)
    values: dict[str, Any] = {
        field.name: getattr(scenario, field.name) for field in fields(scenario) if field.name not in _WRITERS
    }
    table = {"name": values.pop("name")} if values["name"] else {}
    values.pop("name", None)
    table |= {"policy": _policy_text(scenario.policy, place.at("policy")), **plain(values, place)}
    table["speedup"] = _speedup_table(scenario.speedup, place.at("speedup"))
    if scenario.machine is not None:
        if not isinstance(scenario.machine.failures, NodeFailures | Outages | None):
            failures = quoted(scenario.machine.failures)
            raise place.at("machine.failures").error(f"{failures} cannot be written; a file has NodeFailures or Outages")
        table["machine"] = plain(scenario.machine, place.at("machine"))
    workloads = [table_of_workload(source, place.at("workload")) for source in scenario.sources]
    table["workload"] = workloads if isinstance(scenario.workload, tuple) else workloads[0]
    return text_of_table(table)


_WRITERS: Final = ("policy", "speedup", "machine", "workload")
"""Fields that are no single values."""


def _policy_text(policy: str | Policy, place: Place) -> str:
    if isinstance(policy, str):
        placed(lambda: require_no_module(policy), place, ())
        return policy
    raise place.error(
        f"the object {shown(policy.name)} cannot be written; name the policy, as in policy='easy:reserve_depth=2'"
    )


def _speedup_table(speedup: Speedup, place: Place) -> object:
    if speedup == LINEAR:
        return "linear"
    if type(speedup) is DowneySpeedup:
        return plain(speedup, place)
    raise place.error(f"{quoted(speedup)} cannot be written; a file has 'linear' or a DowneySpeedup")
