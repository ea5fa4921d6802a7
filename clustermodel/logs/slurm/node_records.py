"""The nodes that files of Slurm name: how the model numbers them, and their types."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.logs import values as log_values
from clustermodel.logs.slurm.configuration import NOTHING, Configuration, Record, reasons
from clustermodel.machine.node_type import NodeType

_MOST_UNITS: Final = 10_000_000
_NODE: Final = reasons(
    (None, "nodename state cpus cputot sockets socketsperboard corespersocket threadspercore boards gres"),
    (None, "features feature availablefeatures realmemory"),
    ("jobs take nodes first that the fewest partitions have", "weight"),
)


def numbers_of_nodes(slurm: Configuration) -> dict[str, range]:
    """Return the numbers of each node: one, or one of each of its cores or GPUs."""
    names: dict[str, Record | None] = {}
    future = set()
    for name, record in slurm.records["node"].items():
        state = record.fields.get("state", "").upper()
        if state.startswith("FUTURE"):
            slurm.leave("State=FUTURE", "nodes that do not exist yet are no part of the machine", f"node {name}")
            future.add(name)
            continue
        if any(word in state for word in ("DOWN", "DRAIN", "FAIL")):
            slurm.leave("State", "nodes that are down now are part of the machine; outages are given with --outages", name)
        # Nodes have hundreds of fields of what they are doing now.
        known = Record(record.where, {key: value for key, value in record.fields.items() if key in _NODE})
        slurm.leave_fields(known, _NODE, (), "nodes")
        names[name] = record
    sets = slurm.records["nodeset"]
    for record in slurm.records["partition"].values():
        names |= dict.fromkeys(name for name in members_of(slurm, record, sets) if name not in names and name not in future)
    numbers: dict[str, range] = {}
    first = 0
    for name, node in names.items():
        numbers[name] = range(first, first + _units_of(slurm, name, node))
        first = numbers[name].stop
    if first > _MOST_UNITS:
        raise SpecificationError(f"unit: the machine has {first:,} {slurm.unit}; more than {_MOST_UNITS:,} are not allowed")
    return numbers


def _units_of(slurm: Configuration, name: str, record: Record | None) -> int:
    if slurm.unit == "nodes":
        return 1
    if record is None:
        raise SpecificationError(f"unit: give scontrol show node or slurm.conf too, for the number of {slurm.unit} of {name}")
    fields = {key: record.fields.get(key, "") for key in _NODE}
    if slurm.unit == "gpus":
        return log_values.gres_gpus(fields["gres"])
    if cores := log_values.whole(fields["cputot"] or fields["cpus"]):
        return cores
    sockets = log_values.whole(fields["sockets"]) or log_values.whole(fields["socketsperboard"]) or 1
    each = [log_values.whole(fields[key]) or 1 for key in ("boards", "corespersocket", "threadspercore")]
    return sockets * each[0] * each[1] * each[2]


def members_of(slurm: Configuration, record: Record, sets: Mapping[str, Record]) -> list[str]:
    """Return the names of a partition's or node set's nodes; ``ALL`` are those of the records of nodes."""
    nodes = slurm.records["node"]
    text, feature = record.fields.get("nodes", "").strip(), record.fields.get("feature", "")
    members = [name for name, node in nodes.items() if feature and feature in features_of(node)]
    if text.lower() in NOTHING - {"all"}:
        return members
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\]?)+", text):
        if part.upper() == "ALL":
            members += nodes
        elif part in sets:
            members += members_of(slurm, sets[part], {})
        else:
            members += slurm.names(record.where, part)
    return members


def node_types_of(slurm: Configuration, of_nodes: Mapping[str, range]) -> list[NodeType]:
    """Return the nodes with the same features and, where it is not the same for all, the same memory."""
    records = {name: slurm.records["node"][name] for name in of_nodes if name in slurm.records["node"]}
    features = {name: tuple(features_of(record)) for name, record in records.items()}
    memory_mib = {name: slurm.whole(record, "realmemory", 0) for name, record in records.items()}
    sizes, every = set(memory_mib.values()) - {0}, len(records) == len(of_nodes)
    if sizes and (len(sizes) == 1 or 0 in memory_mib.values() or not every or slurm.unit != "nodes"):
        given = f" {max(sizes) / 1024:g}" if len(sizes) == 1 else ""
        slurm.leave("RealMemory", f"memory is a field of the machine (--node-memory{given})", "nodes")
        memory_mib = dict.fromkeys(memory_mib, 0)
    alike: defaultdict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
    for name in records:
        alike[features[name], memory_mib[name]].append(name)
    all_alike = every and len(alike) == 1
    if all_alike or slurm.unit != "nodes":
        if any(features.values()):
            slurm.leave("Features", "all nodes are alike" if all_alike else f"the model counts {slurm.unit}", "nodes")
        return []
    return [
        NodeType(
            name=" ".join(filter(None, ["+".join(has), f"{mib} MiB" if mib else ""])),
            nodes=[of_nodes[name].start for name in names],
            memory_gib=mib / 1024 or None,
            features=has,
        )
        for (has, mib), names in alike.items()
        if has or mib
    ]


def features_of(node: Record) -> list[str]:
    """Return the features of a node."""
    texts = [node.fields.get(key, "") for key in ("features", "feature", "availablefeatures")]
    names = [name.strip() for text in texts for name in text.split(",")]
    return [name for name in dict.fromkeys(names) if name.lower() not in NOTHING and re.fullmatch("[^&|, ]+", name)]
