"""The results of a study: one directory with a ledger of runs (SQLite) and a file of job records for each run (Parquet).

A run is written in two steps, its records first, to a temporary name that is then changed, and its summary second, in one
transaction.  So whatever stops a study, a run is in the ledger as done exactly if all of it is there.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pandas as pd
from filelock import FileLock, Timeout

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.study.sweep import Run, Study, canonical

FORMAT: Final = "1"
LEDGER: Final = "study.sqlite"
RECORDS: Final = "records"
LOCK: Final = "study.lock"
STATES: Final = ("pending", "done", "failed")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS study (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    factors TEXT NOT NULL,
    specification TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
    summary TEXT,
    error TEXT,
    seconds REAL,
    versions TEXT
) STRICT;
"""


class Finished(NamedTuple):
    """What a run leaves behind."""

    summary: str
    """``Summary.as_dict()`` as JSON."""
    records: bytes
    """``Result.jobs`` as a Parquet file."""
    seconds: float
    """How long it took."""
    versions: Mapping[str, str]
    """Of Python and the packages that made the numbers."""


class Store:
    """The results of one study.  Use :meth:`create` to write, :meth:`read` to look.

    Args:
        directory: where they are.
        connection: to the ledger.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self.directory = directory
        self._connection = connection

    @classmethod
    @contextmanager
    def create(cls, directory: Path, study: Study, runs: Sequence[Run]) -> Iterator[Self]:
        """Open a study's directory to add runs, and make it if need be; nobody else can meanwhile.

        Runs of the study that are not in the ledger are entered as pending.

        Raises:
            SpecificationError: it holds another study, or something else.
            OutputError: it cannot be written, or a sweep is writing it.
        """
        lock = FileLock(directory / LOCK, timeout=0)
        try:
            (directory / RECORDS).mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise OutputError(f"{directory}: another sweep is writing there; wait for it, or stop it") from None
        except OSError as problem:
            raise OutputError(f"{directory}: cannot be written: {problem.strerror or problem}") from None
        try:
            with cls._opened(directory) as store:
                store._claim(study)
                store._enter(runs)
                store._clean()
                yield store
        finally:
            lock.release()

    @classmethod
    @contextmanager
    def read(cls, directory: Path) -> Iterator[Self]:
        """Open a study's directory to look at its results; a sweep may be writing it.

        Raises:
            SpecificationError: there is no study.
        """
        if not (directory / LEDGER).is_file():
            raise SpecificationError(f"{directory}: there is no study here (no {LEDGER})")
        with cls._opened(directory) as store:
            store._facts()
            yield store

    @classmethod
    @contextmanager
    def _opened(cls, directory: Path) -> Iterator[Self]:
        try:
            connection = sqlite3.connect(directory / LEDGER, timeout=30)
            connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as problem:
            raise SpecificationError(f"{directory / LEDGER}: this is no ledger of a study: {problem}") from None
        try:
            yield cls(directory, connection)
        finally:
            connection.close()

    def _facts(self) -> dict[str, str]:
        facts = dict(self._connection.execute("SELECT name, value FROM study"))
        if facts and facts.get("format") != FORMAT:
            raise SpecificationError(
                f"{self.directory}: its format is {facts.get('format')!r}; this version of clustermodel reads {FORMAT!r}"
            )
        return facts

    def _claim(self, study: Study) -> None:
        mine = {"format": FORMAT, "study": study.name, "seed": str(study.seed)}
        facts = self._facts()
        for name in ("study", "seed"):
            if facts and facts[name] != mine[name]:
                raise SpecificationError(
                    f"{self.directory}: it holds the {name} {facts[name]!r}, not {mine[name]!r}; give another --out"
                )
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO study VALUES (?, ?)", mine.items())

    def _enter(self, runs: Sequence[Run]) -> None:
        rows = [
            (run.key, at, json.dumps(dict(run.factors)), canonical(run.specification), run.jobs) for at, run in enumerate(runs)
        ]
        with self._connection:
            self._connection.executemany(
                "INSERT INTO runs (key, position, factors, specification, jobs, state) VALUES (?, ?, ?, ?, ?, 'pending') "
                "ON CONFLICT (key) DO UPDATE SET position = excluded.position, factors = excluded.factors",
                rows,
            )

    def _clean(self) -> None:
        """Take away what a sweep that was stopped had half written, and forget runs whose records are gone."""
        for left in (self.directory / RECORDS).glob("*.part"):
            left.unlink()
        done = [key for (key,) in self._connection.execute("SELECT key FROM runs WHERE state = 'done'")]
        with self._connection:
            for key in done:
                if not self.records_path(key).is_file():
                    self._connection.execute("UPDATE runs SET state = 'pending' WHERE key = ?", (key,))

    def records_path(self, key: str) -> Path:
        """Return where the job records of a run are."""
        return self.directory / RECORDS / f"{key}.parquet"

    def missing(self) -> set[str]:
        """Return the keys of the runs that are pending or have failed."""
        return {key for (key,) in self._connection.execute("SELECT key FROM runs WHERE state <> 'done'")}

    def seconds_per_job(self) -> dict[str, float]:
        """Return how long the runs of each policy took, per job, as far as there are any."""
        query = (
            "SELECT json_extract(factors, '$.policy'), avg(seconds / max(jobs, 1)) FROM runs WHERE state = 'done' GROUP BY 1"
        )
        return dict(self._connection.execute(query))

    def keep(self, key: str, finished: Finished) -> None:
        """Write what a run has left behind.

        Raises:
            OutputError: it cannot be written.
        """
        path = self.records_path(key)
        part = path.with_suffix(".part")
        try:
            with open(part, "wb") as file:
                file.write(finished.records)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            with self._connection:
                self._connection.execute(
                    "UPDATE runs SET state = 'done', summary = ?, error = NULL, seconds = ?, versions = ? WHERE key = ?",
                    (finished.summary, finished.seconds, canonical(dict(finished.versions)), key),
                )
        except (OSError, sqlite3.OperationalError) as problem:
            with suppress(OSError):
                part.unlink()
            raise OutputError(f"{path}: cannot be written: {getattr(problem, 'strerror', None) or problem}") from None

    def fail(self, key: str, error: str) -> None:
        """Note why a run has failed."""
        with self._connection:
            self._connection.execute("UPDATE runs SET state = 'failed', error = ? WHERE key = ?", (error, key))

    def states(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        counts = dict(self._connection.execute("SELECT state, count(*) FROM runs GROUP BY state"))
        return {state: counts.get(state, 0) for state in STATES}

    def results(self) -> pd.DataFrame:
        """Return the tidy table: a row for each run that is done, in the order of the study; factors, then the summary."""
        rows = self._connection.execute("SELECT key, factors, summary FROM runs WHERE state = 'done' ORDER BY position, key")
        table = []
        for key, factors, summary in rows:
            measured: dict[str, Any] = json.loads(summary)
            given = json.loads(factors)
            table.append({"run": key, **given, **{name: value for name, value in measured.items() if name not in given}})
        return pd.DataFrame(table)

    def failures(self) -> list[tuple[str, str]]:
        """Return the factors and the error of each run that has failed."""
        rows = self._connection.execute("SELECT factors, error FROM runs WHERE state = 'failed' ORDER BY position, key")
        return [(", ".join(f"{name} {value}" for name, value in json.loads(factors).items()), error) for factors, error in rows]

    def provenance(self) -> pd.DataFrame:
        """Return what each run was made from: its specification and versions, as JSON, and how long it took."""
        return pd.read_sql_query(
            "SELECT key AS run, specification, versions, seconds, state FROM runs ORDER BY position, key", self._connection
        )

    def records(self, key: str) -> pd.DataFrame:
        """Return the job records of a run.

        Raises:
            SpecificationError: there is no such run, or it is not done.
        """
        if not self.records_path(key).is_file():
            raise SpecificationError(f"run: {key!r} has no records in {self.directory}")
        return pd.read_parquet(self.records_path(key))
