"""Workloads as tables of TOML files: a trace, a model, job streams or a synthetic year, and what was done with them since.

The keys of a table are the arguments of the function that makes the jobs, and one key says which function it is.

A distribution is a number, a list of numbers, a table of weights by value (``{"1" = 0.3, "8" = 0.7}``), a table with the
``type`` of this package and its fields (``{type = "Lognormal", mean = 600, cv = 2}``), or a table with a distribution of
``scipy.stats`` and its arguments (``{scipy = "geom", args = [0.2]}``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

from clustermodel.errors import did_you_mean, quoted, shown
from clustermodel.tables import Place, made, placed, plain, relative, require_keys, table_at
from clustermodel.workload import distributions, estimates, job_stream
from clustermodel.workload.job_stream import JobStream, TraceArrivals
from clustermodel.workload.model import MODEL_FORMAT, WorkloadModel, load_model, model_from, shipped_models
from clustermodel.workload.streams import JobStreamMix, merge
from clustermodel.workload.swf import SwfStream, read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import ESTIMATES, KEEP, MEMORY, SCALE, JobSource, Recipe, Source, Workload
from clustermodel.workload.trace_file import SWF, read_trace, reader_for
from clustermodel.workload.transforms import RESAMPLE, JobFilter, LoadScale

SOURCES: Final = get_args(Source)
"""The keys of which a table has exactly one."""
TYPES: Final[dict[str, type]] = {
    kind: getattr(module, kind)
    for module, kinds in (
        (distributions, "Exponential Lognormal LogUniform TwoStageUniform Zipf BySize HyperErlang"),
        (job_stream, "Poisson MarkovModulated Renewal Bursts Cycle Sessions ClosedUsers"),
        (estimates, "FactorEstimates PhiEstimates RoundedEstimates"),
    )
    for kind in kinds.split()
}
"""What ``type`` may be."""
RUN_TIME: Final = "run-time"
"""Text of estimates that are the run times."""
_STEPS: Final = (KEEP, SCALE, ESTIMATES, RESAMPLE, MEMORY)
_PARTS: Final[dict[str, type[Any]]] = {KEEP: JobFilter, SCALE: LoadScale}


def workload_from(value: object, place: Place) -> JobSource:
    """Return the workload that a table describes, or the file that it names."""
    table, place = table_at(value, place, "a workload")
    kinds = [key for key in SOURCES if key in table]
    if len(kinds) != 1:
        given = f"{' and '.join(kinds)} are given" if kinds else "its jobs come from nowhere"
        raise place.error(f"{given}; give one of {', '.join(SOURCES)}")
    kind = kinds[0]
    # The size of the machine is an argument of the functions that generate job streams.
    after = {"name", "steps"} if kind in ("job_stream", "job_streams") else {"name", "steps", "machine_nodes"}
    source = _MAKERS[kind](table[kind], {key: table[key] for key in table if key not in (kind, *after)}, place)
    if not isinstance(source, Workload):
        for key in after & table.keys():
            raise place.at(key).error("not allowed with stream = true, which is read as the file has it")
        return source
    steps = table.get("steps", [])
    if not isinstance(steps, list):
        raise place.at("steps").refused(steps, "a list of tables")
    for number, step in enumerate(steps):
        source = _transformed(source, step, place.at("steps").at(number))
    if "name" in table:
        source.name = name = table["name"]
        if not isinstance(name, str) or not name or not name.isprintable():
            raise place.at("name").refused(name, "a line of text")
    if "machine_nodes" in table and "machine_nodes" in after:
        source.machine_nodes = nodes = table["machine_nodes"]
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
            raise place.at("machine_nodes").refused(nodes, "an integer >= 1")
    return source


def _of_trace(value: object, arguments: dict[str, Any], place: Place) -> JobSource:
    if not isinstance(value, str):
        raise place.at("trace").refused(value, "the name of a file")
    path = place.folder / value
    if not os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
        raise place.at("trace").error(f"{quoted(value)}: there is no such file")
    arguments |= {key: _part(key, arguments[key], place) for key in _PARTS if key in arguments}
    if arguments.pop("stream", False) is True:
        return made(SwfStream, arguments, place, path=path)
    reader = placed(lambda: reader_for(path), place, ())
    make: Callable[..., Workload] = read_swf if reader is SWF else read_trace
    return made(make, arguments, place, path=path)


def _of_model(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    if isinstance(value, str):
        name = value if value in shipped_models() else place.folder / value
        model = placed(lambda: load_model(name), place, ("model",))
    elif isinstance(value, Mapping):
        model = model_from(value, place.at("model"))
    else:
        raise place.at("model").refused(value, f"one of {', '.join(shipped_models())}, the name of a file, or a table")
    return made(model.generate, arguments, place)


def _synthetic(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    if value is not True:
        raise place.at("synthetic").refused(value, "true")
    return made(synthetic_workload, arguments, place)


def _of_job_stream(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    return made(_job_stream(value, place.at("job_stream")).generate, arguments, place)


def _of_job_streams(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    streams = {label: _job_stream(value, inside) for label, value, inside in _labelled(value, place.at("job_streams"))}
    return made(JobStreamMix(streams).generate, arguments, place)


def _merged(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    require_keys(arguments, (), place)
    parts = {label: workload_from(value, inside) for label, value, inside in _labelled(value, place.at("merge"))}
    return placed(lambda: merge(**parts), place, parts)


_MAKERS: Final[dict[str, Callable[[object, dict[str, Any], Place], JobSource]]] = {
    "trace": _of_trace,
    "model": _of_model,
    "synthetic": _synthetic,
    "job_stream": _of_job_stream,
    "job_streams": _of_job_streams,
    "merge": _merged,
}


def _labelled(value: object, place: Place) -> list[tuple[str, object, Place]]:
    if not isinstance(value, Mapping) or not value:
        raise place.refused(value, "a table with a table for each label")
    return [(label, each, place.at(label)) for label, each in value.items()]


def _table(value: object, place: Place) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise place.refused(value, "a table")
    return value


def _part(key: str, value: object, place: Place) -> Any:
    return made(_PARTS[key], _table(value, place.at(key)), place.at(key))


def _transformed(workload: Workload, step: object, place: Place) -> Workload:
    table = _table(step, place)
    require_keys(table, _STEPS, place)
    if len(table) != 1:
        raise place.error(f"a step has one of {', '.join(_STEPS[:-1])} and {_STEPS[-1]}; steps are carried out in order")
    ((key, value),) = table.items()
    inside = place.at(key)
    if key in _PARTS:
        part, change = _part(key, value, place), workload.select if key == KEEP else workload.scaled
        return placed(lambda: change(part), place, ())
    if key == MEMORY:
        return placed(lambda: workload.with_default_memory(value), inside, ())
    if key == RESAMPLE:
        return made(workload.resampled, _table(value, inside), inside)
    if value == RUN_TIME:
        return workload.with_perfect_estimates()
    if not isinstance(value, Mapping):
        raise inside.refused(value, f"{RUN_TIME!r}, or a table with phi and seed")
    return made(workload.with_phi_estimates, value, inside)


def _job_stream(value: object, place: Place) -> JobStream:
    if not isinstance(value, Mapping):
        raise place.refused(value, "a table with the fields of a JobStream")
    return made(JobStream, {key: _ingredient(each, place.at(key)) for key, each in value.items()}, place)


def _ingredient(value: object, place: Place) -> Any:
    """Return a part of a job stream; numbers and texts are what they are, and the class that gets them refuses wrong ones."""
    if isinstance(value, list):
        return [_ingredient(each, place.at(number)) for number, each in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if "workload" in value:
        if len(value) > 1:
            raise place.error("workload stands alone, for the submission times of its jobs")
        workload = workload_from(value["workload"], place.at("workload"))
        if not isinstance(workload, Workload):
            raise place.at("workload").error("not allowed with stream = true; the jobs must be in memory")
        return TraceArrivals(workload)
    if "scipy" in value:
        return _of_scipy(value, place)
    if "type" not in value:
        return {_number(key, place): weight for key, weight in value.items()}
    kind = value["type"]
    if not isinstance(kind, str) or kind not in TYPES:
        hint = did_you_mean(str(kind), TYPES)
        raise place.at("type").error(f"{quoted(kind)} is unknown{hint}; known are {', '.join(TYPES)}")
    parts = {key: _ingredient(each, place.at(key)) for key, each in value.items() if key != "type"}
    return made(TYPES[kind], parts, place)


def _of_scipy(value: Mapping[str, Any], place: Place) -> object:
    import scipy.stats

    name = value["scipy"]
    kind = getattr(scipy.stats, name, None) if isinstance(name, str) else None
    if not isinstance(kind, scipy.stats.rv_continuous | scipy.stats.rv_discrete):
        raise place.at("scipy").refused(name, "the name of a distribution of scipy.stats, as 'geom'")
    positional = value.get("args", [])
    if not isinstance(positional, list):
        raise place.at("args").refused(positional, "a list of numbers")
    named = {key: each for key, each in value.items() if key not in ("scipy", "args")}
    return placed(lambda: kind(*positional, **named), place, ())


def _number(key: str, place: Place) -> float:
    for convert in (int, float):
        with suppress(ValueError):
            return convert(key)
    raise place.at(key).error("unknown key; a distribution has type, scipy, or numbers with their weights")


def table_of_workload(source: JobSource, place: Place) -> dict[str, Any]:
    """Return the table that describes a workload, or the stream of a trace."""
    recipe: object = getattr(source, "recipe", None)
    if not isinstance(recipe, Recipe):
        how = "write it with write_trace first and read that file" if isinstance(source, Workload) else "it must be a Workload"
        raise place.error(f"{shown(source.name)!r} exists in memory only, so that no file can name it; {how}")
    arguments = {name: value for name, value in recipe.arguments.items() if value is not None and value != {}}
    if recipe.source == "trace":
        arguments = {name: value for name, value in arguments.items() if not (value is False and name in _OFF)}
    else:
        arguments = {_KEYS.get(name, name): value for name, value in arguments.items()}
    if recipe.source == "synthetic":
        arguments = {"synthetic": True, **arguments}
    table = _entries(arguments, place)
    if recipe.steps:
        table["steps"] = [{name: RUN_TIME if what is None else plain(what, place)} for name, what in recipe.steps]
    if source.name != recipe.name:
        table["name"] = source.name
    if source.machine_nodes != recipe.machine_nodes:
        if source.machine_nodes is None or "machine_nodes" in table:
            raise place.error(f"machine_nodes was changed to {source.machine_nodes!r} later, which no file can say")
        table["machine_nodes"] = source.machine_nodes
    return table


_KEYS: Final = {"stream": "job_stream", "streams": "job_streams", "workloads": "merge"}
"""Keys of a table for arguments that have other names; ``stream`` of a trace is true or false."""
_OFF: Final = ("stream", "feedback", "lenient", "waits")
"""Arguments of traces that say nothing where they are false, and which not every reader has."""


def _described(value: Any, place: Place) -> Any:
    """Return a value as a file has it: plain, or a table of a workload, a model, a job stream or a part of one."""
    for kind, describe in _WRITERS:
        if isinstance(value, kind):
            return describe(value, place)
    if type(value).__module__.startswith("scipy.stats") and hasattr(value, "dist"):
        positional = {"args": plain(value.args, place)} if value.args else {}
        return {"scipy": value.dist.name, **positional, **plain(value.kwds, place)}
    if TYPES.get(type(value).__name__) is type(value):
        return {"type": type(value).__name__, **_fields(value, place)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_described(each, place.at(number)) for number, each in enumerate(value)]
    return plain(value, place)


def _fields(value: Any, place: Place) -> dict[str, Any]:
    return _entries({field.name: getattr(value, field.name) for field in fields(value)}, place)


def _entries(values: Mapping[Any, Any], place: Place) -> dict[str, Any]:
    return {str(key): _described(each, place.at(str(key))) for key, each in values.items() if each is not None}


def _model(model: WorkloadModel, _: Place) -> Any:
    if model.name in shipped_models() and model == load_model(model.name):
        return model.name
    return {key: each for key, each in json.loads(model.to_json()).items() if key not in MODEL_FORMAT}


_WRITERS: Final[tuple[tuple[Any, Callable[[Any, Place], Any]], ...]] = (
    ((Workload, SwfStream), table_of_workload),
    (WorkloadModel, _model),
    (TraceArrivals, lambda arrivals, place: {"workload": table_of_workload(arrivals.trace, place.at("workload"))}),
    (JobStream, _fields),
    (os.PathLike, lambda path, place: relative(Path(path), place)),
    (Mapping, _entries),
)
