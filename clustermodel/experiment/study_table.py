"""The table of an experiment: a row for each finished trial, and means, intervals and paired differences over replications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import inf, isfinite, isnan, nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import SpecificationError, did_you_mean, missing_package, quoted, visible
from clustermodel.experiment.factors import Label, Trial, describe, label_key, plain
from clustermodel.measure.metrics import QUANTITIES, quantity
from clustermodel.measure.quantities import ACCOUNT_QUANTITIES
from clustermodel.measure.replications import Counted, Rows, counted
from clustermodel.measure.statistics import LEVEL, RESAMPLED, Estimates, Interval, difference_of_logarithms, ratios
from clustermodel.text.files import write_file
from clustermodel.text.formatting import html_fields

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from clustermodel.figures.study_plots import StudyPlots
    from clustermodel.figures.text_table import TextTable
    from clustermodel.measure.input_notes import Note


_MOST_LEVELS = 10  # that a message names


class MissingValueError(SpecificationError):
    """A measure has no value in some trial."""


class Spent(NamedTuple):
    """Wall times while an experiment ran, summed over its processes, seconds."""

    in_runs_s: float
    """Simulating."""
    preparing_s: float
    """Making the jobs of runs and their keys, in this process and in the workers."""

    def __str__(self) -> str:
        """Return both in words."""
        return f"{self.in_runs_s:,.1f} s in simulations, {self.preparing_s:,.1f} s in making jobs and keys"


class Differences(NamedTuple):
    """Paired differences of points from their counterparts at a baseline level; shapes ``(differences,)``."""

    points: IntArray
    """The places of the points in :meth:`StudyTable.points`."""
    estimates: Estimates
    """The mean differences (or ratios) with their intervals."""
    relative: FloatArray
    """The mean difference over the baseline's mean of the same pairs; ``nan`` for a ratio, or where that mean is 0."""
    significant: BoolArray
    """Whether the interval excludes 0 (or 1)."""


class StudyTable:
    """The finished trials of an experiment, in its order: a row each.

    Columns: ``run`` (the key of the run), the factors, ``replication``, ``seed``, and unless they are factors ``policy``,
    ``workload`` and ``nodes``; then the fields of the summary, the accounts of the ledger and the own measures (docs/outputs).

    Trials with the same ``run`` cannot differ, for example the replications of a policy without random numbers on a trace:
    intervals count them once.  Trials whose jobs are resampled have a column ``resampled``, and their intervals are of sample
    paths (:func:`~clustermodel.measure.statistics.of_sample_paths`).

    Levels of factors choose a point.  Methods raise a ``SpecificationError`` where there is no such column, factor or trial, a
    value is missing, or the trials are of several points.
    """

    def __init__(
        self,
        table: pd.DataFrame | Sequence[Mapping[str, Any]],
        factors: Sequence[str],
        name: str,
        failures: Sequence[tuple[str, str]] = (),
        shown: Sequence[str] = (),
    ) -> None:
        self._table = table
        self.factors = tuple(factors)
        """The names of the factors."""
        self.name = name
        """The name of the experiment."""
        self.failures = tuple(failures)
        """The factors and the error of each failed trial."""
        self.shown = tuple(shown)
        """The columns that matter most, which ``print(table)`` shows."""
        self.notes: tuple[Note, ...] = ()
        """Costs that were given and that no policy uses, of the table that a run of the experiment returns."""
        self.spent: Spent | None = None
        """Wall times, of the table that a run of the experiment returns."""
        self._columns: dict[str, list[Any]] = {}
        self._rows_by: dict[tuple[str, ...], dict[tuple[Any, ...], list[int]]] = {}
        self._numbers_of: dict[str, FloatArray] = {}
        self._counted_at: dict[tuple[Any, ...], Counted] = {}
        self._points_at: dict[tuple[Any, ...], IntArray] = {}

    @property
    def frame(self) -> pd.DataFrame:
        """The table as pandas; do not change it, but a copy."""
        if isinstance(self._table, Sequence):
            import pandas as pd  # a study runs without it

            columns = None if self._table else ["run", *self.factors, "replication", "seed"]
            self._table = pd.DataFrame(self._table, columns=columns)
        return self._table

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return visible(f"<StudyTable {self.name}: {len(self):,} trials, factors {', '.join(self.factors) or 'none'}>")

    def __str__(self) -> str:
        """Return the means of the columns that matter most, with their intervals: a line for each point, and notes."""
        return str(self._means_shown()) if len(self) else repr(self)

    def _repr_html_(self) -> str:
        """Return the same table for a notebook."""
        return self._means_shown()._repr_html_() if len(self) else html_fields(f"{self.name}: no trials", [])

    def _means_shown(self) -> TextTable:
        from clustermodel.figures.study_tables import means_table, notes_of_runs  # noqa: PLC0415  with rich

        table = means_table(self, f"{self.name}: means ± half of the 95 % intervals", self.shown)
        table.notes = (*table.notes, *notes_of_runs(self))
        return table

    @property
    def plot(self) -> StudyPlots:
        """Figures of this table."""
        from clustermodel.figures.study_plots import StudyPlots  # noqa: PLC0415  matplotlib takes a second to import

        return StudyPlots(self)

    # Trials and points

    def trials(self) -> list[Trial]:
        """Return the finished trials."""
        columns = map(self._column, (*self.factors, "replication"))
        return [Trial(row[:-1], int(row[-1])) for row in zip(*columns, strict=True)]

    def levels(self, factor: str) -> list[Label]:
        """Return the levels of a factor that finished trials have, in order of appearance."""
        return [label for ((_, label),) in self._rows([factor])]

    def points(self, by: Sequence[str] | None = None) -> list[dict[str, Label]]:
        """Return the points of the finished trials in order of appearance, as levels of the factors ``by``.

        By default these are the factors that have several levels.
        """
        names = self._varying() if by is None else list(by)
        return [{name: label for name, (_, label) in zip(names, key, strict=True)} for key in self._rows(names)]

    def at(self, **levels: Label | Sequence[Label]) -> StudyTable:
        """Return the trials that have these levels of factors; a list or tuple chooses several levels of a factor."""
        choices = [list(chosen) if isinstance(chosen, list | tuple) else [chosen] for chosen in levels.values()]
        points = (dict(zip(levels, point, strict=True)) for point in product(*choices))
        rows = sorted({row for point in points for row in self._rows_at(point)})
        if not rows:
            raise self._no_trial(levels)
        return StudyTable(self.frame.iloc[rows], self.factors, self.name, self.failures, self.shown)

    def _error(self, message: str, kind: type[SpecificationError] = SpecificationError) -> SpecificationError:
        return kind(f"table of {self.name}: {message}")

    def _no_trial(self, levels: Mapping[str, Any]) -> SpecificationError:
        choices = ((name, level if isinstance(level, list | tuple) else [level]) for name, level in levels.items())
        unknown = [(name, level) for name, chosen in choices for level in chosen if not self._rows_at({name: level})]
        there = self._levels_instead(*unknown[0]) if unknown and len(self) else ""
        return self._error(f"no finished trial has {describe(levels) or 'any level'}{there}")

    def _levels_instead(self, factor: str, level: object) -> str:
        """Return which levels a factor has, for a message about one that it does not have."""
        there = list(map(str, self.levels(factor)))
        hint = did_you_mean(level, there) if isinstance(level, str) else ""
        more = f" and {len(there) - _MOST_LEVELS} more" if len(there) > _MOST_LEVELS else ""
        return f"{hint}; there are {', '.join(there[:_MOST_LEVELS])}{more}"

    def _column(self, name: str) -> list[Any]:
        """Return the cells of a column; in a factor's column, pandas has turned ``None`` among numbers into ``nan``."""
        if not isinstance(name, str):
            raise self._error(f"{quoted(name)} is not allowed; it must be the name of a column")
        if name not in self._columns:
            if name not in self.frame:
                raise self._error(f"there is no column {quoted(name)}{did_you_mean(name, map(str, self.frame.columns))}")
            cells = self.frame[name].tolist()
            self._columns[name] = [None if cell != cell else plain(cell) for cell in cells] if name in self.factors else cells  # noqa: PLR0124
        return self._columns[name]

    def _varying(self) -> list[str]:
        return [name for name in self.factors if len(self._rows([name])) > 1]

    def _rows(self, names: Sequence[str]) -> dict[tuple[Any, ...], list[int]]:
        """Return the positions of the rows with the same levels of some factors, by the keys of these levels."""
        for name in names:
            if name not in self.factors:
                there = ", ".join(self.factors) or "none"
                raise self._error(f"{quoted(name)} is no factor{did_you_mean(name, self.factors)}; there are {there}")
        if tuple(names) not in self._rows_by:
            rows = self._rows_by[tuple(names)] = {}
            columns = [self._column(name) for name in names]
            for row in range(len(self)):
                rows.setdefault(tuple(label_key(column[row]) for column in columns), []).append(row)
        return self._rows_by[tuple(names)]

    def _rows_at(self, levels: Mapping[str, Label]) -> list[int]:
        """Return the positions of the rows with these levels, perhaps none."""
        return self._rows(tuple(levels)).get(tuple(map(label_key, levels.values())), [])

    # Measures of points

    @cached_property
    def resampled(self) -> BoolArray:
        """Whether the jobs of each trial are resampled, shape ``(trials,)``: intervals are then of sample paths."""
        cells = self._column(RESAMPLED) if RESAMPLED in self.frame else [False] * len(self)
        return np.array([cell == 1 for cell in cells], dtype=bool)

    def _numbers(self, measure: str) -> FloatArray:
        """Return the cells of a column of numbers; ``nan`` where one is missing or not finite."""
        if not isinstance(measure, str) or measure not in self._numbers_of:
            cells = self._column(measure)
            wrong = (each for each in cells if not isinstance(each, bool | int | float | None) and each == each)  # noqa: PLR0124
            if (first := next(wrong, None)) is not None:
                raise self._error(f"{measure} is {quoted(first)}; it must be a column of numbers")
            numbers = [each if isinstance(each, bool | int | float) and isfinite(each) else nan for each in cells]
            self._numbers_of[measure] = np.array(numbers, dtype=float)
        return self._numbers_of[measure]

    def _replications(self, levels: Mapping[str, Label], last: float = inf) -> Rows:
        """Return the rows of one point by replication, in their order, up to the ``last`` one."""
        if not (rows := self._rows_at(levels)):
            raise self._no_trial(levels)
        replications, found = self._column("replication"), {}
        for row in rows:
            if (replication := int(replications[row])) in found:
                raise self._error(f"{describe(levels) or 'this table'} has several points; choose levels of more factors")
            if replication <= last:
                found[replication] = row
        return dict(sorted(found.items()))

    def _counted(self, points: Sequence[Sequence[Rows]]) -> Counted:
        """Return the rows that count at points: those of the replications that all sides have, once for each different run."""
        return counted(points, self._column("run"), self.resampled)

    def _missing(self, measure: str, levels: Mapping[str, Label]) -> SpecificationError:
        return self._error(f"{measure} is missing{f' in {describe(levels)}' if levels else ''}", MissingValueError)

    def _interval(self, measure: str, levels: Mapping[str, Label], level: float, last: float = inf) -> Interval:
        self._numbers(measure)  # refuses what is no column of numbers
        made = self._counted([[self._replications(levels, last)]]).estimates(self._numbers(measure), level).interval(0, level)
        if isnan(made.mean):
            raise self._missing(measure, levels)
        return made

    def values(self, measure: str, **levels: Label) -> FloatArray:
        """Return a measure of the replications of one point, in their order; trials of the same run count once."""
        numbers = self._numbers(measure)
        ((_, rows, _),) = self._counted([[self._replications(levels)]]).groups
        values: FloatArray = numbers[rows[0, 0]]
        if np.isnan(values).any():
            raise self._missing(measure, levels)
        return values

    def interval(self, measure: str, *, level: float = LEVEL, **levels: Label) -> Interval:
        """Return the mean of a measure at one point with its Student t interval, ``nan`` wide for a single replication."""
        return self._interval(measure, levels, level)

    def interval_of_first(
        self, measure: str, replications: int, levels: Mapping[str, Label], *, level: float = LEVEL
    ) -> Interval:
        """Return the interval of a mean at one point from its first replications, whatever others are finished."""
        return self._interval(measure, levels, level, replications)

    def difference(
        self, measure: str, of: Mapping[str, Label], baseline: Mapping[str, Label], *,
        ratio: bool = False, logarithms: bool = False, level: float = LEVEL,
    ) -> Interval:  # fmt: skip
        """Return the mean paired difference (or ``ratio``) of a measure between two points, replication by replication.

        Where jobs are resampled, the interval is of sample paths.  The points must have a replication in common, a ratio must
        not divide by zero, and only numbers above zero have ``logarithms``.
        """
        pairs = self._counted([[self._replications(of), self._replications(baseline)]])
        compare = difference_of_logarithms if logarithms else ratios if ratio else np.subtract
        made = pairs.estimates(self._numbers(measure), level, compare).interval(0, level)
        if not made.count:
            raise self._error(f"{describe(of)} and {describe(baseline)} have no finished replication in common")
        if isnan(made.mean):
            ((_, rows, _),) = pairs.groups
            raise self._missing(measure, of if np.isnan(self._numbers(measure)[rows[0]]).any() else baseline)
        return made

    # Tables of points

    def estimates(self, measure: str, *, by: Sequence[str] | None = None, level: float = LEVEL) -> Estimates:
        """Return the means of a measure at the points of :meth:`points`, with their intervals, as arrays.

        A mean is ``nan`` where a replication lacks the measure; the numbers are those of :meth:`interval`.
        """
        key = (tuple(self._varying() if by is None else by),)
        if key not in self._counted_at:
            self._counted_at[key] = self._counted([[self._replications(levels)] for levels in self.points(by)])
        return self._counted_at[key].estimates(self._numbers(measure), level)

    def estimated_differences(
        self, measure: str, of: str, baseline: Label, *, ratio: bool = False, by: Sequence[str] | None = None,
        level: float = LEVEL,
    ) -> Differences:  # fmt: skip
        """Return the paired differences of :meth:`differences` as arrays."""
        if not self._rows_at({of: baseline}):
            raise self._error(f"{of} {quoted(baseline)} is not there{self._levels_instead(of, baseline)}")
        key = tuple(self._varying() if by is None else by), of, label_key(baseline)
        if key not in self._counted_at:
            others = [(levels, {**levels, of: baseline}) for levels in self.points(by)]
            compared = [
                (place, [self._replications(levels), self._replications(base)])
                for place, (levels, base) in enumerate(others)
                if label_key(levels.get(of, baseline)) != label_key(baseline) and self._rows_at(base)
            ]
            self._points_at[key] = np.array([place for place, _ in compared], dtype=np.int64)
            self._counted_at[key] = self._counted([sides for _, sides in compared])
        pairs = self._counted_at[key]
        made = pairs.estimates(self._numbers(measure), level, ratios if ratio else np.subtract)
        relative = np.full(pairs.points, nan)
        if not ratio:
            base = pairs.estimates(self._numbers(measure), level, lambda _, numbers: numbers).mean
            np.divide(made.mean, base, out=relative, where=base != 0)
        return Differences(self._points_at[key], made, relative, made.excludes(1.0 if ratio else 0.0))

    def means(self, *measures: str, by: Sequence[str] | None = None, level: float = LEVEL) -> pd.DataFrame:
        """Return the means of measures with their intervals: a row for each point, in the order of the experiment.

        The factors ``by`` distinguish the rows, by default all that have several levels; every row must be one point.  Columns:
        these factors, for each measure ``measure`` (its mean, ``nan`` where a replication lacks it) and ``measure_half`` (half
        the interval's width, ``nan`` for a single replication), and ``replications``, the number of different runs.
        """
        import pandas as pd

        made = {measure: self.estimates(measure, by=by, level=level) for measure in measures}
        columns: dict[str, Any] = {}
        for measure, of in made.items():
            columns |= {measure: of.mean, f"{measure}_half": of.half}
        columns["replications"] = self.estimates("replication", by=by).runs
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        return pd.DataFrame(
            [{**levels, **dict(zip(columns, row, strict=True))} for levels, row in zip(self.points(by), rows, strict=True)]
        )

    def differences(self, measure: str, of: str, baseline: Label, *, ratio: bool = False, level: float = LEVEL) -> pd.DataFrame:
        """Return the paired differences of a measure between the levels ``of`` a factor and a baseline level, point by point.

        Columns: the factors; ``difference`` (or ``ratio``), ``half``, ``low``, ``high``; ``replications``, the number of pairs;
        and ``significant``: whether the interval excludes 0 (or 1).  A point whose baseline has no finished trial has no row.
        Numbers are ``nan`` where no replication is finished on both sides, or one lacks the measure.
        """
        import pandas as pd

        found = self.estimated_differences(measure, of, baseline, ratio=ratio, level=level)
        points, names = self.points(), self._varying()
        mean, half, count, _ = found.estimates
        columns = {
            "ratio" if ratio else "difference": mean, "half": half, "low": mean - half, "high": mean + half,
            "replications": count, "significant": found.significant,
        }  # fmt: skip
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        return pd.DataFrame(
            [{**points[place], **dict(zip(columns, row, strict=True))} for place, row in zip(found.points, rows, strict=True)],
            columns=[*names, *columns],
        )

    def lowest(self, measure: str, of: str = "policy", *, level: float = LEVEL) -> pd.DataFrame:
        """Return which levels of a factor have the lowest mean of a measure at each point of the other factors.

        Columns: the other factors; ``lowest``, the level with the lowest mean; its mean under the name of the measure; and
        ``tied``: the other levels, separated by commas, whose paired difference from it is not significant.
        """
        import pandas as pd

        rows = []
        for levels in self.points([name for name in self._varying() if name != of]):
            finished = [point for label in self.levels(of) if self._rows_at(point := {**levels, of: label})]
            means = [self.interval(measure, level=level, **point).mean for point in finished]
            best = finished.pop(int(np.argmin(means)))
            others = [(str(point[of]), self.difference(measure, point, best, level=level)) for point in finished]
            tied = [label for label, difference in others if not difference.excludes(0)]
            rows.append({**levels, "lowest": best[of], measure: min(means), "tied": ", ".join(tied)})
        return pd.DataFrame(rows)

    def pivot(
        self, measure: str, *, columns: str, relative_to: Mapping[str, Label] = {}, level: float = LEVEL, **levels: Label
    ) -> pd.DataFrame:
        """Return a table of intervals for people: a row for each point of the other factors, a column for each level of one.

        With ``relative_to``, for example ``{"policy": "easy"}``, cells are paired ratios to the same point with these levels.
        Cells are :class:`~clustermodel.measure.statistics.Interval`, which print as ``mean ± half``, or empty.
        """
        import pandas as pd

        table = self.at(**levels) if levels else self
        labels = pd.Index(table.levels(columns), name=columns, dtype=object)  # None stays None among numbers
        others = [name for name in table._varying() if name != columns]
        cells: dict[tuple[tuple[Label, ...], Label], Interval] = {}
        for point in table.points([*others, columns]):
            of = {**levels, **point}
            cells[tuple(point[name] for name in others), point[columns]] = (
                self.difference(measure, of, {**of, **relative_to}, ratio=True, level=level)
                if relative_to
                else self.interval(measure, level=level, **of)
            )
        rows = list(dict.fromkeys(row for row, _ in cells))
        index = pd.MultiIndex.from_tuples(rows, names=others) if others else pd.Index([measure], name="measure")
        if len(others) == 1:
            index = pd.Index([row[0] for row in rows], name=others[0])
        return pd.DataFrame([[cells.get((row, label), "") for label in labels] for row in rows], index, labels)

    # Files

    def to_csv(self, path: str | PathLike[str], *, columns: Sequence[str] | None = None) -> None:
        """Write the table as CSV: run, factors, replication, and measures, by default all.  ``resampled`` is never left out."""
        leading = ["run", *self.factors, "replication"]
        columns = [columns] if isinstance(columns, str) else columns
        measures = [str(name) for name in self.frame if name not in leading] if columns is None else list(columns)
        if RESAMPLED in self.frame and RESAMPLED not in measures:
            measures.append(RESAMPLED)
        for name in measures:
            self._column(name)  # refuses what is no column
        write_file(path, self.frame[[*leading, *measures]].to_csv(index=False, lineterminator="\n"))

    @classmethod
    def read_csv(cls, path: str | PathLike[str]) -> StudyTable:
        """Return a table that :meth:`to_csv` wrote; the factors are the columns before ``replication``."""
        import pandas as pd

        try:
            frame = pd.read_csv(path, engine="python", dtype={"run": str})  # reads floats exactly
        except (OSError, ValueError) as problem:
            raise SpecificationError(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
        names = [str(name) for name in frame.columns]
        if names[:1] != ["run"] or "replication" not in names:
            columns = "run, factors, replication, measures"
            raise SpecificationError(f"{path}: no table of an experiment; its columns must be {columns}")
        return cls(frame, names[1 : names.index("replication")], Path(path).stem)

    def to_xarray(self, *measures: str) -> xr.Dataset:
        """Return a dataset of xarray: dimensions are the factors and ``replication``, coordinates their levels in order.

        Variables are the measures, by default all columns of numbers, ``nan`` where there is no trial or no value, with the
        attributes ``long_name``, and ``units`` where they are known; the unit of a ratio is ``"1"``.  The extra
        ``clustermodel[xarray]`` must be installed.
        """
        try:
            import xarray as xr  # noqa: PLC0415  an extra
        except ImportError:
            raise ImportError(missing_package("StudyTable.to_xarray", "xarray", "xarray")) from None
        dimensions = [*self.factors, "replication"]
        keys = {name: list(map(label_key, self._column(name))) for name in dimensions}
        levels = {name: list(dict.fromkeys(of)) for name, of in keys.items()}
        places = tuple([list(map(levels[name].index, of)) for name, of in keys.items()])
        variables = {}
        others = [str(name) for name in self.frame if name not in {"run", "seed", *dimensions}]
        numbers = [name for name in others if self.frame[name].dtype.kind in "biuf" or self.frame[name].isna().all()]
        for measure in measures or numbers:
            self._column(measure)  # refuses what is no column
            values = np.full([len(of) for of in levels.values()], np.nan)
            try:
                values[places] = self.frame[measure].to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError):
                raise self._error(f"{measure} is not a column of numbers") from None
            about = quantity(measure)
            ratio = not about.unit and (measure in QUANTITIES or measure in ACCOUNT_QUANTITIES)
            said = {"long_name": about.name, "units": "1" if ratio else about.unit}
            variables[measure] = (dimensions, values, {key: text for key, text in said.items() if text})
        coordinates = {}
        for name, of in levels.items():
            labels = [label for _, label in of]
            kinds = set(map(type, labels))  # numbers or texts of one kind, otherwise objects
            coordinates[name] = np.array(labels, dtype=None if kinds <= {int, float} or kinds in ({str}, {bool}) else object)
        return xr.Dataset(variables, coordinates, {"name": self.name})
