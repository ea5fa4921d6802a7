"""The ledger of a study: an SQLite file with a row for each run, and in each row a digest of the row.

Responsible for what is in the file and whether it is as it was written; :mod:`clustermodel.experiment.store` says what the
rows mean.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.experiment.run_key import canonical

FORMAT: Final = "3"
LEDGER: Final = "study.sqlite"
LEDGER_FILES: Final = (LEDGER, f"{LEDGER}-journal", f"{LEDGER}-wal", f"{LEDGER}-shm")
"""Names of the files that SQLite may write."""
STATES: Final = ("pending", "done", "failed")
NOT_IN_STUDY: Final = -1
"""Position of a run that a changed study no longer has."""

_COLUMNS: Final = (
    "key", "position", "factors", "specification", "jobs", "sources", "state", "summary", "error", "seconds", "versions",
    "files",
)  # fmt: skip
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS study (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    factors TEXT NOT NULL,
    specification TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    sources TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
    summary TEXT,
    error TEXT,
    seconds REAL,
    versions TEXT,
    files TEXT,
    digest TEXT NOT NULL
) STRICT;
"""
_NOT_WRITABLE: Final = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")


class Row(NamedTuple):
    """A run in the ledger."""

    key: str
    position: int
    factors: str
    specification: str
    jobs: int
    sources: str
    state: str = "pending"
    summary: str | None = None
    error: str | None = None
    seconds: float | None = None
    versions: str | None = None
    files: str | None = None
    """Digests of the run's tables by the names of the tables, as JSON."""

    @property
    def digest(self) -> str:
        """The digest of the whole row."""
        return hashlib.sha256(canonical(list(self)).encode()).hexdigest()

    @property
    def in_study(self) -> bool:
        """Whether the study still has the run."""
        return self.position != NOT_IN_STUDY

    def matches(self, digest: str) -> bool:
        """Return whether the row has this digest; values of a wrong type have none."""
        try:
            return self.digest == digest
        except (TypeError, ValueError):
            return False


class RunLedger:
    """The open ledger of a study.

    Args:
        path: the file.
        connection: to the file.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, new: bool) -> Iterator[Self]:
        """Open the ledger for a block.

        Args:
            path: the file.
            new: create the file if it does not exist.

        Raises:
            SpecificationError: the file is damaged, or no ledger.
            OutputError: the file cannot be written.
        """
        try:
            connection = sqlite3.connect(path, timeout=30)
        except sqlite3.Error as problem:
            raise _ledger_error(path, problem) from None
        connection.text_factory = lambda text: text.decode("utf-8", "replace")  # digests reveal damaged text
        try:
            if new:
                connection.executescript(_SCHEMA)
            yield cls(path, connection)
        except sqlite3.Error as problem:
            raise _ledger_error(path, problem) from None
        finally:
            connection.close()

    def facts(self) -> dict[str, str]:
        """Return the facts about the study by name; none before a study was entered.

        Raises:
            SpecificationError: another version of clustermodel wrote the ledger, or the facts are damaged.
        """
        facts = dict(self._connection.execute("SELECT name, value FROM study"))
        if facts and facts.get("format") != FORMAT:
            raise SpecificationError(
                f"{self.path.parent}: its format is {facts.get('format')!r}; this version of clustermodel reads {FORMAT!r}"
            )
        if facts and facts.pop("digest", None) != _digest_of(facts):
            raise _damaged_ledger(self.path, "its facts are not as they were written")
        return facts

    def write_facts(self, facts: Mapping[str, str]) -> None:
        """Write the facts about the study, and their digest, in one transaction."""
        with self._connection:
            self._put_facts(facts)

    def _put_facts(self, facts: Mapping[str, str]) -> None:
        rows = {**facts, "digest": _digest_of(facts)}
        self._connection.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", rows.items())

    def rows(self) -> Iterator[tuple[Row, str]]:
        """Yield the rows in the order of the study, each with its recorded digest."""
        query = f"SELECT {', '.join(_COLUMNS)}, digest FROM runs ORDER BY position, key"
        for *columns, digest in self._connection.execute(query):
            yield Row(*columns), digest

    def snapshot(self) -> tuple[list[tuple[Row, str]], dict[str, str]]:
        """Return all rows and the facts at one instant, even while a sweep writes the ledger."""
        self._connection.execute("BEGIN")
        rows, facts = list(self.rows()), self.facts()
        self._connection.rollback()
        return rows, facts

    def replace(self, rows: Iterable[Row], removed: Iterable[str], facts: Mapping[str, str]) -> None:
        """Write rows and facts and delete the rows of ``removed`` keys, in one transaction."""
        with self._connection:
            self._connection.executemany("DELETE FROM runs WHERE key = ?", [(key,) for key in removed])
            self._put(rows)
            self._put_facts(facts)

    def _put(self, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * (len(_COLUMNS) + 1))
        self._connection.executemany(
            f"INSERT OR REPLACE INTO runs ({', '.join(_COLUMNS)}, digest) VALUES ({marks})",
            [(*row, row.digest) for row in rows],
        )

    def update(self, key: str, **changes: Any) -> None:
        """Change columns of one row.

        Raises:
            OutputError: the ledger cannot be written.
        """
        query = f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE key = ?"
        try:
            with self._connection:
                self._put([Row(*self._connection.execute(query, (key,)).fetchone())._replace(**changes)])
        except sqlite3.OperationalError as problem:
            raise OutputError(f"{self.path}: cannot be written: {problem}") from None

    def problems(self) -> list[str]:
        """Return the problems that SQLite finds in the file."""
        return [text for (text,) in self._connection.execute("PRAGMA integrity_check") if text != "ok"]


def _digest_of(facts: Mapping[str, str]) -> str:
    return hashlib.sha256(canonical(dict(facts)).encode()).hexdigest()


def _ledger_error(path: Path, problem: sqlite3.Error) -> OutputError | SpecificationError:
    """Return the error of this package for an error of SQLite."""
    if getattr(problem, "sqlite_errorname", "").startswith(_NOT_WRITABLE):
        return OutputError(f"{path}: cannot be written: {problem}")
    return _damaged_ledger(path, str(problem))


def _damaged_ledger(path: Path, what: str) -> SpecificationError:
    return SpecificationError(
        f"{path}: damaged, or no ledger of a study: {what}; move it away, and the same sweep runs everything again"
    )
