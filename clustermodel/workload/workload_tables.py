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
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

from clustermodel.errors import did_you_mean, quoted, shown
from clustermodel.tables import Place, made, placed, plain, relative, require_keys, table_at
from clustermodel.workload.distributions import (
    BySize,
    Exponential,
    FactorEstimates,
    HyperErlang,
    Lognormal,
    LogUniform,
    PhiEstimates,
    RoundedEstimates,
    TwoStageUniform,
    Zipf,
)
from clustermodel.workload.job_stream import (
    Bursts,
    ClosedUsers,
    Cycle,
    JobStream,
    MarkovModulated,
    Poisson,
    Renewal,
    Sessions,
    TraceArrivals,
)
from clustermodel.workload.model import MODEL_FORMAT, WorkloadModel, load_model, shipped_models
from clustermodel.workload.readers import SWF
from clustermodel.workload.streams import JobStreamMix, merge
from clustermodel.workload.swf import SwfStream, read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import ESTIMATES, KEEP, MEMORY, SCALE, JobSource, Recipe, Source, Workload
from clustermodel.workload.trace_file import read_trace, reader_for
from clustermodel.workload.transforms import RESAMPLE, JobFilter, LoadScale

TYPES: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        Exponential, Lognormal, LogUniform, TwoStageUniform, Zipf, BySize, HyperErlang,
        Poisson, MarkovModulated, Renewal, Bursts, Cycle, Sessions, ClosedUsers,
        FactorEstimates, PhiEstimates, RoundedEstimates,
    )
}  # fmt: skip
"""What ``type`` may be."""
_TYPE: Final = "type"
_SCIPY: Final = "scipy"
_ARGUMENTS: Final = "args"
_WORKLOAD: Final = "workload"

WorkloadFrom = Callable[[object, Place], Workload]
TableOf = Callable[[Workload, Place], dict[str, Any]]


def job_stream_from(value: object, place: Place, workload_from: WorkloadFrom) -> JobStream:
    """Return the job stream that a table describes.

    Args:
        value: the table.
        place: of the table.
        workload_from: makes the workload whose submission times are an arrival process.

    Raises:
        SpecificationError: a key is unknown or missing, or a value is not allowed.
    """
    if not isinstance(value, Mapping):
        raise place.refused(value, "a table with the fields of a JobStream")
    return made(JobStream, {key: _from(one, place.at(key), workload_from) for key, one in value.items()}, place)


def _from(value: object, place: Place, workload_from: WorkloadFrom) -> Any:
    """Return an ingredient; numbers and texts are what they are, and the class that gets them refuses wrong ones."""
    if isinstance(value, list):
        return [_from(one, place.at(number), workload_from) for number, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if _WORKLOAD in value:
        if len(value) > 1:
            raise place.error(f"{_WORKLOAD} stands alone, for the submission times of its jobs")
        return TraceArrivals(workload_from(value[_WORKLOAD], place.at(_WORKLOAD)))
    if _SCIPY in value:
        return _of_scipy(value, place)
    if _TYPE in value:
        kind = value[_TYPE]
        if not isinstance(kind, str) or kind not in TYPES:
            hint = did_you_mean(str(kind), TYPES)
            raise place.at(_TYPE).error(f"{quoted(kind)} is unknown{hint}; known are {', '.join(TYPES)}")
        return made(
            TYPES[kind],
            {key: _from(one, place.at(key), workload_from) for key, one in value.items() if key != _TYPE},
            place,
        )
    return {_number(key, place): weight for key, weight in value.items()}


def _of_scipy(value: Mapping[str, Any], place: Place) -> object:
    import scipy.stats

    name = value[_SCIPY]
    kind = getattr(scipy.stats, name, None) if isinstance(name, str) else None
    if not isinstance(kind, scipy.stats.rv_continuous | scipy.stats.rv_discrete):
        raise place.at(_SCIPY).refused(name, "the name of a distribution of scipy.stats, as 'geom'")
    positional = value.get(_ARGUMENTS, [])
    if not isinstance(positional, list):
        raise place.at(_ARGUMENTS).refused(positional, "a list of numbers")
    named = {key: one for key, one in value.items() if key not in (_SCIPY, _ARGUMENTS)}
    return placed(lambda: kind(*positional, **named), place, ())


def _number(key: str, place: Place) -> float:
    for convert in (int, float):
        try:
            return convert(key)
        except ValueError:
            continue
    raise place.at(key).error(f"unknown key; a distribution has {_TYPE}, {_SCIPY}, or numbers with their weights")


def table_of_job_stream(stream: JobStream, place: Place, table_of: TableOf) -> dict[str, Any]:
    """Return the table that describes a job stream.

    Args:
        stream: the job stream.
        place: of the table, in the file that is written.
        table_of: describes a workload.

    Raises:
        SpecificationError: the stream has an object of the user, which a file cannot describe.
    """
    return _fields(stream, place, table_of)


def _fields(thing: Any, place: Place, table_of: TableOf) -> dict[str, Any]:
    values = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {key: _described(value, place.at(key), table_of) for key, value in values.items() if value is not None}


def _described(value: Any, place: Place, table_of: TableOf) -> object:
    if type(value) is TraceArrivals:
        return {_WORKLOAD: table_of(value.trace, place.at(_WORKLOAD))}
    if TYPES.get(type(value).__name__) is type(value):
        return {_TYPE: type(value).__name__, **_fields(value, place, table_of)}
    if type(value).__module__.startswith("scipy.stats") and hasattr(value, "dist"):
        positional = {_ARGUMENTS: plain(value.args, place)} if value.args else {}
        return {_SCIPY: value.dist.name, **positional, **plain(value.kwds, place)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_described(one, place.at(number), table_of) for number, one in enumerate(value)]
    return plain(value, place)


SOURCES: Final = get_args(Source)
"""The keys of which a table has exactly one."""
RUN_TIME: Final = "run-time"
"""Text of estimates that are the run times."""
_NAME: Final = "name"
_NODES: Final = "machine_nodes"
_STEPS: Final = "steps"
_STEP_KEYS: Final = (KEEP, SCALE, ESTIMATES, RESAMPLE, MEMORY)


def workload_from(value: object, place: Place) -> JobSource:
    """Return the workload that a table describes, or the file that it names.

    Raises:
        SpecificationError: a key is unknown or missing, a value is not allowed, or a file cannot be read.
    """
    table, place = table_at(value, place, "a workload")
    kinds = [key for key in SOURCES if key in table]
    if len(kinds) != 1:
        given = f"{' and '.join(kinds)} are given" if kinds else "its jobs come from nowhere"
        raise place.error(f"{given}; give one of {', '.join(SOURCES)}")
    kind = kinds[0]
    own_nodes = kind in ("job_stream", "job_streams")  # an argument of the function
    after = {_NAME, _STEPS} if own_nodes else {_NAME, _STEPS, _NODES}
    arguments = {key: one for key, one in table.items() if key not in after}
    source = _MAKERS[kind](arguments.pop(kind), arguments, place)
    if not isinstance(source, Workload):
        for key in after & table.keys():
            raise place.at(key).error("not allowed with stream = true, which is read as the file has it")
        return source
    steps = table.get(_STEPS, [])
    if not isinstance(steps, list):
        raise place.at(_STEPS).refused(steps, "a list of tables")
    for number, step in enumerate(steps):
        source = _transformed(source, step, place.at(_STEPS).at(number))
    return _renamed(source, {key: table[key] for key in (_NAME, _NODES) if key in after and key in table}, place)


def _of_trace(value: object, arguments: dict[str, Any], place: Place) -> JobSource:
    if not isinstance(value, str):
        raise place.at("trace").refused(value, "the name of a file")
    path = place.folder / value
    for key, convert in ((KEEP, _filter_from), (SCALE, _scale_from)):
        if key in arguments:
            arguments[key] = convert(arguments[key], place.at(key))
    if not os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
        raise place.at("trace").error(f"{quoted(value)}: there is no such file")
    streamed = arguments.pop("stream", False)
    if streamed is True:
        return made(SwfStream, arguments, place, path=path)
    reader = placed(lambda: reader_for(path), place, ())
    make: Callable[..., Workload] = read_swf if reader is SWF else read_trace
    return made(make, arguments, place, path=path)


def _of_model(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    at = place.at("model")
    if isinstance(value, str):
        name = value if value in shipped_models() else place.folder / value
        model = placed(lambda: load_model(name), place, ("model",))
    elif isinstance(value, Mapping):
        text = placed(lambda: json.dumps({**MODEL_FORMAT, **value}), at, ())
        model = placed(lambda: WorkloadModel.from_json(text, file="model"), at, ())
    else:
        raise at.refused(value, f"one of {', '.join(shipped_models())}, the name of a file, or a table")
    return made(model.generate, arguments, place)


def _synthetic(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    if value is not True:
        raise place.at("synthetic").refused(value, "true")
    return made(synthetic_workload, arguments, place)


def _of_job_stream(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    stream = job_stream_from(value, place.at("job_stream"), _workload_in_memory)
    return made(stream.generate, arguments, place)


def _of_job_streams(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    at = place.at("job_streams")
    streams = {label: job_stream_from(one, at.at(label), _workload_in_memory) for label, one in _labelled(value, at).items()}
    return made(JobStreamMix(streams).generate, arguments, place)


def _merged(value: object, arguments: dict[str, Any], place: Place) -> Workload:
    require_keys(arguments, (), place)
    at = place.at("merge")
    parts = {label: workload_from(one, at.at(label)) for label, one in _labelled(value, at).items()}
    return placed(lambda: merge(**parts), place, parts)


_MAKERS: Final[dict[str, Callable[[object, dict[str, Any], Place], JobSource]]] = {
    "trace": _of_trace,
    "model": _of_model,
    "synthetic": _synthetic,
    "job_stream": _of_job_stream,
    "job_streams": _of_job_streams,
    "merge": _merged,
}


def _labelled(value: object, place: Place) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not value:
        raise place.refused(value, "a table with a table for each label")
    return value


def _workload_in_memory(value: object, place: Place) -> Workload:
    workload = workload_from(value, place)
    if not isinstance(workload, Workload):
        raise place.error("not allowed with stream = true; the jobs must be in memory")
    return workload


def _filter_from(value: object, place: Place) -> JobFilter:
    return made(JobFilter, _table(value, place), place)


def _scale_from(value: object, place: Place) -> LoadScale:
    return made(LoadScale, _table(value, place), place)


def _table(value: object, place: Place) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise place.refused(value, "a table")
    return value


def _transformed(workload: Workload, step: object, place: Place) -> Workload:
    table = _table(step, place)
    require_keys(table, _STEP_KEYS, place)
    if len(table) != 1:
        raise place.error(
            f"a step has one of {', '.join(_STEP_KEYS[:-1])} and {_STEP_KEYS[-1]}; steps are carried out in order"
        )
    ((key, value),) = table.items()
    at = place.at(key)
    if key == KEEP:
        return placed(lambda: workload.select(_filter_from(value, at)), place, ())
    if key == SCALE:
        return placed(lambda: workload.scaled(_scale_from(value, at)), place, ())
    if key == MEMORY:
        return placed(lambda: workload.with_default_memory(value), at, ())
    if key == RESAMPLE:
        return made(workload.resampled, _table(value, at), at)
    if value == RUN_TIME:
        return workload.with_perfect_estimates()
    if not isinstance(value, Mapping):
        raise at.refused(value, f"{RUN_TIME!r}, or a table with phi and seed")
    return made(workload.with_phi_estimates, value, at)


def _renamed(workload: Workload, values: Mapping[str, Any], place: Place) -> Workload:
    if _NAME in values:
        name = values[_NAME]
        if not isinstance(name, str) or not name or not name.isprintable():
            raise place.at(_NAME).refused(name, "a line of text")
        workload.name = name
    if _NODES in values:
        nodes = values[_NODES]
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
            raise place.at(_NODES).refused(nodes, "an integer >= 1")
        workload.machine_nodes = nodes
    return workload


def table_of_workload(source: JobSource, place: Place) -> dict[str, Any]:
    """Return the table that describes a workload.

    Args:
        source: the workload, or the stream of a trace.
        place: of the table, in the file that is written.

    Raises:
        SpecificationError: the workload exists in memory only, or has a part that a file cannot describe.
    """
    recipe: object = getattr(source, "recipe", None)
    if not isinstance(recipe, Recipe):
        how = "write it with write_trace first and read that file" if isinstance(source, Workload) else "it must be a Workload"
        raise place.error(f"{shown(source.name)!r} exists in memory only, so that no file can name it; {how}")
    arguments = {key: value for key, value in recipe.arguments.items() if value is not None and value != {}}
    table = {**_TABLES[recipe.source](arguments, place)}
    table = {key: plain(value, place.at(key)) for key, value in table.items()}
    if recipe.steps:
        table[_STEPS] = [{name: _step(what, place)} for name, what in recipe.steps]
    if source.name != recipe.name:
        table[_NAME] = source.name
    if source.machine_nodes != recipe.machine_nodes:
        if source.machine_nodes is None or _NODES in table:
            raise place.error(f"{_NODES} was changed to {source.machine_nodes!r} later, which no file can say")
        table[_NODES] = source.machine_nodes
    return table


def _step(what: object, place: Place) -> object:
    return RUN_TIME if what is None else plain(what, place)


def _table_of_trace(arguments: dict[str, Any], place: Place) -> dict[str, Any]:
    trace = relative(Path(arguments.pop("trace")), place)
    without_meaning = {"stream": False, "feedback": False, "lenient": False, "waits": False}
    return {"trace": trace, **{key: value for key, value in arguments.items() if without_meaning.get(key) is not value}}


def _table_of_model(arguments: dict[str, Any], _: Place) -> dict[str, Any]:
    model: WorkloadModel = arguments.pop("model")
    if model.name in shipped_models() and model == load_model(model.name):
        return {"model": model.name, **arguments}
    fields = {key: value for key, value in json.loads(model.to_json()).items() if key not in MODEL_FORMAT}
    return {**arguments, "model": fields}


def _table_of_synthetic(arguments: dict[str, Any], _: Place) -> dict[str, Any]:
    return {"synthetic": True, **arguments}


def _table_of_stream(arguments: dict[str, Any], place: Place) -> dict[str, Any]:
    stream = table_of_job_stream(arguments.pop("stream"), place.at("job_stream"), table_of_workload)
    return {**arguments, "job_stream": stream}


def _table_of_streams(arguments: dict[str, Any], place: Place) -> dict[str, Any]:
    at = place.at("job_streams")
    streams = arguments.pop("streams").items()
    return {
        **arguments,
        "job_streams": {label: table_of_job_stream(one, at.at(label), table_of_workload) for label, one in streams},
    }


def _table_of_merged(arguments: dict[str, Any], place: Place) -> dict[str, Any]:
    at = place.at("merge")
    return {"merge": {label: table_of_workload(one, at.at(label)) for label, one in arguments["workloads"].items()}}


_TABLES: Final[dict[str, Callable[[dict[str, Any], Place], dict[str, Any]]]] = {
    "trace": _table_of_trace,
    "model": _table_of_model,
    "synthetic": _table_of_synthetic,
    "job_stream": _table_of_stream,
    "job_streams": _table_of_streams,
    "merge": _table_of_merged,
}
