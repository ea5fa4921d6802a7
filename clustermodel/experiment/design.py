"""Designs of experiments: factors, the scenario of each trial, and what is measured of its run.

Which trials are run follows from the results so far.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, get_args

from clustermodel.errors import SpecificationError, did_you_mean, quoted, refused
from clustermodel.experiment.factors import RESERVED, Factors, Trial, plain, require_text
from clustermodel.experiment.fingerprint import canonical, sha256
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study_table import StudyTable
from clustermodel.measure.metrics import OPTIONAL, Summary
from clustermodel.measure.quantities import ACCOUNT_COLUMNS, account_columns
from clustermodel.measure.statistics import RESAMPLED
from clustermodel.text.formatting import cell, html_fields
from clustermodel.validation import choice, require, require_seconds, whole_fields
from clustermodel.workload.transforms import is_resampled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

RECORDS: Final = "records"  # the job table of a run
STATES_OVER_TIME: Final = "states"  # the state of the machine after each scheduling event
PLACEMENTS: Final = "placements"  # the nodes of each gang over time
RECORDED: Final = "recorded"  # the recorded placements, where the workload has them
TABLES: Final = (RECORDS, STATES_OVER_TIME, PLACEMENTS)  # names of the tables that a run may have to have
ALL_TABLES: Final = (*TABLES, RECORDED)  # and of their folders

Conclusion = TypeVar("Conclusion")
Measure = Callable[[Result], float | None]
"""A number of a run."""
Tabulate = Callable[[StudyTable], "pd.DataFrame"]
"""A function that makes a table to show from that of an experiment."""
Draw = Callable[[StudyTable], "Figure"]
"""A function that draws a figure of an experiment's table."""
JobTables = Literal["first", "all"]
"""Which replications keep their job tables."""
Levels = Mapping[str, Sequence[Any] | Mapping[str, Any]]
"""The levels of each factor: a sequence, or objects by name."""

_ABOUT: Final = ("policy", "workload", "seed")  # fields of the summary that are not of a run, but of one of its trials
MEASURED: Final = (*(part.name for part in fields(Summary) if part.name not in _ABOUT), *ACCOUNT_COLUMNS)
"""The numbers that every run has: fields of the summary, and accounts of the ledger."""
SHOWN: Final = ("mean_response_s", "mean_bounded_slowdown", "mean_wait_s", "utilization", "kappa")
"""Columns that tables and reports show first, unless an experiment chooses others.  Response and slowdown come before the wait,
which is short under time sharing by construction."""


@dataclass(frozen=True, kw_only=True)
class Design(ABC, Generic[Conclusion]):
    """What all experiments have in common: which trials there are, the scenario of each, and what is measured.

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
        return TABLES if history else (RECORDS, STATES_OVER_TIME)

    def shard_of(self, trial: Trial, shards: int) -> int:
        """Return the shard of a job array that runs a trial, from 1 on."""
        return int(sha256(canonical([list(trial.point), trial.replication]))[:16], 16) % shards + 1

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

    @abstractmethod
    def conclude(self, table: StudyTable) -> Conclusion:
        """Return what the finished trials say."""

    def exhibits(self) -> tuple[Mapping[str, Tabulate], Mapping[str, Draw]]:
        """Return the tables and the figures to show, by title."""
        return self.tables, self.figures


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
