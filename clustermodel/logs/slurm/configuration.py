"""Files of Slurm as records and settings: slurm.conf, and what scontrol and sacctmgr print."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from clustermodel.errors import TraceError, counted, quoted
from clustermodel.logs import values as log_values
from clustermodel.text.files import text_lines

UNITS: Final = {"nodes": "node", "cores": "cpu", "gpus": "gres/gpu"}
"""What a node of the model may stand for, and what Slurm calls it in a list of resources (TRES)."""
NOTHING: Final = frozenset(
    (
        "", "all", "no", "none", "n/a", "unlimited", "infinite", "0", "1", "1.000000", "-1", "(null)", "off", "up", "00:00:00",
        "exclusive", "cluster",
    )
)  # fmt: skip
"""Values, in any case, that say nothing."""
WHOLE_NODES: Final = "parts of a node are no rule of the model"
PREEMPTION: Final = "what preempts what is the policy's"
SPENT: Final = "budgets that are used up are no rule of the model"
LEAST: Final = "least sizes are no rule of the model"


def reasons(*groups: tuple[str | None, str]) -> dict[str, str | None]:
    """Return why fields are left out, by name, of reasons and names; ``None``: they are read, or need no word."""
    return {name: reason for reason, names in groups for name in names.split()}


SETTING: Final = {
    "schedulertype": "how the queue is worked off is the policy's (--policy)",
    "schedulerparameters": "how the queue is worked off is the policy's (--policy)",
    "preempttype": PREEMPTION,
    "selecttypeparameters": WHOLE_NODES,
    "priorityfavorsmall": "small jobs first is no factor of the model",
    "priorityweighttres": "resources beside nodes are no factor of the model",
    "priorityweightassoc": "priorities of associations are no factor of the model",
    "priorityusageresetperiod": "usage is never reset; it halves every half-life",
    "downnodes": "outages are given with --outages",
    "include": "give the other file too",
}
"""Settings of slurm.conf that bear on the schedule; the others are those of daemons."""
_RECORDS: Final = ("partitionname", "nodename", "nodeset", "downnodes", "reservationname", "frontendname", "switchname")
_FIELD: Final = re.compile(r"(?:^|\s)([A-Za-z]\w*)\s*=(\"[^\"]*\"|.*?)(?=\s+[A-Za-z]\w*\s*=|\s*$)")
_NOISE: Final = re.compile(r"Configuration data as of|Slurmctld|Slurmdbd|slurm_load|.*Configuration:$|Account Gather$")
_OLDER: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "partition": {"priority": ("prioritytier", "priorityjobfactor"), "shared": ("oversubscribe",)},
    "node": {"procs": ("cpus",)},
}
"""Fields of records that have been renamed: the older name, and those that it stands for."""


class Record(NamedTuple):
    """Fields, by their names in lower case, and where they stand: ``file:line``."""

    where: str
    fields: dict[str, str]


class Configuration:
    """The records and settings of all files, and which of them the model has no rule for."""

    def __init__(self, unit: str, begin: int | None, clock: log_values.Clock) -> None:
        self.unit, self.tres, self.begin = unit, UNITS[unit], begin
        self.clock = clock  # of the times of reservations
        self.begin_on_wall = clock.on_wall(begin or 0)  # windows that recur are on the clock on the wall
        kinds = ("partition", "node", "nodeset", "qos", "reservation")
        self.records: dict[str, dict[str, Record]] = {kind: {} for kind in kinds}
        self.associations: list[Record] = []
        self.settings: dict[str, Record] = {}
        self.relative: dict[str, int] = {}  # where QOS stand whose limits are percentages, and of how many nodes
        self._spelling: dict[str, str] = {}  # of names in lower case
        self.read: list[str] = []
        self.left_out: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)  # setting and reason -> whose

    def read_file(self, path: Path) -> None:
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
            record = Record(where, dict(zip(names, values, strict=True)))
            if kind == "QOS":
                self.records["qos"][record.fields["name"].strip()] = record
            else:
                self.associations.append(record)
            rows += 1
        self.read.append(f"{path}: {counted(rows, kind) if kind != 'QOS' else f'{rows:,} QOS'}")

    def _read_records(self, path: Path, lines: Sequence[tuple[str, str]]) -> None:
        """Read records and settings of slurm.conf or of scontrol."""
        before = {kind: len(records) for kind, records in self.records.items()}
        settings, defaults = 0, defaultdict[str, dict[str, str]](dict)
        for where, text in _whole_records(lines):
            if text.lower().startswith("include "):
                self.leave(f"Include {text.split(None, 1)[1]}", SETTING["include"], "")
                continue
            given = _FIELD.findall(text)
            pairs = [(name.lower(), value.strip().strip('"')) for name, value in given]
            self._spelling |= {name.lower(): name for name, _ in given}
            if not pairs:
                raise TraceError(f"{where}: {quoted(text)} is not KEY=VALUE")
            key, name = pairs[0]
            kind = key.removesuffix("name")
            if key not in _RECORDS:
                self.settings |= {setting: Record(where, {setting: value}) for setting, value in pairs}
                settings += len(pairs)
            elif kind not in self.records:
                self.leave(given[0][0], SETTING.get(key, "it is no rule of the model"), name)
            elif name.upper() == "DEFAULT":
                defaults[kind] |= dict(pairs[1:])
            else:
                if kind == "reservation":
                    pairs += _cores(pairs)
                for each in self.names(where, name) if kind == "node" else [name]:
                    self.records[kind][each] = Record(where, self._renamed(kind, defaults[kind] | dict(pairs)))
        new = {kind: len(records) - before[kind] for kind, records in self.records.items()}
        parts = [counted(new[kind], kind) for kind in ("node", "partition", "reservation") if new[kind]]
        parts += [counted(settings, "setting")] if settings else []
        self.read.append(f"{path}: {', '.join(parts) or 'nothing new'}")

    def _renamed(self, kind: str, fields: dict[str, str]) -> dict[str, str]:
        """Return the fields of a record by the names that they have today."""
        for older, names in _OLDER.get(kind, {}).items():
            if older in fields:
                value, spelled = fields.pop(older), self.spelled(older)
                for name in names:
                    fields.setdefault(name, value)
                    self._spelling.setdefault(name, spelled)
        return fields

    @staticmethod
    def names(where: str, text: str) -> list[str]:
        """Return the nodes of a list; TraceError if it is none."""
        names = log_values.node_names(text)
        if not names or text.count("[") != text.count("]"):
            raise TraceError(f"{where}: the list of nodes {quoted(text)} cannot be read")
        return names

    def leave(self, setting: str, reason: str, whose: str) -> None:
        """Note that the model has no rule for a setting, why, and whose it is."""
        self.left_out[setting, reason][whose] = None

    def leave_fields(self, record: Record, table: Mapping[str, str | None], read: Iterable[str], whose: str) -> None:
        """Leave out the fields of a record that are neither read nor without meaning."""
        for name, value in record.fields.items():
            if value.strip().lower() in NOTHING or name in read:
                continue
            if (reason := table.get(name, "it is no rule of the model")) is not None:
                self.leave(self.spelled(name), reason, whose)

    def spelled(self, name: str) -> str:
        """Return the name of a setting as the files spell it."""
        return self._spelling.get(name, name)

    def setting(self, name: str, default: str) -> str:
        """Return a setting as the files have it."""
        return self.settings[name].fields[name].strip() if name in self.settings else default

    def weight(self, name: str) -> int:
        """Return a setting that is a whole number, 0 where the files lack it or have less."""
        return max(self.whole(self.settings[name], name, 0), 0) if name in self.settings else 0

    def whole(self, record: Record, name: str, default: int) -> int:
        """Return a whole number; the default, where the record has none or no limit."""
        text = record.fields.get(name, "").strip()
        if not re.fullmatch(r"-?\d{1,15}", text, re.ASCII):
            if text.lower() in NOTHING:
                return default
            raise TraceError(f"{record.where}: {self.spelled(name)}: {quoted(text)} is not a whole number")
        return int(text)

    def duration(self, record: Record, name: str) -> float | None:
        """Return a time limit in seconds, ``None`` where there is none; a number alone counts minutes."""
        try:
            return log_values.duration(record.fields.get(name, ""), 60)
        except ValueError as problem:
            raise TraceError(f"{record.where}: {self.spelled(name)}: {problem}") from None


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
