"""Workloads as tables of TOML files: a trace, a model, job streams or a synthetic year, and what was done with them since.

The keys of a table are the arguments of the function that makes the jobs, and one key says which function it is.

A distribution is a number, a list of numbers, a table of weights by value (``{"1" = 0.3, "8" = 0.7}``), a table with the
``type`` of this package and its fields (``{type = "Lognormal", mean = 600, cv = 2}``), or a table with a distribution of
``scipy.stats`` and its arguments (``{scipy = "geom", args = [0.2]}``).
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from clustermodel.errors import did_you_mean, quoted, shown
from clustermodel.logs.trace_file import SWF, read_trace, reader_for
from clustermodel.text.tables import Place, made, placed, plain, relative, require_keys, table_at
from clustermodel.workload import distributions, estimate_models, job_stream
from clustermodel.workload.job import MALLEABLE
from clustermodel.workload.job_stream import JobStream, TraceArrivals
from clustermodel.workload.malleable import Malleable
from clustermodel.workload.merged import JobStreamMix, merge
from clustermodel.workload.model import MODEL_FORMAT, WorkloadModel, load_model, model_from
from clustermodel.workload.provenance import ESTIMATES, KEEP, MEMORY, SCALE, SHAPES, Recipe, Source
from clustermodel.workload.shipped import shipped_models
from clustermodel.workload.swf import SwfStream, read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import JobSource, Workload
from clustermodel.workload.transforms import RESAMPLE, JobFilter, LoadScale

SOURCES: Final = get_args(Source)  # the keys of which a table has exactly one
TYPES: Final[dict[str, type]] = {
    kind: getattr(module, kind)
    for module, kinds in (
        (distributions, "Exponential Lognormal LogUniform TwoStageUniform Zipf BySize HyperErlang"),
        (job_stream, "Poisson MarkovModulated Renewal Bursts Cycle Sessions ClosedUsers"),
        (estimate_models, "FactorEstimates PhiEstimates RoundedEstimates"),
    )
    for kind in kinds.split()
}
"""What ``type`` may be."""
RUN_TIME: Final = "run-time"  # text of estimates that are the run times
_STEPS: Final = (KEEP, SCALE, ESTIMATES, RESAMPLE, MEMORY, SHAPES, MALLEABLE)
_PARTS: Final[dict[str, type[Any]]] = {KEEP: JobFilter, SCALE: LoadScale, MALLEABLE: Malleable}


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
    source = _made_of(kind, table[kind], {key: table[key] for key in table if key not in (kind, *after)}, place)
    if not isinstance(source, Workload):
        for key in after & table.keys():
            raise place.at(key).error("not allowed with stream = true, which is read as the file has it")
        return source
    steps = _of_type(list, table.get("steps", []), place.at("steps"), "a list of tables")
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


def _made_of(kind: str, value: Any, arguments: dict[str, Any], place: Place) -> JobSource:
    """Return the jobs of the function that a key names: ``value`` is of that key, ``arguments`` are the others."""
    inside = place.at(kind)
    make: Callable[..., JobSource] = synthetic_workload
    others: dict[str, object] = {}
    if kind == "trace":
        path = others["path"] = place.folder / _of_type(str, value, inside, "the name of a file")
        if not os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
            raise inside.error(f"{quoted(value)}: there is no such file")
        arguments |= {key: _part(key, arguments[key], place) for key in (KEEP, SCALE) if key in arguments}
        if arguments.pop("stream", False) is True:
            make = SwfStream
        else:
            make = read_swf if placed(lambda: reader_for(path), place, ()) is SWF else read_trace
    elif kind == "model" and isinstance(value, str):
        name = value if value in shipped_models() else place.folder / value
        make = placed(lambda: load_model(name), place, ("model",)).generate
    elif kind == "model":
        allowed = f"one of {', '.join(shipped_models())}, the name of a file, or a table"
        make = model_from(_of_type(Mapping, value, inside, allowed), inside).generate
    elif kind == "synthetic":
        if value is not True:
            raise inside.refused(value, "true")
    elif kind == "job_stream":
        make = _job_stream(value, inside).generate
    elif not isinstance(value, Mapping) or not value:
        raise inside.refused(value, "a table with a table for each label")
    elif kind == "job_streams":
        make = JobStreamMix({label: _job_stream(each, inside.at(label)) for label, each in value.items()}).generate
    else:
        require_keys(arguments, (), place)
        parts = {label: workload_from(each, inside.at(label)) for label, each in value.items()}
        return placed(lambda: merge(**parts), place, parts)
    return made(make, arguments, place, **others)


def _of_type(kind: type[Any], value: object, place: Place, allowed: str = "a table") -> Any:
    if not isinstance(value, kind):
        raise place.refused(value, allowed)
    return value


def _part(key: str, value: object, place: Place) -> Any:
    return made(_PARTS[key], _of_type(Mapping, value, place.at(key)), place.at(key))


def _transformed(workload: Workload, step: object, place: Place) -> Workload:
    table = _of_type(Mapping, step, place)
    require_keys(table, _STEPS, place)
    if len(table) != 1:
        raise place.error(f"a step has one of {', '.join(_STEPS[:-1])} and {_STEPS[-1]}; steps are carried out in order")
    ((key, value),) = table.items()
    inside = place.at(key)
    if key in _PARTS:
        part = _part(key, value, place)
        changes: dict[str, Callable[[Any], Workload]] = {
            KEEP: workload.select, SCALE: workload.scaled, MALLEABLE: workload.with_malleable,
        }  # fmt: skip
        return placed(lambda: changes[key](part), place, ())
    if key == MEMORY:
        return placed(lambda: workload.with_default_memory(value), inside, ())
    if key == SHAPES:
        if value is not True:
            raise inside.refused(value, "true")
        return placed(workload.with_recorded_shapes, inside, ())
    if key == RESAMPLE:
        return made(workload.resampled, _of_type(Mapping, value, inside), inside)
    if value == RUN_TIME:
        return workload.with_perfect_estimates()
    table = _of_type(Mapping, value, inside, f"{RUN_TIME!r}, or a table with phi and seed")
    return made(workload.with_phi_estimates, table, inside)


def _job_stream(value: object, place: Place) -> JobStream:
    table = _of_type(Mapping, value, place, "a table with the fields of a JobStream")
    return made(JobStream, {key: _ingredient(each, place.at(key)) for key, each in table.items()}, place)


def _ingredient(value: Any, place: Place) -> Any:
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
        import scipy.stats

        name = value["scipy"]
        family = getattr(scipy.stats, name, None) if isinstance(name, str) else None
        if not isinstance(family, scipy.stats.rv_continuous | scipy.stats.rv_discrete):
            raise place.at("scipy").refused(name, "the name of a distribution of scipy.stats, as 'geom'")
        positional = _of_type(list, value.get("args", []), place.at("args"), "a list of numbers")
        named = {key: each for key, each in value.items() if key not in ("scipy", "args")}
        return placed(partial(family, *positional, **named), place, ())
    if "type" not in value:
        return {_number(key, place): weight for key, weight in value.items()}
    kind = value["type"]
    if not isinstance(kind, str) or kind not in TYPES:
        hint = did_you_mean(str(kind), TYPES)
        raise place.at("type").error(f"{quoted(kind)} is unknown{hint}; known are {', '.join(TYPES)}")
    return made(TYPES[kind], {key: _ingredient(each, place.at(key)) for key, each in value.items() if key != "type"}, place)


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
    if recipe.source == "trace":  # these say nothing where they are false, and not every reader has them
        off = ("stream", "feedback", "lenient", "waits")
        arguments = {name: value for name, value in arguments.items() if not (value is False and name in off)}
    else:
        keys = {"stream": "job_stream", "streams": "job_streams", "workloads": "merge"}
        arguments = {keys.get(name, name): value for name, value in arguments.items()}
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


def _described(value: Any, place: Place) -> Any:
    """Return a value as a file has it: plain, or a table of a workload, a model, a job stream or a part of one."""
    kind = type(value)
    described: Any
    if isinstance(value, Workload | SwfStream):
        described = table_of_workload(value, place)
    elif isinstance(value, WorkloadModel):
        is_shipped = value.name in shipped_models() and value == load_model(value.name)
        fields_of_file = {key: each for key, each in json.loads(value.to_json()).items() if key not in MODEL_FORMAT}
        described = value.name if is_shipped else fields_of_file
    elif isinstance(value, TraceArrivals):
        described = {"workload": table_of_workload(value.trace, place.at("workload"))}
    elif kind is JobStream or TYPES.get(kind.__name__) is kind:
        named = {} if kind is JobStream else {"type": kind.__name__}
        described = named | _entries({field.name: getattr(value, field.name) for field in fields(value)}, place)
    elif isinstance(value, os.PathLike):
        described = relative(Path(value), place)
    elif isinstance(value, Mapping):
        described = _entries(value, place)
    elif kind.__module__.startswith("scipy.stats") and hasattr(value, "dist"):
        positional = {"args": plain(value.args, place)} if value.args else {}
        described = {"scipy": value.dist.name, **positional, **plain(value.kwds, place)}
    elif isinstance(value, Sequence) and not isinstance(value, str):
        described = [_described(each, place.at(number)) for number, each in enumerate(value)]
    else:
        described = plain(value, place)
    return described


def _entries(values: Mapping[Any, Any], place: Place) -> dict[str, Any]:
    return {str(key): _described(each, place.at(str(key))) for key, each in values.items() if each is not None}
