"""The JSON files of a store: one for the experiment with its trials, one for each run.  Each has a digest of its own content.

A digest tells that a file is as somebody wrote it, not that this package did.  So the two readers here also check the type of
every value, and everything after them may rely on it.

Every file is written to a temporary name that is then changed, so that a reader sees the old file or the new one.  No file is
locked: a network file system will do.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from clustermodel.errors import SpecificationError, quoted, shown
from clustermodel.experiment.factors import RESERVED, Label, Trial
from clustermodel.experiment.run_files import TABLES, remove_pipe
from clustermodel.experiment.run_key import canonical
from clustermodel.output_files import write_file

FORMAT: Final = "4"
"""Version of the layout of a store."""
STUDY_FILE: Final = "study.json"
EXHIBITS: Final = "exhibits"
"""Folder of the tables and figures that an experiment shows."""
RUNS: Final = "runs"
"""Folder of the files of runs."""

_KEY: Final = re.compile("[0-9a-f]{32}")
_LARGEST: Final = 2**63 - 1

State = Literal["pending", "done", "failed"]
STATES: Final[tuple[State, ...]] = ("pending", "done", "failed")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A trial in the file of an experiment."""

    point: list[Label]
    replication: int
    order: list[float]
    """Sorts the trials of all shards in the order of the experiment."""
    key: str
    """Of the trial's run."""
    about: dict[str, Label]
    """Policy, workload, nodes and seed of the scenario."""
    tables: list[str]
    """The tables of the run that the experiment wants."""

    @property
    def trial(self) -> Trial:
        """The point and the replication."""
        return Trial(tuple(self.point), self.replication)


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """What the file of an experiment has: facts, and the trials so far."""

    format: str = FORMAT
    study: str
    """The name of the experiment."""
    kind: str
    """The class of the experiment."""
    seed: int
    warm_up_s: float
    factors: list[str]
    """The names of the factors."""
    shown: list[str]
    """The columns that tables and reports show first."""
    text: str = ""
    """The question and its answer, in Markdown."""
    trials: list[Entry] = field(default_factory=list)
    shard: str = ""
    """The name of the folder, if it is that of a shard."""
    version: str = ""
    """Of the experiment, if this is a shard: :attr:`~clustermodel.experiment.design.Design.version`."""


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What the file of a run has."""

    key: str
    state: State
    factors: dict[str, Label]
    """Levels of the first trial that asked for the run, for readers."""
    specification: dict[str, Any]
    """Everything that the run's numbers depend on."""
    jobs: int
    sources: list[str]
    """The origins of the job streams."""
    measured: dict[str, float | None] = field(default_factory=dict)
    """The numbers of a run that is done."""
    error: str = ""
    """Why a run failed."""
    seconds: float = 0.0
    """Wall time of the run."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of Python and of the packages that made the numbers."""
    files: dict[str, str] = field(default_factory=dict)
    """Digests of the run's tables, by their names."""


def write_content(path: Path, content: StudyFile | RunFile) -> None:
    """Write a file with its digest.

    Raises:
        OutputError: the file cannot be written.
    """
    plain = asdict(content)
    remove_pipe(path)
    write_file(path, json.dumps({**plain, "digest": _digest_of(plain)}), durable=True)


def read_study(path: Path) -> StudyFile:
    """Return the content of the file of an experiment.

    Raises:
        SpecificationError: another version of clustermodel wrote the file, or it is damaged.
    """
    plain = _read(path)
    if plain.get("format") != FORMAT:
        raise SpecificationError(
            f"{path.parent}: its format is {plain.get('format')!r}; this version of clustermodel reads {FORMAT!r}"
        )
    return _study(path, plain)


def _study(path: Path, plain: dict[str, Any]) -> StudyFile:
    """Return the content of a file of an experiment, after a check of every value."""
    _require_types(path, StudyFile, plain, "")
    trials = []
    for number, entry in enumerate(plain["trials"]):
        place = f"trials[{number}]."
        _require_types(path, Entry, entry, place)
        trials.append(Entry(**entry))
        _require(path, f"{place}point", entry["point"], "a label for each factor", len(entry["point"]) == len(plain["factors"]))
        _require(path, f"{place}replication", entry["replication"], "an integer >= 1", entry["replication"] >= 1)
        _require(path, f"{place}key", entry["key"], "32 hexadecimal digits", _KEY.fullmatch(entry["key"]))
        _require(path, f"{place}tables", entry["tables"], f"among {', '.join(TABLES)}", set(entry["tables"]) <= set(TABLES))
        about = entry["about"]
        known = {"policy": str | None, "workload": str | None, "nodes": int | None, "seed": int}
        sound = about.keys() == known.keys() and all(_fits(about[name], kind) for name, kind in known.items())
        _require(path, f"{place}about", about, "the policy, the workload, the nodes and the seed", sound)
    factors = plain["factors"]
    unique = len(set(factors)) == len(factors) and not set(factors) & set(RESERVED)
    _require(path, "factors", factors, "different names of factors", unique)
    _require(path, "warm_up_s", plain["warm_up_s"], "a number >= 0", plain["warm_up_s"] >= 0)
    return StudyFile(**{**plain, "trials": trials})


def _require_types(path: Path, kind: type, plain: object, place: str) -> None:
    """Refuse a table that lacks a field of a class, has another one, or a value of another type."""
    types = get_type_hints(kind)
    if not isinstance(plain, dict) or plain.keys() != types.keys():
        raise damaged_file(path, f"{place or 'it'}: it must have {', '.join(types)}")
    for name, one in types.items():
        words = "of the type " + (one.__name__ if type(one) is type else str(one).replace("typing.", ""))
        _require(path, f"{place}{name}", plain[name], words, _fits(plain[name], one))


def _require(path: Path, place: str, value: object, allowed: str, sound: object) -> None:
    if not sound:
        raise damaged_file(path, f"{shown(place)}: {quoted(value)} is not allowed; it must be {allowed}")


def _fits(value: object, kind: Any) -> bool:
    """Return whether a value of JSON has a type as a field declares it; numbers also fit 64 bits."""
    of, inner = get_origin(kind), get_args(kind)
    if of is list:
        return isinstance(value, list) and (inner[0] is Entry or all(_fits(one, inner[0]) for one in value))
    if of is dict:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if of is Literal:
        return isinstance(value, str) and value in inner
    if of is UnionType:
        return any(_fits(value, one) for one in inner)
    if kind is int or (kind is float and type(value) is int):
        return type(value) is int and -_LARGEST <= value <= _LARGEST
    return kind is Any or type(value) is kind


def read_run(path: Path) -> RunFile:
    """Return the content of the file of a run.

    Raises:
        SpecificationError: the file is damaged.
    """
    plain = _read(path)
    if set(plain) != {one.name for one in fields(RunFile)} or plain["key"] != path.stem:
        raise damaged_file(path, "it is not the file of this run")
    _require_types(path, RunFile, plain, "")
    _require(path, "files", plain["files"], f"among {', '.join(TABLES)}", set(plain["files"]) <= set(TABLES))
    _require(path, "jobs", plain["jobs"], "an integer >= 0", plain["jobs"] >= 0)
    _require(path, "seconds", plain["seconds"], "a number >= 0", plain["seconds"] >= 0)
    whole = plain["state"] != "done" or "policy" in plain["specification"]
    _require(path, "specification", plain["specification"], "a table with the policy", whole)
    replication = plain["factors"].get("replication")
    _require(path, "factors.replication", replication, "an integer >= 1", type(replication) is int and replication >= 1)
    return RunFile(**plain)


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a file whose digest is right, without the digest."""
    try:
        is_file = path.is_file()  # reading a pipe would block
        plain = json.loads(path.read_bytes()) if is_file else None
        sound = isinstance(plain, dict) and plain.pop("digest", None) == _digest_of(plain)
    except (OSError, ValueError, RecursionError) as problem:
        raise damaged_file(path, getattr(problem, "strerror", None) or "not as it was written") from None
    if not is_file:
        raise damaged_file(path, "it is no file")
    if not sound:
        raise damaged_file(path, "not as it was written")
    assert isinstance(plain, dict)
    return plain


def damaged_file(path: Path, what: str) -> SpecificationError:
    """Return the error of a damaged file."""
    return SpecificationError(f"{path}: damaged: {what}")


def _digest_of(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(plain).encode("utf-8", "surrogatepass")).hexdigest()
