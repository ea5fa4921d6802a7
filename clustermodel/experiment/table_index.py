"""Lookup in the table of an experiment: the labels of factors, the rows of a point, a measure of its replications.

Each is found once, so that means and differences of thousands of points take no longer than reading the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.experiment.factors import RESAMPLED, Label, describe, label_key, plain

if TYPE_CHECKING:
    import pandas as pd


class MissingValueError(SpecificationError):
    """A measure has no value in some trial."""


class Observation(NamedTuple):
    """A measure in one trial."""

    run: str
    """The key of the run; trials that cannot differ have the same."""
    value: float


class TableIndex:
    """The finished trials of an experiment by their levels.

    Args:
        frame: a row for each trial; it must not change.
        factors: names of its columns that are factors.
        name: of the experiment, for messages.
    """

    def __init__(self, frame: pd.DataFrame, factors: Sequence[str], name: str) -> None:
        self._frame = frame
        self._factors = tuple(factors)
        self._name = name
        self._labels_of: dict[str, list[Label]] = {}
        self._columns: dict[str, list[Any]] = {}
        self._rows_by: dict[tuple[str, ...], dict[tuple[Any, ...], list[int]]] = {}

    def labels(self, factor: str) -> list[Label]:
        """Return the label of a factor in each row."""
        if factor not in self._labels_of:
            self._labels_of[factor] = list(map(_label, self._frame[factor].tolist()))
        return self._labels_of[factor]

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column."""
        if name not in self._columns:
            self._columns[name] = self._frame[name].tolist()
        return self._columns[name]

    def varying(self) -> list[str]:
        """Return the factors that have several levels."""
        return [name for name in self._factors if len(set(self.labels(name))) > 1]

    def _rows_with(self, levels: Mapping[str, Label]) -> list[int]:
        """Return the positions of the rows with these levels, perhaps none."""
        names = tuple(levels)
        self.require_factors(names)
        if names not in self._rows_by:
            found: dict[tuple[Any, ...], list[int]] = {}
            columns = [list(map(label_key, self.labels(name))) for name in names]
            keys = zip(*columns, strict=True) if names else [()] * len(self._frame)
            for row, key in enumerate(keys):
                found.setdefault(key, []).append(row)
            self._rows_by[names] = found
        return self._rows_by[names].get(tuple(map(label_key, levels.values())), [])

    def has(self, levels: Mapping[str, Label]) -> bool:
        """Return whether a trial has these levels."""
        return bool(self._rows_with(levels))

    def rows_at(self, levels: Mapping[str, Label | Sequence[Label]]) -> list[int]:
        """Return the positions of the rows with these levels, or with one of several levels of a factor.

        Raises:
            SpecificationError: there is no such factor, or no trial has these levels.
        """
        choices = [list(one) if isinstance(one, list | tuple) else [one] for one in levels.values()]
        points = (dict(zip(levels, point, strict=True)) for point in product(*choices))
        rows = sorted({row for point in points for row in self._rows_with(point)})
        if not rows:
            raise SpecificationError(f"table of {self._name}: no finished trial has {describe(levels) or 'any level'}")
        return rows

    def resampled(self, levels: Mapping[str, Label]) -> bool:
        """Return whether the jobs of a trial with these levels are resampled."""
        return RESAMPLED in self._frame and any(self.column(RESAMPLED)[row] == 1 for row in self.rows_at(levels))

    def cells(self, measure: str, levels: Mapping[str, Label], most: float = inf) -> dict[int, Observation]:
        """Return a measure of one point by replication.

        Args:
            measure: a column of numbers.
            levels: of factors that choose the point.
            most: the last replication to use.

        Raises:
            SpecificationError: there is no such column, a value is missing, or the trials are of several points.
        """
        rows = self.rows_at(levels)
        if measure not in self._frame:
            near = did_you_mean(measure, map(str, self._frame.columns))
            raise SpecificationError(f"table of {self._name}: there is no column {quoted(measure)}{near}")
        replications, runs, values = self.column("replication"), self.column("run"), self.column(measure)
        cells: dict[int, Observation] = {}
        for row in rows:
            replication, value = int(replications[row]), values[row]
            if replication > most:
                continue
            if replication in cells:
                shared = describe(levels) or "this table"
                raise SpecificationError(f"table of {self._name}: {shared} has several points; choose levels of more factors")
            if value is None or value != value:  # noqa: PLR0124  nan
                where = f" in {describe(levels)}" if levels else ""
                raise MissingValueError(f"table of {self._name}: {measure} is missing{where}")
            if not isinstance(value, bool | int | float):
                raise SpecificationError(f"table of {self._name}: {measure} is {quoted(value)}; it must be a column of numbers")
            cells[replication] = Observation(str(runs[row]), float(value))
        return dict(sorted(cells.items()))

    def require_factors(self, names: Sequence[str]) -> None:
        """Refuse names that are no factors.

        Raises:
            SpecificationError: a name is refused.
        """
        for name in names:
            if name not in self._factors:
                near = did_you_mean(name, self._factors)
                raise SpecificationError(f"table of {self._name}: {quoted(name)} is no factor{near}")


def _label(value: Any) -> Label:
    """Return a cell of a factor's column as a label: pandas turns ``None`` among numbers into ``nan``."""
    label = plain(value)
    return None if label != label else label  # type: ignore[return-value]  # noqa: PLR0124  nan


def distinct_values(cells: Mapping[int, Observation]) -> FloatArray:
    """Return the values of different runs."""
    return np.array([cell.value for cell in {cell.run: cell for cell in cells.values()}.values()])
