"""A worker of an experiment: it makes the experiment once, runs its trials, and verifies the key of each run."""

from __future__ import annotations

import io
import platform
import secrets
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.experiment.design import Design, Opened
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.result import Result
from clustermodel.experiment.run_key import PLACEMENTS, RECORDS, STATES_OVER_TIME, Identities, Sources, digest_of_jobs
from clustermodel.experiment.scenario import NOTHING_PLAYED
from clustermodel.experiment.user_code import as_failure, deadline
from clustermodel.measure.event_log import SHARE_OF
from clustermodel.policies.registry import policy_names, register_policy, registered_policies
from clustermodel.workload.table import Workload

_KEPT_EXPERIMENTS: Final = 4

Load = Callable[[Path, str, Mapping[str, str]], Design]
"""Makes an experiment from a script: its path, its text and the values of its parameters."""


class Origin(NamedTuple):
    """The source from which a worker makes the experiment: a script, or the experiment itself."""

    token: str
    """Identifies the execution: a worker makes the experiment again for each, since files may have changed."""
    script: str | None
    text: str | None
    settings: Mapping[str, str]
    """Values of the script's parameters, as texts."""
    load: Load | None
    """Makes the experiment from the script."""
    design: Design | None
    pickled: bytes | None
    """The experiment and the user's registered policies as cloudpickle writes them, for other processes."""
    folder: str
    """Working directory of the process that started the experiment."""

    @classmethod
    def of_script(cls, script: Path, text: str, settings: Mapping[str, str], load: Load) -> Origin:
        """Return the origin of an experiment that a script defines; workers run the script."""
        return cls(secrets.token_hex(8), str(script), text, dict(settings), load, None, None, str(Path.cwd()))

    @classmethod
    def of_design(cls, design: Design) -> Origin:
        """Return the origin of an experiment that exists in this process."""
        return cls(secrets.token_hex(8), None, None, {}, None, design, None, str(Path.cwd()))

    def sent(self) -> Origin:
        """Return the origin in a form that other processes can receive.

        Raises:
            SpecificationError: the experiment has an object that cannot be sent.
        """
        if self.design is None:
            return self
        import cloudpickle  # noqa: PLC0415  an extra

        try:
            pickled = cloudpickle.dumps((self.design.for_workers(), registered_policies()))
        except Exception as problem:  # of the user's objects
            raise SpecificationError(
                f"study {self.design.name}: it cannot be sent to worker processes ({problem}); "
                "run its script with clustermodel sweep, or give workers=1"
            ) from None
        return self._replace(design=None, pickled=pickled)

    def open(self) -> Design:
        """Make the experiment and return it.

        Raises:
            SpecificationError: the script fails, or defines no experiment.
        """
        if self.design is not None:
            return self.design
        if self.pickled is not None:
            import cloudpickle  # noqa: PLC0415  an extra

            design: Design
            design, registered = cloudpickle.loads(self.pickled)
            for name in registered.keys() - set(policy_names()):
                register_policy(name, registered[name])
            return design
        assert self.script is not None
        assert self.text is not None
        assert self.load is not None
        return self.load(Path(self.script), self.text, self.settings)


_opened: dict[str, Opened] = {}


def opened(origin: Origin) -> Opened:
    """Return the experiment of ``origin``, made once per process, with the identities of its measures before any run.

    Raises:
        SpecificationError: the script fails or defines no experiment; or a measure has no source.
    """
    if origin.token not in _opened:
        design = origin.open()
        sources = Sources(origin.script or "", origin.text or "", origin.settings)
        made = Opened(design, sent=origin.pickled is not None, identities=Identities(sources))
        _ = made.measures
        while len(_opened) >= _KEPT_EXPERIMENTS:
            del _opened[next(iter(_opened))]
        _opened[origin.token] = made
    return _opened[origin.token]


def forget(origin: Origin) -> None:
    """Drop the experiment of ``origin`` and what is known of its jobs."""
    _opened.pop(origin.token, None)


class Finished(NamedTuple):
    """The outcome of a successful run."""

    measured: Mapping[str, float | None]
    """The numbers of the run by name: ``Design.numbers_of``."""
    tables: Mapping[str, bytes]
    """Parquet files by names of tables; none for replications whose tables are not kept."""
    seconds: float
    """Wall time of the run."""
    versions: Mapping[str, str]
    """Versions of Python and of the packages that made the numbers."""
    nothing_played: bool = False
    """Whether the slow mode was requested although no gang shared its nodes in time."""


class Failed(NamedTuple):
    """The outcome of a failed run."""

    error: str
    """The whole error; its last line is a summary."""


class Differs(NamedTuple):
    """The outcome of a run with another key than the trial has in the process that started the experiment."""

    specification: Mapping[str, Any]
    jobs: int


Outcome = Finished | Failed | Differs


class Task(NamedTuple):
    """A run to execute."""

    trial: Trial
    key: str
    """Of the run in the process that started the experiment."""
    code: Mapping[str, Any]
    """Identities of policy, speedup model and measures in that process."""
    tables: Sequence[str]
    """The tables that the run keeps."""


def execute(origin: Origin, task: Task, timeout_s: float | None = None) -> Outcome:
    """Run one trial of an experiment in this process.

    Args:
        origin: of the experiment.
        task: the run.
        timeout_s: longest wall time of the run, seconds; ``None`` for no limit.
    """
    try:
        experiment = opened(origin)
        _import_packages()
        with deadline(timeout_s):
            return _run(experiment, task)
    except BaseException as problem:  # of the user's code
        return Failed(as_failure(problem))


def _import_packages() -> None:
    """Import what takes long to import, so that it does not count as time of the first run."""
    import pandas as pd  # noqa: F401
    import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401, PLC0415


def _run(experiment: Opened, task: Task) -> Outcome:
    scenario = experiment.design.scenario_of(task.trial)
    if scenario is None:
        raise SpecificationError("Study.scenario: the function returned a scenario before, and None now; it must be repeatable")
    digests = [experiment.digests.of(source) for source in scenario.sources]
    run = experiment.identify(task.trial, scenario, digests, task.code)
    if run.key != task.key:
        return Differs(run.specification, run.jobs)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOTHING_PLAYED)  # one note of the experiment covers all runs
        result = scenario.run()
    seconds = time.perf_counter() - began
    if not all(isinstance(source, Workload) for source in scenario.sources):  # their files may have changed meanwhile
        run = experiment.identify(task.trial, scenario, [digest_of_jobs(source) for source in scenario.sources], task.code)
        if run.key != task.key:
            return Differs(run.specification, run.jobs)
    tables = _tables(result, task.tables, run.specification["machine"])
    return Finished(experiment.design.numbers_of(result), tables, seconds, versions(), result.nothing_played)


def _tables(result: Result, wanted: Sequence[str], machine: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the wanted tables as Parquet files; placements too, where they are known."""
    if not wanted:
        return {}
    of_others = [share for part, share in SHARE_OF.items() if part not in machine]
    tables = {RECORDS: result.jobs, STATES_OVER_TIME: result.states.drop(columns=of_others, errors="ignore")}
    if result.slices is None or result.scenario.history:
        tables[PLACEMENTS] = result.placements
    files = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[name] = buffer.getvalue()
    return files


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that make the numbers."""
    packages = ("clustermodel", "simpy", "numpy", "scipy", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
