"""The table of an experiment as a CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.experiment.factors import RESAMPLED
from clustermodel.output_files import write_file

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.study_table import StudyTable


def write_table(table: StudyTable, path: str | PathLike[str], columns: Sequence[str] | None = None) -> None:
    """Write a table as CSV.

    Args:
        table: of an experiment.
        path: the file.
        columns: the measures to write; by default all.  Whether jobs are resampled is written too.

    Raises:
        OutputError: the file cannot be written.
        SpecificationError: there is no such column.
    """
    frame = table.frame
    leading = ["run", *table.factors, "replication"]
    measures = [str(name) for name in frame if name not in leading] if columns is None else list(columns)
    if RESAMPLED in frame and RESAMPLED not in measures:
        measures.append(RESAMPLED)
    for name in measures:
        if name not in frame:
            near = did_you_mean(name, map(str, frame.columns))
            raise SpecificationError(f"table of {table.name}: there is no column {quoted(name)}{near}")
    write_file(path, frame[[*leading, *measures]].to_csv(index=False, lineterminator="\n"))


def read_table(path: str | PathLike[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of a table that :func:`write_table` wrote, and its factors: the columns before ``replication``.

    Raises:
        SpecificationError: the file cannot be read, or is no such table.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, engine="python", dtype={"run": str})  # reads floats exactly
    except (OSError, ValueError) as problem:
        raise SpecificationError(f"{path}: cannot be read: {problem}") from None
    names = [str(name) for name in frame.columns]
    if names[:1] != ["run"] or "replication" not in names:
        raise SpecificationError(f"{path}: no table of an experiment; its columns must be run, factors, replication, measures")
    return frame, names[1 : names.index("replication")]
