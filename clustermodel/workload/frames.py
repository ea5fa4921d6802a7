"""Workloads as pandas tables: the table of a workload, and jobs from a table of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.job import UNSET, JobRow
from clustermodel.memory_units import KIB_PER_GIB, require_gib
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import require_seconds, require_whole
from clustermodel.workload.extra_columns import PRECEDING, STREAM, THINK, ExtraColumns
from clustermodel.workload.recorded_frames import RECORDED_FIELDS, add_recorded, recorded_of_frame

if TYPE_CHECKING:
    import pandas as pd

_NEEDED: Final = ("submit_s", "nodes", "run_s")
_OPTIONAL: Final = (
    "job", "estimate_s", "user", "group", "priority", "status", "stream", "memory_gib",
    "checkpoint_s", "restart_s", "checkpoint_interval_s", "preceding", "think_time_s", *RECORDED_FIELDS,
)  # fmt: skip
COLUMNS_OF_JOBS: Final = _NEEDED + _OPTIONAL
"""The columns that :func:`jobs_of_frame` knows."""
_OWN_COSTS: Final = ("checkpoint", "restart", "checkpoint_interval")
"""Columns of times that most jobs do not have, and tables only if one has."""
_DEFAULTS: Final = {"user": -1, "group": -1, "priority": 0, "status": -1}


def frame_of(columns: Mapping[str, IntArray], labels: Sequence[str], names: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    """Return the columns of a workload as pandas, in the units that :func:`jobs_of_frame` reads.

    Args:
        columns: of :class:`~clustermodel.job.JobRow` and the extra ones, times in ticks.
        labels: of the streams.
        names: which the numbers of recorded columns stand for.
    """
    import pandas as pd

    frame = pd.DataFrame(
        {
            "job": columns["id"],
            "submit_s": columns["submit"] / TICKS_PER_SECOND,
            "nodes": columns["nodes"],
            "run_s": columns["run"] / TICKS_PER_SECOND,
            "estimate_s": columns["estimate"] / TICKS_PER_SECOND,
            "user": columns["user"],
            "group": columns["group"],
            "priority": columns["priority"],
            "status": columns["status"],
        }
    )
    if STREAM in columns:
        frame["stream"] = pd.Categorical.from_codes(columns[STREAM], categories=pd.Index(labels))
    if (columns["memory"] != UNSET).any():
        frame["memory_gib"] = _or_nan(columns["memory"], KIB_PER_GIB)
    for name in _OWN_COSTS:
        if (columns[name] != UNSET).any():
            frame[f"{name}_s"] = _or_nan(columns[name], TICKS_PER_SECOND)
    if PRECEDING in columns:
        frame["preceding"] = columns[PRECEDING]
        frame["think_time_s"] = _or_nan(np.where(columns[PRECEDING] == UNSET, UNSET, columns[THINK]), TICKS_PER_SECOND)
    add_recorded(frame, columns, names)
    return frame


def _or_nan(values: IntArray, unit: int) -> FloatArray:
    """Return ``values`` in a larger unit, ``nan`` where they are not set."""
    return np.where(values == UNSET, np.nan, values / unit)


def jobs_of_frame(frame: pd.DataFrame) -> tuple[list[JobRow], ExtraColumns | None]:
    """Return the jobs of a table: rows, and extra columns if it has any; ``Workload.from_frame`` describes the columns.

    Raises:
        SpecificationError: a column is missing or unknown, or a value is not allowed.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise SpecificationError(f"Workload.from_frame: {quoted(frame)} is not allowed; it must be a pandas.DataFrame")
    for column in _NEEDED:
        if column not in frame.columns:
            raise SpecificationError(f"Workload.from_frame: column {column!r} is missing; {', '.join(_NEEDED)} are needed")
    for column in frame.columns:
        if column not in COLUMNS_OF_JOBS:
            hint = did_you_mean(str(column), COLUMNS_OF_JOBS)
            raise SpecificationError(
                f"Workload.from_frame: column {quoted(column)} is not known{hint}; it must be one of "
                f"{', '.join(COLUMNS_OF_JOBS)}"
            )
    if frame.columns.has_duplicates:
        raise SpecificationError("Workload.from_frame: two columns have the same name; each must be given once")
    submit = _ticks(frame, "submit_s")
    run = np.maximum(1, _ticks(frame, "run_s", positive=True))
    estimate = _ticks(frame, "estimate_s", missing=0) if "estimate_s" in frame else run
    columns = {
        "submit": submit,
        "id": _numbers(frame, submit),
        "nodes": _whole(frame, "nodes"),
        "run": run,
        "estimate": np.where(estimate > 0, estimate, run),
        **{name: _whole(frame, name, default) for name, default in _DEFAULTS.items()},
        "memory": _kib(frame),
        **{name: _own_cost(frame, f"{name}_s") for name in _OWN_COSTS},
    }
    rows = [JobRow(*values) for values in zip(*(columns[name].tolist() for name in JobRow._fields), strict=True)]
    return rows, _extra(frame, columns["id"])


def _numbers(frame: pd.DataFrame, submit: IntArray) -> IntArray:
    if "job" in frame:
        return _whole(frame, "job")
    if "preceding" in frame:
        raise SpecificationError("Workload.from_frame: column 'job' is missing; 'preceding' needs it")
    numbers = np.empty(len(submit), dtype=np.int64)
    numbers[np.argsort(submit, kind="stable")] = np.arange(1, len(submit) + 1)
    return numbers


def _extra(frame: pd.DataFrame, ids: IntArray) -> ExtraColumns | None:
    import pandas as pd

    columns: dict[str, IntArray] = {}
    labels: tuple[str, ...] = ()
    if "stream" in frame:
        missing = np.flatnonzero(frame["stream"].isna())
        if len(missing):
            raise SpecificationError(f"Workload.from_frame: row {missing[0]}: stream: it is missing; it must be a label")
        texts = frame["stream"].astype(str)
        known = [str(label) for label in frame["stream"].cat.categories] if _is_categorical(frame["stream"]) else None
        codes, found = pd.factorize(pd.Categorical(texts, categories=known) if known else texts)
        columns[STREAM], labels = codes.astype(np.int64), tuple(map(str, found))
    if "preceding" in frame:
        columns[PRECEDING] = _whole(frame, "preceding", UNSET)
        for row in np.flatnonzero((columns[PRECEDING] != UNSET) & ~np.isin(columns[PRECEDING], ids)):
            raise SpecificationError(
                f"Workload.from_frame: row {row}: preceding: there is no job {columns[PRECEDING][row]}; it must be the number "
                "of a job of the table, or -1"
            )
        columns[THINK] = _ticks(frame, "think_time_s", missing=0) if "think_time_s" in frame else np.zeros_like(ids)
    elif "think_time_s" in frame:
        raise SpecificationError("Workload.from_frame: column 'preceding' is missing; 'think_time_s' needs it")
    recorded, names = recorded_of_frame(
        frame,
        lambda table, name: _ticks(table, name, missing=UNSET / TICKS_PER_SECOND),
        lambda table, name: _whole(table, name, UNSET),
    )
    columns |= recorded
    return ExtraColumns(ids=ids, columns=columns, labels=labels, names=names) if columns else None


def _is_categorical(column: pd.Series[str]) -> bool:
    import pandas as pd

    return isinstance(column.dtype, pd.CategoricalDtype)


def _kib(frame: pd.DataFrame) -> IntArray:
    if "memory_gib" not in frame:
        return np.full(len(frame), UNSET, dtype=np.int64)
    gib = _checked(frame, "memory_gib", require_gib, missing=UNSET)
    return np.where(gib < 0, UNSET, np.rint(gib * KIB_PER_GIB)).astype(np.int64)


def _own_cost(frame: pd.DataFrame, column: str) -> IntArray:
    if column not in frame:
        return np.full(len(frame), UNSET, dtype=np.int64)
    positive = column == "checkpoint_interval_s"
    ticks = _ticks(frame, column, positive=positive, missing=UNSET / TICKS_PER_SECOND)
    return np.where(ticks == UNSET, UNSET, np.maximum(ticks, positive))


def _ticks(frame: pd.DataFrame, column: str, *, positive: bool = False, missing: float | None = None) -> IntArray:
    seconds = _checked(frame, column, lambda name, value: require_seconds(name, value, positive=positive), missing)
    return np.rint(seconds * TICKS_PER_SECOND).astype(np.int64)


def _whole(frame: pd.DataFrame, column: str, default: int | None = None) -> IntArray:
    if column not in frame:
        assert default is not None
        return np.full(len(frame), default, dtype=np.int64)

    def check(name: str, value: object) -> float:
        return require_whole(name, int(value) if isinstance(value, float) and value.is_integer() else value)

    return _checked(frame, column, check, default).astype(np.int64)


def _checked(
    frame: pd.DataFrame, column: str, check: Callable[[str, object], float], missing: float | None = None
) -> FloatArray:
    """Return a column as numbers, ``missing`` where it has none.

    Raises:
        SpecificationError: a value is refused by ``check``, or missing where it must not be.
    """
    absent = frame[column].isna().to_numpy()
    values = np.full(len(frame), np.nan if missing is None else missing, dtype=np.float64)
    for row, value in enumerate(frame[column].tolist()):
        if absent[row] and missing is not None:
            continue
        values[row] = check(f"Workload.from_frame: row {row}: {column}", value)
    return values
