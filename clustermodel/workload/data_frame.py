"""The jobs of a workload as a table in pandas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import KIB_PER_GIB, flag, require_gib, require_seconds, require_whole
from clustermodel.workload.job import COSTS, FLAGS, MALLEABLE, NUMBERS, RESIZE, UNSET
from clustermodel.workload.job_columns import (
    HELD,
    NAMED_COLUMNS,
    PRECEDING,
    RECORDED_COLUMNS,
    STREAM,
    SUSPENDED,
    THINK,
    WAIT,
    names_in_a_row,
    table_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.workload.table import Workload

_OF_TICKS: Final = (RESIZE, *COSTS)
_OF_FRAME: Final = {
    "job": "id", "submit_s": "submit", "nodes": "nodes", "run_s": "run", "estimate_s": "estimate", "user": "user",
    "group": "group", "priority": "priority", "status": "status", "stream": STREAM, "memory_gib": "memory",
    "checkpoint_s": "checkpoint", "restart_s": "restart", "checkpoint_interval_s": "checkpoint_interval",
    "preceding": PRECEDING, "think_time_s": THINK,
    **{f"{name}_s" if name in (WAIT, SUSPENDED, HELD, *_OF_TICKS) else name: name for name in RECORDED_COLUMNS},
}  # fmt: skip
"""Columns of a table in pandas, in order, and the columns that they are: seconds (``_s``), GiB (``_gib``) or whole numbers."""
RECORDED_FIELDS: Final = tuple(column for column, name in _OF_FRAME.items() if name in RECORDED_COLUMNS)
_NEEDED: Final = ("submit_s", "nodes", "run_s")
NAMES_OF_NUMBERS: Final = {"user": "user_name", "group": "group_name"}
"""Columns of numbers that may have names beside them, and the columns of these."""
COLUMNS_OF_JOBS: Final = (*_NEEDED, *(name for name in _OF_FRAME if name not in _NEEDED), *NAMES_OF_NUMBERS.values())
"""The columns of a table that :meth:`Workload.from_frame` knows."""


def _refused(message: str) -> SpecificationError:
    return SpecificationError(f"Workload.from_frame: {message}")


def _require_columns(frame: pd.DataFrame) -> None:
    for column in _NEEDED:
        if column not in frame.columns:
            raise _refused(f"column {column!r} is missing; {', '.join(_NEEDED)} are needed")
    for column in frame.columns:
        if column not in COLUMNS_OF_JOBS:
            hint = did_you_mean(str(column), COLUMNS_OF_JOBS)
            raise _refused(f"column {quoted(column)} is not known{hint}; it must be one of {', '.join(COLUMNS_OF_JOBS)}")
    if frame.columns.has_duplicates:
        raise _refused("two columns have the same name; each must be given once")
    of_sizes = ((column, MALLEABLE) for column in ("min_nodes", "max_nodes", "resize_s"))
    for column, other in (("preceding", "job"), ("think_time_s", "preceding"), *of_sizes):
        if column in frame and other not in frame:
            raise _refused(f"column {other!r} is missing; {column!r} needs it")
    if STREAM in frame and (missing := np.flatnonzero(frame[STREAM].isna())).size:
        raise _refused(f"row {missing[0]}: stream: it is missing; it must be a label")


def _names_apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with texts of the columns of users and groups in columns of names."""
    for column, label in NAMES_OF_NUMBERS.items():
        if column not in frame or label in frame or frame[column].dtype.kind in "biuf":
            continue
        if frame[column].map(lambda value: isinstance(value, str)).any():
            frame = frame.rename(columns={column: label})
    return frame


def _with_names(frame: pd.DataFrame, numbers: IntArray, column: str) -> tuple[IntArray, tuple[str, ...]]:
    """Return the numbers of users or groups and the names of 1, 2, ..., given in a column of names."""
    import pandas as pd

    label = NAMES_OF_NUMBERS[column]
    texts = frame[label].astype(object).map(str, na_action="ignore")
    if column not in frame:
        codes, unique = pd.factorize(texts)
        return np.where(codes < 0, UNSET, codes + 1), tuple(unique)
    pairs = {
        (number, text) for number, text in zip(numbers.tolist(), texts, strict=True) if number > 0 and isinstance(text, str)
    }
    names = dict(pairs)
    if len(names) < len(pairs):
        raise _refused(f"{label}: a number in the column {column!r} has two names; each must have one")
    return numbers, names_in_a_row({number: text for number, text in names.items() if text != str(number)})


def _column(frame: pd.DataFrame, column: str) -> IntArray:
    """Return a column in ticks, KiB or whole numbers, -1 where the table has no value (0 for some)."""
    missing = 0 if column in ("estimate_s", "priority", "think_time_s") else UNSET
    values = np.full(len(frame), missing, dtype=np.int64)
    if column not in frame or column in (STREAM, *NAMED_COLUMNS):
        return values
    check: Callable[[str, Any], float] = _whole
    unit = 1
    if column.endswith("_s"):
        check = partial(require_seconds, positive=column in ("run_s", "checkpoint_interval_s"))
        unit = TICKS_PER_SECOND
    elif column.endswith("_gib"):
        check, unit = require_gib, KIB_PER_GIB
    elif column in FLAGS:
        check = _flag
    present = np.ones(len(frame), dtype=bool) if column in (*_NEEDED, "job") else frame[column].notna().to_numpy()
    given = enumerate(frame[column].tolist())
    checked = [check(f"Workload.from_frame: row {row}: {column}", value) * unit for row, value in given if present[row]]
    values[present] = np.rint(checked)
    return values


def _flag(name: str, value: Any) -> int:
    return UNSET if value == UNSET else flag(name, bool(value) if value in (0, 1) else value)


def _whole(name: str, value: Any) -> int:
    return require_whole(name, int(value) if isinstance(value, float) and value.is_integer() else value)


def jobs_of_frame(frame: pd.DataFrame) -> tuple[IntArray, list[str], dict[str, tuple[str, ...]]]:
    """Return the jobs of a table: columns of numbers, the names of the extra ones, and the names that numbers stand for."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise _refused(f"{quoted(frame)} is not allowed; it must be a pandas.DataFrame")
    _require_columns(frame)
    frame = _names_apart(frame)
    columns = {name: _column(frame, column) for column, name in _OF_FRAME.items()}
    columns["run"] = np.maximum(1, columns["run"])
    columns["estimate"] = np.where(columns["estimate"] > 0, columns["estimate"], columns["run"])
    interval = columns["checkpoint_interval"]
    columns["checkpoint_interval"] = np.where(interval == 0, 1, interval)  # less than a tick
    if "job" not in frame:
        columns["id"][np.argsort(columns["submit"], kind="stable")] = np.arange(1, len(frame) + 1)
    preceding = columns[PRECEDING]
    if (unknown := np.flatnonzero((preceding != UNSET) & ~np.isin(preceding, columns["id"]))).size:
        raise _refused(
            f"row {unknown[0]}: preceding: there is no job {preceding[unknown[0]]}; it must be the number of a job of the "
            "table, or -1"
        )
    names: dict[str, tuple[str, ...]] = {STREAM: ()}
    for label in (STREAM, *NAMED_COLUMNS):
        if label in frame:
            codes, texts = pd.factorize(frame[label].astype(str if label == STREAM else object))
            columns[label] = codes if label == STREAM else np.where(codes < 0, UNSET, codes + 1)
            names[label] = tuple(map(str, texts))
    for column, label in NAMES_OF_NUMBERS.items():
        if label in frame:
            columns[column], names[column] = _with_names(frame, columns[column], column)
    extra = [name for column, name in _OF_FRAME.items() if column in frame and name not in NUMBERS]
    if PRECEDING in extra and THINK not in extra:
        extra.append(THINK)
    table = table_of(**{column: columns[column] for column in (*NUMBERS, *extra)})
    return table, extra, names


def frame_of(workload: Workload) -> pd.DataFrame:
    """Return the jobs of a workload as a table."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for column, name in _OF_FRAME.items():
        values, is_extra = workload.column(name), name not in NUMBERS
        if name not in NUMBERS[:9] and not (workload.has(name) if is_extra else (values != UNSET).any()):
            continue
        if name == THINK:
            values = np.where(workload.column(PRECEDING) == UNSET, UNSET, values)
        columns[column] = values
        if name == STREAM:
            columns[column] = pd.Categorical.from_codes(values, categories=pd.Index(workload.streams))
        elif name in NAMED_COLUMNS:
            texts = pd.Index(workload.names.get(name, ()))
            columns[column] = pd.Categorical.from_codes(np.maximum(values - 1, -1), categories=texts)
        elif column.endswith(("_s", "_gib")):
            unit = TICKS_PER_SECOND if column.endswith("_s") else KIB_PER_GIB
            columns[column] = np.where(values == UNSET, np.nan, values / unit)
    columns |= {label: workload.labels(name) for name, label in NAMES_OF_NUMBERS.items() if workload.names.get(name)}
    return pd.DataFrame(columns)
