"""The results of an experiment: one directory with a file for each run (JSON) and the tables of runs (Parquet).

A run is a file named by its key.  Every file is written to a temporary name that is then changed, and a run's tables come
before its own file, which has their digests: whatever stops an experiment, a run is done only if its tables are complete.  A
run that does not match its digests is damaged: it is named, left out of results, and run again.  So no run waits until the disk
has it: a power failure may damage those of the last seconds.  Each task of a job array lists its trials in a file of its own,
and readers join these lists.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

from clustermodel.errors import OutputError, SpecificationError, quoted
from clustermodel.experiment.design import ALL_TABLES, PLACEMENTS, RECORDED, RECORDS, STATES_OVER_TIME, TABLES, Design
from clustermodel.experiment.exhibits import EXHIBITS
from clustermodel.experiment.factors import Label, Trial, describe
from clustermodel.experiment.fingerprint import canonical
from clustermodel.experiment.run_key import Run, key_of
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.worker import Outcome
from clustermodel.text.files import PART, make_folder, write_file

if TYPE_CHECKING:
    import pandas as pd

FORMAT: Final = "5"  # version of the layout of a store
STUDY_FILE: Final = "study.json"
RUNS: Final = "runs"  # folder of the files of runs
Shard = tuple[int, int]  # a part of the trials of an experiment: number, from 1 on, and how many parts there are
State = Literal["pending", "done", "failed"]

_OF_SHARD: Final = re.compile(r"study-(\d+)-of-(\d+)\.json")
_PARTIAL: Final = re.compile(rf"\.[0-9a-f]{{16}}{re.escape(PART)}")  # of this package


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A trial in the file of an experiment; ``order`` sorts the trials of all shards."""

    point: list[Label]
    replication: int
    order: list[float]
    key: str
    about: dict[str, Label]  # policy, workload, nodes and seed of the scenario
    tables: list[str]  # of the run, which the experiment wants


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The file of an experiment: facts, among them its class (``kind``), and the trials so far."""

    format: str = FORMAT
    study: str
    kind: str
    seed: int
    warm_up_s: float
    factors: list[str]
    shown: list[str]  # the columns that tables and reports show first
    text: str = ""  # the question and its answer, in Markdown
    version: str = ""  # `Opened.version`: the shards of a job array have the same
    trials: list[Entry] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """The file of a run: its specification and its numbers, or why it failed."""

    key: str
    state: State
    factors: dict[str, Label]  # levels of the first trial that asked for the run, for readers
    specification: Mapping[str, Any]
    jobs: int
    sources: list[str]  # the origins of the job streams
    measured: Mapping[str, bool | float | None] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0  # wall time of the run
    versions: dict[str, str] = field(default_factory=dict)  # of Python and of the packages that made the numbers
    files: dict[str, str] = field(default_factory=dict)  # digests of the run's tables, by their names


class _Numbers(Mapping[str, bool | float | None]):
    """The numbers of one of many runs, which share the names in memory."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Iterable[bool | float | None]) -> None:
        self._places, self._values = places, tuple(values)

    def __getitem__(self, name: str) -> bool | float | None:
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


_KINDS: Final[dict[str, Any]] = {
    "str": str,
    "State": str,
    "int": int,
    "float": int | float,
    "list": list,
    "dict": dict,
    "Mapping": dict,
}
_KEY: Final = re.compile("[0-9a-f]{32}")


def write_content(path: Path, content: StudyFile | RunFile) -> None:
    """Write a JSON file with its digest."""
    plain = dict(vars(content))
    if isinstance(content, StudyFile):
        plain["trials"] = list(map(vars, content.trials))
    _write(path, json.dumps({**plain, "digest": _digest_of(plain)}), durable=isinstance(content, StudyFile))


def read_study(path: Path) -> StudyFile:
    """Return the content of the file of an experiment."""
    plain = _read(path)
    if plain.get("format") != FORMAT:
        theirs = f"its format is {plain.get('format')!r}; this version of clustermodel reads {FORMAT!r}"
        raise SpecificationError(f"{path.parent}: {theirs}")
    study: StudyFile = _checked(path, StudyFile, plain)
    trials: list[Entry] = [_checked(path, Entry, entry) for entry in study.trials]
    if any(len(entry.point) != len(study.factors) for entry in trials):
        raise _damaged(path, "a trial lacks a label of a factor")
    return replace(study, trials=trials)


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a file whose digest is right, without the digest."""
    if not path.is_file():  # reading a pipe would block
        raise _damaged(path, "it is no file")
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        if isinstance(plain, dict) and plain.pop("digest", None) == _digest_of(plain):
            return plain
    except (OSError, ValueError, RecursionError) as problem:
        raise _damaged(path, getattr(problem, "strerror", None) or "not as it was written") from None
    raise _damaged(path, "not as it was written")


def _checked(path: Path, kind: Any, plain: Any) -> Any:
    """Return the object of which a table of JSON has the fields, after a check of what they are."""
    values = {part.name: plain.get(part.name) if isinstance(plain, dict) else None for part in fields(kind)}
    for part in fields(kind):
        value, declared = values[part.name], _KINDS.get(str(part.type).partition("[")[0], object)
        if not isinstance(value, declared) or (part.name == "key" and not _KEY.fullmatch(str(value))):
            raise _damaged(path, f"{part.name}: {quoted(value)} is not allowed")
    return kind(**values)


def _write(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    try:
        if path.exists() and not path.is_file():  # writing a pipe would wait for a reader
            path.unlink()
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    write_file(path, content, durable=durable)


def _damaged(path: Path, what: str) -> SpecificationError:
    return SpecificationError(f"{path}: damaged: {what}")


def _digest_of(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(plain).encode("utf-8", "surrogatepass")).hexdigest()


class Store:
    """The results of one experiment.  :meth:`create` opens it for writing, :meth:`read` for reading.

    ``listings`` are the files of the experiment, by name, with the trials of this store; the first is written.
    """

    def __init__(self, directory: Path, listings: Mapping[str, StudyFile]) -> None:
        self.directory = directory
        self._listings = dict(listings)
        self._name = next(iter(listings))
        self._runs: dict[str, RunFile | str | None] = {}  # what is wrong with a damaged run; None: there is none
        self._versions: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}  # few, of all runs
        self._places: dict[tuple[str, ...], dict[str, int]] = {}  # of runs with the same numbers, by their names

    @classmethod
    def create(
        cls, directory: str | os.PathLike[str], design: Design[Any], *, shard: Shard | None = None, version: str = ""
    ) -> Self:
        """Open an experiment's directory to add runs, those of a shard or all; one of another experiment is refused."""
        directory = Path(directory)
        name = STUDY_FILE if shard is None else f"study-{shard[0]}-of-{shard[1]}.json"
        study = StudyFile(
            study=design.name, kind=type(design).__name__, version=version, seed=design.seed, warm_up_s=design.warm_up_s,
            factors=list(design.levels.names), shown=list(design.shown), text=design.text,
        )  # fmt: skip
        for other in _listings_in(directory):
            of_shard = _OF_SHARD.fullmatch(other)
            if shard is not None and of_shard is not None and int(of_shard[2]) != shard[1]:
                use = "use the same number, or another directory"
                raise SpecificationError(f"{directory}: it has shards of {of_shard[2]}, not of {shard[1]}; {use}")
            try:
                known = read_study(directory / other)
            except SpecificationError as problem:
                mend = "; delete it, and the same command goes on with the runs that are complete"
                raise SpecificationError(f"{problem}{mend if ': damaged: ' in str(problem) else ''}") from None
            for fact in ("study", "seed"):
                ours, theirs = str(getattr(study, fact)), str(getattr(known, fact))
                if ours != theirs:
                    raise SpecificationError(f"{directory}: it holds the {fact} {theirs!r}, not {ours!r}; give another --out")
        for folder in ("", RUNS, *TABLES):
            make_folder(directory / folder)
        if shard is None:  # partial files of a stopped experiment; a task of a job array would take them from the others
            for folder in ("", EXHIBITS, RUNS, *ALL_TABLES):
                for path in (directory / folder).glob(f".*{PART}"):
                    if _PARTIAL.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                        path.unlink(missing_ok=True)
        if not _is_there(directory / name):
            write_content(directory / name, study)
        return cls(directory, {name: study})

    @classmethod
    @contextmanager
    def read(cls, directory: str | os.PathLike[str]) -> Iterator[Self]:
        """Open an experiment's directory for reading, with the results of all shards, even while a study writes them.

        Damaged runs are left out; :meth:`damaged` names them.  A directory without an experiment, with a damaged file of one,
        or with shards of several experiments, or versions of one, is a ``SpecificationError``.
        """
        directory = Path(directory)
        listings = {name: read_study(directory / name) for name in _listings_in(directory)}
        if not listings:
            raise SpecificationError(f"{directory}: there is no study here (no {STUDY_FILE})")
        first_name, first = next(iter(listings.items()))
        for name, other in listings.items():
            for fact in ("study", "seed", "warm_up_s"):
                ours, theirs = getattr(first, fact), getattr(other, fact)
                if ours != theirs:
                    there = f"in {directory / first_name} it is {ours!r}"
                    raise SpecificationError(f"{directory / name}: its {fact} is {theirs!r}, {there}")
            if other.version != first.version:
                raise SpecificationError(
                    f"{directory / name}: its runs are of another version of the study than those in {directory / first_name}; "
                    "run the same sweep there again, or delete the older one"
                )
        yield cls(directory, listings)

    @property
    def study(self) -> StudyFile:
        """The facts about the experiment; its trials may be those of one shard."""
        return self._listings[self._name]

    def entries(self) -> list[Entry]:
        """Return the trials of all shards, in the order of the experiment; damaged and missing runs included."""
        entries = {(*entry.point, entry.replication): entry for listing in self._listings.values() for entry in listing.trials}
        return sorted(entries.values(), key=lambda entry: entry.order)

    def run(self, key: str) -> RunFile | None:
        """Return the file of a run, ``None`` if it is missing or damaged."""
        if key not in self._runs:
            found = self._run_in(self.directory / RUNS / f"{key}.json")
            self._runs[key] = self._small(found) if isinstance(found, RunFile) else found
        run = self._runs[key]
        return run if isinstance(run, RunFile) else None

    def _small(self, run: RunFile) -> RunFile:
        """Return a run that takes less memory, of which a study keeps thousands."""
        names = tuple(run.measured)
        places = self._places.setdefault(names, dict(zip(names, range(len(names)), strict=True)))
        return replace(run, measured=_Numbers(places, run.measured.values()))

    def _run_in(self, path: Path) -> RunFile | str | None:
        if not os.path.lexists(path):
            return None
        try:
            run: RunFile = _checked(path, RunFile, _read(path))
            if run.key != path.stem:
                raise _damaged(path, "it is not the file of this run")
        except SpecificationError as problem:
            return f"{RUNS}/{path.name}: {str(problem).partition(': damaged: ')[2]}"
        for table, digest in run.files.items() if run.state == "done" else ():
            file = self._path(table, run.key)
            try:
                if file.exists() and not file.is_file():
                    return f"{table}/{file.name}: it is no file"
                content = file.read_bytes()
            except OSError as problem:
                return f"{table}/{file.name}: {problem.strerror or problem}"
            if hashlib.sha256(content).hexdigest() != digest:
                return f"{table}/{file.name}: not as it was written ({len(content):,} bytes)"
        return run

    def _all_runs(self) -> list[RunFile]:
        """Return all undamaged runs of the directory, those that the experiment no longer has too."""
        keys = sorted(path.stem for path in (self.directory / RUNS).glob("*.json"))
        return [run for key in keys if (run := self.run(key)) is not None]

    def damaged(self) -> list[tuple[str, str]]:
        """Return the keys of damaged runs, and the damage of each."""
        self._all_runs()
        return sorted((key, run) for key, run in self._runs.items() if isinstance(run, str))

    def missing_shards(self) -> list[str]:
        """Return the shards that have not been started, while others have, as ``"I/N"``; none beside a whole experiment."""
        shards = {(int(match[1]), int(match[2])) for match in map(_OF_SHARD.fullmatch, self._listings) if match is not None}
        if len(shards) < len(self._listings):
            return []
        counts = {count for _, count in shards}
        return [f"{number}/{count}" for count in counts for number in range(1, count + 1) if (number, count) not in shards]

    def enter(self, design: Design[Any], runs: Iterable[Run]) -> None:
        """Make the trials of the experiment those of ``runs``; runs that it had before keep their results."""
        entries = [
            Entry(
                point=list(run.trial.point),
                replication=run.trial.replication,
                order=list(design.order_of(run.trial)),
                key=run.key,
                about=dict(run.about),
                tables=list(design.tables_of(run.trial, history=run.history)),
            )
            for run in sorted(runs, key=lambda run: design.order_of(run.trial))
        ]
        path = self.directory / self._name
        self._listings[self._name] = study = replace(self.study, trials=entries)
        if not _is_there(path) or read_study(path) != study:
            write_content(path, study)
        if self._name == STUDY_FILE:  # it has what the lists of shards have
            for other in _listings_in(self.directory)[1:]:
                (self.directory / other).unlink(missing_ok=True)

    def missing(self) -> dict[str, str]:
        """Return the keys of the runs still to do, with the damage of those that are damaged."""
        missing = {}
        for entry in self.study.trials:
            run = self.run(entry.key)
            if run is None or run.state != "done" or not set(entry.tables) <= run.files.keys():
                missing[entry.key] = what if isinstance(what := self._runs[entry.key], str) else ""
        return missing

    def keep(self, run: Run, outcome: Outcome) -> None:
        """Write the tables and numbers of a run, or its error; OutputError if they cannot be written."""
        for table, content in outcome.tables.items():
            if table not in TABLES:
                make_folder(self.directory / table)
            _write(self._path(table, run.key), content)
        kept = RunFile(
            key=run.key,
            state="failed" if outcome.error else "done",
            factors=self.factors_of(run.trial),
            specification=run.specification,
            jobs=run.jobs,
            sources=list(run.sources),
            measured=outcome.measured,
            error=outcome.error.encode("utf-8", "backslashreplace").decode(),
            seconds=outcome.seconds,
            versions=self._versions.setdefault(tuple(outcome.versions.items()), dict(outcome.versions)),
            files={table: hashlib.sha256(content).hexdigest() for table, content in outcome.tables.items()},
        )
        write_content(self.directory / RUNS / f"{run.key}.json", kept)
        self._runs[run.key] = self._small(kept)

    def states(self) -> dict[str, int]:
        """Return the number of the experiment's trials in each state."""
        runs = [self.run(entry.key) for entry in self.entries()]
        states = [run.state if run is not None else "pending" for run in runs]
        return {state: states.count(state) for state in get_args(State)}

    def table(self) -> StudyTable:
        """Return the table of the finished trials."""
        return StudyTable(self._rows(), self.study.factors, self.study.study, self.failures(), self.study.shown)

    def _rows(self) -> list[dict[str, Any]]:
        return [_row(run, self.factors_of(entry), entry.about) for entry, run in self._trials("done")]

    def _trials(self, state: State) -> list[tuple[Entry, RunFile]]:
        runs = [(entry, self.run(entry.key)) for entry in self.entries()]
        return [(entry, run) for entry, run in runs if run is not None and run.state == state]

    def results(self, *, earlier: bool = False) -> pd.DataFrame:
        """Return the tidy table: a row for each finished trial, in the order of the experiment.

        With ``earlier`` it includes runs that the experiment had before it was changed.
        """
        import pandas as pd

        before = self.earlier() if earlier else []
        return pd.DataFrame([*self._rows(), *(_row(run, run.factors, {}) for run in before)])

    def earlier(self) -> list[RunFile]:
        """Return the files of finished runs that the experiment no longer has."""
        known = {entry.key for entry in self.entries()}
        return [run for run in self._all_runs() if run.state == "done" and run.key not in known]

    def failures(self) -> list[tuple[str, str]]:
        """Return the factors and the error of each failed trial of the experiment."""
        return [(describe(self.factors_of(entry)), run.error) for entry, run in self._trials("failed")]

    def factors_of(self, trial: Entry | Trial) -> dict[str, Label]:
        """Return the labels of a trial's levels by factor, and its replication."""
        return {**dict(zip(self.study.factors, trial.point, strict=True)), "replication": trial.replication}

    def verify(self) -> list[str]:
        """Return a line for each deviation from what was written, with keys and digests recomputed."""
        problems = [f"{key}: {what}" for key, what in self.damaged()]
        wrong = [run.key for run in self._all_runs() if key_of(run.specification) != run.key]
        problems += [f"{key}: its key is not that of its specification" for key in wrong]
        files = sorted(path for table in ALL_TABLES for path in (self.directory / table).glob("*.parquet"))
        strays = [file for file in files if self._runs.get(file.stem) is None]
        return problems + [f"{file.parent.name}/{file.name}: belongs to no run of this study" for file in strays]

    def number_of_files(self) -> tuple[int, int]:
        """Return the numbers of undamaged runs and of their tables."""
        runs = self._all_runs()
        return len(runs), sum(len(run.files) for run in runs)

    def records(self, key: str) -> pd.DataFrame:
        """Return the job table of a run, ``Result.jobs``; a run without one, or a damaged one, is a ``SpecificationError``."""
        return self._table(RECORDS, key)

    def states_over_time(self, key: str) -> pd.DataFrame:
        """Return the state of the machine after each scheduling event of a run, ``Result.states``; see :meth:`records`."""
        return self._table(STATES_OVER_TIME, key)

    def placements(self, key: str) -> pd.DataFrame:
        """Return the nodes of each gang over time, ``Result.placements``: with time sharing, of a run that kept its history."""
        return self._table(PLACEMENTS, key)

    def recorded(self, key: str) -> pd.DataFrame:
        """Return the recorded placements of the jobs of a run, ``Workload.recorded_placements``, if its workload has them."""
        return self._table(RECORDED, key)

    def has(self, table: str, key: str) -> bool:
        """Return whether a table of a run was kept: ``"records"``, ``"states"``, ``"placements"`` or ``"recorded"``."""
        run = self.run(key)
        return run is not None and table in run.files

    def _table(self, table: str, key: str) -> pd.DataFrame:
        import pandas as pd

        path = self._path(table, key)
        if not path.is_file():
            raise SpecificationError(f"run: {key!r} has no {table} in {self.directory}")
        try:
            return pd.read_parquet(io.BytesIO(path.read_bytes()))
        except Exception as problem:  # of pyarrow and of pandas: any, where a file has only the form of a table
            raise _damaged(path, " ".join(str(problem).split())) from None

    def _path(self, table: str, key: str) -> Path:
        return self.directory / table / f"{key}.parquet"


def number_of_runs(directory: Path) -> int:
    """Return the number of files of runs in an experiment's directory, damaged ones included."""
    folder = directory / RUNS
    return len(list(folder.glob("*.json"))) if os.path.isdir(folder) else 0  # noqa: PTH112  false for a name that is too long


def _is_there(path: Path) -> bool:
    """Return whether a file exists; a name that is too long for any file does not."""
    return os.path.isfile(path)  # noqa: PTH113  Path.is_file raises an error for such a name


def _listings_in(directory: Path) -> list[str]:
    """Return the names of the files that list trials: that of the whole experiment, and those of shards by their numbers."""
    whole = [STUDY_FILE] if _is_there(directory / STUDY_FILE) else []
    try:
        shards = [match for path in directory.iterdir() if (match := _OF_SHARD.fullmatch(path.name)) and _is_there(path)]
    except OSError:
        shards = []
    return [*whole, *(match[0] for match in sorted(shards, key=lambda match: (int(match[2]), int(match[1]))))]


def _row(run: RunFile, factors: Mapping[str, Label], about: Mapping[str, Label]) -> dict[str, Any]:
    """Return a row of the table: a factor wins over a number of the same name."""
    row = {**run.measured, **about, "run": run.key, **factors}
    names = dict.fromkeys(("run", *factors, *about, *run.measured))
    return {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value := row[name], str) else value
        for name in names
    }
