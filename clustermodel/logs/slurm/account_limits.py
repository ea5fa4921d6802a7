"""Limits of QOS and associations of Slurm, and the QOS that decide which of them come first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from clustermodel.errors import TraceError, quoted
from clustermodel.logs.slurm.associations import parents_of
from clustermodel.logs.slurm.configuration import LEAST, NOTHING, PREEMPTION, SPENT, UNITS, Configuration, Record, reasons
from clustermodel.logs.slurm.node_records import members_of
from clustermodel.site.limits import EACH, Limits
from clustermodel.site.qos import QOS
from clustermodel.validation import LARGEST_WHOLE

_ENFORCED: Final = frozenset(("limits", "safe", "all"))
_SHARED_PARTS: Final = "usage is node time"
_ACCRUE: Final = "a job ages from when it joins the queue on, however many wait"


class _Column(NamedTuple):
    """What a column of sacctmgr limits."""

    field: str
    """Of :class:`~clustermodel.site.limits.Limits`."""
    each: str = ""
    """The field of which each name is limited separately."""
    tres: str | None = None
    """The resource that it counts; empty: those that it lists; ``None``: jobs or time."""


def _columns_of(*groups: tuple[_Column, str]) -> dict[str, _Column]:
    return {name: column for column, names in groups for name in names.split()}


# Each with its older names, from before resources were listed (Slurm 15.08), and the long ones in which sacctmgr is told of it.
_GROUP: Final = _columns_of(
    (_Column("running_jobs"), "grpjobs"),
    (_Column("submitted_jobs"), "grpsubmit grpsubmitjobs"),
    (_Column("nodes", tres=""), "grptres"), (_Column("nodes", tres="node"), "grpnodes"),
    (_Column("nodes", tres="cpu"), "grpcpus"), (_Column("nodes", tres="mem"), "grpmem grpmemory"),
    (_Column("node_hours", tres=""), "grptresrunmins grptresrunmin"), (_Column("node_hours", tres="cpu"), "grpcpurunmins"),
)  # fmt: skip
_OF_A_JOB: Final = _columns_of(
    (_Column("wall_time_s"), "maxwall maxwallpj maxwalldurationperjob"),
    (_Column("job_nodes", tres=""), "maxtres maxtrespj maxtresperjob"),
    (_Column("job_nodes", tres="node"), "maxnodes maxnodespj maxnodesperjob"),
    (_Column("job_nodes", tres="cpu"), "maxcpus maxcpuspj maxcpusperjob"),
)
_QOS: Final = {
    **_GROUP,
    **_OF_A_JOB,
    **{
        name.replace("*", suffix): _Column(field, each, tres)
        for each, suffixes in (("user", "pu peruser"), ("account", "pa peraccount"))
        for field, tres, names in (
            ("running_jobs", None, "maxjobs*"), ("submitted_jobs", None, "maxsubmit* maxsubmitjobs*"),
            ("nodes", "", "maxtres*"), ("nodes", "node", "maxnodes*"), ("nodes", "cpu", "maxcpus*"),
            ("node_hours", "", "maxtresrunmins* maxtresrunmin*"), ("node_hours", "cpu", "maxcpurunmins*"),
        )
        for name in names.split()
        for suffix in suffixes.split()
    },
}  # fmt: skip
_ASSOCIATION: Final = {
    **_OF_A_JOB,
    **_columns_of((_Column("running_jobs"), "maxjobs"), (_Column("submitted_jobs"), "maxsubmit maxsubmitjobs")),
}
_LEFT: Final = (
    (SPENT, "grpwall grptresmins grptresmin grpcpumins maxtresmins maxtresminspj maxtresminsperjob maxcpumins "
             "maxcpuminspj maxcpuminsperjob"),
    ("limits of one node are no rule of the model", "maxtrespernode maxtrespn"),
    (_ACCRUE, "grpjobsaccrue maxjobsaccrue maxjobsaccruepu maxjobsaccrueperuser maxjobsaccruepa maxjobsaccrueperaccount "
              "minpriothresh minpriothreshold"),
)  # fmt: skip
_QOS_LEFT: Final = reasons(
    (None, "name priority descr description id flags"),
    (PREEMPTION, "gracetime preempt preemptexempttime preemptmode"),
    *_LEFT,
    (LEAST, "mintres mintrespj mintresperjob mincpus mincpusperjob minnodes"),
    ("users beyond a part of their shares are not held; an order with fair shares lets them wait", "usagethres usagethreshold"),
    (_SHARED_PARTS, "usagefactor"),
    ("limits of associations are the same under all QOS", "limitfactor"),
)
_ASSOCIATION_LEFT: Final = reasons(
    (None, "cluster account user partition share fairshare parentname parent qos qosraw defqos defaultqos id lineage lft rgt"),
    (None, "comment flags isdefault"),
    *_LEFT,
    ("priorities of associations are no factor of the model", "priority"),
)
_QOS_FLAGS: Final = reasons(
    (None, "denyonlimit overpartqos partitiontimelimit partitionmaxnodes relative"),
    (LEAST + ": smaller jobs run too", "partitionminnodes"),
    ("jobs below the threshold are not held", "enforceusagethreshold"),
    (SPENT + ", so that nothing has to decay", "nodecay"),
    ("the policy decides which jobs hold reservations: those of the QOS may, and others then wait for them", "noreserve"),
    ("jobs of the QOS run outside reservations too", "requiresreservation"),
    (SPENT + ", so that no job is held for them", "usagefactorsafe"),
)
"""Flags of QOS; ``None``: they are read, or say what is so anyway (a job that exceeds a limit by itself is rejected)."""


def limits_of(slurm: Configuration, of_nodes: Mapping[str, range]) -> tuple[list[Limits], list[QOS]]:
    """Return the limits, and the QOS that decide which of them come first."""
    enforced = slurm.settings.get("accountingstorageenforce")
    words = {word.strip().lower() for word in enforced.fields["accountingstorageenforce"].split(",")} if enforced else set()
    if (enforced or "clustername" in slurm.settings) and not words & _ENFORCED:
        if slurm.records["qos"] or slurm.associations:
            slurm.leave("limits", "AccountingStorageEnforce of slurm.conf does not have them kept", "QOS and associations")
        return [], []
    made: dict[tuple[tuple[tuple[str, str | tuple[str, ...]], ...], str | None], dict[str, float]] = {}
    set_by_qos = set[tuple[str, str]]()  # fields and kinds

    def add(record: Record, table: Mapping[str, _Column], whose: str, **of_whom: str | tuple[str, ...]) -> None:
        for name, column in table.items():
            if not record.fields.get(name, "").strip() or (limit := _limit(slurm, record, name, column, whose)) is None:
                continue
            kind = "grp" if name in _GROUP else "max"
            yields = kind if "qos" not in of_whom and (column.field, kind) in set_by_qos else None
            if "qos" in of_whom:
                set_by_qos.add((column.field, kind))
            who = tuple((of_whom | ({column.each: EACH} if column.each else {})).items())
            amounts = made.setdefault((who, yields), {})
            amounts[column.field] = min(limit, amounts.get(column.field, limit))

    qos = qos_of(slurm, of_nodes)
    for name, record in slurm.records["qos"].items():
        slurm.leave_fields(record, _QOS_LEFT, _QOS, f"QOS {name}")
        add(record, _QOS, f"QOS {name}", qos=name)
    _add_associations(slurm, add)
    limits = [Limits(**dict(who), **fields, yields_to_qos=yields) for (who, yields), fields in made.items()]  # type: ignore[arg-type]
    return limits, qos


def qos_of(slurm: Configuration, of_nodes: Mapping[str, range]) -> list[QOS]:
    """Return what QOS are of partitions, and what they lift; turn percentages of their limits into numbers of nodes."""
    records, partitions = slurm.records["qos"], defaultdict[str, list[str]](list)
    for name, record in slurm.records["partition"].items():
        of_partition = record.fields.get("qos", "").strip()
        if of_partition in records:
            partitions[of_partition].append(name)
        elif of_partition.lower() not in NOTHING:
            reason = "sacctmgr show qos -P does not have it" if records else "give the output of sacctmgr show qos -P too"
            slurm.leave("QoS", f"its limits are those of {of_partition}; {reason}", f"partition {name}")
    made = []
    for name, record in records.items():
        flags = {flag.strip().lower(): flag.strip() for flag in record.fields.get("flags", "").split(",")}
        for flag in [flag for flag in flags if flag not in NOTHING]:
            if (why := _QOS_FLAGS.get(flag, "it is no rule of the model")) is not None:
                slurm.leave(f"Flags={flags[flag]}", why, f"QOS {name}")
        if "relative" in flags:
            of = [slurm.records["partition"][partition] for partition in partitions[name][:1]]
            members = {node for each in of for node in members_of(slurm, each, slurm.records["nodeset"])} or of_nodes
            slurm.relative[record.where] = sum(len(of_nodes.get(node, ())) for node in members)
        each = QOS(
            name=name,
            partitions=partitions[name],
            over_partition_qos="overpartqos" in flags,
            lifts_partition_time="partitiontimelimit" in flags,
            lifts_partition_nodes="partitionmaxnodes" in flags,
        )
        if each != QOS(name=name):
            made.append(each)
    return made


def _add_associations(slurm: Configuration, add: Any) -> None:
    """Add the limits of accounts and users; those that all users of an account have alike, once for each user."""
    parents = parents_of(slurm)
    below: defaultdict[str, list[str]] = defaultdict(list)  # account -> itself and all below it
    for account in dict.fromkeys(record.fields.get("account", "").strip() for record in slurm.associations):
        above, path = account, list[str]()
        while above and above not in path:
            path.append(above)
            above = parents.get(above, "")
        for ancestor in path:
            below[ancestor].append(account)
    each: defaultdict[tuple[str, str], list[tuple[str, Record]]] = defaultdict(list)
    for record in slurm.associations:
        account, user, partition = (record.fields.get(name, "").strip() for name in ("account", "user", "partition"))
        whose = " ".join(filter(None, ["user", user, "of account", account] if user else ["account", account]))
        slurm.leave_fields(record, _ASSOCIATION_LEFT, (*_GROUP, *_ASSOCIATION), whose)
        place = {"partition": partition} if partition else {}
        if user:
            add(record, _GROUP, whose, account=account, user=user, **place)
        elif account == "root":
            add(record, _GROUP, whose)
        else:
            add(record, _GROUP, whose, account=tuple(below[account]))
        each[account, partition].append((user, record))
    for (account, partition), rows in each.items():
        users = [(user, record) for user, record in rows if user]
        place = {"partition": partition} if partition else {}
        alike = len({tuple(record.fields.get(name, "") for name in _ASSOCIATION) for _, record in users}) == 1
        if account != "root" and (alike or not users):
            add(rows[-1][1], _ASSOCIATION, f"account {account}", account=account, user=EACH, **place)
            continue
        for user, record in users:
            add(record, _ASSOCIATION, f"user {user}", account=account, user=user, **place)


def _limit(slurm: Configuration, record: Record, name: str, column: _Column, whose: str) -> float | None:
    """Return a limit, ``None`` where there is none."""
    if column.field == "wall_time_s":
        return slurm.duration(record, name) or None
    if column.tres is None:
        return _checked(slurm, slurm.spelled(name), slurm.whole(record, name, -1), whose)
    text = record.fields[name]
    amounts = {column.tres: text} if column.tres else dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
    limit: float | None = None
    for resource, amount in amounts.items():
        setting = slurm.spelled(name) if column.tres else f"{slurm.spelled(name)}={resource}"
        if column.tres and amount.strip().lower() in NOTHING - {"0", "1"}:
            continue
        if resource != slurm.tres:
            other = next((unit for unit, tres in UNITS.items() if tres == resource), None)
            hint = f" (--unit {other})" if other else ""
            of_one_type = " of all types together" if resource.startswith(f"{slurm.tres}:") else ""
            slurm.leave(setting, f"the model counts {slurm.unit}{of_one_type}{hint}", whose)
        elif not re.fullmatch(r"-?\d{1,15}", amount.strip(), re.ASCII):
            raise TraceError(f"{record.where}: {slurm.spelled(name)}: {quoted(amount)} is not a whole number")
        else:
            number, of = int(amount), slurm.relative.get(record.where)
            if of is not None and number >= 0 and column.field in ("nodes", "job_nodes"):
                if not of:
                    slurm.leave(setting, f"it is a part of the machine, of which no file tells the {slurm.unit}", whose)
                    return None
                number = of * number // 100
            limit = _checked(slurm, setting, number, whose)
    return None if limit is None else limit / 60 if column.field == "node_hours" else limit


def _checked(slurm: Configuration, setting: str, limit: int, whose: str) -> int | None:
    if not limit:
        why = "it would reject all these jobs; leave them out of the workload if they are not to run"
        slurm.leave(f"{setting}=0", why, whose)
    return limit if 0 < limit <= LARGEST_WHOLE else None
