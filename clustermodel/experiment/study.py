"""Experiments run their designs; the study is a grid of factors, with replications."""

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil, isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Self

from clustermodel.errors import ExecutionError, SpecificationError, counted, quoted
from clustermodel.experiment.design import Conclusion, Design, Levels
from clustermodel.experiment.exhibits import exhibits_of, write_exhibits
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.worker import Origin
from clustermodel.machine.machine import Machine
from clustermodel.measure.statistics import LEVEL, checked_level, least_half
from clustermodel.policies.interface import Policy
from clustermodel.validation import require, require_number, whole_fields
from clustermodel.workload.table import JobSource

WorkloadMaker = Callable[[int], JobSource]
"""A function that makes the jobs of one replication from its seed."""


class Experiment(Design[Conclusion]):
    """A design that runs itself."""

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
