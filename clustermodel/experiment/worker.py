"""A worker of a sweep: it makes the study once, runs its scenarios, and verifies the key of each run."""

from __future__ import annotations

import io
import json
import platform
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustermodel.experiment.result import Result
from clustermodel.experiment.run_files import PLACEMENTS, RECORDS, STATES_OVER_TIME
from clustermodel.experiment.run_key import Digested
from clustermodel.experiment.script import load_study, read_script
from clustermodel.experiment.store import Finished
from clustermodel.experiment.study import DigestsOfJobs, Study
from clustermodel.experiment.user_code import as_failure, deadline
from clustermodel.workload.table import JobSource, Workload

_KEPT_STUDIES: Final = 4


class Origin(NamedTuple):
    """The source from which a worker makes the study: a script, or the study itself."""

    token: str
    """Identifies the sweep: a worker makes the study again for each sweep, since files may have changed."""
    script: str | None
    text: str | None
    study: Study | None
    folder: str
    """Working directory of the process that started the sweep."""

    @classmethod
    def of(cls, source: Study | Path) -> Origin:
        """Return the origin of a study.

        Raises:
            SpecificationError: the script cannot be read.
        """
        token = secrets.token_hex(8)
        if isinstance(source, Study):
            return cls(token, None, None, source, str(Path.cwd()))
        return cls(token, str(source), read_script(source), None, str(Path.cwd()))

    def open(self) -> Study:
        """Make the study and return it.

        Raises:
            SpecificationError: the script fails, or defines no study.
        """
        if self.study is not None:
            return self.study
        assert self.script is not None
        assert self.text is not None
        return load_study(Path(self.script), self.text)


@dataclass
class Opened:
    """A study in the process that runs it, with the workloads made so far and their digests."""

    study: Study
    made: dict[tuple[str, int], JobSource] = field(default_factory=dict)
    digests: DigestsOfJobs = field(default_factory=DigestsOfJobs)


_opened: dict[str, Opened] = {}


def opened(origin: Origin) -> Opened:
    """Return the study of ``origin``, made once per process, with the identities that its policies have before any run.

    Raises:
        SpecificationError: the script fails or defines no study; or a policy has no source.
    """
    if origin.token not in _opened:
        study = origin.open()
        _ = study.identities
        while len(_opened) >= _KEPT_STUDIES:
            del _opened[next(iter(_opened))]
        _opened[origin.token] = Opened(study)
    return _opened[origin.token]


def forget(origin: Origin) -> None:
    """Drop the study of ``origin`` and its workloads."""
    _opened.pop(origin.token, None)


class Failed(NamedTuple):
    """The outcome of a failed run."""

    error: str
    """The whole error; its last line is a summary."""


class Differs(NamedTuple):
    """The outcome of a run with another key than the study has at this position."""

    specification: Mapping[str, Any]
    jobs: int


Outcome = Finished | Failed | Differs


def execute(origin: Origin, position: int, key: str, timeout_s: float | None = None) -> Outcome:
    """Run one scenario of a study in this process.

    Args:
        origin: of the study.
        position: of the run, from 0 on.
        key: of the run in the process that started the sweep.
        timeout_s: longest wall time of the run, seconds; ``None`` for no limit.
    """
    try:
        mine = opened(origin)
        with deadline(timeout_s):
            return _run(mine, position, key)
    except BaseException as problem:  # of the user's code
        return Failed(as_failure(problem))


def _run(mine: Opened, position: int, key: str) -> Outcome:
    scenario = mine.study.scenario(position, mine.made)
    tables = all(isinstance(source, Workload) for source in scenario.sources)
    if tables:  # workloads in memory: their jobs are known before the run
        run = mine.study.identify(position, scenario, [mine.digests.of(source) for source in scenario.sources])
        if run.key != key:
            return Differs(run.specification, run.jobs)
    else:
        digested = [Digested(source) for source in scenario.sources]
        scenario = replace(scenario, workload=digested)
    began = time.perf_counter()
    result = scenario.run()
    seconds = time.perf_counter() - began
    if not tables:
        run = mine.study.identify(position, scenario, [source.digest for source in digested if source.digest is not None])
        if run.key != key:
            return Differs(run.specification, run.jobs)
    summary = json.dumps(result.summary(warm_up_s=mine.study.warm_up_s).as_dict(), allow_nan=False)
    return Finished(summary, _tables(result), seconds, versions())


def _tables(result: Result) -> dict[str, bytes]:
    tables = {RECORDS: result.jobs, STATES_OVER_TIME: result.states}
    if result.slices is None or result.scenario.history:
        tables[PLACEMENTS] = result.placements
    files = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[name] = buffer.getvalue()
    return files


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that make the numbers."""
    packages = ("clustermodel", "simpy", "numpy", "scipy", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
