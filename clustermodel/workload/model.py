"""Workload models: job classes by size from which jobs are drawn, their fit to a trace, and their JSON files.

The steps of Zhang et al. 2003, section 2.1: group the jobs into classes whose upper bounds are powers of two; fit a
hyper-Erlang distribution of common order to the first three moments of each class's interarrival and run times; draw synthetic
workloads from the fit, with run times multiplied by a factor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from clustermodel.arrays import FloatArray, dot
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted
from clustermodel.text.files import specification_bytes
from clustermodel.text.tables import Place, made
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND
from clustermodel.validation import LONGEST_S, require, require_jobs, require_number, require_whole
from clustermodel.workload.distributions import HyperErlang
from clustermodel.workload.job_columns import table_of
from clustermodel.workload.phi import PHI
from clustermodel.workload.provenance import Provenance
from clustermodel.workload.remembered import remembered
from clustermodel.workload.shipped import shipped_model, shipped_models
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import LoadScale

RUN_TIME_FACTORS: Final = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8)
"""The nine workloads of Zhang et al. 2003 (section 2.2; 0 to 8 in table 1): factors of the run time at one arrival rate."""
MODEL_JOBS: Final = 10_000
"""Jobs in each workload of Zhang et al. 2003 (section 2.2)."""

MODEL_FORMAT: Final = {"format": "clustermodel workload model", "version": 1}
"""The fields that identify a file of a model."""
_TIMES: Final = ("interarrival", "run_time")
_OF_TIMES: Final = ("order", "p", "stage_s")


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeClass:
    """The jobs of more than ``largest / 2`` and at most ``largest`` nodes: one renewal stream."""

    largest: int
    """Upper bound of the class, a power of two."""
    sizes: tuple[int, ...]
    """Sizes that occur, ascending."""
    weights: tuple[float, ...]
    """Relative frequency of each size, from 1e-9 to 1e15; in a fitted model the number of jobs of that size in the trace."""
    interarrival: HyperErlang
    """Time between two submissions of this class."""
    run_time: HyperErlang
    """Run time on a dedicated machine (service time in Zhang et al. 2003)."""

    def __post_init__(self) -> None:
        largest = require_whole("SizeClass.largest", self.largest, at_least=1)
        require(not largest & (largest - 1), "SizeClass.largest", largest, "it must be a power of two")
        object.__setattr__(self, "largest", largest)
        of_class = f"SizeClass {self.label}: "
        sizes = tuple(require_whole(f"{of_class}sizes", size) for size in self.sizes)
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < self.smallest or sizes[-1] > largest:
            must = f"it must be one or more different sizes from {self.smallest} to {largest}, rising"
            raise SpecificationError(f"{of_class}sizes: {_short(sizes)} is not allowed; {must}")
        if len(self.weights) != len(sizes):
            raise SpecificationError(f"{of_class}weights: {len(self.weights)} are given for {len(sizes)} sizes")
        for weight in self.weights:
            require_number(f"{of_class}weights", weight, "a number >= 1e-9 and <= 1e15", lambda x: 1e-9 <= x <= 1e15)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "weights", tuple(self.weights))
        for field in _TIMES:
            if not isinstance(getattr(self, field), HyperErlang):
                raise SpecificationError(f"{of_class}{field}: it must be a HyperErlang(...)")

    @property
    def smallest(self) -> int:
        """Lower bound of the class: upper bound of the next smaller class, plus one."""
        return self.largest // 2 + 1

    @property
    def label(self) -> str:
        """Sizes of the class as text: ``"5-8"``, or ``"1"``."""
        return class_label(self.largest)

    @property
    def probabilities(self) -> FloatArray:
        """Probability of each size, shape ``(sizes,)``."""
        weights = np.array(self.weights, dtype=np.float64)
        return np.asarray(weights / weights.sum())

    @property
    def mean_nodes(self) -> float:
        """Mean size, nodes."""
        return dot(self.sizes, self.probabilities)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadModel:
    """Distributions from which workloads of any number of jobs are drawn."""

    name: str
    """A label for tables and figures."""
    source: str
    """The trace that the model was fitted to, or the source of its numbers, in one line."""
    nodes: int
    """Size of the machine for which the jobs were made."""
    classes: tuple[SizeClass, ...]
    """The job classes, small ones first."""
    notes: tuple[str, ...] = ()
    """Jobs and moments that the fit could not use, a line each."""

    def __post_init__(self) -> None:
        for field, texts in (("name", (self.name,)), ("source", (self.source,)), ("notes", self.notes)):
            for text in texts:
                if not isinstance(text, str) or not text.strip() or not text.isprintable():
                    raise SpecificationError(f"WorkloadModel.{field}: {text!r} is not allowed; it must be a line of text")
        object.__setattr__(self, "nodes", require_whole("WorkloadModel.nodes", self.nodes, at_least=1))
        classes = tuple(self.classes)
        if not classes or not all(isinstance(each, SizeClass) for each in classes):
            raise SpecificationError("WorkloadModel.classes: it must be one or more SizeClass(...)")
        bounds = [each.largest for each in classes]
        if bounds != sorted(set(bounds)):
            raise SpecificationError(f"WorkloadModel.classes: upper bounds {_short(bounds)} are not allowed; they must rise")
        if classes[-1].sizes[-1] > self.nodes:
            raise SpecificationError(
                f"WorkloadModel.classes: a size of {classes[-1].sizes[-1]} is not allowed; the machine has {self.nodes} nodes"
            )
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "notes", tuple(self.notes))

    @property
    def offered_load(self) -> float:
        """Expected work that arrives per unit of time, over the capacity of the machine: the limit of the utilization."""
        work = sum(each.mean_nodes * each.run_time.mean_s / each.interarrival.mean_s for each in self.classes)
        return work / self.nodes

    @property
    def shares(self) -> tuple[float, ...]:
        """Expected share of each class in the number of jobs."""
        rates = [1 / each.interarrival.mean_s for each in self.classes]
        return tuple(rate / sum(rates) for rate in rates)

    @remembered
    def generate(
        self,
        *,
        jobs: int = MODEL_JOBS,
        seed: int = 1,
        run_time_factor: float = 1.0,
        interarrival_factor: float = 1.0,
        phi: float = PHI,
        match_load: bool = True,
    ) -> Workload:
        """Return the first ``jobs`` submissions of the classes' merged streams; the first is at 0 s, ids count from 1.

        Each class is a renewal process in equilibrium when the workload begins, so that its jobs arrive at its rate from the
        start.  Arrivals, sizes and run times of each class, and the estimates, have random streams of their own:
        one seed gives the same jobs for every factor and every ``phi`` (common random numbers).  Run times are at least a
        tick and at most 1e10 s, before the factor.

        Args:
            jobs: their number.
            seed: of the random streams.
            run_time_factor: multiplies run times and estimates, as ``scaled(LoadScale(run_time=...))``;
                :data:`RUN_TIME_FACTORS` has those of the paper.  The name has the factor, as ``"blue-pacific x1.3"``.
            interarrival_factor: multiplies the times between submissions.
            phi: fraction of exact estimates, in the phi model of overestimation (Zhang et al. 2003, section 2.1).
            match_load: scale submission times so that the jobs drawn offer exactly the model's :attr:`offered_load` (times
                the factors).  Ten thousand jobs with long-tailed times offer up to a tenth more or less than expected, which
                would hide effects of the load; Zhang et al. 2003 state one utilization for each workload.

        Raises:
            SpecificationError: an argument is out of range, or the times do not fit 64-bit ticks.
        """
        require_jobs(jobs)
        require_whole("seed", seed, at_least=0)
        scale = LoadScale(run_time=run_time_factor, interarrival=interarrival_factor)
        streams = [
            tuple(np.random.default_rng(purpose) for purpose in stream.spawn(3))
            for stream in np.random.SeedSequence(seed).spawn(len(self.classes))
        ]
        # Renewal processes in equilibrium.  A class has at most all of the first jobs, so this number of arrivals is enough.
        arrivals = np.array(
            [
                np.cumsum([each.interarrival.sample_residual(rng), *each.interarrival.sample(rng, jobs - 1)])
                for each, (rng, _, _) in zip(self.classes, streams, strict=True)
            ]
        )
        first = np.argsort(arrivals, axis=None, kind="stable")[:jobs]
        submit = arrivals.ravel()[first]
        submit -= submit[0]
        nodes, run = np.empty(jobs, dtype=np.int64), np.empty(jobs)
        for index, (each, (_, sizes, runs)) in enumerate(zip(self.classes, streams, strict=True)):
            own = np.flatnonzero(first // jobs == index)
            nodes[own] = sizes.choice(each.sizes, size=len(own), p=each.probabilities)
            run[own] = np.minimum(each.run_time.sample(runs, len(own)), LONGEST_S)
        if match_load and submit[-1] > 0:
            submit *= dot(nodes, run) / (self.nodes * submit[-1]) / self.offered_load
        if submit[-1] * TICKS_PER_SECOND >= LAST_TICK:
            raise SpecificationError(
                f"{self.name}: {counted(jobs, 'job')} take {submit[-1]:g} s to arrive, too long for 64-bit ticks"
            )
        submit, run = (np.maximum(least, np.rint(time * TICKS_PER_SECOND)) for least, time in ((0, submit), (1, run)))
        options = {"jobs": jobs, "seed": seed, "phi": phi}
        workload = Workload(
            table_of(submit=submit, id=np.arange(1, jobs + 1), nodes=nodes, run=run, estimate=run),
            name=self.name if run_time_factor == 1 else f"{self.name} x{float(run_time_factor):g}",
            provenance=Provenance(source=f"model {self.name} ({self.source})", options=options),
            machine_nodes=self.nodes,
        ).with_phi_estimates(phi=phi, seed=seed)
        factors = {"run_time_factor": run_time_factor, "interarrival_factor": interarrival_factor}
        arguments = {"model": self, "jobs": jobs, "seed": seed, **factors, "phi": phi, "match_load": match_load}
        return (workload if scale == LoadScale() else workload.scaled(scale)).made_by("model", arguments)

    def to_json(self) -> str:
        """Return the model as JSON that :func:`load_model` reads, with one line per class."""
        classes = [
            {
                "largest": each.largest,
                "sizes": dict(zip(map(str, each.sizes), each.weights, strict=True)),
                **{time: {name: getattr(getattr(each, time), name) for name in _OF_TIMES} for time in _TIMES},
            }
            for each in self.classes
        ]
        head = {**MODEL_FORMAT, **{name: getattr(self, name) for name in ("name", "source", "nodes", "notes")}}
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        lines.append('"classes": [\n    ' + ",\n    ".join(map(json.dumps, classes)) + "\n  ]")
        return "{\n  " + ",\n  ".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str, *, file: str = "model") -> WorkloadModel:
        """Return the model from JSON that :meth:`to_json` wrote; ``file`` is its name in messages."""
        place = Place(file, Path())
        try:
            data = json.loads(text)
        except json.JSONDecodeError as problem:
            raise SpecificationError(f"{file}:{problem.lineno}: not JSON: {problem.msg}") from None
        except (ValueError, RecursionError) as problem:
            raise SpecificationError(f"{file}: not JSON: {problem}") from None
        known, version = MODEL_FORMAT["format"], data.get("version") if isinstance(data, dict) else None
        if not isinstance(data, dict) or data.get("format") != known:
            raise place.at("format").error(f"it must be {known!r}; is this a file of `clustermodel trace fit`?")
        if version != MODEL_FORMAT["version"] or isinstance(version, bool):
            raise place.at("version").error(f"{version!r} is not known; this program reads {MODEL_FORMAT['version']}")
        return model_from({name: value for name, value in data.items() if name not in MODEL_FORMAT}, place)


def model_from(table: Mapping[str, Any], place: Place) -> WorkloadModel:
    """Return the model that a table of a file describes: the fields of a model, with the weights of sizes by size."""
    lists = {}
    for field in ("notes", "classes"):
        lists[field] = table.get(field, [])
        if not isinstance(lists[field], list):
            raise place.at(field).refused(lists[field], "a list")
    classes = [_class_from(each, place.at("classes").at(number)) for number, each in enumerate(lists["classes"])]
    return made(WorkloadModel, {**table, "classes": tuple(classes), "notes": tuple(lists["notes"])}, place)


def _class_from(table: object, place: Place) -> SizeClass:
    def mapping(value: object, place: Place, allowed: str) -> Mapping[str, Any]:
        if value is None:
            raise place.error("is missing")
        if not isinstance(value, Mapping):
            raise place.refused(value, allowed)
        return value

    fields = dict(mapping(table, place, "a table with largest, sizes, interarrival and run_time"))
    allowed = "a table with the weight of each size"
    sizes = mapping(fields.pop("sizes", None), place.at("sizes"), allowed)
    if not all(size.isascii() and size.isdecimal() and len(size) < 16 for size in sizes):
        raise place.at("sizes").refused(sizes, allowed)
    for time in _TIMES:
        of_time = mapping(fields.get(time), place.at(time), f"a table with {', '.join(_OF_TIMES)}")
        fields[time] = made(HyperErlang, of_time, place.at(time))
    return made(SizeClass, fields, place, sizes=tuple(map(int, sizes)), weights=tuple(sizes.values()))


def load_model(model: str | os.PathLike[str]) -> WorkloadModel:
    """Return a model by its name, as ``"blue-pacific"``, or from a JSON file."""
    names = shipped_models()
    if model in names:
        return WorkloadModel.from_json(shipped_model(str(model)), file=str(model))
    path = Path(model)
    if not os.path.lexists(path):
        raise SpecificationError(
            f"model: {quoted(str(model))} is neither a file nor a shipped model{did_you_mean(str(model), names)}; "
            f"shipped are {', '.join(names)}"
        )
    try:
        text = specification_bytes(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise SpecificationError(f"{path}: cannot be read: {problem}") from None
    return WorkloadModel.from_json(text, file=str(path))


def class_label(largest: int) -> str:
    """Return the sizes of the class with this upper bound as ``"5-8"``, or ``"1"``."""
    return str(largest) if largest <= 2 else f"{largest // 2 + 1}-{largest}"


def _short(values: object) -> str:
    text = ", ".join(map(str, values)) if isinstance(values, tuple | list) else str(values)
    return text if len(text) <= 60 else f"{text[:57]}..."


def fit_model(workload: Workload, *, nodes: int | None = None) -> WorkloadModel:
    """Return a model of ``workload``, with a hyper-Erlang distribution of smallest order for each time (section 2.1).

    The workload is treated as periodic: the time from the last job of a class, across the end of the period, to its first
    job is an interarrival time too.  So a class of k jobs has k interarrival times whose mean is the period over k, and every
    class, even of a single job, arrives at its rate in the trace.  Estimates and users are not modelled.

    If three moments admit no fit (equal times, for instance), the mean and the variance are kept, or the mean alone if there
    is a single time: see ``HyperErlang.from_mean``.  ``notes`` lists these cases, and the jobs that were left out, which need
    more than ``nodes``, by default the size of the workload's machine.

    Raises:
        SpecificationError: the machine's size is not known, fewer than two jobs fit it, or all are submitted at the same time.
    """
    size = workload.machine_nodes if nodes is None else nodes
    if size is None:
        raise SpecificationError(f"nodes: {workload.name} does not say how large its machine is; give the machine's size")
    size = require_whole("nodes", size, at_least=1)
    fits = (workload.column("nodes") >= 1) & (workload.column("nodes") <= size)
    submit, run = workload.seconds("submit")[fits], workload.seconds("run")[fits]
    needed = workload.column("nodes")[fits]
    if len(submit) < 2 or submit[0] == submit[-1]:
        raise SpecificationError(
            f"{workload.name}: {counted(len(submit), 'job')} of 1 to {size} nodes, submitted at one instant, "
            "give no interarrival time to fit a model to"
        )
    notes = []
    if len(submit) < len(workload):
        notes.append(f"{counted(len(workload) - len(submit), 'job')} left out: not of 1 to {size} nodes")
    period = (submit[-1] - submit[0]) * len(submit) / (len(submit) - 1)
    upper = 1 << np.frexp(needed - 1)[1].astype(np.int64)
    classes = []
    for largest in np.unique(upper):
        of_class = upper == largest
        sizes, counts = np.unique(needed[of_class], return_counts=True)
        arrivals = submit[of_class]
        gaps = np.append(np.diff(arrivals), arrivals[0] + period - arrivals[-1])
        fitted = {}
        for field, times in (("interarrival", gaps), ("run_time", run[of_class])):
            fitted[field], note = _fitted(times)
            if note:
                notes.append(f"class {class_label(int(largest))} {field.replace('_', ' ')}: {note}")
        classes.append(SizeClass(largest=int(largest), sizes=tuple(sizes.tolist()), weights=tuple(counts.tolist()), **fitted))
    return WorkloadModel(
        name=workload.name,
        source=f"fitted to {counted(len(submit), 'job')} of {Path(workload.provenance.source).name}",
        nodes=size,
        classes=tuple(classes),
        notes=tuple(notes),
    )


def _fitted(times_s: FloatArray) -> tuple[HyperErlang, str]:
    """Return the fit to ``times_s``, shape ``(n,)``, and a note if another distribution had to be used, else an empty note."""
    m1, m2, m3 = (float(np.mean(times_s**k)) for k in (1, 2, 3))
    try:
        return HyperErlang.fit(m1, m2, m3), ""
    except SpecificationError as problem:
        why = str(problem).removeprefix("HyperErlang.fit: ")
    if len(times_s) == 1:
        return HyperErlang.from_mean(m1, 1.0), f"a single time of {m1:g} s; exponential with that mean used instead"
    cv = max(0.0, m2 / m1 / m1 - 1) ** 0.5
    instead = HyperErlang.from_mean(m1, cv)
    shape = "hyper-exponential" if instead.p < 1 else f"Erlang of order {instead.order}" if instead.order > 1 else "exponential"
    return instead, f"{why}; {shape} with that mean and a CV of {instead.cv:.3g} (trace: {cv:.3g}) used instead"
