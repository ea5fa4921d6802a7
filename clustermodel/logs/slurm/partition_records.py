"""Partitions of Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustermodel.logs.slurm.configuration import LEAST, PREEMPTION, WHOLE_NODES, Configuration, reasons
from clustermodel.logs.slurm.node_records import members_of
from clustermodel.machine.partition import Partition

_WHO: Final = "who may use a partition is no rule of the model; the jobs of a log did"
_PARTITION: Final = reasons(
    (None, "partitionname nodes maxtime maxnodes default qos prioritytier priorityjobfactor state"),
    (None, "totalcpus totalnodes tres nodesets hidden disablerootjobs jobdefaults selecttypeparameters cpubind"),
    (_WHO, "allowaccounts allowgroups allowqos allocnodes denyaccounts denyqos rootonly reqresv"),
    (WHOLE_NODES, "maxcpuspernode maxcpuspersocket maxmempernode maxmempercpu defmempernode defmempercpu"),
    (PREEMPTION, "gracetime preemptmode"),
    ("jobs of the model have their nodes alone; gang policies share them in time", "oversubscribe"),
    ("the jobs of a log have their own limits", "defaulttime"),
    (LEAST, "minnodes"),
    ("jobs are killed at their limits", "overtimelimit"),
    ("usage is node time", "tresbillingweights"),
)
"""Why fields of a partition are left out; ``None``: they are read, or need no word.  The same for the tables below."""


def partitions_of(slurm: Configuration, of_nodes: Mapping[str, range]) -> list[Partition]:
    """Return the partitions that have nodes."""
    made = []
    records = slurm.records["partition"]
    tiers = {name: slurm.whole(record, "prioritytier", 1) for name, record in records.items()}
    same = len({*tiers.values()}) == 1
    for name, record in records.items():
        fields, whose = record.fields, f"partition {name}"
        slurm.leave_fields(record, _PARTITION, (), whose)
        if (state := fields.get("state", "UP").upper()) != "UP":
            slurm.leave(f"State={state}", "the partition is as if it were up", whose)
        members = dict.fromkeys(members_of(slurm, record, slurm.records["nodeset"]))
        numbers = [number for node in members for number in of_nodes.get(node, ())]
        if not numbers:
            slurm.leave("Nodes", f"the partition has no {slurm.unit}", whose)
            continue
        most = slurm.whole(record, "maxnodes", 0)
        if most and slurm.unit != "nodes":
            slurm.leave("MaxNodes", f"it counts nodes, the model {slurm.unit}", whose)
            most = 0
        made.append(
            Partition(
                name=name,
                nodes=numbers,
                max_wall_time_s=slurm.duration(record, "maxtime") or None,
                max_nodes=most or None,
                priority=0 if same else tiers[name],
                default=fields.get("default", "").upper() == "YES",
            )
        )
    return made
