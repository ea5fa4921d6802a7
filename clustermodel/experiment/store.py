"""The results of a study: one directory with a ledger of the runs (SQLite) and the tables of each run (Parquet).

A run is written in two steps: first its tables, to temporary names that are then changed; then its row in the ledger, in one
transaction.  So whatever stops a study, the ledger has a run as done only if its tables are complete.  Every row has a digest
of itself and of the run's tables.  A run that does not match its digest is damaged: it is named, left out of results, and run
again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pandas as pd
from filelock import FileLock, Timeout

from clustermodel.errors import OutputError, SpecificationError, counted
from clustermodel.experiment.run_files import PLACEMENTS, RECORDS, STATES_OVER_TIME, TABLES, RunFiles
from clustermodel.experiment.run_key import canonical, key_of
from clustermodel.experiment.run_table import FORMAT, LEDGER, LEDGER_FILES, NOT_IN_STUDY, STATES, Row, RunLedger
from clustermodel.experiment.study import Run, Study, describe

LOCK: Final = "study.lock"
_OWN_NAMES: Final = (*LEDGER_FILES, LOCK, *TABLES)
"""Names of the store's files and folders in its directory."""


class Finished(NamedTuple):
    """The outcome of a successful run."""

    summary: str
    """``Summary.as_dict()`` as JSON."""
    tables: Mapping[str, bytes]
    """Parquet files by names of tables: ``Result.jobs``, ``Result.states`` and, if known, ``Result.placements``."""
    seconds: float
    """Wall time of the run."""
    versions: Mapping[str, str]
    """Versions of Python and of the packages that made the numbers."""


class Store:
    """The results of one study.  Use :meth:`create` to write, :meth:`read` to look.

    Args:
        directory: of the study.
        ledger: of its runs, open.
    """

    def __init__(self, directory: Path, ledger: RunLedger) -> None:
        self.directory = directory
        self._ledger = ledger
        self._files = RunFiles(directory)
        self._damaged: dict[str, str] = {}  # key -> what is wrong with the run
        self._missing_rows = 0

    @classmethod
    @contextmanager
    def create(cls, directory: str | os.PathLike[str], study: Study, runs: Sequence[Run]) -> Iterator[Self]:
        """Open a study's directory to add runs, and make it if need be; the block has it alone.

        Runs of the study that are damaged or not in the ledger are entered as pending.

        Raises:
            SpecificationError: the directory holds another study, or something else; or its ledger is damaged.
            OutputError: the directory cannot be written, another sweep writes it, or a part of it is a symbolic link.
        """
        directory = Path(directory)
        lock = FileLock(directory / LOCK, timeout=0)
        try:
            _refuse_links(directory)
            RunFiles(directory).make_folders()
            lock.acquire()
        except Timeout:
            raise OutputError(f"{directory}: another sweep is writing there; wait for it, or stop it") from None
        except OSError as problem:
            if isinstance(problem, OutputError):
                raise
            raise OutputError(f"{directory}: cannot be written: {problem.strerror or problem}") from None
        try:
            with RunLedger.opened(directory / LEDGER, new=True) as ledger:
                store = cls(directory, ledger)
                store._claim(study)
                store._find_damage()
                store._enter(runs)
                store._files.delete_partial()
                yield store
        finally:
            lock.release()

    @classmethod
    @contextmanager
    def read(cls, directory: str | os.PathLike[str]) -> Iterator[Self]:
        """Open a study's directory to look at its results, even while a sweep writes it.

        Damaged runs are left out; :meth:`damaged` names them.

        Raises:
            SpecificationError: the directory holds no study, or its ledger is damaged.
        """
        directory = Path(directory)
        if not is_there(directory / LEDGER):
            raise SpecificationError(f"{directory}: there is no study here (no {LEDGER})")
        with RunLedger.opened(directory / LEDGER, new=False) as ledger:
            store = cls(directory, ledger)
            if not store.facts():
                raise SpecificationError(f"{directory}: there is no study here yet; a sweep was stopped before it had begun")
            store._find_damage()
            yield store

    def facts(self) -> dict[str, str]:
        """Return the study's name, seed and warm-up, the format of the store, and the number of its runs.

        Raises:
            SpecificationError: another version of clustermodel wrote the store, or the facts are damaged.
        """
        return self._ledger.facts()

    def _claim(self, study: Study) -> None:
        """Refuse the directory of another study, else note the facts of this one."""
        mine = {"format": FORMAT, "study": study.name, "seed": str(study.seed)}
        facts = self.facts()
        for name in ("study", "seed"):
            if facts and facts[name] != mine[name]:
                raise SpecificationError(
                    f"{self.directory}: it holds the {name} {facts[name]!r}, not {mine[name]!r}; give another --out"
                )
        self._ledger.write_facts({"rows": "0", **facts, **mine, "warm_up_s": str(study.warm_up_s)})

    def rows(self, *states: str, earlier: bool = False) -> list[Row]:
        """Return the undamaged runs, in the order of the study.

        Args:
            states: which, of :data:`~clustermodel.experiment.run_table.STATES`; by default all.
            earlier: include runs that the study had before it was changed.
        """
        return [
            row
            for row, _ in self._ledger.rows()
            if row.key not in self._damaged and (not states or row.state in states) and (earlier or row.in_study)
        ]

    def _find_damage(self) -> None:
        """Compare all rows and tables with their digests."""
        rows, facts = self._ledger.snapshot()
        self._missing_rows = int(facts.get("rows", "0")) - len(rows)
        for row, digest in rows:
            what = self._damage(row) if row.matches(digest) else "its row in the ledger is not as it was written"
            if what is not None:
                self._damaged[str(row.key)] = what

    def _damage(self, row: Row) -> str | None:
        return self._files.damage(row.key, json.loads(row.files or "{}")) if row.state == "done" else None

    def damaged(self) -> list[tuple[str, str]]:
        """Return the keys of damaged runs, and what is wrong with each; without a key, what is missing."""
        lost = [("", f"{counted(self._missing_rows, 'row')} of the ledger")] if self._missing_rows > 0 else []
        return lost + sorted(self._damaged.items())

    def _enter(self, runs: Sequence[Run]) -> None:
        """Make the rows those of the study: new and damaged runs become pending, removed runs keep their results."""
        known = {row.key: row for row, _ in self._ledger.rows()}
        rows = {key: row._replace(position=NOT_IN_STUDY) for key, row in known.items() if key not in self._damaged}
        for position, run in enumerate(runs):
            new = Row(
                run.key,
                position,
                json.dumps(dict(run.factors)),
                canonical(run.specification),
                run.jobs,
                json.dumps(run.sources),
            )
            old = rows.get(run.key, new)
            kept = old._replace(position=position, factors=new.factors, sources=new.sources)
            if run.history and kept.state == "done" and PLACEMENTS not in json.loads(kept.files or "{}"):
                kept = new  # the study now asks for placements, which this run did not keep
            rows[run.key] = kept
        changed = [row for key, row in rows.items() if row != known.get(key) or key in self._damaged]
        removed = [key for key in known if key not in rows]
        self._ledger.replace(changed, removed, {**self.facts(), "rows": str(len(rows))})
        self._damaged.clear()
        self._missing_rows = 0

    def path(self, table: str, key: str) -> Path:
        """Return the path of a table of a run, one of :data:`~clustermodel.experiment.run_files.TABLES`."""
        return self._files.path(table, key)

    def missing(self) -> set[str]:
        """Return the keys of the runs that are pending or have failed."""
        return {row.key for row in self.rows("pending", "failed", earlier=True)}

    def seconds_per_job(self) -> dict[str, float]:
        """Return the mean wall time per job of each policy that has run."""
        times: dict[str, list[float]] = {}
        for row in self.rows("done", earlier=True):
            times.setdefault(json.loads(row.factors)["policy"], []).append((row.seconds or 0.0) / max(row.jobs, 1))
        return {policy: sum(each) / len(each) for policy, each in times.items()}

    def keep(self, key: str, finished: Finished) -> None:
        """Write the tables and the summary of a run.

        Raises:
            OutputError: they cannot be written.
        """
        digests = self._files.write(key, finished.tables)
        self._ledger.update(
            key,
            state="done",
            summary=finished.summary,
            error=None,
            seconds=finished.seconds,
            versions=canonical(dict(finished.versions)),
            files=canonical(digests),
        )

    def fail(self, key: str, error: str) -> None:
        """Record why a run failed.

        Raises:
            OutputError: the ledger cannot be written.
        """
        self._ledger.update(key, state="failed", error=error.encode("utf-8", "backslashreplace").decode())

    def states(self) -> dict[str, int]:
        """Return the number of the study's runs in each state."""
        rows = self.rows()
        return {state: sum(row.state == state for row in rows) for state in STATES}

    def results(self, *, earlier: bool = False) -> pd.DataFrame:
        """Return the tidy table: a row for each finished run, in the order of the study; factors, then the summary.

        Args:
            earlier: include runs that the study had before it was changed.
        """
        table = []
        for row in self.rows("done", earlier=earlier):
            summary, factors = _writable(json.loads(row.summary or "{}")), _writable(json.loads(row.factors))
            measured = {name: value for name, value in summary.items() if name not in factors}
            table.append({"run": row.key, **factors, **measured})
        return pd.DataFrame(table)

    def earlier(self) -> int:
        """Return the number of finished runs that the study no longer has."""
        return sum(not row.in_study for row in self.rows("done", earlier=True))

    def failures(self) -> list[tuple[str, str]]:
        """Return the factors and the error of each failed run of the study."""
        return [(describe(json.loads(row.factors)), row.error or "") for row in self.rows("failed")]

    def provenance(self) -> pd.DataFrame:
        """Return the origin of each run: specification, sources of jobs and versions, as JSON; and its wall time."""
        columns = ["factors", "specification", "sources", "versions", "seconds", "state"]
        table = [{"run": row.key, **{name: getattr(row, name) for name in columns}} for row in self.rows()]
        return pd.DataFrame(table, columns=["run", *columns])

    def verify(self) -> list[str]:
        """Return a line for each deviation from what was written, with keys and digests recomputed."""
        problems = [f"{LEDGER}: {text}" for text in self._ledger.problems()]
        problems += [f"{key}: {what}" if key else f"{LEDGER}: {what} are missing" for key, what in self.damaged()]
        known = set()
        for row, _ in self._ledger.rows():
            known.add(row.key)
            if row.key not in self._damaged and key_of(json.loads(row.specification)) != row.key:
                problems.append(f"{row.key}: its key is not that of its specification")
        for table, path in self._files.tables():
            if path.stem not in known:
                problems.append(f"{table}/{path.name}: belongs to no run of this study")
        return problems

    def records(self, key: str) -> pd.DataFrame:
        """Return the job table of a run: ``Result.jobs``.

        Raises:
            SpecificationError: the study has no such run, the run is not done, or it is damaged.
        """
        return self._files.read(RECORDS, key)

    def states_over_time(self, key: str) -> pd.DataFrame:
        """Return the state of the machine after each scheduling event of a run: ``Result.states``.

        Raises:
            SpecificationError: the study has no such run, the run is not done, or it is damaged.
        """
        return self._files.read(STATES_OVER_TIME, key)

    def placements(self, key: str) -> pd.DataFrame:
        """Return the nodes of each gang of a run over time: ``Result.placements``.

        Raises:
            SpecificationError: the study has no such run, the run is not done, it is damaged, or it used time sharing and kept
                no history.
        """
        return self._files.read(PLACEMENTS, key)

    def has_placements(self, key: str) -> bool:
        """Return whether :meth:`placements` knows the run."""
        return self.path(PLACEMENTS, key).is_file()


def is_there(path: Path) -> bool:
    """Return whether a file exists; a name that is too long for any file does not."""
    try:
        return path.is_file()
    except OSError:
        return False


def _writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with texts that any file can hold: surrogates, as in names of files, are written out."""
    return {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in values.items()
    }


def _refuse_links(directory: Path) -> None:
    """Refuse a store of which a part is a symbolic link: the store would write, lock or delete files elsewhere."""
    for name in _OWN_NAMES:
        if (directory / name).is_symlink():
            raise OutputError(f"{directory / name}: is a symbolic link; a study's directory must have its own {name}")
