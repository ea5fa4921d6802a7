"""Recorded columns of a workload in pandas tables: both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.job import UNSET
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.extra_columns import (
    ARRAY_LIMIT,
    CORES,
    GPUS,
    NAMED_COLUMNS,
    NODE_COUNT,
    RECORDED_COLUMNS,
    REQUEUES,
    SUSPENDED,
    WAIT,
)

if TYPE_CHECKING:
    import pandas as pd

_TIMES: Final = {WAIT: "wait_s", SUSPENDED: "suspended_s"}
_NUMBERS: Final = (REQUEUES, ARRAY_LIMIT, NODE_COUNT, CORES, GPUS)
RECORDED_FIELDS: Final = tuple(_TIMES.get(name, name) for name in RECORDED_COLUMNS)
"""Names of the recorded columns in a table."""


def add_recorded(frame: pd.DataFrame, columns: Mapping[str, IntArray], names: Mapping[str, tuple[str, ...]]) -> None:
    """Add those of ``columns`` that are recorded ones to ``frame``: times in seconds, names as categories."""
    import pandas as pd

    for name, values in columns.items():
        if name in _TIMES:
            frame[_TIMES[name]] = np.where(values == UNSET, np.nan, values / TICKS_PER_SECOND)
        elif name in NAMED_COLUMNS:
            frame[name] = pd.Categorical.from_codes(np.maximum(values - 1, -1), categories=pd.Index(names.get(name, ())))
        elif name in _NUMBERS:
            frame[name] = values


def recorded_of_frame(
    frame: pd.DataFrame,
    times: Callable[[pd.DataFrame, str], IntArray],
    numbers: Callable[[pd.DataFrame, str], IntArray],
) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
    """Return the recorded columns of a table, and the names that their numbers stand for.

    Args:
        frame: the table.
        times: returns a column of seconds as ticks, :data:`UNSET` where it has none.
        numbers: returns a column of whole numbers, :data:`UNSET` where it has none.
    """
    import pandas as pd

    columns = {name: times(frame, field) for name, field in _TIMES.items() if field in frame}
    columns |= {name: numbers(frame, name) for name in _NUMBERS if name in frame}
    names: dict[str, tuple[str, ...]] = {}
    for name in NAMED_COLUMNS:
        if name in frame:
            codes, found = pd.factorize(frame[name].astype(object))
            columns[name] = np.where(codes < 0, UNSET, codes + 1).astype(np.int64)
            names[name] = tuple(map(str, found))
    return columns, names
