"""The results of a study: one directory with a ledger of runs (SQLite) and, of each run, its job records and more (Parquet).

A run is written in two steps, its tables first, to temporary names that are then changed, and its row second, in one
transaction.  So whatever stops a study, a run is in the ledger as done exactly if all of it is there.  Every row has a digest
of itself and of the run's files; what does not match is damaged: it is named, left out of results, and run again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pandas as pd
from filelock import FileLock, Timeout

from clustermodel.errors import OutputError, SpecificationError, counted
from clustermodel.experiment.run_key import canonical, key_of
from clustermodel.experiment.study import Run, Study, describe
from clustermodel.output_files import PART, write_file

FORMAT: Final = "3"
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
_ORDER: Final = "position, key"
_COLUMNS: Final = (
    "key", "position", "factors", "specification", "jobs", "sources", "state", "summary", "error", "seconds", "versions",
    "files",
)  # fmt: skip
_BESIDE: Final = (LEDGER, f"{LEDGER}-journal", f"{LEDGER}-wal", f"{LEDGER}-shm", LOCK, *TABLES)
"""Names in the directory that are the store's own."""

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
    """Digests of its tables, by names of :data:`TABLES`, as JSON."""

    @property
    def digest(self) -> str:
        """Of all of it."""
        return hashlib.sha256(canonical(list(self)).encode()).hexdigest()

    @property
    def in_study(self) -> bool:
        """Whether the run is in the study still."""
        return self.position != NOT_IN_STUDY


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
        self._damaged: dict[str, str] = {}  # what is wrong with a run, by its key
        self._missing_rows = 0

    @classmethod
    @contextmanager
    def create(cls, directory: str | os.PathLike[str], study: Study, runs: Sequence[Run]) -> Iterator[Self]:
        """Open a study's directory to add runs, and make it if need be; nobody else can meanwhile.

        Runs of the study that are not in the ledger, or of which something is damaged, are entered as pending.

        Raises:
            SpecificationError: it holds another study, or something else; or its ledger is damaged.
            OutputError: it cannot be written, a sweep is writing it, or a part of it is a symbolic link.
        """
        directory = Path(directory)
        lock = FileLock(directory / LOCK, timeout=0)
        try:
            _refuse_links(directory)
            for table in TABLES:
                (directory / table).mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise OutputError(f"{directory}: another sweep is writing there; wait for it, or stop it") from None
        except OSError as problem:
            if isinstance(problem, OutputError):
                raise
            raise OutputError(f"{directory}: cannot be written: {problem.strerror or problem}") from None
        try:
            with cls._opened(directory, new=True) as store:
                store._claim(study)
                store._check()
                store._enter(runs)
                store._clean()
                yield store
        finally:
            lock.release()

    @classmethod
    @contextmanager
    def read(cls, directory: str | os.PathLike[str]) -> Iterator[Self]:
        """Open a study's directory to look at its results; a sweep may be writing it.

        Runs of which something is damaged are left out; :meth:`damaged` names them.

        Raises:
            SpecificationError: there is no study, or its ledger is damaged.
        """
        directory = Path(directory)
        if not is_there(directory / LEDGER):
            raise SpecificationError(f"{directory}: there is no study here (no {LEDGER})")
        with cls._opened(directory, new=False) as store:
            if not store.facts():
                raise SpecificationError(f"{directory}: there is no study here yet; a sweep was stopped before it had begun")
            store._check()
            yield store

    @classmethod
    @contextmanager
    def _opened(cls, directory: Path, *, new: bool) -> Iterator[Self]:
        path = directory / LEDGER
        try:
            connection = sqlite3.connect(path, timeout=30)
        except sqlite3.Error as problem:
            raise _ledger_error(path, problem) from None
        connection.text_factory = lambda text: text.decode("utf-8", "replace")  # a damaged text is found by its digest
        try:
            if new:
                connection.executescript(_SCHEMA)
            yield cls(directory, connection)
        except sqlite3.Error as problem:
            raise _ledger_error(path, problem) from None
        finally:
            connection.close()

    def facts(self) -> dict[str, str]:
        """Return the study's name, seed and warm-up, the format of the store, and how many runs it has.

        Raises:
            SpecificationError: another version of clustermodel wrote it, or it is damaged.
        """
        facts = dict(self._connection.execute("SELECT name, value FROM study"))
        if facts and facts.get("format") != FORMAT:
            raise SpecificationError(
                f"{self.directory}: its format is {facts.get('format')!r}; this version of clustermodel reads {FORMAT!r}"
            )
        if facts and facts.pop("digest", None) != _digest_of(facts):
            raise _damaged_ledger(self.directory / LEDGER, "its facts are not as they were written")
        return facts

    def _write_facts(self, facts: Mapping[str, str]) -> None:
        rows = {**facts, "digest": _digest_of(facts)}
        self._connection.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", rows.items())

    def _claim(self, study: Study) -> None:
        mine = {"format": FORMAT, "study": study.name, "seed": str(study.seed)}
        facts = self.facts()
        for name in ("study", "seed"):
            if facts and facts[name] != mine[name]:
                raise SpecificationError(
                    f"{self.directory}: it holds the {name} {facts[name]!r}, not {mine[name]!r}; give another --out"
                )
        with self._connection:
            self._write_facts({"rows": "0", **facts, **mine, "warm_up_s": str(study.warm_up_s)})

    # Rows.

    def _all(self) -> Iterator[tuple[Row, str]]:
        """Yield the rows of the ledger in the order of the study, each with the digest that it was written with."""
        query = f"SELECT {', '.join(_COLUMNS)}, digest FROM runs ORDER BY {_ORDER}"
        for *columns, digest in self._connection.execute(query):
            yield Row(*columns), digest

    def rows(self, *states: str, earlier: bool = False) -> list[Row]:
        """Return the runs that are whole, in the order of the study.

        Args:
            states: which, of :data:`STATES`; all if none is given.
            earlier: with those that are not in the study any more.
        """
        return [
            row
            for row, _ in self._all()
            if row.key not in self._damaged and (not states or row.state in states) and (earlier or row.in_study)
        ]

    def _write(self, rows: Sequence[Row]) -> None:
        marks = ", ".join("?" * (len(_COLUMNS) + 1))
        self._connection.executemany(
            f"INSERT OR REPLACE INTO runs ({', '.join(_COLUMNS)}, digest) VALUES ({marks})",
            [(*row, row.digest) for row in rows],
        )

    def _row(self, key: str) -> Row:
        query = f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE key = ?"
        return Row(*self._connection.execute(query, (key,)).fetchone())

    def _check(self) -> None:
        """Find out which runs are damaged: their rows, or their files."""
        self._connection.execute("BEGIN")  # a sweep may be writing: all that is read is of one moment
        rows, facts = list(self._all()), self.facts()
        self._connection.rollback()
        self._missing_rows = int(facts.get("rows", "0")) - len(rows)
        for row, digest in rows:
            what = self._damage(row) if _is_whole(row, digest) else "its row in the ledger is not as it was written"
            if what is not None:
                self._damaged[str(row.key)] = what

    def _damage(self, row: Row) -> str | None:
        """Return what is wrong with a run's files, ``None`` if nothing is."""
        if row.state != "done":
            return None
        for table, digest in json.loads(row.files or "{}").items():
            path = self.path(table, row.key)
            try:
                if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would wait for ever
                    return f"{table}/{path.name}: it is no file"
                content = path.read_bytes()
            except OSError as problem:
                return f"{table}/{path.name}: {problem.strerror or problem}"
            if hashlib.sha256(content).hexdigest() != digest:
                return f"{table}/{path.name}: not as it was written ({len(content):,} bytes)"
        return None

    def damaged(self) -> list[tuple[str, str]]:
        """Return the keys of damaged runs, and what is wrong with each; without a key, what is missing."""
        lost = [("", f"{counted(self._missing_rows, 'row')} of the ledger")] if self._missing_rows > 0 else []
        return lost + sorted(self._damaged.items())

    def _enter(self, runs: Sequence[Run]) -> None:
        """Make the rows those of the study: new runs pending, damaged ones too; what has left it keeps its results."""
        known = {row.key: row for row, _ in self._all()}
        rows = {key: row._replace(position=NOT_IN_STUDY) for key, row in known.items() if key not in self._damaged}
        for at, run in enumerate(runs):
            new = Row(
                run.key, at, json.dumps(dict(run.factors)), canonical(run.specification), run.jobs, json.dumps(run.sources)
            )
            old = rows.get(run.key, new)
            kept = old._replace(position=at, factors=new.factors, sources=new.sources)
            if run.history and kept.state == "done" and PLACEMENTS not in json.loads(kept.files or "{}"):
                kept = new  # the study has come to want what this run did not keep
            rows[run.key] = kept
        gone = [(key,) for key in known if key not in rows]
        with self._connection:
            self._connection.executemany("DELETE FROM runs WHERE key = ?", gone)
            self._write([row for key, row in rows.items() if row != known.get(key) or key in self._damaged])
            self._write_facts({**self.facts(), "rows": str(len(rows))})
        self._damaged.clear()
        self._missing_rows = 0

    def _clean(self) -> None:
        """Take away what a sweep that was stopped had half written."""
        for table in TABLES:  # and nowhere else: the directory may hold files of others
            for left in (self.directory / table).glob(f"*{PART}"):
                if left.is_file() and not left.is_symlink():
                    left.unlink()

    def path(self, table: str, key: str) -> Path:
        """Return where a table of a run is, one of :data:`TABLES`."""
        return self.directory / table / f"{key}.parquet"

    def missing(self) -> set[str]:
        """Return the keys of the runs that are pending or have failed."""
        return {row.key for row in self.rows("pending", "failed", earlier=True)}

    def seconds_per_job(self) -> dict[str, float]:
        """Return how long the runs of each policy took, per job, as far as there are any."""
        times: dict[str, list[float]] = {}
        for row in self.rows("done", earlier=True):
            times.setdefault(json.loads(row.factors)["policy"], []).append((row.seconds or 0.0) / max(row.jobs, 1))
        return {policy: sum(each) / len(each) for policy, each in times.items()}

    def keep(self, key: str, finished: Finished) -> None:
        """Write what a run has left behind.

        Raises:
            OutputError: it cannot be written.
        """
        for table, content in finished.tables.items():
            write_file(self.path(table, key), content, durable=True)
        files = {table: hashlib.sha256(content).hexdigest() for table, content in finished.tables.items()}
        versions = canonical(dict(finished.versions))
        self._update(
            key,
            state="done",
            summary=finished.summary,
            error=None,
            seconds=finished.seconds,
            versions=versions,
            files=canonical(files),
        )

    def fail(self, key: str, error: str) -> None:
        """Note why a run has failed.

        Raises:
            OutputError: it cannot be written.
        """
        self._update(key, state="failed", error=error.encode("utf-8", "backslashreplace").decode())

    def _update(self, key: str, **changes: Any) -> None:
        try:
            with self._connection:
                self._write([self._row(key)._replace(**changes)])
        except sqlite3.OperationalError as problem:
            raise OutputError(f"{self.directory / LEDGER}: cannot be written: {problem}") from None

    def states(self) -> dict[str, int]:
        """Return how many runs of the study are in each state."""
        rows = self.rows()
        return {state: sum(row.state == state for row in rows) for state in STATES}

    def results(self, *, earlier: bool = False) -> pd.DataFrame:
        """Return the tidy table: a row for each run that is done, in the order of the study; factors, then the summary.

        Args:
            earlier: with the runs that are not in the study any more, since it was changed.
        """
        table = []
        for row in self.rows("done", earlier=earlier):
            measured, given = _writable(json.loads(row.summary or "{}")), _writable(json.loads(row.factors))
            table.append({"run": row.key, **given, **{name: value for name, value in measured.items() if name not in given}})
        return pd.DataFrame(table)

    def earlier(self) -> int:
        """Return how many runs are done that are not in the study any more."""
        return sum(not row.in_study for row in self.rows("done", earlier=True))

    def failures(self) -> list[tuple[str, str]]:
        """Return the factors and the error of each run of the study that has failed."""
        return [(describe(json.loads(row.factors)), row.error or "") for row in self.rows("failed")]

    def provenance(self) -> pd.DataFrame:
        """Return what each run was made from: its specification, sources of jobs and versions, as JSON; how long it took."""
        columns = ["factors", "specification", "sources", "versions", "seconds", "state"]
        table = [{"run": row.key, **{name: getattr(row, name) for name in columns}} for row in self.rows()]
        return pd.DataFrame(table, columns=["run", *columns])

    def verify(self) -> list[str]:
        """Return what is not as it was written, a line each: keys are computed anew from what runs were made from, digests from
        the files.
        """
        problems = [f"{LEDGER}: {text}" for (text,) in self._connection.execute("PRAGMA integrity_check") if text != "ok"]
        problems += [f"{key}: {what}" if key else f"{LEDGER}: {what} are missing" for key, what in self.damaged()]
        known = set()
        for row, _ in self._all():
            known.add(row.key)
            if row.key not in self._damaged and key_of(json.loads(row.specification)) != row.key:
                problems.append(f"{row.key}: its key is not that of its specification")
        for table in TABLES:
            for path in sorted((self.directory / table).glob("*")):
                if path.suffix == ".parquet" and path.stem not in known:
                    problems.append(f"{table}/{path.name}: belongs to no run of this study")
        return problems

    def records(self, key: str) -> pd.DataFrame:
        """Return the job records of a run: ``Result.jobs``.

        Raises:
            SpecificationError: there is no such run, it is not done, or it is damaged.
        """
        return self._table(RECORDS, key)

    def states_over_time(self, key: str) -> pd.DataFrame:
        """Return the state of the machine from each event of a run on: ``Result.states``.

        Raises:
            SpecificationError: there is no such run, it is not done, or it is damaged.
        """
        return self._table(STATES_OVER_TIME, key)

    def placements(self, key: str) -> pd.DataFrame:
        """Return which nodes each gang of a run held from when until when: ``Result.placements``.

        Raises:
            SpecificationError: there is no such run, it is not done, it is damaged, or nodes were shared in time and no
                history was kept.
        """
        return self._table(PLACEMENTS, key)

    def has_placements(self, key: str) -> bool:
        """Return whether :meth:`placements` knows them."""
        return self.path(PLACEMENTS, key).is_file()

    def _table(self, table: str, key: str) -> pd.DataFrame:
        path = self.path(table, key)
        if not path.is_file():
            raise SpecificationError(f"run: {key!r} has no {table} in {self.directory}")
        try:
            return pd.read_parquet(io.BytesIO(path.read_bytes()))
        except (OSError, ValueError) as problem:
            raise SpecificationError(f"{path}: damaged: {problem}") from None


def is_there(path: Path) -> bool:
    """Return whether there is such a file; a name that is too long for any is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of which the texts can be written anywhere: halves of characters, as in names of files, are written out."""
    return {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in values.items()
    }


def _is_whole(row: Row, digest: str) -> bool:
    try:
        return row.digest == digest
    except (TypeError, ValueError):  # of damaged values
        return False


def _digest_of(facts: Mapping[str, str]) -> str:
    return hashlib.sha256(canonical(dict(facts)).encode()).hexdigest()


def _refuse_links(directory: Path) -> None:
    """Refuse a store of which a part is a symbolic link: what is written, locked or taken away would be elsewhere."""
    for name in _BESIDE:
        if (directory / name).is_symlink():
            raise OutputError(f"{directory / name}: is a symbolic link; a study's directory must have its own {name}")


_NOT_WRITABLE: Final = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")


def _ledger_error(path: Path, problem: sqlite3.Error) -> OutputError | SpecificationError:
    """Return what is to be said of an error of SQLite."""
    if getattr(problem, "sqlite_errorname", "").startswith(_NOT_WRITABLE):
        return OutputError(f"{path}: cannot be written: {problem}")
    return _damaged_ledger(path, str(problem))


def _damaged_ledger(path: Path, what: str) -> SpecificationError:
    return SpecificationError(
        f"{path}: damaged, or no ledger of a study: {what}; move it away, and the same sweep runs everything again"
    )
