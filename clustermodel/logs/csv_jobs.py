"""Jobs from tables in text files, a line each: any columns, with a mapping, and the workloads of Zhao et al. 2022 (Muri)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, TraceError, did_you_mean, number_meant, quoted, refused, shown, visible
from clustermodel.logs.sacct import STATUS, state_of
from clustermodel.logs.values import EARLIEST_S, NO_VALUE, Clock, duration
from clustermodel.text.files import table_rows
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND
from clustermodel.validation import choice
from clustermodel.workload.data_frame import COLUMNS_OF_JOBS, NAMES_OF_NUMBERS
from clustermodel.workload.job import Demand, JobRow, OwnCosts
from clustermodel.workload.job_columns import NAMED_COLUMNS
from clustermodel.workload.provenance import Provenance, counts_in_words
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    import pandas as pd

TIME_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""Units of columns of times, in seconds."""
MEMORY_UNITS: Final = {"KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10}
"""Units of columns of memory, in GiB."""
_LABELS: Final = ("stream", *NAMED_COLUMNS, *NAMES_OF_NUMBERS.values())
_STAMPS: Final = ("submit_s", "start_s", "end_s")
_PLACE: Final = re.compile(r"Workload\.from_frame: row (\d+): ")

MURI_COLUMNS: Final = ("job_id", "num_gpu", "submit_time", "iterations", "iteration_time", "model_name")
_MURI_GPUS: Final = 64
_MURI_TICKS: Final = 1015  # microseconds per millisecond of iterations: the authors' factor of 1.015
_MURI_RESTARTS: Final[dict[str, tuple[int, ...]]] = {
    "vgg16": (7, 7, 8, 9, 9, 10),
    "vgg19": (7, 7, 8, 9, 10, 10),
    "resnet18": (4, 5, 5, 7, 7, 7),
    "shufflenet_v2_x1_0": (4, 4, 5, 5, 7, 8),
    "bert": (10, 10, 10, 10, 10, 10),
    "gpt2": (10, 10, 10, 10, 10, 10),
    "a2c": (38, 39, 39, 46, 46, 46),
    "dqn": (5, 5, 6, 6, 8, 8),
}
"""Start-up cost of a model on 1, 2, 4, 8, 16 and 32 GPUs, seconds, as the authors of Muri measured it."""
_MURI_SIZES: Final = (1, 2, 4, 8, 16, 32)
_OTHER_RESTART: Final = 10
_MOST_LISTED: Final = 50  # columns


class _Line(NamedTuple):
    place: str
    fields: dict[str, str]

    def number(self, name: str, allowed: str, holds: Callable[[float], bool]) -> float:
        """Return a field as a number for which ``holds`` is true, which ``allowed`` says in words."""
        value = _number(self.fields[name])
        if value is None or not holds(value) or value > LAST_TICK:
            raise self.refused(name, f"it must be {allowed}")
        return value

    def whole(self, name: str, *, least: int) -> int:
        return round(self.number(name, f"a whole number >= {least}", lambda value: value >= least and value == round(value)))

    def refused(self, name: str, allowed: str) -> TraceError:
        value = self.fields[name]
        return TraceError(f"{self.place}: {name}: {quoted(value)} is not allowed{number_meant(value)}; {allowed}")


def read_csv(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str],
    units: Mapping[str, str] | None = None,
    name: str | None = None,
    machine_nodes: int | None = None,
) -> Workload:
    """Read jobs from a table with a header line, whatever its columns are called.

    Commas separate the columns, or semicolons or tabs where the header has no comma.

    Args:
        path: a file, plain or compressed with gzip, bzip2 or xz.
        columns: the columns of the file by field of a job: ``{"submit_s": "submit_time", "nodes": "num_gpu", ...}``.  The
            fields are those of :meth:`~clustermodel.workload.table.Workload.from_frame`; ``submit_s``, ``nodes`` and ``run_s``
            are needed, or the dates ``start_s`` and ``end_s`` instead of ``run_s``.  Other columns are ignored; an empty
            field is a missing value.  Times may be numbers, dates as ``2020-04-01 10:05:00`` (then the first submission is
            second 0) or durations as ``0:00:03``; users and groups may be names.  Jobs of 0 nodes are left out and counted in
            ``provenance.dropped``.
        units: of columns, by field, where these are not seconds or GiB: ``{"submit_s": "ms"}``, from :data:`TIME_UNITS` and
            :data:`MEMORY_UNITS`.
        name: a label for tables and figures; by default the name of the file.
        machine_nodes: size of the machine they were recorded on, used as the default machine.

    Raises:
        TraceError: the file cannot be read, has no such column, or a value is not allowed; the message starts with
            ``path:line:``.
        SpecificationError: ``columns`` or ``units`` names a field or a unit that there is not.
    """
    import pandas as pd

    if not isinstance(columns, Mapping):
        raise refused("read_csv: columns", columns, "it must be a dictionary: the columns of the file by field of a job")
    text, units = os.fspath(path), units or {}
    factors = {field: _factor(field, units.get(field), columns) for field in (*columns, *units)}
    lines = list(_lines(text, tuple(columns.values())))
    if not lines:
        raise TraceError(f"{text}: it has no jobs; at least one is needed")
    values: dict[str, Any] = {
        field: [
            line.fields[column] or None if field in _LABELS else _value(line, field, column, factors[field]) for line in lines
        ]
        for field, column in columns.items()
    }
    if any(isinstance(value, str) for value in values.get("job", ())):
        codes, _ = pd.factorize(np.array([None if value is None else str(value) for value in values["job"]], dtype=object))
        values["job"] = [code + 1 if code >= 0 else None for code in codes.tolist()]
    frame, dropped = _jobs_that_ran(pd.DataFrame(values))
    if not len(frame) and dropped:
        raise TraceError(f"{text}: no usable job: {counts_in_words(dropped)}")
    places = [lines[row].place for row in frame.index]
    try:
        workload = Workload.from_frame(frame.reset_index(drop=True), name=name or Path(text).name, machine_nodes=machine_nodes)
    except SpecificationError as problem:
        if (row := _PLACE.match(str(problem))) is not None:
            raise TraceError(f"{places[int(row[1])]}: {str(problem)[row.end() :]}") from None
        raise SpecificationError(f"read_csv: {text}: {str(problem).removeprefix('Workload.from_frame: ')}") from None
    options = {"columns": dict(columns), "units": dict(units)}
    workload.provenance = Provenance(source=text, options=options, dropped=Counter(dropped))
    return workload


def _jobs_that_ran(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the jobs of a table that held nodes, with times from the first submission, and the others counted by reason."""
    dropped: dict[str, int] = {}

    def keep(which: pd.Series[bool], reason: str) -> None:
        nonlocal frame
        if lost := int((~which).sum()):
            dropped[reason] = lost
            frame = frame[which]

    if "nodes" in frame:
        keep(frame["nodes"] != 0, "of size 0")
    if "start_s" in frame:
        keep(frame["start_s"].notna(), "never started")
    if "run_s" not in frame and {"start_s", "end_s"} <= set(frame):
        keep(frame["end_s"].notna(), "without an end")
        keep(frame["end_s"] > frame["start_s"], "with run time zero or less")
        frame = frame.assign(run_s=frame["end_s"] - frame["start_s"])
    if "submit_s" not in frame and "start_s" in frame:
        frame = frame.assign(submit_s=frame["start_s"])
    if "start_s" in frame and "wait_s" not in frame:
        frame = frame.assign(wait_s=(frame["start_s"] - frame["submit_s"]).clip(lower=0))
    if len(frame) and "submit_s" in frame and frame["submit_s"].min() > EARLIEST_S:
        frame = frame.assign(submit_s=frame["submit_s"] - frame["submit_s"].min())
    return frame.drop(columns=["start_s", "end_s"], errors="ignore"), dropped


def _factor(field: str, unit: str | None, columns: Mapping[str, str]) -> float:
    known_fields = (*COLUMNS_OF_JOBS, "start_s", "end_s")
    if field not in known_fields:
        hint = did_you_mean(field, known_fields)
        if columns.get(field) in known_fields:
            hint = f" (did you mean {columns[field]}={field}?)"
        raise SpecificationError(
            f"read_csv: columns: {quoted(field)} is not known{hint}; it must be one of {', '.join(known_fields)}"
        )
    if field not in columns:
        raise SpecificationError(f"read_csv: units: {quoted(field)} is not among the columns")
    if unit is None:
        return 1.0
    known = TIME_UNITS if field.endswith("_s") else MEMORY_UNITS if field.endswith("_gib") else {}
    if not known:
        raise SpecificationError(f"read_csv: units: {quoted(field)} has no unit; only times and memory have")
    return known[choice(f"read_csv: units: {field}", unit, known)]


def _value(line: _Line, field: str, column: str, factor: float) -> float | str | None:
    given = line.fields[column].strip()
    if given.lower() in NO_VALUE:
        return None
    if (value := _number(given)) is not None:
        return value * factor if factor != 1 else value
    if field in ("job", "user", "group"):
        return given
    if field == "status" and (state := STATUS.get(state_of(given))) is not None:
        return state
    allowed = "a number"
    try:
        if field in _STAMPS:
            allowed = "a number, or a date and time as 2020-04-01 10:05:00"
            return Clock().seconds(given)
        if field.endswith("_s") and ":" in given:
            return duration(given)
    except ValueError:
        pass
    raise line.refused(column, f"it must be {allowed}")


def _number(text: str) -> float | None:
    """Return a number as Python's own, whole ones exactly; ``None`` if it is not a finite number."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if isfinite(value) else None
    return None


def _lines(path: str, needed: Sequence[str]) -> Iterator[_Line]:
    """Yield the lines of a table that has the columns needed; blank ones are skipped."""
    rows = table_rows(path, ",;\t")
    place, header = next(rows, (f"{path}:1", []))
    for column in needed:
        if column not in header:
            names = [visible(shown(name)) for name in header[:_MOST_LISTED]] + ["..."] * (len(header) > _MOST_LISTED)
            hint = did_you_mean(column, header)
            raise TraceError(f"{place}: there is no column {quoted(column)}{hint}; there are {', '.join(names) or 'none'}")
    return (_Line(place, dict(zip(header, fields, strict=True))) for place, fields in rows)


def is_muri(text: str) -> bool:
    """Return whether a line is the header of a workload of Zhao et al. 2022."""
    return set(MURI_COLUMNS) <= set(text.split(","))


def read_muri(path: str | os.PathLike[str]) -> Workload:
    """Read a workload of a GPU cluster as published with Zhao et al. 2022 (Muri), a line for each job.

    Columns: ``job_id``, ``num_gpu``, ``submit_time`` (ms), ``iterations``, ``iteration_time`` (ms), ``model_name``; others are
    ignored.  A node of the simulation is a GPU.  A job runs for iterations x iteration time x 1.015, the authors' factor.  Its
    ``restart_s`` is the start-up cost that the authors measured for its model and size, and 10 s where they give none.  The
    machine has 64 GPUs.  A file that cannot be read, or a malformed line, is a TraceError.
    """
    text = os.fspath(path)
    lines = list(_lines(text, MURI_COLUMNS))
    if not lines:
        raise TraceError(f"{text}: it has no jobs; at least one is needed")
    rows: dict[int, JobRow] = {}
    for line in lines:
        gpus, iterations = line.whole("num_gpu", least=1), line.whole("iterations", least=1)
        run = round(iterations * line.number("iteration_time", "a number > 0", lambda value: value > 0) * _MURI_TICKS)
        if run > LAST_TICK:
            raise line.refused("iterations", "the job takes longer than fits 64-bit ticks")
        costs = dict(zip(_MURI_SIZES, _MURI_RESTARTS.get(line.fields["model_name"], ()), strict=False))
        submit, job = line.whole("submit_time", least=0) * 1000, line.whole("job_id", least=0)
        if job in rows:
            raise line.refused("job_id", "another line has the same; numbers must be unique")
        restart = costs.get(gpus, _OTHER_RESTART) * TICKS_PER_SECOND
        demand = Demand(costs=OwnCosts(restart=restart))
        rows[job] = JobRow(submit, job, gpus, run, run, user=-1, group=-1, priority=0, status=-1, demand=demand)
    provenance = Provenance(source=text, options={"unit": "gpus"})
    workload = Workload(rows.values(), name=Path(text).name, provenance=provenance, machine_nodes=_MURI_GPUS)
    return workload.made_by("trace", {"trace": Path(path)})
