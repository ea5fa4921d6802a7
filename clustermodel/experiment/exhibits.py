"""Exhibits: the tables and figures that an experiment shows, as files beside its results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.experiment.user_code import failure_line
from clustermodel.files import replacing, write_file

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from clustermodel.experiment.study import Experiment
    from clustermodel.experiment.study_table import StudyTable

EXHIBITS: Final = "exhibits"
"""Folder of the files, in the directory of the experiment."""
_INDEX: Final = "index.json"
_DOTS_PER_INCH: Final = 110


class Exhibits(NamedTuple):
    """The tables and figures of an experiment."""

    tables: dict[str, pd.DataFrame]
    """Tables by title."""
    figures: dict[str, Figure]
    """Figures by title."""
    problems: list[str]
    """Why tables or figures could not be made, a line each."""


class StoredExhibits(NamedTuple):
    """The tables and figures of an experiment as files."""

    tables: dict[str, Path]
    """CSV files by title."""
    figures: dict[str, Path]
    """PNG files by title."""


def exhibits_of(experiment: Experiment[Any], table: StudyTable) -> Exhibits:
    """Return the tables and figures of an experiment; what cannot be made is a problem, not an error."""
    made = Exhibits({}, {}, [])
    tables, figures = experiment.exhibits()
    for title, tabulate in tables.items():
        try:
            made.tables[title] = tabulate(table)
        except Exception as problem:  # of the user's function, for example because runs have failed
            made.problems.append(f"table {title}: {failure_line(problem)}")
    for title, draw in figures.items():
        try:
            made.figures[title] = draw(table)
        except Exception as problem:  # of the user's function
            made.problems.append(f"figure {title}: {failure_line(problem)}")
    return made


def write_exhibits(exhibits: Exhibits, directory: Path) -> Path:
    """Write tables as CSV and figures as PNG, and return their folder.

    Raises:
        OutputError: a file cannot be written.
    """
    folder = directory / EXHIBITS
    if folder.is_symlink():
        raise OutputError(f"{folder}: is a symbolic link; a study's directory must have its own {EXHIBITS}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"{folder}: cannot be written: {problem.strerror or problem}") from None
    names = _Names()
    index: dict[str, dict[str, str]] = {"tables": {}, "figures": {}}
    for title, frame in exhibits.tables.items():
        index["tables"][title] = name = names.of(title, "csv")
        write_file(folder / name, frame.to_csv(index=_index_is_named(frame), lineterminator="\n"))
    for title, figure in exhibits.figures.items():
        index["figures"][title] = name = names.of(title, "png")
        with replacing(folder / name) as file:
            figure.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    write_file(folder / _INDEX, json.dumps(index))
    return folder


def stored_exhibits(directory: Path) -> StoredExhibits:
    """Return the exhibits that an experiment's directory has.

    Raises:
        SpecificationError: the index is damaged.
    """
    folder = directory / EXHIBITS
    try:
        index = json.loads((folder / _INDEX).read_bytes())
        tables, figures = (
            {str(title): folder / Path(name).name for title, name in index[kind].items()} for kind in ("tables", "figures")
        )
    except FileNotFoundError:
        return StoredExhibits({}, {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise SpecificationError(f"{folder / _INDEX}: damaged; the same sweep writes it again") from None
    return StoredExhibits(*({title: path for title, path in one.items() if path.is_file()} for one in (tables, figures)))


class _Names:
    """Names of files that follow from titles, and are distinct."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def of(self, title: str, ending: str) -> str:
        """Return the name of the next file."""
        stem = re.sub(r"[^A-Za-z0-9]+", "_", title).strip("_").lower()[:80] or "exhibit"
        names = (f"{stem}{number}.{ending}" for number in ("", *(f"_{count}" for count in range(2, len(self._given) + 3))))
        name = next(name for name in names if name not in self._given)
        self._given.add(name)
        return name


def _index_is_named(frame: pd.DataFrame) -> bool:
    return any(name is not None for name in frame.index.names)
