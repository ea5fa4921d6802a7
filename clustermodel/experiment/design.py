"""The design of an experiment: factors, the scenario of each trial, measures; which trials are run follows from the results."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Final, Literal, Self, get_args

from clustermodel.errors import ClusterModelError, SpecificationError, did_you_mean, quoted, refused
from clustermodel.experiment import run_key
from clustermodel.experiment.factors import RESAMPLED, RESERVED, Factors, Label, Trial, plain, require_text
from clustermodel.experiment.result import Result
from clustermodel.experiment.run_key import DigestsOfJobs, Identities, JobsDigest, Run
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import as_failure, failure_line
from clustermodel.formatting import cell, html_fields
from clustermodel.measure.metrics import Summary
from clustermodel.measure.quantities import ACCOUNT_COLUMNS, account_columns
from clustermodel.validation import require, require_seconds, whole_fields
from clustermodel.workload.transforms import is_resampled

Measure = Callable[[Result], float | None]
"""A number of a run."""
JobTables = Literal["first", "all"]
"""Which replications keep their job tables."""
_NO_NUMBERS: Final = frozenset({"history", "job_tables", "shown", "text", "tables", "figures"})
"""Fields of experiments that change no number of a run."""
_ABOUT: Final = ("policy", "workload", "seed")
"""Fields of the summary that say what was run; a run may belong to several trials."""

SHOWN: Final = ("mean_response_s", "mean_bounded_slowdown", "mean_wait_s", "utilization", "kappa")
"""Columns that tables and reports show first, unless an experiment chooses others.  Response and slowdown come before the wait,
which is short under time sharing by construction."""


@dataclass(frozen=True, kw_only=True)
class Design(ABC):
    """What all experiments have in common.

    Replication r has the seed ``seed + r - 1`` at every point (common random numbers): draw workloads from it, so that all
    policies and machines get the same jobs.
    """

    name: str
    """The name of the experiment; a directory of results belongs to one experiment."""
    factors: Mapping[str, Sequence[Any] | Mapping[str, Any]]
    """For each factor its levels: numbers, texts, truth values, ``None`` or policies; other objects by name."""
    scenario: Callable[..., Scenario | None]
    """Returns the scenario of a trial, ``None`` for a point that makes no sense: called with the level of each factor and
    ``seed``, by name.  A scenario without a seed of its own (with the default, 1) gets ``seed``."""
    measures: Mapping[str, Measure] = field(default_factory=dict)
    """Own measures by name: functions of the :class:`~clustermodel.experiment.result.Result`.  The fields of its summary and
    the accounts of its ledger are measured anyway."""
    seed: int = 1
    """Seed of the first replication."""
    warm_up_s: float = 0.0
    """Length of the warm-up: jobs submitted sooner than this after the first submission do not count in waits, responses and
    slowdowns.  :func:`~clustermodel.experiment.result.suggest_warm_up` suggests a length; it is stored with every run."""
    history: bool = False
    """Keep every state of the Ousterhout matrix of runs with time sharing, for the report; takes time and disk space."""
    job_tables: JobTables = "first"
    """Keep the job tables of the first replication of each point, or of all."""
    shown: Sequence[str] = ()
    """The columns that matter most, which tables and reports show first; the table has all."""
    text: str = ""
    """The question and its answer, in Markdown, for the report; by default the docstring of the script."""

    def __post_init__(self) -> None:
        require_text("Study.name", self.name)
        whole_fields(self, "Study.", seed=0)
        object.__setattr__(self, "warm_up_s", require_seconds("Study.warm_up_s", self.warm_up_s))
        kept = self.job_tables in get_args(JobTables)
        require(kept, "Study.job_tables", self.job_tables, "it must be 'first' or 'all'")
        require(isinstance(self.text, str), "Study.text", self.text, "it must be a text")
        self._check_measures()
        shown = (self.shown,) if isinstance(self.shown, str) else tuple(self.shown) or (*self.measures, *SHOWN)
        for name in shown:
            self.require_column("Study.shown", name)
        object.__setattr__(self, "shown", shown)
        _check_function("Study.scenario", self.scenario, (*self.levels.names, "seed"))

    def _check_measures(self) -> None:
        by_name = isinstance(self.measures, Mapping)
        require(by_name, "Study.measures", self.measures, "it must be a dictionary of functions by name")
        taken = {*MEASURED, *_ABOUT, *RESERVED, *self.levels.names}
        for name, measure in self.measures.items():
            require_text("Study.measures", name)
            require(name not in taken, "Study.measures", name, "the table has a column of that name")
            require(callable(measure), f"Study.measures: {name}", measure, "it must be a function of a Result")

    def require_column(self, field: str, name: object) -> None:
        """Refuse a name that is no column of numbers: no field of the summary, account, or own measure."""
        known = [*MEASURED, *self.measures]
        require(name in known, field, name, "it must be a column of the table", did_you_mean(str(name), known))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what each process determines itself."""
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    def _repr_html_(self) -> str:
        """Return the experiment for a notebook: its factors with their levels, and the columns that matter most."""
        factors = [(name, ", ".join(map(cell, self.levels.labels(name)))) for name in self.levels.names]
        fields = [*factors, *self.notebook_fields(), ("shown", ", ".join(self.shown))]
        return html_fields(f"{type(self).__name__} {self.name}", fields)

    def notebook_fields(self) -> list[tuple[str, object]]:
        """Return fields that a notebook shows behind the factors."""
        return []

    @cached_property
    def levels(self) -> Factors:
        """The levels of the factors."""
        return Factors(self.factors)

    @abstractmethod
    def trials(self, table: StudyTable) -> list[Trial]:
        """Return all trials wanted so far: those of the finished ones in the table, and those that their results ask for.

        The experiment is complete when nothing is added.  The result must depend on the table alone, so that an interrupted
        experiment goes on as it would have done.
        """

    def first_table(self) -> StudyTable:
        """Return the table before any trial is finished."""
        return StudyTable.of_rows([], self.levels.names, self.name)

    def order_of(self, trial: Trial) -> tuple[float, ...]:
        """Return what sorts the trials of all shards in the order of the experiment: point by point, then replications."""
        places = (self.levels.place(name, label) for name, label in zip(self.levels.names, trial.point, strict=True))
        return (*places, trial.replication)

    def tables_of(self, trial: Trial, *, history: bool) -> tuple[str, ...]:
        """Return the names of the tables that the run of a trial keeps; ``history`` adds the placements under time sharing."""
        if trial.replication > 1 and self.job_tables == "first":
            return ()
        return run_key.TABLES if history else (run_key.RECORDS, run_key.STATES_OVER_TIME)

    def shard_of(self, trial: Trial, shards: int) -> int:
        """Return the shard of a job array that runs a trial, from 1 on."""
        digest = hashlib.sha256(run_key.canonical([list(trial.point), trial.replication]).encode()).digest()
        return int.from_bytes(digest[:8], "big") % shards + 1

    def scenario_of(self, trial: Trial) -> Scenario | None:
        """Return the scenario of a trial, ``None`` for a point that makes no sense."""
        seed = self.seed + trial.replication - 1
        made = self.scenario(**self.levels.values(trial.point), seed=seed)
        if made is None:
            return None
        if not isinstance(made, Scenario):
            raise SpecificationError(f"Study.scenario: the function returned {quoted(made)}; it must return a Scenario or None")
        if made.stream is not False:
            raise SpecificationError("Scenario.stream: not allowed in a study, which keeps the jobs of its runs")
        used_seed = seed if made.seed == Scenario.seed else made.seed
        return replace(made, seed=used_seed, history=self.history or made.history)

    def factors_of(self, trial: Trial) -> dict[str, Label]:
        """Return the labels of a trial's levels by factor, and its replication."""
        return {**dict(zip(self.levels.names, trial.point, strict=True)), "replication": trial.replication}

    def runs(self, trials: Sequence[Trial], opened: Opened) -> list[Run]:
        """Return the runs of trials, with their keys; trials whose scenario cannot be made have an error, but not all of them.

        Trials whose points make no sense have no run.
        """
        _ = opened.measures
        made: dict[Trial, Run] = {}
        problems: list[BaseException] = []
        # Replication by replication, so that functions that keep their last workloads need not make them again.
        for trial in sorted(trials, key=lambda trial: trial.replication):
            try:
                scenario = self.scenario_of(trial)
                if scenario is not None:
                    digests = [opened.digests.of(source) for source in scenario.sources]
                    made[trial] = opened.identify(trial, scenario, digests)
            except BaseException as raised:  # of the user's code
                made[trial] = run_key.without_scenario(trial, self.name, self.seed, as_failure(raised))
                problems.append(raised)
        if problems and all(run.error for run in made.values()):
            if isinstance(problems[0], ClusterModelError):
                raise problems[0]
            line = failure_line(problems[0])
            raise SpecificationError(f"study {self.name}: no scenario can be made: {line}") from problems[0]
        return [made[trial] for trial in trials if trial in made]

    def numbers_of(self, result: Result) -> dict[str, float | int | bool | None]:
        """Return the numbers of a run: the fields of its summary, the accounts of its ledger and the own measures."""
        summary = result.summary(warm_up_s=self.warm_up_s).as_dict()
        numbers: dict[str, Any] = {name: value for name, value in summary.items() if name not in _ABOUT}
        numbers |= account_columns(result.ledger)
        if any(is_resampled(source.provenance.options) for source in result.scenario.sources):
            numbers[RESAMPLED] = True
        for name, measure in self.measures.items():
            numbers[name] = _number(name, measure(result))
        return numbers

    def for_workers(self) -> Self:
        """Return the experiment without what only the process that started it needs."""
        return self

    def __len__(self) -> int:
        """Return the number of trials that are wanted before any is finished."""
        return len(self.trials(self.first_table()))


@dataclass
class Opened:
    """An experiment in the process that runs it, with the identities that its policies and measures had before any run."""

    design: Design
    sent: bool = False
    """Whether another process sent the experiment, with its code: then that process has identified the code."""
    digests: DigestsOfJobs = field(default_factory=DigestsOfJobs)
    identities: Identities = field(default_factory=Identities)

    @cached_property
    def measures(self) -> dict[str, object]:
        """The identities of the experiment's own measures; none if another process sent them."""
        return {} if self.sent else self.identities.of_measures(self.design.measures)

    @cached_property
    def version(self) -> str:
        """Digest of the user's sources and of the parameters of the experiment; the shards of a job array have the same."""
        levels = {name: self.design.levels.labels(name) for name in self.design.levels.names}
        values = {part.name: getattr(self.design, part.name) for part in fields(self.design) if part.name not in _NO_NUMBERS}
        plain = {name: repr(part) for name, part in values.items() if isinstance(part, int | float | str) or is_dataclass(part)}
        return run_key.key_of({"levels": levels, "fields": plain, "sources": self.identities.sources.digest()})

    def identify(
        self, trial: Trial, scenario: Scenario, jobs: Sequence[JobsDigest], code: Mapping[str, Any] | None = None
    ) -> Run:
        """Return the run of a trial, with its key; ``code`` is from the process that sent the experiment."""
        if code is None or not self.sent:
            code = self.identities.of_code(scenario, self.measures)
        return run_key.identified(trial, scenario, jobs, code, warm_up_s=self.design.warm_up_s)


MEASURED: Final = (*(part.name for part in fields(Summary) if part.name not in _ABOUT), *ACCOUNT_COLUMNS)
"""The numbers that every run has: fields of the summary, and accounts of the ledger."""


def _number(name: str, value: object) -> float | int | bool | None:
    value = plain(value)
    if value is None or isinstance(value, bool | int):
        return value
    if not isinstance(value, float):
        raise SpecificationError(f"measure {name}: it returned {quoted(value)}; it must return a number or None")
    return value if isfinite(value) else None


def _check_function(field: str, function: object, names: Sequence[str]) -> None:
    """Refuse a function that cannot be called with arguments of these names."""
    must = f"it must be a function of {', '.join(names)}"
    if not callable(function):
        raise refused(field, function, must)
    if problem := problem_of_call(function, names):
        raise SpecificationError(f"{field}: {must}: {problem}")


def problem_of_call(function: Callable[..., object], names: Iterable[str]) -> str:
    """Return why a function cannot be called with arguments of these names; nothing if it can, or has no known signature."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except (TypeError, ValueError) as problem:
        return str(problem) if isinstance(problem, TypeError) else ""
    return ""
