"""The records of Slurm's sacct: fields in any order, job names with separators and line breaks in them, damaged lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from clustermodel.errors import quoted
from clustermodel.workload.log_columns import are_digits
from clustermodel.workload.log_jobs import LogJobs

JOB_ID: Final = re.compile(r"(\d{1,18})(?:_(?:(\d{1,9})|\[([^\]]*)\]?))?(?:\+(\d{1,9}))?(\..+)?", re.ASCII)
"""Groups: number, task, tasks that have not been split off, component, step."""

MOST_DIGITS: Final = 18
"""Largest number of digits of a job number."""

_XDMOD: Final = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible", "start",
    "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit",
    "nodelist", "jobname",
)  # fmt: skip
"""The layout of Open XDMoD since version 11; before, it had no QOS, and at first no resources either."""
_ISO: Final = r"\d{4}-\d\d-\d\dT"
_XDMOD_LAYOUTS: Final = (
    (tuple(name for name in _XDMOD if name != "qos"), _ISO),
    (_XDMOD, rf"{_ISO}|\d{{9,10}}$"),
    (tuple(name for name in _XDMOD if name not in ("qos", "reqtres", "alloctres")), _ISO),
)
"""The layouts, and what the time of submission looks like; a user number may look like seconds since 1970."""

_NUMBER: Final = r"\d*(?:\.\d+)?[KMGTP]?"
_TIME: Final = r"(?:\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|\d{0,12}|[A-Za-z/() ]{1,16})"
_DURATION: Final = r"(?:[\d:.-]*|[A-Za-z_]{3,16})"
_TRES: Final = r"[\w/:.=,()-]*"  # Open XDMoD 8 has gpu:2 in its place
_TYPES: Final = {
    **dict.fromkeys(("jobid", "jobidraw"), JOB_ID.pattern),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(
        ("elapsed", "suspended", "timelimit", "planned", "reserved", "resvcpu", "plannedcpu", "cputime", "totalcpu"), _DURATION
    ),
    **dict.fromkeys(
        (
            "nnodes", "ncpus", "alloccpus", "allocnodes", "reqcpus", "elapsedraw", "cputimeraw", "uid", "gid", "priority",
            "qosraw", "restarts", "dbindex", "associd", "consumedenergyraw", "ntasks",
        ),
        _NUMBER,
    ),
    **dict.fromkeys(("reqtres", "alloctres"), _TRES),
    "state": r"[A-Z_]+\+?(?: by \S+)?",
    "exitcode": r"(?:\d+:\d+)?",
    "derivedexitcode": r"(?:\d+:\d+)?",
    "reqmem": r"[\d.]*[A-Za-z?]{0,2}",
    "timelimitraw": r"\d*|[A-Za-z_]+",
    "cluster": r"[\w.-]*",
}  # fmt: skip
"""What fields look like that are not free text."""
_LISTS: Final = frozenset(("jobid", "reqtres", "alloctres", "nodelist", "reqgres", "allocgres"))
"""Fields with commas of their own."""
_NODES: Final = re.compile(r"(?:[\w.-]|\[[\d,-]*\])+(?:,(?:[\w.-]|\[[\d,-]*\])+)*", re.ASCII)
_FREE: Final = frozenset(
    (
        "jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "constraints", "wckey", "extra",
        "stdout", "stderr", "stdin", "container", "reason", "licenses", "reservation",
    )
)  # fmt: skip
"""Fields that may have separators and line breaks in them."""
_KNOWN: Final = frozenset((*_TYPES, *_FREE, "partition", "qos", "account", "group", "user", "nodelist"))

_MOST_LINES: Final = 1000  # of a record
_MOST_TEXT: Final = 2**20
_LONGEST_TAIL: Final = 3  # separators in the second line of a job name
_MOST_SEPARATORS: Final = 200  # in the texts of a record
_MESSAGE: Final = ("sacct: ", "slurm_", "srun: ")
BROKEN: Final = "line breaks inside fields"
BLANK: Final = "blank lines"
HEADERS: Final = "header lines"
MESSAGES: Final = "messages of sacct"


class Layout:
    """The fields of a log and how they are separated.

    Args:
        names: of the fields, in lower case.
        separator: between them.
        closed: whether a separator also ends each record (``--parsable``).
        header: whether the log has header lines.
    """

    def __init__(self, names: Sequence[str], separator: str = "|", *, closed: bool = False, header: bool = True) -> None:
        self.names = tuple(names)
        self.size = len(self.names)
        self.separator = separator
        self.has_header = header
        self._closed = closed
        self.id_at = self.position("jobid", "jobidraw")

    def position(self, *names: str) -> int:
        """Return where the first of ``names`` that the log has stands; -1 if it has none."""
        return next((self.names.index(name) for name in names if name in self.names), -1)

    def split(self, text: str) -> list[str]:
        """Return the fields of a text."""
        fields = text.split(self.separator)
        if fields[-1] == "" and len(fields) > len(self.names) and (self._closed or not self.has_header):
            fields.pop()
        return fields

    def columns(self, texts: Sequence[str]) -> list[list[str]] | None:
        """Return the fields of lines, each a list with the texts of all lines; ``None`` unless each line is a record.

        All lines are split together, which takes less time and memory than a list of fields for each of them.
        """
        records = len(texts)
        fields = f"{self.separator}\n{self.separator}".join(texts).split(self.separator)
        width = (len(fields) + 1) // records  # of a record with its line break
        if width * records != len(fields) + 1 or fields[width - 1 :: width].count("\n") != records - 1:
            return None
        closed = width == self.size + 2 and (self._closed or not self.has_header) and not any(fields[self.size :: width])
        if width != self.size + 1 and not closed:
            return None
        columns = [fields[at::width] for at in range(self.size)]
        numbers = columns[self.id_at]
        return columns if are_digits(numbers, MOST_DIGITS) or all(map(JOB_ID.fullmatch, numbers)) else None

    @cached_property
    def _types(self) -> list[re.Pattern[str] | None]:
        return [re.compile(_TYPES[name], re.ASCII) if name in _TYPES else None for name in self.names]

    def may_continue(self, fields: Sequence[str]) -> bool:
        """Return whether ``fields`` can be a further line of the last field of the record before."""
        if self.names[-1] not in _FREE or len(fields) > _LONGEST_TAIL + 1:
            return False
        if self.names[-1] == "workdir" or self.id_at < len(fields) - 1:
            return len(fields) == 1 or not self.begins_like_a_record(fields)
        return True

    def aligned(self, fields: list[str]) -> list[str] | None:
        """Return the fields of a record with separators in its texts, joined where they belong; ``None`` if that cannot be.

        The choice is the first one in which all fields that are no free text look as they must.
        """
        if not 0 <= len(fields) - len(self.names) <= _MOST_SEPARATORS:
            return None
        counts = self._parts(fields, 0, 0, set())
        if counts is None:
            return None
        ends = accumulate(counts)
        return [self.separator.join(fields[end - count : end]) for count, end in zip(counts, ends, strict=True)]

    def _most_parts(self, field: int) -> int:
        """Return of how many parts a field may consist."""
        lists = self.separator == "," and self.names[field] in _LISTS
        return _MOST_SEPARATORS if lists or self.names[field] in _FREE else 1

    def _parts(self, fields: Sequence[str], field: int, part: int, dead: set[tuple[int, int]]) -> list[int] | None:
        """Return how many of ``fields`` each field from ``field`` on consists of, if the first of them is at ``part``.

        ``dead`` has the positions from which there is no way to the end.
        """
        if field == len(self.names):
            return [] if part == len(fields) else None
        if (field, part) in dead:
            return None
        spare = len(fields) - part - (len(self.names) - field)
        for count in range(1, 1 + min(1 + spare, self._most_parts(field))):
            if self._looks_right(field, fields, part, count):
                others = self._parts(fields, field + 1, part + count, dead)
                if others is not None:
                    return [count, *others]
        dead.add((field, part))
        return None

    def _looks_right(self, field: int, fields: Sequence[str], part: int, count: int) -> bool:
        pattern = self._types[field]
        if self.names[field] == "nodelist":
            return count == 1 or all(map(_NODES.fullmatch, [",".join(fields[part : part + count])]))
        return pattern is None or pattern.fullmatch(self.separator.join(fields[part : part + count])) is not None

    def begins_like_a_record(self, fields: Sequence[str]) -> bool:
        """Return whether ``fields``, of which the last one may be cut, can be the beginning of a record."""
        whole = fields[:-1]
        if not whole or len(whole) >= len(self.names):
            return False
        if self.id_at < len(whole) and not JOB_ID.fullmatch(whole[self.id_at]):
            return False
        return all(pattern is None or pattern.fullmatch(field) for pattern, field in zip(self._types, whole, strict=False))


def header_layout(text: str) -> Layout | None:
    """Return the layout that a header line of sacct announces, ``None`` if it is none."""
    found = re.match(r"\s*([A-Za-z]+)([^\w\s%]+|\t)[A-Za-z]", text)
    if not found:
        return None
    separator = found[2]
    names = [name.strip().lower() for name in text.strip("\r\n ").split(separator)]
    closed = names[-1] == ""
    names = names[:-1] if closed else names
    if not {"jobid", "jobidraw"} & set(names) or len(_KNOWN & set(names)) < min(3, len(names)):
        return None
    return Layout(names, separator, closed=closed)


def headerless_layout(text: str) -> Layout | None:
    """Return the layout of Open XDMoD that a line has, ``None`` if it has none."""
    fields = text.split("|")
    for names, stamp in _XDMOD_LAYOUTS:
        if len(fields) >= len(names) and JOB_ID.fullmatch(fields[0]) and re.match(stamp, fields[names.index("submit")]):
            return Layout(names, header=False)
    return None


class Block(NamedTuple):
    """Records in consecutive lines of a log; a record of several lines is alone."""

    layout: Layout
    line: int
    """Number of the first line."""
    columns: Sequence[Sequence[str]]
    """The texts of each field, in the order of the layout."""

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.columns[0])

    def fields(self, record: int) -> list[str]:
        """Return the fields of a record, counted from 0."""
        return [column[record] for column in self.columns]


class Records:
    """Puts the lines of a log together into records; all other lines are counted.

    A header line in the middle of the log, where logs have been joined, begins a new layout.

    Args:
        jobs: takes the counts.
    """

    def __init__(self, jobs: LogJobs) -> None:
        self.lines = 0
        """Number of lines read."""
        self._jobs = jobs
        self._layout: Layout | None = None
        self._pending: list[str] = []
        """Lines of a record that has not ended."""
        self._begun = 0
        """Number of the first of them."""
        self._complete = False
        """Whether the line before ended a record."""

    def of(self, lines: Iterable[Sequence[str]]) -> Iterator[Block]:
        """Yield the records of lines, which come some at once; any other line is counted after the records before it."""
        for texts in lines:
            columns = self._layout.columns(texts) if self._layout is not None else None
            if self._layout is not None and columns is not None:  # nearly always
                self._give_up()
                self._complete = True
                yield Block(self._layout, self.lines + 1, columns)
                self.lines += len(texts)
            else:
                yield from self._one_by_one(texts)
        self._give_up()

    def _one_by_one(self, texts: Sequence[str]) -> Iterator[Block]:
        """Yield the records of lines of which some are none."""
        rows: list[list[str]] = []
        for text in texts:
            self.lines += 1
            layout = self._layout
            fields = layout.split(text) if layout is not None else []
            if layout is not None and len(fields) == layout.size and JOB_ID.fullmatch(fields[layout.id_at]):
                if not rows:
                    self._give_up()
                    self._complete = True
                rows.append(fields)
                continue
            if rows and layout is not None:
                yield Block(layout, self.lines - len(rows), list(zip(*rows, strict=True)))
                rows = []
            if not self._is_no_record(text):
                assert self._layout is not None
                record = self._assembled(self._layout, text)
                if record is not None:
                    self._complete = True
                    yield record
        if rows and self._layout is not None:
            yield Block(self._layout, self.lines + 1 - len(rows), list(zip(*rows, strict=True)))

    def _is_no_record(self, text: str) -> bool:
        """Count a header, a blank line, a message of sacct, or a line before the first record; return whether it was one."""
        if self._layout is None or (text[:1].isalpha() and "jobid" in text.lower()):
            announced = header_layout(text) or (headerless_layout(text) if self._layout is None else None)
            if announced is not None:
                self._give_up()
                self._layout, self._complete = announced, False
                self._jobs.counts[HEADERS] += announced.has_header
                return announced.has_header
        if not text or text.isspace():
            if not self._pending:
                self._jobs.counts[BLANK] += 1
                return True
            return False
        if text.startswith(_MESSAGE):
            self._jobs.counts[MESSAGES] += 1
            return True
        if self._layout is None:
            self._jobs.damaged(self.lines, "it stands before the first record")
            return True
        return False

    def _assembled(self, layout: Layout, text: str) -> Block | None:
        """Return the record that ends with this line, if it has separators or line breaks in its texts."""
        fields = layout.split(text)
        exact = len(fields) == layout.size and JOB_ID.fullmatch(fields[layout.id_at])
        record = fields if exact else layout.aligned(fields) if len(fields) > layout.size else None
        if record is not None:
            self._give_up()
            return Block(layout, self.lines, [[field] for field in record])
        if self._pending:
            self._pending.append(text)
            parts = layout.split("\n".join(self._pending))
            record = layout.aligned(parts)
            if record is not None:
                self._jobs.counts[BROKEN] += len(self._pending) - 1
                self._pending.clear()
                return Block(layout, self._begun, [[field] for field in record])
            if len(self._pending) < _MOST_LINES and sum(map(len, self._pending)) < _MOST_TEXT and len(parts) < layout.size:
                return None
            self._pending.pop()
            self._give_up()
        if self._complete and layout.may_continue(fields):
            self._jobs.counts[BROKEN] += 1
        elif layout.begins_like_a_record(fields):
            self._pending.append(text)
            self._begun, self._complete = self.lines, False
        elif len(fields) == layout.size:
            self._jobs.damaged(self.lines, f"field JobID: {quoted(fields[layout.id_at])} is not a job number")
        else:
            self._jobs.damaged(self.lines, f"{len(fields)} fields; a record has {layout.size}")
        return None

    def _give_up(self) -> None:
        """Count the lines of a record that does not end."""
        if self._pending:
            assert self._layout is not None
            fields = self._layout.split("\n".join(self._pending))
            self._jobs.damaged(self._begun, f"{len(fields)} fields; a record has {self._layout.size}", lines=len(self._pending))
            self._pending.clear()
