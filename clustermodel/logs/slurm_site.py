"""A site from Slurm's own words: slurm.conf, ``scontrol show partition|node|config|reservation``, ``sacctmgr show qos|assoc``.

The fields are described in slurm.conf(5), scontrol(1) and sacctmgr(1) of Slurm 20 to 24; docs/site has what becomes of which.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustermodel.errors import SpecificationError, TraceError, counted, quoted
from clustermodel.logs import values as log_values
from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.reservation import Reservation
from clustermodel.site.site import EACH, PARENT, QOS, WEIGHTS, FairShare, Limits, Multifactor, Share, Site
from clustermodel.text.files import text_lines
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S, choice

UNITS: Final = {"nodes": "node", "cores": "cpu", "gpus": "gres/gpu"}
"""What a node of the model may stand for, and what Slurm calls it in a list of resources (TRES)."""
_MOST_UNITS: Final = 10_000_000
_USE_PARENT: Final = "2147483647"  # what older releases print for FairShare=parent

_NOTHING: Final = frozenset(
    (
        "", "all", "no", "none", "n/a", "unlimited", "infinite", "0", "1", "1.000000", "-1", "(null)", "off", "up", "00:00:00",
        "exclusive", "cluster",
    )
)  # fmt: skip
"""Values, in any case, that say nothing."""
_WHO: Final = "who may use a partition is no rule of the model; the jobs of a log did"
_WHOLE: Final = "parts of a node are no rule of the model"
_PREEMPTION: Final = "what preempts what is the policy's"
_SPENT: Final = "budgets that are used up are no rule of the model"
_LEAST: Final = "least sizes are no rule of the model"


def _reasons(*groups: tuple[str | None, str]) -> dict[str, str | None]:
    return {name: reason for reason, names in groups for name in names.split()}


_PARTITION: Final = _reasons(
    (None, "partitionname nodes maxtime maxnodes default qos prioritytier priorityjobfactor state"),
    (None, "totalcpus totalnodes tres nodesets hidden disablerootjobs jobdefaults selecttypeparameters cpubind"),
    (_WHO, "allowaccounts allowgroups allowqos allocnodes denyaccounts denyqos rootonly reqresv"),
    (_WHOLE, "maxcpuspernode maxcpuspersocket maxmempernode maxmempercpu defmempernode defmempercpu"),
    (_PREEMPTION, "gracetime preemptmode"),
    ("jobs of the model have their nodes alone; gang policies share them in time", "oversubscribe"),
    ("the jobs of a log have their own limits", "defaulttime"),
    (_LEAST, "minnodes"),
    ("jobs are killed at their limits", "overtimelimit"),
    ("usage is node time", "tresbillingweights"),
)
"""Why fields of a partition are left out; ``None``: they are read, or need no word.  The same for the tables below."""
_NODE: Final = _reasons(
    (None, "nodename state cpus cputot sockets socketsperboard corespersocket threadspercore boards gres"),
    (None, "features feature availablefeatures realmemory"),
    ("jobs take nodes first that the fewest partitions have", "weight"),
)
_SETTING: Final = {
    "schedulertype": "how the queue is worked off is the policy's (--policy)",
    "schedulerparameters": "how the queue is worked off is the policy's (--policy)",
    "preempttype": _PREEMPTION,
    "selecttypeparameters": _WHOLE,
    "priorityfavorsmall": "small jobs first is no factor of the model",
    "priorityweighttres": "resources beside nodes are no factor of the model",
    "priorityweightassoc": "priorities of associations are no factor of the model",
    "priorityusageresetperiod": "usage is never reset; it halves every half-life",
    "downnodes": "outages are given with --outages",
    "include": "give the other file too",
}
"""Settings of slurm.conf that bear on the schedule; the others are those of daemons."""
_ENFORCED: Final = frozenset(("limits", "safe", "all"))
_DAY_S: Final = 86_400
_WEEK_S: Final = 7 * _DAY_S
_EVERY_S: Final = {"HOURLY": 3600, "DAILY": _DAY_S, "WEEKLY": _WEEK_S}
"""Flags of reservations that recur."""
_DAYS: Final = {"WEEKDAY": range(5), "WEEKEND": range(5, 7)}
"""Flags of reservations that recur on some days of each week, from Monday on."""
_RECORDS: Final = ("partitionname", "nodename", "nodeset", "downnodes", "reservationname", "frontendname", "switchname")
_FIELD: Final = re.compile(r"(?:^|\s)([A-Za-z]\w*)\s*=(\"[^\"]*\"|.*?)(?=\s+[A-Za-z]\w*\s*=|\s*$)")
_NOISE: Final = re.compile(r"Configuration data as of|Slurmctld|Slurmdbd|slurm_load|.*Configuration:$|Account Gather$")

_SHARED_PARTS: Final = "usage is node time"
_ACCRUE: Final = "a job ages from when it joins the queue on, however many wait"


class _Column(NamedTuple):
    """What a column of sacctmgr limits."""

    field: str
    """Of :class:`~clustermodel.site.site.Limits`."""
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
    (_SPENT, "grpwall grptresmins grptresmin grpcpumins maxtresmins maxtresminspj maxtresminsperjob maxcpumins "
             "maxcpuminspj maxcpuminsperjob"),
    ("limits of one node are no rule of the model", "maxtrespernode maxtrespn"),
    (_ACCRUE, "grpjobsaccrue maxjobsaccrue maxjobsaccruepu maxjobsaccrueperuser maxjobsaccruepa maxjobsaccrueperaccount "
              "minpriothresh minpriothreshold"),
)  # fmt: skip
_QOS_LEFT: Final = _reasons(
    (None, "name priority descr description id flags"),
    (_PREEMPTION, "gracetime preempt preemptexempttime preemptmode"),
    *_LEFT,
    (_LEAST, "mintres mintrespj mintresperjob mincpus mincpusperjob minnodes"),
    ("users beyond a part of their shares are not held; an order with fair shares lets them wait", "usagethres usagethreshold"),
    (_SHARED_PARTS, "usagefactor"),
    ("limits of associations are the same under all QOS", "limitfactor"),
)
_ASSOCIATION_LEFT: Final = _reasons(
    (None, "cluster account user partition share fairshare parentname parent qos qosraw defqos defaultqos id lineage lft rgt"),
    (None, "comment flags isdefault"),
    *_LEFT,
    ("priorities of associations are no factor of the model", "priority"),
)
_QOS_FLAGS: Final = _reasons(
    (None, "denyonlimit overpartqos partitiontimelimit partitionmaxnodes relative"),
    (_LEAST + ": smaller jobs run too", "partitionminnodes"),
    ("jobs below the threshold are not held", "enforceusagethreshold"),
    (_SPENT + ", so that nothing has to decay", "nodecay"),
    ("the policy decides which jobs hold reservations: those of the QOS may, and others then wait for them", "noreserve"),
    ("jobs of the QOS run outside reservations too", "requiresreservation"),
    (_SPENT + ", so that no job is held for them", "usagefactorsafe"),
)
"""Flags of QOS; ``None``: they are read, or say what is so anyway (a job that exceeds a limit by itself is rejected)."""
_OLDER: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "partition": {"priority": ("prioritytier", "priorityjobfactor"), "shared": ("oversubscribe",)},
    "node": {"procs": ("cpus",)},
}
"""Fields of records that have been renamed: the older name, and those that it stands for."""
_RESERVATION: Final = _reasons(
    (None, "reservationname starttime endtime duration nodes nodecnt corecnt tres state users accounts groups flags coreids"),
    (None, "maxstartdelay burstbuffer watts comment nodename"),
    ("jobs of other partitions that have the nodes may use it too", "partitionname"),
    ("its nodes are those named", "features"),
    ("licenses are no rule of the model", "licenses"),
)


class _Record(NamedTuple):
    """Fields, by their names in lower case, and where they stand: ``file:line``."""

    where: str
    fields: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class SlurmSite:
    """What files of Slurm say about a site."""

    site: Site
    """Partitions, limits, and the order of the queue."""
    node_names: tuple[str, ...]
    """The nodes, in the order in which the model numbers them."""
    nodes: int
    """Size of the machine in the unit that was asked for; 0 where no file names nodes."""
    read: tuple[str, ...]
    """The contents found in each file, a line each."""
    left_out: tuple[str, ...]
    """Settings that the model has no rule for, each with the reason."""


def read_slurm_site(
    *paths: str | os.PathLike[str], unit: str = "nodes", start: str | None = None, timezone: str | None = None
) -> SlurmSite:
    """Return the site that Slurm describes, as far as the model has rules for it.

    Args:
        paths: a ``slurm.conf``, the output of ``scontrol show partition``, ``show node`` (with ``-o`` or without) and ``show
            config`` and ``show reservation``, of ``sacctmgr show qos -P`` and ``show assoc tree -P``; what a file is, its
            content tells.
        unit: what a node of the model stands for, as of :func:`~clustermodel.logs.sacct.read_sacct`: ``"nodes"``, ``"cores"``
            or ``"gpus"``; nodes and limits are counted in it.
        start: when the clock of the jobs begins, as ``"2025-01-01T00:00:00"``: reservations are left out without it.
        timezone: that of the times of reservations, if the log was read with it; ``start`` is then in UTC, as the log's
            ``StartTime``.  Windows that recur keep the local time at which the log begins when clocks change.

    Raises:
        TraceError: a file cannot be read, or is none of these; the message starts with ``file:line:``.
        SpecificationError: the unit, the start or the time zone is not allowed.
    """
    choice("unit", unit, UNITS)
    clock = log_values.Clock(timezone)
    try:
        begin = None if start is None else log_values.Clock().seconds(start)
    except ValueError as problem:
        raise SpecificationError(f"start: {problem}; write it as 2025-01-01T00:00:00") from None
    reader = _Reader(unit, begin, clock)
    for path in paths:
        reader.read(Path(path))
    return reader.site()


class _Reader:
    """Collects the records of all files, then makes a site of them."""

    def __init__(self, unit: str, begin: int | None, clock: log_values.Clock) -> None:
        self._unit, self._tres, self._begin = unit, UNITS[unit], begin
        self._clock = clock  # of the times of reservations
        self._begin_on_wall = clock.on_wall(begin or 0)  # windows that recur are on the clock on the wall
        kinds = ("partition", "node", "nodeset", "qos", "reservation")
        self._records: dict[str, dict[str, _Record]] = {kind: {} for kind in kinds}
        self._associations: list[_Record] = []
        self._settings: dict[str, _Record] = {}
        self._relative: dict[str, int] = {}  # where QOS stand whose limits are percentages, and of how many nodes
        self._spelling: dict[str, str] = {}  # of names in lower case
        self._read: list[str] = []
        self._left: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)  # setting and reason -> whose

    # Files

    def read(self, path: Path) -> None:
        """Read a file, whatever it is."""
        lines = [(f"{path}:{number}", line.rstrip()) for number, line in enumerate(text_lines(path), 1)]
        first = next((line.strip() for _, line in lines if line.strip() and not line.lstrip().startswith("#")), "")
        names = _columns(first)
        if "|" in first and {"account", "user"} <= {*names}:
            self._read_table(path, "association", lines)
        elif "|" in first and "name" in names and len(names) > 1:
            self._read_table(path, "QOS", lines)
        elif _FIELD.match(first) or _NOISE.match(first) or first.lower().startswith("include "):
            self._read_records(path, lines)
        else:
            what = "the file is empty" if not first else f"{quoted(first)} begins none of them"
            raise TraceError(
                f"{path}: expected are a slurm.conf, scontrol show partition, node or config, "
                f"or sacctmgr show qos -P or show assoc -P; {what}"
            )

    def _read_table(self, path: Path, kind: str, lines: Sequence[tuple[str, str]]) -> None:
        """Read the output of sacctmgr, with a header line, separated by strokes."""
        names: list[str] = []
        rows = 0
        for where, line in lines:
            if not line.strip():
                continue
            if not names:
                names = _columns(line)
                self._spelling |= dict(zip(names, line.rstrip("|").split("|"), strict=True))
                continue
            values = line.split("|")
            if len(values) > len(names) and values[-1] == "":
                values.pop()
            if len(values) != len(names):
                raise TraceError(f"{where}: {len(values)} fields; the header line has {len(names)}")
            record = _Record(where, dict(zip(names, values, strict=True)))
            if kind == "QOS":
                self._records["qos"][record.fields["name"].strip()] = record
            else:
                self._associations.append(record)
            rows += 1
        self._read.append(f"{path}: {counted(rows, kind) if kind != 'QOS' else f'{rows:,} QOS'}")

    def _read_records(self, path: Path, lines: Sequence[tuple[str, str]]) -> None:
        """Read records and settings of slurm.conf or of scontrol."""
        before = {kind: len(records) for kind, records in self._records.items()}
        settings, defaults = 0, defaultdict[str, dict[str, str]](dict)
        for where, text in _whole_records(lines):
            if text.lower().startswith("include "):
                self._leave(f"Include {text.split(None, 1)[1]}", _SETTING["include"], "")
                continue
            given = _FIELD.findall(text)
            pairs = [(name.lower(), value.strip().strip('"')) for name, value in given]
            self._spelling |= {name.lower(): name for name, _ in given}
            if not pairs:
                raise TraceError(f"{where}: {quoted(text)} is not KEY=VALUE")
            key, name = pairs[0]
            kind = key.removesuffix("name")
            if key not in _RECORDS:
                self._settings |= {setting: _Record(where, {setting: value}) for setting, value in pairs}
                settings += len(pairs)
            elif kind not in self._records:
                self._leave(given[0][0], _SETTING.get(key, "it is no rule of the model"), name)
            elif name.upper() == "DEFAULT":
                defaults[kind] |= dict(pairs[1:])
            else:
                if kind == "reservation":
                    pairs += _cores(pairs)
                for each in self._names(where, name) if kind == "node" else [name]:
                    self._records[kind][each] = _Record(where, self._renamed(kind, defaults[kind] | dict(pairs)))
        new = {kind: len(records) - before[kind] for kind, records in self._records.items()}
        parts = [counted(new[kind], kind) for kind in ("node", "partition", "reservation") if new[kind]]
        parts += [counted(settings, "setting")] if settings else []
        self._read.append(f"{path}: {', '.join(parts) or 'nothing new'}")

    def _renamed(self, kind: str, fields: dict[str, str]) -> dict[str, str]:
        """Return the fields of a record by the names that they have today."""
        for older, names in _OLDER.get(kind, {}).items():
            if older in fields:
                value, spelled = fields.pop(older), self._spelled(older)
                for name in names:
                    fields.setdefault(name, value)
                    self._spelling.setdefault(name, spelled)
        return fields

    @staticmethod
    def _names(where: str, text: str) -> list[str]:
        names = log_values.node_names(text)
        if not names or text.count("[") != text.count("]"):
            raise TraceError(f"{where}: the list of nodes {quoted(text)} cannot be read")
        return names

    def _leave(self, setting: str, reason: str, whose: str) -> None:
        self._left[setting, reason][whose] = None

    def _leave_fields(self, record: _Record, table: Mapping[str, str | None], read: Iterable[str], whose: str) -> None:
        """Leave out the fields of a record that are neither read nor without meaning."""
        for name, value in record.fields.items():
            if value.strip().lower() in _NOTHING or name in read:
                continue
            if (reason := table.get(name, "it is no rule of the model")) is not None:
                self._leave(self._spelled(name), reason, whose)

    # What they say

    def site(self) -> SlurmSite:
        """Return the site of all that was read."""
        self._choose_cluster()
        of_nodes = self._nodes()
        partitions, node_types = self._partitions(of_nodes), self._node_types(of_nodes)
        reservations = self._reservations(of_nodes)
        limits, qos = self._limits(of_nodes)
        order = self._order()
        for name, record in self._settings.items():
            if name in _SETTING and record.fields[name].strip().lower() not in _NOTHING:
                self._leave(self._spelled(name), _SETTING[name], "")
        left_out = []
        for (setting, reason), whose in self._left.items():
            left_out.append(f"{setting}{f' of {_listed(whose)}' if any(whose) else ''}: {reason}")
        return SlurmSite(
            site=Site(
                partitions=partitions, node_types=node_types, reservations=reservations, limits=limits, qos=qos, order=order
            ),
            node_names=tuple(of_nodes),
            nodes=sum(map(len, of_nodes.values())),
            read=tuple(self._read),
            left_out=tuple(left_out),
        )

    def _choose_cluster(self) -> None:
        """Leave out the associations of clusters but that of ``ClusterName``, or the first one."""
        clusters = [record.fields.get("cluster", "").strip() for record in self._associations]
        names = dict.fromkeys(filter(None, clusters))
        chosen = self._setting("clustername", "")
        chosen = chosen if chosen in names else next(iter(names), "")
        for name in names:
            if name != chosen:
                self._leave("associations", f"the site is that of cluster {chosen}", f"cluster {name}")
        kept = zip(clusters, self._associations, strict=True)
        self._associations = [record for cluster, record in kept if cluster in ("", chosen)]

    def _nodes(self) -> dict[str, range]:
        """Return the numbers of each node: one, or one of each of its cores or GPUs."""
        names: dict[str, _Record | None] = {}
        future = set()
        for name, record in self._records["node"].items():
            state = record.fields.get("state", "").upper()
            if state.startswith("FUTURE"):
                self._leave("State=FUTURE", "nodes that do not exist yet are no part of the machine", f"node {name}")
                future.add(name)
                continue
            if any(word in state for word in ("DOWN", "DRAIN", "FAIL")):
                self._leave("State", "nodes that are down now are part of the machine; outages are given with --outages", name)
            # Nodes have hundreds of fields of what they are doing now.
            known = _Record(record.where, {key: value for key, value in record.fields.items() if key in _NODE})
            self._leave_fields(known, _NODE, (), "nodes")
            names[name] = record
        sets = self._records["nodeset"]
        for record in self._records["partition"].values():
            names |= dict.fromkeys(name for name in self._members(record, sets) if name not in names and name not in future)
        numbers: dict[str, range] = {}
        first = 0
        for name, node in names.items():
            numbers[name] = range(first, first + self._units_of(name, node))
            first = numbers[name].stop
        if first > _MOST_UNITS:
            raise SpecificationError(f"unit: the machine has {first:,} {self._unit}; more than {_MOST_UNITS:,} are not allowed")
        return numbers

    def _units_of(self, name: str, record: _Record | None) -> int:
        if self._unit == "nodes":
            return 1
        if record is None:
            raise SpecificationError(
                f"unit: give scontrol show node or slurm.conf too, for the number of {self._unit} of {name}"
            )
        fields = {key: record.fields.get(key, "") for key in _NODE}
        if self._unit == "gpus":
            return log_values.gres_gpus(fields["gres"])
        if cores := log_values.whole(fields["cputot"] or fields["cpus"]):
            return cores
        sockets = log_values.whole(fields["sockets"]) or log_values.whole(fields["socketsperboard"]) or 1
        each = [log_values.whole(fields[key]) or 1 for key in ("boards", "corespersocket", "threadspercore")]
        return sockets * each[0] * each[1] * each[2]

    def _members(self, record: _Record, sets: Mapping[str, _Record]) -> list[str]:
        """Return the names of a partition's or node set's nodes; ``ALL`` are those of the records of nodes."""
        nodes = self._records["node"]
        text, feature = record.fields.get("nodes", "").strip(), record.fields.get("feature", "")
        members = [name for name, node in nodes.items() if feature and feature in _features(node)]
        if text.lower() in _NOTHING - {"all"}:
            return members
        for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\]?)+", text):
            if part.upper() == "ALL":
                members += nodes
            elif part in sets:
                members += self._members(sets[part], {})
            else:
                members += self._names(record.where, part)
        return members

    def _partitions(self, of_nodes: Mapping[str, range]) -> list[Partition]:
        made = []
        records = self._records["partition"]
        tiers = {name: self._whole(record, "prioritytier", 1) for name, record in records.items()}
        same = len({*tiers.values()}) == 1
        for name, record in records.items():
            fields, whose = record.fields, f"partition {name}"
            self._leave_fields(record, _PARTITION, (), whose)
            if (state := fields.get("state", "UP").upper()) != "UP":
                self._leave(f"State={state}", "the partition is as if it were up", whose)
            members = dict.fromkeys(self._members(record, self._records["nodeset"]))
            numbers = [number for node in members for number in of_nodes.get(node, ())]
            if not numbers:
                self._leave("Nodes", f"the partition has no {self._unit}", whose)
                continue
            most = self._whole(record, "maxnodes", 0)
            if most and self._unit != "nodes":
                self._leave("MaxNodes", f"it counts nodes, the model {self._unit}", whose)
                most = 0
            made.append(
                Partition(
                    name=name,
                    nodes=numbers,
                    max_wall_time_s=self._duration(record, "maxtime") or None,
                    max_nodes=most or None,
                    priority=0 if same else tiers[name],
                    default=fields.get("default", "").upper() == "YES",
                )
            )
        return made

    def _node_types(self, of_nodes: Mapping[str, range]) -> list[NodeType]:
        """Return the nodes with the same features and, where it is not the same for all, the same memory."""
        records = {name: self._records["node"][name] for name in of_nodes if name in self._records["node"]}
        features = {name: tuple(_features(record)) for name, record in records.items()}
        memory_mib = {name: self._whole(record, "realmemory", 0) for name, record in records.items()}
        sizes, every = set(memory_mib.values()) - {0}, len(records) == len(of_nodes)
        if sizes and (len(sizes) == 1 or 0 in memory_mib.values() or not every or self._unit != "nodes"):
            given = f" {max(sizes) / 1024:g}" if len(sizes) == 1 else ""
            self._leave("RealMemory", f"memory is a field of the machine (--node-memory{given})", "nodes")
            memory_mib = dict.fromkeys(memory_mib, 0)
        alike: defaultdict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
        for name in records:
            alike[features[name], memory_mib[name]].append(name)
        all_alike = every and len(alike) == 1
        if all_alike or self._unit != "nodes":
            if any(features.values()):
                self._leave("Features", "all nodes are alike" if all_alike else f"the model counts {self._unit}", "nodes")
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

    def _reservations(self, of_nodes: Mapping[str, range]) -> list[Reservation]:
        made = []
        for name, record in self._records["reservation"].items():
            fields, whose = record.fields, f"reservation {name}"
            self._leave_fields(record, _RESERVATION, (), whose)
            people = {
                kind: [each for who in fields.get(kind, "").split(",") if (each := who.strip()).lower() not in _NOTHING]
                for kind in ("accounts", "users", "groups")
            }
            mixed = [kind for kind, names in people.items() if len({who.startswith("-") for who in names}) > 1]
            flags = {flag.strip().upper() for flag in fields.get("flags", "").split(",")}
            members = self._members(record, {})
            nodes = self._reserved_nodes(record, members, of_nodes, whose)
            recurs = not flags.isdisjoint((*_EVERY_S, *_DAYS))
            start_s, end_s = (self._since_begin(record, field, recurs) for field in ("starttime", "endtime"))
            times = self._times_of(flags, start_s, end_s)
            problem = next(
                words
                for wrong, words in (
                    (self._begin is None, "say when the log begins (--start)"),
                    (people["groups"], "reservations are for accounts and users, not for groups"),
                    (mixed, "some of its names have a minus and some have none"),
                    ("TIME_FLOAT" in flags, "its begin moves on as time passes, so that it never comes"),
                    (not members, "it has no nodes"),
                    (not any(name in of_nodes for name in members), "no file describes its nodes"),
                    (not nodes, f"its nodes have no {self._unit}"),
                    (end_s <= start_s, "it ends before it begins"),
                    (any(every_s is not None and end_s - start_s >= every_s for _, _, every_s in times),
                     "it begins again before or as it ends"),
                    (not times, "it is over when the log begins"),
                    (True, ""),
                )
                if wrong
            )  # fmt: skip
            if problem:
                self._leave("StartTime", problem, whose)
                continue
            made += [
                Reservation(
                    nodes=nodes, start_s=begin_s, end_s=until_s, every_s=every_s, name=name,
                    accounts=people["accounts"], users=people["users"],
                )
                for begin_s, until_s, every_s in times
            ]  # fmt: skip
        return made

    def _times_of(self, flags: Collection[str], start_s: float, end_s: float) -> list[tuple[float, float, float | None]]:
        """Return when a reservation begins, ends and recurs after the log begins: once, or on several days of each week."""
        every_s = next((float(_EVERY_S[flag]) for flag in sorted(_EVERY_S) if flag in flags), None)
        days = next((days for flag, days in _DAYS.items() if flag in flags), None)
        first = [(start_s, end_s, every_s)]
        if days is not None:
            weekday = int((self._begin_on_wall + start_s) // _DAY_S + 3) % 7  # 1 January 1970 was a Thursday
            shifts = [(day - weekday) % 7 * _DAY_S for day in days]
            first = [(start_s + shift, end_s + shift, float(_WEEK_S)) for shift in sorted(shifts)]
        times: list[tuple[float, float, float | None]] = []
        for begin_s, until_s, period_s in first:
            shift = 0.0 if period_s is None or begin_s >= 0 else -(begin_s // period_s) * period_s
            if period_s is not None and shift and until_s + shift - period_s > 0:  # the one that has begun
                times.append((0.0, until_s + shift - period_s, None))
            if until_s + shift > 0:
                times.append((max(begin_s + shift, 0.0), until_s + shift, period_s))
        return times

    def _reserved_nodes(self, record: _Record, members: Sequence[str], of_nodes: Mapping[str, range], whose: str) -> list[int]:
        """Return the nodes of a reservation, in the unit that was asked for; if it has some cores of nodes, those."""
        cores: dict[str, list[int]] = {}
        for part in filter(None, record.fields.get("coreids", "").split(";")):
            names, _, text = part.partition(":")
            try:
                for name in self._names(record.where, names):
                    cores.setdefault(name, []).extend(_numbers(text))
            except ValueError:
                raise TraceError(f"{record.where}: CoreIDs: {quoted(text)} are no numbers of cores") from None
        nodes: list[int] = []
        unknown = [name for name in members if name not in of_nodes]
        if 0 < len(unknown) < len(members):
            more = f" and {len(unknown) - 1} more" * (len(unknown) > 1)
            self._leave("Nodes", f"no file describes {unknown[0]}{more}", whose)
        for name in members:
            numbers = of_nodes.get(name, range(0))
            if name not in cores or self._unit != "cores":
                nodes += numbers
                continue
            node = self._records["node"].get(name)
            threads = 1 if node is None else self._threads(node, len(numbers))
            cpus = {cpu for core in cores[name] for cpu in range(core * threads, (core + 1) * threads)}
            nodes += [number for cpu, number in enumerate(numbers) if cpu in cpus]
        if nodes and cores and self._unit != "cores":
            hint = "; --unit cores reserves these cores"
            self._leave("CoreIDs", f"the model counts {self._unit}: the whole nodes are reserved{hint}", whose)
        return nodes

    def _threads(self, node: _Record, cpus: int) -> int:
        """Return how many of the CPUs of a node are threads of one core."""
        threads = log_values.whole(node.fields.get("threadspercore", "")) or 1
        return threads if cpus % threads == 0 else 1

    def _since_begin(self, record: _Record, field: str, recurs: bool) -> float:
        """Return a time in seconds on the clock of the jobs; if it recurs, with the clock on the wall as the log begins."""
        clock, begin = (log_values.Clock(), self._begin_on_wall) if recurs else (self._clock, self._begin or 0)
        try:
            seconds = clock.seconds(record.fields.get(field, ""))
        except ValueError as problem:
            raise TraceError(f"{record.where}: {self._spelled(field)}: {problem}") from None
        return LONGEST_S if seconds is None else float(seconds - begin)

    def _limits(self, of_nodes: Mapping[str, range]) -> tuple[list[Limits], list[QOS]]:
        """Return the limits, and the QOS that decide which of them come first."""
        enforced = self._settings.get("accountingstorageenforce")
        words = {word.strip().lower() for word in enforced.fields["accountingstorageenforce"].split(",")} if enforced else set()
        if (enforced or "clustername" in self._settings) and not words & _ENFORCED:
            if self._records["qos"] or self._associations:
                self._leave("limits", "AccountingStorageEnforce of slurm.conf does not have them kept", "QOS and associations")
            return [], []
        made: dict[tuple[tuple[tuple[str, str | tuple[str, ...]], ...], str | None], dict[str, float]] = {}
        set_by_qos = set[tuple[str, str]]()  # fields and kinds

        def add(record: _Record, table: Mapping[str, _Column], whose: str, **of_whom: str | tuple[str, ...]) -> None:
            for name, column in table.items():
                if not record.fields.get(name, "").strip() or (limit := self._limit(record, name, column, whose)) is None:
                    continue
                kind = "grp" if name in _GROUP else "max"
                yields = kind if "qos" not in of_whom and (column.field, kind) in set_by_qos else None
                if "qos" in of_whom:
                    set_by_qos.add((column.field, kind))
                who = tuple((of_whom | ({column.each: EACH} if column.each else {})).items())
                amounts = made.setdefault((who, yields), {})
                amounts[column.field] = min(limit, amounts.get(column.field, limit))

        qos = self._qos(of_nodes)
        for name, record in self._records["qos"].items():
            self._leave_fields(record, _QOS_LEFT, _QOS, f"QOS {name}")
            add(record, _QOS, f"QOS {name}", qos=name)
        self._add_associations(add)
        limits = [Limits(**dict(who), **fields, yields_to_qos=yields) for (who, yields), fields in made.items()]  # type: ignore[arg-type]
        return limits, qos

    def _qos(self, of_nodes: Mapping[str, range]) -> list[QOS]:
        """Return what QOS are of partitions, and what they lift; turn percentages of their limits into numbers of nodes."""
        records, partitions = self._records["qos"], defaultdict[str, list[str]](list)
        for name, record in self._records["partition"].items():
            of_partition = record.fields.get("qos", "").strip()
            if of_partition in records:
                partitions[of_partition].append(name)
            elif of_partition.lower() not in _NOTHING:
                reason = "sacctmgr show qos -P does not have it" if records else "give the output of sacctmgr show qos -P too"
                self._leave("QoS", f"its limits are those of {of_partition}; {reason}", f"partition {name}")
        made = []
        for name, record in records.items():
            flags = {flag.strip().lower(): flag.strip() for flag in record.fields.get("flags", "").split(",")}
            for flag in [flag for flag in flags if flag not in _NOTHING]:
                if (why := _QOS_FLAGS.get(flag, "it is no rule of the model")) is not None:
                    self._leave(f"Flags={flags[flag]}", why, f"QOS {name}")
            if "relative" in flags:
                of = [self._records["partition"][partition] for partition in partitions[name][:1]]
                members = {node for each in of for node in self._members(each, self._records["nodeset"])} or of_nodes
                self._relative[record.where] = sum(len(of_nodes.get(node, ())) for node in members)
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

    def _add_associations(self, add: Any) -> None:
        """Add the limits of accounts and users; those that all users of an account have alike, once for each user."""
        parents = self._parents()
        below: defaultdict[str, list[str]] = defaultdict(list)  # account -> itself and all below it
        for account in dict.fromkeys(record.fields.get("account", "").strip() for record in self._associations):
            above, path = account, list[str]()
            while above and above not in path:
                path.append(above)
                above = parents.get(above, "")
            for ancestor in path:
                below[ancestor].append(account)
        each: defaultdict[tuple[str, str], list[tuple[str, _Record]]] = defaultdict(list)
        for record in self._associations:
            account, user, partition = (record.fields.get(name, "").strip() for name in ("account", "user", "partition"))
            whose = " ".join(filter(None, ["user", user, "of account", account] if user else ["account", account]))
            self._leave_fields(record, _ASSOCIATION_LEFT, (*_GROUP, *_ASSOCIATION), whose)
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

    def _limit(self, record: _Record, name: str, column: _Column, whose: str) -> float | None:
        """Return a limit, ``None`` where there is none."""
        if column.field == "wall_time_s":
            return self._duration(record, name) or None
        if column.tres is None:
            return self._checked(self._spelled(name), self._whole(record, name, -1), whose)
        text = record.fields[name]
        amounts = {column.tres: text} if column.tres else dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
        limit: float | None = None
        for resource, amount in amounts.items():
            setting = self._spelled(name) if column.tres else f"{self._spelled(name)}={resource}"
            if column.tres and amount.strip().lower() in _NOTHING - {"0", "1"}:
                continue
            if resource != self._tres:
                other = next((unit for unit, tres in UNITS.items() if tres == resource), None)
                hint = f" (--unit {other})" if other else ""
                of_one_type = " of all types together" if resource.startswith(f"{self._tres}:") else ""
                self._leave(setting, f"the model counts {self._unit}{of_one_type}{hint}", whose)
            elif not re.fullmatch(r"-?\d{1,15}", amount.strip(), re.ASCII):
                raise TraceError(f"{record.where}: {self._spelled(name)}: {quoted(amount)} is not a whole number")
            else:
                number, of = int(amount), self._relative.get(record.where)
                if of is not None and number >= 0 and column.field in ("nodes", "job_nodes"):
                    if not of:
                        self._leave(setting, f"it is a part of the machine, of which no file tells the {self._unit}", whose)
                        return None
                    number = of * number // 100
                limit = self._checked(setting, number, whose)
        return None if limit is None else limit / 60 if column.field == "node_hours" else limit

    def _checked(self, setting: str, limit: int, whose: str) -> int | None:
        if not limit:
            why = "it would reject all these jobs; leave them out of the workload if they are not to run"
            self._leave(f"{setting}=0", why, whose)
        return limit if 0 < limit <= LARGEST_WHOLE else None

    def _order(self) -> FairShare | Multifactor | None:
        """Return the order of the priorities; alone, fair shares are Slurm's Fair Tree."""
        record = next((record for name, record in self._settings.items() if name.startswith("priorityweight")), None)
        kind = self._setting("prioritytype", "priority/multifactor")
        shares = self._shares()
        if record is None or kind.endswith("basic"):
            if any(shares.values()):
                why = "they count where PriorityType is priority/multifactor and has weights (slurm.conf, scontrol show config)"
                self._leave("Share", why, "associations")
            return None
        weights = {name: float(self._weight(f"priorityweight{name}")) for name in ("age", "fairshare", "partition", "qos")}
        weights["fair_share"], weights["queue"] = weights.pop("fairshare"), 0.0
        small = self._setting("priorityfavorsmall", "no").lower() == "yes"
        weights["size"] = 0.0 if small else float(self._weight("priorityweightjobsize"))
        given = [name for name in WEIGHTS if weights[name]]
        settings = {name: self._settings.get(name) for name in ("prioritydecayhalflife", "prioritymaxage")}
        half_life, most_age = (
            7 * 86_400.0 if value is None else self._duration(value, name) or LONGEST_S for name, value in settings.items()
        )
        if not given:
            return None
        if given == ["fair_share"] and "NO_FAIR_TREE" not in self._setting("priorityflags", "").upper():
            return FairShare(half_life_s=half_life, **shares)
        if "fair_share" in given:
            self._leave("PriorityWeightFairshare", "beside other weights it is the classic factor, not Fair Tree's rank", "")
        partitions, qos = self._records["partition"], self._records["qos"]
        factors = {
            "partitions": {name: self._whole(each, "priorityjobfactor", 1) for name, each in partitions.items()},
            "qos_values": {name: self._whole(each, "priority", 0) for name, each in qos.items()},
        }
        values = {
            kind: {name: value / max(each.values()) for name, value in each.items() if value > 0}
            for kind, each in factors.items()
            if weights["partition" if kind == "partitions" else "qos"]
        }
        return Multifactor(max_age_s=most_age, half_life_s=half_life, **weights, **shares, **values)  # type: ignore[arg-type]

    def _shares(self) -> dict[str, dict[str, Share]]:
        """Return the shares of accounts, each by its path from the top, and of users, that are not 1."""
        parents, of_users = self._parents(), defaultdict[str, dict[str, Share]](dict)
        accounts: dict[str, Share] = {}
        for record in self._associations:
            account, user = (record.fields.get(name, "").strip() for name in ("account", "user"))
            text = record.fields.get("share", record.fields.get("fairshare", "")).strip()
            if account == "root" or not text:
                continue
            share: Share = PARENT if text.lower() == PARENT or text == _USE_PARENT else float(text) if text.isdecimal() else 0.0
            if not share:
                self._leave(f"Share={text}", "shares are numbers above 0", f"user {user}" if user else f"account {account}")
            elif user:
                of_users[user][account] = share
            else:
                path = [account]
                while (above := parents.get(path[0], "root")) != "root" and above not in path:
                    path.insert(0, above)
                if len(path) > 1 or share != 1:
                    accounts["/".join(path)] = share
        users: dict[str, Share] = {}
        for user, shares in of_users.items():
            if len({*shares.values()}) > 1:
                users |= {f"{account}/{user}": share for account, share in shares.items() if share != 1}
            elif (share := next(iter(shares.values()))) != 1:
                users[user] = share
        return {"account_shares": accounts, "user_shares": users}

    def _parents(self) -> dict[str, str]:
        """Return the account above each account: its column ``ParentName``, or the next one that ``tree`` indents less."""
        parents: dict[str, str] = {}
        above: list[tuple[int, str]] = []
        for record in self._associations:
            if record.fields.get("user", "").strip():
                continue
            text = record.fields["account"]
            account, depth = text.strip(), len(text) - len(text.lstrip())
            named = record.fields.get("parentname", record.fields.get("parent", "")).strip()
            while above and above[-1][0] >= depth:
                above.pop()
            if named or above:
                parents[account] = named or above[-1][1]
            if depth or account == "root":
                above.append((depth, account))
        return parents

    # Values

    def _spelled(self, name: str) -> str:
        """Return the name of a setting as the files spell it."""
        return self._spelling.get(name, name)

    def _setting(self, name: str, default: str) -> str:
        return self._settings[name].fields[name].strip() if name in self._settings else default

    def _weight(self, name: str) -> int:
        return max(self._whole(self._settings[name], name, 0), 0) if name in self._settings else 0

    def _whole(self, record: _Record, name: str, default: int) -> int:
        """Return a whole number; the default, where the record has none or no limit."""
        text = record.fields.get(name, "").strip()
        if not re.fullmatch(r"-?\d{1,15}", text, re.ASCII):
            if text.lower() in _NOTHING:
                return default
            raise TraceError(f"{record.where}: {self._spelled(name)}: {quoted(text)} is not a whole number")
        return int(text)

    def _duration(self, record: _Record, name: str) -> float | None:
        """Return a time limit in seconds, ``None`` where there is none; a number alone counts minutes."""
        try:
            return log_values.duration(record.fields.get(name, ""), 60)
        except ValueError as problem:
            raise TraceError(f"{record.where}: {self._spelled(name)}: {problem}") from None


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers of a list as ``0-3,8``; a ValueError if it is none."""
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), min(int(high or low), int(low) + _MOST_UNITS) + 1)


def _features(node: _Record) -> list[str]:
    texts = [node.fields.get(key, "") for key in ("features", "feature", "availablefeatures")]
    names = [name.strip() for text in texts for name in text.split(",")]
    return [name for name in dict.fromkeys(names) if name.lower() not in _NOTHING and re.fullmatch("[^&|, ]+", name)]


def _columns(header: str) -> list[str]:
    return [re.sub(r"\W", "", name).lower() for name in header.rstrip("|").split("|")]


def _whole_records(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield records and settings, each as one line: scontrol indents what follows, slurm.conf ends lines with a backslash."""
    begun, text, continues, is_record, kind = "", "", False, False, ""
    for where, whole in [*lines, ("", "")]:
        # The names of kernels have a number sign in them.
        line = whole if re.search(r"(^|\s)OS=", whole) else re.sub(r"(?<!\\)#.*", "", whole).rstrip()
        key = line.partition("=")[0].strip().lower()
        inner = is_record and line[:1].isspace() and (key not in _RECORDS or (key == "nodename" and kind == "reservationname"))
        if text and (continues or inner):
            text = f"{text} {line.strip()}"
        else:
            if text:
                yield begun, text
            text = "" if _NOISE.match(line.strip()) else line.strip()
            begun, is_record, kind = where, key in _RECORDS, key
        continues = text.endswith("\\")
        text = text.removesuffix("\\").rstrip()
    if text:
        yield begun, text


def _cores(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the cores of a reservation's inner lines, ``NodeName=k4 CoreIDs=0-3``, as one field, ``k4:0-3;k5:0``."""
    parts, node = [], ""
    for name, value in pairs:
        if name == "nodename":
            node = value
        elif name == "coreids" and node:
            parts.append(f"{node}:{value}")
    return [("coreids", ";".join(parts))] if parts else []


def _listed(names: Iterable[str]) -> str:
    """Return the first of some names, as ``partition debug, gpu and 2 more``."""
    every = list(filter(None, names))
    kind = every[0].partition(" ")[0]
    shown = [every[0], *(name.removeprefix(f"{kind} ") for name in every[1:4])]
    return ", ".join(shown) + (f" and {len(every) - 4:,} more" if len(every) > 4 else "")
