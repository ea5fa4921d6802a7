"""Scenarios as TOML files: reading the fields of a scenario, and writing them; docs/scenario_files describes the keys.

A file is data: nothing that it names is imported, except the code of this package and of installed plug-ins.
"""

# Neither msgspec nor cattrs decodes these files in less code with equal messages: the classes check their own values, and parts
# of job streams are unions of dataclasses and plain values.  What would be left to a library is `tables.made`.

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clustermodel.errors import quoted, shown
from clustermodel.experiment.workload_tables import table_of_workload, workload_from
from clustermodel.machine.checkpoints import Checkpointing, CheckpointStore
from clustermodel.machine.context_switch import ContextSwitch
from clustermodel.machine.costs import SizeCost
from clustermodel.machine.failure import FailureSource, NodeFailures
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.power import power_from, with_power
from clustermodel.machine.price import price_from
from clustermodel.machine.recorded_outages import Outages, read_outages
from clustermodel.machine.reservation import Reservation
from clustermodel.machine.time_slicing import TimeSlicing
from clustermodel.policies.registry import require_no_module
from clustermodel.site.site import Site, site_fields, table_of_site
from clustermodel.text.tables import (
    SUFFIX,
    Place,
    made,
    placed,
    plain,
    read_file,
    read_text,
    require_keys,
    table_at,
    text_of_table,
)
from clustermodel.workload.speedup import LINEAR, DowneySpeedup, Speedup, speedup_of
from clustermodel.workload.table import JobSource

if TYPE_CHECKING:
    from clustermodel.experiment.scenario import Scenario

_Scenario = TypeVar("_Scenario")


def scenario_from(make: Callable[..., _Scenario], source: str | PathLike[str]) -> _Scenario:
    """Return the scenario that a file describes, or a text, which has a line break or an equals sign."""
    if isinstance(source, str) and ("\n" in source or "=" in source):
        place = Place("scenario", Path())
        table = read_text(source, place)
    else:
        table, place = read_file(Path(source))
    if "workload" not in table:
        raise place.at("workload").error("is missing; a scenario has a table [workload]")
    require_keys(table, inspect.signature(make).parameters, place, _ELSEWHERE)
    return made(make, _parts(table, _OF_SCENARIO, place), place)


def _parts(table: Mapping[str, Any], readers: Mapping[str, Callable[[Any, Place], object]], place: Place) -> dict[str, Any]:
    """Return the values of a table, those that are no single values read."""
    return {key: readers[key](value, place.at(key)) if key in readers else value for key, value in table.items()}


def _part_from(value: object, place: Place, *, kind: type, what: str = "") -> object:
    """Return the part of a scenario that a table describes, or a file with it."""
    known = [field.name for field in fields(kind)]
    table, place = table_at(value, place, what or f"a {kind.__name__} ({', '.join(known)})")
    require_keys(table, known, place, _ELSEWHERE)
    return made(kind, _parts(table, {key: read for key, read in _OF_MACHINE.items() if key in known}, place), place)


def _cost_from(value: object, place: Place) -> object:
    """Return a number of seconds, or the cost by number of nodes that a table describes."""
    return made(SizeCost, value, place) if isinstance(value, Mapping) else value


def _list_from(value: object, place: Place, *, kind: type) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise place.refused(value, f"tables [[{place.key}]]")
    return [made(kind, with_power(each, place.at(number)), place.at(number)) for number, each in enumerate(value)]


def _failures_from(value: object, place: Place) -> FailureSource:
    """Return the failures that a table describes: random ones, recorded ones, or a file of recorded ones."""
    table, place = table_at(value, place, "NodeFailures or Outages")
    if "outages" in table:
        others = dict(table)
        file = others.pop("outages")
        if not isinstance(file, str):
            raise place.at("outages").refused(file, "the name of a file")
        return made(read_outages, others, place, path=place.folder / file)
    kind: Callable[..., FailureSource] = Outages if "down_s" in table else NodeFailures
    return made(kind, table, place)


def _policy_from(value: object, place: Place) -> str:
    """Return the text of a policy: a text, a table with its name and parameters, or a file with such a table."""
    if isinstance(value, str) and not value.endswith(SUFFIX):
        text = value
    elif isinstance(value, list):
        raise place.refused(value, 'one policy, as "easy"; --policy compares several on the command line')
    else:
        table, place = table_at(value, place, "a policy")
        settings = dict(table)
        if (text := settings.pop("name", None)) is None:
            raise place.at("name").error("is missing")
        if not isinstance(text, str):
            raise place.at("name").refused(text, "a text")
        for key, setting in settings.items():
            if not isinstance(setting, bool | int | float | str) or "," in str(setting):
                raise place.at(key).refused(setting, "a number, a text without commas, true or false")
            settings[key] = f"{key}={str(setting).lower() if isinstance(setting, bool) else setting}"
        text = f"{text}:{','.join(settings.values())}" if settings else text
    placed(lambda: require_no_module(text), place, ())
    return text


def _speedup_from(value: object, place: Place) -> Speedup:
    if not isinstance(value, str | Mapping):
        raise place.refused(value, "'linear', 'downey:SIGMA', or a table with sigma and parallelism")
    return placed(lambda: speedup_of(value), place, ()) if isinstance(value, str) else made(DowneySpeedup, value, place)


def _site_from(value: object, place: Place) -> Site:
    table, place = table_at(value, place, "a site")
    return Site(**site_fields(table, place))


def _workloads_from(value: object, place: Place) -> JobSource | tuple[JobSource, ...]:
    if not isinstance(value, list):
        return workload_from(value, place)
    return tuple(workload_from(each, place.at(number)) for number, each in enumerate(value))


_OF_MACHINE: Final[dict[str, Callable[[Any, Place], object]]] = {
    "time_slicing": partial(_part_from, kind=TimeSlicing),
    "context_switch": partial(_part_from, kind=ContextSwitch),
    "checkpointing": partial(_part_from, kind=Checkpointing),
    "seconds": _cost_from,
    "startup_s": _cost_from,
    "epilog_s": _cost_from,
    "store": partial(_part_from, kind=CheckpointStore),
    "power": power_from,
    "price": price_from,
    "failures": _failures_from,
    "partitions": partial(_list_from, kind=Partition),
    "node_types": partial(_list_from, kind=NodeType),
    "reservations": partial(_list_from, kind=Reservation),
}
_ELSEWHERE: Final = {
    field.name: f"{table}.{field.name}"
    for table, kind in {
        "machine.checkpointing.store": CheckpointStore, "machine.checkpointing": Checkpointing,
        "machine.failures": NodeFailures, "machine.context_switch": ContextSwitch, "machine.time_slicing": TimeSlicing,
        "machine": Machine,
    }.items()
    for field in fields(kind)
}  # fmt: skip
"""Where a key of a machine is in a file."""
_OF_SCENARIO: Final[dict[str, Callable[[Any, Place], object]]] = {
    "machine": partial(_part_from, kind=Machine, what="a machine"),
    "policy": _policy_from,
    "site": _site_from,
    "speedup": _speedup_from,
    "workload": _workloads_from,
}
"""How the values of keys are read that are no single values."""


def text_of(scenario: Scenario, folder: Path) -> str:
    """Return the TOML text of a scenario; paths of traces are relative to ``folder`` unless they are absolute."""
    place = Place("Scenario.to_toml", folder)
    values = {field.name: getattr(scenario, field.name) for field in fields(scenario) if field.name not in _OF_SCENARIO}
    name = values.pop("name")
    table = {"name": name} if name else {}
    policy, speedup = scenario.policy, scenario.speedup
    if not isinstance(policy, str):
        name_it = "cannot be written; name the policy, as in policy='easy:reserve_depth=2'"
        raise place.at("policy").error(f"the object {shown(policy.name)} {name_it}")
    placed(lambda: require_no_module(policy), place.at("policy"), ())
    table |= {"policy": policy, **plain(values, place)}
    if speedup != LINEAR and type(speedup) is not DowneySpeedup:
        raise place.at("speedup").error(f"{quoted(speedup)} cannot be written; a file has 'linear' or a DowneySpeedup")
    table["speedup"] = "linear" if speedup == LINEAR else plain(speedup, place.at("speedup"))
    if scenario.machine is not None:
        if not isinstance(scenario.machine.failures, NodeFailures | Outages | None):
            failures = quoted(scenario.machine.failures)
            raise place.at("machine.failures").error(f"{failures} cannot be written; a file has NodeFailures or Outages")
        _require_written_costs(scenario.machine, place.at("machine"))
        machine = plain(scenario.machine, place.at("machine"))
        unset: list[tuple[str, object]] = [(name, []) for name in ("partitions", "node_types", "reservations")]
        unset += [("processors_per_node", 1), ("on_failure", "requeue"), ("startup_s", 0.0), ("epilog_s", 0.0)]
        table["machine"] = {key: value for key, value in machine.items() if (key, value) not in unset}
    if scenario.site is not None:
        table["site"] = table_of_site(scenario.site, place.at("site"))
    workloads = [table_of_workload(source, place.at("workload")) for source in scenario.sources]
    table["workload"] = workloads if isinstance(scenario.workload, tuple) else workloads[0]
    return text_of_table(table)


def _require_written_costs(machine: Machine, place: Place) -> None:
    """Refuse costs that are functions of Python."""
    switch = machine.context_switch.seconds
    for key, cost in (
        ("context_switch.seconds", switch), ("startup_s", machine.startup_s), ("epilog_s", machine.epilog_s)
    ):  # fmt: skip
        if callable(cost) and type(cost) is not SizeCost:
            raise place.at(key).error(f"{quoted(cost)} cannot be written; a file has a number, or base_s and per_node_s")
