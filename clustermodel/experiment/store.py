"""The results of an experiment: one directory with a file for each run (JSON) and the tables of runs (Parquet).

A run is written in two steps: first its tables, then its file, which has the digests of its tables and of itself.  So whatever
stops an experiment, a run is done only if its tables are complete.  A run that does not match its digests is damaged: it is
named, left out of results, and run again.

A shard of a job array writes a store of its own, in a folder of the directory.  Readers see all shards joined, and a sweep of
the whole experiment does not repeat their runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pandas as pd

from clustermodel.errors import SpecificationError
from clustermodel.experiment.design import Design
from clustermodel.experiment.factors import Label, describe
from clustermodel.experiment.run_files import PLACEMENTS, RECORDS, STATES_OVER_TIME, RunFiles
from clustermodel.experiment.run_key import Run, key_of
from clustermodel.experiment.store_part import SHARD, Part, Shard, facts_of, is_there, opened_for_writing
from clustermodel.experiment.stored_files import STATES, STUDY_FILE, Entry, RunFile, State, StudyFile
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.worker import Finished


class Store:
    """The results of one experiment.  Use :meth:`create` to write, :meth:`read` to look.

    Args:
        directory: of the experiment.
        parts: its folders with runs; the first is written.
        listing: the folders whose trials are those of the experiment.
        version: of the experiment, if the first is that of a shard.
    """

    def __init__(self, directory: Path, parts: Sequence[Part], listing: Sequence[Part], version: str = "") -> None:
        self.directory = directory
        self._parts = list(parts)
        self._listing = list(listing)
        self._mine = parts[0]
        self._version = version

    @classmethod
    @contextmanager
    def create(
        cls, directory: str | os.PathLike[str], design: Design, *, shard: Shard | None = None, version: str = ""
    ) -> Iterator[Self]:
        """Open an experiment's directory to add runs, and make it if need be; the block has it alone.

        Args:
            directory: of the experiment.
            design: the experiment.
            version: of the experiment, if this is a shard.
            shard: the part of the trials that this process runs, in a folder of its own, which is not locked: run each shard
                once at a time.  A shard knows the runs in its own folder only.

        Raises:
            SpecificationError: the directory holds another experiment, shards of another number, or something else; or its
                file is damaged.
            OutputError: the directory cannot be written, another process writes it, or a part of it is a symbolic link.
        """
        directory = Path(directory)
        if shard is not None:
            _require_number_of_shards(directory, shard[1])
        with opened_for_writing(folder_of(directory, shard), design, version, lock=shard is None) as part:
            others = [Part.read(folder) for folder in _shards_in(directory)] if shard is None else []
            for other in others:
                _require_same(part, other, "study", "seed")
            yield cls(directory, [part, *others], [part], version)

    @classmethod
    @contextmanager
    def read(cls, directory: str | os.PathLike[str]) -> Iterator[Self]:
        """Open an experiment's directory to look at its results, those of all shards, even while they are written.

        Damaged runs are left out; :meth:`damaged` names them.

        Raises:
            SpecificationError: the directory holds no experiment, its file is damaged, its shards are of several or of several
                versions, or one is in the place of another.
        """
        directory = Path(directory)
        folders = [directory] if is_there(directory / STUDY_FILE) else []
        folders += _shards_in(directory)
        if not folders:
            raise SpecificationError(f"{directory}: there is no study here (no {STUDY_FILE})")
        parts = [Part.read(folder) for folder in folders]
        for part in parts[1:]:
            _require_same(parts[0], part, "study", "seed", "warm_up_s")
        _require_own_places(directory, parts)
        _require_same_runs(parts)
        yield cls(directory, parts, parts)

    @property
    def study(self) -> StudyFile:
        """The facts about the experiment; its trials may be those of one shard."""
        return self._mine.study

    def entries(self) -> list[Entry]:
        """Return the trials of all shards, in the order of the experiment; damaged and missing runs included."""
        entries = {entry.trial: entry for part in self._listing for entry in part.study.trials}
        return sorted(entries.values(), key=lambda entry: entry.order)

    def run(self, key: str) -> RunFile | None:
        """Return the file of a run, ``None`` if it is missing or damaged."""
        runs = [part.runs[key] for part in self._parts if key in part.runs]
        return next((run for run in runs if run.state == "done"), runs[0] if runs else None)

    def damaged(self) -> list[tuple[str, str]]:
        """Return the keys of damaged runs that were not repeated in another folder, and what is wrong with each."""
        return [(key, what) for key, what in self._all_damaged() if self.run(key) is None]

    def _all_damaged(self) -> list[tuple[str, str]]:
        return sorted((key, what) for part in self._parts for key, what in part.damaged.items())

    def missing_shards(self) -> list[str]:
        """Return the names of the folders of shards that have not been started, while others have.

        None are missing where the whole experiment has been run in the directory itself.
        """
        there = [part.folder.name for part in self._parts if part.folder != self.directory]
        if len(there) < len(self._parts):
            return []
        counts = {int(name.rpartition("-")[2]) for name in there}
        every = [folder_of(self.directory, (number, count)).name for count in counts for number in range(1, count + 1)]
        return [name for name in every if name not in there]

    # Writing.

    def enter(self, design: Design, runs: Iterable[Run]) -> None:
        """Make the trials of the experiment those of ``runs``; runs that it had before keep their results.

        Raises:
            OutputError: the file of the experiment cannot be written.
        """
        entries = []
        for run in runs:
            order = list(design.order_of(run.trial))
            tables = design.tables_of(run.trial, history=run.history)
            entries.append(
                Entry(
                    point=list(run.trial.point),
                    replication=run.trial.replication,
                    order=order,
                    key=run.key,
                    about=dict(run.about),
                    tables=list(tables),
                )
            )
        study = replace(facts_of(design, self._mine.folder, self._version), trials=entries)
        if study != self._mine.study:
            self._mine.write_study(study)

    def missing(self) -> set[str]:
        """Return the keys of the runs that are pending, failed or damaged, or lack a table that the experiment wants."""
        wanted: dict[str, set[str]] = {}
        for entry in self._mine.study.trials:
            wanted.setdefault(entry.key, set()).update(entry.tables)
        return {key for key, tables in wanted.items() if not self._is_done(key, tables)}

    def _is_done(self, key: str, tables: set[str]) -> bool:
        runs = [part.runs[key] for part in self._parts if key in part.runs]
        return any(run.state == "done" and tables <= run.files.keys() for run in runs)

    def seconds_per_job(self) -> dict[str, float]:
        """Return the mean wall time per job of each policy that has run."""
        times: dict[str, list[float]] = {}
        for run in (run for part in self._parts for run in part.runs.values()):
            if run.state == "done":
                times.setdefault(str(run.specification["policy"]), []).append(run.seconds / max(run.jobs, 1))
        return {policy: sum(each) / len(each) for policy, each in times.items()}

    def keep(self, run: Run, factors: Mapping[str, Label], finished: Finished) -> None:
        """Write the tables and the numbers of a run.

        Raises:
            OutputError: they cannot be written.
        """
        digests = RunFiles(self._mine.folder).write(run.key, finished.tables)
        facts: dict[str, Any] = {"seconds": finished.seconds, "versions": dict(finished.versions), "files": digests}
        self._mine.write_run(_file_of(run, factors, "done", measured=dict(finished.measured), **facts))

    def fail(self, run: Run, factors: Mapping[str, Label], error: str) -> None:
        """Record why a run failed.

        Raises:
            OutputError: it cannot be written.
        """
        self._mine.write_run(_file_of(run, factors, "failed", error=error.encode("utf-8", "backslashreplace").decode()))

    # Looking.

    def states(self) -> dict[str, int]:
        """Return the number of the experiment's trials in each state."""
        runs = [self.run(entry.key) for entry in self.entries()]
        found = [run.state if run is not None else "pending" for run in runs]
        return {state: found.count(state) for state in STATES}

    def table(self) -> StudyTable:
        """Return the table of the finished trials."""
        return StudyTable.of_rows(self._rows(), self.study.factors, self.study.study, self.failures(), self.study.shown)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for entry in self.entries():
            run = self.run(entry.key)
            if run is not None and run.state == "done":
                factors = dict(zip(self.study.factors, entry.point, strict=True))
                rows.append(_row(entry.key, factors, entry.replication, entry.about, run.measured))
        return rows

    def results(self, *, earlier: bool = False) -> pd.DataFrame:
        """Return the tidy table: a row for each finished trial, in the order of the experiment.

        Args:
            earlier: include runs that the experiment had before it was changed.
        """
        rows = self._rows()
        if earlier:
            for run in self._earlier():
                replication = int(run.factors.get("replication") or 0)
                factors = {name: value for name, value in run.factors.items() if name != "replication"}
                rows.append(_row(run.key, factors, replication, {}, run.measured))
        return pd.DataFrame(rows)

    def _earlier(self) -> list[RunFile]:
        known = {entry.key for entry in self.entries()}
        runs = {key: run for part in self._parts for key, run in part.runs.items() if run.state == "done"}
        return [run for key, run in runs.items() if key not in known]

    def earlier(self) -> int:
        """Return the number of finished runs that the experiment no longer has."""
        return len(self._earlier())

    def failures(self) -> list[tuple[str, str]]:
        """Return the factors and the error of each failed trial of the experiment."""
        found = []
        for entry in self.entries():
            run = self.run(entry.key)
            if run is not None and run.state == "failed":
                found.append((describe(self.factors_of(entry)), run.error))
        return found

    def factors_of(self, entry: Entry) -> dict[str, Label]:
        """Return the labels of a trial's levels by factor, and its replication."""
        return {**dict(zip(self.study.factors, entry.point, strict=True)), "replication": entry.replication}

    def verify(self) -> list[str]:
        """Return a line for each deviation from what was written, with keys and digests recomputed."""
        problems = [f"{key}: {what}" for key, what in self._all_damaged()]
        for part in self._parts:
            wrong = [run.key for run in part.runs.values() if key_of(run.specification) != run.key]
            problems += [f"{key}: its key is not that of its specification" for key in wrong]
            known = part.runs.keys() | part.damaged.keys()
            strays = [(table, path.name) for table, path in RunFiles(part.folder).tables() if path.stem not in known]
            problems += [f"{table}/{name}: belongs to no run of this study" for table, name in strays]
        return problems

    def number_of_files(self) -> tuple[int, int]:
        """Return the numbers of undamaged runs and of their tables."""
        runs = [run for part in self._parts for run in part.runs.values()]
        return len(runs), sum(len(run.files) for run in runs)

    def records(self, key: str) -> pd.DataFrame:
        """Return the job table of a run: ``Result.jobs``.

        Raises:
            SpecificationError: the experiment has no such run, it is not done, kept no job table, or is damaged.
        """
        return self._read(RECORDS, key)

    def states_over_time(self, key: str) -> pd.DataFrame:
        """Return the state of the machine after each scheduling event of a run: ``Result.states``.

        Raises:
            SpecificationError: as for :meth:`records`.
        """
        return self._read(STATES_OVER_TIME, key)

    def placements(self, key: str) -> pd.DataFrame:
        """Return the nodes of each gang of a run over time: ``Result.placements``.

        Raises:
            SpecificationError: as for :meth:`records`, or the run used time sharing and kept no history.
        """
        return self._read(PLACEMENTS, key)

    def has(self, table: str, key: str) -> bool:
        """Return whether a table of a run was kept, one of :data:`~clustermodel.experiment.run_files.TABLES`."""
        return any(key in part.runs and table in part.runs[key].files for part in self._parts)

    def _read(self, table: str, key: str) -> pd.DataFrame:
        having = (part.folder for part in self._parts if key in part.runs and table in part.runs[key].files)
        return RunFiles(next(having, self.directory)).read(table, key)


def started(directory: Path, shard: Shard | None) -> bool:
    """Return whether an experiment has been started in a directory."""
    return is_there(folder_of(directory, shard) / STUDY_FILE)


def folder_of(directory: Path, shard: Shard | None) -> Path:
    """Return the folder that a process writes: the directory of the experiment, or that of its shard."""
    return directory if shard is None else directory / f"shard-{shard[0]}-of-{shard[1]}"


def _file_of(run: Run, factors: Mapping[str, Label], state: State, **more: Any) -> RunFile:
    return RunFile(
        key=run.key,
        state=state,
        factors=dict(factors),
        specification=dict(run.specification),
        jobs=run.jobs,
        sources=list(run.sources),
        **more,
    )


def _row(
    key: str,
    factors: Mapping[str, Label],
    replication: int,
    about: Mapping[str, Label],
    measured: Mapping[str, float | None],
) -> dict[str, Any]:
    """Return a row of the table: a factor wins over a number of the same name."""
    row: dict[str, Any] = {"run": key, **factors, "replication": replication, **_others(about, factors)}
    row |= _others(measured, row)
    return {name: _writable(value) for name, value in row.items()}


def _others(values: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in taken}


def _writable(value: Any) -> Any:
    """Return a text that any file can hold: surrogates, as in names of files, are written out."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _shards_in(directory: Path) -> list[Path]:
    """Return the folders of shards that have been started, in the order of their numbers."""
    try:
        folders = [folder for folder in directory.iterdir() if SHARD.fullmatch(folder.name) and is_there(folder / STUDY_FILE)]
    except OSError:
        return []
    return sorted(folders, key=lambda folder: [int(number) for number in folder.name.split("-")[1::2]])


def _require_number_of_shards(directory: Path, count: int) -> None:
    """Refuse a shard where the experiment has been divided otherwise: its runs would be repeated."""
    for folder in _shards_in(directory):
        there = folder.name.rpartition("-")[2]
        if int(there) != count:
            raise SpecificationError(
                f"{directory}: it has shards of {there}, not of {count}; use the same number, or another directory"
            )


def _require_same(one: Part, other: Part, *names: str) -> None:
    """Refuse folders of several experiments."""
    for name in names:
        here, there = getattr(one.study, name), getattr(other.study, name)
        if here != there:
            raise SpecificationError(f"{other.folder}: its {name} is {there!r}, in {one.folder} it is {here!r}")


def _require_own_places(directory: Path, parts: Sequence[Part]) -> None:
    """Refuse a copy of a shard in the place of another one."""
    for part in parts:
        own = part.study.shard
        if own not in ("", part.folder.name) and part.folder != directory:
            raise SpecificationError(f"{part.folder}: it is a copy of {own}; run the same sweep there again, or delete it")


def _require_same_runs(parts: Sequence[Part]) -> None:
    """Refuse folders of several versions of an experiment: it changed after one of them was written."""
    known: dict[Any, tuple[str, Part]] = {}
    for part in parts:
        versions = [("", part.study.version)] if part.study.version else []
        for what, identity in [*versions, *((entry.trial, entry.key) for entry in part.study.trials)]:
            before, where = known.setdefault(what, (identity, part))
            if before != identity:
                raise SpecificationError(
                    f"{part.folder}: its runs are of another version of the study than those in {where.folder}; "
                    "run the same sweep there again, or delete the older one"
                )
