"""A worker of an experiment: it makes the experiment once, runs its trials, and verifies the key of each run."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from multiprocessing import connection
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from clustermodel.errors import SpecificationError
from clustermodel.experiment.design import PLACEMENTS, RECORDED, RECORDS, STATES_OVER_TIME, Design
from clustermodel.experiment.fingerprint import Sources
from clustermodel.experiment.leftovers import end_at_once, end_forks_with_this_process, end_without_waiting
from clustermodel.experiment.result import Result
from clustermodel.experiment.run_key import JobsDigest, Opened, Run, difference, digest_of_jobs
from clustermodel.experiment.scenario import NOTHING_PLAYED
from clustermodel.experiment.user_code import as_failure, deadline
from clustermodel.measure.columns import parquet
from clustermodel.measure.timeline import SHARE_OF
from clustermodel.policies.registry import policy_names, register_policy, registered_policies
from clustermodel.workload.table import JobSource, Workload

_LAST: Final = -1_000  # priority of what a process does when it ends; multiprocessing's least is -100


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """The source from which every process makes the experiment of one execution: the experiment itself, or a script."""

    design: Design[Any] | None = None
    pickled: bytes = b""  # the experiment and the user's registered policies, for other processes
    script: str = ""
    text: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)  # values of the script's parameters, as texts
    load: Callable[[Path, str, Mapping[str, str]], Design[Any]] | None = None  # makes the experiment from these three
    folder: str = field(default_factory=lambda: str(Path.cwd()))  # of the process that started the experiment

    def sent(self) -> Origin:
        """Return the origin in a form that other processes can receive."""
        if self.design is None:
            return self
        import cloudpickle  # noqa: PLC0415  an extra

        try:
            pickled = cloudpickle.dumps((replace(self.design, tables={}, figures={}), registered_policies()))
        except Exception as problem:  # of the user's objects
            raise SpecificationError(
                f"study {self.design.name}: it cannot be sent to worker processes ({problem}); "
                "run its script with clustermodel sweep, or give workers=1"
            ) from None
        return replace(self, design=None, pickled=pickled)

    def open(self) -> Design[Any]:
        """Make the experiment and return it."""
        if self.design is not None:
            return self.design
        if self.load is not None:
            return self.load(Path(self.script), self.text, self.settings)
        import cloudpickle  # noqa: PLC0415  an extra

        design: Design[Any]
        design, registered = cloudpickle.loads(self.pickled)
        for name in registered.keys() - set(policy_names()):
            register_policy(name, registered[name])
        return design


# Of each execution; a worker makes the experiment again for the next one, since files may have changed.
_opened: WeakKeyDictionary[Origin, Opened] = WeakKeyDictionary()


def opened(origin: Origin) -> Opened:
    """Return the experiment of ``origin``, made once per process, with the identities of its measures before any run."""
    if origin not in _opened:
        design = origin.open()  # before its sources, which its script imports
        made = Opened(design, sent=bool(origin.pickled), sources=Sources(origin.script, origin.text, origin.settings))
        _ = made.measures
        _opened[origin] = made
    return _opened[origin]


class Outcome(NamedTuple):
    """What a run gave: numbers and tables, or an error."""

    measured: Mapping[str, float | None] = {}
    tables: Mapping[str, bytes] = {}  # Parquet files by names of tables; none for replications whose tables are not kept
    seconds: float = 0.0  # wall time of the run
    preparing_s: float = 0.0  # wall time before it: of making the scenario with its jobs, and of verifying the key
    versions: Mapping[str, str] = {}  # of Python and of the packages that made the numbers
    nothing_played: bool = False  # the slow mode was requested although no gang shared its nodes in time
    error: str = ""  # the whole error of a run that failed; its last line is a summary


def execute(origin: Origin, run: Run, timeout_s: float | None = None) -> Outcome:
    """Execute a run in this process; one that takes longer than ``timeout_s`` fails."""
    try:
        experiment = opened(origin)
        if experiment.design.tables_of(run.trial, history=run.history):
            import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401, PLC0415  in no run's time

        with deadline(timeout_s):
            return _execute(experiment, run)
    except BaseException as problem:  # of the user's code
        return Outcome(error=as_failure(problem))


def _execute(experiment: Opened, run: Run) -> Outcome:
    preparing = time.perf_counter()
    scenario = experiment.design.scenario_of(run.trial)
    if scenario is None:
        raise SpecificationError("Study.scenario: the function returned a scenario before, and None now; it must be repeatable")

    def differs(digest_of: Callable[[JobSource], JobsDigest]) -> str:
        digests = [digest_of(source) for source in scenario.sources]
        return difference(run, experiment.identify(run.trial, scenario, digests, run))

    if error := differs(experiment.jobs_of):
        return Outcome(error=error)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOTHING_PLAYED)  # one note of the experiment covers all runs
        result = scenario.run()
    seconds = time.perf_counter() - began
    in_memory = all(isinstance(source, Workload) for source in scenario.sources)
    if not in_memory and (error := differs(digest_of_jobs)):
        return Outcome(error=error)  # the file of a stream has changed meanwhile
    wanted = experiment.design.tables_of(run.trial, history=run.history)
    tables = _tables(result, run.specification["machine"]) if wanted else {}
    numbers = experiment.design.numbers_of(result)
    return Outcome(numbers, tables, seconds, began - preparing, versions(), result.nothing_played)


_received: list[Origin] = []  # the origin of the experiment in a worker process


def prepare_process(origin: Origin) -> None:
    """Make this process a worker of an experiment, which ends with the process that started it."""

    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            connection.wait([parent.sentinel])
            os._exit(1)

    _received[:] = [origin]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # is for the parent process
    end_forks_with_this_process()
    Finalize(None, end_without_waiting, args=(0,), exitpriority=0)  # before Python waits for them
    Finalize(None, end_at_once, args=(0,), exitpriority=_LAST)
    threading.Thread(target=end_with_parent, daemon=True).start()
    with suppress(BaseException):
        os.chdir(origin.folder)  # the script may have changed it in the parent process
    with suppress(BaseException):  # if it cannot be made, its first run reports the error
        opened(origin)


def execute_received(run: Run, timeout_s: float | None) -> Outcome:
    """Execute a run of the experiment that this process has received."""
    return execute(_received[0], run, timeout_s)


def _tables(result: Result, machine: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the tables of a run as Parquet files; placements too, where they are known."""
    of_others = {share for part, share in SHARE_OF.items() if part not in machine}
    tables: dict[str, Any] = {
        RECORDS: result.columns("jobs"),
        STATES_OVER_TIME: {name: column for name, column in result.columns("states").items() if name not in of_others},
    }
    if result.slices is None or result.scenario.history:
        tables[PLACEMENTS] = result.columns("placements")
    source = result.scenario.sources[0]
    if len(result.scenario.sources) == 1 and isinstance(source, Workload) and source.has_recorded_placements:
        tables[RECORDED] = source.recorded_placements
    return {name: parquet(table) for name, table in tables.items()}


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that make the numbers."""
    packages = ("clustermodel", "simpy", "numpy", "scipy", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
