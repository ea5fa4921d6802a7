"""Inputs of other simulators in JSON: the workloads of Batsim; the jobs of ElastiSim, which have no run times, are named.

Batsim's workloads are described in its documentation, "Workload": jobs with ``id``, ``subtime``, ``res``, ``profile`` and
perhaps ``walltime``, and profiles, of which those of the type ``delay`` say how long a job runs.  How long other profiles take
follows from Batsim's platform file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from clustermodel.errors import TraceError, quoted, shown
from clustermodel.logs.json_files import content_of_json
from clustermodel.text.files import without_compression
from clustermodel.ticks import duration_to_ticks, to_ticks
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S
from clustermodel.workload.job import UNSET, JobRow
from clustermodel.workload.provenance import Provenance, counts_in_words
from clustermodel.workload.table import Workload

_DELAY: Final = ("delay", "DelayProfile")
_SEQUENCE: Final = ("composed", "sequence", "sequential_composition", "SequentialCompositionProfile")
_MOST_DEEP: Final = 100  # sequences in sequences


def refuse_elastisim(path: str | os.PathLike[str], **_: Any) -> Workload:
    """Refuse a file of jobs of ElastiSim: how long they run is not in it."""
    raise TraceError(
        f"{path}: it is a jobs file of ElastiSim, which has no run times: they follow from application models "
        "(application_model) and a platform; write the jobs as a CSV table with a column of run times, which --columns reads"
    )


def read_batsim(path: str | os.PathLike[str]) -> Workload:
    """Read a workload of Batsim, a file in JSON, into memory.

    A job runs for the delay of its profile, also of a sequence of delays; its estimate is its ``walltime``, else the run time.
    Jobs with profiles of other types are left out and counted in ``provenance.dropped``: how long they run follows from a
    platform.  The machine has ``nb_res`` nodes.  Jobs keep their numbers, also behind the name of a workload (``w0!7``), if all
    of them have different ones; else they are numbered from 1 in the order of the file.

    Raises:
        TraceError: the file cannot be read, a value is not allowed, or no job has a run time.
    """
    text = os.fspath(path)
    content = content_of_json(path, "a workload of Batsim has one")
    profiles, size = content.get("profiles"), content.get("nb_res")
    if not isinstance(profiles, dict):
        raise TraceError(f"{text}: it has no object 'profiles', as a workload of Batsim has it")
    run_times = _RunTimes(text, profiles)
    dropped: Counter[str] = Counter()
    rows: list[JobRow] = []
    names: list[str] = []
    for place, job in enumerate(content["jobs"]):
        where = f"{text}: jobs[{place}]"
        if not isinstance(job, dict):
            raise TraceError(f"{where}: {quoted(job)} is not allowed; it must be an object")
        number = partial(_number, where, job)
        submit, nodes = number("subtime", least=0.0), round(number("res", least=1.0, whole=True))
        walltime = number("walltime", least=-1.0) if job.get("walltime") is not None else -1.0
        run_s = run_times.of(where, job.get("profile"))
        if isinstance(run_s, str):
            dropped[f"of profile type {quoted(run_s)}, whose run time only a platform gives"] += 1
        elif run_s <= 0:
            dropped["run time zero"] += 1
        else:
            run = duration_to_ticks(run_s)
            estimate = duration_to_ticks(walltime) if walltime > 0 else run
            rows.append(JobRow(to_ticks(submit), 0, nodes, run, estimate, UNSET, UNSET, 0, UNSET))
            names.append(str(job.get("id", "")))
    if not rows:
        because = counts_in_words(dropped) or "the list 'jobs' is empty"
        raise TraceError(f"{text}: no usable job: {because}; a job has a run time if its profile is a delay")
    numbered = [row._replace(id=id_) for row, id_ in zip(rows, _numbers(names), strict=True)]
    known = isinstance(size, int) and not isinstance(size, bool) and 0 < size <= LARGEST_WHOLE
    workload = Workload(
        numbered,
        name=without_compression(Path(text).name),
        provenance=Provenance(source=text, dropped=dropped),
        machine_nodes=size if known else None,
    )
    return workload.made_by("trace", {"trace": Path(path)})


def _number(where: str, job: Mapping[str, Any], field: str, *, least: float, whole: bool = False) -> float:
    value: Any = job.get(field)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= LONGEST_S or (whole and value != round(value)):
        must = f"a {'whole ' * whole}number >= {least:g} and <= {LONGEST_S:g}"
        given = "missing" if value is None else shown(value) if is_number else quoted(value)
        raise TraceError(f"{where}: {field}: {given}; it must be {must}")
    return float(value)


def _numbers(names: list[str]) -> list[int]:
    """Return the numbers of jobs: their ids where these are different whole numbers, perhaps behind the name of a workload."""
    texts = [name.rpartition("!")[2] for name in names]
    if len(set(texts)) == len(texts) and all(re.fullmatch(r"\d{1,15}", text, re.ASCII) for text in texts):
        numbers = list(map(int, texts))
        if len(set(numbers)) == len(numbers):
            return numbers
    return list(range(1, len(names) + 1))


class _RunTimes:
    """The run times of profiles, seconds, or the type of one whose run time is not known."""

    def __init__(self, path: str, profiles: Mapping[str, Any]) -> None:
        self._path, self._profiles, self._known = path, profiles, dict[str, float | str]()

    def of(self, where: str, name: object, depth: int = 0) -> float | str:
        """Return the run time of a profile; of one that is not there, or is its own part, raise a TraceError."""
        profile = self._profiles.get(name) if isinstance(name, str) else None
        if not isinstance(profile, dict) or not isinstance(name, str):
            raise TraceError(f"{where}: profile: {quoted(name)} is not among the profiles")
        if depth > _MOST_DEEP:
            raise TraceError(f"{where}: profile: {quoted(name)} is a sequence of sequences without end")
        if name not in self._known:
            self._known[name] = self._run_time(f"{self._path}: profiles: {name}", profile, depth)
        return self._known[name]

    def _run_time(self, where: str, profile: Mapping[str, Any], depth: int) -> float | str:
        kind = str(profile.get("type"))
        if kind in _DELAY:
            return _number(where, profile, "delay", least=0.0)
        if kind not in _SEQUENCE or not isinstance(profile.get("seq"), list):
            return kind
        parts = [self.of(where, part, depth + 1) for part in profile["seq"]]
        if others := [part for part in parts if isinstance(part, str)]:
            return others[0]
        times = {"repeat": profile.get("repeat", profile.get("nb", 1))}
        total = sum(map(float, parts)) * _number(where, times, "repeat", least=1.0, whole=True)
        if total > LONGEST_S:
            raise TraceError(f"{where}: it takes {total:g} s; at most {LONGEST_S:g} s are allowed")
        return total
