"""Validation: does a formula agree with the simulation, over its factors?

At each point the scenario is simulated in several replications, and an equivalence test
(:mod:`clustermodel.measure.equivalence`) says whether the mean of a measure agrees with the formula to within a margin,
differs by more, or whether more replications are needed, which are added, twice as many each time, until there is a verdict.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, log10, nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from clustermodel.errors import SpecificationError, counted, refused, visible
from clustermodel.experiment.design import Draw, Levels, Measure, Tabulate, require_function
from clustermodel.experiment.factors import Label, Trial, describe, label_key, plain
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.script import load_experiment
from clustermodel.experiment.study import Experiment
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import failure_line
from clustermodel.measure.equivalence import MARGIN, Equivalence, Verdict, equivalence_test, looks_at, require_margin
from clustermodel.measure.statistics import LEVEL, Interval, checked_level
from clustermodel.text.formatting import escaped, html_table
from clustermodel.validation import flag, require, require_number, whole_fields

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Formula = Callable[..., float | None]  # a function of factors, by name, or of result alone
Control = tuple[Measure, float | Formula]
"""A control variate: a function of the result, and its expected value, a number or a function of factors."""
SIMULATED: Final = "simulated"  # column of a measure that is a function
BY_FORMULA: Final = "by_formula"  # column of a formula that is computed from each run


@dataclass(frozen=True)
class Verdicts:
    """Whether a formula agrees with the simulation, at each point of a validation."""

    name: str
    """The name of the validation."""
    quantity: str
    """What is compared: a column of the table, or the name of the function that measures it."""
    points: Sequence[tuple[Mapping[str, Label], Equivalence]]
    """The levels and the equivalence test of each point at which a run is finished, in the order of the experiment."""
    table: StudyTable
    """The finished runs."""
    relative: bool
    """Whether differences and the margin are shares of the formula's value."""

    @property
    def holds(self) -> bool:
        """Whether formula and simulation agree at every point; ``False`` without any point."""
        return bool(self.points) and all(test.verdict == "agrees" for _, test in self.points)

    def at(self, **levels: Label) -> Equivalence:
        """Return the comparison at the first point with these levels of factors; without one, raise a ``KeyError``."""
        for point, test in self.points:
            if all(name in point and label_key(point[name]) == label_key(label) for name, label in levels.items()):
                return test
        raise KeyError(f"{self.name}: no point has {describe(levels)}")

    @property
    def frame(self) -> pd.DataFrame:
        """The comparison at all points, a row each.

        Columns: the factors; ``formula``, its value (the mean, where it is computed from each run); ``simulated`` and ``half``,
        the simulated mean and half the width of the interval that decides; ``difference``, ``low``, ``high``: simulated -
        formula and its interval, and ``margin``, all four as shares of the formula's value, unless the margin is absolute;
        ``replications``; ``verdict``; and ``more``, the replications that are missing for a verdict (``nan`` if there is one).
        """
        import pandas as pd

        rows = []
        for point, test in self.points:
            numbers = {"formula": test.expected, "simulated": test.mean, "half": test.half}
            shares = {name: getattr(test, name) / test.unit for name in ("difference", "low", "high", "margin")}
            outcome = {"replications": test.count, "verdict": test.verdict, "more": nan if test.more is None else test.more}
            rows.append({**point, **numbers, **shares, **outcome})
        return pd.DataFrame(rows)

    @property
    def shown(self) -> pd.DataFrame:
        """The frame for readers: factors with several levels, and texts of at most 80 columns in all."""
        import pandas as pd

        rows: list[dict[str, object]] = []
        for point, test in self.points:
            share, exact = test.difference / test.unit, not isfinite(test.half) or abs(test.half) < 1e-9 * test.unit
            mean = Interval(test.mean, test.half, LEVEL, test.count)
            difference = f"{100 * share:+.2f} %" if self.relative else f"{share:+.3g}"
            rows.append({
                **point,
                "formula": _number(test.expected, test.half),
                "simulated": _number(test.mean, test.half) if exact else str(mean),
                "difference": difference if abs(share) >= 1e-9 else f"{share:.0e}" if share else "0",
                "runs": test.count,
                "verdict": test.verdict if test.more is None else f"{test.verdict} (+{test.more:,})",
            })  # fmt: skip
        frame = pd.DataFrame(rows)
        single = [name for name in self.table.factors if rows and len(set(map(str, frame[name]))) == 1]
        return frame.drop(columns=single)

    def _repr_html_(self) -> str:
        """Return the comparison for a notebook."""
        if not self.points:
            return escaped(self)
        shown = self.shown
        return html_table(str(self), [(str(name), shown[name].tolist()) for name in shown])

    @property
    def plot(self) -> Figure:
        """The formula's values and the simulated means over the factor; over two numeric factors a map of verdicts too."""
        from clustermodel.figures.study_plots import formula_and_simulation  # noqa: PLC0415  matplotlib takes a second to import

        return formula_and_simulation(self.frame, self.table.factors, quantity=self.quantity, relative=self.relative)

    def __str__(self) -> str:
        counts = Counter(test.verdict for _, test in self.points)
        verdicts = ", ".join(f"{verdict} at {counts[verdict]}" for verdict in get_args(Verdict) if counts[verdict])
        if not verdicts:
            return visible(f"{self.name}: no run is finished")
        test = self.points[0][1]
        margin = f"{100 * test.margin / test.unit:g} %" if self.relative else f"{test.margin:g}"
        return visible(f"{self.name}: {verdicts} of {counted(len(self.points), 'point')}, within {margin}")


def _number(value: float, half: float) -> str:
    """Return a number with two significant digits of its interval, but with four to six significant digits of its own."""
    digits = 1 - _exponent(half) if isfinite(half) and half > 0 else 9
    digits = min(max(digits, 3 - _exponent(value)), 5 - _exponent(value))
    return f"{value:,.{max(digits, 0)}f}" if -4 <= _exponent(value) < 15 else f"{value:.3g}"


def _exponent(value: float) -> int:
    return int(log10(abs(value)) // 1) if value and isfinite(value) else 0


@dataclass(frozen=True, kw_only=True)
class Validation(Experiment[Verdicts]):
    """The comparison of a formula with the simulation, at each point of a grid; use :func:`validate`."""

    formula: Formula
    """Called with those factors that are its parameters, by name.  It returns the expected mean of the measure, or ``None``
    where it says nothing; there nothing is run.  If ``result`` is its only parameter, it is computed from each run and
    paired with its measure."""
    measure: str | Measure
    """A column of the table, or a function of a :class:`~clustermodel.experiment.result.Result`."""
    margin: float = MARGIN
    """The largest difference that does not matter."""
    relative: bool = True
    """The margin is a share of the formula's value; otherwise it has the unit of the measure."""
    controls: Mapping[str, Control] = field(default_factory=dict)
    """Control variates by name: numbers of the same runs whose expected values are known."""
    replications: int = 10
    """Before the first look; each look has twice as many as the one before."""
    at_most: int = 320
    """Most replications of a point."""
    level: float = LEVEL
    """1 - the probability of a wrong verdict at a point, over all looks."""

    def __post_init__(self) -> None:
        form = "a function of a Result and its expected value"
        require(isinstance(self.controls, Mapping), "controls", self.controls, f"it must be, by name, {form}")
        for name, control in self.controls.items():
            pair = isinstance(control, Sequence) and len(control) == 2 and callable(control[0])
            require(pair, f"controls: {name}", control, f"it must be {form}")
        if isinstance(self.measures, Mapping):
            own = {name: control[0] for name, control in self.controls.items()}
            own |= {SIMULATED: self.measure} if callable(self.measure) else {}
            own |= {BY_FORMULA: self.formula} if self.of_each_run else {}
            object.__setattr__(self, "measures", {**self.measures, **own})
        super().__post_init__()
        for name, (_, expected) in self.controls.items():
            if callable(expected):
                self._require_formula(f"controls: {name}", expected)
            else:
                require_number(f"controls: {name}", expected, "a finite number", isfinite)
        flag("relative", self.relative)
        require_margin(self.margin, relative=self.relative)
        checked_level(self.level)
        whole_fields(self, "", replications=2 + len(self.controls))
        whole_fields(self, "", at_most=self.replications)
        if not self.of_each_run:
            self._require_formula("formula", self.formula)
        if self.measure in self.levels.names:
            raise refused("measure", self.measure, "it is a factor, whose column hides it")
        if not callable(self.measure):
            self.require_column("measure", self.measure, ", or a function of a Result")

    def _require_formula(self, where: str, formula: Formula) -> None:
        """Refuse a formula with a parameter that is no factor and has no default."""
        names = self.levels.names
        what = f"a function of factors, which are {', '.join(names) or 'none'}"
        require_function(where, formula, [name for name in _names(formula) if name in names], what)

    @property
    def of_each_run(self) -> bool:
        """Whether the formula is computed from each run, and paired with its measure."""
        return _names(self.formula) == ["result"]

    @property
    def quantity(self) -> str:
        """The column of the table that is compared with the formula."""
        return SIMULATED if callable(self.measure) else self.measure

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """The numbers of replications after which the test is made."""
        return looks_at(self.replications, self.at_most)

    @cached_property
    def _expected(self) -> dict[tuple[Label, ...], float | None]:
        """The formula's value at each point; ``nan`` if it has one for each run."""
        points = self.levels.points()
        return {point: nan if self.of_each_run else self._value("formula", self.formula, point) for point in points}

    def _value(self, where: str, formula: Formula | float, point: tuple[Label, ...]) -> float | None:
        if not callable(formula):
            return float(formula)
        levels = self.levels.values(point)
        place = f"{self.name}: {where} at {describe(self.levels.named(point))}"
        try:
            value = plain(formula(**{name: levels[name] for name in _names(formula) if name in levels}))
        except Exception as problem:  # of the user's function
            raise SpecificationError(f"{place}: {failure_line(problem)}") from problem
        return None if value is None else require_number(place, value, "a finite number, or None", isfinite)

    def trials(self, table: StudyTable) -> list[Trial]:
        """Return the trials that each point needs for a verdict, as far as the finished ones tell."""
        wanted = [point for point, expected in self._expected.items() if expected is not None]
        return [Trial(point, number + 1) for point in wanted for number in range(self._judged(table, point)[0])]

    def shard_of(self, trial: Trial, shards: int) -> int:
        """Return the shard of a job array that runs a trial: all trials of a point have the same."""
        return super().shard_of(Trial(trial.point, 1), shards)

    def conclude(self, table: StudyTable) -> Verdicts:
        """Return the verdict at each point; a measure that is missing in a run is a ``SpecificationError``."""
        tests = [(self.levels.named(point), self._judged(table, point)[1]) for point in self._expected]
        function = getattr(self.measure, "func", self.measure)  # of a partial
        measured = getattr(function, "__name__", SIMULATED) if callable(self.measure) else self.measure
        points = [(levels, test) for levels, test in tests if test is not None]
        return Verdicts(self.name, str(measured), points, table, self.relative)

    def exhibits(self) -> tuple[dict[str, Tabulate], dict[str, Draw]]:
        """Return the table and the figure of verdicts, and those of the experiment."""
        title = f"{self.name}: formula and simulation"
        tables: dict[str, Tabulate] = {title: lambda table: self.conclude(table).shown, **self.tables}
        return tables, {title: lambda table: self.conclude(table).plot, **self.figures}

    def _judged(self, table: StudyTable, point: tuple[Label, ...]) -> tuple[int, Equivalence | None]:
        """Return the replications that a point needs, and the test after them, as far as they are finished."""
        levels, expected = self.levels.named(point), self._expected[point]
        look, test = self.looks[0], None
        try:
            here = table.at(**levels)
        except SpecificationError:  # nothing is finished there
            return look, test
        frame, of_one_log = here.frame.sort_values("replication"), bool(here.resampled.any())
        if len(set(frame["run"])) > 1:  # otherwise no run can differ, and there is no spread
            frame = frame.drop_duplicates("run")
        names = [BY_FORMULA if self.of_each_run else self.quantity, self.quantity, *self.controls]
        numbers = frame[names].to_numpy(dtype=float)
        if (missing := np.argwhere(~np.isfinite(numbers))).size:
            row, column = missing[0]
            where = describe({**levels, "replication": frame["replication"].iloc[row]})
            raise SpecificationError(f"{self.name}: {names[column]} is missing in {where}")
        means = [self._value(f"controls: {name}", control[1], point) for name, control in self.controls.items()]
        for look in self.looks:
            so_far = (frame["replication"] <= look).to_numpy()
            if not so_far.any():
                break
            test = equivalence_test(
                numbers[so_far, 1],
                numbers[so_far, 0] if self.of_each_run else nan if expected is None else expected,
                self.margin,
                relative=self.relative,
                controls=numbers[so_far, 2:],
                control_means=np.array(means, dtype=float),
                level=self.level,
                looks=len(self.looks),
                of_one_log=of_one_log,
            )
            if test.verdict != "undecided" or so_far.sum() < look or of_one_log:
                break  # fewer: not all are finished, some failed, or runs cannot differ; of one log more tell nothing
        return look, test


def _names(formula: object) -> list[str]:
    """Return the names of a function's parameters; none if they are not known, or if it is no function."""
    try:
        return list(inspect.signature(formula).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []


def validate(
    formula: Formula,
    *,
    scenario: Callable[..., Scenario | None],
    factors: Levels | None = None,
    measure: str | Measure,
    name: str | None = None,
    **fields: Any,
) -> Validation:
    """Return the comparison of a formula with the simulation, at each point of a grid.

    >>> from clustermodel import Machine, Scenario, synthetic_workload
    >>> study = validate(
    ...     lambda load: load,
    ...     measure="utilization",
    ...     factors={"load": [0.5, 0.7]},
    ...     scenario=lambda load, seed: Scenario(
    ...         machine=Machine(nodes=64),
    ...         workload=synthetic_workload(jobs=50, nodes=64, load=load, seed=seed),
    ...         policy="fcfs",
    ...     ),
    ...     name="offered load",
    ... )
    >>> len(study)
    20

    The arguments are fields of :class:`Validation`: ``margin``, ``replications``, ``controls``, ``warm_up_s`` and others.  The
    scenario is a function of the factors, if any, and ``seed``: simulate what the formula assumes.
    """
    fields.setdefault("shown", (SIMULATED if callable(measure) else measure,))
    named = str(name or getattr(formula, "__name__", "validation"))
    return Validation(name=named, factors=factors or {}, scenario=scenario, formula=formula, measure=measure, **fields)


def load_validation(path: Path, text: str, settings: Mapping[str, str] = MappingProxyType({})) -> Validation:
    """Run a script and return the validation that it defines: ``study``, or a function with defaults that returns it."""
    study = load_experiment(path, text, settings)
    if not isinstance(study, Validation):
        raise SpecificationError(f"{path}: `study` is no validation; define study = validate(...), or use clustermodel sweep")
    return study
