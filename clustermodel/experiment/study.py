"""Experiments: factors, the scenario of each trial, measures; the study is a grid of factors, with replications.

Which trials are run follows from the results so far.
"""

import hashlib
import inspect
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import ceil, isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, get_args

from clustermodel.errors import ClusterModelError, ExecutionError, SpecificationError, counted, did_you_mean, quoted, refused
from clustermodel.experiment import run_key
from clustermodel.experiment.exhibits import exhibits_of, write_exhibits
from clustermodel.experiment.factors import RESERVED, Factors, Label, Trial, plain, require_text
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import as_failure, failure_line
from clustermodel.experiment.worker import Origin
from clustermodel.machine.machine import Machine
from clustermodel.measure.metrics import OPTIONAL, Summary
from clustermodel.measure.quantities import ACCOUNT_COLUMNS, account_columns
from clustermodel.measure.statistics import LEVEL, RESAMPLED, checked_level, least_half
from clustermodel.policies.interface import Policy
from clustermodel.text.formatting import cell, html_fields
from clustermodel.validation import choice, require, require_number, require_seconds, whole_fields
from clustermodel.workload.table import JobSource
from clustermodel.workload.transforms import is_resampled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Conclusion = TypeVar("Conclusion")
Measure = Callable[[Result], float | None]
"""A number of a run."""
Tabulate = Callable[[StudyTable], "pd.DataFrame"]
"""A function that makes a table to show from that of an experiment."""
Draw = Callable[[StudyTable], "Figure"]
"""A function that draws a figure of an experiment's table."""
JobTables = Literal["first", "all"]
"""Which replications keep their job tables."""
WorkloadMaker = Callable[[int], JobSource]
"""A function that makes the jobs of one replication from its seed."""
Levels = Mapping[str, Sequence[Any] | Mapping[str, Any]]
"""The levels of each factor: a sequence, or objects by name."""

_ABOUT: Final = ("policy", "workload", "seed")  # fields of the summary that are not of a run, but of one of its trials
MEASURED: Final = (*(part.name for part in fields(Summary) if part.name not in _ABOUT), *ACCOUNT_COLUMNS)
"""The numbers that every run has: fields of the summary, and accounts of the ledger."""
SHOWN: Final = ("mean_response_s", "mean_bounded_slowdown", "mean_wait_s", "utilization", "kappa")
"""Columns that tables and reports show first, unless an experiment chooses others.  Response and slowdown come before the wait,
which is short under time sharing by construction."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC, Generic[Conclusion]):
    """What all experiments have in common.

    Replication r has the seed ``seed + r - 1`` at every point (common random numbers): draw workloads from it, so that all
    policies and machines get the same jobs.
    """

    name: str
    """The name of the experiment; a directory of results belongs to one experiment."""
    factors: Levels
    """For each factor its levels: numbers, texts, truth values, ``None`` or policies; other objects by name."""
    scenario: Callable[..., Scenario | None]
    """Returns the scenario of a trial, ``None`` for a point that makes no sense: a function of the level of each factor and
    ``seed``, by name.  A scenario without a seed of its own (with the default, 1) gets ``seed``."""
    measures: Mapping[str, Measure] = field(default_factory=dict)
    """Own measures by name, besides the fields of the summary and the accounts of the ledger."""
    seed: int = 1
    """Seed of the first replication."""
    warm_up_s: float = 0.0
    """Jobs submitted sooner than this after the first submission do not count in waits, responses and slowdowns;
    :func:`~clustermodel.experiment.result.suggest_warm_up` suggests a length."""
    history: bool = False
    """Keep every state of the Ousterhout matrix of runs with time sharing, for the report; takes time and disk space."""
    job_tables: JobTables = "first"
    """Keep the job tables of the first replication of each point, or of all."""
    shown: Sequence[str] = ()
    """The columns that matter most, which tables and reports show first; the table has all."""
    text: str = ""
    """The question and its answer, in Markdown, for the report; by default the docstring of the script."""
    tables: Mapping[str, Tabulate] = field(default_factory=dict)
    """Tables to show, by title: functions of the experiment's table."""
    figures: Mapping[str, Draw] = field(default_factory=dict)
    """Figures to show, by title: functions of the experiment's table."""

    def __post_init__(self) -> None:
        require_text("Study.name", self.name)
        whole_fields(self, "Study.", seed=0)
        object.__setattr__(self, "warm_up_s", require_seconds("Study.warm_up_s", self.warm_up_s))
        choice("Study.job_tables", self.job_tables, get_args(JobTables))
        require(isinstance(self.text, str), "Study.text", self.text, "it must be a text")
        must = "it must be a dictionary of functions by name"
        require(isinstance(self.measures, Mapping), "Study.measures", self.measures, must)
        taken = {*MEASURED, *_ABOUT, *RESERVED, *self.levels.names}
        for name, measure in self.measures.items():
            require_text("Study.measures", name)
            require(name not in taken, "Study.measures", name, "the table has a column of that name")
            require(callable(measure), f"Study.measures: {name}", measure, "it must be a function of a Result")
        shown = (self.shown,) if isinstance(self.shown, str) else tuple(self.shown) or (*self.measures, *SHOWN)
        for name in shown:
            self.require_column("Study.shown", name)
        object.__setattr__(self, "shown", shown)
        names = (*self.levels.names, "seed")
        require_function("Study.scenario", self.scenario, names, f"a function of {', '.join(names)}")

    def require_column(self, field: str, name: object, other: str = "") -> None:
        """Refuse a name that is no column of numbers: no field of the summary, account, or own measure."""
        known = [*MEASURED, *self.measures]
        if name not in known:
            raise refused(field, name, f"it must be a column of the table{other}", did_you_mean(str(name), known))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what each process determines itself."""
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    def _repr_html_(self) -> str:
        """Return the experiment for a notebook: its factors with their levels, and the columns that matter most."""
        factors = [(name, ", ".join(map(cell, self.levels.labels(name)))) for name in self.levels.names]
        rows = [*factors, *self._notebook_rows(), ("shown", ", ".join(self.shown))]
        return html_fields(f"{type(self).__name__} {self.name}", rows)

    def _notebook_rows(self) -> list[tuple[str, object]]:
        return []

    @cached_property
    def levels(self) -> Factors:
        """The levels of the factors."""
        return Factors(self.factors)

    # Trials and their runs

    @abstractmethod
    def trials(self, table: StudyTable) -> list[Trial]:
        """Return all trials wanted so far, as the table of finished ones alone decides; when none is added, all is done."""

    def first_table(self) -> StudyTable:
        """Return the table before any trial is finished."""
        return StudyTable([], self.levels.names, self.name)

    def __len__(self) -> int:
        """Return the number of trials that are wanted before any is finished."""
        return len(self.trials(self.first_table()))

    def order_of(self, trial: Trial) -> tuple[float, ...]:
        """Return what sorts the trials of all shards in the order of the experiment: point by point, then replications."""
        return (*map(self.levels.place, self.levels.names, trial.point), trial.replication)

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
        changes: dict[str, Any] = {
            "seed": seed if made.seed == Scenario.seed else made.seed,
            "history": self.history or made.history,
        }
        same = all(getattr(made, name) == value for name, value in changes.items())
        return made if same else replace(made, **changes)  # whose fields are checked again

    def runs(self, trials: Sequence[Trial], opened: run_key.Opened) -> list[run_key.Run]:
        """Return the runs of trials with their keys, none for points that make no sense; not all scenarios may fail."""
        _ = opened.measures
        made: dict[Trial, run_key.Run] = {}
        problems: list[BaseException] = []
        # Replication by replication, so that functions that keep their last workloads need not make them again.
        for trial in sorted(trials, key=lambda trial: trial.replication):
            try:
                scenario = self.scenario_of(trial)
                if scenario is not None:
                    made[trial] = opened.identify(trial, scenario, list(map(opened.jobs_of, scenario.sources)))
            except BaseException as raised:  # of the user's code
                specified = {"scenario": "could not be made", "trial": list(trial), "study": self.name, "seed": self.seed}
                about: dict[str, Label] = {"policy": None, "workload": None, "nodes": None, "seed": self.seed}
                key, error = run_key.key_of(specified), as_failure(raised)  # apart from those of results
                made[trial] = run_key.Run(key, trial, specified, about, 0, [], history=False, error=error)
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
        numbers |= {name: None for name in self.shown if name in OPTIONAL and name not in numbers}
        if any(is_resampled(source.provenance.options) for source in result.scenario.sources):
            numbers[RESAMPLED] = True
        for name, measure in self.measures.items():
            value = plain(measure(result))
            if not isinstance(value, bool | int | float | None):
                raise SpecificationError(f"measure {name}: it returned {quoted(value)}; it must return a number or None")
            numbers[name] = None if isinstance(value, float) and not isfinite(value) else value
        return numbers

    # Running

    @abstractmethod
    def conclude(self, table: StudyTable) -> Conclusion:
        """Return what the finished trials say."""

    def exhibits(self) -> tuple[Mapping[str, Tabulate], Mapping[str, Draw]]:
        """Return the tables and the figures to show, by title."""
        return self.tables, self.figures

    def run(self, path: str | PathLike[str] | None = None, **options: Any) -> Conclusion:
        """Run the missing trials, write tables and figures below ``path``, and return the conclusion from all finished trials.

        Finished runs are kept in the directory ``path``, and the same call again runs only missing and failed ones; without it
        nothing is kept.  The other arguments are fields of :class:`~clustermodel.experiment.executor.Options`.

        Failed runs, which the conclusion leaves out, are a ``UserWarning``, as is a table or a figure that cannot be made.  If
        all runs failed, that is an ``ExecutionError``.
        """
        from clustermodel.experiment.executor import Options, run_trials  # noqa: PLC0415  with pandas and pyarrow

        shard = options.get("shard")
        if path is None and shard is not None:
            raise SpecificationError("path: none is given; a shard must keep its results where the others keep theirs")
        with tempfile.TemporaryDirectory(prefix="clustermodel-") if path is None else nullcontext(path) as folder:
            _, table = run_trials(Origin(design=self), folder, Options(**options))
        conclusion = self.conclude(_with_failures_named(table))
        if path is not None and shard is None and any(self.exhibits()):
            exhibits = exhibits_of(self, table)
            write_exhibits(exhibits, Path(path))
            for problem in exhibits.problems:
                warnings.warn(f"study {self.name}: {problem}", UserWarning, stacklevel=2)
        return conclusion

    def stored(self, path: str | PathLike[str]) -> Conclusion:
        """Return the conclusion from the finished runs in a directory, those of all shards; nothing is run."""
        return self.conclude(_with_failures_named(self.stored_table(path)))

    def stored_table(self, path: str | PathLike[str]) -> StudyTable:
        """Return the table of the finished trials in a directory, those of all shards."""
        from clustermodel.experiment.store import Store  # noqa: PLC0415  with pandas and pyarrow

        with Store.read(path) as store:
            table = store.table()
        if (table.name, table.factors) != (self.name, self.levels.names):
            raise SpecificationError(f"{path}: holds the results of {quoted(table.name)}, not of {quoted(self.name)}")
        return table


def _with_failures_named(table: StudyTable) -> StudyTable:
    """Return a table after a warning of its failed trials."""
    if table.failures:
        factors, error = table.failures[0]
        first = f"{factors}: {error.rstrip().rpartition(chr(10))[2]}"
        if not len(table):
            raise ExecutionError(f"study {table.name}: all runs failed, the first one was {first}")
        warnings.warn(f"study {table.name}: {counted(len(table.failures), 'run')} failed: {first}", UserWarning, stacklevel=3)
    return table


def require_function(field: str, function: object, names: Iterable[str], what: str) -> None:
    """Refuse a function that cannot be called with arguments of these names; ``what`` says that it must be one of them."""
    if not callable(function):
        raise refused(field, function, f"it must be {what}")
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError as problem:
        raise SpecificationError(f"{field}: it must be {what}: {problem}") from None
    except ValueError:  # it has no known signature
        return


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The width of a measure's confidence interval at which replication of a point stops.

    It is compared with the requested width after ``at_least`` replications, and again after more of them, whose number follows
    from the width so far (Chow & Robbins 1965).  A deviation that is small by chance stops the replications early, so the
    interval covers the mean slightly less often than ``level``: the error is larger, the smaller ``at_least`` is.

    Where jobs are resampled, intervals are of sample paths, which more resamples do not narrow below the spread of the
    resamples.  A point whose spread is wider than requested stops.
    """

    measure: str
    """A column of the table."""
    relative: float | None = None
    """Half the requested width as a share of the mean's size; or"""
    half_width: float | None = None
    """half the requested width, in the unit of the measure.  Give one of the two."""
    level: float = LEVEL
    """The confidence level."""
    at_least: int = 10
    """Replications before the first comparison."""
    at_most: int = 1000
    """Most replications of a point."""

    def __post_init__(self) -> None:
        if (self.half_width is None) == (self.relative is None):
            raise SpecificationError(
                f"Precision: relative {self.relative}, half_width {self.half_width} is not allowed; give one of the two"
            )
        for name in ("relative", "half_width"):
            if (width := getattr(self, name)) is not None:
                require_number(f"Precision.{name}", width, "a finite number > 0", lambda width: width > 0 and isfinite(width))
        checked_level(self.level)
        whole_fields(self, "Precision.", at_least=2)
        whole_fields(self, "Precision.", at_most=self.at_least)

    def wanted(self, table: StudyTable, point: Mapping[str, Label]) -> int:
        """Return the number of replications that a point needs, as far as the finished ones tell."""
        count = self.at_least
        while count < self.at_most:
            try:
                so_far = table.interval_of_first(self.measure, count, point, level=self.level)
            except SpecificationError:  # no replication of this point is finished, or one lacks the measure
                return count
            width = self.half_width if self.relative is None else self.relative * abs(so_far.mean)
            # Fewer runs than replications cannot differ, or failed: more of them would add nothing.  Nor would they where the
            # interval is one of sample paths and the deviation alone is wider.
            if so_far.count < count or so_far.half <= (width or 0.0) or least_half(so_far) > (width or 0.0):
                return count
            factor = (so_far.half / width) ** 2 if width else 2.0
            count = min(max(count + 1, ceil(count * min(factor, 2.0))), self.at_most)
        return count


@dataclass(frozen=True, kw_only=True)
class Study(Experiment[StudyTable]):
    """A grid: the scenario of every combination of factor levels, in every replication.

    >>> from clustermodel import Machine, Scenario, synthetic_workload
    >>> study = Study(
    ...     name="load",
    ...     factors={"load": [0.5, 0.8], "policy": ["fcfs", "easy"]},
    ...     scenario=lambda load, policy, seed: Scenario(
    ...         machine=Machine(nodes=64),
    ...         workload=synthetic_workload(jobs=50, nodes=64, load=load, seed=seed),
    ...         policy=policy,
    ...     ),
    ...     replications=3,
    ... )
    >>> len(study)
    12
    """

    replications: int = 1
    """Number of runs of each point, each with its own seed."""
    until: Precision | None = None
    """Replicate each point until an interval is narrow enough, instead of a fixed number of times."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_fields(self, "Study.", replications=1)
        require(isinstance(self.until, Precision | None), "Study.until", self.until, "it must be a Precision")
        if self.until is not None:
            if self.replications > 1:
                raise SpecificationError("Study.replications, until: both are given; Precision has at_least and at_most")
            self.require_column("Precision.measure", self.until.measure)

    def trials(self, table: StudyTable) -> list[Trial]:
        """Return all trials of the grid; those of the points whose intervals are too wide, as far as the table tells."""

        def wanted(point: tuple[Label, ...]) -> int:
            return self.until.wanted(table, self.levels.named(point)) if self.until else self.replications

        return [Trial(point, number + 1) for point in self.levels.points() for number in range(wanted(point))]

    def shard_of(self, trial: Trial, shards: int) -> int:
        """Return the shard of a job array that runs a trial; all of a point whose number of replications is not fixed."""
        return super().shard_of(trial if self.until is None else Trial(trial.point, 1), shards)

    def _notebook_rows(self) -> list[tuple[str, object]]:
        return [("replications", "until intervals are narrow enough" if self.until else f"{self.replications:,} of each point")]

    def conclude(self, table: StudyTable) -> StudyTable:
        """Return the table."""
        return table

    @classmethod
    def grid(
        cls,
        *,
        name: str,
        workloads: Mapping[str, JobSource | WorkloadMaker],
        policies: Sequence[str | Policy],
        machines: Mapping[str, Machine] | None = None,
        **fields: Any,
    ) -> Self:
        """Return the study of every policy on every workload on every machine.

        Workloads (job streams, or functions of a seed that make them) and machines are given by their names in tables; the
        default is a machine of the size on which each workload was recorded.  ``fields`` are other fields of the study.
        """
        streams = "it must be a Workload, an SwfStream, or a function of a seed that returns one"
        for label, workload in workloads.items() if isinstance(workloads, Mapping) else ():
            require(isinstance(workload, JobSource) or callable(workload), f"Study.workloads: {label}", workload, streams)
        for label, machine in machines.items() if isinstance(machines, Mapping) else ():
            require(isinstance(machine, Machine), f"Study.machines: {label}", machine, "it must be a Machine")
        factors: dict[str, Any] = {"workload": workloads, "policy": policies}
        if machines is not None:
            factors = {"machine": machines, **factors}

        def scenario(workload: Any, policy: str | Policy, seed: int, machine: Machine | None = None) -> Scenario:
            jobs = workload if isinstance(workload, JobSource) else workload(seed)
            return Scenario(machine=machine, workload=jobs, policy=policy, seed=seed)

        return cls(name=name, factors=factors, scenario=scenario, **fields)

    @classmethod
    def of_scenarios(cls, name: str, scenarios: Sequence[Scenario], **fields: Any) -> Self:
        """Return the study of single scenarios, which have different labels, and their own policies, machines and seeds."""
        levels: dict[str, Scenario] = {}
        for scenario in scenarios:
            require(isinstance(scenario, Scenario), "Study.scenarios", scenario, "it must be a Scenario")
            if scenario.label in levels:
                raise SpecificationError(f"Study.scenarios: {scenario.label!r} is there twice; give each a name=... of its own")
            levels[scenario.label] = scenario
        return cls(name=name, factors={"scenario": levels}, scenario=lambda scenario, seed: scenario, **fields)  # noqa: ARG005


def replicate_until(
    scenario: Callable[..., Scenario | None],
    measure: str,
    *,
    factors: Levels | None = None,
    relative: float | None = None,
    half_width: float | None = None,
    level: float = LEVEL,
    at_least: int = 10,
    at_most: int = 1000,
    name: str = "replicate until",
    **fields: Any,
) -> Study:
    """Return the study that replicates each point until the confidence interval of a measure has the requested width.

    The arguments are fields of :class:`Precision`, which describes them, and of :class:`Study`.
    """
    widths: dict[str, Any] = {"relative": relative, "half_width": half_width}
    until = Precision(measure=measure, level=level, at_least=at_least, at_most=at_most, **widths)
    return Study(name=name, factors=factors or {}, scenario=scenario, until=until, **fields)
