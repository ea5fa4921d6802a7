"""What a worker does: it makes the study once, runs scenarios of it, and says by key what it has really run."""

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
    """From what a worker makes the study: a script, or the study itself."""

    token: str
    """Of one sweep: a worker that serves several makes the study anew for each, since files may have changed."""
    script: str | None
    text: str | None
    study: Study | None
    folder: str
    """Working directory in which the script was first run."""

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
        """Return the study.

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
    """A study in the process that runs it."""

    study: Study
    made: dict[tuple[str, int], JobSource] = field(default_factory=dict)
    digests: DigestsOfJobs = field(default_factory=DigestsOfJobs)


_opened: dict[str, Opened] = {}


def opened(origin: Origin) -> Opened:
    """Return the study of ``origin``, made once in each process, with the identities of its policies before any has run.

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
    """Drop the study of ``origin`` and the workloads that were made for it."""
    _opened.pop(origin.token, None)


class Failed(NamedTuple):
    """Why a run has failed: the last line tells it in short."""

    error: str


class Differs(NamedTuple):
    """A worker has, or would have, run something else than the study has at this position."""

    specification: Mapping[str, Any]
    jobs: int


Outcome = Finished | Failed | Differs


def execute(origin: Origin, position: int, key: str, timeout_s: float | None = None) -> Outcome:
    """Run one scenario of a study, in whatever process this is.

    Args:
        origin: of the study.
        position: of the run, from 0 on.
        key: of the run, as the process that started the study knows it.
        timeout_s: when to stop it, seconds; ``None`` is never.
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
    if tables:  # whose jobs are known before they run
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
    """Return the versions of everything that makes the numbers."""
    packages = ("clustermodel", "simpy", "numpy", "scipy", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
