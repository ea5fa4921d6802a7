"""The table of an experiment as an xarray Dataset: a dimension for each factor and one for the replications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clustermodel.errors import SpecificationError, did_you_mean, missing_package, quoted
from clustermodel.experiment.factors import Label, label_key
from clustermodel.measure.quantities import named, quantity

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

REPLICATION = "replication"
"""The last dimension."""
_NO_MEASURES = frozenset({"run", REPLICATION, "seed"})


def dataset(frame: pd.DataFrame, factors: Sequence[str], name: str, measures: Sequence[str] = ()) -> xr.Dataset:
    """Return the measures of an experiment over its factors and replications.

    Args:
        frame: a row for each trial.
        factors: the columns that are factors.
        name: of the experiment.
        measures: columns of numbers; by default all.

    Returns:
        A dataset whose dimensions are the factors and ``replication``, in this order, with the levels in order of appearance
        as coordinates.  Data variables are the measures, ``nan`` where there is no trial or no value.  Their attributes are
        ``long_name`` and ``units`` where they are known, with ``"1"`` for ratios.

    Raises:
        SpecificationError: there is no such column of numbers.
        ImportError: the package xarray is missing.
    """
    try:
        import xarray as xr  # noqa: PLC0415  an extra
    except ImportError:
        raise ImportError(missing_package("StudyTable.to_xarray", "xarray", "xarray")) from None
    dimensions = [*factors, REPLICATION]
    levels = {one: list({label_key(label): label for label in frame[one].tolist()}.values()) for one in dimensions}
    places = tuple(_places(frame[one].tolist(), levels[one]) for one in dimensions)
    shape = tuple(len(those) for those in levels.values())
    variables = {}
    for measure in measures or _numbers(frame, dimensions):
        values = np.full(shape, np.nan)
        values[places] = _column(frame, measure, name)
        variables[measure] = (dimensions, values, _attributes(measure))
    return xr.Dataset(variables, {one: _coordinate(those) for one, those in levels.items()}, {"name": name})


def _places(labels: Sequence[Label], levels: Sequence[Label]) -> list[int]:
    """Return the place of each label among the levels."""
    known = {label_key(level): at for at, level in enumerate(levels)}
    return [known[label_key(label)] for label in labels]


def _coordinate(levels: Sequence[Label]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Return levels as an array: numbers or texts of one kind, otherwise objects."""
    kinds = {type(level) for level in levels}
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return np.array(levels)
    objects = np.empty(len(levels), dtype=object)
    objects[:] = levels
    return objects


def _numbers(frame: pd.DataFrame, dimensions: Sequence[str]) -> list[str]:
    """Return the columns that have numbers, or are empty because a measure is undefined in every trial."""
    others = [str(one) for one in frame.columns if one not in {*_NO_MEASURES, *dimensions}]
    return [one for one in others if frame[one].dtype.kind in "biuf" or frame[one].isna().all()]


def _column(frame: pd.DataFrame, measure: str, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if measure not in frame:
        near = did_you_mean(measure, map(str, frame.columns))
        raise SpecificationError(f"table of {name}: there is no column {quoted(measure)}{near}")
    try:
        return frame[measure].to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise SpecificationError(f"table of {name}: {measure} is not a column of numbers") from None


def _attributes(measure: str) -> dict[str, str]:
    known = quantity(measure)
    if known is not None:
        return {"long_name": known.name, "units": known.unit or "1"}
    unit = named(measure).unit
    return {"units": unit} if unit else {}
