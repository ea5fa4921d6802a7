"""One folder of a store: the directory of an experiment, or the folder of a shard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.experiment.design import Design
from clustermodel.experiment.run_files import TABLES, RunFiles
from clustermodel.experiment.stored_files import (
    EXHIBITS,
    RUNS,
    STUDY_FILE,
    RunFile,
    StudyFile,
    read_run,
    read_study,
    write_content,
)
from clustermodel.output_files import PART

LOCK: Final = "study.lock"
_OWN_NAMES: Final = (STUDY_FILE, RUNS, LOCK, *TABLES)
"""Names of the store's files and folders in its directory."""
_PARTIAL: Final = re.compile(rf"\.[0-9a-f]{{16}}{re.escape(PART)}")
"""Names of partial files of this package."""
SHARD: Final = re.compile(r"shard-(\d+)-of-(\d+)")
"""Names of the folders of shards."""
Shard = tuple[int, int]
"""A part of the trials of an experiment: number, from 1 on, and how many parts there are."""


@dataclass
class Part:
    """The trials and the runs in one folder."""

    folder: Path
    study: StudyFile
    runs: dict[str, RunFile]
    """The undamaged runs by key."""
    damaged: dict[str, str]
    """What is wrong with each damaged run, by key."""

    @classmethod
    def read(cls, folder: Path) -> Part:
        """Return what a folder has.

        Raises:
            SpecificationError: the file of the experiment is damaged, or another version of clustermodel wrote it.
        """
        part = cls(folder, read_study(folder / STUDY_FILE), {}, {})
        files = RunFiles(folder)
        for path in sorted((folder / RUNS).glob("*.json")):
            try:
                run = read_run(path)
                what = files.damage(run.key, run.files) if run.state == "done" else None
            except SpecificationError as problem:
                run, what = None, f"{RUNS}/{path.name}: {str(problem).partition(': damaged: ')[2]}"
            if run is not None and what is None:
                part.runs[run.key] = run
            else:
                part.damaged[path.stem] = what or ""
        return part

    def write_study(self, study: StudyFile) -> None:
        """Change the file of the experiment.

        Raises:
            OutputError: it cannot be written.
        """
        write_content(self.folder / STUDY_FILE, study)
        self.study = study

    def write_run(self, run: RunFile) -> None:
        """Write the file of a run, after its tables.

        Raises:
            OutputError: it cannot be written.
        """
        write_content(self.folder / RUNS / f"{run.key}.json", run)
        self.runs[run.key] = run
        self.damaged.pop(run.key, None)


@contextmanager
def opened_for_writing(folder: Path, design: Design, version: str, *, lock: bool) -> Iterator[Part]:
    """Open a folder to add runs, and make it if need be.

    Args:
        folder: of the experiment, or of a shard.
        design: the experiment.
        version: of the experiment, if this is a shard.
        lock: let no other process write the folder meanwhile.

    Raises:
        SpecificationError: the folder holds another experiment, or its file is damaged.
        OutputError: the folder cannot be written, another process writes it, or a part of it is a symbolic link.
    """
    try:
        if not lock and folder.is_symlink():
            raise OutputError(f"{folder}: is a symbolic link; a shard must have a folder of its own")
        _refuse_links(folder)
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
        RunFiles(folder).make_folders()
    except OSError as problem:
        raise OutputError(f"{folder}: cannot be written: {problem.strerror or problem}") from None
    with _locked(folder) if lock else nullcontext():
        part = _claimed(folder, design, version)
        _delete_partial(folder)
        yield part


def is_there(path: Path) -> bool:
    """Return whether a file exists; a name that is too long for any file does not."""
    try:
        return path.is_file()
    except OSError:
        return False


def facts_of(design: Design, folder: Path, version: str) -> StudyFile:
    """Return the facts about an experiment, without trials.

    Args:
        design: the experiment.
        folder: the directory of the experiment, or that of a shard.
        version: of the experiment, if this is a shard.
    """
    is_shard = SHARD.fullmatch(folder.name) is not None
    return StudyFile(
        study=design.name,
        kind=type(design).__name__,
        seed=design.seed,
        warm_up_s=design.warm_up_s,
        factors=list(design.levels.names),
        shown=list(design.shown),
        text=design.text,
        shard=folder.name if is_shard else "",
        version=version if is_shard else "",
    )


def _claimed(folder: Path, design: Design, version: str) -> Part:
    """Return the part in a folder after a check that it is of this experiment; a new one has no trials."""
    mine = facts_of(design, folder, version)
    if not is_there(folder / STUDY_FILE):
        write_content(folder / STUDY_FILE, mine)
        return Part.read(folder)
    try:
        part = Part.read(folder)
    except SpecificationError as problem:
        if "damaged" not in str(problem):
            raise
        raise SpecificationError(
            f"{problem}; delete it, and the same command goes on with the runs that are complete"
        ) from None
    for name in ("study", "seed"):
        here, there = getattr(mine, name), getattr(part.study, name)
        if here != there:
            raise SpecificationError(f"{folder}: it holds the {name} {str(there)!r}, not {str(here)!r}; give another --out")
    return part


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise OutputError(f"{folder}: another sweep is writing there; wait for it, or stop it") from None
    except OSError as problem:
        raise OutputError(f"{folder}: cannot be written: {problem.strerror or problem}") from None
    try:
        yield
    finally:
        lock.release()


def _delete_partial(folder: Path) -> None:
    """Delete the partial files that a stopped experiment left behind."""
    RunFiles(folder).delete_partial()
    folders = [folder] if (folder / EXHIBITS).is_symlink() else [folder, folder / EXHIBITS]
    written = [path for where in folders for path in where.glob(f".*{PART}") if _PARTIAL.fullmatch(path.name)]
    for partial in [*(folder / RUNS).glob(f"*{PART}"), *written]:
        if partial.is_file() and not partial.is_symlink():
            partial.unlink()


def _refuse_links(folder: Path) -> None:
    """Refuse a store of which a part is a symbolic link: the store would write, lock or delete files elsewhere."""
    for name in _OWN_NAMES:
        if (folder / name).is_symlink():
            raise OutputError(f"{folder / name}: is a symbolic link; a study's directory must have its own {name}")
