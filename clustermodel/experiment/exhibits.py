"""Exhibits: the tables and figures that an experiment shows, as files beside its results."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.experiment.design import Design
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import failure_line
from clustermodel.text.files import make_folder, replacing, write_file

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EXHIBITS: Final = "exhibits"  # folder of the files, in the directory of the experiment
_INDEX: Final = "index.json"


class Exhibits(NamedTuple):
    """The tables and figures of an experiment by title, and why others could not be made, a line each."""

    tables: dict[str, pd.DataFrame]
    figures: dict[str, Figure]
    problems: list[str]


def exhibits_of(experiment: Design[Any], table: StudyTable) -> Exhibits:
    """Return the tables and figures of an experiment; what cannot be made is a problem, not an error."""
    made = Exhibits({}, {}, [])
    results: tuple[dict[str, Any], dict[str, Any]] = made.tables, made.figures
    for kind, functions, into in zip(("table", "figure"), experiment.exhibits(), results, strict=True):
        for title, function in functions.items():
            try:
                into[title] = function(table)
            except Exception as problem:  # of the user's function, for example because runs have failed
                made.problems.append(f"{kind} {title}: {failure_line(problem)}")
    return made


def write_exhibits(exhibits: Exhibits, directory: Path) -> Path:
    """Write tables as CSV and figures as PNG, and return their folder."""
    folder = directory / EXHIBITS
    if folder.is_symlink():
        raise OutputError(f"{folder}: is a symbolic link; a study's directory must have its own {EXHIBITS}")
    make_folder(folder)
    index: dict[str, dict[str, str]] = {"tables": {}, "figures": {}}
    for title, frame in exhibits.tables.items():
        index["tables"][title] = name = _file_name(title, "csv", index["tables"].values())
        named = any(name is not None for name in frame.index.names)
        write_file(folder / name, frame.to_csv(index=named, lineterminator="\n"))
    for title, figure in exhibits.figures.items():
        index["figures"][title] = name = _file_name(title, "png", index["figures"].values())
        with replacing(folder / name) as file:
            figure.savefig(file, format="png", dpi=110)
    write_file(folder / _INDEX, json.dumps(index))
    return folder


def stored_exhibits(directory: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return the files of the tables (CSV) and of the figures (PNG) that an experiment's directory has, by title."""
    folder = directory / EXHIBITS
    try:
        index = json.loads((folder / _INDEX).read_bytes())
        kinds = [{str(key): folder / Path(name).name for key, name in index[kind].items()} for kind in ("tables", "figures")]
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise SpecificationError(f"{folder / _INDEX}: damaged; the same sweep writes it again") from None
    tables, figures = ({title: path for title, path in files.items() if path.is_file()} for files in kinds)
    return tables, figures


def _file_name(title: str, ending: str, taken: Collection[str]) -> str:
    """Return the name of a file that follows from a title and is not taken."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", title).strip("_").lower()[:80] or "exhibit"
    numbers = ("", *(f"_{count}" for count in range(2, len(taken) + 3)))
    return next(name for number in numbers if (name := f"{stem}{number}.{ending}") not in taken)
