"""The tables of a study's runs: Parquet files, in a folder for each kind of table, named by the keys of the runs."""

from __future__ import annotations

import hashlib
import io
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.output_files import PART, write_file

if TYPE_CHECKING:
    import pandas as pd

RECORDS: Final = "records"
"""The job table."""
STATES_OVER_TIME: Final = "states"
"""The state of the machine after each scheduling event."""
PLACEMENTS: Final = "placements"
"""The nodes of each gang over time."""
TABLES: Final = (RECORDS, STATES_OVER_TIME, PLACEMENTS)
"""Names of the tables of a run, and of their folders."""


class RunFiles:
    """The tables of the runs of one study.

    Args:
        directory: of the study.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make_folders(self) -> None:
        """Create the folders that do not exist."""
        for table in TABLES:
            (self._directory / table).mkdir(parents=True, exist_ok=True)

    def path(self, table: str, key: str) -> Path:
        """Return the path of a table of a run.

        Args:
            table: one of :data:`TABLES`.
            key: of the run.
        """
        return self._directory / table / f"{key}.parquet"

    def write(self, key: str, tables: Mapping[str, bytes]) -> dict[str, str]:
        """Write the tables of a run and return the digest of each.

        Raises:
            OutputError: a file cannot be written.
        """
        for table, content in tables.items():
            remove_pipe(self.path(table, key))
            write_file(self.path(table, key), content, durable=True)
        return {table: hashlib.sha256(content).hexdigest() for table, content in tables.items()}

    def read(self, table: str, key: str) -> pd.DataFrame:
        """Return a table of a run.

        Raises:
            SpecificationError: the run has no such table, or the file is damaged.
        """
        import pandas as pd

        path = self.path(table, key)
        if not path.is_file():
            raise SpecificationError(f"run: {key!r} has no {table} in {self._directory}")
        try:
            return pd.read_parquet(io.BytesIO(path.read_bytes()))
        except Exception as problem:  # of pyarrow and of pandas: any, where a file has only the form of a table
            raise SpecificationError(f"{path}: damaged: {' '.join(str(problem).split())}") from None

    def damage(self, key: str, digests: Mapping[str, str]) -> str | None:
        """Return the first problem with the files of a run, ``None`` if they are as they were written.

        Args:
            key: of the run.
            digests: of its tables, by their names.
        """
        for table, digest in digests.items():
            path = self.path(table, key)
            try:
                if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block
                    return f"{table}/{path.name}: it is no file"
                content = path.read_bytes()
            except OSError as problem:
                return f"{table}/{path.name}: {problem.strerror or problem}"
            if hashlib.sha256(content).hexdigest() != digest:
                return f"{table}/{path.name}: not as it was written ({len(content):,} bytes)"
        return None

    def tables(self) -> Iterator[tuple[str, Path]]:
        """Yield all tables in the folders, those of unknown runs too, as the table's name and the path."""
        for table in TABLES:
            for path in sorted((self._directory / table).glob("*")):
                if path.suffix == ".parquet":
                    yield table, path

    def delete_partial(self) -> None:
        """Delete the partial files that a stopped sweep left behind."""
        for table in TABLES:  # only in these folders: the directory may hold other files
            for partial in (self._directory / table).glob(f"*{PART}"):
                if partial.is_file() and not partial.is_symlink():
                    partial.unlink()


def remove_pipe(path: Path) -> None:
    """Delete a pipe or socket in the place of a file that will be written: writing it would wait for a reader.

    Raises:
        OutputError: it cannot be deleted.
    """
    try:
        mode = path.lstat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            path.unlink()
    except FileNotFoundError:
        return
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None
