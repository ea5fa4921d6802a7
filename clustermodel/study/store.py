"""The results of a study: one directory with a ledger of runs (SQLite) and, of each run, its job records and more (Parquet).

A run is written in two steps, its tables first, to temporary names that are then changed, and its summary second, in one
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
from clustermodel.study.sweep import Run, Study, canonical, describe

FORMAT: Final = "2"
LEDGER: Final = "study.sqlite"
RECORDS: Final = "records"
STATES_OVER_TIME: Final = "states"
PLACEMENTS: Final = "placements"
TABLES: Final = (RECORDS, STATES_OVER_TIME, PLACEMENTS)
"""Of a run, each in a folder of this name: the job table, the machine from each event on, which nodes each gang held when."""
LOCK: Final = "study.lock"
STATES: Final = ("pending", "done", "failed")
NOT_IN_STUDY: Final = -1
"""Position of a run that is not in the study any more, since it was changed."""
_IN_STUDY: Final = f"position <> {NOT_IN_STUDY}"
_ORDER: Final = "position, key"

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
    versions TEXT
) STRICT;
"""


class Finished(NamedTuple):
    """What a run leaves behind."""

    summary: str
    """``Summary.as_dict()`` as JSON."""
    tables: Mapping[str, bytes]
    """Parquet files by names of :data:`TABLES`: ``Result.jobs``, ``Result.states`` and, if known, ``Result.placements``."""
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
            for table in TABLES:
                (directory / table).mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise OutputError(f"{directory}: another sweep is writing there; wait for it, or stop it") from None
        except OSError as problem:
            raise OutputError(f"{directory}: cannot be written: {problem.strerror or problem}") from None
        try:
            with cls._opened(directory) as store:
                store._claim(study)
                store._enter(runs)
                store._clean({run.key for run in runs if run.history})
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
            store.facts()
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

    def facts(self) -> dict[str, str]:
        """Return the study's name, seed and warm-up, and the format of the store.

        Raises:
            SpecificationError: another version of clustermodel wrote it.
        """
        facts = dict(self._connection.execute("SELECT name, value FROM study"))
        if facts and facts.get("format") != FORMAT:
            raise SpecificationError(
                f"{self.directory}: its format is {facts.get('format')!r}; this version of clustermodel reads {FORMAT!r}"
            )
        return facts

    def _claim(self, study: Study) -> None:
        mine = {"format": FORMAT, "study": study.name, "seed": str(study.seed)}
        chosen = {"warm_up_s": str(study.warm_up_s)}
        facts = self.facts()
        for name in ("study", "seed"):
            if facts and facts[name] != mine[name]:
                raise SpecificationError(
                    f"{self.directory}: it holds the {name} {facts[name]!r}, not {mine[name]!r}; give another --out"
                )
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO study VALUES (?, ?)", mine.items())
            self._connection.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", chosen.items())

    def _enter(self, runs: Sequence[Run]) -> None:
        rows = [
            (run.key, at, json.dumps(dict(run.factors)), canonical(run.specification), run.jobs, json.dumps(run.sources))
            for at, run in enumerate(runs)
        ]
        with self._connection:
            self._connection.execute("UPDATE runs SET position = ?", (NOT_IN_STUDY,))
            self._connection.executemany(
                "INSERT INTO runs (key, position, factors, specification, jobs, sources, state) "
                "VALUES (?, ?, ?, ?, ?, ?, 'pending') ON CONFLICT (key) DO UPDATE SET position = excluded.position, "
                "factors = excluded.factors, sources = excluded.sources",
                rows,
            )

    def _clean(self, with_history: set[str]) -> None:
        """Take away what a sweep that was stopped had half written, and forget runs of which a table is gone, or not there yet.

        Args:
            with_history: keys of the runs of which the matrix is to be kept.
        """
        for table in TABLES:  # and nowhere else: the directory may hold files of others
            for left in (self.directory / table).glob("*.part"):
                left.unlink()
        done = [key for (key,) in self._connection.execute("SELECT key FROM runs WHERE state = 'done'")]
        with self._connection:
            for key in done:
                needed = TABLES if key in with_history else (RECORDS, STATES_OVER_TIME)
                if not all(self.path(table, key).is_file() for table in needed):
                    self._connection.execute("UPDATE runs SET state = 'pending' WHERE key = ?", (key,))

    def path(self, table: str, key: str) -> Path:
        """Return where a table of a run is, one of :data:`TABLES`."""
        return self.directory / table / f"{key}.parquet"

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
        path = self.path(RECORDS, key)
        part = path.with_suffix(".part")
        try:
            for table, content in finished.tables.items():
                path = self.path(table, key)
                part = path.with_suffix(".part")
                with open(part, "wb") as file:
                    file.write(content)
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
        """Return how many runs of the study are in each state."""
        counts = dict(self._connection.execute(f"SELECT state, count(*) FROM runs WHERE {_IN_STUDY} GROUP BY state"))
        return {state: counts.get(state, 0) for state in STATES}

    def results(self, *, earlier: bool = False) -> pd.DataFrame:
        """Return the tidy table: a row for each run that is done, in the order of the study; factors, then the summary.

        Args:
            earlier: with the runs that are not in the study any more, since it was changed.
        """
        where = "state = 'done'" if earlier else f"state = 'done' AND {_IN_STUDY}"
        rows = self._connection.execute(f"SELECT key, factors, summary FROM runs WHERE {where} ORDER BY {_ORDER}")
        table = []
        for key, factors, summary in rows:
            measured: dict[str, Any] = json.loads(summary)
            given = json.loads(factors)
            table.append({"run": key, **given, **{name: value for name, value in measured.items() if name not in given}})
        return pd.DataFrame(table)

    def earlier(self) -> int:
        """Return how many runs are done that are not in the study any more."""
        query = f"SELECT count(*) FROM runs WHERE state = 'done' AND NOT {_IN_STUDY}"
        return int(self._connection.execute(query).fetchone()[0])

    def failures(self) -> list[tuple[str, str]]:
        """Return the factors and the error of each run of the study that has failed."""
        query = f"SELECT factors, error FROM runs WHERE state = 'failed' AND {_IN_STUDY} ORDER BY {_ORDER}"
        return [(describe(json.loads(factors)), error) for factors, error in self._connection.execute(query)]

    def provenance(self) -> pd.DataFrame:
        """Return what each run was made from: its specification, sources of jobs and versions, as JSON; how long it took."""
        columns = "key AS run, factors, specification, sources, versions, seconds, state"
        return pd.read_sql_query(f"SELECT {columns} FROM runs WHERE {_IN_STUDY} ORDER BY {_ORDER}", self._connection)

    def records(self, key: str) -> pd.DataFrame:
        """Return the job records of a run: ``Result.jobs``.

        Raises:
            SpecificationError: there is no such run, or it is not done.
        """
        return self._table(RECORDS, key)

    def states_over_time(self, key: str) -> pd.DataFrame:
        """Return the state of the machine from each event of a run on: ``Result.states``.

        Raises:
            SpecificationError: there is no such run, or it is not done.
        """
        return self._table(STATES_OVER_TIME, key)

    def placements(self, key: str) -> pd.DataFrame:
        """Return which nodes each gang of a run held from when until when: ``Result.placements``.

        Raises:
            SpecificationError: there is no such run, it is not done, or nodes were shared in time and its history was not kept.
        """
        return self._table(PLACEMENTS, key)

    def has_placements(self, key: str) -> bool:
        """Tell whether :meth:`placements` knows them."""
        return self.path(PLACEMENTS, key).is_file()

    def _table(self, table: str, key: str) -> pd.DataFrame:
        path = self.path(table, key)
        if not path.is_file():
            raise SpecificationError(f"run: {key!r} has no {table} in {self.directory}")
        return pd.read_parquet(path)
