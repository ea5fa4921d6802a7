"""The output of ``sacct --json`` as lines of ``sacct --parsable2``, which the reader of sacct takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from clustermodel.errors import TraceError
from clustermodel.text_files import opened

_SEPARATOR: Final = "\x01"
_FIELDS: Final = (
    "JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "User", "Submit", "Eligible", "Start", "End",
    "ElapsedRaw", "Suspended", "State", "AllocNodes", "ReqCPUS", "ReqMem", "AllocTRES", "TimelimitRaw", "NodeList", "JobName",
)  # fmt: skip
_LOOKED_AT: Final = 4096  # characters
_MOST_LINES: Final = 512  # in a block


def is_json(path: Path) -> bool:
    """Return whether a file looks like the output of ``sacct --json``.

    Raises:
        OSError: it cannot be read, or is damaged; also EOFError.
    """
    with opened(path, newline="\n") as file:
        begin = file.read(_LOOKED_AT)
    return begin.lstrip().startswith("{") and any(f'"{key}"' in begin for key in ("meta", "jobs"))


def json_blocks(path: Path) -> Iterator[list[str]]:
    """Yield the jobs of a file as lines, the header first.

    Raises:
        TraceError: it is not JSON, or has no list of jobs.
    """
    try:
        with opened(path, newline="\n") as file:
            whole = json.load(file)
    except (ValueError, RecursionError) as problem:
        raise TraceError(f"{path}: not readable as JSON: {problem}") from None
    jobs = whole.get("jobs") if isinstance(whole, dict) else None
    if not isinstance(jobs, list):
        raise TraceError(f"{path}: it has no list 'jobs', as sacct --json writes it")
    lines = [_SEPARATOR.join(_FIELDS), *(_line(job if isinstance(job, dict) else {}) for job in jobs)]
    for first in range(0, len(lines), _MOST_LINES):
        yield lines[first : first + _MOST_LINES]


def _line(job: dict[str, Any]) -> str:
    number = job.get("job_id", "")
    array, task = _at(job, "array", "job_id"), _at(job, "array", "task_id")
    het, offset = _at(job, "het", "job_id"), _at(job, "het", "job_offset")
    if limit := _at(job, "array", "limits", "max", "running", "tasks"):
        task = f"[{_at(job, 'array', 'task') if task == '' else task}%{limit}]"
    name = f"{array}_{task}" if array and task != "" else f"{het}+{offset}" if het and offset != "" else number
    state = _at(job, "state", "current")
    granted = job.get("tres", {}).get("allocated", []) if isinstance(job.get("tres"), dict) else []
    tres = [_amount(one) for one in granted if isinstance(one, dict)] if isinstance(granted, list) else []
    each_node, each_core = _at(job, "required", "memory_per_node"), _at(job, "required", "memory_per_cpu")
    memory = f"{each_node}Mn" if each_node else f"{each_core}Mc" if each_core else ""
    values = (
        name, number, _at(job, "cluster"), _at(job, "partition"), _at(job, "qos"), _at(job, "account"), _at(job, "group"),
        _at(job, "user"), _at(job, "time", "submission"), _at(job, "time", "eligible"), _at(job, "time", "start"),
        _at(job, "time", "end"), _at(job, "time", "elapsed"), _at(job, "time", "suspended"),
        state[0] if isinstance(state, list) and state else state, _at(job, "allocation_nodes"), _at(job, "required", "CPUs"),
        memory, ",".join(tres), _at(job, "time", "limit"), _at(job, "nodes"), _at(job, "name"),
    )  # fmt: skip
    return _SEPARATOR.join(" ".join(str(value).split()).replace(_SEPARATOR, " ") for value in values)


def _amount(tres: dict[str, Any]) -> str:
    kind, name, count = (tres.get(key) for key in ("type", "name", "count"))
    return f"{kind}{f'/{name}' if name else ''}={count}{'M' if kind == 'mem' else ''}"


def _at(job: dict[str, Any], *keys: str) -> Any:
    """Return a value, of ``{"set": true, "number": 4}`` the number; empty where it is not set."""
    value: Any = job
    for key in keys:
        value = value.get(key, "") if isinstance(value, dict) else ""
    if isinstance(value, dict):
        return value.get("number", "") if value.get("set") and not value.get("infinite") else ""
    return "" if value is None else value
